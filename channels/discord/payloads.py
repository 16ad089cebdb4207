"""Discord's JSON as Remora's values, and Remora's values as Discord's JSON. Pure.

Invariants: nothing the bot shows pings anybody or gets a preview. People's texts are read by Discord's own tags,
never by what a name looks like. Every limit of an application command is kept here, so that one bad command can't
cost all.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypedDict, Unpack

from channels.base import (
    Attachment,
    AttachmentKind,
    Button,
    CommandSpec,
    Form,
    Option,
    Outbound,
    Quoted,
    QuotedKind,
    Suggestion,
    Whose,
    rows,
)

Json: TypeAlias = dict[str, Any]

#: Message flags (discord.com/developers/docs/resources/message#message-object-message-flags).
SUPPRESS_EMBEDS = 1 << 2
EPHEMERAL = 1 << 6
_VOICE = 1 << 13

#: Characters of one message.
MESSAGE_LIMIT = 2_000
#: Bytes of a file that a bot may attach (discord.com/developers/docs/reference#uploading-files).
FILE_LIMIT = 10 * 1024 * 1024
#: Characters of the data that a component or a modal carries.
DATA_LIMIT = 100

_EPOCH = 1_420_070_400_000  # 1 January 2015 UTC in milliseconds, from which Discord's ids count
#: Types of messages by which Discord itself tells something, or a bot answers. People write 0, 19 (replies), and what
#: comes after this program: a type that is not known counts as a person's if there is something in it.
_TOLD = frozenset({*range(1, 19), *range(20, 64)})
_DEFAULT, _REPLY = 0, 19
#: The errors of reading data that has another shape than this program knows.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_FORWARD = 1  # the type of a reference to a forwarded message
_TAG = re.compile(r"<(@!|@&|@|#|a?:\w{1,64}:|/[^<>:\n]{1,110}:)(\d{1,20})>")
_NAME = re.compile(r"[-_a-z0-9]{1,32}")
_HELP_LIMIT = 100
_LABEL_LIMIT = 45  # of a modal's title and field
_BUTTON_LIMIT = 80
_MOST_CHOICES = 25
_MOST_COMMANDS = 100
_LOCALES = {"zh": "zh-CN", "en": "en-US", "de": "de", "es": "es-ES", "fr": "fr", "ja": "ja"}
_MANAGE_GUILD = str(1 << 5)
_BOT_DM = 1  # the context of a private chat with the bot


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The data for answering an interaction. `token` is a secret of 15 minutes; `private` is for the user's eyes."""

    app: str
    id: str
    token: str
    user: str
    private: bool
    message: str = ""

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Ticket | None:
        """Reads a ticket; None for an empty text, and for a text that no version of Remora would have written."""
        try:
            return cls(**json.loads(text)) if text else None
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordPlace:
    """A channel or thread of Discord as a place of Remora. `mine` is True for a thread that the bot started.

    `topic` is the name of the thread, in a forum the title of its post.
    """

    chat: str
    thread: str | None = None
    title: str = ""
    topic: str = ""
    server: str | None = None
    mine: bool = False


class NamesOf(TypedDict):
    """Functions that return the name of a server's role or channel by its id, if it is known."""

    role: Callable[[str], str | None]
    channel: Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContent:
    """The content of a message; `named`: it mentions the bot; `answered`: the id of the message it replies to.

    `forwarded_from` is the channel that a forwarded message comes from, if the bot knows it.
    """

    text: str
    named: bool
    forwarded: bool
    attachments: tuple[Attachment, ...]
    answered: str | None
    quoted: Quoted | None = None
    forwarded_from: str = ""


def made_at(snowflake: str | int) -> int:
    """Returns when Discord made the object with this id, in milliseconds UTC."""
    return (int(snowflake) >> 22) + _EPOCH


def snowflake(at: int) -> int:
    """Returns the lowest id of that millisecond (UTC); 0 for times before Discord."""
    return max(0, at - _EPOCH) << 22


