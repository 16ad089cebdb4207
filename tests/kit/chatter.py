"""People type at random, commands and talk, on two platforms, through the whole pipeline; what is shown where is read.

The model parrots every canary that it is given, so whatever comes into a prompt comes out. Invariants: who may be shown
a word is told by where it was told, and by who is one person at that moment; what the model has repeated in a chat may
be seen there again; a command may echo what was typed with it.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from agents.llm import Completion, OnText, Request
from channels.base import Capabilities, Inbound, Outbound, Place
from gateway.ops.http import Admission
from gateway.pipeline.policy import Rules
from memory.store.database import Reader
from tests.kit.fakes import calls, says
from tests.kit.pipeline import Wall, World, pipeline
from tests.kit.untouched import texts

#: Each types in private, and in the group of their channel.
ACCOUNTS: Final = (("telegram", "11"), ("telegram", "12"), ("discord2", "21"), ("discord2", "22"), ("telegram", "7"))
ADMIN: Final = ("telegram", "7")
GROUPS: Final[Mapping[str, str]] = {"telegram": "-100", "discord2": "500"}
_WORD: Final = re.compile(r"(?:own|oth|not|tas|edi)q[a-j]{4}q")
#: The commands: {word} and {id} are anybody's, {new} is told with it, {who} is a person or a group, {ref} a message.
COMMANDS: Final = (
    "/memory", "/memory list 2", "/memory list facts", "/memory tier 1", "/memory search {word}", "/memory show {id}",
    "/memory history {id}", "/memory pin {id}", "/memory unpin {id}", "/memory confirm {id}", "/memory export",
    "/memory export transcript", "/memory status", "/memory why", "/memory off", "/memory on", "/memory on",
    "/why", "/why", "/forget {word}", "/forget {word}", "/forget {id}", "/forget {id}", "/forget here", "/forget today",
    "/forget all", "/forget about:{word}", "/profile", "/privacy", "/privacy out", "/privacy in", "/privacy in",
    "/privacy delete", "/unlink", "/unlink 1", "/retry", "/retry", "/undo", "/undo", "/new", "/status", "/usage",
    "/task", "/task done", "/start", "/help", "/stop", "/correct {id} taken over", "/dead",
    "/admin memory {who} list", "/admin memory {who} search {word}", "/admin memory {who} show {id}",
    "/admin memory {who} forget {id}", "/link WRNG-2222", "/remember", "/forget",
)  # fmt: skip
#: The pages of the web page that need no id.
_PAGES: Final = (
    "/chat/main", "/memory", "/memory?show=pinned", "/memory?show=fading", "/memory?on=2030-01-01", "/timeline",
    "/entities", "/night", "/questions", "/me", "/admin", "/admin/jobs", "/admin/usage", "/admin/dead", "/admin/people",
)  # fmt: skip
ANSWERS: Final = ("yes", "words", "memory", "no", "是", "1")
#: The commands that are answered by a question.
_ASKS: Final = re.compile(r"/(forget|privacy delete|unlink|admin memory \S+ forget)")


class Parrot:
    """A model that looks things up and repeats every canary in all that it is given."""

    name = "parrot/model"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        if request.tools and request.messages[-1].role == "user":
            return calls(("search_memory", '{"query": "what do you know of me and my sister?"}'))
        words = dict.fromkeys(_WORD.findall(repr(request).casefold()))
        return says(f"I know {' '.join(words) or 'nothing'}.")

    async def aclose(self) -> None:
        return None


class Telegram(Wall):
    capabilities = Capabilities(buttons=True, burst_seconds=0, direct=True, file_bytes=10_000_000)


class Discord(Wall):
    capabilities = Capabilities(buttons=True, burst_seconds=0, hidden=True, file_bytes=10_000_000)


Account: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Somebody in their private chat, or in the group `chat`."""

    account: Account
    chat: str = ""

    def __str__(self) -> str:
        return f"{' '.join(self.account)}{f' in {self.chat}' if self.chat else ''}"


