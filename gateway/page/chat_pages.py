"""Conversations: the list, the messages as they come, and the forms to say more.

Invariant: an event goes only to streams of its own person, and a stream ends with the session it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from channels.base import Attachment, Place, carrying, rows
from channels.web import LISTED, TYPING, PageItem, Tab, answer_key, said_key
from gateway.commands import table
from gateway.page import talk_pages
from gateway.page.forms import MOST_FILES
from gateway.page.sent_files import beside, shown, without_labels
from gateway.page.site import LISTENS, Refused, Visit
from gateway.page.talk_pages import check_session, thread_in, thread_of
from gateway.page.visitors import FIRST
from gateway.pipeline.store import where_said, who_said
from gateway.reading.attachments import PICTURE_BYTES
from memory.browse.talks import END, BroughtFile, ConversationLine
from memory.store.attachments import QUOTED, Attached
from memory.text.language import language_of

#: Messages shown of a conversation at once.
_LINES: Final = 80
#: Seconds after which a silent stream sends a sign of life, and between two looks at whether it may go on.
_ALIVE: Final = 15.0
_LOOK: Final = 1.0
#: Conversations of one stream.
_WATCHED: Final = 20
#: Seconds for which a form without a script waits for its answer.
_ANSWER: Final = 20.0
#: The name that the page's script gives to a message.
_ONCE: Final = re.compile("[a-z0-9]{16,40}")
#: The ways to ask for a part of a conversation, each by the id of a message.
WAYS: Final = ("before", "after", "at")


async def chats(visit: Visit) -> web.StreamResponse:
    talks = await talk_pages.listed(visit)
    newest = max(talks, key=lambda each: each[1].last_at, default=(FIRST, None))[0]
    return visit.to(f"/chat/{newest}#end")


async def chat(visit: Visit) -> web.StreamResponse:
    visitor, name = visit.visitor, visit.path["thread"]
    part = await _part(visit, visitor.place(thread_of(name)))
    answer = visit.html(
        "chat.html",
        log=_shown(visit, name, part),
        seen=_hash(part.items),
        watched=_WATCHED,
        **await talk_pages.shown(visit, name),
        name=name,
        who=hashlib.sha256(f"{visitor.channel.id} {visitor.account}".encode()).hexdigest()[:16],
        new=f"c{visitor.nonce().partition('.')[0][:10]}",
        empty=not part.items,
        growing=any(item.growing for item in part.items),
        most_files=MOST_FILES,
        picture_bytes=PICTURE_BYTES,
    )
    if visit.site.hears:
        answer.headers["Permissions-Policy"] = LISTENS
    return answer


async def say(visit: Visit) -> web.StreamResponse:
    text = visit.form.get("text", "").strip()
    return await (_say(visit, text=text, attachments=visit.files) if text or visit.files else _back(visit))


async def press(visit: Visit) -> web.StreamResponse:
    return await _say(visit, message_id=visit.form.get("key", ""), pressed=visit.form.get("data", "")[:64])


async def forget(visit: Visit) -> web.StreamResponse:
    turn = visit.number(visit.form.get("turn", ""), "page.no_answer")
    lines = await visit.visitor.store.memory.browse.turn_lines(visit.visitor.context, turn)
    meant = next((line.platform_ref for line in reversed(lines) if line.mine and line.platform_ref), None)
    if meant is None:
        raise Refused(404, "page.no_answer")
    return await _say(visit, text="/forget", reply_to=meant)


async def stop(visit: Visit) -> web.StreamResponse:
    """Ends the answer being made, or only that of the turn whose item the form names. It says nothing by itself."""
    turn = visit.form.get("turn", "").removeprefix("t")
    number = visit.number(turn, "page.no_answer") if turn else None
    await visit.visitors.stop(visit.visitor.place(thread_of(visit.path["thread"])), number)
    return await _back(visit)


async def _say(visit: Visit, **said: Any) -> web.Response:
    thread = thread_of(visit.path["thread"])
    await _tell(visit, thread, nonce=_nonce(visit), **said)
    return await _back(visit)


async def _tell(visit: Visit, thread: str | None, *, nonce: str, **said: Any) -> None:
    inbound = visit.visitor.inbound(thread=thread, nonce=nonce, language=visit.texts.language)
    await visit.visitor.channel.say(replace(inbound, **said))


async def edit(visit: Visit) -> web.StreamResponse:
    key, place = visit.path["key"], visit.visitor.place(thread_of(visit.path["thread"]))
    try:
        line = await _meant(visit, key)
    except Refused:
        if key not in {item.key for item in visit.visitor.channel.held(place)}:
            raise
        return visit.to(f"/chat/{visit.path['thread']}#end")  # history has it once its answer has begun
    text, _ = _parts(line, await visit.visitor.store.memory.browse.files(visit.visitor.context, line))
    return visit.html("edit.html", name=visit.path["thread"], key=key, text=text)


async def branch(visit: Visit) -> web.StreamResponse:
    """Says a message in other words, or answers it anew, in a branch of the conversation."""
    visitor, browse = visit.visitor, visit.visitor.store.memory.browse
    if turn := visit.form.get("turn"):
        said = await browse.turn_lines(visitor.context, visit.number(turn, "page.no_answer"))
        lines = [line for line in said if line.mine]
        keys = await browse.keys_of(visitor.context, [line.id for line in lines])
        places = {replace(Place.from_session_key(key), thread=None) for key in keys.values()}
        if places != {visitor.place(None)}:  # there is none, or it was said from another account of theirs
            raise Refused(404, "page.no_answer")
    else:
        lines = [await _meant(visit, visit.form.get("key", ""))]
    brought = [_parts(line, await browse.files(visitor.context, line)) for line in lines]
    before = "\n".join(text for text, _ in brought)
    files = tuple(file for _, some in brought for file in some)
    text = visit.form.get("text", before).replace("\r\n", "\n").strip()
    if table.parse(text) is not None or not (text or files):
        raise Refused(400, "page.talk.no_command")
    visitor.channel.check_taking()
    nonce, anew = _nonce(visit), text == before.strip()
    thread = f"c{nonce[:16]}"
    inbound = visitor.inbound(thread=thread, nonce=nonce)
    opened = await visitor.store.memory.identities.context(where_said(inbound, visitor.served.spec), who_said(inbound))
    first = lines[0]
    await visitor.store.memory.requests.run(
        opened, lambda edits: edits.branch(first.session_id, first.id, reworded=not anew)
    )
    await _tell(visit, thread, nonce=nonce, text=text, attachments=files, told=anew)
    if visit.is_enhanced:
        return web.Response(text=f"/chat/{thread}#end")
    await visit.visitors.answers(visitor, visitor.place(thread), seconds=_ANSWER)
    return visit.to(f"/chat/{thread}#end")


async def _meant(visit: Visit, key: str) -> ConversationLine:
    """Returns the visitor's message with the key of an item. Raises `Refused` if there is none."""
    place = visit.visitor.place(thread_of(visit.path["thread"]))
    said = visit.visitor.store.memory.browse.said_as
    line = await said(visit.visitor.context, place.session_key, key[1:]) if key.startswith("u") else None
    if line is None:
        raise Refused(404, "page.talk.no_message")
    return line


