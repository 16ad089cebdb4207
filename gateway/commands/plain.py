"""Requests in plain words that stand for a command: "forget that", "that's wrong", 忘掉这个.

Invariants: a message is taken for a request only if it consists of nothing but such words and there is something they
can refer to. A request changes nothing by itself; it is answered with buttons and commands to choose from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from channels.base import Button
from gateway.commands.call import Asking, Call
from gateway.commands.forget import forget
from gateway.commands.session import undo
from memory.learn.offline.changes import to_forget


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request in plain words: to forget what was just said, that it is wrong, not to keep the message that it stands
    in, to take back the last message, or to forget `what` it names."""

    kind: Literal["forget", "wrong", "unkept", "undo", "topic"]
    what: str = ""


#: Longest request, in characters; a longer message says something of its own.
_LONGEST: Final = 60
_THAT = r"(?:that|this|it all|what i (?:just )?(?:said|told you)|my last message)"
_PLEASE = r"(?:please |pls |can you |could you |no,? |oh,? |sorry,? )?"
# "Forget it" is left out because it mostly means "never mind", "delete that" because it mostly means a text the model
# has written.
_FORGET: Final = re.compile(
    rf"{_PLEASE}(?:forget (?:about )?{_THAT}"
    rf"|(?:don't|do not) (?:remember|keep|save|store) {_THAT})(?: please| again| right away)?"
    r"|(?:请|麻烦|帮我)?(?:忘掉|忘记|忘了)(?:这个|那个|这件事|那件事|这条|那条|我刚才说的|刚才的话|刚才那句)(?:吧)?"
    r"|(?:请|麻烦|帮我)?(?:把|将)?(?:这个|那个|这件事|那件事|这条|那条|我刚才说的|刚才的话)(?:忘掉|忘记|忘了)(?:吧)?"
    r"|(?:请)?(?:别|不要)(?:记住|记|保存)(?:这个|那个|这件事|这条|我刚才说的)"
)
_WRONG: Final = re.compile(
    r"(?:no,? )?(?:that|this)(?:'s| is| was)(?: just| all)? (?:wrong|not (?:true|right|correct)|incorrect|false)"
    r"|(?:that|this) isn't (?:true|right|correct)"
    r"|you (?:got|have|remember(?:ed)?) (?:that|it|this) wrong|you remember wrong(?:ly)?"
    r"|(?:这|那)(?:是错的|不对|不是真的|说错了|错了)|你(?:记错|搞错|弄错)了"
)
# Behind or before something else that is said: "my locker code is 3391, don't save that".
_NOT_KEEP = (
    r"(?:(?:but|so|and|aber|und|mais|et|pero|y) )?(?:please |pls |bitte |por favor )?(?:"
    r"(?:don't|dont|do not|never) (?:save|keep|store|remember|note)(?: down)? (?:that|this|it|any of (?:that|this|it))"
    r"|(?:merk dir|speicher|speichere|notier|notiere|behalt|behalte) (?:das|dies|es) (?:bitte )?nicht"
    r"|(?:das |dies |es )?(?:bitte )?nicht (?:merken|speichern|notieren|behalten)"
    r"|ne (?:le |la |l'|garde pas |note pas )?(?:garde|note|retiens|enregistre|mémorise)s? pas(?: (?:ça|cela))?"
    r"|no (?:lo|la|los|las) (?:guardes|apuntes|recuerdes|anotes)|no (?:guardes|apuntes|recuerdes) (?:eso|esto)"
    r"|(?:请|麻烦)?(?:别|不要)(?:记住|记下来|记下|记|保存|存)(?:这个|这条|它)?"
    r"|(?:これは|それは)?(?:覚え|保存し|記録し|記憶し)ないで(?:ください|ね)?"
    r")(?: please| pls| anywhere| bitte| por favor)?"
)
_UNKEPT: Final = re.compile(rf"(?s:.+[,.;:!、，。；！\n–—-]) ?{_NOT_KEEP}|{_NOT_KEEP} ?(?s:[,.;:!、，。；！\n–—-].+)")
_UNDO: Final = re.compile(
    rf"{_PLEASE}(?:undo(?: (?:{_THAT}|it|the last (?:one|message)))?|take (?:that|it) back)(?:,? please)?"
    r"|(?:bitte )?(?:mach(?:e)? (?:das|es) )?(?:bitte )?(?:wieder )?rückgängig(?: machen)?(?: bitte)?"
    r"|deshacer|deshaz(?:lo| eso)|défaire|défais (?:ça|cela)|(?:请|帮我)?(?:撤销|撤回)(?:这个|那个|上一条|这条)?(?:吧)?"
    r"|(?:それを?)?元に戻して(?:ください|ね)?"
)
#: Requests to ask no more how plans went.
_ENOUGH: Final = re.compile(
    r"(?:please |ok,? |no,? )?(?:stop|quit) asking(?: me)?(?: (?:that|this|about (?:that|this|it|my plans)|such things"
    r"|questions))?(?: please)?"
    r"|(?:please |ok,? |no,? )?(?:don't|do not|never) ask(?: me)?(?: (?:that|this|about (?:that|this|it|my plans)|such"
    r" things))?(?: again| any ?more| please){0,2}"
    r"|(?:bitte )?(?:frag|frage) (?:mich )?(?:bitte )?(?:das |danach |sowas |so etwas |nach meinen plänen )?(?:bitte )?"
    r"nicht (?:mehr|wieder)(?: danach| nach meinen plänen)?"
    r"|höre? (?:bitte )?auf(?: mich)?(?: sowas| das)? zu fragen"
    r"|(?:por favor,? )?(?:no me (?:lo )?preguntes|no preguntes|deja de preguntar(?:me)?)(?: (?:eso|esto|por eso"
    r"|por mis planes))?(?: más| nunca| otra vez)?"
    r"|(?:s'il te plaît,? )?(?:arrête de (?:me )?(?:demander|poser (?:cette question|ces questions))"
    r"|ne (?:me )?(?:le )?demandes? plus)(?: (?:ça|cela))?"
    r"|(?:请|拜托|以后|你)*(?:别|不要|不用)再?问(?:我)?(?:了|这个|这些|这件事|这种事|我的计划)*(?:了|吧|啦)?"
    r"|(?:もう|そういうことは|それは|これは)*(?:聞かないで|聞くのをやめて|聞くのはやめて|尋ねないで)(?:ください|ね|よ)?"
)


def ends_questions(text: str) -> bool:
    """Returns whether a message only asks for an end of such questions."""
    return len(text) <= _LONGEST and _ENOUGH.fullmatch(_plainly(text)) is not None


def requested(text: str, *, modelless: bool) -> PlainRequest | None:
    """Returns the request that a message makes if it consists of nothing but such words, else None.

    Requests to forget something by name, not to keep the message that they stand in, or to undo are read here only for
    an agent without a model: a model has a tool for the first, answers the rest of the second, and may itself have done
    something that is to be undone.
    """
    if len(text) <= _LONGEST:
        words = _plainly(text)
        if _FORGET.fullmatch(words):
            return PlainRequest("forget")
        if _WRONG.fullmatch(words):
            return PlainRequest("wrong")
        if modelless and _UNDO.fullmatch(words):
            return PlainRequest("undo")
    if modelless and _UNKEPT.fullmatch(_plainly(text)):
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
