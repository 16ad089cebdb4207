"""Reads what stands in a message of Telegram: its files, whole contents in words, what it answers, who said it first.

Invariants: all functions are pure. Whatever a message holds has a name at least, so that none arrives empty. Text that
is returned holds no lone surrogate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiogram.types import (
    Chat,
    Checklist,
    ChecklistTask,
    ExternalReplyInfo,
    Giveaway,
    GiveawayWinners,
    Location,
    Message,
    MessageOriginUnion,
    PhotoSize,
    Poll,
    User,
)

from channels.base import Attachment, AttachmentKind, Quoted, QuotedKind, Whose

_NAME = 100  # characters of an attachment's name
#: Pixels of a picture; models make larger ones smaller before they look.
_PIXELS = 2_000_000
_RICH_FILES = 10  # the most files of one rich message


def words(message: Message) -> str:
    rich, text = message.rich_message, message.text or message.caption or ""
    if rich is None:
        return text
    return "\n".join(_lines({"blocks": rich.model_dump(exclude_none=True)["blocks"]})) or text


def names_in_rich(message: Message, username: str) -> bool:
    """Returns whether a rich message mentions `username`, which is in lower case."""
    rich = message.rich_message
    return rich is not None and username in _mentioned(rich.model_dump(exclude_none=True))


def attachments(message: Message | ExternalReplyInfo) -> tuple[Attachment, ...]:
    rich = getattr(message, "rich_message", None)
    if rich is not None:
        files = [file for block in _blocks(rich) if (file := _file(block)) is not None]
        return tuple(files[:_RICH_FILES])
    found = _file(message) or _thing(message)
    return () if found is None else (found,)


def forwarded_from(origin: MessageOriginUnion | None) -> str:
    """Returns who first said a forwarded message, and "" if that is not known."""
    said_by: User | Chat | str | None = next(
        (
            value
            for name in ("sender_user", "sender_user_name", "sender_chat", "chat")
            if (value := getattr(origin, name, None)) is not None
        ),
        None,
    )
    if isinstance(said_by, User):
        return well_formed(person(said_by))
    if not isinstance(said_by, Chat):
        return well_formed(said_by or "")
    signed = getattr(origin, "author_signature", None)
    return well_formed(f"{chat_name(said_by)} ({signed})" if signed else chat_name(said_by))


def quoted(message: Message, me: str) -> Quoted | None:
    """Returns what a message answers; None if it answers nothing. `me` is the bot's id."""
    speaker = "" if message.from_user is None or message.sender_chat is not None else str(message.from_user.id)

    def whose(user: User | None) -> Whose:
        number = "" if user is None else str(user.id)
        return "bot" if number == me else "self" if number and number == speaker else "other"

    chosen = message.quote
    part = well_formed(chosen.text) if chosen is not None and chosen.text else ""
    if (answered := answered_by(message)) is not None:
        by, origin = answered.from_user if answered.sender_chat is None else None, answered.forward_origin
        first = by if origin is None else getattr(origin, "sender_user", None)
        user = first or by
        kind, text = _chosen(message, answered)
        if not text:
            manual = bool(part) and chosen is not None and bool(chosen.is_manual)
            kind, text = ("part", part) if manual else ("message", words(answered) or part)
        return Quoted(
            # Nobody but its first author said a forwarded message, and the bot forwards none.
            whose=whose(first) if origin is None or whose(first) == "self" else "other",
            kind=kind,
            author=_author(answered),
            author_id="" if user is None else str(user.id),
            text=well_formed(text),
            attachments=attachments(answered),
        )
    if (elsewhere := message.external_reply) is not None:
        user = getattr(elsewhere.origin, "sender_user", None)
        return Quoted(
            whose=whose(user),
            kind="elsewhere",
            author=forwarded_from(elsewhere.origin),
            author_id="" if user is None else str(user.id),
            text=part,
            attachments=attachments(elsewhere),
        )
    if (story := message.reply_to_story) is not None:
        return Quoted(kind="story", author=well_formed(chat_name(story.chat)))
    return Quoted(text=part) if part else None


def answered_by(message: Message) -> Message | None:
    """Returns the message that is answered. A message of a topic is also a reply to the one that opened the topic."""
    answered = message.reply_to_message
    return None if answered is None or answered.forum_topic_created is not None else answered


def person(user: User) -> str:
    """Returns a user's name; never empty, though a name may have no visible letters or the account may be deleted."""
    return user.full_name.strip() or user.username or str(user.id)


