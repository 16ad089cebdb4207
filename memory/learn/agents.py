"""The agents of one store: their memory settings and the ids of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from memory.learn.model import BackgroundModel
from memory.store import scopes
from memory.store.database import Transaction
from memory.store.scopes import NameFinder


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The rule by which a conversation begins anew: after so many silent milliseconds, or `at` an hour of the day."""

    idle_ms: int | None = None
    at: time | None = None

    def is_due(self, last: int | None, now: int, timezone: str) -> bool:
        """Returns whether a message `now` begins a new conversation after one last used `last`, in milliseconds UTC."""
        if last is None:
            return False
        if self.idle_ms is not None and now - last >= self.idle_ms:
            return True
        if self.at is None:
            return False
        zone = ZoneInfo(timezone)
        local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
        begun = datetime.combine(local.date(), self.at, zone)
        if begun > local:
            begun = datetime.combine(local.date() - timedelta(days=1), self.at, zone)
        return last < begun.timestamp() * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    """The memory settings of one agent. Its `model` reads for it in the background; without a model, patterns do.

    With `learns_style` it learns a manner of talking to people. With `nightly`, night jobs work on people's memories.
    `rotation` says when a conversation with it begins anew by itself, `entities` what finds the names in its memories.
    """

    timezone: str = "UTC"
    model: BackgroundModel | None = None
    learns_style: bool = True
    nightly: bool = True
    rotation: Rotation = Rotation()
    entities: NameFinder = "auto"


#: The settings of an agent that is no longer configured. Messages to it may still have to be read.
_GONE: Final = AgentMemory(learns_style=False, nightly=False)


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of a store: `ids` of the configured agents by name, and settings `by_id`.

    `by_id` also holds agents that are no longer configured.
    """

    ids: dict[str, int]
    by_id: dict[int, AgentMemory]

    def timezone(self, agent_id: int) -> str:
        return self.by_id[agent_id].timezone

    def model(self, agent_id: int) -> BackgroundModel | None:
        return self.by_id[agent_id].model

    def renew(self, ids: Mapping[str, int], settings: Mapping[str, AgentMemory]) -> None:
        self.ids.update(ids)
        self.by_id.update({ids[name]: agent for name, agent in settings.items()})

    @property
    def nightly(self) -> list[int]:
        return [agent_id for agent_id in self.ids.values() if self.by_id[agent_id].nightly]


def enter(tx: Transaction, configured: Mapping[str, AgentMemory], *, now: int) -> Agents:
    ids = {name: scopes.agent(tx, name, now=now) for name in configured}
    for name, agent in configured.items():
        scopes.find_names(tx, ids[name], agent.entities)
    gone = dict.fromkeys(scopes.agents(tx), _GONE)
    return Agents(ids, gone | {ids[name]: agent for name, agent in configured.items()})
