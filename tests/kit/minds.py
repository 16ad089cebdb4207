"""A model that reads in the background, with prepared answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from memory.learn import entailment
from memory.learn.model import ModelAnswer, ModelRequest
from memory.store.usage import Spent

Answer = str | dict[str, Any] | Exception | Callable[[ModelRequest], Awaitable[str]]


class Model:
    """Gives prepared answers in order, then empty ones, and keeps what it was asked.

    The second question, whether what it claims was said, is answered by `checks` alone: by default in no way of use.
    """

    def __init__(self, *answers: Answer, tokens: int = 100, checks: Answer = "I can't tell.") -> None:
        self.answers = list(answers)
        self.tokens = tokens
        self.checks = checks
        self.asked: list[ModelRequest] = []
        self.checked: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        if is_second(request):
            self.checked.append(request)
            return answered(await prepared(self.checks, request), tokens=self.tokens)
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else {"facts": []}
        return answered(await prepared(answer, request), tokens=self.tokens)


def is_second(request: ModelRequest) -> bool:
    """Returns whether a model is asked if what it has claimed was said."""
    return request.instructions == entailment.INSTRUCTIONS


async def prepared(answer: Answer, request: ModelRequest) -> str | dict[str, Any]:
    """Returns the answer that was prepared, made by its function if it is one; raises it if it is an exception."""
    if isinstance(answer, Exception):
        raise answer
    return await answer(request) if callable(answer) else answer


def answered(answer: str | dict[str, Any], *, tokens: int = 100, written: int = 1) -> ModelAnswer:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    spent = Spent(model="scripted", input_tokens=tokens, output_tokens=written, cached_tokens=0, estimated=False)
    return ModelAnswer(text=text, spent=spent)


def lines(request: ModelRequest, part: str) -> list[dict[str, Any]]:
    """The JSON lines of one part of the material."""
    text = request.material.split(part, 1)[1]
    found: list[dict[str, Any]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("{"):
            found.append(json.loads(line))
        elif not line or line == "none":
            break
    return found
