"""Calls of tools outside the store: each is made at most once, and some wait for a person's agreement.

Invariants: before a call is made, it is noted that it begins; one that has begun and not ended is never made again. A
question about a call holds no words: the call stands in the step of its turn, and goes with it. An agreement belongs to
the message that gave it, so it holds for one turn and survives a restart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.chat.turns import TAKEN_BACK, Turn
from memory.context import StorePart, in_read, in_write
from memory.store import history, questions, settings
from memory.store.database import Reader, Transaction
from memory.store.questions import Question

#: The purpose of the question whether a call may be made.
CALL: Final = "call"
#: The result of a call that a restart has cut off; read by the model.
_CUT_OFF: Final = (
    "Error: a restart cut this call off. It is unknown whether it was carried out. It is not repeated: tell the person."
)
#: The prefix of the setting that holds the definitions of a server's tools.
_TOOLS: Final = "tools:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedCall:
    """A call that a person has agreed to, with its arguments as JSON."""

    tool: str
    arguments: str


class OutsideCalls(StorePart):
    @in_write
    def begin(self, tx: Transaction, turn: Turn, n: int, i: int, tool: str) -> str | None:
        """Notes that a call begins. If it must not be made, returns the text for the model instead."""
        found = history.effect(tx, turn.id, n, i)
        if found is not None:
            return found[1] or _CUT_OFF
        said = tuple(message.id for message in turn.said)
        if not history.between(tx, turn.context.session.id, said[0], said[-1]):
            return TAKEN_BACK
        history.begin_effect(tx, turn.id, n, i, tool, now=self._now())
        return None

    async def end(self, turn: Turn, n: int, i: int, tool: str, result: str) -> None:
        await self._database.write(lambda tx: history.keep_effect(tx, turn.id, n, i, tool, result, now=self._now()))

    @in_write
    def agree(self, tx: Transaction, question: Question, answer: str, inbox_id: int) -> bool:
        """Closes a question with a yes for the turn that answers this inbox row. Returns False if it is closed."""
        return questions.settle(tx, question.id, answer, inbox_id=inbox_id)

    async def is_agreed(self, inbox_ids: Sequence[int]) -> bool:
        return await self._database.read(lambda reader: questions.settled_by(reader, CALL, inbox_ids)) is not None

    @in_read
    def agreed(self, reader: Reader, turn: Turn) -> AgreedCall | None:
        """Returns the call that the messages of this turn agree to; None if there is none, or if it was forgotten."""
        payload = questions.settled_by(reader, CALL, turn.inbox_ids)
        return None if payload is None else _named(reader, payload)

    async def asked(self, question: Question) -> AgreedCall | None:
        return await self._database.read(lambda reader: _named(reader, question.payload))

    async def tools(self, name: str) -> str:
        """Returns the definitions of a server's tools, as they were kept; '' if there are none."""
        return await self._database.read(lambda reader: settings.value(reader, _TOOLS + name) or "")

    async def keep_tools(self, name: str, definitions: str) -> None:
        await self._database.write(lambda tx: settings.put(tx, _TOOLS + name, definitions))


def _named(reader: Reader, payload: str) -> AgreedCall | None:
    """Returns the call that the payload of a question names; None if it was forgotten."""
    meant = json.loads(payload)
    steps = history.steps(reader, meant["turn"])
    if meant["n"] >= len(steps):
        return None
    wanted = json.loads(steps[meant["n"]])["tool_calls"][meant["i"]]
    return AgreedCall(tool=wanted["name"], arguments=wanted["arguments"])
