"""The columns that hold people's words, and the sealed hashes by which a forgotten statement is recognised.

Invariants: Every text column that may hold words is listed; a test compares this list, and its own of the plain ones
(ids, keys, states, figures, dates), with the database. A new column is entered in either, which decides whether a
forget has to reach it. A forgotten statement leaves only a hash, sealed with a key that lies beside the store
(`sealing`). With that key the hash is enough to recognise the statement; without the key it is not enough even to try
guesses.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memory import keys
from memory.store import settings
from memory.store.database import Reader, Row, Transaction

#: Columns that may hold people's words or names, by table.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "identities": ("name",),
    "chats": ("title",),
    "sessions": ("summary", "active_task", "title"),
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
    "reminders": ("text",),
    "api_keys": ("label",),
}

#: Columns of bytes that hold people's files.
BYTES: Final[dict[str, tuple[str, ...]]] = {"attachments": ("data",), "outbox": ("file",)}

#: The columns among them that are null when they are empty. All others are then ''.
NULLABLE: Final = frozenset(
    {
        ("sessions", "summary"), ("sessions", "active_task"), ("sessions", "title"), ("messages", "tool_calls"),
        ("effects", "result"), ("attachments", "data"), ("outbox", "file"),
    }
)  # fmt: skip


def emptied(table: str, *, besides: Sequence[str] = ()) -> str:
    """Returns the SQL assignments that empty a table's columns of words or bytes, except `besides`."""
    columns = [name for name in (*WORDS[table], *BYTES.get(table, ())) if name not in besides]
    return ", ".join(f"{name} = null" if (table, name) in NULLABLE else f"{name} = ''" for name in columns)


def holding(table: str) -> str:
    """Returns the SQL condition that at least one of these columns is not empty."""
    columns = (*WORDS[table], *BYTES.get(table, ()))
    held = (f"{name} is not null" if (table, name) in NULLABLE else f"{name} <> ''" for name in columns)
    return f"({' or '.join(held)})"


#: The most messages of one erasure that are noted one by one: some 0.4 s of its transaction and 2 MB of the ledger.
MOST_SAID: Final = 20_000
#: The text in place of a message's second if all words of a person are noted.
_EVER: Final = "ever"

#: Indexes derived from the words above. Indexing the change of a row removes that row from each of them.
DERIVED: Final = ("postings", "indexed_documents", "vectors", "vector_signs", "token_bits", "embedding_cache")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An erasure on request. `what` and `counts` are JSON of ids and figures; times are in milliseconds UTC.

    `ended_at` is None as long as a turn that was given the erased words may be under way. `scrubbed_at` is None as long
    as the files may hold a trace of them.
    """

    id: int
    what: str
    counts: str
    erased_at: int
    ended_at: int | None
    scrubbed_at: int | None


def record(tx: Transaction, inbox_id: int | None, what: str, counts: str, *, now: int) -> int:
    """Records an erasure for the receipt, for the work still to be done, and for the ledger. Returns its id."""
    return tx.insert(
        "insert into erasures (inbox_id, what, counts, erased_at) values (?, ?, ?, ?)", (inbox_id, what, counts, now)
    )


def note_reworded(tx: Transaction, *, now: int) -> None:
    """Records the removal of words that must leave no trace in the files. The ledger gets no entry.

    It needs none, because no restore brings these words back for good. Each call adds a row: an earlier row may belong
    to the scrub that is cleaning the files at this moment.
    """
    tx.run("insert into erasures (what, counts, erased_at, listed_at) values ('{}', '{}', ?1, ?1)", (now,))


def of_inbox(reader: Reader, inbox_id: int) -> Erasure | None:
    return reader.first(_ERASURE + " where inbox_id = ?", (inbox_id,), _erasure)


def unscrubbed(reader: Reader) -> list[Erasure]:
    """Returns the erasures that may have left a trace in the files, oldest first."""
    return reader.each(_ERASURE + " where scrubbed_at is null order by id", (), _erasure)


def unlisted(reader: Reader) -> list[Row]:
    """Returns the erasures that the ledger does not hold yet, oldest first, as rows of id, what and erased_at."""
    return reader.all("select id, what, erased_at from erasures where listed_at is null order by id")


def on_request(reader: Reader) -> list[Row]:
    """Returns all erasures on request, oldest first, as rows of what and erased_at."""
    return reader.all("select what, erased_at from erasures where what <> '{}' order by id")


def is_recorded(reader: Reader, what: str, *, erased_at: int) -> bool:
    return reader.has("select 1 from erasures where erased_at = ? and what = ?", (erased_at, what))


def listed(tx: Transaction, erasure_ids: Iterable[int], *, now: int) -> None:
    for erasure_id in erasure_ids:
        tx.run("update erasures set listed_at = ? where id = ?", (now, erasure_id))


def drop_notes(tx: Transaction, *, before: int) -> None:
    """Deletes notes that the files were to be scrubbed, if that was done before a time (milliseconds UTC)."""
    tx.run("delete from erasures where what = '{}' and inbox_id is null and scrubbed_at < ?", (before,))


def ended(tx: Transaction, erasure_id: int, *, now: int) -> None:
    """Records the end of all turns that were given the erased words."""
    tx.run("update erasures set ended_at = ? where id = ?", (now, erasure_id))


def scrubbed(tx: Transaction, erasure_ids: Sequence[int], *, now: int) -> None:
    """Records that no byte of these erasures' words is left in the files."""
    for erasure_id in erasure_ids:
        tx.run("update erasures set scrubbed_at = ? where id = ?", (now, erasure_id))


