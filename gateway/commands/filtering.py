"""Filters typed after commands: reads them, and answers if one can't be read or nothing meets them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.commands.call import Call, excerpt
from gateway.wording.parts import part_of
from memory.errors import UnknownFilter, UnreadFilter
from memory.filters import Filters


async def understood(call: Call, text: str) -> Filters | None:
    """Returns the words and filters of a typed text; None after an answer that a filter can't be read."""
    try:
        return await call.memory.browse.filters(call.context, text, group_of=part_of)
    except (UnknownFilter, UnreadFilter) as exc:
        await call.say(call.texts.unread(exc))
        return None


async def none_met(call: Call, asked: Filters, count: Callable[[Filters], Awaitable[int]]) -> str:
    """Returns the answer if nothing meets all filters, with those that alone removed everything."""
    lines = [call.texts("filter.none", filters=excerpt(asked.written))]
    for one in dict.fromkeys(asked.given):
        rest = asked.without(one)
        if (rest.given or rest.words) and (found := await count(rest)):
            lines.append(call.texts("filter.without", filter=excerpt(one.written), count=found))
    return "\n".join(lines)
