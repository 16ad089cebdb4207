"""Runs of jobs and their changes to the rows of each owner: the authoritative record of jobs.

Invariants: A job runs once for an agent and a period, however often it is asked for. A run in progress is held by a
lease, which a start takes away. A run that ends the process at every try is given up like one that fails at every try.
A run's changes to an owner's rows are kept as ids and figures, never words, and this record is used to undo them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory

State: TypeAlias = Literal["running", "done", "failed", "skipped", "undone"]

#: The time after which a run that gives no sign of life may be taken over, in milliseconds.
LEASE_MS: Final = 15 * 60_000
#: The waits after a failure before the run is tried again, in milliseconds; after the last one it is not tried again.
WAITS_MS: Final = (10 * 60_000, 60 * 60_000, 4 * 60 * 60_000)
#: The error of a run during which the process ended at every try.
BROKEN_OFF: Final = "broken_off"
#: The mark after the day in the period of a run that was asked for by hand.
BY_HAND: Final = "T"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a job. `period` is the agent's local date it stands for; times are milliseconds UTC.

    `counts` is its work in figures. `error` is a code. `attempts` counts its beginnings, without the times it was put
    down with the process or for lack of tokens. It is not begun again before `not_before`. A run that was `put_down`
    counts as running although no process works on it.
    """

    id: int
    job: str
    agent_id: int
    agent: str
    period: str
    state: State
    started_at: int
    finished_at: int | None
    counts: Mapping[str, int]
    error: str | None
    attempts: int
    not_before: int
    put_down: bool = False

    @property
    def is_by_hand(self) -> bool:
        return BY_HAND in self.period


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerResult:
    """The effect of a run on the rows of one owner; `undo` is None if it changed nothing or nothing yet."""

    run: Run
    owner_id: int
    state: Literal["pending", "done", "failed", "undone"]
    counts: Mapping[str, int]
    undo: str | None
    finished_at: int | None


def begin(tx: Transaction, job: str, agent_id: int, period: str, *, now: int) -> Run | None:
    """Begins a run that is new, broke off, or failed or was skipped and may be tried again by now.

    Returns None for any other.
    """
    tx.run(
        "insert into job_runs (job, agent_id, period, state, lease_until, started_at) values (?, ?, ?, 'running', 0, ?)"
        " on conflict do nothing",
        (job, agent_id, period, now),
    )
    row = tx.one(
        "update job_runs as r set state = 'running', lease_until = ?1, error = null, finished_at = null,"
        " attempts = case state when 'skipped' then 1 else attempts + 1 end"
        f" where job = ?2 and agent_id = ?3 and period = ?4 and {_MAY_BEGIN.format(now='?5', waits='?6')} returning id",
        (now + LEASE_MS, job, agent_id, period, now, len(WAITS_MS)),
    )
    return None if row is None else of_id(tx, row["id"])


def renew(tx: Transaction, run_id: int, *, now: int) -> None:
    tx.run("update job_runs set lease_until = ? where id = ?", (now + LEASE_MS, run_id))


def release(tx: Transaction, *, now: int) -> None:
    """Releases all runs in progress; called at start, because a store has only one process.

    A run that has been in progress at the end of as many processes as there are tries has failed.
    """
    for row in tx.all("select id from job_runs where state = 'running' and attempts > ?", (len(WAITS_MS),)):
        finish(tx, row["id"], RunEnd("failed", BROKEN_OFF), now=now)
    tx.run("update job_runs set lease_until = 0 where state = 'running'")


def put_down(tx: Transaction, run_id: int) -> None:
    """Puts down a run because its process ends or has something else to do: it may be begun again at once."""
    tx.run("update job_runs set lease_until = 0, attempts = attempts - 1 where id = ? and state = 'running'", (run_id,))


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run, whose work has `figures` beside those of its items.

    A failed run is tried again after the next of `WAITS_MS`, if any is left; a skipped one at `again`, in milliseconds
    UTC.
    """

    state: State
    error: str | None = None
    again: int | None = None
    figures: Mapping[str, int] = field(default_factory=dict)


def finish(tx: Transaction, run_id: int, end: RunEnd, *, now: int) -> None:
    run = of_id(tx, run_id)
    counts = Counter(end.figures)
    for row in tx.all("select counts from job_items where run_id = ?", (run_id,)):
        counts.update(json.loads(row["counts"]))
    wait = WAITS_MS[min(run.attempts, len(WAITS_MS)) - 1] if run.attempts else WAITS_MS[0]
    tx.run(
        "update job_runs set state = ?, error = ?, result = ?, finished_at = ?, lease_until = null, not_before = ?"
        " where id = ?",
        (end.state, end.error, json.dumps(counts), now, now + wait if end.again is None else end.again, run_id),
    )


def add_items(tx: Transaction, run_id: int, owner_ids: Sequence[int]) -> None:
    for owner_id in owner_ids:
        tx.run(
            "insert into job_items (run_id, owner_id, state) values (?, ?, 'pending') on conflict do nothing",
            (run_id, owner_id),
        )


def open_items(reader: Reader, run_id: int) -> list[int]:
    return reader.ids(
        "select owner_id from job_items where run_id = ? and state in ('pending', 'failed') order by owner_id",
        (run_id,),
    )


def note(tx: Transaction, run_id: int, owner_id: int, *, counts: Mapping[str, int], undo: str | None) -> None:
    """Adds the effect of one step of a run to an owner's item; `undo` is the record that undoes all of it so far."""
    row = tx.one("select counts from job_items where run_id = ? and owner_id = ?", (run_id, owner_id))
    assert row is not None, f"owner {owner_id} is no item of run {run_id}"
    total = Counter[str](json.loads(row["counts"]))
    total.update(counts)
    tx.run(
        "update job_items set counts = ?, undo = coalesce(?, undo) where run_id = ? and owner_id = ?",
        (json.dumps(total), undo, run_id, owner_id),
    )


