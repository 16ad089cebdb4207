"""From a message of a lane to the handler of what it asks of the bot itself: a command, a press, an answer typed.

Invariants: what is forwarded asks nothing, for somebody else has said it; a press that is out of date says so; what
had begun to be erased for a message before the process ended is not begun again, but has its receipt; who may not
speak is offered nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from channels.base import Channel, Form, Inbound, Suggestion
from gateway import commands, questions
from gateway.commands import plain
from gateway.commands.call import Call
from gateway.commands.people import LINK
from gateway.delivery import AGAIN, pieces
from gateway.policy import Policy, code_in
from gateway.store import Store, where_said, who_said
from gateway.texts import Texts, spoken
from gateway.turn import Agent
from gateway.waiting import Waiting
from memory.errors import StorageError
from memory.service import Context, Door, Question

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A command that is being typed, and who types it where."""

    name: str
    arguments: str
    context: Context
    texts: Texts


class Dispatch:
    """Finds who answers a message that is not for the model, and calls them."""

    def __init__(
        self,
        *,
        channels: Mapping[str, Channel],
        agents: Mapping[str, Agent],
        door: Door,
        policy: Policy,
        stop: Callable[[Store, Inbound], Awaitable[bool]],
        new_code: Callable[[], str],
        default_agent: str,
    ) -> None:
        """`stop` ends the answer that is being made where a message was said; the rest is as `Call` wants it."""
        self._channels = channels
        self._agents = agents
        self._door = door
        self._policy = policy
        self._stop = stop
        self._new_code = new_code
        self._default_agent = default_agent

    async def answered(self, waiting: Waiting) -> bool:
        """Answer a command, a press, or a question that was put to this person; False when it is ordinary talk."""
        if waiting.late and await self._told_before(waiting):
            return True
        pressed = waiting.heard.inbound.pressed
        if pressed is None:
            return await self._said(waiting)
        await self._pressed(waiting, pressed)
        return True

    async def suggest(
        self, inbound: Inbound, store: Store, served: Agent, option: str, typed: str
    ) -> Sequence[Suggestion]:
        """What may complete `option` of the command that is being typed, which `served` would answer."""
        begun = await self._begun(inbound, store, served)
        if begun is None:
            return ()
        try:
            return await commands.suggestions(
                store.memory, begun.context, begun.texts, begun.name, option, typed, begun.arguments
            )
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return ()

    async def form(self, inbound: Inbound, store: Store, served: Agent) -> Form | None:
        """What to ask for before the command that is being typed is given; None where it can be given as it is."""
        begun = await self._begun(inbound, store, served)
        if begun is None:
            return None
        try:
            return await commands.form(store.memory, begun.context, begun.texts, begun.name, begun.arguments)
        except StorageError as exc:
            log.warning("form.unread", error=str(exc))
            return None

    async def _said(self, waiting: Waiting) -> bool:
        """Answer what was typed; False when it is ordinary talk."""
        inbound, memory = waiting.heard.inbound, waiting.store.memory
        where, who = where_said(inbound, self._agents[waiting.agent].spec.name), who_said(inbound)
        typed = commands.given(inbound)
        question = None if typed is not None else await memory.question(where, who)
        asked = None if inbound.attachments or inbound.forwarded else plain.requested(inbound.text)
        coded = typed is None and code_in(inbound.text) is not None
        if typed is None and question is None and asked is None and not coded:
            return False
        if coded and await commands.bare_code(await self._call(waiting)):
            return True
        taken = self._typed_answer(question, inbound) if question is not None else None
        if question is not None and taken is None:
            # Whether to be linked is asked out of the blue, whatever the person is talking of.
            if question.purpose != LINK:
                await memory.cancel(question)
            question = None
        if typed is None and question is None and asked is None:
            return False
        call = await self._call(waiting, arguments=typed[1] if typed else "")
        if question is None and asked is not None:
            return await plain.offer(call, asked)
        if question is not None and taken is not None:
            await commands.answer(call, question, taken)
            return True
        await commands.run(call, typed[0] if typed is not None else "")
        return True

    def _typed_answer(self, question: Question, inbound: Inbound) -> str | None:
        """The choice that a message takes, if it is an answer at all: what is forwarded was said by somebody else.

        A question that comes out of the blue is answered by its button, for a "yes" may be meant for something else.
        """
        channel = self._channels.get(inbound.channel)
        by_button = question.purpose == LINK and channel is not None and channel.capabilities.buttons
        return None if inbound.forwarded or by_button else questions.typed(question, inbound.text)

    async def _pressed(self, waiting: Waiting, data: str) -> None:
        """Do what a button stands for. One that is out of date says so."""
        heard, store, served = waiting.heard, waiting.store, self._agents[waiting.agent]
        inbound = heard.inbound
        if data.startswith(AGAIN) and data.removeprefix(AGAIN).isdecimal():
            texts = Texts(served.spec.language)
            (gone, *_) = pieces(self._channels.get(inbound.channel), texts("again.gone"))
            row = int(data.removeprefix(AGAIN)[:18])
            await store.memory.mail.show_again(inbound.place.session_key, row, inbox_id=heard.inbox_id, gone=gone)
            return
        call = await self._call(waiting)
        if (typed := commands.given(inbound)) is not None:
            await commands.run(replace(call, arguments=typed[1]), typed[0])
            return
        if await commands.press(call, data):
            return
        where, who = where_said(inbound, served.spec.name), who_said(inbound)
        taken, question = questions.pressed(data), await store.memory.question(where, who)
        if taken is None or question is None or question.id != taken[0] or taken[1] not in question.choices:
            await call.say(call.texts("answer.over"))
        else:
            await commands.answer(call, question, taken[1])

    async def _told_before(self, waiting: Waiting) -> bool:
        """Give the receipt for what this message had erased before the process ended; False when it had nothing."""
        if not await waiting.store.memory.forgetting.has_erased(waiting.heard.inbox_id):
            return False
        return await commands.told_before(await self._call(waiting))

    async def _call(self, waiting: Waiting, *, arguments: str = "") -> Call:
        heard, store, served = waiting.heard, waiting.store, self._agents[waiting.agent]
        inbound = heard.inbound
        context = await store.memory.context(where_said(inbound, served.spec.name), who_said(inbound))
        return Call(
            arguments=arguments,
            inbox_id=heard.inbox_id,
            inbound=inbound,
            channel=self._channels.get(inbound.channel),
            context=context,
            memory=store.memory,
            agent=served,
            texts=_texts(served, context),
            door=self._door,
            admin=self._policy.is_admin(inbound),
            trusted=self._policy.is_admin(inbound) or self._policy.trusts(inbound.channel),
            stop=partial(self._stop, store, inbound),
            new_code=self._new_code,
            is_admin=lambda user_id: self._policy.lists_admin(inbound.channel, user_id),
            wake=store.delivery.wake,
            rerun=partial(self._rerun, waiting),
            agents=tuple(self._agents.values()),
            default_agent=self._default_agent,
            nights=store.nights,
        )

    async def _rerun(self, waiting: Waiting, turn_id: int) -> None:
        """Answer messages anew that were put into a turn of their own."""
        inbound, served = waiting.heard.inbound, self._agents[waiting.agent]
        where, who = where_said(inbound, served.spec.name), who_said(inbound)
        # Whatever stands behind the command is no message.
        heard = replace(waiting.heard, original=None)
        await waiting.store.turns.run(served, where, who, [heard], self._channels.get(inbound.channel), turn_id=turn_id)

    async def _begun(self, inbound: Inbound, store: Store, served: Agent) -> _Begun | None:
        """The command that is being typed, with who types it; None for who may not speak, or is not known yet."""
        typed = commands.parse(inbound.text)
        if typed is None:
            return None
        try:
            if not await self._policy.may_speak(inbound, self._door.state):
                return None
            context = await store.memory.known(where_said(inbound, served.spec.name), who_said(inbound))
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return None
        if context is None:
            return None
        return _Begun(name=typed[0], arguments=typed[1], context=context, texts=_texts(served, context))


def _texts(served: Agent, context: Context) -> Texts:
    return Texts(spoken(context.speaker.language, served.spec.language), context.timezone)
