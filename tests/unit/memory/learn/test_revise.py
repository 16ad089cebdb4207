"""Tests how a message that takes something back changes what is known."""

from __future__ import annotations

import pytest

from memory.chat.turns import Outcome, Said
from memory.mailbox.outbox import Part
from memory.service import Service
from tests.kit.fakes import Clock
from tests.kit.talk import facts, private, received


async def known_after(memory: Service, clock: Clock, *said: str) -> list[tuple[str, str]]:
    """Says messages one after the other, each understood within its turn, and returns what is then known."""
    where, who = private("ada")
    for text in said:
        clock.move(minutes=1)
        inbox_id = await received(memory, where.session_key)
        message = Said(
            inbox_id=inbox_id, text=text, tokens=9, said_at=clock(), platform_ref=text, reply_to=None, learn=True
        )
        turn = await memory.turns.begin(where, who, [message])
        revision = await memory.turns.understood(turn)
        await memory.turns.finish(turn, None, Outcome(pieces=(Part(text="ok"),), learned=revision))
    return await facts(memory, turn.context)


@pytest.mark.parametrize(
    ("told", "correction", "known"),
    [
        ("I live in Leiden", "No, Leyden", ("home", "Leyden")),
        ("My favourite colour is teal", "change my favourite colour to ochre", ("favourite-color", "ochre")),
        ("I am 41 years old", "Sorry, I mistyped, I am 14 years old", ("age", "14")),
        ("My neighbour's name is Tomasz", "it's spelled Thomas", ("neighbour", "Thomas")),
        ("My favourite author is Ali Smith", "I meant Zadie Smith", ("favourite-author", "Zadie Smith")),
        ("I live in Leiden", "it's not Leiden, it's Leyden", ("home", "Leyden")),
        (
            "I'm flying to Oslo on Friday",
            "it's not Oslo, it's Bergen",
            ("plan", "flying to Bergen on Friday (2026-11-27)"),
        ),
    ],
)
async def test_a_correction_takes_the_place_of_what_it_corrects(
    memory: Service, clock: Clock, told: str, correction: str, known: tuple[str, str]
) -> None:
    assert await known_after(memory, clock, told, correction) == [known]


@pytest.mark.parametrize(
    "corrected",
    ["actually the plumber comes at ten", "no, not the blue one", "I mean the other window", "ich meinte Linz"],
)
async def test_a_correction_of_anything_else_changes_nothing(memory: Service, clock: Clock, corrected: str) -> None:
    """It stays a message, which is found; a daughter was renamed by a town before."""
    known = await known_after(
        memory, clock, "My daughter is called Lena", "what a week it was", "so much rain", corrected
    )
    assert known == [("daughter", "Lena")]


@pytest.mark.parametrize(
    ("told", "then", "known"),
    [
        ("I'm flying to Oslo on Friday", "ugh they cancelled it", []),
        ("J'ai rendez-vous chez le dentiste jeudi à 15h.", "c'est annulé", []),
        ("周六和小周去爬山", "取消了", []),
    ],
)
async def test_a_plan_that_is_called_off_ends(
    memory: Service, clock: Clock, told: str, then: str, known: list[tuple[str, str]]
) -> None:
    assert await known_after(memory, clock, "My dog is called Rex", told, then) == [("pet", "dog Rex"), *known]


@pytest.mark.parametrize(
    ("game", "known"),
    [
        ("imagine you're a pirate and I'm your captain", []),
        ("Stell dir vor, du bist ein Pirat", []),
        ("我们来玩个游戏，你来扮海盗", []),
        ("What a day", [("hometown", "Tortuga")]),
    ],
)
async def test_what_is_said_in_a_game_is_no_statement(
    memory: Service, clock: Clock, game: str, known: list[tuple[str, str]]
) -> None:
    """A game goes on over several messages, until somebody ends it."""
    assert await known_after(memory, clock, game, "I was born in Tortuga") == known
    assert await known_after(memory, clock, "ok stop the game", "My name is Ada") == [*known, ("name", "Ada")]


@pytest.mark.parametrize(
    ("told", "over"),
    [
        ("My boyfriend is called Ravi", "Ravi and I split up"),
        ("I love chess", "I don't like chess any more"),
        ("I'm on a paleo diet", "So paleo lasted a week. I'm done with it."),
        ("I'm a nurse at the Korn Clinic", "I quit nursing yesterday"),
        ("I'm engaged to Mirjam", "I called off the engagement"),
    ],
)
async def test_what_is_over_ends(memory: Service, clock: Clock, told: str, over: str) -> None:
    assert await known_after(memory, clock, told) != []
    assert await known_after(memory, clock, over) == []


async def test_an_apology_is_no_correction(memory: Service, clock: Clock) -> None:
    assert await known_after(memory, clock, "I like tea", "sorry, wrong window!") == [("likes", "tea")]


async def test_what_is_over_leaves_the_rest(memory: Service, clock: Clock) -> None:
    known = await known_after(memory, clock, "I like tea", "I have a cat, Moss", "I've stopped drinking tea")
    assert known == [("pet", "cat Moss")]


async def test_nothing_is_learned_from_a_request_to_forget(memory: Service, clock: Clock) -> None:
    assert await known_after(memory, clock, "please forget that I live in Leiden") == []
