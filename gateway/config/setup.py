"""Adds a bot to the configuration: its token, its entry, its first person and its servers.

Invariants: the token is kept only in .env, which only its owner may read. config.yaml keeps its comments, order and
other values, and is replaced as a whole by a text that passed the check. The code that lets the first person in is
never written anywhere and works once, in a private chat. Three wrong codes shut a person out.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import structlog
from dotenv import set_key
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.representer import RoundTripRepresenter

from channels.base import Channel, ChannelError, Host, Inbound, Outbound
from channels.ids import FORMATS
from gateway.codes import code_in
from gateway.config.loading import reference
from gateway.config.settings import DISCORD_URL, TELEGRAM_URL
from languages import Language

log = structlog.get_logger(__name__)

Platform: TypeAlias = Literal["telegram", "discord"]
#: The default address of each platform, which need not be written to config.yaml.
URLS: Mapping[Platform, str] = {"telegram": TELEGRAM_URL, "discord": DISCORD_URL}

#: Wrong codes after which a person is ignored.
TRIES = 3
#: Wrong codes of all people together after which everybody is ignored, as in `memory.store.access`.
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


def variable(channel: str) -> str:
    """Returns the variable in .env for the token of this channel's bot: TELEGRAM_TOKEN for `telegram`."""
    return f"{channel.upper().replace('-', '_')}_TOKEN"


def short_config(data_dir: str = "data") -> str:
    """Returns the text of a config.yaml that leaves everything else at its default."""
    return (
        "# Remora's configuration. An option that is not here has its default. Every option is explained in\n"
        f"# {reference()}\n"
        "# `remora check` checks this file; `remora channels add telegram` and `discord` write bots into it.\n"
        "\n"
        f"data_dir: {data_dir if data_dir == 'data' else json.dumps(data_dir, ensure_ascii=False)}\n"
    )


def keep_token(env_file: Path, name: str, token: str) -> None:
    """Writes `name`=`token` into `env_file` and keeps its other lines. Only its owner may read it afterwards.

    Raises `OSError`.
    """
    file = env_file.resolve()  # a link stays a link
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        file.chmod(0o600)
    set_key(file, name, token)
    file.chmod(0o600)


def add_bot(
    file: Path,
    *,
    platform: Platform,
    channel: str,
    name: str,
    base_url: str,
    check: Callable[[Path], object],
    data_dir: str = "data",
) -> None:
    """Writes the bot with the id `channel` into the config `file`, with the variable `name` as its token.

    An existing entry with this id keeps its other options. A missing file is made with defaults and `data_dir`. `check`
    gets the new file before it replaces the old one; if `check` raises, the old file stays. Raises `OSError`.
    """

    def change(settings: CommentedMap) -> None:
        entry = _entry(settings, platform, channel)
        if entry is None:
            entry = CommentedMap(id=channel)
            _bots(settings, platform).append(entry)
        entry["token"] = f"${{{name}}}"
        if base_url != URLS[platform] or "base_url" in entry:
            entry["base_url"] = base_url

    _rewrite(file, change, check, new_text=short_config(data_dir))


def let_in(file: Path, *, platform: Platform, channel: str, person: str, check: Callable[[Path], object]) -> None:
    """Adds the number `person` to `allow` and `admins` of the bot with the id `channel`. Otherwise like `add_bot`."""
    _rewrite(file, lambda settings: _list(settings, platform, channel, {"allow": [person], "admins": [person]}), check)


def answer_in(file: Path, *, channel: str, servers: Sequence[str], check: Callable[[Path], object]) -> None:
    """Adds these ids to `servers` of the Discord bot with the id `channel`. Otherwise like `add_bot`."""
    _rewrite(file, lambda settings: _list(settings, "discord", channel, {"servers": servers}), check)


def use_model(file: Path, model: Mapping[str, str | int]) -> None:
    """Writes `model` as the only model into the agent's `file`, which names none. Raises `OSError`."""

    def change(agent: CommentedMap) -> None:
        agent["models"] = CommentedSeq([CommentedMap(model)])

    _rewrite(file, change, lambda new: None)


async def pair(
    channel: Channel,
    *,
    code: str,
    language: Language,
    say: Callable[[str], None],
    seconds: float = PAIRING_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Inbound | None:
    """Runs `channel` until a person sends `code` (made by `new_code`) in private. Returns their message.

    Returns None after `seconds`. The person who paired is greeted; everybody else is told that the bot is being set up.
    `say` is called with trouble of the platform. Raises `ChannelError` if the platform no longer lets the bot in.
    """
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
    """The host of a bot that nobody may talk to yet."""

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
        known = FORMATS[self._channel.platform].is_person(person)
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


class _Null:
    """A null with its notation (`null`, `~`). Without this class the library would write every null as nothing."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Constructor(RoundTripConstructor):
    """A constructor that keeps the notation of a null."""


class _Representer(RoundTripRepresenter):
    """A representer that writes a null in its original notation."""


_NULL = "tag:yaml.org,2002:null"
_Constructor.add_constructor(_NULL, lambda _, node: _Null(node.value) if node.value else None)
_Representer.add_representer(_Null, lambda self, null: self.represent_scalar(_NULL, null.text))


def _rewrite(
    file: Path, change: Callable[[CommentedMap], None], check: Callable[[Path], object], *, new_text: str = ""
) -> None:
    file = file.resolve()
    old = file.read_text("utf-8") if file.exists() else new_text
    yaml = YAML()
    yaml.Constructor, yaml.Representer = _Constructor, _Representer
    yaml.preserve_quotes = True
    yaml.width = 10_000  # long lines stay lines
    flush = re.search(r"^- ", old, re.MULTILINE) is not None
    yaml.indent(mapping=2, sequence=2 if flush else 4, offset=0 if flush else 2)
    settings = yaml.load(old)
    head = ""
    if settings is None:
        # A file with only comments holds no settings. The comments stay above what is added.
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


def _bots(settings: CommentedMap, platform: Platform) -> Any:
    """Returns the list of a platform's bots. Makes it if it is missing."""
    channels = settings.get("channels")
    if not isinstance(channels, CommentedMap):
        channels = settings["channels"] = CommentedMap()
    bots = channels.get(platform)
    if not isinstance(bots, CommentedSeq) or not bots:
        bots = channels[platform] = CommentedSeq()
    return bots


def _entry(settings: CommentedMap, platform: Platform, channel: str) -> CommentedMap | None:
    """Returns the entry of the bot with this id. An entry without an id has the platform's name as its id."""
    return next((bot for bot in _bots(settings, platform) if str(bot.get("id", platform)) == channel), None)


def _list(settings: CommentedMap, platform: Platform, channel: str, ids: Mapping[str, Sequence[str]]) -> None:
    """Adds ids to lists of an entry, by the names of its options. Ids that are already there are not repeated."""
    entry = _entry(settings, platform, channel)
    assert entry is not None  # it was written or found before anything was added to it
    for option, new in ids.items():
        listed = entry.get(option)
        if not listed:
            listed = CommentedSeq()
            listed.fa.set_flow_style()
            if option in entry:
                entry[option] = listed
            else:
                # Inserted before the last option, so that whatever follows it, such as an empty line, ends the entry.
                entry.insert(len(entry) - 1, option, listed)
        known = set(map(str, listed))
        listed.extend(int(one) for one in new if one not in known)
