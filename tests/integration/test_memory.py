"""The memory circle through its façade: said → learned → found, scoped, corrected, forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from memory.chat.turns import Outcome, Said
from memory.context import Context
from memory.errors import Derived
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelFailed, ModelRequest
from memory.mailbox.outbox import Part
from memory.recall.recall import Budget
from memory.service import Service
from memory.store.database import Reader
from memory.store.memories import Memory
from tests.kit.fakes import DAY, NOON, Clock, counting_ids, runtime
from tests.kit.forgetting import forgotten_alone
from tests.kit.minds import answered
from tests.kit.patience import SECONDS
from tests.kit.stores import opened, profile_of
from tests.kit.talk import act, facts, found, group, known, learn, private, received, say, teach


async def test_what_a_person_says_is_learned_with_its_source_and_dates(memory: Service, clock: Clock) -> None:
    """A fact without its source could be neither explained nor corrected."""
    turn = await teach(memory, private("ada"), "I live in Lisbon and I'm allergic to peanuts", clock=clock)
    assert await facts(memory, turn.context) == [("allergy", "peanuts"), ("home", "Lisbon")]
    home = (await known(memory, turn.context, "home"))[0]
    shown = await act(memory, turn.context, lambda edits: edits.show(home.short_id))
    assert [source.text for source in shown.sources] == ["I live in Lisbon and I'm allergic to peanuts"]
    assert clock.just_now(home.learned_at) and (home.valid_from, home.local_date) == (home.learned_at, "2026-11-21")


async def test_a_new_home_replaces_the_old_one_which_keeps_its_dates(memory: Service, clock: Clock) -> None:
    """Nothing is overwritten: one can ask where somebody used to live."""
    ada = private("ada")
    await teach(memory, ada, "I live in Porto", clock=clock)
    clock.move(days=30)
    turn = await teach(memory, ada, "I live in Lisbon", clock=clock)
    assert await facts(memory, turn.context) == [("home", "Lisbon")]
    new, old = await known(memory, turn.context, "where do I live")
    assert (new.value, old.value) == ("Lisbon", "Porto")
    assert (old.valid_until, old.superseded_by) == (new.valid_from, new.id) and clock.just_now(new.valid_from)
    assert old.valid_from < NOON + DAY


async def test_an_older_message_never_closes_a_newer_value(memory: Service, clock: Clock) -> None:
    """Messages may be read late or out of order; what was said last holds."""
    ada = private("ada")
    await teach(memory, ada, "I live in Lisbon", clock=clock)
    clock.move(days=-30)
    turn = await teach(memory, ada, "I live in Porto", clock=clock)
    assert await facts(memory, turn.context) == [("home", "Lisbon")]
    porto = (await known(memory, turn.context, "Porto"))[0]
    assert porto.valid_until is not None and porto.superseded_by is not None


async def test_the_same_thing_said_again_reinforces_one_row(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    await teach(memory, ada, "I'm allergic to peanuts", clock=clock)
    clock.move(days=3)
    turn = await teach(memory, ada, "remember: I am allergic to Peanuts!", clock=clock)
    assert [key for key, _ in await facts(memory, turn.context)] == ["allergy"]
    allergy = (await memory.browse.memories(turn.context, limit=1))[0]
    assert allergy.reinforced_count == 1 and clock.just_now(allergy.last_reinforced_at)


async def test_nothing_is_learned_from_what_was_said_off_the_record(memory: Service, clock: Clock) -> None:
    """`learn` is fixed when a message is recorded; later triggers don't change it."""
    turn = await teach(memory, private("ada"), "I live in Lisbon", clock=clock, learn=False)
    assert await facts(memory, turn.context) == []


async def test_agents_of_one_store_share_what_a_person_told(memory: Service, clock: Clock) -> None:
    """Owners belong to the store; only rows marked for one agent stay with it."""
    await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
    where, who = private("ada", agent="other")
    other = await memory.identities.context(where, who)
    assert await found(memory, other, "where do I live?") == ["Lisbon"]


async def test_what_somebody_says_of_themselves_in_a_group_is_theirs_in_private(memory: Service, clock: Clock) -> None:
    """The group's memory stays in the group, but one's own words about oneself come along."""
    await teach(memory, group("club", "ada"), "I live in Lisbon", clock=clock)
    assert await found(memory, await memory.identities.context(*group("club", "bob")), "Lisbon") == ["Lisbon"]
    assert await found(memory, await memory.identities.context(*private("ada")), "Lisbon") == ["Lisbon"]
    assert await found(memory, await memory.identities.context(*private("bob")), "Lisbon") == []
    assert await found(memory, await memory.identities.context(*group("pub", "ada")), "Lisbon") == []


