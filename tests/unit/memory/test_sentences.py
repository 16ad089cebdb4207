"""Where a text may end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.text.sentences import beginning


def upto(text: str, most: int) -> str:
    return beginning(text, lambda some: len(some) <= most)


def test_whole_sentences_stay_in_any_script() -> None:
    """A stop inside a number, an address or an ellipsis ends nothing; a closing quote belongs to its sentence."""
    said = "Pi is 3.14 at example.org… right. “He said so!” 他搬家了。现在很高兴？"
    ends = ['Pi is 3.14 at example.org…', 'Pi is 3.14 at example.org… right.', 'Pi is 3.14 at example.org… right. “He said so!”',
            'Pi is 3.14 at example.org… right. “He said so!” 他搬家了。', said]  # fmt: skip
    assert list(dict.fromkeys(upto(said, most) for most in range(len(said) + 1))) == ["", *ends]


def test_a_text_without_an_end_is_whole_or_nothing() -> None:
    """Half a sentence can say the opposite."""
    assert upto("he would never", 14) == "he would never" and upto("he would never", 13) == ""


@given(st.text(alphabet="ab .!?。“”)3\n", max_size=200), st.integers(0, 200))
def test_what_is_left_is_a_beginning_that_fits(text: str, most: int) -> None:
    cut = upto(text, most)
    assert text.startswith(cut) and len(cut) <= most
    assert cut == text or not cut or cut.rstrip("”“)\"'")[-1] in ".!?。"