def chat_name(chat: Chat) -> str:
    return chat.title or " ".join(filter(None, (chat.first_name, chat.last_name))) or chat.username or str(chat.id)


def well_formed(text: str) -> str:
    """Returns `text` with U+FFFD for lone surrogates, which no database stores."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _author(answered: Message) -> str:
    by = chat_name(answered.sender_chat) if answered.sender_chat is not None else ""
    if not by and answered.from_user is not None:
        by = person(answered.from_user)
    if answered.forward_origin is not None and (first := forwarded_from(answered.forward_origin)):
        by = f"{first}, forwarded by {by}"
    return well_formed(by)


def _chosen(message: Message, answered: Message) -> tuple[QuotedKind, str]:
    """Returns the task of a list or the option of a poll that is answered, and its text; "" if it is neither."""
    task, option = message.reply_to_checklist_task_id, message.reply_to_poll_option_id
    if task is not None and answered.checklist is not None:
        return "task", next((entry.text for entry in answered.checklist.tasks if entry.id == task), "")
    if option is not None and answered.poll is not None:
        return "option", next((choice.text for choice in answered.poll.options if choice.persistent_id == option), "")
    return "message", ""


def _file(holder: Any) -> Attachment | None:
    """Returns the attachment with bytes of a message, of one elsewhere, or of a block of a rich message.

    An animation comes as a document too, so it is looked for first.
    """
    files = {name: file for name, _, _, _ in _FILES if (file := getattr(holder, name, None)) is not None}
    live = files.get("live_photo")
    if pictures := getattr(holder, "photo", None) or (live.photo if live is not None else None):
        return _picture(pictures)
    for sort, kind, name, media_type in _FILES:
        if (file := files.get(sort)) is not None:
            title = " - ".join(filter(None, (file.performer, file.title))) if sort == "audio" else ""
            return _bytes(file, kind, title or name, media_type, spoken=sort in ("voice", "voice_note"))
    return None


_FILES: tuple[tuple[str, AttachmentKind, str, str], ...] = (
    ("live_photo", "video", "live photo", "video/mp4"),
    ("animation", "video", "animation", "video/mp4"),
    ("video", "video", "video", "video/mp4"),
    ("video_note", "video", "video note", "video/mp4"),
    ("voice", "audio", "voice message", "audio/ogg"),
    ("voice_note", "audio", "voice message", "audio/ogg"),
    ("audio", "audio", "audio", "audio/mpeg"),
    ("document", "file", "document", ""),
)


def _picture(sizes: Sequence[PhotoSize]) -> Attachment:
    by_size = sorted(sizes, key=lambda size: size.width * size.height)
    useful = [size for size in by_size if size.width * size.height <= _PIXELS]
    chosen = useful[-1] if useful else by_size[0]
    return Attachment(
        kind="image", name="photo", media_type="image/jpeg", size=chosen.file_size, reference=chosen.file_id
    )


def _bytes(file: Any, kind: AttachmentKind, name: str, media_type: str, *, spoken: bool) -> Attachment:
    """Returns a file of any of Telegram's sorts as an attachment; its media type may make it another kind."""
    told = getattr(file, "mime_type", None) or media_type
    if kind in ("file", "video"):
        kinds: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}
        kind = kinds.get(told.partition("/")[0], kind)
    called = _short(getattr(file, "file_name", None) or "") or _short(name)
    return Attachment(
        kind=kind, name=called, media_type=told, size=file.file_size, reference=file.file_id, spoken=spoken
    )


def _thing(holder: Message | ExternalReplyInfo) -> Attachment | None:
    """Returns an attachment without meaningful bytes, named in a few words, with all that it says below its name."""
    for kind, in_words in _THINGS.items():
        if (thing := getattr(holder, kind, None)) is not None:
            name, *lines = in_words(thing)
            return Attachment(kind="other", name=_short(name), text=well_formed("\n".join(filter(None, lines))))
    return None


def _poll(poll: Poll) -> Iterator[str]:
    yield f"poll: {poll.question}"
    yield f"{'quiz' if poll.type == 'quiz' else 'poll'}{', closed' if poll.is_closed else ''}: {poll.question}"
    yield poll.description or ""
    right = poll.correct_option_ids or ()
    for place, option in enumerate(poll.options):
        votes = f"{option.voter_count} vote{'' if option.voter_count == 1 else 's'}"
        yield f"- {option.text} ({votes}{', right' if place in right else ''})"
    yield f"{poll.total_voter_count} have voted"
    yield poll.explanation or ""


