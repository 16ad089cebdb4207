"""The days that a text names, in six languages: "what did I say last week", 上周五我说了什么, "ich fliege morgen".

A language's table (`times.yaml`) finds the words, `reader.py` tells their days. Here neighbours are put together ("on
Friday last week", "from Monday to Friday"), and the words around them change what they mean (since, before, early).

Invariants: pure: the day is given. Spans are in the order of the text and never overlap. Words that only look like a
time ("may I", "march on", 目前天气) give none. A long text is read at its ends alone: dates in a paste aren't meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final

from languages import LANGUAGES
from memory.text.language import is_common_in_another, language_of
from memory.text.times import calendar
from memory.text.times.calendar import Days, Grain
from memory.text.times.clock import day_of
from memory.text.times.reader import CYCLES, VAGUE_DAYS, DayReader, Looks, NotATime, Rule, part_of, rule_of
from memory.text.times.tables import Table, fold, table

#: The number of characters read at each end of a text.
READ_CHARS: Final = 2_000
_A_WEEK: Final = 7
_LEAD_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
_KANA, _HAN, _OTHERS = re.compile("[ぁ-ゖァ-ヺ]"), re.compile("[一-鿿]"), re.compile(r"[^\W\u3040-\u9fff]")
#: Characters that Japanese does without if it is written without kana.
_CHINESE: Final = re.compile("[的了是在我你他她吗嗎呢吧们們这這那哪么麼]")
#: Languages that people mix into others.
_MIXED: Final = ("en", "zh")
#: A date, or the first and the last, that was added behind a word when the text was stored.
ADDED: Final = re.compile(r"\s?\((\d{4}-\d\d-\d\d)(?:/(\d{4}-\d\d-\d\d))?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The days `first` to `last`, both included, that the words `text[start:end]` mean.

    `date.min` and `date.max` stand for no bound ("before May"). `vague` is True if the words name no time at all
    ("recently", 前阵子), so the days are a guess: good enough for weighing, not for leaving anything out. `rule` tells
    whether the days are counted from the day of the text, recur (so that they were assumed to be the nearest ones), or
    are written in full.
    """

    first: date
    last: date
    start: int
    end: int
    grain: Grain = "days"
    vague: bool = False
    rule: Rule = "written"


def spans(text: str, day: date, *, looks: Looks, language: str | None = None, known: bool = False) -> list[Span]:
    """Returns the days that `text`, said on `day`, names, in its order; empty if it names none.

    A span holds the words of the time and nothing else ("last week", "since Monday", 上个月), so that a caller may drop
    them from a query and see whether the rest asks for anything. A text that `looks` back means the latest of the days
    that recur, and a time long ago is widened; one that looks ahead means the next one. `language` is the expected one,
    for a text that shows none. A filter's value is `known` to name a time: "march" is no walk then.
    """
    if len(text) > 2 * READ_CHARS:
        tail = len(text) - READ_CHARS
        ends = [
            spans(part, day, looks=looks, language=language, known=known) for part in (text[:READ_CHARS], text[tail:])
        ]
        return ends[0] + [replace(span, start=span.start + tail, end=span.end + tail) for span in ends[1]]
    atoms = _atoms(text, day, looks, language, known=known)
    return list(_bounded(fold(text), atoms, day)) if atoms else []


def anchor(text: str, day: date, *, ahead: bool = False) -> str:
    """Returns `text` with the absolute date added behind every word for a day that is counted from `day`.

    Examples are "tomorrow (2026-11-22)" and "下个月 (2026-12)". Days are written `YYYY-MM-DD`, weeks by their Monday,
    months `YYYY-MM`, years `YYYY`. With `ahead` the text is known to speak of the future, so bare weekdays and days
    without a year are dated too. A word that already carries its date is left alone, whatever day it is.
    """
    pieces: list[str] = []
    done = 0
    for span in dated(text, day, ahead=ahead):
        pieces += text[done : span.end], f" ({_written(span, text)})"
        done = span.end
    return "".join(pieces) + text[done:]


def dated(text: str, day: date, *, ahead: bool = False) -> Sequence[Span]:
    """Returns the words to which `anchor` adds a date, without those around them ("since", "in")."""
    return [
        atom
        for atom in _atoms(text[: 2 * READ_CHARS], day, "ahead", None)
        if not (atom.vague or "rolling" in (atom.meaning, *atom.key.split()) or _CARRIES.match(text, atom.end))
        if atom.rule == "counted"
        or (ahead and atom.rule == "recurring" and atom.meaning in _DATED and atom.grain in ("day", "days"))
    ]


