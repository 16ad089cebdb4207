"""Reads tool calls that a model wrote as text, in the forms of the common chat templates. Pure.

The forms are those of Hermes and Qwen, Llama, Mistral, DeepSeek, Kimi, GLM, Gemma, Granite, Phi, MiniMax and
Anthropic's older models, and bare JSON in the shapes that models without a template of their own write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from agents.calls import as_json, tool_named

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
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


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
    """Returns a value that may be JSON or a bare text."""
    found = json_at(text.strip(), 0)
    return found[0] if found is not None and found[1] == len(text.strip()) else text.strip()


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if "." in text else int(text)
