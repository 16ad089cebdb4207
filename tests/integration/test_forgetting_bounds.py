"""How far a forget reaches: to every copy of what goes, to nobody else's words, and as far in a large store as a small.

Invariant: what goes is looked for in the rows, and what others said is compared with what it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from memory.chat.identities import Where, Who
from memory.context import Context
from memory.errors import NotFound
from memory.forgetting import blank_messages, plan
from memory.forgetting.choose import Asker, Selection
from memory.forgetting.erase import carry_out
from memory.forgetting.forgetting import Receipt
from memory.mailbox.outbox import Outgoing, Part
from memory.service import Service
from memory.store import chats, memories, word_columns
from memory.store.attachments import Attached
from memory.store.database import Reader, Transaction
from tests.kit.fakes import Clock, counting_ids
from tests.kit.forgetting import carried_out, forgotten, traces
from tests.kit.stores import Watched, connection_of, link, opened, planted, rows, wrote
from tests.kit.talk import act, exchange, group, private, received

Place = tuple[Where, Who]


async def failed(
    memory: Service, place: Place, text: str, *, files: tuple[Attached, ...] = (), state: str = "failed"
) -> int:
    """A message that never came to a turn, and whose words are kept for a while."""
    where, who = place
    inbox_id = await received(
        memory, where.session_key, json.dumps({"text": text, "author_id": who.user_id, "chat": "steamboat"})
    )
    await memory.mailbox.attach(inbox_id, files)
    await wrote(
        memory, lambda tx: tx.run("update inbox set state = ?, finished_at = 1 where id = ?", (state, inbox_id))
    )
    return inbox_id


async def unsent(memory: Service, place: Place, piece: Part) -> None:
    await wrote(
        memory,
        lambda tx: memory.mailbox.post(tx, Outgoing(session_key=place[0].session_key, pieces=[piece], kind="notice")),
    )


async def payload(memory: Service, inbox_id: int) -> str:
    ((found,),) = await rows(memory, f"select payload from inbox where id = {inbox_id}")
    return str(found)


def asker(context: Context) -> Asker:
    return Asker(session=context.session, scope=context.scope, timezone=context.timezone)


async def test_a_short_word_erases_nobody_elses_mail(memory: Service) -> None:
    """Tea stands in "instead" and in "steamboat", and what holds them was somebody else's."""
    hers, his = group("club", "ada"), group("club", "bob")
    context = await memory.identities.context(*hers)
    await memory.identities.context(*his)
    his_failed = await failed(memory, his, "please sum up the steamboat contract, and the tea is ready at four")
    await unsent(memory, his, Part(text="Bob, come on Tuesday instead of Monday"))
    kept = await payload(memory, his_failed)
    for value in ("tea", "the tea is ready at four", "steamboat"):
        await carried_out(
            memory, context, Selection(what="memories", memory_ids=(await planted(memory, context, value),))
        )
    assert await payload(memory, his_failed) == kept
    assert ("Bob, come on Tuesday instead of Monday",) in await rows(memory, "select text from outbox")


async def test_ones_own_mail_that_quotes_it_goes(memory: Service) -> None:
    """In a group it is known by who wrote it; an admin may have anybody's erased."""
    hers, his = group("club", "ada"), group("club", "bob")
    context, boss = await memory.identities.context(*hers), await memory.identities.context(*group("club", "boss"))
    await memory.identities.context(*his)
    mine, theirs = [await failed(memory, place, "so the vault opens at nine, then") for place in (hers, his)]
    await unsent(memory, hers, Part(text="Noted: the vault opens at nine."))
    await forgotten_value(memory, context, "the vault opens at nine")
    assert await payload(memory, mine) == "" and await payload(memory, theirs) != ""
    assert await rows(memory, "select text from outbox where state = 'pending'") == []
    await forgotten_value(memory, boss, "the vault opens at nine", may_all=True)
    assert await payload(memory, theirs) == ""


async def forgotten_value(memory: Service, context: Context, value: str, *, may_all: bool = False) -> Receipt:
    memory_id = await planted(memory, context, value)
    return await carried_out(memory, context, Selection(what="memories", memory_ids=(memory_id,)), may_all=may_all)


