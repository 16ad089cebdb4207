"""Makes the folder with a person's configuration for `remora init`, and chooses and tests a language model.

Invariants: nothing is written before every question is answered and the model has answered. Existing files stay.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import click
from pydantic import SecretStr, ValidationError

from agents.providers.table import KNOWN, KnownServer
from agents.spec import ModelSpec, machine_timezone
from gateway.cli import notes, offer
from gateway.cli.init_texts import language, texts
from gateway.cli.start import EX_CANTCREAT, EX_CONFIG, EX_TEMPFAIL, fail
from gateway.config.loading import CONFIG_NAME, Config, ConfigError, data_here, find, home_folder, load, reference
from gateway.config.setup import keep_token, short_config, use_model
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


def make_home(folder: Path, choices: Choices, check: Callable[[Path], object]) -> list[Path]:
    """Makes the missing files in `folder` and returns their paths. If `check` of the config raises, none stays."""
    made: list[Path] = []
    env_file = folder / ".env"
    kept = env_file.read_bytes() if env_file.exists() else None
    try:
        _make_folder(folder, made)
        agents = folder / "agents"
        _make_folder(agents, made)
        if not any(agents.glob("*.yaml")):
            _write_file(agents / "assistant.yaml", _agent(choices), made)
        if kept is None:
            _write_file(env_file, _ENV, made)
        if choices.secret is not None:
            keep_token(env_file, *choices.secret)
        config = folder / CONFIG_NAME
        if not config.exists():
            if choices.data_dir == "data":
                _make_folder(folder / "data", made)
            # Last: from here on the folder is found and used.
            _write_file(config, short_config(choices.data_dir), made)
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


def _write_file(file: Path, text: str, made: list[Path]) -> None:
    """Writes a new file that only its owner may read."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    made.append(file)
    with os.fdopen(opened, "w", encoding="utf-8") as stream:
        stream.write(text)


_KEY = "REMORA_MODEL_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picked:
    """A chosen model: the form to test, the entry to write, and the variable and key for .env."""

    spec: ModelSpec
    entry: ModelEntry
    secret: tuple[str, str] | None = None


def set_up(folder: Path | None, name: str | None, base_url: str | None, key_env: str | None, *, yes: bool) -> None:
    home = Path.home()
    folder = (folder or home_folder(home)).expanduser().absolute()
    asking = _Asking(texts(language(os.environ)), yes=yes)
    if folder.resolve() == reference().parent.resolve():
        fail(asking.text("source", folder=folder, default=home_folder(home)), click.UsageError.exit_code)
    if name is None and (base_url or key_env):
        raise click.UsageError("--base-url and --key-env belong to --model")
    try:
        existing = load(folder / CONFIG_NAME, os.environ, home) if (folder / CONFIG_NAME).exists() else None
        asking.say("title", folder=_shown(folder))
        picked = None
        if not _has_agent(folder, existing):
            picked = _named(asking, name, base_url, key_env) if name else _chosen(asking)
        _write(asking, folder, existing, picked)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"\n{asking.text('nothing')}", err=True)
        sys.exit(130)
    except ConfigError as exc:
        fail(f"{exc}\n{asking.text('nothing')}", EX_CONFIG)
    except OSError as exc:
        fail(asking.text("no_write", file=exc.filename, reason=exc.strerror), EX_CANTCREAT)


class _Asking:
    """Questions and sentences in one language. With `yes` every question is answered by its default."""

    def __init__(self, texts: Mapping[str, str], *, yes: bool) -> None:
        self._texts = texts
        self.yes = yes

    def text(self, key: str, **values: object) -> str:
        return self._texts[key].format(**values)

    def say(self, key: str, **values: object) -> None:
        click.echo(self.text(key, **values))

    def ask(self, key: str, default: str | None = None, *, hidden: bool = False, **values: object) -> str:
        if self.yes and default is not None:
            return default
        shown = default is not None and not hidden and default != ""
        answer = click.prompt(self.text(key, **values), default=default, show_default=shown, hide_input=hidden)
        return str(answer).strip()

    def pick(self, lines: list[str], default: int) -> int:
        if self.yes:
            return default
        for number, line in enumerate(lines, 1):
            click.echo(f"  {number}  {line}")
        most = click.IntRange(1, len(lines))
        return int(click.prompt(self.text("number"), default=default + 1, type=most)) - 1


