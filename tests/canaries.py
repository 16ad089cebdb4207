"""A small world to look for leaks in: people who tell canary words to agents in places, and every way to read them.

Invariants: each word is told once, so whoever reads it names its teller; what may be seen is decided by `sees` alone,
which knows nothing of SQL; what came out is searched as a whole, by its `repr`, so no field is overlooked.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.tokens import count_tokens
from memory.errors import MemoryFault, NotFound
from memory.learn.ask import Ask, Mind, Told
from memory.recall.embed import Embedder, TokenEmbedder, Tokens, chunks, normalised
from memory.recall.rank import CLASSIC
from memory.service import (
    Budget,
    Context,
    Desk,
    Draft,
    Embedders,
    Outcome,
    Piece,
    Said,
    Service,
    Spent,
    Triggers,
    Turn,
    Utterance,
    View,
    Where,
    Who,
)
from memory.store import memories
from memory.store.database import Transaction
from tests.conftest import group, private
from tests.fakes import Clock, counting_ids

T = TypeVar("T")

AGENTS = ("assistant", "other")
#: Where threads keep their own memory, a thread sees the chat's too; the chat sees nothing of the thread.
READABLE = {"room": {"room"}, "room/own": {"room", "room/own"}, "club": {"club"}}
PLACES = ("private", *READABLE)
#: What a message taught: a fact about its author, one about a friend (and the friend's name), a wish, what happened.
LEARNED = ("sel", "fri", "sty", "eve")
#: What people say of themselves, wherever they do.
OF_SELF = ("tol", "sel", "sty", "eve")
_WORD = re.compile(r"(?:msg|tol|sel|fri|sty|eve|agw|ref)q[a-j]{4}q")
_ALL = Budget(items=500, tokens=1_000_000, known=500, known_tokens=1_000_000)
#: A question that shares no word with anything told, but letters: only vectors answer it.
_BY_LETTERS = "qaaaaq qaabq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A person in a place, with the agent that serves it."""

    person: str
    place: str
    agent: str

    def __str__(self) -> str:
        return f"{self.person} in {self.place} with {self.agent}"

    @property
    def address(self) -> tuple[Where, Who]:
        if self.place == "private":
            return private(self.person, agent=self.agent)
        chat, _, thread = self.place.partition("/")
        return group(chat, self.person, thread=thread or None, agent=self.agent)


@dataclass(slots=True, kw_only=True)
class Canary:
    """A word told at a spot. `current` ends when it was corrected or its message left recall: it may be seen still,

    by those who could see it, but need not.
    """

    kind: str
    word: str
    spot: Spot
    current: bool = True


