"""The part that all adapters to model servers share: sending, reading a stream, learning quirks, translating errors.

Invariants: every failure is raised as a `ModelError` that names the host and the model, and never the key. A silence
longer than `timeout` ends a call; keepalives count as silence. The caller bounds the total time. The memory held for an
answer is bounded. An answer that broke off is an error and never passes for a complete one. A request's messages take
turns as `roles` says. Text that a person is shown went through `agents.output`.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence, Set
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, ClassVar, ParamSpec, TypeVar

import httpx
import structlog

from agents.budget import size
from agents.json_values import MOST_VALUES, values
from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    OnText,
    Request,
    Usage,
)
from agents.output import Output
from agents.output_marks import SPELLS_END
from agents.providers import opaque
from agents.providers import quirks as signs
from agents.providers.answer import Assembled, failure_in, part_in
from agents.providers.errors import MOST_ERROR_BYTES, MOST_READ, STATUSES, Refusal, Server, error_body, page
from agents.providers.quirks import Learned, Quirk
from agents.providers.roles import alternating, without_system, without_tools
from agents.spec import ModelSpec

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger(__name__)

#: The most bytes of an answer with its wrapping. A server that never stops sending must not fill the memory.
_MOST_BYTES = 64 * 1024 * 1024
#: The most bytes of one line of a stream, or of an answer that is not streamed. This is more than `_MOST_TEXT` takes
#: even with every letter escaped.
_MOST_LINE = 8 * 1024 * 1024
#: The most characters of text and tool arguments. The longest outputs on offer (128,000 tokens) take half of it.
_MOST_TEXT = 1_000_000
#: The most bytes of a piece of an answer that are read on the event loop. A thousand brackets take 15 ms.
_LONG_PIECE = 4_000
#: The most tool calls of one answer. OpenAI accepts at most 128 back.
_MOST_CALLS = 32
#: Seconds to wait for the end of the body after the end of the answer, so that the connection can be reused.
_DRAIN = 0.25
#: The text that replaces a picture for a model that is not shown it.
UNSEEN = "[A picture was sent here that this model cannot see.]"


class Adapter(ABC):
    """Implements `agents.llm.Provider` for one model of one server.

    `client` belongs to the caller and is not closed here. The `base_url` of `model` ends before the adapter's `path`.
    Its `timeout` is the longest silence in seconds: while connecting, before the answer and between its parts. The head
    of an answer that arrives byte by byte may take twice as long. `count_tokens` is used if a server does not report
    usage. `learned` is shared by all adapters, so that each quirk is learned once. Raises `ValueError` if the
    `base_url` is no http address or the key can't be sent.
    """

    #: The path below the base_url at which the server takes requests.
    path: ClassVar[str]
    #: True if parts of its requests are marked for a prompt cache.
    caches: ClassVar[bool] = False

    def __init__(
        self,
        client: httpx.AsyncClient,
        model: ModelSpec,
        *,
        count_tokens: Callable[[str], int],
        learned: Learned | None = None,
    ) -> None:
        key = None if model.key is None else model.key.get_secret_value()
        self._client = client
        self._server = Server.at(model.base_url, self.path, model=model.model, key=key)
        self._where = self._server.where
        self._model = model
        #: The model's name as a word of its own: a name like "m" stands in many words.
        self._named = re.compile(rf"(?<!\w){re.escape(model.model)}(?!\w)")
        self._count_tokens = count_tokens
        known: Learned = {} if learned is None else learned
        #: The server and the model, as what is learned of them and what goes back to them alone is kept.
        self._origin = f"{self._server.url} {model.model}"
        self._quirks = known.setdefault(self._origin, set())

    @property
    def name(self) -> str:
        return f"{self._model.provider}/{self._model.model}"

    @property
    def address(self) -> str:
        """The server's address, which models of one server share."""
        return f"{self._server.url.scheme}://{self._server.url.netloc.decode()}"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """Runs the request as a stream. Raises `ModelError`, and the exceptions of `on_text`."""
        answer = await self._asked(request, on_text)
        if not answer.begun and "stream" not in self._quirks:
            # llama-cpp-python ends a stream without a word if the request is too long; asked plainly, it says so.
            answer = await self._asked(request, on_text, {"stream"})
        try:
            return self._completion(request, answer)
        except BadCompletion:
            self._abort(request, answer.output.text, answer.usage)
            raise

    async def aclose(self) -> None:  # noqa: B027 - there is nothing to close
        """Does nothing: each call closes its response, and the client belongs to the caller."""

    def headers(self) -> dict[str, str]:
        return self._server.headers

    @abstractmethod
    def body(self, request: Request, messages: Sequence[ChatMessage], quirks: Set[Quirk]) -> dict[str, Any]:
        """Returns the request as the server wants it; `messages` stand in for the request's own."""

    @abstractmethod
    def add(self, answer: Assembled, chunk: dict[str, Any]) -> str:
        """Adds one JSON object of the body to the answer. Returns the text that can be shown now."""

    @abstractmethod
    def is_answer(self, whole: Mapping[str, Any]) -> bool:
        """Returns whether a body that is no stream is an answer or an error."""

    async def _asked(self, request: Request, on_text: OnText | None, besides: Set[Quirk] = frozenset()) -> Assembled:
        response = await self._open(request, besides)
        output = Output(
            offered=[tool.name for tool in request.tools],
            agent=request.agent,
            bare=request.json_mode,
            thinking="thinking" in self._quirks,
        )
        patience = asyncio.get_running_loop().time() + self._model.timeout
        answer = Assembled(output=output, patience=patience, asked=[message.content for message in request.messages])
        try:
            await self._read(response, answer, on_text)
        except BaseException as error:
            if not isinstance(error, ContextOverflow | ModelAuth | ModelRateLimited | ModelRefused):
                self._abort(request, answer.output.text, answer.usage)
            raise
        finally:
            await response.aclose()
        if output.began_inside and not await asyncio.to_thread(_may_repeat_end, request):
            self._quirks.add("thinking")
        return answer

    async def _open(self, request: Request, besides: Set[Quirk]) -> httpx.Response:
        """Returns the response to an accepted request, its body unread. Retries if a refusal reveals a quirk."""
        quirks = {*self._quirks, *besides} if self._model.sees else {*self._quirks, *besides, "pictures"}
        revealed: list[Quirk] = []
        while True:
            messages = _messages(request, self._origin, quirks)
            body = self.body(replace(request, tools=signs.offered(request.tools, quirks)), messages, quirks)
            try:
                response = await self._send(body)
            except asyncio.CancelledError:
                self._abort(request, "", None)  # the server may have read it all by now
                raise
            except ModelError:
                self._quirks.difference_update(revealed)  # nothing has shown that it helps
                raise
            if response.is_success:
                self._advise(revealed)
                return response
            try:
                quirk, lasts = await self._refused(response, request, messages, body, quirks)
            except ModelError:
                # It goes on refusing, so it meant something else.
                self._quirks.difference_update(revealed)
                raise
            # The loop ends: each quirk is learned from a part of the body and removes or changes that part.
            quirks.add(quirk)
            if lasts and quirk not in self._quirks:
                self._quirks.add(quirk)
                revealed.append(quirk)

    async def _refused(
        self,
        response: httpx.Response,
        request: Request,
        messages: Sequence[ChatMessage],
        body: Mapping[str, Any],
        quirks: Set[Quirk],
    ) -> tuple[Quirk, bool]:
        """Returns the quirk that a refusal reveals, and whether it lasts. Raises `ModelError` if there is none."""
        try:
            raw = await error_body(response, self._model.timeout)
        finally:
            await response.aclose()
        status, refusal = response.status_code, Refusal.parse(raw, self._server.key)
        said = self._said(refusal)
        told = refusal.apart_from([message.content for message in request.messages], model=self._model.model)
        shown = "pictures" not in quirks and any(one.pictures for one in messages)
        if shown and not refusal.overflow and signs.refuses_pictures(status, said):
            return "pictures", signs.is_blind(status, said) and not told.echoes
        if refusal.overflow and (quirk := signs.limit_from(said, body, quirks, self._model.extra_body)):
            return quirk, not told.echoes
        if not (refusal.overflow or refusal.is_unpaid(status)):
            asked = {**body, "system": any(one.role == "system" for one in messages), "cache_control": self.caches}
            quirk = signs.learned_from(status, said, asked, quirks, self._model.extra_body)
            quirk = quirk or opaque.refusal(status, said, messages, quirks)
            if quirk is not None:
                # Words of the request in it may have taught that, or a program's schema that no server would take.
                of_program = quirk == "json_schema" and request.strict is not None
                return quirk, not (opaque.is_stale(quirk, said) or told.echoes or of_program)
        blamed = signs.blamed(said, self._model.extra_body)
        raise self._server.refused(status, response.headers, told, blamed=blamed)

    def _said(self, refusal: Refusal) -> str:
        """Returns a refusal's words in lower case, with the name of the refused field before them.

        The model's name is cut out: a name that contains "vision" says nothing about the refusal.
        """
        code = "" if refusal.code.isdecimal() else refusal.code
        named = ": ".join(part for part in (refusal.param, f"{code} {refusal.text[:MOST_READ]}") if part)
        return self._named.sub("", named).lower()

    def _abort(self, request: Request, text: str, usage: Usage | None) -> None:
        """Reports the cost of a call that gives no answer: the tokens read, and the words that had come."""
        if request.on_aborted is None:
            return
        counted = Usage(input_tokens=self.read_tokens(request), output_tokens=self._count_tokens(text), estimated=True)
        request.on_aborted(
            Completion(
                text=text,
                model=self._model.model,
                provider=self._model.provider,
                usage=self.priced(usage if usage is not None and usage.output_tokens else counted),
                finish="aborted",
            )
        )

    def _advise(self, quirks: Sequence[Quirk]) -> None:
        for quirk in quirks:
            name, sign, value = quirk.partition("=")
            event, fix = signs.ADVICE.get(name + sign, ("", ""))
            if event:
                log.warning(event, model=self.name, **({name: value} if sign else {}), fix=fix)

    async def _send(self, body: dict[str, Any]) -> httpx.Response:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            **self.headers(),
            **self._model.headers,
        }
        # Chat platforms have sent lone surrogates. UTF-8 can't encode them, so they become question marks.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = self._client.build_request(
            "POST", self._server.url, content=content, headers=headers, timeout=httpx.Timeout(self._model.timeout)
        )
        # httpx bounds only the wait for each byte, so a head that arrives byte by byte could take forever.
        longest = 2 * self._model.timeout
        try:
            async with asyncio.timeout(longest):
                return await self._client.send(request, stream=True, follow_redirects=False)
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self._where} did not start to answer within {longest:g} s. The model may be loading or"
                " overloaded: try later, or raise its timeout."
            ) from error
        except (httpx.RequestError, ssl.SSLError) as error:
            raise self._server.unreachable(error, self._model.timeout) from error

    async def _read(self, response: httpx.Response, answer: Assembled, on_text: OnText | None) -> None:
        """Reads the whole answer, streamed or not: some servers answer a request for a stream with plain JSON."""
        plain = bytearray()
        events: Events | None = None
        begun = False
        async with aclosing(self._lines(response, answer)) as lines:
            async for line in lines:
                if not begun and (first := line.removeprefix(BOM).strip()):
                    begun, line = True, first  # noqa: PLW2901
                    events = Events(self._object) if is_stream(line) else None
                if events is None:
                    plain += line + b"\n"
                    came = bool(line.strip())
                else:
                    came = await self._take_line(answer, events, line, on_text)
                if answer.ended:
                    break
                if came:
                    answer.patience = asyncio.get_running_loop().time() + self._model.timeout
            if answer.ended:
                await _drained(lines)
        if events is not None and not answer.complete:
            size = events.held
            await self._take_all(answer, await _beside(size, events.finish), on_text, size=size)
        stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if stream and not begun:
            return  # a stream that holds nothing
        if events is None:
            await self._take_whole(answer, plain, on_text)
        if not answer.complete and (answer.begun or not stream):
            raise BadCompletion(
                f"The answer from {self._where} broke off before its end. If this repeats, check the"
                " server's log and any proxy in front of it."
            )
        rest = await _beside(answer.size, answer.end)
        if rest and on_text is not None:
            await on_text(rest)

    async def _lines(self, response: httpx.Response, answer: Assembled) -> AsyncGenerator[bytes, None]:
        r"""Yields the body's lines, some ending in \r. Only \n ends a line: Unicode's separators may be text."""
        pending: list[bytes] = []
        size = held = 0
        chunks = response.aiter_bytes()
        try:
            while True:
                # Bytes alone are no sign of life: a server that hangs keeps sending keepalives.
                async with asyncio.timeout_at(answer.patience):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                first, *rest = chunk.split(b"\n")
                pending.append(first)
                size, held = size + len(chunk), held + len(first)
                if size > _MOST_BYTES or held > _MOST_LINE:
                    raise self._too_long()
                for part in rest:
                    yield b"".join(pending)
                    pending, held = [part], len(part)
        except (httpx.RequestError, ssl.SSLError, TimeoutError) as error:
            # A finished answer is kept even if the usage or the end mark after it is lost.
            if not answer.complete:
                raise self._broken_off(error) from error
        yield b"".join(pending)

    async def _take_whole(self, answer: Assembled, body: bytearray, on_text: OnText | None) -> None:
        """Adds the body of a server that does not stream to the answer."""
        if len(body) > _MOST_LINE:
            raise self._too_long()
        whole = await _beside(len(body), self._object, body)
        if whole is None or not (self.is_answer(whole) or failure_in(whole)):
            raise self._no_answer(body)
        await self._take(answer, whole, on_text, size=len(body))
        answer.ended = True

    async def _take_line(self, answer: Assembled, events: Events, line: bytes, on_text: OnText | None) -> bool:
        """Adds what a line of a stream completes. Returns whether the line was more than a sign of life."""
        came = False
        for part in map(bytes.strip, line.strip().split(b"\r")):
            came = came or is_data(part)
            size = len(part) + events.held
            if size > _MOST_LINE:
                raise self._too_long()
            await self._take_all(answer, await _beside(size, events.add, part), on_text, size=size)
        answer.ended = answer.ended or events.ended
        return came

    async def _take_all(
        self, answer: Assembled, chunks: Sequence[dict[str, Any] | None], on_text: OnText | None, *, size: int
    ) -> None:
        for chunk in chunks:
            if not answer.ended:
                await self._take(answer, chunk, on_text, size=size)

    async def _take(
        self, answer: Assembled, chunk: dict[str, Any] | None, on_text: OnText | None, *, size: int
    ) -> None:
        """Adds one JSON object of the body, `size` bytes long, to the answer and passes its text to `on_text`."""
        if chunk is None:
            raise BadCompletion(
                f"{self._where} sent part of an answer that is not valid JSON, or that broke off."
                " Ask again; if this repeats, check the server's log."
            )
        if failure := failure_in(chunk):
            # A server that fails after it sent the status line can report the failure only in the body.
            refusal = Refusal.of(failure, self._server.key)
            status = refusal.status or STATUSES.get(refusal.code, 500)
            error = self._server.refused(status, {}, refusal.apart_from(answer.asked, model=self._model.model))
            error.of_request = error.of_request and not error.retryable  # an outage, in the middle of an answer
            raise error
        answer.begun = True
        text = await _beside(size, self.add, answer, chunk)
        if answer.size > _MOST_TEXT:
            raise self._too_long()
        if text and on_text is not None:
            await on_text(text)

    def _completion(self, request: Request, answer: Assembled) -> Completion:
        text = answer.output.text
        calls = answer.tool_calls({call.id for message in request.messages for call in message.tool_calls})
        if len(calls) > _MOST_CALLS:
            raise BadCompletion(
                f"{self._where} asked for {len(calls)} tools at once; at most {_MOST_CALLS} are allowed. Ask "
                "again or use another model."
            )
        if any(not call.name for call in calls):
            raise BadCompletion(f"{self._where} asked for a tool without naming it. Ask again or use another model.")
        if not calls and not text.strip():
            raise self._empty(request, answer)
        written = self._count_tokens(text) + sum(self._count_tokens(call.name + call.arguments) for call in calls)
        counted = answer.usage if answer.usage != Usage() else None  # zeros are no count
        usage = counted or Usage(input_tokens=self.read_tokens(request), output_tokens=written, estimated=True)
        return Completion(
            text=text,
            model=answer.model or self._model.model,
            provider=self._model.provider,
            tool_calls=calls,
            usage=self.priced(usage),
            finish=answer.finish or ("tool_calls" if calls else "stop"),
            opaque=answer.opaque(self._origin, calls),
        )

    def priced(self, usage: Usage) -> Usage:
        price = self._model.price
        if price is None:
            return usage
        return replace(usage, cost=price.cost(usage.input_tokens, usage.cached_tokens, usage.output_tokens))

    def read_tokens(self, request: Request) -> int:
        seen = self._model.sees and "pictures" not in self._quirks
        messages = request.messages if seen else [replace(message, pictures=()) for message in request.messages]
        tools = signs.offered(request.tools, self._quirks)
        return size(replace(request, messages=tuple(messages), tools=tools), self._count_tokens)

    def _object(self, raw: bytes | bytearray) -> dict[str, Any] | None:
        """Returns the JSON object in an event or body, None if there is none. One with a heap of values is too long."""
        # The parser keeps the interpreter to itself, so a thread does not help with these.
        if values(raw) > MOST_VALUES:
            raise self._too_long()
        return part_in(raw)

    def _too_long(self) -> ModelError:
        return BadCompletion(
            f"{self._where} sent more for one answer than any answer has. Ask again, set max_tokens for the model,"
            " or check that base_url leads to a chat completions API."
        )

    def _empty(self, request: Request, answer: Assembled) -> ModelError:
        finish = answer.finish
        if not answer.begun and self.read_tokens(request) > self._model.context // 2:
            return ContextOverflow(
                f"{self._where} ended its answer without a word, as some servers do with a conversation that is longer"
                " than they can read. Set the model's context to its true size."
            )
        if finish == "content_filter":
            return ModelRefused(
                f"The content filter of {self._where} withheld the whole answer. Put it differently, or use"
                " another model.",
                of_request=True,
            )
        if finish == "length":
            return BadCompletion(
                f"{self._where} used up its token limit before the first word of the answer, as models that"
                " think do. Raise max_tokens or shorten the conversation."
            )
        return BadCompletion(f"{self._where} gave an empty answer. Ask again, or try another model.", of_request=True)

    def _no_answer(self, body: bytes | bytearray) -> ModelError:
        """Returns the error for a complete body that is no answer. It quotes only a page's title from the body."""
        text = body[:MOST_ERROR_BYTES].decode("utf-8", "replace").strip()
        what = "nothing at all" if not text else page(text) or "something else"
        return BadCompletion(
            f"{self._where} accepted the request and sent {what} instead of an answer in JSON. Check"
            " that base_url leads to a chat completions API; for most servers it ends in /v1."
        )

    def _broken_off(self, error: httpx.RequestError | ssl.SSLError | TimeoutError) -> ModelError:
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return ModelUnavailable(
                f"The answer of {self._where} stalled: no more of it came for {self._model.timeout:g} s. Ask again; if"
                " the model is just slow, raise its timeout."
            )
        if isinstance(error, httpx.DecodingError):
            return BadCompletion(
                f"The answer of {self._where} was compressed in a way that can't be undone. Look at proxies"
                " before the server."
            )
        return BadCompletion(
            f"The connection to {self._where} broke in the middle of the answer. Ask again; if this repeats,"
            " look at the network and at proxies between."
        )


