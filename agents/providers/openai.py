"""Calls any server with OpenAI's chat completions API, and puts its failures into words.

Invariants: every failure is raised as a `ModelError` that names the host and the model, and never the key. A silence
longer than `timeout` ends a call; keepalives count as silence. The caller bounds the total time. The memory held for an
answer is bounded. An answer that broke off is an error and never passes for a complete one. Returned text can be stored
as UTF-8, and returned tool calls have ids that every vendor accepts back. The wire format follows OpenAI's API
reference ("Chat", "Streaming"); comments mark where other servers depart from it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence, Set
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, Literal, TypeAlias

import httpx
import structlog

from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OnText,
    Picture,
    Request,
    ToolCall,
    ToolSpec,
    Usage,
)
from agents.providers.errors import MOST_ERROR_BYTES, Refusal, Server, error_body, page
from agents.spec import ModelSpec

log = structlog.get_logger(__name__)

#: A departure from OpenAI's API, learned from a server's refusal and kept for the life of the provider.
Quirk: TypeAlias = Literal["stream_options", "max_tokens", "temperature", "response_format", "pictures"]

#: The most bytes of an answer with its wrapping. A server that never stops sending must not fill the memory.
_MOST_BYTES = 64 * 1024 * 1024
#: The most bytes of one line of a stream, or of an answer that is not streamed. This is more than `_MOST_TEXT` takes
#: even with every letter escaped.
_MOST_LINE = 8 * 1024 * 1024
#: The most characters of text and tool arguments. The longest outputs on offer (128,000 tokens) take half of it.
_MOST_TEXT = 1_000_000
#: The most tool calls of one answer. OpenAI accepts at most 128 back.
_MOST_CALLS = 32
#: The most tokens of one call. A vendor that reports more has miscounted.
_MOST_TOKENS = 1_000_000_000
#: Tool call ids that the strictest vendors accept back: OpenAI at most 40 characters, Anthropic only these characters.
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
#: Seconds to wait for the end of the body after the end of the answer, so that the connection can be reused.
_DRAIN = 0.25
#: The estimated tokens of a message beyond its text. OpenAI's cookbook counts 3 to 4.
_TOKENS_PER_MESSAGE = 4
#: The estimated tokens of a picture. OpenAI's guide to vision counts 765 for a photo in high detail.
_TOKENS_PER_PICTURE = 800

#: The text that replaces a picture for a model that is not shown it.
_UNSEEN = "[A picture was sent here that this model cannot see.]"
#: A refusal that matches this is about the pictures.
_ABOUT_PICTURES = re.compile(
    r"image|picture|vision|multi-?modal|mmproj|content[ _]type|(?:must|should) be (?:a )?(?:valid )?string"
)
#: A refusal that matches this says that the model accepts no pictures at all. The words are those of OpenAI,
#: OpenRouter, Ollama, vLLM, llama.cpp, DeepSeek, Groq and others.
_BLIND = re.compile(
    r"(?:not|n't|only|no|that|currently|yet) support|unsupported|supported by|mmproj|content[ _](?:part[ _])?type"
    r"|unknown variant|(?:must|should) be (?:a )?(?:valid )?string|missing data required for image|at most 0 image"
    r"|vision[a-z ]{0,30} not |(?:not|no)[a-z ]{0,30} (?:vision|multi-?modal)|multi-?modal[a-z ]{0,30} not "
)
#: A refusal that matches this is only about these pictures, whatever else it says: others may be accepted.
_BAD_PICTURE = re.compile(
    r"invalid_image|invalid image|invalid base64|image_parse|unsupported image\b(?! input)|image format|image type"
    r"|image size|formats|mime|media[ _]type|(?<!data:)image/[a-z]|too large|too big|too small|too many|exceed|maximum"
    r"|dimension|resolution|pixels|aspect ratio|\d ?mb\b|decod|corrupt|truncat|damaged|could not|couldn't"
    r"|failed to (?!deserialize)|unable to|cannot identify|can't identify|download|fetch|not valid|at most (?!0 )"
    r"|safety|moderat|policy|flagged"
)
#: The most characters of a refusal that are examined. Some servers append the whole conversation to their own words.
_MOST_SAID = 500

#: The provider's name in logs and usage.
_LABEL: Final = "openai"


class OpenAIProvider:
    """Implements `agents.llm.Provider` for one model of one server.

    `client` belongs to the caller and is not closed here. The `base_url` of `model` ends before `/chat/completions`.
    Its `timeout` is the longest silence in seconds: while connecting, before the answer and between its parts. The head
    of an answer that arrives byte by byte may take twice as long. `count_tokens` is used if a server does not report
    usage. Raises `ValueError` if the `base_url` is no http address or the key can't be sent.
    """

    def __init__(self, client: httpx.AsyncClient, model: ModelSpec, *, count_tokens: Callable[[str], int]) -> None:
        key = None if model.key is None else model.key.get_secret_value()
        self._client = client
        self._server = Server.at(model.base_url, "/chat/completions", model=model.model, key=key)
        self._where = self._server.where
        self._model = model
        self._count_tokens = count_tokens
        self._quirks: set[Quirk] = set()

    @property
    def name(self) -> str:
        """`openai/` followed by the model's name."""
        return f"{_LABEL}/{self._model.model}"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """Runs the request as a stream. Raises `ModelError`, and whatever `on_text` raises."""
        response = await self._open(request)
        try:
            answer = await self._read(response, on_text, _asked(request))
        finally:
            await response.aclose()
        return self._completion(request, answer)

    async def aclose(self) -> None:
        """Does nothing: each call closes its response, and the client belongs to the caller."""

    async def _open(self, request: Request) -> httpx.Response:
        """Returns the response to an accepted request, its body unread. Retries if a refusal reveals a quirk."""
        quirks = set(self._quirks) if self._model.sees else {*self._quirks, "pictures"}
        while True:
            body = _body(request, self._model, quirks)
            response = await self._send(body)
            if response.is_success:
                return response
            try:
                raw = await error_body(response, self._model.timeout)
            finally:
                await response.aclose()
            refusal = Refusal.parse(raw, self._server.key)
            # The model's name is cut out: a name that contains "vision" says nothing about the refusal.
            said = f"{refusal.code} {refusal.param} {refusal.text[:_MOST_SAID]}".replace(self._model.model, "").lower()
            unseen = not refusal.overflow and _refuses_pictures(response.status_code, said, body)
            quirk = "pictures" if unseen else _quirk(response.status_code, refusal, body)
            if quirk is None:
                told = refusal.apart_from(_asked(request))
                raise self._server.refused(response.status_code, response.headers, told)
            # The loop ends: each quirk is learned from a field in the body and removes that field.
            quirks.add(quirk)
            if quirk == "pictures" and not _is_blind(response.status_code, said):
                continue
            if quirk == "pictures" and quirk not in self._quirks:
                log.warning("model.takes_no_pictures", model=self.name)
            self._quirks.add(quirk)

    async def _send(self, body: dict[str, Any]) -> httpx.Response:
        headers = {
            **self._server.headers,
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
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

    async def _read(self, response: httpx.Response, on_text: OnText | None, asked: Sequence[str]) -> _Answer:
        """Reads the whole answer, streamed or not: some servers answer a request for a stream with plain JSON."""
        loop = asyncio.get_running_loop()
        answer = _Answer(patience=loop.time() + self._model.timeout, asked=asked)
        plain = bytearray()
        streamed: bool | None = None
        async with aclosing(self._lines(response, answer)) as lines:
            async for line in lines:
                if streamed is None and line.strip():
                    streamed = line.startswith((b"data:", b":", b"event:", b"id:", b"retry:"))
                part = line.strip()
                if streamed:
                    part = part.removeprefix(b"data:").lstrip() if part.startswith(b"data:") else b""
                    answer.ended = part == b"[DONE]"
                    if answer.ended:
                        break
                    if part:
                        await self._take(answer, _object(part), on_text)
                else:
                    plain += line + b"\n"
                if part:
                    answer.patience = loop.time() + self._model.timeout
            if answer.ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_DRAIN):
                        async for _ in lines:
                            pass
        if not streamed:
            await self._take_whole(answer, plain, on_text)
        if not answer.complete:
            raise BadCompletion(
                f"The answer from {self._where} broke off before its end. If this repeats, check the"
                " server's log and any proxy in front of it."
            )
        return answer

    async def _lines(self, response: httpx.Response, answer: _Answer) -> AsyncGenerator[bytes, None]:
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

    async def _take_whole(self, answer: _Answer, body: bytearray, on_text: OnText | None) -> None:
        """Adds the body of a server that does not stream to the answer."""
        if len(body) > _MOST_LINE:
            raise self._too_long()
        whole = _object(body)
        if whole is None or not ("choices" in whole or "error" in whole):
            raise self._no_answer(body)
        await self._take(answer, whole, on_text)
        answer.ended = True

    async def _take(self, answer: _Answer, chunk: dict[str, Any] | None, on_text: OnText | None) -> None:
        """Adds one JSON object of the body to the answer and passes its text to `on_text`."""
        if chunk is None:
            raise BadCompletion(
                f"{self._where} sent part of an answer that is not valid JSON, or that broke off."
                " Ask again; if this repeats, check the server's log."
            )
        if chunk.get("error"):
            # A server that fails after it sent the status line can report the failure only in the body.
            refusal = Refusal.of(chunk, self._server.key)
            status = int(refusal.code) if re.fullmatch(r"[45]\d\d", refusal.code) else 500
            raise self._server.refused(status, {}, refusal.apart_from(answer.asked))
        text = answer.add(chunk)
        if answer.size > _MOST_TEXT:
            raise self._too_long()
        if text and on_text is not None:
            await on_text(text)

    def _completion(self, request: Request, answer: _Answer) -> Completion:
        text = "".join(answer.text)
        if len(answer.calls) > _MOST_CALLS:
            raise BadCompletion(
                f"{self._where} asked for {len(answer.calls)} tools at once; at most {_MOST_CALLS} are allowed. Ask "
                "again or use another model."
            )
        taken = [call.id for message in request.messages for call in message.tool_calls]
        calls = tuple(_tool_calls(answer.calls, taken=taken))
        if any(not call.name for call in calls):
            raise BadCompletion(f"{self._where} asked for a tool without naming it. Ask again or use another model.")
        if not calls and not text.strip():
            raise self._empty(answer.finish)
        usage = _usage(answer.usage)
        if usage is None:
            usage = self._estimate(request, text, calls)
        if self._model.price is not None:
            cost = self._model.price.cost(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
            usage = replace(usage, cost=cost)
        return Completion(
            text=text,
            model=answer.model or self._model.model,
            provider=_LABEL,
            tool_calls=calls,
            usage=usage,
            finish=answer.finish or ("tool_calls" if calls else "stop"),
        )

    def _estimate(self, request: Request, text: str, calls: tuple[ToolCall, ...]) -> Usage:
        count = self._count_tokens
        read = sum(_TOKENS_PER_MESSAGE + count(message.content) for message in request.messages)
        read += sum(count(call.name + call.arguments) for m in request.messages for call in m.tool_calls)
        if self._model.sees and "pictures" not in self._quirks:
            read += _TOKENS_PER_PICTURE * sum(len(message.pictures) for message in request.messages)
        read += sum(count(json.dumps(_tool(tool), ensure_ascii=False)) for tool in request.tools)
        written = count(text) + sum(count(call.name + call.arguments) for call in calls)
        return Usage(input_tokens=read, output_tokens=written, estimated=True)

    def _too_long(self) -> ModelError:
        return BadCompletion(
            f"{self._where} sent more for one answer than any answer has. Ask again, set max_tokens for the model,"
            " or check that base_url leads to a chat completions API."
        )

    def _empty(self, finish: str | None) -> ModelError:
        if finish == "content_filter":
            return ModelRefused(
                f"The content filter of {self._where} withheld the whole answer. Put it differently, or use"
                " another model."
            )
        if finish == "length":
            return BadCompletion(
                f"{self._where} used up its token limit before the first word of the answer, as models that"
                " think do. Raise max_tokens or shorten the conversation."
            )
        return BadCompletion(f"{self._where} gave an empty answer. Ask again, or try another model.")

    def _no_answer(self, body: bytes | bytearray) -> ModelError:
        """Returns the error for a complete body that is no answer. It quotes only a page's title from the body."""
        text = body[:MOST_ERROR_BYTES].decode("utf-8", "replace").strip()
        what = "nothing at all" if not text else page(text) or "something else"
        return BadCompletion(
            f"{self._where} accepted the request and sent {what} instead of an answer in JSON. Check"
            " that base_url leads to a chat completions API; for most servers it ends in /v1."
        )

    def _broken_off(self, error: httpx.RequestError | ssl.SSLError | TimeoutError) -> ModelError:
        """Returns the error for an answer that broke off."""
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


@dataclass(slots=True)
class _Call:
    """A tool call, assembled from its fragments."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Answer:
    """An answer, assembled from its chunks.

    `patience` is the time, on the loop's clock, when it counts as stalled. `asked` are the texts that it answers.
    """

    patience: float
    asked: Sequence[str] = ()
    text: list[str] = field(default_factory=list)
    #: The first half of a character that the server split between two chunks.
    half: str = ""
    #: The characters of text and arguments so far.
    size: int = 0
    calls: list[_Call] = field(default_factory=list)
    by_index: dict[int, _Call] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    finish: str | None = None
    #: True once the server has sent its end mark.
    ended: bool = False

    @property
    def complete(self) -> bool:
        """True if the answer is known to be complete: servers send a finish reason, an end mark, or both."""
        return self.ended or self.finish is not None

    def add(self, chunk: dict[str, Any]) -> str:
        """Adds a chunk, or a whole answer of the same shape. Returns its text."""
        if isinstance(chunk.get("model"), str):
            self.model = _storable(chunk["model"][:200])
        usage = chunk.get("usage")
        if usage is None and isinstance(chunk.get("x_groq"), dict):  # Groq reports usage here
            usage = chunk["x_groq"].get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self.finish = _storable(choice["finish_reason"][:200])
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, dict):
                self._add_call(fragment)
        text = self.half + (_content_text(delta.get("content")) or _content_text(delta.get("refusal")))
        self.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = _storable(text.removesuffix(self.half))
        if text:
            self.text.append(text)
            self.size += len(text)
        return text

    def _add_call(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments, call_id = function.get("name"), function.get("arguments"), fragment.get("id")
        index = fragment.get("index")
        # A fragment without an index belongs to the call before it.
        last = self.calls[-1] if self.calls else None
        call = self.by_index.get(index) if isinstance(index, int) else last
        if call is None or _starts_anew(call, call_id, name):
            call = _Call()
            self.calls.append(call)
            if isinstance(index, int):
                self.by_index[index] = call
        if isinstance(call_id, str) and call_id:
            call.id = call_id
        if isinstance(name, str) and name:
            call.name = _storable(name[:200])
        if arguments is not None and not isinstance(arguments, str):
            # Some servers send the object itself instead of its JSON text.
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            call.arguments.append(arguments)
            self.size += len(arguments)


def _body(request: Request, model: ModelSpec, quirks: Set[Quirk]) -> dict[str, Any]:
    """Returns the request as JSON, without None values and without fields that the server is known to refuse."""
    body: dict[str, Any] = {
        "model": model.model,
        "messages": [_message(message, shown="pictures" not in quirks) for message in request.messages],
        "stream": True,
    }
    if "stream_options" not in quirks:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    limit = model.max_tokens if request.max_tokens is None else request.max_tokens
    if limit is not None:
        body["max_completion_tokens" if "max_tokens" in quirks else "max_tokens"] = limit
    warmth = model.temperature if request.temperature is None else request.temperature
    if warmth is not None and "temperature" not in quirks:
        body["temperature"] = warmth
    if request.json_mode and "response_format" not in quirks:
        body["response_format"] = {"type": "json_object"}
    return body


def _message(message: ChatMessage, *, shown: bool) -> dict[str, Any]:
    """Returns the message as JSON, with its pictures if `shown`, else with a text in place of each.

    Only a person's message can show pictures.
    """
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures and shown and message.role == "user":
        words = [{"type": "text", "text": message.content}] if message.content else []
        wire["content"] = [*words, *(_part(picture) for picture in message.pictures)]
    elif message.pictures:
        wire["content"] = "\n".join([message.content, *(_UNSEEN for _ in message.pictures)]).lstrip("\n")
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _part(picture: Picture) -> dict[str, Any]:
    data = base64.b64encode(picture.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }


def _asked(request: Request) -> list[str]:
    return [message.content for message in request.messages]


def _quirk(status: int, refusal: Refusal, body: Mapping[str, Any]) -> Quirk | None:
    """Returns the field that the server refuses, if the refusal says so and the call can do without the field."""
    if status not in (400, 422):
        return None
    words = f"{refusal.param} {refusal.text}".lower()
    if "stream_options" in body and "stream_options" in words:
        return "stream_options"
    # OpenAI's newer models take the limit under another name, and accept only the default temperature.
    if "max_tokens" in body and "max_completion_tokens" in words:
        return "max_tokens"
    # A temperature out of range is the operator's mistake to correct. Only an unsupported one may be dropped.
    if "temperature" in body and "temperature" in words and "support" in words:
        return "temperature"
    # Without JSON mode the prompt still asks for JSON, and the caller validates the answer.
    if "response_format" in body and "response_format" in words:
        return "response_format"
    return None


def _refuses_pictures(status: int, said: str, body: Mapping[str, Any]) -> bool:
    """Returns whether the server refused the pictures in `body`. `said` is its refusal in lower case."""
    if not any(isinstance(message["content"], list) for message in body["messages"]):
        return False
    if status == 413:
        return True
    # llama.cpp answers a picture it can't process with a server error (500).
    possible = status in (400, 404, 415, 422) or (status in (500, 501) and _BLIND.search(said) is not None)
    return possible and _ABOUT_PICTURES.search(said) is not None


def _is_blind(status: int, said: str) -> bool:
    """Returns whether the refusal says that the model accepts no pictures, and not that these pictures are bad."""
    return status != 413 and _BLIND.search(said) is not None and _BAD_PICTURE.search(said) is None


def _starts_anew(call: _Call, call_id: object, name: object) -> bool:
    """Returns whether a fragment with this id and name begins a new call instead of continuing `call`.

    Fragments of one call may repeat its id and name. Some servers send several complete calls under one index, and some
    of these servers send no ids.
    """
    if call_id and call.id:
        return call_id != call.id
    return bool(name and call.name) and _object("".join(call.arguments)) is not None


def _object(text: str | bytes | bytearray) -> dict[str, Any] | None:
    """Returns `text` parsed as a JSON object, or None if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _tool_calls(calls: list[_Call], *, taken: Sequence[str]) -> Iterator[ToolCall]:
    """Yields the calls, each with a unique id that is not in `taken`.

    A missing, repeated or malformed id is replaced by one made from the call's number in the conversation, because
    another vendor in the chain of models would refuse it in history.
    """
    used = set(taken)
    for number, call in enumerate(calls, len(taken) + 1):
        call_id = call.id
        if call_id in used or not _CALL_ID.fullmatch(call_id):
            call_id = next(made for n in count(number) if (made := f"call_{n}") not in used)
        used.add(call_id)
        # Some models send an empty text to call a tool without arguments.
        yield ToolCall(id=call_id, name=call.name, arguments=_storable("".join(call.arguments)) or "{}")


def _storable(text: str) -> str:
    """Returns `text` so that UTF-8 and databases accept it: surrogates joined or replaced, NUL removed."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "")


def _content_text(content: object) -> str:
    """Returns the text of a message's content: a string, or (Mistral) a list of parts, some of which are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _usage(raw: Mapping[str, Any]) -> Usage | None:
    read, written = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    if read is None or written is None:
        return None
    details = raw.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = _count(raw.get("prompt_cache_hit_tokens"))  # DeepSeek's name for it
    return Usage(input_tokens=read, output_tokens=written, cached_tokens=cached or 0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
