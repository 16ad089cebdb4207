"""The protocol's inspector against the server of tools. It runs where `mcp-inspector` is installed (a package of npm)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.doors import house
from tests.kit.fakes import ScriptedModel

ROOT = Path(__file__).parents[2]
INSPECTOR = shutil.which("mcp-inspector")
pytestmark = pytest.mark.skipif(INSPECTOR is None, reason="mcp-inspector is not installed")


async def inspected(*arguments: str) -> Any:
    assert INSPECTOR is not None
    process = await asyncio.create_subprocess_exec(
        INSPECTOR, "--cli", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT
    )
    said, trouble = await process.communicate()
    assert process.returncode == 0, trouble.decode()
    return json.loads(said)


async def test_the_inspector_lists_and_calls_tools(tmp_path: Path) -> None:
    """Over HTTP with a key in a header, and over stdio, where the key is in the environment."""
    async with house(tmp_path, model=ScriptedModel()) as home:
        key = await home.key("inspector")
        http = (f"{home.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {key}")
        call = ("--method", "tools/call", "--tool-name", "remember", "--tool-arg", "text=my bike is called Zottelbär")
        kept = await inspected(*http, *call)
        assert kept["structuredContent"]["results"][0]["value"].endswith("Zottelbär")
        stdio = ("-e", f"REMORA_KEY={key}", "-e", f"PYTHONPATH={ROOT}", "-e", f"PATH={os.environ['PATH']}")
        command = (sys.executable, "-m", "gateway", "mcp", "--url", home.url)
        ways = [await inspected(*http, "--method", "tools/list")]
        ways.append(await inspected(*stdio, "--method", "tools/list", "--", *command))
        assert [len(tools["tools"]) for tools in ways] == [8, 8]
