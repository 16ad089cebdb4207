"""Ranks the memories and passages that answer a question, without a model.

Invariants: Nothing outside the scope is read. Importance, strength and age only bend a score within fixed bounds; they
never hide a row. A replaced memory ranks below the memory that replaced it. Without an embedder words alone decide.
Without a working index the scope is searched by substring; the caller notices only the lower quality.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np
import structlog
from numpy.typing import NDArray

import languages
from memory.errors import StorageError, StoreBusy, StoreDamaged, StoreUnwritable
from memory.filters import NO_FILTERS, Filters
from memory.recall import index, late, rank
from memory.recall.bm25 import bm25, idf, table
from memory.recall.embed import Tokens
from memory.recall.embedding import EmbeddedQuestion, Embedding
from memory.recall.rank import Candidate, MessageSpot, Ranked, Statistics, Weights
from memory.recall.rerank import Reranker
from memory.scope import Scope
from memory.score import ScorePart
from memory.store import documents, entities, filtered, memories, passages
from memory.store.database import INDEX, Database, Reader, Row
from memory.store.fading import left
from memory.store.history import Message
from memory.store.memories import Memory
from memory.store.passages import Passage
from memory.store.vectors import Vectors
from memory.text import words
from memory.text.language import language_of
from memory.text.times import clock
from memory.text.times.calendar import month_at
from memory.text.times.spans import Span, spans

log = structlog.get_logger(__name__)

#: Number of query terms that are looked up. Chinese questions need more than the usual 64: on MADial-zh (development
#: part, n = 80, words alone, measured by hand) 64 terms find any@5 .76 and 128 find .81.
_TERMS = 128
#: Candidates fetched for each place in the result, so that some can be moved back or dropped.
_OVER_FETCH = 8
#: Seconds that embedding a question may take, and the number of its characters that are read.
_MEANING_SECONDS = 1.5
_MEANT_CHARS = 2_000
#: Questions of one message that are searched for one by one; each costs as much as the whole message.
_MOST_QUESTIONS = 3
#: Documents nearest in meaning that join the candidates.
_NEAREST = 400
#: Best candidates by words and vectors that late interaction scores; a hundred would do (docs/design/benchmarks.md).
_LOOKED_AT_CLOSELY = 300
#: Matches that are scored with their neighbours. If there are more, these are the best by their own words.
_SCORED = 1_000
#: The most by which importance, fading strength and age may bend a score.
_IMPORTANCE_REACH = 0.1
_STRENGTH_REACH = 0.1
_RECENCY_REACH = 0.05
_RECENCY_HALF_LIFE_DAYS = 30.0
#: Factor for a memory whose topic the question names.
_TOPIC = 1.1
#: Factor for an archived memory: it comes up when little else matches.
_ARCHIVED = 0.25
#: Factor for an event: its lasting content is kept as a fact, and its words as messages.
_EVENT = 0.6
#: Factor for a message whose memories were all replaced since.
_OUTDATED = 0.5
#: Factor for the bot's own messages: mostly they repeat people's words.
_BY_AGENT = 0.6
_DAY_MS = 86_400_000
#: The longest time, in days, that is meant as a day, not as a period; and the time around it in which a message still
#: counts as said then.
_SHORT_DAYS = 7
_LEEWAY_MS = 2 * _DAY_MS
#: Tokens from which a message gets the full score when only its time is known.
_LONG_TOKENS = 60
#: A message's author and its words without regard to case and spacing.
_Words: TypeAlias = tuple[int | None, str]
T = TypeVar("T")
H = TypeVar("H", "Hit", "_Bent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory or a passage that answers the query. `parts` explains the score, in numbers only.

    `nearness` is its likeness to the question above that of ordinary lines; it is no part of the score.
    """

    score: float
    memory: Memory | None = None
    passage: Passage | None = None
    parts: dict[ScorePart, float] = field(default_factory=dict)
    nearness: float = 0.0

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
class Time:
    """A time the question names: a half-open interval in milliseconds UTC.

    `around` is the interval that counts half: the month of a day.
    """

    first: int
    last: int
    around: tuple[int, int]

    def fits(self, moment: int) -> float:
        """Returns how well a moment fits: 2, 1 or 0."""
        inside = self.first <= moment < self.last
        return float(inside) + float(self.around[0] <= moment < self.around[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """An analysed question.

    The first of `parts` is the whole question; the others are the single questions in it, if it has several. `times`
    are the times it asks about; `only_time` is True if it asks for nothing else. `besides` are documents to pass over;
    if `only` is set, all others are passed over, too. So many `documents` can be found.
    """

    text: str
    parts: tuple[SubQuestion, ...]
    times: tuple[Time, ...]
    only_time: bool
    asker_id: int | None
    besides: frozenset[int]
    only: frozenset[int] | None = None
    documents: int = 0

    def passes(self, doc: int) -> bool:
        """Returns whether a document may answer."""
        return doc not in self.besides and (self.only is None or doc in self.only)

    @property
    def terms(self) -> list[str]:
        """The words of the whole question."""
        return self.parts[0].terms

    @property
    def besides_memories(self) -> list[int]:
        """The memories that are passed over, by id."""
        return [documents.row_id(doc) for doc in self.besides if not documents.is_message(doc)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuestion:
    """A whole question, or one of several in it: its words, and its meaning if an embedder works."""

    text: str
    terms: list[str]
    meaning: EmbeddedQuestion | None = None


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
        weights = weights or self._weights
        query = self._query(scope, text, timezone, besides)
        if not query.terms and not query.times:
            return []
        if not query.only_time and weights.vectors + weights.late > 0:
            meant = [replace(part, meaning=await self._meaning(part.text)) for part in query.parts]
            query = replace(query, parts=tuple(meant))
        vectors = None if self._embedding is None else self._embedding.vectors

        def looked_for(reader: Reader) -> Query:
            reader.confine(scope)
            narrowed = query
            if filters.given:
                allowed = filtered.allowed(reader, scope, filters, timezone)
                docs = [*map(documents.of_memory, allowed.memory_ids), *map(documents.of_message, allowed.message_ids)]
                narrowed = replace(query, only=frozenset(docs))
            if older_reflections:
                return narrowed
            older = map(documents.of_memory, memories.older_reflections(reader, scope))
            return replace(narrowed, besides=query.besides.union(older))

        def by_index(reader: Reader) -> list[Hit]:
            state = index.state(reader, scope)
            if not state.is_whole:
                raise _NotWhole
            if state.is_behind:
                raise _Behind
            query = replace(looked_for(reader), documents=state.documents)
            return _by_index(reader, scope, query, weights, vectors, limit=limit, now=self._now())

        def by_substring(reader: Reader) -> list[Hit]:
            asked = looked_for(reader)
            return _only(asked, _by_substring(reader, scope, asked, limit=_unranked(asked, limit)), limit=limit)

        hits = await self._with_index(by_index, by_substring)
        if self._reranker is None:
            return hits
        return [hits[i] for i in await self._reranker.order(text, [hit.text for hit in hits])]

    async def vector(self, text: str, *, model: str) -> NDArray[np.float32] | None:
        """Returns the vector of `text` by the embedder called `model`; None if that does not serve, or is too late."""
        if self._embedding is None or self._embedding.model != model:
            return None
        meaning = await self._meaning(text)
        return None if meaning is None else meaning.vector

    async def _meaning(self, text: str) -> EmbeddedQuestion | None:
        """Returns the embedded question, or None if there is no embedder or it takes too long."""
        if self._embedding is None:
            return None
        try:
            async with asyncio.timeout(_MEANING_SECONDS):
                return await self._embedding.question(text[:_MEANT_CHARS])
        except TimeoutError:
            log.warning("search.slow_embedder", seconds=_MEANING_SECONDS, instead="words only")
            return None

    async def feed(self) -> None:
        """Makes the index read changes that are known to exist. If that fails, the next search notices."""
        try:
            await self._feed()
        except StorageError as exc:
            log.warning("index.behind", error=str(exc))

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

    def _query(self, scope: Scope, text: str, timezone: str, besides: Set[int]) -> Query:
        today = clock.local_date(self._now(), timezone)
        named = spans(text, today, looks="back")
        only_time = bool(named) and not _asks_more(text, named)
        # "Today" and "lately" are said in passing: a message does not ask about these times.
        asked_about = [period for period in named if only_time or (period.first < today and not period.vague)]
        return Query(
            text=text,
            parts=tuple(
                SubQuestion(text=part, terms=words.query_terms(part, limit=_TERMS))
                for part in (text, *_questions(text))
            ),
            times=tuple(_time(period, timezone) for period in asked_about),
            only_time=only_time,
            asker_id=scope.speaker_id,
            besides=frozenset(documents.of_message(message_id) for message_id in besides),
        )


def _questions(text: str) -> list[str]:
    """Returns the single questions of a message with more than one sentence; each may need its own answer.

    Returns [] if the message has several lines: a burst, or a story with questions in it, asks as a whole.
    """
    if "\n" in text.strip():
        return []
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text[:_MEANT_CHARS])]
    asked = [sentence for sentence in sentences if sentence.endswith(("?", "？"))]
    # One question after an abbreviation looks like two sentences. The Chinese mark only ever ends a sentence.
    several = len(asked) > 1 or (len(sentences) > 1 and text.count("？") > 0)
    return asked[:_MOST_QUESTIONS] if several else []


def _time(period: Span, timezone: str) -> Time:
    first, last = clock.moments(period.first, period.last, timezone)
    if (period.last - period.first).days > _SHORT_DAYS:
        return Time(first=first, last=last, around=(first, first))
    # People tell of a day soon after it, and the day they name is rarely off by more than a few days.
    around = clock.moments(period.first.replace(day=1), month_at(period.last, 0).last, timezone)
    return Time(first=first - _LEEWAY_MS, last=last + _LEEWAY_MS, around=around)


def _asks_more(text: str, named: Sequence[Span]) -> bool:
    """Returns whether the text asks for anything but times, stop words and "what did I say"."""
    rest = text
    for period in reversed(named):
        rest = f"{rest[: period.start]} {rest[period.end :]}"
    idle = words.stop_tokens() | _saying("en") | _saying("zh") | _saying(language_of(text) or "en")
    # In scripts without spaces a token is a pair of characters, which says no more than the two characters do.
    return any(token not in idle and (token.isascii() or not idle.issuperset(token)) for token in words.tokens(rest))


@cache
def _saying(language: str) -> frozenset[str]:
    """Returns the words with which people ask what was talked about in general."""
    return frozenset(words.tokens(languages.part(language, "language")["saying"]))


class _NotWhole(Exception):
    """The index is incomplete: it is being rebuilt."""


class _Behind(Exception):
    """The index does not hold every committed change yet."""


def nearest_facts(reader: Reader, scope: Scope, text: str, *, limit: int) -> list[Memory]:
    """Returns live facts and styles of the scope that share words with `text`, best first."""
    terms = words.query_terms(text, limit=_TERMS)
    matches = index.match(reader, scope, terms) if terms else index.NONE
    found = [match for match in matches.found if match.message is None]
    statistics = Statistics(
        documents=memories.count(reader, scope),
        average_length=sum(match.length for match in found) / max(len(found), 1),
    )
    candidates = [Candidate(doc=match.doc, counts=match.counts, length=match.length) for match in found]
    ranked = rank.rank(terms, candidates, statistics, rank.CLASSIC)
    ids = [documents.row_id(one.candidate.doc) for one in ranked[: limit * _OVER_FETCH]]
    live = [m for m in memories.by_ids(reader, scope, ids) if m.live and m.kind in ("fact", "style")]
    return live[:limit]


def _by_index(
    reader: Reader,
    scope: Scope,
    query: Query,
    weights: Weights,
    vectors: Vectors | None,
    *,
    limit: int,
    now: int,
) -> list[Hit]:
    if query.only_time:
        return _only(query, _by_time(reader, scope, query, limit=_unranked(query, limit)), limit=limit)
    ranked = _ranked(reader, scope, query, weights, vectors, limit=limit * _OVER_FETCH)
    bent = _bent(reader, scope, query, ranked, now=now)
    bent.sort(key=lambda one: -one.score)
    return _fetched(reader, scope, _successors_first(bent), limit=limit)


def _unranked(query: Query, limit: int) -> int:
    """Returns the number of documents to fetch if filters are applied to the fetched ones."""
    return limit if query.only is None else _SCORED


def _only(query: Query, hits: Sequence[Hit], *, limit: int) -> list[Hit]:
    """Returns the first `limit` hits that meet the filters."""
    return [hit for hit in hits if query.only is None or hit.doc in query.only][:limit]


def _ranked(
    reader: Reader, scope: Scope, query: Query, weights: Weights, vectors: Vectors | None, *, limit: int
) -> list[Ranked]:
    near = [_near_in_meaning(reader, scope, part, vectors) for part in query.parts]
    candidates, statistics = _candidates(reader, scope, query, weights, set().union(*near))
    rankings = []
    for part, cosines in zip(query.parts, near, strict=True):
        for candidate in candidates:
            candidate.cosine, candidate.late = cosines.get(candidate.doc), None
            if part.meaning is not None and candidate.cosine is not None:
                candidate.nearness = max(candidate.nearness, candidate.cosine - part.meaning.usual)
        known = statistics
        if vectors is not None and part.meaning is not None and part.meaning.tokens is not None:
            known = _look_closely(reader, scope, part, vectors, part.meaning.tokens, candidates, statistics)
        rankings.append(rank.rank(part.terms, candidates, known, weights, limit=len(candidates) if near[1:] else limit))
    return rank.together(rankings[0], rankings[1:], limit=limit) if near[1:] else rankings[0]


def _near_in_meaning(reader: Reader, scope: Scope, part: SubQuestion, vectors: Vectors | None) -> dict[int, float]:
    """Returns the documents whose vectors are nearest to the question's, with their cosines."""
    if vectors is None or part.meaning is None:
        return {}
    return dict(vectors.nearest(reader, scope.partitions, part.meaning.vector, _NEAREST))


def _candidates(
    reader: Reader, scope: Scope, query: Query, weights: Weights, near: Set[int]
) -> tuple[list[Candidate], Statistics]:
    """Returns the candidates for a query, and the statistics to score them with.

    Candidates are the union of the documents that share a word with the question, are near it in meaning, or name a
    person whom the question names, and of the messages around these.
    """
    matches = index.match(reader, scope, query.terms) if query.terms else index.NONE
    statistics = Statistics(
        documents=max(query.documents, len(matches.found)),
        average_length=sum(match.length for match in matches.found) / max(len(matches.found), 1),
        # If there are more matches, only the best are scored, and frequencies can't be counted among those.
        frequencies=matches.frequencies if len(matches.found) > _SCORED else None,
    )
    matching = [one for one in matches.found if query.only is None or one.doc in query.only]
    found = {
        match.doc: Candidate(
            doc=match.doc,
            counts=match.counts,
            length=match.length,
            spot=match.message,
            about=match.about,
            name=match.name,
            at=match.at,
        )
        for match in _best_by_words(query.terms, matching, statistics)
    }
    named = {
        documents.of_memory(i) for entity in entities.matching(reader, scope, query.text) for i in entity.memory_ids
    }
    _add(reader, scope, found, [doc for doc in (*near, *named) if doc not in found], statistics.average_length)
    if weights.lent > 0:
        for row in passages.standing_around(reader, scope, [c.spot for c in found.values() if c.spot is not None]):
            found.setdefault(documents.of_message(row["id"]), _said(row))
    found = {doc: candidate for doc, candidate in found.items() if query.passes(doc)}
    for doc, candidate in found.items():
        candidate.named = doc in named
    candidates = list(found.values())
    _mark(query, candidates)
    return candidates, statistics


def _add(reader: Reader, scope: Scope, found: dict[int, Candidate], docs: Sequence[int], usual_length: float) -> None:
    """Adds documents that share no word with the question."""
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
        )
    rows = [documents.row_id(doc) for doc in docs if documents.is_message(doc)]
    for row in passages.standing(reader, scope, rows):
        found[documents.of_message(row["id"])] = _said(row)


