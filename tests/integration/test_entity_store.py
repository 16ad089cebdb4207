"""Entities through a real store: noted with memories, seen by their owners only, gone with the last word of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memory.context import Context
from memory.errors import NotFound
from memory.scope import Scope
from memory.service import Service
from memory.store import entities, memories
from memory.store.database import Transaction
from memory.store.entities import Entity, Named
from memory.store.memories import Draft
from tests.kit.fakes import NOON, counting_ids
from tests.kit.talk import group, private

MARY = Named(type="person", name="Mary Chen")
new_id = counting_ids()


async def keep(memory: Service, context: Context, value: str, *names: Named, agent_id: int | None = None) -> int:
    """A fact of the context's scope with what it names; gives its id."""
    scope = context.scope

    def write(tx: Transaction) -> int:
        draft = Draft(
            kind="fact", owner_id=scope.writes_to, category="relation", key="note", value=value, importance=5,
            confidence=1, origin="told", learned_at=NOON, local_date="2026-11-21", author_id=scope.speaker_id,
            subject_id=scope.speaker_id, agent_id=agent_id,
        )  # fmt: skip
        memory_id = memories.insert(tx, draft, new_id=new_id, now=NOON)
        entities.note(tx, scope.writes_to, memory_id, names, now=NOON)
        return memory_id

    return await memory.database.write(write)


async def known(memory: Service, context: Context, name: str) -> Entity | None:
    return await memory.database.read(lambda reader: entities.entity(reader, context.scope, name))


async def named(memory: Service, context: Context, text: str) -> list[str]:
    found = await memory.database.read(lambda reader: entities.matching(reader, context.scope, text))
    return [entity.name for entity in found]


async def linked(memory: Service, context: Context, name: str) -> list[int]:
    known = await memory.database.read(lambda reader: entities.called(reader, context.scope, name))
    return sorted({memory_id for one in known for memory_id in one.memory_ids}, reverse=True)


async def merge(memory: Service, keep_id: int, other_id: int) -> None:
    """Leaves an entity with another one's name as an alias, as stores may hold it."""

    def act(tx: Transaction) -> None:
        (row,) = tx.all("select name from entities where id = ?", (other_id,))
        entities._move(tx, other_id, keep_id, aliases=[row["name"]])

    await memory.database.write(act)


async def forget(memory: Service, memory_ids: Sequence[int]) -> None:
    await memory.database.write(lambda tx: memories.delete(tx, memory_ids))


async def words_left(memory: Service) -> str:
    rows = await memory.database.read(
        lambda reader: reader.all(
            "select name || '|' || norm as w from entities union all select alias from entity_aliases"
        )
    )
    return " ".join(row["w"] for row in rows).lower()


async def test_an_entity_shows_its_spellings_and_the_memories_that_name_it(memory: Service, ada: Context) -> None:
    """A question about a person is answered from all memories of them, however they were called."""
    first = await keep(memory, ada, "met Chen", Named(type="person", name="Chen"))
    second = await keep(memory, ada, "Dr. Chen is a dentist", Named(type="person", name="Dr. Chen"))
    found = await known(memory, ada, "CHEN")
    assert found is not None
    assert (found.type, found.name, found.aliases) == ("person", "Dr. Chen", ("Chen",))
    assert (found.memory_ids, found.mentions) == ((second, first), 2)
    assert await known(memory, ada, "Peter") is None


async def test_noting_twice_counts_once(memory: Service, ada: Context) -> None:
    """A redone turn must not make somebody twice as important."""
    memory_id = await keep(memory, ada, "Mary Chen", MARY, MARY)
    await memory.database.write(lambda tx: entities.note(tx, ada.scope.writes_to, memory_id, [MARY], now=NOON))
    found = await known(memory, ada, "Mary Chen")
    assert found is not None
    assert found.mentions == 1


async def test_a_known_name_gains_the_type_it_is_found_to_have(memory: Service, ada: Context) -> None:
    """ "Atlas" alone tells nothing; "the Atlas project" later does, for both."""
    await keep(memory, ada, "#atlas is late", Named(type="other", name="#atlas"))
    await keep(memory, ada, "Atlas project", Named(type="project", name="Atlas"))
    await keep(memory, ada, "Atlas again", Named(type="other", name="Atlas"))
    found = await known(memory, ada, "atlas")
    assert found is not None
    assert (found.type, found.name, found.aliases, found.mentions) == ("project", "Atlas", ("#atlas",), 3)


