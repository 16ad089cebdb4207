"""Our own export format: JSON that another Remora reads, and Markdown that a person reads.

Invariants: pure. A written export can be read back without a change of meaning. A bad entry is named and skipped and
never costs the others. Times are ISO 8601 in UTC to the millisecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from memory import keys
from memory.store.memories import Kind
from memory.text.times.clock import day_of
from memory.transfer.formats.json_values import array, moment, string
from memory.transfer.formats.material import (
    ExportedState,
    ImportedItem,
    ImportedLine,
    Mask,
    Masking,
    Material,
    Person,
    Skipped,
)

FORMAT: Final = "remora"
#: The version, which is raised when a field changes its meaning. Newer versions are refused.
VERSION: Final = 1
#: The stand-in for the owner, so that an export can become another owner's, such as that of their new account.
OWNER: Final = Person(platform="", user_id="")
_OWNER: Final = "owner"
#: The most characters of a message, more than is kept of any.
_MESSAGE_CHARS: Final = 200_000
#: The beginning of a page, and the text before a person's account in its second line.
PAGE_TITLE: Final = "# What Remora remembers of "
PAGE_FOR: Final = ", for "

Fields: TypeAlias = Mapping[str, Any]


class NotRemoraExport(Exception):
    """The file is not an export of ours, or is one of a newer version; `str()` says which."""


def looks_like(data: object) -> bool:
    return isinstance(data, dict) and data.get("format") == FORMAT


def write(
    *,
    of: Fields,
    exported_at: int,
    memories: Sequence[Fields],
    messages: Sequence[Fields],
    reminders: Sequence[Fields] = (),
) -> bytes:
    document = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": iso(exported_at),
        "of": of,
        "memories": memories,
        "messages": messages,
        "reminders": reminders,
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def read(text: str, *, mask: Mask) -> Material:
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        raise NotRemoraExport("The file is not valid JSON. It may be incomplete; export it again.") from None
    if not looks_like(data):
        raise NotRemoraExport('This is not a Remora export: it does not say "format": "remora".')
    if data.get("version") != VERSION:
        raise NotRemoraExport(
            f"The export has version {data.get('version')!r:.20}, but this Remora reads {VERSION}. Update Remora."
        )
    masking = Masking(mask)
    skipped: list[Skipped] = []
    items = []
    for n, raw in enumerate(array(data.get("memories")), 1):
        if isinstance(raw, dict) and raw.get("kind") in _MADE:
            continue  # rebuilt from the memories it was made from
        try:
            items.append(_item(raw, f"memory {n}", masking))
        except _BadError as exc:
            skipped.append(Skipped(where=f"memory {n}", why=str(exc)))
    lines = []
    for n, raw in enumerate(array(data.get("messages")), 1):
        try:
            lines.append(_line(raw, masking))
        except _BadError as exc:
            skipped.append(Skipped(where=f"message {n}", why=str(exc)))
    items.sort(key=lambda item: item.standing.valid_from if item.standing else 0)
    return Material(format=FORMAT, items=tuple(items), lines=tuple(lines), skipped=tuple(skipped), masked=masking.count)


def person(one: Person | None) -> object:
    if one is None:
        return None
    return _OWNER if one == OWNER else {"platform": one.platform, "user_id": one.user_id, "name": one.name}


def iso(moment: int) -> str:
    return (_EPOCH + timedelta(milliseconds=moment)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def page(
    *,
    of: Fields,
    exported_at: int,
    memories: Sequence[Fields],
    messages: Sequence[Fields],
    reminders: Sequence[Fields] = (),
) -> str:
    """Returns the Markdown form, for people: current memories by category, earlier ones, reminders, messages."""
    name = of.get("name") or of.get("user_id") or of.get("chat") or "everybody"
    parts = [f"{PAGE_TITLE}{_inline(str(name))}", f"Exported on {iso(exported_at)[:10]}{_page_of(of)}."]
    said = {message["n"]: message for message in messages}
    profile = [memory for memory in memories if memory["kind"] in ("profile", "directive") and _holds(memory)]
    _section(parts, "Profile", [f"**{one['key']}**: {_inline(one['value'])}" for one in profile])
    facts = [memory for memory in memories if memory["kind"] in ("fact", "style", "reflection") and _holds(memory)]
    for category in dict.fromkeys(fact["category"] for fact in facts):
        _section(parts, category.capitalize(), [_told(fact, said) for fact in facts if fact["category"] == category])
    events = sorted((memory for memory in memories if memory["kind"] == "event"), key=lambda one: one["local_date"])
    _section(parts, "Events", [f"{event['local_date']}: {_inline(event['value'])}" for event in events])
    past = [memory for memory in memories if memory["kind"] in ("fact", "style", "reflection") and not _holds(memory)]
    _section(parts, "Earlier, no longer held", [_told(one, said) for one in past])
    _section(parts, "Reminders", [_when(reminder) for reminder in reminders])
    _section(
        parts,
        "Messages",
        [f"{one['time'][:16].replace('T', ' ')} {_inline(one['name'] or one['role'])}: {_inline(one['text'])}"
         for one in messages],
    )  # fmt: skip
    return "\n\n".join(parts) + "\n"


def page_line(platform: str, user_id: str) -> str:
    """Returns the end of the line in which a page names the person whose memory it holds."""
    return f"{PAGE_FOR}{_inline(f'{platform}:{user_id}')}."


def _page_of(of: Fields) -> str:
    person_of = of.get("kind") == "person" and of.get("user_id")
    return page_line(str(of.get("platform")), str(of["user_id"])).removesuffix(".") if person_of else ""


def _told(one: Fields, said: Mapping[int, Fields]) -> str:
    about = f"{_inline(one['subject'])}, " if one["subject"] else ""
    marks = [f"told {one['learned_at'][:10]}", one["id"]]
    if one["valid_until"]:
        marks.insert(1, f"until {one['valid_until'][:10]}")
    marks += [word for word in ("pinned", "confirmed") if one[word]]
    text = f"**{about}{one['key']}**: {_inline(one['value'])} ({', '.join(marks)})"
    sources = [said[n] for n in one["sources"] if n in said]
    return "\n".join(
        [text, *(f"  - {source['time'][:10]}: “{_inline(source['text'])[:300]}”" for source in sources[:3])]
    )


def _when(one: Fields) -> str:
    repeated = f", then {one['rule']}" if one["rule"] else ""
    return f"{one['first'].replace('T', ' ')} ({one['timezone']}){repeated}: {_inline(one['text'])}"


def _section(parts: list[str], title: str, lines: Sequence[str]) -> None:
    if lines:
        parts.append(f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines))


def _holds(one: Fields) -> bool:
    return not (one["valid_until"] or one["superseded_by"] or one["archived_at"])


def _inline(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


class _BadError(Exception):
    """An entry that can't be read; `str()` says why."""


