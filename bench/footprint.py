"""Measures what a start of the program costs: seconds, those of the processor, and resident memory.

Run `python -m bench.footprint [--help-only | --serve [--models]] [--runs N] [--against FOLDER] [--json]` on Linux. Each
run starts `remora chat` at a pseudo-terminal on a new store, waits for the prompt, says a few things, and reads the
process's own figures from /proc. With `--help-only` it prints the help of the program and of each of its commands
instead. With `--serve` it starts `remora serve` for a Telegram on loopback until its health is green, then has a
message answered; with `--models` both embedding models are loaded by then. With `--against` another checkout is
measured in turns with this one, so that whatever else the machine does falls on both. All figures are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from gateway.__main__ import main as remora
from gateway.ops import health
from tests.platforms.telegram import running

ROOT = Path(__file__).parents[1]
_PROMPT = b"you>"
_SAYINGS = ("I'm Ada and I live in Lisbon", "where do I live?", "/memory")
_PATIENCE = 60.0
_TOKEN = "123456789:" + "Aa0_-" * 7
#: Seconds after which both models are loaded; they begin shortly after the start.
_LOADING = 20.0
#: The program as people have it: developers' tools bring rich, which structlog loads wherever it finds it.
_START = "import sys; sys.modules['rich'] = None; from gateway.__main__ import main; main()"


def one_help(root: Path, folder: Path) -> dict[str, float]:
    """Prints the help of each command. Gives the seconds of the processor that each took."""
    figures = {}
    for names in ((), *_commands(remora)):
        process = subprocess.Popen(
            [*_program(), *names, "--help"], stdout=subprocess.DEVNULL, env=_environment(root), cwd=folder
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"remora {' '.join(names)} --help failed")
        figures[" ".join((*names, "--help"))] = used.ru_utime + used.ru_stime
    return figures


def one_chat(root: Path, folder: Path) -> dict[str, float]:
    """Chats once. Gives seconds by the clock and of the processor until the prompt, and MB resident."""
    config = folder / "config.yaml"
    config.write_text("data_dir: data\n", "utf-8")
    leader, follower = pty.openpty()
    environment = {**_environment(root), "TERM": "xterm"}
    environment.pop("OPENAI_API_KEY", None)
    start = time.perf_counter()
    process = subprocess.Popen(
        [*_program(), "chat", "--config", str(config)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        cwd=folder,
        close_fds=True,
    )
    os.close(follower)
    _read_until_prompt(leader)
    figures = {
        "start_seconds": time.perf_counter() - start,
        "start_processor_seconds": _processor_seconds(process.pid),
        "resident_mb_at_prompt": _resident_mb(process.pid),
    }
    for saying in _SAYINGS:
        os.write(leader, saying.encode() + b"\r")
        _read_until_prompt(leader)
    figures["resident_mb_after_turns"] = _resident_mb(process.pid)
    os.write(leader, b"\x04")
    _drain(leader)
    process.wait(_PATIENCE)
    os.close(leader)
    return figures


async def one_serve(root: Path, folder: Path, *, models: bool) -> dict[str, float]:
    """Serves once. Gives seconds by the clock and of the processor until health is green, and MB resident."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with running(token=_TOKEN) as telegram:
        config = folder / "config.yaml"
        embedding = "" if models else "embedding: {provider: none}\n"
        config.write_text(
            f"{embedding}http: {{port: {port}}}\n"
            f"channels: {{telegram: [{{token: '{_TOKEN}', base_url: '{telegram.url}', allow: [7]}}]}}\n"
        )
        start = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(*_program(), "serve", "--config", str(config)),
            env={**_environment(root), "NO_PROXY": "*"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while (page := health.ask("127.0.0.1", port)) is None or page["status"] != "green":
                if process.returncode is not None or time.perf_counter() - start > _PATIENCE:
                    raise SystemExit(f"remora serve is not green: {page}")
                await asyncio.sleep(0.02)
            figures = {
                "start_seconds": time.perf_counter() - start,
                "start_processor_seconds": _processor_seconds(process.pid),
                "resident_mb_at_start": _resident_mb(process.pid),
            }
            await asyncio.sleep(_LOADING if models else 0)
            await telegram.say("I live in Lisbon", user=7)
            await telegram.wait(bot_messages=1, chat=7)
            return {**figures, "resident_mb_after_turns": _resident_mb(process.pid), **_shares(process.pid)}
        finally:
            process.terminate()
            await process.wait()


def _program() -> tuple[str, ...]:
    return sys.executable, "-c", _START


def _environment(root: Path) -> dict[str, str]:
    # An installed program is compiled once, not at each start.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(root)}


def _commands(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    """Yields the names by which each command is called, those of its groups before its own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*before, name)
        if isinstance(command, click.Group):
            yield from _commands(command, *before, name)


def _processor_seconds(pid: int) -> float:
    """Returns what the process has used so far, without those it started."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_until_prompt(leader: int) -> None:
    """Read what the program shows until it asks again. Its echo of a typed line holds no prompt of its own."""
    seen = b""
    until = time.monotonic() + _PATIENCE
    while _PROMPT not in seen:
        if time.monotonic() > until:
            raise SystemExit(f"no prompt within {_PATIENCE:g} s; shown so far: {seen[-500:]!r}")
        seen += os.read(leader, 65_536)
        # The terminal is asked where its cursor is, and has to answer.
        if b"\x1b[6n" in seen:
            os.write(leader, b"\x1b[1;1R")
            seen = seen.replace(b"\x1b[6n", b"")


def _drain(leader: int) -> None:
    try:
        while os.read(leader, 65_536):
            pass
    except OSError:
        return  # the program has closed its side


def _resident_mb(pid: int) -> float:
    """Returns what a process holds with those it started, such as that of the embedding models."""
    return _own_mb(pid) + sum(map(_resident_mb, _children(pid)))


def _shares(pid: int) -> dict[str, float]:
    """Returns what each process holds by itself, by its place among those started."""
    return {f"resident_mb_child_{place}": _resident_mb(child) for place, child in enumerate(_children(pid))}


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _own_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("/proc tells no VmRSS: run this on Linux")


def _medians(
    runs: int, roots: Mapping[str, Path], run: Callable[[Path, Path], dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Runs each checkout so many times, in turns. Returns the medians of each figure by the checkouts' names."""
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in roots}
    for _ in range(runs):
        for name, root in roots.items():
            with tempfile.TemporaryDirectory() as folder:
                figures[name].append(run(root, Path(folder)))
    return {
        name: {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}
        for name, rows in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--help-only", action="store_true", help="print the help of each command instead")
    parser.add_argument("--serve", action="store_true", help="start `remora serve` with a bot instead")
    parser.add_argument("--models", action="store_true", help="with both embedding models")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout, measured in turns")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()

    def run(root: Path, folder: Path) -> dict[str, float]:
        if wanted.serve:
            return asyncio.run(one_serve(root, folder, models=wanted.models))
        return (one_help if wanted.help_only else one_chat)(root, folder)

    roots = {"here": ROOT, **({"there": wanted.against.resolve()} if wanted.against else {})}
    medians = _medians(wanted.runs, roots, run)
    if wanted.json:
        print(json.dumps({"runs": wanted.runs, **medians}))
        return
    print(f"{'':>26} " + " ".join(f"{name:>8}" for name in medians))
    for key in medians["here"]:
        print(f"{key:>26} " + " ".join(f"{figures.get(key, 0):>8g}" for figures in medians.values()))


if __name__ == "__main__":
    main()
