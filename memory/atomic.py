"""Files that are replaced as a whole: however the process ends, either the old or the new content is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock

#: Seconds to wait for another process to be done with a file.
_WAIT: Final = 30.0


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Keeps other processes that also ask from changing `path` meanwhile. Raises `OSError`, also after a long wait."""
    with FileLock(f"{path}.lock", timeout=_WAIT, mode=0o600):
        yield


def replace_file(path: Path, content: bytes) -> None:
    """Puts a file that only its owner may read in the place of `path`; it is on the disk when this returns.

    Raises `OSError`; the old file is then untouched.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
