"""The nightly comparison of facts, and the question about those that contradict each other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gateway.pipeline.policy import Rules
from memory.chat.doubts import FactDoubt
from memory.context import Context
from memory.errors import NotCurrent
from memory.jobs import compare
from memory.jobs.compare import FactPair
from memory.jobs.runner import TABLE, Jobs
from memory.learn import keep
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest, RequestRefused
from memory.mailbox.outbox import Part
from memory.recall.embed import Embedder
from memory.recall.embedding import Embedders
from memory.service import Service
from memory.setup import SearchSetup
from memory.store.database import Transaction
from memory.store.memories import Draft
from memory.store.questions import Question
from tests.kit import stores
from tests.kit.canaries import Letters
from tests.kit.fakes import Clock
from tests.kit.minds import answered
from tests.kit.pipeline import pipeline
from tests.kit.stores import counting, remembering, rows
from tests.kit.talk import Place, act, group, live, private, say

ADA = private("ada")


class Judge:
    """A model that gives the scripted verdict on each pair it is shown; any other pair agrees."""

    def __init__(self) -> None:
        self.scripted: dict[tuple[str, str], dict[str, str]] = {}
        self.pairs: list[tuple[str, str]] = []
        self.asked = 0
        self.instead: str | None = None

    def says(self, older: str, newer: str, verdict: str, why: str = "") -> None:
        self.scripted[older, newer] = {"verdict": verdict, "why": why}

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        self.asked += 1
        judged: list[dict[str, Any]] = []
        for row in map(json.loads, request.material.splitlines()[1:]):
            pair = row["older"]["value"], row["newer"]["value"]
            self.pairs.append(pair)
            judged.append({"n": row["n"], **self.scripted.get(pair, {"verdict": "agree"})})
        return answered(self.instead or {"pairs": judged})


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def world(tmp_path: Path, clock: Clock, judge: Judge) -> AsyncIterator[Service]:
    async with stores.opened(
        tmp_path / "r.db", clock, agents=["assistant"], model=BackgroundModel(complete=judge)
    ) as service:
        yield service


class ByMeaning(Letters):
    """An embedder for which two words, and no others, mean the same."""

    def _of(self, text: str) -> NDArray[np.float32]:
        return super()._of("no meat" if text == "herbivorous" else text)


async def told(
    memory: Service, clock: Clock, *facts: tuple[str, str], place: Place = ADA, confidence: float = 0.8
) -> Context:
    """Has each (key, value) said in a message of its own, a day apart, and kept."""
    context = None
    for key, value in facts:
        clock.move(days=1)
        turn = await say(memory, place, value, clock=clock, learn=False)
        context, source = turn.context, turn.said[0].id
        scope = context.scope
        draft = Draft(
            kind="fact", owner_id=scope.writes_to, author_id=scope.speaker_id, subject_id=scope.speaker_id,
            category="place" if key in ("home", "lodging") else "health", key=key, value=value, importance=5,
            confidence=confidence, origin="extracted", learned_at=clock(), local_date="2026-11-21",
        )  # fmt: skip

        def kept(tx: Transaction, draft: Draft = draft, context: Context = context, source: int = source) -> None:
            keep.keep(tx, context.scope, draft, source_ids=[source], now=clock(), new_id=lambda: f"m_{counting()}")

        await memory.database.write(kept)
    assert context is not None
    return context


async def night(memory: Service, clock: Clock) -> dict[str, int]:
    clock.move(minutes=60)
    run = await memory.jobs.run("assistant", "compare", f"2026-12-01T{counting()}")
    assert run is not None and run.state == "done", run
    return dict(run.counts)


async def asked(memory: Service, context: Context) -> list[tuple[FactDoubt, Question]]:
    """Puts the next doubt; returns what was shown of it."""
    seen: list[tuple[FactDoubt, Question]] = []

    def compose(doubt: FactDoubt, question: Question) -> Sequence[Part]:
        seen[:] = [(doubt, question)]
        return [Part(text="Which one?")]

    await memory.doubts.ask(context, "unclear", compose)
    return seen


async def test_only_facts_that_share_a_word_or_a_key_are_compared_where_nothing_was_embedded(
    world: Service, clock: Clock, judge: Judge
) -> None:
    ada = await told(world, clock, ("home", "Lisbon"), ("allergy", "nuts"), ("food", "eats nuts every day"))
    assert await night(world, clock) == {"compared": 1}
    assert judge.pairs == [("nuts", "eats nuts every day")]
    assert await live(world, ada) == ["Lisbon", "eats nuts every day", "nuts"]


async def test_each_pair_is_compared_once(world: Service, clock: Clock, judge: Judge) -> None:
    ada = await told(world, clock, ("allergy", "nuts"), ("food", "eats nuts every day"))
    judge.says("nuts", "eats nuts every day", "replaces", "ended")
    assert await night(world, clock) == {"compared": 1, "replaced": 1}
    assert await live(world, ada) == ["eats nuts every day"]
    assert await rows(world, "select verdict, why from comparisons") == [("replaces", "ended")]
    older, newer = await rows(world, "select valid_until, valid_from from memories where kind = 'fact' order by id")
    assert older[0] == newer[1]  # it ends with the day from which the newer one holds
    (run, *_) = await world.jobs.mine(ada, limit=5)
    assert [(one.what, one.memory.value) for one in await world.jobs.did(ada, run.run.id)] == [("replaced", "nuts")]
    assert (await world.jobs.undo(ada, run.run.id)).restored == 1
    assert await live(world, ada) == ["eats nuts every day", "nuts"]
    clock.move(days=1)
    again = await world.jobs.run("assistant", "compare", "2026-12-09")
    assert again is not None and again.counts == {} and judge.asked == 1


async def test_what_may_have_been_meant_is_no_plain_telling_once_the_run_is_undone(
    world: Service, clock: Clock, judge: Judge
) -> None:
    """The run lets a guess said after the end stand by itself; undone, the guess is one of the fact's again."""
    ada = await told(world, clock, ("allergy", "nuts"))
    await told(world, clock, ("allergy", "nuts"), confidence=0.4)
    sources = "select memory_id, message_id, unsure from memory_sources order by message_id"
    assert [unsure for _, _, unsure in await rows(world, sources)] == [0, 1]
    clock.move(days=-1.5)
    await told(world, clock, ("food", "eats nuts every day"))
    before = await rows(world, sources)
    judge.says("nuts", "eats nuts every day", "replaces", "ended")
    assert await night(world, clock) == {"compared": 1, "replaced": 1}
    assert await rows(world, sources) != before
    (run, *_) = await world.jobs.mine(ada, limit=5)
    await world.jobs.undo(ada, run.run.id)
    assert await rows(world, sources) == before


