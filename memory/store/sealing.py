"""The key that lies beside a store, under which hashes of what was forgotten are sealed.

Invariants: the key is in no database, backup or list, so that none of them alone tells what was forgotten, not even to
who tries guesses; a key that is in the file stays in it. Who has the file and a database can try guesses, as who has
the rights to read both could read the talk as well.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from memory.atomic import alone_with, replace_file
from memory.errors import StoreUnwritable

_KEY = re.compile("[0-9a-f]{64}")


class Seal:
    """The keys in one file, a line each; the first of them seals. The file is made when something is to be sealed."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreUnwritable` where there is a file that can't be read."""
        self._path = path
        self._read_at = _stamp(path)
        #: By the short hash by which rows name them.
        self._keys = {_name(key): key for key in keys_in(path)}
        #: Keys that rows name and that the file does not hold: what they have sealed can't be compared.
        self.lost: Collection[str] = ()
        self._making = threading.Lock()

    def expect(self, names: Iterable[str]) -> None:
        """Rows name these keys; those that the file does not hold are lost."""
        self.lost = self.missing(names)

    def missing(self, names: Iterable[str]) -> set[str]:
        """Those of these keys that the file does not hold."""
        self._look_again()
        return set(names).difference(self._keys)

    def sealed(self, hashed: bytes) -> tuple[str, bytes]:
        """A hash under the first key, with the name of that. Raises `StoreUnwritable`."""
        self._look_again()
        with self._making:
            if not self._keys:
                self._keys = {_name(key): key for key in _made(self._path)}
        name, key = next(iter(self._keys.items()))
        return name, hmac.digest(key, hashed, "sha256")

    def all_of(self, hashed: bytes) -> list[bytes]:
        """A hash under each key."""
        self._look_again()
        return [hmac.digest(key, hashed, "sha256") for key in self._keys.values()]

    def _look_again(self) -> None:
        """Takes keys that another process on the same folder has added."""
        with self._making:
            stamp = _stamp(self._path)
            if stamp is None or stamp == self._read_at:
                return
            self._keys = {_name(key): key for key in keys_in(self._path)} | self._keys
            self._read_at = stamp
            self.lost = set(self.lost).difference(self._keys)


def path_of(store: Path) -> Path:
    return store.with_name(store.name + ".key")


def keys_in(path: Path) -> list[bytes]:
    """The keys in a file; none where there is no file. Raises `StoreUnwritable`."""
    try:
        return [bytes.fromhex(line) for line in path.read_text("ascii", "replace").split() if _KEY.fullmatch(line)]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise _unusable("read", path, exc) from exc


def add(path: Path, keys: Sequence[bytes]) -> None:
    """Put keys behind those in a file, on the disk when this returns. Raises `StoreUnwritable`.

    Several processes may add to one file.
    """
    if set(keys) <= set(keys_in(path)):
        return
    try:
        with alone_with(path):
            _write(path, list(dict.fromkeys([*keys_in(path), *keys])))
    except OSError as exc:
        raise _unusable("write", path, exc) from exc


def _made(path: Path) -> list[bytes]:
    """The keys in a file, which gets one if it has none. Raises `StoreUnwritable`."""
    try:
        with alone_with(path):
            keys = keys_in(path)
            if not keys:
                keys = [secrets.token_bytes(32)]
                _write(path, keys)
            return keys
    except OSError as exc:
        raise _unusable("write", path, exc) from exc


def _write(path: Path, keys: Sequence[bytes]) -> None:
    # It must be on the disk: what is committed next is sealed with it.
    replace_file(path, "".join(f"{key.hex()}\n" for key in keys).encode("ascii"))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Returns what changes with a file, or None where there is none."""
    try:
        held = path.stat()
    except OSError:
        return None
    return held.st_ino, held.st_size, held.st_mtime_ns


def _name(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]


def _unusable(how: str, path: Path, exc: OSError) -> StoreUnwritable:
    return StoreUnwritable(
        f"Can't {how} {path}: {exc.strerror}. It holds the key under which is noted what was forgotten, so nothing was "
        "changed. Check the rights of the file and its folder."
    )
