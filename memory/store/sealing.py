"""The key beside a store that seals the hashes of forgotten statements.

Invariants: the key is in no database, backup or list, so that none of them alone reveals a forgotten statement, not
even by guessing; a key that is in the file stays in it. A person with the file and a database can try guesses, but
could read the talk as well with the rights to read both.
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
    """The keys in one file, a line each; the first of them seals. The file is made for the first hash to be sealed."""

    def __init__(self, path: Path) -> None:
        """Reads the keys. Raises `StoreUnwritable` if the file exists and can't be read."""
        self._path = path
        self._read_at = _stamp(path)
        #: The keys by their short hashes, by which rows name them.
        self._keys = {_name(key): key for key in keys_in(path)}
        #: Keys that rows name and that the file does not hold: hashes sealed with them can't be compared.
        self.lost: Collection[str] = ()
        self._making = threading.Lock()

    def expect(self, names: Iterable[str]) -> None:
        """Notes as lost the keys among these, which rows name, that the file does not hold."""
        self.lost = self.missing(names)

    def missing(self, names: Iterable[str]) -> set[str]:
        self._look_again()
        return set(names).difference(self._keys)

    def sealed(self, hashed: bytes) -> tuple[str, bytes]:
        """Returns the name of the first key, and the hash sealed with it. Raises `StoreUnwritable`."""
        self._look_again()
        with self._making:
            if not self._keys:
                self._keys = {_name(key): key for key in _made(self._path)}
        name, key = next(iter(self._keys.items()))
        return name, hmac.digest(key, hashed, "sha256")

    def all_of(self, hashed: bytes) -> list[bytes]:
        self._look_again()
        return [hmac.digest(key, hashed, "sha256") for key in self._keys.values()]

    def _look_again(self) -> None:
        """Takes over keys that another process on the same folder has added."""
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
    try:
        return [bytes.fromhex(line) for line in path.read_text("ascii", "replace").split() if _KEY.fullmatch(line)]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise _unusable("read", path, exc) from exc


def add(path: Path, keys: Sequence[bytes]) -> None:
    """Appends keys to those in a file; they are on the disk when this returns. Raises `StoreUnwritable`.

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
    """Returns the keys in a file, which gets one if it has none. Raises `StoreUnwritable`."""
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
    # It must be on the disk: the next commits are sealed with it.
    replace_file(path, "".join(f"{key.hex()}\n" for key in keys).encode("ascii"))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Returns values that change whenever a file does; None without a file."""
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
