"""Reads requests to forget something, in any common wording.

Invariants: pure. A request is a clause that begins with words for forgetting, once the words of politeness before it
are gone; "don't forget" and "I forgot" begin otherwise. It is about the rest of the clause, or else the rest of the
message. Nothing is learned from a message that asks to forget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from languages.reading import compiled

#: The word for the message told last, if a request to forget names nothing.
LAST: Final = "last"
ALL: Final = "all"
_EDGES: Final = ' .!?。！？…~～,，;；:–—-"“”'
_HAS_WORD: Final = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The words and forms by which a language asks to forget.

    `clauses` splits a sentence. `polite` and `trailing` are words at the beginning and at the end of a clause that
    mean nothing. `asks` fit a whole clause; their group "what", if it took part, names the subject. `noise` fits words
    in "what" that only say that something was said or is kept; `nothing` fits a "what" that names nothing.
    """

    clauses: re.Pattern[str]
    polite: re.Pattern[str]
    trailing: re.Pattern[str]
    asks: tuple[re.Pattern[str], ...]
    noise: re.Pattern[str]
    reason: re.Pattern[str]
    nothing: re.Pattern[str]
    all: re.Pattern[str]


@cache
def _expression(source: str, words: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    for name, expression in words:
        source = source.replace(name, f"(?:{expression})")
    return re.compile(source, re.IGNORECASE)


def read(data: dict[str, Any]) -> Requests:
    """Reads the part `requests` of a language's file. `words` there are names that stand for expressions."""
    words = tuple(data.get("words", {}).items())

    asks = tuple(_expression(source, words) for source in data["asks"])
    return Requests(**compiled(Requests, data, lambda source: _expression(source, words)), asks=asks)


def meant(sentences: Sequence[str], requests: Requests) -> str | None:
    """Returns the words for what a message's sentences ask to forget; None if they ask to forget nothing."""
    found = None
    rest = []
    for sentence in sentences:
        for clause in requests.clauses.split(sentence):
            bare = _bare(clause or "", requests)
            what = None if found else _what(bare, requests)
            if what is None:
                rest.append(bare)
            else:
                found = what if found is None or what else found
    if found is None:
        return None
    if requests.all.fullmatch(found):
        return ALL
    what = _named(found, requests)
    return what or _topic(rest, requests) or LAST


def _bare(clause: str, requests: Requests) -> str:
    bare = clause.strip(_EDGES)
    while (shorter := requests.trailing.sub("", requests.polite.sub("", bare)).strip(_EDGES)) != bare:
        bare = shorter
    return bare


def _what(clause: str, requests: Requests) -> str | None:
    """Returns the words for what a clause asks to forget, empty if it does not say; None if it is no request."""
    for ask in requests.asks:
        match = ask.fullmatch(clause)
        if match is not None:
            return next((value for value in match.groups() if value), "").strip(_EDGES)
    return None


def _named(what: str, requests: Requests) -> str:
    left = requests.reason.split(what, maxsplit=1)[0]
    while (shorter := " ".join(requests.noise.sub(" ", left).split()).strip(_EDGES)) != left:
        left = shorter
    return "" if requests.nothing.fullmatch(left) or _HAS_WORD.search(left) is None else left


def _topic(clauses: Sequence[str], requests: Requests) -> str:
    """Returns the subject named in the clauses beside a request: they say what "forget it" means."""
    return " ".join(named for clause in clauses if (named := _named(clause, requests)))
