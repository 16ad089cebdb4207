"""The strict reader: what YAML means here, what it refuses, and where it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.strict_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PROBLEMS,
    MAX_VALUES,
    Document,
    key_text,
    nearest,
    parse,
    value_text,
)
from tests.kit.tables import each_row

FILE = Path("bot.yaml")


def read(text: str | bytes, **variables: str) -> Document:
    raw = text.encode() if isinstance(text, str) else text
    return parse(raw, file=FILE, variables=variables, env_file=Path("/etc/bot/.env"))


def only_problem(text: str | bytes, **variables: str) -> str:
    (problem,) = read(text, **variables).problems
    return str(problem)


@each_row(
    ("written", "meant"),
    [
        ("no", "no"), ("Yes", "Yes"), ("on", "on"), ("0123", "0123"), ("0o17", "0o17"), ("0x1F", "0x1F"),
        ("1:30", "1:30"), ("1_000", "1_000"), ("2024-05-01", "2024-05-01"), (".inf", ".inf"), (".nan", ".nan"),
        ("=", "="), ("'12'", "12"), ('"true"', "true"), ("12", 12), ("-7", -7), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0),
        (".5", 0.5), ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("7" * 40, "7" * 40),
    ],
)  # fmt: skip
def test_scalar_means_what_it_looks_like(written: str, meant: object) -> None:
    """YAML 1.1 turns `no` into false, 0123 into 83 and 1:30 into 90; nobody who writes a configuration means that."""
    data = read(f"a: {written}").data
    assert data == {"a": meant}
    assert type(data["a"]) is type(meant)


@each_row("text", ["", "\n", "# nothing yet\n", "---\n", "null"])
def test_empty_file_has_no_options(text: str) -> None:
    """Somebody who comments everything out means the defaults."""
    document = read(text)
    assert document.data == {}
    assert document.problems == ()


def test_lines_are_known_for_every_option_and_item() -> None:
    document = read("a: 1\nb:\n  c:\n    - x\n    - y: 2\n")
    assert document.line(("a",)) == 1
    assert document.line(("b", "c")) == 3
    assert document.line(("b", "c", 0)) == 4
    assert document.line(("b", "c", 1, "y")) == 5
    assert document.line(("b", "missing", "deeper")) == 2


@each_row(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a: is given twice, first on line 1"),
        ("s:\n  a: 1\n  a: 1\n", 3, "s.a: is given twice, first on line 2"),
        ("a: 1\nb: &x 2\n", 2, "an anchor"), ("a: *x\n", 1, "an alias"),
        ("a: !!python/object:os.system x\n", 1, "a tag"),
        ("a: ! x\n", 1, "a tag"),
        ("a:\n  true: x\n", 2, "a: an option's name is empty, true, false or null"),
        ("~: x\n", 1, "an option's name is empty"),
        ("? [a, b]\n: 1\n", 1, "an option's name must be text"),
        ("? &k a\n: 1\n", 1, "an option's name can't have an anchor"),
        ("a: 1\n---\nb: 2\n", 2, "a second document"), ("%YAML 1.1\n---\na: 1\n", 1, "a % directive"),
        ("\n- a\n", 2, "not a list of options"), ("hello", 1, "not a list of options"), ("a: 1\n\tb: 2\n", 2, "a tab"),
        ("a: b: c\n", 1, "a ': ' appears"), ("a: 1\nb: 'x\nc: 2\n", 2, "never closed"),
        ("a: [1, 2\nb: 3\n", 2, "in brackets"), ("a:\n  b: 1\n c: 2\n", 3, "does not fit"),
        ("a: @here\n", 1, "needs quotes"), ('a: "\\q"\n', 1, "unknown \\ escape"),
        ("a: [${X}]\n", 1, "a variable needs quotes"), ("a: 1\nb: \x07\n", 2, "control character"),
        ('a: 1\nb: "\\U00110000"\n', 2, "a character that does not exist"),
        ('a: "\\UFFFFFFFF"\n', 1, "a character that does not exist"),
        ('a: "\\uD800"\n', 1, "can't be stored"), ('a: "\\0"\n', 1, "can't be stored"),
        ('a:\n  "\\0": 1\n', 2, "can't be stored"), (b"\xef\xbb\xbfa: 1\n", 1, "byte order mark"),
        ("a: 1\n".encode("utf-16"), 1, "byte order mark"),
        (b"a: 1\nb: caf\xe9\n", 2, "not UTF-8"), (b"a: 1\n" + b"#" * MAX_BYTES, 1, "256 KB"),
        ("a:\n " + "[" * 30 + "]" * 30, 2, "more than 20 lists"),
        ("a: 1\nb: [" + "x," * MAX_VALUES + "]", 2, "more than 20000 options and items"),
    ],
)  # fmt: skip
def test_mistake_is_refused_with_its_line_and_a_fix(text: str | bytes, line: int, words: str) -> None:
    """Each of these is a slip that other readers accept silently or answer with parser's jargon."""
    told = only_problem(text)
    assert told.startswith(f"bot.yaml:{line}: ")
    assert words in told
    assert ". Fix: " in told


