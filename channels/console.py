"""The terminal as a chat platform: one person's lines in, answers out.

Invariants: what a stream has shown is not shown again by the row that completes it; a late message never
lands in the middle of a line being typed; no text can move the cursor, change colours or talk to the
terminal; nothing that was typed is kept in a file, and no file is overwritten; prompt_toolkit is loaded only when
somebody is prompted.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path, PurePath
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from channels.base import (
    Capabilities,
    Channel,
    ChannelError,
    ChannelUnavailable,
    File,
    Health,
    Host,
    Inbound,
    NotTaken,
    Outbound,
    Place,
)

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples

_CHUNK = 1 << 20  # bytes asked of one read; a pipe gives at most its 64 KiB at a time, a file all of it
_STREAMS = 8  # turns whose shown text is remembered; a place has one stream at a time, so older ones were given up
_BLANK = " \t\n"  # around a message these are not shown; other white space, such as a Chinese indent, is text
#: C0, DEL and C1 (ECMA-48) except tab and newline: with these a text could drive the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EARLIER = "(from earlier)"
_FILE_LIMIT = 1 << 30  # bytes; what is shown here is held in memory whole


class ConsoleChannel(Channel):
    """The terminal chat of one `person`, whose name is both the chat and its author.

    With `once` the run is that one message. Otherwise the channel prompts where `stdin` and `stdout` are both
    terminals (TERM=dumb is none), and else reads one message per line until the end of input and prints bare
    answers.

    `now` gives milliseconds since 1970 UTC; `new_id` gives a fresh id for every line and every shown message.
    `greeting` is printed before the first prompt and `status` fills the line below the prompt. Files are put into the
    folder `files`, made when it is needed, and their paths are printed; without it none are shown. `env` is asked
    for NO_COLOR (https://no-color.org) and TERM. Writing to `stdout` blocks while its reader is behind.
    """

    id = ""
    platform = "console"
    capabilities = Capabilities()

    def __init__(
        self,
        *,
        person: str,
        id: str = "console",  # noqa: A002 - the channel protocol calls it so
        once: str | None = None,
        now: Callable[[], int],
        new_id: Callable[[], str],
        stdin: TextIO,
        stdout: TextIO,
        greeting: str = "",
        status: Callable[[], str] | None = None,
        agent_name: str = "remora",
        files: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.id = id
        self._place = Place(channel=id, chat=person)
        self._once = once
        self._now = now
        self._new_id = new_id
        self._stdin = stdin
        self._stdout = stdout
        self._greeting = greeting
        self._status = status
        self._files = files
        env = env or {}
        terminals = stdin.isatty() and stdout.isatty() and env.get("TERM") != "dumb"
        self._interactive = once is None and terminals
        self.capabilities = Capabilities(
            stream="append",
            resend="mark",
            introduces=self._interactive,
            burst_seconds=0,
            direct=True,
            file_bytes=0 if files is None else _FILE_LIMIT,
        )
        self._coloured = self._interactive and not env.get("NO_COLOR")
        self._header = self._styled("1", f"{_printable(agent_name)}>") + " " if self._interactive else ""
        self._streams: dict[int, _Stream] = {}
        self._open: int | None = None  # the turn whose text ends the last line, which has no newline yet
        self._leaving = asyncio.Event()
        self._lost: OSError | None = None  # why stdout takes no more
        # Set while the person is typing: runs a function with the input line out of the way.
        self._above_prompt: Callable[[Callable[[], None]], Awaitable[None]] | None = None

    @property
    def place(self) -> Place:
        """Where this terminal's talk stands: one session a person."""
        return self._place

    def reachable(self, place: Place) -> bool:
        """Only this person's terminal, and only while its output can be written."""
        return place == self._place and self._lost is None

    def health(self) -> Health:
        """A terminal asks nobody for updates."""
        return Health(trouble="" if self._lost is None else f"standard output can't be written: {self._lost.strerror}")

    async def run(self, host: Host) -> None:
        """Talk until the person leaves, the input ends, or nobody reads the output any more; then return.

        At a prompt Ctrl-D, and Ctrl-C on an empty line, leave. Ctrl-C during an answer stops waiting for it
        and leaves as well: `run` returns, and what is still under way is the caller's to finish or to keep.
        Where there is no prompt, Ctrl-C is not handled here: the cancellation reaches the caller unchanged.

        A broken pipe is an ordinary end. Any other failure to write, such as a full disk, raises
        `ChannelUnavailable`; what the host raises passes through.
        """
        talk = asyncio.create_task(self._talk(host))
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            await asyncio.wait((talk, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            talk.cancel()
            leaving.cancel()
            await asyncio.wait((talk, leaving))
            self._end_line()
        if not talk.cancelled():
            talk.result()
        if self._lost is not None and not isinstance(self._lost, BrokenPipeError):
            raise ChannelUnavailable(
                f"standard output can't be written: {self._lost.strerror}; "
                "answers not shown yet wait for the next terminal chat"
            )

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Show the next piece of the answer of `turn`; while the person types, leave it to the row.

        The rows of a turn are expected to begin, one after the other, with what was appended.
        """
        if not self.reachable(place):
            return
        if turn not in self._streams:
            self._streams[turn] = _Stream()
            if len(self._streams) > _STREAMS:
                self._streams.pop(next(iter(self._streams)))
        stream = self._streams[turn]
        stream.muted = stream.muted or self._above_prompt is not None
        if stream.muted:
            return
        text = stream.held + _printable(text)
        if not stream.shown:
            text = text.lstrip(_BLANK)
        body = text.rstrip(_BLANK)
        stream.held = text[len(body) :]
        if not body:
            return
        if self._open != turn:
            self._end_line()
            self._write(self._header)
        self._write(body)
        self._open = turn
        stream.shown.append(body)

    async def send(self, outbound: Outbound) -> str:
        """Print what the stream of the row's turn has not shown of it; returns a fresh message id.

        Raises `ChannelUnavailable` for another person's row, and when stdout can't be written; `ChannelError` when its
        file can't.
        """
        if outbound.place != self._place:
            raise ChannelUnavailable(
                f"row {outbound.id} is for {outbound.place.session_key}, but this terminal shows only "
                f"{self._place.session_key}; it waits for a run that reaches its person"
            )
        if self._lost is None:
            if outbound.file is not None:
                path = await asyncio.to_thread(self._put_down, outbound.file)
                outbound = replace(outbound, text=f"{outbound.text}\n{path}")
            show = partial(self._show, outbound)
            if self._above_prompt is None:
                show()
            else:
                await self._above_prompt(show)
            certain = False  # a failed write may have shown a part
        else:
            certain = True
        if self._lost is not None:
            raise ChannelUnavailable(
                f"row {outbound.id} was not shown, standard output can't be written: {self._lost.strerror}; "
                f"the next terminal chat of {outbound.place.chat} shows it, marked",
                certain=certain,
            )
        return self._new_id()

    async def _talk(self, host: Host) -> None:
        if self._once is not None:
            await self._say(host, self._once)
        elif self._interactive:
            await self._prompt(host)
        else:
            async for line in _lines(self._stdin):
                await self._say(host, line)

    async def _say(self, host: Host, text: str) -> None:
        if not text.strip():
            return
        key = self._new_id()
        inbound = Inbound(
            channel=self.id,
            platform=self.platform,
            bot_id="local",
            update_key=key,
            chat=self._place.chat,
            chat_kind="private",
            author_id=self._place.chat,
            author_name=self._place.chat,
            message_id=key,
            text=_well_formed(text),
            sent_at=self._now(),
        )
        try:
            await host.on_inbound(inbound)
        except NotTaken as exc:
            # There is no platform that would deliver the line again: only the person can.
            self._end_line()
            self._write(f"{self._header}{_printable(str(exc))}\n")
            return
        await host.settled(self._place)

    async def _prompt(self, host: Host) -> None:
        # Here and not above: it costs a tenth of a second that pipes and single messages need not pay.
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.patch_stdout import patch_stdout

        session = self._session(host)
        you: StyleAndTextTuples = [("bold" if self._coloured else "", "you> ")]
        if self._greeting:
            self._write(_printable(self._greeting).rstrip(_BLANK) + "\n")
        # patch_stdout keeps what others print, such as warnings, off the input line; ours know the way.
        with patch_stdout(raw=True), _interrupts(self._leaving.set), _unechoed(self._stdin):
            while True:
                self._end_line()
                self._above_prompt = run_in_terminal
                try:
                    text = await session.prompt_async(you)
                except EOFError:
                    return
                finally:
                    self._above_prompt = None
                await self._say(host, text)

    def _session(self, host: Host) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.input import create_input
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
        from prompt_toolkit.output import ColorDepth, create_output

        keys = KeyBindings()

        @keys.add("enter")
        def send(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def newline(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("c-c")
        @keys.add("<sigint>")
        def clear_or_leave(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=EOFError())

        status = self._status
        commands = {f"/{_printable(spec.name)}": _printable(spec.help) for spec in host.commands if not spec.admin}
        return PromptSession(
            input=create_input(self._stdin),
            output=create_output(self._stdout),
            color_depth=None if self._coloured else ColorDepth.DEPTH_1_BIT,
            key_bindings=keys,
            multiline=True,
            # A file would keep words that the person may later want forgotten.
            history=InMemoryHistory(),
            completer=WordCompleter(list(commands), meta_dict=commands, ignore_case=True, sentence=True),
            reserve_space_for_menu=4,
            bottom_toolbar=None if status is None else lambda: _printable(status()),
        )

    def _put_down(self, file: File) -> Path:
        """Where a file lies from now on: beside what has its name, unless that is the same, shown by an earlier try."""
        if self._files is None:
            raise ChannelError(f"this terminal shows no files, so {file.name} was not shown")
        name = PurePath(_printable(file.name).replace("\\", "/")).name or "file"
        try:
            self._files.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _put_down(file.data, self._files.resolve() / name)
        except OSError as error:
            raise ChannelError(
                f"the file {name} can't be written to {self._files}: {error.strerror}; make room or give the right to "
                "write there, and ask for it again"
            ) from None

    def _show(self, outbound: Outbound) -> None:
        row = _printable(outbound.text).strip(_BLANK)
        stream = None if outbound.turn is None else self._streams.pop(outbound.turn, None)
        shown = "" if stream is None else "".join(stream.shown)
        if outbound.earlier_run:
            self._end_line()
            self._write(self._styled("2", _EARLIER) + "\n")
            shown = ""
        going_on = bool(shown) and self._open == outbound.turn
        if stream is not None and outbound.turn is not None and row != shown and shown.startswith(row):
            # The stream is ahead of this row: the surplus is the start of the turn's next one.
            stream.shown = [shown[len(row) :].lstrip(_BLANK)]
            self._streams[outbound.turn] = stream
        elif row.startswith(shown) and going_on:
            self._write(row[len(shown) :])
            self._end_line()
        else:
            self._end_line()
            rest = row.removeprefix(shown).lstrip(_BLANK)
            if rest:
                self._write(f"{self._header}{rest}\n")

    def _end_line(self) -> None:
        if self._open is not None:
            self._open = None
            self._write("\n")

    def _styled(self, sgr: str, text: str) -> str:
        return f"\x1b[{sgr}m{text}\x1b[0m" if self._coloured else text

    def _write(self, text: str) -> None:
        if self._lost is not None:
            return
        encoding = self._stdout.encoding or "utf-8"
        try:
            self._stdout.write(text.encode(encoding, "replace").decode(encoding))
            self._stdout.flush()
        except OSError as error:
            self._lost = error
            self._leaving.set()
            if isinstance(error, BrokenPipeError):
                _discard(self._stdout)


@dataclass(slots=True, kw_only=True)
class _Stream:
    """What a turn has shown and no row has claimed yet.

    `held` is blank text that waits until something follows it; a muted stream shows no more.
    """

    shown: list[str] = field(default_factory=list)
    held: str = ""
    muted: bool = False


def _put_down(data: bytes, wanted: Path) -> Path:
    """Write a new file at `wanted`, or under the first free name after it; the one there if it is the same."""
    path = wanted
    for number in count(2):
        try:
            with open(path, "xb", opener=_private) as written:
                written.write(data)
            break
        except FileExistsError:
            if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
                break
            path = wanted.with_stem(f"{wanted.stem}-{number}")
        except OSError:
            path.unlink(missing_ok=True)  # a part of a file is worse than none
            raise
    return path


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it may hold what somebody told in confidence."""
    return os.open(path, flags, 0o600)


def _printable(text: str) -> str:
    """`text` without control characters. One by one, so that pieces of a text give pieces of the result."""
    return _CONTROLS.sub("", text)


def _well_formed(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which stand for undecodable bytes and fit in no database."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


async def _lines(stdin: TextIO) -> AsyncIterator[str]:
    """The lines of `stdin` without their ends, of any length; undecodable bytes become U+FFFD."""
    read = _reader(stdin)
    pieces: list[bytes] = []
    while chunk := await _in_thread(read):
        head, *rest = chunk.split(b"\n")
        pieces.append(head)
        for piece in rest:
            yield _decoded(pieces)
            pieces = [piece]
    yield _decoded(pieces)


def _decoded(pieces: list[bytes]) -> str:
    return b"".join(pieces).removesuffix(b"\r").decode("utf-8", "replace")


def _reader(stdin: TextIO) -> Callable[[], bytes]:
    """A blocking read of some bytes; b"" at the end.

    It goes past Python's buffer where it can: a thread still inside a buffered read would hold its lock, and
    the interpreter aborts on that lock at exit.
    """
    try:
        descriptor = stdin.fileno()
    except OSError:  # text that is no file, such as a StringIO
        return lambda: stdin.read(_CHUNK).encode("utf-8", "surrogatepass")
    return lambda: os.read(descriptor, _CHUNK)


async def _in_thread(read: Callable[[], bytes]) -> bytes:
    """`read()` in a daemon thread: the loop's pool is waited for at the end, and a read may never end.

    Raises `ChannelUnavailable` when the input can't be read. When cancelled, the thread stays behind in its
    read, and the bytes it gets are lost.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()

    def settle(result: bytes | OSError) -> None:
        if done.done():
            return
        if isinstance(result, OSError):
            done.set_exception(
                ChannelUnavailable(
                    f"standard input can't be read: {result.strerror}; "
                    "give a terminal, a pipe or a file with one message per line"
                )
            )
        else:
            done.set_result(result)

    def work() -> None:
        result: bytes | OSError
        try:
            result = read()
        except OSError as error:
            result = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="console-read", daemon=True).start()
    return await done


@contextmanager
def _interrupts(leave: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C call `leave` in the loop, not cancel the main task. No effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(leave)

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _unechoed(stdin: TextIO) -> Iterator[None]:
    """Keep keys typed during an answer out of it, and keep them all, Ctrl-D too, for the next prompt."""
    try:
        import termios  # not on Windows, whose console does neither harm
        import tty
    except ImportError:
        yield
        return
    before = termios.tcgetattr(stdin)
    tty.setcbreak(stdin, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def _discard(stdout: TextIO) -> None:
    """Point a broken `stdout` at the null device: the interpreter flushes it at exit and would complain."""
    with suppress(OSError):
        descriptor = stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
