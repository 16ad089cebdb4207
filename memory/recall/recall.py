"""The memory in one turn: the snapshot that every prompt carries, and the items recalled for this message.

Invariants: A search may be skipped, profile and known facts never. An item that is in the prompt is not put in again.
Nothing is said twice: profile slots that known facts make up are left out, and so are styles that the directive is made
of. The budget in items and tokens holds. At most one reflection is put in, behind everything else and within its share
of the budget. A message is left out only for facts that say all that it says. Nothing here changes a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from memory import profile
from memory.recall.cues import cues
from memory.recall.floor import worth_showing
from memory.recall.search import Hit
from memory.scope import Scope
from memory.score import ScorePart
from memory.store import lineage, memories
from memory.store.database import Reader
from memory.store.memories import Kind, Memory
from memory.store.passages import Passage
from memory.store.recalls import Item
from memory.text import words
from memory.text.likeness import Jaccard, differs_in_substance, said
from memory.text.sentences import beginning
from memory.text.words import stop_tokens

#: "recalled": put into the prompt for this turn; "known": already there; "unused": found, but not needed.
Placed: TypeAlias = Literal["recalled", "known", "unused"]

_STYLES_IN_SNAPSHOT = 10
_ALIKE = 0.75
#: Tokens that a rendered memory costs beyond its words: id, date, punctuation.
_RENDERING = 20
#: Characters shown of a long message, and the longest question before it that is shown.
_EXCERPT_CHARS = 800
_QUESTION_CHARS = 200
#: The share of the token budget that a reflection may take: it sums up what facts and messages say better.
REFLECTION_SHARE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The amount of memory that may enter a prompt. Without `manner` directives and styles are left out.

    What the bot obeys never enters while it is unsure, or if the guard has flagged it.
    """

    items: int = 8
    tokens: int = 1_500
    known: int = 50
    known_tokens: int = 1_500
    manner: bool = True

    def takes(self, memory: Memory) -> bool:
        is_manner = memory.kind in ("directive", "style")
        if (memory.unsure or memory.flags) and (is_manner or memory.category == "instruction"):
            return False
        return self.manner or not is_manner


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The memory in every prompt of a window, and the memories learned since it was taken, the newest first.

    `summed` holds the ids of the styles that its directive is made of.
    """

    profile: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()
    newer: tuple[Memory, ...] = ()
    summed: frozenset[int] = frozenset()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(memory.id for memory in (*self.profile, *self.known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A memory or passage found for this message, and its place in the prompt.

    `shown` is the part of a passage's words that goes there, or as many of a reflection's first sentences as may.
    `shares` is the part of the question's words that are in the hit itself, not beside it.
    """

    score: float
    placed: Placed
    memory: Memory | None = None
    passage: Passage | None = None
    shown: str = ""
    shares: float = 1.0
    parts: dict[ScorePart, float] = field(default_factory=dict)
    nearness: float = 0.0

    @property
    def named(self) -> tuple[Item, int]:
        if self.memory is not None:
            return "memory", self.memory.id
        assert self.passage is not None
        return "message", self.passage.message.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    snapshot: Snapshot
    items: tuple[Recalled, ...] = ()


def take_snapshot(reader: Reader, scope: Scope, budget: Budget, count_tokens: Callable[[str], int]) -> Snapshot:
    slots = [memory for memory in profile.read(reader, scope) if budget.takes(memory)]
    made_of = {slot.id: {one.id for one in lineage.parents(reader, scope, slot.id)} for slot in slots}
    summed = frozenset[int]().union(*(made_of[slot.id] for slot in slots if slot.kind == "directive"))
    kinds: tuple[Kind, ...] = ("fact", "style") if budget.manner else ("fact",)
    candidates = memories.current(reader, scope, kinds, limit=budget.known * 2)
    known: list[Memory] = []
    styles = 0
    room = budget.known_tokens
    for memory in candidates:
        cost = _cost(memory, count_tokens) + _RENDERING
        if memory.id in summed or not budget.takes(memory):
            continue
        if len(known) == budget.known or cost > room or (memory.kind == "style" and styles == _STYLES_IN_SNAPSHOT):
            continue
        known.append(memory)
        styles += memory.kind == "style"
        room -= cost
    held = {memory.id for memory in known}
    fuller = [slot for slot in slots if not made_of[slot.id] or not made_of[slot.id] <= held]
    return Snapshot(profile=tuple(fuller), known=tuple(known), summed=summed)


