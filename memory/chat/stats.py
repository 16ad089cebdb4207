"""Figures about a scope, a session, a store and model calls, for status lines and health.

Invariants: This module changes nothing and returns no remembered words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from memory.context import Context, confined, in_read, reads, sees
from memory.jobs import asking, runs
from memory.jobs.runs import Run
from memory.learn import extractions
from memory.learn.extractions import ReadingState
from memory.mailbox import outbox
from memory.mailbox.mailbox import Mailbox
from memory.recall.embedding import Embedding, EmbeddingProgress
from memory.scope import Scope
from memory.store import chats, history, memories, passages, people, usage
from memory.store.chats import Session
from memory.store.database import Database, Parameter, Reader, Row, Transaction
from memory.store.server import Deployment
from memory.store.usage import Spent
from memory.text.times import clock

_DAY_MS = 24 * 3_600_000
#: The answers, and the people, channels and agents, that are counted at most.
_ANSWERS: Final = 20_000
_NAMED: Final = 20


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
    the pieces of talk and the memories that models refused to read and that hold up nothing any more. `muted` counts
    the places in which nothing may be written.
    """

    oldest_inbox: int | None
    oldest_outbox: int | None
    damage: str | None
    wal_bytes: int
    words_only: str = ""
    deployment: Deployment | None = None
    set_aside: int = 0
    muted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The figures of the status line: about a session, and about the memories of its scope.

    `unread` counts the messages that are not yet scheduled to be read; `reading` is the state of the rest. Tokens and
    `cost` are counted since midnight in the person's timezone. `embedding` is None if memory is searched by words
    alone. `muted` names the chats of the store in which nothing may be written, which only admins may see.
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
    muted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The tokens read and written for answers, and their cost as far as prices are known."""

    tokens: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The sum of model calls of one purpose with one model. `cost` is None if no price is known for any of them."""

    purpose: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredDay:
    """The turns begun on one day: how many were answered and how many failed. Half of them took at most `p50`, and 95 %
    at most `p95` (milliseconds); None without any."""

    day: date
    answered: int
    failed: int
    p50: int | None
    p95: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedBy:
    """The use of models by an agent, for a person or on a channel. `name` is empty for work that is nobody's."""

    name: str
    calls: int
    tokens: int
    cost: float | None


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
        inbox, outbox = await self._mailbox.oldest(channels)
        return StoreHealth(
            oldest_inbox=inbox,
            oldest_outbox=outbox,
            damage=self._database.damage,
            words_only="" if self._embedding is None else self._embedding.trouble,
            wal_bytes=self._database.wal_bytes,
            deployment=await self._database.read(self._database.deployment),
            muted=0 if self._database.damage else len(await self._mailbox.muted()),
            set_aside=0
            if self._database.damage
            else await self._database.read(
                lambda reader: asking.count_set_aside(reader) + extractions.count_parked(reader)
            ),
        )

    @in_read
    def used_until(self, reader: Reader) -> int:
        return _last_booked(reader)

    @in_read
    def figures(self, reader: Reader, *, since: int) -> StoreFigures:
        """Returns the figures of the store. The use of models is counted from a moment of earlier figures on."""
        until = _last_booked(reader)
        return StoreFigures(
            waiting=_waiting(reader),
            sizes={"database": self._database.file_bytes, "log": self._database.wal_bytes},
            runs=tuple(runs.latest(reader)),
            used=tuple(_used(reader, "id > ? and id <= ?", (since, until))),
            used_until=until,
            deployment=self._database.deployment(reader),
        )

    @in_read
    def queue(self, reader: Reader) -> Mapping[str, int]:
        """Counts what waits, by kind, and the runs of night jobs that are under way."""
        running = reader.number("select count(*) from job_runs where state = 'running'")
        return {**_waiting(reader), "jobs": running}

    @in_read
    def rows(self, reader: Reader) -> Mapping[str, int]:
        tables = ("messages", "memories", "people", "chats", "reminders")
        return {table: reader.number(f"select count(*) from {table}") for table in tables}

    @in_read
    def usage(self, reader: Reader, context: Context, *, days: int, everywhere: bool = False) -> list[Used]:
        """Returns the usage of model calls in the last `days`, by purpose and model.

        Counts this session, or with `everywhere` all sessions of its agent.
        """
        since = self._now() - days * _DAY_MS
        return _used_since(reader, context.session, since=since, everywhere=everywhere)

    @in_read
    def by_day(self, reader: Reader, context: Context, *, days: int) -> list[UsedDay]:
        """Returns the usage of model calls on each of the last `days` days in the person's time zone, today last."""
        first = clock.local_date(self._now(), context.timezone) - timedelta(days=days - 1)
        by_day: dict[date, list[Row]] = {first + timedelta(days=n): [] for n in range(days)}
        # By quarters of an hour, a unit that divides days evenly in every time zone.
        for row in reader.all(
            "select created_at / 900000 * 900000 as at, purpose, count(*) as calls,"
            " sum(input_tokens + output_tokens) as tokens, sum(cost) as cost from usage"
            " where agent_id = ? and created_at >= ? group by 1, 2 order by 1",
            (context.session.agent_id, clock.end_of(first - timedelta(days=1), context.timezone)),
        ):
            by_day.setdefault(clock.local_date(row["at"], context.timezone), []).append(row)
        return [_used_on(day, rows) for day, rows in sorted(by_day.items())]

    @in_read
    def answered(self, reader: Reader, context: Context, *, days: int) -> list[AnsweredDay]:
        """Returns how the answers of this agent went on each of the last `days` days, today last."""
        first = clock.local_date(self._now(), context.timezone) - timedelta(days=days - 1)
        by_day: dict[date, list[Row]] = {first + timedelta(days=n): [] for n in range(days)}
        for row in reader.all(
            "select t.started_at / 900000 * 900000 as at, t.finished_at - t.started_at as took, t.error is null as ok"
            " from (select * from turns order by id desc limit ?) t"
            " where t.agent_id = ? and t.state <> 'running' and t.started_at >= ?",
            (_ANSWERS, context.session.agent_id, clock.end_of(first - timedelta(days=1), context.timezone)),
        ):
            by_day.setdefault(clock.local_date(row["at"], context.timezone), []).append(row)
        return [_answered_on(day, rows) for day, rows in sorted(by_day.items())]

    @in_read
    def used_by(self, reader: Reader, *, days: int, channel: str | None) -> dict[str, list[UsedBy]]:
        """Returns the use of models in this store by agent, channel and person, the most tokens first.

        People are those who use `channel`, as in session keys; with None all of them.
        """
        rows = reader.all(
            "select a.name as agent, coalesce(s.key, '') as key, u.identity_id, count(*) as calls,"
            " sum(u.input_tokens + u.output_tokens) as tokens, sum(u.cost) as cost from usage u"
            " join agents a on a.id = u.agent_id left join sessions s on s.id = u.session_id"
            " where u.created_at >= ? and u.input_tokens > 0 group by a.name, s.key, u.identity_id",
            (self._now() - days * _DAY_MS,),
        )
        theirs = [row for row in rows if channel is None or row["key"].startswith(f"{channel}:")]
        ids = {row["identity_id"] for row in theirs} - {None}
        named = {row["id"]: row for row in reader.all(
            "select id, person_id, name, user_id from identities where id in (select value from json_each(?))", (ids,)
        )}  # fmt: skip
        names = {row["person_id"]: row["name"] or row["user_id"] for row in named.values()}
        return {
            "agent": _summed(rows, lambda row: row["agent"]),
            "channel": _summed(rows, lambda row: row["key"].partition(":")[0]),
            "person": _summed(
                theirs,
                lambda row: names[named[row["identity_id"]]["person_id"]] if row["identity_id"] in named else "",
            ),
        }

    async def spending(self, context: Context, timezone: str) -> Spending:
        session, (since, until) = context.session, clock.day_bounds(self._now(), timezone)

        def act(reader: Reader) -> Spending:
            people_ids = [account.id for account in people.accounts(reader, context.speaker.id)]
            return Spending(
                person=_answers_since(reader, session.agent_id, since=since, people=people_ids),
                chat=_answers_since(reader, session.agent_id, since=since, chat_id=session.chat_id),
                agent=_answers_since(reader, session.agent_id, since=since),
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
            used = _used_since(reader, session, since=today)
            costs = [use.cost for use in used if use.cost is not None]
            return Status(
                live=sum(held.kinds.values()),
                total=sum(held.kinds.values()) + held.past,
                window_messages=len(window),
                window_tokens=sum(message.tokens for message in window),
                unread=extractions.unread(reader, session.id).messages,
                reading=extractions.standing(reader, session.id),
                inbound=inbound,
                outbound=outbound,
                tokens_in=sum(use.input_tokens for use in used),
                tokens_out=sum(use.output_tokens for use in used),
                cost=sum(costs) if costs else None,
                sqlite=self._database.engine,
                path=self._database.path,
                processes=len(self._database.deployment(reader).answering) or 1,
                embedding=progress,
                muted=tuple(dict.fromkeys(chats.muted(reader).values())),
            )

        return await self._database.read(act)


def _waiting(reader: Reader) -> dict[str, int]:
    return {
        "inbox": reader.number("select count(*) from inbox where state in ('pending', 'claimed')"),
        "outbox": reader.number("select count(*) from outbox where state in ('pending', 'sending', 'unknown')"),
        "reading": reader.number("select count(*) from extractions where state = 'pending'"),
        "embedding": reader.number("select count(*) from unembedded"),
        "indexing": reader.number("select count(*) from changes"),
    }


def _answered_on(day: date, rows: Sequence[Row]) -> AnsweredDay:
    took, count = sorted(row["took"] or 0 for row in rows), len(rows)
    failed = sum(not row["ok"] for row in rows)
    p50, p95 = (took[-(-count * share // 100) - 1] if took else None for share in (50, 95))
    return AnsweredDay(day=day, answered=count - failed, failed=failed, p50=p50, p95=p95)


def _summed(rows: Sequence[Row], name_of: Callable[[Row], str]) -> list[UsedBy]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(name_of(row), []).append(row)
    summed = [
        UsedBy(
            name=name,
            calls=sum(row["calls"] for row in of_it),
            tokens=sum(row["tokens"] for row in of_it),
            cost=_cost(of_it),
        )
        for name, of_it in by_name.items()
    ]
    return sorted(summed, key=lambda used: -used.tokens)[:_NAMED]


def _cost(rows: Sequence[Row]) -> float | None:
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    return sum(costs) if costs else None


def _used(reader: Reader, which: str, parameters: Sequence[Parameter]) -> list[Used]:
    rows = reader.all(
        "select purpose, model, count(*) as calls, sum(input_tokens) as input_tokens,"
        f" sum(output_tokens) as output_tokens, sum(cost) as cost from usage where {which}"
        " group by purpose, model order by sum(input_tokens) + sum(output_tokens) desc",
        parameters,
    )
    return [Used(**dict(row)) for row in rows]


def _used_since(reader: Reader, session: Session, *, since: int, everywhere: bool = False) -> list[Used]:
    return _used(
        reader,
        "agent_id = ?1 and created_at >= ?2 and (?3 is null or session_id = ?3)",
        (session.agent_id, since, None if everywhere else session.id),
    )


def _last_booked(reader: Reader) -> int:
    """Returns the moment of the last booking.

    With one writer no booking appears later under a lower id. With several, a figure might miss one, which is harmless.
    """
    return reader.number("select coalesce(max(id), 0) from usage")


def _used_on(day: date, rows: Sequence[Row]) -> UsedDay:
    answers = sum(row["tokens"] for row in rows if row["purpose"] in usage.ANSWERS)
    return UsedDay(
        day=day,
        calls=sum(row["calls"] for row in rows),
        answers=answers,
        background=sum(row["tokens"] for row in rows) - answers,
        cost=_cost(rows),
    )


def _answers_since(
    reader: Reader, agent_id: int, *, since: int, people: Sequence[int] | None = None, chat_id: int | None = None
) -> Taken:
    whose = " and identity_id in (select value from json_each(?))" if people is not None else ""
    where = " and session_id in (select id from sessions where chat_id = ?)" if chat_id is not None else ""
    row = reader.one(
        "select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0.0) as cost from usage"
        f" where purpose in ('chat', 'task') and agent_id = ? and created_at >= ?{whose}{where}",
        (agent_id, since, *(whom for whom in (people, chat_id) if whom is not None)),
    )
    assert row is not None
    return Taken(tokens=row["tokens"], cost=row["cost"])
