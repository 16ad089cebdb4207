"""The n-th thing that can fail does: a statement of SQLite, a request to the platform, a call of the model, a life.

One short story is told to the real pipeline over and over, each time with one fault somewhere else; after a restart
over the same file everything that was said must have come to its end. The ordinary tests take every so many-th fault;
REMORA_NTH_STRIDE=1 takes all of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from channels.base import Inbound, NotTaken
from gateway.pipeline.delivery import AGAIN
from memory.errors import StorageError
from tests.kit import stalls
from tests.kit.fakes import Clock
from tests.kit.faults import IO_ERROR, Faults
from tests.kit.lives import ADA, BOB, CLUB, SENDS, Life, Lives, Mains, Parrot, Phone, lies_open, rows

pytestmark = pytest.mark.campaign

FULL = "database or disk is full"
#: Every so many-th fault is tried where nothing else is asked for.
STRIDES = {"store": 113, "life": 23, "channel": 15, "model": 9}
#: The faults that a call of the model may have.
THOUGHTS = ("down", "half", "bad", "bug", "death")


# The world ------------------------------------------------------------------------------------------------------


# One life of the bot --------------------------------------------------------------------------------------------


# The story ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """The story of two people, told until it is all taken. Between lives it goes on where the platform stopped."""

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
        """Tells the story; returns what is wrong after the restart, and how much of everything the first life had."""
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
        stalls.run(self._first(story, model, faults, retry_seconds=(0.01, 60.0)[self.n % 2]))
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
        return stalls.run(self._second(story, model)), counted

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
        """Yields the messages that were answered twice unasked, or, all offers taken, not at all."""
        for said, chat in story.taken.items():
            answers = [text for text in story.phone.texts(chat) if text.startswith("You said: ")]
            # A message that was tried again may have been answered together with the next one.
            shown = sum(said in text.removeprefix("You said: ").splitlines() for text in answers)
            if once and shown > 1:
                yield ("answered twice", said, shown)
            turn = rows(
                story.path, "select t.state from turns t join messages m on m.turn_id = t.id where m.text = ?", said
            )
            if not once and turn == [("done",)] and not shown and self.how != "refused":
                yield ("answer never shown", said)

    def _facts(self, story: Story) -> Iterator[object]:
        """Yields the facts that are remembered more or less often than they were told."""
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

    stalls.run(make())
    first_statement = stalls.run(start(copied(path, folder / "start") / "remora.db"))
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
