"""The actions of a test on any platform: time, faults, and a look at what the bot asked for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol, TypeAlias

from tests.platforms.breaking import Timing
from tests.platforms.faults import Faults
from tests.platforms.ledger import Ledger

JSON: TypeAlias = dict[str, Any]
Action: TypeAlias = Callable[..., JSON | Awaitable[JSON | None] | None]

#: Seconds between two looks at what is waited for.
_LOOK = 0.05


class Wrong(Exception):
    """The test asked for something that can't be; the message says what."""


class Account(Protocol):
    """One bot."""

    ledger: Ledger
    faults: Faults[Any]
    revoked: bool


class Platform(Protocol):
    """The platform, whose clock is moved by `shift` seconds."""

    timing: Timing
    shift: float


async def act(platform: Any, actions: Mapping[str, Action], token: str, action: str, fields: JSON) -> JSON:
    """Do an action. Raises `Wrong`, and what the platform refuses."""
    account, todo = platform.accounts.get(token), actions.get(action)
    if account is None or todo is None:
        raise Wrong(f"no bot has the token {token}" if account is None else f"there is no action {action}")
    try:
        inspect.signature(todo).bind(platform, account, **fields)
    except TypeError as error:
        raise Wrong(f"{action}: {error}") from error
    done = todo(platform, account, **fields)
    answer = await done if inspect.isawaitable(done) else done
    return {} if answer is None else answer


async def wait(
    pulse: Callable[[float], Awaitable[None]],
    missing: Callable[[], str],
    last: Callable[[], float],
    *,
    timeout: float,
    idle: float = 0,
) -> JSON:
    """Waits until nothing is `missing`, which gives it in words, and looks again at each beat of the `pulse`.

    `last` is the time of the last request. To be idle for so many seconds is to be so for as many looks, too: on a busy
    machine seconds pass in which the bot can't go on.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    at, looks = last(), 0
    while True:
        looks = looks + 1 if last() == at else 0
        at, lacks = last(), missing()
        if not lacks and looks > idle / _LOOK:
            return {"met": True, "missing": ""}
        if loop.time() >= deadline:
            return {"met": False, "missing": lacks or f"it was idle for {looks} looks"}
        # Some of it changes with time alone.
        await pulse(min(_LOOK, max(0.0, deadline - loop.time())))


def _revoke(_platform: Platform, account: Account, *, revoked: bool) -> None:
    account.revoked = revoked


def _pass_time(platform: Platform, _account: Account, *, seconds: float) -> None:
    if seconds < 0:
        raise Wrong("the platform's time only goes forward")
    platform.shift += seconds


def _timing(platform: Platform, _account: Account, *, latency_ms: float | None = None, effect: Any = None) -> None:
    if latency_ms is not None:
        platform.timing.latency = latency_ms / 1000
    if effect is not None:
        if effect not in ("arrival", "mixed", "late"):
            raise Wrong(f"a request takes effect at arrival, mixed or late, not {effect}")
        platform.timing.effect = effect


def _fault(_platform: Platform, account: Account, **fields: Any) -> JSON:
    try:
        return {"fault": account.faults.make(**fields)}
    except (TypeError, ValueError) as error:
        raise Wrong(f"no fault can be made of this: {error}") from error


def _heal(_platform: Platform, account: Account) -> None:
    account.faults.heal()


def _requests(_platform: Platform, account: Account, *, method: str | None = None) -> JSON:
    return {"requests": [asdict(one) for one in account.ledger.last if method in (None, one.method)]}


ACTIONS: Mapping[str, Action] = {
    "revoke": _revoke,
    "pass_time": _pass_time,
    "timing": _timing,
    "fault": _fault,
    "heal": _heal,
    "requests": _requests,
}
