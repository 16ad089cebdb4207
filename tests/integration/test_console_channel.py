"""The terminal chat on real pipes and a real pseudo-terminal, and what it prints for every way a text can be cut."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from channels.base import ChannelUnavailable, Outbound, Place
from channels.console import ConsoleChannel, Streams
from channels.console_complete import CommandCompleter
from tests.kit import stalls
from tests.kit.patience import SECONDS

HOST = Path(__file__).with_name("console_host.py")
ADA = Place(channel="console", chat="ada")
CTRL_C, CTRL_D, UP, LEFT, ENTER, ALT_ENTER = "\x03", "\x04", "\x1b[A", "\x1b[D", "\r", "\x1b\r"
BACKSPACE = "\x7f"
PROMPT = "you>"


# --- Output, whatever the pieces ---

#: Words, blanks and control characters; few enough letters that a text often repeats itself.
TEXTS = st.text(st.one_of(st.sampled_from("ab \n\t\x1b\r\x9b"), st.characters()), max_size=40)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """A text, pieces of it as streamed (perhaps not to its end), and all of it as rows."""
    text = draw(TEXTS)
    end = draw(st.integers(0, len(text)))
    return text, draw(cuts(text[:end])), draw(cuts(text))


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    """All ways to cut `text` into pieces."""
    places = st.sets(st.integers(0, len(text)), max_size=6)
    return places.map(lambda at: [text[a:b] for a, b in pairwise(sorted(at | {0, len(text)}))])


def console(screen: io.StringIO) -> ConsoleChannel:
    """A channel that prints on `screen` and has no input."""
    ids = count(1)
    return ConsoleChannel(
        person="ada", now=lambda: 0, new_id=lambda: str(next(ids)), streams=Streams(stdin=io.StringIO(), stdout=screen)
    )


def printed(pieces: Sequence[str], *rows: Outbound) -> str:
    """Returns the screen's text after turn 1 streamed `pieces` and `rows` were sent."""
    screen = io.StringIO()

    async def play() -> None:
        channel = console(screen)
        for piece in pieces:
            await channel.append(ADA, 1, piece)
        for row in rows:
            await channel.send(row)

    stalls.run(play())
    return screen.getvalue()


def row(text: str, *, turn: int | None = 1, earlier_run: bool = False) -> Outbound:
    return Outbound(id=1, place=ADA, text=text, turn=turn, earlier_run=earlier_run)


def ink(text: str) -> str:
    """`text` without white space and control characters, lone surrogates as the question marks they are shown as."""
    shown = text.encode("utf-8", "replace").decode()
    return "".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", shown).split())


@given(cut_texts())
def test_console_stream_and_row_print_what_the_row_alone_prints(cut: tuple[str, list[str], list[str]]) -> None:
    """However far the stream came and however it was cut, the finished answer looks the same."""
    text, pieces, _ = cut
    assert printed(pieces, row(text)) == printed([], row(text))


@given(cut_texts())
def test_console_prints_each_character_once_when_an_answer_has_several_rows(
    cut: tuple[str, list[str], list[str]],
) -> None:
    """The stream knows nothing of rows and may be ahead of the one that is sent."""
    text, pieces, rows = cut
    assert ink(printed(pieces, *(row(part) for part in rows))) == ink(text)


@given(TEXTS, TEXTS)
def test_console_prints_a_row_whole_when_something_else_was_streamed(streamed: str, text: str) -> None:
    """A fallback model answered in other words: the stored answer is the one that counts."""
    alone, other = printed([], row(text)), printed([streamed])
    if other and not alone.startswith(other) and not other.startswith(alone.removesuffix("\n")):
        assert printed([streamed], row(text)) == f"{other}\n{alone}"


@given(cut_texts())
def test_console_prints_no_control_characters(cut: tuple[str, list[str], list[str]]) -> None:
    """Text of models and memories must not move the cursor, set the title or read the clipboard."""
    text, pieces, _ = cut
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", printed(pieces, row(text), row(text, earlier_run=True)))


@given(cut_texts())
def test_console_puts_a_message_between_two_pieces_on_its_own_line(cut: tuple[str, list[str], list[str]]) -> None:
    """A command's answer or a reminder may come while an answer is being streamed."""
    text, pieces, _ = cut
    screen = io.StringIO()

    async def play() -> None:
        channel = console(screen)
        for piece in pieces:
            await channel.append(ADA, 1, piece)
            await channel.send(row("|notice|", turn=None))
        await channel.send(row(text))

    stalls.run(play())
    lines = screen.getvalue().split("\n")
    assert lines.count("|notice|") == len(pieces)
    assert ink("".join(line for line in lines if line != "|notice|")) == ink(text)


