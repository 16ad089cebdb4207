"""The work of learning: which stretch of which session is still to be read.

Invariants: the buffer is the history itself: a session's messages above `extracted_to` are unread, and pieces of work
are made in the transaction that moves that mark, so no message is read twice or skipped, whenever the process ends; of
a chat that the bot has left nothing is read until it is back; a
backlog becomes several pieces, each small enough to be read at once; work ends as done, or parked after too many
failures, and a parked piece never holds up the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.store.database import Reader, Row, Transaction

#: Failures after which a piece of work is set aside for a human to look at.
PARK_AFTER = 5
#: One piece of work holds at most so many messages and estimated tokens; a single longer message is a piece alone.
PIECE_MESSAGES = 40
PIECE_TOKENS = 4_000
#: Milliseconds before the second try; each further one waits four times as long, so that the last is 1.5 h later.
_FIRST_WAIT_MS = 60_000
#: What `error` says of work that waits for the next day's token budget.
_NO_BUDGET = "budget"
#: What is read: the people's words and the answers between them, but nothing of an exchange off the record.
_READABLE = (
    "(m.learn = 1 or (m.role = 'assistant' and m.text <> '' and m.turn_id is not null and not exists"
    " (select 1 from messages u where u.turn_id = m.turn_id and u.role = 'user' and u.learn = 0)))"
)

#: The bot is still in the session's chat.
_PRESENT = (
    "exists (select 1 from sessions s join chats c on c.id = s.chat_id where s.id = session_id and c.left_at is null)"
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a piece of work was not read; `again_at` is None where it is set aside. Milliseconds UTC."""

    code: str
    again_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How reading stands: pieces that wait, those of them over the token budget, and those set aside.

    `learned_at` is when one was last read, milliseconds UTC; `failure` that of the newest piece that could not be.
    """

    waiting: int
    over_budget: int
    parked: int
    learned_at: int | None
    failure: Failure | None


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
    """Turn what is unread into pieces of work; False when there is nothing to read, or the bot has left the chat."""
    rows = tx.all(
        "select m.id, m.role, m.author_id, m.tokens, c.kind = 'private' as private,"
        " coalesce(t.agent_id, s.agent_id) as agent_id from messages m join sessions s on s.id = m.session_id"
        " join chats c on c.id = s.chat_id left join turns t on t.id = m.turn_id"
        " where s.id = ? and c.left_at is null and m.id > s.extracted_to and m.erased_at is null"
        f" and {_READABLE} order by m.id",
        (session_id,),
    )
    pieces: list[list[Row]] = []
    for row in rows:
        if not pieces or not _fits(pieces[-1], row):
            pieces.append([])
        pieces[-1].append(row)
    # Answers alone teach nothing; a later piece shows them as what was said before.
    pieces = [piece for piece in pieces if any(row["role"] == "user" for row in piece)]
    for piece in pieces:
        tx.run(
            "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
            " values (?, ?, ?, ?, 'pending', ?)",
            (session_id, piece[0]["id"], piece[-1]["id"], reason, now),
        )
    if pieces:
        mark_read(tx, session_id, pieces[-1][-1]["id"])
    return bool(pieces)


def _fits(piece: list[Row], row: Row) -> bool:
    """Whether `row` can be read together with `piece`: of one agent, and in private of one person, should there be two.

    What is learned for an agent alone must not become another's.
    """
    people = {one["author_id"] for one in (*piece, row) if one["author_id"] is not None}
    return (
        len(piece) < PIECE_MESSAGES
        and sum(one["tokens"] for one in piece) + row["tokens"] <= PIECE_TOKENS
        and row["agent_id"] == piece[0]["agent_id"]
        and not (row["private"] and len(people) > 1)
    )


def reread(tx: Transaction, session_id: int, message_id: int, reason: str, *, now: int) -> None:
    """Have a message that was read already read once more; one that is still unread is left to its turn."""
    tx.run(
        "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
        " select s.id, m.id, m.id, ?, 'pending', ? from sessions s join messages m on m.session_id = s.id"
        " where s.id = ? and m.id = ? and m.learn = 1 and m.id <= s.extracted_to",
        (reason, now, session_id, message_id),
    )


def mark_read(tx: Transaction, session_id: int, message_id: int) -> None:
    """Everything up to `message_id` is read or in work."""
    tx.run("update sessions set extracted_to = max(extracted_to, ?) where id = ?", (message_id, session_id))


def next_work(reader: Reader, session_id: int, *, now: int) -> Work | None:
    """The session's oldest piece of work that is due; None as long as the bot is not there."""
    row = reader.one(
        "select id, session_id, first_id, last_id, attempts from extractions"
        f" where session_id = ? and state = 'pending' and not_before <= ? and {_PRESENT} order by id limit 1",
        (session_id, now),
    )
    return None if row is None else Work(**dict(row))


