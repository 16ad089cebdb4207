"""Works out the loss in merging facts: the facts that a merged statement still says, and any that it makes up.

Invariants: pure and deterministic. It judges by the surface alone, so it prefers a merge not made to a memory lost.
A statement that says a fact in words of its own counts as not saying it. If a fact counts as kept, none of its numbers,
dates, names and negations is missing or in another's place, and most of its other words stand there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Final

from memory import keys
from memory.text.likeness import Term, differs_in_substance, jaccard, said, surface
from memory.text.things import are_of_a_kind, kinds_of, names_the_same, thing
from memory.text.things import unclear as things_unclear
from memory.text.words import UNIT, stop_tokens, tokens

#: An answer that would lose more than this share of the distinct facts it names is refused as a whole (DESIGN 5.7).
MOST_LOST: Final = 0.25
#: The share of a fact's words of meaning that a statement must hold. Below six words it leaves no room: one word of
#: "low salt diet" is all the difference. Chosen on the table of tests/unit/memory/test_loss.py: at .8 one thing of two
#: is lost, at .84 changed wording counts as a loss.
WORDS_KEPT: Final = 0.82
#: The share where a fact holds words of scripts without spaces, whose words are characters: a surname is one of them.
CHARACTERS_KEPT: Final = 0.9
#: The share of a statement's own words of meaning that may stand in none of its facts.
_ADDED: Final = 0.3
#: Rows at least this much alike say the same, unless they differ in substance, as where they are kept (DESIGN 5.3).
_ALIKE: Final = 0.75
#: The fewest distinct words with which a value says something without its key, as where facts are kept.
_STATEMENT: Final = 4
_CLAUSE_END: Final = re.compile(r"[,;:.!?]\s+|[()、，；。]|\s(?:and|then|und|dann|et|puis|y|luego)\s|然后|然後")
_JOINED: Final = re.compile(r"\b([A-ZÀ-Þ][\w'-]+),? (?:and|und|et|y) ([A-ZÀ-Þ][\w'-]+)")
#: The most facts that share a rare word.
_RARE: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A fact, or a statement that is to replace some facts: its key in normal form, and its value."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    ids: tuple[int, ...]
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on an answer: its merges with the ids of the facts each really says, and the number of lost facts.

    `named` counts the distinct facts that the answer names. A refused answer has no merges.
    """

    merges: tuple[Merge, ...]
    named: int
    lost: int
    refused: bool


def judge(facts: Mapping[int, Statement], answer: Sequence[Merge], *, about: str = "") -> Verdict:
    """Returns the merges of an answer that may be made. Every id must be one of `facts`.

    `about` are words that a statement may hold though its facts don't: their subject and topic. A merge left with less
    than two facts is dropped. An answer is refused if it makes something up, or loses more than `MOST_LOST`
    of the facts it names, near-duplicates counted once.
    """
    named = {fact_id for merge in answer for fact_id in merge.ids}
    groups = alike({fact_id: facts[fact_id] for fact_id in sorted(named)})
    merges: list[Merge] = []
    covered: set[int] = set()
    for merge in answer:
        of = {fact_id: facts[fact_id] for fact_id in merge.ids}
        if len(of) > 1 and invents(merge.statement, list(of.values()), about=about):
            return Verdict(merges=(), named=len(groups), lost=len(groups), refused=True)
        kept = _covered(merge.statement, of)
        covered |= kept
        ids = tuple(fact_id for fact_id in of if fact_id in kept and all(fact_id not in one.ids for one in merges))
        if len(ids) > 1:
            merges.append(Merge(ids=ids, statement=merge.statement))
    lost = sum(covered.isdisjoint(group) for group in groups)
    refused = lost > MOST_LOST * len(groups)
    return Verdict(merges=() if refused else tuple(merges), named=len(groups), lost=lost, refused=refused)


def alike(facts: Mapping[int, Statement]) -> list[tuple[int, ...]]:
    """Groups facts that say the same, by id, the fullest of each group first.

    In a group, one key tells all others, they add nothing to values that are statements by themselves, or all name one
    thing. A fact that may name either of two things joins neither.
    """
    alone = unclear(facts)
    words = {fact_id: frozenset(tokens(fact.value)) for fact_id, fact in facts.items()}
    things = {fact_id: thing(fact.key, fact.value) for fact_id, fact in facts.items()}
    groups: list[list[int]] = []

    def fullest(fact_id: int) -> tuple[int, int, int]:
        named = things[fact_id]
        told = (
            words[fact_id] if named is None or not named.is_name else named.names
        )  # "has a friend named" tells nothing
        return (-len(told), -len(facts[fact_id].value), fact_id)

    for fact_id in sorted(facts, key=fullest):
        for group in () if fact_id in alone else (group for group in groups if group[0] not in alone):
            # A cheap check first: even "can't swim" and "can not swim" have a quarter of their words in common.
            full, other = words[group[0]], words[fact_id]
            near = 4 * len(full & other) >= len(full | other)
            if any(one is not None and one.is_name for one in (things[group[0]], things[fact_id])):
                # A name says too little to go by words: "cat Pixel" is all in "a friend's cat Pixel".
                near = keys.normalise_value(facts[group[0]].value) == keys.normalise_value(facts[fact_id].value)
            thing_of_it = things[fact_id]
            fits = all(
                member is None or thing_of_it is None or are_of_a_kind(member, thing_of_it)
                for member in (things[one] for one in group)
            )
            joins = (fits and names_the_same(things[group[0]], thing_of_it)) or (
                near and _joins([facts[one] for one in group], facts[fact_id])
            )
            if joins:
                group.append(fact_id)
                break
        else:
            groups.append([fact_id])
    return [tuple(group) for group in groups]


