"""`remora jobs`: the work of the night by hand: list the jobs, run one, preview one, undo one.

Invariants: a preview changes nothing but the tokens spent, and the list nothing at all, so that only the list works
beside a running bot; a command that writes waits for no other process but names it; memories are shown to the operator
of this machine, who can read the file anyway.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.start import (
    AGENT,
    CONFIG,
    EX_DATAERR,
    EX_SOFTWARE,
    EX_TEMPFAIL,
    Unusable,
    ending,
    fail,
    loaded,
    opened,
    set_up_logs,
)

if TYPE_CHECKING:
    from gateway.config.loading import Config
    from gateway.ops.night_clock import Worker
    from memory.context import Context
    from memory.jobs.runner import Change
    from memory.jobs.runs import Run
    from memory.service import Service
    from memory.store.memories import Memory

_PERSON = click.option("--person", metavar="PLATFORM:USER", help="A person's memories, as telegram:123456.")
_CHAT = click.option("--chat", metavar="CHANNEL:CHAT", help="Or a group's memories, as telegram:-1001234567890.")
_STOPPED = "Stopped. Finished work is kept, and the run continues when Remora starts."
_IN_USE = "Stop it to use this command, or let an admin send /jobs in a chat (not in the terminal)."
#: Seconds between two lines about the progress of a run.
_TOLD: float = 2.0
#: Letters shown of a memory.
_LINE = 200


@click.group()
def jobs() -> None:
    """List, run, preview and undo nightly jobs."""


@jobs.command("list")
@CONFIG
def list_(config_path: Path | None) -> None:
    """Show when each agent's jobs run next, in its timezone, and how they last went."""
    with _at_work():
        asyncio.run(_list(loaded(config_path)))


@jobs.command()
@CONFIG
@click.argument("job")
@AGENT
def run(config_path: Path | None, job: str, agent: str | None) -> None:
    """Run a job now. While `remora serve` is running, an admin sends /jobs run in a chat instead."""
    with _at_work():
        asyncio.run(_run(loaded(config_path), job, agent))


@jobs.command()
@CONFIG
@click.argument("job")
@_PERSON
@_CHAT
@AGENT
def preview(config_path: Path | None, job: str, person: str | None, chat: str | None, agent: str | None) -> None:
    """Show what a job would do to someone's memories now. If it uses a model, that costs tokens."""
    with _at_work():
        asyncio.run(_preview(loaded(config_path), job, person=person, chat=chat, agent=agent))


@jobs.command()
@CONFIG
@click.argument("number", metavar="RUN", type=int)
@_PERSON
@_CHAT
@AGENT
def undo(config_path: Path | None, number: int, person: str | None, chat: str | None, agent: str | None) -> None:
    """Undo what a run did to someone's memories. `jobs list` and /memory runs show the run numbers."""
    with _at_work():
        asyncio.run(_undo(loaded(config_path), number, person=person, chat=chat, agent=agent))