def test_nesting_is_allowed_up_to_its_limit() -> None:
    """The limit must be the documented one, or a legal file is refused."""
    fits = MAX_DEPTH - 1
    assert read("a: " + "[" * fits + "]" * fits).problems == ()
    assert read("a: " + "[" * (fits + 1) + "]" * (fits + 1)).data is None


def test_alias_bomb_is_refused_without_being_expanded() -> None:
    """Three hundred bytes of aliases can stand for gigabytes."""
    rows = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    document = read("\n".join(rows))
    assert len(document.problems) == 9 + 8 * 9
    assert document.data is not None
    assert document.data["a8"] == [None] * 9


def test_all_mistakes_are_told_at_once() -> None:
    """Correcting one mistake a start is how an evening is lost."""
    document = read("a: &x 1\nb: *x\na: 2\nc: ${GONE}\n---\n")
    assert [problem.line for problem in document.problems] == [1, 2, 3, 4, 5]
    assert document.data == {"a": 1, "b": None, "c": ""}
    assert document.faulty == {("b",), ("c",)}


def test_flood_of_mistakes_is_cut() -> None:
    """A wrong file given by mistake must not print a hundred thousand lines."""
    document = read("a: [" + "*x, " * 5000 + "]")
    assert len(document.problems) == MAX_PROBLEMS + 1
    assert "reading stops here" in str(document.problems[-1])
    assert document.data is None


def test_number_as_option_name_stays_as_written() -> None:
    """Ids are names too, and 007 and 7 are two of them."""
    assert read("007: a\n7: b\n1.0: c\n").data == {"007": "a", "7": "b", "1.0": "c"}


@each_row(
    ("written", "meant"),
    [
        ("${HOST}", "example.org"),
        ("https://${HOST}:${PORT}/v1", "https://example.org:8080/v1"),
        ("${PORT}", "8080"), ("${NONE:-fall back}", "fall back"), ("${EMPTY:-x}", "x"), ("${NONE:-}", ""),
        ("'${HOST}'", "example.org"), ("$${HOST}", "${HOST}"),
        ("$HOST costs $5 {name}", "$HOST costs $5 {name}"),
        ("|\n  ${HOST}\n  {name}", "example.org\n{name}"),
    ],
)  # fmt: skip
def test_variable_is_filled_into_text(written: str, meant: str) -> None:
    """Keys belong into the environment, and a persona's own braces must survive."""
    document = read(f"a: {written}", HOST="example.org", PORT="8080", EMPTY="")
    assert document.problems == ()
    assert document.data == {"a": meant}


def test_variable_is_never_read_as_yaml() -> None:
    """A value in the environment must not be able to add options or change its own type."""
    document = read("a: ${X}\nb: 1\n", X="1\nb: [&x *x]\n? !!bad")
    assert document.problems == ()
    assert document.data == {"a": "1\nb: [&x *x]\n? !!bad", "b": 1}


def test_variable_does_not_fill_in_variables() -> None:
    """Filling in is done once, so that a value can hold `${` of its own."""
    assert read("a: ${X}", X="${Y}", Y="no").data == {"a": "${Y}"}


