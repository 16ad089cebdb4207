"""Reads requests to forget: what a message asks to have forgotten, in any common wording.

Invariants: pure. A request is a clause that begins with words for forgetting, once the words of politeness before it
are gone; "don't forget" and "I forgot" begin otherwise. What is meant is what the clause leaves over, or else the rest
of the message. A message that asks to forget is no source of anything to learn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

#: Stands for the message told last, where a request to forget names nothing.
LAST: Final = "last"
ALL: Final = "all"
_EDGES: Final = ' .!?。！？…~～,，;；:–—-"“”'
_HAS_WORD: Final = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The words and forms by which a language asks to forget.

    `clauses` splits a sentence. `polite` and `trailing` are words at the beginning and at the end of a clause that
    mean nothing. `asks` fit a whole clause; their group "what", if it took part, is what is meant. `noise` is what
    says in "what" only that something was said or is kept; `nothing` is a "what" that names nothing.
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
def compiled(source: str, words: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    for name, expression in words:
        source = source.replace(name, f"(?:{expression})")
    return re.compile(source, re.IGNORECASE)


def read(data: dict[str, Any]) -> Requests:
    """Reads the part `requests` of a language's file. `words` there are names that stand for expressions."""
    words = tuple(data.get("words", {}).items())

    def pattern(name: str) -> re.Pattern[str]:
        return compiled(data[name], words)

    return Requests(
        clauses=pattern("clauses"),
        polite=pattern("polite"),
        trailing=pattern("trailing"),
        asks=tuple(compiled(source, words) for source in data["asks"]),
        noise=pattern("noise"),
        reason=pattern("reason"),
        nothing=pattern("nothing"),
        all=pattern("all"),
    )


def meant(sentences: Sequence[str], requests: Requests) -> str | None:
    """Returns what the sentences of a message ask to have forgotten; None if they ask for no such."""
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
    """Returns a clause without the polite words around it."""
    bare = clause.strip(_EDGES)
    while (shorter := requests.trailing.sub("", requests.polite.sub("", bare)).strip(_EDGES)) != bare:
        bare = shorter
    return bare


def _what(clause: str, requests: Requests) -> str | None:
    """Returns what a clause asks to have forgotten, empty if it does not say; None if it asks for no such."""
    for ask in requests.asks:
        match = ask.fullmatch(clause)
        if match is not None:
            return next((value for value in match.groups() if value), "").strip(_EDGES)
    return None


def _named(what: str, requests: Requests) -> str:
    """Returns the words of `what` that name something; empty if there are none."""
    left = requests.reason.split(what, maxsplit=1)[0]
    while (shorter := " ".join(requests.noise.sub(" ", left).split()).strip(_EDGES)) != left:
        left = shorter
    return "" if requests.nothing.fullmatch(left) or _HAS_WORD.search(left) is None else left


def _topic(clauses: Sequence[str], requests: Requests) -> str:
    """Returns what the clauses beside a request name: they say what "forget it" means."""
    return " ".join(named for clause in clauses if (named := _named(clause, requests)))