async def test_a_question_finds_a_fact_in_the_other_language(memory: Service, clock: Clock) -> None:
    """A person who speaks two languages has one memory."""
    turn = await teach(memory, private("ada"), "我住在里斯本", "I work as a nurse", clock=clock)
    assert (await found(memory, turn.context, "Where do I live?"))[0] == "里斯本"
    assert (await found(memory, turn.context, "我做什么工作？"))[0] == "nurse"


async def test_a_profile_is_filled_by_facts_and_follows_them(memory: Service, clock: Clock) -> None:
    """A slot names the facts it stands on, so it changes and goes with them."""
    ada = private("ada")
    turn = await teach(memory, ada, "My name is Ada", "I live in Porto", clock=clock)
    assert {m.key: m.value for m in await profile_of(memory, turn.context)} == {"name": "Ada", "place": "Porto"}
    clock.move(days=1)
    await teach(memory, ada, "I live in Lisbon", clock=clock)
    assert {m.key: m.value for m in await profile_of(memory, turn.context)} == {"name": "Ada", "place": "Lisbon"}
    home = (await known(memory, turn.context, "Lisbon"))[0]
    await forgotten_alone(memory, turn.context, home.id)
    assert {m.key: m.value for m in await profile_of(memory, turn.context)} == {"name": "Ada"}


async def test_forgetting_the_current_version_does_not_bring_an_old_one_back(memory: Service, clock: Clock) -> None:
    """Somebody who removes their new address must not be moved back into the old one."""
    ada = private("ada")
    await teach(memory, ada, "I live in Porto", clock=clock)
    clock.move(days=1)
    turn = await teach(memory, ada, "I live in Lisbon", clock=clock)
    home = (await memory.browse.memories(turn.context, limit=1))[0]
    await forgotten_alone(memory, turn.context, home.id)
    assert await facts(memory, turn.context) == []


async def test_unread_messages_of_an_earlier_run_are_read_by_the_next(tmp_path: Path, clock: Clock) -> None:
    """A process that is killed before the quiet gap must not cost a memory."""
    ids = counting_ids()

    async def opened(quiet_seconds: float) -> Service:
        return await Service.open(
            tmp_path / "remora.db",
            agents={"assistant": AgentMemory()},
            triggers=Triggers(quiet_seconds=quiet_seconds),
            runtime=runtime(clock, ids),
        )

    first = await opened(3_600)
    turn = await say(first, private("ada"), "I live in Lisbon", clock=clock)
    assert await facts(first, turn.context) == []
    await first.database.close()  # as a kill would: nothing is flushed

    second = await opened(0)
    await second.close(seconds=SECONDS)
    third = await opened(3_600)
    assert await facts(third, await third.identities.context(*private("ada"))) == [("home", "Lisbon")]
    await third.close(seconds=SECONDS)


async def test_a_cap_is_read_without_waiting_for_quiet(tmp_path: Path, clock: Clock) -> None:
    service = await Service.open(
        tmp_path / "remora.db",
        agents={"assistant": AgentMemory()},
        triggers=Triggers(quiet_seconds=3_600, messages=2),
        runtime=runtime(clock),
    )
    await say(service, private("ada"), "I live in Lisbon", clock=clock)
    turn = await say(service, private("ada"), "I work as a nurse", clock=clock)
    await service.learner.finish(seconds=SECONDS)
    assert await facts(service, turn.context) == [("home", "Lisbon"), ("occupation", "nurse")]
    await service.close(seconds=SECONDS)


async def test_recall_leaves_out_what_stands_in_the_prompt(memory: Service, clock: Clock) -> None:
    """Known facts and the window are in the prompt already; saying them twice wastes its room."""
    ada = private("ada")
    await teach(memory, ada, "I'm allergic to peanuts", clock=clock)
    clock.move(minutes=10)
    turn = await say(memory, ada, "what am I allergic to?", clock=clock)
    why = await memory.browse.why(turn.context)
    assert why is not None
    placed = {
        named.value: entry.placed for entry, named in why.entries if isinstance(named, Memory) and named.kind == "fact"
    }
    assert placed == {"peanuts": "known"}


