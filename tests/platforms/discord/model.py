"""The things a Discord is made of, and the JSON in which its API gives them.

Invariants: ids are integers here and strings on the wire; a thing that is deleted stays, marked; the address of a file
is made anew, with a new date of expiry, each time its message is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

JSON: TypeAlias = dict[str, Any]

#: The first millisecond of Discord's ids.
EPOCH_MS = 1_420_070_400_000
TEXT, DM, VOICE, NEWS, NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD, FORUM, MEDIA = 0, 1, 2, 5, 10, 11, 12, 15, 16
THREADS = frozenset({NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD})
POSTS = frozenset({FORUM, MEDIA})
#: Message types and flags of which something here depends.
DEFAULT, THREAD_CREATED, REPLY, COMMAND_ANSWER, THREAD_STARTER = 0, 18, 19, 20, 21
SUPPRESS_EMBEDS, HAS_THREAD, EPHEMERAL, LOADING, VOICE_MESSAGE, HAS_SNAPSHOT = 4, 32, 64, 128, 8_192, 16_384
#: Permissions.
ADMINISTRATOR, MANAGE_GUILD, VIEW, SEND, MANAGE_MESSAGES, HISTORY = 1 << 3, 1 << 5, 1 << 10, 1 << 11, 1 << 13, 1 << 16
ADD_REACTIONS, ATTACH, MANAGE_THREADS = 1 << 6, 1 << 15, 1 << 34
CREATE_THREADS, SEND_IN_THREADS = 1 << 35, 1 << 38
PERMISSIONS: Mapping[str, int] = {
    "view": VIEW,
    "send": SEND,
    "react": ADD_REACTIONS,
    "attach": ATTACH,
    "history": HISTORY,
    "manage_messages": MANAGE_MESSAGES,
    "manage_threads": MANAGE_THREADS,
    "create_threads": CREATE_THREADS,
    "send_in_threads": SEND_IN_THREADS,
}
#: The rights of an ordinary member, and of the bot. 1<<14 embeds, 31 application commands.
MEMBER = VIEW | SEND | HISTORY | SEND_IN_THREADS | CREATE_THREADS | ATTACH | ADD_REACTIONS | 1 << 14 | 1 << 31
EVERYTHING = (1 << 52) - 1
#: The most bytes of a file a bot can attach.
BIGGEST_FILE = 10 * 1024 * 1024
#: Seconds for which the address of a file holds.
FILE_LIFE = 86_400

#: A block or span of code.
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_MENTIONS = re.compile(r"<@!?(\d{1,20})>")
_ROLE_MENTIONS = re.compile(r"<@&(\d{1,20})>")


class Refused(Exception):
    """The API says no: an HTTP status, Discord's own code, its words, and for a form what is wrong where."""

    def __init__(self, status: int, code: int, message: str, errors: JSON | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    def wire(self) -> JSON:
        told: JSON = {"message": self.message, "code": self.code}
        if self.errors:
            told["errors"] = self.errors
        return told


def bad_form(where: str, message: str, code: str = "BASE_TYPE_BAD_LENGTH") -> Refused:
    """A body that does not fit; `where` is the field, with dots."""
    errors: JSON = {"_errors": [{"code": code, "message": message}]}
    for part in reversed(where.split(".")):
        errors = {part: errors}
    return Refused(400, 50035, "Invalid Form Body", errors)


class Snowflakes:
    """Ids that tell when they were made. `now` gives seconds UTC."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._count = 0

    def next(self, at: float | None = None) -> int:
        """A new id, of now or of the second `at`."""
        self._count = (self._count + 1) & 0x3FFFFF
        ms = int((self._now() if at is None else at) * 1000)
        return (max(0, ms - EPOCH_MS) << 22) | self._count


def made_at(snowflake: int) -> float:
    """When an id was made, in seconds UTC."""
    return ((snowflake >> 22) + EPOCH_MS) / 1000


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


@dataclass(slots=True)
class Person:
    """Somebody with an account; also bots. `closed`: takes no direct messages from the bot."""

    id: int
    name: str
    is_bot: bool = False
    closed: bool = False

    def wire(self) -> JSON:
        return {
            "id": str(self.id),
            "username": self.name.lower().replace(" ", "_"),
            "global_name": None if self.is_bot else self.name,
            "discriminator": "0",
            "avatar": None,
            "bot": self.is_bot,
            "public_flags": 0,
        }


@dataclass(slots=True)
class Guild:
    """A server. `role` is the bot's own. `nicks` and `admins` are by user id; an admin may do everything.

    It is `gone` for a bot that was thrown out, and `down` while Discord has an outage there.
    """

    id: int
    name: str
    owner: int
    role: int
    permissions: int = MEMBER
    gone: bool = False
    down: bool = False
    nicks: dict[int, str] = field(default_factory=dict)
    admins: set[int] = field(default_factory=set)

    def member(self, person: Person, *, bot: int, whole: bool = False) -> JSON:
        """A member; `whole` with the user, which a message tells beside it."""
        told: JSON = {
            "roles": [str(self.role)] if person.id == bot else [],
            "nick": self.nicks.get(person.id),
            "joined_at": stamp(made_at(0)),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "avatar": None,
            "communication_disabled_until": None,
        }
        return {**told, "user": person.wire()} if whole else told

    def roles(self, bot: Person) -> list[JSON]:
        plain = {
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "icon": None,
            "unicode_emoji": None,
            "mentionable": False,
            "flags": 0,
        }
        everyone = {"id": str(self.id), "name": "@everyone", "position": 0, "managed": False}
        own = {"id": str(self.role), "name": bot.name, "position": 1, "managed": True}
        return [
            {**plain, **everyone, "permissions": str(MEMBER)},
            {**plain, **own, "permissions": str(self.permissions), "tags": {"bot_id": str(bot.id)}},
        ]


@dataclass(slots=True)
class File:
    """An attachment. `facts` are what else the message tells of it."""

    id: int
    name: str
    data: bytes
    media_type: str
    facts: JSON = field(default_factory=dict)

    def wire(self, channel: int, *, base_url: str, now: float) -> JSON:
        path = f"{base_url}/attachments/{channel}/{self.id}/{self.name}"
        url = f"{path}?ex={int(now + FILE_LIFE):x}&is={int(now):x}&hm={self.id:x}"
        told = {"id": str(self.id), "filename": self.name, "size": len(self.data), "url": url, "proxy_url": url}
        return {**told, "content_type": self.media_type, **self.facts}


@dataclass(slots=True, kw_only=True)
class Message:
    """A message as it stands now. `only_for` is the one person who sees an ephemeral one.

    `edits` are the earlier texts; `asked` is the body of each request of the bot that made or changed it.
    """

    id: int
    channel: int
    author: Person
    content: str
    type: int = DEFAULT
    flags: int = 0
    edited_at: float | None = None
    deleted: bool = False
    only_for: int | None = None
    nonce: str | int | None = None
    reply_to: int | None = None
    reference: JSON | None = None
    snapshots: list[JSON] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    stickers: list[str] = field(default_factory=list)
    components: list[JSON] = field(default_factory=list)
    embeds: list[JSON] = field(default_factory=list)
    mentions: list[int] = field(default_factory=list)
    role_mentions: list[int] = field(default_factory=list)
    everyone: bool = False
    webhook: int | None = None
    interaction: JSON | None = None
    extra: JSON = field(default_factory=dict)
    edits: list[str] = field(default_factory=list)
    asked: list[JSON] = field(default_factory=list)
    changed_at: float = 0

    @property
    def loading(self) -> bool:
        """Whether this is the sign that an answer to a command is being made."""
        return bool(self.flags & LOADING)


@dataclass(slots=True, kw_only=True)
class Channel:
    """A place: a channel of a guild, a thread, a forum's post, a direct chat. `denied` is what the bot may not here."""

    id: int
    type: int
    name: str = ""
    guild: int | None = None
    parent: int | None = None
    owner: int | None = None
    recipient: int | None = None
    archived: bool = False
    locked: bool = False
    deleted: bool = False
    denied: int = 0
    archive_changed: float = 0
    messages: dict[int, Message] = field(default_factory=dict)
    #: Message ids in order, which is that of time and not of arrival.
    last_message: int | None = None

    @property
    def is_thread(self) -> bool:
        return self.type in THREADS

    def wire(self, *, recipient: Person | None = None, bot: int = 0) -> JSON:
        last = None if self.last_message is None else str(self.last_message)
        told: JSON = {"id": str(self.id), "type": self.type, "last_message_id": last, "flags": 0}
        if self.type == DM:
            assert recipient is not None
            return {**told, "recipients": [recipient.wire()]}
        told |= {"guild_id": str(self.guild), "name": self.name, "rate_limit_per_user": 0}
        told["parent_id"] = None if self.parent is None else str(self.parent)
        if self.is_thread:
            return {**told, **self._thread_facts()}
        denied = [{"id": str(bot), "type": 1, "allow": "0", "deny": str(self.denied)}] if self.denied else []
        told |= {"position": 0, "permission_overwrites": denied, "nsfw": False, "topic": None}
        if self.type == VOICE:
            told |= {"bitrate": 64_000, "user_limit": 0, "rtc_region": None}
        if self.type in POSTS:
            told |= {"available_tags": [], "default_reaction_emoji": None, "default_forum_layout": 0}
        return told

    def _thread_facts(self) -> JSON:
        spoken = sum(1 for message in self.messages.values() if not message.deleted)
        return {
            "owner_id": str(self.owner),
            "message_count": spoken,
            "total_message_sent": len(self.messages),
            "member_count": 2,
            "thread_metadata": {
                "archived": self.archived,
                "locked": self.locked,
                "auto_archive_duration": 1_440,
                "archive_timestamp": stamp(self.archive_changed or made_at(self.id)),
                "create_timestamp": stamp(made_at(self.id)),
            },
        }


@dataclass(slots=True, kw_only=True)
class Interaction:
    """A command, a press, a completion or a form. `kind` 2, 3, 4, 5; `response` is the type of the bot's callback.

    `original` is the message that `@original` means; `fresh` that it is still to be made by the first answer.
    """

    id: int
    token: str
    kind: int
    user: int
    channel: int
    data: JSON
    message: int | None = None
    made_at: float
    response: int | None = None
    responded_after: float | None = None
    ephemeral: bool = False
    fresh: bool = False
    original: int | None = None
    form: JSON | None = None
    choices: list[JSON] | None = None
    followups: list[int] = field(default_factory=list)


def mentioned(text: str) -> tuple[list[int], list[int], bool]:
    """The people, the roles, and whether everyone (or everyone here) is named in a text in the way that pings.

    In code nobody is named.
    """
    text = CODE.sub(" ", text)
    people = list(dict.fromkeys(int(one) for one in _MENTIONS.findall(text)))
    roles = list(dict.fromkeys(int(one) for one in _ROLE_MENTIONS.findall(text)))
    return people, roles, "@everyone" in text or "@here" in text
