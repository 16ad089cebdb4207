"""The lists of commands that Telegram shows people when they type a slash, by chat and language.

Invariants: a list is made for each kind of chat, for each admin's own chat, and for each of these in every language
the commands are translated into; nobody is offered what they may not do there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from aiogram.methods import DeleteMyCommands, SetMyCommands
from aiogram.types import BotCommand, BotCommandScopeAllGroupChats, BotCommandScopeAllPrivateChats, BotCommandScopeChat

from channels.base import CommandSpec

_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_LANGUAGE = re.compile(r"[a-z]{2}")  # Telegram takes ISO 639-1 only
_HELP = 256  # characters a command's description may have
_MOST = 100  # commands of a list


def menus(commands: Sequence[CommandSpec], admins: Sequence[str]) -> dict[str, SetMyCommands]:
    """Returns every list there should be. Its name is the scope, a slash and the language, empty for all others."""
    known = [command for command in commands if _COMMAND.fullmatch(command.name) and command.help]
    everyone = [command for command in known if not command.admin]
    scopes = {
        "private": everyone,
        "groups": [command for command in everyone if not command.private],
        **{admin: known for admin in admins if admin.isdecimal()},
    }
    languages = sorted({code for command in known for code in command.translated if _LANGUAGE.fullmatch(code)})
    return {
        f"{scope}/{language}": SetMyCommands(
            commands=[_shown(command, language) for command in offered[:_MOST]],
            scope=_scope(scope),
            language_code=language or None,
        )
        for scope, offered in scopes.items()
        for language in ("", *languages)
    }


def removal(name: str) -> DeleteMyCommands:
    scope, _, language = name.partition("/")
    return DeleteMyCommands(scope=_scope(scope), language_code=language or None)


def fingerprint(menu: SetMyCommands, bot_id: str) -> str:
    return hashlib.sha256(f"{bot_id} {menu.model_dump_json()}".encode()).hexdigest()[:16]


def _shown(command: CommandSpec, language: str) -> BotCommand:
    description = command.translated.get(language) or command.help
    return BotCommand(command=command.name, description=description[:_HELP])


def _scope(name: str) -> BotCommandScopeAllPrivateChats | BotCommandScopeAllGroupChats | BotCommandScopeChat:
    if name == "private":
        return BotCommandScopeAllPrivateChats()
    return BotCommandScopeAllGroupChats() if name == "groups" else BotCommandScopeChat(chat_id=int(name))