def end_item(
    tx: Transaction, run_id: int, owner_id: int, state: Literal["done", "failed", "undone"], *, now: int
) -> None:
    tx.run(
        # An undone item stays undone, even if the run was still at work.
        "update job_items set state = ?, finished_at = ? where run_id = ? and owner_id = ? and state <> 'undone'",
        (state, now, run_id, owner_id),
    )


def is_undone(reader: Reader, run_id: int, owner_id: int) -> bool:
    row = reader.one("select state from job_items where run_id = ? and owner_id = ?", (run_id, owner_id))
    return row is not None and row["state"] == "undone"


def drop_idle(tx: Transaction, run_id: int, owner_id: int) -> None:
    tx.run(
        "delete from job_items where run_id = ? and owner_id = ? and undo is null and counts = '{}'", (run_id, owner_id)
    )


def of_id(reader: Reader, run_id: int) -> Run:
    row = reader.one(_RUN + " where r.id = ?", (run_id,))
    assert row is not None, f"no run {run_id}"
    return _run(row)


def last_period(reader: Reader, job: str, agent_id: int, *, until: str | None = None) -> str | None:
    """Returns the newest period, up to `until` if given, of a job that the clock began, whatever its outcome."""
    row = reader.one(
        "select max(period) as period from job_runs where job = ?1 and agent_id = ?2"
        f" and instr(period, '{BY_HAND}') = 0 and (?3 is null or period <= ?3)",
        (job, agent_id, until),
    )
    return None if row is None else row["period"]


def unfinished(reader: Reader, agent_id: int, *, now: int) -> list[Run]:
    """Returns runs that broke off, failed or were skipped and may be begun again now; only the newest of each job."""
    rows = reader.all(
        _RUN + " where r.agent_id = ?1 and r.id = (select max(id) from job_runs n where n.job = r.job"
        f" and n.agent_id = r.agent_id) and {_MAY_BEGIN.format(now='?2', waits='?3')} order by r.id",
        (agent_id, now, len(WAITS_MS)),
    )
    return [_run(row) for row in rows]


def newest(reader: Reader, *, limit: int) -> list[Run]:
    rows = reader.all(_RUN + " order by r.started_at desc, r.id desc limit ?", (limit,))
    return [_run(row) for row in rows]


def latest(reader: Reader) -> list[Run]:
    rows = reader.all(_RUN + " where r.id in (select max(id) from job_runs group by job, agent_id) order by r.id")
    return [_run(row) for row in rows]


def progress(reader: Reader, run_id: int) -> tuple[int, int]:
    row = reader.one(
        "select count(*) as of, count(*) filter (where state <> 'pending') as done from job_items where run_id = ?",
        (run_id,),
    )
    assert row is not None
    return int(row["done"]), int(row["of"])


def items_of(reader: Reader, owner_ids: Sequence[int], *, limit: int, offset: int = 0) -> list[OwnerResult]:
    """Returns the changes that runs made to the rows of these owners, newest first, without the first `offset`."""
    rows = reader.all(
        _ITEM + " where i.owner_id in (select value from json_each(?)) and i.undo is not null"
        " order by coalesce(i.finished_at, r.started_at) desc, i.run_id desc, i.owner_id limit ? offset ?",
        (owner_ids, limit, offset),
    )
    return [_item(row) for row in rows]


def item(reader: Reader, run_id: int, owner_id: int) -> OwnerResult | None:
    row = reader.one(_ITEM + " where i.run_id = ? and i.owner_id = ?", (run_id, owner_id))
    return None if row is None else _item(row)


