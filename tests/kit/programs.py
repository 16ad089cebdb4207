"""How programs read what a store remembers: over the memory API, as tools, and through a model that repeats all of it.

Invariant: a program has a key of its person's, and sees what they see in private with the same agent, wherever they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from agents.llm import Completion, OnText, Request
from channels.api import API, ApiChannel
from channels.ids import FORMATS
from gateway.pipeline.policy import Rules
from gateway.pipeline.store import Roster
from memory.people.keyring import SCOPES as KEY_SCOPES
from memory.text.links import defang
from tests.kit.assembly import agent, assembled_store
from tests.kit.canaries import Spot, World
from tests.kit.doors import doors_of
from tests.kit.fakes import NOON, counting_ids, says
from tests.kit.stores import AGENTS

_RULES = {"console": Rules(open_to_all=True, ids=FORMATS["console"]), API: Rules(vouched=True, ids=FORMATS[API])}
#: The most words of a question, which may have 500 characters, and the most ids that are asked for one by one.
_WORDS = 40
_IDS = 30
_ACCEPT = {"Accept": "application/json, text/event-stream"}


class Repeating:
    """A model that says whatever it was given."""

    name = "repeating/model"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        return says("\n".join(one.content for one in request.messages))

    async def aclose(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program with a key, and what it has been told so far."""

    url: str
    client: httpx.AsyncClient
    secret: str
    told: list[str]

    async def ask(self, method: str, path: str, body: object = None, **query: str | int) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", **_ACCEPT}
        answer = await self.client.request(method, self.url + path, json=body, headers=headers, params=query)
        assert answer.status_code in (200, 404, 409), answer.text
        self.told.append(answer.text)
        return answer.json()

    async def call(self, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        answer = await self.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        return answer["result"].get("structuredContent")


def in_private(spot: Spot) -> Spot:
    """Where a person's programs read."""
    return replace(spot, place="private")


@asynccontextmanager
async def program(world: World, spot: Spot) -> AsyncIterator[Program]:
    made = await world.do(in_private(spot), lambda edits: edits.keys.make("a program", KEY_SCOPES))
    assert made is not None
    key, secret = made
    channel, ids = ApiChannel(now=lambda: NOON, harmless=defang), counting_ids()
    store = assembled_store(world.service, {API: channel}, world.clock, ids)
    roster = Roster(
        agents={name: agent(Repeating(), name) for name in AGENTS},
        stores=dict.fromkeys(AGENTS, store),
        route=lambda _: spot.agent,
        default=spot.agent,
    )
    async with doors_of(roster, {API: channel}, channel, _RULES, world.clock) as (url, client):
        yield Program(url=url, client=client, secret=secret, told=[])
    await world.do(in_private(spot), lambda edits: edits.keys.revoke(key.id))


def _questions(world: World) -> list[str]:
    words = [canary.word for canary in world.canaries]
    return [" ".join(words[start : start + _WORDS]) for start in range(0, len(words), _WORDS)]


async def over_http(world: World, spot: Spot) -> Sequence[str]:
    """Everything that the memory API shows, asked for by every word and by the ids of everybody."""
    async with program(world, spot) as one:
        page = 1
        while (await one.ask("GET", "/v1/memories", limit=100, page=page))["results"]:
            page += 1
        for words in _questions(world):
            await one.ask("POST", "/v1/memories/search", {"query": words, "limit": 50})
        for _, short_id in (await world.rows())[-_IDS:]:
            await one.ask("GET", f"/v1/memories/{short_id}")
            await one.ask("GET", f"/v1/memories/{short_id}/forget")
        shown = list(one.told)
        for canary in world.canaries:
            if canary.kind in ("fri", "sty"):
                found = await one.ask("GET", "/v1/entities", name=canary.word)
                shown += [] if "error" in found else [repr(found)]  # which repeats the name that was asked for
        return shown


async def as_tools(world: World, spot: Spot) -> Sequence[str]:
    """The same by the server of tools."""
    async with program(world, spot) as one:
        page = 1
        while (await one.call("list_memories", limit=100, page=page))["results"]:
            page += 1
        for words in _questions(world):
            await one.call("search_memory", query=words, limit=50)
        for _, short_id in (await world.rows())[-_IDS:]:
            await one.call("show_memory", id=short_id)
        shown = list(one.told)
        for canary in world.canaries:
            if canary.kind in ("fri", "sty"):
                found = await one.call("get_entity", name=canary.word)
                shown += [] if found is None else [repr(found)]
        return shown


async def by_recall(world: World, spot: Spot) -> Sequence[str]:
    """Returns what the model that has nothing but recalled memory is given, without the question."""
    shown = []
    async with program(world, spot) as one:
        for words in _questions(world):
            messages = [{"role": "user", "content": words}]
            body = {"model": f"{spot.agent}-recall", "messages": messages}
            answer = await one.ask("POST", "/v1/chat/completions", body)
            shown.append(answer["choices"][0]["message"]["content"].replace(words, ""))
    return shown
