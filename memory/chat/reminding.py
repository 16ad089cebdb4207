"""Changes a person's reminders in one request; reached from `Edits`, within its transaction.

Invariant: every reminder is found through the person's reach, so nobody reads or changes another's, and a group shows
only reminders that were asked for there.
"""

from __future__ import annotations

from typing import Final

from memory.context import Context
from memory.errors import NotFound, TooManyReminders
from memory.store import reminders
from memory.store.database import Transaction
from memory.store.reminders import NewReminder, Reminder, ReminderKind, ReminderTimes

#: The longest text of a reminder, in characters.
LONGEST: Final = 500


class Reminding:
    """The changes that a person may make to their reminders. Not to be kept beyond the request."""

    def __init__(self, tx: Transaction, context: Context, *, now: int) -> None:
        self._tx = tx
        self._context = context
        self._reach = reminders.reach(context.scope, context.session)
        self.now = now

    def every(self) -> list[Reminder]:
        """Returns the reminders, the next first; last come those that were shown and are not done."""
        return [one for one in reminders.of_reach(self._tx, self._reach) if one.first]

    def numbered(self, number: int) -> Reminder:
        """Returns the reminder of this number. Raises `NotFound`."""
        found = next((one for one in self.every() if one.number == number), None)
        if found is None:
            raise NotFound(f"There is no reminder {number} here.")
        return found

    def of_id(self, reminder_id: int) -> Reminder:
        """Returns the reminder of this id, also one whose time is being asked for. Raises `NotFound`."""
        found = next((one for one in reminders.of_reach(self._tx, self._reach) if one.id == reminder_id), None)
        if found is None:
            raise NotFound("That reminder is gone, or is not yours.")
        return found

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
        """Adds a reminder; without `due` it waits until the person tells the time. Raises `TooManyReminders`."""
        everywhere = reminders.of_reach(self._tx, self._reach._replace(session_id=None))
        if sum(one.next_at is not None for one in everywhere) >= reminders.MOST:
            raise TooManyReminders(f"One person can have {reminders.MOST} open reminders.")
        # A reminder whose time was asked for before and never told will not get one any more.
        reminders.drop(self._tx, [one.id for one in everywhere if not one.first])
        wanted = NewReminder(
            identity_id=self._context.speaker.id,
            text=text[:LONGEST],
            language=language,
            asked_ref=asked_ref,
            private=private,
            kind=kind,
        )
        made = reminders.add(self._tx, self._context.session, self._reach, wanted, now=self.now)
        return made if due is None else reminders.set_due(self._tx, made.id, due)

    def change(self, reminder: Reminder, due: ReminderTimes) -> Reminder:
        """Gives a reminder another time in place of its own."""
        return reminders.set_due(self._tx, reminder.id, due)

    def reword(self, reminder: Reminder, text: str) -> Reminder:
        """Gives a reminder another text."""
        return reminders.set_text(self._tx, reminder.id, text[:LONGEST])

    def snooze(self, reminder: Reminder, to: int) -> Reminder:
        """Schedules a reminder once more for a time, in milliseconds UTC; its rule goes on beside that."""
        return reminders.snooze(self._tx, reminder.id, to)

    def cancel(self, reminder: Reminder) -> None:
        """Deletes a reminder with all its times to come."""
        reminders.drop(self._tx, [reminder.id])

    def done(self, reminder: Reminder) -> Reminder | None:
        """Ends a reminder that was shown. One that repeats goes on: returned with its next time."""
        if not reminder.rule or reminder.due_at is None:
            reminders.drop(self._tx, [reminder.id])
            return None
        reminders.shown(
            self._tx, reminder.id, due_at=reminder.due_at, snoozed_to=None, now=reminder.shown_at or self.now
        )
        return self.of_id(reminder.id)
