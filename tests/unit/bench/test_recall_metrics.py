"""How evidence recall is counted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.convert import Asked, Dataset
from bench.recall import difference, figures, floor, mark, named, usable
from memory.recall.search import Hit
from memory.store.history import Message
from memory.store.passages import Passage

IDS = st.sampled_from([f"D1:{n}" for n in range(30)])


def test_any_all_and_share_are_counted_at_each_k() -> None:
    """The three say different things where an answer stands in several messages."""
    scored = mark(["a", "x", "y", "b", "z", "c"], frozenset("abc"), "1", (1, 5, 10))
    assert scored.any == {1: True, 5: True, 10: True}
    assert scored.all == {1: False, 5: False, 10: True}
    assert scored.frac == {1: pytest.approx(1 / 3), 5: pytest.approx(2 / 3), 10: 1.0}


def test_a_message_named_twice_takes_one_place() -> None:
    """Else a memory beside its own message would push others behind k."""
    assert mark(["a", "a", "b"], frozenset("b"), "1", (2,)).any == {2: True}


def test_questions_about_what_was_never_said_are_counted_apart() -> None:
    """LoCoMo's fifth category would blur the figure that others publish."""
    scored = [mark(["a"], frozenset("a"), "4", (5,)), mark(["b"], frozenset("a"), "5", (5,))]
    result = figures(scored, (5,))
    assert (result["n"], result["any@5"]) == (1, 1.0)
    groups = result["by_category"]
    assert isinstance(groups, dict) and groups["5"]["any@5"] == 0.0


def test_categories_with_names_all_count() -> None:
    scored = [mark(["a"], frozenset("a"), "06_noisy", (5,)), mark(["b"], frozenset("a"), "none", (5,))]
    assert figures(scored, (5,))["any@5"] == 0.5


def test_the_interval_is_that_of_a_mean() -> None:
    """Half right of 100: 1.96 times .5 by 10."""
    scored = [mark(["a"] if n % 2 else [], frozenset("a"), "1", (10,)) for n in range(100)]
    assert figures(scored, (10,))["frac@10±"] == pytest.approx(0.098)


def test_differences_are_those_of_the_same_questions() -> None:
    """Two that lose different questions are not alike, though their means are."""
    right, wrong = mark(["a"], frozenset("a"), "1", (5,)), mark([], frozenset("a"), "1", (5,))
    apart = mark([], frozenset("a"), "5", (5,))
    assert difference([right, wrong, apart], [right, wrong, right], (5,))["frac@5±"] == 0
    crossed = difference([right, wrong], [wrong, right], (5,))
    assert (crossed["n"], crossed["frac@5"], crossed["frac@5±"]) == (2, 0, pytest.approx(1.96 / 2**0.5, abs=1e-4))


def test_k_stays_below_the_smallest_chat() -> None:
    """Of eight messages ten would always hold the answer."""
    assert usable((5, 10, 20), 8) == (5,)
    assert usable((5, 10, 20), 20) == (5, 10)


def test_a_passage_names_its_own_message_and_not_its_neighbours() -> None:
    """Neighbours are shown with it, but counting them would make k mean something else."""
    passage = Passage(message=message(2), before=message(1))
    assert named([Hit(score=1.0, passage=passage), Hit(score=0.5, passage=passage)], {}) == ["D1:2"]


def test_the_floor_searches_each_chat_alone_by_stemmed_words() -> None:
    """It is what anybody would build first."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    rows = [
        {"id": "1", "chat": "a", "author_name": "Ada", "text": "I was painting a sunrise"},
        {"id": "2", "chat": "a", "author_name": "Ada", "text": "Good morning"},
        {"id": "3", "chat": "b", "author_name": "Ben", "text": "He paints"},
    ]
    asked = Asked(chat="a", asker="x", at=at, text="Who paints?", gold=frozenset("1"), category="1")
    dataset = Dataset(name="s", granularity="turn", rows=tuple(dict(row) for row in rows), asked=(asked,))
    assert floor(dataset)(asked, 5) == ["1"]


@given(st.lists(IDS, max_size=40), st.frozensets(IDS, min_size=1, max_size=6))
def test_more_places_never_find_less(found: list[str], gold: frozenset[str]) -> None:
    """And all implies any, and both follow from the share."""
    scored = mark(found, gold, "1", (5, 10, 20))
    assert scored.frac[5] <= scored.frac[10] <= scored.frac[20] <= 1
    for k in (5, 10, 20):
        assert scored.any[k] == (scored.frac[k] > 0) and scored.all[k] == (scored.frac[k] == 1)


def message(n: int) -> Message:
    return Message(
        id=n,
        session_id=1,
        turn_id=None,
        role="user",
        author_id=1,
        author_name="Ada",
        platform_ref=f"D1:{n}",
        text="words",
        tokens=1,
        learn=True,
        recall=True,
        sitting=1,
        nth=n,
        said_at=n,
        tool_calls=None,
        tool_call_id=None,
    )
