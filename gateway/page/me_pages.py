"""The visitor's own page: their profile, accounts, sessions and privacy; and the sign-in, before all of them."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from gateway.commands import keys
from gateway.commands.people import called
from gateway.page.command_forms import SCOPES
from gateway.page.memory_pages import told
from gateway.page.site import Refused, Visit

#: The most looks of admins that are shown.
_LOOKS: Final = 30


async def me(visit: Visit) -> web.StreamResponse:
    visitor, texts = visit.visitor, visit.texts
    memory, session = visitor.store.memory, visitor.session
    kept = await memory.privacy.kept(visitor.context, looks_shown=_LOOKS)
    slots = await memory.browse.profile(visitor.context)
    sessions = await visit.visitors.visits.sessions(session.channel, session.user_id)
    made = await memory.keys.of(visitor.context)
    return visit.html(
        "me.html",
        kept=kept,
        kinds=[(texts(f"kinds.{kind}"), count) for kind, count in kept.kinds.items()],
        since="" if kept.since is None else texts.date(kept.since),
        slots=[
            (
                texts(f"slot.{slot.memory.key if slot.memory.kind == 'profile' else 'directive'}"),
                slot.memory.value,
                [told(visit, one) for one in slot.made_of],
            )
            for slot in slots
        ],
        accounts=[called(texts, one) for one in kept.accounts],
        looks=[
            (texts.moment(one.looked_at), one.admin_name, texts(f"privacy.action.{one.action}"), one.found)
            for one in kept.looks
        ],
        sessions=[(one.id, texts.moment(one.created_at), texts.moment(one.seen_at)) for one in sessions],
        keys=[(key.id, keys.told(texts, key)) for key in made],
        has_api=bool(visit.visitors.roster.api),
        scopes=[(one, ", ".join(texts(f"keys.scope.{scope}") for scope in one.split(","))) for one in SCOPES],
    )


async def choose_agent(visit: Visit) -> web.StreamResponse:
    agent = visit.form.get("agent", "")
    if agent not in visit.visitors.agents:
        raise Refused(400, "page.bad_form")
    await visit.visitors.visits.choose_agent(visit.visitor.session.id, agent)
    return visit.to("/chat")


# Sign-in --------------------------------------------------------------------------------------------------------


async def sign_in(visit: Visit) -> web.StreamResponse:
    """Shows the page that a link leads to. The code after its # stays in the browser until the button is pressed."""
    return visit.html("in.html", wrong=False)


async def name(visit: Visit) -> web.StreamResponse:
    called = await visit.visitors.named(_code(visit))
    return web.Response(status=404) if called is None else web.Response(text=called)


async def enter(visit: Visit) -> web.StreamResponse:
    token = await visit.visitors.sign_in(_code(visit))
    if token is None:
        return visit.html("in.html", 403, wrong=True)
    response = visit.to("/chat")
    visit.site.set_cookie(visit.request, response, token)
    return response


async def out(visit: Visit) -> web.StreamResponse:
    session, which = visit.visitor.session, visit.form.get("which", "")
    visits = visit.visitors.visits
    if which == "all":
        await visits.sign_out_everywhere(session.channel, session.user_id)
    elif which.isdecimal() and len(which) < 16 and int(which) != session.id:
        own = await visits.sessions(session.channel, session.user_id)
        if int(which) in {one.id for one in own}:
            await visits.sign_out(int(which))
        return visit.to("/me")
    else:
        await visits.sign_out(session.id)
    response = visit.to("/in?left=1")
    visit.site.drop_cookie(visit.request, response)
    return response


async def home(visit: Visit) -> web.StreamResponse:
    return visit.to("/in" if visit.guest is None else "/chat")


def _code(visit: Visit) -> str:
    """Returns the code of a form; whole links that were pasted count as well."""
    return visit.form.get("code", "").strip().rpartition("#")[2][:200]
