"""Relative date words, English and Chinese, made absolute: "next Friday" stays true after it was said.

Invariants: The functions are pure: the day is given. Text is only added to, never changed. A word that already carries
its date in brackets is left alone, so anchoring twice equals anchoring once, whatever day the second time is. Weeks
start on Monday.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

_WRITTEN_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY: Final = timedelta(days=1)
_DAY_MS: Final = 86_400_000
#: The first and last moments, in milliseconds UTC, that are days of the calendar in every timezone.
_EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) + 2 * _A_DAY - _EPOCH) // timedelta(milliseconds=1)
_LATEST: Final = (datetime.max.replace(tzinfo=UTC) - 2 * _A_DAY - _EPOCH) // timedelta(milliseconds=1)

Unit: TypeAlias = Literal["day", "days", "week", "month", "year"]
#: The first and last day, both included, and the unit they make up.
Span: TypeAlias = tuple[date, date, Unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A date word at `text[start:end]` that means the days `first` to `last`, both included."""

    start: int
    end: int
    first: date
    last: date
    unit: Unit


def anchor(text: str, today: date, *, ahead: bool = False) -> str:
    """Returns `text` with the absolute date added behind every relative date word.

    Examples are "tomorrow (2026-11-22)" and "下个月 (2026-12)". Days are written `YYYY-MM-DD`, weeks by their Monday,
    months `YYYY-MM`, years `YYYY`. With `ahead` the text is known to speak of the future, so bare weekdays and days
    without a year are dated too.
    """
    pieces: list[str] = []
    done = 0
    for mention in mentions(text, today, ahead=ahead):
        pieces += text[done : mention.end], f" ({_written(mention, text)})"
        done = mention.end
    return "".join(pieces) + text[done:]


def mentions(text: str, today: date, *, ahead: bool = False) -> Iterator[Mention]:
    """Yields every relative date word of `text` in order, with the days it means when said on `today`.

    "Next Friday" is the Friday of the next calendar week, as is 下周五. "last Friday" is the latest one before
    today. With `ahead`, bare weekdays ("on Friday", 周五) and days without a year ("June 5", 6月5日) are included:
    the coming ones. Words that already carry a date in brackets, and dates outside the calendar, are left out.
    """
    for match in (_AHEAD if ahead else _RELATIVE).finditer(text):
        if _DATED.match(text, match.end()):
            continue
        group = match.lastgroup or ""
        try:
            first, last, unit = _MEANINGS[group](match, today)
        except (ValueError, OverflowError):  # February 30, or a year beyond 9999
            continue
        yield Mention(start=match.start(), end=match.end(), first=first, last=last, unit=unit)


def day_of(text: str) -> date | None:
    """Returns the day that `text` writes as `YYYY-MM-DD`; None for any other text and for a day that doesn't exist."""
    try:
        return date.fromisoformat(text) if _WRITTEN_DAY.fullmatch(text) else None
    except ValueError:
        return None


def local_time(moment: int, timezone: str) -> datetime:
    """Returns the time at `moment` (milliseconds UTC) in `timezone`.

    A moment outside the calendar, or within two days of its ends, counts as two days within it, so that it has a date
    everywhere.
    """
    inside = min(max(moment, _EARLIEST), _LATEST)
    return datetime.fromtimestamp(inside / 1000, UTC).astimezone(ZoneInfo(timezone))


def is_in_calendar(moment: int) -> bool:
    """Returns whether `moment` (milliseconds UTC) is a time in every zone, from 1970 on."""
    return 0 <= moment <= _LATEST


def local_date(moment: int, timezone: str) -> date:
    """Returns the date at `moment` (milliseconds UTC) in `timezone`, as `local_time` does."""
    return local_time(moment, timezone).date()


def midnight(moment: int, timezone: str) -> int:
    """Returns when the day of `moment` began in `timezone`, both in milliseconds UTC."""
    return day_bounds(moment, timezone)[0]


def day_bounds(moment: int, timezone: str) -> tuple[int, int]:
    """Returns when the day of `moment` began in `timezone`, and when the next one begins, in milliseconds UTC."""
    day = local_date(moment, timezone)
    return beginning_of(day, timezone), end_of(day, timezone)


def beginning_of(day: date, timezone: str) -> int:
    """Returns when `day` begins in `timezone`, in milliseconds UTC.

    A midnight that a clock change skips is the moment of the change. If a midnight comes twice, the first one counts.
    """
    return (datetime.combine(day, time(), ZoneInfo(timezone)) - _EPOCH) // timedelta(milliseconds=1)


def end_of(day: date, timezone: str) -> int:
    """Returns when `day` ends in `timezone`, in milliseconds UTC. The last day of the calendar ends like any other."""
    return beginning_of(day, timezone) + _DAY_MS if day == date.max else beginning_of(day + _A_DAY, timezone)


