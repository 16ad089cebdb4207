"""Receives messages from Discord's gateway in order, and reads back those missed while no session was open.

Invariants: events are handed over in the order of their channel. Messages that were said while no session was open are
read back before anything later in the same channel. A connection that can't be restored soon ends the run. discord.py
provides the connection and the state of servers. The frames themselves are read here, as history has the same form.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import discord
import structlog
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from channels.base import ChannelError, ChannelRefused, ChannelUnavailable, ChatKind, Inbound, Place, judgement
from channels.discord.intake import ChannelLanes, Event
from channels.discord.interactions import BotSession, Interactions
from channels.discord.payloads import (
    UNREADABLE,
    DiscordPlace,
    Json,
    NamesOf,
    display,
    edited_at,
    is_from_person,
    is_reply,
    made_at,
    moment,
    quotation,
    read,
    sieved,
    snowflake,
)
from channels.discord.rest import PORTAL, DiscordRateLimited, DiscordRefused, no_entry
from channels.discord.show import HIDDEN, PAGE, UNKNOWN_CHANNEL, remember
from channels.http import CONNECTION_ERRORS
from channels.proxies import ProxiedConnector, ProxyFailed
from channels.slots import Slots
from channels.supervision import Endurance, Pace

log = structlog.get_logger(__name__)

#: The advice to an operator whose bot receives messages without text.
NO_INTENT = (
    "Discord does not give this bot the text of messages: switch on “Message Content Intent” at "
    f"{PORTAL} → your application → Bot → Privileged Gateway Intents"
)

#: The most days and messages of a channel that are read back after a gap.
_GAP_DAYS = 30
_GAP_MESSAGES = 1_000
#: The time before the very first session from which an admin's messages are read back, in milliseconds.
_FIRST_WORDS = 86_400_000
_READERS = 4  # channels that are read back at the same time
#: Seconds for which the saved position stays behind for a server in an outage.
_AWAITED_SECONDS = 600.0
_THREAD_PAGES = 5  # the most pages of archived threads that are searched
_DOWN_SECONDS = 90.0  # after this time without a connection, discord.py is abandoned and started anew
_CLOSE_SECONDS = 5.0
_SAVE_SECONDS = 3.0

_PUBLIC_THREAD, _PRIVATE_THREAD, _THREADS = 11, 12, (10, 11, 12)  # types of channels


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
        self._interactions = Interactions(
            session, spawn=self._spawn, spot=self._spot, heard=self._heard, now=now, pace=pace
        )
        self._readers = Slots(_READERS, lambda channels: next_reader(channels, self._intake.waits))
        self._connection = "not connected to Discord's gateway yet"
        self._alarm: asyncio.TimerHandle | None = None
        self._gap = 0  # the position after which this session reads everything back
        self._over = self._new = False  # new: this is the bot's very first session
        # The servers that are absent now, each with the position after which it is read back (None: not read back).
        self._awaited: dict[int, int | None] = {}
        self._spots: dict[str, DiscordPlace | None] = {}
        self._opened: dict[str, bool] = {}  # the threads whose first message was handed on
        self._events: dict[str, Callable[[Json], None]] = {
            "READY": self._on_session,
            "RESUMED": self._on_resumed,
            "MESSAGE_CREATE": self._on_message,
            "MESSAGE_UPDATE": self._on_edit,
            "MESSAGE_DELETE": self._on_delete,
            "MESSAGE_DELETE_BULK": self._on_delete,
            "MESSAGE_REACTION_ADD": partial(self._on_reaction, kept=True),
            "MESSAGE_REACTION_REMOVE": partial(self._on_reaction, kept=False),
            "INTERACTION_CREATE": self._interactions.take,
            "CHANNEL_DELETE": self._on_channel_delete,
            **dict.fromkeys(("CHANNEL_UPDATE", "THREAD_UPDATE"), self._on_channel_update),
            **dict.fromkeys(("GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE"), self._on_roles),
        }

    @property
    def is_over(self) -> bool:
        """True once the run has begun to end."""
        return self._over

    @property
    def trouble(self) -> str:
        return self._connection or self._intake.trouble

    def link(self, place: Place, message_id: str) -> str | None:
        target = place.chat if place.thread is None else place.thread
        if not (place.chat.isdecimal() and target.isdecimal() and message_id.isdecimal()):
            return None
        known = self._client.get_channel(int(place.chat))
        if isinstance(known, (discord.abc.GuildChannel, discord.Thread)):
            server: str | None = str(known.guild.id)
        else:
            server = "@me" if place.chat in self._intake.direct else self._intake.server_of(place.chat)
        return None if server is None else f"https://discord.com/channels/{server}/{target}/{message_id}"

    def names(self, place: Place) -> tuple[str, str]:
        known = self._client.get_channel(int(place.chat))
        thread = None if place.thread is None else self._client.get_channel(int(place.thread))
        return _name_of(getattr(known, "guild", None)) or "", _name_of(thread) or ""

    def direct_opened(self, channel: str) -> None:
        """Reads back a private channel that was not known: no event told what was written to a bot that was down."""
        if channel not in self._intake.direct and not self._over:
            self._intake.took_direct(channel, 0)

            def read_back() -> Coroutine[Any, Any, None]:
                return self._read_back(channel, None, self._intake.begun)

            self._intake.put(channel, Event(key=f"r{channel}", work=read_back, reading=True))

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
            self._intake.put_first(chat, [self._catch_up(chat, None, taken)])
        known = {str(guild.id) for guild in client.guilds}
        for server in self._intake.servers() - known:
            self._tell_presence(self._intake.chats_of(server), present=False)
            self._spawn(self._interactions.forget(server))
        if self._new:
            self._spawn(self._first_words())
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
        self._return(guild, self._intake.left_of(str(guild.id)))
        self._catch_up_server(guild, after)

    def joined(self, guild: discord.Guild) -> None:
        server = str(guild.id)
        self._return(guild, self._intake.chats_of(server))
        self._spawn(self._interactions.welcome(server))

    def _return(self, guild: discord.Guild, chats: Sequence[str]) -> None:
        """Reports that the bot is present again in the chats that still exist."""
        there = [chat for chat in chats if guild.get_channel_or_thread(int(chat)) is not None]
        for chat in there:
            self._intake.saw(chat, str(guild.id))
        self._tell_presence(there, present=True)

    def removed(self, guild: discord.Guild) -> None:
        self._awaited.pop(guild.id, None)
        self._intake.unpin(str(guild.id))
        chats = {*self._intake.chats_of(str(guild.id)), *(str(channel.id) for channel in guild.text_channels)}
        self._tell_presence(sorted(chats), present=False)
        self._spawn(self._interactions.forget(str(guild.id)))

    def _on_channel_delete(self, channel: Json) -> None:
        if channel.get("guild_id") is not None:
            self._tell_presence([str(channel["id"])], present=False)

    def _on_channel_update(self, channel: Json) -> None:
        server, number = channel.get("guild_id"), str(channel["id"])
        guild = None if server is None else self._client.get_guild(int(server))
        if guild is not None:
            inside = [str(thread.id) for thread in guild.threads if str(thread.parent_id) == number]
            self._look_at_rights(str(server), [number, *inside])

    def _on_roles(self, changed: Json) -> None:
        """Handles a changed role, or a member whose roles have changed."""
        if "user" not in changed or str(changed["user"]["id"]) == self._me.id:
            server = str(changed["guild_id"])
            self._look_at_rights(server, self._intake.chats_of(server))

    def _look_at_rights(self, server: str, chats: Sequence[str]) -> None:
        """Reports the chats in which the bot may write, once discord.py has handled the change."""
        for chat in chats:
            self._intake.put(chat, Event(key=f"t{chat}", work=partial(self._rights, server, chat)))

    async def _rights(self, server: str, chat: str) -> None:
        guild = self._client.get_guild(int(server))
        known = None if guild is None else guild.get_channel_or_thread(int(chat))
        if guild is not None and known is not None and _may_write(guild, known):
            spot = await self._spot(chat, server)
            assert spot is not None
            await self._host.on_rights(self._channel, spot.chat, write=True, threads=[spot.thread])

    def _tell_presence(self, chats: Sequence[str], *, present: bool) -> None:
        for chat in chats:
            self._intake.put(chat, Event(key=f"p{chat}", work=partial(self._presence, chat, present=present)))

    async def _presence(self, chat: str, *, present: bool) -> None:
        await self._host.on_presence(self._channel, chat, present=present)
        if not present:
            self._intake.left(chat)

    # Missed messages.

    def _catch_up_server(self, guild: discord.Guild, after: int | None) -> None:
        if after is None:
            # Messages from before the bot first joined are not meant for it.
            self._gap = max([self._gap, *map(_last, _readable(guild))])
            self._intake.begin(self._gap)
            return
        server = str(guild.id)
        for channel in _readable(guild):
            if _last(channel) > after:
                self._intake.put_first(str(channel.id), [self._catch_up(str(channel.id), server, after)])
        for chat in self._intake.chats_of(server):
            if isinstance(guild.get_channel(int(chat)), (discord.TextChannel, discord.ForumChannel)):
                work = partial(self._read_archived, chat, server, after)
                self._intake.put_first(chat, [Event(key=f"a{chat}", work=work, reading=True)])

    async def _first_words(self) -> None:
        """Reads the admins' messages from before the very first session: they have just set up the bot and tried it."""
        for user in self._host.admins(self._channel):
            with suppress(ChannelError):
                chat = await self._screen.direct_channel(user)
                work = partial(self._read_back, chat, None, snowflake(self._now() - _FIRST_WORDS))
                self._intake.put(chat, Event(key=f"w{chat}", work=work, reading=True))

    def _catch_up(self, channel: str, server: str | None, after: int) -> Event:
        return Event(key=f"r{channel}", work=partial(self._read_back, channel, server, after), reading=True)

    async def _read_back(self, channel: str, server: str | None, after: int) -> None:
        """Puts the messages of a channel after the id `after` ahead of everything that waits there."""
        after = max(after, snowflake(self._now() - _GAP_DAYS * 86_400_000))
        if server is None:
            # A private channel that is not saved can't be found again, so it is saved before its messages are taken.
            await self._intake.save()
        found: list[Json] = []
        query: dict[str, str] = {}
        async with self._readers.slot(channel):
            while True:
                try:
                    page = await self._screen.messages(channel, query)
                except DiscordRefused as exc:
                    self._hidden(channel, exc)
                    if server is None and exc.number == UNKNOWN_CHANNEL:
                        self._intake.lost_direct(channel)
                    return
                missed = [one for one in page if int(one["id"]) > after]
                found += missed
                if len(missed) < PAGE:
                    break
                if len(found) >= _GAP_MESSAGES:
                    log.warning("discord.left", channel=self._channel, chat=channel, read=len(found))
                    break
                query = {"before": min((str(one["id"]) for one in missed), key=int)}
        found.sort(key=lambda one: int(one["id"]))
        events = [self._message_event(one, server) for one in found if is_from_person(one)]
        self._intake.put_first(channel, events)

    async def _read_archived(self, parent: str, server: str, after: int) -> None:
        """Reads back archived threads with messages after the id `after`; the gateway reports only open ones."""
        path = f"/channels/{parent}/threads/archived/public"
        query = {"limit": "100"}
        for _ in range(_THREAD_PAGES):
            async with self._readers.slot(parent):
                try:
                    page = await self._rest.call("GET", path, query=query, seconds=self._request_seconds)
                except DiscordRefused as exc:
                    self._hidden(parent, exc)
                    return
            threads = page.get("threads") if isinstance(page, dict) else None
            if not isinstance(threads, list):
                raise ChannelUnavailable(f"{self._rest.host} answers with something that is no list of threads")
            for thread in threads:
                if int(thread.get("last_message_id") or 0) > after:
                    remember(self._spots, str(thread["id"]), self._shown_spot(str(thread["id"]), server, thread))
                    self._intake.put_first(str(thread["id"]), [self._catch_up(str(thread["id"]), server, after)])
            oldest = str(threads[-1]["thread_metadata"]["archive_timestamp"]) if threads else ""
            if not page.get("has_more") or (archived_at := moment(oldest)) is None or archived_at < made_at(after):
                return
            query = {"limit": "100", "before": oldest}

    def _hidden(self, channel: str, refused: DiscordRefused) -> None:
        """Logs that a channel can't be read. Raises `ChannelUnavailable` if that may change by itself."""
        if refused.number not in HIDDEN:
            raise ChannelUnavailable(str(refused)) from None
        log.info("discord.no_channel", channel=self._channel, chat=channel, error=str(refused))

    # Messages.

    def _message_event(self, message: Json, server: str | None) -> Event:
        work = partial(self._take, message, server)
        return Event(key=f"m{message['id']}", number=int(message["id"]), work=work)

    def _on_message(self, message: Json) -> None:
        number, channel, server = int(message["id"]), str(message["channel_id"]), message.get("guild_id")
        if not is_from_person(message):
            self._intake.passed(number)
            return
        if server is None:
            self.direct_opened(channel)
        if self._intake.is_full(channel):
            self._intake.passed(number)
            work = partial(self._read_back, channel, server, number - 1)
            self._intake.put(channel, Event(key=f"f{channel}", work=work, reading=True))
        else:
            self._intake.put(channel, self._message_event(message, server))

    def _heard(self, spot: DiscordPlace) -> None:
        if spot.server is None:
            self.direct_opened(spot.chat)
        else:
            self._intake.saw(spot.chat, spot.server)

    async def _take(self, message: Json, server: str | None) -> None:
        channel = str(message["channel_id"])
        spot = await self._spot(channel, server)
        if spot is not None and is_reply(message) and "referenced_message" not in message:
            answered = message["message_reference"]
            with suppress(ChannelError):
                message = message | {
                    "referenced_message": await self._shown_message(
                        str(answered.get("channel_id") or channel), str(answered["message_id"])
                    )
                }
        inbound = None if spot is None else self._read(message, spot)
        if spot is not None and inbound is not None:
            await self._host.on_inbound(await self._with_opening(inbound, spot))
            if spot.server is not None:
                self._intake.saw(spot.chat, spot.server)
        if server is None:
            self._intake.took_direct(channel, int(message["id"]))

    async def _shown_message(self, channel: str, message: str) -> Json | None:
        """Returns a message as it is now; None if it is deleted. Raises `ChannelError`."""
        path, bucket = f"/channels/{int(channel)}/messages/{int(message)}", f"/channels/{channel}/messages/id"
        try:
            shown = await self._rest.call("GET", path, bucket=bucket, seconds=self._request_seconds)
        except DiscordRefused as exc:
            if exc.status != 404:
                raise
            return None
        return shown if isinstance(shown, dict) else None

    async def _with_opening(self, inbound: Inbound, spot: DiscordPlace) -> Inbound:
        """Returns the first message to the bot in a thread with the message that the thread began with."""
        thread, guild = spot.thread, None if spot.server is None else self._client.get_guild(int(spot.server))
        known = thread in self._opened or spot.mine or inbound.quoted is not None
        if thread is None or guild is None or known or not inbound.addressed:
            return inbound
        remember(self._opened, thread, True)
        if thread == inbound.message_id:
            return inbound
        in_forum = isinstance(guild.get_channel(int(spot.chat)), discord.ForumChannel)
        with suppress(ChannelError, *UNREADABLE):
            opening = await self._shown_message(thread if in_forum else spot.chat, thread)
            if opening is not None:
                quoted = quotation(opening, inbound.author_id, me=self._me.id, kind="opening", **_names(guild))
                return replace(inbound, quoted=quoted)
        return inbound

    def _on_edit(self, message: Json) -> None:
        edited = edited_at(message)
        if edited is None or "content" not in message or not is_from_person(message):
            return  # no edit by a person: Discord has only resolved the links
        channel, server = str(message["channel_id"]), message.get("guild_id")
        key = f"e{message['id']}-{edited}"
        self._intake.put(channel, Event(key=key, work=partial(self._take_edit, message, server, edited, key)))

    async def _take_edit(self, message: Json, server: str | None, edited: int, key: str) -> None:
        spot = await self._spot(str(message["channel_id"]), server)
        inbound = None if spot is None else self._read(message, spot)
        if inbound is not None:
            await self._host.on_inbound(replace(inbound, update_key=key, sent_at=edited, edited=True))

    def _on_delete(self, deleted: Json) -> None:
        numbers = [str(one) for one in deleted.get("ids") or [deleted["id"]]]
        channel, server = str(deleted["channel_id"]), deleted.get("guild_id")
        work = partial(self._take_deletion, channel, server, numbers)
        self._intake.put(channel, Event(key=f"d{numbers[0]}", work=work))

    async def _take_deletion(self, channel: str, server: str | None, numbers: Sequence[str]) -> None:
        spot = await self._spot(channel, server)
        if spot is not None:
            await self._host.on_deleted(self._place(spot), numbers)

    def _on_reaction(self, reaction: Json, *, kept: bool) -> None:
        emoji, user = reaction["emoji"], str(reaction["user_id"])
        good = None if emoji.get("id") else judgement(emoji.get("name") or "")
        if good is not None and user != self._me.id:
            key = f"j{reaction['message_id']}-{user}"
            work = partial(self._take_reaction, reaction, key, good=good, kept=kept)
            self._intake.put(str(reaction["channel_id"]), Event(key=key, work=work))

    async def _take_reaction(self, reaction: Json, key: str, *, good: bool, kept: bool) -> None:
        spot = await self._spot(str(reaction["channel_id"]), reaction.get("guild_id"))
        if spot is None:
            return
        inbound = Inbound(
            channel=self._channel,
            platform="discord",
            bot_id=self._me.id,
            update_key=key,
            chat=spot.chat,
            chat_kind="private" if spot.server is None else "group",
            author_id=str(reaction["user_id"]),
            author_name="",
            message_id=str(reaction["message_id"]),
            text="",
            sent_at=self._now(),
            thread=spot.thread,
            server=spot.server,
        )
        await self._host.on_judged(inbound, good=good, kept=kept)

    def _read(self, message: Json, spot: DiscordPlace) -> Inbound | None:
        """Returns as much of a person's message as can be read; None if nothing can, or if that was said lately."""
        try:
            return self._inbound(message, spot)
        except UNREADABLE as exc:
            self.unread("MESSAGE_CREATE", exc)
        rest = sieved(message, lambda part: self._inbound(part, spot), needed=("id", "channel_id", "author"))
        inbound = None if rest is None else self._inbound(rest, spot)
        return None if inbound is None or (inbound.is_empty and not self._unread.may_tell(spot.chat)) else inbound

    def _inbound(self, message: Json, spot: DiscordPlace) -> Inbound:
        """Returns a person's message as the host takes it."""
        guild = None if spot.server is None else self._client.get_guild(int(spot.server))
        own_role = None if guild is None else guild.self_role
        tags = [f"<@{self._me.id}>", f"<@!{self._me.id}>", *([] if own_role is None else [f"<@&{own_role.id}>"])]
        said = read(message, me=self._me.id, tags=tags, **_names(guild))
        answered = message.get("referenced_message")
        to_me = said.answered is not None and answered is not None and answered["author"]["id"] == self._me.id
        author = message["author"]
        kind: ChatKind = "private" if spot.server is None else "group"
        return Inbound(
            channel=self._channel,
            platform="discord",
            bot_id=self._me.id,
            update_key=f"m{message['id']}",
            chat=spot.chat,
            chat_kind=kind,
            author_id=str(author["id"]),
            author_name=display(author, message.get("member")),
            message_id=str(message["id"]),
            text=said.text,
            sent_at=made_at(message["id"]),
            thread=spot.thread,
            chat_title=spot.title,
            thread_title=spot.topic,
            reply_to=said.answered,
            quoted=said.quoted,
            addressed=kind == "private" or not self._mention or said.named or to_me or spot.mine,
            forwarded=said.forwarded,
            forwarded_from=said.forwarded_from,
            attachments=said.attachments,
            server=spot.server,
        )

    def _place(self, spot: DiscordPlace) -> Place:
        return Place(channel=self._channel, chat=spot.chat, thread=spot.thread)

    async def _spot(self, channel: str, server: str | None, shown: Json | None = None) -> DiscordPlace | None:
        """Returns the place of a channel or thread, by discord.py's state, `shown` or a request; None if it is gone."""
        if server is None:
            return DiscordPlace(chat=channel)
        guild = self._client.get_guild(int(server))
        known = None if guild is None else guild.get_channel_or_thread(int(channel))
        if isinstance(known, discord.Thread):
            kind = _PRIVATE_THREAD if known.is_private() else _PUBLIC_THREAD
            return self._thread(kind, channel, str(known.parent_id), known.name, str(known.owner_id), server)
        if known is not None:
            return DiscordPlace(chat=channel, title=f"#{known.name}", server=server)
        if channel not in self._spots:
            if shown is None:
                try:
                    shown = await self._rest.call("GET", f"/channels/{channel}", seconds=self._request_seconds)
                except DiscordRefused as exc:
                    self._hidden(channel, exc)
            remember(self._spots, channel, self._shown_spot(channel, server, shown))
        return self._spots[channel]

    def _shown_spot(self, channel: str, server: str, shown: Json | None) -> DiscordPlace | None:
        if not isinstance(shown, dict):
            return None
        name, kind = str(shown.get("name") or ""), shown.get("type")
        if kind in _THREADS and shown.get("parent_id") is not None:
            return self._thread(kind, channel, str(shown["parent_id"]), name, str(shown.get("owner_id")), server)
        return DiscordPlace(chat=channel, title=f"#{name}", server=server)

    def _thread(self, kind: int, channel: str, parent: str, name: str, owner: str, server: str) -> DiscordPlace:
        """Returns a thread's place. A private thread is its own chat: not everyone who reads its parent reads it."""
        mine = owner == self._me.id
        if kind == _PRIVATE_THREAD:
            return DiscordPlace(chat=channel, title=f"#{name}", server=server, mine=mine)
        guild = self._client.get_guild(int(server))
        title = _name_of(None if guild is None else guild.get_channel(int(parent)))
        return DiscordPlace(
            chat=parent, thread=channel, title=f"#{title}" if title else "", topic=name, server=server, mine=mine
        )


