"""Turns messages into drafts of memories: by patterns, or from the items of a model's answer.

Invariants: only messages that were recorded with `learn` are read, each with its own date. Every result names the
messages it comes from, and is checked by the bar below before anybody is told that it was noted. A model's claim is
weighed against the messages it names (`memory.learn.grounding`): a claim that they don't make is refused, and one that
they may not mean is kept as unsure and replaces nothing; a claim that another reading may decide is found with its
`pair`. What the bot obeys (styles, instructions) is kept only if the person asks for it in their own words
(`memory.learn.wishes`). An assistant's words are never the source of a statement about a person. A model may name as
replaced only rows that it was shown. In a group, it may state about the speaker only things in the speaker's own words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any, get_args

from memory import keys
from memory.learn.answer import Answer, EntityItem, FactItem, Item, StyleItem
from memory.learn.ask import INSTRUCTIONS, Stretch, names_of
from memory.learn.entailment import Pair, pair_of, settled
from memory.learn.grounding import NAMES, Claim, SaidText, Verdict, Weighed, is_quoted, judge, telling
from memory.learn.offline import patterns
from memory.learn.own_words import own_words
from memory.learn.summary_check import is_refusal
from memory.learn.wishes import adds_nothing, asks_for, manners_of
from memory.recall.cues import cues
from memory.scope import Scope
from memory.store.entities import Named, Type
from memory.store.history import Message
from memory.store.memories import SURE, Draft, Memory
from memory.text.guard import clean, injection_flags
from memory.text.secrets.redact import redact
from memory.text.times import clock
from memory.text.times.spans import anchor
from memory.text.words import tokens

#: Values with nothing to keep: without one letter or digit in any script, or just a number, a path or a time.
_JUNK = re.compile(r"[\W\d_]*|[\d\s.,:%/-]+|(?:[~.]?/|[A-Za-z]:\\)\S+|\[secret: [^\]]*\]")
_NUMERIC_KEYS = frozenset({"age", "birthday"})
#: The only categories that are kept from an assistant's words (DESIGN 5.3).
_FROM_ASSISTANT = frozenset({"artifact", "solution", "decision"})
#: Keys that the bot obeys: they are read in the person's own words alone.
_OBEYED = frozenset({"called", "boundary"})
#: The most confidence of a claim that its message may not mean.
_UNSURE = 0.4
#: The most findings that a model may take from one message, so that fifty invented ones do not push the others out.
_MOST_OF_MESSAGE = 8
#: The most styles of one answer that are weighed, and the most facts that are instructions.
_MOST_STYLES = 16
_SUBJECT_LIMIT = 80
#: The characters of a text that are read for a value: twice as many as are kept, so that no secret is cut there.
_LONGEST_WORDS = 2 * keys.VALUE_LIMIT
_TOPIC_LIMIT = 80
_SHORT_ID = re.compile(r"m_[a-z0-9]{1,16}")
_ENTITY_TYPES: Mapping[str, Type] = {name: name for name in get_args(Type)}
_SELF = frozenset(
    {"", "self", "user", "the user", "me", "myself", "i", "speaker", "author", "自己", "本人", "我", "用户"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    draft: Draft
    message_id: int
    replaces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A memory to be kept. `pair` is the claim that another reading may decide, with its words."""

    draft: Draft
    scope: Scope
    source_ids: tuple[int, ...]
    replaces: tuple[int, ...] = ()
    entities: tuple[Named, ...] = ()
    pair: Pair | None = None

    @property
    def is_sure(self) -> bool:
        return self.draft.confidence >= SURE


