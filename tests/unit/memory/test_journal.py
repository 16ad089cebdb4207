"""A job's work is taken back to the byte, whatever it did; and what people have done since stays as they want it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import keys, profile
from memory.jobs import journal
from memory.jobs.journal import Journal, TakenBack
from memory.learn import keep
from memory.scope import Scope
from memory.store import chats, entities, job_watch, memories, people, scopes
from memory.store.database import Transaction
from memory.store.entities import Named
from memory.store.memories import Draft, Kind
from memory.store.sqlite.database import SqliteDatabase
from tests.kit.fakes import DAY, NOON, counting_ids

#: Category, key and value: with single values, near-duplicates, and names in several spellings.
STATEMENTS: Final = (
    ("place", "home", "Porto"), ("place", "home", "Lisbon"), ("place", "home", "Madrid"),
    ("preference", "likes", "jazz at Chen's"),
    ("preference", "likes", "quiet mornings with tea and books"),
    ("preference", "likes", "quiet mornings with tea and a book"),
    ("relation", "sister", "Maria CHEN"), ("plan", "plan", "meet Dr. Chen in Porto"), ("work", "employer", "ACME"),
    ("decision", "note", "call chen on Friday"),
)  # fmt: skip
#: Also one that stands in no text.
NAMES: Final = (
    Named(type="other", name="chen"), Named(type="person", name="Chen"), Named(type="person", name="Dr. Chen"),
    Named(type="organization", name="ACME"), Named(type="other", name="acme"), Named(type="location", name="Porto"),
    Named(type="other", name="zork"),
)  # fmt: skip
#: The columns that may differ after something was taken back: how often a row was used.
_USES: Final = {"access_count", "last_access_at"}
_TABLES: Final = ("memory_sources", "memory_parents", "memory_entities", "entities", "entity_aliases")

Move: TypeAlias = tuple[str, int, int, int]
State: TypeAlias = dict[str, list[tuple[Any, ...]]]


class _Over(Exception):
    """Ends an example, so that nothing of it is kept."""


@dataclass(slots=True)
class Life:
    """Ada, what she has told, and what is done with it at night."""

    tx: Transaction
    now: int = NOON
    new_id: Callable[[], str] = field(default_factory=counting_ids)
    scope: Scope = field(init=False)
    messages: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        tx = self.tx
        agent_id = scopes.agent(tx, "assistant", now=NOON)
        ada = people.speaker(tx, platform="console", user_id="ada", name="Ada", now=NOON)
        chat_id = chats.chat(tx, platform="console", reference="ada", kind="private", title="", now=NOON)
        session = chats.session(tx, key="console:ada:-", chat_id=chat_id, thread=None, agent_id=agent_id, now=NOON)
        self.scope = chats.scope_of(tx, session, ada.id)
        for n in range(4):
            self.messages.append(
                tx.insert(
                    "insert into messages (session_id, role, author_id, text, tokens, learn, sitting, said_at,"
                    " recorded_at) values (?, 'user', ?, ?, 1, 1, 1, ?, ?)",
                    (session.id, ada.id, f"line {n}", NOON, NOON),
                )
            )

    # Rows ---------------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> list[int]:
        """Every row but those made for prompts."""
        return [row["id"] for row in self.tx.all("select id from memories where kind not in ('profile') order by id")]

    def one(self, memory_id: int) -> dict[str, Any]:
        row = self.tx.one("select * from memories where id = ?", (memory_id,))
        assert row is not None
        return dict(row)

    def is_there(self, memory_id: int) -> bool:
        return self.tx.one("select 1 from memories where id = ?", (memory_id,)) is not None

    def is_live(self, memory_id: int) -> bool:
        row = self.one(memory_id)
        return row["superseded_by"] is None and row["archived_at"] is None and row["valid_until"] is None

    def state(self) -> State:
        """All rows of memory, to the byte, but for how often they were used."""
        found: State = {table: sorted(tuple(row) for row in self.tx.all(f"select * from {table}")) for table in _TABLES}
        rows = [dict(row) for row in self.tx.all("select * from memories order by id")]
        return found | {"memories": [tuple(v for k, v in row.items() if k not in _USES) for row in rows]}

    # The acts of people and jobs -----------------------------------------------------------------------------------

    def draft(self, n: int, *, day: int = 0, kind: Kind = "fact", **more: Any) -> Draft:
        category, key, value = STATEMENTS[n % len(STATEMENTS)]
        fields: dict[str, Any] = {
            "kind": kind, "owner_id": self.scope.writes_to, "author_id": self.scope.speaker_id,
            "subject_id": self.scope.speaker_id, "category": category, "key": key, "value": value, "importance": 5,
            "confidence": 0.75, "origin": "extracted", "learned_at": NOON + day * DAY, "local_date": "2026-11-21",
        }  # fmt: skip
        return Draft(**(fields | more))

    def tell(self, n: int, *, day: int = 0, message: int = 0, names: tuple[Named, ...] = (), **more: Any) -> int:
        """Something is told, or worked out, and goes the way that everything takes into memory."""
        memory_id = keep.keep(
            self.tx, self.scope, self.draft(n, day=day, **more), source_ids=[self.messages[message % 4]],
            now=self.now, new_id=self.new_id, names=names,
        )  # fmt: skip
        assert memory_id is not None
        return memory_id

    def merge(self, *parents: int, value: str = "jazz in Porto with Dr. Chen", names: tuple[Named, ...] = ()) -> int:
        """Make one row of several and set these aside."""
        draft = self.draft(3, value=value, origin="derived", key="merged")
        made = memories.insert(self.tx, draft, new_id=self.new_id, now=self.now)
        memories.add_sources(self.tx, made, self.messages[:2])
        memories.set_parents(self.tx, made, parents)
        entities.note(self.tx, self.scope.writes_to, made, names, now=self.now)
        for parent in parents:
            self.archive(parent)
        self.refresh()
        return made

    def archive(self, memory_id: int) -> None:
        self.tx.run("update memories set archived_at = ? where id = ?", (self.now, memory_id))

    def refresh(self) -> None:
        for slot in keys.PROFILE_SLOTS:
            profile.refresh(self.tx, self.scope, self.scope.writes_to, slot, now=self.now, new_id=self.new_id)

    def work(self, move: Move) -> None:
        """One thing of those that a job may do, to rows and with names by number."""
        what, a, b, c = move
        tx, ids, name = self.tx, self.ids, NAMES[c % len(NAMES)]
        one, other = ids[a % len(ids)], ids[b % len(ids)]
        self.now += 1
        match what:
            case "merge":
                self.merge(*sorted({one, other}), names=(name,))
            case "keep":
                self.tell(a, day=b % 5, message=c, names=(name,), origin="derived")
            case "supersede" if one != other:
                memories.supersede(tx, one, other, at=self.now)
            case "archive":
                self.archive(one)
            case "mark":
                tx.run("update memories set compressed_at = ?, enriched_at = ? where id = ?", (self.now, b, one))
            case "weigh":
                tx.run(
                    "update memories set importance = ?, confidence = ?, strength = ? where id = ?",
                    (1 + b % 10, b / 31, 1 / (1 + c), one),
                )
            case "reinforce":
                memories.reinforce(tx, one, at=NOON + b * DAY)
            case "source":
                memories.add_sources(tx, one, [self.messages[b % 4]])
            case "parents" if other < one:
                memories.set_parents(tx, one, [other])
            case "name":
                entities.note(tx, self.scope.writes_to, one, [name], now=self.now)
            case "use":
                memories.use(tx, one, at=self.now)
            case "refresh":
                self.refresh()

    def journaled(self, *moves: Move) -> Journal:
        with journal.kept(self.tx) as keeping:
            for move in moves:
                self.work(move)
        return keeping.journal

    def kept(self, act: Callable[[], int]) -> tuple[Journal, int]:
        """A journal of a single piece, and the row that it has made."""
        with journal.kept(self.tx) as keeping:
            made = act()
        return keeping.journal, made

    def taken_back(self, done: Journal) -> TakenBack:
        """Take back as it is stored, then fill the profile as `Jobs.undo` does."""
        back = journal.take_back(self.tx, Journal.from_json(done.to_json()))
        self.refresh()
        return back


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Callable[[Life], None]], None]]:
    """Runs something on a real database and leaves it empty."""
    path: Path = tmp_path_factory.mktemp("journal") / "remora.db"
    with asyncio.Runner() as runner:
        database = runner.run(SqliteDatabase.open(path, now=NOON))

        def run(act: Callable[[Life], None]) -> None:
            def acted(tx: Transaction) -> None:
                act(Life(tx))
                raise _Over

            with pytest.raises(_Over):
                runner.run(database.write(acted))

        yield run
        runner.run(database.close())


Example: TypeAlias = Callable[[Callable[[Life], None]], None]

_NUMBER: Final = st.integers(0, 30)
_MOVES: Final = st.sampled_from(
    (
        "merge", "merge", "keep", "keep", "supersede", "archive", "mark", "weigh", "reinforce", "source", "parents",
        "name", "name", "use", "refresh",
    )
)  # fmt: skip
MOVES: Final = st.lists(st.tuples(_MOVES, _NUMBER, _NUMBER, _NUMBER), min_size=1, max_size=8)
TOLD: Final = st.lists(st.tuples(_NUMBER, st.integers(0, 4), _NUMBER), min_size=1, max_size=8)


def lived(life: Life, told: list[tuple[int, int, int]]) -> None:
    """Tells some things before the night; the last of them are of no place, so that no slot loses its last fact."""
    for n, day, name in told:
        life.tell(n, day=day, message=n, names=(NAMES[name % len(NAMES)],))
    life.tell(4, kind="style", category="instruction", key="style")
    life.tell(5, kind="event", category="happening", key="day")
    life.refresh()


@settings(max_examples=60)
@given(told=TOLD, moves=MOVES)
def test_whatever_a_job_did_is_taken_back_to_the_byte(
    example: Example, told: list[tuple[int, int, int]], moves: list[Move]
) -> None:
    """Rows, links, names and their spellings: as if the night had not been."""

    def act(life: Life) -> None:
        lived(life, told)
        before = life.state()
        done = life.journaled(*moves)
        back = life.taken_back(done)
        assert life.state() == before
        assert back.left == 0
        assert done.is_empty or life.tx.all("pragma foreign_key_check") == []

    example(act)


@settings(max_examples=60)
@given(told=TOLD, first=MOVES, second=MOVES, third=MOVES)
def test_pieces_are_taken_back_as_one(
    example: Example, told: list[tuple[int, int, int]], first: list[Move], second: list[Move], third: list[Move]
) -> None:
    """Each step of a run has its own journal; joined, and kept as text in between, they are the run's."""

    def act(life: Life) -> None:
        lived(life, told)
        before = life.state()
        done = Journal()
        for moves in (first, second, third):
            done = Journal.from_json(done.to_json()).then(life.journaled(*moves))
        life.taken_back(done)
        assert life.state() == before

    example(act)


