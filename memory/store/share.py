"""What falls to this process of a store's work: its sessions, and the work that one process does at a time.

This is the only place where the rest of the program asks who else answers. A session belongs to one process at a time,
which answers it and shows its messages. Work such as that of the night, or a bot's polling, is done by one process at a
time.

Invariants: a process keeps what it holds until it leaves it or is taken for dead. A process taken for dead can commit
nothing any more. A store that is a file has one process, which holds everything. What a `Deployment` tells is only
settings and figures, no content of a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from memory.store.database import Reader

#: "taken": nobody held the session until now, so the work that an earlier holder left undone there is to be taken up.
Held: TypeAlias = Literal["held", "taken", "elsewhere"]


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
        """Returns whether this process answers the session."""
        return True

    def held(self) -> Collection[str]:
        """Returns the keys of the sessions that this process holds and others may want."""
        return ()

    async def hold(self, session_key: str, *, spread: bool = False, asks: bool = False) -> Held:
        """Takes the session if nobody holds it; otherwise tells its holder to look at it, or `asks` for it.

        With `spread` the session may go to any of the processes, so that they share the work that one of them receives.
        Raises `StorageError`.
        """
        return "held"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Standby:
    """A server that follows this one.

    `lag_bytes` of the log, and the last `lag_seconds`, have not been applied there. Both are None if the role may not
    see them, and the seconds also while there is nothing to apply.
    """

    name: str
    state: str | None
    lag_bytes: int | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """The state of a server.

    `vectors` is the version of pgvector. `most_connections` is the number that the bot's role may have open.
    """

    vectors: str
    fsync: bool
    synchronous_commit: bool
    most_connections: int
    standbys: tuple[Standby, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The engine of a store, and the processes on it as the process `own` sees them.

    `own` is empty for a caller that is none of them, and if a store has one process only: then there are no `peers`.
    `silent_seconds` is the time since this process last gave the others a sign of life; `is_lost` is true once they
    have taken it for dead.
    """

    engine: str
    server: ServerState | None = None
    own: str = ""
    peers: tuple[Peer, ...] = ()
    silent_seconds: float = 0.0
    is_lost: bool = False

    @property
    def answering(self) -> tuple[Peer, ...]:
        """The processes that answer and are known to others."""
        return tuple(peer for peer in self.peers if peer.answers)

    @property
    def here(self) -> Peer | None:
        """This process as the others know it; None if no others can be there."""
        return next((peer for peer in self.peers if peer.id == self.own), None)