@dataclass(slots=True, kw_only=True)
class Word:
    """A canary: where it was told, whether of oneself, and in which chats the model has repeated it since."""

    word: str
    seat: Seat
    of_self: bool
    shown_in: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Talked:
    """The figures of what was typed and shown; `paged` counts the words that pages of the web page have shown."""

    typed: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    seen: int = 0
    hidden: int = 0
    planted: int = 0
    paged: int = 0


class Chatter:
    """One pipeline in which people type; `step` returns what was shown to somebody whom it is not for."""

    def __init__(self, world: World, rng: random.Random, talked: Talked) -> None:
        self.world = world
        self.rng = rng
        self.talked = talked
        self.words: dict[str, Word] = {}
        self.history: list[str] = []
        self.posts: list[tuple[Seat, str]] = []
        self._planted = 0
        self._read = dict.fromkeys(world.walls, 0)
        self._pressable: dict[tuple[str, str], str] = {}

    async def step(self) -> list[str]:
        deeds: Sequence[tuple[float, Callable[[Seat], Awaitable[list[str]]]]] = (
            (4, self.tell), (2, self.ask), (8, self.command), (2, self.reply), (1, self.link), (1, self.edit),
            (1, self.browse),
        )  # fmt: skip
        deed = self.rng.choices([deed for _, deed in deeds], [often for often, _ in deeds])[0]
        account = self.rng.choice(ACCOUNTS)
        seat = Seat(account=account, chat=self.rng.choice(("", "", GROUPS[account[0]])))
        self.world.clock.move(minutes=self.rng.choice((0.1, 0.1, 7)))
        faults = await deed(seat)
        await self.settle()
        return faults

    async def tell(self, seat: Seat) -> list[str]:
        form, kind, of_self = self.rng.choice(
            (
                ("I like {new}.", "own", True),
                ("Here we say {new}.", "oth", False),
                ("/remember {new}", "not", True),
                ("/task {new}", "tas", False),
            )
        )
        text = form.format(new=self.new(kind, seat, of_self=of_self))
        faults = await self.type(seat, text)
        await self.learn(seat)
        return faults

    async def ask(self, seat: Seat) -> list[str]:
        return await self.type(seat, self.rng.choice(("What do you know about me?", "What does my sister like?")))

    async def command(self, seat: Seat) -> list[str]:
        text = self.rng.choice(COMMANDS)
        ids = await self.world.rows("select short_id from memories")
        people = [account[1] for account in ACCOUNTS] + list(GROUPS.values())
        typed = text.format(
            word=self.rng.choice(list(self.words)) if self.words else "nothing",
            id=self.rng.choice(ids)[0] if ids else "m_nothing",
            who=(who := self.rng.choice(people)),
        )
        if text.startswith("/admin") and self.rng.random() < 0.7:
            seat = Seat(account=ADMIN)
        faults = await self.type(seat, typed, overseen=who if typed.startswith("/admin") else "")
        if _ASKS.match(typed) is not None and self.rng.random() < 0.6:
            faults += await self.type(seat, self.rng.choice(ANSWERS[:3]), answers=True)
        return faults

    async def reply(self, seat: Seat) -> list[str]:
        data = self._pressable.get((seat.account[0], seat.chat or seat.account[1]))
        if data is None or self.rng.random() < 0.5:
            return await self.type(seat, self.rng.choice(ANSWERS), answers=True)
        return await self.type(seat, "", pressed=data, answers=True)

    async def link(self, seat: Seat) -> list[str]:
        maker, giver = (Seat(account=account) for account in self.rng.sample(ACCOUNTS[:4], 2))
        faults = []
        for who, text in ((maker, "/link"), (giver, "/link CDFG-2345"), (maker, "yes")):
            faults += await self.type(who, text, answers=True)
        return faults

    async def edit(self, seat: Seat) -> list[str]:
        """Edits a message of one's own, or one that somebody else has said."""
        if not self.posts:
            return []
        post, number = self.rng.choice(self.posts)
        seat = post if self.rng.random() < 0.8 else Seat(account=seat.account, chat=post.chat)
        if seat.account[0] != post.account[0]:
            return []
        faults = await self.type(seat, f"I like {self.new('edi', seat, of_self=True)}.", message_id=number, edited=True)
        await self.learn(seat)
        return faults

    async def browse(self, seat: Seat) -> list[str]:
        """Somebody signs in on the web page and opens every page, with the ids of everybody."""
        channel, user = seat.account
        self.talked.typed["page"] += 1
        self.history.append(f"{seat} opens the page")
        visits = self.world.memory.visits
        code = f"code{self._planted}{self.rng.random()}"
        platform = self.world.walls[channel].platform
        await visits.open_code(code, channel=channel, platform=platform, user_id=user, agent="assistant")
        entered = await self._asked("POST", "/in", f"code={code}")
        cookie = entered.cookies["remora"].value
        rows = await self.world.rows("select short_id from memories order by id desc limit 12")
        turns = await self.world.rows("select id from turns order by id desc limit 6")
        names = await self.world.rows("select id from entities order by id desc limit 6")
        runs = await self.world.rows("select id from job_runs order by id desc limit 3")
        word = self.rng.choice(list(self.words)) if self.words else "nothing"
        persons = await self._persons()
        may = {told for told, one in self.words.items() if _may(one, seat.account, persons)}
        faults = []
        for path in (
            *_PAGES, f"/memory?q={word}", f"/memory?q=about:{word}", *(f"/memory/{one}" for (one,) in rows),
            *(f"/why/{one}?wrong=1" for (one,) in turns), *(f"/entities/{one}" for (one,) in names),
            *(f"/night/{one}" for (one,) in runs),
        ):  # fmt: skip
            html = str((await self._asked("GET", path, cookie=cookie)).text)
            # A search shows what it was asked for.
            shown = {*_WORD.findall(html.casefold())} - ({word} if "?q=" in path else set())
            self.talked.shown += 1
            self.talked.paged += len(shown)
            self.talked.hidden += len(self.words) - len(may)
            faults += [f"{seat} is shown {self.told(one)} at {path}" for one in shown - may]
        return faults

    async def _asked(self, method: str, path: str, form: str = "", *, cookie: str = "") -> web.Response:
        """Returns the page's answer to a browser."""
        assert self.world.page is not None
        headers = {"Host": "localhost", "Sec-Fetch-Site": "same-origin", "Cookie": f"remora={cookie}"}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        answer = await self.world.page.enter(make_mocked_request(method, path, headers=headers))
        if isinstance(answer, Admission):
            answer = await answer.answer(form.encode())
        assert isinstance(answer, web.Response)
        return answer

    async def type(
        self,
        seat: Seat,
        text: str,
        *,
        pressed: str | None = None,
        message_id: str | None = None,
        edited: bool = False,
        overseen: str = "",
        answers: bool = False,
    ) -> list[str]:
        """Type something and look at all that is shown anywhere since."""
        name = text.split(" ", maxsplit=1)[0] if text.startswith("/") else "answers" if answers else "talk"
        self.talked.typed[name] += 1
        self.history.append(f"{seat}: {text or pressed}")
        more = {"chat": seat.chat, "chat_kind": "group"} if seat.chat else {}
        more |= {"reply_to": self.rng.choice(self.posts)[1]} if self.posts and self.rng.random() < 0.15 else {}
        inbound = self.world.inbound(
            text, author=seat.account[1], channel=seat.account[0], pressed=pressed, edited=edited, **more,
            **({} if message_id is None else {"message_id": message_id}),
        )  # fmt: skip
        if not text.startswith("/") and text and not edited:
            self.posts.append((seat, inbound.message_id))
        await self.world.hear(inbound)
        # An answer for the asker's eyes alone goes to their private chat.
        await self.world.router.settled(Place(channel=seat.account[0], chat=seat.account[1]))
        is_talk = not text.startswith("/") or text.startswith("/retry")
        return await self.read(inbound, seat, echoed=_WORD.findall(text), overseen=overseen, is_talk=is_talk)

    async def read(
        self, inbound: Inbound, seat: Seat, *, echoed: Sequence[str], overseen: str, is_talk: bool
    ) -> list[str]:
        """Returns what was shown since the last time to somebody whom it is not for."""
        persons = await self._persons()
        faults: list[str] = []
        for channel, wall in self.world.walls.items():
            for outbound in wall.sent[self._read[channel] :]:
                where = (channel, outbound.place.chat)
                if outbound.buttons:
                    self._pressable[where] = self.rng.choice(outbound.buttons).data
                shown = {*_WORD.findall(_all_of(outbound).casefold())}
                may = {word for word, one in self.words.items() if _may(one, where, persons)}
                allowed = may | {*echoed}
                if seat.chat and where == seat.account:  # what was asked in a group is answered in private
                    allowed |= {w for w, one in self.words.items() if _may(one, (channel, seat.chat), persons)}
                if seat.account == ADMIN and where == ADMIN and (overseen or inbound.pressed):
                    allowed |= {w for w, one in self.words.items() if _is_overseen(one, overseen)}
                self.talked.shown += 1
                self.talked.seen += len(shown)
                self.talked.hidden += len(self.words) - len(may)
                faults += [f"{where} is shown {self.told(word)}: {outbound.text[:300]}" for word in shown - allowed]
                for word in shown & may if is_talk else ():
                    self.words[word].shown_in.add(where)
            self._read[channel] = len(wall.sent)
        return faults

    async def learn(self, seat: Seat) -> None:
        for (session_id,) in await self.world.rows("select id from sessions"):
            await self.world.memory.learner.flush(session_id, "test")

    async def settle(self) -> None:
        """Forgets the words that stand nowhere any more: whoever is shown one again is shown too much."""

        def held(reader: Reader) -> set[str]:
            return {*_WORD.findall(texts(reader).casefold())}

        there = await self.world.memory.database.read(held)
        self.words = {word: one for word, one in self.words.items() if word in there}

    def new(self, kind: str, seat: Seat, *, of_self: bool) -> str:
        """Two words that are told at once: who searches for the one may not be shown the other."""
        made = []
        for _ in range(2):
            self._planted += 1
            self.talked.planted += 1
            letters = "".join("abcdefghij"[int(digit)] for digit in f"{self._planted:04d}")
            made.append(f"{kind}q{letters}q")
            self.words[made[-1]] = Word(word=made[-1], seat=seat, of_self=of_self)
        return " ".join(made)

    def told(self, word: str) -> str:
        one = self.words.get(word)
        return f"{word}, forgotten" if one is None else f"{word}, told by {one.seat}, shown in {sorted(one.shown_in)}"

    async def _persons(self) -> dict[Account, int]:
        rows = await self.world.rows("select platform, user_id, person_id from identities")
        named = {channel.rstrip("2"): channel for channel in GROUPS}
        return {(named[platform], user_id): person for platform, user_id, person in rows if platform in named}


