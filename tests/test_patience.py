"""No test depends on how fast the machine is: none sleeps, gives a part seconds of its own, or reads a clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kit.patience import SECONDS

TESTS: Final = Path(__file__).parent
#: The kit and the platforms keep time for all tests; attacks and crashes last for seconds on purpose.
APART: Final = ("kit", "platforms", "attack", "crash")
#: Options of ours that are limits. Others, such as `burst_seconds`, are waits.
LIMITS: Final = frozenset({"timeout", "request_seconds", "read_seconds", "call_seconds", "fetch_seconds"})
#: What ends work that takes longer than its `seconds`.
ENDING: Final = frozenset({"close", "drain", "finish", "scrub", "exchange"})
CLOCKS: Final = frozenset({"monotonic", "perf_counter"})
#: Clients of HTTP that give up after five seconds unless they are told otherwise.
CLIENTS: Final = frozenset({"httpx.AsyncClient", "httpx.Client", "httpx2.AsyncClient", "httpx2.Client"})

#: By file the calls that may stand there, each with a reason for which a slow machine can't fail it.
EXCEPTIONS: Final[dict[str, dict[str, str]]] = {
    "e2e/test_terminal.py": {"time.sleep": "two Ctrl-C within a second mean something else"},
    "integration/test_discord_gaps.py": {"asyncio.sleep": "people talk on, at a pace that nothing depends on"},
    "integration/test_postgres.py": {"PostgresDatabase.open": "reads that are made to wait are given up soon"},
    "integration/test_replicas.py": {
        "time.monotonic": "a host that does not answer takes its time: longer is no fault",
        "asyncio.sleep": "nobody is taken for dead within the server's own seconds",
    },
    "integration/test_store_faults.py": {"SqliteDatabase.open": "a read that never ends is given up soon"},
    "integration/test_taught_at_once.py": {"asyncio.wait": "who has to wait is not done after a while"},
    "unit/gateway/test_stalls.py": {"time.sleep": "a stall by the clock is the subject"},
}


def offences(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each call by which a test depends on the machine."""
    tree = ast.parse(source)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    def small(node: ast.expr | None, least: float) -> bool:
        value = named.get(node.id) if isinstance(node, ast.Name) else node
        return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and 0 < value.value < least

    def walk(node: ast.AST, stands_in: str) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stands_in = node.name
        if isinstance(node, ast.Call) and is_offence(node, stands_in):
            yield node.lineno, ast.unparse(node.func)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, stands_in)

    def is_offence(call: ast.Call, stands_in: str) -> bool:
        name = ast.unparse(call.func)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        match name.rpartition(".")[2]:
            case "sleep" if name in ("asyncio.sleep", "time.sleep"):
                # A `sleep` that is given to the program in place of asyncio's shortens its waits.
                return stands_in != "sleep" and small(call.args[0] if call.args else None, float("inf"))
            case "timeout" | "wait_for" if call.args and small(call.args[-1], SECONDS):
                return True
            case word if word in CLOCKS and name.startswith("time."):
                return True
            case "time" if name.startswith(("loop.", "asyncio.")):
                return True
        if name in CLIENTS and "timeout" not in given:
            return True
        limits = {*LIMITS, "seconds"} if name.rpartition(".")[2] in ENDING else LIMITS
        return any(small(given.get(limit), SECONDS) for limit in limits)

    yield from walk(tree, "")


def test_no_test_sleeps_or_has_seconds_of_its_own() -> None:
    """On a busy machine it would fail; tests/kit/patience.py has what waits for events, and what moves the clock."""
    found, excused = list[str](), dict[str, set[str]]()
    for file in sorted(TESTS.rglob("*.py")):
        path = str(file.relative_to(TESTS))
        for line, call in () if path.startswith(APART) else offences(file.read_text()):
            if call in EXCEPTIONS.get(path, ()):
                excused.setdefault(path, set()).add(call)
            else:
                found.append(f"tests/{path}:{line}: {call}")
    assert found == []
    assert excused == {path: set(calls) for path, calls in EXCEPTIONS.items()}, "an exception is needed no more"


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("await asyncio.sleep(0.01)", True), ("await asyncio.sleep(0)", False),
        ("PAUSE = 0.1\nawait asyncio.sleep(PAUSE)", True),
        ("async def sleep(seconds):\n    await asyncio.sleep(0.01)", False),
        ("async with asyncio.timeout(5): ...", True),
        ("await asyncio.wait_for(event.wait(), 2)", True),
        ("await asyncio.wait_for(event.wait(), SECONDS)", False),
        ("process.wait(timeout=10)", True), ("await router.drain(seconds=5)", True),
        ("began = time.perf_counter()", True), ("began = time.thread_time()", False), ("httpx.AsyncClient()", True),
        ("httpx.AsyncClient(timeout=SECONDS)", False),
    ],
)  # fmt: skip
def test_what_depends_on_the_machine_is_known(line: str, caught: bool) -> None:
    assert bool(list(offences(line))) == caught
