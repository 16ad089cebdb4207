"""The doors on the HTTP server: they let requests in and pass them to the part that answers.

Invariants: the caller is known before anything is done. A request that a browser was made to send from another site is
refused, and so is one under a host name that is not ours. No cross-origin header is ever sent. A body is read up to its
limit, and a key has so many requests a minute and at the same time. A refusal has the shape that OpenAI's clients read.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from gateway.api import memories
from gateway.api.callers import ApiRefusal, Caller, Callers
from gateway.api.completions import Begun, Completions
from gateway.api.operations import Operations
from gateway.api.tools import PATH as TOOLS
from gateway.api.tools import ToolDoor
from gateway.api.wire import JSON, Answering, ApiAnswer, Asked, Form, asked, failed
from gateway.config.settings import ApiSettings, is_loopback
from gateway.pipeline.limits import Buckets
from memory.errors import StorageError

log = structlog.get_logger(__name__)

#: Seconds after which a silent stream says that it is still there.
_QUIET: Final = 10.0
#: Seconds for a request to memory.
_MEMORY_SECONDS: Final = 30.0
_NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """A request whose body was read. Names of headers are in lower case."""

    raw: web.BaseRequest
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> JSON:
        """Returns the body. Raises `ApiRefusal` unless it is a JSON object."""
        try:
            found = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ApiRefusal(400, "invalid_json", "The body must be a JSON object.")
        return found


class Doors:
    """All doors together: `takes` recognises their paths, `answer` answers."""

    def __init__(
        self,
        settings: ApiSettings,
        callers: Callers,
        completions: Completions,
        operations: Operations,
        tools: ToolDoor,
        *,
        monotonic: Callable[[], float],
        now: Callable[[], int],
        quiet: float = _QUIET,
    ) -> None:
        self._settings = settings
        self._callers = callers
        self._completions = completions
        self._operations = operations
        self._tools = tools
        self._now = now
        self._quiet = quiet
        self._rate = Buckets(
            per_minute=settings.requests_per_minute,
            burst=max(1, settings.requests_per_minute // 2),
            monotonic=monotonic,
        )
        self._open: Counter[str] = Counter()

    @property
    def body_bytes(self) -> int:
        return self._settings.body_bytes

    async def close(self) -> None:
        """Ends the server of tools behind the doors."""
        await self._tools.close()

    def takes(self, path: str) -> bool:
        """Returns whether a path is behind one of these doors."""
        return path.startswith("/v1/") or path == TOOLS

    def refused(self, request: web.BaseRequest) -> web.Response | None:
        """Returns the answer to a request that is refused before its body is read; None if it may go on."""
        try:
            self._check_origin(request)
        except ApiRefusal as exc:
            return _refusal(exc)
        return None

    async def answer(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        """Answers a request whose body was read."""
        knock = Knock(raw=request, headers={name.lower(): value for name, value in request.headers.items()}, body=body)
        try:
            return await self._answered(knock)
        except ApiRefusal as exc:
            return _refusal(exc)
        except TimeoutError:
            return _refusal(ApiRefusal(504, "timeout", "This took too long. Try again later."))
        except StorageError as exc:
            log.error("api.unsaved", path=request.path, error=str(exc))
            return _refusal(ApiRefusal(503, "storage", "Memory can't be reached at the moment. Try again later."))

    async def _answered(self, knock: Knock) -> web.StreamResponse:
        path, method = knock.raw.path, knock.raw.method
        routes: Mapping[tuple[str, str], Callable[[Knock], Awaitable[web.StreamResponse]]] = {
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): lambda knock: self._talked(knock, "chat"),
            ("POST", "/v1/responses"): lambda knock: self._talked(knock, "response"),
        }
        route = routes.get((method, path))
        if route is not None:
            return await route(knock)
        if path == TOOLS or memories.is_memory(path):
            return await self._remembered(knock)
        await self._callers.who(knock.headers)
        if method == "GET" and path.startswith("/v1/models/"):
            return await self._model(knock, path.removeprefix("/v1/models/"))
        allowed = [one for one, at in routes if at == path]
        if allowed:
            raise ApiRefusal(405, "method_not_allowed", f"{path} takes {', '.join(allowed)}.")
        raise ApiRefusal(404, "not_found", f"There is nothing at {path}.")

    # OpenAI's API -----------------------------------------------------------------------------------------------

    async def _models(self, knock: Knock) -> web.Response:
        caller = await self._callers.who(knock.headers)
        async with self._room(caller):
            return _json({"object": "list", "data": [_about(name) for name in self._completions.models(caller)]})

    async def _model(self, knock: Knock, name: str) -> web.Response:
        caller = await self._callers.who(knock.headers)
        if name not in self._completions.models(caller):
            raise ApiRefusal(404, "model_not_found", f"There is no model {name!r}.", param="model")
        return _json(_about(name))

    async def _talked(self, knock: Knock, form: Form) -> web.StreamResponse:
        body = knock.json()
        user = body.get("user")
        caller = await self._callers.who(knock.headers, user if isinstance(user, str) else "")
        request = asked(body, form)
        async with self._room(caller):
            begun = await self._completions.begin(request, caller, knock.headers)
            shape = Answering(request, begun.answer_id, self._now() // 1000)
            if request.stream:
                return await self._streamed(knock, request, begun, shape)
            said = await begun.finish()
            return await _sent(knock, _json(shape.whole(said), headers=_turn(begun)), begun)

    async def _streamed(self, knock: Knock, request: Asked, begun: Begun, shape: Answering) -> web.StreamResponse:
        """Streams an answer. A refusal before its first piece is sent as a response of its own."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **_NO_STORE})
        response.headers["X-Accel-Buffering"] = "no"
        response.force_close()
        streamed = False

        async def begin() -> None:
            if not response.prepared:
                response.headers.update(_turn(begun))
                await response.prepare(knock.raw)
                for event in shape.begin():
                    await response.write(event)

        try:
            async for piece in begun.reply.pieces(self._quiet):
                await begin()
                await response.write(shape.piece(piece))
                streamed = streamed or bool(piece)
            try:
                said = await begun.finish()
            except ApiRefusal as exc:
                if not response.prepared:
                    raise
                await response.write(shape.broken(exc))
                return response
            await begin()
            await self._ended(response, shape, said, streamed=streamed)
            begun.delivered()
        except ConnectionError:
            log.info("api.cut", path=knock.raw.path)  # the answer goes on, and waits for the request to be repeated
        return response

    async def _ended(self, response: web.StreamResponse, shape: Answering, said: ApiAnswer, *, streamed: bool) -> None:
        if said.text and not streamed:
            await response.write(shape.piece(said.text))
        for event in shape.end(said):
            await response.write(event)
        await response.write_eof()

    # Memory -----------------------------------------------------------------------------------------------------

    async def _remembered(self, knock: Knock) -> web.StreamResponse:
        request = knock.raw
        body = {} if request.method in ("GET", "DELETE") or request.path == TOOLS else knock.json()
        named = body.get("user_id") or request.query.get("user_id", "")
        caller = await self._callers.who(knock.headers, named if isinstance(named, str) else "")
        async with self._room(caller), asyncio.timeout(_MEMORY_SECONDS):
            if request.path == TOOLS:
                answer = await self._tools.answer(request, knock.body, caller)
                answer.force_close()
                return answer
            operation, given = memories.wanted(request.method, request.path, request.query, body)
            return _json(await self._operations.do(operation, caller, given))

    # Access -----------------------------------------------------------------------------------------------------

    def _check_origin(self, request: web.BaseRequest) -> None:
        """Refuses requests that a page of another site makes a browser send, and host names that are not ours."""
        name = (urlsplit(f"//{request.host}").hostname or "") if request.host else ""
        if not (is_loopback(name) or (name and name == self._settings.host())):
            raise ApiRefusal(421, "wrong_host", "Use localhost, or the address in api.url.")
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        if site not in (None, "same-origin", "none") or (
            origin is not None and urlsplit(origin).netloc != request.host
        ):
            raise ApiRefusal(403, "cross_site", "Pages of other sites may not ask here.")

    @asynccontextmanager
    async def _room(self, caller: Caller) -> AsyncIterator[None]:
        """Counts a request of this key while the block runs. Raises `ApiRefusal` if it has too many."""
        if self._rate.take((caller.key,)) != "ok":
            most = self._settings.requests_per_minute
            raise ApiRefusal(429, "rate_limit_exceeded", f"This key may make {most} requests a minute. Wait a little.")
        if self._open[caller.key] >= self._settings.concurrent:
            most = self._settings.concurrent
            raise ApiRefusal(429, "rate_limit_exceeded", f"This key may make {most} requests at the same time.")
        self._open[caller.key] += 1
        try:
            yield
        finally:
            self._open[caller.key] -= 1
            if not self._open[caller.key]:
                del self._open[caller.key]


async def _sent(knock: Knock, response: web.Response, begun: Begun) -> web.Response:
    """Sends the response itself, so that a lost connection is noticed."""
    response.force_close()
    try:
        await response.prepare(knock.raw)
        await response.write_eof()
        begun.delivered()
    except ConnectionError:
        log.info("api.cut", path=knock.raw.path)
    return response


def _turn(begun: Begun) -> dict[str, str]:
    """Returns the header that names an answer's turn, if the turn is known yet."""
    return {} if begun.reply.turn is None else {"X-Remora-Turn": str(begun.reply.turn)}


def _about(name: str) -> JSON:
    return {"id": name, "object": "model", "created": 0, "owned_by": "remora"}


def _json(fields: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    response = web.json_response(fields, status=status, headers={**_NO_STORE, **(headers or {})})
    response.force_close()
    return response


def _refusal(refusal: ApiRefusal) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    if refusal.status in (429, 503):
        headers["Retry-After"] = "5"
    return _json(failed(refusal), status=refusal.status, headers=headers)
