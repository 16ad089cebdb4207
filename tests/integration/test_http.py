"""The health page and webhooks over real sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from channels.base import Hook, NotTaken
from gateway.ops.connections import Listener, ServerBounds
from gateway.ops.health import ChannelReport, Report, StoreReport, address, ask, told
from gateway.ops.http import AddressUnusable, Admission, serving
from gateway.ops.telemetry import configure
from tests.kit.loopback import Answer, Asked
from tests.kit.loopback import serving as answering
from tests.kit.patience import SECONDS, hasten, leap, limit, settle, until

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
    def __init__(self) -> None:
        self.report = GREEN
        self.url = ""
        self.reports = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def now(self) -> Report:
        self.reports += 1
        await self.goes_on.wait()
        return self.report

    async def get(self, method: str = "GET", path: str = "/healthz", **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
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
        "channels": {"telegram": {"last_poll_seconds_ago": 3, "trouble": "", "stands_by": False, "unread": 0}},
        "stores": [
            {
                "name": "remora.db", "oldest_inbox_seconds": None, "oldest_outbox_seconds": 4, "damage": None,
                "wal_bytes": 8192, "words_only": "", "deployment": None, "set_aside": 0, "muted": 0,
            }
        ],
        "version": "0.1.0",
        "uptime_seconds": 7300,
        "models": {},
        "stall": None,
        "loops": [],
    }  # fmt: skip


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
        ("localhost", 200), ("LocalHost:8765", 200), ("127.0.0.1:1", 200), ("127.9.9.9", 200), ("[::1]:80", 200),
        ("localhost.", 200), ("localhost.:8765", 200), ("localhost..", 421), (".", 421), ("evil.example", 421),
        ("evil.example:8765", 421), ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421),
        ("192.168.1.5", 421), ("[::1].evil", 421),
    ],
)  # fmt: skip
async def test_only_names_of_this_machine_are_answered(page: Page, host: str, status: int) -> None:
    """A web page whose name was turned to this machine's address must not read it. (No name can hold brackets.)"""
    assert (await page.get(Host=host)).status_code == status


async def test_many_who_ask_for_health_get_one_report_and_nobody_loses_theirs(page: Page) -> None:
    """Anybody may ask, so neither a monitor is cut off by them nor are the stores asked for each of them."""
    page.goes_on.clear()
    asking = [asyncio.create_task(page.get()) for _ in range(8)]
    async with limit():
        await until(lambda: page.reports)
        for refused, status in ((page.get("POST"), 405), (page.get(Host="evil.example"), 421)):
            assert (await refused).status_code == status
        assert (await page.get(path="/readyz")).status_code == 200
        page.goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(*asking)] == [200] * 8
    assert page.reports == 1
    assert (await page.get()).status_code == 200
    assert page.reports == 2, "each report is of the moment"


async def test_two_who_ask_for_health_keep_their_places_while_strangers_come() -> None:
    """A crowd at the port must not blind the monitor that is to tell of it."""
    page = Page()
    page.goes_on.clear()

    async def metrics() -> bytes:
        await page.now()
        return b""

    bounds = ServerBounds(most=4)
    async with serving(page.now, host="127.0.0.1", port=0, metrics=metrics, bounds=bounds) as page.url, limit():
        asking = [asyncio.create_task(page.get(path=path)) for path in ("/healthz", "/metrics")]
        await until(lambda: page.reports >= 2)
        lines = [await asyncio.open_connection("127.0.0.1", page.port) for _ in range(12)]
        for reader, _ in lines[:8]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        page.goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(*asking)] == [200] * 2
        for _, writer in lines:
            writer.close()


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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert await asyncio.to_thread(ask, "127.0.0.1", free.getsockname()[1]) is None


