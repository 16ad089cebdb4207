"""A provider without a language model: a memory one can talk to.

Invariants: it never makes anything up: each sentence is fixed text, a fact that was told, or a quotation, with its
day. It never offers a question as an answer. It needs no network and costs nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from babel.dates import format_date

from agents.budget import READ_OFFLINE
from agents.llm import Completion, Days, OnText, Remembered, Reminded, Request
from agents.offline.question import (
    AskedQuestion,
    Tokens,
    asked,
    asks_plans,
    asks_what_was_said,
    content,
    held,
    is_question,
    known_by,
    lacking,
    social,
)
from agents.offline.speech import Asks, OneForm, Speech, Split, plain, speech

#: The beginning of the mask that replaced a secret before anything was kept.
_MASKED: Final = "[secret:"
#: The most reminders that are told to a person who asks about their plans.
_COMING: Final = 5


class OfflineProvider:
    """Implements `agents.llm.Provider` over the values in a request; its messages are not read for meaning."""

    name = "offline"

    def __init__(self, tokens: Tokens, simplified: OneForm, sentences: Split) -> None:
        """Takes functions that split text into words, simplify Chinese characters and split text into sentences."""

        def simple_tokens(text: str) -> Sequence[str]:
            return tokens(simplified(text))

        self._tokens, self._simplified, self._sentences = simple_tokens, simplified, sentences

    def asks(self, text: str, language: str) -> bool:
        """Returns whether a message asks anything, so that its answer may need more than the facts found for it."""
        spoken = speech(language, self._simplified, self._sentences)
        said = _read(text)
        return asks_plans(said, spoken) or any(is_question(one, spoken) for one in spoken.split(spoken.read(said)))

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        spoken = speech(request.language, self._simplified, self._sentences)
        request = replace(request, said=_read(request.said))
        # What is remembered may be long and much.
        text, used = await asyncio.to_thread(_reply, request, spoken, self._tokens)
        if on_text is not None:
            await on_text(text)
        grounds = tuple(place for place, one in enumerate(request.remembered) if one in used)
        return Completion(text=text, model="offline", provider=self.name, grounds=grounds)

    async def aclose(self) -> None:
        return None


def _read(text: str) -> str:
    return text if len(text) <= READ_OFFLINE else f"{text[: READ_OFFLINE // 2]}\n{text[-READ_OFFLINE // 2 :]}"


def _reply(request: Request, spoken: Speech, tokens: Tokens) -> Told:
    texts = spoken.texts
    lines = []
    if request.noted:
        lines.append(texts["noted"].format(list=texts["and"].join(request.noted)))
    if spoken.grief.search(spoken.read(request.said)) and not is_question(request.said, spoken):
        lines.insert(0, texts["sorry"])
    if request.ended:
        lines.append(texts["over"].format(list=texts["and"].join(request.ended)))
    if request.doubted:
        lines.append(texts["doubted"].format(list=texts["and"].join(request.doubted)))
    if request.unplaced:
        lines.append(texts["which"])
    attached = texts["attached"].format(list=texts["and"].join(request.attached)) if request.attached else ""
    used: tuple[Remembered, ...] = ()
    if request.days is not None and asks_plans(request.said, spoken):
        plans, used = planned(request, request.days, spoken)
        lines.append(plans)
    elif request.said.strip():
        told, used = _answered(request, spoken, tokens, noted=bool(lines))
        lines += told
    elif not attached:
        lines.append(texts["wordless"])
    who = texts["who"].format(name=request.agent)
    introduced = any(who in line for line in lines)
    # Whoever is remembered knows it.
    known = bool(request.remembered) or any(message.role == "assistant" for message in request.messages)
    if not introduced and not known:
        lines.append(who)
    return Told("\n".join([*lines, attached] if attached else lines), used)


def _answered(
    request: Request, spoken: Speech, tokens: Tokens, *, noted: bool
) -> tuple[list[str], tuple[Remembered, ...]]:
    texts = spoken.texts
    kinds = () if noted else social(request.said, spoken)
    if kinds:
        return [" ".join(_small_talk(kind, request, spoken) for kind in kinds)], ()
    question = asked(request.said, spoken, tokens)
    if question is None:
        return [] if noted else [_kept(request, texts)], ()
    if (recounted := talked(request, spoken)) is not None:
        return [recounted.text] if recounted.text else _unknown(question, request, texts), recounted.grounds
    return _found(question, request, spoken, tokens, noted=noted)


def _found(
    question: AskedQuestion, request: Request, spoken: Speech, tokens: Tokens, *, noted: bool
) -> tuple[list[str], tuple[Remembered, ...]]:
    """Returns the lines that answer a question from memory or the reminders, and the memories they rest on."""
    found = answer(question, request.remembered, spoken, tokens)
    if not found.text and noted and question.asks is None and not question.about:
        return [], ()
    coming = [one.said for one in request.reminders[:_COMING]] if question.asks and "plan" in question.asks.keys else []
    if found.text or coming:
        return [*filter(None, [found.text]), *coming], found.grounds
    if told := reminded(question, request.reminders, spoken, tokens):
        return [told], ()
    near = nearest(question, request.remembered, spoken, tokens) if not question.about else NOTHING
    return [near.text] if near.text else _unknown(question, request, spoken.texts), near.grounds


def _kept(request: Request, texts: Mapping[str, str]) -> str:
    if _MASKED in request.said:
        return texts["masked"]
    if request.learning != "on":
        return texts[f"kept_{request.learning}"]
    return texts["kept_again" if _said_last(request, texts["kept"], texts["kept_again"]) else "kept"]


def _unknown(question: AskedQuestion, request: Request, texts: Mapping[str, str]) -> list[str]:
    if question.about:
        return [texts["unknown_about"].format(name=question.about)]
    if _said_last(request, texts["unknown"], texts["unknown_again"]):
        return [texts["unknown_again"]]
    return [texts["unknown"], *_hint(request, texts["unknown_hint"])]


def _hint(request: Request, hint: str) -> list[str]:
    """Returns how to add a model, unless the conversation shows it already."""
    return [] if any(hint in message.content for message in request.messages) else [hint]


def _said_last(request: Request, *texts: str) -> bool:
    last = next((message.content for message in reversed(request.messages) if message.role == "assistant"), "")
    return last.startswith(tuple(texts))


def _small_talk(kind: str, request: Request, spoken: Speech) -> str:
    texts = spoken.texts
    called = next((one.value for one in request.remembered if one.key in ("called", "name") and not one.superseded), "")
    if kind == "greeting" and called and len(called) <= 40:
        return texts["greeting_name"].format(name=called)
    if kind in ("clock", "calendar") and request.moment is not None:
        moment = request.moment
        date = format_date(moment, "full", locale="en_GB" if spoken.code == "en" else spoken.code)
        return sentence(texts[kind].format(time=f"{moment:%H:%M}", zone=str(moment.tzinfo), date=date))
    return texts[kind].format(name=request.agent)


#: The share of a question's words that an answer must hold. Chosen on dialogues written for that
#: (`python -m bench.offline`): with half of them, a sentence that is near but different passes for an answer.
_ENOUGH: Final = 0.6
#: The part of a full share that is due to words which an answer need not hold.
_LIGHT: Final = 0.2
#: The least nearness in meaning of an answer told with doubt. With it, .74 of 85 answerable questions in six languages
#: got their answer and .07 something else; .34 of 85 unanswerable ones got something, half of it as close as a
#: mother-in-law's name to a father-in-law's (multilingual E5-small; docs/design/benchmarks.md).
_NEAR: Final = 0.03
#: The share of a question's words above which an answer is told with doubt, whatever its nearness.
_SOME: Final = 1 / 3
#: The weight of a word of one character beside longer ones.
_ONE_CHARACTER: Final = 0.5
#: Facts told at most, in answer to one question and to "what do you know about me".
_MOST: Final = 6
_MOST_LISTED: Final = 12
#: Longest quotation, in characters; of a longer message only the sentence that answers is quoted.
#: Keys of what is a person's own: a brother's allergy is no answer to "what am I allergic to?".
_OWN: Final = {
    "allergy", "diet", "condition", "home", "hometown", "occupation", "employer", "age", "birthday", "likes",
    "dislikes", "hobby", "studies", "nationality", "speaks",
}  # fmt: skip
#: Keys whose name and cues say only that something is liked or done.
_TASTES: Final = frozenset({"likes", "dislikes", "hobby", "interest"})
_QUOTATION: Final = 240
#: A date that was added to a statement.
_ADDED: Final = re.compile(r"\(\d{4}-\d\d(?:-\d\d)?(?:/\d{4}-\d\d-\d\d)?\)")
_CLAUSE: Final = re.compile(r"(?<=[,，、;；])")
#: The milliseconds after a message during which the next may refer to it or revoke it.
_SOON: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Something that may answer: how it is said, and how much of the question it holds.

    `before` is the preceding statement, if the words refer to it: "he plays bass" follows "my best mate is Tyrell".
    `own` are the tokens of the words, and `held` all tokens by which they may be asked for.
    """

    memory: Remembered
    words: str
    before: str = ""
    own: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    share: float = 0.0


