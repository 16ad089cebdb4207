"""`remora doctor` on installations that are broken, each in one way: the lines that it prints."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.cli import examination
from gateway.cli.doctor import told
from gateway.config.loading import ConfigError, load
from memory.store.sqlite.migrate import migrations
from tests.kit import ollama
from tests.kit.fakes import DAY, NOON, Clock
from tests.kit.stores import opened, planted
from tests.kit.talk import private

Home: TypeAlias = Path
#: Changes an installation whose model is served at an address.
Break: TypeAlias = Callable[[Home, str], object]


@asynccontextmanager
async def sound(home: Home) -> AsyncIterator[str]:
    """An installation in which all is well but that the bot isn't running; yields the address of its model."""
    (home / "agents").mkdir()
    (home / "config.yaml").write_text("data_dir: data\nhttp: {port: 1}\nembedding: {provider: none}\n")
    async with opened(home / "data" / "remora.db", Clock(), agents=("assistant",)) as memory:
        await planted(memory, await memory.identities.context(*private("ada")), "lives in Porto")
    for file in (home / "data").iterdir():
        file.chmod(0o600)
    backed_up(home, NOON - DAY / 24)
    async with ollama.running(ollama.FakeOllama(models=("kept",), keys=frozenset({"right"}))) as server:
        model(home, server.address)
        yield server.address


def model(home: Home, address: str, key: str = "right") -> None:
    served = {"provider": "openai", "model": "kept", "base_url": f"http://{address}/v1", "key": key}
    (home / "agents" / "assistant.yaml").write_text(f"name: assistant\nmodels: [{json.dumps(served)}]\n")


def added(home: Home, line: str, file: str = "config.yaml") -> None:
    with (home / file).open("a") as written:
        written.write(f"{line}\n")


def backed_up(home: Home, at: float | None) -> None:
    """Puts an empty file where the only backup would be, or none; doctor goes by its name."""
    for old in (home / "data").glob("backups/*"):
        old.unlink()
    if at is None:
        return
    (home / "data" / "backups").mkdir(exist_ok=True)
    stamp = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    (home / "data" / "backups" / f"remora-{stamp}.db").touch(0o600)


def of_tomorrow(home: Home) -> None:
    with closing(sqlite3.connect(home / "data" / "remora.db")) as store, store:
        store.execute("insert into migrations values (9999, 'later', 1)")


def torn(home: Home) -> None:
    path = home / "data" / "remora.db"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40_000)


def replaced(home: Home, old: str, new: str) -> None:
    file = home / "config.yaml"
    file.write_text(file.read_text().replace(old, new))


#: The lines that the sound installation has, too.
NOT_RUNNING = {"!!  process: no Remora answers at http://127.0.0.1:1/healthz", "      Start it with `remora serve`."}
NO_ROOM = 50_000_000


async def printed(home: Home, *, free: int = 10**11) -> list[str]:
    """The lines that tell what is wrong, with `~` for the installation's folder."""
    try:
        config = load(home / "config.yaml", {}, home)
    except ConfigError as error:
        return str(error).replace(str(home), "~").splitlines()
    found = [one async for one in examination.examine(config, now=lambda: NOON, free=lambda folder: free)]
    text = "\n".join(told(one) for one in found if one.state != "ok")
    return [line for line in text.replace(str(home), "~").splitlines() if line not in NOT_RUNNING]


