"""Counts of the data kept about one person.

Invariant: Only numbers and times are returned, and only about the person who asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.scope import Scope
from memory.store.database import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCounts:
    """Counts of one person's messages: `here` within a scope, `elsewhere` outside it, in so many `groups`.

    `files` counts the attachments of all their messages in private, otherwise of those here. `since` is the time of the
    first message here, in milliseconds UTC.
    """

    here: int
    elsewhere: int
    groups: int
    files: int
    since: int | None


def of_speaker(reader: Reader, scope: Scope, speaker_id: int) -> HeldCounts:
    """Returns the counts of the speaker's messages; in private those of all their identities."""
    owners, authors = scope.owners, scope.selves or (speaker_id,)
    here = "coalesce(m.owner_id in (select value from json_each(?1)), false)"
    # In private, their words in groups are counted as well.
    with reader.within(scope, elsewhere=True):
        said = reader.one(
            f"select count(*) filter (where {here}) as here, count(*) as everywhere,"
            f" count(distinct s.chat_id) filter (where not {here}) as groups,"
            f" min(m.said_at) filter (where {here}) as since"
            " from messages m join sessions s on s.id = m.session_id"
            " where m.author_id in (select value from json_each(?2)) and m.erased_at is null",
            (owners, authors),
        )
        files = reader.one(
            "select count(*) as n from attachments a join messages m on m.id = a.message_id"
            " where m.author_id in (select value from json_each(?2)) and m.erased_at is null"
            " and (?3 = 1 or m.owner_id in (select value from json_each(?1)))",
            (owners, authors, int(scope.private)),
        )
    assert said is not None
    assert files is not None
    return HeldCounts(
        here=said["here"],
        elsewhere=said["everywhere"] - said["here"],
        groups=said["groups"],
        files=files["n"],
        since=said["since"],
    )
