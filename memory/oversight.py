"""What admins may do to the memory of the people and groups on their channel, for the gateway.

Invariants: every look is recorded in the transaction that queues its answer, whatever came of it; somebody of whom
nothing may be known here is answered like somebody of whom nothing is; where the operator has admins read nothing, what
memories say never leaves here. Who is an admin is for the gateway to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from memory.desk import Context, Shown
from memory.errors import NotFound
from memory.forgetting import Forgetting, Receipt
from memory.mail import Mail
from memory.recall.search import Search
from memory.scope import Scope
from memory.store import looks, mailbox, memories, questions
from memory.store.database import Database, Reader, Transaction
from memory.store.looks import Action, Standing, View
from memory.store.mailbox import Piece
from memory.store.memories import Memory
from memory.store.questions import Question
from memory.upkeep.choose import Asker, Selection
from memory.upkeep.forget import Plan

#: Kinds that are shown one by one; the others are made of these.
_KINDS = ("fact", "style", "event", "reflection")
#: What a search looks through: a person's own messages are found among these too, and are passed over.
_SEARCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A memory that somebody asks for by its id; `memory` only where its words may be read."""

    id: int
    kind: str
    learned_at: int
    memory: Memory | None


class Overseer:
    """What `Oversight.answer` hands to a request; never kept beyond it.

    `found` is how many memories were shown so far: what will be recorded.
    """

    def __init__(
        self, tx: Transaction, context: Context, view: View | None, *, reads: bool, ranked: Sequence[int], now: int
    ) -> None:
        self.found = 0
        self._tx = tx
        self._context = context
        self._scopes = () if view is None else view.scopes
        self._reads = reads
        self._ranked = ranked
        self._now = now

    def kinds(self) -> dict[str, int]:
        """How many live memories there are of each kind, the commonest first."""
        counted = Counter(one.kind for one in self._standing())
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def page(self, *, limit: int, offset: int) -> list[Memory]:
        """Live memories, the ones that matter first; none where they may not be read."""
        if not self._reads:
            return []
        order = sorted(self._standing(), key=lambda one: one.order, reverse=True)
        return self._shown(self._by_ids([one.id for one in order[offset : offset + limit]]))

    def hits(self, *, limit: int, offset: int) -> tuple[list[Memory], int]:
        """What answers the query of this request, best first, old versions too, and how many there are."""
        if not self._reads:
            return [], 0
        found = self._by_ids(self._ranked)
        return self._shown(found[offset : offset + limit]), len(found)

    def show(self, short_id: str) -> Shown:
        """A memory with its sources and versions. Raises `NotFound`, also where it may not be read."""
        memory, scope = self._by_short_id(short_id)
        if not self._reads:
            raise NotFound(f"No memory {short_id} to be read.")
        self._shown([memory])
        return Shown(
            memory=memory,
            sources=tuple(memories.sources(self._tx, scope, [memory.id])[memory.id]),
            versions=tuple(memories.versions(self._tx, scope, memory)),
        )

    def named(self, short_id: str) -> Named:
        """Whether there is such a memory. Raises `NotFound`."""
        memory, _ = self._by_short_id(short_id)
        if self._reads:
            self._shown([memory])
        return Named(
            id=memory.id,
            kind=memory.kind,
            learned_at=memory.learned_at,
            memory=memory if self._reads else None,
        )

    def ask(self, purpose: str, payload: dict[str, int], *, choices: Sequence[str], preset: str) -> Question:
        """Put a question to the admin."""
        return questions.ask(
            self._tx,
            session_id=self._context.session.id,
            asker_id=self._context.speaker.id,
            purpose=purpose,
            payload=json.dumps(payload),
            choices=choices,
            preset=preset,
            now=self._now,
        )

    def _standing(self) -> Collection[Standing]:
        return {one.id: one for scope in self._scopes for one in looks.standing(self._tx, scope)}.values()

    def _by_ids(self, memory_ids: Sequence[int]) -> list[Memory]:
        found = {one.id: one for scope in self._scopes for one in memories.by_ids(self._tx, scope, memory_ids)}
        return [found[one] for one in memory_ids if one in found and found[one].kind in _KINDS]

    def _by_short_id(self, short_id: str) -> tuple[Memory, Scope]:
        for scope in self._scopes:
            try:
                memory = memories.by_short_id(self._tx, scope, short_id)
            except NotFound:
                continue
            if memory.kind in _KINDS:
                return memory, scope
        raise NotFound(f"No memory {short_id} there.")

    def _shown(self, shown: list[Memory]) -> list[Memory]:
        self.found += len(shown)
        return shown


