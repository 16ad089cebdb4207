"""Commits messages to the inbox, fetches their attachments, applies edits and deletions, and holds old messages.

Invariants: no unmasked text is written anywhere. A committed message is queued by the caller, held for a press, or
known already. No message can be edited into a command. A message that is deleted before its turn gets no turn.
Attachments are fetched at once and beside the lane, because platforms keep them for a while only: never twice at a
time, nor again once they are kept. A turn waits for them. A fetch that a stop cuts off is made anew at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import structlog

from channels.base import Attachment, Button, Channel, Inbound, Place, Quoted
from gateway.commands import table
from gateway.pipeline.course import Agent, Heard, in_words
from gateway.pipeline.delivery import pieces
from gateway.pipeline.store import Roster, Store, where_said, who_said
from gateway.reading.attachments import Attachments, previews
from gateway.reception.backlog import Lanes, Waiting
from gateway.wording.texts import Texts, heard_in
from memory.errors import StorageError
from memory.mailbox.inbox import InboxRow
from memory.mailbox.outbox import Part

log = structlog.get_logger(__name__)

#: The data of the button "answer now".
NOW: Final = "now"
#: Texts longer than this many characters are masked in a thread, so that a message made of words that announce a secret
#: does not delay the others.
_LONG = 400
#: The most characters that are taken of a name: of a person, a chat, a file.
_NAME_CHARS = 1_000
#: The most characters that are taken of a message that is quoted, or of what a list or a poll says, and the most
#: attachments of one message.
_BESIDE_CHARS: Final = 4_500
_ATTACHMENTS: Final = 50
#: The most names of which it is known that they hold no secret.
_NAMES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Makes a text fit to be kept: `clean` removes forbidden characters, and `redact` masks secrets."""

    clean: Callable[[str], str]
    redact: Callable[[str], str]

    def __call__(self, text: str) -> str:
        return self.redact(self.clean(text)) if text else text


