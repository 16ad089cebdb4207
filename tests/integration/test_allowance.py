"""Allowances: the tokens and money of a day for a person, a chat and an agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.llm import Completion, Usage
from agents.spec import AllowanceSpec, PortionOfDay
from gateway.pipeline import limits
from gateway.pipeline.policy import Rules
from gateway.wording.texts import Texts
from memory.chat.stats import Spending, Taken
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import NOON, Clock, ScriptedModel
from tests.kit.stores import link

OVER = "from 22 Nov 2026 00:00"


def costly(text: str, *, cost: float | None = None) -> Completion:
    """An answer of 60 tokens."""
    usage = Usage(input_tokens=50, output_tokens=10, cost=cost)
    return Completion(text=text, model="model", provider="scripted", usage=usage)


def bench(tmp_path: Path, clock: Clock, cost: float | None = None, **portions: dict[str, float] | bool) -> Bench:
    made = Bench(tmp_path, ScriptedModel(*(costly(f"Answer {n}.", cost=cost) for n in range(1, 9))), Screen(), clock)
    # Admins and the terminal are exempt, and everybody is at the terminal here.
    made.spec = {"allowance": AllowanceSpec.model_validate({"admins": True} | portions)}
    return made


async def test_who_has_used_up_a_portion_is_told_until_when_and_is_answered_the_next_day(
    tmp_path: Path, clock: Clock
) -> None:
    desk = bench(tmp_path, clock, person={"tokens": 100})
    async with desk.running():
        for text in ("one", "two", "three"):  # the second goes beyond it, and is finished
            await desk.say(text)
        assert [text.split("\n")[0] for text in desk.screen.texts[:2]] == ["Answer 1.", "Answer 2."]
        assert OVER in desk.screen.texts[2] and "Commands still work" in desk.screen.texts[2]
        await desk.say("/usage")
        assert "Your portion of the day: 120 of 100 tokens; a new one from 22 Nov 2026 00:00" in desk.screen.texts[3]
        clock.move(days=0.5)
        await desk.say("four")
        assert desk.screen.texts[4] == "Answer 3."
        # The message in between was kept, and the model reads it.
        assert "three" in str(desk.model.requests[-1].messages)


async def test_each_person_has_a_portion_and_each_chat_too(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock, person={"tokens": 50}, chat={"tokens": 100})
    async with desk.running():
        await desk.say("one", person="ada", chat="room")
        await desk.say("two", person="ada", chat="room")
        assert "Your portion" not in desk.screen.texts[-1] and "your portion" in desk.screen.texts[-1]
        await desk.say("three", person="ben", chat="room")
        assert desk.screen.texts[-1].startswith("Answer 2.")
        await desk.say("four", person="eve", chat="room")
        assert desk.screen.texts[-1].startswith("This chat has used up")
        await desk.say("five", person="eve")
        assert desk.screen.texts[-1].startswith("Answer 3.")


async def test_an_agent_has_a_portion_in_money(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock, cost=0.3, agent={"cost": 0.5})
    async with desk.running():
        for person in ("ada", "ben", "eve"):
            await desk.say("hello", person=person)
        assert desk.screen.texts[-1].startswith("I have used up") and OVER in desk.screen.texts[-1]
        await desk.say("/usage", person="eve")
        assert "cost 0.6000 of 0.5" in desk.screen.texts[-1]


async def test_admins_are_answered_beyond_it_unless_the_file_says_otherwise(tmp_path: Path, clock: Clock) -> None:
    for admins, said in ((False, "Answer 2."), (True, "You have used up")):
        desk = bench(tmp_path / str(admins), clock, person={"tokens": 50}, admins=admins)
        desk.rules = Rules(open_to_all=True)
        (tmp_path / str(admins)).mkdir()
        async with desk.running():
            await desk.say("one")
            await desk.say("two")
            assert desk.screen.texts[-1].startswith(said)


async def test_the_accounts_of_a_person_share_one_portion(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock, person={"tokens": 50})
    async with desk.running():
        await desk.say("one", person="ada")
        await desk.say("two", person="adas-other-phone")
        assert desk.screen.texts[-1].startswith("Answer 2.")
        await link(desk.memory, await desk.context("ada"), await desk.context("adas-other-phone"))
        await desk.say("three", person="adas-other-phone")
        assert desk.screen.texts[-1].startswith("You have used up")


def test_nothing_is_said_of_what_has_no_limit() -> None:
    spending = Spending(
        person=Taken(tokens=9, cost=9), chat=Taken(tokens=9, cost=9), agent=Taken(tokens=9, cost=9), until=NOON
    )
    assert limits.refusal(AllowanceSpec(), spending, Texts("en")) == ""
    assert limits.allowance_lines(AllowanceSpec(), spending, Texts("en")) == []


@given(tokens=st.integers(0, 200), cost=st.floats(0, 2), most=st.integers(1, 100))
@pytest.mark.parametrize("whose", ["person", "chat", "agent"])
def test_a_portion_is_used_up_by_whichever_comes_first(whose: str, tokens: int, cost: float, most: int) -> None:
    taken = Taken(tokens=tokens, cost=cost)
    share = limits.Share(whose=whose, portion=PortionOfDay(tokens=most, cost=1.0), taken=taken)
    assert share.used_up == (tokens >= most or cost >= 1.0)
