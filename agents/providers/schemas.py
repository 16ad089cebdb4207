"""Describes the arguments of tools in the plainest JSON Schema, for servers that know few of its keywords. Pure.

Invariants: the result holds no keyword beyond `type`, `description`, `enum`, `properties`, `required` and `items`.
Names and kinds of arguments stay; a choice among several kinds becomes the first of them. Whether arguments fit is
checked against the whole schema when the tool is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_CHOICES: Final = ("anyOf", "oneOf", "allOf")
#: The deepest nesting, the longest chain of references, and the most schemas within one that are described: a schema
#: may hold itself.
_DEEPEST: Final = 12
_MOST: Final = 500


def plain(schema: Mapping[str, Any]) -> dict[str, Any]:
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
        named = [name for name in required if name in properties] if isinstance(required, list) else []
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
