"""The doors on the HTTP server: they let requests in and pass them to the part that answers.

Invariants: the key is known before a body is read, and the caller before anything is done. A request that a browser was
made to send from another site is refused, and so is one under a host name that is not ours. No cross-origin header is
ever sent. A body is read up to the limit of its path, and a key has so many requests a minute and at the same time. A
refusal has the shape that OpenAI's clients read.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import structlog
from aiohttp import web

from gateway.api import operations
from gateway.api.callers import ApiRefusal, Caller, Callers, Key
from gateway.api.completions import Begun, Completions
from gateway.api.operations import Operations
from gateway.api.tools import PATH as TOOLS
from gateway.api.tools import ToolDoor
from gateway.api.wire import JSON, Answering, ApiAnswer, Asked, Form, asked, failed
from gateway.config.settings import ApiSettings
from gateway.ops.connections import ALWAYS
from gateway.ops.http import Admission, asks_us, comes_from, crashed, in_words
from gateway.pipeline.limits import Buckets
from gateway.wording.texts import Texts
from memory.errors import StorageError

log = structlog.get_logger(__name__)

#: Seconds after which a silent stream says that it is still there.
_QUIET: Final = 10.0
#: Seconds for a request to memory.
_MEMORY_SECONDS: Final = 30.0
#: The most bytes of a request to memory: its longest text has 2,000 characters, and mem0's clients send whole talks.
_MEMORY_BYTES: Final = 500_000
_TALK: Final[Mapping[str, Form]] = {"/v1/chat/completions": "chat", "/v1/responses": "response"}
#: The codes of the statuses of the server itself.
_FAILED: Final = {
    400: "invalid_request", 408: "timeout", 413: "too_large", 415: "unsupported", 429: "rate_limit_exceeded",
    500: "internal_error", 503: "unavailable",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """A request of a known key. Names of headers are in lower case; its body comes after the rest."""

    raw: web.BaseRequest
    headers: Mapping[str, str]
    key: Key
    body: bytes = b""


_Handler: TypeAlias = Callable[[Knock], Awaitable[web.StreamResponse]]


class Doors:
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

    async def close(self) -> None:
        await self._tools.close()

    def takes(self, path: str) -> bool:
        return path.startswith("/v1/") or path == TOOLS

    async def enter(self, request: web.BaseRequest) -> Admission | web.Response:
        """Implements `Door.enter`: the origin, the key and the route are checked before a body is read."""
        try:
            self._check_origin(request)
            headers = {name.lower(): value for name, value in request.headers.items()}
            knock = Knock(raw=request, headers=headers, key=await self._callers.key(headers))
            talks = request.path in _TALK
            handler = self._handler(request.method, request.path)
        except ApiRefusal as exc:
            return _refusal(exc)
        except StorageError as exc:
            return _unsaved(request, exc)
        return Admission(
            sender=knock.key.sender,
            body_bytes=self._settings.body_bytes if talks else min(_MEMORY_BYTES, self._settings.body_bytes),
            answer=lambda body: self._answer(handler, replace(knock, body=body)),
        )

    async def failed(self, request: web.BaseRequest, status: int, error_id: str) -> web.Response:
        """Implements `Door.failed`, in the shape of OpenAI's errors."""
        return _refusal(ApiRefusal(status, _FAILED[status], in_words(Texts("en"), status, error_id)))

    async def _answer(self, handler: _Handler, knock: Knock) -> web.StreamResponse:
        try:
            return await handler(knock)
        except ApiRefusal as exc:
            return _refusal(exc)
        except TimeoutError:
            return _refusal(ApiRefusal(504, "timeout", "This took too long. Try again later."))
        except StorageError as exc:
            return _unsaved(knock.raw, exc)

    def _handler(self, method: str, path: str) -> _Handler:
        """Returns what answers a route. Raises `ApiRefusal` if there is none."""
        if path == TOOLS:
            if method != "POST":
                raise ApiRefusal(405, "method_not_allowed", f"{TOOLS} takes POST: this server keeps no sessions.")
            return self._called
        if operations.is_memory(path):
            operations.check_route(method, path)
            return self._remembered
        routes: Mapping[tuple[str, str], _Handler] = {
            ("GET", "/v1/models"): self._models,
            **{("POST", talk): lambda knock: self._talked(knock, _TALK[path]) for talk in _TALK},
        }
        if (method, path) in routes:
            return routes[method, path]
        if method == "GET" and path.startswith("/v1/models/"):
            return self._model
        allowed = [one for one, at in routes if at == path]
        if allowed:
            raise ApiRefusal(405, "method_not_allowed", f"{path} takes {', '.join(allowed)}.")
        raise ApiRefusal(404, "not_found", f"There is nothing at {path[:200]}.")

    # OpenAI's API -----------------------------------------------------------------------------------------------

    async def _models(self, knock: Knock) -> web.Response:
        caller = await self._callers.who(knock.key)
        async with self._room(caller):
            return _json({"object": "list", "data": [_about(name) for name in self._completions.models(caller)]})

    async def _model(self, knock: Knock) -> web.Response:
        name = knock.raw.path.removeprefix("/v1/models/")
        if name not in self._completions.models(await self._callers.who(knock.key)):
            raise ApiRefusal(404, "model_not_found", f"There is no model {name[:80]!r}.", param="model")
        return _json(_about(name))

    async def _talked(self, knock: Knock, form: Form) -> web.StreamResponse:
        request = await read_body(knock.body, lambda body: asked(body, form))
        caller = await self._callers.who(knock.key, request.user)
        async with self._room(caller):
            begun = await self._completions.begin(request, caller, knock.headers)
            shape = Answering(request, begun.answer_id, self._now() // 1000)
            if request.stream:
                return await self._streamed(knock, request, begun, shape)
            said = await begun.finish()
            return await _sent(knock, _json(shape.whole(said), headers=_turn(begun)), begun)

    async def _streamed(self, knock: Knock, request: Asked, begun: Begun, shape: Answering) -> web.StreamResponse:
        """Streams an answer. A refusal before its first piece is sent as a response of its own."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **ALWAYS})
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
        # A boundary: a stream that has begun can only end with words of its own.
        except Exception as error:
            if not response.prepared:
                raise
            text = in_words(Texts("en"), 500, crashed(error, knock.raw))
            await response.write(shape.broken(ApiRefusal(500, _FAILED[500], text)))
        return response

    async def _ended(self, response: web.StreamResponse, shape: Answering, said: ApiAnswer, *, streamed: bool) -> None:
        if said.text and not streamed:
            await response.write(shape.piece(said.text))
        for event in shape.end(said):
            await response.write(event)
        await response.write_eof()

    # Memory -----------------------------------------------------------------------------------------------------

    async def _remembered(self, knock: Knock) -> web.Response:
        request = knock.raw
        reads = request.method in ("GET", "DELETE")
        body = {} if reads else await read_body(knock.body, lambda body: body)
        user = body.get("user_id") or request.query.get("user_id", "")
        caller = await self._callers.who(knock.key, user if isinstance(user, str) else "")
        async with self._room(caller), asyncio.timeout(_MEMORY_SECONDS):
            operation, given = operations.wanted(request.method, request.path, request.query, body)
            return _json(await self._operations.do(operation, caller, given))

    async def _called(self, knock: Knock) -> web.Response:
        """Hands a message of the Model Context Protocol to the server of tools, once it is known to be short."""
        await read_body(knock.body, lambda body: None)
        caller = await self._callers.who(knock.key, knock.raw.query.get("user_id", ""))
        async with self._room(caller), asyncio.timeout(_MEMORY_SECONDS):
            return await self._tools.answer(knock.raw, knock.body, caller)

    # Access -----------------------------------------------------------------------------------------------------

    def _check_origin(self, request: web.BaseRequest) -> None:
        """Refuses requests that a page of another site makes a browser send, and host names that are not ours."""
        if not asks_us(request, self._settings.host()):
            raise ApiRefusal(421, "wrong_host", "Use localhost, or the address in api.url.")
        if comes_from(request, "http", "https") is False:
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
    response.force_close()
    try:
        await response.prepare(knock.raw)
        await response.write_eof()
        begun.delivered()
    except ConnectionError:
        log.info("api.cut", path=knock.raw.path)
    return response


def _unsaved(request: web.BaseRequest, error: StorageError) -> web.Response:
    log.error("api.unsaved", path=request.path[:200], error=str(error))
    return _refusal(ApiRefusal(503, "storage", "Memory can't be reached at the moment. Try again later."))


def _turn(begun: Begun) -> dict[str, str]:
    return {} if begun.reply.turn is None else {"X-Remora-Turn": str(begun.reply.turn)}


def _about(name: str) -> JSON:
    return {"id": name, "object": "model", "created": 0, "owned_by": "remora"}


def _json(fields: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    response = web.json_response(fields, status=status, headers={**ALWAYS, **(headers or {})})
    response.force_close()
    return response


def _refusal(refusal: ApiRefusal) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    if refusal.status in (429, 503):
        headers["Retry-After"] = "5"
    return _json(failed(refusal), status=refusal.status, headers=headers)


#: Bytes of a body that are read at once, whatever it holds.
_SMALL: Final = 32_000
#: The most values and names in a body; this many take 20 to 50 ms, and a conversation of 2,000 messages has 10,000.
_MOST_VALUES: Final = 50_000
#: The most digits of a number.
_DIGITS: Final = 40
#: The escape of half a character, which no text can hold without the other half.
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
T = TypeVar("T")


async def read_body(body: bytes, made: Callable[[JSON], T]) -> T:
    """Returns what `made` makes of a body, which must be a JSON object; an empty one is {}. Raises `ApiRefusal`."""
    if len(body) <= _SMALL:
        return made(_object(body))
    return await asyncio.to_thread(lambda: made(_object(body)))


def _object(body: bytes) -> JSON:
    if len(body) > _SMALL and _values(body) > _MOST_VALUES:
        raise ApiRefusal(413, "too_many_values", f"A body may hold at most {_MOST_VALUES:,} values. Send less at once.")
    try:
        body_read = json.loads(
            body.decode("utf-8") or "{}", parse_int=_whole, parse_float=_number, parse_constant=_no_number
        )
        if _HALF.search(body):
            body_read = json.loads(json.dumps(body_read, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        body_read = None
    if not isinstance(body_read, dict):
        raise ApiRefusal(400, "invalid_json", "The body must be a JSON object.")
    return body_read


def _values(body: bytes) -> int:
    """Returns how many marks of structure stand outside the strings of a body, and how many strings there are."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = plain.count(b'"') // 2
    if strings > _MOST_VALUES:
        return strings
    outside = b"".join(plain.split(b'"')[::2])
    return sum(outside.count(mark) for mark in (b",", b":", b"[", b"{"))


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError
    return int(digits)


def _number(digits: str) -> float:
    if len(digits) > _DIGITS:
        raise ValueError
    return float(digits)


def _no_number(name: str) -> NoReturn:
    """Refuses NaN and Infinity, which are no JSON."""
    raise ValueError(name)
