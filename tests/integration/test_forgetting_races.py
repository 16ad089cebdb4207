"""Forgetting while something else goes on: a link that is cut, a turn under way, an edit while the file is written anew.

Invariant: what must be gone is looked for in the bytes of every file of the store.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.chat.turns import Outcome, Said, Turn
from memory.chat.window import TurnMaterial
from memory.context import Context
from memory.errors import NotFound
from memory.forgetting.choose import Selection, What
from memory.forgetting.forgetting import Forgetting, Scrubbing
from memory.mailbox.outbox import Part
from memory.recall.recall import Budget
from memory.recall.search import Search
from memory.service import Service
from memory.store import word_columns
from memory.store.history import Utterance
from memory.store.usage import Spent
from tests.kit.fakes import Clock
from tests.kit.forgetting import carried_out, traces
from tests.kit.stores import link, opened, planted, profile_of, rows, unlink, wrote
from tests.kit.talk import exchange, group, private, received

SPENT = Spent(model="m", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)


async def begun(memory: Service, place: tuple[Where, Who], text: str, clock: Clock) -> tuple[Turn, TurnMaterial]:
    """A turn under way: its model has been given what is remembered."""
    where, who = place
    inbox_id = await received(memory, where.session_key, json.dumps({"text": text}))
    said = Said(
        inbox_id=inbox_id, text=text, tokens=1, said_at=clock(), platform_ref=f"ref-{inbox_id}", reply_to=None,
        learn=True,
    )  # fmt: skip
    turn = await memory.turns.begin(where, who, [said])
    return turn, await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=50)


async def ended(memory: Service, turn: Turn, view: TurnMaterial, text: str, *, tools: Sequence[str] = ()) -> None:
    """The turn's answer, after a tool has brought each of `tools`."""
    for n, brought in enumerate(tools):
        await memory.turns.keep_step(turn, n, json.dumps({"text": brought}), SPENT)
        await memory.turns.act(turn, n, 0, "search_memory", lambda _edits, brought=brought: brought)  # type: ignore[misc]
    traffic = [
        Utterance(role="tool", text=brought, tool_call_id=str(n), tokens=1, said_at=memory.now())
        for n, brought in enumerate(tools)
    ]
    answer = Utterance(role="assistant", text=text, tokens=1, said_at=memory.now())
    await memory.turns.finish(turn, view, Outcome(pieces=(Part(text=text),), utterances=(*traffic, answer)))


async def separated(memory: Service, clock: Clock) -> tuple[Context, Context]:
    """Contexts of Ada and Bob, made while they were linked; Bob has cut the link since."""
    for person, text in (("ada", "I like tea"), ("bob", "I like jazz")):
        await exchange(memory, private(person), text, clock)
    ada, bob = await memory.identities.context(*private("ada")), await memory.identities.context(*private("bob"))
    await link(memory, ada, bob)
    ada, bob = await memory.identities.context(*private("ada")), await memory.identities.context(*private("bob"))
    assert len(await memory.browse.memories(ada, limit=9)) == 2
    await unlink(memory, bob)
    return ada, bob


@pytest.mark.parametrize("what", ["all", "me", "range"])
async def test_who_was_taken_out_of_a_link_meanwhile_loses_nothing(what: What, memory: Service, clock: Clock) -> None:
    """The request was begun with the rights of two, and is carried out with those of one."""
    ada, bob = await separated(memory, clock)
    selection = Selection(what=what, last=clock() + 1)
    assert (await memory.forgetting.preview_of(ada, selection)).messages == 1
    assert (await carried_out(memory, ada, selection)).messages == 1
    assert [one.value for one in await memory.browse.memories(bob, limit=9)] == ["jazz"]
    said = await rows(memory, "select text from messages where role = 'user' and text <> ''")
    assert said == [("I like jazz",)]


