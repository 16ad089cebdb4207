"""What a person, or a tool on their behalf, may do to memory: one request, one transaction, with its answer in it.

Invariants: every operation takes its rows through the scope it was opened with; the answer is queued and the
request closed in the same transaction that holds the change, so "saved" is said only of what is saved, and a request
taken up again after a crash either happened with its answer or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from memory import dates, keys
from memory.errors import NotCurrent, NotWished
from memory.learn import extract, keep
from memory.learn.guard import injection_flags
from memory.recall.words import tokens
from memory.scope import Scope
from memory.store import (
    attachments,
    browsing,
    erasure,
    extractions,
    history,
    job_runs,
    mailbox,
    memories,
    people,
    questions,
)
from memory.store.attachments import Attached
from memory.store.database import Reader, Transaction
from memory.store.fading import half_life, left
from memory.store.job_runs import Run
from memory.store.memories import Draft, Memory, Source
from memory.store.people import Session, Speaker
from memory.store.questions import Question
from memory.upkeep import again, blank, choose, erase, manner
from memory.upkeep.again import Undone
from memory.upkeep.choose import Asker

#: The kinds of what is derived of memories and not made anew whenever they change.
_DERIVED: Final = ("fact", "style", "event", "reflection")
#: What history keeps of a message, from its words and what came beside them.
Compose: TypeAlias = Callable[[str, Sequence[Attached]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Who asks, where, and what follows from that. `language` and `timezone` are the person's own, or None."""

    session: Session
    speaker: Speaker
    scope: Scope
    timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory as a person sees it: with where it comes from, what it is made of and every version of it.

    `made_by` is the run of the night's work that made it. Of what is archived `made_into` is what was made of it and
    holds by now, and `set_aside_by` the run that did it. `left` is the share of its strength that it has left; it never
    changes where it does not `fade`.
    """

    memory: Memory
    sources: tuple[Source, ...]
    versions: tuple[Memory, ...]
    made_of: tuple[Memory, ...] = ()
    made_by: Run | None = None
    made_into: tuple[Memory, ...] = ()
    set_aside_by: Run | None = None
    left: float = 1.0
    fades: bool = False


def anew(reader: Reader, context: Context) -> Context:
    """The same with what may be seen by now: since it was made, somebody may have been linked or taken out of a link.

    Whatever is read or written for somebody begins with this, in the same transaction.
    """
    return replace(
        context,
        speaker=people.speaker_by_id(reader, context.speaker.id),
        scope=people.scope_of(reader, context.session, context.speaker.id),
    )


def may_change(memory: Memory, context: Context) -> bool:
    """Whether who speaks here may change or erase a memory: it is theirs alone, or said by or about them."""
    return choose.may_change(memory, context.scope)


class Desk:
    """What `Service.answer` and `Turns.act` hand to a request; never kept beyond it."""

    def __init__(
        self,
        tx: Transaction,
        context: Context,
        *,
        now: int,
        new_id: Callable[[], str],
        source_ids: Sequence[int] = (),
    ) -> None:
        """`source_ids` names the messages in which the request was made, where there are such."""
        self._tx = tx
        self._context = context
        self._now = now
        self._new_id = new_id
        self._source_ids = source_ids

    def remember(self, text: str, *, key: str | None = None) -> list[Memory]:
        """Keep what a person asked to have kept; returns the rows, or none when there is nothing in it to keep.

        Without a key the patterns look what kind of statement it is; what they can't read is kept as a note.
        """
        scope = self._context.scope
        if key:
            drafts = [self._told(key=keys.normalise_key(key), value=text)]
        else:
            drafts = extract.propose(text, scope=scope, said_at=self._now, timezone=self._context.timezone)
            drafts = [_as_told(draft) for draft in drafts] or [self._told(key="note", value=text)]
        kept = []
        for draft in drafts:
            if not extract.worth_keeping(draft):
                continue
            memory_id = keep.keep(
                self._tx, scope, self._as_said(draft), source_ids=self._source_ids, now=self._now, new_id=self._new_id
            )
            if memory_id is not None:  # somebody may not want it learned
                kept.append(self._row(memory_id))
        return kept

    def correct(self, short_id: str, value: str) -> tuple[Memory, Memory]:
        """Put `value` in the place of what a memory says; returns the old row and the new one.

        The old row keeps its dates, and what was derived of it ends with it, unless a person has made sure of that; the
        same value again changes nothing and returns the row twice. Raises `NotFound`, `NotYours`, `NotCurrent`,
        `Derived`, and `NotWished` where somebody concerned wants nothing of the kind kept.
        """
        scope = self._context.scope
        old = self._changeable(memories.by_short_id(self._tx, scope, short_id))
        if old.valid_until is not None:
            raise NotCurrent(f"{short_id} is an old version.")
        if keys.normalise_value(old.value) == keys.normalise_value(value):
            return old, old
        draft = Draft(
            kind=old.kind,
            owner_id=old.owner_id,
            # Who said it first stays its author: a correction must not move a row into another scope.
            author_id=old.author_id,
            subject_id=old.subject_id,
            subject=old.subject,
            agent_id=old.agent_id,
            category=old.category,
            topic=old.topic,
            key=old.key,
            value=value[: keys.VALUE_LIMIT],
            flags=injection_flags(value),
            importance=old.importance,
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
            confirmed=True,
        )
        by_speaker = replace(draft, author_id=scope.speaker_id)
        if not keep.may_be_kept(self._tx, by_speaker, self._source_ids):
            raise NotWished(f"The new value of {short_id} is not to be kept.")
        new_id = memories.insert(self._tx, draft, new_id=self._new_id, now=self._now)
        memories.add_sources(self._tx, new_id, self._source_ids)
        memories.supersede(self._tx, old.id, new_id, at=self._now)
        self._after_change(old, *memories.outdate(self._tx, old, kinds=_DERIVED, by=new_id, at=self._now))
        return old, self._row(new_id)

    def confirm(self, short_id: str) -> Memory:
        """Mark a memory as sure: it never fades, and stands by itself where it had been merged.

        Raises `NotFound`, `NotYours`, `NotCurrent` and `Derived`.
        """
        memory = self._changeable(memories.by_short_id(self._tx, self._context.scope, short_id))
        if memory.valid_until is not None:
            raise NotCurrent(f"{short_id} is an old version.")
        memories.confirm(self._tx, memory.id, at=self._now)
        if memory.archived_at is not None:
            self._after_change(memory, *self._part(memory))
        return self._row(memory.id)

    def pin(self, short_id: str, *, pinned: bool) -> Memory:
        """Have a memory never fade and lead the known facts, or no more. Raises as `confirm`."""
        memory = self._changeable(memories.by_short_id(self._tx, self._context.scope, short_id))
        if memory.valid_until is not None:
            raise NotCurrent(f"{short_id} is an old version.")
        browsing.pin(self._tx, memory.id, pinned=pinned)
        self._after_change(memory, *(self._part(memory) if pinned else ()))
        return self._row(memory.id)

    def set_learning(self, on: bool) -> None:
        """Learn from what is said in this chat from now on, or not; who may say so is the caller's to know."""
        people.set_learning(self._tx, self._context.session, on)

    def set_language(self, language: str | None) -> None:
        """A setting of this person, "en" or "zh"; None leaves it to what they write."""
        people.set_language(self._tx, self._context.speaker, language)

    def set_timezone(self, timezone: str | None) -> None:
        """A setting of this person, a name of the IANA list; None leaves it to the agent's."""
        people.set_timezone(self._tx, self._context.speaker, timezone)

    def set_manner(self, text: str) -> Memory | None:
        """How this person, or here this group, wants to be talked to, in their own words; learning it is on with that.

        Returns the row; None for nothing, or more than there is room for. Who may say so of a group is the caller's to
        know.
        """
        scope, today = self._context.scope, self._today()
        made = manner.set_by_person(self._tx, scope, text, now=self._now, local_date=today, new_id=self._new_id)
        if made is None:
            return None
        people.set_manner(self._tx, self._context.session, self._context.speaker, True)
        self._show_manner()
        return self._row(made)

    def leave_manner(self) -> bool:
        """Have the manner of talking learned again instead of what was said of it; whether anything was."""
        was_set = manner.leave_to_learning(self._tx, self._context.scope, now=self._now)
        self._show_manner()
        return was_set

    def learn_manner(self, on: bool) -> None:
        """Learn a manner of talking to this person, or here to this group, or not.

        Off, what was learned is closed and neither that nor any style stands in a prompt; what was said of it waits.
        """
        people.set_manner(self._tx, self._context.session, self._context.speaker, on)
        if not on:
            manner.close_learned(self._tx, self._context.scope, now=self._now)
        self._show_manner()

    def use(self, memory_ids: Sequence[int]) -> None:
        """These were looked up on purpose, which keeps them fresh."""
        for memory in memories.by_ids(self._tx, self._context.scope, memory_ids):
            memories.use(self._tx, memory.id, at=self._now)

    def amend(self, platform_ref: str, text: str, *, compose: Compose, count_tokens: Callable[[str], int]) -> bool:
        """This person has edited a message: its words change, and what it alone had taught goes, to be learned anew.

        `compose` makes what is kept of the new words and of what came beside them. False when they said no such message
        here, or when it says that already.
        """
        session = self._context.session
        said = history.said_by(self._tx, session.id, self._context.speaker.id, platform_ref)
        if said is None:
            return False
        text = compose(text, attachments.of_messages(self._tx, [said.id]).get(said.id, ()))
        if said.text == text:
            return False
        history.reword(self._tx, said.id, text, tokens=count_tokens(text), now=self._now)
        blank.clear_traffic(self._tx, [said.id], now=self._now)
        under_way = blank.running_turns(self._tx, [said.id])
        found = memories.by_ids(self._tx, self._context.scope, memories.of_message_alone(self._tx, said.id))
        # What the person has confirmed since stands by their word.
        taught = [memory for memory in found if not (memory.confirmed or memory.pinned)]
        # A list of ids can't hold the new words: a backup with the old ones has none, once it is restored.
        what = erase.gone([said.id], taught, what="edited", traffic=under_way)
        erasure.record(self._tx, None, what, "{}", now=self._now)
        memories.retract(self._tx, [memory.id for memory in taught])
        self._after_change(*taught)
        extractions.reread(self._tx, session.id, said.id, "edited", now=self._now)
        return True

    def may_forget(self, short_id: str) -> Memory:
        """The row, if this person may forget it. Raises `NotFound`, `NotYours` and `Derived`."""
        return self._changeable(memories.by_short_id(self._tx, self._context.scope, short_id))

    def show(self, short_id: str) -> Shown:
        """Raises `NotFound`."""
        scope = self._context.scope
        memory = memories.by_short_id(self._tx, scope, short_id)
        found = memories.sources(self._tx, scope, [memory.id])
        archived = memory.archived_at is not None
        return Shown(
            memory=memory,
            sources=tuple(found[memory.id]),
            versions=tuple(memories.versions(self._tx, scope, memory)),
            made_of=tuple(memories.parents(self._tx, scope, memory.id)),
            made_by=job_runs.made_by(self._tx, scope, memory) if memory.origin == "derived" else None,
            made_into=tuple(memories.made_into(self._tx, scope, memory.id)) if archived else (),
            set_aside_by=job_runs.set_aside_by(self._tx, scope, memory) if archived else None,
            left=left(memory, now=self._now),
            fades=half_life(memory) is not None,
        )

    def start_window(self) -> None:
        """Begin an empty window; what was said before can still be recalled, and is read for memories."""
        session = self._context.session
        extractions.schedule(self._tx, session.id, "session ended", now=self._now)
        people.start_window(self._tx, session.id, after=history.last_id(self._tx, session.id))

    def undo(self, turn_id: int | None = None) -> Undone | None:
        """Take back this person's last turn here, with what it alone has taught; None when there is none.

        With `turn_id` only if it is that one.
        """
        context = self._context
        return again.undo(self._tx, context.session, context.scope, turn_id=turn_id, now=self._now, new_id=self._new_id)

    def set_task(self, task: str | None) -> None:
        """Note what is being worked on here; None: nothing any more."""
        people.set_task(self._tx, self._context.session.id, task)

    def ask(self, purpose: str, payload: Mapping[str, object], *, choices: Sequence[str], preset: str) -> Question:
        """Put a question to this person. `payload` is of ids and figures; none of it may be text."""
        return questions.ask(
            self._tx,
            session_id=self._context.session.id,
            asker_id=self._context.speaker.id,
            purpose=purpose,
            payload=json.dumps(dict(payload)),
            choices=choices,
            preset=preset,
            now=self._now,
        )

    def purge_dead(self, channel: str) -> int:
        """Drop messages of a channel (as in session keys) that could not be delivered; returns how many."""
        return mailbox.purge(self._tx, channel)

    def settle(self, question: Question, answer: str | None) -> bool:
        """Close a question with the choice taken; False when that was done already."""
        return questions.settle(self._tx, question.id, answer)

    def _as_said(self, draft: Draft) -> Draft:
        """What a model wants kept in a group is a person's own word of themselves only where it is in their words.

        Such rows follow them into their private chats, and others may have talked the model into it.
        """
        if self._context.scope.private or not self._source_ids or draft.subject_id is None:
            return draft
        said = history.between(self._tx, self._context.session.id, self._source_ids[0], self._source_ids[-1])
        if {token for message in said for token in tokens(message.text)}.issuperset(tokens(draft.value)):
            return draft
        return replace(draft, subject_id=None, subject=self._context.speaker.name)

    def _row(self, memory_id: int) -> Memory:
        found = memories.by_id(self._tx, self._context.scope, memory_id)
        assert found is not None
        return found

    def _changeable(self, memory: Memory) -> Memory:
        """What the person may change: their own rows, and in a group what they said or what is about them."""
        asker = Asker(session=self._context.session, scope=self._context.scope, timezone=self._context.timezone)
        choose.may_forget(self._tx, asker, memory)
        return memory

    def _part(self, memory: Memory) -> list[Memory]:
        """End what a memory was merged into: it stands by itself, and must not be said twice. Returns what changed."""
        return memories.outdate(self._tx, memory, kinds=(memory.kind,), by=None, at=self._now)

    def _told(self, *, key: str, value: str) -> Draft:
        scope = self._context.scope
        return Draft(
            kind="fact",
            owner_id=scope.writes_to,
            author_id=scope.speaker_id,
            subject_id=scope.speaker_id,
            category=keys.category_of(key) or "decision",
            key=key,
            value=value.strip()[: keys.VALUE_LIMIT],
            importance=7,
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
        )

    def _today(self) -> str:
        return dates.local_date(self._now, self._context.timezone).isoformat()

    def _show_manner(self) -> None:
        """A switch shows at once, in every prompt's snapshot."""
        scope = self._context.scope
        people.drop_snapshots_of(self._tx, {*scope.own, scope.writes_to}, scope.selves)

    def _after_change(self, *changed: Memory) -> None:
        erase.show_change(self._tx, self._context.scope, changed, now=self._now, new_id=self._new_id)


