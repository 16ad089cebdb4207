"""In which of Discord's chats the bot is, and whether it may write there, as the host is told.

Invariants: a change is reported in its turn among the chat's events, once discord.py has handled it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import discord

from channels.discord.intake import ChannelLanes, Event
from channels.discord.interactions import BotSession
from channels.discord.payloads import Json
from channels.discord.places import Places, may_write


class Presence:
    """The presence of one run."""

    def __init__(self, session: BotSession, intake: ChannelLanes, places: Places) -> None:
        self._channel, self._host, self._me = session.channel, session.host, session.me
        self._intake, self._places = intake, places

    def returned(self, guild: discord.Guild, chats: Sequence[str]) -> None:
        """Reports that the bot is present again in the chats that still exist."""
        there = [chat for chat in chats if guild.get_channel_or_thread(int(chat)) is not None]
        for chat in there:
            self._intake.saw(chat, str(guild.id))
        self.tell(there, present=True)

    def on_channel_delete(self, channel: Json) -> None:
        if channel.get("guild_id") is not None:
            self.tell([str(channel["id"])], present=False)

    def on_channel_update(self, channel: Json) -> None:
        server, number = channel.get("guild_id"), str(channel["id"])
        guild = self._places.guild(server)
        if guild is not None:
            inside = [str(thread.id) for thread in guild.threads if str(thread.parent_id) == number]
            self._look_at_rights(str(server), [number, *inside])

    def on_roles(self, changed: Json) -> None:
        """Handles a changed role, or a member whose roles have changed."""
        if "user" not in changed or str(changed["user"]["id"]) == self._me.id:
            server = str(changed["guild_id"])
            self._look_at_rights(server, self._intake.chats_of(server))

    def _look_at_rights(self, server: str, chats: Sequence[str]) -> None:
        """Reports the chats in which the bot may write, once discord.py has handled the change."""
        for chat in chats:
            self._intake.put(chat, Event(key=f"t{chat}", work=partial(self._rights, server, chat)))

    async def _rights(self, server: str, chat: str) -> None:
        guild = self._places.guild(server)
        known = None if guild is None else guild.get_channel_or_thread(int(chat))
        if guild is not None and known is not None and may_write(guild, known):
            spot = await self._places.spot(chat, server)
            assert spot is not None
            await self._host.on_rights(self._channel, spot.chat, write=True, threads=[spot.thread])

    def tell(self, chats: Sequence[str], *, present: bool) -> None:
        for chat in chats:
            self._intake.put(chat, Event(key=f"p{chat}", work=partial(self._presence, chat, present=present)))

    async def _presence(self, chat: str, *, present: bool) -> None:
        await self._host.on_presence(self._channel, chat, present=present)
        if not present:
            self._intake.left(chat)