@settings(max_examples=60)
@given(told=TOLD, moves=MOVES)
def test_a_journal_holds_no_words(example: Example, told: list[tuple[int, int, int]], moves: list[Move]) -> None:
    """It outlives what is forgotten."""
    said = {word.casefold() for _, key, value in STATEMENTS for word in (key, *value.split())}
    said |= {named.name.casefold() for named in NAMES}
    plain = {
        *job_watch.COLUMNS,
        "memory_sources",
        "memory_parents",
        "memory_entities",
        "person",
        "organization",
        "other",
    }
    plain |= {
        "made", "changed", "linked", "unlinked", "told", "closed", "named", "typed", "location", "project", "email",
        "url",
    }  # fmt: skip

    def texts(value: object) -> set[str]:
        if isinstance(value, dict):
            return {text for pair in value.items() for one in pair for text in texts(one)}
        if isinstance(value, list):
            return {text for one in value for text in texts(one)}
        return {value} if isinstance(value, str) else set()

    def act(life: Life) -> None:
        lived(life, told)
        kept = life.journaled(*moves).to_json()
        assert not said & {word.casefold() for word in texts(json.loads(kept))}
        assert {text for text in texts(json.loads(kept)) if not text.isdecimal()} <= plain

    example(act)


#: The acts of somebody between a night and its taking back: with rows by number.
SINCE: Final = st.lists(
    st.tuples(st.sampled_from(("pin", "confirm", "again", "tell", "correct", "forget", "archive")), _NUMBER, _NUMBER),
    max_size=5,
)


