"""The wheel: it holds every file of the packages, and a chat runs from it alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "channels", "memory", "agents")


def run(*command: str | Path, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], env={**os.environ, **env}, capture_output=True, text=True, cwd=env.get("HOME", ROOT),
        input="I live in Porto.\nWhere do I live?\n", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the pinned tools of this environment, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, ROOT)
    (built,) = folder.glob("remora-*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """A table or a page that is left out would be missed only on somebody's machine."""
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    held = set(zipfile.ZipFile(wheel).namelist())
    assert set(listed.stdout.split()) - held == set()
    assert "gateway/config.yaml" in held
    assert not any(name.startswith(("tests/", "bench/")) for name in held)


def test_a_chat_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """Neither the checkout nor its data folder is used."""
    code, home = tmp_path / "code", tmp_path / "home"
    home.mkdir()
    run("-m", "pip", "--quiet", "install", "--no-deps", "--no-index", "--target", code, wheel)
    where = {"PYTHONPATH": str(code), "HOME": str(home), "LANG": "en_US.UTF-8"}
    assert run("-c", "import gateway; print(gateway.__file__)", **where).startswith(str(code))
    (home / "config.yaml").write_text("embedding: {provider: none}\ndata_dir: data\n")
    assert "You live in Porto; you told me today." in run("-m", "gateway", "chat", **where)
    assert (home / "data" / "remora.db").exists()
