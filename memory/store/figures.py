"""Figures of a whole store, for the metrics.

Invariant: only numbers are returned, none of them about one person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memory.store.database import Reader

#: What is counted, each over the smallest index that holds it.
_ROWS: Final = {
    "messages": "select count(*) as n from messages",
    "memories": "select count(*) as n from memories",
    "people": "select count(*) as n from people",
    "chats": "select count(*) as n from chats",
    "reminders": "select count(*) as n from reminders",
}


def rows(reader: Reader) -> Mapping[str, int]:
    """Returns the number of rows of the largest tables. This reads them all, so it is not for every second."""
    return {name: _number(reader, statement) for name, statement in _ROWS.items()}


def waiting(reader: Reader) -> Mapping[str, int]:
    """Returns how much waits for the work in the background, and in the queues."""
    return {
        "inbox": _number(reader, "select count(*) as n from inbox where state in ('pending', 'claimed')"),
        "outbox": _number(reader, "select count(*) as n from outbox where state in ('pending', 'sending', 'unknown')"),
        "reading": _number(reader, "select count(*) as n from extractions where state = 'pending'"),
        "embedding": _number(reader, "select count(*) as n from unembedded"),
        "indexing": _number(reader, "select count(*) as n from changes"),
    }


def _number(reader: Reader, statement: str) -> int:
    row = reader.one(statement)
    assert row is not None
    return int(row["n"])
