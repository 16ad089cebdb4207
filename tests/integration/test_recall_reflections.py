"""The share of reflections in a prompt: one of them, a small part, behind all facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.budget import count_tokens
from memory.context import Context
from memory.recall.recall import REFLECTION_SHARE, Budget, Snapshot, recall
from memory.recall.search import Hit
from memory.service import Service
from memory.store import memories, people
from memory.store.database import Reader, Transaction
from memory.store.memories import Memory
from tests.kit.bench import Handset, Talk
from tests.kit.fakes import DAY, Clock
from tests.kit.stores import draft
from tests.kit.talk import met, private, recalled

#: Tokens a line of the prompt costs beyond its words.
_LINE = 14


def row(n: int, kind: str, value: str, *, at: int, live: bool = True) -> Memory:
    return Memory(
        id=n, short_id=f"m_{n}", kind=kind, owner_id=1, author_id=None, subject_id=None, subject_name=None, subject="",  # type: ignore[arg-type]
        agent_id=None, category="conversation", topic="", key="insight" if kind == "reflection" else f"key {n}",
        value=value, flags=(), importance=5, confidence=1.0, strength=1.0, origin="derived", learned_at=at,
        local_date="2026-11-21", valid_from=at, valid_until=None if live else at, superseded_by=None, access_count=0,
        reinforced_count=0, last_reinforced_at=at, pinned=False, confirmed=False, archived_at=None,
    )  # fmt: skip


sentences = st.lists(
    st.integers(1, 30).map(lambda words: " ".join(["sail"] * words) + "."), min_size=1, max_size=12
).map(" ".join)
rows = st.lists(
    st.tuples(st.sampled_from(["fact", "reflection", "event"]), sentences, st.integers(0, 9), st.booleans()),
    max_size=40,
)


async def test_of_any_hits_one_reflection_at_most_stands_last_within_its_share(memory: Service) -> None:
    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(found=rows, tokens=st.integers(1, 2_000), items=st.integers(1, 8))
    def holds(reader: Reader, found: list[tuple[str, str, int, bool]], tokens: int, items: int) -> None:
        hits = [
            Hit(score=100.0 - n, memory=row(n, kind, value, at=at, live=live))
            for n, (kind, value, at, live) in enumerate(found, start=1)
        ]
        budget = Budget(items=items, tokens=tokens)
        got = recall(
            reader, hits, "sail", snapshot=Snapshot(), in_window=frozenset(), budget=budget,
            count_tokens=count_tokens, assistant="remy",
        )  # fmt: skip
        assert sorted(item.memory.id for item in got.items if item.memory) == list(range(1, len(hits) + 1))
        placed = [item for item in got.items if item.placed == "recalled"]
        insights = [item for item in placed if item.memory is not None and item.memory.kind == "reflection"]
        assert len(placed) <= items and len(insights) <= 1
        cost = sum(
            count_tokens(item.memory.key) + count_tokens(item.shown or item.memory.value) + _LINE
            for item in placed
            if item.memory is not None
        )
        assert cost <= tokens
        for item in insights:
            assert item.memory is not None and item is placed[-1] is got.items[-1]
            live = [hit.memory for hit in hits if hit.memory and hit.memory.kind == "reflection" and hit.memory.live]
            assert item.memory.learned_at == max(memory.learned_at for memory in live)
            assert item.shown.endswith(".") and item.memory.value.startswith(item.shown)
            assert count_tokens(item.memory.key) + count_tokens(item.shown) + _LINE <= tokens * REFLECTION_SHARE

    await memory.database.read(holds)


async def with_reflections(memory: Service, ada: Context, clock: Clock, count: int) -> None:
    """A year and more of weekly look backs on sailing, one fact on it, and more facts beside than a prompt knows."""

    def act(tx: Transaction) -> None:
        for n in range(count):
            of = {"kind": "reflection", "key": "insight", "origin": "derived", "author_id": None, "importance": 9}
            value = f"Sailing north matters most in week {n}. " + "Charts and tides and wind matter as well. " * 12
            made = draft(ada, value, clock, subject_id=None, **of)
            memories.insert(tx, replace(made, learned_at=clock() - (count - n) * 7 * DAY), new_id=new, now=clock())
        for n in range(60):
            made = draft(ada, f"thing {n}", clock, key=f"beside {n}", importance=9)
            memories.insert(tx, made, new_id=new, now=clock())
        made = draft(ada, "sailing north with Bo", clock, category="plan", key="goal", importance=1)
        memories.insert(tx, made, new_id=new, now=clock())

    new = memory.new_id
    await memory.database.write(act)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("question", ["who goes sailing north with me?", "what did I tell you this month?"])
async def test_a_hundred_look_backs_take_no_facts_place(
    memory: Service, clock: Clock, question: str, broken: bool
) -> None:
    """Only the latest is looked for in a turn, with an index, without one, and by time alone."""
    ada = await met(memory, clock)
    await with_reflections(memory, ada, clock, 100)
    clock.move(minutes=60)
    if broken:
        await memory.database.write(lambda tx: tx.run("drop table postings"))
    got = await recalled(memory, private("ada"), question, clock=clock)
    insights = [item.memory for item in got.items if item.memory is not None and item.memory.kind == "reflection"]
    assert all("week 99" in memory.value for memory in insights) and len(insights) <= 1
    assert got.items[0].memory is None or got.items[0].memory.kind != "reflection"
    if "sailing" in question:
        assert "sailing north with Bo" in {item.memory.value for item in got.items if item.memory is not None}
        assert got.items[-1].placed == "recalled" and got.items[-1].shown.startswith("Sailing north matters most")


async def test_a_search_on_purpose_finds_the_older_ones(memory: Service, clock: Clock) -> None:
    ada = await met(memory, clock)
    await with_reflections(memory, ada, clock, 10)
    hits = await memory.browse.search(ada, "which week was it that sailing north mattered", limit=30)
    kinds = [hit.memory.kind for hit in hits if hit.memory is not None]
    assert kinds.count("reflection") == 10


async def test_the_latest_of_linked_places_speaks_for_all(memory: Service, clock: Clock) -> None:
    """Somebody who talks in two places has a look back for each, and one prompt."""
    ada, phone = await met(memory, clock), await met(memory, clock, private("phone"))
    await with_reflections(memory, ada, clock, 3)
    clock.move(days=7)
    await with_reflections(memory, phone, clock, 3)
    await memory.database.write(lambda tx: people.link(tx, ada.speaker.id, phone.speaker.id))
    got = await recalled(memory, private("ada"), "who goes sailing north with me?", clock=clock)
    [insight] = [item.memory for item in got.items if item.memory is not None and item.memory.kind == "reflection"]
    assert insight.owner_id == phone.scope.writes_to


async def test_people_see_it_in_lists_in_full_and_as_part_of_a_reply(tmp_path: Path, clock: Clock) -> None:
    """And the model is told that it was concluded, behind what was told."""
    talk = Talk(tmp_path, Handset(), clock, "They do.", "They do.")
    async with talk.running():
        await talk.ask("hello")
        rows = await talk.memory.database.read(lambda r: r.all("select id from owners where kind = 'identity'"))
        owner_id = rows[0]["id"]

        def act(tx: Transaction) -> None:
            new = talk.memory.new_id
            parents = []
            for n in range(60):
                fact = _plain(owner_id, "fact", f"beside {n}", f"thing {n}", 9)
                parents.append(memories.insert(tx, fact, new_id=new, now=clock()))
            fact = _plain(owner_id, "fact", "goal", "sailing north with Bo", 1)
            parents.append(memories.insert(tx, fact, new_id=new, now=clock()))
            made = _plain(owner_id, "reflection", "insight", "Sailing north matters most to them now.", 5)
            memories.set_parents(tx, memories.insert(tx, made, new_id=new, now=clock()), parents)

        await talk.memory.database.write(act)
        clock.move(minutes=30)
        listed = await talk.ask("/memory list insights")
        assert (
            "Insights (1)" in listed and "Sailing north matters most to them now. (summary as of 21 Nov 2026)" in listed
        )
        assert "Sailing north matters most" in await talk.ask("/memory list tier 2 7")
        short_id = next(word for word in listed.split() if word.startswith("m_"))
        shown = await talk.ask(f"/memory show {short_id}")
        assert "insight" in shown and "Summarised from other memories as of 21 Nov 2026" in shown
        assert "and 49 more" in shown and shown.count("m_") <= 14
        assert "Sailing north matters" in await talk.ask("/memory search sailing")
        assert "They do." in await talk.ask("who goes sailing north with me?")
        asked = talk.model.requests[-1]
        prompt = str(asked.messages)
        assert 0 < prompt.index("sailing north with Bo") < prompt.index("Sailing north matters most")
        assert "concluded" in prompt[prompt.index("Sailing north matters most") :]
        why = await talk.ask("/why all")
        found = why[why.index("Found for your message") :]
        assert short_id in found and "(summary as of 21 Nov 2026)" in found


def _plain(owner_id: int, kind: str, key: str, value: str, importance: int) -> memories.Draft:
    return memories.Draft(
        kind=kind, owner_id=owner_id, category="conversation", key=key, value=value, importance=importance,  # type: ignore[arg-type]
        confidence=0.9, origin="derived", learned_at=1_795_262_400_000, local_date="2026-11-21",
    )  # fmt: skip
