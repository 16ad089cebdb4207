"""A pattern is left out only where it can't fit: a word that it needs is in each of its matches."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from languages import LANGUAGES
from memory.text.times.needed import FIRST_SLOT, needed
from memory.text.times.tables import fold, table
from tests.kit.tables import each_row


@each_row(
    ("pattern", "texts"),
    [
        ("last (?:week|month)", {"last "}), ("(?:in|on)? ?may", {"may"}), ("a|bc", {"a", "bc"}), ("[ab]?c+", {"c"}),
        (r"\d{1,2} ?o'clock", {"o'clock"}), (r"(?<=the )\d0s", {"the "}), (r"\w+", set()), ("x?|y", set()),
        (chr(FIRST_SLOT) + " ago", {" ago"}), (chr(FIRST_SLOT) + "s", {"week", "month"}), (f"(?:{chr(FIRST_SLOT)}|day)", {"week", "month", "day"}),
    ],
)  # fmt: skip
def test_the_most_telling_texts_are_known(pattern: str, texts: set[str]) -> None:
    assert needed(pattern, [frozenset({"week", "month"})]) == texts


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_pattern_of_a_table_needs_words_and_has_them_in_each_match(code: str) -> None:
    found = 0
    trees = [ast.parse(path.read_text()) for path in Path(__file__).parent.glob("test_*.py")]
    strings = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    texts = {fold(text) for text in strings if isinstance(text, str) and len(text) < 100}
    words = table(code)
    for section in ("meanings", "days"):
        for meaning, _, template in words._patterns(section)[1]:
            needs = words._needed(template)
            assert needs, (meaning, template)
            # No loop can take a long time over a text.
            assert section == "meanings" or not set(template) & set("*+"), template
            pattern = words._compiled(section, meaning, template)
            matches = [text for text in texts if pattern.search(text)]
            found += len(matches)
            assert not [text for text in matches if not any(word in text for word in needs)], (meaning, template)
    assert found > 50
