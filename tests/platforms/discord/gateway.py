"""The websocket: who listens, what they are told, and what they missed.

Invariants: every event of a session has the next number and is kept, so that RESUME tells exactly what was missed and in
order; a session lives `resume_seconds` after its connection, unless the client ended it (1000, 1001) or fate did; one
connection's payloads go out in the order in which they came to be, through one compressor.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.platforms.discord.model import JSON
from tests.platforms.discord.world import MESSAGE_CONTENT, PRIVILEGED
from tests.platforms.pulse import Pulse

_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _MEMBERS, _INVALID, _HELLO, _ACK = 0, 1, 2, 6, 8, 9, 10, 11
_HEARTBEAT_MS = 41_250
#: Events kept for RESUME; of older ones the session is over.
_KEPT = 5_000
#: The client says goodbye for good.
_ENDED = (1000, 1001)
#: How long a listener has to say who it is, in seconds.
_PATIENCE = 30


@dataclass(slots=True, kw_only=True)
class Terms:
    """How long a session outlives its connection, and whether the gateway lets in at all."""

    resume_seconds: float = 120
    accepting: bool = True


class Connection:
    """One open websocket; what is put goes out in order."""

    def __init__(self, ws: web.WebSocketResponse, request: web.Request, *, compressed: bool) -> None:
        self._ws = ws
        self._request = request
        self._out: asyncio.Queue[JSON | int] = asyncio.Queue()
        self._compress = zlib.compressobj() if compressed else None
        self.unsent = 0

    def put(self, payload: JSON) -> None:
        self.unsent += 1
        self._out.put_nowait(payload)

    def close(self, code: int) -> None:
        """Say goodbye, after all that was put."""
        self._out.put_nowait(code)

    def abort(self) -> None:
        """The connection breaks; nothing more is said."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def write(self) -> None:
        """Send what is put, until it is closed or broken."""
        try:
            while True:
                payload = await self._out.get()
                if isinstance(payload, int):
                    await self._ws.close(code=payload)
                    return
                text = json.dumps(payload, ensure_ascii=False)
                if self._compress is None:
                    await self._ws.send_str(text)
                else:
                    data = self._compress.compress(text.encode()) + self._compress.flush(zlib.Z_SYNC_FLUSH)
                    await self._ws.send_bytes(data)
                self.unsent -= 1
        except ConnectionError:
            return


@dataclass(slots=True, kw_only=True)
class Session:
    """The state of one listener. `lost_at` is when its connection ended, None while there is one."""

    id: str
    intents: int
    sequence: int = 0
    events: deque[JSON] = field(default_factory=lambda: deque(maxlen=_KEPT))
    connection: Connection | None = None
    lost_at: float | None = None