async def test_what_is_unsure_or_confirmed_is_asked_about_and_not_ended(
    world: Service, clock: Clock, judge: Judge
) -> None:
    ada = await told(world, clock, ("allergy", "nuts"))
    await told(world, clock, ("food", "eats nuts every day"), confidence=0.4)
    judge.says("nuts", "eats nuts every day", "replaces")
    assert await night(world, clock) == {"compared": 1, "doubts": 1}
    assert await live(world, ada) == ["eats nuts every day", "nuts"]


@pytest.mark.parametrize("sure", ["pin", "confirm"])
async def test_what_a_person_made_sure_of_is_asked_about_and_not_ended(
    world: Service, clock: Clock, judge: Judge, sure: str
) -> None:
    ada = await told(world, clock, ("allergy", "nuts"))
    (nuts,) = await world.browse.memories(ada, limit=10)
    if sure == "pin":
        await act(world, ada, lambda edits: edits.pin(nuts.short_id, pinned=True))
    else:
        await act(world, ada, lambda edits: edits.confirm(nuts.short_id))
    await told(world, clock, ("food", "eats nuts every day"))
    judge.says("nuts", "eats nuts every day", "replaces")
    assert await night(world, clock) == {"compared": 1, "doubts": 1}
    assert await live(world, ada) == ["eats nuts every day", "nuts"]