def _messages(request: Request, origin: str, quirks: Set[Quirk]) -> list[ChatMessage]:
    messages = opaque.given_back(alternating(request.messages), origin, quirks)
    if "tools" in quirks:
        messages = without_tools(messages)
    return without_system(messages) if "system" in quirks else messages


def _may_repeat_end(request: Request) -> bool:
    """Returns whether the end of a thought stands in a request, where a person may have written it."""
    return any(message.pictures or SPELLS_END.search(message.content) for message in request.messages)


async def _beside(size: int, read: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Returns the result of `read`, in a thread if it reads so many bytes that others would wait."""
    return await asyncio.to_thread(read, *given, **named) if size > _LONG_PIECE else read(*given, **named)


async def _drained(lines: AsyncGenerator[bytes, None]) -> None:
    """Reads what comes after the end, so that the connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN):
            async for _ in lines:
                pass


BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)\s*\Z")
#: The most characters of an error that is no JSON.
_MOST_WORDS = 2_000


def is_stream(line: bytes) -> bool:
    """Returns whether the first line of a body belongs to a stream of events."""
    return _FIELD.match(line.strip()) is not None


def is_data(line: bytes) -> bool:
    """Returns whether a line of a stream holds data, and is not only a sign of life."""
    return line.startswith(b"data:") and line != b"data:"


