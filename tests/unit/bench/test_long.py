"""The long conversation in short: what its bench holds of the real one must hold of a shorter one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import long


@pytest.mark.campaign(long=True)
async def test_what_was_told_at_the_beginning_is_at_hand_at_the_end_of_a_long_talk(tmp_path: Path) -> None:
    """In a window of 4,096 tokens, with no request too long and no compaction right after another."""
    figures = await long.played(tmp_path, 4_096, 160, 10)
    assert figures["found"] >= 0.95 and figures["over_window"] == 0 and figures["without_answer"] == 0
    assert figures["compactions"] >= 10 and figures["again"] == 0
    assert figures["shared_before_tail"] >= 0.9


def test_a_fact_counts_as_found_only_where_something_else_than_the_question_tells_it() -> None:
    (fact,) = long.planted(1)
    assert not long._holds(f'{{"content": "{fact.asked} {fact.parts[2]}\\nhello"}}', fact)
    assert long._holds(f'{{"content": "- {fact.told} (told today)\\n{fact.asked}"}}', fact)


def test_the_worst_window_counts() -> None:
    """One good window must not hide a bad one."""
    good = {"found": 1.0, "over_window": 0, "shared_prefix": 0.9, "again": 0}
    bad = {"found": 0.9, "over_window": 2, "shared_prefix": 0.7, "again": 1}
    assert long.worst([good, bad]) == bad
