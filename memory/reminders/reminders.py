"""Reminders of one store: reads requests for them, and shows each exactly once when its time comes.

Invariants: a reminder moves on to its next time in the transaction that queues its message, so it is shown once,
however the process ends in between. A process that was not running at the time shows it later, once, and only the
latest time of a repeated reminder. A person's requests go through `Edits.reminding`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from memory.context import Context, anew, in_read, in_write
from memory.learn import extractions
from memory.learn.agents import Agents
from memory.mailbox import inbox, outbox
from memory.mailbox.inbox import InboxRow
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.reminders import reminding
from memory.reminders.reminding import Reminder, ReminderTimes
from memory.store import chats, people, scopes
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction
from memory.store.people import Account
from memory.text.times import clock, phrases, rules
from memory.text.times.phrases import Reading, Unclear

log = structlog.get_logger(__name__)

#: Milliseconds after which a reminder is shown as late.
_LATE_MS: Final = 120_000
#: Milliseconds after which a task without another time is tried again.
_AGAIN_MS: Final = 3_600_000
#: The longest delay after which a standing task is still begun.
_STANDING: Final = timedelta(minutes=15)
#: Failures in a row after which a task is switched off.
_FAILURES: Final = 3
#: The periods in which the latest missed time of a repeated reminder is looked for, the nearest first.
_BACK: Final = (timedelta(hours=2), timedelta(days=1), timedelta(days=8), timedelta(days=32), timedelta(days=370))

#: The frequencies of rules that name days, at an hour.
_BY_DAYS: Final = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A reminder whose time has come, for the person `whose`, to be shown in `session` at `now`.

    It was due at `at`, and is due again at `next_at`, if at all. `late` says that it could not be shown in time.
    """

    reminder: Reminder
    whose: Account
    session: Session
    agent: str
    at: int
    next_at: int | None
    late: bool
    now: int


