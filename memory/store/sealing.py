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

from memory.atomic import replace_file
from memory.errors import StoreUnwritable

_KEY = re.compile("[0-9a-f]{64}")


class Seal:
    """The keys in one file, a line each; the first of them seals. The file is made when something is to be sealed."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreUnwritable` where there is a file that can't be read."""
        self._path = path
        #: By the short hash by which rows name them.
        self._keys = {_name(key): key for key in keys_in(path)}
        #: Keys that rows name and that the file does not hold: what they have sealed can't be compared.
        self.lost: Collection[str] = ()
        self._making = threading.Lock()

    def expect(self, names: Iterable[str]) -> None:
        """Rows name these keys; those that the file does not hold are lost."""
        self.lost = set(names).difference(self._keys)

    def sealed(self, hashed: bytes) -> tuple[str, bytes]:
        """A hash under the first key, with the name of that. Raises `StoreUnwritable`."""
        with self._making:
            if not self._keys:
                made = secrets.token_bytes(32)
                add(self._path, [made])
                self._keys = {_name(made): made}
        name, key = next(iter(self._keys.items()))
        return name, hmac.digest(key, hashed, "sha256")

    def all_of(self, hashed: bytes) -> list[bytes]:
        """A hash under each key."""
        return [hmac.digest(key, hashed, "sha256") for key in self._keys.values()]


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
    """Put keys behind those in a file, on the disk when this returns. Raises `StoreUnwritable`."""
    known = keys_in(path)
    wanted = list(dict.fromkeys([*known, *keys]))
    if wanted == known:
        return
    try:
        # It must be on the disk: what is committed next is sealed with it.
        replace_file(path, "".join(f"{key.hex()}\n" for key in wanted).encode("ascii"))
    except OSError as exc:
        raise _unusable("write", path, exc) from exc


def _name(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]


def _unusable(how: str, path: Path, exc: OSError) -> StoreUnwritable:
    return StoreUnwritable(
        f"Can't {how} {path}: {exc.strerror}. It holds the key under which is noted what was forgotten, so nothing was "
        "changed. Check the rights of the file and its folder."
    )
