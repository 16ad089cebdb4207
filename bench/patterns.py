"""Measures how well the extractor that needs no model finds what people say about themselves.

Invariants: the labels are in `tests/data` and were written without looking at the patterns; a prediction is
right or wrong as a whole (no partial credit), and one label pays for one prediction only. No randomness, no
clock: the lines are read as if they were typed on `TODAY`.

    python -m bench.patterns             the figures
    python -m bench.patterns --json      one JSON object
    python -m bench.patterns --verbose   the figures and every wrong or missed fact
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from memory.learn.offline.patterns import extract

DATA: Final = Path(__file__).resolve().parent.parent / "tests" / "data"
TODAY: Final = date(2026, 11, 21)

Fact: TypeAlias = tuple[str, str]
"""A key and a value."""
Predict: TypeAlias = Callable[[str], Iterable[Fact]]
"""The extractor to be measured: the text of one message → the facts found in it."""


class Label(BaseModel):
    """A fact that a careful reader finds in a line; the values in `accept` are as right as `value`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    key: str
    value: str
    accept: list[str] = []


class Disclosure(BaseModel):
    """One message with all facts its author states about themselves, in the order of the text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str
    facts: list[Label]


class Negative(BaseModel):
    """One message that looks like a disclosure and is none; `why` says what it is."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str
    why: Literal[
        "question",
        "quote",
        "hypothetical",
        "third-person",
        "state",
        "past",
        "negated",
        "role-play",
        "joke",
        "code",
        "lyrics",
        "command",
        "idiom",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fact that was predicted or labelled, with the message it belongs to."""

    text: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}   in   {self.text!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Predictions over a set of lines: right ones, wrong ones, and labels that no prediction met."""

    lines: int
    right: tuple[Finding, ...]
    wrong: tuple[Finding, ...]
    missed: tuple[Finding, ...]

    @property
    def precision(self) -> float:
        """Share of the predictions that are right, 0 to 1; 1 when nothing was predicted."""
        predicted = len(self.right) + len(self.wrong)
        return len(self.right) / predicted if predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of the labels that were found, 0 to 1; 1 when there are no labels."""
        labelled = len(self.right) + len(self.missed)
        return len(self.right) / labelled if labelled else 1.0

    def explain(self) -> str:
        """One line for every wrong and every missed fact, wrong ones first; empty when there are none."""
        return "\n".join(
            [f"  wrong   {finding}" for finding in self.wrong] + [f"  missed  {finding}" for finding in self.missed]
        )


def disclosures(
    language: Literal["en", "zh"], *, kind: Literal["disclosures", "talk"] = "disclosures", folder: Path = DATA
) -> list[Disclosure]:
    """The labelled messages of one language: introductions, or careless talk. Raises pydantic's `ValidationError`."""
    return TypeAdapter(list[Disclosure]).validate_python(_read(folder / f"{kind}_{language}.yaml"))


def negatives(*, kind: Literal["negatives", "talk_negatives"] = "negatives", folder: Path = DATA) -> list[Negative]:
    """The messages without any fact, both languages. Raises pydantic's `ValidationError` on another shape."""
    return TypeAdapter(list[Negative]).validate_python(_read(folder / f"{kind}.yaml"))


def score(lines: Iterable[Disclosure | Negative], predict: Predict) -> Score:
    """Compare what `predict` finds in each line with the line's labels (a `Negative` has none).

    A prediction is right when its key equals the label's and its value, normalised, equals the label's value
    or an accepted one. Equal predictions of a line count once; another one for the same label is wrong.
    """
    count = 0
    right: list[Finding] = []
    wrong: list[Finding] = []
    missed: list[Finding] = []
    for line in lines:
        count += 1
        open_labels = list(line.facts) if isinstance(line, Disclosure) else []
        for (key, normalised), value in _distinct(predict(line.text)).items():
            finding = Finding(text=line.text, key=key, value=value)
            met = next((label for label in open_labels if _meets(label, key, normalised)), None)
            if met is None:
                wrong.append(finding)
            else:
                open_labels.remove(met)
                right.append(finding)
        missed.extend(Finding(text=line.text, key=label.key, value=label.value) for label in open_labels)
    return Score(lines=count, right=tuple(right), wrong=tuple(wrong), missed=tuple(missed))


def normalise(value: str) -> str:
    """The form in which two values are compared: NFKC, case folded, one space between words, no punctuation
    around it, no leading articles ("The  Master!" → "master"). A value that is only an article stays.
    """
    words = unicodedata.normalize("NFKC", value.replace("’", "'")).casefold().split()
    while True:
        words = _without_edges(" ".join(words)).split()
        if len(words) < 2 or words[0] not in _ARTICLES:
            return " ".join(words)
        del words[0]


def by_patterns(text: str) -> list[Fact]:
    """Returns the facts that the shipped extractor finds in `text` on `TODAY`."""
    return [(candidate.key, candidate.value) for candidate in extract(text, today=TODAY)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of the shipped extractor; `arguments` default to those of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.patterns",
        description="Precision and recall of the pattern extractor on the hand-labelled lines in tests/data.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--verbose", action="store_true", help="also list every wrong and every missed fact")
    options = parser.parse_args(arguments)

    scores = {
        "en": score(disclosures("en"), by_patterns),
        "zh": score(disclosures("zh"), by_patterns),
        "negatives": score(negatives(), by_patterns),
        "talk en": score(disclosures("en", kind="talk"), by_patterns),
        "talk zh": score(disclosures("zh", kind="talk"), by_patterns),
        "talk negatives": score(negatives(kind="talk_negatives"), by_patterns),
    }
    if options.json:
        print(json.dumps({name: _figures(one, options.verbose) for name, one in scores.items()}, ensure_ascii=False))
        return
    for name, one in scores.items():
        if name.endswith("negatives"):
            print(f"{name}  {one.lines} lines without facts, {len(one.wrong)} facts predicted")
        else:
            labelled = len(one.right) + len(one.missed)
            print(
                f"{name:<9}  {one.lines} lines, {labelled} facts: "
                f"precision {one.precision:.3f}, recall {one.recall:.3f} "
                f"({len(one.right)} right, {len(one.wrong)} wrong, {len(one.missed)} missed)"
            )
        if options.verbose and (one.wrong or one.missed):
            print(one.explain())


_ARTICLES: Final = frozenset({"a", "an", "the", "my"})


def _read(path: Path) -> object:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _distinct(facts: Iterable[Fact]) -> dict[Fact, str]:
    """(key, normalised value) → the value as predicted first."""
    found: dict[Fact, str] = {}
    for key, value in facts:
        found.setdefault((key, normalise(value)), value)
    return found


def _meets(label: Label, key: str, normalised: str) -> bool:
    return label.key == key and normalised in {normalise(value) for value in (label.value, *label.accept)}


def _without_edges(text: str) -> str:
    """`text` without the punctuation and spaces around it; a sign inside stays."""
    start, end = 0, len(text)
    while start < end and _is_edge(text[start]):
        start += 1
    while end > start and _is_edge(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_edge(character: str) -> bool:
    return unicodedata.category(character)[0] in "PZ"


def _figures(one: Score, verbose: bool) -> dict[str, object]:
    figures: dict[str, object] = {
        "lines": one.lines,
        "right": len(one.right),
        "wrong": len(one.wrong),
        "missed": len(one.missed),
    }
    if one.right or one.missed:  # without labels there is nothing to be precise about
        figures |= {"precision": round(one.precision, 4), "recall": round(one.recall, 4)}
    if verbose:
        figures["wrong_facts"] = [_entry(finding) for finding in one.wrong]
        figures["missed_facts"] = [_entry(finding) for finding in one.missed]
    return figures


def _entry(finding: Finding) -> dict[str, str]:
    return {"text": finding.text, "key": finding.key, "value": finding.value}


if __name__ == "__main__":
    main()
