"""Markdown notes of file-based assistants, read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import keys
from memory.text.guard import clean
from memory.text.secrets.redact import redact
from memory.transfer.formats.markdown import day_of, read
from memory.transfer.formats.material import ImportedItem, Material, Ownership
from memory.transfer.formats.remora import NotRemoraExport, iso, page
from memory.transfer.formats.remora import read as read_export
from tests.kit.tables import each_row


def notes(text: str, *, where: str = "MEMORY.md", of: Ownership = "person", day: str | None = None) -> Material:
    return read(
        text,
        where=where,
        written_at=1_700_000_000_000,
        timezone="Europe/Lisbon",
        mask=lambda one: redact(clean(one)),
        of=of,
        day=day,
    )


def told(items: tuple[ImportedItem, ...]) -> list[tuple[str, str, str]]:
    return [(item.category, item.key, item.value) for item in items]


@each_row(
    ("line", "wanted"),
    [
        ("- **Name:** Ada", ("identity", "name", "Ada")),
        ("- What to call them: Ada", ("identity", "called", "Ada")),
        ("- **Timezone**: Europe/Lisbon", ("identity", "timezone", "Europe/Lisbon")),
        ("- 城市：上海", ("place", "home", "上海")),
        ("The user lives in Lisbon.", ("place", "home", "Lisbon")),
        ("- User's name is Ada", ("identity", "name", "Ada")),
        ("- User prefers short answers", ("instruction", "instruction", "I prefer short answers")),
        ("- 用户住在上海", ("place", "home", "上海")),
        ("- I work at Nordhaven", ("work", "employer", "Nordhaven")),
        ("- Deploys go out on Tuesdays", ("decision", "note", "Deploys go out on Tuesdays")),
        ("| Key | Value |\n|---|---|\n| Employer | Nordhaven |", ("work", "employer", "Nordhaven")),
    ],
)
def test_a_statement_gets_the_key_that_talk_would_give_it(line: str, wanted: tuple[str, str, str]) -> None:
    """Else somebody has two homes: one told, one imported."""
    assert told(notes(line).items) == [wanted]


def test_headings_give_category_and_topic() -> None:
    (item,) = notes("# Memory\n## Projects\n### Nordhaven site\n- uses a dark palette\n").items
    assert (item.category, item.topic, item.where) == ("project", "nordhaven-site", "MEMORY.md:4")


def test_a_list_below_an_item_keeps_what_it_hangs_on() -> None:
    """ "Deadline May" alone says nothing."""
    found = notes("- Apollo:\n  - deadline May\n  - written in Rust\n").items
    assert [item.value for item in found] == ["Apollo: deadline May", "Apollo: written in Rust"]


def test_what_patterns_leave_over_is_kept_whole_beside_them() -> None:
    found = notes("- My sister is called Vera, teaches at Oslo harbour school and comes each summer").items
    assert ("relation", "sister", "Vera") in told(found)
    assert any(item.key == "note" and "each summer" in item.value for item in found)


def test_entries_that_a_section_sign_parts_are_statements_of_their_own() -> None:
    """So does Hermes write; the entries of one paragraph must not become one."""
    found = notes("User prefers short answers\n§\nThe machine runs Ubuntu\nand has Docker\n§\nBuild with make").items
    assert [item.value for item in found] == [
        "I prefer short answers", "The machine runs Ubuntu and has Docker", "Build with make",
    ]  # fmt: skip


def test_daily_notes_are_events_of_their_day() -> None:
    """Whatever the clock of this machine says."""
    found = notes("# 12 May\n- went to Sintra\n- [x] bought bread", where="2026-05-12.md", day="2026-05-12").items
    assert [(item.kind, item.day, item.value) for item in found] == [
        ("event", "2026-05-12", "went to Sintra"),
        ("event", "2026-05-12", "bought bread"),
    ]
    assert {item.said_at for item in found} == {1_778_583_600_000}  # noon in Lisbon


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("[2026-05-12 10:30] went to Sintra", "2026-05-12"),
        ("## 2026-05-12\n- went to Sintra", "2026-05-12"),
        ("- 2026-05-12: went to Sintra", "2026-05-12"),
    ],
)
def test_a_date_before_a_statement_says_when_it_was(text: str, day: str) -> None:
    (item,) = notes(text).items
    assert (item.kind, item.day, item.value) == ("event", day, "went to Sintra")


def test_a_dated_heading_with_a_tag_is_a_fact_told_that_day() -> None:
    """Another assistant's way to append to its memory."""
    (item,) = notes("### 2026-02-26 [preference] User prefers dark mode").items
    assert (item.kind, item.day, item.value) == ("fact", "2026-02-26", "dark mode")


def test_blanks_code_and_boxes_that_were_not_ticked_are_named() -> None:
    text = "- **Pronouns:** _(optional)_\n- **Notes:**\n## Style\n- [x] Casual\n- [ ] Formal\n\n```sh\nrm x\n```\n"
    found = notes(text, where="USER.md")
    assert [item.value for item in found.items] == ["Casual"]
    assert [skipped.where for skipped in found.skipped] == ["USER.md:1", "USER.md:2", "USER.md:5", "USER.md:7"]


