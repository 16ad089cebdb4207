"""Every fixed text that a person may be shown, in each language: the part `texts` of its `texts.yaml`.

Invariants: all languages have the same keys with the same fields (a test holds this). English and Chinese have every
text; a text that another language lacks is shown in English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.commands.phrases import wording
from languages import LANGUAGES, Language

_ENGLISH: Final[Mapping[str, str]] = wording("en")["texts"]
CATALOGUE: Final[Mapping[Language, Mapping[str, str]]] = {
    code: {**_ENGLISH, **wording(code)["texts"]} for code in LANGUAGES
}
