"""One router over stores in a folder, and the screens its people look at."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from agents.budget import USUAL_CONTEXT
from agents.llm import Completion, OnText, Request
from agents.skills import Skill
from agents.spec import ModelSpec, ToolName, WebToolName
from agents.tools import ToolSource
from channels.base import (
    Button,
    Capabilities,
    Channel,
    Inbound,
    Outbound,
    Place,
)
from gateway.internet.tools import Web
from gateway.pipeline.policy import Rules
from gateway.pipeline.store import Store
from gateway.reception.router import Router
from gateway.reception.sharing import Sharing
from memory.context import Context
from memory.housekeeping import Keeping
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.service import Service
from memory.store.database import Reader
from memory.store.memories import Memory
from tests.kit.assembly import LIMITS, agent, assembled_router, assembled_store
from tests.kit.fakes import Clock, ScriptedModel, counting_ids, runtime
from tests.kit.patience import SECONDS
from tests.kit.stores import address, migrated, rows
from tests.kit.talk import group, private

numbers = count(1)


class Screen(Channel):
    """A channel that keeps what it is told to show."""

    id = "console"
    platform = "console"
    capabilities = Capabilities()

    def __init__(self, *, stream: bool = False, failures: list[Exception] | None = None) -> None:
        self.capabilities = Capabilities(stream="append" if stream else "none", resend="mark", burst_seconds=0)
        self.shown: list[str] = []
        self.sent: list[Outbound] = []
        self.failures = failures or []

    async def append(self, place: Place, turn: int, text: str) -> None:
        self.shown.append(text)

    async def send(self, outbound: Outbound) -> str:
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(outbound)
        return str(outbound.id)

    @property
    def texts(self) -> list[str]:
        return [outbound.text for outbound in self.sent]


class Bench:
    """One router over stores in a folder, as the composition root would make it."""

    def __init__(self, folder: Path, model: ScriptedModel, screen: Screen, clock: Clock) -> None:
        self.folder = folder
        self.model = model
        self.screen = screen
        self.clock = clock
        self.route: Callable[[Inbound], str] = lambda _inbound: "assistant"
        self.databases = {"assistant": "remora.db"}
        self.rules = Rules(open_to_all=True)
        self.placeholder_seconds = SECONDS
        self.seconds = LIMITS.seconds
        self.models: tuple[ModelSpec, ...] = ()
        self.reads = USUAL_CONTEXT
        self.web: Web | None = None
        self.more_tools: tuple[ToolName | WebToolName, ...] = ()
        self.sources: tuple[ToolSource, ...] = ()
        self.skills: tuple[Skill, ...] = ()
        self.spec: dict[str, Any] = {}
        self.keeping: Keeping | None = None
        self.ids: Callable[[], Callable[[], str]] = counting_ids
        self.stores: dict[str, Store] = {}
        self.router: Router
        self.memories: dict[str, Service] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Router]:
        ids = self.ids()
        stores = self.stores = {}
        self.memories = {}
        for database in dict.fromkeys(self.databases.values()):
            names = [name for name, own in self.databases.items() if own == database]
            memory = self.memories[database] = await Service.open(
                await migrated(self.folder / database),
                database_url=address(self.folder / database),
                agents={name: AgentMemory() for name in names},
                triggers=Triggers(quiet_seconds=3_600),
                keeping=self.keeping,
                runtime=runtime(self.clock, lambda: f"{next(numbers):06d}"),
            )
            store = assembled_store(
                memory,
                {self.screen.id: self.screen},
                self.clock,
                ids,
                limits=replace(LIMITS, placeholder_seconds=self.placeholder_seconds, seconds=self.seconds),
                web=self.web,
            )
            stores |= dict.fromkeys(names, store)
        self.router = assembled_router(
            {
                name: agent(
                    self.model,
                    name,
                    models=self.models,
                    context=self.reads,
                    more_tools=self.more_tools,
                    sources=self.sources,
                    skills=self.skills,
                    **self.spec,
                )
                for name in self.databases
            },
            stores,
            {self.screen.id: self.screen},
            self.clock,
            rules={self.screen.id: self.rules},
            route=self.route,
            a_minute=30,
            burst=10,
        )
        await self.router.take_up()
        sharings = [Sharing(store, self.router, takes_part=True) for store in dict.fromkeys(stores.values())]
        beside = [await _shared(sharing) for sharing in sharings]
        try:
            yield self.router
        finally:
            for task in beside:
                task.cancel()
            # Else a test that fails leaves the threads of its stores behind, for which the process would wait for ever.
            await self.router.drain(seconds=SECONDS)
            for memory in self.memories.values():
                await memory.close(seconds=SECONDS)

    def inbound(self, text: str, *, person: str = "ada", chat: str | None = None, key: str | None = None) -> Inbound:
        number = key or str(next(numbers))
        return Inbound(
            channel="console",
            platform="console",
            bot_id="local",
            update_key=number,
            chat=chat or person,
            chat_kind="group" if chat else "private",
            author_id=person,
            author_name=person.title(),
            message_id=number,
            text=text,
            sent_at=self.clock(),
        )

    @property
    def memory(self) -> Service:
        """The store of the agent called assistant, once it runs."""
        return self.memories["remora.db"]

    async def rows(self, sql: str) -> list[tuple[object, ...]]:
        return await rows(self.memory, sql)

    async def context(self, person: str = "ada", chat: str | None = None) -> Context:
        return await self.memory.identities.context(*(private(person) if chat is None else group(chat, person)))

    async def remembered(self, person: str = "ada", chat: str | None = None) -> list[Memory]:
        """Returns the memories about whom `person` speaks for there."""
        return await self.memory.browse.memories(await self.context(person, chat), limit=50)

    async def say(
        self, text: str, *, person: str = "ada", chat: str | None = None, key: str | None = None, **more: Any
    ) -> None:
        """Says it; `more` are further fields of `Inbound`."""
        inbound = replace(self.inbound(text, person=person, chat=chat, key=key), **more)
        await self.router.on_inbound(inbound)
        await self.router.settled(inbound.place)


async def _shared(sharing: Sharing) -> asyncio.Task[None]:
    """Returns the work of sharing a store, once it has taken up what was left there."""
    looked = asyncio.Event()

    async def sleep(seconds: float) -> None:
        looked.set()
        await asyncio.sleep(seconds)

    work = asyncio.create_task(sharing.work(sleep))
    # Over a file it ends at once: there the router alone takes up all.
    work.add_done_callback(lambda _: looked.set())
    await looked.wait()
    return work


async def kept(bench: Bench, text: str, *, person: str = "ada", chat: str | None = None) -> Memory:
    """The newest memory after `person` had `text` kept."""
    await bench.say(f"/remember {text}", person=person, chat=chat)
    return max(await bench.remembered(person, chat), key=lambda memory: memory.id)


class Phone(Screen):
    """A platform as people know it: what is sent can be edited, buttons can be pressed, nothing is repeated blindly."""

    def __init__(self, failures: list[Exception] | None = None) -> None:
        super().__init__(failures=failures)
        self.capabilities = Capabilities(
            stream="edit", resend="never", buttons=True, revise_seconds=0.02, burst_seconds=0, introduces=False
        )
        self.revised: list[str] = []
        self.arrived = asyncio.Event()
        self.hangs = False

    async def send(self, outbound: Outbound) -> str:
        if self.hangs:
            self.arrived.set()
            await asyncio.Event().wait()
        reference = await super().send(outbound)
        return outbound.edits or reference

    async def revise(self, place: Place, reference: str, text: str) -> None:
        self.revised.append(text)


class SlowModel(ScriptedModel):
    """Says its answers word by word, each once it is told to go on."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self._words = asyncio.Semaphore(0)

    def go_on(self, words: int = 1_000) -> None:
        for _ in range(words):
            self._words.release()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        completion = await super().complete(request)
        for word in completion.text.split(" "):
            await self._words.acquire()
            if on_text is not None:
                await on_text(word + " ")
        return completion


