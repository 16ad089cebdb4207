"""Ranks the memories and passages that answer a question, without a model.

Invariants: Nothing outside the scope is read. Importance, strength and age only bend a score within fixed bounds; they
never hide a row. A replaced memory ranks below the memory that replaced it. Without an embedder words alone decide.
Without a working index the scope is searched by substring; the caller notices only the lower quality.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.errors import StorageError, StoreBusy, StoreDamaged, StoreUnwritable
from memory.recall import index, rank
from memory.recall.embed import Tokens
from memory.recall.embedding import EmbeddedQuestion, Embedding
from memory.recall.query import MEANT_CHARS, TERMS, Query, SubQuestion, names_self, taken_apart
from memory.recall.rank import Candidate, Ranked, Statistics, Weights
from memory.recall.rerank import Reranker
from memory.scope import Scope
from memory.score import ScorePart
from memory.store import documents, entities, filter_rows, memories, passages
from memory.store.database import INDEX, Database, Reader, Row
from memory.store.fading import left
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.passages import Passage
from memory.store.vectors import Vectors
from memory.text import words
from memory.text.likeness import differs_in_substance
from memory.text.times import clock
from memory.typed_filters import NO_FILTERS, Filters

log = structlog.get_logger(__name__)

#: Candidates fetched for each place in the result, so that some can be moved back or dropped.
_OVER_FETCH = 8
#: Seconds after a turn's last commit in which its answer is delivered.
_FED_SECONDS = 0.05
#: Seconds that embedding a question may take.
_MEANING_SECONDS = 1.5
#: Documents nearest in meaning that join the candidates: this share of all, and the least and most of them. On LoCoMo a
#: half and a quarter find as much as all (docs/design/benchmarks.md).
_NEAREST_SHARE = 1 / 3
_FEWEST_NEAREST, _MOST_NEAREST = 50, 400
#: Best candidates by words and vectors that late interaction scores; a hundred would do (docs/design/benchmarks.md).
_LOOKED_AT_CLOSELY = 300
#: Matches that are scored with their neighbours. If there are more, these are the best by their own words.
_SCORED = 1_000
#: The most by which importance, fading strength and age may bend a score.
_IMPORTANCE_REACH = 0.2
_STRENGTH_REACH = 0.1
_RECENCY_REACH = 0.05
_RECENCY_HALF_LIFE_DAYS = 30.0
#: Factor for a memory whose topic the question names.
_TOPIC = 1.1
#: Factor for an archived memory: it comes up when little else matches.
_ARCHIVED = 0.25
#: Factor for an event: its lasting content is kept as a fact, and its words as messages.
_EVENT = 0.5
#: Factor for what holds no more: a memory that has ended, or a message whose memories were all replaced since.
_OUTDATED = 0.5
#: Factor for a fact that repeats a better one of its key and person: this share of its words of meaning is there.
_REPEATED, _SAME = 0.5, 0.75
#: The best facts of one key and person that a fact is compared with.
_COMPARED = 20
#: Factor for the bot's own messages: mostly they repeat people's words.
_BY_AGENT = 0.6
_DAY_MS = 86_400_000
#: Tokens from which a message gets the full score when only its time is known.
_LONG_TOKENS = 60
#: A message's author and its words without regard to case and spacing.
_Words: TypeAlias = tuple[int | None, str]
T = TypeVar("T")
H = TypeVar("H", "Hit", "_Bent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory or a passage that answers the query. `parts` explains the score, in numbers only.

    `nearness` is its likeness to the question above that of ordinary lines, or None if it has no vector; it is no part
    of the score.
    """

    score: float
    memory: Memory | None = None
    passage: Passage | None = None
    parts: dict[ScorePart, float] = field(default_factory=dict)
    nearness: float | None = None

    @property
    def doc(self) -> int:
        if self.memory is not None:
            return documents.of_memory(self.memory.id)
        assert self.passage is not None
        return documents.of_message(self.passage.message.id)

    @property
    def text(self) -> str:
        if self.memory is not None:
            return f"{self.memory.key} {self.memory.value}"
        assert self.passage is not None
        return self.passage.message.text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question asked of a scope: `query` as `_narrowed` has it, at `now` in milliseconds UTC, for `limit` hits."""

    scope: Scope
    query: Query
    weights: Weights
    vectors: Vectors | None
    limit: int
    now: int


class Search:
    """The search of one store. `now` returns milliseconds UTC. Without `embedding` words alone decide.

    `suspect` is called when the index turns out to be broken or incomplete.
    """

    def __init__(
        self,
        database: Database,
        *,
        now: Callable[[], int],
        weights: Weights = rank.HYBRID,
        embedding: Embedding | None = None,
        reranker: Reranker | None = None,
        suspect: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._now = now
        self._weights = weights
        self._embedding = embedding
        self._reranker = reranker
        self._suspect = suspect
        self._feeding: asyncio.Task[None] | None = None

    async def find(
        self,
        scope: Scope,
        text: str,
        *,
        timezone: str,
        limit: int,
        weights: Weights | None = None,
        besides: Set[int] = frozenset(),
        older_reflections: bool = True,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Returns the best `limit` memories and passages of the scope for `text`, best first.

        `besides` are the ids of messages to pass over: the question's own. Without `older_reflections` only the latest
        reflection is searched. With `filters` only documents that meet all of them are searched.
        """
        return await self.find_and(
            lambda reader, hits: hits, scope, text, timezone=timezone, limit=limit, weights=weights, besides=besides,
            older_reflections=older_reflections, filters=filters,
        )  # fmt: skip

    async def find_and(  # noqa: PLR0913 - what `find` takes, and `act`
        self,
        act: Callable[[Reader, list[Hit]], T],
        scope: Scope,
        text: str,
        *,
        timezone: str,
        limit: int,
        weights: Weights | None = None,
        besides: Set[int] = frozenset(),
        older_reflections: bool = True,
        filters: Filters = NO_FILTERS,
    ) -> T:
        """Returns what `act` makes of the hits that `find` returns, on the state of the store in which they were found.

        With a reranker it is a later state.
        """
        weights, now = weights or self._weights, self._now()
        query = taken_apart(text, today=clock.local_date(now, timezone), timezone=timezone, besides=besides)
        if not query.terms and not query.times:
            return await self._database.read(lambda reader: act(reader, []))
        if not query.only_time and weights.vectors + weights.late > 0:
            meant = [replace(part, meaning=await self._meaning(part.text)) for part in query.parts]
            query = replace(query, parts=tuple(meant))
        vectors = None if self._embedding is None else self._embedding.vectors
        asked = _Asked(scope=scope, query=query, weights=weights, vectors=vectors, limit=limit, now=now)

        def narrowed(reader: Reader, *, has_older: bool) -> _Asked:
            older = older_reflections or not has_older
            return _narrowed(reader, asked, filters, timezone, older_reflections=older)

        def by_index(reader: Reader) -> list[Hit]:
            reader.confine(scope)
            state = _usable(reader, scope, besides)
            return _by_index(reader, narrowed(reader, has_older=bool(state["has_reflections"])), state["documents"])

        def without(reader: Reader) -> list[Hit]:
            reader.confine(scope)
            return _by_substring(reader, narrowed(reader, has_older=True))

        if self._reranker is None:
            return await self._with_index(
                lambda reader: act(reader, by_index(reader)), lambda reader: act(reader, without(reader))
            )
        hits = await self._with_index(by_index, without)
        ordered = [hits[i] for i in await self._reranker.order(text, [hit.text for hit in hits])]
        return await self._database.read(lambda reader: act(reader, ordered))

    async def vector(self, text: str, *, model: str) -> NDArray[np.float32] | None:
        """Returns the vector of `text` by the embedder called `model`; None if that does not serve, or is too late."""
        if self._embedding is None or self._embedding.model != model:
            return None
        meaning = await self._meaning(text)
        return None if meaning is None else meaning.vector

    async def read(self, scope: Scope, act: Callable[[Reader, bool], T]) -> T:
        """Runs `act` on one committed state, with True if the word index then holds all of the scope."""

        def by_index(reader: Reader) -> T:
            reader.confine(scope)
            _usable(reader, scope, frozenset())
            return act(reader, True)

        def without(reader: Reader) -> T:
            reader.confine(scope)
            return act(reader, False)

        return await self._with_index(by_index, without)

    async def _meaning(self, text: str) -> EmbeddedQuestion | None:
        """Returns the embedded question, or None if there is no embedder or it takes too long."""
        if self._embedding is None:
            return None
        try:
            async with asyncio.timeout(_MEANING_SECONDS):
                return await self._embedding.question(text[:MEANT_CHARS])
        except TimeoutError:
            log.warning("search.slow_embedder", seconds=_MEANING_SECONDS, instead="words only")
            return None

    def feed_soon(self) -> None:
        """Makes the index read the changes of a turn, once its answer had time to be delivered."""
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.create_task(self._feed_later())

    async def close(self) -> None:
        """Leaves changes that are not read yet to the next start."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)

    async def _feed_later(self) -> None:
        await asyncio.sleep(_FED_SECONDS)
        await index.keep_up(self._database)
        if self._embedding is not None:
            self._embedding.wake()

    async def _feed(self) -> None:
        await self._database.write(index.catch_up_some, keys=[INDEX], durable=False)
        if self._embedding is not None:
            self._embedding.wake()

    async def _with_index(self, by_index: Callable[[Reader], T], without: Callable[[Reader], T]) -> T:
        """Runs `by_index` on one committed state with the index up to date, or `without` if the index is broken."""
        try:
            while True:
                try:
                    return await self._database.read(by_index)
                except _Behind:
                    await self._feed()
        except _NotWhole:
            self._suspect()
        except StorageError as exc:
            log.warning("index.failed", error=str(exc.__cause__ or exc), instead="substring search")
            if not isinstance(exc, StoreUnwritable | StoreBusy | StoreDamaged):
                self._suspect()
        return await self._database.read(without)


class _NotWhole(Exception):
    """The index is incomplete: it is being rebuilt."""


class _Behind(Exception):
    """The index does not hold every committed change of the scope yet."""


def nearest_facts(reader: Reader, scope: Scope, text: str, *, limit: int) -> list[Memory]:
    """Returns live facts and styles of the scope that share words with `text`, best first."""
    terms = words.query_terms(text, limit=TERMS)
    candidates = [one for one in index.match(reader, scope, terms).found if one.spot is None] if terms else []
    statistics = Statistics(
        documents=memories.count(reader, scope),
        average_length=sum(one.length for one in candidates) / max(len(candidates), 1),
    )
    ranked = rank.rank(terms, candidates, statistics, rank.CLASSIC)
    ids = [documents.row_id(one.candidate.doc) for one in ranked[: limit * _OVER_FETCH]]
    live = [m for m in memories.by_ids(reader, scope, ids) if m.live and m.kind in ("fact", "style")]
    return live[:limit]


def _narrowed(reader: Reader, asked: _Asked, filters: Filters, timezone: str, *, older_reflections: bool) -> _Asked:
    """Returns the question for the documents that meet the filters, and for all reflections or the latest alone."""
    query, scope = asked.query, asked.scope
    if filters.given:
        allowed = filter_rows.allowed(reader, scope, filters, timezone)
        docs = [*map(documents.of_memory, allowed.memory_ids), *map(documents.of_message, allowed.message_ids)]
        query = replace(query, only=frozenset(docs))
    if not older_reflections:
        older = map(documents.of_memory, memories.older_reflections(reader, scope))
        query = replace(query, besides=query.besides.union(older))
    return replace(asked, query=query)


def _usable(reader: Reader, scope: Scope, besides: Set[int]) -> Row:
    """Returns the state of the index. Raises `_NotWhole` or `_Behind` if it can't be used as it is; the messages
    `besides`, which a search passes over, it need not hold."""
    state = documents.state(reader, scope, index.VERSION, besides)
    if state["made_of"] != index.MADE_OF:
        raise _NotWhole
    if state["is_behind"]:
        raise _Behind
    return state


def _by_index(reader: Reader, asked: _Asked, findable: int) -> list[Hit]:
    if asked.query.only_time:
        return _only(asked, _by_time(reader, asked, limit=_unranked(asked)))
    asked = replace(asked, query=replace(asked.query, documents=findable))
    bent = _bent(reader, asked, _ranked(reader, asked))
    bent = _repeats_behind(sorted(bent, key=lambda one: -one.score))
    return _fetched(reader, asked, _successors_first(bent))


def _unranked(asked: _Asked) -> int:
    """Returns the number of documents to fetch if filters are applied to the fetched ones."""
    return asked.limit if asked.query.only is None else _SCORED


def _only(asked: _Asked, hits: Sequence[Hit]) -> list[Hit]:
    only = asked.query.only
    return [hit for hit in hits if only is None or hit.doc in only][: asked.limit]


def _ranked(reader: Reader, asked: _Asked) -> list[Ranked]:
    query, limit = asked.query, asked.limit * _OVER_FETCH
    near = [_near_in_meaning(reader, asked, part) for part in query.parts]
    candidates, statistics = _candidates(reader, asked, set().union(*near))
    rankings = []
    for part, cosines in zip(query.parts, near, strict=True):
        for candidate in candidates:
            candidate.cosine, candidate.late = cosines.get(candidate.doc), None
            if part.meaning is not None and candidate.cosine is not None:
                candidate.nearness = max(candidate.nearness or 0.0, candidate.cosine - part.meaning.usual)
        known = statistics
        if asked.vectors is not None and part.meaning is not None and part.meaning.tokens is not None:
            known = _look_closely(reader, asked, part, part.meaning.tokens, candidates, statistics)
        most = len(candidates) if near[1:] else limit
        rankings.append(rank.rank(part.terms, candidates, known, asked.weights, limit=most))
    return rank.together(rankings[0], rankings[1:], limit=limit) if near[1:] else rankings[0]


def _near_in_meaning(reader: Reader, asked: _Asked, part: SubQuestion) -> dict[int, float]:
    if asked.vectors is None or part.meaning is None:
        return {}
    most = min(max(int(asked.query.documents * _NEAREST_SHARE), _FEWEST_NEAREST, asked.limit), _MOST_NEAREST)
    return dict(asked.vectors.nearest(reader, asked.scope.partitions, part.meaning.vector, most))


def _candidates(reader: Reader, asked: _Asked, near: Set[int]) -> tuple[list[Candidate], Statistics]:
    """Returns the candidates for a query, and the statistics to score them with.

    Candidates are the union of the documents that share a word with the question, are near it in meaning, or name a
    person whom the question names, and of the messages around these.
    """
    query, scope = asked.query, asked.scope
    matches = index.match(reader, scope, query.terms) if query.terms else index.NONE
    statistics = Statistics(
        documents=max(query.documents, len(matches.found)),
        average_length=sum(one.length for one in matches.found) / max(len(matches.found), 1),
        # If there are more matches, only the best are scored, and frequencies can't be counted among those.
        frequencies=matches.frequencies if len(matches.found) > _SCORED else None,
    )
    matching = [one for one in matches.found if query.only is None or one.doc in query.only]
    found = {one.doc: one for one in _best_by_words(query.terms, matching, statistics)}
    named = {
        documents.of_memory(i) for entity in entities.matching(reader, scope, query.text) for i in entity.memory_ids
    }
    _add(reader, scope, found, [doc for doc in (*near, *named) if doc not in found], statistics.average_length)
    if asked.weights.lent > 0:
        for row in passages.standing_around(reader, scope, [c.spot for c in found.values() if c.spot is not None]):
            found.setdefault(documents.of_message(row["id"]), index.said(row))
    candidates = [one for doc, one in found.items() if query.passes(doc)]
    for doc in named.intersection(found):
        found[doc].named = True
    _mark(asked, candidates)
    return candidates, statistics


def _add(reader: Reader, scope: Scope, found: dict[int, Candidate], docs: Sequence[int], usual_length: float) -> None:
    rows = [documents.row_id(doc) for doc in docs if not documents.is_message(doc)]
    for memory in memories.by_ids(reader, scope, rows):
        doc = documents.of_memory(memory.id)
        found[doc] = Candidate(
            doc=doc,
            counts={},
            length=usual_length,
            about=memory.subject_id,
            name=memory.subject_name,
            at=memory.learned_at,
            memory=memory,
        )
    rows = [documents.row_id(doc) for doc in docs if documents.is_message(doc)]
    for row in passages.standing(reader, scope, rows):
        found[documents.of_message(row["id"])] = index.said(row)


def _look_closely(
    reader: Reader,
    asked: _Asked,
    part: SubQuestion,
    tokens: Tokens,
    candidates: Sequence[Candidate],
    statistics: Statistics,
) -> Statistics:
    """Scores the best candidates by words and vectors with late interaction.

    Returns the statistics with the weights of the question's tokens.
    """
    assert asked.vectors is not None
    chosen = candidates
    if len(candidates) > _LOOKED_AT_CLOSELY:
        first = rank.rank(part.terms, candidates, statistics, rank.CLOSER, limit=_LOOKED_AT_CLOSELY)
        chosen = [one.candidate for one in first]
    bits = asked.vectors.bits(reader, asked.scope.partitions, [candidate.doc for candidate in chosen])
    with_bits = [candidate for candidate in chosen if len(bits.get(candidate.doc, ())) > 0]
    meant = ~np.array(tokens.stop, dtype=bool)
    best = rank.best_matches(tokens.vectors[meant], [bits[candidate.doc] for candidate in with_bits])
    for candidate, matched in zip(with_bits, best, strict=True):
        # It has vectors, and is not among the nearest.
        candidate.late, candidate.nearness = matched, candidate.nearness or 0.0
    words_meant = [word for word, stop in zip(tokens.words, tokens.stop, strict=True) if not stop]
    return replace(statistics, token_worth=_worth(words_meant, candidates, statistics))


def _worth(meant: Sequence[str], candidates: Sequence[Candidate], statistics: Statistics) -> NDArray[np.float64]:
    """Returns the rarity of each of the question's words here. The rarest of a word's index tokens decides."""
    terms = [words.tokens(word) for word in meant]
    held = Counter(
        term for term in set().union(*terms) for candidate in candidates if term in candidate.counts
    ) | Counter(statistics.frequencies or {})
    rarest = [min((held[term] for term in some), default=0) for some in terms]
    return rank.idf(np.array(rarest, dtype=float), statistics.documents)


def _best_by_words(terms: Sequence[str], found: list[Candidate], statistics: Statistics) -> list[Candidate]:
    if len(found) <= _SCORED:
        return found
    frequencies = statistics.frequencies
    scores = rank.bm25(
        rank.table(terms, [one.counts for one in found]),
        np.array([one.length for one in found]),
        documents=statistics.documents,
        average_length=statistics.average_length,
        frequencies=None if frequencies is None else np.array([float(frequencies[term]) for term in terms]),
    )
    return [found[i] for i in np.argsort(-scores, kind="stable")[:_SCORED].tolist()]


def _mark(asked: _Asked, candidates: Sequence[Candidate]) -> None:
    """Marks the candidates that are by or about a person the question names, and those of a time it asks about."""
    query, asker = asked.query, asked.scope.speaker_id
    said = query.text.casefold()
    people = {(candidate.about, candidate.name) for candidate in candidates}
    named = {identity_id for identity_id, name in people if name and _names(said, name)}
    if asker is not None and names_self(said):
        named.add(asker)
    for candidate in candidates if named else ():
        by_agent = candidate.spot is not None and candidate.spot.by_agent
        candidate.speaks = candidate.about in named and not by_agent
    for candidate in candidates if query.times else ():
        candidate.dated = max(time.fits(candidate.at) for time in query.times)


def _names(said: str, name: str) -> bool:
    """Returns whether a case-folded text holds this name or its first part as a separate word."""
    whole = name.casefold().strip()
    parts = {whole, whole.split()[0]} if whole else set()
    return any(len(part) > 1 and _holds(said, part) for part in parts)


def _holds(said: str, name: str) -> bool:
    if not name.isascii():
        return name in said  # Chinese names stand in running text
    return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", said) is not None


class _Bent(NamedTuple):
    """A ranked document with its bent score. A message's words are read only if it is among the results."""

    ranked: Ranked
    score: float
    factors: dict[ScorePart, float]
    memory: Memory | None

    @property
    def doc(self) -> int:
        return self.ranked.candidate.doc


