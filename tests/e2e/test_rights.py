"""All files that the program writes are its user's alone, whatever umask it is started with."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kit.served import TELEGRAM_TOKEN, Machine, ended
from tests.platforms.telegram import serving

pytestmark = pytest.mark.campaign

OTHER = "987654321:" + "Zz9-_" * 7


@pytest.fixture
def careless() -> Iterator[None]:
    """Whatever is started lets everybody read and write what it makes, unless it takes care."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
async def machine(tmp_path: Path, careless: None) -> AsyncIterator[Machine]:
    async with serving((TELEGRAM_TOKEN, OTHER)) as telegram:
        machine = Machine(tmp_path, telegram)
        machine.configure()
        with machine.config.open("a") as config:
            config.write("log: {level: debug, file: remora.log}\n")
        yield machine


def open_to_others(machine: Machine) -> list[str]:
    """Files and folders below the machine's that others have rights to, but for what the test wrote itself."""
    found = sorted(path for path in machine.folder.rglob("*") if path != machine.config)
    assert found
    return [
        f"{path.relative_to(machine.folder)} {stat.S_IMODE(mode):o}"
        for path in found
        if (mode := path.lstat().st_mode) & 0o077
    ]


def there(machine: Machine) -> set[str]:
    return {str(path.relative_to(machine.folder)) for path in machine.folder.rglob("*")}


async def test_nothing_that_is_written_can_be_read_by_others(machine: Machine) -> None:
    """Talking, serving, forgetting, backing up, exporting, restoring: each file of each."""
    code, _, errors = await machine.run("chat", "--once", "I live in Lisbon")
    assert code == 0, errors
    serving = await machine.start("serve")
    await machine.telegram.say("I live in Porto", user=7, name="Ada")
    await machine.telegram.wait(chat=7, bot_messages=1, text="Porto")
    code, _, errors = await machine.run("backup")
    assert code == 0, errors
    await machine.telegram.say("/backup", user=7)
    await machine.telegram.wait(chat=7, bot_messages=2)
    assert open_to_others(machine) == []
    beside = {f"data/remora.db{ending}" for ending in ("", "-wal", "-shm", ".lock", ".pid")}
    assert beside | {"remora.log", "data/backups"} <= there(machine)
    serving.send_signal(signal.SIGTERM)
    assert (await ended(serving))[0] == 0
    code, _, errors = await machine.run("export", "--person", "telegram:7", "--to", "out")
    assert code == 0, errors
    talked = await machine.run("chat", stdin="/forget Lisbon\nyes\n/memory export\n")
    assert talked[0] == 0, talked
    (first, *_) = sorted((machine.folder / "data" / "backups").glob("*.db"))
    code, _, errors = await machine.run("restore", str(first))
    assert code == 0, errors
    adding = ("channels", "add", "telegram", "--id", "other", "--token", OTHER, "--base-url", machine.telegram.url)
    code, _, errors = await machine.run(*adding, "--no-pair")
    assert code == 0, errors
    assert open_to_others(machine) == []
    assert {"data/remora.db.erased", "data/exports/remora.md", "out", ".env"} <= there(machine)
    assert any("before-restore" in name for name in there(machine))


async def test_what_was_left_open_is_closed_at_the_start(machine: Machine) -> None:
    """An earlier version left it so, or somebody copied it there."""
    await machine.run("chat", "--once", "I live in Lisbon")
    await machine.run("backup")
    (machine.folder / ".env").write_text("X=y\n")
    exports = machine.folder / "data" / "exports"
    exports.mkdir()
    (exports / "memories.md").write_text("mine")
    foreign = machine.folder / "elsewhere"
    foreign.write_text("not ours")
    (exports / "link.md").symlink_to(foreign)
    for path in machine.folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    code, _, errors = await machine.run("chat", "--once", "hello")
    assert code == 0, errors
    files = [name for name in open_to_others(machine) if not (machine.folder / name.split()[0]).is_dir()]
    assert files == ["data/exports/link.md 777", "elsewhere 666"]