async def chatter(steps: int, seed: int, talked: Talked) -> tuple[list[str], list[str]]:
    """Types so many things in an empty store, until something is shown that must not be; returns it and the things."""
    rules = {
        channel: Rules(
            allow=frozenset(user for on, user in ACCOUNTS if on == channel),
            admins=frozenset({ADMIN[1]} if channel == ADMIN[0] else ()),
            groups=frozenset({group}),
        )
        for channel, group in GROUPS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        walls = {"telegram": Telegram("telegram"), "discord2": Discord("discord2")}
        async with pipeline(
            Path(folder), rules=rules, agents=("assistant", "other"), model=Parrot(), walls=walls, page=True
        ) as world:
            scene = Chatter(world, random.Random(seed), talked)
            for _ in range(steps):
                if faults := await scene.step():
                    return faults, scene.history
    return [], []


def _may(one: Word, where: tuple[str, str], persons: Mapping[Account, int]) -> bool:
    channel, chat = where
    if chat == GROUPS[channel]:
        return one.seat.chat == chat
    selves = {account for account, person in persons.items() if person == persons.get(where)} | {where}
    told_here = one.seat.account in selves and (not one.seat.chat or one.of_self)
    return told_here or bool(selves & one.shown_in)


def _is_overseen(one: Word, reference: str) -> bool:
    """Whether an admin may be shown a word of the person or group on their channel; pressed: of any."""
    if one.seat.account[0] != ADMIN[0]:
        return False
    return not reference or reference == (one.seat.chat or one.seat.account[1])


def _all_of(outbound: Outbound) -> str:
    file = b"" if outbound.file is None else outbound.file.data
    return f"{outbound.text} {outbound.markup} {outbound.buttons!r} {file.decode()}"
