"""Writes models in the format of ONNX, and reads tensors from a file, so that none of its own packages is needed.

Source: onnx.proto of the ONNX project; the numbers below are those of its fields. It is written as protobuf: each field
is a number with its kind, then a number, four bytes, or bytes with their length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The domain of the operators that only ONNX Runtime has.
RUNTIME: Final = "com.microsoft"
#: The numbers of the types of tensors and attributes.
_TYPES: Final = {np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
_FLOAT, _INT = 1, 2
#: The version of the format, and those of the operators.
_FORMAT, _OPERATORS = 8, {"": 17, RUNTIME: 1}


def field(number: int, body: bytes | str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", **attributes: int | float
) -> bytes:
    parts = [*(field(1, name) for name in inputs), *(field(2, name) for name in outputs), field(4, operator)]
    parts += [field(5, field(1, name) + _value(value)) for name, value in attributes.items()]
    return field(1, b"".join(parts) + field(7, domain))


def constant(name: str, values: NDArray[np.float32] | NDArray[np.uint8] | NDArray[np.int64]) -> bytes:
    shape = b"".join(_number(1, size) for size in values.shape)
    return field(5, shape + _number(2, _TYPES[values.dtype]) + field(8, name) + field(9, values.tobytes()))


def model(parts: Sequence[bytes], *, takes: str, gives: str, shape: Sequence[int | str]) -> bytes:
    sizes = b"".join(field(1, field(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    floats = field(2, field(1, _number(1, _FLOAT) + field(2, sizes)))
    graph = [*parts, field(2, "graph"), field(11, field(1, takes) + floats), field(12, field(1, gives) + floats)]
    operators = [field(8, field(1, domain) + _number(2, version)) for domain, version in _OPERATORS.items()]
    return _number(1, _FORMAT) + field(7, b"".join(graph)) + b"".join(operators)


def tensors(content: memoryview) -> dict[str, NDArray[Any]]:
    """Returns the constants of a model by name, as parts of its file. Leaves out those whose values stand elsewhere."""
    kinds: dict[int, Any] = {number: kind for kind, number in _TYPES.items()}
    constants = {}
    (graph,) = (value for number, value in _fields(content) if number == 7)
    for number, tensor in _fields(graph):
        if number != 5:
            continue
        parts = list(_fields(tensor))
        values = dict(parts)
        if 9 in values and values[2] in kinds:
            shape = [size for part, size in parts if part == 1]
            constants[bytes(values[8]).decode()] = np.frombuffer(values[9], kinds[values[2]]).reshape(shape)
    return constants


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(content):
        key, at = _varint_at(content, at)
        if key % 8 == 0:
            value, at = _varint_at(content, at)
            yield key >> 3, value
            continue
        size, at = (4, at) if key % 8 == 5 else _varint_at(content, at)
        yield key >> 3, content[at : at + size]
        at += size


def _varint_at(content: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            return value, at


def _value(value: int | float) -> bytes:
    if isinstance(value, int):
        return _number(3, value) + _number(20, _INT)
    return _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT)


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    value %= 2**64  # as negative numbers are written
    low = bytearray()
    while value > 127:
        low.append(value % 128 + 128)
        value //= 128
    return bytes([*low, value])
