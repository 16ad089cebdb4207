"""A Telegram with people in it, replicas of the bot on one PostgreSQL server, and all of them killed over and over.

`python -m tests.crash.replicas_world --kills 200 --freezes 40 --server-kills 10` kills replicas, freezes some for longer
than their lease, and kills the server with all its processes, while people send several messages in a row. It prints
one JSON line and exits 1 when a promise is broken (the files of that world are then kept).

Invariants: those of world.py; every life is the whole of `remora serve`. Updates are posted to any of the replicas, and
to another one after a failure, as a balancer does; with `--polling` they fetch them. A replica that ends by itself is
started again, as a supervisor does. One replica is frozen at a time, and the server is never looked at while it is down.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import httpx
import psycopg

from tests.crash.telegram_world import BOT, TelegramWorld
from tests.crash.world import LATENCY_MS, MODEL_MS, THING, Bot, Effect, Point, Rows, Tally, complain, launched, note
from tests.kit import postgres
from tests.kit.patience import SECONDS, until
from tests.kit.postgres import ROLE, Server, superuser
from tests.platforms.telegram.client import Control, running

#: Messages a second, in rows of so many at most.
RATE, _IN_A_ROW = 1.5, 4
#: The server's own settings: what it has committed is on the disk, as in use. To bring each file to the disk anew before
#: it recovers takes longer here than all the rest; the file system does that at once.
_SETTINGS = {"fsync": "on", "full_page_writes": "on", "recovery_init_sync_method": "syncfs", "shared_buffers": "32MB",
             "max_connections": "100"}  # fmt: skip
_SECRET = "s3cret-of-the-webhook-" + "0" * 10
#: Seconds that a replica lives at least after it was killed, that it stays dead, that it stays frozen (its lease is 8 s),
#: and that the server stays down.
_LIVES, _DEAD, _FROZEN, _DOWN = (0.5, 8.0), (0.1, 2.0), (12.0, 15.0), (1.0, 3.0)
#: Seconds in which an update that was posted must be taken before it is posted to another replica.
_PATIENCE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos:
    """How often each thing happens, at intervals of `pause` seconds on average."""

    kills: int
    freezes: int = 0
    server_kills: int = 0
    pause: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicasTally(Tally):
    """The fate of a world of replicas.

    `misordered`: messages in the history, and answers in the chats, that stand before one that was sent earlier.
    `ended`: lives that ended by themselves. `conflicts`: polls that another poll ended. `takeover_*`: seconds from the
    death of a replica, or its freezing, to the next answer in a session of which it held an unanswered message;
    `removed_*`: to the moment from which the others may take what it held. Freezes that end before are not among them.
    """

    freezes: int = 0
    server_kills: int = 0
    misordered: int = 0
    ended: int = 0
    conflicts: int = 0
    takeovers: int = 0
    takeover_p50: float = 0
    takeover_max: float = 0
    removed_p50: float = 0
    removed_max: float = 0

    def broken(self) -> list[str]:
        """The promises that were not kept, in words.

        A life that ended by itself was taken for dead while it lived: what a model answered it meanwhile was kept by
        nobody, so the model is asked again. A server that is killed may lose one answer of a model, too: the commit of
        that waits for no disk.
        """
        lost = min(self.overpaid, self.server_kills)
        counted = replace(self, overpaid=self.overpaid - lost, repaid=self.repaid - lost)
        if self.ended:
            counted = replace(self, overpaid=0, repaid=0)
        said = Tally.broken(counted)  # a class with slots has no super()
        if self.misordered:
            said.append(f"misordered: {self.misordered}")
        if self.conflicts > self.freezes:
            said.append(f"{self.conflicts} polls ended by another one > {self.freezes} freezes")
        return said

    def line(self) -> str:
        first = ("kills", "freezes", "server_kills", "messages", "lost", "doubled", "memory_lost", "memory_doubled",
                 "misordered", "takeover_p50", "takeover_max", "takeovers", "removed_p50", "removed_max", "notices", "orphans", "sends_unanswered",
                 "repaid", "models_unanswered", "failed", "ended", "conflicts", "integrity")  # fmt: skip
        told = asdict(self)
        return json.dumps({name: told[name] for name in first})


@dataclass(slots=True, kw_only=True)
class Replica:
    """A replica of the bot. `busy`: it is being killed, started or frozen."""

    bot: Bot
    port: int
    busy: bool = False


@dataclass(slots=True)
class Waits:
    """Sessions whose holder died or froze at a time, in milliseconds, while a message of theirs was unanswered."""

    since: dict[str, int] = field(default_factory=dict)
    over: list[tuple[str, int]] = field(default_factory=list)

    def begin(self, session: str, at: int) -> None:
        """The holder of a session is gone; a wait that has not ended begins anew when the next holder is gone, too."""
        if session in self.since:
            self.over.append((session, self.since[session]))
        self.since[session] = at

    def seconds(self, shown: dict[str, list[int]]) -> list[float]:
        """How long each wait was, by the times at which something was shown; without those that began anew."""
        every = sorted([*self.over, *self.since.items()], key=lambda one: one[1])
        next_of: dict[str, list[int]] = defaultdict(list)
        for session, at in every:
            next_of[session].append(at)
        waits = []
        for session, at in every:
            after = min((then for then in shown.get(session, ()) if then > at), default=None)
            again = min((then for then in next_of[session] if then > at), default=None)
            if after is not None and (again is None or after < again):
                waits.append((after - at) / 1000)
        return waits


class _Looking(Rows):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connection.execute(sql.encode(), parameters)


class ReplicasWorld(TelegramWorld):
    def __init__(
        self, folder: Path, platform: Control, bots: Sequence[Bot], *, server: Server, polling: bool, seed: int
    ) -> None:
        super().__init__(folder, platform, bots[0], seed=seed)
        self.freezes = self.server_kills = self.ended = 0
        self._replicas = [Replica(bot=bot, port=_free_port()) for bot in bots]
        self._server = server
        self._server_up = asyncio.Lock()
        self._freezing = asyncio.Lock()
        self._polling = polling
        self._waits = Waits()
        self._removals: list[float] = []
        self._following: set[asyncio.Task[None]] = set()
        self._http = httpx.AsyncClient(trust_env=False, timeout=SECONDS)

    def configure(self, channel: str) -> None:
        if not self._polling:
            hook = f"webhook: {{url: 'https://bot.example.org', secret: {_SECRET}}}"
            channel = channel.replace("{token", f"{{{hook}, token")
        for number, replica in enumerate(self._replicas):
            more = f"database_url: '{self._database(number)}'\nhttp: {{port: {replica.port}}}\n"
            self.write_config(config_of(self.folder, number).name, channel, more, log=f"replica{number}.log")

    async def build(self) -> None:
        self._server.database("remora")
        with psycopg.connect(f"{superuser(self._server.address)} dbname=postgres", autocommit=True) as connection:
            for number in range(len(self._replicas)):
                # The server tells them apart by the role with which they sign in.
                connection.execute(f"create role replica{number} login in role {ROLE}".encode())
                connection.execute(f"alter role replica{number} set role to {ROLE}".encode())
        if not self._polling:
            await self.platform.webhook(
                *(f"http://127.0.0.1:{replica.port}" for replica in self._replicas), patience=_PATIENCE
            )
        await super().build()

    async def act(self) -> None:
        """Somebody writes several messages in a row."""
        place = self.chance.choice(self.places)
        for _ in range(self.chance.randint(1, _IN_A_ROW)):
            await self.say(place=place, slow=self.chance.random() < 0.1)
            await asyncio.sleep(self.chance.uniform(0, 0.3))

    # The replicas.

    async def start(self, point: Point | None = None) -> int:
        """Start all replicas that do not live, one after the other, as they would be deployed."""
        for replica in self._replicas:
            if not replica.bot.lives:
                await self._begin(replica)
        return 0

    async def listened(self) -> int:
        return 0

    async def listens(self, count: int) -> None:
        for replica in self._replicas:
            await until(partial(self._ready, replica))

    def end(self) -> None:
        for following in self._following:
            following.cancel()
        for replica in self._replicas:
            replica.bot.signal(signal.SIGKILL)

    def ask_what_it_waits_for(self) -> None:
        """Nothing: the whole program knows no such signal, and would end."""

    async def close(self) -> None:
        await self._http.aclose()

    async def _end(self) -> None:
        for replica in self._replicas:
            await replica.bot.kill()

    async def rest(self) -> None:
        """A life of all replicas in which they do all there is to do."""
        await self.start()
        await self._rested(1)
        await self._end()

    async def storm_of(self, chaos: Chaos, *, messages: int = 0, rate: float = RATE) -> None:
        """People talk while all of it happens, in any order, until there were so many messages."""
        deeds = [self._kill_one] * chaos.kills + [self._freeze_one] * chaos.freezes
        deeds += [self._kill_server] * chaos.server_kills
        self.chance.shuffle(deeds)
        enough = asyncio.Event()
        await self.start()
        await self.listens(1)
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(self.talk(rate * 2 / (1 + _IN_A_ROW), until=enough))
            watching = group.create_task(self._watch())
            async with asyncio.TaskGroup() as doing:
                for deed in deeds:
                    doing.create_task(deed())
                    if self.chance.random() < 0.1:
                        await self.press(most=1)
                    await asyncio.sleep(self.chance.uniform(0, 2 * chaos.pause))
            await until(lambda: len(self.told) >= messages)
            enough.set()
            await talking
            watching.cancel()

    async def _begin(self, replica: Replica) -> None:
        """Start a replica until it listens. A start that fails, as without the server, is repeated."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            await replica.bot.start("serve")
            while replica.bot.lives and time.monotonic() < end:
                if await self._ready(replica):
                    return
                await asyncio.sleep(0.05)
            if not replica.bot.lives:
                self.ended += 1
                note(f"  replica {self._replicas.index(replica)} ended with {replica.bot.ended.result()}")
        raise AssertionError(f"a replica does not listen; see {self.folder}")

    async def _ready(self, replica: Replica) -> bool:
        try:
            answer = await self._http.get(f"http://127.0.0.1:{replica.port}/readyz", timeout=SECONDS)
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            for replica in self._replicas:
                if not replica.busy and not replica.bot.lives:
                    with _busy(replica):
                        self.ended += 1
                        note(f"  replica {self._replicas.index(replica)} ended with {replica.bot.ended.result()}")
                        await self._begin(replica)

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Replica]:
        """Any replica that lives and that nothing else happens to."""
        free = await until(lambda: [one for one in self._replicas if not one.busy and one.bot.lives])
        with _busy(self.chance.choice(free)) as replica:
            yield replica

    async def _kill_one(self) -> None:
        async with self._taken() as replica:
            await self._strike(replica, signal.SIGKILL)
            if await replica.bot.ended == str(-signal.SIGKILL):
                self.kills += 1
            await asyncio.sleep(self.chance.uniform(*_DEAD))
            await self._begin(replica)
            note(
                f"  {self.kills} kills, {self.freezes} freezes, {self.server_kills} of the server;"
                f" {len(self.told)} messages"
            )
            await asyncio.sleep(self.chance.uniform(*_LIVES))

    async def _freeze_one(self) -> None:
        async with self._freezing, self._taken() as replica:
            await self._strike(replica, signal.SIGSTOP)
            self.freezes += 1
            await asyncio.sleep(self.chance.uniform(*_FROZEN))
            replica.bot.signal(signal.SIGCONT)

    async def _kill_server(self) -> None:
        async with self._server_up:
            await asyncio.to_thread(self._server.kill)
            self.server_kills += 1
            await asyncio.sleep(self.chance.uniform(*_DOWN))
            await asyncio.to_thread(self._server.start)
            await self._look()

    async def _strike(self, replica: Replica, number: signal.Signals) -> None:
        """Kills or freezes a replica, and notes what it had under way."""
        async with self._server_up:
            with self._open() as database:
                name = _name_of(database, self._replicas.index(replica))
            at = _now()
            replica.bot.signal(number)
            await self.taken_up()
            with self._open() as database:
                held = dict(
                    database.execute(
                        "select l.session_key, exists (select 1 from inbox i where i.session_key = l.session_key"
                        " and i.state in ('pending', 'claimed')) from lanes l where l.holder = %s",
                        (name,),
                    ).fetchall()
                )
            # One that is not among the others just now may still have anything under way.
            await self._look(None if name is None else held)
        if name is not None:
            following = asyncio.create_task(self._follow(name, at, replica if number == signal.SIGSTOP else None))
            self._following.add(following)
            following.add_done_callback(self._following.discard)
        for session, waits in held.items():
            if waits:
                self._waits.begin(session, at)

    async def _follow(self, name: str, at: int, frozen: Replica | None) -> None:
        """Notes when the others have removed a replica, unless it lives again before."""
        while frozen is None or frozen.busy:
            await asyncio.sleep(0.1)
            async with self._server_up:
                with self._open() as database:
                    if database.execute("select 1 from replicas where id = %s", (name,)).fetchone() is None:
                        self._removals.append((_now() - at) / 1000)
                        return

    # The outcome.

    def _database(self, number: int | None = None) -> str:
        address = f"{self._server.address} dbname=remora"
        return address if number is None else address.replace(f"user={ROLE}", f"user=replica{number}")

    @contextmanager
    def _open(self) -> Iterator[Rows]:
        with psycopg.connect(f"{self._database()} options='-c search_path=remora,public'") as connection:
            yield _Looking(connection)

    _autopsy = _open

    def _integrity(self, database: Rows) -> str:
        """ "ok": the server checks its pages, of which all are read here, by their checksums."""
        for (table,) in database.execute(
            "select relname from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace"
        ).fetchall():
            database.execute(f'select count(t.*) from "{table}" t').fetchone()
        return "ok"

    async def _count(self) -> Tally:
        tally = asdict(await super()._count())
        state = await self.platform.state()
        with self._open() as database:
            self._keep(database, state)
            history = _history(database)
            shown = defaultdict[str, list[int]](list)
            for session, at in database.execute(
                "select session_key, sent_at from outbox where state = 'sent' and kind <> 'placeholder'"
            ).fetchall():
                shown[session].append(at)
        misordered: dict[str, list[str]] = {"in history": [], "in chats": []}
        for things in history.values():
            misordered["in history"] += _behind(things)
        for things in self._answers(state).values():
            misordered["in chats"] += _behind(things)
        complain({f"misordered {where}": those for where, those in misordered.items()})
        waits = sorted(self._waits.seconds(shown))
        return ReplicasTally(
            **tally,
            freezes=self.freezes,
            server_kills=self.server_kills,
            misordered=sum(map(len, misordered.values())),
            ended=self.ended,
            conflicts=state["polls"]["conflicts"],
            takeovers=len(waits),
            takeover_p50=round(statistics.median(waits), 2) if waits else 0,
            takeover_max=round(max(waits, default=0), 2),
            removed_p50=round(statistics.median(self._removals), 2) if self._removals else 0,
            removed_max=round(max(self._removals, default=0), 2),
        )

    def _keep(self, database: Rows, state: dict[str, Any]) -> None:
        """Writes what stands in the chats and the rows of messages into the folder, which outlives the server."""
        (self.folder / "state.json").write_text(json.dumps(state))
        for table in ("inbox", "turns", "messages", "outbox"):
            rows = database.execute(f"select to_jsonb(t) - 'vector' from {table} t order by id").fetchall()
            (self.folder / f"{table}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for (row,) in rows))

    def _answers(self, state: dict[str, Any]) -> dict[tuple[int, int | None], list[str]]:
        """The things that answers name, by chat and topic, in the order in which they stand there.

        What somebody asked for by a button stands where they asked for it.
        """
        chats: dict[tuple[int, int | None], list[str]] = defaultdict(list)
        for chat, thread, thing in self.read(state).shown:
            if thing not in self._asked_again:
                chats[chat, thread].append(thing)
        return chats


def _name_of(database: Rows, number: int) -> str | None:
    """The name under which a replica is known to the others, by the lock that shows that its connection is there."""
    found = database.execute(
        "select r.id from replicas r join pg_locks k on k.locktype = 'advisory' and k.objsubid = 2 and k.objid::bigint"
        " = ('x' || encode(substr(sha256(convert_to(r.id, 'UTF8')), 1, 4), 'hex'))::bit(32)::bigint"
        " join pg_stat_activity a on a.pid = k.pid where a.usename = %s",
        (f"replica{number}",),
    ).fetchone()
    return None if found is None else str(found[0])


def _history(database: Rows) -> dict[tuple[int, str], list[str]]:
    """The things that each session's history names, of people and of the bot, in its order."""
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    for session, role, text in database.execute(
        "select session_id, role, text from messages where role in ('user', 'assistant') order by id"
    ).fetchall():
        found[session, role] += THING.findall(text)
    return found


def _behind(things: Sequence[str]) -> list[str]:
    """Those things that stand behind one that was told later; their numbers grow as they are told."""
    return [thing for before, thing in pairwise(things) if thing < before]


@contextmanager
def _busy(replica: Replica) -> Iterator[Replica]:
    replica.busy = True
    try:
        yield replica
    finally:
        replica.busy = False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _now() -> int:
    return time.time_ns() // 1_000_000


def config_of(folder: Path, number: int) -> Path:
    return folder / f"replica{number}.yaml"


async def world(
    folder: Path,
    *,
    effect: Effect,
    chaos: Chaos,
    replicas: int = 3,
    polling: bool = False,
    messages: int = 0,
    rate: float = RATE,
    model_ms: float = MODEL_MS,
    seed: int = 1,
) -> ReplicasTally:
    timing = ("--latency-ms", LATENCY_MS, "--model-ms", model_ms, "--effect", effect, "--seed", seed)
    async with AsyncExitStack() as stack:
        server = stack.enter_context(postgres.running(_SETTINGS))
        platform = await stack.enter_async_context(running(*map(str, timing), token=BOT))
        bots = [await stack.enter_async_context(launched(config_of(folder, number))) for number in range(replicas)]
        made = ReplicasWorld(folder, platform, bots, server=server, polling=polling, seed=seed)
        stack.push_async_callback(made.close)
        stack.callback(made.end)
        await made.build()
        await made.storm_of(chaos, messages=messages, rate=rate)
        tally = await made.settle()
        assert isinstance(tally, ReplicasTally)
        return tally


def main() -> int:
    """The command line: one JSON line, 1 when a promise is broken (the files are then kept)."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.replicas_world", description=__doc__)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--kills", type=int, default=200, help="of replicas")
    parser.add_argument("--freezes", type=int, default=40, help="of replicas, for longer than their lease")
    parser.add_argument("--server-kills", type=int, default=10)
    parser.add_argument("--pause", type=float, default=4.0, help="seconds from one of these to the next, on average")
    parser.add_argument("--rate", type=float, default=RATE, help="messages a second")
    parser.add_argument("--polling", action="store_true", help="fetch updates, in place of webhooks")
    parser.add_argument("--effect", choices=get_args(Effect), default="mixed", help="when a send takes effect")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chaos = Chaos(kills=asked.kills, freezes=asked.freezes, server_kills=asked.server_kills, pause=asked.pause)
    folder = Path(tempfile.mkdtemp(prefix="remora-crash-replicas-"))
    note(f"files in {folder}")
    tally = asyncio.run(
        world(
            folder,
            effect=asked.effect,
            chaos=chaos,
            replicas=asked.replicas,
            polling=asked.polling,
            rate=asked.rate,
            seed=asked.seed,
        )
    )
    sys.stdout.write(f"{tally.line()}\n")
    for one in tally.broken():
        note(f"{one}; files kept in {folder}")
    if not tally.broken():
        shutil.rmtree(folder)
    return 1 if tally.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
