"""`remora serve`: every channel receives until the process is told to stop, and a health page reports how that goes.

Invariants: one channel's trouble never ends another channel. At shutdown receiving stops first, then messages that were
taken are answered, then messages are read for memories, each within its time. Nothing is lost if that is cut short,
because everything taken is committed and the next start continues with it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import structlog

from channels.base import Channel, Health, Hook, Host
from channels.supervision import supervise
from gateway import app, bots, warming
from gateway.config.loading import DEFAULT_DATABASE, Config
from gateway.config.settings import BotSettings
from gateway.ops import health, http
from gateway.ops.background import beside, cancelled, trimming
from gateway.ops.night_clock import ticking
from gateway.ops.reloading import Reloaded, Reloader, Sources
from gateway.ops.stalls import Stalls, of_running_loop
from gateway.pipeline import policy
from gateway.pipeline.store import Store
from gateway.reception.router import Router
from memory.chat.stats import StoreHealth
from memory.errors import StorageError
from memory.loops import Loops, PutOff, reason_of
from memory.service import Service

if TYPE_CHECKING:
    from gateway.metrics import Metrics

log = structlog.get_logger(__name__)

#: Seconds without contact after which a channel is in trouble. An empty poll ends after 30 s.
SILENCE = 120
#: Seconds beyond a turn's own deadline that a message may wait for its answer, or an answer for its delivery.
GRACE = 60
#: The exit code of a process that has to begin anew: EX_TEMPFAIL of sysexits.h.
BEGIN_ANEW = 75
_ENDING = {
    0: "Ending: what was taken is answered first. Ctrl-C once more ends at once; the next start then goes on.",
    BEGIN_ANEW: "The other processes took this one for dead and go on with its conversations. It begins anew.",
}
#: Seconds between two checks of the process's own health.
_WATCH = 15.0
#: Seconds that a store gets to report its health.
_STORE_PATIENCE = 5.0
#: Failed pieces of work of one loop that the health page names.
_PUT_OFF = 10
#: Seconds for which a failure to open files is reported: long enough for the watch to see it.
_STARVED = 2 * _WATCH


async def serve(
    config: Config,
    channels: Mapping[str, Channel],
    *,
    stop: asyncio.Event,
    say: Callable[[str], None],
    sources: Sources | None = None,
    now: Callable[[], int] = app.now,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> int:
    """Serves `channels` until `stop` is set or all of them have ended. Returns the exit code.

    The exit code is 0, 1 if health was bad for longer than `http.exit_after_minutes`, or `BEGIN_ANEW` if the other
    processes on a store have taken this one for dead, so that it has to be served again with new channels. `say` is
    called with a few lines for the operator. With `sources`, a changed configuration is taken up. Raises
    `memory.errors.StorageError` if a store can't be opened, and `http.AddressUnusable`.
    """
    channels, files = dict(channels), _Files(monotonic)
    async with AsyncExitStack() as stack:
        stack.enter_context(files.counted(asyncio.get_running_loop()))
        warm = await stack.enter_async_context(warming.warming_up(config, channels.values(), sleep))
        parts = await stack.enter_async_context(app.opened(config, channels, now=now))
        process = _Process(config, channels, parts, files, now=now, monotonic=monotonic, sleep=sleep)
        page = await process.open_doors(stack)
        await warm.wait()
        # Entered after the page, so that the page reports health until all is answered and puts off late requests.
        reload = None if sources is None else process.reload
        router = await stack.enter_async_context(
            app.answering(config, channels, parts, now=now, reload=reload, takes_part=True)
        )
        process.open_page(router)
        say(
            _greeting(
                config, process.version, channels, page, {name: hook.path for name, hook in process.hooks.items()}
            )
        )
        for warning in _warnings(config):
            say(f"Warning: {warning}")
        await process.begin(stack, router, sources)
        code = await process.run(stop)
        say(_ENDING.get(code, _ENDING[0]))
    return code


class _Process:
    def __init__(
        self,
        config: Config,
        channels: dict[str, Channel],
        parts: app.Opened,
        files: _Files,
        *,
        now: Callable[[], int],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._config = config
        self._channels = channels
        self._parts = parts
        self._files = files
        self._now = now
        self._monotonic = monotonic
        self._sleep = sleep
        self._began = monotonic()
        self._stalls = of_running_loop()
        self._loops = Loops(now=now)
        self._hearing = asyncio.Event()
        self._doors: list[http.Door] = []
        self._receiving: Receiving | None = None
        self._reloader: Reloader | None = None
        self._memories = {
            spec.database or DEFAULT_DATABASE: parts.roster.stores[name].memory for name, spec in config.agents.items()
        }
        # Read once, because it is a file, and the process may later be unable to open files.
        self.version = version()

    @property
    def hooks(self) -> dict[str, Hook]:
        return {name: hook for name, channel in self._channels.items() if (hook := channel.hook()) is not None}

    async def reload(self) -> Reloaded:
        assert self._reloader is not None
        return await self._reloader.reload()

    async def report(self) -> health.Report:
        receiving = self._receiving
        judged = with_loops(
            judge(
                channels={name: _felt(channel) for name, channel in self._channels.items()},
                stores={name: await _asked(memory, self._channels) for name, memory in self._memories.items()},
                process=self._files.trouble(),
                now=self._now(),
                uptime=self._monotonic() - self._began,
                connecting={} if receiving is None else {name: receiving.seconds(name) for name in self._channels},
                turn_seconds=self._config.settings.limits.turn_seconds,
                version=self.version,
            ),
            {"": self._loops} | {name: memory.loops for name, memory in self._memories.items()},
            self._stalls,
        )
        return replace(judged, models=self._parts.models.servers.contacts())

    async def open_doors(self, stack: AsyncExitStack) -> str | None:
        """Opens the HTTP server and the doors for programs, if they are on. Returns its address, if there is one."""
        settings = self._config.settings.http
        api = app.doors(self._config, self._channels, self._parts, version=self.version, now=self._now)
        if api is not None:
            stack.push_async_callback(api.close)
            self._doors.append(api)
        if not settings.enabled:
            return None
        return await stack.enter_async_context(
            http.serving(
                self.report,
                host=settings.host,
                port=settings.port,
                hooks=lambda: tuple(self.hooks.values()),
                doors=lambda: self._doors,
                # A sender is to try another process meanwhile.
                hearing=lambda: (
                    self._hearing.is_set() and not any(memory.share.trouble for memory in self._memories.values())
                ),
                metrics=await _metrics(self.report, self._memories, self._parts.roster.each_store, self._stalls),
            )
        )

    def open_page(self, router: Router) -> None:
        if self._config.page_agents:
            # Imported here, so that nobody pays for a page that is off.
            from gateway.page.routes import assembled

            roster = self._parts.roster
            self._doors.append(
                assembled(self._config, roster, self._channels, router, report=self.report, now=self._now)
            )

    async def begin(self, stack: AsyncExitStack, router: Router, sources: Sources | None) -> None:
        parts, sleep = self._parts, self._sleep
        plan_nights = await stack.enter_async_context(ticking(parts.workers, sleep=sleep))
        await stack.enter_async_context(beside([trimming(self._loops, sleep)]))
        loops = parts.roster.stores[self._config.default_agent].memory.loops
        receiving = Receiving(self._channels, router, sleep=sleep, monotonic=self._monotonic, loops=loops)
        self._receiving = receiving

        async def apply(before: Config, after: Config) -> None:
            own = before.settings.channels.bots, after.settings.channels.bots
            # Made before anything changes: if one can't be made, nothing of the new configuration holds.
            made = [await warming.warm_channel(bot, now=self._now) for bot in receiving.changed(*own)]
            await app.renew(before, after, parts)
            await receiving.renew(*own, made)
            plan_nights()

        if sources is not None:
            self._reloader = Reloader(self._config, sources, apply)
            await stack.enter_async_context(beside([self._reloader.watch(self._loops, sleep)]))

    async def run(self, stop: asyncio.Event) -> int:
        """Receives until `stop` is set, all channels have ended or health stays bad. Returns the exit code."""
        assert self._receiving is not None
        minutes = self._config.settings.http.exit_after_minutes
        code = await _first(
            self._receive(self._receiving),
            self._stopped(stop),
            _watch(self.report, minutes=minutes, monotonic=self._monotonic, sleep=self._sleep),
            _taken_for_dead(self._parts.roster.each_store),
        )
        self._hearing.clear()
        return code

    async def _receive(self, receiving: Receiving) -> None:
        self._hearing.set()
        await receiving.run()

    async def _stopped(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._hearing.clear()


def judge(
    *,
    channels: Mapping[str, Health],
    stores: Mapping[str, StoreHealth | str],
    now: int,
    uptime: float,
    turn_seconds: float,
    version: str,
    connecting: Mapping[str, float | None] | None = None,
    process: str = "",
) -> health.Report:
    """Returns the health of the process, in numbers and reasons.

    `now` is in milliseconds UTC, `uptime` in seconds, and `connecting` the seconds since each channel was begun, if
    that was later; None for one that stands by. `process` names the trouble of the process itself. For a store that
    could not report its health, `stores` holds the reason as a text.
    """
    reasons = [process] if process else []
    polls = {}
    for name, felt in channels.items():
        begun = (connecting or {}).get(name, uptime)
        polls[name], why = _channel(name, felt, begun, now)
        reasons += why
    states = []
    for name, store in stores.items():
        state, why = _store(name, store, now, turn_seconds)
        states.append(state)
        reasons += why
    return health.Report(
        reasons=tuple(reasons), channels=polls, stores=tuple(states), version=version, uptime_seconds=int(uptime)
    )


def _channel(name: str, felt: Health, begun: float | None, now: int) -> tuple[health.ChannelReport, list[str]]:
    silent = _age(felt.contact, now)
    if begun is None:  # the process that receives for the bot judges its platform
        return health.ChannelReport(last_poll_seconds_ago=silent, trouble="", stands_by=True), []
    report = health.ChannelReport(last_poll_seconds_ago=silent, trouble=felt.trouble, unread=felt.unread)
    if felt.trouble:
        return report, [f"{name}: {felt.trouble}"]
    if (begun if silent is None else silent) > SILENCE:
        since = "since the start" if silent is None else f"for {silent} s"
        return report, [f"{name}: no contact with the platform {since}."]
    return report, []


def _store(name: str, store: StoreHealth | str, now: int, turn_seconds: float) -> tuple[health.StoreReport, list[str]]:
    if isinstance(store, str):
        return health.StoreReport(name=name, damage=store), [f"{name}: {store}"]
    inbox, outbox = _age(store.oldest_inbox, now), _age(store.oldest_outbox, now)
    report = health.StoreReport(
        name=name,
        oldest_inbox_seconds=inbox,
        oldest_outbox_seconds=outbox,
        damage=store.damage,
        wal_bytes=store.wal_bytes,
        words_only=store.words_only,
        deployment=store.deployment,
        set_aside=store.set_aside,
        muted=store.muted,
    )
    waits = ((inbox, "a message has waited for its answer"), (outbox, "an answer could not be delivered"))
    late = [f"{name}: {what} for {age} s." for age, what in waits if age is not None and age > turn_seconds + GRACE]
    return report, [*([f"{name}: {store.damage}"] if store.damage else []), *late]


def with_loops(report: health.Report, loops: Mapping[str, Loops], stalls: Stalls) -> health.Report:
    """Returns a report with the troubles of endless work, of the stores by name and of the process under "".

    A stall is no reason for red: all were late and then went on, and a restart, which red asks for, would add to that.
    """
    troubles = [f"{name}: {one}" if name else one for name, own in loops.items() for one in own.troubles]
    parts = tuple(chain.from_iterable(_loops(name, own) for name, own in loops.items()))
    return replace(report, reasons=(*report.reasons, *troubles), loops=parts, stall=stalls.longest)


def _loops(store: str, loops: Loops) -> Iterator[health.LoopReport]:
    put_off = loops.put_off()
    for loop in sorted({*loops.restarts, *(one.loop for one in put_off)}):
        own = [one for one in put_off if one.loop == loop]
        told = tuple(_put_off(one) for one in own[-_PUT_OFF:])
        yield health.LoopReport(store=store, loop=loop, restarts=loops.restarts[loop], failing=len(own), put_off=told)


def _put_off(one: PutOff) -> str:
    tries = "an hour later" if one.is_parked else "again soon"
    return f"{one.loop}, {one.unit}: failed {one.failures} times, is tried {tries} ({one.reason})"


@contextmanager
def signals(stop: asyncio.Event, reload: asyncio.Event) -> Iterator[None]:
    """Makes the first SIGINT or SIGTERM set `stop`, and the second end the process at once (exit 130 or 143).

    SIGHUP sets `reload`, or `stop` if it comes because the terminal was closed. Must be entered in the main thread with
    the loop running.
    """
    loop = asyncio.get_running_loop()
    asked, on_terminal = False, os.isatty(2)

    def on_hangup(number: int, frame: FrameType | None) -> None:
        closed = on_terminal and not os.isatty(2)
        loop.call_soon_threadsafe((stop if closed else reload).set)

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            # The signal's default effect is not used: it has none in a container, where this is the first process.
            os._exit(128 + number)
        asked = True
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def version() -> str:
    try:
        return package_version("remora")
    except PackageNotFoundError:
        return "(not installed)"


def describe(config: Config, name: str) -> str:
    models = ", ".join(f"{model.provider}/{model.model}".rstrip("/") for model in config.agents[name].models)
    chosen = " (default)" if name == config.default_agent and len(config.agents) > 1 else ""
    return f"{name}{chosen}: {models or 'offline, no language model'}"


async def _metrics(
    report: Callable[[], Awaitable[health.Report]],
    memories: Mapping[str, Service],
    stores: Sequence[Store],
    stalls: Stalls,
) -> Callable[[], Awaitable[bytes]]:
    used_until = {name: await memory.stats.used_until() for name, memory in memories.items()}
    counted: Metrics | None = None

    async def page() -> bytes:
        nonlocal counted
        if counted is None:
            # Imported here, so that only operators with Prometheus pay for it.
            from gateway.metrics import Metrics

            named = {name: next(one for one in stores if one.memory is own) for name, own in memories.items()}
            counted = Metrics(report, named, used_until, stalls)
        return await counted.page()

    return page


def _warnings(config: Config) -> list[str]:
    told = policy.warnings(bots.rules(config))
    if config.page_agents and not config.settings.channels.bots:
        told.append(
            "no chat platform is set up, so there is the web page alone. `remora channels add telegram` takes two "
            "minutes."
        )
    return told


async def _taken_for_dead(stores: Sequence[Store]) -> None:
    waits = [asyncio.ensure_future(store.memory.share.lost.wait()) for store in stores]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


async def _first(
    receiving: Awaitable[None], stopping: Awaitable[object], watching: Awaitable[None], lost: Awaitable[None]
) -> int:
    """Waits until one of the four has ended and ends the others. Returns the exit code or raises the first's error."""
    tasks = [asyncio.ensure_future(each) for each in (receiving, stopping, watching, lost)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    if tasks[3] in done:
        return BEGIN_ANEW
    return 1 if tasks[2] in done else 0


async def _watch(
    report: Callable[[], Awaitable[health.Report]],
    *,
    minutes: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Logs changes of health. Returns once it has been bad for longer than `minutes`, unless `minutes` is 0."""
    red_since: float | None = None
    while True:
        await sleep(_WATCH)
        reasons = (await report()).reasons
        if not reasons:
            if red_since is not None:
                log.warning("health.green", after_seconds=int(monotonic() - red_since))
            red_since = None
        elif red_since is None:
            red_since = monotonic()
            log.error("health.red", reasons=reasons)
        elif minutes and monotonic() - red_since > minutes * 60:
            log.critical("health.gave_up", reasons=reasons, minutes=minutes)
            return


def _felt(channel: Channel) -> Health:
    try:
        return channel.health()
    # A boundary: one part that can't report its health must not end the watch over all parts.
    except Exception as error:  # noqa: BLE001 - told by its name and place
        return Health(trouble=_untold(error))


async def _asked(memory: Service, channels: Mapping[str, Channel]) -> StoreHealth | str:
    if trouble := memory.share.trouble:
        return trouble
    try:
        async with asyncio.timeout(_STORE_PATIENCE):
            lasting = [name for name, channel in channels.items() if not channel.capabilities.comes_and_goes]
            return await memory.stats.health(lasting)
    except TimeoutError:
        return f"the database did not answer within {_STORE_PATIENCE:g} s."
    except StorageError as error:
        return str(error)
    # The same boundary.
    except Exception as error:  # noqa: BLE001 - told by its name and place
        return _untold(error)


def _untold(error: Exception) -> str:
    return f"it can't be told how it is: {reason_of(error)}."


class _Files:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._refused: float | None = None

    @contextmanager
    def counted(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Notes connections that can't be accepted for lack of files; `loop` would log each of its retries."""

        def unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if getattr(context.get("exception"), "errno", None) in (errno.EMFILE, errno.ENFILE):
                self._refused = self._monotonic()
            else:
                loop.default_exception_handler(context)

        before = loop.get_exception_handler()
        loop.set_exception_handler(unhandled)
        try:
            yield
        finally:
            loop.set_exception_handler(before)

    def trouble(self) -> str:
        """The trouble, for the operator. Empty if files can be opened now and could be opened lately."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            self._refused = self._monotonic()
        if self._refused is None or self._monotonic() - self._refused > _STARVED:
            return ""
        return (
            "The process can open no more files and connections. If that lasts, raise its limit (LimitNOFILE= of "
            "systemd, --ulimit nofile= of Docker, ulimit -n)."
        )


def _age(at: int | None, now: int) -> int | None:
    return None if at is None else max(0, (now - at) // 1000)


def _greeting(
    config: Config, running: str, channels: Mapping[str, Channel], page: str | None, hooks: Mapping[str, str]
) -> str:
    agents = "; ".join(describe(config, name) for name in config.agents)
    lines = [
        f"Remora {running} serves {', '.join(channels)}. Ctrl-C ends it.",
        f"  agents: {agents}",
        f"  data:   {config.data_dir}",
        f"  health: {page or 'not served (http.enabled is false)'}",
    ]
    if config.page_agents:
        lines.append(f"  page:   {config.settings.page_url} (`remora web` prints a link that signs you in)")
    if config.settings.api.enabled:
        lines.append(f"  api:    {app.api_address(config)}/v1, MCP at {app.api_address(config)}/mcp")
    if hooks:
        at = f"{config.settings.http.host}:{config.settings.http.port}"
        lines.append(f"  hooks:  {', '.join(f'{name} at {path}' for name, path in hooks.items())}, taken at {at}")
    return "\n".join(lines)


#: The settings of a bot that say who may speak: they concern the policy, not the connection.
_POLICY: Final = {"allow", "admins", "groups", "servers", "group_members", "observe"}


class Receiving:
    """Runs `channels`, which others may be looking at: only this object changes them."""

    def __init__(
        self,
        channels: dict[str, Channel],
        host: Host,
        *,
        sleep: Callable[[float], Awaitable[None]],
        monotonic: Callable[[], float],
        loops: Loops,
    ) -> None:
        """`loops` see to it that one process receives for a bot that allows one receiver."""
        self._channels = channels
        self._host = host
        self._sleep = sleep
        self._monotonic = monotonic
        self._loops = loops
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._began: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._changing = False

    async def run(self) -> None:
        """Runs the channels until all have ended. Raises an error that a channel must not raise."""
        try:
            for channel in self._channels.values():
                self._begin(channel)
            while self._tasks or self._changing:
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                waits: list[asyncio.Future[Any]] = [*self._tasks.values(), changed]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for name in [name for name, task in self._tasks.items() if task.done()]:
                    self._tasks.pop(name).result()
        finally:
            await cancelled(self._tasks.values())

    async def renew(self, running: Sequence[BotSettings], bots: Sequence[BotSettings], made: Sequence[Channel]) -> None:
        """Takes out the bots that are gone and those whose connection changed, and puts in the channels `made`."""
        before, after = {bot.id: _connection(bot) for bot in running}, {bot.id: _connection(bot) for bot in bots}
        self._changing = True
        try:
            for name in [name for name, connection in before.items() if after.get(name) != connection]:
                task = self._tasks.pop(name, None)
                await cancelled([task] if task is not None else [])
                self._channels.pop(name, None)
            for channel in made:
                self._channels[channel.id] = channel
                self._begin(channel)
        finally:
            self._changing = False
            self._changed.set()

    @staticmethod
    def changed(running: Sequence[BotSettings], bots: Sequence[BotSettings]) -> list[BotSettings]:
        """Returns the bots that are new or connected in another way."""
        before = {bot.id: _connection(bot) for bot in running}
        return [bot for bot in bots if before.get(bot.id) != _connection(bot)]

    def seconds(self, name: str) -> float | None:
        """Returns the seconds since a channel was begun; None while another process receives for its bot."""
        began = self._began.get(name)
        return None if began is None else self._monotonic() - began

    def _begin(self, channel: Channel) -> None:
        self._began.pop(channel.id, None)
        self._tasks[channel.id] = asyncio.create_task(self._receive(channel))

    async def _receive(self, channel: Channel) -> None:
        async with self._loops.by_one(f"bot {channel.id}") if channel.receives_alone else nullcontext():
            self._began[channel.id] = self._monotonic()
            await supervise(channel, self._host, sleep=self._sleep, random=random.random)


def _connection(bot: BotSettings) -> dict[str, object]:
    return {name: value for name, value in dict(bot).items() if name not in _POLICY} | {"platform": bot.platform}