async def test_one_name_may_be_a_person_and_a_place(memory: Service, ada: Context) -> None:
    """Sydney the friend does not live in everything said of the city."""
    city = await keep(memory, ada, "Sydney is far", Named(type="location", name="Sydney"))
    friend = await keep(memory, ada, "Sydney likes tea", Named(type="person", name="Sydney"))
    found = await memory.database.read(lambda reader: entities.matching(reader, ada.scope, "what about Sydney?"))
    assert {(entity.type, entity.memory_ids) for entity in found} == {("location", (city,)), ("person", (friend,))}
    assert await linked(memory, ada, "sydney") == [friend, city]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What does Mary Chen do?", ["Mary Chen"]), ("what does mary do", ["Mary Chen"]),
        ("Mary's birthday", ["Mary Chen"]), ("the Chens", []), ("Ann", ["Ann"]), ("planning", []), ("陈伟喜欢什么", ["陈伟"]),
        ("Mary Chen and Ann and 陈伟", ["Mary Chen", "Ann", "陈伟"]),
        ("nobody", []), ("", []),
    ],
)  # fmt: skip
async def test_names_are_recognised_in_a_question(memory: Service, ada: Context, text: str, names: list[str]) -> None:
    """Whole words only, except where a script has no spaces; a part of a name when only one person has it."""
    await keep(memory, ada, "Mary Chen", MARY)
    await keep(memory, ada, "Ann", Named(type="person", name="Ann"))
    await keep(memory, ada, "陈伟", Named(type="person", name="陈伟"))
    assert await named(memory, ada, text) == names


async def test_a_part_of_two_names_is_neither(memory: Service, ada: Context) -> None:
    """A guess between two people would tell of one what was said of the other."""
    await keep(memory, ada, "Mary Chen and Peter Chen", MARY, Named(type="person", name="Peter Chen"))
    assert await named(memory, ada, "what does Chen like") == []
    assert await known(memory, ada, "Chen") is None
    assert await named(memory, ada, "what does Peter like") == ["Peter Chen"]


async def test_a_longer_name_hides_the_shorter_one_inside_it(memory: Service, ada: Context) -> None:
    """New York Bakery is no question about New York."""
    await keep(memory, ada, "New York", Named(type="location", name="New York"))
    await keep(memory, ada, "New York Bakery", Named(type="organization", name="New York Bakery"))
    assert await named(memory, ada, "is the New York Bakery open?") == ["New York Bakery"]


async def test_entities_never_cross_owners(memory: Service, ada: Context) -> None:
    """That somebody knows a name at all is private."""
    bob = await memory.identities.context(*private("bob"))
    club = await memory.identities.context(*group("club", "ada"))
    memory_id = await keep(memory, ada, "Mary Chen", MARY)
    for other in (bob, club):
        assert await known(memory, other, "Mary Chen") is None
        assert await named(memory, other, "Mary Chen") == []
        assert await linked(memory, other, "Mary Chen") == []
    with pytest.raises(NotFound):
        await memory.database.write(lambda tx: entities.note(tx, bob.scope.writes_to, memory_id, [MARY], now=NOON))
    theirs = await keep(memory, bob, "Mary Chen", MARY)
    found = await known(memory, bob, "Mary Chen")
    assert found is not None
    assert found.memory_ids == (theirs,)


async def test_what_another_agent_keeps_to_itself_is_not_counted(memory: Service, ada: Context) -> None:
    """Agents share owners, but a row that stays with one agent names nobody to the other."""
    other = await memory.identities.context(*private("ada", agent="other"))
    await keep(memory, other, "Mary Chen", MARY, agent_id=other.scope.agent_id)
    assert await known(memory, other, "Mary Chen") is not None
    assert await known(memory, ada, "Mary Chen") is None
    assert await named(memory, ada, "Mary Chen") == []


async def test_two_owners_of_one_scope_know_a_name_as_one(memory: Service, ada: Context) -> None:
    """Linked identities are one person, who does not think in accounts."""
    bob = await memory.identities.context(*private("bob"))
    ids = [await keep(memory, context, "Mary Chen", MARY) for context in (ada, bob)]
    both = Scope(
        agent_id=ada.scope.agent_id, owners=(*ada.scope.owners, *bob.scope.owners), own=ada.scope.own,
        writes_to=ada.scope.writes_to, speaker_id=ada.scope.speaker_id, selves=(), private=True,
    )  # fmt: skip
    found = await memory.database.read(lambda reader: entities.entity(reader, both, "mary chen"))
    assert found is not None
    assert (len(found.ids), found.memory_ids) == (2, (ids[1], ids[0]))


