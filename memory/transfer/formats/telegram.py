"""Reads exports of Telegram Desktop: `result.json` of one chat or of a whole account, as talks with their messages.

The format is that of https://core.telegram.org/import-export and the exporter's own source (`export_output_json.cpp` of
telegramdesktop): `from_id` is "user123", "channel123" or "chat123", in old exports a bare number of a user. `text` is a
string or a list of strings and entities. `date` is the exporting computer's local time; `date_unixtime` (since 2021) is
not. A forum's topics are service messages, and a message in a topic replies, directly or not, to the topic's beginning.

Invariants: pure. A bad message is named and skipped and never costs the others. A file that breaks off yields the
messages before the break. Identities are never guessed: the caller names the owner and our bots.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from memory.transfer.formats.json_values import array, mapping, moment, string
from memory.transfer.formats.material import ImportedLine, Mask, Masking, Material, Person, Skipped

Kind: TypeAlias = Literal["private", "bot", "saved", "group", "supergroup", "channel"]

PLATFORM: Final = "telegram"
#: The most skipped messages that are named, by their number; further ones are only counted.
_NAMED: Final = 50
#: Characters read of one message. Telegram's own limit is 4,096, or fewer with media.
_TEXT_CHARS: Final = 20_000
_TOPIC_STEPS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One chat of an export. `id` is the bare number, which Telegram shows nobody; see `references`."""

    id: str
    name: str
    kind: Kind
    messages: tuple[Mapping[str, Any], ...]

    @property
    def references(self) -> tuple[str, ...]:
        """The ids under which a bot knows this chat."""
        match self.kind:
            case "supergroup" | "channel":
                return (f"-100{self.id}",)
            case "group":
                return (f"-{self.id}",)
            case _:
                return (self.id,)

    @property
    def private(self) -> bool:
        return self.kind in ("private", "bot", "saved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """All talks of a file. `account` is the user id of the exported account, if the file tells it."""

    talks: tuple[Talk, ...]
    account: str | None
    skipped: tuple[Skipped, ...] = ()


class NotTelegramExport(Exception):
    """The file is not an export of Telegram Desktop; `str()` says why."""


def looks_like(data: object) -> bool:
    if not isinstance(data, dict):
        return False
    chats = data.get("chats")
    return isinstance(data.get("messages"), list) or (isinstance(chats, dict) and isinstance(chats.get("list"), list))


def read(text: str) -> Export:
    skipped: list[Skipped] = []
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        data = _broken_off(text)
        skipped.append(Skipped(where="the file", why="it is cut off or damaged; everything before that was read"))
    if not looks_like(data):
        raise NotTelegramExport(
            'This is not a Telegram Desktop export: it has neither "messages" nor "chats" with a "list".'
        )
    assert isinstance(data, dict)
    account = data.get("personal_information")
    if isinstance(data.get("messages"), list):
        found = [data]
    else:
        found = [chat for part in ("chats", "left_chats") for chat in array(mapping(data.get(part)).get("list"))]
    talks = []
    for n, chat in enumerate(found, 1):
        talk = _talk(chat) if isinstance(chat, dict) else None
        if talk is None:
            skipped.append(Skipped(where=f"chat {n}", why="it is not a chat with an id and messages"))
        else:
            talks.append(talk)
    return Export(talks=tuple(talks), account=_number(mapping(account).get("user_id")) or None, skipped=tuple(skipped))


def lines(talk: Talk, *, owner: str | None, bots: Collection[str], timezone: str, mask: Mask, learn: bool) -> Material:
    """Returns the messages of a talk. `owner` is the user id of the person whose memory they become; None for a group.

    `bots` are the user ids of our own bots. Their messages are the assistant's; in a chat with a bot, so are all
    messages that are not the owner's. With `learn`, memories may be made from people's own words; forwarded ones teach
    nothing. `timezone` is the zone of times without an offset.
    """
    masking = Masking(mask)
    skipped = _Skips(talk.name or talk.id)
    reading = _Reading(talk=talk, owner=owner, bots=bots, zone=ZoneInfo(timezone), masking=masking, learn=learn)
    found: list[ImportedLine] = []
    for n, raw in enumerate(talk.messages, 1):
        line = reading.line(raw, _number(raw.get("id")) or f"#{n}", skipped)
        if line is not None:
            found.append(replace(line, number=len(found)))
    return Material(format="telegram", lines=tuple(found), skipped=tuple(skipped.all()), masked=masking.count)


@dataclass(kw_only=True)
class _Reading:
    talk: Talk
    owner: str | None
    bots: Collection[str]
    zone: ZoneInfo
    masking: Masking
    learn: bool

    def __post_init__(self) -> None:
        self.topics = _topics(self.talk) if self.talk.kind == "supergroup" else frozenset[str]()
        messages = self.talk.messages if self.topics else ()
        self.parents = {_number(m.get("id")): _number(m.get("reply_to_message_id")) for m in messages}

    def line(self, raw: Mapping[str, Any], number: str, skipped: _Skips) -> ImportedLine | None:
        """Returns the line of a message; None for one that is skipped, which is noted."""
        if raw.get("type") == "service":
            skipped.count("service messages (joined, pinned, called …)")
            return None
        if raw.get("type", "message") != "message":
            skipped.name(number, f"it is of an unknown type, {str(raw.get('type'))[:40]!r}")
            return None
        said_at = _time(raw, self.zone)
        if said_at is None:
            skipped.name(number, "it has no time that can be read")
            return None
        words = _text(raw)
        text = " ".join(filter(None, (_beside(raw), self.masking(words[:_TEXT_CHARS])))).strip()
        if not text:
            skipped.count("messages without words or a file")
            return None
        author = _author(raw.get("from_id"))
        is_bot = author in self.bots or (self.talk.kind == "bot" and self.owner is not None and author != self.owner)
        if author == "" and not is_bot:
            skipped.count("messages of channels and anonymous admins, who are no person")
            return None
        return self._said(raw, words, text, author, said_at, is_bot=is_bot)

    def _said(
        self, raw: Mapping[str, Any], words: str, text: str, author: str, said_at: int, *, is_bot: bool
    ) -> ImportedLine:
        name = self.masking.mask(string(raw.get("from")))[:200]
        command = _is_command(raw, words)
        own = not is_bot and (author == self.owner if self.owner is not None else True)
        forwarded = "forwarded_from" in raw or "saved_from" in raw
        # Elsewhere each account numbers messages for itself, so the bot knows this message by another id.
        numbered = self.talk.kind == "supergroup"
        return ImportedLine(
            number=0,
            role="assistant" if is_bot else "user",
            author=Person(platform=PLATFORM, user_id=author, name=name) if own else None,
            name=name,
            text=text,
            said_at=said_at,
            thread=_thread(_number(raw.get("id")), self.parents, self.topics),
            reference=_number(raw.get("id")) if numbered else None,
            reply_to=_number(raw.get("reply_to_message_id")) if numbered else None,
            learn=self.learn and own and not forwarded and not command and bool(words.strip()),
            recall=not command,
        )


class _Skips:
    """The skipped messages of a talk: some by name, the usual ones by count."""

    def __init__(self, talk: str) -> None:
        self._talk = talk
        self._named: list[Skipped] = []
        self._counted: Counter[str] = Counter()

    def name(self, number: str, why: str) -> None:
        if len(self._named) < _NAMED:
            self._named.append(Skipped(where=f"{self._talk}, message {number}", why=why))
        else:
            self._counted["further messages that can't be read"] += 1

    def count(self, what: str) -> None:
        self._counted[what] += 1

    def all(self) -> list[Skipped]:
        return [*self._named, *(Skipped(where=self._talk, why=f"{n} {what}") for what, n in self._counted.items())]


def _talk(chat: Mapping[str, Any]) -> Talk | None:
    messages, number = chat.get("messages"), _number(chat.get("id"))
    if not isinstance(messages, list) or not number:
        return None
    kind = _KINDS.get(string(chat.get("type")), "private")
    name = string(chat.get("name")) or ("Saved Messages" if kind == "saved" else "")
    return Talk(
        id=number.lstrip("-").removeprefix("100") if kind == "supergroup" and len(number) > 13 else number.lstrip("-"),
        name=" ".join(name.split())[:200],
        kind=kind,
        messages=tuple(m if isinstance(m, dict) else {"type": "?"} for m in messages),
    )


def _broken_off(text: str) -> object:
    """Returns one chat's messages that are still readable in a truncated or damaged file; None without any."""
    start = _MESSAGES.search(text)
    if start is None:
        return None
    head = text[: start.start()]
    decoder = json.JSONDecoder()
    found: list[object] = []
    at = start.end()
    while (begin := text.find("{", at)) >= 0:
        try:
            message, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break
        found.append(message)
    fields = {match[1]: json.loads(match[2]) for match in _FIELD.finditer(head[-2_000:])}
    return {**fields, "messages": found} if found else None


def _text(raw: Mapping[str, Any]) -> str:
    text = raw.get("text")
    parts = array(text) if isinstance(text, list) else [text]
    words = "".join(part if isinstance(part, str) else string(mapping(part).get("text")) for part in parts)
    if words or "text" in raw:
        return words
    return "".join(string(mapping(part).get("text")) for part in array(raw.get("text_entities")))


def _beside(raw: Mapping[str, Any]) -> str:
    kind = string(raw.get("media_type"))
    if emoji := string(raw.get("sticker_emoji")):
        return f"[sticker {emoji[:10]}]"
    if "photo" in raw:
        return "[picture]"
    if kind in _MEDIA or "file" in raw:
        what = _MEDIA.get(kind, "file")
        name = string(raw.get("file_name")) or string(raw.get("title"))
        name = " ".join(_BRACKETS.sub(" ", name).split())[:120]
        return f"[{what}: {name}]" if name else f"[{what}]"
    for field, what in _OTHERS.items():
        if field in raw:
            question = string(mapping(raw[field]).get("question"))[:120]
            return f"[{what}: {_BRACKETS.sub(' ', question)}]" if question else f"[{what}]"
    return ""


def _is_command(raw: Mapping[str, Any], words: str) -> bool:
    if not words.startswith("/"):
        return False
    first = next(iter(array(raw.get("text"))), None)
    return mapping(first).get("type") == "bot_command" or _COMMAND.match(words) is not None


def _author(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        # Old exports have a bare number. Ids of chats and channels begin beyond the range of users' ids.
        return str(value) if 0 < value < 1 << 40 else ""
    match = _USER.fullmatch(string(value))
    return match[1] if match else ""


def _time(raw: Mapping[str, Any], zone: ZoneInfo) -> int | None:
    unix = _number(raw.get("date_unixtime"))
    if unix and len(unix) <= 11:
        return int(unix) * 1_000
    return moment(string(raw.get("date")), zone)


def _topics(talk: Talk) -> frozenset[str]:
    return frozenset(
        _number(raw.get("id"))
        for raw in talk.messages
        if raw.get("type") == "service" and raw.get("action") == "topic_created"
    )


def _thread(number: str, parents: Mapping[str, str], topics: Collection[str]) -> str | None:
    for _ in range(_TOPIC_STEPS):
        if not number or number in topics:
            break
        number = parents.get(number, "")
    return number or None


def _number(value: object) -> str:
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 63 else ""
    return value if isinstance(value, str) and _DIGITS.fullmatch(value) else ""


def shown(talks: Collection[Talk]) -> Iterator[str]:
    for talk in talks:
        yield f"{talk.id}  {talk.name or '(without a name)'}, {talk.kind}, {len(talk.messages)} messages"


_KINDS: Final[Mapping[str, Kind]] = {
    "personal_chat": "private", "bot_chat": "bot", "saved_messages": "saved", "private_group": "group",
    "private_supergroup": "supergroup", "public_supergroup": "supergroup", "private_channel": "channel",
    "public_channel": "channel",
}  # fmt: skip
_MEDIA: Final = {
    "sticker": "sticker", "video_file": "video", "video_message": "video message", "voice_message": "voice message",
    "audio_file": "audio", "animation": "animation",
}  # fmt: skip
_OTHERS: Final = {"poll": "poll", "location_information": "place on a map", "contact_information": "contact"}
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}")
_USER: Final = re.compile(r"user([0-9]{1,19})")
_COMMAND: Final = re.compile(r"/[a-zA-Z0-9_]{1,32}(?:@\w{1,64})?(?:\s|$)")
_BRACKETS: Final = re.compile(r"[\[\]()<>{}\x00-\x1f\x7f]")
_MESSAGES: Final = re.compile(r'"messages"\s{0,20}:\s{0,20}\[')
_FIELD: Final = re.compile(r'"(id|name|type)"\s{0,20}:\s{0,20}("(?:[^"\\\n]){0,200}"|-?\d{1,19})')