BROKEN: dict[str, tuple[Break, str]] = {
    "nothing": (lambda home, address: None, ""),
    "a wrong key": (
        lambda home, address: model(home, address, "wrong"),
        """
XX  model openai/kept: {address} (model kept) refused access (401): its key was not accepted. It said: “no such key”. Set the key in the model's configuration, and check that it may use this model.
      Look at models in the file of assistant, and at the key it names.
""",
    ),
    "a model server that is off": (
        lambda home, address: model(home, "127.0.0.1:1"),
        """
XX  model openai/kept: 127.0.0.1:1 (model kept) refused the connection: nothing listens there. Start the model server, or correct base_url.
      Look at models in the file of assistant, and at the key it names.
""",
    ),
    "an embedding server that is off": (
        lambda home, address: replaced(
            home, "{provider: none}", "{provider: ollama, model: m, base_url: 'http://127.0.0.1:1'}"
        ),
        """
!!  search by meaning: The embedding model m at 127.0.0.1 can't be reached: All connection attempts failed.
      Until then words alone find memories.
""",
    ),
    "a missing file": (
        lambda home, address: added(home, "own_tools: [weather]", "agents/assistant.yaml"),
        """
~/agents/assistant.yaml:3: own_tools: names weather, which is not there. Fix: write ~/tools/weather.py, or remove it from own_tools.
""",
    ),
    "broken YAML": (
        lambda home, address: added(home, "limits: {concurrent_turns: [50}"),
        """
~/config.yaml:4: a list or section in brackets is not closed or lacks a comma. Fix: add the missing , or bracket.
""",
    ),
    "files open to others": (
        lambda home, address: (home / "data" / "remora.db").chmod(0o644),
        """
!!  permissions: other users of this machine can read remora.db
      The next start closes them to others.
""",
    ),
    "a newer store": (
        lambda home, address: of_tomorrow(home),
        """
XX  remora.db: ~/data/remora.db was written by a newer Remora (schema 9999, this one knows {newest}). Nothing was changed. Install that version, and try again.
      Or restore a backup that this version made, with `remora restore`.
""",
    ),
    "a damaged store": (
        lambda home, address: torn(home),
        """
XX  remora.db: ~/data/remora.db is damaged or not a Remora database. Nothing was changed.
      Restore a backup with `remora restore`; until then, don't delete anything.
""",
    ),
    "no backups": (
        lambda home, address: backed_up(home, None),
        """
!!  remora.db: backups: none yet
      `remora backup` makes one now; the nightly jobs make one a day.
""",
    ),
    "old backups": (
        lambda home, address: backed_up(home, NOON - 9 * DAY),
        """
!!  remora.db: backups: the newest is 9 days old
      Look at `remora jobs list`, and make one with `remora backup`.
""",
    ),
    "a clock that was put back": (
        lambda home, address: backed_up(home, NOON + 2 * DAY),
        """
XX  remora.db: clock: the clock is 48 hours behind the newest backup or job
      Set this machine's clock; reminders and nightly jobs follow it.
""",
    ),
}


#: The faults of installations whose stores are files.
OF_FILES = (
    "files open to others", "a newer store", "a damaged store", "no backups", "old backups",
    "a clock that was put back",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.sqlite("about its file")) if name in OF_FILES else name for name in BROKEN],
)
async def test_each_broken_installation_is_told_in_these_lines(tmp_path: Path, name: str) -> None:
    act, expected = BROKEN[name]
    async with sound(tmp_path) as address:
        act(tmp_path, address)
        lines = expected.format(address=address, newest=migrations()[-1].version).strip().splitlines()
        assert await printed(tmp_path) == lines


async def test_a_full_disk_is_told(tmp_path: Path) -> None:
    async with sound(tmp_path):
        assert await printed(tmp_path, free=NO_ROOM) == [
            "XX  disk: 0.1 GB free for ~/data",
            "      Free some space now: what can't be written can't be remembered.",
        ]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no files, of root neither")
@pytest.mark.parametrize(
    ("old", "new", "folder"),
    [
        ("data_dir: data", "data_dir: /proc/remora", "/proc/remora"),
        ("http:", "backup: {folder: /proc/x}\nhttp:", "/proc/x"),
    ],
)
async def test_a_folder_that_takes_no_files_is_told(tmp_path: Path, old: str, new: str, folder: str) -> None:
    """Tried by writing, since rights alone tell nothing of a disk that is mounted for reading."""
    async with sound(tmp_path):
        replaced(tmp_path, old, new)
        found = await printed(tmp_path)
    assert found[:2] == [
        f"XX  permissions: {folder} can't be written: No such file or directory",
        "      Run Remora as the user who owns the folder, give it to this one with chown, or look at its disk.",
    ]