def next_due(reader: Reader, session_id: int) -> int | None:
    """When the session's next piece of work is to be read, milliseconds UTC; None without one."""
    row = reader.one(
        f"select min(not_before) as at from extractions where session_id = ? and state = 'pending' and {_PRESENT}",
        (session_id,),
    )
    return None if row is None else row["at"]


def agent_of(reader: Reader, work: Work) -> int:
    """The agent to whom a piece of work was said, whichever serves the session by now."""
    row = reader.one(
        "select coalesce(t.agent_id, s.agent_id) as agent_id from messages m"
        " join sessions s on s.id = m.session_id left join turns t on t.id = m.turn_id where m.id = ?",
        (work.first_id,),
    )
    assert row is not None
    return int(row["agent_id"])


def done(tx: Transaction, work_id: int, *, found: int, now: int) -> None:
    tx.run(
        "update extractions set state = 'done', found = ?, done_at = ?, error = null where id = ?",
        (found, now, work_id),
    )


def readable(reader: Reader, work: Work) -> frozenset[int]:
    """Ids of the messages of a piece of work that may be read, as things stand now."""
    rows = reader.all(
        f"select m.id from messages m where m.session_id = ? and m.id between ? and ? and m.erased_at is null"
        f" and {_READABLE}",
        (work.session_id, work.first_id, work.last_id),
    )
    return frozenset(int(row["id"]) for row in rows)


def lines_before(reader: Reader, work: Work, *, limit: int) -> list[int]:
    """Ids of the last readable messages before a piece of work that belong to its sitting, oldest first."""
    rows = reader.all(
        "select m.id from messages m where m.session_id = ?1 and m.id < ?2 and m.erased_at is null"
        f" and m.sitting = (select sitting from messages where id = ?2) and {_READABLE} order by m.id desc limit ?3",
        (work.session_id, work.first_id, limit),
    )
    return sorted(int(row["id"]) for row in rows)


def failed(tx: Transaction, work: Work, error: str, *, now: int) -> int | None:
    """Try again later, four times as late each time; after `PARK_AFTER` failures no more by itself.

    Returns when to try again, None when the work is set aside.
    """
    attempts = work.attempts + 1
    parked = attempts >= PARK_AFTER
    not_before = now + _FIRST_WAIT_MS * 4 ** (attempts - 1)
    tx.run(
        "update extractions set state = ?, attempts = ?, not_before = ?, error = ? where id = ?",
        ("parked" if parked else "pending", attempts, not_before, error, work.id),
    )
    return None if parked else not_before


def postpone(tx: Transaction, session_id: int, *, until: int) -> None:
    """No tokens are left for today: all that is due in this session waits until `until`. It counts as no failure."""
    tx.run(
        "update extractions set not_before = max(not_before, ?), error = ? where session_id = ? and state = 'pending'",
        (until, _NO_BUDGET, session_id),
    )


def retry_parked(tx: Transaction, *, session_id: int | None = None) -> list[int]:
    """Give work that was set aside another five tries, in one session or everywhere; returns the sessions with such."""
    rows = tx.all(
        "update extractions set state = 'pending', attempts = 0, not_before = 0, error = null"
        " where state = 'parked' and (?1 is null or session_id = ?1) returning session_id",
        (session_id,),
    )
    return sorted({int(row["session_id"]) for row in rows})


def spent_since(reader: Reader, agent_id: int, since: int) -> int:
    """Tokens an agent's background work has read and written since a time: all that was no answer."""
    row = reader.one(
        "select coalesce(sum(input_tokens + output_tokens), 0) as n from usage"
        " where agent_id = ? and purpose <> 'chat' and created_at >= ?",
        (agent_id, since),
    )
    assert row is not None
    return int(row["n"])


def sessions_with_work(reader: Reader) -> list[int]:
    """Sessions with unread messages or work that is not done, where the bot still is: what a start has to take up."""
    rows = reader.all(
        "select session_id from (select session_id from extractions where state = 'pending'"
        " union select s.id from sessions s where exists"
        " (select 1 from messages m where m.session_id = s.id and m.id > s.extracted_to and m.learn = 1))"
        f" where {_PRESENT}"
    )
    return [int(row["session_id"]) for row in rows]


def standing(reader: Reader, session_id: int) -> Standing:
    """For the status line: how the reading of one session stands."""
    row = reader.one(
        "select coalesce(sum(state = 'pending'), 0) as waiting, coalesce(sum(state = 'parked'), 0) as parked,"
        " coalesce(sum(state = 'pending' and error = ?), 0) as over_budget, max(done_at) as learned_at"
        " from extractions where session_id = ?",
        (_NO_BUDGET, session_id),
    )
    assert row is not None
    failed = reader.one(
        "select error, iif(state = 'pending', not_before, null) as again_at from extractions where session_id = ?"
        " and state <> 'done' and attempts > 0 and error <> ? order by id desc limit 1",
        (session_id, _NO_BUDGET),
    )
    failure = None if failed is None else Failure(code=failed["error"], again_at=failed["again_at"])
    return Standing(**dict(row), failure=failure)