def _names(guild: discord.Guild | None) -> NamesOf:
    """Returns the functions that name a server's roles and channels by their ids."""

    def named(number: str, known: str) -> str | None:
        return _name_of(getattr(guild, known)(int(number))) if guild is not None and number.isdecimal() else None

    return {
        "role": partial(named, known="get_role"),
        "channel": partial(named, known="get_channel_or_thread"),
    }


def next_reader(channels: Collection[str], waits: Callable[[str], bool]) -> str:
    """Returns the channel to read back next: the first for which an event `waits`, if there is one."""
    return next(filter(waits, channels), next(iter(channels)))


def _readable(guild: discord.Guild) -> list[Any]:
    """Returns the server's channels and threads whose messages the bot may read."""
    found: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads]
    return [channel for channel in found if _may_read(guild, channel)]


def _may_read(guild: discord.Guild, channel: Any) -> bool:
    try:
        allowed = channel.permissions_for(guild.me)
    except (discord.ClientException, AttributeError):
        return True  # the thread's parent or the bot's own member is not visible: trying to read does no harm
    return bool(allowed.view_channel and allowed.read_message_history)


def _may_write(guild: discord.Guild, channel: Any) -> bool:
    try:
        allowed = channel.permissions_for(guild.me)
    except (discord.ClientException, AttributeError):
        return False  # not visible: whether it may is tried every ten minutes
    if isinstance(channel, discord.Thread):
        return bool(allowed.send_messages_in_threads and (not channel.locked or allowed.manage_threads))
    return bool(allowed.send_messages)


def _last(channel: Any) -> int:
    return int(channel.last_message_id or 0)


def _name_of(known: Any) -> str | None:
    return None if known is None else str(known.name)
