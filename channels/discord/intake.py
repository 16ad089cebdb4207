"""The order in which Discord's events are handed over, and the position up to which all of them were.

Invariants: the events of one channel or thread are handed over in their order, each until it was taken, and no other
channel waits for them. `since` never passes a message that is not taken yet, so that everything a killed process
still held lies after `since` and is read again. The one exception is a channel that can't be read back after several
tries: the messages missed there come late, and only in this run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from channels.base import ChannelError, Host
from channels.discord.payloads import span
from channels.supervision import Backoff, Endurance

log = structlog.get_logger(__name__)

#: Discord's servers don't pass messages of different channels on in the order of their ids: an older message may still
#: come within this many milliseconds of the newest.
_STRAGGLING = 10_000
_SAVE_SECONDS = 2.0
_MOST_DONE = 5_000
_MOST_WAITING = 1_000  # in one lane; later messages are read back when these are done
#: A read-back that failed this often steps aside for the events that wait, and is tried again this many seconds later.
_MOST_TRIES = 5
_ASIDE_SECONDS = 60.0
_GONE = "-"  # prefix of the server of a chat that the bot is no longer in


@dataclass(slots=True, kw_only=True, eq=False)
class Event:
    """An event to hand over. `number` is its message's id, 0 if it is no new message; `key` names it for logs.

    `work` raises `ChannelError` when the event was not taken. An event that is `reading` fetches missed messages;
    `tries` counts how often that failed.
    """

    key: str
    work: Callable[[], Coroutine[Any, Any, None]]
    number: int = 0
    reading: bool = False
    tries: int = 0

    @property
    def once(self) -> bool:
        """True if two events of the same key are the same event."""
        return self.reading or bool(self.number)


@dataclass(slots=True)
class _Lane:
    """The events that wait in one channel.

    `keys` holds the keys of the waiting events that stand there `once`. With `busy` the first event is being handed
    over.
    """

    events: deque[Event] = field(default_factory=deque)
    keys: set[str] = field(default_factory=set)
    busy: bool = False

    def append(self, event: Event) -> None:
        if event.once:
            if event.key in self.keys:
                return
            self.keys.add(event.key)
        self.events.append(event)

    def pop(self) -> None:
        self.keys.discard(self.events.popleft().key)
        self.busy = False


class ChannelLanes:
    """The lanes of one run, one per Discord channel or thread, and the values kept about them across runs."""

    def __init__(
        self,
        channel: str,
        host: Host,
        endurance: Endurance,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self._channel = channel
        self._host = host
        self._endurance = endurance
        self._spawn = spawn
        self._sleep = sleep
        self._random = random
        self._lanes: dict[str, _Lane] = {}
        self._done: dict[str, None] = {}  # the keys of the newest events that were taken
        self._open = asyncio.Event()
        self._unsaved: dict[str, str | None] = {}
        self._received = 0
        self.since = 0
        self.begun = 0  # where the very first session began
        self.direct: dict[str, int] = {}  # the last id taken, for each private channel
        self.seen: dict[str, str] = {}  # the server of each chat where something was said
        self._troubles: dict[str, str] = {}  # by the key of the event that is not taken
        self._pins: dict[str, float] = {}

    @property
    def trouble(self) -> str:
        return next(iter(self._troubles.values()), "")

    def server_of(self, chat: str) -> str | None:
        """Returns the server of a chat where something was said while the bot was in it."""
        server = self.seen.get(chat, _GONE)
        return None if server.startswith(_GONE) else server

    async def load(self, bot: str) -> None:
        """Loads the values that an earlier run kept for the bot with this id; drops another's. Raises `NotTaken`."""
        kept = await self._host.kept(self._channel)
        if kept.get("bot", bot) != bot:
            log.warning("discord.other_bot", channel=self._channel)
            await self._host.keep(self._channel, dict.fromkeys(kept))
            kept = {}
        if kept.get("bot") != bot:
            self._unsaved["bot"] = bot
        for name, value in kept.items():
            kind, _, chat = name.partition(":")
            if name == "since" and value.isdecimal():
                self.since = int(value)
            elif name == "begun" and value.isdecimal():
                self.begun = int(value)
            elif kind == "dm" and value.isdecimal():
                self.direct[chat] = int(value)
            elif kind == "seen":
                self.seen[chat] = value

    async def save(self) -> None:
        if (position := self._position()) > self.since:
            self.since = position
            self._unsaved["since"] = str(position)
        if not self._unsaved:
            return
        values, self._unsaved = self._unsaved, {}
        try:
            await self._host.keep(self._channel, values)
        except ChannelError as exc:
            log.warning("discord.unsaved", channel=self._channel, error=str(exc))
            self._unsaved = values | self._unsaved

    async def saving(self) -> None:
        """Calls `save` from time to time, until cancelled."""
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            await self.save()

    def begin(self, position: int) -> None:
        """Begins the very first session at `position`; all before it is left out, but for what came in meanwhile."""
        held = [event.number - 1 for lane in self._lanes.values() for event in lane.events if event.number]
        position = min([position, *held])
        self.since = max(self.since, position)
        self.begun = max(self.begun, position)
        self._unsaved |= {"since": str(self.since), "begun": str(self.begun)}

    def hold(self) -> None:
        """Hands nothing over until `go`: missed messages come first."""
        self.since = max(self.since, self._position())
        self._open.clear()

    def go(self) -> None:
        self._open.set()

    def pin(self, name: str, seconds: float) -> None:
        """Keeps `since` where it is until `unpin`, but for at most `seconds`."""
        self._pins[name] = asyncio.get_running_loop().time() + seconds

    def unpin(self, name: str) -> None:
        self._pins.pop(name, None)

    def put(self, lane: str, event: Event) -> None:
        """Hands `event` over after all that wait in the lane, unless its message was read back before."""
        self._received = max(self._received, event.number)
        if event.key not in self._done:
            self._lane(lane).append(event)

    def is_full(self, lane: str) -> bool:
        """Returns whether so many events wait in the lane that new messages had better be read back later."""
        return lane in self._lanes and len(self._lanes[lane].events) >= _MOST_WAITING

    def waits(self, lane: str) -> bool:
        """Returns whether anything waits in the lane besides the read-back at its head."""
        return lane in self._lanes and len(self._lanes[lane].events) > 1

    def passed(self, number: int) -> None:
        """Notes the id of a message that is handed to nobody."""
        self._received = max(self._received, number)

    def put_first(self, lane: str, events: Iterable[Event]) -> None:
        """Hands `events` over, in order, before all that waits in the lane; those known already keep their turn."""
        held = self._lane(lane)
        standing = list(held.events)
        head, rest = (standing[:1], standing[1:]) if held.busy else ([], standing)
        own = {event.key: event for event in rest if event.once}
        taken = self._done.keys() | {event.key for event in head if event.number}
        first = [own.get(event.key, event) for event in events if event.key not in taken]
        placed = {event.key for event in first}
        held.events = deque([*head, *first, *(event for event in rest if not (event.once and event.key in placed))])
        held.keys |= placed

    def took_direct(self, chat: str, number: int) -> None:
        """Notes that every message up to `number` was taken in a private channel."""
        if number > self.direct.get(chat, -1):
            self.direct[chat] = number
            self._unsaved[f"dm:{chat}"] = str(number)

    def lost_direct(self, chat: str) -> None:
        if self.direct.pop(chat, None) is not None:
            self._unsaved[f"dm:{chat}"] = None

    def saw(self, chat: str, server: str) -> None:
        """Notes that the bot is in this chat of a server."""
        if self.seen.get(chat) != server:
            self.seen[chat] = server
            self._unsaved[f"seen:{chat}"] = server

    def left(self, chat: str) -> None:
        """Notes that the bot is no longer in this chat."""
        if not self.seen.get(chat, _GONE).startswith(_GONE):
            self.saw(chat, _GONE + self.seen[chat])

    def chats_of(self, server: str) -> list[str]:
        return [chat for chat, where in self.seen.items() if where.removeprefix(_GONE) == server]

    def left_of(self, server: str) -> list[str]:
        return [chat for chat, where in self.seen.items() if where == _GONE + server]

    def servers(self) -> set[str]:
        return {where for where in self.seen.values() if not where.startswith(_GONE)}

    def _lane(self, name: str) -> _Lane:
        if name not in self._lanes:
            self._lanes[name] = _Lane()
            self._spawn(self._work(name))
        return self._lanes[name]

    async def _work(self, name: str) -> None:
        lane = self._lanes[name]
        failing = Backoff(1, 30, self._random)
        while lane.events:
            await self._open.wait()
            event = lane.events[0]
            lane.busy = True
            try:
                await self._endurance.endure(event.key, event.work())
            except ChannelError as exc:
                if exc.retryable:
                    event.tries += event.reading
                    if event.tries >= _MOST_TRIES:
                        self._put_aside(name, event, exc)
                        continue
                    self._note(event, exc)
                    await self._sleep(failing.wait() if exc.retry_after is None else exc.retry_after)
                    continue
                log.warning("discord.skipped", channel=self._channel, key=event.key, error=exc.reason)
            failing.reset()
            self._troubles.pop(event.key, None)
            lane.pop()
            if event.number:
                self._done[event.key] = None
                if len(self._done) > _MOST_DONE:
                    del self._done[next(iter(self._done))]
        del self._lanes[name]

    def _note(self, event: Event, exc: ChannelError) -> None:
        told = exc.reason
        if told not in self._troubles.values():
            log.warning("discord.not_taken", channel=self._channel, code=exc.code, error=told)
        self._troubles[event.key] = told

    def _put_aside(self, name: str, event: Event, exc: ChannelError) -> None:
        """Lets the other events of the lane go before its first event, which is tried again later."""
        if event.tries == _MOST_TRIES:
            log.error("discord.unreadable", channel=self._channel, chat=name, error=exc.reason, again_in=_ASIDE_SECONDS)
        self._troubles.pop(event.key, None)
        self._lanes[name].pop()
        self._spawn(self._later(name, event))

    async def _later(self, name: str, event: Event) -> None:
        await self._sleep(_ASIDE_SECONDS)
        self._lane(name).append(event)

    def _position(self) -> int:
        if not self._open.is_set() or not self._received:
            return self.since
        now = asyncio.get_running_loop().time()
        waiting = [event for lane in self._lanes.values() for event in lane.events]
        # An event that was put aside would hold all channels back for as long as its own channel can't be read.
        reading = any(event.reading and event.tries < _MOST_TRIES for event in waiting)
        if reading or any(now < until for until in self._pins.values()):
            return self.since
        oldest = min((event.number - 1 for event in waiting if event.number), default=self._received)
        return min(oldest, self._received - span(_STRAGGLING))
