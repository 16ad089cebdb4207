"""The material of a turn's prompt: the window, the snapshot and the recalled memories and passages.

Invariants: A view is one read and changes nothing. Its effects (a new snapshot, a shorter window, the entries that
`/why` shows) are kept in the transaction that ends its turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory.browse import talks
from memory.context import Context
from memory.learn.retract import Revision
from memory.recall.recall import Budget, Recall, Recalled, Snapshot, recall, stored_snapshot, take_snapshot
from memory.recall.search import Hit
from memory.reminders.reminding import Reminder
from memory.store import attachments, chats, history, memories, passages, recalls
from memory.store.attachments import QUOTED, Attached
from memory.store.database import Reader, Transaction
from memory.store.history import Message
from memory.store.passages import Passage
from memory.store.questions import Question
from memory.store.recalls import Item, RecalledEntry

#: The most tokens that a prompt shows of a tool's result from an earlier turn. An answer has been made of it.
OLD_RESULT: Final = 300
#: The last files and the last results of tools that are looked at of what was summed up.
_FILES: Final = 3
_RESULTS: Final = 12
#: The most messages, and their characters, that are shown of what a branch goes on from.
_BEFORE: Final = 200
_BEFORE_CHARS: Final = 24_000
#: A snapshot is taken anew when the person comes back after this silence (DESIGN 5.5).
_SNAPSHOT_IDLE_MS: Final = 5 * 60 * 1000
#: Words by which people speak of a picture.
_PICTURE: Final = re.compile(
    r"\b(?:pictures?|photos?|photographs?|images?|pics?|screenshots?|selfies?|fotos?|bild(?:er|ern|es)?|im[áa]gen(?:es)?"
    r"|capturas?|captures?)\b|写真|画像|スクショ|[图圖]片|照片|相片|截[图圖]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSize:
    """The most tokens and messages of a session's history in a prompt.

    So many messages that the speaker said `lately` are looked at as well, whatever their words. With `compacted`, older
    messages wait for a compaction: the window is not shortened when a prompt has no room for them.
    """

    tokens: int
    messages: int
    lately: int = 0
    compacted: bool = False

    @property
    def longest(self) -> int:
        """The tokens at which an earlier message is shortened, so that one long message leaves room for others."""
        return max(1, self.tokens // 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMaterial:
    """The material of a turn's prompt.

    `snapshot_taken_at` is set if the snapshot was taken for this turn. `trimmed_to` is set if older messages have just
    left the window. `attached` holds the attachments of the window's messages, by message id, and `again` those that
    left it and are spoken of now. `before` holds the words said before the branch that this conversation is, as pairs
    of role and text. `summed_up` holds the last files that came with messages that the summary covers,
    with the times of these, and `results` the last results of tools there, both newest first. `members` holds the names
    of a group's people, including those who have said nothing in the window. `question` is open to the person.
    `learned` holds what the turn's own messages tell and take back, `reminders` the person's reminders to come, if they
    were looked for. Once a model has been asked, `portions` are the tokens of each part of its request, and `sizes`
    those of each memory and message among what was remembered.
    """

    window: tuple[Message, ...]
    recall: Recall
    snapshot_taken_at: int | None = None
    trimmed_to: int | None = None
    attached: Mapping[int, tuple[Attached, ...]] = field(default_factory=dict)
    again: Mapping[int, tuple[Attached, ...]] = field(default_factory=dict)
    before: tuple[tuple[str, str], ...] = ()
    summed_up: tuple[tuple[int, Attached], ...] = ()
    results: tuple[Message, ...] = ()
    members: Mapping[int, str] = field(default_factory=dict)
    question: Question | None = None
    learned: Revision | None = None
    reminders: tuple[Reminder, ...] = ()
    portions: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[tuple[Item, int], int] = field(default_factory=dict)

    @property
    def file_texts(self) -> list[str]:
        """The texts of all files and quotes that the model may read, without the bot's and the quoter's words."""
        shown = (file for files in (*self.attached.values(), *self.again.values()) for file in files)
        beside = (file for file in (*shown, *(file for _, file in self.summed_up)) if file.state == "text")
        return [file.text for file in beside if not file.kind.startswith((f"{QUOTED}bot ", f"{QUOTED}self "))]


def take(
    reader: Reader,
    context: Context,
    said: Sequence[Message],
    budget: Budget | None,
    hits: Sequence[Hit],
    size: WindowSize,
    *,
    now: int,
    count_tokens: Callable[[str], int],
) -> TurnMaterial:
    """Returns the view of the turn in which these messages were `said`, with the `hits` found for it.

    Without a budget the view holds no memory. Memories learned after `now` are newer than a snapshot taken here.
    """
    session = context.session
    messages, with_files = history.window(reader, session, limit=size.messages * 2)
    window = _fit(messages, size, keep=said[0].id)
    trimmed = bool(window) and len(window) < len(messages) and not size.compacted
    material = TurnMaterial(
        window=tuple(window),
        recall=Recall(snapshot=Snapshot()),
        trimmed_to=window[0].id - 1 if trimmed else None,
        attached=attachments.of_messages(reader, [message.id for message in window if message.id in with_files]),
        before=_before(reader, context) if session.is_branch else (),
        summed_up=tuple(attachments.summed_up(reader, session.id, _FILES) if session.summary else ()),
        results=tuple(history.results_summed_up(reader, session.id, _RESULTS) if session.summary else ()),
        members={} if session.private else chats.members(reader, session.id),
    )
    if budget is None:
        return material
    budget = replace(budget, manner=budget.manner and (context.speaker if session.private else session).manner)
    snapshot, taken = _snapshot(reader, context, budget, now=now, count_tokens=count_tokens)
    recalled = recall(
        reader,
        [hit for hit in hits if hit.memory is None or budget.takes(hit.memory)],
        "\n".join(message.text for message in said),
        snapshot=snapshot,
        in_window=frozenset(message.id for message in window),
        budget=budget,
        count_tokens=count_tokens,
        assistant=session.agent,
    )
    lately = _said_lately(reader, context, said, recalled, limit=size.lately)
    return replace(
        material,
        recall=replace(recalled, items=(*recalled.items, *lately)),
        snapshot_taken_at=now if taken else None,
        again=_spoken_of(reader, session.id, said, recalled, window, material.attached),
    )


def _before(reader: Reader, context: Context) -> tuple[tuple[str, str], ...]:
    before, room = [], _BEFORE_CHARS
    for line in reversed(talks.earlier(reader, context.scope, context.session.key, limit=_BEFORE)):
        room -= len(line.text)
        if room < 0:
            break
        before.append(("user" if line.mine else "assistant", line.text))
    return tuple(reversed(before))


def _spoken_of(
    reader: Reader,
    session_id: int,
    said: Sequence[Message],
    found: Recall,
    window: Sequence[Message],
    attached: Mapping[int, Sequence[Attached]],
) -> dict[int, tuple[Attached, ...]]:
    """Returns the attachments of messages before the window that are spoken of.

    Those are messages that are recalled or were answered by a recalled one, and the last ones with pictures if this
    turn speaks of a picture and brings none.
    """
    passages = [item.passage for item in found.items if item.passage is not None and item.placed == "recalled"]
    wanted = [one.id for passage in passages for one in (passage.message, passage.before) if one is not None]
    if any(_PICTURE.search(one.text) and one.id not in attached for one in said):
        wanted += attachments.last_pictured(reader, session_id, window[0].id)
    shown = {*attached, *(message.id for message in window)}
    left = [one for one in dict.fromkeys(wanted) if one not in shown]
    return attachments.of_messages(reader, left) if left else {}


def _said_lately(
    reader: Reader, context: Context, said: Sequence[Message], found: Recall, *, limit: int
) -> list[Recalled]:
    if not limit:
        return []
    known = {item.passage.message.id for item in found.items if item.passage is not None}
    latest = passages.said_last(reader, context.scope, limit=limit)
    messages = [one for one in latest if one.id < said[0].id and one.id not in known]
    outdated = passages.outdated(reader, [one.id for one in messages])
    return [
        Recalled(score=0.0, placed="unused", passage=Passage(message=one, outdated=one.id in outdated))
        for one in messages
    ]


def keep(tx: Transaction, view: TurnMaterial, *, turn_id: int, session_id: int, now: int) -> None:
    snapshot = view.recall.snapshot
    if view.snapshot_taken_at is not None:
        chats.put(tx, session_id, snapshot=json.dumps(snapshot.ids), snapshot_at=view.snapshot_taken_at)
    if view.trimmed_to is not None:
        chats.trim_window(tx, session_id, after=view.trimmed_to)
    ids = {item.memory.id for item in view.recall.items if item.memory is not None}
    standing = [m for m in (*snapshot.profile, *snapshot.known, *snapshot.newer) if m.id not in ids]
    entries = [_entry(item) for item in view.recall.items]
    entries += [
        RecalledEntry(item="memory", item_id=memory.id, placed="known", score=None, parts={}) for memory in standing
    ]
    recalls.keep(tx, turn_id, [replace(entry, tokens=view.sizes.get((entry.item, entry.item_id))) for entry in entries])
    recalled = [i.memory.id for i in view.recall.items if i.memory is not None and i.placed == "recalled"]
    memories.touch(tx, recalled, now=now)


def _snapshot(
    reader: Reader, context: Context, budget: Budget, *, now: int, count_tokens: Callable[[str], int]
) -> tuple[Snapshot, bool]:
    session, scope = context.session, context.scope
    idle = session.last_message_at is None or now - session.last_message_at > _SNAPSHOT_IDLE_MS
    if session.snapshot is None or session.snapshot_at is None or idle:
        return take_snapshot(reader, scope, budget, count_tokens), True
    stored = stored_snapshot(reader, scope, session.snapshot, taken_at=session.snapshot_at, budget=budget)
    return stored, False


def costs(messages: Sequence[Message], size: WindowSize, *, keep: int | None = None) -> list[int]:
    """Returns the tokens that each message takes in a prompt; messages with ids from `keep` on are not shortened."""
    return [
        message.tokens
        if keep is not None and message.id >= keep
        else min(message.tokens, size.longest, OLD_RESULT if message.role == "tool" else message.tokens)
        for message in messages
    ]


def _fit(messages: list[Message], size: WindowSize, *, keep: int) -> list[Message]:
    """Returns the newest messages that fit.

    If not all messages fit, half the room is freed, so that the front of the prompt stays the same for many turns. The
    current turn (ids from `keep` on) always stays. The first message is a person's.
    """
    taken = costs(messages, size, keep=keep)
    if len(messages) <= size.messages and sum(taken) <= size.tokens:
        return messages
    room = size.tokens // 2
    kept: list[Message] = []
    for message, cost in zip(reversed(messages), reversed(taken), strict=True):
        room -= cost
        if message.id < keep and (room < 0 or len(kept) >= size.messages // 2):
            break
        kept.append(message)
    kept.reverse()
    while kept and kept[0].id < keep and kept[0].role != "user":
        kept.pop(0)
    return kept


def _entry(item: Recalled) -> RecalledEntry:
    kind, item_id = item.named
    score = round(item.score, 4)
    return RecalledEntry(item=kind, item_id=item_id, placed=item.placed, score=score, parts=item.parts)
