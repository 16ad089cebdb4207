"""The health page and webhooks over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress

import httpx
import pytest
from structlog.testing import capture_logs

from channels.base import Hook, NotTaken
from gateway.ops.http import (
    AddressUnusable,
    ChannelReport,
    Report,
    ServerBounds,
    StoreReport,
    address,
    ask,
    serving,
    told,
)
from gateway.ops.telemetry import configure
from tests.kit.loopback import Answer, Asked
from tests.kit.loopback import serving as answering

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
        "channels": {"telegram": {"last_poll_seconds_ago": 3, "trouble": "", "stands_by": False}},
        "stores": [
            {
                "name": "remora.db",
                "oldest_inbox_seconds": None,
                "oldest_outbox_seconds": 4,
                "damage": None,
                "wal_bytes": 8192,
                "words_only": "",
                "deployment": None,
                "set_aside": 0,
            }
        ],
        "version": "0.1.0",
        "uptime_seconds": 7300,
        "stall": None,
        "loops": [],
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


async def test_a_head_that_trickles_in_is_given_up() -> None:
    """Anybody could hold lines open for ever, a byte a minute each."""
    async with serving(Page().now, host="127.0.0.1", port=0, bounds=ServerBounds(head_seconds=0.2)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")

        async def trickle() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.05)

        trickling = asyncio.create_task(trickle())
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        trickling.cancel()
        writer.close()


async def test_who_has_been_sending_longest_makes_room() -> None:
    """However many hold lines open, a request that comes whole is answered; by address nobody can be told apart, for
    behind a proxy all come from one."""
    page = Page()
    async with (
        serving(page.now, host="127.0.0.1", port=0, bounds=ServerBounds(most=3)) as page.url,
        asyncio.timeout(20),
    ):
        lines = []
        for number in range(10):
            lines.append(await asyncio.open_connection("127.0.0.1", page.port))
            lines[-1][1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" if number % 2 else b"")
        assert (await page.get()).status_code == 200
        for reader, _ in lines[:7]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        lines[9][1].write(b"\r\n")
        assert (await lines[9][0].readline()).startswith(b"HTTP/1.1 200 ")
        for _, writer in lines:
            writer.close()


async def test_a_line_carries_one_request(page: Page) -> None:
    """One that is kept for a next one is held for nothing."""
    answer = await page.get()
    assert answer.headers["Connection"] == "close"
    assert (await page.get(path="/nothing")).headers["Connection"] == "close"


async def test_what_is_no_request_is_answered_and_not_logged(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    """Else whoever reaches the port could fill the disk, with words of their own."""
    configure(level="info", format="json", file=None, redact=lambda text: text)
    for garbage in (b"GET /healthz HTTP/1.1\r\nnonsense of Ada's\r\n\r\n", b"\x16\x03\x01" * 99 + b"\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(garbage)
        async with asyncio.timeout(20):
            assert (await reader.read()).startswith(b"HTTP/1.")
        writer.close()
    assert caplog.text == ""


# --- webhooks ---


class Receiver:
    """A channel's end of a webhook: what it was handed, and what it says to it."""

    def __init__(self, limit: int = 1000) -> None:
        self.hook = Hook(path="/wire/in", limit=limit, take=self.take)
        self.taken: list[tuple[Mapping[str, str], bytes]] = []
        self.status = 200
        self.hearing = True
        self.error: Exception | None = None
        self.began = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.url = ""

    async def take(self, headers: Mapping[str, str], body: bytes) -> int:
        self.began.set()
        await self.goes_on.wait()
        self.taken.append((headers, body))
        if self.error is not None:
            raise self.error
        return self.status

    async def post(self, content: bytes | AsyncIterator[bytes], **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.post(self.url, content=content, headers=headers)

    async def raw(self, request: bytes) -> bytes:
        """Sends a request that is never completed; returns what comes back until the other end closes."""
        url = httpx.URL(self.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(request)
        try:
            async with asyncio.timeout(20):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with serving(
        Page().now,
        host="127.0.0.1",
        port=0,
        hooks=lambda: [receiver.hook],
        hearing=lambda: receiver.hearing,
        bounds=ServerBounds(body_seconds=0.2),
    ) as page:
        receiver.url = page.replace("/healthz", "/wire/in")
        yield receiver


async def test_a_delivery_is_handed_over_and_answered_as_it_was_taken(receiver: Receiver) -> None:
    """The platform repeats whatever is not answered well, so the channel's word must reach it unchanged."""
    for status in (200, 204, 401, 503):
        receiver.status = status
        answer = await receiver.post(b'{"a": 1}', **{"X-Secret-Token": "S", "Host": "bot.example.org"})
        assert (answer.status_code, answer.content) == (status, b"")
    headers, body = receiver.taken[0]
    assert body == b'{"a": 1}'
    assert headers["x-secret-token"] == "S" and all(name == name.lower() for name in headers)


async def test_nothing_but_a_post_is_taken(receiver: Receiver) -> None:
    """A browser led there must do nothing."""
    async with httpx.AsyncClient(trust_env=False) as client:
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert (await client.request(method, receiver.url)).status_code == 405
        assert (await client.post(receiver.url + "/x")).status_code == 404
    assert receiver.taken == []


async def test_a_body_at_the_limit_is_taken_and_one_beyond_is_not(receiver: Receiver) -> None:
    """Whether its length is told before or not."""

    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // 100):
            yield b"x" * 100
        yield b"x" * (size % 100)

    assert (await receiver.post(b"x" * 1000)).status_code == 200
    assert (await receiver.post(pieces(1000))).status_code == 200
    assert (await receiver.post(b"x" * 1001)).status_code == 413
    assert (await receiver.post(pieces(1001))).status_code == 413
    assert [len(body) for _, body in receiver.taken] == [1000, 1000]


async def test_a_body_that_says_it_is_too_large_is_not_waited_for(receiver: Receiver) -> None:
    """The line is closed: it would take as long as the sender likes."""
    said = await receiver.raw(b"POST /wire/in HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 413 ")
    assert receiver.taken == []


async def test_a_body_that_does_not_come_is_given_up(receiver: Receiver) -> None:
    """Anybody could hold lines open, for nothing."""
    said = await receiver.raw(b"POST /wire/in HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    assert said.startswith(b"HTTP/1.1 408 ")
    assert receiver.taken == []


async def test_a_body_on_its_way_makes_room_and_a_delivery_in_hand_does_not() -> None:
    """Who sends slowly must not crowd out what was sent."""
    receiver = Receiver()
    receiver.goes_on.clear()
    async with (
        serving(
            Page().now, host="127.0.0.1", port=0, hooks=lambda: [receiver.hook], bounds=ServerBounds(most=2)
        ) as page,
        asyncio.timeout(20),
    ):
        receiver.url = page.replace("/healthz", "/wire/in")
        posting = asyncio.create_task(receiver.post(b"whole"))
        await receiver.began.wait()
        half = b"POST /wire/in HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"
        slow = [asyncio.create_task(receiver.raw(half)) for _ in range(5)]
        waiting = set(slow)
        while len(waiting) > 1:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        receiver.goes_on.set()
        assert (await posting).status_code == 200
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
    assert [body for _, body in receiver.taken] == [b"whole"]


async def test_a_body_that_breaks_off_is_none(receiver: Receiver) -> None:
    """Neither half of it nor one in pieces that are none is handed over, and the log is not filled with it."""
    said = await receiver.raw(
        b"POST /wire/in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
    )
    assert said.startswith(b"HTTP/1.0 400 ")
    assert receiver.taken == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotTaken("the disk is full of Ada's letters"), {"event": "hook.failed", "code": "not_taken"}),
        (ValueError("not a number: Ada's letters"), {"event": "http.crashed", "code": "ValueError"}),
    ],
)
async def test_a_delivery_that_fails_is_told_by_its_code_alone(
    receiver: Receiver, error: Exception, told: dict[str, str]
) -> None:
    """The platform delivers it again; what somebody said must not get into the log by the way of an error."""
    receiver.error = error
    with capture_logs() as logs:
        answer = await receiver.post(b"Ada's letters")
    assert (answer.status_code, answer.content) == (500, b"")
    (line,) = logs
    assert told.items() <= line.items() and line["path"] == "/wire/in"
    assert "Ada" not in str(logs)
    assert ("at" in line) is ("crashed" in told["event"])


async def test_while_nothing_is_heard_a_delivery_is_put_off(receiver: Receiver) -> None:
    """The process starts or ends: the platform brings it again."""
    receiver.hearing = False
    answer = await receiver.post(b"early")
    assert (answer.status_code, answer.content) == (503, b"")
    receiver.hearing = True
    assert (await receiver.post(b"later")).status_code == 200
    assert [body for _, body in receiver.taken] == [b"later"]


async def test_at_the_end_a_delivery_in_hand_is_finished() -> None:
    """It was perhaps committed: without an answer it would come again for nothing."""
    receiver = Receiver()
    receiver.goes_on.clear()
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(
            serving(Page().now, host="127.0.0.1", port=0, hooks=lambda: [receiver.hook])
        )
        receiver.url = page.replace("/healthz", "/wire/in")
        posting = asyncio.create_task(receiver.post(b"x"))
        await receiver.began.wait()
        ending = asyncio.create_task(stack.aclose())
        await asyncio.sleep(0)
        receiver.goes_on.set()
        async with asyncio.timeout(20):
            answer = await posting
            await ending
    assert answer.status_code == 200
