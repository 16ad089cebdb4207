"""The pages of admins: health, jobs, the cost of models, undelivered messages, the log, and who may speak.

Invariants: they are for admins in the first hour after they signed in, and for anybody else they don't exist. They show
names, figures and times, as the log does, which never holds a person's words. A person's memories are shown only by a
POST, which is the command that records the look, and every change is such a command, too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from agents.llm import Contact
from channels.base import Place
from gateway.commands.jobs import job_name, timetable
from gateway.commands.session import purpose_name
from gateway.ops.telemetry import last_lines
from gateway.page.plots import Plot, Series
from gateway.page.site import Response, Visit
from gateway.wording.texts import Texts
from memory.chat.stats import AnsweredDay, UsedDay

#: The most people, undelivered messages and days that are shown.
_PEOPLE: Final = 200
_DEAD: Final = 100
_DAYS: Final = 30
#: The queues, in the order in which work passes them.
_QUEUES: Final = ("inbox", "outbox", "reading", "embedding", "indexing", "jobs")
#: The codes of a model's failures that have words of their own.
_ERRORS: Final = frozenset((
    "model_auth", "model_unavailable", "model_rate_limited", "model_unpaid", "model_refused", "context_overflow",
    "bad_completion",
))  # fmt: skip


async def health(visit: Visit) -> Response:
    report, roster, texts = await visit.site.report(), visit.visitors.roster, visit.texts
    queue = Counter[str]()
    for store in roster.each_store:
        queue += Counter(await store.memory.stats.queue())
    models = dict.fromkeys(
        f"{model.provider}/{model.model}"
        for agent in roster.agents.values()
        for model in (*agent.spec.models, *agent.spec.background_models)
        if model.provider != "offline"
    )
    return visit.html(
        "admin.html",
        report=report,
        queue=[(texts(f"see.queue.{name}"), queue[name]) for name in _QUEUES],
        models=[(name, *_contact(texts, report.models.get(name))) for name in models],
        agents_told=[
            (
                agent.spec,
                [f"{model.provider}/{model.model}" for model in agent.spec.models if model.provider != "offline"],
                name == roster.default,
            )
            for name, agent in roster.agents.items()
        ],
    )


def _contact(texts: Texts, met: Contact | None) -> tuple[str, str, bool]:
    """Returns how a model was met last, its last error, and whether it fails."""
    if met is None:
        return texts("see.model.unasked"), "–", False
    error = "–"
    if met.failed_ago is not None:
        why = texts(f"see.error.{met.error if met.error in _ERRORS else 'model'}")
        error = texts("see.model.failed", ago=_ago(met.failed_ago), why=why)
    if met.answered_ago is None:
        return texts("see.model.never"), error, met.is_failing
    state = "see.model.failing" if met.is_failing else "see.model.good"
    return texts(state, ago=_ago(met.answered_ago)), error, met.is_failing


def _ago(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


async def log(visit: Visit) -> Response:
    channel = None if visit.visitor.is_operator else _channel(visit)
    return visit.html("admin_log.html", lines=last_lines(channel=channel))


async def jobs(visit: Visit) -> Response:
    texts, store = visit.texts, visit.visitor.store
    tables = [] if store.nights is None else await timetable(texts, store.memory, store.nights)
    return visit.html(
        "admin_jobs.html", told=[(agent, [(run, job_name(texts, run.job)) for run in of]) for agent, of in tables]
    )


async def usage(visit: Visit) -> Response:
    texts, stats, context = visit.texts, visit.visitor.store.memory.stats, visit.visitor.context
    days, answered = await stats.by_day(context, days=_DAYS), await stats.answered(context, days=_DAYS)
    used = [use for use in await stats.usage(context, days=_DAYS, everywhere=True) if use.input_tokens]
    by = await stats.used_by(days=_DAYS, channel=None if visit.visitor.is_operator else _channel(visit))
    priced = any(day.cost is not None for day in days)
    return visit.html(
        "admin_usage.html",
        agent=visit.visitor.served.spec.name,
        plots=_plots(texts, days, answered, priced=priced),
        priced=priced,
        used=[(purpose_name(texts, use.purpose), use) for use in used],
        by=[
            (texts(f"see.by.{name}"), [(one.name or texts("see.by.nobody"), one) for one in of])
            for name, of in by.items()
        ],
    )


def _plots(texts: Texts, days: list[UsedDay], answered: list[AnsweredDay], *, priced: bool) -> list[Plot]:
    """Returns the pictures of the days: answers with errors, their time, tokens, and the cost if it is known."""
    labels = [f"{day.day:%m-%d}" for day in answered]

    def plot(name: str, columns: dict[str, list[float | None]], *hues: int, **more: Any) -> Plot:
        series = [
            Series(name=texts(key), hue=hue, values=values)
            for (key, values), hue in zip(columns.items(), hues, strict=True)
        ]
        return Plot(title=texts(f"see.{name}"), head=texts("manage.usage.day"), labels=labels, series=series, **more)

    plots = [
        plot("answers", {"see.answered": [day.answered for day in answered],
                         "see.errors": [day.failed for day in answered]}, 2, 4),
        plot("times", {"see.p95": [day.p95 for day in answered], "see.p50": [day.p50 for day in answered]}, 7, 2,
             stacked=False, form=lambda ms: f"{ms / 1000:.1f} s"),
        plot("spent", {"manage.usage.answers": [day.answers for day in days],
                       "manage.usage.background": [day.background for day in days]}, 2, 1),
    ]  # fmt: skip
    cost = plot("cost", {"manage.usage.cost": [day.cost for day in days]}, 3, form=lambda cost: f"{cost:.4f}")
    return [one for one in (*plots, *([cost] if priced else [])) if one.rows]


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
