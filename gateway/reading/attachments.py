"""Reads attachments: pictures to be shown, texts to be read, voices to be heard.

Invariants: a picture is recognised by its bytes, never by its name. An attachment that is not understood is named,
with the reason, and never stops the message. Files are read in bounded time and memory, those of a few messages at
once and PDFs in a process of their own, and one person's files hold up no other's. Kept text is masked and has at
most `text_chars` characters. A label is one line that no file name can end, and no part of it looks like another
label. The text of a file is other people's words and belongs inside a fence; a transcript is the person's own words.
"""

from __future__ import annotations

import asyncio
import re
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Protocol

import structlog

from agents.budget import shortened
from agents.llm import ModelError
from channels.base import Attachment, Channel, ChannelError, Inbound, TooLarge
from channels.slots import Slots
from gateway.reading.plain_text import decoded
from gateway.reading.reader_process import read_apart
from memory.store.attachments import QUOTED, Attached, AttachedState

log = structlog.get_logger(__name__)

#: Reasons why an attachment is only named: code → its words in the label.
REASONS = {
    "off": "not looked at",
    "too_large": "too large",
    "no_reader": "of a kind that can't be read",
    "unreadable": "damaged or not readable",
    "unreachable": "could not be fetched",
    "no_transcriber": "nobody can listen to it",
    "not_transcribed": "could not be listened to",
    "empty": "nothing in it",
    "locked": "locked with a password",
}

#: Messages whose files are read at the same time: each message may hold twice `max_bytes`.
_MESSAGES_AT_ONCE = 4
#: Models refuse larger pictures (Anthropic's take 5 MB) or are slow at them, and a picture goes with each request for
#: as long as it stays in the window.
_PICTURE_BYTES = 5_000_000
#: PDFs read at the same time, by processes of up to 512 MB.
_PDFS_AT_ONCE = 2
#: Seconds to wait before a second try at fetching if the platform names no wait.
_PAUSE = 1.0
#: Masks can't recognise a secret that the end of the kept text cuts in two, so this many characters before the end go
#: as well.
_TORN = 4_096
_CUT = "\n[the rest of the file is left out]"
_NAME_CHARS = 60
#: Fewer tokens of a file are of no use.
_LEAST_TOKENS = 50

#: The kinds of attachments without bytes.
_BYTELESS = ("other", "preview")
#: The kind of the row that tells who said a forwarded message.
FORWARD = f"{QUOTED}forward"
#: The kind of the preview of a link in the message itself.
LINK = f"{QUOTED}link"
#: The labels of quotations by what is quoted, with a place for whose it is, and the words for that.
_QUOTED = {
    "": "forwarded{}",
    "message": "in reply to a message{}",
    "part": "in reply to a part of a message{}",
    "elsewhere": "in reply to a message{} in another chat",
    "story": "in reply to a story{}",
    "task": "in reply to a task in a list{}",
    "option": "in reply to an option in a poll{}",
    "opening": "in a thread that began with a message{}",
    "gone": "in reply to a deleted message{}",
    "withheld": "in reply to a message{}; the words are left out, as the author asked",
}
_WHOSE = {"bot": " of yours", "self": " of their own", "other": " of {}", "forward": " from {}"}

_PDF = "application/pdf"
_LABEL = re.compile(r"^\[[^\[\]\n]{1,200}\](?: |$)", re.MULTILINE)
_PDF_MARK = re.compile(r"\[page \d{1,6} of (\d{1,6})\]\n")


class Transcribe(Protocol):
    """Transcribes a recording. Raises `ModelError`."""

    def __call__(self, data: bytes, *, name: str, media_type: str) -> Awaitable[str]: ...