class Events:
    """The events of one stream, line by line. `read` parses the data of an event."""

    def __init__(self, read: Callable[[bytes], dict[str, Any] | None] = part_in) -> None:
        #: True once the mark of the end has come.
        self.ended = False
        #: The bytes of the event that is not complete yet.
        self.held = 0
        self._read = read
        self._data: list[bytes] = []
        self._name = b""

    def add(self, line: bytes) -> list[dict[str, Any] | None]:
        """Takes a line without its end. Returns the objects that are complete with it, and None for what is no JSON."""
        if line.startswith(b"data:"):
            return self._add_data(line.removeprefix(b"data:").strip())
        before = self.finish() if not line or line.startswith(b"event:") else []
        if not line:
            self._name = b""
        elif line.startswith(b"event:"):
            self._name = line.removeprefix(b"event:").strip()
        return before

    def finish(self) -> list[dict[str, Any] | None]:
        if not self._data:
            return []
        data = b"\n".join(self._data)
        self._data, self.held = [], 0
        return [self._named(self._read(data), data)]

    def _add_data(self, data: bytes) -> list[dict[str, Any] | None]:
        if data == b"[DONE]":
            self.ended = True
            return self.finish()
        whole = self._read(data) if data and not self._data else None
        if whole is not None:
            return [self._named(whole, data)]
        if data:
            self._data.append(data)
            self.held += len(data)
        return []

    def _named(self, data: dict[str, Any] | None, raw: bytes) -> dict[str, Any] | None:
        """Returns the event's object; that of an error holds it as "error", as other errors do."""
        if self._name != b"error" or (data is not None and data.get("error")):
            return data
        return {"error": data or raw[:_MOST_WORDS].decode("utf-8", "replace") or "no words"}