async def test_facts_that_are_near_by_meaning_only_are_compared(tmp_path: Path, clock: Clock, judge: Judge) -> None:
    """Where nothing was embedded, they share neither key nor word."""

    async def vectors() -> Embedder:
        return ByMeaning()

    facts = [("motto", "herbivorous"), ("hobby", "chess"), ("pet", "an old tabby"), ("job", "draws maps")]
    asked = []
    for name, search in (("words", None), ("meaning", SearchSetup(embedders=Embedders(vectors=vectors)))):
        more: dict[str, Any] = {} if search is None else {"search": search}
        model = BackgroundModel(complete=judge)
        async with stores.opened(tmp_path / f"{name}.db", clock, agents=["assistant"], model=model, **more) as memory:
            await told(memory, clock, *facts, ("food", "no meat"))
            await memory.indexed()
            await night(memory, clock)
        asked.append(set(judge.pairs))
        judge.pairs.clear()
    assert asked[0] == set()
    assert ("herbivorous", "no meat") in asked[1]


async def test_an_answer_that_cannot_be_read_compares_nothing(world: Service, clock: Clock, judge: Judge) -> None:
    await told(world, clock, ("allergy", "nuts"), ("food", "eats nuts every day"))
    judge.instead = "I think they agree."
    run = await world.jobs.run("assistant", "compare", "2026-12-01")
    assert run is not None and run.error == "unreadable_answer"
    judge.instead = None
    assert await night(world, clock) == {"compared": 1}


@pytest.mark.parametrize(
    ("taken", "left"),
    [("older", ["nuts"]), ("newer", ["eats nuts every day"]), ("both", ["eats nuts every day", "nuts"])],
)
async def test_the_person_is_asked_once_and_their_word_decides(
    world: Service, clock: Clock, judge: Judge, taken: Any, left: list[str]
) -> None:
    judge.says("nuts", "eats nuts every day", "contradict")
    ada = await told(world, clock, ("allergy", "nuts"), ("food", "eats nuts every day"))
    await night(world, clock)
    bob = (await say(world, private("bob"), "hello", clock=clock)).context
    room = (await say(world, group("ada", "club"), "hello", clock=clock)).context
    assert await asked(world, bob) == [] == await asked(world, room)
    ((doubt, question),) = await asked(world, ada)
    assert (doubt.older.value, doubt.newer.value) == ("nuts", "eats nuts every day")
    clock.move(days=2)
    assert await asked(world, ada) == []
    decided = await act(world, ada, lambda edits: edits.decide(question, taken))
    assert decided == (doubt, True)
    assert await live(world, ada) == left
    assert all(one.confirmed for one in await world.browse.memories(ada, limit=10))
    assert await rows(world, "select answer from comparisons") == [(taken,)]


async def test_a_doubt_waits_until_its_question_is_queued(tmp_path: Path, clock: Clock, judge: Judge) -> None:
    """A process that ends before that asks the next time; one that ends after it asks nobody twice."""
    judge.says("nuts", "eats nuts every day", "contradict")

    def opened() -> Any:
        return stores.opened(tmp_path / "r.db", clock, agents=["assistant"], model=BackgroundModel(complete=judge))

    async with opened() as memory:
        ada = await told(memory, clock, ("allergy", "nuts"), ("food", "eats nuts every day"))
        await night(memory, clock)

        def fails(_doubt: FactDoubt, _question: Question) -> Sequence[Part]:
            raise OSError("the process ends here")

        with pytest.raises(OSError, match="ends here"):
            await memory.doubts.ask(ada, "unclear", fails)
    async with opened() as memory:
        ada = await memory.identities.context(*ADA)
        ((_, question),) = await asked(memory, ada)
        assert await rows(memory, "select count(*) from outbox where text = 'Which one?'") == [(1,)]
    async with opened() as memory:
        ada = await memory.identities.context(*ADA)
        assert await asked(memory, ada) == []
        nuts = next(one for one in await memory.browse.memories(ada, limit=10) if one.value == "nuts")
        await act(memory, ada, lambda edits: edits.correct(nuts.short_id, "peanuts"))

        def changed(edits: Any) -> str:
            with pytest.raises(NotCurrent):
                edits.decide(question, "older")
            return ""

        await act(memory, ada, changed)


