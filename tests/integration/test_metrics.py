"""The metrics page and the readiness page of a running bot, and the dashboard and the manual that go by the metrics."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.ops.health import told
from tests.kit.patience import SECONDS
from tests.kit.served import ANN, BOB, ROOT, TELEGRAM_TOKEN, Served
from tests.platforms.telegram import Control, serving

Page = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving((TELEGRAM_TOKEN,)) as control:
        yield control


async def asked(port: int, path: str = "/metrics", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}", headers=headers)


def read(page: httpx.Response) -> Page:
    found: Page = {}
    for family in text_string_to_metric_families(page.text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(page: Page, name: str, **labels: str) -> float:
    return sum(number for own, number in page[name] if labels.items() <= own.items())


async def test_what_happened_is_counted_and_nobody_is_named(
    tmp_path: Path, telegram: Control, unused_tcp_port: int
) -> None:
    """A turn that ends well, one that fails, a delivery that is tried again; and the dashboard finds all it shows."""
    served = Served(tmp_path, telegram=telegram, model_url=telegram.model_url, port=unused_tcp_port)
    async with served.running():
        await served.health()
        before = read(await asked(unused_tcp_port))
        assert value(before, "remora_uptime_seconds") >= 0 and "remora_turns_total" not in before
        await telegram.say("My name is Quaxolia", user=ANN, name="Quaxolia")
        await telegram.wait(chat=ANN, bot_messages=1)
        await telegram.fault("status", method="model", text="nothing", times=0, status=400, body='{"error": "no"}')
        await telegram.fault("refuse", method="sendMessage", status=429, description="Too Many Requests", retry_after=1)
        await telegram.say("nothing works", user=BOB, name="Bob")
        await telegram.wait(chat=BOB, bot_messages=1)
        answer = await asked(unused_tcp_port)
        ready = await asked(unused_tcp_port, "/readyz")
        stranger = await asked(unused_tcp_port, Host="evil.example")
    page = read(answer)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert (ready.status_code, ready.json()) == (200, {"ready": True}) and stranger.status_code == 421
    ends = {labels["end"]: number for labels, number in page["remora_turns_total"]}
    assert ends.pop("answered") == 1 and list(ends.values()) == [1]
    assert value(page, "remora_turn_part_seconds_count", part="answer") == 2
    assert value(page, "remora_turn_part_seconds_bucket", part="look", le="+Inf") == 2
    assert value(page, "remora_deliveries_total", channel="telegram", fate="sent") == 2
    assert value(page, "remora_deliveries_total", channel="telegram") > 2
    assert value(page, "remora_tokens_total", purpose="chat", direction="in", store="remora.db") == 10
    assert value(page, "remora_model_calls_total", purpose="chat") == 1
    assert value(page, "remora_waiting", what="inbox") == value(page, "remora_queue_age_seconds") == 0
    assert value(before, "remora_rows", table="messages") == 0 == value(page, "remora_rows", table="messages")
    assert value(page, "remora_store_bytes", file="log") > 100_000
    assert value(page, "process_resident_memory_bytes") > 1_000_000
    assert value(page, "remora_healthy") == 1 and value(page, "remora_channel_trouble", channel="telegram") == 0
    for person in ("Quaxolia", "Bob", f'"{ANN}"', f'"{BOB}"', "nothing works"):
        assert person not in answer.text
    shown = (ROOT / "docs" / "grafana.json").read_text()
    manual = (ROOT / "docs" / "operation.md").read_text()
    exposed = set(re.findall(r"^# TYPE (\w+)", answer.text, re.MULTILINE))
    samples = page.keys() | exposed
    expressions = [target["expr"] for panel in json.loads(shown)["panels"] for target in panel["targets"]]
    used = {name for expr in expressions for name in re.findall(r"\b(?:remora|process)_\w+", expr)}
    assert used <= samples
    ours = {name for name in exposed if name.startswith("remora_")}
    assert ours == {name for name in ours if any(one.startswith(name) for one in used)}
    assert ours == {name for name in ours if f"`{name}" in manual}


async def test_a_stall_is_counted_and_shown_but_turns_nothing_red(
    tmp_path: Path, telegram: Control, unused_tcp_port: int
) -> None:
    """An operator finds what made everybody wait; a service manager does not restart a bot for it."""
    served = Served(tmp_path, telegram=telegram, port=unused_tcp_port)
    async with served.running():
        await served.health()
        until = time.thread_time() + 0.2
        while time.thread_time() < until:  # in the loop of the bot
            sum(range(1_000))
        page, health = read(await asked(unused_tcp_port)), await served.health()
        status = await asyncio.to_thread(told, health)
    assert value(page, "remora_loop_stood_seconds_count") >= 1
    assert value(page, "remora_loop_stood_seconds_sum") >= 0.2
    assert value(page, "remora_loop_stood_processor_seconds_total") >= 0.2
    assert value(page, "remora_loop_longest_stall_seconds") >= 0.2
    assert health["status"] == "green" and health["stall"]["seconds"] >= 0.2
    assert f"the longest stall of late: {health['stall']['seconds']:.1f} s" in status


async def test_before_and_after_it_takes_messages_it_is_not_ready(tmp_path: Path, unused_tcp_port: int) -> None:
    """A balancer sends nobody to a bot that would put them off."""
    from gateway.ops.health import Report
    from gateway.ops.http import serving

    async def report() -> Report:
        return Report(reasons=(), channels={}, stores=(), version="", uptime_seconds=0)

    async with serving(report, host="127.0.0.1", port=unused_tcp_port, hearing=lambda: False):
        assert (await asked(unused_tcp_port, "/readyz")).status_code == 503
        assert (await asked(unused_tcp_port, "/metrics")).status_code == 503
        assert (await asked(unused_tcp_port, "/healthz")).status_code == 200
