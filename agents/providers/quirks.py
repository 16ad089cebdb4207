"""Learns from a server's refusals which parts of a request it does not take, and leaves them out or changes them.

One rule: a refusal that names a field of the request teaches something about that field. Where it says what to send
instead (another name, a limit, another kind of thought), that is sent; else the field is left out. A field whose value
Remora chooses is left out whatever is wrong with it. A field of the operator's is left out only if the model takes no
value: one out of range is a mistake in the configuration and stays an error.

Invariants: a quirk is learned only if the request had the refused part and can do without it. So a call ends after as
many tries as there are quirks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from agents.llm import ToolSpec

#: A part of a request that a server does not take, mostly the name of a field. The others:
#: "json_schema": its answers can't be held to a schema. "cold": it takes no temperature of 0.
#: "max_tokens": it wants the newer name. "max_tokens=8192": it takes no more. "unlimited": it takes no limit.
#: "adaptive": a thought has no budget. "budget": no thought can be asked for. "effort": it takes tools only without
#: thoughts. "thinking": its answers begin inside a thought whose end alone is marked.
#: "schemas": tools are described in the plainest form. "tool=weather": it takes that one in no form.
#: Those of `opaque`: "calls": it takes no calls without fields that it gave itself. "thoughts": each answer needs a
#: thought. "opaque": it takes nothing back. "call_ids": ids of calls have nine letters and digits.
Quirk: TypeAlias = str
#: Quirks by server and model: all calls share what one has learned, also those of the next run.
Learned: TypeAlias = dict[str, set[Quirk]]

#: The event that is logged when a quirk is learned, and the advice for the operator.
ADVICE: Final[Mapping[Quirk, tuple[str, str]]] = {
    "tools": (
        "model.takes_no_tools",
        "This model is served without tools. Write tools: [] in the agent's file, so that its prompt has none.",
    ),
    "pictures": ("model.takes_no_pictures", "This model takes no pictures. Set sees: false for it."),
    "temperature": ("model.takes_no_temperature", "This model chooses its temperature. Remove temperature from it."),
    "top_p": ("model.takes_no_top_p", "This model takes no top_p, or none beside temperature. Remove top_p from it."),
    "budget": ("model.takes_no_thinking", "This model can't be asked to think. Remove thinking from it."),
    "stream": ("model.takes_no_stream", "The server does not stream this model, so its answers appear all at once."),
    "max_tokens=": ("model.writes_less", "This model writes fewer tokens. Lower its max_tokens to the number given."),
    "tool=": (
        "model.takes_no_such_tool",
        "The server refuses how this tool is described, so only the others are offered. Correct it, or leave it out.",
    ),
    "schemas": ("model.takes_plain_schemas", "Some tools are described with less detail. Nothing has to be done."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A field of a request: the quirk that leaves it out, its key, and its names in the words of servers.

    `ours` is true if Remora chooses its value. `word` is true if its name is also a common word.
    """

    quirk: Quirk
    key: str
    names: re.Pattern[str]
    ours: bool = False
    word: bool = False


def _field(quirk: Quirk, names: str, *, key: str = "", ours: bool = False, word: bool = False) -> _Field:
    names = rf"(?<!\w)(?:{names})(?!\w)"
    return _Field(quirk=quirk, key=key or quirk, names=re.compile(names), ours=ours, word=word)


_FORMAT: Final = r"response[_ ]?format|text\.format|json[_ ](?:mode|object|schema)|response[_ ]?mime[_ ]?type"
#: The fields; if two may not stand side by side, the first is left out. Relays write some names without underscores.
_FIELDS: Final = (
    _field("stream_options", r"stream[_ ]?options|include_usage", ours=True),
    _field("cache_control", r"cache[_ ]?control", ours=True),
    _field("json_schema", rf"{_FORMAT}|schemas?|grammars?|structured[ _-]outputs?|guided", ours=True),
    _field("response_format", _FORMAT, ours=True),
    _field("cold", "temperature", ours=True),
    _field("top_p", "top_?p"),
    _field("temperature", "temperature"),
    # A thought within a message is no field of the request.
    _field("budget", r"(?<!\d\.)thinking|budget_tokens", key="thinking"),
    _field(
        "system",
        r"(?:system|developer)[ _-](?:role|message|prompt|instruction)s?|role:? ?(?:system|developer)"
        r"|[\"'`](?:system|developer)[\"'`]",
        word=True,
    ),
    _field("stream", r"stream(?:s|ing|ed)?", word=True),
    _field("tools", r"tools?(?:[ _-](?:choice|use|calls?|calling))?|functions?(?:[ _-]call(?:s|ing)?)?", word=True),
)
_NAMES: Final = frozenset(
    (
        *("max_tokens", "unlimited", "adaptive", "effort", "schemas", "pictures", "thinking"),
        *("calls", "thoughts", "opaque", "call_ids"),
        *(field.quirk for field in _FIELDS),
    )
)
_LIMITED: Final = re.compile(r"max_tokens=([1-9]\d{1,7})")

