"""Messages as recall sees them: found within a scope, each with its neighbours in the sitting.

Invariants: every read here is confined by `Scope.owned`; what was erased, or is not to be found again, never comes
out, neither as a hit nor as a neighbour; a passage never crosses a sitting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.scope import Scope
from memory.store import history
from memory.store.database import Reader
from memory.store.history import Message

#: Messages to either side that belong to a passage. Measured in docs/benchmarks.md: one is too few, more adds nothing.
REACH = 2
#: SQLite takes 32,766 parameters a statement, older ones 999.
_PARAMETERS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A message and what was said around it. `before` and `after` are in the order of the talk.

    `outdated` tells that all that was learned from it has been replaced since.
    """

    message: Message
    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()
    outdated: bool = False


class Place(Protocol):
    """Where a message stands; messages know it themselves."""

    @property
    def session_id(self) -> int: ...
    @property
    def sitting(self) -> int: ...
    @property
    def nth(self) -> int | None: ...


def by_ids(reader: Reader, scope: Scope, message_ids: Sequence[int]) -> list[Message]:
    """The messages among `message_ids` that this scope may find, in the order asked for."""
    found: dict[int, Message] = {}
    within = scope.owned("m")
    for ids in _portions(message_ids):
        marks = ", ".join("?" for _ in ids)
        rows = reader.all(
            f"select {history.COLUMNS} from messages m where m.id in ({marks}) and {_FINDABLE} and {within.sql}",
            (*ids, *within.parameters),
        )
        found |= {row["id"]: history.message(row) for row in rows}
    return [found[message_id] for message_id in message_ids if message_id in found]


def around(reader: Reader, scope: Scope, places: Iterable[Place]) -> list[Message]:
    """The messages within `REACH` of `places`, without those that stand in them, in any order."""
    held = {(place.session_id, place.sitting, place.nth) for place in places}
    wanted: defaultdict[int, set[int]] = defaultdict(set)
    beside = set()
    for session_id, sitting, nth in held:
        if nth is not None:
            near = range(nth - REACH, nth + REACH + 1)
            wanted[session_id] |= set(near)
            beside |= {(session_id, sitting, place) for place in near}
    beside -= held
    within = scope.owned("m")
    found = []
    for session_id, numbers in wanted.items():
        for portion in _portions(sorted(numbers)):
            marks = ", ".join("?" for _ in portion)
            rows = reader.all(
                f"select {history.COLUMNS} from messages m where m.session_id = ? and m.nth in ({marks})"
                f" and {_FINDABLE} and {within.sql}",
                (session_id, *portion, *within.parameters),
            )
            found += [history.message(row) for row in rows if (session_id, row["sitting"], row["nth"]) in beside]
    return found


def passages(reader: Reader, scope: Scope, messages: Sequence[Message]) -> list[Passage]:
    """Each message as a passage, in the order given."""
    places = {
        (message.session_id, message.sitting, message.nth): message
        for message in (*messages, *around(reader, scope, messages))
    }
    outdated = _outdated(reader, [message.id for message in messages])

    def neighbours(message: Message, offsets: Iterable[int]) -> tuple[Message, ...]:
        nth = message.nth or 0
        found = (places.get((message.session_id, message.sitting, nth + offset)) for offset in offsets)
        return tuple(neighbour for neighbour in found if neighbour is not None)

    return [
        Passage(
            message=message,
            before=neighbours(message, range(-REACH, 0)),
            after=neighbours(message, range(1, REACH + 1)),
            outdated=message.id in outdated,
        )
        for message in messages
    ]


def between(reader: Reader, scope: Scope, first: int, last: int, *, limit: int) -> list[Message]:
    """What people said from `first` up to, not including, `last` (milliseconds UTC), the longest first."""
    within = scope.owned("m")
    rows = reader.all(
        f"select {history.COLUMNS} from messages m where m.said_at >= ? and m.said_at < ? and m.role = 'user'"
        f" and {_FINDABLE} and {within.sql} order by m.tokens desc, m.id limit ?",
        (first, last, *within.parameters, limit),
    )
    return [history.message(row) for row in rows]


def containing(reader: Reader, scope: Scope, words: Sequence[str], *, limit: int) -> list[Message]:
    """Messages that hold any of `words` as a substring, the newest first: the search that needs no index."""
    if not words:
        return []
    within = scope.owned("m")
    held = " or ".join("instr(lower(m.text), ?) > 0" for _ in words)
    rows = reader.all(
        f"select {history.COLUMNS} from messages m where ({held}) and {_FINDABLE}"
        f" and {within.sql} order by m.id desc limit ?",
        (*words, *within.parameters, limit),
    )
    return [history.message(row) for row in rows]


def count(reader: Reader, scope: Scope) -> int:
    """How many messages this scope can find."""
    within = scope.owned("m")
    row = reader.one(
        f"select count(*) as n from messages m where {_FINDABLE} and {within.sql}",
        within.parameters,
    )
    assert row is not None
    return int(row["n"])


def _outdated(reader: Reader, message_ids: Sequence[int]) -> set[int]:
    """Which of these messages taught only what has been replaced since."""
    found: set[int] = set()
    for ids in _portions(message_ids):
        marks = ", ".join("?" for _ in ids)
        rows = reader.all(
            "select s.message_id from memory_sources s join memories m on m.id = s.memory_id"
            f" where s.message_id in ({marks}) group by s.message_id having count(m.superseded_by) = count(*)",
            ids,
        )
        found |= {row["message_id"] for row in rows}
    return found


def _portions(values: Sequence[int]) -> Iterable[Sequence[int]]:
    return (values[start : start + _PARAMETERS] for start in range(0, len(values), _PARAMETERS))


#: Word for word the condition of the index `messages_owner`.
_FINDABLE = "m.nth is not null and m.recall = 1 and m.erased_at is null"
