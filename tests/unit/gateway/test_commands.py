"""Commands: which texts are one, and how they are offered to platforms."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from channels.base import CommandSpec, Option
from gateway.commands import pages, table
from gateway.commands.memory import ACTIONS
from gateway.wording.texts import CATALOGUE, Texts
from tests.kit.tables import each_row


@each_row(
    ("text", "parsed"),
    [
        ("/help", ("help", "")),
        ("  /Memory  search  tea ", ("memory", "search  tea")),
        ("/forget m_abc", ("forget", "m_abc")), ("/forget@other_bot m_abc", None),
        ("/remember a\nb", ("remember", "a\nb")), ("/usr/bin/python is broken", None), ("what does /help do?", None),
        ("/", None), ("//", None), ("", None), ("/start CDFG-2345", ("start", "")), ("/pair cdfg 2345", ("start", "")),
        ("CDFG-2345", None), ("2345 6789", None),
    ],
)  # fmt: skip
def test_a_command_is_a_slash_and_a_word_at_the_start(text: str, parsed: tuple[str, str] | None) -> None:
    """A path or a slash in a sentence is ordinary talk."""
    assert table.parse(text) == parsed


def test_an_unknown_command_is_answered_with_the_nearest_one() -> None:
    assert "/memory" in table.unknown("memry", Texts("en"))
    assert "/help" in table.unknown("xyzzy", Texts("en"))


def test_every_command_is_offered_with_its_options_in_every_language() -> None:
    """Platforms show what is made from the one table; in the installation's language and in the reader's."""
    for language in CATALOGUE:
        for spec in table.specs(language):
            everything: list[CommandSpec | Option] = [spec, *spec.options]
            for described in everything:
                assert {"en", "zh"} <= set(described.translated) <= set(CATALOGUE)
                assert described.help == described.translated.get(language, described.translated["en"])
            key = f"help.{spec.name}"
            assert spec.translated.items() <= {each: texts[key] for each, texts in CATALOGUE.items()}.items()


def test_every_command_with_options_and_every_action_is_explained_in_every_language() -> None:
    """Nobody learns /memory from a list of seventeen words."""
    for language in CATALOGUE:
        texts = Texts(language)
        for command in table.TABLE:
            shown = table.explained(texts, command, "")
            assert shown.startswith(f"{command.usage} – {texts(f'help.{command.name}')}")
            assert (f"\n  /{command.name}" in shown) == bool(command.options), command.name
        memory = next(command for command in table.TABLE if command.name == "memory")
        for action in ACTIONS:
            assert f"  /memory {action}" in table.explained(texts, memory, "")
            assert table.explained(texts, memory, action).endswith(texts(f"action.{action}"))


def test_what_is_offered_fits_into_every_platforms_menu() -> None:
    """One name or text that is too long, and the platform refuses the whole table."""
    for spec in table.specs("en"):
        assert len(spec.options) <= 25
        everything: list[CommandSpec | Option] = [spec, *spec.options]
        for described in everything:
            assert re.fullmatch("[a-z0-9_]{1,32}", described.name)
            assert all(1 <= len(text) <= 100 for text in described.translated.values())
        for option in spec.options:
            assert all(re.fullmatch("[a-z]{1,32}", choice) for choice in option.choices)
        required = [option.required for option in spec.options]
        assert required == sorted(required, reverse=True), "what may be left out must come last"


def test_who_is_offered_a_command_and_who_sees_its_answer() -> None:
    """A code or another chat's name shown to a group would be out; that a window begins anew concerns all there."""
    specs = table.specs("en")
    assert {spec.name for spec in specs if spec.admin} == {
        "allow", "block", "pair", "dead", "admin", "agents", "backup", "jobs", "reload",
    }  # fmt: skip
    assert {spec.name for spec in specs if spec.private} == {
        "pair", "dead", "admin", "agents", "backup", "jobs", "keys", "link", "unlink", "profile", "reload",
        "web",
    }  # fmt: skip
    assert {spec.name for spec in specs if spec.shared} == {
        "agent", "compact", "model", "new", "remind", "stop", "retry", "task", "undo",
    }  # fmt: skip
    assert {spec.name for spec in specs if spec.forms} == {"remember", "correct", "memory"}
    assert {(spec.name, option.name) for spec in specs for option in spec.options if option.suggests} == {
        ("help", "command"), ("memory", "rest"), ("profile", "value"), ("correct", "id"), ("forget", "what"),
    }  # fmt: skip


@each_row("spec", table.specs("en"))
def test_options_read_in_their_order_are_the_typed_command(spec: CommandSpec) -> None:
    """A platform's form and a typed line end in the same handler."""
    values = [option.choices[0] if option.choices else f"some {option.name}" for option in spec.options]
    assert table.parse(" ".join([f"/{spec.name}", *values])) == (spec.name, " ".join(values))
    assert bool(values) == (" " in spec.usage)


@given(st.text(max_size=60))
def test_a_query_comes_back_from_a_button_as_it_was(query: str) -> None:
    """Or it is not put there, for half of a query finds something else."""
    packed = pages._packed(query)
    if packed is None:
        assert len(query.encode()) > 40
        return
    assert len(f"page:search:5:{packed}") <= 64 and packed.isascii()
    assert pages._unpacked(packed) == query