class Reminders:
    """The reminders of one open store. `stirred` is set when one may have become due earlier than all before."""

    def __init__(self, database: Database, mailbox: Mailbox, agents: Agents, *, now: Callable[[], int]) -> None:
        self._database = database
        self._mailbox = mailbox
        self._agents = agents
        self._now = now
        self.stirred = asyncio.Event()

    def read(self, context: Context, text: str, *, language: str) -> Reading | Unclear | None:
        return phrases.read(text, language=language, now=self._local(context))

    def read_bare(self, context: Context, text: str, *, language: str) -> Reading | Unclear:
        """Returns the reminder in words that are known to ask for one, though they need not say so."""
        now, (exact, _, rest) = self._local(context), text.partition(" ")
        if (at := self.at(context, exact)) is not None:
            return replace(at, what=rest.strip())
        return phrases.read_bare(text, language=language, now=now)

    def several(self, context: Context, text: str, *, language: str) -> list[Reading]:
        return phrases.several(text, language=language, now=self._local(context))

    def read_time(self, context: Context, text: str, *, language: str) -> Reading | Unclear | None:
        return phrases.read_time(text, language=language, now=self._local(context))

    def at(self, context: Context, written: str) -> Reading | Unclear | None:
        """Returns the time of a text that is a local time such as 2026-11-30T09:00; None for any other text."""
        now = self._local(context)
        try:
            moment = datetime.fromisoformat(written)
        except ValueError:
            return None
        if "T" not in written.upper() and ":" not in written:
            return None  # a day alone, which is read as words
        try:
            moment = moment.replace(tzinfo=now.tzinfo) if moment.tzinfo is None else moment.astimezone(now.tzinfo)
            # A time that the clock skips falls equally far after the gap.
            moment = moment.astimezone(UTC).astimezone(now.tzinfo)
        except OverflowError:  # at an end of the calendar, where it has no place in another zone
            return Unclear(what="", reason="past" if moment.year < now.year else "vague")
        if moment <= now:
            return Unclear(what="", reason="past")
        if moment - now > rules.HORIZON:
            return Unclear(what="", reason="vague")
        return Reading(first=moment, hour_given=True)

    def retimed(self, reminder: Reminder, reading: Reading) -> ReminderTimes:
        """Returns when a reminder is due after a time was named for it.

        The part that was not named stays as it was: the day if only an hour was named, the hour if only a day was. A
        repeated reminder goes on as it did, at the new hour.
        """
        parts = dict(part.partition("=")[::2] for part in reminder.rule.removeprefix(rules.RRULE).split(";"))
        several = "," in parts.get("BYHOUR", "") + parts.get("BYMINUTE", "") or "\n" in reminder.rule
        whole = reading.day_given and reading.month_given and reading.hour_given
        if reading.rule or several or reminder.next_at is None or whole:
            return due_of(reading)
        if reading.bare:
            was = datetime.fromtimestamp(reminder.next_at / 1000, UTC).astimezone(reading.first.tzinfo)
            reading = replace(reading, first=_in_half(reading.first, was))
        if not reminder.rule:
            return self._moved(reminder.next_at, reading)
        if reading.day_given or parts.get("FREQ") not in _BY_DAYS:
            return due_of(reading)
        hour, minute = reading.first.hour, reading.first.minute
        parts |= {"BYHOUR": str(hour), "BYMINUTE": str(minute)}
        rule = rules.RRULE + ";".join(f"{name}={value}" for name, value in parts.items())
        first = datetime.fromisoformat(reminder.first).replace(hour=hour, minute=minute, tzinfo=ZoneInfo(reminder.zone))
        following = rules.following(rule, after=datetime.fromtimestamp(self._now() / 1000, UTC), first=first)
        until = date.fromisoformat(reminder.until) if reminder.until else None
        return due_of(reading) if following is None else due(following, rule=rule, until=until)

    def _moved(self, at: int, reading: Reading) -> ReminderTimes:
        """Returns when a reminder that was due `at` is due now that another day or hour was named.

        If that time is over, the reminder is due at the time that was read.
        """
        was, day = datetime.fromtimestamp(at / 1000, UTC).astimezone(reading.first.tzinfo), reading.first
        if not reading.day_given:
            day = was
        elif not reading.month_given:
            with suppress(ValueError):  # the 31st, in a month without it
                day = was.replace(day=day.day)
        hour = reading.first if reading.hour_given else was
        wall = day.replace(hour=hour.hour, minute=hour.minute, second=0, microsecond=0)
        # A time that the clock skips falls equally far after the gap.
        meant = wall.astimezone(UTC).astimezone(wall.tzinfo)
        return due(meant) if meant.timestamp() * 1000 > self._now() else due_of(reading)

    def by_rule(self, context: Context, rule: str) -> ReminderTimes | None:
        """Returns when a typed rule is due; None if never. Raises `ValueError`, which names the mistake."""
        parsed, now = rules.parse_rule(rule), self._local(context)
        first = rules.following(parsed, after=now, first=now.replace(second=0, microsecond=0))
        return None if first is None else due(first, rule=parsed)

    def after(self, delay: timedelta) -> int:
        return self._now() + int(delay.total_seconds() * 1000)

    @in_read
    def every(self, reader: Reader, context: Context) -> list[Reminder]:
        return [one for one in _reachable(reader, context) if one.first]

    async def is_shown(self, session_key: str, platform_ref: str) -> bool:
        found = await self._database.read(lambda reader: outbox.reminder_shown(reader, session_key, platform_ref))
        return found is not None

    @in_read
    def meant(self, reader: Reader, context: Context, platform_ref: str) -> Reminder | None:
        found = outbox.reminder_shown(reader, context.session.key, platform_ref)
        return next((one for one in _reachable(reader, context) if one.id == found), None)

    @in_read
    def last_shown(self, reader: Reader, context: Context) -> Reminder | None:
        found = outbox.last_reminder(reader, context.session.key)
        return next((one for one in _reachable(reader, context) if one.id == found), None)

    async def next_due(self, *, besides: Collection[int] = ()) -> Reminder | None:
        return await self._database.read(lambda reader: reminding.next_due(reader, besides=besides))

    async def whose(self, reminder: Reminder) -> tuple[Account, Session]:
        return await self._database.read(lambda reader: _whose(reader, reminder))

    @in_write
    def fire(self, tx: Transaction, reminder: Reminder, show: Callable[[Firing], Sequence[Part]]) -> str | None:
        """Queues the message that `show` returns for a reminder whose time has come, and moves it on, as one
        transaction.

        Returns the key of the session in whose queue it is. Returns None if the reminder is not due any more.
        """
        if (firing := _due_now(tx, reminder, self._now())) is None:
            return None
        still = firing.reminder
        reply_to = still.asked_ref if firing.session.id == still.session_id and not firing.session.private else None
        parts = [replace(part, reminder_id=still.id) for part in show(firing)]
        self._mailbox.post(tx, Outgoing(session_key=firing.session.key, pieces=parts, reply_to=reply_to))
        _move_on(tx, still, firing)
        return firing.session.key

    @in_write
    def begin_task(self, tx: Transaction, reminder: Reminder, message: Callable[[Firing], str]) -> InboxRow | None:
        """Takes in a task whose time has come, as the message that `message` returns, and moves it on.

        That is one transaction. Returns None if the task is not due any more.
        """
        if (firing := _due_now(tx, reminder, self._now())) is None:
            return None
        still = firing.reminder
        key = f"{still.id}:{firing.at}"
        row = _take_in(tx, firing.whose, firing.session, key, message(firing), now=firing.now)
        _move_on(tx, still, firing)
        return row

    def reached(self, rule: str, zone: str) -> int | None:
        """Returns the latest time of a rule if it has come within the last minutes, in milliseconds UTC."""
        now = datetime.fromtimestamp(self._now() / 1000, UTC).astimezone(ZoneInfo(zone))
        first, at = now - timedelta(days=1), None
        found = rules.following(rule, after=now - _STANDING, first=first)
        while found is not None and found <= now:
            at, found = _ms(found), rules.following(rule, after=found, first=first)
        return at

    @in_read
    def told_by(self, reader: Reader, agent: str, platform: str, user_id: str) -> tuple[Account, Session] | None:
        """Returns the account of a person and their private chat, if that agent answers there; otherwise None."""
        speaker = people.known_speaker(reader, platform=platform, user_id=user_id)
        session = None if speaker is None else chats.private_session(reader, speaker.id)
        if speaker is None or session is None or session.agent != agent:
            return None
        account = people.account(reader, speaker.id)
        assert account is not None
        return account, session

    @in_write
    def begin_standing(
        self, tx: Transaction, whose: Account, session: Session, update_key: str, payload: str
    ) -> InboxRow | None:
        """Takes in a standing task whose time has come, as a message. Returns None if it was taken in before."""
        return _take_in(tx, whose, session, update_key, payload, now=self._now())

    @in_write
    def put_off(self, tx: Transaction, reminder: Reminder) -> None:
        """Leaves a task out until its next time; one that has none is tried again an hour later."""
        if (firing := _due_now(tx, reminder, self._now())) is None:
            return
        again = None if firing.next_at is not None else firing.now + _AGAIN_MS
        reminding.shown(tx, reminder.id, due_at=firing.next_at, snoozed_to=again, now=firing.now)

    def task_ending(
        self, reminder_id: int, *, error: str | None, told: Callable[[Reminder], Sequence[Part]]
    ) -> Callable[[Transaction], None]:
        """Returns a function that notes a task's end, with an answer or with this error, in the turn's transaction.

        A task that has no other time is tried again later, unless a person has stopped it. A task that fails too often
        in a row is switched off, and `told` is shown.
        """

        def act(tx: Transaction) -> None:
            task = reminding.of_id(tx, reminder_id)
            if task is None:
                return
            if reminding.end_task(tx, reminder_id, failed=error not in (None, "allowance", "muted")) < _FAILURES:
                if task.next_at is None and error not in (None, "stopped"):
                    reminding.snooze(tx, task.id, self._now() + _AGAIN_MS)
                return
            reminding.shown(tx, task.id, due_at=None, snoozed_to=None, now=self._now())
            _, session = _whose(tx, task)
            parts = [replace(part, reminder_id=task.id) for part in told(task)]
            self._mailbox.post(tx, Outgoing(session_key=session.key, pieces=parts, kind="notice"))

        return act

    async def may_spend(self, agent_id: int, limits: Mapping[str, int | None]) -> bool:
        """Returns whether an agent's work in the background has tokens left for this day, by the agents' `limits`."""
        today = clock.midnight(self._now(), self._agents.timezone(agent_id))

        def act(reader: Reader) -> bool:
            limit = limits.get(scopes.agent_name(reader, agent_id))
            return limit is None or extractions.spent_since(reader, agent_id, today) < limit

        return await self._database.read(act)

    def _local(self, context: Context) -> datetime:
        return datetime.fromtimestamp(self._now() / 1000, ZoneInfo(context.timezone))


