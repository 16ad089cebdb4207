"""Answers to stored questions: by a button under the question, or by a typed choice.

Invariants: a button names its question, so an old button never answers a newer question. It also tells whether its
message holds nothing but the question, which the answer may then replace. A typed text is taken as an answer only if
it is one of the choices, in any language, or the number of one. A word that says yes to anything never settles a
question whose preset is "no", neither way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from channels.base import Button, Channel
from gateway.pipeline.delivery import pieces
from gateway.wording import phrases
from gateway.wording.texts import CATALOGUE, Texts
from memory.context import Context
from memory.service import Service
from memory.store.memories import Memory
from memory.store.questions import Question

#: Prefix of the data of a question's button, before the question's id and the choice.
_ANSWER = "answer:"
#: Suffix of that data if the question is a message of its own.
_ALONE = ":alone"
#: The choice that lets a tool be called.
DO: Final = "do"
#: The result for a typed word that may mean yes if only the exact word counts: see `typed`.
UNSURE: Final = "unsure"
#: The result for a typed text that seems to answer, but not how: see `typed`.
UNCLEAR: Final = "unclear"


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
#: Phrases that say yes in words that say nothing by themselves.
_ASSENT: Final = frozenset(
    ("go ahead", "do it", "go for it", "of course", "yes do it", "of course please", "bien sûr", "d'accord",
     "por supuesto", "adelante", "de acuerdo", "mach das", "mach es", "na klar",
     "当然", "没问题", "好啊", "もちろん", "お願い")
)  # fmt: skip
#: The words of answers that express doubt.
_DOUBT: Final = _words(
    "maybe perhaps possibly hm hmm hmmm um uh er idk dunno not sure unsure i don't know either both which what huh"
    " vielleicht weiß weiss nicht ich keine ahnung mal sehen quizás quizá quizas tal vez no sé se acaso"
    " peut-être peut être je ne sais pas 也许 可能 可能吧 不知道 不确定 不太确定 随便 嗯"
    " たぶん 多分 わからない 分からない"
)
#: Words at least one of which stands in such an answer: "no" or "not" alone are clear.
_DOUBTING: Final = _DOUBT - _words("i no not nicht ich mal se ne je pas keine tal vez er both either which")
#: The most words of an unclear answer that begins with a yes: a longer text says something of its own.
_MOST_UNCLEAR: Final = 5
#: The number of a choice, perhaps with what people write around it.
_NUMBER: Final = re.compile(r"(?:no\.? ?|nr\.? ?|number |option |第|#|\()?(\d{1,2})(?:[.)）、]|个|项|番)?")
_ORDINALS: Final = tuple(map(_words, (
    "first 1st one erste ersten erstes primero primera premier première 一 第一 第一个 第一项 一番目 最初",
    "second 2nd two zweite zweiten zweites segundo segunda deuxième second 二 第二 第二个 第二项 二番目",
    "third 3rd three dritte dritten drittes tercero tercera troisième 三 第三 第三个 第三项 三番目",
)))  # fmt: skip
_AROUND_ORDINALS: Final = _words("the one option number choice please das die der den el la lo le opción choix bitte")
#: Words that may stand in a choice beside its own.
_BESIDE: Final = _words("the just only too also nur bloß die das la las el los solo le les")
_WORD: Final = re.compile(r"[\w']+")


def answering(question: Question, choice: str) -> str:
    return f"{_ANSWER}{question.id}:{choice}"


def buttons(question: Question, texts: Texts, *, alone: bool = False) -> tuple[Button, ...]:
    end = _ALONE if alone else ""
    return tuple(Button(label=label(texts, name), data=answering(question, name) + end) for name in question.choices)


def answered_by(question: Question, *, yes: bool) -> str | None:
    """Returns the data of the button that a yes or a no under the question stands for; None if there is none.

    A yes is none where the preset is "no": what it would do can't be undone, or acts outside.
    """
    if yes and question.preset == "no":
        return None
    others = [choice for choice in question.choices if choice != "no"]
    only = others[0] if len(others) == 1 else ""
    meant = (question.preset if question.preset in others else only) if yes else "no"
    return answering(question, meant) if meant in question.choices else None


def label(texts: Texts, choice: str) -> str:
    """Returns the words for a choice; the id of a memory stands for itself."""
    return texts(choice) if choice in CATALOGUE[texts.language] else choice


def pressed(data: str) -> tuple[int, str] | None:
    """Returns the question's id and the choice that a button stands for; None when it is no question's button."""
    if not data.startswith(_ANSWER):
        return None
    number, _, name = data.removeprefix(_ANSWER).removesuffix(_ALONE).partition(":")
    return (int(number), name) if number.isdecimal() and len(number) < 19 else None


def goes_on(data: str | None) -> bool:
    """Returns whether a press lets the model go on, so that it has its turn like a message."""
    taken = pressed(data or "")
    return taken is not None and taken[1] == DO


def holds_the_question(data: str) -> bool:
    """Returns whether the message of a question's button holds only the question."""
    return data.startswith(_ANSWER) and data.endswith(_ALONE)


