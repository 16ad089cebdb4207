"""Stands between Remora and a server's program: passes its lines on, and ends it when it floods.

Runs as a script of its own, with nothing but the standard library: `python -I relay.py PROGRAM ARGUMENT...`. The
program reads our standard input itself. Its output is passed on line by line, so that no overlong line and no endless
chatter reaches the process that has everybody's memory.
"""

from __future__ import annotations

import subprocess
import sys
import time

#: The longest line; the lines and bytes that may come at once, and how many of them become free again in a second.
#: Lines are passed on no faster than they are read, so a flood shows only in the long run.
LONGEST_LINE = 4_000_000
MOST_LINES, LINES_A_SECOND = 2_000, 100
MOST_BYTES, BYTES_A_SECOND = 16_000_000, 1_000_000
FLOODED = 75


def main(command: list[str]) -> int:
    program = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 (the operator names the program)
    assert program.stdout is not None
    at, lines, size = time.monotonic(), 0.0, 0.0
    while line := program.stdout.readline(LONGEST_LINE + 1):
        now = time.monotonic()
        lines = max(0.0, lines - (now - at) * LINES_A_SECOND) + 1
        size = max(0.0, size - (now - at) * BYTES_A_SECOND) + len(line)
        at = now
        if len(line) > LONGEST_LINE or lines > MOST_LINES or size > MOST_BYTES:
            program.kill()
            return FLOODED
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
