"""The order of reading decides nothing about current facts: pieces fail, wait for a model, and come back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.context import Context
from memory.learn import keep
from memory.service import Service
from memory.store import chats, memories
from memory.store.database import Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from tests.kit.fakes import DAY, NOON
from tests.kit.stores import link, unlink
from tests.kit.talk import act, private

_names = count()


@dataclass(frozen=True, slots=True)
class Told:
    """A message from one of two accounts: where somebody lives, or may live. It may be edited, then deleted."""

    value: str
    unsure: bool
    account: int
    edited: tuple[str, bool] | None = None
    deleted: bool = False


VALUES = st.sampled_from(["Lisbon", "Porto", "Berlin"])
MESSAGES = st.builds(
    Told,
    VALUES,
    st.booleans(),
    st.integers(0, 1),
    st.none() | st.none() | st.tuples(VALUES, st.booleans()),
    st.sampled_from([False, False, False, True]),
)
#: How many examples are tried; `make fuzz` tries 2,000 new ones.
EXAMPLES = int(os.environ.get("REMORA_ORDERS", "30"))


def draft(context: Context, value: str, *, unsure: bool, day: int, key: str = "home") -> Draft:
    return Draft(
        kind="fact",
        owner_id=context.scope.writes_to,
        author_id=context.speaker.id,
        subject_id=context.speaker.id,
        category="place" if key == "home" else "identity",
        key=key,
        value=value,
        importance=5,
        confidence=0.4 if unsure else 0.8,
        origin="extracted",
        learned_at=NOON + day * DAY,
        local_date="2026-11-21",
    )


async def person(memory: Service) -> list[Context]:
    names = [f"p{next(_names)}" for _ in range(2)]
    contexts = [await memory.identities.context(*private(name)) for name in names]
    await link(memory, *contexts)
    return [await memory.identities.context(*private(name)) for name in names]


async def said(memory: Service, context: Context, text: str, *, day: int, ref: str) -> int:
    where, who = private(context.speaker.name)
    line = Utterance(
        role="user", text=text, tokens=3, said_at=NOON + day * DAY, learn=True, platform_ref=ref,
        author_name=context.speaker.name,
    )  # fmt: skip
    await memory.turns.record(where, who, [line])
    return await memory.database.read(
        lambda reader: reader.number("select max(id) from messages where platform_ref = ?", (ref,))
    )


def read(tx: Transaction, context: Context, one: Draft, message_id: int, memory: Service) -> None:
    scope = chats.scope_of(tx, context.session, context.speaker.id)
    keep.keep(tx, scope, one, source_ids=[message_id], now=NOON, new_id=memory.new_id)


async def holding(memory: Service, context: Context) -> list[tuple[str, bool]]:
    """Returns the values that hold, and whether each is unsure."""
    rows = await memory.database.read(lambda reader: memories.current(reader, context.scope, ("fact",), limit=50))
    return sorted((row.value, row.unsure) for row in rows)


async def holds_after(memory: Service, messages: Sequence[Told], order: Sequence[int]) -> list[tuple[str, bool]]:
    """Returns what holds of messages that were said one a day and are read in an order; edits, then deletions, come at the end."""
    accounts = await person(memory)
    ids = [await said(memory, accounts[m.account], m.value, day=n, ref=f"r{n}") for n, m in enumerate(messages)]
    for n in order:
        told, context = messages[n], accounts[messages[n].account]
        one = draft(context, told.value, unsure=told.unsure, day=n)
        await memory.database.write(lambda tx, c=context, d=one, n=n: read(tx, c, d, ids[n], memory))  # type: ignore[misc]
    for n in order:
        told, context = messages[n], accounts[messages[n].account]
        if told.edited is not None:
            text, unsure = told.edited
            await act(
                memory,
                context,
                lambda e, n=n: e.amend(f"r{n}", f"edited {n}", compose=lambda t, _: t, count_tokens=len),  # type: ignore[misc]
            )
            one = draft(context, text, unsure=unsure, day=n)
            await memory.database.write(lambda tx, c=context, d=one, n=n: read(tx, c, d, ids[n], memory))  # type: ignore[misc]
    for n in order:
        if messages[n].deleted:
            session = accounts[messages[n].account].session
            assert await memory.requests.retract("console", session.key, [f"r{n}"]) == 1
    return await holding(memory, accounts[0])


def as_said(messages: Sequence[Told]) -> list[Told]:
    """Returns the messages that are there in the end, as they read then."""
    there = [m for m in messages if not m.deleted]
    return [Told(m.value, m.unsure, m.account) if m.edited is None else Told(*m.edited, m.account) for m in there]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_any_order_of_reading_leaves_the_same_values(memory: Service, data: st.DataObject) -> None:
    """With repeats, guesses, edits, deletions and two accounts: as if each message had been read when it was said."""
    messages = data.draw(st.lists(MESSAGES, min_size=2, max_size=6))
    order = data.draw(st.permutations(range(len(messages))))
    final = as_said(messages)
    plain = [m for m in final if not m.unsure]
    there = await holds_after(memory, messages, order)
    assert there == await holds_after(memory, final, range(len(final)))
    assert [value for value, unsure in there if not unsure] == [m.value for m in plain[-1:]]


L, B, P = "Lisbon", "Berlin", "Porto"
#: Orders of reading that once left other values.
ONCE_WRONG = (
    # The plain telling of a guess goes: it is a guess again.
    ([Told(L, False, 0), Told(L, False, 0, (B, True)), Told(B, False, 0, deleted=True), Told(L, False, 0)], [0, 1, 2, 3]),
    # A guess that had ended is told plainly before it was made.
    ([Told(P, False, 1), Told(L, False, 0), Told(P, False, 0), Told(P, True, 0)], [0, 3, 2, 1]),
    # What proved a guess is edited away.
    ([Told(L, False, 0), Told(B, True, 1), Told(B, False, 0, (L, False)), Told(L, False, 0)], [0, 1, 2, 3]),
    # Of two guesses that were put together, one is edited and the other deleted.
    ([Told(P, False, 1), Told(L, False, 0), Told(P, True, 0, deleted=True), Told(L, False, 0), Told(P, True, 0, (L, False))],
     [0, 2, 3, 4, 1]),
    # Two guesses of one value come to stand side by side.
    ([Told(P, False, 0), Told(L, False, 0), Told(P, True, 1), Told(L, False, 0), Told(P, True, 1)], [0, 2, 3, 4, 1]),
)  # fmt: skip


async def test_orders_that_once_left_other_values(memory: Service) -> None:
    for messages, order in ONCE_WRONG:
        final = as_said(messages)
        there = await holds_after(memory, messages, order)
        assert there == await holds_after(memory, final, range(len(final))), (messages, order)


async def told(memory: Service, context: Context, *tellings: tuple[int, str, bool], key: str = "home") -> None:
    """Reads messages that were said on some days, in the order given."""
    for day, value, unsure in tellings:
        message_id = await said(memory, context, value, day=day, ref=f"{key}{day}")
        one = draft(context, value, unsure=unsure, day=day, key=key)
        await memory.database.write(lambda tx, d=one, m=message_id: read(tx, context, d, m, memory))  # type: ignore[misc]


async def test_a_guess_that_is_confirmed_or_pinned_counts_at_once(memory: Service) -> None:
    """In the profile, too: whoever pins it vouches for it."""
    for do in ("confirm", "pin"):
        ada, _ = await person(memory)
        await told(memory, ada, (0, "Lisbon", False), (1, "Porto", True))
        rows = await memory.browse.memories(ada, limit=10)
        guess = next(row for row in rows if row.unsure).short_id
        await act(memory, ada, lambda e, g=guess, d=do: e.confirm(g) if d == "confirm" else e.pin(g, pinned=True))  # type: ignore[misc]
        assert await holding(memory, ada) == [("Porto", False)]
        assert [slot.memory.value for slot in await memory.browse.profile(ada)] == ["Porto"]


async def test_accounts_that_are_linked_live_in_one_place_and_part_with_their_own(memory: Service) -> None:
    """Berlin and Paris are not both home, and whoever parts again lives where they said."""
    names = [f"p{next(_names)}" for _ in range(2)]
    one, other = [await memory.identities.context(*private(name)) for name in names]
    await told(memory, one, (0, "Berlin", False))
    await told(memory, other, (1, "Paris", False))
    await link(memory, one, other)
    both = await memory.identities.context(*private(names[0]))
    assert await holding(memory, both) == [("Paris", False)]
    await unlink(memory, both)
    apart = [await memory.identities.context(*private(name)) for name in names]
    assert [await holding(memory, each) for each in apart] == [[("Berlin", False)], [("Paris", False)]]


async def test_an_age_that_jumps_replaces_none_until_it_is_told_again(memory: Service) -> None:
    """Most jumps are slips of a reader, whatever is read first."""
    jump = [(0, "35", False), (1, "40", False)]
    for tellings in (jump, jump[::-1]):
        ada, _ = await person(memory)
        await told(memory, ada, *tellings, key="age")
        assert await holding(memory, ada) == [("35", False), ("40", True)]
        await told(memory, ada, (2, "40", False), key="age")
        assert await holding(memory, ada) == [("40", False)]
    ada, _ = await person(memory)
    await told(memory, ada, (0, "35", False), (360, "36", False), key="age")
    assert await holding(memory, ada) == [("36", False)]
