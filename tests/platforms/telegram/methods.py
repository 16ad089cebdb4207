"""The effects of the Bot API's methods on the world, and their refusals.

Invariants: a refused call changed nothing; refusals have Telegram's words; only methods that stand in `PLAYED` exist.
The words are those of tdlib's Bot API server (Client.cpp) and of Telegram's own servers as bots report them.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import aiogram.methods as api
from aiogram import Bot
from aiogram.methods import TelegramMethod
from aiogram.types import ChatMemberAdministrator, InlineKeyboardMarkup
from teremok.validation import ApiRuleViolation, validate_method

from tests.platforms.telegram import menus
from tests.platforms.telegram.updates import JSON, Refused
from tests.platforms.telegram.webhook import MOST_CONNECTIONS
from tests.platforms.telegram.wire import plain
from tests.platforms.telegram.world import BIGGEST_DOWNLOAD, BIGGEST_UPLOAD, Chat, Message, World, trimmed, utf16

Files: TypeAlias = Mapping[str, tuple[str, bytes]]
Play: TypeAlias = Callable[[World, Any, Files], Any]

_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a"
    " current content and reply markup of the message"
)
_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)


def play(world: World, call: TelegramMethod[Any], files: Files) -> Any:
    """The result of a call, as JSON. Raises `Refused`, with 501 for a method that is not played."""
    todo = PLAYED.get(call.__api_method__)
    if todo is None:
        raise Refused(501, f"this emulator does not play {call.__api_method__}")
    _judge(call)
    return todo(world, call, files)


def _judge(call: TelegramMethod[Any]) -> None:
    """Texts, entities, captions and keyboards by the rules of the Bot API."""
    text = getattr(call, "text", None)
    if isinstance(call, api.SendMessageDraft):
        # The rules of the message it grows into, but for being empty.
        text = call.text or ""
        if text.strip():
            mode, entities = call.parse_mode, call.entities
            _judge(api.SendMessage(chat_id=call.chat_id, text=text, entities=entities, parse_mode=mode))
        return
    if isinstance(call, api.SendMessage | api.EditMessageText) and isinstance(text, str):
        if text and not text.strip():
            raise Refused(400, "Bad Request: text must be non-empty")
        _judge_entities(text, call.entities or ())
    try:
        validate_method(_judging_bot(), call)
    except ApiRuleViolation as violation:
        raise Refused(400, violation.description) from violation


def _judge_entities(text: str, entities: Any) -> None:
    length = utf16(text)
    for entity in entities:
        end = entity.offset + entity.length
        if entity.offset < 0 or entity.length < 0:
            raise Refused(400, f"Bad Request: receive an entity with incorrect offset {entity.offset}")
        if entity.offset >= length:
            raise Refused(400, f"Bad Request: entity begins after the end of the text at UTF-16 offset {entity.offset}")
        if end > length:
            raise Refused(
                400,
                f"Bad Request: entity beginning at UTF-16 offset {entity.offset} ends after the end of the text at"
                f" UTF-16 offset {end}",
            )
        units = text.encode("utf-16-le", "surrogatepass")
        for edge, verb in ((entity.offset, "begins"), (end, "ends")):
            # The second half of a pair: no symbol starts here.
            if edge < length and 0xDC <= units[2 * edge + 1] <= 0xDF:
                raise Refused(
                    400,
                    f"Bad Request: entity beginning at UTF-16 offset {entity.offset} {verb} in a middle of a UTF-16"
                    f" symbol at UTF-16 offset {edge}",
                )


@lru_cache(1)
def _judging_bot() -> Bot:
    """teremok asks a bot for defaults; this one has none."""
    return Bot("1:judge")


def _get_me(world: World, _call: Any, _files: Files) -> JSON:
    return {**world.me.wire(), **world.about_me}


def _send_message(world: World, call: api.SendMessage, _files: Files) -> JSON:
    text, entities = trimmed(call.text, [plain(entity) for entity in call.entities or ()])
    content: JSON = {"text": text}
    if entities:
        content["entities"] = entities
    if call.link_preview_options is not None and hasattr(call.link_preview_options, "is_disabled"):
        content["link_preview_options"] = plain(call.link_preview_options)
    return _say(world, call, content).wire


def _send_document(world: World, call: api.SendDocument, files: Files) -> JSON:
    stored = _stored(world, call.document, files, "document", ".bin")
    name = next((name for name, _ in files.values()), "file.bin")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    document = {**stored, "file_name": name, "mime_type": kind}
    return _say(world, call, {"document": document, **_caption(call)}).wire


def _caption(call: Any) -> JSON:
    if not call.caption:
        return {}
    text, entities = trimmed(call.caption, [plain(entity) for entity in call.caption_entities or ()])
    return {"caption": text, **({"caption_entities": entities} if entities else {})}


def _stored(world: World, given: Any, files: Files, what: str, suffix: str) -> JSON:
    """A file that is uploaded now, or one the bot knows by its id."""
    if isinstance(given, str) and given.startswith("attach://") and given[9:] in files:
        data = files[given[9:]][1]
        if not data:
            raise Refused(400, "Bad Request: file must be non-empty")
        if len(data) > BIGGEST_UPLOAD:
            raise Refused(413, "Request Entity Too Large")
        return world.keep_file(what, data, suffix).wire()
    if isinstance(given, str) and given in world.files:
        return world.files[given].wire()
    raise Refused(400, "Bad Request: wrong file identifier/HTTP URL specified")


def _say(world: World, call: Any, content: JSON) -> Message:
    chat = world.speakable(call.chat_id)
    reply_to: int | None = None
    if call.reply_parameters is not None:
        answered = chat.messages.get(call.reply_parameters.message_id)
        if answered is not None and not answered.deleted:
            reply_to = answered.id
        elif call.reply_parameters.allow_sending_without_reply is not True:
            raise Refused(400, "Bad Request: message to be replied not found")
    if isinstance(call.reply_markup, InlineKeyboardMarkup):
        content = {**content, "reply_markup": _keyboard(call.reply_markup)}
    return world.post(chat, content, by=world.me, thread=call.message_thread_id, reply_to=reply_to)


def _keyboard(markup: InlineKeyboardMarkup) -> JSON:
    return {"inline_keyboard": [[plain(button) for button in row] for row in markup.inline_keyboard]}


def _edit_text(world: World, call: api.EditMessageText, _files: Files) -> JSON:
    message = _to_edit(world, call)
    if "text" not in message.wire:
        raise Refused(400, "Bad Request: there is no text in the message to edit")
    assert call.text is not None
    text, entities = trimmed(call.text, [plain(entity) for entity in call.entities or ()])
    changed: JSON = {"text": text, "entities": entities, "reply_markup": {}}
    if call.reply_markup is not None:
        changed["reply_markup"] = _keyboard(call.reply_markup)
    return _edited(world, message, changed)


def _to_edit(world: World, call: Any) -> Message:
    if call.chat_id is None or call.message_id is None:
        raise Refused(400, "Bad Request: message identifier is not specified")
    chat = world.speakable(call.chat_id)
    message = chat.messages.get(call.message_id)
    if message is None or message.deleted:
        raise Refused(400, "Bad Request: message to edit not found")
    if not message.by_bot:
        raise Refused(400, "Bad Request: message can't be edited")
    thread = message.wire.get("message_thread_id")
    topic = chat.topics.get(thread) if thread is not None else None
    if topic is not None and topic.deleted:
        raise Refused(400, "Bad Request: message to edit not found")
    return message


def _edited(world: World, message: Message, changed: JSON) -> JSON:
    """The message with its content replaced; an empty value takes a field away."""
    before = {name: message.wire.get(name) or type(value)() for name, value in changed.items()}
    if before == changed:
        raise Refused(400, _NOT_MODIFIED)
    message.edits.append({name: value for name, value in message.wire.items() if name in changed})
    wire = {**message.wire, **changed, "edit_date": int(world.now())}
    message.wire = {name: value for name, value in wire.items() if name not in changed or value}
    world.pulse.beat()
    return message.wire


def _answer_callback(world: World, call: api.AnswerCallbackQuery, _files: Files) -> bool:
    callback = world.callbacks.get(call.callback_query_id)
    if callback is None or callback["answer"] is not None:
        raise Refused(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
    callback["answer"] = {"text": call.text or "", "show_alert": bool(call.show_alert)}
    world.pulse.beat()
    return True


def _chat_action(world: World, call: api.SendChatAction, _files: Files) -> bool:
    chat = world.speakable(call.chat_id)
    if call.action not in _ACTIONS:
        raise Refused(400, "Bad Request: wrong parameter action in request")
    if call.message_thread_id is not None and call.message_thread_id not in chat.topics:
        raise Refused(400, "Bad Request: message thread not found")
    world.actions.append({"chat": chat.id, "thread": call.message_thread_id, "action": call.action})
    return True


def _set_reaction(world: World, call: api.SetMessageReaction, _files: Files) -> bool:
    message = world.speakable(call.chat_id).messages.get(call.message_id)
    if message is None or message.deleted:
        raise Refused(400, "Bad Request: message to react not found")
    emojis = [str(plain(one)["emoji"]) for one in call.reaction or ()]
    if len(emojis) > 1:
        raise Refused(400, "Bad Request: REACTIONS_TOO_MANY")
    message.reactions[world.me.id] = emojis
    world.marks.append({"message_id": message.id, "emojis": emojis})
    world.pulse.beat()
    return True


def _draft(world: World, call: api.SendMessageDraft, _files: Files) -> bool:
    chat = world.speakable(call.chat_id)
    if chat.kind != "private" or not world.drafts.allowed:
        raise Refused(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
    if call.draft_id == 0:
        raise Refused(400, "Bad Request: draft_id must be non-zero")
    if call.message_thread_id is not None and call.message_thread_id not in chat.topics:
        raise Refused(400, "Bad Request: message thread not found")
    text, entities = trimmed(call.text or "", [plain(entity) for entity in call.entities or ()])
    world.drafts.show(chat.id, call.message_thread_id, call.draft_id, text, entities)
    world.pulse.beat()
    return True


def _set_commands(world: World, call: api.SetMyCommands, _files: Files) -> bool:
    commands = [{"command": one.command, "description": one.description} for one in call.commands]
    menus.put(world, menus.key(world, call.scope, call.language_code), commands)
    return True


def _delete_commands(world: World, call: Any, _files: Files) -> bool:
    world.commands.pop(menus.key(world, call.scope, call.language_code), None)
    return True


def member(world: World, chat: Chat, user: int, status: str) -> JSON:
    """A ChatMember with all the fields its status asks for."""
    wire: JSON = {"status": status, "user": world.person(user).wire()}
    if status == "creator":
        wire["is_anonymous"] = False
    elif status == "kicked":
        wire["until_date"] = 0
    elif status == "administrator":
        # Each version of the Bot API adds a right, which clients then insist on.
        rights = (name for name, field in ChatMemberAdministrator.model_fields.items() if field.is_required())
        wire |= dict.fromkeys((right for right in rights if right not in wire), True)
        wire |= {"can_be_edited": False, "is_anonymous": False}
    return wire


def _get_file(world: World, call: api.GetFile, _files: Files) -> JSON:
    if call.file_id not in world.files:
        raise Refused(400, "Bad Request: invalid file_id")
    stored = world.files[call.file_id]
    if stored.size > BIGGEST_DOWNLOAD:
        raise Refused(400, "Bad Request: file is too big")
    return {**stored.wire(), "file_path": stored.path}


def _set_webhook(world: World, call: api.SetWebhook, _files: Files) -> bool:
    if call.url:
        _judge_address(call.url)
    secret = call.secret_token or ""
    if len(secret) > 256:
        raise Refused(400, "Bad Request: secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise Refused(400, "Bad Request: secret token contains unallowed characters")
    if call.drop_pending_updates:
        world.queue.forget_all()
    if call.allowed_updates is not None:
        world.queue.allowed = tuple(call.allowed_updates)
    world.webhook.set(secret, min(max(call.max_connections or 40, 1), MOST_CONNECTIONS))
    world.queue.set_webhook(call.url)
    return True


def _judge_address(url: str) -> None:
    address = urlsplit(url)
    if address.scheme != "https":
        raise Refused(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
    if (address.port or 443) not in (80, 88, 443, 8443):
        raise Refused(400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")


def _delete_webhook(world: World, call: api.DeleteWebhook, _files: Files) -> bool:
    if call.drop_pending_updates:
        world.queue.forget_all()
    if world.queue.webhook:
        world.webhook.set("", 40)
        world.queue.set_webhook("")
    return True


def _webhook_info(world: World, _call: Any, _files: Files) -> JSON:
    queue, webhook = world.queue, world.webhook
    info: JSON = {"url": queue.webhook, "has_custom_certificate": False, "pending_update_count": len(queue.waiting)}
    if queue.webhook:
        info["max_connections"] = webhook.max_connections
    if webhook.error:
        info |= {"last_error_date": int(webhook.error_at), "last_error_message": webhook.error}
    if queue.allowed:
        info["allowed_updates"] = list(queue.allowed)
    return info


#: getUpdates is played by the server, for it waits; logOut by it too, for it ends the token.
PLAYED: dict[str, Play] = {
    "getMe": _get_me,
    "sendMessage": _send_message,
    "sendMessageDraft": _draft,
    "sendDocument": _send_document,
    "editMessageText": _edit_text,
    "answerCallbackQuery": _answer_callback,
    "sendChatAction": _chat_action,
    "setMessageReaction": _set_reaction,
    "setMyCommands": _set_commands,
    "deleteMyCommands": _delete_commands,
    "getFile": _get_file,
    "setWebhook": _set_webhook,
    "deleteWebhook": _delete_webhook,
    "getWebhookInfo": _webhook_info,
}
