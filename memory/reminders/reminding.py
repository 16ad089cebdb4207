"""Rows of reminders: a person's words that are shown, or a task that is answered, at a set time.

A person's own requests change them by `Reminding`, reached from `Edits` within its transaction.

Invariants: A reminder belongs to the identity that asked for it. `ReminderReach` is the only way to a person's
reminders: in private all of them, in a group those that the person asked for in that very place. A row is deleted when
it is done or cancelled, and the files are scrubbed of its words in the next quiet hour. Times are in milliseconds UTC;
`first` is the local wall clock in `zone`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from memory.context import Context
from memory.errors import NotFound, TooManyReminders
from memory.scope import Scope
from memory.store import word_columns
from memory.store.chats import Session
from memory.store.database import Reader, Row, Transaction

ReminderKind: TypeAlias = Literal["reminder", "task"]

#: The most open reminders of one person, and the longest text of one, in characters.
MOST: Final = 100
LONGEST: Final = 500
#: Exactly the expression and the condition of the index; with other wording SQLite does not use it.
_NEXT: Final = "case when due_at is null or snoozed_to < due_at then snoozed_to else due_at end"
_OPEN: Final = "due_at is not null or snoozed_to is not null"
_COLUMNS: Final = (
    "id, number, kind, identity_id, agent_id, session_id, private, text, language, zone, first, rule, until,"
    " asked_ref, due_at, snoozed_to, shown_at, failures, created_at"
)
_REMINDER: Final = f"select {_COLUMNS} from reminders"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderTimes:
    """The times of a reminder: due first at `first` (local wall clock, ISO 8601) in `zone`, which is `at` in UTC.

    `rule` is its repetition and `until` its last local day; both may be empty.
    """

    first: str
    zone: str
    at: int
    rule: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """A reminder. `number` is its name for its person.

    `first` is empty while the person is being asked for the time. A `private` one is shown in private, wherever it was
    requested. `asked_ref` is the platform's id of the requesting message. `due_at` is the next time by the rule and
    `snoozed_to` another time at which it is shown once more. `shown_at` is the time of the last showing.
    """

    id: int
    number: int
    kind: ReminderKind
    identity_id: int
    agent_id: int
    session_id: int
    private: bool
    text: str
    language: str
    zone: str
    first: str
    rule: str
    until: str
    asked_ref: str | None
    due_at: int | None
    snoozed_to: int | None
    shown_at: int | None
    failures: int
    created_at: int

    @property
    def next_at(self) -> int | None:
        """The next time at which it is shown; None if it has no time yet or waits for word that it is done."""
        return min((at for at in (self.due_at, self.snoozed_to) if at is not None), default=None)


class ReminderReach(NamedTuple):
    """The reminders that a person can reach: those of `identities`, in a group only those of the place `session_id`."""

    identities: Sequence[int]
    session_id: int | None


def reach(scope: Scope, session: Session) -> ReminderReach:
    return ReminderReach(scope.speakers, None if scope.private else session.id)


class Reminding:
    """The changes that a person may make to their reminders in one request; not to be kept beyond it."""

    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._reach = reach(context.scope, context.session)
        self.now = now

    def every(self) -> list[Reminder]:
        return [reminder for reminder in of_reach(self._tx, self._reach) if reminder.first]

    def numbered(self, number: int) -> Reminder:
        for reminder in self.every():
            if reminder.number == number:
                return reminder
        raise NotFound(f"There is no reminder {number} here.")

    def of_id(self, reminder_id: int) -> Reminder:
        """Returns the reminder of this id, also one whose time is being asked for. Raises `NotFound`."""
        for reminder in of_reach(self._tx, self._reach):
            if reminder.id == reminder_id:
                return reminder
        raise NotFound("That reminder is gone, or is not yours.")

    def add(
        self,
        text: str,
        due: ReminderTimes | None,
        *,
        language: str,
        asked_ref: str | None = None,
        private: bool = False,
        kind: ReminderKind = "reminder",
    ) -> Reminder:
        """Adds a reminder, shown in `language`, under the smallest number that is free among the person's.

        Without `due` it waits until the person tells the time. Raises `TooManyReminders`.
        """
        everywhere = of_reach(self._tx, self._reach._replace(session_id=None))
        if sum(reminder.next_at is not None for reminder in everywhere) >= MOST:
            raise TooManyReminders(f"One person can have {MOST} open reminders.")
        # A reminder whose time was asked for before and never told will not get one any more.
        drop(self._tx, [reminder.id for reminder in everywhere if not reminder.first])
        taken = {reminder.number for reminder in everywhere if reminder.first}
        number = next(n for n in range(1, len(taken) + 2) if n not in taken)
        session = self._context.session
        row = self._tx.one(
            "insert into reminders (number, kind, identity_id, agent_id, session_id, private, text, language, zone,"
            f" first, asked_ref, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, '', '', ?, ?) returning {_COLUMNS}",
            (
                number, kind, self._context.speaker.id, session.agent_id, session.id, int(private), text[:LONGEST],
                language, asked_ref, self.now,
            ),
        )  # fmt: skip
        assert row is not None
        made = _reminder(row)
        return made if due is None else self.change(made, due)

    def change(self, reminder: Reminder, due: ReminderTimes) -> Reminder:
        return _set(
            self._tx,
            reminder.id,
            "first = ?, zone = ?, rule = ?, until = ?, due_at = ?, snoozed_to = null, shown_at = null, failures = 0",
            (due.first, due.zone, due.rule, due.until, due.at),
        )

    def reword(self, reminder: Reminder, text: str) -> Reminder:
        word_columns.note_reworded(self._tx, now=self.now)
        return _set(self._tx, reminder.id, "text = ?", (text[:LONGEST],))

    def snooze(self, reminder: Reminder, to: int) -> Reminder:
        """Schedules a reminder once more for a time, in milliseconds UTC; its rule goes on beside that."""
        return snooze(self._tx, reminder.id, to)

    def cancel(self, reminder: Reminder) -> None:
        word_columns.note_reworded(self._tx, now=self.now)
        drop(self._tx, [reminder.id])

    def done(self, reminder: Reminder) -> Reminder | None:
        """Ends a reminder that was shown. One that repeats goes on: returned with its next time."""
        if not reminder.rule or reminder.due_at is None:
            self.cancel(reminder)
            return None
        shown(self._tx, reminder.id, due_at=reminder.due_at, snoozed_to=None, now=reminder.shown_at or self.now)
        return self.of_id(reminder.id)


def snooze(tx: Transaction, reminder_id: int, to: int) -> Reminder:
    """Sets an additional time at which a reminder is shown once more, beside those of its rule."""
    return _set(tx, reminder_id, "snoozed_to = ?", (to,))


def shown(tx: Transaction, reminder_id: int, *, due_at: int | None, snoozed_to: int | None, now: int) -> None:
    """Moves a reminder on to its next times, because it is shown now."""
    tx.run(
        "update reminders set due_at = ?, snoozed_to = ?, shown_at = ? where id = ?",
        (due_at, snoozed_to, now, reminder_id),
    )


def end_task(tx: Transaction, reminder_id: int, *, failed: bool) -> int:
    """Notes whether a task's turn has failed. Returns the number of failures in a row."""
    return tx.number(
        "update reminders set failures = case when ? = 1 then failures + 1 else 0 end where id = ? returning failures"
        " as n",
        (int(failed), reminder_id),
    )


