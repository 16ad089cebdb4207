"""The web page as a chat platform: messages come in from a browser, and rows to show go to its open tabs.

Invariants: messages are taken only by `run`, one after the other, and the author hears whether each was taken. A row is
shown only where a tab is open; until then it stays in the outbox. Commands and their answers, which no history keeps,
are held in memory for `_HELD_MS`, so that a page that is loaded again shows them; beyond a number of places and bytes
the oldest go. Messages that history keeps are not held: once they are forgotten there, they are gone. A tab shows only
messages of its own places. A message is shown as said once it is taken, so no tab shows one that was lost. Its
pictures are held as long as itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Final, Literal, TypeAlias

import structlog

from channels.base import (
    Attachment,
    Button,
    Capabilities,
    Channel,
    Chunk,
    File,
    Health,
    Host,
    Inbound,
    NotTaken,
    Outbound,
    Place,
    TooLarge,
    carried,
)

log = structlog.get_logger(__name__)

#: The markup of a row whose text is Markdown.
MARKDOWN: Final = "md"
#: The key of the item that says that an answer is being made; the next item takes its place.
TYPING: Final = "typing"
#: The key of the item that says that the list of conversations has changed.
LISTED: Final = "listed"
#: Milliseconds for which an item that was shown is held, the most items held of one place, the most places, and the
#: most bytes of files and characters in all of them.
_HELD_MS: Final = 3_600_000
_HELD: Final = 60
_HELD_PLACES: Final = 500
_HELD_SIZE: Final = 64_000_000
#: Changes, and characters in them, that a tab may be behind before it has to begin anew.
_BEHIND: Final = 500
_BEHIND_CHARS: Final = 2_000_000
#: The most streams of one person. A browser has one, however many tabs it shows.
_STREAMS: Final = 8
_FILE_BYTES: Final = 20_000_000


#: The pictures that are shown: none of these formats can act.
PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
#: What of a sent file can be looked at: its picture, the text that was read of it, or nothing. A voice was heard.
SentKind: TypeAlias = Literal["picture", "text", "voice", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file that came with what the person said; `data` is only there until history keeps the picture."""

    name: str
    kind: SentKind
    size: int | None = None
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageItem:
    """Something shown in a conversation, in the place of an item of its `key`; `mine` is what the person said.

    Of a message that was said in several versions, `version` has the place of this one, the number of all, and the
    addresses of the one before and the one after, "" for none.
    """

    key: str
    at: int
    text: str
    markdown: bool = False
    mine: bool = False
    growing: bool = False
    earlier: bool = False
    buttons: tuple[Button, ...] = ()
    file: File | None = None
    row: int = 0
    sent: tuple[SentFile, ...] = ()
    version: tuple[int, int, str, str] | None = None


class Tab:
    """Somebody who looks at some places: the items that changed there and were not read yet.

    Of an item that changes again before it is read only the last state waits, and of a file only its name. So whoever
    does not read holds at most `_BEHIND` items with `_BEHIND_CHARS` characters; then the tab closes and begins anew.
    `surplus` is True if it was closed because its person has too many.
    """

    def __init__(self, is_there: Callable[[], bool] = lambda: True) -> None:
        self._is_there = is_there
        self._waiting: dict[tuple[Place, str], PageItem] = {}
        self._chars = 0
        self._changed = asyncio.Event()
        self._closed = False
        self.surplus = False

    @property
    def open(self) -> bool:
        return not self._closed and self._is_there()

    async def next(self, seconds: float) -> tuple[Place, PageItem] | None:
        """Returns the next change and its place; None after `seconds` without. Raises `EOFError` for a closing tab."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return None
        if self._closed:
            raise EOFError
        place, key = next(iter(self._waiting))
        return place, self._take(place, key)

    def taken(self) -> list[PageItem]:
        return [self._take(place, key) for place, key in list(self._waiting)]

    def put(self, place: Place, item: PageItem) -> None:
        if self._closed:
            return
        if item.file is not None:
            item = replace(item, file=replace(item.file, data=b""))
        item = replace(item, sent=tuple(replace(file, data=b"") for file in item.sent))
        before = self._waiting.get((place, item.key))
        if before is not None and item.key == TYPING:
            return
        self._chars += len(item.text) - (0 if before is None else len(before.text))
        self._waiting[place, item.key] = item
        self._changed.set()
        if len(self._waiting) > _BEHIND or self._chars > _BEHIND_CHARS:
            self.close()

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._changed.set()

    def _take(self, place: Place, key: str) -> PageItem:
        item = self._waiting.pop((place, key))
        self._chars -= len(item.text)
        if not self._waiting:
            self._changed.clear()
        return item


class _Held:
    """The items that are held of each place. A place is as old as the last change in it."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._items: dict[Place, dict[str, PageItem]] = {}
        self._sizes: dict[Place, int] = {}

    def of(self, place: Place) -> dict[str, PageItem]:
        since = self._now() - _HELD_MS
        return {key: item for key, item in self._items.get(place, {}).items() if item.at > since}

    def keep(self, place: Place, items: Mapping[str, PageItem]) -> None:
        """Holds the newest of these items of a place and no others, at the cost of the oldest places."""
        self._forget(place)
        newest, size = [], 0
        # An item that is dropped for its age takes the bytes of its file with it.
        for item in reversed(sorted(items.values(), key=lambda each: each.at)[-_HELD:]):
            size += _size(item)
            if size > _HELD_SIZE:
                break
            newest.append(item)
        if newest:
            self._items[place] = {item.key: item for item in reversed(newest)}
            self._sizes[place] = sum(map(_size, newest))
        while len(self._items) > _HELD_PLACES or sum(self._sizes.values()) > _HELD_SIZE or self._is_oldest_over():
            self._forget(next(iter(self._items)))

    def _is_oldest_over(self) -> bool:
        return any(not self.of(place) for place in islice(self._items, 1))

    def _forget(self, place: Place) -> None:
        self._items.pop(place, None)
        self._sizes.pop(place, None)


