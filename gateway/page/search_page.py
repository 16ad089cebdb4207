"""The search over all that was said in the visitor's private conversations, whose hits lead to the message.

Invariant: only messages that the visitor can read again are shown. A hit of another platform leads there, if that has
an address for it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from channels.base import Place
from gateway.config.loading import FORMS, WEB_PREFIX
from gateway.page.site import Response, Visit
from memory.browse.talks import END, ConversationHit
from memory.text.words import UNIT, query_terms, tokens

#: Hits of a page, characters of a snippet and of those before its first word, and characters that are looked through.
_HITS: Final = 20
_SNIPPET: Final = 300
_BEFORE: Final = 80
_LOOKED: Final = 20_000
_CURSOR: Final = re.compile("([0-9]{1,15})-([0-9]{1,15})")
_WORD: Final = re.compile(r"\w+")


async def search(visit: Visit) -> Response:
    words, cursor = visit.query.get("q", "").strip()[:400], _CURSOR.fullmatch(visit.query.get("before", ""))
    before = (int(cursor[1]), int(cursor[2])) if cursor else (END, END)
    browse = visit.visitor.store.memory.browse
    rows = await browse.said(visit.visitor.context, words, limit=_HITS + 1, before=before) if words else []
    hits, more = rows[:_HITS], rows[_HITS - 1 : _HITS] if len(rows) > _HITS else []
    snippets = await asyncio.to_thread(lambda: [_snippet(hit.text, words) for hit in hits])
    return visit.html(
        "search.html",
        words=words,
        # What a form of another page said stands in no conversation.
        hits=[
            _shown(visit, hit, parts)
            for hit, parts in zip(hits, snippets, strict=True)
            if Place.from_session_key(hit.session_key) != visit.visitor.place(FORMS)
        ],
        first=cursor is None,
        before="".join(f"{hit.said_at}-{hit.id}" for hit in more),
    )


def _shown(visit: Visit, hit: ConversationHit, parts: list[tuple[bool, str]]) -> dict[str, Any]:
    texts, place, opening = visit.texts, Place.from_session_key(hit.session_key), " ".join(hit.opening[:200].split())
    is_here = place.channel.startswith(WEB_PREFIX)
    return {
        "parts": parts,
        "who": texts("page.chat.you") if hit.mine else visit.visitor.served.spec.name,
        "talk": opening[:60] + "…" * (len(opening) > 60) if is_here else place.channel,
        "when": texts.moment(hit.said_at),
        "address": visit.visitors.address_of(visit.visitor, hit.session_key, hit.id, hit.platform_ref),
    }


def _snippet(text: str, words: str) -> list[tuple[bool, str]]:
    """Returns the part of a text around the first of the words, cut into pieces; True marks words that were sought."""
    text = " ".join(text[:_LOOKED].split())
    terms, runs = set(query_terms(words)), [run for run in _WORD.findall(words) if UNIT.search(run)]
    spans = sorted(
        {
            *(match.span() for match in _WORD.finditer(text) if _holds(match[0], terms)),
            *(match.span() for run in runs for match in re.finditer(re.escape(run), text, re.IGNORECASE)),
        }
    )
    start = max(0, spans[0][0] - _BEFORE) if spans else 0
    start = text.find(" ", start) + 1 if start and " " in text[start : start + _BEFORE] else start
    end, at = start + _SNIPPET, start
    parts = [(False, "…")] if start else []
    for first, last in spans:
        if at <= first and last <= end:
            parts += [(False, text[at:first]), (True, text[first:last])]
            at = last
    return [*parts, (False, text[at:end] + ("…" if len(text) > end else ""))]


def _holds(word: str, terms: set[str]) -> bool:
    return not UNIT.search(word) and not terms.isdisjoint(tokens(word))
