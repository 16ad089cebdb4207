"""Requests that nobody's client sends: whatever stands in a body, a header or an address, no handler crashes."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agents.llm import Completion, OnText, Request
from gateway.page.routes import ROUTES as PAGES
from tests.kit.doors import FRONT_KEY, SHARED_KEY, house
from tests.kit.fakes import says
from tests.kit.patience import SECONDS
from tests.kit.visit import paged

_EXAMPLES = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
_PICTURE = "data:image/png;base64,iVBORw0KGgo="
#: A body for each route that takes one, with every field that is read.
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "POST",
        "/v1/chat/completions",
        {
            "model": "assistant-recall",
            "messages": [
                {"role": "system", "content": "Be short."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "content": "1", "tool_call_id": "c1"},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            ],
            "stream": False,
            "stream_options": {"include_usage": True},
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}],
            "tool_choice": "auto",
            "temperature": 0.5,
            "max_tokens": 10,
            "n": 1,
            "user": "someone",
            "conversation": {"id": "c"},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        },
    ),
    (
        "POST",
        "/v1/chat/completions",
        {
            "model": "assistant",
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": _PICTURE}}]},
            ],
            "stream": True,
            "max_completion_tokens": 10,
        },
    ),
    (
        "POST",
        "/v1/responses",
        {
            "model": "assistant",
            "instructions": "Be short.",
            "input": [
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "1"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            ],
            "text": {"format": {"type": "text"}},
            "previous_response_id": "resp_c_1",
            "max_output_tokens": 10,
            "background": False,
        },
    ),
    ("POST", "/v1/memories", {"messages": [{"role": "user", "content": "I like tea"}], "user_id": "x", "key": "likes"}),
    ("POST", "/v1/memories/search", {"query": "tea", "top_k": 3, "filters": {"user_id": "x"}}),
    ("PUT", "/v1/memories/m_1", {"text": "I like coffee"}),
    ("PATCH", "/v1/memories/m_1", {"pinned": True}),
    ("POST", "/v1/memories/m_1/confirm", {}),
    ("POST", "/v1/memories/m_1/tags", {"tags": ["x"], "tagged": False}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_memory", "arguments": {"query": "tea"}}}),
]  # fmt: skip
_TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "", "\x00", "\ud800", "[", "{{x}}", "9" * 40, "-1", "true", "data:", "data:image/png;base64,é", "resp_",
        "x" * 5_000,
    ]
)  # fmt: skip
_LEAVES = (
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.sampled_from([1e300, -0.0, 0.5, 2**63]) | _TEXTS
)
_JSON = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=6
)
#: What a header may hold on the wire, apart from the marks that end it.
_HEADER = st.binary(max_size=60).map(lambda raw: raw.translate(None, b"\r\n\x00")) | st.sampled_from(
    [
        b"[", b"[::1", b"http://[", b"//[", b"localhost:99999999", b"localhost", b"null", b"bytes=0-", b"\xff\xfe",
        b"9" * 500,
    ]
)  # fmt: skip
_HEADERS = [
    "Host", "Origin", "Cookie", "Content-Type", "Authorization", "Sec-Fetch-Site", "Accept-Language", "X-Remora",
    "X-OpenWebUI-User-Jwt", "X-OpenWebUI-User-Id", "X-OpenWebUI-Chat-Id", "X-Conversation-Id", "Idempotency-Key",
    "X-Stainless-Retry-Count", "X-Forwarded-For", "Content-Encoding", "Accept",
    "Range", "Upgrade", "Expect", "If-None-Match",
]  # fmt: skip
_WORDS = st.text(max_size=40) | st.sampled_from(
    [
        "9" * 30, "9" * 300, "-1", "0", "9999-12-31", "0001-01-01", "\x00", "\ud800", "m_1", "[", "%", "..", "//",
        "x" * 3_000, "٣",
    ]
)  # fmt: skip


class Endless:
    name = "endless/model"

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        return says("Hello.")

    async def aclose(self) -> None:
        return None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


@st.composite
def altered(draw: st.DrawFn, body: dict[str, Any]) -> Any:
    *way, last = draw(st.sampled_from([path for path in places(body) if path]) if body else st.just(("x",)))
    changed = copy.deepcopy(body)
    at = changed
    for step in way:
        at = at[step]
    at[last] = draw(_JSON)
    return changed


def asked(url: str, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """The status of an answer to raw bytes, and the answer; 0 if there was none."""
    there = httpx.URL(url)
    with socket.create_connection((there.host, there.port or 0), timeout=SECONDS) as line:
        said = b""
        try:
            line.sendall(head + body)
            while piece := line.recv(65_536):
                said += piece
        except ConnectionError:
            pass
    return (int(said[9:12]) if said.startswith(b"HTTP/") else 0), said


async def held(check: Callable[[], None]) -> None:
    """Runs a property beside the server, and looks that nothing crashed there."""
    with capture_logs() as logs:
        await asyncio.to_thread(check)
    assert [line for line in logs if line["log_level"] in ("error", "critical")] == []


async def test_any_value_in_a_body_is_answered_by_name(tmp_path: Path) -> None:
    """A program that sends a number for a list reads what was wrong, and not that the server broke."""
    async with house(tmp_path, model=Endless()) as home:
        keys = [await home.key(), SHARED_KEY]
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:

            @_EXAMPLES
            @given(data=st.data())
            def check(data: st.DataObject) -> None:
                method, path, body = data.draw(st.sampled_from(BODIES))
                sent = json.dumps(data.draw(altered(body))).encode()
                headers = {
                    "Authorization": f"Bearer {data.draw(st.sampled_from(keys))}",
                    "Accept": "application/json, text/event-stream",
                    "Content-Type": "application/json",
                }
                answer = client.request(method, home.url + path, content=sent, headers=headers)
                assert answer.status_code < 500, (answer.status_code, answer.text, sent)
                if answer.status_code >= 400 and path != "/mcp":
                    assert answer.json()["error"]["message"], answer.text

            await held(check)


@pytest.mark.parametrize("kind", ["api", "page"])
async def test_any_text_in_a_header_is_answered(tmp_path: Path, unused_tcp_port: int, kind: str) -> None:
    if kind == "api":
        async with house(tmp_path, model=Endless()) as home:
            known = [{"Authorization": f"Bearer {key}"} for key in (await home.key(), FRONT_KEY, SHARED_KEY)]
            await held(
                _headers(home.url, known, [(method, path) for method, path, _ in BODIES] + [("GET", "/v1/models")])
            )
        return
    async with paged(tmp_path, port=unused_tcp_port) as page:
        ada = await page.signed_in()
        known = [{"Cookie": f"remora={ada.client.cookies['remora']}"}, {}]
        paths = [
            (route.method, route.pattern.replace("{thread}", "main"))
            for route in PAGES
            if "events" not in route.pattern
        ]
        await held(
            _headers(page.url, known, [*paths, ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/static/x/y")])
        )


def _headers(url: str, known: list[dict[str, str]], paths: list[tuple[str, str]]) -> Callable[[], None]:
    @_EXAMPLES
    @given(
        at=st.sampled_from(paths),
        who=st.sampled_from(known),
        given_=st.dictionaries(st.sampled_from(_HEADERS), _HEADER, min_size=1, max_size=3),
        length=st.none() | st.sampled_from([b"-1", b"", b"1e3", b"2, 2", b"9" * 400, "٣".encode()]),
    )
    def check(at: tuple[str, str], who: dict[str, str], given_: dict[str, bytes], length: bytes | None) -> None:
        usual = {"Host": "localhost", "Sec-Fetch-Site": "same-origin", "Content-Length": "2", **who}
        lines = {name.lower(): (name, value.encode()) for name, value in usual.items()}
        lines |= {name.lower(): (name, value) for name, value in given_.items()}
        if length is not None:
            lines["content-length"] = ("Content-Length", length)
        head = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in lines.values())
        status, answer = asked(url, f"{at[0]} {at[1]} HTTP/1.1\r\n".encode() + head + b"\r\n", b"{}")
        assert status < 500, (status, answer, at, given_)

    return check


async def test_any_address_is_answered(tmp_path: Path, unused_tcp_port: int) -> None:
    """Paths and queries of the page, of memory and of the rest may hold anything."""
    async with paged(tmp_path, port=unused_tcp_port) as page:
        ada = await page.signed_in()
        cookie = f"Cookie: remora={ada.client.cookies['remora']}"
        patterns = [route.pattern for route in PAGES if route.method == "GET" and "events" not in route.pattern]
        names = ["q", "on", "page", "seen", "back", "kind", "month", "at", "filter", "about", "sort", "day", "since"]

        @_EXAMPLES
        @given(
            pattern=st.sampled_from([*patterns, "/static/{a}/{b}", "/{x}", "/healthz/{x}"]),
            word=_WORDS,
            query=st.dictionaries(st.sampled_from(names) | _WORDS, _WORDS, max_size=3),
            raw=st.booleans(),
        )
        def check(pattern: str, word: str, query: dict[str, str], raw: bool) -> None:
            def part(text: str) -> str:
                shown = text.encode("utf-8", "surrogatepass")
                return "".join(chr(byte) for byte in shown if 32 < byte < 127) if raw else quote(shown, safe="")

            path = "/".join(part(word) if piece.startswith("{") else piece for piece in pattern.split("/"))
            asks = "&".join(f"{part(name)}={part(value)}" for name, value in query.items())
            head = f"GET {path}?{asks} HTTP/1.1\r\nHost: localhost\r\n{cookie}\r\n\r\n"
            status, answer = asked(page.url, head.encode("ascii"))
            assert status < 500, (status, answer[-2_000:], head)

        await held(check)
