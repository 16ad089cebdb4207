"""The figures of the house count what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench.house import LONG, File, two_way, walks
from tests.kit.tables import each_row

ROOT = Path(__file__).parents[3]
#: The most files that a walk may pass; whoever shortens one writes the lower figure here and into
#: docs/design/architecture.md.
MOST_FILES = {"message": 79, "/remember": 74, "/forget": 90, "night job": 8}
_SOURCE = '''"""Does a thing.

In two sentences.
"""

import json

# A reason.
TABLE = {
    # The first.
    1: "one",
}
SHORT = 1


class Thing:
    """A thing."""

    PARTS = (
        1,
        2,
    )


def act() -> int:
    """Acts."""
    one = {
        1: 2,
    }
    return one[1]  # the second
'''


def test_each_line_is_of_one_kind() -> None:
    """A table in a function is code, and an empty line of a docstring belongs to it."""
    kinds = File("memory/a.py", _SOURCE).kinds()
    assert kinds == Counter(docstring=6, blank=7, comment=2, table=7, code=7, **{"import": 1})
    assert kinds.total() == len(_SOURCE.splitlines())


@each_row(("lines", "places"), [(LONG, []), (LONG + 1, ["memory/a.py:2 act"])])
def test_a_function_is_long_from_its_first_line_to_its_last(lines: int, places: list[str]) -> None:
    """Its name is told with the place, so that it is found."""
    text = "\nasync def act() -> None:\n" + "    pass\n" * (lines - 1)
    assert list(File("memory/a.py", text).long_functions()) == places


@each_row(
    ("path", "text", "knows"),
    [
        ("memory/a.py", "held = await_(database.peers.hold(key))\n", True),
        ("memory/a.py", "from memory.store.replicas import answering\n", True),
        ("memory/a.py", "class Alone: ...\n", True),
        ("memory/store/postgres/a.py", "held = database.peers\n", False),
        ("memory/a.py", '"""Its peers."""\n', False),
    ],
)
def test_a_file_knows_of_other_processes_by_the_names_in_its_code(path: str, text: str, knows: bool) -> None:
    """But for the room of the engine that several processes share."""
    assert File(path, text).knows_other_processes() is knows


def test_rooms_that_import_each_other_are_counted_as_a_pair() -> None:
    """However the import is written; the files beside the rooms may know them all."""
    files = [
        File("gateway/app.py", "from gateway.ops import serve\n"),
        File("gateway/ops/serve.py", "from gateway import app\nimport gateway.page.site\n"),
        File("gateway/ops/health.py", "from gateway.page import site\nfrom gateway.page.site import Site\n"),
        File("gateway/page/site.py", "def f():\n    from gateway.ops.health import ask\n"),
        File("gateway/cli/start.py", "from gateway.ops import serve\n"),
    ]
    assert list(two_way(files)) == ["ops ↔ page (2 files and 1)"]


def test_variables_and_parameters_are_counted_wherever_they_stand() -> None:
    names = Counter(File("memory/a.py", "def f(one: int) -> int:\n    return one + it.one + g(one=1)\n").names())
    assert names["one"] == 2


def test_no_walk_passes_more_files_than_before() -> None:
    """Whoever follows a message through the house opens each of them."""
    walked = {name: files for name, (files, _) in walks(ROOT).items()}
    assert walked.keys() == MOST_FILES.keys()
    assert {name: files for name, files in walked.items() if files > MOST_FILES[name]} == {}


@pytest.mark.campaign(long=True)
def test_one_command_prints_all_of_it() -> None:
    """The walks with the lines, and of a revision as of this tree."""
    revision = ("--rev", "HEAD") if (ROOT / ".git").exists() else ()
    command = [sys.executable, "-m", "bench.house", "--json", *revision]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["walks"].keys() == {"message", "/remember", "/forget", "night job"}
    assert figures["lines"] == sum(figures["kinds"].values()) > 10_000
    assert figures["options"] > 50