def drop(tx: Transaction, reminder_ids: Collection[int]) -> int:
    gone = tx.ids("delete from reminders where id in (select value from json_each(?)) returning id", (reminder_ids,))
    return len(gone)


def drop_made_until(tx: Transaction, reminder_ids: Collection[int], at: int) -> None:
    """Deletes the reminders among these that were made up to a time: later ones are others under the same ids."""
    tx.run("delete from reminders where id in (select value from json_each(?)) and created_at <= ?", (reminder_ids, at))


def drop_old(tx: Transaction, *, unasked_before: int, shown_before: int) -> int:
    """Deletes reminders that never got a time, and those whose person never said after the last showing that they are
    done.

    Returns the number of deleted ones.
    """
    return len(
        tx.ids(
            "delete from reminders where due_at is null and snoozed_to is null"
            " and (first = '' and created_at < ?1 or first <> '' and coalesce(shown_at, created_at) < ?2) returning id",
            (unasked_before, shown_before),
        )
    )


def next_due(reader: Reader, *, besides: Collection[int]) -> Reminder | None:
    return reader.first(
        f"{_REMINDER} where ({_OPEN}) and id not in (select value from json_each(?)) order by {_NEXT} limit 1",
        (besides,),
        _reminder,
    )


def of_id(reader: Reader, reminder_id: int) -> Reminder | None:
    return reader.first(f"{_REMINDER} where id = ?", (reminder_id,), _reminder)


def of_reach(reader: Reader, within: ReminderReach) -> list[Reminder]:
    return reader.each(
        f"{_REMINDER} where identity_id in (select value from json_each(?1)) and (?2 is null or session_id = ?2)"
        f" order by ({_OPEN}) desc, {_NEXT}, id",
        (within.identities, within.session_id),
        _reminder,
    )


def of_session(reader: Reader, session_id: int) -> list[Reminder]:
    return [_reminder(row) for row in reader.all(f"{_REMINDER} where session_id = ? order by id", (session_id,))]


def of_chat(reader: Reader, chat_id: int) -> list[Reminder]:
    return reader.each(
        f"{_REMINDER} where session_id in (select id from sessions where chat_id = ?) order by id",
        (chat_id,),
        _reminder,
    )


def moved_on(reader: Reader) -> list[Row]:
    """Returns the times of all reminders, for a copy of the store that takes them over."""
    return reader.all("select id, created_at, first, zone, rule, until, due_at, snoozed_to, shown_at from reminders")


def take_over(tx: Transaction, rows: Iterable[Row]) -> int:
    """Gives the reminders of a restored store the times and rules that another copy of it has given them since.

    Those that are gone there are deleted. Returns their number.
    """
    there = {(row["id"], row["created_at"]): row for row in rows}
    gone = []
    for row in moved_on(tx):
        since = there.get((row["id"], row["created_at"]))
        if since is None:
            gone.append(row["id"])
        else:
            times = ("first", "zone", "rule", "until", "due_at", "snoozed_to", "shown_at")
            _set(tx, row["id"], ", ".join(f"{name} = ?" for name in times), [since[name] for name in times])
    return drop(tx, gone)


def _set(tx: Transaction, reminder_id: int, change: str, values: Sequence[str | int]) -> Reminder:
    row = tx.one(f"update reminders set {change} where id = ? returning {_COLUMNS}", (*values, reminder_id))
    assert row is not None
    return _reminder(row)


def _reminder(row: Row) -> Reminder:
    return Reminder(**{**dict(row), "private": bool(row["private"])})
