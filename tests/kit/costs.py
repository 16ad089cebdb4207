"""`pytest --costs`: what each file takes of the processor, with the programs that its tests start and wait for.

The clock tells how busy the machine was; this tells where a quicker suite can be had.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Generator
from typing import Final

import pytest

#: The files and the tests that are listed.
MOST: Final = 30
_NAME: Final = "processor_seconds"
_BEGAN: Final = pytest.StashKey[float]()


def spent() -> float:
    """Returns the processor seconds of this process and of those of its children that have ended."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def begin(item: pytest.Item) -> None:
    """Is to be called before anything is set up for a test."""
    item.stash[_BEGAN] = spent()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_NAME, spent() - item.stash[_BEGAN]))
    return report


def tell(terminal: pytest.TerminalReporter) -> None:
    """Prints the dearest files and tests, the whole first."""
    tests = Counter[str]()
    for reports in terminal.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "teardown":
                tests[report.nodeid] += dict(report.user_properties).get(_NAME, 0.0)
    files = Counter[str]()
    for test, seconds in tests.items():
        files[test.partition("::")[0]] += seconds
    terminal.section(f"{tests.total():.0f} s of the processor, without the collection")
    for names in (files, tests):
        for name, seconds in names.most_common(MOST):
            terminal.line(f"{seconds:7.1f} s  {name}")
        terminal.line("")
