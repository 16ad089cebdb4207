"""Forgetting as the gateway sees it: what would go, its going with a receipt, and that no byte of it is left.

Invariants: what goes, goes in one transaction with the end of the question and a record of ids and figures, so that
the same request changes nothing a second time and gets the same receipt; the request itself stays open until that
receipt is queued; "no trace left" is said only when the index is brought up to date and merged, the file written anew
and its log emptied; until then it is tried again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from memory.desk import Context, anew
from memory.errors import StorageError, StoreBusy
from memory.recall import index
from memory.recall.search import Search
from memory.store import erasure, memories, questions
from memory.store.database import Database, Reader, Transaction
from memory.store.erasure import Erasure
from memory.store.memories import Memory
from memory.store.questions import Question
from memory.upkeep import blank, choose, erase, forget, traces
from memory.upkeep.blank import Sought
from memory.upkeep.choose import Asker, Selection, What
from memory.upkeep.forget import How, Plan

log = structlog.get_logger(__name__)

#: A larger file is not written anew on the spot, for that takes some 10 ms a megabyte, but by the daily `finish`.
_AT_ONCE_BYTES: Final = 128 * 1024 * 1024
#: Seconds between two tries to leave no trace, while somebody keeps the log from being emptied.
_AGAIN: Final = 30.0
#: What a search adds to what holds the very words.
_FOUND: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would go. `shown` are some of the memories, the weightiest first; `memories` and `messages` count all.

    `replies` counts what the bot said, `staying` the memories that lose a source and stay, `skipped` those that match
    but are somebody else's. It is empty when all of them are.
    """

    selection: Selection
    shown: tuple[Memory, ...]
    memories: int
    messages: int
    replies: int
    staying: int
    skipped: int

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.messages or self.replies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What went when `what` was asked for: `memories` that were meant, what was `derived` of them, `messages` of people

    and `replies` of the bot whose words are gone, `files`. `restored` came back, `keep_source` stay though a source of
    theirs is erased. Without `words` those stay in history. Unless `scrubbed`, the files still hold traces, which go
    later. Backups may hold it up to `backups_until` (milliseconds UTC; None: there are none).
    """

    what: What
    memories: int
    derived: int
    restored: int
    messages: int
    replies: int
    files: int
    keep_source: int
    words: bool
    scrubbed: bool
    backups_until: int | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.derived or self.messages or self.replies or self.files)


async def no_backups() -> int | None:
    """There are no backups that could hold what was erased."""
    return None


async def _no_list() -> int:
    """Nobody keeps a list."""
    return 0


class Forgetting:
    """What of one store is forgotten. `begin` it when the store is open, `close` it before the store is.

    `backups_until` tells until when (milliseconds UTC) some backup holds what is erased now.
    """

    def __init__(
        self,
        database: Database,
        *,
        search: Search,
        now: Callable[[], int],
        new_id: Callable[[], str],
        at_once_bytes: int = _AT_ONCE_BYTES,
        wait_seconds: float = 5.0,
        again_seconds: float = _AGAIN,
    ) -> None:
        """Readers are waited for up to `wait_seconds`; then it is tried every `again_seconds`."""
        self._database = database
        self._search = search
        self._now = now
        self._new_id = new_id
        self._at_once_bytes = at_once_bytes
        self._wait_seconds = wait_seconds
        self._again_seconds = again_seconds
        self._scrubbing = asyncio.Lock()
        #: By erasures: what is looked for in the answers of turns that are under way; no file holds it.
        self._sought: dict[int, Sought] = {}
        #: Erasures of which no word is left to be blanked.
        self._blanked: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self.backups_until: Callable[[], Awaitable[int | None]] = no_backups
        #: Called when something was erased, so that a restore does not bring it back.
        self.list_erased: Callable[[], Awaitable[int]] = _no_list

    async def begin(self) -> None:
        """Go on, in the background, with what an earlier run has left to do."""
        if await self._database.read(erasure.unscrubbed):
            self._go_on()

    async def close(self) -> None:
        """Stop at once; the next start goes on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def preview(
        self, context: Context, words: str, *, limit: int = 10, may_all: bool = False, reply_to: str | None = None
    ) -> Preview | None:
        """What `words`, as typed behind /forget, mean, with up to `limit` memories to show; None: nothing here.

        Without words it is the message `reply_to` (the platform's id). `may_all` where who asks may have all of a group
        erased. Raises `NotFound`, `NotYours` and `Derived` for the id of a memory.
        """
        found: list[int] = []
        if choose.is_query(words):
            hits = await self._search.find(context.scope, words, timezone=context.timezone, limit=_FOUND)
            found = [hit.memory.id for hit in hits if hit.memory is not None]

        def act(reader: Reader) -> Preview | None:
            asker = _asker(reader, context, may_all)
            selection = choose.understand(reader, asker, words, now=self._now(), found=found, reply_to=reply_to)
            return None if selection is None else _preview(reader, asker, selection, limit)

        return await self._database.read(act)

    async def preview_of(
        self, context: Context, selection: Selection, *, limit: int = 10, may_all: bool = False
    ) -> Preview:
        """What a selection comes to as things stand."""
        return await self._database.read(
            lambda reader: _preview(reader, _asker(reader, context, may_all), selection, limit)
        )

    async def forget(
        self,
        context: Context,
        inbox_id: int,
        question: Question | None,
        selection: Selection,
        how: How,
        *,
        may_all: bool = False,
    ) -> Receipt | None:
        """Have it go, for the request `inbox_id`, which stays open: the caller ends it with the receipt.

        Run again for the same request it changes nothing and returns the same receipt. None when the `question` to
        which it is the answer was over.
        """
        return await self.forget_as(
            lambda tx: _asker(tx, context, may_all), inbox_id, question, selection, how, noted=_not_noted
        )

    async def forget_as(
        self,
        asking: Callable[[Reader], Asker | None],
        inbox_id: int,
        question: Question | None,
        selection: Selection,
        how: How,
        *,
        noted: Callable[[Transaction, Plan], None],
    ) -> Receipt | None:
        """The same for whom `asking` gives, in the transaction that erases; None for nobody.

        `noted` is called there, before anything goes.
        """

        def look(reader: Reader) -> Plan | None:
            asker = asking(reader) if erasure.of_inbox(reader, inbox_id) is None else None
            return None if asker is None else forget.plan(reader, asker, selection, how)

        # What takes long is to hold up nobody who writes. What they write meanwhile is looked at when all of it goes.
        planned, written = None, await self._database.write(traces.changes)
        with suppress(StoreBusy):
            planned = await self._database.read(look)

        def act(tx: Transaction) -> bool:
            if erasure.of_inbox(tx, inbox_id) is not None:
                return True
            is_as_planned = traces.changes(tx) == written
            asker = asking(tx)
            if asker is None:
                return False
            if question is not None and not questions.settle(tx, question.id, how):
                return False
            if planned is not None and is_as_planned:
                going = planned
            else:
                going = forget.plan(tx, asker, selection, how, looked=None if planned is None else planned.looked)
            noted(tx, going)
            before = traces.changes(tx)
            counts, what, sought = erase.carry_out(tx, asker, going, now=self._now(), new_id=self._new_id)
            # Also where no message and no memory was meant, a failed message or a name may have gone.
            is_clean = traces.changes(tx) == before and sought is None
            erasure_id = erasure.record(tx, inbox_id, what, counts.to_json(), now=self._now())
            if sought is not None:
                self._sought[erasure_id] = sought
            if is_clean:
                erasure.scrubbed(tx, [erasure_id], now=self._now())
            return True

        if not await self._database.write(act):
            return None
        # Not by the one who asks alone: whoever searches meanwhile must not find it either.
        await index.keep_up(self._database)
        await self.list_erased()
        return await self.receipt(inbox_id)

    async def has_erased(self, inbox_id: int) -> bool:
        """Whether anything was erased for a request."""
        return await self._database.read(lambda reader: erasure.of_inbox(reader, inbox_id)) is not None

    async def receipt(self, inbox_id: int) -> Receipt | None:
        """What was erased for a request, once no trace is left or that takes long; None: nothing was, or no such."""
        found = await self._database.read(lambda reader: erasure.of_inbox(reader, inbox_id))
        if found is None:
            return None
        if found.scrubbed_at is None and not await self.scrub():
            self._go_on()
        found = await self._database.read(lambda reader: erasure.of_inbox(reader, inbox_id))
        assert found is not None
        asked = json.loads(found.what)
        return Receipt(
            **json.loads(found.counts),
            what=asked["what"],
            words=asked["how"] == "words",
            scrubbed=found.scrubbed_at is not None,
            backups_until=await self.backups_until(),
        )

    async def scrub(self) -> bool:
        """Leave no byte of what was erased in the files, unless they are large; False when it is not done (yet)."""
        return await self._scrub(self._at_once_bytes)

    async def finish(self) -> bool:
        """The same however large the files are; for a quiet hour of each day. Writers wait some 10 ms a megabyte."""
        return await self._scrub(None)

    async def _scrub(self, most_bytes: int | None) -> bool:
        async with self._scrubbing:
            try:
                due = await self._database.read(erasure.unscrubbed)
                if not due:
                    return True
                for one in due:
                    await self._blank_rest(one)
                if not all([await self._ended(one) for one in due]):
                    return False
                await index.catch_up(self._database)
                await self._merge_words()
                if most_bytes is not None and self._database.file_bytes > most_bytes:
                    return False
                if not await self._database.scrub(seconds=self._wait_seconds):
                    log.warning("forget.traces_left", because="somebody reads the store", again_in=self._again_seconds)
                    return False
                done = [one.id for one in due]
                await self._database.write(lambda tx: erasure.scrubbed(tx, done, now=self._now()))
            except StorageError as exc:
                log.warning("forget.traces_left", because=str(exc), again_in=self._again_seconds)
                return False
            return True

    async def _blank_rest(self, one: Erasure) -> None:
        """Have the words go that were put out of sight, in short transactions; cut off, it is begun again."""
        if one.id in self._blanked or one.ended_at is not None:
            return
        for some in erase.rest(one.what):
            await self._database.write(lambda tx, some=some: blank.blank_hidden(tx, some, now=self._now()))  # type: ignore[misc]
        self._blanked.add(one.id)

    async def _ended(self, one: Erasure) -> bool:
        def act(tx: Transaction) -> bool:
            if not blank.finish(tx, one.what, sought=self._sought.get(one.id), now=self._now()):
                return False
            erasure.ended(tx, one.id, now=self._now())
            return True

        is_over = one.ended_at is not None or await self._database.write(act)
        if is_over:
            self._sought.pop(one.id, None)
        return is_over

    async def _merge_words(self) -> None:
        """Have the word index made one piece, in short transactions."""
        if await self._database.write(lambda tx: traces.merge_words(tx, begin=True)):
            return
        while not await self._database.write(lambda tx: traces.merge_words(tx, begin=False)):
            pass

    def _go_on(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._until_scrubbed())

    async def _until_scrubbed(self) -> None:
        while True:
            # A file that is too large waits for `finish`.
            if await self.scrub() or self._database.file_bytes > self._at_once_bytes:
                return
            await asyncio.sleep(self._again_seconds)


def _not_noted(_tx: Transaction, _going: Plan) -> None:
    """Nobody has to be told."""


def _asker(reader: Reader, context: Context, may_all: bool) -> Asker:
    context = anew(reader, context)
    return Asker(session=context.session, scope=context.scope, timezone=context.timezone, may_all=may_all)


def _preview(reader: Reader, asker: Asker, selection: Selection, limit: int) -> Preview:
    going: Plan = forget.plan(reader, asker, selection, "words")
    told = [memory for memory in going.memories if not memory.follows]
    # What is another agent's own goes as well where all goes, and is shown by that agent only.
    visible = {memory.id for memory in memories.by_ids(reader, asker.scope, [memory.id for memory in told])}
    told.sort(key=lambda memory: (memory.live, memory.importance, memory.learned_at, memory.id), reverse=True)
    return Preview(
        selection=selection,
        shown=tuple([memory for memory in told if memory.id in visible][:limit]),
        memories=len(told),
        messages=len(going.messages),
        replies=len(going.replies),
        staying=going.staying,
        skipped=going.skipped,
    )
