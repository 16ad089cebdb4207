"""Options that no longer exist, each with what holds in its place. Files that still have them work on, and are told.

A row names an option by its path, in which `*` stands for each item of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agents.spec import JobsSpec
from gateway.config.strict_yaml import KeyPath


def _none(value: Any) -> bool:
    return False


def _nothing(value: Any) -> bool:
    return bool(value == 0)


@dataclass(frozen=True, slots=True)
class Retired:
    """An option that is gone. `instead` is a sentence for the operator.

    `wants_less` tells values that asked for less than what holds now: to leave them out would break a promise. `keep`
    puts what was asked for in its new place; it gets the file's data, the option's path and its value. It returns what
    the operator is to write so that it stays, or "" if nothing was kept: then the line may go.
    """

    instead: str
    wants_less: Callable[[Any], bool] = _none
    keep: Callable[[dict[str, Any], KeyPath, Any], str] | None = None


def dropped(data: Any, retired: Mapping[str, Retired]) -> Iterator[tuple[KeyPath, Retired, Any, str]]:
    """Removes the retired options from a file's data. Yields each one's path, row, value, and what to do about it."""
    for option, row in retired.items():
        *names, last = option.split(".")
        for section, path in _sections(data, names, ()):
            if last in section:
                value = section.pop(last)
                kept = row.keep(data, (*path, last), value) if row.keep is not None else ""
                yield (*path, last), row, value, kept or "Remove the line."


def _sections(data: Any, names: Sequence[str], path: KeyPath) -> Iterator[tuple[dict[str, Any], KeyPath]]:
    if not names:
        if isinstance(data, dict):
            yield data, path
    elif names[0] == "*":
        for number, item in enumerate(data if isinstance(data, list) else ()):
            yield from _sections(item, names[1:], (*path, number))
    elif isinstance(data, dict) and names[0] in data:
        yield from _sections(data[names[0]], names[1:], (*path, names[0]))


def _as_rules(data: dict[str, Any], path: KeyPath, value: Any) -> str:
    rules = data.get("rules") or []
    if not isinstance(value, list) or not value or not isinstance(rules, list):
        return ""
    data["rules"] = [*rules, *value]
    return "Move it to rules:."


def _without_meaning(data: dict[str, Any], path: KeyPath, value: Any) -> str:
    words_alone = {"provider": "none"}
    if not isinstance(value, dict) or value.get("mode") != "classic" or data.get("embedding") == words_alone:
        return ""
    place = "it and the embedding: of this file" if "embedding" in data else "it"
    data["embedding"] = words_alone
    return f"Replace {place} by embedding: {{provider: none}}."


def _as_webhook(data: dict[str, Any], path: KeyPath, value: Any) -> str:
    channels, platform, number, name, _ = path
    data[str(channels)][platform][number][name] = value
    return "Write the address itself behind webhook:."


_Table: TypeAlias = Mapping[str, Retired]
#: Of config.yaml.
RETIRED: Final[_Table] = {
    # A value that names this very folder is accepted where the options are read, which knows the paths.
    "agents_dir": Retired(
        "Agents' files stand in agents/ beside config.yaml; a link may lead elsewhere.", lambda _: True
    ),
    "channels.console": Retired("`remora chat` is always there."),
    "channels.telegram.*.webhook.secret": Retired("It is made of the bot's token."),
    "channels.telegram.*.webhook.url": Retired("A webhook is its address.", keep=_as_webhook),
    "api.front_ends.*.issuer": Retired("It is open-webui.", wants_less=lambda value: value != "open-webui"),
    "api.body_bytes": Retired("It is 10 MB."),
    "limits.message_chars": Retired("It is 32,000."),
    "limits.person_burst": Retired("It is a third of person_messages_per_minute."),
    "limits.placeholder_seconds": Retired("It is 1.5 seconds."),
    "limits.queue": Retired("It is 50 messages."),
    "limits.stale_hours": Retired(
        "It is 2 hours.", wants_less=lambda value: isinstance(value, int | float) and value < 2
    ),
    "attachments.fetch_seconds": Retired("It is 20 seconds."),
    "attachments.text_tokens": Retired("It is 8,000 tokens.", wants_less=_nothing),
    "attachments.pictures": Retired("It is 4.", wants_less=_nothing),
    "transcriber.timeout": Retired("It is 60 seconds."),
    "internet.ports": Retired(
        "Pages are fetched on 80 and 443.",
        wants_less=lambda value: isinstance(value, list) and not {80, 443} <= {*value},
    ),
    "memory.exit_seconds": Retired("It is 20 seconds.", wants_less=_nothing),
    "memory.extract_messages": Retired("It is 30 messages."),
    "memory.extract_tokens": Retired("It is 2,000 tokens."),
    "memory.quiet_seconds": Retired("It is a minute."),
    "recall": Retired("Without an embedding (provider: none) memory is searched by words.", keep=_without_meaning),
    "embedding.dimension": Retired("It is the model's own.", wants_less=lambda value: value is not None),
    "embedding.timeout": Retired("It is 30 seconds."),
    "embedding.batch": Retired("It is 64 texts."),
    "rerank.top_n": Retired("It is 8."),
    "rerank.timeout": Retired("It is 1.5 seconds."),
}
#: Of the agents' files.
RETIRED_OF_AGENTS: Final[_Table] = {
    "tool_notes": Retired("What stands there is read as rules.", keep=_as_rules),
    "window.messages": Retired("It is 100 messages."),
    "turn.call_seconds": Retired("It is 30 seconds."),
    "background.timeout": Retired("It is half an hour."),
    "compaction": Retired(
        "Conversations are summed up at three quarters of the window.",
        wants_less=lambda value: isinstance(value, dict) and value.get("enabled") is False,
    ),
    **{
        f"memory.{name}": Retired(instead, wants_less=_nothing)
        for name, instead in {
            "recall_items": "It is 8.",
            "recall_tokens": "It is 1,500 tokens.",
            "known_facts": "It is 50.",
            "known_tokens": "It is 1,500 tokens.",
        }.items()
    },
    "memory.patterns_while_down": Retired("Messages wait for the model."),
    **{
        f"jobs.{name}": Retired("See jobs.night and jobs.week.", wants_less=lambda value: value in ("off", False))
        for name in JobsSpec.minutes
    },
    "routing.default": Retired("Write default_agent into config.yaml."),
    "tasks.*.heartbeat": Retired("A task without a text reads HEARTBEAT.md."),
}
