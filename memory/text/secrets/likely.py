"""Finds secrets in a text that no rule knows, as learned from texts of several authors.

`likely.json` holds the learned decision trees, each a row of conditions and the worth of its ends;
`bench/redact_fit.py` makes it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory.text.secrets.folding import ANNOUNCING, BARRIER, any_of, data, has_patterns, pattern, tree, words
from memory.text.secrets.values import KNOWN, is_sign

_Tree: TypeAlias = list[Any] | float
#: Conditions on the way from a tree's root to each of its ends.
_DEPTH: Final = 3
#: A day. Plans and lists are full of them; one that is a secret stands behind a word that announces it.
_DAY: Final = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


class SecretTrees(NamedTuple):
    """The trees as tables, a row for each; the two conditions behind the nth are at 2n + 1 and 2n + 2."""

    names: tuple[str, ...]
    base: float
    measures: NDArray[np.intp]
    limits: NDArray[np.float64]
    ends: NDArray[np.float64]


def likely(text: str) -> list[tuple[int, int, str]]:
    some = pieces(text)
    # Words beside a secret that was found already are talk about it.
    marked = BARRIER in text
    found = [
        one
        for one in candidates(text, some)
        if (value := text[one.start : one.end])
        and _DAY.fullmatch(value) is None
        and not (marked and not any(map(str.isdigit, value)))
    ]
    least, learned = _learned()
    much = worths([description(text, some, one) for one in found], learned)
    return [
        (one.start, one.end, "code" if text[one.start : one.end].strip("#*- ").isdigit() else "password")
        for one, worth in zip(found, much, strict=True)
        if worth > least
    ]


def worths(described: Sequence[Description], learned: SecretTrees) -> list[float]:
    asked = [nth for nth, one in enumerate(described) if not _is_talk(one)]
    found = [-inf] * len(described)
    if not asked:
        return found
    values = np.array([[described[nth].get(name, 0.0) for name in learned.names] for nth in asked])
    rows, trees = np.arange(len(asked))[:, None], np.arange(len(learned.ends))
    node = np.zeros((len(asked), len(learned.ends)), dtype=np.intp)
    for _ in range(_DEPTH):
        above = values[rows, learned.measures[trees, node]] > learned.limits[trees, node]
        node = 2 * node + 1 + above
    totals = learned.base + learned.ends[trees, node - (2**_DEPTH - 1)].sum(axis=1)
    for nth, total in zip(asked, totals.tolist(), strict=True):
        found[nth] = total
    return found


def _is_talk(described: Description) -> bool:
    # Several words are a passphrase only behind a word for one: "Answer to: I like tea" is talk.
    if described.get("cut_clause") and not described["announced_before"]:
        return True
    # Rules decide which answers are secrets.
    return bool(described.get("around_answer")) and not any(described.get(f"around_{one}") for one in ANNOUNCE)


def tables(learned: dict[str, Any]) -> SecretTrees:
    """Returns the content of a file like `likely.json` in the form that `worths` reads."""
    conditions, ends = zip(*(_levels(tree) for tree in learned["trees"]), strict=True)
    return SecretTrees(
        names=tuple(learned["names"]),
        base=learned["base"],
        measures=np.array([[measure for measure, _ in some] for some in conditions], dtype=np.intp),
        limits=np.array([[limit for _, limit in some] for some in conditions]),
        ends=np.array(ends),
    )


def _levels(tree: _Tree) -> tuple[list[tuple[int, float]], list[float]]:
    """Returns a tree's conditions and ends, level by level. Branches that end early get idle conditions."""
    conditions: list[tuple[int, float]] = []
    level: list[Any] = [tree]
    for _ in range(_DEPTH):
        whole = [one if isinstance(one, list) else [0, inf, one, one] for one in level]
        conditions += [(one[0], one[1]) for one in whole]
        level = [behind for one in whole for behind in one[2:]]
    return conditions, [float(end) for end in level]


