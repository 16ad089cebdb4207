"""People on a platform, a bot that is killed over and over, and what is left of their talk in the end: the parts that
all platforms share.

Invariants: every message tells one thing that no other tells; what is counted is what stands in the chats at the
platform, what its model was asked, and the rows of the dead process's own database, read from a copy so that nobody but
the bot ever recovers or checkpoints it; a kill counts only when the bot has come to listen, or was at the very point.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from gateway.config.settings import WorkPace
from tests.kit.paced import keep
from tests.kit.patience import SECONDS, limit, until
from tests.platforms.client import PlatformControl

JSON: TypeAlias = dict[str, Any]
Effect: TypeAlias = Literal["arrival", "mixed"]
Moment: TypeAlias = Literal["before effect", "after effect", "after answer"]
#: The acts of people at a point: to say something, which may take long to answer; to press a button; and on Discord
#: alone to use a command, press a button under its answer, write for the first time, or nothing, for the rest is there.
Deed: TypeAlias = Literal["quick", "slow", "press", "command", "click", "first words", "nothing"]

ROOT = Path(__file__).parents[2]
MOMENTS: Sequence[Moment] = get_args(Moment)
LATENCY_MS = 50
MODEL_MS = 300
#: Messages a second while the bot is killed at random.
RATE = 15
#: At least so many messages in each of the two worlds.
MESSAGES = 1_000
#: The text in the chat until there is more.
PLACEHOLDER = "…"
#: Seconds a slow answer takes beyond the others, so that a placeholder is shown first.
_SLOW = 0.7
_SLOWLY = "Slowly: "
THING = re.compile(r"thing\d{5}")
_ANSWER = re.compile(r"Answer to: .*(thing\d{5})$")
#: Seconds a life lasts at least and at most after the bot listens, when it is ended at random.
_LIVES = (0.1, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A moment to die: at a request (`method`, `at`), or around a commit whose transaction holds a text.

    With `live` the deed is done when the bot listens, else before it is started. After some the bot comes to `rest`: a
    turn that ends the process eight times is given up, as it should be.
    """

    name: str
    deed: Deed = "quick"
    method: str = ""
    at: Moment = "before effect"
    text: str | None = None
    when: Literal["", "before", "after"] = ""
    holding: str = ""
    live: bool = False
    rest: bool = False


#: The commits of a message's way, by a text that only they hold.
COMMITS: Sequence[tuple[str, Deed, str]] = (
    ("receive", "quick", "insert into inbox"), ("begin turn", "quick", "insert into turns"),
    ("place holder", "slow", "'placeholder', 0"), ("step", "quick", "insert into steps"),
    ("finish", "quick", "update turns set state"), ("sent", "quick", "set state = 'sent'"),
    ("take", "quick", "set state = 'sending'"),
    ("schedule extraction", "quick", "insert into extractions"),
    ("keep extracted", "quick", "update extractions set state = 'done'"),
)  # fmt: skip


