"""The page of questions: those that wait for the visitor's yes or no in their private chats, and the answers.

Invariants: a question is shown with its subject in its present state. It is answered in its own chat, by a press of the
person who was asked, so that the answer means the same as there; the reply comes there, too. An admin's question about
another person is not shown: it is answered in its own chat.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from channels.base import Inbound, Place, rows
from channels.web import PageItem
from gateway.actions.memory import FORGET
from gateway.commands import forget, people, privacy, reminders
from gateway.config.loading import FORMS
from gateway.page.command_forms import receipt, safe
from gateway.page.memory_pages import ShownMemory, told
from gateway.page.site import Refused, Response, Visit
from gateway.pipeline.questions import answering, label, pressed
from gateway.pipeline.store import where_said, who_said
from gateway.wording.texts import CATALOGUE, Texts
from memory.chat.doubts import DOUBT
from memory.chat.outside_calls import CALL
from memory.context import Context
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview
from memory.store.questions import OpenQuestion, Question

#: The most memories shown with a question.
_SHOWN: Final = 100
#: Selections that are everything: whoever wants that erased has to type a word.
_EVERYTHING: Final = ("all", "me")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """The subject of a question, and own `labels` of its choices. `whole` is set if everything would go."""

    memories: tuple[ShownMemory, ...] = ()
    lines: tuple[str, ...] = ()
    verbatim: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False


async def questions(visit: Visit) -> Response:
    return visit.html("questions.html", shown=await _rows(visit), wrong="")


async def count(visit: Visit) -> int:
    return len(await _waiting(visit))


async def received(visit: Visit) -> Response:
    """Shows the answer to a form's last command once: it may hold a key, or words that are forgotten next."""
    back = safe(visit.query.get("back", ""))
    items = visit.visitors.kept(visit.visitor)
    if items is None:
        return visit.to(back)
    asked = {str(row["id"]): row for row in await _rows(visit)}
    shown = []
    for item in items:
        named = [taken for button in item.buttons if (taken := pressed(button.data)) is not None]
        question = asked.get(str(named[0][0])) if named else None
        shown.append((item, [] if question else rows(item.buttons), question))
    return visit.html("receipt.html", items=shown, back=back)


async def _rows(visit: Visit) -> list[dict[str, Any]]:
    texts, memory, listed = visit.texts, visit.visitor.store.memory, []
    for waiting, asking in await _waiting(visit):
        known = await memory.identities.known(
            where_said(asking, visit.visitors.roster.agent_for(asking).spec), who_said(asking)
        )
        if known is None:
            continue
        question = waiting.question
        matter = await _ABOUT[question.purpose](visit, known, question)
        # A time has to be typed. All that would go stands here, and without messages there are none to keep.
        choices = [each for each in question.choices if not matter.labels or each in matter.labels]
        choices = [] if question.purpose == reminders.WHEN else choices
        listed.append(
            {
                "id": question.id,
                "purpose": question.purpose,
                "choices": [(each, matter.labels.get(each) or _label(texts, question, each)) for each in choices],
                "where": texts(f"platform.{asking.platform}"),
                "until": texts.moment(waiting.expires_at)[-5:],
                "about": matter,
                "typed": matter.whole,
                "erases": () if question.purpose not in (FORGET, privacy.DELETE) else ("yes", "words", "memory"),
            }
        )
    return listed


def _label(texts: Texts, question: Question, choice: str) -> str:
    own = f"page.ask.{question.purpose}.{choice}"
    return texts(own) if own in CATALOGUE[texts.language] else label(texts, choice)


async def answer(visit: Visit) -> Response:
    number, choice, back = visit.form.get("id", ""), visit.form.get("choice", ""), visit.form.get("back", "/questions")
    waiting = await _waiting(visit)
    asked, said = next((one for one in waiting if str(one[0].question.id) == number), (None, None))
    if asked is None or said is None or choice not in asked.question.choices:
        raise Refused(404, "page.questions.over")
    typed, word = visit.form.get("typed", "").strip().casefold(), visit.texts("page.ask.word")
    if choice != "no" and _is_whole(asked.question) and typed != word.casefold():
        wrong = visit.texts("page.ask.type", word=word)
        return visit.html("questions.html", 400, shown=await _rows(visit), wrong=wrong)
    answered = replace(said, pressed=answering(asked.question, choice))
    here = answered.channel == visit.visitor.channel.id
    if here and answered.thread == FORMS:
        return receipt(visit, await visit.visitors.answered(visit.visitor, answered), back=safe(back))
    if not await visit.visitors.press(answered):
        raise Refused(403, "page.questions.over")
    if here:
        return visit.to(f"/chat/{answered.thread or 'main'}#end")
    reply = visit.texts("page.questions.elsewhere", place=visit.texts(f"platform.{answered.platform}"))
    return receipt(visit, [PageItem(key="", at=visit.visitor.now, text=reply)], back="/questions")


def _is_whole(question: Question) -> bool:
    if question.purpose == FORGET:
        return Selection.from_json(question.payload).what in _EVERYTHING
    return question.purpose == privacy.DELETE


