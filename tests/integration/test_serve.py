"""`serve` as a whole, over a channel made for it: start, health, stop."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from channels.base import Capabilities, Channel, ChannelUnavailable, Health, Hook, Host, Inbound, Outbound
from gateway import app
from gateway.config.loading import Config, load
from gateway.ops.http import AddressUnusable
from gateway.serve import GRACE, SILENCE, judge, serve, version
from memory.chat.stats import StoreHealth
from memory.errors import StoreInUse
from tests.kit.fakes import NOON, Clock
from tests.kit.patience import SECONDS, limit, until

WELL = StoreHealth(oldest_inbox=None, oldest_outbox=None, damage=None, wal_bytes=0)


class Wire(Channel):
    """A platform as a queue: what is put into `said` comes in, what goes out is kept in `sent`.

    It is called console, for there everybody may speak.
    """

    id = ""
    platform = "wire"
    capabilities = Capabilities(resend="mark", burst_seconds=0)

    def __init__(self, name: str = "console", *, failures: int = 0) -> None:
        self.id = name
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.sent: list[str] = []
        self.answered = asyncio.Event()
        self.receiving = asyncio.Event()
        self.failures = failures
        self.state = Health(contact=NOON)
        self.sending = asyncio.Event()
        self.held = asyncio.Event()
        self.held.set()

    def health(self) -> Health:
        return self.state

    async def run(self, host: Host) -> None:
        if self.failures:
            self.failures -= 1
            raise ChannelUnavailable("the wire is cut")
        self.receiving.set()
        number = 0
        while True:
            text = await self.said.get()
            number += 1
            await host.on_inbound(
                Inbound(
                    channel=self.id,
                    platform=self.platform,
                    bot_id="1",
                    update_key=str(number),
                    chat="7",
                    chat_kind="private",
                    author_id="7",
                    author_name="Ada",
                    message_id=str(number),
                    text=text,
                    sent_at=NOON,
                )
            )

    async def send(self, outbound: Outbound) -> str:
        self.sending.set()
        await self.held.wait()
        self.sent.append(outbound.text)
        self.answered.set()
        return str(outbound.id)


class Hooked(Wire):
    """A platform that delivers over HTTP."""

    def hook(self) -> Hook:
        return Hook(path="/wire", limit=100, is_genuine=lambda _headers: True, take=self.take)

    async def take(self, headers: Mapping[str, str], body: bytes) -> int:
        await self.said.put(body.decode())
        return 202


class Operator:
    """Who started it: reads its lines and stops it."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines += text.splitlines()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path)


def configured(folder: Path, http: str = "{enabled: false}") -> Config:
    (folder / "config.yaml").write_text(f"data_dir: data\nembedding: {{provider: none}}\nhttp: {http}\n")
    return load(folder / "config.yaml", {}, folder)


