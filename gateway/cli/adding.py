"""Sets a chat platform up for `remora channels add`: its token, its entry, the first person let in.

Invariants: a token that its platform refuses is written nowhere, nor an entry that could not be read again; only the
person who sends the code, in private, is let in: it is never written anywhere, works once, and three wrong codes shut
a person out. Wherever setting up stops, the command says what is left of it.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import click
import structlog

from agents.spec import AGENT_NAME
from channels.base import Channel, ChannelError, Host, Inbound, Outbound
from channels.ids import format_of
from gateway import app, bots
from gateway.cli.start import EX_CANTCREAT, EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, fail, set_up_logs
from gateway.config import setup
from gateway.config.loading import CONFIG_NAME, Config, ConfigError, data_here, find, home_folder, is_reference, load
from gateway.config.settings import DISCORD_TOKEN, TELEGRAM_TOKEN, BotSettings, OtherSettings, discord_number
from gateway.pipeline.policy import code_in, new_code
from languages import Language

log = structlog.get_logger(__name__)

#: Wrong codes after which a person is ignored.
TRIES = 3
#: Wrong codes of all people together after which everybody is ignored, as in `memory.people.access`.
GUESSES = 100
#: Seconds in which a platform is usually reached.
_CONNECTING = 5.0
#: Seconds that the first person has to send the code.
PAIRING_SECONDS = 600.0
#: Seconds after the greeting in which the channel confirms the code to its platform with its next request for
#: messages. Without the confirmation, the code would reach the bot once more as a message.
_ACKNOWLEDGE = 1.0
_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "welcome": "That's the right code. You can talk to me now, and you are my admin. I answer as soon as I am "
        "started with `remora serve`.",
        "wrong": "That is not the code shown in the terminal.",
        "hint": "I am being set up. If you are setting me up, please send me the code shown in the terminal.",
    },
    "zh": {
        "welcome": "代码正确。你现在可以跟我聊天了，并且是我的管理员。用 `remora serve` 启动后我就会回答。",
        "wrong": "这不是终端里显示的代码。",
        "hint": "我正在设置中。如果是你在设置，请把终端里显示的代码发给我。",
    },
}


async def pair(
    channel: Channel,
    *,
    code: str,
    language: Language,
    say: Callable[[str], None],
    seconds: float = PAIRING_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Inbound | None:
    """Returns the message of a person who sends `code` in private, None after `seconds`. Raises `ChannelError`."""
    host = _Setup(channel, code, _TEXTS.get(language, _TEXTS["en"]))
    paired = asyncio.ensure_future(host.paired.wait())
    receiving = asyncio.ensure_future(channel.run(host))
    noticing = asyncio.ensure_future(_troubles(channel, say, sleep))
    tasks = (paired, receiving, noticing)
    try:
        await asyncio.wait({paired, receiving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if host.first is not None:
            await host.answer(host.first, "welcome")
            await sleep(_ACKNOWLEDGE)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    if host.first is None and isinstance(results[1], ChannelError):
        raise results[1]
    return host.first


class _Setup(Host):
    def __init__(self, channel: Channel, code: str, texts: dict[str, str]) -> None:
        self._channel = channel
        self._code = code
        self._texts = texts
        self._wrong: Counter[str] = Counter()
        self._told: set[str] = set()
        self._ids = count(1)
        self._kept: dict[str, str] = {}
        self.first: Inbound | None = None
        self.paired = asyncio.Event()

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self._kept.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        # Kept for this run only: the bot that is started later begins anew.
        for name, value in values.items():
            if value is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = value

    async def on_inbound(self, inbound: Inbound) -> None:
        person = inbound.author_id
        spoken = not (inbound.forwarded or inbound.edited or inbound.pressed is not None)
        known = format_of(self._channel.platform).is_person(person)
        if self.first is not None or inbound.chat_kind != "private" or not known or not spoken:
            return
        code = code_in(inbound.text)
        if code is None:
            if person not in self._told:
                self._told.add(person)
                await self.answer(inbound, "hint")
        elif self._wrong[person] >= TRIES or self._wrong.total() >= GUESSES:
            log.warning("pairing.refused", person=person)
        elif hmac.compare_digest(code.encode(), self._code.encode()):
            self.first = inbound
            self.paired.set()
        else:
            self._wrong[person] += 1
            await self.answer(inbound, "wrong")

    async def answer(self, inbound: Inbound, text: str) -> None:
        chunks = self._channel.chunks(self._texts[text], markdown=True)
        try:
            for chunk in chunks:
                await self._channel.send(
                    Outbound(
                        id=next(self._ids),
                        place=inbound.place,
                        text=chunk.text,
                        markup=chunk.markup,
                        ticket=inbound.ticket,
                        made_at=inbound.sent_at,
                    )
                )
        except ChannelError as error:
            # The person who sets the bot up reads the terminal; the answer in the chat is a courtesy.
            log.warning("pairing.unanswered", error=str(error))


async def _troubles(channel: Channel, say: Callable[[str], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Reports each new trouble of the channel once, but not that it is about to connect."""
    told = ""
    await sleep(_CONNECTING)
    while True:
        trouble = channel.health().trouble
        if trouble and trouble != told:
            say(trouble)
        told = trouble
        await sleep(0.5)