def stored_snapshot(
    reader: Reader, scope: Scope, memory_ids: Sequence[int], *, taken_at: int, budget: Budget
) -> Snapshot:
    """Rebuilds a window's snapshot from its ids and adds newer memories.

    A memory that was replaced since appears as it was then, so that the beginning of the prompt stays the same; its
    successor is among the newer ones.
    """
    held = [_as_of(m, taken_at) for m in memories.by_ids(reader, scope, memory_ids) if budget.takes(m)]
    newer = memories.newer_than(reader, scope, since=taken_at, limit=budget.known)
    directives = [memory for memory in held if memory.kind == "directive"]
    summed = frozenset(one.id for memory in directives for one in lineage.parents(reader, scope, memory.id))
    there = summed.union(memory_ids)
    return Snapshot(
        profile=tuple(memory for memory in held if memory.kind in ("profile", "directive")),
        known=tuple(memory for memory in held if memory.kind in ("fact", "style")),
        newer=tuple(memory for memory in newer if memory.id not in there and budget.takes(memory)),
        summed=summed,
    )


def recall(
    reader: Reader,
    hits: Sequence[Hit],
    query: str,
    *,
    snapshot: Snapshot,
    in_window: frozenset[int],
    budget: Budget,
    count_tokens: Callable[[str], int],
    assistant: str,
) -> Recall:
    """Places the hits for `query`, best first. `in_window` names messages that the model sees anyway.

    `assistant` is the name that quotations give the agent.
    """
    present = {memory.id: memory for memory in (*snapshot.known, *snapshot.newer)}
    ids = {*present, *(hit.memory.id for hit in hits if hit.memory is not None)}
    sources = lineage.source_ids(reader, list(ids))
    terms = words.query_terms(query)
    placing = _Placing(present, snapshot.summed, sources, in_window, budget, count_tokens)
    latest = _latest_reflection(hits)
    found = [_item(hit, query, terms, assistant) for hit in hits]
    worth = worth_showing(hits, [item.shares for item in found], query)
    items: list[Recalled] = []
    last: list[Recalled] = []
    for hit, item, is_worth in zip(hits, found, worth, strict=True):
        if placing.is_known(hit):
            items.append(replace(item, placed="known"))
        elif not is_worth or (hit.memory is not None and not budget.takes(hit.memory)):
            items.append(item)
        elif hit.memory is not None and hit.memory.kind == "reflection":
            shown = placing.take_reflection(hit, hit.memory) if hit.memory.id == latest else ""
            if shown:
                last.append(replace(item, placed="recalled", shown=shown))
            else:
                items.append(item)
        else:
            items.append(replace(item, placed="recalled") if placing.take(hit, item.shown) else item)
    return Recall(snapshot=snapshot, items=(*items, *last))


class _Placing:
    """The room that is left for the hits of one question, and what was put there."""

    def __init__(
        self,
        present: Mapping[int, Memory],
        summed: Set[int],
        sources: Mapping[int, Set[int]],
        in_window: Set[int],
        budget: Budget,
        count_tokens: Callable[[str], int],
    ) -> None:
        """`present` memories are in the prompt, those in `summed` as a part of others."""
        self._there = {*present, *summed}
        self._sources, self._in_window = sources, in_window
        self._budget, self._count_tokens = budget, count_tokens
        self._told = {memory_id: memory for memory_id, memory in present.items() if memory.live}
        self._taken: list[Hit] = []
        self._room = budget.tokens
        self._likeness = Jaccard()

    def is_known(self, hit: Hit) -> bool:
        said_in = self._sources[hit.memory.id] if hit.memory else {hit.passage.message.id} if hit.passage else set()
        there = hit.memory is not None and hit.memory.id in self._there
        return there or bool(said_in and said_in <= self._in_window)

    def take_reflection(self, hit: Hit, memory: Memory) -> str:
        """Returns as much of a reflection as has room, which is then taken; "" if nothing has."""
        share = min(self._room, int(self._budget.tokens * REFLECTION_SHARE)) - _RENDERING
        share -= self._count_tokens(memory.key)
        shown = beginning(memory.value, lambda text: self._count_tokens(text) <= share)
        if not shown or len(self._taken) == self._budget.items:
            return ""
        self._taken.append(hit)
        self._room -= self._count_tokens(memory.key) + self._count_tokens(shown) + _RENDERING
        return shown

    def take(self, hit: Hit, shown: str) -> bool:
        """Takes the room for a hit, of a passage for what is `shown` of it. Returns False if it has none, or says
        nothing new."""
        cost = self._count_tokens(shown) if hit.memory is None else _cost(hit.memory, self._count_tokens)
        if len(self._taken) == self._budget.items or cost + _RENDERING > self._room or self._is_repeated(hit):
            return False
        self._taken.append(hit)
        self._room -= cost + _RENDERING
        if hit.memory is not None:
            self._told[hit.memory.id] = hit.memory
        return True

    def _is_repeated(self, hit: Hit) -> bool:
        if any(_repeats(hit, other, self._likeness) for other in self._taken):
            return True
        if hit.passage is None:
            return False
        message = hit.passage.message
        taught = [memory for memory_id, memory in self._told.items() if message.id in self._sources[memory_id]]
        return _says_no_more(message.text, taught)