@cache
def _learned() -> tuple[float, SecretTrees]:
    learned: dict[str, Any] = json.loads(_TABLE.read_text("utf-8"))
    return learned["least"], tables(learned)


_TABLE: Final = resources.files("memory.text.secrets") / "likely.json"


#: The most pieces of a text: a longer one is a document, which is read by rules only.
_PIECES: Final = 2_000
#: The most candidates of a text that are described.
_CANDIDATES: Final = 300
#: The pieces on either side within which a word announces a secret, ties to it, or makes up its surroundings.
_TELLS, _NEAR, _AROUND = 12, 9, 24

#: Chinese and its neighbours, without the signs between words, of which a text may have any number.
_CJK: Final = "\u2e80-\u3000\u3003-\u300b\u3012-\u9fff\uac00-\ud7a3"
_APART: Final = "→➜➡⇒👉↦。、「」『』“”«»：，！？；（）【】"
_PIECE: Final = re.compile(rf"{BARRIER}|[{_CJK}]+|=>|->|[→➜➡⇒👉↦]|[^\s{BARRIER}{_CJK}{_APART}]+")
_OPENING, _CLOSING = "\"'`([{<“«*_~ ", "\"'`)]}>”».,:;?… "
_INNER: Final = re.compile(r"[^=:,;|/\\\"'<>(){}\[\]]{3,}")
_QUOTED: Final = re.compile(
    r"\"([^\"\n]{3,60})\"|“([^”\n]{3,60})”|« ?([^»\n]{3,60}?) ?»|「([^」\n]{2,60})」|『([^』\n]{2,60})』"
    r"|(?<!\w)'([^'\n]{3,60})'(?!\w)|`([^`\n]{3,60})`"
)
#: Several words behind a sign or a verb, to the end of the clause.
_CLAUSE: Final = re.compile(
    r"(?:(?<=[:=→])|(?<=[:=→] )|(?<=[:=→]\n)|(?<= - )|(?<= is )|(?<= are )|(?<= ist )|(?<= est )|(?<= to )|(?<= put )"
    rf"|(?<= es )|(?<= e ))[^\W\d_][^\n.,;:()=→\"{BARRIER}]{{4,60}}"
)
_CLAUSE_ENDS: Final = re.compile(
    r" - |  | (?:and|und|et|y|e|for|für|pour|para|but|aber|mais|pero|please|pls|so|if)(?= )"
)
_DIGIT: Final = f"(?:{any_of('digits')}|oh)"
_GROUPS: Final = re.compile(
    r"(?<![\w.,:/#-])[#*]?[0-9][0-9A-Za-z]{0,5}(?:(?: - |[ -])[0-9A-Z]{1,6}){1,7}[#*]?(?![\w]|[.,:/-]\w)"
    rf"|(?<!\w)(?i:{_DIGIT}(?:[ ,-]{{1,2}}{_DIGIT}){{2,9}})(?!\w)"
    r"|(?<!\S)[a-z0-9]{3,4}(?: [a-z0-9]{3,4}){1,3}(?![^\s,.;])"
)
#: The signs that may replace a blank within a term of several words.
_BLANKS: Final = (" ", "_", "-", "")
#: The place at which a word begins inside another: `DB_PASSWORD`, `adminPassword`.
_SEAM: Final = re.compile(r"[_.\-:/\[=(\"']|(?<=[a-z])(?=[A-Z])")
_SHAPES: Final = {"known": KNOWN} | {name: re.compile(source) for name, source in data("looks.yaml").items()}
_TIES: Final = (":", "=", "→>➜➡⇒👉↦", "-—", "/|", "(", "\"'`“«「", ",", ".!?;")
#: Kinds of words that announce a secret.
ANNOUNCE: Final = ("password", "pin", "code", "key", "open")

Description = dict[str, float]


class TellingWord(NamedTuple):
    """A word with its signs, or a run of Chinese or its neighbours; `told` has a bit for each kind of word it is."""

    start: int
    end: int
    told: int


class PossibleSecret(NamedTuple):
    """One or more pieces that could be a secret, and the way they were cut out."""

    start: int
    end: int
    cut: str


