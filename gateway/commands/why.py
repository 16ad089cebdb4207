"""/why: shows what entered a reply; in short, or all of it.

Invariants: the memories and messages named are looked up in the scope of the person who asks where they ask, so
anything forgotten, or no longer theirs, is not shown again, and a group is shown what all of it may see. What an answer
cost is told in private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.commands import lines
from gateway.commands.call import Call, excerpt
from gateway.wording.texts import Texts, means
from memory.browse.why import Why
from memory.score import FACTORS as SCORE_FACTORS
from memory.score import ScorePart
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.recalls import RecalledEntry
from memory.store.usage import Spent

#: Memories and messages shown in short.
_SHORT = 3
#: Lines shown of memories known all along, and of those found but not needed.
_KNOWN = 12
_UNUSED = 5
#: Characters shown of one memory.
_LINE = 100
#: The model name recorded for a reply that was made without a model.
NO_MODEL = "offline"


async def explain(call: Call) -> None:
    texts = call.texts
    asked = call.inbound.reply_to if call.inbound.pressed is None else None
    why = await call.memory.browse.why(call.context, message=asked)
    if why is None:
        await call.say(texts("why.none" if asked is None else "why.no_answer"))
        return
    if means(call.arguments, "all"):
        rows = [*_groups(call, why), *(_costs(call, why.spent) if call.context.session.private else ())]
    else:
        rows = _in_short(call, why)
    await call.say("\n".join([_head(call, why), *judged(call.texts, why), *rows]))


def judged(texts: Texts, why: Why) -> list[str]:
    """Returns the line with what people have shown of a reply by reactions; none if nobody has."""
    marks = [f"{mark} {count}" for mark, count in zip("👍👎", why.judged, strict=True) if count]
    return [texts("why.judged", marks=" ".join(marks))] if marks else []


def _in_short(call: Call, why: Why) -> list[str]:
    """Returns a line for each memory and message that matters most, and how to see the rest."""
    used = _placed(why, "recalled")
    looked_at = [*used, *_placed(why, "known", profile=False), *_placed(why, "known", profile=True)]
    if not any(spent.model == NO_MODEL for spent in why.spent):
        used = sorted(looked_at, key=lambda pair: -(pair[0].score or 0.0))[:_SHORT]
    if not looked_at:
        return []
    rows = []
    for entry, named in used:
        line = _reason(call, why, replace(entry, score=None), named)[0]
        rows.append("  " + (call.texts("why.of_profile", line=line) if _is_profile(named) else line))
    more = len(looked_at) - len(used)
    return [*rows, call.texts("why.rest", count=more) if more > 0 else call.texts("why.all")]


def _head(call: Call, why: Why) -> str:
    at = call.texts.moment(why.answered_at)
    if why.error is not None:
        return call.texts("why.failed", at=at, code=why.error)
    without_model = any(spent.model == NO_MODEL for spent in why.spent)
    used = _placed(why, "recalled") if without_model else why.entries
    return call.texts("why.head" if used else "why.nothing", at=at)


def _groups(call: Call, why: Why) -> list[str]:
    rows: list[str] = []
    for heading, entries, limit in (
        ("why.profile", _placed(why, "known", profile=True), None),
        ("why.known", _placed(why, "known", profile=False), _KNOWN),
        ("why.found", _placed(why, "recalled"), None),
        ("why.unused", _placed(why, "unused"), _UNUSED),
    ):
        if entries:
            rows.append(call.texts(heading))
        for entry, named in entries[:limit]:
            rows += [f"  {line}" for line in _reason(call, why, entry, named)]
        if limit is not None and len(entries) > limit:
            rows.append("  " + call.texts("why.more", count=len(entries) - limit))
    return rows


def _placed(
    why: Why, placed: str, *, profile: bool | None = None
) -> list[tuple[RecalledEntry, Memory | Message | None]]:
    return [
        (entry, named)
        for entry, named in why.entries
        if entry.placed == placed and (profile is None or _is_profile(named) == profile)
    ]


def _is_profile(named: Memory | Message | None) -> bool:
    return isinstance(named, Memory) and named.kind in ("profile", "directive")


def _reason(call: Call, why: Why, entry: RecalledEntry, named: Memory | Message | None) -> list[str]:
    texts = call.texts
    if named is None:
        return [texts("why.forgotten")]
    score = "" if entry.score is None else texts("why.score", score=f"{entry.score:.2f}", parts=_parts(call, entry))
    if isinstance(named, Message):
        return [f"{lines.quoted_line(call, named, why.places[named.session_id])}{score}"]
    if _is_profile(named):
        slot = named.key if named.kind == "profile" else "directive"
        since = "" if named.valid_until is None else texts("why.changed")
        return [f"{texts(f'slot.{slot}')}: {excerpt(named.value, _LINE)}{since}"]
    first = texts(
        "why.line",
        id=named.short_id,
        said=excerpt(call.phrase(named), _LINE),
        came=lines.came(call, named),
        marks=lines.marks(call, named) + _outdated(call, why, named),
        score=score,
    )
    # For memories known all along, /memory show tells the rest.
    if entry.score is None:
        return [first]
    if made_of := why.made_of.get(named.id):
        run, ids = why.made_by.get(named.id), lines.ids_of(call, made_of)
        made = texts("night.made_of", ids=ids) if run is None else texts("night.made_of_by", ids=ids, n=run.id)
        return [first, f"  {made}"]
    source = next((source for source in why.sources.get(named.id, ()) if source.text is not None), None)
    return [first] if source is None else [first, f"  {lines.source_line(call, source)}"]


def _outdated(call: Call, why: Why, memory: Memory) -> str:
    if memory.valid_until is None:
        return ""
    until, now = call.texts.date(memory.valid_until), why.replaced_by.get(memory.id)
    if now is None:
        return call.texts("why.outdated", until=until)
    return call.texts("why.replaced", until=until, id=now.short_id)


def _parts(call: Call, entry: RecalledEntry) -> str:
    texts = call.texts
    parts = [
        texts("why.factor" if name in SCORE_FACTORS else "why.part", name=texts(f"part.{name}"), value=f"{value:.2f}")
        for name, value in telling_parts(entry)
    ]
    return texts("why.parts", parts=", ".join(parts)) if parts else ""


def telling_parts(entry: RecalledEntry) -> list[tuple[ScorePart, float]]:
    """Returns the parts that make a difference to a score: first the summands, then the factors."""
    return [
        (name, value)
        for name, value in entry.parts.items()
        if f"{value:.2f}" != ("1.00" if name in SCORE_FACTORS else "0.00")
    ]


def _costs(call: Call, spent: Sequence[Spent]) -> list[str]:
    rows = []
    for used in spent:
        if used.model == NO_MODEL:
            rows.append(call.texts("why.no_model"))
            continue
        cached = call.texts("why.cached", count=used.cached_tokens) if used.cached_tokens else ""
        cost = "" if used.cost is None else call.texts("cost.also", cost=lines.money(used.cost))
        about = call.texts("why.about") if used.estimated else ""
        rows.append(
            call.texts(
                "why.cost",
                model=used.model,
                tokens_in=used.input_tokens,
                tokens_out=used.output_tokens,
                cached=cached,
                cost=cost,
                about=about,
            )
        )
    return rows