def _look_closely(
    reader: Reader,
    scope: Scope,
    part: SubQuestion,
    vectors: Vectors,
    tokens: Tokens,
    candidates: Sequence[Candidate],
    statistics: Statistics,
) -> Statistics:
    """Scores the best candidates by words and vectors with late interaction.

    Returns the statistics with the weights of the question's tokens.
    """
    chosen = candidates
    if len(candidates) > _LOOKED_AT_CLOSELY:
        first = rank.rank(part.terms, candidates, statistics, rank.CLOSER, limit=_LOOKED_AT_CLOSELY)
        chosen = [one.candidate for one in first]
    bits = vectors.bits(reader, scope.partitions, [candidate.doc for candidate in chosen])
    meant = ~np.array(tokens.stop, dtype=bool)
    with_bits = [candidate for candidate in chosen if len(bits.get(candidate.doc, ())) > 0]
    best = late.best_matches(tokens.vectors[meant], [bits[candidate.doc] for candidate in with_bits])
    for candidate, matched in zip(with_bits, best, strict=True):
        candidate.late = matched
    words_meant = [word for word, stop in zip(tokens.words, tokens.stop, strict=True) if not stop]
    return replace(statistics, token_worth=_worth(words_meant, candidates, statistics))


def _worth(asked: Sequence[str], candidates: Sequence[Candidate], statistics: Statistics) -> NDArray[np.float64]:
    """Returns the rarity of each of the question's words here. The rarest of a word's index tokens decides."""
    held = Counter(term for candidate in candidates for term in candidate.counts)
    frequencies = statistics.frequencies or held
    rarest = [min((frequencies.get(term, held[term]) for term in words.tokens(word)), default=0) for word in asked]
    return idf(np.array(rarest, dtype=float), statistics.documents)


