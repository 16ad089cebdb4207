"""A small world to look for leaks in: people who tell canary words to agents in places, and may take them back.

Invariants: each word is told once, so whoever reads it names its teller; what may be seen is decided by `World.sees`
alone, which knows nothing of SQL: of the tables is taken only which words are there still.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.budget import count_tokens
from channels.api import API
from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.chat.turns import Outcome, Said, Turn
from memory.chat.window import TurnMaterial
from memory.context import Context
from memory.housekeeping import Keeping
from memory.learn import keep
from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest
from memory.mailbox.outbox import Part
from memory.oversight import Overseer
from memory.people.linking import Linking, Note
from memory.people.privacy import Look as LookAction
from memory.recall.embed import Embedder, TokenEmbedder, Tokens, chunks, normalised
from memory.recall.embedding import Embedders
from memory.recall.recall import Budget
from memory.service import Service
from memory.setup import SearchSetup
from memory.store import memories
from memory.store.attachments import Attached
from memory.store.database import Database, Reader, Row, Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from memory.store.questions import Question
from memory.store.usage import Spent
from memory.transfer.formats.material import ImportedItem, ImportedLine, Material, Person
from memory.transfer.homes import OptedOut, Owner
from tests.kit import stalls, stores
from tests.kit.fakes import Clock, counting_ids, runtime
from tests.kit.forgetting import forgotten_alone
from tests.kit.patience import SECONDS
from tests.kit.stores import AGENTS, address, migrated
from tests.kit.talk import group, private

T = TypeVar("T")
#: Opens a database for a world.
Engine: TypeAlias = Callable[[Path], Awaitable[Database]]

#: Where threads keep their own memory, a thread sees the chat's too; the chat sees nothing of the thread.
READABLE = {
    "room": {"room"},
    "room/own": {"room", "room/own"},
    "club": {"club", "club/talk"},
    "club/talk": {"club", "club/talk"},
}
PLACES = ("private", *READABLE)
OWN_THREADS = {"room"}
#: The kinds that a message taught: a fact about its author, one about a friend (and their name), a wish, an event.
LEARNED = ("sel", "fri", "sty", "eve")
#: The kinds that people say of themselves in their own words, wherever they do.
OF_SELF = ("tol", "sel")
#: The kinds that stand in the messages they are learned from.
IN_WORDS = ("sel",)
#: More than anything here needs.
ALL = Budget(items=500, tokens=1_000_000, known=500, known_tokens=1_000_000)
#: Who may look at what others told, and tells nothing.
ADMIN = "root"
_WORD = re.compile(r"[a-z]{3}q[a-j]{4}q")


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
        return group(chat, self.person, thread=thread or None, agent=self.agent, own_threads=chat in OWN_THREADS)


@dataclass(slots=True, kw_only=True)
class Canary:
    """A word told at a spot.

    `current` ends when it was corrected or its message left recall: who could see it may see it still, but need not.
    """

    kind: str
    word: str
    spot: Spot
    current: bool = True
    #: Of what is derived: what it was made of.
    made_of: tuple[Canary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message on its platform: where it was said, its id there, and the word that it is."""

    spot: Spot
    ref: str
    canary: Canary


