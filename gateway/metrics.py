"""The metrics page, in the text format of Prometheus.

Invariants: labels hold the names of the configuration (agents, bots, models, databases) and of the program, never a
person, a chat or a person's word. A part that can't be counted is left out; the others are shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.spans import BOUNDS, Durations
from gateway.ops.health import Report
from gateway.ops.stalls import Stalls
from gateway.pipeline.store import Store
from memory.chat.stats import StoreFigures
from memory.errors import StorageError
from memory.store.server import Deployment

log = structlog.get_logger(__name__)

#: Seconds for which a count of rows is shown again: counting reads whole tables.
_ROWS_SECONDS: Final = 300.0


class Metrics:
    """The figures of a running bot. `stores` are its stores by the names of their databases."""

    def __init__(
        self,
        report: Callable[[], Awaitable[Report]],
        stores: Mapping[str, Store],
        used_until: Mapping[str, int],
        stalls: Stalls,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`used_until` holds for each store the moment from which the use of models is counted."""
        self._report = report
        self._stores = stores
        self._stalls = stalls
        self._monotonic = monotonic
        self._rows: dict[str, tuple[float, Mapping[str, int]]] = {}
        self._used = dict(used_until)
        self._spent: Counter[tuple[str, ...]] = Counter()
        self._cost: dict[tuple[str, ...], float] = {}

    async def page(self) -> bytes:
        families = [*_of_process(await self._report()), *_of_loop(self._stalls), *_of_pipeline(self._stores)]
        figures: dict[str, StoreFigures] = {}
        for name, store in self._stores.items():
            try:
                figures[name] = await self._counted(name, store)
            except StorageError as exc:
                log.warning("metrics.left_out", store=name, error=str(exc))
        deployments = {name: one.deployment for name, one in figures.items()}
        families += [*_of_stores(figures), *_of_deployments(deployments), *self._of_models(), *self._of_rows()]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(families))
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    async def _counted(self, name: str, store: Store) -> StoreFigures:
        figures = await store.memory.stats.figures(since=self._used[name])
        self._used[name] = figures.used_until
        for used in figures.used:
            key = (name, used.purpose, used.model)
            self._spent[*key, "in"] += used.input_tokens
            self._spent[*key, "out"] += used.output_tokens
            self._spent[*key, "calls"] += used.calls
            self._cost[key] = self._cost.get(key, 0.0) + (used.cost or 0.0)
        counted_at, _ = self._rows.get(name, (-_ROWS_SECONDS, {}))
        if self._monotonic() - counted_at >= _ROWS_SECONDS:
            self._rows[name] = self._monotonic(), await store.memory.stats.rows()
        return figures

    def _of_models(self) -> Iterable[Metric]:
        labels = ["store", "purpose", "model"]
        calls = CounterMetricFamily("remora_model_calls", "Answers of models since the start.", labels=labels)
        tokens = CounterMetricFamily("remora_tokens", "Tokens since the start.", labels=[*labels, "direction"])
        cost = CounterMetricFamily("remora_cost", "Cost since the start, as far as prices are known.", labels=labels)
        for (*key, what), number in self._spent.items():
            if what == "calls":
                calls.add_metric(key, number)
            else:
                tokens.add_metric([*key, what], number)
        for each, sum_ in self._cost.items():
            cost.add_metric(list(each), sum_)
        return calls, tokens, cost

    def _of_rows(self) -> Iterable[Metric]:
        counted = {name: rows for name, (_, rows) in self._rows.items()}
        yield _gauges("remora_rows", "Rows of the largest tables, counted every five minutes.", ["table"], counted)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_process(report: Report) -> Iterable[Metric]:
    info = GaugeMetricFamily("remora_info", "The version that runs.", labels=["version"])
    info.add_metric([report.version], 1)
    yield info
    yield GaugeMetricFamily("remora_healthy", "1 if the health page is green.", value=report.status == "green")
    yield GaugeMetricFamily("remora_uptime_seconds", "Seconds since the start.", value=report.uptime_seconds)
    contact = GaugeMetricFamily(
        "remora_channel_contact_age_seconds", "Seconds since the platform last answered.", labels=["channel"]
    )
    trouble = GaugeMetricFamily("remora_channel_trouble", "1 if the channel is in trouble.", labels=["channel"])
    unread = CounterMetricFamily(
        "remora_channel_unread", "Updates of which something could not be read.", labels=["channel"]
    )
    for name, channel in report.channels.items():
        trouble.add_metric([name], bool(channel.trouble))
        unread.add_metric([name], channel.unread)
        if channel.last_poll_seconds_ago is not None:
            contact.add_metric([name], channel.last_poll_seconds_ago)
    yield from (contact, trouble, unread)
    age = GaugeMetricFamily(
        "remora_queue_age_seconds", "Age of the oldest message that waits; 0 if none does.", labels=["store", "queue"]
    )
    for store in report.stores:
        age.add_metric([store.name, "inbox"], store.oldest_inbox_seconds or 0)
        age.add_metric([store.name, "outbox"], store.oldest_outbox_seconds or 0)
    yield age
    restarts = CounterMetricFamily(
        "remora_loop_restarts", "Failures of endless work, after each of which it went on.", labels=["store", "loop"]
    )
    failing = GaugeMetricFamily("remora_put_off", "Pieces of work put off after failures.", labels=["store", "loop"])
    for loop in report.loops:
        restarts.add_metric([loop.store, loop.loop], loop.restarts)
        failing.add_metric([loop.store, loop.loop], loop.failing)
    yield from (restarts, failing)


