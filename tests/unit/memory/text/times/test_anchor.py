"""A word such as "tomorrow" must still mean the right day when it is read a month later."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.times.calendar import number_zh
from memory.text.times.spans import anchor, spans
from tests.kit.tables import each_row

SATURDAY = date(2026, 11, 21)
DAYS = st.dates(min_value=date(1000, 1, 15), max_value=date(9000, 1, 1))
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
WORDS = st.sampled_from([
    "tomorrow", "yesterday", "next week", "last month", "in 3 days", "two weeks ago", "next Friday", "this weekend",
    "the day after tomorrow", "plain", "明天", "后天", "下周五", "上个月", "明年3月", "三天后", "两年前", "今年", "下个月5号", "目前天气",
    "on Friday", "June 5", "6月5日", "(", ")", "2026-11-22",
])  # fmt: skip


@each_row(
    ("text", "anchored"),
    [
        ("tomorrow", "tomorrow (2026-11-22)"), ("See you Tomorrow!", "See you Tomorrow (2026-11-22)!"),
        ("the day after tomorrow", "the day after tomorrow (2026-11-23)"),
        ("dinner tonight", "dinner tonight (2026-11-21)"), ("last night", "last night (2026-11-20)"),
        ("next Friday", "next Friday (2026-11-27)"), ("next sunday", "next sunday (2026-11-29)"),
        ("this Monday", "this Monday (2026-11-16)"), ("coming Saturday", "coming Saturday (2026-11-28)"),
        ("last Saturday", "last Saturday (2026-11-14)"), ("in 3 days", "in 3 days (2026-11-24)"),
        ("in a week", "in a week (2026-11-28)"), ("two months ago", "two months ago (2026-09)"),
        ("in 2 years", "in 2 years (2028)"), ("last week", "last week (week of 2026-11-09)"),
        ("next weekend", "next weekend (2026-11-28/2026-11-29)"), ("next month", "next month (2026-12)"),
        ("last year", "last year (2025)"), ("明天和后天", "明天 (2026-11-22)和后天 (2026-11-23)"),
        ("大前天", "大前天 (2026-11-18)"), ("昨晚", "昨晚 (2026-11-20)"), ("下周五见", "下周五 (2026-11-27)见"),
        ("下下周一", "下下周一 (2026-11-30)"), ("上個星期天", "上個星期天 (2026-11-15)"), ("这周末", "这周末 (2026-11-21/2026-11-22)"),
        ("上周很忙", "上周 (2026-11-09 起一周)很忙"), ("下个月5号", "下个月5号 (2026-12-05)"), ("上个月", "上个月 (2026-10)"),
        ("十天后", "十天后 (2026-12-01)"), ("3个月前", "3个月前 (2026-08)"), ("明年三月", "明年三月 (2027-03)"), ("今年", "今年 (2026)"),
        ("前年", "前年 (2024)"),
    ],
)  # fmt: skip
def test_relative_words_get_their_date(text: str, anchored: str) -> None:
    """The table is the promise: these are the words people use, in both languages."""
    assert anchor(text, SATURDAY) == anchored


@each_row("text", [
        "2026-11-22", "I saw him on Friday", "June 5", "目前天气很好", "今后天天运动", "in 99999 days", "下个月31号",
        "tomorrowland", "the next", "以前天天来", "三年级", "",
    ])  # fmt: skip
def test_other_words_stay_as_they_are(text: str) -> None:
    """A wrong date is worse than none; "Friday" alone may be past or to come."""
    assert anchor(text, date(2026, 10, 21)) == text


@each_row(
    ("text", "anchored"),
    [
        ("dentist on Friday", "dentist on Friday (2026-11-27)"), ("party Saturday", "party Saturday (2026-11-28)"),
        ("exam June 5", "exam June 5 (2027-06-05)"),
        ("flight on the 5th of December", "flight on the 5th of December (2026-12-05)"),
        ("June 5, 2026", "June 5, 2026"),
        ("from the 12th to the 16th of December", "from the 12th to the 16th of December (2026-12-12/2026-12-16)"),
        ("Lisbon 28 Dec - 3 Jan", "Lisbon 28 Dec - 3 Jan (2026-12-28/2027-01-03)"),
        ("Dec 12-16 off", "Dec 12-16 (2026-12-12/2026-12-16) off"), ("Dec 16-12", "Dec 16-12"),
        ("12月5号到8号去三亚", "12月5号到8号 (2026-12-05/2026-12-08)去三亚"), ("周三开会", "周三 (2026-11-25)开会"),
        ("12月5号考试", "12月5号 (2026-12-05)考试"), ("2026年12月5号", "2026年12月5号"), ("Feb 29", "Feb 29 (2028-02-29)"),
        ("Feb 30", "Feb 30"),
    ],
)  # fmt: skip
def test_plans_take_bare_days_as_coming_ones(text: str, anchored: str) -> None:
    """Who plans something "on Friday" means the coming one, and a plan without its date is soon useless."""
    assert anchor(text, SATURDAY, ahead=True) == anchored


@given(today=DAYS, later=DAYS, words=st.lists(WORDS, max_size=8), ahead=st.booleans())
def test_anchored_text_is_never_anchored_again(today: date, later: date, words: list[str], ahead: bool) -> None:
    """Facts are rewritten on other days; a second date beside the first would contradict it."""
    once = anchor(" ".join(words), today, ahead=ahead)
    assert anchor(once, later, ahead=ahead) == once


@given(today=DAYS, text=st.text(max_size=200))
def test_words_are_kept_in_order(today: date, text: str) -> None:
    rest = iter(anchor(text, today))
    assert all(character in rest for character in text)


@given(today=DAYS, weekday=st.integers(0, 6))
def test_weekdays_fall_on_their_day(today: date, weekday: int) -> None:
    """Off-by-one errors hide on Sundays and at month ends, so every day is tried."""
    name = WEEKDAYS[weekday]
    (following,) = spans(f"next {name}", today, looks="ahead")
    (past,) = spans(f"last {name}", today, looks="ahead")
    (coming,) = spans(f"on {name}", today, looks="ahead")
    (chinese,) = spans("下周" + "一二三四五六日"[weekday], today, looks="ahead")
    assert {following.first.weekday(), past.first.weekday(), coming.first.weekday()} == {weekday}
    monday = today - timedelta(days=today.weekday())
    assert monday + timedelta(days=7) <= following.first <= monday + timedelta(days=13)
    assert today - timedelta(days=7) <= past.first < today < coming.first <= today + timedelta(days=7)
    assert chinese.first == following.first


@given(today=DAYS, days=st.integers(1, 999))
def test_days_counted_forward_and_back_meet(today: date, days: int) -> None:
    """The two languages and the two directions must agree about what N days are."""
    (later,) = spans(f"in {days} days", today, looks="ahead")
    (chinese,) = spans(f"{days}天后", today, looks="ahead")
    assert later.first == chinese.first == today + timedelta(days=days)
    (back,) = spans(f"{days} days ago", later.first, looks="ahead")
    assert back.first == today


@given(today=DAYS)
def test_months_and_years_are_whole(today: date) -> None:
    """A span that missed its last day would call a plan past while it is still to come."""
    (following,) = spans("next month", today, looks="ahead")
    assert following.first.day == 1
    assert (following.last + timedelta(days=1)).day == 1
    assert (following.first - timedelta(days=1)).month == today.month
    (year,) = spans("明年", today, looks="ahead")
    assert (year.first, year.last) == (date(today.year + 1, 1, 1), date(today.year + 1, 12, 31))


@pytest.mark.parametrize("today", [date.min, date.max])
def test_the_edges_of_the_calendar_do_not_break(today: date) -> None:
    """A joke about the year 9999 must not lose the message it stands in."""
    for text in ("yesterday", "tomorrow", "next month", "last year", "in 9999 years", "下下周", "前年", "next weekend"):
        assert anchor(text, today).startswith(text)


@given(st.integers(1, 99))
def test_chinese_numerals_read_as_numbers(number: int) -> None:
    """Ages and days are as often written 二十八 as 28."""
    digits = "零一二三四五六七八九"
    tens, ones = divmod(number, 10)
    written = digits[ones] if not tens else ("" if tens == 1 else digits[tens]) + "十" + (digits[ones] if ones else "")
    assert number_zh(written) == number_zh(str(number)) == number


@each_row("text", ["", "百", "二八", "十十", "x"])
def test_other_numerals_are_refused(text: str) -> None:
    """A misread number becomes a false age; refusing lets the caller leave the sentence alone."""
    with pytest.raises(ValueError, match="not a number"):
        number_zh(text)
