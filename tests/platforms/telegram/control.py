"""The test's side of the platform: each action of `Control`, done to one bot's world.

Invariants: what a person does here is what the bot is told of, in the same order; an action that can't be done says why
and changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.platforms import control as shared
from tests.platforms.control import Action, Wrong
from tests.platforms.telegram import media, menus
from tests.platforms.telegram.limits import Rates
from tests.platforms.telegram.methods import member as chat_member
from tests.platforms.telegram.updates import JSON, Refused
from tests.platforms.telegram.world import Chat, Message, Topic, World, found_entities

if TYPE_CHECKING:
    from tests.platforms.telegram.server import Account, Platform

#: The author of messages that a group's anonymous admin, or a channel, writes. Telegram's own ids.
_ANONYMOUS = 1087968824
_CHANNEL_BOT = 136817688


async def act(platform: Platform, token: str, action: str, fields: JSON) -> JSON:
    """Do an action. Raises `Wrong`."""
    try:
        answer = await shared.act(platform, ACTIONS, token, action, fields)
    except Refused as refused:
        raise Wrong(refused.description) from refused
    platform.accounts[token].world.pulse.beat()
    return answer


def _say(
    _platform: Platform,
    account: Account,
    *,
    text: str,
    user: int,
    chat: int | None = None,
    kind: Any = None,
    thread: int | None = None,
    reply_to: int | None = None,
    entities: list[JSON] | None = None,
    forwarded: bool = False,
    sender_chat: int | None = None,
    sent_at: int | None = None,
    name: str | None = None,
    username: str | None = None,
    is_bot: bool | None = None,
    language: str | None = None,
    title: str | None = None,
    forum: bool | None = None,
    file: JSON | None = None,
    thing: JSON | None = None,
    media_group: str | None = None,
    extra: JSON | None = None,
) -> JSON:
    world = account.world
    person = world.person(user, first_name=name, username=username, is_bot=is_bot, language=language)
    if chat is None or chat == user:
        place = world.private(person)
        if place.gone == "blocked":
            raise Wrong(f"user {user} has blocked the bot; unblock it first")
    else:
        place = world.place(chat, kind=kind, title=title)
        if forum is not None:
            place.forum = forum
        if place.gone or place.migrated_to is not None:
            raise Wrong(f"the bot is not told what is said in {chat}: {place.gone or 'it has moved'}")
    if reply_to is not None and reply_to not in place.messages:
        raise Wrong(f"there is no message {reply_to} in {place.id}")
    content: JSON = {**_file(world, file), **media.thing(**thing or {})}
    named = ("caption", "caption_entities") if content else ("text", "entities")
    if text:
        content[named[0]] = text
        marked = found_entities(text) if entities is None else entities
        if marked:
            content[named[1]] = marked
    if media_group is not None:
        content["media_group_id"] = media_group
    if forwarded:
        origin = {"type": "user", "date": int(world.now()) - 60, "sender_user": world.person(777).wire()}
        content["forward_origin"] = origin
    speaker, voice = person, None
    if sender_chat is not None:
        group = sender_chat == place.id
        speaker = world.person(
            _ANONYMOUS if group else _CHANNEL_BOT,
            first_name="Group" if group else "Channel",
            username="GroupAnonymousBot" if group else "Channel_Bot",
            is_bot=True,
        )
        voice = place.wire() if group else {"id": sender_chat, "type": "channel", "title": "Channel"}
    message = world.post(
        place, content, by=speaker, sender_chat=voice, thread=thread, reply_to=reply_to, sent_at=sent_at
    )
    message.wire |= extra or {}
    return _said(place, message, world.tell("message", message))


def _file(world: World, file: JSON | None) -> JSON:
    if file is None:
        return {}
    if file["kind"] not in media.SUFFIXES:
        raise Wrong(f"there are no files of the kind {file['kind']}; there are {sorted(media.SUFFIXES)}")
    return media.file(world, **file)


async def _album(
    platform: Platform,
    account: Account,
    *,
    parts: Sequence[JSON],
    pause: float,
    reply_to: int | None = None,
    **who: Any,
) -> JSON:
    fault = media.album_fault([part["file"]["kind"] for part in parts])
    if fault:
        raise Wrong(fault)
    group = account.world.next_album_id()
    said: list[JSON] = []
    for number, part in enumerate(parts):
        if number:
            await asyncio.sleep(pause)
        # An answer is one to the message that the album looks like: its first part.
        said.append(_say(platform, account, media_group=group, reply_to=None if number else reply_to, **part, **who))
        account.world.pulse.beat()
    return {"media_group": group, "parts": said}


def _edit(
    _platform: Platform, account: Account, *, chat: int, message_id: int, text: str, entities: list[JSON] | None = None
) -> JSON:
    world = account.world
    message = _message(world, chat, message_id)
    if message.by_bot:
        raise Wrong("people can't edit what the bot wrote")
    captioned = "text" not in message.wire
    named = ("caption", "caption_entities") if captioned else ("text", "entities")
    message.edits.append({name: message.wire[name] for name in named if name in message.wire})
    wire = {key: value for key, value in message.wire.items() if key != named[1]}
    marked = found_entities(text) if entities is None else entities
    message.wire = {**wire, named[0]: text, **({named[1]: marked} if marked else {}), "edit_date": int(world.now())}
    return {"update_id": world.tell("edited_message", message)}


def _press(
    _platform: Platform,
    account: Account,
    *,
    chat: int,
    message_id: int,
    user: int,
    data: str | None = None,
    label: str | None = None,
    inaccessible: bool = False,
) -> JSON:
    world = account.world
    place = _chat(world, chat)
    if (data is None) == (label is None):
        raise Wrong("a button is pressed by its data or by its label")
    if inaccessible:
        if data is None:
            raise Wrong("a message that is not shown has no labels; press by data")
        shown: JSON = {"chat": place.wire(), "message_id": message_id, "date": 0}
    else:
        message = _message(world, chat, message_id)
        if message.deleted:
            raise Wrong(f"message {message_id} is deleted; nobody can press its buttons")
        rows = message.wire.get("reply_markup", {}).get("inline_keyboard", [])
        name, wanted = ("text", label) if data is None else ("callback_data", data)
        pressable = [button for row in rows for button in row if "callback_data" in button]
        found = [button for button in pressable if button.get(name) == wanted]
        if len(found) != 1:
            raise Wrong(f"message {message_id} has {len(found)} buttons with {wanted!r}; it has {rows}")
        data = found[0]["callback_data"]
        shown = message.wire
    callback_id = world.next_callback_id()
    callback = {
        "id": callback_id,
        "from": world.person(user).wire(),
        "message": shown,
        "chat_instance": str(chat),
        "data": data,
    }
    world.callbacks[callback_id] = {"data": data, "user": user, "message_id": message_id, "answer": None}
    return {"callback_id": callback_id, "update_id": world.queue.put("callback_query", callback)}


def _react(_platform: Platform, account: Account, *, chat: int, message_id: int, user: int, emojis: list[str]) -> JSON:
    """A person's reactions to a message are now these; in groups only an administrator hears of it."""
    world = account.world
    place, message = _chat(world, chat), _message(world, chat, message_id)
    told = {
        "chat": place.wire(),
        "message_id": message_id,
        "user": world.person(user).wire(),
        "date": int(world.now()),
        "old_reaction": [{"type": "emoji", "emoji": emoji} for emoji in message.reactions.get(user, ())],
        "new_reaction": [{"type": "emoji", "emoji": emoji} for emoji in emojis],
    }
    message.reactions[user] = emojis
    hears = place.kind == "private" or place.bot_admin
    return {"update_id": world.queue.put("message_reaction", told) if hears else None}


