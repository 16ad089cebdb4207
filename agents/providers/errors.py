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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import httpx

from agents.llm import (
    BadCompletion,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    ModelUnpaid,
)

#: Bytes read of a refusal's body, and characters shown of its text.
MOST_ERROR_BYTES = 64 * 1024
_MOST_QUOTED = 300
#: The characters of a refusal that teach something. Some servers append the whole conversation to their own words.
MOST_READ = 500
#: A refusal that shares this many characters in a row with the request is taken to repeat it.
_REPEATED = 16

_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_MARKUP = re.compile(r"<[!a-z]", re.IGNORECASE)
#: The deepest nesting of a refusal that relays wrap into their own, and the most entries read of a list in it.
_DEEPEST = 8
_MOST_ENTRIES = 4
#: The characters of a refusal that are weighed. Some servers append the whole conversation to their own words.
_MOST_WEIGHED = 2_000
_PHRASES = frozenset(status.phrase for status in HTTPStatus)
#: The keys under which servers put their words, those of a cause within before those about it.
_WORDS = (
    "raw", "cause", "innererror", "inner_error", "error", "errors", "detail", "message", "msg", "error_msg",
    "error_message", "status_msg", "response",
)  # fmt: skip
_CODES = ("code", "type", "error_code", "status")
#: Servers' words for a request that is too long, in lower case: names of errors, and sentences that don't say both what
#: is too long and that it is.
_OVERFLOW = re.compile(
    r"context_length_exceeded|model_context_window_exceeded|request_too_large|string_above_max_length|^1261 "
    # llama.cpp; vLLM since 0.6; Text Generation Inference; OpenAI and most others; Cohere; Volcengine
    r"|exceed_context_size|max_model_len|`?inputs`? tokens \+ `?max_new_tokens|context (?:length|size|limit|window)"
    r"|too many tokens|max message tokens"
)
#: Other sentences name the request, and say that it is too long. The last pattern names things that a shorter
#: conversation does not mend.
_READ = re.compile(
    r"prompt|\binputs?\b|context|messages\b|message length|conversation|chat history|sequence|token limit|\bn_ctx\b"
    r"|number of tokens|tokens in (?:the|your)|request (?:is|was)"
    r"|输入|上下文|提示|对话|消息|入力|プロンプト|コンテキスト"
)
_TOO_LONG = re.compile(
    r"too (?:long|large|many|big)|exceed|(?:longer|greater|larger|bigger) than|over the (?:limit|maximum)|overflow"
    r"|must (?:have|be) (?:less|fewer|shorter)|reduce|shorten|maximum (?:prompt|input|model|context|sequence)? ?length"
    r"|range of input|(?:doesn't|does not) fit|超|过长|太长|上限|長すぎ"
)
_NOT_READ = re.compile(
    r"max_(?:completion_|output_|new_)?tokens|(?:output|completion) tokens|tool|function|image|picture|audio|\bfiles?\b"
    r"|\bnames?\b|temperature|top_p|\brate\b|quota|per (?:minute|day)|thinking|图|频率"
)
_CLAUSE = re.compile(r"[.;!?]\s+|[。；！]")
#: Servers' words for an account that has nothing left, in a refusal of any kind and in one of too many requests.
_NOTHING_LEFT = (
    r"insufficient[_ ](?:quota|balance|funds|credits?|user_quota)|credit balance|(?:more|enough|no|out of) credits?"
    r"|current quota|arrear|spend(?:ing)? limit|余额不足|欠费|额度(?:不足|已用)"
)
_BROKE = re.compile(_NOTHING_LEFT)
_UNPAID = re.compile(rf"{_NOTHING_LEFT}|billing|payment|paid (?:plan|account)|top[ -]up|recharge|balance is|充值")
#: Words that promise more in a while.
_PASSING = re.compile(r"(?:retry|try again) (?:in|after)|retry_?delay|per[ _-]?(?:minute|second)|\b[rt]pm\b|每分钟")
#: Servers' words for a key or a model that they don't know, where the status does not say so.
_NO_KEY = re.compile(r"api[ _]?key.{0,24}(?:not valid|invalid|incorrect|expired)|(?:invalid|incorrect) api[ _]?key")
_NO_MODEL = re.compile(
    r"model_not_found|(?:no such|unknown|invalid|not a valid) model|model.{0,80}?(?:not (?:found|exist)|n't exist)"
    r"|模型不存在"
)
#: OpenAI's words for one request that is larger than an account's limit for a minute: no wait helps.
_ONE_TOO_LARGE = re.compile(r"request too large|tokens must be reduced")
#: The codes of errors in a stream, which has no status any more.
STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
}
#: Names and addresses within a refusal say nothing of its kind.
_BESIDE = re.compile(r"https?://\S{1,300}|[\"'`][^\"'`]{1,80}[\"'`]")
#: Servers' words for a request that a filter has stopped.
_FLAGGED = re.compile(r"moderat|flagged|content (?:filter|policy)|safety")
#: The codes of such refusals: Azure's, Qwen's, Zhipu's and others'.
_FILTER = re.compile(r"content_?(?:filter|policy)|data_?inspection|moderation|sensitive")
#: The wait that a refusal names: "Please try again in 7.66s", "retryDelay": "26s".
_WAIT = re.compile(
    r"(?:(?:retry|try again) (?:in|after) |retry_?delay\W{1,8})(\d{1,6}(?:\.\d{1,9})?) ?(ms|s|sec|seconds?)\b"
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
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def unreachable(self, error: httpx.RequestError | ssl.SSLError, timeout: float) -> ModelError:
        """Returns the error for a request that got no answer; `timeout`, in seconds, is named if it ran out."""
        causes = tuple(_causes(error))  # httpx keeps the system's reason there
        proxy = _proxy_to(self.url)
        if (
            proxy
            and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            and not any(isinstance(cause, ssl.SSLError) for cause in causes)
        ):
            return ModelUnavailable(_NO_PROXY.format(proxy=proxy, where=self.where))
        tls = next((_tls_reason(cause) for cause in causes if isinstance(cause, ssl.SSLError)), "")
        told = next(words for kind, words in _UNREACHED.items() if any(isinstance(cause, kind) for cause in causes))
        return ModelUnavailable(told.format(where=self.where, seconds=f"{timeout:g} s", tls=tls, last=causes[-1]))

    def refused(self, status: int, headers: Mapping[str, str], refusal: Refusal, *, blamed: str = "") -> ModelError:
        """Returns the error for an HTTP status that is not success.

        `blamed` is the operator's own field that the refusal names.
        """
        kind = next(kind for kind in _KINDS if kind.fits(status, refusal))
        key = "its key was not accepted" if self.key else "it needs a key, and none is configured"
        cause = kind.cause.format(where=self.where, status=status, key=key)
        remedy = kind.remedy
        if blamed and kind.error is ModelRefused:
            remedy = f"It names {blamed}, which extra_body sets: correct or remove it there."
        return kind.error(
            f"{cause}.{refusal.quoted} {remedy}".rstrip(),
            retry_after=_retry_after(headers, refusal.wait) if kind.waits else None,
            of_request=kind.of_request,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A server's words in the body of an error, without the key and without markup.

    If a relay wraps a refusal in its own, they are those of the innermost one. `param` names the refused field, if it
    is named apart. `status` is the HTTP status that stands in the body, `wait` the seconds to wait that it names,
    `passing` is true if it promises more in a while, `echoes` if it holds words of the request, and `repeats` if these
    stand where it is quoted.
    """

    text: str = ""
    code: str = ""
    param: str = ""
    status: int | None = None
    wait: float | None = None
    passing: bool = False
    repeats: bool = False
    echoes: bool = False

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
        whole = _written(parsed)
        dug = _Dug()
        text = dug.words(parsed, 0) or whole
        code, param = dug.code, dug.param
        if key:
            # Before the text is shortened, or half a key could be left at its end.
            text, code, param = (part.replace(key, "[key]") for part in (text, code, param))
        wait, passing = _WAIT.search(whole.lower()), _PASSING.search(whole.lower())
        return cls(
            text=" ".join(text.split()),
            code=code[:_MOST_QUOTED],
            param=param[:_MOST_QUOTED],
            status=dug.status,
            wait=None if wait is None else float(wait[1]) / (1000 if wait[2] == "ms" else 1),
            passing=passing is not None,
        )

    def apart_from(self, asked: Iterable[str], *, model: str) -> Refusal:
        """Returns the refusal, not to be quoted if it repeats one of the texts `asked`; the model's name may stand.

        Errors are logged, and people's words must not be.
        """
        # The mark that replaces the name stands in no request.
        told = self.text[:MOST_READ].replace(model, "\0")
        pieces = [told[at : at + _REPEATED] for at in range(max(1, len(told) - _REPEATED + 1))]
        first = MOST_READ
        for text in asked:
            plain = " ".join(text.split())
            for form in (plain, json.dumps(plain)[1:-1]):
                if len(form) < _REPEATED:
                    whole = re.search(rf"(?<!\w){re.escape(form)}(?!\w)", told) if len(form) >= 3 else None
                    first = first if whole is None else min(first, whole.start())
                else:
                    held = (at for at, piece in enumerate(pieces[:first]) if len(piece) == _REPEATED and piece in form)
                    first = next(held, first)
        return replace(self, repeats=first < _MOST_QUOTED, echoes=first < MOST_READ)

    @property
    def quoted(self) -> str:
        """The server's words as a sentence to be set between two others; empty when it said nothing."""
        text = self.text if len(self.text) <= _MOST_QUOTED else f"{self.text[:_MOST_QUOTED]}…"
        return f" It said: “{text}”." if text and not self.repeats else ""

    @property
    def overflow(self) -> bool:
        return self.says(_OVERFLOW) or any(
            _READ.search(clause) and _TOO_LONG.search(clause) and not _NOT_READ.search(clause)
            for clause in _CLAUSE.split(self._said)
        )

    def is_unpaid(self, status: int) -> bool:
        """Returns whether it says that the account has nothing left, so that another try in a while is in vain."""
        said = _BESIDE.sub(" ", self._said)
        unpaid = (_UNPAID if status == 429 else _BROKE).search(said) is not None and not self.passing
        return status == 402 or (status in (400, 403, 429) and unpaid)

    def says(self, words: re.Pattern[str]) -> bool:
        return words.search(self._said) is not None

    @property
    def _said(self) -> str:
        return f"{self.code} {self.text[:_MOST_WEIGHED]}".lower()


def _written(parsed: object) -> str:
    try:
        return parsed if isinstance(parsed, str) else json.dumps(parsed, ensure_ascii=False)
    except RecursionError:
        return "{…}"


@dataclass(slots=True)
class _Dug:
    code: str = ""
    param: str = ""
    status: int | None = None

    def words(self, found: object, depth: int) -> str:
        """Returns the innermost words below a value; "" if there are none."""
        if depth > _DEEPEST:
            return ""
        if isinstance(found, str):
            return self._of_text(found, depth)
        if isinstance(found, list):
            each = [self.words(entry, depth + 1) for entry in found[:_MOST_ENTRIES]]
            return "; ".join(dict.fromkeys(filter(None, each)))
        return self._of_object(found, depth) if isinstance(found, dict) else ""

    def _of_text(self, text: str, depth: int) -> str:
        """Returns the words of a refusal that stands in the words of another as JSON, else the whole text."""
        start = text.find("{")
        if start < 0:
            return text
        try:
            inner, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            return text
        return self.words(inner, depth + 1) or text

    def _of_object(self, found: dict[str, Any], depth: int) -> str:
        entries = {str(name).lower(): value for name, value in found.items()}
        codes = [str(value) for name in _CODES if isinstance(value := entries.get(name), str | int) and value]
        self.code = next(iter(codes), self.code)
        statuses = (int(code) for code in codes if re.fullmatch(r"[45]\d\d", code))
        self.status = self.status or next(statuses, None)
        if isinstance(entries.get("param"), str):
            self.param = entries["param"] or self.param
        if isinstance(entries.get("loc"), list):  # pydantic names the place apart
            return f"{'.'.join(map(str, entries['loc']))}: {entries.get('msg', '')}"
        if isinstance(metadata := entries.get("metadata"), dict):  # OpenRouter
            entries["raw"] = metadata.get("raw")
        parts = [part for name in _WORDS if (part := self.words(entries.get(name), depth + 1))]
        # A name such as "invalid_request" or "Bad Request" stands before the words that explain it.
        told = (part for part in parts if (" " in part or not part.isascii()) and part not in _PHRASES)
        return next(told, parts[0] if parts else "")


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
    if not _MARKUP.search(text[:1000]):
        return None
    title = _TITLE.search(text)
    return f"a web page titled {' '.join(title[1].split())}" if title else "a web page"


def _retry_after(headers: Mapping[str, str], said: float | None) -> float | None:
    """Returns the seconds the server asks to wait, as its headers tell or else its words; None when it names no wait.

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
        return said


_NO_PROXY: Final = (
    "The proxy {proxy}, through which {where} is asked, can't be reached. Start it, or correct HTTPS_PROXY, HTTP_PROXY"
    " or ALL_PROXY; NO_PROXY names the hosts that are asked without it."
)

#: Why a request got no answer, by the error or one that it came from. The first that fits counts.
_UNREACHED: Final[Mapping[type[BaseException], str]] = {
    httpx.ProxyError: "The proxy refused to connect to {where}. Check the proxy settings of this machine.",
    httpx.ConnectTimeout: "No connection to {where} within {seconds}. Check base_url, the network and firewalls"
    " between.",
    httpx.PoolTimeout: "All connections to {where} were busy for {seconds}. Too many turns are running at once: try"
    " later, or lower their number.",
    httpx.TimeoutException: "{where} accepted the connection but sent nothing for {seconds}. The model may be loading"
    " or overloaded: try later, or raise its timeout.",
    socket.gaierror: "The name of {where} can't be resolved. Check the spelling of base_url, and this machine's network"
    " and DNS.",
    ssl.SSLError: "No trusted TLS connection to {where}: {tls}. Check that base_url has the right scheme and name, that"
    " this machine's clock is right, and the server's certificate.",
    ConnectionRefusedError: "{where} refused the connection: nothing listens there. Start the model server, or correct"
    " base_url.",
    httpx.ConnectError: "No connection to {where}: {last}. Check base_url and the network.",
    BaseException: "{where} closed the connection without an answer. If this repeats, check the server's log and any"
    " proxy in front of it.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of refusals: which they are, the error they become, and its words before and after the server's own."""

    fits: Callable[[int, Refusal], bool]
    error: type[ModelError]
    cause: str
    remedy: str = ""
    waits: bool = False
    of_request: bool = False


#: The kinds of refusals. Of those that fit the first counts: words say more than a status, and the last fits all.
_KINDS: Final = (
    _Kind(
        fits=lambda status, refusal: refusal.is_unpaid(status),
        error=ModelUnpaid,
        cause="{where} wants to be paid first ({status}): the account's credit or quota is used up",
        remedy="Top up the account or raise its limit, or use another model.",
    ),
    _Kind(  # Groq: the model wrote a call that can't be read
        fits=lambda status, refusal: refusal.code == "tool_use_failed",
        error=BadCompletion,
        cause="{where} could not read the call of a tool that its model wrote",
        remedy="Ask again.",
    ),
    _Kind(
        fits=lambda status, refusal: status == 429 and refusal.says(_ONE_TOO_LARGE),
        error=ContextOverflow,
        cause="{where} takes no request of this size from the account ({status})",
    ),
    _Kind(  # its words may quote a conversation that speaks of lengths
        fits=lambda status, refusal: (
            (status == 403 and refusal.says(_FLAGGED))
            or (status in (400, 403, 422) and _FILTER.search(refusal.code.lower()) is not None)
        ),
        error=ModelRefused,
        cause="The content filter of {where} refused the request ({status})",
        remedy="Put it differently, or use another model.",
        of_request=True,
    ),
    _Kind(  # 413 also comes from proxies with a limit on the body; a shorter request helps there as well
        fits=lambda status, refusal: status == 413 or (status in (400, 422, 500) and refusal.overflow),
        error=ContextOverflow,
        cause="The conversation is longer than {where} can read",
        remedy="Set the model's context to its true size.",
    ),
    _Kind(
        fits=lambda status, refusal: status in (401, 403) or (status == 400 and refusal.says(_NO_KEY)),
        error=ModelAuth,
        cause="{where} refused access ({status}): {key}",
        remedy="Set the key in the model's configuration, and check that it may use this model.",
    ),
    _Kind(
        fits=lambda status, refusal: status == 429,
        error=ModelRateLimited,
        cause="{where} accepts no more requests for now (429): there were too many, or the quota is used up",
        remedy="Wait, or check the limits and credit of the account.",
        waits=True,
    ),
    *(
        _Kind(
            fits=fits,
            error=ModelUnavailable,
            cause="{where} failed on its side ({status})",
            remedy="Try later; if it is your own server, check its log.",
            waits=True,
            of_request=of_request,
        )
        for fits, of_request in (
            (lambda status, refusal: status in (500, 501), True),
            (lambda status, refusal: status == 408 or status >= 500, False),
        )
    ),
    _Kind(
        fits=lambda status, refusal: 300 <= status < 400,
        error=ModelRefused,
        cause="{where} answered with a redirect ({status}), which is not followed",
        remedy="Set base_url to the server's actual address.",
    ),
    _Kind(
        fits=lambda status, refusal: status == 404,
        error=ModelRefused,
        cause="{where} does not know this model or address (404)",
        remedy="Check the model's name, and that base_url ends where the server's API begins, usually in /v1.",
    ),
    *(
        _Kind(
            fits=fits,
            error=ModelRefused,
            cause="{where} refused the request ({status})",
            remedy="Check the model's settings against what the server supports.",
            of_request=of_request,
        )
        for fits, of_request in (
            (lambda status, refusal: refusal.says(_NO_MODEL), False),
            (lambda status, refusal: True, True),
        )
    ),
)


def _proxy_to(url: httpx.URL) -> str:
    """Returns host and port of the environment's proxy to a server; empty if there is none."""
    known = getproxies()
    address = known.get(url.scheme) or known.get("all", "")
    here = url.host in ("localhost", "127.0.0.1", "::1") or url.host.endswith(".localhost")
    return "" if here or proxy_bypass(url.host) else address.rpartition("@")[2].rstrip("/").rpartition("/")[2]


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
