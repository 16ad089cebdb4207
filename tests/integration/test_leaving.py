"""Messages that were deleted on their platform, and chats that the bot has left: what goes, what stays, and when.

Invariant: what must stay is compared row by row, of every canonical table; what must go is looked for in the bytes of
the file.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from memory.chat.identities import Where
from memory.chat.turns import Said, Turn
from memory.context import Context
from memory.forgetting import expired
from memory.forgetting.expired import Erased
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest
from memory.recall.recall import Budget
from memory.service import Service
from memory.store import memories
from memory.store.attachments import Attached
from memory.store.database import Reader, Transaction
from memory.store.history import Utterance
from memory.store.sqlite import health
from memory.store.usage import Spent
from tests.kit import postgres, stalls
from tests.kit.canaries import Canary, Spot, World
from tests.kit.fakes import Clock
from tests.kit.faults import Faults
from tests.kit.forgetting import files_of
from tests.kit.minds import answered
from tests.kit.stores import AGENTS, counting, opened, profile_of, rows
from tests.kit.talk import act, facts, found, group, leave_chat, private, received, say, teach
from tests.kit.ways import faults

#: Every row of every canonical table, by table and rowid or key.
Rows: TypeAlias = dict[str, set[tuple[object, ...]]]
PEOPLE = ("ada", "bob")


# Deleted messages -----------------------------------------------------------------------------------------------


async def test_a_deleted_message_takes_its_words_and_what_it_alone_had_taught(tmp_path: Path, clock: Clock) -> None:
    """Whoever deletes what they said doesn't want it known, nor shown in the profile, nor told again by the answer."""
    async with opened(tmp_path / "remora.db", clock) as memory:
        ada = private("ada")
        turn = await say(memory, ada, "I live in Quaxolia.", ref="1", clock=clock, answer="Quaxolia it is.")
        await say(memory, ada, "I like tea.", ref="2", clock=clock)
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, turn.context) == [("home", "Quaxolia"), ("likes", "tea")]
        clock.move(minutes=1)
        assert await memory.requests.retract("console", "console:ada:-", ["1"]) == 1
        assert await facts(memory, turn.context) == [("likes", "tea")]
        assert "place" not in {slot.key for slot in await profile_of(memory, turn.context)}
        assert not await found(memory, turn.context, "Quaxolia")
        assert not await memory.browse.search(turn.context, "Quaxolia", limit=5)
        said = await rows(memory, "select text, learn, recall, erased_at from messages where role = 'user' order by id")
        assert said == [("", 0, 0, said[0][3]), ("I like tea.", 1, 1, None)] and clock.just_now(int(str(said[0][3])))
        assert await rows(memory, "select text from messages where role = 'assistant' order by id limit 1") == [
            ("Quaxolia it is.",)
        ]
        assert await memory.forgetting.finish()  # as each day does
    words = b"".join(file.read_bytes() for file in files_of(memory.database.path))
    assert b"live in Quaxolia" not in words and b"quaxolia" not in words
    assert words.count(b"Quaxolia") == 2  # the answer, in history and still to be sent


async def test_what_was_deleted_is_not_learned_from_an_older_copy_of_it(memory: Service, clock: Clock) -> None:
    """A keyed hash is kept, as after a forget: until it is told anew."""
    ada = private("ada")
    turn = await teach(memory, ada, "I live in Porto.", ref="1", clock=clock)
    await say(memory, ada, "I live in Porto!", ref="2", clock=clock)
    clock.move(minutes=1)
    await memory.requests.retract("console", "console:ada:-", ["1"])
    await memory.learner.flush(turn.context.session.id, "test")
    assert await facts(memory, turn.context) == []
    clock.move(minutes=1)
    await say(memory, ada, "I live in Porto, after all.", ref="3", clock=clock)
    await memory.learner.flush(turn.context.session.id, "test")
    assert [key for key, _ in await facts(memory, turn.context)] == ["home"]