def _parts(line: ConversationLine, beside: Sequence[Attached]) -> tuple[str, list[Attachment]]:
    """Returns a message's own words, and those of its files that are still there to be sent again."""
    own, files = [piece for piece in beside if not piece.kind.startswith(QUOTED)], []
    for piece in own:
        if piece.data:
            files.append(carrying(piece.name, piece.media_type, memoryview(piece.data)))
        elif piece.state == "text" and piece.text:
            name = piece.name if piece.media_type.startswith("text/") else f"{piece.name}.txt"
            files.append(carrying(name, "text/plain", memoryview(piece.text.encode())))
    return without_labels(line.text, own), files


async def file(visit: Visit) -> web.StreamResponse:
    place = visit.visitor.place(thread_of(visit.path["thread"]))
    data = visit.visitor.channel.file(place, visit.number(visit.path["row"], "page.file_gone"))
    if data is None:
        raise Refused(404, "page.file_gone")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(data.name, safe='')}"}
    return web.Response(body=data.data, headers=headers, content_type="application/octet-stream")


async def sent(visit: Visit) -> web.StreamResponse:
    """Shows a file that the visitor sent: from history, or until it is there what the channel holds."""
    visitor, ref = visit.visitor, visit.path["message"]
    place, nth = visitor.place(thread_of(visit.path["thread"])), visit.number(visit.path["nth"], "page.files.gone")
    held = visitor.channel.sent(place, ref)[nth : nth + 1]
    answer = shown(held[0].name, held[0].data) if held else None
    if answer is None:
        kept = await visitor.store.memory.browse.sent_one(visitor.context, place.session_key, ref, nth=nth)
        answer = None if kept is None else shown(kept.name, kept.data or b"", kept.text if kept.state == "text" else "")
    if answer is None:
        raise Refused(404, "page.files.gone")
    return answer


