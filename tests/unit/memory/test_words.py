"""Index words of any script, query terms, BM25, and when two texts are the same memory."""

from __future__ import annotations

import json
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.words import DOCUMENT_TOKENS, QUERY_TERMS, TOKEN_CHARS, query_terms, tokens
from tests.kit.tables import each_row

SCRIPTS = {
    "latin": "abczéüñßøđİı ' ’-.,:/", "digits": "0123456789٣५๔９½②-./:,年月日", "greek": "αβςσΐΏ ", "cyrillic": "абвйёїЩ ",
    "hebrew": "אבגשלום\u05b4\u05bc ", "arabic": "ابتأإىةيکگ\u064e\u0640 ", "indic": "हिन्दीकाிதமழ்বাংলাతె ",
    "han": "漢汉字我的不是々〇 ", "japanese": "がくせいカﾞーゃっゞ\u3099 ", "korean": "한국어ㅋ먹었\u1112\u1161\u11ab ",
    "unspaced": "ภาษาไทน้ำເຈົ້າမြန်မာខ្មែរᦀᦱ ",
    "noise": '👍❤️🏽_\u200b\u200d\u00ad\ufeff\x00\ud800\ue000\U000f0041 "*^()',
}  # fmt: skip
any_script = st.text(
    alphabet=st.one_of(*(st.sampled_from(chars) for chars in SCRIPTS.values())), min_size=1, max_size=80
)
any_text = any_script | st.text(max_size=80)


# Folding and cutting


@each_row(
    ("text", "expected"),
    [
        ("Running dogs, isn't Caroline's", ["run", "dog", "isnt", "carolin"]),
        ("São Đà Nẵng naïve ﬁne Bjørn", ["sao", "da", "nang", "naiv", "fine", "bjorn"]),
        ("Ёлка новый книги", ["елк", "нов", "книг"]),
        ("الكتاب والكتاب كتابها", ["كتاب", "كتاب", "كتاب"]),
        ("шалом עִבְרִית", ["шал", "עברית"]), ("记忆力", ["记", "记忆", "忆", "忆力", "力"]),
        ("がく ｶﾞｷ", ["が", "がく", "く", "ガ", "ガキ", "キ"]), ("서울", ["서", "서울", "울"]),
        ("用Python写2026", ["用", "python", "写", "2026"]), ("R2D2 B12", ["r2d2", "b12"]),
        ("iPhone15", ["iphone15", "iphon", "15"]), ("007 ٢٥ ９", ["007", "25", "9"]),
        ("1,000 1,234,567", ["1000", "1234567"]),
        ("snake_case a-b e.g.", ["snake", "case", "a", "b", "e", "g"]),
        ("👍 ... ❤️", []),
    ],
)  # fmt: skip
def test_tokens_of_typical_texts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@each_row("text", ["2026-03-05", "2026/3/5", "2026.03.05", "2026年3月5日", "２０２６年０３月０５日"])
def test_a_date_has_one_token_however_it_is_written(text: str) -> None:
    """A question names a day in one way and the message in another."""
    found = tokens(text)
    assert found[0] == "20260305"
    assert {"2026", "3", "5"} <= set(found)


def test_a_number_with_points_is_found_whole_and_by_its_parts() -> None:
    """ "3.11" must beat a text that merely holds a 3 and an 11, and "11" alone must still find it."""
    whole, *parts = tokens("3.11")
    assert parts == ["3", "11"]
    assert whole not in tokens("3 and 11")
    assert tokens("v 3.11")[1] == whole
    assert tokens("2026-13-45")[0] != "20261345"


def test_vowel_signs_keep_indic_and_thai_words_apart() -> None:
    """Splitting at these marks, or dropping them, would make one word of many."""
    assert len(tokens("हिन्दी")) == 1
    assert tokens("काम") != tokens("कम")
    assert tokens("น้ำ") != tokens("นา")


def test_composed_and_decomposed_text_give_the_same_tokens() -> None:
    """macOS file names and some keyboards send the decomposed form."""
    for text in ("Ça é ü Ёй が 한국어 हिन्दी ΐ", "Đà Nẵng أحمد"):
        assert tokens(unicodedata.normalize("NFD", text)) == tokens(unicodedata.normalize("NFC", text))