async def test_what_was_said_elsewhere_too_stays_until_that_is_deleted(memory: Service, clock: Clock) -> None:
    """The memory rests on both messages; of the deleted one only a mark is left."""
    ada = private("ada")
    for ref in ("1", "2"):
        turn = await teach(memory, ada, "I like tea.", ref=ref, clock=clock)
        clock.move(minutes=1)
    await memory.requests.retract("console", "console:ada:-", ["1"])
    (tea,) = await memory.browse.memories(turn.context, limit=5)
    shown = await act(memory, turn.context, lambda edits: edits.show(tea.short_id))
    assert [source.text for source in shown.sources] == [None, "I like tea."]
    await memory.requests.retract("console", "console:ada:-", ["2"])
    assert await memory.browse.memories(turn.context, limit=5) == []


async def test_what_a_deleted_statement_had_replaced_holds_again(memory: Service, clock: Clock) -> None:
    ada = private("ada")
    for ref, home in (("1", "Lyon"), ("2", "Porto")):
        turn = await teach(memory, ada, f"I live in {home}.", ref=ref, clock=clock)
        clock.move(days=1)
    await memory.requests.retract("console", "console:ada:-", ["2"])
    assert await facts(memory, turn.context) == [("home", "Lyon")]
    assert [slot.value for slot in await profile_of(memory, turn.context)] == ["Lyon"]


async def test_what_somebody_has_confirmed_stands_by_their_word(memory: Service, clock: Clock) -> None:
    """Tidying up a chat must not undo what was said about the memory itself."""
    turn = await teach(memory, private("ada"), "I like tea.", ref="1", clock=clock)
    (tea,) = await memory.browse.memories(turn.context, limit=5)
    await act(memory, turn.context, lambda edits: edits.confirm(tea.short_id))
    assert await memory.requests.retract("console", "console:ada:-", ["1"]) == 1
    assert await facts(memory, turn.context) == [("likes", "tea")]


async def test_nothing_is_learned_from_a_message_deleted_before_it_was_read(memory: Service, clock: Clock) -> None:
    """Quiet comes a minute after the words; a deletion may come before."""
    turn = await say(memory, private("ada"), "I live in Porto.", ref="1", clock=clock)
    await say(memory, private("ada"), "I like tea.", ref="2", clock=clock)
    await memory.requests.retract("console", "console:ada:-", ["1"])
    await memory.learner.flush(turn.context.session.id, "test")
    assert await facts(memory, turn.context) == [("likes", "tea")]


async def test_nothing_is_learned_from_a_message_deleted_while_a_model_reads_it(tmp_path: Path, clock: Clock) -> None:
    """The model has seen it; what it finds there comes too late."""

    async def complete(_request: ModelRequest) -> ModelAnswer:
        assert await memory.requests.retract("console", "console:ada:-", ["1"]) == 1
        found_facts = [{"about": "self", "category": "place", "key": "home", "value": "Porto", "messages": [1]}]
        return answered({"facts": found_facts})

    async with opened(tmp_path / "remora.db", clock, model=BackgroundModel(complete=complete)) as memory:
        turn = await teach(memory, private("ada"), "I live in Porto.", ref="1", clock=clock)
        assert await facts(memory, turn.context) == []


async def test_deleting_again_or_what_is_not_there_changes_nothing(memory: Service, clock: Clock) -> None:
    """Platforms repeat themselves, and tell of the bot's own messages and of other bots' places, too."""
    await say(memory, private("ada"), "I like tea.", ref="1", clock=clock)
    await say(memory, private("bob"), "I like rum.", ref="1", clock=clock)
    assert await memory.requests.retract("console", "console:ada:-", ["1"]) == 1
    before = await everything(memory)
    assert await memory.requests.retract("console", "console:ada:-", ["1", "1-answer", "77"]) == 0
    assert await memory.requests.retract("console", "console:nobody:-", ["1"]) == 0
    assert await memory.requests.retract("discord", "console:bob:-", ["1"]) == 0
    assert await memory.requests.retract("console", "console:bob:-", []) == 0
    assert await everything(memory) == before


