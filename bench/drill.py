"""A drill: the machine is lost, and the bot comes back on another one. How long that takes, and what is gone.

Run `python -m bench.drill [--messages 20000]`. Everything is done by the commands that an operator types: a store is
filled, backed up and copied elsewhere with its list of what was forgotten (the key apart from it), more is said and
something is forgotten, and the folder is deleted. Then the copies are put into an empty folder and restored. Prints
JSON; exit code 1 if more is lost than what was said after the backup, or if something forgotten is back.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_CONFIG: Final = "data_dir: data\nembedding: {provider: none}\n"


class Machine:
    """A machine with a configuration in its folder; `run` types a command there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "config.yaml").write_text(_CONFIG)

    def run(self, *command: str, typed: str = "", module: str = "gateway") -> str:
        """Runs a command of Remora's and returns its output. Raises `RuntimeError` if it fails."""
        done = subprocess.run(
            [sys.executable, "-m", module, *command, "--config", str(self.folder / "config.yaml")],
            input=typed, capture_output=True, text=True, cwd=self.folder, check=False,
            env={**os.environ, "HOME": str(self.folder), "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        if done.returncode and command[0] != "doctor":
            raise RuntimeError(f"{command}: {done.stderr or done.stdout}")
        return done.stdout

    def chat(self, *lines: str) -> str:
        return self.run("chat", "--as", "ada", typed="".join(f"{line}\n" for line in lines))


def drill(folder: Path, messages: int, machine: type[Machine] = Machine) -> dict[str, object]:
    """Returns the figures of one drill in an empty folder, with machines of a kind."""
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        seconds[what] = round(time.monotonic() - began, 1)

    first, elsewhere = machine(folder / "first"), folder / "elsewhere"
    recording = folder / "talk.jsonl"
    recording.write_text("\n".join(_said(n) for n in range(messages)))
    first.run(str(recording), "--record-only", module="bench.replay")
    first.chat("I live in Lisbon", "I like jazz")
    with timed("backup"):
        first.run("backup")
    with timed("copy"):
        shutil.copytree(first.folder / "data" / "backups", elsewhere)
    first.chat("I am allergic to nuts", "forget that I like jazz", "yes")
    # The list of what was forgotten is copied more often than the backups, because it is small; the key is copied once.
    shutil.copy(first.folder / "data" / "remora.db.erased", elsewhere)
    key = (first.folder / "data" / "remora.db.key").read_bytes()
    shutil.rmtree(first.folder)

    with timed("new machine"):
        second = machine(folder / "second")
        (second.folder / "data").mkdir()
        (second.folder / "data" / "remora.db.key").write_bytes(key)
        shutil.copy(elsewhere / "remora.db.erased", second.folder / "data")
        (copied,) = elsewhere.glob("remora-*.db")
    with timed("restore"):
        second.run("restore", str(copied), "--store", "remora.db")
    with timed("doctor"):
        examined = json.loads(second.run("doctor", "--json"))
    with timed("first answer"):
        told = second.chat("where do I live?", "what am I allergic to?", "what do I like?")
    return {
        "messages": messages,
        "backup_mb": round(copied.stat().st_size / 1e6, 1),
        "seconds": seconds,
        "minutes_until_it_answers": round(sum(seconds[one] for one in _AFTER) / 60, 2),
        "doctor": examined["status"],
        "kept": "Lisbon" in told,
        "lost_said_after_the_backup": "nuts" not in told,
        "forgotten_after_the_backup_is_back": "jazz" in told,
    }


#: The steps after the loss.
_AFTER: Final = ("new machine", "restore", "doctor", "first answer")


def _said(n: int) -> str:
    """One line of a recording of many people in private."""
    return json.dumps(
        {
            "id": n, "time": 1_790_000_000_000 + n * 60_000, "chat": n % 100, "author_id": n % 100,
            "author_name": f"Person {n % 100}", "text": f"I saw boat number {n} in the harbour of Porto today.",
        }
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000, help="messages in the store that is lost")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = drill(Path(folder), wanted.messages)
    print(json.dumps(figures, indent=1))
    sys.exit(0 if figures["kept"] and not figures["forgotten_after_the_backup_is_back"] else 1)


if __name__ == "__main__":
    main()
