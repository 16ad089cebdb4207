"""The pipeline: admit → mask → inbox → command, or lane → turn → delivery.

Invariants: `on_inbound` returns only after the message is committed, or refused with an answer of its own; nothing
that is unmasked is written anywhere; every inbox row reaches an end a person can see, also when the process dies on
the way; an unforeseen error ends one message, never the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from channels.base import (
    Button,
    Channel,
    ChannelError,
    CommandSpec,
    Form,
    Inbound,
    NotTaken,
    Outbound,
    Place,
    Suggestion,
)
from gateway import commands, questions
from gateway.attachments import Attachments
from gateway.commands import plain
from gateway.commands.call import RUN, Call
from gateway.commands.people import LINK
from gateway.delivery import AGAIN, Delivery, pieces
from gateway.lanes import LaneFull, Lanes
from gateway.limits import Buckets
from gateway.phrases import Language
from gateway.policy import Policy, code_in
from gateway.texts import Texts, spoken, written_in
from gateway.turn import Agent, Heard, Turns, in_words
from memory.errors import StorageError
from memory.service import Context, Door, Letter, Piece, Question, Service, Where, Who

log = structlog.get_logger(__name__)

#: Longer texts are masked in a thread, so that one huge message does not hold up the others.
_LONG = 50_000
#: A message that took longer than this to come here was said to a process that was not listening, in milliseconds.
_PROMPT_MS = 10_000
#: What the button "answer now" carries.
_NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One database with what runs on it."""

    memory: Service
    turns: Turns
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message in its lane. `turn_id` is set when a turn over it broke off in an earlier run.

    It is `late` when others have waited less long for their answer.
    """

    heard: Heard
    agent: str
    store: Store
    burst_seconds: float
    late: bool
    turn_id: int | None = None

    @property
    def author(self) -> str:
        # Never across agents, for these may have different stores, nor across turns that broke off.
        whose = self.heard.inbound.author_id if self.turn_id is None else f"turn {self.turn_id}"
        return f"{self.agent} {whose}"

    @property
    def group(self) -> str:
        return self.agent

    @property
    def alone(self) -> bool:
        inbound = self.heard.inbound
        return inbound.pressed is not None or _typed(inbound) is not None or code_in(inbound.text) is not None


class Router:
    """Implements `channels.base.Host`."""

    def __init__(
        self,
        *,
        stores: Mapping[str, Store],
        agents: Mapping[str, Agent],
        route: Callable[[Inbound], str],
        channels: Mapping[str, Channel],
        door: Door,
        policy: Policy,
        buckets: Buckets,
        attachments: Attachments,
        clean: Callable[[str], str],
        redact: Callable[[str], str],
        new_code: Callable[[], str],
        now: Callable[[], int],
        burst_seconds: float,
        concurrent_turns: int,
        queue: int,
        stale_hours: float,
        language: Language,
        default_agent: str = "",
        retry_seconds: float = 30.0,
    ) -> None:
        """`stores` maps each agent's name to its store; `retry_seconds` is the wait after a store has failed.

        `door` knows who was let in or shut out in chats, for all stores.

        What was said more than `stale_hours` ago is answered only when asked for. `now` gives milliseconds UTC.
        """
        self._stores = stores
        self._agents = agents
        self._route = route
        self._channels = channels
        self._door = door
        self._policy = policy
        self._buckets = buckets
        self._attachments = attachments
        self._clean = clean
        self._redact = redact
        self._new_code = new_code
        self._now = now
        self._burst_seconds = burst_seconds
        self._stale_ms = int(stale_hours * 3_600_000)
        self._language = language
        self._default_agent = default_agent
        self._queue = queue
        self._lanes: Lanes[Waiting] = Lanes(self._handle, concurrent=concurrent_turns, limit=queue)
        self._at_once: dict[str, set[asyncio.Task[None]]] = {}
        self._retry_seconds = retry_seconds
        self._retries: set[asyncio.Task[None]] = set()
        self._taking: set[asyncio.Task[None]] = set()
        self._looking: dict[int, asyncio.Task[None]] = {}
        self._told_unsaved: set[int] = set()
        self._closing = False

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return commands.specs(self._language)

    async def take_up(self) -> None:
        """At start: answer what an earlier run left unanswered and show what it left undelivered."""
        for store in self._each_store():
            await store.delivery.take_up()
            letters = [
                letter for letter in await store.memory.mail.unanswered() if not await self._set_aside(store, letter)
            ]
            # All at once: the messages of one broken-off turn must come together.
            for letter in letters:
                self._queue_letter(store, letter)

    # What channels say ------------------------------------------------------------------------------------------

    async def on_inbound(self, inbound: Inbound) -> None:
        agent = self._route(inbound)
        texts = Texts(written_in(inbound.text, self._agents[agent].spec.language))
        try:
            verdict = await self._policy.judge(inbound, self._door.state)
            if verdict in ("take", "pairing") and not self._within_rate(inbound, texts):
                return
            match verdict:
                case "take":
                    # Committed and queued are one step: a caller that goes away in between must not leave the one
                    # without the other.
                    taking = asyncio.create_task(self._take(inbound, self._stores[agent], texts))
                    self._taking.add(taking)
                    taking.add_done_callback(self._taking.discard)
                    await asyncio.shield(taking)
                case "pairing":
                    code = code_in(inbound.text) or ""
                    taken = await self._door.take_pairing(inbound.channel, inbound.author_id, code)
                    answers = {"allowed": "pair.welcome", "no_tries_left": "pair.locked"}
                    self._answer_unadmitted(inbound, texts(answers.get(taken, "pair.wrong"), id=inbound.author_id))
                case "stranger":
                    self._answer_unadmitted(inbound, texts("stranger", id=inbound.author_id))
                case "ignore" if inbound.ticket and inbound.pressed is None:
                    # Who gave a command in place would see for a quarter of an hour that it is being answered.
                    self._answer_unadmitted(inbound, texts("not_here"))
        except StorageError as exc:
            raise NotTaken(texts("error.storage", reason=str(exc))) from exc

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        configured = self._policy.lists_group(channel, chat)
        try:
            await self._door.move_group(channel, chat, new_chat, configured=configured)
            for store in self._each_store():
                await store.delivery.move(self._channels[channel], chat, new_chat)
        except StorageError as exc:
            raise NotTaken(str(exc)) from exc

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        try:
            for store in self._each_store():
                platform, named = self._channels[channel].platform, Place(channel=channel, chat=chat).session_key
                await store.memory.mail.presence(platform, named.partition(":")[0], chat, present=present)
        except StorageError as exc:
            raise NotTaken(str(exc)) from exc

    def admins(self, channel: str) -> Sequence[str]:
        return self._policy.admins(channel)

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        found = await self._asked_of(inbound)
        if found is None:
            return ()
        name, arguments, context, agent, store = found
        texts = self._texts(agent, context)
        try:
            return await commands.suggestions(store.memory, context, texts, name, option, typed, arguments)
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return ()

    async def form(self, inbound: Inbound) -> Form | None:
        found = await self._asked_of(inbound)
        if found is None:
            return None
        name, arguments, context, agent, store = found
        try:
            return await commands.form(store.memory, context, self._texts(agent, context), name, arguments)
        except StorageError as exc:
            log.warning("form.unread", error=str(exc))
            return None

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        try:
            return await self._door.kept(channel, prefix)
        except StorageError as exc:
            raise NotTaken(str(exc)) from exc

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        try:
            await self._door.keep(channel, values)
        except StorageError as exc:
            raise NotTaken(str(exc)) from exc

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        try:
            for store in self._each_store():
                await self._take_back(store, place, message_ids)
        except StorageError as exc:
            raise NotTaken(str(exc)) from exc

    async def settled(self, place: Place) -> None:
        key = place.session_key
        while tasks := self._at_once.get(key):
            await asyncio.wait(set(tasks))
        await self._lanes.idle(key)
        for store in self._stores.values():
            await store.delivery.settled(key)

    async def drain(self, *, seconds: float) -> None:
        """End what is under way: turns get `seconds`, the rest is taken up at the next start."""
        self._closing = True
        for retry in self._retries:
            retry.cancel()
        await asyncio.gather(*self._retries, *self._taking, return_exceptions=True)
        # What waits for a look at its attachments is not begun any more; the next start looks again.
        for looking in self._looking.values():
            looking.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)
        at_once = [task for tasks in self._at_once.values() for task in tasks]
        if not await self._lanes.drain(seconds=seconds):
            log.warning("stop.unfinished", kept="for the next start")
        # These are short, and some wait for their lane.
        if at_once:
            _, late = await asyncio.wait(at_once, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for store in self._stores.values():
            await store.delivery.drain(seconds=min(seconds, 5.0))

    # Into the inbox ---------------------------------------------------------------------------------------------

    def _within_rate(self, inbound: Inbound, texts: Texts) -> bool:
        """False when this person says too much; they are told once, and under each command that is given in place.

        Counted by the platform's time: what piled up while nobody listened was not said any faster for it. A press
        has none, and counts now.
        """
        if self._policy.trusts(inbound.channel):
            return True
        said_at = (self._now() if inbound.pressed is not None else min(inbound.sent_at, self._now())) / 1000
        admission = self._buckets.take(self._whose(inbound), at=said_at)
        if admission == "tell" or (admission != "ok" and inbound.ticket):
            self._answer_unadmitted(inbound, texts("bad.rate"))
        return admission == "ok"

    def _uncount(self, inbound: Inbound) -> None:
        """A message was not taken, or taken before: it comes again, and must not use up what this person may say."""
        if not self._policy.trusts(inbound.channel):
            self._buckets.give_back(self._whose(inbound))

    def _whose(self, inbound: Inbound) -> tuple[str, ...]:
        """Who says it; of what comes late also where, for only within one place it comes in its order."""
        late = inbound.pressed is None and self._now() - inbound.sent_at > _PROMPT_MS
        return (inbound.channel, inbound.author_id, *((inbound.place.session_key,) if late else ()))

    async def _take(self, inbound: Inbound, store: Store, texts: Texts) -> None:
        channel = self._channels.get(inbound.channel)
        heard = await self._masked(inbound)
        stale = self._is_stale(inbound)
        try:
            inbox_id = await store.memory.mail.receive(
                platform=inbound.platform,
                bot_id=inbound.bot_id,
                update_key=inbound.update_key,
                session_key=inbound.place.session_key,
                payload=heard.inbound.to_json(),
                held=_late_notice(channel, texts) if stale else None,
            )
        except StorageError:
            self._uncount(inbound)
            raise
        if inbox_id is None:
            self._uncount(inbound)
            log.info("inbound.repeated", session=inbound.place.session_key)
        elif stale:
            store.delivery.wake(inbound.place.session_key)
        else:
            await self._taken(replace(heard, inbox_id=inbox_id), store, texts)

    async def _taken(self, heard: Heard, store: Store, texts: Texts) -> None:
        """What becomes of a message whose inbox row is committed."""
        waiting = self._waiting(heard, store)
        if _is_aside(heard.inbound):
            self._start(heard.inbound.place.session_key, self._aside(waiting))
            return
        self._look_at(waiting)
        try:
            self._queue_up(waiting)
        except LaneFull:
            try:
                await self._refuse(store, [heard], texts("bad.queue", count=self._queue), "queue_full")
            except StorageError as exc:
                await self._unsaved(heard.inbound.place.session_key, [waiting], exc)

    async def _aside(self, waiting: Waiting) -> None:
        """Messages that no turn answers: edits, and what can't be read."""
        heard, store = waiting.heard, waiting.store
        texts = Texts(self._agents[waiting.agent].spec.language)
        try:
            if heard.inbound.edited:
                await self._edit(heard, store)
            else:
                await self._refuse(store, [heard], texts("bad.unreadable"), "unreadable")
        except StorageError as exc:
            await self._unsaved(heard.inbound.place.session_key, [waiting], exc)

    def _look_at(self, waiting: Waiting) -> None:
        """Begin at once to fetch what came beside a message: platforms keep it for a while only."""
        heard, mail = waiting.heard, waiting.store.memory.mail
        channel = self._channels.get(heard.inbound.channel)
        if not heard.inbound.attachments or channel is None or heard.inbox_id in self._looking or waiting.alone:
            return  # a command has no use for what comes with it

        async def look() -> None:
            if not await mail.attached(heard.inbox_id):
                understood = await self._attachments.understand(channel, heard.inbound)
                await mail.attach(heard.inbox_id, understood)

        def looked(task: asyncio.Task[None]) -> None:
            del self._looking[heard.inbox_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                # Whoever waits for it says so; the message may have been taken back meanwhile.
                log.info("attachment.not_looked_at", row=heard.inbox_id, error=type(error).__name__)

        task = self._looking[heard.inbox_id] = asyncio.create_task(look())
        task.add_done_callback(looked)

    async def _looked_at(self, batch: Sequence[Waiting]) -> None:
        """Wait until what came beside these messages is understood. Raises `StorageError` where it can't be kept."""
        for waiting in batch:
            self._look_at(waiting)  # once more where the store failed before
        looking = [task for waiting in batch if (task := self._looking.get(waiting.heard.inbox_id)) is not None]
        if not looking:
            return
        channel = self._channels.get(batch[0].heard.inbound.channel)
        if channel is not None:
            await channel.typing(batch[0].heard.inbound.place)
        await asyncio.gather(*(asyncio.shield(task) for task in looking))

    async def _edit(self, heard: Heard, store: Store) -> None:
        """Before its turn an edit replaces the message; after it only memory is corrected.

        Nothing can be edited into a command, for edits have no rights, nor into nothing.
        """
        edit, key = heard.inbound, heard.inbound.place.session_key
        if commands.parse(edit.text) is not None or not edit.text.strip():
            await store.memory.mail.dismiss(heard.inbox_id)
            return

        def changed(payload: str) -> str | None:
            said = _parsed(payload)
            if said is None or said.edited or (said.message_id, said.author_id) != (edit.message_id, edit.author_id):
                return None
            return replace(said, text=edit.text).to_json()

        reworded = await store.memory.mail.reword(key, changed)
        if reworded is not None and (reworded.held or self._lanes.replace(key, _reworded(reworded, heard.original))):
            await store.memory.mail.dismiss(heard.inbox_id)
            return
        # Its turn has begun, with the words as they were, or is over.
        await self._lanes.idle(key)
        where, who = _where(edit, self._agents[self._route(edit)].spec.name), _who(edit)
        await store.memory.amend(
            where, who, heard.inbox_id, platform_ref=edit.message_id, text=edit.text, compose=in_words
        )

    async def _masked(self, inbound: Inbound) -> Heard:
        """The message with its secrets masked; the original words stay beside it, in RAM."""
        text = inbound.text
        if len(text) > _LONG:
            clean = await asyncio.to_thread(self._clean, text)
            masked = await asyncio.to_thread(self._redact, clean)
        else:
            clean = self._clean(text)
            masked = self._redact(clean)
        safe = replace(
            inbound,
            text=masked,
            author_name=self._redact(self._clean(inbound.author_name)),
            attachments=tuple(
                replace(
                    one,
                    name=self._redact(self._clean(one.name)),
                    media_type=self._redact(self._clean(one.media_type)),
                    reference=self._clean(one.reference),
                )
                for one in inbound.attachments
            ),
            chat_title=self._redact(self._clean(inbound.chat_title)),
        )
        return Heard(inbox_id=0, inbound=safe, original=clean if clean != masked else None)

    async def _set_aside(self, store: Store, letter: Letter) -> bool:
        """Whether what an earlier run left is not answered now: it can't be read, or is old and somebody must ask."""
        inbound = _parsed(letter.payload)
        if inbound is None:
            log.error("inbox.unreadable", row=letter.id, kept="set aside as dead")
            await store.memory.mail.bury(letter.id, error="unreadable")
            return True
        if letter.turn_id is not None or not self._is_stale(inbound):
            return False
        texts = Texts(written_in(inbound.text, self._agents[self._route(inbound)].spec.language))
        await store.memory.mail.hold(letter, _late_notice(self._channels.get(inbound.channel), texts))
        store.delivery.wake(letter.session_key)
        return True

    def _queue_letter(self, store: Store, letter: Letter) -> None:
        """Queue what lies unanswered in a store."""
        heard = Heard(inbox_id=letter.id, inbound=Inbound.from_json(letter.payload))
        waiting = self._waiting(heard, store, turn_id=letter.turn_id, late=True)
        if _is_aside(heard.inbound):
            self._start(letter.session_key, self._aside(waiting))
        else:
            self._look_at(waiting)
            self._queue_up(waiting, limited=False)

    def _is_stale(self, inbound: Inbound) -> bool:
        """Said so long ago that an answer out of the blue would be odd, where people can press "answer now"."""
        said = inbound.pressed is None and not inbound.edited
        channel = self._channels.get(inbound.channel)
        asked_for = channel is not None and channel.capabilities.buttons
        return said and asked_for and self._now() - inbound.sent_at > self._stale_ms

    # Through the lane -------------------------------------------------------------------------------------------

    def _waiting(self, heard: Heard, store: Store, *, turn_id: int | None = None, late: bool = False) -> Waiting:
        agent = self._route(heard.inbound)
        if self._stores[agent] is not store:
            # The routing has changed since: who was asked answers, for words must not cross stores.
            agent = next(name for name, own in self._stores.items() if own is store)
        channel = self._channels.get(heard.inbound.channel)
        own = channel.capabilities.burst_seconds if channel is not None else None
        burst = self._burst_seconds if own is None else own
        return Waiting(
            heard=heard,
            agent=agent,
            store=store,
            burst_seconds=0.0 if turn_id is not None else burst,
            late=late or self._now() - heard.inbound.sent_at > _PROMPT_MS,
            turn_id=turn_id,
        )

    def _queue_up(self, waiting: Waiting, *, limited: bool = True) -> None:
        key = waiting.heard.inbound.place.session_key
        inbound = waiting.heard.inbound
        typed = _typed(inbound)
        command = commands.find(typed[0]) if typed is not None else None
        # An answer, or another page, need not wait for the model.
        pressed = inbound.pressed is not None and typed is None
        if pressed or (command is not None and command.at_once):
            self._start(key, self._handle(key, [waiting]))
        else:
            self._lanes.put(key, waiting, limited=limited)

    def _start(self, key: str, work: Coroutine[None, None, None]) -> None:
        """Do something for a session beside its lane."""
        task = asyncio.create_task(work)
        tasks = self._at_once.setdefault(key, set())
        tasks.add(task)
        task.add_done_callback(lambda done: self._over(key, done))

    def _over(self, key: str, task: asyncio.Task[None]) -> None:
        tasks = self._at_once[key]
        tasks.discard(task)
        if not tasks:
            del self._at_once[key]

    async def _handle(self, key: str, batch: list[Waiting]) -> None:
        """One batch of a lane to its end. The pipeline's boundary: nothing that goes wrong leaves it."""
        store = batch[0].store
        served = self._agents[batch[0].agent]
        texts = Texts(served.spec.language)
        try:
            await self._answer(store, served, batch)
            store.delivery.wake(key)
            self._told_unsaved.difference_update(waiting.heard.inbox_id for waiting in batch)
        except StorageError as exc:
            await self._unsaved(key, batch, exc)
        except Exception:
            log.exception("turn.broken", session=key)
            try:
                heard = [waiting.heard for waiting in batch]
                await self._refuse(store, heard, texts("error.internal"), "internal", keep_words=True)
            except StorageError as exc:
                await self._unsaved(key, batch, exc)

    async def _answer(self, store: Store, served: Agent, batch: list[Waiting]) -> None:
        first = batch[0].heard
        where, who = _where(first.inbound, served.spec.name), _who(first.inbound)
        if first.inbound.pressed is not None and batch[0].turn_id is None:
            if batch[0].late and await self._told_before(store, served, where, who, first):
                return
            await self._pressed(store, served, where, who, first, first.inbound.pressed)
            return
        if batch[0].turn_id is None and (
            await self._command(store, served, where, who, first)
            if not batch[0].late
            else await self._told_before(store, served, where, who, first)
            or await self._command(store, served, where, who, first)
        ):
            if len(batch) > 1:
                await self._answer(store, served, batch[1:])
            return
        try:
            async with store.turns.deadline(where.session_key):
                await self._looked_at(batch)
        except TimeoutError:
            stopped = store.turns.was_stopped(where.session_key)
            texts, heard = Texts(served.spec.language), [waiting.heard for waiting in batch]
            told = texts("stop.done") if stopped else texts("error.fetch")
            await self._refuse(store, heard, told, "stopped" if stopped else "deadline", keep_words=True)
            return
        await store.turns.run(
            served,
            where,
            who,
            [waiting.heard for waiting in batch],
            self._channels.get(first.inbound.channel),
            turn_id=batch[0].turn_id,
        )

    async def _command(self, store: Store, served: Agent, where: Where, who: Who, heard: Heard) -> bool:
        """Answer a command, or a question that was put to this person; False when it is ordinary talk."""
        typed = _typed(heard.inbound)
        question = None if typed is not None else await store.memory.question(where, who)
        asked = None if heard.inbound.attachments or heard.inbound.forwarded else plain.requested(heard.inbound.text)
        coded = typed is None and code_in(heard.inbound.text) is not None
        if typed is None and question is None and asked is None and not coded:
            return False
        if coded and await commands.bare_code(
            self._call(store, served, await store.memory.context(where, who), heard, "")
        ):
            return True
        taken = self._typed_answer(question, heard.inbound) if question is not None else None
        if question is not None and taken is None:
            # Whether to be linked is asked out of the blue, whatever the person is talking of.
            if question.purpose != LINK:
                await store.memory.cancel(question)
            question = None
        if typed is None and question is None and asked is None:
            return False
        call = self._call(store, served, await store.memory.context(where, who), heard, typed[1] if typed else "")
        if question is None and asked is not None:
            return await plain.offer(call, asked)
        if question is not None and taken is not None:
            await commands.answer(call, question, taken)
            return True
        await self._run(call, typed[0] if typed is not None else "")
        return True

    def _typed_answer(self, question: Question, inbound: Inbound) -> str | None:
        """The choice that a message takes, if it is an answer at all: what is forwarded was said by somebody else.

        A question that comes out of the blue is answered by its button, for a "yes" may be meant for something else.
        """
        channel = self._channels.get(inbound.channel)
        by_button = question.purpose == LINK and channel is not None and channel.capabilities.buttons
        return None if inbound.forwarded or by_button else questions.typed(question, inbound.text)

    async def _told_before(self, store: Store, served: Agent, where: Where, who: Who, heard: Heard) -> bool:
        """Give the receipt for what this message had erased before the process ended; False when it had nothing."""
        if not await store.memory.forgetting.has_erased(heard.inbox_id):
            return False
        return await commands.told_before(self._call(store, served, await store.memory.context(where, who), heard, ""))

    async def _run(self, call: Call, name: str) -> None:
        """Answer the command called `name`."""
        command = commands.find(name)
        if command is None or (command.admin and not call.admin):
            await call.say(commands.unknown(name, call.texts))
        else:
            beside = call.inbound.pressed is None and call.inbound.attachments
            aside = call.texts("command.file") if beside else ""
            await command.run(replace(call, usage=command.usage, discreet=command.discreet, aside=aside))

    async def _pressed(self, store: Store, served: Agent, where: Where, who: Who, heard: Heard, data: str) -> None:
        """Do what a button stands for. One that is out of date says so."""
        channel = self._channels.get(heard.inbound.channel)
        if data == _NOW:
            (gone, *_) = pieces(channel, Texts(served.spec.language)("late.gone"))
            for letter in await store.memory.mail.release(where.session_key, inbox_id=heard.inbox_id, gone=gone):
                self._queue_letter(store, letter)
        elif data.startswith(AGAIN) and data.removeprefix(AGAIN).isdecimal():
            texts = Texts(served.spec.language)
            (gone, *_) = pieces(channel, texts("again.gone"))
            row = int(data.removeprefix(AGAIN)[:18])
            await store.memory.mail.show_again(where.session_key, row, inbox_id=heard.inbox_id, gone=gone)
        else:
            call = self._call(store, served, await store.memory.context(where, who), heard, "")
            if (typed := _typed(heard.inbound)) is not None:
                await self._run(replace(call, arguments=typed[1]), typed[0])
                return
            if await commands.press(call, data):
                return
            taken, question = questions.pressed(data), await store.memory.question(where, who)
            if taken is None or question is None or question.id != taken[0] or taken[1] not in question.choices:
                await call.say(call.texts("answer.over"))
            else:
                await commands.answer(call, question, taken[1])

    async def _asked_of(self, inbound: Inbound) -> tuple[str, str, Context, Agent, Store] | None:
        """The command that is being typed, with who types it; None for who may not speak, or is not known yet."""
        typed = commands.parse(inbound.text)
        if typed is None:
            return None
        name = self._route(inbound)
        served, store = self._agents[name], self._stores[name]
        try:
            if not await self._policy.may_speak(inbound, self._door.state):
                return None
            context = await store.memory.known(_where(inbound, served.spec.name), _who(inbound))
        except StorageError as exc:
            log.warning("suggest.unread", error=str(exc))
            return None
        return None if context is None else (*typed, context, served, store)

    async def _take_back(self, store: Store, place: Place, message_ids: Sequence[str]) -> None:
        """Messages that wait for their turn have none any more; of others the words go, and what they taught."""
        key, platform = place.session_key, self._channels[place.channel].platform

        def is_deleted(payload: str) -> bool:
            said = _parsed(payload)
            return said is not None and said.pressed is None and said.message_id in message_ids

        gone = await store.memory.mail.withdraw(key, is_deleted)
        self._lanes.take_out(key, lambda waiting: waiting.heard.inbox_id in gone)
        await store.memory.retract(platform, key, message_ids)
        # What a turn that is under way learns from it goes as well.
        self._start(key, self._retracted(store, platform, key, message_ids))

    async def _retracted(self, store: Store, platform: str, key: str, message_ids: Sequence[str]) -> None:
        await self._lanes.idle(key)
        try:
            await store.memory.retract(platform, key, message_ids)
        except StorageError as exc:
            log.error("deleted.unsaved", session=key, error=str(exc), kept="what was learned from the message")

    @staticmethod
    def _texts(served: Agent, context: Context) -> Texts:
        return Texts(spoken(context.speaker.language, served.spec.language), context.timezone)

    def _call(self, store: Store, served: Agent, context: Context, heard: Heard, arguments: str) -> Call:
        inbound = heard.inbound
        return Call(
            arguments=arguments,
            inbox_id=heard.inbox_id,
            inbound=inbound,
            channel=self._channels.get(inbound.channel),
            context=context,
            memory=store.memory,
            agent=served,
            texts=self._texts(served, context),
            door=self._door,
            admin=self._policy.is_admin(inbound),
            trusted=self._policy.is_admin(inbound) or self._policy.trusts(inbound.channel),
            stop=partial(self._stop, store, inbound),
            new_code=self._new_code,
            is_admin=lambda user_id: self._policy.lists_admin(inbound.channel, user_id),
            wake=store.delivery.wake,
            rerun=partial(self._rerun, store, served, heard),
            agents=tuple(self._agents.values()),
            default_agent=self._default_agent,
        )

    async def _rerun(self, store: Store, served: Agent, heard: Heard, turn_id: int) -> None:
        """Answer messages anew that were put into a turn of their own."""
        where, who = _where(heard.inbound, served.spec.name), _who(heard.inbound)
        # Whatever stands behind the command is no message.
        heard = replace(heard, original=None)
        await store.turns.run(served, where, who, [heard], self._channels.get(heard.inbound.channel), turn_id=turn_id)

    async def _stop(self, store: Store, inbound: Inbound) -> bool:
        """End the answer that is being made in a place, and what this person has waiting there; False without any."""
        key = inbound.place.session_key
        under_way = store.turns.stop(key)
        waiting = self._lanes.take_out(key, lambda item: item.heard.inbound.author_id == inbound.author_id)
        if waiting:
            texts = Texts(self._agents[waiting[0].agent].spec.language)
            await self._refuse(store, [item.heard for item in waiting], texts("stop.done"), "stopped", keep_words=True)
        return under_way or bool(waiting)

    # When something is in the way -------------------------------------------------------------------------------

    async def _refuse(
        self, store: Store, heard: Sequence[Heard], text: str, code: str, *, keep_words: bool = False
    ) -> None:
        inbound = heard[0].inbound
        key = inbound.place.session_key
        ids = [one.inbox_id for one in heard]
        (notice, *_) = pieces(self._channels.get(inbound.channel), text)
        await store.memory.mail.refuse(ids, key, notice, error=code, keep_words=keep_words)
        store.delivery.wake(key)

    async def _unsaved(self, key: str, batch: list[Waiting], error: StorageError) -> None:
        """The store failed: tell the person where that needs no store, and try again in a while."""
        log.error("turn.unsaved", session=key, error=str(error), again_in=self._retry_seconds)
        texts = Texts(self._agents[batch[0].agent].spec.language)
        first = batch[0].heard
        if first.inbox_id not in self._told_unsaved:
            self._told_unsaved.add(first.inbox_id)
            await self._tell(first, texts("error.storage", reason=str(error)))
        if self._closing:
            return
        task = asyncio.create_task(self._again(batch))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _again(self, batch: list[Waiting]) -> None:
        store = batch[0].store
        ids = {waiting.heard.inbox_id for waiting in batch}
        while True:
            await asyncio.sleep(self._retry_seconds)
            try:
                for letter in [one for one in await store.memory.mail.unanswered() if one.id in ids]:
                    self._queue_letter(store, letter)
            except StorageError as exc:
                log.error("store.failing", error=str(exc), again_in=self._retry_seconds)
            else:
                return

    async def _tell(self, heard: Heard, text: str) -> None:
        """Say something that can't be stored. The inbox row stays open and is taken up again."""
        inbound = heard.inbound
        channel = self._channels.get(inbound.channel)
        if channel is None or not channel.reachable(inbound.place):
            return
        if channel.capabilities.stream == "append":
            await channel.append(inbound.place, -heard.inbox_id, text + "\n")
        else:
            self._answer_unadmitted(inbound, text)

    def _answer_unadmitted(self, inbound: Inbound, text: str) -> None:
        """Say something to somebody of whom nothing is stored, this answer neither; it may get lost."""

        async def say() -> None:
            channel = self._channels.get(inbound.channel)
            if channel is None:
                return
            try:
                for n, chunk in enumerate(channel.chunks(text, markdown=False)):
                    await channel.send(
                        Outbound(
                            id=0,
                            place=inbound.place,
                            text=chunk.text,
                            markup=chunk.markup,
                            ticket=inbound.ticket,
                            chunk=n,
                            made_at=self._now(),
                        )
                    )
            except ChannelError as exc:
                log.info("unadmitted.untold", channel=inbound.channel, code=exc.code)
            except Exception:  # the channel's boundary, as where rows are sent
                log.exception("unadmitted.broken", channel=inbound.channel)

        self._start(inbound.place.session_key, say())

    def _each_store(self) -> list[Store]:
        return list({id(store): store for store in self._stores.values()}.values())


def _parsed(payload: str) -> Inbound | None:
    """A stored message; None when it can't be read, by this version at least."""
    try:
        return Inbound.from_json(payload)
    except (ValueError, TypeError, KeyError):
        return None


def _typed(inbound: Inbound) -> tuple[str, str] | None:
    """The command and its arguments that somebody has typed, or pressed a button for; None for anything else.

    What is forwarded was typed by somebody else, if by anybody.
    """
    if inbound.pressed is not None:
        return commands.parse(inbound.pressed.removeprefix(RUN)) if inbound.pressed.startswith(RUN) else None
    return None if inbound.forwarded else commands.parse(inbound.text)


def _is_aside(inbound: Inbound) -> bool:
    """Whether no turn answers this: an edit, or a message in which there is nothing."""
    empty = not inbound.text.strip() and not inbound.attachments
    return inbound.edited or (inbound.pressed is None and empty)


def _reworded(letter: Letter, original: str | None) -> Callable[[Waiting], Waiting | None]:
    """Puts the words of `letter` into the waiting message it stands for; `original` are those before masking."""
    heard = Heard(inbox_id=letter.id, inbound=Inbound.from_json(letter.payload), original=original)

    def in_place(waiting: Waiting) -> Waiting | None:
        return replace(waiting, heard=heard) if waiting.heard.inbox_id == letter.id else None

    return in_place


def _late_notice(channel: Channel | None, texts: Texts) -> Piece:
    (notice, *_) = pieces(channel, texts("late.ask"), buttons=(Button(label=texts("late.button"), data=_NOW),))
    return notice


def _where(inbound: Inbound, agent: str) -> Where:
    return Where(
        session_key=inbound.place.session_key,
        platform=inbound.platform,
        chat=inbound.chat,
        chat_kind=inbound.chat_kind,
        chat_title=inbound.chat_title,
        thread=inbound.thread,
        agent=agent,
    )


def _who(inbound: Inbound) -> Who:
    return Who(platform=inbound.platform, user_id=inbound.author_id, name=inbound.author_name)