async def test_what_several_people_said_goes_with_their_messages(memory: Service, clock: Clock) -> None:
    """A moderator clears a stretch of a group: nobody's words are left to rest on."""
    first = await say(memory, group("club", "ada"), "We meet on Friday.", ref="1", clock=clock)
    second = await say(memory, group("club", "bob"), "At noon.", ref="2", clock=clock)
    event = await learned_from(memory, first.context, "They meet on Friday at noon", [first, second])
    assert await memory.requests.retract("console", "console:club:-", ["1"]) == 1
    assert await rows(memory, "select 1 from memories where id = ?", event)
    assert await memory.requests.retract("console", "console:club:-", ["1", "2"]) == 1
    assert not await rows(memory, "select 1 from memories where id = ?", event)


async def test_what_was_made_of_a_deleted_statement_goes_and_its_other_parents_come_back(
    memory: Service, clock: Clock
) -> None:
    """A merged fact can't be cut into pieces; the next job makes it anew of what is left."""
    turns = [
        await say(memory, private("ada"), f"I like {tea}.", ref=ref, clock=clock)
        for ref, tea in (("1", "tea"), ("2", "rum"))
    ]
    parents = [await learned_from(memory, turn.context, turn.said[0].text, [turn]) for turn in turns]
    merged = await learned_from(memory, turns[0].context, "likes tea and rum", [])

    def merge(tx: Transaction) -> None:
        memories.set_parents(tx, merged, parents)
        for parent in parents:
            memories.supersede(tx, parent, merged, at=clock())

    await memory.database.write(merge)
    await memory.requests.retract("console", "console:ada:-", ["1"])
    left = await rows(memory, "select id, valid_until, superseded_by, archived_at from memories")
    assert left == [(parents[1], None, None, None)]


async def test_a_deleted_message_takes_what_came_beside_it(memory: Service, clock: Clock) -> None:
    """A picture is deleted with its message, and so is what a voice said."""
    where, who = private("ada")
    inbox_id = await received(memory, where.session_key)
    voice = Attached(kind="voice", name="voice.ogg", media_type="audio/ogg", size=9, state="spoken", text="I snore.")
    await memory.mailbox.attach(inbox_id, [voice])
    said = Said(
        inbox_id=inbox_id, text="Listen!", tokens=2, said_at=clock(), platform_ref="1", reply_to=None, learn=True
    )
    await memory.turns.begin(where, who, [said])
    assert await memory.mailbox.attached(inbox_id) != ()
    await memory.requests.retract("console", where.session_key, ["1"])
    assert await memory.mailbox.attached(inbox_id) == ()


async def test_deleting_many_messages_costs_in_proportion(tmp_path: Path, clock: Clock) -> None:
    """A moderator may delete a hundred at once, each known by a memory that stood in many prompts."""
    spent = []
    for many in (10, 40):
        faults = Faults()
        async with opened(tmp_path / f"{many}.db", clock, driver=faults.driver) as memory:
            for n in range(many):
                turn = await teach(memory, private("ada"), f"I like dish number {n}.", ref=str(n), clock=clock)
            assert len(await memory.browse.memories(turn.context, limit=100)) == many
            before = faults.statements
            assert await memory.requests.retract("console", "console:ada:-", [str(n) for n in range(many)]) == many
            spent.append(faults.statements - before)
    assert spent[1] < 5 * spent[0]


# While the bot is away ------------------------------------------------------------------------------------------


async def test_nothing_is_read_in_a_chat_that_the_bot_has_left(tmp_path: Path, clock: Clock) -> None:
    """Not in a quiet moment, not at exit, not at the next start; it waits, in case the bot comes back."""
    async with opened(tmp_path / "remora.db", clock) as memory:
        club = group("club", "ada")
        turn = await say(memory, club, "I like tea.", ref="1", clock=clock)
        await memory.mailbox.presence("console", "console", "club", present=False)
        await memory.learner.flush(turn.context.session.id, "test")
        assert (await memory.stats.status(turn.context)).unread == 1
    async with opened(tmp_path / "remora.db", clock) as memory:
        assert memory.learner.due == set()
        assert await rows(memory, "select count(*) from extractions") == [(0,)]
        await memory.mailbox.presence("console", "console", "club", present=True)
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, turn.context) == [("likes", "tea")]


