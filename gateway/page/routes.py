"""Every route of the page, and the page put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from channels.base import Channel
from gateway.config.loading import Config
from gateway.ops.health import Report
from gateway.page import (
    admin_pages,
    app_pages,
    chat_pages,
    command_forms,
    me_pages,
    memory_pages,
    question_pages,
    reminder_pages,
    search_page,
    talk_pages,
    world_pages,
)
from gateway.page.command_forms import COMMAND_FORMS
from gateway.page.site import Route, Site
from gateway.page.visitors import Visitors
from gateway.pipeline.store import Roster
from gateway.reception.router import Router

ROUTES: Final = (
    Route(method="GET", pattern="/", handler=me_pages.home, open=True),
    Route(method="GET", pattern="/in", handler=me_pages.sign_in, open=True),
    Route(method="POST", pattern="/in", handler=me_pages.enter, open=True),
    Route(method="POST", pattern="/in/name", handler=me_pages.name, open=True),
    Route(method="POST", pattern="/out", handler=me_pages.out),
    Route(method="POST", pattern="/agent", handler=me_pages.choose_agent),
    Route(method="POST", pattern="/notify", handler=app_pages.notify),
    Route(method="GET", pattern="/waiting", handler=app_pages.waiting, polled=True),
    Route(method="GET", pattern="/manifest.webmanifest", handler=app_pages.manifest, open=True),
    Route(method="GET", pattern="/chat", handler=chat_pages.chats),
    Route(method="GET", pattern="/chat/{thread}", handler=chat_pages.chat),
    Route(method="GET", pattern="/chat/{thread}/events", handler=chat_pages.events, polled=True),
    Route(method="GET", pattern="/chat/{thread}/log", handler=chat_pages.log, polled=True),
    Route(method="GET", pattern="/chat/{thread}/file/{row}", handler=chat_pages.file),
    Route(method="GET", pattern="/chat/{thread}/sent/{message}/{nth}", handler=chat_pages.sent, polled=True),
    Route(method="POST", pattern="/chat/{thread}/say", handler=chat_pages.say, takes_files=True),
    Route(method="POST", pattern="/chat/{thread}/press", handler=chat_pages.press),
    Route(method="POST", pattern="/chat/{thread}/forget", handler=chat_pages.forget),
    Route(method="POST", pattern="/chat/{thread}/stop", handler=chat_pages.stop),
    Route(method="GET", pattern="/chat/{thread}/edit/{key}", handler=chat_pages.edit),
    Route(method="POST", pattern="/chat/{thread}/branch", handler=chat_pages.branch),
    Route(method="GET", pattern="/chat/{thread}/talks", handler=talk_pages.talks, polled=True),
    Route(method="GET", pattern="/chat/{thread}/export/{form}", handler=talk_pages.export),
    Route(method="POST", pattern="/chat/{thread}/name", handler=talk_pages.name),
    Route(method="POST", pattern="/chat/{thread}/pin", handler=talk_pages.pin),
    Route(method="POST", pattern="/chat/{thread}/delete", handler=command_forms.delete),
    Route(method="GET", pattern="/commands", handler=talk_pages.commands),
    Route(method="GET", pattern="/search", handler=search_page.search),
    Route(method="GET", pattern="/memory", handler=memory_pages.listed),
    Route(method="POST", pattern="/answer", handler=command_forms.press),
    Route(method="GET", pattern="/receipt", handler=question_pages.received),
    Route(method="GET", pattern="/memory/{id}", handler=memory_pages.one),
    Route(method="GET", pattern="/why/{turn}", handler=memory_pages.why),
    Route(method="GET", pattern="/timeline", handler=world_pages.timeline),
    Route(method="GET", pattern="/entities", handler=world_pages.entities),
    Route(method="GET", pattern="/entities/{id}", handler=world_pages.entity),
    Route(method="GET", pattern="/night", handler=memory_pages.nights),
    Route(method="GET", pattern="/night/{run}", handler=memory_pages.night),
    Route(method="GET", pattern="/questions", handler=question_pages.questions),
    Route(method="POST", pattern="/questions", handler=question_pages.answer),
    Route(method="GET", pattern="/admin", handler=admin_pages.health, admin=True),
    Route(method="GET", pattern="/admin/jobs", handler=admin_pages.jobs, admin=True),
    Route(method="GET", pattern="/admin/usage", handler=admin_pages.usage, admin=True),
    Route(method="GET", pattern="/admin/dead", handler=admin_pages.dead, admin=True),
    Route(method="GET", pattern="/admin/people", handler=admin_pages.people, admin=True),
    Route(method="GET", pattern="/admin/log", handler=admin_pages.log, admin=True),
    Route(method="GET", pattern="/me", handler=me_pages.me),
    Route(method="POST", pattern="/theme", handler=me_pages.choose_theme),
    Route(method="GET", pattern="/reminders", handler=reminder_pages.reminders),
    *(Route(method="POST", pattern=form.path, handler=form.say, admin=form.admin) for form in COMMAND_FORMS),
)


def assembled(
    config: Config,
    roster: Roster,
    channels: Mapping[str, Channel],
    router: Router,
    *,
    report: Callable[[], Awaitable[Report]],
    now: Callable[[], int],
) -> Site:
    visitors = Visitors(config=config, roster=roster, channels=channels, router=router, now=now)
    return Site(config, visitors, ROUTES, config.agents[config.default_agent].language, report, question_pages.count)
