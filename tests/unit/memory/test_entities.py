"""A name found is a thread to follow through the memory; a wrong one is a knot in it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.learn.entities import NAMES_LIMIT, READ_CHARS, by_spacy, extract, is_latin, of_fact, standing
from memory.store.entities import Named, normal_form
from tests.kit.tables import each_row


def found(text: str) -> list[tuple[str, str]]:
    return [(named.type, named.name) for named in extract(text)]


@each_row(("text", "names"), [
        (
            "My friend Mary Chen moved to Lisbon and works at Siemens AG.",
            [("person", "Mary Chen"), ("location", "Lisbon"), ("organization", "Siemens AG")],
        ),
        ("Dr. Chen said hello, then Chen left.", [("person", "Dr. Chen")]),
        ("write to Ada@Example.com", [("email", "Ada@Example.com")]),
        ("see https://example.com/a?b=1.", [("url", "https://example.com/a?b=1")]),
        ("(www.example.com)", [("url", "www.example.com")]),
        ("@bob_1 please look at #atlas", [("person", "@bob_1"), ("other", "#atlas")]),
        ("ask @bob.", [("person", "@bob")]),
        ("I talked with Anna's sister", [("person", "Anna")]),
        ("about Project Apollo and the Atlas project", [("project", "Project Apollo"), ("project", "Atlas")]),
        ("I met Peter O'Neil in the park", [("person", "Peter O'Neil")]),
        ("at St. Mary's Hospital", [("organization", "St. Mary's Hospital")]),
        ("the University of Toronto, near Lake Ontario", [("organization", "University of Toronto"), ("location", "Lake Ontario")]),
        ("Ludwig van Beethoven wrote it", [("other", "Ludwig van Beethoven")]),
        ("Lisbon is nice. I love Lisbon.", [("other", "Lisbon")]),
        ("GitHub is down and so is GPT-4", [("other", "GitHub"), ("other", "GPT-4")]),
        ("Sarah loves hiking", [("person", "Sarah")]),
        ("Hello Maria, how are you?", [("other", "Maria")]),
        ("我叫陈伟，住在上海，在北京大学读书。", [("person", "陈伟"), ("location", "上海"), ("organization", "北京大学")]),
        ("王老师推荐了《三体》和《活着》", [("person", "王老师"), ("other", "三体"), ("other", "活着")]),
        ("我的朋友Mary在Google工作", [("person", "Mary"), ("organization", "Google")]),
        ("老王说他搬到深圳了", [("person", "老王"), ("location", "深圳")]),
        ("我们的项目叫“海豚”，很酷", [("project", "海豚")]),
        ("我的猫叫「雪球」", [("other", "雪球")]),
        ("邮箱是ada@example.com，多谢", [("email", "ada@example.com")]),
    ])  # fmt: skip
def test_names_are_found_with_their_type(text: str, names: list[tuple[str, str]]) -> None:
    assert found(text) == names


@each_row("text", [
        "Reading is fun. Great.", "I think so. Maybe on Monday in May.", "THIS IS ALL SHOUTED BY BOB", "the colour #ffcc00",
        "issue #12", 'He said "Stop" to me', "I'm sure he's OK", "Don't worry. Let's go", "I speak English and Chinese",
        "马上到了，老师说得对", "他说“你好吗”", "住在家里", "", "a@b", "my mom and Dad",
    ])  # fmt: skip
def test_what_has_a_capital_or_quotes_for_another_reason_is_no_name(text: str) -> None:
    """Every sentence starts with a capital; an entity "Reading" would be noise for ever."""
    assert found(text) == []


def test_the_longest_and_surest_span_wins() -> None:
    """Parts of a longer name are not names beside it, and an address is nobody's handle."""
    assert found("mary@example.com met Mary Chen at https://example.com/@mary#Mary") == [
        ("email", "mary@example.com"), ("person", "Mary Chen"), ("url", "https://example.com/@mary#Mary"),
    ]  # fmt: skip


