"""The visitor's own page: profile, settings, accounts, sessions and privacy; and the sign-in, before all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from aiohttp import web

from gateway.commands import keys, profile
from gateway.commands.people import called
from gateway.page.app_pages import NOTIFY
from gateway.page.command_forms import SCOPES
from gateway.page.memory_pages import told
from gateway.page.plots import Plot, Series
from gateway.page.site import Refused, Visit
from gateway.wording.texts import Texts
from memory.reminders.followups import HOURS as FOLLOW_UP_HOURS
from memory.text.times import clock

#: The most looks of admins that are shown.
_LOOKS: Final = 30
#: Months for which the growth of memory is shown.
_MONTHS: Final = 24


async def me(visit: Visit) -> web.StreamResponse:
    visitor, texts = visit.visitor, visit.texts
    memory, session = visitor.store.memory, visitor.session
    kept = await memory.privacy.kept(visitor.context, looks_shown=_LOOKS)
    slots = await memory.browse.profile(visitor.context)
    sessions = await visit.visitors.visits.sessions(session.channel, session.user_id)
    made = await memory.keys.of(visitor.context)
    manner = next((slot.memory for slot in slots if slot.memory.kind == "directive"), None)
    return visit.html(
        "me.html",
        kept=kept,
        speaker=visitor.context.speaker,
        languages=list(profile.NAMES.items()),
        has_manner=visitor.served.spec.memory.enabled and visitor.served.spec.memory.manner,
        manner="" if manner is None else manner.value,
        follow_hours=FOLLOW_UP_HOURS,
        grown=_grown(texts, await memory.browse.learned(visitor.context), visitor.now),
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


def _grown(texts: Texts, learned: Mapping[tuple[str, int], int], now: int) -> Plot | None:
    """Returns the memories that hold now by the month in which each was learned; None without any of late."""
    months: list[date] = []
    at = clock.local_date(now, texts.timezone).replace(day=1)
    while len(months) < _MONTHS:
        months.insert(0, at)
        at = (at - timedelta(days=1)).replace(day=1)
    counts: Counter[tuple[str, date]] = Counter()
    for (kind, day), count in learned.items():
        counts[kind, (date(1970, 1, 1) + timedelta(days=day)).replace(day=1)] += count
    series = [
        Series(name=texts(f"kinds.{kind}"), hue=hue, values=[counts[kind, month] for month in months])
        for hue, kind in enumerate(("fact", "event", "reflection", "style"), start=2)
        if any(counts[kind, month] for month in months)
    ]
    labels = [f"{month:%Y-%m}" for month in months]
    return Plot(title=texts("see.grown"), head=texts("see.month"), labels=labels, series=series) if series else None


async def choose_theme(visit: Visit) -> web.StreamResponse:
    response = visit.to("/me")
    visit.site.set_theme(visit.request, response, visit.form.get("theme", ""))
    return response


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
    response.del_cookie(NOTIFY, path="/")
    return response


async def home(visit: Visit) -> web.StreamResponse:
    return visit.to("/in" if visit.guest is None else "/chat")


def _code(visit: Visit) -> str:
    """Returns the code of a form; whole links that were pasted count as well."""
    return visit.form.get("code", "").strip().rpartition("#")[2][:200]