def unclear(facts: Mapping[int, Statement]) -> set[int]:
    """Returns the ids of the facts that may name either of two things that others name, so that none may join them."""
    things = {fact_id: thing(fact.key, fact.value) for fact_id, fact in facts.items()}
    either = things_unclear({fact_id: each for fact_id, each in things.items() if each is not None})
    sharing: dict[str, dict[str, list[int]]] = {}
    for fact_id, fact in facts.items():
        if fact.key in keys.RELATIONS:
            sharing.setdefault(keys.normalise_value(fact.value), {}).setdefault(fact.key, []).append(fact_id)
    for under in sharing.values():
        for key, ids in under.items():  # the child Leo, of a son and a daughter of that name
            near = [other for other in under if keys.most_telling([key, other])]
            if any(keys.most_telling(pair) is None for pair in combinations(near, 2)):
                either.update(ids)
    return either


def joined_key(facts: Sequence[Statement]) -> str:
    """Returns the key of facts that say the same: the most telling, else the commonest.

    A bare name keeps the key that says what it names.
    """
    own = [fact.key for fact in facts]
    named = [(fact.key, found) for fact in facts if (found := thing(fact.key, fact.value)) is not None]
    if len(named) == len(facts) and not kinds_of(facts[0].value):
        own = [key for key, _ in named if kinds_of(key.replace("-", " "))] or own
    return keys.most_telling(own) or max(own, key=lambda one: (own.count(one), one))


def near_each_other(facts: Mapping[int, Statement]) -> list[tuple[int, ...]]:
    """Groups facts of many kinds that say the same nearly word for word, by id.

    Compares equal facts, and facts that share a rare word: the many that share only common words would take minutes.
    """
    words = {fact_id: frozenset(tokens(fact.value)) for fact_id, fact in facts.items()}
    common = Counter(word for each in words.values() for word in each)
    # First those who name a thing: all wordings of one are to be one group.
    named = {fact_id: thing(fact.key, fact.value) for fact_id, fact in facts.items()}
    sharing: dict[tuple[str, str], list[int]] = {}
    for fact_id, one in named.items():
        for name in one.names if one is not None else ():
            sharing.setdefault(("name", name), []).append(fact_id)
    for fact_id, fact in facts.items():
        sharing.setdefault(("value", keys.normalise_value(fact.value)), []).append(fact_id)
        each = sorted(words[fact_id], key=lambda word: (common[word], word))
        # Values so much alike must share one of these words.
        for word in each[: len(each) - ceil(_ALIKE * len(each)) + 1]:
            if common[word] <= _RARE:
                sharing.setdefault(("word", word), []).append(fact_id)
    groups: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for ids in sharing.values():
        if len(left := [fact_id for fact_id in ids if fact_id not in taken]) > 1:
            found = [group for group in alike({fact_id: facts[fact_id] for fact_id in left}) if len(group) > 1]
            taken.update(*found)
            groups += found
    return groups


def _joins(group: Sequence[Statement], other: Statement) -> bool:
    """Returns whether a fact says the same as the first of a group, under a key that agrees with all of theirs."""
    if all(one.key == other.key for one in group):
        return says_the_same(group[0], other)
    if keys.most_telling([*(one.key for one in group), other.key]) is None and not all(
        _stands_alone(one) for one in (*group, other)
    ):
        return False
    return _near(group[0], other)


def _stands_alone(fact: Statement) -> bool:
    return not _means_more(fact.key) and len(set(tokens(fact.value))) >= _STATEMENT


def _near(one: Statement, other: Statement) -> bool:
    if keys.normalise_value(one.value) == keys.normalise_value(other.value):
        return True
    return jaccard(one.value, other.value) >= _ALIKE and not differs_in_substance(one.value, other.value)


def says_the_same(full: Statement, other: Statement) -> bool:
    """Returns whether `full` says the same as `other`, nearly word for word, under a key that tells as much."""
    if full.key != other.key:
        return keys.tells(full.key, other.key) and _near(full, other)
    if keys.normalise_value(full.value) == keys.normalise_value(other.value):
        return True
    words = set(tokens(other.value))
    near = jaccard(full.value, other.value) >= _ALIKE or (bool(words) and words.issubset(tokens(full.value)))
    return near and not differs_in_substance(full.value, other.value)


