"""Turns text of any script into index words.

Invariants: Everything here is pure and deterministic. Document and query go through the same folding, so texts written
the same way match. A token holds no blank: blanks separate a document's tokens in the index. Work is linear in the
length of the text, and the number of tokens is bounded. A change that gives other tokens for the same text raises
`TOKENS_VERSION`, and the index is rebuilt.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from itertools import pairwise

import snowballstemmer

#: Stored beside the index: tokens of another version must not be searched with these.
TOKENS_VERSION = 1
#: The part of one text that is read, whichever limit comes first; the rest is not found by words. Callers chunk.
DOCUMENT_TOKENS = 16_384
DOCUMENT_CHARS = 131_072
#: Characters kept of one token; hashes and base64 need no more to be told apart.
TOKEN_CHARS = 64
#: Terms of one query; each costs a walk through its list in the index.
QUERY_TERMS = 64


def tokens(text: str, *, limit: int = DOCUMENT_TOKENS) -> list[str]:
    """Returns the index words of `text` in reading order, repeats kept; at most `limit`.

    - Case, width, compatibility forms and the diacritics of Latin, Greek, Cyrillic, Hebrew and Arabic are folded.
      Cyrillic й, Japanese voicing marks and Hangul syllables are kept. Digits become 0-9.
    - Words of spaced scripts are stemmed (Snowball: Porter for Latin script, Russian for Cyrillic, Greek and Hindi for
      theirs; Arabic script by light stemming).
    - Scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Myanmar ...), and Hangul, whose particles are
      attached to the noun, give for each run every character and every pair of neighbours. A character is a letter with
      its vowel signs and tones.
    - "iPhone15" gives the whole and both halves, "R2D2" the whole only. "3.11" and "10:30" give the whole and the
      numbers; "1,000" is 1000. A date (2026-03-05, 2026/3/5, 2026年3月5日) gives 20260305 and the parts.
    """
    found: list[str] = []
    for match in TOKEN.finditer(fold(text[:DOCUMENT_CHARS])):
        run = match.group()
        kind = match.lastgroup
        if kind == "word":
            found += _word_tokens(run[:TOKEN_CHARS])
        elif kind == "unspaced":
            # A unit has at most 5 characters, so this part of a run gives enough units for the limit.
            found += _unspaced_tokens(run[: 5 * limit])
        elif kind == "number":
            found += number_tokens(run)
        else:
            found += han_date_tokens(run)
        if len(found) >= limit:
            break
    return found[:limit]


def query_terms(text: str, *, limit: int = QUERY_TERMS) -> list[str]:
    """Returns the distinct tokens of `text` worth searching for, in order, at most `limit`.

    Function and question words of English, Chinese and Japanese are left out unless nothing else remains (a short list:
    it measured better than none, and as good as a long one). If too many tokens are left, whole words are preferred to
    the pairs and characters of unspaced scripts; then the most frequent, as the topic; then pairs to characters; then
    the latest, because a long message ends with its question. A very long text is read at both ends only.
    """
    if len(text) > 2 * _QUERY_END_CHARS:
        text = f"{text[:_QUERY_END_CHARS]} {text[-_QUERY_END_CHARS:]}"
    counts = Counter(tokens(text))
    idle = stop_tokens() - _no_stops(text)
    terms = [term for term in counts if term not in idle] or list(counts)
    if len(terms) <= limit:
        return terms
    worth = {
        term: (UNIT.match(term) is None, counts[term], UNIT.fullmatch(term) is None, position)
        for position, term in enumerate(terms)
    }
    chosen = set(sorted(terms, key=worth.__getitem__, reverse=True)[:limit])
    return [term for term in terms if term in chosen]


#: Vowel signs and tones are moved into the private use planes, where no pattern below tears a word apart at them.
#: Dropping them instead would merge many words in Hindi, Tamil or Thai.
_PRIVATE = 0xF0000
_PRIVATE_CLASS = "\U000f0000-\U0010ffff"
#: Marks that a searcher would not type: Latin, Greek and Cyrillic diacritics, Hebrew points, Arabic vowels and hamza,
#: enclosing marks, variation selectors.
_DROPPED_MARKS = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670),
    (0x06D6, 0x06ED), (0x180B, 0x180F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F), (0xE0100, 0xE01EF),
)  # fmt: skip
#: Letters to Unicode that are treated as vowel signs: New Tai Lue vowels, two Vedic signs.
_LIKE_VOWEL_SIGNS = frozenset([*range(0x19B0, 0x19C1), 0x19C8, 0x19C9, 0x1CF2, 0x1CF3])
#: Letters that people interchange though Unicode sees no diacritic in them, and signs that replace ASCII ones.
_FOLDED_BY_HAND = {
    "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ħ": "h", "Ħ": "H",
    "ŧ": "t", "Ŧ": "T", "ı": "i",
    "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE",
    "ى": "ي", "ی": "ي", "ک": "ك", "ـ": "",
    "’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-",
    "\u0439": "\u0439", "\u0419": "\u0419",  # Cyrillic short i: Russian endings need it
    "\u200b": " ",  # a word boundary in Thai and Khmer; other invisible characters stand inside words
}  # fmt: skip

#: Han, kana, Bopomofo, Hangul, Thai, Lao, Myanmar, Khmer, Tai, Yi: see `tokens`.
_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u104a-\u108f\u109a-\u109f\u1100-\u11ff\u1780-\u17d3\u17d7"
    "\u17dc\u1950-\u19cf\u1a20-\u1a7f\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u303c\u3041-\u318f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c\ua960-\ua97f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaadf\uac00-\ud7ff"
    "\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
UNIT = re.compile(f"[{_UNSPACED}][{_PRIVATE_CLASS}]{{0,4}}")
_ASCII_NO_WORD = "\\x00-/:-@\\[-`{-\\x7f"
# After `fold` only ASCII can separate, so every alternative is a plain character class.
TOKEN = re.compile(
    "(?P<han_date>[0-9]{4}年[0-9]{1,2}月[0-9]{1,2})"
    "|(?P<number>[0-9]{1,3}(?:,[0-9]{3}){1,6}(?![0-9])(?:\\.[0-9]{1,20})?|[0-9]{1,20}(?:[-./:][0-9]{1,20}){1,5})"
    f"|(?P<unspaced>[{_UNSPACED}][{_UNSPACED}{_PRIVATE_CLASS}]*)"
    f"|(?P<word>[^{_ASCII_NO_WORD}{_UNSPACED}]+)"
)
_CONTRACTED_NOT = re.compile(r"(?<=n)'(?=t(?![0-9a-z]))", re.IGNORECASE)
_CONTRACTED_REST = re.compile(r"(?<=[a-z])'(?:s|m|re|ve|ll|d)(?![0-9a-z])", re.IGNORECASE)
HALVES = re.compile(r"[0-9]+|[^0-9]+")
_NUMBER_PART = re.compile(r"[0-9]+")
_CALENDAR_DATE = re.compile(r"([0-9]{4})[-./]([0-9]{1,2})[-./]([0-9]{1,2})")

#: Arabic prefixes and suffixes of "light10" (Larkey, Ballesteros & Connell 2002), spelled as `fold` leaves them. They
#: replace Snowball's stemmer, which took 80 µs a word and kept the article after "and".
_ARABIC = "arabic"
_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ال", "لل")
_ARABIC_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ية", "ه", "ة", "ي")

#: The first code point of a block of letters → the stemmer for words that begin in it, up to the next entry.
_STEMMERS = (
    (0x0000, "porter"), (0x0250, None), (0x0370, "greek"), (0x0400, "russian"), (0x0530, None), (0x0620, _ARABIC),
    (0x0700, None), (0x0904, "hindi"), (0x0980, None),
)  # fmt: skip
_stemming = threading.Lock()


class _Characters(dict[int, str]):
    """A `str.translate` table of the results of `fold` for single characters, computed on first use."""

    def __missing__(self, code: int) -> str:
        result = self[code] = _fold_character(chr(code))
        return result


_characters = _Characters()


def fold(text: str, *, keep_case: bool = False) -> str:
    """Returns `text` with only letters, digits, private-use vowel signs and ASCII punctuation left."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_characters)
    if not keep_case:
        text = text.casefold()
    if "'" in text:
        text = _CONTRACTED_REST.sub(" ", _CONTRACTED_NOT.sub("", text))
    return text


