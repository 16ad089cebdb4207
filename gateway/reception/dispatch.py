"""Passes messages that are meant for the bot itself (commands, presses, typed answers) to their handlers.

Invariants: a forwarded message asks for nothing, because another person said it. An outdated press gets an answer that
says so. An erasure that a message began before the process ended is not begun again, but gets its receipt. A person who
may not speak is offered nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from channels.base import Channel, Form, Inbound, Suggestion
from gateway.commands import plain, privacy, reminders, table
from gateway.commands.call import Call
from gateway.commands.forget import offered
from gateway.commands.people import LINK
from gateway.config.loading import FORMS, WEB_PREFIX
from gateway.ops.reloading import Reload
from gateway.pipeline import questions
from gateway.pipeline.course import Agent
from gateway.pipeline.delivery import AGAIN, pieces
from gateway.pipeline.limits import Buckets
from gateway.pipeline.policy import Policy, code_in
from gateway.pipeline.store import Roster, Store, where_said, who_said
from gateway.reception.backlog import Waiting
from gateway.wording.texts import Texts, spoken, spoken_by, told_by, written_in
from memory.chat.doubts import DOUBT
from memory.context import Context
from memory.errors import StorageError
from memory.people.access import Access
from memory.service import Service
from memory.store.questions import Question
from memory.text.times.phrases import is_request as asks_reminder

log = structlog.get_logger(__name__)

#: Questions that come whatever the person is talking about: going on with that leaves them open.
_UNPROMPTED: Final = frozenset({LINK, DOUBT})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A command that is being typed, with its author and place."""

    name: str
    arguments: str
    context: Context
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakers:
    """The rules on who may speak, and how much.

    `access` knows who was let in or shut out in chats, for all stores. `new_code` makes an unguessable code that lets a
    person in.
    """

    access: Access
    policy: Policy
    buckets: Buckets
    new_code: Callable[[], str]


