"""Reminders as people read them: their times, their rules, and the messages in which they come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from datetime import date as day_of
from typing import Final
from zoneinfo import ZoneInfo

from channels.base import Button
from gateway.wording.texts import Texts, spoken
from memory.reminders.followups import FollowUp
from memory.reminders.reminders import Firing
from memory.reminders.reminding import Reminder

#: Prefix of the data of a reminder's button, before what it does, the reminder's id and minutes.
PRESS: Final = "remind:"
#: Minutes by which the buttons under a reminder put it off.
SNOOZES: Final = (10, 60)
#: A Monday, to name the days of the week by.
_MONDAY: Final = day_of(2024, 1, 1)
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WORKDAYS: Final = frozenset(_DAYS[:5])
_UNITS: Final = {
    "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year",
}  # fmt: skip


def when(texts: Texts, at: int, zone: str, now: int) -> str:
    """Returns a time to come as "Monday 30 November, 09:00 Berlin". Times are in milliseconds UTC."""
    moment, today = local(at, zone), local(now, zone).date()
    place = _known(zone).key.rpartition("/")[2].replace("_", " ")
    return texts("remind.when", day=texts.day_to_come(moment.date(), today), time=f"{moment:%H:%M}", zone=place)


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
    name, _, parts = written.partition(":")
    parts_of = dict(part.partition("=")[::2] for part in parts.split(";") if part) if name == "RRULE" else {}
    unit = _UNITS.get(parts_of.get("FREQ", ""))
    if unit is None or not parts_of.get("INTERVAL", "1").isdecimal():
        return texts("remind.every.rule", rule=parts or written)
    return _every(texts, unit, int(parts_of.get("INTERVAL", "1")), parts_of)


def _every(texts: Texts, unit: str, interval: int, told: Mapping[str, str]) -> str:
    days = [day for day in told.get("BYDAY", "").split(",") if day in _DAYS]
    if unit == "week" and interval == 1 and set(days) == _WORKDAYS:
        return texts("remind.every.workday")
    every = texts(f"remind.every.{unit}") if interval == 1 else texts(f"remind.every.{unit}s", n=interval)
    if not days or unit != "week":
        return every
    names = [texts.weekday(_MONDAY + timedelta(days=_DAYS.index(day))) for day in days]
    return texts("remind.every.on", every=every, days=texts("remind.every.and").join(names))


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
