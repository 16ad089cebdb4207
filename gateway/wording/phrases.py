"""A fact as a short clause said to the person it is about: "you live in Lisbon", 你住在里斯本.

Invariants: a value is set into a phrase unchanged, except for words around it that repeat the phrase ("allergic to
nuts", "lives in Lisbon"). A value that denies its phrase, and a key without one, read as "key: value". A value may be
in another language than its phrase, so no phrase depends on the value's grammar: where it would have to (an article, a
plural), the phrase ends in a colon instead. The phrases stand in the `texts.yaml` of each language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from languages import LANGUAGES, Language, part
from memory.context import Context
from memory.keys import RELATIONS
from memory.store.history import Message
from memory.store.memories import Memory

_VALUE: Final = "{}"


def wording(language: Language) -> dict[str, Any]:
    data: dict[str, Any] = part(language, "texts")
    return data


def say(key: str, value: str, *, language: Language) -> str:
    """Returns the fact `key` (normalised) = `value` as said to the person, without a capital letter or a full stop."""
    if _denial().match(value) and _denying(key).match(value):
        return f"{key}: {value}"
    head, tail = _phrase(key, language)
    return f"{head}{_told_once(key, value, language=language)}{tail}"


def _phrase(key: str, language: Language) -> tuple[str, str]:
    words = wording(language)
    phrase: str | None = words["phrases"].get(key)
    thing = key.removeprefix("favourite-")
    if phrase is None and key in RELATIONS:
        phrase = words["relation"].format(name=words["relations"].get(key, _spoken(key)), value=_VALUE)
    elif phrase is None and thing and thing != key:
        named = words.get("favourites", {}).get(thing)
        form = words["relation"] if named else words["favourite"]
        phrase = form.format(name=named, thing=words.get("things", {}).get(thing, _spoken(thing)), value=_VALUE)
    head, _, tail = (phrase or f"{key}: {_VALUE}").partition(_VALUE)
    return head, tail


# Values that repeat their phrase ------------------------------------------------------------------------------------


def _told_once(key: str, value: str, *, language: Language) -> str:
    """Returns a value without words around it that its phrase says as well, whatever language these are in."""
    while (shorter := _shortened(key, value, language=language)) != value:
        value = shorter
    return value


def _shortened(key: str, value: str, *, language: Language) -> str:
    for spoken in (language, *(one for one in LANGUAGES if one != language)):
        tail = _phrase(key, spoken)[1].strip()
        inner = value.removesuffix(tail).rstrip() if tail and value != tail and value.endswith(tail) else value
        closed = inner != value
        opening = _opening(key, spoken, own=spoken == language, closed=closed).match(value)
        if opening is not None and len(rest := (inner if closed else value)[opening.end() :].lstrip()) > 0:
            word = opening.group().strip()
            # "Like a Prayer" is a title.
            is_title = word.isalpha() and word.istitle() and any(one[0].isupper() for one in rest.split())
            if not is_title or word.casefold() in (_phrase(key, spoken)[0].strip(), *_listed(key, spoken)):
                return rest
        if closed and inner and (spoken == language or inner[-1].isdigit()):
            return inner
    return value


@cache
def _opening(key: str, language: Language, *, own: bool, closed: bool) -> re.Pattern[str]:
    """Returns the beginnings of a value that say its phrase; short ones only in its `own` language or if `closed`."""
    openings = [_expression(one, language) for one in _listed(key, language)]
    head = _phrase(key, language)[0]
    noun, copulas = head.rstrip(" :："), str(wording(language)["copulas"])
    for words in _ends(noun, language, key=key):
        spelled = re.escape(words)
        if noun != head.rstrip():
            openings.append(rf"{spelled}\s*[:：]")
            openings.append(f"{spelled}(?:{copulas})" if language in _UNSPACED else rf"{spelled}\s+(?:{copulas})\b")
        elif own or closed or words == noun or " " in words or (language in _UNSPACED and len(words) > 1):
            openings.append(_expression(words, language))
    return re.compile("|".join(sorted(openings, key=len, reverse=True)) or "(?!)", re.IGNORECASE)


def _ends(noun: str, language: Language, *, key: str) -> Iterator[str]:
    if not noun:
        return
    yield noun
    if language in _UNSPACED:
        shorter = noun.removeprefix("你").removeprefix("的").removeprefix("お").removeprefix("ご")
        # A single character may begin another word (在线), unless the phrase has an end behind the value.
        if shorter != noun and (len(shorter) > 1 or (shorter and _phrase(key, language)[1])):
            yield shorter
    elif key not in _DENYING:
        words = noun.split(" ")
        yield from (" ".join(words[start:]) for start in range(1, len(words)))


def _expression(words: str, language: Language) -> str:
    return re.escape(words) if language in _UNSPACED else rf"{re.escape(words)}(?:\s*[:：]|(?=\s))"


@cache
def _listed(key: str, language: Language) -> tuple[str, ...]:
    listed: str = wording(language)["repeats"].get(key, "")
    return tuple(listed.split("|")) if listed else ()


@cache
def _denial() -> re.Pattern[str]:
    """Returns the words that begin a denial in any language. Few values do, so few keys need a pattern of their own."""
    denials = (one for language in LANGUAGES for one in str(wording(language)["denials"]).split("|") if one)
    return re.compile("|".join(map(re.escape, denials)) or "(?!)", re.IGNORECASE)


@cache
def _denying(key: str) -> re.Pattern[str]:
    """Returns the beginnings of a value that deny its phrase, in any language: "not allergic to"."""
    denied: list[str] = []
    for language in LANGUAGES:
        denials = [one for one in str(wording(language)["denials"]).split("|") if one]
        ends = [*_ends(_phrase(key, language)[0].rstrip(" :："), language, key=key), *_listed(key, language)]
        space = r"\s*" if language in _UNSPACED else r"\s+"
        denied += [f"{re.escape(no)}{space}{_expression(end, language)}" for no in denials for end in ends]
    # A dislike denies something as it is.
    return re.compile("(?!)" if key in _DENYING else "|".join(denied) or "(?!)", re.IGNORECASE)


#: Languages without spaces between words.
_UNSPACED: Final = frozenset({"zh", "ja"})
#: Keys whose phrase denies something; a part of the phrase would not.
_DENYING: Final = frozenset({"dislikes", "boundary"})


def tell(memory: Memory, context: Context, *, language: Language) -> str:
    """Returns a memory as told to the person who asks: "you …" about them, else with the name of whom it is about."""
    if memory.subject_id is None or memory.subject_id in (context.speaker.id, *context.scope.selves):
        return say(memory.key, memory.value, language=language)
    return f"{memory.subject_name}: {memory.key}: {memory.value}"


def quote(message: Message, context: Context, words: str, *, language: Language) -> str:
    """Returns a message as a word-for-word quotation to the person who asks."""
    if message.role == "assistant":
        form = "own"
    elif message.author_id in (context.speaker.id, *context.scope.selves):
        form = "yours"
    else:
        form = "other"
    return str(wording(language)["quotes"][form].format(name=message.author_name, words=words))


def _spoken(key: str) -> str:
    return key if key.endswith("-in-law") else key.replace("-", " ")
