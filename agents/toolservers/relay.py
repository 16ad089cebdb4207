"""Stands between Remora and a server's program: passes its lines on, and ends it when it floods.

Runs as a script of its own, with nothing but the standard library: `python -I relay.py PROGRAM ARGUMENT...`. The
program reads our standard input itself. Its output is passed on line by line, so that no overlong line, no endless
chatter and no heap of values reaches the process that has everybody's memory. An answer that is too large is skipped,
and an error stands in its place. `session` holds servers at an address to the same bounds.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":  # a script knows no packages beside it
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agents.json_values import MOST_VALUES, values

#: The longest message, in bytes. A picture of more than 2.9 MB is longer, since it comes as base64.
LONGEST = 4_000_000
#: The messages, bytes and values that may come at once, and how many of them become free again in a second.
#: Messages are passed on no faster than they are read, so a flood shows only in the long run.
MESSAGES = (2_000, 100)
BYTES = (16_000_000, 1_000_000)
VALUES = (5 * MOST_VALUES, 20_000)
#: The part of its bytes that a message which is skipped counts for: some pictures in a row are no flood.
SKIPPED = 0.1
FLOODED = 75
#: The code of the error in place of an answer that is not read: one of those that the protocol leaves to programs.
UNREAD = -32019
#: The code for an error in place of another error, which says nothing of what was done.
_FAILED = -32603
#: What is passed on for a line that is not read and answers nothing. The SDK can't read it either, so it is counted.
_NOISE = b"?\n"
#: Bytes at both ends of a message, where its id is looked for.
_EDGE = 500
_PIECE = 65_536
_KIND = re.compile(rb'"(result|error|method)"\s*:')
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,20}|"[^"\\]{1,200}")')
_ID_AT_END = re.compile(_ID.pattern + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Allowance:
    """An amount that may be taken at once, and that becomes free again with time."""

    def __init__(self, most: float, a_second: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._a_second = a_second
        self._monotonic = monotonic
        self._taken = 0.0
        self._at = monotonic()

    def take(self, amount: float) -> bool:
        now = self._monotonic()
        self._taken = max(0.0, self._taken - (now - self._at) * self._a_second) + amount
        self._at = now
        return self._taken <= self._most


def kind_and_id(message: bytes, end: bytes = b"") -> tuple[bytes, bytes]:
    """Returns a message's kind (result, error or method) and its id as JSON; b"" for what is not found."""
    kind = _KIND.search(message[:_EDGE])
    if kind is None:
        return b"", b""
    found = _ID.search(message, 0, kind.start()) or _ID_AT_END.search(end or message[-_EDGE:])
    return kind[1], b"" if found is None else found[1]


def refusal(answer: bytes, why: str, *, end: bytes = b"") -> bytes:
    """Returns the error in place of an answer that is not read; b"" for a message that is no answer."""
    kind, asked = kind_and_id(answer, end)
    return error(asked, why, UNREAD if kind == b"result" else _FAILED) if asked and kind != b"method" else b""


def error(asked: bytes, why: str, code: int = UNREAD) -> bytes:
    told = json.dumps({"code": code, "message": why}).encode()
    return b'{"jsonrpc": "2.0", "id": %b, "error": %b}\n' % (asked, told)


def too_many(count: int) -> str:
    return f"its answer has too many values: {count:,}, at most {MOST_VALUES:,}"


def too_large(size: int | None) -> str:
    """Returns why an answer of so many bytes is not read; None if nobody knows how many."""
    much = "more than is read" if size is None else f"{math.ceil(size / 100_000) / 10:g} MB"
    return f"its answer is too large: {much}, at most {LONGEST // 1_000_000} MB"


def main(command: list[str]) -> int:
    program = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 (the operator names the program)
    assert program.stdout is not None
    messages, size, heap = Allowance(*MESSAGES), Allowance(*BYTES), Allowance(*VALUES)
    while line := program.stdout.readline(LONGEST + 1):
        length, end, count = len(line), line[-_EDGE:], 0
        if length <= LONGEST:
            count = values(line)
            borne = messages.take(1) and size.take(length) and heap.take(count if count <= MOST_VALUES else 0)
        else:
            borne = messages.take(1) and size.take(length * SKIPPED)
            while borne and not end.endswith(b"\n") and (more := program.stdout.readline(_PIECE)):
                length, end = length + len(more), (end + more)[-_EDGE:]
                borne = size.take(len(more) * SKIPPED)
        if not borne:
            program.kill()
            return FLOODED
        if length > LONGEST or count > MOST_VALUES:
            line = refusal(line, too_many(count) if count else too_large(length), end=end) or _NOISE
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
