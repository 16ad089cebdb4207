"""What README, Makefile and the other papers say is true."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gateway.commands import TABLE
from gateway.commands.reference import markdown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCS = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")} | {"README.md": README}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_make_target_that_is_named_exists() -> None:
    """A newcomer types what is written."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {name for text in DOCS.values() for name in re.findall(r"\bmake ([a-z][a-z-]+)\b", text)}
    assert named - targets - {"sure", "them", "it"} == set()
    assert {"chat", "test", "check", "venv"} <= targets


def test_every_remora_command_that_is_named_exists() -> None:
    """The command line's own help is the truth."""
    shown = subprocess.run(
        [sys.executable, "-m", "gateway", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    known = set(re.findall(r"^  ([a-z]+) ", shown, re.MULTILINE))
    named = {name for text in DOCS.values() for name in re.findall(r"`remora ([a-z]+)", text)}
    assert named <= known


@pytest.mark.parametrize("command", TABLE, ids=lambda command: str(command.name))
def test_every_command_is_in_the_readme(command: object) -> None:
    """People look there first."""
    assert f"/{command.name}" in README  # type: ignore[attr-defined]


def test_every_file_that_is_named_exists() -> None:
    """Links and paths in the papers lead somewhere."""
    for name, text in DOCS.items():
        folder = ROOT if name == "README.md" else ROOT / "docs"
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / link).exists(), f"{name} links to {link}"
        for path in re.findall(r"`((?:gateway|channels|memory|agents|tests|bench|docs)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{name} names {path}"


def test_every_dependency_is_explained_and_pinned() -> None:
    """docs/dependencies.md says why each is there; the requirements hold them all."""
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    for line in PROJECT["dependencies"]:
        name = re.split(r"[<>=;\[ ]", line)[0]
        assert f"| {name} |" in DOCS["dependencies.md"], name
        assert re.search(rf"^{re.escape(name.replace('.', '-'))}==", pins, re.MULTILINE), name


def test_no_option_of_a_package_client_names_a_registry() -> None:
    """The project must build anywhere."""
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    option = re.compile(r"--(?:extra[-])?index[-]url|--find[-]links")
    wrong = [file for file in files if option.search(_text(ROOT / file))]
    assert wrong == []


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def test_the_page_of_commands_is_made_from_the_table() -> None:
    """`make docs` makes it anew."""
    assert DOCS["commands.md"] == markdown()
