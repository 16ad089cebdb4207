"""The HTTP side: routes, when a request takes effect, and what breaks on the way.

Invariants: a request is entered in its bot's ledger before anything else and closed after everything else; its effect
happens at most once and, when it is late, only while its client is there; a client that goes away cancels nothing that
has begun.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from aiohttp import web

from tests.platforms import serving as shared
from tests.platforms.breaking import Timing, break_off, exchange, gone, hang_up
from tests.platforms.chat import Chat
from tests.platforms.faults import Faults
from tests.platforms.ledger import Entry, Ledger
from tests.platforms.telegram import control, methods, wire
from tests.platforms.telegram.client import TOKEN, Control
from tests.platforms.telegram.faults import Fault
from tests.platforms.telegram.limits import SHOWING, Flood
from tests.platforms.telegram.updates import JSON, Refused
from tests.platforms.telegram.webhook import Deliveries
from tests.platforms.telegram.world import World

_BIGGEST_BODY = 60 * 1024 * 1024


class Account:
    """One bot: its world, and what is known and decided of its requests."""

    def __init__(self, token: str, *, now: Callable[[], float], first_update: int) -> None:
        self.token = token
        self.world = World(token, now=now, first_update=first_update)
        self.pulse = self.world.pulse
        self.flood = Flood(now)
        self.ledger = Ledger(now, showing=SHOWING)
        self.faults = Faults(Fault, self.pulse)
        self.deliveries = Deliveries(self.world.queue, self.world.webhook, self.faults, self.ledger, self.pulse, now)
        self.revoked = False


class Platform:
    """All bots, the chat model, and the clock they share. The clock is the machine's, moved by `shift` seconds."""

    def __init__(self, tokens: Sequence[str], *, timing: Timing, model_ms: float) -> None:
        self.timing = timing
        self.chat = Chat(self, model_ms)
        self.shift = 0.0
        self.accounts = {token: self._account(token) for token in tokens}

    def now(self) -> float:
        return time.time() + self.shift

    def open(self, url: str) -> None:
        """Nothing here tells its own address."""

    async def reset(self, token: str) -> None:
        await self.accounts[token].deliveries.aclose()
        self.accounts[token] = self._account(token)

    async def aclose(self) -> None:
        for account in self.accounts.values():
            await account.deliveries.aclose()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=_BIGGEST_BODY)
        application.router.add_route("*", "/bot{token:[^/]+}/{method}", self._api)
        application.router.add_get("/file/bot{token:[^/]+}/{path:.+}", self._file)
        application.router.add_post("/control/{action}", self._control)
        self.chat.route(application.router)
        return application

    def _account(self, token: str) -> Account:
        return Account(token, now=self.now, first_update=self.timing.chance.randrange(10**8, 9 * 10**8))

    async def _api(self, request: web.Request) -> web.StreamResponse:
        token, named = request.match_info["token"], request.match_info["method"]
        account = self.accounts.get(token)
        if account is None or account.revoked:
            code, words = (401, "Unauthorized") if ":" in token else (404, "Not Found")
            return _envelope(Refused(code, words))
        known = wire.METHODS.get(named.lower())
        if known is None:
            return _envelope(Refused(404, "Not Found: method not found"))
        try:
            fields, files = await wire.read(request)
        except Refused as refused:
            return _envelope(refused)
        except ConnectionError:
            return web.Response()  # gone while it spoke: nothing came
        method, chat = known.__api_method__, _number(fields.get("chat_id"))
        text = str(fields.get("text") or fields.get("caption") or "")

        async def play() -> JSON:
            account.flood.admit(method, chat)
            called = wire.call(known, fields)
            if method == "getUpdates":
                return wire.answer(await self._updates(request, account, called))
            if method == "logOut":
                account.revoked = True
                return wire.answer(True)
            done = wire.answer(methods.play(account.world, called, files))
            if method == "setWebhook":
                account.deliveries.start()
            return done

        async def perform() -> web.Response:
            try:
                envelope, entry.status = await play(), 200
                entry.effect = True
            except Refused as refused:
                envelope, entry.status = wire.refusal(refused), refused.code
            entry.description = str(envelope.get("description", ""))
            return web.json_response(envelope, status=entry.status)

        entry = account.ledger.opened(method, chat, text)
        entry.files = [(name, len(data)) for name, data in files.values()]
        fault = account.faults.due(method, chat, text)
        late = method == "getUpdates" or (fault is None and self.timing.late(method))
        strike = partial(self.strike, request, account, entry)
        try:
            return await exchange(request, entry, fault, perform, strike, latency=self.timing.latency, late=late)
        finally:
            account.ledger.closed(entry)
            account.pulse.beat()

    async def _updates(self, request: web.Request, account: Account, called: Any) -> list[JSON]:
        queue = account.world.queue
        if called.allowed_updates is not None:
            queue.allowed = tuple(called.allowed_updates)
        return await queue.poll(
            offset=called.offset,
            limit=100 if called.limit is None else called.limit,
            seconds=called.timeout or 0,
            gone=lambda: gone(request),
        )

    async def strike(
        self, request: web.Request, account: Account, entry: Entry, fault: Fault, _place: str = ""
    ) -> web.StreamResponse | None:
        """A fault happens; what is answered then, or None to go on."""
        entry.fault = fault.do
        match fault.do:
            case "flood":
                return _envelope(account.flood.stop(entry.chat, fault.retry_after), entry)
            case "refuse":
                return _envelope(Refused(fault.status, fault.description), entry)
            case _:
                return await break_off(
                    request,
                    fault,
                    account.faults,
                    begun='{"ok": true, "result": {"message_id": ',
                    broken='{"ok": tru',
                    killed=lambda pid: account.ledger.killed(pid, fault.at, entry),
                )

    async def _file(self, request: web.Request) -> web.StreamResponse:
        token, path = request.match_info["token"], request.match_info["path"]
        account = self.accounts.get(token)
        if account is None or account.revoked:
            return _envelope(Refused(401, "Unauthorized"))
        stored = next((one for one in account.world.files.values() if one.path == path), None)
        entry = account.ledger.opened("download", None, path)
        fault = account.faults.due("download", None, path)
        try:
            await asyncio.sleep(self.timing.latency)
            if fault is not None and fault.do not in ("cut", "drip"):
                broken = await self.strike(request, account, entry, fault)
                if broken is not None:
                    return broken
            if stored is None:
                return _envelope(Refused(404, "Not Found"), entry)
            entry.status, entry.effect = 200, True
            if fault is not None and fault.do in ("cut", "drip"):
                entry.fault = fault.do
                pieces = await _parts(request, stored.data, fault)
                entry.answered = fault.do == "drip" and not gone(request)
                return pieces
            entry.answered = True
            return web.Response(body=stored.data, content_type="application/octet-stream")
        finally:
            account.ledger.closed(entry)
            account.pulse.beat()

    async def _control(self, request: web.Request) -> web.Response:
        return await shared.told(request, self, control.act)


