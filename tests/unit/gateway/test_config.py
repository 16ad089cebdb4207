"""Configuration as a whole: finding it, loading it, and telling every mistake of every file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, SecretStr

from agents.spec import AgentSpec
from agents.tools import installed
from gateway.__main__ import main
from gateway.config import loading
from gateway.config.loading import ConfigError, find, load
from gateway.config.retired import RETIRED, RETIRED_OF_AGENTS, Retired
from gateway.config.settings import DiscordSettings, FrontEndSettings, Settings, TelegramSettings, TranscriberSettings
from gateway.config.strict_yaml import MAX_BYTES, MAX_PROBLEMS, parse
from tests.kit.tables import each_row

ROOT = Path(__file__).parents[3]
SHIPPED_CONFIG = ROOT / "config.yaml"
SHIPPED_AGENT = ROOT / "agents" / "assistant.yaml"
NOBODY = Path("/nonexistent-home")
TOKEN = "123456789:" + "Aa0_-" * 7


def write(folder: Path, config: str = "", **agents: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(config)
    for stem, text in agents.items():
        (folder / "agents").mkdir(exist_ok=True)
        (folder / "agents" / f"{stem}.yaml").write_text(text)
    return path


def hooked(webhook: str, more: str = "") -> str:
    return f"channels:\n  telegram:\n    - token: '{TOKEN}'\n      webhook: {webhook}\n{more}"


def problems(path: Path | None, home: Path = NOBODY, **env: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, env, home)
    told = str(caught.value).splitlines()
    assert len(told) == len(caught.value.problems)
    return [re.sub(r"^\S*/", "", line) for line in told]


def problem(path: Path | None, home: Path = NOBODY, **env: str) -> str:
    (told,) = problems(path, home, **env)
    return told


# --- what ships ---


def options(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from options(kind, f"{before}{name}.")
        else:
            yield before + name


def written(data: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from written(value, f"{before}{name}.")
        else:
            yield before + name


def shipped(path: Path) -> dict[str, Any]:
    document = parse(path.read_bytes(), file=path, variables={}, env_file=Path(".env"))
    assert document.problems == ()
    assert document.data is not None
    return document.data


@pytest.mark.parametrize(("path", "model"), [(SHIPPED_CONFIG, Settings), (SHIPPED_AGENT, AgentSpec)])
def test_shipped_file_shows_every_option(path: Path, model: type[BaseModel]) -> None:
    """The file is the reference people read; an option it leaves out does not exist for them."""
    assert sorted(written(shipped(path))) == sorted(options(model))


def test_shipped_config_shows_the_defaults() -> None:
    """Deleting a line must change nothing."""
    assert Settings.model_validate(shipped(SHIPPED_CONFIG)) == Settings()


def test_shipped_agent_shows_the_defaults() -> None:
    """Deleting a line of the agent must change nothing either."""
    assert AgentSpec.model_validate(shipped(SHIPPED_AGENT)) == AgentSpec(name="assistant")


def test_shipped_files_load_together() -> None:
    """The first start uses exactly these."""
    config = load(SHIPPED_CONFIG, {}, NOBODY)
    assert config.settings == Settings()
    assert config.source == SHIPPED_CONFIG
    assert config.data_dir == ROOT / "data"
    assert list(config.agents) == ["assistant"]


def test_example_models_of_the_shipped_agent_load_when_uncommented(tmp_path: Path) -> None:
    """The example is the first thing everybody copies."""
    text = SHIPPED_AGENT.read_text().replace("models: []\n", "")
    head, tools, rest = text.partition("\ntools:")
    text = re.sub(r"(?m)^# (models:|  )", r"\1", head) + tools + rest
    config = load(write(tmp_path, assistant=text), {"OPENAI_API_KEY": "sk-1"}, NOBODY)
    first, second = config.agents["assistant"].models
    assert first.key is not None
    assert (first.key.get_secret_value(), first.base_url) == ("sk-1", "https://api.openai.com/v1")
    assert (second.key, second.base_url) == (None, "http://localhost:11434/v1")


def test_example_servers_and_tasks_of_the_shipped_agent_load_when_uncommented(tmp_path: Path) -> None:
    """But for the package that servers need."""
    head, tools, rest = SHIPPED_AGENT.read_text().partition("\ntools:")
    rest = re.sub(r"(?m)^# (mcp:|tasks:|  )", r"\1", rest.replace("mcp: []\n", "").replace("tasks: []\n", ""))
    path = write(tmp_path, assistant=head + tools + rest)
    if installed():
        agent = load(path, {"SEARCH_KEY": "s", "FILES_KEY": "f"}, NOBODY).agents["assistant"]
        assert [server.name for server in agent.mcp] == ["files", "search"]
        assert [task.text is None for task in agent.tasks] == [False, True]
    else:
        assert "needs a package" in problem(path, SEARCH_KEY="s", FILES_KEY="f")


# --- finding ---


def test_config_is_found_in_the_documented_order(tmp_path: Path) -> None:
    """Which of four files is meant must never be a surprise."""
    cwd, home = tmp_path / "cwd", tmp_path / "home"
    assert find(None, {}, cwd, home) is None
    at_home = home / ".config" / "remora" / "config.yaml"
    at_home.parent.mkdir(parents=True)
    at_home.touch()
    assert find(None, {}, cwd, home) == at_home
    cwd.mkdir()
    (cwd / "config.yaml").touch()
    assert find(None, {}, cwd, home) == cwd / "config.yaml"
    (home / "mine.yaml").touch()
    assert find(None, {"REMORA_CONFIG": "~/mine.yaml"}, cwd, home) == home / "mine.yaml"
    assert find(None, {"REMORA_CONFIG": ""}, cwd, home) == cwd / "config.yaml"
    (cwd / "other.yaml").touch()
    assert find(Path("other.yaml"), {"REMORA_CONFIG": "gone"}, cwd, home) == cwd / "other.yaml"


def test_named_config_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """Taking another file instead would start another bot."""
    (tmp_path / "config.yaml").touch()
    with pytest.raises(ConfigError, match=r"gone\.yaml: this file, given with --config, does not exist"):
        find(Path("gone.yaml"), {}, tmp_path, tmp_path)
    with pytest.raises(ConfigError, match=r"named by the environment variable REMORA_CONFIG, does not exist"):
        find(None, {"REMORA_CONFIG": "gone.yaml"}, tmp_path, tmp_path)


def test_config_that_is_no_readable_file_is_an_error_not_a_default(tmp_path: Path) -> None:
    """Docker makes a folder where a mounted file is missing; a link may point nowhere."""
    (tmp_path / "config.yaml").mkdir()
    found = find(None, {}, tmp_path, tmp_path)
    assert problem(found).startswith("config.yaml: this is a folder, not a file. Fix: ")
    link = tmp_path / "linked" / "config.yaml"
    link.parent.mkdir()
    link.symlink_to("nowhere")
    assert "can't be read" in problem(find(None, {}, link.parent, tmp_path))


# --- loading ---


def test_without_a_file_everything_is_default(tmp_path: Path) -> None:
    """The first reply takes one command."""
    config = load(None, {}, tmp_path)
    base = tmp_path / ".config" / "remora"
    assert config.settings == Settings()
    assert (config.source, config.log_file) == (None, None)
    assert (config.data_dir, config.agents_dir) == (base / "data", base / "agents")
    assert config.default_agent == "assistant"
    assert config.agents == {"assistant": AgentSpec(name="assistant")}


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """The bot must find the same data from whichever folder it is started."""
    path = write(tmp_path, "data_dir: ../store\nlog: {file: /var/log/bot.log}\n")
    config = load(path, {}, Path("/home/ada"))
    assert config.data_dir == tmp_path / "../store"
    assert config.agents_dir == tmp_path / "agents"
    assert config.log_file == Path("/var/log/bot.log")


def test_shipped_agent_serves_where_there_is_none(tmp_path: Path) -> None:
    """An empty folder, or one with other files only, is no reason not to answer."""
    path = write(tmp_path, "data_dir: data\n")
    assert list(load(path, {}, NOBODY).agents) == ["assistant"]
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "README.md").touch()
    (tmp_path / "agents" / ".#draft.yaml").write_text("]")
    assert list(load(path, {}, NOBODY).agents) == ["assistant"]


def test_every_agent_of_the_folder_is_loaded(tmp_path: Path) -> None:
    """One file is one agent, called as the file says, not as the file is called."""
    path = write(tmp_path, "default_agent: bob", a="name: ada", b="name: bob\nwindow: {tokens: 700}")
    config = load(path, {}, NOBODY)
    assert list(config.agents) == ["ada", "bob"]
    assert config.agents["bob"].window.tokens == 700
    assert config.default_agent == "bob"


def test_variables_come_from_dotenv_and_the_environment_wins(tmp_path: Path) -> None:
    """A key is put beside the file once and replaced for one run by the environment."""
    (tmp_path / ".env").write_text("\ufeff# keys\nexport LEVEL=debug\nQUEUE='7'\nRAW=${LEVEL}\nBARE\n")
    path = write(
        tmp_path,
        "log: {level: '${LEVEL}', file: '${RAW}'}\nlimits:\n  concurrent_turns: ${QUEUE}\n  turn_seconds: ${T:-9}",
    )
    config = load(path, {}, NOBODY)
    assert config.settings.log.level == "debug"
    assert config.settings.log.file == "${LEVEL}"
    assert (config.settings.limits.concurrent_turns, config.settings.limits.turn_seconds) == (7, 9.0)
    assert load(path, {"LEVEL": "error"}, NOBODY).settings.log.level == "error"


def test_sections_left_empty_mean_their_defaults(tmp_path: Path) -> None:
    """Commenting out all options of a section is how people try things."""
    assert load(write(tmp_path, "limits:\nlog:\nchannels:\n  console:\n"), {}, NOBODY).settings == Settings()


def test_options_that_no_longer_exist_are_left_out_and_named(tmp_path: Path) -> None:
    """An update must not keep a bot from starting that ran before it."""
    config = load(
        write(
            tmp_path,
            "limits:\n  concurrent_turns: 7\n  message_chars: 10\napi: {front_ends: [{name: f, key: "
            + "k" * 24
            + ", shared: true, issuer: open-webui}]}\n",
            assistant="name: assistant\ncompaction: {at: nonsense}\njobs:\n  merge: monday 04:00\ntasks:\n"
            '- {at: "0 8 * * *", person: "telegram:1", heartbeat: true}\n',
        ),
        {},
        NOBODY,
    )
    assert config.settings.limits.concurrent_turns == 7 and config.agents["assistant"].tasks[0].text is None
    places = [sentence.partition(" is no longer an option. ")[0] for sentence in config.retired]
    assert [place.rpartition("/")[2] for place in places] == [
        "config.yaml, line 4: api.front_ends[0].issuer", "config.yaml, line 3: limits.message_chars",
        "assistant.yaml, line 2: compaction", "assistant.yaml, line 4: jobs.merge",
        "assistant.yaml, line 6: tasks[0].heartbeat",
    ]  # fmt: skip
    assert config.retired[1].endswith("It is 32,000. Remove the line.")


@pytest.mark.parametrize(
    ("config", "agent", "option"),
    [
        ("internet: {ports: [443]}", "", "internet.ports"),
        ("agents_dir: ~/bots", "", "agents_dir"),
        ("embedding: {dimension: 256}", "", "embedding.dimension"),
        ("attachments: {pictures: 0}", "", "attachments.pictures"),
        ("attachments: {text_tokens: 0}", "", "attachments.text_tokens"),
        ("limits: {stale_hours: 0.1}", "", "limits.stale_hours"),
        ("memory: {exit_seconds: 0}", "", "memory.exit_seconds"),
        ("", "jobs: {enrich: off}", "jobs.enrich"),
        ("", "memory: {recall_items: 0}", "memory.recall_items"),
        ("", "compaction: {enabled: false}", "compaction"),
    ],
)
def test_a_retired_option_that_asked_for_less_is_a_mistake(
    tmp_path: Path, config: str, agent: str, option: str
) -> None:
    """Else a night's work, or people's words and pictures at a model's server, would begin without a decision."""
    told = problem(write(tmp_path, config, assistant=f"name: assistant\n{agent}\n"))
    assert f"{option}: is no longer an option, and what it says would not hold." in told