def _fetched(reader: Reader, asked: _Asked, best: Sequence[_Bent]) -> list[Hit]:
    """Returns the first documents that the scope may see, with their rows, in order.

    A message that was said twice appears once.
    """
    scope, limit = asked.scope, asked.limit
    said_before: set[_Words] = set()
    hits = _hits(reader, scope, best[:limit], said_before)
    if len(hits) < limit < len(best):
        # Rows that disappeared between index and table, or repeat each other, make room for others.
        hits += _hits(reader, scope, _others(reader, scope, best[limit:], said_before, limit - len(hits)), said_before)
    return hits


def _hits(reader: Reader, scope: Scope, some: Sequence[_Bent], said_before: set[_Words]) -> list[Hit]:
    """Returns the documents with their rows, without messages that were `said_before`, and adds to those."""
    said = passages.as_passages(reader, scope, [documents.row_id(one.doc) for one in some if one.memory is None])
    passage_of = {documents.of_message(passage.message.id): passage for passage in said}
    hits: list[Hit] = []
    for one in some:
        passage = passage_of.get(one.doc)
        if passage is not None:
            if (words_said := _words(passage.message)) in said_before:
                continue
            said_before.add(words_said)
        if one.memory is not None or passage is not None:
            parts = one.ranked.parts | {name: round(factor, 3) for name, factor in one.factors.items()}
            near = one.ranked.candidate.nearness
            near = None if near is None else round(near, 3)
            hits.append(Hit(score=one.score, memory=one.memory, passage=passage, parts=parts, nearness=near))
    return hits


