"""What a turn's prompt is made of: the window, the snapshot and what is recalled.

Invariants: a view is one read and changes nothing; what follows from it (a new snapshot, a shorter window, what `/why`
tells) is kept in the transaction that ends its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory.desk import Context
from memory.recall.recall import Budget, Recall, Recalled, Snapshot, recall, stored_snapshot, take_snapshot
from memory.recall.search import Hit
from memory.store import attachments, history, memories, people, recalls
from memory.store.attachments import Attached
from memory.store.database import Reader, Transaction
from memory.store.history import Message
from memory.store.recalls import Entry

#: A snapshot is taken anew when the person comes back after this silence (DESIGN 5.5).
_SNAPSHOT_IDLE_MS: Final = 5 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a turn's prompt is made of.

    `snapshot_taken_at` is set where the snapshot was taken for this turn, `trimmed_to` where older messages have just
    left the window. `attached` is what came with messages of the window, by their ids.
    """

    window: tuple[Message, ...]
    recall: Recall
    snapshot_taken_at: int | None = None
    trimmed_to: int | None = None
    attached: Mapping[int, tuple[Attached, ...]] = field(default_factory=dict)


def take(
    reader: Reader,
    context: Context,
    said: Sequence[Message],
    budget: Budget | None,
    hits: Sequence[Hit],
    *,
    window_tokens: int,
    window_messages: int,
    now: int,
    count_tokens: Callable[[str], int],
) -> View:
    """The view of the turn in which this was `said`, with what was found for it. Without a budget it holds no memory.

    What is learned after `now` is newer than a snapshot taken here.
    """
    session = context.session
    messages = history.after(reader, session.id, session.window_after, limit=window_messages * 2)
    window = _fit(messages, keep=said[0].id, tokens=window_tokens, count=window_messages)
    trimmed_to = window[0].id - 1 if window and len(window) < len(messages) else None
    attached = attachments.of_messages(reader, [message.id for message in window])
    if budget is None:
        return View(window=tuple(window), recall=Recall(snapshot=Snapshot()), trimmed_to=trimmed_to, attached=attached)
    wanted = context.speaker.manner if session.private else session.manner
    budget = replace(budget, manner=budget.manner and wanted)
    snapshot, taken = _snapshot(reader, context, budget, now=now, count_tokens=count_tokens)
    found = recall(
        reader,
        [hit for hit in hits if hit.memory is None or budget.takes(hit.memory)],
        "\n".join(message.text for message in said),
        snapshot=snapshot,
        in_window=frozenset(message.id for message in window),
        budget=budget,
        count_tokens=count_tokens,
    )
    return View(
        window=tuple(window),
        recall=found,
        snapshot_taken_at=now if taken else None,
        trimmed_to=trimmed_to,
        attached=attached,
    )


def keep(tx: Transaction, view: View, *, turn_id: int, session_id: int, now: int) -> None:
    """Keep what follows from the view of a turn that ends, and what of memory was in it."""
    snapshot = view.recall.snapshot
    if view.snapshot_taken_at is not None:
        people.keep_snapshot(tx, session_id, snapshot.ids, now=view.snapshot_taken_at)
    if view.trimmed_to is not None:
        people.trim_window(tx, session_id, after=view.trimmed_to)
    found = {item.memory.id for item in view.recall.items if item.memory is not None}
    standing = [m for m in (*snapshot.profile, *snapshot.known, *snapshot.newer) if m.id not in found]
    entries = [_entry(item) for item in view.recall.items]
    entries += [Entry(item="memory", item_id=memory.id, placed="known", score=None, parts={}) for memory in standing]
    recalls.keep(tx, turn_id, entries)
    recalled = [i.memory.id for i in view.recall.items if i.memory is not None and i.placed == "recalled"]
    memories.touch(tx, recalled, now=now)


def _snapshot(
    reader: Reader, context: Context, budget: Budget, *, now: int, count_tokens: Callable[[str], int]
) -> tuple[Snapshot, bool]:
    """The prompt's snapshot, and whether it was taken just now."""
    session, scope = context.session, context.scope
    idle = session.last_message_at is None or now - session.last_message_at > _SNAPSHOT_IDLE_MS
    if session.snapshot is None or session.snapshot_at is None or idle:
        return take_snapshot(reader, scope, budget, count_tokens), True
    stored = stored_snapshot(reader, scope, session.snapshot, taken_at=session.snapshot_at, budget=budget)
    return stored, False


def _fit(messages: list[Message], *, keep: int, tokens: int, count: int) -> list[Message]:
    """The newest messages that fit. Once they don't, half the room is freed, so that the front of the prompt

    stays the same for many turns. The current turn (ids from `keep` on) always stays; the first message is a
    person's.
    """
    if len(messages) <= count and sum(message.tokens for message in messages) <= tokens:
        return messages
    room = tokens // 2
    kept: list[Message] = []
    for message in reversed(messages):
        room -= message.tokens
        if message.id < keep and (room < 0 or len(kept) >= count // 2):
            break
        kept.append(message)
    kept.reverse()
    while kept and kept[0].id < keep and kept[0].role != "user":
        kept.pop(0)
    return kept


def _entry(item: Recalled) -> Entry:
    score = round(item.score, 4)
    if item.memory is not None:
        return Entry(item="memory", item_id=item.memory.id, placed=item.placed, score=score, parts=item.parts)
    assert item.passage is not None
    return Entry(item="message", item_id=item.passage.message.id, placed=item.placed, score=score, parts=item.parts)
