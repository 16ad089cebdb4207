"""Turns Telegram's updates into `Inbound`, the terms that all platforms share. Nothing is kept but the names of topics.

Invariants: words and mentions are read by Telegram's own marks, never by what a text looks like. An anonymous admin,
a channel and another bot never count as a person. A text holds no lone surrogate. The parts of an album keep the
order in which they came, and albums the order of their first parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from aiogram.enums import ContentType
from aiogram.types import (
    CallbackQuery,
    Chat,
    ChatMemberRestricted,
    ChatMemberUpdated,
    Message,
    MessageReactionUpdated,
    ReactionTypeEmoji,
    ReactionTypeUnion,
    Update,
)

from channels.base import ChatKind, Inbound, Reaction, reaction_of
from channels.telegram.contents import (
    answered_by,
    attachments,
    chat_name,
    forwarded_from,
    names_in_rich,
    person,
    quoted,
    well_formed,
    words,
)
from channels.telegram.wire import TelegramBot

JSON: TypeAlias = dict[str, Any]

PLATFORM = "telegram"
#: The thread id of a forum's General topic; sending to it by id is refused.
GENERAL = 1

#: The most topics whose names are known at a time.
_TOPICS = 1_000
#: Content that a person puts into a chat. Other content comes from Telegram itself: a pin, a new title, a boost.
_SPOKEN = frozenset(
    {
        ContentType.TEXT,
        ContentType.ANIMATION,
        ContentType.AUDIO,
        ContentType.CHECKLIST,
        ContentType.CONTACT,
        ContentType.DICE,
        ContentType.DOCUMENT,
        ContentType.GAME,
        ContentType.GIVEAWAY,
        ContentType.GIVEAWAY_WINNERS,
        ContentType.INVOICE,
        ContentType.LIVE_PHOTO,
        ContentType.LOCATION,
        ContentType.PAID_MEDIA,
        ContentType.PHOTO,
        ContentType.POLL,
        ContentType.RICH_MESSAGE,
        ContentType.STICKER,
        ContentType.STORY,
        ContentType.VENUE,
        ContentType.VIDEO,
        ContentType.VIDEO_NOTE,
        ContentType.VOICE,
    }
)


def album_of(update: JSON) -> str | None:
    """Returns the name of the album that a new message belongs to; None if it belongs to none."""
    message = update.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("media_group_id"), str):
        return None
    return f"{chat_of(update)}:{message['media_group_id']}"


def chat_of(update: JSON) -> str:
    """Returns the chat that an update is about; empty if it is about none."""
    for said in update.values():
        place = said.get("message", said) if isinstance(said, dict) else None
        where = place.get("chat") if isinstance(place, dict) else None
        if isinstance(where, dict) and isinstance(where.get("id"), int):
            return str(where["id"])
    return ""


def gathered(updates: Sequence[JSON]) -> list[list[JSON]]:
    groups: list[list[JSON]] = []
    albums: dict[str, list[JSON]] = {}
    for update in updates:
        name = album_of(update)
        if name is not None and name in albums:
            albums[name].append(update)
            continue
        groups.append([update])
        if name is not None:
            albums[name] = groups[-1]
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReader:
    """Reads updates for one bot. `channel` is its channel's id.

    `topics` collects the names of topics by chat and topic, as they are seen. With `mention` the bot is addressed in
    groups only by its @name, a reply to it or one of its `commands`, else by every message.
    """

    channel: str
    me: TelegramBot
    mention: bool
    commands: frozenset[str] = frozenset()
    topics: dict[tuple[int, str], str] = field(default_factory=dict)

    def said(self, updates: Sequence[Update]) -> Inbound | None:
        """Returns a new message, or the parts of an album as one; None if nobody said it, or a bot did."""
        parts = [
            part
            for update in updates
            if update.message is not None
            and (part := self._said(update.message, update.update_id, edited=False)) is not None
        ]
        if len(parts) < 2:
            return parts[0] if parts else None
        # The part with the caption or the reply tells for whom the album is; the other parts tell nothing.
        telling = [part for part in parts if part.text or part.reply_to is not None] or parts
        return replace(
            parts[0],
            update_key=f"{parts[0].update_key}+{len(parts)}",
            text="\n".join(part.text for part in parts if part.text),
            reply_to=next((part.reply_to for part in parts if part.reply_to is not None), None),
            addressed=any(part.addressed for part in telling),
            quoted=next((part.quoted for part in parts if part.quoted is not None), None),
            forwarded=any(part.forwarded for part in parts),
            attachments=tuple(attachment for part in parts for attachment in part.attachments),
        )

    def edited(self, message: Message, update_id: int) -> Inbound | None:
        """Returns the new state of a message; None as for a new message, and for a location that moves."""
        return None if message.location is not None else self._said(message, update_id, edited=True)

    def pressed(self, press: CallbackQuery, update_id: int, now: int) -> Inbound | None:
        """Returns a press of a button of the bot's own, else None. `now` (milliseconds UTC) is taken as its time."""
        shown = press.message
        kind = None if shown is None else _kind(shown.chat)
        if shown is None or kind is None or press.data is None:
            return None
        return Inbound(
            channel=self.channel,
            platform=PLATFORM,
            bot_id=self.me.id,
            update_key=f"{update_id}-{press.id}",
            chat=str(shown.chat.id),
            chat_kind=kind,
            author_id=str(press.from_user.id),
            author_name=well_formed(person(press.from_user)),
            message_id=str(shown.message_id),
            text="",
            sent_at=now,
            # If a message is too old to be shown to bots, only its chat and id are known.
            thread=topic_of(shown) if isinstance(shown, Message) else None,
            chat_title=well_formed(shown.chat.title or ""),
            pressed=press.data,
            language=press.from_user.language_code or "",
        )

    def reacted(self, reaction: MessageReactionUpdated, update_id: int) -> tuple[Inbound, Reaction, bool] | None:
        """Returns who reacts to which message, how, and False if they have taken that back.

        Returns None for other reactions, and for those of bots and of people who stay anonymous.
        """
        kind, author = _kind(reaction.chat), reaction.user
        now, before = _said_by(reaction.new_reaction), _said_by(reaction.old_reaction)
        told = now or before
        if kind is None or author is None or author.is_bot or told is None:
            return None
        inbound = Inbound(
            channel=self.channel,
            platform=PLATFORM,
            bot_id=self.me.id,
            update_key=f"{update_id}-{reaction.chat.id}-{reaction.message_id}",
            chat=str(reaction.chat.id),
            chat_kind=kind,
            author_id=str(author.id),
            author_name=well_formed(person(author)),
            message_id=str(reaction.message_id),
            text="",
            sent_at=int(reaction.date.timestamp()) * 1000,
        )
        return inbound, told, now is not None

    def _said(self, message: Message, update_id: int, *, edited: bool) -> Inbound | None:
        kind, topic = _kind(message.chat), self._topic_name(message)
        if kind is None or not _is_spoken(message, kind):
            return None
        author = message.from_user
        if message.sender_chat is not None:
            # An anonymous admin or a channel: the user given with it is a stand-in and must never count as a person.
            author_id, author_name = "", chat_name(message.sender_chat)
        elif author is None or author.is_bot:
            return None
        else:
            author_id, author_name = str(author.id), person(author)
        text, named, elsewhere = _words(message, self.me, self.commands)
        answered = answered_by(message)
        if kind == "group":
            to_me = answered is not None and answered.from_user is not None and str(answered.from_user.id) == self.me.id
            addressed = not elsewhere and (named or to_me or not self.mention)
        else:
            addressed = True
        sent_at = message.edit_date if edited and message.edit_date else int(message.date.timestamp())
        return Inbound(
            channel=self.channel,
            platform=PLATFORM,
            bot_id=self.me.id,
            # Unique even when Telegram restarts its count after a quiet week.
            update_key=f"{update_id}-{message.chat.id}-{message.message_id}",
            chat=str(message.chat.id),
            chat_kind=kind,
            author_id=author_id,
            author_name=well_formed(author_name),
            message_id=str(message.message_id),
            text=text,
            sent_at=sent_at * 1000,
            thread=topic_of(message),
            chat_title=well_formed(message.chat.title or ""),
            thread_title=topic,
            reply_to=None if answered is None else str(answered.message_id),
            quoted=quoted(message, self.me.id),
            anonymous=message.sender_chat is not None and message.sender_chat.id == message.chat.id,
            addressed=addressed,
            forwarded=message.forward_origin is not None,
            forwarded_from=forwarded_from(message.forward_origin),
            edited=edited,
            attachments=attachments(message),
            language=(author.language_code or "") if author is not None else "",
        )

    def _topic_name(self, message: Message) -> str:
        """Returns the name of a message's topic, which is told where it is opened or renamed, and beside messages."""
        if (topic := topic_of(message)) is None:
            return ""
        where, head = (message.chat.id, topic), message.reply_to_message
        if (named := message.forum_topic_edited or message.forum_topic_created) is not None and named.name:
            self.topics[where] = named.name
        elif head is not None and head.forum_topic_created is not None:
            self.topics.setdefault(where, head.forum_topic_created.name)
        if len(self.topics) > _TOPICS:
            del self.topics[next(iter(self.topics))]
        return well_formed(self.topics.get(where, ""))


