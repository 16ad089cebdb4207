"""From messages to drafts of memories: by patterns, or from the items of a model's answer.

Invariants: only messages that were recorded with `learn` are read, each with its own date; what comes out names the
messages it comes from and is checked by the bar below before anybody is told that it was noted; what an assistant
wrote is never the source of something about a person; a model may name only such replaced rows as it was shown, and
in a group say of who spoke only what is in their own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import get_args

from memory import dates, keys
from memory.learn import patterns
from memory.learn.answer import Answer, EntityItem, FactItem, Item, StyleItem
from memory.learn.ask import INSTRUCTIONS, Stretch
from memory.learn.guard import clean
from memory.learn.redact import redact
from memory.recall.words import tokens
from memory.scope import Scope
from memory.store.entities import Named, Type
from memory.store.history import Message
from memory.store.memories import Draft, Memory

#: A value without one letter or digit in any script, or that is just a number, a path or a time: nothing to keep.
_JUNK = re.compile(r"[\W\d_]*|[\d\s.,:%/-]+|(?:[~.]?/|[A-Za-z]:\\)\S+|\[secret: [^\]]*\]")
_NUMERIC_KEYS = frozenset({"age", "birthday"})
#: Of what an assistant wrote, only this is ever kept (DESIGN 5.3).
_FROM_ASSISTANT = frozenset({"artifact", "solution", "decision"})
_SUBJECT_LIMIT = 80
_TOPIC_LIMIT = 80
_SHORT_ID = re.compile(r"m_[a-z0-9]{1,16}")
_ENTITY_TYPES: Mapping[str, Type] = {name: name for name in get_args(Type)}
_SELF = frozenset(
    {"", "self", "user", "the user", "me", "myself", "i", "speaker", "author", "自己", "本人", "我", "用户"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A draft and the message it comes from."""

    draft: Draft
    message_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a model found: a draft, all messages it comes from, the rows it replaces, and the (name, type) in it."""

    draft: Draft
    scope: Scope
    source_ids: tuple[int, ...]
    replaces: tuple[int, ...] = ()
    entities: tuple[Named, ...] = ()


def propose(text: str, *, scope: Scope, said_at: int, timezone: str) -> list[Draft]:
    """What one message of the scope's speaker says about them, by patterns."""
    today = dates.local_date(said_at, timezone)
    drafts = []
    for candidate in patterns.extract(text, today=today):
        draft = Draft(
            kind=candidate.kind,
            owner_id=scope.writes_to,
            author_id=scope.speaker_id,
            # What people say of themselves is all that patterns find; so speaker and subject are one.
            subject_id=scope.speaker_id if candidate.subject == "self" else None,
            subject="" if candidate.subject == "self" else candidate.subject,
            agent_id=scope.agent_id if candidate.kind == "style" else None,
            category=candidate.category,
            key=keys.normalise_key(candidate.key),
            value=dates.anchor(candidate.value, today)[: keys.VALUE_LIMIT],
            topic=candidate.topic,
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
    """What a stretch of one session says by patterns, message by message. All must be of the scope's speaker."""
    return [
        Proposal(draft=draft, message_id=message.id)
        for message in messages
        if message.role == "user" and message.learn
        for draft in propose(message.text, scope=scope, said_at=message.said_at, timezone=timezone)
    ]


def findings(answer: Answer, stretch: Stretch) -> list[Finding]:
    """What of a model's answer about `stretch` is kept; what fails the bar is left out, item by item."""
    found: list[Finding | None] = [_fact(item, answer.entities, stretch) for item in answer.facts]
    found += [_style(item, stretch) for item in answer.styles]
    found += [_event(item, answer.entities, stretch) for item in answer.events]
    return [finding for finding in found if finding is not None and worth_keeping(finding.draft)]


def worth_keeping(draft: Draft) -> bool:
    """Whether a draft clears the bar: it says something, and is no number, path, time or secret."""
    if not draft.key or not draft.value.strip():
        return False
    return draft.key in _NUMERIC_KEYS or _JUNK.fullmatch(draft.value) is None


def safe(text: str) -> str:
    """A model's words as they may be kept: without hidden characters, and with secrets masked once more."""
    return redact(clean(text)).strip()


def kind_of(item: FactItem) -> tuple[str, str]:
    """The key and the category of a fact, in the words of the vocabulary where it has some."""
    key = keys.vocabulary_key(safe(item.key))
    category = keys.category_of(key) or keys.normalise_key(item.category)
    return key, category if category in keys.CATEGORIES else "conversation"


def subject_of(about: str, speaker: str) -> str:
    """Whom or what a fact is about in words; empty for the one who speaks."""
    name = " ".join(safe(about).split())[:_SUBJECT_LIMIT]
    return "" if name.casefold() in {speaker.casefold()} | _SELF else name


def value_of(text: str, today: date) -> str:
    """A value as it is kept, with its days as dates; said on `today`."""
    return dates.anchor(safe(text), today)[: keys.VALUE_LIMIT].strip()


def topic_of(text: str) -> str:
    return keys.normalise_key(safe(text))[:_TOPIC_LIMIT].rstrip("-")


def replaced_by(item: FactItem, known: Iterable[Memory]) -> tuple[int, ...]:
    """The ids of those known facts, of the ones that were shown, that an item says are true no more."""
    shown = {memory.short_id: memory.id for memory in known}
    return tuple(shown[named] for named in dict.fromkeys(_SHORT_ID.findall(item.replaces)) if named in shown)


def named_in(text: str, entities: Iterable[EntityItem]) -> tuple[Named, ...]:
    """The entities that occur in `text`."""
    lower = text.casefold()
    found: dict[str, Named] = {}
    for entity in entities:
        name = " ".join(safe(entity.name).split())
        kind = entity.type.casefold()
        if name and name.casefold() in lower:
            found.setdefault(name.casefold(), Named(type=_ENTITY_TYPES.get(kind, "other"), name=name))
    return tuple(found.values())


def closest(value: str, texts: Sequence[str]) -> int | None:
    """Which of these texts shares most words with a value, by its place; None when none shares any."""
    wanted = set(tokens(value))
    shared = [len(wanted & set(tokens(text))) for text in texts]
    most = max(shared, default=0)
    return shared.index(most) if most else None


def echoes(value: str, *, instructions: str, said: Iterable[str], known: Iterable[Memory]) -> bool:
    """Whether a value only repeats the prompt: its instructions, or a known fact that nothing that was said speaks of.

    `instructions` are given as `keys.normalise_value` has them.
    """
    plain = keys.normalise_value(value)
    if len(plain) > 12 and plain in instructions:
        return True
    if not any(keys.normalise_value(memory.value) == plain for memory in known):
        return False
    return {token for text in said for token in tokens(text)}.isdisjoint(tokens(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where an item comes from: its messages, and the message that dates it, of the person who said it."""

    messages: tuple[Message, ...]
    dated: Message
    scope: Scope
    timezone: str
    #: Whether a person said it, or agreed to it in words of their own.
    by_person: bool

    @property
    def today(self) -> date:
        return dates.local_date(self.dated.said_at, self.timezone)


def _fact(item: FactItem, entities: Iterable[EntityItem], stretch: Stretch) -> Finding | None:
    key, category = kind_of(item)
    origin = _origin(item, stretch, by_assistant=category in _FROM_ASSISTANT)
    if origin is None:
        return None
    about = subject_of(item.about, origin.dated.author_name) if origin.by_person else ""
    value = value_of(item.value, origin.today)
    said = [message.text for message in origin.messages]
    if echoes(value, instructions=_PLAIN_INSTRUCTIONS, said=said, known=stretch.known):
        return None
    of_self = origin.by_person and not about
    is_own = of_self and _is_own_word(item.value, origin)
    draft = Draft(
        kind="fact",
        owner_id=origin.scope.writes_to,
        author_id=origin.scope.speaker_id if origin.by_person else None,
        subject_id=origin.scope.speaker_id if is_own else None,
        subject=about if is_own or not of_self else origin.dated.author_name,
        category=category,
        topic=topic_of(item.topic),
        key=key,
        value=value,
        importance=item.importance,
        confidence=item.confidence,
        origin="extracted",
        learned_at=origin.dated.said_at,
        local_date=origin.today.isoformat(),
    )
    return Finding(
        draft=draft,
        scope=origin.scope,
        source_ids=tuple(message.id for message in origin.messages),
        replaces=replaced_by(item, stretch.known),
        entities=named_in(f"{about} {value}", entities),
    )


def _style(item: StyleItem, stretch: Stretch) -> Finding | None:
    origin = _origin(item, stretch, by_assistant=False)
    if origin is None:
        return None
    is_own = _is_own_word(item.value, origin)
    draft = Draft(
        kind="style",
        owner_id=origin.scope.writes_to,
        author_id=origin.scope.speaker_id,
        subject_id=origin.scope.speaker_id if is_own else None,
        subject="" if is_own else origin.dated.author_name,
        # How one agent is to talk is no business of the others.
        agent_id=origin.scope.agent_id,
        category="instruction",
        topic=topic_of(item.topic),
        key=keys.normalise_key(safe(item.key)) or "style",
        value=value_of(item.value, origin.today),
        importance=item.importance,
        confidence=0.7,
        origin="extracted",
        learned_at=origin.dated.said_at,
        local_date=origin.today.isoformat(),
    )
    return Finding(draft=draft, scope=origin.scope, source_ids=tuple(message.id for message in origin.messages))


def _event(item: Item, entities: Iterable[EntityItem], stretch: Stretch) -> Finding | None:
    origin = _origin(item, stretch, by_assistant=False)
    if origin is None:
        return None
    value = value_of(item.value, origin.today)
    draft = Draft(
        kind="event",
        owner_id=origin.scope.writes_to,
        author_id=origin.scope.speaker_id,
        # In a group it tells of everybody who took part, so it is nobody's to find in private.
        subject_id=origin.scope.speaker_id if origin.scope.private else None,
        category="happening",
        topic=topic_of(item.topic),
        key="event",
        value=value,
        importance=item.importance,
        confidence=0.8,
        origin="extracted",
        learned_at=origin.dated.said_at,
        local_date=origin.today.isoformat(),
    )
    return Finding(
        draft=draft,
        scope=origin.scope,
        source_ids=tuple(message.id for message in origin.messages),
        entities=named_in(value, entities),
    )


def _origin(item: Item, stretch: Stretch, *, by_assistant: bool) -> _Origin | None:
    """The messages an item comes from: those it names, else the one it shares most words with.

    None when that is no message a person may be quoted from, or an assistant's where `by_assistant` is not given.
    """
    cited = [stretch.messages[n - 1] for n in sorted(set(item.messages)) if 1 <= n <= len(stretch.messages)]
    if not cited:
        cited = _closest(item.value, stretch)
    by_people = [message for message in cited if message.author_id in stretch.scopes]
    if by_people:
        # The last to say it: an older message never closes a newer value, and this one is the newest word on it.
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
    """Whether all of a value stands in what its author said; in private nobody else is there to have said it.

    What people say of themselves in a group follows them into their private chats, and a model that was talked into it
    may lay another's words in their mouth.
    """
    if origin.scope.private:
        return True
    said = {token for m in origin.messages if m.author_id == origin.dated.author_id for token in tokens(m.text)}
    return said.issuperset(tokens(value))


_PLAIN_INSTRUCTIONS = keys.normalise_value(INSTRUCTIONS)