def says(statement: Statement, fact: Statement, *, denied: frozenset[str] = frozenset()) -> bool:
    """Returns whether a statement still says a fact, as far as can be seen.

    It must hold all the fact's numbers with what they count, its names, its negations and most of its other words, and
    deny nothing of it except what is `denied` by another fact it stands for. Keys that have a meaning of their own
    ("likes", "dislikes") don't mix, and a past state is not told as a present one.
    """
    told = keys.tells(statement.key, fact.key)
    if (_means_more(fact.key) and not told) or (_OVER.search(fact.value) and not _OVER.search(statement.value)):
        return False
    part, whole = said(fact.value if told or fact.key == _NOTE else _text(fact)), said(_text(statement))
    words, held = _words(part), _words(whole)
    if not (surface(fact.value).numbers <= surface(statement.value).numbers and _counted(part) <= _counted(whole)):
        return False
    if not (_names(fact.value) <= surface(_text(statement)).words and _denied(part) <= _denied(whole)):
        return False
    if _exchanges(statement.value, fact.value):
        return False
    share = CHARACTERS_KEPT if any(map(UNIT.fullmatch, words)) else WORDS_KEPT
    return not words & _denied(whole) - _denied(part) - denied and len(words & held) >= share * len(words)


def _exchanges(whole: str, part: str) -> bool:
    """Returns whether a text sets numbers or names of another in each other's place: two doses, who taught whom."""
    flat = [surface(text) for text in (whole, part)]
    items = _union(text.numbers | text.names | {text.subject} for text in flat) - {""}
    held, parts = ([_clause(clause, items) for clause in _clauses(text)] for text in (whole, part))
    for own, words in parts:
        for own_there, _ in held:
            shared = [item for item in own if item in own_there]
            if len(shared) > 1 and shared != [item for item in own_there if item in shared]:
                return True
        for item in own:
            beside = words - {item}
            here = max((len(beside & those) for there, those in held if item in there), default=0)
            if any(len(beside & those) > here for there, those in held if there and item not in there):
                return True
    return False


def _clauses(text: str) -> list[str]:
    # Two names that are joined have no order.
    text = _JOINED.sub(lambda match: " ".join(sorted(match.groups())), text)
    return _CLAUSE_END.split(text)


def _clause(text: str, items: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Returns the numbers and names of a clause in their order, and all its words."""
    own = [word for word in surface(text).order if word in items]
    return own, frozenset(tokens(text)) - stop_tokens() | {*own}


def invents(statement: Statement, facts: Sequence[Statement], *, about: str = "") -> bool:
    """Returns whether a statement holds a number or name that no fact has, or too much else they don't say."""
    known = [surface(_text(fact)) for fact in facts] + [surface(about)]
    numbers = _union(fact.numbers for fact in known)
    words = _union(fact.words for fact in known)
    if not (surface(statement.value).numbers <= numbers and _names(statement.value) <= words):
        return True
    given = {term.word for text in (*map(_text, facts), about) for term in said(text)}
    own = {term.word for term in said(_text(statement))}
    return len(own - given) > 1 + _ADDED * len(own)


#: The key of a text after "remember that"; it says nothing about the value.
_NOTE: Final = "note"
#: Words for a past state, which deny the present one.
_OVER: Final = re.compile(r"\b(?:used to|formerly|no longer)\b|曾|以前|不再", re.IGNORECASE)


def _covered(statement: Statement, facts: Mapping[int, Statement]) -> set[int]:
    """Returns the facts that a statement says, and those that say the same as a fact it says."""
    denied = _union(_denied(said(_text(fact))) for fact in facts.values())
    kept = {fact_id for fact_id, fact in facts.items() if says(statement, fact, denied=denied)}
    return kept | {
        fact_id
        for fact_id, fact in facts.items()
        # A statement that says a part of a fact does not say the fact, unless the part is nearly all of it.
        if fact_id not in kept
        and any(
            says_the_same(facts[other], fact)
            or (facts[other].key == fact.key and says_the_same(fact, facts[other]) and _near(fact, facts[other]))
            for other in kept
        )
    }


def _text(fact: Statement) -> str:
    return f"{fact.key.replace('-', ' ')}: {fact.value}" if fact.key else fact.value


def _words(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(term.word for term in terms if not term.number)


def _denied(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(term.word for term in terms if term.denied)


def _counted(terms: Sequence[Term]) -> frozenset[tuple[str, str]]:
    return frozenset((term.counted, term.word) for term in terms if term.counted and len(term.counted) < 4)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _names(value: str) -> frozenset[str]:
    """Returns the names in a value, and its first word if the value goes on as a name does ("Nina Simone")."""
    flat = surface(value)
    spelled = value.split(maxsplit=2)
    begins = len(spelled) > 1 and spelled[0][:1].isupper() and spelled[1][:1].isupper()
    first = set(flat.order[:1]) if begins and not spelled[0].endswith(("s", "ed", "ing")) else set()
    return flat.names | (first - flat.numbers - stop_tokens())


def _means_more(key: str) -> bool:
    return key != _NOTE and keys.category_of(key) is not None