async def test_work_put_down_before_waits_too_and_goes_on_when_somebody_writes(memory: Service, clock: Clock) -> None:
    club = group("club", "ada")
    turn = await say(memory, club, "I like tea.", ref="1", clock=clock)
    await act(memory, turn.context, lambda edits: edits.start_window())
    assert await rows(memory, "select state from extractions") == [("pending",)]
    await memory.mailbox.presence("console", "console", "club", present=False)
    await memory.learner.flush(turn.context.session.id, "test")
    assert await rows(memory, "select state from extractions") == [("pending",)]
    await say(memory, club, "I like rum.", ref="2", clock=clock)
    await memory.learner.flush(turn.context.session.id, "test")
    assert await facts(memory, turn.context) == [("likes", "rum"), ("likes", "tea")]


async def test_being_told_of_it_again_does_not_put_off_the_end(memory: Service, clock: Clock) -> None:
    """Each try to reach somebody who blocked the bot tells of it once more."""
    await say(memory, private("ada"), "I like tea.", ref="1", clock=clock)
    await leave_chat(memory, "ada")
    left_at = await rows(memory, "select left_at from chats")
    clock.move(days=3)
    await leave_chat(memory, "ada")
    assert await rows(memory, "select left_at from chats") == left_at != [(None,)]


async def test_a_chat_with_two_bots_is_left_when_the_last_has_gone(memory: Service, clock: Clock) -> None:
    """One that is blocked says nothing of the other, and both together say it all."""
    where, ada = private("ada")
    await say(memory, (where, ada), "I like tea.", ref="1", clock=clock)
    await say(memory, (replace(where, session_key="second:ada:-"), ada), "I like rum.", ref="2", clock=clock)
    await leave_chat(memory, "ada")
    assert await rows(memory, "select left_at from chats") == [(None,)]
    clock.move(days=1)
    await memory.mailbox.presence("console", "second", "ada", present=False)
    ((left_at,),) = await rows(memory, "select left_at from chats")
    assert clock.just_now(int(str(left_at)))
    await memory.mailbox.presence("console", "console", "ada", present=True)
    assert await rows(memory, "select left_at from chats") == [(None,)]


# After thirty days ----------------------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Both have told something of every kind everywhere, to one agent; mail and steps lie about."""
    made = await World.open(tmp_path / "remora.db", PEOPLE)
    for place in ("private", "room", "room/own", "club"):
        for person in PEOPLE:
            spot = Spot(person=person, place=place, agent=AGENTS[0])
            await made.tell(spot, ("sel", "fri", "sty", "eve") if place == "private" else ("sel", "fri", "sty"))
            await made.have_kept(spot)
    yield made
    await made.close()


