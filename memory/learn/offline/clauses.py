"""Facts that people tell of themselves in German, Spanish, French and Japanese: one YAML file of patterns a language.

Invariants: pure; time is bounded by the length of the sentences read. A sentence that asks or reports is not read, nor
a clause that denies, imagines or asks for something. In doubt nothing is found.

How it works: a sentence is cut into clauses; each loses its opening ("übrigens"), and the first pattern that fits its
beginning is read. A pattern may go beyond its clause; the rest is read on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from languages import LANGUAGES, Language, part
from memory.learn.offline.rules import Pair, strip_signs

#: The languages that are read so: English and Chinese have rules of their own.
CODES: Final = tuple(code for code in LANGUAGES if code not in ("en", "zh"))
#: Longest sentence that is read, in characters.
_LONGEST: Final = 400
_ASKS: Final = re.compile(r"[?？]\s*$")
#: The placeholders for values in a pattern: `<v>` within a clause, `<m>` a list, `<n>` a name that ends it, `<N>` a
#: name, `<e>` an employer.
_SLOT: Final = re.compile(r"(?<!P)<([vmnNe])>")
#: Longest part of a list, in words and in characters; a longer one is another clause.
_PART_WORDS: Final = 4
_PART: Final = 30
_WITHIN: Final = r"[^,;:!?…()、。，！？（）\n]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A pattern and the key of its facts; without a key its group `who` names a relative.

    With `many` the value is a list. A rule that `denies` reads a clause that others must not: "I don't eat meat".
    """

    key: str
    says: re.Pattern[str]
    many: bool
    denies: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patterns:
    """The patterns of one language. `carried` writes out subjects that a second verb leaves out."""

    carried: tuple[tuple[re.Pattern[str], str], ...]
    clause: re.Pattern[str]
    opening: re.Pattern[str]
    reports: re.Pattern[str]
    refuse: re.Pattern[str]
    several: re.Pattern[str]
    trim: re.Pattern[str]
    vague: re.Pattern[str]
    relatives: Mapping[str, str]
    favourites: Mapping[str, str]
    rules: tuple[_Rule, ...]


def pairs(sentence: str, code: Language) -> Iterator[Pair]:
    """Yields the facts in a sentence, as they were written."""
    sentence = " ".join(sentence.replace("’", "'").split())
    if len(sentence) > _LONGEST or _ASKS.search(sentence):
        return
    patterns = _patterns(code)
    for form, to in patterns.carried:
        sentence = form.sub(to, sentence)
    if patterns.reports.search(sentence):
        return
    start = 0
    while start < len(sentence):
        begin = start
        while (opened := patterns.opening.match(sentence, begin)) and opened.end() > begin:
            begin = opened.end()
        cut = patterns.clause.search(sentence, begin)
        end = cut.start() if cut else len(sentence)
        refused = patterns.refuse.search(sentence, begin, end) is not None
        read = _first(patterns, sentence, begin, refused=refused)
        if read is not None:
            found, done = read
            yield from found
            end = max(end, done)
            cut = patterns.clause.match(sentence, end) or (cut if cut and cut.start() >= end else None)
        start = max(cut.end() if cut and cut.start() == end else end, start + 1)


def _first(patterns: _Patterns, sentence: str, begin: int, *, refused: bool) -> tuple[list[Pair], int] | None:
    """Returns the facts that the first rule that fits at `begin` reads, and the end of its match."""
    for rule in patterns.rules:
        match = None if refused and not rule.denies else rule.says.match(sentence, begin)
        if match is None:
            continue
        found = [Pair(_key(rule, match, patterns), value) for value in _values(rule, match, patterns)]
        if found and (employer := strip_signs((match.groupdict().get("e") or "").strip())):
            found.append(Pair("employer", employer))
        if found and all(pair.key for pair in found):
            return found, match.end()
    return None


def _key(rule: _Rule, match: re.Match[str], patterns: _Patterns) -> str:
    groups = match.groupdict()
    if groups.get("who"):
        return patterns.relatives.get(groups["who"].casefold(), "")
    if groups.get("thing"):
        thing = groups["thing"].casefold()
        return f"favourite-{patterns.favourites.get(thing, thing)}"
    return rule.key


def _values(rule: _Rule, match: re.Match[str], patterns: _Patterns) -> list[str]:
    groups = match.groupdict()
    said = next((groups[name] for name in ("v", "v2", "n", "n2") if groups.get(name)), "")
    parts = patterns.several.split(said) if rule.many else [said]
    trimmed = [strip_signs(patterns.trim.sub("", part.strip())) for part in parts]
    if rule.many:
        trimmed = [part for part in trimmed if len(part) <= _PART and len(part.split()) <= _PART_WORDS]
    values = [part for part in trimmed if part and not patterns.vague.fullmatch(part)]
    if before := groups.get("a") or groups.get("a2"):
        # "a dog called Rex" is kept as "dog Rex", a dog without a name as "dog".
        return [f"{before} {value}" for value in values] or [before]
    return values


@cache
def _patterns(code: Language) -> _Patterns:
    data: dict[str, Any] = part(code, "facts")
    relatives = {word: key for key, words in data["relatives"].items() for word in words.split()}
    lists = {
        "RELATIVE": f"(?P<who>{_either(relatives)})",
        "ANIMAL": f"(?:{_either(data['animals'].split())})",
        "THING": f"(?P<thing>{_either(data['favourites'])})",
    }
    slots = {
        "v": rf"(?P<v>{_WITHIN}{{1,80}}?)(?={data['end']})",
        "m": rf"(?P<v>[^;:!?…()。！？（）\n]{{1,120}}?)(?={data['end_list']})",
        "e": rf"(?P<e>{_WITHIN}{{1,60}}?)(?={data['end']})",
        "N": rf"(?P<n>{data['name']})",
        "n": rf"(?P<n>{data['name']})(?={data['end']})",
    }

    def pattern(source: str) -> re.Pattern[str]:
        for name, words in lists.items():
            source = source.replace(name, words)
        return re.compile(_SLOT.sub(lambda slot: slots[slot[1]], source), re.IGNORECASE)

    return _Patterns(
        carried=tuple((pattern(form), to) for form, to in data.get("carried", ())),
        clause=pattern(data["clause"]),
        opening=pattern(data["fact_opening"]),
        reports=pattern(data["reports"]),
        refuse=pattern(data["refuse"]),
        several=pattern(data["several"]),
        trim=pattern(data["trim"]),
        vague=pattern(data["vague"]),
        relatives=relatives,
        favourites=data["favourites"],
        rules=tuple(
            _Rule(
                key=one.get("key", ""),
                says=pattern(one["says"]),
                many=one.get("many", False),
                denies=one.get("denies", False),
            )
            for one in data["facts"]
        ),
    )


def _either(words: Any) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))
