"""Tools in the plainest form, for servers that know few keywords."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agents.providers.quirks import plain_schema
from tests.kit.tables import each_row

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
    """The plain form of the only argument of a tool."""
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