def _others(reader: Reader, scope: Scope, best: Sequence[_Bent], said_before: Set[_Words], limit: int) -> list[_Bent]:
    """Returns the first `limit` documents that hold nothing that was `said_before`, or twice here."""
    messages = passages.by_ids(reader, scope, [documents.row_id(one.doc) for one in best if one.memory is None])
    said = {documents.of_message(message.id): _words(message) for message in messages}
    taken, others = set(said_before), list[_Bent]()
    for one in best:
        if one.memory is not None or ((words_said := said.get(one.doc)) is not None and words_said not in taken):
            others.append(one)
            taken.update(() if one.memory is not None else (said[one.doc],))
        if len(others) == limit:
            break
    return others


def _words(message: Message) -> _Words:
    return message.author_id, " ".join(message.text.casefold().split())


def _by_time(reader: Reader, asked: _Asked, *, limit: int) -> list[Hit]:
    """Returns the memories and messages of the times asked for, if the question asks for nothing else.

    Important memories come first, then long messages.
    """
    scope, query = asked.scope, asked.query
    hits: list[Hit] = []
    for time in query.times:
        known = memories.between(reader, scope, time.first, time.last, limit=limit, besides=query.besides_memories)
        messages = passages.between(reader, scope, time.first, time.last, limit=limit)
        hits += [Hit(score=1 + memory.importance / 10, memory=memory) for memory in known]
        hits += [
            Hit(score=min(1.0, passage.message.tokens / _LONG_TOKENS), passage=passage)
            for passage in passages.as_passages(reader, scope, [one.id for one in messages])
        ]
    hits.sort(key=lambda hit: -hit.score)
    return hits[:limit]


