"""Memories, and the messages they come from, as a person reads them: a line in a list, or a memory in full.

Invariant: a message is linked only where `Edits.show` or `Browse.why` gives its address, which is where the person
who asks can see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from channels.base import Place
from gateway.commands.call import Call, excerpt
from gateway.commands.jobs import job_name
from memory.browse.why import Shown
from memory.store.history import Message
from memory.store.lineage import Source
from memory.store.memories import Memory, tags_seen

#: Characters shown of a memory in a list, and of a memory shown alone.
_LINE = 75
_ALONE = 200
#: Versions shown with a memory; `/memory history` shows all of them.
_VERSIONS = 3
#: Source memories named for a derived memory: a reflection has hundreds of them.
_MADE_OF = 12


def memory_line(call: Call, memory: Memory) -> str:
    fields = {
        "id": memory.short_id,
        "said": excerpt(call.phrase(memory), _LINE),
        "came": came(call, memory),
        "marks": marks(call, memory),
    }
    if memory.valid_until is not None:
        return call.texts("memory.old_line", **fields, until=call.texts.date(memory.valid_until))
    return call.texts("memory.line", **fields)


def came(call: Call, memory: Memory) -> str:
    """Returns when a memory was told; for a derived memory, up to when its sources were told."""
    how = "derived" if memory.origin == "derived" else "told"
    return call.texts(f"memory.came.{how}", date=call.texts.date(memory.learned_at))


def marks(call: Call, memory: Memory) -> str:
    held = (
        ("unsure", memory.unsure),
        ("pinned", memory.pinned),
        ("confirmed", memory.confirmed),
        ("archived", memory.archived_at is not None),
    )
    tags = "".join(f" #{tag}" for tag in tags_seen(memory, call.context.scope))
    return "".join(call.texts(f"memory.mark.{name}") for name, holds in held if holds) + tags


def details(call: Call, shown: Shown) -> list[str]:
    texts, memory = call.texts, shown.memory
    state = ""
    if memory.valid_until is not None:
        state = texts("memory.state.replaced", until=texts.date(memory.valid_until))
    elif memory.archived_at is not None:
        state = _set_aside(call, shown)
    lines = [
        texts(
            "memory.show",
            id=memory.short_id,
            said=excerpt(call.phrase(memory), _ALONE),
            kind=texts(f"kind.{memory.kind}"),
            category=texts(f"category.{memory.category}"),
            key=memory.key,
            value=memory.value,
            came=_came_alone(call, memory),
            times=texts("memory.times", count=memory.reinforced_count) if memory.reinforced_count else "",
            state=state,
        ),
        texts(
            "memory.weight",
            percent=round(100 * shown.left),
            fades="" if shown.fades else texts("memory.lasts"),
            importance=memory.importance,
            marks=marks(call, memory),
        ),
    ]
    if memory.flags:
        lines.append(texts("memory.flags", flags=", ".join(memory.flags)))
    lines += [source_line(call, source) for source in shown.sources]
    if shown.made_of:
        lines.append(texts("memory.made_of", ids=ids_of(call, shown.made_of)))
    if (run := shown.made_by) is not None:
        job = job_name(texts, run.job)
        lines.append(texts("night.made", date=texts.date(run.started_at), job=job, n=run.id))
    if len(shown.versions) > 1:
        lines += versions(call, shown.versions[-_VERSIONS:])
    return lines


def _came_alone(call: Call, memory: Memory) -> str:
    texts, date = call.texts, call.texts.date(memory.learned_at)
    if memory.origin == "derived":
        return texts("memory.came_alone.derived", date=date)
    return texts("memory.came_alone.told", date=date, origin=texts(f"memory.origin.{memory.origin}"))


def _set_aside(call: Call, shown: Shown) -> str:
    if shown.made_into:
        return call.texts("night.aside.merged", ids=ids_of(call, shown.made_into))
    if shown.set_aside_by is not None and shown.set_aside_by.job == "decay":
        return call.texts("night.aside.faded")
    return call.texts("memory.state.archived")


def ids_of(call: Call, rows: Sequence[Memory]) -> str:
    more = [call.texts("why.more", count=len(rows) - _MADE_OF)] if len(rows) > _MADE_OF else []
    return ", ".join([*(memory.short_id for memory in rows[:_MADE_OF]), *more])


def versions(call: Call, rows: Sequence[Memory]) -> list[str]:
    lines = [call.texts("memory.history")]
    for memory in rows:
        said = {"id": memory.short_id, "said": excerpt(call.phrase(memory), _ALONE)}
        if memory.valid_until is None:
            lines.append("  " + call.texts("memory.version_now", **said, since=call.texts.date(memory.valid_from)))
        else:
            since, until = call.texts.span(memory.valid_from, memory.valid_until)
            lines.append("  " + call.texts("memory.version", **said, since=since, until=until))
    return lines


def source_line(call: Call, source: Source) -> str:
    date = call.texts.date(source.said_at)
    if source.text is None:
        return call.texts("memory.source_erased", date=date)
    fields = {"date": date, "text": excerpt(source.text), "link": link(call, source.session_key, source.platform_ref)}
    if source.author_id is None:
        return call.texts("memory.source_mine", **fields)
    if source.author_id in (call.context.speaker.id, *call.context.scope.selves):
        return call.texts("memory.source", **fields)
    return call.texts("memory.source_of", **fields, name=source.author_name)


def quoted_line(call: Call, message: Message, session_key: str) -> str:
    where = link(call, session_key, message.platform_ref)
    return f"{call.quote(message)} ({call.texts.date(message.said_at)}){where}"


def link(call: Call, session_key: str, platform_ref: str | None) -> str:
    """Returns a space and the address of a message, or "" if this channel has no such addresses."""
    place = Place.from_session_key(session_key)
    if platform_ref is None or call.channel is None or place.channel != call.channel.id:
        return ""
    address = call.channel.link(place, platform_ref)
    return "" if address is None else f" {address}"


def money(cost: float) -> str:
    """Returns a cost in the currency of the configured prices: two decimal places, below one unit of it four."""
    return f"{cost:.2f}" if cost >= 1 else f"{cost:.4f}"
