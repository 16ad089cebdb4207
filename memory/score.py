"""The parts of a score: the one table that the search fills, and that `/why` and the page read.

Invariant: a score is the sum of its summands times its factors. A part that is not in this table does not type-check in
the search, and is left out when it stands in a row that another version has stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

Summand: TypeAlias = Literal["words", "late", "vectors", "sitting", "speaker", "named", "date"]
Factor: TypeAlias = Literal[
    "recency", "importance", "strength", "topic", "event", "archived", "agent", "outdated", "repeated"
]
ScorePart: TypeAlias = Summand | Factor
SUMMANDS: Final[tuple[Summand, ...]] = get_args(Summand)
FACTORS: Final[tuple[Factor, ...]] = get_args(Factor)


def known_parts(stored: Mapping[str, object]) -> dict[ScorePart, float]:
    """Returns the parts of a stored score that are in the table, in its order."""
    numbers = {name: part for name in (*SUMMANDS, *FACTORS) if isinstance(part := stored.get(name), int | float)}
    return {name: float(part) for name, part in numbers.items()}
