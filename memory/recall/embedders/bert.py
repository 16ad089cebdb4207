"""Runs models of BERT's kind on ONNX Runtime, from weights in 4 or 8 bits, which are never unfolded.

Invariants: it runs in the worker process only (`worker.py`), because native code reads the texts; it uses only the
thread it is called on, because a second one on a busy machine slows it a hundredfold. Each block of 32 activations has
8 bits and a scale of its own; at 4 bits that is what the weights were made for.

Source: Devlin et al., "BERT" (2018).
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.onnx import RUNTIME, constant, model, node

Floats = NDArray[np.float32]

#: The weights, and the activations, that share a scale.
BLOCK: Final = 32
#: The heads of attention, and the size of the states.
_HEADS: Final = 12
SIZE: Final = 384
#: Added to a variance before it divides.
_EPSILON: Final = 1e-12
#: The mode of ONNX Runtime in which activations have 8 bits.
_IN_8_BITS: Final = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """ModelWeights in blocks, (outputs, blocks, bytes of a block), and the scale of each block, (outputs * blocks).

    A weight is stored without a sign: half of its range stands for 0.
    """

    weights: NDArray[np.uint8]
    scales: Floats


class ModelWeights(Protocol):
    """The weights of a model by name.

    Tables are q.w, k.w, v.w, ao.w (behind the attention), fi.w and fo.w (into the wide layer and back) of each layer,
    as in "l0.q.w"; their biases end with b. Factors and terms of normal forms are "emb.ln", and aln and oln of each
    layer, with .w and .b.
    """

    @property
    def layers(self) -> int: ...

    def values(self, name: str) -> Floats: ...

    def table(self, name: str) -> Blocks: ...


class Bert:
    """A model that is loaded. Raises `ImportError` without ONNX Runtime."""

    def __init__(self, weights: ModelWeights) -> None:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Otherwise the memory for the largest text ever seen would be kept for good.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.log_severity_level = 3
        content = _model(weights)
        session: Any = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        session._model_bytes = None  # all weights, which it keeps for a change of providers
        self._session = session

    def states(self, rows: Floats) -> Floats:
        (states,) = self._session.run(None, {"rows": rows[np.newaxis]})
        result: Floats = states[0]
        return result


def mapped(path: Path, sha256: str) -> mmap.mmap | None:
    """Returns the bytes of a file, which are read where they are used; None if the file has another hash."""
    with path.open("rb") as file:
        known = hashlib.file_digest(file, "sha256").hexdigest() == sha256
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if known else None


def put_down(content: mmap.mmap) -> None:
    """Gives back the memory in which a file's bytes were read; what is used again is read again."""
    if hasattr(mmap, "MADV_DONTNEED"):  # Windows has none
        content.madvise(mmap.MADV_DONTNEED)


def _model(weights: ModelWeights) -> bytes:
    parts = [constant("sizes", np.full(3, SIZE, dtype=np.int64)), *_normal(weights, "start", "emb.ln", "rows")]
    states = "start"
    for n in range(weights.layers):
        parts += _layer(weights, f"l{n}", states)
        states = f"l{n}.out"
    return model(parts, takes="rows", gives=states, shape=(1, "tokens", SIZE))


def _layer(weights: ModelWeights, name: str, states: str) -> Iterator[bytes]:
    yield from _product(weights, f"{name}.qkv", [f"{name}.{part}" for part in "qkv"], states)
    three = [f"{name}.query", f"{name}.key", f"{name}.value"]
    yield node("Split", [f"{name}.qkv", "sizes"], three, axis=2)
    yield node("MultiHeadAttention", three, [f"{name}.heads"], domain=RUNTIME, num_heads=_HEADS)
    yield from _product(weights, f"{name}.looked", [f"{name}.ao"], f"{name}.heads")
    yield from _normal(weights, f"{name}.middle", f"{name}.aln", states, f"{name}.looked")
    yield from _product(weights, f"{name}.wide", [f"{name}.fi"], f"{name}.middle")
    yield node("Gelu", [f"{name}.wide"], [f"{name}.bent"], domain=RUNTIME)
    yield from _product(weights, f"{name}.narrow", [f"{name}.fo"], f"{name}.bent")
    yield from _normal(weights, f"{name}.out", f"{name}.oln", f"{name}.middle", f"{name}.narrow")


def _product(weights: ModelWeights, result: str, names: Sequence[str], states: str) -> Iterator[bytes]:
    """Yields the product of the states with tables side by side, and its constants."""
    tables = [weights.table(f"{name}.w") for name in names]
    blocks = np.concatenate([table.weights for table in tables])
    outputs, count, size = blocks.shape
    yield constant(f"{result}.w", blocks)
    yield constant(f"{result}.s", np.concatenate([table.scales for table in tables]))
    yield constant(f"{result}.b", np.concatenate([weights.values(f"{name}.b") for name in names]))
    yield node(
        "MatMulNBits", [states, f"{result}.w", f"{result}.s", "", "", f"{result}.b"], [result], domain=RUNTIME,
        K=count * BLOCK, N=outputs, bits=8 * size // BLOCK, block_size=BLOCK, accuracy_level=_IN_8_BITS,
    )  # fmt: skip


def _normal(weights: ModelWeights, result: str, name: str, *states: str) -> Iterator[bytes]:
    """Yields the normal form of states, or of the sum of two, and its constants."""
    for part in ("w", "b"):
        yield constant(f"{result}.{part}", weights.values(f"{name}.{part}"))
    inputs = [*states, f"{result}.w", f"{result}.b"]
    if len(states) == 1:
        yield node("LayerNormalization", inputs, [result], axis=-1, epsilon=_EPSILON)
    else:
        yield node("SkipLayerNormalization", inputs, [result], domain=RUNTIME, epsilon=_EPSILON)
