"""Sums up the older part of a running conversation when its window is nearly full, or when a person asks for it.

Invariants: Messages are never deleted and stay searchable; only the window moves. Messages that wait to be read for
memories are read first. The model is asked outside any transaction, within the agent's tokens of the day; if it gives
no usable answer, people's own first lines stand in for its summary. The summary, the window and the notice to the
person are one transaction. A summary of words that were erased, edited or excluded meanwhile is not kept. After a
compaction, the window is well below its threshold, so none follows at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import structlog

from memory.chat import summary
from memory.chat.summary import Summary
from memory.chat.window import WindowSize, costs
from memory.context import Context
from memory.errors import StorageError
from memory.learn.agents import Agents
from memory.learn.answer import Unreadable
from memory.learn.extractions import Afterwards
from memory.learn.learner import Learner
from memory.learn.model import BackgroundModel, BudgetSpent, ModelAnswer, ModelFailed, RequestTooLong
from memory.loops import Loops
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.runtime import Runtime
from memory.store import chats, history, usage
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction
from memory.store.history import Message

log = structlog.get_logger(__name__)

#: The part of the threshold that the kept messages may take.
_KEPT: Final = 1 / 2
#: The part of the window that stays as it is if more than the wanted number of messages fit there.
_RAW: Final = 1 / 4
#: A compaction of fewer messages is told only if it is the conversation's first: a small window is often full.
_WORTH_TELLING: Final = 20
#: The numbers of messages to keep if the wanted number takes too much room.
_FEWER: Final = (3, 1)
#: Fewer messages are not worth a summary.
_LEAST: Final = 4
#: The most messages of a window that are read.
_LOOKED_AT: Final = 2_000
#: The number of times that a question refused as too long is asked with less.
_SHRINKS: Final = 2
#: Seconds for which a person who asked for a summary waits for the model.
_PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of compaction: a window is compacted at this share of its `size`, to the last `keep` messages.

    If a quarter of the window holds more, so many stay, unless a person asked for the compaction. The summary takes at
    most `tokens` tokens. With `all_said`, it also covers messages that are not to be found again, as those of people
    who are not learned from.
    """

    size: WindowSize
    at: float
    keep: int
    tokens: int
    all_said: bool = False

    @property
    def threshold(self) -> WindowSize:
        return replace(self.size, tokens=int(self.size.tokens * self.at), messages=int(self.size.messages * self.at))

    def may_be_reached(self, after: Afterwards) -> bool:
        """Returns whether a window may be nearly full after a turn; it may not be if long messages are shortened."""
        return after.window_messages > self.threshold.messages or after.window_tokens > self.threshold.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A finished compaction: the number of messages summed up, the number of those that stay, and the summary."""

    messages: int
    kept: int
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """A cut at which the window of a session begins anew. `older` leave it; `covered` are those to be summed up."""

    session: Session
    older: tuple[Message, ...]
    covered: tuple[Message, ...]
    kept: int
    timezone: str

    @property
    def before(self) -> Summary:
        return Summary(text=self.session.summary or "", task=self.session.active_task)


class Compaction:
    def __init__(
        self, database: Database, *, agents: Agents, learner: Learner, mailbox: Mailbox, runtime: Runtime, loops: Loops
    ) -> None:
        self._database = database
        self._agents = agents
        self._learner = learner
        self._mailbox = mailbox
        self._loops = loops
        self._now = runtime.now
        self._count_tokens = runtime.count_tokens
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def soon(
        self,
        context: Context,
        bounds: Bounds,
        *,
        notice: Callable[[Compacted], Sequence[Part]],
        posted: Callable[[], None],
    ) -> None:
        """Compacts the session of a speaker in the background if its window is nearly full.

        `notice` tells people that it has happened; `posted` is called when the notice waits to be delivered. While a
        compaction of the session is under way, nothing happens.
        """
        session_id = context.session.id
        if session_id not in self._tasks:
            seeing = partial(self._see_to, session_id, bounds, notice, posted)
            task = asyncio.create_task(self._alone(session_id, seeing))
            self._tasks[session_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(session_id, None))

    async def now(self, context: Context, bounds: Bounds) -> Compacted | None:
        session_id = context.session.id
        async with self._lock(session_id):
            cut = await self._database.read(lambda reader: self._cut(reader, session_id, bounds, asked=True))
            if cut is None:
                return None
            self._learner.soon(session_id, "compaction")
            return await self._compact(cut, bounds, seconds=_PATIENCE)

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    async def close(self) -> None:
        """Cancels the compactions under way. The next turn of their sessions begins them anew."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _lock(self, session_id: int) -> asyncio.Lock:
        """Returns the lock of a session, which is dropped once nothing holds it or waits for it."""
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def _alone(self, session_id: int, seeing: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._loops.alone("compaction", f"session {session_id}", seeing)
        except StorageError as exc:
            log.error("compaction.unsaved", session=session_id, error=str(exc), again="with the session's next turn")

    async def _see_to(
        self, session_id: int, bounds: Bounds, notice: Callable[[Compacted], Sequence[Part]], posted: Callable[[], None]
    ) -> None:
        async with self._lock(session_id):
            if await self._database.read(lambda reader: self._cut(reader, session_id, bounds)) is None:
                return
            await self._learner.flush(session_id, "compaction")
            # More may have been said while the waiting messages were read.
            cut = await self._database.read(lambda reader: self._cut(reader, session_id, bounds))
            if cut is not None and await self._compact(cut, bounds, notice=notice) is not None:
                posted()

    def _cut(self, reader: Reader, session_id: int, bounds: Bounds, *, asked: bool = False) -> _Cut | None:
        """Returns the cut for a session's window; None if the window has room, unless a person has `asked`."""
        session = chats.session_by_id(reader, session_id)
        messages = history.after(reader, session_id, session.window_after, limit=_LOOKED_AT)
        if not asked and _fits(messages, bounds.threshold, bounds.size):
            return None
        start = _kept_from(messages, bounds, asked=asked)
        older = tuple(messages[:start])
        covered = tuple(message for message in older if message.recall or bounds.all_said)
        if sum(map(summary.is_spoken, covered if asked else older)) < _LEAST:
            return None
        return _Cut(
            session=session,
            older=older,
            covered=covered,
            kept=sum(map(summary.is_spoken, messages[start:])),
            timezone=self._agents.timezone(session.agent_id),
        )

    async def _compact(
        self,
        cut: _Cut,
        bounds: Bounds,
        *,
        notice: Callable[[Compacted], Sequence[Part]] | None = None,
        seconds: float | None = None,
    ) -> Compacted | None:
        """Sums up and moves the window. Returns None if the words have changed meanwhile."""
        spent: list[ModelAnswer] = []
        made = await self._summed_up(cut, bounds, spent, seconds=seconds)
        done = Compacted(messages=sum(map(summary.is_spoken, cut.covered)), kept=cut.kept, summary=made)

        def act(tx: Transaction) -> bool:
            for answer in spent:
                self._book(tx, cut.session, answer)
            if not _stands(tx, cut):
                return False
            chats.compact(tx, cut.session.id, after=cut.older[-1].id, summary=made.text or None, task=made.task)
            is_first = done.messages > 0 and not cut.before.text
            if notice is not None and made.text and (is_first or done.messages >= _WORTH_TELLING):
                pieces = notice(done)
                self._mailbox.post(tx, Outgoing(session_key=cut.session.key, pieces=pieces, kind="notice"))
            return True

        if not await self._database.write(act):
            log.info("compaction.overtaken", session=cut.session.id)
            return None
        log.info("compaction.done", session=cut.session.id, messages=done.messages, kept=done.kept)
        return done

    async def _summed_up(
        self, cut: _Cut, bounds: Bounds, spent: list[ModelAnswer], *, seconds: float | None
    ) -> Summary:
        """Returns the summary of the messages cut off, by the model or, without it, in people's own first lines.

        Adds the model's answers to `spent`.
        """
        model = self._agents.model(cut.session.agent_id)
        if not any(map(summary.is_spoken, cut.covered)):
            return replace(cut.before, task=None)
        if model is not None:
            patient = model if seconds is None else replace(model, seconds=min(model.seconds, seconds))
            try:
                spent.append(await self._asked(cut, patient))
                covered = [cut.before.text, *(message.text for message in cut.covered)]
                reading = partial(summary.read, covered=covered, tokens=bounds.tokens, count=self._count_tokens)
                return await asyncio.to_thread(reading, spent[-1].text)
            except (BudgetSpent, ModelFailed, TimeoutError, Unreadable) as exc:
                code = getattr(exc, "code", type(exc).__name__)
                log.warning("compaction.by_first_lines", session=cut.session.id, code=code, error=str(exc))
        text = summary.extract(
            cut.covered, cut.before.text, timezone=cut.timezone, tokens=bounds.tokens, count=self._count_tokens
        )
        return Summary(text=text)

    async def _asked(self, cut: _Cut, model: BackgroundModel) -> ModelAnswer:
        """Returns the model's answer. Asks with less if the question was refused as too long."""
        for left in range(_SHRINKS, -1, -1):
            tokens = model.room(summary.INSTRUCTIONS, summary.ANSWER_TOKENS)
            request = summary.ask(
                cut.covered, cut.before, timezone=cut.timezone, tokens=tokens, count=self._count_tokens
            )
            try:
                return await model.ask(
                    request,
                    self._database,
                    agent_id=cut.session.agent_id,
                    timezone=self._agents.timezone(cut.session.agent_id),
                    now=self._now(),
                )
            except RequestTooLong:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _book(self, tx: Transaction, session: Session, answer: ModelAnswer) -> None:
        usage.add(
            tx, answer.spent, agent_id=session.agent_id, purpose="compact", now=self._now(), session_id=session.id
        )


def _stands(reader: Reader, cut: _Cut) -> bool:
    """Returns whether all messages behind a summary are still as they were read."""
    now = chats.session_by_id(reader, cut.session.id)
    if (now.window_after, now.summary) != (cut.session.window_after, cut.session.summary):
        return False
    said = history.between(reader, now.id, cut.older[0].id, cut.older[-1].id)
    read = {message.id: (message.text, message.recall) for message in cut.covered}
    return read.items() <= {message.id: (message.text, message.recall) for message in said}.items()


def _fits(messages: Sequence[Message], within: WindowSize, size: WindowSize) -> bool:
    return len(messages) <= within.messages and sum(costs(messages, size)) <= within.tokens


def _kept_from(messages: Sequence[Message], bounds: Bounds, *, asked: bool) -> int:
    room = replace(
        bounds.size,
        tokens=int(bounds.threshold.tokens * _KEPT),
        messages=max(1, int(bounds.threshold.messages * _KEPT)),
    )
    spoken = [place for place, message in enumerate(messages) if summary.is_spoken(message)]
    start = len(messages)
    more = 0 if asked else _within_a_quarter(messages, bounds.size)
    wanted = [more] if more > bounds.keep else []
    for number in (*wanted, bounds.keep, *(fewer for fewer in _FEWER if fewer < bounds.keep)):
        start = _turn_of(messages, spoken[-number]) if number <= len(spoken) else 0
        if _fits(messages[start:], room, bounds.size):
            break
    return start


def _within_a_quarter(messages: Sequence[Message], size: WindowSize) -> int:
    tokens, left, spoken = int(size.tokens * _RAW), int(size.messages * _RAW), 0
    for message, cost in zip(reversed(messages), reversed(costs(messages, size)), strict=True):
        tokens, left = tokens - cost, left - 1
        if tokens < 0 or left < 0:
            break
        spoken += summary.is_spoken(message)
    return spoken


def _turn_of(messages: Sequence[Message], place: int) -> int:
    """Returns the place where the turn of a message begins, or where its answers begin to have a question."""
    turn = messages[place].turn_id
    while place and turn is not None and messages[place - 1].turn_id == turn:
        place -= 1
    return place
