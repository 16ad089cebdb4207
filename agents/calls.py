"""Reads tool calls that a model wrote as text, and the name and the arguments of a call. Pure.

The forms are those of Hermes and Qwen, Llama, Mistral, DeepSeek, Kimi, GLM, Gemma, Granite, Phi, MiniMax and
Anthropic's older models, and bare JSON in the shapes that models without a template of their own write.

Invariants: a reading is unambiguous or is not made: a name stands for a tool only if no other offered tool fits as
well, and arguments that could mean two things, or that broke off, stay as they were written, so that the model is told
what is wrong with them. The time grows with the length of a text and no faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

#: (name, JSON text of the arguments)
Written = tuple[str, str]

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "params")
#: The fields that a call may hold beside its name and arguments.
_BESIDE = frozenset(("id", "type", "call_id", "tool_call_id", "index", "thought", "reasoning"))
#: The beginning of an object or list that may be a call.
BEGINNING = re.compile(
    r"""[\[{\s]*(?:["'](?:name|tool|tool_name|tool_calls|function|function_name|action|type|id|arguments|parameters|args
    |input|params)["']\s*:)""",
    re.VERBOSE,
)
#: A bracket that may begin JSON, unlike those of Mistral's marks.
JSON_BEGINS = re.compile(r"\[(?!(?:ARGS|CALL_ID)\])|\{")
#: Brackets that begin no JSON after which a text is given up: each try may read all that follows.
_MOST_FAILED = 256
#: The characters in which a call's name and the marks behind it stand before its arguments.
_NAME_BEFORE = 400
_DECODER = json.JSONDecoder(strict=False)
#: <function=name>…, as Llama and Qwen write it, with JSON or parameters inside.
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"<(?:parameter=([\w.-]+)|parameter\s+name=[\"']([\w.-]+)[\"']([^<>]{0,400}))>(.*?)(?:</parameter>|\Z)", re.DOTALL
)
_INVOKE = re.compile(r"<invoke\s+name=[\"']([\w.:/-]+)[\"'][^<>]{0,400}>(.*?)(?:</invoke>|\Z)", re.DOTALL)
#: The prefix of elements in DeepSeek and Step: <｜DSML｜invoke name=…>, <steptml:invoke name=…>.
_NAMESPACE = re.compile(
    r"<(/?)(?:\s{0,2}[|｜‖]{0,4}\s{0,2}DSML[|｜‖\s]{0,4}|[a-z]{1,10}:)(?=(?:invoke|parameter)\b)", re.IGNORECASE
)
_NAME_GIVEN = re.compile(r"[\"'](?:name|tool|tool_name|function)[\"']\s{0,9}:\s{0,9}[\"']([\w.:/-]{1,64})[\"']")
_BARE_NAME = re.compile(r"\s*([A-Za-z_][\w.:/-]{0,63})\s*\Z")
_GLM = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>)")
_GLM_ENDS = "</arg_value>"
_GLM_PAIR = re.compile(rf"<arg_key>([^<]*+)</arg_key>\s*+<arg_value>(.*?){_GLM_ENDS}", re.DOTALL)
#: A name before its arguments: functions.name:0{…}, name[ARGS]{…}, name<sep>{…}, call:name{…}.
_NAMED = re.compile(
    r"(?:functions\.|call:)?([A-Za-z_][\w.-]{0,63})(?::\d+)?\s*"
    r"(?:\[(?:ARGS|CALL_ID)\][^{\[]{0,60}|<[^<>]{1,40}>|```(?:json)?|\s)*(?=\{)"
)
#: name(key="value", …), as Llama and Gemma write it; the bound keeps the time linear in the text.
_PYTHONIC = re.compile(r"([A-Za-z_][\w.]{0,63})\(((?:[^()\"']++|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'){0,1000}+)\)")
_KEYWORD = re.compile(
    r"(?<!\w)(\w{1,64})\s{0,9}=\s{0,9}(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|True|False|None|true|false|null)"
)
_CONSTANTS: Final = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


def calls_in(text: str) -> list[Written]:
    text = _NAMESPACE.sub(r"<\1", text)
    for pattern in (_FUNCTION, _INVOKE):
        if found := [(match[1], _inner(match[2])) for match in pattern.finditer(text)]:
            return found
    if (match := _GLM.match(text)) and _GLM_ENDS in text:
        # Up to the last end of a value, so that the search for the end of each one soon finds it.
        stop = text.rindex(_GLM_ENDS) + len(_GLM_ENDS)
        if pairs := {key.strip(): _loose(value) for key, value in _GLM_PAIR.findall(text, match.end(), stop)}:
            return [(match[1], json.dumps(pairs, ensure_ascii=False))]
    if match := _BARE_NAME.match(text):  # GLM's form of a call without arguments
        return [(match[1], "{}")]
    found = list(_in_order(text)) or list(_in_order(_with_json(text))) or pythonic(text)
    if not found and (match := _NAME_GIVEN.search(text)):
        # Its arguments can't be read: the model is told what is wrong with them.
        return [(match[1], text.strip())]
    return found


def as_calls(value: Any) -> list[Written] | None:
    """Returns the calls that a JSON value describes, or None if it is anything else."""
    if (
        isinstance(value, dict)
        and isinstance(value.get("tool_calls"), list)
        and value.keys() <= {"tool_calls", "content"}
    ):
        value = value["tool_calls"]
    if isinstance(value, list):
        found = [as_calls(one) for one in value]
        return [call for one in found if one for call in one] if found and all(found) else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and value.keys() <= {"function", *_BESIDE}:
        return as_calls(value["function"])
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((key for key in _ARGUMENTS if isinstance(value.get(key), dict | str)), None)
    if name is None or given is None or not value.keys() <= {name, given, *_BESIDE}:
        return None
    arguments = value[given]
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [(value[name], written)] if re.fullmatch(r"[\w.:/-]{1,64}", value[name]) else None


def json_at(text: str, at: int) -> tuple[Any, int] | None:
    """Returns the JSON value that begins at `at` and its end, or None if it is not complete."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return value, end


def pythonic(text: str, offered: Collection[str] | None = None) -> list[Written]:
    """Returns the calls written as in Python; only those of `offered` tools if these are given."""
    found = []
    for match in _PYTHONIC.finditer(text):
        if offered is None or tool_named(match[1], offered):
            given = {key: _literal(value) for key, value in _KEYWORD.findall(match[2])}
            found.append((match[1].removesuffix(".call"), json.dumps(given, ensure_ascii=False)))
    return found


def _with_json(text: str) -> str:
    """Returns a text with its objects written as JSON. What stands before the first is left alone: it may be a name."""
    begin = text.find("{")
    return text if begin < 0 else text[:begin] + as_json(text[begin:])


def _in_order(text: str) -> Iterator[Written]:
    """Yields the calls that are written as JSON, with their name in it or before it."""
    at = done = failed = 0
    while (start := JSON_BEGINS.search(text, at)) is not None:
        found = json_at(text, start.start())
        if found is None:
            failed += 1
            at = start.end()
            if failed == _MOST_FAILED:
                return
            continue
        value, at = found
        known = as_calls(value)
        if known:
            yield from known
        elif isinstance(value, dict) and (name := _name_before(text, done, start.start())):
            yield name, json.dumps(value, ensure_ascii=False)
        done = at


def _name_before(text: str, done: int, start: int) -> str | None:
    """Returns the name that stands before the object at `start`, behind the last value, which ends at `done`."""
    names = _NAMED.finditer(text, max(done, start - _NAME_BEFORE), start + 1)
    return next((one[1] for one in names if one.end() == start), None)


def _inner(text: str) -> str:
    found = re.compile(r"\{").search(text)
    whole = json_at(text, found.start()) if found and not _PARAMETER.search(text) else None
    if whole is not None and isinstance(whole[0], dict):
        return json.dumps(whole[0], ensure_ascii=False)
    pairs = {
        bare or named: value if 'string="true"' in more else _loose(value)
        for bare, named, more, value in _PARAMETER.findall(text)
    }
    return json.dumps(pairs, ensure_ascii=False)


def _loose(text: str) -> Any:
    found = json_at(text.strip(), 0)
    return found[0] if found is not None and found[1] == len(text.strip()) else text.strip()


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return float(text) if "." in text else int(text)


#: The most characters of a name that are read, and of arguments that are put right: more is no call that anyone needs.
_LONGEST_NAME: Final = 200
_LONGEST_ARGUMENTS: Final = 64_000
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