async def test_files_that_quote_it_go_with_the_mail(memory: Service, ada: Context) -> None:
    """Words in a voice message and in an export are words, too."""
    voice = Attached(
        kind="audio", name="v.ogg", media_type="audio/ogg", size=3, state="spoken", text="My boat is called Marigold!"
    )
    kept = Attached(
        kind="file", name="n.txt", media_type="text/plain", size=3, state="text", text="quite another thing"
    )
    quoting, other = [await failed(memory, private("ada"), "", files=(file,)) for file in (voice, kept)]
    export = json.dumps({"memories": ["my boat is called Marigold"]}).encode()
    await unsent(memory, private("ada"), Part(text="here it is", file_name="memory.json", file=export))
    await unsent(memory, private("ada"), Part(text="here too", file_name="other.json", file=b"\xff\xfe nothing of it"))
    receipt = await forgotten_value(memory, ada, "my boat is called Marigold")
    assert receipt.scrubbed
    assert await payload(memory, quoting) == "" and await payload(memory, other) != ""
    assert await rows(memory, "select text from attachments") == [("quite another thing",)]
    assert await rows(memory, "select file_name from outbox where file is not null") == [("other.json",)]


@pytest.mark.parametrize("what", ["all", "me", "here"])
async def test_a_message_that_waits_to_be_asked_for_goes_with_all(memory: Service, ada: Context, what: str) -> None:
    """It was said, too."""
    where, who = private("ada")
    held = await memory.mailbox.receive(
        platform=where.platform, bot_id="local", update_key="late", session_key=where.session_key,
        payload=json.dumps({"text": "a late word", "author_id": who.user_id}), held=Part(text="That came late."),
    )  # fmt: skip
    assert held is not None
    request = await received(memory, where.session_key)
    await memory.forgetting.forget(ada, request, None, Selection(what=what), "words")  # type: ignore[arg-type]
    assert await rows(memory, f"select state, payload from inbox where id = {held}") == [("failed", "")]
    # The request is open until its receipt is queued.
    assert await rows(memory, f"select state from inbox where id = {request}") == [("pending",)]


async def test_of_a_group_only_ones_own_late_messages_go(memory: Service) -> None:
    """Others still want theirs answered."""
    hers, his = group("club", "ada"), group("club", "bob")
    context = await memory.identities.context(*hers)
    await memory.identities.context(*his)
    ids = []
    for where, who in (hers, his):
        text = json.dumps({"text": f"late word of {who.user_id}", "author_id": who.user_id})
        held = await memory.mailbox.receive(
            platform=where.platform, bot_id="local", update_key=who.user_id, session_key=where.session_key,
            payload=text, held=Part(text="late"),
        )  # fmt: skip
        assert held is not None
        ids.append(held)
    await carried_out(memory, context, Selection(what="all"))
    assert [await payload(memory, each) != "" for each in ids] == [False, True]


async def test_an_admin_has_older_versions_erased_as_well(memory: Service, clock: Clock) -> None:
    """Else the same words stay one step back, where the admin can't even see that they do."""
    his = await exchange(memory, group("club", "bob"), "we spoke of bees in Graz and of bees in Linz", clock)
    source = [his.said[0].id]
    old = await planted(memory, his.context, "keeps bees in Graz", sources=source)
    new = await planted(memory, his.context, "keeps bees in Linz", sources=source)
    await wrote(memory, lambda tx: memories.supersede(tx, old, new, at=clock()))
    boss = await memory.identities.context(*group("club", "boss"))
    receipt = await carried_out(memory, boss, Selection(what="memories", memory_ids=(new,)), may_all=True)
    assert receipt.memories == 2
    assert await rows(memory, "select value from memories") == []


async def test_a_common_phrase_erases_no_answers_to_others(memory: Service, clock: Clock) -> None:
    """Whoever has it remembered and forgotten reaches what was said to them, or where that memory was at hand."""
    his = [
        await exchange(
            memory, group("club", "bob"), f"and the {thing}?", clock, answer=f"Let me know when the {thing} is back."
        )
        for thing in ("car", "boat")
    ]
    hers = await exchange(memory, group("club", "ada"), "and mine?", clock, answer="Let me know when yours is back.")
    memory_id = await planted(memory, hers.context, "let me know when")
    await wrote(
        memory,
        lambda tx: tx.run(
            "insert into recalls (turn_id, rank, item, item_id, placed, parts) values (?, 99, 'memory', ?, 'recalled', '{}')",
            (his[1].id, memory_id),
        ),
    )
    selection = Selection(what="memories", memory_ids=(memory_id,))
    preview = await memory.forgetting.preview_of(hers.context, selection)
    everything = await memory.forgetting.preview_of(hers.context, selection, may_all=True)
    assert (preview.replies, everything.replies) == (2, 3)
    await carried_out(memory, hers.context, selection)
    said = await rows(memory, "select text from messages where role = 'assistant' and text <> ''")
    assert said == [("Let me know when the car is back.",)]


