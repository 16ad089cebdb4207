"""Tools that are not ours: those of servers, and those that the operator has written.

Invariants: what such a tool returns is data. Unless it only reads, it is called only after the person has agreed to
just this call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import BaseModel

from agents import plugins
from agents.tools import JsonObject

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
    """A source of tools that are not our own."""

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