async def log(visit: Visit) -> web.StreamResponse:
    """Returns the last messages of a conversation, unless a tab has `seen` them, or those before or after one."""
    check_session(visit)
    thread = visit.path["thread"]
    part = await _part(visit, visit.visitor.place(thread_of(thread)))
    if _hash(part.items) == visit.query.get("seen"):
        return web.Response(status=204)
    return web.json_response(_whole(visit, thread, part))


async def events(visit: Visit) -> web.StreamResponse:
    """Streams the changes in a conversation and in those that `also` names, for all tabs of a browser."""
    check_session(visit)
    visitor, own = visit.visitor, visit.path["thread"]
    if visitor.channel.is_ending:
        raise Refused(503, "page.past.restarting")
    names = list(dict.fromkeys([own, *filter(None, visit.query.get("also", "").split(","))]))[:_WATCHED]
    threads = {visitor.place(thread_of(name)): name for name in names}
    headers = visit.site.secured({"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    response = web.StreamResponse(headers=headers)
    await response.prepare(visit.request)
    if visit.request.method == "HEAD":
        return response
    with visitor.channel.stream(visitor.account, list(threads), is_there=lambda: _is_there(visit.request)) as tab:
        try:
            shown: dict[Place, set[str]] = {}
            for place, name in threads.items():
                seen = visit.query.get("seen") if name == own else None
                shown[place] = await _send_log(visit, response, place, name, seen=seen)
                visitor.store.delivery.wake(place.session_key)
            await _follow(visit, response, tab, threads, shown)
        except EOFError:  # too far behind, or too many: the page begins anew, or waits until it is used
            if tab.surplus or visitor.channel.is_ending:
                await _send(response, "many" if tab.surplus else "restart", {})
        except ConnectionError:  # nobody reads
            pass
    return response


async def _follow(
    visit: Visit, response: web.StreamResponse, tab: Tab, threads: dict[Place, str], shown: dict[Place, set[str]]
) -> None:
    looked = time.monotonic()
    while True:
        change = await tab.next(_ALIVE)
        if time.monotonic() - looked > _LOOK:
            now = await visit.visitors.of(visit.visitor.token, visits=False)
            if now is None or now.stream != visit.visitor.stream:
                await _send(response, "over", {})
                return
            looked = time.monotonic()
        if change is None:
            await response.write(b": alive\n\n")
            continue
        place, item = change
        if item.key == LISTED:
            await _send(response, "talks", {})
        elif await _is_behind(visit, item, shown[place]):
            shown[place] = await _send_log(visit, response, place, threads[place])
        else:
            shown[place].add(item.key)
            thread = threads[place]
            await _send(response, "item", {"thread": thread, "key": item.key, "html": _one(visit, thread, item)})


def _is_there(request: web.BaseRequest) -> bool:
    return request.transport is not None and not request.transport.is_closing()


async def _send_log(
    visit: Visit, response: web.StreamResponse, place: Place, thread: str, *, seen: str | None = None
) -> set[str]:
    """Sends a whole conversation unless the browser has seen it; returns the keys of its items."""
    part = await _part(visit, place, last=True)
    if _hash(part.items) != seen:
        await _send(response, "log", _whole(visit, thread, part))
    return {item.key for item in part.items}


def _whole(visit: Visit, thread: str, part: _Part) -> dict[str, str]:
    return {"thread": thread, "html": _shown(visit, thread, part), "seen": _hash(part.items)}


async def _is_behind(visit: Visit, item: PageItem, shown: set[str]) -> bool:
    """Returns whether an item answers a message that the tab does not show, as it came before the server started."""
    turn = _turn(item)
    if not turn:
        return False
    lines = await visit.visitor.store.memory.browse.turn_lines(visit.visitor.context, int(turn))
    return any(line.mine and line.platform_ref and said_key(line.platform_ref) not in shown for line in lines)


def _version(line: ConversationLine, versions: Sequence[tuple[str, int]]) -> tuple[int, int, str, str] | None:
    at = next((n for n, (_, message_id) in enumerate(versions) if message_id == line.id), None)
    if at is None:
        return None
    ways = [f"/chat/{thread_in(key)}#end" for key, _ in versions]
    return at + 1, len(ways), ways[at - 1] if at else "", ways[at + 1] if at + 1 < len(ways) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Messages of a conversation one after the other, and the ids of those where `earlier` and `later` ones follow.

    `sought` is the key of the message that was asked for.
    """

    items: list[PageItem]
    earlier: int | None = None
    later: int | None = None
    sought: str = ""


async def _part(visit: Visit, place: Place, *, last: bool = False) -> _Part:
    """Returns the messages that a request asks for: those before, after or at one, else the `last` ones."""
    browse, context, key = visit.visitor.store.memory.browse, visit.visitor.context, place.session_key
    asked = [(way, visit.number(visit.query[way], "page.past.gone")) for way in WAYS if way in visit.query and not last]
    way, number = asked[0] if asked else ("", END)
    size = _LINES // 2 if way == "at" else _LINES
    up, down = list[ConversationLine](), list[ConversationLine]()
    if way != "after":
        up = await browse.lines(context, key, limit=size + 1, before=number + (way == "at"))
    if way in ("after", "at"):
        down = await browse.lines(context, key, limit=size + 1, after=number)
    if way == "at" and (not up or up[-1].id != number):
        raise Refused(404, "page.past.gone")
    lines = [*up[-size:], *down[:size]]
    versions = await browse.versions(context, key)
    files = await browse.sent(context, [line.id for line in lines if line.mine])
    items = [_item(line, versions, files.get(line.id, ())) for line in lines]
    is_last = way != "before" and len(down) <= size
    since = up[0].said_at if len(up) > size else 0 if way != "after" or not lines else lines[0].said_at
    until = END if is_last or not lines else lines[-1].said_at
    held = [item for item in visit.visitor.channel.held(place) if since <= item.at <= until]
    return _Part(
        items=_merged(items, held),
        earlier=(lines[0].id if lines else number + 1) if way == "after" or len(up) > size else None,
        later=None if is_last else (lines[-1].id if lines else number - 1),
        sought=_item(up[-1], {}).key if way == "at" else "",
    )


def _merged(items: list[PageItem], held: list[PageItem]) -> list[PageItem]:
    """Returns the items of history in their order, with the others at their times, after what was said by then."""
    known, latest, timed = {item.key for item in items}, 0, []
    for item in items:
        latest = max(latest, item.at)
        timed.append((latest, item))
    timed += [(item.at, item) for item in held if item.key not in known]
    return [item for _, item in sorted(timed, key=lambda pair: pair[0])]


def _item(
    line: ConversationLine, versions: Mapping[int, Sequence[tuple[str, int]]], files: Sequence[BroughtFile] = ()
) -> PageItem:
    if line.mine:
        key = f"m{line.id}" if line.platform_ref is None else said_key(line.platform_ref)
    else:
        key = answer_key(line.turn_id) if line.is_last and line.turn_id is not None else f"m{line.id}"
    return PageItem(
        key=key,
        at=line.said_at,
        text=without_labels(line.text, [came.file for came in files]),
        markdown=not line.mine,
        mine=line.mine,
        sent=beside(files),
        version=_version(line, versions.get(line.id, ())),
    )


def _shown(visit: Visit, thread: str, part: _Part) -> str:
    shown, before = [], ""
    for item in part.items:
        day = visit.texts.date(item.at)
        is_sought = item.key == part.sought
        shown.append(_one(visit, thread, item, day=day if day != before else "", is_sought=is_sought))
        before = day
    return visit.text("_part.html", shown="".join(shown), thread=thread, part=part)


def _one(visit: Visit, thread: str, item: PageItem, *, day: str = "", is_sought: bool = False) -> str:
    return visit.text(
        "_item.html", item=item, day=day, turn=_turn(item), rows=rows(item.buttons), typing=item.key == TYPING,
        thread=thread, clock=visit.texts.moment(item.at)[-5:], sought=is_sought,
        lang=None if item.growing else language_of(item.text),
    )  # fmt: skip


def _turn(item: PageItem) -> str:
    number = item.key.removeprefix("t")
    return number if number != item.key and number.isdecimal() and not item.growing else ""


def _nonce(visit: Visit) -> str:
    """Returns the id of a form's message.

    The page's script sends many messages from one form. It names each by a word of its own, which stays the same when
    the message is sent again, also from another session of its person.
    """
    once = visit.form.get("once", "")
    return once if _ONCE.fullmatch(once) else visit.form["nonce"].partition(".")[0]


async def _back(visit: Visit) -> web.Response:
    """Returns to the conversation. Without a script it waits for the answer, which nothing else would show."""
    if visit.is_enhanced:
        return web.Response(status=204)
    await visit.visitors.answers(visit.visitor, visit.visitor.place(thread_of(visit.path["thread"])), seconds=_ANSWER)
    return visit.to(f"/chat/{visit.path['thread']}#end")


async def _send(response: web.StreamResponse, event: str, data: dict[str, Any]) -> None:
    await response.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())


def _hash(items: list[PageItem]) -> str:
    """Returns a short hash of the shown items, by which a tab and the server know that they show the same."""
    shown = [(item.key, item.text, item.growing, item.version, [one.data for one in item.buttons]) for item in items]
    return hashlib.sha256(repr(shown).encode("utf-8", "replace")).hexdigest()[:16]
