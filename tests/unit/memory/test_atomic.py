"""Files that are replaced as a whole."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memory.atomic import replace_file


def test_only_its_owner_reads_a_replaced_file_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"old")
    path.chmod(0o644)
    (tmp_path / "list.new").write_bytes(b"left by a process that was killed")
    replace_file(path, b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("list", b"new")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_can_not_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"old")
    (tmp_path / "list.new").mkdir()
    with pytest.raises(OSError, match=r"list\.new"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
