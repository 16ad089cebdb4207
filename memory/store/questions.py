"""Questions to people that survive a restart.

Invariants: At most one question per person and session is open. Its payload holds ids, never text. Only the person
asked can answer it, before it expires.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memory.store.database import Reader, Row, Transaction

LIFETIME_MS = 10 * 60 * 1000
#: The time after a question has expired during which the person is told that the answer came too late.
_WORTH_TELLING_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open question. `preset` is the choice that a plain "yes" takes.

    `asked_again` is set once the person was asked a second time after an unclear answer.
    """

    id: int
    purpose: str
    payload: str
    choices: tuple[str, ...]
    preset: str
    asked_again: bool = False


def ask(
    tx: Transaction,
    now: int,
    session_id: int,
    asker_id: int,
    purpose: str,
    payload: Mapping[str, object],
    *,
    choices: Sequence[str],
    preset: str,
) -> Question:
    """Opens a question; cancels an earlier open question to the same person in this session.

    `payload` holds ids and figures, and must not hold text.
    """
    ids = json.dumps(dict(payload))
    tx.run(
        "update questions set state = 'cancelled' where session_id = ? and asker_id = ? and state = 'open'",
        (session_id, asker_id),
    )
    question_id = tx.insert(
        "insert into questions (session_id, asker_id, purpose, payload, choices, preset, state, created_at, expires_at)"
        " values (?, ?, ?, ?, ?, ?, 'open', ?, ?)",
        (session_id, asker_id, purpose, ids, json.dumps(choices), preset, now, now + LIFETIME_MS),
    )
    return Question(id=question_id, purpose=purpose, payload=ids, choices=tuple(choices), preset=preset)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """An open question with the private chat and the account in which it was put, and its expiry."""

    question: Question
    session_key: str
    user_id: str
    name: str
    expires_at: int


def open_to_any(reader: Reader, asker_ids: Sequence[int], *, now: int) -> list[OpenQuestion]:
    """Returns the questions to these identities that are open in private chats, oldest first."""
    rows = reader.all(
        f"select {_FIELDS}, s.key as session_key, i.user_id, i.name, q.expires_at from questions q"
        " join sessions s on s.id = q.session_id join chats c on c.id = s.chat_id"
        " join identities i on i.id = q.asker_id where q.asker_id in (select value from json_each(?))"
        " and q.state = 'open' and q.expires_at > ? and c.kind = 'private' order by q.id",
        (asker_ids, now),
    )
    return [
        OpenQuestion(
            question=_question(row), **{name: row[name] for name in ("session_key", "user_id", "name", "expires_at")}
        )
        for row in rows
    ]


def open_question(reader: Reader, session_key: str, *, platform: str, user_id: str, now: int) -> Question | None:
    return reader.first(
        _QUESTION + " join sessions s on s.id = q.session_id join identities i on i.id = q.asker_id"
        " where s.key = ? and i.platform = ? and i.user_id = ? and q.state = 'open' and q.expires_at > ?",
        (session_key, platform, user_id, now),
        _question,
    )


def open_to(reader: Reader, *, session_id: int, asker_id: int, now: int) -> Question | None:
    return reader.first(
        _QUESTION + " where q.session_id = ? and q.asker_id = ? and q.state = 'open' and q.expires_at > ?",
        (session_id, asker_id, now),
        _question,
    )


def shown(
    reader: Reader, session_keys: Sequence[str], platform_ref: str, *, asker_id: int, now: int
) -> tuple[str, Question] | None:
    """Returns the open question to an identity under the message with this id, and the key of its session.

    Rows of the outbox don't keep their buttons. A question was made in the transaction that queued its message, or in
    the turn that the message answers, and stands under the last part of it.
    """
    return reader.first(
        f"select s.key as session_key, {_FIELDS} from questions q join sessions s on s.id = q.session_id"
        " join outbox o on o.session_key = s.key left join turns t on t.id = o.turn_id"
        " where q.state = 'open' and q.expires_at > ?1 and q.asker_id = ?2"
        " and s.key in (select value from json_each(?3)) and o.platform_ref = ?4 and o.kind <> 'placeholder'"
        " and q.created_at between coalesce(t.started_at, o.created_at) and o.created_at"
        " and not exists (select 1 from outbox l where l.session_key = o.session_key"
        " and l.created_at = o.created_at and l.chunk > o.chunk)",
        (now, asker_id, session_keys, platform_ref),
        lambda row: (str(row["session_key"]), _question(row)),
    )


