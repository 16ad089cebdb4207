"""Random people do random things, and after each somebody reads: `python -m tests.kit.leaks --operations 10000 --seed 1`.

Some of it is typed, through the whole pipeline (`tests.kit.chatter`); the most is done at the store's own doors.

What people do is a list of operations, each with a number of its own from which all it draws follows; so a list can be
done again, and one that leaks is made shorter until nothing can be left out of it.

Invariants: what a run does follows from its seed alone; who may read what, and what forgetting may touch, is told by
`tests.kit.canaries` and `tests.kit.untouched`, never by the code that is tried.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from memory.errors import Derived, NotCurrent, NotFound, NotYours
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview, Receipt
from memory.forgetting.plan import How
from memory.mailbox.outbox import Part
from tests.kit.canaries import (
    ADMIN,
    LEARNED,
    PLACES,
    Canary,
    Engine,
    Post,
    Spot,
    World,
    at_home,
    chat_of,
    in_words,
    reference_of,
)
from tests.kit.chatter import Talked, chatter
from tests.kit.stores import AGENTS
from tests.kit.untouched import Stock, appeared, damage, miscounted, stock, texts
from tests.kit.ways import WAYS, tried, words_in

PEOPLE: Final = ("ada", "bob", "cyd", "ada's phone")
#: Operations of one run from an empty store: in longer ones most of the time goes into reading what was told at first.
RUN: Final = 50
#: Ways that take long, and how often they are gone for each time another is.
_RARE: Final[Mapping[str, float]] = {"substring": 0.2, "api": 0.5, "tools": 0.3, "recall of programs": 0.3}
#: The part of all operations that is typed.
_TYPED: Final = 0.25
#: Seconds for which a run that leaks is made shorter.
_SHORTENING: Final = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Something that somebody does, and the number that its choices follow from."""

    name: str
    number: int


