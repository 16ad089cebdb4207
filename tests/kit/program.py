"""The program as its users start it, run to its end: each time a process of its own, forked from one that has imported it.

To import the program and to compile its patterns takes longer than most of its commands. A process of each test run does
both once, and forks for each command. Tests of the start itself begin with a new interpreter.

    python -m tests.kit.program SOCKET       a request on each connection: the arguments, folder and variables as JSON,
                                             with the three standard streams; the answer is the exit status

Invariants: nothing but what is imported is shared. A program whose caller has gone away is killed.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from agents.offline.speech import speech
from gateway import __main__ as program
from gateway.commands import plain
from memory.text.secrets.redact import redact
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.times.spans import days_named
from tests.kit import stalls
from tests.kit.patience import SECONDS

ROOT = Path(__file__).parents[2]


def ran(
    *arguments: str, folder: Path, env: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Runs `remora` with these arguments, in a folder and with variables of its own, until it ends by itself."""
    with (
        tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors,
        socket.socket(socket.AF_UNIX) as line,
    ):  # fmt: skip
        given.write(stdin)
        given.seek(0)
        line.settimeout(SECONDS)
        line.connect(str(_launcher()))
        mask = os.umask(0)
        os.umask(mask)
        request = json.dumps({"arguments": arguments, "folder": str(folder), "env": dict(env), "umask": mask}).encode()
        streams = [stream.fileno() for stream in (given, out, errors)]
        socket.send_fds(line, [len(request).to_bytes(4)], streams)
        line.sendall(request)
        told = line.recv(4)
        assert len(told) == 4, "the process that forks has ended"
        status = int.from_bytes(told, signed=True)
        for stream in (out, errors):
            stream.seek(0)
        done = subprocess.CompletedProcess(arguments, status, out.read(), errors.read())
    stalls.check_log(done.stderr.decode(errors="replace"))
    return done


@cache
def _launcher() -> Path:
    """Starts the process that forks, for as long as this one lives. Returns its socket."""
    folder = Path(tempfile.mkdtemp(prefix="remora-program-"))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.program", folder / "socket"], cwd=ROOT, stdout=subprocess.PIPE
    )

    def end() -> None:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    assert process.stdout is not None
    with process.stdout as ready:
        assert ready.readline() == b"ready\n"
    return folder / "socket"


def main(path: str) -> None:
    """Forks a process for each connection."""
    _warm_up()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        os.write(1, b"ready\n")
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            line.close()
    if (request := _minded(line)) is not None:
        _become(request)
        program.main(request["arguments"], prog_name="remora")


def _warm_up() -> None:
    """Imports what commands import, and has the patterns compiled that nearly every message needs."""
    for name in ("gateway.app", "gateway.ops.http", "channels.telegram", "channels.discord"):
        import_module(name)
    redact("my door code is 3391")
    plain.requested("forget the door code", modelless=True)
    for language in ("en", "zh"):
        speech(language, simplified, parts)
        days_named("tomorrow", language=language, now=datetime.now(UTC))


def _minded(line: socket.socket) -> dict[str, Any] | None:
    """Forks the program and returns its request in it. In the parent, tells its exit status, then returns None."""
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as lines:
        request: dict[str, Any] = json.loads(lines.read(int.from_bytes(size)))
    process = os.fork()
    if process == 0:
        line.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request
    here = os.pidfd_open(process)
    ended, _, _ = select.select([here, line.fileno()], [], [])
    if here not in ended:
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    line.sendall(status.to_bytes(4, signed=True))
    return None


def _become(request: Mapping[str, Any]) -> None:
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])


if __name__ == "__main__":
    main(sys.argv[1])
