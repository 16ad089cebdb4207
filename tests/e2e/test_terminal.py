"""`remora chat` on a real terminal: Ctrl-C, keys typed ahead, formatted answers, and where the log goes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from llmock.pytest_plugin import LLMock

from tests.kit.patience import wait_until

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"
PROMPT = "you>"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal with the program on it: `type` presses keys, `see` waits for text, of which it drops the colours."""

    def __init__(self, folder: Path, model_url: str) -> None:
        self.folder = folder
        (folder / "agents").mkdir()
        (folder / "config.yaml").write_text("data_dir: data\n", "utf-8")
        (folder / "agents" / "assistant.yaml").write_text(
            f"name: assistant\nmodels: [{{provider: openai, model: m, base_url: '{model_url}', key: sk-local-test}}]\n",
            "utf-8",
        )
        self._screen, self._seen = "", 0
        self.keys, self._inside = pty.openpty()
        fcntl.ioctl(self._inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.program = subprocess.Popen(
            [sys.executable, "-c", _START, "chat", "--config", str(folder / "config.yaml")],
            stdin=self._inside,
            stdout=self._inside,
            stderr=self._inside,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "*", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            cwd=folder,
            start_new_session=True,
        )

    def type(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def see(self, text: str) -> str:
        """Waits until `text` appears after all that was seen before; returns what came with it."""
        self._until(lambda: self._shows(text))
        at = self._screen.find(text, self._seen)
        came, self._seen = self._screen[self._seen : at + len(text)], at + len(text)
        return came

    def left(self) -> int:
        self._until(lambda: self._shows("") and self.program.poll() is not None)
        return self.program.returncode

    def unread(self) -> bytes:
        """The keys that the next program on this terminal, such as a shell, would read."""
        os.set_blocking(self._inside, False)
        try:
            return os.read(self._inside, 1_000)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.keys)
        os.close(self._inside)

    def _until(self, event: Callable[[], bool]) -> None:
        try:
            wait_until(event)
        except AssertionError as vain:
            raise AssertionError(f"{vain}; the screen shows {self._screen[self._seen :]!r}") from None

    def _shows(self, text: str) -> bool:
        while select.select([self.keys], [], [], 0)[0]:
            self._screen += _ESCAPES.sub("", os.read(self.keys, 65_536).decode(errors="replace"))
        return self._screen.find(text, self._seen) >= 0


#: Ctrl-C comes from the terminal that controls a process; tests in a shell's background ignore it, and so would this.
_START = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
from gateway.__main__ import main
main()
"""


@pytest.fixture
def start(tmp_path: Path, llmock: LLMock) -> Iterator[Callable[[], Terminal]]:
    """Opens a terminal that shows the first prompt."""
    opened: list[Terminal] = []

    def open_one() -> Terminal:
        terminal = Terminal(tmp_path, llmock.base_url())
        opened.append(terminal)
        terminal.see(PROMPT)
        return terminal

    yield open_one
    for terminal in opened:
        terminal.close()


def test_ctrl_c_stops_the_answer_and_what_was_typed_ahead_is_answered_next(
    start: Callable[[], Terminal], llmock: LLMock
) -> None:
    """The shown part stays and is marked; the second question gets its answer, and no key is left to the shell."""
    llmock.reply(" ".join(f"word{n}" for n in range(500)))
    llmock.pace(100)
    terminal = start()
    terminal.type("tell me a story" + ENTER)
    terminal.see("assistant> word0 word1 ")
    terminal.type("and now?" + ENTER)
    llmock.reply("The second answer.")
    terminal.type(CTRL_C)
    stopped = terminal.see("(Stopped here.)")
    assert "word499" not in stopped and "word2" in stopped
    terminal.see("and now?")
    terminal.see("assistant> The second answer.")
    terminal.see(PROMPT)
    time.sleep(1)  # two within a second would leave; the first was pressed before this second began
    terminal.type(CTRL_C)
    terminal.see("(Ctrl-C again leaves, and so does /quit.)")
    terminal.see(PROMPT)  # printing above a prompt takes a moment in which keys may overtake Ctrl-C
    terminal.type(CTRL_C + "rm -rf /" + ENTER)
    assert terminal.left() == 0
    assert terminal.unread() == b""


def test_stop_acts_at_once_while_an_answer_is_streamed(start: Callable[[], Terminal], llmock: LLMock) -> None:
    llmock.reply(" ".join(f"word{n}" for n in range(500)))
    llmock.pace(100)
    terminal = start()
    terminal.type("tell me a story" + ENTER)
    terminal.see("word3")
    terminal.type("/stop" + ENTER)
    assert "word499" not in terminal.see("(Stopped here.)")
    terminal.see(PROMPT)
    terminal.type("/quit" + ENTER)
    assert terminal.left() == 0


def test_a_failure_is_one_plain_line_that_names_the_log(start: Callable[[], Terminal], llmock: LLMock) -> None:
    """No line of the log stands in the chat, and nobody else can read the file."""
    llmock.fail(status=401, times=None)
    terminal = start()
    terminal.type("hello" + ENTER)
    shown = terminal.see("(details in data/chat.log)")
    assert "Turn failed: " in shown and "401" in shown
    shown += terminal.see(PROMPT)
    assert "[error" not in shown and "turn.failed" not in shown
    terminal.type("exit" + ENTER)
    assert terminal.left() == 0
    log = terminal.folder / "data" / "chat.log"
    assert "turn.failed" in log.read_text("utf-8")
    assert log.stat().st_mode & 0o777 == 0o600