def days_named(text: str, *, language: str, now: datetime) -> tuple[date, date] | None:
    """Returns the days from `now` on (aware) that a text names; None if it names none, or several separate ones.

    Both ends are included. Dates that were added behind words take precedence.
    """
    today = now.date()
    if added := ADDED.findall(text):
        days = [(day_of(first), day_of(last or first)) for first, last in added]
        days_apart = {(first, last) for first, last in days if first is not None and last is not None}
    else:
        named = spans(text, today, looks="ahead", language=language)
        days_apart = {
            (max(span.first, today), span.last)
            for span in named
            if span.grain in ("day", "days", "week") and not span.vague and span.last >= today
        }
    return days_apart.pop() if len(days_apart) == 1 else None


#: The recurring days that are dated in a text about the future: a month without a year is too long a time.
_DATED: Final = ("weekday", "weekend", "date", "span")
#: A date in brackets, or digits of another number: 今年62岁.
_CARRIES: Final = re.compile(r"\s{0,2}[(（](?:week of )?\d{4}|\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Atom(Span):
    """A span and the match from which it was read, so that it can be read again for another day."""

    table: Table
    meaning: str
    key: str
    match: re.Match[str]

    @property
    def cycle(self) -> int:
        """The number of days after which the words fit again; 0 if their week, month or year is given."""
        return CYCLES.get(self.meaning, 0) if self.rule == "recurring" else 0

    @property
    def days(self) -> Days:
        return Days(self.first, self.last, self.grain)


def _atoms(text: str, day: date, looks: Looks, language: str | None, *, known: bool = False) -> list[_Atom]:
    """Returns the words for days in the languages of a text, neighbours put together."""
    folded = fold(text)
    by_language = {}
    for code in _tongues(folded):
        words = table(code)
        reader = DayReader(words, day, looks=looks, month_first=code == "en")
        if atoms := list(_of_table(text, folded, words, reader, known=known)):
            by_language[code] = _joined(folded, _narrowed(folded, _longest(atoms)), looks)
    if by_language.keys() <= set(_MIXED):
        codes = list(by_language)
    else:
        told = language_of(text) or language
        if told is None:
            by_language = {
                code: [atom for atom in by_language[code] if _is_sure(text, atom, code)] for code in by_language
            }
        codes = _meant(
            text,
            told,
            {
                code: sum(span.end - span.start for span in _bounded(folded, atoms, day))
                for code, atoms in by_language.items()
            },
        )
    if len(codes) == 1:
        return by_language[codes[0]]
    return _joined(folded, _narrowed(folded, _longest([atom for code in codes for atom in by_language[code]])), looks)


def _is_sure(text: str, atom: _Atom, code: str) -> bool:
    word = text[atom.start : atom.end]
    return word == text.strip() or not is_common_in_another(word, code)


def _tongues(folded: str) -> list[str]:
    kana, han = _KANA.search(folded) is not None, _HAN.search(folded) is not None
    others = _OTHERS.search(folded) is not None
    return [code for code in LANGUAGES if {"zh": han and not kana, "ja": han or kana}.get(code, others)]


def _meant(text: str, told: str | None, covered: dict[str, int]) -> list[str]:
    """Returns the languages to read, the surest first: the one that a text is in, and English and Chinese beside it.

    Where the text doesn't show its language it is the one that explains the most of it. Chinese characters without
    kana may be either language's.
    """
    best = max(covered, key=lambda code: covered[code])
    if told is None or (told not in covered and 2 * covered[best] > len(text)):
        told = best
    elif told == "zh" and not _CHINESE.search(text):
        told = max(("zh", "ja"), key=lambda code: covered.get(code, 0))
    beside = ("en",) if told == "ja" else _MIXED
    return [code for code in dict.fromkeys([told, *beside]) if code in covered]


def _of_table(text: str, folded: str, words: Table, reader: DayReader, *, known: bool) -> Iterator[_Atom]:
    for meaning, marked, match in words.find(folded, "days"):
        key = marked.rstrip("!")
        if not known and not _is_time(text, folded, words, match, meaning, sure=key == marked):
            continue
        try:
            days = reader.read(meaning, key, match)
        except (NotATime, ValueError, OverflowError):  # no date after all: February 30, the year 12000
            continue
        if days.first <= days.last:
            yield _Atom(
                **days._asdict(), start=match.start(), end=match.end(), rule=rule_of(meaning, key, match),
                vague=meaning == "about" and int(key.split()[0]) <= -VAGUE_DAYS,
                table=words, meaning=meaning, key=key, match=match,
            )  # fmt: skip


def _is_time(text: str, folded: str, words: Table, match: re.Match[str], meaning: str, *, sure: bool) -> bool:
    """Returns whether words that may mean something else mean a time, by what stands around them.

    Those are the patterns that say so, and words that are others in lower case ("may", "sun").
    """
    groups = match.groupdict()
    if groups.get("years") or (groups.get("y") and meaning != "year"):
        return True
    name = "month" if groups.get("month") else "weekday"
    if groups.get(name) and words.around("shy").fullmatch(match[name]) and text[match.start(name)].islower():
        if meaning == "date":  # "you may 7 times", but "may 7?" and "may 7th"
            sure = sure and (
                match["d"][-1:].isalpha() or not folded[match.end() : match.end() + 2].lstrip()[:1].isalnum()
            )
        else:
            sure = sure and match.group().startswith("last ")
    if sure:
        return True
    start = match.start()
    before = max(0, start - 32)
    if words.around("needs").search(folded, before, start):
        return True
    opened = words.around("needs_open").search(folded, before, start)
    return opened is not None and words.around("needs_behind").match(folded, match.end()) is not None


def _longest(atoms: list[_Atom]) -> list[_Atom]:
    kept: list[_Atom] = []
    for atom in sorted(atoms, key=lambda atom: (atom.start, -atom.end)):
        if not kept or atom.start >= kept[-1].end:
            kept.append(atom)
    return kept


def _narrowed(text: str, atoms: list[_Atom]) -> list[_Atom]:
    """Merges neighbours of which one lies inside the other: "on Friday last week", "in May last year", 去年的5月."""
    done: list[_Atom] = []
    for atom in atoms:
        if done and atom.table.around("beside").fullmatch(text, done[-1].end, atom.start):
            before = done[-1]
            inner = _inside(before, atom) or _inside(atom, before) or _surer(before, atom)
            if inner is not None:
                done[-1] = replace(inner, start=before.start, end=atom.end)
                continue
        done.append(atom)
    return done


def _inside(inner: _Atom, outer: _Atom) -> _Atom | None:
    if not inner.cycle or outer.vague:
        return None
    within = _again(inner, outer.last, lambda days: outer.first <= days.first and days.last <= outer.last)
    return None if within is None else replace(within, rule=outer.rule)


def _surer(before: _Atom, after: _Atom) -> _Atom | None:
    for weekday, other in ((before, after), (after, before)):
        if weekday.cycle == _A_WEEK and other.cycle != _A_WEEK and other.first == other.last:
            return other
    return None


def _again(atom: _Atom, day: date, fits: Callable[[Days], bool], looks: Looks = "back") -> _Atom | None:
    # A weekday is read as strictly before the day, so it is read a day later first; months and days may fall on the
    # day.
    for away in (1, 0):
        try:
            that_day = day + timedelta(days=away if looks == "back" else -away)
            days = DayReader(atom.table, that_day, looks=looks).read(atom.meaning, atom.key, atom.match)
        except (NotATime, ValueError, OverflowError):
            continue
        if fits(days):
            return replace(atom, **days._asdict())
    return None


def _joined(text: str, atoms: list[_Atom], looks: Looks) -> list[_Atom]:
    """Merges the two ends of a span: "from Monday to Friday", "between May and July", 5月到7月."""
    done: list[_Atom] = []
    for atom in atoms:
        if done and (gap := atom.table.around("to").fullmatch(text, done[-1].end, atom.start)):
            opening = atom.table.around("open").search(text, max(0, done[-1].start - 16), done[-1].start)
            both = _ends(done[-1], atom, looks) if opening or gap["and"] is None else None
            if both is not None:
                done[-1] = replace(both, start=opening.start() if opening else both.start)
                continue
        done.append(atom)
    return done


def _ends(begin: _Atom, end: _Atom, looks: Looks) -> _Atom | None:
    later, earlier = end, begin
    if looks == "ahead" and end.cycle:
        later = _again(end, begin.first, lambda days: days.first >= begin.first, "ahead") or end
    elif end.cycle and not begin.cycle:
        within = calendar.shifted(begin.first, end.cycle - 1)
        later = _again(end, within, lambda days: days.first >= begin.first) or end
    if begin.cycle and (begin.first > later.first or begin.cycle < end.cycle or (looks == "back" and not end.cycle)):
        earlier = _again(begin, later.last, lambda days: days.first <= later.first) or begin
    if earlier.first > later.last:
        return None
    grain: Grain = "days" if {begin.grain, end.grain} <= {"day", "days"} else begin.grain
    rule: Rule = earlier.rule if earlier.rule == later.rule else "recurring"
    return replace(earlier, meaning="span", end=end.end, last=later.last, grain=grain, rule=rule)


def _bounded(text: str, atoms: list[_Atom], today: date) -> Iterator[Span]:
    floor = 0
    for atom, ceiling in zip(atoms, [*(atom.start for atom in atoms[1:]), len(text)], strict=False):
        span = _with_words_around(text, atom, today, floor, ceiling)
        floor = span.end
        yield span


def _with_words_around(text: str, atom: _Atom, today: date, floor: int, ceiling: int) -> Span:
    """Returns the atom's days, changed by the words around them: since, before, 以来, early, the first week of."""
    days, start, end = atom.days, atom.start, atom.end
    words = atom.table
    if part := words.around("part").search(text, max(floor, start - 40), start):
        days, start = part_of(_named(part), days), part.start()
    behind = words.around("part_behind").match(text, end, ceiling)
    if behind and days.grain in ("month", "year"):
        days, end = part_of(_named(behind), days), behind.end()
    lead = words.around("lead").search(text, max(floor, start - 32), start)
    tail = words.around("tail").match(text, end, ceiling)
    named = {name.rstrip("2") for match in (lead, tail) if match for name, word in match.groupdict().items() if word}
    first, last = days[:2] if atom.meaning == "span" else _bounds(days, named, today)
    return Span(
        first=first,
        last=last,
        start=lead.start() if lead else start,
        end=tail.end() if tail else end,
        grain=days.grain if (first, last) == days[:2] else "days",
        vague=atom.vague,
        rule=atom.rule,
    )


def _bounds(days: Days, named: Container[str], today: date) -> tuple[date, date]:
    """Returns the days that "since", "before" and the like make of some days."""
    first, last, _ = days
    if unit := next((unit for unit in _LEAD_DAYS if unit in named), None):
        length = _LEAD_DAYS[unit]
        first, last = (
            (calendar.shifted(first, -length), calendar.shifted(first, -1))
            if "before" in named
            else (calendar.shifted(last, 1), calendar.shifted(last, length))
        )
    elif "before" in named:
        first, last = date.min, calendar.shifted(first, -1)
    elif "until" in named:
        first = date.min
    elif "since" in named:
        last = max(today, last)
    elif "after" in named:
        first = calendar.shifted(last, 1)
        last = today if first <= today else date.max
    return first, last


def _named(match: re.Match[str]) -> str:
    """Returns the name of the group that took part: early, late, first_half, or the number and unit of _0_week."""
    name = next(name for name, word in match.groupdict().items() if word)
    return _PARTS.get(name, name)


#: Groups can't be called by numbers.
_PARTS: Final = {
    f"{number}_{unit}": f"{place}_{unit}"
    for unit in ("week", "weekend")
    for place, number in ((0, "first"), (1, "second"), (2, "third"), (3, "fourth"), (-1, "last"))
}


def _written(span: Span, text: str) -> str:
    first, last = span.first, span.last
    match span.grain:
        case "day":
            return first.isoformat()
        case "week":
            if text[span.start] in "上下这這本":
                return f"{first.isoformat()} 起一周"
            english = "week" in text[span.start : span.end].lower()
            return f"week of {first.isoformat()}" if english else f"{first.isoformat()}/{last.isoformat()}"
        case "month" if (first.year, first.month) == (last.year, last.month):
            return f"{first.year:04}-{first.month:02}"
        case "year" if first.year == last.year:
            return f"{first.year:04}"
        case _:
            return f"{first.isoformat()}/{last.isoformat()}"
