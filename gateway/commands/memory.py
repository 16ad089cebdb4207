"""/memory, /remember and /correct: actions on single memories, and the export of all of them.

Invariant: "saved" and its like are said inside the transaction that holds the row, never before.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, cast

from channels.base import Button, File
from gateway.actions.memory import MASK, NothingKept, syntax, typed
from gateway.commands import learning, lines, listing, pages, why
from gateway.commands.call import Asking, Call, excerpt
from gateway.commands.jobs import figures, job_name
from gateway.commands.lines import ids_of
from gateway.pipeline.delivery import shows
from gateway.wording.texts import CATALOGUE, REFUSALS, means
from memory import keys
from memory.browse.why import Shown
from memory.chat.edits import Edits
from memory.errors import Derived, MemoryFault, NotCurrent, NotFound, NotYours, StorageError
from memory.jobs.compare import DoubtAnswer
from memory.jobs.runner import Change, NoUndo
from memory.jobs.runs import OwnerResult, Run
from memory.store.memories import Memory
from memory.store.questions import Question

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


#: The id of a memory, as it is shown.
_ID = re.compile(r"m_[a-z0-9]{4,12}")


async def look(call: Call) -> None:
    action, _, rest = call.arguments.partition(" ")
    named = action.lower()
    if named.isdecimal():
        await listing.show_list(call, call.arguments)
        return
    if named not in _ACTIONS:
        near = difflib.get_close_matches(named, ACTIONS, n=1)
        hint = call.texts("memory.no_action.hint", action=near[0]) if near else ""
        await call.say(call.texts("memory.no_action", action=excerpt(action), hint=hint))
        return
    act, syntax = _ACTIONS[named]
    call = replace(call, usage=usage_of(named))
    if syntax.startswith("<") and not rest.strip():
        await _lacks(call, *(hint for those, hint in _HINTS.items() if named in those))
    else:
        await act(call, rest.strip())


async def _lacks(call: Call, *hints: str) -> None:
    await call.say("\n".join([call.usage_line(), *map(call.texts, hints)]))


def usage_of(action: str) -> str:
    return f"/memory {action} {_ACTIONS[action][1]}".rstrip()


async def _show(call: Call, short_id: str) -> None:
    await _on(call, short_id, lambda edits: _all_of(call, edits, short_id))


async def _history(call: Call, short_id: str) -> None:
    def list_versions(edits: Edits) -> str:
        return "\n".join(lines.versions(call, typed(edits, "show_memory", id=short_id).versions))

    await _on(call, short_id, list_versions, in_place=False)


async def _mark(call: Call, short_id: str, *, key: str, action: str, arguments: Mapping[str, object]) -> None:
    def mark(edits: Edits) -> Asking:
        memory: Memory = typed(edits, action, id=short_id, **arguments)
        done = call.texts(key, id=memory.short_id, said=excerpt(_said(call, memory)))
        if call.inbound.pressed is None:
            return Asking(text=done)
        asking = _all_of(call, edits, short_id)
        return replace(asking, text=f"{asking.text}\n{done}")

    await _on(call, short_id, mark)


async def _tag(call: Call, rest: str, *, tagged: bool) -> None:
    short_id, _, typed_tags = rest.partition(" ")
    if not (tags := keys.split_tags(typed_tags)):
        await _lacks(call)
        return

    def tag_all(edits: Edits) -> str:
        memory: Memory = typed(edits, "tag", id=short_id, tags=tags, tagged=tagged)
        said, tags_now = excerpt(_said(call, memory)), " ".join(f"#{tag}" for tag in memory.tags)
        return call.texts("memory.tag.done" if tags_now else "memory.tag.none", id=short_id, said=said, tags=tags_now)

    await _on(call, short_id, tag_all)


async def _on(call: Call, short_id: str, change: Callable[[Edits], str | Asking], *, in_place: bool = True) -> None:
    def change_or_refuse(edits: Edits) -> str | Asking:
        try:
            return change(edits)
        except REFUSALS as exc:
            return call.refusal(short_id, exc)

    await call.do(change_or_refuse, in_place=in_place)


def _all_of(call: Call, edits: Edits, short_id: str) -> Asking:
    """Returns a memory in full, with buttons for its actions. Raises `NotFound`."""
    shown: Shown = typed(edits, "show_memory", id=short_id)
    memory, texts = shown.memory, call.texts
    made: list[Button | None] = []
    if memory.valid_until is None and _may_change(edits, short_id):
        pin = "unpin" if memory.pinned else "pin"
        made.append(call.button(texts(f"memory.button.{pin}"), f"/memory {pin} {short_id}"))
        if not memory.confirmed:
            made.append(call.button(texts("memory.button.confirm"), f"/memory confirm {short_id}"))
        made.append(call.button(texts("memory.button.forget"), f"/forget {short_id}"))
    if len(shown.versions) > 1:
        made.append(call.button(texts("memory.button.history"), f"/memory history {short_id}"))
    return Asking(text="\n".join(lines.details(call, shown)), buttons=pages.buttons(*made))


def _may_change(edits: Edits, short_id: str) -> bool:
    try:
        edits.may_forget(short_id)
    except (NotYours, Derived):
        return False
    return True


async def remember(call: Call) -> None:
    if not call.arguments:
        await call.say(call.usage_line())
    else:
        await keep(call, call.arguments)


async def keep(call: Call, text: str, *, key: str | None = None) -> None:
    if not call.agent.spec.memory.enabled:
        await call.say(call.texts("memory.off"))
        return

    def save(edits: Edits) -> str:
        try:
            kept: list[Memory] = typed(edits, "remember", text=text, key=key)
        except NothingKept:
            return call.texts("remember.nothing")
        saved = [call.texts("remember.done", id=memory.short_id, said=_said(call, memory)) for memory in kept]
        return "\n".join([*saved, *_masked(call, text)])

    await call.do(save)


async def correct(call: Call) -> None:
    short_id, _, value = call.arguments.partition(" ")
    value = value.strip()
    if not short_id:
        await _lacks(call, "memory.ids")
        return

    def put_right(edits: Edits) -> str:
        try:
            if not value:
                return _asked_for(call, edits, short_id)
            old, new = typed(edits, "correct", id=short_id, value=value)
        except REFUSALS as exc:
            return call.refusal(short_id, exc)
        if old is new:
            return call.texts("correct.same", id=short_id)
        done = call.texts(
            "correct.done", new=_said(call, new), new_id=new.short_id, old=_said(call, old), old_id=old.short_id
        )
        return "\n".join([done, *_masked(call, value)])

    await call.do(put_right)


def _masked(call: Call, text: str) -> list[str]:
    """Returns a line saying that secrets in a text were masked before it was kept; none if it held none."""
    return [call.texts("remember.masked")] if MASK in text else []


def _asked_for(call: Call, edits: Edits, short_id: str) -> str:
    """Returns the question for a memory's new text. Raises `MemoryFault` if it can't be corrected."""
    memory = edits.show(short_id).memory
    edits.may_forget(short_id)
    if memory.valid_until is not None:
        raise NotCurrent(short_id)
    command = call.usage.partition(" <")[0]
    return call.texts("correct.ask", id=memory.short_id, said=excerpt(memory.value), command=command)


def _said(call: Call, memory: Memory) -> str:
    """Returns a memory for a receipt, on one line; the person's own note as its bare words."""
    mine = memory.subject_id in (None, call.context.speaker.id, *call.context.scope.selves)
    return " ".join(memory.value.split()) if memory.key == "note" and mine else call.phrase(memory)


