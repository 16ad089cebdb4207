"""The whole program as people start it: real processes, pipes, a real store, a model over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from tests.kit.patience import SECONDS
from tests.kit.program import ran

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "*"}


class Terminal:
    """Starts `remora chat` on a store of its own."""

    def __init__(self, folder: Path, *, model_url: str | None = None, limits: str = "{}") -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.config.write_text(f"data_dir: data\nlimits: {limits}\n", "utf-8")
        (folder / "agents").mkdir()
        model = f"[{{provider: openai, model: gpt-4o, base_url: '{model_url}', key: sk-local-test}}]"
        (folder / "agents" / "assistant.yaml").write_text(
            f"name: assistant\nmodels: {model if model_url else '[]'}\n", "utf-8"
        )

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "gateway", "chat", "--config", str(self.config), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd=self.folder,
        )

    def chat(self, *lines: str | bytes, person: str = "you") -> str:
        said = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
        options = ("--config", str(self.config), "--as", person)
        done = ran("chat", *options, folder=self.folder, env=ENVIRONMENT, stdin=said)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


@pytest.fixture
def offline(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_another_person_at_the_terminal_knows_nothing_of_the_first(offline: Terminal) -> None:
    offline.chat("I live in Lisbon", person="ada")
    shown = offline.chat("where do I live?", "/memory", person="bob")
    assert "Lisbon" not in shown


def _last_chat(llmock: LLMock) -> Any:
    """The newest request for an answer; others come from reading for memories in the background."""
    asked = [record.body for record in llmock.requests if "tools" in record.body]
    return asked[-1]


def test_a_secret_reaches_the_model_of_its_turn_but_never_the_disk(tmp_path: Path, llmock: LLMock) -> None:
    """Masked before the inbox: neither database nor log ever hold it."""
    secret = "sk-proj-" + "Ab1Cd2Ef3Gh4" * 4
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.reply(f"Your key is {secret}.")
    shown = terminal.chat(f"my key is {secret}, keep it safe", "/why")
    assert secret in json.dumps(llmock.requests[0].body)
    for file in (tmp_path / "data").rglob("*"):
        assert secret.encode() not in file.read_bytes(), file
    assert "[secret" in shown


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"\x01\x02\x7f", "nothing readable"),
        (b"\x00", "nothing readable"),
        (b"/frobnicate", "no command /frobnicate"),
        (b"/memory show m_nosuch", "no memory with the id m_nosuch"),
        (b"/forget", "/forget with an id"),
        (b"I live in Porto\x00! caf\xe9 \xed\xa0\x80", "Porto"),
    ],
)
def test_bad_input_gets_a_clear_line(offline: Terminal, line: bytes, answer: str) -> None:
    assert answer in offline.chat(line)


def test_an_empty_line_is_nothing(offline: Terminal) -> None:
    assert offline.chat("", "   ", "/status").count("\n") == offline.chat("/status").count("\n")


def test_of_a_line_of_a_megabyte_beginning_and_end_are_kept(tmp_path: Path, llmock: LLMock) -> None:
    """The model sees them, the person is told, and the database has no more."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.reply("Long!")
    shown = terminal.chat("I live in Lisbon. " + "word " * 200_000 + "The end.")
    assert "1000026 characters" in shown
    assert len(json.dumps(_last_chat(llmock))) < 100_000
    import sqlite3

    connection = sqlite3.connect(tmp_path / "data" / "remora.db")
    [(longest,)] = connection.execute("select text from messages where role = 'user'").fetchall()
    connection.close()
    assert longest.startswith("I live in Lisbon.") and longest.endswith("The end.") and len(longest) < 40_000


def test_an_unwritable_data_folder_is_said_in_one_line(offline: Terminal) -> None:
    (offline.folder / "data").write_text("a file where the folder should be")
    process = offline.start()
    _, errors = process.communicate(b"hi\n", timeout=SECONDS)
    assert process.returncode == 78
    assert "data_dir" in errors.decode() and "Traceback" not in errors.decode()


def test_a_wrong_configuration_lists_all_mistakes_and_exits_78(offline: Terminal) -> None:
    offline.config.write_text("limits: {turn_seconds: soon, que: 3}\nlog: {level: loud}\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "check", "--config", str(offline.config)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 78
    for part in ("limits.turn_seconds", "limits.que", "log.level"):
        assert part in done.stderr


def test_a_name_of_bytes_that_are_no_text_is_refused_in_words(offline: Terminal) -> None:
    """A terminal of another encoding gives such a name; it would stand in no database."""
    process = offline.start("--as", "ad\udcff", "--once", "hello")
    shown, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, shown) == (2, b"")
    assert b"--as needs a name, in UTF-8." in errors and b"Traceback" not in errors


def test_once_without_a_message_is_refused(offline: Terminal) -> None:
    process = offline.start("--once", " ")
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert b"--once needs a message" in errors


def test_once_says_by_its_code_that_there_was_no_answer(tmp_path: Path) -> None:
    """Learning at the end asks a model that has just failed a single time."""
    process = Terminal(tmp_path, model_url="http://127.0.0.1:9/v1").start("--once", "I live in Lisbon")
    shown, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 69
    assert b"can't be reached" in shown
    assert errors.count(b"learn.failed") == 1


def test_once_answers_and_leaves(offline: Terminal) -> None:
    process = offline.start("--once", "I live in Lisbon")
    shown, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0 and b"Lisbon" in shown