def _checklist(checklist: Checklist) -> Iterator[str]:
    yield f"checklist: {checklist.title}"
    yield checklist.title
    yield from (f"{'[x]' if _is_done(task) else '[ ]'} {task.text}" for task in checklist.tasks)


def _is_done(task: ChecklistTask) -> bool:
    return bool(task.completed_by_user or task.completed_by_chat or task.completion_date)


def _giveaway(prizes: Giveaway | GiveawayWinners) -> Iterator[str]:
    over = isinstance(prizes, GiveawayWinners)
    yield "giveaway, completed" if over else "giveaway"
    prize = _prize(prizes.premium_subscription_month_count, prizes.prize_star_count)
    yield f"{prizes.winner_count} winners of {', '.join(filter(None, (prizes.prize_description, prize)))}"
    yield f"chosen on {prizes.winners_selection_date:%Y-%m-%d}"
    if isinstance(prizes, GiveawayWinners):
        yield f"winners: {', '.join(map(person, prizes.winners))}"
    else:
        yield f"in {', '.join(map(chat_name, prizes.chats))}"


def _prize(months: int | None, stars: int | None) -> str:
    return f"{months} months of Telegram Premium" if months else f"{stars} Telegram Stars" if stars else ""


def _where(location: Location) -> str:
    """Returns degrees, rounded to about a metre."""
    return ", ".join(str(round(degrees, 5)) for degrees in (location.latitude, location.longitude))


#: The words for each kind of content without bytes: its name, and lines that say all of it. A venue has a location too.
_THINGS: Mapping[str, Callable[[Any], Iterable[str]]] = {
    "sticker": lambda thing: (f"sticker {thing.emoji or ''}",),
    "venue": lambda thing: (
        f"venue {thing.title}, {thing.address}, {_where(thing.location)}",
        thing.title,
        thing.address,
        _where(thing.location),
    ),
    "location": lambda thing: (f"location {_where(thing)}{', live' if thing.live_period else ''}",),
    "contact": lambda thing: (
        f"contact {thing.first_name} {thing.last_name or ''}",
        f"{thing.first_name} {thing.last_name or ''}".strip(),
        thing.phone_number,
    ),
    "poll": _poll,
    "dice": lambda thing: (f"dice {thing.emoji} {thing.value}",),
    "game": lambda thing: (f"game: {thing.title}", thing.title, thing.description, thing.text or ""),
    "checklist": _checklist,
    "story": lambda thing: (f"story of {chat_name(thing.chat)}",),
    "paid_media": lambda thing: (f"paid media: {len(thing.paid_media)} for {thing.star_count} Telegram Stars",),
    "invoice": lambda thing: (
        f"invoice: {thing.title}",
        thing.title,
        thing.description,
        f"{thing.total_amount} {thing.currency}, in the currency's smallest unit",
    ),
    "giveaway": _giveaway,
    "giveaway_winners": _giveaway,
}


def _blocks(holder: Any) -> Iterator[Any]:
    """Yields all blocks of a rich message, in their order."""
    for block in (*(getattr(holder, "blocks", None) or ()), *(getattr(holder, "items", None) or ())):
        yield block
        yield from _blocks(block)


def _lines(block: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a block of a rich message, in any of its forms."""
    yield from filter(None, (_plain(block.get(name)) for name in ("summary", "text", "expression")))
    for item in block.get("items", ()):
        mark = ("[x]" if item.get("is_checked") else "[ ]") if item.get("has_checkbox") else item.get("label") or "-"
        lines = list(_lines(item))
        yield f"{mark} {lines[0] if lines else ''}".strip()
        yield from lines[1:]
    for row in block.get("cells", ()):
        yield " | ".join(_plain(cell.get("text")) for cell in row)
    for inner in block.get("blocks", ()):
        yield from _lines(inner)
    yield from filter(None, (_plain(block.get("caption")), _plain(block.get("credit"))))


def _plain(rich: Any) -> str:
    """Returns rich text as plain text: a string, a list of rich texts, or an object around one."""
    if isinstance(rich, str):
        return well_formed(rich)
    if isinstance(rich, list):
        return "".join(map(_plain, rich))
    if not isinstance(rich, dict):
        return ""
    return _plain(next((rich[name] for name in ("text", "alternative_text", "expression") if name in rich), None))


def _mentioned(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "mention":
            yield str(node.get("username", "")).casefold()
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _mentioned(inner)


def _short(name: str) -> str:
    line = well_formed(" ".join(name.split()))
    return line if len(line) <= _NAME else f"{line[: _NAME - 1]}…"