def span(milliseconds: int) -> int:
    """Returns the growth of ids in this many milliseconds."""
    return milliseconds << 22


def edited_at(message: Json) -> int | None:
    """Returns when a message was edited, in milliseconds UTC; None if it was not."""
    return moment(message.get("edited_timestamp"))


def moment(stamp: object) -> int | None:
    """Returns a time of Discord's in milliseconds UTC; None for what is none."""
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000) if isinstance(stamp, str) else None
    except (ValueError, OverflowError):
        return None


def is_from_person(message: Json) -> bool:
    """Returns whether a person wrote the message, not a bot, a webhook or Discord itself (a join, a pin, a boost)."""
    author, kind = message.get("author"), message.get("type", _DEFAULT)
    return (
        isinstance(author, dict)
        and not author.get("bot")
        and not author.get("system")
        and not message.get("webhook_id")
        and kind not in _TOLD
        and (kind in (_DEFAULT, _REPLY) or bool(message.get("content")) or message.get("guild_id") is None)
    )


def is_reply(message: Json) -> bool:
    reference = message.get("message_reference")
    return message.get("type") == _REPLY and isinstance(reference, dict) and "message_id" in reference


def sieved(value: Any, reads: Callable[[Any], object], needed: Collection[str] = ("id", "type")) -> Any:
    """Returns as much of `value` as `reads` takes without an error: fields and items that it fails on are left out.

    The fields `needed` are tried together and first. Returns None if it takes nothing.
    """

    def takes(part: Any) -> bool:
        try:
            reads(part)
        except UNREADABLE:
            return False
        return True

    if takes(value):
        return value
    kept: Any = None
    if isinstance(value, list) and len(value) > 1:
        half = len(value) // 2
        kept = [item for part in (value[:half], value[half:]) for item in sieved(part, reads) or ()]
    elif isinstance(value, list):
        kept = [item for one in value if (item := sieved(one, lambda part: reads([part]))) is not None]
    elif isinstance(value, dict):
        kept = {name: value[name] for name in needed if name in value}
        kept = kept if takes(kept) else {}
        for name in [name for name in value if name not in kept]:
            part = sieved(value[name], partial(_with, reads, kept, name))
            if part is not None:
                kept[name] = part
    return kept if kept is not None and takes(kept) else None


def _with(reads: Callable[[Any], object], kept: Json, name: str, part: Any) -> object:
    return reads(kept | {name: part})


def display(user: Json, member: Json | None = None) -> str:
    """Returns a user's name as people see it; never empty."""
    names = [(member or {}).get("nick"), user.get("global_name"), user.get("username"), user.get("id")]
    return _well_formed(next((str(name) for name in names if name and str(name).strip()), "?"))


def read(
    message: Json,
    *,
    me: str = "",
    tags: Sequence[str],
    **names: Unpack[NamesOf],
) -> MessageContent:
    """Returns the content of a message; `tags` are the mentions that mean the bot, whose id is `me`."""
    reference = message.get("message_reference") or {}
    snapshots = message.get("message_snapshots") or ()
    forwarded = reference.get("type") == _FORWARD or bool(snapshots)
    content = snapshots[0].get("message") or message if snapshots else message
    text = _words(content)
    # Discord's lists tell what its clients show as a mention; in a span of code there is none.
    mentioned = {str(user["id"]) for user in message.get("mentions") or ()} | set(message.get("mention_roles") or ())
    named = not forwarded and any(tag in text and tag.strip("<@!&>") in mentioned for tag in tags)
    users = {
        str(user["id"]): display(user, user.get("member"))
        for user in (*(message.get("mentions") or ()), *(content.get("mentions") or ()))
    }
    if named:
        text = _without(text, tags) or text
    answered = None if forwarded else reference.get("message_id")
    origin = names["channel"](str(reference.get("channel_id"))) if forwarded else None
    quoted = None
    if answered is not None and "referenced_message" in message:
        speaker = str((message.get("author") or {}).get("id", ""))
        quoted = quotation(message["referenced_message"], speaker, me=me, **names)
    return MessageContent(
        text=_well_formed(_TAG.sub(lambda tag: _named(tag, users, **names), text)),
        named=named,
        forwarded=forwarded,
        attachments=_attachments(message, content),
        answered=None if answered is None else str(answered),
        quoted=quoted,
        forwarded_from=f"#{origin}" if origin else "",
    )


