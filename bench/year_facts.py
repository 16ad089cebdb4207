"""A year of a chat bot with memory, planted: 300 facts that 20 invented people mention, what later became of 60 of
them, and a question for each.

Written by hand and before any tuning: no sentence comes from a template, and nothing here was fitted to the search.
Thirteen people speak English, seven Chinese; a fact, its value and its question are in the speaker's language. A fact
is said in the speaker's private chat or in one of five groups. Day 1 is 1 January; nothing is said after day 350.

Invariants: ids and values are unique; a question never contains its value; updates lie more than 20 days apart, each
makes the value before it wrong, and the last one is the right answer. A private question is the speaker's own; one
about a fact from a group speaks of its author by name, so that any member can ask it. `reordered` means that words
which question and value share stand in the question in another order, whichever update is current; elsewhere they
keep their order. Values speak of the speaker without a subject unless `about` or the wording names
somebody else. Each fact is asked for a second time, some months later and in other words than its text, its value and
its first question.

The facts stand in `year_facts.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A later message of the same person, which makes the value before it wrong."""

    day: int
    text: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One planted fact: how it is said, what an extractor would keep of it, and how it is asked for later."""

    id: str
    person: str
    #: "private", or the group it is said in.
    place: str
    #: Day of the year on which it is first said.
    day: int
    text: str
    category: str
    key: str
    value: str
    question: str
    #: The project or theme it belongs to.
    topic: str = ""
    #: "self", or whom or what it is about.
    about: str = "self"
    #: The words that question and value share stand in another order in the question.
    reordered: bool = False
    #: None or two, in the order of their days.
    updates: tuple[Update, ...] = ()
    #: The same asked in other words, by somebody who saw neither the search nor the question.
    again: str = ""

    @property
    def answer(self) -> str:
        """The value that holds at the end of the year."""
        return self.updates[-1].value if self.updates else self.value


def _fact(entry: dict[str, Any]) -> Fact:
    return Fact(**entry | {"updates": tuple(Update(**update) for update in entry.get("updates", ()))})


_READ: Final[dict[str, Any]] = yaml.load(
    Path(__file__).with_suffix(".yaml").read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)
#: By a person's id: their name, and the language they speak.
PEOPLE: Final[dict[str, str]] = _READ["people"]
LANGUAGES: Final[Mapping[str, str]] = _READ["languages"]
#: By a group's id: the people in it.
GROUPS: Final[dict[str, tuple[str, ...]]] = {group: tuple(people) for group, people in _READ["groups"].items()}
FACTS: Final[tuple[Fact, ...]] = tuple(_fact(entry) for entry in _READ["facts"])
