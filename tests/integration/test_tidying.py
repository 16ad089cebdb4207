"""The day's tidying of a store: old words, old notes, backups, and that no part holds up another.

Invariant: what must go is looked for in the bytes of the files, what must stay is read as people read it.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.context import Context
from memory.errors import StoreBusy, StoreUnwritable
from memory.forgetting import expired
from memory.forgetting.forgetting import Forgetting, Scrubbing
from memory.housekeeping import Housekeeping, Keeping
from memory.jobs import runs
from memory.recall.search import Search
from memory.service import Service
from memory.store import history, vectors
from memory.store.attachments import Attached
from memory.store.database import Transaction
from memory.store.history import Utterance
from memory.transfer.backups import Retention
from memory.transfer.formats import remora
from tests.kit import stores
from tests.kit.fakes import DAY, Clock
from tests.kit.forgetting import files_of, secret, standing, traces
from tests.kit.stores import planted, profile_of, rows, wrote
from tests.kit.talk import act, exchange, facts, group, leave_chat, private, received, say


def opened(
    folder: Path, clock: Clock, *, daily: bool = False, keep_days: int = 14, **keeping: Any
) -> AbstractAsyncContextManager[Service]:
    retention = Retention(folder=folder.parent / "copies", keep_days=keep_days, daily=daily)
    return stores.opened(folder / "remora.db", clock, keeping=replace(Keeping(retention=retention), **keeping))


def copies(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder.parent / "copies").glob("*.db"))


async def told(memory: Service, clock: Clock, words: list[str]) -> Context:
    """A turn with all that ever keeps a copy of its words, and what lies beside it in the mailbox."""

    def new() -> str:
        words.append(secret(len(words)))
        return words[-1]

    turn = await exchange(
        memory,
        private("ada"),
        f"The plan is {new()}",
        clock,
        files=[
            Attached(kind="file", name=f"{new()}.txt", media_type="text/plain", size=1, state="text", text=new()),
            Attached(kind="image", name="p", media_type="", size=1, state="picture", data=new().encode()),
        ],
        answers=[
            Utterance(
                role="assistant", text="", tokens=1, said_at=clock(), tool_calls=json.dumps([{"arguments": new()}])
            ),
            Utterance(role="tool", text=f"Saved: {new()}", tokens=1, said_at=clock(), tool_call_id="1"),
        ],
        answer=f"So it is {new()}",
        steps=[json.dumps({"text": new()})],
        effects=[f"found {new()}"],
        pieces=[f"unsent {new()}"],
    )
    failed = await received(memory, private("ada")[0].session_key, json.dumps({"text": new(), "author_id": "ada"}))
    undelivered, summed_up, task, vector = new(), new(), new(), new()

    def act(tx: Transaction) -> None:
        tx.run("update inbox set state = 'failed' where id = ?", (failed,))
        tx.run(
            "insert into outbox (session_key, kind, chunk, text, state, run, created_at)"
            " values (?, 'message', 0, ?, 'dead', 'r', ?)",
            (turn.context.session.key, undelivered, clock()),
        )
        tx.run(
            "update sessions set summary = ?, active_task = ? where id = ?",
            (f"They spoke of {summed_up}", task, turn.context.session.id),
        )
        vectors.cache(tx, 2 * turn.said[0].id + 1, {b"h": np.frombuffer(vector.encode(), dtype="<f4")}, now=clock())

    await wrote(memory, act)
    return turn.context


# Old words ------------------------------------------------------------------------------------------------------


async def test_words_older_than_configured_leave_the_files_and_all_copies(tmp_path: Path, clock: Clock) -> None:
    """Whoever configures it wants no transcript of last year on the disk."""
    folder = tmp_path / "store"
    words: list[str] = []
    async with opened(folder, clock, transcript_days=30) as memory:
        ada = await told(memory, clock, words)
        await memory.indexed()
        assert standing(files_of(folder / "remora.db"), words) == words
        clock.move(days=29)
        assert await memory.housekeeping.tidy() == {}
        clock.move(days=2)
        assert await memory.housekeeping.tidy() == {"messages": 4}
        assert traces(folder / "remora.db", words) == {}
        assert not await memory.browse.search(ada, words[0], limit=5)
        assert await memory.housekeeping.tidy() == {}
    assert traces(folder / "remora.db", words) == {}


async def test_what_was_learned_stays_and_says_that_its_source_is_erased(tmp_path: Path, clock: Clock) -> None:
    """A transcript has its time; what somebody wanted remembered has not."""
    async with opened(tmp_path / "store", clock, transcript_days=30) as memory:
        turn = await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        clock.move(days=31)
        await exchange(memory, private("ada"), "I like tea.", clock)
        assert await memory.housekeeping.tidy() == {"messages": 2}
        assert await facts(memory, turn.context) == [("home", "Quaxolia"), ("likes", "tea")]
        home = next(m for m in await memory.browse.memories(turn.context, limit=9) if m.key == "home")
        shown = await act(memory, turn.context, lambda edits: edits.show(home.short_id))
        assert [source.text for source in shown.sources] == [None]
        assert {slot.key for slot in await profile_of(memory, turn.context)} >= {"place"}
        texts = await rows(memory, "select text from messages order by id")
        assert texts == [("",), ("",), ("I like tea.",), ("All right.",)]
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, turn.context) == [("home", "Quaxolia"), ("likes", "tea")]
        # Told again it is known again: it was never forgotten.
        await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        assert await facts(memory, turn.context) == [("home", "Quaxolia"), ("likes", "tea")]


async def test_words_that_were_never_read_teach_nothing_afterwards(tmp_path: Path, clock: Clock) -> None:
    """A backlog that waited too long has no words left to learn from, and holds up nothing."""
    async with opened(tmp_path / "store", clock, transcript_days=1) as memory:
        turn = await say(memory, private("ada"), "I live in Quaxolia.", ref="1", clock=clock)
        clock.move(days=2)
        assert await memory.housekeeping.tidy() == {"messages": 2}
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, turn.context) == []


async def test_without_a_number_of_days_nothing_goes_by_its_age(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "store", clock) as memory:
        await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        clock.move(days=4_000)
        assert await memory.housekeeping.tidy() == {}
        assert await rows(memory, "select text from messages") == [("I live in Quaxolia.",), ("All right.",)]


async def test_a_summary_and_a_task_stay_as_long_as_anything_is_left_there(tmp_path: Path, clock: Clock) -> None:
    """A talk that goes on for months must not lose its thread each night."""
    async with opened(tmp_path / "store", clock, transcript_days=30) as memory:
        sessions = [
            (await exchange(memory, place, "Hello there.", clock)).context.session.id
            for place in (private("ada"), group("club", "ada"))
        ]
        fresh = (await memory.identities.context(*private("bob"))).session.id

        def act(tx: Transaction) -> None:
            for session_id in (*sessions, fresh):
                tx.run("update sessions set summary = 'summed up', active_task = 'x' where id = ?", (session_id,))

        clock.move(days=31)
        await wrote(memory, act)
        await exchange(memory, private("ada"), "Hello again.", clock)
        await wrote(memory, lambda tx: tx.run("update sessions set created_at = ? where id = ?", (clock(), fresh)))
        await memory.housekeeping.tidy()
        kept = await rows(memory, "select id from sessions where summary is not null and active_task is not null")
        assert kept == [(sessions[0],), (fresh,)]


async def test_a_turn_under_way_keeps_its_words(tmp_path: Path, clock: Clock) -> None:
    """A message that came days late is answered before it goes."""
    async with opened(tmp_path / "store", clock, transcript_days=1) as memory:
        turn = await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        await wrote(memory, lambda tx: tx.run("update turns set state = 'running'"))
        clock.move(days=2)
        assert await memory.housekeeping.tidy() == {}
        await wrote(memory, lambda tx: history.end_turn(tx, turn.id, error=None, portions={}, now=clock()))
        assert await memory.housekeeping.tidy() == {"messages": 2}


async def test_retention_stopped_half_way_goes_on(tmp_path: Path, clock: Clock) -> None:
    """Each portion is a transaction of its own, and what is done is done."""
    async with opened(tmp_path / "store", clock, transcript_days=1) as memory:
        for n in range(130):
            await memory.turns.record(
                *private("ada"), [Utterance(role="user", text=f"line {secret(n)}", tokens=3, said_at=clock())]
            )
        clock.move(days=2)
        first = await memory.database.read(lambda r: expired.said_before(r, before=clock() - DAY, after=0))
        assert len(first) == 130
        await wrote(memory, lambda tx: expired._blank_old(tx, message_ids=first[:100], now=clock()))
        assert await memory.housekeeping.tidy() == {"messages": 30}
        await memory.indexed()
        assert traces(tmp_path / "store" / "remora.db", [secret(n) for n in range(130)]) == {}
        clock.move(days=2)
        await memory.housekeeping.tidy()
        assert await rows(memory, "select count(*) from erasures") == [(0,)]


# Notes of our own -----------------------------------------------------------------------------------------------


async def test_old_runs_go_and_paid_vectors_but_not_what_was_taken_back(tmp_path: Path, clock: Clock) -> None:
    """A record of each night for each owner would outgrow what it is about; an undoing holds for good."""
    async with opened(tmp_path / "store", clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        memory_id = await planted(memory, ada, "likes tea")

        def act(tx: Transaction) -> None:
            for n, job in enumerate(("decay", "enrich", "merge")):
                run = runs.begin(tx, job, 1, "2026-11-21", now=clock() + n * 300 * DAY)
                assert run is not None
                runs.add_items(tx, run.id, [ada.scope.writes_to])
                runs.end_item(tx, run.id, ada.scope.writes_to, "undone" if job == "enrich" else "done", now=clock())
            vectors.cache(tx, 2 * memory_id, {b"h": np.zeros(4, dtype="<f4")}, now=clock())

        await wrote(memory, act)
        clock.move(days=29)
        await memory.housekeeping.tidy()
        assert await rows(memory, "select count(*) from embedding_cache") == [(1,)]
        clock.move(days=2)
        await memory.housekeeping.tidy()
        assert await rows(memory, "select count(*) from embedding_cache") == [(0,)]
        clock.move(days=690)
        assert await memory.housekeeping.tidy() == {"runs": 1}
        left = "select job from job_runs where id in (select run_id from job_items) order by id"
        assert await rows(memory, left) == [("enrich",), ("merge",)]


async def test_places_that_were_left_go_with_the_day(tmp_path: Path, clock: Clock) -> None:
    """The thirty days of a chat that the bot was removed from."""
    async with opened(tmp_path / "store", clock) as memory:
        await exchange(memory, group("club", "ada"), "we meet in Quaxolia", clock)
        await memory.mailbox.presence("console", "console", "club", present=False)
        clock.move(days=31)
        figures = await memory.housekeeping.tidy()
        assert (figures["chats"], figures["messages"]) == (1, 2)
        assert await memory.housekeeping.tidy() == {}


# Backups --------------------------------------------------------------------------------------------------------


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_backup_a_day_and_none_that_is_too_old(tmp_path: Path, clock: Clock) -> None:
    """A backup that /backup made an hour ago does for today, and another try of the day makes no second one."""
    folder = tmp_path / "store"
    async with opened(folder, clock, daily=True, keep_days=2) as memory:
        assert await memory.housekeeping.tidy() == {"backups": 1}
        assert await memory.housekeeping.tidy() == {}
        clock.move(days=1)
        made = await memory.backups.make()
        clock.move(minutes=60)
        assert await memory.housekeeping.tidy() == {}
        clock.move(days=1)
        assert await memory.housekeeping.tidy() == {"backups": 1, "backups_dropped": 1}
        assert len(copies(folder)) == 2 and made.name in copies(folder)
        clock.move(days=-1)  # put back: a backup of tomorrow is none of today
        assert await memory.housekeeping.tidy() == {"backups": 1}


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_no_backup_is_made_where_it_is_switched_off_but_old_ones_go(tmp_path: Path, clock: Clock) -> None:
    """People were told the day on which the last one is gone."""
    folder = tmp_path / "store"
    async with opened(folder, clock) as memory:
        await memory.backups.make()
        clock.move(days=15)
        assert await memory.housekeeping.tidy() == {"backups_dropped": 1}
        assert copies(folder) == []


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_the_days_backup_holds_nothing_that_had_to_go_that_day(tmp_path: Path, clock: Clock) -> None:
    """The copy is made last."""
    folder = tmp_path / "store"
    words: list[str] = []
    async with opened(folder, clock, transcript_days=30, daily=True) as memory:
        await told(memory, clock, words)
        await memory.indexed()
        clock.move(days=31)
        assert await memory.housekeeping.tidy() == {"messages": 4, "backups": 1}
    (copy,) = copies(folder)
    assert traces(folder.parent / "copies" / copy, words) == {}


# Trouble --------------------------------------------------------------------------------------------------------


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_part_that_fails_holds_up_no_other_and_is_told(tmp_path: Path, clock: Clock) -> None:
    """A folder of backups that can't be written must not keep words that are to go."""
    folder = tmp_path / "store"
    async with opened(folder, clock, transcript_days=1, daily=True) as memory:
        await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        (folder.parent / "copies").write_text("a file is in the way")
        clock.move(days=2)
        with pytest.raises(StoreUnwritable):
            await memory.housekeeping.tidy()
        assert await rows(memory, "select text from messages") == [("",), ("",)]
        (folder.parent / "copies").unlink()
        assert await memory.housekeeping.tidy() == {"backups": 1}


