"""Backups made of a store in use, and brought back: whole, without what was forgotten since, and nothing said twice."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory.chat.edits import Edits
from memory.context import Context
from memory.errors import SchemaTooNew, StorageError, StoreDamaged, StoreInUse, StoreUnwritable
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import Receipt
from memory.mailbox.outbox import Outgoing, Part
from memory.recall import index
from memory.service import Service
from memory.store import history
from memory.store.database import Transaction
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.driver import Driver
from memory.store.sqlite.migrate import migrations
from memory.transfer import backups, restore
from memory.transfer.backup_copy import Backup
from memory.transfer.backups import Retention
from memory.transfer.formats import remora
from memory.transfer.homes import Owner
from memory.transfer.restore import Restored
from tests.kit.fakes import DAY, Clock
from tests.kit.forgetting import carried_out
from tests.kit.stores import DRIVERS, counting, link, opened, rows, unlink
from tests.kit.talk import act, facts, group, private, received, say, teach

pytestmark = pytest.mark.sqlite("a backup is a copy of the file")

ROOT = Path(__file__).parents[2]


async def told(memory: Service, text: str, clock: Clock, *, answer: str = "ok", person: str = "ada") -> Context:
    turn = await teach(memory, private(person), text, ref=counting(), clock=clock, answer=answer)
    clock.move(minutes=1)
    return turn.context


async def forget(memory: Service, context: Context, words: str, clock: Clock) -> Receipt:
    preview = await memory.forgetting.preview(context, words)
    assert preview is not None and not preview.is_empty
    receipt = await carried_out(memory, context, preview.selection)
    clock.move(minutes=1)
    return receipt


async def bring_back(file: Path, store: Path, clock: Clock, *, keep: bool = True) -> Restored:
    return await restore.restore(file, store, now=clock(), keep=keep, say=lambda stage: None)


def files(folder: Path) -> list[str]:
    """Returns the names of the files in a folder, but for the lock, which stays."""
    return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.endswith(".lock"))


def count(path: Path, sql: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(sql).fetchone()[0])
    finally:
        connection.close()


# Making one -----------------------------------------------------------------------------------------------------


async def test_a_backup_made_while_others_write_holds_one_moment(memory: Service, tmp_path: Path) -> None:
    """A copy of half a transaction would be worse than none."""
    fill = "x" * 12_000

    def pair(tx: Transaction, number: int) -> None:
        tx.run("insert into store_settings values (?, ?)", (f"left{number}", fill))
        tx.run("insert into store_settings values (?, ?)", (f"right{number}", fill))

    for number in range(500):
        await memory.database.write(lambda tx, number=number: pair(tx, number))  # type: ignore[misc]
    making = asyncio.create_task(memory.backups.make())
    written = 0
    while not making.done():
        await memory.database.write(lambda tx: pair(tx, 500 + written))  # noqa: B023 - awaited at once
        written += 1
    made = await making
    assert written > 1
    left = count(made.path, "select count(*) from store_settings where name like 'left%'")
    assert left == count(made.path, "select count(*) from store_settings where name like 'right%'")
    assert 500 <= left <= 500 + written
    assert count(made.path, "select count(*) from migrations") > 0
    assert files(tmp_path / "backups") == [made.name]


async def test_a_backup_holds_no_byte_of_what_was_removed(tmp_path: Path, clock: Clock) -> None:
    """Pages are kept when rows go: a copy of the pages would keep what they held."""
    async with opened(tmp_path / "remora.db", clock) as memory:
        ada = await told(memory, "I live in Quaxolia.", clock)
        await forget(memory, ada, "Quaxolia", clock)
        made = await memory.backups.make()
        assert (made.people, made.memories) == (1, 0)
        assert made.size == made.path.stat().st_size
        content = made.path.read_bytes().lower()
    assert b"quaxolia" not in content
    assert made.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name.replace(" ", "-"))
@pytest.mark.parametrize("fed", [True, False])
async def test_a_backup_made_before_the_index_is_merged_holds_no_word_that_went(
    tmp_path: Path, clock: Clock, driver: Driver, fed: bool
) -> None:
    """Words stay in the index of removed rows for a while; a backup would keep them for weeks."""
    async with opened(tmp_path / "remora.db", clock, driver=driver) as memory:
        said = [*["about the tides"] * 30, "My quaxolia is a secret.", *["about the moon"] * 30]
        turns = [await say(memory, private("ada"), text, ref=counting(), clock=clock) for text in said]
        await index.catch_up(memory.database)
        gone = turns[30].said[0].id
        await memory.database.write(lambda tx: history.erase(tx, [gone], now=clock()))
        if fed:
            await index.catch_up(memory.database)
        made = await memory.backups.make()
        assert b"quaxolia" not in made.path.read_bytes().lower()
        with closing(driver.module.connect(made.path)) as copy:
            found = copy.execute("select count(*) from postings where term = 'moon'").fetchone()
            assert found[0] == 30
    await bring_back(made.path, tmp_path / "remora.db", clock)
    async with opened(tmp_path / "remora.db", clock) as memory:
        assert await memory.browse.search(turns[0].context, "moon", limit=3)


async def test_backups_are_dropped_when_the_receipt_said_so(memory: Service, clock: Clock, tmp_path: Path) -> None:
    """Whoever had something forgotten is told the day when no backup holds it any more: it must be true."""
    assert await memory.backups.until() is None
    first = await memory.backups.make()
    clock.move(days=1)
    second = await memory.backups.make()
    until = await memory.backups.until()
    assert until == second.made_at // 1_000 * 1_000 + 14 * DAY
    foreign = tmp_path / "backups" / "other-20200101T000000Z.db"
    foreign.write_bytes(b"another store's")
    clock.at = until - DAY + 1_000
    assert await memory.backups.drop_old() == 1
    assert files(tmp_path / "backups") == sorted([foreign.name, second.name])
    assert not first.path.exists()
    clock.at = until + 1_000
    assert await memory.backups.drop_old() == 1
    assert files(tmp_path / "backups") == [foreign.name]
    assert await memory.backups.until() is None


async def test_a_backup_that_can_not_be_made_leaves_nothing_and_drops_nothing(
    memory: Service, clock: Clock, tmp_path: Path
) -> None:
    """The last good one must not go because a new one was tried."""
    old = await memory.backups.make()
    clock.move(days=30)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreUnwritable, match="No copy was made"):
        await backups.copy(tmp_path / "remora.db", tmp_path / "file" / "a.db", now=clock())
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreDamaged, match="not a Remora database"):
        await backups.copy(tmp_path / "empty.db", tmp_path / "backups", now=clock())
    assert files(tmp_path / "backups") == [old.name]


async def test_a_backup_that_is_stopped_leaves_nothing(memory: Service, clock: Clock, tmp_path: Path) -> None:
    """Ctrl-C in the middle must not fill the disk with halves."""

    def stop(done: int, of: int) -> None:
        raise StorageError("stopped")

    with pytest.raises(StorageError, match="stopped"):
        await backups.copy(tmp_path / "remora.db", tmp_path / "backups", now=clock(), progress=stop)
    assert files(tmp_path / "backups") == []


async def test_a_damaged_store_gives_no_backup(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        for number in range(20):
            await told(memory, f"Number {number} is a fine number, I think.", clock)
    damage(path, "messages")
    with pytest.raises(StoreDamaged, match="messages"):
        await backups.copy(path, tmp_path / "backups", now=clock())
    assert files(tmp_path / "backups") == []


# Bringing one back ----------------------------------------------------------------------------------------------


async def test_a_restored_store_knows_what_it_knew(tmp_path: Path, clock: Clock) -> None:
    """That is what backups are for; what came later is gone, and the replaced store is kept."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await told(memory, "I live in Porto.", clock)
        made = await memory.backups.make()
        await told(memory, "I like tea.", clock)
    done = await bring_back(made.path, path, clock)
    assert done.contents.rows["messages"] == made.messages == 2
    assert done.kept is not None and count(done.kept, "select count(*) from messages") == 4
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        assert await facts(memory, ada) == [("home", "Porto")]
        await told(memory, "I like coffee.", clock)
        assert await facts(memory, ada) == [("home", "Porto"), ("likes", "coffee")]
        assert await memory.backups.until() is not None
        clock.move(days=15)
        assert await memory.backups.drop_old() == 2
    assert files(tmp_path) == ["remora.db"]


