"""Finds secrets in a text that no rule knows, as learned from texts of several authors.

`likely.json` holds the learned decision trees, each a row of conditions and the worth of its ends;
`bench/redact_fit.py` makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory.text.secrets.candidates import ANNOUNCE, Description, candidates, description, pieces
from memory.text.secrets.folding import BARRIER

_Tree: TypeAlias = list[Any] | float
#: Conditions on the way from a tree's root to each of its ends.
_DEPTH: Final = 3
#: A day. Plans and lists are full of them; one that is a secret stands behind a word that announces it.
_DAY: Final = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


class SecretTrees(NamedTuple):
    """The trees as tables, a row for each; the two conditions behind the nth are at 2n + 1 and 2n + 2."""

    names: tuple[str, ...]
    base: float
    measures: NDArray[np.intp]
    limits: NDArray[np.float64]
    ends: NDArray[np.float64]


def likely(text: str) -> list[tuple[int, int, str]]:
    some = pieces(text)
    # Words beside a secret that was found already are talk about it.
    marked = BARRIER in text
    found = [
        one
        for one in candidates(text, some)
        if (value := text[one.start : one.end])
        and _DAY.fullmatch(value) is None
        and not (marked and not any(map(str.isdigit, value)))
    ]
    least, learned = _learned()
    much = worths([description(text, some, one) for one in found], learned)
    return [
        (one.start, one.end, "code" if text[one.start : one.end].strip("#*- ").isdigit() else "password")
        for one, worth in zip(found, much, strict=True)
        if worth > least
    ]


def worths(described: Sequence[Description], learned: SecretTrees) -> list[float]:
    asked = [nth for nth, one in enumerate(described) if not _is_talk(one)]
    found = [-inf] * len(described)
    if not asked:
        return found
    values = np.array([[described[nth].get(name, 0.0) for name in learned.names] for nth in asked])
    rows, trees = np.arange(len(asked))[:, None], np.arange(len(learned.ends))
    node = np.zeros((len(asked), len(learned.ends)), dtype=np.intp)
    for _ in range(_DEPTH):
        above = values[rows, learned.measures[trees, node]] > learned.limits[trees, node]
        node = 2 * node + 1 + above
    totals = learned.base + learned.ends[trees, node - (2**_DEPTH - 1)].sum(axis=1)
    for nth, total in zip(asked, totals.tolist(), strict=True):
        found[nth] = total
    return found


def _is_talk(described: Description) -> bool:
    # Several words are a passphrase only behind a word for one: "Answer to: I like tea" is talk.
    if described.get("cut_clause") and not described["announced_before"]:
        return True
    # Rules decide which answers are secrets.
    return bool(described.get("around_answer")) and not any(described.get(f"around_{one}") for one in ANNOUNCE)


def tables(learned: dict[str, Any]) -> SecretTrees:
    """Returns the content of a file like `likely.json` in the form that `worths` reads."""
    conditions, ends = zip(*(_levels(tree) for tree in learned["trees"]), strict=True)
    return SecretTrees(
        names=tuple(learned["names"]),
        base=learned["base"],
        measures=np.array([[measure for measure, _ in some] for some in conditions], dtype=np.intp),
        limits=np.array([[limit for _, limit in some] for some in conditions]),
        ends=np.array(ends),
    )


def _levels(tree: _Tree) -> tuple[list[tuple[int, float]], list[float]]:
    """Returns a tree's conditions and ends, level by level. Branches that end early get idle conditions."""
    conditions: list[tuple[int, float]] = []
    level: list[Any] = [tree]
    for _ in range(_DEPTH):
        whole = [one if isinstance(one, list) else [0, inf, one, one] for one in level]
        conditions += [(one[0], one[1]) for one in whole]
        level = [behind for one in whole for behind in one[2:]]
    return conditions, [float(end) for end in level]


@cache
def _learned() -> tuple[float, SecretTrees]:
    learned: dict[str, Any] = json.loads(_TABLE.read_text("utf-8"))
    return learned["least"], tables(learned)


_TABLE: Final = resources.files("memory.text.secrets") / "likely.json"
