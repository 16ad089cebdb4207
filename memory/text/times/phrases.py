"""Requests for reminders in people's words, in six languages: their time and their subject.

A text is read in three steps. The language's table finds pieces (`pieces.py`): an hour, a day, a repetition. The pieces
are put together into one time (`assemble.py`). The rest of the text is the subject of the reminder.

Invariants: pure; the present is given. A time that can't be read surely is asked for instead of being set: if anything
that looks like a time is left over, the reading is `Unclear`. `what` is in the person's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import accumulate, pairwise
from typing import Final
from zoneinfo import ZoneInfo

from languages import LANGUAGES
from memory.text.times.assemble import together
from memory.text.times.pieces import (
    Ahead,
    Clock,
    Clocks,
    Day,
    Every,
    PartOfDay,
    Piece,
    PieceReader,
    Value,
    Window,
    Word,
    Zone,
)
from memory.text.times.readings import Reading, Unclear
from memory.text.times.tables import Table, fold, table

__all__ = ["Reading", "Unclear", "is_request", "languages", "read", "read_bare", "read_time", "several"]

_KANA, _HAN = re.compile("[ぁ-ゖァ-ヺ]"), re.compile("[一-鿿]")
#: Zones in whose English the month stands before the day.
_MONTH_FIRST = re.compile(r"America/|US/|Pacific/(?:Honolulu|Guam|Pago_Pago)|EST|CST6|MST|PST8")
#: Longer texts are no requests; reading them would only take long.
_LONGEST = 600
#: The beginning of a request, for words after a command that need not say it.
_ASKING: Final = {
    "en": "remind me to {}", "zh": "提醒我{}", "de": "erinnere mich an {}", "es": "recuérdame {}",
    "fr": "rappelle-moi de {}", "ja": "{}とリマインドして",
}  # fmt: skip
#: The words that go on after the command, and the beginning that they get: "/remind me to call mum".
_ASKING_ON: Final = {
    "en": ("me ", "remind {}"), "zh": ("我", "提醒{}"), "de": ("mich ", "erinnere {}"), "fr": ("moi ", "rappelle-{}"),
}  # fmt: skip
#: The most words and signs that may stand between reminders in a text that is read as several.
_MOST_BETWEEN = 8
#: What may stand between two reminders in one request.
_BETWEEN = re.compile(
    r"\s*[,;，；、]\s*(?:and|und|et|y|然后|还有|そして)?\s*|\s+(?:and|und|et|y|&|\+)\s+|然后|还有|そして", re.IGNORECASE
)
#: Words that may be a mistyped day; shorter ones are like too many others.
_WORD: Final = re.compile(r"[^\W\d_]{5,}")
#: Words between two times, for which bars stand, and a number that may be one more hour.
_BETWEEN_TIMES: Final = re.compile(r"(?<=\|)([^|¦]*[^\W\d_][^|¦]*)(?=\|)")
_NUMBER: Final = re.compile(r"(?<![\w.:/])\d{1,2}(?:[:.h]\d\d|st|nd|rd|th|er)?\.?(?![\w:/%€$])")
#: A number beside a day that may be its hour, and rules that need none.
_HOUR: Final = re.compile(
    r"(?:\|[ ,]*|(?<![\w.,:/#])(?=\d\d?[ ,]*\|))(?:[01]?\d|2[0-4])(?![a-z\d:/%€$]|[.,]\d|['-][a-z])"
)
_OFTEN: Final = re.compile("RRULE:FREQ=(?:MINUTE|HOUR)LY")
_SIGNS: Final = " \t.,;:!?…、。，；：！？-|¦"
#: The most characters of "and" with the blanks around it.
_AND: Final = 5
#: The most characters that are a few, in a language without spaces.
_FEW: Final = 3
#: The earliest minute of a day for waking a person in the morning: "three" may mean the afternoon.
_EARLIEST = 4 * 60


def is_request(text: str, *, language: str) -> bool:
    """Returns whether a text asks for a reminder, with or without a time."""
    return any(_request(fold(text), table(code)) for code in languages(text, language))


def read(text: str, *, language: str, now: datetime) -> Reading | Unclear | None:
    """Reads a request for a reminder; returns None for a text that is none. `now` is aware and local."""
    readings = []
    for code in languages(text, language):
        folded, words = fold(text), table(code)
        if request := _request(folded, words):
            readings.append(_read(text, folded, words, request, now))
    return _most_explained(readings)


def read_bare(text: str, *, language: str, now: datetime) -> Reading | Unclear:
    """Reads the reminder in words that are known to ask for one, though they need not say so."""
    found = read(text, language=language, now=now)
    for code in (language, "en"):
        begun, asking = _ASKING_ON.get(code, _ASKING_ON["en"])
        asking = asking if text.casefold().startswith(begun) else _ASKING.get(code, _ASKING["en"])
        found = found or read(asking.format(text), language=language, now=now)
    if isinstance(found, Reading) or (found and found.reason != "none"):
        return found
    return read_time(text, language=language, now=now) or found or Unclear(what=text, reason="none")


def several(text: str, *, language: str, now: datetime) -> list[Reading]:
    """Returns the reminders that a request names one after the other, if all of their times are clear; else none.

    A later one without a day of its own is for the day of the one before, unless its time comes only after that day:
    "at 23:00 and at 1:00".
    """
    separators = list(_BETWEEN.finditer(text[:_LONGEST]))
    for between in separators if len(separators) <= _MOST_BETWEEN else ():
        first, rest = _one_of(text[: between.start()], language, now), text[between.end() :]
        if first is None:
            continue
        last = _one_of(rest, language, now)
        if others := [last] if last is not None else several(rest, language=language, now=now):
            return list(accumulate([first, *others], _on_day_of))
    return []


def _one_of(text: str, language: str, now: datetime) -> Reading | None:
    found = read(text, language=language, now=now) or read_time(text, language=language, now=now)
    return found if isinstance(found, Reading) and re.search(r"[^\W\d_]", found.what) else None


def _on_day_of(before: Reading, reading: Reading) -> Reading:
    if reading.day_given or reading.rule or before.rule or reading.first.date() >= before.first.date():
        return reading
    return replace(
        reading, first=reading.first.replace(year=before.first.year, month=before.first.month, day=before.first.day)
    )


def read_time(text: str, *, language: str, now: datetime) -> Reading | Unclear | None:
    """Reads a time without a request, as an answer to "when?"; returns None if there is none.

    The rest of the text is `what`, so "friday 4pm submit timesheet" can be read too.
    """
    readings = []
    for code in languages(text, language):
        folded, words = fold(text), table(code)
        if (alone := words.alone(folded.strip())) is not None:
            readings.append((len(text), _read(alone, alone, words, [], now)[1]))
        else:
            readings.append(_read(text, folded, words, _request(folded, words), now))
    found = _most_explained(readings)
    return None if isinstance(found, Unclear) and found.reason == "none" else found


def languages(text: str, language: str) -> Iterator[str]:
    if len(text) > _LONGEST:
        return
    found = [language] if language in LANGUAGES else []
    if _KANA.search(text):
        found.append("ja")
    elif _HAN.search(text):
        found += ["zh", "ja"]
    yield from dict.fromkeys([*found, "en"])


def _most_explained(readings: list[tuple[int, Reading | Unclear]]) -> Reading | Unclear | None:
    """Returns the reading that explains the most of the text: a time that a language only half knows is no time."""
    return max(readings, key=lambda explained: explained[0])[1] if readings else None


def _request(folded: str, words: Table) -> list[tuple[int, int]]:
    if words.text("not_request").search(folded):
        return []
    greeting = [match.span()] if (match := words.text("greeting").match(folded)) else []
    if found := words.text("request").search(folded):
        return [*greeting, *_spans(found)]
    weak = words.text("request_weak").search(folded)
    if weak and any(_is_moment(meaning) for meaning, _, _ in words.find(_without(folded, _spans(weak)))):
        return [*greeting, *_spans(weak)]
    return []


def _is_moment(meaning: str) -> bool:
    """Returns whether words name the time to speak, and not only the day that a question is about."""
    return meaning in {"clock", "fixed", "in"} or meaning.startswith("every")


def _spans(match: re.Match[str]) -> list[tuple[int, int]]:
    """Returns the span of the match, or of its groups that took part: a request can surround its subject."""
    groups = [match.span(index) for index in range(1, (match.re.groups or 0) + 1) if match.group(index) is not None]
    return groups or [match.span()]


def _read(
    text: str, folded: str, words: Table, request: list[tuple[int, int]], now: datetime
) -> tuple[int, Reading | Unclear]:
    asking = _without(folded, request)
    pieces = PieceReader(words, now.date(), month_first=_is_month_first(now.tzinfo)).pieces(asking)
    elsewhere = False
    if zone := next((piece.value.name for piece in pieces if isinstance(piece.value, Zone) and piece.value.name), ""):
        there = now.astimezone(ZoneInfo(zone))
        pieces = PieceReader(words, there.date(), month_first=_is_month_first(now.tzinfo)).pieces(asking)
        elsewhere, now = there.date() != now.date(), there
    used = _meant(pieces)
    times = _joined(asking, words, [(piece.start, piece.end) for piece in used])
    left = _without(_without(folded, request, "¦"), times)
    often = any(isinstance(piece.value, Every) for piece in used)
    unread = _unread(left, words, often=often) if used else None
    spans = [*request, *times]
    what, values = _what(text, words, [*spans, *([unread.span()] if unread else [])]), _in_parts(asking, used)
    if waking := words.text("waking").search(folded):
        what = what or text[slice(*waking.span())]
        # Nobody is woken at half past six in the evening.
        early = any(isinstance(one, Clock) and one.bare and one.minutes >= _EARLIEST for one in values)
        values += [PartOfDay("morning")] if early and not any(isinstance(one, PartOfDay) for one in values) else []
    explained = sum(end - start for start, end in request) + sum(piece.end - piece.start for piece in pieces)
    found = together(values, now, twelve=words.twelve)
    if elsewhere and any(isinstance(value, Day) and value.kind in ("near", "weekday") for value in values):
        found = "vague"  # tomorrow here, or there?
    if isinstance(found, str):
        return explained, Unclear(what=what, reason=found, often=often)
    days = sum(isinstance(value, Day) for value in values)
    hours = any(isinstance(value, Clock | Clocks | Window | Ahead) for value in values) or _OFTEN.match(
        found.rule or ""
    )
    if (
        unread
        or any(_are_two_days(asking, one, other) for one, other in pairwise(used))
        or (days > 1 and request and _request(_without(folded, request, "¦"), words))  # two reminders on the same day
        or (not hours and _HOUR.search(left))  # tomorrow 10 call Bob
        or any(_is_torn(asking, left, piece) for piece in used)
        or words.text("leftover").search(_without(folded, spans))
    ):
        return explained, Unclear(what=what, reason="vague", often=often)
    return explained, replace(found, what=what)


def _is_torn(text: str, left: str, piece: Piece) -> bool:
    """Returns whether digits go on beside a piece, as in a telephone number; behind a whole "8:30" they need not."""
    behind = re.match(r"[ .-]?\d[ .-]?\d", left[piece.end :]) and re.search(r"(?<![:h]\d)\d$", text[: piece.end])
    return bool(behind or (text[piece.start].isdecimal() and re.search(r"\d[ .-]?$", left[: piece.start])))


def _are_two_days(text: str, one: Piece, other: Piece) -> bool:
    """Returns whether "and" stands between two days: "this Friday and next Friday"."""
    between = text[one.end : other.start]
    joined = len(between) <= _AND and re.search(r"[^\s,，、|]", between) is not None
    return joined and isinstance(one.value, Day) and isinstance(other.value, Day)


def _joined(text: str, words: Table, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the spans of times with the words between them that only join them: "and"."""
    gaps = [(end, start) for (_, end), (start, _) in pairwise(sorted(spans))]
    return [*spans, *((start, end) for start, end in gaps if words.text("joint").fullmatch(text[start:end]))]


