"""Turns Discord's interactions (slash commands, forms, buttons, completions) into messages, acknowledged in time.

Invariants: an interaction is acknowledged only after its message is committed or the time for the commit is over. An
acknowledgement that Discord does not accept stops nothing. Commands are registered only where they changed, and a
registration that Discord refuses is not repeated for a day.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import structlog

from channels.base import ChannelError, ChannelUnavailable, CommandSpec, Form, Host, Inbound, NotTaken
from channels.discord.payloads import (
    DATA_LIMIT,
    EPHEMERAL,
    UNREADABLE,
    DiscordPlace,
    Json,
    Ticket,
    choices,
    display,
    entered,
    fingerprint,
    focused,
    made_at,
    modal,
    option_of,
    private_commands,
    server_commands,
    typed,
)
from channels.discord.rest import DiscordBot, DiscordRateLimited, DiscordRefused, Rest
from channels.discord.show import DiscordScreen, remember
from channels.supervision import Pace, UnreadUpdates

log = structlog.get_logger(__name__)

#: Discord wants an interaction acknowledged within 3 s of its making. This many of these seconds are left for this
#: program in the worst case, in which both the form and the commit take all their time.
_DECIDE_SECONDS = 2.4
_COMMIT_SECONDS = 1.5
_FORM_SECONDS = 1.2
_SUGGEST_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_ALREADY = 40060  # the error code for an interaction that is already acknowledged
_LATER = 24 * 3_600_000  # milliseconds until commands that Discord refused are offered again
_Handler: TypeAlias = Callable[[Json, float], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BotSession:
    """The two sides that one run of a channel connects: Discord, where the bot is `me`, and the host."""

    channel: str
    host: Host
    me: DiscordBot
    rest: Rest
    screen: DiscordScreen
    unread: UnreadUpdates


class Interactions:
    """The interactions of one run. `spot` returns a channel's place; `heard` is told where a person has used one."""

    def __init__(
        self,
        session: BotSession,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        spot: Callable[[str, str | None, Json | None], Awaitable[DiscordPlace | None]],
        heard: Callable[[DiscordPlace], None],
        now: Callable[[], int],
        pace: Pace,
    ) -> None:
        self._channel = session.channel
        self._host = session.host
        self._me = session.me
        self._rest = session.rest
        self._screen = session.screen
        self._spawn = spawn
        self._spot = spot
        self._heard = heard
        self._unread = session.unread
        self._now = now
        self._request_seconds = pace.request_seconds
        self._forms: dict[str, str] = {}
        self._offering = asyncio.Lock()
        self._commits: set[asyncio.Task[NotTaken | None]] = set()

    def take(self, interaction: Json) -> None:
        # An interaction does not queue behind the channel's messages, because Discord waits only 3 s for an answer.
        until = asyncio.get_running_loop().time() + _DECIDE_SECONDS
        handlers = {2: self._commanded, 3: self._pressed, 4: self._suggest, 5: self._submitted}
        self._spawn(self._handled(handlers.get(interaction.get("type", 0), self._unknown), interaction, until))

    async def _handled(self, handle: _Handler, interaction: Json, until: float) -> None:
        for attempt in (handle, self._unknown):
            try:
                await attempt(interaction, until)
            except UNREADABLE as exc:
                self._unread.note("INTERACTION_CREATE", type(exc).__name__)
            else:
                return

    async def _unknown(self, interaction: Json, until: float) -> None:
        """Hands over an interaction that can't be read as an empty message, so that its user is told in words."""
        inbound = await self._interacted(interaction)
        if inbound is not None:
            await self._commit(interaction, inbound, until, private=inbound.server is not None)

    async def close(self, seconds: float) -> None:
        """Lets running commits finish, because Discord delivers an interaction only once."""
        if self._commits:
            await asyncio.wait(self._commits, timeout=seconds)
        for commit in self._commits:
            commit.cancel()
        await asyncio.gather(*self._commits, return_exceptions=True)

    async def _commanded(self, interaction: Json, until: float) -> None:
        data = interaction["data"]
        spec = self._spec(str(data.get("name")))
        inbound = await self._interacted(interaction, text=typed(spec, data))
        if inbound is None:
            return
        if spec is not None and spec.forms:
            form = await self._form(inbound)
            if form is not None:
                custom_id = inbound.text if len(inbound.text) <= DATA_LIMIT else f"form {interaction['id']}"
                remember(self._forms, custom_id, inbound.text)
                await self._respond(interaction, {"type": 9, "data": modal(form, custom_id)})
                return
        private = inbound.server is not None and not (spec and spec.shared)
        await self._commit(interaction, inbound, until, private=private)

    async def _form(self, inbound: Inbound) -> Form | None:
        try:
            async with asyncio.timeout(_FORM_SECONDS):
                return await self._host.form(inbound)
        except (TimeoutError, NotTaken) as exc:
            log.warning("discord.no_form", channel=self._channel, error=str(exc) or "it took too long")
            return None

    async def _submitted(self, interaction: Json, until: float) -> None:
        """Handles a filled-in form: its command continues with the entered values."""
        custom_id = str(interaction["data"].get("custom_id", ""))
        begun = self._forms.get(custom_id, custom_id)
        if not begun.startswith("/"):
            return  # from an earlier run and too long to travel with the form: Discord tells the person to try again
        spec = self._spec(begun[1:].partition(" ")[0])
        inbound = await self._interacted(interaction, text=f"{begun} {entered(interaction['data'])}".strip())
        if inbound is not None:
            private = inbound.server is not None and not (spec and spec.shared)
            await self._commit(interaction, inbound, until, private=private)

    async def _pressed(self, interaction: Json, until: float) -> None:
        message = interaction.get("message") or {}
        custom_id = str(interaction["data"].get("custom_id", ""))
        inbound = await self._interacted(interaction, pressed=custom_id, message=str(message.get("id", "")))
        if inbound is not None:
            private = bool(int(message.get("flags") or 0) & EPHEMERAL)
            await self._commit(interaction, inbound, until, private=private)

    async def _suggest(self, interaction: Json, _until: float) -> None:
        data = interaction["data"]
        wanted = focused(data)
        inbound = None
        if wanted is not None:
            spec = self._spec(str(data.get("name")))
            inbound = await self._interacted(interaction, text=typed(spec, data, without=wanted[0]))
        found: list[Json] = []
        if wanted is not None and inbound is not None:
            with suppress(TimeoutError, ChannelError):
                async with asyncio.timeout(_SUGGEST_SECONDS):
                    option = option_of(self._spec(str(data.get("name"))), wanted[0])
                    found = choices(await self._host.suggest(inbound, option, wanted[1]))
        await self._respond(interaction, {"type": 8, "data": {"choices": found}})

    async def _interacted(
        self, interaction: Json, *, text: str = "", pressed: str | None = None, message: str = ""
    ) -> Inbound | None:
        """Returns an interaction as a message of its user; None if its place is not known."""
        member = interaction.get("member")
        user = (member or {}).get("user") or interaction.get("user")
        shown = interaction.get("channel")
        channel = interaction.get("channel_id") or (shown or {}).get("id")
        if user is None or channel is None:
            return None
        try:
            spot = await self._spot(str(channel), interaction.get("guild_id"), shown)
        except ChannelUnavailable as exc:
            log.warning("discord.no_channel", channel=self._channel, chat=channel, error=str(exc))
            return None
        if spot is None:
            return None
        return Inbound(
            channel=self._channel,
            platform="discord",
            bot_id=self._me.id,
            update_key=f"i{interaction['id']}",
            chat=spot.chat,
            chat_kind="private" if spot.server is None else "group",
            author_id=str(user["id"]),
            author_name=display(user, member),
            message_id=message or str(interaction["id"]),
            text=text,
            sent_at=made_at(interaction["id"]),
            thread=spot.thread,
            chat_title=spot.title,
            thread_title=spot.topic,
            pressed=pressed,
            server=spot.server,
            language=interaction.get("locale", ""),
        )

    async def _commit(self, interaction: Json, inbound: Inbound, until: float, *, private: bool) -> None:
        """Hands over an interaction and acknowledges it until `until` (loop seconds), or tells its user why not."""
        press = inbound.pressed is not None
        ticket = Ticket(
            app=str(interaction["application_id"]),
            id=str(interaction["id"]),
            token=str(interaction["token"]),
            user=inbound.author_id,
            private=private,
            message=inbound.message_id if press else "",
        )
        self._heard(DiscordPlace(chat=inbound.chat, server=inbound.server))
        acknowledged = self._screen.acknowledging(ticket)
        try:
            commit = asyncio.create_task(self._taken(replace(inbound, ticket=ticket.to_text())))
            self._commits.add(commit)
            commit.add_done_callback(self._commits.discard)
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait({commit}, timeout=max(0.0, min(_COMMIT_SECONDS, left)))
            defer: Json = {"type": 6} if press else {"type": 5, "data": {"flags": EPHEMERAL if private else 0}}
            acknowledged.set_result(await self._respond(interaction, defer))
        finally:
            if not acknowledged.done():
                acknowledged.set_result(False)
        error = await asyncio.shield(commit)
        if error is not None:
            await self._screen.tell(ticket, str(error), apart=press)

    async def _taken(self, inbound: Inbound) -> NotTaken | None:
        try:
            await self._host.on_inbound(inbound)
        except NotTaken as exc:
            return exc
        return None

    async def _respond(self, interaction: Json, response: Json) -> bool:
        """Sends Discord the response to an interaction. Returns False if it came too late or was not received."""
        path = f"/interactions/{interaction['id']}/{interaction['token']}/callback"
        try:
            await self._rest.call("POST", path, body=response, seconds=_ANSWER_SECONDS, signed=False)
        except ChannelError as exc:
            log.warning("discord.not_acknowledged", channel=self._channel, kind=response["type"], error=str(exc))
            # If Discord may have accepted the response, the answer is tried in place. Discord tells if it had not.
            return not exc.certain or (isinstance(exc, DiscordRefused) and exc.number == _ALREADY)
        return True

    def _spec(self, name: str) -> CommandSpec | None:
        return next((spec for spec in self._host.commands if spec.name == name), None)

    async def offer(self, servers: Sequence[str]) -> None:
        """Registers the commands in servers that don't have them yet. Best effort: typed commands work without."""
        async with self._offering:
            await self._offer(servers)

    async def welcome(self, server: str) -> None:
        """Registers the commands in a server that the bot has joined: it has none, and an old refusal is retried."""
        async with self._offering:
            await self._forget(server)
            await self._offer([server])

    async def forget(self, server: str) -> None:
        """Forgets a server's commands, which Discord drops when the bot leaves."""
        async with self._offering:
            await self._forget(server)

    async def _offer(self, servers: Sequence[str]) -> None:
        commands = list(self._host.commands)
        if not commands:
            return  # the bot is being set up: the commands of its last run are to stay
        base = f"/applications/{self._me.application_id}"
        wanted = [("global", f"{base}/commands", private_commands(commands))]
        shared = server_commands(commands)
        wanted += [(server, f"{base}/guilds/{server}/commands", shared) for server in servers]
        try:
            kept = await self._host.kept(self._channel, "commands:")
            for where, path, payload in wanted:
                name, mark = f"commands:{where}", fingerprint(self._me.application_id, payload)
                before = kept.get(name, "")
                later = before.removeprefix("later ")
                if before == mark or (later != before and later.isdecimal() and self._now() < int(later)):
                    continue
                try:
                    await self._rest.call("PUT", path, body=payload, seconds=self._request_seconds)
                except DiscordRateLimited as exc:
                    if exc.everywhere:
                        raise  # not the fault of one server: the next session tries again
                    log.warning("discord.no_menu", channel=self._channel, where=where, error=str(exc))
                    mark = f"later {self._now() + math.ceil((exc.retry_after or 0) * 1000)}"
                except DiscordRefused as exc:
                    # A registration that Discord refuses (30034: too many new commands today) is not repeated at once.
                    log.warning("discord.no_menu", channel=self._channel, where=where, error=str(exc))
                    mark = f"later {self._now() + _LATER}"
                await self._host.keep(self._channel, {name: mark})
        except ChannelError as exc:
            log.warning("discord.no_menu", channel=self._channel, error=str(exc))

    async def _forget(self, server: str) -> None:
        with suppress(ChannelError):
            await self._host.keep(self._channel, {f"commands:{server}": None})
