"""Passes on to the host what people do with messages on Discord: say, edit, delete, react.

Invariants: the frames are read here, as history has the same form. What can't be read of a message is left out, and
the rest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from channels.base import ChannelError, ChatKind, Inbound, Reaction, reaction_of
from channels.discord.intake import ChannelLanes, Event
from channels.discord.interactions import BotSession
from channels.discord.payloads import (
    UNREADABLE,
    DiscordPlace,
    Json,
    display,
    edited_at,
    is_from_person,
    is_reply,
    made_at,
    quotation,
    read,
    sieved,
)
from channels.discord.places import Places
from channels.discord.rest import DiscordRefused
from channels.discord.show import remember


class Messages:
    """The messages of one run. `unread` is told of a frame that can't be read, and why."""

    def __init__(
        self,
        session: BotSession,
        intake: ChannelLanes,
        places: Places,
        *,
        mention: bool,
        unread: Callable[[str, Exception], None],
        now: Callable[[], int],
        request_seconds: float,
    ) -> None:
        self._channel, self._host, self._me = session.channel, session.host, session.me
        self._rest, self._untold = session.rest, session.unread
        self._intake, self._places = intake, places
        self._mention, self._unread, self._now = mention, unread, now
        self._request_seconds = request_seconds
        self._opened: dict[str, bool] = {}  # the threads whose first message was handed on

    def event(self, message: Json, server: str | None) -> Event:
        work = partial(self._take, message, server)
        return Event(key=f"m{message['id']}", number=int(message["id"]), work=work)

    async def _take(self, message: Json, server: str | None) -> None:
        channel = str(message["channel_id"])
        spot = await self._places.spot(channel, server)
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
        thread, guild = spot.thread, self._places.guild(spot.server)
        known = thread in self._opened or spot.mine or inbound.quoted is not None
        if thread is None or guild is None or known or not inbound.addressed:
            return inbound
        remember(self._opened, thread, True)
        if thread == inbound.message_id:
            return inbound
        with suppress(ChannelError, *UNREADABLE):
            opening = await self._shown_message(thread if self._places.is_forum(spot) else spot.chat, thread)
            if opening is not None:
                names = self._places.names_of(spot.server)
                quoted = quotation(opening, inbound.author_id, me=self._me.id, kind="opening", **names)
                return replace(inbound, quoted=quoted)
        return inbound

    def on_edit(self, message: Json) -> None:
        edited = edited_at(message)
        channel, server = str(message["channel_id"]), message.get("guild_id")
        if "content" not in message or not is_from_person(message):
            return
        if edited is None:  # Discord has only resolved the links
            if message.get("embeds"):
                key = f"v{message['id']}"
                self._intake.put(channel, Event(key=key, work=partial(self._take_previews, message, server)))
            return
        key = f"e{message['id']}-{edited}"
        self._intake.put(channel, Event(key=key, work=partial(self._take_edit, message, server, edited, key)))

    async def _take_edit(self, message: Json, server: str | None, edited: int, key: str) -> None:
        spot = await self._places.spot(str(message["channel_id"]), server)
        inbound = None if spot is None else self._read(message, spot)
        if inbound is not None:
            await self._host.on_inbound(replace(inbound, update_key=key, sent_at=edited, edited=True))

    async def _take_previews(self, message: Json, server: str | None) -> None:
        spot = await self._places.spot(str(message["channel_id"]), server)
        inbound = None if spot is None else self._read(message, spot)
        if inbound is not None and any(beside.kind == "preview" for beside in inbound.attachments):
            await self._host.on_previews(inbound)

    def on_delete(self, deleted: Json) -> None:
        numbers = [str(one) for one in deleted.get("ids") or [deleted["id"]]]
        channel, server = str(deleted["channel_id"]), deleted.get("guild_id")
        work = partial(self._take_deletion, channel, server, numbers)
        self._intake.put(channel, Event(key=f"d{numbers[0]}", work=work))

    async def _take_deletion(self, channel: str, server: str | None, numbers: Sequence[str]) -> None:
        spot = await self._places.spot(channel, server)
        if spot is not None:
            await self._host.on_deleted(self._places.place(spot), numbers)

    def on_reaction(self, reaction: Json, *, kept: bool) -> None:
        emoji, user = reaction["emoji"], str(reaction["user_id"])
        told = None if emoji.get("id") else reaction_of(emoji.get("name") or "")
        if told is not None and user != self._me.id:
            key = f"j{reaction['message_id']}-{user}"
            work = partial(self._take_reaction, reaction, key, told, kept=kept)
            self._intake.put(str(reaction["channel_id"]), Event(key=key, work=work))

    async def _take_reaction(self, reaction: Json, key: str, told: Reaction, *, kept: bool) -> None:
        spot = await self._places.spot(str(reaction["channel_id"]), reaction.get("guild_id"))
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
        await self._host.on_reacted(inbound, told, kept=kept)

    def _read(self, message: Json, spot: DiscordPlace) -> Inbound | None:
        """Returns as much of a person's message as can be read; None if nothing can, or if that was said lately."""
        try:
            return self._inbound(message, spot)
        except UNREADABLE as exc:
            self._unread("MESSAGE_CREATE", exc)
        rest = sieved(message, lambda part: self._inbound(part, spot), needed=("id", "channel_id", "author"))
        inbound = None if rest is None else self._inbound(rest, spot)
        return None if inbound is None or (inbound.is_empty and not self._untold.may_tell(spot.chat)) else inbound

    def _inbound(self, message: Json, spot: DiscordPlace) -> Inbound:
        """Returns a person's message as the host takes it."""
        tags, names = self._places.tags(spot.server), self._places.names_of(spot.server)
        said = read(message, me=self._me.id, tags=tags, **names)
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
