"""kill -9 at any moment of the work of a night: each step is done or not, with its record and its cost, and in the end
all is as if nothing had been.

`REMORA_KILLS` sets how often the process is killed (a few in the ordinary run, `make crash` many).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import pytest

from memory.context import Context
from memory.jobs.compress import EVENTS
from memory.service import Service
from memory.store import memories
from memory.store.database import Transaction
from memory.store.memories import Draft
from tests.crash.night import TOGETHER, fact_of, open_store, work
from tests.kit.fakes import NOON
from tests.kit.patience import SECONDS
from tests.kit.talk import group, private

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("REMORA_KILLS", "12"))
PLACES = (private("ada"), private("bob"), group("club", "ada"))
#: The memories of each of them: pairs of events that tell something, events that tell nothing, topics of four facts.
PAIRS, IDLE, TOPICS = 35, 20, 4
#: Lives that take up the same run; it is given up after one more.
LIVES_A_RUN = 3
#: Seconds of a life at most, from its start or from when its store is open; the whole night takes some one.
LIVES = 0.5
#: Commits of a life at most; the whole night has some fifty.
COMMITS = 45


def test_killing_a_night_at_any_moment_leaves_every_step_whole(tmp_path: Path) -> None:
    """Whatever was cut short, who is left goes on from there, and nobody can tell at last that there was anything."""
    prepared, undisturbed = tmp_path / "prepared.db", tmp_path / "undisturbed.db"
    asyncio.run(_prepare(prepared))
    shutil.copy(prepared, undisturbed)
    asyncio.run(_work_off(undisturbed))
    wanted = whole(rows_of(undisturbed))
    assert wanted["merged"] and wanted["marked"] == len(PLACES) * (2 * PAIRS + IDLE)

    chance = random.Random(23)
    kills, life, rounds = 0, 0, 0
    steps = set[tuple[int, int]]()
    with nights() as night:
        while kills < KILLS:
            rounds += 1
            path = tmp_path / f"{rounds}.db"
            shutil.copy(prepared, path)
            ended, lives = None, 0
            while ended != 0:
                # In the end it is left alone.
                last = kills >= KILLS
                period = f"2026-11-22T00:00:{lives // LIVES_A_RUN:02}"
                # At a commit, between two pieces of work, more goes wrong than in any millisecond; else at any of these.
                commit = chance.choice((0, 1, -1)) * chance.randrange(2, COMMITS) if not last else 0
                pid = night.start(life, period, commit, path)
                if not (last or commit):
                    if chance.random() < 0.8:
                        night.wait_for(life)
                    time.sleep(chance.uniform(0, LIVES))
                    os.kill(pid, signal.SIGKILL)
                ended = night.wait()
                assert ended in (0, -signal.SIGKILL), f"life {life} ended with {ended}"
                kills += ended != 0
                life, lives = life + 1, lives + 1
                found = whole(rows_of(path))
                steps.add((found["marked"], found["merged"]))
            assert values_of(path) == values_of(undisturbed)
            assert found == wanted
    # Else it was killed before its work or behind it.
    assert len(steps) > min(KILLS, 12) // 3, steps


def whole(rows: dict[str, list[dict[str, Any]]]) -> Counter[str]:
    """Check that each step of the night is either done, with all that belongs to it, or not; count what is done."""
    by_id = {row["id"]: row for row in rows["memories"]}
    parents: dict[int, list[dict[str, Any]]] = {}
    for row in rows["memory_parents"]:
        parents.setdefault(row["memory_id"], []).append(by_id[row["parent_id"]])
    derived = [row for row in by_id.values() if row["kind"] == "fact" and row["origin"] == "derived"]
    merged = [row for row in derived if all(one["kind"] == "fact" for one in parents[row["id"]])]
    told = [row for row in derived if row not in merged]

    # The facts that went into one are set aside, and nothing else is.
    gone = [one["id"] for row in merged for one in parents[row["id"]]]
    assert len(gone) == len(set(gone)) == TOGETHER * len(merged)
    assert set(gone) == {row["id"] for row in by_id.values() if row["archived_at"] is not None}
    for row in merged:
        assert sorted(row["value"].split(", ")) == sorted(one["value"] for one in parents[row["id"]])
    # Nothing stands there twice.
    said = Counter((row["owner_id"], row["kind"], row["topic"], row["key"], row["value"]) for row in derived)
    assert set(said.values()) <= {1}

    # An event is gone through when the fact that it tells is there, and each question's events together.
    events = [row for row in by_id.values() if row["kind"] == "event"]
    made_of = {(one["id"], row["value"]) for row in told for one in parents[row["id"]]}
    marked = [row for row in events if row["compressed_at"] is not None]
    assert made_of == {(row["id"], fact) for row in marked if (fact := fact_of(row["value"])) is not None}
    questions = 0
    for owner_id in {row["owner_id"] for row in events}:
        own = sorted((row for row in events if row["owner_id"] == owner_id), key=lambda row: row["id"])
        done = sum(row["compressed_at"] is not None for row in own)
        assert all(row["compressed_at"] is not None for row in own[:done])
        assert done % EVENTS == 0 or done == len(own)
        questions += -(-done // EVENTS)

    # Record and cost go with it.
    counts, made = Counter[str](), list[int]()
    for row in rows["job_items"]:
        counts.update(json.loads(row["counts"]))
        made += json.loads(row["undo"])["made"] if row["undo"] else []
    assert (counts["events"], counts["facts"]) == (len(marked), len(told))
    assert (counts["merged"], counts["archived"]) == (len(merged), len(gone))
    assert len(made) == len(set(made))
    assert set(made) == {row["id"] for row in by_id.values() if row["origin"] == "derived"}
    spent = Counter(row["purpose"] for row in rows["usage"])
    assert spent["compress"] == questions
    groups = {(row["owner_id"], row["key"], row["topic"]) for row in merged}
    assert spent["merge"] == len(groups)
    return Counter(marked=len(marked), told=len(told), merged=len(merged), groups=len(groups))


def rows_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows that a life has left, read from a copy: the store itself is for the next one to recover."""
    looked_at = path.with_name("looked-at.db")
    for end in ("", "-wal"):
        looked_at.with_name(looked_at.name + end).unlink(missing_ok=True)
        if (left := path.with_name(path.name + end)).exists():
            shutil.copy(left, looked_at.with_name(looked_at.name + end))
    with closing(sqlite3.connect(looked_at)) as database:
        database.row_factory = sqlite3.Row
        assert database.execute("pragma integrity_check").fetchone()[0] == "ok"
        return {
            table: [dict(row) for row in database.execute(f"select * from {table}")]
            for table in ("memories", "memory_parents", "job_items", "usage")
        }


