"""/remind: words that come back at a time. Sets, lists, changes, puts off and cancels a person's reminders.

Invariants: a reminder is always said back as it was read, with the day and the hour. A time that can't be read surely
is asked for, never guessed. A group shows and changes only reminders that were asked for there. A button names its
reminder by an id that is never used again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal

from channels.base import Button
from gateway.commands import pages
from gateway.commands.call import Asking, Call, excerpt
from gateway.pipeline.questions import buttons, typed
from gateway.wording import reminder_lines
from gateway.wording.reminder_lines import PRESS
from gateway.wording.texts import told_by
from languages import LANGUAGES, Language
from memory.chat.edits import Edits
from memory.errors import NotFound, TooManyReminders
from memory.reminders.orders import Action, Order, is_beside, reworded, takes_back
from memory.reminders.orders import read as reminder_orders
from memory.reminders.reminders import due_of
from memory.reminders.reminding import LONGEST as LONGEST_REMINDER
from memory.reminders.reminding import MOST as MOST_REMINDERS
from memory.reminders.reminding import Reminder, ReminderKind, ReminderTimes, Reminding
from memory.store.questions import Question
from memory.text.times.phrases import Reading, Unclear
from memory.text.times.phrases import is_request as asks_reminder

USAGE: Final = (
    "/remind [<text with a time>|cancel <n>|cancel all|change <n> <time>|reword <n> <text>|snooze <n> [time]|done <n>"
    "|private <text>|task <text with a time>|cron <rule> <text>]"
)
#: The purpose of the question for the time of a reminder, and the choice that a typed time stands for.
WHEN: Final = "remind_when"
TIME: Final = "time"
#: Minutes by which a reminder is put off if no time is named.
_SNOOZE: Final = reminder_lines.SNOOZES[0]
#: The most characters beside a time in a message that counts as only a time: "no, at 10, please".
_BESIDE: Final = 25
#: Characters of a reminder's text in a list.
_LINE: Final = 75
_CHANGE: Final = re.compile(r"(cancel|change|snooze|done)\s+#?(\d{1,6})\b\s*([\s\S]*)", re.IGNORECASE)
_REWORD: Final = re.compile(r"reword\s+#?(\d{1,6})\s+([\s\S]+)", re.IGNORECASE)
_CANCEL_EVERY: Final = re.compile(r"cancel\s+all", re.IGNORECASE)
_LIST: Final = re.compile(r"list(?:\s+(\d{1,3}))?", re.IGNORECASE)
#: Five fields, and what looks like more of them: a line with seconds must not pass for another time.
_CRON: Final = re.compile(
    r"cron\s+((?:\S+\s+){5}(?:(?:[\d*?][\d*?/,#L-]*|[a-z]{3}(?:[,-][a-z]{3})+)(?:\s+|$))*)([\s\S]*)", re.IGNORECASE
)
_PRIVATE: Final = re.compile(r"private\s+([\s\S]+)", re.IGNORECASE)
_TASK: Final = re.compile(r"task\s+([\s\S]+)", re.IGNORECASE)
_PRESSED: Final = re.compile(rf"{PRESS}(cancel|done|snooze):(\d{{1,18}})(?::(\d{{1,5}}))?")


async def remind(call: Call) -> None:
    text = call.arguments.strip()
    if _CANCEL_EVERY.fullmatch(text):
        await _cancel_every(call)
    elif not text or (listed := _LIST.fullmatch(text)) is not None:
        await _list(call, int((text and listed and listed[1]) or 1))
    elif (changed := _CHANGE.fullmatch(text)) is not None:
        await _change(call, changed[1].lower(), int(changed[2]), changed[3].strip())
    elif (worded := _REWORD.fullmatch(text)) is not None:
        await call.say(unfit) if (unfit := _unfit(call, worded[2])) else await _reword(call, int(worded[1]), worded[2])
    elif (exact := _CRON.fullmatch(text)) is not None:
        await _set_by_rule(call, exact[1].strip(), exact[2].strip())
    elif (task := _TASK.fullmatch(text)) is not None:
        await _set_task(call, task[1])
    elif (alone := _PRIVATE.fullmatch(text)) is not None:
        await _set(call, alone[1], private=True)
    elif not await ordered(call, text, certain=True):
        await _set(call, text)


async def ordered(call: Call, said: str, *, certain: bool = False) -> bool:
    """Does what plain words order of reminders, False if nothing; `certain`: they are known to be about reminders."""
    order = await meant(call, said, certain=certain)
    if order is None:
        return False
    if order.language and not certain:
        call = replace(call, texts=replace(call.texts, language=order.language))
    if order.every:
        await _cancel_every(call)
    elif order.number is None:
        await _list(call, 1)
    elif order.text:
        await _reword(call, order.number, order.text)
    else:
        await _change(call, order.action, order.number, order.time)
    return True


async def _requested(call: Call, said: str, reading: Reading | Unclear, *, private: bool = False) -> None:
    """Sets the reminder that was read from `said`, or the several that it names one after the other."""
    if isinstance(reading, Unclear) and (
        each := call.memory.reminders.several(call.context, said, language=call.texts.language)
    ):
        await _add_each(call, each, private=private)
    else:
        await requested(call, reading, private=private)


async def requested(call: Call, reading: Reading | Unclear, *, private: bool = False) -> None:
    if unfit := _unfit(call, reading.what):
        await call.say(unfit)
    elif isinstance(reading, Unclear):
        await _add(call, reading.what, None, private=private, unclear=reading)
    else:
        await _add(call, reading.what, due_of(reading), private=private)


def _unfit(call: Call, text: str) -> str:
    if not text.strip():
        return call.texts("remind.what")
    return call.texts("remind.long", most=LONGEST_REMINDER) if len(text) > LONGEST_REMINDER else ""


async def answer_when(call: Call, question: Question, taken: str) -> None:
    payload = json.loads(question.payload)
    reminder_id, often = int(payload["reminder"]), bool(payload.get("often"))
    reading = call.memory.reminders.read_time(call.context, call.inbound.text, language=call.texts.language)

    def take(edits: Edits, asked: Reminder) -> str | Asking:
        if taken == "no" or reading is None:
            edits.settle(question, "no")
            if asked.first:  # it keeps the time that it had
                return _set_back(call, edits, asked, "remind.set")
            edits.reminding.cancel(asked)
            return call.texts("remind.not_set")
        if isinstance(reading, Unclear):
            return _when_again(call, edits, asked, reading.reason, often=often or reading.often)
        if often and reading.rule is None and not reading.day_given:
            return _when_again(call, edits, asked, "often", often=True)
        edits.settle(question, TIME)
        return _set_back(call, edits, _retimed(call, edits, asked, reading), "remind.set")

    await _with(call, lambda reminding: reminding.of_id(reminder_id), take)


async def _with(
    call: Call,
    found: Callable[[Reminding], Reminder],
    change: Callable[[Edits, Reminder], str | Asking],
    *,
    gone: str = "",
    in_place: bool = False,
) -> None:
    """Does `change` with a reminder; answers that it is gone, or with the text `gone`, if there is none any more."""

    def change_or_say_gone(edits: Edits) -> str | Asking:
        try:
            return change(edits, found(edits.reminding))
        except NotFound:
            return gone or call.texts("remind.gone")

    await call.do(change_or_say_gone, in_place=in_place)


async def told_when(call: Call, question: Question) -> str | None:
    if asks_reminder(call.inbound.text, language=call.texts.language):
        return None
    if _time_alone(call) is not None:
        return TIME
    if typed(question, call.inbound.text) == "no" or takes_back(call.inbound.text, language=call.texts.language):
        return "no"
    return None


async def wished(call: Call) -> bool:
    """Sets a reminder that ordinary words ask for; False if they ask for none."""
    reading = call.memory.reminders.read(call.context, call.inbound.text, language=call.texts.language)
    if reading is None:
        return False
    await _requested(call, call.inbound.text, reading)
    return True


async def replied(call: Call) -> bool:
    """Gives a reminder the time that a reply to it names; False if the message is no such reply."""
    meant = await call.memory.reminders.meant(call.context, call.inbound.reply_to or "")
    if meant is None:
        return False
    reading = _time_alone(call)
    if reading is None:
        return False
    await retimed(call, meant, reading)
    return True


def _time_alone(call: Call) -> Reading | Unclear | None:
    """Returns the time that a message names; None if it names none, or says much beside it."""
    reading = call.memory.reminders.read_time(call.context, call.inbound.text, language=call.texts.language)
    return None if reading is None or len(reading.what) > _BESIDE else reading


async def retimed(call: Call, reminder: Reminder, reading: Reading | Unclear) -> None:
    def set_time(edits: Edits, meant: Reminder) -> Asking:
        if isinstance(reading, Unclear):
            return _when_again(call, edits, meant, reading.reason)
        return _set_back(call, edits, _retimed(call, edits, meant, reading), "remind.moved")

    await _with(call, lambda reminding: reminding.of_id(reminder.id), set_time)


def _retimed(call: Call, edits: Edits, reminder: Reminder, reading: Reading) -> Reminder:
    return edits.reminding.change(reminder, call.memory.reminders.retimed(reminder, reading))


async def press(call: Call, data: str) -> bool:
    pressed = _PRESSED.fullmatch(data)
    if pressed is None:
        return False
    action, reminder_id, minutes = pressed[1], int(pressed[2]), int(pressed[3] or _SNOOZE)
    if reminder_id not in {reminder.id for reminder in await call.memory.reminders.every(call.context)}:
        await call.say(call.texts("remind.gone"))
        return True
    await _with(
        call,
        lambda reminding: reminding.of_id(reminder_id),
        lambda edits, meant: _done(call, edits, meant, action, minutes),
        in_place=True,
    )
    return True


async def _set(call: Call, said: str, *, private: bool = False) -> None:
    reading = call.memory.reminders.read_bare(call.context, said, language=call.texts.language)
    await _requested(call, said, reading, private=private)


async def _set_task(call: Call, said: str) -> None:
    """Sets a task, which the agent answers at its time. Nothing is asked back: a task waits for no person."""
    reading = call.memory.reminders.read_bare(call.context, said, language=call.texts.language)
    if call.agent.offline:
        await call.say(call.texts("remind.task.no_model"))
    elif isinstance(reading, Unclear):
        await call.say(call.texts(f"remind.time.{reading.reason}"))
    elif unfit := _unfit(call, reading.what):
        await call.say(unfit)
    else:
        await _add(call, reading.what, due_of(reading), kind="task")


async def _set_by_rule(call: Call, rule: str, text: str) -> None:
    try:
        due = call.memory.reminders.by_rule(call.context, rule)
    except ValueError as exc:
        await call.say(call.texts("remind.bad_rule", why=exc))
        return
    if due is None:
        await call.say(call.texts("remind.never"))
    elif unfit := _unfit(call, text):
        await call.say(unfit)
    else:
        await _add(call, text, due)


async def _add(
    call: Call,
    text: str,
    due: ReminderTimes | None,
    *,
    private: bool = False,
    kind: ReminderKind = "reminder",
    unclear: Unclear | None = None,
) -> None:
    """Sets a reminder. One whose time is `unclear` waits without a time, which is asked for."""

    def add(edits: Edits) -> str | Asking:
        made = _made(call, edits, text, due, private=private, kind=kind)
        if isinstance(made, str):
            return made
        if unclear is not None:
            return _when_again(call, edits, made, unclear.reason, often=unclear.often)
        return _set_back(call, edits, made, "remind.set")

    await call.do(add)


async def _add_each(call: Call, readings: Sequence[Reading], *, private: bool) -> None:
    def add(edits: Edits) -> Asking:
        lines: list[str] = []
        cancel: list[Button] = []
        for reading in readings:
            made = _made(call, edits, reading.what[:LONGEST_REMINDER], due_of(reading), private=private)
            if isinstance(made, str):
                return Asking(text="\n".join([*lines, made]), buttons=tuple(cancel))
            lines.append(reminder_lines.set_back(call.texts, made, edits.reminding.now, key="remind.set"))
            cancel.append(reminder_lines.cancel_button(call.texts, made, numbered=True))
        return Asking(text="\n".join(lines), buttons=tuple(cancel))

    await call.do(add)


def _made(
    call: Call, edits: Edits, text: str, due: ReminderTimes | None, *, private: bool, kind: ReminderKind = "reminder"
) -> Reminder | str:
    """Adds a reminder; returns the answer that there are too many if there are."""
    try:
        return edits.reminding.add(
            text,
            due,
            language=call.texts.language,
            asked_ref=call.inbound.message_id or None,
            private=private,
            kind=kind,
        )
    except TooManyReminders:
        return call.texts("remind.full", most=MOST_REMINDERS)


def _when_again(call: Call, edits: Edits, reminder: Reminder, reason: str, *, often: bool = False) -> Asking:
    """Asks for the time of a reminder; of one that is to come `often`, an hour alone won't do."""
    question = edits.ask(WHEN, {"reminder": reminder.id, "often": often}, choices=("no",), preset="no")
    asked = call.texts(f"remind.ask.{reason}", text=excerpt(reminder.text))
    return Asking(text=asked, buttons=buttons(question, call.texts, alone=True), reminder=reminder.id)


