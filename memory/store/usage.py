"""The cost of model calls per turn, session, agent and purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.store.database import Reader, Transaction

#: The purposes of calls that answer people.
ANSWERS: Final = ("chat", "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The tokens of one or more model calls, and the model's name as configured.

    `cost` is in the currency of the configured prices; None if no price is known.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool
    cost: float | None = None


def add(
    tx: Transaction,
    spent: Spent,
    *,
    agent_id: int,
    purpose: str,
    now: int,
    turn_id: int | None = None,
    session_id: int | None = None,
    identity_id: int | None = None,
) -> None:
    """Books a call. `identity_id` is the identity that was answered."""
    tx.run(
        "insert into usage (turn_id, session_id, agent_id, identity_id, purpose, model, input_tokens, output_tokens,"
        " cached_tokens, estimated, cost, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn_id, session_id, agent_id, identity_id, purpose, spent.model, spent.input_tokens, spent.output_tokens,
            spent.cached_tokens, int(spent.estimated), spent.cost, now,
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The sum of model calls of one purpose with one model. `cost` is None if no price is known for any of them."""

    purpose: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def used(reader: Reader, agent_id: int, *, session_id: int | None, since: int) -> list[Used]:
    """Returns an agent's usage since a time in milliseconds UTC, in one session or in all, the largest first."""
    rows = reader.all(
        "select purpose, model, count(*) as calls, sum(input_tokens) as input_tokens,"
        " sum(output_tokens) as output_tokens, sum(cost) as cost from usage"
        " where agent_id = ?1 and created_at >= ?2 and (?3 is null or session_id = ?3)"
        " group by purpose, model order by sum(input_tokens) + sum(output_tokens) desc",
        (agent_id, since, session_id),
    )
    return [Used(**dict(row)) for row in rows]


def last(reader: Reader) -> int:
    """Returns the moment of the last booking, for `between`.

    With one writer no booking appears later under a lower id. With several, a figure might miss one, which is harmless.
    """
    row = reader.one("select coalesce(max(id), 0) as id from usage")
    assert row is not None
    return int(row["id"])


def between(reader: Reader, since: int, until: int) -> list[Used]:
    """Returns the sums of the bookings after one moment and up to another."""
    rows = reader.all(
        "select purpose, model, count(*) as calls, sum(input_tokens) as input_tokens,"
        " sum(output_tokens) as output_tokens, sum(cost) as cost from usage"
        " where id > ? and id <= ? group by purpose, model",
        (since, until),
    )
    return [Used(**dict(row)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedQuarter:
    """The model calls of a quarter of an hour for one purpose, with its beginning in milliseconds UTC."""

    at: int
    purpose: str
    calls: int
    tokens: int
    cost: float | None


def by_quarter(reader: Reader, agent_id: int, *, since: int) -> list[UsedQuarter]:
    """Returns an agent's usage by quarters of an hour, a unit that divides days evenly in every time zone."""
    rows = reader.all(
        "select created_at / 900000 * 900000 as at, purpose, count(*) as calls,"
        " sum(input_tokens + output_tokens) as tokens, sum(cost) as cost from usage"
        " where agent_id = ? and created_at >= ? group by 1, 2 order by 1",
        (agent_id, since),
    )
    return [UsedQuarter(**dict(row)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The tokens read and written for answers, and their cost as far as prices are known."""

    tokens: int
    cost: float


def answers_since(
    reader: Reader, agent_id: int, *, since: int, people: Sequence[int] | None = None, chat_id: int | None = None
) -> Taken:
    """Returns the usage of an agent's answers since a time: those to some people, in a chat, or all."""
    whose = " and identity_id in (select value from json_each(?))" if people is not None else ""
    where = " and session_id in (select id from sessions where chat_id = ?)" if chat_id is not None else ""
    row = reader.one(
        "select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0.0) as cost from usage"
        f" where purpose in ('chat', 'task') and agent_id = ? and created_at >= ?{whose}{where}",
        (agent_id, since, *(one for one in (people, chat_id) if one is not None)),
    )
    assert row is not None
    return Taken(tokens=row["tokens"], cost=row["cost"])


def of_turn(reader: Reader, turn_id: int) -> list[Spent]:
    rows = reader.all(
        "select model, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,"
        " sum(cached_tokens) as cached_tokens, max(estimated) as estimated, sum(cost) as cost from usage"
        " where turn_id = ? group by model",
        (turn_id,),
    )
    return [Spent(**{**dict(row), "estimated": bool(row["estimated"])}) for row in rows]
