"""Answers that do not come to their end: what the person sees, what stays in the conversation, what it cost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.llm import Completion, ModelError, ModelUnavailable, OnText, Request, Usage
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.patience import SECONDS, leap, until

BEGUN = "Once upon a time there was a king"


class Breaking(ScriptedModel):
    """A model whose first answer begins, costs something, and then fails, or never goes on if there is no `error`."""

    def __init__(self, error: ModelError | None, *answers: str) -> None:
        super().__init__(*answers)
        self._error = error
        self._begun = False

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        if self._begun:
            return await super().complete(request, on_text)
        self._begun = True
        if on_text is not None:
            await on_text(BEGUN)
        try:
            if self._error is not None:
                raise self._error
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            assert request.on_aborted is not None
            usage = Usage(input_tokens=100, output_tokens=8, estimated=True)
            request.on_aborted(
                Completion(text=BEGUN, model="model", provider="scripted", usage=usage, finish="aborted")
            )


@pytest.fixture
def screen() -> Screen:
    return Screen(stream=True)


async def test_what_was_shown_of_a_failed_answer_stays_and_is_counted(
    tmp_path: Path, clock: Clock, screen: Screen
) -> None:
    """The person has read it, so the model must know it when they say "go on"."""
    bench = Bench(tmp_path, Breaking(ModelUnavailable("it broke off"), "and so on."), screen, clock)
    async with bench.running():
        await bench.say("a tale, please")
        assert screen.texts[-1].startswith(BEGUN) and "can't be reached" in screen.texts[-1]
        await bench.say("go on")
        rows = await bench.rows("select input_tokens, output_tokens, estimated from usage order by id limit 1")
    assert rows == [(100, 8, 1)]
    earlier = [message.content for message in bench.model.requests[0].messages if message.role == "assistant"]
    assert earlier[-1] == f"{BEGUN} […]"


async def test_what_was_shown_until_the_deadline_stays(tmp_path: Path, clock: Clock, screen: Screen) -> None:
    """A slow machine may get further with the next message."""
    bench = Bench(tmp_path, Breaking(None, "and so on."), screen, clock)
    bench.seconds = SECONDS
    async with bench.running():
        saying = asyncio.create_task(bench.say("a tale, please"))
        await until(lambda: screen.shown)
        leap(SECONDS)
        await saying
        ((kept,),) = await bench.rows("select text from messages where role = 'assistant'")
        assert kept == f"{BEGUN} […]"
        assert await bench.rows("select state, error from turns") == [("failed", "deadline")]
    assert screen.texts[-1].startswith(BEGUN) and f"longer than {SECONDS:g} seconds" in screen.texts[-1]


async def test_a_failed_answer_of_which_nothing_was_shown_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    bench = Bench(tmp_path, Breaking(ModelUnavailable("down")), Screen(), clock)
    async with bench.running():
        await bench.say("a tale, please")
        assert await bench.rows("select count(*) from messages where role = 'assistant'") == [(0,)]


async def test_an_answer_cut_at_its_longest_length_says_so(tmp_path: Path, clock: Clock) -> None:
    """Else half a sentence stands there for no reason."""
    cut = Completion(text="```py\nx = 1", model="model", provider="scripted", finish="length")
    screen = Screen()
    bench = Bench(tmp_path, ScriptedModel(cut), screen, clock)
    async with bench.running():
        await bench.say("code, please")
        ((kept,),) = await bench.rows("select text from messages where role = 'assistant'")
    assert "Cut here" in screen.texts[-1] and "x = 1" in screen.texts[-1]
    assert kept == "```py\nx = 1"
