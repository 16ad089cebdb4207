"""People talk, edit and press buttons, platforms repeat and fail, clocks jump, and the process is killed, in any order.

However it goes, in the end everything that was said is answered once, or the person knows why not, and nobody reads
what is not theirs. REMORA_MACHINE_STEPS=10000 goes on for long; the ordinary tests take a few hundred steps.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from agents.llm import Completion, OnText, Request
from channels.base import Inbound
from gateway.pipeline.delivery import AGAIN
from memory.recall import index
from memory.recall.cues import category_cues, cues
from memory.store import documents
from memory.store.database import Reader
from memory.text import words
from tests.kit.fakes import Clock
from tests.kit.lives import ADA, BOB, CLUB, SENDS, Life, Lives, Mains, Parrot, Phone, lies_open, rows

pytestmark = pytest.mark.campaign

T = TypeVar("T")
#: Steps of one run from an empty store.
RUN = 30
#: The texts that people say; "{}" becomes a word of its own by which the text is known again.
TALK = (
    "hello {}", "I like {}", "what do I like, {}?", "note my locker {}", "tell me slowly {}",
    "/remember that {} is mine", "/memory", "/new", "/stop", "/nonsense {}", "",
)  # fmt: skip
_WORD = re.compile(r"zq\d{1,9}x")

people = st.sampled_from((ADA, BOB))
places = st.sampled_from(("private", CLUB))
numbers = st.integers(0, 1_000)


class Listener(Parrot):
    """A parrot that keeps all it was shown, by what it was asked."""

    def __init__(self, mains: Mains) -> None:
        super().__init__(mains)
        self.heard: list[tuple[str, str]] = []

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self.heard.append((request.said, "\n".join(message.content for message in request.messages)))
        return await super().complete(request, on_text)


class Traffic(RuleBasedStateMachine):
    """The events, and in `said` and `asked` the plain model of who said what and asked to see what again."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "0" / "remora.db"
        self.clock, self.platform_clock = Clock(), Clock()
        self.phone = Phone()
        self.model = Listener(self.phone.mains)
        self.keys = count(1)
        self.delivered: list[Inbound] = []  # what the platform has to deliver, or has
        self.said: dict[str, tuple[str, str]] = {}  # a word → (chat, person)
        self.asked: Counter[str] = Counter()  # a word → how often somebody asked to see its answer again
        self.released: Counter[str] = Counter()  # a session → its newest note when "answer now" was last pressed
        self.hours_back = 0  # by how much the clock was put back in all
        self.lives = 0
        self.start()

    # The process ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.lives += 1
        self.phone.mains = self.model.mains = Mains()
        self.phone.nth = 0
        self.kept = Path(self.folder.name) / str(self.lives)
        self.faults = Lives(self.phone.mains, self.kept)
        self.runner = asyncio.Runner()
        self.life = self.run(
            Life.open(self.path, self.phone, self.model, self.clock, faults=self.faults, retry_seconds=60)
        )

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def die(self) -> None:
        self.phone.mains.off = True
        self.run(self.life.end())
        self.runner.close()
        if self.kept.exists():
            shutil.rmtree(self.path.parent)
            self.path = self.kept / "remora.db"
        self.start()

    def stop(self) -> None:
        self.run(self.life.stop())
        self.runner.close()

    def deliver(self, *inbounds: Inbound, wait: bool) -> None:
        """As a platform does: what a process did not take before it died comes again."""
        for inbound in inbounds:
            while not self.run(self.life.done(self.life.router.on_inbound(inbound))):
                self.die()
        for inbound in inbounds if wait else ():
            while not self.run(self.life.done(self.life.router.settled(inbound.place))):
                self.die()

    # Events -----------------------------------------------------------------------------------------------------

    def inbound(self, person: str, place: str, text: str = "", *, key: str = "") -> Inbound:
        self.platform_clock.move(minutes=0.05)
        self.clock.move(minutes=0.05)
        key = key or str(next(self.keys))
        chat = person if place == "private" else place
        if "{}" in text:
            word = f"zq{key}x"
            self.said[word] = (chat, person)
            text = text.format(word)
        made = Inbound(
            channel="phone", platform="phone", bot_id="b", update_key=key, chat=chat,
            chat_kind="private" if place == "private" else "group", author_id=person, author_name=person,
            message_id=key, text=text, sent_at=self.platform_clock(),
        )  # fmt: skip
        self.delivered.append(made)
        return made

    def edit_of(self, inbound: Inbound, text: str) -> Inbound:
        place = "private" if inbound.chat_kind == "private" else inbound.chat
        new = self.inbound(inbound.author_id, place, text, key=f"{next(self.keys)}")
        edit = replace(new, update_key=f"quiet-edit-{new.update_key}", message_id=inbound.message_id, edited=True)
        self.delivered[-1] = edit
        return edit

    @rule(person=people, place=places, text=st.sampled_from(TALK), wait=st.booleans())
    def say(self, person: str, place: str, text: str, wait: bool) -> None:
        self.deliver(self.inbound(person, place, text), wait=wait)

    @rule(which=numbers, text=st.sampled_from(TALK), wait=st.booleans())
    def edit(self, which: int, text: str, wait: bool) -> None:
        if messages := [one for one in self.delivered if one.pressed is None and not one.edited]:
            self.deliver(self.edit_of(messages[-1 - which % min(4, len(messages))], text), wait=wait)

    @rule(which=numbers, wait=st.booleans())
    def deliver_again(self, which: int, wait: bool) -> None:
        if self.delivered:
            self.deliver(self.delivered[which % len(self.delivered)], wait=wait)

    @rule(
        person=people, place=places, texts=st.lists(st.sampled_from(TALK), min_size=2, max_size=4), edits=st.booleans()
    )
    def deliver_backwards(self, person: str, place: str, texts: list[str], edits: bool) -> None:
        said = [self.inbound(person, place, text) for text in texts]
        if edits:
            said.append(self.edit_of(said[0], "hello {}"))
        self.deliver(*reversed(said), wait=True)

    @rule(person=people, place=places, which=numbers, wait=st.booleans())
    def press(self, person: str, place: str, which: int, wait: bool) -> None:
        chat = person if place == "private" else place
        data = [button.data for m in self.phone.messages.values() if m.chat == chat for button in m.buttons]
        if data:
            self.push(person, place, data[-1 - which % len(data)], wait=wait)

    def push(self, person: str, place: str, data: str, *, wait: bool) -> None:
        quiet = data == "now" or data.startswith(AGAIN)
        if data == "now":
            session = f"phone:{person if place == 'private' else place}:-"
            # The press releases what it finds held; a note that is made of it later is none of these.
            self.released[session] = rows(self.path, "select coalesce(max(id), 0) from outbox")[0][0]
        key = f"{'quiet-press-' if quiet else ''}{next(self.keys)}"
        if data.startswith(AGAIN):
            for (text,) in rows(self.path, "select text from outbox where id = ?", data.removeprefix(AGAIN)):
                self.asked.update(_WORD.findall(text))
        pressed = replace(self.inbound(person, place, key=key), pressed=data)
        self.delivered[-1] = pressed
        self.deliver(pressed, wait=wait)

    @rule(after=st.integers(1, 25))
    def kill_at_a_commit(self, after: int) -> None:
        self.faults.die_after(after)

    @rule(after=st.integers(1, 4), how=st.sampled_from(SENDS))
    def fail_at_a_request(self, after: int, how: str) -> None:
        self.phone.nth, self.phone.fault = self.phone.requests + after, how

    @rule()
    def kill(self) -> None:
        self.die()

    @rule()
    def restart(self) -> None:
        self.stop()
        self.start()

    @rule(hours=st.sampled_from((0.01, 1, 3, 72)))
    def let_pass(self, hours: float) -> None:
        self.clock.move(minutes=60 * hours)
        self.platform_clock.move(minutes=60 * hours)
        if not self.run(self.life.done(self.life.wake())):
            self.die()

    @rule()
    def put_the_clock_back(self) -> None:
        self.clock.move(minutes=-60)
        self.hours_back += 1

    @rule()
    def fall_quiet(self) -> None:
        """Everybody is silent long enough for memory to be made of what was said."""

        async def learn() -> None:
            for chat, person in ((ADA, ADA), (BOB, BOB), (CLUB, ADA)):
                await self.life.flush(chat, person)

        if not self.run(self.life.done(learn())):
            self.die()

    # Invariants -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        answered = Counter(
            word
            for message in self.phone.messages.values()
            if message.text.startswith("You said:")
            for word in set(_WORD.findall(message.text))
        )
        assert {word: n for word, n in answered.items() if n > 1 + self.asked[word]} == {}
        for message in self.phone.messages.values():
            self.check_scope(message.chat, message.text)
        for said, shown in self.model.heard:
            for word in _WORD.findall(said)[:1]:
                self.check_scope(self.said[word][0], shown)

    def check_scope(self, chat: str, text: str) -> None:
        for word in _WORD.findall(text):
            where, who = self.said[word]
            # Words that somebody told of themselves in a group are theirs in private, too.
            assert where == chat or (where == CLUB and who == chat), f"{word} of {who} in {where} is seen in {chat}"

    def settle(self) -> None:
        self.phone.nth = 0
        self.faults.live()
        for _ in range(3 + self.hours_back):
            for inbound in list(self.delivered):
                self.deliver(inbound, wait=False)
            self.let_pass(0.5)
        assert self.silent() == []
        assert lies_open(self.path) == []
        for chat in (ADA, BOB, CLUB):
            seen = [button.data for m in self.phone.messages.values() if m.chat == chat for button in m.buttons]
            for data in dict.fromkeys(seen):
                if data == "now" or data.startswith(AGAIN):
                    person, place = (ADA, CLUB) if chat == CLUB else (chat, "private")
                    self.push(person, place, data, wait=True)
        self.let_pass(0.5)
        assert rows(self.path, "select * from inbox where held = 1 and state = 'pending'") == []
        assert self.silent() == []
        assert lies_open(self.path) == []
        self.fall_quiet()
        self.run(self.life.memory.indexed())
        assert self.run(self.life.memory.database.read(unindexed)) == []
        for person, place in ((ADA, "private"), (BOB, "private"), (ADA, CLUB)):
            fresh = self.inbound(person, place, "still there, {}?")
            self.deliver(fresh, wait=True)
            assert any(fresh.text in text for text in self.phone.texts(fresh.chat))
        self.check()

    def silent(self) -> list[object]:
        """Returns messages that were delivered without a trace, and those that wait for a button never shown."""
        taken = {key for (key,) in rows(self.path, "select update_key from inbox")}
        lost: list[object] = [one for one in self.delivered if one.update_key not in taken]
        for (key,) in rows(self.path, "select distinct session_key from inbox where held = 1 and state = 'pending'"):
            asked = rows(
                self.path,
                "select max(id) from outbox where session_key = ? and buttons like '%\"now\"%' and state <> 'dead'",
                key,
            )
            # A note from before the last "answer now" does not tell of what has come since.
            if (asked[0][0] or 0) <= self.released[key]:
                lost.append(("held", key))
        return lost

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        try:
            self.settle()
        finally:
            with suppress(Exception):
                self.stop()
            self.folder.cleanup()