class _Kind(NamedTuple):
    """A pattern for the beginning of a kind of word, and the words' first three letters; None if these are many."""

    pattern: re.Pattern[str]
    starts: frozenset[str] | None


@cache
def _kinds() -> dict[str, _Kind]:
    announcing: dict[str, set[str]] = {}
    for _, kind, some in ANNOUNCING:
        announcing.setdefault(kind, set()).update(some)
    merged = {
        "password": "password line", "open": "open pair", "pin": "pin loosely", "code": "code turns",
        "key": "key phrase bearer wifi", "answer": "answer", "account": "account", "entry": "entry",
        "service": "vendor",
    }  # fmt: skip
    kinds = {
        name: frozenset[str]().union(*(announcing[kind] for kind in some.split())) for name, some in merged.items()
    }
    kinds["service"] |= words("services")
    kinds["user"] = words("users")
    found = {name: _Kind(pattern(_begins(some)), _starts(some)) for name, some in kinds.items()}
    for name in ("is", "to", "for", "adverbs", "ties_before", "one_of", "yours", "no_password", "digits"):
        alone = pattern(f"(?:{tree(sorted(words(name)))})(?![^\\W_])")
        found[name] = _Kind(alone, _starts(words(name)))
    for name in (
        *("opens", "no_opens", "hashes", "states", "changed", "measures", "questions", "typed", "no_link"),
        *("wifi", "forgotten"),
    ):
        found[name] = _Kind(pattern(f"(?:{any_of(name)})"), None if has_patterns(name) else _starts(words(name)))
    for name in ("numbered", "lost", "keeps", "sets", "asked", "fresh"):
        found[name] = _Kind(pattern(_begins(words(name))), _starts(words(name)))
    return found


@cache
def _telling() -> int:
    telling = [
        "password", "open", "pin", "code", "key", "answer", "entry", "service", "user", "opens", "sets", "asked",
        "keeps", "fresh", "wifi", "typed",
    ]  # fmt: skip
    return sum(1 << nth for nth, name in enumerate(_kinds()) if name in telling)


def _begins(some: frozenset[str]) -> str:
    """Returns a pattern: short words stand alone, long ones begin a word; a blank may be `_`, `-` or nothing."""
    short = sorted(one for one in some if len(one) < 4 and one.isascii())
    long = sorted({one.replace(" ", blank) for one in some - set(short) for blank in _BLANKS})
    return f"(?:{tree(short)})s?(?![^\\W_])|(?:{tree(long)})" if short else f"(?:{tree(long)})"


def _starts(some: frozenset[str]) -> frozenset[str]:
    # "ı" is "i" in any case.
    small = {one.lower().replace("ı", "i") for one in some if one}
    return frozenset(one.replace(" ", blank)[:3] for one in small for blank in _BLANKS)


@cache
def _beginnings() -> tuple[dict[str, int], dict[str, int]]:
    begun, whole = defaultdict[str, int](int), defaultdict[str, int](int)
    for nth, kind in enumerate(_kinds().values()):
        for start in kind.starts or ():
            whole[start] |= 1 << nth
            for end in range(len(start) + 1):
                begun[start[:end]] |= 1 << nth
    return begun, whole


# The cache keeps only the first three letters of people's words.
@lru_cache(4096)
def _kinds_at(start: str) -> tuple[tuple[int, _Kind], ...]:
    """Returns the bits of the kinds of words that may begin with `start`; "" stands for any beginning."""
    begun, whole = _beginnings()
    may = begun.get(start, 0)
    for end in range(1, len(start)):
        may |= whole.get(start[:end], 0)
    kinds = enumerate(_kinds().values())
    return tuple((1 << nth, kind) for nth, kind in kinds if kind.starts is None or may >> nth & 1)


def _told(phrase: str) -> int:
    bits, start = 0, phrase[:3].lower()
    for bit, kind in _kinds_at(start if start.isascii() else ""):
        if kind.pattern.match(phrase):
            bits |= bit
    return bits