async def test_an_answer_to_somebody_else_is_not_erased_by_its_id(memory: Service, clock: Clock) -> None:
    """Ids are small numbers: whoever counts through them must not reach what was said to others in a group."""
    his = await exchange(memory, group("club", "bob"), "when does the boat leave?", clock, answer="At seven.")
    hers = await exchange(memory, group("club", "ada"), "and mine?", clock, answer="At eight.")
    boss = await memory.identities.context(*group("club", "boss"))
    ids = {text: row for row, text in await rows(memory, "select id, text from messages where role = 'assistant'")}
    with pytest.raises(NotFound):
        await act(memory, hers.context, lambda edits: edits.may_forget_said(ids["At seven."]))
    assert await act(memory, hers.context, lambda edits: edits.may_forget_said(ids["At eight."]))
    assert await act(memory, his.context, lambda edits: edits.may_forget_said(ids["At seven."]))
    selection = Selection(what="memories", message_ids=tuple(ids.values()))
    for context, may_all, answers in ((hers.context, False, 1), (boss, False, 0), (boss, True, 2)):
        assert (await memory.forgetting.preview_of(context, selection, may_all=may_all)).replies == answers


async def test_a_private_chat_in_which_only_the_bot_has_spoken_is_reached(memory: Service, ada: Context) -> None:
    """A notice was sent there, or a summary was made: no message tells whose chat it is."""

    def act(tx: Transaction) -> None:
        tx.run("update chats set title = 'Ada of Lisbon' where kind = 'private'")
        tx.run("update sessions set summary = 'of Ada', active_task = 'her boat' where id = ?", (ada.session.id,))
        chats.heard_in(tx, ada.session, ada.speaker.id)

    await wrote(memory, act)
    await unsent(memory, private("ada"), Part(text="your list", file_name="list.json", file=b"of Ada"))
    mail = await failed(memory, private("ada"), "my boat")
    await carried_out(memory, ada, Selection(what="me"))
    assert await rows(memory, "select title from chats where kind = 'private'") == [("",)]
    assert await rows(memory, "select summary, active_task from sessions") == [(None, None)]
    assert await payload(memory, mail) == ""
    assert await rows(memory, "select text from outbox where state = 'pending'") == []


async def test_quotes_are_looked_for_also_where_nothing_was_learned(memory: Service, clock: Clock) -> None:
    """The bot repeats messages that became no memory as well, and more of them than a hundred."""
    texts = [f"the launch number {n} was moved to spring" for n in range(130)]
    first = [await exchange(memory, private("ada"), text, clock) for text in texts[:1]]
    context = first[0].context

    def fill(tx: Transaction) -> None:
        recorded(tx, context, texts[1:])

    await wrote(memory, fill)
    await exchange(memory, private("ada"), "what did I say first?", clock, answer=f'You said: "{texts[0]}".')
    await exchange(memory, private("ada"), "and last?", clock, answer=f"{texts[-1]}, wasn't it?")
    found = await rows(memory, "select id from messages where text like 'the launch number %'")
    await wrote(memory, lambda tx: tx.run("delete from memories"))
    selection = Selection(what="memories", message_ids=tuple(int(str(row[0])) for row in found))
    preview = await memory.forgetting.preview_of(context, selection)
    assert preview.memories == 0 and preview.messages == 130
    await carried_out(memory, context, selection)
    assert await rows(memory, "select text from messages where text like '%the launch number%'") == []


def recorded(tx: Transaction, context: Context, texts: list[str]) -> None:
    """History of what somebody said, without the turns around it."""
    for nth, text in enumerate(texts, 10):
        tx.run(
            "insert into messages (session_id, role, author_id, text, tokens, learn, recall, owner_id, nth, sitting,"
            " said_at, recorded_at) values (?, 'user', ?, ?, 1, 0, 1, ?, ?, 1, ?, 1)",
            (context.session.id, context.speaker.id, text, context.scope.writes_to, nth, nth),
        )


async def test_a_query_takes_all_that_matches_or_says_so(memory: Service, ada: Context) -> None:
    """Whoever asks for a word to be forgotten must not believe that the older half of it is gone."""
    await wrote(memory, lambda tx: recorded(tx, ada, [f"the kiwi, part {n}" for n in range(10_050)]))
    preview = await memory.forgetting.preview(ada, "the kiwi")
    assert preview is not None
    assert (preview.messages, preview.selection.more) == (10_000, 50)
    assert Selection.from_json(preview.selection.to_json()) == preview.selection
    narrower = await memory.forgetting.preview(ada, "kiwi, part 1")
    assert narrower is not None and narrower.messages > 1_000 and narrower.selection.more == 0


