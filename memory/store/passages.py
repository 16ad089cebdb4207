"""Messages for recall: found within a scope, each with the one before it in the sitting.

Invariants: Every read here is confined by `Scope.owned`. A message that was erased, or may not be found again, is never
returned, neither as a hit nor as a neighbour. A passage never crosses a sitting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.scope import Scope
from memory.store import history
from memory.store.database import Reader, Row, walled
from memory.store.history import Message

#: The number of messages on either side that lend a message their words. One is too few, and more add nothing
#: (docs/design/benchmarks.md).
REACH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A message, and the one `before` it in its sitting.

    `outdated` is True if nothing learned from the message holds any more.
    """

    message: Message
    before: Message | None = None
    outdated: bool = False


class MessagePlace(Protocol):
    """The position of a message; a `Message` has these properties itself."""

    @property
    def session_id(self) -> int: ...
    @property
    def sitting(self) -> int: ...
    @property
    def nth(self) -> int | None: ...


@walled
def by_ids(reader: Reader, scope: Scope, message_ids: Sequence[int]) -> list[Message]:
    """Returns the messages among `message_ids` that this scope may find, in the order asked for."""
    if not message_ids:
        return []
    within = scope.owned("m")
    rows = reader.all(
        f"select {history.COLUMNS} from messages m where m.id in {_AMONG} and {_FINDABLE} and {within.sql}",
        (message_ids, *within.parameters),
    )
    messages = {row["id"]: history.message(row) for row in rows}
    return [messages[message_id] for message_id in message_ids if message_id in messages]


@walled
def as_passages(reader: Reader, scope: Scope, message_ids: Sequence[int]) -> list[Passage]:
    """Returns the messages among `message_ids` that this scope may find as passages, in the order asked for."""
    within = scope.owned("m")
    rows = reader.all(
        # The few requested messages come first: PostgreSQL would rather go through all messages of the scope's owners.
        f"select {history.COLUMNS}, {_OUTDATED} as outdated from"
        " (select distinct n.id as found_id from json_each(?) asked join messages hit on hit.id = asked.value"
        "   join messages n on n.session_id = hit.session_id and n.sitting = hit.sitting"
        "   and n.nth between hit.nth - 1 and hit.nth) found"
        f" join messages m on m.id = found.found_id where {_FINDABLE} and {within.sql}",
        (message_ids, *within.parameters),
    )
    messages = {row["id"]: history.message(row) for row in rows}
    outdated_ids = {row["id"] for row in rows if row["outdated"]}
    places = {(message.session_id, message.sitting, message.nth): message for message in messages.values()}
    return [
        Passage(
            message=message,
            before=places.get((message.session_id, message.sitting, (message.nth or 0) - 1)),
            outdated=message.id in outdated_ids,
        )
        for message_id in message_ids
        if (message := messages.get(message_id)) is not None
    ]


@walled
def standing(reader: Reader, scope: Scope, message_ids: Sequence[int]) -> list[Row]:
    """Returns the columns that ranking needs of the messages that this scope may find, in any order.

    The columns are id, session_id, sitting, nth, role, author_id, said_at, tokens, `ending`, the last characters of the
    text, and `name`, the author's. Reading and building whole messages, most of which are never shown, costs several
    times as much.
    """
    if not message_ids:
        return []
    within = scope.owned("m")
    return reader.all(
        f"select {_STANDING} from messages m where m.id in {_AMONG} and {_FINDABLE} and {within.sql}",
        (message_ids, *within.parameters),
    )


