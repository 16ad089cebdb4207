"""The load measurements measure what they say: crowds as described, every answer counted, gates that can be missed."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

from bench import load
from bench.load import Bench, Person, Platform
from channels.base import Outbound
from tests.kit.tables import each_row

Scenario: TypeAlias = Callable[[Bench, Path], Awaitable[Mapping[str, float]]]
#: Everything is a fiftieth of what the gates are for: whether it runs, not how fast.
SIZE = 0.02


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with load.model_server() as address:
        yield address


@pytest.fixture
def bench(address: str) -> Bench:
    return Bench(address=address, mode="classic", seconds=2.5, lock_seconds=2.0, size=SIZE)


#: What the figures of a scenario show if it ran to its end. People who are not answered count, too.
SCENARIOS: dict[Scenario, Callable[[Bench, Mapping[str, float]], bool]] = {
    load.backlog: lambda bench, told: told["drained_s"] > 0 and told["failed_answers"] == 0,
    load.arriving: lambda bench, told: told["drained_s"] >= told["taken_s"] and told["failed_answers"] == 0,
    load.hung: lambda bench, told: told["base_n"] >= 2 and told["load_n"] >= 2,
    load.flooder: lambda bench, told: 0 < told["flood_answers"] <= told["flood_most"],
    load.locks: lambda bench, told: told["answers"] > 0 and load.missed("locks", told) == [],
    load.soak: lambda bench, told: told["turns"] == bench.sized(500) * 20 and told["failed_answers"] == 0,
}


@pytest.mark.campaign(long=True)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_scenario_is_measured_to_its_end(bench: Bench, tmp_path: Path, scenario: Scenario) -> None:
    figures = await scenario(bench, tmp_path)
    assert SCENARIOS[scenario](bench, figures), figures


def test_a_backlog_has_no_two_messages_in_a_row_that_would_be_merged() -> None:
    """Lanes merge what one author says in a row: a thousand messages would become a hundred turns."""
    bench = Bench(address="")
    talkers = load._talkers(bench)
    said: defaultdict[str, list[int]] = defaultdict(list)
    for person, _ in load._pending(bench, talkers):
        said[person.chat].append(person.id)
    assert Counter(len(authors) for authors in said.values()) == {10: 100}
    assert all(one != other for authors in said.values() for one, other in pairwise(authors))


async def test_a_platform_counts_the_models_words_apart_from_the_products() -> None:
    """A refusal is no answer, and somebody who floods gets many."""
    platform, person = Platform(), Person(id=7)
    place = platform.said(person, "hello").place
    await platform.send(Outbound(id=1, place=place, text=load.ANSWER))
    await platform.send(Outbound(id=2, place=place, text="That is faster than I can listen."))
    await platform.send(Outbound(id=3, place=place, text="The database is locked; something went wrong."))
    assert platform.answers == {"7": 1}
    assert (platform.shown, platform.failed, platform.locked) == (3, 1, 1)


def test_log_lines_with_the_word_are_counted() -> None:
    """Nobody may be told that a database is locked, nor may it happen unseen."""
    with load.counting("locked") as logged:
        logging.getLogger("memory").warning("database is %s", "locked")
        logging.getLogger("memory").warning("all is well")
    logging.getLogger("memory").warning("locked after the count")
    assert logged.count == 1


@each_row(
    ("figures", "misses"),
    [
        ({"base_p95_ms": 100.0, "load_p95_ms": 150.0}, 0),
        ({"base_p95_ms": 100.0, "load_p95_ms": 151.0}, 1),
        ({"base_p95_ms": 10.0, "load_p95_ms": 30.0}, 0),
        ({"new_s": 3.1, "new_worst_s": 3.1}, 2),
        ({"flood_answers": 18, "flood_most": 17.0}, 1),
        ({"locked_logs": 1, "locked_answers": 0, "failed_answers": 0}, 1),
        ({"log_mb": 16.5}, 1),
        ({"files_before": 20, "files_after": 30, "tasks_before": 5, "tasks_after": 6}, 1),
    ],
)
def test_figures_beyond_a_gate_miss_it(figures: dict[str, float], misses: int) -> None:
    assert len(load.missed("any", figures)) == misses


def test_the_model_gives_no_memories_where_json_is_asked_for(address: str) -> None:
    """An answer that can't be read would be asked for again, and load the machine with something else."""
    body = json.dumps({"model": "after-0", "response_format": {"type": "json_object"}, "messages": []}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/chat/completions", body)) as response:
        events = response.read().decode().split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events if event.startswith("data: {")]
    said = "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])
    assert said == load.NOTHING
