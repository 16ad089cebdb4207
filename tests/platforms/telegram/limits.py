"""Telegram's flood control: who may send how much, and what a request inside a retry_after is.

Invariants: off until it is turned on, but a retry_after once given (also by a fault) always holds; every request to a
chat inside its retry_after is refused and counted. The rates are those of Telegram's bot FAQ ("My bot is hitting
limits"): about one message a second in one chat with short bursts, 20 a minute in one group, 30 a second in all.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.platforms.telegram.updates import Refused

#: Takes part in flood control; what is shown counts against the rates, the rest only may not come inside a retry_after.
SHOWING = frozenset({"sendMessage", "sendDocument", "editMessageText"})
_LIMITED = SHOWING | {"sendChatAction", "sendMessageDraft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates that are allowed. `retry_after` replaces the seconds that would really be left."""

    private_per_second: float = 1
    private_burst: int = 3
    group_per_minute: int = 20
    overall_per_second: float = 30
    retry_after: int | None = None


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class Flood:
    """`now` is in seconds and only goes forward."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.rates: Rates | None = None
        self.violations: list[dict[str, Any]] = []
        self._now = now
        self._until: dict[int | None, float] = {}
        self._buckets: dict[int | None, _Bucket] = {}
        self._group: defaultdict[int, deque[float]] = defaultdict(deque)

    def admit(self, method: str, chat: int | None) -> None:
        """Raises `Refused` with 429 and a retry_after."""
        if method not in _LIMITED:
            return
        now = self._now()
        for limited in (chat, None):
            left = self._until.get(limited, 0) - now
            if left > 0:
                self.violations.append({"method": method, "chat": chat, "early_by": round(left, 3)})
                raise _too_many(left)
        if self.rates is None or method not in SHOWING or chat is None:
            return
        rates = self.rates
        if chat > 0:
            self._spend(chat, rates.private_per_second, rates.private_burst, rates, window=chat)
        else:
            sent = self._group[chat]
            while sent and sent[0] <= now - 60:
                sent.popleft()
            if len(sent) >= rates.group_per_minute:
                raise self.stop(chat, rates.retry_after or sent[0] + 60 - now)
            sent.append(now)
        self._spend(None, rates.overall_per_second, rates.overall_per_second, rates, window=None)

    def stop(self, chat: int | None, seconds: float) -> Refused:
        """Begins a retry_after, for a chat or (None) for all; returns the refusal that tells of it."""
        whole = max(1, math.ceil(seconds))
        self._until[chat] = self._now() + whole
        return _too_many(whole)

    def _spend(self, key: int | None, rate: float, burst: float, rates: Rates, *, window: int | None) -> None:
        now = self._now()
        bucket = self._buckets.setdefault(key, _Bucket(burst, now))
        bucket.level = min(burst, bucket.level + (now - bucket.at) * rate)
        bucket.at = now
        if bucket.level < 1:
            raise self.stop(window, rates.retry_after or (1 - bucket.level) / rate)
        bucket.level -= 1


def _too_many(seconds: float) -> Refused:
    whole = max(1, math.ceil(seconds))
    return Refused(429, f"Too Many Requests: retry after {whole}", retry_after=whole)
