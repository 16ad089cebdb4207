"""Reads the name and the arguments of a tool call as models write them. Pure.

Invariants: a reading is unambiguous or is not made: a name stands for a tool only if no other offered tool fits as
well, and arguments that could mean two things, or that broke off, stay as they were written, so that the model is told
what is wrong with them. The time grows with the length of a text and no faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

#: The most characters of a name that are read, and of arguments that are put right: more is no call that anyone needs.
_LONGEST_NAME: Final = 200
_LONGEST_ARGUMENTS: Final = 64_000
_DECODER: Final = json.JSONDecoder(strict=False)
#: The signs between a namespace and a name, or a name and its number: functions.now, default_api:now, now:0.
_BETWEEN: Final = re.compile(r"[.:/]+|__")
#: A mark of a template, which ends a name: now<|channel|>commentary.
_MARK_BEGINS: Final = re.compile(r"<\s?[|｜]|<\w")
_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")
#: Text around arguments that means nothing: a fence of code, marks of a template.
_AROUND: Final = r"(?:\s|\ufeff|```(?:json)?|<[|｜/]?[^<>\n]{0,40}>)"
_BEFORE: Final = re.compile(rf"(?:{_AROUND}|json(?=[\s<{{]))*+")
#: Models that lose count close one brace too many.
_AFTER: Final = re.compile(rf"(?:{_AROUND}|`|\}})*+")
#: Servers that send an empty object first, or the whole again at the end, double the arguments.
_MOST_OBJECTS: Final = 3
#: The tokens in which objects of Python, JavaScript and Gemma differ from JSON. The last ones only keep an escape
#: outside a text from being read again and again.
_TOKENS: Final = re.compile(
    r"""(?P<json>"(?:[^"\\]++|\\.)*+")
    |'(?P<single>(?:[^'\\]++|\\.)*+)'
    |<\|"\|>(?P<gemma>(?:[^<]++|<(?!\|"\|>))*+)<\|"\|>
    |<escape>(?P<escape>(?:[^<]++|<(?!escape>))*+)<escape>
    |,(?P<trailing>\s*+)(?=[}\]])
    |(?P<word>[A-Za-z_][\w-]*+)(?P<key>\s*+:)?
    |\\.
    """,
    re.VERBOSE | re.DOTALL,
)
#: Characters that single quotes write differently.
_QUOTED: Final = re.compile(r"\\.|\"", re.DOTALL)
_WORDS: Final = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}


def tool_named(name: str, offered: Collection[str]) -> str | None:
    """Returns the offered tool that a model means by `name`, or None if none fits, or more than one."""
    if name in offered:
        return name
    name = _MARK_BEGINS.split(name[:_LONGEST_NAME], maxsplit=1)[0]
    tools = [(tool, _folded(tool)) for tool in offered]
    for spelling in _spellings(name):
        fitting = [tool for tool, folded in tools if folded == spelling]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return None


def arguments_in(text: str) -> str:
    """Returns a call's arguments as the JSON of an object, or `text` unchanged if they can't be read for sure."""
    if len(text) > _LONGEST_ARGUMENTS:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _object(text)
        if value is None and (plain := as_json(text)) != text:
            value = _object(plain)
    else:
        if value is None or value == "":
            return "{}"  # a tool without arguments
        if not isinstance(value, str):
            return text
        try:  # encoded twice
            value = json.loads(value)
        except (ValueError, RecursionError):
            return text
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else text


def as_json(text: str) -> str:
    """Returns a text with values of Python, JavaScript or Gemma's form written as JSON; anything else stays."""
    return _TOKENS.sub(_as_json, text)


def _spellings(name: str) -> Iterator[str]:
    """Yields what a tool's own name may be, the likeliest first: all of it, then less and less before it."""
    parts = [folded for part in _BETWEEN.split(name.strip()) if (folded := _folded(part))]
    if len(parts) > 1 and parts[-1].isdigit():
        yield "".join(parts)
        parts.pop()
    for first in range(len(parts)):
        yield "".join(parts[first:])
    if parts and parts[-1] != "json":  # of OpenAI's open models, which write the type of what follows
        yield parts[-1].removesuffix("json")


def _folded(name: str) -> str:
    return _NO_LETTER.sub("", name.casefold())


def _object(text: str) -> dict[str, Any] | None:
    """Returns the one object that a text holds beside what means nothing; None if there is none, or several."""
    kept: dict[str, Any] | None = None
    at = 0
    for _ in range(_MOST_OBJECTS):
        at = _end(_BEFORE, text, at)
        if not text.startswith("{", at):
            break
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if kept and value and kept != value:
            return None
        kept = kept or value
    return kept if _end(_AFTER, text, at) == len(text) else None


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _as_json(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "single":
            return f'"{_QUOTED.sub(_requoted, token["single"])}"'
        case "gemma" | "escape" as form:
            return json.dumps(token[form], ensure_ascii=False)
        case "trailing":
            return token["trailing"]
        case "key":
            return f'"{token["word"]}"{token["key"]}'
        case "word":
            return _WORDS.get(token[0], token[0])
    return token[0]


def _requoted(found: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(found[0], found[0])