async def test_a_head_that_trickles_in_is_given_up() -> None:
    """Anybody could hold lines open for ever, a byte a minute each."""
    async with serving(Page().now, host="127.0.0.1", port=0, bounds=ServerBounds(head_seconds=SECONDS)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")

        async def trickle() -> None:
            while True:
                writer.write(b"x")
                await settle()
                leap(SECONDS / 10)

        trickling = asyncio.create_task(trickle())
        with suppress(ConnectionResetError):  # a byte more had come
            assert await reader.read() == b""
        trickling.cancel()
        writer.close()


async def test_who_has_been_sending_longest_makes_room() -> None:
    """However many hold lines open, a request that comes whole is answered; by address nobody can be told apart, for
    behind a proxy all come from one."""
    page = Page()
    async with serving(page.now, host="127.0.0.1", port=0, bounds=ServerBounds(most=3)) as page.url, limit():
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


async def test_what_was_reset_while_it_waited_is_passed_over() -> None:
    """Thousands opened and reset keep nobody waiting: no handler is made for them."""
    (listener,) = await Listener.bound("127.0.0.1", 0)
    with listener:
        listener.listen()
        listener.setblocking(False)
        for resets in (True, True, False, True):
            line = socket.create_connection(listener.getsockname(), timeout=SECONDS)
            if resets:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                line.close()
            else:
                alive = line
        accepted, sender = listener.accept()
        assert sender == alive.getsockname()
        with pytest.raises(BlockingIOError):
            listener.accept()
        accepted.close()
        alive.close()


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
        async with limit():
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.") and b"default-src 'none'" in answer and b"no-store" in answer
        writer.close()
    assert caplog.text == ""


# --- webhooks ---


class Receiver:
    """A channel's end of a webhook: what it was handed, and what it says to it."""

    def __init__(self, limit: int = 1000) -> None:
        self.hook = Hook(path="/wire/in", limit=limit, is_genuine=lambda headers: self.genuine, take=self.take)
        self.taken: list[tuple[Mapping[str, str], bytes]] = []
        self.status = 200
        self.genuine = True
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
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            return await client.post(self.url, content=content, headers=headers)

    async def raw(self, request: bytes) -> bytes:
        """Sends a request that is never completed; returns what comes back until the other end closes."""
        url = httpx.URL(self.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(request)
        try:
            return await hasten(reader.read())
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
        bounds=ServerBounds(body_seconds=SECONDS),
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
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert (await client.request(method, receiver.url)).status_code == 405
        assert (await client.post(receiver.url + "/x")).status_code == 404
    assert receiver.taken == []


async def test_a_body_at_the_limit_is_taken_and_one_beyond_is_not(receiver: Receiver) -> None:
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
    said = await receiver.raw(b"POST /wire/in HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    assert said.startswith(b"HTTP/1.1 408 ")
    assert receiver.taken == []


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
    assert answer.status_code == 500
    (line,) = logs
    # The platform reads no words, but a mistake of ours is told alike to everybody.
    assert line.get("id", "") in answer.text and bool(answer.text) is ("id" in line)
    assert told.items() <= line.items() and line["path"] == "/wire/in"
    assert "Ada" not in str(logs)
    assert ("places" in line) is ("crashed" in told["event"])


async def test_while_nothing_is_heard_a_delivery_is_put_off(receiver: Receiver) -> None:
    """The process starts or ends: the platform brings it again."""
    receiver.hearing = False
    answer = await receiver.post(b"early")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    receiver.hearing = True
    assert (await receiver.post(b"later")).status_code == 200
    assert [body for _, body in receiver.taken] == [b"later"]


async def test_nobody_but_the_platform_may_even_send_a_body(receiver: Receiver) -> None:
    """The secret is in the head, so the body of anybody else is not waited for."""
    receiver.genuine = False
    said = await receiver.raw(b"POST /wire/in HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 401 ")
    assert receiver.taken == []


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
        async with limit():
            answer = await posting
            await ending
    assert answer.status_code == 200


# --- doors ---


class Hall:
    """A door through which everybody passes, under the name in the header X-Who; strangers give none."""

    def __init__(self) -> None:
        self.page = b"short"
        self.body_bytes = 1_000
        self.bodies: list[bytes] = []
        self.entered = asyncio.Event()
        self.began = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.broke_off = asyncio.Event()

    def takes(self, path: str) -> bool:
        return True

    async def enter(self, request: web.BaseRequest) -> Admission | web.Response:
        async def answer(body: bytes) -> web.StreamResponse:
            self.bodies.append(body)
            self.began.set()
            await self.goes_on.wait()
            if request.path == "/crash":
                return web.Response(text=str(int("Ada's letters")))
            if request.path in ("/gone", "/said-twice"):
                await web.StreamResponse().prepare(request)
                if request.path == "/gone":
                    raise ConnectionError
                return web.Response(status=503, text="a page")
            return await self._streamed(request) if request.path == "/stream" else web.Response(body=self.page)

        self.entered.set()
        return Admission(sender=request.headers.get("X-Who", ""), body_bytes=self.body_bytes, answer=answer)

    async def _streamed(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 100_000)
        except ConnectionError:
            self.broke_off.set()
            return response

    async def failed(self, request: web.BaseRequest, status: int, error_id: str) -> web.Response:
        if request.path == "/crash" and request.headers.get("X-Who") == "crashed":
            raise RuntimeError("Ada's letters")
        return web.Response(status=status, text=f"sorry {error_id}")


class Visits:
    def __init__(self, url: str, hall: Hall) -> None:
        self.url = httpx.URL(url)
        self.hall = hall
        self._unread: list[socket.socket] = []

    async def ask(self, path: str = "/", who: str = "", body: bytes | None = None) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            headers = {"X-Who": who} if who else {}
            return await client.request(
                "GET" if body is None else "POST", self.url.join(path), headers=headers, content=body
            )

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.url.host, self.url.port)

    async def ask_and_never_read(self, path: str = "/", who: str = "") -> None:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)
        self._unread.append(line)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(line, (self.url.host, self.url.port or 0))
        await loop.sock_sendall(line, f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Who: {who}\r\n\r\n".encode())

    async def until(self, status: int, who: str = "") -> None:
        async with limit():
            while (await self.ask(who=who)).status_code != status:
                await asyncio.sleep(0)

    def close(self) -> None:
        for line in self._unread:
            line.close()


@asynccontextmanager
async def hall_with(*hooks: Hook, **bounds: Any) -> AsyncIterator[Visits]:
    hall = Hall()
    async with serving(
        Page().now, host="127.0.0.1", port=0, hooks=lambda: hooks, doors=lambda: [hall], bounds=ServerBounds(**bounds)
    ) as page:
        visits = Visits(page, hall)
        try:
            yield visits
        finally:
            hall.goes_on.set()
            visits.close()


async def test_who_reads_nothing_is_given_up() -> None:
    """A reader could hold a connection for as long as it likes: with a page, a stream, or the last bytes of either."""
    async with hall_with(write_seconds=SECONDS, share=1) as visits:
        await visits.ask_and_never_read("/stream", "ann")
        async with limit():
            await visits.hall.began.wait()
        await hasten(visits.hall.broke_off.wait())
        visits.hall.began.clear()
        visits.hall.page = b"x" * 8_000_000
        await visits.ask_and_never_read("/", "ann")
        async with limit():
            await visits.hall.began.wait()
        await settle()
        leap(3_600)  # much is waited for longer
        visits.hall.page = b"short"
        await visits.until(200, "ann")


async def test_nobody_closes_the_port_to_others_by_not_reading() -> None:
    """One person has a share of the places, all of them leave some, and health and deliveries have their own."""
    receiver = Receiver()
    async with hall_with(receiver.hook, most=16, share=6) as visits:
        visits.hall.page = b"x" * 8_000_000
        for who in ("ann", "bob"):
            for _ in range(6):
                await visits.ask_and_never_read("/", who)
        visits.hall.page = b"short"
        await visits.until(429, "ann")
        assert (await visits.ask(who="bob")).status_code == 503, "the places that known senders leave"
        assert (await visits.ask("/wire/in", body=b"delivered")).status_code == 200
        assert (await visits.ask()).status_code == 200, "a stranger"
        assert (await visits.ask("/healthz")).status_code == 200
        assert (await visits.ask("/readyz")).status_code == 200


async def test_a_person_without_a_connection_gets_in_however_many_the_others_have() -> None:
    """Whoever has the most gives up one; who has some already must wait."""
    async with hall_with(most=16, share=6) as visits, limit():
        visits.hall.goes_on.clear()
        held: list[asyncio.Task[httpx.Response]] = []
        for who in ("ann", "bob", "ann", "ann", "bob", "ann", "ann", "ann"):
            held.append(asyncio.create_task(visits.ask(who=who, body=who.encode())))
            await until(lambda: len(visits.hall.bodies) == len(held))
        assert (await visits.ask(who="bob")).status_code == 503
        cy = asyncio.create_task(visits.ask(who="cy", body=b"cy"))
        with pytest.raises(httpx.TransportError):
            await held[0]
        visits.hall.goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(cy, *held[1:])] == [200] * 8


async def test_people_never_keep_deliveries_out() -> None:
    """Four at a time have places of their own; more of them share those of the people."""
    receiver = Receiver()
    receiver.goes_on.clear()
    async with hall_with(receiver.hook, most=16, share=8) as visits, limit():
        visits.hall.goes_on.clear()
        held = [asyncio.create_task(visits.ask(who="ann", body=b"x")) for _ in range(8)]
        await until(lambda: len(visits.hall.bodies) == 8)
        posts = {asyncio.create_task(visits.ask("/wire/in", body=b"x")) for _ in range(5)}
        (refused,), posts = await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result().status_code == 503
        receiver.goes_on.set()
        visits.hall.goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(*held, *posts)] == [200] * 12


