"""The pipeline: admit → mask → inbox → command, or lane → turn → delivery.

Invariants: `on_inbound` returns only after the message is committed, or refused with an answer of its own; every inbox
row reaches an end a person can see, also when the process dies on the way; an unforeseen error ends one message, never
the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence

import structlog

from channels.base import Channel, ChannelError, CommandSpec, Form, Inbound, NotTaken, Outbound, Place, Suggestion
from gateway import commands
from gateway.attachments import Attachments
from gateway.delivery import pieces
from gateway.dispatch import Dispatch
from gateway.fetching import Fetching
from gateway.intake import NOW, Intake
from gateway.lanes import LaneFull, Lanes
from gateway.limits import Buckets
from gateway.phrases import Language
from gateway.policy import Policy, code_in
from gateway.store import Store, where_said, who_said
from gateway.texts import Texts, written_in
from gateway.turn import Agent, Heard
from gateway.waiting import Waiting
from memory.errors import StorageError
from memory.service import Door, Letter

log = structlog.get_logger(__name__)

#: A message that took longer than this to come here was said to a process that was not listening, in milliseconds.
_PROMPT_MS = 10_000


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
        self._now = now
        self._burst_seconds = burst_seconds
        self._language = language
        self._queue = queue
        self._lanes: Lanes[Waiting] = Lanes(self._handle, concurrent=concurrent_turns, limit=queue)
        self._at_once: dict[str, set[asyncio.Task[None]]] = {}
        self._retry_seconds = retry_seconds
        self._retries: set[asyncio.Task[None]] = set()
        self._taking: set[asyncio.Task[None]] = set()
        self._told_unsaved: set[int] = set()
        self._closing = False
        self._intake = Intake(
            channels=channels,
            served=lambda inbound: agents[route(inbound)],
            lanes=self._lanes,
            clean=clean,
            redact=redact,
            now=now,
            stale_hours=stale_hours,
        )
        self._fetching = Fetching(channels, attachments)
        self._dispatch = Dispatch(
            channels=channels,
            agents=agents,
            door=door,
            policy=policy,
            stop=self._stop,
            new_code=new_code,
            default_agent=default_agent,
        )

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return commands.specs(self._language)

    async def take_up(self) -> None:
        """At start: answer what an earlier run left unanswered and show what it left undelivered."""
        for store in self._each_store():
            await store.delivery.take_up()
            unanswered = await store.memory.mail.unanswered()
            letters = [letter for letter in unanswered if not await self._intake.set_aside(store, letter)]
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
        agent = self._route(inbound)
        return await self._dispatch.suggest(inbound, self._stores[agent], self._agents[agent], option, typed)

    async def form(self, inbound: Inbound) -> Form | None:
        agent = self._route(inbound)
        return await self._dispatch.form(inbound, self._stores[agent], self._agents[agent])

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
                await self._intake.take_back(store, place, message_ids)
                # What a turn that is under way learns from it goes as well.
                self._start(place.session_key, self._intake.take_back_learned(store, place, message_ids))
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
        await self._fetching.drain()
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
        try:
            taken = await self._intake.take(inbound, store, texts)
        except StorageError:
            self._uncount(inbound)
            raise
        if isinstance(taken, Heard):
            await self._taken(taken, store, texts)
        elif taken == "repeated":
            self._uncount(inbound)

    async def _taken(self, heard: Heard, store: Store, texts: Texts) -> None:
        """What becomes of a message whose inbox row is committed."""
        waiting = self._waiting(heard, store)
        if _is_aside(heard.inbound):
            self._start(heard.inbound.place.session_key, self._handle(heard.inbound.place.session_key, [waiting]))
            return
        self._fetching.begin(waiting)
        try:
            self._queue_up(waiting)
        except LaneFull:
            try:
                await self._refuse(store, [heard], texts("bad.queue", count=self._queue), "queue_full")
            except StorageError as exc:
                await self._unsaved(heard.inbound.place.session_key, [waiting], exc)

    def _queue_letter(self, store: Store, letter: Letter) -> None:
        """Queue what lies unanswered in a store."""
        heard = Heard(inbox_id=letter.id, inbound=Inbound.from_json(letter.payload))
        waiting = self._waiting(heard, store, turn_id=letter.turn_id, late=True)
        if _is_aside(heard.inbound):
            self._start(letter.session_key, self._handle(letter.session_key, [waiting]))
        else:
            self._fetching.begin(waiting)
            self._queue_up(waiting, limited=False)

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
        typed = commands.given(inbound)
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
        first = batch[0]
        inbound = first.heard.inbound
        if _is_aside(inbound):
            if inbound.edited:
                await self._intake.edit(first, served)
            else:
                unreadable = Texts(served.spec.language)("bad.unreadable")
                await self._refuse(store, [first.heard], unreadable, "unreadable")
            return
        if first.turn_id is None and inbound.pressed == NOW:
            for letter in await self._intake.release(store, first.heard, Texts(served.spec.language)):
                self._queue_letter(store, letter)
            return
        if first.turn_id is None and await self._dispatch.answered(first):
            if len(batch) > 1:
                await self._answer(store, served, batch[1:])
            return
        where, who, heard = where_said(inbound, served.spec.name), who_said(inbound), [one.heard for one in batch]
        try:
            async with store.turns.deadline(where.session_key):
                await self._fetching.done(batch)
        except TimeoutError:
            stopped = store.turns.was_stopped(where.session_key)
            texts = Texts(served.spec.language)
            told = texts("stop.done") if stopped else texts("error.fetch")
            await self._refuse(store, heard, told, "stopped" if stopped else "deadline", keep_words=True)
            return
        channel = self._channels.get(inbound.channel)
        await store.turns.run(served, where, who, heard, channel, turn_id=first.turn_id)

    async def _stop(self, store: Store, inbound: Inbound) -> bool:
        """End the answer that is being made in a place, and what this person has waiting there; False without any."""
        key = inbound.place.session_key
        under_way = store.turns.stop(key)
        waiting = self._lanes.take_out(
            key, lambda item: item.store is store and item.heard.inbound.author_id == inbound.author_id
        )
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


def _is_aside(inbound: Inbound) -> bool:
    """Whether no turn answers this: an edit, or a message in which there is nothing."""
    empty = not inbound.text.strip() and not inbound.attachments
    return inbound.edited or (inbound.pressed is None and empty)
