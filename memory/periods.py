"""The time that a question asks about, English and Chinese: "what did I say last week", 上周五我说了什么 → days.

Invariants: The functions are pure: the day is given. Questions look back, so a bare month, weekday or day is the latest
past one. Ranges are in the order of the text and their words never overlap. A vague time is widened, the more so the
longer ago it is. Words that only look like a time ("may I", "march on", 目前天气) give no range. Weeks start on
Monday. Seasons are those of the northern hemisphere, by whole months.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final, TypeAlias

from memory.dates import (
    MONTH_EN,
    NEAR_DAYS,
    NUMBER_EN,
    NUMBER_ZH,
    WEEK_ZH,
    WEEKDAY_EN,
    WEEKDAYS_EN,
    beginning_of,
    coming_weekday,
    end_of,
    latest_weekday,
    month_at,
    month_en,
    number_en,
    number_zh,
    steps_zh,
    week_at,
    weekday_at_zh,
    weekend_at,
    whole,
    year_at,
    years_zh,
)

#: The number of characters read at each end of a text: dates inside a long paste are not asked about.
READ_CHARS: Final = 2_000
#: The days that "recently", "the other day" and the like reach back.
RECENT_DAYS: Final = 21
OTHER_DAY_DAYS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The days `first` to `last`, both included, that the words `text[start:end]` mean.

    `date.min` and `date.max` stand for no bound ("before May"). `vague` is True if the words name no time at all
    ("recently", 前阵子), so the days are a guess: good enough for weighing, not for leaving anything out.
    """

    first: date
    last: date
    start: int
    end: int
    vague: bool = False


def ranges(text: str, today: date) -> list[Range]:
    """Returns the times that `text` asks about when said on `today`, in the order of the text; empty if it names none.

    The spans hold the words of the time and nothing else ("last week", "since Monday", 上个月). So a caller may drop
    them from a query, and see from the rest whether the question asks for anything but the time.
    """
    atoms = [atom for begin, end in _windows(len(text)) for atom in _atoms(text, begin, end, today)]
    return list(_bounded(text, _joined(text, _narrowed(text, _longest(atoms))), today))


def moments(period: Range, timezone: str) -> tuple[int, int]:
    """Returns `period` in milliseconds UTC: its first midnight in `timezone` and, excluded, the one after its end."""
    return beginning_of(period.first, timezone), end_of(period.last, timezone)


_Days: TypeAlias = tuple[date, date]
_Read: TypeAlias = Callable[[re.Match[str], date], _Days]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A rule for one form of words.

    `cycle`, in days, is set if the rule takes the latest past date because no year or week is given. Such a date is
    read again beside words that give it ("in May last year", "from Monday to Friday").
    """

    pattern: re.Pattern[str]
    read: _Read
    cycle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Atom:
    start: int
    end: int
    first: date
    last: date
    rule: _Rule
    match: re.Match[str]

    @property
    def cycle(self) -> int:
        """The rule's cycle; 0 if the year was given."""
        said = self.match.groupdict()
        return 0 if said.get("year") or said.get("rel") else self.rule.cycle


def _windows(length: int) -> list[tuple[int, int]]:
    if length <= 2 * READ_CHARS:
        return [(0, length)]
    return [(0, READ_CHARS), (length - READ_CHARS, length)]


def _atoms(text: str, begin: int, end: int, today: date) -> Iterator[_Atom]:
    for rule in _RULES:
        for match in rule.pattern.finditer(text, begin, end):
            try:
                first, last = rule.read(match, today)
            except (ValueError, OverflowError):  # no date after all: "may I", February 30, the year 12000
                continue
            if first <= last:
                yield _Atom(start=match.start(), end=match.end(), first=first, last=last, rule=rule, match=match)


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
        if done and _BESIDE.fullmatch(text, done[-1].end, atom.start):
            before = done[-1]
            inner = _inside(before, atom) or _inside(atom, before) or _surer(before, atom)
            if inner is not None:
                done[-1] = replace(inner, start=before.start, end=atom.end)
                continue
        done.append(atom)
    return done


def _inside(inner: _Atom, outer: _Atom) -> _Atom | None:
    if not inner.cycle:
        return None
    return _again(inner, outer.last, lambda first, last: outer.first <= first and last <= outer.last)


def _surer(before: _Atom, after: _Atom) -> _Atom | None:
    """Returns the date, not the weekday, if the two stand side by side and disagree: "Friday, May 7"."""
    for weekday, other in ((before, after), (after, before)):
        if weekday.cycle == _A_WEEK and other.cycle != _A_WEEK and other.first == other.last:
            return other
    return None


def _again(atom: _Atom, day: date, fits: Callable[[date, date], bool]) -> _Atom | None:
    """Returns `atom` read again as the latest one up to `day`, if that fits."""
    # A weekday is read as strictly before the day, so it is read a day later first; months and days may fall on the
    # day.
    for ahead in (1, 0):
        try:
            first, last = atom.rule.read(atom.match, day + timedelta(days=ahead))
        except (ValueError, OverflowError):
            continue
        if fits(first, last):
            return replace(atom, first=first, last=last)
    return None


def _joined(text: str, atoms: list[_Atom]) -> list[_Atom]:
    """Merges the two ends of a span: "from Monday to Friday", "between May and July", 5月到7月."""
    done: list[_Atom] = []
    for atom in atoms:
        if done and (gap := _TO.fullmatch(text, done[-1].end, atom.start)):
            opening = _FROM.search(text, max(0, done[-1].start - 16), done[-1].start)
            both = _ends(done[-1], atom) if opening or gap["and"] is None else None
            if both is not None:
                done[-1] = replace(both, start=opening.start() if opening else both.start)
                continue
        done.append(atom)
    return done


