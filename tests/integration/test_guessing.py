"""How many guesses at codes a running bot weighs in an hour, from somebody with ten accounts who tries each way.

docs/design/security.md states the figures.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gateway.pipeline.policy import CODE_LETTERS, Rules, new_code
from memory.people import access
from memory.people.codes import GUESSES, TRIES
from tests.kit.bench import Handset, Talk
from tests.kit.fakes import Clock

ACCOUNTS = tuple(f"10{n}" for n in range(10))
WAYS = ("/link {}", "{}", "/pair {}", "/start {}")
#: The possible codes, and what an attacker's chance of a hit in a day may be.
POSSIBLE = len(CODE_LETTERS) ** 8
ODDS = 1e-6


async def weighed(bench: Talk, clock: Clock, table: str, ask: str) -> list[int]:
    """Returns how many guesses, given in each of the ways for an hour, were compared with the open codes."""
    choose, hours = Random(1).choice, []
    for way in WAYS:
        clock.move(minutes=61)
        await bench.ask(ask, person="7")
        for _ in range(6):
            for account in ACCOUNTS:
                await bench.ask(way.format(new_code(choose)), person=account)
        ((total,),) = await bench.rows(f"select coalesce(sum(count), 0) from {table} where expires_at > {clock.at}")
        hours.append(int(str(total)))
    return hours


@pytest.fixture
def bench(tmp_path: Path, clock: Clock) -> Talk:
    return Talk(tmp_path, Handset(), clock)


async def test_ten_people_guess_thirty_link_codes_an_hour(bench: Talk, clock: Clock) -> None:
    """With a hundred codes open all day, a hit in a day is still rarer than one in a million."""
    bench.rules = Rules(allow=frozenset(ACCOUNTS), admins=frozenset({"7"}))
    async with bench.running():
        hours = await weighed(bench, clock, "link_tries", "/link")
    assert hours[:2] == [len(ACCOUNTS) * TRIES] * 2 and max(hours) == hours[0]
    assert 24 * max(hours) * 100 / POSSIBLE < ODDS


async def test_ten_strangers_guess_thirty_pairing_codes_an_hour(bench: Talk, clock: Clock) -> None:
    """With as many codes open all day as can be, too."""
    bench.rules = Rules(admins=frozenset({"7"}))
    async with bench.running():
        hours = await weighed(bench, clock, "pairing_tries", "/pair")
    assert hours[1:] == [len(ACCOUNTS) * TRIES] * 3 and max(hours) == hours[1]
    assert 24 * max(hours) * access.PENDING / POSSIBLE < ODDS
    assert bench.model.requests == []


def test_no_number_of_accounts_guesses_a_code_within_its_life() -> None:
    """Ten thousand codes would have to be asked for to meet one hit in a hundred thousand."""
    assert 10_000 * GUESSES / POSSIBLE < 1e-5
