"""How events are put together into questions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.jobs.compress import EVENT_BYTES, EVENTS, batches
from memory.keys import VALUE_LIMIT
from memory.store.memories import Memory
from tests.kit.fakes import NOON


def event(n: int, value: str) -> Memory:
    return Memory(
        id=n, short_id=f"m_{n}", kind="event", owner_id=1, author_id=11, subject_id=11, subject_name="Ada", subject="",
        agent_id=None, category="happening", topic="", key="event", value=value, flags=(), importance=5,
        confidence=0.8, strength=1, origin="extracted", learned_at=NOON, local_date="2026-11-21", valid_from=NOON,
        valid_until=None, superseded_by=None, access_count=0, reinforced_count=0, last_reinforced_at=NOON,
        pinned=False, confirmed=False, archived_at=None,
    )  # fmt: skip


@given(st.lists(st.text(min_size=1, max_size=VALUE_LIMIT), max_size=120))
def test_every_event_stands_in_one_question_in_its_turn(values: list[str]) -> None:
    """None is left out, shown twice or out of order, and no question is empty or longer than it may be."""
    events = [event(n, value) for n, value in enumerate(values)]
    found = batches(events, {11: "Ada"})
    assert [one for batch in found for one in batch] == events
    for batch in found:
        assert 1 <= len(batch) <= EVENTS
        size = sum(len(one.value.encode()) for one in batch)
        assert len(batch) == 1 or size <= EVENT_BYTES


def test_short_events_fill_a_question_to_its_number() -> None:
    """A batch is cut where the next event has no room, not earlier."""
    assert [len(batch) for batch in batches([event(n, "ran") for n in range(90)], {})] == [40, 40, 10]


def test_the_longest_event_is_asked_about_all_the_same() -> None:
    """2,048 Chinese characters are more than a question holds beside anything else."""
    long = event(2, "跑" * VALUE_LIMIT)
    assert [len(batch) for batch in batches([event(1, "ran"), long, event(3, "ran")], {})] == [1, 1, 1]