async def _export(call: Call, rest: str) -> None:
    """Sends the memory here as files for the asker alone. In a group only an admin may ask for everybody's messages."""
    texts = call.texts
    if rest and not means(rest, "transcript"):
        await call.say(call.usage_line())
        return
    if call.channel is None or not call.channel.capabilities.file_bytes:
        await call.say(texts("export.no_files"))
        return
    if call.inbound.chat_kind == "group":
        # Files outlive the talk, and go further than the people who read along here.
        call = replace(call, discreet=True)
        if rest and not call.admin:
            await call.say(texts("export.admins"))
            return
    exported = await call.memory.transfer.export(call.context, transcript=bool(rest))
    files = (
        File(name="remora.md", data=exported.page.encode("utf-8", "replace")),
        File(name="remora.json", data=exported.data),
    )
    if not all(shows(call.channel, file) for file in files):
        await call.say(texts("export.too_large"))
        return
    key = "export.all" if rest else "export.done"
    text = texts(key, memories=exported.memories, messages=exported.messages)
    await call.do(lambda _edits: Asking(text=text, files=files))


async def why_of(call: Call) -> None:
    if _ID.fullmatch(call.arguments.strip()):
        await _show(call, call.arguments.strip())
    else:
        await why.explain(call)


async def answer_doubt(call: Call, question: Question, taken: str) -> None:
    chosen = cast("DoubtAnswer", taken)

    def decide(edits: Edits) -> str:
        try:
            doubt, is_open = edits.decide(question, chosen)
        except NotCurrent:
            return call.texts("answer.over")
        if not is_open:
            return call.texts("answer.over")
        if chosen == "both":
            return call.texts("doubt.both")
        return call.texts("doubt.kept", said=call.phrase(doubt.older if chosen == "older" else doubt.newer))

    await call.do(decide, in_place=True)


