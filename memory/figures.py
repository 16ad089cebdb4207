"""How much there is: the figures of a scope, a session, a store and of model calls, for status lines and health.

Invariants: nothing is changed here, and no remembered word comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from memory import dates
from memory.desk import Context, anew
from memory.mail import Mail
from memory.recall.embedding import Embedding, Progress
from memory.store import extractions, history, mailbox, memories, passages, usage
from memory.store.database import Database, Reader
from memory.store.extractions import Standing
from memory.store.usage import Used

_DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How much one scope remembers: live rows by kind, past ones, messages, and the time of the oldest row."""

    kinds: dict[str, int]
    past: int
    messages: int
    since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """How a store stands: since when the oldest message waits for its answer and the oldest row for its send

    (milliseconds UTC), what is damaged and what to do about it, and the size of the write-ahead log in bytes.
    """

    oldest_inbox: int | None
    oldest_outbox: int | None
    damage: str | None
    wal_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Figures for the status line, of this session and of what its scope remembers.

    `unread` messages are not yet put down to be read; how the rest stands is in `reading`. Tokens and `cost` are those
    since midnight where the person lives; `embedding` is None where words alone serve.
    """

    live: int
    total: int
    window_messages: int
    window_tokens: int
    unread: int
    reading: Standing
    inbound: int
    outbound: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    sqlite: str
    path: Path
    embedding: Progress | None


class Figures:
    """`Service.figures`."""

    def __init__(self, database: Database, *, mail: Mail, embedding: Embedding | None, now: Callable[[], int]) -> None:
        self._database = database
        self._mail = mail
        self._embedding = embedding
        self._now = now

    async def stats(self, context: Context) -> Stats:
        def act(reader: Reader) -> Stats:
            scope = anew(reader, context).scope
            live = memories.kinds(reader, scope)
            return Stats(
                kinds=live,
                past=memories.count(reader, scope, live_only=False) - sum(live.values()),
                messages=passages.count(reader, scope),
                since=memories.oldest(reader, scope),
            )

        return await self._database.read(act)

    async def health(self, channels: Collection[str]) -> StoreHealth:
        """How the store stands, and what waits in it for these channels, named as in session keys."""
        inbox, outbox = await self._mail.oldest(channels)
        return StoreHealth(
            oldest_inbox=inbox,
            oldest_outbox=outbox,
            damage=self._database.damage,
            wal_bytes=self._database.wal_bytes,
        )

    async def usage(self, context: Context, *, days: int, everywhere: bool = False) -> list[Used]:
        """What model calls took in the last `days`, by purpose and model: here, or of this agent `everywhere`."""
        since = self._now() - days * _DAY_MS
        session_id = None if everywhere else context.session.id
        return await self._database.read(
            lambda reader: usage.used(reader, context.session.agent_id, session_id=session_id, since=since)
        )

    async def status(self, context: Context) -> Status:
        session = context.session
        progress = None if self._embedding is None else await self._embedding.progress()

        def act(reader: Reader) -> Status:
            scope = anew(reader, context).scope
            window = history.after(reader, session.id, session.window_after, limit=1_000)
            inbound, outbound = mailbox.backlog(reader, session.key)
            today = dates.midnight(self._now(), context.timezone)
            used = usage.used(reader, session.agent_id, session_id=session.id, since=today)
            costs = [one.cost for one in used if one.cost is not None]
            return Status(
                live=memories.count(reader, scope, live_only=True),
                total=memories.count(reader, scope, live_only=False),
                window_messages=len(window),
                window_tokens=sum(message.tokens for message in window),
                unread=extractions.unread(reader, session.id).messages,
                reading=extractions.standing(reader, session.id),
                inbound=inbound,
                outbound=outbound,
                tokens_in=sum(one.input_tokens for one in used),
                tokens_out=sum(one.output_tokens for one in used),
                cost=sum(costs) if costs else None,
                sqlite=str(self._database.driver),
                path=self._database.path,
                embedding=progress,
            )

        return await self._database.read(act)
