"""Standing tasks: the work that an agent's file orders at set times, for one person, without a request in the chat.

Invariant: an agent's `HEARTBEAT.md` is read anew each time; a file without anything to do calls no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from agents.spec import AgentSpec, StandingSpec
from memory.text.times.rules import parse_rule as reminder_rule

log = structlog.get_logger(__name__)

#: The name of the file beside an agent's file, and the characters of it that are read.
HEARTBEAT: Final = "HEARTBEAT.md"
_READ: Final = 8_000
#: Lines that ask for nothing: blank ones, headings, comments and boxes without a word.
_IDLE: Final = re.compile(r"\s*(?:#.*|[-*+]?\s*(?:\[[ xX]?\])?\s*)")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingTask:
    """A task of an agent's file. `key` names it among all of a store; `folder` holds the agent's file."""

    agent: AgentSpec
    task: StandingSpec
    key: str
    folder: Path

    @property
    def rule(self) -> str:
        return reminder_rule(self.task.at)

    @property
    def person(self) -> tuple[str, str]:
        platform, _, user_id = self.task.person.partition(":")
        return platform, user_id

    def words(self) -> str:
        if self.task.text is not None:
            return self.task.text
        try:
            with (self.folder / HEARTBEAT).open(encoding="utf-8", errors="replace") as file:
                held = _COMMENT.sub("", file.read(_READ))
        except OSError as exc:
            log.warning("task.unread", agent=self.agent.name, file=str(self.folder / HEARTBEAT), error=exc.strerror)
            return ""
        return held.strip() if any(not _IDLE.fullmatch(line) for line in held.splitlines()) else ""


def standing(agents: Mapping[str, AgentSpec], folder: Path) -> list[StandingTask]:
    return [
        StandingTask(agent=agent, task=task, key=f"{agent.name}:{number}", folder=folder)
        for agent in agents.values()
        for number, task in enumerate(agent.tasks)
    ]
