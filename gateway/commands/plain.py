"""Plain words that ask for a command: "forget that", "that's wrong", 忘掉这个.

Invariants: only a message that is nothing but such words is taken for a request, and only where there is something it
can mean; it changes nothing by itself, but offers what to press or type.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from channels.base import Button
from gateway.commands.call import Asking, Call

Request: TypeAlias = Literal["forget", "wrong"]

#: What is meant is short; a longer message says something of its own.
_LONGEST: Final = 60
_THAT = r"(?:that|this|it all|what i (?:just )?(?:said|told you)|my last message)"
_PLEASE = r"(?:please |pls |can you |could you |no,? |oh,? |sorry,? )?"
# "Forget it" is left out: it mostly means "never mind".
# Nor is "delete that" here: it mostly means something the model has written.
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


def requested(text: str) -> Request | None:
    """What a message asks for that consists of nothing but such words."""
    if len(text) > _LONGEST:
        return None
    said = " ".join(text.replace("’", "'").split()).strip(" .!。！~").lower()
    if _FORGET.fullmatch(said):
        return "forget"
    return "wrong" if _WRONG.fullmatch(said) else None


async def offer(call: Call, request: Request) -> bool:
    """Offer to forget what can be meant; False where there is nothing, and the words are ordinary talk.

    Wrong is what the answer has said of what is remembered: anything else is between the person and the model.
    """
    at_hand = await call.memory.turns.at_hand(call.context)
    meant = at_hand.quoted
    if request == "forget":
        meant = tuple({memory.id: memory for memory in (*at_hand.learned, *at_hand.quoted)}.values())
    said = at_hand.turn_id if request == "forget" else None
    if not meant and said is None:
        return False
    texts = call.texts
    lines = [texts(f"plain.{request}" if meant else "plain.message")]
    lines += [f"  {memory.short_id}  {call.phrase(memory)}" for memory in meant]
    pressed = [
        call.button(texts("plain.button.memory", id=memory.short_id), f"/forget {memory.short_id}") for memory in meant
    ]
    if meant:
        lines.append(texts(f"plain.{request}.how", id=meant[0].short_id))
    if said is not None:
        pressed.append(call.button(texts("plain.button.message"), f"/undo {said}"))
        lines.append(texts("plain.undo"))
    buttons: tuple[Button, ...] = tuple(one for one in pressed if one is not None)
    await call.do(lambda _desk: Asking(text="\n".join(lines), buttons=buttons))
    return True
