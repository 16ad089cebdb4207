"""A fact as a short clause said to the person it is about: "you live in Lisbon", 你住在里斯本.

Invariants: a value is set into a phrase unchanged. A key without a phrase of its own still reads as "key: value". A
value may be in another language than its phrase, so no phrase depends on the value's grammar: where it would have to
(an article, a plural), the phrase ends in a colon instead. The phrases stand in `languages/`, one file a language.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Final, Literal, TypeAlias

import yaml

from memory.service import RELATIONS, Context, Memory, Message

Language: TypeAlias = Literal["en", "zh", "de", "es", "fr", "ja"]

_VALUE: Final = "{}"


@cache
def wording(language: Language) -> dict[str, Any]:
    """Returns the file of a language."""
    text = (resources.files("gateway.commands") / "languages" / f"{language}.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def say(key: str, value: str, *, language: Language) -> str:
    """Returns the fact `key` = `value` as said to the person in `language`, without a capital letter or a full stop.

    `key` is normalised, as facts are stored.
    """
    words = wording(language)
    phrase: str | None = words["phrases"].get(key)
    if phrase is not None:
        return phrase.replace(_VALUE, value, 1)
    if key in RELATIONS:
        return str(words["relation"].format(name=words["relations"].get(key, _spoken(key)), value=value))
    thing = key.removeprefix("favourite-")
    if thing and thing != key:
        return str(words["favourite"].format(thing=words["things"].get(thing, _spoken(thing)), value=value))
    return f"{key}: {value}"


def tell(memory: Memory, context: Context, *, language: Language) -> str:
    """Returns a memory as told to the person who asks.

    It reads "you …" if it is about them, else it begins with the name of the person it is about.
    """
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
