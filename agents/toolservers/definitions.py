"""The definition of a server's tool: how it is read from the server, pinned, compared and offered. Pure.

Invariants: two definitions are the same only if description, schema and whether the tool only reads are the same. A
definition fits into a request to any vendor: its schema is an object's, and neither text nor schema is too long.
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
