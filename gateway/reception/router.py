"""The pipeline: admit → mask → inbox → command, or lane → turn → delivery.

Invariants: `on_inbound` returns only after the message is committed, or refused with its own answer. Every inbox row
reaches an end that a person can see, even if the process dies on the way. An unforeseen error ends one message, never
the process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import structlog

from agents.spans import span
from channels.base import Channel, CommandSpec, Form, Inbound, NotTaken, Place, Reaction, Suggestion
from gateway.commands import plain, table
from gateway.ops.reloading import Reload
from gateway.pipeline.course import Agent, Heard
from gateway.pipeline.delivery import pieces
from gateway.pipeline.observed import Observed
from gateway.pipeline.policy import code_in
from gateway.pipeline.questions import answered_by, goes_on
from gateway.pipeline.store import Roster, Store, where_said, who_said
from gateway.reading.attachments import Attachments
from gateway.reception.backlog import Backlog, LaneFull, Lanes, Unstored, Waiting
from gateway.reception.dispatch import Dispatch, Speakers
from gateway.reception.intake import NOW, Fetching, Intake, Mask
from gateway.wording.texts import Texts, heard_in
from memory.errors import StorageError, TakenForDead, Withdrawn
from memory.loops import reason_of
from memory.mailbox.inbox import InboxRow

log = structlog.get_logger(__name__)
T = TypeVar("T")
#: As `memory.store.share.Held`, whose module only the stores themselves name.
_Held: TypeAlias = Literal["own", "held", "taken", "elsewhere"]

#: Milliseconds: a message that took longer to arrive was said while the process was not listening.
_PROMPT_MS = 10_000
#: The number of times that a session held by another process is asked for, and the seconds between.
_ASKED = 300
_ASK_SECONDS = 0.1
#: Commands whose author is also forgotten among the overheard lines, which are not kept.
_FORGETTING = frozenset({"forget", "privacy"})
#: For events that nobody has said.
_ENGLISH = Texts("en")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The limits on concurrency and the waiting times of the pipeline.

    Messages of one author within `burst_seconds` form a batch. An agent runs at most `concurrent_turns` turns at once.
    At most `queue` messages of a session wait. Messages older than `stale_hours` are answered only on request. A store
    that has failed is tried again after `retry_seconds`. Of a message longer than `message_chars` characters only the
    beginning and the end are taken.
    """

    burst_seconds: float
    concurrent_turns: int
    queue: int
    stale_hours: float
    message_chars: int
    retry_seconds: float = 30.0


