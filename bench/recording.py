"""Reads a recorded conversation from JSON lines, and reports the mistake in every wrong line.

Invariants: the module is pure. A recording is valid as a whole or not at all. Ids are text, times are milliseconds UTC,
and every text can be stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from channels.base import ChatKind, Inbound, Place

#: The name of a recording in the mailbox, in place of the id of a platform's bot.
BOT = "replay"
#: Integer times below this (March 1973 in milliseconds) are taken for seconds: no platform has messages that old.
_LEAST_MS = 100_000_000_000
#: The years that a calendar can express in every timezone. A date beyond them would end a replay half-way.
_YEARS = (1900, 9000)
_MOST_MS = 221_845_392_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REQUIRED = ("id", "time", "chat", "text")
_OPTIONAL = ("channel", "chat_kind", "thread", "author_id", "author_name", "role", "addressed", "reply_to")
#: Other names that recordings use for the same fields.
_SYNONYMS = {"message_id": "id", "timestamp": "time", "content": "text"}
#: The most characters of a wrong value that are shown.
_SHOWN_CHARS = 40


class BadRecording(Exception):
    """Raised if a recording can't be replayed. `str()` lists every problem for the operator, one per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded message. `time` is in milliseconds UTC; `id` is the platform's message id."""

    number: int
    id: str
    time: int
    channel: str
    chat: str
    chat_kind: ChatKind
    thread: str | None
    author_id: str
    author_name: str
    role: Literal["user", "assistant"]
    addressed: bool
    reply_to: str | None
    text: str

    @property
    def place(self) -> Place:
        return Place(channel=self.channel, chat=self.chat, thread=self.thread)

    @property
    def inbound(self) -> Inbound:
        """Returns the message as its platform's channel would give it."""
        chat = Place(channel=self.channel, chat=self.chat).session_key
        return Inbound(
            channel=self.channel,
            platform=self.channel,
            bot_id=BOT,
            update_key=f"{chat} {self.id}",
            chat=self.chat,
            chat_kind=self.chat_kind,
            author_id=self.author_id,
            author_name=self.author_name,
            message_id=self.id,
            text=self.text,
            sent_at=self.time,
            thread=self.thread,
            reply_to=self.reply_to,
            addressed=self.addressed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A checked recording: its lines by time, and the names of unknown fields."""

    lines: tuple[Recorded, ...]
    unknown: tuple[str, ...] = ()

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.channel for line in self.lines))


def read(raw: bytes) -> Recording:
    """Reads the recording in `raw`, one JSON object per line in UTF-8. Raises `BadRecording` with every wrong line.

    Lines are sorted by time; lines with the same time stay in the order of the file.
    """
    problems: list[tuple[int, str]] = []
    unknown: dict[str, None] = {}
    lines: list[Recorded] = []
    for number, row in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not row.strip():
            continue
        wrong, line = _line(number, row, unknown)
        problems += [(number, what) for what in wrong]
        if line is not None:
            lines.append(line)
    problems += _contradictions(lines)
    if problems:
        raise BadRecording(f"line {number}: {what}" for number, what in sorted(problems))
    if not lines:
        raise BadRecording(["there are no messages in it; write one JSON object per line"])
    return Recording(lines=tuple(sorted(lines, key=lambda line: line.time)), unknown=tuple(unknown))


def _line(number: int, row: bytes, unknown: dict[str, None]) -> tuple[list[str], Recorded | None]:
    """Returns the problems of a line of the file, or the recorded message in it. Adds unknown fields to `unknown`."""
    try:
        data = json.loads(row.decode("utf-8"))
    except UnicodeDecodeError:
        return ["is not UTF-8 text"], None
    except json.JSONDecodeError as error:
        return [f"is not JSON ({error.msg} at column {error.colno})"], None
    except RecursionError:
        return ["is nested too deeply"], None
    except ValueError as error:  # a number with thousands of digits
        return [f"is not JSON ({error})"], None
    if not isinstance(data, dict):
        return ["is not a JSON object in braces"], None
    return _Fields(number, data, unknown).line()


class _Fields:
    """A line of the file while its fields are checked. Every method notes mistakes and continues."""

    def __init__(self, number: int, data: dict[str, object], unknown: dict[str, None]) -> None:
        self._number = number
        self._wrong: list[str] = []
        self._data: dict[str, object] = {}
        for written, value in data.items():
            name = _SYNONYMS.get(written, written)
            if name in self._data:
                self._wrong.append(f"has {written} twice, once under another name")
            elif name in _REQUIRED or name in _OPTIONAL:
                self._data[name] = value
            else:
                unknown[written] = None
        # A null in any field counts as a missing field.
        self._data = {name: value for name, value in self._data.items() if value is not None}

    def line(self) -> tuple[list[str], Recorded | None]:
        missing = [name for name in _REQUIRED if name not in self._data]
        role = self._choice("role", ("user", "assistant"), "user")
        if role == "user" and "author_id" not in self._data:
            missing.append("author_id")
        if missing:
            self._wrong.append(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        author_id = self._id("author_id") or ""
        line = Recorded(
            number=self._number,
            id=self._id("id") or "",
            time=self._time(),
            channel=self._id("channel") or "replay",
            chat=self._id("chat") or "",
            chat_kind="group" if self._choice("chat_kind", ("private", "group"), "private") == "group" else "private",
            thread=self._id("thread"),
            author_id=author_id,
            author_name=self._text("author_name") or author_id,
            role="assistant" if role == "assistant" else "user",
            addressed=self._flag("addressed"),
            reply_to=self._id("reply_to"),
            text=self._text("text"),
        )
        return (self._wrong, None) if self._wrong else ([], line)

    def _id(self, name: str) -> str | None:
        value = self._data.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self._text(name) or None

    def _text(self, name: str) -> str:
        value = self._data.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong.append(f"{name} must be text, not {_shown(value)}")
        elif not value.strip():
            self._wrong.append(f"{name} is empty; leave out lines without text")
        else:
            # JSON can hold half a surrogate pair, but a database can't.
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        return ""

    def _choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self._data.get(name, default)
        if value not in choices:
            self._wrong.append(f"{name} must be {' or '.join(choices)}, not {_shown(value)}")
            return default
        return str(value)

    def _flag(self, name: str) -> bool:
        value = self._data.get(name, True)
        if not isinstance(value, bool):
            self._wrong.append(f"{name} must be true or false, not {_shown(value)}")
        return value is True

    def _time(self) -> int:
        value = self._data.get("time")
        moment = 0 if value is None else _moment(value)
        if isinstance(moment, str):
            self._wrong.append(moment)
            return 0
        return moment


def _moment(value: object) -> int | str:
    """Returns a written time in milliseconds UTC, or a text that names its mistake."""
    if isinstance(value, int) and not isinstance(value, bool):
        if _LEAST_MS <= value <= _MOST_MS:
            return value
        return f"time {_shown(value)} is out of range: whole numbers are milliseconds since 1970"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return f"time must be like 2026-05-12T09:30:00+02:00, or milliseconds, not {_shown(value)}"
    if moment.tzinfo is None:
        return f"time {value} has no offset: add one such as Z or +02:00"
    if not _YEARS[0] <= moment.year <= _YEARS[1]:
        return f"time {value} is not in the years {_YEARS[0]} to {_YEARS[1]}"
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _contradictions(lines: Iterable[Recorded]) -> Iterator[tuple[int, str]]:
    """Yields the contradictions between lines about one chat."""
    first: dict[tuple[str, str], Recorded] = {}
    person: dict[tuple[str, str], Recorded] = {}
    for line in lines:
        chat = (line.channel, line.chat)
        known = first.setdefault(chat, line)
        if known.chat_kind != line.chat_kind:
            yield (
                line.number,
                f"chat {line.chat} is {line.chat_kind} here, but {known.chat_kind} in line {known.number}",
            )
        elif line.chat_kind == "private" and line.role == "user":
            owner = person.setdefault(chat, line)
            if owner.author_id != line.author_id:
                rule = "a chat of several people has chat_kind group"
                what = f"{line.author_id} speaks in {owner.author_id}'s private chat (line {owner.number}): "
                yield line.number, what + rule


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
