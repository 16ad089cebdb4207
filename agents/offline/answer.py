"""Chooses what answers a question from what memory found, and says it in a sentence.

Invariants: pure. Nothing is made up: an answer is a fact that was told or a sentence that was said, with its day. A
question is never offered as an answer, nor a sentence that lacks a person or a kind of thing that was asked for. In
doubt there is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agents.llm import Remembered
from agents.offline.question import AskedQuestion, Tokens, content, held, is_question, lacking, sentences
from agents.offline.speech import Speech, plain

#: The share of a question's words that an answer must hold. Chosen on dialogues written for that
#: (`python -m bench.offline`): with half of them, what is near but different passes for an answer.
_ENOUGH: Final = 0.6
#: Facts told at most, in answer to one question and to "what do you know about me".
_MOST: Final = 6
_MOST_LISTED: Final = 12
#: Longest quotation, in characters; of a longer message only the sentence that answers is quoted.
_QUOTATION: Final = 240
#: How long after a message the next may refer to it or say that it holds no more, in milliseconds.
_SOON: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Something that may answer: how much of the question it holds, and how it is said.

    `before` is what was said just before, if the words refer to it: "he plays bass" follows "my best mate is Tyrell".
    """

    share: float
    memory: Remembered
    words: str
    before: str = ""