def _said_by(reactions: Sequence[ReactionTypeUnion]) -> Reaction | None:
    """Returns the last of the reactions that say something."""
    known = [reaction_of(reaction.emoji) for reaction in reactions if isinstance(reaction, ReactionTypeEmoji)]
    return next((said for said in reversed(known) if said is not None), None)


def is_present(change: ChatMemberUpdated) -> bool:
    member = change.new_chat_member
    if isinstance(member, ChatMemberRestricted):
        return member.is_member
    return member.status not in ("left", "kicked")


def may_write(change: ChatMemberUpdated) -> bool:
    member = change.new_chat_member
    return not isinstance(member, ChatMemberRestricted) or member.can_send_messages or not member.is_member


def topic_of(message: Message) -> str | None:
    """Returns the topic of a message. Replies outside of topics carry a thread id too, which is not a topic's."""
    thread = message.message_thread_id
    return str(thread) if message.is_topic_message and thread not in (None, GENERAL) else None


def _kind(chat: Chat) -> ChatKind | None:
    if chat.type in ("group", "supergroup"):
        return "group"
    return "private" if chat.id > 0 else None  # ids of people are positive, whatever kind of chat it may be


def _is_spoken(message: Message, kind: ChatKind) -> bool:
    """Returns whether a person said the message, in private or with words also in forms newer than this program."""
    content = message.content_type
    return content in _SPOKEN or (content == ContentType.UNKNOWN and (kind == "private" or bool(message.caption)))


