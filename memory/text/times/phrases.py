"""Requests for reminders in people's words, in six languages: their time and their subject.

A text is read in three steps. The language's table finds pieces (`pieces.py`): an hour, a day, a repetition. The pieces
are put together into one time (`together.py`). The rest of the text is the subject of the reminder.

Invariants: pure; the present is given. A time that can't be read surely is asked for instead of being set: if anything
that looks like a time is left over, the reading is `Unclear`. `what` is in the person's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import accumulate

from languages import LANGUAGES
from memory.text.times.pieces import Ahead, Clock, Day, Every, PartOfDay, Piece, PieceReader, Word
from memory.text.times.readings import Reading, Unclear
from memory.text.times.tables import Table, fold, table
from memory.text.times.together import together

__all__ = ["Reading", "Unclear", "is_request", "languages", "read", "read_time", "several"]

_KANA, _HAN = re.compile("[ぁ-ゖァ-ヺ]"), re.compile("[一-鿿]")
#: Zones in whose English the month stands before the day.
_MONTH_FIRST = re.compile(r"America/|US/|Pacific/(?:Honolulu|Guam|Pago_Pago)|EST|CST6|MST|PST8")
#: Longer texts are no requests; reading them would only take long.
_LONGEST = 600
#: The most words and signs that may stand between reminders in a text that is read as several.
_MOST_BETWEEN = 8
#: What may stand between two reminders in one request.
_BETWEEN = re.compile(
    r"\s*[,;，；、]\s*(?:and|und|et|y|然后|还有|そして)?\s*|\s+(?:and|und|et|y|&|\+)\s+|然后|还有|そして", re.IGNORECASE
)
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
    return found if isinstance(found, Reading) and found.what else None


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
    reader = PieceReader(words, now.date(), month_first=_is_month_first(now.tzinfo))
    pieces = reader.pieces(_without(folded, request))
    used = _meant(pieces)
    spans = [*request, *((piece.start, piece.end) for piece in used)]
    what, values = _what(text, words, spans), [piece.value for piece in used]
    if waking := words.text("waking").search(folded):
        what = what or text[slice(*waking.span())]
        # Nobody is woken at half past six in the evening.
        early = any(isinstance(one, Clock) and one.bare and one.minutes >= _EARLIEST for one in values)
        values += [PartOfDay("morning")] if early and not any(isinstance(one, PartOfDay) for one in values) else []
    explained = sum(end - start for start, end in request) + sum(piece.end - piece.start for piece in pieces)
    found = together(values, now, twelve=words.twelve)
    if isinstance(found, str):
        return explained, Unclear(what=what, reason=found)
    if words.text("leftover").search(_without(folded, spans)):
        return explained, Unclear(what=what, reason="vague")
    return explained, replace(found, what=what)


def _meant(pieces: list[Piece]) -> list[Piece]:
    """Returns the pieces without vague words beside a time, which belong to the subject of the reminder."""
    known = {type(piece.value) for piece in pieces}
    idle = {"soon"} if known - {Word, PartOfDay} else set()
    if known & {Day, Every, Ahead}:
        idle.add("period")
    return [piece for piece in pieces if not (isinstance(piece.value, Word) and piece.value.reason in idle)]


def _without(folded: str, spans: list[tuple[int, int]]) -> str:
    """Returns the text, in its full length, with some stretches replaced by signs that no pattern crosses."""
    for start, end in spans:
        folded = folded[:start] + "|" * (end - start) + folded[end:]
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