def _by_substring(reader: Reader, asked: _Asked) -> list[Hit]:
    scope, query, limit = asked.scope, asked.query, _unranked(asked)

    def held(text: str) -> float:
        return float(sum(term in text.casefold() for term in query.terms))

    found = memories.containing(reader, scope, query.terms, limit=limit, besides=query.besides_memories)
    messages = passages.containing(reader, scope, query.terms, limit=limit)
    hits = [Hit(score=held(f"{memory.key} {memory.value}"), memory=memory) for memory in found]
    hits += [
        Hit(score=held(passage.message.text), passage=passage)
        for passage in passages.as_passages(reader, scope, [one.id for one in messages])
    ]
    hits.sort(key=lambda hit: -hit.score)
    return _only(asked, _successors_first(hits)[:limit])


def _bent(reader: Reader, asked: _Asked, ranked: Sequence[Ranked]) -> list[_Bent]:
    """Returns the ranked documents with their scores bent by the data of their rows.

    Leaves out memories that the scope can't see.
    """
    candidates = [one.candidate for one in ranked]
    unread = [documents.row_id(c.doc) for c in candidates if c.memory is None and not documents.is_message(c.doc)]
    memory_of = {documents.of_memory(memory.id): memory for memory in memories.by_ids(reader, asked.scope, unread)}
    memory_of |= {c.doc: c.memory for c in candidates if c.memory is not None}
    outdated = passages.outdated(reader, [documents.row_id(c.doc) for c in candidates if documents.is_message(c.doc)])
    bent = []
    for one in ranked:
        doc = one.candidate.doc
        memory = memory_of.get(doc)
        if memory is None and not documents.is_message(doc):
            continue
        if memory is not None:
            factors = _of_memory(memory, asked.query, now=asked.now)
        else:
            factors = {"recency": _recency(asked.now - one.candidate.at)}
            if one.candidate.spot is not None and one.candidate.spot.by_agent:
                factors["agent"] = _BY_AGENT
            if documents.row_id(doc) in outdated:
                factors["outdated"] = _OUTDATED
        bent.append(_Bent(one, one.score * math.prod(factors.values()), factors, memory))
    return bent


