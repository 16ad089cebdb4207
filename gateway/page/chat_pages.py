"""Conversations: the list, the messages as they come, and the forms to say more.

Invariant: an event goes only to streams of its own person, and a stream ends with the session it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from channels.base import Place, rows
from channels.web import TYPING, PageItem, Tab, answer_key, said_key
from gateway.config.loading import FORMS
from gateway.page.site import Refused, Visit
from memory.browse.talks import Conversation

#: Messages shown of a conversation, and conversations in the list.
_LINES: Final = 80
_LISTED: Final = 50
#: Seconds after which a silent stream sends a sign of life, and between two looks at whether it may go on.
_ALIVE: Final = 15.0
_LOOK: Final = 1.0
#: Conversations of one stream.
_WATCHED: Final = 20
#: Seconds for which a form without a script waits for its answer.
_ANSWER: Final = 20.0
#: Characters of a thread's name.
_THREAD: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
#: The name that the page's script gives to a message.
_ONCE: Final = re.compile("[a-z0-9]{16,40}")
#: The path of the first conversation, which has no thread.
FIRST: Final = "main"


async def chats(visit: Visit) -> web.StreamResponse:
    talks = await _listed(visit)
    return visit.to(f"/chat/{talks[0][0] if talks else FIRST}#end")


async def chat(visit: Visit) -> web.StreamResponse:
    visitor, name = visit.visitor, visit.path["thread"]
    items = await _log(visit, visitor.place(_thread(name)))
    return visit.html(
        "chat.html",
        log=_shown(visit, name, items),
        seen=_hash(items),
        watched=_WATCHED,
        talks=await _listed(visit),
        name=name,
        who=hashlib.sha256(f"{visitor.channel.id} {visitor.account}".encode()).hexdigest()[:16],
        new=f"c{visitor.nonce().partition('.')[0][:10]}",
        empty=not items,
    )


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
    return await _say(visit, text="/stop")


async def _say(visit: Visit, **said: Any) -> web.Response:
    visitor, thread = visit.visitor, _thread(visit.path["thread"])
    inbound = visitor.inbound(thread=thread, nonce=_nonce(visit), language=visit.texts.language)
    await visitor.channel.say(replace(inbound, **said))
    return await _back(visit)


async def file(visit: Visit) -> web.StreamResponse:
    place = visit.visitor.place(_thread(visit.path["thread"]))
    data = visit.visitor.channel.file(place, visit.number(visit.path["row"], "page.file_gone"))
    if data is None:
        raise Refused(404, "page.file_gone")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(data.name, safe='')}"}
    return web.Response(body=data.data, headers=headers, content_type="application/octet-stream")


async def latest(visit: Visit) -> web.StreamResponse:
    """Returns the messages of a conversation, unless they are those that a tab has `seen`."""
    _check_session(visit)
    thread = visit.path["thread"]
    items = await _log(visit, visit.visitor.place(_thread(thread)))
    if _hash(items) == visit.query.get("seen"):
        return web.Response(status=204)
    return web.json_response(_whole(visit, thread, items))


async def events(visit: Visit) -> web.StreamResponse:
    """Streams the changes in a conversation and in those that `also` names, for all tabs of a browser."""
    _check_session(visit)
    visitor, own = visit.visitor, visit.path["thread"]
    names = list(dict.fromkeys([own, *filter(None, visit.query.get("also", "").split(","))]))[:_WATCHED]
    threads = {visitor.place(_thread(name)): name for name in names}
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
            if tab.surplus:
                await _send(response, "many", {})
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
            now = await visit.visitors.of(visit.visitor.token)
            if now is None or now.stream != visit.visitor.stream:
                await _send(response, "over", {})
                return
            looked = time.monotonic()
        if change is None:
            await response.write(b": alive\n\n")
            continue
        place, item = change
        if await _is_behind(visit, item, shown[place]):
            shown[place] = await _send_log(visit, response, place, threads[place])
        else:
            shown[place].add(item.key)
            thread = threads[place]
            await _send(response, "item", {"thread": thread, "key": item.key, "html": _one(visit, thread, item)})


def _check_session(visit: Visit) -> None:
    """Raises `Refused` if a tab belongs to another session than the browser has now, or to another agent."""
    if visit.query.get("of", visit.visitor.stream) != visit.visitor.stream:
        raise Refused(401, "page.sign_in_first")


def _is_there(request: web.BaseRequest) -> bool:
    return request.transport is not None and not request.transport.is_closing()


async def _send_log(
    visit: Visit, response: web.StreamResponse, place: Place, thread: str, *, seen: str | None = None
) -> set[str]:
    """Sends a whole conversation unless the browser has seen it; returns the keys of its items."""
    items = await _log(visit, place)
    if _hash(items) != seen:
        await _send(response, "log", _whole(visit, thread, items))
    return {item.key for item in items}


def _whole(visit: Visit, thread: str, items: list[PageItem]) -> dict[str, str]:
    return {"thread": thread, "html": _shown(visit, thread, items), "seen": _hash(items)}


async def _is_behind(visit: Visit, item: PageItem, shown: set[str]) -> bool:
    """Returns whether an item answers a message that the tab does not show, as it came before the server started."""
    turn = _turn(item)
    if not turn:
        return False
    lines = await visit.visitor.store.memory.browse.turn_lines(visit.visitor.context, int(turn))
    return any(line.mine and line.platform_ref and said_key(line.platform_ref) not in shown for line in lines)


async def _log(visit: Visit, place: Place) -> list[PageItem]:
    visitor = visit.visitor
    lines = await visitor.store.memory.browse.lines(visitor.context, place.session_key, limit=_LINES)
    last = {line.turn_id: line.id for line in lines if not line.mine}
    items = []
    for line in lines:
        if line.mine:
            key = f"m{line.id}" if line.platform_ref is None else said_key(line.platform_ref)
        else:
            answers = line.turn_id is not None and last[line.turn_id] == line.id
            key = answer_key(line.turn_id or 0) if answers else f"m{line.id}"
        items.append(PageItem(key=key, at=line.said_at, text=line.text, markdown=not line.mine, mine=line.mine))
    known = {item.key for item in items}
    held = [item for item in visitor.channel.held(place) if item.key not in known]
    # A held item comes after an item of history of the same moment.
    return sorted([*items, *held], key=lambda item: item.at)


def _shown(visit: Visit, thread: str, items: list[PageItem]) -> str:
    parts, before = [], ""
    for item in items:
        day = visit.texts.date(item.at)
        parts.append(_one(visit, thread, item, day=day if day != before else ""))
        before = day
    return "".join(parts)


def _one(visit: Visit, thread: str, item: PageItem, *, day: str = "") -> str:
    return visit.text(
        "_item.html", item=item, day=day, turn=_turn(item), rows=rows(item.buttons), typing=item.key == TYPING,
        thread=thread, clock=visit.texts.moment(item.at)[-5:],
    )  # fmt: skip


def _turn(item: PageItem) -> str:
    number = item.key.removeprefix("t")
    return number if number != item.key and number.isdecimal() and not item.growing else ""


async def _listed(visit: Visit) -> list[tuple[str, Conversation]]:
    visitor, platform = visit.visitor, visit.visitor.channel.platform
    talks = await visitor.store.memory.browse.talks(visitor.context, platform=platform, limit=_LISTED)
    places = [(Place.from_session_key(talk.session_key), talk) for talk in talks]
    return [
        (place.thread or FIRST, one)
        for place, one in places
        if place == visitor.place(place.thread) and place.thread != FORMS
    ]


def _thread(name: str) -> str | None:
    if not set(name) <= _THREAD or name == FORMS or len(name) > 40:
        raise Refused(404, "page.nothing_here")
    return None if name == FIRST else name


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
    await visit.visitors.answers(visit.visitor, visit.visitor.place(_thread(visit.path["thread"])), seconds=_ANSWER)
    return visit.to(f"/chat/{visit.path['thread']}#end")


async def _send(response: web.StreamResponse, event: str, data: dict[str, Any]) -> None:
    await response.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())


def _hash(items: list[PageItem]) -> str:
    """Returns a short hash of the shown items, by which a tab and the server know that they show the same."""
    shown = [(item.key, item.text, item.growing, [one.data for one in item.buttons]) for item in items]
    return hashlib.sha256(repr(shown).encode("utf-8", "replace")).hexdigest()[:16]
