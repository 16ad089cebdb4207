"""The drill in short: a machine is lost, and what the copies hold is there again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import replay
from bench.drill import Machine, drill
from gateway.__main__ import main

pytestmark = pytest.mark.campaign(long=True)


class InThisProcess(Machine):
    """The same commands, without a process for each."""

    def run(self, *command: str, typed: str = "", module: str = "gateway") -> str:
        env = {"HOME": str(self.folder), "LANG": "en_US.UTF-8"}
        program = {"gateway": main, "bench.replay": replay.main}[module]
        done = CliRunner().invoke(
            program, [*command, "--config", str(self.folder / "config.yaml")], input=typed, env=env
        )
        assert done.exit_code == 0, done.output
        return done.stdout


def test_a_lost_machine_comes_back_with_what_was_backed_up_and_without_what_was_forgotten(tmp_path: Path) -> None:
    """By the list of what was forgotten and the key, which are copied apart from the backups."""
    told = drill(tmp_path, 50, InThisProcess)
    assert (told["kept"], told["doctor"]) == (True, "yellow")
    assert (told["lost_said_after_the_backup"], told["forgotten_after_the_backup_is_back"]) == (True, False)
