"""Embeddings from a server: OpenAI's API, which many servers speak, and Ollama's own.

Invariants: every failure is raised as an `EmbeddingFault` that names the host and the model and never the key; a wait
asked for by a vendor is never cut short; a question gets one short try, because a person waits for the answer.

Source: OpenAI's API reference, "Create embeddings"; Ollama's API documentation, "Generate embeddings" (`/api/embed`).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import httpx
import numpy as np
from numpy.typing import NDArray
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from memory.recall.embed import (
    CHUNK_CHARS,
    EmbedderUnavailable,
    EmbeddingFailed,
    TextRefused,
    chunks,
    encodable,
    normalised,
)

Api: TypeAlias = Literal["openai", "ollama"]

#: Seconds before the second, third and fourth try, each varied by up to a quarter either way.
WAITS = (0.5, 2.0, 8.0)
#: If the server asks for a longer wait, in seconds, the request is given up and made again later.
LONGEST_WAIT = 30.0
#: Seconds a question may take, whatever the timeout of documents: words have found something by then.
QUESTION_TIMEOUT = 2.0
_MOST_QUOTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingServer:
    """One model of one server. `base_url` ends before `/embeddings` or `/api/embed`.

    `seconds` is the timeout of a request, `batch` the number of its texts.
    """

    api: Api
    base_url: str
    model: str
    key: str | None = field(default=None, repr=False)
    seconds: float = 30.0
    batch: int = 64


class Remote:
    """Implements `memory.recall.embed.Embedder` for one model of one server. Make it with `await Remote.open(...)`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        server: EmbeddingServer,
        *,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self._client = client
        self._server = server
        self._url = f"{server.base_url.rstrip('/')}/{'embeddings' if server.api == 'openai' else 'api/embed'}"
        self._headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        self._sleep = sleep
        self._random = random
        self.dimension = 0

    @classmethod
    async def open(
        cls,
        client: httpx.AsyncClient,
        server: EmbeddingServer,
        *,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> Remote:
        """Asks the server for one vector, which also tells the dimension.

        The caller owns and closes `client`; `random` gives numbers in [0, 1). Raises `EmbeddingFailed`, and
        `EmbedderUnavailable` for an invalid address.
        """
        if not _is_address(server.base_url):
            raise EmbedderUnavailable(
                f"embedding.base_url is {server.base_url!r}, which is not an http address. Memory is searched by words "
                "only."
            )
        made = cls(client, server, sleep=sleep, random=random)
        first = await made._requested(["dimension"], server.seconds)
        made.dimension = first.shape[1]
        return made

    @property
    def name(self) -> str:
        return f"{self._server.api} {self._server.model}"

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        return [chunks(encodable(text)) for text in texts]

    async def embed(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """Makes one request for each `batch` texts; the first `CHUNK_CHARS` characters of each text count."""
        read = [encodable(text[:CHUNK_CHARS]) for text in texts]
        if query:
            return self._checked(await self._requested(read, min(QUESTION_TIMEOUT, self._server.seconds)))
        parts = [
            self._checked(await self._retried(read[start : start + self._server.batch]))
            for start in range(0, len(read), self._server.batch)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), dtype=np.float32)

    async def aclose(self) -> None: ...

    async def _retried(self, texts: list[str]) -> NDArray[np.float32]:
        def worth_another_try(error: BaseException) -> bool:
            return isinstance(error, _Passing) and (error.retry_after or 0.0) <= LONGEST_WAIT

        async def attempt() -> NDArray[np.float32]:
            return await self._requested(texts, self._server.seconds)

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=stop_after_attempt(1 + len(WAITS)),
            wait=self._wait,
            retry=retry_if_exception(worth_another_try),
            reraise=True,
        )
        vectors: NDArray[np.float32] = await retrying(attempt)
        return vectors

    def _wait(self, state: RetryCallState) -> float:
        # tenacity asks for a wait after the last try too, before it sees that it has to stop.
        base = WAITS[min(state.attempt_number, len(WAITS)) - 1]
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, EmbeddingFailed) else None
        return max(base * (0.75 + 0.5 * self._random()), asked or 0.0)

    async def _requested(self, texts: list[str], seconds: float) -> NDArray[np.float32]:
        payload: dict[str, Any] = {"model": self._server.model, "input": texts}
        if self._server.api == "openai":
            payload["encoding_format"] = "float"
        try:
            response = await self._client.post(self._url, json=payload, headers=self._headers, timeout=seconds)
        except httpx.TimeoutException as exc:
            raise _Passing(f"{self._told()} did not answer within {seconds:g} s.") from exc
        except httpx.HTTPError as exc:
            raise _Passing(f"{self._told()} can't be reached: {str(exc) or type(exc).__name__}.") from exc
        self._raise_for(response)
        try:
            return self._vectors(response.json(), len(texts))
        except (ValueError, TypeError, KeyError) as exc:
            raise _Passing(f"{self._told()} gave an answer that holds no vectors: {_quoted(response)}") from exc

    def _raise_for(self, response: httpx.Response) -> None:
        status = response.status_code
        if status < 400:
            return
        text = f"{self._told()} answered {status}: {_quoted(response)}"
        if status in (408, 429) or status >= 500:
            raise _Passing(text, retry_after=_retry_after(response))
        if status in (400, 413, 422):
            raise TextRefused(text)
        raise EmbeddingFailed(f"{text} Check base_url, key and model under `embedding` in config.yaml.")

    def _vectors(self, answer: Any, count: int) -> NDArray[np.float32]:
        """Returns the rows in the order asked for. Raises an error if the answer has another shape."""
        if self._server.api == "openai":
            rows = [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
        else:
            rows = answer["embeddings"]
        vectors = np.array(rows, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise ValueError("not one vector a text")
        return normalised(vectors)

    def _checked(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if vectors.shape[1] != self.dimension:
            raise EmbeddingFailed(
                f"{self._told()} gave vectors of {vectors.shape[1]} values where it gave {self.dimension} before. "
                "Was the model replaced? Restart Remora to embed again."
            )
        return vectors

    def _told(self) -> str:
        return f"The embedding model {self._server.model} at {httpx.URL(self._url).host}"


class _Passing(EmbeddingFailed):
    """The very same request may work in a moment."""


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host)


def _retry_after(response: httpx.Response) -> float | None:
    try:
        seconds = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _quoted(response: httpx.Response) -> str:
    text = " ".join(response.text[: 4 * _MOST_QUOTED].split())
    return text[:_MOST_QUOTED] or "(empty)"
