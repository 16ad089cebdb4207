"""A store that an earlier version made: opened, searched, forgotten from, backed up and put back.

`tests/data/store_7.db.gz` has schema 7, from before hashes were sealed. Ada told her name, two homes one after the
other, that she likes jazz, and of a dog that she had forgotten again; Bo likes tea, in Chinese; both share a group.
`tests/data/store_25.db.gz` has schema 25, made by `remora chat`: Ada told her name, Lisbon and tea, had jazz forgotten
and her allergy undone, asked for a reminder in 2030 and to be asked about her plans. A release adds its own store here.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from memory.context import Context
from memory.service import Service
from memory.store.sqlite.migrate import migrations
from memory.transfer import restore
from tests.kit.fakes import DAY, Clock
from tests.kit.forgetting import forgotten
from tests.kit.stores import opened, rows
from tests.kit.talk import facts, group, private, say

pytestmark = pytest.mark.sqlite("migrates older files")

DATA = Path(__file__).parents[1] / "data"
TOLD = [("home", "Lisbon"), ("likes", "jazz"), ("name", "Ada")]


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Path:
    path = tmp_path / "remora.db"
    path.write_bytes(gzip.decompress((DATA / "store_7.db.gz").read_bytes()))
    shutil.copy(DATA / "store_7.db.erased", tmp_path / "remora.db.erased")
    clock.move(days=3)
    return path


async def passages(memory: Service, context: Context, word: str) -> list[str]:
    hits = await memory.browse.search(context, word, limit=9)
    return [hit.passage.message.text for hit in hits if hit.passage is not None and word in hit.passage.message.text]


async def test_everybody_finds_their_own_again(store: Path, clock: Clock) -> None:
    """By value, by words of the talk, and nobody else's."""
    async with opened(store, clock) as memory:
        assert await rows(memory, "select max(version) from migrations") == [(migrations()[-1].version,)]
        ada, bo = [await memory.identities.context(*private(one)) for one in ("ada", "bo")]
        assert await facts(memory, ada) == TOLD
        assert [key for key, _ in await facts(memory, bo)] == ["likes"]
        assert await passages(memory, ada, "jazz") == ["I like jazz."]
        assert await passages(memory, bo, "jazz") == []
        room = await memory.identities.context(*group("room", "bo"))
        assert await passages(memory, room, "harbour") == ["We meet on Fridays in the harbour."]


async def test_it_forgets_for_good(store: Path, clock: Clock) -> None:
    """A forget now leaves no byte; a forget of then is not undone by old material."""
    async with opened(store, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        await forgotten(memory, ada, "jazz")
        assert await memory.forgetting.finish()
        assert await facts(memory, ada) == [one for one in TOLD if one[1] != "jazz"]
        now, clock.at = clock.at, clock.at - 4 * DAY
        turn = await say(memory, private("ada"), "I have a dog called Quaxo.", ref="old", clock=clock)
        clock.at = now
        await memory.learner.flush(turn.context.session.id, "test")
        assert all(value != "Quaxo" for _, value in await facts(memory, ada))
    assert b"jazz" not in store.read_bytes()


async def test_its_backup_comes_back(store: Path, clock: Clock) -> None:
    async with opened(store, clock) as memory:
        made = await memory.backups.make()
        await forgotten(memory, await memory.identities.context(*private("ada")), "jazz")
    done = await restore.restore(made.path, store, now=clock(), keep=False, say=lambda stage: None)
    assert done.erased.erasings == 1 and b"jazz" not in store.read_bytes()
    async with opened(store, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        assert await facts(memory, ada) == [one for one in TOLD if one[1] != "jazz"]


async def test_reminders_and_wishes_of_a_later_store_are_kept(tmp_path: Path, clock: Clock) -> None:
    """A reminder for years ahead outlives the versions between."""
    path = tmp_path / "remora.db"
    path.write_bytes(gzip.decompress((DATA / "store_25.db.gz").read_bytes()))
    for beside in ("key", "erased"):
        shutil.copy(DATA / f"store_25.db.{beside}", tmp_path / f"remora.db.{beside}")
    clock.at = 1_795_500_000_000  # the day after
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        assert ada.speaker.follow_ups
        told = [("home", "Lisbon"), ("likes", "tea"), ("name", "Ada")]
        assert await facts(memory, ada) == told
        (reminder,) = await memory.reminders.every(ada)
        assert reminder.text == "water the plants" and reminder.next_at == 1_898_586_000_000
        clock.at -= 4 * DAY
        turn = await say(memory, private("ada"), "I like jazz.", ref="old", clock=clock)
        clock.at += 4 * DAY
        await memory.learner.flush(turn.context.session.id, "test")
        assert await facts(memory, ada) == told
