"""The count of JSON's values, by which a costly message is told before it is parsed."""

from __future__ import annotations

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.json_values import MOST_VALUES, values
from tests.kit.tables import each_row

JSON = st.recursive(
    st.none() | st.integers() | st.text('",[]{}\\\r\n: a\u2028', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('",[{\\\n', max_size=3), inner, max_size=4),
    max_leaves=12,
)


def counted(value: object) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(counted, inside))


@settings(max_examples=30)
@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_no_message_has_more_values_than_are_counted(value: object, indent: int | None, ascii_only: bool) -> None:
    """Whatever stands in its strings, which are told from the rest once there are many marks."""
    for message in (value, [value, *[0] * MOST_VALUES], [value, "," * MOST_VALUES, value]):
        text = json.dumps(message, indent=indent, ensure_ascii=ascii_only).encode()
        assert counted(message) <= values(text) + 1
        assert counted(message) <= values(b'event: "x\n: "\ndata: ' + text.replace(b"\n", b"\ndata: ")) + 1


@each_row("message", [
        b'["' + b'\\"' * 1_999_000 + b'",,"]' + b"," * 200_000, b'["",' * 1_000_000, b'"' + b'\\",' * 1_330_000,
        b"\\" * 3_700_000 + b"," * 300_000, b'",,\n' * 1_000_000, b'["",' * 190_000, b'"",,,' * 199_000,
    ])  # fmt: skip
def test_counting_takes_its_length_and_no_more(message: bytes) -> None:
    """It runs on the event loop for servers at an address."""
    began = time.thread_time()
    values(message)
    assert time.thread_time() - began < 0.5


def test_commas_in_a_text_are_no_values() -> None:
    """Tables and JSON in a text are one value, however long it is."""
    table = json.dumps([{"a": n, "b": "x, y"} for n in range(120_000)])
    text = json.dumps({"text": table}).encode()
    assert len(text) > 3_000_000 and values(text) <= 2