def _size(item: PageItem) -> int:
    return (
        len(item.text) + (0 if item.file is None else len(item.file.data)) + sum(len(file.data) for file in item.sent)
    )


class WebChannel(Channel):
    """The page of one agent. People have private chats with it, whose threads are conversations."""

    platform = "web"
    capabilities = Capabilities(
        stream="edit",
        resend="same",
        buttons=True,
        revise_seconds=0.1,
        burst_seconds=0.0,
        direct=True,
        file_bytes=_FILE_BYTES,
        shows_after=0.0,
        comes_and_goes=True,
        lists=True,
    )

    def __init__(self, name: str, *, now: Callable[[], int]) -> None:
        self._id = name
        self._now = now
        self._said: asyncio.Queue[tuple[Inbound, asyncio.Future[None]]] = asyncio.Queue()
        self._tabs: dict[Place, list[Tab]] = {}
        self._streams: dict[str, list[Tab]] = {}
        self._held = _Held(now)
        self._rows: dict[tuple[Place, str], int] = {}
        self._unnumbered = count(1)
        #: True from when messages are taken no more until they are again, as while the program ends.
        self.is_ending = False

    @property
    def id(self) -> str:
        return self._id

    def reachable(self, place: Place) -> bool:
        return place.channel == self._id and any(tab.open for tab in self._tabs.get(place, ()))

    def health(self) -> Health:
        return Health(contact=self._now())

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return [Chunk(text=text, markup=MARKDOWN if markdown else "")]

    def drafts(self, place: Place) -> bool:
        return True

    # For people ---------------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, chat: str, places: Sequence[Place], *, is_there: Callable[[], bool]) -> Iterator[Tab]:
        """Opens a tab while the block runs, for a reader who stays as long as `is_there`; too many close the oldest."""
        own = [stream for stream in self._streams.get(chat, ()) if stream.open]
        for stream in own[: max(0, len(own) - _STREAMS + 1)]:
            stream.surplus = True
            stream.close()
        opened = Tab(is_there)
        self._streams[chat] = [*own, opened]
        try:
            with self._shown_to(opened, places):
                yield opened
        finally:
            if left := [stream for stream in self._streams.get(chat, ()) if stream is not opened]:
                self._streams[chat] = left
            else:
                self._streams.pop(chat, None)

    @contextmanager
    def tab(self, place: Place) -> Iterator[Tab]:
        opened = Tab()
        with self._shown_to(opened, [place]):
            yield opened

    @contextmanager
    def _shown_to(self, tab: Tab, places: Sequence[Place]) -> Iterator[None]:
        for place in places:
            self._tabs.setdefault(place, []).append(tab)
        try:
            yield
        finally:
            for place in places:
                self._tabs[place].remove(tab)
                if not self._tabs[place]:
                    del self._tabs[place]

    def check_taking(self) -> None:
        if self.is_ending:
            raise NotTaken("Remora is restarting. Send it again.")

    async def say(self, inbound: Inbound) -> None:
        """Hands a message to `run`; returns after it is committed. Raises `NotTaken`."""
        self.check_taking()
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._said.put((inbound, taken))
        await taken

    def held(self, place: Place) -> list[PageItem]:
        return sorted(self._held.of(place).values(), key=lambda item: item.at)

    def file(self, place: Place, row: int) -> File | None:
        return next((item.file for item in self._held.of(place).values() if item.file and item.row == row), None)

    def sent(self, place: Place, message_id: str) -> tuple[SentFile, ...]:
        """Returns the files of a message that history may not have yet."""
        item = self._held.of(place).get(said_key(message_id))
        return item.sent if item is not None else ()

    def drop(self, place: Place, keys: Collection[str] | None = None) -> None:
        """Drops the held items with these keys, or all."""
        kept = self._held.of(place) if keys is not None else {}
        self._held.keep(place, {key: item for key, item in kept.items() if key not in (keys or ())})

    # For the gateway ----------------------------------------------------------------------------------------------

    async def run(self, host: Host) -> None:
        self.is_ending = False
        try:
            await self._take(host)
        finally:
            self.is_ending = True
            # Nobody answers from now on, and the store closes soon.
            for stream in [stream for streams in self._streams.values() for stream in streams]:
                stream.close()

    async def _take(self, host: Host) -> None:
        while True:
            inbound, taken = await self._said.get()
            try:
                await host.on_inbound(inbound)
            except NotTaken as exc:
                _fail(taken, exc)
            # One message that can't be taken must not keep those of others waiting for a new run.
            except Exception as exc:
                log.exception("web.not_taken", channel=self.id)
                _fail(taken, NotTaken(f"The message was not taken ({type(exc).__name__}). Send it again."))
            except BaseException as exc:
                _fail(taken, NotTaken(f"The message was not taken ({type(exc).__name__}). Send it again."))
                raise
            else:
                if inbound.pressed is None:
                    self._show_said(inbound)
                if not taken.done():
                    taken.set_result(None)
            del inbound  # it holds its files, and the next one may be long in coming

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        return carried(attachment, limit=limit)

    async def revise(self, place: Place, reference: str, text: str) -> None:
        key = answer_key(int(reference)) if reference.isdecimal() else reference
        before = self._held.of(place).get(key)
        if reference.isdecimal() and before is not None and not before.growing:
            return
        if before is not None or reference.isdecimal():
            at = self._now() if before is None else before.at
            self._show(place, PageItem(key=key, at=at, text=text, markdown=True, growing=True))

    async def typing(self, place: Place) -> None:
        for tab in self._tabs.get(place, ()):
            tab.put(place, PageItem(key=TYPING, at=self._now(), text="", growing=True))

    def relist(self, place: Place) -> None:
        for stream in self._streams.get(place.chat, ()):
            stream.put(place, PageItem(key=LISTED, at=self._now(), text=""))

    async def send(self, outbound: Outbound) -> str:
        if outbound.file is not None and len(outbound.file.data) > _FILE_BYTES:
            raise TooLarge(f"{outbound.file.name} has {len(outbound.file.data)} bytes; {_FILE_BYTES} can be shown")
        key = outbound.edits or self._key(outbound)
        before = self._held.of(outbound.place).get(key)
        item = PageItem(
            key=key,
            at=self._now() if before is None else before.at,
            text=outbound.text,
            markdown=outbound.markup == MARKDOWN,
            buttons=outbound.buttons,
            file=outbound.file,
            row=outbound.id,
            earlier=outbound.earlier_run,
        )
        self._show(outbound.place, item)
        if outbound.turn is not None and not (item.buttons or item.file):
            self._leave_to_history(outbound.place, key)
            self.relist(outbound.place)
        return key

    def _leave_to_history(self, place: Place, answer: str) -> None:
        """Drops an answer and the message it answers, because history keeps both from now on."""
        kept = self._held.of(place)
        said = {key for key, item in kept.items() if item.mine and not item.text.startswith("/")}
        self._held.keep(place, {key: item for key, item in kept.items() if key not in {answer, *said}})

    def _key(self, outbound: Outbound) -> str:
        if outbound.id == 0:
            return f"n{next(self._unnumbered)}"
        if outbound.turn is not None and outbound.chunk == 0 and outbound.file is None:
            key = answer_key(outbound.turn)
            if self._rows.setdefault((outbound.place, key), outbound.id) == outbound.id:
                if len(self._rows) > _BEHIND:
                    del self._rows[next(iter(self._rows))]
                return key
        return f"r{outbound.id}"

    def _show(self, place: Place, item: PageItem) -> None:
        self._held.keep(place, {**self._held.of(place), item.key: item})
        for tab in self._tabs.get(place, ()):
            tab.put(place, item)

    def _show_said(self, inbound: Inbound) -> None:
        key = said_key(inbound.message_id)
        # A message that is sent again stays where it was.
        before = self._held.of(inbound.place).get(key)
        at = inbound.sent_at if before is None else before.at
        self._show(inbound.place, PageItem(key=key, at=at, text=inbound.text, mine=True, sent=_sent(inbound)))
        self.relist(inbound.place)


def _sent(inbound: Inbound) -> tuple[SentFile, ...]:
    return tuple(
        SentFile(name=file.name, kind="picture", size=file.size, data=carried(file, limit=_FILE_BYTES))
        if file.media_type in PICTURES
        else SentFile(name=file.name, kind="voice" if file.spoken else "", size=file.size)
        for file in inbound.attachments
    )


def said_key(message_id: str) -> str:
    return f"u{message_id}"


def answer_key(turn: int) -> str:
    return f"t{turn}"


def _fail(taken: asyncio.Future[None], error: Exception) -> None:
    if not taken.done():
        taken.set_exception(error)