def ask_again(tx: Transaction, question_id: int) -> bool:
    """Notes that an open question is put a second time; returns False if it was already, or is no longer open."""
    return tx.has(
        "update questions set payload = json_set(payload, '$.asked_again', 1) where id = ? and state = 'open'"
        " and json_extract(payload, '$.asked_again') is null returning id",
        (question_id,),
    )


def withdraw(tx: Transaction, turn_id: int) -> None:
    """Cancels a turn's questions that never reached the person, so that nobody says yes to them unawares."""
    tx.run(
        "update questions set state = 'cancelled' where state = 'open' and session_id ="
        " (select session_id from turns where id = ?1) and created_at >= (select started_at from turns where id = ?1)",
        (turn_id,),
    )


def withdraw_naming(tx: Transaction, identity_ids: Collection[int]) -> None:
    """Cancels each question whose payload lists one of these identities in `accounts`: these have changed since."""
    tx.run(
        "update questions set state = 'cancelled' where state = 'open' and exists (select 1"
        " from json_each(payload, '$.accounts') a where cast(a.value as bigint) in (select value from json_each(?)))",
        (identity_ids,),
    )


def settle(tx: Transaction, question_id: int, answer: str | None, *, inbox_id: int | None = None) -> bool:
    """Closes an open question with the choice taken, or cancels it for None; returns False if it is no longer open.

    `inbox_id` is the inbox row that gave the answer, where that matters later.
    """
    return tx.has(
        "update questions set state = ?, answer = ?, payload = case when ?4 is null then payload"
        " else json_set(payload, '$.answered_by', ?4) end where id = ?3 and state = 'open' returning id",
        ("cancelled" if answer is None else "answered", answer, question_id, inbox_id),
    )


def settled_by(reader: Reader, purpose: str, inbox_ids: Sequence[int]) -> str | None:
    """Returns the payload of the question for `purpose` that one of these inbox rows has answered, or None."""
    return reader.text(
        "select payload from questions where purpose = ? and state = 'answered'"
        " and cast(json_extract(payload, '$.answered_by') as bigint) in (select value from json_each(?))",
        (purpose, inbox_ids),
    )


def lapse(
    tx: Transaction, purpose: str, *, asker_id: int | None = None, account_id: int | None = None, now: int
) -> bool:
    """Closes the expired questions for `purpose`; returns whether any of them expired within the last day.

    The questions are those put to the identity `asker_id` and those whose payload has `account_id` as its `account`. A
    second call returns False.
    """
    rows = tx.all(
        "update questions set state = 'expired' where state = 'open' and purpose = ?1 and expires_at <= ?2"
        " and (asker_id = ?3 or cast(json_extract(payload, '$.account') as bigint) = ?4) returning expires_at",
        (purpose, now, asker_id, account_id),
    )
    return any(row["expires_at"] > now - _WORTH_TELLING_MS for row in rows)


def expire_all(tx: Transaction) -> None:
    tx.run("update questions set state = 'expired' where state = 'open'")


def drop_unanswered(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run(
        "delete from questions where asker_id in (select value from json_each(?)) and state <> 'answered'",
        (identity_ids,),
    )


_FIELDS = (
    "q.id, q.purpose, q.payload, q.choices, q.preset,"
    " json_extract(q.payload, '$.asked_again') is not null as asked_again"
)
_QUESTION = f"select {_FIELDS} from questions q"


def _question(row: Row) -> Question:
    return Question(
        **{name: row[name] for name in ("id", "purpose", "payload", "preset")},
        choices=tuple(json.loads(row["choices"])),
        asked_again=bool(row["asked_again"]),
    )
