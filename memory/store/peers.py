"""The processes that write one store at the same time, among which its sessions and duties are shared out.

A session belongs to one process at a time, which answers it and shows its messages. A duty, such as the night's work or
a bot's polling, is done by one process at a time.

Invariants: a process keeps its sessions and duties until it leaves them or is taken for dead. A process taken for dead
can commit nothing any more. A store that is a file has one process, which holds everything (`Alone`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

#: "taken": nobody held the session until now, so the work that an earlier holder left undone there is to be taken up.
Held: TypeAlias = Literal["held", "taken", "elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A process of a store. `beat` counts its signs of life, `lanes` the sessions that it holds.

    One that `answers` takes part in answering; others only write, such as an import.
    """

    id: str
    beat: int
    answers: bool
    lanes: int
    duties: tuple[str, ...] = ()


class Peers(Protocol):
    """The processes on one store, as one of them sees them.

    `lost` is set once the others have taken this process for dead: it has to begin anew.
    """

    id: str
    lost: asyncio.Event

    @property
    def is_alone(self) -> bool:
        """True if no other process can write the store."""
        ...

    @property
    def silent_seconds(self) -> float:
        """The seconds since this process last gave the others a sign of life; 0 if it is alone."""
        ...

    async def begin(self) -> None:
        """Takes part in answering from now on. Raises `StorageError`."""
        ...

    def holds(self, session_key: str) -> bool:
        """Returns whether this process answers the session."""
        ...

    def held(self) -> Collection[str]:
        """Returns the keys of the sessions that this process holds and others may want."""
        ...

    async def hold(self, session_key: str, *, spread: bool = False) -> Held:
        """Takes the session if nobody holds it; otherwise tells its holder to look at it.

        With `spread` the session may go to any of the processes, so that they share the work that one of them receives.
        Raises `StorageError`.
        """
        ...

    async def adopt(self, may: Callable[[str], bool], *, unread: bool) -> list[str]:
        """Takes this process's share of the sessions without a holder in which messages are left to answer or to show.

        With `unread`, also takes those with messages left to read. `may` tells by a session's key whether this process
        can answer it. Returns the keys. Raises `StorageError`.
        """
        ...

    def fresh(self) -> Collection[str]:
        """Returns the keys of the sessions that this process has taken without taking up yet what was left in them."""
        ...

    def taken_up(self, session_keys: Collection[str]) -> None:
        """Notes that what was left in these sessions is taken up."""
        ...

    async def leave(self, session_keys: Collection[str], *, asked: bool = False) -> None:
        """Leaves the sessions among these in which nothing is left to do; if `asked` by another process, all of them.

        Raises `StorageError`.
        """
        ...

    def on(self, topic: str, act: Callable[[str], None]) -> None:
        """Calls `act` with the data of each signal under `topic` from now on."""
        ...

    async def tell(self, topic: str, data: str, *, session_key: str | None = None) -> None:
        """Sends a signal to the holder of a session, or to all processes. A signal may get lost."""
        ...

    def duty(self, name: str) -> AbstractAsyncContextManager[None]:
        """Waits until no other process has the duty, and holds it while the block runs."""
        ...


class Alone(Peers):
    """The only process of a store."""

    id = ""
    is_alone = True
    silent_seconds = 0.0

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    async def begin(self) -> None:
        return

    def holds(self, session_key: str) -> bool:
        return True

    def held(self) -> Collection[str]:
        return ()

    async def hold(self, session_key: str, *, spread: bool = False) -> Held:
        return "held"

    async def adopt(self, may: Callable[[str], bool], *, unread: bool) -> list[str]:
        return []

    def fresh(self) -> Collection[str]:
        return ()

    def taken_up(self, session_keys: Collection[str]) -> None:
        return

    async def leave(self, session_keys: Collection[str], *, asked: bool = False) -> None:
        return

    def on(self, topic: str, act: Callable[[str], None]) -> None:
        return

    async def tell(self, topic: str, data: str, *, session_key: str | None = None) -> None:
        return

    @asynccontextmanager
    async def duty(self, name: str) -> AsyncIterator[None]:
        yield