async def test_a_store_that_is_gone_comes_back(tmp_path: Path, clock: Clock) -> None:
    """A dead disk leaves the backup alone, perhaps in another folder of another machine."""
    async with opened(tmp_path / "a" / "remora.db", clock) as memory:
        await told(memory, "I live in Porto.", clock)
        made = await memory.backups.make()
    done = await bring_back(made.path, tmp_path / "b" / "remora.db", clock)
    assert done.kept is None
    assert files(tmp_path / "b") == ["remora.db"]
    async with opened(tmp_path / "b" / "remora.db", clock) as memory:
        assert await facts(memory, await memory.identities.context(*private("ada"))) == [("home", "Porto")]


@pytest.mark.parametrize("replaced", ["there", "gone", "damaged"])
async def test_what_was_forgotten_after_the_backup_stays_forgotten(tmp_path: Path, clock: Clock, replaced: str) -> None:
    """Neither to be read in the file, nor learned anew from what was said before; what others said stays."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await told(memory, "I live in Quaxolia.", clock, answer="Quaxolia it is.")
        await told(memory, "I live in Porto.", clock, person="bob")
        made = await memory.backups.make()
        receipt = await forget(memory, ada, "Quaxolia", clock)
        assert (receipt.memories, receipt.messages) == (1, 1)
        assert receipt.backups_until == made.made_at // 1_000 * 1_000 + 14 * DAY
        if replaced != "there":
            await memory.backups.list_erased()
    assert b"quaxolia" in made.path.read_bytes().lower()
    if replaced == "gone":
        path.unlink()
    if replaced == "damaged":
        path.write_bytes(b"no database any more" * 1_000)
    done = await bring_back(made.path, path, clock)
    slot = 1  # of the profile, which no receipt counts
    assert (done.erased.erasings, done.erased.memories) == (1, receipt.memories + receipt.derived + slot)
    assert done.erased.messages == receipt.messages + receipt.replies
    assert (done.unread is None) == (replaced != "damaged")
    for file in tmp_path.glob("remora.db*"):
        assert b"quaxolia" not in file.read_bytes().lower(), file
    async with opened(path, clock) as memory:
        assert await facts(memory, await memory.identities.context(*private("ada"))) == []
        assert await facts(memory, await memory.identities.context(*private("bob"))) == [("home", "Porto")]
        assert await rows(memory, "select text from messages where role = 'user' order by id") == [
            ("",), ("I live in Porto.",),
        ]  # fmt: skip
        assert await rows(memory, "select count(*) > 0 from forgotten") == [(1,)]


@pytest.mark.parametrize("replaced", ["there", "gone"])
async def test_what_was_erased_wherever_it_stood_stays_erased(tmp_path: Path, clock: Clock, replaced: str) -> None:
    """Messages that failed, what could not be sent, a task: no list names these."""
    path = tmp_path / "remora.db"
    place = private("ada")
    async with opened(path, clock) as memory:
        ada = await told(memory, "I like quokka tea.", clock)
        failed = await memory.mailbox.receive(
            platform="console", bot_id="local", update_key=counting(), session_key=place[0].session_key,
            payload='{"text": "my quokka failed"}',
        )  # fmt: skip

        def act(tx: Transaction) -> None:
            tx.run("update inbox set state = 'failed', finished_at = 1 where id = ?", (failed,))
            piece = Part(text="your quokka", file_name="quokka.txt", file=b"quokka")
            memory.mailbox.post(tx, Outgoing(session_key=place[0].session_key, pieces=[piece]))
            tx.run("update outbox set state = 'dead' where text = 'your quokka'")
            tx.run("update sessions set active_task = 'find a quokka', summary = 'of a quokka'")

        await memory.database.write(act)
        made = await memory.backups.make()
        clock.move(minutes=1)
        await carried_out(memory, ada, Selection(what="me"))
    if replaced == "gone":
        path.unlink()
    assert b"quokka" in made.path.read_bytes().lower()
    assert (await bring_back(made.path, path, clock, keep=False)).erased.erasings == 1
    assert b"quokka" not in path.read_bytes().lower()


async def test_what_was_edited_away_does_not_come_back(tmp_path: Path, clock: Clock) -> None:
    """Neither the old words nor what they had taught; the new ones are not in the backup."""
    path = tmp_path / "remora.db"
    where, who = private("ada")
    async with opened(path, clock) as memory:
        await told(memory, "I live in Quaxolia.", clock)
        made = await memory.backups.make()
        clock.move(minutes=1)
        ((reference,),) = await rows(memory, "select platform_ref from messages where role = 'user'")
        edit = await received(memory, where.session_key)
        assert await memory.requests.amend(
            where, who, edit, platform_ref=str(reference), text="Never mind.", compose=lambda text, _attached: text
        )
        assert await rows(memory, "select count(*) from erasures where listed_at is null") == [(0,)]
        later = await memory.backups.make()
    path.unlink()
    assert (await bring_back(made.path, path, clock)).erased.erasings == 1
    assert b"quaxolia" not in path.read_bytes().lower()
    async with opened(path, clock) as memory:
        assert await facts(memory, await memory.identities.context(where, who)) == []
        # They may say so again at any time.
        await told(memory, "I live in Quaxolia.", clock)
        assert await facts(memory, await memory.identities.context(where, who)) == [("home", "Quaxolia")]
    path.unlink()
    assert (await bring_back(later.path, path, clock)).erased.erasings == 0
    async with opened(path, clock) as memory:
        assert await rows(memory, "select text from messages where role = 'user'") == [("Never mind.",)]


async def test_a_clock_that_was_forgotten_does_not_come_back(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await told(memory, "My timezone is Asia/Tokyo.", clock)
        assert await rows(memory, "select timezone from people") == [("Asia/Tokyo",)]
        made = await memory.backups.make()
        clock.move(minutes=1)
        await forget(memory, ada, "all", clock)
        assert await rows(memory, "select timezone from people") == [(None,)]
    assert (await bring_back(made.path, path, clock)).erased.erasings == 1
    async with opened(path, clock) as memory:
        assert await rows(memory, "select timezone from people") == [(None,)]


async def test_what_was_forgotten_is_erased_once_and_nothing_younger(tmp_path: Path, clock: Clock) -> None:
    """A database put back gives the same ids once more: the list must not take the new rows for the old."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        first = await memory.backups.make()
        ada = await told(memory, "I live in Quaxolia.", clock)
        await forget(memory, ada, "Quaxolia", clock)
    assert (await bring_back(first.path, path, clock)).erased.erasings == 1
    clock.move(minutes=5)
    async with opened(path, clock) as memory:
        bob = await told(memory, "I live in Porto.", clock, person="bob")
        assert bob.speaker.id == ada.speaker.id
        second = await memory.backups.make()
    done = await bring_back(second.path, path, clock)
    assert (done.erased.erasings, done.erased.messages, done.erased.memories) == (0, 0, 0)
    # A copy that does not know of the list's entry, with other people under the same ids.
    other = sqlite3.connect(second.path)
    other.execute("delete from erasures")
    other.commit()
    other.close()
    done = await bring_back(second.path, path, clock)
    assert (done.erased.erasings, done.erased.messages, done.erased.memories) == (1, 0, 0)
    async with opened(path, clock) as memory:
        assert await facts(memory, await memory.identities.context(*private("bob"))) == [("home", "Porto")]
        assert await rows(memory, "select name from identities") == [("bob",)]


