"""Where things are on Discord: channels and threads as places, their names, and what the bot may do there.

Invariants: discord.py's state is looked at before anything is asked. A private thread is a chat of its own: not
everyone who reads its parent reads it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import discord
import structlog

from channels.base import ChannelUnavailable, Place
from channels.discord.intake import ChannelLanes
from channels.discord.interactions import BotSession
from channels.discord.payloads import DiscordPlace, Json, NamesOf
from channels.discord.rest import DiscordRefused
from channels.discord.show import HIDDEN, remember

log = structlog.get_logger(__name__)

_PUBLIC_THREAD, _PRIVATE_THREAD, _THREADS = 11, 12, (10, 11, 12)  # types of channels


class Places:
    """The places of one run."""

    def __init__(
        self, session: BotSession, client: discord.Client, intake: ChannelLanes, *, request_seconds: float
    ) -> None:
        self._channel, self._me, self._rest = session.channel, session.me, session.rest
        self._client, self._intake = client, intake
        self._request_seconds = request_seconds
        self._spots: dict[str, DiscordPlace | None] = {}

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

    def guild(self, server: str | None) -> discord.Guild | None:
        return None if server is None else self._client.get_guild(int(server))

    def place(self, spot: DiscordPlace) -> Place:
        return Place(channel=self._channel, chat=spot.chat, thread=spot.thread)

    def tags(self, server: str | None) -> list[str]:
        """Returns what mentions the bot: its own tags and that of its role."""
        guild = self.guild(server)
        own_role = None if guild is None else guild.self_role
        return [f"<@{self._me.id}>", f"<@!{self._me.id}>", *([] if own_role is None else [f"<@&{own_role.id}>"])]

    def names_of(self, server: str | None) -> NamesOf:
        """Returns the functions that name a server's roles and channels by their ids."""
        guild = self.guild(server)

        def named(number: str, known: str) -> str | None:
            return _name_of(getattr(guild, known)(int(number))) if guild is not None and number.isdecimal() else None

        return {
            "role": partial(named, known="get_role"),
            "channel": partial(named, known="get_channel_or_thread"),
        }

    def is_forum(self, spot: DiscordPlace) -> bool:
        guild = self.guild(spot.server)
        return guild is not None and isinstance(guild.get_channel(int(spot.chat)), discord.ForumChannel)

    async def spot(self, channel: str, server: str | None, shown: Json | None = None) -> DiscordPlace | None:
        """Returns the place of a channel or thread, by discord.py's state, `shown` or a request; None if it is gone."""
        if server is None:
            return DiscordPlace(chat=channel)
        guild = self.guild(server)
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
                    self.hidden(channel, exc)
            remember(self._spots, channel, self._shown_spot(channel, server, shown))
        return self._spots[channel]

    def note_thread(self, server: str, thread: Json) -> None:
        """Keeps the place of a thread that a list shows, for `spot`."""
        number = str(thread["id"])
        remember(self._spots, number, self._shown_spot(number, server, thread))

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
        guild = self.guild(server)
        title = _name_of(None if guild is None else guild.get_channel(int(parent)))
        return DiscordPlace(
            chat=parent, thread=channel, title=f"#{title}" if title else "", topic=name, server=server, mine=mine
        )

    def hidden(self, channel: str, refused: DiscordRefused) -> None:
        """Logs that a channel can't be read. Raises `ChannelUnavailable` if that may change by itself."""
        if refused.number not in HIDDEN:
            raise ChannelUnavailable(str(refused)) from None
        log.info("discord.no_channel", channel=self._channel, chat=channel, error=str(refused))


def readable(guild: discord.Guild) -> list[Any]:
    """Returns the server's channels and threads whose messages the bot may read."""
    found: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads]
    return [channel for channel in found if _may_read(guild, channel)]


def _may_read(guild: discord.Guild, channel: Any) -> bool:
    try:
        allowed = channel.permissions_for(guild.me)
    except (discord.ClientException, AttributeError):
        return True  # the thread's parent or the bot's own member is not visible: trying to read does no harm
    return bool(allowed.view_channel and allowed.read_message_history)


def may_write(guild: discord.Guild, channel: Any) -> bool:
    try:
        allowed = channel.permissions_for(guild.me)
    except (discord.ClientException, AttributeError):
        return False  # not visible: whether it may is tried every ten minutes
    if isinstance(channel, discord.Thread):
        return bool(allowed.send_messages_in_threads and (not channel.locked or allowed.manage_threads))
    return bool(allowed.send_messages)


def _name_of(known: Any) -> str | None:
    return None if known is None else str(known.name)
