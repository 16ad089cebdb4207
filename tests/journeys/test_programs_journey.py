"""An hour of programs: the OpenAI client, plain requests to memory, and a client of MCP, in the settings of `remora init`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from openai import AsyncOpenAI

from tests.journeys.house import House
from tests.journeys.talk import LEAD, TALK, held_by_many
from tests.kit.patience import SECONDS
from tests.kit.served import environment

#: What an operator writes to let programs in, as docs/api.md says.
_API = "api: {enabled: true}\n"


def key_of(house: House, person: str) -> str:
    house.run("chat", "--as", person, "--once", "hello")
    printed = house.run("keys", "make", "chat,read,write Journey", "--person", f"console:{person}")
    key = re.search(r"rk_[\w-]+", printed)
    assert key is not None, printed
    return key[0]


async def test_an_hour_through_the_api_goes_without_a_fault(tmp_path: Path) -> None:
    """Talk as whole answers, a stream, responses, nearly 2 MB of text, every read of memory, and a restart in between.

    A key has its requests a minute; the client waits and asks again, as it does for everybody.
    """
    house = House(tmp_path, settings=_API)
    keys = [key_of(house, f"person{n}") for n in range(len(TALK))]
    headers = {"Authorization": f"Bearer {keys[LEAD]}"}
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as transport,
        httpx.AsyncClient(base_url=f"{house.url}/v1", headers=headers, trust_env=False, timeout=SECONDS) as plain,
    ):
        clients = [
            AsyncOpenAI(api_key=key, base_url=f"{house.url}/v1", http_client=transport, max_retries=20) for key in keys
        ]
        client = clients[0]

        async def ask(words: str, expected: str, *, client: AsyncOpenAI = client) -> str:
            messages: list[Any] = [{"role": "user", "content": words}]
            answer = await client.chat.completions.create(model="assistant", messages=messages)
            text = answer.choices[0].message.content or ""
            assert re.search(expected, text), (words, expected, text)
            return text

        async with house.open():
            assert [model.id async for model in client.models.list()] == ["assistant"]
            answers = await held_by_many([partial(ask, client=each) for each in clients])
            stream = await client.chat.completions.create(
                model="assistant", messages=[{"role": "user", "content": "Where do I live?"}], stream=True
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
            assert "Braga" in text
            first = await client.responses.create(model="assistant", input="My bike is called Zottelbär")
            second = await client.responses.create(
                model="assistant", input="what is my bike called?", previous_response_id=first.id
            )
            assert "Zottelbär" in second.output_text
            answers += [text, first.output_text, second.output_text, await ask("the plan " * 200_000, r"\w")]
            answers += await _read_memory(plain)
        async with house.open():
            answers.append(await ask("Where do I live?", "Braga"))
    assert house.troubles(*answers) == []


async def _read_memory(client: httpx.AsyncClient) -> list[str]:
    """Asks for everything that docs/openapi.json lists as a GET, with the ids that the lists give. Returns the answers."""
    document = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text("utf-8"))
    memories = (await client.get("/memories")).json()["results"]
    named = {"id": memories[0]["id"], "memory_id": memories[0]["id"], "name": "Marta Keller", "entity": "Marta Keller"}
    answers = []
    for path, methods in document["paths"].items():
        if "get" not in methods or not path.startswith("/v1/"):
            continue
        where = path.removeprefix("/v1").format_map(_Any(named))
        answer = await client.get(where, params={"q": "walnuts", "query": "walnuts"})
        assert answer.status_code < 500 and answer.status_code != 405, (where, answer.status_code, answer.text)
        answers.append(answer.text)
    return answers


class _Any(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "assistant"


async def test_an_hour_of_tools_goes_without_a_fault(tmp_path: Path) -> None:
    """Every tool over HTTP and over stdio, and a restart in between."""
    house = House(tmp_path, settings=_API)
    key = key_of(house, "ada")
    answers: list[str] = []

    async def call(client: Any, tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        answers.append(result.content[0].text)
        assert not result.is_error, (tool, arguments, result.content[0].text)
        return result.structured_content

    async with house.open():
        async with over_http(house, key) as client:
            statements = ["I live in Lisbon", "I'm allergic to walnuts", "我喜欢喝绿茶", "Mein Hund heißt Bruno"]
            kept = [(await call(client, "remember", text=text))["results"][0] for text in statements]
            for query in (
                "where do I live?",
                "walnuts",
                "绿茶",
                "what is my dog called?",
                "",
                "topic:none",
                "x" * 1000,
            ):
                await client.call_tool("search_memory", {"query": query})
            found = await call(client, "search_memory", query="what must I not eat?")
            assert "walnuts" in json.dumps(found)
            fixed = await call(client, "correct", id=kept[0]["id"], value="Braga")
            await call(client, "confirm", id=fixed["id"])
            assert (await call(client, "list_memories"))["count"] >= len(statements)
            await call(client, "show_memory", id=fixed["id"])
            assert (await client.call_tool("get_entity", {"name": "Nobody"})).content
            assert (await client.call_tool("show_memory", {"id": "m_nosuch"})).is_error
        async with over_stdio(house, key) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"search_memory", "forget"}
            await call(client, "search_memory", query="Bruno")
    async with house.open(), over_http(house, key) as client:
        found = await call(client, "search_memory", query="where do I live now?")
        assert "Braga" in json.dumps(found)
    assert house.troubles(*answers) == []


@asynccontextmanager
async def over_http(house: House, key: str) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=SECONDS) as http,
        Client(streamable_http_client(f"{house.url}/mcp", http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(house: House, key: str) -> AsyncIterator[Any]:
    command = ["-m", "gateway", "mcp", "--config", str(house.folder / "config.yaml")]
    variables = environment(house.folder) | {"REMORA_KEY": key}
    server = StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=house.folder)
    async with Client(stdio_client(server)) as client:
        yield client
