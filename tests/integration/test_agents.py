"""Which agent answers: rules for people with a database of their own, and /agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import Inbound
from gateway import app
from gateway.config.loading import load
from gateway.pipeline.policy import Rules
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.stores import opened
from tests.kit.talk import facts, group, remember

AGENTS = {"assistant": "remora.db", "research": "remora.db", "work": "work.db"}


@pytest.fixture
def bench(tmp_path: Path, clock: Clock) -> Bench:
    made = Bench(tmp_path, ScriptedModel(), Screen(), clock)
    made.databases = AGENTS
    return made


async def served_by(bench: Bench) -> str:
    """The name of the agent that answered last, as its turn says."""
    row = await bench.memory.database.read(
        lambda reader: reader.one("select a.name from turns t join agents a on a.id = t.agent_id order by t.id desc")
    )
    return "" if row is None else str(row["name"])


async def test_the_chosen_agent_answers_also_after_a_restart(bench: Bench) -> None:
    async with bench.running():
        await bench.say("hello")
        assert await served_by(bench) == "assistant"
        await bench.say("/agent Research")
        assert bench.screen.texts[-1] == "From now on research answers here."
        await bench.say("and now?")
        assert await served_by(bench) == "research"
    async with bench.running():
        await bench.say("still there?")
        assert await served_by(bench) == "research"
        await bench.say("/agent default")
        assert "assistant" in bench.screen.texts[-1]
        await bench.say("back?")
        assert await served_by(bench) == "assistant"


async def test_only_agents_with_the_same_memory_can_be_chosen(bench: Bench) -> None:
    async with bench.running():
        await bench.say("/agent work")
        assert "no agent work" in bench.screen.texts[-1]
        await bench.say("/agent")
        assert "assistant answers here" in bench.screen.texts[-1] and "research" in bench.screen.texts[-1]
        assert "work" not in bench.screen.texts[-1]


async def test_in_a_group_only_admins_choose(bench: Bench) -> None:
    bench.rules = Rules(open_to_all=True, admins=frozenset({"1"}))
    async with bench.running():
        for person, answer in (("2", "Only an admin"), ("1", "From now on research")):
            await bench.say("/agent research", person=person, chat="room")
            assert bench.screen.texts[-1].startswith(answer)


def rules_for_people(folder: Path) -> dict[str, Inbound]:
    (folder / "config.yaml").write_text("http: {enabled: false}\nembedding: {provider: none}\n")
    (folder / "agents").mkdir()
    (folder / "agents" / "assistant.yaml").write_text("name: assistant\n")
    (folder / "agents" / "work.yaml").write_text("name: work\ndatabase: work.db\nrouting: {people: ['telegram:7']}\n")
    private = Inbound(
        channel="telegram", platform="telegram", bot_id="1", update_key="1", chat="7", chat_kind="private",
        author_id="7", author_name="Ada", message_id="1", text="hello", sent_at=1,
    )  # fmt: skip
    return {"private": private, "group": replace(private, chat="-100", chat_kind="group")}


def test_a_rule_for_a_person_gives_their_private_chat_an_agent_with_another_database(tmp_path: Path) -> None:
    """In a group everybody shares one store, so the place decides there."""
    said = rules_for_people(tmp_path)
    route = app.routing(load(tmp_path / "config.yaml", {}, tmp_path))
    assert route(said["private"]) == "work"
    assert route(said["group"]) == "assistant"


async def test_threads_keep_their_own_memory_where_the_agent_says_so(tmp_path: Path, clock: Clock) -> None:
    """Facts that the group knew stay known; facts that one thread learns are not known in the next."""
    async with opened(tmp_path / "remora.db", clock) as memory:
        for own, text in ((False, "the roof leaks"), (True, "the door is blue")):
            here = await memory.identities.context(*group("room", "ada", thread="1", own_threads=own))
            await remember(memory, here, text)
        known = [
            await facts(memory, await memory.identities.context(*group("room", "ada", thread=thread, own_threads=True)))
            for thread in ("1", "2")
        ]
    assert known == [[("note", "the door is blue"), ("note", "the roof leaks")], [("note", "the roof leaks")]]
