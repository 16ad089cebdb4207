"""The gateway's view of a chat platform: values in, values out, one protocol.

Invariants: updates never leave `channels/`. An `Inbound` is plain data that round-trips through JSON, so that it can
wait in the mailbox across a restart. `Host.on_inbound` returns only after the message is committed, and only then may
a channel acknowledge the message to its platform. An error raised by a channel tells whether the message was surely
not shown.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

ChatKind: TypeAlias = Literal["private", "group"]
#: The kinds of attachment. "other" has no bytes, or none that say anything: a place on a map, a poll, a sticker.
#: A "preview" is what a platform shows of a link in the text, in another's words.
AttachmentKind: TypeAlias = Literal["image", "audio", "video", "file", "other", "preview"]
#: Whose words are quoted: the bot's, those of the person who quotes them, or another's.
Whose: TypeAlias = Literal["bot", "self", "other"]
#: What is quoted. A "part" was chosen by the person, "elsewhere" is a message in another chat, "opening" the one that a
#: thread began with, "gone" one that was deleted, and "withheld" one whose author does not want it read.
QuotedKind: TypeAlias = Literal[
    "message", "part", "elsewhere", "story", "task", "option", "opening", "gone", "withheld"
]

#: Version of the JSON form of `Inbound`; raised when a field changes its meaning.
INBOUND_VERSION = 1
#: Fields of an `Inbound` that are not written down.
_UNKEPT = ("instructions", "earlier", "anonymous")
#: Stands for "no thread" in a session key; a thread with that very name is escaped.
NO_THREAD = "-"
#: Skin tones, and the mark that a character is shown as a picture.
_SHADES = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")


class ChannelError(Exception):
    """Raised when a platform refused something or could not do it. `reason` is written for the operator.

    `certain` is True if the message was surely *not* shown. A row whose send failed with `certain=False` becomes
    `unknown` and is never blindly repeated.
    """

    code = "channel"
    retryable = False

    def __init__(self, message: str, *, certain: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = message
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
    """The chat exists but its thread is closed or deleted. Its messages must not be shown elsewhere in the chat."""

    code = "place_gone"


class Muted(ChannelError):
    """The bot is in the chat but may not write there, until somebody gives it the right to."""

    code = "muted"


class EditGone(ChannelError):
    """The message to be edited no longer exists, or can't be edited; saying it anew is safe."""

    code = "edit_gone"


class TooLarge(ChannelError):
    """A file or attachment has more bytes than allowed; no part of it is kept or shown."""

    code = "too_large"


