"""When to learn: after a quiet gap, at a cap, when a session ends, at exit, and what an earlier run left over.

Invariants: triggers of one session coalesce; a piece of work and what it found are one transaction, and transactions
run one at a time, so no two pieces of one owner cross; a failing piece is tried again later and never holds up
another session.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from memory.errors import StorageError
from memory.learn import extract, keep
from memory.store import extractions, history, people
from memory.store.database import Database, Transaction
from memory.store.extractions import Unread, Work

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """When unread messages are read: silence in seconds, or so many tokens or messages before that."""

    quiet_seconds: float = 60.0
    tokens: int = 2_000
    messages: int = 30


class Learner:
    """Reads sessions in the background. Call `heard` after each turn and `finish` at the end."""

    def __init__(
        self,
        database: Database,
        *,
        triggers: Triggers,
        timezone_of: Callable[[int], str],
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._triggers = triggers
        self._timezone_of = timezone_of
        self._now = now
        self._new_id = new_id
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sessions: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def heard(self, session_id: int, unread: Unread) -> None:
        """Something was said: wait for quiet, or read at once when a cap is reached."""
        self._disarm(session_id)
        if not unread.messages:
            return
        if unread.tokens >= self._triggers.tokens or unread.messages >= self._triggers.messages:
            self._start(session_id, "cap")
            return
        self._arm(session_id, self._triggers.quiet_seconds, "quiet")

    async def flush(self, session_id: int, reason: str) -> None:
        """Read what is unread in a session, now. A failure is kept for later, not raised."""
        self._disarm(session_id)
        async with self._sessions[session_id]:
            await self._database.write(lambda tx: extractions.schedule(tx, session_id, reason, now=self._now()))
            while work := await self._database.read(
                lambda reader: extractions.next_work(reader, session_id, now=self._now())
            ):
                await self._attempt(work)

    async def take_up(self) -> None:
        """At start: wait for quiet in every session an earlier run left unread, and redo broken-off work."""
        for session_id in await self._database.read(extractions.sessions_with_work):
            self._arm(session_id, self._triggers.quiet_seconds, "left over")

    async def finish(self, *, seconds: float) -> None:
        """Read everything unread before the process ends; what `seconds` do not suffice for waits for the next."""
        try:
            async with asyncio.timeout(seconds):
                for session_id in await self._database.read(extractions.sessions_with_work):
                    await self.flush(session_id, "exit")
                await asyncio.gather(*self._tasks)
        except TimeoutError:
            log.warning("learn.unfinished", seconds=seconds, kept="for the next start")
        except StorageError as exc:
            log.error("learn.unfinished", error=str(exc), kept="for the next start")
        finally:
            for timer in self._timers.values():
                timer.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _arm(self, session_id: int, seconds: float, reason: str) -> None:
        self._disarm(session_id)
        self._timers[session_id] = asyncio.get_running_loop().call_later(seconds, self._start, session_id, reason)

    def _start(self, session_id: int, reason: str) -> None:
        task = asyncio.create_task(self._flush_alone(session_id, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush_alone(self, session_id: int, reason: str) -> None:
        """Flush with nobody waiting: trouble with the store is logged, and the work stays for the next trigger."""
        try:
            await self.flush(session_id, reason)
        except StorageError as exc:
            log.error("learn.unsaved", session=session_id, error=str(exc))

    def _disarm(self, session_id: int) -> None:
        timer = self._timers.pop(session_id, None)
        if timer is not None:
            timer.cancel()

    async def _attempt(self, work: Work) -> None:
        try:
            found = await self._database.write(lambda tx: self._do(tx, work))
        except Exception as exc:
            code = type(exc).__name__
            log.exception("learn.failed", work=work.id, attempts=work.attempts + 1)
            again = await self._database.write(lambda tx: extractions.failed(tx, work, code, now=self._now()))
            if again is not None:
                self._arm(work.session_id, max(0.0, (again - self._now()) / 1000), "again")
        else:
            log.info("learn.done", work=work.id, found=found)

    def _do(self, tx: Transaction, work: Work) -> int:
        """Read one stretch and keep what it says; returns how much was found."""
        session = people.session_by_id(tx, work.session_id)
        messages = history.between(tx, work.session_id, work.first_id, work.last_id)
        found = 0
        for message in messages:
            if message.author_id is None:
                continue
            scope = people.scope_of(tx, session, message.author_id)
            timezone = people.speaker_by_id(tx, message.author_id).timezone or self._timezone_of(session.agent_id)
            for proposal in extract.read([message], scope=scope, timezone=timezone):
                kept = keep.keep(
                    tx, scope, proposal.draft, source_ids=[message.id], now=self._now(), new_id=self._new_id
                )
                found += kept is not None
        extractions.done(tx, work.id, found=found, now=self._now())
        return found
