"""The bot that is attacked, and everything around it: platforms, model, tool server, web server, and the watcher.

Invariants: the bot is `remora serve` of this checkout with the files that `remora init` writes; what is added to them is
what an operator adds for a platform, the page, the API or a tool. Inputs reach it in no other way than strangers do.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

import httpx
from aiohttp import web

from agents.spec import ToolName
from gateway.page.visitors import leave_code
from tests.kit.served import TELEGRAM_TOKEN, environment, spawned
from tests.platforms import chat_model, discord, telegram
from tests.platforms.chat_model import JSON, is_extraction

ROOT: Final = Path(__file__).parents[2]
#: A public address that stands on the loopback device of the bench's own network.
PUBLIC: Final = "1.2.3.4"
#: An admin, the people who ask meanwhile, and the attackers, each with limits of their own.
ADMIN: Final = 7
OTHERS: Final = tuple(range(2_000, 2_020))
ATTACKERS: Final = range(3_000, 3_400)
#: The same people on Discord, where ids are longer.
FAR: Final = 345_678_901_234_560_000
#: The secret and the token of the bot whose messages Telegram delivers.
HOOK_SECRET: Final = "hook-secret-0123456789"
HOOK_TOKEN: Final = "987654321:" + "Bb1_-" * 7
#: Seconds that an attacker waits for an answer.
PATIENCE: Final = 20.0
NOTHING: Final = '{"facts": [], "styles": [], "event": null, "entities": []}'

#: Writes a model's answer to a request: anything that a server can send.
ModelAnswer: TypeAlias = Callable[[web.Request, JSON], Awaitable[web.StreamResponse]]
#: Writes a web server's answer.
WebAnswer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Model:
    """A chat model in OpenAI's format. A request whose last words hold a key of `answers` gets that answer."""

    answers: dict[str, ModelAnswer] = field(default_factory=dict)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if is_extraction(body):
            return web.json_response(chat_model.whole(body, NOTHING))
        said = str(body["messages"][-1].get("content") or "")[:200_000]
        asked = " ".join(str(one.get("content") or "") for one in body["messages"] if one.get("role") == "user")
        if (ping := re.search(r"ping-(\d+)", said)) is not None:
            return await streamed(request, body, [{"content": f"pong-{ping[1]}"}])
        if body["messages"][-1].get("role") != "tool":
            for marker, answer in reversed(self.answers.items()):
                if marker in asked:
                    return await answer(request, body)
        return await streamed(request, body, [{"content": "All is well."}])


async def streamed(
    request: web.Request, body: JSON, deltas: Sequence[JSON], finish: str = "stop"
) -> web.StreamResponse:
    """Sends these deltas, in a stream if it is asked for."""
    if not body.get("stream"):
        whole = chat_model.whole(body, "".join(str(one.get("content") or "") for one in deltas))
        if finish == "tool_calls":
            whole["choices"][0] = {"index": 0, "message": {"role": "assistant", **deltas[-1]}, "finish_reason": finish}
        return web.json_response(whole)
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    with suppress(ConnectionError):
        await response.write(b"".join(event(delta) for delta in deltas))
        await response.write(event({}, finish) + b"data: [DONE]\n\n")
        await response.write_eof()
    return response