async def test_a_model_that_doubts_everything_keeps_nobody_busy(world: Service, clock: Clock, judge: Judge) -> None:
    values = [f"eats nuts {n} times a day" for n in range(5)]
    for n, older in enumerate(values):
        for newer in values[n + 1 :]:
            judge.says(older, newer, "contradict")
    await told(world, clock, *(("food", value) for value in values))
    assert await night(world, clock) == {"compared": 10, "doubts": 10}
    ada = await world.identities.context(*ADA)
    for _ in range(3):
        assert await asked(world, ada)
        clock.move(minutes=19 * 60)
        assert not await asked(world, ada)
        clock.move(minutes=60)
    assert judge.asked == 1


async def test_a_doubt_that_waits_is_not_paid_for_again(world: Service, clock: Clock, judge: Judge) -> None:
    values = [f"eats nuts {n} times a day" for n in range(5)]
    for n, older in enumerate(values):
        for newer in values[n + 1 :]:
            judge.says(older, newer, "contradict")
    await told(world, clock, *(("food", value) for value in values))
    await night(world, clock)
    assert await night(world, clock) == {} and judge.asked == 1
    await told(world, clock, ("food", "eats no nuts at all"))
    before = len(judge.pairs)
    await night(world, clock)
    assert {newer for _, newer in judge.pairs[before:]} == {"eats no nuts at all"}


async def test_a_groups_facts_are_asked_about_in_the_group(world: Service, clock: Clock, judge: Judge) -> None:
    judge.says("nuts", "eats nuts every day", "contradict")
    club = group("club", "ada")
    room = await told(world, clock, ("allergy", "nuts"), ("food", "eats nuts every day"), place=club)
    assert await night(world, clock) == {"compared": 1, "doubts": 1}
    alone = (await say(world, ADA, "hello", clock=clock)).context
    elsewhere = (await say(world, group("choir", "ada"), "hello", clock=clock)).context
    assert await asked(world, alone) == [] == await asked(world, elsewhere)
    ((doubt, question),) = await asked(world, room)
    assert await act(world, room, lambda edits: edits.decide(question, "newer")) == (doubt, True)
    assert await live(world, room) == ["eats nuts every day"]


async def test_without_a_model_nothing_is_compared(tmp_path: Path, clock: Clock) -> None:
    async with stores.opened(tmp_path / "r.db", clock, agents=["assistant"]) as memory:
        await told(memory, clock, ("allergy", "nuts"), ("food", "eats nuts every day"))
        assert await night(memory, clock) == {}