class Desk(Bench):
    """A bench with a phone."""

    screen: Phone

    def press(self, data: str, *, chat: str = "ada") -> Inbound:
        said = self.inbound("", person="ada")
        return Inbound(**{name: getattr(said, name) for name in said.__slots__} | {"pressed": data, "chat": chat})

    async def push(self, data: str) -> None:
        pressed = self.press(data)
        await self.router.on_inbound(pressed)
        await self.router.settled(pressed.place)


_ID = re.compile(r"m_[a-z0-9]+")


class Handset(Screen):
    """A screen with buttons and links, where messages have ids."""

    def __init__(self, *, file_bytes: int = 0) -> None:
        super().__init__()
        self.capabilities = Capabilities(resend="mark", burst_seconds=0, buttons=True, file_bytes=file_bytes)

    def link(self, place: Place, message_id: str) -> str | None:
        return f"https://phone.example/{place.chat}/{message_id}"

    @property
    def last(self) -> Outbound:
        return self.sent[-1]

    def button(self, label: str) -> Button:
        return next(button for button in self.last.buttons if button.label == label)


class Talk(Bench):
    """A bench whose people hold a phone."""

    def __init__(self, folder: Path, phone: Handset, clock: Clock, *answers: str | Completion | Exception) -> None:
        super().__init__(folder, ScriptedModel(*answers), phone, clock)
        self.phone = phone

    async def ask(self, text: str, *, person: str = "ada", chat: str | None = None, reply_to: str | None = None) -> str:
        before = len(self.phone.sent)
        inbound = replace(self.inbound(text, person=person, chat=chat), reply_to=reply_to)
        await self.router.on_inbound(inbound)
        await self.router.settled(inbound.place)
        return "\n".join(one.text for one in self.phone.sent[before:])

    async def press(self, data: str, *, person: str = "ada", chat: str | None = None) -> str:
        """Returns the messages shown after somebody presses a button under the newest message."""
        before = len(self.phone.sent)
        inbound = self.inbound("", person=person, chat=chat)
        await self.router.on_inbound(replace(inbound, pressed=data, message_id=str(self.phone.last.id)))
        await self.router.settled(inbound.place)
        return "\n".join(one.text for one in self.phone.sent[before:])

    async def kept(self, text: str, *, person: str = "ada", chat: str | None = None) -> str:
        found = _ID.search(await self.ask(f"/remember {text}", person=person, chat=chat))
        assert found is not None
        return found[0]

    async def row(self, short_id: str) -> dict[str, object]:
        def act(reader: Reader) -> dict[str, object]:
            found = reader.one("select * from memories where short_id = ?", (short_id,))
            assert found is not None
            return dict(found)

        return await self.memory.database.read(act)
