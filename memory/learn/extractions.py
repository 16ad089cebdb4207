"""The work queue of learning: the messages of sessions that are still to be read.

Invariants: The history itself is the buffer: a session's messages above `extracted_to` are unread. Pieces of work are
made in the transaction that moves that mark, so no message is read twice or skipped, whenever the process ends. Nothing
is read from a chat that the bot has left until the bot is back. A backlog becomes several pieces, each small enough to
be read at once. A piece ends as done, or parked after too many unreadable answers. A parked piece never holds up the
next. While the model can't be reached, pieces wait for it as long as it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from memory.store import chats
from memory.store.database import Reader, Row, Transaction

#: The number of failures after which a piece of work is parked for a human to look at.
PARK_AFTER = 5
#: The limits of one piece of work in messages and estimated tokens; a longer single message is a piece by itself.
PIECE_MESSAGES = 40
PIECE_TOKENS = 4_000
#: Milliseconds before the second try. Each further wait is four times as long, so that the last try is 1.5 h later.
_FIRST_WAIT_MS = 60_000
#: The `error` of work that waits for the next day's token budget.
_NO_BUDGET = "budget"
#: The messages that are read: people's words and the answers between them, without off-the-record exchanges.
_READABLE = (
    "(m.learn = 1 or (m.role = 'assistant' and m.text <> '' and m.turn_id is not null and not exists"
    " (select 1 from messages u where u.turn_id = m.turn_id and u.role = 'user' and u.learn = 0)))"
)
_IN_SESSION = (
    "select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens from messages m"
    " join sessions s on s.id = m.session_id where s.id = ?"
)
_IS_UNREAD = "m.id > s.extracted_to and m.learn = 1"
#: The condition that the bot is still in the session's chat.
_PRESENT = (
    "exists (select 1 from sessions s join chats c on c.id = s.chat_id where s.id = session_id and c.left_at is null)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A piece of work: the session's messages from `first_id` to `last_id`, both included."""

    id: int
    session_id: int
    first_id: int
    last_id: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why a piece of work was not read. `again_at` is in milliseconds UTC, None if the piece is parked."""

    code: str
    again_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingState:
    """The state of reading: the numbers of waiting pieces, of those over the token budget, and of parked pieces.

    `learned_at` is when a piece was last read, in milliseconds UTC. `failure` is that of the newest piece that could
    not be read.
    """

    waiting: int
    over_budget: int
    parked: int
    learned_at: int | None
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """The work that a turn leaves: its session's unread messages, and the messages and tokens in its window.

    `is_any_doubt` is True if anybody's doubt waits to be asked about, which is rare.
    """

    unread: Unread
    window_messages: int
    window_tokens: int
    is_any_doubt: bool


def unread(reader: Reader, session_id: int) -> Unread:
    row = reader.one(f"{_IN_SESSION} and {_IS_UNREAD}", (session_id,))
    assert row is not None
    return Unread(messages=row["messages"], tokens=row["tokens"])


def afterwards(reader: Reader, session_id: int) -> Afterwards:
    row = reader.one(
        "select u.messages, u.tokens, w.messages as window_messages, w.tokens as window_tokens,"
        # Some doubts may be over, because a fact no longer holds.
        " exists (select 1 from comparisons where verdict = 'doubt' and asked_at is null) as is_any_doubt"
        f" from ({_IN_SESSION} and {_IS_UNREAD}) u"
        f" cross join ({_IN_SESSION} and m.id > s.window_after and m.erased_at is null) w",
        (session_id, session_id),
    )
    assert row is not None
    return Afterwards(
        unread=Unread(messages=row["messages"], tokens=row["tokens"]),
        window_messages=row["window_messages"],
        window_tokens=row["window_tokens"],
        is_any_doubt=bool(row["is_any_doubt"]),
    )


def unread_before(reader: Reader, session_id: int, message_id: int) -> bool:
    return reader.has(
        "select 1 from messages m join sessions s on s.id = m.session_id"
        " where s.id = ? and m.id > s.extracted_to and m.id < ? and m.learn = 1 limit 1",
        (session_id, message_id),
    )


def schedule(tx: Transaction, session_id: int, reason: str, *, now: int) -> bool:
    """Turns unread messages into pieces of work; returns False if there are none or the bot has left the chat."""
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
    # Answers alone teach nothing; a later piece shows them as the lines before it.
    pieces = [piece for piece in pieces if any(row["role"] == "user" for row in piece)]
    for piece in pieces:
        tx.run(
            "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
            " values (?, ?, ?, ?, 'pending', ?)",
            (session_id, piece[0]["id"], piece[-1]["id"], reason, now),
        )
    if pieces:
        chats.mark_read(tx, session_id, pieces[-1][-1]["id"])
    return bool(pieces)


def _fits(piece: list[Row], row: Row) -> bool:
    """Returns whether `row` can be read together with `piece`: same agent and, in private, at most one person.

    A memory learned for one agent alone must not become another's.
    """
    people = {one["author_id"] for one in (*piece, row) if one["author_id"] is not None}
    return (
        len(piece) < PIECE_MESSAGES
        and sum(one["tokens"] for one in piece) + row["tokens"] <= PIECE_TOKENS
        and row["agent_id"] == piece[0]["agent_id"]
        and not (row["private"] and len(people) > 1)
    )


def reread(tx: Transaction, session_id: int, message_id: int, reason: str, *, now: int) -> None:
    """Queues a message that was already read to be read once more; an unread message is left to its turn."""
    tx.run(
        "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
        " select s.id, m.id, m.id, ?, 'pending', ? from sessions s join messages m on m.session_id = s.id"
        " where s.id = ? and m.id = ? and m.learn = 1 and m.id <= s.extracted_to",
        (reason, now, session_id, message_id),
    )


def next_work(reader: Reader, session_id: int, *, now: int) -> Work | None:
    return reader.first(
        "select id, session_id, first_id, last_id, attempts from extractions"
        f" where session_id = ? and state = 'pending' and not_before <= ? and {_PRESENT} order by id limit 1",
        (session_id, now),
        lambda row: Work(**dict(row)),
    )


def next_due(reader: Reader, session_id: int) -> int | None:
    return reader.id(
        f"select min(not_before) from extractions where session_id = ? and state = 'pending' and {_PRESENT}",
        (session_id,),
    )


def agent_of(reader: Reader, work: Work) -> int:
    return reader.number(
        "select coalesce(t.agent_id, s.agent_id) as agent_id from messages m"
        " join sessions s on s.id = m.session_id left join turns t on t.id = m.turn_id where m.id = ?",
        (work.first_id,),
    )


def done(tx: Transaction, work_id: int, *, found: int, now: int) -> None:
    tx.run(
        "update extractions set state = 'done', found = ?, done_at = ?, error = null where id = ?",
        (found, now, work_id),
    )


def split(tx: Transaction, work: Work, *, last_id: int, next_id: int) -> Work:
    tx.run(
        "insert into extractions (session_id, first_id, last_id, reason, state, created_at)"
        " select session_id, ?, last_id, reason, state, created_at from extractions where id = ?",
        (next_id, work.id),
    )
    tx.run("update extractions set last_id = ? where id = ?", (last_id, work.id))
    return replace(work, last_id=last_id)


def anew(reader: Reader, work: Work) -> Work:
    row = reader.one("select id, session_id, first_id, last_id, attempts from extractions where id = ?", (work.id,))
    return work if row is None else Work(**dict(row))


def readable(reader: Reader, work: Work) -> frozenset[int]:
    return frozenset(
        reader.ids(
            f"select m.id from messages m where m.session_id = ? and m.id between ? and ? and m.erased_at is null"
            f" and {_READABLE}",
            (work.session_id, work.first_id, work.last_id),
        )
    )


def lines_before(reader: Reader, work: Work, *, limit: int) -> list[int]:
    ids = reader.ids(
        "select m.id from messages m where m.session_id = ?1 and m.id < ?2 and m.erased_at is null"
        f" and m.sitting = (select sitting from messages where id = ?2) and {_READABLE} order by m.id desc limit ?3",
        (work.session_id, work.first_id, limit),
    )
    return sorted(ids)


def failed(tx: Transaction, work: Work, error: str, *, away: bool, now: int) -> int | None:
    """Notes a failure: the next try comes four times as late each time, and none by itself after `PARK_AFTER` failures.

    With `away` the model gave no answer, which says nothing about the work: it is never parked, and tried again after
    an hour at the latest. Returns when to try again, in milliseconds UTC; None if the work is parked.
    """
    attempts = min(work.attempts + 1, PARK_AFTER - 1) if away else work.attempts + 1
    parked = attempts >= PARK_AFTER
    not_before = now + _FIRST_WAIT_MS * 4 ** (attempts - 1)
    tx.run(
        "update extractions set state = ?, attempts = ?, not_before = ?, error = ? where id = ?",
        ("parked" if parked else "pending", attempts, not_before, error, work.id),
    )
    return None if parked else not_before


def postpone(tx: Transaction, session_id: int, *, until: int) -> None:
    """Postpones all due work of this session because no tokens are left for today; this counts as no failure."""
    tx.run(
        "update extractions set not_before = case when not_before < ?1 then ?1 else not_before end, error = ?2"
        " where session_id = ?3 and state = 'pending'",
        (until, _NO_BUDGET, session_id),
    )


def hasten(tx: Transaction, work_id: int) -> None:
    tx.run(
        "update extractions set not_before = 0 where id = ? and state = 'pending' and error is distinct from ?",
        (work_id, _NO_BUDGET),
    )


def count_parked(reader: Reader) -> int:
    return reader.number("select count(*) as n from extractions where state = 'parked'")


def retry_parked(tx: Transaction) -> None:
    tx.run(
        "update extractions set state = 'pending', attempts = 0, not_before = 0, error = null where state = 'parked'"
    )


def spent_since(reader: Reader, agent_id: int, since: int) -> int:
    """Returns the tokens, read and written, that an agent's background work took since a time: all calls but chat."""
    return reader.number(
        "select coalesce(sum(input_tokens + output_tokens), 0) as n from usage"
        " where agent_id = ? and purpose <> 'chat' and created_at >= ?",
        (agent_id, since),
    )


