"""/model: which of an agent's models is asked first in a chat."""

from __future__ import annotations

from pathlib import Path

from agents.spec import ModelSpec
from gateway.pipeline.policy import Rules
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel

TWO = tuple(ModelSpec(provider="openai", model=name) for name in ("large", "small"))


def bench(tmp_path: Path, clock: Clock, *, models: tuple[ModelSpec, ...] = TWO) -> Bench:
    made = Bench(tmp_path, ScriptedModel("One.", "Two.", "Three."), Screen(), clock)
    made.models = models
    return made


async def test_the_chosen_model_is_asked_first_also_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock)
    async with desk.running():
        await desk.say("/model")
        assert "openai/large → openai/small" in desk.screen.texts[-1]
        await desk.say("/model SMALL")
        assert "openai/small is asked first" in desk.screen.texts[-1]
        await desk.say("hello")
    async with desk.running():
        await desk.say("/model")
        assert "openai/small → openai/large" in desk.screen.texts[-1]
        await desk.say("still there?")
        await desk.say("/model default")
        await desk.say("and now?")
    assert [request.model for request in desk.model.requests] == ["openai/small", "openai/small", ""]


async def test_only_the_agents_own_models_can_be_chosen(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock)
    async with desk.running():
        await desk.say("/model huge")
    assert "no model huge" in desk.screen.texts[-1] and "openai/small" in desk.screen.texts[-1]


async def test_in_a_group_only_admins_choose(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock)
    desk.rules = Rules(open_to_all=True, admins=frozenset({"1"}))
    async with desk.running():
        for person, answer in (("2", "Only an admin"), ("1", "From now on openai/small")):
            await desk.say("/model small", person=person, chat="room")
            assert desk.screen.texts[-1].startswith(answer)


async def test_an_agent_without_a_model_says_so(tmp_path: Path, clock: Clock) -> None:
    desk = bench(tmp_path, clock, models=())
    async with desk.running():
        await desk.say("/model")
    assert desk.screen.texts[-1] == "This agent has no language model."
