"""How rows are put together into the questions of night jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.jobs.asking import portions


@given(st.lists(st.text(max_size=300), max_size=60), st.integers(0, 600), st.integers(1, 20))
def test_every_item_stands_in_one_portion_in_its_turn(lines: list[str], size: int, most: int) -> None:
    """None is left out, shown twice or out of order, and no portion is empty or larger than it may be."""
    found = list(portions(enumerate(lines), lambda item: item[1], size=size, most=most))
    assert [item for portion in found for item in portion] == list(enumerate(lines))
    for portion in found:
        assert 1 <= len(portion) <= most
        assert len(portion) == 1 or sum(len(line.encode()) for _, line in portion) <= size


def test_short_lines_fill_a_portion_to_its_number_and_a_long_one_stands_alone() -> None:
    """A portion is cut where the next line has no room, not earlier; the longest line is asked about all the same."""
    assert [len(portion) for portion in portions(["ran"] * 90, str, size=6_000, most=40)] == [40, 40, 10]
    assert [len(portion) for portion in portions(["ran", "跑" * 2_048, "ran"], str, size=6_000, most=40)] == [1, 1, 1]
