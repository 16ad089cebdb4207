"""The whole program as people start it: real processes, pipes, a real store, a model over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from tests.kit.patience import SECONDS, wait_until
from tests.kit.program import ran

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "*"}


class Terminal:
    """Starts `remora chat` on a store of its own."""

    def __init__(self, folder: Path, *, model_url: str | None = None, limits: str = "{}") -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.config.write_text(f"data_dir: data\nagents_dir: agents\nlimits: {limits}\n", "utf-8")
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
        """Say each line in a run of its own and return what was shown."""
        said = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
        options = ("--config", str(self.config), "--as", person)
        done = ran("chat", *options, folder=self.folder, env=ENVIRONMENT, stdin=said)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


@pytest.fixture
def offline(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_what_was_told_in_one_run_is_known_in_the_next(offline: Terminal) -> None:
    """The promise of the project, in two languages, without a model."""
    told = offline.chat("Hi, my name is Ada and I live in Lisbon", "我对花生过敏")
    assert "Noted: " in told and "Lisbon" in told and "花生" in told
    asked = offline.chat("Where do I live?", "我对什么过敏？")
    assert re.search(r"You live in Lisbon; you told me (?:today|yesterday)\.", asked)
    assert "花生" in asked


def test_a_correction_a_history_and_a_forget(offline: Terminal) -> None:
    """See, correct, remove: with ids, dates and an honest word about what stays."""
    offline.chat("I'm allergic to peanuts")
    short_id = _ids(offline.chat("/memory"))[0]
    assert "Corrected" in offline.chat(f"/correct {short_id} walnuts")
    history = offline.chat(f"/memory history {short_id}")
    assert "peanuts" in history and "walnuts" in history and " to " in history
    new_id = _ids(offline.chat("/memory list"))[0]
    asked = offline.chat(f"/forget {new_id}")
    assert "Forget this?" in asked and "and the words (or just yes)" in asked and "walnuts" in asked
    forgotten = offline.chat("this memory only")
    assert "Forgotten. Memories: 1." in forgotten and "stay in our history" in forgotten
    assert "walnuts" not in offline.chat("what am I allergic to?", "/memory")


def test_what_is_forgotten_with_the_words_is_in_no_file(offline: Terminal) -> None:
    """A plain yes means that, and the terminal says so."""
    offline.chat("I'm allergic to qwertnuts")
    assert "qwertnuts" in offline.chat("/forget qwertnuts")
    assert "Messages erased: 1. My answers erased: 1." in offline.chat("yes")
    for file in (offline.folder / "data").rglob("*"):
        assert file.is_dir() or b"qwertnuts" not in file.read_bytes(), file


def test_any_other_answer_cancels_a_question_and_is_heard(offline: Terminal) -> None:
    """Nobody is trapped in a question."""
    offline.chat("I live in Lisbon")
    short_id = _ids(offline.chat("/memory"))[0]
    shown = offline.chat(f"/forget {short_id}", "where do I live?", "yes", "/memory")
    assert "You live in Lisbon" in shown and "Forgotten" not in shown and short_id in shown


def test_another_person_at_the_terminal_knows_nothing_of_the_first(offline: Terminal) -> None:
    """`--as` is another person, with a memory of their own."""
    offline.chat("I live in Lisbon", person="ada")
    shown = offline.chat("where do I live?", "/memory", person="bob")
    assert "Lisbon" not in shown


def _last_chat(llmock: LLMock) -> Any:
    """The newest request for an answer; others come from reading for memories in the background."""
    asked = [record.body for record in llmock.requests if "tools" in record.body]
    return asked[-1]


def test_a_fact_told_in_one_run_reaches_the_model_in_the_next(tmp_path: Path, llmock: LLMock) -> None:
    """Read by the model at exit, then in the prompt of a fresh window."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.reply("Nice to meet you, Ada.")
    llmock.reply('{"facts": [{"messages": [1], "key": "home", "value": "Lisbon", "category": "place"}]}')
    assert "Nice to meet you, Ada." in terminal.chat("I am Ada and I live in Lisbon")
    llmock.reply("It is sunny in Lisbon.")
    shown = terminal.chat("/new", "How is the weather at my place?")
    assert "It is sunny in Lisbon." in shown
    known = _last_chat(llmock)["messages"][1]["content"]
    assert re.search(r"- \S+: home: Lisbon \(told \d+ \w+ \d{4}\) \[m_\w{6}\]", known)
    assert "I am Ada and I live in Lisbon" not in json.dumps(_last_chat(llmock))