def typed(question: Question, text: str) -> str | None:
    """Returns the choice that a typed text makes in an open question; None when the text is no answer to it.

    Returns `UNSURE` if the text says yes in passing to something that can't be undone, and `UNCLEAR` if it doubts, says
    yes to something else or gives a number that no choice has: the question stays open.
    """
    said = text.strip().strip(".!。！").casefold()
    for name in question.choices:
        if said in {CATALOGUE[language].get(name, name).casefold() for language in CATALOGUE} | {name}:
            return name
    words = _WORD.findall(said.replace("’", "'"))
    for name in question.choices:
        if any(_names(words, CATALOGUE[language].get(name, name)) for language in CATALOGUE):
            return name
    plain = {word for word in words if word not in _POLITE} or set(words)
    if said in _YES or said in _ASSENT or (plain and plain <= _YES):
        return UNSURE if question.preset == "no" else question.preset
    if "no" in question.choices and (said in _NO or (plain and plain <= _NO)):
        return "no"
    return _by_number(question, said, words) or (UNCLEAR if _is_unclear(said, words) else None)


def _by_number(question: Question, said: str, words: Sequence[str]) -> str | None:
    """Returns the choice with the number that was typed; None if the text is no number."""
    number = int(digits[1]) if (digits := _NUMBER.fullmatch(said)) is not None else 0
    named = {word for word in words if word not in _AROUND_ORDINALS} or set(words)
    if not number and named:
        number = next((n for n, ordinals in enumerate(_ORDINALS, 1) if named <= ordinals), 0)
    if not number:
        return None if digits is None else UNCLEAR
    if number > len(question.choices):
        return UNCLEAR
    choice = question.choices[number - 1]
    return UNSURE if question.preset == "no" and choice != "no" else choice


def _is_unclear(said: str, words: Sequence[str]) -> bool:
    """Returns whether a text seems to answer, but not how: it doubts, or adds something to its yes."""
    if said in _DOUBT or (not _DOUBTING.isdisjoint(words) and _DOUBT.issuperset(words)):
        return True
    return 1 < len(words) <= _MOST_UNCLEAR and words[0] in _YES and not said.endswith(("?", "？"))


def _names(said: Sequence[str], label: str) -> bool:
    """Returns whether words name a choice by the main word of its label: "only the memory", "the words"."""
    words = _WORD.findall(label.casefold())
    main = max(words, key=len)
    return len(words) > 1 and main in said and set(said) <= {*words, *_BESIDE}


#: Characters shown of a memory.
_LINE = 200


async def ask_doubt(memory: Service, context: Context, texts: Texts, channel: Channel | None) -> bool:
    """Asks the speaker about the next doubt that waits for them here. Returns False if there is none."""

    def line(one: Memory) -> str:
        said = " ".join(phrases.tell(one, context, language=texts.language).split())
        cut = said if len(said) <= _LINE else f"{said[: _LINE - 1]}…"
        return f"{cut} ({texts.date(one.valid_from)})"

    # A plain "yes" tells nothing, so it takes no choice.
    return await memory.doubts.ask(
        context,
        UNCLEAR,
        lambda doubt, question: pieces(
            channel,
            texts("doubt.ask", older=line(doubt.older), newer=line(doubt.newer)),
            buttons=buttons(question, texts, alone=True),
        ),
    )