def test_front_matter_of_a_profile_is_read() -> None:
    found = notes("---\nname: Ada\ntags: [x]\n---\n- likes tea\n", where="USER.md").items
    assert told(found)[0] == ("identity", "name", "Ada") and found[-1].where == "USER.md:5"


def test_secrets_are_masked_before_anything_else() -> None:
    key = "sk-ant-" + "a1B2" * 8
    found = notes(f"- **API key:** {key}\n- the token {key} is for staging")
    assert key not in repr(found) and found.masked == 2
    assert [skipped.why.split(":")[0] for skipped in found.skipped] == ["only a masked secret"]


def test_of_a_group_or_an_agent_nobody_speaks_of_themselves() -> None:
    """ "I live in Lisbon" in the notes of an agent is not its home."""
    assert told(notes("- I live in Lisbon", of="agent").items) == [("decision", "note", "I live in Lisbon")]


def test_a_long_paragraph_becomes_several_memories() -> None:
    """None longer than a memory may be, and no word lost."""
    text = " ".join(f"Sentence number {n} tells something." for n in range(300))
    found = notes(text).items
    assert max(len(item.value) for item in found) <= keys.VALUE_LIMIT
    assert " ".join(item.value for item in found) == text


@each_row(("name", "day"), [("2026-05-12.md", "2026-05-12"), ("20260512.md", "2026-05-12"),
                                           ("2026-05-12-trip.md", "2026-05-12"), ("2026-13-40.md", None),
                                           ("notes.md", None)])  # fmt: skip
def test_the_day_of_a_file_is_in_its_name(name: str, day: str | None) -> None:
    assert day_of(name) == day


@given(st.text(alphabet=st.sampled_from("ab *_-#>|[]()`:：§\n \t0129<!x用户"), max_size=400))
def test_whatever_stands_in_a_file_is_read(text: str) -> None:
    for item in notes(text, where="USER.md").items:
        assert 0 < len(item.value) <= keys.VALUE_LIMIT and len(item.key) <= keys.KEY_LIMIT
        assert item.category in keys.CATEGORIES


def test_what_a_template_says_to_the_assistant_is_no_fact_about_anybody() -> None:
    """A file that was never filled in teaches nothing."""
    text = (
        "# USER.md - About Your Human\n\n_Learn about the person you're helping. Update this as you go._\n\n"
        "- **Name:** Ada\n- **Pronouns:** _(optional)_\n- **Notes:**\n\n## Context\n\n"
        "_(What do they care about? What annoys them? Build this over time.)_\n\n---\n\n"
        "The more you know, the better you can help. But remember: you're learning about a person, not building a"
        " dossier. Respect the difference.\n"
    )
    read = notes(text, where="USER.md")
    assert told(read.items) == [("identity", "name", "Ada")]
    assert any("template" in each.why for each in read.skipped)


@each_row(("note", "kept"), [
        ("Prefers a pay as you go phone plan", "Prefers a pay as you go phone plan"),
        ("What annoys them: noise", "noise"),
        ("What annoys them? Noise before eight", "What annoys them? Noise before eight"),
        ("Please update this list when you hear of my new address",
         "Please update this list when you hear of my new address"),
        ("This file describes me: a plumber from Leeds", "a plumber from Leeds"),
        ("Update this as you go.", None),
        ("What do they care about? What annoys them? Build this over time.", None),
        ("Context: Learn about the people you’re helping.", None),
        ("This file stores important information that should persist across sessions.", None),
        ("This file is automatically updated by the bot when important information should be remembered.", None),
        ("Information about the user goes here.", None),
    ])  # fmt: skip
def test_a_note_that_only_holds_words_of_a_template_is_kept(note: str, kept: str | None) -> None:
    assert [item.value for item in notes(f"- {note}\n", where="USER.md").items] == ([] if kept is None else [kept])


# Our own export, read


MEMORY = {"kind": "fact", "category": "place", "key": "home", "value": "Lisbon", "learned_at": "2026-05-12T09:30:00Z"}


def document(**fields: object) -> str:
    return json.dumps({"format": "remora", "version": 1, "memories": [], "messages": []} | fields)


def test_a_bad_entry_is_named_and_costs_no_other() -> None:
    found = read_export(
        document(memories=[MEMORY | {"kind": "?"}, MEMORY, 5, MEMORY | {"learned_at": "noon"}]), mask=str
    )
    assert [item.value for item in found.items] == ["Lisbon"]
    assert [skipped.where for skipped in found.skipped] == ["memory 1", "memory 3", "memory 4"]


def test_times_survive_to_the_millisecond() -> None:
    (item,) = read_export(document(memories=[MEMORY | {"valid_from": iso(1_778_578_200_123)}]), mask=str).items
    assert item.standing is not None and item.standing.valid_from == 1_778_578_200_123


@each_row("text", ["", "{}", document(version=2), "[1]", "{" * 50_000])
def test_another_file_or_version_is_refused_in_words(text: str) -> None:
    """A newer one may mean something else by the same fields."""
    with pytest.raises(NotRemoraExport):
        read_export(text, mask=str)


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
    found = read_export(document(memories=memories, messages=messages), mask=str)
    silent = sum(isinstance(one, dict) and one.get("kind") in ("profile", "directive") for one in memories)
    assert len(found.items) + len(found.lines) + len(found.skipped) == len(memories) + len(messages) - silent
