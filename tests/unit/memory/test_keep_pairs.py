"""Which statements end in one row and which must stand beside each other, through the one place that decides it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory.context import Context
from memory.learn import keep
from memory.scope import Scope
from memory.service import Service
from memory.store import memories
from memory.store.database import Transaction
from memory.store.memories import Draft, Memory
from memory.text.likeness import jaccard
from tests.kit.fakes import DAY, NOON, counting_ids
from tests.kit.talk import group, private

PAIRS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "same_or_not.yaml").read_text("utf-8")
)
new_id = counting_ids()


def draft(context: Context, value: str, *, day: int = 0, **fields: Any) -> Draft:
    given: dict[str, Any] = {
        "kind": "fact", "owner_id": context.scope.writes_to, "author_id": context.scope.speaker_id,
        "subject_id": context.scope.speaker_id, "category": "preference", "key": "detail", "importance": 5,
        "confidence": 0.8, "origin": "extracted", "learned_at": NOON + day * DAY, "local_date": f"2026-11-{21 + day}",
    }  # fmt: skip
    return Draft(value=value, **{**given, **fields})


def put(tx: Transaction, scope: Scope, one: Draft, *, replaces: tuple[int, ...] = ()) -> Memory:
    memory_id = keep.keep(tx, scope, one, source_ids=(), now=one.learned_at, new_id=new_id, replaces=replaces)
    assert memory_id is not None
    kept = memories.by_id(tx, scope, memory_id)
    assert kept is not None
    return kept


def test_the_table_is_balanced() -> None:
    """Thirty pairs of each language, half of them to be merged."""
    assert Counter((pair["lang"], pair["same"]) for pair in PAIRS) == {
        ("en", True): 15, ("en", False): 15, ("zh", True): 15, ("zh", False): 15,
    }  # fmt: skip


def test_every_pair_that_must_stay_two_is_alike_enough_to_be_taken_for_one() -> None:
    """Else the table would test the measure and not what guards it."""
    unlike = [(pair["a"], pair["b"]) for pair in PAIRS if not pair["same"] and jaccard(pair["a"], pair["b"]) < 0.75]
    assert unlike == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['lang']}-{pair['why']}-{pair['a'][:24]}")
@pytest.mark.parametrize("turned", [False, True], ids=["told", "turned"])
async def test_what_says_the_same_is_one_row_and_what_differs_is_two(
    memory: Service, ada: Context, pair: dict[str, Any], turned: bool
) -> None:
    """A repeated fact must not fill the prompt twice; a new number must not drown in an old row. Either way round."""
    order = (1, 0) if turned else (0, 1)
    values = (pair["a"], pair["b"])
    keys = pair.get("keys", ["detail", "detail"])

    def act(tx: Transaction) -> tuple[Memory, Memory]:
        first, second = (
            put(tx, ada.scope, draft(ada, values[i], day=day, category=pair["category"], key=keys[i]))
            for day, i in enumerate(order)
        )
        return first, second

    first, second = await memory.database.write(act)
    assert (first.id == second.id) is pair["same"]
    assert second.superseded_by is None
    assert second.reinforced_count == (1 if pair["same"] else 0)


async def test_the_same_word_under_keys_with_a_meaning_of_their_own_is_two_rows(memory: Service, ada: Context) -> None:
    """Liking coriander and disliking it are no repetition, and a blue car is no blue flat."""
    pairs = [("likes", "dislikes", "coriander in soups and on salads"), ("car-colour", "flat-colour", "dark blue")]

    def act(tx: Transaction) -> set[int]:
        return {put(tx, ada.scope, draft(ada, value, key=key)).id for a, b, value in pairs for key in (a, b)}

    assert len(await memory.database.write(act)) == 4


async def test_what_one_has_come_to_like_is_no_longer_disliked(memory: Service, ada: Context) -> None:
    """The newer one holds, whichever it is, and only about the same thing."""

    def act(tx: Transaction) -> list[bool]:
        hated = put(tx, ada.scope, draft(ada, "mushrooms", key="dislikes"))
        other = put(tx, ada.scope, draft(ada, "olives", key="dislikes"))
        put(tx, ada.scope, draft(ada, "Mushrooms", day=2, key="likes"))
        after = [memories.by_id(tx, ada.scope, one.id) for one in (hated, other)]
        return [one is not None and one.live for one in after]

    assert await memory.database.write(act) == [False, True]


async def test_a_named_row_is_replaced_and_keeps_its_dates(memory: Service, ada: Context) -> None:
    """Only a model knows that a sold boat is no longer owned."""

    def act(tx: Transaction) -> tuple[Memory, Memory]:
        old = put(tx, ada.scope, draft(ada, "owns a red sailing boat", key="boat"))
        new = put(tx, ada.scope, draft(ada, "sold the boat", day=2, key="sale"), replaces=(old.id,))
        after = memories.by_id(tx, ada.scope, old.id)
        assert after is not None
        return after, new

    old, new = await memory.database.write(act)
    assert (old.superseded_by, old.valid_from, old.valid_until) == (new.id, NOON, NOON + 2 * DAY)
    assert new.live


async def test_an_older_message_never_closes_a_newer_row_even_when_the_row_is_named(
    memory: Service, ada: Context
) -> None:
    """A backlog may be read after what came later."""

    def act(tx: Transaction) -> tuple[Memory, Memory]:
        newer = put(tx, ada.scope, draft(ada, "sold the boat", day=5, key="sale"))
        older = put(tx, ada.scope, draft(ada, "owns a red sailing boat", key="boat"), replaces=(newer.id,))
        after = memories.by_id(tx, ada.scope, newer.id)
        assert after is not None
        return after, older

    newer, older = await memory.database.write(act)
    assert newer.live
    assert (older.superseded_by, older.valid_until) == (newer.id, NOON + 5 * DAY)


async def test_a_row_of_another_person_is_not_replaced_whoever_names_it(memory: Service, ada: Context) -> None:
    """In private because it can't be seen, in a group because it is not the speaker's."""
    bob = await memory.identities.context(*private("bob"))
    ada_there, bob_there = [await memory.identities.context(*group("club", name)) for name in ("ada", "bob")]

    def act(tx: Transaction) -> list[Memory | None]:
        secret = put(tx, ada.scope, draft(ada, "owns a red sailing boat", key="boat"))
        shown = put(tx, ada_there.scope, draft(ada_there, "owns a red sailing boat", key="boat"))
        put(tx, bob.scope, draft(bob, "the boat is sold", day=1, key="sale"), replaces=(secret.id,))
        put(tx, bob_there.scope, draft(bob_there, "the boat is sold", day=1, key="sale"), replaces=(shown.id,))
        put(tx, ada.scope, draft(ada, "a green house", day=1, key="house"), replaces=(shown.id,))
        return [memories.by_id(tx, ada.scope, secret.id), memories.by_id(tx, ada_there.scope, shown.id)]

    rows = await memory.database.write(act)
    assert [row is not None and row.live for row in rows] == [True, True]


async def test_relatives_of_one_name_are_kept_apart_in_a_group(memory: Service) -> None:
    """Two people may each have a sister called Anna, who live in two places."""
    contexts = [await memory.identities.context(*group("club", name)) for name in ("ada", "bob")]

    def act(tx: Transaction) -> list[Memory | None]:
        kept = [
            put(tx, one.scope, draft(one, city, category="place", key="home", subject="Anna", subject_id=None))
            for one, city in zip(contexts, ("Lisbon", "Porto"), strict=True)
        ]
        return [memories.by_id(tx, contexts[0].scope, row.id) for row in kept]

    assert [row is not None and row.live for row in await memory.database.write(act)] == [True, True]


async def test_the_same_thing_on_another_day_is_another_event(memory: Service, ada: Context) -> None:
    """Somebody who ran on Monday and on Tuesday ran twice."""

    def act(tx: Transaction) -> set[int]:
        fields = {"kind": "event", "category": "happening", "key": "event"}
        return {put(tx, ada.scope, draft(ada, "ran along the river", day=day, **fields)).id for day in (0, 0, 1)}

    assert len(await memory.database.write(act)) == 2


async def test_a_style_is_reinforced_and_never_replaced(memory: Service, ada: Context) -> None:
    """Wishes of one kind stand beside each other, whatever their key is called."""

    def act(tx: Transaction) -> list[Memory]:
        fields = {"kind": "style", "category": "instruction", "key": "language", "agent_id": ada.scope.agent_id}
        said = ["answers in short sentences", "answers in short sentences", "likes a joke now and then"]
        return [put(tx, ada.scope, draft(ada, value, day=day, **fields)) for day, value in enumerate(said)]

    first, again, other = await memory.database.write(act)
    assert (again.id, again.reinforced_count) == (first.id, 1)
    assert other.id != first.id and again.live


@pytest.mark.parametrize(
    ("key", "old", "other", "new", "ends"),
    [
        ("allergy", "nuts", "allergy", "not allergic to nuts", True),
        ("allergy", "nuts", "condition", "no longer allergic to nuts", True),
        ("allergy", "not allergic to nuts", "allergy", "allergic to nuts", True),
        ("owns", "car", "owns", "no car", True),
        ("allergy", "nuts", "allergy", "not allergic to milk", False),
        ("allergy", "nuts and milk", "allergy", "not allergic to nuts", False),
        ("allergy", "nuts", "allergy", "allergic to milk, not nuts", False),
        ("allergy", "nuts", "likes", "no nuts", False),
        ("diet", "3 meals", "diet", "not 4 meals", False),
    ],
)
async def test_a_plain_denial_ends_what_it_denies(
    memory: Service, ada: Context, key: str, old: str, other: str, new: str, ends: bool
) -> None:
    """Whoever read it: a bot that believes both warns for ever. What denies a part, or more, ends nothing."""

    def act(tx: Transaction) -> Memory:
        first = put(tx, ada.scope, draft(ada, old, key=key, category="health"))
        put(tx, ada.scope, draft(ada, new, day=1, key=other, category="health"))
        return memories.by_ids(tx, ada.scope, [first.id])[0]

    assert (await memory.database.write(act)).live is not ends


@pytest.mark.parametrize(
    ("key", "old", "other", "new", "becomes"),
    [
        ("likes", "pickled pears", "dislikes", "hates pickled pears now", {"hates pickled pears now"}),
        ("likes", "loves pickled pears", "likes", "doesn't like pickled pears", {"doesn't like pickled pears"}),
        ("dislikes", "Oliven", "likes", "liebt Oliven", {"liebt Oliven"}),
        ("allergy", "walnuts", "allergy", "allergic to walnuts", {"walnuts"}),
        ("note", "I'm allergic to walnuts", "allergy", "walnuts", {"walnuts"}),
        ("allergy", "walnuts", "note", "allergic to walnuts", {"walnuts"}),
        ("likes", "jazz", "likes", "loves jazz", {"jazz"}),
        ("likes", "jazz", "likes", "loves free jazz", {"jazz", "loves free jazz"}),
        ("pet", "dog", "pet", "cat", {"dog", "cat"}),
    ],
)
async def test_words_that_only_repeat_the_key_make_no_second_row(
    memory: Service, ada: Context, key: str, old: str, other: str, new: str, becomes: set[str]
) -> None:
    """And what one hates now is loved no longer, however both are worded."""
    filed = {
        "likes": "preference", "dislikes": "preference", "allergy": "health", "note": "decision", "pet": "relation",
    }  # fmt: skip

    def act(tx: Transaction) -> list[Memory]:
        put(tx, ada.scope, draft(ada, old, key=key, category=filed[key]))
        put(tx, ada.scope, draft(ada, new, day=1, key=other, category=filed[other]))
        return memories.current(tx, ada.scope, ("fact",), limit=9)

    assert {row.value for row in await memory.database.write(act)} == becomes
