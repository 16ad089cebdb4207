"""Stands between Remora and a server's program: passes its lines on, and ends it when it floods.

Runs as a script of its own, with nothing but the standard library: `python -I relay.py PROGRAM ARGUMENT...`. The
program reads our standard input itself. Its output is passed on line by line, so that no overlong line, no endless
chatter and no heap of values reaches the process that has everybody's memory. `session` holds servers at an address to
the same bounds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable

#: The longest message, in bytes. A picture of more than 2.9 MB is longer, since it comes as base64.
LONGEST = 4_000_000
#: The most values of a message. A value costs some 0.4 µs of the event loop, and 100 bytes or more of memory.
MOST_VALUES = 100_000
#: The longest message, in bytes, whose strings are told from the rest to count its values.
_LONGEST_COUNTED = 1_000_000
_STRING = re.compile(rb'"[^"\\\r\n]*(?:\\[^\r\n][^"\\\r\n]*)*"?')
#: The messages, bytes and values that may come at once, and how many of them become free again in a second.
#: Messages are passed on no faster than they are read, so a flood shows only in the long run.
MESSAGES = (2_000, 100)
BYTES = (16_000_000, 1_000_000)
VALUES = (5 * MOST_VALUES, 20_000)
FLOODED = 75


class Allowance:
    """An amount that may be taken at once, and that becomes free again with time."""

    def __init__(self, most: float, a_second: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._a_second = a_second
        self._monotonic = monotonic
        self._taken = 0.0
        self._at = monotonic()

    def take(self, amount: float) -> bool:
        """Returns whether there was as much left."""
        now = self._monotonic()
        self._taken = max(0.0, self._taken - (now - self._at) * self._a_second) + amount
        self._at = now
        return self._taken <= self._most


def values(message: bytes | bytearray) -> int:
    """Returns how many values and lines a message of JSON, or an event with one, has at most, without parsing it.

    Each value but the first follows a comma, a bracket or a brace, so these are counted. Those inside strings are left
    out if there are many, unless the message is too long to find its strings.
    """
    count = _marks(message)
    if count > MOST_VALUES and len(message) <= _LONGEST_COUNTED:
        count = _marks(_STRING.sub(b"", message))
    return count


def _marks(text: bytes | bytearray) -> int:
    return len(text) - len(text.translate(None, b",[{\r\n"))


def refusal(request: bytes) -> bytes:
    """Returns an error reply to the message with this id, or b"" if it has none."""
    try:
        asked = json.loads(request)["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return b""
    why = f"an answer of more than {MOST_VALUES:,} values or {LONGEST:,} bytes, which is not read"
    return json.dumps({"jsonrpc": "2.0", "id": asked, "error": {"code": -32603, "message": why}}).encode() + b"\n"


def main(command: list[str]) -> int:
    program = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 (the operator names the program)
    assert program.stdout is not None
    messages, size, heap = Allowance(*MESSAGES), Allowance(*BYTES), Allowance(*VALUES)
    while line := program.stdout.readline(LONGEST + 1):
        count = values(line)
        borne = messages.take(1) and size.take(len(line)) and heap.take(min(count, MOST_VALUES))
        if len(line) > LONGEST or not borne:
            program.kill()
            return FLOODED
        sys.stdout.buffer.write(refusal(line) if count > MOST_VALUES else line)
        sys.stdout.buffer.flush()
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
