"""What model calls cost, per turn, session, agent and purpose."""

from __future__ import annotations

from dataclasses import dataclass

from memory.store.database import Reader, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens of one or more model calls, and the model's name as configured."""

    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool


def add(
    tx: Transaction,
    spent: Spent,
    *,
    turn_id: int | None,
    session_id: int | None,
    agent_id: int,
    purpose: str,
    now: int,
) -> None:
    tx.run(
        "insert into usage (turn_id, session_id, agent_id, purpose, model, input_tokens, output_tokens,"
        " cached_tokens, estimated, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn_id, session_id, agent_id, purpose, spent.model, spent.input_tokens, spent.output_tokens,
            spent.cached_tokens, int(spent.estimated), now,
        ),
    )  # fmt: skip


def of_turn(reader: Reader, turn_id: int) -> list[Spent]:
    rows = reader.all(
        "select model, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,"
        " sum(cached_tokens) as cached_tokens, max(estimated) as estimated from usage where turn_id = ? group by model",
        (turn_id,),
    )
    return [Spent(**{**dict(row), "estimated": bool(row["estimated"])}) for row in rows]


def of_agent(reader: Reader, agent_id: int, *, since: int) -> tuple[int, int]:
    """Tokens in and out of an agent since a time."""
    row = reader.one(
        "select coalesce(sum(input_tokens), 0) as i, coalesce(sum(output_tokens), 0) as o from usage"
        " where agent_id = ? and created_at >= ?",
        (agent_id, since),
    )
    assert row is not None
    return int(row["i"]), int(row["o"])