async def test_memories_beyond_the_known_facts_are_recalled_within_the_budget(memory: Service, clock: Clock) -> None:
    """Overflow of the snapshot is what recall is for."""
    ada = private("ada")
    context = await memory.identities.context(*ada)
    for n in range(60):
        said = f"the code of locker {n} is {n * 7} blue"
        await act(memory, context, lambda edits: edits.remember(said, key=f"locker-{n}"))  # noqa: B023
    clock.move(days=1)
    where, who = ada
    inbox_id = await received(memory, where.session_key)
    asked = Said(
        inbox_id=inbox_id, text="which locker has a blue code ?", tokens=8, said_at=clock(), platform_ref=None,
        reply_to=None, learn=True,
    )  # fmt: skip
    turn = await memory.turns.begin(where, who, [asked])
    budget = Budget(items=3, tokens=200, known=5, known_tokens=200)
    view = await memory.turns.look(turn, budget, window_tokens=1_000, window_messages=50)
    recalled = [i.memory.key for i in view.recall.items if i.memory is not None and i.placed == "recalled"]
    assert len(view.recall.snapshot.known) == 5
    assert len(recalled) == 3 and all(key.startswith("locker-") for key in recalled)


async def test_the_window_drops_old_messages_in_large_strides(memory: Service, clock: Clock) -> None:
    """The front of the prompt stays the same for many turns, so that vendors' caches hit."""
    ada = private("ada")
    starts = set()
    for n in range(60):
        await say(memory, ada, f"message number {n} of a long talk", clock=clock, window_tokens=200)
        context = await memory.identities.context(*ada)
        assert (await memory.stats.status(context)).window_tokens <= 220  # and the answer to the last message
        starts.add(context.session.window_after)
    assert 2 < len(starts) < 12


async def test_a_new_window_starts_empty_and_loses_nothing(memory: Service, clock: Clock) -> None:
    """/new hides what was said before; it can still be learned from and recalled."""
    ada = private("ada")
    turn = await say(memory, ada, "I live in Lisbon", clock=clock)
    await act(memory, turn.context, lambda edits: edits.start_window())
    await learn(memory, turn)
    after = await say(memory, ada, "hello again", clock=clock)
    view = await memory.turns.look(after, Budget(), window_tokens=1_000, window_messages=50)
    assert "I live in Lisbon" not in [message.text for message in view.window]
    assert await facts(memory, turn.context) == [("home", "Lisbon")]


async def test_an_update_delivered_twice_is_taken_once(memory: Service) -> None:
    received: Sequence[int | None] = [
        await memory.mailbox.receive(
            platform="console", bot_id="local", update_key="7", session_key="console:ada:-", payload="{}"
        )
        for _ in range(2)
    ]
    assert received[0] is not None and received[1] is None


async def test_finished_mailbox_rows_keep_no_words(memory: Service, clock: Clock) -> None:
    """History is the one place where words stay; copies would outlive a forget."""
    turn = await say(memory, private("ada"), "I live in Lisbon", clock=clock)
    outbox_row = await memory.mailbox.take(turn.context.session.key)
    assert outbox_row is not None and outbox_row.text == "ok"
    await memory.mailbox.sent(outbox_row, "1")
    both = "select payload as text from inbox union all select text from outbox"
    rows = await memory.database.read(lambda reader: reader.all(both))
    assert {row["text"] for row in rows} == {""}


async def test_ids_of_removed_memories_are_never_given_again(memory: Service, clock: Clock) -> None:
    """Memories that entered an old reply are kept as bare ids, which must not come to mean something else."""
    ada = await memory.identities.context(*private("ada"))
    (first,) = await act(memory, ada, lambda edits: edits.remember("it is under the blue pot", key="spare-key"))
    await forgotten_alone(memory, ada, first.id)
    (second,) = await act(memory, ada, lambda edits: edits.remember("it is with the neighbour", key="spare-key"))
    assert second.id > first.id


async def test_what_a_turn_taught_is_in_the_next_prompt(memory: Service, clock: Clock) -> None:
    """Facts newer than the window's snapshot come along until the next one is taken."""
    ada = private("ada")
    await teach(memory, ada, "I live in Lisbon", clock=clock)
    after = await say(memory, ada, "hm", clock=clock)
    view = await memory.turns.look(after, Budget(), window_tokens=1_000, window_messages=50)
    assert [m.value for m in view.recall.snapshot.known] == []
    assert [m.value for m in view.recall.snapshot.newer] == ["Lisbon"]
    clock.move(minutes=6)
    later = await say(memory, ada, "hm hm", clock=clock)
    view = await memory.turns.look(later, Budget(), window_tokens=1_000, window_messages=50)
    assert [m.value for m in view.recall.snapshot.known] == ["Lisbon"]


