"""The pace of the work: times and numbers that nobody has to choose. Tests go at another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPace:
    """Times in the units of their names, and numbers of messages."""

    #: An answer that takes longer is shown as it grows; below that, a placeholder would only flicker.
    placeholder_seconds: float = 1.5
    #: Messages of one chat that may wait for their turn. Whoever waits for more has stopped reading.
    queue: int = 50
    #: Messages that waited longer for the bot to start are answered only on request: the moment has passed.
    stale_hours: float = 2.0
    #: Messages are read for memories after a silence this long, so that a burst is read once.
    quiet_seconds: float = 60.0
    #: Or as soon as so many are new, which a model reads at once.
    extract_messages: int = 30
    #: For so long an exit waits for that reading. Service managers kill after 30 to 90 seconds; the next start goes on.
    exit_seconds: float = 20.0


#: The pace outside of tests.
USUAL: Final = WorkPace()
