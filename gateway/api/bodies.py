"""Bodies of programs' requests: JSON that is bounded before it is read.

Invariants: no body makes the reader stand for more than some 50 ms. The time that JSON takes grows with its values, not
with its bytes, so the values are counted first; the count leaves strings out, as a long text may hold any number of
commas. A large body is read in a thread: no single step there holds the interpreter for long.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from gateway.api.callers import ApiRefusal
from gateway.api.wire import JSON

#: Bytes of a body that are read at once, whatever it holds.
_SMALL: Final = 32_000
#: The most values and names in a body; this many take 20 to 50 ms, and a conversation of 2,000 messages has 10,000.
_MOST_VALUES: Final = 50_000
#: The most digits of a number.
_DIGITS: Final = 40
#: The escape of half a character, which no text can hold without the other half.
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
T = TypeVar("T")


async def read(body: bytes, made: Callable[[JSON], T]) -> T:
    """Returns what `made` makes of a body, which must be a JSON object; an empty one is {}. Raises `ApiRefusal`."""
    if len(body) <= _SMALL:
        return made(_object(body))
    return await asyncio.to_thread(lambda: made(_object(body)))


def _object(body: bytes) -> JSON:
    if len(body) > _SMALL and _values(body) > _MOST_VALUES:
        raise ApiRefusal(413, "too_many_values", f"A body may hold at most {_MOST_VALUES:,} values. Send less at once.")
    try:
        body_read = json.loads(
            body.decode("utf-8") or "{}", parse_int=_whole, parse_float=_number, parse_constant=_no_number
        )
        if _HALF.search(body):
            body_read = json.loads(json.dumps(body_read, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        body_read = None
    if not isinstance(body_read, dict):
        raise ApiRefusal(400, "invalid_json", "The body must be a JSON object.")
    return body_read


def _values(body: bytes) -> int:
    """Returns how many marks of structure stand outside the strings of a body, and how many strings there are."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = plain.count(b'"') // 2
    if strings > _MOST_VALUES:
        return strings
    outside = b"".join(plain.split(b'"')[::2])
    return sum(outside.count(mark) for mark in (b",", b":", b"[", b"{"))


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError
    return int(digits)


def _number(digits: str) -> float:
    if len(digits) > _DIGITS:
        raise ValueError
    return float(digits)


def _no_number(name: str) -> NoReturn:
    """Refuses NaN and Infinity, which are no JSON."""
    raise ValueError(name)
