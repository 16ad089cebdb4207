"""The acts of a test on the platform: speak and press (deeds.py), and here drop, break and look.

Invariants: one HTTP request per call; nothing is kept here but the address; what the platform refuses raises
`ControlError` with its words.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Literal, TypeAlias

from tests.platforms.client import JSON, ControlError, started
from tests.platforms.discord.deeds import GENERAL, GUILD, OWNER, TOKEN, Deeds, Said, bot_id

#: The kinds of faults. `reset` is a TCP reset, `close` an orderly end, `cut` half of the answer's bytes and then the
#: end, `flood` a 429 that starts a real retry_after, `delay` waits and goes on as if nothing were.
Deed: TypeAlias = Literal[
    "status", "flood", "garbage", "empty", "hang", "reset", "close", "cut", "delay", "kill", "refuse"
]

__all__ = ["GENERAL", "GUILD", "OWNER", "TOKEN", "Control", "Said", "reached", "running"]


class Control(Deeds):
    """The platform as one bot's tests see it."""

    @property
    def api_url(self) -> str:
        """The base address of the API, for a channel's `base_url`."""
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http", "ws", 1) + "/gateway"

    @property
    def bot_id(self) -> int:
        return bot_id(self.token)

    @property
    def mention(self) -> str:
        """The bot, as people call it in a message."""
        return f"<@{self.bot_id}>"

    # Discord's acts.

    async def event(self, name: str, data: JSON) -> None:
        """Sends any event to every session."""
        await self.ask("event", name=name, data=data)

    async def drop_connection(self, *, resumable: bool = True, code: int | None = None) -> int:
        """Breaks the gateway connections, or closes them with `code`; returns how many.

        Not `resumable`: RESUME is refused.
        """
        return int((await self.ask("drop", resumable=resumable, code=code))["dropped"])

    async def gateway(self, **terms: Any) -> None:
        """Sets how the gateway behaves from now on (see gateway.Terms), for all bots."""
        await self.ask("gateway", **terms)

    @asynccontextmanager
    async def offline(self, *, resumable: bool = False) -> AsyncIterator[None]:
        """No gateway while the block runs: what is said in it is only found over REST, or replayed if `resumable`."""
        await self.gateway(accepting=False)
        await self.drop_connection(resumable=resumable)
        try:
            yield
        finally:
            await self.gateway(accepting=True)

    async def bot(self, *, reads_messages: bool | None = None, name: str | None = None) -> None:
        """Switches the message content intent of the application on or off, or renames it."""
        await self.ask("bot", reads_messages=reads_messages, name=name)

    async def limit(
        self, method: str, count: int | None = 5, *, per: float = 5, retry_after: float | None = None
    ) -> None:
        """Sets a rate-limit bucket for each place of a method, with its headers; `count=None` removes it.

        `retry_after` replaces the seconds that would really be left.
        """
        await self.ask("limit", method=method, count=count, per=per, retry_after=retry_after)

    async def rules(self, **rules: float) -> None:
        """Sets the rules for commands and answers.

        These are how many commands a day may be made (`create_limit`, 200), what status the refusal has
        (`create_status`, 400), how long a callback may take (`answer_seconds`, 3), and for how long a nonce holds
        (`nonce_seconds`, 300).
        """
        await self.ask("rules", **rules)

    # A test's view.

    async def texts(self, channel: int, *, by_bot: bool = True) -> list[str]:
        """The texts that stand in a channel for everybody, in order: those of the bot, or else those of people."""
        seen = (await self.ask("seen", channel=channel))["seen"]
        return [one["text"] for one in seen if one["by_bot"] == by_bot]

    async def seen(self, channel: int, *, user: int | None = None) -> list[tuple[str, str]]:
        """Who said what in a channel, in order; with `user` also what only that person sees."""
        return [(one["who"], one["text"]) for one in (await self.ask("seen", channel=channel, user=user))["seen"]]

    async def ephemeral(self, user: int, channel: int) -> list[str]:
        """Returns what only that person sees in a channel, in order."""
        seen = (await self.ask("seen", channel=channel, user=user))["seen"]
        return [one["text"] for one in seen if one["ephemeral"]]

    async def message(self, message_id: int) -> JSON:
        """A message with all that was asked for it: `asked` (the bodies), `edits`, `only_for`, `nonce`, `deleted`."""
        state = await self.state()
        for place in state["channels"].values():
            for message in place["messages"]:
                if message["id"] == str(message_id):
                    return dict(message)
        raise ControlError(f"there is no message {message_id}")

    async def interaction(self, interaction: int) -> JSON:
        """Returns the fate of an interaction.

        It has `response` (the callback's type), `form`, `choices`, `original` and `followups`.
        """
        return dict((await self.state())["interactions"][str(interaction)])

    async def commands(self, guild: int | None = None) -> list[JSON]:
        return list((await self.state())["commands"].get("global" if guild is None else str(guild), []))

    async def violations(self, kind: str | None = None) -> list[JSON]:
        """Returns what the bot should not have done, of one kind or of all.

        The kinds are "ping" (`pinged` is what it named), "preview", "too long", "early" (inside a retry_after), "double
        answer" and "late".
        """
        return [one for one in (await self.state())["violations"] if kind in (None, one["kind"])]

    async def files(self, channel: int, *, user: int | None = None) -> list[tuple[str, bytes]]:
        """The files of the bot's messages in a channel as a person (or everybody) sees them, in order: names and bytes.

        One that was shown twice is twice there.
        """
        shown = (await self.ask("files", channel=channel, user=user))["files"]
        return [(name, base64.b64decode(data)) for name, data in shown]


@contextmanager
def reached(platform: Control) -> Iterator[None]:
    """While the block runs, discord.py's own addresses in this process lead to the platform."""
    # A platform of its own process needs nothing of it, and it takes its time to load.
    import yarl
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE = platform.api_url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(platform.gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway


def running(*arguments: str, token: str = TOKEN) -> AbstractAsyncContextManager[Control]:
    """The platform in a process of its own, ended with the block. `arguments` are those of the command line."""
    return started(Control, "tests.platforms.discord", token, arguments)
