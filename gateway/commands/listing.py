"""Memories as lists: all of them or a part, in groups; the hits of a search; the pages of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from gateway.commands import learning, lines, pages
from gateway.commands.call import Call, excerpt
from gateway.commands.catalogue import CATALOGUE
from memory.service import LISTED, TIERS, Hit, Kind, Memory, query_terms, shares

#: Hits a search fetches to divide into pages.
_SEARCHED = 5 * pages.SIZE
#: The mark before a hit that is merely near, and the share of the best hit's word score up to which a hit is near.
_MARK = "≈"
_NEAR = 0.4
#: Parts of a score that measure likeness without the words, and the share of the highest likeness below which a hit
#: is hardly like the query.
_LIKENESS = ("late", "vectors", "named", "date")
_HARDLY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart:
    """A part of the memories that a person can ask to list. `name` is its name in buttons."""

    name: str
    kinds: tuple[Kind, ...]
    category: str = ""


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


async def show_list(call: Call, rest: str) -> None:
    """Shows the list that `rest` asks for: `rest` names a part, a page, both or neither."""
    *words, last = rest.split() or [""]
    if last.isascii() and last.isdecimal() and len(last) < 6 and words != ["tier"]:
        named, page = " ".join(words), max(1, int(last))
    else:
        named, page = rest, 1
    part = part_of(named) if named else None
    if named and part is None:
        shelf = await call.memory.browse.shelf(call.context, LISTED, limit=1, page=1)
        there = dict.fromkeys(call.texts(f"kinds.{kind}") for kind, _ in shelf.counts)
        there |= dict.fromkeys(call.texts(f"category.{category}") for kind, category in shelf.counts if kind == "fact")
        parts = ", ".join(there) or call.texts("memory.nothing_yet")
        await call.say(call.texts("memory.no_part", part=excerpt(named), parts=parts))
    else:
        await list_page(call, page, part)


async def list_page(call: Call, page: int, part: ListedPart | None = None) -> None:
    """Shows one page of the memories here, or of a part of them.

    If there are fewer pages, a button shows the last one, and who has typed the number is told how many there are.
    """
    texts = call.texts
    shelf = await call.memory.browse.shelf(
        call.context,
        LISTED if part is None else part.kinds,
        category="" if part is None else part.category,
        limit=pages.SIZE,
        page=page,
    )
    count = max(1, -(-shelf.total // pages.SIZE))
    if page > count and call.inbound.pressed is None:
        await call.say(pages.beyond(call, page, count))
        return
    page = shelf.first // pages.SIZE + 1
    shown: list[str] = []
    if shelf.memories:
        shown.append(texts("memory.head", shown=shelf.first + len(shelf.memories), total=shelf.total))
    else:
        shown.append(texts("memory.none" if part is None else "memory.none_of_these"))
    shown += _grouped(call, shelf.memories, shelf.counts)
    if page == 1 and part is None:
        shown.append(" · ".join(learning.standing(call, await call.memory.stats.status(call.context))))
    asked = "" if part is None else part.name
    turns = pages.turning(call, "list", asked, page=page, pages=count)
    if page < count and not turns:
        shown.append(texts("memory.more", page=f"{asked} {page + 1}".strip()))
    await pages.show(call, shown, turns)


def _grouped(call: Call, rows: Sequence[Memory], counts: Mapping[tuple[Kind, str], int]) -> list[str]:
    """Returns the memories as lines in groups, each under a heading with the total count of its group."""
    shown: list[str] = []
    before = ""
    for memory in rows:
        kind = call.texts(f"kinds.{memory.kind}")
        if memory.kind == "fact":
            count = counts[memory.kind, memory.category]
            head = call.texts(
                "memory.group_of", kind=kind, category=call.texts(f"category.{memory.category}"), count=count
            )
        else:
            count = sum(n for (of_kind, _), n in counts.items() if of_kind == memory.kind)
            head = call.texts("memory.group", kind=kind, count=count)
        if head != before:
            shown.append(head)
        before = head
        shown.append("  " + lines.memory_line(call, memory))
    return shown


async def show_search(call: Call, query: str) -> None:
    await search_page(call, query, 1)


async def search_page(call: Call, query: str, page: int) -> None:
    """Shows one page of the hits for a query."""
    hits = await call.memory.search(call.context, query, limit=_SEARCHED)
    terms = query_terms(query)
    # Messages count only if they hold words of the query: to judge other words of the same meaning takes a model.
    hits = [hit for hit in hits if hit.memory is not None or not hit.parts or shares(hit, terms) > 0]
    if not hits:
        await pages.show(call, [call.texts("memory.not_found", query=excerpt(query))])
        return
    told = told_apart(hits, terms)
    count = -(-len(told) // pages.SIZE)
    page = min(page, count)
    some = told[(page - 1) * pages.SIZE :][: pages.SIZE]
    head = "memory.found_near" if any(near for _, near in some) else "memory.found"
    shown = [call.texts("memory.only_near" if all(near for _, near in told) else head, mark=_MARK)]
    shown += [f"{_MARK} {_found(call, hit).lstrip()}" if near else _found(call, hit) for hit, near in some]
    turns = pages.turning(call, "search", query, page=page, pages=count)
    if page < count and not turns:
        shown.append(call.texts("memory.more_found"))
    await pages.show(call, shown, turns)


def told_apart(hits: Sequence[Hit], terms: Sequence[str]) -> list[tuple[Hit, bool]]:
    """Returns the hits in their order, each with True if it is merely near.

    If some hits hold the words of the query, hits that are hardly like the query are left out. If no hit holds them,
    any of the hits may be what is sought, and all stay.
    """
    held = [_by_words(hit, terms) for hit in hits]
    alike = [sum(hit.parts.get(name, 0.0) for name in _LIKENESS) for hit in hits]
    most, likest = max(held), max(alike)
    return [
        (hit, words <= _NEAR * most)
        for hit, words, like in zip(hits, held, alike, strict=True)
        if words or not most or like >= _HARDLY * likest
    ]


def _by_words(hit: Hit, terms: Sequence[str]) -> float:
    """Returns how much a hit holds of a query's words, taken from the parts of its score; rare words weigh most."""
    # A hit found by its time, or by its letters alone, has no parts: it is exactly what was asked for.
    if not hit.parts:
        return 1.0
    return hit.parts.get("words", 0.0) * (shares(hit, terms) > 0) + hit.parts.get("named", 0.0)


def _found(call: Call, hit: Hit) -> str:
    if hit.memory is not None:
        return lines.memory_line(call, hit.memory)
    assert hit.passage is not None
    return f"  {call.texts.date(hit.passage.message.said_at)}  {call.quote(hit.passage.message)}"


async def press(call: Call, data: str) -> bool:
    """Turns to another page, with only what the person who pressed may read; False if the button is not for a list."""
    turn = pages.turned(data)
    if turn is None:
        return False
    if turn.list == "search":
        await search_page(call, turn.asked, turn.page)
        return True
    part = part_of(turn.asked) if turn.asked else None
    if turn.asked and part is None:
        return False
    await list_page(call, turn.page, part)
    return True
