"""How a stored question is answered: by a button under it, or by a typed choice.

Invariants: a button names its question, so an old one never answers a newer question; it tells whether there is
nothing but the question in its message, which the answer may then replace; what is typed is taken as an answer only
when it is one of the choices, in any language; a word that says yes to anything never settles a question whose preset
is "no", neither way.
"""

from __future__ import annotations

from typing import Final

from channels.base import Button
from gateway.catalogue import CATALOGUE
from gateway.texts import Texts
from memory.service import Question

#: What a question's button carries, before the question's id and the choice.
_ANSWER = "answer:"
#: What it ends in where the question is a message of its own.
_ALONE = ":alone"
#: What stands for a typed word that may mean yes, where only the very word does: see `typed`.
UNSURE: Final = "unsure"
_YES = frozenset({"yes", "y", "ok", "okay", "sure", "是", "是的", "好", "好的", "对", "确定"})
_NO = frozenset({"no", "n", "cancel", "否", "不", "不要", "不用", "取消"})


def buttons(question: Question, texts: Texts, *, alone: bool = False) -> tuple[Button, ...]:
    """One button a choice. The question is `alone` where nothing else is said in its message."""
    end = _ALONE if alone else ""
    return tuple(Button(label=texts(name), data=f"{_ANSWER}{question.id}:{name}{end}") for name in question.choices)


def pressed(data: str) -> tuple[int, str] | None:
    """The question's id and the choice that a button stands for; None when it is no question's."""
    if not data.startswith(_ANSWER):
        return None
    number, _, name = data.removeprefix(_ANSWER).removesuffix(_ALONE).partition(":")
    return (int(number), name) if number.isdecimal() and len(number) < 19 else None


def is_alone(data: str) -> bool:
    """Whether a question's button stands under nothing but the question."""
    return data.startswith(_ANSWER) and data.endswith(_ALONE)


def typed(question: Question, text: str) -> str | None:
    """Which choice of an open question a typed answer takes; None when it is no answer to it.

    `UNSURE` where it says yes in passing to what can't be undone: the question stays open.
    """
    said = text.strip().strip(".!。！").casefold()
    for name in question.choices:
        if said in {CATALOGUE[language][name].casefold() for language in CATALOGUE} | {name}:
            return name
    if said in _YES:
        return UNSURE if question.preset == "no" else question.preset
    return "no" if said in _NO and "no" in question.choices else None