async def test_a_forget_in_a_group_leaves_the_private_chat_alone(memory: Service, clock: Clock) -> None:
    """The same sentence said elsewhere is another one: it was not asked about, and others may look on."""
    alone = await exchange(memory, private("ada"), "I will do it tomorrow", clock)
    here = [await exchange(memory, group("club", "ada"), "I will do it tomorrow", clock) for _ in range(2)]
    selection = Selection(what="memories", message_ids=(here[0].said[0].id,))
    await carried_out(memory, here[0].context, selection)
    left = await rows(memory, "select id from messages where role = 'user' and text <> ''")
    assert left == [(alone.said[0].id,)]


async def steps_of(memory: Service, act: Callable[[Transaction], object]) -> int:
    """How much SQLite works for `act`, in thousands of steps of its machine."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    def counted(tx: Transaction) -> None:
        connection_of(tx).set_progress_handler(step, 1_000)
        try:
            act(tx)
        finally:
            connection_of(tx).set_progress_handler(None, 0)

    await wrote(memory, counted)
    return count


@pytest.mark.sqlite("counts the steps of its machine")
async def test_looking_for_what_goes_grows_with_the_store_and_no_faster(memory: Service, ada: Context) -> None:
    """With every message compared with every other, a few thousand would stop everybody else's turns."""
    everything = Selection(what="range", first=0, last=1 << 50)
    work = []
    for n in (1_000, 4_000):
        await wrote(memory, lambda tx, n=n: recorded(tx, ada, [f"said in round {n}, sentence {i}" for i in range(n)]))  # type: ignore[misc]
        work.append(await steps_of(memory, lambda tx: plan.plan(tx, asker(ada), everything, "words")))
    assert work[1] < 8 * work[0]


async def test_what_was_looked_through_is_not_read_again(memory: Service, clock: Clock) -> None:
    """The slow part is done before the transaction that erases, which finds what came since."""
    turn = await exchange(
        memory, private("ada"), "the vault opens at nine", clock, answer="Noted: the vault opens at nine."
    )
    await exchange(memory, private("ada"), "and again?", clock, answer="I said that the vault opens at nine.")
    selection = Selection(what="memories", message_ids=(turn.said[0].id,))

    def planned(reader: Reader, before: plan.Plan | None = None) -> plan.Plan:
        looked = None if before is None else before.looked
        return plan.plan(reader, asker(turn.context), selection, "words", looked=looked)

    first = await memory.database.read(planned)
    await exchange(memory, private("ada"), "once more?", clock, answer="The vault opens at nine!")
    then = await memory.database.read(lambda reader: planned(reader, first))
    assert then == await memory.database.read(planned) or set(then.replies) > set(first.replies)
    assert len(first.replies) == 2 and len(then.replies) == 3
    assert then.looked.quotes is first.looked.quotes and then.looked.upto.keys() == first.looked.upto.keys()


async def test_a_message_that_is_committed_late_under_a_lower_id_is_looked_through(
    memory: Service, clock: Clock
) -> None:
    """Ids are given before the commit, and another session's may overtake them."""
    turn = await exchange(memory, private("ada"), "the vault opens at nine", clock, answer="Noted.")
    elsewhere = await exchange(memory, private("phone"), "hello", clock, answer="Hello.")
    await link(memory, turn.context, elsewhere.context)
    context = await memory.identities.context(*private("ada"))
    selection = Selection(what="memories", message_ids=(turn.said[0].id,))

    def answered(session_id: int, message_id: int, text: str) -> Callable[[Transaction], object]:
        return lambda tx: tx.run(
            "insert into messages (id, session_id, role, text, tokens, learn, recall, owner_id, nth, sitting, said_at,"
            " recorded_at) select ?, id, 'assistant', ?, 1, 0, 1, ?, 50, 1, 1, 1 from sessions where id = ?",
            (message_id, text, context.scope.writes_to, session_id),
        )

    await wrote(memory, answered(turn.context.session.id, 900, "Anything else?"))
    first = await memory.database.read(lambda reader: plan.plan(reader, asker(context), selection, "words"))
    await wrote(memory, answered(elsewhere.context.session.id, 800, "I recall that the vault opens at nine."))
    then = await memory.database.read(
        lambda reader: plan.plan(reader, asker(context), selection, "words", looked=first.looked)
    )
    assert 800 in then.replies and 800 not in first.replies


