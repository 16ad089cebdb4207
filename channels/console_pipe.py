"""A terminal without formatting, a pipe or a file: lines read without blocking the loop, and text freed of controls."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TextIO

from channels.base import ChannelUnavailable

#: C0, DEL and C1 (ECMA-48) except tab and newline. With these characters a text could control the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Returns `text` without control characters; pieces of a text give the pieces of the result."""
    return _CONTROLS.sub("", text)


class PlainText:
    """Text for pipes, files and terminals that can't move their cursor."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def begin(self) -> None:
        """Begins a text."""

    def add(self, text: str) -> None:
        self._write(text)

    def end(self, *, markdown: bool) -> None:
        self._write("\n")

    def show(self, text: str, *, markdown: bool) -> None:
        self._write(f"{text}\n")

    def aside(self, text: str) -> None:
        self._write(f"{text}\n")

    def wait(self) -> None:
        """Shows nothing: text without a cursor has no sign for waiting."""

    def clear(self) -> None:
        """Clears nothing, as `wait` shows nothing."""


_CHUNK = 1 << 20  # bytes requested by one read; a pipe returns at most its 64 KiB at a time, a file all of it


async def lines_of(stdin: TextIO) -> AsyncIterator[str]:
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
    """Returns a function that reads some bytes and blocks; it returns b"" at the end.

    It bypasses Python's buffer if possible: a thread still inside a buffered read would hold the buffer's lock, and
    the interpreter aborts on that lock at exit.
    """
    try:
        descriptor = stdin.fileno()
    except OSError:  # a text stream without a file, such as a StringIO
        return lambda: stdin.read(_CHUNK).encode("utf-8", "surrogatepass")
    return lambda: os.read(descriptor, _CHUNK)


async def _in_thread(read: Callable[[], bytes]) -> bytes:
    """Runs `read()` in a daemon thread, because the loop waits for its own pool at exit and a read may never end.

    Raises `ChannelUnavailable` if the input can't be read. On cancellation the thread stays behind in its read, and the
    bytes that it gets are lost.
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
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="console-read", daemon=True).start()
    return await done
