"""Clauses and the rules that read them: the part that the English and the Chinese patterns share.

Invariants: nothing is compiled at import; every value that leaves `apply` is keepable (not empty, within the limit,
nothing cut out of it); a rule matches from the first character of a clause on and reads each group as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from memory.keys import RELATIONS, VALUE_LIMIT
from memory.text.times.spans import anchor

#: Longest clause that is read, in characters; nobody says more in one breath.
LONGEST_CLAUSE: Final = 400
#: The mark for a part that was cut out (a quotation, code, a link, a secret); no value may hold it.
HOLE: Final = "\ufffc"
#: Relatives of whom more than a name is kept.
KIN: Final = frozenset(
    {
        "wife", "husband", "partner", "girlfriend", "boyfriend", "mother", "father", "sister", "brother", "son",
        "daughter", "child", "grandmother", "grandfather", "grandson", "granddaughter",
    }
)  # fmt: skip


def expand(pattern: str, slots: Mapping[str, str]) -> str:
    """Returns `pattern` with every `@NAME` replaced by the slot of that name, whose own slots are expanded too."""
    while "@" in pattern:
        pattern = re.sub("@([A-Z]+)", lambda match: slots[match[1]], pattern)
    return pattern


class Phrase:
    """A regular expression that is compiled at its first use, when its `slots` are filled too.

    Compiling all of them takes half a second, a good part of it for a language that may never be spoken here.
    """

    def __init__(self, pattern: str, flags: int = 0, slots: Mapping[str, str] | None = None) -> None:
        self._pattern, self._flags, self._slots = pattern, flags, slots

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(expand(self._pattern, self._slots) if self._slots else self._pattern, self._flags)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Matches like `re.Pattern.match`."""
        return self.regex.match(text, start)

    def search(self, text: str) -> re.Match[str] | None:
        """Searches like `re.Pattern.search`."""
        return self.regex.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Matches like `re.Pattern.fullmatch`."""
        return self.regex.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Finds all matches like `re.Pattern.finditer`."""
        return self.regex.finditer(text)

    def split(self, text: str) -> list[str]:
        """Splits like `re.Pattern.split`, for expressions without groups."""
        return self.regex.split(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """Substitutes like `re.Pattern.sub`."""
        return self.regex.sub(by, text, count)


HAN: Final = Phrase(r"[\u3400-\u9fff]")


class Pair(NamedTuple):
    """A key and its value, empty until told. `unnamed` marks a pet or a relative whose name may come next."""

    key: str
    value: str
    unnamed: bool = False


#: Reads the named groups that matched, as they were written, on the day they were said; nothing to refuse.
Read: TypeAlias = Callable[[dict[str, str], date], Iterable[Pair]]


class Rule(NamedTuple):
    """A pattern that is matched at the start of a clause, and the reader of its match."""

    phrase: Phrase
    read: Read


class EarlierClauses:
    """The state that earlier clauses of a message leave for later ones."""

    def __init__(self, today: date, *, tasked: bool) -> None:
        self.today = today
        #: The message sets a task, so a wish about style is about that task and not for ever.
        self.tasked = tasked
        #: Whether the last clause was about the speaker, whom the next may then omit; None as long as it was about
        #: nobody.
        self.carried: bool | None = None
        #: A person or pet mentioned without a name, which may come next: "I have a dog. His name is Rex."
        self.nameless: Pair | None = None
        self.greeted = False
        #: The last clause was about a relative of the speaker, so the next may name another one without 我.
        self.kin = False
        #: The last clause was about another person without a name yet, so a name without a subject is theirs.
        self.stranger = False
        #: The beginning of the statement that answers the speaker's own question: "Where do I live?" "I live in".
        self.answer = ""


def apply(
    rules: Iterable[Rule], clause: str, today: date, written: Callable[[int, int], str] | None = None
) -> tuple[list[Pair], int] | None:
    """Returns the pairs of the first rule that fits, and the end of its match in `clause`.

    `written` gives the characters between two positions of `clause` as they were written, if they differ from it.
    """
    for rule in rules:
        match = rule.phrase.match(clause)
        if match:
            groups = {
                name: written(*match.span(name)) if written else found
                for name, found in match.groupdict().items()
                if found
            }
            pairs = [pair for pair in rule.read(groups, today) if pair.unnamed or is_keepable(pair.value)]
            if pairs:
                return pairs, match.end()
    return None


def fact(  # noqa: PLR0913 - each is a way in which rules differ
    key: str,
    *,
    values: Callable[[str, bool], list[str]],
    size: Callable[[str], int],
    plain: Callable[[str], str] = str,
    most: int,
    many: bool = False,
    refuse: Phrase | None = None,
    spoil: Phrase | None = None,
    before: str = "",
    dated: bool = False,
) -> Read:
    """Reads group v as one value or `many`, each of at most `most` words or characters by `size`, behind `before`.

    `values` splits and trims the words; `plain` gives the form in which `refuse` and `spoil` read a value: one that
    `refuse` finds is left out, one that `spoil` finds (at the start of the whole, or in one of many) spoils them all.
    """

    def read(groups: dict[str, str], today: date) -> list[Pair]:
        items = values(groups["v"], many)
        if spoil and (spoil.match(plain(groups["v"].strip())) or any(spoil.search(plain(item)) for item in items)):
            return []
        kept = [item for item in items if item and size(item) <= most and not (refuse and refuse.search(plain(item)))]
        return [Pair(key, anchor(before + item, today, ahead=True) if dated else before + item) for item in kept]

    return read


def either(read: Read) -> Read:
    """Returns `read` for a rule with several groups of which one matches: that one is v."""
    return lambda groups, today: read({"v": next(iter(groups.values()))}, today)


def tell(pairs: Iterable[Pair], context: EarlierClauses) -> Iterator[Pair]:
    """Yields pairs as they are, but lets a pet or a relative without a name wait for the next clause to give it."""
    for pair in pairs:
        if pair.unnamed:
            yield from still_nameless(context)
            context.nameless = pair
        else:
            if pair.key in RELATIONS:
                context.nameless = Pair(pair.key, "", unnamed=True)
            yield pair


def still_nameless(context: EarlierClauses) -> Iterator[Pair]:
    """Yields the pet that was kept waiting, if its name did not come."""
    if context.nameless and context.nameless.value:
        yield context.nameless
    context.nameless = None


def with_name(nameless: Pair, name: str) -> Pair:
    """Returns the pair that waited for a name, with the `name` that came."""
    if nameless.key != "pet":
        return Pair(nameless.key, name)
    animal = _COUNTED.sub("", nameless.value)
    return Pair("pet", f"{animal if animal == nameless.value else animal.removesuffix('s')} {name}")


def is_keepable(value: str) -> bool:
    """Returns whether `value` can be stored: it says something, and nothing was cut out of it."""
    return 0 < len(value) <= VALUE_LIMIT and HOLE not in value and any(c.isalnum() for c in value)


def strip_signs(text: str) -> str:
    """Returns `text` without the punctuation and emoji around it; "C++" and "100%" keep theirs."""
    start, end = 0, len(text)
    while start < end and not (text[start].isalnum() or text[start] in "+#@$€£-" + HOLE):
        start += 1
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in "+#%)" + HOLE):
        end -= 1
    return text[start:end]


def one_of(text: str) -> str:
    """Returns a list of words as one alternative of a pattern; an underscore stands for a space inside a phrase."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


def by_word(words: dict[str, str]) -> dict[str, str]:
    """Turns key → its words into each word → its key. An underscore stands for a space inside a phrase."""
    return {word.replace("_", " "): key for key, listed in words.items() for word in listed.split()}


def longest_first(words: Iterable[str]) -> str:
    """Returns words as one alternative of a pattern, the longest first, so that no shorter one hides a longer."""
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + ")"


#: The number of pets, before their kind.
_COUNTED = Phrase(r"(?:two|three|four|five|six|\d) |[一两兩二三四五六\d][只隻条條个個匹头頭窝窩对對]")
