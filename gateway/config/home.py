"""Makes the folder that holds a person's configuration: config.yaml, agents/assistant.yaml, .env and data/.

Invariants: an existing file stays as it is. Either all missing files are written and pass the check, or nothing is left
behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from gateway.config.loading import CONFIG_NAME
from gateway.config.setup import keep_token, short_config
from languages import Language

#: A model as its entry in an agent's file.
ModelEntry: TypeAlias = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The choices for a new home. `secret` is a variable for .env with its value; `data_dir` holds the databases."""

    model: ModelEntry | None
    secret: tuple[str, str] | None
    language: Language
    data_dir: str = "data"


def make(folder: Path, choices: Choices, check: Callable[[Path], object]) -> list[Path]:
    """Makes the missing files in `folder` and returns their paths. If `check` of the config raises, none stays."""
    made: list[Path] = []
    env_file = folder / ".env"
    kept = env_file.read_bytes() if env_file.exists() else None
    try:
        _make_folder(folder, made)
        agents = folder / "agents"
        _make_folder(agents, made)
        if not any(agents.glob("*.yaml")):
            _write(agents / "assistant.yaml", _agent(choices), made)
        if kept is None:
            _write(env_file, _ENV, made)
        if choices.secret is not None:
            keep_token(env_file, *choices.secret)
        config = folder / CONFIG_NAME
        if not config.exists():
            if choices.data_dir == "data":
                _make_folder(folder / "data", made)
            # Last: from here on the folder is found and used.
            _write(config, short_config(choices.data_dir), made)
        check(config)
    except BaseException:
        for path in reversed(made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
        if kept is not None:
            env_file.write_bytes(kept)
        raise
    return made


_ENV = "# Tokens and keys, one NAME=value a line. Only you may read this file.\n"


def _agent(choices: Choices) -> str:
    models = "models: []  # none: it notes what people say and answers from memory\n"
    if choices.model is not None:
        options = [f"{key}: {_scalar(value)}" for key, value in choices.model.items()]
        models = "models:\n  - " + "\n    ".join(options) + "\n"
    full = Path(str(resources.files("agents"))) / "assistant.yaml"
    return (
        "# The agent that answers. An option that is not here has its default. Every option, from the persona to\n"
        "# the night jobs, is explained in\n"
        f"# {full}\n"
        "\n"
        "name: assistant\n"
        f"language: {choices.language}\n"
        "timezone: system  # this machine's, or such as Europe/Lisbon\n"
        f"{models}"
    )


def _scalar(value: str | int) -> str:
    plain = isinstance(value, int) or value.isalnum()
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700)
        made.append(path)


def _write(file: Path, text: str, made: list[Path]) -> None:
    """Writes a new file that only its owner may read."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    made.append(file)
    with os.fdopen(opened, "w", encoding="utf-8") as stream:
        stream.write(text)
