"""Holds what is learned without a model to its quality on lines that were labelled without sight of the templates.

When one fails, mend the template; change a label only when it misreads its line.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from memory.keys import KEY_CATEGORIES, normalise_value
from memory.learn.offline.patterns import extract

DATA: Final = Path(__file__).parents[2] / "data"
TODAY: Final = date(2026, 11, 21)


def lines(name: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = yaml.safe_load((DATA / f"{name}.yaml").read_text("utf-8"))
    return read


def is_told(key: str, value: str, facts: list[dict[str, Any]]) -> bool:
    """Returns whether a labelled fact of this key says the value, in more or fewer words."""
    said = normalise_value(value)
    wanted = [
        normalise_value(each) for one in facts if one["key"] == key for each in (one["value"], *one.get("accept", ()))
    ]
    return any(said in each or each in said for each in wanted)


@pytest.mark.parametrize(
    ("name", "recall"), [("disclosures_en", 0.45), ("disclosures_zh", 0.5), ("talk_en", 0.3), ("talk_zh", 0.3)]
)
def test_of_a_hundred_facts_at_most_two_are_wrong(name: str, recall: float) -> None:
    """A wrong memory costs more trust than a missing one, which is still found among the messages."""
    wrong, found, labelled = [], 0, 0
    for line in lines(name):
        facts = [(one.key, one.value) for one in extract(line["text"], today=TODAY)]
        wrong += [(line["text"], *fact) for fact in facts if not is_told(*fact, line["facts"])]
        found += sum(any(is_told(*fact, [one]) for fact in facts) for one in line["facts"])
        labelled += len(line["facts"])
    assert len(wrong) <= max(1, 0.02 * found), wrong
    assert found >= recall * labelled, f"{found} of {labelled}"


@pytest.mark.parametrize("name", ["negatives", "talk_negatives"])
def test_lines_that_only_look_like_statements_state_nothing(name: str) -> None:
    """Questions, quotations, jokes and other people's lives are most of a chat."""
    wrong = [(line["text"], one.key, one.value) for line in lines(name) for one in extract(line["text"], today=TODAY)]
    assert not wrong


@pytest.mark.parametrize("name", ["disclosures_en", "disclosures_zh", "talk_en", "talk_zh"])
def test_every_label_has_a_known_key(name: str) -> None:
    keys = {one["key"] for line in lines(name) for one in line["facts"]}
    assert {key for key in keys if key not in KEY_CATEGORIES and not key.startswith("favourite-")} == set()
