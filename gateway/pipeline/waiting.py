"""A message in its lane, with everything that its answer needs.

Invariants: messages for different agents are never merged, because the agents may have different stores. Messages of
different interrupted turns are never merged. A command, a press or a code stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.commands import table
from gateway.pipeline.policy import code_in
from gateway.pipeline.request import Heard
from gateway.pipeline.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message in its lane.

    `turn_id` is set if its turn was interrupted in an earlier run. `late` is true if other messages have waited less
    long for their answer.
    """

    heard: Heard
    agent: str
    store: Store
    burst_seconds: float
    late: bool
    turn_id: int | None = None

    @property
    def author(self) -> str:
        whose = self.heard.inbound.author_id if self.turn_id is None else f"turn {self.turn_id}"
        return f"{self.agent} {whose}"

    @property
    def group(self) -> str:
        return self.agent

    @property
    def alone(self) -> bool:
        inbound = self.heard.inbound
        return inbound.pressed is not None or table.given(inbound) is not None or code_in(inbound.text) is not None
