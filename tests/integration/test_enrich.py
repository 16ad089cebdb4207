"""Names looked for at night: by a trained model or the agent's own, so many a day, linked where they stand."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from typing import Any

import pytest

from memory.context import Context
from memory.errors import NotFound
from memory.jobs import enrich
from memory.jobs.base import Night
from memory.jobs.runner import Jobs
from memory.jobs.runs import Run
from memory.learn.answer import Unreadable
from memory.learn.entities import Reads, by_spacy
from memory.learn.model import BackgroundModel, BudgetSpent, ModelRequest, RequestRefused
from memory.service import Service
from memory.store import entities
from memory.store.entities import Named
from tests.kit.fakes import NOON, Clock
from tests.kit.forgetting import forgotten_alone
from tests.kit.minds import Model, lines
from tests.kit.stores import planted, remembering, rows, wrote
from tests.kit.talk import act, group, private

DAY = "2026-11-21"


class Trained:
    """Finds every word with a capital but the first, and keeps what it has read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[Named]]:
        self.read += texts
        return [
            [Named(type="organization", name=word) for word in text.split()[1:] if word[0].isupper()] for text in texts
        ]


def jobs(memory: Service, clock: Clock, *, trained: Reads | None = None, model: Model | None = None) -> Jobs:
    return Jobs(
        memory.database,
        table=[enrich.job(lambda: trained)],
        learner=memory.learner,
        agents=remembering(memory, model=None if model is None else BackgroundModel(complete=model)),
        now=clock,
        new_id=memory.new_id,
    )


async def night(work: Jobs, period: str = DAY) -> Run:
    run = await work.run("assistant", "enrich", period)
    assert run is not None
    return run


async def links(memory: Service) -> set[tuple[object, ...]]:
    return set(
        await rows(
            memory,
            "select m.value, e.name, e.type from memory_entities l join memories m on m.id = l.memory_id"
            " join entities e on e.id = l.entity_id",
        )
    )


async def unread(memory: Service) -> int:
    return len(await rows(memory, "select id from memories where enriched_at is null"))


async def test_the_agents_model_names_what_stands_in_the_notes(memory: Service, ada: Context, clock: Clock) -> None:
    """Names that it makes up, parts of words and everyday words are not linked; its types are ours."""
    await planted(memory, ada, "took the cat to dr. lin near Almenara")
    await planted(memory, ada, "周末和阿珍去了西湖", kind="event", key="event")
    model = Model(
        {
            "1": [{"name": "西湖", "type": "Location"}, {"name": "珍妮", "type": "person"}],
            "2": [{"name": "Lin", "type": "person"}, {"name": "Almenara", "type": "town"},
             {"name": "Alme", "type": "person"}, {"name": "the", "type": "other"},
             {"name": "Nobody", "type": "person"}],
        }
    )  # fmt: skip
    run = await night(jobs(memory, clock, model=model))
    assert await links(memory) >= {
        ("took the cat to dr. lin near Almenara", "Lin", "person"),
        ("took the cat to dr. lin near Almenara", "Almenara", "other"),
        ("周末和阿珍去了西湖", "西湖", "location"),
    }
    assert {name for _, name, _ in await links(memory)} == {"Lin", "Almenara", "西湖"}
    assert (run.state, run.counts) == ("done", {"read": 2, "names": 3})
    assert [row["note"] for row in lines(model.asked[0], "NOTES:")] == [
        "周末和阿珍去了西湖",
        "took the cat to dr. lin near Almenara",
    ]


async def test_a_second_night_asks_nothing_also_where_nothing_was_found(
    memory: Service, ada: Context, clock: Clock
) -> None:
    await planted(memory, ada, "likes tea")
    model = Model("```json\n{}\n```")
    assert (await night(jobs(memory, clock, model=model))).counts == {"read": 1, "names": 0}
    assert (await night(jobs(memory, clock, model=model), "2026-11-22")).counts == {}
    assert len(model.asked) == 1 and await unread(memory) == 0
    assert await jobs(memory, clock, model=model).run("assistant", "enrich", DAY) is None