#: The words that something is not taken at all.
_UNTAKEN: Final = re.compile(
    r"(?:\bnot?\b|n't\b|cannot\b).{0,48}?(?:support|allow|permit|accept|enabl|availab|recogni|implement|compatible"
    r"|a valid|exist|specified|\bused?\b|find field|expected)"
    r"|un(?:supported|recogni[sz]ed|known|expected|available)|invalid (?:field|param|argument|property|role)"
    r"|extra (?:input|field|param)|extra_forbidden|forbidden|additional propert|deprecated|disabled|incompatible"
    r"|only (?:the )?default|only .{0,24}?(?:supported|allowed|accepted|set to)|must be verified"
    r"|requires? --|requires? .{1,48} to be set|不支持|不允许|不能使用"
)
#: The words that a value is wrong, although the field is taken.
_OUT_OF_RANGE: Final = re.compile(
    r"between|\brange\b|at (?:most|least)|(?:less|greater|smaller|larger|lower|higher) than|\bm(?:ax|in)(?:imum)?\b"
    r"|[<>]|positive|exceed|too (?:large|high|low|big|small)|范围|不能大于|不能小于"
)
#: The words of templates that know people and assistants alone. Messages are sent in turns, so a complaint about turns
#: means the system's message or those of tools: the templates of Gemma and of older Mistral models know neither.
_TWO_ROLES: Final = re.compile(r"roles? must alternate|only user(?:,| and) assistant")
#: The words about one message or the order of several, which say nothing of their kind.
_ORDER: Final = re.compile(
    r"tool[ _]call[ _]?ids?|role [\"'`]?tool|tool results?|after role|before role|must (?:follow|be followed|precede)"
)
_IN_MESSAGE: Final = re.compile(r"messages?(?:\[|\.\[?)\d")
#: The words about the description of a tool.
_ABOUT_SCHEMA: Final = re.compile(
    r"(?<!\w)schemas?(?!\w)|additional_?properties|input_schema|function_?declarations?[\[.]|grammar"
    r"|(?<!\w)tools?(?:\[\d+\]|\.\d+)\.|\$(?:ref|defs|schema)|(?<!\w)(?:any|one|all)_?of(?!\w)"
)
#: The words about the description of a tool that are not about the form of the answer, too.
_OF_TOOL: Final = re.compile(
    r"(?<!\w)tools?(?:\[\d+\]|\.\d+|:)|(?<!\w)function [\"'`]|input_schema|function_?declarations?[\[.]"
)
_OF_ANSWER: Final = re.compile(r"response[_ ]?format|text\.format|response[_ ]?mime[_ ]?type")
#: OpenAI's newer models take tools only if they are told not to think.
_NO_EFFORT: Final = re.compile(r"reasoning_effort.{0,200}\bnone\b")
_MAX_TOKENS: Final = re.compile(r"(?<!\w)max_?(?:completion_?|new_?|output_?)?tokens(?!\w)")
_NEWER_NAME: Final = re.compile(r"max_?completion_?tokens")
_NUMBER: Final = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+(?![\w,-])|\d{3,8}(?![\w-]|[.,]\d))")
#: A smaller number is no limit of an answer.
_LEAST_LIMIT: Final = 256
#: The most limits, and the most tools, that a server may refuse one after another.
_MOST_LIMITS: Final = 3
_MOST_TOOLS: Final = 16
_CLAUSE: Final = re.compile(r"[.;!?]\s+|[。；！]")