class Gateway:
    """One bot's sessions. `now` is in seconds UTC."""

    def __init__(self, terms: Terms, *, now: Callable[[], float], pulse: Pulse) -> None:
        self.terms = terms
        self.sessions: dict[str, Session] = {}
        self.identifies = 0
        self.resumes = 0
        self.invalid = 0
        self._now = now
        self._pulse = pulse

    @property
    def connected(self) -> bool:
        return any(session.connection is not None for session in self.sessions.values())

    @property
    def written(self) -> bool:
        """Whether all that was told to those who are connected is on its way."""
        open_ones = [session.connection for session in self.sessions.values() if session.connection is not None]
        return all(one.unsent == 0 for one in open_ones)

    def tell(self, event: str, data: JSON, intents: int, bare: JSON | None = None) -> None:
        """Tells an event to every session that asked for such; `bare` to those without the message content intent."""
        for session in list(self.sessions.values()):
            if self._over(session):
                del self.sessions[session.id]
            elif not intents or session.intents & intents:
                without = bare is not None and not session.intents & MESSAGE_CONTENT
                self._put(session, event, bare if without and bare is not None else data)
        self._pulse.beat()

    def drop(self, *, resumable: bool, code: int | None) -> int:
        """Ends every connection, broken or with a code; returns how many. Not resumable: sessions are over as well."""
        dropped = 0
        for session in list(self.sessions.values()):
            if not resumable:
                del self.sessions[session.id]
            if session.connection is None:
                continue
            dropped += 1
            connection = session.connection
            self._lose(session)
            if code is None:
                connection.abort()
            else:
                connection.close(code)
        return dropped

    def identify(
        self, connection: Connection, asked: JSON, ready: Callable[[], JSON], guilds: Callable[[], Iterable[JSON]]
    ) -> Session:
        """A new session, told what there is."""
        session = Session(id=secrets.token_hex(16), intents=int(asked.get("intents", 0)), connection=connection)
        self.sessions[session.id] = session
        self.identifies += 1
        self._put(session, "READY", {**ready(), "session_id": session.id, "shard": asked.get("shard") or [0, 1]})
        for guild in guilds():
            if session.intents & 1:
                self._put(session, "GUILD_CREATE", guild)
        self._pulse.beat()
        return session

    def resume(self, connection: Connection, asked: JSON) -> Session | None:
        """An earlier session goes on from what its listener heard last; None when it can't."""
        session = self.sessions.get(str(asked.get("session_id")))
        heard = int(asked.get("seq") or 0)
        if session is None or self._over(session) or (session.events and heard < session.events[0]["s"] - 1):
            self.invalid += 1
            connection.put({"op": _INVALID, "d": False, "s": None, "t": None})
            return None
        if session.connection is not None:
            session.connection.close(4000)
        session.connection, session.lost_at = connection, None
        for event in session.events:
            if event["s"] > heard:
                connection.put(event)
        self.resumes += 1
        self._put(session, "RESUMED", {})
        self._pulse.beat()
        return session

    def tell_members(self, session: Session, asked: JSON, guilds: Iterable[JSON]) -> None:
        """The members of a guild that a listener asks for: those that GUILD_CREATE told already."""
        for guild in guilds:
            if guild["id"] == str(asked["guild_id"]):
                chunk = {"guild_id": guild["id"], "members": guild["members"], "chunk_index": 0, "chunk_count": 1}
                nonce = {"nonce": asked["nonce"]} if asked.get("nonce") else {}
                self._put(session, "GUILD_MEMBERS_CHUNK", {**chunk, "not_found": [], **nonce})

    def lost(self, session: Session, connection: Connection, code: int | None) -> None:
        """A listener's connection ended; with `code` the listener ended it."""
        if session.connection is connection:
            self._lose(session)
        if code in _ENDED:
            self.sessions.pop(session.id, None)
        self._pulse.beat()

    def _lose(self, session: Session) -> None:
        session.connection, session.lost_at = None, self._now()

    def _over(self, session: Session) -> bool:
        return session.lost_at is not None and self._now() - session.lost_at > self.terms.resume_seconds

    def _put(self, session: Session, event: str, data: JSON) -> None:
        session.sequence += 1
        # A later change must not alter what was told.
        payload = {"op": _DISPATCH, "t": event, "s": session.sequence, "d": json.loads(json.dumps(data))}
        session.events.append(payload)
        if session.connection is not None:
            session.connection.put(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """The bot that a token lets in, and what such a listener is told at first."""

    gateway: Gateway
    content: bool
    ready: Callable[[], JSON]
    guilds: Callable[[], Iterator[JSON]]


async def listen(request: web.Request, terms: Terms, bots: Callable[[str], Bot | None]) -> web.StreamResponse:
    """One connection from its greeting to its end. `bots` tells whom a token lets in."""
    if not terms.accepting:
        return web.Response(status=503)
    compress = request.query.get("compress")
    if compress not in (None, "zlib-stream"):
        return web.Response(status=400, text=f"this gateway does not speak {compress}")
    ws = web.WebSocketResponse(compress=False, max_msg_size=16 * 1024)
    await ws.prepare(request)
    connection = Connection(ws, request, compressed=compress is not None)
    writing = asyncio.create_task(connection.write())
    connection.put({"op": _HELLO, "d": {"heartbeat_interval": _HEARTBEAT_MS}, "s": None, "t": None})
    bot: Bot | None = None
    session: Session | None = None
    farewell: int | None = None
    try:
        while True:
            message = await ws.receive(timeout=_PATIENCE if session is None else None)
            if message.type is not WSMsgType.TEXT:
                farewell = message.data if message.type is WSMsgType.CLOSE else None
                break
            asked: JSON = json.loads(message.data)
            if asked["op"] == _HEARTBEAT:
                connection.put({"op": _ACK, "d": None, "s": None, "t": None})
            elif asked["op"] in (_IDENTIFY, _RESUME):
                bot = bots(asked["d"]["token"])
                refusal = _refusal(bot, asked)
                if refusal is not None or bot is None:
                    connection.close(refusal or 4004)
                    continue
                if asked["op"] == _IDENTIFY:
                    session = bot.gateway.identify(connection, asked["d"], bot.ready, bot.guilds)
                else:
                    session = bot.gateway.resume(connection, asked["d"])
            elif asked["op"] == _MEMBERS and session is not None and bot is not None:
                bot.gateway.tell_members(session, asked["d"], bot.guilds())
    except (TimeoutError, ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writing.cancel()
        if session is not None and bot is not None:
            bot.gateway.lost(session, connection, farewell)
    return ws


def _refusal(bot: Bot | None, asked: JSON) -> int | None:
    """The code with which a listener is sent away."""
    if bot is None:
        return 4004
    intents = int(asked["d"].get("intents", 0)) if asked["op"] == _IDENTIFY else 0
    switched_on = MESSAGE_CONTENT if bot.content else 0
    return 4014 if intents & PRIVILEGED & ~switched_on else None
