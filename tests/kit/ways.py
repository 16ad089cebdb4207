"""Every way to read what a store remembers, as somebody somewhere goes it; and what they get that is not for them.

Invariants: whatever comes out is searched as a whole, by its `repr`, so no field is overlooked; who may see a word is
asked of `World.sees`, which knows nothing of SQL; what a way has to show is the least, so that none is tried in vain.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

import pytest

from memory.browse.browse import TIERS
from memory.chat.edits import Edits
from memory.context import Context
from memory.errors import MemoryFault, NotFound, UnreadFilter
from memory.forgetting.choose import Selection
from memory.jobs.base import Job, Night, Step
from memory.jobs.runner import Jobs
from memory.mailbox.outbox import Part
from memory.oversight import Overseer
from memory.recall.rank import CLASSIC
from memory.scope import Scope
from memory.store import memories, scopes
from memory.store.database import Reader, Transaction
from memory.transfer.homes import Owner
from memory.typed_filters import no_group
from tests.kit import stalls
from tests.kit.canaries import ALL, Canary, Spot, World, house
from tests.kit.programs import as_tools, by_recall, in_private, over_http
from tests.kit.stores import AGENTS, remembering

_WORD = re.compile(r"(?:msg|tol|sel|fri|sty|eve|agw|ref|imp|fil)q[a-j]{4}q")
#: A question that shares no word with anything told, but letters: only vectors answer it.
_BY_LETTERS = "qaaaaq qaabq"
#: So many of the newest shown messages are tried, and so many of all ids and hidden names: each costs a search.
_LATEST = 6
_SOME = 20

Read: TypeAlias = Callable[[World, Spot], Awaitable[object]]
Shows: TypeAlias = Callable[[Canary, Spot], bool]
May: TypeAlias = Callable[[World, Canary, Spot], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The outcome of one way at one spot: its `faults`, how many words it has `shown`, and how many it must not."""

    faults: list[str]
    shown: int
    hidden: int