@pytest.mark.parametrize("named", ["agents/", "./agents", "~/own/agents", "{home}/own/agents", "{home}/link", "null"])
def test_an_agents_dir_that_names_the_agents_folder_is_only_told(tmp_path: Path, named: str) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder / "agents")
    path = write(folder, f"agents_dir: {named.format(home=tmp_path)}\n", nora="name: nora\nrouting: {default: true}\n")
    config = load(path, {}, tmp_path)
    assert list(config.agents) == ["nora"] and config.retired[0].endswith("Remove the line.")


def test_what_retired_options_said_holds_where_it_can(tmp_path: Path) -> None:
    """The default agent stays who it was, and what was told about tools stays told."""
    nora = "name: nora\nrouting: {default: true}\nrules: [Be kind.]\ntool_notes: [Tools cost time.]\n"
    config = load(write(tmp_path, "", assistant="name: assistant\n", nora=nora), {}, NOBODY)
    assert config.default_agent == "nora"
    assert config.agents["nora"].rules == ("Be kind.", "Tools cost time.")


def test_a_webhook_of_an_older_file_and_a_search_by_words_stay(tmp_path: Path) -> None:
    """Nobody's bot goes deaf, or begins to load models, by an update."""
    old = hooked(f"{{url: 'https://bot.example.org', secret: {'s' * 16}}}", "recall: {mode: classic}\n")
    settings = load(write(tmp_path, old), {}, NOBODY).settings
    assert [bot.webhook for bot in settings.channels.telegram] == ["https://bot.example.org"]
    assert settings.embedding.provider == "none"


