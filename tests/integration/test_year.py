"""The simulated year in its short form: four people, forty days, invented small talk, searched by words alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.year import VALID, Answered, Setup, Talk, Year, faults, holds, mark, picture, simulate
from bench.year_facts import FACTS, GROUPS, LANGUAGES, PEOPLE
from bench.year_mind import Mind, values
from memory.learn.model import ModelRequest
from memory.text.likeness import jaccard
from tests.kit import stalls

pytestmark = pytest.mark.campaign

_ENGLISH = (
    "The lift is out of order again, so it was the stairs with two bags of potatoes.",
    "Somebody has parked a rowing boat in the bus lane and nobody knows whose it is.",
    "I slept badly, the neighbour's smoke alarm wanted a new battery until four.",
    "The soup at the canteen was green today and we could not agree on the vegetable.",
    "It hailed for five minutes, then the sun came out as if nothing had been.",
    "My umbrella turned inside out in front of the whole market.",
    "We watched a documentary about lighthouse keepers and nobody fell asleep.",
    "The printer says it is out of magenta although the page is black.",
    "A pigeon walked into the library and left by the other door.",
    "The new bakery had a queue round the corner, so we went home without bread.",
    "Forgot my gloves on the tram and got them back from the driver.",
    "There was a brass band under the bridge, practising the same four bars.",
)
_MORE_ENGLISH = (
    "Spent the evening untangling fairy lights that nobody will put up.",
    "The cinema showed the wrong film and most people stayed.",
    "I found a shopping list from three years ago in a winter coat.",
    "The ferry was late because of a swan.",
    "Someone repainted the bench while the sign still said wet paint.",
    "Our street had no water until noon, so breakfast was crackers.",
    "The quiz night ended in a tie and a very long discussion.",
    "I learned to fold a fitted sheet and forgot it at once.",
    "The museum has a room with nothing but keys in it.",
    "They are digging up the square for the third time this spring.",
    "The kettle sings a different note since it was descaled.",
)
_CHINESE = (
    "今天地铁里有人带着一盆很大的仙人掌，大家都躲得远远的。",
    "楼下的打印店把我的海报印反了，居然还挺好看。",
    "中午食堂的汤咸得像海水，喝了三杯茶。",
    "刚才下了一阵冰雹，砸得车棚噼啪响。",
    "电影放到一半停电了，全场鼓掌。",
    "晾在阳台的袜子又少了一只。",
    "路口新装的红绿灯谁也看不懂。",
    "快递员把包裹放在了隔壁单元的鱼缸上。",
    "昨晚的月亮特别低，像挂在烟囱上。",
    "超市排队排到了冷冻柜那边，冻得直跺脚。",
    "图书馆的座位又被水杯占满了。",
)
_TALK = {
    "en": Talk(
        voices=(_ENGLISH, _MORE_ENGLISH),
        groups=([("abc"[i % 3], line) for i, line in enumerate((*_MORE_ENGLISH, *_ENGLISH))],),
    ),
    "zh": Talk(voices=(_CHINESE,), groups=([("ab"[i % 2], line) for i, line in enumerate(_CHINESE)],)),
}
#: By words alone less is found; with vectors it has to be `VALID` (docs/design/benchmarks.md).
_BY_WORDS = 80.0


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Year, dict[str, object], list[Answered]]:
    setup = Setup(talk=_TALK, days=40, people=4, embedder="none")
    return stalls.run(simulate(setup, tmp_path_factory.mktemp("year"), lambda day: None))


def test_a_short_year_loses_nothing_doubles_nothing_and_misses_no_night(
    lived: tuple[Year, dict[str, object], list[Answered]],
) -> None:
    """Restarts, nights asleep and a scripted model that merges badly included."""
    year, figures, answered = lived
    told = {fact.person for fact in year.facts}
    assert {LANGUAGES[person] for person in told} == {"en", "zh"} and len(told) == 4
    assert figures["missed"] == 0
    assert figures["lost"] == 0, year.lost()
    assert figures["duplicates"] == 0, year.duplicates
    assert figures["superseded_above"] == 0, [(one.fact.id, one.above) for one in answered if one.above]
    assert float(str(figures["valid_top5"])) >= _BY_WORDS
    assert int(str(figures["rows_per_person_max"])) <= 120


def test_every_job_ran_and_did_something(lived: tuple[Year, dict[str, object], list[Answered]]) -> None:
    """Forty nights hold five Mondays or six; each kind of question was asked."""
    _, figures, _ = lived
    runs = figures["runs"]
    assert isinstance(runs, dict)
    assert {runs[job] for job in ("compress", "decay", "enrich", "manner")} == {40}
    assert {runs["merge"], runs["reflect"]} <= {5, 6}
    asked = figures["asked_of_the_model"]
    assert isinstance(asked, dict)
    assert asked.keys() >= {"extract", "compress", "merge", "reflect", "enrich"}


def test_it_is_the_guard_that_keeps_merges_from_losing_what_people_said(tmp_path: Path) -> None:
    """Of a model whose every merge loses half; without the guard that costs what people said, and the run fails."""

    def lost(guard: bool) -> int:
        folder = tmp_path / str(guard)
        folder.mkdir()
        setup = Setup(talk=_TALK, days=22, people=4, embedder="none", guard=guard, repeat=1.0, lossy=1.0)
        _, figures, _ = stalls.run(simulate(setup, folder, lambda day: None))
        assert bool(figures["lost"]) is ("lost" in faults(figures))
        return int(str(figures["lost"]))

    assert lost(guard=True) == 0
    assert lost(guard=False) > 0


def test_longer_half_lives_keep_more(lived: tuple[Year, dict[str, object], list[Answered]]) -> None:
    """And what holds by the shipped ones is what is counted there."""
    year, figures, _ = lived
    sweeps = year.sweeps()
    assert figures["sweeps"] == sweeps and list(sweeps) == ["0.25", "0.5", "1.0", "2.0", "4.0"]
    kept = [rows for rows, _ in sweeps.values()]
    gone = [planted for _, planted in sweeps.values()]
    assert kept == sorted(kept) and gone == sorted(gone, reverse=True) and kept[0] < kept[-1]


def test_the_planted_table_is_what_it_says() -> None:
    """Three hundred facts, sixty told anew twice, a third Chinese, half of the questions in another order."""
    assert len(FACTS) == 300 and len(PEOPLE) == 20 and len(GROUPS) == 5
    assert Counter(len(fact.updates) for fact in FACTS) == {0: 240, 2: 60}
    assert 90 <= sum(LANGUAGES[fact.person] == "zh" for fact in FACTS) <= 110
    assert sum(fact.reordered for fact in FACTS) == 150
    said = [value for fact in FACTS for value in values(fact)]
    assert len(said) == len(set(said))
    for fact in FACTS:
        for question in (fact.question, fact.again):
            assert question and fact.answer.casefold() not in question.casefold()
    for fact in FACTS:
        days = [fact.day, *(update.day for update in fact.updates), 380]
        assert all(after - before > 20 for before, after in pairwise(days))
        assert fact.place == "private" or fact.person in GROUPS[fact.place]


def test_a_row_holds_a_value_in_whatever_order_but_whole() -> None:
    """Dates that were put behind relative words are not what was said."""
    assert holds("as was told: in Bergen, by the harbour, lives Maren", "lives in Bergen")
    assert not holds("lives in", "lives in Bergen")
    assert holds("今年 (2026)要攒八万块换一辆房车", "今年要攒八万块换一辆房车")


def test_nothing_found_is_no_place() -> None:
    assert mark(FACTS[0], "Where?", []) == Answered(fact=FACTS[0], question="Where?", place=None, above=(), found=())


async def test_the_scripted_model_answers_the_same_question_alike() -> None:
    ask = ModelRequest(
        instructions='{"facts": [], "styles": []}', material='{"n": 1, "at": "x", "by": "Ann", "text": "Hi."}'
    )
    one, other = Mind(FACTS, seed=1), Mind(FACTS, seed=1)
    await other(ModelRequest(instructions='{"merged": []}', material='{"id": "m_a", "key": "k", "value": "v"}'))
    assert (await one(ask)).text == (await other(ask)).text


def test_the_short_year_is_drawn(lived: tuple[Year, dict[str, object], list[Answered]], tmp_path: Path) -> None:
    """Live rows above, archived ones below: a line for each person and one for their mean, over all days."""
    year, _, _ = lived
    drawn = picture(year.rows, year.people)
    live, archived = drawn.axes
    for axes, rows in (live, year.rows.live), (archived, year.rows.archived):
        *each, mean = (np.asarray(line.get_ydata()).tolist() for line in axes.lines)
        assert each == [list(rows[person]) for person in year.people]
        assert mean == [sum(day) / len(each) for day in zip(*each, strict=True)]
    drawn.savefig(tmp_path / "year.png", format="png")
    assert (tmp_path / "year.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_planted_values_of_one_person_are_facts_of_their_own() -> None:
    """No two of one place, person and category are so alike that they would be taken for one."""
    for fact in FACTS:
        for other in FACTS:
            if fact.id < other.id and (fact.person, fact.category) == (other.person, other.category):
                assert jaccard(fact.answer, other.answer) < 0.75, (fact.id, other.id)


def test_less_than_all_is_a_fault() -> None:
    """The figures that have to be nothing, and the one that has to be nearly all."""
    fine = {"lost": 0, "superseded_above": 0, "duplicates": 0, "missed": 0, "valid_top5": VALID}
    assert faults(fine) == []
    assert faults({**fine, "missed": 1, "valid_top5": VALID - 0.1}) == ["missed", "valid_top5"]