@each_row(("one", "other"), [
        ("Dr. Chen", "chen"), ("Ｃｈｅｎ", "CHEN"), ("Prof. Dr. Mary Chen", "Mary  Chen"), ("@Mary", "mary"), ("#Atlas", "atlas"),
        ("https://www.Example.com/", "http://example.com"), ("O’Neil", "O'Neil"), ("Anna's", "Anna"),
    ])  # fmt: skip
def test_spellings_of_one_name_are_one(one: str, other: str) -> None:
    """Case, width, titles and signs are how it is written, not who it is."""
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"), [("Mary Chen", "Peter Chen"), ("陈医生", "陈老师"), ("C++", "C"), ("Dr", "Mr")]
)
def test_different_names_stay_different(one: str, other: str) -> None:
    """Two people made one can hardly be parted again."""
    assert normal_form(one) != normal_form(other)


@each_row(
    ("key", "value", "names"),
    [
        ("sister", "Maria", [Named(type="person", name="Maria")]),
        ("sister", "a doctor", []),
        ("home", "上海", [Named(type="location", name="上海")]),
        ("employer", "Siemens AG", [Named(type="organization", name="Siemens AG")]),
        ("likes", "喝茶", []),
        ("likes", "Python", [Named(type="other", name="Python")]),
        ("plan", "a trip to Paris with Tom", [Named(type="location", name="Paris"), Named(type="other", name="Tom")]),
    ],
)
def test_the_key_of_a_fact_tells_what_its_bare_name_is(key: str, value: str, names: list[Named]) -> None:
    """Values have no sentence around them; what they are stands in the key."""
    assert of_fact(key, value) == names


def test_whom_a_fact_is_about_is_found_when_it_is_a_name() -> None:
    """ "my sister" leads nowhere, "Maria" does."""
    assert of_fact("likes", "tea", subject="Maria") == [Named(type="person", name="Maria")]
    assert of_fact("likes", "tea", subject="my sister") == []


@given(st.one_of(st.text(max_size=300), st.text(alphabet="Aa 'Chen.@#《》在住的王老师:/\"", max_size=120)))
def test_what_is_found_stands_in_the_text_once(text: str) -> None:
    """An invented name could not be traced to its words, and would survive their erasure."""
    names = extract(text)
    plain = " ".join(text.split())
    assert all(named.name in plain for named in names)
    assert len({named.normal for named in names}) == len(names)


@given(st.text(max_size=80))
def test_normal_forms_are_stable(name: str) -> None:
    """A name looked up by its stored form must be found."""
    once = normal_form(name)
    assert once == once.strip()
    assert normal_form(once.upper()) == normal_form(once) or not once.isascii()


def test_a_huge_text_gives_a_bounded_number_of_names() -> None:
    """A pasted telephone book is not what somebody knows."""
    names = " and ".join(f"met Mary{chr(97 + i % 26)}{chr(97 + i // 26 % 26)} Chen" for i in range(600))
    assert len(extract(names)) == NAMES_LIMIT
    assert extract("x " * READ_CHARS + "I met Mary Chen") == []


@each_row(
    ("name", "text", "stands"),
    [
        ("Lin", "took the cat to dr. lin", True), ("Lin", "lives in Berlin", False),
        ("Mary  Chen", "met mary chen", True), ("阿珍", "周末和阿珍去了西湖", True), ("Zorba", "met Mary Chen", False),
        ("She", "she likes tea", False), ("Monday", "on Monday", False), ("", "on Monday", False),
    ],
)  # fmt: skip
def test_of_names_that_a_model_gives_those_are_taken_that_stand_there(name: str, text: str, stands: bool) -> None:
    """Half a word is no name, an everyday word neither, and one made up could not be forgotten with its words."""
    assert bool(standing([Named(type="person", name=name)] * 2, text)) is stands
    assert len(standing([Named(type="person", name=name)] * 2, text)) < 2