def _ends(begin: _Atom, end: _Atom) -> _Atom | None:
    later = end
    if end.cycle and not begin.cycle:
        within = _shift(begin.first, end.cycle - 1)
        later = _again(end, within, lambda first, _: first >= begin.first) or end
    earlier = begin
    if begin.cycle and (begin.first > later.first or not end.cycle):
        earlier = _again(begin, later.last, lambda first, _: first <= later.first) or begin
    if earlier.first > later.last:
        return None
    return replace(earlier, end=end.end, last=later.last)


def _bounded(text: str, atoms: list[_Atom], today: date) -> Iterator[Range]:
    floor = 0
    for atom, ceiling in zip(atoms, [*(atom.start for atom in atoms[1:]), len(text)], strict=False):
        found = _meant(text, atom, today, floor, ceiling)
        floor = found.end
        yield found


def _meant(text: str, atom: _Atom, today: date, floor: int, ceiling: int) -> Range:
    """Returns the atom's range, changed by the words around it: since, before, 以来, early, the first week of."""
    first, last, start = atom.first, atom.last, atom.start
    if part := _PART.search(text, max(floor, start - 40), start):
        first, last = _part(part["part"].lower(), first, last)
        start = part.start()
    lead = _LEAD.search(text, max(floor, start - 32), start)
    tail = _TAIL.match(text, atom.end, ceiling)
    assert tail is not None  # all of it is optional
    said = {name for found in (lead, tail) if found for name, word in found.groupdict().items() if word}
    if lead and lead["unit"] and said & {"before", "after"}:
        days = _LEAD_DAYS[lead["unit"].lower()]
        first, last = (
            (_shift(first, -days), _shift(first, -1)) if "before" in said else (_shift(last, 1), _shift(last, days))
        )
    elif "before" in said:
        first, last = date.min, _shift(first, -1)
    elif "until" in said:
        first = date.min
    elif said & {"since", "since_en", "since_zh"}:
        last = max(today, last)
    elif "after" in said:
        first = _shift(last, 1)
        last = today if first <= today else date.max
    begin = lead.start() if lead else start
    return Range(first=first, last=last, start=begin, end=tail.end(), vague=atom.match.group().lower() in _VAGUE)


_LEAD_DAYS: Final = {"day": 1, "night": 1, "week": 7, "weekend": 7, "month": 31, "year": 366}


def _shift(day: date, days: int) -> date:
    """Returns the day `days` later, or the end of the calendar."""
    return date.fromordinal(min(max(day.toordinal() + days, date.min.toordinal()), date.max.toordinal()))


_PART_OF = r"early|mid|middle|late|start|beginning|end|(?:first|second|third|fourth|last) (?:week|weekend)"


def _part(word: str, first: date, last: date) -> _Days:
    """Returns a third of a span for early, mid and late; a week or weekend of it by its number."""
    which, _, unit = word.partition(" ")
    if unit:
        number = {"first": 0, "second": 1, "third": 2, "fourth": 3}.get(which, -1)
        if unit == "week":
            begin = _shift(first, 7 * number) if number >= 0 else max(first, _shift(last, -6))
            return begin, _shift(begin, 6)
        saturday = _shift(first, (5 - first.weekday()) % 7 + 7 * number)
        saturday = saturday if number >= 0 else _shift(last, -((last.weekday() - 5) % 7))
        return saturday, _shift(saturday, 1)
    third = (last - first).days // 3
    if which in {"early", "start", "beginning"}:
        return first, _shift(first, third)
    return (_shift(last, -third), last) if which in {"late", "end"} else (_shift(first, third), _shift(last, -third))


# Forms of words -----------------------------------------------------------------------------------------------------

_B = r"(?<![A-Za-z\d])"
_E = r"(?![A-Za-z\d])"
_YEAR = r"(?:19|20)\d\d"
_ORD = r"(?:st|nd|rd|th)"
_SEASON_EN = r"(?:spring|summer|autumn|fall|winter)"
_DASH = r"[-–—~～]"
_ABBR = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_YEARS_ZH = r"(?:[今去明]年|大前年|(?<![年以目之])前年|(?<![年以今之])[后後]年)"
_NUM_ZH = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_UNIT_ZH = r"(?:小时|小時|分钟|分鐘|天|周|週|个?星期|個?星期|个?礼拜|個?禮拜|个月|個月|年)"
_SEASON_ZH = r"(?:[春夏秋冬][天季])"
_CALLED_ZH = r"(?![亮饼餅球光嫂子薪天龄齡票租费費经經供考报報活])"

#: With ASCII, letters that merely fold to ours, such as the long s, don't match.
_FLAGS: Final = re.IGNORECASE | re.ASCII