def test_console_joins_rows_that_the_stream_had_already_joined() -> None:
    assert printed(["first", " part\n\nsec"], row("first part"), row("second part")) == "first part\n\nsecond part\n"


def test_console_marks_rows_of_an_earlier_run() -> None:
    assert printed([], row("done", earlier_run=True)) == "(from earlier)\ndone\n"


def test_console_forgets_streams_that_no_row_completed() -> None:
    """A stopped answer must not grow the process for ever, nor keep its words in it."""
    screen = io.StringIO()

    async def play() -> None:
        channel = console(screen)
        for turn in range(1, 21):
            await channel.append(ADA, turn, f"answer {turn}")
        await channel.send(row("answer 1 and all", turn=1))
        await channel.send(row("answer 20 and all", turn=20))

    stalls.run(play())
    assert screen.getvalue().endswith("answer 20\nanswer 1 and all\nand all\n")


async def test_console_refuses_rows_for_somebody_else() -> None:
    """One terminal shows one person's chat; another person's words never appear on it."""
    screen = io.StringIO()
    channel = console(screen)
    bob = Place(channel="console", chat="bob")
    assert not channel.reachable(bob)
    await channel.append(bob, 1, "secret")
    with pytest.raises(ChannelUnavailable, match="console:bob:-") as refusal:
        await channel.send(Outbound(id=1, place=bob, text="secret"))
    assert refusal.value.certain
    assert screen.getvalue() == ""


async def test_console_reports_rows_that_a_closed_output_did_not_show() -> None:
    """The row whose write broke may be half shown; later ones surely are not, and wait for the next run."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    ids = count(1)
    with os.fdopen(write_end, "w", encoding="utf-8") as stdout:
        channel = ConsoleChannel(
            person="ada",
            now=lambda: 0,
            new_id=lambda: str(next(ids)),
            streams=Streams(stdin=io.StringIO(), stdout=stdout),
        )
        with pytest.raises(ChannelUnavailable) as first:
            await channel.send(row("hello"))
        with pytest.raises(ChannelUnavailable) as second:
            await channel.send(row("hello"))
        await channel.append(ADA, 2, "nobody sees this")
    assert (first.value.certain, second.value.certain) == (False, True)
    assert not channel.reachable(ADA)


# --- Through pipes ---


def environment(home: Path, **extra: str) -> dict[str, str]:
    """A clean environment; a terminal in it answers no cursor position requests, and says so."""
    kept = {name: os.environ[name] for name in ("PATH", "COVERAGE_PROCESS_START") if name in os.environ}
    return kept | {"HOME": str(home), "TERM": "xterm", "LANG": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"} | extra


def piped(folder: Path, typed: bytes, *arguments: str, **extra: str) -> tuple[str, dict[str, Any]]:
    report = folder / "report"
    done = subprocess.run(
        [sys.executable, HOST, report, *arguments],
        input=typed,
        capture_output=True,
        timeout=SECONDS,
        env=environment(folder, **extra),
        check=True,
    )
    assert done.stderr == b"ready\n"
    return done.stdout.decode(), json.loads(report.read_bytes())


def test_console_pipe_prints_answers_and_nothing_else(tmp_path: Path) -> None:
    """Scripts read this: no greeting, no prompt, no names, no colours; blank lines are no messages."""
    output, report = piped(tmp_path, b"hello\n\n  \nstream\r\nlast without newline")
    assert output == 'heard "hello"\none two three four\nheard "last without newline"\n'
    assert report == {"said": ["hello", "stream", "last without newline"], "ended": "returned", "prompt_toolkit": False}


def test_a_line_that_leaves_ends_a_pipe(tmp_path: Path) -> None:
    output, report = piped(tmp_path, b"hello\n/quit\nnever said\n")
    assert output == 'heard "hello"\n'
    assert report["ended"] == "returned"


def test_console_pipe_survives_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A file in another encoding gives replacement characters, not a traceback."""
    output, report = piped(tmp_path, b"caf\xe9 \xff\xfe\n\xf0\x9f\x90\x9f\n")
    assert report["said"] == ["caf\ufffd \ufffd\ufffd", "🐟"]
    assert len(output.splitlines()) == 2


