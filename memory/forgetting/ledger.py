"""The ledger: a list of erasures on request beside a store, so that an older copy of the store can be corrected.

Invariants: the ledger holds ids, times and sealed hashes, never text or a key. An erasure is committed first and listed
then; if it is cut off in between, it is listed later. An entry is applied once per database, however often the ledger
holds it. It touches no row that is younger than itself, because a restored database gives the same ids a second time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from memory.atomic import alone_with, replace_file
from memory.errors import StoreUnwritable
from memory.forgetting import erase
from memory.mailbox import inbox, outbox
from memory.store import chats, history, memories, people, word_columns
from memory.store.database import Reader, Transaction
from memory.store.sealing import Seal

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One erasure at `erased_at` (milliseconds UTC): `what`, as `erase.replay` takes it, and the hashes it left.

    `hashes` are (owner id, hexadecimal hash, name of the key it is sealed under or ""), made with the salt `hash_key`.
    The owner id is 0 where the hash contains a platform's name of the owner.
    """

    erased_at: int
    what: str
    hashes: tuple[tuple[int, str, str], ...] = ()
    hash_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    erasings: int = 0
    messages: int = 0
    memories: int = 0


def path_of(store: Path) -> Path:
    return store.with_name(store.name + ".erased")


def unlisted(reader: Reader) -> tuple[list[int], list[LedgerEntry]]:
    """Returns the erasures that the ledger does not hold yet, oldest first, as ids and as entries."""
    rows = word_columns.unlisted(reader)
    return [row["id"] for row in rows], [entry_of(reader, row["erased_at"], row["what"]) for row in rows]


