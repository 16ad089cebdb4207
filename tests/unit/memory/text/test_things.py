"""Wordings that name the same thing of a person, and others that must stand beside each other."""

from __future__ import annotations

import time
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from memory.jobs.loss import Statement, alike, joined_key
from memory.text.things import names_the_same, thing, unclear
from tests.kit.tables import each_row

SAME = [
    ("pet: cat Pixel", "pet: has a cat named Pixel"),
    ("pet: cat Pixel", "cat: Pixel"), ("pet: cat Pixel", "pet-name: pixel"),
    ("pet: cat Pixel", "pet: a grey cat called Pixel"),
    ("pet: cat Pixel", "pets: Pixel the cat"),
    ("pet: cat Pixel", "animal: owns a cat whose name is PIXEL"),
    ("pet: dog Rex", "dog: has a dog called Rex"),
    ("sister: Anna", "family: has a sister named Anna"),
    ("brother: Tom", "brother: has a brother called Tom"),
    ("pet: Katze Mimi", "pet: hat eine Katze namens Mimi"),
    ("pet: Katze Mimi", "haustier: eine Katze, die Mimi heißt"),
    ("pet: cat Mimi", "pet: hat eine Katze namens Mimi"),
    ("pet: Hund Bello", "hund: Bello"),
    ("daughter: Mia", "daughter: hat eine Tochter namens Mia"),
    ("pet: chat Félix", "pet: a un chat qui s'appelle Felix"),
    ("pet: chien Rex", "animal: possède un chien nommé Rex"),
    ("pet: perro Toby", "pet: tiene un perro llamado Toby"),
    ("pet: gata Luna", "mascota: su gata se llama Luna"),
    ("pet: cat Luna", "pet: tiene una gata que se llama Luna"),
    ("pet: 猫 米粥", "pet: 养了一只猫，名叫米粥"), ("pet: 狗 旺财", "宠物: 有一条狗叫旺财"), ("pet: 猫 ミケ", "pet: ミケという名前の猫を飼っている"),
    ("ペット: 犬のポチ", "pet: 犬 ポチ"),
]  # fmt: skip
OTHER = [
    ("pet: cat Pixel", "pet: cat Luna"), ("pet: cat Pixel", "pet: dog Pixel"),
    ("pet: cat Pixel", "pet: has no cat Pixel any more"),
    ("pet: cat Pixel", "pet: had a cat named Pixel"),
    ("pet: cat Pixel", "pet: wants a cat named Pixel"),
    ("pet: cat Pixel", "pet: friend's cat Pixel"), ("pet: cat Pixel", "likes: cat Pixel"),
    ("pet: cat Pixel", "fear: cat Pixel"), ("pet: cat Pixel", "phone: Pixel"), ("pet: cat Pixel", "pet: a cat"),
    ("pet: grey cat Pixel", "pet: black cat Pixel"),
    ("pet: cat Pixel, 3 years old", "pet: cat Pixel, 5 years old"),
    ("sister: Anna", "brother: Anna"), ("sister: Anna", "friend: Anna"), ("sister: Anna", "sister: Eva"),
    ("pet: Katze Mimi", "pet: Katze Momo"),
    ("pet: Katze Mimi", "pet: hat keine Katze Mimi mehr"),
    ("pet: Katze Mimi", "pet: Katze Mimi der Nachbarin"),
    ("pet: chat Félix", "pet: n'a plus de chat Félix"),
    ("pet: chat Félix", "pet: le chat Félix de sa sœur"),
    ("pet: perro Toby", "pet: ya no tiene al perro Toby"),
    ("pet: perro Toby", "pet: perro Tobi"), ("pet: 猫 米粥", "pet: 狗 米粥"), ("pet: 猫 米粥", "pet: 没有猫米粥了"),
    ("pet: 犬 ポチ", "pet: 犬 ハチ"), ("pet: 犬 ポチ", "pet: 犬のポチはもういない"),
]  # fmt: skip


def statement(text: str) -> Statement:
    key, _, value = text.partition(": ")
    return Statement(key=key, value=value)


def are_joined(one: str, other: str) -> bool:
    return len(alike({1: statement(one), 2: statement(other)})) == 1


@each_row(("one", "other"), SAME)
def test_wordings_of_one_thing_are_joined(one: str, other: str) -> None:
    assert are_joined(one, other) and are_joined(other, one)


@each_row(("one", "other"), OTHER)
def test_what_differs_in_name_kind_owner_or_time_is_not(one: str, other: str) -> None:
    """A memory lost is worse than a row too many."""
    assert not are_joined(one, other) and not are_joined(other, one)


UNCLEAR = [
    ("friend: Anna", "friend: Anna Schmidt", "friend: Anna Müller"),
    ("friend: Anna", "friend: has a friend named Anna Schmidt", "friends: Anna Müller, a friend"),
    ("colleague: Tom", "colleague: boss Tom Baker", "colleague: boss Tom Miller"),
    ("pet: Luna", "pet: cat Luna", "pet: dog Luna"),
    ("pet-name: Luna", "cat: Luna", "dog: a dog called Luna"),
    ("haustier: Luna", "pet: Katze Luna", "pet: Hund Luna"),
    ("mascota: Luna", "pet: gata Luna", "pet: perra Luna"),
    ("animal: Luna", "pet: chatte Luna", "pet: chienne Luna"),
    ("宠物: 豆豆", "pet: 猫 豆豆", "pet: 狗 豆豆"),
    ("ペット: ハナ", "pet: 犬 ハナ", "pet: 猫 ハナ"),
    ("family: Kim", "sister: Kim", "brother: Kim"),
    ("child: Leo", "son: Leo", "daughter: Leo"),
    ("pet: Luna, three years old", "cat: Luna", "dog: Luna"),
]


@each_row(("unclear", "one", "other"), UNCLEAR)
def test_what_may_name_either_of_two_is_joined_with_neither(unclear: str, one: str, other: str) -> None:
    """In whatever order they were told: nobody knows which of them is meant."""
    for order in permutations((unclear, one, other)):
        assert len(alike(dict(enumerate(map(statement, order))))) == 3, order


def test_a_name_is_clear_again_if_there_is_one_of_it() -> None:
    wordings = ("friend: Anna Schmidt", "friend: Anna", "friend: has a friend named Anna", "sister: Eva Müller")
    assert len(alike(dict(enumerate(map(statement, wordings))))) == 2


def test_a_thousand_friends_of_one_name_are_compared_at_once() -> None:
    """Each pair of them would take a million comparisons."""
    letters = "".join(map(chr, range(ord("a"), ord("o"))))
    surnames = ("Q" + "".join(each) for each in permutations(letters, 4))
    named = {n: thing("friend", f"Anna {surname}") for n, surname in zip(range(3_000), surnames, strict=False)}
    named[3_000] = thing("friend", "Anna")
    begun = time.thread_time()
    assert unclear({n: one for n, one in named.items() if one is not None}) == {3_000}
    assert time.thread_time() - begun < 2


def test_a_bare_name_keeps_the_key_that_says_what_it_names() -> None:
    """ "pet-name: Pixel" alone would not tell of a cat."""
    assert joined_key([statement("cat: Pixel"), statement("pet-name: Pixel")]) == "cat"
    assert joined_key([statement("pet: a grey cat called Pixel"), statement("cat: Pixel")]) in ("pet", "cat")


@given(key=st.text(max_size=20), value=st.text(max_size=150))
def test_any_fact_names_itself_if_it_names_anything(key: str, value: str) -> None:
    found = thing(key, value)
    assert found is None or names_the_same(found, found)
