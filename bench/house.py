"""Prints what the house is made of: its lines, its walks, and what its rules count.

    python -m bench.house                this working tree
    python -m bench.house --rev v0.1.0   a revision instead, from a temporary worktree
    python -m bench.house --json

Each line of the four packages is of one kind: blank, docstring, comment, import, table (an assignment over several
lines outside of functions), or code. The way of a message and that of `/forget` are followed in a running bot
(`bench.walks`); all else is read from the files, so any revision can be counted. `tests/test_architecture.py` holds
the figures that must not grow.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Final

from bench.revisions import checked_out

PACKAGES: Final = ("gateway", "channels", "memory", "agents")
#: The most lines that a function should have.
LONG: Final = 50
#: Names of variables that say nothing of what they hold.
WORDS: Final = ("one", "found", "said", "shown", "told")
#: Names by which code knows that other processes may answer, too: the share that a process has of a store's work, what
#: it is asked, and the names of the processes in older revisions.
_OTHER_PROCESSES: Final = frozenset(
    {"OwnShare", "is_alone", "only_here", "memory.store.share"}
    | {"peers", "Peers", "Peer", "Alone", "replicas", "replica", "Replica", "duty"}
)
#: The room that may know of them.
_THEIR_ROOM: Final = "memory/store/postgres/"
_WALK: Final = re.compile(r"^(\S.*?) +(\d+) files +(\d+) functions$", re.MULTILINE)
_TREE: Final = Path(__file__).resolve().parents[1]
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class File:
    """A file of a package; `path` begins with the package."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def length(self) -> int:
        return len(self.text.splitlines())

    def kinds(self) -> Counter[str]:
        """Returns the number of lines of each kind."""
        lines = self.text.splitlines()
        kinds = ["code"] * len(lines)
        for node in self.nodes:
            body = getattr(node, "body", None)
            if isinstance(node, ast.Import | ast.ImportFrom):
                _mark(kinds, node, "import")
            if isinstance(node, ast.Module | ast.ClassDef):
                for table in node.body:
                    if isinstance(table, ast.Assign | ast.AnnAssign) and table.lineno != table.end_lineno:
                        _mark(kinds, table, "table")
            if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTION)) and ast.get_docstring(node, clean=False):
                assert isinstance(body, list)
                _mark(kinds, body[0], "docstring")
        for number, line in enumerate(lines):
            if kinds[number] != "docstring" and (not line.strip() or line.lstrip().startswith("#")):
                kinds[number] = "comment" if line.strip() else "blank"
        return Counter(kinds)

    def names(self) -> Iterator[str]:
        """Yields the names of variables and parameters, each as often as it stands."""
        for node in self.nodes:
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg

    def long_functions(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, _FUNCTION) and (node.end_lineno or 0) - node.lineno + 1 > LONG:
                yield f"{self.path}:{node.lineno} {node.name}"

    def modules(self) -> Iterator[str]:
        """Yields the modules that it imports; of `from a import b` both a and a.b."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def knows_other_processes(self) -> bool:
        names = {*self.names(), *(part for module in self.modules() for part in module.split("."))}
        names |= {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        names |= {node.name for node in self.nodes if isinstance(node, ast.ClassDef)} | {*self.modules()}
        return not self.path.startswith(_THEIR_ROOM) and bool(names & _OTHER_PROCESSES)


def _mark(kinds: list[str], node: ast.stmt, kind: str) -> None:
    for number in range(node.lineno - 1, node.end_lineno or node.lineno):
        kinds[number] = kind


@dataclass(frozen=True, kw_only=True)
class House:
    """The figures that are read from the files."""

    lines: int
    kinds: Mapping[str, int]
    test_lines: int
    options: int | None
    long_functions: tuple[str, ...]
    two_way_rooms: tuple[str, ...]
    process_files: tuple[str, ...]
    longest_files: Mapping[str, int]
    words: Mapping[str, int]

    @classmethod
    def of(cls, root: Path) -> House:
        files = [
            File(str(path.relative_to(root)), path.read_text("utf-8"))
            for package in PACKAGES
            for path in sorted((root / package).rglob("*.py"))
        ]
        page = root / "docs" / "configuration.md"
        kinds = sum((file.kinds() for file in files), Counter[str]())
        names = Counter(name for file in files for name in file.names())
        return cls(
            lines=kinds.total(),
            kinds=dict(kinds.most_common()),
            test_lines=sum(len(path.read_text("utf-8").splitlines()) for path in (root / "tests").rglob("*.py")),
            # A test holds this page to the models of the configuration.
            options=len(re.findall(r"^\| `", page.read_text("utf-8"), re.MULTILINE)) if page.exists() else None,
            long_functions=tuple(name for file in files for name in file.long_functions()),
            two_way_rooms=tuple(two_way(files)),
            process_files=tuple(file.path for file in files if file.knows_other_processes()),
            longest_files={file.path: file.length for file in sorted(files, key=lambda file: -file.length)[:10]},
            words={word: names[word] for word in WORDS},
        )


def two_way(files: list[File]) -> Iterator[str]:
    """Yields the pairs of the gateway's rooms that import each other, with the number of files each way."""
    ways: Counter[tuple[str, str]] = Counter()
    rooms = {file.path.split("/")[1] for file in files if file.path.startswith("gateway/") and file.path.count("/") > 1}
    for file in files:
        own = file.path.split("/")[1]
        if file.path.startswith("gateway/") and own in rooms:
            used = {name.split(".")[1] for name in file.modules() if name.startswith("gateway.")}
            ways.update((own, room) for room in used & rooms - {own})
    for room, other in combinations(sorted(rooms), 2):
        if ways[room, other] and ways[other, room]:
            yield f"{room} ↔ {other} ({ways[room, other]} files and {ways[other, room]})"


def walks(root: Path) -> dict[str, tuple[int, int]]:
    """Returns the files and functions of each walk; nothing if that revision can't follow them."""
    done = subprocess.run([sys.executable, "-m", "bench.walks"], cwd=root, capture_output=True, text=True, check=False)
    return {name: (int(files), int(functions)) for name, files, functions in _WALK.findall(done.stdout)}


def report(house: House, walked: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    yield f"{house.lines:,} lines of Python in the four packages"
    yield "  " + " · ".join(f"{kind} {count:,}" for kind, count in house.kinds.items())
    yield f"{house.test_lines:,} lines of tests"
    for name, (files, functions) in walked.items():
        yield f"{name}: {files} files, {functions} functions"
    if not walked:
        yield "walks: not counted, this revision has no bench.walks"
    yield f"{house.options or 'not counted:'} options of the configuration"
    for title, names in (
        (f"functions over {LONG} lines", house.long_functions),
        ("pairs of rooms of the gateway that import each other", house.two_way_rooms),
        ("files outside store/postgres that know of other processes", house.process_files),
    ):
        yield f"{len(names)} {title}"
        yield from (f"  {name}" for name in names)
    yield "the longest files"
    yield from (f"  {length:6,} {name}" for name, length in house.longest_files.items())
    yield "as variables: " + " · ".join(f"{word} {count:,}" for word, count in house.words.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rev", help="a commit, branch or tag instead of this working tree")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.rev:
        tree: AbstractContextManager[Path] = checked_out(_TREE, asked.rev)
    else:
        tree = nullcontext(_TREE)
    with tree as root:
        house, walked = House.of(root), walks(root)
    if asked.json:
        print(json.dumps({**asdict(house), "walks": walked}, ensure_ascii=False))
    else:
        print("\n".join(report(house, walked)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
