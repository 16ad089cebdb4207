"""The pages of admins: health, jobs, the cost of models, undelivered messages, and who may speak.

Invariants: they are for admins in the first hour after they signed in, and for anybody else they don't exist. They show
names, figures and times. A person's memories are shown only by a POST, which is the command that records the look, and
every change is such a command, too.
"""

from __future__ import annotations

from typing import Final

from channels.base import Place
from gateway.commands.jobs import job_name, timetable
from gateway.commands.session import purpose_name
from gateway.page.site import Response, Visit

#: The most people, undelivered messages and days that are shown.
_PEOPLE: Final = 200
_DEAD: Final = 100
_DAYS: Final = 30


async def health(visit: Visit) -> Response:
    report, roster = await visit.site.report(), visit.visitors.roster
    return visit.html(
        "admin.html",
        report=report,
        agents_told=[
            (
                agent.spec,
                [f"{model.provider}/{model.model}" for model in agent.spec.models if model.provider != "offline"],
                name == roster.default,
            )
            for name, agent in roster.agents.items()
        ],
    )


async def jobs(visit: Visit) -> Response:
    texts, store = visit.texts, visit.visitor.store
    tables = [] if store.nights is None else await timetable(texts, store.memory, store.nights)
    return visit.html(
        "admin_jobs.html", told=[(agent, [(run, job_name(texts, run.job)) for run in of]) for agent, of in tables]
    )


async def usage(visit: Visit) -> Response:
    texts, stats, context = visit.texts, visit.visitor.store.memory.stats, visit.visitor.context
    days = await stats.by_day(context, days=_DAYS)
    used = [use for use in await stats.usage(context, days=_DAYS, everywhere=True) if use.input_tokens]
    return visit.html(
        "admin_usage.html",
        bars=days,
        most=max((day.answers + day.background for day in days), default=0) or 1,
        dearest=max((day.cost or 0.0 for day in days), default=0.0) or 1.0,
        days=[day for day in reversed(days) if day.calls],
        priced=any(day.cost is not None for day in days),
        used=[(purpose_name(texts, use.purpose), use) for use in used],
    )


async def dead(visit: Visit) -> Response:
    texts, channel = visit.texts, _channel(visit)
    undelivered = await visit.visitor.store.memory.mailbox.dead(channel, limit=_DEAD)
    rows = [
        (row.id, Place.from_session_key(row.session_key).chat, texts.moment(row.created_at), row.error or row.state)
        for row in undelivered
    ]
    return visit.html("admin_dead.html", rows=rows, channel=visit.visitor.session.channel)


async def people(visit: Visit) -> Response:
    visitor, texts = visit.visitor, visit.texts
    listed = (
        [] if visit.visitor.is_operator else await visitor.store.memory.oversight.people(_channel(visit), limit=_PEOPLE)
    )
    grants = await visitor.store.memory.access.grants(visitor.session.channel)
    states = {grant.reference: grant.state for grant in grants if grant.subject == "person"}
    rows = [
        (
            person.user_id,
            person.name or person.user_id,
            person.messages,
            texts.moment(person.last_at),
            states.get(person.user_id, ""),
        )
        for person in listed
    ]
    spoken = {person.user_id for person in listed}
    return visit.html(
        "admin_people.html",
        shown=rows,
        others=[grant for grant in grants if grant.reference not in spoken],
        terminal=visit.visitor.is_operator,
    )


def _channel(visit: Visit) -> str:
    return Place(channel=visit.visitor.session.channel, chat="").session_key.partition(":")[0]
