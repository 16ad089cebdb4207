"""Filters in lists, searches, /forget and the model's search: what meets them, and what is said where nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.wording.texts import Texts
from memory.store.memories import Draft, insert
from tests.kit.bench import Handset, Talk
from tests.kit.fakes import Clock
from tests.kit.forgetting import let_go
from tests.kit.talk import private

EN = Texts("en")


@pytest.fixture
def talk(tmp_path: Path, clock: Clock) -> Talk:
    return Talk(tmp_path, Handset(), clock)


async def filed(talk: Talk, value: str, *, category: str = "project", topic: str = "", subject: str = "") -> str:
    context = await talk.memory.identities.context(*private("ada"))
    now = talk.clock()
    draft = Draft(
        kind="fact", owner_id=context.scope.writes_to, category=category, key="note", value=value, topic=topic,
        subject=subject, importance=5, confidence=0.9, origin="extracted", learned_at=now,
        local_date="2026-01-01", author_id=context.speaker.id, subject_id=None,
    )  # fmt: skip
    new_id = talk.memory.new_id
    memory_id = await talk.memory.database.write(lambda tx: insert(tx, draft, new_id=new_id, now=now))
    rows = await talk.rows(f"select short_id from memories where id = {memory_id}")
    await talk.memory.indexed()
    return str(rows[0][0])


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("topic:roof", {"slates", "gutter"}), ("topic:Roof gutter", {"gutter"}), ("gutter topic:roof", {"gutter"}),
        ('topic:"new kitchen"', {"oven"}), ("topic:new kitchen", {"oven"}), ("主题：roof", {"slates", "gutter"}),
        ("category:health", {"pollen"}), ("topic:health", {"pollen"}), ("topic:健康", {"pollen"}), ("health", {"pollen"}),
        ("health about:Miriam", {"pollen"}), ("about:Miriam", {"pollen", "violin"}),
        ("关于:Miriam", {"pollen", "violin"}), ("place:lisbon", {"flight"}), ("since:yesterday", {"flight", "oven"}),
        ("until:yesterday", {"slates", "gutter", "pollen", "violin"}),
        ("topic:roof until:yesterday", {"slates", "gutter"}),
        ("on:today", {"flight", "oven"}), ("日期:今天", {"flight", "oven"}),
    ],
)  # fmt: skip
async def test_a_list_shows_what_meets_all_filters(talk: Talk, typed: str, shown: set[str]) -> None:
    """The words beside filters, and a bare category, narrow it further."""
    async with talk.running():
        await filed(talk, "the slates are grey", topic="roof")
        await filed(talk, "the gutter leaks", topic="Roof")
        await filed(talk, "Miriam can't stand pollen", category="health")
        await filed(talk, "plays the violin", subject="Miriam", category="relation")
        talk.clock.move(days=3)
        await filed(talk, "the flight to Lisbon is at noon", category="plan")
        await filed(talk, "the oven is too wide", topic="new-kitchen")
        told = await talk.ask(f"/memory list {typed}")
        everything = {"slates", "gutter", "pollen", "violin", "flight", "oven"}
        assert {word for word in everything if word in told} == shown
        if ":" in typed or "：" in typed:
            found = await talk.ask(f"/memory search {typed}")
            assert shown == {word for word in everything if word in found} or "health about" in typed


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("topic:roof since:yesterday", [EN("filter.without", filter="since:yesterday", count=1)]),
        ("about:Nobody topic:roof", [EN("filter.without", filter="about:Nobody", count=1)]),
        ("topic:cellar", [EN("filter.none", filters="topic:cellar")]),
        ("colour:grey", ["“colour:”", "category:, topic:, key:, tag:, about:, place:, since:, until:, on:"]),
        ("since:banana", ["“banana”", "since:march"]),
        ("category:roof", ["“roof”", "health", "topic:…"]),
    ],
)
async def test_where_nothing_is_found_it_is_said_why(talk: Talk, typed: str, told: list[str]) -> None:
    """A filter that removes everything, that is unknown or that can't be read is named, in every command alike."""
    async with talk.running():
        await filed(talk, "the slates are grey", topic="roof")
        talk.clock.move(days=3)
        for command in ("/memory list", "/memory search", "/memory search grey", "/forget"):
            answer = await talk.ask(f"{command} {typed}")
            if command != "/memory search grey" or told[0] != EN("filter.none", filters="topic:cellar"):
                assert [one for one in told if one not in answer] == [], command


