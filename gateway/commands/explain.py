"""/help about one command: its syntax, its actions and examples."""

from __future__ import annotations

from gateway.commands import memory
from gateway.commands.call import Command, examples
from gateway.wording.texts import Texts


def explained(texts: Texts, command: Command, action: str) -> str:
    """Returns the help for a command, or for one of its actions."""
    if command.name == "memory" and action in memory.ACTIONS:
        return _action(texts, action)
    lines = [f"{command.usage} – {texts(f'help.{command.name}')}"]
    if command.name == "memory":
        lines += [f"  {_action(texts, each)}" for each in memory.ACTIONS]
    return "\n".join([*lines, *examples(texts, command.name)])


def _action(texts: Texts, action: str) -> str:
    return f"{memory.usage_of(action)} – {texts(f'action.{action}')}"
