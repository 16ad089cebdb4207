"""Finds the reminder that plain words mean: "cancel the second one", "snooze", "no, at 10".

Invariant: words that name no reminder mean one only right after the bot has spoken of it, in a private chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from gateway.commands.call import Call
from gateway.wording import reminder_lines
from gateway.wording.texts import told_by
from languages import LANGUAGES
from memory.reminders.orders import Action, Order, is_beside, reworded
from memory.reminders.orders import read as reminder_orders
from memory.reminders.reminding import Reminder
from memory.text.times.phrases import Reading, Unclear


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """An order about the reminder with a number, and its words of time; without a number it asks for the list.

    With `every` it is about all reminders. `text` are the reminder's new words.
    """

    action: Action
    number: int | None = None
    every: bool = False
    time: str = ""
    text: str = ""


def may_order(said: str) -> bool:
    """Returns whether words may order something of reminders though the bot did not speak of one last."""
    language = told_by(said)
    return language not in LANGUAGES or any(reminder_orders(said, language=language))


async def meant(call: Call, said: str, *, certain: bool) -> Meant | None:
    private, language = call.context.session.private, call.texts.language
    last = await call.memory.reminders.last_shown(call.context) if private else None
    text = reworded(said, language=language) if last is not None and last.first else ""
    if last is not None and text and call.memory.reminders.read_time(call.context, text, language=language) is None:
        return Meant(action="reword", number=last.number, text=text)
    every = await call.memory.reminders.every(call.context)
    for order in reminder_orders(said, language=language):
        if (meaning := _of(call, order, every, last, certain=certain)) is not None:
            return meaning
    if last is not None and last.first:
        time = call.memory.reminders.read_time(call.context, said, language=language)
        # "When do I have to …?" asks for a time and names none.
        asks = isinstance(time, Unclear) and said.rstrip().endswith(("?", "？"))
        if time is not None and not asks and is_beside(time.what, language=language):
            return Meant(action="change", number=last.number, time=said)
    return None


def _of(call: Call, order: Order, every: Sequence[Reminder], last: Reminder | None, *, certain: bool) -> Meant | None:
    """Returns the meaning of an order here; None if it is talk of something else."""
    every_one = order.every and not order.rest and order.action == "cancel" and (order.named or certain)
    if order.action == "list" or every_one:
        return Meant(action=order.action, every=every_one)
    number, about = order.number, order.named or certain
    if order.place is not None:
        at_place = [reminder.number for reminder in every[order.place - 1 :]][:1]
        if order.place in {reminder.number for reminder in every}.difference(at_place):
            return Meant(action="list")  # the second of the list is not reminder 2: nothing is guessed
        number = at_place[0] if at_place else None
    if last is not None and order.action == "change" and number is not None and not (order.rest or order.named):
        return Meant(action="change", number=last.number, time=str(number))  # "make it 10"
    if _is_time(call, order):
        number = last.number if number is None and last is not None else number
        return Meant(action=order.action, number=number, time=order.rest) if number is not None or about else None
    if order.rest:
        named = [reminder.number for reminder in every if order.speaks_of(reminder.text)]
        if not named:  # "the Sunday one"
            now = call.memory.reminders.after(timedelta(0))
            named = [
                reminder.number for reminder in every if order.speaks_of(reminder_lines.due(call.texts, reminder, now))
            ]
        # "Cancel the plumber" can mean nothing else where a reminder speaks of the plumber.
        known = number is None and (order.named or (bool(named) and (certain or order.calls_off or last is not None)))
        return Meant(action=order.action, number=named[0] if len(named) == 1 else None) if known else None
    if number is None and order.place is None and last is not None:
        number = last.number
    return Meant(action=order.action, number=number) if about or (number is not None and bool(every)) else None


def _is_time(call: Call, order: Order) -> bool:
    if not order.rest or order.action not in ("change", "snooze"):
        return False
    language = call.texts.language
    reading = call.memory.reminders.read_time(call.context, order.rest, language=language)
    return isinstance(reading, Reading) and is_beside(reading.what, language=language)
