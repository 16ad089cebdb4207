"""/jobs, for admins: shows when each night job runs next and how it last went, and starts one at once.

Invariants: the command is asked and answered in a private chat only. It shows figures and names of jobs, never
memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from agents.spec import JobsSpec
from gateway.commands.call import Call, by_action, excerpt
from gateway.ops.night_clock import TIDY, Worker
from gateway.wording.texts import CATALOGUE, Texts
from memory.jobs.runner import RunProgress
from memory.service import Service

#: The names of all jobs, for completion.
NAMES = tuple(JobsSpec.minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldJob:
    """A job in words. While it runs, `done` people and groups out of `of` have been gone through."""

    job: str
    next: str
    last: str
    done: int = 0
    of: int = 0


async def jobs(call: Call) -> None:
    if call.nights is None:
        await call.say(call.texts("jobs.none"))
    else:
        nights = call.nights
        await by_action(call, {"": ("", partial(_list, nights)), "run": (r"\S+(\s+\S+)?", partial(_run, nights))})


def next_line(call: Call) -> list[str]:
    planned = () if call.nights is None else call.nights.planned([call.agent.spec.name])
    times = [(run.at, run.job) for run in planned if run.at is not None]
    if not times:
        return []
    at, job = min(times)
    return [call.texts("status.jobs", job=job_name(call.texts, job), at=call.texts.moment(at))]


async def timetable(texts: Texts, memory: Service, nights: Worker) -> list[tuple[str, list[ToldJob]]]:
    newest = {(progress.run.agent, progress.run.job): progress for progress in await memory.jobs.latest()}
    tables = []
    for agent in nights.agents:
        rows = []
        for run in nights.planned([agent.agent]):
            last = newest.get((run.agent, run.job))
            if run.job not in {job.name for job in agent.jobs} and last is None and len(nights.agents) > 1:
                continue
            at = "" if last is None else texts.moment(last.run.started_at)
            under_way = last if last is not None and last.run.state == "running" else None
            rows.append(
                ToldJob(
                    job=run.job,
                    done=under_way.done if under_way else 0,
                    of=under_way.of if under_way else 0,
                    next=texts("jobs.off") if run.at is None else texts.moment(run.at),
                    last=texts("jobs.never") if last is None else texts("jobs.last", at=at, how=outcome(texts, last)),
                )
            )
        tables.append((agent.agent, rows))
    return tables


def job_name(texts: Texts, job: str) -> str:
    return _or(texts, f"jobs.name.{job}", job)


def figures(texts: Texts, counts: Mapping[str, int]) -> str:
    counted = [
        texts("jobs.count", what=_or(texts, f"jobs.figure.{name}", name.replace("_", " ")), count=count)
        for name, count in counts.items()
        if count
    ]
    return ", ".join(counted) or texts("jobs.nothing")


def outcome(texts: Texts, progress: RunProgress) -> str:
    run = progress.run
    fields = {"done": progress.done, "of": progress.of}
    match run.state:
        case "done":
            return texts("jobs.state.done", counts=figures(texts, run.counts))
        case "failed":
            why = _or(texts, f"jobs.why.{run.error}", run.error or "")
            if not progress.given_up:
                return texts("jobs.state.retried", why=why, at=texts.moment(run.not_before), **fields)
            advice = texts(_advice(run.error or ""), job=run.job)
            return texts("jobs.state.failed", why=why, advice=advice, **fields)
        case "skipped":
            return texts("jobs.state.skipped", at=texts.moment(run.not_before), **fields)
        case "running":
            how = "put_down" if run.put_down else "running" if progress.of else "begun"
            return texts(f"jobs.state.{how}", **fields)
        case state:
            return texts(f"jobs.state.{state}", **fields)


async def _list(nights: Worker, call: Call, _rest: str) -> None:
    texts = call.texts
    lines: list[str] = []
    for agent, rows in await timetable(texts, call.memory, nights):
        lines.append(texts("jobs.agent", agent=agent, zone=texts.timezone))
        lines += [
            texts("jobs.line", job=f"{job_name(texts, row.job)} ({row.job})", next=row.next, last=row.last)
            for row in rows
        ]
    await call.say("\n".join(lines))


async def _run(nights: Worker, call: Call, typed: str) -> None:
    job, agent = [*typed.split(), call.agent.spec.name][:2]
    job, texts, agents = job.lower(), call.texts, [night.agent for night in nights.agents]
    if job not in nights.jobs:
        await call.say(texts("jobs.unknown", job=excerpt(job), jobs=", ".join(nights.jobs)))
    elif agent not in agents:
        await call.say(texts("jobs.unknown_agent", agent=excerpt(agent), agents=", ".join(agents)))
    elif (setting := nights.missing(agent, job)) is not None:
        await call.say(texts("jobs.missing", job=job_name(texts, job), agent=agent, setting=setting))
    else:
        nights.ask(agent, job)
        await call.say(texts("jobs.asked", job=job_name(texts, job), agent=agents[0] if job == TIDY else agent))


def _advice(error: str) -> str:
    if error in ("model_failed", "TimeoutError", "unreadable_answer"):
        return "jobs.advice.model"
    return "jobs.advice.store" if error.startswith("stor") else "jobs.advice"


def _or(texts: Texts, key: str, otherwise: str) -> str:
    return texts(key) if key in CATALOGUE[texts.language] else otherwise