async def test_a_forgotten_fact_is_not_learned_from_an_import_after_a_restore(tmp_path: Path, clock: Clock) -> None:
    """The keyed hashes travel, for a store that had never forgotten anything, too."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await told(memory, "I like tea.", clock)
        made = await memory.backups.make()
        await told(memory, "I live in Porto.", clock)
        await forget(memory, ada, "Porto", clock)
        await memory.backups.list_erased()
    path.unlink()
    await bring_back(made.path, path, clock)
    async with opened(path, clock) as memory:
        clock.at -= 3 * 60_000  # an old message, brought in now
        turn = await teach(memory, private("ada"), "I live in Porto.", ref="old", clock=clock)
        assert await facts(memory, turn.context) == [("likes", "tea")]


def _undone(edits: Edits) -> list[Part]:
    assert edits.undo() is not None
    return [Part(text="undone")]


@pytest.mark.parametrize("how", ["forgotten", "deleted", "undone"])
@pytest.mark.parametrize("chain", [("empty",), ("before",), ("told",), ("before", "told"), ("empty", "told", "empty")])
async def test_an_export_brings_back_no_forgotten_words_however_old_the_store(
    tmp_path: Path, clock: Clock, chain: tuple[str, ...], how: str
) -> None:
    """A backup from before the words, or before anybody spoke, holds nothing to be erased: the list must do."""
    path = tmp_path / "remora.db"
    made: dict[str, Path] = {}
    async with opened(path, clock) as memory:
        made["empty"] = (await memory.backups.make()).path
        await told(memory, "I like tea.", clock)
        clock.move(minutes=1)
        made["before"] = (await memory.backups.make()).path
        ada = await told(memory, "I live in Quaxolia.", clock)
        clock.move(minutes=1)
        made["told"] = (await memory.backups.make()).path
        exported = (await memory.transfer.export(ada, transcript=True)).data.decode()
        assert "I live in Quaxolia." in exported
        if how == "forgotten":
            await forget(memory, ada, "Quaxolia", clock)
        elif how == "undone":
            await memory.requests.answer(ada, await received(memory, ada.session.key), _undone)
        else:
            ((reference,),) = await rows(memory, "select platform_ref from messages where text like '%Quaxolia%'")
            assert await memory.requests.retract("console", ada.session.key, [str(reference)]) == 1
        await memory.backups.list_erased()
    for name in chain:
        await bring_back(made[name], path, clock)
        async with opened(path, clock) as memory:
            await memory.transfer.bring(
                Owner(kind="person", agent="assistant", platform="console", reference="ada", name="Ada"),
                remora.read(exported, mask=str),
                session_key=lambda thread: "console:ada:-",
                learn=True,
                digest=name,
            )
            ada = await memory.identities.context(*private("ada"))
            await memory.learner.flush(ada.session.id, "test")
            assert await rows(memory, "select text from messages where text like '%Quaxolia%'") == []
            assert [value for key, value in await facts(memory, ada) if key == "home"] == []
            assert await rows(memory, "select count(*) from messages where text = 'I like tea.'") == [(1,)]
        clock.move(minutes=1)


async def imported(memory: Service, clock: Clock, text: str) -> list[str]:
    """Has an old message brought in and read; returns what is known of Ada's homes then."""
    now = clock.at
    clock.at -= DAY
    turn = await teach(memory, private("ada"), text, ref=counting(), clock=clock)
    clock.at = now
    return [value for key, value in await facts(memory, turn.context) if key == "home"]


