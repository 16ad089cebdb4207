"""The terminal as a chat platform: one person's lines in, answers out.

Invariants: text that a stream has shown is not shown again by the outbox row that completes it. A late message never
lands in the middle of a line being typed. No text can move the cursor, change colours or control the terminal. Typed
text is never kept in a file and never left to the shell, and no file is overwritten. prompt_toolkit and the Markdown
parser are loaded only if there is a prompt.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path, PurePath
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from channels.base import (
    Attachment,
    Capabilities,
    Channel,
    ChannelError,
    ChannelUnavailable,
    Chunk,
    File,
    Health,
    Host,
    Inbound,
    NotTaken,
    Outbound,
    Place,
)
from channels.console_files import ATTACH, UnusableFile, dropped, is_attach, read, taken
from channels.console_pipe import PlainText, lines_of, printable

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPress

    from channels.console_live import LiveText

_STREAMS = 8  # turns whose shown text is remembered; a place has one stream at a time, so older streams were abandoned
_BLANK = " \t\n"  # stripped around a message; other white space, such as a Chinese indent, is text
_EARLIER = "(from earlier)"
#: `Chunk.markup` of a row whose text is Markdown.
_MARKDOWN = "markdown"
#: Lines that leave, and the line that asks for help. Without a slash they must be the whole line.
_LEAVING = frozenset({"/quit", "/exit"})
_LEAVE = _LEAVING | {"quit", "exit"}
_HELP = "help"
_STOP = "/stop"
_LEAVES = "(Ctrl-C again leaves, and so does /quit.)"
_NO_STOP = "(There is nothing to stop. Ctrl-C again leaves.)"
_UNCHANGED = "(Nothing was changed.)"
_YOU = "you> "
_SIZE = os.terminal_size((80, 24))
_DOUBLE = 1.0  # seconds within which a second Ctrl-C leaves, regardless of the first one's effect
_WAIT = 0.7  # seconds without a word until a sign stands where the answer will be
_FILE_LIMIT = 1 << 30  # bytes; a file that is shown here is held in memory as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The streams to read and write. `env` is checked for NO_COLOR (https://no-color.org) and TERM."""

    stdin: TextIO
    stdout: TextIO
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """The texts around the prompt: `greeting` is printed before the first prompt, `status` is the line below it."""

    agent_name: str = "remora"
    greeting: str = ""
    status: Callable[[], str] | None = None


