"""The servers on loopback, and the scripted model behind them: each step of a script answers one accepted request.

Invariants: a request that breaks a rule of its vendor is refused and moves nothing. The word that makes an answer right
is said only when the results of all calls stand behind the person's words in the request.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from aiohttp import web

from bench.vendors import wire
from bench.vendors.rules import Rule, Seat, is_own, size_of, text_of
from bench.vendors.table import VENDORS, Vendor
from bench.vendors.wire import JSON, Call, Refusal, Reply

#: The key that servers take.
KEY: Final = "sk-right-0123456789"
#: What a result of each tool has to hold; a case plants the word for the search.
RESULTS: Final = {"now": r"20\d\d", "search_memory": "{planted}", "memory_stats": r"\d"}
NOTHING: Final[JSON] = {"facts": [], "styles": [], "event": None, "entities": []}
#: Seconds between the pieces of a stream that is broken off, so that each arrives by itself.
_PAUSE: Final = 0.02

_SYLLABLES: Final = ("ban", "del", "fro", "gim", "lor", "mav", "nip", "ros", "tul", "vex", "wim", "zan")

Step: TypeAlias = "Callable[[Scene], Awaitable[web.StreamResponse]]"
#: Changes the events of a stream; the connection is cut behind them if the last one is None.
Spoil: TypeAlias = Callable[[list[bytes]], "Sequence[bytes | None]"]


def word() -> str:
    """Returns a word that nobody knows, and that no filter takes for a password."""
    return "".join(secrets.choice(_SYLLABLES) for _ in range(5)).capitalize()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What somebody says, what the model does, and what counts as right.

    `want` is `answer` (the word arrives), `told` (a failure is told) or `either`. `cause` has to stand in the log if no
    answer came, `logs` in the log of the whole case; `has` has to stand in what the person reads, `lacks` must not. At
    most `most` requests may reach the servers, the second `waits` seconds after the first. Before it the vendor that it
    `chooses` is put first, and before that `restart` starts the bot anew. Where there are two vendors, it is answered
    `by` one of them. `/memory` has to list what it `learns` some time after, and `/usage` its tokens with `usage`.
    """

    say: str = "Please look up what time it is"
    steps: tuple[Step, ...]
    want: Literal["answer", "told", "either"] = "answer"
    cause: str = ""
    logs: str = ""
    has: str = ""
    lacks: str = ""
    most: int = 8
    rules: tuple[Rule, ...] = ()
    chooses: str = ""
    restart: bool = False
    picture: bool = False
    usage: bool = False
    by: str = ""
    learns: str = ""
    waits: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A person and an agent of their own. `options` are laid over what `remora init` wrote for the model.

    `rules` hold for every request, those that nobody waits for too; `instead` are another model's for its vendor's.
    """

    kind: str
    name: str
    vendors: tuple[str, ...]
    turns: tuple[Turn, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    right_key: bool = True
    rules: tuple[Rule, ...] = ()
    instead: tuple[Rule, ...] = ()


@dataclass(slots=True)
class Run:
    """A case while it is played, at all of its servers.

    `text` is what the person has read last, and `why` what was wrong with it, "" if all was right.
    """

    case: Case
    agent: str
    seats: dict[str, Seat]
    urls: dict[str, str] = field(default_factory=dict)
    turn: Turn | None = None
    step: int = 0
    mark: str = ""
    secret: str = ""
    muse: str = ""
    planted: str = field(default_factory=word)
    awaiting: list[tuple[str, str]] = field(default_factory=list)
    requests: list[JSON] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: int = 0
    written: int = 0
    came: list[float] = field(default_factory=list)
    by: str = ""
    text: str = ""
    why: str = ""
    seconds: float = 0.0

    def model(self, vendor: str) -> str:
        """Returns a model's name at its vendor.

        Beside another one it is this case's own: what the bot has against a model of that name must not touch others.
        """
        name = str(self.case.options.get("model", VENDORS[vendor].model))
        return f"{name}-{self.agent[1:4]}" if len(self.seats) > 1 else name

    def begin(self, turn: Turn, number: int) -> None:
        self.turn, self.step, self.awaiting = turn, 0, []
        self.requests, self.refusals, self.notes, self.came = [], [], [], []
        self.read = self.written = 0
        self.mark, self.secret = f"[{self.agent} {number}]", word()
        self.muse = word()


@dataclass(slots=True)
class Scene:
    """A request that broke no rule."""

    run: Run
    seat: Seat
    request: web.Request
    body: JSON

    @property
    def vendor(self) -> Vendor:
        return self.seat.vendor

    def reply(self, text: str = "", *names: str, arguments: Any = None, thinks: bool = True, **more: Any) -> Reply:
        """Returns what the model says, with calls of these tools."""
        # Anthropic's newest models think by themselves, the others when they are told to.
        told = (self.body.get("thinking") or {}).get("type") in {"enabled", "adaptive"} or bool(self.run.case.instead)
        thinking = thinks and (self.vendor.form == "openai" or told)
        written = {"search_memory": '{"query": "' + self.run.planted[:4] + ' bicycle called"}'}
        calls = tuple(
            Call(self.vendor.shape.new_id(name), name, arguments if arguments is not None else written.get(name, "{}"))
            for name in names
        )
        given: JSON = {
            "text": text, "calls": calls, "finish": "tool_calls" if calls else "stop",
            "thought": f"I have {self.run.muse} in mind and wait." if thinking else "",
            "proof": secrets.token_urlsafe(24) if self.vendor.proves and thinking else "",
            "read": size_of(self.body), "cached": size_of(self.body) // 3, "written": 5 + len(text) // 4,
        }  # fmt: skip
        reply = Reply(**{**given, **more})
        self.seat.issued |= {call.id: reply for call in calls}
        return reply

    def missing(self) -> list[str]:
        """Returns the calls whose results stand nowhere behind the person's words."""
        messages = self.body["messages"]
        own = [at for at, each in enumerate(messages) if is_own(each) and self.run.mark in text_of(each["content"])]
        behind = messages[max(own, default=-1) + 1 :]
        texts = [text_of(each.get("content")) for each in behind if each["role"] != "assistant"]
        return [name for name, wanted in self.run.awaiting if not any(re.search(wanted, text) for text in texts)]

    async def send(self, reply: Reply, *, whole: bool = False, spoil: Spoil | None = None) -> web.StreamResponse:
        self.run.read, self.run.written = self.run.read + reply.read, self.run.written + reply.written
        claude = self.vendor.form == "anthropic"
        if whole or not self.body.get("stream"):
            return web.json_response(
                wire.message(reply, self.body) if claude else wire.whole(self.vendor.shape, reply, self.body)
            )
        events = wire.message_events(reply, self.body) if claude else wire.events(self.vendor.shape, reply, self.body)
        return await self.stream(spoil(events) if spoil else events)

    async def stream(self, events: Sequence[bytes | None]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        with suppress(ConnectionError):
            await response.prepare(self.request)
            for part in events:
                if part is not None:
                    await response.write(part)
                if None in events:
                    await asyncio.sleep(_PAUSE)
                if part is None:
                    if self.request.transport is not None:
                        self.request.transport.abort()
                    return response
            await response.write_eof()
        return response


def asks(*names: str, whole: bool = False, spoil: Spoil | None = None, text: str = "", **more: Any) -> Step:
    """The model calls tools; without any in the request it says that it can't."""

    async def step(scene: Scene) -> web.StreamResponse:
        if not scene.body.get("tools"):
            scene.run.notes.append("the request had no tools")
            return await scene.send(scene.reply("I can't look that up."))
        reply = scene.reply(text, *names, **more)
        scene.run.awaiting += [(name, RESULTS[name].format(planted=scene.run.planted)) for name in names]
        return await scene.send(reply, whole=whole, spoil=spoil)

    return step


def says(
    text: str = "The answer is {secret}, from the naïve café 你好.", *, whole: bool = False, spoil: Spoil | None = None,
    **more: Any,
) -> Step:  # fmt: skip
    """The model answers, once the results of its calls are back."""

    async def step(scene: Scene) -> web.StreamResponse:
        if missing := scene.missing():
            scene.run.notes.append(f"no result of {', '.join(missing)} came back")
            return await scene.send(scene.reply("I have no result."))
        scene.run.by = scene.vendor.name
        return await scene.send(scene.reply(text.format(secret=scene.run.secret), **more), whole=whole, spoil=spoil)

    return step


def refuses(name: str) -> Step:
    """The server refuses once, in the vendor's words."""

    async def step(scene: Scene) -> web.StreamResponse:
        return refused(scene, scene.vendor.fault(name))

    return step


def fails(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Step:
    """The server refuses once with this body: JSON, or text as a proxy writes it."""

    async def step(scene: Scene) -> web.StreamResponse:
        if isinstance(body, str):
            return web.Response(status=status, text=body, content_type="text/html", headers=headers)
        return refused(scene, Refusal(status, body, headers or {}))

    return step


async def tries(scene: Scene) -> web.StreamResponse:
    """The model of `remora init`: it calls the first tool that it is offered, and greets."""
    tools = scene.body.get("tools") or ()
    if tools and not any(each["role"] == "tool" or "tool_result" in str(each) for each in scene.body["messages"]):
        return await scene.send(scene.reply("", str(tools[0].get("name") or tools[0]["function"]["name"])))
    return await scene.send(scene.reply("Hello, here I am."))


def refused(scene: Scene, refusal: Refusal) -> web.Response:
    scene.run.refusals.append(json.dumps(refusal.body, ensure_ascii=False)[:300])
    return web.json_response(refusal.body, status=refusal.status, headers=refusal.headers)


def is_background(run: Run, body: JSON) -> bool:
    """Returns whether nobody waits for this request: a reading for memories, a summary."""
    if run.case.kind == "remora init":
        return False
    if run.turn is None:
        return True
    head = [text_of(body.get("system")), *(text_of(one.get("content")) for one in body["messages"][:2])]
    return not any(f"You are {run.agent}" in text for text in head)


async def complete(request: web.Request, vendor: Vendor, runs: Mapping[str, Run]) -> web.StreamResponse:
    """Answers a request: refuses it as the vendor would, or plays the next step."""
    run = runs.get(request.match_info["agent"])
    if run is None or vendor.name not in run.seats:
        return web.json_response({"error": {"message": "no such path"}}, status=404)
    try:
        body, seat = json.loads(await request.read()), run.seats[vendor.name]
    except ConnectionError:
        return web.Response()  # the bot was ended meanwhile
    scene, turn, behind = Scene(run, seat, request, body), run.turn, is_background(run, body)
    shown = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if not behind:
        run.requests.append(body)
        run.came.append(time.monotonic())
    if vendor.key and shown != KEY:
        return refused(scene, vendor.fault("key"))
    if body.get("model") != run.model(vendor.name):
        return refused(scene, vendor.fault("model", model=body.get("model")))
    held = (*(run.case.instead or vendor.rules), *run.case.rules, *(turn.rules if turn and not behind else ()))
    if (refusal := next((refusal for rule in held for refusal in rule(body, seat)), None)) is not None:
        return refused(scene, refusal)
    if behind or turn is None:
        return await scene.send(scene.reply(json.dumps(extracted(body)), thinks=False))
    step = turn.steps[min(run.step, len(turn.steps) - 1)]
    run.step += 1
    return await step(scene)


def extracted(body: JSON) -> JSON:
    """Returns what the model learns of a conversation: what is said of a zither, which no pattern reads."""
    text = text_of(body["messages"][-1].get("content"))
    told = re.search(r'"n": ?(\d+)[^{}]*?(The zither in our attic[a-z ]+)', text)
    if told is None:
        return NOTHING
    fact = {"about": "self", "category": "artifact", "topic": "", "key": "zither", "value": told[2].lower(),
            "importance": 6, "confidence": 0.9, "messages": [int(told[1])], "replaces": None}  # fmt: skip
    return {**NOTHING, "facts": [fact]}


@asynccontextmanager
async def serving(runs: Mapping[str, Run]) -> AsyncIterator[Callable[[Run], Awaitable[None]]]:
    """Serves the vendors; yields what gives each of a case's servers an address of its own.

    So nothing that the bot learns about a server in one case, or has against it, touches another.
    """

    async def started(vendor: Vendor) -> web.AppRunner:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await complete(request, vendor, runs)

        application = web.Application(client_max_size=50_000_000)
        path = "messages" if vendor.form == "anthropic" else "chat/completions"
        application.router.add_post(f"/{{agent}}/v1/{path}", handler)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        return runner

    runners = {name: await started(vendor) for name, vendor in VENDORS.items()}

    async def listen(run: Run) -> None:
        for name in run.seats:
            await web.TCPSite(runners[name], "127.0.0.1", 0).start()
            run.urls[name] = f"http://127.0.0.1:{runners[name].addresses[-1][1]}/{run.agent}/v1"

    try:
        yield listen
    finally:
        await asyncio.gather(*(runner.cleanup() for runner in runners.values()))
