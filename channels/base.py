"""What every chat platform looks like to the gateway: values in, values out, one protocol.

Invariants: updates never leave `channels/`; an `Inbound` is plain data that round-trips through JSON, so that it
can wait in the mailbox across a restart; `Host.on_inbound` returns only after the message is committed, and only
then may a channel acknowledge it to its platform.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

ChatKind: TypeAlias = Literal["private", "group"]

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
    """The platform can't be reached now; trying again later may work."""

    code = "channel_unavailable"
    retryable = True


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
class Inbound:
    """One message from a person, in the words every platform shares.

    `update_key` is unique per (platform, bot) and is what makes a delivery repeat harmless. `sent_at` is the
    platform's own time in milliseconds since 1970 UTC. `addressed` is False for group talk not meant for the bot.
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

    @property
    def place(self) -> Place:
        return Place(channel=self.channel, chat=self.chat, thread=self.thread)

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"version": INBOUND_VERSION, **fields}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Inbound:
        """Raises `ValueError` for another version: a newer Remora wrote it."""
        fields = json.loads(text)
        version = fields.pop("version", None)
        if version != INBOUND_VERSION:
            raise ValueError(f"stored message has version {version}, this Remora reads {INBOUND_VERSION}")
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One physical message to show: one outbox row.

    `id` is the outbox row's id and stable across restarts, so platforms that know idempotency keys get it.
    `turn` names the turn whose stream this row completes. `earlier_run` is set when the row was written by a
    process that has since ended: the person may already have seen it.
    """

    id: int
    place: Place
    text: str
    turn: int | None = None
    reply_to: str | None = None
    earlier_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command as a channel offers it to people: `/name` with a one-line help."""

    name: str
    help: str
    usage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do; delivery decides by these, never by a platform's name.

    `stream` is "append" where shown text can only grow (a terminal) and "none" where answers come whole.
    `resend` says what to do with a row whose fate is unknown: "mark" shows it once more, marked as earlier.
    `burst_seconds` is how long to wait for more lines of the same author; None takes the configured value.
    """

    stream: Literal["append", "none"] = "none"
    resend: Literal["mark", "never"] = "never"
    burst_seconds: float | None = None


class Host(Protocol):
    """What the gateway offers a channel."""

    @property
    def commands(self) -> Sequence[CommandSpec]:
        """The commands people may type here."""

    async def on_inbound(self, inbound: Inbound) -> None:
        """Take a message; returns after it is committed (or refused with a reply of its own).

        Raises `NotTaken` when it could not be committed.
        """

    async def settled(self, place: Place) -> None:
        """Wait until everything said at `place` so far is answered and delivered."""


class Channel(Protocol):
    """An adapter to one chat platform."""

    @property
    def id(self) -> str:
        """The configured channel's id; first part of its session keys."""

    @property
    def platform(self) -> str:
        """The platform's name, shared by all bots on it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def reachable(self, place: Place) -> bool:
        """Whether rows for `place` can be shown by this run; others wait in the outbox."""

    async def run(self, host: Host) -> None:
        """Receive until the platform ends it or the task is cancelled."""

    async def append(self, place: Place, turn: int, text: str) -> None:
        """Show the next piece of a growing answer. Only called where `capabilities.stream` is "append"."""

    async def send(self, outbound: Outbound) -> str:
        """Show one message; returns the platform's id for it. Raises `ChannelError`."""


@lru_cache(4_096)
def _escape(part: str) -> str:
    if part == NO_THREAD:
        return "%2D"
    return quote(part, safe="-_.~@+", errors="surrogatepass")