def _theirs(world: World, canary: Canary, spot: Spot) -> bool:
    """A message of one's own, from which a memory that one sees was learned, is shown as its source.

    When it is edited, the words of its files are with its own.
    """
    return world.sees(canary, spot) or (
        canary.kind in ("msg", "fil") and world.person_of[canary.spot.person] == world.person_of[spot.person]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to read: which methods it goes through, what it gives, and which words come out.

    Canaries that are to be seen by `least` have to be shown where `shows` says so, those by `may` are allowed.
    """

    methods: tuple[str, ...]
    read: Read
    shows: Shows
    may: May = _theirs
    least: May = World.sees


async def tried(world: World, name: str, spot: Spot) -> Tried:
    way = WAYS[name]
    given = await way.read(world, spot)
    found = words_in(given)
    may = {c.word for c in world.canaries if way.may(world, c, spot)}
    must = {c.word for c in world.canaries if c.current and way.least(world, c, spot) and way.shows(c, spot)}
    faults = [f"{name}: {spot} reads {world.told(word)}" for word in sorted(found - may)]
    faults += [f"{name}: {spot} misses {world.told(word)}" for word in sorted(must - found)]
    faults += world.amiss
    world.amiss = []
    return Tried(faults=faults, shown=len(found), hidden=world.planted - len(may))


async def faults(world: World, name: str, spot: Spot) -> list[str]:
    """Returns what a way of reading gives at a spot and must not, or does not give and should."""
    return (await tried(world, name, spot)).faults


@stalls.apart()
def words_in(given: object) -> set[str]:
    """The canaries that something holds, however deep."""
    return {*_WORD.findall(repr(given).casefold())}


async def _searched(world: World, spot: Spot) -> object:
    """Found by the very words, of which a question holds only so many."""
    context = await world.context(spot)
    words = [canary.word for canary in world.canaries]
    return [
        await world.service.browse.search(context, " ".join(words[start : start + 100]), limit=500, weights=CLASSIC)
        for start in range(0, len(words), 100)
    ]


async def _meant(world: World, spot: Spot) -> object:
    await world.service.indexed()
    return await world.service.browse.search(await world.context(spot), _BY_LETTERS, limit=500)


async def _without_index(world: World, spot: Spot) -> object:
    """By substring, as long as the index is broken; the next start makes it again."""
    await world.service.database.write(lambda tx: tx.run("drop table if exists postings"))
    found = await _searched(world, spot)
    await world.close()
    await world.start()
    return found


async def _by_time(world: World, spot: Spot) -> object:
    """All was told on one day; here it is the next, and then that day again."""
    world.clock.move(days=1)
    found = await world.service.browse.search(await world.context(spot), "What happened yesterday?", limit=500)
    world.clock.move(days=-1)
    return found


def _names(world: World, spot: Spot) -> list[str]:
    """All names that are to be seen at a spot, and some of the others."""
    named = [canary for canary in world.canaries if canary.kind in ("fri", "sty")]
    hidden = [canary.word for canary in named if not world.sees(canary, spot)]
    return [*(canary.word for canary in named if world.sees(canary, spot)), *hidden[:: len(hidden) // _SOME + 1]]


async def _by_name(world: World, spot: Spot) -> object:
    context = await world.context(spot)
    return [await world.service.browse.entity(context, name) for name in _names(world, spot)]


async def _listed(world: World, spot: Spot) -> object:
    return await world.service.browse.memories(await world.context(spot), limit=1_000)


async def _looked(world: World, spot: Spot) -> object:
    """Returns what a turn's prompt is made of."""
    await world.service.indexed()
    turn = await world.begin(spot, f"What of {_BY_LETTERS}?", on_record=False)
    view = await world.service.turns.look(turn, ALL, window_tokens=1_000_000, window_messages=500)
    await world.finish(turn, view)
    return view, await world.service.turns.understood(turn)


async def _answered_anew(world: World, spot: Spot) -> object:
    """Returns what the prompt of a turn that is answered once more is made of."""
    context = await world.context(spot)
    inbox_id = await world.inbox(spot)
    turn_id = await world.service.turns.again(context, inbox_id)
    if turn_id is None:
        await world.service.mailbox.dismiss(inbox_id)
        return None
    turn = await world.service.turns.resume(*spot.address, turn_id, [inbox_id])
    view = await world.service.turns.look(turn, ALL, window_tokens=1_000_000, window_messages=500)
    await world.finish(turn, view)
    return turn.said, turn.steps, view


async def _leafed(world: World, spot: Spot) -> object:
    """Every page of the whole list, with what is counted on each."""
    context = await world.context(spot)
    kinds = [kind for kinds in TIERS.values() for kind in kinds]
    shown = [await world.service.browse.shelf(context, kinds, limit=50, page=1)]
    while len(shown) * 50 < shown[0].total:
        shown.append(await world.service.browse.shelf(context, kinds, limit=50, page=len(shown) + 1))
    listed = sum(len(shelf.memories) for shelf in shown)
    if listed != shown[0].total:
        world.amiss.append(f"pages: {spot} is told of {shown[0].total} memories and shown {listed}")
    return shown


async def _filtered(world: World, spot: Spot) -> object:
    """Returns what is listed and found under the names of people's friends, and since ever."""
    context, service = await world.context(spot), world.service
    words = _names(world, spot)
    shown: list[object] = []
    for text in ["since:2000", *(f"about:{word}" for word in words)]:
        filters = await service.browse.filters(context, text, group_of=no_group)
        shown.append(await service.browse.shelf(context, TIERS[2], filters=filters, limit=1_000, page=1))
    try:
        filters = await service.browse.filters(context, "key:likes", group_of=no_group)
    except UnreadFilter as unread:
        shown.append(unread.known)
    else:
        shown.append(await service.browse.shelf(context, TIERS[2], filters=filters, limit=1_000, page=1))
    for word in words[-_LATEST:]:
        filters = await service.browse.filters(context, f"about:{word}", group_of=no_group)
        shown.append(await service.browse.search(context, word, limit=50, filters=filters))
    return shown


async def _completed(world: World, spot: Spot) -> object:
    """Returns what may complete a command, by words and by the beginnings of ids."""
    context, browsing = await world.context(spot), world.service.browse
    words, rows = [canary.word for canary in world.canaries], await world.rows()
    by_id = [
        await browsing.offered(context, short_id, ("q",), changeable=False, limit=1)
        for _, short_id in rows[:: len(rows) // _SOME + 1]
    ]
    return by_id, await browsing.offered(context, "", words, changeable=False, limit=1_000)


async def _alone(world: World, spot: Spot) -> object:
    context = await world.context(spot)
    return [await world.service.browse.one(context, short_id) for _, short_id in await world.rows()]


async def _paged(world: World, spot: Spot) -> object:
    """Everything that pages of the web page read, with the ids of everybody."""
    context, browse = await world.context(spot), world.service.browse
    rows = (await world.rows())[-_SOME:]
    keys = await world.service.database.read(lambda reader: reader.all("select key from sessions"))
    turns = await world.service.database.read(
        lambda reader: reader.ids("select id from turns order by id desc limit 9")
    )
    said = await world.service.database.read(
        lambda reader: reader.all(
            "select m.id, m.platform_ref, k.key from messages m join sessions k on k.id = m.session_id"
            " where m.role = 'user' order by m.id desc limit 30"
        )
    )
    shown = []
    for _, short_id in rows:
        try:
            shown.append(await browse.shown(context, short_id))
        except NotFound:
            continue
    return [
        *shown,
        await browse.some(context, [row_id for row_id, _ in await browse.dated(context)]),
        await browse.held_at(context, date(2999, 1, 1), limit=10_000, page=1),
        await browse.some(context, [row_id for row_id, _ in rows]),
        await browse.entities(context),
        parts := await browse.parts(context, since=0),
        await browse.some(context, [row_id for some in parts.states.values() for row_id in some]),
        await browse.talks(context, platform="telegram", limit=100),
        *[await browse.lines(context, row["key"], limit=100) for row in keys],
        *[await _reread(world, context, row["key"]) for row in keys[-3:]],
        *[await browse.turn_lines(context, turn_id) for turn_id in turns],
        await browse.sent(context, [row["id"] for row in said]),
        *[await browse.sent_one(context, row["key"], row["platform_ref"] or "", nth=0) for row in said],
        *[await browse.said(context, canary.word, limit=100) for canary in world.canaries[-_LATEST:]],
        *[await browse.entered(context, row_id, limit=100) for row_id, _ in rows],
        await browse.keys_of(context, range(1, 1_000)),
    ]


async def _reread(world: World, context: Context, key: str) -> list[object]:
    """Everything that the page reads of one conversation, of whomever it is."""
    browse, mine = world.service.browse, await world.service.browse.lines(context, key, limit=100)
    return [
        mine,
        [await browse.said_as(context, key, line.platform_ref or "") for line in mine[-_SOME:]],
        [await browse.files(context, line) for line in mine[-_SOME:]],
        await browse.versions(context, key),
        (await world.service.transfer.talk(context, key)).page,
    ]


async def _slots(world: World, spot: Spot) -> object:
    return await world.service.browse.profile(await world.context(spot))


async def _why(world: World, spot: Spot) -> object:
    """Returns what entered the last reply, whoever it was given to here."""
    context = await world.context(spot)
    why = await world.service.browse.why(context)
    if why is not None and await world.turns_elsewhere([why.turn_id], context.session.id):
        world.amiss.append(f"why: {spot} is told of turn {why.turn_id}, of another session")
    return why


async def _why_of(world: World, spot: Spot) -> object:
    """Returns what entered the replies with these ids on the platform, where others have messages of the same."""
    context = await world.context(spot)
    given = [await world.service.browse.why(context, message=ref) for ref in world.refs()[-_LATEST:]]
    turns = [why.turn_id for why in given if why is not None]
    elsewhere = await world.turns_elsewhere(turns, context.session.id)
    world.amiss += [f"why of a message: {spot} is told of turn {turn}, of another session" for turn in elsewhere]
    return given


async def _at_hand(world: World, spot: Spot) -> object:
    return await world.service.turns.at_hand(await world.context(spot))


async def _handed_out(world: World, spot: Spot) -> object:
    context, transfer = await world.context(spot), world.service.transfer
    return [await transfer.export(context, transcript=transcript) for transcript in (True, False)]


async def _handed_out_for(world: World, spot: Spot) -> object:
    """The same by the operator, who names the owner."""
    await world.context(spot)
    transfer, owner = world.service.transfer, world.owner(spot)
    return [await transfer.export_of(owner, transcript=transcript) for transcript in (True, False)]


async def _handed_out_of_agent(world: World, spot: Spot) -> object:
    return await world.service.transfer.export_of(Owner(kind="agent", agent=spot.agent), transcript=True)


async def _previewed(world: World, spot: Spot) -> object:
    """Returns what is shown before it would be forgotten, for everything that can be typed."""
    context, forgetting = await world.context(spot), world.service.forgetting
    day = "2026-11-20..2026-11-22"
    some = [canary.word for canary in world.canaries[-_LATEST:]]
    typed = ["here", "all", day, *some, *(f"about:{word}" for word in some if word.startswith("fri"))]
    shown: list[object] = [
        await forgetting.preview(context, words, limit=1_000, may_all=may_all)
        for words in typed
        for may_all in ((False,) if spot.place == "private" else (False, True))
    ]
    for _, short_id in (await world.rows())[-_LATEST:]:
        try:
            shown.append(await forgetting.preview(context, short_id, limit=1_000))
        except MemoryFault as refused:
            shown.append(refused)
    shown += [await forgetting.preview(context, "", limit=1_000, reply_to=ref) for ref in world.refs()[-_LATEST:]]
    shown.append(await forgetting.preview_of(context, Selection(what="me"), limit=1_000))
    return shown


async def _by_id(world: World, spot: Spot) -> object:
    """Every memory there is, asked for by id; what can't be shown can't be touched either."""
    rows = await world.rows()

    def act(edits: Edits) -> list[object]:
        shown: list[object] = []
        for memory_id, short_id in rows:
            try:
                shown.append(edits.show(short_id))
            except NotFound:
                for touch in (
                    edits.may_forget,
                    edits.confirm,
                    lambda short_id: edits.correct(short_id, "taken over"),
                    lambda short_id: edits.pin(short_id, pinned=True),
                    lambda short_id: edits.tag(short_id, ["mine"], tagged=True),
                ):
                    with pytest.raises(NotFound):
                        touch(short_id)
                edits.use([memory_id])
            else:
                try:
                    shown.append(edits.may_forget(short_id))
                except MemoryFault as refused:
                    shown.append(refused)
        return shown

    return await world.do(spot, act)


async def _said_by_id(world: World, spot: Spot) -> object:
    def act(edits: Edits) -> list[object]:
        shown: list[object] = []
        for message_id in range(1, 200):
            with suppress(NotFound):
                shown.append(edits.may_forget_said(message_id))
        return shown

    return await world.do(spot, act)


async def _offered(world: World, spot: Spot) -> object:
    """Returns the known facts that the reading model is shown: those that the messages may be about."""
    before = len(world.model.shown)
    told = [canary.word for canary in world.canaries if world.sees(canary, spot) and _replaceable(canary, spot)]
    for few in batched(told or ["qaaaaq"]):
        turn = await world.say(spot, " ".join(few))
        await world.service.learner.flush(turn.context.session.id, "test")
        # Said again, a word that is forgotten would stand in what was said.
        said = [message.platform_ref for message in turn.said if message.platform_ref is not None]
        await world.service.requests.retract("console", spot.address[0].session_key, said)
    return [material.partition("EARLIER LINES")[0] for material in world.model.shown[before:]]


def batched(words: Sequence[str], size: int = 4) -> list[Sequence[str]]:
    """As few words at once as facts are offered for one message."""
    return [words[start : start + size] for start in range(0, len(words), size)]


async def _overseen(world: World, spot: Spot) -> object:
    """Returns what an admin is shown of this person or group: every page, every id, and what answers to any word."""
    shown: list[object] = []
    rows = await world.rows()
    words = [canary.word for canary in world.canaries]

    def act(overseer: Overseer) -> list[Part]:
        shown.append(overseer.kinds())
        shown.append(overseer.page(limit=1_000, offset=0))
        for _, short_id in rows:
            for look in (overseer.show, overseer.named):
                try:
                    shown.append(look(short_id))
                except NotFound:
                    continue
        return [Part(text="done")]

    def found(overseer: Overseer) -> list[Part]:
        shown.append(overseer.hits(limit=1_000, offset=0))
        return [Part(text="done")]

    await world.oversee(spot, "show", act)
    for start in range(0, len(words), 100):
        await world.oversee(spot, "search", found, query=" ".join(words[start : start + 100]))
    return shown


async def _worked(world: World, spot: Spot) -> object:
    """Returns what a run of the night's work did to everybody's rows, and would do, by the number of each run."""
    context, jobs = await world.context(spot), _marking(world)
    for agent in AGENTS:
        await jobs.run(agent, "mark", f"2026-11-21T{world.clock()} {len(await jobs.newest(limit=10_000))}")
    shown: list[object] = [await jobs.mine(context, limit=_LATEST), await jobs.preview(context, "mark")]
    for progress in await jobs.newest(limit=_LATEST):
        shown.append(await jobs.item(context, progress.run.id))
        try:
            shown.append(await jobs.did(context, progress.run.id))
        except NotFound:
            continue
    return shown


def _marking(world: World) -> Jobs:
    """Jobs of which one leaves a mark on every row that its agent may see."""
    service = world.service

    def steps(reader: Reader, scope: Scope, _night: Night) -> list[Step]:
        rows = memories.current(reader, scope, [kind for kinds in TIERS.values() for kind in kinds], limit=1_000)

        def mark(tx: Transaction, _answer: str) -> dict[str, int]:
            for memory in rows:
                tx.run("update memories set last_reinforced_at = last_reinforced_at + 1 where id = ?", (memory.id,))
            return {"memories": len(rows)}

        return [Step(carry_out=mark)]

    return Jobs(
        service.database,
        table=[
            Job(name="mark", owners=lambda reader, night: scopes.owners_served(reader, night.agent_id), steps=steps)
        ],
        learner=service.learner,
        agents=remembering(service),
        now=world.clock,
        new_id=service.new_id,
    )


def _of_this_place(world: World, canary: Canary, spot: Spot) -> bool:
    """Returns whether an admin may see a word: told in private by this very account, or anywhere in that group."""
    told = canary.spot
    if canary.kind == "agw":
        return False
    if spot.place == "private":
        return told.place == "private" and told.person == spot.person
    return told.place != "private" and told.place.partition("/")[0] == spot.place.partition("/")[0]


def _of_whichever_agent(world: World, canary: Canary, spot: Spot) -> bool:
    """Returns whether a word may go: one of whichever agent, and one's own from whichever group."""
    told = canary.spot
    if canary.kind != "agw" and world.person_of[told.person] == world.person_of[spot.person]:
        return True
    return _theirs(world, canary, Spot(person=spot.person, place=spot.place, agent=told.agent))


def _of_this_agent(world: World, canary: Canary, spot: Spot) -> bool:
    return canary.kind == "agw" and canary.spot.agent == spot.agent


def _asked_by_nobody(world: World, canary: Canary, spot: Spot) -> bool:
    """Returns whether a word may be shown: in a group, where nobody asks, none that its people said elsewhere."""
    return _theirs(world, canary, spot) if spot.place == "private" else world.sees(canary, spot)


def _read_for_memory(world: World, canary: Canary, spot: Spot) -> bool:
    return world.sees(canary, spot) and not world.learns_nothing(spot)


def _their_programs(world: World, canary: Canary, spot: Spot) -> bool:
    """Returns whether a program with a person's key may be told a word: those that the person sees in private."""
    return _theirs(world, canary, in_private(spot))


def _seen_in_private(world: World, canary: Canary, spot: Spot) -> bool:
    return world.sees(canary, in_private(spot))


def _everything(canary: Canary, spot: Spot) -> bool:
    return canary.kind != "fil"


def _learned(canary: Canary, spot: Spot) -> bool:
    return canary.kind not in ("msg", "fil")


def _settled_here(canary: Canary, spot: Spot) -> bool:
    """The rows of this very place; a style only where its agent works."""
    return canary.kind in ("tol", "sel", "fri", "eve") and house(canary.spot.place) == house(spot.place)


def _own_tastes(canary: Canary, spot: Spot) -> bool:
    return canary.kind == "sel" and canary.spot.place == spot.place == "private"


def _friends_here(canary: Canary, spot: Spot) -> bool:
    return canary.kind == "fri"


def _dated(canary: Canary, spot: Spot) -> bool:
    return canary.kind not in ("sty", "fil")


def _replaceable(canary: Canary, spot: Spot) -> bool:
    """The weightiest facts of the very place: there is room for some 40."""
    return canary.kind == "tol" and house(canary.spot.place) == house(spot.place)


def _kept_here(canary: Canary, spot: Spot) -> bool:
    """Returns whether a word goes out with a transcript: none of a file does, nor what an agent holds for everybody."""
    return canary.kind not in ("fil", "agw")


def _settled(canary: Canary, spot: Spot) -> bool:
    """Returns whether an admin must find a word: a style is seen where its agent serves, a message only as a source."""
    return canary.kind in ("tol", "sel", "fri", "eve")


def _agents(canary: Canary, spot: Spot) -> bool:
    return canary.kind == "agw"


def _nothing(canary: Canary, spot: Spot) -> bool:
    return False


WAYS: dict[str, Way] = {
    "words": Way(methods=("Browse.search",), read=_searched, shows=_everything),
    "vectors": Way(methods=("Browse.search", "Service.indexed"), read=_meant, shows=_everything),
    "substring": Way(methods=("Browse.search",), read=_without_index, shows=_everything),
    "time": Way(methods=("Browse.search",), read=_by_time, shows=_dated),
    "entity": Way(methods=("Browse.entity",), read=_by_name, shows=_friends_here),
    "memories": Way(methods=("Browse.memories",), read=_listed, shows=_learned),
    "look": Way(methods=("Turns.look", "Turns.understood", "Turns.begin"), read=_looked, shows=_everything),
    "answered anew": Way(methods=("Turns.again", "Turns.resume"), read=_answered_anew, shows=_nothing),
    "at hand": Way(methods=("Turns.at_hand",), read=_at_hand, shows=_nothing),
    "filtered": Way(methods=("Browse.filters",), read=_filtered, shows=_friends_here),
    "pages": Way(methods=("Browse.shelf",), read=_leafed, shows=_learned),
    "completions": Way(methods=("Browse.offered",), read=_completed, shows=_learned),
    "page": Way(
        methods=(
            "Transfer.talk",
            *(
                f"Browse.{name}"
                for name in (
                    "shown", "dated", "held_at", "some", "entities", "parts", "talks", "lines", "turn_lines",
                    "entered", "said", "keys_of", "sent", "sent_one", "said_as", "files", "versions",
                )
            ),
        ),
        read=_paged,
        shows=_learned,
    ),
    "one": Way(methods=("Browse.one",), read=_alone, shows=_learned),
    "slots": Way(methods=("Browse.profile",), read=_slots, shows=_own_tastes),
    "why": Way(methods=("Browse.why",), read=_why, shows=_nothing),
    "why of a message": Way(methods=("Browse.why",), read=_why_of, shows=_nothing),
    "export": Way(methods=("Transfer.export",), read=_handed_out, shows=_kept_here),
    "export of": Way(
        methods=("Transfer.export_of",), read=_handed_out_for, shows=_kept_here, may=_asked_by_nobody
    ),
    "export of agent": Way(
        methods=("Transfer.export_of",), read=_handed_out_of_agent, shows=_agents,
        may=_of_this_agent, least=_of_this_agent,
    ),
    "preview": Way(
        methods=("Forgetting.preview", "Forgetting.preview_of"),
        read=_previewed, shows=_nothing, may=_of_whichever_agent,
    ),
    "oversight": Way(
        methods=(
            "Oversight.answer", "Overseer.kinds", "Overseer.page", "Overseer.hits", "Overseer.show", "Overseer.named",
        ),
        read=_overseen, shows=_settled,
        may=_of_this_place, least=_of_this_place,
    ),
    "id": Way(
        methods=(
            "Edits.show",
            "Edits.may_forget",
            "Edits.correct",
            "Edits.confirm",
            "Edits.pin",
            "Edits.tag",
            "Edits.use",
        ),
        read=_by_id,
        shows=_learned,
    ),
    "said": Way(methods=("Edits.may_forget_said",), read=_said_by_id, shows=_nothing),
    "night": Way(
        methods=("Jobs.mine", "Jobs.item", "Jobs.did", "Jobs.preview"), read=_worked, shows=_settled_here,
    ),
    "api": Way(
        methods=(), read=over_http, shows=_learned, may=_their_programs, least=_seen_in_private,
    ),
    "tools": Way(
        methods=(), read=as_tools, shows=_learned, may=_their_programs, least=_seen_in_private,
    ),
    "recall of programs": Way(
        methods=(), read=by_recall, shows=_nothing, may=_their_programs,
    ),
    "extraction": Way(
        methods=("Learner.flush", "Learner.soon"), read=_offered, shows=_replaceable, least=_read_for_memory,
    ),
}  # fmt: skip
#: Ways that read by others of these, through a server: each takes long.
PROGRAMS = ("api", "tools", "recall of programs")
