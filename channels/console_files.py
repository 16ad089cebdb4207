"""Files that a person sends from the terminal: the path that is meant, the kind of file, and its bytes.

Invariants: only regular files are taken, and none that is too large to be read. Errors are worded for the person.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from channels.base import Attachment, AttachmentKind, ChannelError, TooLarge

#: The command that sends a file.
ATTACH: Final = "/attach"
USAGE: Final = "Name a file: /attach PATH, followed by your message. Put quotes around a path with blanks."
#: The size in bytes above which no configuration reads a file.
_MOST: Final = 20_000_000
#: A path in quotes, or with a backslash before characters that would end it, as terminals write a file dropped on them.
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|((?:[^\s\\'"]|\\.)+)""")
_ESCAPED: Final = re.compile(r"\\(.)")
_DROPPED: Final = ("/", "~/", "'/", "'~/", '"/', '"~/', "file://")


class UnusableFile(ChannelError):
    """A file can't be sent; `str()` tells the person why."""

    code = "unusable_file"


def is_attach(text: str) -> bool:
    return text.split(maxsplit=1)[:1] == [ATTACH]


def taken(text: str) -> tuple[str, Attachment]:
    """Returns the words and the file of a line with the command. Raises `UnusableFile`."""
    named = text.strip()[len(ATTACH) :].strip()
    if not named:
        raise UnusableFile(USAGE)
    # Without quotes, blanks may belong to the path.
    if _exists(whole := _path(named)):
        return "", attachment(whole)
    first = _QUOTED.match(named)
    if first is None:
        raise UnusableFile(USAGE)
    return named[first.end() :].strip(), attachment(_path(_unquoted(first)))


def dropped(text: str) -> Attachment | None:
    """Returns the file that was dropped on the terminal, which wrote nothing but its path; None for any other line."""
    written = text.strip()
    if not written.startswith(_DROPPED) or "\n" in written:
        return None
    whole = _QUOTED.fullmatch(written)
    path = _path(_unquoted(whole) if whole is not None else written)
    try:
        return attachment(path) if path.is_file() else None
    except OSError:  # such as a name that is too long for any file
        return None


def attachment(path: Path) -> Attachment:
    """Returns a file as it comes with a message. Raises `UnusableFile`."""
    try:
        str(path).encode()  # a name in another encoding fits in no database
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise UnusableFile(f"{path} is a folder. Name a file in it.")
        if not stat.S_ISREG(found.st_mode):
            raise UnusableFile(f"{path} is no file that can be read to its end.")
        if found.st_size > _MOST:
            raise UnusableFile(
                f"{path} is too large: {found.st_size / 1_000_000:.1f} MB, and at most {_MOST // 1_000_000} are read."
            )
        os.close(os.open(path, os.O_RDONLY))
    except FileNotFoundError:
        raise UnusableFile(f"There is no file {path}. Tab completes a path.") from None
    except (OSError, ValueError) as exc:
        raise UnusableFile(f"{path} can't be read: {getattr(exc, 'strerror', None) or 'this is no path'}.") from None
    media_type = mimetypes.guess_type(path.name)[0] or ""
    kinds: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}
    kind = kinds.get(media_type.partition("/")[0], "file")
    return Attachment(
        kind=kind,
        name=path.name,
        media_type=media_type,
        size=found.st_size,
        reference=str(path.absolute()),
        spoken=kind == "audio",
    )


def read(reference: str, *, limit: int) -> bytes:
    """Returns the bytes of a file that was sent. Raises `TooLarge` above `limit` bytes, else `ChannelError`."""
    try:
        with Path(reference).open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as exc:  # ValueError: a NUL, which no path has
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ChannelError(f"{reference!r} can't be read any more: {reason}") from exc
    if len(data) > limit:
        raise TooLarge(f"{reference} has more than {limit} bytes")
    return data


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is too long for any file
        return False


def _unquoted(found: re.Match[str]) -> str:
    single, double, plain = found.groups()
    return single if single is not None else _ESCAPED.sub(r"\1", double if double is not None else plain)


def _path(written: str) -> Path:
    if written.startswith("file://"):
        written = unquote(urlsplit(written).path)
    try:
        return Path(written).expanduser()
    except RuntimeError:  # "~nobody"
        return Path(written)
