"""How much of what somebody said is kept, in figures.

Invariant: only numbers and times come out, and only of the one who asks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from memory.scope import Scope
from memory.store.database import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Messages of one person: `here` in what a scope reads, `elsewhere` in so many `groups` beside it.

    `files` came with them: with all of them in private, else with those here. `since` is when the first of those here
    was said, milliseconds UTC.
    """

    here: int
    elsewhere: int
    groups: int
    files: int
    since: int | None


def of_speaker(reader: Reader, scope: Scope, speaker_id: int) -> Holdings:
    """What is kept of the words of who speaks, in private of all their identities."""
    owners, authors = json.dumps(scope.owners), json.dumps(scope.selves or (speaker_id,))
    said = reader.one(
        "select coalesce(sum(m.owner_id in (select value from json_each(?1))), 0) as here, count(*) as everywhere,"
        " count(distinct iif(m.owner_id in (select value from json_each(?1)), null, s.chat_id)) as groups,"
        " min(iif(m.owner_id in (select value from json_each(?1)), m.said_at, null)) as since"
        " from messages m join sessions s on s.id = m.session_id"
        " where m.author_id in (select value from json_each(?2)) and m.erased_at is null",
        (owners, authors),
    )
    files = reader.one(
        "select count(*) as n from attachments a join messages m on m.id = a.message_id"
        " where m.author_id in (select value from json_each(?2)) and m.erased_at is null"
        " and (?3 or m.owner_id in (select value from json_each(?1)))",
        (owners, authors, int(scope.private)),
    )
    assert said is not None
    assert files is not None
    return Holdings(
        here=said["here"],
        elsewhere=said["everywhere"] - said["here"],
        groups=said["groups"],
        files=files["n"],
        since=said["since"],
    )