def _has_agent(folder: Path, existing: Config | None) -> bool:
    """Returns whether no model need be chosen: one is configured, or the folder has agents for a new config.yaml."""
    if existing is None:
        return any((folder / "agents").glob("*.yaml"))
    return bool(existing.agents[existing.default_agent].models)


def _named(asking: _Asking, name: str, base_url: str | None, key_env: str | None) -> _Picked | None:
    if name == "none":
        return None
    vendor = next((key for key, one in offer.VENDORS.items() if one.variable == key_env), None)
    if key_env is not None and not os.environ.get(key_env, "").strip():
        fail(asking.text("unset", variable=key_env), EX_CONFIG)
    try:
        if base_url is None and vendor is None:
            picked = _local(name, offer.ollama(os.environ), variable=key_env)
        else:
            picked = _picked(vendor or "openai", name, base_url, variable=key_env)
    except ValidationError as exc:
        fail(asking.text("wrong", reason=_reason(exc)), click.UsageError.exit_code)
    if reason := _tested(asking, picked):
        fail(asking.text("failed", reason=reason), EX_TEMPFAIL)
    return picked


def _chosen(asking: _Asking) -> _Picked | None:
    if not asking.yes and not sys.stdin.isatty():
        fail(asking.text("no_terminal"), click.UsageError.exit_code)
    while True:
        address = offer.ollama(os.environ)
        local = asyncio.run(offer.ollama_models(address))
        lines = [asking.text("ollama", models=_summary(asking, local))] if local else []
        vendors = list(offer.VENDORS)
        lines += [_vendor_line(asking, offer.VENDORS[name]) for name in vendors]
        lines += [asking.text("other"), asking.text("none")]
        with_key = (n for n, one in enumerate(offer.VENDORS.values()) if os.environ.get(one.variable, "").strip())
        default = 0 if local else next(with_key, len(lines) - 1)
        if not asking.yes:
            click.echo()
            asking.say("which")
        number = asking.pick(lines, default)
        if number == len(lines) - 1:
            return None
        at_vendor = number - bool(local)
        try:
            if local and number == 0:
                picked: _Picked | None = _local(_one_of(asking, local), address)
            elif at_vendor < len(vendors):
                picked = _of_vendor(asking, vendors[at_vendor])
            else:
                picked = _of_other(asking)
        except ValidationError as exc:
            asking.say("wrong", reason=_reason(exc))
            continue
        if picked is None:
            continue
        reason = _tested(asking, picked)
        if not reason:
            return picked
        if asking.yes:
            fail(asking.text("failed", reason=reason), EX_TEMPFAIL)
        asking.say("failed", reason=reason)
        asking.say("again")


def _one_of(asking: _Asking, names: list[str]) -> str:
    number = 0
    if len(names) > 1:
        if not asking.yes:
            asking.say("models")
        number = asking.pick(names, 0)
    return names[number]


def _local(name: str, address: str, *, variable: str | None = None) -> _Picked:
    """Returns a model of the Ollama at `address`, which is written down unless it is the usual one."""
    usual = address in (KNOWN["ollama"].base_url.removesuffix("/v1"), "http://127.0.0.1:11434")
    return _picked("ollama", name, None if usual else f"{address}/v1", variable=variable)


def _of_vendor(asking: _Asking, name: str) -> _Picked | None:
    vendor, key = KNOWN[name], None
    if os.environ.get(vendor.variable, "").strip():
        asking.say("key_used", variable=vendor.variable, host=vendor.host)
    else:
        asking.say("key_note", host=vendor.host)
        key = asking.ask("key_ask", "", hidden=True, name=vendor.title)
        if not key:
            return None
    model = asking.ask("model", vendor.model)
    return _picked(name, model, None, variable=vendor.variable, key=key)


def _of_other(asking: _Asking) -> _Picked:
    address = asking.ask("address")
    if "://" not in address:
        address = f"http://{address}"
    model = asking.ask("model")
    key = asking.ask("other_key", "", hidden=True)
    return _picked("openai", model, address, variable=_KEY if key else None, key=key or None)