def quotation(
    quoted: Json | None,
    speaker: str,
    *,
    me: str,
    kind: QuotedKind = "message",
    **names: Unpack[NamesOf],
) -> Quoted:
    """Returns a message that a person with the id `speaker` answers; None stands for one that is deleted."""
    if quoted is None:
        return Quoted(kind="gone")
    author, content = quoted.get("author") or {}, read(quoted, tags=(), **names)
    number = str(author.get("id", ""))
    name = display(author, quoted.get("member"))
    whose: Whose = "bot" if number == me else "self" if number == speaker else "other"
    if content.forwarded:  # Discord does not tell who first said it
        whose = "other"
        name = f"{content.forwarded_from or 'somebody'}, forwarded by {name}"
    return Quoted(
        whose=whose,
        kind=kind,
        author=name,
        author_id="" if quoted.get("webhook_id") else number,
        text=content.text,
        attachments=content.attachments,
    )


def find_attachment(message: Json, attachment: str) -> str | None:
    shown = [message, *(one.get("message") or {} for one in message.get("message_snapshots") or ())]
    for one in shown:
        for found in one.get("attachments") or ():
            if str(found.get("id")) == attachment and found.get("url"):
                return str(found["url"])
    return None


def content(outbound: Outbound) -> Json:
    body: Json = {
        "content": outbound.text,
        "allowed_mentions": {"parse": [], "replied_user": False},
        "flags": SUPPRESS_EMBEDS,
        "components": _components(outbound.buttons),
    }
    if outbound.file is not None:
        # The whole list, so that a file already attached by an earlier try is replaced and not shown twice.
        body["attachments"] = [{"id": 0, "filename": outbound.file.name}]
    return body


def bare(body: Json) -> Json:
    kept = {name: value for name, value in body.items() if name not in ("components", "message_reference")}
    return kept | {"content": body["content"][:MESSAGE_LIMIT]}


def nonce(outbound: Outbound) -> str:
    """Returns at most 25 characters that identify this row of this installation, in every run."""
    mixed = hashlib.blake2s(f"{outbound.place.session_key} {outbound.made_at}".encode("utf-8", "surrogatepass"))
    return f"{outbound.id % 10**10}-{mixed.hexdigest()[:12]}"


def private_commands(commands: Sequence[CommandSpec]) -> list[Json]:
    """Returns the commands of private chats, but not admins': Discord would offer them to everybody."""
    return [
        _command(command) | {"contexts": [_BOT_DM], "integration_types": [0]}
        for command in _offered(commands)
        if not command.admin
    ][:_MOST_COMMANDS]


def server_commands(commands: Sequence[CommandSpec]) -> list[Json]:
    """Returns a server's commands; admins' are shown to its managers until its owner decides otherwise."""
    return [
        _command(command) | ({"default_member_permissions": _MANAGE_GUILD} if command.admin else {})
        for command in _offered(commands)
        if not command.private
    ][:_MOST_COMMANDS]


def fingerprint(application: str, payload: Sequence[Json]) -> str:
    """Returns a hash that changes when the commands to register change."""
    return hashlib.sha256(f"{application} {json.dumps(payload, sort_keys=True)}".encode()).hexdigest()[:24]


def typed(spec: CommandSpec | None, data: Json, *, without: str = "") -> str:
    """Returns a slash command as the text that means the same, with its values in the order of the table."""
    given = {
        str(one.get("name")): str(one.get("value", "")) for one in data.get("options") or () if isinstance(one, dict)
    }
    order = [_option_name(option) for option in spec.options] if spec is not None else list(given)
    values = [given[name].strip() for name in order if name in given and name != without]
    return _well_formed(" ".join([f"/{data.get('name', '')}", *filter(None, values)]))


