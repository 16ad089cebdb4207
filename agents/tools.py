"""Tools as an agent sees them: how they are offered to the model, and how calls are read and run.

Invariants: a tool takes checked arguments and gives text. Any failure in it, a timeout included, becomes text for the
model and never ends a turn. What a tool that is not ours returns is data; unless it only reads, it is called only after
the person has agreed to just this call.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from pydantic import BaseModel, ValidationError

from agents import plugins
from agents.llm import ToolCall, ToolSpec
from agents.spans import span

#: (step, index in the step, arguments) → text for the model. Step and index name the call across restarts.
Run: TypeAlias = Callable[[int, int, Any], Awaitable[str]]
#: Seconds that one call may take.
CALL_SECONDS: Final = 30.0
#: The most characters by which the model is told why a call's arguments do not fit.
_LONGEST_PROBLEM: Final = 300
#: Characters that vendors refuse in a tool's name, and the longest name that they take.
_NO_NAME_LETTER: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64


class ToolError(Exception):
    """A tool refuses or fails; `str()` is what the model is told."""


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Arguments described by a JSON schema that is not ours. Its owner checks what the schema says beyond the names."""

    parameters: dict[str, Any]

    def read(self, text: str) -> dict[str, Any]:
        """Returns the arguments of a call. Raises `ToolError` if they are no object, or have too few or other names."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ToolError(f"they are no JSON ({exc})") from exc
        if not isinstance(given, dict):
            raise ToolError("they must be one JSON object")
        properties = self.parameters.get("properties", {})
        missing = [name for name in self.parameters.get("required", ()) if name not in given]
        unknown = [name for name in given if name not in properties]
        if missing:
            raise ToolError(f"{missing[0]} is missing")
        if unknown and self.parameters.get("additionalProperties", True) is False:
            raise ToolError(f"{unknown[0]!r} is unknown; known: {', '.join(properties) or 'none'}")
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A callable offered to the model. `arguments` is the pydantic model, or the schema, that its calls must fit.

    Calls of tools that run `beside` each other change nothing here, so those of one step run at the same time. A tool
    with an `origin` is not ours: what it returns is data from there. One call takes at most `seconds`.
    """

    name: str
    description: str
    arguments: type[BaseModel] | JsonObject
    run: Run
    beside: bool = False
    origin: str = ""
    seconds: float = CALL_SECONDS

    @property
    def spec(self) -> ToolSpec:
        own = self.arguments
        if isinstance(own, JsonObject):
            return ToolSpec(name=self.name, description=self.description, parameters=own.parameters)
        return _spec(self.name, self.description, own)


def vendor_name(name: str) -> str:
    """Returns a tool's name as every vendor takes it: OpenAI takes letters, digits, _ and -, at most 64 of them."""
    return _NO_NAME_LETTER.sub("_", name)[:_LONGEST_NAME]


def named(tools: Sequence[Tool], name: str) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)


async def call(tools: Sequence[Tool], wanted: ToolCall, *, step: int, index: int) -> str:
    """Runs one tool call; unknown names and unfit arguments are answered in words the model can act on."""
    tool = named(tools, wanted.name)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        return f"Error: there is no tool called {wanted.name!r}. Available: {names}."
    try:
        arguments = _read(tool, wanted.arguments or "{}")
    except ToolError as exc:
        return f"Error: the arguments of {wanted.name} don't fit: {str(exc)[:_LONGEST_PROBLEM]}."
    try:
        with span("tool", tool=tool.name):
            async with asyncio.timeout(tool.seconds):
                return await tool.run(step, index, arguments)
    except ToolError as exc:
        return f"Error: {exc}"
    except TimeoutError:
        return f"Error: {wanted.name} took longer than {tool.seconds:g} seconds. It is unknown what it has done."


async def together(calls: Sequence[Coroutine[Any, Any, str]]) -> list[str]:
    """Runs calls at the same time. If one raises, or this is cancelled, the others are cancelled too."""
    tasks = [asyncio.ensure_future(one) for one in calls]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    failed = next((task for task in tasks if not task.cancelled() and task.exception() is not None), None)
    return [failed.result()] if failed is not None else [task.result() for task in tasks]


def _read(tool: Tool, text: str) -> Any:
    """Returns a call's arguments as its tool takes them. Raises `ToolError` if they don't fit."""
    if isinstance(tool.arguments, JsonObject):
        return tool.arguments.read(text)
    try:
        return tool.arguments.model_validate_json(text)
    except ValidationError as exc:
        problem = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise ToolError(f"{where}: {problem['msg']}" if where else str(problem["msg"])) from exc


@cache
def _spec(name: str, description: str, arguments: type[BaseModel]) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters=_schema(arguments))


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of a tool's arguments without parts that only cost tokens: each call is checked anyway."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        for name in ("title", "minLength", "maxLength", "default"):
            field.pop(name, None)
    return schema


#: The command that installs the client for servers of the Model Context Protocol.
INSTALL: Final = "pip install 'remora[mcp]'"
#: The reason for which a tool is off until an admin accepts it.
CHANGED: Final = "its definition has changed"


def installed() -> bool:
    return find_spec("mcp") is not None


def missing_tools(names: Iterable[str], folder: Path) -> list[str]:
    """Returns the names of the operator's tools that have neither a file nor an entry point."""
    absent = [name for name in names if not (folder / f"{name}.py").is_file()]
    offered = plugins.installed(plugins.TOOLS) if absent else frozenset[str]()
    return [name for name in absent if name not in offered]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTool:
    """A tool that is not ours. `name` is its name for the model, `origin` its source.

    `reads` is true if it changes nothing and may be called without asking. `off` is the reason why it can't be called
    at present; it is then not offered. `call` raises `ToolError`.
    """

    name: str
    origin: str
    description: str
    arguments: type[BaseModel] | JsonObject
    reads: bool
    call: Callable[[Any], Awaitable[str]]
    off: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTools:
    """Tools as they were, each beside what its source makes of it now. `code` stands for exactly these."""

    tools: Sequence[tuple[ForeignTool, ForeignTool]] = ()
    code: str = ""


class ToolSource(Protocol):
    @property
    def name(self) -> str:
        """The name in the agent's file."""

    @property
    def where(self) -> str:
        """The place that the words of a call go to; empty if they stay in this process."""

    async def tools(self) -> Sequence[ForeignTool]:
        """Returns its tools, including those that are off. Takes as long as a first start, but never fails."""

    async def changes(self) -> ChangedTools:
        """Returns changed tools, at most as many as a person reads at once. Raises `ToolError`."""

    async def accept(self, code: str) -> bool:
        """Takes the changes that have this code. Returns false if they are others by now. Raises `ToolError`."""

    async def close(self) -> None:
        """Ends everything that was started."""
