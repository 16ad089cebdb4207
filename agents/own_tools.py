"""Tools that the operator has written: a Python file in the folder tools/, or an installed entry point.

Such a module has a function `run`, whose typed arguments are what the model gives, and whose docstring tells the model
what it is for. `READS = True` says that it changes nothing, so that nobody is asked.

Invariants: only tools that an agent's file names are loaded. An error in a tool is told to the model and the log, and
ends nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import structlog
from pydantic import BaseModel, ConfigDict, create_model

from agents import plugins
from agents.tools import ChangedTools, ForeignTool, ToolError, missing_tools
from agents.toolservers import definitions

log = structlog.get_logger(__name__)


class UnusableTool(Exception):
    """A tool of one's own can't be used. `str()` says which, why and what to do."""


class OwnTools:
    name = "own"
    where = ""

    def __init__(self, names: Sequence[str], folder: Path, *, call_seconds: float, clean: Callable[[str], str]) -> None:
        """Loads the tools. Raises `UnusableTool`."""
        self._call_seconds = call_seconds
        self._clean = clean
        self._tools = tuple(self._made(name, _loaded(name, folder)) for name in names)

    async def tools(self) -> Sequence[ForeignTool]:
        return self._tools

    async def changes(self) -> ChangedTools:
        return ChangedTools()

    async def accept(self, code: str) -> bool:
        return False

    async def close(self) -> None:
        return None

    def _made(self, name: str, module: ModuleType) -> ForeignTool:
        run = getattr(module, "run", None)
        described = inspect.getdoc(run) or inspect.getdoc(module)
        if not callable(run) or not described:
            raise UnusableTool(f"The tool {name} needs a function run with a docstring that says what it is for.")
        return ForeignTool(
            name=name,
            origin=self.name,
            description=described,
            arguments=_arguments(name, run),
            reads=getattr(module, "READS", False) is True,
            call=partial(self._call, name, run),
        )

    async def _call(self, name: str, run: Callable[..., Any], arguments: BaseModel) -> str:
        given = {field: getattr(arguments, field) for field in type(arguments).model_fields}
        running = asyncio.ensure_future(_kept_in(run, given))
        try:
            await asyncio.wait({running}, timeout=self._call_seconds)
            if not running.done():
                raise ToolError(
                    f"{name} did not end within {self._call_seconds:g} seconds. It may have done something."
                )
        finally:
            running.cancel()
            await asyncio.wait({running}, timeout=1.0)
        if running.cancelled() or running.exception() is not None:
            error = None if running.cancelled() else running.exception()
            # Not the error's text, which may hold what a person said.
            frames = traceback.extract_tb(error.__traceback__) if error is not None else ()
            lines = [frame.lineno for frame in frames[-1:]]
            log.warning("tool.failed", tool=name, error=type(error).__name__, line=lines)
            raise ToolError(f"{name} failed: {type(error).__name__}: {error}"[: definitions.LONGEST])
        try:
            return await asyncio.to_thread(self._as_text, running.result())
        except (TypeError, ValueError, RecursionError) as exc:
            raise ToolError(f"{name} returned what can't be written as JSON: {exc}"[: definitions.LONGEST]) from exc

    def _as_text(self, returned: object) -> str:
        text = returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False, default=str)
        return definitions.capped(self._clean(text)) or "(It returned nothing.)"


async def _kept_in(run: Callable[..., Any], given: dict[str, Any]) -> object:
    try:
        return await (run(**given) if inspect.iscoroutinefunction(run) else asyncio.to_thread(run, **given))
    except (SystemExit, KeyboardInterrupt) as exc:
        raise RuntimeError(f"it tried to end the program ({type(exc).__name__})") from exc


def _loaded(name: str, folder: Path) -> ModuleType:
    """Returns the module of a tool. A file in the folder wins over an installed entry point."""
    file = folder / f"{name}.py"

    def load() -> ModuleType:
        if not file.is_file():
            module: ModuleType = plugins.load(plugins.TOOLS, name)
            return module
        spec = spec_from_file_location(f"remora_tool_{name.replace('-', '_')}", file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    if missing_tools([name], folder):
        raise UnusableTool(f"There is no tool {name}: neither {file} nor an installed entry point of {plugins.TOOLS}.")
    return _outcome(name, load)


def _outcome(name: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Returns the result of `load`. Any exception from a stranger's code becomes `UnusableTool`."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        loading: Future[ModuleType] = pool.submit(load)
    error = loading.exception()
    if error is not None:
        raise UnusableTool(f"The tool {name} can't be loaded: {type(error).__name__}: {error}") from error
    return loading.result()


def _arguments(name: str, run: Callable[..., Any]) -> type[BaseModel]:
    """Returns a model of a function's arguments. Raises `UnusableTool` if one has no type."""
    hints = get_type_hints(run, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(run).parameters.values():
        if parameter.name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UnusableTool(f"The tool {name} needs a type for each argument of run, such as city: str.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
