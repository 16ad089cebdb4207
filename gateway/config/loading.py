"""Finds config.yaml, its .env and the agents' files, and turns them into one frozen `Config`.

Invariants: a mistake in any file stops the start, is never replaced by a default, and is reported together with all
others: file, line, option, value, mistake, remedy. Unknown options are mistakes. Secrets are never printed.
Relative paths are relative to the folder of config.yaml. The environment and the home folder are passed in.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from dotenv.parser import parse_stream
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from agents import plugins, skills, tools
from agents.spec import AGENT_NAME, LONGEST_PERSONA, REFUSED, AgentSpec
from channels.base import Place
from gateway.config.retired import RETIRED, RETIRED_OF_AGENTS, Retired, dropped
from gateway.config.settings import (
    EMBEDDERS,
    USUAL,
    BotSettings,
    OtherSettings,
    Settings,
    TelegramSettings,
    WorkPace,
    is_loopback,
)
from gateway.config.strict_yaml import (
    MAX_BYTES,
    MAX_PROBLEMS,
    Document,
    KeyPath,
    Problem,
    key_text,
    nearest,
    parse,
    value_text,
)

CONFIG_NAME = "config.yaml"
#: The database of every agent that does not name its own.
DEFAULT_DATABASE = "remora.db"
#: The prefix of the ids of the web page's channels, before the agent's name.
WEB_PREFIX = "web-"
#: The thread in which the forms of the page speak, apart from all conversations.
FORMS = "forms"
#: Files beside an agent's that add to its persona and rules, as other assistants call them.
VOICES = ("SOUL.md", "AGENTS.md")
#: Words that commands and the terminal already use where an agent's name could stand.
RESERVED_AGENT_NAMES = frozenset({"all", "console", "default", "list", "none"})


class ConfigError(Exception):
    """Raised when the configuration can't be used. `str()` lists every problem for the operator, one per line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration, checked as a whole; all paths are absolute.

    `source` is None when there is no config.yaml and all settings are defaults. `default_agent` names the agent that
    answers where no rule says otherwise. `page_agents` are the agents with a web page; there are none if it isn't
    served. `retired` has a sentence for each option in the files that no longer exists.
    """

    source: Path | None
    settings: Settings
    data_dir: Path
    agents_dir: Path
    tools_dir: Path
    skills_dir: Path
    log_file: Path | None
    default_agent: str
    agents: dict[str, AgentSpec]
    page_agents: tuple[str, ...]
    retired: tuple[str, ...]
    pace: WorkPace = USUAL


def reference() -> Path:
    inside = Path(str(resources.files("gateway"))) / CONFIG_NAME
    return inside if inside.is_file() else inside.parents[1] / CONFIG_NAME


def home_folder(home: Path) -> Path:
    return home / ".config" / "remora"


def find(explicit: Path | None, env: Mapping[str, str], cwd: Path, home: Path) -> Path | None:
    """Returns the path of the configuration to use, or None when there is none.

    The first of these that is given or exists: `explicit` (--config), $REMORA_CONFIG, ./config.yaml,
    `home`/.config/remora/config.yaml. A ./config.yaml that is the shipped reference, unchanged, comes last. Raises
    `ConfigError` when a named file is missing: a person who names a file never means the defaults.
    """
    named = explicit, "given with --config"
    if explicit is None and env.get("REMORA_CONFIG"):
        named = Path(env["REMORA_CONFIG"]), "named by the environment variable REMORA_CONFIG"
    path, origin = named
    if path is not None:
        path = _resolved(str(path), cwd, home)
        if not _exists(path):
            raise ConfigError(
                [_about_file(path, f"this file, {origin}, does not exist", "correct the path or create the file")]
            )
        return path
    here, at_home = cwd / CONFIG_NAME, home_folder(home) / CONFIG_NAME
    if not _exists(here):
        return at_home if _exists(at_home) else None
    return at_home if _exists(at_home) and is_reference(here, env, home) else here


def is_reference(path: Path, env: Mapping[str, str], home: Path) -> bool:
    """Returns whether the file is the shipped reference, beside the shipped agent: all options, and none changed."""
    try:
        config = load(path, env, home)
    except ConfigError:
        return False
    defaults = Settings()
    states_all = config.settings.model_fields_set == set(Settings.model_fields)
    shipped = {defaults.default_agent: AgentSpec(name=defaults.default_agent)}
    return states_all and config.settings == defaults and config.agents == shipped


def data_here(env: Mapping[str, str], cwd: Path, home: Path) -> Path | None:
    file = cwd / CONFIG_NAME
    if not _exists(file) or not is_reference(file, env, home):
        return None
    folder = cwd / Settings().data_dir
    return folder if any(folder.glob("*.db")) else None


def misplaced(config: Config, cwd: Path, home: Path) -> list[str]:
    """Returns a sentence for each file or folder that looks like configuration but is not read."""
    found = []
    for folder in dict.fromkeys((config.source.parent if config.source else cwd, cwd, home_folder(home))):
        other = folder / "config.yml"
        if _exists(other) and not _exists(folder / CONFIG_NAME):
            found.append(f"{other} is not read. If it is Remora's, rename it to {CONFIG_NAME}.")
    if _holds(Path.is_dir, config.agents_dir) and not any(config.agents_dir.glob("[!.]*.yaml")):
        found.append(
            f"{config.agents_dir} holds no .yaml file, so the agent that ships with Remora answers. "
            "`remora init` writes one to change."
        )
    return found


def load(path: Path | None, env: Mapping[str, str], home: Path, *, pace: WorkPace = USUAL) -> Config:
    """Reads the configuration at `path` with its .env and agents.

    With `path` None all settings are defaults, based in `home`/.config/remora. If the agents' folder is missing or
    holds no agent, the shipped agent serves. Variables in `env` win over those of the .env beside the file. Raises
    `ConfigError` with the problems of all files.
    """
    path = path.absolute() if path is not None else None
    folder = path.parent if path is not None else home_folder(home)
    loader = _Loader(folder=folder, env=env, home=home)
    settings = loader.settings(path)
    agents_dir = folder / "agents"
    data_dir = _resolved(settings.data_dir, folder, home)
    log_file = _resolved(settings.log.file, folder, home) if settings.log.file is not None else None
    agents = loader.agents(agents_dir)
    loader.check_names(agents)
    loader.check_routes(agents)
    loader.check_tools(agents, folder)
    loader.check_tasks(agents)
    loader.check_bots(settings)
    loader.check_parts(settings, agents)
    loader.check_webhooks(settings)
    loader.check_api(settings)
    loader.check_search(settings, agents)
    loader.check_page(settings, agents)
    loader.check_targets(data_dir, settings.backup.within(data_dir), log_file)
    default_agent = loader.default_agent(settings, agents)
    voices = {agent.name: voices_of(agents_dir, agent.name, default_agent) for agent in agents}
    specs = {agent.name: loader.voiced(agent.spec, voices[agent.name]) for agent in agents if agent.spec is not None}
    if loader.problems:
        files = list(dict.fromkeys(problem.file for problem in loader.problems))
        raise ConfigError(sorted(loader.problems, key=lambda p: (files.index(p.file), p.line or 0)))
    return Config(
        source=path,
        settings=settings,
        data_dir=data_dir,
        agents_dir=agents_dir,
        tools_dir=folder / "tools",
        skills_dir=folder / "skills",
        log_file=log_file,
        default_agent=default_agent,
        agents=specs,
        page_agents=(settings.web.agents or (default_agent,)) if settings.has_page else (),
        retired=tuple(loader.retired),
        pace=pace,
    )


def voices_of(agents_dir: Path, name: str, default_agent: str) -> tuple[Path, ...]:
    """Returns an agent's files of `VOICES`: in the folder with its name, or beside the default agent's file."""
    folders = [agents_dir / name, *([agents_dir] if name == default_agent else [])]
    beside = [next((folder / file for folder in folders if _exists(folder / file)), None) for file in VOICES]
    return tuple(file for file in beside if file is not None)


_Part = TypeVar("_Part", bound=BaseModel)

# Names of options whose values are secrets in every section.
_SECRET_KEY = re.compile(r"(?i)key|token$|secret|password|proxy")
_ROUTES = ("people", "threads", "chats", "channels")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    file: Path
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """An agent's file. `spec` is None when it has problems; `name` is then the best guess."""

    read: _Read
    spec: AgentSpec | None
    name: str


