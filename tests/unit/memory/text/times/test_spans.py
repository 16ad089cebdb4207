"""A question about a time is answered from that time, so the words for it must be read as people mean them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.times.clock import moments
from memory.text.times.spans import READ_CHARS, spans
from tests.kit.tables import each_row

SATURDAY = date(2026, 11, 21)
DAYS = st.dates(min_value=date(1000, 1, 15), max_value=date(9000, 1, 1))
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "Asia/Shanghai", "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "Asia/Beirut"]
)
PIECES = st.sampled_from(
    [
        "last ", "week", "two ", "days ", "ago", "May ", "may ", "7", "7th", ", ", "2023", "since ", "before ", "on ",
        "Friday", "from ", "to ", "and ", "between ", "the ", "first week of ", "end of ", "Christmas", "summer", "Q1",
        "上", "个", "月", "周", "五", "三", "天", "前", "后", "去年", "年", "号", "日", "到", "以来", "最近", "几", "半", "底",
        "2023-05-07", "9999", "0", " ", "?", "。",
        "letzte ", "Woche", "vor ", "dem ", "3. ", "Mai ", "bis ", "seit ", "la ", "semaine ", "dernière", "il y a ", "mois ",
        "hace ", "dos ", "meses", "el ", "lunes ", "pasado", "先週", "の", "金曜日", "から", "まで", "末", "début ", "Anfang ", "24.12.",
    ]
)  # fmt: skip


@each_row(("text", "words", "first", "last"), [
        ("what did I say last week?", "last week", "2026-11-09", "2026-11-15"),
        ("What did we talk about yesterday", "yesterday", "2026-11-20", "2026-11-20"),
        ("anything in May", "in May", "2026-05-01", "2026-05-31"),
        ("in May 2023", "in May 2023", "2023-05-01", "2023-05-31"),
        ("in May, 2023", "in May, 2023", "2023-05-01", "2023-05-31"),
        ("on 7 May", "on 7 May", "2026-05-07", "2026-05-07"),
        ("May 7th, 2023", "May 7th, 2023", "2023-05-07", "2023-05-07"),
        ("the 7th of May 2023", "the 7th of May 2023", "2023-05-07", "2023-05-07"),
        ("in march I was ill", "in march", "2026-03-01", "2026-03-31"),
        ("since Monday", "since Monday", "2026-11-16", "2026-11-21"),
        ("since 2019", "since 2019", "2019-01-01", "2026-11-21"),
        ("since last week", "since last week", "2026-11-09", "2026-11-21"),
        ("from May on", "from May on", "2026-05-01", "2026-11-21"),
        ("the last three days", "the last three days", "2026-11-18", "2026-11-21"),
        ("in the last 24 hours", "in the last 24 hours", "2026-11-20", "2026-11-21"),
        ("the past few weeks", "the past few weeks", "2026-10-17", "2026-11-21"),
        ("past year", "past year", "2025-11-21", "2026-11-21"),
        ("two days ago", "two days ago", "2026-11-19", "2026-11-19"),
        ("five days ago", "five days ago", "2026-11-15", "2026-11-17"),
        ("two weeks ago", "two weeks ago", "2026-11-04", "2026-11-10"),
        ("a month ago", "a month ago", "2026-10-11", "2026-10-31"),
        ("half a year ago", "half a year ago", "2026-04-08", "2026-07-07"),
        ("a year ago", "a year ago", "2025-08-23", "2026-02-19"),
        ("three years ago", "three years ago", "2023-05-22", "2024-05-22"),
        ("a couple of weeks ago", "a couple of weeks ago", "2026-11-04", "2026-11-10"),
        ("a few days ago", "a few days ago", "2026-11-15", "2026-11-19"),
        ("an hour ago", "an hour ago", "2026-11-20", "2026-11-21"),
        ("before Christmas", "before Christmas", "", "2025-12-23"),
        ("last Christmas", "last Christmas", "2025-12-24", "2025-12-26"),
        ("New Year's Eve 2022", "New Year's Eve 2022", "2022-12-31", "2022-12-31"),
        ("this morning", "this morning", "2026-11-21", "2026-11-21"),
        ("last night", "last night", "2026-11-20", "2026-11-21"),
        ("Friday night's film", "Friday night", "2026-11-20", "2026-11-20"),
        ("yesterday evening", "yesterday evening", "2026-11-20", "2026-11-20"),
        ("the day before yesterday", "the day before yesterday", "2026-11-19", "2026-11-19"),
        ("on Friday", "on Friday", "2026-11-20", "2026-11-20"),
        ("on Saturday", "on Saturday", "2026-11-14", "2026-11-14"),
        ("on Tue", "on Tue", "2026-11-17", "2026-11-17"), ("last sat", "last sat", "2026-11-14", "2026-11-14"),
        ("by Friday", "Friday", "2026-11-27", "2026-11-27"),
        ("last Friday", "last Friday", "2026-11-20", "2026-11-20"),
        ("this Monday", "this Monday", "2026-11-16", "2026-11-16"),
        ("next Friday", "next Friday", "2026-11-27", "2026-11-27"),
        ("next week", "next week", "2026-11-23", "2026-11-29"),
        ("next May", "next May", "2027-05-01", "2027-05-31"),
        ("three days from now", "three days from now", "2026-11-24", "2026-11-24"),
        ("in the next two weeks", "in the next two weeks", "2026-11-21", "2026-12-05"),
        ("last weekend", "last weekend", "2026-11-14", "2026-11-15"),
        ("over the weekend", "over the weekend", "2026-11-21", "2026-11-22"),
        ("the weekend before last", "the weekend before last", "2026-11-07", "2026-11-08"),
        ("the week before last", "the week before last", "2026-11-02", "2026-11-08"),
        ("earlier this week", "earlier this week", "2026-11-16", "2026-11-21"),
        ("this month", "this month", "2026-11-01", "2026-11-30"),
        ("last month", "last month", "2026-10-01", "2026-10-31"),
        ("last year", "last year", "2025-01-01", "2025-12-31"),
        ("last quarter", "last quarter", "2026-07-01", "2026-09-30"),
        ("Q1 2023", "Q1 2023", "2023-01-01", "2023-03-31"), ("in 2023", "in 2023", "2023-01-01", "2023-12-31"),
        ("the beginning of the year 2022", "the beginning of the year 2022", "2022-01-01", "2022-05-02"),
        ("early 2023", "early 2023", "2023-01-01", "2023-05-02"),
        ("late May", "late May", "2026-05-21", "2026-05-31"), ("mid-May", "mid-May", "2026-05-11", "2026-05-21"),
        ("the end of last month", "the end of last month", "2026-10-21", "2026-10-31"),
        ("the first week of May", "the first week of May", "2026-05-01", "2026-05-07"),
        ("the last week of May", "the last week of May", "2026-05-25", "2026-05-31"),
        ("the first weekend in August 2023", "the first weekend in August 2023", "2023-08-05", "2023-08-06"),
        ("last summer", "last summer", "2026-06-01", "2026-08-31"),
        ("in the summer", "in the summer", "2026-06-01", "2026-08-31"),
        ("summer of 2022", "summer of 2022", "2022-06-01", "2022-08-31"),
        ("winter 2022", "winter 2022", "2022-12-01", "2023-02-28"),
        ("in the 90s", "in the 90s", "1990-01-01", "1999-12-31"),
        ("on the 7th", "on the 7th", "2026-11-07", "2026-11-07"),
        ("Monday to Friday", "Monday to Friday", "2026-11-16", "2026-11-20"),
        ("from Monday to Wednesday", "from Monday to Wednesday", "2026-11-16", "2026-11-18"),
        ("between May and July", "between May and July", "2026-05-01", "2026-07-31"),
        ("from May 3 to May 7, 2023", "from May 3 to May 7, 2023", "2023-05-03", "2023-05-07"),
        ("from May 3, 2023 to June 7", "from May 3, 2023 to June 7", "2023-05-03", "2023-06-07"),
        ("May 3-7", "May 3-7", "2026-05-03", "2026-05-07"),
        ("7-9 May 2023", "7-9 May 2023", "2023-05-07", "2023-05-09"),
        ("between 2019 and 2021", "between 2019 and 2021", "2019-01-01", "2021-12-31"),
        ("before May 7", "before May 7", "", "2026-05-06"),
        ("until last week", "until last week", "", "2026-11-15"),
        ("after May 2023", "after May 2023", "2023-06-01", "2026-11-21"),
        ("the day before May 7", "the day before May 7", "2026-05-06", "2026-05-06"),
        ("the week after May 7", "the week after May 7", "2026-05-08", "2026-05-14"),
        ("on Friday last week", "on Friday last week", "2026-11-13", "2026-11-13"),
        ("last week on Friday", "last week on Friday", "2026-11-13", "2026-11-13"),
        ("in May last year", "in May last year", "2025-05-01", "2025-05-31"),
        ("Friday, May 7", "Friday, May 7", "2026-05-07", "2026-05-07"),
        ("Friday, May 8", "Friday, May 8", "2026-05-08", "2026-05-08"),
        ("2023-05-07", "2023-05-07", "2023-05-07", "2023-05-07"),
        ("2023-05", "2023-05", "2023-05-01", "2023-05-31"), ("5/7/2023", "5/7/2023", "2023-05-07", "2023-05-07"),
        ("13/7/2023", "13/7/2023", "2023-07-13", "2023-07-13"),
        ("7.5.2023", "7.5.2023", "2023-05-07", "2023-05-07"),
        ("February 29", "February 29", "2024-02-29", "2024-02-29"),
        ("recently", "recently", "2026-10-31", "2026-11-21"),
        ("the other day", "the other day", "2026-11-14", "2026-11-20"),
        ("上周我说了什么", "上周", "2026-11-09", "2026-11-15"), ("上周五", "上周五", "2026-11-13", "2026-11-13"),
        ("上周末", "上周末", "2026-11-14", "2026-11-15"), ("上上周三", "上上周三", "2026-11-04", "2026-11-04"),
        ("上星期天", "上星期天", "2026-11-15", "2026-11-15"), ("上周的周五", "上周的周五", "2026-11-13", "2026-11-13"),
        ("这周", "这周", "2026-11-16", "2026-11-22"), ("下周五", "下周五", "2026-11-27", "2026-11-27"),
        ("周五", "周五", "2026-11-20", "2026-11-20"), ("礼拜六", "礼拜六", "2026-11-14", "2026-11-14"),
        ("周末", "周末", "2026-11-21", "2026-11-22"), ("周五之前", "周五之前", "", "2026-11-19"),
        ("从周一到周三", "从周一到周三", "2026-11-16", "2026-11-18"), ("上个月", "上个月", "2026-10-01", "2026-10-31"),
        ("上月底", "上月底", "2026-10-21", "2026-10-31"), ("上个月5号", "上个月5号", "2026-10-05", "2026-10-05"),
        ("下个月", "下个月", "2026-12-01", "2026-12-31"), ("前天", "前天", "2026-11-19", "2026-11-19"),
        ("昨天晚上我说了什么", "昨天晚上", "2026-11-20", "2026-11-20"), ("昨晚", "昨晚", "2026-11-20", "2026-11-21"),
        ("今早", "今早", "2026-11-21", "2026-11-21"), ("大前天", "大前天", "2026-11-18", "2026-11-18"),
        ("后天", "后天", "2026-11-23", "2026-11-23"), ("三天前", "三天前", "2026-11-18", "2026-11-18"),
        ("两三天前", "两三天前", "2026-11-18", "2026-11-19"), ("几天前", "几天前", "2026-11-12", "2026-11-19"),
        ("十天前", "十天前", "2026-11-09", "2026-11-13"), ("两周前", "两周前", "2026-11-04", "2026-11-10"),
        ("3个月前", "3个月前", "2026-08-05", "2026-09-06"), ("半年前", "半年前", "2026-04-08", "2026-07-07"),
        ("一年多前", "一年多前", "2025-08-23", "2026-02-19"), ("三天后", "三天后", "2026-11-24", "2026-11-24"),
        ("最近三天", "最近三天", "2026-11-18", "2026-11-21"), ("过去一年", "过去一年", "2025-11-21", "2026-11-21"),
        ("最近半年", "最近半年", "2026-05-23", "2026-11-21"), ("近三年", "近三年", "2023-11-21", "2026-11-21"),
        ("这几天", "这几天", "2026-11-13", "2026-11-21"), ("最近在忙什么", "最近", "2026-10-31", "2026-11-21"),
        ("前几天", "前几天", "2026-11-14", "2026-11-20"), ("前阵子", "前阵子", "2026-08-23", "2026-11-20"),
        ("5月", "5月", "2026-05-01", "2026-05-31"), ("五月份", "五月份", "2026-05-01", "2026-05-31"),
        ("5月7日", "5月7日", "2026-05-07", "2026-05-07"), ("五月七号", "五月七号", "2026-05-07", "2026-05-07"),
        ("5月初", "5月初", "2026-05-01", "2026-05-11"), ("5月中旬", "5月中旬", "2026-05-11", "2026-05-21"),
        ("5月7日到9日", "5月7日到9日", "2026-05-07", "2026-05-09"), ("5月到7月", "5月到7月", "2026-05-01", "2026-07-31"),
        ("5月7日前", "5月7日前", "", "2026-05-06"), ("5月以来", "5月以来", "2026-05-01", "2026-11-21"),
        ("去年五月", "去年五月", "2025-05-01", "2025-05-31"), ("自从去年五月", "自从去年五月", "2025-05-01", "2026-11-21"),
        ("去年的5月7日", "去年的5月7日", "2025-05-07", "2025-05-07"), ("23年5月", "23年5月", "2023-05-01", "2023-05-31"),
        ("2023年5月7日", "2023年5月7日", "2023-05-07", "2023-05-07"),
        ("二零二三年五月七日", "二零二三年五月七日", "2023-05-07", "2023-05-07"), ("2023年", "2023年", "2023-01-01", "2023-12-31"),
        ("2020年前", "2020年前", "", "2019-12-31"), ("去年", "去年", "2025-01-01", "2025-12-31"),
        ("大前年", "大前年", "2023-01-01", "2023-12-31"), ("去年夏天", "去年夏天", "2025-06-01", "2025-08-31"),
        ("去年年底", "去年年底", "2025-09-01", "2025-12-31"), ("今年上半年", "今年上半年", "2026-01-01", "2026-06-30"),
        ("年初", "年初", "2026-01-01", "2026-05-02"), ("月底", "月底", "2026-11-21", "2026-11-30"),
        ("上季度", "上季度", "2026-07-01", "2026-09-30"), ("2023年第三季度", "2023年第三季度", "2023-07-01", "2023-09-30"),
        ("去年圣诞节", "去年圣诞节", "2025-12-24", "2025-12-26"), ("国庆期间", "国庆期间", "2026-10-01", "2026-10-07"),
        ("7号", "7号", "2026-11-07", "2026-11-07"),
    ])  # fmt: skip
def test_times_are_read_as_people_mean_them(text: str, words: str, first: str, last: str) -> None:
    """The table is the promise, as asked on a Saturday; no first day means any time before."""
    (found,) = spans(text, SATURDAY, looks="back")
    assert text[found.start : found.end] == words
    assert (found.first, found.last) == (date.fromisoformat(first) if first else date.min, date.fromisoformat(last))


@each_row("text", [
        "may I ask something", "march on", "you may 7 times", "mar", "this may be wrong", "this sun is hot", "the sun",
        "April said so", "my sister June", "her August presence", "every Friday", "Black Friday deals", "Fridays",
        "3 days a week", "in 2000 words", "I have 2023 apples", "fall down", "a spring in my step", "sat down",
        "a present for Christmas", "the last time", "in 2 minutes", "on the 7th floor", "version 2023.5",
        "what is my name?", "", "目前天气", "每周五", "五月天的歌", "3个月的孩子", "5个月", "最近的地铁站", "晚上月亮很圆",
        "3号线", "三号楼", "三年级", "周期表", "今后天天运动", "圣诞节礼物", "2月30日",
    ])  # fmt: skip
def test_words_that_only_look_like_a_time_give_none(text: str) -> None:
    """A wrong time would hide the right answer behind it."""
    assert spans(text, SATURDAY, looks="back") == []


def test_several_times_are_told_apart() -> None:
    text = "what happened in October and on Sunday, 还有前天"
    assert [text[r.start : r.end] for r in spans(text, SATURDAY, looks="back")] == ["in October", "on Sunday", "前天"]


@each_row(
    ("text", "rest"),
    [
        ("what did I say last week?", "what did I say ?"),
        ("What did we discuss since Monday about tea", "What did we discuss  about tea"),
        ("上周我说了什么", "我说了什么"),
        ("昨天晚上的时候我吃了什么", "我吃了什么"),
        ("yesterday's dinner", " dinner"),
    ],
)
def test_without_its_time_a_question_shows_what_else_it_asks(text: str, rest: str) -> None:
    """The spans hold the words that belong to the time and no others, so that a search is not led by them."""
    for found in reversed(spans(text, SATURDAY, looks="back")):
        text = text[: found.start] + text[found.end :]
    assert text == rest


def test_words_for_no_time_in_particular_are_marked() -> None:
    """ "Recently" may be two months ago: nothing should be left out because of it."""
    assert [r.vague for r in spans("recently, 前阵子 and yesterday", SATURDAY, looks="back")] == [True, True, False]


@pytest.mark.parametrize("place", [0, READ_CHARS * 4])
def test_a_question_is_found_at_either_end_of_a_long_paste(place: int) -> None:
    """People paste a page and ask below it, or ask and paste; the dates in the page are not the question."""
    page = ("x" * 99 + " ") * (READ_CHARS // 25)
    text = page[:place] + " what did I say last week? " + page[place:]
    assert [text[r.start : r.end] for r in spans(text, SATURDAY, looks="back")] == ["last week"]
    inside = page + " on 7 May 2023 " + page
    assert spans(inside, SATURDAY, looks="back") == []


@given(today=st.dates(), text=st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=12).map("".join)))
def test_any_text_gives_ordered_ranges(today: date, text: str) -> None:
    """A question must never fail over its date, at the edges of the calendar neither."""
    found = spans(text, today, looks="back")
    assert all(0 <= r.start < r.end <= len(text) and r.first <= r.last for r in found)
    assert all(before.end <= after.start for before, after in pairwise(found))


@given(today=DAYS, amount=st.integers(1, 60), unit=st.sampled_from(["day", "week", "month", "year"]))
def test_the_longer_ago_the_wider(today: date, amount: int, unit: str) -> None:
    """Nobody counts the days of half a year; both languages allow the same, and the day itself is always inside."""
    (near,) = spans(f"{amount} {unit}s ago", today, looks="back")
    (far,) = spans(f"{amount + 12} {unit}s ago", today, looks="back")
    chinese = {"day": "天", "week": "周", "month": "个月", "year": "年"}[unit]
    (same,) = spans(f"{amount}{chinese}前", today, looks="back")
    assert (same.first, same.last) == (near.first, near.last)
    assert near.first <= near.last < today
    assert far.first < near.first
    assert far.last - far.first >= near.last - near.first
    if unit in ("day", "week"):
        assert near.first <= today - timedelta(days=amount * (7 if unit == "week" else 1)) <= near.last


@given(today=DAYS, day=DAYS)
def test_a_full_date_is_that_day_whenever_it_is_asked(today: date, day: date) -> None:
    """Only what is left out may depend on today."""
    day = day.replace(year=1900 + day.year % 200)
    months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"]
    months += ["November", "December"]
    name = months[day.month - 1]
    written = [
        day.isoformat(), f"{name} {day.day}, {day.year}", f"{day.day} {name[:3]} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]  # fmt: skip
    for text in written:
        (found,) = spans(text, today, looks="back")
        assert (found.first, found.last) == (day, day)


@given(today=DAYS, weekday=st.integers(0, 6), month=st.integers(1, 12))
def test_bare_weekdays_and_months_are_the_latest_past_ones(today: date, weekday: int, month: int) -> None:
    name = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"][weekday]
    (day,) = spans(f"on {name}", today, looks="back")
    assert day.first.weekday() == weekday
    assert today - timedelta(days=7) <= day.first < today
    (chinese,) = spans("周" + "一二三四五六日"[weekday], today, looks="back")
    assert chinese.first == day.first
    (whole,) = spans(f"{month}月", today, looks="back")
    assert whole.first.month == whole.last.month == month
    assert today - timedelta(days=366) < whole.first <= today


def test_a_range_becomes_moments_up_to_the_next_midnight() -> None:
    """Both ends in the person's timezone: what was said at half past midnight belongs to the new day."""
    begin, end = moments(date(2026, 11, 20), date(2026, 11, 21), "Asia/Shanghai")
    zone = ZoneInfo("Asia/Shanghai")
    assert datetime.fromtimestamp(begin / 1000, zone) == datetime(2026, 11, 20, tzinfo=zone)
    assert datetime.fromtimestamp(end / 1000, zone) == datetime(2026, 11, 22, tzinfo=zone)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),  # midnight itself was skipped
        ("Asia/Beirut", date(2026, 10, 24), 25),  # the clock went back at midnight
    ],
)
def test_days_are_as_long_as_the_clocks_make_them(zone: str, day: date, hours: int) -> None:
    """A day of 24 hours would lose or double an hour of messages twice a year."""
    begin, end = moments(day, day, zone)
    assert (end - begin) / 3_600_000 == hours


@given(zone=ZONES, day=st.dates(min_value=date(1950, 1, 1), max_value=date(2100, 1, 1)))
def test_days_follow_each_other_without_gap(zone: str, day: date) -> None:
    """Every moment belongs to exactly one day, whatever the clocks do."""
    ends = [moments(d, d, zone) for d in (day, day + timedelta(days=1))]
    assert ends[0][1] == ends[1][0]
    assert ends[0][0] < ends[0][1]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_open_ends_stay_inside_what_a_clock_can_say(zone: str) -> None:
    """ "Before May" reaches back to the first day there is."""
    begin, end = moments(date.min, date.max, zone)
    assert begin < 0 < end
