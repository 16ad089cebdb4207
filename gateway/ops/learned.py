"""Keeps the quirks of model servers between runs, in a file beside the stores.

Invariants: the file names servers, models and their quirks, and holds no words of a person. A quirk is forgotten after
thirty days, because servers change. A file that is missing or can't be read costs one refusal for each quirk, and never
a start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from agents.providers.quirks import Learned, is_known
from memory.atomic import replace_file

log = structlog.get_logger(__name__)

FILE: Final = "models.json"
_KEPT_MS: Final = 30 * 24 * 3_600_000

#: The time at which each quirk was learned, by server and model, in milliseconds UTC.
_Times: TypeAlias = dict[str, dict[str, int]]


@contextmanager
def remembered(folder: Path, now: Callable[[], int]) -> Iterator[Learned]:
    """Yields the known quirks of model servers, and on exit keeps those learned by then."""
    times = _read(folder / FILE, now())
    learned: Learned = {server: set(own) for server, own in times.items()}
    try:
        yield learned
    finally:
        known: _Times = {
            server: {quirk: times.get(server, {}).get(quirk, now()) for quirk in sorted(quirks)}
            for server, quirks in sorted(learned.items())
            if quirks
        }
        if known != times:
            _write(folder / FILE, known)


def _read(path: Path, now: int) -> _Times:
    try:
        held = json.loads(path.read_text("utf-8"))
        times = {
            str(server): {
                str(quirk): int(at) for quirk, at in own.items() if is_known(str(quirk)) and now - int(at) < _KEPT_MS
            }
            for server, own in held.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("models.unread", path=str(path), error=str(error), instead="they are learned anew")
        return {}
    return {server: own for server, own in times.items() if own}


def _write(path: Path, times: Mapping[str, Mapping[str, int]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only its owner reads it: an address may tell more than its owner wants known.
        replace_file(path, json.dumps(times, indent=1).encode())
    except OSError as error:
        log.warning("models.unsaved", path=str(path), error=error.strerror, instead="they are learned anew")