def _in_half(first: datetime, was: datetime) -> datetime:
    hours = (first.hour, (first.hour + 12) % 24)
    return first.replace(hour=min(hours, key=lambda hour: abs(hour * 60 + first.minute - was.hour * 60 - was.minute)))


def due(first: datetime, *, rule: str | None = None, until: date | None = None) -> ReminderTimes:
    """Returns when a reminder is due that begins at `first`, an aware time in the person's zone."""
    return ReminderTimes(
        first=first.replace(tzinfo=None).isoformat(timespec="seconds"),
        zone=str(first.tzinfo),
        at=_ms(first),
        rule=rule or "",
        until="" if until is None else until.isoformat(),
    )


def due_of(reading: Reading) -> ReminderTimes:
    return due(reading.first, rule=reading.rule, until=reading.until)


def _move_on(tx: Transaction, reminder: Reminder, firing: Firing) -> None:
    later = reminder.snoozed_to if reminder.snoozed_to is not None and reminder.snoozed_to > firing.now else None
    reminding.shown(tx, reminder.id, due_at=firing.next_at, snoozed_to=later, now=firing.now)


def _reachable(reader: Reader, context: Context) -> list[Reminder]:
    return reminding.of_reach(reader, reminding.reach(anew(reader, context).scope, context.session))