@pytest.mark.parametrize(
    ("config", "agent", "what"),
    [
        ("recall: {mode: classic}", "", "Replace it by embedding: {provider: none}."),
        ("recall: {mode: classic}\nembedding: {provider: ollama, base_url: 'http://gpu', model: m}", "",
         "Replace it and the embedding: of this file by embedding: {provider: none}."),
        ("recall: {mode: classic}\nembedding: {provider: none}", "", "Remove the line."),
        ("recall: {mode: hybrid}", "", "Remove the line."),
        ("", "tool_notes: [Tools cost time.]", "Move it to rules:."),
        ("", "tool_notes: []", "Remove the line."),
        (hooked("{url: 'https://bot.example.org'}"), "", "Write the address itself behind webhook:."),
    ],
)  # fmt: skip
def test_an_operator_is_told_how_what_a_retired_option_said_stays(
    tmp_path: Path, config: str, agent: str, what: str
) -> None:
    """Who removes the line as told must not get other models, or an agent without its rules."""
    [sentence] = load(write(tmp_path, config, assistant=f"name: assistant\n{agent}\n"), {}, NOBODY).retired
    assert sentence.endswith(f". {what}")


def test_notes_about_tools_beside_faulty_rules_are_one_mistake(tmp_path: Path) -> None:
    assert "rules" in problem(write(tmp_path, "", assistant="name: assistant\nrules: 5\ntool_notes: [a]\n"))


@pytest.mark.parametrize(("retired", "model"), [(RETIRED, Settings), (RETIRED_OF_AGENTS, AgentSpec)])
def test_no_option_that_exists_is_called_retired(
    retired: Mapping[str, Retired], model: type[Settings | AgentSpec]
) -> None:
    """It would be dropped from everybody's file."""
    assert {option.replace(".*", "[]") for option in retired} & set(loading.options(model)) == set()


# --- mistakes ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\nlimits:\n  turn_seconds: soon",
         'config.yaml:3: limits.turn_seconds = "soon": must be a number of seconds greater than 0, at most 3600. Fix: write for example turn_seconds: 180.'),
        ("limits: {concurrent_turns: true}",
         "config.yaml:1: limits.concurrent_turns = true: must be a whole number of turns from 1 to 1000. Fix: write for example concurrent_turns: 8."),
        ("limits: {concurrent_turns: 0}",
         "config.yaml:1: limits.concurrent_turns = 0: must be a whole number of turns from 1 to 1000. Fix: write for example concurrent_turns: 8."),
        ("limits:\n  concurrent_turns:\n",
         "config.yaml:2: limits.concurrent_turns = null: must be a whole number of turns from 1 to 1000. Fix: write for example concurrent_turns: 8."),
        ("attachments:\n  max_bytes: 20000001",
         "config.yaml:2: attachments.max_bytes = 20000001: must be a whole number of bytes from 0 to 20000000. Fix: write for example max_bytes: 10000000."),
        ("durability: powerloss",
         'config.yaml:1: durability = "powerloss": must be one of process, power-loss. Fix: write durability: power-loss.'),
        ("api: {enabled: maybe}",
         'config.yaml:1: api.enabled = "maybe": must be true or false. Fix: write for example enabled: false.'),
        ("data_dir: 5", "config.yaml:1: data_dir = 5: must be the path of a folder. Fix: put the value in quotes."),
        ("log: json",
         'config.yaml:1: log = "json": must be a section: its options below it, one a line, indented. Fix: write its options below it, such as level.'),
        ("log: {file: ''}",
         'config.yaml:1: log.file = "": must be the path of a file. Fix: write for example file: remora.log.'),
        ("defualt_agent: x", "config.yaml:1: defualt_agent: unknown option. Fix: write default_agent instead."),
        ("limits:\n  turn_secs: 5",
         "config.yaml:2: limits.turn_secs: unknown option. Fix: write turn_seconds instead."),
        ("turn_seconds: 5", "config.yaml:1: turn_seconds: unknown option. Fix: move it to limits.turn_seconds."),
        ("models: []", "config.yaml:1: models: unknown option. Fix: move it to an agent's file, where it belongs."),
        ("channels: {signal: {}}",
         "config.yaml:1: channels.signal: unknown option. Fix: remove it; known here: telegram, discord, other."),
    ],
)  # fmt: skip
def test_mistake_in_the_config_is_told_in_plain_words(tmp_path: Path, text: str, told: str) -> None:
    """The text of the error is what the operator works with."""
    assert problem(write(tmp_path, text)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("persona: x",
         "a.yaml:1: name: is missing; it must be a name of at most 32 characters: a letter a-z, then letters a-z, digits, - or _. Fix: add name: assistant."),
        ("name: a\nrules: be nice",
         'a.yaml:2: rules = "be nice": must be a list: one item a line, each beginning with \'- \'. Fix: write the items below it, or [] for none.'),
        ("name: a\nrules:\n  - x\n  - 5",
         "a.yaml:4: rules[1] = 5: must be a text of 1 to 1000 characters. Fix: put the value in quotes."),
        ("name: a\ntools: [now, serach_memory]",
         'a.yaml:2: tools[1] = "serach_memory": must be one of now, search_memory, remember_fact, correct_fact, confirm_fact, forget_fact, memory_stats, get_entity_info, reminders, fetch_url, web_search. Fix: write - search_memory.'),
        ("name: a\nsession: {at: noon}",
         'a.yaml:2: session.at = "noon": must be a time of day from 00:00 to 23:59. Fix: write for example at: 04:00.'),
        ("name: a\nmodels:\n  - model: x",
         "a.yaml:3: models[0].provider: is missing; it must be one of openai, anthropic, gemini, openrouter, groq, mistral, deepseek, ollama, lmstudio, llamacpp, offline, or a provider of an installed package. Fix: add provider: openai."),
        ("name: a\nmodels: [{provider: openai}]",
         "a.yaml:2: models[0].model: is missing: the provider openai needs to know which model. Fix: add model: gpt-4o-mini."),
        ("name: a\nmodel: x", "a.yaml:2: model: unknown option. Fix: write models instead."),
        ("name: a\nbase_url: x", "a.yaml:2: base_url: unknown option. Fix: move it to models[].base_url."),
        ("name: a\ntimezone: Europe/Lisbonn",
         'a.yaml:2: timezone = "Europe/Lisbonn": must be an IANA timezone. Fix: write for example timezone: Europe/Lisbon.'),
        ("name: a\nrouting:\n  people: ['12345']",
         'a.yaml:3: routing.people[0] = "12345": must be a person as platform:user_id, such as telegram:12345. Fix: write for example - telegram:12345.'),
        ("name: a\nmodels:\n- {provider: openai, model: m, context: 4096}\nwindow:\n  tokens: 5000",
         "a.yaml:5: window.tokens = 5000: is more than the first model's context of 4096 tokens. Fix: make the window smaller, or set the model's true context."),
        ("name: a\nmodels:\n" + "- {provider: offline}\n" * 11,
         "a.yaml:2: models: has more than 10 items. Fix: keep at most 10."),
        ("name: list",
         'a.yaml:1: name = "list": is a word that commands already use. Fix: choose a name other than all, console, default, list, none.'),
        ("name: a\nrouting:\n  threads: ['x:a/b:1']",
         'a.yaml:3: routing.threads[0] = "x:a/b:1": would never match, since keys are escaped. Fix: write x:a%2Fb:1.'),
        ("name: a\nrouting:\n  chats: ['x:%FF']",
         'a.yaml:3: routing.chats[0] = "x:%FF": would never match, since keys are escaped. Fix: copy the key from /status.'),
    ],
)  # fmt: skip
def test_mistake_in_an_agent_is_told_in_plain_words(tmp_path: Path, text: str, told: str) -> None:
    """Agents are written by people who never see the code."""
    path = write(tmp_path, "default_agent: " + ("list" if "list" in text else "a"), a=text)
    assert problem(path) == told


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """One start must be enough to see everything there is to correct."""
    (tmp_path / ".env").write_text("GOOD=1\n\n\nBAD LINE\n")
    path = write(
        tmp_path,
        "data_dir: &x data\nlimits:\n  concurrent_turns: ${NOPE}\n  turn_seconds: -1\ntypo: 1\ndefault_agent: eve\n",
        a="name: ada\nrules: [1]",
        b="name: bob\nwindow: {tokens: x}\n",
        c="name: [\n",
    )
    told = problems(path)
    assert [line.split(" ")[0] for line in told] == [
        ".env:4:", "config.yaml:1:", "config.yaml:3:", "config.yaml:4:", "config.yaml:5:", "config.yaml:6:",
        "a.yaml:2:", "b.yaml:2:", "c.yaml:1:",
    ]  # fmt: skip
    assert "there is no agent of this name (known: ada, bob, c)" in told[5]


