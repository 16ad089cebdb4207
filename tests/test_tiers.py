"""`make test` is quick: what kills a program, or runs the whole of it, belongs to `make campaigns`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.kit.tables import each_row

TESTS: Final = Path(__file__).parent
#: Folders whose every test is a campaign.
CAMPAIGNS: Final = ("attack", "browser", "crash", "e2e")
#: What kills a process, and what starts the program in one of its own. The journeys start it by their house.
HEAVY: Final = frozenset({"SIGKILL", "spawned"})
#: Modules of lives that end, of attacks and of scenarios; whatever a test takes from them makes it a campaign.
MACHINES: Final = ("tests.attack", "tests.crash", "tests.kit.lives", "tests.kit.neighbour")
MARKS: Final = ("mark.campaign", "mark.postgres")


def unmarked(source: str, *, whole: bool = False) -> list[str]:
    """Returns the tests that are heavy and carry no mark; all without one count as heavy in a `whole` campaign."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    heavy = {*HEAVY}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(MACHINES):
            heavy |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node) and _is_marked(node.value):
            return []
    words = {name: _words(node) for name, node in functions.items()}
    while more := {name for name, used in words.items() if used & heavy} - heavy:
        heavy |= more
    return [
        name
        for name, node in functions.items()
        if name.startswith("test_") and (whole or name in heavy) and not any(map(_is_marked, node.decorator_list))
    ]


def _is_marked(node: ast.expr) -> bool:
    return any(mark in ast.unparse(node) for mark in MARKS)


def _words(function: ast.AST) -> set[str]:
    """Returns the names in a function: of variables, attributes, and the fixtures it asks for."""
    nodes = list(ast.walk(function))
    return (
        {node.id for node in nodes if isinstance(node, ast.Name)}
        | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        | {node.arg for node in nodes if isinstance(node, ast.arg)}
    )


def test_what_kills_or_runs_the_whole_program_is_a_campaign() -> None:
    """Else the tests that everybody runs before a commit take longer from week to week."""
    offending = [
        f"tests/{path}: {name}"
        for file in sorted(TESTS.rglob("test_*.py"))
        for path in [file.relative_to(TESTS)]
        for name in unmarked(file.read_text(), whole=path.parts[0] in CAMPAIGNS)
    ]
    assert offending == []


@each_row(
    ("source", "tests"),
    [
        ("def test_a(): os.kill(pid, signal.SIGKILL)", ["test_a"]),
        ("@pytest.mark.campaign\ndef test_a(): os.kill(pid, signal.SIGKILL)", []),
        ("pytestmark = pytest.mark.postgres\ndef test_a(): os.kill(pid, signal.SIGKILL)", []),
        ("def end(): os.kill(pid, SIGKILL)\ndef test_a(): end()\ndef test_b(): ...", ["test_a"]),
        ("async def served():\n    async with spawned(folder): yield\nasync def test_a(served): ...", ["test_a"]),
        ("from tests.crash.world import world\nasync def test_a(): await world()", ["test_a"]),
        ("def test_a(): process.terminate()", []),
    ],
)
def test_a_heavy_test_is_known_by_what_it_uses(source: str, tests: list[str]) -> None:
    assert unmarked(source) == tests
