"""Puts a bot into the configuration: its token, its entry, its first person, its servers.

Invariants: the token itself stands in .env alone, which only its owner may read; config.yaml keeps its comments, its
order and its other values, and is replaced as a whole, by a text that was found right; the code that lets the first
person in is never written anywhere, works once, in a private chat, and three wrong ones shut a person out.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import re
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import structlog
from dotenv import set_key
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.representer import RoundTripRepresenter

from channels.base import Channel, ChannelError, CommandSpec, Form, Inbound, Outbound, Place, Suggestion
from gateway import policy
from gateway.config import CONFIG_NAME
from gateway.phrases import Language
from gateway.settings import DISCORD_URL, TELEGRAM_URL

log = structlog.get_logger(__name__)

Platform: TypeAlias = Literal["telegram", "discord"]
#: The address of each platform, which need not be written.
URLS: Mapping[Platform, str] = {"telegram": TELEGRAM_URL, "discord": DISCORD_URL}

#: Wrong codes after which a person is no longer heard.
TRIES = 3
#: Seconds in which a platform is reached, as a rule.
_CONNECTING = 5.0
#: Seconds that the first person has to send the code.
PAIRING_SECONDS = 600.0
#: Seconds after the greeting in which the channel tells its platform that the code was received: it does so by its
#: next request for messages. Were it not told, the code would come to the bot once more as a message.
_ACKNOWLEDGE = 1.0
_TEXTS: dict[Language, dict[str, str]] = {
    "en": {
        "welcome": "That is the code. From now on I talk with you, and you are my admin. I answer as soon as I am "
        "started with `remora serve`.",
        "wrong": "That is not the code that stands in the terminal.",
        "hint": "I am being set up. Whoever does that finds a code in the terminal: please send it to me.",
    },
    "zh": {
        "welcome": "代码正确。从现在起我会和你聊天，你也是我的管理员。用 `remora serve` 启动后我就会回答。",
        "wrong": "这不是终端里显示的代码。",
        "hint": "我正在设置中。设置我的人可以在终端里看到一个代码：请把它发给我。",
    },
}


def variable(channel: str) -> str:
    """The name in .env of the token of the bot with this channel id: TELEGRAM_TOKEN for `telegram`."""
    return f"{channel.upper().replace('-', '_')}_TOKEN"


def keep_token(env_file: Path, name: str, token: str) -> None:
    """Write `name`=`token` into `env_file`, leaving its other lines; only its owner may read it afterwards.

    Raises `OSError`.
    """
    file = env_file.resolve()  # a link stays a link
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        file.chmod(0o600)
    set_key(file, name, token)
    file.chmod(0o600)


def add_bot(
    file: Path, *, platform: Platform, channel: str, name: str, base_url: str, check: Callable[[Path], object]
) -> None:
    """Write the bot with the id `channel` into the config `file`, its token being the variable `name`.

    An entry with this id keeps all else it says. A file that is not there is made from the shipped one. `check` gets
    the new file before it takes the place of the old one; what it raises leaves the old one. Raises `OSError`.
    """

    def change(settings: CommentedMap) -> None:
        entry = _entry(settings, platform, channel)
        if entry is None:
            entry = CommentedMap(id=channel)
            _bots(settings, platform).append(entry)
        entry["token"] = f"${{{name}}}"
        if base_url != URLS[platform] or "base_url" in entry:
            entry["base_url"] = base_url

    _rewrite(file, change, check)


def let_in(file: Path, *, platform: Platform, channel: str, person: str, check: Callable[[Path], object]) -> None:
    """Write the number `person` into `allow` and `admins` of the bot with the id `channel`; as `add_bot` else."""
    _rewrite(file, lambda settings: _list(settings, platform, channel, {"allow": [person], "admins": [person]}), check)


def answer_in(file: Path, *, channel: str, servers: Sequence[str], check: Callable[[Path], object]) -> None:
    """Write these ids into `servers` of the Discord bot with the id `channel`; as `add_bot` else."""
    _rewrite(file, lambda settings: _list(settings, "discord", channel, {"servers": servers}), check)


async def pair(
    channel: Channel,
    *,
    code: str,
    language: Language,
    say: Callable[[str], None],
    seconds: float = PAIRING_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Inbound | None:
    """Run `channel` until somebody sends `code` (as `policy.new_code` makes it) in private; their message.

    None after `seconds`. Everybody else is told that the bot is being set up. Whoever paired is greeted. `say` is
    told of trouble with the platform. Raises `ChannelError` when the platform lets the bot in no more.
    """
    host = _Setup(channel, code, _TEXTS[language])
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


class _Setup:
    """Implements `channels.base.Host` for a bot that nobody may talk to yet."""

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

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return ()

    def admins(self, channel: str) -> Sequence[str]:
        return ()

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        return ()

    async def form(self, inbound: Inbound) -> Form | None:
        return None

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self._kept.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        # For this run alone: the bot that is started later begins anew.
        for name, value in values.items():
            if value is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = value

    async def on_inbound(self, inbound: Inbound) -> None:
        person = inbound.author_id
        spoken = not (inbound.forwarded or inbound.edited or inbound.pressed is not None)
        if self.first is not None or inbound.chat_kind != "private" or not policy.is_user_id(person) or not spoken:
            return
        code = policy.code_in(inbound.text)
        if code is None:
            if person not in self._told:
                self._told.add(person)
                await self.answer(inbound, "hint")
        elif self._wrong[person] >= TRIES:
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
            # Whoever sets the bot up reads the terminal; the answer in the chat is a courtesy.
            log.warning("pairing.unanswered", error=str(error))

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        return None

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        return None

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        return None

    async def settled(self, place: Place) -> None:
        return None


async def _troubles(channel: Channel, say: Callable[[str], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Tell each new trouble of the channel once, but not that it is about to connect."""
    told = ""
    await sleep(_CONNECTING)
    while True:
        trouble = channel.health().trouble
        if trouble and trouble != told:
            say(trouble)
        told = trouble
        await sleep(0.5)


