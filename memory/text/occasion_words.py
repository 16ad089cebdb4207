"""Words that show an occasion in a plan or a message, or rule one out, by `occasions.yaml` of each language."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal, TypeAlias

from languages import LANGUAGES, part
from memory import keys

Sign: TypeAlias = Literal["no_occasion", "condition", "tender", "others", "visit", "event", "called_off"]
_UNSPACED: Final = re.compile("[\u3040-\u9fff]")
_RELATIONS: Final = "|".join(sorted(keys.RELATIONS - {"dentist", "doctor"}))


def shows(text: str, *signs: Sign) -> bool:
    """Returns whether a text has words of any of these kinds; those of `others` only count at its beginning."""
    return any((_pattern(one).match if one == "others" else _pattern(one).search)(text) for one in signs)


def is_occasion(text: str) -> bool:
    """Returns whether a text names a definite occasion of its speaker, such as a visit or an exam."""
    return shows(text, "visit", "event") and not shows(text, "no_occasion", "others")


@cache
def _pattern(sign: Sign) -> re.Pattern[str]:
    listed = [part(code, "occasions")[sign].replace("| ", "|").replace("{relations}", _RELATIONS) for code in LANGUAGES]
    spaced = "|".join(words for words in listed if not _UNSPACED.search(words))
    unspaced = "|".join(words for words in listed if _UNSPACED.search(words))
    begin = "" if sign == "others" else r"\b"
    return re.compile(rf"{begin}(?:{spaced})|{unspaced}", re.IGNORECASE)
