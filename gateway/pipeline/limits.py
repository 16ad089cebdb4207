"""Rate limits: a token bucket for each person.

Invariants: in any span of time a person gets through at most the burst plus what the rate gives in that span. Each
message costs the same however many people there are. Only the people last heard are remembered; a person who was
forgotten starts with a full bucket.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: "tell": refused for the first time since a message got through; "silent": refused, and the person was told already.
Admission: TypeAlias = Literal["ok", "tell", "silent"]
#: Seconds by which one person's messages from several places may come out of order.
_DISORDER = 15.0


class Buckets:
    """One bucket per key (channel, author, perhaps place): `burst` messages at once, `per_minute` more each minute."""

    def __init__(self, *, per_minute: float, burst: int, monotonic: Callable[[], float], people: int = 10_000) -> None:
        """`monotonic` gives seconds. Beyond `people` people, those unheard for longest are forgotten.

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
        return len(self._buckets)

    def take(self, key: tuple[str, ...], *, at: float | None = None) -> Admission:
        """Counts a message of this person, and returns whether it gets through.

        `at` is when the message was said, in seconds on any clock that all messages of this bucket share and in whose
        order they come, give or take `_DISORDER`. Without `at` it was said now.
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
                now = bucket.latest  # said earlier but come later: that must not count as said too fast
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
        """Uncounts a message that got through but was not taken after all."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.full_at -= self._interval


@dataclass(slots=True)
class _Bucket:
    """A person's bucket, kept as the moment when it will be full again: one number that needs no refilling.

    `latest` is when the newest message was said. This is the generic cell rate algorithm of ITU-T I.371, in its
    virtual scheduling form.
    """

    full_at: float
    latest: float
    told: bool = False
