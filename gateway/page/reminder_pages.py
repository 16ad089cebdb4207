"""The page of reminders: those to come, with forms to change, end and set them."""

from __future__ import annotations

from gateway.page.site import Response, Visit
from gateway.wording import reminder_lines


async def reminders(visit: Visit) -> Response:
    visitor, texts = visit.visitor, visit.texts
    every = await visitor.store.memory.reminders.every(visitor.context)
    return visit.html(
        "reminders.html",
        reminders=[
            (one, reminder_lines.words(texts, one), reminder_lines.due(texts, one, visitor.now)) for one in every
        ],
    )
