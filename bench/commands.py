"""docs/commands.md, made from the table: `python -m bench.commands > docs/commands.md`."""

from __future__ import annotations

import sys
from typing import Final

from gateway.commands.call import Command
from gateway.commands.table import TABLE
from gateway.wording.texts import CATALOGUE

_HEAD: Final = """\
# Commands

This page is generated from the bot's own table of commands (`make docs`), and a test compares them. `/help` shows the
same in the chat, in your language.

Platforms with commands of their own offer them: Telegram in its menu, Discord as application commands with completion,
forms and buttons. They can be typed everywhere. `<…>` is required, `[…]` is optional. Ids such as `m_7k2pq4` are in
every list; an id that is not yours is answered like one that does not exist.

Only you see an answer where the platform can do that: it is hidden in a Discord channel and, where this page says *in
private*, comes as a direct message on Telegram. Answers that concern the conversation itself are *shown to all* in a
group.

Plain words work for the two most important ones: "forget that" and "that's wrong" (忘掉这个, 那不对) are answered with
a choice of what you may mean, to press or to type.
"""


def markdown() -> str:
    """Returns the page."""
    parts = [_HEAD]
    for heading, rows in (
        ("For everybody", [command for command in TABLE if not command.admin]),
        ("For admins", [command for command in TABLE if command.admin]),
    ):
        parts.append(f"## {heading}\n")
        parts += [_section(command) for command in rows]
    return "\n".join(parts)


def _section(command: Command) -> str:
    texts = CATALOGUE["en"]
    notes = [
        note
        for holds, note in (
            (command.private, "only in a private chat"),
            (command.discreet, "answered in private"),
            (command.shared, "shown to all in a group"),
            (command.at_once, "answered at once, also while an answer is being made"),
        )
        if holds
    ]
    lines = [f"### `{command.usage}`\n", f"{_sentence(texts[f'help.{command.name}'])}"]
    if notes:
        lines[-1] += f" *{_sentence(', '.join(notes))}*"
    for option in command.options:
        said = texts[f"option.{command.name}.{option.name}"]
        choices = f" One of {', '.join(f'`{choice}`' for choice in option.choices)}." if option.choices else ""
        lines.append(f"- **{option.name}**: {said}.{choices}")
    return "\n".join([lines[0], lines[1], *([""] if command.options else []), *lines[2:], ""])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


if __name__ == "__main__":
    sys.stdout.write(markdown())
