"""The connection with Discord's gateway: one run, its sessions, and who handles which of its frames.

Invariants: events are handed over in the order of their channel (`intake.py`). A connection that can't be restored soon
ends the run. discord.py provides the connection and the state of servers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import discord
import structlog
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from channels.base import ChannelRefused, ChannelUnavailable, Place
from channels.discord.intake import ChannelLanes
from channels.discord.interactions import BotSession, Interactions
from channels.discord.messages import Messages
from channels.discord.missed import Missed, last
from channels.discord.payloads import (
    UNREADABLE,
    Json,
    is_from_person,
    sieved,
)
from channels.discord.places import Places, readable
from channels.discord.presence import Presence
from channels.discord.rest import PORTAL, DiscordRateLimited, DiscordRefused, no_entry
from channels.http import CONNECTION_ERRORS
from channels.proxies import ProxiedConnector, ProxyFailed
from channels.supervision import Endurance, Pace

log = structlog.get_logger(__name__)

#: The advice to an operator whose bot receives messages without text.
NO_INTENT = (
    "Discord does not give this bot the text of messages: switch on “Message Content Intent” at "
    f"{PORTAL} → your application → Bot → Privileged Gateway Intents"
)

#: Seconds for which the saved position stays behind for a server in an outage.
_AWAITED_SECONDS = 600.0
_DOWN_SECONDS = 90.0  # after this time without a connection, discord.py is abandoned and started anew
_CLOSE_SECONDS = 5.0
_SAVE_SECONDS = 3.0


#: Frames without which there is no session.
_SESSION_FRAMES = ("READY", "RESUMED")
#: Prefixes of the names of frames that only the receiver reads.
OWN_FRAMES = ("MESSAGE_", "INTERACTION_", "TYPING_")


class _Client(discord.Client):
    """discord.py's connection, which reports its events to a receiver."""

    def __init__(self, receiver: Receiver, proxy: str | None) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True
        intents.guild_reactions = intents.dm_reactions = True
        super().__init__(
            intents=intents,
            max_messages=None,
            allowed_mentions=discord.AllowedMentions.none(),
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            enable_debug_events=True,  # delivers raw frames, the only form that history has too
            guild_ready_timeout=0.5,  # servers that come later are handled as they come
            max_ratelimit_timeout=30.0,
            connector=ProxiedConnector(proxy, limit=0),
        )
        self._receiver = receiver
        # The receiver reads these frames itself. A frame that discord.py could not parse would end the run, and would
        # come again in the next run. Intents can't leave these frames out without keeping them from the receiver, and
        # the client has no public list of what it parses; a test fails if this one disappears.
        parsers = self._connection.parsers
        for name, parse in list(parsers.items()):
            if name.startswith(OWN_FRAMES):
                del parsers[name]
            elif name not in _SESSION_FRAMES:
                parsers[name] = partial(self._parse, name, parse)

    def _parse(self, name: str, parse: Callable[[Json], None], data: Json) -> None:
        """Lets discord.py parse a frame. If it can't, the frame is left out, and of a server only what it fails on."""
        try:
            parse(data)
        except UNREADABLE as exc:
            self._receiver.unread(name, exc)
            if name == "GUILD_CREATE":
                rest = sieved(data, lambda part: discord.Guild(data=part, state=self._connection))
                with suppress(*UNREADABLE):
                    parse(rest)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        # Once the run is over nobody listens, and a task begun while the event loop ends would never run.
        if not self._receiver.is_over:
            super().dispatch(event, *args, **kwargs)

    async def on_socket_raw_receive(self, frame: str) -> None:
        self._receiver.heard(frame)

    async def on_ready(self) -> None:
        self._receiver.ready()

    async def on_disconnect(self) -> None:
        self._receiver.lost()

    async def on_guild_join(self, guild: discord.Guild) -> None:
        self._receiver.joined(guild)

    async def on_guild_available(self, guild: discord.Guild) -> None:
        self._receiver.available(guild)

    async def on_guild_unavailable(self, guild: discord.Guild) -> None:
        self._receiver.unavailable(guild)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        self._receiver.removed(guild)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        """Ends the run: discord.py would only log the crash and lose the event."""
        self._receiver.crashed()


