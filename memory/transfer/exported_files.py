"""Finds a person's exports beside the store, so that they can be removed when the person forgets their memories.

Invariant: a file is the person's only if it says so itself: a data file by its owner, a page by its second line or, if
it is an older one, by the data file beside it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from memory.transfer.formats import remora

#: The folder of exports beside the database.
FOLDER: Final = "exports"
#: The characters of a page that name its owner.
_HEAD: Final = 2_000

#: A platform and a user id on it.
Account: TypeAlias = tuple[str, str]


def of_person(folder: Path, accounts: Collection[Account]) -> dict[int, Path]:
    """Returns the exports of the person with these accounts, ordered by name, under their inode numbers.

    Files that can't be read are passed over.
    """
    there = sorted(path for path in folder.glob("*") if path.is_file() and not path.is_symlink())
    data = [path for path in there if path.suffix == ".json" and _account_in(path) in accounts]
    named = [remora.page_line(*account) for account in accounts]
    pages = [path for path in there if path.suffix == ".md" and _is_theirs(path, named, data)]
    found: dict[int, Path] = {}
    for path in sorted([*data, *pages]):
        with suppress(FileNotFoundError):
            found[path.stat().st_ino] = path
    return found


def drop_old(folder: Path, *, before: int) -> int:
    """Removes the exports in a folder last written before a time in milliseconds UTC. Returns their number.

    Files that are no exports stay.
    """
    dropped = 0
    for path in sorted(folder.glob("*")):
        with suppress(OSError):
            if not path.is_symlink() and path.stat().st_mtime * 1000 < before and _is_export(path):
                path.unlink()
                dropped += 1
    return dropped


def _is_export(path: Path) -> bool:
    if path.suffix == ".json":
        with suppress(OSError, ValueError, RecursionError):
            return remora.looks_like(json.loads(path.read_bytes()))
    if path.suffix == ".md":
        with path.open(encoding="utf-8", errors="replace") as page:
            return page.readline().startswith(remora.PAGE_TITLE)
    return False


def _account_in(path: Path) -> Account | None:
    """Returns the account whose memory a data file holds; None if it is not one person's export."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    of = found.get("of") if remora.looks_like(found) else None
    if not isinstance(of, dict) or of.get("kind") != "person":
        return None
    return str(of.get("platform")), str(of.get("user_id"))


def _is_theirs(path: Path, named: Collection[str], data: Collection[Path]) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as page:
            head = page.read(_HEAD).splitlines()
    except OSError:
        return False
    if not head or not head[0].startswith(remora.PAGE_TITLE):
        return False
    said = [line for line in head[1:3] if remora.PAGE_FOR in line]
    return any(line.endswith(one) for line in said for one in named) if said else path.with_suffix(".json") in data