def _best_by_words(terms: Sequence[str], found: list[index.Match], statistics: Statistics) -> list[index.Match]:
    if len(found) <= _SCORED:
        return found
    frequencies = statistics.frequencies
    scores = bm25(
        table(terms, [match.counts for match in found]),
        np.array([float(match.length) for match in found]),
        documents=statistics.documents,
        average_length=statistics.average_length,
        frequencies=None if frequencies is None else np.array([float(frequencies[term]) for term in terms]),
    )
    return [found[i] for i in sorted(range(len(found)), key=lambda i: -scores[i])[:_SCORED]]


def _said(row: Row) -> Candidate:
    """Converts a row of `passages.standing` to a candidate that shares no word with the question."""
    return Candidate(
        doc=documents.of_message(row["id"]),
        counts={},
        length=float(row["tokens"]),
        about=row["author_id"],
        name=row["name"],
        at=row["said_at"],
        spot=MessageSpot(
            session_id=row["session_id"],
            sitting=row["sitting"],
            nth=row["nth"],
            by_agent=row["role"] == "assistant",
            asks=row["ending"].endswith(("?", "？")),
        ),
    )


def _mark(query: Query, candidates: Sequence[Candidate]) -> None:
    """Marks the candidates that are by or about a person the question names, and those of a time it asks about."""
    said = query.text.casefold()
    people = {(candidate.about, candidate.name) for candidate in candidates}
    named = {identity_id for identity_id, name in people if name and _names(said, name)}
    if _SELF.search(said) and query.asker_id is not None:
        named.add(query.asker_id)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bent:
    """A ranked document with its bent score. A message's words are read only if it is among the results."""

    ranked: Ranked
    score: float
    factors: dict[ScorePart, float]
    memory: Memory | None

    @property
    def doc(self) -> int:
        return self.ranked.candidate.doc

    @property
    def parts(self) -> dict[ScorePart, float]:
        return self.ranked.parts | {name: round(part, 3) for name, part in self.factors.items()}


