"""A provider without a language model: a memory one can talk to.

Invariants: it never makes anything up: each sentence is fixed text, a fact that was told, or a quotation, with its
day. It never offers a question as an answer. It needs no network and costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from babel.dates import format_date

from agents.budget import READ_OFFLINE
from agents.llm import Completion, OnText, Remembered, Request
from agents.offline.answer import NOTHING, Told, answer, nearest, planned, reminded, sentence, talked
from agents.offline.question import AskedQuestion, Tokens, asked, asks_plans, is_question, social
from agents.offline.speech import OneForm, Speech, Split, speech

#: The beginning of the mask that replaced a secret before anything was kept.
_MASKED: Final = "[secret:"
#: The most reminders that are told to a person who asks about their plans.
_COMING: Final = 5


class OfflineProvider:
    """Implements `agents.llm.Provider` over the values in a request; its messages are not read for meaning."""

    name = "offline"

    def __init__(self, tokens: Tokens, simplified: OneForm, sentences: Split) -> None:
        """Takes functions that split text into words, simplify Chinese characters and split text into sentences."""

        def simple_tokens(text: str) -> Sequence[str]:
            return tokens(simplified(text))

        self._tokens, self._simplified, self._sentences = simple_tokens, simplified, sentences

    def asks(self, text: str, language: str) -> bool:
        """Returns whether a message asks anything, so that its answer may need more than the facts found for it."""
        spoken = speech(language, self._simplified, self._sentences)
        said = _read(text)
        return asks_plans(said, spoken) or any(is_question(one, spoken) for one in spoken.split(spoken.read(said)))

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        spoken = speech(request.language, self._simplified, self._sentences)
        request = replace(request, said=_read(request.said))
        # What is remembered may be long and much.
        text, used = await asyncio.to_thread(_reply, request, spoken, self._tokens)
        if on_text is not None:
            await on_text(text)
        grounds = tuple(place for place, one in enumerate(request.remembered) if one in used)
        return Completion(text=text, model="offline", provider=self.name, grounds=grounds)

    async def aclose(self) -> None:
        return None


def _read(text: str) -> str:
    return text if len(text) <= READ_OFFLINE else f"{text[: READ_OFFLINE // 2]}\n{text[-READ_OFFLINE // 2 :]}"


def _reply(request: Request, spoken: Speech, tokens: Tokens) -> Told:
    texts = spoken.texts
    lines = []
    if request.noted:
        lines.append(texts["noted"].format(list=texts["and"].join(request.noted)))
    if spoken.grief.search(spoken.read(request.said)) and not is_question(request.said, spoken):
        lines.insert(0, texts["sorry"])
    if request.ended:
        lines.append(texts["over"].format(list=texts["and"].join(request.ended)))
    attached = texts["attached"].format(list=texts["and"].join(request.attached)) if request.attached else ""
    used: tuple[Remembered, ...] = ()
    if request.days is not None and asks_plans(request.said, spoken):
        plans, used = planned(request, request.days, spoken)
        lines.append(plans)
    elif request.said.strip():
        told, used = _answered(request, spoken, tokens, noted=bool(lines))
        lines += told
    elif not attached:
        lines.append(texts["wordless"])
    who = texts["who"].format(name=request.agent)
    introduced = any(who in line for line in lines)
    # Whoever is remembered knows it.
    known = bool(request.remembered) or any(message.role == "assistant" for message in request.messages)
    if not introduced and not known:
        lines.append(who)
    return Told("\n".join([*lines, attached] if attached else lines), used)


def _answered(
    request: Request, spoken: Speech, tokens: Tokens, *, noted: bool
) -> tuple[list[str], tuple[Remembered, ...]]:
    texts = spoken.texts
    kinds = () if noted else social(request.said, spoken)
    if kinds:
        return [" ".join(_small_talk(kind, request, spoken) for kind in kinds)], ()
    question = asked(request.said, spoken, tokens)
    if question is None:
        return [] if noted else [_kept(request, texts)], ()
    if (recounted := talked(request, spoken)) is not None:
        return [recounted.text] if recounted.text else _unknown(question, request, texts), recounted.grounds
    return _found(question, request, spoken, tokens, noted=noted)


def _found(
    question: AskedQuestion, request: Request, spoken: Speech, tokens: Tokens, *, noted: bool
) -> tuple[list[str], tuple[Remembered, ...]]:
    """Returns the lines that answer a question from memory or the reminders, and the memories they rest on."""
    found = answer(question, request.remembered, spoken, tokens)
    if not found.text and noted and question.asks is None and not question.about:
        return [], ()
    coming = [one.said for one in request.reminders[:_COMING]] if question.asks and "plan" in question.asks.keys else []
    if found.text or coming:
        return [*filter(None, [found.text]), *coming], found.grounds
    if told := reminded(question, request.reminders, spoken, tokens):
        return [told], ()
    near = nearest(question, request.remembered, spoken, tokens) if not question.about else NOTHING
    return [near.text] if near.text else _unknown(question, request, spoken.texts), near.grounds


def _kept(request: Request, texts: Mapping[str, str]) -> str:
    if _MASKED in request.said:
        return texts["masked"]
    if request.learning != "on":
        return texts[f"kept_{request.learning}"]
    return texts["kept_again" if _said_last(request, texts["kept"], texts["kept_again"]) else "kept"]


def _unknown(question: AskedQuestion, request: Request, texts: Mapping[str, str]) -> list[str]:
    if question.about:
        return [texts["unknown_about"].format(name=question.about)]
    if _said_last(request, texts["unknown"], texts["unknown_again"]):
        return [texts["unknown_again"]]
    return [texts["unknown"], *_hint(request, texts["unknown_hint"])]


def _hint(request: Request, hint: str) -> list[str]:
    """Returns how to add a model, unless the conversation shows it already."""
    return [] if any(hint in message.content for message in request.messages) else [hint]


def _said_last(request: Request, *texts: str) -> bool:
    last = next((message.content for message in reversed(request.messages) if message.role == "assistant"), "")
    return last.startswith(tuple(texts))


def _small_talk(kind: str, request: Request, spoken: Speech) -> str:
    texts = spoken.texts
    called = next((one.value for one in request.remembered if one.key in ("called", "name") and not one.superseded), "")
    if kind == "greeting" and called and len(called) <= 40:
        return texts["greeting_name"].format(name=called)
    if kind in ("clock", "calendar") and request.moment is not None:
        moment = request.moment
        date = format_date(moment, "full", locale="en_GB" if spoken.code == "en" else spoken.code)
        return sentence(texts[kind].format(time=f"{moment:%H:%M}", zone=str(moment.tzinfo), date=date))
    return texts[kind].format(name=request.agent)
