"""`python -m bench.replay` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bench import replay

ROW = {
    "id": 1, "time": "2024-03-01T12:00:00Z", "channel": "telegram", "chat": 7, "author_id": 7,
    "text": "I live in Lisbon",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("data_dir: data\n", "utf-8")
    return tmp_path


def replayed(folder: Path, *arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(replay.main, [*arguments, "--config", str(folder / "config.yaml")], input=stdin)


def write(folder: Path, *rows: object) -> str:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize("options", [[], ["--record-only"]])
def test_a_recording_is_replayed_once_and_summed_up(folder: Path, options: list[str]) -> None:
    path = write(folder, ROW, ROW | {"id": 2, "role": "assistant", "text": "Noted."})
    first = replayed(folder, path, *options)
    assert first.exit_code == 0, first.stderr
    summary = first.stdout
    assert "1 sessions, 1 people, 1 memories learned, 0 failures" in summary or "2 memories learned" in summary
    assert summary.startswith("2 messages recorded" if options else "1 messages answered")
    assert "2 of 2 messages" in first.stderr
    second = replayed(folder, path, *options)
    assert second.stdout.startswith("0 messages") and "0 memories learned" in second.stdout


def test_wrong_lines_are_all_named_and_nothing_is_stored(folder: Path) -> None:
    """Half a recording would have to be found and forgotten by hand."""
    done = replayed(folder, write(folder, ROW, "{", ROW | {"time": "noon"}))
    errors = done.stderr
    assert done.exit_code == 65
    assert "line 2: is not JSON" in errors and "line 3: time must be like" in errors and "was stored" in errors
    assert not (folder / "data").exists()


def test_a_recording_may_come_through_a_pipe(folder: Path) -> None:
    done = replayed(folder, "-", "--record-only", stdin=json.dumps(ROW | {"odd": 1}))
    assert done.exit_code == 0 and "1 messages recorded" in done.stdout
    assert "Ignoring unknown fields: odd" in done.stderr


def test_a_missing_file_is_said_in_one_line(folder: Path) -> None:
    done = replayed(folder, "nowhere.jsonl")
    assert done.exit_code == 2 and "nowhere.jsonl" in done.stderr and "Traceback" not in done.stderr
