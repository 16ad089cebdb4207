"""Measures what a start of the program costs: seconds, and resident memory then and after some turns.

Run `python -m bench.footprint [--json] [--runs N] [--serve [--models]]` on Linux. Each run starts `remora chat` at a
pseudo-terminal on a new store, waits for the prompt, says a few things, and reads the process's own figures from /proc.
With `--serve` it starts `remora serve` for a Telegram on loopback until its health is green, then has a message
answered; with `--models` both embedding models are loaded by then.
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
from pathlib import Path

from gateway.ops import health
from tests.platforms.telegram import running

ROOT = Path(__file__).parents[1]
_PROMPT = b"you>"
_SAYINGS = ("I'm Ada and I live in Lisbon", "where do I live?", "/memory")
_PATIENCE = 60.0
_TOKEN = "123456789:" + "Aa0_-" * 7
#: Seconds after which both models are loaded; they begin shortly after the start.
_LOADING = 20.0


def one_run(folder: Path) -> tuple[float, float, float]:
    """(seconds to the prompt, MB resident there, MB resident after the sayings)."""
    config = folder / "config.yaml"
    config.write_text("agents_dir: agents\n", "utf-8")
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    environment.pop("OPENAI_API_KEY", None)
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "chat", "--config", str(config)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        cwd=folder,
        close_fds=True,
    )
    os.close(follower)
    _read_until_prompt(leader)
    seconds = time.perf_counter() - start
    at_prompt = _resident_mb(process.pid)
    for saying in _SAYINGS:
        os.write(leader, saying.encode() + b"\r")
        _read_until_prompt(leader)
    after = _resident_mb(process.pid)
    os.write(leader, b"\x04")
    _drain(leader)
    process.wait(_PATIENCE)
    os.close(leader)
    return seconds, at_prompt, after


async def one_serve(folder: Path, *, models: bool) -> dict[str, float]:
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
            *(sys.executable, "-m", "gateway", "serve", "--config", str(config)),
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "*"},
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
            return {**figures, "resident_mb_after_turns": _resident_mb(process.pid)}
        finally:
            process.terminate()
            await process.wait()


def _processor_seconds(pid: int) -> float:
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
    children = [
        each for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()
    ]
    return _own_mb(pid) + sum(_resident_mb(int(child)) for child in children)


def _own_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("/proc tells no VmRSS: run this on Linux")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--serve", action="store_true", help="start `remora serve` with a bot instead")
    parser.add_argument("--models", action="store_true", help="with both embedding models")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    figures = _served(wanted.runs, models=wanted.models) if wanted.serve else _chats(wanted.runs)
    if wanted.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:>26} {value:g}")


def _served(runs: int, *, models: bool) -> dict[str, float]:
    """Returns the medians of so many runs."""
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(asyncio.run(one_serve(Path(folder), models=models)))
    return {"runs": runs, **{name: round(statistics.median(one[name] for one in found), 2) for name in found[0]}}


def _chats(runs_wanted: int) -> dict[str, float]:
    runs = []
    for _ in range(runs_wanted):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(one_run(Path(folder)))
    seconds, at_prompt, after = zip(*runs, strict=True)
    return {
        "runs": runs_wanted,
        "start_seconds_min": round(min(seconds), 2),
        "start_seconds_median": round(statistics.median(seconds), 2),
        "start_seconds_max": round(max(seconds), 2),
        "resident_mb_at_prompt": round(statistics.median(at_prompt), 1),
        "resident_mb_after_turns": round(statistics.median(after), 1),
    }


if __name__ == "__main__":
    main()
