"""Makes a function on a transaction a method of an open store's part: one call, one transaction."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from memory.store.database import Database, Reader, Transaction

P = ParamSpec("P")
T = TypeVar("T")
Method: TypeAlias = Callable[Concatenate["Stored", P], Coroutine[Any, Any, T]]
TimedMethod: TypeAlias = Callable[Concatenate["Timed", P], Coroutine[Any, Any, T]]


class Stored(Protocol):
    """A part of an open store."""

    _database: Database


class Timed(Stored, Protocol):
    """A part of an open store with its clock, which stands still inside a transaction."""

    _now: Callable[[], int]


def reads(act: Callable[Concatenate[Reader, P], T]) -> Method[P, T]:
    """Returns `act` as a method that is one read."""

    @wraps(act)
    async def method(self: Stored, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, *args, **kwargs))

    return method


def reads_at(act: Callable[Concatenate[Reader, int, P], T]) -> TimedMethod[P, T]:
    """Returns `act` as a method that is one read, at the moment that it is given."""

    @wraps(act)
    async def method(self: Timed, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, self._now(), *args, **kwargs))

    return method


def writes(act: Callable[Concatenate[Transaction, P], T]) -> Method[P, T]:
    """Returns `act` as a method that is one write."""

    @wraps(act)
    async def method(self: Stored, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.write(lambda tx: act(tx, *args, **kwargs))

    return method


def writes_at(act: Callable[Concatenate[Transaction, int, P], T]) -> TimedMethod[P, T]:
    """Returns `act` as a method that is one write, at the moment that it is given."""

    @wraps(act)
    async def method(self: Timed, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.write(lambda tx: act(tx, self._now(), *args, **kwargs))

    return method
