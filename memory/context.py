"""The context with which every read and write for a person begins: the person, the place and the scope.

Also makes a function on a transaction a method of an open store's part: one call, one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from memory.scope import Scope
from memory.store import chats, people
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction
from memory.store.people import Speaker

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Stored")
Method: TypeAlias = Callable[Concatenate["Stored", P], Coroutine[Any, Any, T]]
TimedMethod: TypeAlias = Callable[Concatenate["Timed", P], Coroutine[Any, Any, T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The person who asks, the session they ask in, and the scope that follows.

    `timezone` is the time zone in effect. The speaker's own language and time zone may be None.
    """

    session: Session
    speaker: Speaker
    scope: Scope
    timezone: str


def anew(reader: Reader, context: Context) -> Context:
    """Returns the context with the scope as it is now: the person may have been linked or unlinked since it was made.

    Every read or write for a person begins with this, in the same transaction.
    """
    return replace(
        context,
        speaker=people.speaker_by_id(reader, context.speaker.id),
        scope=chats.scope_of(reader, context.session, context.speaker.id),
    )


def confined(reader: Reader, context: Context) -> Context:
    """Returns the context as it is now, and hides rows that its scope may not see from the rest of the transaction."""
    fresh = anew(reader, context)
    reader.confine(fresh.scope, session_id=fresh.session.id)
    return fresh


class Stored(Protocol):
    _database: Database


class Timed(Stored, Protocol):
    """A part of an open store with its clock, which stands still inside a transaction."""

    _now: Callable[[], int]


class StorePart:
    def __init__(self, database: Database, *, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now


def reads(act: Callable[Concatenate[Reader, P], T]) -> Method[P, T]:
    """Returns `act` as a method that is one read."""

    @wraps(act)
    async def method(self: Stored, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, *args, **kwargs))

    return method


def asks(act: Callable[Concatenate[Reader, P], T]) -> Method[P, T]:
    @wraps(act)
    async def method(self: Stored, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, *args, **kwargs), single=True)

    return method


def reads_at(act: Callable[Concatenate[Reader, int, P], T]) -> TimedMethod[P, T]:
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
    @wraps(act)
    async def method(self: Timed, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.write(lambda tx: act(tx, self._now(), *args, **kwargs))

    return method


def sees(
    act: Callable[Concatenate[Reader, Scope, P], T],
) -> Callable[Concatenate[Stored, Context, P], Coroutine[Any, Any, T]]:
    """Returns `act` as a method that is one read, within the scope that a context has at that time."""

    @wraps(act)
    async def method(self: Stored, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, confined(reader, context).scope, *args, **kwargs))

    return method


def in_read(act: Callable[Concatenate[S, Reader, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Returns a method that is one read as a whole, made from a plain method that takes the reader first."""

    @wraps(act)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(self, reader, *args, **kwargs))

    return method


def in_write(act: Callable[Concatenate[S, Transaction, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Returns a method that is one write as a whole, made from a plain method that takes the transaction first."""

    @wraps(act)
    async def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.write(lambda tx: act(self, tx, *args, **kwargs))

    return method
