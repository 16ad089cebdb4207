"""The gateway's interface to forgetting: preview, forget with a receipt, and scrub until no byte is left.

Invariants: the erasure, the end of its question and a record of ids and figures are committed in one transaction, so
the same request changes nothing a second time and gets the same receipt. The request itself stays open until that
receipt is queued. "No trace left" is said only when the index is up to date and merged, the file is rewritten and its
log is emptied; until then it is tried again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from memory.context import Context, anew, in_read
from memory.errors import StorageError, StoreBusy
from memory.forgetting import blank_messages, choose, erase, plan
from memory.forgetting.blank_messages import Sought
from memory.forgetting.choose import Asker, Selection, What
from memory.forgetting.erase import ErasedCounts
from memory.forgetting.plan import How, Plan
from memory.loops import reason_of
from memory.mailbox import inbox
from memory.recall import index
from memory.recall.search import Hit, Search
from memory.store import filter_rows, memories, passages, questions, word_columns
from memory.store.database import Database, Reader, Transaction
from memory.store.memories import Memory
from memory.store.questions import Question
from memory.store.word_columns import Erasure
from memory.text.times import clock
from memory.text.words import stem
from memory.typed_filters import Filters

log = structlog.get_logger(__name__)

#: Larger files, in bytes, are rewritten by the daily `finish`, since that takes some 10 ms a megabyte.
_AT_ONCE_BYTES: Final = 128 * 1024 * 1024
#: Seconds between two attempts to scrub while another reader keeps the log from being emptied.
_AGAIN: Final = 30.0
#: The most memories that a search adds to those that hold the very words.
_FOUND: Final = 50
#: The most messages that a preview quotes.
_QUOTED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPreview:
    """A preview of a forget. `shown` are some of the memories, weightiest first; `memories` and `messages` count all.

    `replies` counts the bot's messages, `staying` the memories that lose a source and stay, `naming` the messages and
    reminders that name what goes and stay, `skipped` the memories that match but belong to others. `quoted` are the
    words of some of the messages, `reminders` those of the reminders. The preview is empty if all of them are.
    """

    selection: Selection
    shown: tuple[Memory, ...]
    quoted: tuple[str, ...]
    memories: int
    messages: int
    replies: int
    staying: int
    skipped: int
    reminders: tuple[str, ...] = ()
    naming: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.messages or self.replies or self.reminders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(ErasedCounts):
    """The result of a forget that `what` was asked for. Without `words`, messages and replies stay.

    Unless `scrubbed`, the files still hold traces, which go later. `on_server` says that the database is on a server,
    whose log and archives hold it until they are recycled. Backups may hold it up to `backups_until`
    (milliseconds UTC; None if there are none).
    """

    what: What
    words: bool
    scrubbed: bool
    on_server: bool = False
    backups_until: int | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.derived or self.messages or self.replies or self.files or self.reminders)


async def no_backups() -> int | None:
    """Returns None: there are no backups that could hold erased rows."""
    return None


async def _no_list() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbing:
    """Settings for ridding the files of traces: at once up to `at_once_bytes`, else in the background.

    `wait_seconds` limits the wait for readers. After that, scrubbing is tried every `again_seconds`.
    """

    at_once_bytes: int = _AT_ONCE_BYTES
    wait_seconds: float = 5.0
    again_seconds: float = _AGAIN


class Forgetting:
    """Forgetting in one store. Call `begin` when the store is open, and `close` before the store is closed."""

    def __init__(
        self,
        database: Database,
        *,
        search: Search,
        now: Callable[[], int],
        new_id: Callable[[], str],
        backups_until: Callable[[], Awaitable[int | None]] = no_backups,
        list_erased: Callable[[], Awaitable[int]] = _no_list,
        scrubbing: Scrubbing | None = None,
    ) -> None:
        """`backups_until` returns the time (milliseconds UTC) until which a backup holds rows erased now.

        `list_erased` is called after an erasure, so that a restore does not bring the erased rows back.
        """
        self._database = database
        self._search = search
        self._now = now
        self._new_id = new_id
        self._backups_until = backups_until
        self._list_erased = list_erased
        self._limits = scrubbing or Scrubbing()
        self._scrubbing = asyncio.Lock()
        #: The texts to look for in the answers of running turns, by erasure id. No file holds them.
        self._sought: dict[int, Sought] = {}
        #: Erasures that have no words left to blank.
        self._blanked: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Goes on, in the background, with the work that an earlier run left."""
        if await self._database.read(word_columns.unscrubbed):
            self._go_on()

    async def close(self) -> None:
        """Stops at once; the next start goes on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def preview(
        self,
        context: Context,
        said: str | Filters,
        *,
        limit: int = 10,
        may_all: bool = False,
        reply_to: str | None = None,
        request: str = "",
    ) -> ForgetPreview | None:
        """Returns a preview of the text `said` after /forget, with up to `limit` memories to show; None without a
        match.

        Without a text it is about the message `reply_to` (the platform's id). `request` is the whole message that the
        text was taken from. `may_all` is set if the person asking
        may have all of a group erased. Raises `NotFound`, `NotYours` and `Derived` for a memory's id, and
        `UnknownFilter` and `UnreadFilter`.
        """
        asked = await self._read(context, said) if isinstance(said, str) else said
        hits: list[Hit] = []
        if choose.is_query(asked.words):
            hits = await self._search.find(
                context.scope, asked.words, timezone=context.timezone, limit=_FOUND, filters=asked
            )
        found = [hit.memory.id for hit in hits if hit.memory is not None]
        heard = [hit.passage.message.id for hit in hits if hit.passage is not None]

        def act(reader: Reader) -> ForgetPreview | None:
            asker = _asker(reader, context, may_all)
            selection = choose.understand(
                reader, asker, asked, now=self._now(), found=found, heard=heard, reply_to=reply_to, request=request
            )
            return None if selection is None else _preview(reader, asker, selection, limit)

        return await self._database.read(act)

    async def _read(self, context: Context, said: str) -> Filters:
        today = clock.local_date(self._now(), context.timezone)
        return await self._database.read(lambda reader: filter_rows.read(reader, context.scope, said, today))

    @in_read
    def preview_of(
        self, reader: Reader, context: Context, selection: Selection, *, limit: int = 10, may_all: bool = False
    ) -> ForgetPreview:
        return _preview(reader, _asker(reader, context, may_all), selection, limit)

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
        """Forgets a selection for the request `inbox_id`, which stays open: the caller ends it with the receipt.

        A second run for the same request changes nothing and returns the same receipt. Returns None if the `question`
        that the request answers was over.
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
        """Forgets for the asker that `asking` returns in the erasing transaction, as `forget` does; None without one.

        `noted` is called in that transaction before anything is erased.
        """

        def look(reader: Reader) -> Plan | None:
            asker = asking(reader) if word_columns.of_inbox(reader, inbox_id) is None else None
            return None if asker is None else plan.plan(reader, asker, selection, how)

        # Planning takes long and must not hold up writers. Rows written meanwhile are looked at when the erasure is
        # committed.
        planned, written = None, await self._database.state()
        with suppress(StoreBusy):
            planned = await self._database.read(look)

        def act(tx: Transaction) -> tuple[bool, dict[int, Sought]]:
            if word_columns.of_inbox(tx, inbox_id) is not None:
                return True, {}
            inbox.expect_open(tx, inbox_id)
            is_as_planned = tx.state == written
            asker = asking(tx)
            if asker is None or (question is not None and not questions.settle(tx, question.id, how)):
                return False, {}
            if planned is not None and is_as_planned:
                going = planned
            else:
                going = plan.plan(tx, asker, selection, how, looked=None if planned is None else planned.looked)
            noted(tx, going)
            return True, self._carry_out(tx, asker, inbox_id, going)

        is_done, sought = await self._database.write(act)
        if not is_done:
            return None
        self._sought |= sought
        # Not left to the asker alone: nobody's search may find it meanwhile.
        await index.keep_up(self._database)
        await self._list_erased()
        return await self.receipt(inbox_id)

    def _carry_out(self, tx: Transaction, asker: Asker, inbox_id: int, going: Plan) -> dict[int, Sought]:
        """Erases what is planned and records it. Returns the texts to look for in running turns, by erasure."""
        before = tx.changes
        counts, what, sought = erase.carry_out(tx, asker, going, now=self._now(), new_id=self._new_id)
        # A failed message or a name may have gone even if no message and no memory was meant.
        is_clean = tx.changes == before and sought is None
        erasure_id = word_columns.record(tx, inbox_id, what, counts.to_json(), now=self._now())
        if is_clean:
            word_columns.scrubbed(tx, [erasure_id], now=self._now())
        return {} if sought is None else {erasure_id: sought}

    async def has_erased(self, inbox_id: int) -> bool:
        return await self._database.read(lambda reader: word_columns.of_inbox(reader, inbox_id)) is not None

    async def receipt(self, inbox_id: int) -> Receipt | None:
        """Returns a request's receipt, scrubbing first unless that takes long; None if nothing was erased for it."""
        found = await self._database.read(lambda reader: word_columns.of_inbox(reader, inbox_id))
        if found is None:
            return None
        if found.scrubbed_at is None and not await self.scrub():
            self._go_on()
        found = await self._database.read(lambda reader: word_columns.of_inbox(reader, inbox_id))
        assert found is not None
        asked = json.loads(found.what)
        return Receipt(
            **json.loads(found.counts),
            what=asked["what"],
            words=asked["how"] == "words",
            scrubbed=found.scrubbed_at is not None,
            on_server=self._database.driver is None,
            backups_until=await self._backups_until(),
        )

    async def scrub(self) -> bool:
        """Removes every byte of erased rows from the files, unless they are large. Returns False if not done."""
        return await self._scrub(self._limits.at_once_bytes)

    async def finish(self) -> bool:
        """Scrubs files of any size, for a quiet hour of each day. Writers wait some 10 ms a megabyte."""
        return await self._scrub(None)

    async def _scrub(self, most_bytes: int | None) -> bool:
        async with self._scrubbing:
            try:
                due = await self._database.read(word_columns.unscrubbed)
                if not due:
                    return True
                for one in due:
                    await self._blank_rest(one)
                if not all([await self._ended(one) for one in due]):
                    return False
                await index.catch_up(self._database)
                if most_bytes is not None and self._database.file_bytes > most_bytes:
                    return False
                if not await self._database.scrub(seconds=self._limits.wait_seconds):
                    log.warning(
                        "forget.traces_left",
                        because="the tables could not be rewritten",
                        again_in=self._limits.again_seconds,
                    )
                    return False
                done = [one.id for one in due]
                await self._database.write(lambda tx: word_columns.scrubbed(tx, done, now=self._now()))
                # Its cache keeps words, too.
                stem.cache_clear()
            except StorageError as exc:
                log.warning("forget.traces_left", because=str(exc), again_in=self._limits.again_seconds)
                return False
            return True

    async def _blank_rest(self, one: Erasure) -> None:
        """Blanks the words that were hidden, in short transactions. If cut off, it starts over."""
        if one.id in self._blanked or one.ended_at is not None:
            return
        for some in erase.rest(one.what):
            await self._database.write(lambda tx, some=some: blank_messages.blank_hidden(tx, some, now=self._now()))  # type: ignore[misc]
        self._blanked.add(one.id)

    async def _ended(self, one: Erasure) -> bool:
        def act(tx: Transaction) -> bool:
            if not blank_messages.finish(tx, one.what, sought=self._sought.get(one.id), now=self._now()):
                return False
            word_columns.ended(tx, one.id, now=self._now())
            return True

        is_over = one.ended_at is not None or await self._database.write(act)
        if is_over:
            self._sought.pop(one.id, None)
        return is_over

    def _go_on(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._until_scrubbed())

    async def _until_scrubbed(self) -> None:
        while True:
            try:
                # Files that are too large wait for `finish`.
                if await self.scrub() or self._database.file_bytes > self._limits.at_once_bytes:
                    return
            # An erasure that was promised must not end with a fault in one try.
            except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
                log.error("forget.traces_left", because=reason_of(exc), again_in=self._limits.again_seconds)
            await asyncio.sleep(self._limits.again_seconds)


def _not_noted(_tx: Transaction, _going: Plan) -> None:
    """Does nothing: there is nothing to note."""


def _asker(reader: Reader, context: Context, may_all: bool) -> Asker:
    context = anew(reader, context)
    return Asker(session=context.session, scope=context.scope, timezone=context.timezone, may_all=may_all)


def _quoted(reader: Reader, asker: Asker, selection: Selection, going: Plan) -> tuple[str, ...]:
    """Returns the words of messages that go and that the person sees here, those named by the selection first."""
    named = [message_id for message_id in selection.message_ids if message_id in going.messages]
    ids = dict.fromkeys([*named, *sorted(going.messages, reverse=True)])
    seen = passages.by_ids(reader, asker.scope, list(ids)[:_QUOTED])
    return tuple(message.text for message in seen if message.role == "user")


def _preview(reader: Reader, asker: Asker, selection: Selection, limit: int) -> ForgetPreview:
    going: Plan = plan.plan(reader, asker, selection, "words")
    told = [memory for memory in going.memories if not memory.follows]
    # If everything goes, another agent's own memories go as well; only that agent shows them.
    visible = {memory.id for memory in memories.by_ids(reader, asker.scope, [memory.id for memory in told])}
    told.sort(key=lambda memory: (memory.live, memory.importance, memory.learned_at, memory.id), reverse=True)
    return ForgetPreview(
        selection=selection,
        shown=tuple([memory for memory in told if memory.id in visible][:limit]),
        quoted=_quoted(reader, asker, selection, going),
        memories=len(told),
        messages=len(going.messages),
        replies=len(going.replies),
        staying=going.staying,
        skipped=going.skipped,
        reminders=tuple(reminder.text for reminder in going.reminders),
        naming=going.naming,
    )
