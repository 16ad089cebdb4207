"""Completions while a command is being typed: memories to choose from, parts, timezones, forms.

Invariant: only items that the person may see and could act on are offered; the command itself decides once it is given.
This module only reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from channels.base import Form, Suggestion
from gateway.commands import memory as memory_command
from gateway.commands import profile
from gateway.commands.call import EXCERPT, excerpt
from gateway.commands.jobs import job_name
from gateway.wording.texts import Texts
from memory.browse.browse import LISTED
from memory.context import Context
from memory.service import Service
from memory.store.memories import Memory
from memory.text.words import query_terms
from memory.text.zones import zones_like

#: Characters shown of a memory to choose.
_LABEL = 100
#: Largest number of completions a platform takes.
_SUGGESTED = 25
#: Largest number of typed words that are searched for.
_WORDS = 12
#: Room in a form, in characters, unless the present value needs more.
_FORM_LIMIT = 2_000
#: Actions allowed on every memory the person sees; any other action requires that the person may change the memory.
_LOOKING = frozenset({"show", "history"})


async def completions(
    store: Service, context: Context, texts: Texts, name: str, typed: str, arguments: str
) -> Sequence[Suggestion]:
    action = arguments.partition(" ")[0].lower()
    typed = " ".join(typed[:EXCERPT].split())
    if name == "profile":
        return _settings(action, typed)
    if name == "memory" and action == "list":
        return await _parts(store, context, texts, typed)
    if name == "memory" and action in memory_command.WITH_RUN:
        return await _runs(store, context, texts, typed, undone=action == "run")
    if name == "memory" and action == "preview":
        return [
            Suggestion(value=job, label=job_name(texts, job))
            for job in store.jobs.names
            if job.startswith(typed.lower())
        ]
    if name == "memory" and action not in memory_command.WITH_ID:
        return ()
    changeable = name != "memory" or action not in _LOOKING
    folded = typed.casefold()
    # The typed text may end within a word, and some scripts have no spaces.
    words = list(dict.fromkeys([*typed.split(), *folded.split(), *query_terms(folded)]))[:_WORDS]
    prefix = folded if " " not in folded else ""
    memories = await store.browse.offered(context, prefix, words, changeable=changeable, limit=_SUGGESTED)
    return [Suggestion(value=memory.short_id, label=_labelled(memory, context)) for memory in memories]


def _settings(what: str, typed: str) -> list[Suggestion]:
    if what == "timezone":
        return [Suggestion(value=zone, label=zone) for zone in zones_like(typed, limit=_SUGGESTED)]
    if what == "language":
        return [Suggestion(value=code, label=label) for code, label in profile.NAMES.items()]
    if what == "manner":
        return [Suggestion(value=word, label=word) for word in ("auto", "off", "on") if word.startswith(typed.lower())]
    return []


async def _parts(store: Service, context: Context, texts: Texts, typed: str) -> list[Suggestion]:
    shelf = await store.browse.shelf(context, LISTED, limit=1, page=1)
    counts: dict[tuple[str, str], int] = {}
    for (kind, category), count in shelf.counts.items():
        parts = [("kinds", kind), ("category", category)] if kind == "fact" else [("kinds", kind)]
        for part in parts:
            counts[part] = counts.get(part, 0) + count
    labels = {named: (f"{texts(f'{group}.{named}')} ({count})") for (group, named), count in counts.items()}
    begun = typed.casefold()
    return [
        Suggestion(value=named, label=label)
        for named, label in labels.items()
        if named.startswith(begun) or label.casefold().startswith(begun)
    ][:_SUGGESTED]


async def _runs(store: Service, context: Context, texts: Texts, typed: str, *, undone: bool) -> list[Suggestion]:
    """Returns the runs of night jobs that changed something here, newest first; with `undone` also those taken back."""
    labels: dict[str, str] = {}
    for item in await store.jobs.mine(context, limit=2 * _SUGGESTED):
        number = str(item.run.id)
        if number.startswith(typed) and (undone or item.state != "undone"):
            labels[number] = f"{number} · {texts.date(item.run.started_at)} · {job_name(texts, item.run.job)}"
    return [Suggestion(value=number, label=label) for number, label in labels.items()][:_SUGGESTED]


def _labelled(memory: Memory, context: Context) -> str:
    own = memory.subject_id is None or memory.subject_id in (context.speaker.id, *context.scope.selves)
    whose = "" if own else f"{memory.subject_name}: "
    return excerpt(f"{memory.short_id} · {whose}{memory.key}: {memory.value}", _LABEL)


async def form(store: Service, context: Context, texts: Texts, name: str, arguments: str) -> Form | None:
    words = arguments.split()
    if name == "remember" and not words:
        return Form(title=texts("form.remember.title"), label=texts("form.remember.label"), limit=_FORM_LIMIT)
    if name == "memory" and [word.lower() for word in words[:1]] == ["edit"]:
        name, words = "correct", words[1:]
    if name != "correct" or len(words) != 1:
        return None
    offered = await store.browse.offered(context, words[0], (words[0],), changeable=True, limit=_SUGGESTED)
    found = next((memory for memory in offered if memory.short_id == words[0]), None)
    if found is None:
        return None
    return Form(
        title=texts("form.correct.title", id=found.short_id),
        label=texts("form.correct.label"),
        value=found.value,
        limit=max(_FORM_LIMIT, len(found.value)),
    )