def since(life: Life, what: str, a: int, b: int) -> int | None:
    """Something a person does; returns the row that they have held on to."""
    live = [row for row in life.ids if life.is_live(row)]
    if not live:
        return None
    one = live[a % len(live)]
    life.now += 1
    match what:
        case "pin":
            memories.pin(life.tx, one, pinned=True)
            return one
        case "confirm":
            memories.confirm(life.tx, one, at=life.now)
            return one
        case "again":
            memories.reinforce(life.tx, one, at=life.now)
            return one
        case "tell":
            return life.tell(b, day=9, message=3)
        case "correct":
            new = memories.insert(
                life.tx, life.draft(3, value=f"corrected {a} {b}", confirmed=True), new_id=life.new_id, now=life.now
            )
            memories.supersede(life.tx, one, new, at=life.now)
            return new
        case "forget":
            memories.take_apart(life.tx, [one])
            life.refresh()
    return None


@settings(max_examples=60)
@given(told=TOLD, moves=MOVES, later=MOVES, did=SINCE)
def test_what_people_did_since_stays(
    example: Example,
    told: list[tuple[int, int, int]],
    moves: list[Move],
    later: list[Move],
    did: list[tuple[str, int, int]],
) -> None:
    """Rows that are held on to are there and live, forgotten ones are not; no slot and no single value holds twice."""

    def act(life: Life) -> None:
        lived(life, told)
        done = life.journaled(*moves)
        life.journaled(*later)
        held: dict[int, bool] = {}
        for what, a, b in did:
            row = since(life, what, a, b)
            held = {row: life.is_live(row) for row in {*held, row} if row is not None and life.is_there(row)}
        there = {row["id"] for row in life.tx.all("select id from memories")}
        standing = doubles(life)
        back = life.taken_back(done)
        now_there = {row["id"] for row in life.tx.all("select id from memories where kind <> 'profile'")}
        assert now_there <= there
        for row, live in held.items():
            assert life.is_there(row), f"{row} is gone"
            assert life.is_live(row) or not live, f"{row} holds no more"
        assert not {*back.gone} & now_there
        assert {*back.back, *back.stay} <= now_there
        assert doubles(life) <= standing
        assert life.tx.all("pragma foreign_key_check") == []

    example(act)