def _member(_platform: Platform, account: Account, *, chat: int, change: str, user: int) -> JSON:
    world = account.world
    if change in ("block", "unblock", "deactivate"):
        place = world.private(world.person(chat))
        by = place.id
    else:
        place, by = world.place(chat), user
    if change == "deactivate":
        place.gone = "deactivated"
        return {"update_id": None}
    before = "kicked" if place.gone in ("blocked", "kicked") else "left" if place.gone or change == "add" else "member"
    after = {"block": "kicked", "kick": "kicked", "leave": "left", "unblock": "member", "add": "member"}.get(change)
    if after is None:
        raise Wrong(f"there is no change {change}")
    place.gone = {"block": "blocked", "kick": "kicked", "leave": "left"}.get(change, "")  # type: ignore[assignment]
    told = {
        "chat": place.wire(),
        "from": world.person(by).wire(),
        "date": int(world.now()),
        "old_chat_member": chat_member(world, place, world.me.id, before),
        "new_chat_member": chat_member(world, place, world.me.id, after),
    }
    return {"update_id": world.queue.put("my_chat_member", told)}


def _status(_platform: Platform, account: Account, *, chat: int, user: int, status: str) -> None:
    account.world.person(user)
    _chat(account.world, chat).statuses[user] = status


def _group(
    _platform: Platform, account: Account, *, chat: int, kind: Any, title: str, forum: bool, bot_admin: bool
) -> None:
    place = account.world.place(chat, kind=kind, title=title)
    place.forum, place.bot_admin = forum, bot_admin


