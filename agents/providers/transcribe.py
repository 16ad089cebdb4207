"""Transcribes voice messages over OpenAI's API for transcriptions, which many servers speak.

Invariants: every failure becomes a `ModelError` that names the host and the model and never the key. A try takes no
longer than `timeout`. A wait asked for by a server is never cut short. The part of an answer held in memory is
bounded. The server gets the sound, but no name that a person gave it.

Source: OpenAI's API reference, "Create transcription".
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Awaitable, Callable

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from agents.llm import BadCompletion, ModelError, ModelRefused, ModelUnavailable
from agents.providers.errors import Refusal, Server, error_body, page

#: Seconds before the second and third try, each varied by up to a quarter either way.
WAITS = (0.5, 2.0)
#: If the server asks for a longer wait, in seconds, the request is given up: a person waits for the answer.
LONGEST_WAIT = 30.0
#: Bytes of an answer and characters of its text; no transcript is longer: an hour of quick speech has some 80,000
#: letters.
_MOST_BYTES = 2 * 1024 * 1024
_MOST_TEXT = 500_000

#: First bytes of a recording and the ending for them. OpenAI's server takes the encoding from the file's ending, and
#: the first bytes are surer than any name.
_BEGINNINGS = ((b"OggS", "ogg"), (b"fLaC", "flac"), (b"RIFF", "wav"), (b"\x1aE\xdf\xa3", "webm"), (b"ID3", "mp3"))
_TYPE = re.compile(r"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,60}")
_ENDINGS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "ogg", "wav", "webm")


class Transcriber:
    """Transcribes with one model of one server.

    The caller owns and closes `client`. `base_url` ends before `/audio/transcriptions`. `timeout` in seconds bounds
    one try. `language` is the spoken language as an ISO 639-1 code; with None the model finds out. `sleep` waits for
    seconds, `random` gives numbers in [0, 1). Raises `ValueError` for a base_url that is no http address and for a
    key that can't be sent.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        base_url: str,
        key: str | None,
        model: str,
        timeout: float,
        language: str | None,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self._client = client
        self._server = Server.at(base_url, "/audio/transcriptions", model=model, key=key)
        self._model = model
        self._timeout = timeout
        self._language = language
        self._sleep = sleep
        self._random = random

    async def transcribe(self, data: bytes, *, name: str, media_type: str) -> str:
        """Returns the transcript of the recording `data`; empty when nothing is said. Raises `ModelError`.

        Only the ending of `name` counts, and only if the bytes do not show the encoding.
        """

        async def attempt() -> str:
            return await self._asked(data, f"voice.{_ending(data, name)}", media_type)

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=stop_after_attempt(1 + len(WAITS)),
            wait=self._wait,
            retry=retry_if_exception(_worth_another_try),
            reraise=True,
        )
        text: str = await retrying(attempt)
        return text

    async def _asked(self, data: bytes, name: str, media_type: str) -> str:
        fields = {"model": self._model, "response_format": "json"}
        if self._language:
            fields["language"] = self._language
        request = self._client.build_request(
            "POST",
            self._server.url,
            data=fields,
            files={"file": (name, data, media_type if _TYPE.fullmatch(media_type) else "application/octet-stream")},
            headers={**self._server.headers, "accept": "application/json"},
            timeout=httpx.Timeout(self._timeout),
        )
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    if not response.is_success:
                        raise self._refused(response, await error_body(response, self._timeout))
                    body = await self._body(response)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self._server.where} did not transcribe a voice message within {self._timeout:g} s. The model may be"
                " loading or overloaded: try later, or raise its timeout."
            ) from error
        except (httpx.RequestError, ssl.SSLError) as error:
            raise self._server.unreachable(error, self._timeout) from error
        return self._text(body)

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise self._no_transcript("more than any transcript has")
        return bytes(body)

    def _text(self, body: bytes) -> str:
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            said = body[:1000].decode("utf-8", "replace").strip()
            raise self._no_transcript(page(said) or "something else" if said else "nothing at all") from None
        text = told.get("text") if isinstance(told, dict) else None
        if not isinstance(text, str):
            raise self._no_transcript("something else")
        # Databases and chats do not take lone surrogates and NUL.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\x00", "")
        return text.strip()[:_MOST_TEXT]

    def _refused(self, response: httpx.Response, raw: bytes) -> ModelError:
        refusal = Refusal.parse(raw, self._server.key)
        if response.status_code == 413:
            return ModelRefused(
                f"{self._server.where} takes no recording as long as this one (413).{refusal.quoted} Lower the most"
                " bytes an attachment may have, or raise the server's limit."
            )
        return self._server.refused(response.status_code, response.headers, refusal)

    def _no_transcript(self, what: str) -> ModelError:
        return BadCompletion(
            f"{self._server.where} accepted a recording and sent {what} instead of a transcript in JSON. Check that"
            " base_url leads to an API with /audio/transcriptions; for most servers it ends in /v1."
        )

    def _wait(self, state: RetryCallState) -> float:
        # tenacity asks for a wait after the last try too, before it checks whether to stop.
        base = WAITS[min(state.attempt_number, len(WAITS)) - 1]
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, ModelError) else None
        return max(base * (0.75 + 0.5 * self._random()), asked or 0.0)


def _worth_another_try(error: BaseException) -> bool:
    # After an answer that can't be read another try would cost again and be no better.
    if not isinstance(error, ModelError) or isinstance(error, BadCompletion):
        return False
    return error.retryable and (error.retry_after or 0.0) <= LONGEST_WAIT


def _ending(data: bytes, name: str) -> str:
    """Returns the recording's encoding as a file ending; "ogg", usual for voice messages, where nothing tells."""
    for beginning, ending in _BEGINNINGS:
        if data.startswith(beginning):
            return ending
    if data[4:8] == b"ftyp":
        return "m4a"
    if data[:1] == b"\xff" and data[1:2] >= b"\xe0":
        return "mp3"
    ending = name.lower().rpartition(".")[2]
    return ending if ending in _ENDINGS else "ogg"