def _fetched(reader: Reader, scope: Scope, best: Sequence[_Bent], *, limit: int) -> list[Hit]:
    """Returns the first `limit` documents that the scope may see, with their rows, in order.

    A message that was said twice appears once.
    """
    said_before: set[_Words] = set()
    hits = _hits(reader, scope, best[:limit], said_before)
    if len(hits) < limit < len(best):
        # Rows that disappeared between index and table, or repeat each other, make room for others.
        hits += _hits(reader, scope, _others(reader, scope, best[limit:], said_before, limit - len(hits)), said_before)
    return hits


def _hits(reader: Reader, scope: Scope, some: Sequence[_Bent], said_before: set[_Words]) -> list[Hit]:
    """Returns the documents with their rows, without messages that were `said_before`, and adds to those."""
    said = passages.with_neighbours(reader, scope, [documents.row_id(one.doc) for one in some if one.memory is None])
    passage_of = {documents.of_message(passage.message.id): passage for passage in said}
    hits: list[Hit] = []
    for one in some:
        passage = passage_of.get(one.doc)
        if passage is not None:
            if (words_said := _words(passage.message)) in said_before:
                continue
            said_before.add(words_said)
        if one.memory is not None or passage is not None:
            near = round(one.ranked.candidate.nearness, 3)
            hits.append(Hit(score=one.score, memory=one.memory, passage=passage, parts=one.parts, nearness=near))
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