def _told_anywhere(phrase: str) -> int:
    """Returns a bit for each kind of word anywhere in `phrase`, in scripts without blanks between words."""
    begun, may = _beginnings()[0], 0
    for letter in phrase:
        may |= begun.get(letter, 0)
    return sum(bit for bit, kind in _kinds_at("") if (may & bit or kind.starts is None) and kind.pattern.search(phrase))


def _told_inside(word: str) -> int:
    bits = 0
    for seam, _ in zip(_SEAM.finditer(word), range(6), strict=False):
        bits |= _told(word[seam.end() :][:40])
    return bits


def pieces(text: str) -> list[TellingWord]:
    found: list[TellingWord] = []
    for match in _PIECE.finditer(text):
        if len(found) == _PIECES:
            return []
        word = match.group()
        if "\u2e80" <= word[0] <= "\ud7a3":
            told = _told_anywhere(word[:40])
        else:
            bare = word.lstrip(_OPENING + "-.$@#")
            at = match.end() - len(bare)
            told = (_told(text[at : max(match.end(), at + 24)][:40]) | _told_inside(bare[:80])) if bare else 0
        found.append(TellingWord(*match.span(), told))
    return found


def candidates(text: str, some: list[TellingWord]) -> list[PossibleSecret]:
    starts = [piece.start for piece in some]
    near: list[bool] = []
    telling = [nth for nth, piece in enumerate(some) if piece.told & _telling()]
    for nth in range(len(some)):
        at = bisect_left(telling, nth - _TELLS)
        near.append(at < len(telling) and telling[at] <= nth + _TELLS)
    found: dict[tuple[int, int], PossibleSecret] = {}
    for first, last, cut in _cuts(text, [piece for piece, told in zip(some, near, strict=True) if told]):
        start, end = _trimmed(text, first, last)
        nth = bisect_left(starts, start + 1) - 1
        # A value behind a mark belongs to the secret that the mark replaced.
        marked = text[max(0, start - 4) : start].rstrip(" :=")[-1:] == BARRIER or BARRIER in text[start:end]
        named = KNOWN.fullmatch(text, start, end) is not None
        if end - start >= 3 and not marked and not named and 0 <= nth < len(near) and near[nth]:
            found.setdefault((start, end), PossibleSecret(start, end, cut))
    return list(found.values())[:_CANDIDATES]


def _cuts(text: str, some: list[TellingWord]) -> Iterator[tuple[int, int, str]]:
    for piece in some:
        yield piece.start, piece.end, "word"
        word = text[piece.start : min(piece.end, piece.start + 400)]
        inner = list(_INNER.finditer(word)) if "://" not in word else []
        if len(inner) > 1:
            yield from ((piece.start + match.start(), piece.start + match.end(), "part") for match in inner[:12])
    if some:
        yield from ((*match.span(match.lastindex or 0), "quoted") for match in _QUOTED.finditer(text))
        yield from ((*match.span(), "group") for match in _GROUPS.finditer(text))
        for match in _CLAUSE.finditer(text):
            ends = _CLAUSE_ENDS.search(match.group())
            end = match.start() + ends.start() if ends else match.end()
            if " " in text[match.start() : end].strip():
                yield match.start(), end, "clause"


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while (
        start < end and text[start] in _OPENING and not (text[start] == "*" and text[start + 1 : start + 2].isdigit())
    ):
        start += 1
    while start < end and (text[end - 1] in _CLOSING or (text[end - 1] in "*_~" and not text[end - 2].isdigit())):
        end -= 1
    return start, end