def _erasure(row: Row) -> Erasure:
    return Erasure(**dict(row))


_ERASURE = "select id, what, counts, erased_at, ended_at, scrubbed_at from erasures"


def note_forgotten(tx: Transaction, owner_id: int, key: str, value: str, *, now: int) -> None:
    """Notes that the statement `key` = `value` is not to be learned again from messages before `now`."""
    salt = _salt(tx)
    put_forgotten(tx, owner_id, *tx.seal.sealed(_hashed(salt, key, value)), at=now)
    for name in _names_of(tx, owner_id):
        put_named(tx, *tx.seal.sealed(_hashed(salt, f"{name} {key}", value)), at=now)


def put_forgotten(tx: Transaction, owner_id: int, under: str, sealed: bytes, *, at: int) -> None:
    """Notes a sealed hash, if the owner exists. The later of two times wins."""
    tx.run(
        "insert into forgotten (owner_id, hash, key_id, created_at) select id, ?2, ?3, ?4 from owners where id = ?1"
        " on conflict (owner_id, hash) do update set created_at = excluded.created_at"
        " where excluded.created_at > forgotten.created_at",
        (owner_id, sealed, under, at),
    )


def hashes_at(reader: Reader, at: int) -> list[tuple[int, bytes, str]]:
    """Returns the hashes noted at a time as (owner id or 0, hash, name of the key or "")."""
    rows = [
        *reader.all("select * from forgotten where created_at = ?", (at,)),
        *reader.all("select 0 as owner_id, hash, key_id from forgotten_named where created_at = ?", (at,)),
    ]
    # A store of an earlier version has no such column.
    return [(row["owner_id"], row["hash"], dict(row).get("key_id", "")) for row in rows]


def forgotten_since(reader: Reader, owner_id: int, since: int) -> bool:
    """Returns whether anything of an owner was forgotten at `since` or later."""
    return reader.has("select 1 from forgotten where owner_id = ? and created_at >= ?", (owner_id, since))


