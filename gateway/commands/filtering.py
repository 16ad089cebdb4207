"""Filters typed behind commands: the names of groups in every language, and the answers where nothing is found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache

from gateway.commands.call import Call, excerpt
from gateway.commands.catalogue import CATALOGUE
from memory.errors import UnknownFilter, UnreadFilter
from memory.service import LISTED, TIERS, Filters, Group, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart(Group):
    """A part of the memories that a person can ask to list. `name` is its name in buttons."""

    kinds: tuple[Kind, ...]
    name: str


@cache
def part_of(named: str) -> ListedPart | None:
    """Returns the part that people call `named` in any language; None if there is none.

    "tier 2", "facts" and 健康 are such names.
    """
    return _parts().get(named.casefold().replace(" ", ""))


@cache
def _parts() -> Mapping[str, ListedPart]:
    """Returns every part under each of its names."""
    found: dict[str, ListedPart] = {}
    for tier, kinds in TIERS.items():
        found[f"tier{tier}"] = found[f"第{'一二三'[tier - 1]}层"] = ListedPart(name=f"tier{tier}", kinds=kinds)
    for language in CATALOGUE.values():
        for key, text in language.items():
            group, _, name = key.partition(".")
            if group in ("kind", "kinds"):
                kind = next(one for kinds in TIERS.values() for one in kinds if one == name)
                part = ListedPart(name=name, kinds=(kind,))
            elif group == "category":
                part = ListedPart(name=name, kinds=LISTED, category=name)
            else:
                continue
            found |= {name: part, text.casefold().replace(" ", ""): part}
    return found


async def understood(call: Call, text: str) -> Filters | None:
    """Returns the words and filters of a typed text; None after an answer that a filter can't be read."""
    try:
        return await call.memory.browse.filters(call.context, text, group_of=part_of)
    except (UnknownFilter, UnreadFilter) as exc:
        await call.say(call.texts.unread(exc))
        return None


async def none_met(call: Call, asked: Filters, count: Callable[[Filters], Awaitable[int]]) -> str:
    """Returns the answer where nothing meets all filters, with those that alone removed everything."""
    lines = [call.texts("filter.none", filters=excerpt(asked.written))]
    for one in dict.fromkeys(asked.given):
        rest = asked.without(one)
        if (rest.given or rest.words) and (found := await count(rest)):
            lines.append(call.texts("filter.without", filter=excerpt(one.written), count=found))
    return "\n".join(lines)
