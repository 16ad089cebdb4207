"""Answers to stored questions: by a button under the question, or by a typed choice.

Invariants: a button names its question, so an old button never answers a newer question. It also tells whether its
message holds nothing but the question, which the answer may then replace. A typed text is taken as an answer only if
it is one of the choices, in any language. A word that says yes to anything never settles a question whose preset is
"no", neither way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from channels.base import Button
from gateway.commands.catalogue import CATALOGUE
from gateway.commands.texts import Texts
from memory.service import Question

#: Prefix of the data of a question's button, before the question's id and the choice.
_ANSWER = "answer:"
#: Suffix of that data where the question is a message of its own.
_ALONE = ":alone"
#: The result for a typed word that may mean yes, where only the exact word counts: see `typed`.
UNSURE: Final = "unsure"


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words that say yes or no to anything, and those that may stand beside them.
_YES: Final = _words(
    "yes y yep yeah ok okay sure 是 是的 好 好的 好啊 可以 行 对 确定 ja jo klar gerne jawohl sí si claro vale oui"
    " ouais はい うん ええ お願いします"
)
_NO: Final = _words(
    "no n nope cancel 否 不 不要 不用 不是 取消 nein nee ne abbrechen cancela non いいえ いや やめて 違います ちがう"
)
_POLITE: Final = _words(
    "please thanks thank you bitte danke gern por favor gracias s'il te plaît vous plait merci d'accord bien sûr"
    " 请 谢谢 吧 お願いします ください お願い"
)
#: Words that may stand in a choice beside its own, and words that answer without choosing.
_BESIDE: Final = _words("the just only too also nur bloß die das la las el los solo le les")
_VAGUE: Final = _words(
    "1 2 3 maybe perhaps hm hmm um what which huh both all everything vielleicht was welche alles beides quizás qué"
    " ambos todo peut-être quoi tout 也许 可能 嗯 什么 哪个 全部 都 たぶん どっち 全部"
)
_WORD: Final = re.compile(r"[\w']+")


def buttons(question: Question, texts: Texts, *, alone: bool = False) -> tuple[Button, ...]:
    """Returns one button per choice. The question is `alone` if its message says nothing else."""
    end = _ALONE if alone else ""
    return tuple(Button(label=texts(name), data=f"{_ANSWER}{question.id}:{name}{end}") for name in question.choices)


def pressed(data: str) -> tuple[int, str] | None:
    """Returns the question's id and the choice that a button stands for; None when it is no question's button."""
    if not data.startswith(_ANSWER):
        return None
    number, _, name = data.removeprefix(_ANSWER).removesuffix(_ALONE).partition(":")
    return (int(number), name) if number.isdecimal() and len(number) < 19 else None


def is_alone(data: str) -> bool:
    """Returns whether a question's button stands under nothing but the question."""
    return data.startswith(_ANSWER) and data.endswith(_ALONE)


def typed(question: Question, text: str) -> str | None:
    """Returns the choice that a typed text makes in an open question; None when the text is no answer to it.

    Returns `UNSURE` if the text says yes in passing to something that can't be undone, or if it is an answer that
    chooses nothing: the question stays open.
    """
    said = text.strip().strip(".!。！").casefold()
    for name in question.choices:
        if said in {CATALOGUE[language][name].casefold() for language in CATALOGUE} | {name}:
            return name
    words = _WORD.findall(said.replace("’", "'"))
    for name in question.choices:
        if any(_names(words, CATALOGUE[language][name]) for language in CATALOGUE):
            return name
    plain = {word for word in words if word not in _POLITE} or set(words)
    if said in _YES or (plain and plain <= _YES):
        return UNSURE if question.preset == "no" else question.preset
    if "no" in question.choices and (said in _NO or (plain and plain <= _NO)):
        return "no"
    return UNSURE if said in _VAGUE else None


def _names(said: Sequence[str], label: str) -> bool:
    """Returns whether words are those of a choice's label, with its main word: "only the memory", "the words"."""
    words = _WORD.findall(label.casefold())
    main = max(words, key=len)
    return len(words) > 1 and main in said and set(said) <= {*words, *_BESIDE}
