"""Messages and turns: what was said, word for word, and how each answer came about.

Invariants: a message's `learn` is fixed when it is recorded; messages are never deleted, only blanked on request;
a step is stored before its tools run and an effect with its result, so a turn can be taken up where it broke off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.store import documents
from memory.store.database import Reader, Row, Transaction
from memory.store.people import Session

#: A longer silence ends a sitting (DESIGN 2).
SITTING_GAP_MS = 3 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One stored utterance. `tool_calls` is JSON as the gateway gave it.

    `nth` is its place among what people saw of the session, from 1; None for tool traffic.
    """

    id: int
    session_id: int
    turn_id: int | None
    role: str
    author_id: int | None
    author_name: str
    text: str
    tokens: int
    learn: bool
    recall: bool
    sitting: int
    nth: int | None
    said_at: int
    platform_ref: str | None
    tool_calls: str | None
    tool_call_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A message about to be recorded. `said_at` is the platform's time in milliseconds UTC.

    `learn` tells whether memories may be made of it, `recall` whether its words may be found again.
    """

    role: str
    text: str
    tokens: int
    said_at: int
    learn: bool = False
    recall: bool = True
    author_id: int | None = None
    author_name: str = ""
    platform_ref: str | None = None
    reply_to: str | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None


def record(
    tx: Transaction,
    session: Session,
    turn_id: int | None,
    utterances: Iterable[Utterance],
    *,
    owner_id: int,
    now: int,
) -> list[int]:
    """Append to a session's history as talk of `owner_id`; returns the new ids in order."""
    sitting, last = session.sitting, session.last_message_at
    nth = _last_nth(tx, session.id)
    ids = []
    for said in utterances:
        if last is not None and said.said_at - last > SITTING_GAP_MS:
            sitting += 1
        last = max(said.said_at, last or 0)
        seen = said.role in ("user", "assistant") and bool(said.text.strip())
        nth += seen
        message_id = tx.insert(
            "insert into messages (session_id, turn_id, role, author_id, author_name, platform_ref, reply_to,"
            " text, tool_calls, tool_call_id, tokens, learn, recall, owner_id, nth, sitting, said_at, recorded_at)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session.id, turn_id, said.role, said.author_id, said.author_name, said.platform_ref,
                said.reply_to, said.text, said.tool_calls, said.tool_call_id, said.tokens, int(said.learn),
                int(said.recall), owner_id, nth if seen else None, sitting, said.said_at, now,
            ),
        )  # fmt: skip
        if seen and said.recall:
            documents.changed(tx, documents.of_message(message_id))
        ids.append(message_id)
    tx.run("update sessions set sitting = ?, last_message_at = ? where id = ?", (sitting, last, session.id))
    return ids


def after(reader: Reader, session_id: int, message_id: int, *, limit: int) -> list[Message]:
    """The newest `limit` messages of a session with an id above `message_id`, oldest first."""
    rows = reader.all(
        _MESSAGE + " where session_id = ? and id > ? and erased_at is null order by id desc limit ?",
        (session_id, message_id, limit),
    )
    return [message(row) for row in reversed(rows)]


def between(reader: Reader, session_id: int, first: int, last: int) -> list[Message]:
    """A session's messages with ids from `first` to `last`, erased ones left out."""
    rows = reader.all(
        _MESSAGE + " where session_id = ? and id between ? and ? and erased_at is null order by id",
        (session_id, first, last),
    )
    return [message(row) for row in rows]


