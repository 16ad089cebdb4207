"""The folder of a person's configuration, as `remora init` makes it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from gateway.cli.init_texts import SPOKEN, language, texts
from gateway.cli.setting_up import Choices, make_home
from gateway.config import setup
from gateway.config.loading import Config, ConfigError, data_here, find, load, misplaced

ROOT = Path(__file__).parents[3]
MODEL = {"provider": "openai", "model": "a: b # c", "base_url": "http://localhost:1/v1", "key": "${MY_KEY}"}
NOTHING = Choices(model=None, secret=None, language="en")


def fine(file: Path) -> Config:
    return load(file, {}, file.parent)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_home_passes_the_check_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "home"
    make_home(folder, Choices(model=MODEL, secret=("MY_KEY", "sk-1'x'"), language="zh"), fine)
    assert files(folder) == [".env", "agents", "agents/assistant.yaml", "config.yaml", "data"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
    spec = fine(folder / "config.yaml").agents["assistant"]
    (model,) = spec.models
    assert (model.model, model.key and model.key.get_secret_value()) == ("a: b # c", "sk-1'x'")
    assert spec.language == "zh"


def test_a_home_that_fails_the_check_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a home would be found and used."""
    (tmp_path / ".env").write_text("OTHER=1\n")
    choices = Choices(model=MODEL, secret=("WRONG_NAME", "sk-1"), language="en")
    with pytest.raises(ConfigError, match="MY_KEY"):
        make_home(tmp_path, choices, fine)
    assert files(tmp_path) == [".env"]
    assert (tmp_path / ".env").read_text() == "OTHER=1\n"
    with pytest.raises(ConfigError):
        make_home(tmp_path / "deep" / "er", choices, fine)
    assert files(tmp_path) == [".env"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("default_agent: mine\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.yaml").write_text("name: mine\n")
    made = make_home(tmp_path, NOTHING, fine)
    assert [path.name for path in made] == [".env"]
    assert (tmp_path / "config.yaml").read_text() == "default_agent: mine\n"
    assert make_home(tmp_path, NOTHING, fine) == []


def test_databases_that_were_used_before_stay_in_use(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    clone.mkdir()
    (clone / "config.yaml").write_bytes((ROOT / "config.yaml").read_bytes())
    assert data_here({}, clone, home) is None
    (clone / "data").mkdir()
    (clone / "data" / "remora.db").touch()
    assert data_here({}, clone, home) == clone / "data"
    folder = home / ".config" / "remora"
    make_home(folder, Choices(model=None, secret=None, language="en", data_dir=str(clone / "data")), fine)
    assert fine(folder / "config.yaml").data_dir == clone / "data"
    assert not (folder / "data").exists()


def test_a_model_is_written_into_an_agent_that_has_none(tmp_path: Path) -> None:
    file = tmp_path / "agents" / "assistant.yaml"
    file.parent.mkdir()
    file.write_text("name: assistant  # mine\nmodels: []\nrules: [Be kind]\n")
    setup.use_model(file, {"provider": "openai", "model": "m", "base_url": "http://localhost:1/v1", "context": 32000})
    assert "# mine" in file.read_text()
    (tmp_path / "config.yaml").touch()
    spec = fine(tmp_path / "config.yaml").agents["assistant"]
    assert [(model.model, model.context) for model in spec.models] == [("m", 32000)]
    assert spec.rules == ("Be kind",)


# --- which configuration is used ---


def test_the_reference_gives_way_to_a_persons_own_configuration(tmp_path: Path) -> None:
    clone, own = tmp_path / "clone", tmp_path / ".config" / "remora" / "config.yaml"
    clone.mkdir()
    here = clone / "config.yaml"
    here.write_bytes((ROOT / "config.yaml").read_bytes())
    assert find(None, {}, clone, tmp_path) == here
    make_home(own.parent, NOTHING, fine)
    assert find(None, {}, clone, tmp_path) == own
    here.write_text(here.read_text().replace("concurrent_turns: 8", "concurrent_turns: 9"))
    assert find(None, {}, clone, tmp_path) == here


def test_files_that_are_not_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.yml").touch()
    config = load(None, {}, tmp_path / "home")
    (found,) = misplaced(config, tmp_path, tmp_path / "home")
    assert "config.yml is not read" in found and "rename it to config.yaml" in found
    (tmp_path / "config.yaml").touch()
    (tmp_path / "agents").mkdir()
    (found,) = misplaced(fine(tmp_path / "config.yaml"), tmp_path, tmp_path / "home")
    assert "agents holds no .yaml file" in found
    (tmp_path / "agents" / "a.yaml").write_text("name: assistant\n")
    assert misplaced(fine(tmp_path / "config.yaml"), tmp_path, tmp_path / "home") == []


# --- texts ---


def test_the_texts_of_both_languages_are_in_step() -> None:
    """A text that is missing in one language would end the set-up."""
    for code in SPOKEN:
        assert texts(code).keys() == texts("en").keys()
        for key, text in texts("en").items():
            assert set(re.findall(r"{\w+}", texts(code)[key])) == set(re.findall(r"{\w+}", text)), key


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US", "LC_ALL": "", "LC_MESSAGES": "zh_TW"}, "zh"),
    ],
)
def test_the_language_is_that_of_the_terminal(variables: dict[str, str], expected: str) -> None:
    assert language(variables) == expected
