"""Stand-ins for what the world gives: time, ids, a model. Nothing of Remora itself is faked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import count

from agents.budget import count_tokens
from agents.llm import Completion, OnText, Request, ToolCall
from gateway.app import MASK
from gateway.reading.attachments import Attachments
from memory.runtime import Runtime
from tests.kit.patience import SECONDS

#: 21 November 2026, 12:00 UTC, in milliseconds.
NOON = 1_795_262_400_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


class Clock:
    """A clock that goes on by a millisecond each time it is read, and further when it is moved.

    `at` is what it said last: what was done at one moment has that one, however often the clock is read after.
    """

    def __init__(self, at: int = NOON) -> None:
        self.at = at

    def __call__(self) -> int:
        self.at += 1
        return self.at

    def just_now(self, moment: int) -> bool:
        """Returns whether that was a moment ago: it has not been moved since."""
        return 0 <= self.at - moment < 1_000

    def set(self, at: int) -> None:
        self.at = at - 1

    def move(self, *, days: float = 0, minutes: float = 0) -> None:
        self.at += int(days * DAY + minutes * MINUTE)


def counting_ids() -> Callable[[], str]:
    """Ids that are easy to read in a failing test: aaaaa1, aaaaa2 …"""
    numbers = count(1)
    return lambda: f"a{next(numbers):05d}"


def runtime(clock: Callable[[], int], new_id: Callable[[], str] | None = None) -> Runtime:
    """Returns a runtime with `clock` as its clock and ids that count."""
    twice = bool(os.environ.get("REMORA_TESTS_TWICE"))
    return Runtime(now=clock, new_id=new_id or counting_ids(), count_tokens=count_tokens, twice=twice)


class ScriptedModel:
    """A provider that gives prepared completions in order and keeps the requests it got."""

    name = "scripted/model"

    def __init__(self, *answers: str | Completion | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else "All right."
        if isinstance(answer, Exception):
            raise answer
        completion = says(answer) if isinstance(answer, str) else answer
        if on_text is not None and completion.text:
            await on_text(completion.text)
        return completion

    async def aclose(self) -> None:
        return None


def reader() -> Attachments:
    return Attachments(
        max_bytes=1_000_000, fetch_seconds=SECONDS, text_chars=50_000, transcribe=None, mask=MASK, sleep=asyncio.sleep
    )


def says(text: str) -> Completion:
    return Completion(text=text, model="model", provider="scripted")


def calls(*wanted: tuple[str, str], text: str = "") -> Completion:
    """A completion that asks for tools: (name, JSON arguments) each."""
    tool_calls: Sequence[ToolCall] = [
        ToolCall(id=f"call_{i}", name=name, arguments=arguments) for i, (name, arguments) in enumerate(wanted)
    ]
    return Completion(text=text, model="model", provider="scripted", tool_calls=tuple(tool_calls), finish="tool_calls")