def propose(text: str, *, scope: Scope, said_at: int, timezone: str) -> list[Draft]:
    today = clock.local_date(said_at, timezone)
    drafts = []
    for candidate in patterns.extract(text, today=today):
        draft = Draft(
            kind="fact",
            owner_id=scope.writes_to,
            author_id=scope.speaker_id,
            # Patterns find only what people say of themselves, so speaker and subject are the same.
            subject_id=scope.speaker_id,
            subject="",
            category=candidate.category,
            key=keys.normalise_key(candidate.key),
            value=anchor(candidate.value, today, ahead=candidate.key == "plan")[: keys.VALUE_LIMIT],
            topic="",
            importance=candidate.importance,
            confidence=candidate.confidence,
            origin="extracted",
            learned_at=said_at,
            local_date=today.isoformat(),
        )
        if worth_keeping(draft):
            drafts.append(draft)
    return drafts


def read(messages: Sequence[Message], *, scope: Scope, timezone: str) -> list[Proposal]:
    return [
        Proposal(draft=draft, message_id=message.id)
        for message in messages
        if message.role == "user" and message.learn
        for draft in propose(message.text, scope=scope, said_at=message.said_at, timezone=timezone)
    ]


def noted(text: str, message: Message, *, scope: Scope, timezone: str) -> list[Proposal]:
    today = clock.local_date(message.said_at, timezone)
    draft = Draft(
        kind="fact",
        owner_id=scope.writes_to,
        author_id=scope.speaker_id,
        subject_id=scope.speaker_id,
        subject="",
        category=keys.category_of("note") or "decision",
        topic="",
        key="note",
        value=anchor(safe(text), today)[: keys.VALUE_LIMIT],
        importance=5,
        confidence=0.7,
        origin="extracted",
        learned_at=message.said_at,
        local_date=today.isoformat(),
    )
    return [Proposal(draft=draft, message_id=message.id)] if worth_keeping(draft) else []


def findings(answer: Answer, stretch: Stretch, entailed: Mapping[Pair, bool] = MappingProxyType({})) -> list[Finding]:
    """Returns what an answer claims and its messages say; `entailed` are the verdicts of another reading."""
    instructions = [item for item in answer.facts if kind_of(item)[1] == "instruction"]
    skipped = {id(item) for item in instructions[_MOST_STYLES:]}
    facts = (item for item in answer.facts if id(item) not in skipped)
    found: list[Finding | None] = [_fact(item, answer.entities, stretch, entailed) for item in facts]
    found += [_style(item, stretch) for item in answer.styles[:_MOST_STYLES]]
    found += [_event(item, answer.entities, stretch) for item in answer.events]
    return _few_of_each([finding for finding in found if finding is not None and worth_keeping(finding.draft)])


def _few_of_each(found: Sequence[Finding]) -> list[Finding]:
    of_message = Counter[int]()
    kept: set[int] = set()
    for place in sorted(range(len(found)), key=lambda n: not found[n].is_sure):
        last = found[place].source_ids[-1]
        of_message[last] += 1
        if of_message[last] <= _MOST_OF_MESSAGE:
            kept.add(place)
    return [finding for place, finding in enumerate(found) if place in kept]


def worth_keeping(draft: Draft) -> bool:
    if not draft.key or not draft.value.strip():
        return False
    return draft.key in _NUMERIC_KEYS or _JUNK.fullmatch(draft.value) is None


def safe(text: str) -> str:
    return redact(clean(text[:_LONGEST_WORDS])).strip()


def kind_of(item: FactItem) -> tuple[str, str]:
    key = keys.vocabulary_key(safe(item.key))
    category = keys.category_of(key) or keys.normalise_key(item.category)
    return key, category if category in keys.CATEGORIES else "conversation"


def subject_of(about: str, *speaker: str) -> str:
    """Returns the subject of a fact as it is kept: "" for the speaker, who has these names."""
    name = " ".join(safe(about).split())[:_SUBJECT_LIMIT]
    return "" if name.casefold() in {*map(str.casefold, speaker)} | _SELF else name


def value_of(text: str, today: date) -> str:
    return anchor(safe(text), today)[: keys.VALUE_LIMIT].strip()