def _fold_character(char: str) -> str:
    code = ord(char)
    category = unicodedata.category(char)
    if char in _FOLDED_BY_HAND or char.isascii():
        folded = _FOLDED_BY_HAND.get(char, char)
    elif category[0] == "M" or code in _LIKE_VOWEL_SIGNS:
        folded = "" if _is_dropped(code) else chr(_PRIVATE + code)
    elif category == "Cf":
        folded = ""
    elif category == "Nd":
        folded = str(unicodedata.decimal(char))
    elif char.isalnum():
        parts = unicodedata.normalize("NFD", char)
        folded = unicodedata.normalize("NFC", "".join(part for part in parts if not _is_dropped(ord(part))))
    else:
        folded = " "
    return folded


def _is_dropped(code: int) -> bool:
    return any(first <= code <= last for first, last in _DROPPED_MARKS)


def _word_tokens(run: str) -> tuple[str, ...]:
    if run.isdigit():
        return (run,)
    halves = HALVES.findall(run)
    if len(halves) == 1:
        return (stem(run),)
    # Codes like R2D2 or B12, and long identifiers, mean nothing in parts.
    if len(halves) > 4 or all(len(half) < 2 for half in halves if not half.isdigit()):
        return (run,)
    return (run, *(half if half.isdigit() else stem(half) for half in halves))


