"""Rate limits: buckets of a route and its place, a limit for all, and what a request inside a retry_after is.

Invariants: off until they are turned on, but a retry_after once given (also by a fault) always holds; every request
inside its retry_after is refused and counted. A bucket is a window that opens with its first request, as Discord's are.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.platforms.discord.model import JSON, Refused

#: The methods whose effects people see: these are never repeated without need.
SHOWING = frozenset({"send", "edit", "callback", "followup", "edit_original", "edit_followup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many requests in so many seconds; `retry_after` replaces the seconds that would really be left."""

    count: int
    per: float
    retry_after: float | None = None


@dataclass(slots=True)
class _Window:
    left: int
    ends: float


class TooMany(Refused):
    """429. `everywhere` is Discord's "global"."""

    def __init__(self, retry_after: float, *, everywhere: bool) -> None:
        super().__init__(429, 0, "You are being rate limited.")
        self.retry_after = max(0.001, math.ceil(retry_after * 1000) / 1000)
        self.everywhere = everywhere

    def wire(self) -> JSON:
        return {"message": self.message, "retry_after": self.retry_after, "global": self.everywhere}

    def headers(self) -> dict[str, str]:
        scope = {"X-RateLimit-Global": "true"} if self.everywhere else {}
        return {
            **scope,
            "Retry-After": str(math.ceil(self.retry_after)),
            "X-RateLimit-Scope": "global" if self.everywhere else "user",
            "X-RateLimit-Reset-After": str(self.retry_after),
            # Without it discord.py takes the refusal for one of the proxy's before Discord.
            "Via": "1.1 google",
        }


class Limits:
    """`now` is in seconds and only goes forward."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.rates: dict[str, Rate] = {}
        self.violations: list[JSON] = []
        self._now = now
        self._windows: dict[tuple[str, str], _Window] = {}
        self._until: dict[tuple[str, str] | None, float] = {}

    def admit(self, method: str, place: str) -> None:
        """Count a request. Raises `TooMany`."""
        now = self._now()
        # A command's answers go beside the limit for all.
        everywhere = () if method in ("callback", "followup", "edit_original") else (None,)
        for limited in ((method, place), *everywhere):
            left = self._until.get(limited, 0) - now
            if left > 0:
                self.violations.append({"kind": "early", "method": method, "place": place, "early_by": round(left, 3)})
                raise TooMany(left, everywhere=limited is None)
        rate = self.rates.get(method)
        if rate is None:
            return
        window = self._windows.get((method, place))
        if window is None or window.ends <= now:
            window = self._windows[method, place] = _Window(rate.count, now + rate.per)
        if window.left <= 0:
            raise self.stop(method, place, rate.retry_after or window.ends - now)
        window.left -= 1

    def stop(self, method: str, place: str, seconds: float, *, everywhere: bool = False) -> TooMany:
        """Begins a retry_after, for a bucket or for all; returns the refusal that tells of it."""
        refused = TooMany(seconds, everywhere=everywhere)
        self._until[None if everywhere else (method, place)] = self._now() + refused.retry_after
        return refused

    def headers(self, method: str, place: str) -> Mapping[str, str]:
        """Returns what an answer tells of its bucket; nothing where there is none."""
        rate, window = self.rates.get(method), self._windows.get((method, place))
        if rate is None or window is None:
            return {}
        left = max(0.0, window.ends - self._now())
        return {
            "X-RateLimit-Limit": str(rate.count),
            "X-RateLimit-Remaining": str(max(0, window.left)),
            "X-RateLimit-Reset": f"{window.ends:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": f"{zlib.crc32(method.encode()):08x}",
        }
