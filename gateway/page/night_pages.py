"""The pages of nightly runs: those that changed something of the visitor's, their changes, and their undo."""

from __future__ import annotations

from collections import Counter
from typing import Final

from gateway.commands.jobs import figures, job_name
from gateway.page.memory_pages import told
from gateway.page.site import Refused, Response, Visit
from memory.errors import NotFound
from memory.jobs.runner import What
from memory.jobs.runs import OwnerResult

#: Results that are read for the list, of one run for each account.
_READ: Final = 120
#: The sign of a change: new or back, put aside, or changed in place.
_SIGNS: Final[dict[What, str]] = {
    "new": "+", "back": "+", "archived": "−", "replaced": "−", "compressed": "−", "told again": "=", "changed": "=",
}  # fmt: skip


async def nights(visit: Visit) -> Response:
    visitor, texts = visit.visitor, visit.texts
    runs: dict[int, list[OwnerResult]] = {}
    for item in await visitor.store.memory.jobs.mine(visitor.context, limit=_READ):
        runs.setdefault(item.run.id, []).append(item)
    listed = []
    for items in runs.values():
        counts = sum((Counter(item.counts) for item in items), Counter[str]())
        run = items[0].run
        state = "undone" if {item.state for item in items} == {"undone"} else ""
        listed.append((run.id, texts.moment(run.started_at), job_name(texts, run.job), figures(texts, counts), state))
    return visit.html("nights.html", runs=listed)


async def night(visit: Visit) -> Response:
    visitor, texts, number = visit.visitor, visit.texts, visit.number(visit.path["run"], "page.no_night")
    items = await visitor.store.memory.jobs.item(visitor.context, number)
    if not items:
        raise Refused(404, "page.no_night")
    try:
        changes = await visitor.store.memory.jobs.did(visitor.context, number)
    except NotFound as exc:
        raise Refused(404, "page.no_night") from exc
    run = items[0].run
    return visit.html(
        "night.html",
        number=number,
        job=job_name(texts, run.job),
        when=texts.moment(run.started_at),
        changes=[
            (_SIGNS[one.what], told(visit, one.memory), [told(visit, part) for part in one.made_of]) for one in changes
        ],
        undone={item.state for item in items} == {"undone"},
    )