def test_agent_with_a_mistake_does_not_count_as_missing(tmp_path: Path) -> None:
    """A second error that only follows from the first sends people the wrong way."""
    assert problem(write(tmp_path, "default_agent: a", a="name: a\nx: 1")).startswith("a.yaml:2: x: ")
    assert problem(write(tmp_path, "default_agent: a", a="name: a\n---\n")).startswith("a.yaml:2: a second document")
    assert problem(write(tmp_path, "default_agent: [x]", a="name: a")).startswith("config.yaml:1: default_agent: must")


def test_unreadable_config_still_lets_the_agents_be_checked(tmp_path: Path) -> None:
    """A tab in one file must not hide the mistakes of the others."""
    assert [line[:12] for line in problems(write(tmp_path, "\ta: 1", b="name: B"))] == [
        "config.yaml:",
        "b.yaml:1: na",
    ]


def test_unknown_default_agent_is_told_with_those_there_are(tmp_path: Path) -> None:
    """The name is usually a typing error."""
    path = write(tmp_path, "\ndefault_agent: adda", a="name: ada", b="name: bob")
    assert problem(path) == (
        'config.yaml:2: default_agent = "adda": there is no agent of this name (known: ada, bob). '
        "Fix: write default_agent: ada."
    )


def test_default_agent_must_exist_even_without_a_config(tmp_path: Path) -> None:
    """Agents may be put into the home folder before any config.yaml is."""
    folder = tmp_path / ".config" / "remora"
    folder.mkdir(parents=True)
    write(folder, a="name: ada").unlink()
    assert problem(None, tmp_path) == (
        "config.yaml: default_agent: there is no agent called assistant (known: ada). Fix: write default_agent: ada."
    )


@pytest.mark.parametrize("kind", ["people", "threads", "chats", "channels"])
def test_place_claimed_by_two_agents_is_refused(tmp_path: Path, kind: str) -> None:
    """Each message has one agent, and the person must know which."""
    rule = {"people": "t:1", "threads": "t:1:2", "chats": "t:1", "channels": "t"}[kind]
    text = "\nrouting:\n  {}: [{}'{}']\n"
    path = write(
        tmp_path,
        "",
        a="name: assistant" + text.format(kind, "", rule),
        b="name: bob" + text.format(kind, "", rule),
    )
    assert problem(path) == (
        f'b.yaml:3: routing.{kind}[0] = "{rule}": is already claimed by assistant (a.yaml, line 3). '
        "Fix: leave it in one place only."
    )


def test_same_rule_under_two_kinds_is_no_conflict(tmp_path: Path) -> None:
    """A person and a chat may have the same number: on Telegram they do."""
    path = write(
        tmp_path,
        "",
        a="name: assistant\nrouting: {people: ['t:1']}",
        b="name: bob\nrouting: {chats: ['t:1']}",
    )
    assert len(load(path, {}, NOBODY).agents) == 2


def test_two_agents_of_one_name_are_refused(tmp_path: Path) -> None:
    """One would silently replace the other."""
    path = write(tmp_path, "default_agent: ada", a="name: ada", b="\nname: ada")
    assert problem(path) == (
        'b.yaml:2: name = "ada": is already taken in a.yaml, line 1. Fix: give each agent its own name.'
    )


def test_yml_file_is_not_overlooked(tmp_path: Path) -> None:
    """An agent that is silently not there is the hardest mistake to find."""
    path = write(tmp_path, "", a="name: assistant")
    (tmp_path / "agents" / "b.yml").write_text("name: bob")
    assert "b.yml: an agent's file must end in .yaml. Fix: rename it to b.yaml" in problem(path)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("data_dir: config.yaml", 'data_dir = "config.yaml": is a file, not a folder'),
        ("data_dir: config.yaml/data", 'data_dir = "config.yaml/data": can\'t be reached (Not a directory)'),
        (
            "backup: {folder: /dev/null/backups}",
            'backup.folder = "/dev/null/backups": can\'t be reached (Not a directory)',
        ),
        ("log: {file: .}", 'log.file = ".": is a folder, not a file'),
    ],
)
def test_path_that_can_not_serve_is_told_at_the_start(tmp_path: Path, option: str, told: str) -> None:
    """At the first write it would be too late to be understood."""
    assert told in problem(write(tmp_path, option))


def test_broken_dotenv_is_told(tmp_path: Path) -> None:
    """A line that is skipped silently is a key that is not there."""
    path = write(tmp_path)
    env = tmp_path / ".env"
    env.write_bytes(b"A=1\nB='open\n")
    assert problem(path) == ".env:2: is not NAME=value. Fix: correct the line or put # before it."
    env.write_bytes(b"A=1\nB=\xff\n")
    assert problem(path) == ".env:2: is not UTF-8 text. Fix: save it as UTF-8."
    env.write_bytes(b"#" * (MAX_BYTES + 1))
    assert problem(path).startswith(".env:1: has more than 256 KB")