def _unread(text: str, words: Table, *, often: bool) -> re.Match[str] | None:
    """Returns words beside the times, which stand as bars, that may limit them and were not read.

    That is an exception, a condition, a zone; a mistyped day; a length or a bare number; if the reminder comes
    `often`, a few words between two times, if more stand elsewhere.
    """
    limits = (words.text(name).search(text) for name in ("unread", "beside", *(("unread_often",) if often else ())))
    mistyped = (word for word in _WORD.finditer(text) if words.is_mistyped(word[0], beside=_is_beside(text, word)))
    if limit := next(filter(None, limits), None) or next(mistyped, None):
        return limit
    for meaning, _, length in words.find(text):
        if meaning == "length" and _is_beside(text, length):
            return length
    for between in _BETWEEN_TIMES.finditer(text) if often else ():
        own = words.text("opening").sub("", between[1]).strip(_SIGNS)
        if own and len(own.split()) <= 2 and (words.spaced or len(own) <= _FEW):
            rest = text[: between.start()] + text[between.end() :]
            if re.search(r"\w", rest):
                return between
    joint = words.text("joint")
    for number in _NUMBER.finditer(text):
        behind, before = text[: number.start()].rpartition("|"), text[number.end() :].partition("|")
        if any(bar and gap.strip() and joint.fullmatch(gap) for bar, gap in (behind[1:], before[1::-1])):
            return number
    return None


