"""What a terminal chat costs to start: seconds to the first prompt and resident memory there, and after some turns.

Run `python -m bench.footprint [--json] [--runs N]` on Linux. Each run starts the program at a pseudo-terminal on a new
store, waits for the prompt, says a few things, and reads the process's own figures from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PROMPT = b"you>"
_SAYINGS = ("I'm Ada and I live in Lisbon", "where do I live?", "/memory")
_PATIENCE = 60.0


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
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("/proc tells no VmRSS: run this on Linux")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    runs = []
    for _ in range(wanted.runs):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(one_run(Path(folder)))
    seconds, at_prompt, after = zip(*runs, strict=True)
    figures = {
        "runs": wanted.runs,
        "start_seconds_min": round(min(seconds), 2),
        "start_seconds_median": round(statistics.median(seconds), 2),
        "start_seconds_max": round(max(seconds), 2),
        "resident_mb_at_prompt": round(statistics.median(at_prompt), 1),
        "resident_mb_after_turns": round(statistics.median(after), 1),
    }
    if wanted.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:>26} {value:g}")


if __name__ == "__main__":
    main()