_BESIDE = re.compile(r"\s{0,2}(?:的|,|，|(?:on|of|in)(?: the)?)?\s{0,2}", _FLAGS)
_FROM = re.compile(r"(?:\b(?:from|between) |从|從)$", _FLAGS)
_TO = re.compile(
    rf"\s{{0,2}}(?:(?:to|until|till|through|thru|{_DASH}|到|至)|(?P<and>and|和|与))\s{{0,2}}(?:the )?", _FLAGS
)
_PART = re.compile(
    rf"(?:{_B}(?:the )?(?P<part>{_PART_OF})(?:[ -]| (?:part )?(?:of|in) )(?:the )?)$",
    _FLAGS,
)
_LEAD = re.compile(
    rf"{_B}(?:(?:the )?(?:(?P<unit>day|night|weekend|week|month|year) )?(?:right |just )?"
    r"(?:(?P<before>before|prior to)|(?P<after>after))"
    r"|(?:ever )?(?P<since>since|starting|as of)|(?P<until>until|till)"
    r"|(?:back )?(?:in|on|during|at|over|within|of|from|around|throughout|between|for))"
    r"(?: the)? $|(?:(?P<since_zh>自从|自從|自|打从)|从|從|在|于|於|到)$",
    _FLAGS,
)
_TAIL = re.compile(
    r"(?:['’]s(?![A-Za-z]))?"
    r"(?: (?:early |late )?(?:morning|afternoon|evening|night|noon)(?![A-Za-z\d])"
    r"|(?P<since_en> (?:onwards?|on)(?= ?[?.!,]|$)))?"
    r"(?:凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|夜裡|夜晚|[早晚](?![餐饭飯点點会會]))?"
    r"(?:的时候|的時候|时候|那天|那会儿|当天|當天|期间|期間)?"
    r"(?:(?:(?P<before>以前|之前|前(?![天年面几幾些两兩阵段后後夫妻男女任]))"
    r"|(?P<since>以来|以來|至今|到现在|到現在|到今天|开始|開始|起(?![床来來点飞]))"
    r"|(?P<after>以后|以後|之后|之後|后(?![天年来面悔])|後(?![天年來面悔]))))?",
    _FLAGS,
)


def _near(match: re.Match[str], today: date) -> _Days:
    earliest, latest = _NEAR[match.group().lower()]
    return today + timedelta(days=earliest), today + timedelta(days=latest)


# A night that began yesterday ends today.
_NEAR: Final = {word: (day, day) for word, day in NEAR_DAYS.items()} | {
    "the night before last": (-2, -1), "last night": (-1, 0), "earlier today": (0, 0),
    "the other day": (-OTHER_DAY_DAYS, -1), "the other night": (-OTHER_DAY_DAYS, -1),
    "recently": (-RECENT_DAYS, 0), "lately": (-RECENT_DAYS, 0), "of late": (-RECENT_DAYS, 0),
    "these days": (-RECENT_DAYS, 0),
    "前日": (-2, -2), "前晚": (-2, -1), "昨日": (-1, -1), "昨晚": (-1, 0), "昨夜": (-1, 0), "昨早": (-1, -1),
    "今日": (0, 0), "今晨": (0, 0), "明日": (1, 1),
    "最近": (-RECENT_DAYS, 0), "近来": (-RECENT_DAYS, 0), "近來": (-RECENT_DAYS, 0), "近期": (-RECENT_DAYS, 0),
    "近日": (-RECENT_DAYS, 0), "这阵子": (-RECENT_DAYS, 0), "這陣子": (-RECENT_DAYS, 0),
    "这段时间": (-RECENT_DAYS, 0), "這段時間": (-RECENT_DAYS, 0), "前几天": (-OTHER_DAY_DAYS, -1),
    "前幾天": (-OTHER_DAY_DAYS, -1), "前两天": (-4, -1), "前兩天": (-4, -1), "前些天": (-14, -1),
    "前些日子": (-90, -1), "前阵子": (-90, -1), "前陣子": (-90, -1), "前段时间": (-90, -1), "前段時間": (-90, -1),
    "前不久": (-30, -1), "不久前": (-30, -1),
}  # fmt: skip
_VAGUE: Final = frozenset(word for word, (first, _) in _NEAR.items() if first <= -4)
#: Words such as 目前天气 and 今后天天 contain 前天 and 后天 by accident; 最近的车站 is the nearest station.
_GUARDED: Final = {
    "前天": r"(?<![目以之])前天(?!天)", "后天": r"(?<![今以之])后天(?!天)", "後天": r"(?<![今以之])後天(?!天)",
    "最近": r"最近(?!的)",
}  # fmt: skip
_NEAR_LONGEST = sorted(_NEAR, key=len, reverse=True)
_NEAR_EN = "|".join(word for word in _NEAR_LONGEST if word.isascii())
_NEAR_ZH = "|".join(_GUARDED.get(word, word) for word in _NEAR_LONGEST if not word.isascii())