@dataclass(slots=True, kw_only=True)
class Tally:
    """The figures of what was done and read. `hidden` counts the words that a reading must not bring, each time."""

    operations: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    planted: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A run that leaked, cut off behind that, with what was wrong and what had happened until then."""

    ops: tuple[Op, ...]
    faults: tuple[str, ...]
    history: tuple[str, ...]


class Scene:
    """One world with what happens in it. Each operation returns what was wrong with it."""

    def __init__(self, world: World, tally: Tally) -> None:
        self.world = world
        self.tally = tally
        self.history: list[str] = []
        self.imports: list[str] = []

    async def play(self, op: Op) -> list[str]:
        rng = random.Random(op.number)
        self.tally.operations[op.name] += 1
        faults = await OPERATIONS[op.name](self, rng)
        return faults or await self.read(rng)

    async def read(self, rng: random.Random) -> list[str]:
        """Somebody reads in some way; now and then it is counted."""
        name = rng.choices(list(WAYS), [_RARE.get(way, 1.0) for way in WAYS])[0]
        spot = self.reader(rng)
        if rng.random() < 0.1:
            self.tally.reads["counts"] += 1
            if wrong := await self.world.miscounts(spot):
                return wrong
        result = await tried(self.world, name, spot)
        self.tally.reads[name] += 1
        self.tally.seen[name] += result.shown
        self.tally.hidden += result.hidden
        if result.faults:
            self.note(f"{spot} reads by {name}")
        return result.faults

    def reader(self, rng: random.Random) -> Spot:
        """Where it is read: anywhere, or where something was told, or in one thing beside that."""
        spot, posts = _spot(rng), self.world.posts
        if not posts or rng.random() < 0.4:
            return spot
        told = (posts[-1] if rng.random() < 0.3 else rng.choice(posts)).spot
        match rng.randrange(4):
            case 0:
                return replace(told, person=spot.person)
            case 1:
                return replace(told, place=spot.place)
            case _:
                return told

    def note(self, line: str) -> None:
        self.history.append(line)

    # People's acts ----------------------------------------------------------------------------------------------

    async def tell(self, rng: random.Random) -> list[str]:
        spot = _spot(rng)
        kinds = [kind for kind in (*LEARNED, "fil") if rng.random() < 0.5 and (kind != "eve" or _is_private(spot))]
        before = self.world.planted
        await self.world.tell(spot, kinds)
        told = [canary.word for canary in self.world.canaries if _number(canary) > before]
        self.note(f"{spot} tells {' '.join(told)}")
        return []

    async def agree(self, rng: random.Random) -> list[str]:
        """Two people of a group, or of one person's accounts, or one alone."""
        one = _spot(rng)
        place = rng.choice([place for place in PLACES if place != "private"]) if rng.random() < 0.8 else one.place
        one = replace(one, place=place)
        other = one if _is_private(one) else replace(one, person=rng.choice(PEOPLE))
        before = self.world.planted
        await self.world.agree(one, other)
        told = [canary.word for canary in self.world.canaries if _number(canary) > before]
        self.note(f"{one}, then {other} say {' '.join(told)}")
        return []

    async def have_kept(self, rng: random.Random) -> list[str]:
        spot = _spot(rng)
        await self.world.have_kept(spot)
        self.note(f"{spot} has kept {self.world.canaries[-1].word}")
        return []

    async def say_for_agent(self, rng: random.Random) -> list[str]:
        agent = rng.choice(AGENTS)
        await self.world.say_for_agent(agent)
        self.note(f"{agent} is given {self.world.canaries[-1].word} for everybody")
        return []

    async def reflect(self, rng: random.Random) -> list[str]:
        """Something is derived of several memories that somebody sees in private, or of one group."""
        spot = _spot(rng)
        linked = [name for name in PEOPLE if len(self.selves(at_home(name))) > 1]
        if linked and rng.random() < 0.5:
            spot = at_home(rng.choice(linked))
            for name in sorted(self.selves(spot)):
                await self.world.have_kept(at_home(name))
                self.note(f"{name} has kept {self.world.canaries[-1].word}")
        held = [c for c in self.changeable() if c.kind != "sty" and c.spot.place == spot.place]
        held = [c for c in held if self.world.sees(c, spot)]
        others = [c for c in held if c.spot.person != spot.person]
        parents = rng.sample(held, min(len(held), 2))
        if _is_private(spot) and others:  # of both sides of a link
            first = rng.choice(others)
            parents = [first, *(parent for parent in parents if parent.spot.person != first.spot.person)]
        if parents:
            await self.world.reflect(spot, parents)
            made = self.world.canaries[-1].word
            self.note(f"of {' '.join(c.word for c in parents)} {made} is derived for {spot}")
            await self.world.settle()
        return []

    async def bring(self, rng: random.Random) -> list[str]:
        spot = _spot(rng)
        before = self.world.planted
        short_id = await self.world.bring(spot)
        told = [canary.word for canary in self.world.canaries if _number(canary) > before]
        if short_id is not None:
            self.imports.append(short_id)
        expected = self.world.learns_nothing(spot) if _is_private(spot) else chat_of(spot) in self.world.unlearning
        self.note(f"a file with {' '.join(told) or 'something'} is brought in for {spot}: {short_id}")
        # A private chat where nothing is learned is the chat's own setting; a file is for the person.
        wrong = (short_id is None) != (spot.person in self.world.opted_out if _is_private(spot) else expected)
        return [f"import for {spot}: {short_id}, though learning is {'off' if expected else 'on'}"] if wrong else []

    async def take_out(self, rng: random.Random) -> list[str]:
        if not self.imports:
            return []
        short_id = self.imports.pop(rng.randrange(len(self.imports)))
        await self.world.service.transfer.undo(short_id)
        await self.world.settle()
        self.note(f"the import {short_id} is undone")
        return []

    async def correct(self, rng: random.Random) -> list[str]:
        # A friend's name stays in the row as whom it is about, whatever else is corrected.
        held = [canary for canary in self.changeable() if canary.kind not in ("fri", "ref")]
        if held:
            canary = rng.choice(held)
            await self.world.correct(canary, canary.spot)
            self.note(f"{canary.spot} corrects {canary.word} to {self.world.canaries[-1].word}")
        return []

    async def pin(self, rng: random.Random) -> list[str]:
        held = self.changeable()
        if held:
            canary, pinned = rng.choice(held), rng.random() < 0.7
            _, short_id = await self.world.row(canary)
            await self.world.do(canary.spot, lambda edits: edits.pin(short_id, pinned=pinned))
            if rng.random() < 0.5:
                await self.world.do(canary.spot, lambda edits: edits.confirm(short_id))
            self.note(f"{canary.spot} pins {canary.word}" if pinned else f"{canary.spot} unpins {canary.word}")
        return []

    async def meddle(self, rng: random.Random) -> list[str]:
        """Somebody tries to change what is not theirs, by its very id."""
        held, spot = self.changeable(), _spot(rng)
        if not held:
            return []
        canary = rng.choice(held)
        memory_id, short_id = await self.world.row(canary)
        ours = self.world.person_of[canary.spot.person] == self.world.person_of[spot.person]
        try:
            done = await self.world.do(spot, lambda edits: edits.pin(short_id, pinned=True))
        except (NotFound, NotYours, Derived, NotCurrent):
            return []
        self.note(f"{spot} pins {canary.word} by the id of {done.short_id}")
        by_view = self.world.sees(canary, spot) or (ours and canary.kind == "ref")
        return [] if ours and by_view else [f"{spot} changes {self.world.told(canary.word)} ({memory_id})"]

    async def forget_one(self, rng: random.Random) -> list[str]:
        """As a tool does: one memory, its words stay."""
        held = self.changeable()
        if not held:
            return []
        canary = rng.choice(held)
        await self.world.context(canary.spot)
        before = await self.stock()
        await self.world.forget(canary, canary.spot)
        self.note(f"{canary.spot} has {canary.word} forgotten, and only that")
        await self.world.settle()
        return damage(before, await self.stock(), selves=self.selves(canary.spot))

    async def forget(self, rng: random.Random) -> list[str]:
        """By whatever can be typed, or all of a person; of both kinds; looked at from outside."""
        spot, world = _spot(rng), self.world
        context, may_all = await world.context(spot), not _is_private(spot) and rng.random() < 0.3
        form, typed, aim = self.request(rng, spot)
        preview: ForgetPreview | None = None
        reply_to = None if typed else rng.choice(world.refs() or ["1"])
        try:
            if form == "me":
                preview = await world.service.forgetting.preview_of(context, Selection(what="me"))
            else:
                preview = await world.service.forgetting.preview(context, typed, may_all=may_all, reply_to=reply_to)
        except (NotFound, NotYours, Derived) as refused:
            self.note(f"{spot} may not have {typed} forgotten: {type(refused).__name__}")
            return []
        how: How = rng.choice(("words", "words", "memory"))
        said = f"{spot} has {form} {typed or reply_to} forgotten{' with all of it' if may_all else ''}, {how}"
        if preview is None:
            self.note(f"{said}: nothing")
            return []
        if aim is not None and not preview.is_empty and not self.may_forget(aim, spot, may_all=may_all):
            return [f"{said}: that is {world.told(aim.word)}"]
        before, inbox_id = await self.stock(), await world.inbox(spot)
        receipt = await world.service.forgetting.forget(
            context, inbox_id, None, preview.selection, how, may_all=may_all
        )
        assert receipt is not None
        after = await self.stock()
        self.note(f"{said}: {_told(receipt)}")
        faults = damage(before, after, selves=self.selves(spot), may_all=chat_of(spot) if may_all else "")
        faults += appeared(before, after, selves=self.selves(spot)) + miscounted(before, after, receipt)
        again = await world.service.forgetting.forget(context, inbox_id, None, preview.selection, how, may_all=may_all)
        if again != receipt or (await self.stock()).rows != after.rows:
            faults.append(f"{said}: done twice it is {again} and not {receipt}")
        await world.service.requests.answer(context, inbox_id, lambda _edits: [Part(text="done")])
        if form == "me":
            self.begun_anew(spot)
        faults += await self.forgotten(aim if not preview.is_empty else None, how)
        return faults

    async def forgotten(self, aim: Canary | None, how: How) -> list[str]:
        """Returns what is wrong: `aim` and what was derived of it must not be known; with the words, it is nowhere."""
        world = self.world
        derived = [c for c in world.canaries if aim is not None and aim in c.made_of]
        await world.settle()
        if aim is None or aim.kind in ("msg", "fil"):
            return []
        known = await world.known_words()
        faults = [
            f"{one.word} is still known, though {aim.word} is forgotten" for one in (aim, *derived) if one.word in known
        ]
        if how == "words" and aim.word in (await world.service.database.read(texts)).casefold():
            faults.append(f"{aim.word} still stands in the tables")
        return faults

    async def forget_as_admin(self, rng: random.Random) -> list[str]:
        held = [c for c in self.changeable() if c.kind != "ref"]
        if not held:
            return []
        canary = rng.choice(held)
        of = Spot(person=rng.choice(PEOPLE), place=rng.choice(PLACES), agent=canary.spot.agent)
        if rng.random() < 0.7:
            of = canary.spot
        await self.world.context(at_home(ADMIN, agent=of.agent))
        before = await self.stock()
        try:
            done = await self.world.have_forgotten(of, canary)
        except NotFound:
            self.note(f"the admin finds no {canary.word} in what is of {of}")
            return []
        self.note(f"the admin has {canary.word} of {of} forgotten")
        told = canary.spot
        right = _is_private(of) == _is_private(told) and reference_of(of) == reference_of(told)
        after = await self.stock()
        whole = "" if _is_private(told) else chat_of(told)
        faults = damage(before, after, selves={told.person, ADMIN} if _is_private(told) else {ADMIN}, may_all=whole)
        if done and not right:
            faults.append(f"the admin reaches {self.world.told(canary.word)} through {of}")
        return faults + await self.forgotten(canary if done else None, "words")

    async def edit(self, rng: random.Random) -> list[str]:
        """Edits a message on its platform: it says something else, and teaches something else."""
        if not self.world.posts:
            return []
        post = rng.choice(self.world.posts)
        new, world = world_canary(self.world, "msg", post), self.world
        taught = world_canary(world, "sel", post)
        where, who = post.spot.address
        self.note(f"{post.spot} edits {post.canary.word} to {new.word} {taught.word}")
        findable = post.canary.current
        amended = await world.service.requests.amend(
            where, who, await world.inbox(post.spot), platform_ref=post.ref, text=in_words(new, [taught]),
            compose=lambda text, attached: " ".join([text, *(one.text for one in attached)]),
        )  # fmt: skip
        # A message that nobody learned from then is not learned from now.
        world.model.plans[new.word] = (taught.word,)
        await world.service.learner.flush((await world.context(post.spot)).session.id, "edited")
        new.current = findable
        taught.current = False
        world.posts.append(Post(spot=post.spot, ref=post.ref, canary=new))
        await world.settle()
        if not amended and new in world.canaries:
            return [f"the edit of {post.canary.word} is refused, and made"]
        return [f"{post.canary.word} stands after its edit"] if amended and post.canary in world.canaries else []

    async def delete(self, rng: random.Random) -> list[str]:
        """Deletes a message on its platform; in other chats others have its id."""
        if not self.world.posts:
            return []
        post = rng.choice(self.world.posts)
        before = await self.stock()
        await self.world.service.requests.retract("console", post.spot.address[0].session_key, [post.ref])
        self.note(f"{post.canary.word} of {post.spot} is deleted on its platform")
        after = await self.stock()
        await self.world.settle()
        faults = damage(before, after, selves=self.selves(post.spot))
        return [*faults, *([f"{post.canary.word} is still there"] if post.canary in self.world.canaries else [])]

    async def undo(self, rng: random.Random) -> list[str]:
        spot = _spot(rng)
        await self.world.context(spot)
        before = await self.stock()
        may = {c.word for c in self.world.canaries if self.world.sees(c, spot)}
        may |= {c.word for c in self.world.canaries if c.kind == "sty" and c.spot.person in self.selves(spot)}
        undone = await self.world.do(spot, lambda edits: edits.undo())
        after = await self.stock()
        self.note(f"{spot} takes the last turn back: {' '.join(sorted(words_in(undone))) or undone is not None}")
        await self.world.settle()
        faults = [f"undo: {spot} reads {self.world.told(word)}" for word in sorted(words_in(undone) - may)]
        faults += [f"undo: {word} is still there" for word in words_in(undone) & {c.word for c in self.world.canaries}]
        return faults + damage(before, after, selves=self.selves(spot))

    async def link(self, rng: random.Random) -> list[str]:
        one, other = rng.sample(PEOPLE, 2)
        if rng.random() < 0.3:
            await self.world.link(one, other)
            self.note(f"{one} and {other} are linked")
            return []
        same = self.world.person_of[one] == self.world.person_of[other]
        outcome = await self.world.link_by_code(one, other, f"CODE-{rng.randrange(10_000)}")
        self.note(f"{other} gives the code of {one}: {outcome}")
        allowed = {"linked"} if same else {"fits"}
        return [] if outcome in allowed | {"no_tries_left"} else [f"the code of {one} is {outcome} for {other}"]

    async def guess(self, rng: random.Random) -> list[str]:
        one, other = rng.sample(PEOPLE, 2)
        await self.world.service.privacy.open_code(await self.world.context(at_home(one)), f"RIGHT-{rng.random()}")
        outcome = await self.world.take_code(other, "WRONG-1")
        self.note(f"{other} guesses a code: {outcome}")
        return [] if outcome in ("wrong", "no_tries_left") else [f"a guessed code is {outcome}"]

    async def unlink(self, rng: random.Random) -> list[str]:
        linked = [name for name in PEOPLE if len(self.selves(at_home(name))) > 1]
        name = rng.choice(linked or PEOPLE)
        others = [o for o in PEOPLE if o != name and self.world.person_of[o] == self.world.person_of[name]]
        by = rng.choice(others) if others and rng.random() < 0.5 else None
        await self.world.unlink(name, by=by)
        await self.world.settle()
        self.note(f"{name} is unlinked{'' if by is None else f' by {by}'}")
        # Each side is a stranger to the other from that very moment.
        return [fault for one in (name, *others) for fault in (await tried(self.world, "export", at_home(one))).faults]

    async def opt(self, rng: random.Random) -> list[str]:
        """Out three times in ten, else in again: else soon nothing would be learned of anybody."""
        name, learning = rng.choice(PEOPLE), rng.random() < 0.7
        await self.world.learn_from(name, learning)
        self.note(f"{name} opts {'in' if learning else 'out'}")
        return []

    async def switch(self, rng: random.Random) -> list[str]:
        spot, learning = _spot(rng), rng.random() < 0.7
        await self.world.learn_here(spot, learning)
        self.note(f"{spot} switches learning {'on' if learning else 'off'}")
        return []

    async def start_window(self, rng: random.Random) -> list[str]:
        spot = _spot(rng)
        await self.world.do(spot, lambda edits: edits.start_window())
        self.note(f"{spot} begins a new window")
        return []

    async def wait(self, rng: random.Random) -> list[str]:
        """So long that snapshots are taken anew, and with all of it still on one day."""
        self.world.clock.move(minutes=rng.choice((6, 11)))
        return []

    async def restart(self, rng: random.Random) -> list[str]:
        await self.world.close()
        await self.world.start()
        self.note("the process starts anew")
        return []

    # Shared parts -----------------------------------------------------------------------------------------------

    async def stock(self) -> Stock:
        taken = await self.world.service.database.read(stock)
        self.tally.rows += len(taken.rows)
        return taken

    def selves(self, spot: Spot) -> set[str]:
        person = self.world.person_of[spot.person]
        return {name for name, one in self.world.person_of.items() if one == person}

    def changeable(self) -> list[Canary]:
        """Memories of people that hold now; what is derived in a group is nobody's to change."""
        return [
            c
            for c in self.world.canaries
            if c.current and c.kind not in ("msg", "agw", "fil", "imp") and (c.kind != "ref" or _is_private(c.spot))
        ]

    def request(self, rng: random.Random, spot: Spot) -> tuple[str, str, Canary | None]:
        """Returns a request to forget: its kind, what somebody types, and what it is aimed at."""
        held = [c for c in self.changeable() if c.kind != "ref"]
        theirs = [c for c in held if self.world.sees(c, spot)] if rng.random() < 0.7 else held
        # The words told last hang together with most.
        aim = rng.choice(theirs[-4:] if rng.random() < 0.5 else theirs) if theirs else None
        form = rng.choices(("word", "about", "time", "here", "all", "me", "reply"), (6, 2, 1, 2, 1, 1, 2))[0]
        match form:
            case "word" if aim is not None:
                return form, aim.word, aim
            case "about" if aim is not None and aim.kind == "fri":
                return form, f"about:{aim.word}", aim
            case "time":
                return form, rng.choice(("today", "2026-11-21..2026-11-21", "今天")), None
            case "here" | "all":
                return form, form, None
            case "me":
                return form, "", None
            case _:
                return "reply", "", None

    def may_forget(self, aim: Canary, spot: Spot, *, may_all: bool) -> bool:
        """Whether somebody may have that forgotten where they are: it is their own, or all of the group is theirs."""
        told = aim.spot
        if told.person in self.selves(spot):
            return self.world.sees(aim, spot)
        return may_all and told.place in PLACES and self.world.sees(aim, spot)

    def begun_anew(self, spot: Spot) -> None:
        """All of a person is erased: each account stands alone, and nobody has looked at it."""
        for name in sorted(self.selves(spot)):
            self.world.unlinked(name)
            self.world.looks[name] = 0