def doubles(life: Life) -> int:
    """How many rows hold beside another where there can be one only."""
    row = life.tx.one(
        "select coalesce(sum(n - 1), 0) as n from (select count(*) as n from memories where superseded_by is null"
        " and valid_until is null and archived_at is null and (kind = 'profile' or key = 'home') group by kind, key)"
    )
    assert row is not None
    return int(row["n"])


@pytest.mark.parametrize(
    "sql",
    [
        "update memories set value = 'other'", "update memories set category = 'work'",
        "update memories set learned_at = 0", "update memories set owner_id = 1", "delete from memories",
        "delete from entities",
    ],
)  # fmt: skip
def test_what_no_job_may_do_is_refused(example: Example, sql: str) -> None:
    """The words of a row, whose it is, and that it is there are for people to change; it can be done again after."""

    def act(life: Life) -> None:
        life.tell(0, names=NAMES[:1])
        life.tx.run("savepoint before")
        with pytest.raises(Exception, match=r"a job (rewords|deletes) no"), journal.kept(life.tx):
            life.tx.run(sql)
        life.tx.run("rollback to before")
        life.tx.run(sql)

    example(act)


def test_names_are_spelled_as_people_write_them(example: Example) -> None:
    """A job finds more memories that name somebody, and of what type a name is; it does not respell."""

    def act(life: Life) -> None:
        life.tell(9, names=NAMES[:1])
        with journal.kept(life.tx) as keeping:
            life.tell(7, origin="derived", names=NAMES[1:3])
        names = life.tx.all("select name, type from entities where norm = 'chen'")
        assert [tuple(row) for row in names] == [("chen", "person")]
        assert life.tx.one("select alias from entity_aliases where entity_id = 1") is None
        assert keeping.journal.typed == {1: ("other", "person")}
        life.taken_back(keeping.journal)
        names = life.tx.all("select name, type from entities")
        assert [tuple(row) for row in names] == [("chen", "other")]

    example(act)


