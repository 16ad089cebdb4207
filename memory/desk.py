"""What a person, or a tool on their behalf, may do to memory: one request, one transaction, with its answer in it.

Invariants: every operation takes its rows through the scope it was opened with; the answer is queued and the
request closed in the same transaction that holds the change, so "saved" is said only of what is saved, and a request
taken up again after a crash either happened with its answer or not at all.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memory import keys, profile
from memory.learn import extract, keep
from memory.scope import Scope
from memory.store import extractions, history, memories, people, questions
from memory.store.database import Transaction
from memory.store.memories import Draft, Memory, Source
from memory.store.people import Session, Speaker
from memory.store.questions import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Who asks, where, and what follows from that. `language` and `timezone` are the person's own, or None."""

    session: Session
    speaker: Speaker
    scope: Scope
    timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory as a person sees it: with where it comes from and every version of it."""

    memory: Memory
    sources: tuple[Source, ...]
    versions: tuple[Memory, ...]


class Desk:
    """What `Service.answer` and `Service.act` hand to a request; never kept beyond it."""

    def __init__(self, tx: Transaction, context: Context, *, now: int, new_id: Callable[[], str]) -> None:
        self._tx = tx
        self._context = context
        self._now = now
        self._new_id = new_id

    def remember(self, text: str, *, key: str | None = None, category: str | None = None) -> list[Memory]:
        """Keep what a person asked to have kept; returns the rows, or none when there is nothing in it to keep.

        Without a key the patterns look what kind of statement it is; what they can't read is kept as a note.
        """
        scope = self._context.scope
        drafts = (
            [self._told(key=keys.normalise_key(key), value=text, category=category or "decision")]
            if key
            else extract.propose(text, scope=scope, said_at=self._now, timezone=self._context.timezone)
            or [self._told(key="note", value=text, category=category or "decision")]
        )
        kept = []
        for draft in drafts:
            if not extract.worth_keeping(draft):
                continue
            told = _as_told(draft)
            outcome = keep.keep(self._tx, scope, told, source_ids=(), now=self._now, new_id=self._new_id)
            memory = memories.by_id(self._tx, scope, outcome.memory_id)
            assert memory is not None
            kept.append(memory)
        return kept

    def correct(self, short_id: str, value: str) -> tuple[Memory, Memory]:
        """Put `value` in the place of what a memory says; returns the old row and the new one.

        The old row keeps its dates. Raises `NotFound`, and `ValueError` when the row is not the current one.
        """
        scope = self._context.scope
        old = memories.by_short_id(self._tx, scope, short_id)
        if old.superseded_by is not None:
            raise ValueError(short_id)
        draft = Draft(
            kind=old.kind,
            owner_id=old.owner_id,
            author_id=scope.speaker_id,
            subject_id=old.subject_id,
            subject=old.subject,
            category=old.category,
            topic=old.topic,
            key=old.key,
            value=value[: keys.VALUE_LIMIT],
            importance=old.importance,
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
            confirmed=True,
        )
        new_id = memories.insert(self._tx, draft, short_id=self._new_id(), now=self._now)
        memories.supersede(self._tx, old.id, new_id, at=self._now)
        self._after_change(old)
        new = memories.by_id(self._tx, scope, new_id)
        assert new is not None
        return old, new

    def forget(self, memory_id: int) -> Memory | None:
        """Remove one memory, and only it: its source messages stay, but nothing is learned or recalled from them.

        None when it is not there (any more).
        """
        scope = self._context.scope
        memory = memories.by_id(self._tx, scope, memory_id)
        if memory is None:
            return None
        sources = memories.sources(self._tx, [memory.id])
        history.unlearn(self._tx, [source.message_id for source in sources[memory.id]])
        self._tx.run(
            "insert or ignore into forgotten values (?, ?, ?)",
            (memory.owner_id, self._fingerprint(memory), self._now),
        )
        memories.delete(self._tx, [memory.id])
        self._after_change(memory)
        return memory

    def show(self, short_id: str) -> Shown:
        """Raises `NotFound`."""
        scope = self._context.scope
        memory = memories.by_short_id(self._tx, scope, short_id)
        found = memories.sources(self._tx, [memory.id])
        versions = memories.versions(self._tx, scope, memory)
        return Shown(memory=memory, sources=tuple(found[memory.id]), versions=tuple(versions))

    def start_window(self) -> None:
        """Begin an empty window; what was said before can still be recalled, and is read for memories."""
        session = self._context.session
        extractions.schedule(self._tx, session.id, "session ended", now=self._now)
        people.start_window(self._tx, session.id, after=history.last_id(self._tx, session.id))

    def ask(self, purpose: str, payload: dict[str, int], *, choices: Sequence[str], preset: str) -> None:
        questions.ask(
            self._tx,
            session_id=self._context.session.id,
            asker_id=self._context.speaker.id,
            purpose=purpose,
            payload=json.dumps(payload),
            choices=choices,
            preset=preset,
            now=self._now,
        )

    def settle(self, question: Question, answer: str | None) -> None:
        questions.settle(self._tx, question.id, answer)

    def _told(self, *, key: str, value: str, category: str) -> Draft:
        scope = self._context.scope
        return Draft(
            kind="fact",
            owner_id=scope.writes_to,
            author_id=scope.speaker_id,
            subject_id=scope.speaker_id,
            category=category,
            key=key,
            value=value.strip()[: keys.VALUE_LIMIT],
            importance=7,
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
        )

    def _today(self) -> str:
        return extract.local_date(self._now, self._context.timezone).isoformat()

    def _after_change(self, memory: Memory) -> None:
        """A correction or a forget shows at once: in the profile, and in every prompt's snapshot."""
        if memory.kind == "fact" and self._context.scope.private:
            slot = keys.profile_slot(category=memory.category, key=memory.key)
            profile.refresh(self._tx, self._context.scope, memory.owner_id, slot, now=self._now, new_id=self._new_id)
        people.drop_snapshots(self._tx)

    def _fingerprint(self, memory: Memory) -> bytes:
        """A keyed hash of what a memory says: enough to know it again, not enough to read it."""
        row = self._tx.one("select value from store_settings where name = 'hash_key'")
        key = row["value"] if row is not None else secrets.token_hex(32)
        if row is None:
            self._tx.run("insert into store_settings values ('hash_key', ?)", (key,))
        content = f"{memory.key}\n{keys.normalise_value(memory.value)}"
        return hmac.digest(bytes.fromhex(key), content.encode(), "sha256")


def _as_told(draft: Draft) -> Draft:
    """Said with the wish to have it kept: surer and weightier than what was overheard."""
    return replace(draft, origin="told", confidence=1.0, importance=max(draft.importance, 7))
