"""`remora move` as somebody types it: to a server and back, with the mistakes that are made on the way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.kit import postgres
from tests.kit.program import ran

pytestmark = [pytest.mark.postgres, pytest.mark.campaign]
ON_FILES: Final = "data_dir: data\nembedding: {provider: none}\n"
WORK: Final = "name: work\ndatabase: work.db\nrouting: {chats: ['console:ada']}\n"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = postgres.url(folder)
        (folder / "config.yaml").write_text(ON_FILES)
        (folder / "server.yaml").write_text(f"{ON_FILES}database_url: ${{DATABASE_URL}}\n")
        (folder / "agents").mkdir()
        (folder / "agents" / "assistant.yaml").write_text("name: assistant\n")
        (folder / "agents" / "work.yaml").write_text(WORK)

    def run(self, *arguments: str, server: bool = False) -> tuple[int, str, str]:
        config = "server.yaml" if server else "config.yaml"
        env = {**os.environ, "HOME": str(self.folder), "DATABASE_URL": self.url}
        done = ran(*arguments, "--config", config, folder=self.folder, env=env)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_bot_goes_on_from_a_server_and_from_a_file_again(machine: Machine) -> None:
    machine.run("chat", "--once", "I live in Porto.")
    code, out, errors = machine.run("move", "--to", "postgres", "--database-url", machine.url)
    assert code == 0, errors
    assert "remora.db:" in out and "moved and compared" in out and "1 person, 2 messages, 2 memories" in out
    assert "work.db:" in out, "nobody talked with that agent yet"
    assert "Set database_url in config.yaml, then start the bot." in out and "delete them" in out
    _, out, _ = machine.run("chat", "--once", "Where do I live?", server=True)
    assert "Porto" in out
    machine.run("chat", "--once", "I like tea.", server=True)
    code, _, errors = machine.run("move", "--to", "file", server=True)
    assert code == 65 and "holds another store (1 people" in errors and "Move that file away" in errors
    (machine.folder / "data" / "remora.db").rename(machine.folder / "old.db")
    code, out, errors = machine.run("move", "--to", "file", server=True)
    assert code == 0, errors
    assert "Remove database_url from config.yaml, then start the bot." in out
    _, out, _ = machine.run("chat", "--once", "What do I like?")
    assert "tea" in out


def test_mistakes_are_told_and_nothing_is_made(machine: Machine) -> None:
    for arguments, code, told in (
        (("--to", "postgres"), 78, "Set database_url in config.yaml"),
        (("--to", "postgres", "--database-url", "remora"), 78, "postgresql://user:password@host/name"),
        (("--to", "postgres", "--database-url", "postgresql://u:hidden@127.0.0.1:9/x"), 66, "There is no store"),
        (("--to", "file", "--database-url", "postgresql://u:hidden@127.0.0.1:9/x"), 73, "run the same command again"),
        (("--to", "postgres", "--database-url", machine.url, "--store", "other.db"), 66, "remora.db, work.db"),
    ):
        ended, out, errors = machine.run("move", *arguments)
        assert (ended, out) == (code, "") and told in errors and "hidden" not in errors, errors
    assert not (machine.folder / "data" / "remora.db").exists()