@pytest.mark.parametrize(
    ("why", "english", "chinese"),
    [
        ("changed", "this has changed since", "情况变了"),
        ("ended", "this is over", "已经结束"),
        ("corrected", "this was wrong", "原来的有误"),
        ("exact", "this is known more exactly now", "现在知道得更确切"),
    ],
)
async def test_an_admin_has_it_run_and_the_report_gives_the_reason(
    tmp_path: Path, judge: Judge, why: str, english: str, chinese: str
) -> None:
    rules = {"telegram": Rules(admins=frozenset({"7"}))}
    judge.says("eats no nuts", "eats nuts every day", "replaces", why)
    async with pipeline(tmp_path, rules=rules, background=BackgroundModel(complete=judge)) as world:
        for text in ("eats no nuts", "eats nuts every day"):
            await world.say(f"/remember {text}", author="7")
            world.clock.move(minutes=5)
        # A fact that a person has asked to keep is sure, and only asked about.
        await world.memory.database.write(lambda tx: tx.run("update memories set confirmed = 0 where kind = 'fact'"))
        (previewed,) = await world.say("/memory preview compare", author="7")
        assert english in previewed
        assert await world.rows("select count(*) from comparisons") == [(0,)]
        (asked,) = await world.say("/jobs run compare", author="7")
        assert asked.startswith("check that facts agree for assistant starts")
        worker = world.store.nights
        assert worker is not None
        (run,) = await worker.work_off()
        assert (run.job, run.counts) == ("compare", {"compared": 1, "replaced": 1})
        (shown,) = await world.say(f"/memory run {run.id}", author="7")
        assert "eats no nuts" in shown and english in shown
        await world.say("/profile language zh", author="7")
        (shown,) = await world.say(f"/memory run {run.id}", author="7")
        assert chinese in shown


@pytest.mark.parametrize("answer", ["the second", "2", ""])
async def test_the_question_comes_after_an_answer_and_is_answered_by_word_number_or_button(
    tmp_path: Path, answer: str
) -> None:
    """Talk of something else leaves it open, and so does a "yes", which names neither."""
    async with pipeline(tmp_path, rules={"telegram": Rules(allow=frozenset({"7"}))}) as world:
        for text in ("eats no nuts", "eats nuts every day"):
            await world.say(f"/remember {text}", author="7")
        first, second = [row for (row,) in await world.rows("select id from memories where kind = 'fact' order by id")]

        def doubted(tx: Transaction) -> None:
            compare.keep_comparison(tx, FactPair(older=first, newer=second), "doubt", now=world.clock())

        await world.memory.database.write(doubted)
        heard = await world.hear(world.inbound("hello", author="7"))
        assert heard[-1].text.startswith("Two things I remember don't seem to go together. Which one is right?\n1. ")
        assert [button.label for button in heard[-1].buttons] == ["the first", "the second", "both"]
        assert not any("Two things" in text for text in await world.say("yes", author="7"))
        assert not any("Two things" in text for text in await world.say("what's the weather?", author="7"))
        pressed = {} if answer else {"pressed": heard[-1].buttons[1].data}
        told = await world.say(answer, author="7", **pressed)
        assert told[-1].startswith("Thank you. I go by this:"), told
        assert await world.rows("select answer from comparisons") == [("newer",)]
        assert list(await world.rows("select value from memories where kind = 'fact' and valid_until is null")) == [
            ("eats nuts every day",)
        ]


async def test_one_fact_that_the_model_refuses_holds_up_no_other(world: Service, clock: Clock, judge: Judge) -> None:
    """The other pairs are compared in the first night; the fact itself waits no longer once it was refused three times."""
    answer = judge.__call__

    class Refusing(Judge):
        async def __call__(self, request: ModelRequest) -> ModelAnswer:
            if "poison" in request.material:
                raise RequestRefused("no")
            return await answer(request)

    await told(world, clock, ("allergy", "nuts"), ("food", "eats nuts every day"), ("allergy", "poison nuts"))
    table = [one for one in TABLE if one.name == "compare"]
    agents = remembering(world, model=BackgroundModel(complete=Refusing()))
    refused = Jobs(world.database, table=table, learner=world.learner, agents=agents, now=clock, new_id=world.new_id)
    ends = []
    for n in range(4):
        clock.move(days=1)
        run = await refused.run("assistant", "compare", f"2026-12-0{n + 1}")
        assert run is not None
        ends.append((run.state, run.counts.get("compared", 0), run.counts.get("set_aside", 0)))
    assert ends == [("failed", 1, 0), ("failed", 0, 0), ("failed", 0, 1), ("done", 0, 0)]
    assert judge.pairs == [("nuts", "eats nuts every day")]
    waiting = await world.database.read(
        lambda r: r.all("select id from memories where compared_at is null and kind = 'fact'")
    )
    assert waiting == []
