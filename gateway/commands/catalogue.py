"""Every fixed text that a person may be shown, in each language, with one file for each subject.

Invariants: all languages have the same keys with the same fields, and no key stands in two files (a test holds this).
English and Chinese have every text; a text that a language of `languages/` lacks is shown in English.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Final

from gateway.commands import (
    admin_texts,
    forget_texts,
    help_texts,
    jobs_texts,
    keys_texts,
    manage_texts,
    memory_texts,
    night_texts,
    page_texts,
    people_texts,
    reminder_texts,
    session_texts,
    talk_texts,
    tools_texts,
    why_texts,
)
from gateway.commands.phrases import Language, wording

#: The files that are merged.
PARTS: Final = (
    talk_texts,
    session_texts,
    help_texts,
    memory_texts,
    why_texts,
    forget_texts,
    people_texts,
    admin_texts,
    jobs_texts,
    night_texts,
    reminder_texts,
    tools_texts,
    page_texts,
    manage_texts,
    keys_texts,
)

_ENGLISH: Final = {key: text for part in PARTS for key, text in part.EN.items()}


class Deferred(Mapping[str, str]):
    """A mapping that is made when it is first read."""

    def __init__(self, make: Callable[[], Mapping[str, str]]) -> None:
        self._made = cache(make)

    def __getitem__(self, key: str) -> str:
        return self._made()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


def _translated(language: Language) -> Mapping[str, str]:
    texts: Mapping[str, str] = wording(language).get("texts", {})
    return {**_ENGLISH, **texts}


CATALOGUE: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": _ENGLISH,
    "zh": {key: text for part in PARTS for key, text in part.ZH.items()},
    # A file takes 20 ms.
    **{code: Deferred(partial(_translated, code)) for code in ("de", "es", "fr", "ja")},
}
