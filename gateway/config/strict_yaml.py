"""Reads one YAML document into plain data with line numbers, and refuses anything a person can't have meant.

Invariants: scalars follow the YAML 1.2 core schema without leading zeros, octal and hexadecimal forms, so `no`,
`0123` and `1:30` stay text. A key is always text as written. Nothing is ever expanded (no aliases), so the data is
never larger than the file plus the variables put into it. Text from a variable is never read as YAML. Every mistake
of a file is collected as a `Problem`; no input raises.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

KeyPath: TypeAlias = tuple[str | int, ...]

#: Bytes of a file: a configuration is written by hand, so a larger file is the wrong file.
MAX_BYTES = 256 * 1024
#: Nesting of lists and sections; the deepest option is four deep.
MAX_DEPTH = 20
#: Options and list items of one file; this many take the parser a second.
MAX_VALUES = 20_000
#: Mistakes reported for one file; beyond them reading stops.
MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake in a file.

    `value` is ready to be shown: secrets are masked, None shows nothing. `line` counts from 1; it is None when the
    mistake is about the whole file, such as a missing file.
    """

    file: Path
    line: int | None
    key: str
    value: str | None
    message: str
    fix: str

    def __str__(self) -> str:
        where = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        what = self.key if self.value is None else f"{self.key or 'value'} = {self.value}"
        return f"{where}: {what + ': ' if what else ''}{self.message}. Fix: {self.fix}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a file. `data` is None when the file can't be read at all; an empty file is an empty mapping.

    `lines` has the line (from 1) of every key and list item. `interpolated` holds the paths whose text came from
    variables and must not be shown. `faulty` holds the paths whose value was lost to a reported problem.
    """

    data: dict[str, Any] | None
    lines: Mapping[KeyPath, int]
    interpolated: frozenset[KeyPath]
    faulty: frozenset[KeyPath]
    problems: tuple[Problem, ...]

    def line(self, path: KeyPath) -> int:
        """Returns the line of `path`, or of its nearest enclosing part that the file does have."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(raw: bytes, *, file: Path, variables: Mapping[str, str], env_file: Path) -> Document:
    """Reads the bytes of `file`, and puts `variables` in for `${NAME}` and `${NAME:-default}` inside texts.

    `$${` stands for a literal `${`. An unset or empty variable without a default is a problem whose fix names
    `env_file`. The function never raises, whatever the bytes; mistakes are in the document's `problems`.
    """
    reader = _Reader(file=file, variables=variables, env_file=env_file)
    try:
        data: dict[str, Any] | None = reader.read(raw)
    except _UnreadableError:
        data = None
    return Document(
        data=data,
        lines=reader.lines,
        interpolated=frozenset(reader.interpolated),
        faulty=frozenset(reader.faulty),
        problems=tuple(reader.problems),
    )


def key_text(path: KeyPath) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if _PLAIN_KEY.fullmatch(step) and not _looks_secret(step) else value_text(step)
            text += f".{shown}" if text else str(shown)
    return text


def value_text(value: object) -> str | None:
    """Returns a scalar as messages show it, on one line: `***` if it looks like a secret, None if it is no scalar."""
    if isinstance(value, str):
        if _looks_secret(value):
            return "***"
        quoted = json.dumps(_short(value), ensure_ascii=False)
        return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return None


def nearest(word: str, known: list[str]) -> str | None:
    """Returns the known word a person most likely meant, or None when nothing is close."""
    found = difflib.get_close_matches(word[:100].lower(), known, n=1, cutoff=0.6)
    return found[0] if found else None


