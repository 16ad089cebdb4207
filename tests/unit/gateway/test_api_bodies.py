"""JSON bodies of programs: what they hold comes through, and none takes long."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.api import doors
from gateway.api.callers import ApiRefusal
from gateway.api.wire import asked

_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXT, inner, max_size=5),
    max_leaves=20,
)


async def read(body: bytes) -> Any:
    return await doors.read_body(body, lambda made: made)


async def refused(body: bytes) -> int:
    with pytest.raises(ApiRefusal) as refusal:
        await read(body)
    return refusal.value.status


@settings(max_examples=30)
@given(fields=st.dictionaries(_TEXT, _VALUES, max_size=8), ascii_=st.booleans())
async def test_a_body_is_read_as_it_was_written(fields: dict[str, Any], ascii_: bool) -> None:
    """With characters as they are or as escapes, short or long."""
    assert await read(json.dumps(fields, ensure_ascii=ascii_).encode()) == fields
    long = fields | {"long": 'x, {[:"\\' * 10_000}
    assert await read(json.dumps(long, ensure_ascii=ascii_).encode()) == long


async def test_half_a_character_is_no_text() -> None:
    assert await read(b'{"a": "\\ud83d\\ude00 \\ud83d!"}') == {"a": "\N{GRINNING FACE} ?!"}


@pytest.mark.parametrize(
    "body",
    [b"[]", b'"a"', b"{", b"\xff", b'{"a": NaN}', b'{"a": 1e99999' + b"9" * 50 + b"}", b'{"a": ' + b"7" * 99 + b"}"],
)
async def test_what_is_no_object_is_refused(body: bytes) -> None:
    assert await refused(body) == 400


async def test_no_body_is_an_empty_object() -> None:
    assert await read(b"") == {}


_MB = 9_000_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' + b"[" * _MB,
        b'{"a":[' + b"1," * (_MB // 2) + b"1]}",
        b'{"a":[' + b"[]," * (_MB // 3) + b"1]}",
        b"{" + b'"a":1,' * (_MB // 6) + b'"a":1}',
        b'{"a":[' + (b"7" * 4_300 + b",") * (_MB // 4_301) + b"1]}",
        b'{"a":' + b"7" * _MB + b"}",
        b'{"a":[' + (b"[" * 900 + b"]" * 900 + b",") * 50 + b"1]}",
        b'{"a":"' + b'\\"' * (_MB // 2) + b'"}',
        b'{"a":"' + b"\\u4e2d" * (_MB // 6) + b'"}',
        b'{"a":"' + b"\\ud800" * (_MB // 6) + b'"}',
        b'{"a":' + b'"' * _MB,
    ],
    ids=["depth", "numbers", "lists", "one name", "long numbers", "one number", "deep lists", "quotes", "escapes",
         "halves", "open strings"],
)  # fmt: skip
async def test_no_body_takes_long(body: bytes) -> None:
    """Nine million bytes of lists held the interpreter for seconds; a thread would not have helped."""
    began = time.process_time()
    with suppress(ApiRefusal):
        await read(body)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_schema_binds_only_if_the_program_says_so(strict: bool | None) -> None:
    hello = {"role": "user", "content": "Hello"}
    form = {"name": "city", "schema": {"type": "object"}, **({} if strict is None else {"strict": strict})}
    chat = {"model": "m", "messages": [hello], "response_format": {"type": "json_schema", "json_schema": form}}
    responses = {"model": "m", "input": [hello], "text": {"format": {"type": "json_schema", **form}}}
    assert asked(chat, "chat").strict is asked(responses, "response").strict is bool(strict)
    assert asked(chat, "chat").json_schema == {"type": "object"}
