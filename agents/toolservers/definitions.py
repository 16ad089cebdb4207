"""A server's tool: its definition, pinned, compared and offered, and its results as text for a model. Pure.

Invariants: two definitions are the same only if description, schema and whether the tool only reads are the same. A
definition fits into a request to any vendor: its schema is an object's, and neither text nor schema is too long. A
result is at most `LONGEST` characters and a note long. Pictures, sounds and files are named, not passed on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from agents.tools import vendor_name

#: The longest description and schema that are offered to a model, in characters.
_LONGEST: Final = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A tool as its server describes it. One that is too `long` is kept without its schema, and never offered."""

    description: str
    parameters: dict[str, Any]
    reads: bool
    long: bool = False

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def flaw(self) -> str:
        """The reason why the tool can't be offered; empty if it can."""
        if self.long:
            return f"its description and schema have more than {_LONGEST} characters"
        required = self.parameters.get("required", [])
        named = isinstance(required, list) and all(isinstance(name, str) for name in required)
        sound = named and isinstance(self.parameters.get("properties", {}), dict)
        return "" if sound else "its schema is damaged"

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)


def read(tool: Mapping[str, Any]) -> Definition:
    """Returns a tool of `tools/list`; one that says it only reads and may destroy counts as one that may destroy."""
    hints = tool.get("annotations") or {}
    schema = dict(tool.get("inputSchema") or {})
    return _bounded(
        Definition(
            description=str(tool.get("description") or tool.get("title") or ""),
            parameters={**schema, "type": "object", "properties": schema.get("properties", {})},
            reads=hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True,
        )
    )


def _bounded(definition: Definition) -> Definition:
    if len(definition.to_json()) <= _LONGEST:
        return definition
    return replace(definition, description=definition.description[:_LONGEST], parameters={}, long=True)


def pinned(text: str) -> dict[str, Definition]:
    """Returns definitions by tool from the JSON of `to_text`; none from ''."""
    return {name: _bounded(Definition(**fields)) for name, fields in json.loads(text or "{}").items()}


def to_text(definitions: Mapping[str, Definition]) -> str:
    return json.dumps({name: asdict(one) for name, one in definitions.items()}, sort_keys=True)


def offered_name(server: str, tool: str) -> str:
    return vendor_name(f"{server}__{tool}")


#: The most characters of a result that a model reads.
LONGEST: Final = 20_000
#: The most parts of a result that are read.
_MOST_PARTS: Final = 500
_UNREADABLE: Final = "(something unreadable)"


def text_of(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    content = content if isinstance(content, list) else []
    parts = [_text(part) if isinstance(part, dict) else _UNREADABLE for part in content[:_MOST_PARTS]]
    if len(content) > _MOST_PARTS:
        parts.append(f"[… {len(content) - _MOST_PARTS} parts left out …]")
    structured = result.get("structuredContent")
    if not "".join(parts).strip() and structured is not None:
        parts = [json.dumps(structured, ensure_ascii=False)]
    return capped("\n".join(parts)) or "(It returned nothing.)"


def capped(text: str) -> str:
    """Returns the beginning and the end of a text that is too long, with a note between."""
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 4
    gap = f"\n[… {len(text) - LONGEST} characters left out …]\n"
    return f"{text[: LONGEST - tail]}{gap}{text[len(text) - tail :]}"


def _text(part: Mapping[str, Any]) -> str:
    inside = part.get("resource")
    match part.get("type"):
        case "text":
            return str(part.get("text", ""))
        case "resource" if isinstance(inside, dict):
            return str(inside["text"]) if "text" in inside else f"(a file: {inside.get('uri', '')})"
        case "resource_link":
            return f"(a file: {part.get('name', '')} {part.get('uri', '')})"
        case "image":
            return "(a picture)"
        case "audio":
            return "(a sound)"
    return _UNREADABLE
