"""Secrets in lists, tables and pairs, which stand apart from the word that announces them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.text.secrets.folding import BARRIER
from memory.text.secrets.values import classes, counted, is_for, may_be_plain, mixed, opens, stands_out, strong
from memory.text.secrets.vocabulary import any_of, pattern


def entered(text: str, place: int, end: int) -> Iterator[tuple[int, int]]:
    for match in re.compile(r"(?<![\w.,:/-])[#*]?(?P<v>[0-9](?: [0-9]){2,7}|[0-9]{3,8})#?(?![\w%]|[.,:/-]\d)").finditer(
        text, max(0, place - 30), end + 20
    ):
        word = text[: match.start()].rsplit(None, 1)[-1:] if match.start() > end + 1 else []
        at_ = bool(word) and is_for(word[0])
        if not at_ and opens(text, max(0, place - 30), end + 30) and not counted(text, match.end()):
            yield match.span("v")


def cookies(text: str, end: int) -> Iterator[tuple[int, int]]:
    line = re.compile(r": ?[^\n]{0,2000}").match(text, end)
    for match in re.compile(r"=([A-Za-z0-9%_.+/=-]{16,})").finditer(text, end, line.end() if line else end):
        if mixed(match[1]):
            yield match.span(1)


def answered(text: str, place: int, end: int) -> Iterator[tuple[int, int]]:
    match = re.compile(r" ?(?:[:=→>-]+|is|ist|es|est|è)? ?[\"“«]?(?P<v>[^\n,.;\"”»]{3,60})").match(text, end)
    if match and pattern(any_of("questions")).search(text, max(0, place - 120), place):
        yield match.span("v")


def turns(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yields the turns that open a dial: "right 32, left 17 twice past, right 5"."""
    turn = rf"(?<![^\W\d_])(?:{any_of('turns')})\W{{1,3}}(?:[^\W\d_]{{1,5}} ){{0,2}}[0-9]{{1,2}}(?![0-9])"
    match = pattern(rf"[^\n]{{0,60}}?(?P<v>{turn}(?:[^0-9\n]{{0,30}}?{turn}){{1,5}})").match(text, end)
    if match:
        yield match.span("v")


def issued(text: str, end: int) -> Iterator[tuple[int, int]]:
    for match in re.compile(r"(?<![\w/.=-])(?:[0-9a-f]{32,64}|[A-Za-z0-9_-]{24,80})(?![\w./-])").finditer(
        text, end, end + 160
    ):
        value, before = match.group(), text[max(end, match.start() - 24) : match.start()]
        random = mixed(value) and (value.islower() or classes(value) > 2) and sum(map(str.isdigit, value)) > 3
        named = text.startswith(("key", "Key", "KEY"), match.start() - 4)
        if random and (value.count("-") < 3 or named) and not pattern(any_of("hashes")).search(before):
            yield match.span()


def paired(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yields the second of two values behind a word for both: "log in with dave / ..."."""
    match = re.compile(r"[^\n:]{0,40}?:? \S{2,40}(?: ?[/,|] ?|:)(?P<v>[^\s/]{4,80})").match(text, end)
    value = match["v"].rstrip(".,;)") if match else ""
    final = match and re.compile(r"[.,;)]?(?:\n|\Z)").match(text, match.start("v") + len(value))
    if match and (stands_out(value, []) or (final and may_be_plain(value, sure=False))):
        yield match.start("v"), match.start("v") + len(value)


def columns(text: str, place: int, end: int, kind: str) -> Iterator[tuple[int, int]]:
    if kind not in ("password", "open", "pin", "key"):
        return
    if not re.compile(r'[^\W\d_]{0,7}[ "*`]*[\t|;,\n]').match(text, end):
        return
    start = text.rfind("\n", max(0, place - 200), place) + 1
    stop = text.find("\n", end, end + 200)
    separator = next((one for one in "\t|;," if one in text[start:stop]), None)
    if separator is None or stop < 0 or not re.compile(r"[\w .\-*/\"`\t|;,]+").fullmatch(text, start, stop):
        return
    heads = _cells(text, start, stop, separator)
    nth = next((i for i, (first, last) in enumerate(heads) if first <= place < last), 0)
    above = _cells(text, text.rfind("\n", max(0, start - 200), max(0, start - 1)) + 1, max(0, start - 1), separator)
    if any(last - first > 30 for first, last in heads) or len(above) == len(heads) > 1:
        return
    for _ in range(40):
        start, stop = stop + 1, text.find("\n", stop + 1, stop + 400)
        stop = len(text) if stop < 0 and len(text) < start + 400 else stop
        cells = _cells(text, start, stop, separator)
        if stop < start or len(cells) != len(heads):
            return
        first, last = cells[nth]
        while first < last and text[first] in ' "`*':
            first += 1
        while first < last and text[last - 1] in ' "`*':
            last -= 1
        plain = separator == "," and " " in text[first:last]
        if last - first > 2 and text[first:last].strip("-: ") and not plain and BARRIER not in text[first:last]:
            yield first, last


def _cells(text: str, start: int, stop: int, separator: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in re.compile(rf'(?<![^\n{separator}])(?:"[^"\n]*"|[^"\n{separator}]*)').finditer(text, start, stop)
    ]


def listed(text: str, end: int, kind: str) -> Iterator[tuple[int, int]]:
    if kind not in ("password", "open", "pin", "loosely"):
        return
    several = kind == "loosely" or text[end : end + 1] in ("s", "n", "e", "y", "и")
    head = re.compile(r"[^\n:]{0,60}+(?::(?= |\n)|(?=\n))" if several else ":?(?=\n)").match(text, end)
    if head is None:
        return
    lines = text.startswith("\n", head.end())
    item = re.compile(
        rf"\n*[^\n{BARRIER}]{{0,60}}?(?P<tie> [-=:→>] |: )?(?P<v>[^\s,;{BARRIER}]{{4,80}})[ .]*(?:(?=\n)|\Z"
        + (")" if lines else r"|[,;] )")
    )
    at = head.end()
    for _ in range(40):
        match = item.match(text, at)
        value = match["v"].rstrip(".,;") if match else ""
        if match is None or not (
            (strong(value) and len(value) > 4)
            or (may_be_plain(value, sure=True) and match["tie"])
            or value.strip("#*").isdigit()
            or (kind == "loosely" and sum(map(str.isdigit, value)) > 3)
        ):
            return
        yield match.start("v"), match.start("v") + len(value)
        at = match.end()
