"""People, chats and messages as one bot has them, in the JSON the Bot API gives them.

Invariants: a message keeps its id and its place for ever, deleted or not; supergroups and channels number their own
messages, private chats and groups share one sequence (as Telegram's accounts do).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tests.platforms.pulse import Pulse
from tests.platforms.telegram.drafts import Drafts
from tests.platforms.telegram.updates import JSON, Queue, Refused
from tests.platforms.telegram.webhook import Webhook

Kind: TypeAlias = Literal["private", "group", "supergroup", "channel"]
#: Why nothing can be said in a chat.
Gone: TypeAlias = Literal["", "blocked", "kicked", "left", "deactivated"]

#: The most bytes a bot can download of one file.
BIGGEST_DOWNLOAD = 20 * 1024 * 1024
#: The most bytes of a file a bot can send.
BIGGEST_UPLOAD = 50 * 1024 * 1024
_FIRST_SUPERGROUP = -1_000_000_000_000
_GENERAL = 1
_ENTITIES = re.compile(r"(?<!\w)@[A-Za-z0-9_]{4,32}(?!\w)|(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{4,32})?(?!\w)")


@dataclass(slots=True)
class Person:
    """Somebody with an account; also bots."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    language: str | None = None

    def wire(self) -> JSON:
        given = {"username": self.username, "language_code": self.language}
        filled = {name: value for name, value in given.items() if value is not None}
        return {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, **filled}


@dataclass(frozen=True, slots=True)
class Stored:
    """A file. `size` is in bytes; with `told` False the bot learns of it only by downloading."""

    id: str
    unique: str
    path: str
    data: bytes
    size: int
    told: bool = True

    def wire(self) -> JSON:
        size = {"file_size": self.size} if self.told else {}
        return {"file_id": self.id, "file_unique_id": self.unique, **size}


@dataclass(slots=True)
class Topic:
    """A thread of a forum; its id is that of the message that opened it."""

    id: int
    opened: JSON
    closed: bool = False
    deleted: bool = False


@dataclass(slots=True)
class Message:
    """A message as it stands now. `edits` are the earlier states, oldest first."""

    wire: JSON
    by_bot: bool = False
    deleted: bool = False
    edits: list[JSON] = field(default_factory=list)
    reactions: dict[int, list[str]] = field(default_factory=dict)

    @property
    def id(self) -> int:
        return int(self.wire["message_id"])

    @property
    def text(self) -> str:
        return str(self.wire.get("text", self.wire.get("caption", "")))


@dataclass(slots=True)
class Chat:
    """A place. `writable` is False for a person who never wrote to the bot."""

    id: int
    kind: Kind
    title: str
    username: str | None = None
    forum: bool = False
    gone: Gone = ""
    writable: bool = True
    bot_admin: bool = False
    migrated_to: int | None = None
    topics: dict[int, Topic] = field(default_factory=dict)
    statuses: dict[int, str] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)

    def wire(self) -> JSON:
        if self.kind == "private":
            chat: JSON = {"id": self.id, "type": "private", "first_name": self.title}
        else:
            chat = {"id": self.id, "type": self.kind, "title": self.title}
        if self.username:
            chat["username"] = self.username
        if self.forum:
            chat["is_forum"] = True
        return chat

    def refusal(self) -> Refused | None:
        """Why the bot may not speak here."""
        if self.migrated_to is not None:
            return Refused(
                400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.migrated_to
            )
        named = "channel" if self.kind == "channel" else f"{self.kind} chat"
        match self.gone:
            case "blocked":
                return Refused(403, "Forbidden: bot was blocked by the user")
            case "deactivated":
                return Refused(403, "Forbidden: user is deactivated")
            case "kicked":
                return Refused(403, f"Forbidden: bot was kicked from the {named}")
            case "left":
                return Refused(403, f"Forbidden: bot is not a member of the {named}")
        if not self.writable:
            return Refused(403, "Forbidden: bot can't initiate conversation with a user")
        return None