def test_filled_in_places_are_marked() -> None:
    """Whoever prints a value must know that it came from the environment."""
    document = read("a: [x, 'y${K}']\nb: ${N:-d}\nc: $${d}\n", K="secret")
    assert document.interpolated == {("a", 1), ("b",)}


@pytest.mark.parametrize(("env", "state"), [({}, "not set"), ({"KEY": ""}, "empty")])
def test_missing_variable_is_named_with_the_file_to_put_it_into(env: dict[str, str], state: str) -> None:
    """An empty key would be noticed only as the vendor's "unauthorized"."""
    told = only_problem("a: 1\nk: x${KEY}", **env)
    assert told.startswith(f"bot.yaml:2: k: the variable KEY is {state}. Fix: add KEY=... to /etc/bot/.env")


@each_row("text", ["a: ${", "a: ${}", "a: '${1A}'", "a: ${A-B}", "a: ${A:b}"])
def test_malformed_variable_is_refused(text: str) -> None:
    """Left in place it would reach a vendor as part of a key."""
    assert "not ${NAME} or ${NAME:-default}" in only_problem(text)


def test_variable_with_broken_bytes_is_refused() -> None:
    """The environment may hold bytes that no database or JSON will take."""
    assert "can't be stored" in only_problem("a: ${X}", X="caf\udce9")


@each_row(
    ("value", "shown"),
    [
        ("soon", '"soon"'), (3, "3"), (True, "true"), (None, "null"), ([1], None), ("x" * 100, '"' + "x" * 60 + '…"'),
        ("a\nb\u2028\u202e", '"a\\nb\\u2028\\u202e"'), ("sk-proj-abcdefgh1234567890", "***"),
        ("Bearer 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K", "***"),
    ],
)  # fmt: skip
def test_shown_value_is_one_line_and_no_secret(value: object, shown: str | None) -> None:
    """Error texts are pasted into public issues."""
    assert value_text(value) == shown


def test_key_path_is_shown_as_people_write_it() -> None:
    assert key_text(("models", 0, "key")) == "models[0].key"
    assert key_text(("a b", "c")) == '"a b".c'
    assert key_text(("sk-proj-abcdefgh1234567890",)) == "***"
    assert key_text(()) == ""


def test_nearest_word_is_close_or_none() -> None:
    """A wrong guess is worse than none."""
    assert nearest("tun_seconds", ["turn_seconds", "queue"]) == "turn_seconds"
    assert nearest("zzz", ["turn_seconds", "queue"]) is None


PIECES = (
    r"""a¦b: ¦: ¦- ¦? ¦[¦]¦{¦}¦, ¦&x ¦*x¦!t ¦!!int ¦!<¦%¦'¦"¦\¦\x¦\u12¦\U00110000¦|¦> ¦>9¦#¦---¦...¦%YAML 1.1¦"""
    r"""%TAG ! a¦${A}¦${¦$${¦~¦1¦0.5¦<<¦@¦`¦é¦😀"""
)
FRAGMENTS = st.sampled_from(PIECES.split("¦")) | st.sampled_from("\n\n\t\r\x85\u2028\ufeff\x00")


@given(st.lists(FRAGMENTS, max_size=25).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    """The parser has ways to fail that its own errors do not cover."""
    document = read(text.encode("utf-8", errors="surrogatepass"), A="1")
    assert document.data is not None or document.problems
    rows = max(len(text.splitlines()), 1)
    assert all(problem.line is not None and 1 <= problem.line <= rows for problem in document.problems)
    assert all("\n" not in str(problem) for problem in document.problems)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    """A file given by mistake is often no text at all."""
    document = read(raw)
    assert document.data is not None or document.problems


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text("ab :#-'\"\n${é😀0", max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
        max_leaves=8,
    )
)
def test_plain_data_round_trips_through_json_form(value: object) -> None:
    """JSON is YAML: whatever is quoted must come back unchanged, with `${` escaped."""
    written = json.dumps({"k": value}, ensure_ascii=False).replace("${", "$${")
    document = read(written)
    assert document.problems == ()
    assert document.data == {"k": value}
