"""`remora serve`: every channel receives until the process is told to stop, and health says how that goes.

Invariants: one channel's trouble never ends another; at the end receiving stops first, then what was taken is
answered, then what was said is read for memories, each within its time; nothing is lost when that is cut short, for
everything taken is committed and the next start goes on with it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from types import FrameType

import structlog

from channels.base import Channel, Health
from channels.supervision import supervise
from gateway import app, http
from gateway.config import Config
from gateway.jobs import ticking
from memory.errors import StorageError
from memory.service import Service, StoreHealth

log = structlog.get_logger(__name__)

#: Seconds without contact after which a channel is in trouble; a poll that finds nothing ends after 30.
SILENCE = 120
#: Seconds over a turn's own deadline that a message may wait to be answered, or an answer to be delivered.
GRACE = 60
#: Seconds between two looks at our own health.
_WATCH = 15.0
#: Seconds a store gets to say how it is.
_STORE_PATIENCE = 5.0


async def serve(
    config: Config,
    channels: Mapping[str, Channel],
    *,
    stop: asyncio.Event,
    say: Callable[[str], None],
    warnings: Sequence[str] = (),
    now: Callable[[], int] = app.now,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> int:
    """Serve `channels` until `stop` is set or all of them have ended; returns the exit code: 0, or 1 when health was
    bad for longer than `http.exit_after_minutes`.

    `say` gets a few lines for the operator, among them `warnings`. Raises `memory.errors.StorageError` when a store
    can't be opened and `http.AddressUnusable`.
    """
    began = monotonic()
    hearing = asyncio.Event()
    hooks = {name: hook for name, channel in channels.items() if (hook := channel.hook()) is not None}
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(app.opened(config, channels, now=now))
        memories = {
            spec.database or app.DEFAULT_DATABASE: parts.stores[name].memory for name, spec in config.agents.items()
        }

        async def report() -> http.Report:
            return judge(
                channels={name: channel.health() for name, channel in channels.items()},
                stores={name: await _asked(memory, channels) for name, memory in memories.items()},
                now=now(),
                uptime=monotonic() - began,
                turn_seconds=config.settings.limits.turn_seconds,
            )

        page = None
        if config.settings.http.enabled:
            page = await stack.enter_async_context(
                http.serving(
                    report,
                    host=config.settings.http.host,
                    port=config.settings.http.port,
                    hooks=tuple(hooks.values()),
                    hearing=hearing.is_set,
                )
            )
        # Above the page, which so says how it is until all is answered, and puts off what still comes.
        router = await stack.enter_async_context(app.answering(config, channels, parts, now=now))
        say(_greeting(config, channels, page, {name: hook.path for name, hook in hooks.items()}))
        for warning in warnings:
            say(f"Warning: {warning}")

        async def receive() -> None:
            hearing.set()
            async with asyncio.TaskGroup() as group:
                for channel in channels.values():
                    group.create_task(supervise(channel, router, sleep=sleep, random=random.random))

        await stack.enter_async_context(ticking(parts.workers, sleep=sleep))

        async def stopped() -> None:
            await stop.wait()
            hearing.clear()

        code = await _first(
            receive(),
            stopped(),
            _watch(report, minutes=config.settings.http.exit_after_minutes, monotonic=monotonic, sleep=sleep),
        )
        hearing.clear()
        say("Ending: what was taken is answered first. Ctrl-C once more ends at once; the next start then goes on.")
    return code


def judge(
    *,
    channels: Mapping[str, Health],
    stores: Mapping[str, StoreHealth | str],
    now: int,
    uptime: float,
    turn_seconds: float,
) -> http.Report:
    """How the process is, in numbers and reasons. `now` in milliseconds UTC, `uptime` in seconds.

    A store that could not say how it is has a text in its place: why.
    """
    reasons: list[str] = []
    polls: dict[str, http.ChannelReport] = {}
    for name, health in channels.items():
        silent = _age(health.contact, now)
        polls[name] = http.ChannelReport(last_poll_seconds_ago=silent, trouble=health.trouble)
        if health.trouble:
            reasons.append(f"{name}: {health.trouble}")
        elif (uptime if silent is None else silent) > SILENCE:
            since = "since the start" if silent is None else f"for {silent} s"
            reasons.append(f"{name}: no contact with the platform {since}.")
    states: list[http.StoreReport] = []
    for name, store in stores.items():
        if isinstance(store, str):
            reasons.append(f"{name}: {store}")
            states.append(
                http.StoreReport(
                    name=name, oldest_inbox_seconds=None, oldest_outbox_seconds=None, damage=store, wal_bytes=None
                )
            )
            continue
        inbox, outbox = _age(store.oldest_inbox, now), _age(store.oldest_outbox, now)
        states.append(
            http.StoreReport(
                name=name,
                oldest_inbox_seconds=inbox,
                oldest_outbox_seconds=outbox,
                damage=store.damage,
                wal_bytes=store.wal_bytes,
            )
        )
        if store.damage:
            reasons.append(f"{name}: {store.damage}")
        if inbox is not None and inbox > turn_seconds + GRACE:
            reasons.append(f"{name}: a message has waited for its answer for {inbox} s.")
        if outbox is not None and outbox > turn_seconds + GRACE:
            reasons.append(f"{name}: an answer could not be delivered for {outbox} s.")
    return http.Report(
        reasons=tuple(reasons),
        channels=polls,
        stores=tuple(states),
        version=version(),
        uptime_seconds=int(uptime),
    )


@contextmanager
def signals(stop: asyncio.Event) -> Iterator[None]:
    """Inside, the first SIGINT or SIGTERM sets `stop` and the second ends the process at once (exit 130 or 143).

    Must be entered in the main thread with the loop running.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            # Not by the signal's own effect: it has none in a container, where this is the first process.
            os._exit(128 + number)
        asked = True
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def version() -> str:
    """The program's version, as its package was installed."""
    try:
        return package_version("remora")
    except PackageNotFoundError:
        return "(not installed)"


