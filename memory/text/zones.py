"""Time zones by typed names: "Europe/Lisbon", "lisbon", "New York".

Invariants: pure; the zones are those of the system.
"""

from __future__ import annotations

import difflib
from functools import cache
from zoneinfo import available_timezones


def zone_named(typed: str) -> str | None:
    """Returns the IANA timezone with this name or with a city of this name, ignoring case; None for none or several."""
    name = _folded(typed)
    if name in _zones():
        return _zones()[name]
    cities = {zone for folded, zone in _zones().items() if folded.rpartition("/")[2] == name}
    return cities.pop() if len(cities) == 1 else None


def zones_like(typed: str, *, limit: int) -> list[str]:
    """Returns timezones whose name begins with, holds or nearly equals the typed text, likeliest first."""
    name = _folded(typed)
    zones = _zones()
    held = [folded for folded in zones if name in folded]
    held.sort(key=lambda one: (not one.startswith(name) and not one.rpartition("/")[2].startswith(name), one))
    near = difflib.get_close_matches(name, zones, n=limit, cutoff=0.6) if len(held) < limit else []
    return [zones[folded] for folded in dict.fromkeys([*held, *near])][:limit]


def _folded(typed: str) -> str:
    return "_".join(typed[:64].casefold().split())


@cache
def _zones() -> dict[str, str]:
    """Returns the system's timezones by their folded names, without those for the machine's own clock."""
    return {zone.casefold(): zone for zone in sorted(available_timezones() - {"localtime", "Factory", "posixrules"})}
