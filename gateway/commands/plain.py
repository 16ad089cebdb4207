"""Requests in plain words that stand for a command: "forget that", "that's wrong", 忘掉这个.

Invariants: a message is taken for a request only if it consists of nothing but such words and there is something they
can refer to. A request changes nothing by itself; it is answered with buttons and commands to choose from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from channels.base import Button
from gateway.commands.call import Asking, Call
from gateway.commands.forget import forget
from gateway.commands.session import undo
from languages import words
from memory.learn.offline.changes import to_forget


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request in plain words: to forget what was just said, that it is wrong, not to keep the message that it stands
    in, to take back the last message, or to forget `what` it names."""

    kind: Literal["forget", "wrong", "unkept", "undo", "topic"]
    what: str = ""


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
    texts = call.texts
    lines = [texts(f"plain.{request.kind}" if meant else "plain.message")]
    lines += [f"  {memory.short_id}  {call.phrase(memory)}" for memory in meant]
    pressed = [
        call.button(texts("plain.button.memory", id=memory.short_id), f"/forget {memory.short_id}") for memory in meant
    ]
    if meant:
        lines.append(texts(f"plain.{request.kind}.how", id=meant[0].short_id))
    if turn_id is not None:
        pressed.append(call.button(texts("plain.button.message"), f"/undo {turn_id}"))
        lines.append(texts("plain.undo"))
    buttons: tuple[Button, ...] = tuple(button for button in pressed if button is not None)
    await call.do(lambda _edits: Asking(text="\n".join(lines), buttons=buttons))
    return True
