"""Reads the word lists and patterns that are shipped as YAML beside the code.

libyaml reads them eight times as fast as PyYAML's own parser, which would take half a second of each start.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def shipped(package: str, name: str) -> Any:
    """Returns the content of the file `name`, a path within `package`."""
    return yaml.load((resources.files(package) / name).read_bytes(), Loader=_LOADER)  # noqa: S506 - a safe loader
