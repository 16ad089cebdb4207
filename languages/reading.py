"""Reads the word lists and patterns that are shipped as YAML.

libyaml reads them eight times as fast as PyYAML's own parser, which would take half a second of each start.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str | bytes) -> Any:
    """Returns the content of a shipped YAML file."""
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader


def shipped(package: str, name: str) -> Any:
    """Returns the content of the file `name`, a path within `package`."""
    return read((resources.files(package) / name).read_bytes())
