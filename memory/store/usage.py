"""The cost of model calls per turn, session, agent and purpose."""

from __future__ import annotations

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
    tx.run(
        "insert into usage (turn_id, session_id, agent_id, identity_id, purpose, model, input_tokens, output_tokens,"
        " cached_tokens, estimated, cost, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn_id, session_id, agent_id, identity_id, purpose, spent.model, spent.input_tokens, spent.output_tokens,
            spent.cached_tokens, int(spent.estimated), spent.cost, now,
        ),
    )  # fmt: skip


def of_turn(reader: Reader, turn_id: int) -> list[Spent]:
    rows = reader.all(
        "select model, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,"
        " sum(cached_tokens) as cached_tokens, max(estimated) as estimated, sum(cost) as cost from usage"
        " where turn_id = ? group by model",
        (turn_id,),
    )
    return [Spent(**{**dict(row), "estimated": bool(row["estimated"])}) for row in rows]
