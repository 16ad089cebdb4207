"""The world that memories tell of: by month, and by the names in them as a picture and as a list.

Invariant: the picture stays put. The place of a name follows from the name, from the oldest memory that relates it, and
from the names that were known before it, so that nothing moves when a name or a memory is added.
"""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from gateway.page.memory_pages import PAGE, page_of, pages_of, told
from gateway.page.site import Refused, Response, Visit
from gateway.wording.texts import CATALOGUE
from memory.store.entities import Entity, normal_form
from memory.store.memories import Memory
from memory.text.times.clock import local_time

#: Months in the picture of the time line and in its list, and memories shown of each.
_BARS: Final = 24
_MONTHS: Final = 6
_OF_MONTH: Final = 5
#: Names in the picture of names.
_DRAWN: Final = 24
#: Memories that are read for the lines between names, for each of them, and shown of one name; lines that are listed.
_LINKED: Final = 30
_NAMED: Final = 60
_LISTED: Final = 80
#: The picture, in its units: around the visitor two rings of places, by their number, their share of the whole, and
#: the turn of the first, so that no line to the outer ring meets a name of the inner one.
_WIDTH: Final = 960
_HEIGHT: Final = 640
_RINGS: Final = ((8, 0.5, 0.0), (16, 1.0, 0.5))
#: The visitor among the names, which have positive ids.
_YOU: Final = 0
#: The longest words between two names that say how they are related, and the most names of a memory that are related.
_WORDS: Final = 24
_OBJECTS: Final = 3
#: What belongs to no relation: the ending of a name, and the end of a sentence.
_POSSESSIVE: Final = re.compile("^['’]s\\b")
_ENDED: Final = re.compile("[.!?。！？]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    id: int
    name: str
    type: str
    x: float
    y: float
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Relates two names, by their ids, with a memory's words; "" if they are only named together."""

    subject: int
    words: str
    object: int


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
    visitor, browse = visit.visitor, visit.visitor.store.memory.browse
    known = await browse.entities(visitor.context)
    drawn = known[:_DRAWN]
    read = {memory_id for item in drawn for memory_id in item.memory_ids[:_LINKED]}
    lines = related(visit, drawn, await browse.some(visitor.context, sorted(read)))
    held = {each for line in lines for each in (line.subject, line.object)}
    dots = {dot.id: dot for dot in placed([item for item in drawn if min(item.ids) in held], lines)}
    kinds = dict.fromkeys(item.type for item in known)
    types = [(kind, [item for item in known if item.type == kind]) for kind in kinds]
    return visit.html(
        "entities.html",
        dots=list(dots.values()),
        lines=_drawn(lines, dots),
        triples=_triples(visit, known, lines),
        types=types,
        width=_WIDTH,
        height=_HEIGHT,
    )


async def entity(visit: Visit) -> Response:
    visitor, number = visit.visitor, visit.path["id"]
    known = await visitor.store.memory.browse.entities(visitor.context)
    named = next((item for item in known if number in map(str, item.ids)), None)
    if named is None:
        raise Refused(404, "page.no_entity")
    memories = await visitor.store.memory.browse.some(visitor.context, named.memory_ids[:_NAMED])
    own = set(named.memory_ids)
    beside = [(other, len(own & set(other.memory_ids))) for other in known if other is not named]
    near = sorted([pair for pair in beside if pair[1]], key=lambda pair: -pair[1])[:12]
    among = [named, *(other for other, _ in near)]
    lines = [line for line in related(visit, among, memories) if min(named.ids) in (line.subject, line.object)]
    return visit.html(
        "entity.html",
        found=named,
        memories=[told(visit, each) for each in memories],
        near=near,
        triples=_triples(visit, known, lines),
    )


def related(visit: Visit, known: list[Entity], memories: list[Memory]) -> list[Line]:
    """Returns the lines between names, and between them and the visitor, by the memories that hold; the oldest first.

    A name that none of them relates is related to the visitor, who told of it.
    """
    by_form = {normal_form(form): item for item in known for form in (item.name, *item.aliases)}
    naming: dict[int, list[Entity]] = {}
    for item in known:
        for memory_id in item.memory_ids:
            naming.setdefault(memory_id, []).append(item)
    lines: dict[tuple[int, int, str], Line] = {}
    told_of: dict[int, None] = {}
    for memory in sorted((each for each in memories if each.live), key=lambda each: each.id):
        subject = by_form.get(normal_form(memory.subject or _other(visit, memory)))
        begin = _YOU if subject is None else min(subject.ids)
        if begin == _YOU and memory.key == "name":
            continue  # the visitor is in the picture already
        named = sorted(
            (item for item in naming.get(memory.id, ()) if item is not subject),
            key=lambda item: (memory.value.find(item.name), min(item.ids)),
        )[:_OBJECTS]
        told_of |= dict.fromkeys(min(item.ids) for item in named)
        if relation := _relation(visit, memory):
            found = [Line(subject=begin, words=relation, object=min(item.ids)) for item in named]
        else:
            found = _chained(memory.value, begin, named)
        for line in found:
            lines.setdefault((line.subject, line.object, line.words), line)
    related = {each for line in lines.values() for each in (line.subject, line.object)}
    return [*lines.values(), *(Line(subject=_YOU, words="", object=each) for each in told_of if each not in related)]


def _other(visit: Visit, memory: Memory) -> str:
    context = visit.visitor.context
    is_own = memory.subject_id in (None, context.speaker.id, *context.scope.selves)
    return "" if is_own else memory.subject_name or ""


def _relation(visit: Visit, memory: Memory) -> str:
    if memory.kind != "fact" or memory.key == "note":
        return ""
    key = f"page.relation.{memory.key}"
    return visit.texts(key) if key in CATALOGUE[visit.texts.language] else memory.key.replace("-", " ")[:_WORDS]


def _chained(text: str, subject: int, named: list[Entity]) -> list[Line]:
    """Returns lines from name to name with the words that stand between them; long ones say nothing in a picture."""
    lines, at = [], 0
    for item in named:
        place = text.find(item.name, at)
        words = _POSSESSIVE.sub("", text[at:place]).strip(" ,;:") if place >= 0 else ""
        words = words if len(words) <= _WORDS and not _ENDED.search(words) else ""
        if words or subject != _YOU:
            lines.append(Line(subject=subject, words=words, object=min(item.ids)))
        subject, at = min(item.ids), max(place, at) + len(item.name)
    return lines


def placed(known: list[Entity], lines: list[Line]) -> list[Dot]:
    """Returns the places of names: those that are first related to the visitor in the inner ring, others beside whom
    they are first related to.
    """
    spots = [
        (ring, 2 * math.pi * (n + begin) / count)
        for ring, (count, _, begin) in enumerate(_RINGS)
        for n in range(count)
    ]  # fmt: skip
    first: dict[int, Line] = {}
    for line in lines:
        for each in (line.subject, line.object):
            first.setdefault(each, line)
    most, free, taken = max((item.mentions for item in known), default=1), list(range(len(spots))), dict[int, int]()
    dots = []
    for item in sorted(known, key=lambda each: min(each.ids)):
        number, line = min(item.ids), first[min(item.ids)]
        other = line.object if line.subject == number else line.subject
        digest = int.from_bytes(hashlib.sha256(f"{item.type} {item.name}".encode()).digest()[:4])
        turn = spots[taken[other]][1] if other in taken else 2 * math.pi * digest / 2**32
        ring = 0 if other == _YOU and line.words else 1
        spot = min(free, key=lambda each: (spots[each][0] != ring, round(1 - math.cos(spots[each][1] - turn), 6), each))
        free.remove(spot)
        taken[number] = spot
        share = _RINGS[spots[spot][0]][1]
        dots.append(
            Dot(
                id=number, name=item.name, type=item.type, size=7 + 9 * math.sqrt(item.mentions / most),
                x=round(_WIDTH / 2 + share * (_WIDTH / 2 - 80) * math.cos(spots[spot][1]), 1),
                y=round(_HEIGHT / 2 + share * (_HEIGHT / 2 - 40) * math.sin(spots[spot][1]), 1),
            )
        )  # fmt: skip
    return dots


def _drawn(lines: list[Line], dots: dict[int, Dot]) -> list[tuple[float, float, float, float, str, float, float]]:
    """Returns one line for each pair of names: both ends, the words on it, and their place, nearer to the object."""
    pairs: dict[tuple[int, int], list[str]] = {}
    for line in lines:
        pairs.setdefault((line.subject, line.object), []).append(line.words)
    drawn = []
    for (subject, target), words in pairs.items():
        x, y = (_WIDTH / 2, _HEIGHT / 2) if subject == _YOU else (dots[subject].x, dots[subject].y)
        end = dots[target]
        share = 0.62 if subject == _YOU else 0.5
        label = ", ".join(dict.fromkeys(each for each in words if each))[:_WORDS]
        drawn.append((x, y, end.x, end.y, label, x + share * (end.x - x), y + share * (end.y - y)))
    return drawn


def _triples(visit: Visit, known: list[Entity], lines: list[Line]) -> list[tuple[int, str, str, int, str]]:
    """Returns lines in words: the subject with its id, how it is related, and to whom."""
    names = {min(item.ids): item.name for item in known} | {_YOU: visit.texts("page.you")}
    together = visit.texts("page.entities.together")
    rows = [
        (line.subject, names[line.subject], line.words or together, line.object, names[line.object]) for line in lines
    ]
    return rows[:_LISTED]
