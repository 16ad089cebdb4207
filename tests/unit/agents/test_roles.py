"""Tests of the order of a conversation as servers want it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agents.llm import ChatMessage, Picture, ToolCall
from agents.providers.quirks import plain_schema
from agents.providers.roles import alternating, without_system, without_tools
from tests.kit.tables import each_row


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def bot(text: str, *calls: ToolCall) -> ChatMessage:
    return ChatMessage(role="assistant", content=text, tool_calls=calls)


SYSTEM = ChatMessage(role="system", content="Be brief.")
CALL = ToolCall(id="c1", name="find", arguments="{}")
RESULT = ChatMessage(role="tool", content="tea", tool_call_id="c1")

_MESSAGES = st.lists(
    st.builds(ChatMessage, role=st.sampled_from(["user", "assistant"]), content=st.sampled_from(["a", "b", "c"])),
    max_size=8,
)


@given(_MESSAGES, st.booleans())
def test_person_and_assistant_take_turns_and_no_words_are_lost(messages: list[ChatMessage], system: bool) -> None:
    """Templates of Mistral's models refuse everything else."""
    whole = [SYSTEM, *messages] if system else messages
    for sent in (alternating(whole), without_system(whole)):
        roles = [message.role for message in sent if message.role != "system"]
        assert all(first != second for first, second in pairwise(roles))
        assert not roles or roles[0] == "user"
        said = "".join(part for message in sent for part in message.content.split() if len(part) == 1)
        assert said == "".join(message.content for message in messages)


def test_an_unanswered_message_is_joined_with_the_next() -> None:
    cat = Picture(media_type="image/png", data=b"x")
    first = ChatMessage(role="user", content="one", pictures=(cat,))
    (joined,) = alternating([first, user("two")])
    assert (joined.content, joined.pictures) == ("one\n\ntwo", (cat,))


def test_a_call_keeps_its_results() -> None:
    """They must follow it directly."""
    messages = [SYSTEM, user("?"), bot("", CALL), RESULT, bot("Tea."), user("!")]
    assert alternating(messages) == messages


def test_without_tools_their_results_are_told() -> None:
    """A server without tools refuses calls in the conversation too."""
    sent = without_tools([SYSTEM, user("?"), bot("", CALL), RESULT, bot("Tea."), user("!")])
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[1].content == "?\n\n(Result of find: tea)"
    assert not any(message.tool_calls for message in sent)


def test_the_systems_words_stand_before_the_persons_first() -> None:
    """Gemma's template knows no system role."""
    assert without_system([SYSTEM, user("Hi"), bot("Hello")])[0] == user("Be brief.\n\nHi")


# Tools in the plainest form, for servers that know few keywords


NAMES = st.sampled_from(
    ["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "enum", "const", "required", "a", "title"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["object", "array", "string", "null", "#/$defs/a", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
KEYWORDS = {"type", "description", "enum", "properties", "required", "items"}


def argument(described: dict[str, Any], **more: Any) -> Any:
    schema = {"type": "object", "properties": {"a": described}, "required": ["a"], **more}
    return plain_schema(schema)["properties"]["a"]


@each_row(
    "described, expected",
    [
        ({"type": "string", "minLength": 1, "pattern": "x", "title": "A"}, {"type": "string"}),
        ({"type": ["string", "null"], "default": None, "description": "Where"}, {"type": "string", "description": "Where"}),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}], "description": "N"}, {"type": "integer", "description": "N"}),
        ({"const": "on"}, {"type": "string", "enum": ["on"]}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "array", "items": {"type": "number", "minimum": 0}}, {"type": "array", "items": {"type": "number"}}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"$ref": "#/$defs/Place"}, {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        ({"$ref": "#/$defs/Nowhere"}, {"type": "string"}),
        ({}, {"type": "string"}),
    ],
)  # fmt: skip
def test_names_and_kinds_stay(described: dict[str, Any], expected: dict[str, Any]) -> None:
    """A model needs these; what fits is checked when the tool is called."""
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city", "gone"]}
    assert argument(described, **{"$defs": {"Place": place}}) == expected


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {name: {"$ref": "#/$defs/Node"} for name in "abcdef"}}
    assert len(str(argument({"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}}))) < 100_000
    assert argument({"$ref": "#/$defs/Loop"}, **{"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}) == {"type": "string"}


@example({"properties": {"a": {}}, "required": [[]]})
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_whatever_a_server_of_tools_describes_becomes_a_plain_object(schema: dict[str, Any]) -> None:
    described = plain_schema(schema)
    assert described["type"] == "object" and plain_schema(described) == described
    waiting: list[dict[str, Any]] = [described]
    while waiting:
        one = waiting.pop()
        assert one.keys() <= KEYWORDS and isinstance(one["type"], str)
        waiting += [*one.get("properties", {}).values(), *([one["items"]] if "items" in one else [])]
