"""The benchmark of a turn measures what it says, or ends without figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import turn

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]


def _figures(*arguments: str) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "bench.turn", "--json", "--mode", "classic", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, dict[str, float]] = json.loads(done.stdout)
    return figures


def test_one_long_conversation_is_measured_at_its_beginning_and_at_its_end() -> None:
    """What grows with a conversation isn't seen over many short ones."""
    figures = _figures("--sessions", "1", "--turns", "10", "--rounds", "2")["sqlite"]
    for name in ("p50_ms", "processor_ms"):
        assert min(figures[f"first_{name}"], figures[f"last_{name}"]) > 0
        assert figures[f"first_{name}"] != figures[f"last_{name}"]
    assert figures["models_processor_ms"] == 0


def test_many_sessions_are_measured_as_a_whole() -> None:
    figures = _figures("--sessions", "3", "--turns", "10", "--rounds", "1")["sqlite"]
    assert figures["turns_per_second"] > 0
    assert not [name for name in figures if name.startswith(("first_", "last_"))]


@pytest.mark.stands("a world of the benchmark is set up in the loop itself")
async def test_a_store_without_vectors_ends_the_benchmark_of_meaning(tmp_path: Path) -> None:
    """Else a search by words alone would pass for the one that is shipped."""
    async with turn.running(turn.Setup(folder=tmp_path, mode="classic"), sessions=1):
        with pytest.raises(SystemExit, match="made no vectors"):
            turn.check_vectors(tmp_path)
