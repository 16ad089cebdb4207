"""Reads the word lists and patterns that are shipped as YAML.

libyaml reads them eight times as fast as PyYAML's own parser, which would take half a second of each start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib import resources
from typing import Any, Final

import yaml

_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str | bytes) -> Any:
    """Returns the content of a shipped YAML file."""
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader


def shipped(package: str, name: str) -> Any:
    """Returns the content of the file `name`, a path within `package`."""
    return read((resources.files(package) / name).read_bytes())


def listed_words(words: str) -> re.Pattern[str]:
    """Returns the expression for a list of words with bars between them, in lower case or not.

    Words of spaced scripts are whole words, in which * stands for any ending; of Chinese and Japanese they are parts.
    """
    listed = sorted(filter(None, (word.strip() for word in words.split("|"))), key=len, reverse=True)
    unspaced = [re.escape(word) for word in listed if _UNSPACED.search(word)]
    spaced = [word for word in listed if not _UNSPACED.search(word)]
    parts = [rf"(?<!\w)(?:{_by_beginnings(spaced)})(?!\w)"] if spaced else []
    return re.compile("|".join([*parts, *unspaced]), re.IGNORECASE)


def _by_beginnings(listed: Sequence[str]) -> str:
    # Of hundreds of words, only those with the right beginning are tried at each place.
    groups: dict[str, list[str]] = {}
    for word in listed:
        groups.setdefault("" if "*" in word[:2] else word[:2].lower(), []).append(word)
    ends = {
        start: "|".join(re.escape(word[len(start) :]).replace(r"\*", r"\w*") for word in group)
        for start, group in groups.items()
    }
    return "|".join(rf"{re.escape(start)}(?:{group})" for start, group in sorted(ends.items(), reverse=True))


def compiled(kind: type[Any], data: Mapping[str, Any], pattern: Callable[[str], re.Pattern[str]]) -> dict[str, Any]:
    """Returns the fields of a dataclass that are expressions, from the entries of a language's file by their names.

    One that is not in the file fits nothing.
    """
    names = [field.name for field in fields(kind) if field.type == "re.Pattern[str]"]
    return {name: pattern(data.get(name, r"(?!)")) for name in names}


_UNSPACED: Final = re.compile("[\u3040-\u9fff]")