def test_console_pipe_takes_lines_of_many_megabytes(tmp_path: Path) -> None:
    output, report = piped(tmp_path, b"big" + b"x" * 5_000_000 + b"\nsmall\n")
    assert output == '5000003 characters\nheard "small"\n'
    assert report["ended"] == "returned"


def test_console_pipe_takes_a_plain_file(tmp_path: Path) -> None:
    """`remora chat < messages.txt`: files can't be waited for as pipes can."""
    (tmp_path / "messages").write_bytes(b"one\ntwo\n")
    with (tmp_path / "messages").open() as messages:
        subprocess.run(
            [sys.executable, HOST, tmp_path / "report"],
            stdin=messages,
            capture_output=True,
            timeout=SECONDS,
            env=environment(tmp_path),
            check=True,
        )
    assert json.loads((tmp_path / "report").read_bytes())["said"] == ["one", "two"]


def test_console_pipe_writes_what_a_poor_encoding_can_show(tmp_path: Path) -> None:
    """An ASCII output gets question marks where it can't have the letters, not a traceback."""
    output, _ = piped(tmp_path, b"", "stream", PYTHONIOENCODING="ascii")
    assert output == "one two three four\n"
    output, report = piped(tmp_path, "big 你好\nbig\n".encode(), PYTHONIOENCODING="ascii")
    assert report["said"] == ["big 你好", "big"]


def test_console_once_is_one_message_and_one_answer(tmp_path: Path) -> None:
    """Standard input is left alone, so that it can feed something else."""
    output, report = piped(tmp_path, b"not read\n", "stream")
    assert output == "one two three four\n"
    assert report == {"said": ["stream"], "ended": "returned", "prompt_toolkit": False}


def test_console_pipe_sends_files_and_says_what_is_wrong_with_one(tmp_path: Path) -> None:
    """A path by itself is a text like any other here: scripts send files on purpose."""
    cat = tmp_path / "my cat.png"
    cat.write_bytes(b"\x89PNG")
    lines = [f"/attach '{cat}' who is this?", f"/attach {tmp_path / 'none.txt'}", str(cat), f"/attach {tmp_path}"]
    output, report = piped(tmp_path, "\n".join(lines).encode())
    assert report["said"] == ["who is this? [image my cat.png: 4]", str(cat)]
    assert f"There is no file {tmp_path / 'none.txt'}." in output and f"{tmp_path} is a folder." in output


def test_console_once_with_nothing_to_say_says_nothing(tmp_path: Path) -> None:
    """An empty variable in a script is no message."""
    output, report = piped(tmp_path, b"", " \n")
    assert (output, report["said"], report["ended"]) == ("", [], "returned")