async def test_a_large_body_of_a_known_sender_has_the_time_of_a_slow_line() -> None:
    """Ten megabytes take minutes on some; a stranger, and whoever does not say how much comes, has a fixed time."""
    async with hall_with(body_seconds=SECONDS) as visits:
        visits.hall.body_bytes = 10_000_000
        size, half = b"Content-Length: 10000000", b"x" * 5_000_000
        ann, stranger, chunked = [await visits.open() for _ in range(3)]
        ann[1].write(b"POST / HTTP/1.1\r\nHost: x\r\nX-Who: ann\r\n" + size + b"\r\n\r\n" + half)
        await ann[1].drain()
        stranger[1].write(b"POST / HTTP/1.1\r\nHost: x\r\n" + size + b"\r\n\r\nhalf")
        chunked[1].write(b"POST / HTTP/1.1\r\nHost: x\r\nX-Who: ann\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf")
        await settle()
        leap(SECONDS)
        for reader, _ in (stranger, chunked):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        ann[1].write(half)
        assert (await ann[0].readline()).startswith(b"HTTP/1.1 200 ")
        assert visits.hall.bodies == [half * 2]
        for _, writer in (ann, stranger, chunked):
            writer.close()


async def test_strangers_who_do_not_read_make_room_for_the_next() -> None:
    """Nobody can tell one stranger from another, so the oldest goes."""
    async with hall_with(most=10) as visits:
        visits.hall.page = b"x" * 8_000_000
        for _ in range(20):
            await visits.ask_and_never_read()
        visits.hall.page = b"short"
        for path in ("/", "/healthz", "/"):
            assert (await visits.ask(path)).status_code == 200


