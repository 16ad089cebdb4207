"""The server of tools, spoken to by the protocol's own client: eight tools over one person's memory."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from gateway.cli.mcp import mcp
from tests.kit.doors import House, house
from tests.kit.fakes import ScriptedModel
from tests.kit.patience import SECONDS

ROOT = Path(__file__).parents[2]
TOOLS = {
    "search_memory", "list_memories", "show_memory", "get_entity", "remember", "correct", "confirm", "forget",
}  # fmt: skip


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel()) as home:
        yield home


@asynccontextmanager
async def client(home: House, key: str, mode: str = "auto") -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=SECONDS) as http:
        transport = streamable_http_client(f"{home.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as connected:
            yield connected


async def called(client: Any, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_program_searches_remembers_and_corrects_in_both_eras(home: House, mode: str) -> None:
    """A memory kept by a program is there in the chat at once, and names the program."""
    key = await home.key("Claude Code")
    async with client(home, key, mode) as program:
        listed = (await program.list_tools()).tools
        assert {tool.name for tool in listed} == TOOLS
        reading = {tool.name for tool in listed if tool.annotations.read_only_hint}
        assert reading == {"search_memory", "list_memories", "show_memory", "get_entity"}
        assert not any("user" in json.dumps(tool.input_schema) for tool in listed)
        (kept,) = (await called(program, "remember", text="my bike is called Zottelbär"))["results"]
        assert "Zottelbär" in (await home.world.say("/memory", author="7"))[0]
        found = await called(program, "search_memory", query="bike Zottelbär")
        assert found["results"][0]["id"] == kept["id"]
        fixed = await called(program, "correct", id=kept["id"], value="my bike is called Quaxolia")
        assert (await called(program, "confirm", id=fixed["id"]))["confirmed"]
        shown = await called(program, "show_memory", id=fixed["id"])
        assert shown["sources"][0]["by"] == "N7, through Claude Code"
        assert (await called(program, "list_memories"))["count"] == 1


async def test_a_tool_can_not_forget_but_ask(home: House) -> None:
    """The question comes into the person's own chat with its buttons, and only they answer it."""
    key = await home.key("Claude Code")
    await home.world.say("/remember the vault opens with Quaxolia", author="7")
    async with client(home, key) as program:
        (one,) = (await called(program, "list_memories"))["results"]
        assert (await called(program, "forget", id=one["id"]))["asked"]
        assert (await called(program, "list_memories"))["count"] == 1
    await home.world.router.settled(home.world.inbound("", author="7").place)
    asked = home.world.walls["telegram"].sent[-1]
    assert asked.place.chat == "7" and "Claude Code asks:" in asked.text and asked.buttons
    await home.world.say("", author="7", pressed=asked.buttons[0].data)
    folder = home.world.memory.database.path.parent
    assert not [file for file in folder.rglob("*") if file.is_file() and b"Quaxolia" in file.read_bytes()]


async def test_a_tool_that_fails_says_why(home: House) -> None:
    """For the model to read; another person's memory is answered like one that does not exist."""
    await home.world.say("/remember my cat is called Minka", author="8")
    (theirs,) = (await home.world.rows("select short_id from memories"))[0]
    reader = await home.key("read reader")
    async with client(home, reader) as program:
        for tool, arguments, why in (
            ("show_memory", {"id": theirs}, theirs),
            ("show_memory", {"id": "m_aaaaaa"}, "m_aaaaaa"),
            ("show_memory", {"id": "m_aaaaaa", "user": "8"}, "user"),
            ("remember", {"text": "I like tea"}, "permission"),
            ("forget", {"id": theirs}, "permission"),
        ):
            result = await program.call_tool(tool, arguments)
            assert result.is_error and why in result.content[0].text
        assert (await called(program, "list_memories"))["count"] == 0


async def test_the_server_is_one_message_at_a_time(home: House) -> None:
    """There is no session to take over, no stream to hold open, and nothing without a key."""
    key = await home.key()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    assert (await home.ask("GET", "/mcp", key, headers=accept)).status_code == 405
    assert (await home.ask("DELETE", "/mcp", key, headers=accept)).status_code == 405
    assert (await home.ask("POST", "/mcp", "", body, accept)).status_code == 401
    answer = await home.ask("POST", "/mcp", key, body, accept)
    assert answer.status_code == 200 and len(answer.json()["result"]["tools"]) == len(TOOLS)
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stdio_reaches_the_running_process(home: House, mode: str) -> None:
    """As Claude Desktop starts its servers: a program of its own, whose key is in its environment."""
    key = await home.key("Claude Desktop")
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", "mcp", "--url", home.url],
        env={"REMORA_KEY": key, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        cwd=ROOT,
    )
    async with Client(stdio_client(command), mode=mode) as program:
        assert {tool.name for tool in (await program.list_tools()).tools} == TOOLS
        await called(program, "remember", text="my bike is called Zottelbär")
    assert "Zottelbär" in (await home.world.say("/memory", author="7"))[0]


@pytest.mark.parametrize(("key", "told"), [("", "REMORA_KEY is not set"), ("rk_some", "Start `remora serve`")])
def test_stdio_says_what_to_do_where_nothing_serves(key: str, told: str) -> None:
    """To the program that started it, in an answer of the protocol, and to whoever reads its log."""
    ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody listens here
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = CliRunner().invoke(mcp, ["--url", url], input=f"{ask}\n{note}\n", env={"REMORA_KEY": key})
    assert told in done.stderr
    assert [told in json.loads(line)["error"]["message"] for line in done.stdout.splitlines()] == [True] * bool(key)
