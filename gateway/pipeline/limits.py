"""How much a person may say, and what of a day's portions is left for answers.

Invariants: in any span of time a person gets through at most the burst plus what the rate gives in that span. Each
message costs the same however many people there are. Only the people last heard are remembered; a person who was
forgotten starts with a full bucket. A turn is asked about before it begins, and one that began is finished: so each
portion of a day may be exceeded by one answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:  # `remora --help` reads the rules on who may speak
    from agents.spec import AllowanceSpec, PortionOfDay
    from gateway.wording.texts import Texts
    from memory.chat.stats import Spending, Taken

#: "tell": refused for the first time since a message got through; "silent": refused, and the person was told already.
Admission: TypeAlias = Literal["ok", "tell", "silent"]
#: Seconds by which one person's messages from several places may come out of order.
_DISORDER = 15.0


class Buckets:
    """One bucket per key (channel, author, perhaps place): `burst` messages at once, `per_minute` more each minute."""

    def __init__(self, *, per_minute: float, burst: int, monotonic: Callable[[], float], people: int = 10_000) -> None:
        """`monotonic` gives seconds. Beyond `people` people, those unheard for longest are forgotten."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A portion and the part of it that is used. `whose` is "person", "chat" or "agent"."""

    whose: str
    portion: PortionOfDay
    taken: Taken

    @property
    def used_up(self) -> bool:
        tokens, cost = self.portion.tokens, self.portion.cost
        return (tokens is not None and self.taken.tokens >= tokens) or (cost is not None and self.taken.cost >= cost)


def shares(allowance: AllowanceSpec, spending: Spending) -> Iterator[Share]:
    """Yields the portions that are limited, the narrowest first."""
    taken = {"person": spending.person, "chat": spending.chat, "agent": spending.agent}
    for whose, portion in allowance.portions.items():
        yield Share(whose=whose, portion=portion, taken=taken[whose])


def refusal(allowance: AllowanceSpec, spending: Spending, texts: Texts) -> str:
    """Returns the words for a person who gets no answer before the day ends; "" if something is left."""
    share = next((one for one in shares(allowance, spending) if one.used_up), None)
    return "" if share is None else texts(f"allowance.over.{share.whose}", until=texts.moment(spending.until))


def allowance_lines(allowance: AllowanceSpec, spending: Spending, texts: Texts) -> list[str]:
    until = texts.moment(spending.until)
    return [
        texts(f"allowance.left.{share.whose}", amounts=", ".join(_amounts(share, texts)), until=until)
        for share in shares(allowance, spending)
    ]


def _amounts(share: Share, texts: Texts) -> Iterator[str]:
    if share.portion.tokens is not None:
        yield texts("allowance.tokens", taken=share.taken.tokens, most=share.portion.tokens)
    if share.portion.cost is not None:
        yield texts("allowance.cost", taken=f"{share.taken.cost:.4f}", most=f"{share.portion.cost:g}")