def _of_loop(stalls: Stalls) -> Iterable[Metric]:
    stood = HistogramMetricFamily("remora_loop_stood_seconds", "Stalls of the event loop over 0.1 s.")
    stood.add_metric([], buckets=_buckets(stalls.durations), sum_value=stalls.durations.total)
    computed = CounterMetricFamily(
        "remora_loop_stood_processor_seconds", "Processor time within these stalls.", value=stalls.processor_seconds
    )
    longest = GaugeMetricFamily(
        "remora_loop_longest_stall_seconds",
        "The longest stall of the last five minutes; 0 if there was none.",
        value=stalls.longest.seconds if stalls.longest else 0,
    )
    return stood, computed, longest


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    return list(zip([*map(str, BOUNDS), "+Inf"], accumulate(durations.counts), strict=True))


def _of_pipeline(stores: Mapping[str, Store]) -> Iterable[Metric]:
    turns = CounterMetricFamily("remora_turns", "Turns since the start, by their end.", labels=["store", "end"])
    recalled = CounterMetricFamily("remora_recalled", "Memories and messages given to models.", labels=["store"])
    sends = CounterMetricFamily("remora_deliveries", "Sends since the start.", labels=["store", "channel", "fate"])
    parts = HistogramMetricFamily("remora_turn_part_seconds", "Durations of turns.", labels=["store", "part"])
    for name, store in stores.items():
        for (what, which), number in store.turns.tally.counts.items():
            if what == "turn":
                turns.add_metric([name, which], number)
            else:
                recalled.add_metric([name], number)
        for (channel, fate), number in store.delivery.tally.counts.items():
            sends.add_metric([name, channel, fate], number)
        for part, durations in store.turns.tally.durations.items():
            parts.add_metric([name, part], buckets=_buckets(durations), sum_value=durations.total)
    return turns, recalled, sends, parts


def _of_stores(figures: Mapping[str, StoreFigures]) -> Iterable[Metric]:
    waiting = {name: one.waiting for name, one in figures.items()}
    yield _gauges("remora_waiting", "What waits for its answer, its delivery or the background.", ["what"], waiting)
    sizes = {name: one.sizes for name, one in figures.items()}
    yield _gauges("remora_store_bytes", "Sizes of the database and its write-ahead log.", ["file"], sizes)
    ended = GaugeMetricFamily(
        "remora_job_ended_timestamp_seconds", "When a night job last ended.", labels=["store", "agent", "job"]
    )
    failed = GaugeMetricFamily("remora_job_failed", "1 if its last run failed.", labels=["store", "agent", "job"])
    for name, one in figures.items():
        for run in one.runs:
            failed.add_metric([name, run.agent, run.job], run.state == "failed")
            if run.finished_at is not None:
                ended.add_metric([name, run.agent, run.job], run.finished_at / 1000)
    yield from (ended, failed)


def _of_deployments(deployments: Mapping[str, Deployment]) -> Iterable[Metric]:
    info = GaugeMetricFamily("remora_store_info", "The engine of the store.", labels=["store", "engine", "version"])
    own = ["store"]
    answering = GaugeMetricFamily("remora_processes", "Processes that answer.", labels=own)
    held = GaugeMetricFamily("remora_sessions_held", "Sessions that this process holds.", labels=own)
    duties = GaugeMetricFamily("remora_duty", "1 for each duty of this process.", labels=["store", "duty"])
    silent = GaugeMetricFamily(
        "remora_sign_of_life_age_seconds", "Seconds since this process told the others that it lives.", labels=own
    )
    dead = GaugeMetricFamily("remora_taken_for_dead", "1 if the others took this process for dead.", labels=own)
    lag = GaugeMetricFamily(
        "remora_standby_lag_bytes", "Bytes of the server's log not yet applied there.", labels=["store", "standby"]
    )
    for name, one in deployments.items():
        info.add_metric([name, *one.engine.partition(" ")[::2]], 1)
        answering.add_metric([name], len(one.answering) if one.own else 1)
        if not one.own:
            continue
        silent.add_metric([name], one.silent_seconds)
        dead.add_metric([name], one.is_lost)
        if one.here is not None:
            held.add_metric([name], one.here.lanes)
            for work in one.here.duties:
                duties.add_metric([name, work], 1)
        for number, standby in enumerate(one.server.standbys if one.server is not None else ()):
            if standby.lag_bytes is not None:
                lag.add_metric([name, f"{standby.name} {number + 1}"], standby.lag_bytes)
    return info, answering, held, duties, silent, dead, lag


def _gauges(name: str, told: str, labels: list[str], numbers: Mapping[str, Mapping[str, int]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, told, labels=["store", *labels])
    for store, own in numbers.items():
        for which, number in own.items():
            family.add_metric([store, which], number)
    return family
