"""What a job of the night is made of: whose rows it goes through, what it asks a model, what becomes of the answer.

Invariants: steps are worked out by reading and carried out in a transaction each, after which the rest is worked out
anew by whoever comes back: a job's state is the rows themselves, so one that broke off goes on, and a second run finds
nothing to do; what changed between the two is looked at again before it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory.learn.ask import Ask
from memory.scope import Scope
from memory.store.database import Reader, Transaction

#: All that is counted of what a run did; each has its words for people.
FIGURES: Final = frozenset(
    {
        "archived", "backups", "backups_dropped", "chats", "ended", "events", "events_archived", "facts", "insights",
        "known", "manners", "memories", "merged", "messages", "names", "no_model", "passed", "read", "refused", "runs",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What a run knows: for which agent and local day ('YYYY-MM-DD') it works, in which timezone, and what time it is.

    `now` is in milliseconds UTC; without a `model` a job does what an algorithm can. `nightly` are the agents of the
    store that have nights; None: all.
    """

    agent_id: int
    day: str
    timezone: str
    now: int
    new_id: Callable[[], str]
    model: bool
    nightly: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A piece of a job over one owner's rows, small enough for one answer and one transaction.

    `carry_out` gets the model's answer, "" where nothing was asked, and returns what was done, in `FIGURES`. It raises
    `memory.learn.answer.Unreadable` for an answer that is none.
    """

    carry_out: Callable[[Transaction, str], Mapping[str, int]]
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A kind of work: `owners` are those with something to do, `steps` what there is to do for one of them.

    `owners` is one short reading of the whole store and may name some too many; who turns out to have no steps is left
    out of the run.
    With `flushes` what was said and not yet learned from is read first.
    """

    name: str
    owners: Callable[[Reader, Night], Sequence[int]]
    steps: Callable[[Reader, Scope, Night], Sequence[Step]]
    flushes: bool = False