async def test_a_body_on_its_way_keeps_its_place_as_soon_as_its_sender_is_known() -> None:
    """However many strangers come, they make room for each other and never close what a person sends."""
    async with hall_with(most=12) as visits, limit():
        half = b"POST / HTTP/1.1\r\nHost: x\r\n%sContent-Length: 8\r\n\r\nhalf"
        lines = []
        for who in (b"X-Who: ann\r\n", *[b""] * 40):
            lines.append(await visits.open())
            lines[-1][1].write(half % who)
            if who:
                await visits.hall.entered.wait()
        for reader, _ in lines[1:20]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        reader, writer = lines[0]
        writer.write(b"half")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert visits.hall.bodies == [b"halfhalf"]
        for _, writer in lines:
            writer.close()


async def test_strangers_hold_a_limited_number_of_bytes_together_and_so_does_each_person() -> None:
    """However many send at once, the memory that their bodies take is bounded."""
    async with hall_with(each=2_500, together=8_000) as visits:
        visits.hall.goes_on.clear()
        held: list[asyncio.Task[httpx.Response]] = []

        async def hold(who: str, number: int) -> None:
            held.extend(asyncio.create_task(visits.ask(who=who, body=b"x" * 1_000)) for _ in range(number))
            await until(lambda: len(visits.hall.bodies) >= len(held))

        await hold("", 2)
        assert (await visits.ask(body=b"x" * 1_000)).status_code == 503
        await hold("ann", 2)
        assert (await visits.ask(who="ann", body=b"x" * 1_000)).status_code == 429
        await hold("bob", 1)
        assert (await visits.ask(who="bob", body=b"x" * 1_000)).status_code == 503, "more than one, and half is held"
        for who in ("cy", "dan", "eve"):
            await hold(who, 1)
        assert (await visits.ask(who="fay", body=b"x" * 1_000)).status_code == 503
        visits.hall.goes_on.set()
        assert [answer.status_code for answer in await asyncio.gather(*held)] == [200] * 8
        assert (await visits.ask(body=b"x" * 1_000)).status_code == 200, "what was answered is held no longer"


