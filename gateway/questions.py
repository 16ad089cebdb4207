"""How a stored question is answered: by a button under it, or by a typed choice.

Invariants: a button names its question, so an old one never answers a newer question; what is typed is taken as an
answer only when it is one of the choices, in any language.
"""

from __future__ import annotations

from channels.base import Button
from gateway.texts import CATALOGUE, Texts
from memory.service import Question

#: What a question's button carries, before the question's id and the choice.
_ANSWER = "answer:"
_YES = frozenset({"yes", "y", "ok", "okay", "sure", "是", "是的", "好", "好的", "对", "确定"})
_NO = frozenset({"no", "n", "cancel", "否", "不", "不要", "不用", "取消"})


def buttons(question: Question, texts: Texts) -> tuple[Button, ...]:
    """One button a choice."""
    return tuple(Button(label=texts(name), data=f"{_ANSWER}{question.id}:{name}") for name in question.choices)


def pressed(data: str) -> tuple[int, str] | None:
    """The question's id and the choice that a button stands for; None when it is no question's."""
    if not data.startswith(_ANSWER):
        return None
    number, _, name = data.removeprefix(_ANSWER).partition(":")
    return (int(number), name) if number.isdecimal() and len(number) < 19 else None


def typed(question: Question, text: str) -> str | None:
    """Which choice of an open question a typed answer takes; None when it is no answer to it."""
    said = text.strip().strip(".!。！").casefold()
    for name in question.choices:
        if said in {CATALOGUE[language][name].casefold() for language in CATALOGUE} | {name}:
            return name
    if said in _YES:
        return question.preset
    return "no" if said in _NO and "no" in question.choices else None
