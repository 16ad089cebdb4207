"""Asks `/readyz` all the time and looks at a process's memory, from a process of its own.

Run `python -m bench.hostile.watch PORT`. Lines on standard input: `begin PID`, `end`. Each `end` is answered with one
line of JSON. The questions come one after the other, 20 ms apart, so that they take one connection at a time.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

#: Seconds between two questions, and the most seconds that one waits for its answer.
EVERY, PATIENCE = 0.02, 20.0
_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PAGE, _TICKS = os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK")
#: Between two looks at the children are so many questions.
_CHILDREN_EVERY = 10


class Watched:
    """The figures of one input, seconds and bytes."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.asked = 0
        self.unanswered = 0
        self.longest = 0.0
        #: By how much the machine woke this process too late at the worst, to judge the other figures by.
        self.late = 0.0
        self.before = self.most = resident(pid)
        self.children_before = self.children_most = sum(map(resident, children(pid)))
        self.processor = processor(pid)
        self._waiting: float | None = None

    def ask(self, port: int) -> None:
        self.asked += 1
        began = time.monotonic()
        if self._waiting is None:
            self._waiting = began
        if answered(port):
            self.longest = max(self.longest, time.monotonic() - self._waiting)
            self._waiting = None
        else:
            self.unanswered += 1
        self.most = max(self.most, resident(self.pid))
        if self.asked % _CHILDREN_EVERY == 0:
            self.children_most = max(self.children_most, sum(map(resident, children(self.pid))))

    def rest(self) -> None:
        began = time.monotonic()
        time.sleep(EVERY)
        self.late = max(self.late, time.monotonic() - began - EVERY)

    def told(self) -> dict[str, float | int]:
        if self._waiting is not None:
            self.longest = max(self.longest, time.monotonic() - self._waiting)
        return {
            "readyz_seconds": round(self.longest, 3),
            "readyz_asked": self.asked,
            "readyz_unanswered": self.unanswered,
            "late_seconds": round(self.late, 3),
            "grown_mb": round((self.most - self.before) / 1e6, 1),
            "children_grown_mb": round((self.children_most - self.children_before) / 1e6, 1),
            "processor_seconds": round(processor(self.pid) - self.processor, 2),
        }


def answered(port: int) -> bool:
    """Returns whether `/readyz` says that the bot is ready."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.settimeout(PATIENCE)
        line.sendall(_REQUEST)
        return line.recv(64).startswith(b"HTTP/1.1 200")
    return False


def resident(pid: int) -> int:
    """Returns the bytes of memory that a process holds; 0 when it has gone."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE
    return 0


def children(pid: int) -> list[int]:
    """Returns the processes that a process has started, and theirs."""
    found: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                for child in map(int, file.read_text("ascii").split()):
                    found += [child, *children(child)]
    return found


def processor(pid: int) -> float:
    """Returns the seconds of processor time that a process has taken."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def main(port: int) -> None:
    watched: Watched | None = None
    while True:
        readable, _, _ = select.select([sys.stdin], [], [], 0 if watched else None)
        if readable:
            line = sys.stdin.readline()
            if not line:
                return
            if line.startswith("begin "):
                watched = Watched(int(line.split()[1]))
            elif watched is not None:
                watched.ask(port)
                sys.stdout.write(json.dumps(watched.told()) + "\n")
                sys.stdout.flush()
                watched = None
        if watched is not None:
            watched.ask(port)
            watched.rest()


if __name__ == "__main__":
    main(int(sys.argv[1]))
