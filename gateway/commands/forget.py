"""/forget: the preview and the question, the erasing after the answer, and the receipt.

Invariants: only data that the asker may have erased is listed, and it is listed before it goes; a receipt holds
figures, never an erased word; it is queued in the transaction that ends its request, so it is given once, even if the
process ended between the erasing and the receipt.
"""

from __future__ import annotations

import json

from gateway.actions.memory import FORGET, MORE, ask_how
from gateway.commands.call import Asking, Call, excerpt
from gateway.pipeline.questions import buttons
from gateway.wording.texts import Texts
from memory.chat.edits import Edits
from memory.errors import Derived, NotFound, NotYours
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview, Receipt
from memory.forgetting.plan import How
from memory.store.questions import Question
from memory.typed_filters import Filters

#: The purpose of the question whether earlier exports are to be removed; its payload has their inode numbers.
EXPORTS = "exports"
#: The most memories shown before they go, and the letters of each.
_SHOWN = 10
_LINE = 100
#: The way of forgetting for each answer.
_HOW: dict[str, How] = {"yes": "words", "words": "words", "memory": "memory"}


async def forget(call: Call, *, request: str = "") -> None:
    """Shows what the words after the command name, or those taken from the plain words of a `request`."""
    words, reply_to = call.arguments.strip(), call.inbound.reply_to
    if not words and reply_to is None:
        await call.say(call.texts("forget.usage"))
        return
    asked = await call.filters(words)
    if asked is None:
        return
    try:
        preview = await call.memory.forgetting.preview(
            call.context,
            asked,
            limit=_SHOWN,
            may_all=_may_all(call),
            reply_to=None if words else reply_to,
            request=request,
        )
    except (NotFound, NotYours, Derived) as exc:
        await call.say(call.refusal(words, exc))
        return
    if preview is None and asked.given:
        await call.say(await call.none_met(asked, lambda rest: _meant(call, rest)))
    elif preview is None:
        await call.say(call.texts("forget.nothing"))
    elif preview.is_empty:
        await call.say(call.texts("forget.not_yours" if preview.skipped else "forget.nothing"))
    else:
        await ask(call, preview)


async def offered(call: Call, words: str) -> bool:
    """Shows what would go for `words`, and asks how to forget it; False if nothing would, or no memory is near them."""
    try:
        preview = await call.memory.forgetting.preview(
            call.context, Filters(words=words), limit=_SHOWN, may_all=_may_all(call), request=call.inbound.text
        )
    except (NotFound, NotYours, Derived):
        return False
    if preview is None or preview.is_empty or (preview.selection.near and not preview.memories):
        return False
    await ask(call, preview)
    return True


async def _meant(call: Call, asked: Filters) -> int:
    preview = await call.memory.forgetting.preview(call.context, asked, limit=0, may_all=_may_all(call))
    return 0 if preview is None else preview.memories + preview.messages


async def ask(call: Call, preview: ForgetPreview, *, page: int = 1, instead: Question | None = None) -> None:
    """Shows a page of what would go, and asks how; `instead` of a question whose answer was to see more."""
    more = len(preview.shown) == page * _SHOWN < preview.memories

    def put(edits: Edits) -> Asking:
        if instead is not None and not edits.settle(instead, MORE):
            return Asking(text=call.texts("answer.over"))
        question = ask_how(edits, preview.selection, memories=preview.memories, page=page, more=more)
        lines = [*_lines(call, preview, page), *([call.texts("forget.next")] if more else [])]
        return Asking(text="\n".join(lines), buttons=buttons(question, call.texts, alone=True))

    await call.do(put, in_place=instead is not None and call.on_question)


async def answer(call: Call, question: Question, taken: str) -> None:
    assert question.purpose == FORGET
    if taken == MORE:
        page = json.loads(question.payload)["page"] + 1
        selection = Selection.from_json(question.payload)
        preview = await call.memory.forgetting.preview_of(
            call.context, selection, limit=page * _SHOWN, may_all=_may_all(call)
        )
        await ask(call, preview, page=page, instead=question)
        return
    how = _HOW.get(taken)
    if how is None:
        await call.decline(question, taken, "forget.kept")
        return
    selection = Selection.from_json(question.payload)
    call.unhear()
    receipt = await call.memory.forgetting.forget(
        call.context, call.inbox_id, question, selection, how, may_all=_may_all(call)
    )
    if receipt is None:
        await call.say(call.texts("answer.over"))
    else:
        await hand_out(call, receipt)


