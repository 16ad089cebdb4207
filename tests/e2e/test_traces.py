"""Spans reach a collector that speaks OpenTelemetry's protocol: those of a turn, and nothing of anybody."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.spans import span
from gateway.ops.telemetry import traced
from tests.kit.paced import keep
from tests.kit.patience import SECONDS
from tests.kit.served import SELDOM

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
CALL = {"id": "c1", "type": "function", "function": {"name": "search_memory", "arguments": '{"query": "Zanzibar"}'}}
ANSWERS: list[dict[str, Any]] = [
    {"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "finish_reason": "tool_calls"},
    {"message": {"role": "assistant", "content": "Zanzibar it is."}, "finish_reason": "stop"},
]


@asynccontextmanager
async def outside(sent: list[bytes]) -> AsyncIterator[str]:
    """A model that calls a tool and then answers, and a collector; yields their address."""
    answers = iter(ANSWERS)

    async def chat(request: web.Request) -> web.Response:
        return web.json_response({"choices": [next(answers)]})

    async def traces(request: web.Request) -> web.Response:
        sent.append(await request.read())
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_post("/v1/traces", traces)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def chatted(home: Path, address: str) -> str:
    (home / "agents").mkdir()
    (home / "config.yaml").write_text("embedding: {provider: none}\n")
    keep(SELDOM, home)
    model = {"provider": "openai", "model": "kept", "base_url": f"{address}/v1"}
    agent = {"name": "assistant", "models": [model]}
    (home / "agents" / "assistant.yaml").write_text(json.dumps(agent))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.kit.paced", "chat", "--as", "Philomena", "--once", "Where is my Zanzibar trip?"),
        *("--config", str(home / "config.yaml")),
        cwd=home, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home),
             "OTEL_EXPORTER_OTLP_ENDPOINT": address},
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return out.decode()


async def test_the_spans_of_a_turn_reach_the_collector_and_hold_nothing_personal(tmp_path: Path) -> None:
    """An operator sees where the time of a turn goes, and a collector elsewhere learns nothing of anybody."""
    protocol = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs the extra remora[otel]"
    )
    sent: list[bytes] = []
    async with outside(sent) as address:
        assert "Zanzibar it is." in await chatted(tmp_path, address)
    requests = [protocol.ExportTraceServiceRequest.FromString(body) for body in sent]
    scopes = [scope for request in requests for resource in request.resource_spans for scope in resource.scope_spans]
    spans = [one for scope in scopes for one in scope.spans]
    names = {one.span_id: one.name for one in spans}
    (turn,) = [one for one in spans if one.name == "turn"]
    found = {(names.get(one.parent_span_id, ""), one.name) for one in spans if one.trace_id == turn.trace_id}
    parts = {("turn", "look"), ("turn", "answer"), ("turn", "commit"), ("turn", "delivery")}
    assert parts | {("", "turn"), ("answer", "model"), ("answer", "tool")} <= found
    assert {one.key: one.value.string_value for one in turn.attributes} == {
        "remora.agent": "assistant", "remora.channel": "console",
    }  # fmt: skip
    assert {scope.scope.name for scope in scopes} == {"remora"}
    assert not any(word in body for body in sent for word in (b"Zanzibar", b"Philomena", b"trip"))


@pytest.mark.parametrize("off", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
async def test_nothing_is_sent_unless_a_collector_is_named(off: dict[str, str]) -> None:
    sent: list[bytes] = []
    async with outside(sent) as address:
        with traced({**off, **({"OTEL_EXPORTER_OTLP_ENDPOINT": address} if off else {})}), span("turn"):
            pass
    assert sent == []