async def test_merged_entities_answer_to_both_names_and_stay_merged(memory: Service, ada: Context) -> None:
    """ "NYC" and "New York" are one only because somebody said so; it must hold for what is said next."""
    first = await keep(memory, ada, "New York", Named(type="location", name="New York"))
    second = await keep(memory, ada, "NYC", Named(type="location", name="NYC"))
    one, other = await known(memory, ada, "New York"), await known(memory, ada, "NYC")
    assert one is not None
    assert other is not None
    await merge(memory, one.ids[0], other.ids[0])
    third = await keep(memory, ada, "nyc again", Named(type="location", name="nyc"))
    found = await known(memory, ada, "NYC")
    assert found is not None
    assert (found.name, found.memory_ids) == ("New York", (third, second, first))


async def test_a_name_goes_with_the_last_memory_of_it(memory: Service, ada: Context) -> None:
    """Forgetting somebody while keeping their name in a list would be no forgetting."""
    first = await keep(memory, ada, "Mary Chen likes tea", MARY)
    second = await keep(memory, ada, "Mary Chen moved", MARY)
    await forget(memory, [first])
    found = await known(memory, ada, "Mary Chen")
    assert found is not None
    assert found.memory_ids == (second,)
    await forget(memory, [second])
    assert await words_left(memory) == ""


async def test_a_spelling_goes_with_the_last_memory_that_spells_it(memory: Service, ada: Context) -> None:
    """The title or the married name may be just what was to be forgotten."""
    secret = await keep(memory, ada, "Dr. Chen saw me", Named(type="person", name="Dr. Chen"))
    await keep(memory, ada, "Chen was drchenning", Named(type="person", name="Chen"))
    await forget(memory, [secret])
    found = await known(memory, ada, "Chen")
    assert found is not None
    assert (found.name, found.aliases) == ("Chen", ())
    assert "dr" not in await words_left(memory)


async def test_a_merged_name_goes_although_the_other_one_stays(memory: Service, ada: Context) -> None:
    """The link between the two names was the forgotten part."""
    secret = await keep(memory, ada, "Robert", Named(type="person", name="Robert"))
    await keep(memory, ada, "Bob Stone", Named(type="person", name="Bob Stone"))
    one, other = await known(memory, ada, "Robert"), await known(memory, ada, "Bob Stone")
    assert one is not None
    assert other is not None
    await merge(memory, one.ids[0], other.ids[0])
    await forget(memory, [secret])
    assert await words_left(memory) == "bob stone|bob stone"


async def test_two_entities_left_with_one_name_become_one(memory: Service, ada: Context) -> None:
    """Forgetting must not stumble over what merging made possible."""

    async def absorb(keep_name: str, other: Named) -> tuple[int, int]:
        secret = await keep(memory, ada, keep_name, Named(type="person", name=keep_name))
        left = await keep(memory, ada, f"{other.name} {keep_name}x", other)
        ids = [
            next(e for e in found if e.type == kind).ids[0]
            for kind, found in (
                ("person", await memory.database.read(lambda r: entities.matching(r, ada.scope, keep_name))),
                (other.type, await memory.database.read(lambda r: entities.matching(r, ada.scope, other.name))),
            )
        ]
        await merge(memory, ids[0], ids[1])
        return secret, left

    first = await absorb("Robert", Named(type="organization", name="Rob"))
    second = await absorb("Roberta", Named(type="project", name="Rob"))
    await forget(memory, [first[0], second[0]])
    found = await known(memory, ada, "Rob")
    assert found is not None
    assert set(found.memory_ids) == {first[1], second[1]}
    assert await words_left(memory) == "rob|rob"


async def test_forgetting_a_great_deal_at_once_is_one_step(memory: Service, ada: Context) -> None:
    """ "Forget all" may be more rows than SQLite takes parameters."""
    memory_id = await keep(memory, ada, "Mary Chen", MARY)
    await memory.database.write(lambda tx: entities.release(tx, [*range(1_000_000, 1_040_000), memory_id]))
    assert await words_left(memory) == ""
