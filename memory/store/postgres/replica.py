"""A process among others on a store in PostgreSQL: its signs of life, its sessions and duties, and the signals.

A process gives a sign of life every `BEAT` seconds and looks at those of the others. One that gives none for `LEASE`
seconds, or whose connection has been gone for `GONE`, is removed together with its holdings. Each process measures the
time on its own clock, so the clocks of machines need not agree.

Invariants: a process that was removed commits nothing any more, because each transaction locks the process's row at its
end and fails without it. A pause in which this process could not look itself hardly counts. Signals only make things
quicker: their content is found by looking, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final

import psycopg
import structlog
from psycopg import sql

from memory.errors import StorageError, TakenForDead
from memory.loops import reason_of
from memory.store.database import Database, Keys, Reader, Transaction, of_lane
from memory.store.postgres import lanes
from memory.store.postgres.connection import reached, storage_error
from memory.store.server import Deployment
from memory.store.share import Held, OwnShare

log = structlog.get_logger(__name__)

#: Seconds between two signs of life.
BEAT: Final = 1.0
#: Seconds without a sign of life after which a process is taken for dead.
LEASE: Final = 8.0
#: Seconds after which a process without a connection is taken for dead: a live one reconnects sooner.
GONE: Final = 3.0
#: Seconds without a sign of life of this process after which its database counts as unreachable.
_CUT_OFF: Final = 4.0
#: The most seconds that count between two looks: in a longer pause this process could not look itself. A connection
#: that comes back after the server was away needs a moment.
_MOST_SILENT: Final = 2 * BEAT
_MOST_GONE: Final = BEAT
#: The class of the locks by which a process shows that its connection is there.
_ALIVE: Final = 0x52454D
#: The most sessions that one transaction names: PostgreSQL has room for 64 locks of each connection.
_MOST_NAMED: Final = 32
#: The most bytes of a signal; PostgreSQL takes 8,000.
_MOST: Final = 7_500
#: The most bytes of the name under which signals are sent.
_NAME: Final = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The last sign of life of another process, and the seconds without another and without its connection."""

    beat: int
    silent: float = 0.0
    gone: float = 0.0

    @property
    def is_dead(self) -> bool:
        return self.silent >= LEASE or self.gone >= GONE


