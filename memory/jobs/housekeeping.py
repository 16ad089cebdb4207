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
from memory.forgetting import retention
from memory.forgetting.forgetting import Forgetting
from memory.forgetting.left_chats import Erased
from memory.store import erasure, job_runs, reminders, vectors
from memory.store.database import Database, Transaction
from memory.transfer import exported_files
from memory.transfer.backups import Backups

log = structlog.get_logger(__name__)

_DAY_MS: Final = 24 * 3_600_000
#: Days after which the record of a run is dropped, so that a year of nights can be looked up.
_RUN_DAYS: Final = 400
#: Days for which a reminder that was shown can be put off or said to be done.
_SHOWN_DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One part of the housekeeping. `act` returns its work in figures."""

    name: str
    act: Callable[[], Awaitable[Mapping[str, int]]]


class Housekeeping:
    """The housekeeping of one store (`Service.housekeeping`)."""

    def __init__(
        self,
        database: Database,
        *,
        forgetting: Forgetting,
        backups: Backups,
        erase_left: Callable[[], Awaitable[Erased]],
        transcript_days: int | None,
        export_days: int | None,
        now: Callable[[], int],
    ) -> None:
        """Messages said more than `transcript_days` ago lose their words; with None no message does because of age.

        Exports beside the store that are older than `export_days` are removed; with None none is.
        """
        self._database = database
        self._forgetting = forgetting
        self._backups = backups
        self._erase_left = erase_left
        self._transcript_days = transcript_days
        self._export_days = export_days
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

    async def _left(self) -> Mapping[str, int]:
        erased = await self._erase_left()
        if erased.chats:
            log.warning("left.erased", store=self._database.path.name, chats=erased.chats, memories=erased.memories)
        return {"chats": erased.chats, "messages": erased.messages, "memories": erased.memories}

    async def _old_words(self) -> Mapping[str, int]:
        if self._transcript_days is None:
            return {}
        now = self._now()
        before = now - self._transcript_days * _DAY_MS
        return {"messages": await retention.erase_words(self._database, before=before, now=now)}

    async def _own_notes(self) -> Mapping[str, int]:
        now = self._now()

        def act(tx: Transaction) -> int:
            vectors.evict(tx, now=now)
            erasure.drop_notes(tx, before=now - _DAY_MS)
            reminders.drop_old(tx, unasked_before=now - _DAY_MS, shown_before=now - _SHOWN_DAYS * _DAY_MS)
            return job_runs.drop_old(tx, before=now - _RUN_DAYS * _DAY_MS)

        return {"runs": await self._database.write(act)}

    async def _traces(self) -> Mapping[str, int]:
        if not await self._forgetting.finish():
            raise StoreBusy(
                f"Traces of erased texts are still in {self._database.path}, because something is reading it or a "
                "turn is running. Nothing is lost; Remora tries again later."
            )
        return {}

    async def _old_exports(self) -> Mapping[str, int]:
        if self._export_days is None:
            return {}
        folder, before = self._database.path.parent / exported_files.FOLDER, self._now() - self._export_days * _DAY_MS
        return {"exports": await asyncio.to_thread(exported_files.drop_old, folder, before=before)}

    async def _old_backups(self) -> Mapping[str, int]:
        return {"backups_dropped": await self._backups.drop_old()}

    async def _backup(self) -> Mapping[str, int]:
        return {"backups": int(await self._backups.make_daily() is not None)}
