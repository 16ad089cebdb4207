"""Finds out whether another installed package has taken the place of one of Remora's own.

Other projects ship top-level packages of the same names, and pip overwrites files without a word. This module reads
the first lines of five files and imports none of them, so that it works before anything else is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("gateway", "channels", "memory", "agents", "languages")
#: The beginning of the __init__.py of each package.
_MARK = '"""Part of Remora'


def foreign(*, search: Sequence[str] | None = None) -> list[str]:
    """Returns our packages whose __init__.py is missing or not ours, in `search` or where an import would look."""
    return [name for name in PACKAGES if not _is_ours(_init_file(name, search))]


def complaint(names: Sequence[str]) -> str:
    return (
        f"Another Python package has replaced a part of Remora: {', '.join(names)}. Some packages, such as "
        "openai-agents and channels, use the same folder names.\n"
        "Remora does not start, because it would run a mixture of both. Your data is untouched. Install Remora in an "
        "environment of its own: `make chat` in its folder, `pipx install .`, `uv tool install .` or Docker."
    )


def _init_file(name: str, search: Sequence[str] | None) -> Path | None:
    if search is not None:
        return next((file for folder in search if (file := Path(folder, name, "__init__.py")).is_file()), None)
    spec = find_spec(name)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _is_ours(file: Path | None) -> bool:
    if file is None:
        return False
    try:
        return file.read_text("utf-8", errors="replace").startswith(_MARK)
    except OSError:
        return False