async def reached(happened: asyncio.Event, serving: asyncio.Task[int]) -> None:
    """Wait for it, or raise what ended the serving before."""
    waiting = asyncio.create_task(happened.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        raise AssertionError(f"serving ended with {serving.result()}")


async def test_a_message_is_answered_until_it_is_told_to_stop(config: Config) -> None:
    """The whole of its work, and a clean end."""
    wire, operator = Wire(), Operator()
    file = config.data_dir.parent / "config.yaml"
    file.write_text(file.read_text() + f"channels: {{telegram: [{{token: '12345:{'x' * 35}'}}]}}\n")
    config = load(file, {}, file.parent)
    serving = asyncio.create_task(serve(config, {"console": wire}, stop=operator.stop, say=operator.say))
    await wire.said.put("My name is Ada")
    async with limit():
        await reached(wire.answered, serving)
        operator.stop.set()
        assert await serving == 0
    assert "Ada" in wire.sent[0]
    assert operator.lines[0].endswith("serves console. Ctrl-C ends it.")
    assert "  agents: assistant: offline, no language model" in operator.lines
    assert f"  data:   {config.data_dir}" in operator.lines
    assert "  health: not served (http.enabled is false)" in operator.lines
    assert any(line.startswith("Warning: telegram: nobody may talk to it") for line in operator.lines)


async def test_stopping_answers_what_was_taken(config: Config) -> None:
    """Whoever was promised an answer gets it before the process ends; nothing new is taken meanwhile."""
    wire, operator = Wire(), Operator()
    wire.held.clear()
    serving = asyncio.create_task(serve(config, {"console": wire}, stop=operator.stop, say=operator.say))
    await wire.said.put("/help")
    async with limit():
        await reached(wire.receiving, serving)
        await until(wire.said.empty)
        operator.stop.set()
        await until(lambda: any(line.startswith("Ending") for line in operator.lines))
        await wire.said.put("too late")
        wire.held.set()
        assert await serving == 0
    assert len(wire.sent) == 1 and "/help" in wire.sent[0]
    assert wire.said.qsize() == 1


async def test_a_channel_that_fails_holds_up_no_other(config: Config) -> None:
    broken, wire, operator = Wire("broken", failures=10**9), Wire(), Operator()

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0.01)

    serving = asyncio.create_task(
        serve(config, {"broken": broken, "console": wire}, stop=operator.stop, say=operator.say, sleep=sleep)
    )
    await wire.said.put("/help")
    async with limit():
        await reached(wire.answered, serving)
        operator.stop.set()
        assert await serving == 0
    assert broken.failures < 10**9


async def test_a_second_process_is_refused_before_it_receives(config: Config) -> None:
    """Two would take each other's messages."""
    first, second, operator = Wire(), Wire(), Operator()
    serving = asyncio.create_task(serve(config, {"console": first}, stop=operator.stop, say=operator.say))
    async with limit():
        await reached(first.receiving, serving)
        with pytest.raises(StoreInUse, match=r"in use by another Remora \(process \d+\)"):
            await serve(config, {"console": second}, stop=asyncio.Event(), say=operator.say)
        operator.stop.set()
        assert await serving == 0
    assert not second.receiving.is_set()


async def test_health_is_served_while_it_runs(tmp_path: Path, unused_tcp_port: int) -> None:
    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    wire, operator = Wire(), Operator()
    serving = asyncio.create_task(
        serve(config, {"console": wire}, stop=operator.stop, say=operator.say, now=Clock(NOON + 5_000))
    )
    async with limit(), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        await reached(wire.receiving, serving)
        url = f"http://127.0.0.1:{unused_tcp_port}/healthz"
        assert f"  health: {url}" in operator.lines
        green = await client.get(url)
        wire.state = Health(contact=NOON, trouble="the wire is cut")
        red = await client.get(url)
        operator.stop.set()
        assert await serving == 0
        with pytest.raises(httpx.ConnectError):
            await client.get(url)
    assert green.status_code == 200
    assert green.json()["channels"] == {
        "console": {"last_poll_seconds_ago": 5, "trouble": "", "stands_by": False, "unread": 0}
    }
    (store,) = green.json()["stores"]
    assert (store["name"], store["oldest_inbox_seconds"], store["damage"]) == ("remora.db", None, None)
    assert red.status_code == 503 and red.json()["reasons"] == ["console: the wire is cut"]


async def test_a_webhook_is_taken_where_the_health_page_is(tmp_path: Path, unused_tcp_port: int) -> None:
    """A bot that is delivered to needs no second port; the start says where its proxy must lead to."""

    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    wire, operator = Hooked(), Operator()
    serving = asyncio.create_task(serve(config, {"console": wire}, stop=operator.stop, say=operator.say))
    async with limit(), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        await reached(wire.receiving, serving)
        assert f"  hooks:  console at /wire, taken at 127.0.0.1:{unused_tcp_port}" in operator.lines
        answer = await client.post(f"http://127.0.0.1:{unused_tcp_port}/wire", content="/help")
        await reached(wire.answered, serving)
        operator.stop.set()
        assert await serving == 0
    assert (answer.status_code, answer.content) == (202, b"")
    assert "/help" in wire.sent[0]


