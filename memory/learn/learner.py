"""Schedules learning: after a quiet gap, at a cap, when a session ends, at exit, and for work left by an earlier run.

Invariants: Triggers of one session coalesce. Pieces of one owner are read one after the other. A model is asked outside
any transaction. A piece of work, its findings and its cost are one transaction. A failing piece is retried later, then
set aside, and never holds up another session. A piece that a model refuses is halved, so that the one message it can't
read holds up no others. A session that can't even be looked at is put off. Messages that were forgotten while a model
read them teach nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, KeysView, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar
from weakref import WeakValueDictionary

import structlog

from memory import keys
from memory.errors import MemoryFault, StorageError, StoreBusy, StoreDamaged, meets_everybody
from memory.learn import entailment, extract, extractions, keep
from memory.learn.agents import Agents
from memory.learn.answer import Unreadable, read_answer
from memory.learn.ask import Stretch, ask, fitting, instructions_for, shortened
from memory.learn.entailment import Pair
from memory.learn.extract import Finding
from memory.learn.extractions import Unread, Work
from memory.learn.model import (
    ANSWER_TOKENS,
    BackgroundModel,
    BudgetSpent,
    ModelAnswer,
    ModelFailed,
    RequestRefused,
    RequestTooLong,
)
from memory.loops import Loops
from memory.recall import index
from memory.recall.search import nearest_facts
from memory.scope import Scope
from memory.store import chats, history, memories, people, usage
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction, of_lane
from memory.store.history import Message
from memory.store.memories import Memory
from memory.text.zones import zone_named

log = structlog.get_logger(__name__)
T = TypeVar("T")

#: Most pieces that models read at the same time. After a restart every session falls quiet at once, and the people who
#: talk need the connections (a turn waited 2.2 s beside 100 such calls: `python -m bench.load`).
_SIDE_BY_SIDE = 4
#: Lines before a piece that are shown to the model, so that it understands how the piece begins.
_LINES_BEFORE = 6
#: Most known facts shown to the model, and most that each message may contribute.
_KNOWN = 40
_NEAREST = 8
#: The number of times that a question refused as too long is asked with less.
_SHRINKS = 2
#: Characters of a message that are used to search for known facts.
_QUERY_CHARS = 2_000
#: Milliseconds after an answer for which a model that gives none to another piece is not taken to be away.
_ANSWERED_MS = 5 * 60_000
#: Milliseconds after an answer for which a refused piece is taken to be the reason itself.
_READS_MS = 24 * 3_600_000
#: The name under which failing sessions are reported.
_LOOP = "learning"


class _TouchesMore(Exception):
    """A write turns out to touch more than it has named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """The triggers for reading unread messages: a silence in seconds, or earlier a number of tokens or messages."""

    quiet_seconds: float = 60.0
    tokens: int = 2_000
    messages: int = 30