async def scatter(world: World, place: str) -> Canary:
    """Put a word of a place wherever words can lie: mail, steps, effects, attachments, titles, notes on a session."""
    spot = Spot(person="ada", place=place, agent=AGENTS[0])
    where, _ = spot.address
    word = world.canary("msg", spot)
    memory = world.service
    turn = await world.begin(spot, f"{word.word} once more", on_record=False)
    await memory.mailbox.attach(
        turn.inbox_ids[0],
        [Attached(kind="file", name=f"{word.word}.txt", media_type="text/plain", size=1, state="text", text=word.word)],
    )
    spent = Spent(model="plan", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
    await memory.turns.keep_step(turn, 0, json.dumps({"text": word.word}), spent)
    await memory.turns.act(turn, 0, 0, "note", lambda edits: word.word)
    await memory.mailbox.receive(
        platform="console", bot_id="local", update_key=counting(), session_key=where.session_key,
        payload=json.dumps({"text": word.word}),
    )  # fmt: skip

    def put(tx: Transaction) -> None:
        tx.run("update attachments set message_id = ? where inbox_id = ?", (turn.said[0].id, turn.inbox_ids[0]))
        tx.run("update outbox set text = ?, state = 'dead' where session_key = ?", (word.word, where.session_key))
        tx.run("update sessions set summary = ?1, active_task = ?1 where key = ?2", (word.word, where.session_key))
        tx.run(
            "update chats set title = ? where id = (select chat_id from sessions where key = ?)",
            (word.word, where.session_key),
        )

    await memory.database.write(put)
    word.current = False  # said off the record: nobody needs to find it
    return word


async def everything(memory: Service) -> Rows:
    """All canonical rows there are, but not signs of life, nor the notes that something is to be scrubbed."""

    def dump(reader: Reader) -> Rows:
        tables = reader.all(
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name"
        )
        return {
            row["name"]: {tuple(one) for one in reader.all(f"select * from {row['name']}")}
            for row in tables
            if row["name"] not in (*health.DERIVED, "erasures", "replicas", "commits")
        }

    return await memory.database.read(dump)


#: SQL for the rows of CHAT, or of the identity PERSON alone, by table. Other tables belong to nobody in particular.
_OWNERS = "(select id from owners where chat_id = CHAT or identity_id = PERSON)"
_SESSIONS = "(select id from sessions where chat_id = CHAT)"
_TURNS = f"(select id from turns where session_id in {_SESSIONS})"
_MEMORIES = f"(select id from memories where owner_id in {_OWNERS})"
_KEYS = "(select key from sessions where chat_id = CHAT)"
BELONGS = {
    "chats": "id = CHAT", "sessions": "chat_id = CHAT", "messages": f"session_id in {_SESSIONS}",
    "turns": f"session_id in {_SESSIONS}", "steps": f"turn_id in {_TURNS}", "effects": f"turn_id in {_TURNS}",
    "recalls": f"turn_id in {_TURNS}", "extractions": f"session_id in {_SESSIONS}", "inbox": f"session_key in {_KEYS}",
    "outbox": f"session_key in {_KEYS}",
    "attachments": f"inbox_id in (select id from inbox where session_key in {_KEYS})",
    "memories": f"owner_id in {_OWNERS}", "memory_sources": f"memory_id in {_MEMORIES}",
    "memory_parents": f"memory_id in {_MEMORIES}", "memory_entities": f"memory_id in {_MEMORIES}",
    "entities": f"owner_id in {_OWNERS}",
    "entity_aliases": f"entity_id in (select id from entities where owner_id in {_OWNERS})",
    "identities": "id = PERSON",
}  # fmt: skip


async def of_others(memory: Service, chat: str, person: str = "") -> Rows:
    """All canonical rows but those of a chat and of what a person alone owns."""

    def dump(reader: Reader) -> Rows:
        chat_row = reader.one("select chat_id from chat_aliases where reference = ?", (chat,))
        identity = reader.one("select id from identities where user_id = ?", (person,))
        assert chat_row is not None
        ids = {"CHAT": chat_row["chat_id"], "PERSON": 0 if identity is None else identity["id"]}
        return {table: {tuple(row) for row in reader.all(_filled(table, ids))} for table in BELONGS}

    everybodys, theirs = await everything(memory), await memory.database.read(dump)
    return {table: found_rows - theirs.get(table, set()) for table, found_rows in everybodys.items()}


def _filled(table: str, ids: dict[str, int]) -> str:
    condition = BELONGS[table]
    for name, value in ids.items():
        condition = condition.replace(name, str(value))
    return f"select * from {table} where {condition}"


@stalls.apart()
def words_in(path: Path, canaries: list[Canary]) -> set[str]:
    held = b"".join(file.read_bytes() for file in (*path.parent.glob(f"{path.name}*"), *postgres.files(path))).lower()
    return {canary.word for canary in canaries if canary.word.encode() in held}


def split(world: World, gone: Callable[[Canary], bool]) -> tuple[list[Canary], list[Canary]]:
    """The words that must have gone and those that must have stayed; the former are nobody's any more."""
    going = [canary for canary in world.canaries if gone(canary)]
    world.canaries = [canary for canary in world.canaries if canary not in going]
    return going, world.canaries


async def test_of_a_group_that_was_left_nothing_is_kept_and_of_others_everything(world: World) -> None:
    """Messages, memories, threads, names, mail, steps, attachments, titles: no byte; nobody else misses anything."""
    await scatter(world, "room")
    stays = await scatter(world, "club")
    await leave_chat(world.service, "room")
    before = await of_others(world.service, "room")
    world.clock.move(days=31)
    erased = await world.service.housekeeping.erase_left()
    assert erased.chats == 1 and erased.messages > 8 and erased.memories >= 4 * 4
    assert await of_others(world.service, "room") == before
    going, staying = split(world, lambda canary: canary.spot.place.startswith("room"))
    for spot in (Spot(person="ada", place=place, agent=AGENTS[0]) for place in ("private", "club")):
        for way in ("words", "vectors", "memories", "look", "why", "entity"):
            assert await faults(world, way, spot) == []
    assert await world.service.forgetting.finish()  # as each day does
    await world.close()
    assert words_in(world.path, going) == set()
    assert words_in(world.path, staying) == {canary.word for canary in staying} and stays in staying
    await world.start()


async def test_of_a_private_chat_that_was_left_all_is_erased_that_this_person_alone_could_see(world: World) -> None:
    """Their name goes, too, unless they speak elsewhere; here they do."""
    await scatter(world, "private")
    await leave_chat(world.service, "ada")
    before = await of_others(world.service, "ada", "ada")
    world.clock.move(days=31)
    erased = await world.service.housekeeping.erase_left()
    assert erased.chats == 1 and erased.memories >= 5
    assert await of_others(world.service, "ada", "ada") == before
    assert await rows(world.service, "select name from identities order by id") == [("ada",), ("bob",)]
    going, staying = split(world, lambda c: c.spot.place == "private" and c.spot.person == "ada")
    assert await world.service.forgetting.finish()  # as each day does
    await world.close()
    assert words_in(world.path, going) == set()
    assert words_in(world.path, staying) == {canary.word for canary in staying}
    await world.start()


async def test_who_never_spoke_elsewhere_is_not_even_known_by_name(memory: Service, clock: Clock) -> None:
    """A name is what somebody is called: words like others."""
    await teach(memory, private("Quaxolia"), "I like tea.", ref="1", clock=clock)
    await leave_chat(memory, "Quaxolia")
    clock.move(days=31)
    await memory.housekeeping.erase_left()
    assert await rows(memory, "select name from identities") == [("",)]
    assert await rows(memory, "select count(*), max(author_name) from messages") == [(2, "")]


async def test_what_a_person_told_stays_while_they_speak_in_another_private_chat(memory: Service, clock: Clock) -> None:
    """Only the words of the chat that was left go; the memory goes with the last such chat, thirty days later."""
    where, who = private("ada")
    second = Where(
        session_key="console:second:-", platform="console", chat="second", chat_kind="private", thread=None,
        agent="assistant",
    )  # fmt: skip
    turn = await say(memory, (where, who), "I like tea.", ref="1", clock=clock)
    other = await say(memory, (second, who), "I like rum.", ref="1", clock=clock)
    for context in (turn.context, other.context):
        await memory.learner.flush(context.session.id, "test")
    await leave_chat(memory, "second")
    clock.move(days=31)
    assert await memory.housekeeping.erase_left() == Erased(chats=1, messages=2, memories=0)
    assert await facts(memory, turn.context) == [("likes", "rum"), ("likes", "tea")]
    await leave_chat(memory, "ada")
    clock.move(days=29)
    assert await memory.housekeeping.erase_left() == Erased()
    clock.move(days=2)
    assert (await memory.housekeeping.erase_left()).memories >= 2
    assert await facts(memory, turn.context) == []


async def test_who_only_gave_commands_is_erased_as_well(memory: Service, clock: Clock) -> None:
    """Commands are no messages: nothing was said, and yet something is remembered."""
    context = await memory.identities.context(*private("ada"))
    await act(memory, context, lambda edits: edits.remember("the gate code is on the fridge"))
    await leave_chat(memory, "ada")
    clock.move(days=31)
    assert await memory.housekeeping.erase_left() == Erased(chats=1, messages=0, memories=1)
    assert await memory.housekeeping.erase_left() == Erased()


async def test_thirty_days_are_thirty_days(memory: Service, clock: Clock) -> None:
    """Not a millisecond less: until then the bot may be let in again and knows everybody."""
    await teach(memory, group("club", "ada"), "I like tea.", ref="1", clock=clock)
    await leave_chat(memory, "club")
    before = await everything(memory)
    ((left_at,),) = await rows(memory, "select left_at from chats where left_at is not null")
    # And the one after that is a millisecond beyond them.
    clock.set(int(str(left_at)) + 30 * 86_400_000)
    assert await memory.housekeeping.erase_left() == Erased()
    assert await everything(memory) == before
    assert await memory.housekeeping.erase_left() == Erased(chats=1, messages=2, memories=1)
    assert await rows(memory, "select text from messages") == [("",), ("",)]


async def test_a_second_run_finds_nothing_to_do(world: World) -> None:
    for chat in ("room", "ada"):
        await leave_chat(world.service, chat)
    world.clock.move(days=31)
    assert (await world.service.housekeeping.erase_left()).chats == 2
    before = await everything(world.service)
    world.clock.move(days=1)
    assert await world.service.housekeeping.erase_left() == Erased()
    assert await everything(world.service) == before


async def test_a_chat_the_bot_is_back_in_keeps_everything(world: World) -> None:
    """Whoever let it in again, or wrote again, wants it to remember."""
    await leave_chat(world.service, "room")
    await leave_chat(world.service, "ada")
    world.clock.move(days=31)
    await world.service.mailbox.presence("console", "console", "room", present=True)
    await world.say(Spot(person="ada", place="private", agent=AGENTS[0]), "Here I am again.")
    before = await everything(world.service)
    assert await world.service.housekeeping.erase_left() == Erased()
    assert await everything(world.service) == before


async def test_what_is_not_erased_yet_when_the_bot_comes_back_is_kept(world: World) -> None:
    """A large chat takes a while; the look into whether it is still left comes with each piece."""
    database = world.service.database
    await leave_chat(world.service, "ada")
    world.clock.move(days=31)
    before = world.clock() - 30 * 86_400_000
    (chat,) = await database.read(lambda reader: expired.left(reader, before=before))
    batches = await database.read(lambda reader: expired.contents(reader, chat, before=before))
    assert {"messages", "turns", "entities", "memories"} <= {batch.rows for batch in batches}
    # The person is met in a group, and may be about to write in private.
    await world.say(Spot(person="ada", place="club", agent=AGENTS[0]), "Hello.")
    for batch in batches:
        if batch.rows in ("entities", "memories"):
            assert await database.write(partial(expired.erase, batch=batch, now=1)) == 0
    await world.service.mailbox.presence("console", "console", "ada", present=True)
    stays = await everything(world.service)
    for batch in batches:
        assert await database.write(partial(expired.erase, batch=batch, now=1)) == 0
    assert await everything(world.service) == stays


async def test_a_chat_that_was_erased_begins_anew_when_the_bot_comes_back(memory: Service, clock: Clock) -> None:
    """Nothing of before is in the window, and what is said now is learned and found."""
    club = group("club", "ada")
    await say(memory, club, "I like tea.", ref="1", clock=clock)
    await leave_chat(memory, "club")
    clock.move(days=31)
    await memory.housekeeping.erase_left()
    turn = await say(memory, club, "I like rum.", ref="2", clock=clock)
    view = await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=50)
    assert [message.text for message in view.window] == ["I like rum.", "ok"]
    await memory.learner.flush(turn.context.session.id, "test")
    assert await facts(memory, turn.context) == [("likes", "rum")]
    assert await found(memory, turn.context, "rum")