async def test_while_it_ends_deliveries_are_put_off_and_health_is_still_told(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """Nothing new is taken, but a proxy and a service manager must not think it dead while it answers the rest."""
    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    wire, operator = Hooked(), Operator()
    wire.held.clear()
    serving = asyncio.create_task(serve(config, {"console": wire}, stop=operator.stop, say=operator.say))
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with limit(), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        await reached(wire.receiving, serving)
        assert (await client.post(f"{url}/wire", content="/help")).status_code == 202
        await wire.sending.wait()
        operator.stop.set()
        await until(lambda: any(line.startswith("Ending") for line in operator.lines))
        late = await client.post(f"{url}/wire", content="late")
        page = await client.get(f"{url}/healthz")
        wire.held.set()
        assert await serving == 0
    assert (late.status_code, page.json()["version"]) == (503, version())
    assert len(wire.sent) == 1 and wire.said.empty()


async def test_a_taken_port_ends_the_start(tmp_path: Path, unused_tcp_port: int) -> None:
    """A bot whose health nobody can see would look dead to its service manager."""
    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", unused_tcp_port)
    async with server:
        with pytest.raises(AddressUnusable):
            await serve(config, {"console": Wire()}, stop=asyncio.Event(), say=lambda _: None)


async def test_what_was_said_where_the_bot_is_no_more_goes_after_thirty_days(config: Config, clock: Clock) -> None:
    wire = Wire()
    async with app.running(config, {"console": wire}, now=clock) as router, limit():
        receiving = asyncio.create_task(wire.run(router))
        wire.said.put_nowait("I live in Quaxolia.")
        await wire.answered.wait()
        receiving.cancel()
        await router.on_presence("console", "7", present=False)
    assert b"Quaxolia" in (config.data_dir / "remora.db").read_bytes()
    clock.move(days=31)
    looked, operator = asyncio.Event(), Operator()
    waiting = 0

    async def sleep(seconds: float) -> None:
        nonlocal waiting
        if seconds == 600:  # until memory is freed again, and, once what was missed is done, until the next look
            waiting += 1
            if waiting == 2:
                looked.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)

    serving = asyncio.create_task(
        serve(config, {"console": Wire()}, stop=operator.stop, say=operator.say, now=clock, sleep=sleep)
    )
    async with limit():
        await reached(looked, serving)
        operator.stop.set()
        assert await serving == 0
    assert b"Quaxolia" not in (config.data_dir / "remora.db").read_bytes()


@pytest.mark.parametrize(("minutes", "ends"), [(1, True), (0, False)])
async def test_bad_health_for_too_long_ends_it_only_if_configured(tmp_path: Path, minutes: float, ends: bool) -> None:
    """A service manager starts it anew with a fresh connection; without one it must go on trying."""
    config = configured(tmp_path, f"{{enabled: false, exit_after_minutes: {minutes}}}")
    wire, operator = Wire(), Operator()
    wire.state = Health(contact=NOON, trouble="the wire is cut")
    passed = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal passed
        if seconds >= 30:
            await asyncio.Event().wait()  # the work of the night has no part in this
        passed += seconds
        if passed > 600:
            operator.stop.set()
        await asyncio.sleep(0)

    async with limit():
        code = await serve(
            config, {"console": wire}, stop=operator.stop, say=operator.say, monotonic=lambda: passed, sleep=sleep
        )
    assert code == (1 if ends else 0)
    assert (passed > 600) is not ends


async def test_a_part_that_cannot_tell_how_it_is_is_named_and_ends_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """The watch over the others must outlive a fault of any of them."""

    class Dumb(Wire):
        def health(self) -> Health:
            raise OSError("no such luck")

    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    wire, operator, looked = Dumb(), Operator(), asyncio.Event()
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal looks
        if seconds >= 30:
            await asyncio.Event().wait()
        looks += 1
        if looks > 3:
            looked.set()
        await asyncio.sleep(0.01)

    serving = asyncio.create_task(
        serve(config, {"console": wire}, stop=operator.stop, say=operator.say, now=lambda: NOON, sleep=sleep)
    )
    async with limit(), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        await reached(looked, serving)
        page = await client.get(f"http://127.0.0.1:{unused_tcp_port}/healthz")
        operator.stop.set()
        assert await serving == 0
    (reason,) = page.json()["reasons"]
    assert page.status_code == 503 and reason.startswith("console: it can't be told how it is: OSError at ")


