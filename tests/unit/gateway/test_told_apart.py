"""The hits of a search: those that have its words, and those that are merely near."""

from __future__ import annotations

from gateway.commands.listing import told_apart
from memory.recall.search import Hit
from memory.score import known_parts
from memory.store.memories import Memory


def hit(value: str, **parts: float) -> Hit:
    memory = Memory(
        id=1, short_id="m_1", kind="fact", owner_id=1, author_id=1, subject_id=1, subject_name="Ada", subject="",
        agent_id=None, category="preference", topic="", key="likes", value=value, flags=(), importance=5,
        confidence=1.0, strength=1.0, origin="told", learned_at=1, local_date="2026-05-01", valid_from=1,
        valid_until=None, superseded_by=None, access_count=0, reinforced_count=0, last_reinforced_at=1, pinned=False,
        confirmed=False, archived_at=None,
    )  # fmt: skip
    return Hit(score=1.0, memory=memory, parts=known_parts(parts))


def near(hits: list[Hit], *terms: str) -> dict[str, bool]:
    return {one.memory.value: is_near for one, is_near in told_apart(hits, terms) if one.memory is not None}


def test_what_has_the_words_is_told_from_what_is_near() -> None:
    """In the order of the scores; what is hardly like it goes where something has the words."""
    hits = [hit("rum", late=0.6, vectors=0.2), hit("tea", words=0.4, late=0.5), hit("Lisbon", vectors=0.01)]
    found = near(hits, "tea")
    assert found == {"rum": True, "tea": False} and list(found) == ["rum", "tea"]


def test_what_has_few_of_the_words_is_near_too() -> None:
    """One word of five that many a memory holds is no match."""
    hits = [hit("tea", words=0.4), hit("tea with rum", words=0.1)]
    assert near(hits, "tea") == {"tea": False, "tea with rum": True}


def test_where_nothing_has_the_words_all_of_it_is_near() -> None:
    """However little it is like them: the only right answer may be the least of it."""
    hits = [hit("rum", late=0.6), hit("tea", late=0.02), hit("Lisbon", late=0.0, speaker=0.2)]
    assert near(hits, "beverages") == {"rum": True, "tea": True, "Lisbon": True}


def test_what_was_found_by_its_time_is_just_what_was_asked_for() -> None:
    """It has no parts of a score, and none of the words."""
    assert near([hit("Lisbon")], "yesterday") == {"Lisbon": False}