async def test_what_was_made_of_both_sides_goes_and_the_other_side_comes_back(world: World) -> None:
    """A memory merged of private and group memories can't stay when one of them is gone."""
    spot = Spot(person="ada", place="private", agent=AGENTS[0])
    ours = next(c for c in world.canaries if c.spot == spot and c.kind == "tol")
    theirs = next(c for c in world.canaries if c.spot.place == "club" and c.kind == "tol")
    await world.reflect(spot, [ours, theirs])
    assert await rows(world.service, "select count(*) from memories where archived_at is not null") == [(2,)]
    await leave_chat(world.service, "club")
    world.clock.move(days=31)
    await world.service.housekeeping.erase_left()
    assert not await rows(world.service, "select 1 from memories where origin = 'derived' and key = 'merged'")
    assert await rows(world.service, "select archived_at from memories where value = ?", ours.word) == [(None,)]


async def test_no_transaction_erases_more_than_some_rows(memory: Service, clock: Clock) -> None:
    where, who = group("club", "ada")
    said = [
        Utterance(role="user", text=f"word {n}", tokens=1, said_at=clock(), author_name="ada") for n in range(1_203)
    ]
    await memory.turns.record(where, who, said)
    await leave_chat(memory, "club")
    clock.move(days=31)
    before = clock() - 1
    (chat,) = await memory.database.read(lambda reader: expired.left(reader, before=before))
    batches = await memory.database.read(lambda reader: expired.contents(reader, chat, before=before))
    assert sum(len(batch.ids) for batch in batches if batch.rows == "messages") == 1_203
    assert max(len(batch.ids) for batch in batches) <= 100
    assert await memory.housekeeping.erase_left() == Erased(chats=1, messages=1_203, memories=0)
    assert await rows(memory, "select count(*) from messages where text <> ''") == [(0,)]