def excerpt(passage: Passage, query: str, *, assistant: str) -> str:
    """Returns the passage's message or, if it is long, the part that holds most of the words asked for.

    If the message answers a question, that question is put before it, with its author's name.
    """
    text = _densest(" ".join(passage.message.text.split()), query)
    asked = passage.before
    if asked is None or not asked.text.rstrip().endswith(("?", "？")) or len(asked.text) > _QUESTION_CHARS:
        return text
    return f"({asked.author_name or assistant}: {' '.join(asked.text.split())}) {text}"


def _densest(text: str, query: str) -> str:
    if len(text) <= _EXCERPT_CHARS:
        return text
    wanted = set(words.query_terms(query))
    starts = range(0, len(text), _EXCERPT_CHARS // 2)
    best = max(starts, key=lambda start: len(wanted.intersection(words.tokens(text[start : start + _EXCERPT_CHARS]))))
    cut = text[best : best + _EXCERPT_CHARS]
    return f"{'… ' if best else ''}{cut.strip()}{' …' if best + _EXCERPT_CHARS < len(text) else ''}"


def _latest_reflection(hits: Sequence[Hit]) -> int | None:
    found = [hit.memory for hit in hits if hit.memory is not None and hit.memory.kind == "reflection"]
    live = [memory for memory in found if memory.live]
    return max(live, key=lambda memory: (memory.learned_at, memory.id)).id if live else None


def _as_of(memory: Memory, moment: int) -> Memory:
    closed_since = memory.valid_until is not None and memory.valid_until >= moment
    return replace(memory, valid_until=None, superseded_by=None) if closed_since else memory


def _item(hit: Hit, query: str, terms: Sequence[str], assistant: str) -> Recalled:
    return Recalled(
        memory=hit.memory,
        passage=hit.passage,
        score=hit.score,
        placed="unused",
        shown="" if hit.passage is None else excerpt(hit.passage, query, assistant=assistant),
        shares=shares(hit, terms),
        parts=hit.parts,
        nearness=hit.nearness or 0.0,
    )


def shares(hit: Hit, terms: Sequence[str]) -> float:
    text = _asked_for(hit.memory) if hit.memory is not None else hit.text
    return len(set(terms).intersection(words.tokens(text))) / max(len(terms), 1)


def _says_no_more(text: str, taught: Sequence[Memory]) -> bool:
    """Returns whether memories learned from a message say all that it says: its words of meaning, numbers and names,
    and what it denies."""
    told = said(" ".join(map(_asked_for, taught)))
    denies = any(term.denied for term in told) or any(memory.key == "dislikes" for memory in taught)
    known = {term.word for term in told} | stop_tokens()
    return bool(taught) and all(term.word in known and (denies or not term.denied) for term in said(text))


def _asked_for(memory: Memory) -> str:
    return f"{memory.key} {memory.value} {memory.subject} {cues(memory.key)}"


def _repeats(hit: Hit, other: Hit, likeness: Jaccard) -> bool:
    if hit.memory is not None and other.memory is not None:
        same = hit.memory.key == other.memory.key and hit.memory.subject_id == other.memory.subject_id
        one, two = hit.memory.value, other.memory.value
    elif hit.passage is not None and other.passage is not None:
        same, one, two = True, hit.passage.message.text, other.passage.message.text
    else:
        return False
    return same and likeness.of(one, two) >= _ALIKE and not differs_in_substance(one, two)


def _cost(memory: Memory, count_tokens: Callable[[str], int]) -> int:
    return count_tokens(memory.key) + count_tokens(memory.value)
