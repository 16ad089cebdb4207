"""The strength of a memory: base strength, reduced by the days since it was last reinforced.

Invariants: Pure. The result lies in (0, base] and never rises with time. A longer half-life never decays faster. A
strength is computed when it is read and never written back, so no clock step can wear a memory down.
"""

from __future__ import annotations

import math

#: The sweep archives memories weaker than this; archived memories can come back.
ARCHIVE_BELOW = 0.05
#: The half-life in days of a style that was told once; each further telling adds as much.
STYLE_HALF_LIFE = 14.0
#: The half-life in days of a fact that perhaps nobody stated, unless its category fades sooner.
UNSURE_HALF_LIFE = 30.0


def rate(half_life_days: float | None) -> float:
    """Returns the decay rate per day, ln 2 / half-life; 0 for `None` (no decay).

    Raises `ValueError` unless the half-life is a positive finite number of days.
    """
    if half_life_days is None:
        return 0.0
    if not (math.isfinite(half_life_days) and half_life_days > 0):
        raise ValueError(f"half-life must be a positive number of days, or None for no decay; got {half_life_days!r}")
    return math.log(2) / half_life_days


def strength(base: float, half_life_days: float | None, days: float) -> float:
    """Returns base · exp(-rate · days), for `days` since the memory was last reinforced.

    This is exponential forgetting as in Ebbinghaus's curve. A moment in the future (a clock that was set back) counts
    as now. However old the memory, the result is above 0, so that it can be a factor of a score. Raises `ValueError`
    for a base that is not positive and finite, a half-life that `rate` refuses, or days that are not a number.
    """
    if not (math.isfinite(base) and base > 0):
        raise ValueError(f"base strength must be a positive number; got {base!r}")
    if math.isnan(days):
        raise ValueError("days since the last reinforcement must be a number; got nan")
    decay = rate(half_life_days)
    if decay == 0:
        return base
    return max(base * math.exp(-decay * max(days, 0.0)), math.ulp(0.0))


def style_half_life(reinforced: int) -> float:
    """Returns the half-life in days of a style that was told `reinforced` times in all; 0 counts as 1.

    Raises `ValueError` for a negative number.
    """
    if reinforced < 0:
        raise ValueError(f"a style can't have been told {reinforced} times")
    return STYLE_HALF_LIFE * max(reinforced, 1)
