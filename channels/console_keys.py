"""The keyboard of a terminal chat while there is no prompt: Ctrl-C, keys typed ahead, no echo."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPress


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
