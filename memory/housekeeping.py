"""Daily housekeeping for a whole store, without a model: drops old data, scrubs its traces, and makes a backup.

Invariants: Each part is tried whatever the outcome of the others. A part that was interrupted resumes with the next
day's housekeeping, or when the same day's is retried, which makes no second backup. The backup comes last, so that it
holds nothing that had to be dropped today.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from memory.errors import StorageError, StoreBusy
from memory.forgetting import expired
from memory.forgetting.expired import Erased
from memory.forgetting.forgetting import Forgetting
from memory.jobs import runs
from memory.reminders import reminding
from memory.store import vectors, word_columns
from memory.store.database import Database, Durability, Transaction
from memory.transfer.backups import Backups, Retention
from memory.transfer.transfers import EXPORTS, drop_old_exports

log = structlog.get_logger(__name__)

_DAY_MS: Final = 24 * 3_600_000
#: Days after which the record of a run is dropped, so that a year of nights can be looked up.
_RUN_DAYS: Final = 400
#: Days for which a reminder that was shown can be put off or said to be done.
_SHOWN_DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The retention settings of a store, and whether admins may read it.

    Backups go where `retention` says, otherwise to a folder named backups beside the store. With `transcript_days`,
    `housekeeping` erases words that were said that many days ago, and with `export_days` removes exports beside the
    store that are as old. Messages and memories of a chat are erased `left_chat_days` after the bot has left it. With
    `admins_read`, admins see the words of memories. With the `durability` "power-loss" a commit survives a power cut.
    """

    durability: Durability = "process"
    retention: Retention | None = None
    transcript_days: int | None = None
    left_chat_days: int = 30
    export_days: int | None = None
    admins_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One part of the housekeeping. `act` returns its work in figures."""

    name: str
    act: Callable[[], Awaitable[Mapping[str, int]]]


class Housekeeping:
    def __init__(
        self, database: Database, *, keeping: Keeping, forgetting: Forgetting, backups: Backups, now: Callable[[], int]
    ) -> None:
        self._database = database
        self._keeping = keeping
        self._forgetting = forgetting
        self._backups = backups
        self._now = now

    async def tidy(self) -> Mapping[str, int]:
        """Does the day's housekeeping. Returns figures of dropped and new data, without figures that are 0.

        "chats" and "memories" count rows erased in places that the bot has left. "messages" counts messages that lost
        their words, in these places or because of their age. "runs", "backups_dropped" and "exports" count dropped
        items, "backups" new ones. Raises the first `StorageError`, once everything else is done.
        """
        parts = (
            _Part(name="left", act=self._left),
            _Part(name="words", act=self._old_words),
            _Part(name="cache", act=self._own_notes),
            _Part(name="traces", act=self._traces),
            _Part(name="exports", act=self._old_exports),
            _Part(name="old backups", act=self._old_backups),
            _Part(name="backup", act=self._backup),
        )
        figures: dict[str, int] = {}
        failure: StorageError | None = None
        for part in parts:
            try:
                for name, count in (await part.act()).items():
                    figures[name] = figures.get(name, 0) + count
            except StorageError as exc:
                log.error("store.not_tidied", store=self._database.path.name, part=part.name, error=str(exc))
                failure = failure or exc
        done = {name: count for name, count in figures.items() if count}
        if failure is not None:
            # The caller gets no figures in this case, so they are logged.
            log.warning("store.tidied_in_part", store=self._database.path.name, **done)
            raise failure
        return done

    async def erase_left(self) -> Erased:
        """Erases the messages and memories of chats that the bot left long enough ago.

        If stopped half-way, it continues the next time. A chat to which the bot came back keeps the remaining rows.
        """
        now = self._now()
        return await expired.erase_left(self._database, before=now - self._keeping.left_chat_days * _DAY_MS, now=now)

    async def _left(self) -> Mapping[str, int]:
        erased = await self.erase_left()
        if erased.chats:
            log.warning("left.erased", store=self._database.path.name, chats=erased.chats, memories=erased.memories)
        return {"chats": erased.chats, "messages": erased.messages, "memories": erased.memories}

    async def _old_words(self) -> Mapping[str, int]:
        if self._keeping.transcript_days is None:
            return {}
        now = self._now()
        before = now - self._keeping.transcript_days * _DAY_MS
        return {"messages": await expired.erase_words(self._database, before=before, now=now)}

    async def _own_notes(self) -> Mapping[str, int]:
        now = self._now()

        def act(tx: Transaction) -> int:
            vectors.evict(tx, now=now)
            word_columns.drop_notes(tx, before=now - _DAY_MS)
            if reminding.drop_old(tx, unasked_before=now - _DAY_MS, shown_before=now - _SHOWN_DAYS * _DAY_MS):
                word_columns.note_reworded(tx, now=now)
            return runs.drop_old(tx, before=now - _RUN_DAYS * _DAY_MS)

        return {"runs": await self._database.write(act)}

    async def _traces(self) -> Mapping[str, int]:
        if not await self._forgetting.finish():
            raise StoreBusy(
                f"Traces of erased texts are still in {self._database.path}, because something is reading it or a "
                "turn is running. Nothing is lost; Remora tries again later."
            )
        return {}

    async def _old_exports(self) -> Mapping[str, int]:
        if self._keeping.export_days is None:
            return {}
        folder, before = (
            self._database.path.parent / EXPORTS,
            self._now() - self._keeping.export_days * _DAY_MS,
        )
        return {"exports": await asyncio.to_thread(drop_old_exports, folder, before=before)}

    async def _old_backups(self) -> Mapping[str, int]:
        return {"backups_dropped": await self._backups.drop_old()}

    async def _backup(self) -> Mapping[str, int]:
        return {"backups": int(await self._backups.make_daily() is not None)}
