"""Messages and turns: the messages word for word, and the course of each answer.

Invariants: A message's `learn` is fixed when it is recorded. Messages are never deleted, only blanked on request. A
step is stored before its tools run, and an effect together with its result, so a turn can be resumed where it broke
off.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.store import attachments, chats, documents, judgements, word_columns
from memory.store.chats import Session
from memory.store.database import Reader, Row, Transaction

#: A longer silence ends a sitting (DESIGN 2).
SITTING_GAP_MS = 3 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored message. `tool_calls` is JSON as the gateway gave it.

    `nth` is its position among the messages of the session that people saw, from 1; None for tool traffic.
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

    `learn` says whether memories may be made from it, `recall` whether it may be found again.
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
    utterances: Sequence[Utterance],
    *,
    owner_id: int,
    now: int,
) -> list[Message]:
    """Appends messages to a session's history as talk of `owner_id`; returns them in order.

    The session's row is written first, and so held until the end of the transaction: a second writer to this session
    waits before it is given an id or a position, and both follow the order of the commits.
    """
    sittings, last = [session.sitting], session.last_message_at
    for utterance in utterances:
        sittings.append(sittings[-1] + (last is not None and utterance.said_at - last > SITTING_GAP_MS))
        last = max(utterance.said_at, last or 0)
    chats.put(tx, session.id, sitting=sittings[-1], last_message_at=last)
    recorded = [
        _recorded(tx, session, turn_id, utterance, sitting=its, owner_id=owner_id, now=now)
        for utterance, its in zip(utterances, sittings[1:], strict=True)
    ]
    if findable := [one.id for one in recorded if one.nth is not None and one.recall]:
        documents.changed_messages(tx, findable)
    return recorded


def _recorded(
    tx: Transaction,
    session: Session,
    turn_id: int | None,
    utterance: Utterance,
    *,
    sitting: int,
    owner_id: int,
    now: int,
) -> Message:
    seen = utterance.role in ("user", "assistant") and bool(utterance.text.strip())
    row = tx.one(
        "insert into messages (session_id, turn_id, role, author_id, author_name, platform_ref, reply_to,"
        " text, tool_calls, tool_call_id, tokens, learn, recall, owner_id, nth, sitting, said_at, recorded_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " case when ? = 1 then (select coalesce(max(nth), 0) + 1 from messages where session_id = ?) end, ?, ?, ?)"
        f" returning {COLUMNS}",
        (
            session.id, turn_id, utterance.role, utterance.author_id, utterance.author_name, utterance.platform_ref,
            utterance.reply_to, utterance.text, utterance.tool_calls, utterance.tool_call_id, utterance.tokens,
            int(utterance.learn), int(utterance.recall), owner_id, int(seen), session.id, sitting, utterance.said_at,
            now,
        ),
    )  # fmt: skip
    assert row is not None
    return message(row)


def after(reader: Reader, session_id: int, message_id: int, *, limit: int) -> list[Message]:
    rows = reader.all(
        _MESSAGE + " where session_id = ? and id > ? and erased_at is null order by id desc limit ?",
        (session_id, message_id, limit),
    )
    return [message(row) for row in reversed(rows)]


def window(reader: Reader, session: Session, *, limit: int) -> tuple[list[Message], frozenset[int]]:
    """Returns the newest `limit` messages of a session's window, oldest first, and the ids of those with files."""
    rows = reader.all(
        f"select {COLUMNS}, exists (select 1 from attachments a where a.message_id = messages.id) as has_files"
        " from messages where session_id = ? and id > ? and erased_at is null order by id desc limit ?",
        (session.id, session.window_after, limit),
    )
    return [message(row) for row in reversed(rows)], frozenset(row["id"] for row in rows if row["has_files"])


def between(reader: Reader, session_id: int, first: int, last: int) -> list[Message]:
    """Returns a session's messages with ids from `first` to `last`, without erased ones."""
    return reader.each(
        _MESSAGE + " where session_id = ? and id between ? and ? and erased_at is null order by id",
        (session_id, first, last),
        message,
    )