async def test_pages_of_a_filtered_list_are_turned(talk: Talk) -> None:
    """By their buttons, which carry the filters, and by a typed number before them."""
    async with talk.running():
        for n in range(12):
            await filed(talk, f"slate number {n}", topic="roof")
            await filed(talk, f"oven number {n}", topic="kitchen")
        first = await talk.ask("/memory list topic:roof")
        assert "10 of 12" in first and "oven" not in first
        for second in (await talk.press(talk.phone.button("›").data), await talk.ask("/memory list 2 topic:roof")):
            assert second.count("slate number") == 2 and "oven" not in second


async def test_forgetting_under_a_filter_takes_what_the_list_shows(talk: Talk) -> None:
    """And nothing else: `/forget topic:health` finds what `/memory list health` shows."""
    async with talk.running():
        pollen = await filed(talk, "can't stand pollen", category="health")
        old = await filed(talk, "old slates", topic="roof")
        talk.clock.move(days=3)
        new = await filed(talk, "new slates", topic="roof")
        assert pollen in await talk.ask("/memory list health")
        asked = await talk.ask("/forget topic:health")
        assert pollen in asked and old not in asked and new not in asked
        await talk.ask("no")
        asked = await talk.ask("/forget slates topic:roof since:yesterday")
        assert new in asked and old not in asked
        await talk.ask("yes")
        assert {memory.short_id for memory in await talk.remembered()} == {pollen, old}


MIRIAM = (
    "My sister is called Miriam", "Miriam moved to Porto in May", "I met MIRIAM's dentist", "Miriams Auto ist rot",
    "we saw Miriamne, the play", "I like tea",
)  # fmt: skip


async def test_whoever_is_forgotten_by_name_is_known_nowhere_any_more(talk: Talk) -> None:
    """Memories, messages, the bot's answers and the running session; the files hold no byte of the name."""
    async with talk.running():
        for text in MIRIAM:
            await talk.ask(text)
        await talk.memory.learner.flush((await talk.context()).session.id, "test")
        await talk.kept("Miriam has the spare key")
        await talk.memory.indexed()
        talk.model.answers = ["Give Miriam my love."]
        await talk.ask("I am off now")
        assert "Porto" in str(talk.model.requests[-1])
        asked = await talk.ask("/forget about:Miriam")
        memories = sum("Miriam" in f"{memory.value} {memory.subject}" for memory in await talk.remembered())
        assert memories >= 2 and f"Memories: {memories}. Messages: 4." in asked
        assert let_go() in await talk.ask("yes")
        said = [str(row[0]) for row in await talk.rows("select text from messages where role = 'user' and text <> ''")]
        assert said == [*MIRIAM[4:], "I am off now"]
        assert await talk.memory.browse.search(await talk.context(), "who is Miriam?", limit=5) == []
        assert "Porto" not in await talk.ask("/memory search who is Miriam?")
        await talk.ask("what did I tell you?")
        shown = str(talk.model.requests[-1])
        assert "Porto" not in shown and "spare key" not in shown and "tea" in shown
    left = [(file.name, name) for file in talk.folder.rglob("*") if file.is_file()
            for name in (b"Miriam moved", b"Miriam my love", b"Porto", b"spare key", b"dentist") if name in file.read_bytes()]  # fmt: skip
    assert left == []


async def test_in_a_group_only_ones_own_words_about_somebody_go(talk: Talk) -> None:
    async with talk.running():
        await talk.ask("Miriam sings in the choir", chat="club")
        talk.model.answers = ["So Miriam is next door", "Say hello to Miriam"]
        await talk.ask("Miriam is my neighbour", person="bob", chat="club")
        await talk.ask("what a day", chat="club")
        asked = await talk.ask("/forget about:Miriam", chat="club")
        assert "Messages: 1." in asked and "choir" in asked and "neighbour" not in asked
        await talk.ask("yes", chat="club")
        said = [str(row[0]) for row in await talk.rows("select text from messages where role = 'user' and text <> ''")]
        assert said == ["Miriam is my neighbour", "what a day"]
        answers = await talk.rows("select text from messages where role <> 'user' and text like '%Miriam%'")
        assert answers == [("So Miriam is next door",)]
