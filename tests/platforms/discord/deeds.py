"""People's acts towards the bot, and the fate of its guilds and channels: the first half of `Control`.

Invariants: one HTTP request per call; nothing is kept here but the address; what the platform refuses raises
`ControlError` with its words.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tests.platforms.client import JSON, PlatformControl

ChannelKind: TypeAlias = Literal["text", "voice", "announcement", "forum", "media"]
#: The rights that the bot can be denied in a channel.
Permission: TypeAlias = Literal[
    "view",
    "send",
    "attach",
    "react",
    "history",
    "manage_messages",
    "manage_threads",
    "create_threads",
    "send_in_threads",
]
#: The bot of a server that is told of no other; 424242424242424242 is its id.
TOKEN = "NDI0MjQyNDI0MjQyNDI0MjQy.remora.for-tests-only"
#: The guild, its first channel and its owner, which are there from the beginning.
GUILD, GENERAL, OWNER = 900, 901, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The place and the id of a person's words."""

    channel: int
    message_id: int


class Deeds(PlatformControl):
    """See `Control`."""

    async def say(
        self,
        text: str = "",
        *,
        user: int = 1001,
        attachments: Sequence[tuple[str, bytes, str]] = (),
        voice: bytes | None = None,
        **more: Any,
    ) -> Said:
        """Writes as a person; without `channel` to the bot alone, else in a channel, thread or post.

        A reply pings whom it answers unless `ping` is False. `attachments` are (name, bytes, media type). With
        `forwarded` the text and the files are somebody else's. `sent_at` is in seconds UTC. `kind` is Discord's message
        type (7: somebody joined). `extra` is laid over the message as the bot gets it. `_say` in people.py names the
        others.
        """
        files = [(file, base64.b64encode(data).decode(), media) for file, data, media in attachments]
        sound = None if voice is None else base64.b64encode(voice).decode()
        said = await self.ask("say", text=text, user=user, attachments=files or None, voice=sound, **more)
        return Said(**said)

    async def edit(self, message_id: int, text: str) -> None:
        await self.ask("edit", message_id=message_id, text=text)

    async def unfurl(self, message_id: int) -> None:
        """Adds a link's preview to a person's message, as Discord does: an update that is no edit."""
        await self.ask("unfurl", message_id=message_id)

    async def react(self, message_id: int, emoji: str, *, user: int = 1001, gone: bool = False) -> None:
        await self.ask("react", message_id=message_id, emoji=emoji, user=user, gone=gone)

    async def delete(self, *message_ids: int) -> None:
        """Deletes messages, one after the other; the bot's too."""
        await self.ask("delete", message_ids=message_ids, bulk=False)

    async def delete_bulk(self, *message_ids: int) -> None:
        await self.ask("delete", message_ids=message_ids, bulk=True)

    async def slash(
        self,
        name: str,
        options: Mapping[str, str] | None = None,
        *,
        user: int = 1001,
        channel: int | None = None,
        unchecked: bool | None = None,
    ) -> int:
        """Uses a command as a person; returns the interaction's id.

        The command must be registered for the place and the person, unless `unchecked`.
        """
        asked = await self.ask(
            "slash", name=name, options=dict(options or {}), user=user, channel=channel, unchecked=unchecked
        )
        return int(asked["interaction"])

    async def autocomplete(
        self,
        name: str,
        options: Mapping[str, str],
        *,
        focused: str | None = None,
        user: int = 1001,
        channel: int | None = None,
    ) -> list[JSON] | None:
        """Types in an option (the last one given); returns the choices that are shown, None when none came in time."""
        asked = await self.ask(
            "autocomplete",
            name=name,
            options=dict(options),
            focused=focused or list(options)[-1],
            user=user,
            channel=channel,
        )
        choices = asked["choices"]
        return None if choices is None else list(choices)

    async def press(self, message_id: int, custom_id: str, *, user: int = 1001, stale: bool | None = None) -> int:
        """Presses a button as a person; returns the interaction's id. The button must be there, unless `stale`."""
        asked = await self.ask("press", message_id=message_id, custom_id=custom_id, user=user, stale=stale)
        return int(asked["interaction"])

    async def submit(self, interaction: int, entered: str | Mapping[str, str]) -> int:
        """Fills in the form that answered an interaction (its first field, or by custom id) and sends it off.

        Returns the new interaction's id.
        """
        return int((await self.ask("submit", interaction=interaction, entered=entered))["interaction"])

    async def dm(self, user: int = 1001) -> int:
        """The channel id of a person's direct chat with the bot."""
        return int((await self.ask("dm", user=user))["channel"])

    async def close_dm(self, user: int, *, closed: bool = True) -> None:
        """Has a person take no direct messages from the bot (50007), or take them again."""
        await self.ask("close_dm", user=user, closed=closed)

    async def admin(self, user: int, *, guild: int = GUILD) -> None:
        await self.ask("admin", user=user, guild=guild)

    async def add_guild(self, name: str = "Another", *, guild: int | None = None) -> tuple[int, int | None]:
        """Lets the bot into a guild, or back in, or ends its outage; returns its id, and a new one's text channel."""
        added = await self.ask("add_guild", name=name, guild=guild)
        return int(added["guild"]), added["channel"]

    async def remove_guild(self, guild: int = GUILD, *, unavailable: bool = False) -> None:
        """Throws the bot out, or (`unavailable`) begins an outage of the guild."""
        await self.ask("remove_guild", guild=guild, unavailable=unavailable)

    async def add_channel(
        self, name: str, *, guild: int = GUILD, kind: ChannelKind = "text", denied: Sequence[Permission] = ()
    ) -> int:
        """Makes a channel; returns its id. `denied` is what the bot may not do there."""
        made = await self.ask("add_channel", name=name, guild=guild, kind=kind, denied=list(denied))
        return int(made["channel"])

    async def deny(self, channel: int, *denied: Permission) -> None:
        """Sets what the bot may not do in a channel from now on; nothing gives all back."""
        await self.ask("deny", channel=channel, denied=denied)

    async def delete_channel(self, channel: int) -> None:
        await self.ask("delete_channel", channel=channel)

    async def open_thread(
        self,
        channel: int = GENERAL,
        name: str = "Thread",
        *,
        user: int = 1001,
        message_id: int | None = None,
        private: bool = False,
    ) -> int:
        """Opens a thread as a person, from a message or from nothing; returns its id."""
        opened = await self.ask(
            "open_thread", channel=channel, name=name, user=user, message_id=message_id, private=private
        )
        return int(opened["channel"])

    async def forum_post(self, channel: int, title: str, text: str, *, user: int = 1001) -> int:
        """Opens a post in a forum as a person; returns its id, which is also that of its first message."""
        opened = await self.ask("open_thread", channel=channel, name=title, user=user, text=text)
        return int(opened["channel"])

    async def archive(self, thread: int, *, archived: bool = True) -> None:
        await self.ask("set_thread", channel=thread, archived=archived)

    async def lock(self, thread: int, *, locked: bool = True, archived: bool | None = None) -> None:
        """Locks a thread as a moderator; with `archived` both at once, as Discord's "close and lock"."""
        await self.ask("set_thread", channel=thread, locked=locked, archived=archived)


def bot_id(token: str) -> int:
    """A token begins with the bot's id in base64; any other text gets an id too."""
    head = token.partition(".")[0]
    try:
        return int(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode())
    except (ValueError, binascii.Error):
        return 4_000_000 + zlib.crc32(token.encode())
