"""The memory API: paths and bodies to operations, in the shapes that users of mem0's client know.

Invariant: a body's members that name a person, an agent or a run, as mem0's clients send them, are not looked at: the
key says whose memory it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.api.callers import ApiRefusal
from gateway.api.operations import OFFERED
from gateway.api.wire import JSON

_ID: Final = "(?P<id>[A-Za-z0-9_]{1,20})"
#: The fields that mem0's clients send with a request and that mean nothing here.
_BESIDE: Final = frozenset(
    {"user_id", "agent_id", "app_id", "run_id", "metadata", "infer", "version", "output_format", "org_id", "project_id",
     "async_mode", "page_size"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoute:
    """A way into the memory API. `given` makes an operation's arguments of the body and the query."""

    method: str
    path: str
    operation: str
    summary: str
    given: Callable[[JSON], JSON] = dict


def _added(body: JSON) -> JSON:
    messages = body.pop("messages", None)
    if isinstance(messages, str):
        return {**body, "text": messages}
    if isinstance(messages, list):
        own = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role", "user") == "user"]
        return {**body, "text": "\n".join(text for text in own if isinstance(text, str))}
    return body


def _sought(body: JSON) -> JSON:
    if "top_k" in body:
        body["limit"] = body.pop("top_k")
    body.pop("filters", None)
    return body


def _changed(body: JSON) -> JSON:
    if "text" in body:
        body["value"] = body.pop("text")
    return body


ROUTES: Final = (
    MemoryRoute(method="GET", path="/v1/memories", operation="list_memories", summary="List memories"),
    MemoryRoute(method="POST", path="/v1/memories", operation="remember", summary="Keep a statement", given=_added),
    MemoryRoute(
        method="POST", path="/v1/memories/search", operation="search_memory", summary="Search memory", given=_sought
    ),
    MemoryRoute(method="GET", path="/v1/memories/{id}", operation="show_memory", summary="One memory in full"),
    MemoryRoute(method="PUT", path="/v1/memories/{id}", operation="correct", summary="Correct it", given=_changed),
    MemoryRoute(method="PATCH", path="/v1/memories/{id}", operation="pin", summary="Pin it, or end that"),
    MemoryRoute(method="DELETE", path="/v1/memories/{id}", operation="erase", summary="Forget it, every byte"),
    MemoryRoute(
        method="GET", path="/v1/memories/{id}/forget", operation="preview_forget", summary="What would go with it"
    ),
    MemoryRoute(method="POST", path="/v1/memories/{id}/confirm", operation="confirm", summary="Mark it as right"),
    MemoryRoute(method="POST", path="/v1/memories/{id}/tags", operation="tag", summary="Tag it, or take tags away"),
    MemoryRoute(method="GET", path="/v1/entities", operation="get_entity", summary="What is known of a name"),
)


def is_memory(path: str) -> bool:
    return path.startswith(("/v1/memories", "/v1/entities"))


def check_route(method: str, path: str) -> None:
    """Raises `ApiRefusal` unless there is a way into the memory API for a method and a path."""
    _route(method, path)


def wanted(method: str, path: str, query: Mapping[str, str], body: JSON) -> tuple[str, JSON]:
    """Returns the operation that a request asks for, with its arguments. Raises `ApiRefusal`."""
    route, parts = _route(method, path)
    plain = {name: value for name, value in {**query, **body}.items() if name not in _BESIDE}
    return route.operation, {**_typed(route, route.given(plain)), **parts}


def _route(method: str, path: str) -> tuple[MemoryRoute, dict[str, str]]:
    path, allowed = path.rstrip("/"), []
    for route in ROUTES:
        parts = re.fullmatch(route.path.replace("{id}", _ID), path)
        if parts is None:
            continue
        if route.method == method:
            return route, parts.groupdict()
        allowed.append(route.method)
    if allowed:
        raise ApiRefusal(405, "method_not_allowed", f"{path} takes {', '.join(allowed)}.")
    raise ApiRefusal(404, "not_found", f"There is nothing at {path[:200]}.")


def _typed(route: MemoryRoute, given: JSON) -> JSON:
    """Returns the arguments with numbers where a query holds them as text."""
    fields = OFFERED[route.operation].arguments.model_fields
    return {
        name: int(value) if name in fields and fields[name].annotation is int and _is_number(value) else value
        for name, value in given.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10