def _item(raw: object, where: str, masking: Masking) -> ImportedItem:
    fields = _entry(raw)
    kind = _KINDS.get(_text(fields, "kind", 20))
    if kind is None:
        raise _BadError("its kind is unknown")
    category = _text(fields, "category", 40)
    if category not in keys.CATEGORIES:
        category = "conversation"
    value = masking(_text(fields, "value", keys.VALUE_LIMIT, needed=True))
    key = keys.normalise_key(masking(_text(fields, "key", keys.KEY_LIMIT, needed=True)))
    learned_at = _moment(fields, "learned_at")
    valid_from = _moment(fields, "valid_from", learned_at)
    if learned_at is None or valid_from is None:
        raise _BadError("it does not say when it was learned")
    agent = fields.get("agent")
    return ImportedItem(
        where=where,
        kind=kind,
        category=category,
        key=key,
        value=value,
        subject=masking(_text(fields, "subject", 80)),
        topic=keys.normalise_key(masking(_text(fields, "topic", 80))),
        importance=_whole(fields, "importance", 5, 1, 10),
        confidence=_share(fields, "confidence", 0.8),
        said_at=learned_at,
        day=_date(fields.get("local_date")),
        standing=ExportedState(
            id=_text(fields, "id", 40),
            valid_from=valid_from,
            valid_until=_moment(fields, "valid_until"),
            superseded_by=_text(fields, "superseded_by", 40) or None,
            archived_at=_moment(fields, "archived_at"),
            pinned=fields.get("pinned") is True,
            confirmed=fields.get("confirmed") is True,
            strength=_share(fields, "strength", 1.0),
            access_count=_whole(fields, "access_count", 0, 0, 1 << 31),
            reinforced_count=_whole(fields, "reinforced_count", 0, 0, 1 << 31),
            last_reinforced_at=_moment(fields, "last_reinforced_at", learned_at) or learned_at,
            tags=tuple(masking(tag) for tag in array(fields.get("tags")) if isinstance(tag, str)),
            agent=agent if isinstance(agent, str) else None,
            author=_person(fields.get("by"), masking),
            about=_person(fields.get("about"), masking),
            sources=tuple(n for n in array(fields.get("sources")) if isinstance(n, int)),
        ),
    )


