"""Quotes: texts are found wherever they stand, and only they."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from memory.forgetting.plan import Quotes, is_telling

#: Few letters, so that pieces repeat and overlap.
_WORDS = st.text(alphabet='abA我é\\" \n', min_size=1, max_size=150)


@given(st.lists(_WORDS, max_size=5), _WORDS, st.data())
@example(["aaaaaaab"], "aaaaaaaaaaaaab", None)
def test_a_text_is_found_wherever_it_stands(texts: list[str], around: str, data: st.DataObject | None) -> None:
    """Whether looked up by its pieces or one by one must make no difference."""
    looked_through = around
    if texts and data is not None and data.draw(st.booleans()):
        looked_through = around + data.draw(st.sampled_from(texts)) + around
    quotes = Quotes(texts)
    # Spelled as in JSON, and as in JSON within JSON, a text counts as well.
    spelled = [json.dumps(text, ensure_ascii=asc)[1:-1] for text in texts if text.strip() for asc in (True, False)]
    spelled += [json.dumps(text, ensure_ascii=asc)[1:-1] for text in spelled for asc in (True, False)]
    spelled += [text for text in texts if text.strip()]
    expected = any(text.casefold() in looked_through.casefold() for text in spelled)
    assert quotes.stand_in(looked_through) == expected


@given(_WORDS.filter(str.strip), st.booleans())
def test_json_hides_nothing(text: str, ascii_only: bool) -> None:
    """A tool is called with JSON, and a call is kept as JSON: a quote in it is one all the same."""
    once = json.dumps({"said": text}, ensure_ascii=ascii_only)
    twice = json.dumps({"call": once}, ensure_ascii=ascii_only)
    quotes = Quotes([text])
    assert quotes.stand_in(text) and quotes.stand_in(once) and quotes.stand_in(twice)


def test_a_part_of_a_word_is_no_quote() -> None:
    """Tea is not in "instead"; a script without spaces has no parts of words that could be told."""
    tea = Quotes(["tea"])
    assert tea.stand_in("instead") and not tea.stand_in("instead of a steamboat", whole_words=True)
    assert tea.stand_in("instead of tea.", whole_words=True) and tea.stand_in("Tea!", whole_words=True)
    assert Quotes(["里斯本"]).stand_in("我住在里斯本市", whole_words=True)
    assert not Quotes(["12"]).stand_in("2012", whole_words=True)


def test_nothing_is_found_where_nothing_is_looked_for() -> None:
    assert not Quotes([]).stand_in("anything") and not Quotes(["", "  "]).stand_in("any thing")
    assert (
        is_telling("in Lisbon") and not is_telling("Lisbon") and is_telling("住在里斯本") and not is_telling("里斯本")
    )
