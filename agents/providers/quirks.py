"""Learns from a server's refusals which parts of a request it does not take, and leaves them out.

Invariants: a quirk is learned only from a refusal that says so, and only if the request had the refused part and can do
without it. So each quirk is learned once, and a call ends after as many tries as there are quirks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

#: A part of a request that a server does not take. "thinking": its answers begin inside a thought whose end alone is
#: marked. "calls": it takes no calls without fields that it gave itself. "thoughts": each answer needs a thought.
#: "opaque": it takes nothing back. "call_ids": ids of calls have nine letters and digits.
Quirk: TypeAlias = Literal[
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "response_format",
    "pictures",
    "system",
    "tools",
    "thinking",
    "calls",
    "thoughts",
    "opaque",
    "call_ids",
]
#: Quirks by server and model: all calls share what one has learned, also those of the next run.
Learned: TypeAlias = dict[str, set[Quirk]]

#: Advice for the operator, logged when the quirk is learned.
ADVICE: Final[Mapping[Quirk, str]] = {
    "tools": "This model is served without tools. Write tools: [] in the agent's file, so that its prompt has none.",
    "pictures": "This model takes no pictures. Set sees: false for it.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """A server's refusal of something that was sent: its status, and its words about the field."""

    quirk: Quirk
    field: str
    words: re.Pattern[str]
    statuses: frozenset[int]


_FEW = frozenset((400, 422))
_MANY = frozenset((400, 404, 405, 415, 422, 500, 501))
#: The words of refusals. Messages are sent in turns, so a complaint about turns means the system's message: the
#: templates of Gemma and of older Mistral models know no system role.
_SYSTEM = (
    r"system (?:role|message|prompt|instruction)s?[a-z ]{0,24}(?:not|n't|unsupported)|developer instruction is not"
    r"|(?:not|n't) (?:support|allow)[a-z ]{0,24}system|roles? must alternate|only user(?:,| and) assistant"
    r"|(?:unsupported|unexpected|invalid|unknown) role:? ?['\"`]?system"
    r"|system['\"`]? (?:is not|isn't) (?:a valid|support)"
)
_TOOLS = (
    r"(?:not|n't|no endpoints found that) support[a-z ]{0,24}(?:tool|function)"
    r"|(?:tool|function)[\w .`'\"-]{0,40}(?:not|n't|un)[ -]?(?:be )?(?:support|enabled|allowed|available|permit)"
    r"|enable-auto-tool-choice|tool[-_ ]choice[\"'` ]{0,3}requires|tools param requires|requires --jinja"
    r"|unrecognized request arguments?[^:]{0,20}: tools|unsupported parameter: ['\"`]?tools"
    r"|\"tools\"\].{0,60}(?:not permitted|forbidden)|only user(?:,| and) assistant|roles? must alternate"
    r"|(?:unsupported|unexpected|invalid|unknown) role:? ?['\"`]?tool"
)
_STREAM = r"stream(?:ing)?['\"`]?[a-z ,'\"`]{0,30}(?:not|n't|un)[ -]?support|(?:not|n't) support[a-z ]{0,16} stream"
_TABLE: Final[tuple[tuple[Quirk, str, frozenset[int], str], ...]] = (
    ("stream_options", "stream_options", _FEW, "stream_options"),
    # OpenAI's newer models take the limit under another name, and accept only the default temperature.
    ("max_tokens", "max_tokens", _FEW, "max_completion_tokens"),
    # A temperature out of range is the operator's mistake to correct. Only an unsupported one may be dropped.
    ("temperature", "temperature", _FEW, "temperature.*(?:support|deprecat)|support.*temperature"),
    # Without JSON mode the prompt still asks for JSON, and the caller validates the answer.
    ("response_format", "response_format", _FEW, "response_format|json[_ ](?:mode|object)"),
    ("system", "system", _MANY, _SYSTEM),
    ("tools", "tools", _MANY, _TOOLS),
    ("stream", "stream", _MANY, _STREAM),
)
_SIGNS = tuple(
    _Sign(quirk=quirk, field=field, words=re.compile(words), statuses=statuses)
    for quirk, field, statuses, words in _TABLE
)


def learned_from(status: int, said: str, sent: Mapping[str, Any]) -> Quirk | None:
    """Returns the part that the server refuses, by its status and its words in lower case; None if they name none.

    `sent` is the body of the request, with "system" in it if there is a system message.
    """
    for sign in _SIGNS:
        if sent.get(sign.field) and status in sign.statuses and sign.words.search(said):
            return sign.quirk
    return None


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