def _line(raw: object, masking: Masking) -> ImportedLine:
    fields = _entry(raw)
    role, number, said_at = fields.get("role"), fields.get("n"), _moment(fields, "time")
    if role not in ("user", "assistant"):
        raise _BadError("nobody knows whether a person or the bot said it")
    if not isinstance(number, int) or isinstance(number, bool) or said_at is None:
        raise _BadError("it has no number or time")
    thread = fields.get("thread")
    return ImportedLine(
        number=number,
        role="user" if role == "user" else "assistant",
        author=_person(fields.get("author"), masking) if role == "user" else None,
        name=masking(_text(fields, "name", 200)),
        text=masking(_text(fields, "text", _MESSAGE_CHARS, needed=True)),
        said_at=said_at,
        thread=thread if isinstance(thread, str) and thread else None,
        # Its memories are in the export.
        learn=False,
        recall=fields.get("recall") is not False,
    )


def _entry(raw: object) -> Fields:
    if not isinstance(raw, dict):
        raise _BadError("it is no object in braces")
    return raw


def _person(value: object, masking: Masking) -> Person | None:
    if value == _OWNER:
        return OWNER
    if not isinstance(value, dict):
        return None
    platform, user_id = value.get("platform"), value.get("user_id")
    if not isinstance(platform, str) or not isinstance(user_id, str) or not platform or not user_id:
        return None
    return Person(platform=platform[:40], user_id=user_id[:200], name=masking(_text(value, "name", 200)))


def _text(fields: Fields, name: str, limit: int, *, needed: bool = False) -> str:
    value = fields.get(name)
    if value is None or value == "":
        if needed:
            raise _BadError(f"its {name} is missing")
        return ""
    if not isinstance(value, str):
        raise _BadError(f"its {name} is no text")
    return string(value)[:limit]


def _moment(fields: Fields, name: str, default: int | None = None) -> int | None:
    value = fields.get(name)
    if not isinstance(value, str):
        return default
    at = moment(value)
    if at is None:
        raise _BadError(f"its {name} is no time of the calendar")
    return at


def _date(value: object) -> str | None:
    day = day_of(value) if isinstance(value, str) else None
    return None if day is None else day.isoformat()


def _whole(fields: Fields, name: str, default: int, low: int, high: int) -> int:
    value = fields.get(name)
    return min(max(value, low), high) if isinstance(value, int) and not isinstance(value, bool) else default


def _share(fields: Fields, name: str, default: float) -> float:
    value = fields.get(name)
    # NaN fails every comparison.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return default


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final[Mapping[str, Kind]] = {"fact": "fact", "style": "style", "event": "event", "reflection": "reflection"}
_MADE: Final = ["profile", "directive"]
_SIGNS: Final = re.compile(r"[\\`*_\[\]<>#|~]")