class Letters:
    """A real embedder, small: texts that share groups of three letters are alike. It gives tokens, too."""

    name = "letters"
    dimension = 64

    def suits(self, text: str) -> bool:
        return bool(text.split())

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [chunks(text) for text in texts]

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

    @stalls.apart()
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
    #: Words that rest on the message before theirs, too.
    agreed: set[str] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.shown.append(request.material)
        if "MESSAGES:" not in request.material:  # asked for something to be put in other words, which it can't
            nothing = Spent(model="plan", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
            return ModelAnswer(text="{}", spent=nothing)
        lines = request.material.split("MESSAGES:")[-1].strip().splitlines()
        answer: dict[str, object] = {"facts": [], "styles": [], "event": None, "entities": []}
        facts: list[object] = []
        asked = [json.loads(line) for line in lines]
        for line in asked:
            for word in self.plans.get(line["text"].partition(" ")[0].rstrip("."), ()):
                before = [one["n"] for one in asked if one["n"] < line["n"]][-2:-1] if word in self.agreed else []
                kind, by = word[:3], {"value": word, "messages": [*before, line["n"]]}
                if kind == "sel":
                    facts.append({"about": "self", "category": "preference", "key": "likes"} | by)
                elif kind == "fri":
                    facts.append({"about": word.title(), "category": "happening", "key": "habit"} | by)
                    answer["entities"] = [{"name": word.title(), "type": "person"}]
                else:
                    answer["event"] = by
        spent = Spent(model="plan", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
        last = next(line["text"] for line in reversed(asked) if line["text"] != "ok")
        return ModelAnswer(text=json.dumps(self.answers.get(last, answer | {"facts": facts})), spent=spent)


class World:
    """One store, who is who in it, and what was told. `await World.open(...)`, `await close()`."""

    def __init__(self, path: Path, people: Sequence[str], *, engine: Engine | None = None) -> None:
        self.path = path
        self._engine = engine
        self.clock = Clock()
        self.model = Model()
        self.person_of = {name: name for name in (*people, ADMIN)}
        self.canaries: list[Canary] = []
        #: The messages that their platform knows, oldest first.
        self.posts: list[Post] = []
        #: How many words were ever told.
        self.planted = 0
        #: Accounts of people of whom nothing is to be learned, and chats in which nothing is.
        self.opted_out: set[str] = set()
        self.unlearning: set[str] = set()
        #: How often an admin looked at an account or a chat.
        self.looks: Counter[str] = Counter()
        #: The faults of a reading beside the words that came out.
        self.amiss: list[str] = []
        self._ids = counting_ids()
        self._refs: Counter[str] = Counter()
        self._separations = 0
        self.service: Service

    @classmethod
    async def open(cls, path: Path, people: Sequence[str], *, engine: Engine | None = None) -> World:
        """`engine` opens the database, where it is not that of the other tests."""
        world = cls(path, people, engine=engine)
        await world.start()
        return world

    async def start(self) -> None:
        async def vectors() -> Embedder:
            return Letters()

        async def tokens() -> TokenEmbedder:
            return Letters()

        agent = AgentMemory(model=BackgroundModel(complete=self.model.complete))
        options: dict[str, Any] = {
            "agents": dict.fromkeys(AGENTS, agent),
            "triggers": Triggers(quiet_seconds=3_600),
            "runtime": runtime(self.clock, self._ids),
            "search": SearchSetup(embedders=Embedders(vectors=vectors, tokens=tokens)),
            "keeping": Keeping(admins_read=True),
        }
        if self._engine is not None:
            self.service = await Service.over(await self._engine(self.path), **options)
        else:
            path = await migrated(self.path)
            self.service = await Service.open(path, database_url=address(path), **options)

    async def close(self) -> None:
        await self.service.close(seconds=SECONDS)

    # People's acts ----------------------------------------------------------------------------------------------

    async def tell(self, spot: Spot, kinds: Sequence[str] = LEARNED) -> None:
        """Say something from which `kinds` are learned, where anything is; a "fil" comes with it as a file."""
        message = self.canary("msg", spot)
        words = [self.canary(kind, spot) for kind in kinds]
        attached = [
            Attached(kind="file", name="note.txt", media_type="text/plain", size=9, state="text", text=canary.word)
            for canary in words
            if canary.kind == "fil"
        ]
        self.plan(message, [canary for canary in words if canary.kind != "fil"])
        turn = await self.say(spot, in_words(message, words), attached=attached)
        self.posts.append(Post(spot=spot, ref=turn.said[0].platform_ref or "", canary=message))
        await self.service.learner.flush(turn.context.session.id, "test")
        for canary in words:
            if canary.kind == "sty" and canary in self.canaries:
                await self._wish(turn, canary.word)

    def _short_id(self) -> str:
        return f"m_{self._ids()}"

    async def _wish(self, turn: Turn, word: str) -> None:
        """Keeps a style with a word that its message does not hold, so that whoever reads it has read the style."""
        scope, private = turn.context.scope, turn.context.session.private
        draft = Draft(
            kind="style", owner_id=scope.writes_to, author_id=scope.speaker_id,
            subject_id=scope.speaker_id if private else None, subject="" if private else turn.context.speaker.name,
            agent_id=scope.agent_id, category="instruction", key="style",
            # A mention is an entity, known from a row that stays with its agent.
            value=f"@{word}", importance=5, confidence=0.7, origin="extracted",
            learned_at=turn.said[-1].said_at, local_date="2026-11-21",
        )  # fmt: skip
        source_ids = [message.id for message in turn.said]
        await self.service.database.write(
            lambda tx: keep.keep(tx, scope, draft, source_ids=source_ids, now=self.clock(), new_id=self._short_id)
        )

    async def agree(self, one: Spot, other: Spot) -> None:
        """Somebody says something, and somebody else says more of it: what is learned of that rests on both."""
        first, second = self.canary("msg", one), self.canary("msg", other)
        words = [self.canary(kind, other) for kind in ("sel", "fri")]
        self.model.agreed |= {canary.word for canary in words}
        self.plan(first, [])
        self.plan(second, words)
        for spot, message, learned in ((one, first, []), (other, second, words)):
            turn = await self.say(spot, in_words(message, learned))
            self.posts.append(Post(spot=spot, ref=turn.said[0].platform_ref or "", canary=message))
        await self.service.learner.flush(turn.context.session.id, "test")

    def plan(self, message: Canary, words: Sequence[Canary]) -> None:
        """Have the model find `words` in a message. Where nothing is learned, they are nowhere to be read."""
        self.model.plans[message.word] = tuple(canary.word for canary in words if canary.kind != "sty")
        if self.learns_nothing(message.spot):
            message.current = False
            for canary in words:
                if canary.kind in IN_WORDS:
                    canary.kind, canary.current = "msg", False
                else:
                    self.canaries.remove(canary)

    def learns_nothing(self, spot: Spot) -> bool:
        return spot.person in self.opted_out or chat_of(spot) in self.unlearning

    async def have_kept(self, spot: Spot) -> None:
        """Ask for something to be remembered."""
        word = self.canary("tol", spot).word
        await self.do(spot, lambda edits: edits.remember(word, key="note"))

    async def say_for_agent(self, agent: str) -> None:
        """Keep something for all whom an agent serves."""
        spot = Spot(person=next(iter(self.person_of)), place="private", agent=agent)
        context = await self.context(spot)
        draft = Draft(
            kind="fact", owner_id=context.scope.owners[0], category="decision", key="note",
            value=self.canary("agw", spot).word, importance=5, confidence=1.0, origin="admin",
            learned_at=self.clock(), local_date="2026-11-21",
        )  # fmt: skip
        await self.service.database.write(
            lambda tx: memories.insert(tx, draft, new_id=lambda: f"m_{self._ids()}", now=self.clock())
        )

    async def reflect(self, spot: Spot, parents: Sequence[Canary]) -> None:
        """Derive something from several memories, for the one at `spot`, setting them aside as a job would."""
        context = await self.context(spot)
        made = self.canary("ref", spot)
        made.made_of = tuple(parents)
        draft = Draft(
            kind="fact", owner_id=context.scope.writes_to, category="conversation", key="merged",
            value=made.word, importance=5, confidence=1.0, origin="derived",
            learned_at=self.clock(), local_date="2026-11-21",
        )  # fmt: skip

        def act(tx: Transaction) -> None:
            made_id = memories.insert(tx, draft, new_id=lambda: f"m_{self._ids()}", now=self.clock())
            ids = [row["id"] for parent in parents for row in tx.all(_ROW, (parent.word,))]
            memories.set_parents(tx, made_id, ids)
            for parent_id in ids:
                tx.run("update memories set archived_at = ? where id = ?", (self.clock(), parent_id))

        await self.service.database.write(act)

    async def bring(self, spot: Spot) -> str | None:
        """Bring a file in for the person or group at a spot: a statement, and something the person has said.

        Returns the id of the import; None when nothing may be learned there.
        """
        statement, message = self.canary("imp", spot), self.canary("msg", spot)
        at = self.clock() - 60_000
        material = Material(
            format="notes",
            items=(
                ImportedItem(where="1", kind="fact", category="happening", key="note", value=statement.word, said_at=at),
            ),
            lines=(
                ImportedLine(
                    number=1, role="user", author=Person(platform="console", user_id=spot.person, name=spot.person),
                    name=spot.person, text=message.word, said_at=at, thread=thread_of(spot),
                ),
            ),
        )  # fmt: skip
        # The person's own words are not findable where they want nothing learned.
        message.current = spot.person not in self.opted_out
        place = spot.address[0].session_key
        try:
            brought = await self.service.transfer.bring(
                self.owner(spot), material, session_key=lambda _thread: place, learn=False
            )
        except OptedOut:
            self.canaries.remove(statement)
            self.canaries.remove(message)
            return None
        return brought.short_id

    def owner(self, spot: Spot) -> Owner:
        if spot.place == "private":
            return Owner(kind="person", agent=spot.agent, platform="console", reference=spot.person, name=spot.person)
        return Owner(
            kind="group",
            agent=spot.agent,
            platform="console",
            reference=chat_of(spot),
            thread=thread_of(spot),
            own_threads=chat_of(spot) in OWN_THREADS,
        )

    async def correct(self, canary: Canary, spot: Spot) -> None:
        """Put a new word in the place of one; it stays what it was of and whose it was."""
        _, short_id = await self.row(canary)
        new = self.canary(canary.kind, canary.spot)
        await self.do(spot, lambda edits: edits.correct(short_id, new.word))
        canary.current = False

    async def forget(self, canary: Canary, spot: Spot) -> None:
        """Forget one memory; what it was learned from is not found any more either."""
        memory_id, _ = await self.row(canary)
        await forgotten_alone(self.service, await self.context(spot), memory_id)
        await self.settle()

    async def link(self, one: str, other: str) -> None:
        first, second = [await self.context(at_home(name)) for name in (one, other)]
        await stores.link(self.service, first, second)
        self.linked(one, other)

    async def link_by_code(self, one: str, other: str, code: str) -> str:
        """`one` makes a code, `other` gives it, and both are one person; returns what became of the code."""
        await self.service.privacy.open_code(await self.context(at_home(one)), code)
        return await self.take_code(other, code)

    async def take_code(self, name: str, code: str) -> str:
        """Has `name` give a code; one that fits links them, as if the other side had agreed at once."""
        context, outcomes = await self.context(at_home(name)), []
        made = await self.service.privacy.maker(code)

        def act(linking: Linking) -> list[Note]:
            given = linking.take_code(code)
            outcomes.append(given.outcome)
            if given.outcome == "fits":
                linking.link(given.identity_id)
            return [Note(pieces=[Part(text="done")])]

        await self.service.privacy.act(context, await self.inbox(at_home(name)), act)
        outcome = outcomes[-1]
        if outcome == "fits":
            assert made is not None
            self.linked(made.account.user_id, name)
        return outcome

    def linked(self, one: str, other: str) -> None:
        old, new = self.person_of[other], self.person_of[one]
        self.person_of = {name: new if person == old else person for name, person in self.person_of.items()}
        together = {name for name, person in self.person_of.items() if person == new}
        if together & self.opted_out:
            self.opted_out |= together

    async def unlink(self, name: str, *, by: str | None = None) -> None:
        """Lets an account stand alone again; `by` another account of the same person, or by itself."""
        context = await self.context(at_home(by or name))
        if by is None:
            await stores.unlink(self.service, context)
        else:
            identity_id = (await self.context(at_home(name))).speaker.id

            def act(linking: Linking) -> list[Note]:
                linking.unlink(identity_id)
                return [Note(pieces=[Part(text="done")])]

            await self.service.privacy.act(context, await self.inbox(at_home(by)), act)
        self.unlinked(name)

    def unlinked(self, name: str) -> None:
        # A word made of both sides is nobody's from now on: whoever still reads it reads what must be gone.
        for canary in [c for c in self.canaries if c.kind == "ref"]:
            sides = {one.spot.person == name for one in (canary, *canary.made_of) if one.spot.place == "private"}
            if len(sides) == 2:
                self.canaries.remove(canary)
        self._separations += 1
        self.person_of[name] = f"{name} {self._separations}"

    async def learn_from(self, name: str, learning: bool) -> None:
        await self.service.privacy.learn_from(await self.context(at_home(name)), learning)
        accounts = {one for one, person in self.person_of.items() if person == self.person_of[name]}
        self.opted_out = self.opted_out - accounts if learning else self.opted_out | accounts

    async def learn_here(self, spot: Spot, learning: bool) -> None:
        await self.do(spot, lambda edits: edits.set_learning(learning))
        (self.unlearning.discard if learning else self.unlearning.add)(chat_of(spot))

    async def oversee(
        self, of: Spot, action: LookAction, act: Callable[[Overseer], Sequence[Part]], *, query: str = ""
    ) -> None:
        admin = at_home(ADMIN, agent=of.agent)
        context, reference = await self.context(admin), reference_of(of)
        inbox_id = await self.inbox(admin)
        await self.service.oversight.answer(
            context, inbox_id, reference, action, act, channel=context.session.key.partition(":")[0], query=query
        )
        if await self._is_known(of):
            self.looks[reference] += 1

    async def have_forgotten(self, of: Spot, canary: Canary) -> bool:
        """Has the admin erase a memory of the person or group of a spot; returns whether it was done."""
        admin = at_home(ADMIN, agent=of.agent)
        memory_id, short_id = await self.row(canary)
        asked: list[Question] = []

        def act(overseer: Overseer) -> list[Part]:
            overseer.named(short_id)
            payload = {"memory": memory_id}
            asked.append(overseer.ask("oversight", payload, choices=("yes", "no"), preset="yes"))
            return [Part(text="sure?")]

        await self.oversee(of, "show", act)
        inbox_id = await self.inbox(admin)
        context = await self.context(admin)
        receipt = await self.service.oversight.forget(
            context, inbox_id, asked[-1], reference_of(of), memory_id, channel=context.session.key.partition(":")[0]
        )
        await self.service.mailbox.dismiss(inbox_id)
        if receipt is not None:
            self.looks[reference_of(of)] += 1
        return receipt is not None

    # People's view ----------------------------------------------------------------------------------------------

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

    async def miscounts(self, spot: Spot) -> list[str]:
        """Figures that differ from what is there to be read: how much is remembered, whose accounts, whose looks."""
        context = await self.context(spot)
        listed = await self.service.browse.memories(context, limit=1_000)
        stats, status = await self.service.stats.stats(context), await self.service.stats.status(context)
        kept = await self.service.privacy.kept(context, looks_shown=100_000)
        said = sum(
            count
            for where, count in (await self._findable()).items()
            if self.sees(Canary(kind="msg", word="", spot=where), spot)
        )
        accounts = [one for one, person in self.person_of.items() if person == self.person_of[spot.person]]
        looked_at = accounts if spot.place == "private" else [chat_of(spot)]
        counted = {
            "memories": sum(stats.kinds.values()), "live": status.live, "messages": stats.messages,
            "kept": sum(kept.kinds.values()), "accounts": sorted(one.user_id for one in kept.accounts if one.platform != API),
            "looks": len(kept.looks),
        }  # fmt: skip
        wanted = {
            "memories": len(listed), "live": len(listed), "messages": said,
            "kept": len(listed), "accounts": sorted(accounts) if spot.place == "private" else [],
            "looks": sum(self.looks[one] for one in looked_at),
        }  # fmt: skip
        return [] if counted == wanted else [f"counts: {spot} gets {counted} of {wanted}"]

    async def settle(self) -> None:
        """Take note of which words are there no more, or in a message alone, and which need not be found any more."""

        def act(reader: Reader) -> list[dict[str, bool]]:
            return [_words_of(reader.all(_KEPT)), _words_of(reader.all(_SAID))]

        kept, said = await self.service.database.read(act)
        self.canaries = [canary for canary in self.canaries if canary.word in kept or canary.word in said]
        for canary in self.canaries:
            held = kept if canary.word in kept else said
            canary.current = canary.current and held[canary.word] and not (canary.kind in IN_WORDS and held is said)
            if canary.kind in IN_WORDS and held is said:
                canary.kind = "msg"
        there = {canary.word for canary in self.canaries}
        self.posts = [post for post in self.posts if post.canary.word in there]

    def told(self, word: str) -> str:
        told = next((canary for canary in self.canaries if canary.word == word), None)
        return f"{word}, forgotten" if told is None else f"{word}, told by {told.spot}"

    async def context(self, spot: Spot) -> Context:
        return await self.service.identities.context(*spot.address)

    async def row(self, canary: Canary) -> tuple[int, str]:
        found = await self.service.database.read(lambda reader: reader.one(_ROW, (canary.word,)))
        assert found is not None, canary
        return found["id"], found["short_id"]

    async def rows(self) -> list[tuple[int, str]]:
        """Every memory of everybody, to be asked for by its id."""
        found = await self.service.database.read(lambda reader: reader.all("select id, short_id from memories"))
        return [(row["id"], row["short_id"]) for row in found]

    async def known_words(self) -> set[str]:
        """The words that some memory says, of whomever."""
        return {*await self.service.database.read(lambda reader: _words_of(reader.all(_KEPT)))}

    async def turns_elsewhere(self, turn_ids: Sequence[int], session_id: int) -> list[int]:
        """Those of these turns that belong to other sessions."""
        rows = await self.service.database.read(
            lambda reader: reader.all(
                "select id from turns where session_id <> ? and id in (select value from json_each(?))",
                (session_id, list(turn_ids)),
            )
        )
        return [row["id"] for row in rows]

    def refs(self) -> list[str]:
        """Ids that messages have on the platform, each in several chats."""
        return [str(number) for number in range(1, max(self._refs.values(), default=0) + 1)]

    async def do(self, spot: Spot, act: Callable[[Edits], T]) -> T:
        given: list[T] = []

        def done(edits: Edits) -> Sequence[Part]:
            given.append(act(edits))
            return [Part(text="done")]

        await self.service.requests.answer(await self.context(spot), await self.inbox(spot), done)
        return given[-1]

    async def say(self, spot: Spot, text: str, *, on_record: bool = True, attached: Sequence[Attached] = ()) -> Turn:
        turn = await self.begin(spot, text, on_record=on_record, attached=attached)
        view = await self.service.turns.look(turn, ALL, window_tokens=1_000_000, window_messages=500)
        await self.finish(turn, view)
        return turn

    async def begin(self, spot: Spot, text: str, *, on_record: bool, attached: Sequence[Attached] = ()) -> Turn:
        # A second: a window's snapshot is taken anew only after some minutes of silence.
        self.clock.move(minutes=1 / 60)
        said = Said(
            inbox_id=await self.inbox(spot), text=text, tokens=count_tokens(text), said_at=self.clock(),
            platform_ref=self._ref(spot), reply_to=None, learn=on_record, recall=on_record,
        )  # fmt: skip
        if attached:
            await self.service.mailbox.attach(said.inbox_id, attached)
        return await self.service.turns.begin(*spot.address, [said])

    async def finish(self, turn: Turn, view: TurnMaterial, text: str = "ok") -> None:
        answer = Utterance(role="assistant", text=text, tokens=count_tokens(text), said_at=self.clock())
        await self.service.turns.finish(turn, view, Outcome(pieces=(Part(text=text),), utterances=(answer,)))
        key = turn.context.session.key
        while (row := await self.service.mailbox.take(key)) is not None:
            self._refs[key] += 1
            await self.service.mailbox.was_sent(row, str(self._refs[key]))

    async def inbox(self, spot: Spot) -> int:
        """A row for what somebody says or asks."""
        inbox_id = await self.service.mailbox.receive(
            platform="console", bot_id="local", update_key=self._ids(),
            session_key=spot.address[0].session_key, payload="{}",
        )  # fmt: skip
        assert inbox_id is not None
        return inbox_id

    def canary(self, kind: str, spot: Spot) -> Canary:
        self.planted += 1
        letters = "".join("abcdefghij"[int(digit)] for digit in f"{self.planted:04d}")
        self.canaries.append(Canary(kind=kind, word=f"{kind}q{letters}q", spot=spot))
        return self.canaries[-1]

    def _ref(self, spot: Spot) -> str:
        """The next id of a message in a session: on some platforms they begin anew in every chat."""
        key = spot.address[0].session_key
        self._refs[key] += 1
        return str(self._refs[key])

    async def _findable(self) -> dict[Spot, int]:
        """How many messages can be found, by where they were said."""
        rows = await self.service.database.read(lambda reader: reader.all(_FINDABLE))
        return {
            Spot(
                person=row["user_id"] or ADMIN,
                place="private" if row["user_id"] else "/".join(filter(None, (row["reference"], row["thread"]))),
                agent=AGENTS[0],
            ): row["n"]
            for row in rows
        }

    async def _is_known(self, spot: Spot) -> bool:
        table, column = ("identities", "user_id") if spot.place == "private" else ("chat_aliases", "reference")
        row = await self.service.database.read(
            lambda reader: reader.one(f"select 1 from {table} where {column} = ?", (reference_of(spot),))
        )
        return row is not None


def in_words(message: Canary, learned: Sequence[Canary]) -> str:
    """A message that says what is learned of its author: what is not in their own words is none of theirs."""
    words = [one.word for one in learned if one.kind in IN_WORDS and one.kind != "sel"]
    # Said plainly, what somebody likes is sure, and enters their profile.
    liked = [f"I like {one.word}." for one in learned if one.kind == "sel"]
    return " ".join([f"{' '.join([message.word, *words])}.", *liked]) if liked else " ".join([message.word, *words])


def _words_of(rows: Sequence[Row]) -> dict[str, bool]:
    """The words in texts, with whether one of these has to be found."""
    held: dict[str, bool] = {}
    for row in rows:
        for word in _WORD.findall(row["text"].casefold()):
            held[word] = held.get(word, False) or bool(row["current"])
    return held


def at_home(person: str, *, agent: str = AGENTS[0]) -> Spot:
    return Spot(person=person, place="private", agent=agent)


def chat_of(spot: Spot) -> str:
    """The chat of a spot: a person's own, or a group's with all its threads."""
    return f"private {spot.person}" if spot.place == "private" else spot.place.partition("/")[0]


def thread_of(spot: Spot) -> str | None:
    return spot.place.partition("/")[2] or None


def reference_of(spot: Spot) -> str:
    return spot.person if spot.place == "private" else chat_of(spot)


def house(place: str) -> str:
    return "club" if place == "club/talk" else place


_ROW = "select id, short_id from memories where value in (?1, '@' || ?1) order by kind = 'profile', id"
#: Memories, and the words that people said, with whether they have to be found. A profile repeats other memories until
#: the next night, also one that was set aside since.
_KEPT = (
    "select value as text, kind <> 'profile' and superseded_by is null and archived_at is null and valid_until is null"
    " as current from memories"
)
_SAID = "select text, recall as current from messages where role = 'user' union all select text, 0 from attachments"
_FINDABLE = (
    "select min(i.user_id) as user_id, min(a.reference) as reference, o.thread, count(*) as n from messages m"
    " join owners o on o.id = m.owner_id"
    " left join identities i on i.id = o.identity_id left join chat_aliases a on a.chat_id = o.chat_id"
    " where m.nth is not null and m.recall = 1 and m.erased_at is null group by o.id"
)