async def test_much_is_blanked_in_portions_also_after_a_crash(tmp_path: Path, clock: Clock) -> None:
    """Everybody else goes on meanwhile; what is not blanked yet is out of sight, and the next start goes on."""
    path, count = tmp_path / "remora.db", 12_000
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        await wrote(memory, lambda tx: recorded(tx, ada, [f"the quagga says {n}" for n in range(count)]))
        await memory.indexed()

        def erase(tx: Transaction) -> None:
            going = plan.plan(tx, asker(ada), Selection(what="all"), "words")
            counts, what, _ = carry_out(tx, asker(ada), going, now=clock(), new_id=counting_ids())
            assert counts.messages == count
            word_columns.record(tx, None, what, counts.to_json(), now=clock())

        await wrote(memory, erase)
        kept = await rows(memory, "select count(*) from messages where text <> ''")
        seen = await rows(memory, "select count(*) from messages where text <> '' and erased_at is null or recall = 1")
        assert 0 < int(str(kept[0][0])) < count and seen == [(0,)]
        assert await memory.browse.search(ada, "quagga", limit=5) == []
    async with opened(path, clock) as memory:
        assert await memory.forgetting.finish()
        assert await rows(memory, "select count(*) from messages where text <> ''") == [(0,)]
        assert await rows(memory, "select count(*) from erasures where scrubbed_at is null") == [(0,)]
    assert traces(path, ["quagga"]) == {}


async def test_without_the_words_much_is_unlearned_at_once(memory: Service, ada: Context) -> None:
    """History keeps it, and nothing finds it."""
    await wrote(memory, lambda tx: recorded(tx, ada, [f"the quagga says {n}" for n in range(6_000)]))
    receipt = await carried_out(memory, ada, Selection(what="all"), how="memory")
    assert receipt.messages == 0
    assert await rows(memory, "select count(*), sum(recall), sum(learn) from messages where text <> ''") == [
        (6_000, 0, 0)
    ]


async def test_no_one_elses_copy_is_blanked_by_a_second_start(memory: Service, clock: Clock) -> None:
    """Words that replaced what was erased are not among it."""
    turn = await exchange(memory, private("ada"), "the vault opens at nine", clock)
    message_id = turn.said[0].id
    await forgotten(memory, turn.context, "vault")
    await wrote(
        memory, lambda tx: tx.run("update messages set text = 'other', erased_at = null where id = ?", (message_id,))
    )
    await wrote(memory, lambda tx: blank_messages.blank_hidden(tx, [message_id], now=clock()))
    assert ("other",) in await rows(memory, "select text from messages")


async def test_many_names_are_looked_for_in_one_reading_of_the_messages(memory: Service, clock: Clock) -> None:
    """A reading of a large store takes a good part of the time that a read may last."""
    context = (await exchange(memory, private("ada"), "hello there", clock)).context
    names = ("Ann", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida", "Jo")
    ids = [await planted(memory, context, name, key="friend", category="relation") for name in names]

    def look(reader: Reader) -> list[str]:
        watched = Watched(reader)
        planned = plan.plan(
            cast(Reader, watched), asker(context), Selection(what="memories", memory_ids=(*ids,)), "words"
        )
        assert planned.names == names
        return [sql for sql, _ in watched.asked if "instr" in sql and "from messages" in sql]

    assert len(await memory.database.read(look)) == 1


async def test_messages_beyond_the_most_are_told_of(memory: Service, clock: Clock) -> None:
    first = await exchange(memory, private("ada"), "We took Pixel to the lake.", clock)
    await planted(memory, first.context, "dog Pixel", key="pet", category="relation", sources=[first.said[0].id])
    await wrote(
        memory,
        lambda tx: tx.run(
            "insert into messages (session_id, turn_id, role, author_id, owner_id, text, tokens, learn, sitting, said_at,"
            " recorded_at) select m.session_id, m.turn_id, m.role, m.author_id, m.owner_id, m.text, m.tokens, m.learn,"
            " m.sitting, m.said_at, m.recorded_at from messages m, json_each(?2) where m.id = ?1",
            (first.said[0].id, [*range(10_004)]),
        ),
    )
    preview = await memory.forgetting.preview(first.context, "dog", request="forget everything about my dog")
    assert preview is not None
    assert (len(preview.selection.message_ids), preview.selection.more) == (10_000, 5)