def _ago(match: re.Match[str], today: date) -> _Days:
    """Returns the days from the larger number to the smaller, with slack; hours and minutes may start yesterday."""
    least, most = _amount(match)
    unit = _unit(match["unit"])
    if unit in {"hour", "minute"}:
        hours = most if unit == "hour" else most / 60
        return today - timedelta(days=int(hours // 24) + 1), today
    first = _back(today, most, unit) - timedelta(days=_slack(most, unit))
    last = _back(today, least, unit) + timedelta(days=_slack(least, unit))
    return first, max(first, min(last, today - timedelta(days=1)))


def _hence(match: re.Match[str], today: date) -> _Days:
    least, most = _amount(match)
    unit = _unit(match["unit"])
    if unit in {"hour", "minute"}:
        return today, today + timedelta(days=1)
    first = _back(today, -least, unit) - timedelta(days=_slack(least, unit))
    return max(first, today + timedelta(days=1)), _back(today, -most, unit) + timedelta(days=_slack(most, unit))


def _rolling(match: re.Match[str], today: date) -> _Days:
    """Reads the last N days as reaching N days back: people who say it in the evening do not mean midnights."""
    most = _amount(match)[1]
    unit = _unit(match["unit"])
    if unit in {"hour", "minute"}:
        most, unit = -(-most // 24) if unit == "hour" else 1, "day"
    if match["which"].lower() in {"next", "coming"}:
        return today, _back(today, -most, unit)
    return _back(today, most, unit), today


def _amount(match: re.Match[str]) -> tuple[float, float]:
    """Returns the least and the most that a number, or "a few", 几 or 两三, may mean."""
    groups = match.groupdict()
    word = (groups.get("loose") or "").lower()
    if word:
        return next(span for start, span in _LOOSE if word.startswith(start))
    text = (groups.get("n") or "").lower()
    if text.isdecimal():
        number = int(text)
        if _unit(match["unit"]) == "year" and number >= 1_000:
            raise ValueError(f"a year, not a number of years: {text}")
        return number, number
    if text.isascii():
        number = number_en(text) if text else 1
        return number, number
    if len(text) == 2 and "十" not in text:  # 两三
        return number_zh(text[0]), number_zh(text[1])
    number = number_zh(text)
    return number, number


_LOOSE: Final = (
    ("a couple", (2, 2)), ("couple", (2, 2)), ("a few", (2, 5)), ("few", (2, 5)), ("several", (3, 8)),
    ("some", (2, 8)), ("half", (0.5, 0.5)), ("半", (0.5, 0.5)), ("好", (3, 9)), ("几", (2, 8)), ("幾", (2, 8)),
    ("数", (2, 8)), ("many", (3, 12)), ("s", (2, 5)),
)  # fmt: skip
_LOOSE_EN = r"(?:a )?couple(?: of)?|(?:a )?few|several|some|many|half an?"


def _unit(word: str) -> str:
    word = word.lower()
    if word.isascii():
        return {"night": "day", "weekend": "week"}.get(word, word)
    marks = (("时", "hour"), ("時", "hour"), ("分", "minute"), ("天", "day"), ("日", "day"), ("月", "month"))
    return next((unit for mark, unit in marks if mark in word), "year" if word == "年" else "week")


def _back(today: date, amount: float, unit: str) -> date:
    """Returns the day `amount` units before today; after today if negative."""
    if unit == "fortnight":
        amount, unit = amount * 2, "week"
    if unit in {"day", "week"} or amount != int(amount):
        return today - timedelta(
            days=round(amount * {"day": 1, "week": 7, "month": 30, "year": 365, "decade": 3652}[unit])
        )
    months = int(amount) * {"month": 1, "year": 12, "decade": 120}[unit]
    there = month_at(today, -months)[0]
    return there.replace(day=min(today.day, monthrange(there.year, there.month)[1]))


def _slack(amount: float, unit: str) -> int:
    """Returns the number of days that "N units ago" may be off, at most; the figures are chosen, not measured."""
    if unit == "day":
        return int(amount // 5)
    if unit in {"week", "fortnight"}:
        return int(2 + amount // 2)
    if unit == "month":
        return int(7 + 3 * min(amount, 12))
    return int(min(90 * amount, 183))


def _calendar(match: re.Match[str], today: date) -> _Days:
    """Reads "last week", "this Friday", "next May", "last summer"."""
    which = " ".join(match["which"].lower().split())
    unit = match["unit"].lower()
    if which != "last" and match["unit"] in {"may", "march", "mar", "sun", "sat", "mon", "wed"}:
        raise ValueError("this may be; this sun")
    steps = {"next": 1, "coming": 1, "upcoming": 1, "following": 1, "this": 0, "current": 0, "earlier this": 0,
             "later this": 0, "this coming": 1}.get(which, -1)  # fmt: skip
    if "past" in which and unit in {"week", "month", "year"}:
        return _back(today, 1, unit), today
    first, last = _named(unit, steps, today)
    if which == "earlier this":
        return first, max(first, min(last, today))
    return (max(first, min(last, today)), last) if which == "later this" else (first, last)


def _named(unit: str, steps: int, today: date) -> _Days:
    if unit in {"week", "weekend", "month", "year"}:
        return whole(today, steps, unit)[:2]
    if unit == "quarter":
        begin = date(today.year, (today.month - 1) // 3 * 3 + 1, 1)
        return month_at(begin, 3 * steps)[0], month_at(begin, 3 * steps + 2)[1]
    if unit in _SEASONS:
        return _yearly(today, steps, lambda year: _season(unit, year))
    weekday = _weekday_index(unit)
    if weekday is None:
        return _yearly(today, steps, lambda year: month_at(date(year, month_en(unit), 1), 0)[:2])
    if steps < 0:
        return _day(latest_weekday(today, weekday))
    return _day(week_at(today, steps)[0] + timedelta(days=weekday))


def _yearly(today: date, steps: int, in_year: Callable[[int], _Days]) -> _Days:
    """Returns a yearly span: the latest that is over (-1), the current or else this year's (0), the next (1)."""
    spans = [in_year(year) for year in range(max(1, today.year - 2), min(9998, today.year + 2) + 1)]
    if steps < 0:
        return max(span for span in spans if span[1] < today)
    if steps > 0:
        return min(span for span in spans if span[0] > today)
    now = [span for span in spans if span[0] <= today <= span[1]]
    return now[0] if now else in_year(today.year)


def _in_year(year: str | int | None, today: date, in_year: Callable[[int], _Days]) -> _Days:
    """Returns the span in `year`, or without one the latest that has begun; a February 29 is at most 8 years ago."""
    if year:
        return in_year(int(year))
    for number in range(today.year, max(0, today.year - 9), -1):
        try:
            found = in_year(number)
        except ValueError:
            continue
        if found[0] <= today:
            return found
    raise ValueError("none has begun in this calendar")


_SEASONS: Final = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12,
}  # fmt: skip


def _season(name: str, year: int) -> _Days:
    begin = date(year, _SEASONS[name], 1)
    return begin, month_at(begin, 2)[1]


def _weekday_index(name: str) -> int | None:
    return next((i for i, full in enumerate(WEEKDAYS_EN) if full.startswith(name)), None)


def _day(day: date) -> _Days:
    return day, day


def _before_last(match: re.Match[str], today: date) -> _Days:
    unit = match["unit"].lower()
    if (weekday := _weekday_index(unit)) is not None:
        return _day(latest_weekday(today, weekday) - timedelta(weeks=1))
    return _named(unit, 2 if match["which"].lower() == "after next" else -2, today)


def _the_weekend(match: re.Match[str], today: date) -> _Days:
    return weekend_at(today, 0 if today.weekday() >= 5 else -1)[:2]


def _weekday(match: re.Match[str], today: date) -> _Days:
    said = match.group()
    before = _word_before(match)
    if before in {"every", "each", "any", "most", "black", "good", "cyber", "palm", "super", "casual", "all"}:
        raise ValueError("no single day")
    if len(said) <= 5 and (before not in _TIME_LEADS or (said.islower() and said in {"sun", "sat", "mon", "wed"})):
        raise ValueError("an abbreviation that may be a word")
    weekday = _weekday_index(said.lower())
    assert weekday is not None
    if before == "by":
        return _day(coming_weekday(today, weekday))
    return _day(latest_weekday(today, weekday))


_TIME_LEADS: Final = frozenset(
    ("in", "on", "during", "since", "until", "till", "before", "after", "around", "throughout", "early", "late", "mid")
) | {"by", "this"}
_WORD_BEFORE = re.compile(r"([A-Za-z]{1,12})[ -](?:the )?$", re.ASCII)


def _word_before(match: re.Match[str]) -> str:
    found = _WORD_BEFORE.search(match.string, max(0, match.start() - 18), match.start())
    return found[1].lower() if found else ""


def _dated(match: re.Match[str], today: date) -> _Days:
    """Reads one or two days of a month, with or without a year: "May 7", "7-9 May 2023"."""
    groups = match.groupdict()
    name = groups["month"]
    if name in {"may", "march", "mar"} and not (
        groups["year"] or groups["sure"] or groups.get("of")
    ):  # "may 7 people come?"
        rest = match.string[match.end() : match.end() + 2].lstrip()
        if rest[:1].isalnum() and _word_before(match) not in _TIME_LEADS:
            raise ValueError("a verb")
    month = month_en(name)
    days = sorted(int(groups[key]) for key in ("day", "day2") if groups[key])
    return _in_year(groups["year"], today, lambda year: (date(year, month, days[0]), date(year, month, days[-1])))


def _month_day(match: re.Match[str], today: date) -> _Days:
    """Reads "the 7th" as the latest one, of this month or an earlier one."""
    for months in range(0, -4, -1):
        first, last, _ = month_at(today, months)
        day = int(match["day"])
        if 1 <= day <= last.day and first.replace(day=day) <= today:
            return _day(first.replace(day=day))
    raise ValueError("no such day")


def _month(match: re.Match[str], today: date) -> _Days:
    name, year = match["month"], match["year"]
    month = month_en(name)
    if year is None and not _means_month(match, name):
        raise ValueError("a verb, a name or an adjective")

    return _in_year(year, today, lambda number: month_at(date(number, month, 1), 0)[:2])


def _means_month(match: re.Match[str], name: str) -> bool:
    """Returns whether a bare month name means the month, by the words around it unless it can mean nothing else."""
    text = match.string
    if _word_before(match) in _TIME_LEADS - {"on", "by", "this"}:
        # "in mar" and "on march" may mean anything; "In Mar." is written with its capital.
        return name != "mar"
    if _MONTH_OF.search(text, max(0, match.start() - 16), match.start()):
        return True
    if _SPAN_BEFORE.search(text, max(0, match.start() - 24), match.start()) or (
        _word_before(match) in {"from", "between"} and _SPAN_AFTER.match(text, match.end())
    ):
        return True
    return name[0].isupper() and len(name) > 3 and name.lower() not in {"april", "may", "june", "march", "august"}


_MONTH_OF = re.compile(r"\b(?:beginning|start|end|middle|half|part|week|weekend|month|rest|most) of (?:the )?$", _FLAGS)
_SPAN_BEFORE = re.compile(
    rf"{_B}(?:{MONTH_EN}|{_YEAR})\.?(?: {_YEAR})?(?: ?{_DASH} ?| (?:to|until|till|through|thru|and) )$", _FLAGS
)
_SPAN_AFTER = re.compile(
    rf"(?: {_YEAR})?(?: ?{_DASH} ?| (?:to|until|till|through|thru|and) )(?:{MONTH_EN}|{_YEAR}){_E}| on(?:wards?)?{_E}",
    _FLAGS,
)


def _iso(match: re.Match[str], today: date) -> _Days:
    year, month, day = match["year"], match["month"], match["day"]
    if day:
        return _day(date(int(year), int(month), int(day)))
    if match["mark"] == ".":
        raise ValueError("a decimal")
    return month_at(date(int(year), int(month), 1), 0)[:2]


def _slashed(match: re.Match[str], today: date) -> _Days:
    """Reads 5/7/2023 as May 7, as Americans write, unless there is no such month; 7.5.2023 is May 7."""
    one, two, year = int(match["one"]), int(match["two"]), int(match["year"])
    if match["mark"] == "." or one > 12:
        one, two = two, one
    return _day(date(year, one, two))


def _year(match: re.Match[str], today: date) -> _Days:
    text = match.string
    sure = _word_before(match) in _TIME_LEADS - {"on", "this"} | {"year", "spring", "summer", "autumn", "winter"}
    sure = sure or _MONTH_OF.search(text, max(0, match.start() - 16), match.start()) is not None
    sure = sure or _SPAN_BEFORE.search(text, max(0, match.start() - 24), match.start()) is not None
    if not sure and not (_word_before(match) in {"from", "between"} and _SPAN_AFTER.match(text, match.end())):
        raise ValueError("a number")
    return year_at(int(match["year"]))[:2]


def _decade(match: re.Match[str], today: date) -> _Days:
    number = int(match["decade"])
    first = number if number > 99 else 1900 + number
    return date(first, 1, 1), date(first + 9, 12, 31)


def _season_en(match: re.Match[str], today: date) -> _Days:
    name, year = match["season"].lower(), match["year"]
    leads = {"in", "over", "during"} if name in {"fall", "spring"} else {"in", "over", "during", "since", "until"}
    if not year and _word_before(match) not in leads:
        raise ValueError("a verb, a well or talk of the season")
    return _in_year(year, today, lambda number: _season(name, number))


def _quarter(match: re.Match[str], today: date) -> _Days:
    word = match["q"]
    begin = 3 * ("一二三四".index(word) if word in "一二三四" else int(word) - 1) + 1
    year = match.groupdict().get("year")
    return _in_year(year, today, lambda number: (date(number, begin, 1), month_at(date(number, begin, 1), 2)[1]))


_HOLIDAYS: Final = {
    "christmas eve": (12, 24, 12, 24), "christmas day": (12, 25, 12, 25), "christmas": (12, 24, 12, 26),
    "new years eve": (12, 31, 12, 31), "new years day": (1, 1, 1, 1), "new years": (1, 1, 1, 1),
    "new year": (1, 1, 1, 1), "halloween": (10, 31, 10, 31), "valentines day": (2, 14, 2, 14),
    "valentines": (2, 14, 2, 14),
    "平安夜": (12, 24, 12, 24), "圣诞节": (12, 24, 12, 26), "圣诞": (12, 24, 12, 26), "聖誕節": (12, 24, 12, 26),
    "元旦": (1, 1, 1, 1), "国庆节": (10, 1, 10, 7), "国庆": (10, 1, 10, 7), "國慶": (10, 1, 10, 7),
    "情人节": (2, 14, 2, 14), "劳动节": (5, 1, 5, 5), "五一": (5, 1, 5, 5), "万圣节": (10, 31, 10, 31),
    "双十一": (11, 11, 11, 11), "儿童节": (6, 1, 6, 1),
}  # fmt: skip
_HOLIDAY_EN = re.sub("(year|valentine)s", r"\1['’]?s", "|".join(word for word in _HOLIDAYS if word.isascii()))
_HOLIDAY_ZH = "|".join(word for word in _HOLIDAYS if not word.isascii())


def _holiday(match: re.Match[str], today: date) -> _Days:
    """Reads a holiday with a fixed date if the words around it make it a time: "for Christmas" is about presents."""
    groups = match.groupdict()
    word = re.sub("['’]", "", groups["day"].lower())
    month, day, month_last, day_last = _HOLIDAYS[word]

    def in_year(number: int) -> _Days:
        return date(number, month, day), date(number, month_last, day_last)

    if groups.get("year"):
        return in_year(int(groups["year"]))
    if groups.get("rel"):
        return in_year(today.year + years_zh(groups["rel"][0]))
    which = (groups.get("which") or "").lower()
    if which:
        return _yearly(today, {"next": 1, "this": 0}.get(which, -1), in_year)
    if word.isascii() and _word_before(match) not in _TIME_LEADS | {"at", "over"}:
        raise ValueError("the feast, not its time")
    return _in_year(None, today, in_year)


# Chinese ------------------------------------------------------------------------------------------------------------


def _week_zh(match: re.Match[str], today: date) -> _Days:
    weeks = steps_zh(match["which"])
    return (weekday_at_zh(match["day"], weeks, today) if match["day"] else week_at(today, weeks))[:2]


def _weekday_zh(match: re.Match[str], today: date) -> _Days:
    if match["day"] == "末":
        return _the_weekend(match, today)
    first, last, _ = weekday_at_zh(match["day"], 0, today)
    return (first, last) if first < today else (first - timedelta(weeks=1), last - timedelta(weeks=1))


def _relative_month_zh(match: re.Match[str], today: date) -> _Days:
    first, last, _ = month_at(today, steps_zh(match["which"]))
    if match["day"]:
        return _day(first.replace(day=number_zh(match["day"])))
    return _part_zh(match["part"], first, last)


def _quarter_zh(match: re.Match[str], today: date) -> _Days:
    return _named("quarter", steps_zh(match["which"]), today)


def _part_zh(part: str | None, first: date, last: date) -> _Days:
    """Returns a part of a span: 初, 上旬 early; 中, 中旬 mid; 底, 末, 下旬 late; half a year for 上半年."""
    if not part:
        return first, last
    if "半" in part:
        middle = date(first.year, 7, 1)
        return (first, middle - timedelta(days=1)) if part[0] == "上" else (middle, last)
    word = {"初": "early", "上": "early", "中": "mid"}.get(part.removeprefix("年")[0], "late")
    return _part(word, first, last)


def _dated_zh(match: re.Match[str], today: date) -> _Days:
    month = number_zh(match["month"])
    days = [number_zh(match[key]) for key in ("day", "day2") if match[key]]
    if match["rel"]:
        year: int | None = today.year + years_zh(match["rel"][0])
    else:
        year = _year_zh(match["year"]) if match["year"] else None

    def in_year(number: int) -> _Days:
        if days:
            return date(number, month, days[0]), date(number, month, days[-1])
        return _part_zh(match["part"], *month_at(date(number, month, 1), 0)[:2])

    return _in_year(year, today, in_year)


def _year_zh(text: str) -> int:
    """Reads 2023, 23 or 二〇二三; two digits are a year from 1970 to 2069."""
    digits = "".join(c if c.isdecimal() else str("〇一二三四五六七八九".index(c.replace("零", "〇"))) for c in text)
    return int(digits) + (0 if len(digits) == 4 else 2000 if int(digits) < 70 else 1900)


def _whole_year_zh(match: re.Match[str], today: date) -> _Days:
    year = today.year + years_zh(match["rel"][0]) if match["rel"] else _year_zh(match["year"])
    if match["season"]:
        return _season(match["season"][0], year)
    return _part_zh(match["part"], *year_at(year)[:2])


def _season_zh(match: re.Match[str], today: date) -> _Days:
    name = match["season"][0]
    return _yearly(today, steps_zh(match["which"]), lambda year: _season(name, year))


def _bare_part_zh(match: re.Match[str], today: date) -> _Days:
    """Reads 年初, 月底 or 上半年 alone as the latest one that has begun."""
    part = match["part"]
    if part[0] == "月":
        found = _part_zh(part[1:], *month_at(today, 0)[:2])
        return found if found[0] <= today else _part_zh(part[1:], *month_at(today, -1)[:2])
    return _in_year(None, today, lambda year: _part_zh(part, *year_at(year)[:2]))


def _rule(pattern: str, read: _Read, *, cycle: int = 0) -> _Rule:
    return _Rule(pattern=re.compile(pattern, _FLAGS), read=read, cycle=cycle)


_A_WEEK: Final = 7
_A_MONTH: Final = 28
_A_YEAR: Final = 365


_UNIT_EN = r"(?P<unit>minute|hour|day|night|weekend|week|fortnight|month|year|decade)s?"
_NAMED_EN = rf"(?P<unit>weekend|week|month|year|quarter|{_SEASON_EN}|{WEEKDAY_EN}|{_ABBR}|{MONTH_EN})"
_TO_DAY = rf"(?: ?{_DASH} ?| (?:to|and|through|until) )"
_NOT_MINE = (
    r"(?! (?:floor|grade|century|street|avenue|time|place|birthday|anniversary|week|month|year|page|chapter|of ))"
)
_NOT_YEARS = (
    r"(?! ?(?:words|people|steps|dollars|euros|times|meters|metres|miles|calories|points|users|items"
    r"|km|kg|kcal|m|g|usd)(?![A-Za-z]))"
)

_RULES: Final = (
    _rule(rf"{_B}(?:{_NEAR_EN}){_E}", _near),
    _rule(
        rf"{_B}(?:(?:about|around|almost|over|roughly) )?(?:(?P<loose>{_LOOSE_EN})|(?P<n>{NUMBER_EN})) {_UNIT_EN}"
        rf" (?:ago|back|earlier){_E}",
        _ago,
    ),
    _rule(rf"{_B}(?:(?P<loose>{_LOOSE_EN})|(?P<n>{NUMBER_EN})) {_UNIT_EN} from now{_E}", _hence),
    _rule(
        rf"{_B}(?:the |these |my )?(?P<which>last|past|previous|recent|next|coming)"
        rf" (?:(?P<loose>{_LOOSE_EN})|(?P<n>{NUMBER_EN})) {_UNIT_EN}{_E}",
        _rolling,
    ),
    _rule(
        rf"{_B}(?:the )?(?P<which>last|past|recent|next|coming) (?P<unit>day|week|month|year)(?P<loose>s){_E}", _rolling
    ),
    _rule(
        rf"{_B}(?:the )?(?P<which>last|this past|this coming|earlier this|later this|this|next|previous|past|current"
        rf"|coming|upcoming|following) {_NAMED_EN}{_E}(?! of )",
        _calendar,
    ),
    _rule(
        rf"{_B}the (?P<unit>weekend|week|month|year|{WEEKDAY_EN}) (?P<which>before last|after next){_E}", _before_last
    ),
    _rule(
        rf"{_B}(?:(?<=over )|(?<=at )|(?<=on )|(?<=during ))the weekend{_E}(?! (?:of|before|after) )",
        _the_weekend,
        cycle=_A_WEEK,
    ),
    _rule(
        rf"{_B}(?P<month>{MONTH_EN})\.? (?:the )?(?P<day>\d{{1,2}})(?P<sure>{_ORD})?"
        rf"(?:{_TO_DAY}(?P<day2>\d{{1,2}}){_ORD}?{_E}(?! (?:of )?{MONTH_EN}))?"
        rf"(?:,? (?:of )?(?P<year>{_YEAR}))?{_E}(?!:\d)",
        _dated,
        cycle=_A_YEAR,
    ),
    _rule(
        rf"{_B}(?:the )?(?:(?P<day2>\d{{1,2}}){_ORD}?{_TO_DAY}(?:the )?)?(?P<day>\d{{1,2}})(?P<sure>{_ORD})?"
        rf" (?P<of>of )?(?P<month>{MONTH_EN}){_E}(?:,? (?P<year>{_YEAR}){_E})?",
        _dated,
        cycle=_A_YEAR,
    ),
    _rule(
        rf"(?:(?<=on )|(?<=since )|(?<=before )|(?<=after )|(?<=until ))the (?P<day>\d{{1,2}}){_ORD}{_E}{_NOT_MINE}",
        _month_day,
        cycle=_A_MONTH,
    ),
    _rule(rf"{_B}(?P<month>{MONTH_EN})\.?{_E}(?:,? (?:of )?(?P<year>{_YEAR}){_E})?", _month, cycle=_A_YEAR),
    _rule(
        rf"(?<![\d./-])(?P<year>{_YEAR})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?(?!\d|[-/.]\d)",
        _iso,
    ),
    _rule(
        rf"(?<![\d./-])(?P<one>\d{{1,2}})(?P<mark>[/.])(?P<two>\d{{1,2}})(?P=mark)(?P<year>{_YEAR})(?!\d|[-/.]\d)",
        _slashed,
    ),
    _rule(rf"{_B}(?:the year )?(?P<year>{_YEAR})(?![A-Za-z\d年])(?![.,:/]\d){_NOT_YEARS}", _year),
    _rule(rf"{_B}(?<=the )['’]?(?P<decade>(?:19|20)\d0|[5-9]0)['’]?s{_E}", _decade),
    _rule(rf"{_B}(?P<season>{_SEASON_EN})(?: (?:of )?(?P<year>{_YEAR}))?{_E}", _season_en, cycle=_A_YEAR),
    _rule(rf"{_B}q(?P<q>[1-4])(?: (?:of )?(?P<year>{_YEAR}))?{_E}", _quarter, cycle=_A_YEAR),
    _rule(rf"{_B}(?:{WEEKDAY_EN}|{_ABBR}){_E}", _weekday, cycle=_A_WEEK),
    _rule(
        rf"{_B}(?:(?P<which>last|this|next) )?(?P<day>{_HOLIDAY_EN})(?:,? (?:of )?(?P<year>{_YEAR}))?{_E}",
        _holiday,
        cycle=_A_YEAR,
    ),
    _rule(_NEAR_ZH, _near),
    _rule(
        rf"(?<![晚早以身楼路线面])(?P<which>上上|下下|[上下这這本])一?[个個]?{WEEK_ZH}(?![围圍年期身边邊])"
        r"(?:(?P<day>[一二三四五六日末]|天(?![气氣])))?",
        _week_zh,
    ),
    _rule(
        rf"(?<![晚早以身楼])(?P<which>上上|下下|[上下这這本])一?[个個]?月{_CALLED_ZH}份?"
        rf"(?:(?P<day>{_NUM_ZH})[号號日]|(?P<part>[初底末中](?!秋)|[上中下]旬))?",
        _relative_month_zh,
    ),
    _rule(r"(?P<which>[上下这這本])一?[个個]?季度", _quarter_zh),
    _rule(
        rf"(?<![附靠接将贴邻临亲新])(?P<which>最近|过去|過去|近|[这這])的?"
        rf"(?:(?P<loose>好?[几幾]|半|数)|(?P<n>{NUMBER_ZH}))"
        rf"(?P<unit>{_UNIT_ZH})(?:里|内|內|以来|以來)?",
        _rolling,
    ),
    _rule(
        rf"(?<![\d第])(?:(?P<loose>好?[几幾]|半|数)|(?P<n>{NUMBER_ZH}))(?:多)?(?P<unit>{_UNIT_ZH})多?[以之]?前(?![天年面])",
        _ago,
    ),
    _rule(rf"(?<![\d第])(?P<n>{NUMBER_ZH})(?P<unit>{_UNIT_ZH})[以之]?[后後](?![天来來])", _hence),
    _rule(
        rf"(?<![\d一二三四五六七八九十个個几幾第])"
        rf"(?:(?:(?P<year>\d{{4}}|\d{{2}}|[一二][〇零一二三四五六七八九]{{3}}) ?年"
        rf"|(?P<rel>{_YEARS_ZH}))的? ?)?(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]) ?月"
        rf"{_CALLED_ZH}份?(?: ?(?P<day>{_NUM_ZH})[号號日](?:[到至~～—-](?:(?P=month)月)?(?P<day2>{_NUM_ZH})[号號日])?"
        r"|的?(?P<part>[初底末]|[上中下]旬|中(?![秋国國考午学學文])))?",
        _dated_zh,
        cycle=_A_YEAR,
    ),
    _rule(
        rf"(?<![\d年])(?:(?P<year>(?:19|20)\d\d|[一二][〇零一二三四五六七八九]{{3}}) ?年|(?P<rel>{_YEARS_ZH}))"
        rf"(?![级級代龄])(?:的?(?P<season>{_SEASON_ZH})|的?(?P<part>年?[初底末]|年中(?!秋)|[上下]半年))?",
        _whole_year_zh,
    ),
    _rule(rf"(?P<which>[上这這])一?[个個]?(?P<season>{_SEASON_ZH})", _season_zh),
    _rule(
        r"(?<![\d今去前明后後年个個一二三四五六七八九十])(?P<part>年[初底末]|月[初底末]|[上下]半年)",
        _bare_part_zh,
        cycle=_A_YEAR,
    ),
    _rule(r"第(?P<q>[一二三四1-4])季度", _quarter, cycle=_A_YEAR),
    _rule(
        r"(?<![\d月第.一二三四五六七八九十])(?P<day>\d{1,2})[号號](?![线線楼樓门門院房馆館厅廳机機位桌车車码碼文字球选選店])",
        _month_day,
        cycle=_A_MONTH,
    ),
    _rule(
        rf"(?<![上下这這本个個每逢]){WEEK_ZH}(?P<day>[一二三四五六日末]|天(?![气氣]))(?!期)", _weekday_zh, cycle=_A_WEEK
    ),
    _rule(rf"(?P<rel>{_YEARS_ZH})的?(?P<day>{_HOLIDAY_ZH})", _holiday),
    _rule(
        rf"(?P<day>{_HOLIDAY_ZH})(?=假期|那天|当天|當天|期间|期間|的?[时時]候|以[来來]|[之以]?[前后後])",
        _holiday,
        cycle=_A_YEAR,
    ),
)