def _unspaced_tokens(run: str) -> list[str]:
    units = UNIT.findall(run)
    found = units[:1]
    for before, unit in pairwise(units):
        found += (before + unit, unit)
    return found


def number_tokens(run: str) -> list[str]:
    run = run.replace(",", "")
    date = _CALENDAR_DATE.fullmatch(run)
    if date is not None:
        whole = _date_token(*date.groups())
        if whole is not None:
            return [whole, *(part.lstrip("0") or "0" for part in date.groups())]
    parts = _NUMBER_PART.findall(run)
    return parts if len(parts) == 1 else [_NUMBER_JOINT.join(parts)[:TOKEN_CHARS], *parts]


#: Replaces the point inside a number token.
_NUMBER_JOINT = chr(_PRIVATE + ord("."))


def han_date_tokens(run: str) -> list[str]:
    year, month, day = _NUMBER_PART.findall(run)
    whole = _date_token(year, month, day)
    parts = [year, "年", month.lstrip("0") or "0", "月", day.lstrip("0") or "0"]
    return parts if whole is None else [whole, *parts]


def _date_token(year: str, month: str, day: str) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    return f"{year}{int(month):02}{int(day):02}"


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    if len(word) < 3 or len(word) > 32:
        return word
    first = ord(word[0])
    name = next(name for start, name in reversed(_STEMMERS) if first >= start)
    if name is None:
        return word
    if name == _ARABIC:
        return _stem_arabic(word)
    spelled = "".join(chr(ord(char) - _PRIVATE) if ord(char) >= _PRIVATE else char for char in word)
    # A stemmer has state of its own, and recall may run in several threads.
    with _stemming:
        stemmed: str = _stemmer(name).stemWord(spelled)
    # A stemmer may return marks that the folding moves or drops, or nothing at all.
    return fold(stemmed).replace("'", "").replace(" ", "") or word


def _stem_arabic(word: str) -> str:
    if word.startswith("و") and len(word) > 3:
        word = word[1:]
    for prefix in _ARABIC_PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= 2:
            word = word[len(prefix) :]
            break
    for suffix in _ARABIC_SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            word = word[: -len(suffix)]
    return word


@cache
def _stemmer(name: str) -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer(name)


_QUERY_END_CHARS = 4_096
#: A word that is too long for a stem of one or two letters to represent.
_LONGER = re.compile(r"\b[a-z]{4,}\b")
_ACCENTED = re.compile(r"\b(?=[a-z]{0,2}[à-öø-ÿ])[a-zà-öø-ÿ]{3}\b", re.IGNORECASE)
_STOP_WORDS = """
a an the and or but if of at by for with about to from in on as than then so
i me my mine you your yours he him his she her hers it its we us our ours they them their theirs
this that these those am is are was were be been being do does did done have has had having
can could would should shall will what which who whom whose when where why how there here
dont didnt doesnt isnt arent wasnt werent s t m re ve ll d
的 了 吗 呢 吧 啊 呀 嘛 我 你 您 他 她 它 们 是 在 有 和 与 跟 就 都 也 很 不 还 又 把 被 给 对
这 那 个 一 会 要 想 说 去 得 地 着 过 我们 你们 他们 她们 我的 你的 什么 怎么 怎样 如何 为什么
哪 哪里 哪儿 哪个 哪些 谁 多少 几 几个 什么时候 是什么 是不是 有没有 这个 那个 一个
还记得 记得吗 你知道 告诉我 请问 一下
の は が を に で と も へ か ね よ た て し です ます ました でした ですか ますか
"""


@cache
def stop_tokens() -> frozenset[str]:
    return frozenset(token for word in _STOP_WORDS.split() for token in tokens(word))


def _no_stops(text: str) -> frozenset[str]:
    """Returns what reads like function words of English in `text` and is none: "in" as the stem of "Ines", "thé"."""
    words = (word for word in _LONGER.findall(fold(text)) if word not in _stop_words())
    accented = map(fold, _ACCENTED.findall(text))
    return frozenset(found for word in words if len(found := stem(word)) <= 2).union(accented)


@cache
def _stop_words() -> frozenset[str]:
    return listed(_STOP_WORDS)


def listed(words: str) -> frozenset[str]:
    return frozenset(fold(words).split())
