"""Slash commands, forms, buttons and completions: Discord's interactions as messages, acknowledged in time.

Invariants: what an interaction says is committed, or has had its time to be, before it is acknowledged; an
acknowledgement that Discord did not take stops nothing; commands are registered only where they changed, and what
Discord does not take is left for a day.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog

from channels.base import (
    ChannelError,
    ChannelUnavailable,
    CommandSpec,
    Form,
    Host,
    Inbound,
    NotTaken,
)
from channels.discord.payloads import (
    DATA_LIMIT,
    EPHEMERAL,
    Json,
    Spot,
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
from channels.discord.rest import BotFacts, RateLimited, Refused, Rest
from channels.discord.show import Screen, remember

log = structlog.get_logger(__name__)

#: An interaction must be acknowledged within 3 s of its making: this is what is left of them for us, when both its form
#: and its commit take all their time.
_DECIDE_SECONDS = 2.4
_COMMIT_SECONDS = 1.5
_FORM_SECONDS = 1.2
_SUGGEST_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_ALREADY = 40060  # the error code of an interaction that is acknowledged
_LATER = 24 * 3_600_000  # when commands that Discord did not take are offered again, milliseconds


class Interactions:
    """Those of one run. `spot` tells where a channel is; `heard` is told where somebody has used one."""

    def __init__(
        self,
        channel: str,
        host: Host,
        me: BotFacts,
        rest: Rest,
        screen: Screen,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        spot: Callable[[str, str | None, Json | None], Awaitable[Spot | None]],
        heard: Callable[[Spot], None],
        now: Callable[[], int],
        request_seconds: float,
    ) -> None:
        self._channel = channel
        self._host = host
        self._me = me
        self._rest = rest
        self._screen = screen
        self._spawn = spawn
        self._spot = spot
        self._heard = heard
        self._now = now
        self._request_seconds = request_seconds
        self._forms: dict[str, str] = {}
        self._offering = asyncio.Lock()
        self._commits: set[asyncio.Task[NotTaken | None]] = set()

    def take(self, interaction: Json) -> None:
        # Not behind what else is said there: Discord waits 3 s for an answer.
        until = asyncio.get_running_loop().time() + _DECIDE_SECONDS
        match interaction.get("type"):
            case 2:
                self._spawn(self._commanded(interaction, until))
            case 3:
                self._spawn(self._pressed(interaction, until))
            case 4:
                self._spawn(self._suggest(interaction))
            case 5:
                self._spawn(self._submitted(interaction, until))

    async def close(self, seconds: float) -> None:
        """Let what is being committed be committed: Discord gives it only once."""
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
        """A form was filled in: its command goes on with what was entered."""
        custom_id = str(interaction["data"].get("custom_id", ""))
        begun = self._forms.get(custom_id, custom_id)
        if not begun.startswith("/"):
            return  # of an earlier run, and too long to have travelled along: Discord tells the person to try again
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

    async def _suggest(self, interaction: Json) -> None:
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
        """An interaction as what its user said; None where no place is known for it."""
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
            pressed=pressed,
            server=spot.server,
        )

    async def _commit(self, interaction: Json, inbound: Inbound, until: float, *, private: bool) -> None:
        """Hand an interaction over, acknowledge it, and tell its user when it could not be taken.

        `until` is when it must be acknowledged at the latest, in the event loop's seconds.
        """
        press = inbound.pressed is not None
        ticket = Ticket(
            app=str(interaction["application_id"]),
            id=str(interaction["id"]),
            token=str(interaction["token"]),
            user=inbound.author_id,
            private=private,
            message=inbound.message_id if press else "",
        )
        self._heard(Spot(chat=inbound.chat, server=inbound.server))
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
        """Answer Discord's question what becomes of an interaction; False when that was too late or not heard."""
        path = f"/interactions/{interaction['id']}/{interaction['token']}/callback"
        try:
            await self._rest.call("POST", path, body=response, seconds=_ANSWER_SECONDS, signed=False)
        except ChannelError as exc:
            log.warning("discord.not_acknowledged", channel=self._channel, kind=response["type"], error=str(exc))
            # One that may have been taken is tried to be answered in place; Discord tells when it was not.
            return not exc.certain or (isinstance(exc, Refused) and exc.number == _ALREADY)
        return True

    def _spec(self, name: str) -> CommandSpec | None:
        return next((spec for spec in self._host.commands if spec.name == name), None)

    async def offer(self, servers: Sequence[str]) -> None:
        """Register the commands where they are not yet. Best effort: typed commands work without."""
        async with self._offering:
            await self._offer(servers)

    async def welcome(self, server: str) -> None:
        """Register them where the bot was let in: there are none, and what was refused before is asked anew."""
        async with self._offering:
            await self._forget(server)
            await self._offer([server])

    async def forget(self, server: str) -> None:
        """Discord drops a server's commands when the bot leaves."""
        async with self._offering:
            await self._forget(server)

    async def _offer(self, servers: Sequence[str]) -> None:
        commands = list(self._host.commands)
        if not commands:
            return  # a bot that is being set up: those of its last run are to stay
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
                except RateLimited as exc:
                    if exc.everywhere:
                        raise  # of none of the servers in particular: the next session tries them again
                    log.warning("discord.no_menu", channel=self._channel, where=where, error=str(exc))
                    mark = f"later {self._now() + math.ceil((exc.retry_after or 0) * 1000)}"
                except Refused as exc:
                    # What Discord refuses (30034: too many new ones today) is not asked again and again.
                    log.warning("discord.no_menu", channel=self._channel, where=where, error=str(exc))
                    mark = f"later {self._now() + _LATER}"
                await self._host.keep(self._channel, {name: mark})
        except ChannelError as exc:
            log.warning("discord.no_menu", channel=self._channel, error=str(exc))

    async def _forget(self, server: str) -> None:
        with suppress(ChannelError):
            await self._host.keep(self._channel, {f"commands:{server}": None})
