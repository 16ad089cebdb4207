"""Requests in plain words that stand for a command: "forget that", "that's wrong", 忘掉这个.

Invariants: a message is taken for a request only if it consists of nothing but such words and there is something they
can refer to. A request changes nothing by itself; it is answered with a question, which may be answered in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from channels.base import Button
from gateway.commands.call import Asking, Call
from gateway.commands.forget import ask, forget
from gateway.commands.session import undo
from gateway.pipeline.questions import UNCLEAR
from languages import words
from memory.chat.edits import Edits
from memory.forgetting.choose import Selection
from memory.learn.offline.changes import to_forget
from memory.store.memories import Memory
from memory.store.questions import Question


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request in plain words: to forget what was just said, that it is wrong, not to keep the message that it stands
    in, to take back the last message, or to forget `what` it names."""

    kind: Literal["forget", "wrong", "unkept", "undo", "topic"]
    what: str = ""


#: The purpose of the question which is meant, and its choice for the last message; memories are chosen by their ids.
PICK: Final = "pick"
_MESSAGE: Final = "plain.button.message"
#: Longest request, in characters; a longer message says something of its own.
_LONGEST: Final = 60


@cache
def _says(request: str) -> re.Pattern[str]:
    """Returns the words of a request in all languages; not to keep something is said beside what it is."""
    said = f"(?:{words('claims', 'requests')[request]})"
    return re.compile(
        said if request != "unkept" else rf"(?s:.+[,.;:!、，。；！\n–—-]) ?{said}|{said} ?(?s:[,.;:!、，。；！\n–—-].+)"
    )


def ends_questions(text: str) -> bool:
    """Returns whether a message only asks for an end of such questions."""
    return len(text) <= _LONGEST and _says("enough").fullmatch(_plainly(text)) is not None


def requested(text: str, *, modelless: bool) -> PlainRequest | None:
    """Returns the request that a message makes if it consists of nothing but such words, else None.

    Requests to forget something by name, not to keep the message that they stand in, or to undo are read here only for
    an agent without a model: a model has a tool for the first, answers the rest of the second, and may itself have done
    something that is to be undone.
    """
    if len(text) <= _LONGEST:
        said = _plainly(text)
        if _says("forget").fullmatch(said):
            return PlainRequest("forget")
        if _says("wrong").fullmatch(said):
            return PlainRequest("wrong")
        if modelless and _says("undo").fullmatch(said):
            return PlainRequest("undo")
    if modelless and _says("unkept").fullmatch(_plainly(text)):
        return PlainRequest("unkept")
    what = to_forget(text) if modelless else None
    return None if what is None else PlainRequest("topic", what)


def _plainly(text: str) -> str:
    return " ".join(text.replace("’", "'").split()).strip(" .!。！~").lower()


async def offer(call: Call, request: PlainRequest) -> bool:
    """Offers to forget what the request can refer to; False if there is nothing, and the words are ordinary talk."""
    if request.kind == "unkept":
        # A request is no message of the talk, so nothing of it is written down.
        await call.say(call.texts("plain.unkept"))
        return True
    if request.kind == "undo":
        await undo(call)
        return True
    if request.kind == "topic":
        await forget(replace(call, arguments=request.what), request=call.inbound.text)
        return True
    at_hand = await call.memory.turns.at_hand(call.context)
    meant = at_hand.quoted
    if request.kind == "forget" or call.agent.offline:
        meant = tuple({memory.id: memory for memory in (*at_hand.learned, *at_hand.quoted)}.values())
    turn_id = at_hand.turn_id if request.kind == "forget" else None
    if not meant and turn_id is None:
        return False
    if request.kind == "forget" and len(meant) == 1:
        await forget(replace(call, arguments=meant[0].short_id))
    elif not meant:
        said = Selection(what="memories", message_ids=at_hand.said)
        await ask(call, await call.memory.forgetting.preview_of(call.context, said))
    else:
        await _ask_which(call, request.kind, meant, turn_id)
    return True


async def _ask_which(call: Call, kind: str, meant: Sequence[Memory], turn_id: int | None) -> None:
    texts = call.texts
    choices = [memory.short_id for memory in meant]
    lines = [texts(f"plain.{kind}")]
    lines += [f"  {n}. {memory.short_id}  {call.phrase(memory)}" for n, memory in enumerate(meant, 1)]
    pressed = [call.button(texts("plain.button.memory", id=short_id), f"/forget {short_id}") for short_id in choices]
    if turn_id is not None:
        choices.append(_MESSAGE)
        pressed.append(call.button(texts(_MESSAGE), f"/undo {turn_id}"))
        lines.append(f"  {len(choices)}. {texts('plain.undo')}")
    lines.append(texts(f"plain.{kind}.how", id=meant[0].short_id))
    buttons: tuple[Button, ...] = tuple(button for button in pressed if button is not None)

    def put(edits: Edits) -> Asking:
        # A plain "yes" tells nothing, so it takes no choice.
        edits.ask(PICK, {"turn": turn_id}, choices=(*choices, "no"), preset=UNCLEAR)
        return Asking(text="\n".join(lines), buttons=buttons)

    await call.do(put)


async def answer_which(call: Call, question: Question, taken: str) -> None:
    if taken == "no":
        await call.decline(question, taken, "forget.kept")
        return
    await call.memory.questions.cancel(question)
    if taken == _MESSAGE:
        await undo(replace(call, arguments=str(json.loads(question.payload)["turn"])))
    else:
        await forget(replace(call, arguments=taken))