def test_flood_of_unknown_options_is_cut(tmp_path: Path) -> None:
    """A wrong file must not fill the screen, nor take a minute of guessing at names."""
    path = write(tmp_path, "\n".join(f"option{i}: 1" for i in range(5000)))
    assert len(problems(path)) == MAX_PROBLEMS


SECRET = "sk-hush4711"


@pytest.mark.parametrize(
    ("config", "agent"),
    [
        ("limits: {concurrent_turns: '${S}'}", ""), ("durability: ${S}", ""), ("default_agent: x${S}", ""),
        ("data_dir: [$S]", "models: [{provider: openai, model: m, kye: $S}]"),
        ("", "models: [{provider: openai, model: m, key: '$S x'}]"),
        ("", "models: [{provider: openai, model: m, key: [$S]}]"),
        ("", "models: [{provider: $S0123456789abc, model: m}]"),
        ("", "models: [{provider: openai, model: m, base_url: 'https://u:${S}@host'}]"),
        ("", "timezone: ${S}"), ("default_agent: b", "name: ${S}"), ("", "$S0123456789abc: 1"), ("", "key: &$S x"),
        ("", "key: *$S"), ("", "key: !$S x"), ("", "key: '$S"),
    ],
)  # fmt: skip
def test_secret_is_never_printed(tmp_path: Path, config: str, agent: str) -> None:
    """Error texts are pasted into public issues; exceptions carry their causes along."""
    agent = "name: assistant\n" + agent
    path = write(tmp_path, config.replace("$S", SECRET), a=agent.replace("$S", SECRET))
    with pytest.raises(ConfigError) as caught:
        load(path, {"S": SECRET}, NOBODY)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error) + repr(error)
        error = error.__cause__ or error.__context__


# --- bots ---

#: Of the bot 123456789012345678.
DISCORD = "MTIzNDU2Nzg5MDEyMzQ1Njc4.Gh0st-." + "Aa0_-" * 7 + "xyz"
OTHER = "987654321:" + "Bb1_-" * 7


def bots(*entries: str) -> str:
    return "channels:\n  telegram:\n" + "".join(f"    - {{{entry}}}\n" for entry in entries)


def test_bot_is_its_token_and_the_rest_is_default(tmp_path: Path) -> None:
    """Nobody may talk to a bot of which nothing is said."""
    (tmp_path / ".env").write_text(f"TELEGRAM_TOKEN='{TOKEN}'\n")
    (bot,) = load(write(tmp_path, bots("token: '${TELEGRAM_TOKEN}'")), {}, NOBODY).settings.channels.telegram
    assert bot.token.get_secret_value() == TOKEN
    assert bot.model_dump(exclude={"token"}) == {
        "id": "telegram", "base_url": "https://api.telegram.org", "proxy": None, "allow": (), "admins": (), "groups": (),
        "group_members": "everyone", "mention": True, "observe": "none", "stream": "edit", "webhook": None,
    }  # fmt: skip
    assert (bot.platform, bot.number) == ("telegram", "123456789")
    assert TOKEN not in repr(bot)


EXAMPLES = {"TELEGRAM_TOKEN": TOKEN, "DISCORD_TOKEN": DISCORD}
EXAMPLES |= {"OPEN_WEBUI_KEY": "k" * 24, "OPEN_WEBUI_JWT": "j" * 24}


def test_example_bots_of_the_shipped_config_load_when_uncommented(tmp_path: Path) -> None:
    """They list every option, and whoever sets a bot up by hand copies them."""
    text = SHIPPED_CONFIG.read_text().replace("  telegram: []\n  discord: []\n  other: []\n", "")
    # Its package is not installed here.
    text = re.sub(r"(?ms)^  # Bots on platforms whose channel.*?(?=^\S)", "", text)
    text = re.sub(r"(?m)^  front_ends: \[\].*\n", "", text)
    example = re.sub(r"(?m)^  # (telegram:|discord:|front_ends:|  )", r"  \1", text)
    settings = load(write(tmp_path, example), EXAMPLES, NOBODY).settings
    channels = settings.channels
    assert [one.model_fields_set for one in settings.api.front_ends] == [set(FrontEndSettings.model_fields)]
    (telegram,), (discord,) = channels.telegram, channels.discord
    assert telegram.model_fields_set == set(TelegramSettings.model_fields)
    assert (telegram.allow, telegram.groups) == (("123456789",), ("-1001234567890",))
    assert discord.model_fields_set == set(DiscordSettings.model_fields)
    assert (discord.allow, discord.servers) == (("123456789012345678",), ("234567890123456789",))
    assert discord.base_url == "https://discord.com/api/v10"


def test_example_transcriber_of_the_shipped_config_loads_when_uncommented(tmp_path: Path) -> None:
    """It lists every option; only the address and the model must be said."""
    text = re.sub(r"(?m)^transcriber: null.*\n", "", SHIPPED_CONFIG.read_text())
    text = re.sub(r"(?m)^# (transcriber:)", r"\1", text)
    head, _, tail = text.partition("\ntranscriber:")
    example = head + "\ntranscriber:" + re.sub(r"(?m)^#   ", "  ", tail.partition("\n\n")[0])
    transcriber = load(write(tmp_path, example), {"OPENAI_API_KEY": "sk-1"}, NOBODY).settings.transcriber
    assert transcriber is not None
    assert transcriber.model_fields_set == set(TranscriberSettings.model_fields)
    assert (transcriber.timeout, transcriber.language) == (60.0, None)


def test_numbers_of_people_and_groups_may_be_quoted_or_not(tmp_path: Path) -> None:
    """They are compared as text, so that both ways of writing one must come out the same."""
    text = bots(f"token: '{TOKEN}', allow: [7, '8'], admins: ['7'], groups: [-1001, '-5']")
    (bot,) = load(write(tmp_path, text), {}, NOBODY).settings.channels.telegram
    assert (bot.allow, bot.admins, bot.groups) == (("7", "8"), ("7",), ("-1001", "-5"))


@pytest.mark.parametrize(
    "person",
    [
        "0", "-7", "'+7'", "'07'", "'７'", "' 7'", "'7 '", "''", "null", "true", "7.0", "'@ada'", "ada", "[7]", "'7\n'",
        "1" * 17,
    ],
)  # fmt: skip
@pytest.mark.parametrize("option", ["allow", "admins"])
def test_person_that_is_no_number_is_refused(tmp_path: Path, person: str, option: str) -> None:
    """A name can pass to somebody else, and another spelling would never match: nobody would know why."""
    told = problem(write(tmp_path, bots(f"token: '{TOKEN}', {option}: [{person}]")))
    assert f"channels.telegram[0].{option}[0]" in told and "must be a person's number on Telegram" in told