#: The words of a server that failed, whatever it was asked.
_CRASHED: Final = re.compile(r"cuda|ggml|out of memory|upstream|connect|worker|time-?out")
#: The words of a refusal that counts the tokens of this request.
_COUNTED: Final = re.compile(r"(?:input|prompt) tokens|tokens (?:in|from) (?:the|your)")
_FEW: Final = frozenset((400, 422))
_MANY: Final = frozenset((400, 403, 404, 405, 415, 422, 500, 501))


def is_known(quirk: str) -> bool:
    return quirk in _NAMES or _LIMITED.fullmatch(quirk) is not None


def most_tokens(quirks: Set[Quirk]) -> int | None:
    """Returns the most tokens of an answer that the server takes; None if it has named no limit."""
    return min((int(found[1]) for quirk in quirks if (found := _LIMITED.fullmatch(quirk))), default=None)


def learned_from(
    status: int, said: str, body: Mapping[str, Any], quirks: Set[Quirk], extra: Collection[str] = ()
) -> Quirk | None:
    """Returns what a refusal teaches beyond the `quirks` that are known; None if it names nothing to do without.

    `said` holds the words in lower case. `body` is the request, with "system" in it if there is a system message and
    "cache_control" if parts are marked so. Fields of `extra` are never left out: they are the operator's, and who knows
    whether one of them keeps people's words from being stored.
    """
    if status not in _MANY or (status >= 500 and _CRASHED.search(said)):
        return None
    every = _CLAUSE.split(said)
    untaken = [clause for clause in every if _UNTAKEN.search(clause)]
    clauses = every if status in _FEW else untaken
    sent = _sent(body, extra)
    if quirk := _about_limit(said, clauses, sent) or _about_effort(said, sent, extra):
        return quirk if quirk not in quirks and _count(quirks, "max_tokens=") < _MOST_LIMITS else None
    theirs = blamed(said, extra)
    about_schema = status != 403 and "tools" in sent and any(map(_ABOUT_SCHEMA.search, every))
    of_tool = about_schema and _OF_TOOL.search(said) and not _OF_ANSWER.search(said)
    others = {*(["tools"] if about_schema else ()), *(["json_schema", "response_format"] if of_tool else ())}
    for field in _FIELDS:
        if field.key not in sent or field.quirk in quirks or field.quirk in others:
            continue
        if theirs and not field.ours:
            return None
        if field.word and field.quirk != "stream" and _TWO_ROLES.search(said):
            return field.quirk
        if any(_is_refused(field, clause, clause in untaken) for clause in clauses):
            is_enabled = field.quirk == "budget" and sent["thinking"].get("type") == "enabled"
            return "adaptive" if is_enabled and "adaptive" in said and "adaptive" not in quirks else field.quirk
    return _about_tool(said, sent, quirks) if about_schema else None


def limit_from(said: str, body: Mapping[str, Any], quirks: Set[Quirk], extra: Collection[str] = ()) -> Quirk | None:
    """Returns the limit of an answer that a refusal names, where the model has no room even for an empty prompt."""
    quirk = _about_limit(said, _CLAUSE.split(said), _sent(body, extra))
    if _COUNTED.search(said):  # it names the length of this conversation
        return None
    is_new = quirk is not None and quirk not in quirks and _count(quirks, "max_tokens=") < _MOST_LIMITS
    return quirk if quirk is not None and is_new and _LIMITED.fullmatch(quirk) else None


