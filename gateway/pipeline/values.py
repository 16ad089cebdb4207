"""Puts into a request the values that a provider without a model answers from: it reads no prompt.

Invariant: the grounds of such an answer are places among the `remembered` values, so `rests_on` counts them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from agents.llm import Learning, Remembered, Reminded, Request
from gateway.pipeline.course import Agent, Course, obstacle
from gateway.reading.attachments import label
from gateway.wording import phrases, reminder_lines
from gateway.wording.texts import Texts
from memory.chat.turns import Turn
from memory.chat.window import TurnMaterial
from memory.learn.retract import Revision
from memory.recall.cues import cues
from memory.recall.recall import Recall, Recalled
from memory.store.attachments import QUOTED
from memory.store.memories import Memory
from memory.text.times import clock
from memory.text.times.spans import days_named, spans


def with_values(request: Request, course: Course, view: TurnMaterial, now: int) -> Request:
    """Returns a request with these values at the moment `now`, in milliseconds UTC."""
    served, turn, texts = course.served, course.turn, course.texts
    language, zone, learned = texts.language, ZoneInfo(turn.context.timezone), view.learned or Revision()
    moment, said = datetime.fromtimestamp(now / 1000, zone), request.said
    days = days_named(said, language=language, now=moment) if served.offline else None
    since, until = 0, None
    if past := [span for span in spans(said, moment.date(), looks="back") if span.first <= moment.date()]:
        since, until = clock.moments(past[0].first, past[0].last, turn.context.timezone)
    remembered = (
        _quoted(item, turn, texts, now) if item.memory is None else _remembered(item, item.memory, turn, texts, now)
        for item in _told(view.recall)
    )
    reminders = (
        Reminded(
            text=one.text,
            said=reminder_lines.set_back(texts, one, now),
            day=datetime.fromtimestamp((one.next_at or 0) / 1000, zone).date(),
        )
        for one in view.reminders
    )
    # Attachments that could not be read have a line of their own.
    attached = (
        label(one)[1:-1]
        for beside in course.attached
        for one in beside
        if one.state != "spoken" and not one.kind.startswith(QUOTED) and obstacle(one, blind=served.offline) is None
    )
    return replace(
        request,
        remembered=tuple(one if days is None else _dated(one, language, zone) for one in remembered),
        reminders=tuple(reminders),
        days=days,
        asked_since=since,
        asked_until=until,
        days_said=" – ".join(texts.day_to_come(day, moment.date()) for day in dict.fromkeys(days or ())),
        noted=tuple(phrases.say(one.draft.key, one.draft.value, language=language) for one in learned.proposals),
        ended=tuple(phrases.tell(memory, turn.context, language=language) for memory in learned.ended),
        doubted=tuple(
            phrases.tell(memory, turn.context, language=language)
            for memory in learned.doubted
            if memory not in learned.ended
        ),
        unplaced=learned.unplaced,
        attached=tuple(attached),
        learning=_learning(served, turn),
    )


def _learning(served: Agent, turn: Turn) -> Learning:
    """Returns whether this turn's messages are learned from and, if not, why."""
    if not served.spec.memory.enabled:
        return "never"
    if not turn.context.speaker.learning:
        return "out"
    return "on" if turn.context.session.learning else "off"


def _told(recall: Recall) -> list[Recalled]:
    """Returns the hits for this turn's messages, best first, followed by the memories that are known anyway."""
    hits = {item.memory.id for item in recall.items if item.memory is not None}
    snapshot = recall.snapshot
    others = {m.id: m for m in (*snapshot.profile, *snapshot.known, *snapshot.newer) if m.id not in hits}
    return [
        *filter(_is_told, recall.items),
        *(Recalled(score=0.0, placed="known", memory=memory) for memory in others.values() if memory.kind == "fact"),
    ]


def rests_on(recall: Recall, grounds: Sequence[int]) -> Recall:
    """Returns a recall in which only the items that an answer rests on count as used, beside the search's hits."""
    told = _told(recall)
    used = [told[place] for place in grounds]
    hits = [item for item in recall.items if item.score and item not in used]
    return replace(
        recall,
        items=(
            *(replace(item, placed="recalled") for item in used),
            *(replace(item, placed="unused") for item in hits),
        ),
    )


def _is_told(item: Recalled) -> bool:
    """Returns whether a hit can be given as an answer: a memory that was told, or a person's message."""
    if item.memory is not None:
        return item.memory.kind == "fact"
    return item.passage is not None and item.passage.message.role == "user"


def _remembered(item: Recalled, memory: Memory, turn: Turn, texts: Texts, now: int) -> Remembered:
    selves = (turn.context.speaker.id, *turn.context.scope.selves)
    own = memory.subject_id in selves or (memory.subject_id is None and not memory.subject)
    return Remembered(
        said=phrases.tell(memory, turn.context, language=texts.language),
        when=texts.day(memory.learned_at, now),
        at=memory.learned_at,
        superseded=not memory.live,
        unsure=memory.unsure,
        until="" if memory.valid_until is None else texts.date(memory.valid_until),
        key=memory.key,
        value=memory.value,
        relation=memory.category == "relation",
        about="" if own else memory.subject_name or memory.subject,
        cues=cues(memory.key),
        nearness=item.nearness,
    )


def _quoted(item: Recalled, turn: Turn, texts: Texts, now: int) -> Remembered:
    assert item.passage is not None
    message = item.passage.message
    own = message.author_id in (turn.context.speaker.id, *turn.context.scope.selves)
    return Remembered(
        said=message.text,
        when=texts.day(message.said_at, now),
        at=message.said_at,
        superseded=item.passage.outdated,
        verbatim=True,
        by="" if own else message.author_name,
        nearness=item.nearness,
    )


def _dated(one: Remembered, language: str, zone: ZoneInfo) -> Remembered:
    """Returns a memory with the days that it named when it was told."""
    told = datetime.fromtimestamp(one.at / 1000, zone)
    return replace(one, days=days_named(one.said if one.verbatim else one.value, language=language, now=told))