_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")
# Long words of letters and digits together are keys and tokens far more often than anything worth reading.
_TOKEN = re.compile(r"[A-Za-z0-9_+=.-]{20,}")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
# A leading zero makes an id or a code, not a number, so it stays text.
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,29})")
_DECIMAL = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_VARIABLE = re.compile(r"\$\$\{|\$\{([^{}]{0,1000})(\}?)")
_VARIABLE_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,127})(?::-(.{0,1000}))?", re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# The parser's messages, reworded as the person's mistakes. The first part that occurs decides.
_ESCAPES = "use single quotes, or write \\\\ for a \\"
_QUOTES = "put the value in quotes"
_SYNTAX: tuple[tuple[str, str, str], ...] = (
    ("'\\t'", "a tab is used where only spaces are allowed", "indent with spaces"),
    ("mapping values are not allowed", "a ': ' appears where no option can start",
     "put text that contains ': ' in quotes, and check the indentation of this line and the one above"),
    ("could not find expected ':'", "a line is neither 'option: value' nor part of a text",
     "write a ':' and a space after the option's name, or indent the line below the text it belongs to"),
    ("unknown escape character", "the text contains an unknown \\ escape", _ESCAPES),
    ("expected escape sequence", "the text contains an incomplete \\ escape", _ESCAPES),
    ("quoted scalar", "a quoted text starts here and is never closed", "add the missing quote"),
    ("expected <block end>", "this does not fit what comes before it",
     "give the options of a section the same indentation, and end a line after a closing quote"),
    ("expected ',' or", "a list or section in brackets is not closed or lacks a comma", "add the missing , or bracket"),
    ("cannot start any token", "a value starts with a character that needs quotes", _QUOTES),
    ("while scanning an alias", "a value starts with '*'", _QUOTES),
    ("while scanning an anchor", "a value starts with '&'", _QUOTES),
    ("tag", "a value starts with '!'", _QUOTES),
)  # fmt: skip
_OTHER_SYNTAX = ("this is not valid YAML", "check the indentation, quotes and brackets of this line and the one above")


class _UnreadableError(Exception):
    """Raised when the rest of the file can't be read; the problem is already noted."""