class Learner:
    """The background reader of sessions. Call `heard` after each turn and `finish` at the end.

    `learned` is called with the agent and the owners for whom a piece has brought something.
    """

    def __init__(
        self,
        database: Database,
        *,
        agents: Agents,
        triggers: Triggers,
        now: Callable[[], int],
        new_id: Callable[[], str],
        learned: Callable[[int, Sequence[int]], None] = lambda agent_id, owner_ids: None,
        loops: Loops | None = None,
    ) -> None:
        self._database = database
        self._agents = agents
        self._triggers = triggers
        self._now = now
        self._new_id = new_id
        self._learned = learned
        self._loops = loops or Loops(now=now)
        #: When each agent's model last read a piece, and the sessions of the pieces that wait because it was away.
        self._answered: dict[int, int] = {}
        self._away: defaultdict[int, dict[int, int]] = defaultdict(dict)
        #: Pieces in a row that failed although an agent's model had just read another.
        self._missed: Counter[int] = Counter()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Sessions with a waiting task, which will read all messages unread by then, so that no second one has to.
        self._waiting: set[int] = set()
        # Locks are kept while a task holds or awaits them.
        self._sessions: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._owners: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._reading = asyncio.Semaphore(_SIDE_BY_SIDE)

    def heard(self, session_id: int, unread: Unread) -> None:
        if not unread.messages:
            return  # work that is already scheduled keeps its time
        self._disarm(session_id)
        if unread.tokens >= self._triggers.tokens or unread.messages >= self._triggers.messages:
            self.soon(session_id, "cap")
            return
        self._arm(session_id, self._triggers.quiet_seconds, "quiet")

    @property
    def due(self) -> KeysView[int]:
        return self._timers.keys()

    def soon(self, session_id: int, reason: str) -> None:
        self._disarm(session_id)
        if session_id in self._waiting:
            return
        self._waiting.add(session_id)
        task = asyncio.create_task(self._flush_alone(session_id, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self, session_id: int, reason: str) -> None:
        """Reads a session's unread messages now. A failure is kept for a later retry, not raised.

        They are left to another process if that holds the session.
        """
        self._disarm(session_id)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._sessions.setdefault(session_id, asyncio.Lock()))
            # Before anything can fail, so that a later trigger begins another task.
            self._waiting.discard(session_id)
            if not await stack.enter_async_context(
                self._database.share.holding(lambda reader: chats.session_by_id(reader, session_id).key)
            ):
                return
            await self._write(session_id, lambda tx: extractions.schedule(tx, session_id, reason, now=self._now()))
            while work := await self._database.read(
                lambda reader: extractions.next_work(reader, session_id, now=self._now())
            ):
                agent_id = await self._database.read(partial(extractions.agent_of, work=work))
                try:
                    await self._attempt(work, agent_id, self._agents.model(agent_id))
                except BudgetSpent as exc:
                    await self._put_off(session_id, exc)
                    return
            due = await self._database.read(lambda reader: extractions.next_due(reader, session_id))
            if due is not None and session_id not in self._timers:
                self._arm(session_id, max(0.0, (due - self._now()) / 1000), "again")

    async def take_up(self) -> None:
        """Waits, at start, for quiet in every session that an earlier run left unread, then redoes broken-off work.

        Pieces that were set aside get another chance with the new run, whose model may be another.
        """
        await self._database.write(extractions.retry_parked)
        for session_id in await self._database.read(extractions.sessions_with_work):
            self._arm(session_id, self._triggers.quiet_seconds, "left over")

    async def take_over(self, session_keys: Collection[str]) -> None:
        for session_id in await self._database.read(lambda reader: extractions.unread_among(reader, session_keys)):
            if session_id not in self._timers and session_id not in self._waiting:
                self._arm(session_id, self._triggers.quiet_seconds, "left over")

    async def flush_all(self, agent_id: int) -> None:
        """Reads the unread messages of every session of an agent now, also those that were set aside.

        Raises the last error of a session once all are read.
        """
        await self._database.write(extractions.retry_parked)
        failure: Exception | None = None
        for session_id in await self._database.read(extractions.sessions_with_work):
            try:
                session = await self._database.read(partial(chats.session_by_id, session_id=session_id))
                if session.agent_id == agent_id:
                    await self.flush(session_id, "night")
            # One session must not keep the others from being read.
            except Exception as exc:
                if meets_everybody(exc):
                    raise
                self._loops.fail(_LOOP, _unit(session_id), exc)
                failure = exc
        if failure is not None:
            raise failure

    async def finish(self, *, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                for session_id in await self._database.read(extractions.sessions_with_work):
                    await self._loops.alone(
                        _LOOP, _unit(session_id), partial(self.flush, session_id, "exit"), anyway=True
                    )
                await asyncio.gather(*self._tasks)
        except TimeoutError:
            log.warning("learn.unfinished", seconds=seconds, kept="for the next start")
        except StorageError as exc:
            log.error("learn.unfinished", error=str(exc), kept="for the next start")
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            # Timers are cancelled last, because a task that fails may have set one.
            for timer in self._timers.values():
                timer.cancel()

    def _arm(self, session_id: int, seconds: float, reason: str) -> None:
        self._disarm(session_id)
        self._timers[session_id] = asyncio.get_running_loop().call_later(seconds, self.soon, session_id, reason)

    async def _flush_alone(self, session_id: int, reason: str) -> None:
        try:
            await self._loops.alone(_LOOP, _unit(session_id), partial(self.flush, session_id, reason), anyway=True)
        except StorageError as exc:
            log.error("learn.unsaved", session=session_id, error=str(exc), again_in=self._triggers.quiet_seconds)
            if session_id not in self._timers:
                self._arm(session_id, max(1.0, self._triggers.quiet_seconds), reason)
            return
        if (wait := self._loops.wait(_LOOP, _unit(session_id))) and session_id not in self._timers:
            quiet = max(1.0, self._triggers.quiet_seconds)
            self._arm(session_id, wait if reason == "again" else min(wait, quiet), "again")

    def _disarm(self, session_id: int) -> None:
        timer = self._timers.pop(session_id, None)
        if timer is not None:
            timer.cancel()

    async def _put_off(self, session_id: int, spent: BudgetSpent) -> None:
        log.warning("learn.budget_spent", session=session_id, reason=str(spent))
        await self._write(session_id, lambda tx: extractions.postpone(tx, session_id, until=spent.until))
        self._arm(session_id, (spent.until - self._now()) / 1000, "next day")

    async def _attempt(self, work: Work, agent_id: int, model: BackgroundModel | None) -> None:
        """Reads one piece. A failure is kept for a later retry. Raises `BudgetSpent`."""
        try:
            if model is None:
                found = await self._write(
                    work.session_id, partial(self._by_patterns, work=work), partial(_scopes, work=work)
                )
            else:
                found = await self._by_model(work, agent_id, model)
        except BudgetSpent:
            raise
        except Exception as exc:
            code = getattr(exc, "code", type(exc).__name__)
            if isinstance(exc, MemoryFault | TimeoutError):
                log.warning("learn.failed", work=work.id, attempts=work.attempts + 1, code=code, error=str(exc))
            else:
                log.exception("learn.failed", work=work.id, attempts=work.attempts + 1)
            await self._note_failure(work, agent_id, exc, code)
        else:
            log.info("learn.done", work=work.id, found=found)
            self._away[agent_id].pop(work.id, None)
            if model is not None:
                self._answered[agent_id], self._missed[agent_id] = self._now(), 0
                await self._hasten(agent_id)
            if found:
                self._learned(*await self._database.read(lambda reader: self._whose(reader, work)))

    async def _note_failure(self, work: Work, agent_id: int, error: Exception, code: str) -> None:
        """Puts a piece off after a failure, and halves one that a model has refused before although it reads others."""
        since = self._now() - self._answered.get(agent_id, -_READS_MS)
        refused = isinstance(error, RequestRefused | Unreadable)
        # A model that has just read another piece is not away: the piece itself may be the reason.
        away = isinstance(error, ModelFailed | TimeoutError) and not refused and since > _ANSWERED_MS

        def act(tx: Transaction) -> int | None:
            own = work
            if refused and work.attempts and since < _READS_MS:
                ids = sorted(extractions.readable(tx, extractions.anew(tx, work)))
                if half := len(ids) // 2:
                    own = extractions.split(tx, work, last_id=ids[half - 1], next_id=ids[half])
            return extractions.failed(tx, own, code, away=away, now=self._now())

        again = await self._write(work.session_id, act)
        self._away[agent_id].pop(work.id, None)
        if away:
            self._away[agent_id][work.id] = work.session_id
        else:
            self._missed[agent_id] += 1
            # The piece may be the reason: those that wait get one more chance.
            if self._missed[agent_id] == 1:
                await self._hasten(agent_id)
        if again is not None:
            self._arm(work.session_id, max(0.0, (again - self._now()) / 1000), "again")

    async def _hasten(self, agent_id: int) -> None:
        """Makes the next piece due of those that wait because the agent's model was away: it answers again.

        One at a time, as each that is read makes the next due.
        """
        waiting = self._away[agent_id]
        if waiting:
            work_id = next(iter(waiting))
            session_id = waiting.pop(work_id)
            await self._write(session_id, lambda tx: extractions.hasten(tx, work_id))
            self._arm(session_id, 0.0, "the model answers again")

    async def _by_model(self, work: Work, agent_id: int, model: BackgroundModel) -> int:
        """Lets a model read one piece, and keeps its findings. Returns their number.

        Raises `BudgetSpent`, `ModelFailed`, `TimeoutError` and `Unreadable`.
        """
        owner_id = await self._database.read(lambda reader: self._owner(reader, work))
        async with self._owners.setdefault(owner_id, asyncio.Lock()):
            work, stretch, answer = await self._asked(work, agent_id, model)
            if stretch is None or answer is None:
                await self._write(work.session_id, lambda tx: extractions.done(tx, work.id, found=0, now=self._now()))
                return 0
            try:
                found = read_answer(answer.text)
            except Unreadable:
                await self._write(work.session_id, lambda tx: self._book(tx, work, answer))
                raise
            if found.dropped:
                log.info("learn.dropped", work=work.id, items=found.dropped)
            if found.cut:
                log.info("learn.cut", work=work.id, items=len(found.facts))
            # Weighing takes long enough to be done before the transaction, and beside the event loop.
            findings = await asyncio.to_thread(extract.findings, found, stretch)
            answers, entailed = await self._asked_again(work, agent_id, model, findings, first=answer)
            if entailed:
                findings = await asyncio.to_thread(extract.findings, found, stretch, entailed)
            return await self._write(
                work.session_id,
                lambda tx: self._keep(tx, work, stretch, findings, answers, cut=found.cut),
                lambda reader: stretch.scopes.values(),
            )

    async def _write(
        self,
        session_id: int,
        act: Callable[[Transaction], T],
        scopes: Callable[[Reader], Iterable[Scope]] = lambda reader: (),
    ) -> T:
        """Runs `act`, which notes something of a session and keeps memories in `scopes`, as one write.

        It runs beside the writes of other processes for other sessions and people.
        """

        def touched(reader: Reader) -> set[str]:
            names = {of_lane(chats.session_by_id(reader, session_id).key)}
            return names.union(*map(keep.touched, scopes(reader)))

        keys = await self._database.read(touched)

        def checked(tx: Transaction) -> T:
            if not touched(tx) <= keys:
                raise _TouchesMore
            return act(tx)

        try:
            return await self._database.write(checked, keys=keys)
        except _TouchesMore:
            # Accounts were linked meanwhile, or the chat has another id.
            return await self._database.write(act)

    async def _asked(
        self, work: Work, agent_id: int, model: BackgroundModel
    ) -> tuple[Work, Stretch | None, ModelAnswer | None]:
        """Asks a model about one piece, or about as much of its beginning as fits. Returns None if nothing is left.

        Asks again with less if the question was refused as too long. Raises as `_by_model` does.
        """
        for left in range(_SHRINKS, -1, -1):
            instructions = instructions_for(model.room)
            tokens = model.room(instructions, ANSWER_TOKENS)
            stretch = await self._stretch(work)
            if stretch is not None and (count := fitting(stretch.messages, tokens)) < len(stretch.messages):
                last, following = (message.id for message in stretch.messages[count - 1 : count + 1])
                work = await self._write(
                    work.session_id, partial(extractions.split, work=work, last_id=last, next_id=following)
                )
                stretch = await self._stretch(work)
            if stretch is None:
                break
            try:
                # A piece that waits for its owner's lock holds no slot.
                async with self._reading:
                    answer = await model.ask(
                        ask(stretch, tokens, instructions=instructions),
                        self._database,
                        agent_id=agent_id,
                        timezone=self._agents.timezone(agent_id),
                        now=self._now(),
                    )
            except RequestTooLong:
                if not left:
                    raise
            else:
                return work, stretch, answer
        return work, None, None

    async def _asked_again(
        self, work: Work, agent_id: int, model: BackgroundModel, findings: Sequence[Finding], *, first: ModelAnswer
    ) -> tuple[list[ModelAnswer], Mapping[Pair, bool]]:
        """Asks a model up to three times whether messages say what is open among the findings.

        Returns the answers to be booked, with `first`, that with the claims, and the verdicts. Without an answer the
        findings stay as they are.
        """
        answers = [first]

        async def verdicts(pairs: Sequence[Pair], known: entailment.Known) -> Mapping[Pair, bool] | None:
            question = entailment.ask(pairs, model.room, known)
            if question is None:
                return None
            request, shown = question
            unbooked = sum(each.spent.input_tokens + each.spent.output_tokens for each in answers)
            timezone, now = self._agents.timezone(agent_id), self._now()
            try:
                async with self._reading:
                    answers.append(
                        await model.ask(
                            request, self._database, agent_id=agent_id, timezone=timezone, now=now, unbooked=unbooked
                        )
                    )
                return entailment.read(answers[-1].text, shown, known)
            except (BudgetSpent, ModelFailed, TimeoutError, Unreadable) as exc:
                log.info("learn.unchecked", work=work.id, claims=len(pairs), error=str(exc))
                return None

        may = await self._database.read(lambda reader: extractions.readable(reader, work))
        pairs = [each for each in findings if each.pair is not None and may.issuperset(each.source_ids)]
        is_sure = {each.pair: each.is_sure for each in pairs if each.pair is not None}
        votes = entailment.Votes(is_sure)
        for known in entailment.QUESTIONS:
            given = await verdicts(votes.open(), known)
            if given is None:
                break
            votes.add(given)
        return answers, votes.counted()

    def _owner(self, reader: Reader, work: Work) -> int:
        session = _session(reader, work)
        said = history.between(reader, work.session_id, work.first_id, work.last_id)
        author = next((message.author_id for message in said if message.author_id is not None), None)
        return 0 if author is None else chats.scope_of(reader, session, author).writes_to

    def _whose(self, reader: Reader, work: Work) -> tuple[int, Sequence[int]]:
        return extractions.agent_of(reader, work), (self._owner(reader, work),)

    async def _stretch(self, work: Work) -> Stretch | None:
        """Returns everything that a model is shown for a piece of work, or None if none of it may be read any more."""
        await index.keep_up(self._database)
        try:
            return await self._database.read(lambda reader: self._shown(reader, work, self._nearest))
        except (StoreDamaged, StoreBusy):
            raise
        except StorageError as exc:
            log.warning("index.failed", error=str(exc), instead="the weightiest facts")
            return await self._database.read(lambda reader: self._shown(reader, work, _weightiest))

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
        scopes = {author: chats.scope_of(reader, session, author) for author in dict.fromkeys(authors)}
        scope = scopes[authors[-1]]
        reader.confine(scope, session_id=session.id)
        earlier = extractions.lines_before(reader, work, limit=_LINES_BEFORE)
        before = history.between(reader, work.session_id, earlier[0], earlier[-1]) if earlier else []
        # A new home or employer replaces the old one, however little the words are alike.
        single = (m for m in _weightiest(reader, scope, messages) if keys.is_single_valued(m.key))
        candidates = chain(nearest(reader, scope, messages), single)
        # A person's facts about themselves from a group are seen in their private chat, but only replaced in the group.
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
        found = [
            nearest_facts(reader, scope, shortened(message)[:_QUERY_CHARS], limit=_NEAREST)
            for message in messages
            if message.role == "user"
        ]
        return [memory for rank in zip_longest(*found) for memory in rank if memory is not None]

    def _timezone(self, reader: Reader, session: Session, scope: Scope) -> str:
        assert scope.speaker_id is not None
        told = people.speaker_by_id(reader, scope.speaker_id).timezone
        if told is not None:
            return told
        for slot in memories.current_of_owner(reader, scope, scope.writes_to, "profile") if scope.private else []:
            if slot.key == "timezone" and zone_named(slot.value) == slot.value:
                return slot.value
        return self._agents.timezone(session.agent_id)

    def _keep(
        self,
        tx: Transaction,
        work: Work,
        stretch: Stretch,
        findings: Iterable[Finding],
        answers: Iterable[ModelAnswer],
        *,
        cut: bool,
    ) -> int:
        """Keeps a model's findings in one piece, books the cost, and ends the piece. Returns the number of findings.

        If the answer was cut off, the piece is read again by halves; a single message once more, with what is known by
        then.
        """
        now_said = {m.id: m.text for m in history.between(tx, work.session_id, work.first_id, work.last_id)}
        # Messages that were edited while the model read are scheduled to be read once more.
        edited = {m.id for m in stretch.messages if now_said.get(m.id) != m.text}
        may = extractions.readable(tx, work) - edited
        found = 0
        for finding in findings:
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
        for answer in answers:
            self._book(tx, work, answer)
        ids = sorted(may) if cut else []
        if len(ids) > 1:
            extractions.split(tx, work, last_id=ids[len(ids) // 2 - 1], next_id=ids[len(ids) // 2])
        elif ids and not work.attempts:
            extractions.failed(tx, work, "cut_off", away=False, now=self._now())
        else:
            extractions.done(tx, work.id, found=found, now=self._now())
        return found

    def _book(self, tx: Transaction, work: Work, answer: ModelAnswer) -> None:
        agent_id, now = extractions.agent_of(tx, work), self._now()
        usage.add(tx, answer.spent, agent_id=agent_id, purpose="extract", now=now, session_id=work.session_id)

    def _by_patterns(self, tx: Transaction, work: Work) -> int:
        session = _session(tx, work)
        messages = history.between(tx, work.session_id, work.first_id, work.last_id)
        found = 0
        for message in messages:
            if message.author_id is None:
                continue
            scope = chats.scope_of(tx, session, message.author_id)
            timezone = self._timezone(tx, session, scope)
            for proposal in extract.read([message], scope=scope, timezone=timezone):
                kept = keep.keep(
                    tx, scope, proposal.draft, source_ids=[message.id], now=self._now(), new_id=self._new_id
                )
                found += kept is not None
        extractions.done(tx, work.id, found=found, now=self._now())
        return found


def _unit(session_id: int) -> str:
    return f"session {session_id}"


def _session(reader: Reader, work: Work) -> Session:
    session = chats.session_by_id(reader, work.session_id)
    return replace(session, agent_id=extractions.agent_of(reader, work))


def _scopes(reader: Reader, work: Work) -> list[Scope]:
    session = _session(reader, work)
    said = history.between(reader, work.session_id, work.first_id, work.last_id)
    authors = {message.author_id for message in said if message.author_id is not None}
    return [chats.scope_of(reader, session, author) for author in authors]


def _weightiest(reader: Reader, scope: Scope, _messages: Sequence[Message]) -> list[Memory]:
    return memories.current(reader, scope, ("fact",), limit=4 * _KNOWN)