@contextmanager
def started(folder: Path, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(
        [sys.executable, HOST, folder / "report"], stderr=subprocess.PIPE, env=environment(folder), **streams
    )
    try:
        assert program.stderr is not None
        assert program.stderr.readline() == b"ready\n"
        yield program
    finally:
        program.kill()
        program.communicate()


def end(program: subprocess.Popen[bytes], folder: Path) -> tuple[bytes, dict[str, Any]]:
    """Closes its input and waits for the end; returns what was complained of, and the report."""
    _, errors = program.communicate(timeout=SECONDS)
    return errors, json.loads((folder / "report").read_bytes())


def say(program: subprocess.Popen[bytes], line: bytes) -> None:
    """Type a line and keep the input open."""
    assert program.stdin is not None
    program.stdin.write(line + b"\n")
    program.stdin.flush()


def test_console_pipe_ends_quietly_when_nobody_reads(tmp_path: Path) -> None:
    """`remora chat | head -1` is an ordinary way to stop, with the input still open."""
    read_end, write_end = os.pipe()
    with started(tmp_path, stdin=subprocess.PIPE, stdout=write_end) as program:
        os.close(write_end)
        os.close(read_end)
        say(program, b"hang")
        assert program.wait(SECONDS) == 0
        errors, report = end(program, tmp_path)
    assert errors == b""
    assert report["ended"] == "returned"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_console_pipe_says_why_the_output_failed(tmp_path: Path) -> None:
    """A full disk is no ordinary end: the operator must hear of it."""
    with Path("/dev/full").open("wb") as full, started(tmp_path, stdin=subprocess.PIPE, stdout=full) as program:
        say(program, b"hang")
        program.wait(SECONDS)
        _, report = end(program, tmp_path)
    assert "No space left on device" in report["ended"]
    assert "next terminal chat" in report["ended"]


def test_console_pipe_shows_late_answers_while_it_waits_for_input(tmp_path: Path) -> None:
    """A blocking read of standard input must not stop everything else."""
    with started(tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.send_signal(signal.SIGUSR1)
        assert program.stdout is not None
        assert program.stdout.readline() == b"a late answer\n"
        _, report = end(program, tmp_path)
    assert report["ended"] == "returned"


def test_console_pipe_leaves_an_interrupt_to_its_caller(tmp_path: Path) -> None:
    """The run is cancelled and the process ends at once, though a read of standard input is still waiting."""
    with started(tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.send_signal(signal.SIGINT)
        program.wait(SECONDS)
        errors, report = end(program, tmp_path)
    assert report["ended"] == "cancelled"
    assert b"KeyboardInterrupt" in errors
    assert b"Fatal Python error" not in errors


# --- On a terminal ---


class Terminal:
    """A pseudo-terminal with the chat on it: `type` presses keys, `see` waits for something to appear."""

    def __init__(self, folder: Path, **extra: str) -> None:
        self._report = folder / "report"
        self._screen = ""
        self._seen = 0
        self._keys, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.program = subprocess.Popen(
            [sys.executable, HOST, self._report],
            stdin=inside,
            stdout=inside,
            stderr=subprocess.DEVNULL,
            env=environment(folder / "home", **extra),
            start_new_session=True,
        )
        os.close(inside)

    def type(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def see(self, text: str) -> str:
        while (at := self._screen.find(text, self._seen)) < 0:
            assert self._read(), f"{text!r} did not appear, but {self._screen[self._seen :]!r}"
        came, self._seen = self._screen[self._seen : at + len(text)], at + len(text)
        return came

    def ask(self, keys: str, answer: str) -> None:
        self.type(keys + ENTER)
        self.see(answer)
        self.see(PROMPT)

    def left(self, keys: str = "") -> dict[str, Any]:
        """The report, once the program has ended by itself and without an error, at the latest after these keys."""
        self.type(keys)
        while self._read():
            pass
        assert self.program.wait(SECONDS) == 0, self._screen
        report: dict[str, Any] = json.loads(self._report.read_bytes())
        return report

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self._keys)

    def _read(self) -> bool:
        if not select.select([self._keys], [], [], SECONDS)[0]:
            return False
        try:
            chunk = os.read(self._keys, 65_536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self._screen += chunk.decode(errors="replace")
        return bool(chunk)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "home").mkdir()
    opened = Terminal(tmp_path)
    try:
        opened.see(PROMPT)
        yield opened
    finally:
        opened.close()


def test_console_terminal_completes_the_path_of_a_file(terminal: Terminal, tmp_path: Path) -> None:
    """And one that is dropped on the window, which is its path in quotes."""
    cat = tmp_path / "my cat.png"
    cat.write_bytes(b"\x89PNG")
    terminal.type(f"/attach {tmp_path}/my")
    terminal.see("cat.png")
    terminal.ask("\t", "[image my cat.png: 4]")
    terminal.type(f"'{cat}' " + ENTER)
    terminal.see("[image my cat.png: 4]")


def test_console_completes_the_path_of_a_file_to_attach(tmp_path: Path) -> None:
    (tmp_path / "my cat.png").write_bytes(b"\x89PNG")
    typed = Document(f"/attach {tmp_path}/my")
    found = CommandCompleter({"/attach": "sends a file"}).get_completions(typed, CompleteEvent())
    assert [typed.text + one.text for one in found] == [f"/attach {tmp_path}/my cat.png"]


@pytest.fixture
def other_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    (tmp_path / "home").mkdir()
    with ExitStack() as cleanup:

        def opened(**extra: str) -> Terminal:
            terminal = Terminal(tmp_path, **extra)
            cleanup.callback(terminal.close)
            return terminal

        yield opened


def test_console_prompt_edits_lines_and_streams_answers(terminal: Terminal) -> None:
    """The ordinary chat: a line corrected before it is sent, an answer with its speaker's name."""
    terminal.ask("helo" + LEFT + "l", '\x1b[1mfish>\x1b[0m heard "hello"\r\n')
    terminal.ask("stream", "fish>\x1b[0m one two three four\r\n")
    assert terminal.left(CTRL_D)["said"] == ["hello", "stream"]


def test_console_prompt_shows_greeting_and_status(other_terminal: Callable[..., Terminal]) -> None:
    """The first screen says where one is; the status needs a terminal that tells where its cursor is."""
    terminal = other_terminal(PROMPT_TOOLKIT_NO_CPR="")
    terminal.see("welcome\r\n")
    terminal.see("\x1b[6n")
    terminal.type("\x1b[2;1R")
    terminal.see("all is well")


def test_console_prompt_recalls_lines_of_this_run_only(terminal: Terminal, tmp_path: Path) -> None:
    """The up key works, and no file keeps words that may later be forgotten."""
    terminal.ask("first", 'heard "first"')
    terminal.ask(UP, 'heard "first"')
    assert terminal.left(CTRL_D)["said"] == ["first", "first"]
    assert list((tmp_path / "home").iterdir()) == []


def test_console_prompt_takes_several_lines_as_one_message(terminal: Terminal) -> None:
    """Alt-Enter makes a new line, and a paste with line ends is not sent line by line."""
    terminal.ask("one" + ALT_ENTER + "  two", r'heard "one\n  two"')
    terminal.type("\x1b[200~a\r\nb\x1b[201~" + ENTER)
    terminal.see(r'heard "a\nb"')
    assert terminal.left(CTRL_D)["said"] == ["one\n  two", "a\nb"]


def test_console_prompt_completes_commands(terminal: Terminal) -> None:
    terminal.type("/g")
    terminal.see("say hello")
    terminal.ask("\t", 'heard "/greet"')
    terminal.type("so /he\t" + ENTER)
    terminal.see('heard "so /he"')
    assert terminal.left(CTRL_D)["said"] == ["/greet", "so /he"]


def test_console_prompt_sends_no_blank_lines(terminal: Terminal) -> None:
    terminal.type(ENTER)
    terminal.see(PROMPT)
    terminal.type("  " + ENTER)
    terminal.see(PROMPT)
    terminal.type("x" + ENTER)
    terminal.see('heard "x"')
    assert terminal.left(CTRL_D)["said"] == ["x"]


def test_console_prompt_clears_the_line_on_ctrl_c_and_warns_before_it_leaves(terminal: Terminal) -> None:
    """As in a shell the first Ctrl-C drops what was typed; on an empty line one Ctrl-C is not yet a goodbye."""
    terminal.type("junk")
    terminal.see("junk")
    terminal.ask(CTRL_C + "good", 'heard "good"')
    terminal.type(CTRL_C)
    terminal.see("(Ctrl-C again leaves, and so does /quit.)")
    terminal.see(PROMPT)  # keys typed while a line is printed above the prompt are read in another way
    terminal.ask("more", 'heard "more"')
    terminal.type(CTRL_C)
    terminal.see("Ctrl-C again leaves")
    terminal.see(PROMPT)
    terminal.type(CTRL_C)
    report = terminal.left()
    assert (report["said"], report["ended"]) == (["good", "more"], "returned")


@pytest.mark.parametrize("word", ["/quit", "/exit", "exit", " Quit "])
def test_console_prompt_leaves_when_a_line_says_so(terminal: Terminal, word: str) -> None:
    """These words are meant for the terminal, not for the model."""
    terminal.type(word + ENTER)
    assert terminal.left()["said"] == []


def test_console_prompt_takes_a_word_for_a_command_only_if_it_is_the_whole_line(terminal: Terminal) -> None:
    """People also talk about help, and about quitting."""
    terminal.ask("help", 'heard "/help"')
    terminal.ask("help me quit", 'heard "help me quit"')
    assert terminal.left(CTRL_D)["said"] == ["/help", "help me quit"]


def test_console_prompt_asks_for_what_a_command_lacks(terminal: Terminal) -> None:
    """The present text is there to be edited; whoever leaves it as it is has changed nothing."""
    terminal.type("/edit" + ENTER)
    terminal.see("What it should say: ")
    terminal.see("tea")
    terminal.ask(" green", 'heard "/edit tea green"')
    for answer in (ENTER, CTRL_C):
        terminal.type("/edit" + ENTER)
        terminal.see("What it should say: ")
        terminal.type(answer)
        terminal.see("(Nothing was changed.)")
        terminal.see(PROMPT)
    assert terminal.left(CTRL_D)["said"] == ["/edit tea green"]


def test_console_prompt_keeps_the_line_on_ctrl_d(terminal: Terminal) -> None:
    """Ctrl-D leaves from an empty line only: half a message is not lost by one key."""
    terminal.type("half")
    terminal.see("half")
    terminal.ask(CTRL_D + "!", 'heard "half!"')
    assert terminal.left(CTRL_D)["said"] == ["half!"]


@pytest.mark.parametrize("stop", [CTRL_C, "/stop" + ENTER, "/stpo" + BACKSPACE * 2 + "op" + ENTER])
def test_console_prompt_stops_an_answer_and_goes_on_with_what_was_typed_ahead(terminal: Terminal, stop: str) -> None:
    terminal.type("hang" + ENTER)
    terminal.see("thinking")
    terminal.type("next" + ENTER + stop)
    terminal.see("(stopped)\r\n")
    terminal.see('heard "next"')
    terminal.see(PROMPT)
    report = terminal.left(CTRL_D)
    assert (report["said"], report["ended"]) == (["hang", "next"], "returned")


def test_console_prompt_leaves_when_ctrl_c_is_pressed_twice_during_an_answer(terminal: Terminal) -> None:
    """The first Ctrl-C stops the answer; when that does not help, the second leaves, and keys typed ahead are gone."""
    terminal.type("deaf" + ENTER)
    terminal.see("thinking")
    terminal.type("rm -rf" + ENTER + CTRL_C)
    terminal.see("(There is nothing to stop. Ctrl-C again leaves.)")
    terminal.type(CTRL_C)
    report = terminal.left()
    assert (report["said"], report["ended"]) == (["deaf"], "returned")


def test_console_prompt_keeps_what_is_typed_during_an_answer(terminal: Terminal) -> None:
    """Impatient keys don't show up inside the answer, and wait for the next prompt, Ctrl-D among them."""
    terminal.type("slow" + ENTER)
    terminal.see("thinking")
    terminal.type("one" + ENTER + "two" + LEFT + "o" + ENTER + "\x1b[200~a\r\nb\x1b[201~" + ENTER + CTRL_D)
    terminal.program.send_signal(signal.SIGUSR1)
    assert terminal.see("\r\n") == " done\r\n"
    terminal.see('heard "one"')
    terminal.see('heard "twoo"')
    terminal.see('heard "a\\nb"')
    assert terminal.left()["said"] == ["slow", "one", "twoo", "a\nb"]


def test_console_prompt_formats_markdown_and_breaks_lines_between_words(terminal: Terminal) -> None:
    """The marks are gone, the address of a link is there to be read, and no word is cut."""
    terminal.type("markdown" + ENTER)
    shown = terminal.see("end")
    assert "\x1b[1mTea\x1b[0m" in shown and "\x1b[1mgreen\x1b[0m" in shown
    assert "\x1b[4mhere\x1b[0m\x1b[2m (https://tea.example/a)\x1b[0m" in shown
    assert "**" not in shown.rpartition("green")[2]
    terminal.see(PROMPT)
    terminal.left(CTRL_D)


def test_console_prompt_shows_late_answers_above_the_line_being_typed(terminal: Terminal) -> None:
    """Neither the answer nor the half-typed line is harmed, and the answer appears once."""
    terminal.type("hal")
    terminal.see("hal")
    terminal.program.send_signal(signal.SIGUSR1)
    came = terminal.see("fish>\x1b[0m a late answer\r\n")
    assert came.count("a late") == 1
    terminal.see("hal")
    terminal.type("lo" + ENTER)
    terminal.see('heard "hallo"')
    assert terminal.left(CTRL_D)["said"] == ["hallo"]


def test_console_prompt_disarms_escapes_in_answers(terminal: Terminal) -> None:
    """A remembered or generated text must not drive the terminal it is shown on."""
    terminal.type("attack" + ENTER)
    answer = terminal.see("after31m\r\n")
    assert "]0;ownedbefore[2Jafter31m" in answer
    assert "\x1b]" not in answer
    assert "\x1b[2J" not in answer


def test_console_prompt_has_no_colours_where_none_are_wanted(other_terminal: Callable[..., Terminal]) -> None:
    """NO_COLOR is a promise made by many programs."""
    terminal = other_terminal(NO_COLOR="1")
    terminal.see(PROMPT)
    terminal.ask("hello", 'fish> heard "hello"\r\n')
    assert terminal.left(CTRL_D)["ended"] == "returned"


def test_console_on_a_dumb_terminal_reads_plain_lines(other_terminal: Callable[..., Terminal]) -> None:
    """A terminal that can't move its cursor would show the prompt's control codes as rubbish."""
    terminal = other_terminal(TERM="dumb")
    terminal.type("hello\n")
    assert "\x1b" not in terminal.see('heard "hello"\r\n')
    assert terminal.left(CTRL_D)["said"] == ["hello"]