async def hand_out(call: Call, receipt: Receipt) -> None:
    """Says what went and, in private, which of the person's earlier exports may still hold it."""
    is_private = call.inbound.chat_kind == "private"
    files = await call.memory.transfer.files_of(call.context) if is_private and not receipt.is_empty else {}
    names = ", ".join(f"{path.parent.name}/{path.name}" for path in [*files.values()][:_SHOWN])
    more = call.texts("forget.more", count=len(files) - _SHOWN) if len(files) > _SHOWN else ""

    def tell_and_ask(edits: Edits) -> Asking:
        text = told(call, receipt)
        if not files:
            return Asking(text=text)
        # The receipt stays when the question is answered, so the question does not stand alone.
        question = edits.ask(EXPORTS, {"files": list(files)}, choices=("yes", "no"), preset="no")
        asked = call.texts("forget.exports", names=f"{names} {more}".rstrip())
        return Asking(text=f"{text}\n{asked}", buttons=buttons(question, call.texts))

    await call.do(tell_and_ask, in_place=call.on_question)


async def answer_exports(call: Call, question: Question, taken: str) -> None:
    named = json.loads(question.payload)["files"]
    removed = await call.memory.transfer.remove_files(call.context, named) if taken == "yes" else 0

    def tell(edits: Edits) -> str:
        if not edits.settle(question, taken):
            return call.texts("answer.over")
        if taken != "yes":
            return call.texts("forget.exports_stay")
        gone = call.texts("forget.exports_gone", count=removed)
        return gone if removed == len(named) else f"{gone} {call.texts('forget.exports_left')}"

    await call.do(tell)


def told(call: Call, receipt: Receipt) -> str:
    if receipt.is_empty:
        return call.texts("forget.gone")
    texts = call.texts
    counted = [
        texts(f"forget.count.{name}", count=count)
        for name, count in (
            ("memories", receipt.memories),
            ("derived", receipt.derived),
            ("messages", receipt.messages),
            ("replies", receipt.replies),
            ("files", receipt.files),
            ("reminders", receipt.reminders),
        )
        if count
    ]
    lines = [texts("forget.done", counted=texts("forget.and").join(counted))]
    if not receipt.words:
        lines.append(texts("forget.words_stay"))
    if receipt.keep_source:
        lines.append(texts("forget.staying", count=receipt.keep_source))
    if receipt.naming:
        lines.append(texts("forget.still_naming", count=receipt.naming))
    if receipt.restored:
        lines.append(texts("forget.restored", count=receipt.restored))
    if receipt.scrubbed and receipt.on_server:
        return "\n".join([*lines, left_on_server(texts, receipt)])
    lines.append(texts("forget.scrubbed" if receipt.scrubbed else "forget.pending"))
    if receipt.backups_until is not None:
        lines.append(texts("forget.backups", date=texts.date(receipt.backups_until)))
    return "\n".join(lines)


def left_on_server(texts: Texts, receipt: Receipt) -> str:
    if receipt.backups_until is None:
        return texts("forget.scrubbed_server")
    return texts("forget.scrubbed_server_until", date=texts.date(receipt.backups_until))


def _may_all(call: Call) -> bool:
    """Returns whether all data may be chosen: an admin's right in a group, never in a private memory."""
    return call.admin and call.inbound.chat_kind == "group"


def _lines(call: Call, preview: ForgetPreview, page: int) -> list[str]:
    texts = call.texts
    whole = f"forget.what.{preview.selection.what}"
    named = "forget.near" if preview.selection.near else "forget.head"
    head = texts(named) if preview.selection.what == "memories" else texts(whole)
    shown = preview.shown[(page - 1) * _SHOWN :]
    lines = [head, *(f"{memory.short_id} · {excerpt(call.phrase(memory), _LINE)}" for memory in shown)]
    if preview.memories > len(preview.shown):
        lines.append(texts("forget.more", count=preview.memories - len(preview.shown)))
    lines += [texts("forget.quoted", words=excerpt(words, _LINE)) for words in preview.quoted]
    lines += [texts("forget.reminder", text=excerpt(text, _LINE)) for text in preview.reminders[:_SHOWN]]
    if len(preview.reminders) > _SHOWN:
        lines.append(texts("forget.more", count=len(preview.reminders) - _SHOWN))
    lines.append(texts("forget.counts", memories=preview.memories, messages=preview.messages, replies=preview.replies))
    if preview.selection.more:
        lines.append(texts("forget.too_many", count=preview.selection.more))
    if preview.staying:
        lines.append(texts("forget.would_stay", count=preview.staying))
    if preview.naming:
        lines.append(texts("forget.would_name", count=preview.naming))
    if preview.skipped:
        lines.append(texts("forget.skipped", count=preview.skipped))
    return [*lines, texts("forget.how" if preview.memories else "forget.whether")]