class Moved(ChannelError):
    """The chat goes on under another id (a Telegram group that became a supergroup); nothing was shown."""

    code = "moved"

    def __init__(self, message: str, *, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class NotTaken(ChannelError):
    """The gateway could not commit a message. The channel must not acknowledge it to the platform.

    If the platform has no acknowledgement, the channel shows `str()` to the person; it is written for them. `reason`
    names paths and statements, so only the operator may see it.
    """

    code = "not_taken"
    retryable = True

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a message: a chat on a configured channel, perhaps a thread inside it."""

    channel: str
    chat: str
    thread: str | None = None

    @property
    def session_key(self) -> str:
        """`channel:chat:thread`, with each part percent-escaped so that any platform id round-trips."""
        thread = NO_THREAD if self.thread is None else _escape(self.thread)
        return f"{_escape(self.channel)}:{_escape(self.chat)}:{thread}"

    @classmethod
    def from_session_key(cls, key: str) -> Place:
        """Returns the place of a `session_key`; raises `ValueError` for anything else."""
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
    """An attachment of a message: a file, a voice message, a place on a map.

    `name` is the file's name, or a word or two that say what it is. `size` is in bytes as the platform tells it, or
    None. `reference` is what `Channel.fetch` needs to find the bytes; it is empty if there are none. `spoken` is True
    for a voice message: its words are the person's own. `text` is what something without bytes says beside its name:
    the tasks of a list, the options of a poll.
    """

    kind: AttachmentKind
    name: str = ""
    media_type: str = ""
    size: int | None = None
    reference: str = ""
    spoken: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """The words that a message answers. It does not say them: nothing in it is the word of the person who quotes it.

    `author` is a name, and `author_id` the platform's id of a person; both may be empty.
    """

    whose: Whose = "other"
    kind: QuotedKind = "message"
    author: str = ""
    author_id: str = ""
    text: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message from a person, in terms that all platforms share.

    `update_key` is unique per (platform, bot), which makes a repeated delivery harmless, and holds `message_id`, by
    which an edit knows that the message was taken. `sent_at` is the platform's own time in milliseconds since 1970 UTC.
    `addressed` is False for group talk not meant for the bot. `author_id` is empty if no person speaks: a channel's
    post, or an admin who stays `anonymous` and writes for the group itself. With `edited` the text is the new text of
    the message `message_id`. `pressed` is the data of the button that was pressed on `message_id`; the text is then
    empty. `server` is the larger place that the chat belongs to, on platforms that have servers. `ticket` lets the
    channel answer this very message in place or in private; it is opaque and a secret. `language` is the code of the
    language in which the author uses the platform, such as "pt-BR"; empty if it doesn't say. With `task` nobody said
    this now: it is the text of the author's task with this id, whose time has come, or of a standing task if that is 0.
    `instructions` are the wishes of the author's program for this answer alone. `earlier` holds the words said before
    in a conversation that this is a branch of, as pairs of role and text; with `told` this text was said before, too.
    `instructions` and `earlier`, which a program brings with each of its requests, are in RAM only: they may hold words
    that were forgotten here. `as_admin` is the page's word that its visitor signed in lately enough to use the rights
    of the account they signed in with. `length` is that of the text as it was sent, in characters, if it
    was too long and was shortened when it was taken; else 0. `reply_to` is the id of the message in this chat that is
    answered, `quoted` what is known of it. `forwarded_from` is who said a forwarded message, if that is known.
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
    thread_title: str = ""
    reply_to: str | None = None
    quoted: Quoted | None = None
    addressed: bool = True
    forwarded: bool = False
    forwarded_from: str = ""
    edited: bool = False
    pressed: str | None = None
    attachments: tuple[Attachment, ...] = ()
    server: str | None = None
    ticket: str = ""
    language: str = ""
    anonymous: bool = False
    task: int | None = None
    instructions: str = ""
    earlier: tuple[tuple[str, str], ...] = ()
    told: bool = False
    as_admin: bool = False
    length: int = 0

    @property
    def place(self) -> Place:
        return Place(channel=self.channel, chat=self.chat, thread=self.thread)

    @property
    def brings(self) -> bool:
        """True if there is something beside its own words."""
        return self.fetches or self.forwarded or self.quoted is not None

    @property
    def fetches(self) -> bool:
        return bool(self.attachments or (self.quoted is not None and self.quoted.attachments))

    @property
    def is_empty(self) -> bool:
        return not self.text.strip() and not self.attachments

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in _UNKEPT}
        fields["attachments"] = [asdict(attachment) for attachment in self.attachments]
        fields["quoted"] = None if self.quoted is None else asdict(self.quoted)
        return json.dumps({"version": INBOUND_VERSION, **fields}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Inbound:
        """Reads the form that `to_json` writes. Raises `ValueError` for another version: a newer Remora wrote it."""
        fields = json.loads(text)
        version = fields.pop("version", None)
        if version != INBOUND_VERSION:
            raise ValueError(f"stored message has version {version}, this Remora reads {INBOUND_VERSION}")
        quoted = fields.pop("quoted", None)
        return cls(**_with_attachments(fields), quoted=None if quoted is None else Quoted(**_with_attachments(quoted)))


def _with_attachments(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"attachments": tuple(Attachment(**attachment) for attachment in fields.get("attachments", ()))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A text that fits in one physical message. `markup` is its formatting, for its channel alone, or ""."""

    text: str
    markup: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button under a message. `data` comes back as `Inbound.pressed`; it is at most 64 bytes of ASCII."""

    label: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file to show to people. The ending of `name` tells its type."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """A physical message to show: one outbox row.

    `id` is the outbox row's id and stable across restarts, so platforms with idempotency keys get it; it is 0 for a
    refusal, which is kept nowhere and sent once. `turn` names the turn whose stream this row completes. `earlier_run`
    is True if a process that has since ended wrote the row: the person may already have seen it. `edits` is the
    platform's id of a message that is to become this one; repeating such an edit changes nothing. `reply_to` is the
    platform's id of the message that is answered. `ticket` is that of the `Inbound` it answers. `chunk` counts the
    messages of one answer from 0. `made_at` is when the row was made (milliseconds UTC). With `retried` it may have
    been shown before. `file` is shown with the text; a row with a file edits nothing.
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
    """An option after a command's name, in the order of the table.

    `help` is in the installation's language; `translated` holds it by language code ("en", "zh", …). With `choices` the
    value is one of these words. With `suggests` the host completes what is typed. The last option takes the rest of
    the line.
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

    A command for an `admin` is offered to admins alone, a `private` command only in private chats. The answer is for
    the asker's eyes if the platform can hide it, unless the command is `shared`. With `forms` the host may ask for
    what is missing.
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
    """A completion of an option: `value` is put in, `label` is shown for it."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form with one text field of at most `limit` characters. The entered text is put after the form's command."""

    title: str
    label: str
    value: str = ""
    limit: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A path at which a platform delivers updates over HTTP, in bodies of at most `limit` bytes.

    `is_genuine` returns whether the platform itself delivers, by the headers alone; else no body is read. `take` gets
    the headers, with names in lower case, and the body, and returns the status to answer with. It returns only when the
    delivery is committed.
    """

    path: str
    limit: int
    is_genuine: Callable[[Mapping[str, str]], bool]
    take: Callable[[Mapping[str, str], bytes], Awaitable[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a platform. Delivery decides by these, never by a platform's name.

    `stream` is "append" where shown text can only grow (a terminal), "edit" where a placeholder is edited while the
    answer grows, and "none" where answers come whole. `resend` decides about a row whose fate is unknown: "mark"
    shows it once more, marked as earlier; "same" sends it again, because the channel recognises a message by its
    row's id; "never" does not guess, and offers to show it again. `buttons` is True if people can press
    `Outbound.buttons`; elsewhere they type. `revise_seconds` is the least time between two edits of one placeholder.
    `burst_seconds` is how long to wait for more lines of the same author; None takes the configured value.
    `introduces` is True if the first answer may be followed by a word about the bot. `hidden` is True if the answer
    to a command given in a group can be for the asker's eyes alone. `direct` is True if the id of a person's private
    chat is their user id. Files of at most `file_bytes` bytes can be shown; with 0 none can. A growing answer is shown
    after `shows_after` seconds; None takes the configured value. `marks` is True if a message is marked while its
    answer is made, as nothing else shows that but "typing". `comes_and_goes` is True if nothing is wrong when a
    row waits, because it is shown only while the person looks. `lists` is True if people have a list of conversations
    with titles, which `Channel.relist` shows anew.
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
    shows_after: float | None = None
    marks: bool = False
    comes_and_goes: bool = False
    lists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a channel.

    `contact` is when its platform last answered a request for updates (milliseconds UTC); it is None before the first
    answer, or if the channel makes no such requests. `trouble` tells the operator what is wrong now; it is empty if
    all is well. `unread` counts the updates of which something could not be read since the start.
    """

    contact: int | None = None
    trouble: str = ""
    unread: int = 0


class Host(Protocol):
    """The gateway's services for a channel. A host that inherits from here keeps the methods whose default suffices."""

    @property
    def commands(self) -> Sequence[CommandSpec]:
        """All commands; those for admins are marked as such."""
        return ()

    def admins(self, channel: str) -> Sequence[str]:
        return ()

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        """Returns completions of the option that is being typed, best first, at most 25. Nothing is kept."""
        return ()

    async def form(self, inbound: Inbound) -> Form | None:
        """Returns the form to fill in before this command can be run, or None if it can be run as it is."""
        return None

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        """Returns the values kept for the channel under names with that prefix. Raises `NotTaken`."""

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        """Keeps these values for the channel with this id, across restarts; None drops a name. Raises `NotTaken`."""

    async def on_inbound(self, inbound: Inbound) -> None:
        """Takes a message. Returns after it is committed or refused with a reply; raises `NotTaken` otherwise."""
        return

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        """Tells that `chat` of the channel with the id `channel` goes on as `new_chat`. Raises `NotTaken`."""
        return

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        """Tells that the bot was let into a chat, or blocked or removed from it. Raises `NotTaken`."""
        return

    async def on_rights(
        self, channel: str, chat: str, *, write: bool, threads: Collection[str | None] | None = None
    ) -> None:
        """Tells that the bot may not write in a chat, or may now. Raises `NotTaken`.

        With `threads` it may write in these alone; None among them is the chat outside of its threads.
        """
        return

    async def on_reacted(self, inbound: Inbound, reaction: Reaction, *, kept: bool) -> None:
        """Tells how the author of `inbound` reacts to the message it names, or does no more, if not `kept`.

        The thread may be unknown. Raises `NotTaken`.
        """
        return

    async def on_previews(self, inbound: Inbound) -> None:
        """Tells the previews of links, which `inbound` has, of a message that was said before. Raises `NotTaken`."""
        return

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        """Tells that these messages were deleted on the platform. Raises `NotTaken`."""
        return

    async def stop(self, place: Place) -> bool:
        """Stops the answer that is being made at `place`, as /stop does. Returns False if none is being made."""
        return False

    async def settled(self, place: Place) -> None:
        """Waits until everything said at `place` so far is answered and delivered."""
        return


class Channel(Protocol):
    """An adapter to one chat platform. A channel that inherits from here keeps the methods whose default suffices."""

    @property
    def id(self) -> str:
        """The configured channel's id, which is the first part of its session keys."""

    @property
    def platform(self) -> str:
        """The platform's name, shared by all bots on it."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def receives_alone(self) -> bool:
        """True if the platform lets only one process receive, so that several of them have to take turns."""
        return False

    def reachable(self, place: Place) -> bool:
        """Returns whether this run can show rows for `place`; by default any. Others wait in the outbox."""
        return place.channel == self.id

    def health(self) -> Health:
        return Health()

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        """Returns `text` as the physical messages it takes here, at least one. A pure function.

        With `markdown` its formatting is turned into the platform's, else every character is shown as it is. By
        default it is one message of any length.
        """
        return [Chunk(text=text)]

    def warm_up(self) -> None:
        """Builds what the first update would otherwise build in the event loop. May run in any thread."""
        return

    async def run(self, host: Host) -> None:
        """Receives until the platform ends it or the task is cancelled. Raises `ChannelError`."""
        return

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Shows the next piece of a growing answer. Called only if `capabilities.stream` is "append"."""
        return

    def drafts(self, place: Place) -> bool:
        """Returns whether a growing answer is shown here without a message, so that `revise` needs no placeholder."""
        return False

    def hook(self) -> Hook | None:
        """Returns the path at which updates come in over HTTP while `run` runs; None if they don't."""
        return None

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        """Returns the bytes of an attachment. Raises `TooLarge` above `limit` bytes, else `ChannelError`."""
        raise ChannelError("this channel has no attachments")

    async def revise(self, place: Place, reference: str, text: str) -> None:
        """Shows `text`, the Markdown of the answer so far, in place of the placeholder `reference`.

        Called only if `capabilities.stream` is "edit". If the channel `drafts`, the reference is the turn's id in
        digits. A piece may be left out; nothing is raised.
        """
        return

    def link(self, place: Place, message_id: str) -> str | None:
        """Returns the address at which people who can see the place find one of its messages; None if there is none."""
        return None

    def names(self, place: Place) -> tuple[str, str]:
        """Returns the names of the place's server and thread; "" for each that it has not, or that is not known."""
        return "", ""

    async def typing(self, place: Place) -> None:
        """Shows for some seconds that an answer is being made, if the platform can. Raises nothing."""
        return

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        """Marks a message as being answered, or takes the mark away, if `capabilities.marks`. Raises `ChannelError`."""
        return

    def relist(self, place: Place) -> None:
        """Shows anew the list of conversations that a place belongs to, if the platform has one."""
        return

    async def send(self, outbound: Outbound) -> str:
        """Shows or edits (`outbound.edits`) a message; returns its id. If not `certain`, an error may have shown it."""
        ...


def rows(buttons: Sequence[Button]) -> list[tuple[Button, ...]]:
    """Returns `buttons` as rows that stay readable on a phone: at most five in a row, and about thirty letters."""
    laid: list[list[Button]] = []
    for button in buttons:
        row = laid[-1] if laid else []
        if not row or len(row) == 5 or sum(len(one.label) + 2 for one in row) + len(button.label) > 30:
            laid.append([button])
        else:
            row.append(button)
    return [tuple(row) for row in laid]


#: The sign on a message that is being answered.
EYES: Final = "👀"


@dataclass(frozen=True, slots=True)
class Reaction:
    """The meaning of an emoji under a message: its person likes it (`good`) or not, or answers a question with it."""

    good: bool | None
    yes: bool | None


_REACTIONS: Final = {
    "👍": Reaction(True, True),
    "❤": Reaction(True, None),
    "✅": Reaction(None, True),
    "👎": Reaction(False, False),
    "❌": Reaction(None, False),
}


def reaction_of(emoji: str) -> Reaction | None:
    return _REACTIONS.get(_SHADES.sub("", emoji))


@lru_cache(4_096)
def _escape(part: str) -> str:
    if part == NO_THREAD:
        return "%2D"
    return quote(part, safe="-_.~@+", errors="surrogatepass")


#: The prefix of the bytes in a reference.
_BYTES: Final = "b64:"
_KINDS: Final[dict[str, AttachmentKind]] = {"image": "image", "audio": "audio", "video": "video"}


def carrying(name: str, media_type: str, data: bytes | memoryview) -> Attachment:
    kind = _KINDS.get(media_type.partition("/")[0], "file")
    reference = _BYTES + base64.b64encode(data).decode("ascii")
    return Attachment(kind=kind, name=name, media_type=media_type, size=len(data), reference=reference)


def carried(attachment: Attachment, *, limit: int) -> bytes:
    """Returns the bytes that an attachment holds. Raises `TooLarge` above `limit` bytes, else `ChannelError`."""
    if not attachment.reference.startswith(_BYTES):
        raise ChannelError("this attachment has no bytes")
    try:
        data = binascii.a2b_base64(attachment.reference[len(_BYTES) :], strict_mode=True)
    except binascii.Error as exc:
        raise ChannelError("the bytes of this attachment can't be read") from exc
    if len(data) > limit:
        raise TooLarge(f"{attachment.name} has {len(data)} bytes, more than the {limit} that are read")
    return data