async def test_the_trained_model_reads_latin_script_and_the_agents_the_rest(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """The trained model, which is free, goes first; it knows English only."""
    await planted(memory, ada, "works for Siemens")
    await planted(memory, ada, "在西门子工作")
    trained, model = Trained(), Model({"1": ["西门子"]})
    run = await night(jobs(memory, clock, trained=trained, model=model))
    assert trained.read == ["works for Siemens"]
    assert [row["note"] for row in lines(model.asked[0], "NOTES:")] == ["在西门子工作"]
    assert await links(memory) == {
        ("works for Siemens", "Siemens", "organization"),
        ("在西门子工作", "西门子", "other"),
    }
    assert run.counts == {"read": 2, "names": 2}


async def test_without_any_model_nothing_is_marked_and_it_is_said(memory: Service, ada: Context, clock: Clock) -> None:
    """The night after a model is configured, what was left is read."""
    await planted(memory, ada, "works for Siemens")
    run = await night(jobs(memory, clock))
    assert (run.state, run.counts) == ("done", {"no_model": 1})
    assert await unread(memory) == 1
    run = await night(jobs(memory, clock, trained=Trained()), "2026-11-22")
    assert run.counts == {"read": 1, "names": 1}


async def test_what_the_trained_model_cannot_read_does_not_stand_in_the_way(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """Fifty new memories in another script must not keep older ones waiting for good."""
    await planted(memory, ada, "works for Siemens")
    for n in range(enrich.PER_DAY + 10):
        await planted(memory, ada, f"在公司工作{n}")
    run = await night(jobs(memory, clock, trained=Trained()))
    assert run.counts == {"read": 1, "names": 1, "no_model": 60}


async def test_so_many_a_day_of_all_people_together_the_newest_first(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """DESIGN 5.3: 50 a night, whoever has most to tell, and however often it is run."""
    bob, club = await memory.identities.context(*private("bob")), await memory.identities.context(*group("club", "ada"))
    for n in range(40):
        for who in (ada, bob, club):
            await planted(memory, who, f"saw Place{n:02d} there")
    trained = Trained()
    work = jobs(memory, clock, trained=trained)
    assert (await night(work)).counts == {"read": 50, "names": 50}
    assert sorted(set(trained.read))[0] == "saw Place23 there" and await unread(memory) == 70
    assert (await night(work, f"{DAY}T18:00:00")).counts == {}  # by hand, the same day
    assert (await night(work, "2026-11-22")).counts == {"read": 50, "names": 50}
    assert (await night(work, "2026-11-23")).counts == {"read": 20, "names": 20}
    assert await unread(memory) == 0


async def test_each_agent_reads_for_its_own_people(memory: Service, ada: Context, clock: Clock) -> None:
    """Where agents share a store nobody's memories are read twice, nor by an agent they don't talk to."""
    bob = await memory.identities.context(*private("bob", agent="other"))
    await planted(memory, ada, "works for Siemens")
    await planted(memory, bob, "works for Bosch")
    trained = Trained()
    await night(jobs(memory, clock, trained=trained))
    assert trained.read == ["works for Siemens"]


async def test_what_has_names_enough_or_holds_no_more_is_left_alone(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """Neither what was set aside or replaced, nor styles, nor a memory with three names."""
    known = await planted(memory, ada, "Anna and Ben and Carl went to Rome")
    old = await planted(memory, ada, "lived in Porto")
    archived = await planted(memory, ada, "was in Genoa")
    await planted(memory, ada, "talk like Shakespeare", kind="style", agent_id=ada.scope.agent_id)

    def act(tx: Any) -> None:
        tx.run("update memories set valid_until = 1 where id = ?", (old,))
        tx.run("update memories set archived_at = 1 where id = ?", (archived,))
        names = [Named(type="person", name=name) for name in ("Anna", "Ben", "Carl")]
        entities.note(tx, ada.scope.writes_to, known, names, now=NOON)

    await wrote(memory, act)
    trained = Trained()
    assert (await night(jobs(memory, clock, trained=trained))).counts == {}
    assert trained.read == []


async def test_a_name_is_taken_for_what_it_is_known_as(memory: Service, ada: Context, clock: Clock) -> None:
    """Else one project would be known as an organization beside it, and half of its memories with each."""
    first = await planted(memory, ada, "leads project Heron")

    def act(tx: Any) -> None:
        entities.note(tx, ada.scope.writes_to, first, [Named(type="project", name="Heron")], now=NOON)
        tx.run("update memories set enriched_at = 1 where id = ?", (first,))

    await wrote(memory, act)
    await planted(memory, ada, "shipped Heron today")
    await night(jobs(memory, clock, trained=Trained()))
    assert {(name, kind) for _, name, kind in await links(memory)} == {("Heron", "project")}
    about = await memory.browse.entity(ada, "heron")
    assert about is not None and len(about.memories) == 2


async def test_the_model_is_asked_in_portions_and_one_bad_answer_spoils_one(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """Names from the good answer stay; the rest is asked once more when the run is tried again."""
    for n in range(25):
        await planted(memory, ada, f"saw Place{n:02d} there")
    model = Model({"1": ["Place24"], "20": ["Place05"]}, "I can't do that.", {"1": ["Place04"]})
    work = jobs(memory, clock, model=model)
    run = await night(work)
    assert (run.state, run.error) == ("failed", Unreadable.code)
    assert {name for _, name, _ in await links(memory)} == {"Place24", "Place05"} and await unread(memory) == 5
    clock.move(minutes=11)
    run = await night(work)
    assert (run.state, run.counts) == ("done", {"read": 25, "names": 3})
    assert [len(lines(asked, "NOTES:")) for asked in model.asked] == [20, 5, 5]


async def test_long_memories_are_read_in_part(memory: Service, ada: Context, clock: Clock) -> None:
    """A pasted page must not fill the prompt; what stands behind is not invented from."""
    await planted(memory, ada, "met Quaxo " + "and went on " * 100 + "with Zorba")
    model = Model({"1": ["Quaxo", "Zorba"]})
    await night(jobs(memory, clock, model=model))
    assert {name for _, name, _ in await links(memory)} == {"Quaxo"}
    assert len(model.asked[0].material) < 1_200


async def test_what_is_forgotten_while_the_model_reads_is_not_linked(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """A name without its memory would outlive the forgetting."""
    gone, closed = await planted(memory, ada, "met Quaxo"), await planted(memory, ada, "met Zorba")

    async def answer(_ask: object) -> str:
        await forgotten_alone(memory, ada, gone)
        await wrote(memory, lambda tx: tx.run("update memories set archived_at = 1 where id = ?", (closed,)))
        return '{"1": ["Zorba"], "2": ["Quaxo"]}'

    run = await night(jobs(memory, clock, model=Model(answer)))
    assert run.counts == {"read": 0, "names": 0}
    assert await rows(memory, "select name from entities") == []


async def test_taken_back_it_is_as_before_and_not_done_again(memory: Service, ada: Context, clock: Clock) -> None:
    """Somebody who doesn't want these links must not get them the next night."""
    tables = "select * from memory_entities", "select * from entities", "select * from memories order by id"
    await planted(memory, ada, "works for Siemens")
    before = [await rows(memory, sql) for sql in tables]
    trained = Trained()
    work = jobs(memory, clock, trained=trained)
    run = await night(work)
    assert await links(memory)
    await work.undo(ada, run.id)
    assert [await rows(memory, sql) for sql in tables] == before
    assert (await night(work, "2026-11-22")).counts == {}
    assert len(trained.read) == 1


async def test_what_was_read_and_named_nobody_is_shown_to_nobody(memory: Service, ada: Context, clock: Clock) -> None:
    """That a row was gone through is the job's own note: no run of theirs, none to look at, none to take back."""
    await planted(memory, ada, "works for Siemens")
    await planted(memory, ada, "drinks tea")
    work = jobs(memory, clock, trained=Trained())
    assert [change.memory.value for change in await work.preview(ada, "enrich")] == ["works for Siemens"]
    first = await night(work)
    assert first.counts == {"read": 2, "names": 1}
    assert [change.memory.value for change in await work.did(ada, first.id)] == ["works for Siemens"]
    for day in range(22, 27):
        await planted(memory, ada, f"drinks tea on day {day}")
        run = await night(work, f"2026-11-{day}")
        assert run.counts == {"read": 1, "names": 0}
        assert await work.item(ada, run.id) == []
        with pytest.raises(NotFound):
            await work.did(ada, run.id)
    for limit in (1, 2, 10):
        assert [item.run.id for item in await work.mine(ada, limit=limit)] == [first.id]


async def test_nobody_is_gone_through_of_whom_nothing_is_learned(memory: Service, ada: Context, clock: Clock) -> None:
    """While it is off in their chat; then it is made up for."""
    await planted(memory, ada, "works for Siemens")
    trained = Trained()
    work = jobs(memory, clock, trained=trained)
    await act(memory, ada, lambda edits: edits.set_learning(False))
    assert (await night(work)).counts == {} and trained.read == [] and await unread(memory) == 1
    await act(memory, ada, lambda edits: edits.set_learning(True))
    assert (await night(work, "2026-11-22")).counts == {"read": 1, "names": 1}


@pytest.mark.sqlite("reads its plan of a query")
async def test_the_newest_are_found_without_sorting_all_there_are(memory: Service) -> None:
    """The rows that wait may be a million, and the night asks for them once for each owner."""
    of = Night(agent_id=1, day=DAY, timezone="UTC", now=NOON, new_id=lambda: "m_x", model=True)
    asked: list[str] = []

    class Explained:
        def __init__(self, reader: Any) -> None:
            self._reader = reader

        def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
            if "+m.enriched_at" in sql:
                asked.extend(row["detail"] for row in self._reader.all(f"explain query plan {sql}", parameters))
            found: list[Any] = self._reader.all(sql, parameters)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

    await memory.database.read(lambda reader: list(enrich._waiting(Explained(reader), of)))
    assert any("PRIMARY KEY (rowid<?)" in detail for detail in asked)
    assert not any("TEMP B-TREE FOR ORDER BY" in detail for detail in asked)


@pytest.mark.skipif(
    importlib.util.find_spec("en_core_web_sm") is None, reason="needs remora[entities] and spaCy's model"
)
async def test_the_real_trained_model_reads_for_the_night(memory: Service, ada: Context, clock: Clock) -> None:
    await planted(memory, ada, "met Mary Chen, who moved to Lisbon last year and works at Siemens")
    run = await night(jobs(memory, clock, trained=by_spacy))
    assert {("Mary Chen", "person"), ("Lisbon", "location")} <= {(name, kind) for _, name, kind in await links(memory)}
    assert run.state == "done"


async def test_one_memory_that_the_model_refuses_holds_up_no_other(memory: Service, ada: Context, clock: Clock) -> None:
    """It is found by halves, and after three refusals it is not asked about any more."""
    for n in range(25):
        await planted(memory, ada, f"saw {'Poison' if n == 11 else f'Place{n:02d}'} there")

    async def answers(request: ModelRequest) -> str:
        if "Poison" in request.material:
            raise RequestRefused("no")
        return json.dumps({str(line["n"]): [line["note"].split()[1]] for line in lines(request, "NOTES:")})

    work, ends = jobs(memory, clock, model=Model(*[answers] * 100)), []
    for n in range(4):
        run = await night(work, f"2026-11-2{n + 1}")
        ends.append((run.state, run.counts.get("read", 0), run.counts.get("set_aside", 0)))
        assert await unread(memory) == 1
        clock.move(days=1)
    assert ends == [("failed", 24, 0), ("failed", 0, 0), ("failed", 0, 1), ("done", 0, 0)]
    assert len(await links(memory)) == 24


async def test_what_was_refused_before_the_tokens_ran_out_comes_last_the_next_night(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """Else the same rows would use up the tokens of every night, and the others were never read."""
    for n in range(25):
        await planted(memory, ada, f"saw {'Poison' if n == 11 else f'Place{n:02d}'} there")
    found = False

    async def answers(request: ModelRequest) -> str:
        nonlocal found
        if found:
            raise BudgetSpent("used up", until=clock() + 1_000)
        notes = lines(request, "NOTES:")
        if "Poison" in request.material:
            found = len(notes) == 1
            raise RequestRefused("no")
        return json.dumps({str(line["n"]): [line["note"].split()[1]] for line in notes})

    run = await night(jobs(memory, clock, model=Model(*[answers] * 100)), "2026-11-21")
    assert run.state == "skipped" and found
    assert len(await rows(memory, "select memory_id from refusals")) == 1
