"""Words that ask for a key or a category: "where do I live" and 我住在哪里 both mean `home`.

A fact is indexed under its key, its value and these cues, so that a question in any language finds it even without a
common word. Keys that are not listed are found by their own words and those of their category.
"""

from __future__ import annotations

from functools import cache

from languages.reading import shipped
from memory import keys

#: The version of the words in `cues.yaml`, raised with every change: the index is then built anew.
CUES_VERSION = 5

#: A question for the name of a sister or a dog asks for that sister or dog.
_NAMED = "name called 名字 叫"


@cache
def _words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = shipped("memory.recall", "cues.yaml")
    return words


def cues(key: str) -> str:
    found = _words()["keys"].get(key, "")
    if key in keys.RELATIONS or key == "pet":
        found = f"{found} {_NAMED}"
    if key.startswith("favourite-"):
        return f"favorite favourite best like 最喜欢 最爱 {found}"
    return found


def category_cues(category: str) -> str:
    return _words()["categories"].get(category, "")