def _is_beside(text: str, match: re.Match[str]) -> bool:
    """Returns whether nothing stands between a match and a time."""
    return "|" in (text[: match.start()].rstrip(" ,")[-1:], text[match.end() :].lstrip(" ,")[:1])


def _in_parts(text: str, pieces: list[Piece]) -> list[Value]:
    """Returns the values of pieces; of several parts of the day, each is of the hour that it stands beside."""
    parts = {at: part for at, piece in enumerate(pieces) if (part := _part(piece.value))}
    values: dict[int, Value] = dict(enumerate(piece.value for piece in pieces))
    for hour, piece in enumerate(pieces if len(set(parts.values())) > 1 else ()):
        clock = piece.value
        if not isinstance(clock, Clock):
            continue
        for at in (hour - 1, hour + 1):
            first, last = sorted((hour, at))
            if at in parts and not text[pieces[first].end : pieces[last].start].strip():
                values[hour] = replace(clock, part=parts.pop(at))
                if isinstance(value := values[at], Every | Day):
                    values[at] = replace(value, part=None)
                else:
                    del values[at]
                break
    return list(values.values())


def _part(value: Value) -> str | None:
    return value.name if isinstance(value, PartOfDay) else value.part if isinstance(value, Every | Day) else None


def _meant(pieces: list[Piece]) -> list[Piece]:
    """Returns the pieces without vague words beside a time, which belong to the subject of the reminder."""
    known = {type(piece.value) for piece in pieces}
    idle = {"soon"} if known - {Word, PartOfDay} else set()
    if known & {Day, Ahead}:
        idle.add("period")
    return [piece for piece in pieces if not (isinstance(piece.value, Word) and piece.value.reason in idle)]


def _without(folded: str, spans: list[tuple[int, int]], sign: str = "|") -> str:
    """Returns the text, in its full length, with some stretches replaced by signs that no pattern crosses."""
    for start, end in spans:
        folded = folded[:start] + sign * (end - start) + folded[end:]
    return folded


def _what(text: str, words: Table, spans: list[tuple[int, int]]) -> str:
    kept = "".join("\0" if any(start <= at < end for start, end in spans) else char for at, char in enumerate(text))
    what = re.sub(r"\s+", " ", re.sub(r"\s*\0+\s*", " " if words.spaced else "\0", kept)).replace("\0", "").strip()
    while True:
        shorter = what
        for edge in ("opening", "closing"):
            if match := words.text(edge).search(fold(shorter)):
                shorter = (shorter[: match.start()] + shorter[match.end() :]).strip()
        if shorter == what:
            # The words between this blank and the sign were removed.
            return re.sub(r" +(?=[,.;!])", "", what)
        what = shorter


def _is_month_first(zone: tzinfo | None) -> bool:
    return _MONTH_FIRST.match(str(zone)) is not None