def unindexed(reader: Reader) -> list[object]:
    """Documents that the word index holds otherwise than the rows say, or not, or for no row."""
    held = {row["doc"]: row["tokens"].strip() for row in reader.all("select doc, tokens from indexed_documents")}
    ids = [2 * row["id"] for row in reader.all("select id from memories")]
    ids += [2 * row["id"] + 1 for row in reader.all("select id from messages")]
    wanted: dict[int, str] = {}
    for doc in ids:
        if (found := index.text_of(reader, doc)) is not None:
            text = found[1]
            if not documents.is_message(doc):
                row = reader.one("select kind, key, category from memories where id = ?", (doc // 2,))
                assert row is not None
                text = f"{text} {cues(row['key'])} {category_cues(row['category']) if row['kind'] == 'fact' else ''}"
            wanted[doc] = " ".join(words.tokens(text))
    return [
        (doc, held.get(doc), wanted.get(doc)) for doc in held.keys() | wanted.keys() if held.get(doc) != wanted.get(doc)
    ]


def test_whatever_happens_everything_said_is_answered_once_or_the_person_knows_why_not() -> None:
    """Promise 1 against orders of events that nobody thought of."""
    steps = int(os.environ.get("REMORA_MACHINE_STEPS", "0"))
    run_state_machine_as_test(
        Traffic,
        settings=settings(
            max_examples=max(1, steps // RUN) if steps else 6,
            stateful_step_count=RUN,
            deadline=None,
            # The same few runs each time; the long one looks further.
            derandomize=not steps,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