def sessions_with_work(reader: Reader) -> list[int]:
    """Returns the sessions with unread messages or pending work, where the bot still is: a start must take these up."""
    return reader.ids(
        "select session_id from (select session_id from extractions where state = 'pending'"
        " union select s.id from sessions s where exists"
        " (select 1 from messages m where m.session_id = s.id and m.id > s.extracted_to and m.learn = 1)) waiting"
        f" where {_PRESENT}"
    )


def unread_among(reader: Reader, session_keys: Collection[str]) -> list[int]:
    return reader.ids(
        "select s.id from sessions s where s.key in (select value from json_each(?)) and"
        " (exists (select 1 from extractions e where e.session_id = s.id and e.state = 'pending')"
        " or exists (select 1 from messages m where m.session_id = s.id and m.id > s.extracted_to and m.learn = 1))",
        (session_keys,),
    )


def standing(reader: Reader, session_id: int) -> ReadingState:
    row = reader.one(
        "select count(*) filter (where state = 'pending') as waiting, count(*) filter (where state = 'parked') as"
        " parked,"
        " count(*) filter (where state = 'pending' and error = ?) as over_budget, max(done_at) as learned_at"
        " from extractions where session_id = ?",
        (_NO_BUDGET, session_id),
    )
    assert row is not None
    failed = reader.one(
        "select error, case when state = 'pending' then not_before end as again_at from extractions where session_id"
        " = ?"
        " and state <> 'done' and attempts > 0 and error <> ? order by id desc limit 1",
        (session_id, _NO_BUDGET),
    )
    failure = None if failed is None else Failure(code=failed["error"], again_at=failed["again_at"])
    return ReadingState(**dict(row), failure=failure)


def drop(tx: Transaction, session_ids: Sequence[int]) -> None:
    tx.run("delete from extractions where session_id in (select value from json_each(?))", (session_ids,))
