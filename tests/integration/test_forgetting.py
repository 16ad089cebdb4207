"""Forgetting: what goes, what stays, who may, and that no byte of it is left in the files.

Invariant: what must go is looked for in the bytes of every file of the store, what must stay is compared row by row.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.chat.turns import Outcome, Said
from memory.context import Context
from memory.errors import Derived, NotFound, NotYours
from memory.forgetting import erase
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview, Forgetting, Scrubbing
from memory.learn import keep
from memory.mailbox.outbox import Part
from memory.recall.recall import Budget
from memory.recall.search import Search
from memory.reminders import reminders
from memory.service import Service
from memory.store import history, lineage, memories, vectors, word_columns
from memory.store.attachments import Attached
from memory.store.database import Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from memory.store.sqlite.driver import Driver
from memory.text.words import stem
from tests.kit.fakes import Clock
from tests.kit.forgetting import carried_out, files_of, forgotten, secret, standing, traces
from tests.kit.patience import until
from tests.kit.stores import DRIVERS, counting, opened, planted, profile_of, rows, wrote
from tests.kit.talk import act, exchange, group, private, received


async def derived(memory: Service, context: Context, value: str, parents: Sequence[int], **of: object) -> int:
    """A row made of others, which are set aside meanwhile."""
    made = await planted(memory, context, value, sources=(), origin="derived", **of)

    def act(tx: Transaction) -> None:
        memories.set_parents(tx, made, parents)
        if of.get("kind", "fact") == "fact":
            for parent in parents:
                tx.run("update memories set archived_at = 1 where id = ?", (parent,))

    await memory.database.write(act)
    return made


async def id_of(memory: Service, context: Context, value: str) -> str:
    return next(m.short_id for m in await memory.browse.memories(context, limit=50) if value in m.value)


async def episode(memory: Service, place: tuple[Where, Who], clock: Clock, words: list[str]) -> None:
    """Something said under the topic "secret", with all that ever keeps a copy of it."""

    def new() -> str:
        words.append(secret(len(words)))
        return words[-1]

    said, quoted, called, given, value = new(), new(), new(), new(), new()
    turn = await exchange(
        memory,
        place,
        f"The plan is {said} and {value}",
        clock,
        files=[
            Attached(kind="file", name=f"{new()}.txt", media_type="text/plain", size=1, state="text", text=new()),
            Attached(kind="audio", name="voice", media_type="", size=1, state="spoken", text=new()),
            Attached(kind="image", name="p", media_type="", size=1, state="picture", data=new().encode()),
        ],
        answers=[
            Utterance(
                role="assistant", text="", tokens=1, said_at=clock(),
                tool_calls=json.dumps([{"id": "1", "name": "remember_fact", "arguments": json.dumps({"text": called})}]),
            ),
            Utterance(role="tool", text=f"Saved: {given}", tokens=1, said_at=clock(), tool_call_id="1"),
        ],
        answer=f"So it is {quoted}",
        steps=[json.dumps({"text": new()})],
        effects=[f"found {new()}"],
        pieces=[f"unsent {new()}"],
    )  # fmt: skip
    context, source = turn.context, turn.said[0].id
    # Words that somebody says of themselves in a group are theirs in private, too; these are about a plan.
    subject_id = context.speaker.id if context.scope.private else None
    fact = await planted(
        memory,
        context,
        f"plan {value}",
        sources=[source],
        topic="secret",
        subject=new(),
        key=f"key-{new()}",
        subject_id=subject_id,
    )
    old = await planted(
        memory, context, f"the plan {value} {new()}", sources=[source], topic="secret", subject_id=subject_id
    )
    await derived(memory, context, f"merged {new()}", [fact], kind="reflection", key="weekly")
    await derived(memory, context, f"You are told {new()}", [fact], kind="directive", key="directive")
    failed, unsent = (
        await received(
            memory,
            place[0].session_key,
            json.dumps({"author_id": place[1].user_id, "text": turn.said[0].text, "author_name": new()}),
        ),
        new(),
    )

    tag, summary, task, name, alias = new(), new(), new(), new(), new()
    vector_of = {
        doc: (new().encode(), np.frombuffer(new().encode(), dtype="<f4")) for doc in (2 * fact, 2 * source + 1)
    }

    def act(tx: Transaction) -> None:
        memories.supersede(tx, old, fact, at=clock())
        tx.run("update memories set tags = ? where id = ?", (json.dumps([tag]), fact))
        tx.run(
            "update sessions set summary = ?, active_task = ? where id = ?",
            (f"They spoke of {summary}", f"working on {task}", context.session.id),
        )
        entity = tx.insert(
            "insert into entities (owner_id, type, name, norm, created_at) values (?, 'project', ?, ?, 1)",
            (context.scope.writes_to, name.title(), name),
        )
        tx.run("insert into entity_aliases values (?, ?)", (entity, alias))
        tx.run("insert into memory_entities values (?, ?)", (fact, entity))
        tx.run("update inbox set state = 'failed' where id = ?", (failed,))
        tx.run(
            "insert into outbox (session_key, kind, chunk, text, state, run, created_at)"
            " values (?, 'message', 0, ?, 'dead', 'r', 1)",
            (context.session.key, f"1. plan {value} {unsent}"),
        )
        for doc, (hashed, vector) in vector_of.items():
            vectors.cache(tx, doc, {hashed: vector}, now=clock())

    await wrote(memory, act)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name.replace(" ", "-"))
async def test_no_byte_of_what_is_forgotten_is_left_in_any_file(
    tmp_path: Path, clock: Clock, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    """Promise 3, with another reader in the way for a while, while no embedder runs, and with the log at DEBUG."""
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "store" / "remora.db"
    words: list[str] = []
    async with opened(path, clock, driver=driver) as memory:
        fast = Forgetting(
            memory.database, search=Search(memory.database, now=clock), now=clock, new_id=memory.new_id,
            scrubbing=Scrubbing(wait_seconds=0.2, again_seconds=0.05),
        )  # fmt: skip
        ada = await memory.identities.context(*private("ada"))
        clubbed = await memory.identities.context(*group("club", "ada"))
        for n in range(2):
            await episode(memory, private("ada"), clock, words)
            await episode(memory, group("club", "ada"), clock, words)
            await exchange(memory, private("ada"), f"nothing of note, number {n}", clock)
        await memory.indexed()
        assert len(words) >= 100
        assert standing(files_of(path), words) == words
        other = driver.module.connect(str(path))  # locks of another SQLite in one process would not be seen
        other.execute("begin")
        other.execute("select count(*) from messages").fetchone()
        where, _ = private("ada")
        receipts = []
        for context in (ada, clubbed):
            preview = await fast.preview(context, "topic:secret")
            assert preview is not None
            inbox_id = await received(memory, where.session_key)
            receipt = await fast.forget(context, inbox_id, None, preview.selection, "words")
            assert receipt is not None
            receipts.append((inbox_id, receipt))
        assert [receipt.scrubbed for _, receipt in receipts] == [False, False]
        assert traces(path, words)
        other.rollback()
        other.close()
        await until(fast.scrub)
        await fast.close()
        later = await fast.receipt(receipts[0][0])
        assert later is not None and later.scrubbed
        assert later.messages == receipts[0][1].messages == 2
        assert traces(path, words) == {}
        assert await memory.browse.search(ada, "secret plan merged", limit=10) == []
        assert {table for table, columns in word_columns.WORDS.items() for column in columns
                for row in await rows(memory, f"select {column} from {table}")
                if any(word in str(row[0]) for word in words)} == set()  # fmt: skip
        logged = "\n".join(record.getMessage() for record in caplog.records)
        assert not [word for word in words if word in logged]
    assert traces(path, words) == {}


@pytest.mark.sqlite("about free space in its pages")
async def test_what_sqlite_leaves_in_free_space_goes_as_well(tmp_path: Path, clock: Clock) -> None:
    """`secure_delete` wipes the cells of deleted rows, but not the copies left where rows have moved between pages."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))

        def fill(tx: Transaction) -> None:
            for n in range(1_500):
                said = Utterance(
                    role="user", text="x" * (n * 37 % 900) + secret(n), tokens=1, said_at=clock(),
                    author_id=ada.speaker.id,
                )  # fmt: skip
                history.record(tx, ada.session, None, [said], owner_id=ada.scope.writes_to, now=clock())
                if n % 3 == 0:
                    history.reword(tx, 1 + n // 2, secret(10_000 + n) + "y" * (n * 53 % 1_700), tokens=1, now=clock())

        await wrote(memory, fill)
        receipt = await carried_out(memory, ada, Selection(what="all"))
        assert receipt.messages == 1_500 and receipt.scrubbed
        words = [secret(n) for n in range(1_500)] + [secret(10_000 + n) for n in range(0, 1_500, 3)]
        assert traces(path, words) == {}


async def test_only_the_target_goes_and_the_receipt_says_what(memory: Service, clock: Clock) -> None:
    """Everybody else's rows are the same to the byte, and each figure is that of the tables."""
    words: list[str] = []
    for person in ("ada", "bob"):
        await episode(memory, private(person), clock, words)
        await episode(memory, group("club", person), clock, words)
    ada, bob = await memory.identities.context(*private("ada")), await memory.identities.context(*private("bob"))

    async def of_others() -> str:
        """All rows that are not of Ada's private chat."""
        tables = {
            "messages": f"owner_id <> {ada.scope.writes_to}",
            "memories": f"owner_id <> {ada.scope.writes_to}",
            "steps": f"turn_id in (select id from turns where session_id <> {ada.session.id})",
            "effects": f"turn_id in (select id from turns where session_id <> {ada.session.id})",
            "outbox": f"session_key <> '{ada.session.key}'",
            "inbox": f"session_key <> '{ada.session.key}'",
            "sessions": f"id <> {ada.session.id}",
            "entities": f"owner_id <> {ada.scope.writes_to}",
            "job_items": f"owner_id <> {ada.scope.writes_to}",
            "identities": "true", "people": "true", "chats": "true", "owners": "true",
        }  # fmt: skip
        # Every window takes a new snapshot, which is of ids: whose they are is not looked at.
        await wrote(memory, lambda tx: tx.run("update sessions set snapshot = null, snapshot_at = null"))
        found = [
            await rows(memory, f"select * from {table} where {which} order by 1, 2") for table, which in tables.items()
        ]
        return hashlib.sha256(repr(found).encode()).hexdigest()

    async def figures() -> dict[str, int]:
        counted = {
            "memories": "select count(*) from memories where kind = 'fact'",
            "derived": "select count(*) from memories where kind <> 'fact'",
            "messages": "select count(*) from messages where role = 'user' and erased_at is null",
            "replies": "select count(*) from messages where role <> 'user' and erased_at is null",
            "files": "select count(*) from attachments",
        }
        return {name: int(str((await rows(memory, sql))[0][0])) for name, sql in counted.items()}

    others, before = await of_others(), await figures()
    receipt = await forgotten(memory, ada, "topic:secret")
    after = await figures()
    assert {name: before[name] - after[name] for name in before} == {name: getattr(receipt, name) for name in before}
    assert (receipt.memories, receipt.messages, receipt.files) == (2, 1, 3)
    assert await of_others() == others
    assert [m.value for m in await memory.browse.memories(bob, limit=9)] != []


async def test_the_same_request_changes_nothing_a_second_time(memory: Service, clock: Clock) -> None:
    """The process may end between the erasing and the receipt; the request is then taken up again."""
    turn = await exchange(memory, private("ada"), "I live in Lisbon", clock)
    where, _ = private("ada")
    inbox_id = await received(memory, where.session_key)
    preview = await memory.forgetting.preview(turn.context, "lisbon")
    assert preview is not None
    first = await memory.forgetting.forget(turn.context, inbox_id, None, preview.selection, "words")
    await exchange(memory, private("ada"), "I live in Lisbon after all", clock)
    state = await rows(memory, "select id, text from messages order by id")
    again = await memory.forgetting.forget(turn.context, inbox_id, None, Selection(what="all"), "words")
    assert again == first == await memory.forgetting.receipt(inbox_id)
    assert await rows(memory, "select id, text from messages order by id") == state
    assert ("pending",) in await rows(memory, f"select state from inbox where id = {inbox_id}")


async def test_a_question_is_answered_once(memory: Service, ada: Context, clock: Clock) -> None:
    """Two presses on one button are one answer."""
    turn = await exchange(memory, private("ada"), "I live in Lisbon", clock)
    where, _ = private("ada")

    def ask(tx: Transaction) -> None:
        edits = Edits(tx, ada, now=clock(), new_id=counting)
        edits.ask("forget", Selection(what="here").fields(), choices=("words", "memory", "no"), preset="words")

    await wrote(memory, ask)
    question = await memory.questions.open_to(turn.context)
    assert question is not None
    selection = Selection.from_json(question.payload)
    assert selection == Selection(what="here")
    done = await memory.forgetting.forget(ada, await received(memory, where.session_key), question, selection, "words")
    late = await memory.forgetting.forget(ada, await received(memory, where.session_key), question, selection, "words")
    assert done is not None and done.messages == 1 and late is None


def test_a_selection_waits_as_ids_and_figures() -> None:
    """A question's payload is never text."""
    wanted = Selection(what="memories", memory_ids=(1, 2), message_ids=(3,), first=4, last=5)
    assert Selection.from_json(wanted.to_json()) == wanted
    for broken in ('{"what": "world"}', "[]"):
        with pytest.raises(ValueError):
            Selection.from_json(broken)


async def test_without_the_words_they_stay_and_teach_nothing_more(memory: Service, clock: Clock) -> None:
    """ "This memory only": history keeps what was said, and recall does not."""
    turn = await exchange(memory, private("ada"), "I live in Lisbon", clock, answer="Lisbon, nice!")
    receipt = await forgotten(memory, turn.context, "lisbon", how="memory")
    assert (receipt.memories, receipt.messages, receipt.words) == (1, 0, False)
    assert await rows(memory, "select text, learn, recall from messages order by id") == [
        ("I live in Lisbon", 0, 0),
        ("Lisbon, nice!", 0, 0),
    ]
    assert await memory.browse.search(turn.context, "Lisbon", limit=5) == []


async def test_what_is_forgotten_is_not_learned_again(memory: Service, clock: Clock) -> None:
    """Neither from the old words by whatever reads them, nor by a job or an import; said again later, it is."""
    turn = await exchange(memory, private("ada"), "I live in Lisbon", clock)
    said_at = turn.said[0].said_at
    await forgotten(memory, turn.context, "lisbon")
    await memory.learner.flush(turn.context.session.id, "test")
    scope = turn.context.scope

    def draft(origin: str, at: int) -> Draft:
        return Draft(
            kind="fact", owner_id=scope.writes_to, author_id=scope.speaker_id, subject_id=scope.speaker_id,
            category="place", key="home", value="Lisbon", importance=7, confidence=1.0, learned_at=at,
            origin=origin, local_date="2026-11-21",  # type: ignore[arg-type]
        )  # fmt: skip

    for origin in ("extracted", "imported", "derived"):
        kept = await memory.database.write(
            lambda tx, origin=origin: keep.keep(  # type: ignore[misc]
                tx, scope, draft(origin, said_at), source_ids=(), now=clock(), new_id=counting
            )
        )
        assert kept is None
    assert await memory.browse.memories(turn.context, limit=5) == []
    clock.move(days=1)
    await exchange(memory, private("ada"), "I live in Lisbon", clock)
    assert [m.value for m in await memory.browse.memories(turn.context, limit=5)] == ["Lisbon"]


async def test_what_was_merged_with_it_comes_back(memory: Service, clock: Clock) -> None:
    """A merged row can't say half of itself; what else it was made of stands alone again."""
    turn = await exchange(memory, private("ada"), "two things", clock)
    one = await planted(memory, turn.context, "likes oolong tea", sources=[turn.said[0].id])
    two = await planted(memory, turn.context, "likes espresso", sources=[turn.said[0].id])
    await derived(memory, turn.context, "likes oolong tea and espresso", [one, two])
    preview = await memory.forgetting.preview(turn.context, "oolong")
    assert preview is not None and preview.staying == 1  # the other one of that message
    (short_id,) = [m.short_id for m in preview.shown if m.value == "likes oolong tea"]
    receipt = await forgotten(memory, turn.context, short_id)
    assert (receipt.memories, receipt.derived, receipt.restored, receipt.keep_source) == (1, 1, 1, 1)
    (left,) = await memory.browse.memories(turn.context, limit=9)
    assert left.value == "likes espresso"
    shown = await memory.database.read(lambda reader: lineage.sources(reader, turn.context.scope, [left.id]))
    assert [source.text for source in shown[left.id]] == [None]


async def test_the_profile_forgets_with_its_facts(memory: Service, clock: Clock) -> None:
    """A slot is made of facts; the older home, said elsewhere, stays history and does not return."""
    await exchange(memory, private("ada"), "I live in Porto", clock)
    turn = await exchange(memory, private("ada"), "I live in Lisbon now", clock)
    assert [m.value for m in await profile_of(memory, turn.context)] == ["Lisbon"]
    await forgotten(memory, turn.context, await id_of(memory, turn.context, "Lisbon"))
    assert await profile_of(memory, turn.context) == []
    assert await rows(memory, "select value, valid_until is null from memories where kind = 'fact'") == [("Porto", 0)]


async def test_an_old_version_that_says_the_same_goes_along(memory: Service, clock: Clock) -> None:
    """Else the words would stay one step back in its history."""
    turn = await exchange(memory, private("ada"), "something", clock)
    old = await planted(memory, turn.context, "the vault code word is marmalade")
    new = await planted(memory, turn.context, "vault code word is marmalade")
    await wrote(memory, lambda tx: memories.supersede(tx, old, new, at=clock()))
    short_id = await id_of(memory, turn.context, "vault")
    assert (await forgotten(memory, turn.context, short_id)).memories == 2
    assert await rows(memory, "select value from memories") == []


async def test_a_twin_from_the_same_message_goes_along(memory: Service, clock: Clock) -> None:
    """Other words for the kind make it no other fact; the opposite, another value or another message does."""
    turn = await exchange(memory, private("ada"), "something", clock)
    other = await exchange(memory, private("ada"), "something else", clock)
    ids = [turn.said[0].id, other.said[0].id]
    for value, key, source in (
        ("marzipan", "allergy", ids[0]),
        ("allergic to marzipan", "note", ids[0]),
        ("marzipan", "dislikes", ids[1]),
        ("nougat", "allergy", ids[0]),
    ):
        await planted(memory, turn.context, value, key=key, sources=[source])
    short_id = await id_of(memory, turn.context, "allergic to marzipan")
    receipt = await carried_out(
        memory,
        turn.context,
        (await memory.forgetting.preview(turn.context, short_id)).selection,  # type: ignore[union-attr]
        how="memory",
    )
    assert receipt.memories == 2
    left = await rows(memory, "select value, key from memories where value <> '' order by id")
    assert left == [("marzipan", "dislikes"), ("nougat", "allergy")]


async def test_the_same_said_twice_is_two_sources(memory: Service, clock: Clock) -> None:
    """Also where a second message said it word for word and taught nothing new."""
    for _ in range(2):
        turn = await exchange(memory, private("ada"), "I live in Lisbon", clock)
    receipt = await forgotten(memory, turn.context, "lisbon")
    assert receipt.messages == 2
    assert await rows(memory, "select text from messages where role = 'user'") == [("",), ("",)]


async def previewed(memory: Service, context: Context, words: str, **how: object) -> ForgetPreview | None:
    return await memory.forgetting.preview(context, words, **how)  # type: ignore[arg-type]


async def test_what_can_be_typed(memory: Service, clock: Clock) -> None:
    """Ids, topics, names, times, places, words; anything else is words."""
    clock.move(days=-10)
    await exchange(memory, private("ada"), "I live in Lisbon", clock)
    clock.move(days=10)
    turn = await exchange(memory, private("ada"), "My sister Wanda likes chess", clock)
    context = turn.context
    await planted(memory, context, "the boat needs paint", topic="Boat")
    await planted(memory, context, "April plays the cello", subject="April")

    async def values(words: str) -> list[str]:
        preview = await previewed(memory, context, words)
        return [] if preview is None else sorted(memory.value for memory in preview.shown)

    assert await values("topic:boat") == await values("主题：Boat") == ["the boat needs paint"]
    assert await values("about:april") == ["April plays the cello"]
    assert any("Wanda" in value or "chess" in value for value in await values("about:Wanda"))
    assert await values("2026-11-11..2026-11-12") == await values("2026-11-11") == ["Lisbon"]
    assert await values("boat paint") == ["the boat needs paint"]
    assert await values("submarine") == []
    assert await values(await id_of(memory, context, "boat")) == ["the boat needs paint"]
    here, everything = await previewed(memory, context, "here"), await previewed(memory, context, "全部")
    assert here is not None and here.selection == Selection(what="here") and here.messages == 2
    assert everything is not None and everything.memories >= here.memories + 2
    with pytest.raises(NotFound):
        await previewed(memory, context, "m_nothere")
    profile = (await profile_of(memory, context))[0]
    with pytest.raises(Derived):
        await previewed(memory, context, profile.short_id)


async def test_a_fact_is_meant_by_the_words_that_taught_it(memory: Service, clock: Clock) -> None:
    """The fact says "allergic to Milch", which holds no word of "that I can't stand milk" but the milk."""
    turn = await exchange(memory, private("ada"), "Ich vertrage keine Milch", clock)
    preview = await previewed(memory, turn.context, "ich keine Milch vertrage")
    assert preview is not None and [one.value for one in preview.shown] == ["Milch"]


async def test_words_that_taught_nothing_can_be_forgotten_too(memory: Service, clock: Clock) -> None:
    """Words that somebody wants gone need not have become a memory."""
    turn = await exchange(memory, private("ada"), "the zebra was odd, wasn't it?", clock, answer="Quite a zebra.")
    preview = await previewed(memory, turn.context, "zebra")
    assert preview is not None and (preview.messages, preview.replies) == (1, 1)
    await carried_out(memory, turn.context, preview.selection)
    assert await rows(memory, "select text from messages") == [("",), ("",)]


async def test_a_month_that_is_somebodys_name_is_words(memory: Service, clock: Clock) -> None:
    """A word that may mean two things is looked for as it stands."""
    turn = await exchange(memory, private("ada"), "My friend April likes chess", clock)
    preview = await previewed(memory, turn.context, "April")
    assert preview is not None and preview.selection.what == "memories"


async def test_in_a_group_one_forgets_what_is_ones_own(memory: Service, clock: Clock) -> None:
    """One's own words and memories about oneself go; what others said stays, and an admin has all of it erased."""
    hers = await exchange(memory, group("club", "ada"), "I live in Lisbon", clock, answer="Lisbon!")
    his = await exchange(memory, group("club", "bob"), "I live in Lisbon, too", clock, answer="You, too!")
    await exchange(memory, private("ada"), "I live in Faro", clock)
    theirs = [m for m in await memory.browse.memories(hers.context, limit=9) if m.author_id == his.context.speaker.id]
    with pytest.raises(NotYours):
        await previewed(memory, hers.context, theirs[0].short_id)
    preview = await previewed(memory, hers.context, "lisbon")
    assert preview is not None and (preview.memories, preview.messages, preview.skipped) == (1, 1, 1)
    everything = await previewed(memory, hers.context, "all")
    assert everything is not None and (everything.memories, everything.messages) == (1, 1)
    await carried_out(memory, hers.context, everything.selection)
    said = await rows(memory, "select text from messages where role = 'user' order by id")
    assert said == [("",), ("I live in Lisbon, too",), ("I live in Faro",)]
    receipt = await forgotten(memory, hers.context, "all", may_all=True)
    assert receipt.messages == 1
    assert await rows(memory, "select text from messages where text <> '' order by id") == [
        ("I live in Faro",), ("All right.",)
    ]  # fmt: skip


async def test_what_somebody_else_said_of_one_is_unlearned_and_stays_theirs(memory: Service, clock: Clock) -> None:
    """The memory is about Ada, the words are Bob's."""
    hers = await exchange(memory, group("club", "ada"), "hello there, all of you", clock)
    his = await exchange(memory, group("club", "bob"), "Ada hides a wombat in the cellar", clock)
    await planted(
        memory, his.context, "hides a wombat in the cellar", sources=[his.said[0].id],
        subject_id=hers.context.speaker.id,
    )  # fmt: skip
    receipt = await forgotten(memory, hers.context, "wombat")
    assert (receipt.memories, receipt.messages) == (1, 0)
    assert await rows(memory, f"select text, learn, recall from messages where id = {his.said[0].id}") == [
        ("Ada hides a wombat in the cellar", 0, 0)
    ]


async def test_a_reply_names_what_is_meant(memory: Service, clock: Clock) -> None:
    """A reply to one's own message forgets it and what it taught; one to an answer offers the memories in it."""
    turn = await exchange(memory, private("ada"), "I live in Lisbon", clock)
    preview = await previewed(memory, turn.context, "", reply_to=turn.said[0].platform_ref)
    assert preview is not None and (preview.memories, preview.messages) == (1, 1)
    answered = await exchange(memory, private("ada"), "where is my home?", clock, answer="You live in Lisbon.")
    await wrote(memory, lambda tx: tx.run("update outbox set platform_ref = 'shown' where turn_id = ?", (answered.id,)))
    preview = await previewed(memory, turn.context, "", reply_to="shown")
    assert preview is not None and [m.value for m in preview.shown] == ["Lisbon"]
    assert await previewed(memory, turn.context, "", reply_to="never") is None
    bob = await memory.identities.context(*private("bob"))
    assert await previewed(memory, bob, "", reply_to=turn.said[0].platform_ref) is None


async def test_nothing_is_left_of_a_person_who_wants_out(tmp_path: Path, clock: Clock) -> None:
    """Their chats, what they said in groups, what is known of them, and their name; others stay."""
    path = tmp_path / "remora.db"
    words: list[str] = []
    async with opened(path, clock) as memory:
        where, who = private("ada")
        who = Who(platform=who.platform, user_id=who.user_id, name="Zqadelinde")
        club, _ = group("club", "ada")
        await episode(memory, (where, who), clock, words)
        await episode(memory, (club, who), clock, words)
        bobs = await exchange(memory, group("club", "bob"), "I live in Faro", clock)
        ada = await memory.identities.context(where, who)
        receipt = await carried_out(memory, ada, Selection(what="me"))
        assert receipt.scrubbed and receipt.messages == 2
        left = {table: row for table, columns in word_columns.WORDS.items() for column in columns
                for row in await rows(memory, f"select {column} from {table}")
                if any(word in str(row[0]) for word in [*words, "Zqadelinde"])}  # fmt: skip
        assert left == {}
        assert traces(path, [*words, "Zqadelinde"]) == {}
        assert stem.cache_info().currsize == 0
        assert [m.value for m in await memory.browse.memories(bobs.context, limit=9)] == ["Faro"]
        assert ("I live in Faro",) in await rows(memory, "select text from messages")


async def test_edited_and_deleted_words_leave_the_files_as_well(tmp_path: Path, clock: Clock) -> None:
    """Nobody waits for it: the next forget, or the daily hour, takes their traces along."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        words: list[str] = []
        where, who = private("ada")
        for n in range(2):
            word = secret(n)
            words.append(word)
            steps, effects = [json.dumps({"text": word})], [word]
            turn = await exchange(memory, (where, who), f"I live in {word}", clock, steps=steps, effects=effects)
            ref = turn.said[0].platform_ref
            assert ref is not None
            if n:
                await memory.requests.retract("console", where.session_key, [ref])
            else:
                await memory.requests.amend(
                    where, who, await received(memory, where.session_key), platform_ref=ref, text="I live in Porto",
                    compose=lambda text, _: text,
                )  # fmt: skip
        assert await memory.forgetting.finish()
        assert traces(path, words) == {}
        assert await rows(memory, "select count(*) from erasures where scrubbed_at is null") == [(0,)]


@pytest.mark.parametrize("door", ["reminder", "cancelled", "done", "task", "waiting"])
async def test_replaced_words_of_any_kind_leave_the_files_in_the_quiet_hour(
    tmp_path: Path, clock: Clock, door: str
) -> None:
    """They stand in free pages and in the log until then, though no row holds them any more."""
    path, word = tmp_path / "remora.db", secret(7)
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        at = reminders.due(datetime.fromtimestamp(clock() / 1000 + 3_600, UTC))
        if door == "waiting":
            await received(memory, ada.session.key, json.dumps({"text": word}))
            assert await memory.mailbox.reword(ada.session.key, lambda _: "{}") is not None
        elif door == "task":
            await act(memory, ada, lambda edits: edits.set_task(word))
            await act(memory, ada, lambda edits: edits.set_task("the garden"))
        else:
            made = await act(memory, ada, lambda edits: edits.reminding.add(f"feed {word}", at, language="en"))
            changes = {
                "reminder": lambda edits: edits.reminding.reword(made, "feed the cat"),
                "cancelled": lambda edits: edits.reminding.cancel(made),
                "done": lambda edits: edits.reminding.done(made),
            }
            await act(memory, ada, changes[door])
        assert await memory.forgetting.finish()
        assert traces(path, [word]) == {}


async def test_what_a_turn_under_way_brings_goes_when_it_has_ended(memory: Service, clock: Clock) -> None:
    """Its model has read the words; the answer comes after they were erased."""
    where, who = private("ada")
    inbox_id = await received(memory, where.session_key)
    said = Said(
        inbox_id=inbox_id, text="the zebra is mine", tokens=1, said_at=clock(), platform_ref="z", reply_to=None,
        learn=True,
    )  # fmt: skip
    turn = await memory.turns.begin(where, who, [said])
    receipt = await carried_out(memory, turn.context, Selection(what="here"))
    assert receipt.messages == 1 and not receipt.scrubbed
    view = await memory.turns.look(turn, Budget(), window_tokens=1_000, window_messages=50)
    answer = Utterance(role="assistant", text="zebra, I see", tokens=1, said_at=clock())
    await memory.turns.finish(turn, view, Outcome(pieces=(Part(text="zebra, I see"),), utterances=(answer,)))
    assert await memory.forgetting.finish()
    assert await rows(memory, "select text from messages where text <> ''") == []
    assert await rows(memory, "select text from outbox where text <> ''") == []


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_what_was_erased_is_erased_again_in_a_store_put_back(tmp_path: Path, clock: Clock) -> None:
    """The list beside the database holds ids; rows that got the same ids later are others."""
    words: list[str] = []
    async with opened(tmp_path / "remora.db", clock) as memory:
        await episode(memory, private("ada"), clock, words)
        ada = await memory.identities.context(*private("ada"))
        backup = sqlite3.connect(tmp_path / "old.db")
        with sqlite3.connect(tmp_path / "remora.db") as source:
            source.backup(backup)
        backup.close()
        source.close()
        await forgotten(memory, ada, "topic:secret")
        ((what, erased_at),) = await rows(memory, "select what, erased_at from erasures")
    clock.move(days=1)
    async with opened(tmp_path / "old.db", clock) as memory:
        late = await exchange(memory, private("bob"), "quite another thing", clock)
        gone = json.loads(str(what))
        gone["messages"].append(late.said[0].id)
        await wrote(memory, lambda tx: erase.replay(tx, json.dumps(gone), erased_at=int(str(erased_at)), now=clock()))
        held = await rows(memory, "select text from messages where role = 'user' order by id")
        assert held == [("",), ("quite another thing",)]
        assert await rows(memory, "select value from memories where topic = 'secret'") == []
