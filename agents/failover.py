"""Several models as one provider: retries passing failures, and goes on to the next model when one fails.

Invariants: once a visible character was handed to `on_text` no further call is made, so a person never reads
two beginnings of one answer; a wait asked for by a vendor is never cut short, and never begins if the caller would give
up before its end; a model that hangs does not use up the time of the next one by being asked again; errors name all
models tried. A request that is too long for one model is given only to models that can read more. A person's
call never waits for a place on a server, so a call that hangs holds up no other. A background call begins only if a
place is free, gives way as soon as a person's call needs it, and begins anew afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from agents.llm import (
    Completion,
    Contact,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    ModelUnpaid,
    OnText,
    Provider,
    Request,
    Screen,
)
from agents.spans import span

T = TypeVar("T")


@dataclass(slots=True)
class _Place:
    live: int = 0
    background: list[asyncio.Task[Any]] = field(default_factory=list)
    evicted: set[asyncio.Task[Any]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def taken(self) -> int:
        return self.live + len(self.background)

    def announce(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Servers:
    """The servers by address. `now` gives seconds on a clock that never goes back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._met: dict[str, tuple[float | None, float | None, str]] = {}
        self._places: dict[str, _Place] = {}
        self._failing_until: dict[str, float] = {}

    def failed(self, key: str, seconds: float) -> None:
        self._failing_until[key] = max(self._now() + seconds, self._failing_until.get(key, 0.0))

    def answered(self, *keys: str) -> None:
        for key in keys:
            self._failing_until.pop(key, None)

    def failing(self, *keys: str) -> bool:
        now = self._now()
        return any(self._failing_until.get(key, now) > now for key in keys)

    def met(self, model: str, error: str = "") -> None:
        """Notes that a model answered, or failed with the code `error`."""
        answered, failed, code = self._met.get(model, (None, None, ""))
        self._met[model] = (answered, self._now(), error) if error else (self._now(), failed, code)

    def contacts(self) -> dict[str, Contact]:
        def ago(at: float | None) -> int | None:
            return None if at is None else int(self._now() - at)

        return {
            name: Contact(answered_ago=ago(answered), failed_ago=ago(failed), error=code)
            for name, (answered, failed, code) in self._met.items()
        }

    @asynccontextmanager
    async def live(self, address: str, slots: int | None) -> AsyncIterator[None]:
        """Holds a place for a person's call; a background call gives way to it if the server has too few places."""
        place = self._places.setdefault(address, _Place())
        place.live += 1
        while slots is not None and place.taken > slots and place.background:
            task = place.background.pop()
            place.evicted.add(task)
            task.cancel()
        try:
            yield
        finally:
            place.live -= 1
            place.announce()

    async def in_background(self, address: str, slots: int | None, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `call`, made when the server has a free place, and again if it had to give way."""
        place = self._places.setdefault(address, _Place())
        while True:
            while slots is not None and place.taken >= slots:
                await place.changed.wait()
            task = asyncio.ensure_future(call())
            place.background.append(task)
            try:
                return await task
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if task not in place.evicted or (current is not None and current.cancelling()):
                    raise
            finally:
                if task in place.background:
                    place.background.remove(task)
                place.evicted.discard(task)
                place.announce()


#: Seconds before the second, third and fourth try of one model, each varied by up to a quarter either way.
WAITS = (0.5, 2.0, 8.0)
#: A vendor that asks for a longer wait than this many seconds is left for the next model at once.
LONGEST_WAIT = 30.0
#: For so many seconds a model that failed is tried after all others.
DEMOTED = 60.0
#: For so many seconds a model whose account has nothing left is tried after all others.
UNPAID = 3600.0
#: A model that took so many seconds to fail is hanging: the others are asked before it is asked again.
SLOW = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A model of a chain: its context in tokens, its server's address, and the calls the server takes at once."""

    provider: Provider
    context: int = 0
    address: str = ""
    slots: int | None = None

    @property
    def keys(self) -> tuple[str, str]:
        """The names under which failures are noted: the model's at its server, and the server's."""
        return f"{self.address} {self.provider.name}", self.address or self.provider.name


class Chain:
    """Implements `agents.llm.Provider` over `providers`, in order of preference.

    `sleep` waits for seconds, `random` gives numbers in [0, 1), `now` gives seconds on a clock that never
    goes back. The caller of `complete` limits the total time; `seconds` tells that limit, so that an error is raised at
    once if waiting could bring no answer in time. None: no limit is known. `servers` is shared by the chains of a
    process. The calls of a `background` chain give way to all others. Raises `ValueError` without providers.
    """

    def __init__(
        self,
        providers: Sequence[Provider | Member],
        *,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
        now: Callable[[], float],
        seconds: float | None = None,
        servers: Servers | None = None,
        background: bool = False,
    ) -> None:
        if not providers:
            raise ValueError("a chain needs at least one model")
        self._members = tuple(one if isinstance(one, Member) else Member(provider=one) for one in providers)
        self._sleep = sleep
        self._random = random
        self._now = now
        self._seconds = seconds
        self._servers = Servers(now) if servers is None else servers
        self._background = background

    @property
    def name(self) -> str:
        return " > ".join(member.provider.name for member in self._members)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        """Returns the first answer that any model gives.

        Raises the last model's error, with every failure in its text, or a `ContextOverflow` if no model can read that
        much. Only a `ModelError` moves the chain on.
        """
        screen = Screen(on_text)
        failures: list[tuple[str, ModelError]] = []
        until = None if self._seconds is None else self._now() + self._seconds
        waiting = self._order(request.model)
        too_small = 0
        while waiting:
            member = waiting.pop(0)
            asked_at = self._now()
            try:
                completion = await self._retried(member, request, screen, until=until, last=not waiting)
            except asyncio.CancelledError:
                # The caller's patience ended before the model's: let the next message be answered by another one.
                if not screen.used and not self._background and self._now() - asked_at >= SLOW:
                    self._servers.failed(member.keys[0], DEMOTED)
                raise
            except ModelError as error:
                failures.append((member.provider.name, error))
                self._servers.met(member.provider.name, error.code)
                if isinstance(error, ContextOverflow):
                    too_small = max(too_small, member.context)
                    waiting = [other for other in waiting if other.context > too_small]
                else:
                    self._note(member, error)
                if screen.used:
                    break
            else:
                self._servers.answered(*member.keys)
                self._servers.met(member.provider.name)
                return replace(completion, place=self._members.index(member))
        raise _told(failures, cut=screen.used) from failures[-1][1]

    def _note(self, member: Member, error: ModelError) -> None:
        """Notes a failure: a server that can't be reached fails for all of its models."""
        model, server = member.keys
        unreachable = isinstance(error, ModelUnavailable)
        least = UNPAID if isinstance(error, ModelUnpaid) else DEMOTED
        self._servers.failed(server if unreachable else model, max(least, error.retry_after or 0.0))

    async def aclose(self) -> None:
        async with AsyncExitStack() as stack:
            for member in self._members:
                stack.push_async_callback(member.provider.aclose)

    def _order(self, wanted: str) -> list[Member]:
        """Returns the models in the order of asking: the `wanted` one first, but those that are failing last."""
        return sorted(
            self._members, key=lambda member: (self._servers.failing(*member.keys), member.provider.name != wanted)
        )

    async def _retried(
        self, member: Member, request: Request, screen: Screen, *, until: float | None, last: bool
    ) -> Completion:
        """Asks one model, again where that may help. The caller gives up at `until`; `last` means no other model."""
        begun = self._now()
        # Nobody waits for a background call, so one to a model that has just failed only looks whether it is back.
        once = self._background and self._servers.failing(*member.keys)

        def worth_another_try(error: BaseException) -> bool:
            return (
                isinstance(error, ModelError)
                and not once
                and error.retryable
                and (error.retry_after or 0.0) <= LONGEST_WAIT
                and (last or self._now() - begun < SLOW)
                and not screen.used
            )

        def enough(state: RetryCallState) -> bool:
            in_vain = until is not None and self._now() + state.upcoming_sleep >= until
            return in_vain or state.attempt_number > len(WAITS)

        async def attempt() -> Completion:
            nonlocal begun
            begun = self._now()
            with span("model", model=member.provider.name):
                return await self._asked(member, request, screen)

        retrying = AsyncRetrying(
            sleep=self._sleep, stop=enough, wait=self._wait, retry=retry_if_exception(worth_another_try), reraise=True
        )
        completion: Completion = await retrying(attempt)
        return completion

    async def _asked(self, member: Member, request: Request, screen: Screen) -> Completion:
        address = member.keys[1]
        if self._background:
            return await self._servers.in_background(
                address, member.slots, lambda: member.provider.complete(request, screen.listener)
            )
        async with self._servers.live(address, member.slots):
            return await member.provider.complete(request, screen.listener)

    def _wait(self, state: RetryCallState) -> float:
        # tenacity asks for a wait after the last try too, before it sees that it has to stop.
        base = WAITS[min(state.attempt_number, len(WAITS)) - 1]
        pause = base * (0.75 + 0.5 * self._random())
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, ModelError) else None
        return max(pause, asked or 0.0)


def _told(failures: Sequence[tuple[str, ModelError]], *, cut: bool) -> ModelError:
    """Returns an error of the last failure's kind, with every failure in its text."""
    last = failures[-1][1]
    text = " ".join(f"[{name}] {error}" for name, error in failures)
    if len(failures) > 1:
        text = f"{len(failures)} models failed, tried in this order. {text}"
    if cut:
        text = f"{text} Part of the answer was already shown, so no other try was made."
    of_request = any(error.of_request for _, error in failures)
    return type(last)(text, retry_after=last.retry_after, of_request=of_request)
