"""The context that every read and write for somebody begins with: the person, the place and the scope."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memory.scope import Scope
from memory.store import chats, people
from memory.store.chats import Session
from memory.store.database import Reader
from memory.store.methods import Stored
from memory.store.people import Speaker

P = ParamSpec("P")
T = TypeVar("T")


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

    Every read or write for somebody begins with this, in the same transaction.
    """
    return replace(
        context,
        speaker=people.speaker_by_id(reader, context.speaker.id),
        scope=chats.scope_of(reader, context.session, context.speaker.id),
    )


def sees(
    act: Callable[Concatenate[Reader, Scope, P], T],
) -> Callable[Concatenate[Stored, Context, P], Coroutine[Any, Any, T]]:
    """Returns `act` as a method that is one read, within the scope that a context has at that time."""

    @wraps(act)
    async def method(self: Stored, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda reader: act(reader, anew(reader, context).scope, *args, **kwargs))

    return method