class Receiver:
    """One run, which turns the gateway's events into calls of the host. `contacted` is called for every frame."""

    def __init__(
        self,
        session: BotSession,
        endurance: Endurance,
        *,
        token: str,
        base_url: str,
        mention: bool,
        contacted: Callable[[], None],
        now: Callable[[], int],
        pace: Pace,
    ) -> None:
        self._channel, self._host, self._me = session.channel, session.host, session.me
        self._rest, self._screen, self._unread = session.rest, session.screen, session.unread
        self._token, self._base_url, self._mention = token, base_url, mention
        self._contacted, self._now = contacted, now
        self._request_seconds = pace.request_seconds
        self._client = _Client(self, session.rest.proxy)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._intake = ChannelLanes(
            session.channel, session.host, endurance, spawn=self._spawn, sleep=pace.sleep, random=pace.random
        )
        self._places = places = Places(session, self._client, self._intake, request_seconds=pace.request_seconds)
        self._presence = Presence(session, self._intake, places)
        self._messages = Messages(
            session, self._intake, places,
            mention=mention, unread=self.unread, now=now, request_seconds=pace.request_seconds,
        )  # fmt: skip
        self._missed = Missed(
            session, self._intake, places, event=self._messages.event, now=now, request_seconds=pace.request_seconds
        )
        self._interactions = Interactions(
            session, spawn=self._spawn, spot=places.spot, heard=self._missed.heard, now=now, pace=pace
        )
        self._connection = "not connected to Discord's gateway yet"
        self._alarm: asyncio.TimerHandle | None = None
        self._gap = 0  # the position after which this session reads everything back
        self._over = self._new = False  # new: this is the bot's very first session
        # The servers that are absent now, each with the position after which it is read back (None: not read back).
        self._awaited: dict[int, int | None] = {}
        self._events = self._handlers()

    def _handlers(self) -> dict[str, Callable[[Json], None]]:
        return {
            "READY": self._on_session,
            "RESUMED": self._on_resumed,
            "MESSAGE_CREATE": self._on_message,
            "MESSAGE_UPDATE": self._messages.on_edit,
            "MESSAGE_DELETE": self._messages.on_delete,
            "MESSAGE_DELETE_BULK": self._messages.on_delete,
            "MESSAGE_REACTION_ADD": partial(self._messages.on_reaction, kept=True),
            "MESSAGE_REACTION_REMOVE": partial(self._messages.on_reaction, kept=False),
            "INTERACTION_CREATE": self._interactions.take,
            "CHANNEL_DELETE": self._presence.on_channel_delete,
            **dict.fromkeys(("CHANNEL_UPDATE", "THREAD_UPDATE"), self._presence.on_channel_update),
            **dict.fromkeys(("GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE"), self._presence.on_roles),
        }

    @property
    def is_over(self) -> bool:
        """True once the run has begun to end."""
        return self._over

    @property
    def trouble(self) -> str:
        return self._connection or self._intake.trouble

    def link(self, place: Place, message_id: str) -> str | None:
        return self._places.link(place, message_id)

    def names(self, place: Place) -> tuple[str, str]:
        return self._places.names(place)

    def direct_opened(self, channel: str) -> None:
        if not self._over:
            self._missed.direct_opened(channel)

    async def run(self) -> None:
        """Runs until cancelled. Raises `ChannelError`, or the error of a crash."""
        client = self._client
        try:
            await self._intake.load(self._me.id)
            await self._address()
            self._expect_connection()
            self._spawn(self._intake.saving())
            self._spawn(self._connect())
            await self._failed
        finally:
            self._over = True
            if self._alarm is not None:
                self._alarm.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._interactions.close(_SAVE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAVE_SECONDS):
                    await self._intake.save()
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await client.close()
            except TimeoutError:
                await client.http.close()  # the other side does not complete the close

    async def _address(self) -> None:
        """Asks for the gateway's address, and sets it and the API's for the whole process."""
        # discord.py reads the API's address from this class at every request; neither its client nor its HTTP client
        # takes an address.
        Route.BASE = self._base_url.rstrip("/")
        try:
            found = await self._rest.call("GET", "/gateway/bot", seconds=self._request_seconds)
            starts = found.get("session_start_limit") or {}
            if starts.get("remaining") == 0:
                seconds = float(starts.get("reset_after", 0)) / 1000
                raise ChannelUnavailable(
                    f"the bot has connected too often today; Discord lets it in again in {seconds:.0f} s"
                )
            # discord.Client connects to the address on this class and takes no other. AutoShardedClient asks Discord
            # for one, but uses this one, too, when a session has become invalid.
            DiscordWebSocket.DEFAULT_GATEWAY = URL(found["url"])
        except DiscordRefused as exc:
            raise no_entry(exc) from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ChannelUnavailable(f"{self._rest.host} does not say where its gateway is") from None

    async def _connect(self) -> None:
        try:
            await self._client.login(self._token)
            await self._client.connect()
        except discord.PrivilegedIntentsRequired:
            raise ChannelRefused(NO_INTENT) from None
        except (discord.LoginFailure, discord.ConnectionClosed) as exc:
            if isinstance(exc, discord.ConnectionClosed) and exc.code != 4004:
                raise ChannelUnavailable(f"Discord's gateway has closed the connection ({exc.code})") from None
            raise no_entry(DiscordRefused(401, 0, "the token is not accepted")) from None
        except discord.RateLimited as exc:
            raise DiscordRateLimited(
                f"Discord asks to wait {exc.retry_after:.0f} s", retry_after=exc.retry_after
            ) from None
        except discord.DiscordException as exc:
            raise ChannelUnavailable(f"Discord's gateway can't be used: {type(exc).__name__}") from None
        except CONNECTION_ERRORS as exc:
            why = exc if isinstance(exc, ProxyFailed) else type(exc).__name__
            raise ChannelUnavailable(f"Discord's gateway can't be reached: {why}") from None
        except AttributeError:
            # If its very first connection fails, discord.py looks for the session of a previous connection.
            if self._client.ws is not None:
                raise
            raise ChannelUnavailable("Discord's gateway can't be reached") from None
        raise ChannelUnavailable("Discord's gateway has ended the connection")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts `work` as a task. An error in it ends the run."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    def crashed(self) -> None:
        """Ends the run with the error that a handler of a gateway event has raised."""
        error = sys.exc_info()[1]
        self._fail(error if error is not None else RuntimeError("a handler failed"))

    # The connection.

    def heard(self, frame: str) -> None:
        """Handles a frame. Any frame, even the answer to a heartbeat, shows that the gateway is there."""
        self._contacted()
        event = json.loads(frame)
        name = event.get("t") or ""
        handle = self._events.get(name)
        if handle is not None:
            try:
                handle(event["d"])
            except UNREADABLE as exc:
                if name in _SESSION_FRAMES:
                    raise
                self.unread(name, exc)

    def unread(self, frame: str, error: Exception) -> None:
        self._unread.note(frame, type(error).__name__)  # without its text, which may hold people's words

    def lost(self) -> None:
        self._connection = self._connection or "the connection to Discord's gateway is lost; it is being made anew"
        self._expect_connection()

    def _expect_connection(self) -> None:
        """Ends the run if discord.py takes too long to connect: its own waits grow to a quarter of an hour."""
        if self._alarm is None:
            told = ChannelUnavailable(f"no connection to Discord's gateway for {_DOWN_SECONDS:.0f} s")
            self._alarm = asyncio.get_running_loop().call_later(_DOWN_SECONDS, self._fail, told)

    def _connected(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _on_resumed(self, _: Json) -> None:
        self._connected()
        self._connection = ""

    def _on_session(self, _: Json) -> None:
        """Begins a new session. The gateway does not report messages sent before it."""
        self._connected()
        self._new = False
        self._intake.hold()
        self._gap = self._intake.since

    def ready(self) -> None:
        """Starts reading back missed messages, now that the servers of the new session are known."""
        client = self._client
        present = [guild for guild in client.guilds if not guild.unavailable]
        if not self._gap:
            self._new = True
            self._gap = int(self._me.id)
            self._intake.begin(self._gap)
        gap, before = None if self._new else self._gap, self._awaited
        self._awaited = {}
        for guild in client.guilds:
            after = before.get(guild.id, gap)
            if guild.unavailable:
                self._await(guild, after)
            else:
                self._come(guild, after)
        for chat, taken in self._intake.direct.items():
            self._intake.put_first(chat, [self._missed.since(chat, None, taken)])
        known = {str(guild.id) for guild in client.guilds}
        for server in self._intake.servers() - known:
            self._presence.tell(self._intake.chats_of(server), present=False)
            self._spawn(self._interactions.forget(server))
        if self._new:
            self._spawn(self._missed.first_words())
        self._intake.go()
        if self._alarm is None:  # otherwise the connection has been lost again
            self._connection = ""
        self._spawn(self._interactions.offer([str(guild.id) for guild in present]))

    def available(self, guild: discord.Guild) -> None:
        """Handles the arrival of a server that was absent when the session began or went away later."""
        if guild.id in self._awaited:
            self._come(guild, self._awaited.pop(guild.id))
            self._intake.unpin(str(guild.id))
            self._spawn(self._interactions.offer([str(guild.id)]))

    def unavailable(self, guild: discord.Guild) -> None:
        """Handles a server's outage, during which the gateway does not report its messages."""
        if guild.id not in self._awaited:
            self._await(guild, self._intake.since)

    def _await(self, guild: discord.Guild, after: int | None) -> None:
        self._awaited[guild.id] = after
        self._intake.pin(str(guild.id), _AWAITED_SECONDS)

    def _come(self, guild: discord.Guild, after: int | None) -> None:
        self._presence.returned(guild, self._intake.left_of(str(guild.id)))
        if after is not None:
            self._missed.of_server(guild, after)
            return
        # Messages from before the bot first joined are not meant for it.
        self._gap = max([self._gap, *map(last, readable(guild))])
        self._intake.begin(self._gap)

    def joined(self, guild: discord.Guild) -> None:
        server = str(guild.id)
        self._presence.returned(guild, self._intake.chats_of(server))
        self._spawn(self._interactions.welcome(server))

    def removed(self, guild: discord.Guild) -> None:
        self._awaited.pop(guild.id, None)
        self._intake.unpin(str(guild.id))
        chats = {*self._intake.chats_of(str(guild.id)), *(str(channel.id) for channel in guild.text_channels)}
        self._presence.tell(sorted(chats), present=False)
        self._spawn(self._interactions.forget(str(guild.id)))

    def _on_message(self, message: Json) -> None:
        number, channel, server = int(message["id"]), str(message["channel_id"]), message.get("guild_id")
        if not is_from_person(message):
            self._intake.passed(number)
            return
        if server is None:
            self._missed.direct_opened(channel)
        if self._intake.is_full(channel):
            self._intake.passed(number)
            self._missed.too_many(channel, server, number - 1)
        else:
            self._intake.put(channel, self._messages.event(message, server))
