"""The transcriber over real HTTP, against a small server that speaks OpenAI's API for transcriptions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from aiohttp import web

from agents.llm import BadCompletion, ModelAuth, ModelError, ModelRateLimited, ModelRefused, ModelUnavailable
from agents.providers.transcribe import Transcriber
from tests.kit.patience import SECONDS, hang

KEY = "sk-test-0123456789abcdef"
OGG = b"OggS" + bytes(60)
Answer = Callable[[int, web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Desk:
    """The requests that the server got: each one's fields, its file's name, media type and bytes, and its key."""

    base_url: str = ""
    fields: list[dict[str, str]] = field(default_factory=list)
    files: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@asynccontextmanager
async def desk(answer: Answer) -> AsyncIterator[Desk]:
    seen = Desk()

    async def handle(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        seen.keys.append(request.headers.get("authorization"))
        seen.fields.append({name: value for name, value in form.items() if isinstance(value, str)})
        file = form["file"]
        assert isinstance(file, web.FileField)
        with file.file:
            seen.files.append((file.filename, file.content_type, file.file.read()))
        return await answer(len(seen.fields), request)

    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    seen.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield seen
    finally:
        await runner.cleanup()


def says(*answers: tuple[int, str], **headers: str) -> Answer:
    """Answer the n-th request with the n-th (status, body), then with the last."""

    async def answer(number: int, request: web.Request) -> web.StreamResponse:
        status, body = answers[min(number, len(answers)) - 1]
        return web.Response(status=status, text=body, headers=headers)

    return answer


HEARD = (200, '{"text": " Buy tea. "}')


@asynccontextmanager
async def transcriber(
    base_url: str, *, key: str | None = KEY, language: str | None = None, waits: list[float] | None = None
) -> AsyncIterator[Transcriber]:
    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        yield Transcriber(
            client, base_url=base_url, key=key, model="whisper-1", timeout=SECONDS, language=language, sleep=sleep,
            random=lambda: 0.5,
        )  # fmt: skip


async def hear(scribe: Transcriber, data: bytes = OGG, name: str = "x.oga", media_type: str = "audio/ogg") -> str:
    return await scribe.transcribe(data, name=name, media_type=media_type)


async def failure_of(answer: Answer) -> tuple[ModelError, int]:
    """The error, which must name host and model and keep the key to itself; and how often the server was asked."""
    async with desk(answer) as seen, transcriber(seen.base_url) as scribe:
        with pytest.raises(ModelError) as caught:
            await hear(scribe)
    text = str(caught.value)
    assert "127.0.0.1" in text and "whisper-1" in text and KEY not in text
    return caught.value, len(seen.fields)


async def test_what_is_said_comes_back_as_text() -> None:
    async with desk(says(HEARD)) as seen, transcriber(seen.base_url, language="pt") as scribe:
        assert await hear(scribe) == "Buy tea."
    assert seen.fields == [{"model": "whisper-1", "response_format": "json", "language": "pt"}]
    assert seen.files == [("voice.ogg", "audio/ogg", OGG)]
    assert seen.keys == [f"Bearer {KEY}"]


async def test_without_key_and_language_none_is_sent() -> None:
    """A server at home wants no key, and the model finds out the language."""
    async with desk(says(HEARD)) as seen, transcriber(f"{seen.base_url}/", key=None) as scribe:
        await hear(scribe)
    assert seen.keys == [None]
    assert "language" not in seen.fields[0]


@pytest.mark.parametrize(
    ("data", "name", "sent"),
    [
        (OGG, "song.wav", "voice.ogg"),
        (b"\x00\x00\x00\x18ftypM4A ", "noname", "voice.m4a"),
        (b"ID3\x04", "x", "voice.mp3"),
        (b"\xff\xfb\x90", "x", "voice.mp3"),
        (b"RIFF....WAVE", "x", "voice.wav"),
        (b"\x1aE\xdf\xa3", "x", "voice.webm"),
        (b"who knows", "Ada's secret.FLAC", "voice.flac"),
        (b"who knows", 'x"\r\nx-evil: 1', "voice.ogg"),
    ],
)
async def test_the_server_learns_the_coding_and_not_the_name(data: bytes, name: str, sent: str) -> None:
    """Servers go by the ending; names are private, and must not end a header."""
    async with desk(says(HEARD)) as seen, transcriber(seen.base_url) as scribe:
        await hear(scribe, data, name, "audio/x\r\nx-evil: 1")
    assert seen.files == [(sent, "application/octet-stream", data)]


async def test_silence_is_an_answer() -> None:
    async with desk(says((200, '{"text": ""}'))) as seen, transcriber(seen.base_url) as scribe:
        assert await hear(scribe) == ""


async def test_half_characters_do_not_leave_it() -> None:
    async with (
        desk(says((200, r'{"text": "a\ud83d\ude00b\ud83dc\u0000"}'))) as seen,
        transcriber(seen.base_url) as scribe,
    ):
        assert await hear(scribe) == "a😀b\ufffdc"


async def test_what_may_pass_is_tried_twice_more() -> None:
    """After half a second and two, or as long as the server asks for."""
    waits: list[float] = []
    async with (
        desk(says((503, "busy"), (429, "slow down"), HEARD)) as seen,
        transcriber(seen.base_url, waits=waits) as scribe,
    ):
        assert await hear(scribe) == "Buy tea."
    assert waits == [0.5, 2.0]
    assert [data for _, _, data in seen.files] == [OGG] * 3


async def test_a_server_that_asks_for_long_patience_is_left() -> None:
    """The person waits for the answer."""
    error, asked = await failure_of(says((429, "tomorrow"), **{"retry-after": "3600"}))
    assert (type(error), error.retry_after, asked) == (ModelRateLimited, 3600.0, 1)


@pytest.mark.parametrize(
    ("answer", "kind", "tries", "words"),
    [
        ((401, '{"error": {"message": "Incorrect key sk-test-0123456789abcdef"}}'), ModelAuth, 1, "[key]"),
        ((404, "<title>Not here</title>"), ModelRefused, 1, "Not here"),
        ((413, "too much"), ModelRefused, 1, "as long as this one"),
        ((400, '{"error": {"message": "Invalid file format."}}'), ModelRefused, 1, "Invalid file format"),
        ((500, "oops"), ModelUnavailable, 3, "failed on its side"),
        ((200, "<html><title>My router</title></html>"), BadCompletion, 1, "a web page titled My router"),
        ((200, ""), BadCompletion, 1, "nothing at all"),
        ((200, "[" * 100_000), BadCompletion, 1, "something else"),
        ((200, '{"text": 5}'), BadCompletion, 1, "something else"),
        ((200, '{"text": "' + "x" * 3_000_000 + '"}'), BadCompletion, 1, "more than any transcript has"),
    ],
)
async def test_a_failure_says_what_happened(
    answer: tuple[int, str], kind: type[ModelError], tries: int, words: str
) -> None:
    error, asked = await failure_of(says(answer))
    assert (type(error), asked) == (kind, tries)
    assert words in str(error)


async def test_a_server_that_hangs_is_given_up() -> None:
    """Before its answer, and in the middle of it."""

    async def answer(number: int, request: web.Request) -> web.StreamResponse:
        if number == 2:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"text": "')
        await hang()

    error, asked = await failure_of(answer)
    assert (type(error), asked) == (ModelUnavailable, 3)


async def test_nobody_listening_is_said() -> None:
    """The commonest mistake of who runs a server at home."""
    async with transcriber("http://127.0.0.1:9/v1") as scribe:
        with pytest.raises(ModelUnavailable, match="nothing listens there"):
            await hear(scribe)


@pytest.mark.parametrize(("base_url", "key"), [("ftp://x/v1", KEY), ("http://x/v1", "sk-“x”")])
async def test_settings_that_cannot_work_are_refused_at_once(base_url: str, key: str) -> None:
    """Better at the start than at the first voice message."""
    with pytest.raises(ValueError, match=r"whisper-1|copy it again"):
        async with transcriber(base_url, key=key):
            pass
