"""`remora serve` with its doors open: put together from a configuration, and killed in the middle of an answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest
import structlog
from click.testing import CliRunner

from gateway import app
from gateway.cli.keys import keys
from gateway.config.loading import load
from memory.chat.identities import Where, Who
from tests.kit.patience import SECONDS
from tests.kit.served import Served, spawned

KEY = "a-shared-key-of-the-hall-0123"
ASKED = {"model": "assistant", "user": "ada", "messages": [{"role": "user", "content": "Tell me a story"}]}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def installed(folder: Path, port: int, model_url: str | None = None) -> Served:
    """An installation without any platform, that a hall of people talks to through one front end."""
    front_end = f"{{name: hall, key: {KEY}, shared: true}}"
    return Served(folder, port=port, model_url=model_url, api=f"{{enabled: true, front_ends: [{front_end}]}}")


async def test_a_bot_without_any_platform_answers_programs_and_is_well(tmp_path: Path) -> None:
    """The API alone is a complete installation, in which nothing waits and nothing is red."""
    port = free_port()
    served = installed(tmp_path, port)
    headers = {"Authorization": f"Bearer {KEY}"}
    async with served.running(), httpx.AsyncClient(trust_env=False, timeout=SECONDS, headers=headers) as client:
        await served.ready()
        url = f"http://localhost:{port}/v1"
        body = {**ASKED, "messages": [{"role": "user", "content": "/remember my bike is called Zottelbär"}]}
        answer = await client.post(f"{url}/chat/completions", json=body)
        assert "Zottelbär" in answer.json()["choices"][0]["message"]["content"]
        models = (await client.get(f"{url}/models", headers={"X-User-Id": "ada"})).json()["data"]
        assert [one["id"] for one in models] == ["assistant"]  # without a model there is no recall
        found = await client.get(f"{url}/memories", headers={"X-User-Id": "ada"})
        assert found.json()["count"] == 1
        health = await served.health()
        assert health["status"] == "green" and health["channels"]["api"]["trouble"] == ""
    assert served.code == 0 and any(f"http://127.0.0.1:{port}/v1" in line for line in served.said)


@asynccontextmanager
async def stories() -> AsyncIterator[tuple[str, asyncio.Event, list[str]]]:
    go_on, got = asyncio.Event(), list[str]()

    def chunk(text: str, finish: str | None = None) -> bytes:
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        return b"data: " + json.dumps({"id": "1", "model": "test", "choices": [delta]}).encode() + b"\n\n"

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].split("\r\n")[0])
            got.append((await reader.readexactly(length)).decode())
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            writer.write(chunk("Once upon a time "))
            await writer.drain()
            await go_on.wait()
            writer.write(chunk("they lived.", "stop") + b"data: [DONE]\n\n")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client was killed
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", go_on, got
    finally:
        server.close()


@pytest.mark.campaign
async def test_an_answer_that_is_cut_by_kill_9_is_had_by_asking_again(tmp_path: Path) -> None:
    """The message is told once, and the next start goes on with it before or after the program asks again."""
    port = free_port()
    async with stories() as (model_url, go_on, got):
        served = installed(tmp_path, port, model_url)
        url, headers = f"http://127.0.0.1:{port}/v1/chat/completions", {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS, headers=headers) as client:
            async with spawned(tmp_path) as process:
                await served.ready()
                async with client.stream("POST", url, json=ASKED | {"stream": True}) as answer:
                    seen = ""
                    try:
                        async for line in answer.aiter_lines():
                            seen += line
                            if "upon a" in seen and process.returncode is None:
                                os.kill(process.pid, signal.SIGKILL)
                                await process.wait()
                    except httpx.HTTPError:
                        pass
                assert "upon a" in seen and "[DONE]" not in seen
            go_on.set()
            async with spawned(tmp_path):
                await served.ready()
                repeated = {"X-Stainless-Retry-Count": "1"}
                again = await client.post(url, json=ASKED, headers=repeated)
                assert again.json()["choices"][0]["message"]["content"] == "Once upon a time they lived."
    with closing(sqlite3.connect(tmp_path / "data" / "remora.db")) as store:
        said = store.execute("select role, count(*) from messages where text <> '' group by role").fetchall()
    assert dict(said) == {"user": 1, "assistant": 1} and len(got) == 2


def test_the_command_line_makes_lists_and_ends_keys(tmp_path: Path) -> None:
    """For whoever runs the machine, while the bot is stopped; while it runs, it is told where keys are made then."""
    installed(tmp_path, free_port())

    async def hello() -> None:
        config = load(tmp_path / "config.yaml", {}, tmp_path)
        async with app.opened(config, {}) as parts:
            where = Where(
                session_key="telegram:7:-", platform="telegram", chat="7", chat_kind="private", thread=None,
                agent="assistant",
            )  # fmt: skip
            await parts.roster.stores["assistant"].memory.identities.context(
                where, Who(platform="telegram", user_id="7", name="Ada")
            )
            told = await asyncio.to_thread(remora, "list")
            assert told.startswith("75") and "is in use" in told and "type /keys in a private chat" in told

    def remora(*arguments: str) -> str:
        done = CliRunner().invoke(
            keys, [*arguments, "--person", "telegram:7", "--config", str(tmp_path / "config.yaml")]
        )
        return f"{done.exit_code} {done.stdout}{done.stderr}"

    asyncio.run(hello())
    try:
        assert remora("make", "read,write Claude Code").startswith("0 rk_")
        assert remora("list").startswith("0 1. Claude Code: read memory, change memory; never used\n")
        assert remora("revoke", "1").startswith("0 Key 1 is revoked.\n")
        assert remora("revoke", "1").startswith("65") and "telegram:7 has no key 1." in remora("revoke", "1")
        assert "Claude Code" not in remora("list")
    finally:
        structlog.reset_defaults()