class ConsoleChannel(Channel):
    """The terminal chat of one `person`, whose name is both the chat and its author.

    With `once`, the run consists of that one message. Otherwise the channel prompts if `stdin` and `stdout` are both
    terminals (TERM=dumb is none). If they are not, it reads one message per line until the end of input and prints bare
    answers.

    `now` returns milliseconds since 1970 UTC, and `new_id` a fresh id for every line and every shown message. Files are
    put into the folder `files`, which is made when needed, and their paths are printed; without a folder no files are
    shown. Writing to `stdout` blocks while its reader is behind.
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
        streams: Streams,
        looks: Looks | None = None,
        files: Path | None = None,
    ) -> None:
        self.id = id
        self._place = Place(channel=id, chat=person)
        self._once = once
        self._now = now
        self._new_id = new_id
        self._stdin = streams.stdin
        self._stdout = streams.stdout
        self._looks = looks or Looks()
        self._files = files
        env = streams.env
        terminals = self._stdin.isatty() and self._stdout.isatty() and env.get("TERM") != "dumb"
        self._interactive = once is None and terminals
        self.capabilities = Capabilities(
            stream="append",
            resend="mark",
            introduces=self._interactive,
            burst_seconds=0,
            direct=True,
            comes_and_goes=True,
            file_bytes=0 if files is None else _FILE_LIMIT,
        )
        self._coloured = self._interactive and not env.get("NO_COLOR")
        self._text = self._formatted() if self._interactive else PlainText(self._write)
        self._remarks: list[str] = []
        self._tasks: set[asyncio.Future[None]] = set()
        self._answering = False
        self._stopping = False  # the person has asked to stop the answer that is being made
        self._warned = False  # the person has been told that the next Ctrl-C leaves
        self._form = False  # the prompt asks for what a command lacks
        self._interrupted_at = -_DOUBLE
        self._streams: dict[int, _Stream] = {}
        self._open: int | None = None  # the turn whose text the last, unfinished line ends with
        self._leaving = asyncio.Event()
        self._lost: OSError | None = None  # the error that made stdout unusable
        # Set while the person is typing: runs a function with the input line out of the way.
        self._above_prompt: Callable[[Callable[[], None]], Awaitable[None]] | None = None

    @property
    def place(self) -> Place:
        return self._place

    @property
    def interactive(self) -> bool:
        return self._interactive

    def reachable(self, place: Place) -> bool:
        """Returns True only for this person's terminal, and only while its output can be written."""
        return place == self._place and self._lost is None

    def health(self) -> Health:
        """Returns the health of a terminal, which polls nobody for updates."""
        return Health(trouble="" if self._lost is None else f"standard output can't be written: {self._lost.strerror}")

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return [Chunk(text=text, markup=_MARKDOWN if markdown else "")]

    def remark(self, text: str) -> None:
        """Shows a line beside the conversation. During an answer it waits for the end of the answer."""
        line = printable(" ".join(text.split()))
        if line not in self._remarks:
            self._remarks.append(line)
        if self._above_prompt is not None:
            self._start(self._above_prompt(self._show_remarks))
        elif not self._answering:
            self._show_remarks()

    async def run(self, host: Host) -> None:
        """Talks until the person leaves, the input ends, or nobody reads the output any more.

        Ctrl-D and /quit leave. At a prompt, Ctrl-C stops the running answer or clears the line that is being typed,
        and pressed once more it leaves: `run` returns, and the caller finishes or keeps the running work. Without a
        prompt, Ctrl-C is not handled here: the cancellation reaches the caller unchanged.

        A broken pipe is an ordinary end. Any other failure to write, such as a full disk, raises
        `ChannelUnavailable`. The host's errors pass through.
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
                "answers not shown yet are kept for the next terminal chat"
            )

    def keyboard(self) -> AbstractContextManager[None]:
        """Keeps keys that are typed outside a prompt off the screen, and away from the shell that runs afterwards."""
        return unechoed(self._stdin) if self._interactive else nullcontext()

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Shows the next piece of a turn's answer; while the person types, the turn's outbox rows show it instead."""
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
        text = stream.held + printable(text)
        if not stream.shown:
            text = text.lstrip(_BLANK)
        body = text.rstrip(_BLANK)
        stream.held = text[len(body) :]
        if not body:
            return
        if self._open != turn:
            self._end_line()
            self._text.begin()
        self._text.add(body)
        self._open = turn
        stream.shown.append(body)

    async def send(self, outbound: Outbound) -> str:
        """Prints what its turn's stream has not shown of a row. Raises `ChannelError` if that can't be written."""
        if outbound.place != self._place:
            raise ChannelUnavailable(
                f"message {outbound.id} is for {outbound.place.session_key}, but this terminal shows only "
                f"{self._place.session_key}; it is kept until that person chats"
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
                f"message {outbound.id} was not shown: standard output can't be written ({self._lost.strerror}); "
                f"the next terminal chat of {outbound.place.chat} shows it, marked as earlier",
                certain=certain,
            )
        return self._new_id()

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        return await asyncio.to_thread(read, attachment.reference, limit=limit)

    async def _talk(self, host: Host) -> None:
        if self._once is not None:
            await self._say(host, self._once)
        elif self._interactive:
            await self._prompt(host)
        else:
            async for line in lines_of(self._stdin):
                if line.strip().lower() in _LEAVING:
                    return
                await self._say(host, line)

    async def _say(self, host: Host, text: str) -> None:
        if not text.strip():
            return
        try:
            await host.on_inbound(self._inbound(*self._with_file(text)))
        except (NotTaken, UnusableFile) as exc:
            # No platform would deliver the line again; only the person can repeat it.
            self._end_line()
            self._text.show(printable(str(exc)), markdown=False)
            return
        await host.settled(self._place)

    def _with_file(self, text: str) -> tuple[str, Attachment | None]:
        """Returns the words of a line, and the file that it sends. Raises `UnusableFile`."""
        if is_attach(text):
            return taken(text)
        # Through a pipe a path is a text like any other.
        file = dropped(text) if self._interactive else None
        return (text, None) if file is None else ("", file)

    def _inbound(self, text: str, attachment: Attachment | None = None) -> Inbound:
        key = self._new_id()
        return Inbound(
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
            attachments=() if attachment is None else (attachment,),
        )

    async def _prompt(self, host: Host) -> None:
        # Imported here, because it takes a tenth of a second, which pipes and single messages need not pay.
        from prompt_toolkit.patch_stdout import patch_stdout

        session = self._session(host)
        if self._looks.greeting:
            self._write(printable(self._looks.greeting).rstrip(_BLANK) + "\n")
        # patch_stdout keeps other output, such as warnings, off the input line. The channel's own avoids it anyway.
        with patch_stdout(raw=True), interrupts(partial(self._interrupt, host)), self.keyboard():
            while (text := await self._typed(session, _YOU)) is not None:
                said = text.strip().lower()
                if said in _LEAVE or said.split(" ")[0] in _LEAVING:
                    return
                if said.startswith("/"):
                    text = await self._completed(host, session, text)
                await self._answered(host, session, f"/{_HELP}" if said == _HELP else text)

    async def _typed(self, session: PromptSession[str], label: str, value: str = "") -> str | None:
        """Returns the text that the person types, beginning with `value`; None if they leave."""
        from prompt_toolkit.application import run_in_terminal

        self._end_line()
        self._show_remarks()
        self._warned = False
        self._above_prompt = run_in_terminal
        try:
            return await session.prompt_async([("bold" if self._coloured else "", label)], default=value)
        except EOFError:
            return None
        finally:
            self._above_prompt = None

    async def _completed(self, host: Host, session: PromptSession[str], text: str) -> str:
        form = await host.form(self._inbound(text))
        if form is None:
            return text
        self._form = True
        try:
            value = await self._typed(session, f"{printable(form.label)}: ", form.value)
        finally:
            self._form = False
        if not (value or "").strip() or value == form.value:
            self.remark(_UNCHANGED)
            return ""
        return f"{text} {value}"

    async def _answered(self, host: Host, session: PromptSession[str], text: str) -> None:
        self._answering, self._stopping = True, False
        output = session.app.output
        output.enable_bracketed_paste()  # a text pasted now is one message, too
        output.flush()
        sign = asyncio.get_running_loop().call_later(_WAIT, self._wait)
        try:
            with typed_ahead(session.input, _STOP, partial(self._stop, host)):
                await self._say(host, text)
        finally:
            self._answering = False
            sign.cancel()
            output.disable_bracketed_paste()
            output.flush()

    def _wait(self) -> None:
        if self._open is None:
            self._text.wait()

    def _interrupt(self, host: Host) -> None:
        now = asyncio.get_running_loop().time()
        if self._stopping or now - self._interrupted_at < _DOUBLE:
            self._leaving.set()
        else:
            self._interrupted_at = now
            self._stop(host)

    def _stop(self, host: Host) -> None:
        self._stopping = True
        self._start(self._stopped(host))

    async def _stopped(self, host: Host) -> None:
        if not await host.stop(self._place):
            self._end_line()
            self._text.aside(_NO_STOP)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _bound_keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

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
            again = asyncio.get_running_loop().time() - self._interrupted_at < _DOUBLE
            if self._form:
                event.app.exit(result="")
            elif event.current_buffer.text:
                event.current_buffer.reset()
            elif self._warned or again:
                event.app.exit(exception=EOFError())
            else:
                self._warned = True
                self.remark(_LEAVES)

        return keys

    def _session(self, host: Host) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.input import create_input
        from prompt_toolkit.output import ColorDepth, create_output

        from channels.console_complete import CommandCompleter

        def changed(_buffer: object) -> None:
            self._warned = False

        status = self._looks.status
        commands = {f"/{printable(spec.name)}": printable(spec.help) for spec in host.commands if not spec.admin}
        commands |= {ATTACH: "send a file", "/quit": "leave"}
        session: PromptSession[str] = PromptSession(
            input=create_input(self._stdin),
            output=create_output(self._stdout),
            color_depth=None if self._coloured else ColorDepth.DEPTH_1_BIT,
            key_bindings=self._bound_keys(),
            multiline=True,
            # A history file would keep text that the person may later want forgotten.
            history=InMemoryHistory(),
            completer=CommandCompleter(commands),
            reserve_space_for_menu=4,
            bottom_toolbar=None if status is None else lambda: printable(status()),
        )
        session.default_buffer.on_text_changed += changed
        return session

    def _formatted(self) -> LiveText:
        # Imported here, because the Markdown parser takes a tenth of a second, which pipes need not pay.
        from channels.console_live import LiveText

        name = f"{printable(self._looks.agent_name)}>"
        return LiveText(self._write, self._size, name=name, coloured=self._coloured)

    def _size(self) -> os.terminal_size:
        try:
            size = os.get_terminal_size(self._stdout.fileno())
        except OSError:
            return _SIZE
        return size if size.columns > 1 and size.lines else _SIZE

    def _put_down(self, file: File) -> Path:
        """Stores a file and returns its path: a free name, or that of the same file, stored by an earlier try."""
        if self._files is None:
            raise ChannelError(f"this terminal shows no files, so {file.name} was not shown")
        name = PurePath(printable(file.name).replace("\\", "/")).name or "file"
        try:
            self._files.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _put_down(file.data, self._files.resolve() / name)
        except OSError as error:
            raise ChannelError(
                f"the file {name} can't be written to {self._files}: {error.strerror}; free some space or allow "
                "writing there, then ask again"
            ) from None

    def _show(self, outbound: Outbound) -> None:
        row = printable(outbound.text).strip(_BLANK)
        stream = None if outbound.turn is None else self._streams.pop(outbound.turn, None)
        shown = "" if stream is None else "".join(stream.shown)
        if outbound.earlier_run:
            self._end_line()
            self._text.aside(_EARLIER)
            shown = ""
        going_on = bool(shown) and self._open == outbound.turn
        markdown = outbound.markup == _MARKDOWN
        if stream is not None and outbound.turn is not None and row != shown and shown.startswith(row):
            # The stream is ahead of this row. The surplus is the start of the turn's next row.
            stream.shown = [shown[len(row) :].lstrip(_BLANK)]
            self._streams[outbound.turn] = stream
        elif row.startswith(shown) and going_on:
            self._text.add(row[len(shown) :])
            self._end_line(markdown=markdown)
        else:
            self._end_line()
            if rest := row.removeprefix(shown).lstrip(_BLANK):
                self._text.show(rest, markdown=markdown)

    def _show_remarks(self) -> None:
        self._end_line()
        for remark in self._remarks:
            self._text.aside(remark)
        self._remarks.clear()

    def _end_line(self, *, markdown: bool = True) -> None:
        self._text.clear()
        if self._open is not None:
            self._open = None
            self._text.end(markdown=markdown)

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
    """The text of a turn that no row has claimed yet. `held` is blank and waits; a muted stream shows nothing more."""

    shown: list[str] = field(default_factory=list)
    held: str = ""
    muted: bool = False