async def _waiting(visit: Visit) -> list[tuple[OpenQuestion, Inbound]]:
    """Returns the questions that can be answered here, each with a message from the person asked, in its own chat."""
    visitor, visitors, found = visit.visitor, visit.visitors, []
    for one in await visitor.store.memory.questions.open_to_any(visitor.context):
        place = Place.from_session_key(one.session_key)
        channel = visitors.buttons_of(place.channel)
        if channel is None or one.question.purpose not in _ABOUT:
            continue
        said = Inbound(
            channel=place.channel, platform=channel.platform, bot_id=visitor.channel.id,
            update_key=f"{visitor.account}:{visit.form.get('nonce', '').partition('.')[0]}", chat=place.chat,
            chat_kind="private", author_id=one.user_id, author_name=one.name, message_id="", text="",
            sent_at=visitor.now, thread=place.thread, language=visit.texts.language,
        )  # fmt: skip
        if visitors.roster.store_for(said) is visitor.store:
            found.append((one, said))
    return found


# The subjects of questions --------------------------------------------------------------------------------------


async def _forgetting(visit: Visit, context: Context, question: Question) -> Matter:
    selection = Selection.from_json(question.payload)
    preview = await visit.visitor.store.memory.forgetting.preview_of(context, selection, limit=_SHOWN)
    memories = tuple(told(visit, one) for one in preview.shown)
    lines = [visit.texts("forget.quoted", words=words) for words in preview.quoted]
    lines += [visit.texts("forget.reminder", text=text) for text in preview.reminders]
    for key, number in (("forget.would_stay", preview.staying), ("forget.skipped", preview.skipped)):
        lines += [visit.texts(key, count=number)] if number else []
    return Matter(
        memories=memories,
        lines=(*lines, _counted(visit, preview)),
        labels=_labels(visit.texts, preview),
        whole=_is_whole(question),
    )


def _labels(texts: Texts, preview: ForgetPreview) -> dict[str, str]:
    """Returns the choices of a question whether to forget in words that say what each of them does."""

    def counted(key: str, number: int) -> str:
        return texts(f"page.ask.{key}.{'one' if number == 1 else 'many'}", count=number)

    memory = counted("forget", preview.memories)
    labels = {"words": memory, "yes": texts("page.ask.yes"), "no": texts("page.ask.no")}
    if preview.messages:
        labels |= {"words": memory + counted("erase", preview.messages), "memory": texts("page.ask.memory")}
    return labels


def _counted(visit: Visit, found: ForgetPreview) -> str:
    counted = visit.texts("forget.counts", memories=found.memories, messages=found.messages, replies=found.replies)
    return f"{counted} {visit.texts('forget.would_name', count=found.naming)}" if found.naming else counted


async def _doubt(visit: Visit, context: Context, question: Question) -> Matter:
    asked = json.loads(question.payload)
    some = await visit.visitor.store.memory.browse.some(context, [asked["older"], asked["newer"]])
    return Matter(memories=tuple(told(visit, one) for one in some))


async def _call(visit: Visit, _context: Context, question: Question) -> Matter:
    asked = await visit.visitor.store.memory.outside_calls.asked(question)
    return Matter() if asked is None else Matter(lines=(asked.tool,), verbatim=asked.arguments)


async def _link(visit: Visit, _context: Context, question: Question) -> Matter:
    asked = json.loads(question.payload)
    party = await visit.visitor.store.memory.privacy.party(int(asked["account"]), int(asked["session"]))
    return Matter(lines=(people.called(visit.texts, party.account),))


async def _unlink(visit: Visit, context: Context, question: Question) -> Matter:
    wanted = int(json.loads(question.payload)["account"])
    own = await visit.visitor.store.memory.privacy.accounts(context)
    return Matter(lines=tuple(people.called(visit.texts, one) for one in own if one.id == wanted))


async def _everything(visit: Visit, context: Context, _question: Question) -> Matter:
    preview = await visit.visitor.store.memory.forgetting.preview_of(context, Selection(what="me"), limit=0)
    return Matter(lines=(_counted(visit, preview),), whole=True)


async def _exports(visit: Visit, context: Context, question: Question) -> Matter:
    named = set(json.loads(question.payload)["files"])
    files = await visit.visitor.store.memory.transfer.files_of(context)
    return Matter(lines=tuple(f"{path.parent.name}/{path.name}" for inode, path in files.items() if inode in named))


async def _time(visit: Visit, context: Context, question: Question) -> Matter:
    return Matter(lines=(visit.texts("page.questions.type"),))


_ABOUT: Final[Mapping[str, Callable[[Visit, Context, Question], Awaitable[Matter]]]] = {
    FORGET: _forgetting,
    CALL: _call,
    DOUBT: _doubt,
    forget.EXPORTS: _exports,
    people.JOIN: _link,
    people.LINK: _link,
    people.UNLINK: _unlink,
    privacy.DELETE: _everything,
    reminders.WHEN: _time,
}
