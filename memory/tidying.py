"""What is done once a day for a whole store, with no model: what is too old goes, no trace of it stays, a copy is made.

Invariants: each part is tried whatever becomes of the others; a part that was cut off goes on with the next day's, or
when the day's is tried again, which makes no second backup; the backup comes last, so that nothing that had to go today
is in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from memory.backups import Backups
from memory.errors import StorageError, StoreBusy
from memory.forgetting import Forgetting
from memory.recall import vectors
from memory.store.database import Database, Transaction
from memory.upkeep import retention
from memory.upkeep.leave import Erased

log = structlog.get_logger(__name__)

_DAY_MS: Final = 24 * 3_600_000
#: Days after which the record of a run goes: a year of nights can be looked back on.
_RUN_DAYS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One thing to do; it returns what it did, in figures."""

    name: str
    act: Callable[[], Awaitable[Mapping[str, int]]]


class Tidying:
    """`Service.tidying`."""

    def __init__(
        self,
        database: Database,
        *,
        forgetting: Forgetting,
        backups: Backups,
        erase_left: Callable[[], Awaitable[Erased]],
        transcript_days: int | None,
        now: Callable[[], int],
    ) -> None:
        """What was said more than `transcript_days` ago loses its words, with None nothing does by its age."""
        self._database = database
        self._forgetting = forgetting
        self._backups = backups
        self._erase_left = erase_left
        self._transcript_days = transcript_days
        self._now = now

    async def tidy(self) -> Mapping[str, int]:
        """Do the day's tidying; returns figures of what went and what was made, without those that are 0.

        "chats", "memories": of places that the bot has left. "messages": those that lost their words, there or by their
        age. "runs", "backups_dropped", "backups". Raises the first `StorageError`, once all else is done.
        """
        parts = (
            _Part(name="left", act=self._left),
            _Part(name="words", act=self._old_words),
            _Part(name="cache", act=self._own_notes),
            _Part(name="traces", act=self._traces),
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
            # The caller gets no figures then.
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
            retention.drop_notes(tx, before=now - _DAY_MS)
            return retention.drop_runs(tx, before=now - _RUN_DAYS * _DAY_MS)

        return {"runs": await self._database.write(act)}

    async def _traces(self) -> Mapping[str, int]:
        if not await self._forgetting.finish():
            raise StoreBusy(
                f"Traces of what was erased are still in {self._database.path}: somebody reads it, or a turn is under "
                "way. Nothing is lost; it is tried again later."
            )
        return {}

    async def _old_backups(self) -> Mapping[str, int]:
        return {"backups_dropped": await self._backups.drop_old()}

    async def _backup(self) -> Mapping[str, int]:
        return {"backups": int(await self._backups.make_daily() is not None)}