def recorded_at(reader: Reader, message_ids: Sequence[int]) -> int | None:
    """Returns when the last of these messages was recorded, in milliseconds UTC; None if there is none."""
    return reader.id(
        "select max(recorded_at) as at from messages where id in (select value from json_each(?))", (message_ids,)
    )


def recorded_until(reader: Reader, message_ids: Sequence[int], at: int) -> list[int]:
    return reader.ids(
        "select id from messages where recorded_at <= ? and id in (select value from json_each(?))", (at, message_ids)
    )


def newest_id(reader: Reader) -> int:
    """Returns the highest id of a message of the whole store; 0 if there is none.

    Messages with lower ids may still be on their way, in transactions that are not committed yet.
    """
    return reader.number("select coalesce(max(id), 0) from messages")


def count_erased(reader: Reader) -> int:
    return reader.number("select count(*) from messages where erased_at is not null")


def last_ids(reader: Reader, session_ids: Collection[int]) -> dict[int, int]:
    """Returns the id of the newest message of each of these sessions that has any.

    Within a session ids follow the order of the commits: any later message there has a higher id.
    """
    return reader.pairs(
        "select session_id, max(id) as id from messages where session_id in (select value from json_each(?))"
        " group by session_id",
        (session_ids,),
    )


def last_id(reader: Reader, session_id: int) -> int:
    return reader.number("select coalesce(max(id), 0) from messages where session_id = ?", (session_id,))


def said_by(reader: Reader, session_id: int, author_id: int, platform_ref: str) -> Message | None:
    return reader.first(
        _MESSAGE + " where session_id = ? and platform_ref = ? and author_id = ? and role = 'user'"
        # Platform ids start anew in a group that moved and under a new bot: the newest message is meant.
        " and erased_at is null order by id desc limit 1",
        (session_id, platform_ref, author_id),
        message,
    )


def said_here(reader: Reader, session_id: int, platform_refs: Sequence[str]) -> list[Message]:
    """Returns the messages that people said here under these platform ids, erased ones included."""
    return reader.each(
        _MESSAGE + " where id in (select max(id) from messages where session_id = ? and role = 'user'"
        # Platform ids start anew in a group that moved and under a new bot: the newest message is meant.
        " and platform_ref in (select value from json_each(?)) group by platform_ref) order by id",
        (session_id, platform_refs),
        message,
    )


def erase(tx: Transaction, message_ids: Sequence[int], *, now: int, by_age: bool = False) -> None:
    """Blanks these messages and deletes their attachments: they are not read, learned from or found any more.

    What other messages quote of them goes too. With `by_age` that stays as long as the message that quotes it, and
    messages already read keep `learn`: more may still be learned from their memories, because nobody has wished
    otherwise.
    """
    if not by_age:
        attachments.drop_quotes(tx, message_ids)
    judgements.drop_of_answers(tx, message_ids)
    tx.run(
        f"update messages set {_EMPTY}, recall = 0, erased_at = coalesce(erased_at, ?1),"
        " learn = case when ?2 = 1 and id <= (select extracted_to from sessions s where s.id = session_id)"
        " then learn else 0 end"
        " where id in (select value from json_each(?3))",
        (now, int(by_age), message_ids),
    )
    attachments.drop_of_messages(tx, message_ids)
    documents.changed_messages(tx, message_ids)
    chats.drop_summaries_of(tx, message_ids)
    chats.drop_titles(tx, message_ids, by_age=by_age)


def unname(tx: Transaction, message_ids: Sequence[int]) -> None:
    tx.run("update messages set author_name = '' where id in (select value from json_each(?))", (message_ids,))