class _Reader:
    def __init__(self, *, file: Path, variables: Mapping[str, str], env_file: Path) -> None:
        self._file = file
        self._variables = variables
        self._env_file = env_file
        self._events: Iterator[Any] = iter(())
        self._values = 0
        self.lines: dict[KeyPath, int] = {}
        self.interpolated: set[KeyPath] = set()
        self.faulty: set[KeyPath] = set()
        self.problems: list[Problem] = []

    def read(self, raw: bytes) -> dict[str, Any]:
        text = self._decode(raw)
        self._events = yaml.parse(text, Loader=yaml.SafeLoader)
        try:
            root = self._document()
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error, text) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self._unreadable(
                line, "there is an invisible control character here", "delete it and type the line again"
            ) from None
        except (ValueError, OverflowError):
            # The parser lets these two through: "\UFFFFFFFF", and a %YAML version of thousands of digits.
            line = max(self.lines.values(), default=1)
            raise self._unreadable(
                line,
                "an escape after this line names a character that does not exist",
                "write the character itself, or put the text in single quotes",
            ) from None
        if root is None:
            return {}
        if not isinstance(root, dict):
            raise self._unreadable(
                self.lines.get((), 1), "the file is not a list of options", "write lines of 'option: value'"
            )
        return root

    def _decode(self, raw: bytes) -> str:
        if len(raw) > MAX_BYTES:
            raise self._unreadable(
                1,
                f"the file has more than {MAX_BYTES // 1024} KB, which no configuration needs",
                "check that this is the right file",
            )
        if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
            raise self._unreadable(
                1, "the file starts with a byte order mark", "save it as UTF-8 without BOM in your editor"
            )
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise self._unreadable(line, "the file is not UTF-8 text", "save it as UTF-8 in your editor") from None

    def _document(self) -> Any:
        root: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                line = _line(event)
                documents += 1
                if documents > 1:
                    self._note(line, (), "a second document starts here", "keep one document and delete the rest")
                    break
                if event.version or event.tags:
                    self._note(line, (), "there is a % directive before the document", "delete the line with %")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, (), 0)
        return root

    def _node(self, event: Any, path: KeyPath, depth: int) -> Any:
        line = _line(event)
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._unreadable(
                line,
                f"the file has more than {MAX_VALUES} options and items, which no configuration needs",
                "check that this is the right file",
            )
        self.lines.setdefault(path, line)
        if isinstance(event, yaml.AliasEvent):
            self.faulty.add(path)
            self._note(line, path, "an alias (*name) is not allowed", "write out the value, or quote it")
            return None
        if event.anchor is not None:
            self._note(line, path, "an anchor (&name) is not allowed", "remove it, or quote the value")
        if event.tag is not None:
            self._note(line, path, "a tag (!name) is not allowed", "remove it, or quote the value")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path, line)
        if depth >= MAX_DEPTH:
            raise self._unreadable(line, f"more than {MAX_DEPTH} lists or sections are nested", "flatten this part")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _sequence(self, path: KeyPath, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items)), depth + 1))
        return items

    def _mapping(self, path: KeyPath, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(event, path, depth)
            if key is None:
                # The value is read only to report its own mistakes.
                self._node(next(self._events), (*path, "?"), depth + 1)
                continue
            first = self.lines.setdefault((*path, key), line)
            repeated = key in mapping
            if repeated:
                self._note(
                    line,
                    (*path, key),
                    f"is given twice, first on line {first}",
                    "keep one of the two and delete the other",
                )
            value = self._node(next(self._events), (*path, key), depth + 1)
            if not repeated:
                mapping[key] = value
        return mapping

    def _key(self, event: Any, path: KeyPath, depth: int) -> str | None:
        """Returns the option's name: numbers stay as written, since ids are names too; other kinds are refused."""
        line = _line(event)
        refusal: str | None = None
        if not isinstance(event, yaml.ScalarEvent):
            refusal = "an option's name must be text"
            self._node(event, (*path, "?"), depth + 1)
        elif event.anchor is not None or event.tag is not None:
            refusal = "an option's name can't have an anchor (&name) or a tag (!name)"
        elif event.implicit[0] and event.value in _NULL | _TRUE | _FALSE:
            refusal = "an option's name is empty, true, false or null"
        elif _UNSTORABLE.search(event.value):
            refusal = "an option's name contains a character that can't be stored"
        if refusal is None:
            return str(event.value)
        self._note(line, path, refusal, "write the name of an option before the ':' (in quotes if it is meant)")
        return None

    def _scalar(self, event: Any, path: KeyPath, line: int) -> Any:
        text: str = event.value
        if "${" in text:
            text = self._interpolate(text, path, line)
        elif event.implicit[0]:
            return _plain(text)
        if _UNSTORABLE.search(text):
            self.faulty.add(path)
            self._note(line, path, "contains a character that can't be stored as UTF-8 text", "remove the character")
        return text

    def _interpolate(self, text: str, path: KeyPath, line: int) -> str:
        def value_of(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            self.interpolated.add(path)
            named = _VARIABLE_NAME.fullmatch(match[1]) if match[2] else None
            if named is None:
                self.faulty.add(path)
                self._note(
                    line,
                    path,
                    "contains a '${' that is not ${NAME} or ${NAME:-default}",
                    "correct the variable's name, or write $${ for a literal ${",
                )
                return ""
            value = self._variables.get(named[1], "")
            if value or named[2] is not None:
                return value or str(named[2])
            self.faulty.add(path)
            state = "empty" if named[1] in self._variables else "not set"
            self._note(
                line,
                path,
                f"the variable {named[1]} is {state}",
                f"add {named[1]}=... to {self._env_file}, set it in the environment, "
                f"or give a default with ${{{named[1]}:-default}}",
            )
            return ""

        return _VARIABLE.sub(value_of, text)

    def _note(self, line: int, path: KeyPath, message: str, fix: str) -> None:
        self._add(line, path, message, fix)
        if len(self.problems) >= MAX_PROBLEMS:
            self._add(line, (), f"reading stops here after {MAX_PROBLEMS} mistakes", "correct these and check again")
            raise _UnreadableError

    def _add(self, line: int, path: KeyPath, message: str, fix: str) -> None:
        key = key_text(path)
        self.problems.append(Problem(file=self._file, line=line, key=key, value=None, message=message, fix=fix))

    def _unreadable(self, line: int, message: str, fix: str) -> _UnreadableError:
        self._add(line, (), message, fix)
        return _UnreadableError()

    def _syntax(self, error: yaml.MarkedYAMLError, text: str) -> _UnreadableError:
        said = f"{error.context or ''} {error.problem or ''}"
        mark = error.problem_mark or error.context_mark
        if "quoted scalar" in said and error.context_mark is not None:
            # The parser notices at the end of the file; the person looks where the quote was opened.
            mark = error.context_mark
        rows = text.splitlines()
        # At the end of the file the parser points one line past it.
        line = min(mark.line + 1, max(len(rows), 1)) if mark is not None else 1
        message, fix = next(((words, cure) for part, words, cure in _SYNTAX if part in said), _OTHER_SYNTAX)
        if rows and "${" in rows[line - 1]:
            fix += '; inside [ ] and { } a variable needs quotes: "${NAME}"'
        return self._unreadable(line, message, fix)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _plain(text: str) -> bool | int | float | str | None:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


def _looks_secret(text: str) -> bool:
    return any(any(c.isdigit() for c in word) and any(c.isalpha() for c in word) for word in _TOKEN.findall(text))