def describe(config: Config, name: str) -> str:
    """An agent in one clause: its name and the models it uses."""
    models = ", ".join(f"{model.provider}/{model.model}".rstrip("/") for model in config.agents[name].models)
    chosen = " (default)" if name == config.default_agent and len(config.agents) > 1 else ""
    return f"{name}{chosen}: {models or 'offline, no language model'}"


async def _first(receiving: Awaitable[None], stopping: Awaitable[object], watching: Awaitable[None]) -> int:
    """Wait until one of three has ended, end the others, and say the exit code. Raises what the first one raised."""
    tasks = [asyncio.ensure_future(each) for each in (receiving, stopping, watching)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    return 1 if tasks[2] in done else 0


async def _watch(
    report: Callable[[], Awaitable[http.Report]],
    *,
    minutes: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Log when health turns; return when it has been bad for longer than `minutes`, unless these are 0."""
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


async def _asked(memory: Service, channels: Mapping[str, Channel]) -> StoreHealth | str:
    try:
        async with asyncio.timeout(_STORE_PATIENCE):
            return await memory.figures.health(list(channels))
    except TimeoutError:
        return f"the database did not answer within {_STORE_PATIENCE:g} s."
    except StorageError as error:
        return str(error)


def _age(at: int | None, now: int) -> int | None:
    """Whole seconds since `at`, both in milliseconds."""
    return None if at is None else max(0, (now - at) // 1000)


def _greeting(config: Config, channels: Mapping[str, Channel], page: str | None, hooks: Mapping[str, str]) -> str:
    """`hooks` are the paths of webhooks by their channels."""
    agents = "; ".join(describe(config, name) for name in config.agents)
    lines = [
        f"Remora {version()} serves {', '.join(channels)}. Ctrl-C ends it.",
        f"  agents: {agents}",
        f"  data:   {config.data_dir}",
        f"  health: {page or 'not served (http.enabled is false)'}",
    ]
    if hooks:
        at = f"{config.settings.http.host}:{config.settings.http.port}"
        lines.append(f"  hooks:  {', '.join(f'{name} at {path}' for name, path in hooks.items())}, taken at {at}")
    return "\n".join(lines)
