"""Files and folders that `remora import` is given, on a home of its own, since the bot's store has one writer."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.hostile.inputs import Deed, enter_all
from bench.hostile.people import passwords
from bench.hostile.world import World
from tests.kit.served import environment

#: Seconds that an import may take.
_MOST: Final = 35.0
_OWNER: Final = ("--person", "telegram:7")


async def _imported(world: World, make: Callable[[Path], Path]) -> None:
    """Imports what `make` puts into a folder, as an operator does who trusts whoever gave it."""
    home = world.folder.parent / f"{world.folder.name}-import"
    if not home.exists():
        home.mkdir()
        await world.remora("init", str(home), "--model", "none", "--yes")
        await asyncio.to_thread(_run, home, _note(home / "first", "- I like tea"))
    folder = home / f"given{time.monotonic_ns()}"
    folder.mkdir()
    code, printed, most, seconds = await asyncio.to_thread(_run, home, make(folder))
    world.own_figures["import_seconds"] = round(seconds, 2)
    world.own_figures["import_mb"] = round(most / 1e6, 1)
    world.notes.append(f"exit {code}: {printed.strip().splitlines()[-1][:100] if printed.strip() else 'nothing said'}")
    if code is None or "Traceback" in printed or code not in (0, 64, 65, 66, 2, 1):
        world.statuses.append(599)
    if outside := [str(path) for path in home.parent.glob("escaped*")]:
        world.notes.append(f"written outside: {outside}")
        world.statuses.append(599)


def _run(home: Path, what: Path) -> tuple[int | None, str, int, float]:
    """Returns exit code (None: it took too long), output, the most bytes of memory, and seconds."""
    began, most = time.monotonic(), 0
    with (home / "printed").open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "import", str(what), *_OWNER, "--yes", "--config", str(home / "config.yaml")],
            stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment(home), cwd=home,
        )  # fmt: skip
        while process.poll() is None:
            with suppress(OSError):
                peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text("ascii"))
                most = max(most, int(peak[1]) * 1024 if peak else 0)
            if time.monotonic() - began > _MOST:
                process.kill()
                process.wait()
                return None, "killed: it took too long", most, time.monotonic() - began
            time.sleep(0.02)
    return process.returncode, (home / "printed").read_text("utf-8", "replace"), most, time.monotonic() - began


def _note(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "MEMORY.md").write_text(text, "utf-8")
    return folder


def _file(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _zipped(*members: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return packed.getvalue()


def _tarred(name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    return packed.getvalue()


def _linked(folder: Path) -> Path:
    (folder / "MEMORY.md").symlink_to("/etc/passwd")
    (folder / "memory").symlink_to("/etc")
    (folder / "memories").symlink_to(folder)
    return folder


def _piped(folder: Path) -> Path:
    os.mkfifo(folder / "MEMORY.md")
    return folder


def _device(folder: Path) -> Path:
    (folder / "MEMORY.md").symlink_to("/dev/zero")
    return folder


def _pipe_alone(folder: Path) -> Path:
    os.mkfifo(folder / "result.json")
    return folder / "result.json"


def _deep(folder: Path) -> Path:
    at = folder
    for _ in range(200):
        at = at / "memory"
        at.mkdir()
    _note(at, "- I like tea")
    return folder


def _many(folder: Path) -> Path:
    (folder / "memory").mkdir()
    for n in range(8_000):
        (folder / "memory" / f"{n}.md").write_bytes(b"- I like tea\n")
    return folder


def _odd_name(folder: Path) -> Path:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.md"))).write_bytes(b"- I like tea")
    return folder


def _export(*messages: object, **more: object) -> bytes:
    return json.dumps({"name": "x", "type": "personal_chat", "id": 7, "messages": messages, **more}).encode()


def _message(n: int, text: object, **more: object) -> dict[str, object]:
    return {
        "id": n,
        "type": "message",
        "date": "2026-01-01T10:00:00",
        "from": "A",
        "from_id": "user7",
        "text": text,
        **more,
    }


def _ours(**more: object) -> bytes:
    return json.dumps({"format": "remora", "version": 1, **more}).encode()


_ZERO: Final = b"\0" * 50_000_000

_GIVEN: Final[dict[str, Callable[[Path], Path]]] = {
    "a zip that unpacks to 500 MB": _file("a.zip", _zipped(*((f"{n}.md", _ZERO) for n in range(10)))),
    "a zip within a zip, as result.json": _file("result.json", _zipped(("a.zip", _zipped(("a.zip", b"x"))))),
    "a zip whose names lead outside": _file("a.zip", _zipped(("../../escaped.md", b"x"), ("/tmp/escaped.md", b"x"))),
    "a tar whose name leads outside, as a note": _file("MEMORY.md", _tarred("../../escaped")),
    "gzip under the name of a note": _file("MEMORY.md", gzip.compress(_ZERO)),
    "links to files of the machine": _linked,
    "a pipe in place of a note": _piped,
    "a device in place of a note": _device,
    "a pipe in place of an export": _pipe_alone,
    "200 folders in each other": _deep,
    "8,000 notes": _many,
    "JSON of 2,000,000 levels": _file("result.json", b"[" * 2_000_000),
    "JSON with a number of 9,000,000 digits": _file("result.json", b'{"id":' + b"9" * 9_000_000 + b"}"),
    "an export of 5,000 messages of passwords": _file(
        "result.json", _export(*(_message(n, f"pw: Zq{n}x!{n * 7919}") for n in range(5_000)))
    ),
    "an export with a message of 30 MB": _file("result.json", _export(_message(1, passwords(1_500_000)[:30_000_000]))),
    "an export with parts of the wrong types": _file(
        "result.json",
        _export(5, None, [], {}, _message(-1, 5), _message(2, [5, {"type": 5, "text": 5}]), _message(3, "x", date=5),
                _message(4, "x", date="9999-99-99"), _message(5, "x", from_id=5), _message(10**40, "x", date="0001-01-01T00:00:00")),
    ),
    "our own export with parts of the wrong types": _file("remora.json", _ours(memories=5, messages=[5, None], owner=[])),
    "our own export with dates that do not exist": _file(
        "remora.json", _ours(memories=[{"id": "m_aaaaaa", "kind": "fact", "value": "x", "created": "9999-99-99", "valid_from": "x"}])
    ),
    "a note of 30,000 lines": _file("MEMORY.md", b"- I like tea\n" * 30_000),
    "a note of one line of 20 MB": _file("MEMORY.md", b"- " + b"a" * 20_000_000),
    "a note of brackets": _file("MEMORY.md", b"- " + b"![a](" * 400_000),
    "a note nested in lists": _file("MEMORY.md", b"".join(b" " * n + b"- a\n" for n in range(3_000))),
    "a name of 250 strange letters": _file("\u202e" * 80 + ".md", b"- I like tea"),
    "a name that is no text": _odd_name,
    "bytes that are no text": _file("MEMORY.md", os.urandom(1_000_000)),
}  # fmt: skip


def _deed(make: Callable[[Path], Path]) -> Deed:
    return lambda world: _imported(world, make)


enter_all("imported file", {name: _deed(make) for name, make in _GIVEN.items()})
