"""When to learn: after a quiet gap, at a cap, when a session ends, at exit, and what an earlier run left over.

Invariants: triggers of one session coalesce; pieces of one owner are read one after the other; a model is asked outside
any transaction, and a piece of work, what it found and what it cost are one transaction; a failing piece is tried again
later, then set aside, and never holds up another session; what was forgotten while a model read is not learned.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog

from memory.errors import MemoryFault, StorageError, StoreBusy, StoreDamaged
from memory.learn import budget, extract, keep
from memory.learn.answer import Answer, Unreadable, read_answer
from memory.learn.ask import Mind, ModelFailed, Stretch, Told, ask, shortened
from memory.recall import index
from memory.recall.search import nearest_facts
from memory.scope import Scope
from memory.store import extractions, history, memories, people, usage
from memory.store.database import Database, Reader, Transaction
from memory.store.extractions import Unread, Work
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.people import Session

log = structlog.get_logger(__name__)

#: Seconds a model gets for one piece of work.
_SECONDS = 90.0
#: Pieces that models read at the same time: after a restart every session falls quiet at once, and the people who talk
#: need the connections (a turn waited 2.2 s beside 100 such calls: `python -m bench.load`).
_SIDE_BY_SIDE = 4
#: Lines before a piece that the model is shown, so that it understands how the piece begins.
_LINES_BEFORE = 6
#: Known facts the model is shown, and how many each message may bring up.
_KNOWN = 40
_NEAREST = 8
#: Characters of a message that look for known facts.
_QUERY_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """When unread messages are read: silence in seconds, or so many tokens or messages before that."""

    quiet_seconds: float = 60.0
    tokens: int = 2_000
    messages: int = 30


class Learner:
    """Reads sessions in the background. Call `heard` after each turn and `finish` at the end.

    `timezone_of` and `mind_of` are asked by agent id; an agent without a mind is read for by patterns. `learned` is
    told for which agent and owner a piece has brought something.
    """

    def __init__(
        self,
        database: Database,
        *,
        triggers: Triggers,
        timezone_of: Callable[[int], str],
        now: Callable[[], int],
        new_id: Callable[[], str],
        mind_of: Callable[[int], Mind | None] = lambda agent_id: None,
        learned: Callable[[int, int], None] = lambda agent_id, owner_id: None,
    ) -> None:
        self._database = database
        self._triggers = triggers
        self._timezone_of = timezone_of
        self._now = now
        self._new_id = new_id
        self._mind_of = mind_of
        self._learned = learned
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sessions: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._owners: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reading = asyncio.Semaphore(_SIDE_BY_SIDE)

    def heard(self, session_id: int, unread: Unread) -> None:
        """Something was said: wait for quiet, or read at once when a cap is reached."""
        if not unread.messages:
            return  # what was put down to be read keeps its time
        self._disarm(session_id)
        if unread.tokens >= self._triggers.tokens or unread.messages >= self._triggers.messages:
            self.soon(session_id, "cap")
            return
        self._arm(session_id, self._triggers.quiet_seconds, "quiet")

    def soon(self, session_id: int, reason: str) -> None:
        """Read what is unread in a session, with nobody waiting for it."""
        self._disarm(session_id)
        task = asyncio.create_task(self._flush_alone(session_id, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self, session_id: int, reason: str) -> None:
        """Read what is unread in a session, now. A failure is kept for later, not raised."""
        self._disarm(session_id)
        async with self._sessions[session_id]:
            await self._database.write(lambda tx: extractions.schedule(tx, session_id, reason, now=self._now()))
            while work := await self._database.read(
                lambda reader: extractions.next_work(reader, session_id, now=self._now())
            ):
                agent_id = await self._database.read(partial(extractions.agent_of, work=work))
                mind = self._mind_of(agent_id)
                if mind is not None and await self._is_spent(session_id, agent_id, mind):
                    return
                await self._attempt(work, mind)
            due = await self._database.read(lambda reader: extractions.next_due(reader, session_id))
            if due is not None and session_id not in self._timers:
                self._arm(session_id, max(0.0, (due - self._now()) / 1000), "again")

    async def take_up(self) -> None:
        """At start: wait for quiet in every session an earlier run left unread, and redo broken-off work."""
        for session_id in await self._database.read(extractions.sessions_with_work):
            self._arm(session_id, self._triggers.quiet_seconds, "left over")

    async def retry_parked(self, session_id: int | None = None) -> int:
        """Read what was set aside once more, in one session or everywhere; returns in how many sessions."""
        sessions = await self._database.write(lambda tx: extractions.retry_parked(tx, session_id=session_id))
        for parked_in in sessions:
            self.soon(parked_in, "retried")
        return len(sessions)

    async def flush_all(self, agent_id: int) -> None:
        """Read what is unread in every session of an agent, now."""
        for session_id in await self._database.read(extractions.sessions_with_work):
            session = await self._database.read(partial(people.session_by_id, session_id=session_id))
            if session.agent_id == agent_id:
                await self.flush(session_id, "night")

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
        self._timers[session_id] = asyncio.get_running_loop().call_later(seconds, self.soon, session_id, reason)

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

    async def _is_spent(self, session_id: int, agent_id: int, mind: Mind) -> bool:
        """Whether the agent's tokens of the day are used up; the session's work then waits for the next day."""
        spent = await self._database.read(
            lambda reader: budget.spent(reader, agent_id, mind, timezone=self._timezone_of(agent_id), now=self._now())
        )
        if spent is None:
            return False
        log.warning("learn.budget_spent", session=session_id, spent=spent.tokens, per_day=spent.per_day)
        await self._database.write(lambda tx: extractions.postpone(tx, session_id, until=spent.until))
        self._arm(session_id, (spent.until - self._now()) / 1000, "next day")
        return True

    async def _attempt(self, work: Work, mind: Mind | None) -> None:
        try:
            if mind is None:
                found = await self._database.write(lambda tx: self._by_patterns(tx, work))
            else:
                found = await self._by_model(work, mind)
        except Exception as exc:
            code = getattr(exc, "code", type(exc).__name__)
            if isinstance(exc, MemoryFault | TimeoutError):
                log.warning("learn.failed", work=work.id, attempts=work.attempts + 1, code=code, error=str(exc))
            else:
                log.exception("learn.failed", work=work.id, attempts=work.attempts + 1)
            again = await self._database.write(lambda tx: extractions.failed(tx, work, code, now=self._now()))
            if again is not None:
                self._arm(work.session_id, max(0.0, (again - self._now()) / 1000), "again")
        else:
            log.info("learn.done", work=work.id, found=found)
            if found:
                self._learned(*await self._database.read(lambda reader: self._whose(reader, work)))

    async def _by_model(self, work: Work, mind: Mind) -> int:
        """Have a model read one piece and keep what it found; returns how much that was.

        Raises `ModelFailed`, `TimeoutError` and `Unreadable`.
        """
        owner_id = await self._database.read(lambda reader: self._owner(reader, work))
        async with self._owners[owner_id]:
            stretch = await self._stretch(work)
            if stretch is None:
                await self._database.write(lambda tx: extractions.done(tx, work.id, found=0, now=self._now()))
                return 0
            try:
                # Whoever waits for their owner's turn holds no slot.
                async with self._reading, asyncio.timeout(_SECONDS):
                    told = await mind.complete(ask(stretch))
            except (ModelFailed, TimeoutError) as exc:
                if not mind.patterns_while_down:
                    raise
                log.warning("learn.model_down", work=work.id, error=str(exc), instead="patterns")
                return await self._database.write(lambda tx: self._by_patterns(tx, work))
            try:
                answer = read_answer(told.text)
            except Unreadable:
                await self._database.write(lambda tx: self._book(tx, work, told))
                raise
            if answer.dropped:
                log.info("learn.dropped", work=work.id, items=answer.dropped)
            return await self._database.write(lambda tx: self._keep(tx, work, stretch, answer, told))

    def _owner(self, reader: Reader, work: Work) -> int:
        """Whose rows a piece of work writes; 0 where nobody speaks in it."""
        session = _session(reader, work)
        said = history.between(reader, work.session_id, work.first_id, work.last_id)
        author = next((message.author_id for message in said if message.author_id is not None), None)
        return 0 if author is None else people.scope_of(reader, session, author).writes_to

    def _whose(self, reader: Reader, work: Work) -> tuple[int, int]:
        """The agent that a piece of work was said to, and whose rows it writes."""
        return extractions.agent_of(reader, work), self._owner(reader, work)

    async def _stretch(self, work: Work) -> Stretch | None:
        """All a model is shown of one piece of work; None when nothing of it may be read any more."""
        await index.keep_up(self._database)
        try:
            return await self._database.read(lambda reader: self._shown(reader, work, self._nearest))
        except (StoreDamaged, StoreBusy):
            raise
        except StorageError as exc:
            log.warning("index.failed", error=str(exc), instead="the weightiest facts")
            return await self._database.read(lambda reader: self._shown(reader, work, lambda *_: []))

    def _shown(
        self, reader: Reader, work: Work, nearest: Callable[[Reader, Scope, Sequence[Message]], list[Memory]]
    ) -> Stretch | None:
        session = _session(reader, work)
        may = extractions.readable(reader, work)
        said = history.between(reader, work.session_id, work.first_id, work.last_id)
        messages = [m for m in said if m.id in may and (m.role == "assistant" or m.author_id is not None)]
        authors = [message.author_id for message in messages if message.author_id is not None]
        if not authors:
            return None
        scopes = {author: people.scope_of(reader, session, author) for author in dict.fromkeys(authors)}
        scope = scopes[authors[-1]]
        earlier = extractions.lines_before(reader, work, limit=_LINES_BEFORE)
        before = history.between(reader, work.session_id, earlier[0], earlier[-1]) if earlier else []
        candidates = chain(
            nearest(reader, scope, messages), memories.current(reader, scope, ("fact",), limit=4 * _KNOWN)
        )
        # What a person said of themselves in a group is seen in their private chat, and is replaced in the group only.
        known = {m.id: m for m in candidates if m.kind == "fact" and m.owner_id in (*scope.own, scope.writes_to)}
        return Stretch(
            messages=tuple(messages),
            before=tuple(message for message in before if message.id in earlier),
            scope=scope,
            scopes=scopes,
            timezones={author: self._timezone(reader, session, scopes[author]) for author in scopes},
            known=tuple(known.values())[:_KNOWN],
        )

    def _nearest(self, reader: Reader, scope: Scope, messages: Sequence[Message]) -> list[Memory]:
        """Known facts that the messages of people may bear on, each message's best first."""
        found = [
            nearest_facts(reader, scope, shortened(message)[:_QUERY_CHARS], limit=_NEAREST)
            for message in messages
            if message.role == "user"
        ]
        return [memory for rank in zip_longest(*found) for memory in rank if memory is not None]

    def _timezone(self, reader: Reader, session: Session, scope: Scope) -> str:
        """Where a person lives in time: as they set it, else as their profile says, else as the agent does."""
        assert scope.speaker_id is not None
        told = people.speaker_by_id(reader, scope.speaker_id).timezone
        if told is not None:
            return told
        for slot in memories.current_of_owner(reader, scope, scope.writes_to, "profile") if scope.private else []:
            if slot.key == "timezone" and _is_timezone(slot.value):
                return slot.value
        return self._timezone_of(session.agent_id)

    def _keep(self, tx: Transaction, work: Work, stretch: Stretch, answer: Answer, told: Told) -> int:
        """Keep what a model found in one piece, book what that cost, and end the piece."""
        now_said = {m.id: m.text for m in history.between(tx, work.session_id, work.first_id, work.last_id)}
        # What was edited while the model read has been put down to be read once more.
        edited = {m.id for m in stretch.messages if now_said.get(m.id) != m.text}
        may = extractions.readable(tx, work) - edited
        found = 0
        for finding in extract.findings(answer, stretch):
            if not may.issuperset(finding.source_ids):
                continue
            memory_id = keep.keep(
                tx,
                finding.scope,
                finding.draft,
                source_ids=finding.source_ids,
                replaces=finding.replaces,
                names=finding.entities,
                now=self._now(),
                new_id=self._new_id,
            )
            found += memory_id is not None
        self._book(tx, work, told)
        extractions.done(tx, work.id, found=found, now=self._now())
        return found

    def _book(self, tx: Transaction, work: Work, told: Told) -> None:
        agent_id = extractions.agent_of(tx, work)
        usage.add(
            tx,
            told.spent,
            turn_id=None,
            session_id=work.session_id,
            agent_id=agent_id,
            purpose="extract",
            now=self._now(),
        )

    def _by_patterns(self, tx: Transaction, work: Work) -> int:
        """Read one piece without a model and keep what it says; returns how much was found."""
        session = _session(tx, work)
        messages = history.between(tx, work.session_id, work.first_id, work.last_id)
        found = 0
        for message in messages:
            if message.author_id is None:
                continue
            scope = people.scope_of(tx, session, message.author_id)
            timezone = self._timezone(tx, session, scope)
            for proposal in extract.read([message], scope=scope, timezone=timezone):
                kept = keep.keep(
                    tx, scope, proposal.draft, source_ids=[message.id], now=self._now(), new_id=self._new_id
                )
                found += kept is not None
        extractions.done(tx, work.id, found=found, now=self._now())
        return found


def _session(reader: Reader, work: Work) -> Session:
    """The session of a piece of work, with the agent it was said to: another may serve it by now."""
    session = people.session_by_id(reader, work.session_id)
    return replace(session, agent_id=extractions.agent_of(reader, work))


def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
