"""The pipeline: admit → mask → inbox → command, or lane → turn → delivery.

Invariants: `on_inbound` returns only after the message is committed, or refused with an answer of its own; nothing
that is unmasked is written anywhere; every inbox row reaches an end a person can see, also when the process dies on
the way; an unforeseen error ends one message, never the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from channels.base import Channel, CommandSpec, Inbound, NotTaken, Place
from gateway import commands, policy
from gateway.commands import Call
from gateway.delivery import Delivery
from gateway.lanes import LaneFull, Lanes
from gateway.phrases import Language
from gateway.texts import Texts, spoken
from gateway.turn import Agent, Heard, Turns
from memory.errors import StorageError
from memory.service import Letter, Service, Where, Who

log = structlog.get_logger(__name__)

#: Longer texts are masked in a thread, so that one huge message does not hold up the others.
_LONG = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One database with what runs on it."""

    memory: Service
    turns: Turns
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message in its lane. `turn_id` is set when a turn over it broke off in an earlier run."""

    heard: Heard
    agent: str
    store: Store
    burst_seconds: float
    turn_id: int | None = None

    @property
    def author(self) -> str:
        # Never across agents, for these may have different stores, nor across turns that broke off.
        whose = self.heard.inbound.author_id if self.turn_id is None else f"turn {self.turn_id}"
        return f"{self.agent} {whose}"

    @property
    def alone(self) -> bool:
        return commands.parse(self.heard.inbound.text) is not None


class Router:
    """Implements `channels.base.Host`."""

    def __init__(
        self,
        *,
        stores: Mapping[str, Store],
        agents: Mapping[str, Agent],
        route: Callable[[Inbound], str],
        channels: Mapping[str, Channel],
        clean: Callable[[str], str],
        redact: Callable[[str], str],
        burst_seconds: float,
        concurrent_turns: int,
        queue: int,
        language: Language,
        retry_seconds: float = 30.0,
    ) -> None:
        """`stores` maps each agent's name to its store; `retry_seconds` is the wait after a store has failed."""
        self._stores = stores
        self._agents = agents
        self._route = route
        self._channels = channels
        self._clean = clean
        self._redact = redact
        self._burst_seconds = burst_seconds
        self._language = language
        self._queue = queue
        self._lanes: Lanes[Waiting] = Lanes(self._handle, concurrent=concurrent_turns, limit=queue)
        self._at_once: dict[str, set[asyncio.Task[None]]] = {}
        self._retry_seconds = retry_seconds
        self._retries: set[asyncio.Task[None]] = set()

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return commands.specs(self._language)

    async def take_up(self) -> None:
        """At start: answer what an earlier run left unanswered and show what it left undelivered."""
        for store in {id(store): store for store in self._stores.values()}.values():
            await store.delivery.take_up()
            for letter in await store.memory.unanswered():
                await self._queue_letter(store, letter)

    async def on_inbound(self, inbound: Inbound) -> None:
        if policy.admits(inbound):
            # Committed and queued are one step: a caller that goes away in between must not leave the one without
            # the other.
            await asyncio.shield(self._take(inbound))

    async def _take(self, inbound: Inbound) -> None:
        agent = self._route(inbound)
        store = self._stores[agent]
        texts = Texts(self._agents[agent].spec.language)
        key = inbound.place.session_key
        heard = await self._masked(inbound)
        try:
            inbox_id = await store.memory.receive(
                platform=inbound.platform,
                bot_id=inbound.bot_id,
                update_key=inbound.update_key,
                session_key=key,
                payload=heard.inbound.to_json(),
            )
        except StorageError as exc:
            raise NotTaken(texts("error.storage", reason=str(exc))) from exc
        if inbox_id is None:
            log.info("inbound.repeated", session=key)
            return
        heard = replace(heard, inbox_id=inbox_id)
        if not heard.inbound.text.strip():
            await self._refuse(store, [heard], texts("bad.unreadable"), "unreadable")
            return
        try:
            self._queue_up(self._waiting(heard, store))
        except LaneFull:
            await self._refuse(store, [heard], texts("bad.queue", count=self._queue), "queue_full")

    async def settled(self, place: Place) -> None:
        key = place.session_key
        while tasks := self._at_once.get(key):
            await asyncio.wait(set(tasks))
        await self._lanes.idle(key)
        for store in self._stores.values():
            await store.delivery.settled(key)

    async def drain(self, *, seconds: float) -> None:
        """End what is under way: turns get `seconds`, the rest is taken up at the next start."""
        for retry in self._retries:
            retry.cancel()
        await asyncio.gather(*self._retries, return_exceptions=True)
        at_once = [task for tasks in self._at_once.values() for task in tasks]
        if at_once:
            await asyncio.wait(at_once, timeout=seconds)
        if not await self._lanes.drain(seconds=seconds):
            log.warning("stop.unfinished", kept="for the next start")
        for store in self._stores.values():
            await store.delivery.drain(seconds=min(seconds, 5.0))

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
            chat_title=self._redact(self._clean(inbound.chat_title)),
        )
        return Heard(inbox_id=0, inbound=safe, original=clean if clean != masked else None)

    async def _queue_letter(self, store: Store, letter: Letter) -> None:
        """Queue what lies unanswered in a store, or set it aside when it can't be read."""
        try:
            inbound = Inbound.from_json(letter.payload)
        except (ValueError, TypeError, KeyError) as exc:
            log.error("inbox.unreadable", row=letter.id, error=str(exc), kept="set aside as dead")
            await store.memory.bury(letter.id, error="unreadable")
            return
        heard = Heard(inbox_id=letter.id, inbound=inbound)
        self._queue_up(self._waiting(heard, store, turn_id=letter.turn_id), limited=False)

    async def _unsaved(self, key: str, batch: list[Waiting], error: StorageError) -> None:
        """The store failed: tell the person where that needs no store, and try again in a while."""
        log.error("turn.unsaved", session=key, error=str(error), again_in=self._retry_seconds)
        texts = Texts(self._agents[batch[0].agent].spec.language)
        await self._tell(batch[0], texts("error.storage", reason=str(error)))
        task = asyncio.create_task(self._again(batch))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _again(self, batch: list[Waiting]) -> None:
        store = batch[0].store
        ids = {waiting.heard.inbox_id for waiting in batch}
        while True:
            await asyncio.sleep(self._retry_seconds)
            try:
                for letter in await store.memory.unanswered():
                    if letter.id in ids:
                        await self._queue_letter(store, letter)
            except StorageError as exc:
                log.error("store.failing", error=str(exc), again_in=self._retry_seconds)
            else:
                return

    def _waiting(self, heard: Heard, store: Store, *, turn_id: int | None = None) -> Waiting:
        agent = self._route(heard.inbound)
        if self._stores[agent] is not store:
            # Routing has changed since this was taken: it is answered where it lies, by an agent of that store.
            agent = next(name for name, held in self._stores.items() if held is store)
        channel = self._channels.get(heard.inbound.channel)
        own = channel.capabilities.burst_seconds if channel is not None else None
        burst = self._burst_seconds if own is None else own
        return Waiting(
            heard=heard,
            agent=agent,
            store=store,
            burst_seconds=0.0 if turn_id is not None else burst,
            turn_id=turn_id,
        )

    def _queue_up(self, waiting: Waiting, *, limited: bool = True) -> None:
        key = waiting.heard.inbound.place.session_key
        typed = commands.parse(waiting.heard.inbound.text)
        command = commands.find(typed[0]) if typed is not None else None
        if command is None or not command.at_once:
            self._lanes.put(key, waiting, limited=limited)
            return
        task = asyncio.create_task(self._handle(key, [waiting]))
        tasks = self._at_once.setdefault(key, set())
        tasks.add(task)
        task.add_done_callback(lambda done: self._over(key, done))

    def _over(self, key: str, task: asyncio.Task[None]) -> None:
        tasks = self._at_once[key]
        tasks.discard(task)
        if not tasks:
            del self._at_once[key]

    async def _refuse(
        self, store: Store, heard: Sequence[Heard], text: str, code: str, *, keep_words: bool = False
    ) -> None:
        key = heard[0].inbound.place.session_key
        ids = [one.inbox_id for one in heard]
        await store.memory.refuse(ids, key, text, error=code, keep_words=keep_words)
        store.delivery.wake(key)

    async def _handle(self, key: str, batch: list[Waiting]) -> None:
        """One batch of a lane to its end. The pipeline's boundary: nothing that goes wrong leaves it."""
        store = batch[0].store
        served = self._agents[batch[0].agent]
        texts = Texts(served.spec.language)
        try:
            await self._answer(store, served, batch)
            store.delivery.wake(key)
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
        where = _where(first.inbound, served.spec.name)
        who = Who(platform=first.inbound.platform, user_id=first.inbound.author_id, name=first.inbound.author_name)
        if batch[0].turn_id is None and await self._command(store, served, where, who, first):
            if len(batch) > 1:
                await self._answer(store, served, batch[1:])
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
        typed = commands.parse(heard.inbound.text)
        question = None if typed is not None else await store.memory.question(where, who)
        if typed is None and question is None:
            return False
        taken = commands.choice(question, heard.inbound.text) if question is not None else None
        if question is not None and taken is None:
            await store.memory.cancel(question)
            return False
        context = await store.memory.context(where, who)
        texts = Texts(spoken(context.speaker.language, served.spec.language), context.timezone)
        name, arguments = typed or ("", "")
        command = commands.find(name)
        call = Call(
            arguments=arguments,
            inbox_id=heard.inbox_id,
            context=context,
            memory=store.memory,
            agent=served,
            texts=texts,
        )
        if question is not None and taken is not None:
            await commands.answer(call, question, taken)
        elif command is None:
            await call.say(commands.unknown(name, texts))
        else:
            await command.run(call)
        return True

    async def _tell(self, waiting: Waiting, text: str) -> None:
        """Say something that can't be stored. The inbox row stays open and is taken up again."""
        inbound = waiting.heard.inbound
        channel = self._channels.get(inbound.channel)
        if channel is not None and channel.capabilities.stream == "append" and channel.reachable(inbound.place):
            await channel.append(inbound.place, -waiting.heard.inbox_id, text + "\n")


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
