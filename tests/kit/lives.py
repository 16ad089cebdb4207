"""Processes that die: the pipeline from start to stop or death, over a store, a platform and a model that fail when told to."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from agents.llm import BadCompletion, Completion, ModelUnavailable, OnText, Request
from channels.base import Button, Capabilities, Channel, ChannelError, ChannelUnavailable, Outbound, Place
from gateway.pipeline.policy import Rules
from memory.chat.identities import Where, Who
from memory.errors import StorageError
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.service import Service
from memory.store.sqlite import driver as drivers
from tests.kit.assembly import LIMITS, agent, assembled_router, assembled_store
from tests.kit.fakes import Clock, calls, counting_ids, runtime, says
from tests.kit.faults import Faults
from tests.kit.patience import SECONDS, limit

ADA, BOB, CLUB = "5", "7", "-9"


#: The faults of a request to the platform. "unknown" and "bug" may come before it has shown anything or after.
SENDS = (
    "later", "refused", "unknown before", "unknown after", "bug before", "bug after", "death before", "death after",
)  # fmt: skip


@dataclass(slots=True)
class Message:
    """A message in a chat."""

    chat: str
    text: str
    buttons: tuple[Button, ...]


class Mains:
    """The power of a process: once it is off, nothing leaves it any more."""

    def __init__(self) -> None:
        self.off = False

    async def flow(self) -> None:
        if self.off:
            await asyncio.Event().wait()

    async def fail(self) -> None:
        self.off = True
        await self.flow()


class Phone(Channel):
    """A platform that outlives the processes that talk to it, with one fault of `SENDS` at the `nth` request."""

    id = "phone"
    platform = "phone"
    capabilities = Capabilities(stream="edit", resend="never", buttons=True, revise_seconds=0.01, burst_seconds=0)

    def __init__(self) -> None:
        self.mains = Mains()
        self.messages: dict[str, Message] = {}
        self.requests = 0
        self.nth = 0
        self.fault = ""
        self._references = count(1)

    async def send(self, outbound: Outbound) -> str:
        await self.mains.flow()
        self.requests += 1
        fault = self.fault if self.requests == self.nth else ""
        if fault in ("refused", "later") or fault.endswith("before"):
            await self._fail(fault)
        reference = outbound.edits or f"r{next(self._references)}"
        self.messages[reference] = Message(outbound.place.chat, outbound.text, outbound.buttons)
        if fault:
            await self._fail(fault)
        return reference

    async def _fail(self, fault: str) -> None:
        match fault.split(maxsplit=1)[0]:
            case "later":
                raise ChannelUnavailable("slow down", retry_after=0.0)
            case "refused":
                raise ChannelError("message is too long")
            case "unknown":
                raise ChannelUnavailable("timed out", certain=False)
            case "bug":
                raise KeyError("a bug in the adapter")
            case _:
                await self.mains.fail()

    def texts(self, chat: str) -> list[str]:
        return [message.text for message in self.messages.values() if message.chat == chat]

    def button(self, chat: str, starting: str) -> str | None:
        """Returns the data of the first button of this kind under the newest message that has one."""
        under = [
            [b.data for b in m.buttons if b.data.startswith(starting)] for m in self.messages.values() if m.chat == chat
        ]
        return next((data[0] for data in reversed(under) if data), None)


class Parrot:
    """A model that repeats what it hears, so that an answer tells what it answers; it fails at the `nth` call."""

    name = "scripted/parrot"

    def __init__(self, mains: Mains) -> None:
        self.mains = mains
        self.calls = 0
        self.nth = 0
        self.fault = ""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        await self.mains.flow()
        self.calls += 1
        if self.calls == self.nth:
            await self._fail(on_text)
        said, looked = request.said, request.messages[-1].role == "tool"
        if "locker" in said and not looked:
            return calls(("remember_fact", '{"text": "number 17", "key": "locker"}'))
        if said.startswith("where") and not looked:
            return calls(("search_memory", '{"query": "live"}'))
        for word in ("one ", "two ", "three ") if "slowly" in said else ():
            await asyncio.sleep(0.02)
            if on_text is not None:
                await on_text(word)
        return says(f"You said: {said}")

    async def _fail(self, on_text: OnText | None) -> None:
        match self.fault:
            case "down":
                raise ModelUnavailable("no route to host")
            case "half":
                if on_text is not None:
                    await on_text("You sa")
                await asyncio.sleep(0.03)
                raise ModelUnavailable("the connection broke")
            case "bad":
                raise BadCompletion("no answer in it")
            case "bug":
                raise ZeroDivisionError("a bug in the provider")
            case _:
                await self.mains.fail()

    async def aclose(self) -> None:
        return None


class Lives(Faults):
    """A SQLite that fails at a statement, or whose process ends right after its `last_commit`-th commit.

    The files as they are at that moment are kept in `kept`: what the process still does is not among them.
    """

    def __init__(self, mains: Mains, kept: Path, *, last_commit: int | None = None, **faults: Any) -> None:
        super().__init__(**faults)
        self._mains = mains
        self._kept = kept
        self._last_commit = last_commit

    def die_after(self, commits: int) -> None:
        self._last_commit = self.commits + commits

    def live(self) -> None:
        self._last_commit = None

    def committed(self, nth: int, done: Any) -> None:
        if nth != self._last_commit:
            return
        self._mains.off = True
        source = Path(self.connections[0].execute("pragma database_list").fetchone()[2])
        self._kept.mkdir()
        for name in (source.name, f"{source.name}-wal", f"{source.name}.key"):
            with suppress(FileNotFoundError):
                shutil.copy(source.with_name(name), self._kept / name)


numbers = count(1)


class Life:
    """The pipeline as the composition root makes it, from its start to its stop or death."""

    def __init__(self, memory: Service, phone: Phone, model: Parrot, clock: Clock, *, retry_seconds: float) -> None:
        self.memory = memory
        self.phone = phone
        channels = {phone.id: phone}
        store = assembled_store(
            memory, channels, clock, counting_ids(), limits=replace(LIMITS, seconds=SECONDS, placeholder_seconds=0.01)
        )
        self.delivery = store.delivery
        self.router = assembled_router(
            {"assistant": agent(model)},
            {"assistant": store},
            channels,
            clock,
            rules={phone.id: Rules(allow=frozenset({ADA, BOB}), groups=frozenset({CLUB}))},
            queue=20,
            retry_seconds=retry_seconds,
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        phone: Phone,
        model: Parrot,
        clock: Clock,
        *,
        faults: Faults | None = None,
        retry_seconds: float = 0.01,
    ) -> Life:
        """Raises `StorageError`, with nothing left open."""
        memory = await Service.open(
            path,
            agents={"assistant": AgentMemory()},
            triggers=Triggers(quiet_seconds=3_600),
            runtime=runtime(clock, lambda: f"{next(numbers):06d}"),
            driver=None if faults is None else faults.driver,
        )
        life = cls(memory, phone, model, clock, retry_seconds=retry_seconds)
        try:
            await life.router.take_up()
        except StorageError:
            await life.end()
            raise
        return life

    async def end(self) -> None:
        """Die: nothing that is under way comes to its end, and nothing is tidied up."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.memory.database.close()

    async def stop(self) -> None:
        await self.router.drain(seconds=SECONDS)
        await self.memory.close(seconds=SECONDS)

    async def done(self, work: Coroutine[Any, Any, None]) -> bool:
        """Waits for `work`, as long as there is power; returns whether it came to its end. Raises what it raises."""
        task = asyncio.ensure_future(work)
        async with limit():
            while not task.done() and not self.phone.mains.off:
                await asyncio.wait({task}, timeout=0.005)
        if not task.done():
            return False
        await task
        return not self.phone.mains.off

    async def wake(self) -> None:
        """Time has passed, so rows that waited for their moment are due."""
        for chat in (ADA, BOB, CLUB):
            self.delivery.wake(f"phone:{chat}:-")
            await self.router.settled(Place(channel="phone", chat=chat))

    async def flush(self, chat: str, person: str) -> None:
        where = Where(
            session_key=f"phone:{chat}:-", platform="phone", chat=chat,
            chat_kind="group" if chat == CLUB else "private", thread=None, agent="assistant",
        )  # fmt: skip
        context = await self.memory.identities.context(where, Who(platform="phone", user_id=person, name=person))
        await self.memory.learner.flush(context.session.id, "test")