def week_at(today: date, weeks: int) -> Span:
    """Returns the calendar week, Monday to Sunday, that is `weeks` after the week of `today`."""
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    return monday, monday + timedelta(days=6), "week"


def weekend_at(today: date, weeks: int) -> Span:
    """Returns the Saturday and Sunday of `week_at(today, weeks)`."""
    monday = week_at(today, weeks)[0]
    return monday + timedelta(days=5), monday + timedelta(days=6), "days"


def month_at(today: date, months: int) -> Span:
    """Returns the calendar month `months` after the month of `today`; raises `ValueError` outside the calendar."""
    year, before = divmod(today.year * 12 + today.month - 1 + months, 12)
    first = date(year, before + 1, 1)
    return first, first.replace(day=monthrange(year, before + 1)[1]), "month"


def year_at(year: int) -> Span:
    """Returns January 1 to December 31 of a year; raises `ValueError` outside the calendar."""
    return date(year, 1, 1), date(year, 12, 31), "year"


def whole(today: date, steps: int, unit: str) -> Span:
    """Returns the week, weekend, month or year that is `steps` after the one of `today`."""
    if unit in ("week", "weekend"):
        return (week_at if unit == "week" else weekend_at)(today, steps)
    return month_at(today, steps) if unit == "month" else year_at(today.year + steps)


def latest_weekday(today: date, weekday: int) -> date:
    """Returns the last such weekday before today."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def coming_weekday(today: date, weekday: int) -> date:
    """Returns the first such weekday after today: people who mean today say "today"."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def month_en(name: str) -> int:
    """Returns the number of a month that is written out or abbreviated."""
    return MONTHS_EN.index(name.lower()[:3]) + 1


def weekday_zh(char: str) -> int:
    """Returns the index of a weekday, 0 for Monday, by the last character of its name."""
    return 6 if char in "日天" else "一二三四五六".index(char)


def weekday_at_zh(char: str, weeks: int, today: date) -> Span:
    """Returns a day of a week by the last character of its name, or its weekend (末)."""
    if char == "末":
        return weekend_at(today, weeks)
    return _day(week_at(today, weeks)[0] + timedelta(days=weekday_zh(char)))


def steps_zh(text: str) -> int:
    """Returns the number of units from now to which 上, 下, 上上 or 下下 lead; 0 for other words."""
    return {"下": 1, "上": -1}.get(text[0], 0) * (2 if text[:2] in {"下下", "上上"} else 1)


def years_zh(char: str) -> int:
    """Returns the number of years from now to a year, by the first character of its name (明年, 大前年)."""
    return {"今": 0, "明": 1, "去": -1, "前": -2, "后": 2, "後": 2, "大": -3}[char]


def number_en(word: str) -> int:
    """Reads digits or an English number word up to twelve ("a" is 1); raises `ValueError` for anything else."""
    return NUMBERS_EN[word] if word in NUMBERS_EN else int(word)


