"""The share of a store's work that falls to this process: its sessions, and work that one process does at a time.

This is the only place where the rest of the program asks who else answers. A session belongs to one process at a time,
which answers it and shows its messages. Work such as that of the night, or a bot's polling, is done by one process at a
time.

Invariants: a process keeps what it holds until it leaves it or is taken for dead. A process taken for dead can commit
nothing any more. A store that is a file has one process, which holds everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from memory.store.database import Reader

#: "own": no other process can hold the session. "taken": nobody held it until now, so the work that an earlier holder
#: left undone there is to be taken up.
Held: TypeAlias = Literal["own", "held", "taken", "elsewhere"]


class OwnShare:
    """The share of the only process of a store. Where others may write the store, the engine overrides every method.

    `lost` is set once the others have taken this process for dead: it has to begin anew.
    """

    id = ""
    #: True if no other process can write the store.
    is_alone = True

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    @property
    def trouble(self) -> str:
        """The reason why this process can't use the store although others may; empty if it can."""
        return ""

    async def begin(self) -> None:
        """Takes part in answering from now on. Raises `StorageError`."""

    def holds(self, session_key: str) -> bool:
        return True

    def held(self) -> Collection[str]:
        """Returns the keys of the sessions that this process holds and others may want."""
        return ()

    async def hold(self, session_key: str, *, spread: bool = False, asks: bool = False) -> Held:
        """Takes the session if nobody holds it; otherwise tells its holder to look at it, or `asks` for it.

        With `spread` the session may go to any of the processes, so that they share the work that one of them receives.
        Raises `StorageError`.
        """
        return "own"

    @asynccontextmanager
    async def holding(self, session_key: Callable[[Reader], str]) -> AsyncIterator[bool]:
        """Holds a session while the block runs. Gives False if another process holds it. Raises `StorageError`."""
        yield True

    async def adopt(self, may: Callable[[str], bool], *, unread: bool) -> list[str]:
        """Takes this process's share of the sessions without a holder in which messages are left to answer or to show.

        With `unread`, also takes those with messages left to read. `may` tells by a session's key whether this process
        can answer it. Returns the keys. Raises `StorageError`.
        """
        return []

    def fresh(self) -> Collection[str]:
        """Returns the keys of the sessions that this process has taken without taking up yet what was left in them."""
        return ()

    def taken_up(self, session_keys: Collection[str]) -> None:
        """Notes that what was left in these sessions is taken up."""

    async def leave(self, session_keys: Collection[str], *, asked: bool = False) -> None:
        """Leaves the sessions among these in which nothing is left to do; if `asked` by another process, all of them.

        Raises `StorageError`.
        """

    def on(self, topic: str, act: Callable[[str], None]) -> None:
        """Calls `act` with the data of each signal under `topic` from now on."""

    async def tell(self, topic: str, data: str, *, session_key: str | None = None) -> None:
        """Sends a signal to the holder of a session, or to all processes. A signal may get lost."""

    @asynccontextmanager
    async def only_here(self, work: str) -> AsyncIterator[None]:
        """Waits until no other process does this work, and keeps the others from it while the block runs."""
        yield
