"""Sends what a program can to the API, the memory API and the server of tools, with a key or without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import httpx

from bench.hostile.inputs import Deed, enter_all, hostile
from bench.hostile.page import MARKDOWN
from bench.hostile.people import TEXTS, passwords
from bench.hostile.world import World

CHAT, RESPONSES, MEMORIES, MCP = "/v1/chat/completions", "/v1/responses", "/v1/memories", "/mcp"
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def _with_key(act: Callable[[httpx.AsyncClient], Awaitable[object]]) -> Deed:
    async def deed(world: World) -> None:
        async with world.client(await world.key()) as client:
            await act(client)

    return deed


def _sends(path: str, content: object, *, method: str = "POST") -> Deed:
    """One request with a key; `content` that is no bytes is sent as JSON."""
    return _with_key(lambda client: client.request(method, path, content=_bytes(content), headers=_JSON))


def _bytes(content: object) -> bytes:
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def said(text: object, **more: object) -> dict[str, object]:
    """Returns the body of a question."""
    return {"model": "assistant", "messages": [{"role": "user", "content": text}], **more}


def nested(levels: int) -> bytes:
    """Returns JSON of so many levels."""
    return b'{"a":' * levels + b"1" + b"}" * levels


_TURNS: Final = [{"role": ("user", "assistant")[n % 2], "content": "hi"} for n in range(100_001)]
_PARTS: Final = [{"type": "text", "text": "hi"}] * 100_000
_PICTURES: Final = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}] * 100


async def _wrong_types(client: httpx.AsyncClient) -> None:
    for more in (
        {"tools": 5}, {"tools": [5]}, {"tools": {"a": 1}}, {"tool_choice": 5}, {"stream": "yes"}, {"stream_options": 5},
        {"user": 5}, {"n": [1]}, {"stop": 5}, {"messages": 5}, {"messages": [5]}, {"messages": [{"role": 5}]}, {"model": 5},
        {"messages": [{"role": "assistant", "tool_calls": 5}]}, {"messages": [{"role": "tool", "content": {"a": 1}}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": 5}]}]}, {"metadata": [1]}, {"temperature": "hot"},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 5}]}]},
        {"messages": [{"role": "user", "content": [{"type": 5}, 7, None]}]}, {"response_format": 5},
    ):  # fmt: skip
        await client.post(CHAT, json=said("hi", **more))
        if len(str(more)) % 2:
            await client.post(RESPONSES, json={"model": "assistant", "input": more.get("messages", 5), **more})


enter_all(
    "API chat",
    {
        "a message of 9 MB": _sends(CHAT, said("hello world " * 750_000)),
        "a message of 9 MB of passwords": _sends(CHAT, said(passwords(600_000)[:9_000_000])),
        "2,000 lines of passwords": _sends(CHAT, said(passwords(2_000))),
        "pictures in an answer's form": _sends(CHAT, said(MARKDOWN["opened pictures"])),
        "100,000 messages": _sends(CHAT, {"model": "assistant", "messages": _TURNS}),
        "100,000 parts": _sends(CHAT, said(_PARTS)),
        "a hundred pictures": _sends(CHAT, said(_PICTURES)),
        "JSON of 200,000 levels": _sends(CHAT, nested(200_000)),
        "JSON of 900 levels as content": _sends(CHAT, b'{"model":"assistant","messages":[' + nested(900) + b"]}"),
        "a number of 9,000,000 digits": _sends(CHAT, b'{"model":"assistant","n":' + b"9" * 9_000_000 + b"}"),
        "a million keys": _sends(CHAT, ('{"a":1,' + ",".join(f'"{n}":1' for n in range(700_000)) + "}").encode()),
        "half characters": _sends(CHAT, said("\ud800\udfff" * 1_000)),
        "numbers in place of lists": _with_key(_wrong_types),
        "a model's name of 9 MB": _sends(CHAT, {"model": "x" * 9_000_000, "messages": []}),
        "a conversation's name of 7 kB": _with_key(
            lambda client: client.post(CHAT, json=said("hi"), headers={"X-Conversation-Id": "x" * 7_000})
        ),
    },
    short=("2,000 lines of passwords",),
)


async def _unread(world: World) -> None:
    """Sixteen streams of which nobody reads a byte."""
    key = await world.key()
    body = json.dumps(said("hi", stream=True)).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    lines = [await world.open() for _ in range(16)]
    for _, writer in lines:
        writer.write(head.encode() + body)
    await asyncio.sleep(4)
    for _, writer in lines:
        writer.transport.abort()


hostile("API chat", "sixteen streams that nobody reads")(_unread)


enter_all(
    "API responses",
    {
        "an input of 9 MB": _sends(RESPONSES, {"model": "assistant", "input": "hello world " * 750_000}),
        "100,000 items": _sends(RESPONSES, {"model": "assistant", "input": [{"role": "user", "content": "hi"}] * 100_000}),
        "calls of tools that are none": _sends(
            RESPONSES, {"model": "assistant", "input": [{"type": "function_call", "call_id": 5, "arguments": [1]}] * 999}
        ),
        "an earlier answer that was none": _sends(
            RESPONSES, {"model": "assistant", "input": "hi", "previous_response_id": "x" * 900_000}
        ),
    },
)  # fmt: skip


async def _memories(client: httpx.AsyncClient) -> None:
    for text in (TEXTS["passwords"][:2_000], TEXTS["opened brackets"][:2_000], "on 2027-02-30 a concert", "\ud800", ""):
        await client.post(MEMORIES, content=json.dumps({"text": text}), headers=_JSON)
    for query in (TEXTS["quotes within quotes"][:500], "NEAR(" * 100, '"' * 499, "*" * 500, "\u0000", "a OR " * 100):
        await client.post(f"{MEMORIES}/search", json={"query": query, "limit": 50})
    for params in ({"filter": "since:9999-12-31"}, {"filter": "since:0001-01-01 until:9999-12-31"}, {"page": "9" * 400},
                   {"filter": "a:" * 250}, {"limit": "1e9"}, {"user_id": "x" * 5_000}):  # fmt: skip
        await client.get(MEMORIES, params=params)
    for method, path in (("GET", "/%00"), ("DELETE", "/" + "x" * 5_000), ("PATCH", "/m_7k2pq4"), ("PUT", "/m_7k2pq4")):
        await client.request(method, MEMORIES + path, content=b"[5]", headers=_JSON)
    await client.get("/v1/entities", params={"name": "x" * 4_000})


enter_all(
    "memory API",
    {
        "texts, filters and ids that nobody gives": _with_key(_memories),
        "a memory of 9 MB": _sends(MEMORIES, {"text": "x" * 9_000_000}),
        "a list of 500,000 messages": _sends(MEMORIES, {"messages": [{"role": "user", "content": "hi"}] * 200_000}),
        "JSON of 200,000 levels": _sends(MEMORIES, nested(200_000)),
    },
)


# The server of tools ----------------------------------------------------------------------------------------------


def _rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _called(name: str, **arguments: Any) -> dict[str, Any]:
    return _rpc("tools/call", {"name": name, "arguments": arguments})


async def _odd_calls(client: httpx.AsyncClient) -> None:
    for content in (
        _called("search_memory", query=TEXTS["passwords"][:500]), _called("search_memory", query=[1]), _called("x" * 9_000),
        _called("remember_text", text=passwords(90)[:2_000]), _rpc("tools/call", 5), _rpc("initialize", {"x": "y" * 900_000}),
        _rpc("nonsense", {}), {"jsonrpc": "1.0"}, [], [5], 5, None, "x", {"id": {"a": 1}}, b"\xff\xfe", b"",
    ):  # fmt: skip
        await client.post(MCP, content=_bytes(content), headers=_JSON)
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        with suppress(httpx.ReadTimeout):
            await client.request(method, MCP, headers={"Accept": "text/event-stream"}, timeout=2)


enter_all(
    "MCP",
    {
        "calls that nobody makes": _with_key(_odd_calls),
        "a batch of 100,000 calls": _sends(MCP, [_called("search_memory", query="x")] * 60_000),
        "arguments of 9 MB": _sends(MCP, _called("remember_text", text="x" * 9_000_000)),
        "arguments of 900 levels": _sends(
            MCP, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":' + nested(900) + b"}}"
        ),
        "JSON of 200,000 levels": _sends(MCP, nested(200_000)),
    },
)  # fmt: skip


# Without a key --------------------------------------------------------------------------------------------------


async def _keyless(world: World, path: str, size: int, count: int, *, key: str = "") -> None:
    """So many bodies at once, by nobody or by somebody whose key is wrong."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
        + (f"Authorization: Bearer {key}\r\n" if key else "")
        + "\r\n"
    ).encode()
    body = b'{"model":"' + b"x" * (size - 12) + b'"}'

    async def send() -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(15):
                reader, writer = await world.open()
                try:
                    writer.write(head)
                    # All but the last byte: it is held until the last one comes.
                    writer.write(body[:-1])
                    await writer.drain()
                    await asyncio.sleep(2)
                    writer.write(body[-1:])
                    status = (await reader.readline()).split()
                    if len(status) > 1:
                        world.statuses.append(int(status[1]))
                finally:
                    writer.transport.abort()

    await asyncio.gather(*(send() for _ in range(count)))


async def _wrong_keys(world: World) -> None:
    async with world.client() as client:
        for n in range(25):
            await asyncio.gather(
                *(
                    client.get("/v1/models", headers={"Authorization": f"Bearer rk_{n}_{m}" + "x" * 40})
                    for m in range(20)
                ),
                return_exceptions=True,
            )


enter_all(
    "without a key",
    {
        "64 bodies of 9.9 MB to the API": lambda world: _keyless(world, CHAT, 9_900_000, 64),
        "64 bodies of 9.9 MB to the server of tools": lambda world: _keyless(world, MCP, 9_900_000, 64),
        "64 bodies of 9.9 MB with a wrong key": lambda world: _keyless(
            world, CHAT, 9_900_000, 64, key="rk_" + "x" * 40
        ),
        "64 forms of 190 kB to the page": lambda world: _keyless(world, "/in", 190_000, 64),
        "500 requests with wrong keys": _wrong_keys,
    },
    short=("64 bodies of 9.9 MB to the API",),
)