@each_row(
    ("text", "latin"),
    [
        ("lives in Köln", True), ("住在 Berlin", False), ("living in 北京市", False), ("12:30", False), ("живёт тут", False),
    ],
)  # fmt: skip
def test_latin_script_is_told(text: str, latin: bool) -> None:
    """The trained model sees names in whatever it can't read."""
    assert is_latin(text) is latin


#: A package in place of spaCy's model: it finds words in capitals, and dies of one of them.
_MODEL = """
import os
from types import SimpleNamespace as Some
def load(disable):
    def read(text):
        if "DIE" in text:
            os.abort()
        found = [Some(label_="PERSON", text=word) for word in text.split() if word.isupper()]
        return Some(ents=[*found, Some(label_="DATE", text="today"), Some(label_="PERSON", text="Nobody Here")])
    return Some(pipe=lambda texts: map(read, texts))
"""


def test_the_trained_model_runs_apart_and_is_believed_only_what_stands_in_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is native code that reads what strangers wrote."""
    (tmp_path / "en_core_web_sm.py").write_text(_MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    names = by_spacy(["met CHEN today", "nobody"])
    assert [[(named.type, named.name) for named in some] for some in names] == [[("person", "CHEN")], []]
    assert by_spacy(["met CHEN", "and DIE"]) == [[], []]


@pytest.mark.skipif(importlib.util.find_spec("en_core_web_sm") is None, reason="needs remora[entities] and its model")
def test_the_trained_model_finds_what_patterns_leave_untyped() -> None:
    """It is for the night because it is slow, and worth it because it knows names from words."""
    (names,) = by_spacy(["Mary Chen moved to Lisbon and works at Siemens."])
    assert [(named.type, named.name) for named in names][:2] == [("person", "Mary Chen"), ("location", "Lisbon")]


PASTS = (
    "Hiked Ordered Cooked Visited Watched Baked Called Emailed Finished Started Joined Moved Planned Cancelled Learned"
    " Worked Played Walked Travelled Cleaned Painted Fixed Booked Returned Studied Tried Attended Adopted Applied Asked"
    " Met Went Ran Got Bought Saw Ate Made Took Drove Wrote Flew Sold Sent Left Lost Spent Likes Loves Works Lives"
)


@each_row("past", PASTS.split())
@each_row("before", ["", "- ", "* ", "1. ", "1) ", "a) ", "Fun day. ", "What I did:\n- ", "Swam, ", "Today I "])
def test_the_verb_at_the_beginning_of_an_entry_is_no_name(before: str, past: str) -> None:
    """Notes leave out the "I"; people named Hiked and places named Ordered filled the list of names."""
    assert found(f"{before}{past}") == []
    assert found(f"{before}{past} in Norway with a friend")[0][1] == "Norway"
    assert [name for _, name in found(f"{before}{past} Luigi")] == ["Luigi"]
    assert of_fact("note", past) == []
    assert standing([Named(type="other", name=past)], f"{before}{past} again") == []


@each_row("name", ["Rose", "Will", "Mark", "Hunter", "Drew", "Grant", "Chase", "Fred", "Ahmed", "Jared"])
def test_a_name_at_the_beginning_of_a_sentence_is_found_though_it_could_be_a_verb(name: str) -> None:
    """Rose rose, and Mark marked: who says, likes or lives is a person."""
    assert found(f"{name} likes tea") == [("person", name)]
    assert found(f"Nice. {name} said hi") == [("person", name)]
    assert [one for _, one in found(f"{name} Miller came")] == [f"{name} Miller"]
    assert of_fact("friend", name) == [Named(type="person", name=name)]
    assert of_fact("note", name) == [Named(type="other", name=name)]


@pytest.mark.parametrize("name", ["United Airlines", "Associated Press", "Reed College", "Khaled Hosseini"])
def test_a_name_may_begin_like_a_past(name: str) -> None:
    """Not all that ends in -ed happened."""
    assert [one for _, one in found(f"{name} was in the news")] == [name]