def _topic(_platform: Platform, account: Account, *, chat: int, name: str, user: int) -> JSON:
    world = account.world
    place = world.private(world.person(chat)) if chat > 0 else world.place(chat, kind="supergroup")
    place.forum = chat < 0
    content: JSON = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
    # 1 is the General topic's, whoever comes first.
    if not place.messages:
        world.next_message_id(place)
    message = world.post(place, content, by=world.person(user))
    message.wire |= {"message_thread_id": message.id, "is_topic_message": True}
    place.topics[message.id] = Topic(message.id, message.wire)
    return {"thread": message.id, "update_id": world.tell("message", message)}


def _close_topic(_platform: Platform, account: Account, *, chat: int, thread: int, user: int) -> JSON:
    world = account.world
    place = _chat(world, chat)
    message = world.post(place, {"forum_topic_closed": {}}, by=world.person(user), thread=thread)
    place.topics[thread].closed = True
    return {"update_id": world.tell("message", message)}


def _delete_topic(_platform: Platform, account: Account, *, chat: int, thread: int) -> None:
    place = _chat(account.world, chat)
    if thread not in place.topics:
        raise Wrong(f"there is no topic {thread} in {chat}")
    place.topics[thread].deleted = True
    for message in place.messages.values():
        if message.wire.get("message_thread_id") == thread:
            message.deleted = True


def _migrate(_platform: Platform, account: Account, *, chat: int, to: int | None = None) -> JSON:
    world = account.world
    old = _chat(world, chat)
    if old.kind != "group" or old.migrated_to is not None:
        raise Wrong(f"{chat} is a {old.kind}; only a group can become a supergroup, once")
    new = world.place(to if to is not None else world.new_supergroup_id(), kind="supergroup", title=old.title)
    admin = world.person(1001)
    left = world.post(old, {"migrate_to_chat_id": new.id}, by=admin)
    came = world.post(new, {"migrate_from_chat_id": old.id}, by=admin)
    old.migrated_to = new.id
    world.tell("message", left)
    world.tell("message", came)
    return {"chat": new.id}


def _channel_post(_platform: Platform, account: Account, *, text: str, chat: int, title: str) -> JSON:
    world = account.world
    place = world.place(chat, kind="channel", title=title)
    message = world.post(place, {"text": text}, sender_chat=place.wire())
    return _said(place, message, world.tell("channel_post", message))


def _delete(_platform: Platform, account: Account, *, chat: int, message_id: int) -> None:
    _message(account.world, chat, message_id).deleted = True


def _inject(_platform: Platform, account: Account, *, update: JSON) -> JSON:
    return {"update_id": account.world.queue.inject(update)}


def _redeliver(_platform: Platform, account: Account, *, pending: int, confirmed: int) -> JSON:
    return {"update_ids": account.world.queue.redeliver(waiting=pending, confirmed=confirmed)}


def _reorder(_platform: Platform, account: Account, *, seed: int) -> None:
    random.Random(seed).shuffle(account.world.queue.waiting)


def _number_updates(_platform: Platform, account: Account, *, next_id: int) -> None:
    account.world.queue.next_id = next_id


