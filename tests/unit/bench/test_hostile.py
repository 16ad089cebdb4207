"""The short form of `bench.hostile` on the code of this checkout, and what it makes of its figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.hostile.__main__ import Tried, chosen, document
from bench.hostile.inputs import INPUTS

ROOT = Path(__file__).parents[3]


def tried(**more: Any) -> Tried:
    figures = {"readyz_seconds": 0.01, "grown_mb": 1.0}
    given: dict[str, Any] = {
        "input": INPUTS[0], "figures": figures, "statuses": {200: 3}, "broken": [], "other_seconds": 1.5, "seconds": 3.0,
        "load": 1.0,
    }  # fmt: skip
    return Tried(**{**given, **more})


def test_there_are_sixty_inputs_by_twelve_ways() -> None:
    assert len(INPUTS) >= 60
    assert len({one.way for one in INPUTS}) >= 12
    assert len({(one.way, one.name) for one in INPUTS}) == len(INPUTS)


@pytest.mark.parametrize(
    ("more", "missed"),
    [
        ({}, []),
        ({"figures": {"readyz_seconds": 0.3, "grown_mb": 1}}, ["readyz"]),
        ({"figures": {"readyz_seconds": 0.1, "grown_mb": 65}}, ["memory"]),
        ({"statuses": {500: 1}}, ["5xx"]), ({"statuses": {503: 9, 413: 2}}, []),
        ({"broken": ["http.crashed"]}, ["log"]), ({"other_seconds": None}, ["others"]), ({"died": True}, ["died"]),
    ],
)  # fmt: skip
def test_a_missed_aim_is_named(more: dict[str, Any], missed: list[str]) -> None:
    assert tried(**more).missed() == missed
    assert document([tried(**more)], INPUTS[:2])["missed"] == len(missed)


def test_what_was_left_out_is_named() -> None:
    assert document([tried()], INPUTS[:2])["not_tried"] == [f"{INPUTS[1].way}: {INPUTS[1].name}"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no input"):
        chosen(["nonsense"], short=False)


@pytest.mark.campaign(long=True)
def test_inputs_reach_the_running_bot_and_are_measured() -> None:
    """Two inputs on a real bot; the aims are for a quiet machine, so nothing is asserted of time."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.hostile", "--json", "--only", "heads that are none", "wrong codes, five"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert len(told["tried"]) == 2, done.stderr
    for one in told["tried"]:
        assert one["readyz_asked"] > 0
        assert not one["died"]
        assert one["other_seconds"] is not None
    codes, heads = told["tried"]
    assert codes["statuses"] == {"403": 5}
    assert heads["statuses"].get("400", 0) > 0