@pytest.mark.sqlite("another program reads its file")
async def test_traces_that_somebody_keeps_in_the_files_are_told(tmp_path: Path, clock: Clock) -> None:
    """A day on which the files were not rid of what was erased is no day that went well."""
    async with opened(tmp_path / "store", clock, transcript_days=1) as memory:
        impatient = Forgetting(
            memory.database, search=Search(memory.database, now=clock), now=clock, new_id=memory.new_id,
            scrubbing=Scrubbing(wait_seconds=0.2),
        )  # fmt: skip
        tidying = Housekeeping(
            memory.database, keeping=memory.keeping, forgetting=impatient, backups=memory.backups, now=clock
        )
        await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        clock.move(days=2)
        assert memory.database.driver is not None
        other = memory.database.driver.module.connect(str(memory.database.path))
        other.execute("begin")
        other.execute("select count(*) from messages").fetchone()
        with pytest.raises(StoreBusy):
            await tidying.tidy()
        other.close()
        assert await tidying.tidy() == {}


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_as_a_job_it_is_kept_in_the_record_of_runs(tmp_path: Path, clock: Clock) -> None:
    """Once a day, with its figures, and tried again when it failed."""
    folder = tmp_path / "store"
    async with opened(folder, clock, daily=True) as memory:
        (folder.parent / "copies").write_text("a file is in the way")
        run = await memory.jobs.once("assistant", "tidy", "2026-11-21", memory.housekeeping.tidy)
        assert run is not None and (run.state, run.error) == ("failed", StoreUnwritable.code)
        assert await memory.jobs.once("assistant", "tidy", "2026-11-21", memory.housekeeping.tidy) is None
        (folder.parent / "copies").unlink()
        clock.move(minutes=11)
        run = await memory.jobs.once("assistant", "tidy", "2026-11-21", memory.housekeeping.tidy)
        assert run is not None and (run.state, run.counts) == ("done", {"backups": 1})
        assert await memory.jobs.once("assistant", "tidy", "2026-11-21", memory.housekeeping.tidy) is None


