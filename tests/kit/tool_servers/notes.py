"""A server that behaves: it reads and writes notes in a folder. Over stdio, or over HTTP at a port."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

FOLDER = Path(sys.argv[1])
server = MCPServer("notes")


def look(name: str) -> str:
    """Reads a note."""
    file = FOLDER / f"{name}.txt"
    return file.read_text("utf-8") if file.exists() else "There is no such note."


def write(name: str, text: str) -> str:
    """Writes a note."""
    with (FOLDER / f"{name}.txt").open("a", encoding="utf-8") as file:
        file.write(text)
    return f"Wrote {len(text)} characters."


def environment() -> str:
    """Names the variables of its environment."""
    return json.dumps(sorted(os.environ))


def refuse() -> str:
    """Fails, and says why."""
    raise ToolError("this note is \u202elocked")


server.add_tool(look, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
server.add_tool(write)
server.add_tool(environment, annotations=ToolAnnotations(read_only_hint=True))
server.add_tool(refuse, annotations=ToolAnnotations(read_only_hint=True))

if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
