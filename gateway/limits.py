"""How much one person may say in a while: a token bucket for each.

Invariants: in any span of time a person gets through at most the burst and what the rate gives in that span; each
message costs the same however many people there are; only the people last heard are remembered, and whoever is
forgotten starts with a full bucket.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: "tell": refused, the first time since a message got through; "silent": refused, and told already.
Admission: TypeAlias = Literal["ok", "tell", "silent"]
#: Seconds by which messages of one person come out of order, from several places at a time.
_DISORDER = 15.0


class Buckets:
    """One bucket per key (channel, author, perhaps place): `burst` messages at once, `per_minute` more each minute."""

    def __init__(self, *, per_minute: float, burst: int, monotonic: Callable[[], float], people: int = 10_000) -> None:
        """`monotonic` gives seconds; of more than `people`, those longest unheard are forgotten.

        Raises `ValueError` for a rate or a burst that would let nothing through.
        """
        if per_minute <= 0 or burst < 1 or people < 1:
            raise ValueError(f"nobody could say anything: {per_minute} a minute, burst {burst}, {people} people")
        self._interval = 60.0 / per_minute
        self._slack = (burst - 1) * self._interval
        self._monotonic = monotonic
        self._people = people
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    def __len__(self) -> int:
        """The number of people remembered."""
        return len(self._buckets)

    def take(self, key: tuple[str, ...], *, at: float | None = None) -> Admission:
        """Count a message of this person, and say whether it gets through. `at` is when it was said, in seconds on

        any clock of its own that all messages of this bucket share and in whose order they come, give or take
        `_DISORDER`; without it, it was said now.
        """
        now = self._monotonic() if at is None else at
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(full_at=now, latest=now)
            if len(self._buckets) > self._people:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
            if 0 < bucket.latest - now <= _DISORDER:
                now = bucket.latest  # said before, come after: that must not count as said too fast
            # An empty bucket is never fuller than this: a clock that was put back must not shut anybody out.
            bucket.full_at = min(bucket.full_at, now + self._slack + self._interval)
        bucket.latest = now
        if bucket.full_at - now <= self._slack:
            bucket.full_at = max(bucket.full_at, now) + self._interval
            bucket.told = False
            return "ok"
        if bucket.told:
            return "silent"
        bucket.told = True
        return "tell"

    def give_back(self, key: tuple[str, ...]) -> None:
        """A message that got through was not taken after all: it does not count."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.full_at -= self._interval


@dataclass(slots=True)
class _Bucket:
    """What is left in it is kept as the moment when it will be full again: one number needs no refilling.

    `latest` is when the newest message was said. This is the generic cell rate algorithm of ITU-T I.371, in its virtual
    scheduling form.
    """

    full_at: float
    latest: float
    told: bool = False