def retract(
    tx: Transaction, session: Session, platform_refs: Sequence[str], *, now: int, new_id: Callable[[], str]
) -> int:
    """Messages of a session were deleted on its platform, by whomever: their words go, and what nobody said elsewhere.

    What a memory drawn from them had replaced holds again; one that somebody has confirmed since stands by their word.
    The bot's answers keep their words, but nothing is learned from them and they are not found again. Returns how many
    messages there were: unknown ones, the bot's own and those erased before count as none.
    """
    deleted = history.said_here(tx, session.id, platform_refs)
    if not deleted:
        return 0
    ids = [message.id for message in deleted]
    # Also of those that were erased before: a turn that was under way may have learned from them since.
    history.erase(tx, ids, now=now)
    taught = [memory for memory in memories.resting_on(tx, ids) if not (memory.confirmed or memory.pinned)]
    erase.unlearn_replies(tx, taught, sources=ids)
    cleared = blank.clear_traffic(tx, ids, now=now)
    under_way = blank.running_turns(tx, ids)
    for memory in taught:
        erasure.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    memories.retract(tx, [memory.id for memory in taught])
    if taught or under_way or any(message.text for message in deleted):
        erasure.record(tx, None, erase.gone(ids, taught, traffic=under_way), "{}", now=now)
    elif cleared:
        erasure.note_reworded(tx, now=now)
    for author in {message.author_id for message in deleted if message.author_id is not None}:
        erase.show_change(tx, people.scope_of(tx, session, author), taught, now=now, new_id=new_id)
    return sum(bool(message.text) for message in deleted)


def _as_told(draft: Draft) -> Draft:
    """Said with the wish to have it kept: surer and weightier than what was overheard."""
    return replace(draft, origin="told", confidence=1.0, importance=max(draft.importance, 7))
