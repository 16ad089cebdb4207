"""A person's API keys: made, listed and revoked by the person, and recognised when a program shows one.

Invariants: Keys are made for the account that asks, and all accounts of one person see and revoke them. Only a key's
hash is kept; a key has 256 random bits, so that the hash is no help in guessing it. Messages and memories from a
program belong to an account of its own, on the platform "api", which is linked with the account that made the key. A
key counts only while both are one person. Times are milliseconds UTC.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.context import Context, StorePart, in_read, in_write
from memory.store import people
from memory.store.database import Reader, Row, Transaction
from memory.store.people import Account

#: The permissions of a key: to talk to an agent, to read memory, and to change it.
KeyScope: TypeAlias = Literal["chat", "read", "write"]
SCOPES: Final[tuple[KeyScope, ...]] = ("chat", "read", "write")
#: The platform of the accounts of programs.
PLATFORM: Final = "api"
#: The prefix of a key, by which people and tools that look for secrets recognise it.
PREFIX: Final = "rk_"
#: The most keys of a person, and the longest label of one.
MOST_KEYS: Final = 20
_LABEL: Final = 60
#: A use is noted at most once in this time, so that reading memory rarely writes.
_NOTED_MS: Final = 60_000
_KEY: Final = "id, identity_id, channel, label, scopes, created_at, used_at"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """The person behind a key. `account` made the key, and `user_id` is the account of their programs."""

    key: ApiKey
    account: Account
    user_id: str


class Keyring:
    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._now = now

    def make(self, label: str, scopes: Sequence[KeyScope]) -> tuple[ApiKey, str] | None:
        if len(_of(self._tx, self._context)) >= MOST_KEYS:
            return None
        speaker = self._context.speaker
        program = people.speaker(self._tx, platform=PLATFORM, user_id=str(speaker.id), name=speaker.name, now=self._now)
        people.keep_with(self._tx, speaker.id, program.id)
        secret = PREFIX + secrets.token_urlsafe(32)
        channel = self._context.session.key.partition(":")[0]
        named = " ".join(label.split())[:_LABEL]
        row = self._tx.one(
            "insert into api_keys (identity_id, channel, hash, label, scopes, created_at) values (?, ?, ?, ?, ?, ?)"
            f" returning {_KEY}",
            (speaker.id, channel, _hash(secret), named, ",".join(scopes), self._now),
        )
        assert row is not None
        return _key(row), secret

    def revoke(self, key_id: int) -> bool:
        return self._tx.has(
            "delete from api_keys where id = ? and identity_id in (select value from json_each(?)) returning id",
            (key_id, _identities(self._tx, self._context)),
        )


class ApiKeys(StorePart):
    """The keys of one store (`Service.keys`). Keys are made and revoked here by the operator at the machine."""

    @in_read
    def of(self, reader: Reader, context: Context) -> list[ApiKey]:
        return _of(reader, context)

    @in_write
    def make(
        self, tx: Transaction, context: Context, label: str, scopes: Sequence[KeyScope]
    ) -> tuple[ApiKey, str] | None:
        return Keyring(tx, context, now=self._now()).make(label, scopes)

    @in_write
    def revoke(self, tx: Transaction, context: Context, key_id: int) -> bool:
        return Keyring(tx, context, now=self._now()).revoke(key_id)

    async def holder(self, secret: str) -> KeyHolder | None:
        """Returns the person behind a key, and notes its use; None if it is no key, or its accounts are not linked."""
        now = self._now()
        holder = await self._database.read(lambda reader: _holder(reader, secret))
        used_at = None if holder is None else holder.key.used_at
        if holder is not None and (used_at is None or not 0 <= now - used_at < _NOTED_MS):
            await self._database.write(
                lambda tx: tx.run("update api_keys set used_at = ? where id = ?", (now, holder.key.id))
            )
        return holder


def drop_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run("delete from api_keys where identity_id in (select value from json_each(?))", (identity_ids,))


def drop_all(tx: Transaction) -> None:
    tx.run("delete from api_keys")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _identities(reader: Reader, context: Context) -> list[int]:
    return [account.id for account in people.accounts(reader, context.speaker.id)]


def _of(reader: Reader, context: Context) -> list[ApiKey]:
    return reader.each(
        f"select {_KEY} from api_keys where identity_id in (select value from json_each(?)) order by id",
        (_identities(reader, context),),
        _key,
    )


def _holder(reader: Reader, secret: str) -> KeyHolder | None:
    row = reader.one(f"select {_KEY} from api_keys where hash = ?", (_hash(secret),))
    if row is None:
        return None
    key, user_id = _key(row), str(row["identity_id"])
    together = people.accounts(reader, key.identity_id)
    if not any((account.platform, account.user_id) == (PLATFORM, user_id) for account in together):
        return None
    account = next(account for account in together if account.id == key.identity_id)
    return KeyHolder(key=key, account=account, user_id=user_id)


def _key(row: Row) -> ApiKey:
    return ApiKey(**{**dict(row), "scopes": tuple(row["scopes"].split(","))})