async def test_a_value_told_again_after_its_successor_was_forgotten_holds_again(memory: Service, clock: Clock) -> None:
    """A closed row is no present one: re-telling must not vanish into it, nor move its dates."""
    ada = private("ada")
    await teach(memory, ada, "I live in Lisbon", clock=clock)
    clock.move(days=1)
    turn = await teach(memory, ada, "I live in Porto", clock=clock)
    porto = (await memory.browse.memories(turn.context, limit=1))[0]
    await forgotten_alone(memory, turn.context, porto.id)
    clock.move(days=1)
    turn = await teach(memory, ada, "I live in Lisbon", clock=clock)
    assert await facts(memory, turn.context) == [("home", "Lisbon")]
    homes = await known(memory, turn.context, "Lisbon")
    assert sorted((home.valid_until or 0) for home in homes) == [0, porto.valid_from]


async def test_what_a_tool_saved_and_a_person_forgot_is_not_learned_from_the_message(
    memory: Service, clock: Clock
) -> None:
    """The message a tool was called for is the memory's source, too."""
    turn = await say(memory, private("ada"), "I live in Lisbon", clock=clock)
    await memory.turns.act(turn, 0, 0, "remember_fact", lambda edits: edits.remember("Lisbon", key="home")[0].short_id)
    saved = (await memory.browse.memories(turn.context, limit=1))[0]
    await forgotten_alone(memory, turn.context, saved.id)
    await learn(memory, turn)
    assert await facts(memory, turn.context) == []


async def test_what_was_corrected_does_not_come_back_from_an_older_message(memory: Service, clock: Clock) -> None:
    """The message was read after the correction, but said before it."""
    turn = await say(memory, private("ada"), "I like green tea", clock=clock)
    told = await act(memory, turn.context, lambda edits: edits.remember("I like green tea"))
    clock.move(minutes=1)
    await act(memory, turn.context, lambda edits: edits.correct(told[0].short_id, "coffee"))
    await learn(memory, turn)
    assert await facts(memory, turn.context) == [("likes", "coffee")]


async def test_a_message_that_is_read_twice_counts_once(memory: Service, clock: Clock) -> None:
    """A turn taken up again after a stop must not reinforce what it taught."""
    where, who = private("ada")
    asked = Said(
        inbox_id=await received(memory, where.session_key), text="I live in Lisbon", tokens=9, said_at=clock(),
        platform_ref=None, reply_to=None, learn=True,
    )  # fmt: skip
    turn = await memory.turns.begin(where, who, [asked])
    await learn(memory, turn)
    assert [one.value for one in await memory.browse.memories(turn.context, limit=1)] == ["Lisbon"]
    understood = await memory.turns.understood(turn)
    await memory.turns.finish(turn, None, Outcome(pieces=(Part(text="ok"),), learned=understood))
    home = (await memory.browse.memories(turn.context, limit=1))[0]
    assert (home.value, home.reinforced_count) == ("Lisbon", 0)


