"""The world that memories tell of: by month, and by the names in them as a picture and as a list.

Invariant: the picture stays put. The place of a name follows from the name and from the names that were known before
it, so that nothing moves when a name is added.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final
from zoneinfo import ZoneInfo

from gateway.page.memory_pages import PAGE, page_of, pages_of, told
from gateway.page.site import Refused, Response, Visit
from memory.store.entities import Entity
from memory.text.times.clock import local_time

#: Months in the picture of the time line and in its list, and memories shown of each.
_BARS: Final = 24
_MONTHS: Final = 6
_OF_MONTH: Final = 5
#: Names in the picture of names.
_DRAWN: Final = 36
#: Memories that are read for the lines between names, and shown of one name.
_LINKED: Final = 2_000
_NAMED: Final = 60
#: The picture: rings of places, from the middle outwards, in its units.
_WIDTH: Final = 720
_HEIGHT: Final = 440
_RINGS: Final = ((1, 0.0), (7, 0.36), (12, 0.68), (18, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    id: int
    name: str
    type: str
    x: float
    y: float
    size: float


async def timeline(visit: Visit) -> Response:
    """Shows memories by the month since which they hold: a few of each of the newest months, or all of one."""
    visitor, texts, browse = visit.visitor, visit.texts, visit.visitor.store.memory.browse
    page, months = page_of(visit), _months(await browse.dated(visitor.context), texts.timezone)
    alone, until = visit.query.get("month", ""), visit.query.get("until", "")
    alone = alone if alone in months else ""
    numbers = [number for number in months if not until or number <= until]
    bars = [] if alone or not numbers else _back(numbers[0], to=numbers[-1])
    listed = [alone] if alone else numbers[:_MONTHS]
    of_each = slice((page - 1) * PAGE, page * PAGE) if alone else slice(_OF_MONTH)
    chosen = [each for number in listed for each in months[number][of_each]]
    known = {one.id: told(visit, one) for one in await browse.some(visitor.context, chosen)}
    return visit.html(
        "timeline.html",
        months=[(number, [known[each] for each in months[number][of_each] if each in known]) for number in listed],
        bars=bars,
        counts={number: len(months.get(number, ())) for number in [*bars, *listed]},
        names={number: texts.month(_begin(number, texts.timezone)) for number in [*bars, *listed]},
        alone=alone,
        until=until,
        older="" if alone else next(iter(numbers[_MONTHS:]), ""),
        page=page,
        pages=pages_of(len(months[alone])) if alone else 1,
    )


def _begin(number: str, timezone: str) -> int:
    return int(datetime(int(number[:4]), int(number[5:]), 1, tzinfo=ZoneInfo(timezone)).timestamp() * 1000)


def _months(found: list[tuple[int, int]], timezone: str) -> dict[str, list[int]]:
    months: dict[str, list[int]] = {}
    done = 0
    while done < len(found):
        day = local_time(found[done][1], timezone)
        number = f"{day.year:04}-{day.month:02}"
        end = bisect_right(found, -_begin(number, timezone), lo=done + 1, key=lambda one: -one[1])
        months.setdefault(number, []).extend(one for one, _ in found[done:end])
        done = end
    return months


def _back(number: str, *, to: str) -> list[str]:
    last = int(number[:4]) * 12 + int(number[5:]) - 1
    numbers = (f"{month // 12:04}-{month % 12 + 1:02}" for month in range(last, last - _BARS, -1))
    return [each for each in numbers if each >= to]


async def entities(visit: Visit) -> Response:
    visitor = visit.visitor
    known = await visitor.store.memory.browse.entities(visitor.context)
    dots = _placed(known[:_DRAWN])
    lines = _lines(known[:_DRAWN], dots)
    types = [(kind, [one for one in known if one.type == kind]) for kind in dict.fromkeys(one.type for one in known)]
    return visit.html("entities.html", dots=dots, lines=lines, types=types, width=_WIDTH, height=_HEIGHT)


async def entity(visit: Visit) -> Response:
    visitor, number = visit.visitor, visit.path["id"]
    known = await visitor.store.memory.browse.entities(visitor.context)
    named = next((one for one in known if number in map(str, one.ids)), None)
    if named is None:
        raise Refused(404, "page.no_entity")
    memories = await visitor.store.memory.browse.some(visitor.context, named.memory_ids[:_NAMED])
    own = set(named.memory_ids)
    beside = [(other, len(own & set(other.memory_ids))) for other in known if other is not named]
    near = sorted([pair for pair in beside if pair[1]], key=lambda pair: -pair[1])[:12]
    return visit.html("entity.html", found=named, memories=[told(visit, each) for each in memories], near=near)


def _placed(known: list[Entity]) -> list[Dot]:
    places = [
        (
            _WIDTH / 2 + share * (_WIDTH / 2 - 80) * math.cos(turn),
            _HEIGHT / 2 + share * (_HEIGHT / 2 - 44) * math.sin(turn),
        )
        for count, share in _RINGS
        for turn in (2 * math.pi * (n + share / 2) / count for n in range(count))
    ]
    most = max((one.mentions for one in known), default=1)
    free = list(range(len(places)))
    taken: dict[int, int] = {}
    for one in sorted(known, key=lambda each: min(each.ids)):
        digest = int.from_bytes(hashlib.sha256(f"{one.type} {one.name}".encode()).digest()[:4])
        wanted = digest % len(places)
        spot = min(free, key=lambda place: (place - wanted) % len(places))
        free.remove(spot)
        taken[min(one.ids)] = spot
    return [
        Dot(
            id=min(one.ids), name=one.name, type=one.type, size=6 + 14 * math.sqrt(one.mentions / most),
            x=round(places[taken[min(one.ids)]][0], 1), y=round(places[taken[min(one.ids)]][1], 1),
        )
        for one in known
    ]  # fmt: skip


def _lines(known: list[Entity], dots: list[Dot]) -> list[tuple[Dot, Dot, int]]:
    at = {dot.id: dot for dot in dots}
    together: Counter[tuple[int, int]] = Counter()
    of_memory: dict[int, list[int]] = {}
    for one in known:
        for memory_id in one.memory_ids[:_LINKED]:
            of_memory.setdefault(memory_id, []).append(min(one.ids))
    for named in of_memory.values():
        together.update(combinations(sorted(named)[:8], 2))
    return [(at[first], at[second], count) for (first, second), count in together.most_common(120)]
