"""People tell, correct, forget, link and unlink in any order, and nobody ever reads what is not theirs.

`make leaks` goes on for 10,000 steps; the ordinary tests take a few.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.canaries import AGENTS, LEARNED, PLACES, WAYS, Canary, Spot, World

PEOPLE = ("ada", "bob", "cyd", "ada's phone")
#: Steps of one run from an empty store: in longer ones most of the time goes into reading what was told at first.
RUN = 40

spots = st.builds(Spot, person=st.sampled_from(PEOPLE), place=st.sampled_from(PLACES), agent=st.sampled_from(AGENTS))
people = st.sampled_from(PEOPLE)


class Talk(RuleBasedStateMachine):
    """What happens to the store and to `World.canaries`, the plain model of who may see what."""

    @initialize()
    def open(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.world = self.run(World.open(Path(self.folder.name) / "remora.db", PEOPLE))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    @rule(spot=spots, kinds=st.lists(st.sampled_from(LEARNED), unique=True))
    def tell(self, spot: Spot, kinds: list[str]) -> None:
        self.run(self.world.tell(spot, [kind for kind in kinds if kind != "eve" or spot.place == "private"]))

    @rule(spot=spots)
    def have_kept(self, spot: Spot) -> None:
        self.run(self.world.have_kept(spot))

    @rule(agent=st.sampled_from(AGENTS))
    def say_for_agent(self, agent: str) -> None:
        self.run(self.world.say_for_agent(agent))

    @rule(name=st.sampled_from(sorted(WAYS)), spot=spots)
    def ask(self, name: str, spot: Spot) -> None:
        assert self.run(self.world.faults(name, spot)) == []

    @rule(name=st.sampled_from(sorted(WAYS)), person=people, agent=st.sampled_from(AGENTS))
    def ask_everywhere(self, name: str, person: str, agent: str) -> None:
        for place in PLACES:
            self.ask(name, Spot(person=person, place=place, agent=agent))

    @rule(spot=spots)
    def count(self, spot: Spot) -> None:
        assert self.run(self.world.miscounts(spot)) == []

    @precondition(lambda self: self.changeable())
    @rule(data=st.data())
    def correct(self, data: st.DataObject) -> None:
        # A friend's name stays in the row as whom it is about, whatever else is corrected.
        old = [canary for canary in self.changeable() if canary.kind != "fri"]
        if old:
            canary = data.draw(st.sampled_from(old))
            self.run(self.world.correct(canary, canary.spot))

    @precondition(lambda self: self.changeable())
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        canary = data.draw(st.sampled_from(self.changeable()))
        self.run(self.world.forget(canary, canary.spot))

    @rule(one=people, other=people)
    def link(self, one: str, other: str) -> None:
        self.run(self.world.link(one, other))

    @rule(name=people)
    def unlink(self, name: str) -> None:
        self.run(self.world.unlink(name))

    @rule(spot=spots)
    def start_window(self, spot: Spot) -> None:
        self.run(self.world.do(spot, lambda desk: desk.start_window()))

    @rule()
    def restart(self) -> None:
        self.run(self.world.close())
        self.run(self.world.start())

    def changeable(self) -> list[Canary]:
        """Memories of people that hold now."""
        return [c for c in self.world.canaries if c.current and c.kind not in ("msg", "agw")]

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.run(self.world.close())
        if hasattr(self, "runner"):
            self.runner.close()
            self.folder.cleanup()


def test_whatever_people_do_nobody_reads_what_is_not_theirs() -> None:
    """Promise 2 against orders of events that nobody thought of."""
    steps = int(os.environ.get("REMORA_LEAK_STEPS", "0"))
    run_state_machine_as_test(
        Talk,
        settings=settings(
            max_examples=max(1, steps // RUN) if steps else 6,
            stateful_step_count=RUN,
            deadline=None,
            # The same few runs each time; the long one looks further.
            derandomize=not steps,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
