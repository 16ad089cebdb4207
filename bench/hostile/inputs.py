"""The table of hostile inputs: each has a way in, a name, and a deed. The modules of the ways enter theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from bench.hostile.world import World

Deed: TypeAlias = Callable[[World], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input. A `short` one is tried by the tests, too; one that `needs_web` needs the web server with its address.

    A `fresh` one is the first that its bot gets.
    """

    way: str
    name: str
    deed: Deed
    short: bool = False
    needs_web: bool = False
    fresh: bool = False


INPUTS: Final[list[Input]] = []


def hostile(
    way: str, name: str, *, short: bool = False, needs_web: bool = False, fresh: bool = False
) -> Callable[[Deed], Deed]:
    """Enters a deed as an input."""

    def enter(deed: Deed) -> Deed:
        INPUTS.append(Input(way=way, name=name, deed=deed, short=short, needs_web=needs_web, fresh=fresh))
        return deed

    return enter


def enter_all(way: str, named: Mapping[str, Deed], *, short: tuple[str, ...] = (), needs_web: bool = False) -> None:
    """Enters deeds by their names."""
    for name, deed in named.items():
        hostile(way, name, short=name in short, needs_web=needs_web)(deed)
