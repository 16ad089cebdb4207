"""Names the parts of memory that people ask for in every language, and words such as "all" and "off"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from gateway.wording.texts import CATALOGUE
from memory.browse.browse import LISTED, TIERS
from memory.filters import Group
from memory.store.memories import Kind

Word: TypeAlias = Literal["auto", "off", "on", "done", "all", "transcript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart(Group):
    """A part of the memories that a person can ask to list. `name` is its name in buttons."""

    kinds: tuple[Kind, ...]
    name: str


@cache
def part_of(named: str) -> ListedPart | None:
    """Returns the part that people call `named` in any language ("tier 2", "facts", 健康); None if there is none."""
    return _parts().get(named.casefold().replace(" ", ""))


def means(text: str, word: Word) -> bool:
    return text.strip().casefold() in _words(word)


@cache
def _words(word: Word) -> frozenset[str]:
    return frozenset(said for language in CATALOGUE.values() for said in language[f"word.{word}"].split("|"))


@cache
def _parts() -> Mapping[str, ListedPart]:
    parts: dict[str, ListedPart] = {}
    for tier, kinds in TIERS.items():
        parts[f"tier{tier}"] = parts[f"第{'一二三'[tier - 1]}层"] = ListedPart(name=f"tier{tier}", kinds=kinds)
    for language in CATALOGUE.values():
        for key, text in language.items():
            group, _, name = key.partition(".")
            if group in ("kind", "kinds"):
                kind = next(one for kinds in TIERS.values() for one in kinds if one == name)
                part = ListedPart(name=name, kinds=(kind,))
            elif group == "category":
                part = ListedPart(name=name, kinds=LISTED, category=name)
            else:
                continue
            parts |= {name: part, text.casefold().replace(" ", ""): part}
    return parts
