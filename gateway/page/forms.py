"""Reads the forms that browsers send: their fields and files.

Invariants: the work grows with the bytes of a form alone. Its parts are split in one pass and counted before any is
read, so many empty ones take no longer than one long one. A form that breaks a bound is refused as a whole.

A parser made for streams looks for each boundary step by step in Python. The body is read whole before this, so the
splitting of bytes, which is one pass in C, does the same.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, unquote

from channels.base import Attachment, carrying

#: The most fields and files of a form, and bytes of the headers of one.
_FIELDS: Final = 50
MOST_FILES: Final = 5
_HEAD: Final = 2_000
#: The name of the field whose files are what the person says; its words are theirs, as those of a platform's voice
#: messages are.
VOICE: Final = "voice"
#: The most characters of a field.
_FIELD: Final = 100_000
#: Bytes of a form that are read at once; a larger one is read in a thread.
_SMALL: Final = 100_000
_BOUNDARY: Final = re.compile(r"""boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))""", re.IGNORECASE)
#: A parameter in the header of a part: between quotation marks, with their escapes or, as browsers write it, without
#: any (`"C:\new\"`); or bare. Each way ends at the next mark or semicolon, so no header is read over and over.
_PARAMETER: Final = re.compile(
    r""";[ \t]*([^\s;="]+)[ \t]*=[ \t]*
    (?: "( (?: [^"\\] | \\["\\] | \\(?!["\\]) )* )"(?=[ \t]*(?:;|$)) | "([^"]*)"(?=[ \t]*(?:;|$)) | ([^;]*) )""",
    re.VERBOSE,
)
_DISPOSITION: Final = "content-disposition:"
_TYPE: Final = "content-type:"


class BadForm(Exception):
    """Raised for a form that can't be read. `status` is 400; 413 for one that is too large, 415 for another kind."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    fields: dict[str, str]
    files: tuple[Attachment, ...] = ()


async def sent(media_type: str, body: bytes) -> Sent:
    """Returns the form in a body. `media_type` is the whole header Content-Type. Raises `BadForm`."""
    if len(body) > _SMALL:
        return await asyncio.to_thread(_sent, media_type, body)
    return _sent(media_type, body)


def _sent(media_type: str, body: bytes) -> Sent:
    match media_type.partition(";")[0].strip().lower():
        case "application/x-www-form-urlencoded":
            form = Sent(fields=_pairs(body))
        case "multipart/form-data":
            form = _parts(media_type, body)
        case _:
            raise BadForm(415)
    if any(len(value) > _FIELD for value in form.fields.values()):
        raise BadForm(413)
    return form


def _pairs(body: bytes) -> dict[str, str]:
    if body.count(b"&") >= _FIELDS:
        raise BadForm(413)
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict"))
    except ValueError as exc:
        raise BadForm(400) from exc


def _parts(media_type: str, body: bytes) -> Sent:
    named = _BOUNDARY.search(media_type)
    if named is None:
        raise BadForm(400)
    mark = b"\r\n--" + (named[1] or named[2]).encode("utf-8", "surrogateescape")
    fields: dict[str, str] = {}
    files: list[Attachment] = []
    for start, end in _places(body, mark):
        blank = body.find(b"\r\n\r\n", start, end)
        if not 0 <= blank - start <= _HEAD:
            raise BadForm(400)
        name, filename, kind = _about(body[start:blank])
        data = memoryview(body)[blank + 4 : end]
        if filename is None:
            fields[name] = _decoded(bytes(data))
        elif data:
            files.append(replace(carrying(filename[:200], kind[:200], data), spoken=name == VOICE))
    if len(files) > MOST_FILES or len(fields) > _FIELDS:
        raise BadForm(413)
    return Sent(fields=fields, files=tuple(files))


def _places(body: bytes, mark: bytes) -> list[tuple[int, int]]:
    """Returns the beginning and the end of each part. Nothing is copied, because a form may have 10 MB."""
    at = 0 if body.startswith(mark[2:]) else body.find(mark) + 2
    if at == 1 or body[:at].strip():
        raise BadForm(400)  # it does not begin as a form does
    at += len(mark) - 2
    places = []
    while (end := body.find(mark, at)) >= 0:
        places.append((at, end))
        if len(places) > _FIELDS + MOST_FILES:
            raise BadForm(413)
        at = end + len(mark)
    if not body.startswith(b"--", at):
        raise BadForm(400)  # it does not end as a form does
    return places


def _about(head: bytes) -> tuple[str, str | None, str]:
    given: dict[str, str] = {}
    kind = ""
    for line in _decoded(head).split("\r\n"):
        if line[: len(_DISPOSITION)].lower() == _DISPOSITION:
            for name, quoted, raw, bare in _PARAMETER.findall(line):
                given.setdefault(name.lower(), _plain(quoted or raw or bare.strip().strip('"')))
        elif line[: len(_TYPE)].lower() == _TYPE:
            kind = line[len(_TYPE) :].strip()
    if "name" not in given:
        raise BadForm(400)
    if "filename*" in given:  # a charset, a language, and the name in percent-encoding
        given["filename"] = unquote(given["filename*"].rpartition("'")[2])
    return given["name"], given.get("filename"), kind


def _plain(name: str) -> str:
    """Returns a name without the escapes that browsers and other programs write into it."""
    return re.sub(r'\\(["\\])', r"\1", name).replace("%22", '"').replace("%0D", "").replace("%0A", " ")


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BadForm(400) from exc