#: Takes a pairing code and returns the lines that ask for it to be sent.
_Pairing: TypeAlias = Callable[[str], tuple[str, ...]]

_GO_ON = (
    "The bot is configured, but nobody may talk to it yet. Run the same command to try again, or add your numeric user "
    "id to allow and admins under the bot in config.yaml."
)
_BY_HAND = "Nobody may talk to it yet: add your numeric user id to allow and admins under the bot in config.yaml"
_SERVERS = (
    "In servers it answers only where you allow it: send /allow here in a channel, or add the server's id to servers "
    "under the bot in config.yaml."
)
_WHERE_A_TOKEN_IS: Mapping[setup.Platform, tuple[str, ...]] = {
    "telegram": ("Create a bot: send /newbot to https://t.me/BotFather on Telegram, and copy the token you get.",),
    "discord": (
        "Create a bot at https://discord.com/developers/applications: New Application, then its Bot page. There,",
        "turn on Message Content Intent, save, press Reset Token and copy the token.",
    ),
}
#: Tokens that look right, for reading a configuration whose token is not set yet.
_SAMPLES: Mapping[setup.Platform, str] = {
    "telegram": f"12345:{'x' * 35}",
    "discord": f"{'x' * 24}.{'x' * 6}.{'x' * 38}",
}


def add(
    platform: setup.Platform,
    config_path: Path | None,
    *,
    token: str | None,
    channel: str,
    no_pair: bool,
    base_url: str | None,
) -> None:
    if not re.match(AGENT_NAME, channel) or channel == "console":
        fail(
            "--id must consist of lower-case letters, digits, - and _, and can't be console.",
            click.UsageError.exit_code,
        )
    home = Path.home()
    file = _config_to_write(config_path, home)
    name = setup.variable(channel)
    bot, known = _configured(file, platform, channel, name, home)
    before = None if isinstance(bot, OtherSettings) else bot
    base_url = base_url or (setup.URLS[platform] if before is None else before.base_url)
    token = (token or known or _asked_token(platform)).strip()
    _check_token(platform, token, bot if known is not None else None, channel, name)
    adding = _Adding(
        platform=platform,
        file=file,
        channel=channel,
        name=name,
        token=token,
        base_url=base_url,
        proxy=None if before is None else before.own_proxy,
    )
    try:
        adding.carry_out(pair=not no_pair)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"\nStopped. {adding.left}", err=True)
        sys.exit(130)
    except ConfigError as exc:
        fail(f"{exc}\n{adding.left}", EX_CONFIG)
    except ChannelError as exc:
        fail(f"{exc} {adding.left}", EX_TEMPFAIL if exc.retryable else EX_CONFIG)
    except OSError as exc:
        fail(
            f"Can't write {exc.filename}: {exc.strerror}. Fix the permissions of the file and its folder.", EX_CANTCREAT
        )