def _words(message: Message, me: TelegramBot, commands: frozenset[str]) -> tuple[str, bool, bool]:
    """Returns the text without the bot's own name at its ends, and two flags.

    The first flag is True if the text names or commands the bot, the second if it commands another bot: by its name,
    or by a command that is none of `commands`, unless these are unknown. Names and
    commands go by Telegram's entities, whose offsets count UTF-16 units, and not by what the text looks like.
    """
    text = words(message)
    units = text.encode("utf-16-le", "surrogatepass")
    handle = me.username.casefold()
    named, elsewhere = names_in_rich(message, handle), False
    cuts: list[tuple[int, int]] = []
    for entity in message.entities or message.caption_entities or ():
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        marked = _decoded(units[start:end]).casefold()
        if entity.type == "mention" and handle and marked == f"@{handle}":
            named = True
            if not _decoded(units[:start]).strip():
                cuts.append((start, end + 2 if units[end : end + 2] in (b",\0", b":\0") else end))
            elif not _decoded(units[end:]).strip():
                cuts.append((start, end))
        elif entity.type == "text_mention" and entity.user is not None and str(entity.user.id) == me.id:
            named = True
        elif entity.type == "bot_command":
            command, _, bot = marked.partition("@")
            if handle and bot == handle:
                named = True
                if start == 0:
                    cuts.append((2 * len(command), end))
            elif entity.offset == 0:
                own = not bot and (not commands or command[1:] in commands)
                elsewhere = not own
                named = named or own
    for start, end in reversed(cuts):
        units = units[:start] + units[end:]
    rest = _decoded(units).strip() if cuts else _decoded(units)
    return rest or _decoded(text.encode("utf-16-le", "surrogatepass")), named, elsewhere


def _decoded(units: bytes) -> str:
    return units.decode("utf-16-le", "replace")
