"""The parts of a night job: the owners it works for, its questions to a model, and its handling of the answers.

Invariants: a read plans the steps, and each is carried out in its own transaction; after that, the next run plans the
rest. A job's state is the rows themselves, so a job that broke off goes on, and a second run finds nothing to do.
Before a step touches anything, it checks again what changed since it was planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory.learn.agents import Agents
from memory.learn.model import ModelRequest, Room, ample
from memory.scope import Scope
from memory.store.database import Reader, Transaction
from memory.text.times import clock

#: All figures that a run counts; each has its words for people.
FIGURES: Final = frozenset(
    {
        "archived", "backups", "backups_dropped", "chats", "compared", "doubts", "ended", "events", "exports",
        "events_archived", "facts", "insights",
        "known", "manners", "memories", "merged", "messages", "names", "no_model", "passed", "read", "refused",
        "replaced", "runs", "set_aside",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The setting of a run: the agent, local day ('YYYY-MM-DD') and timezone it works for, and the time.

    `now` is in milliseconds UTC. Without a `model`, a job does the part that an algorithm can do; `room` tells how much
    that model can read at once. `nightly` are the agents of the store that have nights; None means all.
    """

    agent_id: int
    day: str
    timezone: str
    now: int
    new_id: Callable[[], str]
    model: bool
    nightly: Sequence[int] | None = None
    room: Room = ample

    def material_bytes(self, instructions: str, answer: int) -> int:
        """Returns the bytes of material that fit beside instructions and an answer of so many tokens.

        Three bytes of UTF-8 are seldom less than a token, in any script.
        """
        return 3 * self.room(instructions, answer)


def night_of(agents: Agents, agent_id: int, *, now: int, new_id: Callable[[], str], day: str = "") -> Night:
    """Returns the setting of an agent's work, for the agent's local date at `now` unless `day` is given."""
    agent = agents.by_id[agent_id]
    return Night(
        agent_id=agent_id,
        day=day or clock.local_date(now, agent.timezone).isoformat(),
        timezone=agent.timezone,
        now=now,
        new_id=new_id,
        model=agent.model is not None,
        nightly=agents.nightly,
        room=ample if agent.model is None else agent.model.room,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A piece of a job on one owner's rows, small enough for one answer and one transaction.

    `carry_out` takes the model's answer ("" if nothing was asked) and returns its work, counted in `FIGURES`. It raises
    `memory.learn.answer.Unreadable` for an unusable answer.

    If the model refuses the question, or its answer is unusable, the steps of `instead` are done: smaller questions, so
    that what can't be read holds up nothing else. Without any, the refusal is counted for the memories that the
    question is `about`.
    """

    carry_out: Callable[[Transaction, str], Mapping[str, int]]
    request: ModelRequest | None = None
    about: tuple[int, ...] = ()
    instead: Callable[[], Sequence[Step]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A kind of work: `owners` returns the owners with something to do, `steps` the work for one of them.

    `owners` is one short read of the whole store and may name too many; owners without steps are left out of the run.
    With `flushes`, messages that were not yet learned from are read first.
    """

    name: str
    owners: Callable[[Reader, Night], Sequence[int]]
    steps: Callable[[Reader, Scope, Night], Sequence[Step]]
    flushes: bool = False