@dataclass(slots=True, kw_only=True)
class _Adding:
    """A bot that is being added. `left` tells the operator what has been done so far, if that is all."""

    platform: setup.Platform
    file: Path
    channel: str
    name: str
    token: str
    base_url: str
    proxy: str | None
    left: str = ""

    def carry_out(self, *, pair: bool) -> None:
        variables = self.file.parent / ".env"
        self.left = f"Nothing was changed in {self.file}."
        pairing = _MEET[self.platform](self.token, self.base_url, self.proxy)
        setup.keep_token(variables, self.name, self.token)
        self.left = f"The token is in {variables} as {self.name}. Nothing was changed in {self.file}."
        setup.add_bot(
            self.file,
            platform=self.platform,
            channel=self.channel,
            name=self.name,
            base_url=self.base_url,
            check=self._check,
            data_dir=str(data_here(os.environ, Path.cwd(), Path.home()) or "data"),
        )
        click.echo(f"Wrote the token to {variables} as {self.name}, and the bot to {self.file}.")
        self.left = _GO_ON
        config = load(self.file, os.environ, Path.home())
        entry = next(bot for bot in config.settings.channels.bots if bot.id == self.channel)
        if pair and not entry.admins:
            self._let_in(config, pairing)
            click.echo("Start it with `remora serve`.")
        else:
            people = f"{len({*entry.allow, *entry.admins})} people may talk to it"
            click.echo(f"{people if entry.allow or entry.admins else _BY_HAND}. Start it with `remora serve`.")

    def _let_in(self, config: Config, pairing: _Pairing) -> None:
        person = asyncio.run(_paired(config, self.channel, pairing))
        if person is None:
            fail(f"Nobody sent the code in time. {_GO_ON}", EX_TEMPFAIL)
        setup.let_in(
            self.file, platform=self.platform, channel=self.channel, person=person.author_id, check=self._check
        )
        click.echo(f"{_shown(person.author_name)} ({person.author_id}) can talk to it now and is its admin.")
        self.left = (
            f"The bot and its admin are in {self.file}; only its servers are missing. Start it with `remora serve`."
        )
        if self.platform == "discord" and (servers := _chosen_servers(self.token, self.base_url, self.proxy)):
            setup.answer_in(self.file, channel=self.channel, servers=servers, check=self._check)

    def _check(self, new: Path) -> None:
        """Raises `ConfigError` if the new file can't be used; problems are told of the file that it will replace."""
        try:
            load(new, os.environ, Path.home())
        except ConfigError as exc:
            raise ConfigError(
                replace(problem, file=self.file if problem.file == new else problem.file) for problem in exc.problems
            ) from exc


def _config_to_write(config_path: Path | None, home: Path) -> Path:
    """Returns the config.yaml to change: the one in use, unless none or the reference is, or a new one at home."""
    if config_path is not None:
        return config_path.expanduser().absolute()
    try:
        found = find(None, os.environ, Path.cwd(), home)
    except ConfigError as exc:
        fail(str(exc), EX_CONFIG)
    if found is None or is_reference(found, os.environ, home):
        found = home_folder(home) / CONFIG_NAME
    return found.absolute()


def _configured(
    file: Path, platform: setup.Platform, channel: str, name: str, home: Path
) -> tuple[BotSettings | None, str | None]:
    """Returns the bot with this id, if it is there already, and its token, which may not be set yet."""
    if not file.exists():
        return None, None
    unset = False
    try:
        config = load(file, os.environ, home)
    except ConfigError:
        try:
            config = load(file, {name: _SAMPLES[platform], **os.environ}, home)
        except ConfigError as exc:
            fail(f"{exc}\nNothing was changed. Correct this first.", EX_CONFIG)
        unset = True
    bot = next((one for one in config.settings.channels.bots if one.id == channel), None)
    if bot is None:
        return None, None
    if bot.platform != platform or isinstance(bot, OtherSettings):
        fail(
            f"The channel {channel} is already a bot on {bot.platform.capitalize()}. Give this one another name, such "
            f"as --id {channel}-2.",
            EX_CONFIG,
        )
    return bot, None if unset else bot.token.get_secret_value()


def _asked_token(platform: setup.Platform) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(1000)
    for line in _WHERE_A_TOKEN_IS[platform]:
        click.echo(line)
    return str(click.prompt("Token (not shown)", hide_input=True))


def _check_token(platform: setup.Platform, token: str, bot: BotSettings | None, channel: str, name: str) -> None:
    if platform == "telegram":
        fits, number = TELEGRAM_TOKEN.fullmatch(token), token.partition(":")[0]
        rule = "It has digits, a colon and 35 more characters. Copy all of it from @BotFather."
    else:
        fits, number = DISCORD_TOKEN.fullmatch(token), discord_number(token)
        rule = (
            "It has three parts separated by dots. Copy all of it from the Bot page, where Reset Token shows a new one."
        )
    if not fits:
        fail(f"This is not a bot token. {rule}", EX_DATAERR)
    if bot is not None and number and bot.number and bot.number != number:
        fail(
            f"The channel {channel} is already another bot. Remove it from config.yaml first, or give this one "
            f"another name, such as --id {channel}-2.",
            EX_CONFIG,
        )
    if os.environ.get(name, token) != token:
        fail(f"The environment variable {name} holds another token and would override .env. Unset it first.", EX_CONFIG)


