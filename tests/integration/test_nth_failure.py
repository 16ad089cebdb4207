"""The n-th thing that can fail does: a statement of SQLite, a request to the platform, a call of the model, a life.

One short story is told to the real pipeline over and over, each time with one fault somewhere else; after a restart
over the same file everything that was said must have come to its end. The ordinary tests take every so many-th fault;
REMORA_NTH_STRIDE=1 takes all of them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agents.llm import BadCompletion, Completion, ModelUnavailable, OnText, Request
from agents.spec import AgentSpec
from agents.tokens import count_tokens
from channels.base import (
    Button,
    Capabilities,
    Channel,
    ChannelError,
    ChannelUnavailable,
    Inbound,
    NotTaken,
    Outbound,
    Place,
)
from gateway.delivery import AGAIN, Delivery
from gateway.limits import Buckets
from gateway.policy import Policy, Rules
from gateway.router import Router
from gateway.store import Store
from gateway.turn import Agent, Limits, Turns
from memory.errors import StorageError
from memory.learn.defang import defang
from memory.learn.guard import clean
from memory.learn.redact import redact
from memory.service import Service, Triggers, Where, Who
from memory.store import driver as drivers
from tests.fakes import Clock, calls, counting_ids, reader, says
from tests.faults import IO_ERROR, Faults

FULL = "database or disk is full"
#: Every so many-th fault is tried where nothing else is asked for.
STRIDES = {"store": 113, "life": 23, "channel": 15, "model": 9}
ADA, BOB, CLUB = "5", "7", "-9"
#: What may happen to a request to the platform. "unknown" and "bug" may come before it has shown anything or after.
SENDS = (
    "later",
    "refused",
    "unknown before",
    "unknown after",
    "bug before",
    "bug after",
    "death before",
    "death after",
)
#: What may happen to a call of the model.
THOUGHTS = ("down", "half", "bad", "bug", "death")


# The world ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Message:
    """What stands in a chat."""

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
        """What the first button of this kind under the newest message with such carries."""
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
        """Have the process end right after so many more commits."""
        self._last_commit = self.commits + commits

    def live(self) -> None:
        """Have nothing happen to the process."""
        self._last_commit = None

    def committed(self, nth: int) -> None:
        if nth != self._last_commit:
            return
        self._mains.off = True
        source = Path(self.connections[0].execute("pragma database_list").fetchone()[2])
        self._kept.mkdir()
        for name in (source.name, f"{source.name}-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(source.with_name(name), self._kept / name)


# One life of the bot --------------------------------------------------------------------------------------------

numbers = count(1)


class Life:
    """The pipeline as the composition root makes it, from its start to its stop or death."""

    def __init__(self, memory: Service, phone: Phone, model: Parrot, clock: Clock, *, retry_seconds: float) -> None:
        self.memory = memory
        self.phone = phone
        turns = Turns(
            memory,
            limits=Limits(seconds=5, message_chars=1_000, placeholder_seconds=0.01),
            now=clock,
            new_id=counting_ids(),
            count_tokens=count_tokens,
            redact=redact,
            defang=lambda text, growing: defang(text, growing=growing),
        )
        self.delivery = Delivery(memory.mail, {phone.id: phone}, language="en", now=clock)
        rules = Rules(allow=frozenset({ADA, BOB}), groups=frozenset({CLUB}))
        self.router = Router(
            stores={"assistant": Store(memory=memory, turns=turns, delivery=self.delivery)},
            agents={"assistant": Agent(spec=AgentSpec(name="assistant"), provider=model, offline=False)},
            route=lambda _inbound: "assistant",
            channels={phone.id: phone},
            door=memory.door,
            policy=Policy({phone.id: rules}, monotonic=lambda: clock() / 1000),
            buckets=Buckets(per_minute=6_000, burst=1_000_000_000, monotonic=lambda: 0.0),  # nobody says too much
            attachments=reader(),
            clean=clean,
            redact=redact,
            new_code=lambda: "CDFG-2345",
            now=clock,
            stale_hours=2,
            burst_seconds=0,
            concurrent_turns=4,
            queue=20,
            language="en",
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
            agents={"assistant": "UTC"},
            triggers=Triggers(quiet_seconds=3_600),
            now=clock,
            new_id=lambda: f"{next(numbers):06d}",
            count_tokens=count_tokens,
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
        await self.memory._database.close()

    async def stop(self) -> None:
        await self.router.drain(seconds=5)
        await self.memory.close(seconds=5)

    async def done(self, work: Coroutine[Any, Any, None]) -> bool:
        """Wait for `work`, as long as there is power; whether it came to its end. Raises what it raises."""
        task = asyncio.ensure_future(work)
        async with asyncio.timeout(20):
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
        context = await self.memory.context(where, Who(platform="phone", user_id=person, name=person))
        await self.memory.flush(context, "test")


def rows(path: Path, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
    """What a query finds in a store, seen from outside."""
    with closing(drivers.best().module.connect(str(path), isolation_level=None, timeout=0)) as outside:
        return [tuple(row) for row in outside.execute(sql, parameters).fetchall()]


def lies_open(path: Path) -> list[object]:
    """What in a store is neither done nor told, and what in it does not hold together."""
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
        # What was answered to the words that are forgotten later, and the question that showed them once more, go with
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


# The story ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """What two people say, told until it is all taken. Between lives it goes on where the platform stopped."""

    path: Path
    phone: Phone
    clock: Clock = field(default_factory=Clock)
    next_step: int = 0
    taken: dict[str, str] = field(default_factory=dict)  # what was said → in which chat

    def steps(self) -> list[Callable[[Life], Awaitable[bool]]]:
        return [
            lambda life: self.say(life, "hello there"),
            lambda life: self.say(life, "/remember my bike is red"),
            lambda life: self.say(life, "I live in Lisbon", key="home"),
            lambda life: self.learn(life, ADA, ADA),
            lambda life: self.say(life, "where do I live now?"),
            lambda life: self.say(life, "note my locker please", person=BOB),
            lambda life: self.say(life, "I live in Porto", key="quiet-edit", of="home"),
            lambda life: self.say(life, "I like chess", person=BOB, chat=CLUB),
            self.forget_bike,
            lambda life: self.press(life, "answer:"),
            lambda life: self.say(life, "tell me slowly", person=BOB),
            lambda life: self.learn(life, CLUB, BOB),
            lambda life: self.learn(life, ADA, ADA),
            lambda life: self.say(life, "still there?"),
            lambda life: self.say(life, "and here?", person=BOB, chat=CLUB),
        ]

    async def tell(self, life: Life) -> None:
        """Go on until all is said, something is not taken, or the process dies."""
        steps = self.steps()
        while self.next_step < len(steps) and not life.phone.mains.off:
            self.clock.move(minutes=0.1)
            try:
                if not await steps[self.next_step](life):
                    return
            except NotTaken:
                return
            self.next_step += 1

    async def say(
        self, life: Life, text: str, *, person: str = ADA, chat: str = "", key: str = "", of: str = "", press: str = ""
    ) -> bool:
        chat, key = chat or person, key or f"{self.next_step}"
        inbound = Inbound(
            channel="phone", platform="phone", bot_id="b", update_key=key, chat=chat,
            chat_kind="group" if chat == CLUB else "private", author_id=person, author_name=person,
            message_id=of or key, text=text, sent_at=self.clock(), edited=bool(of), pressed=press or None,
        )  # fmt: skip
        if not await life.done(life.router.on_inbound(inbound)):
            return False
        if text and not of:
            self.taken[text] = chat
        return await life.done(life.router.settled(inbound.place))

    async def learn(self, life: Life, chat: str, person: str) -> bool:
        with suppress(StorageError):  # it runs in the background, and is taken up again
            return await life.done(life.flush(chat, person))
        return True

    async def forget_bike(self, life: Life) -> bool:
        found = rows(self.path, "select short_id from memories where value like '%red%' and kind = 'fact'")
        return await self.say(life, f"/forget {found[0][0]}") if found else True

    async def press(self, life: Life, starting: str) -> bool:
        again = self.phone.button(ADA, AGAIN)
        if (data := self.phone.button(ADA, starting)) is None and again is not None:
            await self.say(life, "", press=again, key=f"quiet-{self.next_step}-again")
            data = self.phone.button(ADA, starting)
        return True if data is None else await self.say(life, "", press=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One telling of the story with one fault in it."""

    folder: Path
    kind: str
    n: int
    how: str = ""
    first_statement: int = 0

    def run(self) -> tuple[list[object], dict[str, int]]:
        """What is wrong after the restart, and how much of everything there was in the first life."""
        mains = Mains()
        phone, model = Phone(), Parrot(mains)
        phone.mains = mains
        kept = self.folder / "kept"
        faults = Lives(
            mains,
            kept,
            last_commit=self.n if self.kind == "life" else None,
            fail_at_statement=self.first_statement + self.n if self.kind == "store" else None,
            error=(IO_ERROR, FULL)[self.n // 2 % 2],
        )
        if self.kind == "channel":
            phone.nth, phone.fault = self.n, self.how
        if self.kind == "model":
            model.nth, model.fault = self.n, self.how
        path = self.folder / "remora.db"
        story = Story(path, phone)
        # In every other trial only the restart heals; in the others the process tries again itself.
        asyncio.run(self._first(story, model, faults, retry_seconds=(0.01, 60.0)[self.n % 2]))
        counted = {
            "store": faults.statements - self.first_statement,
            "life": faults.commits,
            "channel": phone.requests,
            "model": model.calls,
        }
        if kept.exists():
            story.path = kept / "remora.db"
        phone.mains = model.mains = Mains()
        phone.nth = model.nth = 0
        story.clock.move(minutes=5)
        return asyncio.run(self._second(story, model)), counted

    async def _first(self, story: Story, model: Parrot, faults: Faults, *, retry_seconds: float) -> None:
        try:
            life = await Life.open(
                story.path, story.phone, model, story.clock, faults=faults, retry_seconds=retry_seconds
            )
        except StorageError:
            return  # it says so and does not start
        await story.tell(life)
        await (life.end() if story.phone.mains.off or self.kind == "store" else life.stop())

    async def _second(self, story: Story, model: Parrot) -> list[object]:
        life = await Life.open(story.path, story.phone, model, story.clock)
        await story.tell(life)
        wrong: list[object] = [] if story.next_step == len(story.steps()) else [("not told", story.next_step)]
        for chat, person in ((ADA, ADA), (BOB, BOB), (CLUB, BOB)):
            await story.say(life, f"after all {chat}", person=person, chat=chat, key=f"fresh{chat}")
            await life.flush(chat, person)
        story.clock.move(minutes=5)
        await life.wake()
        wrong += lies_open(story.path)
        wrong += self._answers(story, once=True)
        for n, chat in enumerate((ADA, BOB, CLUB)):
            offers = {b.data for m in story.phone.messages.values() if m.chat == chat for b in m.buttons}
            for data in sorted(offers):
                if data.startswith(AGAIN):
                    await story.say(life, "", press=data, chat=chat, key=f"quiet-{n}-{data}")
        wrong += self._answers(story, once=False)
        wrong += self._facts(story)
        await life.stop()
        return wrong

    def _answers(self, story: Story, *, once: bool) -> Iterator[object]:
        """What was answered twice unasked, or, all offers taken, not at all."""
        for said, chat in story.taken.items():
            answers = [text for text in story.phone.texts(chat) if text.startswith("You said: ")]
            # What was tried again may have been answered together with what was said after it.
            shown = sum(said in text.removeprefix("You said: ").splitlines() for text in answers)
            if once and shown > 1:
                yield ("answered twice", said, shown)
            turn = rows(
                story.path, "select t.state from turns t join messages m on m.turn_id = t.id where m.text = ?", said
            )
            if not once and turn == [("done",)] and not shown and self.how != "refused":
                yield ("answer never shown", said)

    def _facts(self, story: Story) -> Iterator[object]:
        """What is remembered more or less often than it was told."""
        facts = rows(
            story.path,
            "select m.value, m.reinforced_count, (select count(*) from memory_sources s where s.memory_id = m.id),"
            " o.kind from memories m join owners o on o.id = m.owner_id where m.kind = 'fact' and m.valid_until is null",
        )
        done = {row[0] for row in rows(story.path, "select m.text from messages m join turns t on t.id = m.turn_id"
                                                  " where t.state = 'done' and m.role = 'user'")}  # fmt: skip
        heard = {row[0] for row in rows(story.path, "select text from messages where role = 'user'")}
        values = [str(fact[0]) for fact in facts]
        gone = any(text.startswith("Removed") for text in story.phone.texts(ADA))
        expected = {
            "Porto": 1 if "I live in Porto" in heard else 0,
            "Lisbon": 0,
            "chess": 1 if "I like chess" in heard else 0,
        }
        for value, times in expected.items():
            if values.count(value) != times:
                yield ("remembered", value, values.count(value), "times", facts)
        if values.count("number 17") > 1 or ("note my locker please" in done and "number 17" not in values):
            yield ("remembered", "locker", facts)
        bike = sum("red" in value for value in values)
        if bike > 1 or (gone and bike):
            yield ("remembered", "bike", gone, facts)
        yield from (("told twice", fact) for fact in facts if fact[1])
        yield from (("in the wrong place", f) for f in facts if (f[0] == "chess") != (f[3] == "chat"))


# The tests ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """An empty store, made once, and how much of everything there is in the story when nothing fails."""
    folder = tmp_path_factory.mktemp("untouched")
    path = folder / "empty" / "remora.db"

    async def make() -> None:
        phone = Phone()
        await (await Life.open(path, phone, Parrot(phone.mains), Clock())).stop()

    async def start(copy: Path) -> int:
        phone = Phone()
        faults = Lives(phone.mains, folder / "unused")
        life = await Life.open(copy, phone, Parrot(phone.mains), Clock(), faults=faults)
        statements = faults.statements
        await life.end()
        return statements

    asyncio.run(make())
    first_statement = asyncio.run(start(copied(path, folder / "start") / "remora.db"))
    trial = Trial(folder=copied(path, folder / "dry"), kind="none", n=0, first_statement=first_statement)
    wrong, counted = trial.run()
    assert wrong == []
    return path, {"first": first_statement, **counted}


def copied(path: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(path, folder / path.name)
    return folder


def faults_of(kind: str, total: int) -> Iterator[tuple[int, str]]:
    """The faults of one kind to try: (which one, what happens)."""
    hows = {"channel": SENDS, "model": THOUGHTS}.get(kind, ("",))
    every = [(n, how) for n in range(1, total + 1) for how in hows]
    yield from every[:: int(os.environ.get("REMORA_NTH_STRIDE", STRIDES[kind]))]


@pytest.mark.parametrize("kind", list(STRIDES))
def test_whatever_fails_once_everything_said_comes_to_its_end(
    untouched: tuple[Path, dict[str, int]], tmp_path: Path, kind: str
) -> None:
    """No message is lost or answered twice, nothing is learned twice, and no chat stands still."""
    path, totals = untouched
    wrong = {}
    for n, how in faults_of(kind, totals[kind]):
        folder = copied(path, tmp_path / f"{n}-{how.replace(' ', '-')}")
        trial = Trial(folder=folder, kind=kind, n=n, how=how, first_statement=totals["first"])
        found = trial.run()[0]
        if found:
            wrong[n, how] = found
        shutil.rmtree(folder)
    assert wrong == {}