@walled
def standing_around(reader: Reader, scope: Scope, places: Iterable[MessagePlace]) -> list[Row]:
    """Returns the columns of `standing` for the messages within `REACH` of `places`, without those at `places`."""
    held = {(place.session_id, place.sitting, place.nth) for place in places}
    beside = {
        (session_id, sitting, nth + offset)
        for session_id, sitting, nth in held
        if nth is not None
        for offset in range(-REACH, REACH + 1)
    } - held
    # `nth` is unique in a session whatever the sitting, so a position already taken need not be looked up.
    taken = {(session_id, nth) for session_id, _, nth in held}
    wanted: defaultdict[int, set[int]] = defaultdict(set)
    for session_id, _, nth in beside:
        if (session_id, nth) not in taken:
            wanted[session_id].add(nth)
    within = scope.owned("m")
    return [
        row
        for session_id, numbers in wanted.items()
        for row in reader.all(
            f"select {_STANDING} from messages m where m.session_id = ? and m.nth in {_AMONG}"
            f" and {_FINDABLE} and {within.sql}",
            (session_id, numbers, *within.parameters),
        )
        if (session_id, row["sitting"], row["nth"]) in beside
    ]


@walled
def between(reader: Reader, scope: Scope, first: int, last: int, *, limit: int) -> list[Message]:
    """Returns people's statements from `first` up to, not including, `last` (milliseconds UTC), the longest first."""
    within = scope.owned("m")
    return reader.each(
        f"select {history.COLUMNS} from messages m where m.said_at >= ? and m.said_at < ? and m.role = 'user'"
        " and rtrim(m.text) not like '%?' and rtrim(m.text) not like '%？'"
        f" and {_FINDABLE} and {within.sql} order by m.tokens desc, m.id limit ?",
        (first, last, *within.parameters, limit),
        history.message,
    )


@walled
def containing(reader: Reader, scope: Scope, words: Sequence[str], *, limit: int) -> list[Message]:
    """Returns messages with any of `words` as a substring, the newest first; this search needs no index."""
    if not words:
        return []
    within = scope.owned("m")
    held = " or ".join("instr(lower(m.text), ?) > 0" for _ in words)
    return reader.each(
        f"select {history.COLUMNS} from messages m where ({held}) and {_FINDABLE}"
        f" and {within.sql} order by m.id desc limit ?",
        (*words, *within.parameters, limit),
        history.message,
    )


@walled
def said_last(reader: Reader, scope: Scope, *, limit: int) -> list[Message]:
    within = scope.owned("m")
    # One by one, so that the index of authors gives the latest: of several together, all messages would be sorted.
    rows = [
        row
        for author_id in scope.speakers
        for row in reader.all(
            f"select {history.COLUMNS} from messages m where m.author_id = ? and m.role = 'user' and {_FINDABLE}"
            f" and {within.sql} order by m.id desc limit ?",
            (author_id, *within.parameters, limit),
        )
    ]
    return sorted(map(history.message, rows), key=lambda message: -message.id)[:limit]


@walled
def count(reader: Reader, scope: Scope) -> int:
    within = scope.owned("m")
    return reader.number(f"select count(*) from messages m where {_FINDABLE} and {within.sql}", within.parameters)


def outdated(reader: Reader, message_ids: Sequence[int]) -> set[int]:
    """Returns the messages among these, found by this scope before, whose memories hold no more."""
    if not message_ids:
        return set()
    rows = reader.ids(
        "select s.message_id from memory_sources s join memories m on m.id = s.memory_id"
        f" where s.message_id in {_AMONG} group by s.message_id"
        " having count(coalesce(m.superseded_by, m.valid_until)) = count(*)",
        (message_ids,),
    )
    return set(rows)


_AMONG = "(select value from json_each(?))"
_STANDING = (
    "m.id, m.session_id, m.sitting, m.nth, m.role, m.author_id, m.said_at, m.tokens,"
    " rtrim(substr(m.text, -3)) as ending, (select name from identities where id = m.author_id) as name"
)
#: Whether nothing learned from a message m holds any more; null if nothing was learned.
_OUTDATED = (
    "(select min(case when coalesce(x.superseded_by, x.valid_until) is null then 0 else 1 end) from memory_sources o"
    " join memories x on x.id = o.memory_id where o.message_id = m.id)"
)
#: Word for word the condition of the index `messages_owner`.
_FINDABLE = "m.nth is not null and m.recall = 1 and m.erased_at is null"
