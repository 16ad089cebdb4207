"""Tools as an agent sees them: what is offered to the model, and how a call's arguments are read.

Invariants: a tool takes checked arguments and gives text; whatever goes wrong in it becomes text for the model and
never ends a turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from agents.llm import ToolCall, ToolSpec

#: (step, index in the step, arguments) → text for the model. Step and index name the call across restarts.
Run: TypeAlias = Callable[[int, int, Any], Awaitable[str]]


class ToolError(Exception):
    """A tool refuses or fails; `str()` is what the model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A callable offered to the model. `arguments` is the pydantic model its calls must fit."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Run

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=_schema(self.arguments))


async def call(tools: tuple[Tool, ...], wanted: ToolCall, *, step: int, index: int) -> str:
    """Run one tool call; unknown names and unfit arguments are answered in words the model can act on."""
    tool = next((tool for tool in tools if tool.name == wanted.name), None)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        return f"Error: there is no tool called {wanted.name!r}. Available: {names}."
    try:
        arguments = tool.arguments.model_validate_json(wanted.arguments or "{}")
        return await tool.run(step, index, arguments)
    except ValidationError as exc:
        return f"Error: the arguments of {wanted.name} don't fit: {_first_problem(exc)}."
    except ToolError as exc:
        return f"Error: {exc}"


@cache
def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of a tool's arguments without what only costs tokens: calls are checked when they come."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        for name in ("title", "minLength", "maxLength", "default"):
            field.pop(name, None)
    return schema


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