class _Loader:
    def __init__(self, *, folder: Path, env: Mapping[str, str], home: Path) -> None:
        self._folder = folder
        self._home = home
        self._env_file = folder / ".env"
        self._main: _Read | None = None
        self.problems: list[Problem] = []
        self.retired: list[str] = []
        # The agents with the retired routing.default, one of which answers unless default_agent is written.
        self._claiming: list[str] = []
        self._variables = {**self._dotenv(), **env}

    def settings(self, path: Path | None) -> Settings:
        """Returns the settings at `path`; parts with problems keep their defaults, so that checking can go on."""
        raw = self._bytes(path) if path is not None else None
        if path is None or raw is None:
            return Settings()
        self._main = self._parse(raw, path)
        data = self._main.document.data
        if data is None:
            return Settings()
        self._drop_retired(self._main, RETIRED)
        settings = self._validated(Settings, self._main)
        if settings is None:
            # Top-level options do not depend on each other, so the correct ones hold without the faulty ones.
            settings = Settings.model_validate({k: v for k, v in data.items() if _fits({k: v})})
        return settings

    def agents(self, folder: Path) -> list[_Agent]:
        try:
            files = sorted(folder.iterdir()) if folder.exists() else []
        except (OSError, ValueError) as error:
            message, fix = f"the folder can't be read ({_reason(error)})", "let the bot's user read it"
            self.problems.append(_about_file(folder, message, fix))
            return []
        files = [f for f in files if f.suffix in (".yaml", ".yml") and not f.name.startswith(".")]
        agents: list[_Agent] = []
        for file in files:
            if file.suffix == ".yml":
                fix = f"rename it to {file.stem}.yaml, or move it elsewhere"
                self.problems.append(_about_file(file, "an agent's file must end in .yaml", fix))
            elif (raw := self._bytes(file)) is not None:
                agents.append(self._agent(raw, file))
        if not files:
            shipped = resources.files("agents") / "assistant.yaml"
            agents.append(self._agent(shipped.read_bytes(), Path(str(shipped))))
        return agents

    def voiced(self, spec: AgentSpec, files: Iterable[Path]) -> AgentSpec:
        """Returns an agent with the texts of its files of `VOICES`; one that can't be used is a problem."""
        texts = dict.fromkeys(VOICES, "")
        for file in files:
            raw = self._bytes(file) or b""
            try:
                texts[file.name] = raw.decode("utf-8-sig").strip()
            except UnicodeDecodeError:
                self.problems.append(_about_file(file, "is not UTF-8 text", "save it as UTF-8"))
            if len(texts[file.name]) > LONGEST_PERSONA:
                message = f"has more than {LONGEST_PERSONA} characters, and all of it is sent with every message"
                self.problems.append(_about_file(file, message, "shorten it, or move parts into skills"))
        return spec.voiced(*texts.values())

    def check_names(self, agents: list[_Agent]) -> None:
        first: dict[str, _Agent] = {}
        for agent in agents:
            if agent.spec is None:
                continue
            if agent.name in RESERVED_AGENT_NAMES:
                words = ", ".join(sorted(RESERVED_AGENT_NAMES))
                self._report(
                    agent.read, ("name",), "is a word that commands already use", f"choose a name other than {words}"
                )
            other = first.setdefault(agent.name, agent)
            if other is not agent:
                where = f"{other.read.file.name}, line {other.read.document.line(('name',))}"
                self._report(agent.read, ("name",), f"is already taken in {where}", "give each agent its own name")

    def check_routes(self, agents: list[_Agent]) -> None:
        """Reports rules claimed twice, and rules that would never match because they are spelled differently."""
        claims: dict[tuple[str, str], tuple[_Agent, KeyPath]] = {}
        for agent in agents:
            for path, kind, rule in _rules(agent):
                canonical = _canonical(kind, rule)
                if canonical != rule:
                    fix = f"write {canonical}" if canonical else "copy the key from /status"
                    self._report(agent.read, path, "would never match, since keys are escaped", fix)
                    continue
                other, there = claims.setdefault((kind, rule), (agent, path))
                if there != path or other is not agent:
                    line = other.read.document.line(there)
                    message = f"is already claimed by {other.name} ({other.read.file.name}, line {line})"
                    self._report(agent.read, path, message, "leave it in one place only")

    def check_tools(self, agents: list[_Agent], folder: Path) -> None:
        for agent in agents:
            if agent.spec is None:
                continue
            if agent.spec.mcp and not tools.installed():
                fix = f"install it: {tools.INSTALL}"
                self._report(agent.read, ("mcp",), "needs a package that is not installed", fix, show=False)
            for name in tools.missing_tools(agent.spec.own_tools, folder / "tools"):
                fix = f"write {folder / 'tools' / name}.py, or remove it from own_tools"
                self._report(agent.read, ("own_tools",), f"names {name}, which is not there", fix, show=False)
            for name in agent.spec.skills:
                if not _holds(Path.is_file, folder / "skills" / name / skills.FILE):
                    fix = f"write {folder / 'skills' / name / skills.FILE}, or remove it from skills"
                    self._report(agent.read, ("skills",), f"names {name}, which is not there", fix, show=False)

    def check_tasks(self, agents: list[_Agent]) -> None:
        if not any(agent.spec is not None and agent.spec.tasks for agent in agents):
            return  # memory takes long to load, and few files have tasks
        from memory.text.times.rules import parse_rule as reminder_rule

        for agent in agents:
            for number, task in enumerate(agent.spec.tasks if agent.spec is not None else ()):
                try:
                    reminder_rule(task.at)
                except ValueError as exc:
                    fix = 'write minute, hour, day, month and weekday, such as "0 8 * * 1-5"'
                    self._report(agent.read, ("tasks", number, "at"), f"can't be read: {exc}", fix)

    def check_bots(self, settings: Settings) -> None:
        """Reports channel ids and bots given twice: two receivers of one token would take each other's messages."""
        ids: dict[str, str] = {"console": "the terminal's", "api": "that of programs"}
        tokens: dict[str, str] = {}
        for bot, here in _bots(settings):
            if bot.id.startswith(WEB_PREFIX):
                fix = f"choose another id, such as id: {bot.platform}-2"
                self._report(self._main, (*here, "id"), "begins like those of the web page", fix)
            if bot.id in ids:
                at = (*here, "id") if "id" in bot.model_fields_set else here
                fix = f"give each bot its own id, such as id: {bot.platform}-2"
                self._report(self._main, at, f"has the id {bot.id}, which is already {ids[bot.id]}", fix, show=False)
            ids.setdefault(bot.id, f"that of {key_text(here)}")
            if isinstance(bot, OtherSettings):
                self._check_part(self._main, (*here, "platform"), plugins.CHANNELS, bot.platform)
                continue
            if (token := bot.token.get_secret_value()) in tokens:
                maker = "with @BotFather" if bot.platform == "telegram" else "on Discord's developer page"
                fix = f"keep the bot in one place, or create another {maker}"
                self._report(self._main, (*here, "token"), f"is already the token of {tokens[token]}", fix)
            tokens.setdefault(token, key_text(here))

    def check_parts(self, settings: Settings, agents: list[_Agent]) -> None:
        if settings.embedding.provider not in EMBEDDERS:
            self._check_part(self._main, ("embedding", "provider"), plugins.EMBEDDERS, settings.embedding.provider)
        for agent in agents:
            for number, model in enumerate(agent.spec.models if agent.spec is not None else ()):
                if model.from_outside:
                    self._check_part(agent.read, ("models", number, "provider"), plugins.PROVIDERS, model.provider)

    def _check_part(self, read: _Read | None, path: KeyPath, group: str, name: str) -> None:
        try:
            plugins.load(group, name)
        except plugins.PluginUnusable as exc:
            self._report(read, path, f"can't be used: {exc}", "install the package anew, or ask whoever wrote it")

    def check_webhooks(self, settings: Settings) -> None:
        for bot, here in _bots(settings):
            if isinstance(bot, TelegramSettings) and bot.webhook is not None and not settings.http.enabled:
                message = "needs the HTTP server, which http.enabled: false turns off"
                fix = "write http: {enabled: true}, or remove the webhook so that the bot polls Telegram for messages"
                self._report(self._main, (*here, "webhook"), message, fix, show=False)

    def check_api(self, settings: Settings) -> None:
        api, http = settings.api, settings.http
        if not api.enabled or not (self._sound("api") and self._sound("http")):
            return
        if not http.enabled:
            message, fix = "needs the HTTP server, which http.enabled: false turns off", "write http: {enabled: true}"
            self._report(self._main, ("api",), message, fix, show=False)
        elif api.url is None and not is_loopback(http.host):
            message = f"would be reached from other machines, because http.host is {http.host}, and api.url is missing"
            fix = "add url: https://bot.example.org, the address others use, or write http: {host: 127.0.0.1}"
            self._report(self._main, ("api",), message, fix, show=False)
        seen: set[str] = set()
        for n, one in enumerate(api.front_ends):
            if seen & {one.name, one.key.get_secret_value()}:
                fix = "give each front end its own name and key"
                self._report(self._main, ("api", "front_ends", n), "has a name or key of another", fix, show=False)
            seen |= {one.name, one.key.get_secret_value()}

    def check_search(self, settings: Settings, agents: list[_Agent]) -> None:
        for agent in agents:
            tools = agent.spec.tools if agent.spec is not None else ()
            if "web_search" in tools and settings.internet.search is None and self._sound("internet"):
                message = "names web_search, but config.yaml names no server that searches"
                fix = "write internet: {search: http://localhost:8888} into config.yaml, or remove web_search"
                self._report(agent.read, ("tools", tools.index("web_search")), message, fix, show=False)

    def check_page(self, settings: Settings, agents: list[_Agent]) -> None:
        if not self._sound("web") or not self._sound("http"):
            return
        if settings.web.enabled and not settings.http.enabled:
            fix = "write http: {enabled: true}, or web: {enabled: false}"
            self._report(
                self._main, ("web", "enabled"), "needs the HTTP server, which http.enabled: false turns off", fix
            )
        if settings.web.enabled and not is_loopback(settings.http.host) and not settings.web.url:
            message = f"is on, and http.host {settings.http.host} is reached from other machines"
            fix = "add web.url, the https address that people open, or write http: {host: 127.0.0.1}"
            self._report(self._main, ("web", "enabled"), message, fix)
        known = {agent.name for agent in agents}
        for number, name in enumerate(settings.web.agents):
            if name not in known:
                fix = f"write one of {', '.join(sorted(known))}"
                self._report(self._main, ("web", "agents", number), "is no agent", fix)

    def default_agent(self, settings: Settings, agents: list[_Agent]) -> str:
        name = settings.default_agent
        if not self._sound("default_agent") or not agents:
            return name
        written = "default_agent" in settings.model_fields_set
        if not written and self._claiming:
            return self._claiming[0]
        known = sorted({agent.name for agent in agents})
        if name not in known:
            meant = nearest(name, known) or known[0]
            which = "of this name" if written else f"called {name}"
            message = f"there is no agent {which} (known: {', '.join(known)})"
            self._report(self._main, ("default_agent",), message, f"write default_agent: {meant}")
        return name

    def check_targets(self, data_dir: Path, backups: Path, log_file: Path | None) -> None:
        """Reports places that can't be reached, a file where the data folder is to be, and a folder for the log."""
        reached: dict[KeyPath, Path] = {("log", "file"): log_file} if log_file is not None else {}
        if _holds(Path.is_file, data_dir):
            self._report(self._main, ("data_dir",), "is a file, not a folder", "name a folder")
        else:
            reached["data_dir",] = data_dir / "remora.db"
        if not backups.is_relative_to(data_dir):
            reached["backup", "folder"] = backups / "remora.db"
        for option, path in reached.items():
            try:
                path.stat()
            except FileNotFoundError:
                continue  # it will be made
            except (OSError, ValueError) as error:
                fix = "name another place, or run Remora as the user who owns this one"
                self._report(self._main, option, f"can't be reached ({_reason(error)})", fix)
        if log_file is not None and _holds(Path.is_dir, log_file):
            self._report(self._main, ("log", "file"), "is a folder, not a file", "name a file in it")

    def _sound(self, option: str) -> bool:
        if self._main is None:
            return True
        data = self._main.document.data
        if data is None:
            return False
        if any(path[:1] == (option,) for path in self._main.document.faulty):
            return False
        return option not in data or _fits({option: data[option]})

    def _agent(self, raw: bytes, file: Path) -> _Agent:
        read = self._parse(raw, file)
        routing = (read.document.data or {}).get("routing")
        claims = isinstance(routing, dict) and routing.get("default") is True
        self._drop_retired(read, RETIRED_OF_AGENTS)
        spec = self._validated(AgentSpec, read)
        if spec is not None:
            self._claiming += [spec.name] if claims else []
            return _Agent(read=read, spec=spec, name=spec.name)
        named = (read.document.data or {}).get("name")
        likely = isinstance(named, str) and re.match(AGENT_NAME, named) and not read.document.interpolated
        return _Agent(read=read, spec=None, name=str(named) if likely else file.stem)

    def _parse(self, raw: bytes, file: Path) -> _Read:
        document = parse(raw, file=file, variables=self._variables, env_file=self._env_file)
        self.problems.extend(document.problems)
        return _Read(file=file, document=document)

    def _drop_retired(self, read: _Read, retired: Mapping[str, Retired]) -> None:
        for path, row, value, todo in dropped(read.document.data, retired):
            if row.wants_less(value) and not (path == ("agents_dir",) and self._holds_agents(value)):
                message = f"is no longer an option, and what it says would not hold. {row.instead.rstrip('.')}"
                self._report(read, path, message, "remove the line if that is right", show=False)
            else:
                place = f"{read.file}, line {read.document.line(path)}: {key_text(path)}"
                self.retired.append(f"{place} is no longer an option. {row.instead} {todo}")

    def _holds_agents(self, value: Any) -> bool:
        """Returns whether a retired agents_dir names the folder that agents are read from, by a link or not."""
        own = self._folder / "agents"
        if not isinstance(value, str):
            return value is None
        named = _resolved(value, self._folder, self._home)
        return named == own or _holds(own.samefile, named)

    def _validated(self, model: type[_Part], read: _Read) -> _Part | None:
        document = read.document
        if document.data is None:
            return None
        try:
            return model.model_validate(document.data)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
        for detail in details[:MAX_PROBLEMS]:
            path = detail["loc"]
            context = detail.get("ctx", {})
            if path in document.faulty:
                continue
            if detail["type"] == REFUSED:
                at = (*path, context["at"]) if context["at"] else path
                self._report(read, at, context["message"], context["fix"])
            elif detail["type"] == "extra_forbidden":
                # The value is not shown: it may be a secret under a misspelled name.
                self._report(read, path, "unknown option", instead_of(model, path), show=False)
            elif detail["type"] == "missing":
                _, rule, example = rule_of(model, path)
                fix = f"add {key_text(path[-1:])}: {example}" if example else "add it"
                self._report(read, path, f"is missing; it must be {rule}", fix, show=False)
            elif detail["type"] == "too_long" and get_origin(rule_of(model, path)[0]) is tuple:
                most = context["max_length"]
                self._report(read, path, f"has more than {most} items", f"keep at most {most}")
            else:
                self._report(
                    read,
                    path,
                    f"must be {rule_of(model, path)[1]}",
                    fix_of(model, path, _at(document.data, path), detail["type"]),
                )
        return None

    def _report(self, read: _Read | None, path: KeyPath, message: str, fix: str, *, show: bool = True) -> None:
        """Notes a problem at `path` of a file; without a file the problem concerns the missing config.yaml."""
        file, line, value = self._folder / CONFIG_NAME, None, None
        if read is not None:
            file, line = read.file, read.document.line(path)
        if read is not None and show and path in read.document.lines:
            secret = path in read.document.interpolated or any(
                isinstance(step, str) and _SECRET_KEY.search(step) for step in path
            )
            value = "***" if secret else value_text(_at(read.document.data, path))
        self.problems.append(Problem(file=file, line=line, key=key_text(path), value=value, message=message, fix=fix))

    def _dotenv(self) -> dict[str, str]:
        """Returns the variables of the .env file, taken literally: no variable is put into another."""
        if not _holds(Path.is_file, self._env_file):
            return {}
        raw = self._bytes(self._env_file)
        if raw is None:
            return {}
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._env_problem(raw.count(b"\n", 0, error.start) + 1, "is not UTF-8 text", "save it as UTF-8")
            return {}
        if len(raw) > MAX_BYTES:
            self._env_problem(1, f"has more than {MAX_BYTES // 1024} KB", "check that it is the right file")
            return {}
        variables: dict[str, str] = {}
        for binding in parse_stream(io.StringIO(text)):
            if binding.error:
                said = binding.original.string
                line = binding.original.line + said[: len(said) - len(said.lstrip())].count("\n")
                self._env_problem(line, "is not NAME=value", "correct the line or put # before it")
            elif binding.key is not None and binding.value is not None:
                variables[binding.key] = binding.value
        return variables

    def _env_problem(self, line: int, message: str, fix: str) -> None:
        self.problems.append(Problem(file=self._env_file, line=line, key="", value=None, message=message, fix=fix))

    def _bytes(self, path: Path) -> bytes | None:
        """Returns the file's bytes, cut just above the accepted size; None, and a problem, when it can't be read."""
        try:
            if path.is_dir():
                fix = "remove the folder, or name another file"
                self.problems.append(_about_file(path, "this is a folder, not a file", fix))
                return None
            with path.open("rb") as stream:
                return stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            fix = "check that it exists and that the bot's user can read it"
            self.problems.append(_about_file(path, f"the file can't be read ({_reason(error)})", fix))
            return None


