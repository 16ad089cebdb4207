"""Reads what a request to forget states: "that I work at the railway" is an employer, "everything about my dog" is all.

It also reads whether a text gives a name: "Rose called", but not "prices rose", "20 Mark" or "Max Weber" for Max.

Invariants: pure, and bounded by the length of the text. Reading nothing is the normal case. A text in doubt does not
give a name, since texts that do are erased.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from memory.learn.offline import patterns
from memory.learn.offline.patterns import Disclosure
from memory.store import entities

#: Longer requests are not read, in characters.
_LONGEST: Final = 300
#: Keys that say the opposite of one another about a value.
OPPOSITES: Final = {"likes": "dislikes", "dislikes": "likes"}
_ALL_ABOUT: Final = (
    r"(?:everything|all|anything|alles|todo|tout)(?:,? (?:that |was )?(?:you|i|du|ich|tu|que|ce que)\b[^,.]{0,30}?)? "
    r"(?:about|on|of(?! (?:it|this|that|them)\b)|über|von|zu|sobre|acerca de|de|sur|à propos de) "
)
_ABOUT: Final = re.compile(rf"^{_ALL_ABOUT}", re.IGNORECASE)
#: "Everything about …", and not any "all" or "that's all" beside what is meant.
_EVERYTHING: Final = re.compile(
    rf"\b{_ALL_ABOUT}|的(?:一切|所有|全部)|(?:一切|所有|全部)(?:关于|有关|跟|和)|(?:忘[掉了记]|删[掉除])(?:一切|所有|全部)"
    r"|(?:こと|について|関すること)(?:[のをは、])?(?:全部|すべて|全て|何もかも)|(?:全部|すべて|全て|何もかも)を?(?:忘れ|消し|削除)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|dass|daß|que)\s|\bqu['’]|忘れて|(?:という)?こと|忘[掉了记]|删[掉除]", re.IGNORECASE
)
#: A German clause, whose verb stands at its end.
_VERB_LAST: Final = re.compile(r"ich (?P<rest>.{1,80}) (?P<verb>\w{2,20})", re.IGNORECASE)


def everything(request: str) -> bool:
    """Returns whether a request is for all that is known of something."""
    return len(request) <= _LONGEST and _EVERYTHING.search(request) is not None


def bare(words: str) -> str:
    """Returns the words without "everything about" before them."""
    return _ABOUT.sub("", words) or words


def stated(*requests: str) -> list[Disclosure]:
    """Returns the facts that the first of these requests states that states any."""
    for request in requests:
        for words in _clauses(request) if len(request) <= _LONGEST else ():
            if found := patterns.extract(words, today=date.min.replace(year=1970)):
                return found
    return []


def opposite(fact: Disclosure) -> str | None:
    """Returns the key under which a fact would say the opposite."""
    return OPPOSITES.get(fact.key)


def _clauses(request: str) -> Iterator[str]:
    yield request
    for clause in (part.strip(" ,.!。！を").removesuffix("な") for part in _CLAUSE.split(request)[:4]):
        if (found := _VERB_LAST.fullmatch(clause)) is not None:
            yield f"ich {found['verb']} {found['rest']}"
        yield clause


# Names in texts -------------------------------------------------------------------------------------------------------


def gives(name: str, text: str, *, is_word: bool) -> bool:
    """Returns whether a text gives a name with its capitals and alone, if its script has capitals.

    With `is_word`, the name is a word, too, and at the beginning of a sentence it may be that word.
    """
    if name.lower() == name.upper():
        return entities.stands_in(name, text)
    if name.islower():
        return False
    before = r"(?<=[\w,;]\s)" if is_word else r"(?<!\w)"
    for match in re.finditer(rf"{before}(?<!\d\s){re.escape(name)}(?:['’]?s)?(?!\w)\s*", text):
        is_longer = match[0][-1:].isspace() and text[match.end() : match.end() + 1].isupper()
        if not is_longer:
            return True
    return False


def is_small_in(name: str, text: str) -> bool:
    """Returns whether a text holds the word that a name is, or the name in small letters."""
    small = name.lower()
    return small != name.upper() and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", text) is not None
