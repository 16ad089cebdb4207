"""Two facts that can't both hold: their person is asked once, in one short question, and their word decides.

Invariants: a doubt waits as a row until the transaction that queues its question, so a crash before that loses nothing
and a crash after it asks nobody twice. People are asked only about facts that they may change, in the place of these:
about their own in a private chat, about the group's in the group. The question holds ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from memory.context import Context, anew
from memory.forgetting import choose
from memory.jobs import compare
from memory.jobs.compare import DoubtAnswer, FactPair
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.scope import Scope
from memory.store import memories, questions
from memory.store.database import Database, Reader, Transaction
from memory.store.memories import Memory
from memory.store.questions import Question

#: The purpose of the question which of two facts holds, and its choices.
DOUBT: Final = "doubt"
CHOICES: Final[tuple[DoubtAnswer, ...]] = get_args(DoubtAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDoubt:
    """Two facts that can't both hold, in the order in which they were told."""

    older: Memory
    newer: Memory


class Doubts:
    def __init__(self, database: Database, mailbox: Mailbox, *, now: Callable[[], int]) -> None:
        self._database = database
        self._mailbox = mailbox
        self._now = now

    async def ask(
        self, context: Context, preset: str, compose: Callable[[FactDoubt, Question], Sequence[Part]]
    ) -> bool:
        """Puts the next doubt that waits for the speaker here. Returns False if there is none.

        `compose` makes the question's message; a plain "yes" takes the choice `preset`. Another open question comes
        first: then the doubt goes on waiting.
        """
        # Often there is none, which must not cost a write.
        if await self._database.read(lambda reader: _next(reader, context, now=self._now())) is None:
            return False

        def act(tx: Transaction) -> bool:
            doubt = _next(tx, context, now=self._now())
            if doubt is None:
                return False
            pair = FactPair(older=doubt.older.id, newer=doubt.newer.id)
            session, asker = context.session, context.speaker.id
            payload = {"older": pair.older, "newer": pair.newer}
            question = questions.ask(tx, self._now(), session.id, asker, DOUBT, payload, choices=CHOICES, preset=preset)
            compare.note_asked(tx, pair, now=self._now())
            self._mailbox.post(tx, Outgoing(session_key=session.key, pieces=tuple(compose(doubt, question))))
            return True

        return await self._database.write(act)


def of_question(reader: Reader, scope: Scope, question: Question) -> FactDoubt | None:
    asked = json.loads(question.payload)
    return _doubt(reader, scope, FactPair(older=asked["older"], newer=asked["newer"]))


def _next(reader: Reader, context: Context, *, now: int) -> FactDoubt | None:
    session, speaker = context.session, context.speaker
    if questions.open_to(reader, session_id=session.id, asker_id=speaker.id, now=now) is not None:
        return None
    scope = anew(reader, context).scope
    owners = scope.own if scope.private else (scope.writes_to,)
    for pair in compare.waiting(reader, scope, owners, now=now):
        if (doubt := _doubt(reader, scope, pair)) is not None:
            return doubt
    return None


def _doubt(reader: Reader, scope: Scope, pair: FactPair) -> FactDoubt | None:
    found = [memory for memory in memories.by_ids(reader, scope, [pair.older, pair.newer]) if memory.live]
    if len(found) < 2 or not all(choose.may_change(row, scope) for row in found):
        return None
    return FactDoubt(older=found[0], newer=found[1])
