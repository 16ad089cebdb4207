"""/memory runs, run, undo and preview: the changes that night jobs made to a person's memories or would make.

Invariants: everybody sees the changes to rows that they may read. In a group only an admin may undo a run, or ask for a
preview that takes a model. A run that touched nothing here gets the answer of a run that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.commands.call import Call, excerpt
from gateway.commands.jobs import figures, job_name
from gateway.commands.lines import ids_of
from gateway.wording.texts import CATALOGUE
from memory.errors import MemoryFault, NotFound, StorageError
from memory.jobs.runner import Change, NoUndo
from memory.jobs.runs import OwnerResult, Run
from memory.store.memories import Memory

#: Runs shown in a list, changes shown of one run, and characters shown of one memory in both.
_RUNS: Final = 10
_CHANGES: Final = 20
_LINE: Final = 100


async def show_runs(call: Call, rest: str) -> None:
    """Shows the runs that changed something here, newest first; a run over several linked accounts is shown once."""
    _, page = _paged(f"runs {rest}")
    found = _by_run(await call.memory.jobs.mine(call.context, limit=4 * _RUNS * page + 1))
    runs = found[(page - 1) * _RUNS : page * _RUNS] or found[:_RUNS]
    if not runs:
        await call.say(call.texts("night.none"))
        return
    lines = [
        call.texts(
            "night.line",
            n=items[0].run.id,
            date=call.texts.date(items[0].run.started_at),
            job=job_name(call.texts, items[0].run.job),
            figures=figures(call.texts, _summed(items)),
            state=_state(call, items),
        )
        for items in runs
    ]
    lines += _more(call, f"/memory runs {page + 1}" if len(found) > page * _RUNS else "")
    await call.say("\n".join([call.texts("night.head"), *lines, call.texts("night.how", n=runs[0][0].run.id)]))


async def show_run(call: Call, typed: str) -> None:
    number, page = _paged(typed)
    items = await _typed(call, number)
    if not items:
        return
    run = items[0].run
    changes = await call.memory.jobs.did(call.context, run.id)
    head = call.texts("night.run", state=_state(call, items), **_named(call, run))
    lines = _lines(call, changes, page, f"/memory run {run.id}")
    await call.say("\n".join([head, *(lines or [call.texts("night.run.empty")])]))


async def undo(call: Call, typed: str) -> None:
    if not _may(call):
        await call.say(call.texts("night.admins"))
        return
    items = await _typed(call, typed)
    if not items:
        return
    run = items[0].run
    try:
        done = await call.memory.jobs.undo(call.context, run.id)
    except NoUndo:
        await call.say(call.texts("night.undo.before", n=run.id))
        return
    except NotFound:  # forgotten or unlinked a moment ago
        await call.say(call.texts("night.unknown", n=run.id))
        return
    key = "night.undo" if done.restored else "night.undo.nothing"
    said = [call.texts(key, count=done.restored, **_named(call, run))]
    for heading, rows in (("night.undo.back", done.back), ("night.undo.stay", done.stay)):
        if rows:
            cut = [_row(call, "night.undo.row", row) for row in rows[:_CHANGES]]
            left = len(rows) - len(cut)
            said += [call.texts(heading), *cut, *([call.texts("night.more", count=left)] if left else [])]
    await call.say("\n".join(said))


async def preview(call: Call, typed: str) -> None:
    """Shows what a job would do here now; a job with a model asks it, and the tokens that took are shown."""
    (job, page), jobs = _paged(typed.lower()), call.memory.jobs
    if not _may(call):
        await call.say(call.texts("night.admins"))
        return
    if job not in jobs.names:
        named = ", ".join(f"{name} ({job_name(call.texts, name)})" for name in jobs.names)
        await call.say(call.texts("night.preview.jobs", jobs=named))
        return
    before = await _tokens(call, job)
    try:
        changes = await jobs.preview(call.context, job)
    except StorageError:
        raise
    except (MemoryFault, TimeoutError) as exc:
        await call.say(call.texts("night.preview.failed", why=_why(call, exc)))
        return
    tokens = await _tokens(call, job) - before
    named = job_name(call.texts, job)
    rows = [
        call.texts("night.preview" if changes else "night.preview.none", job=named),
        *_lines(call, changes, page, f"/memory preview {job}"),
    ]
    rows.append(call.texts("night.preview.cost", tokens=tokens) if tokens else call.texts("night.preview.free"))
    await call.say("\n".join(rows))


def _may(call: Call) -> bool:
    return call.context.session.private or call.admin


async def _typed(call: Call, typed: str) -> list[OwnerResult]:
    """Returns the results of the run whose number was typed; if there are none, says so and returns an empty list."""
    number = typed.removeprefix("#")
    items: list[OwnerResult] = []
    if number.isascii() and number.isdecimal() and len(number) < 10:
        items = await call.memory.jobs.item(call.context, int(number))
    if not items:
        await call.say(call.texts("night.unknown", n=excerpt(typed)))
    return items


def _by_run(items: Sequence[OwnerResult]) -> list[list[OwnerResult]]:
    runs: dict[int, list[OwnerResult]] = {}
    for item in items:
        runs.setdefault(item.run.id, []).append(item)
    return list(runs.values())


def _summed(items: Sequence[OwnerResult]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in items:
        for name, count in item.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts


def _state(call: Call, items: Sequence[OwnerResult]) -> str:
    states = {item.state for item in items}
    if states == {"undone"}:
        return call.texts("night.state.undone")
    return call.texts("night.state.failed") if "failed" in states else ""


def _named(call: Call, run: Run) -> dict[str, object]:
    return {"n": run.id, "date": call.texts.date(run.started_at), "job": job_name(call.texts, run.job)}


def _lines(call: Call, changes: Sequence[Change], page: int, command: str) -> list[str]:
    page = min(page, max(1, -(-len(changes) // _CHANGES)))
    lines = [_change(call, change) for change in changes[(page - 1) * _CHANGES : page * _CHANGES]]
    return lines + _more(call, f"{command} {page + 1}" if len(changes) > page * _CHANGES else "")


def _more(call: Call, command: str) -> list[str]:
    return [call.texts("memory.more", command=command)] if command else []


def _paged(typed: str) -> tuple[str, int]:
    named, _, page = typed.rpartition(" ")
    is_page = named and page.isascii() and page.isdecimal() and len(page) < 6
    return (named.strip(), max(1, int(page))) if is_page else (typed, 1)


def _change(call: Call, change: Change) -> str:
    if change.made_of:
        return _row(call, "night.new_of", change.memory, ids=ids_of(call, change.made_of))
    why = f".{change.why}" if change.what == "replaced" and change.why is not None else ""
    return _row(call, f"night.{change.what.replace(' ', '_')}{why}", change.memory)


def _row(call: Call, key: str, memory: Memory, **fields: str) -> str:
    return call.texts(key, said=excerpt(call.phrase(memory), _LINE), id=memory.short_id, **fields)


async def _tokens(call: Call, job: str) -> int:
    used = await call.memory.stats.usage(call.context, days=1, everywhere=True)
    return sum(row.input_tokens + row.output_tokens for row in used if row.purpose == job)


def _why(call: Call, error: Exception) -> str:
    code = getattr(error, "code", type(error).__name__)
    known = CATALOGUE[call.texts.language]
    keys = (f"night.why.{code}", f"jobs.why.{code}", f"failure.{code}", "failure.other")
    return call.texts(next(key for key in keys if key in known))
