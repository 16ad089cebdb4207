"""The picture of names: where each stands, and that it stands there at the next visit, too."""

from __future__ import annotations

from gateway.page.world_pages import Dot, Line, placed
from memory.store.entities import Entity


def known(number: int) -> list[Entity]:
    return [
        Entity(ids=(each,), type="person", name=f"Person {each}", aliases=(), memory_ids=tuple(range(each % 3 + 1)))
        for each in range(1, number + 1)
    ]


def lines(number: int) -> list[Line]:
    """Every second name is the visitor's, and the others belong to the one before."""
    return [Line(subject=0 if n % 2 else n - 1, words="knows", object=n) for n in range(1, number + 1)]


def places(dots: list[Dot]) -> dict[int, tuple[float, float]]:
    return {dot.id: (dot.x, dot.y) for dot in dots}


def test_no_name_moves_when_another_is_learned() -> None:
    before = places(placed(known(20), lines(20)))
    added = [*lines(20), Line(subject=0, words="friend", object=21), Line(subject=0, words="boss", object=4)]
    after = places(placed(known(21), added))
    assert {number: after[number] for number in before} == before


def test_every_name_has_a_place_of_its_own_inside_the_picture() -> None:
    dots = placed(known(24), lines(24))
    assert len(set(places(dots).values())) == 24
    assert all(60 < dot.x < 900 and 30 < dot.y < 610 for dot in dots)


def test_those_of_the_visitor_stand_nearer() -> None:
    def far(dot: Dot) -> float:
        return ((dot.x - 480) / 480) ** 2 + ((dot.y - 320) / 320) ** 2

    dots = placed(known(10), lines(10))
    assert max(far(dot) for dot in dots if dot.id % 2) < min(far(dot) for dot in dots if not dot.id % 2)
