"""The pages of memories: the list, one memory in full and its changes, why an answer knew them, what nights changed.

Invariants: a page shows what its visitor's scope shows, and another person's id is an id that does not exist; anything
forgotten is not shown again. Every change is a command of the visitor, with that command's answer as its receipt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import SequenceMatcher
from typing import Any, Final
from urllib.parse import urlencode

from channels.base import Place
from gateway.actions.memory import kinds
from gateway.commands.jobs import figures, job_name
from gateway.commands.why import NO_MODEL, judged, telling_parts
from gateway.config.loading import WEB_PREFIX
from gateway.page.plots import Plot, Series, Stack
from gateway.page.site import Refused, Response, Visit
from gateway.wording import phrases
from gateway.wording.texts import Texts, part_of
from memory.browse.browse import Parts, State
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
from memory.text.times import clock
from memory.text.words import query_terms, tokens
from memory.typed_filters import Filters

#: The most memories of a page, hits of a search, and named answers that a memory entered.
PAGE: Final = 40
_HITS: Final = 60
#: The least score of a memory with none of the words that counts as found, in percent of the best.
_CLOSE: Final = 40
_ANSWERS: Final = 30
#: Names of a kind that the list offers as chips; all that are offered can be chosen from a list.
_CHIPS: Final = 3
#: States of memories that the list shows by themselves, and the filters that are chosen from a list.
_STATES: Final[tuple[State, ...]] = ("new", "pinned", "fading")
_PICKS: Final = ("category", "about", "place", "tag")
#: Weeks for which the use of a memory is shown.
_WEEKS: Final = 26
_ID: Final = re.compile("m_[a-z0-9]{1,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemory:
    """A memory as it is shown in a list. `id` is empty if it is only derived from others.

    `close` is how well it fits the search, in percent of the best hit; 0 if nothing was searched for.
    """

    id: str
    said: str
    since: str
    until: str
    marks: tuple[str, ...]
    close: int = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The query of the list: words, filters that were picked, a state, a day, a page."""

    words: str
    picks: Mapping[str, str]
    state: State | None
    day: str
    page: int

    @property
    def text(self) -> str:
        picked = (f'{name}:"{value}"' for name, value in self.picks.items() if value and '"' not in value)
        return " ".join([self.words, *picked]).strip()

    @property
    def is_bare(self) -> bool:
        return not (self.text or self.state or self.day)


async def listed(visit: Visit) -> Response:
    given, visitor = visit.query, visit.visitor
    asked = ListQuery(
        words=given.get("q", "").strip()[:400],
        picks={name: given.get(name, "").strip()[:200] for name in _PICKS},
        state=next((one for one in _STATES if one == given.get("show")), None),
        day=given.get("on", "").strip()[:20],
        page=page_of(visit),
    )
    parts = await visitor.store.memory.browse.parts(visitor.context, since=visitor.session.before_at)
    none: dict[str, Any] = {"pages": 1, "groups": [], "farther": [], "quotes": [], "why": "", "total": 0, "ids": []}
    hits = await (_then(visit, asked) if asked.day else _found(visit, asked, parts))
    query = {"q": asked.words, **asked.picks, "show": asked.state or "", "on": asked.day}
    return visit.html(
        "memory.html",
        asked=asked,
        picks=_picks(visit, parts),
        chips=_chips(visit, parts) if asked.is_bare else [],
        address="/memory?" + urlencode({name: value for name, value in query.items() if value}),
        **(none | {"page": asked.page} | hits),
    )


def page_of(visit: Visit) -> int:
    return int(visit.query["page"]) if re.fullmatch("[1-9][0-9]{0,4}", visit.query.get("page", "")) else 1