@pytest.mark.parametrize("group", ["1001", "0", "-0", "'-01'", "'@group'", "true", "'−7'"])
def test_group_that_is_no_number_below_zero_is_refused(tmp_path: Path, group: str) -> None:
    """A person's number among the groups would open a private chat."""
    told = problem(write(tmp_path, bots(f"token: '{TOKEN}', groups: [{group}]")))
    assert "must be a group's negative number on Telegram. Fix: write for example - -1001234567890." in told


@pytest.mark.parametrize("token", ["", "123456789", TOKEN[:-1], TOKEN + "x", "bot" + TOKEN, TOKEN.replace(":", ": ")])
def test_token_that_looks_wrong_is_refused_without_being_shown(tmp_path: Path, token: str) -> None:
    """Half a token copied is the usual mistake, and the platform would only say "not found"."""
    told = problem(write(tmp_path, "\n" + bots(f"token: '{token}'")))
    assert told == (
        "config.yaml:4: channels.telegram[0].token = ***: is not a bot token, which has digits, a colon and "
        "35 more characters. Fix: copy all of it from @BotFather, who shows it again under /mybots."
    )


def test_token_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    """With the line to add."""
    assert problem(write(tmp_path, bots("id: telegram"))) == (
        "config.yaml:3: channels.telegram[0].token: is missing; it must be the bot's token from @BotFather. "
        "Fix: add token: ${TELEGRAM_TOKEN}."
    )


def test_two_bots_need_two_ids_and_two_tokens(tmp_path: Path) -> None:
    """Two channels of one id would share their chats; two pollers of one token take each other's messages."""
    assert problem(write(tmp_path, bots(f"token: '{TOKEN}'", f"token: '{OTHER}'"))) == (
        "config.yaml:4: channels.telegram[1]: has the id telegram, which is already that of channels.telegram[0]. "
        "Fix: give each bot its own id, such as id: telegram-2."
    )
    assert problem(write(tmp_path, bots(f"token: '{TOKEN}'", f"id: b, token: '{TOKEN}'"))) == (
        "config.yaml:4: channels.telegram[1].token = ***: is already the token of channels.telegram[0]. "
        "Fix: keep the bot in one place, or create another with @BotFather."
    )
    assert "has the id console, which is already the terminal's" in problem(
        write(tmp_path, bots(f"id: console, token: '{TOKEN}'"))
    )
    config = load(write(tmp_path, bots(f"token: '{TOKEN}'", f"id: b, token: '{OTHER}'")), {}, NOBODY)
    assert [bot.id for bot in config.settings.channels.telegram] == ["telegram", "b"]


@pytest.mark.parametrize("url", ["api.telegram.org", "ftp://x", "https://", "https://x?y", "https://x y"])
def test_address_of_a_bot_api_server_must_be_one(tmp_path: Path, url: str) -> None:
    """The token is put behind it."""
    assert "must be the address of the platform's API" in problem(
        write(tmp_path, bots(f"token: '{TOKEN}', base_url: '{url}'"))
    )


def test_bot_on_discord_is_its_token_and_the_rest_is_default(tmp_path: Path) -> None:
    """Nobody may talk to a bot of which nothing is said; its own id is in the token, for the lists people read."""
    text = f"channels:\n  discord:\n    - token: '{DISCORD}'\n"
    (bot,) = load(write(tmp_path, text), {}, NOBODY).settings.channels.discord
    assert bot.model_dump(exclude={"token"}) == {
        "id": "discord", "base_url": "https://discord.com/api/v10", "proxy": None, "allow": (), "admins": (), "servers": (),
        "groups": (), "group_members": "everyone", "mention": True, "observe": "none", "stream": "edit",
    }  # fmt: skip
    assert (bot.platform, bot.number) == ("discord", "123456789012345678")
    assert DISCORD not in repr(bot)


@pytest.mark.parametrize(
    "token",
    [
        "", "123456789012345678", TOKEN, DISCORD.rpartition(".")[0], "Bot " + DISCORD, DISCORD + ".x", DISCORD + " ",
        "0123456789abcdef" * 4,
    ],
)  # fmt: skip
def test_discord_token_that_looks_wrong_is_refused_without_being_shown(tmp_path: Path, token: str) -> None:
    """An application has an id, a public key and a secret too, and each is one click away from the token."""
    told = problem(write(tmp_path, f"channels:\n  discord:\n    - token: '{token}'\n"))
    assert told.startswith(
        "config.yaml:3: channels.discord[0].token = ***: is not a bot token, which has three parts of"
    )
    assert "the Bot page at https://discord.com/developers/applications, where Reset Token shows a new one" in told


def test_discord_token_of_another_make_says_no_number(tmp_path: Path) -> None:
    """How a token is made up is Discord's own affair: one whose first part is no id still serves."""
    text = f"channels: {{discord: [{{token: '{'x' * 24}.abcdef.{'y' * 38}'}}]}}"
    (bot,) = load(write(tmp_path, text), {}, NOBODY).settings.channels.discord
    assert bot.number == ""


@pytest.mark.parametrize("option", ["allow", "admins", "servers", "groups"])
@pytest.mark.parametrize(
    "number", ["7", "1" * 14, "1" * 21, "'012345678901234567'", "-123456789012345678", "ada", "true"]
)
def test_id_that_discord_never_gave_is_refused(tmp_path: Path, option: str, number: str) -> None:
    """A Telegram number, a name or an id with a digit lost would match nobody, and nobody would know why."""
    text = f"channels:\n  discord:\n    - token: '{DISCORD}'\n      {option}: [123456789012345678, {number}]\n"
    told = problem(write(tmp_path, text))
    assert f"channels.discord[0].{option}[1]" in told and "id on Discord, 15 to 20 digits (Developer Mode on" in told


def test_an_id_stands_for_one_bot_of_any_platform(tmp_path: Path) -> None:
    """Sessions, people and access are kept by it."""
    text = f"channels:\n  telegram:\n    - {{token: '{TOKEN}', id: bot}}\n  discord:\n    - {{token: '{DISCORD}', id: bot}}"
    assert problem(write(tmp_path, text)) == (
        "config.yaml:5: channels.discord[0].id: has the id bot, which is already that of channels.telegram[0]. "
        "Fix: give each bot its own id, such as id: discord-2."
    )
    text = f"channels:\n  discord:\n    - {{token: '{DISCORD}'}}\n    - {{token: '{DISCORD}', id: b}}"
    assert problem(write(tmp_path, text)) == (
        "config.yaml:4: channels.discord[1].token = ***: is already the token of channels.discord[0]. "
        "Fix: keep the bot in one place, or create another on Discord's developer page."
    )


# --- webhooks ---