@pytest.mark.campaign
@pytest.mark.sqlite("copies its file and cuts its commits")
async def test_killed_at_any_point_it_goes_on_the_next_time(world: World) -> None:
    """The end is the same as without the kill, row by row; only the counts are those of the rest."""
    for place in ("room", "private"):
        await scatter(world, place)
    for chat in ("room", "ada"):
        await leave_chat(world.service, chat)
    await world.close()
    world.clock.move(days=31)
    at = world.clock.at
    whole = world.path.with_name("whole.db")
    shutil.copy(world.path, whole)
    faults = Faults(holding=STILL_LEFT)
    async with opened(whole, world.clock, driver=faults.driver) as memory:
        begun = world.clock.at
        await memory.housekeeping.erase_left()
        wanted = await everything(memory)
    assert faults.commits > 8
    for nth in (1, faults.commits // 2, faults.commits):
        cut = world.path.with_name(f"cut{nth}.db")
        shutil.copy(world.path, cut)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(cut), str(at), str(nth), STILL_LEFT, cwd=Path(__file__).parents[2]
        )
        assert await process.wait() == -9
        async with opened(cut, world.clock) as memory:
            assert await memory.forgetting.finish()  # which the start begins by itself
            world.clock.at = begun
            await memory.housekeeping.erase_left()
            assert await everything(memory) == wanted
        assert words_in(cut, [c for c in world.canaries if c.spot.place.startswith("room")]) == set()
    await world.start()