def append(path: Path, entries: Sequence[LedgerEntry]) -> None:
    """Appends entries to the ledger. They are on the disk when this returns. Raises `OSError`.

    Several processes may append to one ledger.
    """
    if not entries:
        return
    lines = "".join(json.dumps(_to_json(entry), separators=(",", ":")) + "\n" for entry in entries)
    with alone_with(path), os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        # A line that was cut off must not swallow the next one.
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else "\n" + lines
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> tuple[list[LedgerEntry], int]:
    """Returns all entries, each once, and a count of unreadable lines. A missing ledger is empty. Raises `OSError`."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    found: dict[tuple[int, str], LedgerEntry] = {}
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


def read_all(paths: Iterable[Path], *, effect: str) -> tuple[list[LedgerEntry], int]:
    """Returns the entries of several ledgers as `read` does. Raises `StoreUnwritable`, which says the `effect`."""
    found: dict[tuple[int, str], LedgerEntry] = {}
    bad = 0
    for path in dict.fromkeys(paths):
        try:
            entries, unreadable = read(path)
        except OSError as exc:
            raise StoreUnwritable(f"Can't read {path}: {exc.strerror}. {effect}") from exc
        found |= {(entry.erased_at, entry.what): entry for entry in entries}
        bad += unreadable
    return list(found.values()), bad


def sealed(entry: LedgerEntry, seal: Seal) -> LedgerEntry:
    """Returns the entry with all hashes sealed. Earlier versions stored them unsealed."""

    def one(owner_id: int, hashed: str, under: str) -> tuple[int, str, str]:
        if under:
            return owner_id, hashed, under
        name, made = seal.sealed(bytes.fromhex(hashed))
        return owner_id, made.hex(), name

    return replace(entry, hashes=tuple(one(*each) for each in entry.hashes))


def seal_list(path: Path, seal: Seal) -> None:
    """Seals the entries that a version without seals put into the ledger. Raises `OSError` and `StoreUnwritable`."""
    if not path.exists():
        return
    with alone_with(path):
        lines = path.read_bytes().splitlines()
        made = [_sealed_line(line, seal) for line in lines]
        if made != lines:
            replace_file(path, b"".join(line + b"\n" for line in made))


def _sealed_line(line: bytes, seal: Seal) -> bytes:
    try:
        entry = _from_json(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return line
    if all(under for _, _, under in entry.hashes):
        return line
    return json.dumps(_to_json(sealed(entry, seal)), separators=(",", ":")).encode()


def missing(reader: Reader, entries: Iterable[LedgerEntry]) -> int:
    known = {(row["erased_at"], row["what"]) for row in word_columns.on_request(reader)}
    return sum((entry.erased_at, entry.what) not in known for entry in entries)


def replay(tx: Transaction, entries: Iterable[LedgerEntry], *, now: int) -> Replayed:
    """Repeats in a store the erasures that it has not on record. Its files still keep traces of the erased rows."""
    before, done = _figures(tx), list[int]()
    for entry in sorted(entries, key=lambda entry: entry.erased_at):
        if word_columns.is_recorded(tx, entry.what, erased_at=entry.erased_at):
            continue
        erase.replay(tx, _narrowed(tx, entry), erased_at=entry.erased_at, now=now)
        _take_hashes(tx, entry)
        row_id = word_columns.record(tx, None, entry.what, "{}", now=entry.erased_at)
        word_columns.listed(tx, [row_id], now=now)
        # The caller removes all traces from the files before anybody opens them.
        word_columns.scrubbed(tx, [row_id], now=now)
        done.append(entry.erased_at)
    if done:
        _clear_unnamed(tx, until=max(done))
    after = _figures(tx)
    return Replayed(erasings=len(done), messages=after[0] - before[0], memories=before[1] - after[1])


def entry_of(reader: Reader, erased_at: int, what: str) -> LedgerEntry:
    # Hashes are noted in the transaction that erases, with exactly its time.
    hashes = word_columns.hashes_at(reader, erased_at)
    return LedgerEntry(
        erased_at=erased_at,
        what=what,
        hashes=tuple((owner_id, hashed.hex(), under) for owner_id, hashed, under in hashes),
        hash_key=(word_columns.salt_of(reader) or "") if hashes else "",
    )


def _narrowed(reader: Reader, entry: LedgerEntry) -> str:
    """Returns `what` without rows younger than the entry: these are other rows that got the same ids since."""
    told: dict[str, Any] = json.loads(entry.what)
    for name in ("messages", "others"):
        told[name] = history.recorded_until(reader, told.get(name, []), entry.erased_at)
    told["identities"] = people.seen_until(reader, told.get("identities", []), entry.erased_at)
    return json.dumps(told)


def _clear_unnamed(tx: Transaction, *, until: int) -> None:
    """Erases all messages that failed or could not be delivered, and all summaries, of all owners.

    An erasure finds these by their words, which are not known any more.
    """
    inbox.blank(tx, inbox.failed(tx, before=until + 1))
    outbox.empty_dead(tx, before=until + 1)
    chats.drop_old_summaries(tx, until=until)


def _take_hashes(tx: Transaction, entry: LedgerEntry) -> None:
    """Stores hashes if their salt fits. A store in which nothing was ever forgotten has none, and takes theirs."""
    if not entry.hashes:
        return
    if not word_columns.take_salt(tx, entry.hash_key):
        return
    for owner_id, hashed, under in sealed(entry, tx.seal).hashes:
        if owner_id:
            word_columns.put_forgotten(tx, owner_id, under, bytes.fromhex(hashed), at=entry.erased_at)
        else:
            word_columns.put_named(tx, under, bytes.fromhex(hashed), at=entry.erased_at)


def _figures(reader: Reader) -> tuple[int, int]:
    return history.count_erased(reader), memories.count_all(reader)


def _to_json(entry: LedgerEntry) -> dict[str, Any]:
    line: dict[str, Any] = {"v": _VERSION, "erased_at": entry.erased_at, "what": json.loads(entry.what)}
    if entry.hashes:
        line |= {"key": entry.hash_key, "hashes": [list(one) for one in entry.hashes]}
    return line


def _from_json(line: dict[str, Any]) -> LedgerEntry:
    if line["v"] != _VERSION or not {"how", "messages", "memories"} <= set(line["what"]):
        raise ValueError("an entry of another kind")
    return LedgerEntry(
        erased_at=int(line["erased_at"]),
        what=json.dumps(line["what"]),
        hashes=tuple(
            (int(owner_id), str(hashed), "".join(under)) for owner_id, hashed, *under in line.get("hashes", [])
        ),
        hash_key=str(line.get("key", "")),
    )
