"""Asks the operator's golden set: questions about what people said, and texts that the first five finds must hold.

    python -m bench.golden golden.yaml [--config FILE]

    - ask: where does Ada live
      find: [Porto]                # each must stand in one of the first five finds
      person: telegram:123456      # or chat: telegram:-1001234567890; agent: NAME where it is not the default one

Invariants: a copy of the store is searched, so the bot may run beside it and nothing in it changes. Results are kept
as figures alone, without words.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import click
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from agents.spec import BackgroundSpec
from gateway import app
from gateway.cli.importing import asker, owner_of
from gateway.cli.start import CONFIG, Unusable, ending, loaded
from gateway.config.loading import Config
from memory.service import Service
from memory.transfer import backups
from memory.transfer.homes import Owner

#: Figures of earlier runs, one JSON object a line, in the data folder.
HISTORY: Final = "golden.jsonl"
_FIRST: Final = 5
#: The most earlier results, and the most missed questions, that are shown.
_SHOWN: Final = 5
_SILENT: Final = {"models": (), "background": BackgroundSpec()}


class GoldenQuestion(BaseModel):
    """A question of the set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ask: str
    find: tuple[str, ...]
    person: str | None = None
    chat: str | None = None
    agent: str | None = None

    @model_validator(mode="after")
    def _of_one(self) -> GoldenQuestion:
        if (self.person is None) == (self.chat is None):
            raise ValueError("needs person: PLATFORM:USER or chat: CHANNEL:CHAT, one of the two")
        if not self.find:
            raise ValueError("find: names at least one text")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """`recall` is the share of questions whose texts were all among the first five finds; `missed` are the others."""

    asked: int
    recall: float
    missed: tuple[str, ...]


def read(file: Path) -> tuple[GoldenQuestion, ...]:
    """Returns the questions in `file`. Raises `Unusable` with the place of a mistake."""
    try:
        raw = yaml.safe_load(file.read_text("utf-8"))
        questions = TypeAdapter(tuple[GoldenQuestion, ...]).validate_python(raw)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Unusable(f"Can't read {file}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise Unusable(f"{file}, {where}: {first['msg']}. It is a list of ask:, find: and person: or chat:.") from error
    if not questions:
        raise Unusable(f"{file} holds no question.")
    return questions


async def score(config: Config, questions: Sequence[GoldenQuestion]) -> Score:
    """Asks a copy of the store. Raises `Unusable` for an unknown person or chat, and `StorageError`."""
    if config.settings.database_url.get_secret_value():
        raise Unusable("A golden set is asked of a copy of a store in a file, and database_url names a server.")
    missed = []
    # Without models the copy reads no waiting messages, which would cost tokens.
    silent = {name: spec.model_copy(update=_SILENT) for name, spec in config.agents.items()}
    with tempfile.TemporaryDirectory(prefix="remora-golden-") as folder:
        copies = replace(config, data_dir=Path(folder), agents=silent)
        for database in app.by_database(config):
            if (config.data_dir / database).exists():
                await backups.copy(config.data_dir / database, Path(folder) / database, now=app.now())
        async with app.opened(copies, {}) as parts:
            for question in questions:
                owner = owner_of(
                    config, person=question.person, chat=question.chat, agent_wide=False, agent=question.agent
                )
                assert owner is not None, "a question names a person or a chat"
                if not await _finds(parts.roster.stores[owner.agent].memory, question, owner):
                    missed.append(question.ask)
    return Score(asked=len(questions), recall=1 - len(missed) / len(questions), missed=tuple(missed))


async def _finds(memory: Service, question: GoldenQuestion, owner: Owner) -> bool:
    context = await asker(memory, owner, question.person or question.chat or "")
    await memory.indexed()
    hits = await memory.browse.search(context, question.ask, limit=_FIRST)
    texts = [hit.text.casefold() for hit in hits]
    return all(any(wanted.casefold() in text for text in texts) for wanted in question.find)


def keep(config: Config, scored: Score, *, now: int) -> list[tuple[int, float]]:
    """Adds a result to the history and returns all as time (milliseconds UTC) and recall, oldest first."""
    config.data_dir.mkdir(parents=True, exist_ok=True)
    file = config.data_dir / HISTORY
    line = json.dumps({"at": now, "asked": scored.asked, "recall": round(scored.recall, 4)})
    with file.open("a", encoding="utf-8") as history:
        history.write(f"{line}\n")
    kept = []
    for written in file.read_text("utf-8").splitlines():
        one = json.loads(written)
        kept.append((int(one["at"]), float(one["recall"])))
    return kept


def report(scored: Score, before: Sequence[tuple[int, float]]) -> str:
    text = f"recall@{_FIRST} {scored.recall:.2f} of {scored.asked} questions"
    if before:
        days = [f"{recall:.2f} on {datetime.fromtimestamp(at / 1000).astimezone():%Y-%m-%d}" for at, recall in before]
        text += f"; before: {', '.join(days[-_SHOWN:])}"
    if scored.missed:
        text += f". Not found: {'; '.join(scored.missed[:_SHOWN])}"
    return text


@click.command()
@CONFIG
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def main(config_path: Path | None, file: Path) -> None:
    """Ask the questions in FILE of a copy of memory, and compare the result with those of earlier runs."""
    config = loaded(config_path)
    with ending(stopped="Stopped. Nothing was changed."):
        scored = asyncio.run(score(config, read(file)))
        *before, _ = keep(config, scored, now=app.now())
        click.echo(report(scored, before))


if __name__ == "__main__":
    main()
