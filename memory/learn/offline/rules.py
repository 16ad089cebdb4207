"""The mark for what is cut out of a message, and expressions that are compiled at their first use.

Compiling all of them takes half a second, a good part of it for what may never be needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, Final

#: The mark for a part that was cut out (a quotation, code, a link, a secret); no value may hold it.
HOLE: Final = "\ufffc"


class Phrase:
    """A regular expression that is compiled at its first use."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        return self.regex.search(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self.regex.sub(by, text)


def compiled(kind: type[Any], data: Mapping[str, Any], pattern: Callable[[str], re.Pattern[str]]) -> dict[str, Any]:
    """Returns the fields of a dataclass that are expressions, from the entries of a language's file by their names.

    One that is not in the file fits nothing.
    """
    names = [field.name for field in fields(kind) if field.type == "re.Pattern[str]"]
    return {name: pattern(data.get(name, r"(?!)")) for name in names}
