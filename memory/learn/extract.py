"""From messages to drafts of memories, by patterns and without a model.

Invariants: only a person's own messages that were recorded with `learn` are read; each is read with its own date;
what comes out is checked by the bar below before anybody is told that it was noted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from memory import dates, keys
from memory.learn import patterns
from memory.scope import Scope
from memory.store.history import Message
from memory.store.memories import Draft

#: A value without one letter or digit in any script, or that is just a number, a path or a time: nothing to keep.
_JUNK = re.compile(r"[\W\d_]*|[\d\s.,:%/-]+|(?:[~.]?/|[A-Za-z]:\\)\S+|\[secret: [^\]]*\]")
_NUMERIC_KEYS = frozenset({"age", "birthday"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A draft and the message it comes from."""

    draft: Draft
    message_id: int


def local_date(moment: int, timezone: str) -> date:
    """The date it was at `moment` (milliseconds UTC) where the person lives."""
    return datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(timezone)).date()


def propose(text: str, *, scope: Scope, said_at: int, timezone: str) -> list[Draft]:
    """What one message of the scope's speaker says about them."""
    today = local_date(said_at, timezone)
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
    """What a stretch of one session says, message by message. All must be of the scope's speaker."""
    return [
        Proposal(draft=draft, message_id=message.id)
        for message in messages
        if message.role == "user" and message.learn
        for draft in propose(message.text, scope=scope, said_at=message.said_at, timezone=timezone)
    ]


def worth_keeping(draft: Draft) -> bool:
    """Whether a draft clears the bar: it says something, and is no number, path, time or secret."""
    if not draft.key or not draft.value.strip():
        return False
    return draft.key in _NUMERIC_KEYS or _JUNK.fullmatch(draft.value) is None
