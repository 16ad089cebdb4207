"""Figures of a whole store, for the metrics.

Invariant: only numbers are returned, none of them about one person.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.store.database import Reader


def rows(reader: Reader) -> Mapping[str, int]:
    """Returns the number of rows of the largest tables. This reads them all, so it is not for every second."""
    return {
        "messages": reader.number("select count(*) from messages"),
        "memories": reader.number("select count(*) from memories"),
        "people": reader.number("select count(*) from people"),
        "chats": reader.number("select count(*) from chats"),
        "reminders": reader.number("select count(*) from reminders"),
    }


def waiting(reader: Reader) -> Mapping[str, int]:
    """Returns the number of items that wait for the work in the background, and in the queues."""
    return {
        "inbox": reader.number("select count(*) from inbox where state in ('pending', 'claimed')"),
        "outbox": reader.number("select count(*) from outbox where state in ('pending', 'sending', 'unknown')"),
        "reading": reader.number("select count(*) from extractions where state = 'pending'"),
        "embedding": reader.number("select count(*) from unembedded"),
        "indexing": reader.number("select count(*) from changes"),
    }