def listening(
    tokens: Sequence[str] = (TOKEN,), *, model_ms: float = 300, **terms: Any
) -> AbstractAsyncContextManager[str]:
    """The platform's address while the block runs; the other terms are those of a platform's timing."""
    return shared.listening(lambda timing: Platform(tokens, timing=timing, model_ms=model_ms), showing=SHOWING, **terms)


def serving(tokens: Sequence[str] = (TOKEN,), *, model_ms: float = 0) -> AbstractAsyncContextManager[Control]:
    """The platform in this process and event loop, for the time of the block; controlled as its first bot."""
    return shared.controlled(Control, listening(tokens, model_ms=model_ms), tokens[0])


def _envelope(refused: Refused, entry: Entry | None = None) -> web.Response:
    if entry is not None:
        entry.status, entry.description, entry.answered = refused.code, refused.description, True
    return web.json_response(wire.refusal(refused), status=refused.code)


def _number(chat: Any) -> int | None:
    return int(chat) if str(chat).lstrip("-").isdigit() else None


async def _parts(request: web.Request, data: bytes, fault: Fault) -> web.StreamResponse:
    """A file in ten pieces over `fault.seconds`, or half of it and the end."""
    response = web.StreamResponse(headers={"content-length": str(len(data))})
    try:
        await response.prepare(request)
        if fault.do == "cut":
            await response.write(data[: len(data) // 2])
            hang_up(request, reset=False)
            return response
        step = max(1, -(-len(data) // 10))
        for start in range(0, len(data), step):
            await asyncio.sleep(fault.seconds / 10)
            await response.write(data[start : start + step])
        await response.write_eof()
    except ConnectionError:
        pass  # it was given up
    return response
