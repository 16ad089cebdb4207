"""Memories as lists: all of them or a part, in groups; the hits of a search; the pages of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gateway.actions.memory import kinds
from gateway.commands import learning, lines, pages
from gateway.commands.call import Call, excerpt
from gateway.wording.texts import ListedPart, part_of
from memory.browse.browse import LISTED
from memory.recall.recall import shares
from memory.recall.search import Hit
from memory.score import ScorePart
from memory.store.memories import Kind, Memory
from memory.text.words import query_terms
from memory.typed_filters import NO_FILTERS, Filter, Filters

#: Hits a search fetches to divide into pages.
_SEARCHED = 5 * pages.SIZE
#: The mark before a hit that is merely near, and the share of the best hit's word score up to which a hit is near.
_MARK = "≈"
_NEAR = 0.4
#: Parts of a score that measure likeness without the words, and the share of the highest likeness below which a hit
#: is hardly like the query.
_LIKENESS: Final[tuple[ScorePart, ...]] = ("late", "vectors", "named", "date")
_HARDLY = 0.1


async def show_list(call: Call, rest: str) -> None:
    asked = await call.filters(rest)
    if asked is None:
        return
    *words, last = asked.words.split() or [""]
    if last.isascii() and last.isdecimal() and len(last) < 6 and words != ["tier"]:
        named, page = " ".join(words), max(1, int(last))
    else:
        named, page = asked.words, 1
    part = part_of(named) if named else None
    if named and part is None and not asked.given:
        shelf = await call.memory.browse.shelf(call.context, LISTED, limit=1, page=1)
        there = dict.fromkeys(call.texts(f"kinds.{kind}") for kind, _ in shelf.counts)
        there |= dict.fromkeys(call.texts(f"category.{category}") for kind, category in shelf.counts if kind == "fact")
        parts = ", ".join(there) or call.texts("memory.nothing_yet")
        await call.say(call.texts("memory.no_part", part=excerpt(named), parts=parts))
    elif not asked.given:
        await list_page(call, page, part)
    else:
        by_part = () if part is None else (Filter(name="category", value=named, group=part),)
        narrowed = Filters(words=named if part is None else "", given=(*by_part, *asked.given))
        await list_page(call, page, filters=narrowed)


async def list_page(call: Call, page: int, part: ListedPart | None = None, filters: Filters = NO_FILTERS) -> None:
    """Shows one page of the memories here, or of a part of them, or of those that meet filters.

    If there are fewer pages, a button shows the last one, and a person who has typed the number hears how many there
    are.
    """
    texts = call.texts
    category = "" if part is None else part.category
    listed = kinds(filters) if part is None else part.kinds
    shelf = await call.memory.browse.shelf(
        call.context, listed, category=category, filters=filters, limit=pages.SIZE, page=page
    )
    count = max(1, -(-shelf.total // pages.SIZE))
    if page > count and call.inbound.pressed is None:
        await call.say(pages.beyond(call, page, count))
        return
    page = shelf.first // pages.SIZE + 1
    is_whole = part is None and not filters.given
    rows: list[str] = []
    if shelf.memories:
        rows.append(texts("memory.head", shown=shelf.first + len(shelf.memories), total=shelf.total))
    elif filters.given:
        rows.append(await call.none_met(filters, lambda rest: _met(call, rest)))
    else:
        rows.append(texts("memory.none" if part is None else "memory.none_of_these"))
    rows += _grouped(call, shelf.memories, shelf.counts)
    if page == 1 and is_whole:
        rows.append(" · ".join(learning.standing(call, await call.memory.stats.status(call.context))))
    asked = filters.written if filters.given else "" if part is None else part.name
    turns = pages.turning(call, "filter" if filters.given else "list", asked, page=page, pages=count)
    if page < count and not turns:
        rows.append(texts("memory.more", command=f"/memory list {_next(filters, asked, page + 1)}"))
    await pages.show(call, rows, turns)


def _next(filters: Filters, asked: str, page: int) -> str:
    if not filters.given:
        return f"{asked} {page}".strip()
    return replace(filters, words=f"{filters.words} {page}".strip()).written


async def _met(call: Call, asked: Filters) -> int:
    """Returns the number of hits of these words and filters or, without words, of the memories listed."""
    if asked.words:
        return len(await _hits(call, asked))
    return (await call.memory.browse.shelf(call.context, kinds(asked), filters=asked, limit=1, page=1)).total


def _grouped(call: Call, rows: Sequence[Memory], counts: Mapping[tuple[Kind, str], int]) -> list[str]:
    grouped: list[str] = []
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
            grouped.append(head)
        before = head
        grouped.append("  " + lines.memory_line(call, memory))
    return grouped


async def search_page(call: Call, query: str, page: int = 1) -> None:
    asked = await call.filters(query)
    if asked is None:
        return
    if not asked.words:
        await list_page(call, page, filters=asked)
        return
    hits, terms = await _hits(call, asked), query_terms(asked.words)
    if not hits:
        if asked.given:
            answer = await call.none_met(asked, lambda rest: _met(call, rest))
        else:
            answer = call.texts("memory.not_found", query=excerpt(query))
        await pages.show(call, [answer])
        return
    judged = told_apart(hits, terms)
    count = -(-len(judged) // pages.SIZE)
    page = min(page, count)
    some = judged[(page - 1) * pages.SIZE :][: pages.SIZE]
    head = "memory.found_near" if any(near for _, near in some) else "memory.found"
    rows = [call.texts("memory.only_near" if all(near for _, near in judged) else head, mark=_MARK)]
    rows += [f"{_MARK} {_found(call, hit).lstrip()}" if near else _found(call, hit) for hit, near in some]
    turns = pages.turning(call, "search", query, page=page, pages=count)
    if page < count and not turns:
        rows.append(call.texts("memory.more_found"))
    await pages.show(call, rows, turns)


async def _hits(call: Call, asked: Filters) -> list[Hit]:
    hits = await call.memory.browse.search(call.context, asked.words, limit=_SEARCHED, filters=asked)
    terms = query_terms(asked.words)
    # Messages count only if they hold words of the query: to judge other words of the same meaning takes a model.
    return [hit for hit in hits if hit.memory is not None or not hit.parts or shares(hit, terms) > 0]


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
    """Returns a hit's share of a query's words, taken from the parts of its score; rare words weigh most."""
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
    if turn.list == "filter":
        if (asked := await call.filters(turn.asked)) is not None:
            await list_page(call, turn.page, filters=asked)
        return True
    part = part_of(turn.asked) if turn.asked else None
    if turn.asked and part is None:
        return False
    await list_page(call, turn.page, part)
    return True
