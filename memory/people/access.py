"""The gateway's interface to access decisions made in the chat, pairing codes, and the state that channels keep.

Invariant: each method is one transaction of `store/access.py` or `store/channel_state.py`, whose rules hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memory.store import access, channel_state
from memory.store.access import Grant, Pairing, State, Subject, Taken
from memory.store.database import Database


class Access:
    """One store's access decisions, by the configured ids of its channels."""

    def __init__(self, database: Database, *, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now

    async def state(self, channel: str, subject: Subject, reference: str) -> State | None:
        """Returns what was decided about a person (by user id) or a group (by chat id); None if nothing was."""
        return await self._database.read(lambda reader: access.state(reader, channel, subject, reference))

    async def grants(self, channel: str) -> list[Grant]:
        """Returns all decisions on a channel, oldest first."""
        return await self._database.read(lambda reader: access.grants(reader, channel))

    async def allow(self, channel: str, subject: Subject, reference: str, *, by: str) -> bool:
        """Lets a person or group in. Returns False if that was so already."""
        return await self._database.write(
            lambda tx: access.allow(tx, channel, subject, reference, by=by, now=self._now())
        )

    async def block(self, channel: str, subject: Subject, reference: str, *, by: str) -> bool:
        """Shuts a person or group out. Returns False if that was so already."""
        return await self._database.write(
            lambda tx: access.block(tx, channel, subject, reference, by=by, now=self._now())
        )

    async def open_pairing(self, channel: str, code: str) -> Pairing:
        """Makes `code` let one person in for ten minutes, unless too many codes are open."""
        return await self._database.write(lambda tx: access.open_pairing(tx, channel, code, now=self._now()))

    async def take_pairing(self, channel: str, user_id: str, code: str) -> Taken:
        """Takes a pairing code."""
        return await self._database.write(lambda tx: access.take_pairing(tx, channel, user_id, code, now=self._now()))

    async def move_group(self, channel: str, chat: str, new_chat: str, *, configured: bool) -> None:
        """Transfers what was decided about a group to the id it goes on under."""
        await self._database.write(
            lambda tx: access.move_group(tx, channel, chat, new_chat, configured=configured, now=self._now())
        )

    async def kept(self, channel: str, prefix: str) -> dict[str, str]:
        """Returns what a channel kept under names with this prefix."""
        return await self._database.read(lambda reader: channel_state.kept(reader, channel, prefix))

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        """Keeps values for a channel; None drops a name."""
        await self._database.write(lambda tx: channel_state.keep(tx, channel, values))