async def test_it_gets_over_a_time_without_files(tmp_path: Path, unused_tcp_port: int) -> None:
    """Whatever took them, it goes on, says so once and takes who comes when there are some again."""
    config = configured(tmp_path, f"{{port: {unused_tcp_port}}}")
    wire, operator, looked = Wire(), Operator(), asyncio.Event()
    passed = 0.0

    async def sleep(seconds: float) -> None:
        if seconds >= 30:
            await asyncio.Event().wait()
        looked.set()
        await asyncio.sleep(0.01)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    serving = asyncio.create_task(
        serve(
            config,
            {"console": wire},
            stop=operator.stop,
            say=operator.say,
            now=lambda: NOON,
            monotonic=lambda: passed,
            sleep=sleep,
        )
    )
    with capture_logs() as logs:
        async with limit():
            await reached(wire.receiving, serving)
            with socket.socket() as one:
                one.setblocking(False)
                resource.setrlimit(resource.RLIMIT_NOFILE, (one.fileno() + 1, hard))
                try:
                    await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", unused_tcp_port))
                    await asyncio.get_running_loop().sock_sendall(
                        one, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    )
                    for _ in range(5):
                        looked.clear()
                        await reached(looked, serving)
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                said = await asyncio.get_running_loop().sock_recv(one, 10_000)
            passed = 600.0
            while logs[-1]["event"] != "health.green":
                looked.clear()
                await reached(looked, serving)
            operator.stop.set()
            assert await serving == 0
    assert said.startswith(b"HTTP/1.1 503 ") and b"can open no more files and connections" in said
    assert [line["event"] for line in logs if line["log_level"] != "info"] == ["health.red", "health.green"]


@pytest.mark.parametrize(
    ("channel", "store", "uptime", "reason"),
    [
        (Health(contact=NOON), WELL, 10, None),
        (Health(contact=NOON - SILENCE * 1000), WELL, 999, None),
        (Health(contact=NOON - (SILENCE + 1) * 1000), WELL, 999, "wire: no contact with the platform for 121 s."),
        (Health(), WELL, SILENCE, None),
        (Health(), WELL, SILENCE + 1, "wire: no contact with the platform since the start."),
        (Health(contact=NOON, trouble="a rival polls."), WELL, 10, "wire: a rival polls."),
        (Health(contact=NOON), ("inbox", GRACE + 180), 10, None),
        (Health(contact=NOON), ("inbox", GRACE + 181), 10, "db: a message has waited for its answer for 241 s."),
        (Health(contact=NOON), ("outbox", GRACE + 181), 10, "db: an answer could not be delivered for 241 s."),
        (Health(contact=NOON), ("damage", 0), 10, "db: a page is damaged."),
        (Health(contact=NOON), "can't be read.", 10, "db: can't be read."),
        (Health(contact=NOON + 5_000), WELL, 10, None),
    ],
)
def test_health_is_judged_end_to_end(
    channel: Health, store: StoreHealth | str | tuple[str, int], uptime: float, reason: str | None
) -> None:
    """A poller that hangs, a message nobody answers, an answer that never leaves: each alone is red."""
    if isinstance(store, tuple):
        kind, age = store
        store = StoreHealth(
            oldest_inbox=NOON - age * 1000 if kind == "inbox" else None,
            oldest_outbox=NOON - age * 1000 if kind == "outbox" else None,
            damage="a page is damaged." if kind == "damage" else None,
            wal_bytes=0,
        )
    report = judge(
        channels={"wire": channel}, stores={"db": store}, now=NOON, uptime=uptime, turn_seconds=180, version="1"
    )
    assert report.reasons == (() if reason is None else (reason,))
    assert report.status == ("green" if reason is None else "red")
    assert (report.channels["wire"].last_poll_seconds_ago or 0) >= 0