def _repeats_behind(bent: Sequence[_Bent]) -> list[_Bent]:
    """Halves the scores of facts that only say what a better one says in other words, and sorts again."""
    better: defaultdict[tuple[str, int | None, str], list[tuple[str, frozenset[str]]]] = defaultdict(list)
    found: list[_Bent] = []
    for hit in bent:
        if (memory := hit.memory) is not None and memory.kind == "fact" and memory.live:
            values = better[memory.key, memory.subject_id, memory.subject]
            said = frozenset(words.tokens(memory.value))
            if any(_says_no_more(memory.value, said, *value) for value in values):
                halved = {**hit.factors, "repeated": _REPEATED}
                found.append(hit._replace(score=hit.score * _REPEATED, factors=halved))
                continue
            if len(values) < _COMPARED:
                values.append((memory.value, said))
        found.append(hit)
    return sorted(found, key=lambda hit: -hit.score)


def _says_no_more(value: str, said: Set[str], other: str, said_by_other: Set[str]) -> bool:
    said = said - words.stop_tokens()
    same = len(said & said_by_other) >= _SAME * len(said)
    return same and not differs_in_substance(value, other)


def _of_memory(memory: Memory, query: Query, *, now: int) -> dict[ScorePart, float]:
    factors: dict[ScorePart, float] = {
        "recency": _recency(now - memory.last_reinforced_at),
        "importance": 1 + _IMPORTANCE_REACH * (memory.importance - 5.5) / 4.5,
        "strength": 1 - _STRENGTH_REACH * (1 - left(memory, now=now)),
    }
    if memory.topic and memory.topic.casefold() in query.text.casefold():
        factors["topic"] = _TOPIC
    if memory.kind == "event":
        factors["event"] = _EVENT
    if memory.archived_at is not None:
        factors["archived"] = _ARCHIVED
    if memory.valid_until is not None or memory.superseded_by is not None:
        factors["outdated"] = _OUTDATED
    return factors


def _recency(age_ms: int) -> float:
    return float(1 + _RECENCY_REACH * 0.5 ** (max(age_ms, 0) / _DAY_MS / _RECENCY_HALF_LIFE_DAYS))


def _successors_first(hits: list[H]) -> list[H]:
    """Puts each replaced memory directly behind the memory that replaced it, if both were found."""
    found = {hit.memory.id for hit in hits if hit.memory is not None}
    placed: list[H] = []
    waiting: dict[int, list[H]] = {}
    for hit in hits:
        successor = hit.memory.superseded_by if hit.memory is not None else None
        if successor is not None and successor in found:
            waiting.setdefault(successor, []).append(hit)
        else:
            placed.append(hit)
    ordered: list[H] = []
    while placed:
        hit = placed.pop(0)
        ordered.append(hit)
        if hit.memory is not None:
            placed[:0] = waiting.pop(hit.memory.id, [])
    return ordered