def test_a_webhook_s_secret_is_the_token_s_and_tells_nothing_of_it(tmp_path: Path) -> None:
    """Whoever finds the address can't speak as anybody; Telegram takes letters, digits, _ and - alone."""
    path = write(tmp_path, hooked("https://bot.example.org"))
    secrets = [load(path, {}, NOBODY).settings.channels.telegram[0].webhook_secret for _ in range(2)]
    assert re.fullmatch("[0-9a-f]{64}", secrets[0]) and secrets[0] == secrets[1]
    assert secrets[0] != TelegramSettings(token=SecretStr(TOKEN[:-1] + "x")).webhook_secret


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://bot.example.org/tg", "is not https"),
        ("http://10.0.0.5/tg", "is not https"),
        ("http://localhost.example.org/tg", "is not https"),
        ("https://bot.example.org/tg?key=1", "is not a plain address"),
        ("https://bot.example.org/{tg}", "is not a plain address"),
        ("https://me:pass@bot.example.org/tg", "is not a plain address"),
        ("bot.example.org/tg", "is not a plain address"),
        ("https://[1:2/tg", "must be the address the platform delivers to"),
    ],
)
def test_webhook_where_telegram_can_not_deliver_is_refused(tmp_path: Path, url: str, told: str) -> None:
    """Found out at the start, not by a bot that hears nothing."""
    said = problem(write(tmp_path, hooked(f"'{url}'")))
    assert "webhook = " in said and told in said and "https://bot.example.org" in said


@pytest.mark.parametrize(
    "url",
    [
        "https://bot.example.org", "https://bot.example.org:8443/a/b-c/", "http://127.0.0.1:8081/tg",
        "http://localhost/tg", "http://[::1]/tg",
    ],
)  # fmt: skip
def test_webhook_may_be_https_or_on_this_machine(tmp_path: Path, url: str) -> None:
    """A Bot API server of one's own delivers without TLS."""
    (bot,) = load(write(tmp_path, hooked(f"'{url}'")), {}, NOBODY).settings.channels.telegram
    assert bot.webhook == url


def test_webhook_needs_the_http_server(tmp_path: Path) -> None:
    """Nobody would take what Telegram delivers."""
    path = write(tmp_path, hooked("https://x.org/tg", "http: {enabled: false}\n"))
    assert problem(path) == (
        "config.yaml:4: channels.telegram[0].webhook: needs the HTTP server, which http.enabled: false turns off. "
        "Fix: write http: {enabled: true}, or remove the webhook so that the bot polls Telegram for messages."
    )


def test_transcriber_needs_an_address_and_a_model(tmp_path: Path) -> None:
    """Both mistakes at once, with what to add."""
    assert problems(write(tmp_path, "transcriber: {}")) == [
        "config.yaml:1: transcriber.base_url: is missing; it must be the server's address, before /audio/transcriptions. Fix: add base_url: https://api.openai.com/v1.",
        "config.yaml:1: transcriber.model: is missing; it must be the model's name on its server. Fix: add model: whisper-1.",
    ]  # fmt: skip


# --- mutations ---


# --- tools and skills ---


def test_a_tool_or_a_skill_that_is_not_there_is_told_with_where_it_belongs(tmp_path: Path) -> None:
    """The agent would else go without it, silently."""
    path = write(tmp_path, assistant="name: assistant\nown_tools: [weather]\nskills: [letters]\n")
    told = problems(path)
    assert "own_tools" in told[0] and "names weather, which is not there" in told[0] and "weather.py" in told[0]
    assert "names letters, which is not there" in told[1] and "SKILL.md" in told[1]


def test_tools_and_skills_beside_the_configuration_are_found(tmp_path: Path) -> None:
    """Nothing of them is loaded yet."""
    path = write(tmp_path, assistant="name: assistant\nown_tools: [weather]\nskills: [letters]\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "weather.py").write_text("raise SystemExit")
    (tmp_path / "skills" / "letters").mkdir(parents=True)
    (tmp_path / "skills" / "letters" / "SKILL.md").write_text("---\nname: letters\n---\n")
    assert load(path, {}, NOBODY).agents["assistant"].own_tools == ("weather",)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ('{at: "0 8 * * 1-5", person: ada, text: x}', "platform:user_id"),
        ('{at: "at eight", person: "telegram:1", text: x}', "can't be read"),
        ('{at: "61 8 * * *", person: "telegram:1", text: x}', "can't be read"),
    ],
)
def test_a_standing_task_that_could_never_run_is_told(tmp_path: Path, task: str, told: str) -> None:
    path = write(tmp_path, assistant=f"name: assistant\ntasks: [{task}]\n")
    assert told in problem(path)
    good = '{at: "0 8 * * 1-5", person: "telegram:1"}'
    path = write(tmp_path, assistant=f"name: assistant\ntasks: [{good}]\n")
    assert load(path, {}, NOBODY).agents["assistant"].tasks[0].text is None


@pytest.mark.skipif(installed(), reason="the extra remora[mcp] is installed")
def test_servers_of_tools_without_their_package_are_told_what_to_install(tmp_path: Path) -> None:
    """The start says so, not the first call."""
    path = write(tmp_path, assistant="name: assistant\nmcp: [{name: files, command: [x], tools: [read]}]\n")
    assert "needs a package that is not installed" in problem(path) and "pip install 'remora[mcp]'" in problem(path)


def test_a_cost_is_limited_only_where_it_is_known(tmp_path: Path) -> None:
    """A limit that never bites is worse than none."""
    model = "{provider: ollama, model: qwen3}"
    path = write(tmp_path, assistant=f"name: assistant\nmodels: [{model}]\nturn: {{cost: 0.1}}\n")
    assert "turn.cost" in problem(path) and "qwen3 has no price" in problem(path)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("web: {enabled: true}\nhttp: {enabled: false}\n", "needs the HTTP server"),
        ("web: {enabled: true}\nhttp: {host: 0.0.0.0}\n", "add web.url"),
        ("web: {url: 'http://bot.example.org'}\n", "is not https"),
        ("web: {url: 'https://bot.example.org/page'}\n", "without a path"),
        ("web: {agents: [nobody]}\n", "is no agent"),
        ("channels: {telegram: [{id: web-a, token: '123456789:" + "Aa0_-" * 7 + "'}]}\n", "like those of the web page"),
    ],
)  # fmt: skip
def test_page_that_others_could_reach_or_nobody_is_refused(tmp_path: Path, config: str, told: str) -> None:
    """Whoever turns it on is told what is missing."""
    assert told in problem(write(tmp_path, config))


