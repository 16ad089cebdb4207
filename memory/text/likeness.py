"""The likeness of two short texts, and whether they differ in substance.

Invariants: Pure, deterministic, linear in the length of the texts. Both texts go through the same folding as the index
words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from memory.text.words import (
    HALVES,
    TOKEN,
    TOKEN_CHARS,
    UNIT,
    fold,
    han_date_tokens,
    listed,
    number_tokens,
    stem,
    stop_tokens,
    tokens,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The features of a text that are visible without understanding it; words are folded and stemmed."""

    #: Words and numbers in reading order, each once.
    order: tuple[str, ...]
    words: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    #: The word that each negation denies, sorted, repeats kept.
    negated: tuple[str, ...]
    #: The capitalised word at the very beginning if a verb seems to follow, else empty.
    subject: str
    #: Chinese characters in reading order, each once, without those that carry no meaning of their own.
    han: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A content word, number or character of a text.

    `denied` counts the negations up to the one that reaches this word; 0 if none does. `counted` is the number right
    before it, as in "20 mg".
    """

    word: str
    number: bool = False
    denied: int = 0
    counted: str = ""


def jaccard(a: str, b: str) -> float:
    """Returns the share, 0 to 1, of distinct tokens that both have; texts without tokens are alike only if equal."""
    return Jaccard().of(a, b)


class Jaccard:
    """Compares some texts with each other, and takes each apart once."""

    def __init__(self) -> None:
        self._tokens: dict[str, frozenset[str]] = {}

    def of(self, a: str, b: str) -> float:
        left, right = self._of(a), self._of(b)
        if not left and not right:
            return 1.0 if a.strip() == b.strip() else 0.0
        return len(left & right) / len(left | right)

    def _of(self, text: str) -> frozenset[str]:
        known = self._tokens.get(text)
        if known is None:
            known = self._tokens[text] = frozenset(tokens(_spelled_out(text)))
        return known


def differs_in_substance(a: str, b: str) -> bool:
    """Returns whether a number, date, name or negation differs, so that near-equal texts must not be taken for one.

    This is a guard, not a measure: it prefers a needless True (two rows instead of one) to a lost memory. Only what
    shows on the surface counts.

    - Numbers: digits of any script, number words, Chinese numerals, weekdays, months, today, 明天 and so on.
    - Names: capitalised words, except at the start of a sentence, that the other text holds in no spelling; a subject
      exchanged at the start ("Anna likes", "Marta likes"); any Latin word inside Chinese or Japanese text. Names and
      numbers in another order differ too ("from Paris to Rome").
    - Negation: the number of negations and the negated words, in English, Chinese, Japanese and the commonest words of
      other languages.
    - Content words exchanged for others ("low salt diet", "low sugar diet"; "before", "after"), synonyms too; words
      merely added or left out are wording. The order of Chinese characters counts as well, because no surface
      feature tells a surname, a direction or an opposite (前, 后) from any other character.

    Beyond their first 8,192 characters, texts differ unless they are equal.
    """
    if a == b:
        return False
    left, right = surface(a), surface(b)
    return (
        a[_COMPARED_CHARS:] != b[_COMPARED_CHARS:]
        or left.numbers != right.numbers
        or left.negated != right.negated
        or bool(left.names - right.words or right.names - left.words)
        or _subject_exchanged(left, right)
        or _reordered(left, right)
        or _exchanged(left, right)
    )


def surface(text: str) -> Surface:
    folded = fold(text[:_COMPARED_CHARS], keep_case=True)
    # Among Chinese or Japanese characters every Latin word is a name or a term.
    all_names = UNIT.search(folded) is not None
    spelled: list[str] = []  # words as written, in order
    order: list[str] = []
    names: set[str] = set()
    numbers: set[str] = set()
    negated: list[str] = []
    end = 0
    for match in TOKEN.finditer(folded):
        gap, end, run = folded[end : match.start()], match.end(), match.group()
        found: list[str] = []
        if match.lastgroup == "unspaced":
            found = _UNSPACED_NUMBERS.findall(run)
            negated += _UNSPACED_NEGATION.findall(_NO_NEGATION.sub("", run))
        elif match.lastgroup == "number":
            found = number_tokens(run)[:1]
        elif match.lastgroup == "han_date":
            found = han_date_tokens(run)[:1]
        else:
            for part in HALVES.findall(run[:TOKEN_CHARS]):
                word = part.casefold()
                if word.isdigit() or word in _NUMBER_WORDS or word in _DATE_WORDS:
                    found.append(word)
                named = part[0].isupper() and not _starts_sentence(gap, spelled[-1:])
                if named or (all_names and word.isascii()):
                    names.add(stem(word))
                spelled.append(part)
                order.append(stem(word))
        found = [_NUMBER_WORDS.get(number, number) for number in found]
        if run[0].isdigit() and (gap == "-" or gap.endswith(" -")):
            found[0] = f"-{found[0]}"
        numbers.update(found)
        order += found
    words = [part.casefold() for part in spelled]
    return Surface(
        order=tuple(dict.fromkeys(order)),
        words=frozenset(map(stem, words)),
        names=frozenset(names) - stop_tokens() - numbers,
        numbers=frozenset(numbers),
        negated=tuple(sorted(negated + _denied(words))),
        subject=_subject(spelled),
        han=tuple(dict.fromkeys(char for char in _HAN_CHARACTER.findall(folded) if char not in _UNTELLING)),
    )


def said(text: str) -> list[Term]:
    """Returns the content words of the first 8,192 characters of a text.

    Function words and negations are left out. A negation reaches to the end of its clause, but no further than four
    words or six characters.
    """
    folded = fold(text[:_COMPARED_CHARS].translate(_CLAUSE_ENDS), keep_case=True)
    telling = _Telling()
    end = 0
    for match in TOKEN.finditer(folded):
        gap, end, run = folded[end : match.start()], match.end(), match.group()
        if not _CLAUSE_END.isdisjoint(gap):
            telling.ends_clause()
        if match.lastgroup == "unspaced":
            telling.reads_unspaced(run)
        elif match.lastgroup == "number":
            telling.counts(number_tokens(run)[0])
        elif match.lastgroup == "han_date":
            telling.counts(han_date_tokens(run)[0])
        else:
            for part in HALVES.findall(run[:TOKEN_CHARS]):
                telling.reads(part)
    return telling.items


#: Without "one" and 一, which are articles more often than numbers, and "second", which is also a unit of time.
_NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "两": "2", "兩": "2", "零": "0", "〇": "0",
    "二": "2", "三": "3", "四": "4", "五": "5", "六": "6", "七": "7", "八": "8", "九": "9", "十": "10",
}  # fmt: skip
_DATE_WORDS = listed("""
    thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy
    eighty ninety hundred thousand million dozen half twice third am pm
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december today tomorrow yesterday tonight last next
""")
_UNSPACED_NUMBERS = re.compile(
    "[二三四五六七八九十百千万亿萬億两兩零〇]|(?:周|週|星期|礼拜)[一日天]|[今明昨后後前]天|[今去明前来]年"
    "|[今昨明]晚|[上下这這本]个?[周週月]|[上下]午|[今昨明]日|[来先]週"
)
_NEGATIONS = listed("""
    not no never none nobody nothing nowhere neither nor without cannot except stopped quit non
    isnt arent wasnt werent dont doesnt didnt cant couldnt wont wouldnt shouldnt hasnt havent hadnt mustnt
    aint não nem nunca sem sin nada ningún ninguna ne pas jamais sans rien kein keine keinen nicht nie niemals
    ohne mai senza niet geen nooit не нет ни никогда без δεν μην لا ليس لم لن بدون नहीं न मत
