"""Shared by the adapters to model servers: a server's address, its key, and its failures put into words.

Invariants: every failure becomes a `ModelError` that names the host and the model and never the key. Only the
beginning of an error body is read, and only a few of its words are shown.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime

import httpx

from agents.llm import ContextOverflow, ModelAuth, ModelError, ModelRateLimited, ModelRefused, ModelUnavailable

#: Bytes read of a refusal's body, and characters shown of its text.
MOST_ERROR_BYTES = 64 * 1024
_MOST_QUOTED = 300
#: A refusal that shares this many characters in a row with the request is taken to repeat it.
_REPEATED = 16

_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_MARKUP = re.compile(r"<[!a-z]", re.IGNORECASE)
#: Servers' words for a request that is too long, in lower case.
_OVERFLOW = re.compile(
    # OpenAI's code and words, which vLLM, DeepSeek, Groq, Mistral and OpenRouter use too
    r"context_length_exceeded|maximum context length|context length|reduce the length of the messages"
    # llama.cpp, llama-cpp-python, LM Studio, MiniMax; Gemini, Cohere
    r"|context window|context size|input token count|too many tokens"
    # Anthropic, Fireworks, Bedrock
    r"|prompt is too long|input is too long|exceeds? context limit"
    # vLLM since 0.6; Text Generation Inference and Together
    r"|maximum model length|max_model_len|`?inputs`? tokens \+ `?max_new_tokens|`?inputs`? must have less than"
    # xAI; Qwen; Moonshot; Zhipu, with its code
    r"|maximum prompt length|range of input length should be|exceeded model token limit"
    r"|prompt exceeds max|prompt ?(?:超长|过长)|输入.{0,12}(?:超长|过长|超过|超出)|^1261 "
    # what others say, and servers of one's own
    r"|(?:prompt|input|request|message)s? (?:is|are|was) (?:too long|longer than)|token limit exceeded"
    r"|exceeds? the (?:model'?s |available )?(?:maximum |max )?(?:context|number of tokens)"
    r"|model_context_window_exceeded|request_too_large|string_above_max_length"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server of a model. `where` names host and model for a person; `key` is empty if none is sent."""

    url: httpx.URL
    key: str = field(repr=False)
    where: str

    @classmethod
    def at(cls, base_url: str, path: str, *, model: str, key: str | None) -> Server:
        """Returns the server for `path` below `base_url`.

        Raises `ValueError` if `base_url` is no web address or the key can't be sent.
        """
        try:
            base = httpx.URL(base_url.strip())
            url = base.copy_with(path=base.path.rstrip("/") + path)
        except httpx.InvalidURL as error:
            raise ValueError(f"base_url of the model {model} is not a web address: {error}") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"base_url of the model {model} must begin with http:// or https:// and name a host")
        key = (key or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ValueError(f"the key for {url.host} contains characters that no key has; copy it again")
        host = f"{url.host}:{url.port}" if url.port else url.host
        return cls(url=url, key=key, where=f"{host} (model {model})")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that authorise a request."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def unreachable(self, error: httpx.RequestError | ssl.SSLError, timeout: float) -> ModelError:
        """Returns the error for a request that got no answer; `timeout`, in seconds, is named if it ran out."""
        # httpx keeps the system's reason in the causes.
        causes = tuple(_causes(error))
        tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
        seconds = f"{timeout:g} s"
        if isinstance(error, httpx.ProxyError):
            text = f"The proxy refused to connect to {self.where}. Check the proxy settings of this machine."
        elif isinstance(error, httpx.ConnectTimeout):
            text = f"No connection to {self.where} within {seconds}. Check base_url, the network and firewalls between."
        elif isinstance(error, httpx.PoolTimeout):
            text = (
                f"All connections to {self.where} were busy for {seconds}. Too many turns are running at once: try"
                " later, or lower their number."
            )
        elif isinstance(error, httpx.TimeoutException):
            text = (
                f"{self.where} accepted the connection but sent nothing for {seconds}. The model may be"
                " loading or overloaded: try later, or raise its timeout."
            )
        elif any(isinstance(cause, socket.gaierror) for cause in causes):
            text = (
                f"The name of {self.where} can't be resolved. Check the spelling of base_url, and this"
                " machine's network and DNS."
            )
        elif tls is not None:
            text = (
                f"No trusted TLS connection to {self.where}: {_tls_reason(tls)}. Check that base_url has the"
                " right scheme and name, that this machine's clock is right, and the server's certificate."
            )
        elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            text = (
                f"{self.where} refused the connection: nothing listens there. Start the model server, or"
                " correct base_url."
            )
        elif isinstance(error, httpx.ConnectError):
            text = f"No connection to {self.where}: {causes[-1]}. Check base_url and the network."
        else:
            text = (
                f"{self.where} closed the connection without an answer. If this repeats, check the"
                " server's log and any proxy in front of it."
            )
        return ModelUnavailable(text)

    def refused(self, status: int, headers: Mapping[str, str], refusal: Refusal) -> ModelError:
        """Returns the error for an HTTP status that is not success."""
        said = refusal.quoted
        # 413 also comes from proxies with a limit on the body; a shorter request helps there as well.
        if status == 413 or (status in (400, 422, 500) and refusal.overflow):
            return ContextOverflow(
                f"The conversation is longer than {self.where} can read.{said} Set the"
                " model's context to its true size."
            )
        if status in (401, 403):
            cause = "its key was not accepted" if self.key else "it needs a key, and none is configured"
            return ModelAuth(
                f"{self.where} refused access ({status}): {cause}.{said} Set the key in the model's"
                " configuration, and check that it may use this model."
            )
        if status == 429:
            return ModelRateLimited(
                f"{self.where} accepts no more requests for now (429): there were too many, or the quota is used "
                f"up.{said} Wait, or check the limits and credit of the account.",
                retry_after=_retry_after(headers),
            )
        if status == 408 or status >= 500:
            return ModelUnavailable(
                f"{self.where} failed on its side ({status}).{said} Try later; if it is your own server,"
                " check its log.",
                retry_after=_retry_after(headers),
            )
        return ModelRefused(f"{self.where} {_refusal_cause(status)}.{said} {_refusal_remedy(status)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A server's words in the body of an error, without the key and without markup."""

    text: str = ""
    code: str = ""
    param: str = ""

    @classmethod
    def parse(cls, raw: bytes, key: str) -> Refusal:
        """Reads a body: JSON in one of the usual shapes, a web page, or plain text."""
        text = raw.decode("utf-8", "replace")
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = page(text) or text
        return cls.of(parsed, key)

    @classmethod
    def of(cls, parsed: object, key: str) -> Refusal:
        """Reads the parsed JSON of a body; its shape is not known, so each step may find anything."""
        code = param = ""
        if isinstance(parsed, list) and len(parsed) == 1:  # Gemini wraps the object in a list
            parsed = parsed[0]
        if isinstance(parsed, dict):
            parsed = parsed.get("error") or parsed
        if isinstance(parsed, dict):
            code, param = str(parsed.get("code") or parsed.get("type") or ""), str(parsed.get("param") or "")
            parsed = parsed.get("message") or parsed.get("detail") or parsed
        text = parsed if isinstance(parsed, str) else json.dumps(parsed, ensure_ascii=False)
        if key:
            # Before the text is shortened, or half a key could be left at its end.
            text, code = text.replace(key, "[key]"), code.replace(key, "[key]")
        return cls(text=" ".join(text.split()), code=code, param=param)

    def apart_from(self, asked: Iterable[str]) -> Refusal:
        """Returns the refusal, without its text if that repeats one of the texts `asked`.

        Errors are logged, and people's words must not be.
        """
        told = self.text[:_MOST_QUOTED]
        pieces = {told[at : at + _REPEATED] for at in range(max(1, len(told) - _REPEATED + 1))}
        for text in asked:
            plain = " ".join(text.split())
            for form in (plain, json.dumps(plain)[1:-1]):
                short = 3 <= len(form) < _REPEATED and form in told
                if short or any(len(piece) == _REPEATED and piece in form for piece in pieces):
                    return replace(self, text="")
        return self

    @property
    def quoted(self) -> str:
        """The server's words as a sentence to be set between two others; empty when it said nothing."""
        text = self.text if len(self.text) <= _MOST_QUOTED else f"{self.text[:_MOST_QUOTED]}…"
        return f" It said: “{text}”." if text else ""

    @property
    def overflow(self) -> bool:
        return _OVERFLOW.search(f"{self.code} {self.text}".lower()) is not None


async def error_body(response: httpx.Response, seconds: float) -> bytes:
    """Returns the beginning of a refusal's body.

    The part that can't be read in time is left out, because the status says most.
    """
    raw = b""
    with suppress(httpx.RequestError, ssl.SSLError, TimeoutError):
        async with asyncio.timeout(seconds):
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) >= MOST_ERROR_BYTES:
                    break
    return raw[:MOST_ERROR_BYTES]


def page(text: str) -> str | None:
    """Returns a short name for text that is a web page; None for other text."""
    if not _MARKUP.search(text[:1000]):
        return None
    title = _TITLE.search(text)
    return f"a web page titled {' '.join(title[1].split())}" if title else "a web page"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds the server asks to wait; None when it names no wait.

    RFC 9110 allows seconds or a date. The date is read against the server's own `date` header, so that no clock has
    to be right; without that header it is ignored.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            seconds = float(headers[name]) / unit
            if math.isfinite(seconds):
                return max(0.0, seconds)
    try:
        until, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
        return max(0.0, (until - now).total_seconds())
    except (KeyError, ValueError, OverflowError, TypeError):  # TypeError: only one names a time zone
        return None


def _refusal_cause(status: int) -> str:
    if 300 <= status < 400:
        return f"answered with a redirect ({status}), which is not followed"
    if status == 404:
        return "does not know this model or address (404)"
    if status == 402:
        return "requires payment first (402)"
    return f"refused the request ({status})"


def _refusal_remedy(status: int) -> str:
    if 300 <= status < 400:
        return "Set base_url to the server's actual address."
    if status == 404:
        return "Check the model's name, and that base_url ends where the server's API begins, usually in /v1."
    if status == 402:
        return "Top up the account, or use another model."
    return "Check the model's settings against what the server supports."


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and everything it came from, outermost first, through groups of parallel attempts."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        waiting.extend(cause for cause in (current.__cause__, current.__context__) if cause is not None)


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return "the server does not speak TLS there, perhaps only http"
    return (error.reason or "the handshake failed").replace("_", " ").lower()