def _take_in(
    tx: Transaction, whose: Account, session: Session, update_key: str, payload: str, *, now: int
) -> InboxRow | None:
    """Takes in a task as a message of its person. Returns None if it was taken in before."""
    inbox_id = inbox.receive(
        tx,
        platform=whose.platform,
        bot_id=inbox.TASK,
        update_key=update_key,
        session_key=session.key,
        payload=payload,
        now=now,
    )
    return None if inbox_id is None else InboxRow(id=inbox_id, session_key=session.key, payload=payload, turn_id=None)


def _whose(reader: Reader, reminder: Reminder) -> tuple[Account, Session]:
    account, session = people.account(reader, reminder.identity_id), chats.session_by_id(reader, reminder.session_id)
    assert account is not None  # identities are never deleted
    if reminder.private or not chats.is_present(reader, session):
        session = chats.private_session(reader, reminder.identity_id) or session
    return account, session


def _due_now(reader: Reader, reminder: Reminder, now: int) -> Firing | None:
    still = reminding.of_id(reader, reminder.id)
    return None if still is None or still.next_at is None or still.next_at > now else _firing(reader, still, now)


def _firing(reader: Reader, reminder: Reminder, now: int) -> Firing:
    account, session = _whose(reader, reminder)
    at, next_at = _times(reminder, now)
    return Firing(
        reminder=reminder,
        whose=account,
        session=session,
        agent=scopes.agent_name(reader, reminder.agent_id),
        at=at,
        next_at=next_at,
        late=now - at > _LATE_MS,
        now=now,
    )


def _times(reminder: Reminder, now: int) -> tuple[int, int | None]:
    """Returns the latest time up to `now` at which a reminder was due, and the first after it by its rule."""
    reached = [at for at in (reminder.due_at, reminder.snoozed_to) if at is not None and at <= now]
    if reminder.due_at is None or reminder.due_at > now or not reminder.rule:
        later = reminder.due_at if reminder.due_at is not None and reminder.due_at > now else None
        return max(reached), later
    try:
        zone = ZoneInfo(reminder.zone)
        first = datetime.fromisoformat(reminder.first).replace(tzinfo=zone)
        until = date.fromisoformat(reminder.until) if reminder.until else date.max
        moment = datetime.fromtimestamp(now / 1000, UTC)
        latest = _latest(reminder.rule, first, until, moment)
        following = rules.following(reminder.rule, after=moment, first=first)
    except (ValueError, KeyError) as exc:
        # A zone that the machine no longer knows, or a rule of another version: it must not hold up the others.
        log.error("reminder.unreadable", reminder=reminder.id, error=str(exc), effect="it is shown for the last time")
        return max(reached), None
    if following is not None and following.astimezone(zone).date() > until:
        following = None
    return max([*reached, *([_ms(latest)] if latest else [])]), None if following is None else _ms(following)


def _latest(rule: str, first: datetime, until: date, moment: datetime) -> datetime | None:
    for back in _BACK:
        found, at = None, rules.following(rule, after=moment - back, first=first)
        while at is not None and at <= moment and at.date() <= until:
            found, at = at, rules.following(rule, after=at, first=first)
        if found is not None:
            return found
    return None


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
