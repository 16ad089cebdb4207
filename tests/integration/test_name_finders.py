"""Who finds names in what an agent learns: patterns, its models, spaCy, or nobody, as its file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.__main__ import main
from memory.jobs import enrich
from memory.jobs.runner import Jobs
from memory.learn.agents import AgentMemory
from memory.learn.entities import trained
from memory.learn.model import BackgroundModel
from memory.store.entities import Named
from memory.store.scopes import NameFinder
from tests.kit import stores
from tests.kit.fakes import Clock
from tests.kit.minds import Model
from tests.kit.stores import rows
from tests.kit.talk import private, say, teach

ADA = private("ada")
#: The patterns see the address, the reading model also "lin", spaCy Siemens and the nightly model the Chinese name.
SAID = "Ask lin at lin@example.org about the job at siemens", "周末和阿珍去了西湖"
READ = {
    "facts": [
        {"about": "self", "category": "work", "key": "contact", "value": said, "messages": [n]}
        for n, said in enumerate(SAID, start=1)
    ],
    "entities": [{"name": "lin", "type": "person"}],
}


@pytest.mark.parametrize(
    ("finder", "names"),
    [
        ("auto", {"lin@example.org", "lin", "siemens", "西湖"}),
        ("spacy", {"lin@example.org", "siemens"}),
        ("model", {"lin@example.org", "lin", "西湖"}),
        ("patterns", {"lin@example.org"}),
        ("none", set()),
    ],
)
async def test_the_agents_file_chooses_who_finds_names(
    tmp_path: Path, clock: Clock, finder: NameFinder, names: set[str]
) -> None:
    at_night = Model({"1": [{"name": "西湖", "type": "location"}]})
    settings = AgentMemory(model=BackgroundModel(complete=Model(READ)), entities=finder)
    async with stores.opened(tmp_path / "r.db", clock, agents={"assistant": settings}) as memory:
        context = (await say(memory, ADA, *SAID, clock=clock)).context
        await memory.learner.flush(context.session.id, "test")
        nights = Jobs(
            memory.database, table=[enrich.job(lambda: _trained)], learner=memory.learner,
            agents=stores.remembering(memory, model=BackgroundModel(complete=at_night)), now=clock, new_id=memory.new_id,
        )  # fmt: skip
        await nights.run("assistant", "enrich", "2026-11-22")
        found = {name for (name,) in await rows(memory, "select name from entities")}
    assert found & {"lin@example.org", "lin", "siemens", "西湖"} == names
    assert (found == set()) == (finder == "none")
    assert bool(at_night.asked) == (finder in ("auto", "model"))


def _trained(texts: object) -> list[list[Named]]:
    assert isinstance(texts, list)
    return [[Named(type="organization", name="siemens")] if "siemens" in text else [] for text in texts]


async def test_a_change_of_the_file_counts_from_the_next_start(tmp_path: Path, clock: Clock) -> None:
    choices: list[NameFinder] = ["none", "patterns"]
    for count, finder in enumerate(choices):
        settings = {"assistant": AgentMemory(entities=finder)}
        async with stores.opened(tmp_path / "r.db", clock, agents=settings) as memory:
            await teach(memory, ADA, f"My sister is called {finder.title()}ia", clock=clock)
            assert len(await rows(memory, "select id from memories where kind = 'fact'")) == count + 1
            assert len(await rows(memory, "select id from entities where type = 'person'")) == count


@pytest.mark.skipif(trained() is not None, reason="spaCy's model is installed here")
def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name, finder in (("one", "spacy"), ("two", "model"), ("three", "auto")):
        (tmp_path / "agents" / f"{name}.yaml").write_text(f"name: {name}\nmemory: {{entities: {finder}}}\n")
    (tmp_path / "config.yaml").write_text("default_agent: one\n")
    told = CliRunner().invoke(main, ["check", "--config", str(tmp_path / "config.yaml")])
    assert told.exit_code == 0
    assert "Agent one is to find names with spaCy" in told.stderr and "remora[entities]" in told.stderr
    assert "Agent two is to find names with its model (memory.entities), but has none" in told.stderr
    assert "three" not in told.stderr
