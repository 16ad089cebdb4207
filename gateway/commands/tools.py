"""/tools: the agent's tools, their origins and whether they ask; and the answer to that question.

Invariants: only an admin may accept changed tools, because everybody's words may go to them. What is accepted is what
the admin was shown: the code that they give back stands for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from agents.tools import CHANGED, ForeignTool, JsonObject, ToolError, ToolSource
from gateway.commands.call import Call, by_action, excerpt
from memory.store.questions import Question

#: Characters shown before and after what has changed of a text.
_AROUND: Final = 60


async def tools(call: Call) -> None:
    await by_action(call, {"": ("", _list), "accept": (".+", _accept)})


async def _list(call: Call, _rest: str) -> None:
    if call.agent.offline:
        await call.say(call.texts("tools.model"))
        return
    spec = call.agent.spec
    lines = [call.texts("tools.own", names=", ".join(spec.usable_tools) or "–")]
    if call.agent.skills:
        lines.append(call.texts("tools.skills", names=", ".join(skill.name for skill in call.agent.skills)))
    sources = call.agent.sources
    for source, tools in zip(sources, await asyncio.gather(*(source.tools() for source in sources)), strict=True):
        lines += _told(call, source, tools)
    await call.say("\n".join(lines))


def _told(call: Call, source: ToolSource, found: Sequence[ForeignTool]) -> list[str]:
    texts = call.texts
    lines = [texts("tools.from" if source.where else "tools.here", origin=source.name, where=source.where)]
    for tool in found:
        if tool.off:
            # The reason may name hosts and paths.
            why = texts("tools.off.why", why=excerpt(tool.off)) if call.trusted else ""
            lines.append(texts("tools.off", name=tool.name, why=why))
        else:
            lines.append(texts("tools.reads" if tool.reads else "tools.asks", name=tool.name))
    if call.admin and any(tool.off == CHANGED for tool in found):
        lines.append(texts("tools.accept", origin=source.name))
    return lines


async def _accept(call: Call, typed: str) -> None:
    name, code = [*typed.split(maxsplit=1), ""][:2]
    source = next((each for each in call.agent.sources if each.name == name), None)
    if not (call.admin or call.trusted):
        await call.say(call.texts("tools.admins"))
        return
    if source is None:
        await call.say(call.texts("tools.unknown", name=excerpt(name)))
        return
    try:
        taken = bool(code) and await source.accept(code.strip().lower())
        changes = await source.changes()
    except ToolError as exc:
        await call.say(call.texts("tools.failed", why=excerpt(str(exc))))
        return
    lines = [call.texts("tools.accepted", origin=name)] if taken else [call.texts("tools.stale")] if code else []
    if changes.tools:
        lines.append(call.texts("tools.changed", origin=name))
        lines += [line for was, now in changes.tools for line in _change(call, was, now)]
        lines.append(call.texts("tools.take", origin=name, code=changes.code))
    elif not taken:
        lines.append(call.texts("tools.same", origin=name))
    await call.say("\n".join(lines))


def _change(call: Call, was: ForeignTool, now: ForeignTool) -> list[str]:
    texts, lines = call.texts, list[str]()
    asks = [texts("tools.reads" if tool.reads else "tools.asks", name=tool.name).strip() for tool in (was, now)]
    for part, before, after in (
        ("tools.description", was.description, now.description),
        ("tools.schema", _schema(was), _schema(now)),
        ("tools.asking", *asks),
    ):
        if before != after:
            lines.append(texts(part, name=now.name))
            for key, text in zip(("tools.was", "tools.now"), _differing(before, after), strict=True):
                lines.append(texts(key, text=text.replace("\n", "⏎") or "–"))
    return lines or [texts("tools.unseen", name=now.name)]


def _schema(tool: ForeignTool) -> str:
    assert isinstance(tool.arguments, JsonObject)
    return json.dumps(tool.arguments.parameters, ensure_ascii=False, sort_keys=True)


def _differing(was: str, now: str) -> list[str]:
    head = _alike(was, now)
    tail = _alike(was[head:][::-1], now[head:][::-1])
    start, end = max(0, head - _AROUND), max(0, tail - _AROUND)
    return ["…" * (start > 0) + text[start : len(text) - end] + "…" * (end > 0) for text in (was, now)]


def _alike(this: str, other: str) -> int:
    pairs = enumerate(zip(this, other, strict=False))
    return next((n for n, (mine, theirs) in pairs if mine != theirs), min(len(this), len(other)))


async def answer(call: Call, question: Question, taken: str) -> None:
    """Tells that a call will not be made. A yes does not come here: the model goes on with it."""
    await call.decline(question, taken, "call.kept")
