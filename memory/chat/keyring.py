"""A person's API keys: made, listed and revoked by the person, and recognised when a program shows one.

Invariants: Keys are made for the account that asks, and all accounts of one person see and revoke them. Messages and
memories from a program belong to an account of its own, on the platform "api", which is linked with the account that
made the key. A key counts only while both are one person.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.context import Context
from memory.store import api_keys, people
from memory.store.api_keys import ApiKey, KeyScope
from memory.store.database import Database, Reader, Transaction
from memory.store.people import Account

#: The platform of the accounts of programs.
PLATFORM: Final = "api"
#: All permissions that a key may have.
SCOPES: Final[tuple[KeyScope, ...]] = ("chat", "read", "write")
#: The prefix of a key, by which people and tools that look for secrets recognise it.
PREFIX: Final = "rk_"
#: The most keys of a person, and the longest label of one.
MOST_KEYS: Final = 20
_LABEL: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """The person behind a key. `account` made the key, and `user_id` is the account of their programs."""

    key: ApiKey
    account: Account
    user_id: str


class Keyring:
    """The keys of the person who asks, inside one transaction."""

    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._now = now

    def make(self, label: str, scopes: Sequence[KeyScope]) -> tuple[ApiKey, str] | None:
        """Makes a key. Returns it with its secret, which is kept nowhere; None if the person has too many."""
        if len(_of(self._tx, self._context)) >= MOST_KEYS:
            return None
        speaker = self._context.speaker
        program = people.speaker(self._tx, platform=PLATFORM, user_id=str(speaker.id), name=speaker.name, now=self._now)
        people.keep_with(self._tx, speaker.id, program.id)
        secret = PREFIX + secrets.token_urlsafe(32)
        channel = self._context.session.key.partition(":")[0]
        named = " ".join(label.split())[:_LABEL]
        return api_keys.add(self._tx, self._now, speaker.id, channel, secret, named, scopes), secret

    def revoke(self, key_id: int) -> bool:
        """Ends a key for ever. Returns False if the person has none of this number."""
        return api_keys.drop(self._tx, key_id, _people(self._tx, self._context))


class ApiKeys:
    """The keys of one store (`Service.keys`)."""

    def __init__(self, database: Database, *, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now

    async def of(self, context: Context) -> list[ApiKey]:
        """Returns the keys of the person who asks, oldest first."""
        return await self._database.read(lambda reader: _of(reader, context))

    async def make(self, context: Context, label: str, scopes: Sequence[KeyScope]) -> tuple[ApiKey, str] | None:
        """Makes a key as `Keyring.make` does, for the operator at the machine."""
        return await self._database.write(lambda tx: Keyring(tx, context, now=self._now()).make(label, scopes))

    async def revoke(self, context: Context, key_id: int) -> bool:
        """Ends a key as `Keyring.revoke` does, for the operator at the machine."""
        return await self._database.write(lambda tx: Keyring(tx, context, now=self._now()).revoke(key_id))

    async def holder(self, secret: str) -> KeyHolder | None:
        """Returns the person behind a key, and notes its use; None if it is no key, or its accounts are not linked."""
        now = self._now()
        found = await self._database.read(lambda reader: _holder(reader, secret))
        if found is not None and not api_keys.is_noted(found.key, now):
            await self._database.write(lambda tx: api_keys.note_use(tx, now, found.key.id))
        return found


def _people(reader: Reader, context: Context) -> list[int]:
    return [one.id for one in people.accounts(reader, context.speaker.id)]


def _of(reader: Reader, context: Context) -> list[ApiKey]:
    return api_keys.of_people(reader, _people(reader, context))


def _holder(reader: Reader, secret: str) -> KeyHolder | None:
    key = api_keys.by_secret(reader, secret)
    if key is None:
        return None
    user_id = str(key.identity_id)
    together = people.accounts(reader, key.identity_id)
    if not any((one.platform, one.user_id) == (PLATFORM, user_id) for one in together):
        return None
    account = next(one for one in together if one.id == key.identity_id)
    return KeyHolder(key=key, account=account, user_id=user_id)
