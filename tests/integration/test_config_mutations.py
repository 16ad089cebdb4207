"""Three hundred slips in the files that ship: each keeps its meaning, means what it says, or is refused by its line."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from gateway.cli.start import EX_CONFIG
from gateway.config.loading import Config, ConfigError, load
from gateway.config.strict_yaml import MAX_BYTES, Document, KeyPath, parse

ROOT = Path(__file__).parents[2]
FILES = ("config.yaml", "agents/assistant.yaml")
MUTATIONS = 300
#: How many of them the real command sees, a process each.
COMMANDS = 12
NOBODY = Path("/nonexistent-home")

#: "refused": a mistake that must be told. "same": the meaning stays. "said": the options in `changed` have the given
#: values, the others their old ones. "local": refused, or felt by the options in `changed` only.
Expected: TypeAlias = Literal["refused", "same", "said", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A slip in one of the files. `words` must occur in what is told; `line` is where, None where it can't be known.

    `changed` maps options to their new values, or to None where any value will do.
    """

    what: str
    file: str
    raw: bytes
    expected: Expected
    words: str = ""
    line: int | None = None
    changed: dict[KeyPath, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """One of the files as it ships: its lines, and where each option stands (lines from 0)."""

    file: str
    text: str
    document: Document

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def leaves(self) -> list[tuple[KeyPath, int]]:
        """Options that are no sections, with their lines."""
        return [
            (path, line - 1)
            for path, line in self.document.lines.items()
            if path and not any(isinstance(step, int) for step in path) and not isinstance(self.value(path), dict)
        ]

    def value(self, path: KeyPath) -> Any:
        value: Any = self.document.data
        for step in path:
            value = value[step]
        return value

    def slip(self, what: str, lines: list[str] | bytes, expected: Expected = "refused", **more: Any) -> Mutation:
        raw = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
        return Mutation(what=what, file=self.file, raw=raw, expected=expected, **more)

    def owner(self, line: int) -> KeyPath | None:
        """The option that a line (from 0) belongs to; the lines of a list or a text belong to its option."""
        found = max(
            ((there, path) for path, there in self.leaves if there <= line), default=None, key=lambda pair: pair[0]
        )
        return found[1] if found is not None else None


@cache
def shipped(file: str) -> Shipped:
    raw = (ROOT / file).read_bytes()
    document = parse(raw, file=Path(file), variables={}, env_file=Path(".env"))
    assert document.problems == ()
    return Shipped(file=file, text=raw.decode(), document=document)


# --- the slips -------------------------------------------------------------------------------------------------------


def with_value(line: str, value: str) -> str:
    """An option's line with another value and without its comment."""
    return f"{line.partition(':')[0]}: {value}"


def scalars(of: Shipped, *kinds: type) -> list[tuple[KeyPath, int]]:
    return [(path, line) for path, line in of.leaves if type(of.value(path)) in kinds and "|" not in bare(of, line)]


def bare(of: Shipped, line: int) -> str:
    return of.lines[line].partition(" #")[0].rstrip()


def misspelt(of: Shipped, chance: random.Random) -> Mutation:
    path, at = chance.choice([leaf for leaf in of.leaves if len(str(leaf[0][-1])) > 3])
    key = str(path[-1])
    n = chance.randrange(1, len(key) - 1)
    wrong = chance.choice([key[:n] + key[n + 1 :], key[:n] + key[n] + key[n:], key[:n] + "q" + key[n + 1 :]])
    if wrong == key:
        wrong = key + "s"
    lines = of.lines
    lines[at] = lines[at].replace(key, wrong, 1)
    return of.slip(f"{key} misspelt {wrong}", lines, words=f"unknown option. Fix: write {key} instead", line=at)


def twice(of: Shipped, chance: random.Random) -> Mutation:
    path, at = chance.choice(of.leaves)
    lines = of.lines
    lines.insert(at, lines[at])
    return of.slip(f"{path[-1]} twice", lines, words="twice", line=at + 1)


def tab(of: Shipped, chance: random.Random) -> Mutation:
    at = chance.choice([line for path, line in of.leaves if len(path) > 1])
    lines = of.lines
    lines[at] = "\t" + lines[at].lstrip()
    return of.slip("a tab", lines, line=at)


def crooked(of: Shipped, chance: random.Random) -> Mutation:
    """One of two options that stand under each other is moved by a space."""
    lines = of.lines
    starts = {line for _, line in of.leaves}
    pairs = [n for n in sorted(starts) if n + 1 in starts and indent(lines[n]) == indent(lines[n + 1]) > 0]
    at = chance.choice(pairs) + chance.randrange(2)
    by = chance.choice([1, -1])
    lines[at] = " " * (indent(lines[at]) + by) + lines[at].lstrip()
    return of.slip(f"moved by {by}", lines)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def no_yaml_magic(of: Shipped, chance: random.Random) -> Mutation:
    """An alias, an anchor or a tag in the place of a value."""
    _, at = chance.choice(of.leaves)
    value = chance.choice(["*x", "&x 1", "!!int 5", "!!python/object:os.system x", "! y"])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    return of.slip(value, lines, line=at)


def merge(of: Shipped, chance: random.Random) -> Mutation:
    lines = ["base: &base {level: debug}", "<<: *base", *of.lines]
    return of.slip("a merge", lines, words="an alias", line=1)


def bomb(of: Shipped, chance: random.Random) -> Mutation:
    width = chance.randrange(5, 12)
    rows = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, 9))]
    return of.slip(f"a bomb of {width}", [*rows, *of.lines], line=0)


