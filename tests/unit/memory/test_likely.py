"""Secrets that no rule knows are told by what was learned from texts of several authors."""

from __future__ import annotations

import sys
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.secrets.likely import candidates, description, likely, pieces
from memory.text.secrets.redact import by_rules, redact
from tests.kit.tables import each_row

#: The text, and the secret in it.
UNRULED = [
    ("the cabin door is *4471, then push hard", "4471"),
    ("router admin is Velvet!Otter3", "Velvet!Otter3"),
    ("they reset my mail to Harbour-Lamp22", "Harbour-Lamp22"),
    ("old one Amber_Fox3, new one Amber_Fox4", "Amber_Fox4"),
]


@pytest.mark.parametrize(("text", "secret"), UNRULED)
def test_a_secret_that_no_rule_finds_is_masked(text: str, secret: str) -> None:
    """People seldom say "my password is"."""
    assert secret in by_rules(text)
    assert secret not in redact(text)


@each_row(
    "text",
    [
        "flight LH4471 lands at 14:05, gate B22", "invoice 2026/0471 is due on the 30th",
        "the door code changed, ask the landlord", "room 314 on floor 3, ask at the desk",
        "our cat is called Copper and the dog Lantern", "Answer to: I like rum",
        "the build 4471 failed with exit code 137",
    ],
)  # fmt: skip
def test_numbers_and_names_that_everybody_may_know_stay(text: str) -> None:
    """A mask in the wrong place destroys what was worth remembering."""
    assert redact(text) == text


def test_what_was_learned_is_a_small_table() -> None:
    table = resources.files("memory.text.secrets") / "likely.json"
    assert len(table.read_bytes()) < 50_000


def test_a_document_is_read_by_rules_alone() -> None:
    """So that the time stays linear: each candidate costs as much as a short message."""
    text = UNRULED[0][0]
    assert likely(text)
    assert not likely(text + " and so on" * 1_000)


def test_nothing_that_was_read_is_kept_in_memory() -> None:
    """A cache of words would keep secrets in the clear, and what people had forgotten."""
    modules = [module for name, module in sys.modules.items() if name.startswith("memory.text.secrets")]
    caches = [each for module in modules for each in vars(module).values() if hasattr(each, "cache_info")]

    def kept() -> int:
        return sum(each.cache_info().currsize for each in caches)

    redact("the router admin is Velvet!Otter3000, zanzibar3000")
    before = kept()
    for n in range(3_001, 3_051):
        redact(f"the router admin is Velvet!Otter{n}, zanzibar{n}")
    assert kept() == before and len(caches) >= 5


@given(st.text(max_size=200))
def test_every_candidate_lies_in_the_text_and_is_described_by_numbers(text: str) -> None:
    some = pieces(text)
    for one in candidates(text, some):
        assert 0 <= one.start < one.end <= len(text)
        assert all(isinstance(value, int | float) for value in description(text, some, one).values())
