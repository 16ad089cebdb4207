"""Several processes on one PostgreSQL server, as status, doctor, metrics and the health page tell about them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from channels.base import Health
from gateway.cli import examination
from gateway.config.loading import load
from gateway.ops import health
from gateway.pipeline.policy import Rules
from gateway.serve import judge
from memory.service import Service
from memory.store.server import ServerState, Standby
from tests.kit import postgres
from tests.kit.fakes import Clock
from tests.kit.patience import SECONDS, until
from tests.kit.pipeline import pipeline
from tests.kit.served import TELEGRAM_TOKEN, Served
from tests.kit.stores import opened
from tests.platforms.telegram import Control, serving

pytestmark = pytest.mark.postgres
if postgres.is_installed():
    import psycopg

LOST = "the other processes took this one for dead"


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving((TELEGRAM_TOKEN,)) as control:
        yield control


@pytest.fixture
def own_server() -> Iterator[postgres.Server]:
    """A server that may be killed, with the database of the stores."""
    with postgres.running({"fsync": "off", "max_connections": "30"}) as own:
        own.database("remora")
        yield own


@asynccontextmanager
async def answering(path: Path, url: str) -> AsyncIterator[Service]:
    """A process that has the store open and answers."""
    async with opened(path, Clock(), database_url=url) as memory:
        await memory.share.begin()
        yield memory


async def asked(port: int | None, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


async def figures(port: int | None) -> dict[str, list[tuple[dict[str, str], float]]]:
    page: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families((await asked(port, "/metrics")).text):
        page[family.name] = [(dict(sample.labels), sample.value) for sample in family.samples]
    return page


async def settled(*pages: Served) -> list[dict[str, Any]]:
    """The health pages, once both processes answer and one of them receives."""

    async def seen() -> list[dict[str, Any]]:
        found = [await page.health() for page in pages]
        counts = [len([p for p in one["stores"][0]["deployment"]["peers"] if p["answers"]]) for one in found]
        waiting = [one["channels"]["telegram"]["stands_by"] for one in found]
        # Before it receives at all, a process doesn't stand by either.
        told = ["bot telegram" in str(one["stores"][0]["deployment"]["peers"]) for one in found]
        return found if counts == [2, 2] and all(told) and sorted(waiting) == [False, True] else []

    return await until(seen)


async def test_two_processes_are_told_of_by_page_status_metrics_and_doctor(
    tmp_path: Path, telegram: Control, unused_tcp_port_factory: Callable[[], int]
) -> None:
    """Of two processes that poll, one receives, and the other stands by and is well."""
    address = postgres.url(tmp_path / "data" / "remora.db")
    data = str(tmp_path / "data")
    both = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        port = unused_tcp_port_factory()
        both.append(Served(tmp_path / name, telegram=telegram, port=port, data_dir=data, database_url=f"'{address}'"))
    async with both[0].running(), both[1].running():
        pages = await settled(*both)
        measured = [await figures(one.port) for one in both]
        config = load(both[0].folder / "config.yaml", {}, both[0].folder)
        findings = {one.about: one async for one in examination.examine(config, outside=False)}
    assert [page["status"] for page in pages] == ["green", "green"]
    waiting = [page["channels"]["telegram"]["stands_by"] for page in pages]
    assert sorted(waiting) == [False, True]
    receiver, other = waiting.index(False), waiting.index(True)
    assert "  telegram: stands by; another process receives for this bot" in health.told(pages[other])
    told = health.told(pages[receiver]).splitlines()
    assert any("PostgreSQL 18" in line and line.endswith("; 2 processes answer") for line in told)
    (own,) = [line for line in told if "(this one)" in line]
    assert own.endswith("; bot telegram") or "; bot telegram; " in own
    for figure in measured:
        assert figure["remora_processes"] == [({"store": "remora.db"}, 2)]
        assert figure["remora_store_info"][0][0]["engine"] == "PostgreSQL"
        assert 0 <= figure["remora_sign_of_life_age_seconds"][0][1] < 4
        assert figure["remora_taken_for_dead"] == [({"store": "remora.db"}, 0)]
        assert figure["remora_sessions_held"] == [({"store": "remora.db"}, 0)]
    duties = [{labels["duty"] for labels, _ in figure["remora_duty"]} for figure in measured]
    assert "bot telegram" in duties[receiver] - duties[other]
    assert findings["remora.db"].text.startswith("PostgreSQL 18") and "pgvector 0." in findings["remora.db"].text
    assert findings["remora.db: processes"].text.startswith("2 running: ")
    assert "bot telegram" in findings["remora.db: processes"].text
    assert findings["remora.db: connections"].state == "ok"
    # The tests' server is to be fast.
    assert findings["remora.db: durability"].state == "trouble"


async def test_without_its_server_a_process_is_red_and_not_ready_until_it_is_back(
    tmp_path: Path, own_server: postgres.Server, unused_tcp_port: int
) -> None:
    async with serving((TELEGRAM_TOKEN,)) as telegram:
        url = f"'{own_server.address} dbname=remora'"
        served = Served(tmp_path, telegram=telegram, port=unused_tcp_port, database_url=url)
        async with served.running():
            await ready(unused_tcp_port, 200)
            own_server.kill()
            await ready(unused_tcp_port, 503)
            # A balancer and `remora status` don't wait for the server, which is started only then.
            page = await served.health()
            own_server.start()
            await ready(unused_tcp_port, 200)
    assert page["status"] == "red"
    assert page["reasons"][0].startswith("remora.db: the PostgreSQL server has not been reached for ")


async def ready(port: int, status: int) -> None:
    async def told() -> bool:
        try:
            return (await asked(port, "/readyz")).status_code == status
        except httpx.TransportError:
            return False

    await until(told)


async def test_a_process_that_was_taken_for_dead_says_so(tmp_path: Path) -> None:
    path = tmp_path / "remora.db"
    url = postgres.url(path)
    async with answering(path, url) as memory:
        assert memory.share.trouble == ""
        with psycopg.connect(url) as connection:
            connection.execute(b"delete from remora.replicas")
        await until(memory.share.lost.is_set)
        health = await memory.stats.health([])
        assert memory.share.trouble.startswith(LOST)
        assert health.deployment is not None and health.deployment.is_lost


@pytest.mark.stands("it starts a server itself")
async def test_a_standby_is_followed_as_far_as_the_role_may_see_it(tmp_path: Path, own_server: postgres.Server) -> None:
    path, url = tmp_path / "remora.db", f"{own_server.address} dbname=remora"
    second = postgres.Server({"hot_standby": "on", "max_connections": "30"}, of=own_server)
    second.start()
    try:
        async with answering(path, url) as memory:

            async def standbys() -> tuple[Standby, ...]:
                found = (await memory.stats.health([])).deployment
                assert found is not None and found.server is not None
                return found.server.standbys

            assert await standbys() == (Standby(name="walreceiver", state=None, lag_bytes=None, lag_seconds=None),)
            with psycopg.connect(f"{postgres.superuser(own_server.address)} dbname=remora") as connection:
                connection.execute(f"grant pg_monitor to {postgres.ROLE}".encode())

            async def level() -> Standby | None:
                standby = (await standbys())[0]
                return standby if standby.state == "streaming" and not standby.lag_bytes else None

            found = await until(level)
            assert found is not None
    finally:
        second.remove()
    assert (found.name, found.lag_bytes) == ("walreceiver", 0)


async def test_an_admin_is_told_of_several_processes(tmp_path: Path) -> None:
    url = postgres.url(tmp_path / "remora.db")
    rules = {"telegram": Rules(admins=frozenset({"7"}))}
    async with pipeline(tmp_path, rules=rules, shared=url) as one:
        (alone,) = await one.say("/status", author="7")
        async with pipeline(tmp_path, rules=rules, shared=url):

            async def both_answer() -> bool:
                return await one.rows("select count(*) from replicas where answers = 1") == [(2,)]

            await until(both_answer)
            (status,) = await one.say("/status", author="7")
    assert "Processes that answer from it: 2" in status
    assert "Processes" not in alone


def state(**of: Any) -> ServerState:
    given: dict[str, Any] = {"vectors": "0.8.0", "fsync": True, "synchronous_commit": True, "most_connections": 97}
    return ServerState(**(given | {"standbys": ()} | of))


@pytest.mark.parametrize(
    ("server_state", "asked_for", "found"),
    [
        (state(), False, "ok"),
        (state(synchronous_commit=False), False, "warning"),
        (state(synchronous_commit=False), True, "ok"),
        (state(fsync=False), True, "trouble"),
    ],
)
def test_what_a_crash_of_the_server_may_lose_is_told(server_state: ServerState, asked_for: bool, found: str) -> None:
    finding = examination.durability("remora.db", server_state, asked_for=asked_for)
    assert finding.state == found and bool(finding.fix) == (found != "ok")


@pytest.mark.parametrize(("allowed", "found"), [(15, "ok"), (14, "warning"), (10, "warning"), (9, "trouble")])
def test_connections_must_be_enough_for_one_process_more(allowed: int, found: str) -> None:
    finding = examination.connections("remora.db", state(most_connections=allowed), processes=2, each=5)
    assert finding.state == found and bool(finding.fix) == (found != "ok")


@pytest.mark.parametrize(
    ("phase", "lag_bytes", "seconds", "found"),
    [
        ("streaming", 0, None, "ok"), ("streaming", 9_000_000, 3.0, "ok"), ("streaming", 9_000_000, 61.0, "warning"),
        ("streaming", 300_000_000, None, "warning"), ("catchup", 10, None, "warning"), (None, None, None, "warning"),
    ],
)  # fmt: skip
def test_a_standby_that_is_far_behind_is_a_warning(
    phase: str | None, lag_bytes: int | None, seconds: float | None, found: str
) -> None:
    standby = Standby(name="second", state=phase, lag_bytes=lag_bytes, lag_seconds=seconds)
    finding = examination.following("remora.db", standby)
    assert finding.state == found and bool(finding.fix) == (found != "ok")


def test_trouble_of_a_platform_is_that_of_whoever_receives() -> None:
    trouble = Health(trouble="a rival polls.")
    given: dict[str, Any] = {"stores": {}, "now": 0, "uptime": 500.0, "turn_seconds": 180, "version": "1"}
    standing_by = judge(channels={"wire": trouble}, connecting={"wire": None}, **given)
    receiving = judge(channels={"wire": trouble}, connecting={"wire": 3.0}, **given)
    assert (standing_by.status, standing_by.channels["wire"].stands_by) == ("green", True)
    assert (receiving.status, receiving.channels["wire"].stands_by) == ("red", False)
