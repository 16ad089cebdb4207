"""One connection to a server of the Model Context Protocol, through the protocol's own SDK.

The SDK is an extra of the installation and takes seconds to load, so it is imported when the first server is needed.

Invariants: a call is sent once and never again. A program on this machine gets of our environment only what programs
need to start. A server is given no way to ask anything of us: no model, no files, no questions to people. A server's
schema of results never reaches the SDK, nor do its endless lists. A message that reaches the SDK has at most
`MOST_VALUES` values and `relay.LONGEST` bytes, since the SDK reads it on the event loop.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from pydantic import ValidationError

from agents.spec import ServerSpec
from agents.tools import ToolError
from agents.toolservers import definitions, relay
from agents.toolservers.addresses import resolved_forbidden
from agents.toolservers.definitions import Definition
from agents.toolservers.relay import Allowance

log = structlog.get_logger(__name__)

#: Seconds that a call which is given up gets to end.
_CANCEL_SECONDS: Final = 2.0
#: The part of the messages allowed at once that a request of the server's counts for: each is a task of the SDK's, and
#: some wait for an answer to their answer.
_REQUEST: Final = relay.MESSAGES[0] / 100
#: The most pages of a list of tools that are read; a server whose list never ends is given up.
_MOST_PAGES: Final = 20
#: The numbers of dropped lines at which the operator is told.
_LOGGED: Final = (1, 100)
#: Codes of JSON-RPC by which a server says that it did nothing: unknown method, unfit arguments.
_NOT_DONE: Final = (-32601, -32602)


class OutcomeUnknown(ToolError):
    """A call was sent and no answer came. The connection is of no use any more."""


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection. `ended` is set when the server has gone."""

    server: str
    client: Any
    ended: asyncio.Event

    async def definitions(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        cursor = None
        for _ in range(_MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor, cache_mode="bypass")
            for tool in page.tools:
                shown = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                found[tool.name] = definitions.read(shown)
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def call(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> str:
        """Returns the text of a call's result. Raises `ToolError`, or `OutcomeUnknown` if no answer came."""
        from mcp import MCPError

        # A task of its own, so that all exceptions of the SDK are handled in one place.
        ending: asyncio.Future[Any] = asyncio.ensure_future(self.ended.wait())
        calling: asyncio.Future[Any] = asyncio.ensure_future(self.client.session.call_tool(tool, arguments))
        try:
            await asyncio.wait({calling, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done() and ending.done():
                await asyncio.wait({calling}, timeout=_CANCEL_SECONDS)  # an answer sent before the end is still read
            if not calling.done():
                raise OutcomeUnknown(f"{self.server} did not answer within {seconds:g} seconds. {_UNKNOWN}")
        finally:
            ending.cancel()
            calling.cancel()
            await asyncio.wait({calling}, timeout=_CANCEL_SECONDS)
        error = None if calling.cancelled() else calling.exception()
        if calling.cancelled() or (error is not None and not isinstance(error, MCPError)):
            raise OutcomeUnknown(f"{self.server} answered in a way that can't be read. {_UNKNOWN}")
        if isinstance(error, MCPError):
            if error.code == relay.UNREAD:
                raise ToolError(f"The tool was carried out; {definitions.capped(error.message)}. {_LESS}")
            if error.code in _NOT_DONE:
                raise ToolError(f"{self.server} refuses: {definitions.capped(error.message)}")
            raise OutcomeUnknown(f"{self.server}: {definitions.capped(error.message)}. {_UNKNOWN}")
        text: str = calling.result().content[0].text
        if calling.result().is_error:
            raise ToolError(text)
        return text


_UNKNOWN: Final = "It is unknown whether the call was carried out. It is not repeated: tell the person so."
_LESS: Final = "The same call would end the same way: tell the person so, or ask for less."


@asynccontextmanager
async def connected(spec: ServerSpec, on_changed: Callable[[], None]) -> AsyncIterator[Connection]:
    """Yields a connection to a server; `on_changed` is told when its tools change. Raises `ToolError`."""
    await asyncio.to_thread(import_module, "mcp")  # takes half a second of the processor
    from mcp import Client
    from mcp.types import ToolListChangedNotification

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_changed()

    ended = asyncio.Event()
    messages = Allowance(*relay.MESSAGES)
    transport = _watched(await _transport(spec, messages), spec, ended, messages)
    async with Client(transport, message_handler=heard, cache=None) as client:
        yield Connection(spec.name, client, ended)


async def _transport(spec: ServerSpec, messages: Allowance) -> AbstractAsyncContextManager[Any]:
    if spec.url is None:
        return _program(spec)
    parts = urlsplit(spec.url)
    try:
        found = await resolved_forbidden(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    except OSError as exc:
        raise ToolError(f"{parts.hostname} is not found ({exc.strerror or exc})") from exc
    if found is not None:
        raise ToolError(f"{parts.hostname} leads to {found}, an address for the settings of machines")
    # Imported here, with the SDK's own client.
    from agents.toolservers.remote import remote

    return remote(spec.url, spec.headers, messages)


@asynccontextmanager
async def _program(spec: ServerSpec) -> AsyncIterator[Any]:
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

    path = (get_default_environment() | spec.env).get("PATH")
    program = shutil.which(spec.command[0], path=path)
    if program is None:
        raise ToolError(f"the program {spec.command[0]} is not found")
    relay = str(Path(__file__).with_name("relay.py"))
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-I", relay, program, *spec.command[1:]],
        env=spec.env,
        encoding_error_handler="replace",
    )
    nowhere: Any = subprocess.DEVNULL  # the SDK asks for a file, and passes it on to the subprocess
    async with stdio_client(parameters, errlog=nowhere) as io:
        yield io


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[Any], spec: ServerSpec, ended: asyncio.Event, messages: Allowance
) -> AsyncIterator[Any]:
    """Yields a transport that sets `ended` when the server's messages end, or are more than `messages` allows."""
    try:
        async with transport as (read, write):
            yield _Watched(read, spec, ended, messages), write
    finally:
        ended.set()


class _Watched:
    """A stream of messages that notes its end, and ends when it floods. What is no message is dropped and counted."""

    def __init__(self, inner: Any, spec: ServerSpec, ended: asyncio.Event, messages: Allowance) -> None:
        self._inner = inner
        self._spec = spec
        self._noise = 0
        self._ended = ended
        self._messages = messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> _Watched:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Awaitable[bool | None]:
        self._ended.set()
        return await self._inner.__aexit__(*error)  # type: ignore[no-any-return]

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._inner:
            if isinstance(item, Exception):
                item = self._unreadable(item)  # noqa: PLW2901
            message = getattr(item, "message", None)
            if not self._messages.take(_REQUEST if hasattr(message, "method") and hasattr(message, "id") else 1):
                break
            if item is None:
                continue
            _reduce(getattr(message, "result", None), self._spec.tools)
            yield item
        self._ended.set()

    def _unreadable(self, problem: Exception) -> Any:
        """Returns the error in place of an answer that the SDK can't read. Its words, anybody's, are not logged."""
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        if isinstance(problem, ValidationError):
            given = problem.errors(include_url=False)[0]["input"]
            answer = (given if isinstance(given, str) else json.dumps(given, default=str)).encode("utf-8", "replace")
            if refusal := relay.refusal(answer, "its answer can't be read"):
                return SessionMessage(jsonrpc_message_adapter.validate_json(refusal))
        self._noise += 1
        if self._noise in _LOGGED:
            fix = "have it write to standard output nothing but messages of the protocol"
            log.warning("toolserver.noise", server=self._spec.name, dropped=self._noise, fix=fix)
        return None


def _reduce(result: object, named: Sequence[str]) -> None:
    """Removes from a server's result what is not used here, before the SDK reads it.

    It would compile the schemas of results and check results against them on the event loop, where one pattern can take
    for ever, and copy each value some times. Of a call's result the text is left, of a list the named tools.
    """
    if not isinstance(result, dict):
        return
    tools = result.get("tools")
    if isinstance(tools, list):
        known = {tool["name"]: tool for tool in tools if isinstance(tool, dict) and tool.get("name") in named}
        result["tools"] = list(known.values())
        for tool in known.values():
            tool.pop("outputSchema", None)
            tool.pop("_meta", None)
    elif "capabilities" not in result and result.get("resultType", "complete") == "complete":
        text = definitions.text_of(result)
        for key in [key for key, value in result.items() if isinstance(value, (dict, list))]:
            del result[key]
        result |= {"content": [{"type": "text", "text": text}], "isError": bool(result.get("isError"))}
        result.pop("structuredContent", None)