def test_history_is_restored_after_a_restart(tmp_path: Path, llmock: LLMock) -> None:
    """The conversation goes on where it was, word for word."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.reply("The first answer.")
    terminal.chat("The first question")
    llmock.reply("The second answer.")
    terminal.chat("The second question")
    messages = _last_chat(llmock)["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"].endswith("\nThe first question")  # behind the day
    assert messages[2]["content"] == "The first answer."


def test_a_killed_turn_is_answered_at_the_next_start(tmp_path: Path, llmock: LLMock) -> None:
    """kill -9 while the model thinks: the message is not lost, and answered once."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.stall(after_chunks=0, seconds=SECONDS)
    process = terminal.start()
    assert process.stdin is not None
    process.stdin.write(b"Are you there?\n")
    process.stdin.flush()
    wait_until(
        lambda: any("Are you there?" in json.dumps(record.body) for record in llmock.requests) or _claimed(terminal)
    )
    process.send_signal(signal.SIGKILL)
    process.communicate()
    llmock.reset()
    llmock.reply("Yes, I am.")
    shown = terminal.chat("/status")
    assert shown.count("Yes, I am.") == 1
    llmock.reply("Again.")
    assert "Yes, I am." not in terminal.chat("hello")


def test_tools_run_and_memory_says_saved_only_then(tmp_path: Path, llmock: LLMock) -> None:
    """The model asks for remember_fact; the fact is there in the next run."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.call_tool("remember_fact", {"text": "the spare key is under the blue pot", "key": "spare-key"})
    llmock.reply("Saved.")
    assert "Saved." in terminal.chat("please remember where the spare key is")
    assert "the spare key is under the blue pot" in terminal.chat("/memory search spare key")


def test_a_model_that_fails_is_said_in_one_line_and_the_message_is_kept(tmp_path: Path, llmock: LLMock) -> None:
    """No stack trace, no silence, nothing lost."""
    terminal = Terminal(tmp_path, model_url=llmock.base_url())
    llmock.fail(status=401, times=None)
    shown = terminal.chat("I live in Lisbon")
    assert "key is missing or refused" in shown and "Traceback" not in shown
    llmock.reset()
    llmock.reply("Hello.")
    terminal.chat("hello")
    assert "I live in Lisbon" in json.dumps(llmock.last_request.body)


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
    """Control characters, NUL, broken bytes, unknown commands and ids."""
    assert answer in offline.chat(line)


def test_an_empty_line_is_nothing(offline: Terminal) -> None:
    """Pressing Enter is no message."""
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


def test_two_processes_on_one_store_are_kept_apart(offline: Terminal) -> None:
    """The second says who holds it and what to do."""
    first = offline.start()
    assert first.stdin is not None
    wait_until((offline.folder / "data" / "remora.db.pid").exists)
    second = offline.start()
    _, errors = second.communicate(b"hi\n", timeout=SECONDS)
    assert second.returncode == 75
    assert f"process {first.pid}" in errors.decode() and "Traceback" not in errors.decode()
    first.communicate(b"", timeout=SECONDS)
    assert first.returncode == 0


def test_an_unwritable_data_folder_is_said_in_one_line(offline: Terminal) -> None:
    """With the setting to change."""
    (offline.folder / "data").write_text("a file where the folder should be")
    process = offline.start()
    _, errors = process.communicate(b"hi\n", timeout=SECONDS)
    assert process.returncode == 78
    assert "data_dir" in errors.decode() and "Traceback" not in errors.decode()


def test_a_wrong_configuration_lists_all_mistakes_and_exits_78(offline: Terminal) -> None:
    """One run shows them all."""
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


def test_once_answers_and_leaves(offline: Terminal) -> None:
    """For scripts."""
    process = offline.start("--once", "I live in Lisbon")
    shown, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0 and b"Lisbon" in shown


def _ids(shown: str) -> list[str]:
    return re.findall(r"\bm_\w{6}\b", shown)


def _claimed(terminal: Terminal) -> bool:
    import sqlite3

    path = terminal.folder / "data" / "remora.db"
    if not path.exists():
        return False
    connection = sqlite3.connect(path)
    try:
        row = connection.execute("select count(*) from inbox where state = 'claimed'").fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return bool(row[0])
