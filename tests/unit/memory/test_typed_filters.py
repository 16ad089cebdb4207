"""Words and filters, told apart in one text."""

from __future__ import annotations

from datetime import date
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import typed_filters
from memory.errors import UnknownFilter, UnreadFilter
from memory.typed_filters import LABELS, NAMES, TIMES, Filters, Group, Name
from tests.kit.tables import each_row

TODAY = date(2026, 11, 23)
HEALTH = Group(kinds=("fact",), category="health")
KNOWN = (("about", "Anna Maria"), ("topic", "new roof"), ("key", "home"), ("tag", "deep work"), ("tag", "base"))
#: Words that no quotation mark ends, and that no filter begins.
PLAIN = st.text("abcdefgäñ茶", min_size=1, max_size=8)


def read(text: str) -> Filters:
    return typed_filters.read(
        text,
        TODAY,
        group_of=lambda name: HEALTH if name in ("health", "Gesundheit") else None,
        is_known=lambda name, value: (name, value) in KNOWN,
    )


@each_row(
    ("text", "words", "given"),
    [
        ("bicycle", "bicycle", []),
        ("bicycle topic:roof", "bicycle", [("topic", "roof")]),
        ("topic:roof leak", "leak", [("topic", "roof")]),
        ("topic:new roof leak", "leak", [("topic", "new roof")]),
        ("about:Anna Maria", "", [("about", "Anna Maria")]),
        ("about:Anna Bell", "Bell", [("about", "Anna")]),
        ("about:'Anna Bell' tea", "tea", [("about", "Anna Bell")]),
        ("TOPIC: roof", "", [("topic", "roof")]),
        ("a topic:“b c” d about:«e f» g", "a d g", [("topic", "b c"), ("about", "e f")]),
        ("主题：屋顶 漏水", "漏水", [("topic", "屋顶")]),
        ("分类:health 自从:三月", "", [("category", "health"), ("since", "三月")]),
        ("since:last week roof", "roof", [("since", "last week")]),
        ("Kategorie:Gesundheit seit:letzte Woche Dach", "Dach",
         [("category", "Gesundheit"), ("since", "letzte Woche")]),
        ("tejado tema:casa el:lunes", "tejado", [("topic", "casa"), ("on", "lunes")]),
        ("toit sujet:maison le:mardi lieu:Nantes", "toit", [("topic", "maison"), ("on", "mardi"), ("place", "Nantes")]),
        ("屋根 話題:家 場所：京都", "屋根", [("topic", "家"), ("place", "京都")]),
        ("seit:gestern Abend am See", "am See", [("since", "gestern Abend")]),
        ('"re:invent the wheel"', "re:invent the wheel", []),
        ('say "topic:roof" twice', 'say "topic:roof" twice', []),
        ("note: buy milk at 10:30 on https://a.example", "note: buy milk at 10:30 on https://a.example", []),
        ("他说：好", "他说：好", []),
        ("key:home tag:deep work tea", "tea", [("key", "home"), ("tag", "deep work")]),
        ('Etiqueta:"deep work" schlüssel:home', "", [("tag", "deep work"), ("key", "home")]),
        ("locker key: it hangs behind the door", "locker key: it hangs behind the door", []),
        ("locker key: home", "locker key: home", []),
        ("clé: table bleue topic:roof", "clé: table bleue", [("topic", "roof")]),
        ("Schlagwort: 5", "Schlagwort: 5", []), ("tag:play tea", "tag:play tea", []),
        ("tag:play key:home tea tag:base", "tag:play tea", [("key", "home"), ("tag", "base")]),
    ],
)  # fmt: skip
def test_words_and_filters_are_told_apart(text: str, words: str, given: list[tuple[str, str]]) -> None:
    found = read(text)
    assert (found.words, [(one.name, one.value) for one in found.given]) == (words, given)


