"""The archives of a release: they can be uploaded, hold every file of the packages, and a chat runs from the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import click
import pytest

from tests.kit.patience import SECONDS

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "channels", "memory", "agents", "languages")


def run(*command: str | Path, home: Path | None = None, said: str = "") -> str:
    env = {**os.environ, "LANG": "en_US.UTF-8", **({} if home is None else {"HOME": str(home)})}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, cwd=home or ROOT, input=said, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive, and the wheel that is built of it, by the pinned tools and without a network."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (source,), (wheel,) = folder.glob("remora-*.tar.gz"), folder.glob("remora-*.whl")
    return source, wheel


def test_the_archives_can_be_uploaded(archives: tuple[Path, Path]) -> None:
    """A registry refuses what it can't show."""
    assert run(sys.executable, "-m", "twine", "check", "--strict", *archives).count("PASSED") == 2


def test_the_archives_hold_every_file_of_the_packages(archives: tuple[Path, Path]) -> None:
    """A table or a page that is left out would be missed only on somebody's machine."""
    source, wheel = archives
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    held = set(zipfile.ZipFile(wheel).namelist())
    assert set(listed.stdout.split()) - held == set()
    assert "gateway/config.yaml" in held
    assert not any(name.startswith(("tests/", "bench/")) for name in held)
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"CHANGELOG.md", "Makefile", "requirements.txt", "docs/operation.md", "tests/e2e/test_wheel.py"} <= names


def test_a_chat_runs_in_an_environment_of_its_own(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Neither the checkout nor its data folder is used; the dependencies are those of this environment."""
    home, made = tmp_path / "home", tmp_path / "environment"
    home.mkdir()
    venv.create(made, with_pip=False, symlinks=True)
    python = made / "bin" / "python"
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", archives[1])
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(Path(click.__file__).parents[1]))
    assert run(python, "-c", "import gateway; print(gateway.__file__)", home=home).startswith(str(made))
    (home / "config.yaml").write_text("embedding: {provider: none}\ndata_dir: data\n")
    told = run(made / "bin" / "remora", "chat", home=home, said="I live in Porto.\nWhere do I live?\n")
    assert "You live in Porto; you told me today." in told
    assert (home / "data" / "remora.db").exists()
