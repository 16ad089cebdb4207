"""Reads the text of one PDF in a process of its own: the file on standard input, JSON on standard output.

Invariants: it ends by itself, for the system ends a process that takes more than `_CPU_SECONDS` of processor time, and
gives it at most `_MEMORY` bytes (where the system can; its parent bounds its time as well); it opens no other file and
no connection; any fault of the PDF is told as a `why`. It is run by its path, not as a module of the package, so that
nothing of Remora is loaded beside a file that may be hostile.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import time
import warnings
from importlib import import_module

import pypdf
from pypdf.errors import DependencyError, PyPdfError

#: Seconds after which no further page is begun: the pages read so far are worth more than nothing.
_ENOUGH_SECONDS = 10.0
_CPU_SECONDS = 20
#: Address space. An ordinary PDF of 20 MB takes some 100 MB of it; one made to burst asks for gigabytes.
_MEMORY = 512 * 1024 * 1024
#: The errors that pypdf raises for a faulty file: its own, and those of Python that it lets through.
_BROKEN = (
    PyPdfError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RuntimeError,
    OSError, MemoryError,
)  # fmt: skip


def main() -> int:
    """Runs `pdf.py CHARS`: writes the result of `read` for standard input as JSON."""
    _bound()
    # pypdf tells of every oddity of a file; nobody would read it.
    logging.disable()
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(read(sys.stdin.buffer.read(), chars=int(sys.argv[1]))))
    return 0


def read(data: bytes, *, chars: int) -> dict[str, str | bool]:
    """Returns the PDF's {"text", "cut"}, or {"why"}: "locked" without its password, "unreadable", "empty" of words.

    A line such as `[page 2 of 12]` stands before each page with words on it. Pages that can't be read are left out.
    `cut` tells that there is more than `chars` characters, or more than could be read in time.
    """
    until = time.monotonic() + _ENOUGH_SECONDS
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        # Most encrypted PDFs open without a password: it only guards printing and the like.
        if reader.is_encrypted and not reader.decrypt(""):
            return {"why": "locked"}
        total = len(reader.pages)
    except DependencyError:  # where the package cryptography is missing, AES can't be undone
        return {"why": "locked"}
    except _BROKEN:
        return {"why": "unreadable"}
    pages: list[str] = []
    size, broken, cut = 0, False, False
    for number in range(total):
        if size > chars or time.monotonic() > until:
            cut = True
            break
        try:
            words = reader.pages[number].extract_text().strip()
        except _BROKEN:
            broken = True
            continue
        if words:
            pages.append(f"[page {number + 1} of {total}]\n{words}")
            size += len(pages[-1])
    if not pages:
        return {"why": "unreadable" if broken or cut else "empty"}
    text = "\n\n".join(pages)
    return {"text": text[:chars], "cut": cut or len(text) > chars}


def _bound() -> None:
    try:
        resource = import_module("resource")
    except ImportError:  # Windows
        return
    for limit, most in (("RLIMIT_AS", _MEMORY), ("RLIMIT_CPU", _CPU_SECONDS), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, limit), (most, most))
        except (ValueError, OSError):  # a lower limit stands already, or this system has none (macOS: memory)
            continue


if __name__ == "__main__":
    sys.exit(main())
