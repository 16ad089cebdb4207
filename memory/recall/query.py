"""Reads a message as a question: is it worth a search in memory, and what it asks for, in which words and times.

Invariants: Pure; the cost is linear in the length of the text. In doubt a message is worth a search, because a needless
one costs milliseconds and a missed one an answer. So only two kinds of message are turned away: those that are known
small talk throughout, and those too short by their shape to ask for anything in any language. No list of question words
has to be complete. Profile and known facts are in the prompt in any case.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

import languages
from languages.reading import shipped
from memory.recall.embedding import EmbeddedQuestion
from memory.store import documents
from memory.text import words
from memory.text.language import language_of
from memory.text.times import clock
from memory.text.times.calendar import month_at
from memory.text.times.spans import Span, spans

#: Number of query terms that are looked up. Chinese questions need more than the usual 64: on MADial-zh (development
#: part, n = 80, words alone, measured by hand) 64 terms find any@5 .76 and 128 find .81.
TERMS: Final = 128
#: The number of characters of a question that are read for its meaning and its sentences.
MEANT_CHARS: Final = 2_000
#: Questions of one message that are searched for one by one; each costs as much as the whole message.
_MOST_QUESTIONS: Final = 3
#: The longest time, in days, that is meant as a day, not as a period; and the time around it in which a message still
#: counts as said then.
_SHORT_DAYS: Final = 7
_LEEWAY_MS: Final = 2 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """A time the question names: a half-open interval in milliseconds UTC.

    `around` is the interval that counts half: the month of a day.
    """

    first: int
    last: int
    around: tuple[int, int]

    def fits(self, moment: int) -> float:
        inside = self.first <= moment < self.last
        return float(inside) + float(self.around[0] <= moment < self.around[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuestion:
    text: str
    terms: list[str]
    meaning: EmbeddedQuestion | None = None


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
    besides: frozenset[int]
    only: frozenset[int] | None = None
    documents: int = 0

    def passes(self, doc: int) -> bool:
        return doc not in self.besides and (self.only is None or doc in self.only)

    @property
    def terms(self) -> list[str]:
        return self.parts[0].terms

    @property
    def besides_memories(self) -> list[int]:
        return [documents.row_id(doc) for doc in self.besides if not documents.is_message(doc)]


def taken_apart(text: str, *, today: date, timezone: str, besides: Set[int]) -> Query:
    named = spans(text, today, looks="back")
    only_time = bool(named) and not _asks_more(text, named)
    # "Today" and "lately" are said in passing: a message does not ask about these times.
    asked_about = [period for period in named if only_time or (period.first < today and not period.vague)]
    return Query(
        text=text,
        parts=tuple(
            SubQuestion(text=part, terms=words.query_terms(part, limit=TERMS)) for part in (text, *_questions(text))
        ),
        times=tuple(_time(period, timezone) for period in asked_about),
        only_time=only_time,
        besides=frozenset(map(documents.of_message, besides)),
    )


def names_self(text: str) -> bool:
    return _SELF.search(text.casefold()) is not None


def _questions(text: str) -> list[str]:
    """Returns the single questions of a message with more than one sentence; each may need its own answer.

    Returns [] if the message has several lines: a burst, or a story with questions in it, asks as a whole.
    """
    if "\n" in text.strip():
        return []
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text[:MEANT_CHARS])]
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
    return frozenset(words.tokens(languages.part(language, "language")["saying"]))


#: A sentence with its end. A full stop between digits or letters does not end one.
_SENTENCE = re.compile(r"[^.!?。！？\n]{1,500}(?:[.](?=\w)[^.!?。！？\n]{0,500}){0,20}[.!?。！？\n]{0,3}")
#: Words by which a person means themselves.
_SELF = re.compile(r"\b(?:i|me|my|mine|myself|i'm|i've|i'd)\b|我")

#: A longer text (in characters, without its fenced code) has substance, unless it is all code.
_SHORT = 60


def should_search(text: str) -> bool:
    """Returns whether memory should be searched for `text`.

    No: texts of only emoji, punctuation or code; acknowledgements, thanks, greetings and laughter ("ok thanks!", 好的,
    哈哈, obrigado); a bare syllable. Yes: everything else, above all texts with a question mark beside a word, and
    questions and words of memory however short ("why", "again", 谁, 记得).
    """
    # An unclosed fence runs to the end, as platforms show it.
    said = _INLINE_CODE.sub(" ", " ".join(text.split("```")[::2])).strip()
    if len(said) > _SHORT:
        return any(map(_is_spoken, said)) and not _is_code(said)
    said = unicodedata.normalize("NFKC", said).casefold()
    unquoted = said.replace("'", "").replace("’", "")
    words = "".join(char if _is_spoken(char) else " " for char in unquoted).split()
    if not words:
        return False
    if _QUESTION_MARK.search(said) or _SHORTEST_QUESTIONS.search(" ".join(words)):
        return True
    return not (_is_chatter(words) or _is_tiny(words) or _is_code(said))


_INLINE_CODE = re.compile(r"`[^`\n]{1,400}`")
#: Latin, full-width (folded to it), Arabic, Armenian, Ethiopic; the Greek one can't be told from a semicolon.
_QUESTION_MARK = re.compile("[?؟՞፧]")
#: Questions and words of memory that `_is_tiny` would take for a bare syllable.
_SHORTEST_QUESTIONS = re.compile(r"[谁誰何哪啥吗嗎忘记記왜뭐]|か$|\b(?:où|wo|му|کی)\b")
_REPEATED = re.compile(r"(.)\1{2,}", re.DOTALL)
_LAUGHTER = re.compile("a?(?:ha|he|hi|ja|je|ka|rs|ха|хе|хи|ах|هه){2,30}[ahх]?|lo{1,2}l|lmf?ao|rofl|xd")
#: Han, kana, Hangul, Thai: small talk there is a chain of phrases without spaces.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_HIRAGANA = re.compile("[\u3041-\u309f]{1,3}")
_CODE_LINE = re.compile(
    r"import [\w.]+|from [\w.]+ import .*|(?:def|class|func|fn|function) \w+.*[:({]"
    r"|(?:const|let|var) \w+ ?=.*|return\b.*[;)\]\d]|else:|try:|#include.*|//.*|@\w+|>>> .*|\$ .*"
    r"|</?\w+[^>]{0,200}>.*|[\w.\[\]\"']{1,80} ?[-+*/]?= ?\S.*|[\w.]{1,80}\(.*\)|.*(?:[;{}]|\):)"
)
_NOTE = re.compile(r"\w[\w ]{0,80} ?= ?[^\s;{}()]{1,200}")


@cache
def _words_of(name: str) -> frozenset[str]:
    """Returns the words of a list of small_talk.yaml."""
    return frozenset(unicodedata.normalize("NFKC", shipped("memory.recall", "small_talk.yaml")[name]).split())


@cache
def _any_of(name: str) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(_words_of(name), key=len, reverse=True))))


def _is_spoken(char: str) -> bool:
    # A letter or a number, or a mark on one; asked in this order, as most are.
    return char.isalnum() or (unicodedata.category(char) in {"Mn", "Mc"} and not "\ufe00" <= char <= "\ufe0f")


def _is_chatter(words: list[str]) -> bool:
    acknowledged = False
    for word in words:
        said = _REPEATED.sub(r"\1", word)
        if _UNSPACED.search(said):
            left = _any_of("unspaced").sub("", said)
            if _any_of("unspaced_beside").sub("", left):
                return False
            acknowledged |= left != said
        elif {said, word} & _words_of("acknowledging") or _LAUGHTER.fullmatch(word):
            acknowledged = True
        elif said not in _words_of("beside"):
            return False
    return acknowledged


def _is_tiny(words: list[str]) -> bool:
    """Returns True for one or two letters, one character of an unspaced script, or up to three hiragana."""
    whole = "".join(words)
    if _UNSPACED.search(whole):
        return len(whole) == 1 or _HIRAGANA.fullmatch(whole) is not None
    return len(whole) <= 2


def _is_code(said: str) -> bool:
    """Returns whether every line looks like code; one line of prose is enough to search.

    "PIN = 4711" alone is a note.
    """
    lines = [line.strip()[:300] for line in said.splitlines() if any(map(_is_spoken, line))]
    is_note = len(lines) == 1 and _NOTE.fullmatch(lines[0])
    return bool(lines) and not is_note and all(_CODE_LINE.fullmatch(line) for line in lines)
