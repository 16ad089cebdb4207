"""The work of learning: which stretch of which session is still to be read.

Invariants: the buffer is the history itself: a session's messages above `extracted_to` are unread, and a piece of
work is made in the transaction that moves that mark, so no message is read twice or skipped, whenever the process
ends; work ends as done, or parked after too many failures, and a parked piece never holds up the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.store.database import Reader, Transaction

#: Failures after which a piece of work is set aside for a human to look at.
PARK_AFTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Read the session's messages from `first_id` to `last_id`."""

    id: int
    session_id: int
    first_id: int
    last_id: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """How much of a session waits to be read, in messages and estimated tokens."""

    messages: int
    tokens: int


def unread(reader: Reader, session_id: int) -> Unread:
    row = reader.one(
        "select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens from messages m"
        " join sessions s on s.id = m.session_id where s.id = ? and m.id > s.extracted_to and m.learn = 1",
        (session_id,),
    )
    assert row is not None
    return Unread(messages=row["messages"], tokens=row["tokens"])


def unread_before(reader: Reader, session_id: int, message_id: int) -> bool:
    """Whether something said before `message_id` still waits to be read."""
    row = reader.one(
        "select 1 from messages m join sessions s on s.id = m.session_id"
        " where s.id = ? and m.id > s.extracted_to and m.id < ? and m.learn = 1 limit 1",
        (session_id, message_id),
    )
    return row is not None


def schedule(tx: Transaction, session_id: int, reason: str, *, now: int) -> bool:
    """Turn what is unread into a piece of work; False when there is nothing to read."""
    row = tx.one(
        "select min(m.id) as first, max(m.id) as last from messages m join sessions s on s.id = m.session_id"
        " where s.id = ? and m.id > s.extracted_to and m.learn = 1",
        (session_id,),
    )
    if row is None or row["first"] is None:
        return False
    tx.run(
        "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
        " values (?, ?, ?, ?, 'pending', ?)",
        (session_id, row["first"], row["last"], reason, now),
    )
    mark_read(tx, session_id, row["last"])
    return True


def mark_read(tx: Transaction, session_id: int, message_id: int) -> None:
    """Everything up to `message_id` is read or in work."""
    tx.run("update sessions set extracted_to = max(extracted_to, ?) where id = ?", (message_id, session_id))


def next_work(reader: Reader, session_id: int, *, now: int) -> Work | None:
    """The session's oldest piece of work that is due."""
    row = reader.one(
        "select id, session_id, first_id, last_id, attempts from extractions"
        " where session_id = ? and state = 'pending' and not_before <= ? order by id limit 1",
        (session_id, now),
    )
    return None if row is None else Work(**dict(row))


def done(tx: Transaction, work_id: int, *, found: int, now: int) -> None:
    tx.run(
        "update extractions set state = 'done', found = ?, done_at = ?, error = null where id = ?",
        (found, now, work_id),
    )


def failed(tx: Transaction, work: Work, error: str, *, now: int) -> int | None:
    """Try again later, twice as late each time; after `PARK_AFTER` failures no more by itself.

    Returns when to try again, None when the work is set aside.
    """
    attempts = work.attempts + 1
    parked = attempts >= PARK_AFTER
    not_before = now + 30_000 * 2**attempts
    tx.run(
        "update extractions set state = ?, attempts = ?, not_before = ?, error = ? where id = ?",
        ("parked" if parked else "pending", attempts, not_before, error, work.id),
    )
    return None if parked else not_before


def sessions_with_work(reader: Reader) -> list[int]:
    """Sessions with unread messages or work that is not done: what a start has to take up."""
    rows = reader.all(
        "select distinct session_id from extractions where state = 'pending'"
        " union select s.id from sessions s where exists"
        " (select 1 from messages m where m.session_id = s.id and m.id > s.extracted_to and m.learn = 1)"
    )
    return [int(row["session_id"]) for row in rows]


def standing(reader: Reader) -> tuple[int, int, int | None]:
    """For the status line: pieces of work waiting, pieces parked, time of the last one done."""
    row = reader.one(
        "select (select count(*) from extractions where state = 'pending') as waiting,"
        " (select count(*) from extractions where state = 'parked') as parked,"
        " (select max(done_at) from extractions) as last"
    )
    assert row is not None
    return row["waiting"], row["parked"], row["last"]