def _by_time(reader: Reader, scope: Scope, query: Query, *, limit: int) -> list[Hit]:
    """Returns the memories and messages of the times asked for, if the question asks for nothing else.

    Important memories come first, then long messages.
    """
    hits: list[Hit] = []
    for time in query.times:
        known = memories.between(reader, scope, time.first, time.last, limit=limit, besides=query.besides_memories)
        said = passages.between(reader, scope, time.first, time.last, limit=limit)
        hits += [Hit(score=1 + memory.importance / 10, memory=memory) for memory in known]
        hits += [
            Hit(score=min(1.0, passage.message.tokens / _LONG_TOKENS), passage=passage)
            for passage in passages.passages(reader, scope, said)
        ]
    hits.sort(key=lambda hit: -hit.score)
    return hits[:limit]


def _by_substring(reader: Reader, scope: Scope, query: Query, *, limit: int) -> list[Hit]:
    def held(text: str) -> float:
        return float(sum(term in text.casefold() for term in query.terms))

    found = memories.containing(reader, scope, query.terms, limit=limit, besides=query.besides_memories)
    messages = passages.containing(reader, scope, query.terms, limit=limit)
    hits = [Hit(score=held(f"{memory.key} {memory.value}"), memory=memory) for memory in found]
    hits += [
        Hit(score=held(passage.message.text), passage=passage) for passage in passages.passages(reader, scope, messages)
    ]
    hits.sort(key=lambda hit: -hit.score)
    return _successors_first(hits)[:limit]


