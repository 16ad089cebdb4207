"""The figures of follow-ups on our own lines: nothing is asked falsely, and most plans are asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.followups import figures, played

LINES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "followups.jsonl").read_text("utf-8").splitlines()
]


async def test_nothing_is_asked_falsely_and_most_plans_are_asked_about() -> None:
    found = figures(LINES, await played(LINES))["all"]
    assert found["false"] == 0
    assert found["right"] >= 48
    assert found["right"] + found["missed"] == found["plans"] == 57


def test_each_fault_is_counted() -> None:
    lines: list[dict[str, Any]] = [
        {"id": "a", "lang": "en", "says": [], "ask": "2026-11-25"},
        {"id": "b", "lang": "en", "says": [], "ask": "2026-11-25"},
        {"id": "c", "lang": "en", "says": [], "ask": None},
        {"id": "d", "lang": "en", "says": [], "ask": "2026-11-25"},
    ]
    asked = {"a": ["2026-11-25"], "b": ["2026-11-26"], "c": ["2026-11-25"]}
    assert figures(lines, asked)["en"] == {"plans": 3, "right": 1, "missed": 1, "false": 2}
