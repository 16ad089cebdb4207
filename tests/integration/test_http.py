"""The health page over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.http import AddressUnusable, ChannelReport, Report, StoreReport, address, ask, serving, told
from tests.loopback import Answer, Asked
from tests.loopback import serving as answering

GREEN = Report(
    reasons=(),
    channels={"telegram": ChannelReport(last_poll_seconds_ago=3, trouble="")},
    stores=(
        StoreReport(name="remora.db", oldest_inbox_seconds=None, oldest_outbox_seconds=4, damage=None, wal_bytes=8192),
    ),
    version="0.1.0",
    uptime_seconds=7300,
)
RED = Report(
    reasons=("telegram: another process polls with this token.",),
    channels={"telegram": ChannelReport(last_poll_seconds_ago=None, trouble="another process polls with this token.")},
    stores=GREEN.stores,
    version="0.1.0",
    uptime_seconds=5,
)


class Page:
    """The page with a report that can be changed, and a client of it."""

    def __init__(self) -> None:
        self.report = GREEN
        self.url = ""

    async def now(self) -> Report:
        return self.report

    async def get(self, method: str = "GET", path: str = "/healthz", **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.request(method, self.url.replace("/healthz", path), headers=headers)

    @property
    def port(self) -> int:
        return httpx.URL(self.url).port or 0


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    page = Page()
    async with serving(page.now, host="127.0.0.1", port=0) as page.url:
        yield page


async def test_green_is_200_with_everything_a_monitor_asks_for(page: Page) -> None:
    """The names in it are what people build alarms on."""
    answer = await page.get()
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "green",
        "reasons": [],
        "channels": {"telegram": {"last_poll_seconds_ago": 3, "trouble": ""}},
        "stores": [
            {
                "name": "remora.db",
                "oldest_inbox_seconds": None,
                "oldest_outbox_seconds": 4,
                "damage": None,
                "wal_bytes": 8192,
            }
        ],
        "version": "0.1.0",
        "uptime_seconds": 7300,
    }


async def test_red_is_503_with_its_reasons(page: Page) -> None:
    """Service managers and containers look at the code only."""
    page.report = RED
    answer = await page.get()
    assert (answer.status_code, answer.json()["status"]) == (503, "red")
    assert answer.json()["reasons"] == list(RED.reasons)
    head = await page.get("HEAD")
    assert (head.status_code, head.content) == (503, b"")


async def test_nothing_else_can_be_asked(page: Page) -> None:
    """A page that can only be looked at can't be used against the bot."""
    assert (await page.get("POST")).status_code == 405
    assert (await page.get("DELETE")).status_code == 405
    assert (await page.get(path="/")).status_code == 404
    assert (await page.get(path="/healthz/x")).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost:8765", 200),
        ("127.0.0.1:1", 200),
        ("127.9.9.9", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("evil.example:8765", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("192.168.1.5", 421),
        ("[::1].evil", 200),
    ],
)
async def test_only_names_of_this_machine_are_answered(page: Page, host: str, status: int) -> None:
    """A web page whose name was turned to this machine's address must not read it. (No name can hold brackets.)"""
    assert (await page.get(Host=host)).status_code == status


async def test_who_listens_to_the_network_is_answered_by_any_name() -> None:
    """The operator chose to show it there, and only they know the names."""
    page = Page()
    async with serving(page.now, host="0.0.0.0", port=0) as page.url:
        assert page.url == address("0.0.0.0", page.port) == f"http://127.0.0.1:{page.port}/healthz"
        assert (await page.get(Host="remora:8765")).status_code == 200


async def test_port_that_is_taken_is_told_with_what_to_do(page: Page) -> None:
    """The usual cause is a second bot on the machine."""
    with pytest.raises(AddressUnusable, match=rf"at 127\.0\.0\.1:{page.port}: .*Choose another http\.port"):
        async with serving(page.now, host="127.0.0.1", port=page.port):
            raise AssertionError("it must not be served twice")


async def test_asking_finds_the_page_and_tells_it_in_words(page: Page) -> None:
    """`remora status` is for people who do not read JSON."""
    found = await asyncio.to_thread(ask, "127.0.0.1", page.port)
    assert found is not None
    assert told(found) == (
        "Remora 0.1.0 is well, running for 2 h.\n  telegram: last contact 3 s ago\n"
        "  remora.db: an answer is undelivered for 4 s"
    )
    page.report = RED
    found = await asyncio.to_thread(ask, "0.0.0.0", page.port)
    assert found is not None
    assert told(found).startswith(
        "Remora 0.1.0 is in trouble, running for 5 s.\n  ! telegram: another process polls with this token.\n"
        "  telegram: no contact yet\n"
    )


@pytest.mark.parametrize("body", ["<html>", "[]", '"ok"', '{"status": "green"}'])
async def test_what_is_no_remora_is_not_taken_for_one(body: str) -> None:
    """Something else may listen at the port."""

    async def anything(asked: Asked) -> Answer:
        return Answer(body=body)

    async with answering(anything) as url:
        assert await asyncio.to_thread(ask, "127.0.0.1", httpx.URL(url).port or 0) is None


async def test_asking_where_nobody_listens_finds_nothing() -> None:
    """That is how `remora status` knows that nothing runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert await asyncio.to_thread(ask, "127.0.0.1", free.getsockname()[1]) is None