def recorded_at(reader: Reader, message_ids: Sequence[int]) -> int | None:
    """When the last of these came into history, milliseconds UTC; None without any."""
    row = reader.one(
        "select max(recorded_at) as at from messages where id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    return None if row is None or row["at"] is None else int(row["at"])


def last_id(reader: Reader, session_id: int) -> int:
    row = reader.one("select max(id) as id from messages where session_id = ?", (session_id,))
    return int(row["id"]) if row is not None and row["id"] is not None else 0


def said_by(reader: Reader, session_id: int, author_id: int, platform_ref: str) -> Message | None:
    """The message that somebody said here under the platform's id, unless its words are erased."""
    row = reader.one(
        _MESSAGE + " where session_id = ? and platform_ref = ? and author_id = ? and role = 'user'"
        # Ids start anew in a group that moved and under a new bot: the newest is meant.
        " and erased_at is null order by id desc limit 1",
        (session_id, platform_ref, author_id),
    )
    return None if row is None else message(row)


def said_here(reader: Reader, session_id: int, platform_refs: Sequence[str]) -> list[Message]:
    """What people said here under these ids of the platform, those with it whose words are erased."""
    rows = reader.all(
        _MESSAGE + " where id in (select max(id) from messages where session_id = ? and role = 'user'"
        # Ids start anew in a group that moved and under a new bot: the newest is meant.
        " and platform_ref in (select value from json_each(?)) group by platform_ref) order by id",
        (session_id, json.dumps(list(platform_refs))),
    )
    return [message(row) for row in rows]


def erase(tx: Transaction, message_ids: Sequence[int], *, now: int, by_age: bool = False) -> None:
    """Blank the words of these messages, with what came beside them: they are not read, learned or found any more.

    `by_age`, what was learned of them already may be learned from still: nobody has wished otherwise.
    """
    these = json.dumps(list(message_ids))
    tx.run(
        "update messages set text = '', tool_calls = null, recall = 0, erased_at = coalesce(erased_at, ?1),"
        " learn = learn and ?2 and id <= (select extracted_to from sessions s where s.id = session_id)"
        " where id in (select value from json_each(?3))",
        (now, int(by_age), these),
    )
    tx.run("delete from attachments where message_id in (select value from json_each(?))", (these,))
    documents.changed_messages(tx, message_ids)


def hide(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Put messages out of sight that are to be erased soon after, portion by portion."""
    tx.run(
        "update messages set learn = 0, recall = 0, erased_at = coalesce(erased_at, ?)"
        " where id in (select value from json_each(?))",
        (now, json.dumps(list(message_ids))),
    )


def reword(tx: Transaction, message_id: int, text: str, *, tokens: int, now: int) -> None:
    """A person has edited what they said."""
    tx.run("update messages set text = ?, tokens = ?, edited_at = ? where id = ?", (text, tokens, now, message_id))
    documents.changed(tx, documents.of_message(message_id))


def unlearn(tx: Transaction, message_ids: Iterable[int]) -> None:
    """Nothing is learned from these messages any more, and they are not found again. Their words stay."""
    these = list(message_ids)
    tx.run(
        "update messages set learn = 0, recall = 0 where id in (select value from json_each(?))", (json.dumps(these),)
    )
    documents.changed_messages(tx, these)


def replies_telling(
    reader: Reader, told: Iterable[tuple[str, Sequence[int]]], *, sources: Iterable[int]
) -> frozenset[int]:
    """The bot's messages that answered `sources`, and those that hold what was `told`: a value, and in which turns."""
    answers = reader.all(
        "select a.id from messages a where a.role <> 'user' and a.turn_id in"
        " (select turn_id from messages where id in (select value from json_each(?)))",
        (json.dumps(list(sources)),),
    )
    quotes = reader.all(
        "select a.id from json_each(?) told, json_each(told.value, '$[1]') turn"
        " join messages a on a.turn_id = turn.value"
        " where a.role <> 'user' and instr(lower(a.text), lower(json_extract(told.value, '$[0]'))) > 0",
        (json.dumps([(value, list(turns)) for value, turns in told]),),
    )
    return frozenset(row["id"] for row in (*answers, *quotes))


def begin_turn(tx: Transaction, session: Session, *, now: int) -> int:
    return tx.insert(
        "insert into turns (session_id, agent_id, state, started_at) values (?, ?, 'running', ?)",
        (session.id, session.agent_id, now),
    )


def retry_turn(tx: Transaction, turn_id: int) -> int:
    """Count another attempt at a turn that was cut off; returns how many there were."""
    row = tx.one("update turns set attempts = attempts + 1 where id = ? returning attempts", (turn_id,))
    assert row is not None
    return int(row["attempts"])


def end_turn(tx: Transaction, turn_id: int, *, error: str | None, now: int) -> None:
    tx.run(
        "update turns set state = ?, error = ?, finished_at = ? where id = ?",
        ("done" if error is None else "failed", error, now, turn_id),
    )


def abandon_turns(tx: Transaction, inbox_ids: Sequence[int], *, error: str, now: int) -> list[int]:
    """End the turns that hold these inbox rows and can't be brought to an answer; returns which.

    What their models and tools said goes: nobody goes on with it, and what is forgotten would not be looked for there.
    """
    ended = [
        row["id"]
        for inbox_id in inbox_ids
        for row in tx.all(
            "update turns set state = 'failed', error = ?, finished_at = ? where state = 'running'"
            " and id = (select turn_id from inbox where id = ?) returning id",
            (error, now, inbox_id),
        )
    ]
    for table in ("steps", "effects"):
        tx.run(f"delete from {table} where turn_id in (select value from json_each(?))", (json.dumps(ended),))
    return [int(turn_id) for turn_id in ended]


def answered_before(reader: Reader, chat_id: int) -> bool:
    """Whether any turn in a chat, in whichever thread, has brought an answer."""
    row = reader.one(
        "select 1 from sessions s join turns t on t.session_id = s.id and t.state = 'done' where s.chat_id = ? limit 1",
        (chat_id,),
    )
    return row is not None


def messages_of_turn(reader: Reader, turn_id: int) -> list[Message]:
    rows = reader.all(_MESSAGE + " where turn_id = ? order by id", (turn_id,))
    return [message(row) for row in rows]


def keep_step(tx: Transaction, turn_id: int, n: int, completion: str, *, now: int) -> None:
    tx.run("insert into steps values (?, ?, ?, ?)", (turn_id, n, completion, now))


def steps(reader: Reader, turn_id: int) -> list[str]:
    """The stored completions of a turn, in order, as the JSON they were kept in."""
    rows = reader.all("select completion from steps where turn_id = ? order by n", (turn_id,))
    return [row["completion"] for row in rows]


def keep_effect(tx: Transaction, turn_id: int, n: int, i: int, tool: str, result: str, *, now: int) -> None:
    """A tool ran to its end. Written in the transaction that holds the tool's own change, where it made one."""
    tx.run(
        "insert into effects values (?, ?, ?, ?, 'done', ?, ?) on conflict do update"
        " set state = 'done', result = excluded.result",
        (turn_id, n, i, tool, result, now),
    )


def effect(reader: Reader, turn_id: int, n: int, i: int) -> tuple[str, str | None] | None:
    """(state, result) of a tool call of this turn, or None when it never began."""
    row = reader.one("select state, result from effects where turn_id = ? and n = ? and i = ?", (turn_id, n, i))
    return None if row is None else (row["state"], row["result"])


#: The columns of a `Message`, for every statement that reads one.
COLUMNS = (
    "id, session_id, turn_id, role, author_id, author_name, text, tokens, learn, recall, sitting, nth, said_at,"
    " platform_ref, tool_calls, tool_call_id"
)
_MESSAGE = f"select {COLUMNS} from messages"


def message(row: Row) -> Message:
    """A row of `COLUMNS` as a value."""
    fields = dict(row)
    fields["learn"] = bool(fields["learn"])
    fields["recall"] = bool(fields["recall"])
    return Message(**fields)


def _last_nth(reader: Reader, session_id: int) -> int:
    row = reader.one("select max(nth) as nth from messages where session_id = ?", (session_id,))
    return int(row["nth"]) if row is not None and row["nth"] is not None else 0