def pages_of(total: int) -> int:
    return max(1, -(-total // PAGE))


async def _then(visit: Visit, asked: ListQuery) -> dict[str, Any]:
    try:
        day = date.fromisoformat(asked.day)
    except ValueError:
        return {"why": visit.texts("page.bad_day")}
    visitor = visit.visitor
    held, total = await visitor.store.memory.browse.held_at(visitor.context, day, limit=PAGE, page=asked.page)
    return {"groups": _grouped(visit, held), "total": total, "pages": pages_of(total)}


async def _found(visit: Visit, asked: ListQuery, parts: Parts) -> dict[str, Any]:
    visitor, browse = visit.visitor, visit.visitor.store.memory.browse
    try:
        filters = await browse.filters(visitor.context, asked.text, group_of=part_of)
    except (UnknownFilter, UnreadFilter) as exc:
        return {"why": visit.texts.unread(exc)}
    if filters.words and not asked.state:
        return await _searched(visit, filters)
    among = None if asked.state is None else parts.states[asked.state]
    shelf = await browse.shelf(
        visitor.context, kinds(filters), filters=filters, among=among, limit=PAGE, page=asked.page
    )
    return {
        "groups": _grouped(visit, shelf.memories, new=parts.states["new"]),
        "total": shelf.total,
        "page": shelf.first // PAGE + 1,
        "pages": pages_of(shelf.total),
        "ids": [memory.short_id for memory in shelf.memories],
    }


async def _searched(visit: Visit, filters: Filters) -> dict[str, Any]:
    """Returns hits in the order of their scores, and the ids of those that count as found."""
    visitor, language = visit.visitor, visit.texts.language
    hits = await visitor.store.memory.browse.search(visitor.context, filters.words, limit=_HITS, filters=filters)
    terms = query_terms(filters.words)
    best = max((hit.score for hit in hits), default=0) or 1
    memories, farther, quotes, ids = [], [], [], []
    for hit in hits:
        close = max(1, round(100 * hit.score / best))
        has_words = shares(hit, terms) > 0
        if hit.memory is not None:
            row = replace(told(visit, hit.memory), close=close)
            if has_words or close >= _CLOSE:
                memories.append(row)
                ids.append(row.id)
            else:
                farther.append(row)
        elif hit.passage is not None and has_words:
            message = hit.passage.message
            words = phrases.quote(message, visitor.context, message.text[:300], language=language)
            quotes.append((visit.texts.date(message.said_at), words, close, message))
            ids.append(f"s_{message.id}")
    groups = [("", memories)] if memories else []
    addresses = await addresses_of(visit, [message for *_, message in quotes])
    said = [(when, words, close, addresses.get(message.id, "")) for when, words, close, message in quotes]
    return {"groups": groups, "farther": farther, "quotes": said, "total": len(ids), "ids": ids}


async def addresses_of(visit: Visit, messages: list[Message]) -> dict[int, str]:
    """Returns where the messages of the visitor's private conversations are shown, by their ids."""
    visitor = visit.visitor
    keys = await visitor.store.memory.browse.keys_of(visitor.context, [one.id for one in messages])
    refs = {one.id: one.platform_ref for one in messages}
    return {number: visit.visitors.address_of(visitor, key, number, refs[number]) for number, key in keys.items()}


def _grouped(
    visit: Visit, memories: tuple[Memory, ...] | list[Memory], *, new: frozenset[int] = frozenset()
) -> list[tuple[str, list[ShownMemory]]]:
    groups: dict[str, list[ShownMemory]] = {}
    for memory in memories:
        head = visit.texts(f"kinds.{memory.kind}")
        if memory.kind == "fact":
            head = visit.texts(f"category.{memory.category}")
        row = told(visit, memory)
        if memory.id in new:
            row = replace(row, marks=(visit.texts("page.mark.new"), *row.marks))
        groups.setdefault(head[:1].upper() + head[1:], []).append(row)
    return list(groups.items())


def _categories(visit: Visit, parts: Parts) -> list[tuple[str, str, int]]:
    """Returns the categories of facts and the other kinds that there are, by name: the value, the name, the number."""
    counts = Counter[tuple[str, str]]()
    for (kind, category), number in parts.counts.items():
        counts["category" if kind == "fact" else "kinds", category if kind == "fact" else kind] += number
    return sorted(
        ((name, visit.texts(f"{group}.{name}"), number) for (group, name), number in counts.items()),
        key=lambda row: row[1].casefold(),
    )


def _picks(visit: Visit, parts: Parts) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Returns the filters with the values that can be chosen for each, those without any left out."""
    names = {"about": parts.people, "place": parts.places, "tag": parts.tags}
    picks = [("category", _categories(visit, parts))]
    picks += [
        (pick, [(name, name, number) for name, number in rows if '"' not in name]) for pick, rows in names.items()
    ]
    return [pick for pick in picks if pick[1]]


def _chips(visit: Visit, parts: Parts) -> list[tuple[str, str, int]]:
    """Returns shortcuts to parts of the list: the name, the query, the number of memories."""
    states = [(visit.texts(f"page.memory.{name}"), f"show={name}", len(parts.states[name])) for name in _STATES]
    chips = [state for state in states if state[2]]
    for pick, rows in _picks(visit, parts):
        some = rows if pick == "category" else rows[:_CHIPS]
        chips += [(f"#{name}" if pick == "tag" else name, urlencode({pick: value}), n) for value, name, n in some]
    return chips


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
        use=_use(texts, await visitor.store.memory.browse.used(visitor.context, memory.id), visitor.now),
        percent=round(100 * shown.left),
        done=(visit.visitors.kept(visitor) or []) if visit.query.get("done") else [],
    )


def _use(texts: Texts, used: Mapping[tuple[int, str], int], now: int) -> Plot | None:
    """Returns the answers that a memory was in the prompt of, by week; None if there are none of late."""
    this = clock.local_date(now, texts.timezone)
    weeks = [this - timedelta(days=this.weekday() + 7 * n) for n in reversed(range(_WEEKS))]
    counts: Counter[tuple[date, str]] = Counter()
    for (day, placed), count in used.items():
        at = date(1970, 1, 1) + timedelta(days=day)
        counts[at - timedelta(days=at.weekday()), placed] += count
    ways = [("recalled", "see.use.recalled", 2), ("known", "see.use.known", 3)]
    series = [
        Series(name=texts(key), hue=hue, values=[counts[week, placed] for week in weeks]) for placed, key, hue in ways
    ]
    if not any(value for one in series for value in one.values):
        return None
    labels = [f"{week:%m-%d}" for week in weeks]
    return Plot(title=texts("see.use.title"), head=texts("see.week"), labels=labels, series=series)


def _quoted(visit: Visit, source: Source) -> dict[str, str | None]:
    visitor, texts = visit.visitor, visit.texts
    mine = source.author_id in (visitor.context.speaker.id, *visitor.context.scope.selves)
    place = Place.from_session_key(source.session_key)
    return {
        "text": texts("page.erased") if source.text is None else source.text[:1_000],
        "date": texts.moment(source.said_at),
        "who": texts("page.you") if mine else source.author_name or visitor.served.spec.name,
        "where": texts("platform.web") if place.channel.startswith(WEB_PREFIX) else place.channel,
        "address": ""
        if source.text is None
        else visit.visitors.address_of(visitor, source.session_key, source.message_id, source.platform_ref),
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


#: The ways in which something came into an answer, with their headings: in its words, else in the prompt alone.
_FOUND: Final = (
    ("said", "see.why.said"), ("recalled", "why.found"), ("known", "why.known"), ("unused", "why.unused"),
)  # fmt: skip
#: The parts of a request, in the order of the picture.
_PORTIONS: Final = ("persona", "tools", "known", "recalled", "summary", "history", "context", "message")


async def why(visit: Visit) -> Response:
    turn, visitor = visit.number(visit.path["turn"], "page.no_answer"), visit.visitor
    found = await visitor.store.memory.browse.why(visitor.context, turn_id=turn)
    if found is None:
        raise Refused(404, "page.no_answer")
    said = await visitor.store.memory.browse.turn_lines(visitor.context, turn)
    answer = " ".join(one.text for one in said if not one.mine)
    addresses = await addresses_of(visit, [named for _, named in found.entries if isinstance(named, Message)])
    placed: dict[str, list[dict[str, Any]]] = {}
    without_model = any(spent.model == NO_MODEL for spent in found.spent)
    terms = set(tokens(answer))
    for entry, named in found.entries:
        # Without a model an answer rests on what was recalled, and on nothing else.
        is_said = entry.placed == "recalled" if without_model else entry.placed != "unused" and _is_in(named, terms)
        place = "said" if is_said and named is not None else entry.placed
        placed.setdefault(place, []).append(_entry(visit, found, entry, named, answer.casefold(), addresses))
    groups = []
    for place, heading in _FOUND:
        entries = placed.get(place, [])
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
        portions=_portions(visit.texts, found),
        wrong=visit.query.get("wrong") == "1",
    )


def _is_in(named: Memory | Message | None, answer: Set[str]) -> bool:
    """Returns whether an answer says what a memory or message says: at least half of its words that matter."""
    if named is None:
        return False
    terms = query_terms(named.value if isinstance(named, Memory) else named.text)
    return bool(terms) and 2 * sum(term in answer for term in terms) >= len(terms)


def _portions(texts: Texts, found: Why) -> Stack | None:
    known = [(texts(f"see.why.{name}"), hue, found.portions[name]) for hue, name in enumerate(_PORTIONS)
             if found.portions.get(name)]  # fmt: skip
    return Stack(title=texts("see.why.request"), series=known) if known else None


def _entry(
    visit: Visit,
    found: Why,
    entry: RecalledEntry,
    named: Memory | Message | None,
    answer: str,
    addresses: dict[int, str],
) -> dict[str, Any]:
    texts = visit.texts
    parts = [(texts(f"part.{name}"), name in SCORE_FACTORS, value) for name, value in telling_parts(entry)]
    shown: dict[str, Any] = {
        "score": entry.score,
        "parts": parts,
        "memory": None,
        "quote": "",
        "now": None,
        "address": "",
        "tokens": entry.tokens,
    }
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
        shown["address"] = addresses.get(named.id, "")
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
