"""Reminders as people read them: their times, their rules, and the messages in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from datetime import date as day_of
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from channels.base import Button
from gateway.wording.texts import Texts, spoken
from memory.reminders.followups import FollowUp
from memory.reminders.reminders import Firing
from memory.reminders.reminding import Reminder
from memory.text.times import rules
from memory.text.times.rules import Recurrence

#: Prefix of the data of a reminder's button, before what it does, the reminder's id and minutes.
PRESS: Final = "remind:"
#: Minutes by which the buttons under a reminder put it off.
SNOOZES: Final = (10, 60)
#: A Monday, to name the days of the week by.
_MONDAY: Final = day_of(2024, 1, 1)
_WORKDAYS: Final = (0, 1, 2, 3, 4)
#: As many times of a day, evenly spaced, are said as their first, their last and their distance.
_SPAN: Final = 4
_A_DAY: Final = 24 * 60


def when(texts: Texts, at: int, zone: str, now: int) -> str:
    """Returns a time to come as "Monday 30 November, 09:00 Berlin". Times are in milliseconds UTC."""
    moment, today = local(at, zone), local(now, zone).date()
    place, own = _place(zone), local(at, texts.timezone)
    if moment.replace(tzinfo=None) != own.replace(tzinfo=None):
        place = f"{place} ({own:%H:%M} {_place(texts.timezone)})"
    return texts("remind.when", day=texts.day_to_come(moment.date(), today), time=f"{moment:%H:%M}", zone=place)


def _place(zone: str) -> str:
    return _known(zone).key.rpartition("/")[2].replace("_", " ")


def due(texts: Texts, reminder: Reminder, now: int) -> str:
    if reminder.next_at is None:
        return texts("remind.waiting")
    at = when(texts, reminder.next_at, reminder.zone, now)
    if not reminder.rule:
        return at
    repeats = rule(texts, reminder.rule)
    if reminder.until:
        last = texts.day_to_come(day_of.fromisoformat(reminder.until), local(now, reminder.zone).date())
        repeats = texts("remind.until", rule=repeats, day=last)
    return texts("remind.repeats", rule=repeats, when=at)


def rule(texts: Texts, written: str) -> str:
    """Returns in words how a reminder repeats; a rule without words of its own as it was written."""
    said = [_at(texts, _every(texts, one), one.minutes) for one in rules.recurrences(written)]
    return texts("remind.every.also").join(said) or texts("remind.every.rule", rule=written.partition(":")[2])


def _weekdays(texts: Texts, days: Iterable[int]) -> str:
    return texts.listed(texts.weekday(_MONDAY + timedelta(days=day)) for day in days)


def _every(texts: Texts, one: Recurrence) -> str:
    weekly = one.unit == "week" and one.interval == 1
    left_out = [day for day in range(7) if day not in one.weekdays]
    days = _weekdays(texts, one.weekdays)
    if weekly and one.weekdays == _WORKDAYS:
        every = texts("remind.every.workday")
    elif weekly and len(left_out) == 1:
        every = texts("remind.every.but", days=_weekdays(texts, left_out))
    else:
        every = _times(texts, one.unit, one.interval)
        if one.nth:
            ordinal = texts("remind.every.ordinals").split("|")[one.nth - 1 if one.nth > 0 else one.nth]
            every = texts("remind.every.by", every=every, days=texts("remind.every.nth", nth=ordinal, day=days))
        elif days:
            every = texts("remind.every.on", every=every, days=days)
    if one.unit == "year":
        dates = [texts.month_day(month, day) for month in one.months for day in one.days]
        return texts("remind.every.on", every=every, days=texts.listed(dates)) if dates else every
    if one.days:
        named = (texts("remind.every.monthday", n=day) if day > 0 else texts("remind.every.last") for day in one.days)
        every = texts("remind.every.by", every=every, days=texts.listed(named))
    return texts("remind.every.in", every=every, months=texts.months(one.months)) if one.months else every


def _times(texts: Texts, unit: str, count: int) -> str:
    return texts(f"remind.every.{unit}") if count == 1 else texts(f"remind.every.{unit}s", n=count)


def _at(texts: Texts, every: str, minutes: Sequence[int]) -> str:
    if not minutes:
        return every
    times = [f"{minute // 60:02}:{minute % 60:02}" for minute in minutes]
    steps = {later - earlier for earlier, later in pairwise(minutes)}
    if len(minutes) < _SPAN or len(steps) > 1:
        return texts("remind.every.at", every=every, times=texts.listed(times))
    step = steps.pop()
    often = _times(texts, "minute", step) if step % 60 else _times(texts, "hour", step // 60)
    if minutes[0] == 0 and len(minutes) * step == _A_DAY and every == texts("remind.every.day"):
        return often
    return texts("remind.every.span", every=every, step=often, first=times[0], last=times[-1])


def set_back(texts: Texts, reminder: Reminder, now: int, *, key: str = "remind.set") -> str:
    return texts(key, n=reminder.number, when=due(texts, reminder, now), text=words(texts, reminder))


def words(texts: Texts, reminder: Reminder) -> str:
    return texts("remind.task", text=reminder.text) if reminder.kind == "task" else reminder.text


def shown(firing: Firing) -> str:
    texts, reminder = texts_of(firing.reminder), firing.reminder
    name = "" if firing.session.private else firing.whose.name
    text = (
        texts("remind.fire.named", name=name, text=reminder.text) if name else texts("remind.fire", text=reminder.text)
    )
    if not firing.late:
        return text
    at, now = local(firing.at, reminder.zone), local(firing.now, reminder.zone)
    due_at = f"{at:%H:%M}" if at.date() == now.date() else when(texts, firing.at, reminder.zone, firing.now)
    return f"{text}\n{texts('remind.late', when=due_at)}"


def switched_off(task: Reminder) -> str:
    return texts_of(task)("remind.task.off", n=task.number, text=task.text)


def follow_up(due: FollowUp) -> tuple[str, str]:
    """Returns the question of a follow-up or the wishes for a birthday, and the label of the button that ends them."""
    texts = Texts(spoken(due.language or "en", "en"), due.timezone)
    asked = texts("followup.plan", what=due.plan) if due.plan else texts("followup.birthday")
    return asked, texts("followup.button")


def shown_buttons(reminder: Reminder) -> tuple[Button, ...]:
    texts = texts_of(reminder)
    return (
        Button(label=texts("remind.button.done"), data=f"{PRESS}done:{reminder.id}"),
        *(
            Button(
                label=texts("remind.button.minutes", n=minutes) if minutes < 60 else texts("remind.button.hour"),
                data=f"{PRESS}snooze:{reminder.id}:{minutes}",
            )
            for minutes in SNOOZES
        ),
    )


def cancel_button(texts: Texts, reminder: Reminder, *, numbered: bool = False) -> Button:
    label = texts("remind.button.cancel_one", n=reminder.number) if numbered else texts("remind.button.cancel")
    return Button(label=label, data=f"{PRESS}cancel:{reminder.id}")


def texts_of(reminder: Reminder) -> Texts:
    return Texts(spoken(reminder.language, "en"), reminder.zone)


def local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(_known(zone))


def _known(zone: str) -> ZoneInfo:
    """Returns a zone; UTC in the place of one that this machine no longer knows."""
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError):
        return ZoneInfo("UTC")