def rows(path: Path, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
    with closing(drivers.best().module.connect(str(path), isolation_level=None, timeout=0)) as outside:
        return [tuple(row) for row in outside.execute(sql, parameters).fetchall()]


def lies_open(path: Path) -> list[object]:
    """Lists the rows of a store that are unfinished, and those that contradict each other."""
    found: list[object] = []
    found += rows(path, "select 'inbox', * from inbox where state in ('pending', 'claimed') and held = 0")
    found += rows(path, "select 'turn', * from turns where state = 'running'")
    found += rows(
        path,
        "select 'outbox', * from outbox where state in ('pending', 'sending') or (state = 'unknown' and offered = 0)",
    )
    # Each message that wants an answer has one of its own, or shares it with those of its turn, or with those that were
    # refused at once with it. An offer to answer what came late is none.
    found += rows(
        path,
        "select 'unanswered', i.* from inbox i where i.held = 0 and i.update_key not like 'quiet%' and not exists"
        " (select 1 from outbox o where o.kind <> 'placeholder' and o.buttons not like '%\"now\"%'"
        " and (o.inbox_id = i.id or o.turn_id = i.turn_id or o.inbox_id in (select j.id from inbox j"
        " where j.session_key = i.session_key and j.error = i.error and j.finished_at = i.finished_at)))"
        # The answers to words that are forgotten later, and the question that showed these once more, go with
        # them, where nobody knows if they were shown.
        " and not (i.update_key in ('1', '8') and exists (select 1 from erasures))",
    )
    found += rows(
        path,
        "select 'doubled', inbox_id, count(*) from outbox where kind <> 'placeholder' and chunk = 0"
        " and inbox_id is not null and buttons not like '%\"now\"%' group by inbox_id having count(*) > 1",
    )
    found += [row for row in rows(path, "pragma integrity_check") if row != ("ok",)]
    found += [("foreign key", *row) for row in rows(path, "pragma foreign_key_check")]
    # Nobody has left a transaction open.
    with closing(drivers.best().module.connect(str(path), isolation_level=None, timeout=0)) as outside:
        outside.execute("begin immediate")
        outside.execute("rollback")
    return found
