"""`remora replay` as somebody types it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.program import ran

ROW = {
    "id": 1,
    "time": "2024-03-01T12:00:00Z",
    "channel": "telegram",
    "chat": 7,
    "author_id": 7,
    "text": "I live in Lisbon",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("data_dir: data\n", "utf-8")
    return tmp_path


def remora(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    config = ("--config", str(folder / "config.yaml"))
    return ran(*arguments, *config, folder=folder, env={**os.environ, "NO_PROXY": "*"}, stdin=stdin)


def write(folder: Path, *rows: object) -> str:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize("options", [[], ["--record-only"]])
def test_a_recording_is_replayed_once_and_summed_up(folder: Path, options: list[str]) -> None:
    """A second run changes nothing and says so."""
    path = write(folder, ROW, ROW | {"id": 2, "role": "assistant", "text": "Noted."})
    first = remora(folder, "replay", path, *options)
    assert first.returncode == 0, first.stderr.decode()
    summary = first.stdout.decode()
    assert "1 sessions, 1 people, 1 memories learned, 0 failures" in summary or "2 memories learned" in summary
    assert summary.startswith("2 messages recorded" if options else "1 messages answered")
    assert b"2 of 2 messages" in first.stderr
    second = remora(folder, "replay", path, *options)
    assert second.stdout.decode().startswith("0 messages") and b"0 memories learned" in second.stdout


def test_wrong_lines_are_all_named_and_nothing_is_stored(folder: Path) -> None:
    """Half a recording would have to be found and forgotten by hand."""
    done = remora(folder, "replay", write(folder, ROW, "{", ROW | {"time": "noon"}))
    errors = done.stderr.decode()
    assert done.returncode == 65
    assert "line 2: is not JSON" in errors and "line 3: time must be like" in errors and "was stored" in errors
    assert not (folder / "data").exists()


def test_a_recording_may_come_through_a_pipe(folder: Path) -> None:
    """As converters give it."""
    done = remora(folder, "replay", "-", "--record-only", stdin=json.dumps(ROW | {"odd": 1}).encode())
    assert done.returncode == 0 and b"1 messages recorded" in done.stdout
    assert b"Ignoring unknown fields: odd" in done.stderr


def test_a_missing_file_is_said_in_one_line(folder: Path) -> None:
    """Without a traceback."""
    done = remora(folder, "replay", "nowhere.jsonl")
    assert done.returncode == 2 and b"nowhere.jsonl" in done.stderr and b"Traceback" not in done.stderr
