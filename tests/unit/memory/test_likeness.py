"""How alike two texts are, and what must never be taken for the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.text.likeness import differs_in_substance, jaccard
from tests.kit.tables import each_row

any_text = st.text(max_size=80) | st.text(alphabet="abcXYZ 0123 漢字我不的。, 'n't がく", max_size=80)
plain_word = st.from_regex(r"\A[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tv-z]{2,6}\Z")


@given(a=any_text, b=any_text)
def test_likeness_is_symmetric_and_within_0_and_1(a: str, b: str) -> None:
    """Which of two rows came first must not decide whether they are one."""
    assert 0 <= jaccard(a, b) <= 1
    assert jaccard(a, b) == jaccard(b, a)
    assert jaccard(a, a) == 1
    assert differs_in_substance(a, b) == differs_in_substance(b, a)
    assert not differs_in_substance(a, a)


def test_texts_without_tokens_are_alike_only_if_equal() -> None:
    """Two different emoji share no word and no lack of one either."""
    assert jaccard("👍", "👍") == 1
    assert jaccard("👍", "👎") == 0
    assert jaccard("", "dog") == 0


def test_a_contraction_is_as_good_as_its_two_words() -> None:
    """Models spell out what people shorten."""
    assert jaccard("doesn't eat meat", "does not eat meat") == 1
    assert jaccard("I can’t swim", "I can not swim") == 1


def test_a_denial_is_nearly_alike_and_yet_differs() -> None:
    """The pair for which the guard exists: likeness alone would merge them."""
    a = "The user is allergic to peanuts, shellfish and penicillin since childhood"
    b = "The user is not allergic to peanuts, shellfish and penicillin since childhood"
    assert jaccard(a, b) >= 0.75
    assert differs_in_substance(a, b)


DIFFERENT = [
    # negation
    ("I can swim", "I can't swim"),
    ("eats meat", "never eats meat"),
    ("likes tea, not coffee", "likes coffee, not tea"),
    ("is able to drive", "is unable to drive"),
    ("coffee with sugar", "coffee without sugar"),
    ("我喜欢喝茶", "我不喜欢喝茶"),
    ("他去过北京", "他没去过北京"),
    ("gosta de café", "não gosta de café"),
    ("он любит чай", "он не любит чай"),
    ("मुझे चाय पसंद है", "मुझे चाय पसंद नहीं है"),
    ("お茶を飲みます", "お茶を飲みません"),
    ("对花生过敏", "对花生不过敏"),
    # opposites and directions
    ("loves early mornings", "hates early mornings"),
    ("takes it before meals", "takes it after meals"),
    ("lends books to friends", "borrows books from friends"),
    ("饭前吃药", "饭后吃药"),
    ("从北京去上海", "从上海去北京"),
    # numbers and dates
    ("has 2 cats", "has 3 cats"),
    ("has two cats", "has three cats"),
    ("the flight leaves on 2026-03-05", "the flight leaves on 2026-03-06"),
    ("meets at 3pm", "meets at 3am"),
    ("pays 1,000 a month", "pays 10,000 a month"),
    ("runs Python 3.11", "runs Python 3.12"),
    ("it is -5 outside", "it is 5 outside"),
    ("works from 9 to 5", "works from 5 to 9"),
    ("the course is on monday", "the course is on friday"),
    ("有两只猫", "有三只猫"),
    ("周一开会", "周日开会"),
    ("今天出发", "明天出发"),
    # names
    ("lives in Lisbon", "lives in Porto"),
    ("Anna likes green tea", "Marta likes green tea"),
    ("sees Dr. Smith", "sees Dr. Jones"),
    ("moved from Paris to Rome", "moved from Rome to Paris"),
    ("живёт в Москве", "живёт в Твери"),
    ("我住在Lisbon", "我住在Porto"),
    ("王医生是我邻居", "李医生是我邻居"),
    ("我常用python", "我常用java"),
]

SAME = [
    ("User prefers green tea", "prefers green tea"),
    ("isn't allergic to nuts", "not allergic to nuts"),
    ("no longer smokes", "not smokes anymore"), ("I LOVE TEA", "I love tea"), ("Lives in Lisbon.", "lives in lisbon"),
    ("has two cats", "has 2 cats"), ("pays 1,000 a month", "pays 1000 a month"), ("due 2026-03-05", "due 2026/3/5"),
    ("有3只猫", "有三只猫"), ("她特别喜欢茶", "她喜欢茶"), ("我住在Lisbon", "我住在lisbon"), ("José's dog", "Jose's dog"),
    ("Tea is nice. Coffee too", "tea is nice, coffee too"),
]  # fmt: skip


@each_row(("a", "b"), DIFFERENT)
def test_texts_that_differ_in_number_name_or_negation_differ_in_substance(a: str, b: str) -> None:
    """Merging any of these pairs would lose a memory."""
    assert differs_in_substance(a, b)


@each_row(("a", "b"), SAME)
def test_texts_that_differ_in_wording_only_do_not_differ_in_substance(a: str, b: str) -> None:
    """If everything differed, nothing would ever be merged."""
    assert not differs_in_substance(a, b)


@given(words=st.lists(plain_word, min_size=1, max_size=12), place=st.integers(0, 11), digit=st.integers(2, 999))
def test_a_number_put_into_any_text_differs_in_substance(words: list[str], place: int, digit: int) -> None:
    """Numbers must count wherever they stand and whatever is around them."""
    changed = [*words[:place], str(digit), *words[place:]]
    assert differs_in_substance(" ".join(words), " ".join(changed))


def test_very_long_texts_differ_in_substance_as_soon_as_they_differ() -> None:
    """Nobody reads so far for a likeness, and keeping both is safe."""
    long = "the same word again " * 50_000
    assert not differs_in_substance(long, long)
    assert differs_in_substance(long, long + "end")
