"""Values of JSON that another program wrote, read without trust: of the wrong type, they count as empty.

Invariants: pure. No text holds half a surrogate pair, which JSON may contain but no database takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from memory.text.times.clock import is_in_calendar

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Numbers beyond this are milliseconds, below it seconds (of the year 5138).
_MILLISECONDS: Final = 1e11


def string(value: object) -> str:
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def array(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def moment(value: object, zone: tzinfo = UTC) -> int | None:
    """Returns milliseconds UTC of a number of (milli)seconds, or of an ISO time, which is of `zone` by default."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            read = read if read.tzinfo is not None else read.replace(tzinfo=zone)
            at = (read - _EPOCH) // timedelta(milliseconds=1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = int(value if value > _MILLISECONDS else value * 1_000)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return at if at > 0 and is_in_calendar(at) else None