class Dispatch:
    def __init__(
        self,
        *,
        roster: Roster,
        channels: Mapping[str, Channel],
        speakers: Speakers,
        stop: Callable[[Store, Inbound, Callable[[], Awaitable[None]]], Awaitable[bool]],
        unhear: Callable[[Inbound], None],
        reload: Reload | None = None,
    ) -> None:
        """`stop` ends the answer in a place after a word to the person, `unhear` drops lines to others."""
        self._roster = roster
        self._channels = channels
        self._access = speakers.access
        self._policy = speakers.policy
        self._new_code = speakers.new_code
        self._stop = stop
        self._unhear = unhear
        self._reload = reload

    async def answered(self, waiting: Waiting) -> bool:
        """Handles a command, press or answer; False for ordinary talk and a yes after which the model goes on."""
        if waiting.late and await self._told_before(waiting):
            return True
        calls, row = waiting.store.memory.outside_calls, waiting.heard.inbox_id
        if waiting.late and await calls.is_agreed([row]):
            return False
        pressed = waiting.heard.inbound.pressed
        return await (self._said(waiting) if pressed is None else self._pressed(waiting, pressed))

    async def suggest(
        self, inbound: Inbound, store: Store, served: Agent, option: str, typed: str
    ) -> Sequence[Suggestion]:
        """Returns suggestions that complete `option` of the command being typed, which `served` would answer."""
        begun = await self._begun(inbound, store, served)
        if begun is None:
            return ()
        try:
            return await table.suggestions(
                store.memory, begun.context, begun.texts, begun.name, option, typed, begun.arguments
            )
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return ()

    async def form(self, inbound: Inbound, store: Store, served: Agent) -> Form | None:
        """Returns the form to fill in before the command being typed is given; None if the command needs no form."""
        begun = await self._begun(inbound, store, served)
        if begun is None:
            return None
        try:
            return await table.form(store.memory, begun.context, begun.texts, begun.name, begun.arguments)
        except StorageError as exc:
            log.warning("form.unread", error=str(exc))
            return None

    async def _said(self, waiting: Waiting) -> bool:
        inbound, memory = waiting.heard.inbound, waiting.store.memory
        typed = table.given(inbound)
        if typed is not None:
            await table.run(await self._call(waiting, arguments=typed[1]), typed[0])
            return True
        if code_in(inbound.text) is not None and await table.bare_code(await self._call(waiting)):
            return True
        served = self._roster.agents[waiting.agent]
        where, who = where_said(inbound, served.spec), who_said(inbound)
        if served.offline:
            question, reminded = await memory.questions.before(where, who)
        else:
            question, reminded = await memory.questions.at(where, who), False
        taken = await self._typed_answer(waiting, question) if question is not None else None
        if question is not None and await self._agrees(waiting, question, taken):
            return False
        if question is not None and taken is not None:
            await table.answer(await self._call(waiting), question, taken)
            return True
        if question is not None and question.purpose not in _UNPROMPTED:
            await memory.questions.cancel(question)
        brings = any(beside.kind != "preview" for beside in inbound.attachments)
        return not (brings or inbound.forwarded) and await self._asked_plainly(waiting, reminded)

    async def _asked_plainly(self, waiting: Waiting, reminded: bool) -> bool:
        """Carries out a request in plain words; False for ordinary talk. With a model, reminders are its tool's."""
        inbound, served = waiting.heard.inbound, self._roster.agents[waiting.agent]
        if inbound.chat_kind == "private" and plain.ends_questions(inbound.text):
            call = _as_written(await self._call(waiting))
            if call.context.speaker.follow_ups:
                await privacy.stop_follow_ups(call)
                return True
        asked = plain.requested(inbound.text, modelless=served.offline)
        replied = await self._replies_to_reminder(inbound, waiting.store.memory)
        written = written_in(inbound.text, served.spec.language)
        wished = served.offline and asks_reminder(inbound.text, language=written)
        orders = (
            served.offline
            and (asked is None or asked.kind in ("topic", "undo"))
            and (reminded or reminders.may_order(inbound.text))
        )
        if asked is None and not (replied or wished or orders):
            return served.offline and await self._guessed(waiting)
        call = _as_written(await self._call(waiting))
        if (replied and await reminders.replied(call)) or (orders and await reminders.ordered(call, inbound.text)):
            return True
        if wished and await reminders.wished(call):
            return True
        if asked is not None:
            return await plain.offer(call, asked)
        return served.offline and await self._guessed(waiting)

    async def _guessed(self, waiting: Waiting) -> bool:
        """Offers to forget what a message seems to ask for; returns False if it is ordinary talk."""
        what = await waiting.store.memory.turns.asks_to_forget(waiting.heard.inbound.text)
        return bool(what) and await offered(_as_written(await self._call(waiting)), what)

    async def _replies_to_reminder(self, inbound: Inbound, memory: Service) -> bool:
        reply_to, key = inbound.reply_to, inbound.place.session_key
        return reply_to is not None and await memory.reminders.is_shown(key, reply_to)

    async def _typed_answer(self, waiting: Waiting, question: Question) -> str | None:
        """Returns the choice that a message makes, or None if it is no answer.

        A forwarded message is no answer, because another person said it. An unprompted question is answered only by its
        button, because a typed "yes" may be meant for something else.
        """
        inbound = waiting.heard.inbound
        channel = self._channels.get(inbound.channel)
        by_button = question.purpose == LINK and channel is not None and channel.capabilities.buttons
        if inbound.forwarded or by_button:
            return None
        if question.purpose == reminders.WHEN:
            return await reminders.told_when(await self._call(waiting), question)
        taken = questions.typed(question, inbound.text)
        # A text that is unclear a second time, or beside an unprompted question, is talk of something else.
        is_talk = taken == questions.UNCLEAR and (question.asked_again or question.purpose in _UNPROMPTED)
        return None if is_talk else taken

    async def _pressed(self, waiting: Waiting, data: str) -> bool:
        """Carries out a button's action, or says that it is outdated. Returns False if the model is to go on."""
        heard, store, served = waiting.heard, waiting.store, self._roster.agents[waiting.agent]
        inbound = heard.inbound
        if data.startswith(AGAIN) and data.removeprefix(AGAIN).isdecimal():
            texts = Texts(served.spec.language)
            (gone, *_) = pieces(self._channels.get(inbound.channel), texts("again.gone"))
            row = int(data.removeprefix(AGAIN)[:18])
            await store.memory.mailbox.show_again(inbound.place.session_key, row, inbox_id=heard.inbox_id, gone=gone)
            return True
        call = await self._call(waiting)
        if (typed := table.given(inbound)) is not None:
            await table.run(replace(call, arguments=typed[1]), typed[0])
            return True
        if await table.press(call, data):
            return True
        where, who = where_said(inbound, served.spec), who_said(inbound)
        taken, question = questions.pressed(data), await store.memory.questions.at(where, who)
        if taken is None or question is None or question.id != taken[0] or taken[1] not in question.choices:
            await call.say(call.texts("answer.over"))
        elif await self._agrees(waiting, question, taken[1]):
            return False
        else:
            await table.answer(call, question, taken[1])
        return True

    async def _agrees(self, waiting: Waiting, question: Question, taken: str | None) -> bool:
        """Notes that a person agrees to a call of a tool; returns False if their answer does not."""
        calls = waiting.store.memory.outside_calls
        return taken == questions.DO and await calls.agree(question, questions.DO, waiting.heard.inbox_id)

    async def _told_before(self, waiting: Waiting) -> bool:
        """Gives the receipt for data that the message erased before the process ended. Returns False without any."""
        if not await waiting.store.memory.forgetting.has_erased(waiting.heard.inbox_id):
            return False
        return await table.told_before(await self._call(waiting))

    async def _call(self, waiting: Waiting, *, arguments: str = "") -> Call:
        heard, store, served = waiting.heard, waiting.store, self._roster.agents[waiting.agent]
        inbound = heard.inbound
        context = await store.memory.identities.context(where_said(inbound, served.spec), who_said(inbound))
        administers, account = self._policy.account(inbound)
        return Call(
            arguments=arguments,
            inbox_id=heard.inbox_id,
            inbound=inbound,
            channel=self._channels.get(inbound.channel),
            context=context,
            memory=store.memory,
            agent=served,
            texts=await self._texts(served, store, context, inbound),
            access=self._access,
            admin=self._policy.is_admin(inbound),
            trusted=self._policy.is_privileged(inbound),
            observes=self._policy.observes(inbound),
            stop=partial(self._stop, store, inbound),
            unhear=partial(self._unhear, inbound),
            new_code=self._new_code,
            administers=administers,
            account=account,
            is_admin=lambda user_id: self._policy.lists_admin(administers, user_id),
            ids=self._policy.ids(administers),
            wake=store.delivery.wake,
            rerun=partial(self._rerun, waiting),
            roster=self._roster,
            nights=store.nights,
            reload=self._reload,
        )

    async def _rerun(self, waiting: Waiting, turn_id: int) -> None:
        inbound, served = waiting.heard.inbound, self._roster.agents[waiting.agent]
        where, who = where_said(inbound, served.spec), who_said(inbound)
        # Text after the command is not a message.
        heard = replace(waiting.heard, original=None)
        turns = waiting.store.turns
        with turns.stops.under_way(where.session_key):
            channel, exempt = self._channels.get(inbound.channel), self._policy.is_privileged(inbound)
            await turns.run(served, where, who, [heard], channel, turn_id=turn_id, exempt=exempt)

    async def _begun(self, inbound: Inbound, store: Store, served: Agent) -> _Begun | None:
        typed = table.parse(inbound.text)
        if typed is None:
            return None
        try:
            if not await self._policy.may_speak(inbound, self._access.state):
                return None
            context = await store.memory.identities.known(where_said(inbound, served.spec), who_said(inbound))
            if context is None:
                return None
            texts = await self._texts(served, store, context, replace(inbound, text=""))
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return None
        return _Begun(name=typed[0], arguments=typed[1], context=context, texts=texts)

    async def _texts(self, served: Agent, store: Store, context: Context, inbound: Inbound) -> Texts:
        """Returns the texts in the person's own language, else in that of their words, now or before, or app."""
        language, default = (
            context.speaker.language or told_by(inbound.text),
            spoken(inbound.language, served.spec.language),
        )
        if language is None or (language == "zh" and context.speaker.language is None):
            said = [inbound.text, *await store.memory.turns.said_last(context)]
            # The default counts after a reminder's language, but tells Japanese from Chinese.
            language = spoken_by(said) and spoken_by(said, default)
        if language is None and (last := await store.memory.reminders.last_shown(context)) is not None:
            language = last.language  # the words that asked for it are no part of the conversation
        on_page = inbound.thread == FORMS and inbound.channel.startswith(WEB_PREFIX)
        return Texts(spoken(language, default), context.timezone, on_page)


def _as_written(call: Call) -> Call:
    """Returns a call that answers in the language of the words: plain requests are answered like a turn."""
    language = written_in(call.inbound.text, call.texts.language)
    return replace(call, texts=replace(call.texts, language=language))