def _sent(body: Mapping[str, Any], extra: Collection[str]) -> dict[str, Any]:
    """Returns what was sent, with a schema for the answer and a temperature of 0 under names of their own."""
    sent = {key: value for key, value in body.items() if value and key not in extra}
    if body.get("temperature") == 0 and "temperature" not in extra:
        sent["cold"] = True
    form = sent.get("response_format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        sent["json_schema"] = sent.pop("response_format")
    return sent


def _about_effort(said: str, sent: Mapping[str, Any], extra: Collection[str]) -> Quirk | None:
    wanted = "tools" in sent and "reasoning_effort" not in extra and _NO_EFFORT.search(said)
    return "effort" if wanted else None


def _about_tool(said: str, sent: Mapping[str, Any], quirks: Set[Quirk]) -> Quirk | None:
    """Returns what a refusal teaches about the description of tools: the plainest form, then that of one in no form."""
    schemas = _schemas(sent)
    if "schemas" not in quirks and any(plain_schema(schema) != schema for schema in schemas.values()):
        return "schemas"
    if _count(quirks, "tool=") == _MOST_TOOLS:
        return None
    return next((f"tool={name}" for number, name in enumerate(schemas) if _is_blamed(number, name, said)), None)


def _count(quirks: Set[Quirk], kind: str) -> int:
    return sum(quirk.startswith(kind) for quirk in quirks)


def _is_refused(field: _Field, clause: str, untaken: bool) -> bool:
    if not field.names.search(clause):
        return False
    if field.quirk != "system" and not field.ours and _IN_MESSAGE.search(clause):
        return False
    if field.word:
        return untaken and not _ORDER.search(clause)
    return field.ours or (untaken and not _OUT_OF_RANGE.search(clause))


def _about_limit(said: str, clauses: Collection[str], sent: Mapping[str, Any]) -> Quirk | None:
    tokens = sent.get("max_tokens") or sent.get("max_completion_tokens")
    named = [clause for clause in clauses if _MAX_TOKENS.search(clause)]
    if not named or not isinstance(tokens, int):
        return None
    limits = [number for number in _numbers(said) if _LEAST_LIMIT <= number < tokens]
    if limits and _OUT_OF_RANGE.search(said):
        return f"max_tokens={max(limits)}"
    if "max_tokens" in sent and _NEWER_NAME.search(said):
        return "max_tokens"
    return "unlimited" if any(map(_UNTAKEN.search, named)) else None


def _numbers(said: str) -> Iterator[int]:
    """Yields the numbers of a refusal that may be limits; one that has to be undercut is lowered by 1."""
    for found in _NUMBER.finditer(said):
        number = int(found[0].replace(",", ""))
        below = re.search(r"(?:less|smaller|lower|fewer) than [\"'`]?$", said[: found.start()])
        if number // 100 != 4:  # a status
            yield number - 1 if below else number


def _schemas(sent: Mapping[str, Any]) -> dict[str, Any]:
    functions = [tool.get("function", tool) for tool in sent["tools"]]
    return {function["name"]: function.get("input_schema", function.get("parameters")) for function in functions}


def _is_blamed(number: int, name: str, said: str) -> bool:
    """Returns whether a refusal names a tool, or its place: "tools[3].function", "tools.3.custom".

    Gemini lists the functions inside its first tool.
    """
    listed = "function_?declarations" if "function" in said and "declarations" in said else "tools"
    place = rf"(?<!\w){listed}(?:\[{number}\]|\.{number})(?!\d)"
    return re.search(rf"[\"'`]{re.escape(name.lower())}[\"'`]|{place}", said) is not None


def offered(tools: Sequence[ToolSpec], quirks: Set[Quirk]) -> tuple[ToolSpec, ...]:
    if "tools" in quirks:
        return ()
    taken = tuple(tool for tool in tools if f"tool={tool.name}" not in quirks)
    if "schemas" not in quirks:
        return taken
    return tuple(replace(tool, parameters=plain_schema(tool.parameters)) for tool in taken)


def blamed(said: str, extra: Collection[str]) -> str:
    """Returns the field of `extra` that a refusal names, in lower case; "" if it names none."""
    for name in extra:
        spelled = re.escape(name.lower()).replace("_", "_?")
        # A name that is a word, such as user, has to be set apart.
        bare = rf"[\"'`]{spelled}[\"'`]|(?:^|body\.){spelled}:|(?:argument|parameter|field|property):? {spelled}(?!\w)"
        if re.search(rf"(?<!\w){spelled}(?!\w)" if "_" in name else bare, said):
            return name
    return ""


#: A refusal that matches this is about the pictures.
_ABOUT_PICTURES = re.compile(
    r"image|picture|vision|multi-?modal|mmproj|content[ _]type|(?:must|should) be (?:a )?(?:valid )?string"
)
#: A refusal that matches this says that the model accepts no pictures at all. The words are those of OpenAI,
#: OpenRouter, Ollama, vLLM, llama.cpp, DeepSeek, Groq and others.
_BLIND = re.compile(
    r"(?:not|n't|only|no|that|currently|yet) support|unsupported|supported by|mmproj|content[ _](?:part[ _])?type"
    r"|unknown variant|(?:must|should) be (?:a )?(?:valid )?string|missing data required for image|at most 0 image"
    r"|vision[a-z ]{0,30} not |(?:not|no)[a-z ]{0,30} (?:vision|multi-?modal)|multi-?modal[a-z ]{0,30} not "
)
#: A refusal that matches this is only about these pictures, whatever else it says: others may be accepted.
_BAD_PICTURE = re.compile(
    r"invalid_image|invalid image|invalid base64|image_parse|unsupported image\b(?! input)|image format|image type"
    r"|image size|formats|mime|media[ _]type|(?<!data:)image/[a-z]|too large|too big|too small|too many|exceed|maximum"
    r"|dimension|resolution|pixels|aspect ratio|\d ?mb\b|decod|corrupt|truncat|damaged|could not|couldn't"
    r"|failed to (?!deserialize)|unable to|cannot identify|can't identify|download|fetch|not valid|at most (?!0 )"
    r"|safety|moderat|policy|flagged"
)


def refuses_pictures(status: int, said: str) -> bool:
    """Returns whether a server refused the pictures of a request. `said` is its refusal in lower case."""
    if status == 413:
        return True
    # llama.cpp answers a picture it can't process with a server error (500).
    possible = status in (400, 404, 415, 422) or (status in (500, 501) and _BLIND.search(said) is not None)
    return possible and _ABOUT_PICTURES.search(said) is not None


def is_blind(status: int, said: str) -> bool:
    """Returns whether the refusal says that the model accepts no pictures, and not that these pictures are bad."""
    return status != 413 and _BLIND.search(said) is not None and _BAD_PICTURE.search(said) is None


_CHOICES: Final = ("anyOf", "oneOf", "allOf")
#: The deepest nesting, the longest chain of references, and the most schemas within one that are described: a schema
#: may hold itself.
_DEEPEST: Final = 12
_MOST: Final = 500


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    described = _plain({**schema, "type": "object"}, schema, 0, iter(range(_MOST)))
    return {**described, "properties": described.get("properties", {})}


def _plain(schema: object, root: Mapping[str, Any], depth: int, room: Iterator[int]) -> dict[str, Any]:
    if depth > _DEEPEST or next(room, None) is None:
        return {"type": "string"}
    whole = _resolved(schema, root)
    kind = _kind(whole)
    described: dict[str, Any] = {"type": kind}
    if isinstance(whole.get("description"), str):
        described["description"] = whole["description"]
    choices = [whole["const"]] if "const" in whole else whole.get("enum")
    if kind == "string" and isinstance(choices, list):
        described["enum"] = [choice for choice in choices if isinstance(choice, str)]
    if kind == "array":
        described["items"] = _plain(whole.get("items"), root, depth + 1, room)
    properties = whole.get("properties")
    if kind == "object" and isinstance(properties, Mapping):
        described["properties"] = {name: _plain(inner, root, depth + 1, room) for name, inner in properties.items()}
        required = whole.get("required")
        named = [name for name in properties if name in required] if isinstance(required, list) else []
        if named:
            described["required"] = named
    return described


def _resolved(schema: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    whole: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for _ in range(_DEEPEST):
        reference = whole.get("$ref")
        options = next((whole[key] for key in _CHOICES if isinstance(whole.get(key), list) and whole[key]), None)
        if isinstance(reference, str):
            chosen = _referred(reference, root)
        elif options is not None:
            chosen = next((option for option in options if _is_something(option)), options[0])
        else:
            break
        rest = {key: value for key, value in whole.items() if key not in ("$ref", *_CHOICES)}
        whole = {**(chosen if isinstance(chosen, Mapping) else {}), **rest}
    return whole


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    found: object = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _is_something(option: object) -> bool:
    return isinstance(option, Mapping) and option.get("type") != "null"


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    named = next((kind for kind in kinds if isinstance(kind, str) and kind != "null"), None)
    if named is not None:
        return named
    if isinstance(schema.get("properties"), Mapping):
        return "object"
    return "array" if "items" in schema else "string"
