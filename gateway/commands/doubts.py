"""The answer to the question which of two memories holds."""

from __future__ import annotations

from typing import cast

from gateway.commands.call import Call
from memory.chat.edits import Edits
from memory.errors import NotCurrent
from memory.jobs.comparisons import DoubtAnswer
from memory.store.questions import Question


async def answer(call: Call, question: Question, taken: str) -> None:
    chosen = cast("DoubtAnswer", taken)

    def act(edits: Edits) -> str:
        try:
            doubt, is_open = edits.decide(question, chosen)
        except NotCurrent:
            return call.texts("answer.over")
        if not is_open:
            return call.texts("answer.over")
        if chosen == "both":
            return call.texts("doubt.both")
        return call.texts("doubt.kept", said=call.phrase(doubt.older if chosen == "older" else doubt.newer))

    await call.do(act, in_place=True)