@contextmanager
def _at_work() -> Iterator[None]:
    from memory.jobs.runner import NoUndo
    from memory.learn.model import BudgetSpent, ModelFailed

    with ending(stopped=_STOPPED, in_use=_IN_USE):
        try:
            yield
        except NoUndo:
            fail("That run has already been undone.", EX_DATAERR)
        except BudgetSpent as exc:
            until = datetime.fromtimestamp(exc.until / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
            more = (
                f"There are more from {until} on. To allow more, raise background.tokens_per_day in the agent's file."
            )
            fail(f"{exc} {more}", EX_TEMPFAIL)
        except ModelFailed as exc:
            fail(f"{exc} Check that the background model can be reached, and try again.", EX_TEMPFAIL)
        except TimeoutError:
            fail("The model took too long. Nothing was changed; try again later.", EX_TEMPFAIL)


async def _list(config: Config) -> None:
    from gateway import app
    from gateway.commands.jobs import NAMES, outcome
    from gateway.ops.night_clock import planned, timetables
    from gateway.wording.texts import Texts
    from memory.jobs.runner import latest_in

    set_up_logs(config)
    address = config.settings.database_url.get_secret_value()
    for database, served in app.by_database(config).items():
        newest = {(one.run.agent, one.run.job): one for one in await latest_in(config.data_dir / database, address)}
        for agent in timetables(served):
            texts = Texts("en", agent.zone.key)
            click.echo(f"{agent.agent} ({agent.zone.key}):")
            for one in planned(agent, NAMES, now=app.now()):
                following = "off" if one.at is None else f"next {texts.moment(one.at)}"
                last = newest.get((one.agent, one.job))
                line = f"  {one.job}: {following}; "
                if last is None:
                    click.echo(f"{line}never run")
                    continue
                began = texts.moment(last.run.started_at)
                click.echo(f"{line}last {began}, run {last.run.id}: {outcome(texts, last)}")


async def _run(config: Config, job: str, agent: str | None) -> None:
    from gateway.cli import importing
    from gateway.commands.jobs import outcome
    from gateway.wording.texts import Texts

    name = importing.agent_named(config, agent)
    async with opened(config) as roster:
        store = roster.stores[name]
        worker = store.nights
        assert worker is not None, "an opened store has its worker"
        _known(worker, name, job)
        ran = await _followed(worker, store.memory, name, job)
        ended = next(
            (one for one in await store.memory.jobs.latest() if ran is not None and one.run.id == ran.id), None
        )
    if ended is None:
        fail(f"{job} was not run, because it is already running.", EX_SOFTWARE)
    zone = config.agents[name].timezone
    click.echo(f"{job}, run {ended.run.id}: {outcome(Texts('en', zone), ended)}")
    if ended.run.state != "done":
        sys.exit(EX_SOFTWARE)


async def _followed(worker: Worker, memory: Service, agent: str, job: str) -> Run | None:
    running = asyncio.create_task(worker.run(agent, job))
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=_TOLD)
            for newest in await memory.jobs.newest(limit=1):
                if not running.done() and newest.run.job == job and newest.of:
                    click.echo(f"{newest.done} of {newest.of} people and groups", err=True)
        return running.result()
    finally:
        # The store is closed next, when no job may be at work.
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _preview(config: Config, job: str, *, person: str | None, chat: str | None, agent: str | None) -> None:
    async with _whose(config, person=person, chat=chat, agent=agent) as (memory, context):
        if job not in memory.jobs.names:
            fail(f"There is no preview of {job}. Jobs you can preview: {', '.join(memory.jobs.names)}.", EX_DATAERR)
        click.echo(f"Working out what {job} would do ...", err=True)
        changes = await memory.jobs.preview(context, job)
    for change in changes:
        for line in _told(change):
            click.echo(line)
    click.echo(f"{len(changes)} changes. Nothing was changed." if changes else "There is nothing to do.")


async def _undo(config: Config, number: int, *, person: str | None, chat: str | None, agent: str | None) -> None:
    async with _whose(config, person=person, chat=chat, agent=agent) as (memory, context):
        undone = await memory.jobs.undo(context, number)
    click.echo(
        f"Undone: {undone.restored} memories are as they were before run {number}"
        + (f"; {undone.left} have changed since and stay as they are." if undone.left else ".")
    )


@asynccontextmanager
async def _whose(
    config: Config, *, person: str | None, chat: str | None, agent: str | None
) -> AsyncIterator[tuple[Service, Context]]:
    from gateway.cli.importing import agent_named, asker, owner_of

    name = agent_named(config, agent)
    async with opened(config) as roster:
        owner = owner_of(config, person=person, chat=chat, agent_wide=False, agent=agent)
        if owner is None:
            raise Unusable("Say whose memories you mean: --person PLATFORM:USER or --chat CHANNEL:CHAT.")
        memory = roster.stores[name].memory
        yield memory, await asker(memory, owner, person or chat or "")


def _known(worker: Worker, agent: str, job: str) -> None:
    from gateway.wording.texts import Texts

    if job not in worker.jobs:
        raise Unusable(f"There is no job {job}. The jobs are: {', '.join(worker.jobs)}.")
    if (setting := worker.missing(agent, job)) is not None:
        raise Unusable(Texts("en")("jobs.missing", job=job, agent=agent, setting=setting))


def _told(change: Change) -> Iterator[str]:
    marks = {"new": "+", "archived": "-", "replaced": "-", "back": "+"}
    yield f"{marks.get(change.what, '=')} {_line(change.memory)}" + (
        "" if change.what == "new" else f" ({': '.join(filter(None, (change.what, change.why)))})"
    )
    for parent in change.made_of:
        yield f"    made of {_line(parent)}"


def _line(memory: Memory) -> str:
    from gateway.cli.importing import one_line

    return one_line(f"{memory.short_id} {memory.kind} {memory.key}: {memory.value}", _LINE)