def _bot(_platform: Platform, account: Account, *, fields: JSON) -> None:
    world = account.world
    for name, value in fields.items():
        if name in world.about_me:
            world.about_me[name] = value
        elif hasattr(world.me, name):
            setattr(world.me, name, value)
        else:
            raise Wrong(f"getMe says nothing of {name}")


def _flood(_platform: Platform, account: Account, *, on: bool, **rates: Any) -> None:
    account.flood.rates = Rates(**rates) if on else None


def _menu(_platform: Platform, account: Account, *, user: int, chat: int, language: str | None = None) -> JSON:
    return {"commands": menus.seen(account.world, user, chat, language)}


def _allow_drafts(_platform: Platform, account: Account, *, allowed: bool) -> None:
    account.world.drafts.allowed = allowed


def _webhook(
    _platform: Platform,
    account: Account,
    *,
    to: Sequence[str] | None = None,
    second: float | None = None,
    patience: float | None = None,
) -> None:
    deliveries = account.deliveries
    deliveries.to = deliveries.to if to is None else to
    deliveries.second = deliveries.second if second is None else second
    deliveries.patience = deliveries.patience if patience is None else patience
    deliveries.hurry()


def _script_model(
    platform: Platform, _account: Account, *, answers: Mapping[str, str] | None = None, ms: float | None = None
) -> None:
    if answers is not None:
        platform.chat.model.answers = answers
    if ms is not None:
        platform.chat.model.ms = ms


def _state(platform: Platform, account: Account) -> JSON:
    """`chats` by id (as text) with all messages in order; `requests` are counts by method; `unanswered` are sends and
    edits that got no true answer (`effect` tells whether they happened); `kills` with the sends that were then open;
    `polls`; `updates`; `violations` of a retry_after; `callbacks` by id; `commands` by scope/language; `drafts` in the
    order they came and `standing` those that can be read now; `webhook`; `actions`; `marks`; `model`.
    """
    world, ledger, queue = account.world, account.ledger, account.world.queue
    return {
        "chats": {str(chat.id): _chat_state(chat) for chat in world.chats.values()},
        "requests": dict(ledger.counts),
        "unanswered": ledger.unanswered,
        "kills": ledger.kills,
        "polls": {
            "count": ledger.polls,
            "last": ledger.last_poll,
            "hanging": queue.polling,
            "conflicts": queue.conflicts,
        },
        "updates": {"waiting": [one.id for one in queue.waiting], "confirmed": queue.confirmed_count},
        "violations": account.flood.violations,
        "callbacks": world.callbacks,
        "commands": world.commands,
        "webhook": account.deliveries.state(),
        "drafts": [asdict(one) for one in world.drafts.seen],
        "standing": [asdict(one) for one in world.drafts.standing()],
        "actions": world.actions,
        "marks": world.marks,
        "model": platform.chat.model.state(),
    }


def _chat_state(chat: Chat) -> JSON:
    return {
        "kind": chat.kind,
        "title": chat.title,
        "gone": chat.gone,
        "migrated_to": chat.migrated_to,
        "topics": {str(t.id): {"closed": t.closed, "deleted": t.deleted} for t in chat.topics.values()},
        "messages": [
            {**message.wire, "by_bot": message.by_bot, "deleted": message.deleted, "edits": message.edits}
            for message in chat.messages.values()
        ],
    }


def _texts(_platform: Platform, account: Account, *, chat: int, by_bot: bool, since: int) -> JSON:
    place = account.world.chats.get(chat)
    messages = [] if place is None else list(place.messages.values())
    return {"texts": [m.text for m in messages if m.by_bot == by_bot and not m.deleted][since:]}


def _files(_platform: Platform, account: Account, *, chat: int) -> JSON:
    """Returns the files that the bot has sent to a chat and that stand there now; bytes in base64."""
    world = account.world
    place = world.chats.get(chat)
    shown = [] if place is None else [m for m in place.messages.values() if m.by_bot and not m.deleted]
    documents = [m.wire["document"] for m in shown if "document" in m.wire]
    return {
        "files": [[one["file_name"], base64.b64encode(world.files[one["file_id"]].data).decode()] for one in documents]
    }


