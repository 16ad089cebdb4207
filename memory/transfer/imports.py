"""The record of imports: their owners, their figures, and their outcomes.

Invariants: Every import has one owner, who owns all of it. If the same files are imported again for the same owner, an
import that was cut short goes on under its number. Only the figures of an undone import stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from memory.errors import NotFound
from memory.store.database import Reader, Row, Transaction

State: TypeAlias = Literal["running", "done", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """The result of an import in numbers: `new` memories by kind, and items left out, by reason.

    `closed` counts older values that a new one replaced, `flagged` memories that read like instructions, `erased`
    messages whose words were erased on request.
    """

    new: Mapping[str, int] = field(default_factory=dict)
    duplicates: int = 0
    forgotten: int = 0
    unwished: int = 0
    worthless: int = 0
    closed: int = 0
    flagged: int = 0
    messages: int = 0
    repeated: int = 0
    erased: int = 0

    @property
    def memories(self) -> int:
        return sum(self.new.values())

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ImportCounts:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import as it stands. Times are milliseconds UTC; `whose` describes the owner for a human."""

    id: int
    short_id: str
    owner_id: int
    whose: str
    format: str
    state: State
    counts: ImportCounts
    started_at: int
    ended_at: int | None


def begin(
    tx: Transaction,
    owner_id: int,
    *,
    format: str,  # noqa: A002 - the column's name
    digest: str,
    now: int,
    new_id: Callable[[], str],
) -> int:
    """Returns the number of a new import, or of the import of the same files that was cut short."""
    row = tx.one(
        "select id from imports where owner_id = ? and format = ? and digest = ? and state = 'running'",
        (owner_id, format, digest),
    )
    if row is not None:
        return int(row["id"])
    short_id = next(
        found for found in iter(new_id, None) if tx.one("select 1 from imports where short_id = ?", (found,)) is None
    )
    return tx.insert(
        "insert into imports (short_id, owner_id, format, digest, state, started_at) values (?, ?, ?, ?, 'running', ?)",
        (short_id, owner_id, format, digest, now),
    )


def same_before(reader: Reader, owner_id: int, *, format: str, digest: str) -> Import | None:  # noqa: A002 - the column's name
    """Returns the last import of exactly the same files for this owner, unless it was undone."""
    row = reader.one(
        _IMPORT + " where m.owner_id = ? and m.format = ? and m.digest = ? and m.state <> 'undone' order by m.id desc",
        (owner_id, format, digest),
    )
    return None if row is None else _import(row)


def all_imports(reader: Reader) -> list[Import]:
    return [_import(row) for row in reader.all(_IMPORT + " order by m.id desc")]


def by_short_id(reader: Reader, short_id: str) -> Import:
    row = reader.one(_IMPORT + " where m.short_id = ?", (short_id,))
    if row is None:
        raise NotFound(f"There is no import {short_id}. `remora import list` shows all imports.")
    return _import(row)


_IMPORT = (
    "select m.id, m.short_id, m.owner_id, m.format, m.state, m.counts, m.started_at, m.ended_at, o.kind, i.platform,"
    " i.user_id, i.name, c.title, o.thread, a.name as agent, (select x.platform || ':' || x.reference"
    "   from chat_aliases x where x.chat_id = o.chat_id order by x.created_at desc limit 1) as chat"
    " from imports m join owners o on o.id = m.owner_id left join identities i on i.id = o.identity_id"
    " left join chats c on c.id = o.chat_id left join agents a on a.id = o.agent_id"
)


def _import(row: Row) -> Import:
    match row["kind"]:
        case "identity":
            whose = f"{row['name'] or 'somebody'} ({row['platform']}:{row['user_id']})"
        case "agent":
            whose = f"everybody who talks with {row['agent']}"
        case _:
            whose = f"{row['title'] or 'a group'} ({row['chat']})"
    return Import(
        id=row["id"],
        short_id=row["short_id"],
        owner_id=row["owner_id"],
        whose=whose,
        format=row["format"],
        state=row["state"],
        counts=ImportCounts.from_json(row["counts"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