async def test_old_exports_go_and_other_files_stay(tmp_path: Path, clock: Clock) -> None:
    """Whoever had everything written down does not leave it lying for ever; nobody's own file is taken for one."""
    folder = tmp_path / "store"
    of = {"kind": "person", "platform": "console", "user_id": "ada", "name": "Ada"}
    async with opened(folder, clock, export_days=7) as memory:
        exports = folder / "exports"
        exports.mkdir()
        written = {
            "old.json": remora.write(of=of, exported_at=0, memories=[], messages=[]),
            "old.md": remora.page(of=of, exported_at=0, memories=[], messages=[]).encode(),
            "own.json": b"[1]",
            "own.md": b"# Recipes",
            "own.txt": b"",
        }
        for name, content in written.items():
            (exports / name).write_bytes(content)
            os.utime(exports / name, (clock.at / 1000, clock.at / 1000))
        clock.move(days=6)
        assert "exports" not in await memory.housekeeping.tidy()
        shutil.copy(exports / "old.json", exports / "new.json")
        os.utime(exports / "new.json", (clock.at / 1000, clock.at / 1000))
        clock.move(days=2)
        assert (await memory.housekeeping.tidy())["exports"] == 2
        assert sorted(path.name for path in exports.iterdir()) == ["new.json", "own.json", "own.md", "own.txt"]


async def test_a_left_chat_goes_when_the_operator_says(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "store", clock, left_chat_days=3) as memory:
        turn = await exchange(memory, private("ada"), "I live in Quaxolia.", clock)
        await memory.learner.flush(turn.context.session.id, "test")
        await leave_chat(memory, "ada")
        clock.move(days=2)
        assert "chats" not in await memory.housekeeping.tidy()
        clock.move(days=2)
        assert (await memory.housekeeping.tidy())["chats"] == 1
        assert await facts(memory, turn.context) == []
