"""README and the documents under docs/ say what is true."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bench import conversation, options
from bench.commands import markdown
from gateway.commands.table import TABLE

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCS = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {name for text in DOCS.values() for name in re.findall(r"(?:`|^)make ([a-z][a-z-]+)\b", text, re.MULTILINE)}
    assert named <= targets
    assert {"chat", "test", "check", "venv"} <= targets


def test_every_remora_command_that_is_named_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "gateway", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    known = set(re.findall(r"^  ([a-z-]+) ", shown, re.MULTILINE))
    named = {name for text in DOCS.values() for name in re.findall(r"`remora ([a-z-]+)", text)}
    assert named <= known


def test_every_command_that_is_named_exists() -> None:
    """Besides those of the bot there are @BotFather's; `/app` is a folder; `/healthz`, `/readyz` and `/metrics` are pages."""
    known = {str(command.name) for command in TABLE} | {
        "newbot", "setprivacy", "token", "app", "healthz", "readyz", "metrics", "mcp", "quit", "exit", "attach",
    }  # fmt: skip
    for name, text in DOCS.items():
        named = {word for code in re.findall(r"`(/[^`]+)`", text) for word in re.findall(r"^/([a-z]+)(?![\w/.])", code)}
        assert named <= known, name


def test_every_link_leads_to_a_file_and_to_a_heading_in_it() -> None:
    """A heading that is reworded takes its links with it."""
    for name, text in DOCS.items():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            path = ((ROOT / name).parent / target).resolve() if target else ROOT / name
            assert path.exists(), f"{name} links to {target}"
            assert not anchor or anchor in _anchors(path.read_text("utf-8")), f"{name} links to {target}#{anchor}"


def test_every_path_that_is_named_exists() -> None:
    """A file that moves takes its mentions in documents, comments and the Makefile with it."""
    for name, text in DOCS.items():
        for path in re.findall(r"`((?:gateway|channels|memory|agents|tests|bench|docs)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{name} names {path}"
    sources = [
        path
        for folder in ("gateway", "channels", "memory", "agents", "languages", "bench")
        for path in (ROOT / folder).rglob("*.py")
    ]
    for source in [ROOT / "Makefile", *sources]:
        for path in re.findall(r"(?<![\w/.])docs/[\w/-]+\.(?:md|png|svg)", source.read_text("utf-8")):
            assert (ROOT / path).exists(), f"{source} names {path}"


def test_every_document_is_reached_from_the_readme() -> None:
    """A document that nothing links to is not read."""
    assert [name for name in DOCS if name != "README.md" and f"]({name}" not in README] == []


def test_every_dependency_is_explained_and_pinned() -> None:
    """docs/design/dependencies.md says why each is there; the requirements hold them all."""
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    for line in PROJECT["dependencies"]:
        name = re.split(r"[<>=;\[ ]", line)[0]
        assert f"| {name} |" in DOCS["docs/design/dependencies.md"], name
        assert re.search(rf"^{re.escape(name.replace('.', '-'))}==", pins, re.MULTILINE), name


def test_the_newest_release_is_the_version_of_the_package() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(PROJECT['version'])} - \d{{4}}-\d\d-\d\d", headings[1])


def test_no_option_of_a_package_client_names_a_registry() -> None:
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    option = re.compile(r"--(?:extra[-])?index[-]url|--find[-]links")
    wrong = [file for file in files if option.search(_text(ROOT / file))]
    assert wrong == []


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def test_the_page_of_commands_is_made_from_the_table() -> None:
    assert DOCS["docs/commands.md"] == markdown()


def test_the_page_of_options_is_made_from_the_models() -> None:
    assert DOCS["docs/configuration.md"] == options.markdown()


@pytest.mark.stands("the terminal builds its tables of languages where they are first used")
async def test_the_conversation_in_the_readme_is_what_remora_answers(tmp_path: Path) -> None:
    """`make docs` writes it anew; read it before you commit it."""
    assert conversation.in_readme(README) == await conversation.held(tmp_path)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
