"""The word index after a merge: one piece, in which no word of a removed row is left."""

from __future__ import annotations

import hashlib
import random

import pytest

from memory.store import driver as drivers
from memory.store import word_index
from memory.store.database import Transaction
from memory.store.driver import Driver

DRIVERS = [drivers.built_in(), *([bundled] if (bundled := drivers.bundled()) is not None else [])]


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name.replace(" ", "-"))
@pytest.mark.parametrize("seed", [21, 64, 93, 104, 120, 198])
def test_no_word_of_a_removed_row_is_left_however_the_index_came_about(driver: Driver, seed: int) -> None:
    """A merge keeps what is void where FTS5 takes it that an older piece could be there: with each seed it once does."""
    chance = random.Random(seed)
    connection = driver.module.connect(":memory:", isolation_level=None)
    connection.row_factory = driver.module.Row
    tx = Transaction(connection)

    def wipe(on: bool) -> None:
        # As the index does when rows are removed because of a forget.
        if driver.fts_secure_delete:
            tx.run("insert into words (words, rank) values ('secure-delete', ?)", (int(on),))

    tx.run("pragma secure_delete = on")
    tx.run("create virtual table words using fts5(scope, tokens)")
    wipe(True)
    said: dict[int, str] = {}
    for _ in range(120):
        for _ in range(chance.randint(1, 3)):
            # Each a transaction, and so a piece of the index.
            row = max(said, default=0) + 1
            said[row] = f"zq{hashlib.sha256(f'{seed} {row}'.encode()).hexdigest()[:14]}"
            tx.run("insert into words (rowid, scope, tokens) values (?, 'o1', ?)", (row, f"i keep {said[row]} here"))
        if chance.random() >= 0.25 or len(said) <= 3:
            continue
        gone = chance.sample(sorted(said)[:-1], chance.randint(1, 3))
        tx.run("begin")
        wipe(False)
        for row in gone:
            tx.run("delete from words where rowid = ?", (row,))
        wipe(True)
        tx.run("commit")
        begin = True
        while not word_index.merge(tx, begin=begin):
            begin = False
        index = b"".join(one["block"] for one in tx.all("select block from words_data"))
        # What begins alike stands once.
        assert not [row for row in gone if said.pop(row)[6:].encode() in index]
    tx.run("insert into words (words) values ('integrity-check')")
    assert {one["rowid"] for one in tx.all("select rowid from words")} == set(said)
    connection.close()
