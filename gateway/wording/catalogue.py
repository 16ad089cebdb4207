"""Every fixed text that a person may be shown, in each language: the part `texts` of its `texts.yaml`.

Invariants: all languages have the same keys with the same fields (a test holds this). English and Chinese have every
text; a text that another language lacks is shown in English.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Final

from gateway.wording.phrases import wording
from languages import LANGUAGES, Language

_ENGLISH: Final[Mapping[str, str]] = wording("en")["texts"]


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
    return {**_ENGLISH, **wording(language)["texts"]}


#: A file takes up to 20 ms, so each is read when it is first needed.
CATALOGUE: Final[Mapping[Language, Mapping[str, str]]] = {
    code: _ENGLISH if code == "en" else Deferred(partial(_translated, code)) for code in LANGUAGES
}
