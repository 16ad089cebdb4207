"""A store on PostgreSQL that looks at the end of each transaction that names keys whether it wrote rows of others.

Whose a row is follows from the tables alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from memory.store.database import INDEX, Keys, Row, Transaction, of_chat, of_lane, of_owner, of_person
from memory.store.postgres import walls
from memory.store.postgres.database import PostgresDatabase
from memory.store.postgres.transaction import PostgresTransaction
from memory.store.sqlite.health import DERIVED
from tests.kit import postgres

T = TypeVar("T")
#: Rows that are added by anybody and read by whoever is alone, or by whoever makes the index of them.
_ADDED: Final = frozenset({"changes", "usage"})
#: The columns of each memory in its prompt that a turn counts up. Nobody who has others beside them decides by these.
_COUNTED: Final = frozenset({"access_count", "last_access_at"})
#: The statement that finds the session of a row, by the column that leads there.
_SESSIONS: Final = {
    "session_id": "select key from sessions where id = ?",
    "turn_id": "select s.key from turns t join sessions s on s.id = t.session_id where t.id = ?",
    "message_id": "select s.key from messages m join sessions s on s.id = m.session_id where m.id = ?",
    "inbox_id": "select session_key from inbox where id = ?",
    "outbox_id": "select session_key from outbox where id = ?",
}
#: The statement that finds the owner of a row, by the column that leads there.
_OWNERS: Final = {
    "memory_id": "select owner_id from memories where id = ?",
    "entity_id": "select owner_id from entities where id = ?",
}
_TABLES: Final = (
    "select relname::text from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace"
)
_PERSON: Final = "select platform, user_id from identities where id = ?"
_CHAT: Final = "select platform, reference from chat_aliases where chat_id = ?"
_ACCOUNTS: Final = (
    "select i.platform, i.user_id, o.id as owner_id from identities i left join owners o on o.identity_id = i.id"
    " where i.person_id = ?"
)


class Named(PostgresDatabase):
    """A store in which a transaction fails that writes anything whose key it does not name."""

    @classmethod
    async def at(cls, path: Path) -> PostgresDatabase:
        return await cls.open(postgres.url(path), path, now=1)

    async def write(
        self,
        act: Callable[[Transaction], T],
        *,
        keys: Keys | None = None,
        durable: bool = True,
        single: bool = False,
    ) -> T:
        if keys is None:
            return await super().write(act, durable=durable)

        def checked(tx: Transaction) -> T:
            result = act(tx)
            assert isinstance(tx, PostgresTransaction)
            faults = list(self._faults(tx, keys))
            assert not faults, f"{sorted(keys)} name nothing of {faults}"
            return result

        return await super().write(checked, keys=keys, durable=durable)

    def _faults(self, tx: PostgresTransaction, keys: Keys) -> Iterator[str]:
        tx._wanted = walls.OPEN
        for (table,) in tx.all(_TABLES):
            if table in _ADDED or (table in DERIVED and INDEX in keys):
                continue
            for row in tx.all(f"select * from {table} where xmin = pg_current_xact_id()::xid"):
                if table == "memories" and self._is_counted(row):
                    continue
                if not set(_names(tx, table, row)) & set(keys):
                    yield f"{table} {dict(row)}"

    def _is_counted(self, row: Row) -> bool:
        """Returns whether nothing else of a memory has changed since the last commit."""
        with psycopg.connect(postgres.url(self.path)) as beside:
            before = beside.execute(
                f"select {', '.join(row.keys())} from remora.memories where id = %s".encode(), (row["id"],)
            ).fetchone()
        return before is not None and all(
            was == row[name] for name, was in zip(row.keys(), before, strict=True) if name not in _COUNTED
        )


def _names(tx: Transaction, table: str, row: Row) -> Iterator[str]:
    """The names of a row: a transaction has to name one of them."""
    columns = set(row.keys())
    if table in ("identities", "people"):
        person = row["person_id"] if table == "identities" else row["id"]
        for one in tx.all(_ACCOUNTS, (person,)):
            yield of_person(one["platform"], one["user_id"])
            if table == "people" and one["owner_id"] is not None:
                yield of_owner(one["owner_id"])
    elif table in ("chats", "chat_aliases", "owners"):
        chat = row["id"] if table == "chats" else row["chat_id"]
        yield from (of_chat(*one) for one in tx.all(_CHAT, (chat,)))
        if table == "owners":
            yield from (of_person(*one) for one in tx.all(_PERSON, (row["identity_id"],)))
    elif table in ("memories", "entities"):
        yield of_owner(row["owner_id"])
    elif table == "sessions":
        yield of_lane(row["key"])
    elif "session_key" in columns:
        yield of_lane(row["session_key"])
    elif leading := [column for column in _OWNERS if column in columns]:
        yield from (of_owner(*one) for one in tx.all(_OWNERS[leading[0]], (row[leading[0]],)))
    else:
        for column in (one for one in _SESSIONS if one in columns):
            yield from (of_lane(*one) for one in tx.all(_SESSIONS[column], (row[column],)))
