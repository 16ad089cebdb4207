"""One Discord bot, as the gateway sees it: its channel, and who it is.

Invariants: those of its parts; the token stands in no log line and no error text.
"""

from __future__ import annotations

import asyncio
import json
import random as dice
from collections.abc import Awaitable, Callable, Sequence

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
from channels.discord.payloads import FILE_LIMIT, find_attachment
from channels.discord.rest import API, BotFacts, Refused, Rest
from channels.discord.show import Screen
from channels.supervision import Endurance


async def probe(token: str, base_url: str = API, *, request_seconds: float = 30) -> BotFacts:
    """Whom the token belongs to. Raises `ChannelRefused` for a wrong token, else `ChannelUnavailable`."""
    # One request of each kind is made, so no limit is ever waited for, and the clock that measures waits may stand.
    return await Rest(token, base_url, now=lambda: 0, sleep=asyncio.sleep).introduce(request_seconds)


async def servers(token: str, base_url: str = API, *, request_seconds: float = 30) -> dict[str, str]:
    """The servers that the bot is in (at most 200): the name of each by its id. Raises as `probe`."""
    return await Rest(token, base_url, now=lambda: 0, sleep=asyncio.sleep).servers(request_seconds)


class DiscordChannel(Channel):
    """One Discord bot.

    `send`, `revise`, `typing` and `fetch` work also while `run` does not. With `mention` the bot is addressed in
    servers only by a mention, a reply to it, or in a thread that it started, else by everything. `now` gives
    milliseconds UTC; `random` numbers in [0, 1). All bots of one process use the same `base_url`.
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
        mention: bool = True,
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = dice.random,
        request_seconds: float = 30,
    ) -> None:
        """Raises `ChannelRefused` for a token that can't be one."""
        self.id = id
        self._token = token.strip()
        self._base_url = base_url
        self._rest = Rest(token, base_url, now=now, sleep=sleep)
        self._mention = mention
        self._now = now
        self._sleep = sleep
        self._random = random
        self._request_seconds = request_seconds
        self._screen = Screen(id, self._rest, now=now, request_seconds=request_seconds)
        self._receiver: Receiver | None = None
        self._ended = ""
        self._contact: int | None = None
        self._endurance = Endurance(id)

    def health(self) -> Health:
        """Fed by the gateway alone: messages that still go out say nothing about whether any come in."""
        trouble = self._ended if self._receiver is None else self._receiver.trouble
        return Health(contact=self._contact, trouble=trouble)

    def chunks(self, text: str, *, markdown: bool) -> Sequence[Chunk]:
        return markup.discord(text, markdown=markdown)

    async def run(self, host: Host) -> None:
        """Listen until cancelled. Raises `ChannelError`: `ChannelRefused` where only the operator can help."""
        async with self._rest.open():
            try:
                me = await self._rest.introduce(self._request_seconds)
                if not me.reads_messages:
                    raise ChannelRefused(NO_INTENT)
                self._screen.me = me.id
                self._ended = ""
                self._receiver = Receiver(
                    self.id,
                    host,
                    me,
                    self._rest,
                    self._screen,
                    self._endurance,
                    token=self._token,
                    base_url=self._base_url,
                    mention=self._mention,
                    contacted=self._contacted,
                    now=self._now,
                    sleep=self._sleep,
                    random=self._random,
                    request_seconds=self._request_seconds,
                )
                await self._receiver.run()
            except ChannelError as exc:
                self._ended = str(exc)
                raise
            finally:
                # Whatever ended the run, until the next one nothing comes in.
                self._receiver = None
                self._ended = self._ended or "nothing is received: the channel's run has ended"

    async def fetch(self, inbound: Inbound, attachment: Attachment, *, limit: int) -> bytes:
        """See `Channel`. An address that is too old is asked for anew: Discord signs them for about a day."""
        try:
            known = json.loads(attachment.reference)
            channel, message, number, url = (known[name] for name in ("channel", "message", "attachment", "url"))
        except (ValueError, TypeError, KeyError):
            raise ChannelError("this attachment has no bytes") from None
        try:
            return await self._rest.read(url, limit=limit, seconds=self._request_seconds)
        except Refused as exc:
            if exc.status not in (403, 404):
                raise
        path = f"/channels/{int(channel)}/messages/{int(message)}"
        shown = await self._rest.call(
            "GET", path, bucket=f"/channels/{channel}/messages/id", seconds=self._request_seconds
        )
        fresh = find_attachment(shown, number) if isinstance(shown, dict) else None
        if fresh is None:
            raise ChannelError("the attachment is not there any more")
        return await self._rest.read(fresh, limit=limit, seconds=self._request_seconds)

    def link(self, place: Place, message_id: str) -> str | None:
        """None also for a chat of which this run knows no server, and while nothing is received."""
        return None if self._receiver is None else self._receiver.link(place, message_id)

    async def send(self, outbound: Outbound) -> str:
        return await self._screen.send(outbound)

    async def revise(self, place: Place, reference: str, text: str) -> None:
        await self._screen.revise(place, reference, text)

    async def typing(self, place: Place) -> None:
        await self._screen.typing(place)

    def _contacted(self) -> None:
        self._contact = self._now()