def _meet_telegram(token: str, base_url: str, proxy: str | None) -> _Pairing:
    """Tells whose token it is and what to know of it. Returns the request for the code, or raises `ChannelError`."""
    from channels.telegram import probe

    facts = asyncio.run(probe(token, base_url, proxy=proxy))
    click.echo(f"This is @{facts.username} ({facts.name}).")
    if facts.reads_all_group_messages:
        click.echo("Its privacy mode is off: in groups, Telegram shows it every message.")
        click.echo(
            "It answers messages meant for it and keeps no others. To change that, send /setprivacy to @BotFather."
        )
    else:
        click.echo("Its privacy mode is on: in groups, it sees only commands, mentions and replies to it.")
        click.echo(
            "That is enough to talk to it. To change that, send /setprivacy to @BotFather and add it to its groups "
            "again."
        )
    return lambda code: (
        "Now show who you are. Open this link where you use Telegram, and press Start:",
        f"  https://t.me/{facts.username}?start={code.replace('-', '')}",
        f"or send this code to @{facts.username}: {code}",
    )


def _meet_discord(token: str, base_url: str, proxy: str | None) -> _Pairing:
    """Does the same as `_meet_telegram`; on a terminal it waits until the bot may read messages in servers."""
    from channels.discord import probe

    facts = asyncio.run(probe(token, base_url, proxy=proxy))
    click.echo(f"This is {_shown(facts.name)} ({facts.id}).")
    while not facts.reads_messages:
        click.echo("Its Message Content Intent is off, so Discord would not let it read messages. Open", err=True)
        click.echo(f"  https://discord.com/developers/applications/{facts.application_id}/bot", err=True)
        click.echo("and turn it on under Privileged Gateway Intents, then save the changes.", err=True)
        if not sys.stdin.isatty():
            break
        click.prompt("Press Enter when you are done", default="", show_default=False)
        facts = asyncio.run(probe(token, base_url, proxy=proxy))
    click.echo("Add it to one of your servers with this link:")
    click.echo(f"  {facts.invite}")
    return lambda code: (
        "Now show who you are. Once it is in one of your servers, click its name there and send it this code:",
        f"  {code}",
        "Send it as a direct message: in a server channel, others could read the code.",
    )


_MEET: Mapping[setup.Platform, Callable[[str, str, str | None], _Pairing]] = {
    "telegram": _meet_telegram,
    "discord": _meet_discord,
}


async def _paired(config: Config, channel: str, pairing: _Pairing) -> Inbound | None:
    set_up_logs(config)
    bot: Channel = bots.channels(_asking(config), now=app.now)[channel]
    code = new_code(secrets.choice)
    minutes = PAIRING_SECONDS / 60
    click.echo()
    for line in pairing(code):
        click.echo(line)
    click.echo(f"Waiting {minutes:g} minutes for the code. Press Ctrl-C to stop.")
    return await pair(
        bot, code=code, language=config.agents[config.default_agent].language, say=partial(click.echo, err=True)
    )


def _asking(config: Config) -> Config:
    """Returns the configuration without webhooks: nothing is served over HTTP while a person is let in."""
    channels = config.settings.channels
    bots = tuple(bot.model_copy(update={"webhook": None}) for bot in channels.telegram)
    channels = channels.model_copy(update={"telegram": bots})
    return replace(config, settings=config.settings.model_copy(update={"channels": channels}))


def _chosen_servers(token: str, base_url: str, proxy: str | None) -> list[str]:
    """Returns the ids of the servers to answer in. Without a terminal or a choice, says how to add them later."""
    chosen = []
    if sys.stdin.isatty():
        from channels.discord import servers

        try:
            found = asyncio.run(servers(token, base_url, proxy=proxy))
        except ChannelError as exc:
            click.echo(f"Can't list its servers now: {exc}", err=True)
            found = {}
        for server, name in found.items():
            if click.confirm(
                f"Should it answer in all channels of {_shown(name)} ({server}) that it can see?", default=False
            ):
                chosen.append(server)
    if not chosen:
        click.echo(_SERVERS)
    return chosen


def _shown(name: str) -> str:
    """Returns an untrusted name with nothing in it that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
