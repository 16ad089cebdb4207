"""Completes input in the terminal: commands, and the path of a file to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter, WordCompleter
from prompt_toolkit.document import Document

from channels.console_files import ATTACH


class CommandCompleter(Completer):
    """Completes `commands`, each shown with its help, and paths after the command that sends a file."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = WordCompleter(list(commands), meta_dict=commands, ignore_case=True, sentence=True)
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not before.startswith(f"{ATTACH} "):
            return self._commands.get_completions(document, complete_event)
        path = before.removeprefix(ATTACH).lstrip().lstrip("'\"")
        return self._paths.get_completions(Document(path), complete_event)