def values_of(path: Path) -> Counter[tuple[Any, ...]]:
    """Counts what is remembered in the end, whatever its ids and times."""
    columns = ("owner_id", "kind", "subject", "subject_id", "category", "topic", "key", "value", "importance", "origin")
    return Counter(
        (*(row[name] for name in columns), row["archived_at"] is None)
        for row in rows_of(path)["memories"]
        if row["superseded_by"] is None and row["valid_until"] is None
    )


class Nights:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout

    def start(self, life: int, period: str, commit: int, path: Path) -> int:
        return int(self._ask(f"start {life} {period} {commit} {path}", "pid"))

    def wait_for(self, life: int) -> None:
        """Until the store of a life is open, or that life is over."""
        while self._line() not in (f"opened {life}", f"over {life}"):
            pass

    def wait(self) -> int:
        return int(self._ask("wait", "ended"))

    def _ask(self, command: str, answer: str) -> str:
        self._in.write(f"{command}\n")
        self._in.flush()
        while True:
            word, _, rest = self._line().partition(" ")
            if word == answer:
                return rest

    def _line(self) -> str:
        line = self._out.readline()
        assert line, "the process that starts the lives has ended"
        return line.strip()


@contextmanager
def nights() -> Iterator[Nights]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.night"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    try:
        yield Nights(process)
    finally:
        process.communicate(timeout=SECONDS)


async def _prepare(path: Path) -> None:
    """A store in which some people and a group have told things on the day before."""
    service = await open_store(path, life=-3_600)
    chance = random.Random(5)
    for place in PLACES:
        context = await service.identities.context(*place)
        drafts = [_draft(context, "event", event) for event in _events(chance)]
        drafts += [
            _draft(context, "fact", _words(chance), f"topic-{n}") for n in range(TOPICS) for _ in range(TOGETHER)
        ]
        await service.database.write(partial(_plant, service=service, drafts=drafts))
    await service.close(seconds=SECONDS)


def _plant(tx: Transaction, *, service: Service, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        memories.insert(tx, draft, new_id=service.new_id, now=draft.learned_at)


def _draft(context: Context, kind: Literal["event", "fact"], value: str, topic: str = "") -> Draft:
    speaker = context.speaker.id if context.scope.private else None
    return Draft(
        kind=kind, owner_id=context.scope.writes_to, author_id=speaker, subject_id=speaker, category="preference",
        topic=topic, key="event" if kind == "event" else "likes", value=value, importance=5, confidence=1.0,
        origin="extracted", learned_at=NOON, local_date="2026-11-21",
    )  # fmt: skip


def _events(chance: random.Random) -> list[str]:
    told = [_words(chance) for _ in range(PAIRS)]
    events = [f"tuned the {words} {when}" for words in told for when in ("early", "late")]
    return events + [f"slept through {_words(chance)}" for _ in range(IDLE)]


def _words(chance: random.Random) -> str:
    """Two words that stand nowhere else."""
    return " ".join("".join(chance.choices("bdfgklmnprst", k=7)) for _ in range(2))


async def _work_off(path: Path) -> None:
    service = await open_store(path, life=0)
    await work(service, "2026-11-22")
    await service.close(seconds=SECONDS)
