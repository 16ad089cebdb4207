"""The whole pipeline over a real store, with walls in the place of platforms: what is said to one shows what it says.

    async with pipeline(tmp_path, rules={"telegram": Rules(admins=frozenset({"7"}))}) as world:
        assert await world.say("/pair", author="7") == ["Give this code …"]

Invariants: nothing of Remora is replaced but platforms, model and clock; a wall is called as its id is, without digits
at its end.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from agents.llm import Provider
from agents.spec import AgentSpec
from channels.base import Blocked, Capabilities, Channel, Inbound, Outbound
from channels.ids import FORMATS
from channels.web import WebChannel
from gateway.config.loading import load
from gateway.ops.health import Report
from gateway.ops.night_clock import Worker, timetables
from gateway.page.routes import assembled
from gateway.page.site import Site
from gateway.pipeline.course import Agent
from gateway.pipeline.policy import Rules
from gateway.pipeline.store import Roster, Store
from gateway.reception.router import Router
from gateway.reception.sharing import Sharing
from memory.housekeeping import Keeping
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel
from memory.service import Service
from memory.store.sqlite.driver import Driver
from tests.kit.assembly import LIMITS, agent, assembled_router, assembled_store
from tests.kit.fakes import Clock, ScriptedModel, counting_ids, runtime
from tests.kit.patience import SECONDS
from tests.kit.stores import address, counting, migrated

_numbers = count(1)


class Wall(Channel):
    """A platform that keeps what it shows. Chats in `shut` are blocked."""

    id = ""
    platform = ""
    capabilities = Capabilities(buttons=True, burst_seconds=0)

    def __init__(self, channel: str) -> None:
        self.id = channel
        self.platform = channel.rstrip("0123456789")
        self.sent: list[Outbound] = []
        self.shut: set[str] = set()

    async def send(self, outbound: Outbound) -> str:
        if outbound.place.chat in self.shut:
            raise Blocked("blocked")
        self.sent.append(outbound)
        return str(next(_numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    router: Router
    store: Store
    memory: Service
    walls: Mapping[str, Wall]
    clock: Clock
    agents: Mapping[str, Agent] = field(default_factory=dict)
    page: Site | None = None

    def inbound(self, text: str = "", *, author: str, channel: str = "telegram", **more: Any) -> Inbound:
        """Returns a message of `author`, in private or in the group `chat` where that is given."""
        wall, number = self.walls[channel], str(next(_numbers))
        fields: dict[str, Any] = {
            "channel": channel, "platform": wall.platform, "bot_id": channel, "update_key": number,
            "chat_kind": "group" if "chat" in more else "private",
            "chat": author or "1", "author_id": author, "author_name": f"N{author[:40]}", "message_id": number,
            "text": text, "sent_at": self.clock(),
        }  # fmt: skip
        return Inbound(**(fields | more))

    async def hear(self, inbound: Inbound) -> Sequence[Outbound]:
        """Takes a message in; returns what is shown anywhere on that channel until all of it is done with."""
        wall = self.walls[inbound.channel]
        before = len(wall.sent)
        await self.router.on_inbound(inbound)
        await self.router.settled(inbound.place)
        return wall.sent[before:]

    async def say(self, text: str = "", *, author: str, channel: str = "telegram", **more: Any) -> list[str]:
        heard = await self.hear(self.inbound(text, author=author, channel=channel, **more))
        return [outbound.text for outbound in heard]

    async def ids(self) -> dict[str, str]:
        rows = await self.rows("select short_id, value from memories where kind = 'fact'")
        return {value: short_id for short_id, value in rows}

    async def rows(self, sql: str, *parameters: str | int | None) -> list[tuple[Any, ...]]:
        return await self.memory.database.read(lambda r: [tuple(row) for row in r.all(sql, parameters)])


@asynccontextmanager
async def pipeline(
    folder: Path,
    *,
    rules: Mapping[str, Rules],
    admins_read: bool = True,
    agents: Sequence[str] = ("assistant",),
    model: Provider | None = None,
    background: BackgroundModel | None = None,
    walls: Mapping[str, Any] | None = None,
    api: str = "",
    a_minute: int = 1_000_000,
    burst: int = 1_000_000,
    driver: Driver | None = None,
    page: bool = False,
    shared: str = "",
    takes_part: bool = True,
) -> AsyncIterator[World]:
    """One store, one wall for each of the `rules`. The first agent answers, the last one on walls that end in 2.

    With `page` it has a web page besides. Several worlds may share the store in the database at the address `shared`,
    as processes do; one that does not `takes_part` is like a chat in the terminal.
    """
    clock, model, ids = Clock(), model or ScriptedModel(), counting if shared else counting_ids()
    walls = walls or {channel: Wall(channel) for channel in rules}
    memory = await Service.open(
        folder / "remora.db" if shared else await migrated(folder / "remora.db"),
        database_url=shared or address(folder / "remora.db"),
        agents=dict.fromkeys(agents, AgentMemory(model=background)),
        triggers=Triggers(quiet_seconds=3_600),
        runtime=runtime(clock, ids),
        keeping=Keeping(admins_read=admins_read),
        driver=driver,
    )
    web = WebChannel("web-assistant", now=clock)
    channels: dict[str, Channel] = {**walls, **({web.id: web} if page else {})}
    rules = {**rules, **({web.id: Rules(on_behalf=True, ids=FORMATS["web"])} if page else {})}
    store = assembled_store(
        memory,
        channels,
        clock,
        ids,
        limits=LIMITS,
        nights=Worker(memory, timetables({name: AgentSpec(name=name) for name in agents}), now=clock),
    )
    served = {name: agent(model, name) for name in agents}
    router = assembled_router(
        served,
        dict.fromkeys(agents, store),
        channels,
        clock,
        rules=rules,
        api=api,
        a_minute=a_minute,
        burst=burst,
        queue=50 if shared else 5,
        route=lambda inbound: agents[-1 if re.search("2$", inbound.channel) else 0],
    )
    await router.take_up()
    site = _site(folder, served, store, channels, router, clock) if page else None
    beside = [
        asyncio.create_task(work) for work in (web.run(router), Sharing(store, router, takes_part=takes_part).work())
    ]
    try:
        yield World(router=router, agents=served, store=store, memory=memory, walls=walls, clock=clock, page=site)
    finally:
        for task in beside:
            task.cancel()
        # Else a test that fails leaves the threads of its store behind, for which the process would wait for ever.
        await router.drain(seconds=SECONDS)
        await memory.close(seconds=SECONDS)


def _site(
    folder: Path,
    agents: Mapping[str, Agent],
    store: Store,
    channels: Mapping[str, Channel],
    router: Router,
    clock: Clock,
) -> Site:
    first = next(iter(agents))
    (folder / "config.yaml").write_text("web: {enabled: true}\nembedding: {provider: none}\n")
    (folder / "agents").mkdir()
    (folder / "agents" / f"{first}.yaml").write_text(f"name: {first}\n")
    roster = Roster(
        agents=agents, stores=dict.fromkeys(agents, store), route=lambda _: first, default=first, pages={first: ""}
    )

    async def report() -> Report:
        return Report(reasons=(), channels={}, stores=(), version="0", uptime_seconds=0)

    return assembled(load(folder / "config.yaml", {}, folder), roster, channels, router, report=report, now=clock)