def unname_authors(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run("update messages set author_name = '' where author_id in (select value from json_each(?))", (identity_ids,))


def disown(tx: Transaction, message_ids: Sequence[int]) -> None:
    """Takes these messages out of everybody's history, as if nobody had said them."""
    tx.run(
        "update messages set owner_id = null, author_name = '', platform_ref = null"
        " where id in (select value from json_each(?))",
        (message_ids,),
    )


def move(tx: Transaction, message_ids: Sequence[int], turn_id: int) -> None:
    tx.run("update messages set turn_id = ? where id in (select value from json_each(?))", (turn_id, message_ids))


def mark_imported(tx: Transaction, message_ids: Sequence[int], import_id: int) -> None:
    tx.run("update messages set import_id = ? where id in (select value from json_each(?))", (import_id, message_ids))


def some_imported(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    return reader.ids(
        "select id from messages where import_id = ? and erased_at is null order by id limit ?", (import_id, limit)
    )


def hide(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Hides messages that are to be erased soon after, portion by portion."""
    tx.run(
        "update messages set learn = 0, recall = 0, erased_at = coalesce(erased_at, ?)"
        " where id in (select value from json_each(?))",
        (now, message_ids),
    )


def reword(tx: Transaction, message_id: int, text: str, *, tokens: int, now: int) -> None:
    tx.run("update messages set text = ?, tokens = ?, edited_at = ? where id = ?", (text, tokens, now, message_id))
    documents.changed(tx, documents.of_message(message_id))
    chats.drop_summaries_of(tx, [message_id])


def unlearn(tx: Transaction, message_ids: Iterable[int]) -> None:
    """Excludes these messages from learning, recall and summaries. Their words stay."""
    these = list(message_ids)
    tx.run("update messages set learn = 0, recall = 0 where id in (select value from json_each(?))", (these,))
    documents.changed_messages(tx, these)
    chats.drop_summaries_of(tx, these)


def unlearn_unread(tx: Transaction, person_id: int) -> None:
    tx.run(
        "update messages set learn = 0 where learn = 1"
        " and author_id in (select id from identities where person_id = ?)"
        " and (id > (select extracted_to from sessions where sessions.id = messages.session_id)"
        "   or exists (select 1 from extractions e where e.session_id = messages.session_id"
        "     and e.state in ('pending', 'parked') and messages.id between e.first_id and e.last_id))",
        (person_id,),
    )


def replies_telling(
    reader: Reader, told: Iterable[tuple[str, Sequence[int]]], *, sources: Collection[int]
) -> frozenset[int]:
    """Returns the bot's messages that answered `sources` or that hold a value of `told`, each given with its turns."""
    answers = reader.all(
        "select a.id from messages a where a.role <> 'user' and a.turn_id in"
        " (select turn_id from messages where id in (select value from json_each(?)))",
        (sources,),
    )
    quotes = reader.all(
        "select a.id from json_each(?) told, json_each(told.value, '$[1]') turn"
        " join messages a on a.turn_id = cast(turn.value as bigint)"
        " where a.role <> 'user' and instr(lower(a.text), lower(json_extract(told.value, '$[0]'))) > 0",
        (json.dumps([(value, list(turns)) for value, turns in told]),),
    )
    return frozenset(row["id"] for row in (*answers, *quotes))


def last_exchange(reader: Reader, session_id: int, *, after: int, authors: Sequence[int]) -> list[Row]:
    """Returns the messages, in order, of the last ended turn above the id `after` in which these people spoke.

    They are rows of id, turn_id, role, text and said_at; erased messages are left out.
    """
    return reader.all(
        "select id, turn_id, role, text, said_at from messages where erased_at is null and turn_id = ("
        "   select m.turn_id from messages m join turns t on t.id = m.turn_id"
        "   where m.session_id = ?1 and m.id > ?2 and m.role = 'user' and m.erased_at is null"
        "   and t.state <> 'running' and m.author_id in (select value from json_each(?3)) order by m.id desc limit 1)"
        " order by id",
        (session_id, after, authors),
    )


def held_by(reader: Reader, owner_id: int) -> list[Row]:
    """Returns all that people and the bot said in an owner's history, erased messages included."""
    return reader.all(
        "select m.id, m.role, m.author_id, m.said_at, m.text, m.erased_at, m.import_id, m.platform_ref, s.thread"
        " from messages m join sessions s on s.id = m.session_id"
        " where m.owner_id = ? and m.role in ('user', 'assistant')",
        (owner_id,),
    )


def begin_turn(tx: Transaction, session: Session, *, now: int) -> tuple[int, bool, bool]:
    """Begins a turn. Returns its id, whether a turn in this chat has brought an answer before, and whether any question
    may be open in this session."""
    row = tx.one(
        "insert into turns (session_id, agent_id, state, started_at) values (?, ?, 'running', ?)"
        f" returning id, exists ({_ANSWERED}) as answered,"
        " exists (select 1 from questions q where q.session_id = turns.session_id and q.state = 'open') as asked",
        (session.id, session.agent_id, now, session.chat_id),
    )
    assert row is not None
    return int(row["id"]), bool(row["answered"]), bool(row["asked"])


def retry_turn(tx: Transaction, turn_id: int) -> int:
    row = tx.one("update turns set attempts = attempts + 1 where id = ? returning attempts", (turn_id,))
    assert row is not None
    return int(row["attempts"])


def end_turn(tx: Transaction, turn_id: int, *, error: str | None, portions: Mapping[str, int], now: int) -> bool | None:
    """Ends a running turn, with or without an answer. Returns whether a message that it answers was erased meanwhile.

    `portions` are the tokens of each part of its request. Returns None if the turn has ended already.
    """
    row = tx.one(
        "update turns set state = ?, error = ?, portions = ?, finished_at = ? where id = ? and state = 'running'"
        " returning exists (select 1 from messages m"
        " where m.turn_id = turns.id and m.role = 'user' and m.erased_at is not null)",
        ("done" if error is None else "failed", error, json.dumps(portions) if portions else None, now, turn_id),
    )
    return None if row is None else bool(row[0])


def drop_portions(tx: Transaction, *, turn_ids: Sequence[int] = (), session_ids: Sequence[int] = ()) -> None:
    tx.run(
        "update turns set portions = null where portions is not null and (id in (select value from json_each(?))"
        " or session_id in (select value from json_each(?)))",
        (turn_ids, session_ids),
    )


def abandon_turns(tx: Transaction, inbox_ids: Sequence[int], *, error: str, now: int) -> list[int]:
    """Ends the turns of these inbox rows, which can't be brought to an answer; returns their ids.

    Deletes the words of their models and tools: they are never resumed, and not searched when something is forgotten.
    """
    begun = tx.ids(
        "select turn_id from inbox where turn_id is not null and id in (select value from json_each(?))", (inbox_ids,)
    )
    ended = fail_turns(tx, begun, error=error, now=now)
    drop_steps(tx, ended)
    return ended


def fail_turns(tx: Transaction, turn_ids: Collection[int], *, error: str, now: int) -> list[int]:
    """Ends the running ones of these turns, without an answer; returns their ids."""
    return tx.ids(
        "update turns set state = 'failed', error = ?, finished_at = ? where state = 'running'"
        " and id in (select value from json_each(?)) returning id",
        (error, now, turn_ids),
    )


def drop_steps(tx: Transaction, turn_ids: Collection[int]) -> bool:
    """Deletes the model's steps and the tools' results of these turns. Returns whether there were any."""
    steps = tx.all("delete from steps where turn_id in (select value from json_each(?)) returning turn_id", (turn_ids,))
    effects = tx.all(
        "delete from effects where turn_id in (select value from json_each(?)) returning turn_id", (turn_ids,)
    )
    return bool(steps or effects)


def running_turns(reader: Reader, turn_ids: Collection[int]) -> set[int]:
    return set(
        reader.ids(
            "select id from turns where state = 'running' and id in (select value from json_each(?))", (turn_ids,)
        )
    )


def running_in(reader: Reader, session_ids: Collection[int]) -> set[int]:
    return set(
        reader.ids(
            "select id from turns where state = 'running' and session_id in (select value from json_each(?))",
            (session_ids,),
        )
    )


def has_failed(reader: Reader, turn_id: int) -> bool:
    return reader.has("select 1 from turns where id = ? and state = 'failed'", (turn_id,))


def turns_of(reader: Reader, message_ids: Collection[int]) -> list[int]:
    return reader.ids(
        "select distinct turn_id from messages where turn_id is not null and id in (select value from json_each(?))",
        (message_ids,),
    )


def answered_before(reader: Reader, chat_id: int) -> bool:
    return reader.has(f"{_ANSWERED} limit 1", (chat_id,))


def messages_of_turn(reader: Reader, turn_id: int) -> list[Message]:
    return reader.each(_MESSAGE + " where turn_id = ? order by id", (turn_id,), message)


def keep_step(tx: Transaction, turn_id: int, n: int, completion: str, *, now: int) -> bool:
    """Keeps the completion of a running turn. Returns False if the turn has ended or has such a step already."""
    return tx.has(
        "insert into steps select ?, ?, ?, ? where exists (select 1 from turns where id = ? and state = 'running')"
        " on conflict do nothing returning n",
        (turn_id, n, completion, now, turn_id),
    )


def steps(reader: Reader, turn_id: int) -> list[str]:
    return reader.texts("select completion from steps where turn_id = ? order by n", (turn_id,))


def keep_effect(tx: Transaction, turn_id: int, n: int, i: int, tool: str, result: str, *, now: int) -> None:
    """Stores the result of a tool that ran to its end, in the transaction of the tool's own change if it made one."""
    tx.run(
        "insert into effects values (?, ?, ?, ?, 'done', ?, ?) on conflict (turn_id, n, i) do update"
        " set state = 'done', result = excluded.result",
        (turn_id, n, i, tool, result, now),
    )


def begin_effect(tx: Transaction, turn_id: int, n: int, i: int, tool: str, *, now: int) -> None:
    """Notes that a tool begins whose change is not ours to commit with its result."""
    tx.run("insert into effects values (?, ?, ?, ?, 'started', null, ?)", (turn_id, n, i, tool, now))


def results_summed_up(reader: Reader, session_id: int, limit: int) -> list[Message]:
    """Returns the last results of tools among the messages that the session's summary covers, newest first."""
    rows = reader.all(
        f"{_MESSAGE} where session_id = ?1 and role = 'tool' and recall = 1 and erased_at is null"
        " and id > (select summary_after from sessions where id = ?1)"
        " and id <= (select window_after from sessions where id = ?1) order by id desc limit ?2",
        (session_id, limit),
    )
    return [message(row) for row in rows]


def effect(reader: Reader, turn_id: int, n: int, i: int) -> tuple[str, str | None] | None:
    """Returns (state, result) of a tool call of this turn; None if it never began."""
    row = reader.one("select state, result from effects where turn_id = ? and n = ? and i = ?", (turn_id, n, i))
    return None if row is None else (row["state"], row["result"])


#: The columns of a `Message`, for every statement that reads messages.
COLUMNS = (
    "id, session_id, turn_id, role, author_id, author_name, text, tokens, learn, recall, sitting, nth, said_at,"
    " platform_ref, tool_calls, tool_call_id"
)
_FIELDS = COLUMNS.split(", ")
_MESSAGE = f"select {COLUMNS} from messages"
#: The turns of a chat, in any thread, that have brought an answer.
_ANSWERED = "select 1 from sessions s join turns t on t.session_id = s.id and t.state = 'done' where s.chat_id = ?"
#: An erased message keeps its author's name, which goes with the person.
_EMPTY = word_columns.emptied("messages", besides=("author_name",))


def message(row: Row) -> Message:
    """Returns a row that begins with `COLUMNS` as a `Message`."""
    values = dict(zip(_FIELDS, row, strict=False))
    values["learn"], values["recall"] = bool(values["learn"]), bool(values["recall"])
    return Message(**values)
