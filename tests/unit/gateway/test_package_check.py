"""Another package in the place of one of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway import package_check
from tests.kit.patience import SECONDS

ROOT = Path(__file__).parents[3]


def test_the_packages_of_this_checkout_are_its_own() -> None:
    assert package_check.foreign() == []


@pytest.mark.parametrize("text", ["", '"""Somebody else\'s."""\n', "from .agent import Agent\n"])
def test_a_package_that_was_overwritten_is_named(tmp_path: Path, text: str) -> None:
    """pip replaces files of the same name without a word."""
    for name in package_check.PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_bytes((ROOT / name / "__init__.py").read_bytes())
    assert package_check.foreign(search=[str(tmp_path)]) == []
    (tmp_path / "agents" / "__init__.py").write_text(text)
    assert package_check.foreign(search=[str(tmp_path)]) == ["agents"]
    (tmp_path / "memory" / "__init__.py").unlink()
    assert package_check.foreign(search=[str(tmp_path)]) == ["memory", "agents"]


def test_the_program_ends_with_the_way_out_before_it_imports_the_other_package(tmp_path: Path) -> None:
    """Half of one program and half of another must not open anybody's memory."""
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    start = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import gateway.__main__"
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 78
    assert "replaced a part of Remora: channels" in done.stderr and "pipx install ." in done.stderr
    assert "Traceback" not in done.stderr
