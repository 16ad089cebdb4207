"""A Discord bot as the gateway sees it: its channel and its identity.

Invariants: those of its parts apply. The token never appears in a log line or an error text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from channels import markup
from channels.base import (
    Attachment,
    Capabilities,
    Channel,
    ChannelError,
    ChannelRefused,
    Chunk,
    Health,
    Host,
    Inbound,
    Outbound,
    Place,
)
from channels.discord.gateway import NO_INTENT, Receiver
from channels.discord.interactions import BotSession
from channels.discord.payloads import FILE_LIMIT, find_attachment
from channels.discord.rest import API, DiscordBot, DiscordRefused, Rest
from channels.discord.show import DiscordScreen
from channels.supervision import Endurance, Pace, UnreadUpdates


async def probe(
    token: str, base_url: str = API, *, proxy: str | None = None, request_seconds: float = 30
) -> DiscordBot:
    """Returns the bot of the token. Raises `ChannelRefused` for a wrong token, else `ChannelUnavailable`."""
    # With one request of each kind no rate limit is ever waited for, so the clock that measures waits may stand still.
    return await Rest(token, base_url, proxy=proxy, now=lambda: 0, sleep=asyncio.sleep).introduce(request_seconds)


async def servers(
    token: str, base_url: str = API, *, proxy: str | None = None, request_seconds: float = 30
) -> dict[str, str]:
    """Returns the names, by id, of the servers that the bot is in (at most 200). Raises as `probe` does."""
    return await Rest(token, base_url, proxy=proxy, now=lambda: 0, sleep=asyncio.sleep).servers(request_seconds)


class DiscordChannel(Channel):
    """One Discord bot.

    `send`, `revise`, `typing` and `fetch` also work while `run` is not running. With `mention`, the bot is addressed in
    servers only by a mention, a reply to it, or in a thread that it started; without it, every message addresses the
    bot. `proxy` is as `own` of `proxies.proxy_to`. `now` returns milliseconds UTC. All bots of a process use the same
    `base_url`.
    """

    id = ""
    platform = "discord"
    capabilities = Capabilities(
        stream="edit",
        resend="same",
        buttons=True,
        introduces=True,
        revise_seconds=1.5,
        hidden=True,
        file_bytes=FILE_LIMIT,
    )

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the protocol's word
        token: str,
        base_url: str = API,
        proxy: str | None = None,
        mention: bool = True,
        stream: Literal["edit", "mark"] = "edit",
        now: Callable[[], int],
        pace: Pace | None = None,
    ) -> None:
        """Raises `ChannelRefused` if `token` can't be a token."""
        self.id = id
        if stream == "mark":
            self.capabilities = replace(self.capabilities, stream="none", marks=True)
        self._pace = pace or Pace()
        self._token = token.strip()
        self._base_url = base_url
        self._rest = Rest(token, base_url, proxy=proxy, now=now, sleep=self._pace.sleep)
        self._mention = mention
        self._now = now
        self._me = ""
        self._screen = DiscordScreen(
            id,
            self._rest,
            me=lambda: self._me,
            direct_opened=self._direct_opened,
            now=now,
            request_seconds=self._pace.request_seconds,
        )
        self._receiver: Receiver | None = None
        self._ended = ""
        self._contact: int | None = None
        self._endurance = Endurance(id)
        self._unread = UnreadUpdates(id, now)

    receives_alone = True

    def health(self) -> Health:
        """Returns the health, judged by the gateway alone: sending may still work while nothing comes in."""
        trouble = self._ended if self._receiver is None else self._receiver.trouble
        return Health(contact=self._contact, trouble=trouble, unread=self._unread.count)

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return markup.discord(text, markdown=markdown)

    async def run(self, host: Host) -> None:
        """Listens until cancelled. Raises `ChannelError`; `ChannelRefused` if only the operator can help."""
        async with self._rest.open():
            try:
                me = await self._rest.introduce(self._pace.request_seconds)
                if not me.reads_messages:
                    raise ChannelRefused(NO_INTENT)
                self._me = me.id
                self._ended = ""
                self._receiver = Receiver(
                    BotSession(
                        channel=self.id, host=host, me=me, rest=self._rest, screen=self._screen, unread=self._unread
                    ),
                    self._endurance,
                    token=self._token,
                    base_url=self._base_url,
                    mention=self._mention,
                    contacted=self._contacted,
                    now=self._now,
                    pace=self._pace,
                )
                await self._receiver.run()
            except ChannelError as exc:
                self._ended = exc.reason
                raise
            finally:
                # After any end of the run, nothing comes in until the next one.
                self._receiver = None
                self._ended = self._ended or "nothing is received: the channel's run has ended"

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        """See `Channel`. Asks for a new address if the old one has expired: Discord signs them for about a day."""
        try:
            known = json.loads(attachment.reference)
            channel, message, number, url = (known[name] for name in ("channel", "message", "attachment", "url"))
        except (ValueError, TypeError, KeyError):
            raise ChannelError("this attachment has no bytes") from None
        try:
            return await self._rest.read(url, limit=limit, seconds=self._pace.request_seconds)
        except DiscordRefused as exc:
            if exc.status not in (403, 404):
                raise
        path = f"/channels/{int(channel)}/messages/{int(message)}"
        shown = await self._rest.call(
            "GET", path, bucket=f"/channels/{channel}/messages/id", seconds=self._pace.request_seconds
        )
        fresh = find_attachment(shown, number) if isinstance(shown, dict) else None
        if fresh is None:
            raise ChannelError("the attachment is not there any more")
        return await self._rest.read(fresh, limit=limit, seconds=self._pace.request_seconds)

    def link(self, place: Place, message_id: str) -> str | None:
        """See `Channel`. Also returns None if this run does not know the chat's server or nothing is received."""
        return None if self._receiver is None else self._receiver.link(place, message_id)

    def names(self, place: Place) -> tuple[str, str]:
        return ("", "") if self._receiver is None else self._receiver.names(place)

    async def send(self, outbound: Outbound) -> str:
        return await self._screen.send(outbound)

    async def revise(self, place: Place, reference: str, text: str) -> None:
        await self._screen.revise(place, reference, text)

    async def typing(self, place: Place) -> None:
        await self._screen.typing(place)

    async def mark(self, place: Place, message_id: str, *, on: bool) -> None:
        await self._screen.mark(place, message_id, on=on)

    def _direct_opened(self, channel: str) -> None:
        if self._receiver is not None:
            self._receiver.direct_opened(channel)

    def _contacted(self) -> None:
        self._contact = self._now()