@pytest.mark.parametrize(
    ("config", "agents"),
    [
        ("", ("assistant",)), ("http: {enabled: false}\n", ()), ("http: {host: 0.0.0.0}\n", ()),
        ("http: {host: 0.0.0.0}\nweb: {url: 'https://bot.example.org/'}\n", ("assistant",)),
        (f"channels: {{telegram: [{{token: '123456789:{'Aa0_-' * 7}'}}]}}\n", ()),
        (f"web: {{enabled: true}}\nchannels: {{telegram: [{{token: '123456789:{'Aa0_-' * 7}'}}]}}\n", ("assistant",)),
    ],
)  # fmt: skip
def test_page_is_served_where_it_is_on_or_there_is_nothing_else(
    tmp_path: Path, config: str, agents: tuple[str, ...]
) -> None:
    """`remora serve` without a platform is a complete product."""
    assert load(write(tmp_path, config), {}, NOBODY).page_agents == agents


# --- the doors for programs ---


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("http: {enabled: false}\napi: {enabled: true}\n", "api: needs the HTTP server"),
        ("http: {host: 0.0.0.0}\napi: {enabled: true}\n", "api: would be reached from other machines"),
        ("api: {enabled: true, url: 'https://bot.example.org/v1'}\n", "api.url"),
        ("api: {enabled: true, front_ends: [{name: a, key: short, shared: true}]}\n", "fewer than 24 characters"),
        (f"api: {{enabled: true, front_ends: [{{name: a, key: {'k' * 24}}}]}}\n", "must say how people are told apart"),
        (
            f"api: {{enabled: true, front_ends: [{{name: a, key: {'k' * 24}, shared: true, jwt_secret: {'j' * 24}}}]}}\n",
            "must say how people are told apart",
        ),
        (
            "api: {enabled: true, front_ends: ["
            + ", ".join(f"{{name: {name}, key: {'k' * 24}, shared: true}}" for name in "ab")
            + "]}\n",
            "has a name or key of another",
        ),
        ("channels: {telegram: [{id: api, token: '${TELEGRAM_TOKEN}'}]}\n", "already that of programs"),
    ],
)
def test_doors_that_would_let_in_anybody_are_mistakes(tmp_path: Path, config: str, told: str) -> None:
    """Each is told with what to do, and no secret is printed."""
    (found,) = problems(write(tmp_path, config), TELEGRAM_TOKEN="123456789:" + "Aa0_-" * 7)
    assert told in found and "Fix: " in found and "kkkk" not in found and "jjjj" not in found


def test_doors_open_beyond_this_machine_with_an_address_that_is_named(tmp_path: Path) -> None:
    """Requests by that name are let in, by any other they are not."""
    config = "http: {host: 0.0.0.0}\napi: {enabled: true, url: 'https://bot.example.org:8443'}\n"
    assert load(write(tmp_path, config), {}, NOBODY).settings.api.host() == "bot.example.org"


# --- SOUL.md and AGENTS.md ---


def test_soul_and_agents_files_are_persona_and_rules_of_their_agent(tmp_path: Path) -> None:
    """They follow a persona of the YAML file, and take the place of the default one."""
    path = write(
        tmp_path, assistant="name: assistant\n", work="name: work\npersona: You are {name}.\nrules: [Be brief.]\n"
    )
    beside = tmp_path / "agents"
    (beside / "SOUL.md").write_text("# Soul\nYou are calm, {name}.\n")
    (beside / "work").mkdir()
    (beside / "work" / "SOUL.md").write_text("You are quick.", "utf-8-sig")
    (beside / "work" / "AGENTS.md").write_text("- Never guess.\n")
    agents = load(path, {}, NOBODY).agents
    assert agents["assistant"].persona == "# Soul\nYou are calm, {name}."
    assert agents["work"].persona == "You are {name}.\n\nYou are quick.\n\nStanding rules:\n- Never guess."
    assert agents["work"].rules == ("Be brief.",)
    (beside / "assistant").mkdir()
    (beside / "assistant" / "AGENTS.md").write_text("Ask first.")
    (beside / "SOUL.md").write_text(" \n")
    assert (
        load(path, {}, NOBODY).agents["assistant"].persona
        == f"{AgentSpec(name='a').persona}\n\nStanding rules:\nAsk first."
    )
    told = CliRunner().invoke(main, ["check", "--config", str(path)]).output
    assert f"with {beside / 'work' / 'AGENTS.md'}, 14 of 20000 characters" in told


def test_a_soul_takes_the_place_of_the_persona_that_the_shipped_agent_spells_out(tmp_path: Path) -> None:
    path = write(tmp_path, assistant=SHIPPED_AGENT.read_text())
    (tmp_path / "agents" / "SOUL.md").write_text("You are calm.")
    assert load(path, {}, NOBODY).agents["assistant"].persona == "You are calm."


def test_a_soul_that_is_too_long_or_no_text_stops_the_start(tmp_path: Path) -> None:
    path = write(tmp_path, assistant="name: assistant\n")
    (tmp_path / "agents" / "SOUL.md").write_text("x" * 20_001)
    (tmp_path / "agents" / "AGENTS.md").write_bytes(b"\xff\xfe\x00")
    long, strange = problems(path)
    assert long.startswith("SOUL.md: has more than 20000 characters") and strange.startswith("AGENTS.md: is not UTF-8")


@each_row(
    ("models", "reads", "why"),
    [
        ([("big", 3, 15), ("small", 0.15, 0.6)], "small", "the cheapest by its price"),
        ([("small", 0.15, 0.6), ("big", 3, 15)], "small", "the cheapest by its price"),
        ([("big", 3, 15), ("unknown", None, None), ("small", 0.15, 0.6)], "small", "the cheapest by its price"),
        ([("unknown", None, None), ("small", 0.15, 0.6)], "unknown", "the first; it has no price"),
        ([("dear words", 0.1, 30), ("even", 1, 1)], "even", "the cheapest by its price"),
        ([("big", 3, 15)], "big", "the only model"),
    ],
)
def test_the_cheapest_model_reads_in_the_background(
    models: list[tuple[str, float | None, float | None]], reads: str, why: str
) -> None:
    """Unless the operator names one."""
    entries = [
        {"provider": "ollama", "model": name}
        | ({} if given is None else {"price": {"input": given, "output": written}})
        for name, given, written in models
    ]
    spec = AgentSpec.model_validate({"name": "a", "models": entries})
    assert spec.background_models[0].model == reads and spec.background_reason.startswith(why)
    assert {model.model for model in spec.background_models} == {name for name, _, _ in models}
    named = AgentSpec.model_validate({"name": "a", "models": entries, "background": {"models": entries[:1]}})
    assert [model.model for model in named.background_models] == [models[0][0]]
    assert named.background_reason == "named in background.models"


def test_check_says_which_model_reads_in_the_background(tmp_path: Path) -> None:
    price = "price: {input: 1, output: %s}"
    models = f"[{{provider: ollama, model: big, {price % 9}}}, {{provider: ollama, model: small, {price % 1}}}]"
    path = write(tmp_path, assistant=f"name: assistant\nmodels: {models}\n")
    told = CliRunner().invoke(main, ["check", "--config", str(path)]).output
    assert "ollama/small reads in the background: the cheapest by its price" in told
