"""A store as the pipeline sees it: a database, the parts that run on it, and the place and author of its messages.

`Roster` says which agents answer, and on which store.

Invariant: memory learns no more about a message's place and author than `where_said` and `who_said` return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.spec import AgentSpec
from channels.base import Inbound
from gateway.ops.night_clock import Worker
from gateway.pipeline.course import Agent
from gateway.pipeline.delivery import Delivery
from gateway.pipeline.turn import TurnRunner
from memory.chat.identities import Where, Who
from memory.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A database and the parts that run on it. `nights` runs the night jobs, if there are any."""

    memory: Service
    turns: TurnRunner
    delivery: Delivery
    nights: Worker | None = None


@dataclass(slots=True, kw_only=True)
class Roster:
    """The agents by name, each with its store.

    `route` returns the name of the agent that the rules give a message: `default`, unless one says otherwise. `chosen`
    holds the agents that people chose instead, by session key; a choice counts only within the store that the rules
    give, because memory must not cross stores. `api` is the address at which programs reach the agents; "" if they
    can't. `pages` holds the addresses of the agents' web pages. Only `renew` changes the agents: a message that is
    being answered keeps the one it began with.
    """

    agents: Mapping[str, Agent]
    stores: Mapping[str, Store]
    route: Callable[[Inbound], str]
    default: str
    api: str = ""
    chosen: dict[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)

    def renew(self, agents: Mapping[str, Agent], route: Callable[[Inbound], str], default: str) -> None:
        """Takes other agents and rules. All present agents must be among them; new ones must share a database."""
        self.stores = {name: self.stores.get(name) or self._store_of(agent.spec) for name, agent in agents.items()}
        self.agents, self.route, self.default = agents, route, default

    def _store_of(self, spec: AgentSpec) -> Store:
        return next(self.stores[name] for name, one in self.agents.items() if one.spec.database == spec.database)

    def name_for(self, inbound: Inbound) -> str:
        placed = self.route(inbound)
        chosen = self.chosen.get(inbound.place.session_key, placed)
        return chosen if chosen in self.beside(placed) else placed

    def agent_for(self, inbound: Inbound) -> Agent:
        return self.agents[self.name_for(inbound)]

    def store_for(self, inbound: Inbound) -> Store:
        return self.stores[self.route(inbound)]

    def beside(self, name: str) -> list[str]:
        return [other for other, store in self.stores.items() if store is self.stores[name]]

    def choose(self, inbound: Inbound, name: str | None) -> None:
        """Makes an agent answer in the place of a message from now on; None leaves it to the rules."""
        key = inbound.place.session_key
        self.chosen.pop(key, None)
        if name is not None:
            self.chosen[key] = name

    async def load_choices(self) -> None:
        chosen: dict[str, str] = {}
        for store in self.each_store:
            chosen |= await store.memory.identities.chosen_agents()
        self.chosen = chosen

    @property
    def each_store(self) -> list[Store]:
        return list({id(store): store for store in self.stores.values()}.values())


def where_said(inbound: Inbound, agent: AgentSpec) -> Where:
    """Returns the place of a message that `agent` answers, in memory's terms."""
    return Where(
        session_key=inbound.place.session_key,
        platform=inbound.platform,
        chat=inbound.chat,
        chat_kind=inbound.chat_kind,
        chat_title=inbound.chat_title,
        thread=inbound.thread,
        agent=agent.name,
        own_threads=agent.memory.threads == "own",
    )


def who_said(inbound: Inbound) -> Who:
    return Who(platform=inbound.platform, user_id=inbound.author_id, name=inbound.author_name)
