"""Lists of commands: kept by scope and language, and what of them a person sees.

Invariants: a list that is set to nothing is not there; the order in which scopes are looked at is that of the Bot API
("Determining list of commands"), in each the person's language before none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.platforms.telegram.updates import JSON, Refused
from tests.platforms.telegram.wire import plain
from tests.platforms.telegram.world import World

_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_LANGUAGE = re.compile(r"(?:[a-z]{2})?")
_ADMINS = ("creator", "administrator")


def key(world: World, scope: Any, language: str | None) -> str:
    """Returns the key of a list: "chat:7/de", "default/". Raises `Refused` for a scope that can't be."""
    said = plain(scope) if scope is not None else {"type": "default"}
    parts = [str(said["type"])]
    if "chat_id" in said:
        chat = world.chat(said["chat_id"])
        if chat.kind == "private" and said["type"] != "chat":
            raise Refused(400, "Bad Request: can't use specified scope in private chats")
        if chat.kind == "channel":
            raise Refused(400, "Bad Request: can't change commands in channel chats")
        parts.append(str(chat.id))
    if "user_id" in said:
        if said["user_id"] not in world.people:
            raise Refused(400, "Bad Request: user not found")
        parts.append(str(said["user_id"]))
    language = (language or "").lower()
    if not _LANGUAGE.fullmatch(language):
        raise Refused(400, "Bad Request: invalid language code specified")
    return f"{':'.join(parts)}/{language}"


def put(world: World, where: str, commands: Sequence[JSON]) -> None:
    """Raises `Refused` for commands that can't be."""
    if len(commands) > 100:
        raise Refused(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
    for one in commands:
        if not _COMMAND.fullmatch(one["command"]):
            raise Refused(400, "Bad Request: BOT_COMMAND_INVALID")
        if not 1 <= len(one["description"]) <= 256:
            raise Refused(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
    if commands:
        world.commands[where] = list(commands)
    else:
        world.commands.pop(where, None)


def seen(world: World, user: int, chat: int, language: str | None) -> list[JSON]:
    """Returns what the person's client offers in that chat. `language` is that of their client: "de", "zh-hans"."""
    spoken = (language or world.person(user).language or "").partition("-")[0].lower()
    for scope in _scopes(world, user, chat):
        for where in (f"{scope}/{spoken}", f"{scope}/"):
            if where in world.commands:
                return world.commands[where]
    return []


def _scopes(world: World, user: int, chat: int) -> list[str]:
    """The scopes that cover a person in a chat, the narrowest first."""
    if chat == user:
        return [f"chat:{chat}", "all_private_chats", "default"]
    place = world.chats.get(chat)
    admin = place is not None and place.statuses.get(user) in _ADMINS
    scopes = [
        f"chat_member:{chat}:{user}",
        *([f"chat_administrators:{chat}"] if admin else []),
        f"chat:{chat}",
        *(["all_chat_administrators"] if admin else []),
    ]
    return [*scopes, "all_group_chats", "default"]