Operation: TypeAlias = Callable[[Scene, random.Random], Awaitable[list[str]]]

OPERATIONS: Final[Mapping[str, Operation]] = {
    "tell": Scene.tell, "agree": Scene.agree, "have kept": Scene.have_kept, "say for an agent": Scene.say_for_agent,
    "reflect": Scene.reflect, "bring in": Scene.bring, "take out": Scene.take_out, "correct": Scene.correct,
    "pin": Scene.pin, "meddle": Scene.meddle, "forget one": Scene.forget_one, "forget": Scene.forget,
    "forget as admin": Scene.forget_as_admin, "edit": Scene.edit, "delete": Scene.delete, "undo": Scene.undo,
    "link": Scene.link, "guess": Scene.guess, "unlink": Scene.unlink, "opt out or in": Scene.opt,
    "learning off or on": Scene.switch, "new window": Scene.start_window, "wait": Scene.wait, "restart": Scene.restart,
}  # fmt: skip
#: How often each is done for each time another is; telling goes first, or there would be nothing to take back.
_OFTEN: Final[Mapping[str, float]] = {
    "tell": 8, "have kept": 3, "forget": 3, "correct": 2, "link": 2, "reflect": 2, "agree": 2, "restart": 0.3, "guess": 0.3, "wait": 0.5,
}  # fmt: skip