def _bent(reader: Reader, scope: Scope, query: Query, ranked: Sequence[Ranked], *, now: int) -> list[_Bent]:
    """Returns the ranked documents with their scores bent by the data of their rows.

    Leaves out memories that the scope can't see.
    """
    docs = [one.candidate.doc for one in ranked]
    found = memories.by_ids(reader, scope, [documents.row_id(doc) for doc in docs if not documents.is_message(doc)])
    memory_of = {documents.of_memory(memory.id): memory for memory in found}
    outdated = passages.outdated(reader, [documents.row_id(doc) for doc in docs if documents.is_message(doc)])
    bent = []
    for one in ranked:
        doc = one.candidate.doc
        memory = memory_of.get(doc)
        if memory is not None:
            factors = _of_memory(memory, query, now=now)
        elif documents.is_message(doc):
            factors = {"recency": _recency(now - one.candidate.at)}
            if one.candidate.spot is not None and one.candidate.spot.by_agent:
                factors["agent"] = _BY_AGENT
            if documents.row_id(doc) in outdated:
                factors["outdated"] = _OUTDATED
        else:
            continue
        score = one.score
        for factor in factors.values():
            score *= factor
        bent.append(_Bent(ranked=one, score=score, factors=factors, memory=memory))
    return bent


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


#: A sentence with its end. A full stop between digits or letters does not end one.
_SENTENCE = re.compile(r"[^.!?。！？\n]{1,500}(?:[.](?=\w)[^.!?。！？\n]{0,500}){0,20}[.!?。！？\n]{0,3}")
#: Words by which a person means themselves.
_SELF = re.compile(r"\b(?:i|me|my|mine|myself|i'm|i've|i'd)\b|我")