NO_NUMBERS = [
    *("0o17", "0x1F", "1:30", "soon", "no", "yes", "true", "null", "", ".inf", ".nan", "1e400"),
    *("[8]", "{a: 8}", "8 s", "8,5", "-8", "9" * 50),
]

#: Of these, the ones that mean no value at all, which some options may have and say so in their comment.
NULLS = ("null", "")


def no_number(of: Shipped, chance: random.Random) -> Mutation:
    """A value that YAML 1.1, Python or a person might take for a number, and that is none."""
    path, at = chance.choice(scalars(of, int, float))
    nullable = "null" in of.lines[at].partition(" #")[2]
    value = chance.choice([value for value in NO_NUMBERS if not (nullable and value in NULLS)])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    return of.slip(f"{path[-1]}: {value[:12]}", lines, words="must be", line=at)


def number_as_text(of: Shipped, chance: random.Random) -> Mutation:
    """Texts are taken for numbers, since variables only give texts: as decimal ones, whatever YAML 1.1 made of them."""
    path, at = chance.choice(scalars(of, int, float))
    value, meant = chance.choice([("0123", 123), ("007", 7), ("1_000", 1000), ('"8"', 8), ("'30'", 30), ("+9", 9)])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    # Some options have narrower bounds.
    return of.slip(f"{path[-1]}: {value}", lines, "local", changed={path: meant})


SWITCHES = {
    **dict.fromkeys(["yes", "on", "Yes", "ON", "y", "1", '"true"', "tRuE"], True),
    **dict.fromkeys(["no", "off", "No", "OFF", "n", "0", '"false"', "fAlSe"], False),
}


def switch(of: Shipped, chance: random.Random) -> Mutation:
    """Where only true and false may stand, yes and no are what people mean by them; anything else is refused."""
    path, at = chance.choice(scalars(of, bool))
    value = chance.choice([*SWITCHES, "[true]", "", "~", "2", "maybe", "ja", "{a: true}", "0x1", "1:0", "-1"])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    if value in SWITCHES:
        return of.slip(f"{path[-1]}: {value}", lines, "said", changed={path: SWITCHES[value]})
    return of.slip(f"{path[-1]}: {value}", lines, words="true or false", line=at)


def no_text(of: Shipped, chance: random.Random) -> Mutation:
    """A list, a section, a number or a truth where a text must be."""
    path, at = chance.choice([leaf for leaf in scalars(of, str) if of.value(leaf[0])])
    value = chance.choice(["[a]", "{a: b}", "7", "1.5", "true", "2e3", "-1"])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    return of.slip(f"{path[-1]}: {value}", lines, words="must be", line=at)


def no_list(of: Shipped, chance: random.Random) -> Mutation:
    """A text, a number or a section in the place of a list, and lists of the wrong things."""
    lists = [(path, line) for path, line in of.leaves if of.value(path) == []]
    path, at = chance.choice(lists)
    value = chance.choice(["none", "5", "true", "{a: b}", "[[a]]", "[{zz: 1}]", "[null]", '""', "[true]", "[1.5]"])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    return of.slip(f"{path[-1]}: {value}", lines, line=at)


