"""What every chat platform looks like to the gateway: values in, values out, one protocol.

Invariants: updates never leave `channels/`; an `Inbound` is plain data that round-trips through JSON, so that it
can wait in the mailbox across a restart; `Host.on_inbound` returns only after the message is committed, and only
then may a channel acknowledge it to its platform; what a channel raises tells whether the message was surely not
shown.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

ChatKind: TypeAlias = Literal["private", "group"]
#: "other" is what has no bytes, or none that say anything: a place on a map, a poll, a sticker.
AttachmentKind: TypeAlias = Literal["image", "audio", "video", "file", "other"]

#: Version of the JSON form of `Inbound`; raised when a field changes its meaning.
INBOUND_VERSION = 1
#: Stands for "no thread" in a session key; a thread that is really called so is escaped.
NO_THREAD = "-"


class ChannelError(Exception):
    """Something a platform refused or could not do. `str()` is written for the operator.

    `certain` tells whether the message was surely *not* shown: a row whose send failed with `certain=False`
    becomes `unknown` and is never blindly repeated.
    """

    code = "channel"
    retryable = False

    def __init__(self, message: str, *, certain: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.certain = certain
        self.retry_after = retry_after


class ChannelUnavailable(ChannelError):
    """The platform can't be reached now, or asks to wait; trying again later may work."""

    code = "channel_unavailable"
    retryable = True


class ChannelRefused(ChannelError):
    """The platform does not let this bot in: the token is wrong or a right is missing. Only the operator can help."""

    code = "channel_refused"


class Blocked(ChannelError):
    """Nothing can be said in this chat any more: the bot was blocked or removed, or the chat is gone."""

    code = "blocked"


class PlaceGone(ChannelError):
    """The chat is there but its thread is closed or deleted. Nothing of it may be said elsewhere in the chat."""

    code = "place_gone"


class EditGone(ChannelError):
    """The message to be edited is not there any more, or can't be edited; saying it anew is safe."""

    code = "edit_gone"


class TooLarge(ChannelError):
    """A file or attachment has more bytes than are allowed; nothing of it is kept or shown."""

    code = "too_large"


