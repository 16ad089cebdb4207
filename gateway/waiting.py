"""A message in its lane, with all that its answer needs to know of it.

Invariants: messages of different agents are never merged, for these may have different stores; nor are those of
different turns that broke off; a command, a press or a code stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway import commands
from gateway.policy import code_in
from gateway.store import Store
from gateway.turn import Heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message in its lane. `turn_id` is set when a turn over it broke off in an earlier run.

    It is `late` when others have waited less long for their answer.
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
        return inbound.pressed is not None or commands.given(inbound) is not None or code_in(inbound.text) is not None
