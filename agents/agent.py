"""The loop of one turn: ask the model, run the tools it asks for, ask again, until it answers.

Invariants: each completion is handed to `keep_step` before its tools run; stored completions are replayed instead of
being paid for again; at most `MAX_STEPS` model calls are made; the last of them is offered no tools, so a turn always
ends with words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agents import tools
from agents.llm import BadCompletion, ChatMessage, Completion, OnText, Provider, Request
from agents.tools import Tool

MAX_STEPS = 25
#: Between what a model says before its tools and after them.
_BREAK = "\n\n"


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

    `redact` masks secrets in all that the model writes, before anything is done with it.
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
                tool_calls=tuple(tools.sound(wanted) for wanted in completion.tool_calls),
            )
        )
        for i, wanted in enumerate(completion.tool_calls):
            result = await tools.call(offered, wanted, step=n, index=i)
            traffic.append(ChatMessage(role="tool", content=result, tool_call_id=wanted.id))
    raise BadCompletion(f"{provider.name} asked for tools {MAX_STEPS} times without answering. Ask more narrowly.")


def _masked(completion: Completion, redact: Callable[[str], str]) -> Completion:
    return replace(
        completion,
        text=redact(completion.text),
        tool_calls=tuple(replace(wanted, arguments=redact(wanted.arguments)) for wanted in completion.tool_calls),
    )


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