def _set_back(call: Call, edits: Edits, reminder: Reminder, key: str) -> Asking:
    text = reminder_lines.set_back(call.texts, reminder, edits.reminding.now, key=key)
    return Asking(text=text, buttons=(reminder_lines.cancel_button(call.texts, reminder),), reminder=reminder.id)


async def _change(call: Call, action: str, number: int, said: str) -> None:
    reading = call.memory.reminders.read_time(call.context, said, language=call.texts.language) if said else None
    if action in ("change", "snooze") and (said or action == "change") and not isinstance(reading, Reading):
        reason = reading.reason if isinstance(reading, Unclear) else "none"
        await call.say(call.texts(f"remind.time.{reason}"))
        return

    def change(edits: Edits, meant: Reminder) -> str | Asking:
        if not isinstance(reading, Reading):
            return _done(call, edits, meant, action, _SNOOZE)
        if action == "change":
            return _set_back(call, edits, _retimed(call, edits, meant, reading), "remind.moved")
        if action == "snooze":
            if meant.shown_at is None and not meant.rule:  # "put it off to Friday" before its time
                return _set_back(call, edits, _retimed(call, edits, meant, reading), "remind.moved")
            return _set_back(call, edits, edits.reminding.snooze(meant, due_of(reading).at), "remind.snoozed")
        return call.usage_line()

    await _with(call, lambda reminding: reminding.numbered(number), change, gone=call.texts("remind.unknown", n=number))


