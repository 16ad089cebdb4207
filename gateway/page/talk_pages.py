"""The list of conversations, and what is done with a whole one: a title, a pin, an export; and the list of commands.

Invariant: what a person does here changes their own conversation alone, in one transaction; nothing is told of it but
the list, which every tab of theirs shows anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from channels.base import Place
from gateway.commands import table
from gateway.config.loading import FORMS
from gateway.page.site import Refused, Visit
from gateway.page.visitors import FIRST
from gateway.pipeline.store import where_said, who_said
from memory.browse.talks import Conversation
from memory.chat.edits import Edits
from memory.text.times import clock

#: Conversations that are shown at once, and the most of all.
_LISTED: Final = 50
_MOST: Final = 1_000
#: Days of the last group but one.
_WEEK: Final = 7
#: Characters of a thread's name.
_THREAD: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def thread_of(name: str) -> str | None:
    """Returns the thread of a conversation in an address. Raises `Refused` for one that can't be."""
    if not set(name) <= _THREAD or name == FORMS or len(name) > 40:
        raise Refused(404, "page.nothing_here")
    return None if name == FIRST else name


def thread_in(session_key: str) -> str:
    return Place.from_session_key(session_key).thread or FIRST


async def listed(visit: Visit, here: str = "") -> list[tuple[str, Conversation]]:
    """Returns the visitor's conversations with their names in addresses, the pinned first."""
    visitor, platform = visit.visitor, visit.visitor.channel.platform
    talks = await visitor.store.memory.browse.talks(visitor.context, platform=platform, here=here, limit=_MOST)
    places = [(Place.from_session_key(talk.session_key), talk) for talk in talks]
    return [
        (place.thread or FIRST, talk)
        for place, talk in places
        if place == visitor.place(place.thread) and place.thread != FORMS
    ]


async def shown(visit: Visit, name: str) -> dict[str, Any]:
    """Returns the values of the list beside a conversation: groups by day, and the conversation itself if it is old."""
    talks = await listed(visit, visit.visitor.place(thread_of(name)).session_key)
    given = visit.query.get("talks", "")
    pages = min(int(given), _MOST // _LISTED) if given.isdecimal() and len(given) < 3 else 1
    groups: dict[str, list[tuple[str, Conversation]]] = {}
    for thread, talk in talks[: _LISTED * max(1, pages)]:
        groups.setdefault(visit.texts(f"page.talk.{_group(visit, talk)}"), []).append((thread, talk))
    this = next((talk for _, talk in talks if talk.here), None)
    more = pages + 1 if len(talks) > _LISTED * pages else 0
    title = "" if this is None else called(visit, this)
    return {"groups": groups, "this": this, "more_talks": more, "title": title, "called": called}


def called(visit: Visit, talk: Conversation) -> str:
    return talk.title or " ".join(talk.opening.split())[:80] or visit.texts("page.chat.first")


def _group(visit: Visit, talk: Conversation) -> str:
    if talk.pinned:
        return "pinned"
    zone = visit.visitor.context.timezone
    age = clock.local_date(visit.visitor.now, zone) - clock.local_date(talk.last_at, zone)
    if age < timedelta(days=2):
        return "yesterday" if age == timedelta(days=1) else "today"
    return "week" if age < timedelta(days=_WEEK) else "older"


def check_session(visit: Visit) -> None:
    """Raises `Refused` if a tab belongs to another session than the browser has now, or to another agent."""
    if visit.query.get("of", visit.visitor.stream) != visit.visitor.stream:
        raise Refused(401, "page.sign_in_first")


async def talks(visit: Visit) -> web.StreamResponse:
    """Returns the list alone, for a tab whose list has changed."""
    check_session(visit)
    name = visit.path["thread"]
    return visit.html("_talks.html", name=name, **await shown(visit, name))


async def name(visit: Visit) -> web.StreamResponse:
    title = visit.form.get("title", "")
    return await _changed(visit, lambda edits: edits.name_talk(title))


async def pin(visit: Visit) -> web.StreamResponse:
    pinned = visit.form.get("pinned") == "1"
    return await _changed(visit, lambda edits: edits.pin_talk(pinned=pinned))


async def _changed(visit: Visit, change: Callable[[Edits], None]) -> web.StreamResponse:
    visitor, name = visit.visitor, visit.path["thread"]
    thread = thread_of(name)
    inbound = visitor.inbound(thread=thread, nonce="")
    there = await visitor.store.memory.identities.known(where_said(inbound, visitor.served.spec), who_said(inbound))
    if there is None:
        raise Refused(404, "page.nothing_here")
    await visitor.store.memory.requests.run(there, change)
    visitor.channel.relist(visitor.place(thread))
    return visit.to(f"/chat/{name}#end")


async def export(visit: Visit) -> web.StreamResponse:
    visitor, form = visit.visitor, visit.path["form"]
    place = visitor.place(thread_of(visit.path["thread"]))
    made = await visitor.store.memory.transfer.talk(visitor.context, place.session_key)
    if form not in ("md", "json") or not made.messages:
        raise Refused(404, "page.nothing_here")
    this = next((talk for _, talk in await listed(visit, place.session_key) if talk.here), None)
    title = visit.texts("page.chat.first") if this is None else called(visit, this)
    data = made.data if form == "json" else f"# {title}\n\n{made.page}".encode()
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(title, safe='')}.{form}"}
    kind = "application/json" if form == "json" else "text/markdown"
    return web.Response(body=data, headers=headers, content_type=kind, charset="utf-8")


async def commands(visit: Visit) -> web.StreamResponse:
    """Shows all commands that there are on the page, with what they take."""
    specs = [command for command in table.specs(visit.texts.language) if not command.admin]
    return visit.html("commands.html", commands=specs)