class Router:
    """Implements `channels.base.Host`."""

    def __init__(
        self,
        *,
        roster: Roster,
        channels: Mapping[str, Channel],
        speakers: Speakers,
        attachments: Attachments,
        mask: Mask,
        flow: Flow,
        now: Callable[[], int],
        reload: Reload | None = None,
    ) -> None:
        """Takes the parts of the pipeline. `now` returns milliseconds UTC. `reload` reads the configuration anew."""
        self._roster = roster
        self._channels = channels
        self._access = speakers.access
        self._policy = speakers.policy
        self._buckets = speakers.buckets
        self._flow = flow
        self._now = now
        self._lanes: Lanes[Waiting] = Lanes(self._handle, concurrent=flow.concurrent_turns, limit=flow.queue)
        self._at_once: dict[str, set[asyncio.Task[None]]] = {}
        self._taking: set[asyncio.Task[None]] = set()
        self._told_unsaved: set[int] = set()
        self._intake = Intake(
            roster=roster,
            channels=channels,
            lanes=self._lanes,
            mask=mask,
            now=now,
            stale_hours=flow.stale_hours,
            message_chars=flow.message_chars,
        )
        self._backlog = Backlog(
            roster, set_aside=self._intake.set_aside, queue=self._queue_row, retry_seconds=flow.retry_seconds
        )
        self._unstored = Unstored(channels, now)
        self._observed = Observed(mask, now)
        self._fetching = Fetching(channels, attachments)
        self._dispatch = Dispatch(
            roster=roster,
            channels=channels,
            speakers=speakers,
            stop=self._stop,
            unhear=self._observed.forget,
            reload=reload,
        )

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return table.specs(self._roster.agents[self._roster.default].spec.language)

    async def take_up(self) -> None:
        """Answers messages that an earlier run left unanswered and delivers its undelivered rows. Called at start."""
        await self._roster.load_choices()
        for store in self._roster.each_store:
            await store.delivery.take_up()
            await self._backlog.look(store)

    async def look(self, store: Store) -> None:
        """Queues the unanswered rows that this process has not in hand. Raises `StorageError`."""
        await self._backlog.look(store)

    def answers(self, session_key: str) -> bool:
        return Place.from_session_key(session_key).channel in self._channels

    def reaches(self, place: Place) -> bool:
        channel = self._channels.get(place.channel)
        return channel is not None and channel.reachable(place)

    def is_busy(self, key: str) -> bool:
        return key in self._at_once or self._lanes.is_busy(key)

    async def begin_task(self, store: Store, row: InboxRow) -> None:
        """Queues a task whose time has come; after an error its row is found by looking, a while later."""
        try:
            if await self.hold(store, row.session_key) != "elsewhere":
                self._queue_row(store, row)
        except Exception as exc:  # noqa: BLE001 - logged with its place, without people's words
            log.error("task.unqueued", session=row.session_key, error=reason_of(exc), kept="in the inbox")
            self._backlog.look_later(store)

    async def hold(self, store: Store, key: str, heard: Heard | None = None) -> _Held:
        """Holds a session and takes up the work left in it, as `OwnShare.hold` does. Raises `StorageError`."""
        channel = self._channels.get(Place.from_session_key(key).channel)
        # A message about which only this process knows something would lose that on the way to another.
        spread = (
            heard is not None and channel is not None and channel.receives_alone
            and heard.original is None and not self._policy.observes(heard.inbound)
        )  # fmt: skip
        asks = channel is not None and channel.capabilities.comes_and_goes
        held = await store.memory.share.hold(key, spread=spread, asks=asks)
        if held == "taken":
            await self.took(store, [key])
            await self._backlog.look(store, key)
        if held == "elsewhere" and asks:
            self._start(key, self._ask_for(store, key))
        return held

    async def took(self, store: Store, keys: Collection[str]) -> None:
        """Takes up work in sessions, except messages; what fails stays in `OwnShare.fresh`. Raises `StorageError`."""
        await self._roster.load_choices()
        await store.delivery.take_up(keys)
        await store.memory.learner.take_over(keys)
        store.memory.share.taken_up(keys)

    async def _ask_for(self, store: Store, key: str) -> None:
        try:
            for _ in range(_ASKED):
                await asyncio.sleep(_ASK_SECONDS)
                if await store.memory.share.hold(key, asks=True) != "elsewhere":
                    await self.took(store, [key])
                    await self._backlog.look(store, key)
                    return
        except StorageError as exc:
            log.error("turn.unsaved", session=key, error=str(exc), kept="in the inbox")

    async def may_speak(self, inbound: Inbound) -> bool:
        """Returns whether a message would be taken now, without any effect. Raises `StorageError`."""
        return await self._policy.may_speak(inbound, self._access.state)

    def is_admin(self, inbound: Inbound) -> bool:
        return self._policy.is_admin(inbound)

    # Calls of channels ------------------------------------------------------------------------------------------

    async def on_inbound(self, inbound: Inbound) -> None:
        texts = Texts(heard_in(inbound, self._roster.agent_for(inbound).spec.language))
        try:
            verdict = await self._policy.judge(inbound, self._access.state)
            if verdict in ("take", "pairing") and not self._within_rate(inbound, texts):
                return
            match verdict:
                case "take":
                    # Commit and queueing are one step: a caller that is cancelled in between must not leave a
                    # message committed but not queued.
                    taking = asyncio.create_task(self._take(inbound, self._roster.store_for(inbound), texts))
                    self._taking.add(taking)
                    taking.add_done_callback(self._taking.discard)
                    await asyncio.shield(taking)
                case "observe":
                    self._observed.hear(inbound)
                case "pairing":
                    code = code_in(inbound.text) or ""
                    taken = await self._access.take_pairing(inbound.channel, inbound.author_id, code)
                    answers = {"allowed": "pair.welcome", "no_tries_left": "pair.locked"}
                    self._say_unstored(inbound, texts(answers.get(taken, "pair.wrong"), id=inbound.author_id))
                case "anonymous" if not await self._access.kept(inbound.channel, f"anonymous.{inbound.chat}"):
                    await self._access.keep(inbound.channel, {f"anonymous.{inbound.chat}": "told"})
                    self._say_unstored(inbound, texts("anonymous"))
                case "stranger":
                    self._say_unstored(inbound, texts("stranger", id=inbound.author_id))
                case "ignore" if inbound.ticket and inbound.pressed is None:
                    # Without an answer, a command given in place would look pending for a quarter of an hour.
                    self._say_unstored(inbound, texts("not_here"))
        except StorageError as exc:
            raise _not_taken("message", exc, texts) from exc

    def _say_unstored(self, inbound: Inbound, text: str) -> None:
        self._start(inbound.place.session_key, self._unstored.say(inbound, text))

    async def on_moved(self, channel: str, chat: str, new_chat: str) -> None:
        configured = self._policy.lists_group(channel, chat)
        try:
            await self._access.move_group(channel, chat, new_chat, configured=configured)
            for store in self._roster.each_store:
                await store.delivery.move(self._channels[channel], chat, new_chat)
            await self._roster.load_choices()
        except StorageError as exc:
            raise _not_taken("moved", exc) from exc

    async def on_presence(self, channel: str, chat: str, *, present: bool) -> None:
        try:
            for store in self._roster.each_store:
                platform, named = self._channels[channel].platform, Place(channel=channel, chat=chat).session_key
                await store.memory.mailbox.presence(platform, named.partition(":")[0], chat, present=present)
        except StorageError as exc:
            raise _not_taken("presence", exc) from exc

    async def on_rights(
        self, channel: str, chat: str, *, write: bool, threads: Collection[str | None] | None = None
    ) -> None:
        try:
            for store in self._roster.each_store:
                await store.delivery.rights(self._channels[channel], chat, write=write, threads=threads)
        except StorageError as exc:
            raise _not_taken("rights", exc) from exc

    async def on_reacted(self, inbound: Inbound, reaction: Reaction, *, kept: bool) -> None:
        named = inbound.place.session_key.partition(":")[0]
        who = (inbound.platform, named, inbound.chat, inbound.author_id, inbound.message_id)
        try:
            if not await self.may_speak(inbound):
                return
            for store in self._roster.each_store:
                if kept and reaction.yes is not None and (asked := await store.memory.questions.shown(*who)):
                    key, question = asked
                    if (data := answered_by(question, yes=reaction.yes)) is not None:
                        thread = Place.from_session_key(key).thread
                        await self.on_inbound(replace(inbound, thread=thread, pressed=data))
                        return
                if reaction.good is not None:
                    await store.memory.requests.judge(*who, good=reaction.good, kept=kept)
        except StorageError as exc:
            raise _not_taken("reaction", exc) from exc

    async def on_previews(self, inbound: Inbound) -> None:
        store, key = self._roster.store_for(inbound), inbound.place.session_key
        try:
            # Platforms resolve the links of everybody, mostly of people to whom the bot does not listen.
            if not (await self.may_speak(inbound) and await self._intake.has_taken(store, inbound)):
                return
            if not await self._intake.preview(store, inbound):
                self._start(key, self._intake.keep_previews(store, inbound))
        except StorageError as exc:
            raise _not_taken("previews", exc) from exc

    def admins(self, channel: str) -> Sequence[str]:
        return self._policy.admins(channel)

    async def suggest(self, inbound: Inbound, option: str, typed: str) -> Sequence[Suggestion]:
        store, agent = self._roster.store_for(inbound), self._roster.agent_for(inbound)
        return await self._dispatch.suggest(inbound, store, agent, option, typed)

    async def form(self, inbound: Inbound) -> Form | None:
        return await self._dispatch.form(inbound, self._roster.store_for(inbound), self._roster.agent_for(inbound))

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        try:
            return await self._access.kept(channel, prefix)
        except StorageError as exc:
            raise _not_taken("kept", exc) from exc

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        try:
            await self._access.keep(channel, values)
        except StorageError as exc:
            raise _not_taken("keep", exc) from exc

    async def on_deleted(self, place: Place, message_ids: Sequence[str]) -> None:
        try:
            for store in self._roster.each_store:
                self._backlog.put_down(store, await self._intake.take_back(store, place, message_ids))
                self._observed.remove(place.session_key, message_ids)
                # Memories that a running turn learns from the messages are removed, too, wherever it runs.
                self._start(place.session_key, self._intake.take_back_learned(store, place, message_ids))
                told = json.dumps({"place": place.session_key, "ids": list(message_ids)})
                await store.memory.share.tell("deleted", told, session_key=place.session_key)
        except StorageError as exc:
            raise _not_taken("deleted", exc) from exc

    def deleted_elsewhere(self, store: Store, told: str) -> None:
        """Takes back the memories of a running turn from messages whose deletion another process was told."""
        said = json.loads(told)
        place = Place.from_session_key(said["place"])
        if place.channel in self._channels:
            self._start(place.session_key, self._intake.take_back_learned(store, place, said["ids"]))

    async def stop(self, place: Place, turn_id: int | None = None) -> bool:
        stopped = [store.turns.stops.stop(place.session_key, turn_id) for store in self._roster.each_store]
        return any(stopped)

    async def settled(self, place: Place) -> None:
        key = place.session_key
        while tasks := self._at_once.get(key):
            await asyncio.wait(set(tasks))
        await self._lanes.idle(key)
        for store in self._roster.each_store:
            await store.delivery.settled(key)

    async def drain(self, *, seconds: float) -> None:
        """Ends the running work. Turns get `seconds` to finish; unfinished ones are taken up at the next start."""
        await self._backlog.close()
        await asyncio.gather(*self._taking, return_exceptions=True)
        await self._fetching.drain()
        at_once = [task for tasks in self._at_once.values() for task in tasks]
        if not await self._lanes.drain(seconds=seconds):
            log.warning("stop.unfinished", kept="for the next start")
        # These tasks are short, and some wait for their lane.
        if at_once:
            _, late = await asyncio.wait(at_once, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for store in self._roster.each_store:
            await store.delivery.drain(seconds=min(seconds, 5.0))

    # Into the inbox ---------------------------------------------------------------------------------------------

    def _within_rate(self, inbound: Inbound, texts: Texts) -> bool:
        """Returns False if the person exceeds the rate. They are told once, and under each command given in place.

        Messages count by the platform's time, so that those that piled up while nobody listened don't seem faster than
        they were. A press has no such time and counts as made now.
        """
        if self._policy.trusts(inbound.channel):
            return True
        said_at = (self._now() if inbound.pressed is not None else min(inbound.sent_at, self._now())) / 1000
        admission = self._buckets.take(self._whose(inbound), at=said_at)
        if admission == "tell" or (admission != "ok" and inbound.ticket):
            self._say_unstored(inbound, texts("bad.rate"))
        return admission == "ok"

    def _uncount(self, inbound: Inbound) -> None:
        """Takes a message out of the person's rate, because it was not taken and comes again, or was taken before."""
        if not self._policy.trusts(inbound.channel):
            self._buckets.give_back(self._whose(inbound))

    def _whose(self, inbound: Inbound) -> tuple[str, ...]:
        """Returns the key of the rate: the author, with the place for late messages, which are in order only there."""
        late = inbound.pressed is None and self._now() - inbound.sent_at > _PROMPT_MS
        return (inbound.channel, inbound.author_id, *((inbound.place.session_key,) if late else ()))

    async def _take(self, inbound: Inbound, store: Store, texts: Texts) -> None:
        try:
            taken = await self._intake.take(inbound, store, texts)
        except StorageError:
            self._uncount(inbound)
            raise
        if isinstance(taken, Heard):
            try:
                await self._taken(self._with_overheard(taken), store, texts)
            except Exception:
                # It is committed, so it is no error of its channel, and it is found by looking.
                log.exception("turn.unqueued", session=inbound.place.session_key, kept="in the inbox")
                self._backlog.put_down(store, [taken.inbox_id], ended=False)
                self._backlog.look_later(store)
        elif taken == "repeated":
            self._uncount(inbound)
            # Its answer may have waited until a person is there.
            store.delivery.wake(inbound.place.session_key)

    def _with_overheard(self, heard: Heard) -> Heard:
        """Returns a message with the lines to others before it, without those that its author wants forgotten."""
        inbound = heard.inbound
        if inbound.edited:
            self._observed.reword(inbound)
        elif inbound.chat_kind == "group":  # by an edit, what was said to others may have become a message
            self._observed.remove(inbound.place.session_key, [inbound.message_id])
        if self._observed.places and _asks_to_forget(inbound):
            self._observed.forget(inbound)
        if not self._policy.observes(inbound):
            return heard
        return replace(heard, overheard=self._observed.lines(inbound.place.session_key))

    async def _taken(self, heard: Heard, store: Store, texts: Texts) -> None:
        key = heard.inbound.place.session_key
        if not self._backlog.take(store, heard.inbox_id):
            return  # it was found by looking
        try:
            held = await self.hold(store, key, heard)
            if held == "held":
                # Messages that another process received before come first, though their signal comes later.
                await self._backlog.look(store, key)
        except StorageError as exc:
            log.error("turn.unsaved", session=key, error=str(exc), kept="in the inbox")
            held = "elsewhere"
        if held == "elsewhere":
            self._backlog.put_down(store, [heard.inbox_id], ended=False)
            return
        waiting = self._waiting(heard, store)
        if _is_aside(heard.inbound):
            self._start(heard.inbound.place.session_key, self._handle(heard.inbound.place.session_key, [waiting]))
            return
        self._fetch(waiting)
        try:
            self._queue_up(waiting)
        except LaneFull:
            try:
                await self._turn_away(store, [heard], texts("bad.queue", count=self._flow.queue), "queue_full")
            except StorageError as exc:
                await self._unsaved(key, [waiting], exc)

    def _queue_row(self, store: Store, row: InboxRow) -> None:
        if not self._backlog.take(store, row.id):
            return
        try:
            heard = self._with_overheard(Heard(inbox_id=row.id, inbound=Inbound.from_json(row.payload)))
            waiting = self._waiting(heard, store, turn_id=row.turn_id, late=True)
            if _is_aside(heard.inbound):
                self._start(row.session_key, self._handle(row.session_key, [waiting]))
            else:
                self._fetch(waiting)
                self._queue_up(waiting, limited=False)
        except Exception:
            self._backlog.put_down(store, [row.id], ended=False)
            raise

    # Through the lane -------------------------------------------------------------------------------------------

    def _waiting(self, heard: Heard, store: Store, *, turn_id: int | None = None, late: bool = False) -> Waiting:
        agent = self._roster.name_for(heard.inbound)
        if self._roster.stores[agent] is not store:
            # The routing has changed since. The agent that was asked answers, because text must not cross stores.
            agent = next(name for name, own in self._roster.stores.items() if own is store)
        channel = self._channels.get(heard.inbound.channel)
        own = channel.capabilities.burst_seconds if channel is not None else None
        burst = self._flow.burst_seconds if own is None else own
        return Waiting(
            heard=heard,
            agent=agent,
            store=store,
            burst_seconds=0.0 if turn_id is not None else burst,
            late=late or self._now() - heard.inbound.sent_at > _PROMPT_MS,
            turn_id=turn_id,
        )

    def _fetch(self, waiting: Waiting) -> None:
        if waiting.heard.inbound.brings:
            self._fetching.begin(waiting)

    def _queue_up(self, waiting: Waiting, *, limited: bool = True) -> None:
        key = waiting.heard.inbound.place.session_key
        inbound = waiting.heard.inbound
        typed = table.given(inbound)
        command = table.find(typed[0]) if typed is not None else None
        # The answer to a question, or another page, need not wait for the model.
        pressed = inbound.pressed is not None and typed is None and not goes_on(inbound.pressed)
        if pressed or (command is not None and command.at_once):
            self._start(key, self._handle(key, [waiting]))
        else:
            self._lanes.put(key, waiting, limited=limited)

    def _start(self, key: str, work: Coroutine[None, None, None]) -> None:
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
        """Handles one batch of a lane to its end. As the pipeline's boundary, it lets no error out."""
        store = batch[0].store
        served = self._roster.agents[batch[0].agent]
        texts = self._texts(batch[0])
        try:
            with span("turn", agent=batch[0].agent, channel=batch[0].heard.inbound.channel):
                await self._answer(store, served, batch, texts)
                store.delivery.wake(key)
            self._told_unsaved.difference_update(waiting.heard.inbox_id for waiting in batch)
        except Withdrawn as exc:
            log.info("turn.withdrawn", session=key, because=str(exc))
        except StorageError as exc:
            await self._unsaved(key, batch, exc)
        except Exception:
            log.exception("turn.broken", session=key)
            try:
                heard = [waiting.heard for waiting in batch]
                await self._refuse(store, heard, texts("error.internal"), "internal", keep_words=True)
            except StorageError as exc:
                await self._unsaved(key, batch, exc)
            except Exception:
                log.exception("turn.unrefused", session=key)
                await self._backlog.give_up(store, key, [waiting.heard.inbox_id for waiting in batch])
        finally:
            self._backlog.put_down(store, [waiting.heard.inbox_id for waiting in batch])

    async def _answer(self, store: Store, served: Agent, batch: list[Waiting], texts: Texts) -> None:
        first = batch[0]
        inbound = first.heard.inbound
        if _is_aside(inbound):
            if inbound.edited:
                await self._intake.edit(first, served)
            else:
                await self._refuse(store, [first.heard], texts("bad.unreadable"), "unreadable")
            return
        if first.turn_id is None and inbound.pressed == NOW:
            for row in await self._intake.release(store, first.heard, texts):
                self._queue_row(store, row)
            return
        key = inbound.place.session_key
        talk = table.given(inbound) is None and (inbound.pressed is None or goes_on(inbound.pressed))
        with store.turns.stops.under_way(key) if talk else nullcontext():
            await self._answer_said(store, served, batch, texts)

    async def _answer_said(self, store: Store, served: Agent, batch: list[Waiting], texts: Texts) -> None:
        first = batch[0]
        inbound = first.heard.inbound
        if first.turn_id is None and inbound.task is None and await self._dispatch.answered(first):
            if len(batch) > 1:
                await self._answer_said(store, served, batch[1:], texts)
            return
        where, who, heard = where_said(inbound, served.spec), who_said(inbound), [one.heard for one in batch]
        try:
            async with store.turns.stops.deadline(where.session_key):
                if any(one.heard.inbound.brings for one in batch):
                    await self._fetching.done(batch)
        except TimeoutError:
            stopped = store.turns.stops.was_stopped(where.session_key)
            told = texts("stop.done") if stopped else texts("error.fetch")
            await self._refuse(store, heard, told, "stopped" if stopped else "deadline", keep_words=True)
            return
        channel = self._channels.get(inbound.channel)
        exempt = self._policy.is_privileged(inbound)
        await store.turns.run(served, where, who, heard, channel, turn_id=first.turn_id, exempt=exempt)

    async def _stop(self, store: Store, inbound: Inbound, announce: Callable[[], Awaitable[None]]) -> bool:
        """Stops the running answer in a place and the person's waiting messages there. Returns False without any."""
        key = inbound.place.session_key
        waiting = self._lanes.take_out(
            key, lambda item: item.store is store and item.heard.inbound.author_id == inbound.author_id
        )
        if not waiting and not store.turns.stops.is_under_way(key):
            return False
        await announce()
        store.turns.stops.stop(key)
        if waiting:
            heard = [item.heard for item in waiting]
            await self._turn_away(store, heard, self._texts(waiting[0])("stop.done"), "stopped", keep_words=True)
        return True

    # Refusals and failures --------------------------------------------------------------------------------------

    def _texts(self, waiting: Waiting) -> Texts:
        """Returns the texts for the author of a message, without a look at the store, which may have failed."""
        return Texts(heard_in(waiting.heard.inbound, self._roster.agents[waiting.agent].spec.language))

    async def _refuse(
        self, store: Store, heard: Sequence[Heard], text: str, code: str, *, keep_words: bool = False
    ) -> None:
        inbound = heard[0].inbound
        key = inbound.place.session_key
        ids = [one.inbox_id for one in heard]
        (notice, *_) = pieces(self._channels.get(inbound.channel), text)
        await store.memory.mailbox.refuse(ids, key, notice, error=code, keep_words=keep_words)
        store.delivery.wake(key)

    async def _turn_away(
        self, store: Store, heard: Sequence[Heard], text: str, code: str, *, keep_words: bool = False
    ) -> None:
        """Refuses messages that no lane holds. They stay in hand until that is committed, so no look begins them."""
        ended = False
        try:
            await self._refuse(store, heard, text, code, keep_words=keep_words)
            ended = True
        finally:
            self._backlog.put_down(store, [one.inbox_id for one in heard], ended=ended)
            if not ended:
                self._backlog.look_later(store)

    async def _unsaved(self, key: str, batch: list[Waiting], error: StorageError) -> None:
        """Handles a failed store: tells the person if that needs no store, and tries again after a while."""
        if isinstance(error, TakenForDead):
            log.warning("turn.left", session=key, instead="another process answers")
            return
        log.error("turn.unsaved", session=key, error=str(error), again_in=self._flow.retry_seconds)
        texts = self._texts(batch[0])
        first = batch[0].heard
        # First, because telling may fail, too.
        self._backlog.look_later(batch[0].store)
        if first.inbox_id not in self._told_unsaved:
            self._told_unsaved.add(first.inbox_id)
            self._start(key, self._unstored.say_of(first, texts.failed_store("error.storage", error)))


def _not_taken(event: str, exc: StorageError, texts: Texts = _ENGLISH) -> NotTaken:
    """Returns the failure for a channel, which shows its words to people, and its reason to the operator."""
    log.error("channel.event_not_taken", event_name=event, error=str(exc))
    return NotTaken(texts.failed_store("error.not_taken", exc), reason=str(exc))


def _asks_to_forget(inbound: Inbound) -> bool:
    typed, plainly = table.given(inbound), plain.requested(inbound.text, modelless=True)
    return (typed is not None and typed[0] in _FORGETTING) or (plainly is not None and plainly.kind != "wrong")


def _is_aside(inbound: Inbound) -> bool:
    return inbound.edited or (inbound.pressed is None and inbound.is_empty)
