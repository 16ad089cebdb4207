"""Guesses from a sentence's vector that a message asks to forget something, or says that something is over.

Invariants: a guess is made only if the embedder whose vectors `intents.json` was learned from serves, and only if no
pattern has read the message. It decides nothing by itself: before anything is forgotten the person is asked, and ended
facts are said back. `bench/intents_fit.py` makes the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from memory.recall.search import Search

Intent: TypeAlias = Literal["forget", "end"]
INTENTS: Final[tuple[Intent, ...]] = get_args(Intent)
#: Longest message guessed at, in characters: the training messages are short, and so are requests.
_LONGEST: Final = 160
_EDGES: Final = " .!?。！？…~～,，;；:"
_ADDRESS: Final = re.compile(r"://|```|\[secret:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The logistic regression over the vectors of `model`: for each intent a row of `weights` and its `bias`.

    `least` is the probability below which nothing is guessed. `asking` fits words that ask to forget and name nothing.
    """

    model: str
    least: float
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    asking: re.Pattern[str]

    def probabilities(self, vector: NDArray[np.float32]) -> Mapping[Intent, float]:
        """Returns the probability of each intent; the rest up to one is that of no intent."""
        worth = np.exp(np.minimum(self.weights @ vector + self.bias, 50))
        return dict(zip(INTENTS, (worth / (1 + worth.sum())).tolist(), strict=True))

    def intent(self, vector: NDArray[np.float32]) -> Intent | None:
        return next((one for one, share in self.probabilities(vector).items() if share >= self.least), None)


async def guessed(text: str, search: Search) -> Intent | None:
    """Returns the most likely intent of a message; None if it has none of these, or if no vectors are made."""
    text = " ".join(text.split())
    if not text or len(text) > _LONGEST or _ADDRESS.search(text) is not None:
        return None
    vector = await search.vector(text, model=learned().model)
    return None if vector is None else learned().intent(vector)


def named(text: str) -> str:
    """Returns a guessed request to forget without the words that ask; empty if nothing else is left."""
    # A colon would make a word the name of a filter.
    left = learned().asking.sub(" ", text.replace("’", "'").replace(":", " ").replace("：", " "))
    return " ".join(word for word in (one.strip(_EDGES) for one in left.split()) if word)


@cache
def learned() -> Learned:
    return read(json.loads((resources.files("memory.learn.offline") / "intents.json").read_text("utf-8")))


def read(data: Mapping[str, Any]) -> Learned:
    return Learned(
        model=data["model"],
        least=data["least"],
        weights=np.array([data["weights"][one] for one in INTENTS], dtype=np.float32),
        bias=np.array([data["bias"][one] for one in INTENTS], dtype=np.float32),
        asking=re.compile(data["asking"], re.IGNORECASE),
    )