class Attachments:
    """Understands the attachments of messages, one message at a time or many at once.

    `max_bytes` bounds one attachment, twice that all attachments of one message; with 0 none is read. `fetch_seconds`
    is the time for fetching and reading all attachments of one message, `transcribe_seconds` the additional time for
    transcribing them. `text_chars` bounds the text kept of one attachment, in characters. Without `transcribe` no
    voice message is transcribed. `mask` makes text fit to be kept; it is called in a thread. `sleep` waits for
    seconds.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        fetch_seconds: float,
        text_chars: int,
        transcribe: Transcribe | None,
        mask: Callable[[str], str],
        sleep: Callable[[float], Awaitable[None]],
        transcribe_seconds: float = 60.0,
    ) -> None:
        self._max_bytes = max_bytes
        self._fetch_seconds = fetch_seconds
        self._text_chars = text_chars
        self._transcribe = transcribe
        self._mask = mask
        self._sleep = sleep
        self._transcribe_seconds = transcribe_seconds
        self._at_once = Shares(_MESSAGES_AT_ONCE)
        self._pdfs = Shares(_PDFS_AT_ONCE)

    async def understand(self, channel: Channel, inbound: Inbound) -> tuple[Attached, ...]:
        """Returns the attachments of `inbound`, in its order, and what it quotes, as far as there is any.

        Raises nothing of its own: `why` tells what went wrong.

        The states: "text": `text` is the file's text, masked. "picture": `data` is the picture's bytes, and the media
        type is taken from them. "spoken": `text` is the transcript, masked. "named": there is no content; `why` is
        one of `REASONS`, or empty where there is nothing to read (a sticker, a poll).
        """
        person = f"{inbound.platform}:{inbound.author_id}"
        async with self._at_once.place(person):
            clock = asyncio.get_running_loop().time
            until, listening = clock() + self._fetch_seconds, self._transcribe_seconds
            left = 2 * self._max_bytes
            made: list[Attached] = []
            beside = inbound.quoted.attachments if inbound.quoted is not None else ()
            for attachment in (*inbound.attachments, *beside):
                data, why = b"", self._needless(attachment)
                if not why and attachment.kind not in _BYTELESS:
                    limit = min(self._most(attachment), left)
                    data, why = await self._fetched(channel, inbound, attachment, limit=limit, until=until)
                left -= len(data)
                if not data:
                    made.append(_attached(attachment, "text" if attachment.text else "named", why=why))
                elif attachment.spoken and self._transcribe is not None:
                    began = clock()
                    made.append(await self._heard(self._transcribe, attachment, data, seconds=listening))
                    spent = clock() - began
                    until, listening = until + spent, listening - spent
                elif is_pdf(data):
                    began = clock()
                    async with self._pdfs.place(person):
                        # Others' files must not use up the time of this one.
                        until += clock() - began
                        made.append(await self._read(attachment, data, until=until))
                else:
                    made.append(await self._read(attachment, data, until=until))
            own = len(inbound.attachments)
            said = (replace(piece, kind=LINK) if piece.kind == "preview" else piece for piece in made[:own])
            return (*said, *_quotations(inbound), *map(_quoted, made[own:]))

    def _needless(self, attachment: Attachment) -> str:
        """Returns why an attachment is not worth fetching, "" if it is worth it or its name already says everything."""
        if attachment.kind in _BYTELESS:
            return ""
        if attachment.kind in ("audio", "video") and not attachment.spoken:
            return "no_reader"
        if self._max_bytes <= 0:
            return "off"
        if attachment.spoken and self._transcribe is None:
            return "no_transcriber"
        if not attachment.reference:
            return "unreachable"
        return "too_large" if (attachment.size or 0) > self._most(attachment) else ""

    def _most(self, attachment: Attachment) -> int:
        return min(self._max_bytes, _PICTURE_BYTES) if attachment.kind == "image" else self._max_bytes

    async def _fetched(
        self, channel: Channel, inbound: Inbound, attachment: Attachment, *, limit: int, until: float
    ) -> tuple[bytes, str]:
        if limit <= 0:
            return b"", "too_large"
        try:
            async with asyncio.timeout_at(until):
                try:
                    data = await channel.fetch(inbound, attachment, limit=limit)
                except ChannelError as error:
                    if not error.retryable:
                        raise
                    await self._sleep(_PAUSE if error.retry_after is None else error.retry_after)
                    data = await channel.fetch(inbound, attachment, limit=limit)
        except TooLarge:
            return b"", "too_large"
        except (ChannelError, OSError) as error:  # a TimeoutError is an OSError
            log.warning("attachment.unreachable", channel=channel.id, error=str(error) or "took too long")
            return b"", "unreachable"
        return data, "" if data else "empty"

    async def _read(self, attachment: Attachment, data: bytes, *, until: float) -> Attached:
        try:
            async with asyncio.timeout_at(until):
                return await self._made_out(attachment, data)
        except TimeoutError:
            log.warning("attachment.unreachable", error="reading it took too long")
            return _attached(attachment, "named", why="unreachable")

    async def _made_out(self, attachment: Attachment, data: bytes) -> Attached:
        picture = picture_type(data)
        if picture is not None:
            seen = replace(attachment, kind="image", media_type=picture)
            if len(data) > _PICTURE_BYTES:
                return _attached(seen, "named", why="too_large")
            return _attached(seen, "picture", data=data)
        if is_pdf(data):
            told = await pdf(data, chars=self._text_chars + 1)
            if isinstance(told, str):
                return _attached(attachment, "named", why=told)
            attachment = replace(attachment, media_type=_PDF)
            text, cut = told
        else:
            found = await asyncio.to_thread(decoded, data, chars=self._text_chars + 1)
            if found is None:
                why = "unreadable" if _claims_text(attachment) else "no_reader"
                return _attached(attachment, "named", why=why)
            text, cut = found, False
        text = await self._kept(text, cut=cut)
        return _attached(attachment, "text", text=text) if text else _attached(attachment, "named", why="empty")

    async def _heard(self, transcribe: Transcribe, attachment: Attachment, data: bytes, *, seconds: float) -> Attached:
        try:
            async with asyncio.timeout(seconds):
                said = await transcribe(data, name=attachment.name, media_type=attachment.media_type)
        except (ModelError, TimeoutError) as error:
            log.warning("attachment.not_transcribed", error=str(error) or "took too long")
            return _attached(attachment, "named", why="not_transcribed")
        text = await self._kept(said.strip(), cut=False)
        return _attached(attachment, "spoken", text=text) if text else _attached(attachment, "named", why="empty")

    async def _kept(self, text: str, *, cut: bool) -> str:
        """Returns `text` masked and short enough, "" if it has no words. `cut` is True if the file had more."""
        kept = await asyncio.to_thread(self._mask, text[: self._text_chars])
        if len(text) > self._text_chars:
            kept = kept[: -min(_TORN, self._text_chars // 4)]
            cut = True
        return kept.strip() and f"{kept.rstrip()}{_CUT if cut else ''}"


def label(attached: Attached) -> str:
    """Returns the line for history: `[picture: cat.jpg]`, `[file: report.pdf, 12 pages]`, `[voice message]`.

    What is quoted has a line in the prompt alone: `[in reply to a message of Tom]`, `[forwarded from Tom]`.
    """
    name = plain_name(attached.name)
    if attached.kind.startswith(QUOTED):
        whose, _, what = attached.kind.removeprefix(QUOTED).partition(" ")
        if what or attached.kind == FORWARD:
            end = _WHOSE[whose] if name or whose in ("bot", "self") else ""
            return f"[{_QUOTED[what].format(end.format(name))}]"
        own = label(replace(attached, kind="preview" if attached.kind == LINK else whose))
        return own if attached.kind == LINK else f"{own[:-1]}, in the message replied to]"
    if attached.state == "spoken" or attached.why in ("no_transcriber", "not_transcribed"):
        named = "voice message"
    elif attached.kind in _BYTELESS:
        named = name or "something without words"
    else:
        what = "picture" if attached.kind == "image" else attached.kind
        named = f"{what}: {name}" if name else what
    pages = _PDF_MARK.match(attached.text) if attached.media_type == _PDF else None
    if pages:
        named += f", {pages[1]} page{'' if pages[1] == '1' else 's'}"
    if attached.why:
        named += f"; {REASONS.get(attached.why, attached.why)}"
    return f"[{named}]"


def own_words(text: str) -> str:
    return _LABEL.sub("", text).strip()


def plain_name(name: str) -> str:
    """Returns a name that fits between other words: short, on one line, without brackets or invisible characters."""
    name = " ".join("".join(map(_harmless, name[:1_000])).split())
    if len(name) > _NAME_CHARS:
        # The ending tells what kind of file it is.
        name = f"{name[: _NAME_CHARS - 13]}…{name[-12:]}"
    return name


def inline(kept: Sequence[tuple[int, str]], budget_tokens: int, count_tokens: Callable[[str], int]) -> tuple[str, ...]:
    """Returns the part of each of the `kept` texts that is shown; empty where there is no room left.

    `kept` holds (message id, text) in the order of the conversation. The newest message comes first. The texts of one
    message share the room, so that a long text leaves room for a short one. Once too few tokens are left to be of
    use, older texts are not even counted.
    """
    shown = [""] * len(kept)
    left = budget_tokens
    newest_first = reversed(list(enumerate(kept)))
    for _, group in groupby(newest_first, key=lambda item: item[1][0]):
        if left < _LEAST_TOKENS:
            break
        costs = sorted((count_tokens(text), index) for index, (_, text) in group)
        for waiting, (cost, index) in zip(range(len(costs), 0, -1), costs, strict=True):
            share = left // waiting
            if cost <= share:
                shown[index] = kept[index][1]
                left -= cost
            elif share >= _LEAST_TOKENS:
                shown[index] = shortened(kept[index][1], share, count_tokens)
                left -= count_tokens(shown[index])
    return tuple(shown)


def picture_type(data: bytes) -> str | None:
    """Returns the media type of a picture that models take, by its first bytes; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def is_pdf(data: bytes) -> bool:
    return data[:1024].lstrip().startswith(b"%PDF-")


