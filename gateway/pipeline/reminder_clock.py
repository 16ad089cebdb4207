"""The clock of reminders and follow-ups: one for each store, it sleeps until the next is due and queues its message.

Invariants: the store alone decides what is due, so a wake too many, too late or missing changes only when a reminder is
shown. A person, a reminder or a task that raises an error holds up no other, and is tried again later. The clock looks
by itself every minute, because nothing wakes it after the machine slept or its time was set. A person or a group that
an admin has blocked since is shown nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import structlog

from channels.base import Button, Channel, Inbound, Place
from gateway.ops.standing import StandingTask
from gateway.pipeline.delivery import RUN, pieces
from gateway.pipeline.store import Store
from gateway.wording import reminder_lines
from memory.mailbox.inbox import TASK as TASK_BOT
from memory.mailbox.inbox import InboxRow
from memory.mailbox.outbox import Part
from memory.people.access import Access
from memory.reminders.followups import FollowUp
from memory.reminders.reminders import Firing
from memory.reminders.reminding import Reminder
from memory.store.chats import Session
from memory.store.people import Account

log = structlog.get_logger(__name__)

#: The name of this loop, and of its units of work.
_LOOP: Final = "reminders"
#: Seconds after which the clock looks by itself, and after which it looks if something failed before.
_LOOKS: Final = 60.0
_AGAIN: Final = 30.0
#: The model's message about a task.
_TASK: Final = "(Scheduled task. If there is nothing to tell, answer just NOTHING.) {}"


class ReminderClock:
    """Shows the reminders of one store when they are due. `work` is its main loop."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        *,
        access: Access,
        answer: Callable[[Store, InboxRow], Awaitable[None]],
        tokens_per_day: Mapping[str, int | None],
        now: Callable[[], int],
        standing: Sequence[StandingTask] = (),
    ) -> None:
        """`access` knows who was shut out in chats; `answer` starts the answer to a task; `now` is in milliseconds UTC.

        `standing` are the tasks of the agents' files. A task is left out once its agent's work in the background has
        used up the agent's `tokens_per_day` on a day.
        """
        self._store = store
        self._reminders = store.memory.reminders
        self._channels = channels
        self._access = access
        self._answer = answer
        self._tokens_per_day = tokens_per_day
        self._now = now
        self._standing = standing
        self._loops = store.memory.loops
        #: The latest time of each standing task, and those of them that are still to be begun.
        self._reached: dict[str, int] = {}
        self._owed: dict[str, int] = {}

    @property
    def store(self) -> Store:
        return self._store

    def renew(self, tokens_per_day: Mapping[str, int | None], standing: Sequence[StandingTask]) -> None:
        self._tokens_per_day = tokens_per_day
        self._standing = standing

    async def work(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Shows each reminder and follow-up when it is due. Never ends."""
        await self._loops.run(
            _LOOP,
            self.work_off,
            effect="Reminders, tasks and follow-ups are late.",
            woken=self._reminders.stirred,
            sleep=sleep,
        )

    async def work_off(self) -> float:
        """Shows and asks everything that is due by now. Returns the seconds until it has to look again."""
        self._reminders.stirred.clear()
        # On its own: people's reminders are shown even if nobody can be asked.
        wanted = await self._loops.alone(_LOOP, "follow-ups", self._store.memory.follow_ups.wanted, is_work=False)
        for identity_id in wanted or ():
            await self._loops.alone(_LOOP, f"follow-up of account {identity_id}", partial(self._follow_up, identity_id))
        for task in self._standing:
            # Apart from its beginning, which may be put off for longer than a time counts as reached.
            await self._loops.alone(_LOOP, f"time of task {task.key}", partial(self._note_time, task), is_work=False)
            if task.key in self._owed:
                await self._loops.alone(_LOOP, f"task {task.key}", partial(self._begin_owed, task))
        wait = await self._remind()
        return min(wait, _AGAIN) if self._loops.put_off(_LOOP) else wait

    async def _note_time(self, task: StandingTask) -> None:
        at = self._reminders.reached(task.rule, task.agent.timezone)
        if at is not None and self._reached.get(task.key) != at:
            self._reached[task.key] = self._owed[task.key] = at

    async def _begin_owed(self, task: StandingTask) -> None:
        await self._begin_standing(task, self._owed[task.key])
        del self._owed[task.key]

    async def _follow_up(self, identity_id: int) -> None:
        follow_up = await self._store.memory.follow_ups.due(identity_id)
        if follow_up is None or not await self._may_be_told(follow_up.whose, follow_up.session):
            return
        channel_id = Place.from_session_key(follow_up.session.key).channel

        def show(due: FollowUp) -> Sequence[Part]:
            asked, label = reminder_lines.follow_up(due)
            stop = Button(label=label, data=f"{RUN}/privacy followups off")
            return pieces(self._channels.get(channel_id), asked, buttons=(stop,))

        session_key = await self._store.memory.follow_ups.ask(follow_up, show)
        if session_key is not None:
            self._store.delivery.wake(session_key)

    async def _remind(self) -> float:
        """Shows the reminders that are due by now. Returns the seconds until it has to look again."""
        tried: set[int] = set()
        while (reminder := await self._reminders.next_due(besides=tried)) is not None:
            assert reminder.next_at is not None
            wait = (reminder.next_at - self._now()) / 1000
            if wait > 0:
                return min(wait, _LOOKS)
            # One that fails or is still put off stays due: it must not be met again in this round.
            if await self._loops.alone(_LOOP, f"reminder {reminder.id}", partial(self._show, reminder)) is None:
                tried.add(reminder.id)
        return _LOOKS

    async def _show(self, reminder: Reminder) -> bool:
        """Shows a reminder, or begins its task. Returns True."""
        allowed = await self._may_read(reminder)

        def show(firing: Firing) -> Sequence[Part]:
            if not allowed:
                return ()
            channel = self._channels.get(Place.from_session_key(firing.session.key).channel)
            buttons = reminder_lines.shown_buttons(firing.reminder)
            return pieces(channel, reminder_lines.shown(firing), buttons=buttons)

        if reminder.kind == "task" and allowed:
            await self._begin_task(reminder)
            return True
        session_key = await self._reminders.fire(reminder, show)
        if session_key is not None:
            self._store.delivery.wake(session_key)
        return True

    async def _begin_task(self, reminder: Reminder) -> None:
        """Queues a task for its answer. If today's tokens are used up, it is put off."""

        def message(firing: Firing) -> str:
            return _heard(
                firing.whose,
                firing.session,
                firing.now,
                update_key=f"{firing.reminder.id}:{firing.at}",
                text=_TASK.format(firing.reminder.text),
                reply_to=firing.reminder.asked_ref,
                language=firing.reminder.language,
                task=firing.reminder.id,
            )

        if not await self._reminders.may_spend(reminder.agent_id, self._tokens_per_day):
            log.warning("task.put_off", reminder=reminder.id, because="today's tokens are used up")
            await self._reminders.put_off(reminder)
            return
        row = await self._reminders.begin_task(reminder, message)
        if row is not None:
            await self._answer(self._store, row)

    async def _begin_standing(self, task: StandingTask, at: int) -> None:
        words, place = task.words(), await self._reminders.told_by(task.agent.name, *task.person)
        if not words:
            return
        if place is None:
            log.warning("task.nobody", task=task.key, because="this agent answers in no private chat of that person")
            return
        account, session = place
        spends = await self._reminders.may_spend(session.agent_id, self._tokens_per_day)
        if not spends or not await self._may_be_told(account, session):
            log.warning("task.left_out", task=task.key, because="blocked" if spends else "today's tokens are used up")
            return
        update_key = f"standing:{task.key}:{at}"
        text, language = _TASK.format(words), task.agent.language
        payload = _heard(
            account, session, self._now(), update_key=update_key, text=text, reply_to=None, language=language, task=0
        )
        row = await self._reminders.begin_standing(account, session, update_key, payload)
        if row is not None:
            await self._answer(self._store, row)

    async def _may_read(self, reminder: Reminder) -> bool:
        """Returns whether nobody has shut out the reminder's person, or the group where it is to be shown."""
        return await self._may_be_told(*await self._reminders.whose(reminder))

    async def _may_be_told(self, account: Account, session: Session) -> bool:
        place = Place.from_session_key(session.key)
        if await self._access.state(place.channel, "person", account.user_id) == "blocked":
            return False
        return session.private or await self._access.state(place.channel, "group", place.chat) != "blocked"


def _heard(
    whose: Account,
    session: Session,
    now: int,
    *,
    update_key: str,
    text: str,
    reply_to: str | None,
    language: str,
    task: int,
) -> str:
    """Returns a task as a message of its person, for the inbox."""
    place = Place.from_session_key(session.key)
    return Inbound(
        channel=place.channel,
        platform=whose.platform,
        bot_id=TASK_BOT,
        update_key=update_key,
        chat=place.chat,
        chat_kind="private" if session.private else "group",
        author_id=whose.user_id,
        author_name=whose.name,
        message_id="",
        text=text,
        sent_at=now,
        thread=place.thread,
        reply_to=reply_to,
        language=language,
        task=task,
    ).to_json()