def number_zh(text: str) -> int:
    """Reads digits or Chinese numerals up to 99 (二十八); raises `ValueError` for anything else."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        if len(text) == 1 and text in _DIGITS_ZH:
            return _DIGITS_ZH[text]
        raise ValueError(f"not a number up to 99: {text!r}")
    if any(part and part not in _DIGITS_ZH for part in (tens, ones)):
        raise ValueError(f"not a number up to 99: {text!r}")
    return _DIGITS_ZH.get(tens, 1) * 10 + _DIGITS_ZH.get(ones, 0)


_NUMBER_WORDS_EN = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS_EN = {word: number for number, word in enumerate(_NUMBER_WORDS_EN, start=1)} | {"a": 1, "an": 1}
_DIGITS_ZH = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "兩": 2, "〇": 0}
WEEKDAYS_EN = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MONTHS_EN = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

WEEKDAY_EN = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
MONTH_EN = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DAY_EN = r"(?:the )?\d{1,2}(?:st|nd|rd|th)?"
_UNTIL_EN = r" ?(?:-|–|to|until|till|through) ?"
NUMBER_EN = rf"(?:\d{{1,4}}|an?|{'|'.join(_NUMBER_WORDS_EN)})"
NUMBER_ZH = r"(?:\d{1,4}|[一二两兩三四五六七八九十]{1,3})"
WEEK_ZH = r"(?:周|週|星期|礼拜|禮拜)"

_PARTS_RELATIVE = (
    (
        r"(?P<near>\b(?:the day (?:after tomorrow|before yesterday)|today|tonight|tomorrow|tmrw|yesterday|last night"
        r"|this (?:morning|afternoon|evening))\b)"
    ),
    rf"(?P<weekday>\b(?:next|last|this|coming) {WEEKDAY_EN}\b)",
    r"(?P<period>\b(?:next|last|this) (?:week(?:end)?|month|year)\b)",
    (
        rf"(?P<shift>\bin {NUMBER_EN} (?:day|week|month|year)s?\b"
        rf"|\b{NUMBER_EN} (?:day|week|month|year)s? (?:from now|ago)\b)"
    ),
    # Words like 目前天气 and 今后天天 contain 前天 and 后天 by accident.
    r"(?P<near_zh>大[前后後]天|(?<![目以之])前天(?!天)|(?<![今以之])[后後]天(?!天)|[今明昨]天|[今明昨]晚|[今明]早)",
    r"(?P<monthday_zh>(?:下下?个?|下下?個?|这个|這個|本|上个?|上個?)月\d{1,2}[号號日])",
    rf"(?P<weekday_zh>(?:下下?个?|下下?個?|上上?个?|上上?個?|这个?|這個?|本){WEEK_ZH}[一二三四五六日天末])",
    rf"(?P<period_zh>(?:下下?个?|下下?個?|上上?个?|上上?個?|这个?|這個?|本)(?:{WEEK_ZH}|月)(?!\d))",
    (
        r"(?P<month_zh>[今明去][年](?:1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])月(?:份|(?!\d|[一二三四五六七八九十]))"
        r"(?!\d{1,2}[号號日]))"
    ),
    r"(?P<year_zh>[今明去][年](?!\d)|(?<![年以])前年|(?<![年以今])[后後]年)",
    rf"(?P<shift_zh>{NUMBER_ZH}(?:天|个?星期|個?星期|周|週|个?礼拜|個?禮拜|个月|個月|年)(?:以|之)?[后後前])",
)
_PARTS_AHEAD = (
    rf"(?P<bare>\b(?:on )?{WEEKDAY_EN}\b)",
    (
        rf"(?P<dated_span>\b(?:{_DAY_EN}(?: (?:of )?{MONTH_EN})?{_UNTIL_EN}{_DAY_EN} (?:of )?{MONTH_EN}"
        rf"|{MONTH_EN} {_DAY_EN}{_UNTIL_EN}(?:{MONTH_EN} )?{_DAY_EN})\b(?!,? \d{{4}}))"
    ),
    (
        rf"(?P<dated>\b{MONTH_EN} \d{{1,2}}(?:st|nd|rd|th)?\b(?!,? \d{{4}})"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH_EN}\b(?!,? \d{{4}}))"
    ),
    rf"(?P<bare_zh>(?<![上下这這本个個]){WEEK_ZH}[一二三四五六日天末])",
    r"(?P<dated_span_zh>(?<![\d年])\d{1,2}月\d{1,2}[号號日]?[到至~～—-](?:\d{1,2}月)?\d{1,2}[号號日])",
    r"(?P<dated_zh>(?<![\d年])\d{1,2}月\d{1,2}[号號日])",
)
#: A span that is longer was misread: "Dec 16-12".
_LONGEST_SPAN = timedelta(days=120)
_RELATIVE = re.compile("|".join(_PARTS_RELATIVE), re.IGNORECASE)
_AHEAD = re.compile("|".join(_PARTS_RELATIVE + _PARTS_AHEAD), re.IGNORECASE)
_DATED = re.compile(r"\s{0,2}[(（](?:week of )?\d{4}")
NEAR_DAYS = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0,
    "this afternoon": 0, "this evening": 0, "tomorrow": 1, "tmrw": 1, "the day after tomorrow": 2,
    "大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "今天": 0, "今晚": 0, "今早": 0, "明天": 1, "明晚": 1,
    "明早": 1, "后天": 2, "後天": 2, "大后天": 3, "大後天": 3,
}  # fmt: skip


def _written(mention: Mention, text: str) -> str:
    first = mention.first
    match mention.unit:
        case "day":
            return first.isoformat()
        case "days":
            return f"{first.isoformat()}/{mention.last.isoformat()}"
        case "week":
            chinese = not text[mention.start : mention.end].isascii()
            return f"{first.isoformat()} 起一周" if chinese else f"week of {first.isoformat()}"
        case "month":
            return f"{first.year:04}-{first.month:02}"
        case "year":
            return f"{first.year:04}"


def _day(day: date) -> Span:
    return day, day, "day"


def _shifted(today: date, amount: int, unit: str) -> Span:
    """Returns an exact day for days and weeks; months and years are meant more loosely, so they stay whole spans."""
    if unit in ("day", "week"):
        return _day(today + timedelta(days=amount * (7 if unit == "week" else 1)))
    return whole(today, amount, unit)


def _near(match: re.Match[str], today: date) -> Span:
    return _day(today + timedelta(days=NEAR_DAYS[match.group().lower()]))


def _weekday(match: re.Match[str], today: date) -> Span:
    which, _, name = match.group().lower().partition(" ")
    wanted = WEEKDAYS_EN.index(name)
    if which == "last":
        return _day(latest_weekday(today, wanted))
    if which == "coming":
        return _day(coming_weekday(today, wanted))
    return _day(week_at(today, int(which == "next"))[0] + timedelta(days=wanted))


def _period(match: re.Match[str], today: date) -> Span:
    which, _, unit = match.group().lower().partition(" ")
    return whole(today, {"next": 1, "last": -1, "this": 0}[which], unit)


def _shift(match: re.Match[str], today: date) -> Span:
    number, unit, *rest = match.group().lower().removeprefix("in ").split()
    return _shifted(today, number_en(number) * (-1 if rest == ["ago"] else 1), unit.removesuffix("s"))


def _monthday_zh(match: re.Match[str], today: date) -> Span:
    first = month_at(today, steps_zh(match.group()))[0]
    return _day(first.replace(day=int(re.sub(r"\D", "", match.group()))))


def _weekday_zh(match: re.Match[str], today: date) -> Span:
    return weekday_at_zh(match.group()[-1], steps_zh(match.group()), today)


def _period_zh(match: re.Match[str], today: date) -> Span:
    return whole(today, steps_zh(match.group()), "month" if match.group().endswith("月") else "week")


def _month_zh(match: re.Match[str], today: date) -> Span:
    text = match.group()
    month = number_zh(text[2 : text.index("月")])
    return month_at(date(today.year + years_zh(text[0]), month, 1), 0)


def _year_zh(match: re.Match[str], today: date) -> Span:
    return year_at(today.year + years_zh(match.group()[0]))


def _shift_zh(match: re.Match[str], today: date) -> Span:
    text = match.group()
    number = re.match(NUMBER_ZH, text)
    amount = number_zh(number.group() if number else "")
    sign = -1 if text.endswith("前") else 1
    unit = next(u for mark, u in (("天", "day"), ("月", "month"), ("年", "year"), ("", "week")) if mark in text)
    return _shifted(today, sign * amount, unit)


def _bare(match: re.Match[str], today: date) -> Span:
    return _day(coming_weekday(today, WEEKDAYS_EN.index(match.group().lower().removeprefix("on "))))


def _bare_zh(match: re.Match[str], today: date) -> Span:
    text = match.group()
    if text.endswith("末"):
        return weekend_at(today, 0)
    return _day(coming_weekday(today, weekday_zh(text[-1])))


def _dated(match: re.Match[str], today: date) -> Span:
    text = match.group().lower()
    (name,) = re.findall(MONTH_EN, text)
    return _day(_coming_date(today, month_en(name), int(re.sub(r"\D", "", text))))


def _dated_zh(match: re.Match[str], today: date) -> Span:
    month, day = re.findall(r"\d+", match.group())
    return _day(_coming_date(today, int(month), int(day)))


def _dated_span(match: re.Match[str], today: date) -> Span:
    text = match.group().lower()
    months = [month_en(name) for name in re.findall(MONTH_EN, text)]
    return _spanning(today, months, [int(day) for day in re.findall(r"\d+", text)])


def _dated_span_zh(match: re.Match[str], today: date) -> Span:
    months = [int(month) for month in re.findall(r"(\d+)月", match.group())]
    return _spanning(today, months, [int(day) for day in re.findall(r"\d+(?!\d|月)", match.group())])


def _spanning(today: date, months: list[int], days: list[int]) -> Span:
    first = _coming_date(today, months[0], days[0])
    last = _coming_date(first, months[-1], days[-1])
    if last - first > _LONGEST_SPAN:
        raise ValueError(f"no days one after the other: {first} to {last}")
    return first, last, "days"


def _coming_date(today: date, month: int, day: int) -> date:
    for year in range(today.year, today.year + 9):  # a February 29 comes at most 8 years later
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found >= today:
            return found
    raise ValueError(f"no day {month}-{day} in any year")


_MEANINGS: dict[str, Callable[[re.Match[str], date], Span]] = {
    "near": _near, "weekday": _weekday, "period": _period, "shift": _shift, "near_zh": _near,
    "monthday_zh": _monthday_zh, "weekday_zh": _weekday_zh, "period_zh": _period_zh, "month_zh": _month_zh,
    "year_zh": _year_zh, "shift_zh": _shift_zh, "bare": _bare, "bare_zh": _bare_zh, "dated": _dated,
    "dated_zh": _dated_zh, "dated_span": _dated_span, "dated_span_zh": _dated_span_zh,
}  # fmt: skip