""")
_UNSPACED_NEGATION = re.compile(
    fold("(?:不|没|沒|无|無|未|非|勿|莫|否|别|別|ない|なく|なかった|ません|ไม่|안|못|않|없).{0,2}")
)
#: Words that contain a character of negation but deny nothing.
_NO_NEGATION = re.compile(
    "不错|不錯|不过(?!敏)|不過(?!敏)|不仅|不僅|不管|不同|特别|特別|区别|別人|别人|性别|类别|级别|告别|个别|无论|無論"
    "|除非|非常|未来|未來"
)
#: Words between a negation and the negated word: "is no longer a member".
_AFTER_NEGATION = listed("longer more any anymore really")
#: Words that end the reach of a negation in English.
_JOINING = listed("and but while though although whereas yet")
_CLAUSE_END = frozenset(",.;:!?()[]\n|/")
_CLAUSE_ENDS = str.maketrans({"。": ".", "」": ".", "「": "."})
_TITLES = listed("dr mr mrs ms prof st")
#: Far more than the longest value of a memory.
_COMPARED_CHARS = 8_192
_AUXILIARIES = listed("is was has had will can")
#: Characters that don't change the statement of a Chinese sentence, and numerals, which are compared by value.
_UNTELLING = frozenset("的地得了着著过過在是会會都就也还還很呢吧啊吗嗎把被之所一二三四五六七八九十百千万萬亿億两兩零〇")
_HAN_CHARACTER = re.compile("[\u3400-\u9fff]")
_CONTRACTED = re.compile(r"\b([a-z]{2,6})n['’]t\b", re.IGNORECASE)
_SHORTENED = {"ca": "can", "wo": "will", "sha": "shall"}


class _Telling:
    def __init__(self) -> None:
        self.items: list[Term] = []
        self._denials = self._reach = 0
        self._number = ""

    def ends_clause(self) -> None:
        self._reach, self._number = 0, ""

    def counts(self, number: str) -> None:
        self._number = _NUMBER_WORDS.get(number, number)
        self.items.append(Term(word=self._number, number=True, denied=self._denied))

    def reads(self, part: str) -> None:
        """Reads a word of a script with spaces, or the digits at its beginning or end."""
        word = part.casefold()
        if word in _NEGATIONS:
            self._deny(4)
        elif word.isdigit() or word in _NUMBER_WORDS or word in _DATE_WORDS:
            self.counts(word)
        elif word in _JOINING:
            self.ends_clause()
        elif stem(word) in stop_tokens() or word in _AFTER_NEGATION:
            self._number = ""
        else:
            # A name isn't counted: "in 2024 Marta moved".
            self._tell(stem(word), counted="" if part[0].isupper() else self._number)

    def reads_unspaced(self, run: str) -> None:
        denials = {
            found.start()
            for found in _UNSPACED_NEGATION.finditer(_NO_NEGATION.sub(lambda match: " " * len(match[0]), run))
        }
        numbers = {found.start(): found for found in _UNSPACED_NUMBERS.finditer(run)}
        end = 0
        for unit in UNIT.finditer(run):
            if unit.start() < end:
                continue
            if unit.start() in denials:
                self._deny(6)
            elif unit.start() in numbers:
                end = numbers[unit.start()].end()
                self.counts(numbers[unit.start()].group())
            elif unit.group() in _UNTELLING:
                self._number = ""
            else:
                self._tell(unit.group(), counted=self._number)

    @property
    def _denied(self) -> int:
        return self._denials if self._reach > 0 else 0

    def _deny(self, reach: int) -> None:
        self._denials, self._reach, self._number = self._denials + 1, reach, ""

    def _tell(self, word: str, *, counted: str) -> None:
        self.items.append(Term(word=word, denied=self._denied, counted=counted))
        self._reach, self._number = max(0, self._reach - 1), ""


def _starts_sentence(gap: str, before: list[str]) -> bool:
    if not before or "\n" in gap or "!" in gap or "?" in gap:
        return True
    # "Dr." or an initial never ends a sentence.
    return gap.startswith(".") and len(before[0]) > 1 and before[0].casefold() not in _TITLES


def _denied(words: list[str]) -> list[str]:
    """Returns for each negation in `words` the stem of the next content word; an empty string if none follows."""
    denied: list[str] = []
    waiting = 0
    for word in words:
        if word in _NEGATIONS:
            waiting += 1
        elif waiting and word not in _AFTER_NEGATION and stem(word) not in stop_tokens():
            denied += [stem(word)] * waiting
            waiting = 0
    return denied + [""] * waiting


def _subject(spelled: list[str]) -> str:
    if len(spelled) < 2 or not spelled[0][0].isupper():
        return ""
    first, second = spelled[0].casefold(), spelled[1].casefold()
    # "Likes cats" opens with a verb, "Anna likes" doesn't.
    verb_follows = second in _AUXILIARIES or (second.endswith(("s", "ed")) and not first.endswith(("s", "ed")))
    return stem(first) if verb_follows and stem(first) not in stop_tokens() else ""


def _subject_exchanged(left: Surface, right: Surface) -> bool:
    if not left.subject or not right.subject:
        return False
    return left.subject not in right.words and right.subject not in left.words


def _reordered(left: Surface, right: Surface) -> bool:
    telling = left.names | right.names | left.numbers | right.numbers
    shared = telling.intersection(left.order).intersection(right.order)
    return [item for item in left.order if item in shared] != [item for item in right.order if item in shared]


def _exchanged(left: Surface, right: Surface) -> bool:
    """Returns whether words or Chinese characters were exchanged for others, or the characters were reordered."""
    if _telling(left, right) and _telling(right, left):
        return True
    here, there = set(left.han), set(right.han)
    if here - there and there - here:
        return True
    return [char for char in left.han if char in there] != [char for char in right.han if char in here]


def _telling(this: Surface, other: Surface) -> set[str]:
    own = this.words - other.words - stop_tokens() - _beside_negation() - this.numbers - other.numbers
    return {word for word in own if not word.isdigit()}


@cache
def _beside_negation() -> frozenset[str]:
    return frozenset(map(stem, _NEGATIONS | _AFTER_NEGATION))


def _spelled_out(text: str) -> str:
    """Spells out English contractions of "not", so that "doesn't" and "does not" are alike."""
    return _CONTRACTED.sub(lambda match: f"{_SHORTENED.get(match[1].lower(), match[1])} not", text)
