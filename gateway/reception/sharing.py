"""This process's share of the sessions of a store on which several processes answer.

Invariants: everything that a signal tells is also found by looking, every few seconds. A session is left only while
nothing of it is in hand. Live processes take up the sessions of dead ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

import structlog

from channels.base import Place
from gateway.pipeline.store import Store
from gateway.reception.router import Router

log = structlog.get_logger(__name__)

#: The name of this loop, and of its units of work.
_LOOP: Final = "sharing"
#: Seconds between two looks for sessions and messages that no signal told of.
_LOOKS: Final = 5.0
#: The number of looks after which unread messages are looked for, also in sessions held here, and idle ones are left.
_SELDOM: Final = 12


class Sharing:
    """The work of sharing one store's sessions with other processes. `work` is its main loop.

    A process that `takes_part` takes its share of the messages that others receive. Any other, such as a chat in the
    terminal, answers only where no other process does.
    """

    def __init__(self, store: Store, router: Router, *, takes_part: bool) -> None:
        self._store = store
        self._takes_part = takes_part
        self._share = store.memory.share
        self._router = router
        self._woken = asyncio.Event()
        self._wanted: set[str] = set()
        self._asked: set[str] = set()
        # When a session was left to a process that asked for it, in seconds: that one needs a moment to take it.
        self._left: dict[str, float] = {}
        self._someone_went = True
        self._idle: set[str] = set()
        self._looks = 0

    async def work(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Takes up the sessions that fall to this process. Ends at once if it is the only one, otherwise never."""
        if self._share.is_alone:
            return
        for topic, act in (
            ("work", self._want),
            ("yield", self._yield),
            ("show", self._show),
            ("gone", self._went),
            ("deleted", lambda told: self._router.deleted_elsewhere(self._store, told)),
        ):
            self._share.on(topic, act)
        await self._store.memory.loops.run(
            _LOOP,
            self._look,
            effect="Messages of conversations that no other process holds may wait.",
            woken=self._woken,
            sleep=sleep,
        )

    async def _look(self) -> float:
        """Does what signals told of, and looks for the rest. Returns the seconds until the next look."""
        self._woken.clear()
        if self._share.lost.is_set():
            return _LOOKS  # the process is about to begin anew
        if not self._looks and self._takes_part:
            await self._share.begin()
        seldom, alone = self._looks % _SELDOM == 0, self._store.memory.loops.alone
        for key in sorted(self._asked):
            await alone(_LOOP, f"leave {key}", partial(self._leave, key))
        wanted, self._wanted = self._wanted, set()
        try:
            await self._take_up(wanted, seldom=seldom)
        except Exception:
            self._wanted |= wanted
            raise
        if seldom:
            await self._store.memory.learner.take_over(self._share.held())
            idle = {key for key in self._share.held() if not self._is_busy(key)}
            await self._share.leave(idle & self._idle)
            self._idle = idle
        self._looks += 1
        return _LOOKS

    async def _take_up(self, wanted: Collection[str], *, seldom: bool) -> None:
        alone = self._store.memory.loops.alone
        for key in sorted(wanted):
            await alone(_LOOP, f"hold {key}", partial(self._router.hold, self._store, key))
        self._left = {key: at for key, at in self._left.items() if time.monotonic() - at < _LOOKS}
        taken = await self._share.adopt(self._may_adopt, unread=seldom or self._someone_went)
        self._someone_went = False
        if taken:
            log.info("sharing.taken_up", sessions=len(taken))
        # Also what an earlier try could not take up.
        if fresh := self._share.fresh():
            await self._router.took(self._store, fresh)
        await self._router.look(self._store)
        for key in wanted:
            self._store.delivery.wake(key)

    async def _leave(self, key: str) -> None:
        """Leaves a session to the process that asks for it, unless something of it is in hand."""
        if self._share.holds(key) and self._is_busy(key):
            return  # it is asked for again
        self._asked.discard(key)
        self._store.delivery.let_go(key)
        self._left[key] = time.monotonic()
        await self._share.leave([key], asked=True)

    def _may_adopt(self, key: str) -> bool:
        return key not in self._left and self._router.answers(key)

    def _is_busy(self, key: str) -> bool:
        return self._router.is_busy(key) or self._store.delivery.is_sending(key)

    # Signals --------------------------------------------------------------------------------------------------------

    def _want(self, key: str) -> None:
        self._wanted.add(key)
        self._woken.set()

    def _yield(self, key: str) -> None:
        self._asked.add(key)
        self._woken.set()

    def _show(self, key: str) -> None:
        if self._router.reaches(Place.from_session_key(key)):
            self._store.delivery.wake(key)

    def _went(self, process: str) -> None:
        self._someone_went = True
        self._woken.set()