def world_canary(world: World, kind: str, post: Post) -> Canary:
    """A new word in the place of what a message said."""
    return world.canary(kind, post.spot)


def drawn(rng: random.Random, count: int) -> list[Op]:
    names = list(OPERATIONS)
    chosen = rng.choices(names, [_OFTEN.get(name, 1.0) for name in names], k=count)
    return [Op(name=name, number=rng.getrandbits(48)) for name in chosen]


async def play(ops: Sequence[Op], tally: Tally, *, engine: Engine | None = None) -> Leak | None:
    """Do all of this in an empty store, until something is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        world = await World.open(Path(folder) / "remora.db", PEOPLE, engine=engine)
        scene = Scene(world, tally)
        try:
            for n, op in enumerate(ops, start=1):
                if faults := await scene.play(op):
                    return Leak(ops=tuple(ops[:n]), faults=tuple(faults), history=tuple(scene.history))
        except BaseException as exc:
            exc.add_note("\n".join(scene.history))
            raise
        finally:
            tally.planted += world.planted
            await world.close()
    return None


async def typed(operations: int, seed: int, talked: Talked) -> tuple[list[str], list[str]]:
    """So much typed, in runs of `RUN`, until something is shown that must not be; with what was typed."""
    for start in range(0, operations, RUN):
        faults, history = await chatter(min(RUN, operations - start), seed + start, talked)
        if faults:
            return faults, history
    return [], []


async def search(operations: int, seed: int, tally: Tally, *, engine: Engine | None = None) -> Leak | None:
    """So many operations in runs of `RUN`, until something is wrong."""
    rng = random.Random(seed)
    for start in range(0, operations, RUN):
        leak = await play(drawn(rng, min(RUN, operations - start)), tally, engine=engine)
        if leak is not None:
            return leak
    return None


async def shortened(leak: Leak, *, seconds: float = _SHORTENING) -> Leak:
    """The same kind of leak by as few operations as are found in that time: ever smaller parts are left out."""
    until = time.monotonic() + seconds
    size = len(leak.ops) // 2
    while size:
        start = 0
        while start < len(leak.ops) - 1:
            if time.monotonic() > until:
                return leak
            without = (*leak.ops[:start], *leak.ops[start + size :])
            again = await play(without, Tally())
            if again is not None and _kind(again) == _kind(leak):
                leak = again
            else:
                start += size
        size //= 2
    return leak


def told(leak: Leak) -> str:
    """A leak to be read: what was wrong, and what led there; what concerns the words in question is marked."""
    words = words_in(leak.faults)
    lines = [f"{'>' if words & words_in(line) else ' '} {n:3} {line}" for n, line in enumerate(leak.history, start=1)]
    return "\n".join([*leak.faults, f"after {len(leak.ops)} operations:", *lines])


def figures(tally: Tally) -> str:
    lines = [
        f"{sum(tally.operations.values())} operations: {_counted(tally.operations)}",
        f"{sum(tally.reads.values())} readings: {_counted(tally.reads)}",
        f"{tally.planted} canaries planted, found where they may be {sum(tally.seen.values())} times",
        f"looked for where they must not be {tally.hidden} times",
        f"rows compared around what was forgotten: {tally.rows}",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for memory that reaches somebody it is not for.")
    parser.add_argument("--operations", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found, report = asyncio.run(_all(arguments.operations, arguments.seed))
    sys.stdout.write(f"{report}\n")
    return 1 if found else 0


async def _all(operations: int, seed: int) -> tuple[bool, str]:
    """Does so much; returns whether anything was wrong, and a report."""
    tally, talked, began = Tally(), Talked(), time.monotonic()
    by_typing = int(operations * _TYPED)
    leak = await search(operations - by_typing, seed, tally)
    faults, history = await typed(by_typing, seed, talked)
    seconds = time.monotonic() - began
    lines = [f"seed {seed}, {seconds:.0f} s", figures(tally), spoken(talked)]
    if leak is not None:
        lines += ["A leak.", told(await shortened(leak))]
    if faults:
        lines += ["A leak.", *faults, *history]
    return bool(leak or faults), "\n".join(lines if leak or faults else [*lines, "leaks: 0"])


def spoken(talked: Talked) -> str:
    return "\n".join(
        [
            f"{sum(talked.typed.values())} times typed: {_counted(talked.typed)}",
            f"{talked.planted} canaries told, {talked.shown} messages shown with {talked.seen} of them",
            f"looked for where they must not be {talked.hidden} times",
        ]
    )


def _spot(rng: random.Random) -> Spot:
    place = rng.choice((PLACES[0], *PLACES))
    return Spot(person=rng.choice(PEOPLE), place=place, agent=rng.choice(AGENTS))


def _is_private(spot: Spot) -> bool:
    return spot.place == "private"


def _number(canary: Canary) -> int:
    return int("".join(str("abcdefghij".index(letter)) for letter in canary.word[4:8]))


def _kind(leak: Leak) -> tuple[str, ...]:
    """Returns the sort of fault: in which way something went wrong, and how far."""
    return tuple(sorted({" ".join(fault.split()[:2]) for fault in leak.faults}))[:1]


def _told(receipt: Receipt) -> str:
    return f"{receipt.memories} memories, {receipt.derived} derived, {receipt.messages} messages"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


if __name__ == "__main__":
    sys.exit(main())
