"""Our own export, read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.transfer.formats.remora import NotRemoraExport, iso, page, read
from tests.kit.tables import each_row

MEMORY = {"kind": "fact", "category": "place", "key": "home", "value": "Lisbon", "learned_at": "2026-05-12T09:30:00Z"}


def document(**fields: object) -> str:
    return json.dumps({"format": "remora", "version": 1, "memories": [], "messages": []} | fields)


def test_a_bad_entry_is_named_and_costs_no_other() -> None:
    found = read(document(memories=[MEMORY | {"kind": "?"}, MEMORY, 5, MEMORY | {"learned_at": "noon"}]), mask=str)
    assert [item.value for item in found.items] == ["Lisbon"]
    assert [skipped.where for skipped in found.skipped] == ["memory 1", "memory 3", "memory 4"]


def test_times_survive_to_the_millisecond() -> None:
    (item,) = read(document(memories=[MEMORY | {"valid_from": iso(1_778_578_200_123)}]), mask=str).items
    assert item.standing is not None and item.standing.valid_from == 1_778_578_200_123


@each_row("text", ["", "{}", document(version=2), "[1]", "{" * 50_000])
def test_another_file_or_version_is_refused_in_words(text: str) -> None:
    """A newer one may mean something else by the same fields."""
    with pytest.raises(NotRemoraExport):
        read(text, mask=str)


def test_words_in_the_page_are_no_markdown() -> None:
    """Somebody's memory must not become a link or a heading in their own export."""
    fact: dict[str, object] = {"id": "m_1", "kind": "fact", "category": "place", "key": "home", "value": "# [x](http://x)\n<b>",
            "subject": "", "learned_at": "2026-05-12T09:30:00Z", "valid_until": None, "superseded_by": None,
            "archived_at": None, "pinned": True, "confirmed": False, "sources": [], "local_date": "2026-05-12"}  # fmt: skip
    shown = page(of={"name": "Ada"}, exported_at=0, memories=[fact], messages=[])
    assert "\\# \\[x\\](http://x) \\<b\\>" in shown and "pinned" in shown


_VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.lists(st.text(), max_size=2)
)


@given(
    st.lists(st.dictionaries(st.sampled_from([*MEMORY, "valid_until", "sources", "tags", "by", "strength"]), _VALUES)),
    st.lists(st.dictionaries(st.sampled_from(["n", "time", "role", "author", "text", "name"]), _VALUES)),
)
def test_whatever_stands_in_an_export_of_ours_is_read(memories: list[object], messages: list[object]) -> None:
    memories = [MEMORY | one if isinstance(one, dict) else one for one in memories]
    found = read(document(memories=memories, messages=messages), mask=str)
    silent = sum(isinstance(one, dict) and one.get("kind") in ("profile", "directive") for one in memories)
    assert len(found.items) + len(found.lines) + len(found.skipped) == len(memories) + len(messages) - silent