def _quotations(inbound: Inbound) -> Iterator[Attached]:
    if inbound.forwarded:
        yield _forward(inbound)
    if (quoted := inbound.quoted) is not None:
        yield Attached(
            kind=f"{QUOTED}{quoted.whose} {quoted.kind}",
            name=quoted.author,
            media_type=quoted.author_id,
            size=None,
            state="text" if quoted.text.strip() else "named",
            text=quoted.text,
        )


def _forward(inbound: Inbound) -> Attached:
    return Attached(kind=FORWARD, name=inbound.forwarded_from, media_type="", size=None, state="named")


def forward_label(inbound: Inbound) -> str:
    """Returns the line that says by whom a forwarded message is; "" for any other."""
    return label(_forward(inbound)) if inbound.forwarded else ""


def _quoted(attached: Attached) -> Attached:
    """Returns an attachment of a quoted message, in which nothing is the word of the person who quotes it."""
    state: AttachedState = "text" if attached.state == "spoken" else attached.state
    return replace(attached, kind=f"{QUOTED}{attached.kind}", state=state)


def _claims_text(attachment: Attachment) -> bool:
    return attachment.media_type.startswith("text/") or attachment.name.lower().endswith((".txt", ".md", ".csv"))


def _attached(
    attachment: Attachment, state: AttachedState, *, text: str = "", data: bytes | None = None, why: str = ""
) -> Attached:
    return Attached(
        kind=attachment.kind,
        name=attachment.name,
        media_type=attachment.media_type,
        size=attachment.size,
        state=state,
        why=why,
        text=text or attachment.text,
        data=data,
    )


async def pdf(data: bytes, *, chars: int) -> tuple[str, bool] | str:
    """Returns a PDF's text and whether it is cut, or the reason why there is no text."""
    # -P keeps this folder out of its path: there is an http.py in it.
    told = await read_apart((sys.executable, "-P", str(Path(__file__).with_name("pdf.py")), str(chars)), data)
    if told is None:
        return "unreadable"
    return str(told["why"]) if "why" in told else (str(told["text"]), bool(told["cut"]))


def _harmless(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Ps" or char == "<":
        return "("
    if category == "Pe" or char == ">":
        return ")"
    # The joiner stays: families and flags of emoji are made with it.
    return " " if category[0] in "CZ" and char != "\u200d" else char


class Shares:
    def __init__(self, places: int) -> None:
        self._each = max(1, places // 2)
        self._slots = Slots(places, self._next)

    def place(self, who: str) -> AbstractAsyncContextManager[None]:
        return self._slots.slot(who)

    def _next(self, waiting: Collection[str]) -> str | None:
        return next((who for who in waiting if self._slots.held[who] < self._each), None)
