"""The model that reads for an agent in the background, within a budget of tokens per day.

Invariants: Memory gets its model as a plain callable and knows no vendor. The booked tokens count against a day's
budget: all that an agent's models read and wrote, except for answers to people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memory.errors import MemoryFault
from memory.learn import extractions
from memory.store.database import Database
from memory.store.usage import Spent
from memory.text.times import clock

#: Tokens an answer may take: about 60 facts, or 20 behind the thoughts of a model that thinks.
ANSWER_TOKENS: Final = 6_000


class ModelFailed(MemoryFault):
    """The model gave no answer: it can't be reached, refuses, or takes too long. A later attempt may succeed."""

    code = "model_failed"


class RequestRefused(ModelFailed):
    """The model can be reached, but gives no usable answer to this request."""

    code = "model_refused"


class RequestTooLong(RequestRefused):
    """The request was longer than the model can read. A shorter one may succeed at once."""

    code = "context_overflow"


class BudgetSpent(MemoryFault):
    """The agent's tokens of the day are used up. The remaining work is done from `until` on, in milliseconds UTC."""

    code = "budget_spent"

    def __init__(self, message: str, *, until: int) -> None:
        super().__init__(message)
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model: instructions, and the material they apply to. The answer is to be JSON, of the `schema`."""

    instructions: str
    material: str
    max_tokens: int = ANSWER_TOKENS
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    text: str
    spent: Spent


#: Asks a model. Raises `ModelFailed` if the model gives no answer.
Complete: TypeAlias = Callable[[ModelRequest], Awaitable[ModelAnswer]]
#: Returns the tokens of material that fit beside instructions and an answer of so many tokens.
Room: TypeAlias = Callable[[str, int], int]


def ample(instructions: str, answer: int) -> int:
    """Returns more tokens than any request has: the room of a model whose context is not known."""
    return 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundModel:
    """The model that reads for one agent in the background.

    `tokens_per_day` limits the tokens it reads and writes in one day of the agent's timezone; None means no limit.
    One answer may take `seconds`.
    `room` tells how much material it can read at once, which may be less after it has refused a request as too long.
    """

    complete: Complete
    room: Room = ample
    tokens_per_day: int | None = None
    seconds: float = 90.0

    async def ask(
        self,
        request: ModelRequest,
        database: Database,
        *,
        agent_id: int,
        timezone: str,
        now: int,
        unbooked: int = 0,
    ) -> ModelAnswer:
        """Returns the model's answer. The caller books its cost. `unbooked` are the tokens of the same work so far.

        Raises `BudgetSpent`, `ModelFailed` and `TimeoutError`.
        """
        if self.tokens_per_day is not None:
            today, tomorrow = clock.day_bounds(now, timezone)
            tokens = await database.read(lambda reader: extractions.spent_since(reader, agent_id, today))
            tokens += unbooked
            if tokens >= self.tokens_per_day:
                raise BudgetSpent(f"{tokens} of {self.tokens_per_day} tokens of the day are used up.", until=tomorrow)
        async with asyncio.timeout(self.seconds):
            return await self.complete(request)