def around(commits: Iterable[tuple[str, Deed, str]], *, live: bool = False) -> Iterator[Point]:
    """The points before and after each commit."""
    for name, deed, holding in commits:
        yield Point(name=f"before commit {name}", deed=deed, when="before", holding=holding, live=live)
        rest = name in ("begin turn", "step", "sent", "show again")
        yield Point(name=f"after commit {name}", deed=deed, when="after", holding=holding, live=live, rest=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The fate of a world. `integrity` is "ok" or what SQLite says.

    `sends_unanswered`: messages being shown (no edits) when the bot died whose showing it had not kept;
    `models_unanswered`: model requests likewise. `overpaid`: requests repeated though their answer was kept; `failed`:
    messages for which a failure was shown in place of an answer, which is no loss; `notices`: offers to show an answer
    again that stand in the chats. `commands`: commands and presses, which are no messages but are lost and doubled
    likewise; `unheard`: those of them that no bot had taken, as their person saw; `misplaced`: those whose answer is
    for one person's eyes and stood before all.
    """

    messages: int = 0
    commands: int = 0
    kills: int = 0
    lost: int = 0
    doubled: int = 0
    misplaced: int = 0
    unheard: int = 0
    memory_lost: int = 0
    memory_doubled: int = 0
    orphans: int = 0
    notices: int = 0
    sends_unanswered: int = 0
    repaid: int = 0
    models_unanswered: int = 0
    overpaid: int = 0
    failed: int = 0
    integrity: str = "ok"

    def __add__(self, other: Tally) -> Tally:
        sums = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "integrity"
        }
        return Tally(**sums, integrity=self.integrity if self.integrity != "ok" else other.integrity)

    def broken(self) -> list[str]:
        """The promises that were not kept, in words."""
        zero = ("lost", "doubled", "misplaced", "memory_lost", "memory_doubled", "overpaid")
        said = [f"{name}: {getattr(self, name)}" for name in zero if getattr(self, name)]
        if self.orphans + self.notices > self.sends_unanswered:
            said.append(f"{self.orphans} orphans + {self.notices} notices > {self.sends_unanswered} sends unanswered")
        if self.repaid > self.models_unanswered:
            said.append(f"{self.repaid} repaid > {self.models_unanswered} model requests unanswered")
        if self.integrity != "ok":
            said.append(f"integrity: {self.integrity}")
        return said

    def line(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if name not in ("overpaid", "failed")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where people talk: a private chat has one author, elsewhere the bot is `called` by its name."""

    chat: int
    thread: int | None = None
    authors: Sequence[int]
    called: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    thing: str
    place: Place
    message_id: int


@dataclass(slots=True)
class Asked:
    """An answer that was asked for by its button: how often it stood there before, and how often that was pressed."""

    before: int
    presses: int = 0


@dataclass(slots=True, kw_only=True)
class Chats:
    """The bot's messages as they stand: answers by the last thing in the messages that they answer."""

    shown: Counter[tuple[int, int | None, str]] = field(default_factory=Counter)
    orphans: int = 0
    #: (chat, message id, button's data, id of the message it replies to)
    offers: list[tuple[int, int, str, int | None]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def add(
        self, chat: int, thread: int | None, message_id: int, text: str, data: Sequence[str], answers: int | None
    ) -> None:
        """A message of the bot; `data` is what its buttons carry."""
        answer = _ANSWER.match(text.partition("\n")[0])
        if answer is not None:
            self.shown[(chat, thread, answer[1])] += 1
        elif text == PLACEHOLDER:
            self.orphans += 1
        elif data and data[0].startswith("again:"):
            self.offers.append((chat, message_id, data[0], answers))
        else:
            self.other.append(text)


P = TypeVar("P", bound=PlatformControl)


class Rows(Protocol):
    """A connection to a store, by which the worlds look at its rows."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...


class Bot:
    """A bot's process, started over and over. `launcher` is `tests.crash.product`."""

    def __init__(self, launcher: asyncio.subprocess.Process) -> None:
        self._launcher = launcher
        self.pid: int | None = None
        #: The exit status of the last life, once it has ended.
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, command: str = "start") -> int:
        """Begins a life in which the process does what the command says; returns its process id."""
        self.pid = int(await self._ask(command))
        self.ended = asyncio.ensure_future(self._ask("wait"))
        return self.pid

    @property
    def lives(self) -> bool:
        return self.pid is not None and not self.ended.done()

    def signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def kill(self) -> str:
        self.signal(signal.SIGKILL)
        return await self.ended

    async def _ask(self, command: str) -> str:
        assert self._launcher.stdin is not None and self._launcher.stdout is not None
        self._launcher.stdin.write(f"{command}\n".encode())
        return (await self._launcher.stdout.readline()).decode().strip()


class World(ABC, Generic[P]):
    """One platform with one bot. `folder` holds the bot's configuration, data and log."""

    def __init__(self, folder: Path, platform: P, bot: Bot, *, seed: int) -> None:
        self.folder = folder
        self.platform = platform
        self._bot = bot
        self.kills = 0
        self.chance = random.Random(seed)
        self.places: list[Place] = []
        self.told: dict[str, Told] = {}
        self._asked_again: dict[str, Asked] = {}
        self._pressed: Counter[tuple[int, int]] = Counter()
        self._sends_unanswered = 0
        self._asked: Counter[str] = Counter()
        self._unanswered: Counter[str] = Counter()

    # The parts in which platforms differ.

    @abstractmethod
    async def build(self) -> None:
        """People and places, and the bot's configuration by `configure`."""

    @abstractmethod
    async def tell(self, text: str, place: Place, author: int) -> tuple[Place, int]:
        """Has a person write, and call the bot where needed; returns the place it has come to and the message's id."""

    @abstractmethod
    async def click(self, message_id: int, data: str, *, chat: int, user: int) -> None:
        """A person presses a button."""

    @abstractmethod
    async def listened(self) -> int:
        """How often the bot has come to the state that `listens` waits for."""

    @abstractmethod
    async def listens(self, count: int) -> None:
        """Wait until the bot listens, for the `count`th time in this world."""

    @abstractmethod
    def read(self, state: JSON) -> Chats:
        """Returns what stands in the chats."""

    async def act(self) -> None:
        """Does what people do from time to time: says something. Every tenth message needs a slow answer."""
        await self.say(slow=self.chance.random() < 0.1)

    async def do(self, deed: Deed) -> None:
        if deed == "press":
            await self.press(most=1) or await self.press(most=1, old=True)
        elif deed != "nothing":
            await self.say(slow=deed == "slow")

    async def write_again(self) -> None:
        """In the end: people who can't know that the bot was not there write once more."""
        return

    def missing(self, database: Rows) -> int:
        """How many messages the bot has not taken, as far as the platform can't tell."""
        return 0

    def count_more(self, tally: Tally, state: JSON, database: Rows) -> Tally:
        return tally

    def configure(self, channel: str) -> None:
        self.write_config("config.yaml", channel, "http: {enabled: false}\n")

    def write_config(self, name: str, channel: str, more: str, *, log: str = "remora.log") -> None:
        """Write one configuration file, and the agent's; `more` is what it says beside what all worlds say."""
        (self.folder / "agents").mkdir(exist_ok=True)
        (self.folder / "agents" / "assistant.yaml").write_text(
            f"name: assistant\nlanguage: en\nmodels: [{{provider: openai, model: m, base_url: '{self.model_url}'}}]\n"
        )
        keep(WorkPace(quiet_seconds=0.4, placeholder_seconds=0.5, queue=10_000), self.folder)
        (self.folder / name).write_text(
            "data_dir: data\nembedding: {provider: none}\n"
            f"log: {{level: info, format: json, file: {log}}}\n"
            "limits: {burst_seconds: 0, concurrent_turns: 32, person_messages_per_minute: 10000}\n"
            f"{more}channels:\n  {channel}\n"
        )

    @property
    @abstractmethod
    def model_url(self) -> str:
        """Where the chat model is."""

    # People.

    async def say(self, *, slow: bool = False, place: Place | None = None) -> str:
        """Has somebody somewhere tell something new; returns the thing."""
        place = place or self.chance.choice(self.places)
        thing = f"thing{len(self.told):05}"
        # Entered before it is said: nothing may be said that is not counted.
        self.told[thing] = Told(thing=thing, place=place, message_id=0)
        author = self.chance.choice(place.authors)
        said_at, message_id = await self.tell(f"{_SLOWLY if slow else ''}I like {thing}", place, author)
        self.told[thing] = Told(thing=thing, place=said_at, message_id=message_id)
        return thing

    async def talk(self, rate: float, *, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.act()
            await asyncio.sleep(1 / rate)

    async def press(self, *, most: int, old: bool = False) -> int:
        """People press so many of the buttons "show again" that nobody pressed yet, or in vain; returns how many.

        With `old` somebody presses any of them, of which nothing is to come but a word.
        """
        state = await self.platform.state()
        chats, batch = self.read(state), _batches(state["model"]["asked"])
        said = {(told.place.chat, told.message_id): told for told in self.told.values()}
        pressed = 0
        for chat, message_id, data, answers in chats.offers:
            told = None if answers is None else said.get((chat, answers))
            key = None if told is None else batch.get(told.thing)
            stands = 0 if told is None or key is None else chats.shown[(chat, told.place.thread, key)]
            in_vain = key is not None and not stands
            if pressed == most or not (old or in_vain or not self._pressed[(chat, message_id)]):
                continue
            self._pressed[(chat, message_id)] += 1
            if key is not None:
                self._asked_again.setdefault(key, Asked(stands)).presses += 1
            person = next(place.authors[0] for place in self.places if place.chat == chat)
            await self.click(message_id, data, chat=chat, user=person)
            pressed += 1
        return pressed

    # The bot.

    async def start(self, point: Point | None = None) -> int:
        """Starts the bot, which dies at `point` when that is around a commit; returns its process id."""
        at = f" {point.when} {point.holding}" if point is not None and point.when else ""
        return await self._bot.start(f"start{at}")

    async def kill(self) -> None:
        await self._died(await self._bot.kill())

    async def die_at(self, point: Point) -> None:
        """One life of the bot, up to `point`. Raises `AssertionError` when it does not come there."""
        if point.method:
            # Before what makes answers slow: of two faults the first one made happens.
            await self.platform.heal()
        if point.when and not point.live:
            await self.do(point.deed)
        before = await self.listened() if point.live else 0
        pid = await self.start(point)
        if point.method:
            await self.platform.fault("kill", method=point.method, at=point.at, text=point.text, pid=pid)
            await self._slow_down()
        ended = self._bot.ended
        try:
            async with limit():
                if point.live:
                    await _either(ended, self.listens(before + 1))
                if point.method or point.live:
                    await self.do(point.deed)
                # Again and again: an answer may have come in another way than by this point, a poll without anything to
                # tell has no end.
                while not (await asyncio.wait([ended], timeout=1))[0]:
                    await self.do(point.deed)
        except TimeoutError:
            self._bot.signal(signal.SIGKILL)
            raise AssertionError(f"the bot lived on at: {point.name}; see {self.folder}") from None
        await self._died(ended.result())

    async def live(self, seconds: float) -> None:
        """Run until `seconds` after the bot has come to listen."""
        before = await self.listened()
        await self.start()
        await self.listens(before + 1)
        await asyncio.sleep(seconds)

    async def storm(self, kills: int, *, messages: int, rate: float) -> None:
        """Kill at random, while people talk, until the world has seen so many kills and messages."""
        enough = asyncio.Event()
        talking = asyncio.create_task(self.talk(rate, until=enough))
        try:
            while self.kills < kills:
                await self.live(self.chance.uniform(*_LIVES) / 2)
                if self.chance.random() < 0.3:
                    await self.press(most=1)
                await asyncio.sleep(self.chance.uniform(*_LIVES) / 2)
                await self.kill()
                note(f"  {self.kills} kills, {len(self.told)} messages")
            await until(lambda: len(self.told) >= messages or talking.done())
        finally:
            enough.set()
            await talking

    async def rest(self) -> None:
        """A life in which the bot does all it has to do."""
        before = await self.listened()
        await self.start()
        await self._rested(before + 1)
        await self._end()

    async def settle(self) -> Tally:
        """Let the bot come to rest, press every button, start it once more, and count."""
        before = await self.listened()
        await self.start()
        await self.listens(before + 1)
        await self.write_again()
        await self._rested(before + 1)
        for _ in range(3):
            if not await self.press(most=10_000):
                break
            await self._rested(before + 1)
        await self._end()
        await self.rest()
        return await self._count()

    def end(self) -> None:
        self._bot.signal(signal.SIGKILL)

    def ask_what_it_waits_for(self) -> None:
        self._bot.signal(signal.SIGUSR2)

    async def _end(self) -> None:
        """End the resting bot; not a kill that counts."""
        await self._bot.kill()

    async def _slow_down(self) -> None:
        await self.platform.fault("delay", method="model", text=_SLOWLY, seconds=_SLOW, times=0)

    async def _died(self, code: str) -> None:
        assert code == str(-signal.SIGKILL), f"the bot ended by itself with {code}; see {self.folder}"
        self.kills += 1
        await self.taken_up()
        await self._look()

    async def taken_up(self) -> None:
        """The platform, a process of its own, takes up what is in the wires: its loop goes round with each request."""
        for _ in range(50):
            await self.platform.timing()

    async def _look(self, whose: Collection[str] | None = None) -> None:
        asked = Counter[str]((await self.platform.state())["model"]["asked"])
        texts = defaultdict[int, list[str]](list)
        with self._autopsy() as database:
            for (session,) in database.execute(
                "select session_key from outbox where state = 'sending' and edits is null"
            ).fetchall():
                self._sends_unanswered += whose is None or session in whose
            for session, turn, text in database.execute(
                "select s.key, t.id, m.text from turns t join sessions s on s.id = t.session_id"
                " join messages m on m.turn_id = t.id and m.role = 'user'"
                " where t.state = 'running' and not exists (select 1 from steps s where s.turn_id = t.id) order by m.id"
            ).fetchall():
                if whose is None or session in whose:
                    texts[turn].append(text)
        for text in map("\n".join, texts.values()):
            if asked[text] > self._asked[text]:
                self._unanswered[text] += 1
                self._asked[text] = asked[text]

    @contextmanager
    def _autopsy(self) -> Iterator[Rows]:
        """A copy of the dead process's database, as its next start will find it."""
        with tempfile.TemporaryDirectory() as folder:
            for suffix in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copy(self.folder / "data" / f"remora.db{suffix}", folder)
            with closing(sqlite3.connect(Path(folder) / "remora.db")) as database:
                yield database

    @contextmanager
    def _open(self) -> Iterator[Rows]:
        uri = f"{(self.folder / 'data' / 'remora.db').as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=SECONDS)) as database:
            yield database

    async def _rested(self, count: int) -> None:
        """Wait until the bot, which listens for the `count`th time, has nothing left to do."""
        await self.listens(count)
        await self.platform.wait(delivered=True)
        left: dict[str, int] = {}
        asked = False
        began = time.monotonic()
        while not left or any(left.values()):
            await asyncio.sleep(0.2)
            left = self._left()
            if time.monotonic() - began > SECONDS:
                left["missing"] = 0  # counted as lost in the end
            if time.monotonic() - began > SECONDS and not asked:
                self.ask_what_it_waits_for()
                asked = True
            # A background call that got lost ends after 90 s and is made again a minute later.
            if time.monotonic() - began > 4 * SECONDS:
                raise AssertionError(f"not done within {4 * SECONDS:g} s: {left}; see {self.folder}")
        await self.platform.wait(idle=0.3)

    def _left(self) -> dict[str, int]:
        """Counts what the running bot still has to do, by its database."""
        with self._open() as database:
            return {
                "messages": _one(database, "select count(*) from inbox where state in ('pending', 'claimed')"),
                "rows": _one(
                    database,
                    "select count(*) from outbox where state in ('pending', 'sending')"
                    " or (state = 'unknown' and offered = 0)",
                ),
                "pieces": _one(database, "select count(*) from extractions where state = 'pending'"),
                "unread": _one(
                    database,
                    "select count(*) from messages m join sessions s on s.id = m.session_id"
                    " where m.id > s.extracted_to and m.learn = 1",
                ),
                "missing": self.missing(database),
            }

    # The outcome.

    async def _count(self) -> Tally:
        state = await self.platform.state()
        chats, batch = self.read(state), _batches(state["model"]["asked"])
        asked: dict[str, int] = state["model"]["asked"]
        with self._autopsy() as database:
            integrity = self._integrity(database)
            rows = database.execute(
                "select value, count(*), sum(reinforced_count) from memories where kind = 'fact' group by value"
            )
            facts = {value: (count, reinforced) for value, count, reinforced in rows}
            reported = {
                thing
                for (text,) in database.execute(
                    "select m.text from messages m join outbox o on o.turn_id = m.turn_id and o.kind = 'notice'"
                    " where m.role = 'user' and o.state = 'sent'"
                )
                for thing in THING.findall(text)
            }
        lost, doubled = [], []
        for told in self.told.values():
            key = batch.get(told.thing)
            if told.thing not in reported and not chats.shown[(told.place.chat, told.place.thread, key or "")]:
                lost.append(told.thing)
        for (_, _, key), count in chats.shown.items():
            again = self._asked_again.get(key)
            more = count - 1 if again is None else max(0, again.before - 1, count - again.before - again.presses)
            doubled += [key] * more
        # Two turns over one message would have been two questions to the model. A message whose failure was told is asked
        # with the next one, too: it still stands in the conversation, unanswered.
        questions = Counter(thing for text in asked for thing in THING.findall(text))
        doubled += [thing for thing, many in questions.items() if many > 1 and thing not in reported]
        gone = [thing for thing in self.told if thing not in facts]
        twice = [value for value, (count, reinforced) in facts.items() if count > 1 or reinforced]
        overpaid = {text: many - 1 - self._unanswered[text] for text, many in asked.items()}
        overpaid = {text: many for text, many in overpaid.items() if many > 0}
        complain(
            {
                "lost": lost, "doubled": doubled, "memory lost": gone, "memory doubled": twice,
                "overpaid": list(overpaid), "failed": sorted(reported), "other words": sorted(set(chats.other)),
            }
        )  # fmt: skip
        tally = Tally(
            messages=len(self.told),
            kills=self.kills,
            lost=len(lost),
            doubled=len(doubled),
            memory_lost=len(gone),
            memory_doubled=len(twice),
            orphans=chats.orphans,
            notices=len(chats.offers),
            sends_unanswered=self._sends_unanswered,
            repaid=sum(asked.values()) - len(asked),
            models_unanswered=self._unanswered.total(),
            overpaid=sum(overpaid.values()),
            failed=len(reported),
            integrity=integrity,
        )
        with self._autopsy() as database:
            return self.count_more(tally, state, database)

    def _integrity(self, database: Rows) -> str:
        return str(database.execute("pragma integrity_check").fetchone()[0])


def killing(
    made: type[World[P]], running: Callable[..., AbstractAsyncContextManager[P]], **whose: str
) -> Callable[..., Coroutine[Any, Any, Tally]]:
    """Returns a function that builds such a world on a platform that is `running`, kills the bot there, and counts."""

    async def world(
        folder: Path,
        *,
        effect: Effect,
        points: Iterable[Point],
        kills: int = 0,
        messages: int = 0,
        rate: float = RATE,
        model_ms: float = MODEL_MS,
        seed: int = 1,
    ) -> Tally:
        """Kill the bot at each of `points`, then at random until there were so many, and count."""
        timing = ("--latency-ms", LATENCY_MS, "--model-ms", model_ms, "--effect", effect, "--seed", seed)
        async with running(*map(str, timing), **whose) as platform, launched(folder / "config.yaml") as bot:
            world = made(folder, platform, bot, seed=seed)
            try:
                await world.build()
                for point in points:
                    await world.die_at(point)
                    note(f"  {world.kills} kills: {point.name}")
                    if point.rest:
                        await world.rest()
                if world.kills < kills:
                    await world.storm(kills, messages=messages, rate=rate)
                return await world.settle()
            finally:
                world.end()

    return world


def main(
    name: str, about: str | None, points: Sequence[Point], world: Callable[..., Coroutine[Any, Any, Tally]]
) -> int:
    """The command line: both timing models, one JSON line, 1 when a promise is broken (the files are then kept)."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    parser.add_argument("--kills", type=int, default=200, help="over both timing models, the named points included")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    return asyncio.run(_both(points, world, asked.kills, asked.seed))


async def _both(
    points: Sequence[Point], world: Callable[..., Coroutine[Any, Any, Tally]], kills: int, seed: int
) -> int:
    total, broken = Tally(), []
    effects: Sequence[Effect] = get_args(Effect)
    for n, effect in enumerate(effects):
        folder = Path(tempfile.mkdtemp(prefix=f"remora-crash-{effect}-"))
        note(f"effect {effect}, files in {folder}")
        share = kills // len(effects) + (n < kills % len(effects))
        tally = await world(folder, effect=effect, points=points[:share], kills=share, messages=MESSAGES, seed=seed + n)
        note(f"effect {effect}: {tally}")
        told = tally.broken()
        broken += [f"effect {effect}: {one}; files kept in {folder}" for one in told]
        total += tally
        if not told:
            shutil.rmtree(folder)
    sys.stdout.write(f"{total.line()}\n")
    for one in broken:
        note(one)
    return 1 if broken else 0


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def complain(found: dict[str, Sequence[str]]) -> None:
    """Tells of everything found that should not be there."""
    for name, those in found.items():
        if those:
            note(f"  {name}: {those[:20]}")


@asynccontextmanager
async def launched(config: Path) -> AsyncIterator[Bot]:
    """A bot that is configured so and does not live yet; its last life ends with the block."""
    folder = config.parent
    with (folder / "errors.log").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.crash.product", str(config)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            # Threads do not survive a fork.
            env={**os.environ, "NO_PROXY": "*", "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
        )
    try:
        yield Bot(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 2)
        except TimeoutError:
            # It waits for a life that nobody ended.
            process.kill()
            await process.wait()


async def _either(ended: asyncio.Future[str], awaited: Coroutine[Any, Any, None]) -> None:
    other = asyncio.ensure_future(awaited)
    both: set[asyncio.Future[Any]] = {ended, other}
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if other in done:
            other.result()
    finally:
        other.cancel()


def _one(database: Rows, sql: str) -> int:
    return int(database.execute(sql).fetchone()[0])


def _batches(asked: Iterable[str]) -> dict[str, str]:
    """Each thing with the last one of the burst it was asked in, which is what the model's answer names."""
    batches: dict[str, str] = {}
    for text in asked:
        things = THING.findall(text)
        batches |= dict.fromkeys(things, things[-1] if things else "")
    return batches