async def test_a_crash_is_told_with_the_id_that_stands_in_the_log() -> None:
    """Whoever saw it can tell the operator which line it is; the words of people stay out of both."""
    async with hall_with() as visits:
        for who, lines in (("ann", 1), ("crashed", 2)):
            with capture_logs() as logs:
                answer = await visits.ask("/crash", who)
            assert answer.status_code == 500 and len(logs) == lines
            assert logs[0]["event"] == "http.crashed" and logs[0]["code"] == "ValueError"
            assert logs[0]["id"] in answer.text and logs[0]["places"][0].startswith("gateway/ops/http.py:")
            assert "Ada" not in str(logs) + answer.text
            assert answer.headers["Cache-Control"] == "no-store"
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(("path", "events"), [("/gone", []), ("/said-twice", ["http.broke_off"])])
async def test_an_answer_that_has_begun_is_followed_by_no_other(path: str, events: list[str]) -> None:
    """A second head in the middle of a stream would be read as a part of it."""
    async with hall_with() as visits, limit():
        reader, writer = await visits.open()
        with capture_logs() as logs:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            raw = await reader.read()
        assert raw.count(b"HTTP/1.1") == 1 and raw.startswith(b"HTTP/1.1 200 "), raw
        assert [line["event"] for line in logs] == events
        writer.close()


async def test_a_body_is_asked_for_only_when_it_is_wanted() -> None:
    """Programs that ask first (curl, for bodies over a megabyte) would wait a second, or for ever."""
    async with hall_with() as visits, limit():
        head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        reader, writer = await visits.open()
        writer.write(head % 4)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"body")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ") and visits.hall.bodies == [b"body"]
        writer.close()
        reader, writer = await visits.open()
        writer.write(head % 1_001)
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()


async def test_a_body_that_would_grow_is_not_taken() -> None:
    """A thousand bytes can expand to a million, so compressed bodies are refused unread."""
    async with hall_with() as visits, httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        answer = await client.post(visits.url.join("/"), content=b"x", headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 415 and visits.hall.bodies == []
        assert (await visits.ask(body=b"x" * 1_001)).status_code == 413