class Intake:
    def __init__(
        self,
        *,
        roster: Roster,
        channels: Mapping[str, Channel],
        lanes: Lanes[Waiting],
        mask: Mask,
        now: Callable[[], int],
        stale_hours: float,
        message_chars: int,
    ) -> None:
        """Takes the clock `now` (milliseconds UTC) and the `lanes` in which messages wait for their turn.

        A message older than `stale_hours` is held until a person asks for its answer. Of one that has more than
        `message_chars` characters the beginning and the end are taken.
        """
        self._roster = roster
        self._channels = channels
        self._lanes = lanes
        self._mask = mask
        self._now = now
        self._message_chars = message_chars
        # Hashes, so that no forgotten person's name stays here.
        self._plain_names: set[int] = set()
        self._stale_ms = int(stale_hours * 3_600_000)

    async def take(self, inbound: Inbound, store: Store, texts: Texts) -> Heard | Literal["held", "repeated"]:
        """Commits a message. Returns "held" if it is too old to be answered unasked. Raises `StorageError`."""
        if await self._names_the_bot_late(inbound, store):
            inbound = replace(inbound, edited=False)
        inbound = await self._without_silent(inbound, store)
        long = sum(map(len, _texts_of(inbound))) > _LONG
        heard = await asyncio.to_thread(self._masked, inbound) if long else self._masked(inbound)
        stale = self._is_stale(inbound)
        key = inbound.place.session_key
        inbox_id = await store.memory.mailbox.receive(
            platform=inbound.platform,
            bot_id=inbound.bot_id,
            update_key=inbound.update_key,
            session_key=key,
            payload=heard.inbound.to_json(),
            held=_late_notice(self._channels.get(inbound.channel), texts) if stale else None,
        )
        if inbox_id is None:
            log.info("inbound.repeated", session=key)
            return "repeated"
        if stale:
            store.delivery.wake(key)
            return "held"
        return replace(heard, inbox_id=inbox_id)

    async def _without_silent(self, inbound: Inbound, store: Store) -> Inbound:
        """Returns a message without the words that it quotes of a person who opted out of learning."""
        quoted = inbound.quoted
        if quoted is None or quoted.whose != "other" or not quoted.author_id:
            return inbound
        known = await store.memory.privacy.speakers(inbound.platform, [quoted.author_id])
        if all(speaker.learning for speaker in known.values()):
            return inbound
        return replace(inbound, quoted=replace(quoted, kind="withheld", text="", attachments=()))

    async def _names_the_bot_late(self, inbound: Inbound, store: Store) -> bool:
        """Returns whether a message that was not for the bot now is, by an edit. It can't become a command."""
        if not (inbound.edited and inbound.addressed and inbound.chat_kind == "group" and inbound.text.strip()):
            return False
        if table.parse(inbound.text) is not None:
            return False
        key = inbound.place.session_key
        return not await store.memory.requests.knows(inbound.platform, inbound.bot_id, key, inbound.message_id)

    async def set_aside(self, store: Store, row: InboxRow) -> bool:
        """Sets aside an earlier run's row that can't be read or is too old. Returns whether it did."""
        inbound = _parsed(row.payload)
        if inbound is None:
            log.error("inbox.unreadable", row=row.id, kept="set aside as dead")
            await store.memory.mailbox.dead_letter(row.id, error="unreadable")
            return True
        if row.turn_id is not None or not self._is_stale(inbound):
            return False
        texts = Texts(heard_in(inbound, self._roster.agent_for(inbound).spec.language))
        await store.memory.mailbox.hold(row, _late_notice(self._channels.get(inbound.channel), texts))
        store.delivery.wake(row.session_key)
        return True

    async def release(self, store: Store, pressed: Heard, texts: Texts) -> Sequence[InboxRow]:
        """Releases the inbox rows held in the place where "answer now" was `pressed`. Returns these rows."""
        inbound = pressed.inbound
        (gone, *_) = pieces(self._channels.get(inbound.channel), texts("late.gone"))
        return await store.memory.mailbox.release(inbound.place.session_key, inbox_id=pressed.inbox_id, gone=gone)

    async def edit(self, waiting: Waiting, served: Agent) -> None:
        """Applies an edit: before its turn it replaces the message, later it only corrects memory. Never a command."""
        heard, store = waiting.heard, waiting.store
        edit, key = heard.inbound, heard.inbound.place.session_key
        if table.parse(edit.text) is not None or not edit.text.strip():
            await store.memory.mailbox.dismiss(heard.inbox_id)
            return

        def changed(payload: str) -> str | None:
            said = _parsed(payload)
            if said is None or said.edited or (said.message_id, said.author_id) != (edit.message_id, edit.author_id):
                return None
            return replace(said, text=edit.text, length=edit.length).to_json()

        reworded = await store.memory.mailbox.reword(key, changed)
        if reworded is not None and (
            reworded.held or self._lanes.replace(key, _reworded(store, reworded, heard.original))
        ):
            await store.memory.mailbox.dismiss(heard.inbox_id)
            return
        # The turn is over, or has begun with the original text.
        await self._lanes.idle(key)
        where, who = where_said(edit, served.spec), who_said(edit)
        await store.memory.requests.amend(
            where, who, heard.inbox_id, platform_ref=edit.message_id, text=edit.text, compose=in_words
        )

    async def has_taken(self, store: Store, inbound: Inbound) -> bool:
        return await store.memory.mailbox.has_taken(inbound.platform, inbound.bot_id, inbound.update_key)

    async def preview(self, store: Store, inbound: Inbound) -> bool:
        """Puts the previews of links beside a message that still waits for its turn; False if it doesn't."""
        brought = self._safe([one for one in inbound.attachments if one.kind == "preview"])

        def changed(payload: str) -> str | None:
            said = _parsed(payload)
            if said is None or (said.message_id, said.author_id) != (inbound.message_id, inbound.author_id):
                return None
            # What comes with the message may be read already.
            return None if said.brings or said.edited else replace(said, attachments=brought).to_json()

        row = await store.memory.mailbox.reword(inbound.place.session_key, changed, drops=False)

        def in_place(waiting: Waiting) -> Waiting | None:
            if row is None or waiting.store is not store or waiting.heard.inbox_id != row.id:
                return None
            heard = replace(waiting.heard, inbound=replace(waiting.heard.inbound, attachments=brought))
            return replace(waiting, heard=heard)

        return row is not None and (row.held or self._lanes.replace(inbound.place.session_key, in_place))

    async def keep_previews(self, store: Store, inbound: Inbound) -> None:
        """Keeps the previews of links with a message whose turn has begun, once that is over."""
        await self._lanes.idle(inbound.place.session_key)
        kept = previews(replace(inbound, attachments=self._safe(inbound.attachments)))
        update = inbound.platform, inbound.bot_id, inbound.update_key
        try:
            await store.memory.mailbox.attach_late(update, inbound.message_id, kept)
        except StorageError as exc:
            log.error("previews.unsaved", session=inbound.place.session_key, error=str(exc))

    async def take_back(self, store: Store, place: Place, message_ids: Sequence[str]) -> list[int]:
        """Takes back deleted messages, with what was learned from them. Returns the inbox rows of those that waited."""
        key = place.session_key

        def is_deleted(payload: str) -> bool:
            said = _parsed(payload)
            return said is not None and said.pressed is None and said.message_id in message_ids

        gone = await store.memory.mailbox.withdraw(key, is_deleted)
        self._lanes.take_out(key, lambda waiting: waiting.store is store and waiting.heard.inbox_id in gone)
        threads = [] if place.thread else [(replace(place, thread=ref).session_key, [ref]) for ref in message_ids]
        for there, ids in ((key, message_ids), *threads):  # a thread has the id of the message that it began with
            await store.memory.requests.retract(self._channels[place.channel].platform, there, ids)
        return gone

    async def take_back_learned(self, store: Store, place: Place, message_ids: Sequence[str]) -> None:
        key = place.session_key
        await self._lanes.idle(key)
        try:
            await store.memory.requests.retract(self._channels[place.channel].platform, key, message_ids)
        except StorageError as exc:
            log.error("deleted.unsaved", session=key, error=str(exc), kept="what was learned from the message")

    def _masked(self, inbound: Inbound) -> Heard:
        """Returns the message with its secrets masked and its length bounded; the original text stays in RAM only."""
        text = as_kept(inbound.text, self._message_chars, clean=self._mask.clean, redact=self._mask.redact)
        safe = replace(
            inbound,
            text=text.masked,
            length=text.length,
            author_name=self._name(inbound.author_name[:_NAME_CHARS]),
            attachments=self._safe(inbound.attachments),
            quoted=None if inbound.quoted is None else self._quoted(inbound.quoted),
            forwarded_from=self._mask(inbound.forwarded_from[:_NAME_CHARS]),
            chat_title=self._mask(inbound.chat_title[:_NAME_CHARS]),
            thread_title=self._mask(inbound.thread_title[:_NAME_CHARS]),
            instructions=self._mask(inbound.instructions),
            earlier=tuple((role, self._mask(said)) for role, said in inbound.earlier),
        )
        return Heard(inbox_id=0, inbound=safe, original=text.original if text.original != text.masked else None)

    def _quoted(self, quoted: Quoted) -> Quoted:
        return replace(
            quoted,
            author=self._mask(quoted.author[:_NAME_CHARS]),
            text=self._shortened(quoted.text),
            attachments=self._safe(quoted.attachments),
        )

    def _safe(self, attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
        return tuple(
            replace(
                brought,
                name=self._mask(brought.name[:_NAME_CHARS]),
                media_type=self._mask(brought.media_type[:_NAME_CHARS]),
                reference=self._mask.clean(brought.reference),
                text=self._shortened(brought.text),
            )
            for brought in attachments[:_ATTACHMENTS]
        )

    def _shortened(self, text: str) -> str:
        """Returns what a message brings beside its own words, masked and in at most `_BESIDE_CHARS` characters."""
        most = min(self._message_chars, _BESIDE_CHARS)
        return as_kept(text, most, clean=self._mask.clean, redact=self._mask.redact).masked if text else ""

    def _name(self, name: str) -> str:
        """Returns a name without secrets. One that has none is looked through once, as it comes with each message."""
        if hash(name) in self._plain_names:
            return name
        masked = self._mask(name)
        if masked == name:
            if len(self._plain_names) >= _NAMES:
                self._plain_names.clear()
            self._plain_names.add(hash(name))
        return masked

    def _is_stale(self, inbound: Inbound) -> bool:
        said = inbound.pressed is None and not inbound.edited
        channel = self._channels.get(inbound.channel)
        asked_for = channel is not None and channel.capabilities.buttons
        return said and asked_for and self._now() - inbound.sent_at > self._stale_ms


def _texts_of(inbound: Inbound) -> Iterator[str]:
    yield from (inbound.text, inbound.instructions, inbound.author_name, inbound.chat_title)
    yield from (said for _, said in inbound.earlier)
    quoted = inbound.quoted or Quoted()
    yield quoted.text
    yield from (text for beside in (*inbound.attachments, *quoted.attachments) for text in (beside.name, beside.text))


def _parsed(payload: str) -> Inbound | None:
    """Returns a stored message; None if this version can't read it."""
    try:
        return Inbound.from_json(payload)
    except (ValueError, TypeError, KeyError):
        return None


def _reworded(store: Store, row: InboxRow, original: str | None) -> Callable[[Waiting], Waiting | None]:
    """Returns a function that puts the text of `row` into its waiting message; `original` is the unmasked text."""
    heard = Heard(inbox_id=row.id, inbound=Inbound.from_json(row.payload), original=original)

    def in_place(waiting: Waiting) -> Waiting | None:
        same = waiting.store is store and waiting.heard.inbox_id == row.id
        return replace(waiting, heard=heard) if same else None

    return in_place


def _late_notice(channel: Channel | None, texts: Texts) -> Part:
    (notice, *_) = pieces(channel, texts("late.ask"), buttons=(Button(label=texts("late.button"), data=NOW),))
    return notice


class Fetching:
    def __init__(self, channels: Mapping[str, Channel], attachments: Attachments) -> None:
        self._channels = channels
        self._attachments = attachments
        self._looking: dict[int, asyncio.Task[None]] = {}

    def begin(self, waiting: Waiting) -> None:
        heard, mailbox = waiting.heard, waiting.store.memory.mailbox
        channel = self._channels.get(heard.inbound.channel)
        if channel is None or heard.inbox_id in self._looking or waiting.alone:
            return  # a command has no use for attachments

        async def look() -> None:
            if not await mailbox.attached(heard.inbox_id):
                understood = await self._attachments.understand(channel, heard.inbound)
                await mailbox.attach(heard.inbox_id, understood)

        def looked(task: asyncio.Task[None]) -> None:
            del self._looking[heard.inbox_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                # The turn that waits for it reports the error; the message may have been taken back meanwhile.
                log.info("attachment.not_looked_at", row=heard.inbox_id, error=type(error).__name__)

        task = self._looking[heard.inbox_id] = asyncio.create_task(look())
        task.add_done_callback(looked)

    async def done(self, batch: Sequence[Waiting]) -> None:
        """Waits until the attachments of these messages are understood. Raises `StorageError` if they can't be kept."""
        for waiting in batch:
            if waiting.heard.inbound.brings:
                self.begin(waiting)  # once more if the store failed before
        looking = [task for waiting in batch if (task := self._looking.get(waiting.heard.inbox_id)) is not None]
        if not looking:
            return
        channel = self._channels.get(batch[0].heard.inbound.channel)
        if channel is not None and any(waiting.heard.inbound.fetches for waiting in batch):
            await channel.typing(batch[0].heard.inbound.place)
        await asyncio.gather(*(asyncio.shield(task) for task in looking))

    async def drain(self) -> None:
        """Stops fetching: nothing more is begun, and the next start fetches again."""
        for looking in self._looking.values():
            looking.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)


#: Masks can't recognise a secret that a cut divides, so this many characters beside it are masked and then left out: a
#: private key of 8,192 bits has 6,400.
_TORN: Final = 8_192
#: The characters left for the note, and for the names of attachments that history adds behind a text.
_ROOM: Final = 2_000


class KeptText(NamedTuple):
    """A text as it is kept, and as it was said.

    `length` is the whole length in characters of a shortened text, else 0. Such a text is given masked in both forms:
    a cut through a secret would leave a half of it that nothing recognises.
    """

    masked: str
    original: str
    length: int = 0


def as_kept(text: str, most: int, *, clean: Callable[[str], str], redact: Callable[[str], str]) -> KeptText:
    """Returns `text` without hidden characters and with its secrets masked, shortened if it is longer than `most`.

    `clean` removes hidden characters, `redact` masks secrets.
    """
    if len(text) <= most:
        original = clean(text)
        return KeptText(redact(original), original)
    side = (most - min(_ROOM, most // 4)) // 2
    torn = _TORN if len(text) > side + _TORN else 0
    head, tail = redact(clean(text[: side + _TORN])), redact(clean(text[-side - _TORN :]))
    note = f"\n[… {len(text) - 2 * side} characters left out …]\n"
    masked = head[: max(0, len(head) - torn)][:side] + note + tail[torn:][-side:]
    return KeptText(masked, masked, len(text))