def _put_down(data: bytes, wanted: Path) -> Path:
    """Writes a file at `wanted` or under the next free name. Returns its path, or that of an identical file there."""
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
            path.unlink(missing_ok=True)  # a partial file is worse than none
            raise
    return path


def _private(path: str, flags: int) -> int:
    """Opens a file that only its owner may read, because it may hold words said in confidence."""
    return os.open(path, flags, 0o600)


def _well_formed(text: str) -> str:
    """Returns `text` with U+FFFD for lone surrogates, which stand for undecodable bytes and fit in no database."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _discard(stdout: TextIO) -> None:
    """Points a broken `stdout` at the null device, because the interpreter flushes it at exit and would complain."""
    with suppress(OSError):
        descriptor = stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


@contextmanager
def typed_ahead(source: Input, at_once: str, act: Callable[[], None]) -> Iterator[None]:
    """Keeps the keys typed meanwhile for the next prompt, except for a line that says `at_once`: it calls `act`."""
    from prompt_toolkit.input.typeahead import store_typeahead
    from prompt_toolkit.keys import Keys

    kept: list[KeyPress] = []
    line = ""
    begun = 0  # where in `kept` the line that is being typed begins

    def take() -> None:
        nonlocal line, begun
        for pressed in source.read_keys():
            kept.append(pressed)
            if pressed.key in {Keys.ControlM, Keys.ControlJ}:
                if line.strip().lower() == at_once:
                    del kept[begun:]
                    act()
                line, begun = "", len(kept)
            elif pressed.key == Keys.ControlH:
                line = line[:-1]
            else:
                line += pressed.data

    with source.attach(take):
        try:
            yield
        finally:
            take()
            kept += source.flush_keys()
    store_typeahead(source, kept)


@contextmanager
def interrupts(act: Callable[[], None]) -> Iterator[None]:
    """Makes Ctrl-C call `act` in the loop instead of cancelling the main task. No effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def unechoed(stdin: TextIO) -> Iterator[None]:
    """Keeps keys typed outside a prompt off the screen. Those that nobody has read at the end are dropped."""
    try:
        import termios  # missing on Windows, whose console does neither
        import tty
    except ImportError:
        yield
        return
    before = termios.tcgetattr(stdin)
    tty.setcbreak(stdin, termios.TCSANOW)
    now = termios.tcgetattr(stdin)
    now[0] &= ~termios.ICRNL  # Enter and the line ends of a paste come as at a prompt
    now[3] |= termios.NOFLSH  # Ctrl-C must not drop the keys before it
    termios.tcsetattr(stdin, termios.TCSANOW, now)
    try:
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSAFLUSH, before)  # else the shell would run keys that were typed ahead
