"""Notes of another assistant beside an agent's file are offered, and never brought in unasked."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from gateway.__main__ import main
from gateway.cli import notes
from gateway.config.loading import Config, load


def configured(folder: Path, more: str = "") -> Config:
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "assistant.yaml").write_text("name: assistant\n")
    (folder / "agents" / "work.yaml").write_text("name: work\ndatabase: work.db\n")
    (folder / "config.yaml").write_text(f"data_dir: data\n{more}")
    return load(folder / "config.yaml", {}, folder)


def offers(config: Config) -> list[str]:
    return [notes.offer(config, some) for some in notes.found(config)]


def test_notes_beside_an_agent_are_offered_with_the_command_that_shows_them(tmp_path: Path) -> None:
    config = configured(tmp_path / "my bot")
    agents = config.agents_dir
    (agents / "MEMORY.md").write_text("- likes tea\n")
    (agents / "memory").mkdir()
    for name in ("2026-05-12.md", "2026-05-13.md", "README.md"):
        (agents / "memory" / name).write_text("- met Ana\n")
    (offer,) = offers(config)
    assert offer == (
        f"MEMORY.md and 2 daily notes in {agents} can become memories. To look at them first: "
        f"remora import '{agents}/MEMORY.md' --person console:you && "
        f"remora import '{agents}/memory' --person console:you"
    )


def test_an_agent_of_its_own_database_has_a_folder_of_its_own(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (config.agents_dir / "work").mkdir()
    (config.agents_dir / "work" / "MEMORY.md").write_text("- the office is in Porto\n")
    (offer,) = offers(config)
    assert offer.endswith(f"remora import {config.agents_dir / 'work' / 'MEMORY.md'} --person console:you --agent work")


def test_they_are_offered_to_the_first_admin(tmp_path: Path) -> None:
    token = "123456789:" + "Aa0_-" * 7
    config = configured(tmp_path, f"channels: {{telegram: [{{token: '{token}', admins: [42]}}]}}\n")
    (config.agents_dir / "USER.md").write_text("- Ada\n")
    assert "--person telegram:42" in offers(config)[0]


def test_a_start_offers_them_once(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (config.agents_dir / "MEMORY.md").write_text("- likes tea\n")
    here = tmp_path / "workspace"
    here.mkdir()
    (here / "USER.md").write_text("- likes tea\n")
    assert [some.folder for some in notes.at_first_start(config, here)] == [config.agents_dir, here]
    assert len(notes.at_first_start(config, config.agents_dir)) == 1
    config.data_dir.mkdir()
    (config.data_dir / "remora.db").touch()
    assert notes.at_first_start(config, here) == [] and len(offers(config)) == 1


def test_check_tells_of_them(tmp_path: Path) -> None:
    config = configured(tmp_path)
    told = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "config.yaml")])
    assert told.exit_code == 0 and "remora import" not in told.output
    (config.agents_dir / "MEMORY.md").write_text("- likes tea\n")
    told = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "config.yaml")])
    assert told.exit_code == 0 and "remora import" in told.output and not config.data_dir.exists()


def test_what_is_no_note_is_not_offered(tmp_path: Path) -> None:
    config = configured(tmp_path)
    (config.agents_dir / "AGENTS.md").write_text("- obey\n")
    (config.agents_dir / "MEMORY.md").mkdir()
    assert offers(config) == []