class World:
    """All that one bot can know. `now` is in seconds UTC."""

    def __init__(self, token: str, *, now: Callable[[], float], first_update: int) -> None:
        self.pulse = Pulse()
        self.queue = Queue(self.pulse, first_update)
        self.now = now
        number = int(token.partition(":")[0])
        self.me = Person(number, "Remora", username="remora_test_bot", is_bot=True)
        self.about_me: JSON = {
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }
        self.people: dict[int, Person] = {number: self.me}
        self.chats: dict[int, Chat] = {}
        self.callbacks: dict[str, JSON] = {}
        self.files: dict[str, Stored] = {}
        self.drafts = Drafts(now)
        self.webhook = Webhook()
        self.commands: dict[str, list[JSON]] = {}
        self.actions: list[JSON] = []
        self.marks: list[JSON] = []  # the bot's reactions, in their order
        self._account_ids = itertools.count(1)
        self._group_ids: dict[int, Iterator[int]] = {}
        self._supergroups = itertools.count(_FIRST_SUPERGROUP - 1_000, -1)
        self._callback_ids = itertools.count(number * 1_000_000 + 1)
        self._file_ids = itertools.count(1)
        self._album_ids = itertools.count(13_000_000_001)

    def person(self, user: int, **known: Any) -> Person:
        """The person with this id, who comes into being; what is `known` and not None is set."""
        person = self.people.setdefault(user, Person(user, f"User {user}"))
        for name, value in known.items():
            if value is not None:
                setattr(person, name, value)
        return person

    def private(self, person: Person) -> Chat:
        """The private chat with a person, in which the bot may then write."""
        chat = self.chats.get(person.id)
        if chat is None:
            chat = self.chats[person.id] = Chat(person.id, "private", person.first_name, person.username)
        return chat

    def place(self, chat_id: int, *, kind: Kind | None = None, title: str | None = None) -> Chat:
        """A group, which comes into being with the bot in it."""
        chat = self.chats.get(chat_id)
        if chat is None:
            kind = kind or ("supergroup" if chat_id < _FIRST_SUPERGROUP else "group")
            chat = self.chats[chat_id] = Chat(chat_id, kind, title or "Group")
        elif title is not None:
            chat.title = title
        return chat

    def chat(self, chat_id: int | str) -> Chat:
        """Returns the chat that a bot's request means by `chat_id`. Raises `Refused`."""
        if isinstance(chat_id, str) and chat_id.startswith("@"):
            found = [chat for chat in self.chats.values() if chat.username == chat_id[1:] and chat.kind != "private"]
            chat = found[0] if found else None
        else:
            chat = self.chats.get(int(chat_id)) if str(chat_id).lstrip("-").isdigit() else None
            if chat is None and str(chat_id).isdigit() and int(chat_id) in self.people:
                person = self.people[int(chat_id)]
                if person.is_bot:
                    raise Refused(403, "Forbidden: bot can't send messages to bots")
                chat = Chat(person.id, "private", person.first_name, writable=False)
        if chat is None:
            raise Refused(400, "Bad Request: chat not found")
        return chat

    def speakable(self, chat_id: int | str) -> Chat:
        """A chat in which the bot may say something now. Raises `Refused`."""
        chat = self.chat(chat_id)
        refusal = chat.refusal()
        if refusal is not None:
            raise refusal
        return chat

    def post(
        self,
        chat: Chat,
        content: JSON,
        *,
        by: Person | None = None,
        sender_chat: JSON | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        sent_at: int | None = None,
    ) -> Message:
        """A new message in a chat; nobody is told. Raises `Refused` for a thread that is not open."""
        topic = self._open_topic(chat, thread, admin=by is not self.me or chat.bot_admin)
        wire: JSON = {
            "message_id": self.next_message_id(chat),
            "date": int(self.now()) if sent_at is None else sent_at,
            "chat": chat.wire(),
        }
        if by is not None and chat.kind != "channel":
            wire["from"] = by.wire()
        if sender_chat is not None:
            wire["sender_chat"] = sender_chat
        answered = chat.messages.get(reply_to) if reply_to is not None else None
        if topic is not None:
            wire |= {"message_thread_id": topic.id, "is_topic_message": True}
            # Clients show every message of a topic as an answer to the one that opened it.
            wire["reply_to_message"] = topic.opened
        elif answered is not None and chat.kind == "supergroup":
            # A reply chain is a thread too, with the id of its first message, but no topic.
            wire["message_thread_id"] = answered.wire.get("message_thread_id", answered.id)
        if answered is not None:
            wire["reply_to_message"] = {k: v for k, v in answered.wire.items() if k != "reply_to_message"}
        message = Message({**wire, **content}, by_bot=by is self.me)
        chat.messages[message.id] = message
        if message.by_bot:
            self.drafts.message_came(chat.id, thread)
        self.pulse.beat()
        return message

    def next_message_id(self, chat: Chat) -> int:
        if chat.kind in ("private", "group"):
            return next(self._account_ids)
        return next(self._group_ids.setdefault(chat.id, itertools.count(1)))

    def tell(self, kind: str, message: Message) -> int | None:
        """Tells the bot of a message, if it asked for such; returns the update's id."""
        return self.queue.put(kind, message.wire)

    def next_callback_id(self) -> str:
        return str(next(self._callback_ids))

    def new_supergroup_id(self) -> int:
        return next(self._supergroups)

    def next_album_id(self) -> str:
        return str(next(self._album_ids))

    def keep_file(self, what: str, data: bytes, suffix: str, *, size: int | None = None, told: bool = True) -> Stored:
        """A file that is stored from now on, filled up with zeros to `size` bytes where it can be downloaded."""
        number = next(self._file_ids)
        size = len(data) if size is None else max(size, len(data))
        if size <= BIGGEST_DOWNLOAD:
            data = data.ljust(size, b"\0")
        file_id = f"{what.capitalize()}-{self.me.id}-{number}"
        stored = Stored(file_id, f"u{number}", f"{what}s/file_{number}{suffix}", data, size, told)
        self.files[file_id] = stored
        return stored

    def _open_topic(self, chat: Chat, thread: int | None, *, admin: bool) -> Topic | None:
        if thread is None or (chat.kind == "supergroup" and not chat.forum):
            return None  # where topics were switched off, Telegram ignores the number
        topic = chat.topics.get(thread)
        # The General topic has the id 1 in the clients, which the Bot API does not take.
        if topic is None or topic.deleted or thread == _GENERAL:
            raise Refused(400, "Bad Request: message thread not found")
        if topic.closed and not admin:
            raise Refused(400, "Bad Request: TOPIC_CLOSED")
        return topic


def found_entities(text: str) -> list[JSON]:
    """The mentions and commands Telegram finds in a text, with offsets in UTF-16 units."""
    found: list[JSON] = []
    for match in _ENTITIES.finditer(text):
        kind = "mention" if match[0].startswith("@") else "bot_command"
        found.append({"type": kind, "offset": utf16(text[: match.start()]), "length": utf16(match[0])})
    return found


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def trimmed(text: str, entities: Sequence[JSON]) -> tuple[str, list[JSON]]:
    """A text as Telegram keeps it: no white space at its ends, entities moved and clipped with it.

    White space at the beginning stays where an entity (a code block) begins in it.
    """
    start = len(text) - len(text.lstrip())
    if any(entity["offset"] < utf16(text[:start]) for entity in entities):
        start = 0
    kept = text[start:].rstrip()
    moved, length = utf16(text[:start]), utf16(kept)
    out: list[JSON] = []
    for entity in entities:
        offset = entity["offset"] - moved
        clipped = min(entity["length"], length - offset)
        if clipped > 0:
            out.append({**entity, "offset": offset, "length": clipped})
    return kept, sorted(out, key=lambda entity: (entity["offset"], -entity["length"]))