async def forgot_porto(path: Path, clock: Clock) -> Backup:
    async with opened(path, clock) as memory:
        ada = await told(memory, "I live in Porto.", clock)
        await forget(memory, ada, "Porto", clock)
        clock.move(minutes=60)
        return await memory.backups.make()


def bare(path: Path, key: str = "home", value: str = "porto") -> bytes:
    """Returns the hash that somebody who has the database alone can make of a guessed statement."""
    with closing(sqlite3.connect(path)) as connection:
        (salt,) = connection.execute("select value from store_settings where name = 'hash_key'").fetchone()
    return hmac.digest(bytes.fromhex(salt), f"{key}\n{value}".encode(), "sha256")


def as_before_seals(path: Path) -> bytes:
    """Leaves a store and its list as a version without seals would; returns the hash that is in both."""
    hashed = bare(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update forgotten set hash = ?, key_id = ''", (hashed,))
        connection.execute("delete from forgotten_named")
        (salt,) = connection.execute("select value from store_settings where name = 'hash_key'").fetchone()
    listed = path.with_name(path.name + ".erased")
    (line,) = [json.loads(line) for line in listed.read_text().splitlines()]
    line |= {"key": salt, "hashes": [[owner_id, hashed.hex()] for owner_id, _, _ in line["hashes"] if owner_id]}
    listed.write_text(json.dumps(line) + "\nhalf a line\n")
    path.with_name(path.name + ".key").unlink()
    return hashed


async def test_what_was_forgotten_is_not_guessed_at_with_a_database_a_backup_and_the_list(
    tmp_path: Path, clock: Clock
) -> None:
    """The key is in none of them, and is for one's own eyes; what anybody can work out with them is not there."""
    path = tmp_path / "remora.db"
    made = await forgot_porto(path, clock)
    file = tmp_path / "remora.db.key"
    assert file.stat().st_mode & 0o777 == 0o600
    key, hashed = file.read_text().strip(), bare(path)
    for held in (path, made.path, tmp_path / "remora.db.erased"):
        content = held.read_bytes()
        for secret in (key.encode(), bytes.fromhex(key), hashed, hashed.hex().encode()):
            assert secret not in content, held
    (sealed,) = [one for one in json.loads((tmp_path / "remora.db.erased").read_text())["hashes"] if one[0]]
    assert sealed[1] == hmac.digest(bytes.fromhex(key), hashed, "sha256").hex()


async def test_what_a_version_without_seals_has_noted_is_sealed_and_holds(tmp_path: Path, clock: Clock) -> None:
    """In the database down to its free pages, and in the list, of which no line is lost."""
    path = tmp_path / "remora.db"
    await forgot_porto(path, clock)
    hashed = as_before_seals(path)
    assert hashed in path.read_bytes()
    async with opened(path, clock) as memory:
        assert await imported(memory, clock, "I live in Porto.") == []
        assert await imported(memory, clock, "I live in Lisbon.") == ["Lisbon"]
        assert await memory.forgetting.finish()
    listed = (tmp_path / "remora.db.erased").read_text()
    assert hashed not in path.read_bytes() and hashed.hex() not in listed
    assert listed.endswith("\nhalf a line\n") and len(json.loads(listed.splitlines()[0])["hashes"]) == 1


async def test_an_older_backup_and_list_are_sealed_by_the_restore(tmp_path: Path, clock: Clock) -> None:
    """Both from before: nothing of them is put in place as it was."""
    path = tmp_path / "remora.db"
    made = await forgot_porto(path, clock)
    hashed = as_before_seals(path)
    with closing(sqlite3.connect(made.path)) as connection, connection:
        for table in ("forgotten", "forgotten_named", "erasures"):
            connection.execute(f"delete from {table}")
    path.unlink()
    done = await bring_back(made.path, path, clock)
    assert (done.erased.erasings, done.lost_key) == (1, False)
    async with opened(path, clock) as memory:
        assert await rows(memory, "select count(*) from forgotten where key_id <> ''") == [(1,)]
        assert await imported(memory, clock, "I live in Porto.") == []
    assert hashed not in path.read_bytes() and hashed.hex() not in (tmp_path / "remora.db.erased").read_text()


async def test_without_the_key_nothing_old_is_learned_until_it_is_back(tmp_path: Path, clock: Clock) -> None:
    """It may be what was forgotten: nobody can tell. What is said from then on is learned, and forgotten, as ever."""
    path, file = tmp_path / "remora.db", tmp_path / "remora.db.key"
    await forgot_porto(path, clock)
    key = file.read_text()
    file.unlink()
    async with opened(path, clock) as memory:
        assert await imported(memory, clock, "I live in Lisbon.") == []
        bob = await told(memory, "I live in Rome.", clock, person="bob")
        assert await facts(memory, bob) == [("home", "Rome")]
        ada = await told(memory, "I live in Faro.", clock)
        assert await facts(memory, ada) == [("home", "Faro")]
        await forget(memory, ada, "Faro", clock)
    assert file.read_text() != key
    file.write_text(key + file.read_text())
    async with opened(path, clock) as memory:
        clock.move(minutes=1)
        assert await imported(memory, clock, "I live in Porto.") == []
        assert await imported(memory, clock, "I live in Faro.") == []
        assert await imported(memory, clock, "I live in Lisbon.") == ["Lisbon"]


@pytest.mark.parametrize("beside", [True, False])
async def test_on_another_machine_the_key_is_taken_from_beside_the_backup(
    tmp_path: Path, clock: Clock, beside: bool
) -> None:
    """It does not come with the backup: whoever moves house carries it there, or is told that it is missing."""
    old, new = tmp_path / "old" / "remora.db", tmp_path / "new" / "remora.db"
    made = await forgot_porto(old, clock)
    async with opened(new, clock) as memory:
        await forget(memory, await told(memory, "I live in Rome.", clock, person="bob"), "Rome", clock)
    before = (tmp_path / "new" / "remora.db.key").read_text()
    if beside:
        (made.path.parent / "remora.db.key").write_text((tmp_path / "old" / "remora.db.key").read_text())
    done = await bring_back(made.path, new, clock)
    assert done.lost_key != beside
    assert (tmp_path / "new" / "remora.db.key").read_text().startswith(before)
    async with opened(new, clock) as memory:
        assert await imported(memory, clock, "I live in Porto.") == []
        assert await imported(memory, clock, "I live in Lisbon.") == (["Lisbon"] if beside else [])


async def test_an_empty_backup_without_the_key_takes_nothing_that_may_have_been_forgotten(
    tmp_path: Path, clock: Clock
) -> None:
    """The store knows nobody, so it can't tell whose the list of what was forgotten is."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        empty = await memory.backups.make()
        await forget(memory, await told(memory, "I live in Porto.", clock), "Porto", clock)
        await memory.backups.list_erased()
    path.unlink()
    path.with_name("remora.db.key").unlink()
    assert (await bring_back(empty.path, path, clock)).lost_key
    async with opened(path, clock) as memory:
        before = clock.at
        clock.at -= 3 * 60_000
        turn = await teach(memory, private("ada"), "I live in Porto.", ref="old", clock=clock)
        assert await facts(memory, turn.context) == []
        clock.at = before + 60_000
        turn = await teach(memory, private("ada"), "I live in Lisbon.", ref="new", clock=clock)
        assert await facts(memory, turn.context) == [("home", "Lisbon")]


async def test_hashes_that_were_written_apart_from_their_erasing_are_listed_after_all(
    tmp_path: Path, clock: Clock
) -> None:
    """As earlier versions wrote them; those of another erasing stay where they are."""
    path = tmp_path / "remora.db"
    old = await SqliteDatabase.open(path, now=1, known=migrations()[:7])

    def written(tx: Transaction) -> None:
        for sql in (
            "insert into people (id, created_at) values (1, 1)",
            "insert into identities values (1, 1, 'console', 'ada', '', 1, 1)",
            "insert into owners (id, kind, identity_id) values (1, 'identity', 1)",
            "insert into store_settings values ('hash_key', 'aa')",
        ):
            tx.run(sql)
        for n, (forgotten, erased_at) in enumerate(((10_000, 10_007), (20_000, 20_000), (30_000, 39_000)), 1):
            tx.run("insert into forgotten values (1, ?, ?)", (bytes([n]), forgotten))
            what = json.dumps({"how": "words", "messages": [n], "memories": []})
            tx.run(
                "insert into erasures (what, counts, erased_at, listed_at, scrubbed_at) values (?1, '{}', ?2, ?2, ?2)",
                (what, erased_at),
            )

    await old.write(written)
    await old.close()
    async with opened(path, clock) as memory:
        times = await rows(memory, "select created_at from forgotten order by created_at")
        assert times == [(10_007,), (20_000,), (30_000,)]
    (listed,) = [json.loads(line) for line in (tmp_path / "remora.db.erased").read_text().splitlines()]
    assert listed["erased_at"] == 10_007 and len(listed["hashes"]) == 1


async def test_erasings_are_listed_as_ids_only_and_none_is_left_out(tmp_path: Path, clock: Clock) -> None:
    """The list lies open beside the database; a line that was cut off spoils no other, and is told of."""
    path, listed = tmp_path / "remora.db", tmp_path / "remora.db.erased"
    async with opened(path, clock) as memory:
        made = await memory.backups.make()
        ada = await told(memory, "I live in Quaxolia.", clock)
        await forget(memory, ada, "Quaxolia", clock)
        listed.unlink(missing_ok=True)
        # As if the process had been killed between the two.
        await memory.database.write(lambda tx: tx.run("update erasures set listed_at = null"))
        listed.write_text('{"v": 1, "erased_at": 17')
    async with opened(path, clock) as memory:
        assert await rows(memory, "select count(*) from erasures where listed_at is null") == [(0,)]
        assert await memory.backups.list_erased() == 0
    _, line = listed.read_text().splitlines()
    assert json.loads(line)["erased_at"] < clock()
    assert "uaxolia" not in line and '"ada"' not in line and "home" not in line
    path.unlink()
    done = await bring_back(made.path, path, clock)
    assert (done.erased.erasings, done.bad_lines) == (1, 1)


# Nothing is done twice ------------------------------------------------------------------------------------------


async def open_mail(memory: Service, clock: Clock) -> Context:
    """An answer that waits to be sent, and a message that waits to be answered."""
    ada = await memory.identities.context(*private("ada"))
    await act(memory, ada, lambda edits: None)
    await memory.mailbox.receive(
        platform="console", bot_id="local", update_key="late", session_key=ada.session.key, payload='{"text": "hi"}'
    )
    clock.move(minutes=1)
    return ada


MAIL = (
    "select (select count(*) from inbox where state = 'pending'), (select count(*) from outbox where state = 'pending')"
)


async def test_what_was_sent_and_answered_since_is_not_sent_and_answered_again(tmp_path: Path, clock: Clock) -> None:
    """The platform does not go back in time with the database."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await open_mail(memory, clock)
        made = await memory.backups.make()
        row = await memory.mailbox.take(ada.session.key)
        assert row is not None
        await memory.mailbox.sent(row, "77")
        (late,) = await memory.mailbox.unanswered()
        await memory.requests.answer(ada, late.id, lambda edits: [Part(text="hello")])
    done = await bring_back(made.path, path, clock)
    assert (done.inbox_ended, done.outbox_ended) == (1, 1)
    async with opened(path, clock) as memory:
        assert await rows(memory, MAIL) == [(0, 0)]
        assert await memory.mailbox.take(ada.session.key) is None
        assert await memory.mailbox.unanswered() == []
        assert await rows(memory, "select payload, error from inbox where update_key = 'late'") == [("", "restored")]
        assert await rows(memory, "select distinct text, state from outbox") == [("", "dead")]


async def test_what_nobody_has_answered_yet_is_answered_after_a_restore(tmp_path: Path, clock: Clock) -> None:
    """Nothing is lost either: where the replaced store says that it is still open, it is."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await open_mail(memory, clock)
        made = await memory.backups.make()
    done = await bring_back(made.path, path, clock)
    assert (done.inbox_ended, done.outbox_ended) == (0, 0)
    async with opened(path, clock) as memory:
        assert await rows(memory, MAIL) == [(1, 1)]
    path.unlink()
    done = await bring_back(made.path, path, clock)
    assert (done.inbox_ended, done.outbox_ended) == (1, 1)


async def test_a_channel_goes_on_from_where_it_was_last(tmp_path: Path, clock: Clock) -> None:
    """From the backup's position on, all that was said since would be fetched and answered a second time."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await memory.access.keep("discord", {"since": "100"})
        made = await memory.backups.make()
        await memory.access.keep("discord", {"since": "200"})
    await bring_back(made.path, path, clock)
    async with opened(path, clock) as memory:
        assert await memory.access.kept("discord", "") == {"since": "200"}
    path.unlink()
    await bring_back(made.path, path, clock)
    async with opened(path, clock) as memory:
        assert await memory.access.kept("discord", "") == {}


async def test_what_people_and_admins_decided_since_holds(tmp_path: Path, clock: Clock) -> None:
    """Who was shut out, who wants nothing learned, who is no longer one person: a backup must not undo that."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada, bob = [await memory.identities.context(*private(person)) for person in ("ada", "bob")]
        await memory.identities.context(*group("club", "ada"))
        await link(memory, ada, bob)
        await memory.access.allow("console", "person", "eve", by="1")
        await memory.access.allow("console", "person", "mia", by="1")
        made = await memory.backups.make()
        await unlink(memory, bob)
        await memory.access.block("console", "person", "eve", by="1")
        await memory.database.write(
            lambda tx: tx.run(
                "update people set learning = 0 where id = (select person_id from identities where user_id = 'ada')"
            )
        )
        await memory.mailbox.presence("console", "console", "club", present=False)
    done = await bring_back(made.path, path, clock)
    assert done.unlinked == 1
    async with opened(path, clock) as memory:
        assert await memory.access.state("console", "person", "eve") == "blocked"
        assert await memory.access.state("console", "person", "mia") == "allowed"
        people = await rows(
            memory,
            "select i.user_id, p.learning from identities i join people p on p.id = i.person_id order by i.user_id",
        )
        # Both, for they were one person in the backup: nobody is asked too little.
        assert people == [("ada", 0), ("bob", 0)]
        assert await rows(memory, "select count(distinct person_id) from identities") == [(2,)]
        assert await rows(memory, "select left_at is not null from chats where kind = 'group'") == [(1,)]


# Refusals -------------------------------------------------------------------------------------------------------


def damage(path: Path, table: str) -> None:
    connection = sqlite3.connect(path)
    page_size = connection.execute("pragma page_size").fetchone()[0]
    root = connection.execute("select rootpage from sqlite_schema where name = ?", (table,)).fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(b"\xaa" * page_size)


def turn_into_text(path: Path) -> None:
    path.write_text("Dear diary, " * 500)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)


def damage_messages(path: Path) -> None:
    damage(path, "messages")


def make_newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("insert into migrations values (9999, 'from_the_future', 0)")
    connection.commit()
    connection.close()


def make_foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("create table messages (id integer primary key)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (turn_into_text, StoreDamaged), (empty, StoreDamaged), (cut_short, StoreDamaged),
        (damage_messages, StoreDamaged), (make_foreign, StoreDamaged), (make_newer, SchemaTooNew),
    ],
)  # fmt: skip
async def test_what_is_no_whole_backup_is_refused_and_the_store_untouched(
    tmp_path: Path, clock: Clock, spoil: Callable[[Path], None], error: type[StorageError]
) -> None:
    """A bad file found at the worst moment must not take the good one along."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await told(memory, "I live in Porto.", clock)
        made = await memory.backups.make()
    spoil(made.path)
    before = path.read_bytes()
    with pytest.raises(error, match=r"[Nn]othing was changed"):
        await bring_back(made.path, path, clock)
    assert path.read_bytes() == before
    assert files(tmp_path) == ["remora.db"]


async def test_damage_to_an_index_alone_spoils_no_backup(tmp_path: Path, clock: Clock) -> None:
    """It is made anew from the rows when the restored store is opened."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await told(memory, "I live in Porto.", clock)
        made = await memory.backups.make()
    damage(made.path, "postings")
    await bring_back(made.path, path, clock)
    async with opened(path, clock) as memory:
        assert memory.database.damage is None
        assert await facts(memory, await memory.identities.context(*private("ada"))) == [("home", "Porto")]


async def test_a_store_in_use_is_not_replaced(memory: Service, clock: Clock, tmp_path: Path) -> None:
    """The running process is named, so that its operator can stop it."""
    made = await memory.backups.make()
    with pytest.raises(StoreInUse, match=str(os.getpid())):
        await bring_back(made.path, tmp_path / "remora.db", clock)


async def test_a_backup_of_an_earlier_version_is_brought_up_to_date(tmp_path: Path, clock: Clock) -> None:
    old, path = tmp_path / "remora-20260101T000000Z.db", tmp_path / "remora.db"
    for driver in {drivers.built_in().name: drivers.built_in(), drivers.best().name: drivers.best()}.values():
        database = await SqliteDatabase.open(old, now=1, known=migrations()[:-1], driver=driver)
        await database.close()
        done = await bring_back(old, path, clock, keep=False)
        assert done.contents.schema == migrations()[-2].version and done.kept is None
        async with opened(path, clock) as memory:
            assert await rows(memory, "select max(version) from migrations") == [(migrations()[-1].version,)]
        for left in tmp_path.glob("remora*"):
            left.unlink()


# Killed in the middle -------------------------------------------------------------------------------------------

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from memory.transfer import backups, restore

def say(stage):
    if stage == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(restore.restore(Path(sys.argv[1]), Path(sys.argv[2]), now=int(sys.argv[4]), keep=True, say=say))
"""


@pytest.mark.parametrize("stage", ["copying", "preparing", "erasing", "keeping", "replacing", "done"])
@pytest.mark.campaign
async def test_killed_at_any_moment_it_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, clock: Clock, stage: str
) -> None:
    """Power cuts don't wait for a good moment; the same command then does it all."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await told(memory, "I live in Quaxolia.", clock)
        await told(memory, "I like tea.", clock)
        made = await memory.backups.make()
        await forget(memory, ada, "Quaxolia", clock)
        await told(memory, "I like coffee.", clock)
    arguments = (str(made.path), str(path), stage, str(clock()))
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    new = stage == "done"
    async with opened(path, clock) as memory:
        assert memory.database.damage is None
        likes = [value for _, value in await facts(memory, await memory.identities.context(*private("ada")))]
        assert sorted(likes) == (["tea"] if new else ["coffee", "tea"])
    assert b"quaxolia" not in path.read_bytes().lower()
    clock.move(minutes=1)
    await bring_back(made.path, path, clock)
    async with opened(path, clock) as memory:
        assert [value for _, value in await facts(memory, await memory.identities.context(*private("ada")))] == ["tea"]
    left = [name for name in files(tmp_path) if not name.startswith("remora.db.before-restore-")]
    assert left == ["remora.db", "remora.db.erased", "remora.db.key"]
    for file in tmp_path.glob("remora.db*"):
        assert b"quaxolia" not in file.read_bytes().lower(), file


async def test_a_log_that_can_not_be_emptied_is_kept_with_its_store(tmp_path: Path, clock: Clock) -> None:
    """Under the new database the old log would be its ruin; with the old one it is the last that was said."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        await told(memory, "I live in Porto.", clock)
        made = await memory.backups.make()
    shell, writer = (sqlite3.connect(path, isolation_level=None) for _ in range(2))
    shell.execute("begin")
    shell.execute("select * from people").fetchall()
    writer.execute("insert into store_settings values ('late', 'word')")
    done = await bring_back(made.path, path, clock)
    writer.close()
    shell.close()
    assert done.kept is not None
    assert count(done.kept, "select count(*) from store_settings where name = 'late'") == 1
    async with opened(path, clock) as memory:
        assert await rows(memory, "select * from store_settings where name = 'late'") == []
        assert await facts(memory, await memory.identities.context(*private("ada"))) == [("home", "Porto")]


async def test_where_backups_are_and_how_long_is_configured(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "data" / "remora.db", clock) as memory:
        place = backups.Backups(
            memory.database, retention=Retention(folder=tmp_path / "elsewhere", keep_days=2), now=clock
        )
        made = await place.make()
        assert made.path.parent == tmp_path / "elsewhere"
        assert await place.until() == made.made_at // 1_000 * 1_000 + 2 * DAY
