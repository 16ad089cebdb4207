"""Adds a bot to the configuration: its token, its entry, its first person and its servers.

Invariants: the token is kept only in .env, which only its owner may read. config.yaml keeps its comments, order and
other values, and is replaced as a whole by a text that passed the check.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dotenv import set_key
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.representer import RoundTripRepresenter

from gateway.config.loading import reference
from gateway.config.settings import DISCORD_URL, TELEGRAM_URL

Platform: TypeAlias = Literal["telegram", "discord"]
#: The default address of each platform, which need not be written to config.yaml.
URLS: Mapping[Platform, str] = {"telegram": TELEGRAM_URL, "discord": DISCORD_URL}


def variable(channel: str) -> str:
    """Returns the variable in .env for the token of this channel's bot: TELEGRAM_TOKEN for `telegram`."""
    return f"{channel.upper().replace('-', '_')}_TOKEN"


def short_config(data_dir: str = "data") -> str:
    return (
        "# Remora's configuration. An option that is not here has its default. Every option is explained in\n"
        f"# {reference()}\n"
        "# `remora check` checks this file; `remora channels add telegram` and `discord` write bots into it.\n"
        "\n"
        f"data_dir: {data_dir if data_dir == 'data' else json.dumps(data_dir, ensure_ascii=False)}\n"
    )


def keep_token(env_file: Path, name: str, token: str) -> None:
    """Writes `name`=`token` into `env_file`, keeps its other lines, and closes it to others. Raises `OSError`."""
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
