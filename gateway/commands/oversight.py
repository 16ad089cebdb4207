"""/admin memory: a person's or group's memories, for the admin of their channel.

Invariants: asked and answered in the admin's private chat only; people and groups are named by their platform ids; a
person who is unknown, or has nothing to do with this channel, gets the same answer as one without memories.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gateway.commands.call import Asking, Call, excerpt
from gateway.commands.forget import told
from gateway.commands.lines import came
from gateway.commands.pages import beyond, turning_by
from gateway.pipeline.delivery import pieces
from gateway.pipeline.questions import buttons
from memory.browse.why import Shown
from memory.errors import NotFound
from memory.mailbox.outbox import Part
from memory.oversight import Overseer
from memory.people.privacy import Look as LookAction
from memory.store.memories import Memory
from memory.store.questions import Question

#: The purpose of the question before something is forgotten; its payload is {"memory": id, "of": platform id}.
FORGET = "oversight"
#: Memories on one page, and letters shown of each.
_PAGE = 10
_LINE = 100
#: The words to search for, and the page of the hits.
_PAGED = re.compile(r"(.{1,2000}) #([1-9][0-9]{0,2})", re.DOTALL)
_NUMBER = re.compile("[1-9][0-9]{0,4}")


async def oversee(call: Call) -> None:
    what, who, action, rest = [*call.arguments.split(None, 3), "", "", "", ""][:4]
    actions: Mapping[str, Callable[[Call, str, str], Awaitable[None]]] = {
        "": _list,
        "list": _list,
        "search": _search,
        "show": _show,
        "forget": _forget,
    }
    act = actions.get(action.lower())
    # The payload of a question holds numbers only, and the people of the terminal have none.
    known = call.ids.is_chat(who) and who.removeprefix("-").isdecimal()
    if what.lower() != "memory" or not known or act is None or (act is not _list and not rest):
        await call.say(call.usage_line())
        return
    await act(call, who, rest.strip())


async def answer(call: Call, question: Question, taken: str) -> None:
    """Acts on the answer whether a person's memory is to be forgotten. Only an admin's yes counts as one."""
    asked = json.loads(question.payload)
    who = str(asked["of"])
    if taken != "yes" or not call.admin:
        await call.decline(question, "no", "forget.kept")
        return
    receipt = await call.memory.oversight.forget(
        call.context, call.inbox_id, question, who, asked["memory"], channel=call.administered
    )
    text = call.texts("answer.over") if receipt is None else told(call, receipt)
    await call.do(lambda _edits: text, in_place=call.on_question)


async def _list(call: Call, who: str, rest: str) -> None:
    wanted = int(rest) if _NUMBER.fullmatch(rest) else 1

    def show_page(overseer: Overseer) -> str | Asking:
        kinds = overseer.kinds()
        total = sum(kinds.values())
        if not total:
            return call.texts("oversight.none", who=who)
        counted = ", ".join(call.texts(f"oversight.kind.{kind}", count=count) for kind, count in kinds.items())
        if not call.memory.oversight.reads:
            return "\n".join([call.texts("oversight.counts", who=who, kinds=counted), call.texts("oversight.told")])
        pages = -(-total // _PAGE)
        if wanted > pages and call.inbound.pressed is None:
            return beyond(call, wanted, pages)
        page = min(wanted, pages)
        memories = overseer.page(limit=_PAGE, offset=(page - 1) * _PAGE)
        head = call.texts(
            "oversight.head", who=who, shown=(page - 1) * _PAGE + len(memories), total=total, kinds=counted
        )
        lines = [head, *(_line(call, memory) for memory in memories)]
        turning = turning_by(call, page, pages, lambda to: f"/admin memory {who} list {to}")
        if page < pages and not turning:
            lines.append(call.texts("oversight.more", who=who, page=page + 1))
        return Asking(text="\n".join([*lines, call.texts("oversight.told")]), buttons=turning)

    await _answer(call, who, "list", show_page)


async def _search(call: Call, who: str, rest: str) -> None:
    paged = _PAGED.fullmatch(rest)
    query, wanted = (paged[1], int(paged[2])) if paged is not None else (rest, 1)

    def show_hits(overseer: Overseer) -> str | Asking:
        if not call.memory.oversight.reads:
            return call.texts("oversight.withheld", who=who)
        memories, total = overseer.hits(limit=_PAGE, offset=(wanted - 1) * _PAGE)
        if not memories:
            return call.texts("oversight.not_found", query=excerpt(query), who=who)
        pages = -(-total // _PAGE)
        lines = [call.texts("oversight.found", who=who, total=total), *(_line(call, memory) for memory in memories)]
        turning = turning_by(call, wanted, pages, lambda to: f"/admin memory {who} search {query} #{to}")
        if wanted < pages and not turning:
            lines.append(call.texts("oversight.more_found", page=wanted + 1))
        return Asking(text="\n".join([*lines, call.texts("oversight.told")]), buttons=turning)

    await _answer(call, who, "search", show_hits, query=query)


async def _show(call: Call, who: str, short_id: str) -> None:
    def show(overseer: Overseer) -> str | Asking:
        if not call.memory.oversight.reads:
            return call.texts("oversight.withheld", who=who)
        try:
            shown = overseer.show(short_id)
        except NotFound:
            return call.texts("oversight.unknown_id", id=excerpt(short_id), who=who)
        forget = call.button(call.texts("oversight.forget"), f"/admin memory {who} forget {shown.memory.short_id}")
        return Asking(text="\n".join(_shown(call, shown)), buttons=() if forget is None else (forget,))

    await _answer(call, who, "show", show, in_place=False)


async def _forget(call: Call, who: str, short_id: str) -> None:
    reads = call.memory.oversight.reads

    def ask(overseer: Overseer) -> str | Asking:
        try:
            named = overseer.named(short_id)
        except NotFound:
            return call.texts("oversight.unknown_id", id=excerpt(short_id), who=who)
        question = overseer.ask(FORGET, {"memory": named.id, "of": int(who)}, choices=("yes", "no"), preset="yes")
        kind = call.texts(f"oversight.kind.{named.kind}", count=1)
        words = kind if named.memory is None else f"“{excerpt(_said(named.memory), _LINE)}”"
        date = call.texts.date(named.learned_at)
        return Asking(
            text=call.texts("oversight.ask", id=excerpt(short_id), said=words, date=date, who=who),
            buttons=buttons(question, call.texts, alone=True),
        )

    # The memory's words are shown before it goes, if the admin may read them.
    await _answer(call, who, "show" if reads else "forget", ask, in_place=False)


async def _answer(
    call: Call,
    who: str,
    action: LookAction,
    look: Callable[[Overseer], str | Asking],
    *,
    query: str = "",
    in_place: bool = True,
) -> None:
    """Answers with what `look` returns, and records it. `in_place`: the answer to a press replaces its message."""

    def shown(overseer: Overseer) -> Sequence[Part]:
        reply = look(overseer)
        if isinstance(reply, str):
            return pieces(call.channel, reply)
        return pieces(call.channel, reply.text, buttons=reply.buttons)

    edits = call.pressed_on if in_place else None
    await call.memory.oversight.answer(
        call.context, call.inbox_id, who, action, shown, channel=call.administered, query=query, edits=edits
    )


def _said(memory: Memory) -> str:
    about = memory.subject or memory.subject_name or ""
    words = f"{memory.key}: {memory.value}"
    return " ".join((f"{about}: {words}" if about else words).split())


def _line(call: Call, memory: Memory) -> str:
    fields = {"id": memory.short_id, "said": excerpt(_said(memory), _LINE), "came": came(call, memory)}
    if memory.valid_until is not None:
        return call.texts("oversight.old_line", **fields, until=call.texts.date(memory.valid_until))
    return call.texts("oversight.line", **fields)


def _shown(call: Call, shown: Shown) -> list[str]:
    texts, memory = call.texts, shown.memory
    lines = [_line(call, memory), f"{memory.kind}, {memory.category}, {texts(f'oversight.origin.{memory.origin}')}"]
    for source in shown.sources:
        text = texts("oversight.erased") if source.text is None else f"“{excerpt(source.text)}”"
        lines.append(texts("oversight.source", name=source.author_name, date=texts.date(source.said_at), text=text))
    lines += [f"  {_line(call, version)}" for version in shown.versions if version.id != memory.id]
    return [*lines, texts("oversight.told")]
