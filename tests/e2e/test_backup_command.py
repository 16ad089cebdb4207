"""`remora backup` and `remora restore` as somebody types them, beside a bot that runs and without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.kit.patience import SECONDS
from tests.kit.program import ran

pytestmark = pytest.mark.campaign

ROOT: Final = Path(__file__).parents[2]
CONFIG: Final = "data_dir: data\nembedding: {provider: none}\n"
WORK: Final = "name: work\ndatabase: work.db\nrouting: {chats: ['console:ada']}\n"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        (folder / "config.yaml").write_text(CONFIG)

    def add_agent(self) -> None:
        (self.folder / "agents").mkdir()
        (self.folder / "agents" / "assistant.yaml").write_text("name: assistant\n")
        (self.folder / "agents" / "work.yaml").write_text(WORK)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = ran(*arguments, "--config", "config.yaml", folder=self.folder, env=self.env)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def chatting(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "chat", "--config", "config.yaml"],
            cwd=self.folder,
            env=self.env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("I live in Porto.\n")
        process.stdin.flush()
        while "Porto" not in (line := process.stdout.readline()):
            assert line, "it ended"
        return process

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder), "REMORA_MODEL_KEY": ""}

    def backups(self) -> list[Path]:
        return sorted((self.data / "backups").glob("*.db"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_backup_beside_a_running_bot_and_a_restore_without_it(machine: Machine) -> None:
    """Nobody should have to stop the bot to be safe; to go back in time they have to."""
    process = machine.chatting()
    try:
        code, out, errors = machine.run("backup")
        assert code == 0, errors
        (made,) = machine.backups()
        assert str(made) in out and "1 person, 2 messages" in out and "Checked." in out
        code, _, errors = machine.run("restore", str(made))
        assert code == 75 and f"process {process.pid}" in errors
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    machine.run("chat", "--once", "I like tea.")
    code, out, errors = machine.run("restore", str(made))
    assert code == 0, errors
    assert f"is now {made.name}: 1 person, 2 messages" in out
    assert "is kept as" in out and "deleted after 14 days" in out
    _, out, _ = machine.run("chat", "--once", "Where do I live?")
    assert "Porto" in out
    _, out, _ = machine.run("chat", "--once", "/memory")
    assert "like tea" not in out
    code, out, _ = machine.run("restore", str(made), "--discard")
    assert code == 0 and "is kept as" not in out
    assert len(list(machine.data.glob("remora.db.before-restore-*"))) == 1


def test_each_database_has_its_backups_and_no_other_s_is_put_in_its_place(machine: Machine) -> None:
    """Agents with a database of their own share nothing, and a wrong file name must not change that."""
    machine.add_agent()
    machine.run("chat", "--once", "I live in Porto.")
    machine.run("chat", "--as", "ada", "--once", "I live in Lisbon.")
    code, out, errors = machine.run("backup")
    assert code == 0, errors
    default, work = machine.backups()
    assert default.name.startswith("remora-") and work.name.startswith("work-") and out.count("Checked.") == 2
    assert b"Lisbon" in work.read_bytes() and b"Lisbon" not in default.read_bytes()
    code, out, _ = machine.run("restore", str(work))
    assert code == 0 and f"{machine.data / 'work.db'} is now" in out
    moved = work.rename(work.with_name("mine.db"))
    code, _, errors = machine.run("restore", str(moved))
    assert code == 66 and "--store: remora.db, work.db" in errors
    code, _, _ = machine.run("restore", str(moved), "--store", "work.db")
    assert code == 0
    code, _, errors = machine.run("backup", "--to", "one.db")
    assert code == 66 and "--store" in errors
    code, out, _ = machine.run("backup", "--to", "one.db", "--store", "work.db")
    assert code == 0 and "Delete this copy yourself" in out
    assert b"Lisbon" in (machine.folder / "one.db").read_bytes()


def test_what_can_not_be_done_is_said_in_a_line(machine: Machine) -> None:
    """The codes are those of sysexits.h; nothing is ever half done."""
    code, _, errors = machine.run("backup")
    assert code == 66 and "There is no database" in errors
    machine.run("chat", "--once", "I live in Porto.")
    before = (machine.data / "remora.db").read_bytes()
    assert machine.run("restore", "nowhere.db")[0] == 2
    (machine.folder / "diary.db").write_text("Dear diary, " * 1_000)
    code, _, errors = machine.run("restore", "diary.db")
    assert code == 65 and "not a Remora database" in errors and "Traceback" not in errors
    code, _, errors = machine.run("backup", "--to", "/proc/backups")
    assert code == 73 and "No copy was made" in errors and "Traceback" not in errors
    code, _, errors = machine.run("backup", "--store", "none.db")
    assert code == 66 and "remora.db" in errors
    assert (machine.data / "remora.db").read_bytes() == before