#: Stands in every transaction that erases something.
STILL_LEFT = "left_at = ?"
#: Run by a process of its own: erase, and die after so many such transactions.
KILLED = """
import asyncio, sys
from pathlib import Path
from tests.kit.fakes import Clock
from tests.kit.faults import Faults
from tests.kit.stores import opened

async def main():
    faults = Faults(kill_after_commit=int(sys.argv[3]), holding=sys.argv[4])
    async with opened(Path(sys.argv[1]), Clock(int(sys.argv[2])), driver=faults.driver) as memory:
        await memory.housekeeping.erase_left()

asyncio.run(main())
"""


# Shared parts ---------------------------------------------------------------------------------------------------


async def learned_from(memory: Service, context: Context, value: str, turns: list[Turn]) -> int:
    """Keeps what a model might have drawn from the first messages of some turns; returns its id."""
    draft = memories.Draft(
        kind="fact", owner_id=context.scope.writes_to, category="happening", key="event", value=value, importance=5,
        confidence=1.0, origin="extracted", learned_at=context.session.id, local_date="2026-11-21",
    )  # fmt: skip

    def write(tx: Transaction) -> int:
        memory_id = memories.insert(tx, draft, new_id=lambda: f"m_{counting()}", now=1)
        memories.add_sources(tx, memory_id, [turn.said[0].id for turn in turns])
        return memory_id

    return await memory.database.write(write)
