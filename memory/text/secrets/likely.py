"""Tells which pieces of a text are secrets though no rule knows them: as learned from texts of several authors.

What was learned stands in `likely.json` as decision trees, each a row of conditions and the worth of its ends;
`bench/redact_fit.py` makes it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from math import inf
from typing import Any, Final, TypeAlias

from memory.text.secrets.candidates import ANNOUNCE, Description, candidates, description, pieces
from memory.text.secrets.folding import BARRIER

_Tree: TypeAlias = list[Any]
#: A day. Plans and lists are full of them; one that is a secret stands behind a word that announces it.
_DAY: Final = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


def likely(text: str) -> list[tuple[int, int, str]]:
    """Start, end and label of what is a secret in all likelihood, beside what rules find."""
    some = pieces(text)
    least = _learned()["least"]
    # Beside a secret that was found already, words are what is said of it.
    marked = BARRIER in text
    return [
        (one.start, one.end, "code" if value.strip("#*- ").isdigit() else "password")
        for one in candidates(text, some)
        if (value := text[one.start : one.end])
        and _DAY.fullmatch(value) is None
        and not (marked and not any(map(str.isdigit, value)))
        and worth(description(text, some, one), _learned()) > least
    ]


def worth(described: Description, learned: dict[str, Any]) -> float:
    """Returns how much speaks for a secret; above 0 more than against it."""
    # Several words are a passphrase only behind a word for one: "Answer to: I like tea" is talk.
    if described.get("cut_clause") and not described["announced_before"]:
        return -inf
    # Which answers are secrets is told by rules.
    if described.get("around_answer") and not any(described.get(f"around_{one}") for one in ANNOUNCE):
        return -inf
    values = [described.get(name, 0) for name in learned["names"]]
    total: float = learned["base"]
    for tree in learned["trees"]:
        node = tree
        while isinstance(node, list):
            node = node[2] if values[node[0]] <= node[1] else node[3]
        total += node
    return total


@cache
def _learned() -> dict[str, Any]:
    learned: dict[str, Any] = json.loads(_TABLE.read_text("utf-8"))
    return learned


_TABLE: Final = resources.files("memory.text.secrets") / "likely.json"
