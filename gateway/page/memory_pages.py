"""The pages of memories: the list, one memory in full and its changes, why an answer knew them, what nights changed.

Invariants: a page shows what its visitor's scope shows, and another person's id is an id that does not exist; anything
forgotten is not shown again. Every change is a command of the visitor, with that command's answer as its receipt.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher
from typing import Any, Final, Literal
from urllib.parse import quote

from channels.base import Place
from gateway.actions.memory import kinds
from gateway.commands.jobs import figures, job_name
from gateway.commands.why import judged, telling_parts
from gateway.config.loading import WEB_PREFIX
from gateway.page.site import Refused, Response, Visit
from gateway.page.visitors import FORMS
from gateway.wording import phrases
from gateway.wording.texts import part_of
from memory.browse.why import Why
from memory.errors import NotFound, UnknownFilter, UnreadFilter
from memory.jobs.runner import What
from memory.jobs.runs import OwnerResult
from memory.recall.recall import shares
from memory.score import FACTORS as SCORE_FACTORS
from memory.store.history import Message
from memory.store.lineage import Source
from memory.store.memories import Memory, tags_seen
from memory.store.recalls import RecalledEntry
from memory.text.words import query_terms
from memory.typed_filters import Filters

#: The most memories of a page, hits of a search, and named answers that a memory entered.
PAGE: Final = 40
_HITS: Final = 60
_ANSWERS: Final = 30
#: Places that the list offers as filters.
_PLACES: Final = 3
#: States of memories that the list shows by themselves.
_STATES: Final[tuple[Literal["pinned", "fading"], ...]] = ("pinned", "fading")
_ID: Final = re.compile("m_[a-z0-9]{1,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemory:
    """A memory as it is shown in a list. `id` is empty if it is only derived from others."""

    id: str
    said: str
    since: str
    until: str
    marks: tuple[str, ...]


def told(visit: Visit, memory: Memory) -> ShownMemory:
    texts, visitor = visit.texts, visit.visitor
    said = " ".join(phrases.tell(memory, visitor.context, language=texts.language).split())
    marks = [
        texts(f"page.mark.{name}")
        for name, is_so in (
            ("pinned", memory.pinned),
            ("unsure", memory.unsure),
            ("derived", memory.origin == "derived"),
        )
        if is_so
    ]
    return ShownMemory(
        id=memory.short_id,
        said=said[:1].upper() + said[1:],
        since=texts.date(memory.valid_from),
        until="" if memory.valid_until is None else texts.date(memory.valid_until),
        marks=(*marks, *(f"#{tag}" for tag in tags_seen(memory, visitor.context.scope))),
    )


async def listed(visit: Visit) -> Response:
    query, day = visit.query.get("q", "").strip()[:400], visit.query.get("on", "").strip()[:20]
    page = page_of(visit)
    state: Literal["", "pinned", "fading"] = next((one for one in _STATES if one == visit.query.get("show")), "")
    none: dict[str, Any] = {"pages": 1, "groups": [], "quotes": [], "why": "", "chips": [], "total": 0, "page": page}
    hits = await (_then(visit, day, page) if day else _found(visit, query, page, state))
    return visit.html("memory.html", query=query, state=state, day=day, **(none | hits))


def page_of(visit: Visit) -> int:
    return int(visit.query["page"]) if re.fullmatch("[1-9][0-9]{0,4}", visit.query.get("page", "")) else 1


def pages_of(total: int) -> int:
    return max(1, -(-total // PAGE))


async def _then(visit: Visit, day: str, page: int) -> dict[str, Any]:
    try:
        asked = date.fromisoformat(day)
    except ValueError:
        return {"why": visit.texts("page.bad_day")}
    visitor = visit.visitor
    held, total = await visitor.store.memory.browse.held_at(visitor.context, asked, limit=PAGE, page=page)
    return {"groups": _grouped(visit, held), "total": total, "pages": pages_of(total)}


async def _found(visit: Visit, query: str, page: int, state: Literal["", "pinned", "fading"]) -> dict[str, Any]:
    visitor, browse = visit.visitor, visit.visitor.store.memory.browse
    try:
        filters = await browse.filters(visitor.context, query, group_of=part_of)
    except (UnknownFilter, UnreadFilter) as exc:
        return {"why": visit.texts.unread(exc)}
    if filters.words and not state:
        return await _searched(visit, filters)
    shelf = await browse.shelf(visitor.context, kinds(filters), filters=filters, state=state, limit=PAGE, page=page)
    bare = not (query or state)
    return {
        "groups": _grouped(visit, shelf.memories),
        "total": shelf.total,
        "page": shelf.first // PAGE + 1,
        "pages": pages_of(shelf.total),
        "chips": await _chips(visit, {category for kind, category in shelf.counts if kind == "fact"}) if bare else [],
    }


async def _searched(visit: Visit, filters: Filters) -> dict[str, Any]:
    visitor = visit.visitor
    hits = await visitor.store.memory.browse.search(visitor.context, filters.words, limit=_HITS, filters=filters)
    terms = query_terms(filters.words)
    memories = [hit.memory for hit in hits if hit.memory is not None]
    messages = [hit.passage.message for hit in hits if hit.passage is not None and shares(hit, terms) > 0]
    language = visit.texts.language
    quotes = [
        (visit.texts.date(one.said_at), phrases.quote(one, visitor.context, one.text[:300], language=language))
        for one in messages
    ]
    groups = [("", [told(visit, memory) for memory in memories])] if memories else []
    return {"groups": groups, "quotes": quotes, "total": len(memories) + len(messages)}


def _grouped(visit: Visit, memories: tuple[Memory, ...] | list[Memory]) -> list[tuple[str, list[ShownMemory]]]:
    groups: dict[str, list[ShownMemory]] = {}
    for memory in memories:
        head = visit.texts(f"kinds.{memory.kind}")
        if memory.kind == "fact":
            head = visit.texts(f"category.{memory.category}")
        groups.setdefault(head[:1].upper() + head[1:], []).append(told(visit, memory))
    return list(groups.items())


async def _chips(visit: Visit, categories: set[str]) -> list[tuple[str, str]]:
    texts, visitor = visit.texts, visit.visitor
    states = [(texts(f"page.memory.{name}"), f"show={name}") for name in _STATES]
    facts = [(texts(f"category.{name}"), f"q=category:{name}") for name in sorted(categories)]
    kinds = [(texts(f"kinds.{kind}"), f"q=category:{kind}") for kind in ("event", "reflection", "style")]
    known = await visitor.store.memory.browse.places(visitor.context, limit=_PLACES)
    places = [(name, "q=" + quote(f'place:"{name}"')) for name in known if '"' not in name]
    tags = [(f"#{tag}", "q=" + quote(f"tag:{tag}")) for tag in await visitor.store.memory.browse.tags(visitor.context)]
    return [*states, *tags, *facts, *kinds, *places]


async def one(visit: Visit) -> Response:
    visitor, short_id = visit.visitor, visit.path["id"]
    if not _ID.fullmatch(short_id):
        raise Refused(404, "page.no_memory")
    try:
        shown = await visitor.store.memory.browse.shown(visitor.context, short_id)
    except NotFound as exc:
        raise Refused(404, "page.no_memory") from exc
    memory, texts = shown.memory, visit.texts
    entered = await visitor.store.memory.browse.entered(visitor.context, memory.id, limit=_ANSWERS)
    versions = [told(visit, each) for each in shown.versions]
    return visit.html(
        "one.html",
        shown=shown,
        memory=memory,
        told=told(visit, memory),
        tags=tags_seen(memory, visitor.context.scope),
        learned=texts.moment(memory.learned_at),
        origin=texts(f"memory.origin.{memory.origin}") if memory.origin != "derived" else texts("page.mark.derived"),
        quotes=[_quoted(visit, source) for source in shown.sources],
        versions=_differing(versions) if len(versions) > 1 else [],
        made_of=[told(visit, each) for each in shown.made_of],
        made_into=[told(visit, each) for each in shown.made_into],
        entered=[(one.turn_id, texts.moment(one.answered_at), one.asked) for one in entered],
        percent=round(100 * shown.left),
    )


def _quoted(visit: Visit, source: Source) -> dict[str, str | None]:
    visitor, texts = visit.visitor, visit.texts
    mine = source.author_id in (visitor.context.speaker.id, *visitor.context.scope.selves)
    place = Place.from_session_key(source.session_key)
    return {
        "text": texts("page.erased") if source.text is None else source.text[:1_000],
        "date": texts.moment(source.said_at),
        "who": texts("page.you") if mine else source.author_name or visitor.served.spec.name,
        "where": texts("platform.web") if place.channel.startswith(WEB_PREFIX) else place.channel,
        "address": visit.visitors.address_of(place, source.platform_ref),
        "chat": (place.thread or "main") if place.channel == visitor.channel.id and place.thread != FORMS else "",
    }


def _differing(versions: list[ShownMemory]) -> list[tuple[ShownMemory, list[tuple[str, str]]]]:
    """Returns versions, the newest first, each as words that are the same (=), new (+) or gone (-)."""
    shown, before = [], ""
    for version in versions:
        old, new = before.split(), version.said.split()
        words: list[tuple[str, str]] = []
        for change, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            if change == "equal" or not before:
                words.append(("=", " ".join(new[c:d])))
                continue
            words += [("-", " ".join(old[a:b]))] if b > a else []
            words += [("+", " ".join(new[c:d]))] if d > c else []
        shown.append((version, words))
        before = version.said
    return shown[::-1]


#: The ways in which something came into an answer, with their headings.
_FOUND: Final = (("recalled", "why.found"), ("known", "why.known"), ("unused", "why.unused"))


async def why(visit: Visit) -> Response:
    turn, visitor = visit.number(visit.path["turn"], "page.no_answer"), visit.visitor
    found = await visitor.store.memory.browse.why(visitor.context, turn_id=turn)
    if found is None:
        raise Refused(404, "page.no_answer")
    said = await visitor.store.memory.browse.turn_lines(visitor.context, turn)
    answer = " ".join(one.text for one in said if not one.mine).casefold()
    groups = []
    for place, heading in _FOUND:
        entries = [
            _entry(visit, found, entry, named, answer) for entry, named in found.entries if entry.placed == place
        ]
        if entries:
            groups.append((visit.texts(heading).rstrip(":："), place == "unused", entries))
    return visit.html(
        "why.html",
        at_time=visit.texts.moment(found.answered_at),
        error=found.error,
        judged=judged(visit.texts, found),
        said=said,
        groups=groups,
        spent=found.spent,
        wrong=visit.query.get("wrong") == "1",
    )


def _entry(
    visit: Visit, found: Why, entry: RecalledEntry, named: Memory | Message | None, answer: str
) -> dict[str, Any]:
    texts = visit.texts
    parts = [(texts(f"part.{name}"), name in SCORE_FACTORS, value) for name, value in telling_parts(entry)]
    shown: dict[str, Any] = {"score": entry.score, "parts": parts, "memory": None, "quote": "", "now": None}
    if isinstance(named, Memory):
        now = found.replaced_by.get(named.id)
        may = named.live and not named.follows
        # Only a memory whose value the answer says can be what is wrong in it.
        is_open = visit.query.get("wrong") == "1" and named.value.casefold() in answer
        held = None if now is None else told(visit, now)
        shown |= {"open": is_open, "memory": told(visit, named), "value": named.value, "may": may, "now": held}
    elif named is None:
        shown["quote"] = texts("why.forgotten")
    else:
        shown["quote"] = phrases.quote(named, visit.visitor.context, named.text[:400], language=texts.language)
    return shown


#: Results that are read for the list, of one run for each account.
_READ: Final = 120
#: The sign of a change: new or back, put aside, or changed in place.
_SIGNS: Final[dict[What, str]] = {
    "new": "+", "back": "+", "archived": "−", "replaced": "−", "compressed": "−", "told again": "=", "changed": "=",
}  # fmt: skip


async def nights(visit: Visit) -> Response:
    visitor, texts = visit.visitor, visit.texts
    runs: dict[int, list[OwnerResult]] = {}
    for item in await visitor.store.memory.jobs.mine(visitor.context, limit=_READ):
        runs.setdefault(item.run.id, []).append(item)
    listed = []
    for items in runs.values():
        counts = sum((Counter(item.counts) for item in items), Counter[str]())
        run = items[0].run
        state = "undone" if {item.state for item in items} == {"undone"} else ""
        listed.append((run.id, texts.moment(run.started_at), job_name(texts, run.job), figures(texts, counts), state))
    return visit.html("nights.html", runs=listed)


async def night(visit: Visit) -> Response:
    visitor, texts, number = visit.visitor, visit.texts, visit.number(visit.path["run"], "page.no_night")
    items = await visitor.store.memory.jobs.item(visitor.context, number)
    if not items:
        raise Refused(404, "page.no_night")
    try:
        changes = await visitor.store.memory.jobs.did(visitor.context, number)
    except NotFound as exc:
        raise Refused(404, "page.no_night") from exc
    run = items[0].run
    return visit.html(
        "night.html",
        number=number,
        job=job_name(texts, run.job),
        when=texts.moment(run.started_at),
        changes=[
            (_SIGNS[one.what], told(visit, one.memory), [told(visit, part) for part in one.made_of]) for one in changes
        ],
        undone={item.state for item in items} == {"undone"},
    )