def _bots(settings: Settings) -> Iterable[tuple[BotSettings, KeyPath]]:
    for platform in ("telegram", "discord", "other"):
        for i, bot in enumerate(getattr(settings.channels, platform)):
            yield bot, ("channels", platform, i)


def _rules(agent: _Agent) -> Iterable[tuple[KeyPath, str, str]]:
    if agent.spec is None:
        return
    for kind in _ROUTES:
        for i, rule in enumerate(getattr(agent.spec.routing, kind)):
            yield ("routing", kind, i), kind, rule


def _canonical(kind: str, rule: str) -> str:
    """Returns the rule as session keys spell it; empty when no session key can look like it."""
    if kind not in ("threads", "chats"):
        return rule
    suffix = ":-" if kind == "chats" else ""
    try:
        return Place.from_session_key(rule + suffix).session_key.removesuffix(suffix)
    except ValueError:
        return ""


def _fits(data: dict[str, Any]) -> bool:
    try:
        Settings.model_validate(data)
    except ValidationError:
        return False
    return True


def _at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def _about_file(path: Path, message: str, fix: str) -> Problem:
    return Problem(file=path, line=None, key="", value=None, message=message, fix=fix)


def _resolved(text: str, folder: Path, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return folder / text


def _exists(path: Path) -> bool:
    # A dangling link is chosen too, so that loading it says what is wrong instead of taking the defaults.
    return _holds(Path.exists, path) or _holds(Path.is_symlink, path)


def _holds(test: Callable[[Path], bool], path: Path) -> bool:
    try:
        return test(path)
    except (OSError, ValueError):
        return False


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def rule_of(model: type[BaseModel], path: KeyPath) -> tuple[Any, str, str]:
    """Returns the rule for the option at `path`: its type, the words that follow "must be", and an example or ''."""
    annotation: Any = model
    field: FieldInfo | None = None
    for step in path:
        annotation = bare(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields[str(step)]
            annotation = field.annotation
        else:
            annotation, field = get_args(annotation)[0], None
        if field is None or not field.description:
            arms = (annotation, *get_args(annotation)) if NoneType in get_args(annotation) else (annotation,)
            extras = [extra for arm in arms for extra in getattr(arm, "__metadata__", ())]
            field = next((extra for extra in extras if isinstance(extra, FieldInfo)), field)
    annotation = bare(annotation)
    example: object = None
    if field is not None:
        example = field.examples[0] if field.examples else field.default
    text = example if isinstance(example, str) and "\n" not in example else ""
    if isinstance(example, bool | int | float):
        text = json.dumps(example).removesuffix(".0")
    if field is not None and field.description:
        return annotation, field.description, text
    if annotation is bool:
        return annotation, "true or false", text
    if get_origin(annotation) is Literal:
        return annotation, "one of " + ", ".join(get_args(annotation)), text
    if get_origin(annotation) is tuple:
        return annotation, "a list: one item a line, each beginning with '- '", ""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, "a section: its options below it, one a line, indented", ""
    return annotation, "a text", text


def bare(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(arm for arm in get_args(annotation) if arm is not NoneType)
        else:
            return annotation


def fix_of(model: type[BaseModel], path: KeyPath, value: object, kind: str) -> str:
    annotation, _, example = rule_of(model, path)
    name = "-" if isinstance(path[-1], int) else f"{path[-1]}:"
    if get_origin(annotation) is Literal:
        choices = list(get_args(annotation))
        return f"write {name} {nearest(str(value), choices) or example or choices[0]}"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "put the value in quotes"
    if example:
        return f"write for example {name} {example}"
    if get_origin(annotation) is tuple:
        return "write the items below it, or [] for none"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"write its options below it, such as {next(iter(annotation.model_fields))}"
    return "correct the value, or remove the line"


def instead_of(model: type[BaseModel], path: KeyPath) -> str:
    word = str(path[-1])
    section = rule_of(model, path[:-1])[0] if path[:-1] else model
    here = list(section.model_fields)
    meant = nearest(word, here)
    if meant is not None:
        return f"write {meant} instead"
    elsewhere = [place for place in options(model) if place.endswith(f".{word}")]
    if elsewhere:
        return f"move it to {elsewhere[0]}"
    other, where = (AgentSpec, "an agent's file") if model is Settings else (Settings, "config.yaml")
    if word in other.model_fields:
        return f"move it to {where}, where it belongs"
    return f"remove it; known here: {', '.join(here)}"


def options(model: type[BaseModel], before: str = "") -> Iterable[str]:
    for name, field in model.model_fields.items():
        yield before + name
        annotation, inside = bare(field.annotation), "."
        if get_origin(annotation) is tuple:
            annotation, inside = bare(get_args(annotation)[0]), "[]."
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from options(annotation, before + name + inside)
