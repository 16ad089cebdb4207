"""Part of Remora: the languages that it speaks, one folder of data for each.

A folder has `language.yaml` (its names, the words that tell it, how days are written), `texts.yaml` (what people are
shown), `talk.yaml` (what the agent without a model understands and says), `facts.yaml` (how people tell and take back
facts), `times.yaml` (words for times), `occasions.yaml` (how people tell plans), and lists of words that are read of
all languages together: `claims.yaml` (how a sentence is meant), `wishes.yaml` (what people ask of the bot's manner) and
`things.yaml` (what people call by name).

Invariants: a language is here if it has a folder, and nowhere else is there a list of languages. English comes first,
for it stands in where another language lacks something; Chinese, which people mix with English, comes second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from languages.reading import listed_words, read

_FOLDER: Final = Path(__file__).parent
#: The codes of the languages.
LANGUAGES: Final = tuple(
    sorted(
        (path.parent.name for path in _FOLDER.glob("*/language.yaml")),
        key=lambda code: (code != "en", code != "zh", code),
    )
)
if TYPE_CHECKING:
    Language: TypeAlias = str
else:
    #: The code of a language, as pydantic checks it.
    Language = Literal[LANGUAGES]


def has(code: str, name: str) -> bool:
    """Returns whether a language has such a file."""
    return (_FOLDER / code / f"{name}.yaml").is_file()


def source(code: str, name: str) -> str:
    """Returns the text of a file of a language."""
    return (_FOLDER / code / f"{name}.yaml").read_text("utf-8")


@cache
def part(code: str, name: str) -> Any:
    """Returns the content of a file of a language. It is shared: nobody changes it."""
    return read(source(code, name))


@cache
def words(name: str, table: str = "") -> Mapping[str, str]:
    """Returns the lists of words in a file of every language, or in a table of that file, by name.

    A list has the words of all languages.
    """
    lists: dict[str, list[str]] = {}
    for code in LANGUAGES:
        content = part(code, name)
        for key, listing in (content.get(table, {}) if table else content).items():
            if isinstance(listing, str):
                lists.setdefault(key, []).append(listing)
    return {key: "|".join(listing) for key, listing in lists.items()}


@cache
def listed(name: str, table: str = "", plain: Callable[[str], str] = str) -> Mapping[str, re.Pattern[str]]:
    """Returns such lists as expressions. `plain` turns words into the form of the texts that are searched."""
    return {key: listed_words(plain(listing)) for key, listing in words(name, table).items()}