_Handler: TypeAlias = Callable[[Call, str], Awaitable[None]]


def _marking(action: str, key: str, **arguments: object) -> tuple[_Handler, str]:
    return partial(_mark, key=key, action=action, arguments=arguments), syntax(action, **arguments)


#: The actions of `/memory`, each with its handler and the syntax of its arguments.
_ACTIONS: Mapping[str, tuple[_Handler, str]] = {
    "": (listing.show_list, ""),
    "list": (listing.show_list, "[part] [page] [filters]"),
    "search": (listing.search_page, "<words or filters>"),
    "show": (_show, syntax("show_memory")),
    "why": (lambda call, rest: why_of(replace(call, arguments=rest)), "[all|<id>]"),
    "pin": _marking("pin", "memory.pin.done", pinned=True),
    "unpin": _marking("pin", "memory.unpin.done", pinned=False),
    "confirm": _marking("confirm", "memory.confirm.done"),
    "tag": (partial(_tag, tagged=True), syntax("tag")),
    "untag": (partial(_tag, tagged=False), syntax("tag")),
    "edit": (lambda call, rest: correct(replace(call, arguments=rest)), syntax("correct")),
    "history": (_history, syntax("show_memory")),
    "export": (_export, "[transcript]"),
    "off": (partial(learning.switch, on=False), ""),
    "on": (partial(learning.switch, on=True), ""),
    "status": (learning.status, ""),
    "runs": (show_runs, "[page]"),
    "run": (show_run, "<number> [page]"),
    "undo": (undo, "<number>"),
    "preview": (preview, "[job] [page]"),
}
#: The actions as platforms offer them; those on one memory, which take its id; those on a run of the night's work.
ACTIONS = tuple(action for action in _ACTIONS if action)
WITH_ID = frozenset(action for action, (_, rest) in _ACTIONS.items() if rest.startswith("<id>"))
WITH_RUN = frozenset(action for action, (_, rest) in _ACTIONS.items() if rest.startswith("<number>"))
USAGE = "/memory [list|search|show|edit|export|off|on|…]"
#: The texts that tell where to find the id or number that an action needs.
_HINTS = {WITH_ID: "memory.ids", WITH_RUN: "night.numbers"}