def no_section(of: Shipped, chance: random.Random) -> Mutation:
    """A value beside the name of a section whose options follow, or in the place of the section."""
    sections = [
        (path, line - 1)
        for path, line in of.document.lines.items()
        if len(path) == 1 and isinstance(of.value(path), dict)
    ]
    path, at = chance.choice(sections)
    lines = of.lines
    if chance.random() < 0.5:
        lines[at] = with_value(lines[at], chance.choice(["5", "on", "[]", "''"]))
        return of.slip(f"a value beside {path[0]}", lines)
    end = next((n for n in range(at + 1, len(lines)) if lines[n] and not lines[n].startswith((" ", "#"))), len(lines))
    value = chance.choice(["5", "on", "[]", "''", "[a, b]", "false"])
    lines[at:end] = [f"{path[0]}: {value}"]
    return of.slip(f"{path[0]}: {value}", lines, words="a section", line=at)


def wrong_bytes(of: Shipped, chance: random.Random) -> Mutation:
    raw = of.text.encode()
    at = chance.randrange(len(raw))
    line = raw.count(b"\n", 0, at)
    kind = chance.choice(["utf-8 bom", "utf-16", "latin-1", "nul", "bell", "escape", "surrogate", "cut character"])
    match kind:
        case "utf-8 bom":
            return of.slip(kind, b"\xef\xbb\xbf" + raw, words="byte order mark", line=0)
        case "utf-16":
            return of.slip(kind, of.text.encode("utf-16"), words="byte order mark", line=0)
    put = {
        "latin-1": b"caf\xe9", "nul": b"\x00", "bell": b"\x07", "escape": b"\x1b[2J", "surrogate": b"\xed\xa0\x80",
        "cut character": b"\xf0\x9f\x98",
    }[kind]  # fmt: skip
    words = "control character" if kind in ("nul", "bell", "escape") else "not UTF-8"
    return of.slip(kind, raw[:at] + put + raw[at:], words=words, line=line)