Read: TypeAlias = Callable[["World", Spot], Awaitable[object]]
Shows: TypeAlias = Callable[[Canary, Spot], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to read: which methods it goes through, what it gives, and which of the seen canaries it has to show."""

    methods: tuple[str, ...]
    read: Read
    shows: Shows


class Letters:
    """A real embedder, small: texts that share groups of three letters are alike. It gives tokens, too."""

    name = "letters"
    dimension = 64

    def suits(self, text: str) -> bool:
        return bool(text.split())

    def split(self, text: str) -> list[str]:
        return chunks(text)

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        return normalised(np.stack([self._of(text) for text in texts]))

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        found = []
        for text in texts:
            words = tuple(text.casefold().split())
            rows = normalised(np.stack([self._of(word) - np.float32(0.5) for word in words]))
            found.append(Tokens(words=words, vectors=rows, stop=(False,) * len(words)))
        return found

    async def aclose(self) -> None:
        return None

    def _of(self, text: str) -> NDArray[np.float32]:
        row = np.ones(self.dimension, dtype=np.float32)
        folded = f" {text.casefold()} "
        for start in range(len(folded) - 2):
            row[zlib.crc32(folded[start : start + 3].encode()) % self.dimension] += 1
        return row


@dataclass(slots=True)
class Model:
    """Reads for memory: finds in each message what its plan says, and keeps what it was shown.

    `answers` are whole answers, by the last message of a piece.
    """

    plans: dict[str, tuple[str, ...]] = field(default_factory=dict)
    answers: dict[str, dict[str, object]] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    async def complete(self, ask: Ask) -> Told:
        self.shown.append(ask.material)
        lines = ask.material.split("MESSAGES:")[-1].strip().splitlines()
        answer: dict[str, object] = {"facts": [], "styles": [], "event": None, "entities": []}
        facts: list[object] = []
        asked = [json.loads(line) for line in lines]
        for line in asked:
            for word in self.plans.get(line["text"], ()):
                kind, by = word[:3], {"value": word, "messages": [line["n"]]}
                if kind == "sel":
                    facts.append({"about": "self", "category": "preference", "key": "likes"} | by)
                elif kind == "fri":
                    facts.append({"about": word.title(), "category": "happening", "key": "habit"} | by)
                    answer["entities"] = [{"name": word.title(), "type": "person"}]
                elif kind == "sty":
                    # A mention is an entity, known from a row that stays with its agent.
                    answer["styles"] = [{"key": "style"} | by | {"value": f"@{word}"}]
                else:
                    answer["event"] = by
        spent = Spent(model="plan", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
        last = next(line["text"] for line in reversed(asked) if line["text"] != "ok")
        return Told(text=json.dumps(self.answers.get(last, answer | {"facts": facts})), spent=spent)


class World:
    """One store, who is who in it, and what was told. `await World.open(...)`, `await close()`."""

    def __init__(self, path: Path, people: Sequence[str]) -> None:
        self.path = path
        self.clock = Clock()
        self.model = Model()
        self.person_of = {name: name for name in people}
        self.canaries: list[Canary] = []
        #: Where each message that can be found was said.
        self.said: list[Spot] = []
        self._ids = counting_ids()
        self._count = 0
        self.service: Service

    @classmethod
    async def open(cls, path: Path, people: Sequence[str]) -> World:
        world = cls(path, people)
        await world.start()

        def threads_own(tx: Transaction) -> None:
            tx.run(
                "update chats set threads_own = 1 where id = (select chat_id from chat_aliases where reference = 'room')"
            )

        await world.context(Spot(person=people[0], place="room", agent=AGENTS[0]))
        await world.service._database.write(threads_own)
        return world

    async def start(self) -> None:
        async def vectors() -> Embedder:
            return Letters()

        async def tokens() -> TokenEmbedder:
            return Letters()

        mind = Mind(complete=self.model.complete)
        self.service = await Service.open(
            self.path,
            agents=dict.fromkeys(AGENTS, "UTC"),
            minds=dict.fromkeys(AGENTS, mind),
            triggers=Triggers(quiet_seconds=3_600),
            now=self.clock,
            new_id=self._ids,
            count_tokens=count_tokens,
            embedders=Embedders(vectors=vectors, tokens=tokens),
        )

    async def close(self) -> None:
        await self.service.close(seconds=5)

    # What people do ---------------------------------------------------------------------------------------------

    async def tell(self, spot: Spot, kinds: Sequence[str] = LEARNED) -> None:
        """Say something from which `kinds` are learned."""
        message, *words = (self.canary(kind, spot) for kind in ("msg", *kinds))
        self.model.plans[message.word] = tuple(canary.word for canary in words)
        turn = await self.say(spot, message.word)
        await self.service.flush(turn.context, "test")

    async def have_kept(self, spot: Spot) -> None:
        """Ask for something to be remembered."""
        word = self.canary("tol", spot).word
        await self.do(spot, lambda desk: desk.remember(word, key="note"))

    async def say_for_agent(self, agent: str) -> None:
        """Keep something for all whom an agent serves."""
        spot = Spot(person=next(iter(self.person_of)), place="private", agent=agent)
        context = await self.context(spot)
        draft = Draft(
            kind="fact", owner_id=context.scope.owners[0], category="decision", key="note",
            value=self.canary("agw", spot).word, importance=5, confidence=1.0, origin="admin",
            learned_at=self.clock(), local_date="2026-11-21",
        )  # fmt: skip
        await self.service._database.write(
            lambda tx: memories.insert(tx, draft, new_id=lambda: f"m_{self._ids()}", now=self.clock())
        )

    async def reflect(self, spot: Spot, parents: Sequence[Canary]) -> None:
        """Derive something from several memories, for the one at `spot`, setting them aside as a job would."""
        context = await self.context(spot)
        made = self.canary("ref", spot)
        draft = Draft(
            kind="reflection", owner_id=context.scope.writes_to, category="conversation", key="insight",
            value=made.word, importance=5, confidence=1.0, origin="derived",
            learned_at=self.clock(), local_date="2026-11-21",
        )  # fmt: skip

        def act(tx: Transaction) -> None:
            made_id = memories.insert(tx, draft, new_id=lambda: f"m_{self._ids()}", now=self.clock())
            ids = [row["id"] for parent in parents for row in tx.all(_ROW, (parent.word,))]
            memories.set_parents(tx, made_id, ids)
            for parent_id in ids:
                tx.run("update memories set archived_at = ? where id = ?", (self.clock(), parent_id))

        await self.service._database.write(act)

    async def correct(self, canary: Canary, spot: Spot) -> None:
        """Put a new word in the place of one; it stays what it was of and whose it was."""
        _, short_id = await self.row(canary)
        new = self.canary(canary.kind, canary.spot)
        await self.do(spot, lambda desk: desk.correct(short_id, new.word))
        canary.current = False

    async def forget(self, canary: Canary, spot: Spot) -> None:
        """Forget one memory; what it was learned from is not found any more either."""
        memory_id, _ = await self.row(canary)
        await self.do(spot, lambda desk: desk.forget(memory_id))
        self.canaries.remove(canary)
        for message, words in self.model.plans.items():
            if canary.word in words:
                self._unlearn(message)

    async def link(self, one: str, other: str) -> None:
        first, second = [
            await self.context(Spot(person=name, place="private", agent=AGENTS[0])) for name in (one, other)
        ]
        await self.service.link(first, second)
        old, new = self.person_of[other], self.person_of[one]
        self.person_of = {name: new if person == old else person for name, person in self.person_of.items()}

    async def unlink(self, name: str) -> None:
        await self.service.unlink(await self.context(Spot(person=name, place="private", agent=AGENTS[0])))
        self._count += 1
        self.person_of[name] = f"{name} {self._count}"

    # What they see ----------------------------------------------------------------------------------------------

    def sees(self, canary: Canary, spot: Spot) -> bool:
        """Whether a word may be read at a spot (DESIGN 5.2)."""
        told = canary.spot
        if canary.kind in ("sty", "agw") and told.agent != spot.agent:
            return False
        if canary.kind == "agw":
            return True
        if spot.place == "private":
            theirs = self.person_of[told.person] == self.person_of[spot.person]
            return theirs and (told.place == "private" or canary.kind in OF_SELF)
        return told.place in READABLE[spot.place]

    async def faults(self, name: str, spot: Spot) -> list[str]:
        """What a way of reading gives at a spot and must not, or does not give and should."""
        way = WAYS[name]
        found = {*_WORD.findall(repr(await way.read(self, spot)).casefold())}
        must = {c.word for c in self.canaries if c.current and self.sees(c, spot) and way.shows(c, spot)}
        may = {c.word for c in self.canaries if self.sees(c, spot) or self._is_source(c, spot)}
        faults = [f"{name}: {spot} reads {self._told(word)}" for word in sorted(found - may)]
        return faults + [f"{name}: {spot} misses {self._told(word)}" for word in sorted(must - found)]

    async def miscounts(self, spot: Spot) -> list[str]:
        """Counts that differ from what is there to be read."""
        context = await self.context(spot)
        listed = await self.service.memories(context, limit=1_000)
        stats, status = await self.service.stats(context), await self.service.status(context)
        said = sum(self.sees(Canary(kind="msg", word="", spot=where), spot) for where in self.said)
        counted = {"memories": sum(stats.kinds.values()), "live": status.live, "messages": stats.messages}
        wanted = {"memories": len(listed), "live": len(listed), "messages": said}
        return [] if counted == wanted else [f"counts: {spot} gets {counted} of {wanted}"]

    async def context(self, spot: Spot) -> Context:
        return await self.service.context(*spot.address)

    async def row(self, canary: Canary) -> tuple[int, str]:
        found = await self.service._database.read(lambda reader: reader.one(_ROW, (canary.word,)))
        assert found is not None, canary
        return found["id"], found["short_id"]

    async def rows(self) -> list[tuple[int, str]]:
        """Every memory of everybody, to be asked for by its id."""
        found = await self.service._database.read(lambda reader: reader.all("select id, short_id from memories"))
        return [(row["id"], row["short_id"]) for row in found]

    async def do(self, spot: Spot, act: Callable[[Desk], T]) -> T:
        """Do something at the desk, as a command would, and give what it returned."""
        given: list[T] = []

        def done(desk: Desk) -> Sequence[Piece]:
            given.append(act(desk))
            return [Piece(text="done")]

        await self.service.answer(await self.context(spot), await self._inbox(spot), done)
        return given[0]

    async def say(self, spot: Spot, text: str, *, on_record: bool = True) -> Turn:
        """One turn, answered with "ok"."""
        turn = await self.begin(spot, text, on_record=on_record)
        view = await self.service.look(turn, _ALL, window_tokens=1_000_000, window_messages=500)
        await self.finish(turn, view)
        return turn

    async def begin(self, spot: Spot, text: str, *, on_record: bool) -> Turn:
        # A second: a window's snapshot is taken anew only after some minutes of silence.
        self.clock.move(minutes=1 / 60)
        said = Said(
            inbox_id=await self._inbox(spot), text=text, tokens=count_tokens(text), said_at=self.clock(),
            platform_ref=None, reply_to=None, learn=on_record, recall=on_record,
        )  # fmt: skip
        if on_record:
            self.said += [spot, spot]
        return await self.service.begin_turn(*spot.address, [said])

    async def finish(self, turn: Turn, view: View, text: str = "ok") -> None:
        answer = Utterance(role="assistant", text=text, tokens=count_tokens(text), said_at=self.clock())
        await self.service.finish_turn(turn, view, Outcome(pieces=(Piece(text=text),), utterances=(answer,)))

    async def _inbox(self, spot: Spot) -> int:
        inbox_id = await self.service.mail.receive(
            platform="console", bot_id="local", update_key=self._ids(),
            session_key=spot.address[0].session_key, payload="{}",
        )  # fmt: skip
        assert inbox_id is not None
        return inbox_id

    def canary(self, kind: str, spot: Spot) -> Canary:
        """A new word about to be told."""
        self._count += 1
        letters = "".join("abcdefghij"[int(digit)] for digit in f"{self._count:04d}")
        self.canaries.append(Canary(kind=kind, word=f"{kind}q{letters}q", spot=spot))
        return self.canaries[-1]

    def _unlearn(self, word: str) -> None:
        """A message and the reply to it are not found any more."""
        for canary in self.canaries:
            if canary.word == word and canary.current:
                canary.current = False
                self.said.remove(canary.spot)
                self.said.remove(canary.spot)

    def _is_source(self, canary: Canary, spot: Spot) -> bool:
        """Whether a message is one's own, from which a memory one sees was learned: it is shown as its source."""
        return canary.kind == "msg" and self.person_of[canary.spot.person] == self.person_of[spot.person]

    def _told(self, word: str) -> str:
        told = next((canary for canary in self.canaries if canary.word == word), None)
        return f"{word}, forgotten" if told is None else f"{word}, told by {told.spot}"


_ROW = "select id, short_id from memories where value in (?1, '@' || ?1)"


async def _searched(world: World, spot: Spot) -> object:
    """Found by the very words, of which a question holds only so many."""
    context = await world.context(spot)
    words = [canary.word for canary in world.canaries]
    return [
        await world.service.search(context, " ".join(words[start : start + 100]), limit=500, weights=CLASSIC)
        for start in range(0, len(words), 100)
    ]


async def _meant(world: World, spot: Spot) -> object:
    await world.service.indexed()
    return await world.service.search(await world.context(spot), _BY_LETTERS, limit=500)


async def _without_index(world: World, spot: Spot) -> object:
    """By substring, as long as the index is broken; the next start makes it again."""
    await world.service._database.write(lambda tx: tx.run("drop table if exists words"))
    found = await _searched(world, spot)
    await world.close()
    await world.start()
    return found


async def _by_time(world: World, spot: Spot) -> object:
    """All was told on one day; here it is the next, and then that day again."""
    world.clock.move(days=1)
    found = await world.service.search(await world.context(spot), "What happened yesterday?", limit=500)
    world.clock.move(days=-1)
    return found


async def _by_name(world: World, spot: Spot) -> object:
    context = await world.context(spot)
    return [await world.service.entity(context, c.word) for c in world.canaries if c.kind in ("fri", "sty")]


async def _listed(world: World, spot: Spot) -> object:
    return await world.service.memories(await world.context(spot), limit=1_000)


async def _profile(world: World, spot: Spot) -> object:
    return await world.service.profile(await world.context(spot))


async def _looked(world: World, spot: Spot) -> object:
    """What a turn's prompt is made of."""
    await world.service.indexed()
    turn = await world.begin(spot, f"What of {_BY_LETTERS}?", on_record=False)
    view = await world.service.look(turn, _ALL, window_tokens=1_000_000, window_messages=500)
    await world.finish(turn, view)
    return view, world.service.propose(turn)


async def _why(world: World, spot: Spot) -> object:
    """What entered the last reply, whoever it was given to here."""
    return await world.service.why(await world.context(spot))


async def _by_id(world: World, spot: Spot) -> object:
    """Every memory there is, asked for by id; what can't be shown can't be touched either."""
    rows = await world.rows()

    def act(desk: Desk) -> list[object]:
        shown: list[object] = []
        for memory_id, short_id in rows:
            try:
                shown.append(desk.show(short_id))
            except NotFound:
                for touch in (desk.may_forget, desk.confirm, lambda short_id: desk.correct(short_id, "taken over")):
                    with pytest.raises(NotFound):
                        touch(short_id)
                assert desk.forget(memory_id) is None
                desk.use([memory_id])
            else:
                try:
                    shown.append(desk.may_forget(short_id))
                except MemoryFault as refused:
                    shown.append(refused)
        return shown

    return await world.do(spot, act)


async def _offered(world: World, spot: Spot) -> object:
    """What the model that reads for memory is shown."""
    turn = await world.say(spot, "qaaaaq")
    await world.service.flush(turn.context, "test")
    return world.model.shown[-1]


def _everything(canary: Canary, spot: Spot) -> bool:
    return True


def _learned(canary: Canary, spot: Spot) -> bool:
    return canary.kind != "msg"


def _own_tastes(canary: Canary, spot: Spot) -> bool:
    return canary.kind == "sel" and canary.spot.place == spot.place == "private"


def _friends_here(canary: Canary, spot: Spot) -> bool:
    return canary.kind == "fri"


def _dated(canary: Canary, spot: Spot) -> bool:
    return canary.kind != "sty"


def _replaceable(canary: Canary, spot: Spot) -> bool:
    """The weightiest facts of the very place: there is room for some 40."""
    return canary.kind == "tol" and canary.spot.place == spot.place


def _nothing(canary: Canary, spot: Spot) -> bool:
    return False


WAYS: dict[str, Way] = {
    "words": Way(methods=("Service.search",), read=_searched, shows=_everything),
    "vectors": Way(methods=("Service.search", "Service.indexed"), read=_meant, shows=_everything),
    "substring": Way(methods=("Service.search",), read=_without_index, shows=_everything),
    "time": Way(methods=("Service.search",), read=_by_time, shows=_dated),
    "entity": Way(methods=("Service.entity",), read=_by_name, shows=_friends_here),
    "memories": Way(methods=("Service.memories",), read=_listed, shows=_learned),
    "profile": Way(methods=("Service.profile",), read=_profile, shows=_own_tastes),
    "look": Way(methods=("Service.look", "Service.propose", "Service.begin_turn"), read=_looked, shows=_everything),
    "why": Way(methods=("Service.why",), read=_why, shows=_nothing),
    "id": Way(
        methods=("Desk.show", "Desk.may_forget", "Desk.forget", "Desk.correct", "Desk.confirm", "Desk.use"),
        read=_by_id,
        shows=_learned,
    ),
    "extraction": Way(methods=("Service.flush", "Service.learn_soon"), read=_offered, shows=_replaceable),
}
