"""/forget as people use it: what they are shown, what they answer, and what they are told then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.wording.texts import Texts
from languages import Language
from tests.kit.bench import Bench, Screen, kept
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.forgetting import let_go


@pytest.fixture
def bench(tmp_path: Path, clock: Clock) -> Bench:
    return Bench(tmp_path, ScriptedModel(), Screen(), clock)


async def said(bench: Bench) -> list[str]:
    found = await bench.memory.database.read(
        lambda reader: reader.all("select text from messages where text <> '' order by id")
    )
    return [row["text"] for row in found]


async def learned(bench: Bench, text: str) -> None:
    await bench.say(text)
    await bench.memory.learner.flush((await bench.context()).session.id, "test")


@pytest.mark.parametrize(
    ("answer", "forgotten", "language"),
    [
        ("words", "Forgotten. Memories: 1.", "en"),
        ("and the words", "Forgotten. Memories: 1.", "en"),
        ("yes", "Forgotten. Memories: 1.", "en"),
        ("连同原话", "已忘掉：记忆 1 条", "zh"),
        ("是", "已忘掉：记忆 1 条", "zh"),
    ],
)
async def test_a_plain_yes_erases_the_words_as_well(
    bench: Bench, answer: str, forgotten: str, language: Language
) -> None:
    """That is what somebody means who wants something forgotten. The receipt is in the language of the answer."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        await bench.say("/forget lisbon")
        asked = bench.screen.texts[-1]
        assert asked.startswith("Forget this?") and "Lisbon" in asked and "Messages: 1" in asked
        await bench.say(answer)
        told = bench.screen.texts[-1]
        assert told.startswith(forgotten) and let_go(language) in told and "Lisbon" not in told
        assert await said(bench) == [] and await bench.remembered() == []


@pytest.mark.parametrize(("answer", "language"), [("memory", "en"), ("this memory only", "en"), ("仅此记忆", "zh")])
async def test_this_memory_only_leaves_the_words(bench: Bench, answer: str, language: Language) -> None:
    """They may be worth keeping where the conclusion was not."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        await bench.say("/forget lisbon")
        await bench.say(answer)
        assert Texts(language)("forget.words_stay") in bench.screen.texts[-1]
        assert "I live in Lisbon" in await said(bench) and await bench.remembered() == []


async def test_all_that_would_go_can_be_seen_page_by_page(bench: Bench) -> None:
    """By a word, its number or a button. Nothing is forgotten by looking, and the last page offers no more."""
    async with bench.running():
        for n in range(23):
            await bench.say(f"/remember shelf {n} holds jar {n}")
        seen = list[str]()
        for typed in ("/forget shelf", "more", "4"):
            await bench.say(typed)
            seen += re.findall(r"^m_\w+", bench.screen.texts[-1], re.MULTILINE)
        assert len(seen) == len(set(seen)) == 23 == len(await bench.remembered())
        assert "4. " not in bench.screen.texts[-1] and "1. and the words" in bench.screen.texts[-1]
        await bench.say("yes")
        assert bench.screen.texts[-1].startswith("Forgotten. Memories: 23") and await bench.remembered() == []


async def test_where_no_memory_goes_only_whether_is_asked(bench: Bench) -> None:
    """ "This memory only" would be about nothing. The second choice is no."""
    async with bench.running():
        await bench.say("the umbrella stands in the hall")
        for answer, left in (("2", 1), ("memory", 1), ("1", 0)):
            await bench.say("/forget umbrella")
            asked = bench.screen.texts[-1]
            assert "1. yes" in asked and "2. no" in asked and "3." not in asked
            await bench.say(answer)
            assert sum("umbrella stands" in text for text in await said(bench)) == left
        assert bench.screen.texts[-1].startswith("Forgotten. Messages erased: 1")


@pytest.mark.parametrize("answer", ["no", "不", "what about tea?"])
async def test_anything_else_keeps_all(bench: Bench, answer: str) -> None:
    """Forgetting can't be taken back."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        await bench.say("/forget all")
        await bench.say(answer)
        await bench.say("yes")
        assert [memory.value for memory in await bench.remembered()] == ["Lisbon"]


async def test_what_is_not_there_or_not_ones_own_is_refused(bench: Bench) -> None:
    """Another's private memory looks like none; in a group it is said whose it is to forget."""
    async with bench.running():
        tea = await kept(bench, "I like tea", person="bob", chat="club")
        secret = await kept(bench, "I like rum", person="bob")
        for wanted in (secret.short_id, "m_nothere"):
            await bench.say(f"/forget {wanted}")
            assert bench.screen.texts[-1] == Texts("en")("memory.unknown_id", id=wanted)
        await bench.say("/forget submarines")
        assert bench.screen.texts[-1] == Texts("en")("forget.nothing")
        await bench.say("/forget")
        assert bench.screen.texts[-1] == Texts("en")("forget.usage")
        await bench.say(f"/forget {tea.short_id}", chat="club")
        assert bench.screen.texts[-1] == Texts("en")("memory.not_yours", id=tea.short_id)
        await bench.say("/forget like tea", chat="club")
        assert bench.screen.texts[-1] == Texts("en")("forget.not_yours")
        assert await bench.remembered("bob", "club") == [tea] and secret in await bench.remembered("bob")


async def test_the_nearest_is_offered_as_such_and_a_stranger_to_all_words_is_nothing(bench: Bench) -> None:
    """Whoever asks for one thing must not erase another by a quick yes."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        await bench.say("/forget my flat in lisbon with the blue door")
        assert bench.screen.texts[-1].startswith(Texts("en")("forget.near")) and "Lisbon" in bench.screen.texts[-1]
        await bench.say("no")
        await bench.say("/forget qwertz")
        assert bench.screen.texts[-1] == Texts("en")("forget.nothing")
        assert await bench.remembered() != []


@pytest.mark.parametrize(
    ("answers", "stays"),
    [
        (["maybe", "2"], True), (["not sure", "yes please"], False), (["hm", "sí"], False), (["也许", "好的"], False),
        (["7", "sure"], False), (["yes but not now", "no"], True),
    ],
)  # fmt: skip
async def test_an_unclear_answer_is_asked_about_once(bench: Bench, answers: list[str], stays: bool) -> None:
    """Somebody who hesitates has not gone on to something else."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        await bench.say("/forget lisbon")
        unclear, clear = answers
        await bench.say(unclear)
        assert "Please answer" in bench.screen.texts[-1] or "请回答" in bench.screen.texts[-1]
        assert await bench.remembered() != [] and bench.model.requests == bench.model.requests[:1]
        await bench.say(clear)
        assert ("I live in Lisbon" in await said(bench)) is (clear in ("2", "no"))
        assert (await bench.remembered() != []) is (clear == "no")
        assert stays is (clear in ("2", "no"))


async def test_who_stays_unclear_has_gone_on_to_something_else(bench: Bench) -> None:
    """The second time it is an ordinary message, and a later yes answers nothing."""
    async with bench.running():
        await learned(bench, "I live in Lisbon")
        before = len(bench.model.requests)
        await bench.say("/forget lisbon")
        await bench.say("maybe")
        assert len(bench.model.requests) == before
        await bench.say("hmm")
        assert len(bench.model.requests) == before + 1
        await bench.say("yes")
        assert [memory.value for memory in await bench.remembered()] == ["Lisbon"]
