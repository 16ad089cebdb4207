"""Builds the image and lives in it: a chat, a kill, an update and a restore, over one volume.

    python -m bench.container [--folder FOLDER] [--keep]

The base is made by debootstrap in place of the public Python image, which not every machine can fetch, and buildah
builds and runs without a daemon. Needs root, buildah and debootstrap (all from Debian). Prints one line of JSON: the
seconds of each step, and the image's size in bytes. A step that does not do what it should ends the run with its
output.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASE = "localhost/remora-base"
IMAGE = "localhost/remora"
#: The user of the image.
USER = 10001
_HOME = "/home/remora/.config/remora"
#: Settings of this machine's pip and its certificates, which a build behind a proxy needs.
_PIP = [path for path in (Path("/etc/pip.conf"), Path("/etc/ssl/certs")) if path.exists()]


class Failed(Exception):
    """Raised when a step does not do what it should; `str()` is its output."""


class Machine:
    """Images, containers and the volume, all below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.volume = folder / "volume"

    def buildah(self, *arguments: str | Path) -> str:
        places = ("--storage-driver", "vfs", "--root", self.folder / "images", "--runroot", self.folder / "run")
        return run("buildah", *places, *arguments)

    def has(self, image: str) -> bool:
        return image in self.buildah("images", "--format", "{{.Name}}").split()

    def make_base(self) -> None:
        """Makes the image that the build starts from, unless there is one."""
        if self.has(BASE):
            return
        tree = self.folder / "base"
        run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm", tree)
        made = self.buildah("from", "scratch").strip()
        self.buildah("copy", made, tree, "/")
        self.buildah("commit", "--rm", made, BASE)
        shutil.rmtree(tree)

    def build(self) -> None:
        volumes = [option for path in _PIP for option in ("--volume", f"{path}:{path}:ro")]
        self.buildah(
            "build", "--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={BASE}", *volumes,
            "--tag", IMAGE, ROOT,
        )  # fmt: skip

    def size(self) -> int:
        """Returns the bytes of the image's files."""
        made = self.buildah("from", IMAGE).strip()
        try:
            tree = Path(self.buildah("mount", made).strip())
            return sum(path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
        finally:
            self.buildah("rm", made)

    def run(self, script: str) -> str:
        """Runs a shell script as the image's user, in a new container over the volume; returns what it prints."""
        made = self.buildah("from", IMAGE).strip()
        try:
            mount = f"{self.volume}:{_HOME}"
            return self.buildah(
                "run", "--isolation", "chroot", "--user", "remora", "--volume", mount, made, "--", "sh", "-ec", script
            )
        finally:
            self.buildah("rm", made)

    def chat(self, *lines: str) -> str:
        text = "\\n".join(lines)
        return self.run(f"printf '{text}\\n' | remora chat")


def run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(said: str, *wanted: str) -> None:
    """Raises `Failed` unless all of `wanted` stands in what was said."""
    if missing := [one for one in wanted if one not in said]:
        raise Failed(f"{missing} is missing in:\n{said}")


def start(machine: Machine) -> None:
    """An image without tools to build with, a person's first chat, and a home that `init` may write."""
    said = machine.run("! command -v pip gcc make; id -u; python3 -c 'import hatchling' 2>&1 || true")
    expect(said, str(USER), "No module named 'hatchling'")
    expect(machine.chat("I live in Porto.", "Where do I live?"), "You live in Porto; you told me today.")
    machine.run("remora init --model none --yes && remora check")
    modes = {path.stat().st_mode & 0o077 for path in (machine.volume / "data").iterdir()}
    if modes != {0}:
        raise Failed(f"files in the volume are open to others: {modes}")


def kill(machine: Machine) -> None:
    """Kills a chat with SIGKILL; the words said before are there in the next."""
    told = "(printf 'I like sourdough.\\n'; sleep 20) | remora chat > said & chat=$!"
    wait = "for _ in $(seq 100); do grep -q Noted said && break; sleep 0.2; done; kill -9 $chat; rm said"
    machine.run(f"{told}; {wait}")
    expect(machine.chat("What do I like?"), "You like sourdough")


def update(machine: Machine) -> None:
    """A container of a newly built image goes on with the volume."""
    machine.build()
    expect(machine.chat("Where do I live?"), "You live in Porto")


def restore(machine: Machine) -> None:
    """A backup that was made inside comes back, and what was told after it is gone."""
    machine.run("remora backup")
    machine.chat("I have a parrot.")
    machine.run("remora restore data/backups/remora-*.db")
    said = machine.chat("/memory list")
    expect(said, "Porto")
    if "parrot" in said:
        raise Failed(f"the restored store holds what was told later:\n{said}")


def examine(machine: Machine) -> None:
    """The installation says of itself that it works."""
    expect(machine.run("remora doctor --no-network"), "left no byte behind")


STEPS: tuple[Callable[[Machine], None], ...] = (start, kill, update, restore, examine)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.container")
    parser.add_argument("--folder", type=Path, default=ROOT / ".container", help="where images are kept")
    options = parser.parse_args()
    missing = [program for program in ("buildah", "debootstrap") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        sys.stderr.write(f"Needs root and {' and '.join(missing or ['nothing else'])} (apt-get install).\n")
        return 1
    machine = Machine(options.folder.absolute())
    shutil.rmtree(machine.volume, ignore_errors=True)
    machine.volume.mkdir(mode=0o700, parents=True)
    os.chown(machine.volume, USER, USER)
    seconds: dict[str, float] = {}
    steps: list[tuple[str, Callable[[], object]]] = [("base", machine.make_base), ("build", machine.build)]
    steps += [(step.__name__, lambda step=step: step(machine)) for step in STEPS]  # type: ignore[misc]
    for name, act in steps:
        began = time.monotonic()
        try:
            act()
        except Failed as exc:
            sys.stderr.write(f"{name} failed: {exc}\n")
            return 1
        seconds[name] = round(time.monotonic() - began, 1)
        sys.stderr.write(f"{name}: {seconds[name]} s\n")
    sys.stdout.write(f"{json.dumps({'seconds': seconds, 'bytes': machine.size()})}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