@each_row(
    ("text", "first", "last"),
    [
        ("since:march", date(2026, 3, 1), date.max), ("since:may", date(2026, 5, 1), date.max),
        ("until:2026-05", date.min, date(2026, 5, 31)),
        ("on:yesterday", date(2026, 11, 22), date(2026, 11, 22)),
        ("on:3 May", date(2026, 5, 3), date(2026, 5, 3)),
        ("on:2026", date(2026, 1, 1), date(2026, 12, 31)),
        ("on:2026-05-01..2026-05-07", date(2026, 5, 1), date(2026, 5, 7)),
        ("until:昨天", date.min, date(2026, 11, 22)), ("日期:三月", date(2026, 3, 1), date(2026, 3, 31)),
        ("since:gestern", date(2026, 11, 22), date.max),
        ("seit:vorgestern", date(2026, 11, 21), date.max),
        ("ab:letzte Woche", date(2026, 11, 16), date.max),
        ("am:3. Mai", date(2026, 5, 3), date(2026, 5, 3)),
        ("bis:12.11.2026", date.min, date(2026, 11, 12)),
        ("on:im März", date(2026, 3, 1), date(2026, 3, 31)),
        ("on:letzten Sommer", date(2026, 6, 1), date(2026, 8, 31)),
        ("on:ayer", date(2026, 11, 22), date(2026, 11, 22)),
        ("desde:la semana pasada", date(2026, 11, 16), date.max),
        ("hasta:mayo de 2025", date.min, date(2025, 5, 31)),
        ("el:3 de mayo", date(2026, 5, 3), date(2026, 5, 3)),
        ("on:hier", date(2026, 11, 22), date(2026, 11, 22)),
        ("depuis:l’année dernière", date(2025, 1, 1), date.max),
        ("jusqu'à:fin mars", date.min, date(2026, 3, 31)),
        ("le:1er mai", date(2026, 5, 1), date(2026, 5, 1)),
        ("on:おととい", date(2026, 11, 21), date(2026, 11, 21)),
        ("から:先週", date(2026, 11, 16), date.max), ("まで：5月3日", date.min, date(2026, 5, 3)),
        ("日付:月曜日", date(2026, 11, 16), date(2026, 11, 16)),
        ("日付:先週の金曜日", date(2026, 11, 20), date(2026, 11, 20)),
    ],
)  # fmt: skip
def test_a_time_bounds_on_its_side(text: str, first: date, last: date) -> None:
    """ "Until May" holds all of May, and "since March" begins with its first day."""
    [one] = read(text).given
    assert one.period is not None and (one.period.first, one.period.last) == (first, last)


@each_row(
    "text",
    [
        "since:banana", "on:recently", "until:soon", "category:roof", "since:2026-13-45", "since:la", "on:nächste",
        "until:先",
    ],
)  # fmt: skip
def test_a_value_that_means_nothing_is_refused(text: str) -> None:
    """If it were passed over, more would be forgotten than was meant."""
    with pytest.raises(UnreadFilter) as raised:
        read(f"tea {text}")
    assert text == f"{raised.value.name}:{raised.value.value}"


@each_row("text", ["clé:hme", "clé:hme topic:roof", "key:home clé:hme etiqueta:x"])
def test_a_key_or_tag_that_does_not_exist_is_refused_by_its_typed_name_if_it_is_no_word_among_others(text: str) -> None:
    with pytest.raises(UnreadFilter) as raised:
        read(text)
    assert (raised.value.name, raised.value.typed, raised.value.value) == ("key", "clé", "hme")


def test_an_unknown_filter_is_refused_by_its_name() -> None:
    with pytest.raises(UnknownFilter) as raised:
        read("tea Colour:red")
    assert raised.value.name == "colour"


@given(
    words=st.lists(PLAIN, max_size=3),
    given=st.lists(
        st.tuples(
            st.sampled_from(sorted(set(get_args(Name)) - {*TIMES, "category"})), st.lists(PLAIN, min_size=1, max_size=3)
        ),
        max_size=4,
    ),
)
def test_what_is_written_out_is_read_again(words: list[str], given: list[tuple[Name, list[str]]]) -> None:
    """A button that turns the page carries the filters as text."""
    meant = Filters(
        words=" ".join(words), given=tuple(typed_filters.meant(name, " ".join(value), TODAY) for name, value in given)
    )
    labels = {(one.name, one.value) for one in meant.given if one.name in LABELS}
    assert typed_filters.read(meant.written, TODAY, is_known=lambda *label: label in labels) == meant


@given(
    st.lists(st.sampled_from([*"ab :：\"'“”«»《》\n", *NAMES, "health", "march", "2026-05", "昨天"]), max_size=20).map(
        "".join
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read(text)
    except (UnknownFilter, UnreadFilter):
        return
    assert all(word in text for word in found.words.split())
    assert all(word in text for one in found.given for word in one.value.split())