#: What a test can wait for. `bot_messages`: so many undeleted messages of the bot stand in `chat` (or anywhere); with
#: `text`, so many (default one) that contain it. `method`: it was called `count` times. `polling`: a getUpdates hangs now.
#: `delivered`: every update was confirmed, or taken by the webhook. `answered`: this callback was. `idle`: for so many
#: seconds no request but getUpdates came, and none is open, of this bot or to the chat model.
_WANTED = {"chat", "bot_messages", "text", "method", "count", "polling", "delivered", "answered", "idle"}


async def _wait(platform: Platform, account: Account, *, timeout: float, **wanted: Any) -> JSON:
    if unknown := wanted.keys() - _WANTED:
        raise Wrong(f"nobody can wait for {unknown}")
    return await shared.wait(
        account.world.pulse.wait,
        lambda: _missing(platform, account, wanted),
        lambda: account.ledger.last_other,
        timeout=timeout,
        idle=wanted.get("idle", 0),
    )


def _missing(platform: Platform, account: Account, wanted: JSON) -> str:
    """Returns what does not hold yet, in words; empty when all does."""
    world, ledger, queue = account.world, account.ledger, account.world.queue
    chat, text = wanted.get("chat"), wanted.get("text")
    lacks: list[str] = []
    if text is not None or "bot_messages" in wanted:
        said = [
            message.text
            for place in world.chats.values()
            if chat in (None, place.id)
            for message in place.messages.values()
            if message.by_bot and not message.deleted and (text is None or text in message.text)
        ]
        least = wanted.get("bot_messages", 1)
        if len(said) < least:
            lacks.append(f"{len(said)} of {least} messages of the bot{f' with {text!r}' if text else ''}: {said[-5:]}")
    if "method" in wanted:
        met, least = ledger.counts[wanted["method"]], wanted.get("count", 1)
        if met < least:
            lacks.append(f"{wanted['method']} was called {met} of {least} times")
    if "polling" in wanted and queue.polling != wanted["polling"]:
        lacks.append("a getUpdates hangs" if queue.polling else "no getUpdates hangs")
    if wanted.get("delivered") and queue.waiting:
        lacks.append(f"{len(queue.waiting)} updates wait")
    if "answered" in wanted and (world.callbacks.get(wanted["answered"]) or {}).get("answer") is None:
        lacks.append(f"the callback {wanted['answered']} is not answered")
    if "idle" in wanted:
        quiet = platform.now() - ledger.last_other
        if quiet < wanted["idle"] or ledger.busy or platform.chat.open:
            busy = [entry.method for entry in ledger.open.values()] + ["model"] * platform.chat.open
            lacks.append(f"quiet for {quiet:.1f} s; open: {busy}")
    return "; ".join(lacks)


async def _reset(platform: Platform, account: Account) -> None:
    await platform.reset(account.token)


def _chat(world: World, chat: int) -> Chat:
    if chat not in world.chats:
        raise Wrong(f"there is no chat {chat}; there are {sorted(world.chats)}")
    return world.chats[chat]


def _message(world: World, chat: int, message_id: int) -> Message:
    place = _chat(world, chat)
    if message_id not in place.messages:
        raise Wrong(f"there is no message {message_id} in {chat}")
    return place.messages[message_id]


def _said(chat: Chat, message: Message, update_id: int | None) -> JSON:
    return {"chat": chat.id, "message_id": message.id, "update_id": update_id}


ACTIONS: Mapping[str, Action] = {
    **shared.ACTIONS,
    "say": _say,
    "album": _album,
    "edit": _edit,
    "press": _press,
    "react": _react,
    "member": _member,
    "status": _status,
    "group": _group,
    "topic": _topic,
    "close_topic": _close_topic,
    "delete_topic": _delete_topic,
    "migrate": _migrate,
    "channel_post": _channel_post,
    "delete": _delete,
    "inject": _inject,
    "redeliver": _redeliver,
    "reorder": _reorder,
    "number_updates": _number_updates,
    "bot": _bot,
    "flood": _flood,
    "menu": _menu,
    "allow_drafts": _allow_drafts,
    "webhook": _webhook,
    "script_model": _script_model,
    "state": _state,
    "texts": _texts,
    "files": _files,
    "wait": _wait,
    "reset": _reset,
}
