"""Access beyond what the configuration grants: people and groups allowed or blocked, and pairing codes.

Channels also keep their state here across restarts: positions and fingerprints of registrations, never people's words,
each under its own id.

Invariants: A person or group is identified by its exact platform id on one configured channel. A pairing code lets one
person in, once, and never a blocked one. Times are milliseconds UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memory.context import StorePart, reads, writes, writes_at
from memory.people.codes import PAIRING, Wrong
from memory.store.database import Reader, Row, Transaction

State: TypeAlias = Literal["allowed", "blocked"]
Subject: TypeAlias = Literal["person", "group"]
#: The result of giving a code. "expired" is a right code that came too late.
Taken: TypeAlias = Literal["allowed", "expired"] | Wrong

#: The number of codes that may be open at a time on one channel: every open code makes guessing easier.
PENDING: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person or group that was allowed or blocked. `granted_by` is an admin's user id, "code" or "config"."""

    subject: Subject
    reference: str
    state: State
    granted_by: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The result of opening a code. `until` is when it ends; if too many are open, when the first of them ends."""

    opened: bool
    until: int


def state(reader: Reader, channel: str, subject: Subject, reference: str) -> State | None:
    row = reader.one(
        "select state from access where channel = ? and subject = ? and reference = ?", (channel, subject, reference)
    )
    return None if row is None else row["state"]


def grants(reader: Reader, channel: str) -> list[Grant]:
    rows = reader.all(
        "select subject, reference, state, granted_by, created_at from access where channel = ?"
        " order by created_at, subject, reference",
        (channel,),
    )
    return [Grant(**dict(row)) for row in rows]


def allow(tx: Transaction, now: int, channel: str, subject: Subject, reference: str, *, by: str) -> bool:
    """Allows a person or group. Returns False if that was so already.

    Ends a block, and a person's lockout after wrong codes.
    """
    if subject == "person":
        tx.run("delete from pairing_tries where channel = ? and user_id = ?", (channel, reference))
    return _decide(tx, channel, subject, reference, "allowed", by=by, now=now)


def block(tx: Transaction, now: int, channel: str, subject: Subject, reference: str, *, by: str) -> bool:
    """Blocks a person or group, even one allowed before. Returns False if that was so already."""
    return _decide(tx, channel, subject, reference, "blocked", by=by, now=now)


def move_group(tx: Transaction, now: int, channel: str, chat: str, new_chat: str, *, configured: bool) -> None:
    """Carries the decision about a group over to its new chat id; a block on either id stays.

    `configured` says that the configuration lists the old id. Without it the bot would fall silent in that group.
    """
    old = tx.one(
        "delete from access where channel = ? and subject = 'group' and reference = ? returning state, granted_by",
        (channel, chat),
    )
    if old is not None and old["state"] == "blocked":
        block(tx, now, channel, "group", new_chat, by=old["granted_by"])
    elif (old is not None or configured) and state(tx, channel, "group", new_chat) is None:
        allow(tx, now, channel, "group", new_chat, by="config" if old is None else old["granted_by"])


def decided(reader: Reader) -> list[Row]:
    return reader.all("select channel, subject, reference, state, granted_by, created_at from access")


def take_over(tx: Transaction, rows: Iterable[Row]) -> None:
    """Puts decisions of another copy of the store in the place of those here."""
    for row in rows:
        tx.run(f"insert into access values (?, ?, ?, ?, ?, ?){_INSTEAD}", tuple(row))


def open_pairing(tx: Transaction, now: int, channel: str, code: str) -> Pairing:
    """Opens `code` to let one person in, unless `PENDING` other codes are open.

    In that case the new code is refused instead of replacing the oldest: the admin who asks is told and can wait, while
    a person holding a code that had silently died could not know why.
    """
    PAIRING.end_expired(tx, now=now)
    row = tx.one("select count(*) as pending, min(expires_at) as first from pairings where channel = ?", (channel,))
    assert row is not None
    if row["pending"] >= PENDING:
        return Pairing(opened=False, until=row["first"])
    return Pairing(opened=True, until=PAIRING.open(tx, code, now=now, channel=channel))


def take_pairing(tx: Transaction, now: int, channel: str, user_id: str, code: str) -> Taken:
    if PAIRING.is_locked(tx, (channel, user_id), now=now):
        return "no_tries_left"
    if state(tx, channel, "person", user_id) == "blocked":
        return "wrong"
    fits = PAIRING.fitting(tx, code, channel)
    PAIRING.end_expired(tx, now=now)
    if fits is None:
        return PAIRING.note_wrong(tx, (channel, user_id), channel, now=now)
    if fits["expires_at"] <= now:
        return "expired"
    PAIRING.end(tx, fits)
    allow(tx, now, channel, "person", user_id, by="code")
    return "allowed"


def _decide(
    tx: Transaction, channel: str, subject: Subject, reference: str, decided: State, *, by: str, now: int
) -> bool:
    if state(tx, channel, subject, reference) == decided:
        return False
    tx.run(
        "insert into access (channel, subject, reference, state, granted_by, created_at)"
        f" values (?, ?, ?, ?, ?, ?){_INSTEAD}",
        (channel, subject, reference, decided, by, now),
    )
    return True


#: A decision replaces an earlier one about the same person or group.
_INSTEAD = (
    " on conflict (channel, subject, reference) do update set state = excluded.state, granted_by = excluded.granted_by,"
    " created_at = excluded.created_at"
)


def kept(reader: Reader, channel: str, prefix: str) -> dict[str, str]:
    return reader.pairs(
        "select name, value from channel_state where channel = ? and substr(name, 1, length(?2)) = ?2 order by name",
        (channel, prefix),
    )


def keep(tx: Transaction, channel: str, values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            tx.run("delete from channel_state where channel = ? and name = ?", (channel, name))
        else:
            tx.run(
                "insert into channel_state values (?, ?, ?) on conflict (channel, name) do update set value ="
                " excluded.value",
                (channel, name, value),
            )


def all_kept(reader: Reader) -> list[Row]:
    return reader.all("select channel, name, value from channel_state")


def replace_kept(tx: Transaction, rows: Iterable[Row]) -> None:
    """Puts the state of another copy of the store in the place of the state here."""
    tx.run("delete from channel_state")
    for row in rows:
        tx.run("insert into channel_state values (?, ?, ?)", tuple(row))


class Access(StorePart):
    """One store's access decisions, and what its channels keep, by the configured ids of the channels."""

    state = reads(state)
    grants = reads(grants)
    allow = writes_at(allow)
    block = writes_at(block)
    open_pairing = writes_at(open_pairing)
    take_pairing = writes_at(take_pairing)
    move_group = writes_at(move_group)
    kept = reads(kept)
    keep = writes(keep)
