"""The reasons for an answer: the memories that entered it, how they were found, and its cost.

Invariant: the memories and messages named are looked up in the scope of the visitor, so anything forgotten is not shown
again.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.commands.why import telling_parts
from gateway.page.memory_pages import told
from gateway.page.site import Refused, Response, Visit
from gateway.wording import phrases
from memory.browse.why import Why
from memory.score import FACTORS as SCORE_FACTORS
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.recalls import RecalledEntry

#: The ways in which something came into an answer, with their headings.
_PLACES: Final = (("recalled", "why.found"), ("known", "why.known"), ("unused", "why.unused"))


async def why(visit: Visit) -> Response:
    turn, visitor = visit.number(visit.path["turn"], "page.no_answer"), visit.visitor
    found = await visitor.store.memory.browse.why(visitor.context, turn_id=turn)
    if found is None:
        raise Refused(404, "page.no_answer")
    said = await visitor.store.memory.browse.turn_lines(visitor.context, turn)
    answer = " ".join(one.text for one in said if not one.mine).casefold()
    groups = []
    for place, heading in _PLACES:
        entries = [
            _entry(visit, found, entry, named, answer) for entry, named in found.entries if entry.placed == place
        ]
        if entries:
            groups.append((visit.texts(heading).rstrip(":："), place == "unused", entries))
    return visit.html(
        "why.html",
        at_time=visit.texts.moment(found.answered_at),
        error=found.error,
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
