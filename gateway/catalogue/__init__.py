"""Every fixed text a person may be shown, in each language, a file for each thing that is talked about.

Invariant: all languages have the same keys with the same fields, and no key stands in two files (a test holds this).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.catalogue import admin, forget, jobs, memory, night, people, session, talk, why
from gateway.phrases import Language

#: The files that are merged.
PARTS: Final = (talk, session, memory, why, forget, people, admin, jobs, night)

CATALOGUE: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {key: text for part in PARTS for key, text in part.EN.items()},
    "zh": {key: text for part in PARTS for key, text in part.ZH.items()},
}
