"""Nobody's words take a reader long, and no reader of words is left out.

Times are processor time of this thread, with a wide margin for slow machines. What grows worse than with the length
shows at any speed.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import languages
from languages import LANGUAGES
from memory.text.times import phrases, tables
from tests.kit.readers import READERS, UNITS, Reader, repeated_to

ROOT = Path(__file__).parents[1]
#: The characters at which the costliest units are looked for, and how many of them are then read at the reader's bound.
FIRST_LOOK, COSTLIEST = 1_000, 4
#: Seconds below which the growth of a time says nothing.
FLOOR = 0.04
#: Seconds of processor time after which a reader is stopped and has failed.
GIVEN_UP = 10
#: Public functions of `memory/text` with a text that is not a stranger's, with the reason.
NO_READERS = {
    "memory.text.language.last_language": "codes of languages",
    "memory.text.secrets.announced.worth_reading": "read through `redact`, from a stock of looks",
    "memory.text.secrets.likely.candidates": "read through `likely`",
    "memory.text.secrets.likely.description": "read through `likely`",
    "memory.text.secrets.likely.pieces": "read through `likely`",
    "memory.text.secrets.formats.ended": "read through `redact`",
    "memory.text.secrets.likely.tables": "trees of our own",
    "memory.text.secrets.folding.any_of": "a name of our own table",
    "memory.text.secrets.folding.data": "a name of our own file",
    "memory.text.secrets.folding.has_patterns": "a name of our own table",
    "memory.text.secrets.folding.pattern": "a pattern of our own",
    "memory.text.secrets.folding.tree": "words of our own table",
    "memory.text.secrets.folding.words": "a name of our own table",
    "memory.text.times.pieces.in_part": "a part of the day by a name of our own",
    "memory.text.times.rules.following": "a rule that `parse_rule` made",
    "memory.text.times.rules.recurrences": "a rule that `parse_rule` made",
    "memory.text.times.tables.table": "a code of a language",
    "memory.text.words.listed": "a list of our own",
}  # fmt: skip
#: Modules whose functions are read only through `redact`, which pays each look from a stock, or get units, zones and
#: patterns of our own.
BEHIND_OTHERS = (
    "memory.text.secrets.formats", "memory.text.secrets.announced", "memory.text.secrets.values",
    "memory.text.times.calendar", "memory.text.times.clock", "memory.text.times.needed", "memory.text.times.reader",
)  # fmt: skip


@contextmanager
def stopped() -> Iterator[None]:
    """Ends a reader that would never end, by processor time."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"read for more than {GIVEN_UP} seconds")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def least(reader: Reader, text: str, *, below: float) -> float:
    """Returns the least time of two readings; of one if that is below a limit."""
    with stopped():
        first = reader.took(text)
        return first if first < below else min(first, reader.took(text))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_text_takes_a_reader_long(reader: Reader) -> None:
    """The costliest units fill a text up to the bound; twice the text takes at most three times as long."""
    first = min(FIRST_LOOK, reader.most // 3)
    reader.took("a warm reader has its patterns and tables")
    costs = {unit: least(reader, repeated_to(first, unit), below=reader.seconds / 4) for unit in UNITS}
    for unit in sorted(costs, key=lambda unit: costs[unit], reverse=True)[:COSTLIEST]:
        whole = least(reader, repeated_to(reader.most, unit), below=FLOOR)
        half = least(reader, repeated_to(reader.most // 2, unit), below=FLOOR) if whole > FLOOR else whole
        assert whole <= reader.seconds, f"{unit!r}: {whole:.3f} s"
        assert whole <= 3 * half + FLOOR, f"{unit!r}: {half:.3f} s for half of it, {whole:.3f} s for the whole"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(UNITS), min_size=2, max_size=4))
def test_no_mixture_of_units_takes_a_reader_long(units: list[str]) -> None:
    """A short text is enough to show what explodes."""
    text = repeated_to(500, *units)
    for reader in READERS:
        took = least(reader, text, below=reader.seconds)
        assert took <= reader.seconds, f"{reader.name}: {took:.3f} s"


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_word_of_a_table_of_times_explodes(code: str) -> None:
    """A loop in a pattern that can take a word in two ways doubles the time with each repetition."""
    source = languages.source(code, "times")
    reader = next(one for one in READERS if one.name == f"memory.text.times.phrases.read_time:{code}")
    for word in sorted(set(re.findall(r"[^\W_]+", tables.fold(source)))):
        for unit in (word, f"{word} "):
            took = least(reader, repeated_to(80, unit), below=reader.seconds)
            assert took <= reader.seconds, f"{unit!r}: {took:.3f} s"
    assert not phrases.is_request("", language=code)


def test_every_reader_of_words_is_in_the_table() -> None:
    """Each public function of `memory/text` that takes a text is timed, or stands among those that read none."""
    timed = {reader.name.partition(":")[0] for reader in READERS}
    known = timed | set(NO_READERS)
    public = {name for path in sorted((ROOT / "memory/text").rglob("*.py")) for name in _public(path)}
    missing = sorted(name for name in public - known if not name.startswith(BEHIND_OTHERS))
    assert not missing, f"add a line to READERS in tests/kit/readers.py: {missing}"
    assert not set(NO_READERS) - public, "they are gone"


def _public(path: Path) -> Iterator[str]:
    """Yields the public functions of a module with an argument that is a text."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any(one.annotation is not None and "str" in ast.unparse(one.annotation) for one in arguments):
                yield f"{module}.{node.name}"