class Oversight:
    """One store's memory as the admins of its channels may see it. `reads` tells whether they see what it says."""

    def __init__(
        self,
        database: Database,
        *,
        search: Search,
        mail: Mail,
        forgetting: Forgetting,
        now: Callable[[], int],
        reads: bool,
    ) -> None:
        self.reads = reads
        self._database = database
        self._search = search
        self._mail = mail
        self._forgetting = forgetting
        self._now = now

    async def answer(
        self,
        context: Context,
        inbox_id: int,
        reference: str,
        action: Action,
        act: Callable[[Overseer], Sequence[Piece]],
        *,
        query: str = "",
        edits: str | None = None,
    ) -> None:
        """Answer an admin who looks at the person or group with that platform id, as one transaction that records it

        and ends the inbox row. The admin asks in the session of `context`, whose channel they administer. With `query`
        it is searched for. The answer takes the place of the shown message `edits`.
        """
        ranked = await self._rank(context, reference, query) if query and self.reads else ()

        def answered(tx: Transaction) -> None:
            view = looks.view_of(tx, context.session, reference)
            overseer = Overseer(tx, context, view, reads=self.reads, ranked=ranked, now=self._now())
            pieces = act(overseer)
            if view is not None:
                self._note(tx, context, view, action, overseer.found)
            self._mail.post(
                tx,
                session_key=context.session.key,
                turn_id=None,
                inbox_id=inbox_id,
                kind="message",
                pieces=pieces,
                reply_to=None,
                edits=edits,
            )
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(answered)

    async def forget(
        self, context: Context, inbox_id: int, question: Question, reference: str, memory_id: int
    ) -> Receipt | None:
        """Erase a memory of that person or group with the words it was learned from; the caller ends the inbox row.

        Recorded in the transaction that does it, with how many went. None where the question was over, or nothing of
        theirs may be seen any more.
        """

        def asking(tx: Reader) -> Asker | None:
            scope = _holding(tx, looks.view_of(tx, context.session, reference), memory_id)
            if scope is None:
                return None
            return Asker(session=context.session, scope=scope, timezone=context.timezone, may_all=True)

        def noted(tx: Transaction, going: Plan) -> None:
            view = looks.view_of(tx, context.session, reference)
            assert view is not None  # else nobody would be asking
            self._note(tx, context, view, "forget", len(going.memories))

        selection = Selection(what="memories", memory_ids=(memory_id,))
        return await self._forgetting.forget_as(asking, inbox_id, question, selection, "words", noted=noted)

    def _note(self, tx: Transaction, context: Context, view: View, action: Action, found: int) -> None:
        looks.note(
            tx,
            view.owner_id,
            admin_id=context.speaker.id,
            agent_id=context.session.agent_id,
            action=action,
            found=found,
            now=self._now(),
        )

    async def _rank(self, context: Context, reference: str, query: str) -> list[int]:
        """Ids of what answers a query, best first."""
        view = await self._database.read(lambda reader: looks.view_of(reader, context.session, reference))
        scores: dict[int, float] = {}
        for scope in () if view is None else view.scopes:
            for hit in await self._search.find(scope, query, timezone=context.timezone, limit=_SEARCHED):
                if hit.memory is not None:
                    scores[hit.memory.id] = max(hit.score, scores.get(hit.memory.id, 0.0))
        return sorted(scores, key=lambda memory_id: -scores[memory_id])


def _holding(reader: Reader, view: View | None, memory_id: int) -> Scope | None:
    """The scope of a view in which a memory is seen, or the first where it is in none (any more)."""
    scopes = () if view is None else view.scopes
    held = (scope for scope in scopes if memories.by_id(reader, scope, memory_id) is not None)
    return next(held, scopes[0] if scopes else None)
