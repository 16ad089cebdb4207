"""Everybody tells something everywhere, then everybody reads everything everywhere: who sees what (DESIGN 5.2)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.service import Desk, Service
from tests.canaries import AGENTS, PLACES, WAYS, Spot, World

PEOPLE = ("ada", "bob", "cyd", "ada's phone")
SPOTS = [Spot(person=person, place=place, agent=agent) for person in PEOPLE for place in PLACES for agent in AGENTS]

#: Public methods that give out no remembered text, and why.
_OWN = "gives back what its caller has just handed in, or nothing"
NOT_READING = {
    "Service.open": _OWN,
    "Service.close": _OWN,
    "Service.amend": "whether the speaker's own message was changed",
    "Service.retract": "how many messages a platform has deleted",
    "Service.erase_left": "counts",
    "Service.health": "times and sizes",
    "Service.open_question": "ids; to the one who was asked only",
    "Service.context": "ids and settings of the one who speaks",
    "Service.known": "ids and settings of the one who speaks",
    "Service.resume_turn": "a turn's own messages, named by the inbox row that began it",
    "Service.keep_step": _OWN,
    "Service.act": "gives what a Desk method gave, or what it gave the first time, in the same turn",
    "Service.finish_turn": _OWN,
    "Service.record": _OWN,
    "Service.answer": "gives what a Desk method gave",
    "Service.cancel": _OWN,
    "Service.question": "ids; to the one who was asked only (test below)",
    "Service.stats": "counts, compared with what is listed (test below)",
    "Service.status": "counts, those of memory compared with what is listed (test below)",
    "Service.link": _OWN,
    "Service.unlink": _OWN,
    "Desk.remember": "gives back the rows it wrote, of the speaker and place (used throughout)",
    "Desk.start_window": _OWN,
    "Desk.amend": "whether the speaker's own message was changed",
    "Desk.purge_dead": "a count",
    "Desk.ask": _OWN,
    "Desk.settle": _OWN,
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Each person has told something of every kind in every place to every agent."""
    made = await World.open(tmp_path / "remora.db", PEOPLE)
    for spot in SPOTS:
        await made.tell(spot, ("sel", "fri", "sty", "eve") if spot.place == "private" else ("sel", "fri", "sty"))
        await made.have_kept(spot)
    for agent in AGENTS:
        await made.say_for_agent(agent)
    yield made
    await made.close()


async def leaks(world: World) -> list[str]:
    """What somebody reads that is not for them, or misses that is. Searching without the index comes last."""
    faults = await leaks_into_open_windows(world)
    for name in sorted(WAYS, key=lambda name: name == "substring"):
        for spot in SPOTS:
            if name == "words":
                faults += await world.miscounts(spot)
            faults += await world.faults(name, spot)
    return faults


async def leaks_into_open_windows(world: World) -> list[str]:
    """The same for prompts whose snapshot is older than what the others tell."""
    faults = []
    for agent in AGENTS:
        spots = [spot for spot in SPOTS if spot.agent == agent]
        for spot in spots:
            faults += await world.faults("look", spot)
        for spot in spots:
            await world.tell(spot, ("fri", "sty"))
        for spot in spots:
            faults += await world.faults("look", spot)
    return faults


async def test_each_sees_what_is_theirs_and_nothing_else(world: World) -> None:
    """Promise 2, by every way to read there is."""
    assert await leaks(world) == []


async def test_linked_identities_read_each_others_private_memory_and_nobody_elses(world: World) -> None:
    """A link changes who reads, not whose a row is."""
    await world.link("ada", "ada's phone")
    assert await leaks(world) == []


