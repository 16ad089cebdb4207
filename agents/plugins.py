"""Parts that installed packages offer by entry points: channels, model providers, embedders, importers and tools.

Invariants: nothing is imported before a configuration or a command names it. What such a package raises while it is
loaded becomes `PluginUnusable`, whose text names the package's entry point.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

#: The groups of entry points. docs/extending.md says what each one has to be.
CHANNELS: Final = "remora.channels"
PROVIDERS: Final = "remora.providers"
EMBEDDERS: Final = "remora.embedders"
IMPORTERS: Final = "remora.importers"
TOOLS: Final = "remora.tools"


class PluginUnusable(Exception):
    """A part that is not installed, or that can't be loaded. `str()` is a sentence for the operator."""


def installed(group: str) -> frozenset[str]:
    """Returns the names under which packages offer parts of this group."""
    return frozenset(entry_points(group=group).names)


def made(group: str, name: str, *given: Any, **named: Any) -> Any:
    """Returns what the function that an entry point names makes of these arguments. Raises `PluginUnusable`."""
    make = load(group, name)
    try:
        return make(*given, **named)
    # The same boundary: KeyError for a missing option, TypeError for a function of another form.
    except Exception as exc:
        raise PluginUnusable(f"{name} of {group} can't be made: {type(exc).__name__}: {exc}") from exc


def load(group: str, name: str) -> Any:
    found = next(iter(entry_points(group=group, name=name)), None)
    if found is None:
        raise PluginUnusable(f"No installed package offers {name} under {group}. Install the one that does.")
    try:
        return found.load()
    # A boundary: a stranger's module may raise anything while it is imported.
    except Exception as exc:
        raise PluginUnusable(f"{name} of {group} can't be loaded: {type(exc).__name__}: {exc}") from exc
