"""The table of commands as both platforms get it: whole, in every language, and within what each of them takes.

Limits are those of the platforms' documentation: Discord's "Application Commands" and "Components", Telegram's
"BotCommand" and "InlineKeyboardButton".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from channels.base import CommandSpec
from channels.discord import payloads
from channels.telegram import menu
from gateway.commands import table
from gateway.wording.texts import CATALOGUE
from languages import Language

LANGUAGES = sorted(CATALOGUE)
#: The keys of the texts on buttons: the choices of every question, and the offers under answers.
_BUTTONS = re.compile(r"(?:words|memory|yes|no|\w+\.button|\w+\.button\.\w+|oversight\.forget)")


def on_discord(language: Language) -> list[dict[str, Any]]:
    """Those for private chats and those for servers; the same name may be among both."""
    specs = table.specs(language)
    return [*payloads.private_commands(specs), *payloads.server_commands(specs)]


def described(command: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield command
    yield from command.get("options", ())


@pytest.mark.parametrize("language", LANGUAGES)
def test_discord_gets_every_command_whole(language: Language) -> None:
    """A text over a limit is cut, or the whole table refused: only people would see either."""
    made = {command["name"]: command for command in on_discord(language)}
    specs: dict[str, CommandSpec] = {spec.name: spec for spec in table.specs(language)}
    # Discord would offer those for admins to everybody in private chats: there they are typed.
    assert set(made) == {name for name, spec in specs.items() if not (spec.admin and spec.private)}
    assert len(made) <= 100
    for name, command in made.items():
        spec = specs[name]
        assert command["description"] == spec.help
        assert [option["description"] for option in command.get("options", ())] == [one.help for one in spec.options]
        offered = [[choice["value"] for choice in one.get("choices", ())] for one in command.get("options", ())]
        assert offered == [list(one.choices) for one in spec.options]


@pytest.mark.parametrize("language", LANGUAGES)
def test_discord_takes_every_command(language: Language) -> None:
    """Names, descriptions in all languages, options, choices, and all that a command holds together."""
    for command in on_discord(language):
        assert len(command.get("options", ())) <= 25
        size = 0
        for one in described(command):
            texts = [one["description"], *one.get("description_localizations", {}).values()]
            assert re.fullmatch(r"[-_a-z0-9]{1,32}", one["name"])
            assert all(1 <= len(text) <= 100 for text in texts), (command["name"], one["name"])
            assert len(one.get("choices", ())) <= 25
            assert all(1 <= len(choice["name"]) <= 100 for choice in one.get("choices", ()))
            assert not (one.get("choices") and one.get("autocomplete"))
            picked = sum(len(choice["name"] + choice["value"]) for choice in one.get("choices", ()))
            size += len(one["name"]) + max(map(len, texts)) + picked
        assert size <= 8_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_telegram_takes_every_menu(language: Language) -> None:
    """Of each kind of chat, in each language; nothing in it is cut."""
    specs = {spec.name: spec for spec in table.specs(language)}
    for name, shown in menu.menus(list(specs.values()), ["7"]).items():
        assert 1 <= len(shown.commands) <= 100, name
        for command in shown.commands:
            assert re.fullmatch("[a-z0-9_]{1,32}", command.command)
            texts = {specs[command.command].help, *specs[command.command].translated.values()}
            assert 1 <= len(command.description) <= 256 and command.description in texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_pressed_fits_on_a_button(language: Language) -> None:
    """Discord takes 80 characters and phones show some 25; titles and labels of forms are at most 45 there."""
    given = {"id": "m_7k2pq4", "n": 100}
    texts = {name: text.format_map(given) for name, text in CATALOGUE[language].items() if _is_short(name)}
    assert len(texts) > 12
    for name, text in texts.items():
        assert 1 <= len(text) <= (45 if name.startswith("form.") else 25), name


def _is_short(name: str) -> bool:
    return name.startswith("form.") or _BUTTONS.fullmatch(name) is not None