def too_much(of: Shipped, chance: random.Random) -> Mutation:
    kind = chance.choice(["long comment", "many lines", "deep brackets", "deep dashes", "second document", "directive"])
    lines = of.lines
    match kind:
        case "long comment":
            lines.append("#" * MAX_BYTES)
        case "many lines":
            lines += ["# again"] * (MAX_BYTES // 8)
        case "deep brackets":
            lines.append("deep: " + "[" * 5_000)
        case "deep dashes":
            lines += ["deep:", "  " + "- " * 5_000 + "x"]
        case "second document":
            lines += ["---", "data_dir: elsewhere"]
        case _:
            lines[:0] = ["%YAML 1.1", "---"]
    words = {"long comment": "256 KB", "many lines": "256 KB", "second document": "second document", "directive": "%"}
    return of.slip(kind, lines, words=words.get(kind, "are nested"))


def broken_syntax(of: Shipped, chance: random.Random) -> Mutation:
    path, at = chance.choice(scalars(of, str, int, float, bool))
    value = chance.choice(["'open", '"open', "[1, 2", "{a: 1", "a: b", "@x", "`x`", "%x", '"\\q"', "]", "${", "${1}"])
    lines = of.lines
    lines[at] = with_value(lines[at], value)
    return of.slip(f"{path[-1]}: {value}", lines)


def unset_variable(of: Shipped, chance: random.Random) -> Mutation:
    path, at = chance.choice(scalars(of, str))
    lines = of.lines
    lines[at] = with_value(lines[at], "${NOBODY_SETS_THIS}")
    return of.slip(f"{path[-1]} of an unset variable", lines, words="NOBODY_SETS_THIS is not set", line=at)


def stranger(of: Shipped, chance: random.Random) -> Mutation:
    """An option of nobody's, and one of the other file."""
    other = shipped(next(file for file in FILES if file != of.file))
    known = {str(path[0]) for path, _ in of.leaves} | {str(path[0]) for path in of.document.lines if path}
    foreign = sorted({str(path[0]) for path, _ in other.leaves} - known)
    name = chance.choice([*foreign, "zzz", "<<", "é", "x y", "no"])
    return of.slip(f"unknown {name}", [f"{name}: 1", *of.lines], line=0)


def harmless(of: Shipped, chance: random.Random) -> Mutation:
    """Comments, blank lines, spaces at ends, line ends of Windows, quotes round a text, an explicit document."""
    lines = of.lines
    path, at = chance.choice(of.leaves)
    kind = chance.choice(["comment", "blank", "spaces", "windows", "quotes", "document", "no end", "comments off"])
    match kind:
        case "comment":
            lines.insert(at, "# *not an alias: [ ' \"")
        case "blank":
            lines[at:at] = [""] * chance.randrange(1, 50)
        case "spaces":
            lines[at] += " " * chance.randrange(1, 50)
        case "windows":
            lines = [line + "\r" for line in lines]
        case "quotes":
            path, at = chance.choice(scalars(of, str))
            lines[at] = with_value(lines[at], f"'{of.value(path)}'")
        case "document":
            lines.insert(0, "---")
        case "no end":
            return of.slip(kind, of.text.rstrip("\n").encode(), "same")
        case _:
            lines = [line for line in lines if not line.lstrip().startswith("#")]
    return of.slip(f"{kind} at {path[-1]}", lines, "same")


def left_out(of: Shipped, chance: random.Random) -> Mutation:
    """An option that is left out has its default, which is what ships; the agent's name has none."""
    path, at = chance.choice(scalars(of, str, int, float, bool))
    lines = of.lines
    del lines[at]
    if path == ("name",):
        return of.slip("no name", lines, words="is missing")
    return of.slip(f"without {path[-1]}", lines, "same")


def other_text(of: Shipped, chance: random.Random) -> Mutation:
    """A text that other readers would turn into a number, a date or a truth stays text."""
    path = ("data_dir",) if of.file == FILES[0] else ("persona",)
    at = dict(of.leaves)[path]
    value = chance.choice(["no", "yes", "on", "0123", "0x1F", "1:30", "12:30:45", "1_000", "2026-05-01", ".inf", "="])
    lines = of.lines
    end = next(n for n in range(at + 1, len(lines)) if not lines[n].startswith(" "))
    lines[at:end] = [f"{path[0]}: {value}"]
    return of.slip(f"{path[0]}: {value}", lines, "said", changed={path: value})


def other_number(of: Shipped, chance: random.Random) -> Mutation:
    path, at = chance.choice(scalars(of, int, float))
    value = of.value(path) + 1
    if path == ("port",) or value > 1_000_000:
        value = of.value(path) - 1
    lines = of.lines
    lines[at] = with_value(lines[at], str(value))
    return of.slip(f"{path[-1]}: {value}", lines, "said", changed={path: value})


def damaged(of: Shipped, chance: random.Random) -> Mutation:
    """A flipped bit, a lost or strange byte, a lost line: refused, or felt where it happened only."""
    raw = bytearray(of.text.encode())
    at = chance.randrange(len(raw))
    line = raw.count(b"\n", 0, at)
    kind = chance.choice(["flip", "flip", "drop", "insert"])
    match kind:
        case "flip":
            raw[at] ^= 1 << chance.randrange(8)
        case "drop":
            del raw[at]
        case _:
            raw.insert(at, chance.choice(b" :#-'\"[]{},&*!|>%@`\t\n0aZ~\\$"))
    # A lost line end joins two lines, one too many ends a text early.
    touched = {owner for n in (line - 1, line, line + 1) if (owner := of.owner(n)) is not None}
    return of.slip(f"{kind} at {at}", bytes(raw), "local", changed=dict.fromkeys(touched))


SLIPS: tuple[Callable[[Shipped, random.Random], Mutation], ...] = (
    misspelt, twice, tab, crooked, no_yaml_magic, no_number, number_as_text, switch, no_text, no_list, no_section,
    wrong_bytes, too_much, broken_syntax, unset_variable, stranger, harmless, left_out, other_text, other_number,
    damaged, damaged, damaged, bomb, merge,
)  # fmt: skip


def mutations() -> Iterator[Mutation]:
    """The same ones each time, as long as the shipped files are the same."""
    for seed in range(MUTATIONS):
        slip = SLIPS[seed % len(SLIPS)]
        yield slip(shipped(FILES[seed // len(SLIPS) % 2]), random.Random(seed))


def name_of(mutation: Mutation) -> str:
    return re.sub(r"[^ -~]", "?", f"{Path(mutation.file).stem}: {mutation.what}")


# --- what becomes of them --------------------------------------------------------------------------------------------


def write(folder: Path, mutation: Mutation | None) -> Path:
    (folder / "agents").mkdir()
    for file in FILES:
        raw = (ROOT / file).read_bytes()
        (folder / file).write_bytes(mutation.raw if mutation is not None and mutation.file == file else raw)
    return folder / "config.yaml"


def meaning(config: Config) -> dict[tuple[str, KeyPath], Any]:
    found: dict[tuple[str, KeyPath], Any] = {}

    def walk(file: str, value: Any, path: KeyPath) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(file, inner, (*path, key))
        else:
            found[file, path] = value

    walk(FILES[0], config.settings.model_dump(), ())
    (agent,) = config.agents.values()
    walk(FILES[1], agent.model_dump(), ())
    return found


@pytest.fixture(scope="module")
def as_shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, KeyPath], Any]:
    return meaning(load(write(tmp_path_factory.mktemp("shipped"), None), {}, NOBODY))


@pytest.mark.parametrize("mutation", list(mutations()), ids=name_of)
def test_a_slip_keeps_its_meaning_or_is_told(
    tmp_path: Path, mutation: Mutation, as_shipped: dict[tuple[str, KeyPath], Any]
) -> None:
    """Silent defaults in the place of a misread file are how an allowlist vanishes."""
    result = loaded(write(tmp_path, mutation))
    if isinstance(result, ConfigError):
        told_well(result, mutation, tmp_path)
        return
    assert mutation.expected != "refused", "nothing was said"
    now = meaning(result)
    differing = {where: value for where, value in now.items() if as_shipped.get(where) != value}
    stated = {(mutation.file, option): value for option, value in (mutation.changed or {}).items()}
    assert differing.keys() <= stated.keys()
    assert all(value in (None, now[where]) for where, value in stated.items() if where in now)
    assert as_shipped.keys() - now.keys() <= stated.keys()


def loaded(path: Path) -> Config | ConfigError:
    try:
        return load(path, {}, NOBODY)
    except ConfigError as error:
        return error


def told_well(error: ConfigError, mutation: Mutation, folder: Path) -> None:
    """Each problem on one line, in the file it is in, at a line that exists, with a remedy."""
    assert mutation.expected in ("refused", "local"), str(error)
    assert error.problems
    rows = max(len(mutation.raw.decode("utf-8", "replace").splitlines()), 1)
    for problem in error.problems:
        assert "\n" not in str(problem)
        assert problem.message and problem.fix
        assert problem.file in (folder / file for file in FILES)
        if problem.file == folder / mutation.file:
            assert problem.line is not None and 1 <= problem.line <= rows
    own = [problem for problem in error.problems if problem.file == folder / mutation.file]
    # By chance damage makes a valid name that the other file does not know.
    assert own or mutation.expected == "local", "told of the file with the slip"
    assert mutation.words in str(error)
    if mutation.line is not None:
        assert mutation.line + 1 in [problem.line for problem in own]


REFUSED = [mutation for mutation in mutations() if mutation.expected == "refused"]


@pytest.mark.parametrize("mutation", REFUSED[:: len(REFUSED) // COMMANDS][:COMMANDS], ids=name_of)
def test_the_command_tells_a_slip_and_exits_78(tmp_path: Path, mutation: Mutation) -> None:
    """The operator sees the list of mistakes, never a traceback."""
    path = write(tmp_path, mutation)
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "check", "--config", str(path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == EX_CONFIG == 78
    assert str(loaded(path)) in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_most_slips_are_mistakes_and_all_kinds_are_there() -> None:
    """The table would be worth little if it were mostly harmless."""
    every = list(mutations())
    assert len(every) == MUTATIONS
    assert len(REFUSED) > MUTATIONS // 2
    assert {mutation.file for mutation in every} == set(FILES)
    assert {mutation.expected for mutation in every} == {"refused", "same", "said", "local"}