def description(text: str, some: list[TellingWord], candidate: PossibleSecret) -> Description:
    start, end, cut = candidate
    value = text[start:end]
    first, last = (bisect_left(some, (at,)) - 1 for at in (start + 1, end))
    got = _look(value) | _ties(text, start, end)
    got[f"cut_{cut}"] = 1
    whole = first == last and cut != "part"
    got |= _named("own", some[first].told if whole else _told(value[:40]))
    before = some[max(0, first - _NEAR) : first][::-1]
    if some[first].start < start:
        head = text[some[first].start : start]
        told = _told(head.lstrip(_OPENING + "-.$@#")[:40] or "-") | _told_inside(head[:80])
        before.insert(0, TellingWord(some[first].start, start, told))
    behind = some[last + 1 : last + 1 + _NEAR]
    for side, row in (("before", before), ("behind", behind)):
        for distance, piece in reversed([*enumerate(row)]):
            if piece.told:
                got |= dict.fromkeys(_named(side, piece.told), 1 / (1 + distance))
        for nth, piece in enumerate(row[:2]):
            word = text[piece.start : piece.end]
            got[f"{side}_{nth}_size"] = len(word)
            got[f"{side}_{nth}_digits"] = any(map(str.isdigit, word))
            got[f"{side}_{nth}_break"] = word == BARRIER or word[-1] in ".!?;"
            between = text[piece.end : start] if side == "before" else text[end : piece.start]
            got[f"{side}_{nth}_line"] = "\n" in between
        got[f"mark_{side}"] = any(text[piece.start] == BARRIER for piece in row)
        got[f"announced_{side}"] = max(
            got.get(f"{side}_{one}", 0) for one in ("password", "pin", "code", "key", "open")
        )
    every = 0
    for piece in some[max(0, first - _AROUND) : first + _AROUND]:
        every |= piece.told
    return got | _named("around", every)


@lru_cache(1024)
def _named(side: str, told: int) -> Description:
    return {f"{side}_{name}": 1.0 for nth, name in enumerate(_kinds()) if told >> nth & 1}


def _look(value: str) -> Description:
    size, letters = len(value), sum(map(str.isalpha, value))
    digits, upper, signs = (sum(map(test, value)) for test in (str.isdigit, str.isupper, is_sign))
    got: Description = {
        "size": size, "digits": digits, "upper": upper, "signs": signs, "share_digits": digits / size,
        "lower": letters - upper, "words": value.count(" ") + 1,
        "classes": (letters > upper) + (upper > 0) + (digits > 0) + (signs > 0), "mixed": digits > 0 and letters > 0,
        "unlike": len(set(value)) / size, "inner_upper": upper - value[0].isupper(),
        "switches": sum(one.isdigit() != other.isdigit() for one, other in pairwise(value)),
        "ends_sign": value[-1] in "#*!", "starts_sign": value[0] in "#*", "cjk": "\u2e80" <= value[0] <= "\ud7a3",
        "consonants": max(map(len, re.findall(r"(?i)[b-df-hj-np-tv-xz]+", value)), default=0),
        "rare": sum(char in "jqxzkw" for char in value.lower()) / size,
    }  # fmt: skip
    return got | {f"like_{name}": 1 for name, shape in _SHAPES.items() if shape.fullmatch(value)}


def _ties(text: str, start: int, end: int) -> Description:
    tie = text[max(0, start - 6) : start].rstrip(" *_`\"'“«「([{<\t")[-1:]
    rest = text[end : end + 4]
    next_ = rest.lstrip()[:1]
    near = text[max(0, start - 120) : end + 60]
    got: Description = {
        "quoted": start > 0 and text[start - 1] in "\"'`“«「『", "on_line": tie in ("", "\n"),
        "then_end": not rest.strip(" .!") or rest.lstrip(" *_`\"'”»」)]}>")[:1] in ("", "\n"),
        "line_end": not rest.strip(" .") or rest.lstrip(" ")[:1] == "\n",
        "then_stop": rest[:1] in tuple(",.;!?)。，、"), "then_sign": next_ in tuple("=:([{"),
        "then_unit": next_ in tuple("%€$£°"),
        "foreign": text[start:end].isascii() and not text[max(0, start - 20) : start].isascii(),
        "question": "?" in text[start : end + 60], "code_signs": sum(map(near.count, "(){};=<>$\\")),
    }  # fmt: skip
    return got | {f"tie_{nth}": 1 for nth, signs in enumerate(_TIES) if tie and tie in signs}
