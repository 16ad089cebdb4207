"""Who was let in or shut out, and pairing codes, in a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from memory.people import access
from memory.people.access import Pairing, Taken
from memory.people.codes import GUESSES, LIFETIME_MS, LOCKED_MS
from memory.store.database import Database
from memory.store.sqlite.database import SqliteDatabase
from tests.kit.fakes import NOON, Clock

CODES = [f"CDFG-{n}{n}{n}{n}" for n in range(2, 10)]
CODE = CODES[0]
WRONG = "XXXX-XXXX"

Take = Callable[[str, str], Awaitable[Taken]]
Open = Callable[[str], Awaitable[Pairing]]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await SqliteDatabase.open(tmp_path / "remora.db", now=NOON)
    yield opened
    await opened.close()


@pytest.fixture
def take(database: Database, clock: Clock) -> Take:
    """Present a code: `await take("1", "CDFG-2345")`."""
    return lambda who, code: database.write(lambda tx: access.take_pairing(tx, clock(), "telegram", who, code))


@pytest.fixture
def open_code(database: Database, clock: Clock) -> Open:
    return lambda code: database.write(lambda tx: access.open_pairing(tx, clock(), "telegram", code))


async def state(database: Database, reference: str, *, group: bool = False, channel: str = "telegram") -> str | None:
    return await database.read(lambda r: access.state(r, channel, "group" if group else "person", reference))


async def count(database: Database, table: str) -> int:
    rows = await database.read(lambda r: r.all(f"select * from {table}"))
    return len(rows)


async def test_a_decision_holds_for_that_id_of_that_kind_on_that_channel(database: Database) -> None:
    """A person's and a group's number may be the same, and so may those of two bots."""
    assert await database.write(lambda tx: access.allow(tx, NOON, "telegram", "person", "1", by="9"))
    assert await state(database, "1") == "allowed"
    for other in ("", "01", "1 ", "11"):
        assert await state(database, other) is None
    assert await state(database, "1", group=True) is None
    assert await state(database, "1", channel="telegram2") is None


async def test_the_later_decision_holds_and_says_who_made_it(database: Database) -> None:
    """A block ends what was allowed and the other way round; what changes nothing says so."""
    assert await database.write(lambda tx: access.allow(tx, NOON, "telegram", "person", "1", by="9"))
    assert await database.write(lambda tx: access.block(tx, NOON + 1, "telegram", "person", "1", by="8"))
    assert not await database.write(lambda tx: access.block(tx, NOON + 2, "telegram", "person", "1", by="7"))
    assert await database.write(lambda tx: access.allow(tx, NOON + 3, "telegram", "group", "-5", by="9"))
    person, group = await database.read(lambda r: access.grants(r, "telegram"))
    assert (person.reference, person.state, person.granted_by, person.created_at) == ("1", "blocked", "8", NOON + 1)
    assert (group.subject, group.reference, group.state) == ("group", "-5", "allowed")
    assert await database.read(lambda r: access.grants(r, "discord")) == []


@pytest.mark.parametrize(
    ("old", "new", "configured", "then"),
    [
        ("allowed", None, False, "allowed"), (None, None, True, "allowed"), (None, None, False, None),
        ("blocked", None, True, "blocked"), ("blocked", "allowed", True, "blocked"),
        ("allowed", "blocked", True, "blocked"), (None, "blocked", True, "blocked"),
        ("allowed", "allowed", False, "allowed"),
    ],
)  # fmt: skip
async def test_a_group_that_gets_another_id_keeps_what_was_decided(
    database: Database, old: str | None, new: str | None, configured: bool, then: str | None
) -> None:
    """A group that becomes a supergroup must not fall silent, nor slip out of a block; twice is like once."""
    for chat, decided in (("-1", old), ("-1001", new)):
        if decided is not None:
            act = access.allow if decided == "allowed" else access.block
            await database.write(lambda tx, act=act, chat=chat: act(tx, NOON, "telegram", "group", chat, by="9"))  # type: ignore[misc]
    for _ in range(2):
        await database.write(lambda tx: access.move_group(tx, NOON, "telegram", "-1", "-1001", configured=configured))
        assert await state(database, "-1001", group=True) == then
    assert await state(database, "-1", group=True) is None


async def test_a_code_lets_one_person_in_once(database: Database, take: Take, open_code: Open, clock: Clock) -> None:
    """Whoever comes second with it is a stranger; what let the first one in is on record."""
    opened = await open_code(CODE)
    assert opened.opened and clock.just_now(opened.until - LIFETIME_MS)
    assert await take("1", CODE) == "allowed"
    assert await take("2", CODE) == "wrong"
    assert (await state(database, "1"), await state(database, "2")) == ("allowed", None)
    (grant,) = await database.read(lambda r: access.grants(r, "telegram"))
    assert grant.granted_by == "code"
    assert await count(database, "pairings") == 0


async def test_every_open_code_works_and_only_on_its_channel(take: Take, open_code: Open, database: Database) -> None:
    """All are compared, not only the newest; a code for one bot says nothing to another."""
    for code in CODES[:3]:
        await open_code(code)
    elsewhere = await database.write(lambda tx: access.take_pairing(tx, NOON, "telegram2", "1", CODE))
    assert elsewhere == "wrong"
    for who, code in (("1", CODES[1]), ("2", CODES[2]), ("3", CODES[0])):
        assert await take(who, code) == "allowed"


async def test_a_fourth_code_is_refused_until_one_is_used_or_over(open_code: Open, take: Take, clock: Clock) -> None:
    """No code that somebody holds dies unseen; the answer says when there is room."""
    opened = []
    for code in CODES[:3]:
        opened.append(await open_code(code))
        clock.move(minutes=1)
    assert all(one.opened for one in opened)
    assert await open_code(CODES[3]) == Pairing(opened=False, until=opened[0].until)
    assert await take("4", CODES[3]) == "wrong"
    assert await take("1", CODES[1]) == "allowed"
    assert (await open_code(CODES[3])).opened
    clock.set(opened[0].until)
    assert (await open_code(CODES[4])).opened


async def test_a_code_ends_after_ten_minutes_and_its_row_goes(
    database: Database, take: Take, open_code: Open, clock: Clock
) -> None:
    """Whoever comes late with the right one is told so, and has not used up a try."""
    await open_code(CODE)
    await open_code(CODES[1])
    clock.move(minutes=10)
    assert await take("1", CODE) == "expired"
    assert await state(database, "1") is None
    assert await count(database, "pairings") == await count(database, "pairing_tries") == 0
    assert await take("1", CODE) == "wrong"


async def test_a_code_works_up_to_its_last_moment(take: Take, open_code: Open, clock: Clock) -> None:
    clock.set((await open_code(CODE)).until - 1)
    assert await take("1", CODE) == "allowed"


async def test_many_who_guess_together_end_the_code_before_one_can_hit(
    take: Take, open_code: Open, database: Database
) -> None:
    """A bound on each of them is none on all; another channel's codes are not theirs to spoil."""
    await open_code(CODE)
    await database.write(lambda tx: access.open_pairing(tx, NOON, "telegram2", CODE))
    for n in range(GUESSES - 1):
        await take(str(1_000 + n // 3), WRONG)
    assert await count(database, "pairings") == 2
    await take("7", WRONG)
    assert await count(database, "pairings") == 1
    assert await take("8", CODE) == "wrong"
    elsewhere = await database.write(lambda tx: access.take_pairing(tx, NOON, "telegram2", "8", CODE))
    assert elsewhere == "allowed"


async def test_after_three_wrong_codes_even_the_right_one_is_not_looked_at(
    take: Take, open_code: Open, clock: Clock, database: Database
) -> None:
    """Guessing can't pay; others are not held up by it; an hour later the person may try again."""
    await open_code(CODE)
    # The third wrong one, at this moment, shuts off.
    clock.set(NOON + 1_000)
    assert [await take("1", WRONG) for _ in range(4)] == ["wrong", "wrong", "no_tries_left", "no_tries_left"]
    assert await take("1", CODE) == "no_tries_left"
    elsewhere = await database.write(lambda tx: access.take_pairing(tx, NOON, "telegram2", "1", CODE))
    assert elsewhere == "wrong"
    assert await take("2", CODE) == "allowed"
    clock.set(NOON + 1_002 + LOCKED_MS - 2)
    await open_code(CODES[1])
    assert await take("1", CODES[1]) == "no_tries_left"
    assert await take("1", CODES[1]) == "allowed"
    assert await count(database, "pairing_tries") == 0


async def test_tries_are_counted_over_all_codes_of_a_channel(take: Take, open_code: Open) -> None:
    """Else every new code would give three more guesses."""
    await open_code(CODE)
    await take("1", WRONG)
    await take("1", WRONG)
    await open_code(CODES[1])
    assert await take("1", WRONG) == "no_tries_left"


async def test_an_admins_word_ends_the_wait_after_wrong_codes(database: Database, take: Take) -> None:
    """Somebody who mistyped can be let in by hand, and is no suspect later."""
    for _ in range(3):
        await take("1", WRONG)
    await database.write(lambda tx: access.allow(tx, NOON, "telegram", "person", "1", by="9"))
    assert await count(database, "pairing_tries") == 0


async def test_a_blocked_person_gets_in_by_no_code(database: Database, take: Take, open_code: Open) -> None:
    await open_code(CODE)
    await database.write(lambda tx: access.block(tx, NOON, "telegram", "person", "1", by="9"))
    assert await take("1", CODE) == "wrong"
    assert await state(database, "1") == "blocked"
    assert await take("2", CODE) == "allowed"


@pytest.mark.parametrize(
    "code", ["", "CDFG-222", "CDFG-22222", "CDFG2222", "cdfg-2222", " CDFG-2222", "%", "*", "CDFG-222\u0662"]
)
async def test_only_the_very_code_fits(take: Take, open_code: Open, code: str) -> None:
    """How people write it is settled before it comes here."""
    await open_code(CODE)
    assert await take("1", code) == "wrong"
    assert await take("1", CODE) == "allowed"


async def test_no_code_is_found_in_the_files(database: Database, take: Take, open_code: Open) -> None:
    """A copy of the database must not let anybody in."""
    await open_code(CODE)
    await take("1", WRONG)
    stored = b"".join(path.read_bytes() for path in database.path.parent.iterdir())
    for code in (CODE, WRONG):
        assert code.encode() not in stored and code.replace("-", "").encode() not in stored
    await open_code(CODE)
    one, other = await database.read(lambda r: r.all("select hash from pairings"))
    assert one["hash"] != other["hash"]
