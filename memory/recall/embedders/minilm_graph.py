"""Rewires the file of MiniLM so that its table of words stays in 8 bits, on disk, and only rows in use are unfolded.

ONNX Runtime unfolds at the start whatever is constant, so the table of 30,522 words would take 47 MB as floats. Here
the rows for the words of a text are looked up first and unfolded then. That is the same product of the same numbers, so
the vectors are equal to the last bit, and it takes no longer.

Invariant: nodes are replaced by nodes of as many bytes, so that no length around them in the file changes.
"""

from __future__ import annotations

from typing import Final

#: The 8-bit table in the file: its name, its first byte, its shape.
TABLE: Final = "inner.embeddings.word_embeddings.weight_q"
TABLE_AT: Final = 161_538
SHAPE: Final = (30_522, 384)
_FLOATS: Final = TABLE.removesuffix("_q")
#: Attributes: the type of a Cast, the axis of a Gather.
_TO_FLOAT: Final = b"*\t\n\x02to\x18\x01\xa0\x01\x02"
_BY_ROW: Final = b"*\x0b\n\x04axis\x18\x00\xa0\x01\x02"


def rewired(model: bytes) -> bytes:
    """Returns the model with the rows of the table looked up before they are unfolded."""
    cast = _node("Cast", (TABLE,), f"{_FLOATS}_f", f"{_FLOATS}_cast", _TO_FLOAT)
    scale = _node("Mul", (f"{_FLOATS}_f", f"{_FLOATS}_scale"), _FLOATS, f"{_FLOATS}_mul")
    look_up = _node("Gather", (_FLOATS, "input_ids"), "embedding", "node_embedding", _BY_ROW)
    # The names of the new nodes fill up the bytes.
    rows = _node("Gather", (TABLE, "input_ids"), "rows_q", "_" * 77)
    row_scales = _node("Gather", (f"{_FLOATS}_scale", "input_ids"), "row_scales", "_" * 101)
    unfolded = _node("Cast", ("rows_q",), "rows_f", "", _TO_FLOAT)
    unfolded += _node("Mul", ("rows_f", "row_scales"), "embedding", "_" * 25)
    return model.replace(cast, rows).replace(scale, row_scales).replace(look_up, unfolded)


def _node(op: str, inputs: tuple[str, ...], output: str, name: str, attribute: bytes = b"") -> bytes:
    """Returns a node as a field of its graph, as protobuf writes it."""
    fields = [*((0x0A, each) for each in inputs), (0x12, output), (0x1A, name), (0x22, op)]
    return _field(0x0A, b"".join(_field(tag, text.encode()) for tag, text in fields) + attribute)


def _field(tag: int, body: bytes) -> bytes:
    size = len(body)
    return bytes([tag, size] if size < 128 else [tag, size % 128 + 128, size // 128]) + body
