"""Tests of how a call's name and arguments are read: for what they mean, and never for more."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.calls import arguments_in, tool_named
from tests.kit.tables import each_row

TOOLS = ("now", "search_memory", "web_find", "forget")


@each_row(
    ("written", "meant"),
    [
        ("now", "now"), ("functions.now", "now"), ("functions::now", "now"), ("functions.now:0", "now"),
        ("default_api:now", "now"), ("default_api.search_memory", "search_memory"), ("tool.now", "now"),
        ("mcp__web__find", "web_find"), ("web.find", "web_find"), ("now<|channel|>commentary", "now"),
        ("functions.now<|constrain|>json", "now"), ("nowjson", "now"), (" now\n", "now"), ("`now`", "now"),
        ("'now'", "now"), ("now()", "now"), ("now:12", "now"), ("searchMemory", "search_memory"),
        ("search-memory", "search_memory"),
    ],
)  # fmt: skip
def test_a_tool_is_known_however_its_name_is_written(written: str, meant: str) -> None:
    assert tool_named(written, TOOLS) == meant


@pytest.mark.parametrize(
    "written", ["", " ", ".", "functions", "find", "knows", "nowhere", "forgetful", "functions.", "<"]
)
def test_another_name_is_no_tools(written: str) -> None:
    assert tool_named(written, TOOLS) is None


def test_a_name_that_two_tools_fit_is_neithers() -> None:
    assert tool_named("Web.Find", ("web_find", "webfind")) is None
    assert tool_named("webfind", ("web_find", "webfind")) == "webfind"


@each_row(
    ("written", "meant"),
    [
        ("{'q': 'it\\'s \"tea\"', 'n': None}", {"q": 'it\'s "tea"', "n": None}),
        ('{"yes": True, "no": False, "none": None}', {"yes": True, "no": False, "none": None}),
        ('{"q": "True, None"}```', {"q": "True, None"}),
        ('{"q": "one\ntwo\tthree"}', {"q": "one\ntwo\tthree"}),
        ('{"list": [1, 2,], "more": {"a": 1,},}', {"list": [1, 2], "more": {"a": 1}}),
        ('{q: "tea"}', {"q": "tea"}),
        ('{q:<|"|>green "tea"<|"|>,n:3,deep:{a:[<|"|>b<|"|>]}}', {"q": 'green "tea"', "n": 3, "deep": {"a": ["b"]}}),
        ("{q:<escape>tea<escape>}", {"q": "tea"}), ('```json\n{"q": "tea"}\n```', {"q": "tea"}),
        ('{"q": "tea"}\n```', {"q": "tea"}), ('json\n{"q": "tea"}', {"q": "tea"}),
        ('<|constrain|>json<|message|>{"q": "tea"}<|call|>', {"q": "tea"}),
        ('{"q": "tea"}{"q": "tea"}', {"q": "tea"}), ('{}{"q": "tea"}', {"q": "tea"}),
        ('"{\\"q\\": \\"tea\\"}"', {"q": "tea"}), ('{"q": "tea"}</tool_call>', {"q": "tea"}), ("null", {}), ('""', {}),
    ],
)  # fmt: skip
def test_arguments_are_read_that_mean_one_thing_only(written: str, meant: dict[str, object]) -> None:
    assert json.loads(arguments_in(written)) == meant


@pytest.mark.parametrize(
    "written",
    [
        '{"a": 1}{"a": 2}', '{"a": 1', '{"a": "b', 'Sure: {"a": 1}', '{"a": 1} and more', "{'a': 'it's'}", "{a: b}",
        '[{"a": 1}]', "1", '"a"', '"[1]"', "", "{{}}", "{" * 100_000, '{"a": 01}', '{"a" 1}',
    ],
)  # fmt: skip
def test_arguments_that_could_mean_two_things_stay_as_they_were(written: str) -> None:
    """Half of a list of what to forget is not what was asked for."""
    assert arguments_in(written) == written


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())))
def test_arguments_that_are_json_stay_as_they_were(value: dict[str, object]) -> None:
    for written in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert arguments_in(written) == written


@given(st.dictionaries(st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text()))
def test_arguments_written_in_another_way_are_the_same(value: dict[str, object]) -> None:
    plain = json.dumps(value)
    assert json.loads(arguments_in(json.dumps(plain))) == value
    assert json.loads(arguments_in(f"```json\n{plain}\n```")) == value
    assert json.loads(arguments_in(plain * 2)) == value
    assert json.loads(arguments_in(plain.removesuffix("}") + ("," if value else "") + "}")) == value


@given(st.text(alphabet="{}[]\"'\\:,<|>` \naTrue1", max_size=60))
def test_any_arguments_are_looked_at_without_an_error(text: str) -> None:
    read = arguments_in(text)
    assert read == text or isinstance(json.loads(read), dict)
    tool_named(text, TOOLS)