def made_by(reader: Reader, scope: Scope, memory: Memory) -> Run | None:
    """Returns the run that made a memory of the scope's person or group; None if no run did, or it was long ago."""
    row = reader.one(
        _RUN + " join job_items i on i.run_id = r.id where i.owner_id = ?"
        " and exists (select 1 from json_each(i.undo, '$.made') made where cast(made.value as bigint) = ?)"
        " order by r.id limit 1",
        (memory.owner_id, memory.id),
    )
    return _run(row) if row is not None and _is_theirs(scope, memory) else None


def set_aside_by(reader: Reader, scope: Scope, memory: Memory) -> Run | None:
    """Returns the run whose archiving of a memory of the scope's person or group still stands; None if no run did."""
    row = reader.one(
        _RUN + " join job_items i on i.run_id = r.id where i.owner_id = ?"
        " and cast(json_extract(i.undo, ?) as bigint) = ? order by r.id desc limit 1",
        (memory.owner_id, f'$.changed."{memory.id}".archived_at[1]', memory.archived_at),
    )
    return _run(row) if row is not None and _is_theirs(scope, memory) else None


def _is_theirs(scope: Scope, memory: Memory) -> bool:
    return memory.owner_id in (*scope.own, scope.writes_to)


def sum_on(reader: Reader, job: str, agent_id: int, day: str, figure: str) -> int:
    return reader.number(
        "select coalesce(sum(cast(json_extract(i.counts, ?4) as bigint)), 0) from job_runs r"
        " join job_items i on i.run_id = r.id where r.job = ?1 and r.agent_id = ?2 and substr(r.period, 1, 10) = ?3",
        (job, agent_id, day, f"$.{figure}"),
    )


def last(reader: Reader, job: str, owner_id: int) -> tuple[int | None, int | None]:
    """Returns when the last run that went through an owner's rows to the end was begun, and when one last was done.

    Both are in milliseconds UTC. A run has seen the rows of the time when it was begun; it may have missed later ones.
    """
    row = reader.one(
        "select max(r.started_at) as begun, max(i.finished_at) as done"
        " from job_items i join job_runs r on r.id = i.run_id where r.job = ? and i.owner_id = ?"
        " and i.state in ('done', 'undone')",
        (job, owner_id),
    )
    return (None, None) if row is None else (row["begun"], row["done"])


def undone(reader: Reader, job: str, owner_id: int, *, agent_id: int | None = None) -> list[str]:
    """Returns the records of a job's undone changes to an owner's rows: it must not make the same again.

    With `agent_id`, only those of that agent's runs.
    """
    rows = reader.all(
        "select i.undo from job_items i join job_runs r on r.id = i.run_id where r.job = ?1 and i.owner_id = ?2"
        " and i.state = 'undone' and i.undo is not null and (?3 is null or r.agent_id = ?3)",
        (job, owner_id, agent_id),
    )
    return [row["undo"] for row in rows]


def drop_old(tx: Transaction, *, before: int) -> int:
    """Deletes the records of runs that began before a time (milliseconds UTC). Returns their number.

    Runs with undone changes stay: their jobs must not make these again.
    """
    return len(
        tx.ids(
            "delete from job_runs where started_at < ? and not exists"
            " (select 1 from job_items i where i.run_id = job_runs.id and i.state = 'undone') returning id",
            (before,),
        )
    )


def drop_items_of_chat(tx: Transaction, chat_id: int) -> None:
    tx.run("delete from job_items where owner_id in (select id from owners where chat_id = ?)", (chat_id,))


#: The condition for a run that may be begun, on a table named r.
_MAY_BEGIN: Final = (
    "((r.state = 'running' and r.lease_until <= {now})"
    " or (r.state = 'failed' and r.not_before <= {now} and r.attempts <= {waits})"
    " or (r.state = 'skipped' and r.not_before <= {now}))"
)
_RUN_COLUMNS: Final = (
    "r.id, r.job, r.agent_id, a.name as agent, r.period, r.state, r.started_at, r.finished_at, r.result, r.error,"
    " r.attempts, r.not_before, r.state = 'running' and r.lease_until = 0 as put_down"
)
_RUN: Final = f"select {_RUN_COLUMNS} from job_runs r join agents a on a.id = r.agent_id"
_ITEM: Final = (
    f"select {_RUN_COLUMNS}, i.owner_id, i.state as item_state, i.counts, i.undo, i.finished_at as item_finished_at"
    " from job_items i join job_runs r on r.id = i.run_id join agents a on a.id = r.agent_id"
)


def _run(row: Row) -> Run:
    fields = {name: row[name] for name in Run.__slots__ if name != "counts"}
    return Run(**fields | {"counts": json.loads(row["result"]), "put_down": bool(row["put_down"])})


def _item(row: Row) -> OwnerResult:
    return OwnerResult(
        run=_run(row),
        owner_id=row["owner_id"],
        state=row["item_state"],
        counts=json.loads(row["counts"]),
        undo=row["undo"],
        finished_at=row["item_finished_at"],
    )