class Told(NamedTuple):
    """The words of an answer, and the memories they rest on; both empty if nothing answers."""

    text: str
    grounds: tuple[Remembered, ...] = ()


NOTHING: Final = Told("")


def answer(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    facts = [one for one in remembered if not one.verbatim]
    if question.everything:
        return _all(facts, speech)
    if question.about:
        told = _about(question, remembered, speech, tokens)
        if told.text:
            return told
    if question.asks is not None:
        told = (_earlier if question.before else _by_key)(question, facts, speech, tokens)
        if told.text:
            return told
    return _by_words(question, remembered, speech, tokens)


def reminded(question: AskedQuestion, reminders: Sequence[Reminded], speech: Speech, tokens: Tokens) -> str:
    if not question.words:
        return ""
    said = []
    for one in reminders:
        words = held(one.text, speech, tokens)
        share = 1 - len(lacking(question.words, words, inflected=speech.inflected)) / len(question.words)
        if question.musts <= words and share >= _ENOUGH:
            said.append(one.said)
    return "\n".join(said[:_MOST])


def planned(request: Request, days: Days, speech: Speech) -> Told:
    here = [one for one in request.remembered if one.days is not None and _overlap(one.days, days)]
    plans = [one for one in here if not (one.verbatim or one.superseded) and not one.about]
    values = [one.value for one in plans]
    quotes = [
        one for one in _quotes(here, speech) if not (one.memory.by or any(_holds(one.words, value) for value in values))
    ]
    lines = [sentence(_told_plainly(one, speech)) for one in plans[:_MOST]]
    lines += [_quoted(one, speech) for one in quotes[: _MOST - len(lines)]]
    lines += [one.said for one in request.reminders if _overlap((one.day, one.day), days)][:_MOST]
    if not lines:
        return Told(speech.texts["nothing_planned"].format(days=request.days_said))
    return Told("\n".join(lines), (*plans[:_MOST], *(one.memory for one in quotes)))


def _overlap(one: Days, other: Days) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _holds(words: str, value: str) -> bool:
    return all(word in words.casefold() for word in _ADDED.sub(" ", value).casefold().split())


def nearest(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    """Returns the nearest statement to a question that nothing answers, to be told with doubt.

    Only a question about the asker's own life, or one that names a person, gets it. The statement shares more than a
    third of the words with the question, or is nearer to it in meaning than ordinary sentences are.
    """
    if not question.words or not (question.musts or speech.personal.search(speech.read(question.text))):
        return NOTHING
    # If a form asks for facts by their key, a fact under another key is not near.
    live = [one for one in remembered if not (one.verbatim or one.superseded or question.asks)]
    found = [_Found(memory=one, words=one.said, held=known_by(one, speech, tokens)) for one in live]
    quotes = [replace(one, held=held(one.words, speech, tokens)) for one in _answering(question, remembered, speech)]
    found += quotes
    near = []
    for one in found:
        if question.musts and not question.musts & one.held:
            continue
        # A favourite beer is near to anything that is best of its kind.
        if question.asks is not None and question.asks.object and not question.rest & one.held:
            continue
        share = 1 - len(lacking(question.words, one.held, inflected=speech.inflected)) / len(question.words)
        # A long message holds some word of every question.
        if one.memory.nearness > _NEAR or (share > _SOME and len(one.words) <= _QUOTATION):
            near.append(replace(one, share=one.memory.nearness + _NEAR * share))
    if not near:
        return NOTHING
    best = max(near, key=lambda one: (one.share, one.memory.at))
    if not best.memory.verbatim:
        return Told(speech.texts["near"].format(told=_said([best.memory], speech)), (best.memory,))
    best = _latest(best, quotes, speech)
    if len(best.words) > _QUOTATION:
        best = replace(best, words=_densest(best.words, question.words, speech, tokens))
    told = _with_contradiction(best, quotes, speech)
    return told._replace(text=speech.texts["near"].format(told=told.text))


def _all(facts: Sequence[Remembered], speech: Speech) -> Told:
    live = [one for one in facts if not one.superseded]
    if not live:
        return Told(speech.texts["empty"])
    lines = [sentence(_told_plainly(one, speech)) for one in live[:_MOST_LISTED]]
    text = "\n".join([*lines, speech.texts["more"]] if len(live) > _MOST_LISTED else lines)
    return Told(text, tuple(live[:_MOST_LISTED]))


def talked(request: Request, speech: Speech) -> Told | None:
    if not asks_what_was_said(request.said, speech):
        return None
    until = request.asked_until
    then = [one for one in request.remembered if until is None or request.asked_since <= one.at < until]
    quotes = [quote for quote in _quotes(then, speech) if not social(quote.memory.said, speech)][-_MOST:]
    return Told("\n".join(_quoted(one, speech) for one in quotes), tuple(one.memory for one in quotes))


def _about(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    wanted = content(question.about, speech, tokens) or frozenset(tokens(question.about))
    live = [one for one in remembered if not (one.verbatim or one.superseded)]
    facts = [one for one in live if wanted <= known_by(one, speech, tokens)]
    lines = [_said(facts[:_MOST], speech)] if facts else []
    known = " ".join(one.said for one in facts)
    quotes = [
        one
        for one in _quotes(remembered, speech)
        if wanted <= held(one.words, speech, tokens)
        and not (facts and set(content(one.words, speech, tokens)) <= set(tokens(known)))
    ]
    quotes = sorted(quotes, key=lambda one: one.memory.at)[:_MOST]
    lines += [_quoted(one, speech) for one in quotes]
    return Told("\n".join(lines), (*facts[:_MOST], *(one.memory for one in quotes)))


def _by_key(question: AskedQuestion, facts: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    asks = question.asks
    assert asks is not None
    meant = _meant(facts, asks)
    if asks.object and question.rest:
        meant = [
            one
            for one in meant
            if question.rest & (_objects(one, speech, tokens) | set(tokens(one.said if one.relation else "")))
        ]
    elif question.rest - {token for one in meant for token in known_by(one, speech, tokens)} and question.musts:
        return NOTHING
    live = [one for one in meant if not one.superseded]
    if asks.object and question.yes_no and live:
        best = max(live, key=lambda one: one.at)
        form = "unsure" if best.unsure else "no" if _has_key(best, asks.no) else "yes"
        return Told(speech.texts[form].format(said=best.said, when=best.when), (best,))
    wanted = [one for one in live if _has_key(one, asks.keys)]
    if wanted:
        wanted = sorted(wanted, key=lambda one: one.at)[:_MOST]
        return Told(_said(wanted, speech), tuple(wanted))
    ended = [one for one in meant if one.superseded and not one.unsure and _has_key(one, asks.keys)]
    return _over(sorted(ended, key=lambda one: one.at)[-1:], speech, "ended")


def _objects(fact: Remembered, speech: Speech, tokens: Tokens) -> frozenset[str]:
    # "Do I like tea?" is no question about everything that is liked.
    return held(fact.value, speech, tokens) if fact.key in _TASTES else known_by(fact, speech, tokens)


def _earlier(question: AskedQuestion, facts: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    """Tells the facts that held before, the latest first; none if the question names anything else."""
    asks = question.asks
    assert asks is not None
    over = [one for one in _meant(facts, asks) if one.superseded and not one.unsure and _has_key(one, asks.keys)]
    known = {token for one in over for token in known_by(one, speech, tokens)}
    if question.musts & (question.rest - known):
        return NOTHING
    return _over(sorted(over, key=lambda one: one.at, reverse=True)[:_MOST], speech, "earlier")


def _meant(facts: Sequence[Remembered], asks: Asks) -> list[Remembered]:
    return [
        one
        for one in facts
        if not one.about and _has_key(one, asks.keys | asks.no) and (not asks.value or asks.value.search(one.value))
    ]


def _over(facts: Sequence[Remembered], speech: Speech, form: str) -> Told:
    """Tells facts that hold no more, each in the past tense and with its end."""
    lines = [speech.texts[form].format(said=_was(one.said, speech), when=one.until) for one in facts]
    return Told("\n".join(lines), tuple(facts))


def _was(said: str, speech: Speech) -> str:
    began = next((now for now in speech.was if said.startswith(f"{now} ")), "")
    return speech.was[began] + said.removeprefix(began) if began else said


def _has_key(memory: Remembered, keys: Iterable[str]) -> bool:
    return any(
        memory.key == key
        or (key == "relation" and memory.relation)
        or (key == "favourite" and memory.key.startswith("favourite-"))
        for key in keys
    )


def _by_words(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech, tokens: Tokens) -> Told:
    if not question.words:
        return NOTHING
    needs = [*_needed(question, speech), *([speech.past] if question.before else ())]
    told = [
        _Found(memory=one, words=one.said, held=known_by(one, speech, tokens)) for one in remembered if not one.verbatim
    ]
    facts = [one for one in told if not one.memory.superseded]
    quotes = [_known(one, facts, speech, tokens) for one in _answering(question, remembered, speech)]

    def hits(among: Iterable[_Found]) -> list[_Found]:
        shares = [replace(one, share=_share(question, one, speech, typed=bool(needs))) for one in among]
        holds = (one for one in shares if all(hold.search(speech.read(one.words)) for hold in needs))
        return [one for one in holds if one.share >= _ENOUGH]

    found = hits((*facts, *quotes))
    if not found:
        past = (one for one in told if one.memory.superseded and not one.memory.unsure)
        over = max(hits(past), key=lambda one: one.memory.at, default=None)
        return _over([over.memory], speech, "ended") if over is not None else NOTHING
    # If a question asks for a name only, the fact that says who it is comes first.
    names = [one for one in found if one.memory.relation and question.words <= frozenset(tokens(one.memory.value))]
    best = max(found, key=lambda one: (one.share, one in names, one.memory.at, one.memory.verbatim))
    if best.memory.verbatim:
        best = best if question.before else _latest(best, quotes, speech, needs)
        if len(best.words) > _QUOTATION:
            best = replace(best, words=_densest(best.words, question.words, speech, tokens))
        return _with_contradiction(best, quotes, speech)
    return Told(_said([best.memory], speech), (best.memory,))


def _known(quote: _Found, facts: Sequence[_Found], speech: Speech, tokens: Tokens) -> _Found:
    """Returns a quotation with words by which its facts are asked for: "I'm a locksmith" answers about a job."""
    own = held(quote.words, speech, tokens)
    told = held(f"{quote.before} {quote.words}", speech, tokens)
    for fact in facts:
        value = frozenset(tokens(fact.memory.value))
        if value and value <= (told if fact.memory.relation else own):
            told |= fact.held
    return replace(quote, own=own, held=told)


def _share(question: AskedQuestion, found: _Found, speech: Speech, *, typed: bool) -> float:
    """Returns the share of a question's words that something holds; 0 if it lacks what it must hold."""
    if not question.musts <= found.held:
        return 0.0
    if found.before and not question.words & found.own:
        return 0.0
    spare = question.musts | question.light
    light = question.light - question.musts
    lacked = lacking(light, found.held, inflected=speech.inflected)
    rest = [piece - spare for piece in question.pieces if piece - spare]
    if not rest:
        if light and 2 * len(lacked) <= len(light):
            return 1.0 - len(lacked) / len(light) * _LIGHT
        return _ENOUGH if typed and question.musts and not question.yes_no else 0.0
    # A single character of an unspaced script says less than a word.
    weights = [_ONE_CHARACTER if all(len(token) == 1 for token in piece) else 1.0 for piece in rest]
    holds = [1 - len(lacking(piece, found.held, inflected=speech.inflected)) / len(piece) for piece in rest]
    share = sum(weight * hold for weight, hold in zip(weights, holds, strict=True)) / sum(weights)
    # If two hold as much, the one that also holds the light words is nearer.
    return share - _LIGHT / 10 * len(lacked) / len(light) if light else share


def _latest(found: _Found, quotes: Sequence[_Found], speech: Speech, needs: Sequence[re.Pattern[str]] = ()) -> _Found:
    """Returns the same person's next message, if it says that something changed; else `found`."""
    following = _next(found, quotes)
    if following is None:
        return found
    said = speech.read(following.memory.said)
    changed = speech.changed.search(said) is not None and all(hold.search(said) for hold in needs)
    return following if changed else found


def _with_contradiction(found: _Found, quotes: Sequence[_Found], speech: Speech) -> Told:
    """Quotes something with the same person's next message, if that says that it is not so."""
    following = _next(found, quotes)
    if following is None or speech.contradicts.match(speech.read(following.memory.said)) is None:
        return Told(_quoted(found, speech), (found.memory,))
    return Told(f"{_quoted(found, speech)}\n{_quoted(following, speech)}", (found.memory, following.memory))


def _next(found: _Found, quotes: Sequence[_Found]) -> _Found | None:
    after = [one for one in quotes if 0 < one.memory.at - found.memory.at <= _SOON and one.memory.by == found.memory.by]
    return min(after, key=lambda one: one.memory.at, default=None)


def _needed(question: AskedQuestion, speech: Speech) -> list[re.Pattern[str]]:
    asking = [
        (match.start(), -len(match.group()), one.hold)
        for one in speech.needs
        if (match := one.ask.search(question.text))
    ]
    return [min(asking, key=lambda one: one[:2])[2]] if asking else []


def _quotes(remembered: Sequence[Remembered], speech: Speech) -> list[_Found]:
    found: list[_Found] = []
    last: Remembered | None = None
    for one in sorted(remembered, key=lambda memory: memory.at):
        if one.verbatim and not one.superseded:
            stated = [words for words in speech.split(one.said) if not _asks(words, speech)]
            whole = " ".join(stated)
            texts = [whole] if stated and len(whole) <= _QUOTATION else stated
            refers = speech.refers.search(whole) and last is not None
            before = last.said if refers and last is not None and one.at - last.at <= _SOON else ""
            found += [_Found(memory=one, words=words, before=before) for words in texts]
            # Two sentences with "she" mean the same person.
            last = replace(one, said=f"{before} {one.said}") if before else one
    return found


def _answering(question: AskedQuestion, remembered: Sequence[Remembered], speech: Speech) -> list[_Found]:
    """Returns the quotations that may answer: none about somebody else, if it is the asker who is asked about."""
    own = speech.own.search(question.text) or (question.asks is not None and question.asks.keys & _OWN)
    return [one for one in _quotes(remembered, speech) if not (own and speech.other.search(speech.read(one.words)))]


def _asks(words: str, speech: Speech) -> bool:
    return is_question(words, speech) or is_question(words, speech.in_script_of(words))


def _said(facts: Sequence[Remembered], speech: Speech) -> str:
    days: dict[tuple[str, str], list[str]] = {}
    for one in facts:
        days.setdefault((one.when, "unsure" if one.unsure else "said"), []).append(one.said)
    return "\n".join(
        sentence(speech.texts[form].format(said=speech.texts["and"].join(said), when=when))
        for (when, form), said in days.items()
    )


def _told_plainly(fact: Remembered, speech: Speech) -> str:
    return _said([fact], speech) if fact.unsure else fact.said


def _densest(text: str, words: frozenset[str], speech: Speech, tokens: Tokens) -> str:
    clauses = [one for one in _CLAUSE.split(text) if one]
    best, most = "", -1
    for first in range(len(clauses)):
        cut = ""
        for clause in clauses[first:]:
            if len(cut) + len(clause) > _QUOTATION and cut:
                break
            cut += clause
        shared = len(words & held(cut, speech, tokens))
        if shared > most:
            best, most = cut, shared
    return f"… {best.strip(' ,，、;；')[:_QUOTATION]} …"


def _quoted(found: _Found, speech: Speech) -> str:
    memory = found.memory
    words = plain(memory.said) if len(memory.said) <= _QUOTATION else found.words
    form = "quoted_other" if memory.by else "quoted"
    return sentence(speech.texts[form].format(name=memory.by, when=memory.when, words=words))


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