def option_of(spec: CommandSpec | None, name: str) -> str:
    return next((one.name for one in spec.options if _option_name(one) == name), name) if spec is not None else name


def focused(data: Json) -> tuple[str, str] | None:
    for one in data.get("options") or ():
        if isinstance(one, dict) and one.get("focused"):
            return str(one.get("name")), _well_formed(str(one.get("value", "")))
    return None


def choices(suggestions: Iterable[Suggestion]) -> list[Json]:
    """Returns the suggestions, without values too long for Discord: a part would mean something else."""
    found = [
        {"name": _cut(one.label.strip() or one.value, 100), "value": one.value}
        for one in suggestions
        if 0 < len(one.value) <= 100
    ]
    return found[:_MOST_CHOICES]


def modal(form: Form, custom_id: str) -> Json:
    limit = max(1, min(form.limit, 4_000))
    field: Json = {
        "type": 4,
        "custom_id": "text",
        "style": 2,
        "label": _cut(form.label, _LABEL_LIMIT) or "…",
        "max_length": limit,
        "required": True,
    }
    if form.value:
        field["value"] = form.value[:limit]
    title = _cut(form.title, _LABEL_LIMIT) or "…"
    return {"custom_id": custom_id, "title": title, "components": [{"type": 1, "components": [field]}]}


def entered(data: Json) -> str:
    for row in data.get("components") or ():
        for field in [row.get("component"), *(row.get("components") or ())]:
            if isinstance(field, dict) and "value" in field:
                return _well_formed(str(field["value"]).strip())
    return ""


def _offered(commands: Sequence[CommandSpec]) -> list[CommandSpec]:
    return [command for command in commands if _NAME.fullmatch(command.name) and command.help.strip()]


def _command(command: CommandSpec) -> Json:
    options: list[Json] = []
    required = True
    for option in command.options[:25]:
        # Discord wants required options first; no option after an optional one can be required.
        required = required and option.required
        options.append(_option(option, required=required))
    payload: Json = {"name": command.name, "type": 1, "description": _cut(command.help, _HELP_LIMIT)}
    if translated := _translated(command.translated):
        payload["description_localizations"] = translated
    if options:
        payload["options"] = options
    return payload


def _option(option: Option, *, required: bool) -> Json:
    payload: Json = {
        "type": 3,
        "name": _option_name(option),
        "description": _cut(option.help, _HELP_LIMIT) or option.name,
        "required": required,
    }
    if translated := _translated(option.translated):
        payload["description_localizations"] = translated
    if option.choices and len(option.choices) <= _MOST_CHOICES:
        payload["choices"] = [{"name": one[:100], "value": one[:100]} for one in option.choices]
    elif option.suggests:
        payload["autocomplete"] = True
    return payload


def _option_name(option: Option) -> str:
    return re.sub(r"[^-_a-z0-9]", "_", option.name.lower())[:32] or "text"


def _translated(texts: Mapping[str, str]) -> dict[str, str]:
    said = {_LOCALES[code]: _cut(text, _HELP_LIMIT) for code, text in texts.items() if code in _LOCALES}
    return {locale: text for locale, text in said.items() if text}


def _components(buttons: Sequence[Button]) -> list[Json]:
    return [
        {
            "type": 1,
            "components": [
                {"type": 2, "style": 2, "label": _cut(one.label, _BUTTON_LIMIT) or "…", "custom_id": one.data}
                for one in row
            ],
        }
        for row in rows([button for button in buttons if 0 < len(button.data) <= DATA_LIMIT])[:5]
    ]


def _words(content: Json) -> str:
    """Returns a message's own text; of one made of components, what stands in them."""
    return "\n".join(filter(None, (str(content.get("content") or ""), *_component_words(content.get("components")))))


def _component_words(components: object) -> Iterator[str]:
    for part in components if isinstance(components, list) else ():
        if isinstance(part, dict):
            if isinstance(part.get("content"), str):
                yield part["content"]
            yield from _component_words(part.get("components"))