async def _cancel_every(call: Call) -> None:
    every = [reminder for reminder in await call.memory.reminders.every(call.context) if reminder.next_at is not None]
    if not every:
        await call.say(call.texts("remind.none"))
        return

    def cancel_all(edits: Edits) -> str:
        for reminder in every:
            with suppress(NotFound):  # it was cancelled meanwhile
                edits.reminding.cancel(edits.reminding.of_id(reminder.id))
        return "\n".join(call.texts("remind.cancelled", n=reminder.number, text=reminder.text) for reminder in every)

    await call.do(cancel_all)


async def _reword(call: Call, number: int, text: str) -> None:
    def reword(edits: Edits, meant: Reminder) -> Asking:
        return _set_back(call, edits, edits.reminding.reword(meant, text), "remind.moved")

    await _with(call, lambda reminding: reminding.numbered(number), reword, gone=call.texts("remind.unknown", n=number))


def _done(call: Call, edits: Edits, reminder: Reminder, action: str, minutes: int) -> str | Asking:
    reminding = edits.reminding
    if action == "cancel":
        reminding.cancel(reminder)
        return call.texts("remind.cancelled", n=reminder.number, text=reminder.text)
    if action == "snooze":
        to = call.memory.reminders.after(timedelta(minutes=minutes))
        return _set_back(call, edits, reminding.snooze(reminder, to), "remind.snoozed")
    going_on = reminding.done(reminder)
    if going_on is None:
        return call.texts("remind.done", text=reminder.text)
    at = reminder_lines.due(call.texts, going_on, reminding.now)
    return Asking(text=call.texts("remind.done_next", text=reminder.text, when=at), reminder=reminder.id)