async def test_no_way_of_asking_shows_what_was_taken_out_of_a_link_meanwhile(memory: Service, clock: Clock) -> None:
    """A request that has waited in between sees what its person sees by now."""
    ada, _ = await separated(memory, clock)
    ((short_id,),) = await rows(memory, "select short_id from memories where value = 'jazz' and kind = 'fact'")
    shown: list[object] = []

    async def refused(ask: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(NotFound):
            shown.append(await ask())

    async def at_desk(act: Callable[[Edits], object]) -> None:
        inbox_id = await received(memory, private("ada")[0].session_key)
        await memory.requests.answer(ada, inbox_id, lambda edits: [Part(text=repr(act(edits)))])

    await refused(lambda: memory.forgetting.preview(ada, str(short_id)))
    await refused(lambda: at_desk(lambda edits: edits.show(str(short_id))))
    await refused(lambda: at_desk(lambda edits: edits.correct(str(short_id), "Atlantis")))
    shown += [
        await memory.forgetting.preview(ada, "jazz"),
        (await memory.transfer.export(ada, transcript=True)).data,
        await memory.browse.shelf(ada, ("fact",), limit=9, page=1),
        await memory.browse.offered(ada, "", (), changeable=False, limit=9),
        await memory.browse.one(ada, str(short_id)),
        await memory.browse.profile(ada),
        await memory.privacy.kept(ada, looks_shown=9),
        await memory.browse.memories(ada, limit=9),
        await profile_of(memory, ada),
        await memory.browse.why(ada),
        await memory.turns.at_hand(ada),
        await memory.browse.search(ada, "jazz", limit=9),
    ]
    assert "tea" in repr(shown) and "jazz" not in repr(shown)
    assert (await memory.stats.stats(ada)).messages == 2 and (await memory.stats.status(ada)).total == 1


async def test_an_opt_out_holds_though_accounts_were_linked_meanwhile(memory: Service) -> None:
    """The row of the person that it was begun with is gone by then."""
    ada, bob = await memory.identities.context(*private("ada")), await memory.identities.context(*private("bob"))
    await link(memory, ada, bob)
    await memory.privacy.learn_from(bob, False)
    assert not (await memory.identities.context(*private("bob"))).speaker.learning


async def test_the_answer_of_a_turn_that_was_given_what_was_forgotten_meanwhile_goes(
    tmp_path: Path, clock: Clock
) -> None:
    """Its own words are not what was forgotten, but its model was told it; the receipt waits for its end."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        chosen = await planted(memory, ada, "the code is swordfish")
        turn, view = await begun(memory, private("ada"), "what is my code?", clock)
        receipt = await carried_out(memory, ada, Selection(what="memories", memory_ids=(chosen,)))
        assert receipt.memories == 1 and not receipt.scrubbed
        await ended(memory, turn, view, "I know: the code is swordfish", tools=["1. the code is swordfish"])
        assert traces(path, ["swordfish"])
        assert await memory.forgetting.finish()
        assert traces(path, ["swordfish"]) == {}
        assert ("what is my code?",) in await rows(memory, "select text from messages")


async def test_a_turn_beside_keeps_an_answer_that_tells_nothing_of_it(memory: Service, clock: Clock) -> None:
    """In a group somebody else's turn may be under way; it has nothing to do with what one of them has forgotten."""
    ada = await memory.identities.context(*group("club", "ada"))
    chosen = await planted(memory, ada, "the code is swordfish")
    turn, view = await begun(memory, group("club", "bob"), "what time is it?", clock)
    receipt = await carried_out(memory, ada, Selection(what="memories", memory_ids=(chosen,)))
    assert not receipt.scrubbed
    await ended(memory, turn, view, "It is noon.", tools=["12:00"])
    assert await memory.forgetting.finish()
    texts = await rows(memory, "select text from messages where role <> 'user' union all select text from outbox")
    assert {text for (text,) in texts} == {"It is noon.", "12:00"}
    assert await rows(memory, "select count(*) from steps") == [(1,)]


async def test_an_answer_already_gone_through_is_left_alone_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    """By then nobody knows any more what was looked for, only that it was."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*group("club", "ada"))
        chosen = await planted(memory, ada, "the code is swordfish")
        turn, view = await begun(memory, group("club", "bob"), "what time is it?", clock)
        # To this one every file is too large to be written anew on the spot.
        careful = Forgetting(
            memory.database, search=Search(memory.database, now=clock), now=clock, new_id=memory.new_id,
            scrubbing=Scrubbing(at_once_bytes=0),
        )  # fmt: skip
        selection = Selection(what="memories", memory_ids=(chosen,))
        await careful.forget(ada, await received(memory, private("ada")[0].session_key), None, selection, "words")
        await ended(memory, turn, view, "It is noon.")
        assert not await careful.scrub()
        await careful.close()
    async with opened(path, clock) as memory:
        assert await memory.forgetting.finish()
        assert await rows(memory, "select text from messages where role = 'assistant'") == [("It is noon.",)]


async def test_where_nobody_knows_any_more_what_to_look_for_all_of_the_answer_goes(
    tmp_path: Path, clock: Clock
) -> None:
    """The process ended while the turn was under way, and its steps may tell what was forgotten."""
    path = tmp_path / "remora.db"
    place = private("ada")
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*place)
        chosen = await planted(memory, ada, "the code is swordfish")
        turn, _ = await begun(memory, place, "what is my code?", clock)
        await memory.turns.keep_step(turn, 0, json.dumps({"text": "the code is swordfish"}), SPENT)
        assert not (await carried_out(memory, ada, Selection(what="memories", memory_ids=(chosen,)))).scrubbed
    async with opened(path, clock) as memory:
        turn = await memory.turns.resume(*place, turn.id, turn.inbox_ids)
        view = await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=50)
        await ended(memory, turn, view, "It is as I said.")
        assert await memory.forgetting.finish()
        assert traces(path, ["swordfish"]) == {}
        assert await rows(memory, "select text from messages where role = 'assistant'") == [("",)]


async def test_without_the_words_an_answer_under_way_is_not_found_again(memory: Service, clock: Clock) -> None:
    """It may tell the memory, and would be recalled in its place."""
    ada = await memory.identities.context(*private("ada"))
    chosen = await planted(memory, ada, "the code is swordfish")
    turn, view = await begun(memory, private("ada"), "what is my code?", clock)
    await carried_out(memory, ada, Selection(what="memories", memory_ids=(chosen,)), how="memory")
    await ended(memory, turn, view, "I know: the code is swordfish")
    assert await memory.forgetting.finish()
    assert await memory.browse.search(ada, "swordfish", limit=9) == []
    kept = await rows(memory, "select text, recall from messages where role = 'assistant'")
    assert kept == [("I know: the code is swordfish", 0)]


async def test_what_a_given_up_turn_was_told_goes_with_it(tmp_path: Path, clock: Clock) -> None:
    """No message of history leads to a failed turn's steps, so a forget would never look there."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        chosen = await planted(memory, ada, "the code is swordfish")
        turn, _ = await begun(memory, private("ada"), "what is my code?", clock)
        await memory.turns.keep_step(turn, 0, json.dumps({"text": "swordfish"}), SPENT)
        await memory.turns.act(turn, 0, 0, "search_memory", lambda _edits: "1. the code is swordfish")
        where, _ = private("ada")
        await memory.mailbox.refuse(turn.inbox_ids, where.session_key, Part(text="No answer."), error="model_down")
        receipt = await carried_out(memory, ada, Selection(what="memories", memory_ids=(chosen,)))
        assert receipt.memories == 1 and receipt.scrubbed
        assert traces(path, ["swordfish"]) == {}


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_what_tools_bring_after_a_message_was_taken_back_goes(how: str, tmp_path: Path, clock: Clock) -> None:
    """The turn goes on with what it was given; the answer that people have seen stays."""
    path = tmp_path / "remora.db"
    where, who = private("ada")
    async with opened(path, clock) as memory:
        turn, view = await begun(memory, (where, who), "my word is walrus", clock)
        ref = turn.said[0].platform_ref
        assert ref is not None
        if how == "deleted":
            assert await memory.requests.retract("console", where.session_key, [ref]) == 1
        else:
            assert await memory.requests.amend(
                where, who, await received(memory, where.session_key), platform_ref=ref, text="never mind",
                compose=lambda text, _: text,
            )  # fmt: skip
        assert not await memory.forgetting.finish()
        await ended(memory, turn, view, "All right.", tools=["told to keep walrus"])
        assert await memory.forgetting.finish()
        assert traces(path, ["walrus"]) == {}
        assert ("All right.",) in await rows(memory, "select text from messages")


async def test_an_edit_while_the_file_is_written_anew_has_it_written_once_more(tmp_path: Path, clock: Clock) -> None:
    """The copy has not got rid of words that were changed after it was made."""
    path = tmp_path / "remora.db"
    where, who = private("ada")
    async with opened(path, clock) as memory:
        turns = [await exchange(memory, (where, who), f"my word is {word}", clock) for word in ("elk", "rhinoceros")]

        async def edit(turn: Turn) -> None:
            inbox_id, ref = await received(memory, where.session_key), turn.said[0].platform_ref
            assert ref is not None
            assert await memory.requests.amend(
                where, who, inbox_id, platform_ref=ref, text="never mind", compose=lambda text, _: text
            )

        await edit(turns[0])
        due = [one.id for one in await memory.database.read(word_columns.unscrubbed)]
        await edit(turns[1])
        await wrote(memory, lambda tx: word_columns.scrubbed(tx, due, now=clock()))
        assert await memory.database.read(word_columns.unscrubbed)
        assert await memory.forgetting.finish()
        assert traces(path, ["rhinoceros"]) == {}


async def test_a_failed_message_that_went_leaves_no_trace_though_nothing_else_did(tmp_path: Path, clock: Clock) -> None:
    """A message that never had a turn is counted nowhere, and its bytes are there like any other's."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        where, _ = group("club", "ada")
        ada = await memory.identities.context(*group("club", "ada"))
        failed = await received(
            memory, where.session_key, json.dumps({"text": "zanzibars at the gate", "author_id": "ada"})
        )
        await wrote(memory, lambda tx: tx.run("update inbox set state = 'failed' where id = ?", (failed,)))
        receipt = await carried_out(memory, ada, Selection(what="here"))
        assert receipt.is_empty and receipt.scrubbed
        assert traces(path, ["zanzibars"]) == {}
