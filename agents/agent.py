"""The loop of one turn: ask the model, run the tools it asks for, ask again, until it answers.

Invariants: each completion is handed to `keep_step` before its tools run; stored completions are replayed instead of
being paid for again; at most `MAX_STEPS` model calls are made; the last of them is offered no tools, so a turn always
ends with words; the traffic holds no call that a vendor would refuse to read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agents import tools
from agents.llm import BadCompletion, ChatMessage, Completion, OnText, Provider, Request, ToolCall
from agents.tools import Tool

MAX_STEPS = 25
#: Between what a model says before its tools and after them.
_BREAK = "\n\n"
#: What vendors take as a tool's name (OpenAI: letters, digits, _ and -, at most 64).
_NO_NAME_LETTER = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
#: A NUL as JSON escapes it, behind backslashes that stand for themselves.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
#: Of a call's arguments history keeps no more characters: the window's tokens are counted without them.
_LONGEST_ARGUMENTS = 16_000
#: Objects and lists inside each other; some servers' parsers stop at 128.
_DEEPEST_ARGUMENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a turn brought: the answer, the tool traffic before it, and every completion paid for in this attempt.

    `shown` is all the person reads: what the model said on the way to its tools, and the answer.
    """

    text: str
    shown: str
    traffic: tuple[ChatMessage, ...]
    completions: tuple[Completion, ...]


async def run(
    provider: Provider,
    request: Request,
    offered: tuple[Tool, ...],
    *,
    stored: Sequence[Completion],
    keep_step: Callable[[int, Completion], Awaitable[None]],
    redact: Callable[[str], str],
    on_text: OnText | None,
) -> Reply:
    """Run the loop from `request` to an answer. Raises `ModelError` when the model can't be brought to one.

    `redact` masks secrets in all that the model writes and tools give, before anything is done with it.
    """
    traffic: list[ChatMessage] = []
    paid: list[Completion] = []
    spoken: list[str] = []
    for n in range(MAX_STEPS):
        if n < len(stored):
            completion = stored[n]
        else:
            specs = tuple(tool.spec for tool in offered) if n < MAX_STEPS - 1 else ()
            completion = await provider.complete(
                replace(request, messages=(*request.messages, *traffic), tools=specs),
                _continued(on_text) if spoken else on_text,
            )
            completion = _masked(completion, redact)
            paid.append(completion)
            await keep_step(n, completion)
        if completion.text.strip():
            spoken.append(completion.text.lstrip() if spoken else completion.text)
        if not completion.tool_calls:
            if not completion.text.strip():
                raise BadCompletion(f"{completion.provider} gave an empty answer. Ask again, or try another model.")
            return Reply(
                text=completion.text, shown=_BREAK.join(spoken), traffic=tuple(traffic), completions=tuple(paid)
            )
        traffic.append(
            ChatMessage(
                role="assistant",
                content=completion.text,
                tool_calls=tuple(_sound(wanted) for wanted in completion.tool_calls),
            )
        )
        for i, wanted in enumerate(completion.tool_calls):
            result = await tools.call(offered, wanted, step=n, index=i)
            traffic.append(ChatMessage(role="tool", content=redact(result), tool_call_id=wanted.id))
    raise BadCompletion(f"{provider.name} asked for tools {MAX_STEPS} times without answering. Ask more narrowly.")


def _masked(completion: Completion, redact: Callable[[str], str]) -> Completion:
    """The completion as it may be stored: no secrets and no NUL, tools' names of letters that every vendor takes."""
    return replace(
        completion,
        text=redact(completion.text),
        tool_calls=tuple(
            ToolCall(
                id=wanted.id,
                name=_NO_NAME_LETTER.sub("_", wanted.name[:_LONGEST_NAME]) or "_",
                arguments=_NUL.sub(r"\1", redact(wanted.arguments)),
            )
            for wanted in completion.tool_calls
        ),
    )


def _sound(wanted: ToolCall) -> ToolCall:
    """The call as it may stand in history: arguments that are no plain JSON object would break every later request."""
    if len(wanted.arguments) <= _LONGEST_ARGUMENTS:
        try:
            parsed = json.loads(wanted.arguments)
            if isinstance(parsed, dict) and _shallow(parsed):
                # What Python reads and others don't: NaN, numbers beyond any float, halves of a character.
                json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
                return wanted
        except (ValueError, RecursionError):
            pass
    return replace(wanted, arguments="{}")


def _shallow(parsed: object) -> bool:
    level = [parsed]
    for _ in range(_DEEPEST_ARGUMENTS):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return True
    return False


def _continued(on_text: OnText | None) -> OnText | None:
    """Show a further step's text behind a break, once it has any."""
    if on_text is None:
        return None
    begun = False

    async def show(text: str) -> None:
        nonlocal begun
        if not begun:
            text = _BREAK + text.lstrip()
            begun = text != _BREAK
            if not begun:
                return
        await on_text(text)

    return show
