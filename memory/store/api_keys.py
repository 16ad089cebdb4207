"""Keys by which a person's programs reach the agents and memory.

Invariants: A key belongs to the account that made it. Only its hash is kept, and a key has 256 random bits, so that
the hash is no help in guessing it. Times are milliseconds UTC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.store.database import Reader, Row, Transaction

#: The permissions of a key: to talk to an agent, to read memory, and to change it.
KeyScope: TypeAlias = Literal["chat", "read", "write"]
#: A use is noted at most once in this time, so that reading memory rarely writes.
_NOTED_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as its person sees it. `used_at` is None as long as it was never used."""

    id: int
    identity_id: int
    channel: str
    label: str
    scopes: tuple[KeyScope, ...]
    created_at: int
    used_at: int | None


def add(
    tx: Transaction, now: int, identity_id: int, channel: str, secret: str, label: str, scopes: Sequence[KeyScope]
) -> ApiKey:
    """Keeps the hash of `secret` as a key of this identity, which speaks on `channel`."""
    row = tx.one(
        "insert into api_keys (identity_id, channel, hash, label, scopes, created_at) values (?, ?, ?, ?, ?, ?)"
        f" returning {_KEY}",
        (identity_id, channel, _hash(secret), label, ",".join(scopes), now),
    )
    assert row is not None
    return _key(row)


def of_people(reader: Reader, identity_ids: Sequence[int]) -> list[ApiKey]:
    """Returns the keys of these identities, oldest first."""
    rows = reader.all(
        f"select {_KEY} from api_keys where identity_id in (select value from json_each(?)) order by id",
        (identity_ids,),
    )
    return [_key(row) for row in rows]


def by_secret(reader: Reader, secret: str) -> ApiKey | None:
    row = reader.one(f"select {_KEY} from api_keys where hash = ?", (_hash(secret),))
    return None if row is None else _key(row)


def is_noted(key: ApiKey, now: int) -> bool:
    """Returns whether a use now needs no note of its own."""
    return key.used_at is not None and 0 <= now - key.used_at < _NOTED_MS


def note_use(tx: Transaction, now: int, key_id: int) -> None:
    tx.run("update api_keys set used_at = ? where id = ?", (now, key_id))


def drop(tx: Transaction, key_id: int, identity_ids: Sequence[int]) -> bool:
    """Deletes a key, if it belongs to one of these identities. Returns whether it did."""
    row = tx.one(
        "delete from api_keys where id = ? and identity_id in (select value from json_each(?)) returning id",
        (key_id, identity_ids),
    )
    return row is not None


def drop_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Deletes all keys of these identities."""
    tx.run("delete from api_keys where identity_id in (select value from json_each(?))", (identity_ids,))


def drop_all(tx: Transaction) -> None:
    """Deletes all keys."""
    tx.run("delete from api_keys")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


_KEY = "id, identity_id, channel, label, scopes, created_at, used_at"


def _key(row: Row) -> ApiKey:
    return ApiKey(**{**dict(row), "scopes": tuple(row["scopes"].split(","))})
