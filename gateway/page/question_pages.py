"""The page of questions: those that wait for the visitor's yes or no in their private chats, and the answers.

Invariants: a question is shown with its subject in its present state. It is answered in its own chat, by a press of the
person who was asked, so that the answer means the same as there; the reply comes there, too. An admin's question about
another person is not shown: it is answered in its own chat.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from channels.base import Inbound, Place
from channels.web import PageItem
from gateway.actions.memory import FORGET
from gateway.commands import forget, people, privacy, reminders
from gateway.page.command_forms import receipt
from gateway.page.memory_pages import ShownMemory, told
from gateway.page.site import Refused, Response, Visit
from gateway.page.visitors import FORMS
from gateway.pipeline.questions import answering
from gateway.pipeline.store import where_said, who_said
from memory.chat.doubts import DOUBT
from memory.chat.outside_calls import CALL
from memory.context import Context
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview
from memory.store.questions import OpenQuestion, Question

#: The most memories shown with a question.
_SHOWN: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    memories: tuple[ShownMemory, ...] = ()
    lines: tuple[str, ...] = ()
    verbatim: str = ""


async def questions(visit: Visit) -> Response:
    texts, memory, rows = visit.texts, visit.visitor.store.memory, []
    for found, said in await _waiting(visit):
        known = await memory.identities.known(
            where_said(said, visit.visitors.roster.agent_for(said).spec), who_said(said)
        )
        if known is None:
            continue
        question = found.question
        rows.append(
            {
                "id": question.id,
                "purpose": question.purpose,
                # A time has to be typed.
                "choices": () if question.purpose == reminders.WHEN else question.choices,
                "where": texts(f"platform.{said.platform}"),
                "until": texts.moment(found.expires_at)[-5:],
                "about": await _ABOUT[question.purpose](visit, known, question),
            }
        )
    return visit.html("questions.html", shown=rows)


async def count(visit: Visit) -> int:
    return len(await _waiting(visit))


async def answer(visit: Visit) -> Response:
    number, choice = visit.form.get("id", ""), visit.form.get("choice", "")
    waiting = await _waiting(visit)
    found, said = next((one for one in waiting if str(one[0].question.id) == number), (None, None))
    if found is None or said is None or choice not in found.question.choices:
        raise Refused(404, "page.questions.over")
    pressed = replace(said, pressed=answering(found.question, choice))
    here = pressed.channel == visit.visitor.channel.id
    if here and pressed.thread == FORMS:
        return receipt(visit, await visit.visitors.answered(visit.visitor, pressed), back="/questions")
    if not await visit.visitors.press(pressed):
        raise Refused(403, "page.questions.over")
    if here:
        return visit.to(f"/chat/{pressed.thread or 'main'}#end")
    reply = visit.texts("page.questions.elsewhere", place=visit.texts(f"platform.{pressed.platform}"))
    return receipt(visit, [PageItem(key="", at=visit.visitor.now, text=reply)], back="/questions")


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
    return Matter(memories=memories, lines=(*preview.quoted, *preview.reminders, _counted(visit, preview)))


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
    return Matter(lines=(_counted(visit, preview),))


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