def test_every_character_of_unicode_gives_only_tokens_without_blanks() -> None:
    """The index keeps the tokens of a document as one text; random text never meets the few odd letters."""
    found: list[str] = []
    for start in range(0, sys.maxunicode, 2_000):
        found += tokens(" ".join(map(chr, range(start, min(start + 2_000, sys.maxunicode + 1)))))
    assert " ".join(found).split() == found
    assert json.loads(json.dumps(found).encode()) == found
    assert len(set(found)) > 100_000


@given(text=any_text)
def test_tokens_are_bounded_and_never_blank(text: str) -> None:
    """A blank or endless token would break the index or the query."""
    for token in tokens(text):
        assert token
        assert len(token) <= TOKEN_CHARS
        assert not token.isspace()


@given(text=any_text)
def test_case_does_not_matter(text: str) -> None:
    """People shout and mumble the same words. (Casefold, since upper case loses letters in some scripts.)"""
    assert tokens(text) == tokens(text.casefold()) or "'" in unicodedata.normalize("NFKC", text.casefold())


@given(text=any_text, limit=st.integers(1, 20))
def test_a_limit_cuts_the_list_and_nothing_else(text: str, limit: int) -> None:
    """Otherwise the start of a long text would be indexed differently from the same short text."""
    assert tokens(text, limit=limit) == tokens(text)[:limit]


def test_long_texts_are_bounded() -> None:
    """A pasted megabyte must not become a megabyte of index; each text has invited a slow expression."""
    assert len(tokens("word " * 200_000)) == DOCUMENT_TOKENS
    assert len(tokens("汉" * 1_000_000)) == DOCUMENT_TOKENS
    assert len(tokens("a" * 1_000_000)) == 1
    assert tokens(" " * 1_000_000) == []
    for piece in ("1.", "1,111", "a's ", "n't", "2026年1月1", "น\u0e49", "a\u0301", "\ufdfa", "-", "1-a"):
        assert len(tokens(piece * 300_000)) <= DOCUMENT_TOKENS


def test_stemming_in_several_threads_gives_what_one_gives() -> None:
    """The stemmers keep state while they work, and searches may run beside each other."""
    texts = [" ".join(f"{stem}{number}ing".translate(LETTERS) for number in range(300)) for stem in ("ba", "do", "ki")]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(tokens, texts * 8))
    assert together == [tokens(text) for text in texts] * 8
    assert tokens("banding") == ["band"]


LETTERS = str.maketrans("0123456789", "bcdfgklmnp")


# Query terms


def test_a_name_whose_stem_is_a_function_word_is_searched_for() -> None:
    assert query_terms("who is Ines?") == tokens("Ines") == ["in"]
    assert query_terms("who is in the house?") == ["hous"]


def test_query_terms_drop_function_and_question_words() -> None:
    """They match nearly every message and cost the search its speed and its order."""
    assert query_terms("What did Caroline say about the adoption agency?") == ["carolin", "sai", "adopt", "agenc"]
    terms = query_terms("我的猫是什么颜色的吗")
    assert "颜色" in terms
    assert "猫" in terms
    assert {"我", "的", "是", "吗", "什么"}.isdisjoint(terms)


@pytest.mark.parametrize("text", ["who am I", "what is it", "我是谁", "你们"])
def test_query_terms_keep_stop_words_when_there_is_nothing_else(text: str) -> None:
    """A question of stop words only is still a question."""
    assert query_terms(text)


@given(text=any_text)
def test_query_terms_are_distinct_tokens_of_the_text_in_order(text: str) -> None:
    """A term must have been said, and once, or a document could never hold it."""
    terms, found = query_terms(text), tokens(text)
    positions = [found.index(term) for term in terms]
    assert positions == sorted(set(positions))
    assert bool(terms) == bool(found)


def test_query_terms_of_a_long_message_keep_its_topic_and_its_end() -> None:
    """The topic is what is said repeatedly; the question stands last."""
    filler = "".join(chr(0x5000 + number) for number in range(200))
    terms = query_terms(f"爵士 {filler} 爵士 {filler[::-1]} Lisbon")
    assert len(terms) == QUERY_TERMS
    assert "爵士" in terms
    assert "lisbon" in terms
    assert len(query_terms(filler, limit=10)) == 10


def test_query_terms_of_a_huge_paste_come_from_both_ends() -> None:
    """The question may stand before or after what was pasted."""
    terms = query_terms("Zanzibar\n" + "lorem ipsum " * 50_000 + "\nTimbuktu")
    assert {"zanzibar", "timbuktu"} <= set(terms)