class Watch:
    """The signs of life that one process has seen of the others."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._looked = float("-inf")

    def dead(self, beats: Mapping[str, int], connected: Collection[str], now: float) -> list[str]:
        """Returns the other processes that are dead, by the signs of life seen until now.

        `beats` counts the signs of life of each, `connected` are those with a connection, and `now` is in seconds on a
        clock that is never set.
        """
        passed = now - self._looked
        self._looked = now
        before, self._seen = self._seen, {}
        for replica, beat in beats.items():
            seen = before.get(replica)
            silent = 0.0 if seen is None or seen.beat != beat else seen.silent + min(passed, _MOST_SILENT)
            gone = 0.0 if seen is None or replica in connected else seen.gone + min(passed, _MOST_GONE)
            self._seen[replica] = _Seen(beat=beat, silent=silent, gone=gone)
        return [replica for replica, seen in self._seen.items() if seen.is_dead]


class Replica(OwnShare):
    """This process among those on one store. `send` sends a signal, `url` names the database, `store` the schema."""

    is_alone = False

    def __init__(
        self, database: Database, *, url: str, store: str, send: Callable[[str, str], Awaitable[object]]
    ) -> None:
        super().__init__()
        self.id = secrets.token_hex(6)
        #: False before this process has joined the others and once it parts: then it has no row to look for.
        self.is_there = False
        self._database = database
        self._url = url
        self._store = store
        self._send = send
        self._topic = f"remora_{store}"[:_NAME]
        self._held: set[str] = set()
        self._fresh: set[str] = set()
        self._takes_part = False
        self._acts: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._watch = Watch()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._beaten = monotonic()

    @property
    def _silent_seconds(self) -> float:
        return monotonic() - self._beaten if self.is_there else 0.0

    @property
    def trouble(self) -> str:
        if self.lost.is_set():
            return (
                "the other processes took this one for dead and go on with its conversations. It begins anew by itself."
            )
        if (silent := self._silent_seconds) > _CUT_OFF:
            return (
                f"the PostgreSQL server has not been reached for {silent:.0f} s. Look at the server, the network and "
                "database_url; it goes on without a restart."
            )
        return ""

    def within(self, deployment: Deployment) -> Deployment:
        return replace(
            deployment, own=self.id, silent_seconds=round(self._silent_seconds, 1), is_lost=self.lost.is_set()
        )

    async def join(self) -> None:
        """Enters this process among the others and begins to give signs of life. Raises `StorageError`."""
        # The others never see the process without its connection, however long that takes.
        try:
            connection = await self._connect()
        except psycopg.Error as exc:
            raise storage_error(exc) from exc
        try:
            await self._database.write(lambda tx: lanes.join(tx, self.id))
        except BaseException:
            await connection.close()
            raise
        self._beaten = monotonic()
        self.is_there = True
        self._task = asyncio.create_task(self._live(connection))

    async def close(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self.is_there = False
        with suppress(StorageError):
            await self._database.write(lambda tx: lanes.part(tx, self.id))
        await self.tell("gone", self.id)

    def fail(self) -> TakenForDead:
        """Notes that the others have removed this process, and returns the error for callers that want to write."""
        if not self.lost.is_set():
            log.critical("replica.taken_for_dead", replica=self.id, now="it begins anew; the others go on meanwhile")
        self.lost.set()
        return TakenForDead(
            f"This process gave the others no sign of life for {LEASE:g} s, or had no connection for {GONE:g} s. So "
            "they go on with its conversations. Nothing of this was saved. It begins anew by itself."
        )

    # Sessions and duties ------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        await self._database.write(lambda tx: tx.run("update replicas set answers = 1 where id = ?", (self.id,)))
        self._takes_part = True

    def holds(self, session_key: str) -> bool:
        return session_key in self._held

    def held(self) -> Collection[str]:
        return tuple(self._held)

    async def hold(self, session_key: str, *, spread: bool = False, asks: bool = False) -> Held:
        if session_key in self._held:
            return "held"

        def act(tx: Transaction) -> str:
            falls_to = lanes.chosen(tx, [session_key]).get(session_key, self.id) if spread else self.id
            return lanes.hold(tx, session_key, falls_to)

        holder = await self._database.write(act, keys=_named([session_key]))
        if holder != self.id:
            await self._signal("yield" if asks else "work", session_key, to=holder)
            return "elsewhere"
        return self._got(session_key)

    @asynccontextmanager
    async def holding(self, session_key: Callable[[Reader], str]) -> AsyncIterator[bool]:
        key = await self._database.read(session_key)
        held = await self.hold(key)
        try:
            yield held != "elsewhere"
        finally:
            if held == "taken":
                await self.leave([key])

    async def adopt(self, may: Callable[[str], bool], *, unread: bool) -> list[str]:
        # A session that the store says this process holds, and it does not know of, was taken by a write whose end got
        # lost.
        left = await self._database.read(lambda reader: lanes.left_alone(reader, self.id, unread=unread))
        left = {key: is_held for key, is_held in left.items() if key not in self._held and may(key)}
        if not left:
            return []

        def act(tx: Transaction) -> list[str]:
            falls_to = lanes.chosen(tx, list(left)) if self._takes_part else {}
            mine = [key for key, is_held in left.items() if is_held or falls_to.get(key, self.id) == self.id]
            return [key for key in mine if lanes.hold(tx, key, self.id) == self.id]

        return [key for key in await self._database.write(act, keys=_named(left)) if self._got(key) == "taken"]

    def fresh(self) -> Collection[str]:
        return tuple(self._fresh)

    def taken_up(self, session_keys: Collection[str]) -> None:
        self._fresh.difference_update(session_keys)

    async def leave(self, session_keys: Collection[str], *, asked: bool = False) -> None:
        ours = self._held.intersection(session_keys)
        # A call that wants to hold one of them meanwhile asks the store, after this.
        self._held -= ours
        self._fresh -= ours
        if ours:
            left = await self._database.write(
                lambda tx: lanes.leave(tx, sorted(ours), self.id, asked=asked), keys=_named(ours)
            )
            self._held |= ours.difference(left)

    def _got(self, session_key: str) -> Held:
        if session_key in self._held:
            return "held"
        self._held.add(session_key)
        self._fresh.add(session_key)
        return "taken"

    @asynccontextmanager
    async def only_here(self, work: str) -> AsyncIterator[None]:
        while not await self._took(work):
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 2 * BEAT)
        log.info("replica.duty", name=work, replica=self.id)
        try:
            yield
        finally:
            with suppress(StorageError):
                await self._database.write(
                    lambda tx: tx.run("delete from duties where name = ? and holder = ?", (work, self.id))
                )

    async def _took(self, name: str) -> bool:
        if self.lost.is_set():
            return False
        try:
            # A look costs the others nothing, a write holds them up.
            holder = await self._database.read(lambda reader: lanes.has_duty(reader, name))
            if holder is None:
                return await self._database.write(lambda tx: lanes.take_duty(tx, name, self.id))
        except StorageError as exc:
            log.warning("replica.no_duty", name=name, error=str(exc))
            return False
        return holder == self.id

    # Signals ------------------------------------------------------------------------------------------------------

    def on(self, topic: str, act: Callable[[str], None]) -> None:
        self._acts[topic].append(act)

    async def tell(self, topic: str, data: str, *, session_key: str | None = None) -> None:
        to = None
        if session_key is not None:
            with suppress(StorageError):
                to = await self._database.read(lambda reader: lanes.holder(reader, session_key))
            if to is None or to == self.id:
                return
        await self._signal(topic, data, to=to)

    async def _signal(self, topic: str, data: str, *, to: str | None = None) -> None:
        said = json.dumps({"by": self.id, "to": to, "topic": topic, "data": data})
        if len(said) > _MOST:
            log.warning("replica.signal_too_long", topic=topic, bytes=len(said), instead="it is found by looking")
            return
        try:
            await self._send(self._topic, said)
        except StorageError as exc:
            log.info("replica.not_told", topic=topic, error=str(exc), instead="it is found by looking")

    def _heard(self, said: str) -> None:
        """Acts on a signal. One that can't be acted on is dropped: looking finds what it told of."""
        try:
            signal = json.loads(said)
            if signal["by"] == self.id or signal["to"] not in (None, self.id):
                return
            if signal["topic"] == "gone":
                self._changed.set()
            for act in self._acts[signal["topic"]]:
                act(signal["data"])
        # A boundary: anybody with the database's password can send a signal, and without signs of life this process
        # would be taken for dead.
        except Exception as exc:  # noqa: BLE001 - logged with its place, without its words
            log.warning("replica.signal_dropped", error=reason_of(exc), instead="it is found by looking")

    # Signs of life --------------------------------------------------------------------------------------------------

    async def _live(self, first: psycopg.AsyncConnection[tuple[Any, ...]]) -> None:
        """Gives signs of life and looks at those of the others, on a connection that is made again when it is lost."""
        connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = first
        while not self.lost.is_set():
            try:
                async with connection or await self._connect() as made:
                    await self._beat(made)
            # Whatever ends one connection, signs of life go on with the next.
            except Exception as exc:  # noqa: BLE001 - logged with its place
                told = str(exc).strip() if isinstance(exc, psycopg.Error | TimeoutError) else reason_of(exc)
                log.warning("replica.disconnected", error=told, again_in_seconds=BEAT / 4)
                await asyncio.sleep(BEAT / 4)
            connection = None

    async def _connect(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        connection = await psycopg.AsyncConnection.connect(
            reached(self._url), autocommit=True, application_name="remora signals"
        )
        try:
            await connection.execute(sql.SQL("set search_path = {}, public").format(sql.Identifier(self._store)))
            # A sign of life may get lost with the server. No lock is waited for longer than a beat.
            await connection.execute(
                f"set synchronous_commit = off; set lock_timeout = '{int(BEAT * 1_000)}ms'".encode()
            )
            await connection.execute(b"select pg_advisory_lock_shared(%s, %s)", (_ALIVE, _number(self.id)))
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._topic)))
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _beat(self, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> None:
        while True:
            # Of a server whose machine vanished nothing is heard, not even that the connection is lost.
            async with asyncio.timeout(LEASE):
                done = await connection.execute(b"update replicas set beat = beat + 1 where id = %s", (self.id,))
                if not done.rowcount:
                    self.fail()
                    return
                self._beaten = monotonic()
                await self._look(connection)
            async for signal in connection.notifies(timeout=BEAT):
                self._heard(signal.payload)

    async def _look(self, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> None:
        rows = await (await connection.execute(b"select id, beat from replicas where id <> %s", (self.id,))).fetchall()
        locks = await connection.execute(
            b"select objid::bigint from pg_locks where locktype = 'advisory' and classid = %s and granted"
            b" and database = (select oid from pg_database where datname = current_database())",
            (_ALIVE,),
        )
        numbers = {int(row[0]) for row in await locks.fetchall()}
        connected = {replica for replica, _ in rows if _number(replica) & 0xFFFFFFFF in numbers}
        for replica in self._watch.dead(dict(rows), connected, monotonic()):
            try:
                await connection.execute(b"delete from replicas where id = %s", (replica,))
            except psycopg.errors.LockNotAvailable:
                continue  # its last transaction is still open; the server ends it
            log.warning("replica.removed", replica=replica, because="it gave no sign of life")
            self._changed.set()
            await self._signal("gone", replica)
            for act in self._acts["gone"]:
                act(replica)


def _named(session_keys: Collection[str]) -> Keys | None:
    """Returns the names of sessions that change hands; None for too many, which locks out every other transaction.

    The foreign key of their rows checks that the process exists: removing a process takes no locks by name.
    """
    return [of_lane(key) for key in session_keys] if len(session_keys) <= _MOST_NAMED else None


def _number(replica: str) -> int:
    """Returns the number of a process's lock, a signed number of 32 bits."""
    return int.from_bytes(hashlib.sha256(replica.encode()).digest()[:4], signed=True)
