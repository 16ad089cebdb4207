"""Figures about a scope, a session, a store and model calls, for status lines and health.

Invariants: This module changes nothing and returns no remembered words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from memory.context import Context, confined, in_read, reads, sees
from memory.mailbox import outbox
from memory.mailbox.mailbox import Mailbox
from memory.recall.embedding import Embedding, EmbeddingProgress
from memory.scope import Scope
from memory.store import extractions, figures, history, job_runs, memories, passages, people, refusals, replicas, usage
from memory.store.database import Database, Reader, Transaction
from memory.store.extractions import ReadingState
from memory.store.job_runs import Run
from memory.store.server import Deployment
from memory.store.usage import Spent, Taken, Used, UsedQuarter
from memory.text.times import clock

_DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStats:
    """The counts of one scope's memories and messages.

    `kinds` counts live memories by kind, `past` the memories no longer live, and `messages` the messages. `since` is
    the time of the oldest row.
    """

    kinds: dict[str, int]
    past: int
    messages: int
    since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """The state of a store.

    `oldest_inbox` is the arrival of the oldest message that waits for its answer, and `oldest_outbox` the creation of
    the oldest row that waits to be sent, both in milliseconds UTC. `damage` names the damage and the remedy.
    `words_only` says why memory is searched by words alone at the moment; it is empty otherwise. `set_aside` counts
    the pieces of talk and the memories that models refused to read and that hold up nothing any more.
    """

    oldest_inbox: int | None
    oldest_outbox: int | None
    damage: str | None
    wal_bytes: int
    words_only: str = ""
    deployment: Deployment | None = None
    set_aside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The figures of the status line: about a session, and about the memories of its scope.

    `unread` counts the messages that are not yet scheduled to be read; `reading` is the state of the rest. Tokens and
    `cost` are counted since midnight in the person's timezone. `embedding` is None if memory is searched by words
    alone.
    """

    live: int
    total: int
    window_messages: int
    window_tokens: int
    unread: int
    reading: ReadingState
    inbound: int
    outbound: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    sqlite: str
    path: Path
    processes: int
    embedding: EmbeddingProgress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The tokens and money that answers took today: to the person, in the chat, and by the agent. `until` ends the day.

    All accounts of a person count together.
    """

    person: Taken
    chat: Taken
    agent: Taken
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedDay:
    """The model calls of one day: tokens for `answers` and for work in the `background`. `cost` is None if unknown."""

    day: date
    calls: int
    answers: int
    background: int
    cost: float | None


def _day(day: date, of: Sequence[UsedQuarter]) -> UsedDay:
    costs = [one.cost for one in of if one.cost is not None]
    answers = sum(one.tokens for one in of if one.purpose in usage.ANSWERS)
    return UsedDay(
        day=day,
        calls=sum(one.calls for one in of),
        answers=answers,
        background=sum(one.tokens for one in of) - answers,
        cost=sum(costs) if costs else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """The figures of a whole store.

    `waiting` and `sizes`, in bytes, are by name. `runs` are the newest of each night job. `used` is the use of models
    between two moments, the second of which is `used_until`.
    """

    waiting: Mapping[str, int]
    sizes: Mapping[str, int]
    runs: tuple[Run, ...]
    used: tuple[Used, ...]
    used_until: int
    deployment: Deployment


def _stats(reader: Reader, scope: Scope) -> ScopeStats:
    held = memories.held(reader, scope)
    return ScopeStats(kinds=held.kinds, past=held.past, messages=passages.count(reader, scope), since=held.since)


class Stats:
    """The figures of one store (`Service.stats`)."""

    def __init__(
        self, database: Database, *, mailbox: Mailbox, embedding: Embedding | None, now: Callable[[], int]
    ) -> None:
        self._database = database
        self._mailbox = mailbox
        self._embedding = embedding
        self._now = now

    stats = sees(_stats)
    of_turn = reads(usage.of_turn)

    async def book(self, context: Context, spent: Spent) -> None:
        """Books a model call for the speaker that belongs to no turn."""
        session, speaker = context.session, context.speaker

        def act(tx: Transaction) -> None:
            usage.add(
                tx,
                spent,
                agent_id=session.agent_id,
                session_id=session.id,
                identity_id=speaker.id,
                purpose="chat",
                now=self._now(),
            )

        await self._database.write(act)

    async def health(self, channels: Collection[str]) -> StoreHealth:
        """Returns the state of the store and of the messages waiting for these channels, named as in session keys."""
        inbox, outbox = await self._mailbox.oldest(channels)
        return StoreHealth(
            oldest_inbox=inbox,
            oldest_outbox=outbox,
            damage=self._database.damage,
            words_only="" if self._embedding is None else self._embedding.trouble,
            wal_bytes=self._database.wal_bytes,
            deployment=await self._database.read(self._deployment),
            set_aside=0 if self._database.damage else await self._database.read(_set_aside),
        )

    def _deployment(self, reader: Reader) -> Deployment:
        own = self._database.peers
        return Deployment(
            engine=self._database.engine,
            server=self._database.server(reader),
            own=own.id,
            peers=() if own.is_alone else tuple(replicas.peers(reader)),
            silent_seconds=round(own.silent_seconds, 1),
            is_lost=own.lost.is_set(),
        )

    async def used_until(self) -> int:
        """Returns the moment up to which the use of models is known."""
        return await self._database.read(usage.last)

    @in_read
    def figures(self, reader: Reader, *, since: int) -> StoreFigures:
        """Returns the figures of the store. The use of models is counted from a moment of earlier figures on."""
        until = usage.last(reader)
        return StoreFigures(
            waiting=figures.waiting(reader),
            sizes={"database": self._database.file_bytes, "log": self._database.wal_bytes},
            runs=tuple(job_runs.latest(reader)),
            used=tuple(usage.between(reader, since, until)),
            used_until=until,
            deployment=self._deployment(reader),
        )

    async def rows(self) -> Mapping[str, int]:
        """Returns the number of rows of the largest tables, which takes a while."""
        return await self._database.read(figures.rows)

    async def usage(self, context: Context, *, days: int, everywhere: bool = False) -> list[Used]:
        """Returns the usage of model calls in the last `days`, by purpose and model.

        Counts this session, or with `everywhere` all sessions of its agent.
        """
        since = self._now() - days * _DAY_MS
        session_id = None if everywhere else context.session.id
        return await self._database.read(
            lambda reader: usage.used(reader, context.session.agent_id, session_id=session_id, since=since)
        )

    async def by_day(self, context: Context, *, days: int) -> list[UsedDay]:
        """Returns the usage of model calls on each of the last `days` days in the person's time zone, today last."""
        today = clock.local_date(self._now(), context.timezone)
        first = today - timedelta(days=days - 1)
        since = clock.end_of(first - timedelta(days=1), context.timezone)
        quarters = await self._database.read(
            lambda reader: usage.by_quarter(reader, context.session.agent_id, since=since)
        )
        found: dict[date, list[UsedQuarter]] = {first + timedelta(days=n): [] for n in range(days)}
        for one in quarters:
            found.setdefault(clock.local_date(one.at, context.timezone), []).append(one)
        return [_day(day, of) for day, of in sorted(found.items())]

    async def spending(self, context: Context, timezone: str) -> Spending:
        """Returns the cost of today's answers; the day is that of the agent's `timezone`."""
        session, (since, until) = context.session, clock.day_bounds(self._now(), timezone)

        def act(reader: Reader) -> Spending:
            people_ids = [one.id for one in people.accounts(reader, context.speaker.id)]
            return Spending(
                person=usage.answers_since(reader, session.agent_id, since=since, people=people_ids),
                chat=usage.answers_since(reader, session.agent_id, since=since, chat_id=session.chat_id),
                agent=usage.answers_since(reader, session.agent_id, since=since),
                until=until,
            )

        return await self._database.read(act)

    async def status(self, context: Context) -> Status:
        session = context.session
        progress = None if self._embedding is None else await self._embedding.progress()

        def act(reader: Reader) -> Status:
            scope = confined(reader, context).scope
            held = memories.held(reader, scope)
            window = history.after(reader, session.id, session.window_after, limit=1_000)
            inbound, outbound = outbox.backlog(reader, session.key)
            today = clock.midnight(self._now(), context.timezone)
            used = usage.used(reader, session.agent_id, session_id=session.id, since=today)
            costs = [one.cost for one in used if one.cost is not None]
            return Status(
                live=sum(held.kinds.values()),
                total=sum(held.kinds.values()) + held.past,
                window_messages=len(window),
                window_tokens=sum(message.tokens for message in window),
                unread=extractions.unread(reader, session.id).messages,
                reading=extractions.standing(reader, session.id),
                inbound=inbound,
                outbound=outbound,
                tokens_in=sum(one.input_tokens for one in used),
                tokens_out=sum(one.output_tokens for one in used),
                cost=sum(costs) if costs else None,
                sqlite=self._database.engine,
                path=self._database.path,
                processes=1 if self._database.peers.is_alone else replicas.answering(reader),
                embedding=progress,
            )

        return await self._database.read(act)


def _set_aside(reader: Reader) -> int:
    return refusals.count_set_aside(reader) + extractions.count_parked(reader)
