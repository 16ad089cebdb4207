"""docs/openapi.json, made from the table: `python -m bench.openapi > docs/openapi.json`."""

from __future__ import annotations

import json
import re
import sys
from typing import Final

from gateway.api.operations import OFFERED, ROUTES, MemoryRoute
from gateway.api.wire import JSON

_DATE: Final[JSON] = {"type": "string", "format": "date-time"}
_NO_DATE: Final[JSON] = {"type": ["string", "null"], "format": "date-time"}
_TEXT: Final[JSON] = {"type": "string"}
_COUNT: Final[JSON] = {"type": "integer", "minimum": 0}
_FLAG: Final[JSON] = {"type": "boolean"}


def _object(properties: JSON, *, optional: tuple[str, ...] = ()) -> JSON:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _counts(*names: str) -> JSON:
    return dict.fromkeys(names, _COUNT)


def _some(schema: JSON) -> JSON:
    return {"type": "array", "items": schema}


def _ref(name: str) -> JSON:
    return {"$ref": f"#/components/schemas/{name}"}


_MEMORY: Final[JSON] = {
    "id": _TEXT, "memory": _TEXT, "kind": _TEXT, "key": _TEXT, "value": _TEXT, "categories": _some(_TEXT),
    "topic": _TEXT, "tags": _some(_TEXT), "created_at": _DATE, "updated_at": _DATE, "valid_until": _NO_DATE,
    "pinned": _FLAG, "confirmed": _FLAG, "unsure": _FLAG,
}  # fmt: skip
_EVENT: Final[JSON] = {"enum": ["ADD", "UPDATE", "NONE", "DELETE"]}
_PASSAGE: Final[JSON] = {
    "id": {"type": "null"}, "kind": {"const": "message"}, "memory": _TEXT, "created_at": _DATE,
    "score": {"type": "number"},
}  # fmt: skip
#: The schemas of the operations' answers, by operation name, and of their parts.
SCHEMAS: Final[JSON] = {
    "Memory": _object(_MEMORY),
    "Source": _object({"said_at": _DATE, "by": _TEXT, "own": _FLAG, "text": {"type": ["string", "null"]}}),
    "Error": _object(
        {"error": _object({"message": _TEXT, "type": _TEXT, "param": {"type": ["string", "null"]}, "code": _TEXT})}
    ),
    "list_memories": _object({"results": _some(_ref("Memory")), "count": _COUNT, "page": _COUNT}),
    "search_memory": _object(
        {"results": _some({"anyOf": [_object({**_MEMORY, "score": {"type": "number"}}), _object(_PASSAGE)]})}
    ),
    "remember": _object({"results": _some(_object({**_MEMORY, "event": _EVENT})), "note": _TEXT}, optional=("note",)),
    "show_memory": _object({**_MEMORY, "history": _some(_ref("Memory")), "sources": _some(_ref("Source"))}),
    "correct": _object({**_MEMORY, "event": _EVENT, "replaces": _TEXT, "note": _TEXT}, optional=("note",)),
    "confirm": _object(_MEMORY),
    "pin": _object(_MEMORY),
    "tag": _object(_MEMORY),
    "preview_forget": _object(
        {
            "memories": _some(_ref("Memory")),
            **_counts("messages", "replies", "staying", "naming"),
            "quoted": _some(_TEXT),
            "reminders": _some(_TEXT),
        }
    ),
    "erase": _object(
        {
            "event": _EVENT,
            **_counts("memories", "derived", "messages", "replies", "reminders", "naming"),
            "scrubbed": _FLAG,
            "backups_until": _NO_DATE,
        }
    ),
    "get_entity": _object(
        {"name": _TEXT, "type": _TEXT, "aliases": _some(_TEXT), "mentions": _COUNT, "memories": _some(_ref("Memory"))}
    ),
}


def document() -> JSON:
    """Returns the description of the memory API in OpenAPI 3.1."""
    paths: JSON = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Remora's memory API",
            "version": "1",
            "description": "One person's memory, for their own programs. See docs/api.md.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "a key made with /keys"}},
            "schemas": SCHEMAS,
        },
    }


def _operation(route: MemoryRoute) -> JSON:
    action = OFFERED[route.operation]
    schema = action.arguments.model_json_schema()
    in_path = re.findall(r"{(\w+)}", route.path)
    fields = {name: field for name, field in schema["properties"].items() if name not in in_path}
    needed = [name for name in schema.get("required", ()) if name not in in_path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in in_path]
    said: JSON = {}
    if route.method in ("GET", "DELETE"):
        parameters += [
            {"name": name, "in": "query", "required": name in needed, "schema": field} for name, field in fields.items()
        ]
    elif fields:
        body = {"type": "object", "properties": fields, "required": needed}
        said = {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}
    return {
        "summary": route.summary,
        "description": f"{action.purpose} The key needs the permission {action.needs!r}.",
        "operationId": route.operation,
        "parameters": parameters,
        **said,
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": _ref(route.operation)}},
            },
            "default": {"description": "Refused.", "content": {"application/json": {"schema": _ref("Error")}}},
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, ensure_ascii=False) + "\n")