def answer(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> str:
    """Returns the answer to a question; empty if nothing answers it. `remembered` begins with the best."""
    facts = [one for one in remembered if not one.verbatim]
    if question.everything:
        return _all(facts, speech)
    if question.about:
        told = _about(question, remembered, speech, tokens)
        if told:
            return told
    if question.asks is not None and not question.before:
        told = _by_key(question, facts, speech, tokens)
        if told:
            return told
    return _by_words(question, remembered, speech, tokens)


def _all(facts: Sequence[Remembered], speech: Speech) -> str:
    live = [one for one in facts if not one.superseded]
    if not live:
        return speech.texts["empty"]
    lines = [sentence(one.said) for one in live[:_MOST_LISTED]]
    return "\n".join([*lines, speech.texts["more"]] if len(live) > _MOST_LISTED else lines)


def _about(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> str:
    """Tells all facts and sentences that hold a name."""
    wanted = content(question.about, speech, tokens) or frozenset(tokens(question.about))
    facts = [one for one in remembered if not (one.verbatim or one.superseded) and wanted <= _held(one, speech, tokens)]
    lines = [_said(facts[:_MOST], speech)] if facts else []
    known = " ".join(one.said for one in facts)
    quotes = [
        one
        for one in _quotes(remembered, speech)
        if wanted <= held(one.words, speech, tokens)
        and not (facts and set(content(one.words, speech, tokens)) <= set(tokens(known)))
    ]
    lines += [_quoted(one, speech) for one in sorted(quotes, key=lambda one: one.memory.at)[:_MOST]]
    return "\n".join(lines)


def _by_key(question: AskedQuestion, facts: Sequence[Remembered], speech: Speech, tokens: Tokens) -> str:
    asks = question.asks
    assert asks is not None
    meant = [
        one
        for one in facts
        if not one.about and _has_key(one, asks.keys | asks.no) and (not asks.value or asks.value.search(one.value))
    ]
    if asks.object and question.rest:
        meant = [
            one
            for one in meant
            if question.rest & (_held(one, speech, tokens) | set(tokens(one.said if one.relation else "")))
        ]
    elif question.rest - {token for one in meant for token in _held(one, speech, tokens)} and question.musts:
        return ""
    live = [one for one in meant if not one.superseded]
    if asks.object and question.yes_no and live:
        best = max(live, key=lambda one: one.at)
        form = "no" if _has_key(best, asks.no) else "yes"
        return speech.texts[form].format(said=best.said, when=best.when)
    wanted = [one for one in live if _has_key(one, asks.keys)]
    if wanted:
        return _said(sorted(wanted, key=lambda one: one.at)[:_MOST], speech)
    ended = [one for one in meant if one.superseded and _has_key(one, asks.keys)]
    if ended:
        latest = max(ended, key=lambda one: one.at)
        return speech.texts["ended"].format(said=latest.said, when=latest.until)
    return ""


def _has_key(memory: Remembered, keys: Iterable[str]) -> bool:
    return any(
        memory.key == key
        or (key == "relation" and memory.relation)
        or (key == "favourite" and memory.key.startswith("favourite-"))
        for key in keys
    )


def _by_words(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> str:
    if not question.words:
        return ""
    needs = _needed(question, speech)
    facts = [
        _Found(share=0.0, memory=one, words=one.said) for one in remembered if not (one.verbatim or one.superseded)
    ]
    named = _named(facts, speech, tokens)
    quotes = _quotes(remembered, speech)
    if speech.own.search(question.text):
        quotes = [one for one in quotes if not speech.other.search(speech.read(one.words))]
    found = []
    for one in (*facts, *quotes):
        share = _share(question, one, named, speech, tokens)
        if share >= _ENOUGH and all(hold.search(speech.read(one.words)) for hold in needs):
            found.append(_Found(share=share, memory=one.memory, words=one.words))
    if not found:
        return ""
    best = max(found, key=lambda one: (one.share, one.memory.at, one.memory.verbatim))
    if best.memory.verbatim:
        return _quoted(best if question.before else _latest(best, quotes, needs, speech), speech)
    return _said([best.memory], speech)


def _share(
    question: AskedQuestion,
    found: _Found,
    named: Sequence[tuple[frozenset[str], frozenset[str]]],
    speech: Speech,
    tokens: Tokens,
) -> float:
    """Returns the share of a question's words that something holds; 0 if it lacks what it must hold."""
    memory, words = found.memory, question.words
    said = held(f"{found.before} {found.words}", speech, tokens) if memory.verbatim else _held(memory, speech, tokens)
    # "My husband" holds in what is said of Emeka, once it is known who he is.
    said = said.union(*(kin for kin, name in named if name <= said))
    if found.before and not words & held(found.words, speech, tokens):
        return 0.0
    if not question.musts <= said or (
        words <= question.musts and not question.yes_no and not _needed(question, speech)
    ):
        return 0.0
    missing = lacking(words, said)
    if missing and missing <= question.kind:
        # What is left of the question must be more than whom it is about.
        return 1.0 if (words - question.kind) - question.musts else 0.0
    return 1 - len(missing) / len(words)


def _named(facts: Sequence[_Found], speech: Speech, tokens: Tokens) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Returns the words for relatives and friends that facts name, with the words of the name."""
    return [
        (held(f"{one.memory.key} {speech.kinds.get(one.memory.key, '')}", speech, tokens), name)
        for one in facts
        if one.memory.relation and (name := frozenset(tokens(one.memory.value)))
    ]


def _latest(found: _Found, quotes: Sequence[_Found], needs: Sequence[re.Pattern[str]], speech: Speech) -> _Found:
    """Returns what the next message of the same person says, if it says that something changed; else `found`."""
    after = [one for one in quotes if 0 < one.memory.at - found.memory.at <= _SOON and one.memory.by == found.memory.by]
    if not after:
        return found
    following = min(after, key=lambda one: one.memory.at)
    said = speech.read(following.memory.said)
    changed = speech.changed.search(said) is not None and all(hold.search(said) for hold in needs)
    return following if changed else found


def _held(fact: Remembered, speech: Speech, tokens: Tokens) -> frozenset[str]:
    """Returns the tokens by which a fact is asked for."""
    return held(f"{fact.key} {fact.value} {speech.kinds.get(fact.key, '')}", speech, tokens)


def _needed(question: AskedQuestion, speech: Speech) -> list[re.Pattern[str]]:
    """Returns what an answer must hold: what the first question word of the question asks for."""
    asking = [
        (match.start(), -len(match.group()), one.hold)
        for one in speech.needs
        if (match := one.ask.search(question.text))
    ]
    return [min(asking, key=lambda one: one[:2])[2]] if asking else []


def _quotes(remembered: Sequence[Remembered], speech: Speech) -> list[_Found]:
    """Returns what was said and asks nothing: short messages as a whole, of longer ones each sentence."""
    found: list[_Found] = []
    last: Remembered | None = None
    for one in sorted(remembered, key=lambda memory: memory.at):
        if one.verbatim:
            stated = [words for words in sentences(one.said) if not is_question(words, speech)]
            whole = " ".join(stated)
            texts = [whole] if stated and len(whole) <= _QUOTATION else stated
            refers = speech.refers is not None and speech.refers.search(whole) and last is not None
            before = last.said if refers and last is not None and one.at - last.at <= _SOON else ""
            found += [_Found(share=0.0, memory=one, words=words, before=before) for words in texts]
            last = one
    return found


def _said(facts: Sequence[Remembered], speech: Speech) -> str:
    """Returns facts as sentences; those told on one day share a sentence."""
    days: dict[str, list[str]] = {}
    for one in facts:
        days.setdefault(one.when, []).append(one.said)
    return "\n".join(
        sentence(speech.texts["said"].format(said=speech.texts["and"].join(said), when=when))
        for when, said in days.items()
    )


def _quoted(found: _Found, speech: Speech) -> str:
    memory = found.memory
    words = plain(memory.said) if len(memory.said) <= _QUOTATION else found.words
    form = "quoted_other" if memory.by else "quoted"
    return sentence(speech.texts[form].format(name=memory.by, when=memory.when, words=words))


def sentence(text: str) -> str:
    """Returns `text` beginning with a capital letter."""
    return text[:1].upper() + text[1:]
