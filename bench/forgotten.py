"""Measures the cost of knowing again what was forgotten, with many entries, and the cost a slow hash would have.

Run `python -m bench.forgotten [--entries N]`. Makes a store of one person in a temporary folder, its entries as an
earlier version left them (not sealed), opens it, and asks of statements that were forgotten and of others.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memory.forgetting import ledger
from memory.store import people, word_columns
from memory.store.database import Database, Reader, Transaction
from memory.store.sqlite.database import SqliteDatabase

_ASKED = 1_000


async def measure(folder: Path, entries: int) -> dict[str, float]:
    """Milliseconds by what they were taken for."""
    database = await SqliteDatabase.open(folder / "remora.db", now=1)

    def made(tx: Transaction) -> None:
        people.speaker(tx, platform="console", user_id="ada", name="Ada", now=1)
        for n in range(entries):
            word_columns.note_forgotten(tx, 1, "likes", f"thing {n}", now=n + 2)
        tx.run("update forgotten set key_id = ''")

    def ask(reader: Reader) -> list[float]:
        times = []
        for n in range(_ASKED):
            began = time.perf_counter()
            word_columns.was_forgotten(reader, 1, "likes", f"thing {2 * n}", said_at=1)
            times.append((time.perf_counter() - began) * 1000)
        return times

    await database.write(made)
    figures = {"seal all in the database, once": await _timed(database, lambda tx: word_columns.seal_all(tx, now=1))}
    listed = folder / "remora.db.erased"
    ledger.append(listed, [_bare(n, entries // 100) for n in range(100)])
    began = time.perf_counter()
    ledger.seal_list(listed, database.seal)
    figures["seal all in the list, once"] = (time.perf_counter() - began) * 1000
    figures["ask for one"] = statistics.median(await database.read(ask))
    database.seal.expect(["0" * 16])
    figures["ask for one while a key is lost"] = statistics.median(await database.read(ask))
    await database.close()
    began = time.perf_counter()
    hashlib.scrypt(b"likes\nthing 1", salt=b"0" * 16, n=2**14, r=8, p=1)
    figures["one scrypt (n = 2^14, r = 8, 16 MB)"] = (time.perf_counter() - began) * 1000
    return figures


def _bare(erased_at: int, count: int) -> ledger.LedgerEntry:
    hashes = tuple((1, hashlib.sha256(f"{erased_at} {n}".encode()).hexdigest(), "") for n in range(count))
    what = '{"how": "words", "messages": [], "memories": []}'
    return ledger.LedgerEntry(erased_at=erased_at, what=what, hashes=hashes, hash_key="00")


async def _timed(database: Database, act: Callable[[Transaction], None]) -> float:
    began = time.perf_counter()
    await database.write(act)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    entries = parser.parse_args().entries
    with tempfile.TemporaryDirectory() as folder:
        for what, milliseconds in asyncio.run(measure(Path(folder), entries)).items():
            print(f"{milliseconds:10.3f} ms  {what}")


if __name__ == "__main__":
    main()
