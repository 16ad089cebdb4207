"""The HTTP side: routes, when a request takes effect, and what breaks on the way.

Invariants: a request is entered in its bot's ledger before anything else and closed after everything else; its effect
happens at most once and, when it is late, only while its client is there; a client that goes away cancels nothing that
has begun.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.platforms import serving as shared
from tests.platforms.breaking import Timing, break_off, exchange
from tests.platforms.discord import bodies, control, interactions, rest
from tests.platforms.discord.bodies import Call
from tests.platforms.discord.client import TOKEN, Control
from tests.platforms.discord.faults import Fault
from tests.platforms.discord.gateway import Bot, Gateway, Terms, listen
from tests.platforms.discord.limits import SHOWING, Limits, TooMany
from tests.platforms.discord.model import Refused
from tests.platforms.discord.world import World
from tests.platforms.faults import Faults
from tests.platforms.ledger import Entry, Ledger
from tests.platforms.pulse import Pulse

if TYPE_CHECKING:
    from tests.platforms.chat import Chat


API = "/api/v10"
_BIGGEST_BODY = 60 * 1024 * 1024


class Account:
    """One bot: its world, who listens to it, and what is known and decided of its requests."""

    def __init__(self, token: str, terms: Terms, *, now: Callable[[], float], base_url: str) -> None:
        self.token = token
        self.pulse = Pulse()
        self.gateway = Gateway(terms, now=now, pulse=self.pulse)
        self.world = World(token, now=now, base_url=base_url, pulse=self.pulse, tell=self.gateway.tell)
        self.limits = Limits(now)
        self.ledger = Ledger(now, showing=SHOWING)
        self.faults = Faults(Fault, self.pulse)
        self.revoked = False

    @property
    def bot(self) -> Bot:
        world = self.world
        return Bot(gateway=self.gateway, content=world.reads_messages, ready=world.ready_wire, guilds=world.guild_wires)


class Platform:
    """All bots, perhaps a chat model, and the clock they share. The clock is the machine's, moved by `shift` seconds."""

    def __init__(self, tokens: Sequence[str], *, timing: Timing, model_ms: float | None) -> None:
        self.timing = timing
        self._model_ms = model_ms
        self.chat: Chat | None = None
        self.shift = 0.0
        self.url = ""
        self.terms = Terms()
        self._tokens = tokens
        self.accounts: dict[str, Account] = {}

    def now(self) -> float:
        return time.time() + self.shift

    def open(self, url: str) -> None:
        """The address is known; bots come into being."""
        self.url = url
        for token in self._tokens:
            self.reset(token)

    def reset(self, token: str) -> None:
        """A bot as new; those who listen to the old one are sent away."""
        if token in self.accounts:
            self.accounts[token].gateway.drop(resumable=False, code=None)
        self.accounts[token] = Account(token, self.terms, now=self.now, base_url=self.url)

    async def aclose(self) -> None:
        for account in self.accounts.values():
            account.gateway.drop(resumable=False, code=None)

    def application(self) -> web.Application:
        application = web.Application(client_max_size=_BIGGEST_BODY)
        router = application.router
        for verb, path, name, play in (*rest.ROUTES, *interactions.ROUTES):
            router.add_route(verb, API + path, self._route(name, play))
        router.add_get(f"{API}/gateway/bot", self._route("gateway", self._gateway_bot))
        router.add_get(f"{API}/gateway", self._gateway)
        router.add_get("/gateway", self._listen)
        router.add_get("/gateway/", self._listen)
        router.add_get("/attachments/{channel_id}/{file_id}/{name}", self._download)
        router.add_post("/control/{action}", self._control)
        if self._model_ms is not None:
            # The module that this comes from takes seconds to load.
            from tests.platforms.chat import Chat

            self.chat = Chat(self, self._model_ms)
            self.chat.route(router)
        router.add_route("*", API + "/{rest:.*}", self._unknown)
        return application

    def _route(self, name: str, play: Callable[[Call], rest.Answer]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            account = self._account(request)
            if account is None or account.revoked:
                return _told(401, {"message": "401: Unauthorized", "code": 0})
            try:
                body, files = await bodies.read(request)
            except Refused as refused:
                return _told(refused.status, refused.wire())
            except ConnectionError:
                return web.Response()  # gone while it spoke: nothing came
            call = Call(
                world=account.world,
                method=name,
                path=dict(request.match_info),
                query=dict(request.query),
                body={"list": body} if isinstance(body, list) else body,
                files=files,
            )
            entry = account.ledger.opened(name, _channel(account, call), _text(call))
            entry.files = [(file_name, len(data)) for file_name, data, _ in files]
            fault = account.faults.due(name, entry.chat, entry.text)
            late = fault is None and self.timing.late(name)

            async def perform() -> web.Response:
                return self._perform(account, entry, call, play)

            strike = partial(self.strike, request, account, entry, place=_place(call))
            try:
                return await exchange(request, entry, fault, perform, strike, latency=self.timing.latency, late=late)
            finally:
                account.ledger.closed(entry)
                account.pulse.beat()

        return handle

    def _perform(self, account: Account, entry: Entry, call: Call, play: Callable[[Call], rest.Answer]) -> web.Response:
        place, headers = _place(call), dict[str, str]()
        try:
            account.limits.admit(entry.method, place)
            entry.status, body = play(call)
            entry.effect = True
        except TooMany as refused:
            entry.status, body, headers = 429, refused.wire(), refused.headers()
        except Refused as refused:
            entry.status, body = refused.status, refused.wire()
        if entry.status >= 400:
            entry.code, entry.description = body.get("code", 0), body["message"]
        return _told(entry.status, body, {**headers, **account.limits.headers(entry.method, place)})

    async def strike(
        self, request: web.Request, account: Account, entry: Entry, fault: Fault, place: str
    ) -> web.StreamResponse | None:
        """Lets a fault happen; returns what is answered then, or None to go on."""
        entry.fault = fault.do
        match fault.do:
            case "flood":
                refused = account.limits.stop(entry.method, place, fault.retry_after, everywhere=fault.everywhere)
                _close(entry, refused)
                return _told(429, refused.wire(), refused.headers())
            case "refuse":
                no = Refused(fault.status, fault.code, fault.description)
                _close(entry, no)
                return _told(no.status, no.wire())
            case _:
                return await break_off(
                    request,
                    fault,
                    account.faults,
                    begun='{"id": "1234567890", "content": ',
                    broken='{"id": "12',
                    killed=lambda pid: account.ledger.killed(pid, fault.at, entry),
                )

    def _account(self, request: web.Request) -> Account | None:
        """Returns the account of a request: by its token, or by that of an interaction, which needs no other."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind == "Bot":
            return self.accounts.get(token)
        path = request.match_info
        for account in self.accounts.values():
            if path.get("application_id") == str(account.world.me.id) and "token" in path:
                return account
            if path.get("interaction_id", "").isdigit() and int(path["interaction_id"]) in account.world.interactions:
                return account
        return next(iter(self.accounts.values())) if "token" in path else None

    def _gateway_bot(self, call: Call) -> rest.Answer:
        account = next(one for one in self.accounts.values() if one.world is call.world)
        left = {"total": 1_000, "remaining": 1_000 - account.gateway.identifies, "reset_after": 86_400_000}
        return 200, {"url": self.gateway_url, "shards": 1, "session_start_limit": {**left, "max_concurrency": 1}}

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http", "ws", 1) + "/gateway"

    async def _gateway(self, _request: web.Request) -> web.Response:
        return _told(200, {"url": self.gateway_url})

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        def bot(token: str) -> Bot | None:
            account = self.accounts.get(token)
            return None if account is None or account.revoked else account.bot

        return await listen(request, self.terms, bot)

    async def _unknown(self, request: web.Request) -> web.Response:
        return _told(501, {"message": f"this Discord does not play {request.method} {request.path}", "code": 0})

    async def _download(self, request: web.Request) -> web.StreamResponse:
        number = request.match_info["file_id"]
        for account in self.accounts.values():
            file = account.world.files.get(int(number)) if number.isdigit() else None
            if file is None:
                continue
            entry = account.ledger.opened("download", int(request.match_info["channel_id"]), file.name)
            try:
                fault = account.faults.due("download", entry.chat, file.name)
                if fault is not None:
                    broken = await self.strike(request, account, entry, fault, number)
                    if broken is not None:
                        return broken
                expires = int(request.query.get("ex", "0"), 16)
                if expires < self.now():
                    return web.Response(status=404, text="This content is no longer available.")
                return web.Response(body=file.data, content_type=file.media_type or "application/octet-stream")
            finally:
                account.ledger.closed(entry)
                account.pulse.beat()
        return web.Response(status=404, text="This content is no longer available.")

    async def _control(self, request: web.Request) -> web.Response:
        return await shared.told(request, self, control.act)


def listening(
    tokens: Sequence[str] = (TOKEN,), *, model_ms: float | None = None, **terms: Any
) -> AbstractAsyncContextManager[str]:
    """The platform's address while the block runs; the other terms are those of a platform's timing."""
    return shared.listening(lambda timing: Platform(tokens, timing=timing, model_ms=model_ms), showing=SHOWING, **terms)


def serving(tokens: Sequence[str] = (TOKEN,), *, model_ms: float | None = None) -> AbstractAsyncContextManager[Control]:
    """The platform in this process and event loop, for the time of the block; controlled as its first bot."""
    return shared.controlled(Control, listening(tokens, model_ms=model_ms), tokens[0])


def _told(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    """An answer of the API. discord.py reads JSON only under exactly this content type."""
    if body is None:
        return web.Response(status=status, headers=headers)
    told = json.dumps(body, ensure_ascii=False).encode()
    return web.Response(status=status, body=told, headers={**(headers or {}), "content-type": "application/json"})


def _close(entry: Entry, refused: Refused) -> None:
    entry.status, entry.code, entry.description, entry.answered = refused.status, refused.code, refused.message, True


def _channel(account: Account, call: Call) -> int | None:
    """The channel that a request is about, by its path or by its interaction."""
    if call.path.get("channel_id", "").isdigit():
        return int(call.path["channel_id"])
    if "token" not in call.path:
        return None
    asked = account.world.tokens.get(call.path["token"])
    return None if asked is None else asked.channel


def _text(call: Call) -> str:
    """The words of a request, for those who look for it."""
    within = call.body.get("data") if call.method == "callback" else call.body
    return str((within or {}).get("content") or "")


def _place(call: Call) -> str:
    """The part of a path that has a bucket of its own."""
    names = ("channel_id", "guild_id", "token")
    return next((call.path[name] for name in names if name in call.path), "")