class Moved(ChannelError):
    """The chat goes on under another id (a Telegram group that became a supergroup); nothing was shown."""

    code = "moved"

    def __init__(self, message: str, *, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class NotTaken(ChannelError):
    """The gateway could not commit a message. It must not be acknowledged to the platform; where that means

    nothing, the person is shown `str()`, which is written for them.
    """

    code = "not_taken"
    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a message is said: a chat on a configured channel, perhaps a thread inside it."""

    channel: str
    chat: str
    thread: str | None = None

    @property
    def session_key(self) -> str:
        """`channel:chat:thread`, parts percent-escaped so that any platform id round-trips."""
        thread = NO_THREAD if self.thread is None else _escape(self.thread)
        return f"{_escape(self.channel)}:{_escape(self.chat)}:{thread}"

    @classmethod
    def from_session_key(cls, key: str) -> Place:
        """The inverse of `session_key`; raises `ValueError` for anything else."""
        parts = key.split(":")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"not a session key: {key!r} (expected channel:chat:thread)")
        channel, chat, thread = parts
        return cls(
            channel=unquote(channel, errors="surrogatepass"),
            chat=unquote(chat, errors="surrogatepass"),
            thread=None if thread == NO_THREAD else unquote(thread, errors="surrogatepass"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Something that came beside the words of a message.

    `name` is the file's name, or says in a word or two what it is. `size` is in bytes, as the platform tells it, None
    where it does not. `reference` is what `Channel.fetch` finds the bytes by; empty where there are none. `spoken`
    marks a voice message: what it says is what the person said.
    """

    kind: AttachmentKind
    name: str = ""
    media_type: str = ""
    size: int | None = None
    reference: str = ""
    spoken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One message from a person, in the words every platform shares.

    `update_key` is unique per (platform, bot) and is what makes a delivery repeat harmless. `sent_at` is the
    platform's own time in milliseconds since 1970 UTC. `addressed` is False for group talk not meant for the bot.
    `author_id` is empty where no person speaks: an anonymous admin, a channel's post. With `edited` this is the new
    text of the message `message_id`. `pressed` is the data of the button that was pressed on `message_id`; the text
    is empty then. `server` is the larger place that the chat belongs to, where a platform has such. `ticket` is what
    lets its channel answer this very message in place or in private: opaque, and a secret.
    """

    channel: str
    platform: str
    bot_id: str
    update_key: str
    chat: str
    chat_kind: ChatKind
    author_id: str
    author_name: str
    message_id: str
    text: str
    sent_at: int
    thread: str | None = None
    chat_title: str = ""
    reply_to: str | None = None
    addressed: bool = True
    forwarded: bool = False
    edited: bool = False
    pressed: str | None = None
    attachments: tuple[Attachment, ...] = ()
    server: str | None = None
    ticket: str = ""

    @property
    def place(self) -> Place:
        return Place(channel=self.channel, chat=self.chat, thread=self.thread)

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["attachments"] = [asdict(attachment) for attachment in self.attachments]
        return json.dumps({"version": INBOUND_VERSION, **fields}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Inbound:
        """Raises `ValueError` for another version: a newer Remora wrote it."""
        fields = json.loads(text)
        version = fields.pop("version", None)
        if version != INBOUND_VERSION:
            raise ValueError(f"stored message has version {version}, this Remora reads {INBOUND_VERSION}")
        attachments = tuple(Attachment(**attachment) for attachment in fields.pop("attachments", ()))
        return cls(**fields, attachments=attachments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A text that fits in one physical message, as it is read there.

    `markup` is how it is formatted, in words only its channel understands (JSON); empty for plain text.
    """

    text: str
    markup: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """Something to press under a message. `data` comes back as `Inbound.pressed`; at most 64 bytes of ASCII."""

    label: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file to show to people; `name` ends in what kind it is."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One physical message to show: one outbox row.

    `id` is the outbox row's id and stable across restarts, so platforms that know idempotency keys get it.
    `turn` names the turn whose stream this row completes. `earlier_run` is set when the row was written by a
    process that has since ended: the person may already have seen it. `edits` is the platform's id of a message
    that is to become this one; repeating such an edit changes nothing. `reply_to` is the platform's id of the
    message that is answered. `ticket` is that of the `Inbound` it answers, `chunk` counts the messages of one answer
    from 0, `made_at` is when the row was made (milliseconds UTC), and with `retried` it may have been shown before.
    `file` is shown with the text; such a row edits nothing.
    """

    id: int
    place: Place
    text: str
    markup: str = ""
    buttons: tuple[Button, ...] = ()
    turn: int | None = None
    reply_to: str | None = None
    edits: str | None = None
    earlier_run: bool = False
    ticket: str = ""
    chunk: int = 0
    made_at: int = 0
    retried: bool = False
    file: File | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing that may stand behind a command's name, in the order of the table.

    `help` is in the installation's language, `translated` holds it by language code ("en", "zh"). With `choices` it is
    one of these words; with `suggests` the host completes what is typed. The last option takes the rest of the line.
    """

    name: str
    help: str
    translated: Mapping[str, str] = field(default_factory=dict)
    required: bool = False
    choices: tuple[str, ...] = ()
    suggests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command as a channel offers it to people: `/name` with a one-line help, in languages as in `Option`.

    One for an `admin` is offered to them alone, and a `private` one only in private chats. The answer is for the
    asker's eyes, where the platform can, unless it is `shared`. With `forms` the host may ask for what is missing.
    """

    name: str
    help: str
    usage: str = ""
    translated: Mapping[str, str] = field(default_factory=dict)
    options: tuple[Option, ...] = ()
    admin: bool = False
    private: bool = False
    shared: bool = False
    forms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One way to complete an option: what is put in, and what is shown for it."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One text field to fill in, at most `limit` characters. What is entered is put behind the command it is for."""

    title: str
    label: str
    value: str = ""
    limit: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A path at which a platform delivers updates over HTTP: bodies of at most `limit` bytes.

    `take` gets the headers, names in lower case, and the body, and gives the status to answer with; it returns only
    when what came in is committed.
    """

    path: str
    limit: int
    take: Callable[[Mapping[str, str], bytes], Awaitable[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do; delivery decides by these, never by a platform's name.

    `stream` is "append" where shown text can only grow (a terminal), "edit" where a placeholder is edited while the
    answer grows, and "none" where answers come whole. `resend` says what to do with a row whose fate is unknown:
    "mark" shows it once more, marked as earlier; "same" sends it again, for the channel knows a message by its row's
    id; "never" does not guess, and offers to show it again. `buttons` tells whether people can press
    `Outbound.buttons`; elsewhere they type. `revise_seconds` is the least time between two edits of one placeholder.
    `burst_seconds` is how long to wait for more lines of the same author; None takes the configured value.
    `introduces` is True where the first answer may be followed by a word about the bot. `hidden` tells that the answer
    to a command given in a group can be for the asker's eyes alone; `direct` that a person's private chat has their
    user id. Files of at most `file_bytes` can be shown; none where it is 0.
    """

    stream: Literal["append", "edit", "none"] = "none"
    resend: Literal["mark", "same", "never"] = "never"
    buttons: bool = False
    introduces: bool = False
    revise_seconds: float = 1.5
    burst_seconds: float | None = None
    hidden: bool = False
    direct: bool = False
    file_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a channel stands.

    `contact` is when its platform last answered a request for updates (milliseconds UTC), None before the first time
    or where nobody is asked for any; `trouble` says, for the operator, what is wrong now, and is else empty.
    """

    contact: int | None = None
    trouble: str = ""


class Host(Protocol):
    """What the gateway offers a channel."""

    @property
    def commands(self) -> Sequence[CommandSpec]:
        """All commands there are, those for admins marked as such."""

    def admins(self, channel: str) -> Sequence[str]:
        """The user ids of a channel's admins."""

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        """Completions of the command's option that is being typed, best first, at most 25; a read.

        `inbound` is the command as far as it stands, and is not kept. Nothing for who may not speak here.
        """

    async def form(self, inbound: Inbound) -> Form | None:
        """What to ask for before this command, which is not kept, can be done; None when it can be done as it is."""

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        """What the channel had `keep` remember under names with that prefix. Raises `NotTaken`."""

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        """Remember these for the channel with this id, across restarts; None drops a name. Raises `NotTaken`."""

    async def on_inbound(self, inbound: Inbound) -> None:
        """Take a message; returns after it is committed (or refused with a reply of its own).

        Raises `NotTaken` when it could not be committed.
        """

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        """The chat `chat` of the channel with the id `channel` goes on as `new_chat`. Raises `NotTaken`."""

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        """The bot was let into a chat, or blocked or removed from it. Raises `NotTaken`."""

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        """These messages were deleted on the platform. Raises `NotTaken`."""

    async def settled(self, place: Place) -> None:
        """Wait until everything said at `place` so far is answered and delivered."""


class Channel(Protocol):
    """An adapter to one chat platform. Where it says so, a channel that inherits from here need not do more."""

    @property
    def id(self) -> str:
        """The configured channel's id; first part of its session keys."""

    @property
    def platform(self) -> str:
        """The platform's name, shared by all bots on it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def reachable(self, place: Place) -> bool:
        """Whether rows for `place` can be shown by this run; others wait in the outbox. Every place of this channel."""
        return place.channel == self.id

    def health(self) -> Health:
        """Nothing to complain of."""
        return Health()

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        """`text` as the physical messages it takes here, at least one; a pure function.

        With `markdown` its formatting is turned into the platform's, else every character is shown as it is. One
        message of any length.
        """
        return [Chunk(text=text)]

    async def run(self, host: Host) -> None:
        """Receive until the platform ends it or the task is cancelled. Raises `ChannelError`."""
        return

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Show the next piece of a growing answer. Only called where `capabilities.stream` is "append"."""
        return

    def drafts(self, place: Place) -> bool:
        """Whether a growing answer is shown here without a message of its own: then `revise` needs no placeholder."""
        return False

    def hook(self) -> Hook | None:
        """Where updates come in over HTTP while `run` runs; None where they don't."""
        return None

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        """The bytes of an attachment of `inbound`. Raises `TooLarge` above `limit` bytes, else `ChannelError`."""
        raise ChannelError("this channel has no attachments")

    async def revise(self, place: Place, reference: str, text: str) -> None:
        """Show `text`, Markdown as far as the answer has come, in place of the placeholder `reference`.

        Only called where `capabilities.stream` is "edit". Where it `drafts` the reference is the turn's id in digits.
        A piece may be left out; nothing is raised.
        """
        return

    def link(self, place: Place, message_id: str) -> str | None:
        """The address under which people who can see the place find one of its messages; None where there is none."""
        return None

    async def typing(self, place: Place) -> None:
        """Show for some seconds that an answer is being made, where the platform can. Raises nothing."""
        return

    async def send(self, outbound: Outbound) -> str:
        """Show one message, or turn the message `outbound.edits` into it; returns the platform's id for it.

        Raises `ChannelError` with `certain` False when it may have been shown nevertheless.
        """
        ...


def rows(buttons: Sequence[Button]) -> list[tuple[Button, ...]]:
    """`buttons` as rows that stay readable on a phone: at most five in one, and about thirty letters."""
    laid: list[list[Button]] = []
    for button in buttons:
        row = laid[-1] if laid else []
        if not row or len(row) == 5 or sum(len(one.label) + 2 for one in row) + len(button.label) > 30:
            laid.append([button])
        else:
            row.append(button)
    return [tuple(row) for row in laid]


@lru_cache(4_096)
def _escape(part: str) -> str:
    if part == NO_THREAD:
        return "%2D"
    return quote(part, safe="-_.~@+", errors="surrogatepass")
