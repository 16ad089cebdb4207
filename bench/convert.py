"""Turns conversation sets of several shapes into lines for `python -m bench.replay`, with their questions.

Invariants: pure but for reading the given files; every message keeps a time, and times follow the order in which a
set tells them; what can't be used is counted by its reason, never dropped in silence.

    python -m bench.convert FILE_OR_FOLDER > lines.jsonl

Shapes: LoCoMo (`conversation` with `session_1`, `session_1_date_time` …), a folder with MADial's `memory.jsonl` and
`dialogue*.jsonl`, MemDaily (`message_list`), EverMemOS (`conversation_list`).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

Row: TypeAlias = dict[str, object]
"""One line of a recording, as docs/replay.md describes it."""

#: The time between two messages of a sitting where a set tells only when the sitting began.
STEP: Final = timedelta(seconds=20)
#: Where a set tells no date at all, its sittings lie a day apart from here on.
SOMEDAY: Final = datetime(2023, 1, 1, 9, tzinfo=UTC)


class UnknownShape(Exception):
    """A file that is none of the known shapes. `str()` says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question: who asks in which chat, when, and which messages of that chat hold the answer."""

    chat: str
    asker: str
    at: datetime
    text: str
    gold: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A set ready to be stored and asked. `left_out` counts what is not used by its reason.

    `granularity` says what a gold id names; `notes` what had to be assumed.
    """

    name: str
    granularity: str
    rows: tuple[Row, ...]
    asked: tuple[Asked, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def smallest(self) -> int:
        """Messages of the smallest chat anything is asked in."""
        sizes = Counter(str(row["chat"]) for row in self.rows)
        return min((sizes[one.chat] for one in self.asked), default=0)


def load(path: Path) -> Dataset:
    """The set at `path`, whatever its shape. Raises `UnknownShape`."""
    if path.is_dir():
        dialogues = sorted(path.glob("dialogue*.jsonl"))
        memories = path / "memory.jsonl"
        if not dialogues or not memories.is_file():
            raise UnknownShape(f"{path} holds no memory.jsonl with dialogue*.jsonl beside it")
        return madial(path.name, _lines(memories), [dialogue for file in dialogues for dialogue in _lines(file)])
    data = json.loads(path.read_text("utf-8-sig"))
    if isinstance(data, dict) and "conversation_list" in data:
        return evermemos(path.stem, data)
    samples = _samples(data)
    if samples and all("message_list" in sample for sample in samples):
        return memdaily(path.stem, samples)
    if samples and all(_sessions(sample) for sample in samples):
        return locomo(path.stem, samples)
    raise UnknownShape(f"{path} has neither conversation_list, message_list nor session_1 … in it")


def locomo(name: str, samples: Sequence[Mapping[str, Any]]) -> Dataset:
    """Long chats with dated sessions; each turn is a message, gold ids are the turns in `evidence`."""
    rows: list[Row] = []
    asked: list[Asked] = []
    left_out: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for i, sample in enumerate(samples, 1):
        chat = str(sample.get("sample_id") or f"conversation-{i}")
        talk = _talk(chat, sample, left_out, notes)
        rows += talk
        if not talk:
            continue
        ids = {str(row["id"]) for row in talk}
        first = sample.get("conversation", sample).get("speaker_a")
        asker = f"{chat}/{first}" if isinstance(first, str) and first else str(talk[0]["author_id"])
        at = max(_when(row) for row in talk) + timedelta(days=1)
        for question in sample.get("qa", []):
            gold = frozenset(re.findall(r"D\d+:\d+", _joined(question.get("evidence")))) & ids
            if not gold:
                left_out["questions without evidence that exists"] += 1
                continue
            category = str(question.get("category", "none"))
            text = str(question["question"])
            asked.append(Asked(chat=chat, asker=asker, at=at, text=text, gold=gold, category=category))
    return Dataset(
        name=name,
        granularity="turn",
        rows=tuple(rows),
        asked=tuple(asked),
        left_out=left_out,
        notes=_told(notes),
    )


def madial(name: str, memories: Iterable[Mapping[str, Any]], dialogues: Iterable[Mapping[str, Any]]) -> Dataset:
    """Chinese memories of one person, each a sitting of its own; asked with the turns before a memory comes up."""
    kept = [value for line in memories for value in (line.values() if "event" not in line else [line])]
    per_day: Counter[str] = Counter()
    rows: list[Row] = []
    for memory in kept:
        day = moment(memory.get("time")) or SOMEDAY
        # More than three hours apart, so that each is a sitting; seven such fit into a day.
        nth = per_day[str(day.date())] % 7
        per_day[str(day.date())] += 1
        at = day.replace(hour=1, minute=0) + nth * timedelta(minutes=192)
        rows.append(_row(str(memory["id"]), at, name, "person", str(memory["event"]), kind="private"))
    ids = {str(row["id"]) for row in rows}
    left_out: Counter[str] = Counter()
    asked: list[Asked] = []
    at = max((_when(row) for row in rows), default=SOMEDAY) + timedelta(days=1)
    for dialogue in dialogues:
        gold = frozenset(str(one) for one in dialogue["relevant-id"]) & ids
        tested = dialogue.get("test-turn") or [len(dialogue["dialogue"])]
        turns = [_spoken(turn) for turn in dialogue["dialogue"][: max(tested)]]
        text = "\n".join(said for who, said in turns if who and who != "Assistant")
        if gold and text:
            asked.append(Asked(chat=name, asker="person", at=at, text=text, gold=gold, category="none"))
        else:
            left_out["dialogues without a relevant memory or a user's turn before it"] += 1
    rows.sort(key=_when)
    return Dataset(name=name, granularity="memory", rows=tuple(rows), asked=tuple(asked), left_out=left_out)


def memdaily(name: str, samples: Sequence[Mapping[str, Any]], *, more_than: int = 7) -> Dataset:
    """Many people, each with a few dated messages; asked are those with more than `more_than` messages."""
    rows: list[Row] = []
    asked: list[Asked] = []
    left_out: Counter[str] = Counter()
    for i, sample in enumerate(samples):
        kind = str(sample.get("file", "none")).removesuffix(".json")
        chat = f"{i}-{kind}-{sample.get('tid', i)}"
        talk = [
            _row(str(said["mid"]), moment(said.get("time")) or SOMEDAY + k * STEP, chat, chat, said["message"],
                 kind="private")
            for k, said in enumerate(sample["message_list"])
            if str(said["message"]).strip()
        ]  # fmt: skip
        rows += talk
        ids = {str(row["id"]) for row in talk}
        for question in sample.get("question_list", []):
            gold = frozenset(str(one) for one in question["target_step_id"]) & ids
            if len(talk) <= more_than:
                left_out[f"questions to at most {more_than} messages"] += 1
            elif not gold:
                left_out["questions without a message that holds the answer"] += 1
            else:
                at = moment(question.get("time")) or max(map(_when, talk)) + timedelta(days=1)
                asked.append(Asked(chat=chat, asker=chat, at=at, text=question["question"], gold=gold, category=kind))
    return Dataset(name=name, granularity="message", rows=tuple(rows), asked=tuple(asked), left_out=left_out)


def evermemos(name: str, data: Mapping[str, Any]) -> Dataset:
    """A chat of several people or of one with an assistant; nothing is asked."""
    about = data.get("session_meta", {})
    people = about.get("user_details", {})
    bots = {user for user, details in people.items() if details.get("role") == "assistant"}
    chat = str(about.get("group_id") or name)
    kind = "private" if len(people) - len(bots) == 1 else "group"
    left_out: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    taken: set[str] = set()
    rows: list[Row] = []
    for said in data["conversation_list"]:
        at = moment(said.get("create_time"))
        text = said.get("content")
        if at is None or not isinstance(text, str) or not text.strip():
            left_out["messages without words or a time"] += 1
            continue
        sender = str(said["sender"])
        full = people.get(sender, {}).get("full_name")
        given = _free(str(said["message_id"]), taken, notes)
        row = _row(given, at, chat, sender, text, kind=kind, name=str(said.get("sender_name") or full or sender))
        rows.append(row | {"role": "assistant" if sender in bots else "user"})
    return Dataset(name=name, granularity="message", rows=tuple(rows), left_out=left_out, notes=_told(notes))


def moment(text: object) -> datetime | None:
    """The time that `text` tells, in UTC where it names no zone; None when it can't be read.

    Formats: ISO 8601; those in `_FORMATS`, which LoCoMo, MemDaily and exports of chats use, with names of weekdays and
    words such as "on" and "at" passed over.
    """
    if not isinstance(text, str):
        return None
    plain = _HAN_DATE.sub(lambda m: f"{m[1]}-{m[2]:0>2}-{m[3]:0>2} ", _PASSED_OVER.sub(" ", text.strip()))
    plain = " ".join(plain.replace(" ,", ",").split())
    for form in (None, *_FORMATS):
        try:
            found = datetime.fromisoformat(plain) if form is None else datetime.strptime(plain, form)  # noqa: DTZ007
        except ValueError:
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the lines; what was left out or assumed goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m bench.convert", description="A conversation set as replay lines.")
    parser.add_argument("path", type=Path, help="a file or MADial's folder")
    dataset = load(parser.parse_args(arguments).path)
    for row in dataset.rows:
        print(json.dumps(row, ensure_ascii=False))
    for what in dataset.left_out:
        print(f"left out: {what}: {dataset.left_out[what]}", file=sys.stderr)
    for note in dataset.notes:
        print(note, file=sys.stderr)


#: 12-hour times stand with their date before or after them; dots are European, day first.
_FORMATS: Final = tuple(
    f"{date}{joint}{time}".strip(", ") if not first else f"{time}{joint}{date}".strip(", ")
    for date in (
        "%d %B, %Y", "%d %B %Y", "%B %d, %Y", "%B %d %Y", "%d %b, %Y", "%d %b %Y", "%b %d, %Y",
        "%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y-%m-%d", "%m/%d/%Y",
    )
    for time in ("%I:%M %p", "%H:%M", "%H:%M:%S", "%I:%M:%S %p", "")
    for joint in (" ", ", ")
    for first in (True, False)
)  # fmt: skip
_PASSED_OVER: Final = re.compile(
    r"\((?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\)|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b,?"
    r"|\b(?:on|at|of)\b|(?<=\d)(?:st|nd|rd|th)\b|[周星]期?[一二三四五六日天](?=\s|$)",
    re.IGNORECASE,
)
_HAN_DATE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日")
_SPOKEN: Final = re.compile(r'\s*<([^>]{1,40})>\s*[:：]?\s*"?(.*)', re.DOTALL)


def _talk(chat: str, sample: Mapping[str, Any], left_out: Counter[str], notes: Counter[str]) -> list[Row]:
    """The messages of one conversation of LoCoMo's shape, in their order."""
    rows: list[Row] = []
    taken: set[str] = set()
    last = SOMEDAY
    for number, turns, told in _sessions(sample):
        begun = moment(told)
        if begun is None:
            notes["sessions without a date that can be read, put a day after the one before"] += 1
            begun = last + timedelta(days=1)
        for nth, turn in enumerate(turns):
            text = " ".join(
                part.strip()
                for part in (turn.get("text") or turn.get("clean_text"), turn.get("blip_caption"))
                if isinstance(part, str) and part.strip()
            )
            if not text:
                left_out["turns without words"] += 1
                continue
            own = moment(turn.get("date_time")) or moment(turn.get("timestamp"))
            last = max(own or begun + nth * STEP, begun)
            given = _free(str(turn.get("dia_id") or f"D{number}:{nth + 1}"), taken, notes)
            speaker = str(turn.get("speaker") or "somebody")
            rows.append(_row(given, last, chat, f"{chat}/{speaker}", text, kind="group", name=speaker))
    return rows


def _free(given: str, taken: set[str], notes: Counter[str]) -> str:
    """`given`, or where that id was taken already another: a replay takes an id once."""
    free = given
    if given in taken:
        notes["messages whose id was taken, stored under another"] += 1
        free = next(name for n in count(2) if (name := f"{given}#{n}") not in taken)
    taken.add(free)
    return free


def _sessions(sample: Mapping[str, Any]) -> list[tuple[int, list[dict[str, Any]], object]]:
    """(number, turns, date as written) of each session, by number."""
    talk = sample.get("conversation", sample)
    if not isinstance(talk, dict):
        return []
    numbers = [int(m[1]) for key in talk if (m := re.fullmatch(r"session_(\d+)", key)) and isinstance(talk[key], list)]
    return [(n, talk[f"session_{n}"], talk.get(f"session_{n}_date_time")) for n in sorted(numbers)]


def _told(notes: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{what}: {times}" for what, times in notes.items())


def _samples(data: Any) -> list[Mapping[str, Any]]:
    if isinstance(data, dict):
        data = [data] if _sessions(data) or "message_list" in data else list(data.values())
    return [sample for sample in data if isinstance(sample, dict)] if isinstance(data, list) else []


def _row(id_: str, at: datetime, chat: str, author: str, text: str, *, kind: str, name: str = "") -> Row:
    return {
        "id": id_,
        "time": at.isoformat(),
        "channel": "replay",
        "chat": chat,
        "chat_kind": kind,
        "author_id": author,
        "author_name": name or author,
        "role": "user",
        "text": text,
    }


def _when(row: Row) -> datetime:
    return datetime.fromisoformat(str(row["time"]))


def _spoken(turn: str) -> tuple[str, str]:
    """(who, what) of a turn written as `<who>:"what"`; nobody for marks of begin and end."""
    match = _SPOKEN.fullmatch(turn)
    if match is None or not match[2].strip():
        return "", ""
    return match[1], match[2].strip().removesuffix('"').strip()


def _joined(evidence: object) -> str:
    return " ".join(map(_joined, evidence)) if isinstance(evidence, list) else str(evidence or "")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8-sig").splitlines():
        if line.strip():
            yield json.loads(line)


if __name__ == "__main__":
    main()