HELD: Final[dict[str, Callable[[Life, int], object]]] = {
    "pinned": lambda life, made: memories.pin(life.tx, made, pinned=True),
    "confirmed": lambda life, made: memories.confirm(life.tx, made, at=life.now),
    "told again": lambda life, made: memories.reinforce(life.tx, made, at=life.now),
    "replaced": lambda life, made: memories.supersede(life.tx, made, life.tell(5, day=3), at=life.now),
}


@pytest.mark.parametrize("how", HELD)
def test_what_somebody_has_made_theirs_stays_with_what_it_was_made_of(example: Example, how: str) -> None:
    """Its parents stay set aside, or all of it would be there twice; what else the run did is taken back."""

    def act(life: Life) -> None:
        one, other, third = life.tell(3), life.tell(6), life.tell(8)

        def work() -> int:
            life.archive(third)
            return life.merge(one, other)

        done, made = life.kept(work)
        life.now += DAY
        HELD[how](life, made)
        back = life.taken_back(done)
        assert (back.stay, back.gone, back.back) == ((made,), (), (third,))
        assert life.is_there(made) and life.is_live(made) == (how != "replaced")
        assert [life.is_live(row) for row in (one, other, third)] == [False, False, True]

    example(act)


def test_what_was_forgotten_since_is_not_back(example: Example) -> None:
    """Nor is what was made of it, which went with it; the other parents came back then."""

    def act(life: Life) -> None:
        one, other = life.tell(3), life.tell(6)
        done, made = life.kept(lambda: life.merge(one, other))
        memories.take_apart(life.tx, [one])
        back = life.taken_back(done)
        assert back.gone == () and not life.is_there(one) and not life.is_there(made)
        assert life.is_live(other)

    example(act)


def test_a_home_is_not_moved_back_into_once_a_newer_one_was_told(example: Example) -> None:
    """A job's row had replaced the old one, and a person's the job's."""

    def act(life: Life) -> None:
        porto = life.tell(0)
        done, lisbon = life.kept(lambda: life.tell(1, day=1, origin="derived"))
        assert not life.is_live(porto)
        madrid = life.tell(2, day=2)
        back = life.taken_back(done)
        assert back.stay == (lisbon,)
        assert [life.is_live(row) for row in (porto, lisbon, madrid)] == [False, False, True]

    example(act)


def test_later_work_on_what_goes_goes_with_it_and_loses_nothing(example: Example) -> None:
    def act(life: Life) -> None:
        one, other, third = life.tell(3), life.tell(6), life.tell(8)
        done, made = life.kept(lambda: life.merge(one, other))
        life.now += DAY
        _, later = life.kept(lambda: life.merge(made, third, value="all of it"))
        life.taken_back(done)
        assert not life.is_there(made) and not life.is_there(later)
        assert all(life.is_live(row) for row in (one, other, third))

    example(act)
