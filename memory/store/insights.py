"""Reflections by time: each looks at a stretch of weeks, so only the latest describes the present.

Invariants: Every read is confined by the scope's predicate. The latest reflection is a current one.
"""

from __future__ import annotations

from memory.scope import Scope
from memory.store.database import Reader


def older(reader: Reader, scope: Scope) -> list[int]:
    """Returns the ids of all reflections of a scope except the latest current one."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.superseded_by is null and m.archived_at is null and m.valid_until is null as live"
        f" from memories m where m.kind = 'reflection' and {within.sql}"
        " order by live desc, m.learned_at desc, m.id desc",
        within.parameters,
    )
    return [int(row["id"]) for n, row in enumerate(rows) if n or not row["live"]]


def last_made(reader: Reader, scope: Scope) -> int | None:
    """Returns when a job last made a reflection that still exists in a scope, in milliseconds UTC."""
    within = scope.predicate("m")
    row = reader.one(
        "select max(m.learned_at) as at from memories m where m.kind = 'reflection' and m.origin = 'derived'"
        f" and {within.sql}",
        within.parameters,
    )
    return None if row is None or row["at"] is None else int(row["at"])