def topic_of(text: str) -> str:
    return keys.normalise_key(safe(text))[:_TOPIC_LIMIT].rstrip("-")


def replaced_by(item: FactItem, known: Iterable[Memory]) -> tuple[int, ...]:
    shown = {memory.short_id: memory.id for memory in known}
    return tuple(shown[named] for named in dict.fromkeys(_SHORT_ID.findall(item.replaces)) if named in shown)


def named_in(text: str, entities: Iterable[EntityItem]) -> tuple[Named, ...]:
    lower = text.casefold()
    found: dict[str, Named] = {}
    for entity in entities:
        name = " ".join(safe(entity.name).split())
        kind = entity.type.casefold()
        if name and name.casefold() in lower:
            found.setdefault(name.casefold(), Named(type=_ENTITY_TYPES.get(kind, "other"), name=name))
    return tuple(found.values())


def closest(value: str, texts: Sequence[str]) -> int | None:
    wanted = set(tokens(value))
    shared = [len(wanted & set(tokens(text))) for text in texts]
    most = max(shared, default=0)
    return shared.index(most) if most else None


def echoes(value: str, *, instructions: str, said: Iterable[str], known: Iterable[Memory]) -> bool:
    """Returns whether a value only repeats the prompt: its instructions, or a known fact that no message speaks of.

    Words of the instructions that a message says, all of them, are no repetition. `instructions` are in the form that
    `keys.normalise_value` returns.
    """
    plain, words = keys.normalise_value(value), {token for text in said for token in tokens(text)}
    if len(plain) > 12 and plain in instructions:
        return not words.issuperset(tokens(value))
    return words.isdisjoint(tokens(value)) and any(keys.normalise_value(memory.value) == plain for memory in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """The origin of an item: its messages, and the message that dates it, of the person who said it."""

    messages: tuple[Message, ...]
    dated: Message
    scope: Scope
    timezone: str
    #: True if a person said it, or agreed to it in their own words.
    by_person: bool

    @property
    def today(self) -> date:
        return clock.local_date(self.dated.said_at, self.timezone)


def _fact(
    item: FactItem, entities: Iterable[EntityItem], stretch: Stretch, entailed: Mapping[Pair, bool]
) -> Finding | None:
    key, category = kind_of(item)
    by_assistant = category in _FROM_ASSISTANT
    origin = _origin(item, stretch, by_assistant=by_assistant)
    if origin is None:
        return None
    name = names_of((*stretch.before, *stretch.messages)).get(origin.dated.author_id or 0, "")
    about = subject_of(item.about, origin.dated.author_name, name) if origin.by_person else ""
    value = value_of(item.value, origin.today)
    said = [message.text for message in origin.messages]
    if echoes(value, instructions=_PLAIN_INSTRUCTIONS, said=said, known=stretch.known):
        return None
    over = replaced_by(item, stretch.known)
    claim = Claim(key=key, value=item.value, quote=item.quote, of_other=bool(about), replaces=bool(over))
    pair = None
    if category == "instruction":
        verdict: Verdict = "sure" if _asking(item.value, item.quote, origin, stretch) else "refused"
    if category != "instruction" or (verdict == "refused" and about and not manners_of(item.value)):
        # A rule of a group is no instruction to the bot, but a fact.
        category = "decision" if category == "instruction" else category
        said_text = _said(claim, origin, stretch, by_assistant=by_assistant)
        verdict, is_open = _weighed(claim, said_text, origin)
        if is_open and origin.by_person:
            pair = pair_of(claim, said_text, by=name, about=about)
            verdict = settled(verdict, entailed.get(pair))
    # What the assistant wrote is no guess about anybody: it is as it wrote it, or nothing.
    if verdict == "refused" or (verdict == "unsure" and not origin.by_person):
        return None
    of_self = origin.by_person and not about
    is_own = of_self and _is_own_word(item.value, origin)
    draft = _draft(
        item,
        origin,
        kind="fact",
        subject_id=origin.scope.speaker_id if is_own else None,
        subject=about if is_own or not of_self else origin.dated.author_name,
        category=category,
        key=key,
        confidence=_confidence(item.confidence, verdict),
    )
    return Finding(
        draft=draft,
        scope=origin.scope,
        source_ids=tuple(message.id for message in origin.messages),
        replaces=over if draft.confidence >= SURE else (),
        entities=named_in(f"{about} {value}", entities),
        pair=pair,
    )


def _draft(item: Item, origin: _Origin, *, at: int | None = None, **fields: Any) -> Draft:
    said_at = origin.dated.said_at if at is None else at
    return Draft(
        owner_id=origin.scope.writes_to,
        author_id=origin.scope.speaker_id if origin.by_person else None,
        topic=topic_of(item.topic),
        value=value_of(item.value, origin.today),
        importance=item.importance,
        origin="extracted",
        learned_at=said_at,
        local_date=clock.local_date(said_at, origin.timezone).isoformat(),
        **fields,
    )


def _confidence(given: float, verdict: Verdict) -> float:
    return min(given, _UNSURE) if verdict == "unsure" else given


def _said(claim: Claim, origin: _Origin, stretch: Stretch, *, by_assistant: bool) -> SaidText:
    own = [message.text for message in origin.messages if message.author_id is not None or by_assistant]
    first = next((message for message in origin.messages if message.author_id is not None), None)
    return SaidText(
        text="\n".join(map(own_words, own) if claim.key in _OBEYED else own),
        before="" if first is None else _before(first, stretch),
    )


def _weighed(claim: Claim, said: SaidText, origin: _Origin) -> Weighed:
    weighed = judge(claim, said)
    unstated = weighed.verdict == "unsure" or weighed.is_open
    if unstated and origin.by_person and _is_stated(claim, said.text, origin.today):
        weighed = Weighed("sure")
    # A text that reads like an instruction is kept for its owner to see, and ends nothing.
    flagged = weighed.verdict != "refused" and injection_flags(said.text)
    return Weighed("unsure") if flagged else weighed


def _is_stated(claim: Claim, text: str, today: date) -> bool:
    """Returns whether a whole clause states a claim so plainly that it is read without a model, too."""
    wanted, stated = telling(claim.value), patterns.extract(text, today=today)
    # "Call me Lou from now on" is read as a wish, which gives a name.
    wishes = (each.value for each in stated if each.key == "instruction" and claim.key in NAMES)
    stated += [each for wish in wishes for each in patterns.extract(wish, today=today)]
    return not claim.of_other and any(
        (each.key == claim.key or {each.key, claim.key} <= NAMES)
        and telling(each.value) <= wanted <= telling(f"{each.value} {each.key} {cues(each.key)}")
        for each in stated
    )


def _before(message: Message, stretch: Stretch) -> str:
    earlier = [line for line in (*stretch.before, *stretch.messages) if line.id < message.id]
    return earlier[-1].text if earlier and earlier[-1].author_id is None else ""


def _style(item: StyleItem, stretch: Stretch) -> Finding | None:
    origin = _origin(item, stretch, by_assistant=False)
    asking = [] if origin is None else _asking(item.value, item.quote, origin, stretch)
    if origin is None or not asking:
        return None
    is_own = _is_own_word(item.value, origin)
    draft = _draft(
        item,
        origin,
        at=asking[-1].said_at,
        kind="style",
        subject_id=origin.scope.speaker_id if is_own else None,
        subject="" if is_own else origin.dated.author_name,
        # A style is between one agent and the person, and no business of other agents.
        agent_id=origin.scope.agent_id,
        category="instruction",
        key=_style_key(item),
        confidence=0.7,
    )
    # Only a message that asks for it tells a wish again.
    return Finding(draft=draft, scope=origin.scope, source_ids=tuple(message.id for message in asking))


def _style_key(item: StyleItem) -> str:
    """Returns the key of a style, which stands in the prompt, too: a model's own if it adds nothing to the wish."""
    key = keys.normalise_key(safe(item.key))
    return key if key and adds_nothing(key.replace("-", " "), item.value) else "style"


def _asking(value: str, quote: str, origin: _Origin, stretch: Stretch) -> list[Message]:
    """Returns those of an item's messages that ask for a manner of answers, in their author's own words.

    A quote that none of them holds shows that the model has made it up.
    """
    own = [message for message in origin.messages if message.author_id is not None]
    if echoes(value, instructions=_PLAIN_INSTRUCTIONS, said=[message.text for message in own], known=()):
        return []
    if quote and not any(is_quoted(quote, message.text) for message in own):
        return []
    return [each for each in own if asks_for(value, SaidText(text=each.text, before=_before(each, stretch)))]


def _event(item: Item, entities: Iterable[EntityItem], stretch: Stretch) -> Finding | None:
    origin = _origin(item, stretch, by_assistant=False)
    if origin is None:
        return None
    value = value_of(item.value, origin.today)
    claim = Claim(key="event", value=item.value)
    verdict = _weighed(claim, _said(claim, origin, stretch, by_assistant=False), origin).verdict
    if verdict == "refused" or is_refusal(item.value, [message.text for message in origin.messages]):
        return None
    draft = _draft(
        item,
        origin,
        kind="event",
        # In a group an event tells of everybody who took part, so nobody finds it in private.
        subject_id=origin.scope.speaker_id if origin.scope.private else None,
        category="happening",
        key="event",
        confidence=_confidence(0.8, verdict),
    )
    return Finding(
        draft=draft,
        scope=origin.scope,
        source_ids=tuple(message.id for message in origin.messages),
        entities=named_in(value, entities),
    )


def _origin(item: Item, stretch: Stretch, *, by_assistant: bool) -> _Origin | None:
    """Returns the messages an item comes from: those it names, else the one it shares most words with.

    Returns None if a person may not be quoted from them, or if they are an assistant's and `by_assistant` is not set.
    """
    cited = [stretch.messages[n - 1] for n in sorted(set(item.messages)) if 1 <= n <= len(stretch.messages)]
    if not cited:
        # Small models lose count; a claim that no message makes is refused by its words.
        cited = _closest(item.value, stretch)
    by_people = [message for message in cited if message.author_id in stretch.scopes]
    if by_people:
        # The last message dates it: an older message never closes a newer value, and this is the newest word on it.
        dated = by_people[-1]
        assert dated.author_id is not None
        # A row of one person is not learned from the words of another.
        sources = [m for m in cited if m.author_id in (None, dated.author_id)]
        scope, timezone = stretch.scopes[dated.author_id], stretch.timezones[dated.author_id]
        return _Origin(messages=tuple(sources), dated=dated, scope=scope, timezone=timezone, by_person=True)
    if not cited or not by_assistant or stretch.scope.speaker_id is None:
        return None
    timezone = stretch.timezones[stretch.scope.speaker_id]
    return _Origin(messages=tuple(cited), dated=cited[-1], scope=stretch.scope, timezone=timezone, by_person=False)


def _closest(value: str, stretch: Stretch) -> list[Message]:
    people = [message for message in stretch.messages if message.author_id in stretch.scopes]
    place = closest(value, [message.text for message in people])
    return [] if place is None else [people[place]]


def _is_own_word(value: str, origin: _Origin) -> bool:
    """Returns whether its author said all words of a value; in private nobody else could have said them.

    People's facts about themselves follow them from a group into their private chats, and a model that was talked into
    it may attribute another person's words to them.
    """
    if origin.scope.private:
        return True
    said = {token for m in origin.messages if m.author_id == origin.dated.author_id for token in tokens(m.text)}
    return said.issuperset(tokens(value))


_PLAIN_INSTRUCTIONS = keys.normalise_value(INSTRUCTIONS)
