"""The chat model on a platform's server.

Invariants: it is asked and counted in one place, whichever bot it is for; faults on it are made on the first bot that has
one due.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.platforms import chat_model as model
from tests.platforms.breaking import gone
from tests.platforms.ledger import Entry


class Chat:
    """`open` is how many requests are being answered."""

    def __init__(self, platform: Any, ms: float) -> None:
        self.model = model.Model(ms)
        self.open = 0
        self._platform = platform

    def route(self, router: web.UrlDispatcher) -> None:
        router.add_post("/model/v1/chat/completions", self._complete)
        router.add_get("/model/v1/models", model.models)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
        except ConnectionError:
            return web.Response()  # gone while it spoke: nothing was asked
        method, text = "extract" if model.is_extraction(body) else "model", model.last_words(body)
        if method == "extract":
            self.model.extractions += 1
        else:
            self.model.asked[text] += 1
        account, fault = self._fault(method, text)
        entry = Entry(0, method, None, text, self._platform.now())
        self.open += 1
        try:
            # A model has no effect; before or after its thinking is all there is.
            for moment in ("before effect", "after effect"):
                if fault is not None and fault.at == moment:
                    broken: web.StreamResponse | None = await self._platform.strike(
                        request, account, entry, fault, "model"
                    )
                    if broken is not None:
                        return broken
                if moment == "before effect":
                    await asyncio.sleep(self.model.ms / 1000)
            response = await self.model.say(request, body)
            if method == "model" and not gone(request):
                self.model.answered[text] += 1
            if fault is not None and fault.at == "after answer":
                await self._platform.strike(request, account, entry, fault, "model")
            return response
        finally:
            self.open -= 1
            account.pulse.beat()

    def _fault(self, method: str, text: str) -> tuple[Any, Any]:
        accounts = list(self._platform.accounts.values())
        for account in accounts:
            fault = account.faults.due(method, None, text)
            if fault is not None:
                return account, fault
        return accounts[0], None