def event(delta: JSON, finish: str | None = None) -> bytes:
    """Returns one event of a model's stream."""
    head = {"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    chunk = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def calls(tool: str, arguments: JSON | str) -> ModelAnswer:
    """Returns the answer that calls a tool; `arguments` may be a string that is no JSON."""

    async def answer(request: web.Request, body: JSON) -> web.StreamResponse:
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": given}}
        return await streamed(request, body, [{"tool_calls": [call]}], "tool_calls")

    return answer


class World:
    """One bot in `folder`, the platforms that it serves, and what it did to each input."""

    def __init__(
        self, folder: Path, near: telegram.Control, far: discord.Control, model: Model, model_url: str
    ) -> None:
        self.folder = folder
        self.telegram = near
        self.discord = far
        self.model = model
        self.web: dict[str, WebAnswer] = {}
        self.has_web = False
        #: The statuses of the answers to the attacker of the input that is tried.
        self.statuses: list[int] = []
        self.notes: list[str] = []
        #: Figures that an input takes itself, instead of the watcher's.
        self.own_figures: dict[str, float] = {}
        self.process: Process | None = None
        self.port = _free_port()
        self._model_url = model_url
        self._running = AsyncExitStack()
        self._watcher: Process | None = None
        self._printed = 0
        self._people = iter(ATTACKERS)
        self._pings = 0

    # The bot ----------------------------------------------------------------------------------------------------

    async def make(self) -> None:
        """Makes the files as `remora init` does, and adds what an operator adds."""
        await self.remora("init", str(self.folder), "--model", "scripted", "--base-url", self._model_url, "--yes")
        people = json.dumps([ADMIN, *OTHERS, *ATTACKERS])
        far = json.dumps([FAR + one for one in (ADMIN, *OTHERS, *ATTACKERS)])
        with (self.folder / "config.yaml").open("a", encoding="utf-8") as file:
            file.write(
                f"http: {{port: {self.port}}}\nweb: {{enabled: true}}\napi: {{enabled: true}}\nchannels:\n  telegram:\n"
                f"    - {{token: '{self.telegram.token}', base_url: '{self.telegram.url}', allow: {people}, "
                f"admins: [{ADMIN}]}}\n"
                f"    - {{id: hooked, token: '{HOOK_TOKEN}', base_url: '{self.telegram.url}', allow: {people}, "
                f"webhook: {{url: 'https://bot.example.org', secret: '{HOOK_SECRET}'}}}}\n"
                f"  discord:\n    - {{token: '{self.discord.token}', base_url: '{self.discord.api_url}', allow: {far}}}\n"
            )
        command = json.dumps([sys.executable, str(Path(__file__).with_name("toolserver.py"))])
        with (self.folder / "agents" / "assistant.yaml").open("a", encoding="utf-8") as file:
            file.write(f"tools: [{', '.join(get_args(ToolName))}, fetch_url]\n")
            file.write(f"mcp: [{{name: hostile, command: {command}, tools: [give, patterned]}}]\n")

    async def start(self) -> None:
        """Starts the bot and waits until its health is good and somebody was answered. Raises `TimeoutError`."""
        self._running = AsyncExitStack()
        self.process = await self._running.enter_async_context(spawned(self.folder, may_stand=True))
        async with asyncio.timeout(90), httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while True:
                with suppress(httpx.HTTPError, ValueError):
                    page = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
                    if page["status"] == "green" and not any(one["words_only"] for one in page["stores"]):
                        break
                if self.process.returncode is not None:
                    raise TimeoutError(f"the bot has ended: {self.printed()[-600:]}")
                await asyncio.sleep(0.1)
        if await self.ping(seconds=60) is None:
            raise TimeoutError(f"the bot does not answer: {self.printed()[-600:]}")
        self._watcher = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.hostile.watch", str(self.port), stdin=PIPE, stdout=PIPE, cwd=ROOT
        )
        self.news()

    async def stop(self) -> None:
        """Ends the bot: in order if it still can, else by force."""
        if self._watcher is not None and self._watcher.returncode is None:
            self._watcher.kill()
            await self._watcher.wait()
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(6):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        await self._running.aclose()

    async def restart(self) -> str:
        """Starts the bot anew, without its data if it does not come up with them. Returns what was wrong, or ""."""
        await self.stop()
        try:
            await self.start()
        except TimeoutError as error:
            await self.stop()
            shutil.rmtree(self.folder / "data")
            await self.start()
            return str(error)
        return ""

    def printed(self) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / "printed").read_text("utf-8", "replace")
        return ""

    def news(self) -> str:
        """Returns what the bot has logged since the last call."""
        printed = self.printed()
        news, self._printed = printed[self._printed :], len(printed)
        return news

    async def watch(self) -> None:
        """Begins to measure."""
        assert self._watcher is not None
        assert self._watcher.stdin is not None
        assert self.process is not None
        self._watcher.stdin.write(f"begin {self.process.pid}\n".encode())
        await self._watcher.stdin.drain()

    async def measured(self) -> dict[str, float]:
        """Ends measuring and returns the figures (`watch.py`), after the question that is on its way."""
        assert self._watcher is not None
        assert self._watcher.stdin is not None
        assert self._watcher.stdout is not None
        self._watcher.stdin.write(b"end\n")
        await self._watcher.stdin.drain()
        figures: dict[str, float] = json.loads(await self._watcher.stdout.readline())
        return figures

    async def remora(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *arguments), env=environment(self.folder), cwd=self.folder,
            stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"remora {arguments[0]}: {err.decode()}")
        return out.decode()

    # People -----------------------------------------------------------------------------------------------------

    async def ping(self, *, seconds: float = PATIENCE) -> float | None:
        """Asks as a person who does nothing wrong; returns the seconds until the answer, None if none came."""
        self._pings += 1
        person, began = OTHERS[self._pings % len(OTHERS)], time.monotonic()
        await self.telegram.say(f"ping-{self._pings}", user=person)
        try:
            await self.telegram.wait(chat=person, text=f"pong-{self._pings}", timeout=seconds)
        except TimeoutError:
            return None
        return time.monotonic() - began

    def person(self) -> int:
        """Returns an attacker whom nobody knows yet."""
        return next(self._people)

    async def say(self, *texts: str, user: int | None = None, **more: Any) -> int:
        """Says something on Telegram and waits for an answer. Returns who said it."""
        user = user or self.person()
        for text in texts:
            await self.telegram.say(text, user=user, **more)
        await self.answered(user)
        return user

    async def answered(self, user: int, count: int = 1) -> None:
        """Waits until the bot has said something to a person."""
        with suppress(TimeoutError):
            await self.telegram.wait(chat=user, bot_messages=count, timeout=PATIENCE)
            return
        self.notes.append("the attacker got no answer")

    async def asks_model(self, answer: ModelAnswer, **more: Any) -> int:
        """Has somebody on Telegram ask a question that the model answers so."""
        marker = f"case-{secrets.token_hex(4)}"
        self.model.answers[marker] = answer
        return await self.say(f"{marker}: what do you say?", **more)

    async def key(self) -> str:
        """Returns a new person's key for programs."""
        user = await self.say("/keys make chat,read,write laptop")
        found = re.search(r"\brk_\S+", "\n".join(await self.telegram.texts(user)))
        if found is None:
            raise RuntimeError("no key was made")
        return found[0]

    @asynccontextmanager
    async def client(self, key: str = "") -> AsyncIterator[httpx.AsyncClient]:
        """A client of the port, whose statuses are noted."""

        async def note(response: httpx.Response) -> None:
            self.statuses.append(response.status_code)

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=PATIENCE, headers=headers,
            event_hooks={"response": [note]}, limits=httpx.Limits(max_connections=200),
        ) as client:  # fmt: skip
            yield client

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[Visitor]:
        """A new person's browser, signed in."""
        code = secrets.token_urlsafe(16)
        leave_code(self.folder / "data", code, f"visitor{self.person()}")
        async with self.client() as client:
            await client.post("/in", data={"code": code}, headers=OWN)
            visitor = Visitor(client)
            await visitor.enter()
            yield visitor

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A raw connection to the port."""
        return await asyncio.open_connection("127.0.0.1", self.port)


#: The header by which a browser says that a form is the page's own.
OWN: Final = {"Sec-Fetch-Site": "same-origin"}


@dataclass(slots=True)
class Visitor:
    """A browser that is signed in."""

    client: httpx.AsyncClient
    nonce: str = ""

    async def enter(self) -> None:
        page = (await self.client.get("/chat/main")).text
        found = re.search(r'name="nonce" value="([^"]+)"', page)
        if found is None:
            raise RuntimeError("nobody was signed in")
        self.nonce = found[1]

    async def post(self, path: str, *, files: Any = None, headers: Any = None, **form: str) -> httpx.Response:
        return await self.client.post(
            path, data={"nonce": self.nonce, **form}, files=files, headers={**OWN, **(headers or {})}
        )

    async def say(self, text: str, *, files: Any = None) -> httpx.Response:
        """Says something in the page's chat, and reads the page twice once there is an answer."""
        response = await self.post("/chat/main/say", files=files, text=text)
        for _ in range(2):
            await asyncio.sleep(1.5)
            await self.client.get("/chat/main")
        return response


