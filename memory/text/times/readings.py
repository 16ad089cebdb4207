"""The results of reading a request for a reminder: a time, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypeAlias

#: No time; a vague one like "later"; one that is over; one that does not exist, like 31 February; an hour alone
#: for what is to come often.
Reason: TypeAlias = Literal["none", "vague", "past", "impossible", "often"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A request that was understood.

    `what` is without the words for the time, and may be empty. `first` is aware. `rule` (`rules.py`) is None for a
    reminder that comes once, `until` the last local day, if one was named. Without `hour_given` the hour was
    assumed, without `day_given` the day, and without `month_given` the month ("on the 11th"). A `bare` hour may
    belong to either half of the day.
    """

    what: str = ""
    first: datetime
    rule: str | None = None
    until: date | None = None
    hour_given: bool
    day_given: bool = True
    month_given: bool = True
    bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """A request whose time can't be read surely, so that the bot asks for it; `often` if it is to repeat.

    `words` are those of it that leave a vague time in doubt, or "".
    """

    what: str
    reason: Reason
    often: bool = False
    words: str = ""
