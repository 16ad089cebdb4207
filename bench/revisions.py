"""Gives benchmarks the files of other revisions, and of this one as it stands at a moment.

Invariants: nothing is changed in the working tree, and nothing is left behind, also after Ctrl-C.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@contextmanager
def checked_out(repository: Path, revision: str) -> Iterator[Path]:
    """Gives a worktree of that revision in a temporary folder; removes both."""
    folder = Path(tempfile.mkdtemp(prefix="remora-against-"))
    there = folder / "tree"
    try:
        git(repository, "worktree", "add", "--quiet", "--detach", str(there), revision)
        yield there
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        with suppress(subprocess.CalledProcessError):  # it may not have been added yet
            git(repository, "worktree", "remove", "--force", str(there))
        shutil.rmtree(folder, ignore_errors=True)


def copied(tree: Path, to: Path) -> Path:
    """Copies what git would commit of a tree, so that edits during the runs change nothing."""
    for name in git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if (tree / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, to / name)
    return to


def revision_of(asked: str | None) -> tuple[Path, str]:
    """Returns the top folder of this tree and the revision to compare with. Ends the program if there is none."""
    try:
        here = Path(git(Path.cwd(), "rev-parse", "--show-toplevel"))
        name = asked or git(here, "describe", "--tags", "--abbrev=0", "HEAD^")
        git(here, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        if asked:
            raise SystemExit(
                f"bench.against: {asked} names no commit here; in a shallow clone, fetch it first"
            ) from None
        print("bench.against: no earlier tag is known here, as in a shallow clone, so nothing is compared")
        raise SystemExit(0) from None
    return here, name