async def _list(call: Call, page: int) -> None:
    every = [reminder for reminder in await call.memory.reminders.every(call.context) if reminder.next_at is not None]
    if not every:
        await call.say(call.texts("remind.none"))
        return
    pages_of = -(-len(every) // pages.SIZE)
    if page > pages_of:
        await call.say(pages.beyond(call, page, pages_of))
        return
    here = every[(page - 1) * pages.SIZE :][: pages.SIZE]
    now = call.memory.reminders.after(timedelta(0))
    lines = [_line(call, reminder, now) for reminder in here]
    cancel = [reminder_lines.cancel_button(call.texts, reminder, numbered=True) for reminder in here]
    turns = pages.turning_by(call, page, pages_of, lambda to: f"/remind list {to}")
    head = call.texts("remind.head" if call.context.session.private else "remind.head_here")
    await pages.show(call, [head, *lines, call.texts("remind.how", number=here[-1].number)], [*cancel, *turns])


def _line(call: Call, reminder: Reminder, now: int) -> str:
    at = reminder_lines.due(call.texts, reminder, now)
    return call.texts(
        "remind.line", n=reminder.number, when=at, text=excerpt(reminder_lines.words(call.texts, reminder), _LINE)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """An order about the reminder with a number, and its words of time; without a number it asks for the list.

    With `every` it is about all reminders. `text` are the reminder's new words. An order that speaks of reminders is
    answered in its own `language`.
    """

    action: Action
    number: int | None = None
    every: bool = False
    time: str = ""
    text: str = ""
    language: Language | Literal[""] = ""


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
            return replace(meaning, language=order.language if order.named else "")
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
