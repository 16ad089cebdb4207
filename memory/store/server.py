"""A database server with its standbys, and the processes that use a store on it.

Invariant: only settings and figures, no content of a store.
"""

from __future__ import annotations

from dataclasses import dataclass


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
