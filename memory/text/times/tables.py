"""Loads a language's table of words and patterns for times, and finds them in a text.

A table (`times.yaml` of a language) has words with their values, and for each meaning the patterns that express it:
regular expressions in which `{unit}` is any word for a unit, `{weekday2}` a second weekday and `{weekday_long}` one of
the words of that list, which belongs to `weekday`. `{date}` and `{length}` are anything that the table reads as a date
or a length of time. `meanings` are for reminders, `spans` for the days that any text names: a pattern under a key with
an exclamation mark may mean something else, and needs the words of `needs` beside it; `around` has those that change
what a day means ("since") or join two ("to").

Invariants: pure. `fold` keeps the length of a text, so that a match can be cut from the text as it was written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, cached_property
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

from languages import part
from memory.text.simplified import simplified
from memory.text.times.calendar import number_zh
from memory.text.times.needed import FIRST_SLOT, needed

#: Meanings that name a day and may replace one in another pattern, the more exact first.
DATES: Final = (
    "date", "month_step_day", "month_end", "week_day", "holiday", "day_ahead", "weekend", "near", "weekday",
    "month_day",
)  # fmt: skip
#: Meanings whose slots aren't read one by one.
WORDS: Final = ("past", "soon", "period", "vague", "every_weekday", "clocks", "between", "except")
#: Patterns for the words before a day (up to its first character), behind it, and between two.
AROUND: Final = (
    "lead", "tail", "part", "part_behind", "open", "to", "beside", "needs", "needs_open", "needs_behind", "shy",
)  # fmt: skip
#: How like a name a mistyped one is, and how long; right beside a time, a day of the week that has one other letter.
_NEAR: Final = 0.84
_NEAR_BESIDE: Final = 0.8
_LONG: Final = 6
_SLOT = re.compile(r"\{([a-z_]+?)(\d?)\}")
_NUMERALS = "[〇零一二两兩三四五六七八九十]{1,3}"
#: Patterns of numbers in any place, by the slot's name.
_DIGITS = {
    "n": r"\d{1,4}",
    "h": r"\d{1,2}",
    "m": r"[0-5]?\d",
    "mm": r"[0-5]\d",
    "d": r"\d{1,2}",
    "mo": r"\d{1,2}",
    "y": r"(?:19|20)\d\d",
}
#: Years in Chinese numerals: 二〇二三.
_YEAR_NUMERALS = "[一二][〇零一二三四五六七八九]{3}"
#: A letter of a language with blanks: "5pm吧" has an edge.
_LETTER = r"[^\W\u3040-\u9fff]"
#: The patterns for reminders and those for days that any text names.
Section: TypeAlias = Literal["meanings", "days"]


class Table:
    """The table of a language, its patterns compiled when they are first used."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.twelve: int = data["twelve"]
        self.spaced: bool = data["spaced"]
        months = data["words"].get("month", {}).items()
        unsure = data["spans"].get("unsure", ())
        # The full names of months that mean nothing else.
        sure = {month: words.partition("|")[0] for month, words in months if month not in unsure}
        self._words: dict[str, Any] = data["words"] | {"month_sure": sure}
        self._sections: dict[Section, dict[str, Any]] = {
            "meanings": data["meanings"],
            "days": data["spans"]["meanings"],
        }
        self._texts: dict[str, str] = data["texts"]
        self._affixes: dict[str, tuple[str, str]] = data.get("affixes", {})
        self._around: dict[str, str] = data["spans"]["around"]

    def find(self, text: str, section: Section = "meanings") -> Iterator[tuple[str, str, re.Match[str]]]:
        """Yields every place of `text` (folded) that a pattern fits: its meaning, the meaning's key, the match."""
        for meaning, key, pattern in self._worth_trying(text, section):
            for match in pattern.finditer(text):
                yield meaning, key, match

    def build(self) -> None:
        """Builds all patterns at once; else each is built when it is first tried, which takes a few milliseconds."""
        for section in self._sections:
            for meaning, _, template in self._patterns(section)[1]:
                self._compiled(section, meaning, template)

    def around(self, name: str) -> re.Pattern[str]:
        return self._around_days[name]

    def whole(self, text: str, meanings: tuple[str, ...]) -> Iterator[tuple[str, str, re.Match[str]]]:
        for meaning, key, pattern in self._worth_trying(text, "meanings", meanings):
            if match := pattern.fullmatch(text):
                yield meaning, key, match

    def value(self, name: str, text: str) -> Any:
        for value, pattern in self._values(name):
            if pattern.fullmatch(text):
                return value
        raise ValueError(f"not a {name}: {text!r}")

    def values(self, name: str, text: str) -> list[Any]:
        found: dict[int, tuple[int, Any]] = {}
        for value, pattern in self._values(name):
            for match in pattern.finditer(text):
                if match.end() > found.get(match.start(), (0, None))[0]:
                    found[match.start()] = match.end(), value
        values: list[Any] = []
        done = 0
        for start, (end, value) in sorted(found.items()):
            if start >= done:
                values.append(value)
                done = end
        return values

    def number(self, text: str) -> int:
        """Reads digits, a number word of the language, or Chinese numerals."""
        if digits := re.match(r"\d+", text):
            return int(digits.group())
        if not self.spaced and re.fullmatch(_NUMERALS, text):
            return number_zh(text)
        for name in ("n", "h", "m", "d"):
            with suppress(ValueError):
                return int(self.value(name, text))
        raise ValueError(f"not a number: {text!r}")

    def is_mistyped(self, word: str, *, beside: bool = False) -> bool:
        """Returns whether a word (folded) is nearly, but not quite, the name of a day or a month.

        Right `beside` a time, one that is a little less like a day of the week is enough.
        """
        if not self.spaced or word in (names := self._names("weekday", "month", "near")):
            return False
        near = len(word) >= _LONG and get_close_matches(word, names, n=1, cutoff=_NEAR)
        days = [name for name in self._names("weekday") if beside and name[0] == word[0]]
        return bool(near or get_close_matches(word, days, n=1, cutoff=_NEAR_BESIDE))

    @cache  # noqa: B019 - tables live as long as the process
    def _names(self, *listed: str) -> frozenset[str]:
        lists = [self._words[name] for name in listed]
        names = {fold(name) for words in lists for text in words.values() for name in text.split("|")}
        return frozenset(
            name.replace("s?", end) for name in names for end in ("", "s") if name.replace("s?", "").isalpha()
        )

    def ordinal(self, text: str) -> int:
        """Reads a place in a list: "second", "2nd", 二."""
        try:
            return int(self.value("nth", text))
        except (KeyError, ValueError):
            return self.number(text)

    def year(self, text: str) -> int:
        """Reads 2023, 23 or 二〇二三; two digits are a year from 1970 to 2069."""
        digits = "".join(char if char.isdecimal() else str(number_zh(char)) for char in text)
        return int(digits) + (0 if len(digits) == 4 else 2000 if int(digits) < 70 else 1900)

    def alone(self, text: str) -> str | None:
        """Returns an answer that is only a length or an hour ("2h", "9") as a phrase of this language."""
        spoken = None
        if any(True for _ in self.whole(text, ("length",))):
            spoken = self._texts["in"]
        if re.fullmatch(r"\d{1,2}", text):
            spoken = self._texts["at"]
        # "18h" is six o'clock in languages that write hours like this, "2h" two hours.
        if re.fullmatch(r"(?:[789]|1\d|2[0-4]) ?h", text) and any(True for _ in self.whole(text, ("clock",))):
            return None
        return fold(spoken.format(text)) if spoken else None

    def text(self, name: str) -> re.Pattern[str]:
        return self._named[name]

    @cached_property
    def _named(self) -> dict[str, re.Pattern[str]]:
        return {
            name: re.compile(self._expand(_folded_pattern(text)), re.IGNORECASE) for name, text in self._texts.items()
        }

    def _worth_trying(
        self, text: str, section: Section, meanings: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, str, re.Pattern[str]]]:
        """Yields the patterns of which a text has a word that they need: most sentences name no time."""
        needing, patterns = self._patterns(section)
        for number in sorted({number for literal, some in needing.items() if literal in text for number in some}):
            meaning, key, template = patterns[number]
            if not meanings or meaning in meanings:
                yield meaning, key, self._compiled(section, meaning, template)

    @cache  # noqa: B019 - tables live as long as the process
    def _patterns(self, section: Section) -> tuple[dict[str, list[int]], list[tuple[str, str, str]]]:
        patterns = [
            (meaning, str(key), template)
            for meaning, keyed in self._sections[section].items()
            for key, templates in (keyed if isinstance(keyed, dict) else {"": keyed}).items()
            for template in chain.from_iterable(map(_alternatives, templates))
        ]
        needing: dict[str, list[int]] = {}
        for number, (*_, template) in enumerate(patterns):
            for literal in self._needed(template):
                needing.setdefault(literal, []).append(number)
        return needing, patterns

    @cache  # noqa: B019
    def _compiled(self, section: Section, meaning: str, template: str) -> re.Pattern[str]:
        before, behind = ("", "")
        if section == "meanings":
            before, behind = self._affixes.get("date" if meaning in DATES else meaning, ("", ""))
        whole = self._expand(_folded_pattern(f"{before}(?:{template}){behind}"), named=meaning not in WORDS)
        try:
            return re.compile(self._bounded(whole))
        except re.error as error:
            raise ValueError(f"{meaning}: {template}: {error}") from error

    def _needed(self, template: str) -> frozenset[str]:
        names = [name for name, _ in _SLOT.findall(template)]
        marked = _SLOT.sub(lambda match: chr(FIRST_SLOT + names.index(match[1])), _folded_pattern(template))
        return needed(marked, [self._slot_needs(name) for name in names])

    @cache  # noqa: B019
    def _slot_needs(self, name: str) -> frozenset[str]:
        return needed(self._slot(name))

    @cached_property
    def _around_days(self) -> dict[str, re.Pattern[str]]:
        texts = {name: self._expand(_folded_pattern(text)) for name, text in self._around.items()}
        return {name: re.compile(texts.get(name, "(?!)")) for name in AROUND}

    def _bounded(self, pattern: str) -> str:
        if self.spaced:
            return rf"(?<!{_LETTER})(?<!\d[.:/,-])(?:{pattern})(?!{_LETTER}|[:/]\d|[.,]\d)"
        # In a language without spaces, only a number has edges.
        return rf"(?:(?!\d)|(?<!\d)(?<!\d[.:/,-]))(?:{pattern})(?:(?<!\d)|(?!\d|[:/]\d|[.,]\d))"

    @cache  # noqa: B019 - tables live as long as the process
    def _values(self, name: str) -> list[tuple[Any, re.Pattern[str]]]:
        edge = r"\w" if self.spaced else r"\d"
        return [
            (value, re.compile(rf"(?<!{edge})(?:{_folded_pattern(words)})(?!{edge})"))
            for listed in self._words
            if listed == name or listed.startswith(f"{name}_")
            if isinstance(self._words[listed], dict)
            for value, words in self._words[listed].items()
        ]

    def _expand(self, template: str, *, named: bool = False) -> str:
        def slot(match: re.Match[str]) -> str:
            name, again = match.groups()
            inner = self._slot(name)
            if isinstance(self._words.get(name), str):
                return f"(?:{inner})"
            return f"(?P<{name.partition('_')[0]}{again}>{inner})" if named else f"(?:{inner})"

        return _SLOT.sub(slot, template)

    @cache  # noqa: B019
    def _slot(self, name: str) -> str:
        if name == "date":
            return self._any_of(DATES)
        if name == "length":
            return self._any_of(("length",))
        if name in _DIGITS:
            return self._number_slot(name)
        words = self._words[name]
        if isinstance(words, str):
            return self._expand(_folded_pattern(words))
        return self._any_word(words.values())

    def _number_slot(self, name: str) -> str:
        own = self._words.get(name, self._words["n"] if name in ("h", "m", "d") else {})
        digits = _DIGITS[name] + (_folded_pattern(self._texts.get("ordinal_suffix", "")) if name == "d" else "")
        words = [digits] if self.spaced or name == "mm" else [digits, _YEAR_NUMERALS if name == "y" else _NUMERALS]
        return "|".join([*words, *([self._any_word(own.values())] if own else [])])

    def _any_word(self, words: Any) -> str:
        return "|".join(sorted((_folded_pattern(word) for word in words), key=len, reverse=True))

    def _any_of(self, meanings: tuple[str, ...]) -> str:
        templates: list[str] = []
        for meaning in meanings:
            keyed = self._sections["meanings"].get(meaning, [])
            # Longer patterns first, and those with a plain key last: the first alternative that fits is taken.
            groups = sorted(keyed.items(), key=lambda group: not group[0]) if isinstance(keyed, dict) else [("", keyed)]
            for _, group in groups:
                templates += sorted(group, key=len, reverse=True)
        return "|".join(
            f"(?:{re.sub(r'[(][?]P<[a-z_0-9]+>', '(?:', self._expand(_folded_pattern(text)))})" for text in templates
        )


def fold(text: str) -> str:
    """Returns `text` in lower case, in simplified characters, without accents on Latin letters; as long as before."""
    return simplified("".join(map(_folded, text)))


def _alternatives(pattern: str) -> Iterator[str]:
    """Yields the top-level alternatives of a pattern, so that each may use the same slot."""
    depth, start = 0, 0
    for at, char in enumerate(pattern):
        depth += (char in "([{") - (char in ")]}")
        if char == "|" and not depth:
            yield pattern[start:at]
            start = at + 1
    yield pattern[start:]


def _folded_pattern(pattern: str) -> str:
    return fold(pattern).replace("(?p<", "(?P<")


@cache
def _folded(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char).lower()
    if len(plain) != 1:
        return char
    base = unicodedata.normalize("NFD", plain)[0]
    return {"’": "'", "`": "'", "–": "-", "—": "-", "　": " ", "〜": "~", "\n": " ", "~": "~"}.get(
        base if base.isascii() else plain, base if base.isascii() else plain
    )


@cache
def table(language: str) -> Table:
    return Table(part(language, "times"))