def _attachments(message: Json, content: Json) -> tuple[Attachment, ...]:
    found = [_attachment(message, content, one) for one in content.get("attachments") or ()]
    found += [
        Attachment(kind="other", name=_well_formed(f"sticker {one.get('name', '')}".strip()))
        for one in content.get("sticker_items") or ()
    ]
    if (poll := content.get("poll")) is not None:
        found.append(_poll(poll))
    found += [preview for embed in content.get("embeds") or () if (preview := _embed(embed)) is not None]
    return tuple(found)


def _poll(poll: Json) -> Attachment:
    question = (poll.get("question") or {}).get("text") or ""
    results = poll.get("results") or {}
    votes = {count.get("id"): count.get("count") for count in results.get("answer_counts") or ()}
    lines = [f"poll{', closed' if results.get('is_finalized') else ''}: {question}"]
    for answer in poll.get("answers") or ():
        media, count = answer.get("poll_media") or {}, votes.get(answer.get("answer_id"), 0)
        text = media.get("text") or (media.get("emoji") or {}).get("name") or ""
        lines.append(f"- {text}" + (f" ({count} vote{'' if count == 1 else 's'})" if poll.get("results") else ""))
    return Attachment(kind="other", name=_well_formed(f"poll {question}".strip()), text=_well_formed("\n".join(lines)))


def _embed(embed: Json) -> Attachment | None:
    """Returns an embed or the preview of a link as words; None if it has none."""
    parts = [(embed.get(name) or {}).get(key) for name, key in (("provider", "name"), ("author", "name"))]
    parts += [embed.get("title"), embed.get("description")]
    parts += [f"{field.get('name', '')}: {field.get('value', '')}" for field in embed.get("fields") or ()]
    parts += [(embed.get("footer") or {}).get("text"), embed.get("url")]
    lines = [str(part).strip() for part in parts if part and str(part).strip()]
    if not lines:
        return None
    what = "embed" if embed.get("type", "rich") == "rich" else "link preview"
    title = str(embed.get("title") or embed.get("url") or "")
    return Attachment(kind="preview", name=_well_formed(f"{what} {title}".strip()), text=_well_formed("\n".join(lines)))


def _attachment(message: Json, content: Json, one: Json) -> Attachment:
    name = str(one.get("filename") or "")
    media_type = str(one.get("content_type") or mimetypes.guess_type(name)[0] or "").partition(";")[0].strip().lower()
    size = one.get("size")
    reference = {
        "channel": str(message.get("channel_id", "")),
        "message": str(message.get("id", "")),
        "attachment": str(one.get("id", "")),
        "url": str(one.get("url", "")),
    }
    return Attachment(
        kind=_kind(media_type),
        name=_well_formed(name),
        media_type=media_type,
        size=size if isinstance(size, int) else None,
        reference=json.dumps(reference),
        spoken=bool(int(content.get("flags") or 0) & _VOICE),
    )


def _kind(media_type: str) -> AttachmentKind:
    match media_type.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
    return "file"


def _without(text: str, tags: Sequence[str]) -> str:
    start, end = 0, len(text)
    while True:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if (tag := next((tag for tag in tags if text.startswith(tag, start, end)), None)) is not None:
            start += len(tag)
            start += text[start : start + 1] in (",", ":")
        elif (tag := next((tag for tag in tags if text.endswith(tag, start, end)), None)) is not None:
            end -= len(tag)
        else:
            return text[start:end]


def _named(
    tag: re.Match[str],
    users: Mapping[str, str],
    role: Callable[[str], str | None],
    channel: Callable[[str], str | None],
) -> str:
    kind, number = tag[1], tag[2]
    if kind in ("@", "@!"):
        return f"@{users.get(number, number)}"
    if kind == "@&":
        return f"@{role(number) or number}"
    if kind == "#":
        return f"#{channel(number) or number}"
    return kind[:-1] if kind[0] == "/" else kind.removeprefix("a")


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _well_formed(text: str) -> str:
    """Returns `text` with U+FFFD for lone surrogates, which no database stores."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
