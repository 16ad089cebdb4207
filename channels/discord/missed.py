"""Reads back the messages of Discord that were said while no session was open.

Invariants: they go before everything later in the same channel. What was said before the bot first joined is not meant
for it, but for an admin's words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import discord
import structlog

from channels.base import ChannelError, ChannelUnavailable
from channels.discord.intake import ChannelLanes, Event
from channels.discord.interactions import BotSession
from channels.discord.payloads import DiscordPlace, Json, is_from_person, made_at, moment, snowflake
from channels.discord.places import Places, readable
from channels.discord.rest import DiscordRefused
from channels.discord.show import PAGE, UNKNOWN_CHANNEL
from channels.slots import Slots

log = structlog.get_logger(__name__)

#: The most days and messages of a channel that are read back after a gap.
_GAP_DAYS = 30
_GAP_MESSAGES = 1_000
#: The time before the very first session from which an admin's messages are read back, in milliseconds.
_FIRST_WORDS = 86_400_000
_READERS = 4  # channels that are read back at the same time
_THREAD_PAGES = 5  # the most pages of archived threads that are searched


class Missed:
    """The messages that one run reads back. `event` makes the event by which a message is taken."""

    def __init__(
        self,
        session: BotSession,
        intake: ChannelLanes,
        places: Places,
        *,
        event: Callable[[Json, str | None], Event],
        now: Callable[[], int],
        request_seconds: float,
    ) -> None:
        self._channel, self._host = session.channel, session.host
        self._rest, self._screen = session.rest, session.screen
        self._intake, self._places, self._event = intake, places, event
        self._now, self._request_seconds = now, request_seconds
        self._readers = Slots(_READERS, lambda channels: next_reader(channels, intake.waits))

    def direct_opened(self, channel: str) -> None:
        """Reads back a private channel that was not known: no event told what was written to a bot that was down."""
        if channel not in self._intake.direct:
            self._intake.took_direct(channel, 0)

            def read_back() -> Coroutine[Any, Any, None]:
                return self._read_back(channel, None, self._intake.begun)

            self._intake.put(channel, Event(key=f"r{channel}", work=read_back, reading=True))

    def heard(self, spot: DiscordPlace) -> None:
        if spot.server is None:
            self.direct_opened(spot.chat)
        else:
            self._intake.saw(spot.chat, spot.server)

    def too_many(self, channel: str, server: str | None, after: int) -> None:
        """Reads back the messages after an id once those that wait in the channel are done."""
        work = partial(self._read_back, channel, server, after)
        self._intake.put(channel, Event(key=f"f{channel}", work=work, reading=True))

    def of_server(self, guild: discord.Guild, after: int) -> None:
        server = str(guild.id)
        for channel in readable(guild):
            if last(channel) > after:
                self._intake.put_first(str(channel.id), [self.since(str(channel.id), server, after)])
        for chat in self._intake.chats_of(server):
            if isinstance(guild.get_channel(int(chat)), (discord.TextChannel, discord.ForumChannel)):
                work = partial(self._read_archived, chat, server, after)
                self._intake.put_first(chat, [Event(key=f"a{chat}", work=work, reading=True)])

    async def first_words(self) -> None:
        """Reads the admins' messages from before the very first session: they have just set up the bot and tried it."""
        for user in self._host.admins(self._channel):
            with suppress(ChannelError):
                chat = await self._screen.direct_channel(user)
                work = partial(self._read_back, chat, None, snowflake(self._now() - _FIRST_WORDS))
                self._intake.put(chat, Event(key=f"w{chat}", work=work, reading=True))

    def since(self, channel: str, server: str | None, after: int) -> Event:
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
                    self._places.hidden(channel, exc)
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
        events = [self._event(one, server) for one in found if is_from_person(one)]
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
                    self._places.hidden(parent, exc)
                    return
            threads = page.get("threads") if isinstance(page, dict) else None
            if not isinstance(threads, list):
                raise ChannelUnavailable(f"{self._rest.host} answers with something that is no list of threads")
            for thread in threads:
                if int(thread.get("last_message_id") or 0) > after:
                    self._places.note_thread(server, thread)
                    self._intake.put_first(str(thread["id"]), [self.since(str(thread["id"]), server, after)])
            oldest = str(threads[-1]["thread_metadata"]["archive_timestamp"]) if threads else ""
            if not page.get("has_more") or (archived_at := moment(oldest)) is None or archived_at < made_at(after):
                return
            query = {"limit": "100", "before": oldest}


def next_reader(channels: Collection[str], waits: Callable[[str], bool]) -> str:
    """Returns the channel to read back next: the first for which an event `waits`, if there is one."""
    return next(filter(waits, channels), next(iter(channels)))


def last(channel: Any) -> int:
    return int(channel.last_message_id or 0)