def _picked(
    provider: str, model: str, base_url: str | None, *, variable: str | None = None, key: str | None = None
) -> _Picked:
    entry: dict[str, str | int] = {"provider": provider, "model": model}
    if base_url is not None:
        entry["base_url"] = base_url
    elif provider != "openai":
        entry["context"] = KNOWN[provider].context
    options: dict[str, object] = dict(entry)
    if variable is not None:
        entry["key"] = f"${{{variable}}}"
        options["key"] = SecretStr(key or os.environ[variable])
    secret = (variable, key) if variable is not None and key is not None else None
    return _Picked(spec=ModelSpec.model_validate(options), entry=entry, secret=secret)


def _tested(asking: _Asking, picked: _Picked) -> str:
    asking.say("asking" if picked.spec.key else "asking_local", model=picked.spec.model)
    trial = asyncio.run(offer.tried(picked.spec))
    if not trial.trouble:
        asking.say("works" if trial.calls else "works_without_tools")
    return trial.trouble


def _write(asking: _Asking, folder: Path, existing: Config | None, picked: _Picked | None) -> None:
    agent_file = folder / "agents" / f"{existing.default_agent if existing else 'assistant'}.yaml"
    named = any(agent_file.parent.glob("*.yaml"))
    kept = [path for path in (folder / CONFIG_NAME, folder / ".env", agent_file) if path.exists()]
    data = data_here(os.environ, Path.cwd(), Path.home()) if existing is None else None
    made = make_home(
        folder,
        Choices(
            model=picked.entry if picked else None,
            secret=picked.secret if picked else None,
            language=language(os.environ),
            data_dir=str(data or "data"),
        ),
        lambda file: load(file, os.environ, Path.home()),
    )
    if picked is not None and named:
        if agent_file.exists():
            use_model(agent_file, picked.entry)
            kept.remove(agent_file)
            made.append(agent_file)
        else:
            asking.say("elsewhere", name=existing.default_agent if existing else "assistant", file=agent_file)
    click.echo()
    _report(asking, folder, made, kept)
    config = load(folder / CONFIG_NAME, os.environ, Path.home())
    spec = config.agents[config.default_agent]
    if spec.models and picked is None:
        models = ", ".join(model.model for model in spec.models)
        asking.say("has_model", name=spec.name, models=models, file=_shown(agent_file))
    elif agent_file in made:
        asking.say("guessed", zone=machine_timezone(), file=_shown(agent_file))
    if data:
        asking.say("data_from", folder=data)
    _say_next(asking, folder)
    for some in notes.at_first_start(config, Path.cwd()):
        asking.say("notes", named=some.named)


def _report(asking: _Asking, folder: Path, made: list[Path], kept: list[Path]) -> None:
    files = [path for path in made if path.is_file()]
    if files:
        asking.say("written")
        for path in files:
            click.echo(f"  {_shown(path)}")
    else:
        asking.say("complete", folder=_shown(folder))
    if kept and files:
        asking.say("kept", files=", ".join(map(_shown, kept)))


def _say_next(asking: _Asking, folder: Path) -> None:
    home, option, program = Path.home(), "", _program()
    if folder != home_folder(home):
        option = f" --config {shlex.quote(str(folder / CONFIG_NAME))}"
    click.echo()
    asking.say("next")
    commands = {
        f"{program} chat{option}": "next_chat",
        f"{program} channels add telegram{option}": "next_telegram",
        f"{program} check{option}": "next_check",
    }
    width = max(map(len, commands))
    for command, about in commands.items():
        click.echo(f"  {command:<{width}}  {asking.text(about)}")
    used = None
    with suppress(ConfigError):  # REMORA_CONFIG names a file that is not there; every other command says so
        used = find(None, os.environ, Path.cwd(), home)
    if not option and used is not None and used != folder / CONFIG_NAME:
        asking.say("shadow", cwd=Path.cwd(), file=used, new=folder / CONFIG_NAME)


def _program() -> str:
    path = Path(sys.executable).with_name("remora")
    if shutil.which("remora") or not path.exists():
        return "remora"
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _summary(asking: _Asking, names: list[str]) -> str:
    first = ", ".join(names[:2])
    return first if len(names) <= 2 else asking.text("more", names=first, count=len(names) - 2)


def _vendor_line(asking: _Asking, vendor: KnownServer) -> str:
    if not os.environ.get(vendor.variable, "").strip():
        return vendor.title
    return asking.text("key_set", name=vendor.title, variable=vendor.variable)


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    option = str(first["loc"][0])
    if "message" in first.get("ctx", {}):
        return f"{option} {first['ctx']['message']}"
    return f"{option} must be {ModelSpec.model_fields[option].description}"


def _shown(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