class _Null:
    """A null as it is written: `null`, `~`. Without it the library would write every null as nothing."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Constructor(RoundTripConstructor):
    """Keeps how a null is written."""


class _Representer(RoundTripRepresenter):
    """Writes a null as it was."""


_NULL = "tag:yaml.org,2002:null"
_Constructor.add_constructor(_NULL, lambda _, node: _Null(node.value) if node.value else None)
_Representer.add_representer(_Null, lambda self, null: self.represent_scalar(_NULL, null.text))


def _rewrite(file: Path, change: Callable[[CommentedMap], None], check: Callable[[Path], object]) -> None:
    file = file.resolve()
    old = file.read_text("utf-8") if file.exists() else _shipped()
    yaml = YAML()
    yaml.Constructor, yaml.Representer = _Constructor, _Representer
    yaml.preserve_quotes = True
    yaml.width = 10_000  # long lines stay lines
    flush = re.search(r"^- ", old, re.MULTILINE) is not None
    yaml.indent(mapping=2, sequence=2 if flush else 4, offset=0 if flush else 2)
    settings = yaml.load(old)
    head = ""
    if settings is None:
        # A file of comments only holds no settings yet; they stay above what is added.
        head, settings = old if old.endswith("\n") or not old else f"{old}\n", CommentedMap()
    change(settings)
    written = io.StringIO()
    yaml.dump(settings, written)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    try:
        new.write_text(head + written.getvalue(), "utf-8")
        if file.exists():
            shutil.copymode(file, new)
        check(new)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _shipped() -> str:
    """The config.yaml that comes with the program: inside the installed package, or in the tree it runs from."""
    inside = resources.files("gateway") / CONFIG_NAME
    beside = Path(__file__).parents[1] / CONFIG_NAME
    return (inside if inside.is_file() else beside).read_text("utf-8")


def _bots(settings: CommentedMap, platform: Platform) -> Any:
    """The list of a platform's bots, made where there is none."""
    channels = settings.get("channels")
    if not isinstance(channels, CommentedMap):
        channels = settings["channels"] = CommentedMap()
    bots = channels.get(platform)
    if not isinstance(bots, CommentedSeq) or not bots:
        bots = channels[platform] = CommentedSeq()
    return bots


def _entry(settings: CommentedMap, platform: Platform, channel: str) -> CommentedMap | None:
    """The entry of the bot with this id; where none is written it is the platform's name."""
    return next((bot for bot in _bots(settings, platform) if str(bot.get("id", platform)) == channel), None)


def _list(settings: CommentedMap, platform: Platform, channel: str, ids: Mapping[str, Sequence[str]]) -> None:
    """Add ids to lists of an entry, by the names of its options; those that are there already stay once."""
    entry = _entry(settings, platform, channel)
    assert entry is not None  # it was written or found before there was anything to add
    for option, new in ids.items():
        listed = entry.get(option)
        if not listed:
            listed = CommentedSeq()
            listed.fa.set_flow_style()
            if option in entry:
                entry[option] = listed
            else:
                # Before the last option: what follows that, such as an empty line, ends the entry.
                entry.insert(len(entry) - 1, option, listed)
        known = set(map(str, listed))
        listed.extend(int(one) for one in new if one not in known)