# Servers on this machine ----------------------------------------------------------------------------------------


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """A bot that is attacked, started, with everything around it."""
    async with AsyncExitStack() as stack:
        near = await stack.enter_async_context(telegram.running("--token", HOOK_TOKEN, token=TELEGRAM_TOKEN))
        far = await stack.enter_async_context(discord.running())
        model = Model()
        model_url = await stack.enter_async_context(_listening(_routes(model), "127.0.0.1", 0))
        made = World(folder, near, far, model, f"{model_url}/v1")
        with suppress(OSError):
            await stack.enter_async_context(_listening(_pages(made), PUBLIC, 80))
            made.has_web = True
        await made.make()
        stack.push_async_callback(made.stop)
        await made.start()
        yield made


def _routes(model: Model) -> web.Application:
    application = web.Application(client_max_size=100_000_000)
    application.router.add_post("/v1/chat/completions", model.complete)
    return application


def _pages(made: World) -> web.Application:
    async def page(request: web.Request) -> web.StreamResponse:
        answer = made.web.get(request.path)
        return web.Response(status=404) if answer is None else await answer(request)

    application = web.Application()
    application.router.add_get("/{path:.*}", page)
    return application


@asynccontextmanager
async def _listening(application: web.Application, host: str, port: int) -> AsyncIterator[str]:
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def load() -> float:
    """Returns the machine's load of the last minute."""
    return os.getloadavg()[0]