async def test_values_read_out_of_order_follow_each_other_without_overlap(memory: Service, clock: Clock) -> None:
    """Where somebody lived on a given day has one answer."""
    ada = private("ada")
    start = clock()
    for day, city in ((0, "Lisbon"), (4, "Rome"), (2, "Porto")):
        clock.at = start
        clock.move(days=day)
        turn = await teach(memory, ada, f"I live in {city}", clock=clock)
    rome = (await memory.browse.memories(turn.context, limit=1))[0]
    shown = await act(memory, turn.context, lambda edits: edits.show(rome.short_id))
    day_ms = 24 * 3_600_000
    spans = [
        (m.value, (m.valid_from - start) // day_ms, m.valid_until and (m.valid_until - start) // day_ms)
        for m in shown.versions
    ]
    assert spans == [("Lisbon", 0, 2), ("Porto", 2, 4), ("Rome", 4, None)]


async def test_a_tool_that_names_a_single_valued_key_replaces_its_value(memory: Service, clock: Clock) -> None:
    """Two homes at once would contradict each other."""
    turn = await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
    clock.move(days=1)
    await act(memory, turn.context, lambda edits: edits.remember("Porto", key="home"))
    assert await facts(memory, turn.context) == [("home", "Porto")]
    assert {m.key: m.value for m in await profile_of(memory, turn.context)} == {"place": "Porto"}


async def test_a_profile_slot_points_to_the_facts_it_is_made_of(memory: Service, clock: Clock) -> None:
    """Removing a summary alone would be a lie: it would come back."""
    turn = await teach(memory, private("ada"), "I live in Lisbon", clock=clock)
    slot = (await profile_of(memory, turn.context))[0]
    home = (await memory.browse.memories(turn.context, limit=1))[0]
    with pytest.raises(Derived) as refused:
        await memory.forgetting.preview(turn.context, slot.short_id)
    assert refused.value.short_ids == (home.short_id,)


async def test_after_eight_hours_without_the_model_every_message_is_read(tmp_path: Path, clock: Clock) -> None:
    """Waiting messages, and those set aside for failing too often, are read once the model answers again."""
    back_at, read = clock() + 8 * 3_600_000, list[str]()

    async def down_for_hours(request: ModelRequest) -> ModelAnswer:
        if clock() < back_at:
            raise ModelFailed("no model answers")
        read.append(request.material)
        return answered({"facts": [], "events": [], "styles": []})

    async with opened(tmp_path / "remora.db", clock, model=BackgroundModel(complete=down_for_hours)) as memory:
        told = []
        for n in range(32):
            told.append(f"I own boat number {n} of my fleet")
            await teach(memory, private("ada"), told[-1], clock=clock)
            clock.move(minutes=15)
        assert read == []
        clock.move(days=1)
        await memory.learner.flush_all(memory.agents.ids["assistant"])
        material = "\n".join(read)
        assert [text for text in told if text not in material] == []


async def test_an_agent_without_memory_gets_none_into_its_prompt(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    await teach(memory, ada, "My name is Ada", clock=clock)
    turn = await say(memory, ada, "who am I?", clock=clock)
    view = await memory.turns.look(turn, None, window_tokens=1_000, window_messages=50)
    assert view.recall.snapshot.ids == () and view.recall.items == ()


async def test_ids_that_are_taken_are_not_given_again(tmp_path: Path, clock: Clock) -> None:
    given = iter(
        ["aaaaaa", "bbbbbb", "bbbbbb", "bbbbbb", "cccccc", "dddddd", "dddddd", "eeeeee"]
        + [f"{n:06d}" for n in range(20)]
    )
    service = await Service.open(
        tmp_path / "remora.db", agents={"assistant": AgentMemory()}, runtime=runtime(clock, lambda: next(given))
    )
    ada = await service.identities.context(*private("ada"))
    for text in ("one", "two", "three"):
        await act(service, ada, lambda edits: edits.remember(f"the {text} thing", key=text))  # noqa: B023
    ids = [m.short_id for m in await service.browse.memories(ada, limit=9)]
    await service.close(seconds=SECONDS)
    assert len(set(ids)) == 3


async def test_the_name_of_a_sister_is_asked_of_the_sister(memory: Service, clock: Clock) -> None:
    """Not of the person, whose name matches the word, too."""
    turn = await teach(memory, private("ada"), "My name is Ada", "my sister is called Ana", clock=clock)
    assert (await found(memory, turn.context, "what's my sister's name?"))[0] == "Ana"
    assert (await found(memory, turn.context, "what is my name?"))[0] == "Ada"


async def test_what_is_to_be_kept_is_kept_whole(memory: Service, ada: Context) -> None:
    """Patterns read a part of it as a fact; the rest must not be lost."""
    await act(memory, ada, lambda edits: edits.remember("my ring size is 54 and I'm a vegetarian"))
    await act(memory, ada, lambda edits: edits.remember("I live in Porto"))
    assert await facts(memory, ada) == [
        ("diet", "vegetarian"),
        ("home", "Porto"),
        ("note", "my ring size is 54 and I'm a vegetarian"),
    ]


@pytest.mark.sqlite("reads its plan of a query")
async def test_rows_that_are_named_by_ids_are_looked_up_by_these_alone(memory: Service, clock: Clock) -> None:
    """Else each recall would read all that its person has."""
    context = (await say(memory, private("ada"), "I live in Porto", clock=clock)).context
    within, other = context.scope.predicate("m", by_id=True), context.scope.predicate("m")

    def plans(reader: Reader) -> list[str]:
        asked = "explain query plan select m.id from memories m where m.id in (select value from json_each(?)) and "
        rows = [reader.all(asked + one.sql, ([1, 2], *one.parameters)) for one in (within, other)]
        return [" ".join(row["detail"] for row in found) for found in rows]

    by_id, by_owner = await memory.database.read(plans)
    assert "PRIMARY KEY" in by_id and "memories_owner" not in by_id
    assert "memories_owner" in by_owner
