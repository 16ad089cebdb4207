"""Which columns hold people's words, and by what a forgotten statement is known again.

Invariant: every text column of the schema is listed, as words or as plain (ids, keys, states, figures, dates); a test
compares this list with the database. Whoever adds a column decides here whether a forget has to reach it. Of what was
forgotten only a keyed hash is kept: enough to know it again, not enough to read it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory import keys
from memory.store.database import Reader, Transaction

#: Columns that may hold what somebody said, wrote or is called, by table.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "identities": ("name",),
    "chats": ("title",),
    "sessions": ("summary", "active_task"),
    "messages": ("author_name", "text", "tool_calls"),
    "steps": ("completion",),
    "effects": ("result",),
    "inbox": ("payload",),
    "outbox": ("text", "markup", "buttons", "ticket", "file_name"),
    "attachments": ("name", "text"),
    "channel_state": ("value",),
    "memories": ("subject", "topic", "key", "value", "tags"),
    "entities": ("name", "norm"),
    "entity_aliases": ("alias",),
}

#: Columns of bytes that show what somebody sent.
BYTES: Final[dict[str, tuple[str, ...]]] = {"attachments": ("data",), "outbox": ("file",)}

#: Text columns that hold none: ids, names of settings and states, JSON of ids and numbers, error codes, dates.
PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "store_settings": ("name", "value"),
    "migrations": ("name",),
    "agents": ("name",),
    "people": ("language", "timezone"),
    "identities": ("platform", "user_id"),
    "chats": ("platform", "kind"),
    "chat_aliases": ("platform", "reference"),
    "owners": ("kind", "thread"),
    "sessions": ("key", "thread", "snapshot"),
    "turns": ("state", "error"),
    "messages": ("role", "platform_ref", "reply_to", "tool_call_id"),
    "effects": ("tool", "state"),
    "inbox": ("platform", "bot_id", "update_key", "session_key", "state", "error"),
    "outbox": ("session_key", "kind", "reply_to", "state", "run", "platform_ref", "error", "edits"),
    "access": ("channel", "subject", "reference", "state", "granted_by"),
    "pairings": ("channel",),
    "pairing_tries": ("channel", "user_id"),
    "looks": ("action",),
    "erasures": ("what", "counts"),
    "imports": ("short_id", "format", "digest", "state", "counts"),
    "questions": ("purpose", "payload", "choices", "preset", "state", "answer"),
    "channel_state": ("channel", "name"),
    "attachments": ("kind", "media_type", "state", "why"),
    "memories": ("short_id", "kind", "category", "flags", "origin", "local_date"),
    "entities": ("type",),
    "recalls": ("item", "placed", "parts"),
    "extractions": ("reason", "state", "error"),
    "usage": ("purpose", "model"),
    "job_runs": ("job", "period", "state", "error", "result"),
    "job_items": ("state", "counts", "undo"),
}

#: Indexes derived from the words above; each is emptied of a row by indexing its change.
DERIVED: Final = ("words", "vectors", "token_bits", "embedding_cache")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Something that was erased on request: `what` and `counts` are JSON of ids and figures, times milliseconds UTC.

    `ended_at` is None as long as a turn may be under way that was given what was erased, `scrubbed_at` as long as the
    files may hold a trace of it.
    """

    id: int
    what: str
    counts: str
    erased_at: int
    ended_at: int | None
    scrubbed_at: int | None


def record(tx: Transaction, inbox_id: int | None, what: str, counts: str, *, now: int) -> int:
    """Note what was erased, for the receipt, for what is still to be done, and for the list beside the database."""
    return tx.insert(
        "insert into erasures (inbox_id, what, counts, erased_at) values (?, ?, ?, ?)", (inbox_id, what, counts, now)
    )


def note_reworded(tx: Transaction, *, now: int, what: str = "{}") -> None:
    """Words went that no restore brings back for good: nothing is to be left of them in the files. No list is told.

    A row each time: an earlier one may be of what the files are being rid of at this moment.
    """
    tx.run("insert into erasures (what, counts, erased_at, listed_at) values (?1, '{}', ?2, ?2)", (what, now))


def of_inbox(reader: Reader, inbox_id: int) -> Erasure | None:
    """What was erased because of this message, if anything was."""
    row = reader.one(_ERASURE + " where inbox_id = ?", (inbox_id,))
    return None if row is None else Erasure(**dict(row))


def unscrubbed(reader: Reader) -> list[Erasure]:
    """What was erased and may have left a trace in the files, oldest first."""
    rows = reader.all(_ERASURE + " where scrubbed_at is null order by id")
    return [Erasure(**dict(row)) for row in rows]


def ended(tx: Transaction, erasure_id: int, *, now: int) -> None:
    """No turn is under way any more that was given what was erased."""
    tx.run("update erasures set ended_at = ? where id = ?", (now, erasure_id))


def scrubbed(tx: Transaction, erasure_ids: Sequence[int], *, now: int) -> None:
    """Of these no byte is left in the files."""
    for erasure_id in erasure_ids:
        tx.run("update erasures set scrubbed_at = ? where id = ?", (now, erasure_id))


_ERASURE = "select id, what, counts, erased_at, ended_at, scrubbed_at from erasures"


def note_forgotten(tx: Transaction, owner_id: int, key: str, value: str, *, now: int) -> None:
    """What `key` = `value` says is not to be learned again from what was said before now."""
    tx.run(
        "insert into forgotten values (?, ?, ?) on conflict do update set created_at = excluded.created_at",
        (owner_id, _fingerprint(_hash_key(tx), key, value), now),
    )


def was_forgotten(reader: Reader, owner_id: int, key: str, value: str, *, said_at: int) -> bool:
    """Whether a statement said at `said_at` was forgotten since. Told again later, it may be learned anew."""
    row = reader.one("select value from store_settings where name = 'hash_key'")
    if row is None:
        return False  # nothing was ever forgotten here
    found = reader.one(
        "select 1 from forgotten where owner_id = ? and hash = ? and created_at >= ?",
        (owner_id, _fingerprint(row["value"], key, value), said_at),
    )
    return found is not None


def _hash_key(tx: Transaction) -> str:
    row = tx.one("select value from store_settings where name = 'hash_key'")
    if row is not None:
        return str(row["value"])
    made = secrets.token_hex(32)
    tx.run("insert into store_settings values ('hash_key', ?)", (made,))
    return made


def _fingerprint(hash_key: str, key: str, value: str) -> bytes:
    return hmac.digest(bytes.fromhex(hash_key), f"{key}\n{keys.normalise_value(value)}".encode(), "sha256")
