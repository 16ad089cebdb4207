"""A configured server: started when it is first needed, started anew after it ended, its tools pinned.

Invariants: a tool is offered as it was defined when it was first seen, or accepted since. A tool whose definition has
changed is off until it is accepted. A call is made at most once. A server that fails is left alone for a while, longer
each time, and its calls are answered at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog

from agents.spec import ServerSpec
from agents.tools import CHANGED, INSTALL, ChangedTools, ForeignTool, JsonObject, ToolError, installed
from agents.toolservers import definitions
from agents.toolservers.definitions import Definition
from agents.toolservers.session import Connection, OutcomeUnknown, connected

log = structlog.get_logger(__name__)

#: Seconds that a server may take to start, with the downloads of npx or uvx.
_START_SECONDS: Final = 25.0
#: Characters of a changed description, and of a server's error, that are shown.
_SHOWN: Final = 500
#: Characters of definitions, before and after their change, that a person is asked about at once.
_READ_AT_ONCE: Final = 12_000
_NOTHING: Final = Definition(description="", parameters={}, reads=False)
#: Seconds that a server gets to end; the SDK kills it before.
_CLOSE_SECONDS: Final = 15.0
#: Seconds before a server that failed is tried again: at first, and at most.
_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 300.0


class ToolServer:
    def __init__(
        self,
        spec: ServerSpec,
        *,
        call_seconds: float,
        pinned: Mapping[str, Definition],
        keep: Callable[[Mapping[str, Definition]], Awaitable[None]],
        clean: Callable[[str], str],
        monotonic: Callable[[], float],
    ) -> None:
        """Takes the definitions `pinned` so far. `keep` stores them; `clean` removes characters that nobody sees."""
        self._spec = spec
        self._call_seconds = call_seconds
        self._pinned = dict(pinned)
        self._keep_pins = keep
        self._clean = clean
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._seen: Mapping[str, Definition] | None = None
        self._changed = False
        self._connection: Connection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()
        self._key = secrets.token_bytes(16)
        self._under_way = 0
        self._failed = ""
        self._pause = 0.0
        self._again_at = 0.0

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def where(self) -> str:
        return self._spec.where

    async def tools(self) -> Sequence[ForeignTool]:
        """Returns the named tools. Starts the server only if none of them was ever seen."""
        problem = ""
        if any(name not in self._pinned for name in self._spec.tools) and self._seen is None:
            try:
                await self._running()
            except ToolError as exc:
                problem = str(exc)
        return tuple(self._tool(name, problem) for name in self._spec.tools)

    async def changes(self) -> ChangedTools:
        """Returns named tools that the server defines otherwise now. Raises `ToolError` if it can't be asked."""
        changed = await self._changed_tools()
        pairs = ((self._tool_of(name, self._pinned[name]), self._tool_of(name, now)) for name, now in changed.items())
        return ChangedTools(tools=tuple(pairs), code=self._code(changed))

    async def accept(self, code: str) -> bool:
        """Takes the changes to which `changes` gave this code, if they still are the server's. Raises `ToolError`."""
        changed = await self._changed_tools()
        if not changed or code != self._code(changed):
            return False
        await self._pin(changed)
        return True

    async def close(self) -> None:
        self._leaving.set()
        if self._keeper is not None:
            await asyncio.wait({self._keeper}, timeout=_CLOSE_SECONDS)
            # A server at an address may keep us waiting for the end of its session.
            self._keeper.cancel()
            await asyncio.wait({self._keeper}, timeout=_CLOSE_SECONDS)

    def _tool(self, name: str, problem: str) -> ForeignTool:
        definition = self._pinned.get(name)
        if definition is not None:
            return self._tool_of(name, definition, self._off(name, definition))
        return self._tool_of(name, _NOTHING, problem or "the server has no such tool")

    def _tool_of(self, name: str, definition: Definition, off: str = "") -> ForeignTool:
        return ForeignTool(
            name=definitions.offered_name(self.name, name),
            origin=self.name,
            description=self._clean(definition.description),
            arguments=JsonObject(self._cleaned(definition.parameters)),
            reads=definition.reads and name not in self._spec.asks,
            call=partial(self._call, name),
            off=off,
        )

    def _cleaned(self, parameters: dict[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = json.loads(self._clean(json.dumps(parameters, ensure_ascii=False)))
        return cleaned

    def _off(self, name: str, one: Definition) -> str:
        """Returns why a pinned tool can't be called; empty if it can, as far as is known."""
        if one.flaw or self._seen is None:
            return one.flaw
        if name not in self._seen:
            return "the server has no such tool any more"
        now = self._seen[name]
        return "" if now.digest == one.digest else now.flaw or CHANGED

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        connection = await self._running()
        off = self._off(name, self._pinned[name])
        if off:
            raise ToolError(f"{name} is switched off: {off}. An admin can look at it with /tools.")
        self._under_way += 1
        try:
            return self._clean(await connection.call(name, arguments, seconds=self._call_seconds))
        except OutcomeUnknown as exc:
            if self._under_way == 1:
                self._leaving.set()  # nobody else waits for it, and the next call gets a new connection
            raise OutcomeUnknown(self._clean(str(exc))) from exc
        except ToolError as exc:
            raise ToolError(self._clean(str(exc))) from exc
        finally:
            self._under_way -= 1

    # Its life ---------------------------------------------------------------------------------------------------

    async def _running(self) -> Connection:
        """Returns an open connection whose tools were compared. Raises `ToolError` if there is none."""
        async with self._lock:
            connection = self._connection
            if connection is None or connection.ended.is_set() or self._leaving.is_set():
                connection = await self._start()
            elif self._changed:
                self._changed = False
                await self._compare(await self._listed(connection))
            return connection

    async def _start(self) -> Connection:
        if not installed():
            raise ToolError(f"{self.name} needs a package that is not installed: {INSTALL}")
        if self._monotonic() < self._again_at:
            raise ToolError(f"{self.name} is not running ({self._failed}). It is tried again later.")
        await self.close()
        self._leaving, self._changed = asyncio.Event(), False
        ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._keeper = asyncio.create_task(self._keep(ready))
        self._keeper.add_done_callback(self._note_end)
        try:
            either: set[asyncio.Future[Any]] = {self._keeper, ready}
            await asyncio.wait(either, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise self._failure(self._keeper)
            self._connection = ready.result()
            listed = await self._listed(self._connection)
        except BaseException:
            self._leaving.set()
            self._keeper.cancel()
            raise
        self._pause = self._again_at = 0.0
        log.info("toolserver.started", server=self.name, tools=len(listed))
        await self._compare(listed)
        return self._connection

    async def _keep(self, ready: asyncio.Future[Connection]) -> None:
        """Holds a connection open until the server ends or is to be left: the SDK's contexts belong to one task."""
        leaving = self._leaving
        async with connected(self._spec, self._note_change) as connection:
            ready.set_result(connection)
            ends = [asyncio.ensure_future(leaving.wait()), asyncio.ensure_future(connection.ended.wait())]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()

    def _note_change(self) -> None:
        self._changed = True

    def _note_end(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            log.info("toolserver.ended", server=self.name, error=_innermost(error))

    async def _listed(self, connection: Connection) -> Mapping[str, Definition]:
        """Returns the server's tools. Raises `ToolError` if it does not tell them."""
        listing = asyncio.ensure_future(connection.definitions())
        try:
            await asyncio.wait({listing}, timeout=_START_SECONDS)
        finally:
            listing.cancel()
        if not listing.done() or listing.exception() is not None:
            self._leaving.set()
            raise self._failure(listing)
        return listing.result()

    def _failure(self, task: asyncio.Future[Any]) -> ToolError:
        """Returns the error of a start that failed, and has the next start wait."""
        error = task.exception() if task.done() and not task.cancelled() else None
        self._failed = "it gave no answer" if error is None else _innermost(error)
        self._pause = min(_LONGEST_PAUSE, self._pause * 2 or _FIRST_PAUSE)
        self._again_at = self._monotonic() + self._pause
        log.warning("toolserver.failed", server=self.name, error=self._failed, again_in=self._pause)
        return ToolError(f"{self.name} can't be used: {self._failed}.")

    # Its tools --------------------------------------------------------------------------------------------------

    async def _compare(self, listed: Mapping[str, Definition]) -> None:
        """Pins tools that were never seen, and tells the operator of those that have changed."""
        self._seen = listed
        new = {name: listed[name] for name in self._spec.tools if name in listed and name not in self._pinned}
        if new:
            await self._pin(new)
        for name in self._spec.tools:
            one = self._pinned.get(name)
            if one is not None and (off := self._off(name, one)):
                fix = (
                    f"/tools accept {self.name}" if off == CHANGED else "mend the server, or take the tool off the list"
                )
                now = listed[name].description[:_SHOWN] if name in listed else ""
                log.warning("tool.off", server=self.name, tool=name, why=off, now=now, fix=fix)

    async def _changed_tools(self) -> Mapping[str, Definition]:
        """Returns the changed tools that may be accepted, as many as a person reads at once."""
        await self._running()
        assert self._seen is not None
        taken: dict[str, Definition] = {}
        size = 0
        for name, now in self._seen.items():
            if now.flaw or now.digest == self._pinned[name].digest:
                continue
            size += len(now.to_json()) + len(self._pinned[name].to_json())
            if taken and size > _READ_AT_ONCE:
                break
            taken[name] = now
        return taken

    def _code(self, changed: Mapping[str, Definition]) -> str:
        """Returns a code of these definitions, which a server can't foresee."""
        return hashlib.blake2b(definitions.to_text(changed).encode(), key=self._key, digest_size=4).hexdigest()

    async def _pin(self, taken: Mapping[str, Definition]) -> None:
        self._pinned |= taken
        await self._keep_pins({name: one for name, one in self._pinned.items() if name in self._spec.tools})


def _innermost(error: BaseException) -> str:
    """Returns the beginning of the error inside the groups in which the SDK wraps it: its words may be the server's."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error)[:_SHOWN].rstrip(".") or type(error).__name__