def note_said(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Notes that the words of these messages of people are not to be imported again.

    A message is recognised by its second and its author, or any identity linked with the author. If more than
    `MOST_SAID` messages go at once, only the authors are noted: everything they said until `now` stays out.
    """
    rows = tx.all(
        "select distinct i.platform, i.user_id, m.said_at / 1000 as second from messages m"
        " join identities a on a.id = m.author_id join identities i on i.person_id = a.person_id"
        " where m.id in (select value from json_each(?)) limit ?",
        (message_ids, MOST_SAID + 1),
    )
    said = {(_name(row["platform"], row["user_id"]), str(row["second"])) for row in rows}
    if len(rows) > MOST_SAID:
        rows = tx.all(
            "select distinct i.platform, i.user_id from messages m"
            " join identities a on a.id = m.author_id join identities i on i.person_id = a.person_id"
            " where m.id in (select value from json_each(?))",
            (message_ids,),
        )
        said = {(_name(row["platform"], row["user_id"]), _EVER) for row in rows}
    salt = _salt(tx) if said else ""
    for name, second in said:
        put_named(tx, *tx.seal.sealed(_hashed(salt, name, second)), at=now)


def put_named(tx: Transaction, under: str, sealed: bytes, *, at: int) -> None:
    """Notes a sealed hash that applies whether or not its owner is known here. The later of two times wins."""
    tx.run(
        "insert into forgotten_named values (?, ?, ?)"
        " on conflict (hash) do update set created_at = excluded.created_at"
        " where excluded.created_at > forgotten_named.created_at",
        (sealed, under, at),
    )


def was_said_forgotten(reader: Reader, owner_id: int, platform: str, user_id: str, *, said_at: int) -> bool:
    """Returns whether words said at `said_at` (milliseconds UTC) were forgotten since, according to `note_said`.

    `owner_id` is the owner whose memory they would enter. If a key for forgotten statements of that owner is lost, the
    forgotten words may have been these, so the answer is True.
    """
    salt = salt_of(reader)
    if salt is None:
        return False
    name = _name(platform, user_id)
    hashes = [
        one for second in (str(said_at // 1_000), _EVER) for one in reader.seal.all_of(_hashed(salt, name, second))
    ]
    return _is_named(reader, hashes, said_at=said_at) or _is_lost(reader, owner_id, said_at=said_at)


def was_forgotten(reader: Reader, owner_id: int, key: str, value: str, *, said_at: int) -> bool:
    """Returns whether a statement said at `said_at` was forgotten since. If told again later, it may be learned anew.

    It stays forgotten under a key that says much the same. A hash whose key is lost can't be compared, so it may stand
    for any statement.
    """
    salt = salt_of(reader)
    if salt is None:
        return False  # nothing was ever forgotten here
    alike = keys.kin(key)
    hashes = [one for each in alike for one in reader.seal.all_of(_hashed(salt, each, value))]
    marks = ", ".join("?" * len(hashes))
    owned = reader.has(
        f"select 1 from forgotten where owner_id = ? and hash in ({marks}) and created_at >= ?",
        (owner_id, *hashes, said_at),
    )
    if owned or _is_lost(reader, owner_id, said_at=said_at):
        return True
    names = [f"{name} {each}" for name in _names_of(reader, owner_id) for each in alike]
    hashes = [one for name in names for one in reader.seal.all_of(_hashed(salt, name, value))]
    return _is_named(reader, hashes, said_at=said_at)


def _is_named(reader: Reader, hashes: Sequence[bytes], *, said_at: int) -> bool:
    marks = ", ".join("?" * len(hashes))
    return reader.has(f"select 1 from forgotten_named where hash in ({marks}) and created_at >= ?", (*hashes, said_at))


def _is_lost(reader: Reader, owner_id: int, *, said_at: int) -> bool:
    """Returns whether anything of an owner may have been forgotten since `said_at` under a key that is lost.

    What somebody forgot whom this store does not know, as it is older, may be of anybody.
    """
    lost = list(reader.seal.lost)
    marks = ", ".join("?" * len(lost))
    return reader.has(
        f"select 1 from forgotten where owner_id = ? and key_id in ({marks}) and created_at >= ?",
        (owner_id, *lost, said_at),
    ) or reader.has(
        f"select 1 from forgotten_named n where key_id in ({marks}) and created_at >= ?"
        " and not exists (select 1 from forgotten f where f.created_at = n.created_at)",
        (*lost, said_at),
    )


def seal_all(tx: Transaction, *, now: int) -> None:
    """Seals the hashes that a version without seals has noted, and finds out which keys are lost."""
    bare = tx.all("select owner_id, hash, created_at from forgotten where key_id = ''")
    for row in bare:
        tx.run("delete from forgotten where owner_id = ? and hash = ?", (row["owner_id"], row["hash"]))
        put_forgotten(tx, row["owner_id"], *tx.seal.sealed(row["hash"]), at=row["created_at"])
    if bare:
        note_reworded(tx, now=now)
    used = tx.all("select key_id from forgotten union select key_id from forgotten_named")
    tx.seal.expect(row["key_id"] for row in used)


def salt_of(reader: Reader) -> str | None:
    """Returns the salt of the hashes; None if nothing was ever forgotten here."""
    return settings.value(reader, "hash_key")


def take_salt(tx: Transaction, salt: str) -> bool:
    """Gives a store in which nothing was ever forgotten this salt. Returns whether it is the store's salt now."""
    if salt_of(tx) is None:
        settings.put(tx, "hash_key", salt)
    return salt_of(tx) == salt


def _salt(tx: Transaction) -> str:
    """Returns the store's salt, made on first use.

    It keeps equal statements in two stores from having the same hash, whatever they are sealed with.
    """
    salt = salt_of(tx)
    if salt is not None:
        return salt
    made = secrets.token_hex(32)
    settings.put(tx, "hash_key", made)
    return made


def _hashed(salt: str, key: str, value: str) -> bytes:
    return hmac.digest(bytes.fromhex(salt), f"{key}\n{keys.normalise_value(value)}".encode(), "sha256")


def _names_of(reader: Reader, owner_id: int) -> list[str]:
    """Returns the platform names of an owner: one per identity of a person, one per id of a group or thread."""
    rows = reader.all(
        "select i.platform, i.user_id as reference, null as thread from owners o"
        " join identities a on a.id = o.identity_id join identities i on i.person_id = a.person_id where o.id = ?1"
        " union all select c.platform, c.reference, coalesce(o.thread, '') from owners o join chat_aliases c"
        " on c.chat_id = o.chat_id where o.id = ?1",
        (owner_id,),
    )
    return [_name(*row) for row in rows]


def _name(platform: str, reference: str, thread: str | None = None) -> str:
    return json.dumps([platform, reference, thread])