async def test_unlinked_identities_are_strangers_again(world: World) -> None:
    """Whoever hands a phone on must not leave their memory in it: also not what was made of both sides."""
    phone = Spot(person="ada's phone", place="private", agent="assistant")
    await world.link("ada", "ada's phone")
    ours = [c for c in world.canaries if c.kind == "sel" and c.spot.place == "private" and c.spot.agent == "other"]
    mixed = [c for c in ours if c.spot.person in ("ada", "ada's phone")]
    single = next(c for c in world.canaries if c.kind == "fri" and c.spot == phone)
    replaced = next(c for c in mixed if c.spot.person == "ada")
    new = world.canary("sel", phone)
    _, short_id = await world.row(replaced)
    statement = {"about": "self", "key": "likes", "value": new.word, "replaces": short_id, "messages": [1]}
    world.model.answers["I changed my mind."] = {"facts": [statement]}
    await world.service.flush((await world.say(phone, "I changed my mind.")).context, "test")
    replaced.current = False
    await world.reflect(phone, mixed)
    await world.reflect(phone, [single])
    await world.unlink("ada's phone")
    made_of_both, made_of_one = [c for c in world.canaries if c.kind == "ref"]
    world.canaries.remove(made_of_both)  # so that whoever still reads it reads what is nobody's
    single.current = False  # set aside, as what it went into stands
    assert made_of_one.current
    assert await leaks(world) == []


async def test_a_question_is_open_to_the_one_who_was_asked_where_they_were_asked(world: World) -> None:
    """Anybody else's "yes" must not answer it."""
    asked = Spot(person="ada", place="room", agent="assistant")
    await world.do(asked, lambda desk: desk.ask("forget", {"memory": 1}, choices=("yes", "no"), preset="yes"))
    answering = [spot for spot in SPOTS if await world.service.question(*spot.address) is not None]
    assert answering == [Spot(person="ada", place="room", agent=agent) for agent in AGENTS]


def test_every_way_to_read_is_in_the_matrix() -> None:
    """A new method of the façade must say which it is: one that reads, and is tried, or one that can't."""
    public = {
        f"{kind.__name__}.{name}"
        for kind in (Service, Desk)
        for name, _ in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }
    reading = {method for way in WAYS.values() for method in way.methods}
    assert public == reading | set(NOT_READING)
    assert not reading & set(NOT_READING)


async def test_a_statement_of_oneself_leaves_its_group_without_what_others_said(world: World) -> None:
    """The bot's words in a group may hold anybody's; shown as a source in private they would be out."""
    ada = Spot(person="ada", place="club", agent="assistant")
    turn = await world.begin(ada, "What does Bob hide?", on_record=True)
    view = await world.service.look(turn, None, window_tokens=1_000, window_messages=10)
    await world.finish(turn, view, "Bob hides a wombat, and you?")
    world.model.answers["Me too."] = {
        "facts": [{"about": "self", "key": "likes", "value": "hiding", "messages": [2, 3]}]
    }
    await world.service.flush((await world.say(ada, "Me too.")).context, "test")
    in_private = Spot(person="ada", place="private", agent="assistant")
    listed = await world.service.memories(await world.context(in_private), limit=1_000)
    hiding = next(memory.short_id for memory in listed if memory.value == "hiding")
    shown = await world.do(in_private, lambda desk: desk.show(hiding))
    assert [source.text for source in shown.sources] == ["Me too."]
    assert len((await world.do(ada, lambda desk: desk.show(hiding))).sources) == 2


async def test_what_happened_in_a_group_stays_there(world: World) -> None:
    """An event tells of everybody who took part, whoever spoke last."""
    world.model.answers["Poor Bob."] = {"event": {"value": "Bob lost his job and Ada was sorry", "messages": [1, 3]}}
    await world.say(Spot(person="bob", place="club", agent="assistant"), "I lost my job.")
    turn = await world.say(Spot(person="ada", place="club", agent="assistant"), "Poor Bob.")
    await world.service.flush(turn.context, "test")
    in_private = await world.context(Spot(person="ada", place="private", agent="assistant"))
    listed = await world.service.memories(in_private, limit=1_000)
    assert not [memory for memory in listed if "lost his job" in memory.value]


async def test_a_wish_stays_with_the_agent_it_was_told_to(world: World) -> None:
    """Another agent may serve the session by the time it is read for memories."""
    spots = [Spot(person="bob", place="private", agent=agent) for agent in AGENTS]
    world.model.answers["Rhyme!"] = {"styles": [{"key": "style", "value": "in rhymes", "messages": [1]}]}
    await world.say(spots[0], "Rhyme!")
    await world.service.flush(await world.context(spots[1]), "test")
    listed = [await world.service.memories(await world.context(spot), limit=1_000) for spot in spots]
    assert [any(memory.value == "in rhymes" for memory in some) for some in listed] == [True, False]
