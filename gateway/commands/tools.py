"""/tools: the agent's tools, their origins and whether they ask; and the answer to that question.

Invariant: only an admin may accept changed tools, because everybody's words may go to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents.foreign import ForeignTool, ToolSource
from gateway.commands.call import Call, excerpt
from gateway.pipeline.questions import is_alone
from memory.service import Question


async def tools(call: Call) -> None:
    action, _, name = call.arguments.strip().partition(" ")
    if action.lower() == "accept" and name.strip():
        await _accept(call, name.strip())
    elif action:
        await call.say(call.usage_line())
    elif call.agent.offline:
        await call.say(call.texts("tools.model"))
    else:
        await _list(call)


async def _list(call: Call) -> None:
    spec = call.agent.spec
    lines = [call.texts("tools.own", names=", ".join(spec.usable_tools) or "–")]
    if call.agent.skills:
        lines.append(call.texts("tools.skills", names=", ".join(skill.name for skill in call.agent.skills)))
    sources = call.agent.sources
    for source, found in zip(sources, await asyncio.gather(*(one.tools() for one in sources)), strict=True):
        lines += _told(call, source, found)
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
    if call.admin and any(tool.off for tool in found):
        lines.append(texts("tools.accept", origin=source.name))
    return lines


async def _accept(call: Call, name: str) -> None:
    source = next((one for one in call.agent.sources if one.name == name), None)
    if not (call.admin or call.trusted):
        await call.say(call.texts("tools.admins"))
    elif source is None:
        await call.say(call.texts("tools.unknown", name=excerpt(name)))
    elif problem := await source.accept():
        await call.say(call.texts("tools.failed", why=excerpt(problem)))
    else:
        await call.say(call.texts("tools.accepted", origin=source.name))


async def answer(call: Call, question: Question, taken: str) -> None:
    """Tells that a call will not be made. A yes does not come here: the model goes on with it."""
    await call.do(
        lambda edits: call.texts("call.kept" if edits.settle(question, taken) else "answer.over"),
        in_place=is_alone(call.inbound.pressed or ""),
    )
