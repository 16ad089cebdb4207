"""The list beside a database of what was erased on request, so that an older copy of it can be put right.

Invariants: the list holds ids, times and keyed hashes, never text; what is erased is committed first and listed then,
and what was cut off in between is listed later; an entry is done once per database, however often it stands in the
list, and touches no row that is younger than itself, for a database put back gives the same ids a second time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memory.store import erasure, mailbox
from memory.store.database import Reader, Transaction
from memory.upkeep import erase

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One erasing at `erased_at` (milliseconds UTC): `what` as `erase.replay` takes it, and the hashes it has left.

    `hashes` are (owner id, hexadecimal) under `hash_key`.
    """

    erased_at: int
    what: str
    hashes: tuple[tuple[int, str], ...] = ()
    hash_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How many erasings were done once more, and what went with them."""

    erasings: int = 0
    messages: int = 0
    memories: int = 0


def path_of(store: Path) -> Path:
    return store.with_name(store.name + ".erased")


def unlisted(reader: Reader) -> tuple[list[int], list[Entry]]:
    """The rows that the list does not hold yet, oldest first, by their ids and as entries."""
    rows = reader.all("select id, what, erased_at from erasures where listed_at is null order by id")
    return [row["id"] for row in rows], [entry_of(reader, row["erased_at"], row["what"]) for row in rows]


def listed(tx: Transaction, erasure_ids: Iterable[int], *, now: int) -> None:
    for erasure_id in erasure_ids:
        tx.run("update erasures set listed_at = ? where id = ?", (now, erasure_id))


def append(path: Path, entries: Sequence[Entry]) -> None:
    """Put entries into the list, on the disk when this returns. Raises `OSError`."""
    if not entries:
        return
    lines = "".join(json.dumps(_to_json(entry), separators=(",", ":")) + "\n" for entry in entries)
    path.touch(mode=0o600)
    with path.open("r+b") as file:
        # A line that was cut off must not swallow the next one.
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else "\n" + lines
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> tuple[list[Entry], int]:
    """All entries, each once, and how many lines can't be read. A missing list is empty. Raises `OSError`."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    found: dict[tuple[int, str], Entry] = {}
    unreadable = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            entry = _from_json(json.loads(line))
        except (ValueError, TypeError, KeyError):
            unreadable += 1
        else:
            found[entry.erased_at, entry.what] = entry
    return list(found.values()), unreadable


def replay(tx: Transaction, entries: Iterable[Entry], *, now: int) -> Replayed:
    """Erase once more what a store holds again, as far as it does not know of it. Its files keep traces of it still."""
    before, done = _figures(tx), list[int]()
    for entry in sorted(entries, key=lambda entry: entry.erased_at):
        if tx.one("select 1 from erasures where erased_at = ? and what = ?", (entry.erased_at, entry.what)) is not None:
            continue
        erase.replay(tx, _narrowed(tx, entry), erased_at=entry.erased_at, now=now)
        _take_hashes(tx, entry)
        row_id = erasure.record(tx, None, entry.what, "{}", now=entry.erased_at)
        listed(tx, [row_id], now=now)
        # The caller leaves no trace in the files before anybody opens them.
        erasure.scrubbed(tx, [row_id], now=now)
        done.append(entry.erased_at)
    if done:
        _clear_unnamed(tx, until=max(done))
    after = _figures(tx)
    return Replayed(erasings=len(done), messages=after[0] - before[0], memories=before[1] - after[1])


def entry_of(reader: Reader, erased_at: int, what: str) -> Entry:
    """A row of `erasures`, with the hashes that the same erasing left."""
    # Hashes are noted in the transaction that erases, with its very time.
    rows = reader.all("select owner_id, hex(hash) as hash from forgotten where created_at = ?", (erased_at,))
    key = reader.one("select value from store_settings where name = 'hash_key'")
    return Entry(
        erased_at=erased_at,
        what=what,
        hashes=tuple((row["owner_id"], row["hash"].lower()) for row in rows),
        hash_key="" if key is None or not rows else key["value"],
    )


def _narrowed(reader: Reader, entry: Entry) -> str:
    """`what` without the rows that are younger than it: others, which have got the same ids since."""
    told: dict[str, Any] = json.loads(entry.what)
    for name in ("messages", "others"):
        rows = reader.all(
            "select id from messages where recorded_at <= ? and id in (select value from json_each(?))",
            (entry.erased_at, json.dumps(told.get(name, []))),
        )
        told[name] = [row["id"] for row in rows]
    people = reader.all(
        "select id from identities where first_seen_at <= ? and id in (select value from json_each(?))",
        (entry.erased_at, json.dumps(told.get("identities", []))),
    )
    told["identities"] = [row["id"] for row in people]
    return json.dumps(told)


def _clear_unnamed(tx: Transaction, *, until: int) -> None:
    """Have go what erasings find by its words, which are known no more: all of it, whosever it is.

    Messages that failed or could not be delivered, and summaries.
    """
    failed = tx.all(
        "select id from inbox where state in ('failed', 'dead') and payload <> '' and received_at <= ?", (until,)
    )
    mailbox.blank(tx, [row["id"] for row in failed])
    tx.run(
        "update outbox set text = '', markup = '', buttons = '', ticket = '', file_name = '', file = null"
        " where state = 'dead' and created_at <= ?",
        (until,),
    )
    tx.run("update sessions set summary = null, active_task = null where created_at <= ?", (until,))


def _take_hashes(tx: Transaction, entry: Entry) -> None:
    """Hashes are worth something under their own key only; a store in which nothing was ever forgotten has none."""
    if not entry.hashes:
        return
    tx.run("insert or ignore into store_settings values ('hash_key', ?)", (entry.hash_key,))
    row = tx.one("select value from store_settings where name = 'hash_key'")
    if row is None or row["value"] != entry.hash_key:
        return
    for owner_id, hashed in entry.hashes:
        tx.run(
            "insert into forgotten select o.id, ?2, ?3 from owners o where o.id = ?1"
            " on conflict do update set created_at = max(created_at, excluded.created_at)",
            (owner_id, bytes.fromhex(hashed), entry.erased_at),
        )


def _figures(reader: Reader) -> tuple[int, int]:
    row = reader.one(
        "select (select count(*) from messages where erased_at is not null) as blank,"
        " (select count(*) from memories) as memories"
    )
    assert row is not None
    return int(row["blank"]), int(row["memories"])


def _to_json(entry: Entry) -> dict[str, Any]:
    line: dict[str, Any] = {"v": _VERSION, "erased_at": entry.erased_at, "what": json.loads(entry.what)}
    if entry.hashes:
        line |= {"key": entry.hash_key, "hashes": [list(one) for one in entry.hashes]}
    return line


def _from_json(line: dict[str, Any]) -> Entry:
    if line["v"] != _VERSION or not {"how", "messages", "memories"} <= set(line["what"]):
        raise ValueError("an entry of another kind")
    return Entry(
        erased_at=int(line["erased_at"]),
        what=json.dumps(line["what"]),
        hashes=tuple((int(owner_id), str(hashed)) for owner_id, hashed in line.get("hashes", [])),
        hash_key=str(line.get("key", "")),
    )
