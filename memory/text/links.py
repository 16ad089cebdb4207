"""Makes web addresses that could carry a person's words away harmless.

A model's text may hold an address that the model was talked into by a text it read. A person who opens it, or a preview
that fetches it, tells the owner of the address everything that was put into it. An address that carries more than an
ordinary one is shown as code with its scheme and dots broken (`hxxps[:]//host[.]example/…`): it can still be read and
copied, but it is no link, not even in a terminal. Pictures become plain links, and tags of HTML become text
(`< img …>`), because what they name is fetched without being opened.

Invariants: Pure, linear, idempotent. Outside of such addresses, of `![` and of tags nothing changes. Text that is
certainly code stays as it is, because Telegram and Discord make no links in code (a code entity holds no other;
Discord's users post addresses in backticks to avoid a link). If it is not certain that the renderer sees code as well,
the text is not treated as code here.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final
from urllib.parse import unquote

#: Characters that an address may carry besides host and path. Videos with a playlist and a time, searches, translations
#: and permanent links of forges need up to about 80, most addresses none; 100 are a sentence, or 75 bytes in base64.
LONGEST_QUERY: Final = 100
#: Characters of a whole path: titles of articles and places on maps reach about 160.
LONGEST_PATH: Final = 200
#: Characters of a path without a break such as between words: two commits, a document's id (44) or a digest (64) are
#: shorter.
LONGEST_RUN: Final = 64
#: The amount that all addresses of a text may carry together (`_carried`): four searches, or ten articles with a query
#: each. An address that is opened tells its owner only its own part, so this is more than one may carry.
MOST_TOGETHER: Final = 400
#: Characters shown of a broken address that was behind words: ten of them still fit in a message.
_SHOWN: Final = 300
#: Characters of a host: previews of sites have long hosts, and the labels of a name server's question carry data as
#: well.
LONGEST_HOST: Final = 80

#: Texts longer or deeper than this are shown without formatting, so code would become a link there
#: (channels/markup.py). The same goes for code beyond the hundred formats that Telegram takes.
_FORMATTED: Final = 30_000
_MARKS: Final = "[]*_~`<&\\\n|"
_MOST_MARKS: Final = 1_000
_MOST_CELLS: Final = 2_500
_DEEP = re.compile(r"^[ \t]*(?:(?:[>*+-]|[0-9]{1,9}[.)])[ \t]*){7}|^[ \t]{13}", re.MULTILINE)
_FORMATS = re.compile(r"[*_~]{1,3}|`+|^[ ]{0,3}[#>]|\]\(", re.MULTILINE)
_MOST_FORMATS: Final = 100

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
#: Three backticks or tildes that begin code for some renderers only: in a list, in a quote.
_DOUBTFUL = re.compile(r"^(?:[ \t]{4,}|[ \t]*(?:[>*+-]|[0-9]{1,9}[.)])[ \t>*+0-9.)-]*)(?:`{3}|~{3})", re.MULTILINE)
_TICKS = re.compile(r"`+")
_TROUBLE = re.compile(r"\]\(|<[A-Za-z!?/]|[$\\]")
_FORMULA = re.compile(r"\$\$|\\[\[(]")

#: In Markdown only these characters end an address; `_ENDS` holds those that end it on platforms. A run of up to
#: `_SHORT` characters carries too little.
_BLANKS = r" \t\n\r\f\v"
_SHORT: Final = 15
_RUN = re.compile(rf"[^{_BLANKS}]{{{_SHORT + 1},}}")
#: The address of a link, behind its words: in angle brackets, or with few brackets of its own. Others are treated as
#: text.
_LINK = re.compile(
    r"(?<!\\)\[[^\[\]\n]{0,1000}\](?=\(\s{0,9}(?:<([^<>\n]{1,4000})>|(?!<)"
    rf"([^{_BLANKS}()]{{1,4000}}(?:\([^{_BLANKS}()]{{0,1000}}\)[^{_BLANKS}()]{{0,4000}}){{0,4}})(?=[{_BLANKS})])))"
)
#: No expression knows where a picture ends: its words nest, go on over lines and need no address behind them, if a
#: definition follows. So each beginning is broken, and each `<` that could begin a tag. An address in angle brackets
#: is no tag, nor is the `<br>` that models write in tables; at the beginning of a line it would begin a block.
_LOADING = re.compile(
    r"!+(?=\[)|<(?=[A-Za-z!?/])(?![A-Za-z][A-Za-z0-9.+-]{1,31}:(?://|[^\s<>]*>))"
    r"(?![\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255}>)"
    r"(?!(?:(?<=[\w|.,;:!?)]<)|(?<=[\w|,;:!?] <))[Bb][Rr] ?/?>)"
)
#: What may yet become an address in angle brackets, a `<br>` or a picture.
_OPEN = re.compile(r"(?:<(?:[A-Za-z!?/][^\s<>]*|[Bb][Rr] ?/?)?|(?<!!)!+)\Z")
_DOT = "[.\u3002\uff0e\uff61]"
_LABEL = r"[^\W_](?:[^\W_]|-){0,62}"
#: The beginning of an address: a scheme, `www.`, or a host with a path, as platforms link it.
_BEGINS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|(?i:https?|ftp|mailto|data|javascript|tg|sms|magnet):"
    rf"|(?i:www){_DOT}"
    rf"|(?<![\w.-])(?:{_LABEL}{_DOT}){{1,8}}(?:[^\W\d_]{{2,63}}|[xX][nN]--[A-Za-z0-9-]{{2,59}}|[0-9]{{1,3}})"
    r"(?=[/?#]|:[0-9]{1,5}[/?#])"
)
_ENDS = re.compile("[，。；！？）】」』、：\u00a0\u2000-\u200a\u202f\u3000]")
_MEASURED: Final = 4_000
_UNFINISHED = re.compile(rf"[^{_BLANKS}]{{1,{_MEASURED}}}\Z")
#: The number of addresses in one run that are told apart; the rest is treated as one.
_APART: Final = 8
_PASSES: Final = 5
_OPAQUE = re.compile(rf"[A-Za-z0-9+=_-]{{{LONGEST_RUN + 1},}}")
#: Longer than any word: a slug has no such run.
_WORDLESS = re.compile("[A-Za-z0-9]{25,}")
_HIDING = re.compile(r"\\(?=[!-/:-@\[-`{-~])|[*~|`]|__")


def defang(text: str, *, growing: bool = False) -> str:
    """Returns `text` with addresses that carry much made unclickable, and pictures as links.

    An address carries much if it has more than 100 characters of query, fragment and user together, a path of more than
    200 or with an unbroken run of more than 64, or a host of more than 80. Percent-encoding is undone before counting,
    so that titles in any script count by their letters. All addresses of a text together may carry `MOST_TOGETHER`;
    those that exceed it are made unclickable as well. The function recognises bare addresses with and without a scheme
    (`www.`, `host.tld/…`, names in any script, IP numbers), `<…>`, links and pictures of Markdown, and definitions of
    references, even if Markdown's escapes, entities or emphasis hide them. A long address behind words is shortened to
    its beginning.

    `growing` is for a text whose end is still being written: an address that touches the end is held back, because its
    length is not known yet; the next draft shows it whole. Pass the finished text without it.
    """
    if growing:
        text = _steady(text)
    text = _without_loading(text)
    if len(text) > _SHORT and (":" in text or "." in text or "//" in text or "&" in text):
        # The backticks around one address may make later text less certainly code; each pass leaves less to do.
        for _ in range(_PASSES):
            before, text = text, _without_loading("".join(_defanged(text)))
            if text == before:
                break
    return text


def _steady(text: str) -> str:
    """Returns `text` without an unfinished address, or a sign that may begin a tag or a picture, at its end."""
    sign = _OPEN.search(text, max(0, len(text) - _MEASURED))
    text = text[: sign.start()] if sign else text
    link = text.rfind("](")
    if link >= 0 and ")" not in text[link:] and len(text) - link < _MEASURED and "\n\n" not in text[link:]:
        opened = text.rfind("[", max(0, link - 1_000), link)
        link = opened if opened >= 0 else link
        return text[: link - text.startswith("!", link - 1) if link else 0]
    tail = _UNFINISHED.search(text, max(0, len(text) - _MEASURED))
    begins = _BEGINS.search(text, tail.start()) if tail else None
    return text[: begins.start()] if begins else text


def _without_loading(text: str) -> str:
    """Returns `text` without anything that is fetched when it is shown: pictures and tags outside code.

    A definition further down makes a picture of any `![`, and a draft can't wait for it; so each is broken.
    """
    if "![" not in text and "<" not in text:
        return text
    code = _unread(text)
    parts, last = [], 0
    for match in _LOADING.finditer(text):
        if _inside(code, match.start()):
            continue
        parts.append(text[last : match.start()])
        last = match.end()
        if match[0] == "<":
            parts.append("< ")
        elif text.startswith(("[](", "[]["), last):
            parts.append("[picture]")
            last += len("[]")
    return "".join((*parts, text[last:]))


def _defanged(text: str) -> Iterator[str]:
    code = _code(text)
    last = 0
    for start, end, shown in sorted(_carriers(text, code)):
        if start >= last:
            yield text[last:start]
            yield shown
            last = end
    yield text[last:]


def _carriers(text: str, code: list[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yields the spans that must not stay as they are, with their replacements."""
    much = _counting()
    links = []
    for match in _LINK.finditer(text):
        if _inside(code, match.start()):
            continue
        group = 1 if match[1] else 2
        end = match.end(group) + (group == 1)
        links.append((match.end(), end))
        if much(match[group]):
            # With a blank between the brackets it is no longer a link.
            seen = match[group] if len(match[group]) <= _SHOWN else f"{match[group][:_SHOWN]}…"
            yield match.end(), end, f" ({_broken(seen)}"
    for match in _RUN.finditer(text):
        at = match.start()
        for link_start, link_end in [*_within(links, match), (match.end(), match.end())]:
            yield from _in_run(text, at, link_start, code, much)
            at = max(at, link_end)


def _within(links: list[tuple[int, int]], match: re.Match[str]) -> list[tuple[int, int]]:
    first = bisect_left(links, (match.start(), 0))
    return links[first : bisect_left(links, (match.end(), 0))]


def _in_run(
    text: str, at: int, end: int, code: list[tuple[int, int]], much: Callable[[str], bool]
) -> Iterator[tuple[int, int, str]]:
    for nth in count():
        begins = _BEGINS.search(text, at, end)
        if begins is None:
            yield from _hidden(text, at, end, code, much)
            return
        start = begins.start()
        if code_end := _inside(code, start):
            at = max(code_end, start + 1)
            continue
        if not much(text[start : min(end, start + _MEASURED)]):
            yield from _hidden(text, at, end, code, much)
            return
        first = start
        if text[at:start].endswith((":", "/")) or _plain(text[at:start]) != text[at:start]:
            # The real beginning of the address is hidden before the match.
            first = at
        apart = nth < _APART
        if apart and text[start - 1 : start] == "<" and (close := text.find(">", start, end)) > 0:
            yield first, close, _broken(text[first:close])
            at = close
            continue
        stop = _ENDS.search(text, begins.end(), end) if apart else None
        if stop is None:
            yield first, end, _broken(text[first:end])
            return
        at = stop.start()
        if much(text[start:at]):
            yield first, at, _broken(text[first:at])
        else:
            # Text of a script without blanks follows the address, and platforms would take all of it for the address.
            yield at, at, " "


def _hidden(
    text: str, at: int, end: int, code: list[tuple[int, int]], much: Callable[[str], bool]
) -> Iterator[tuple[int, int, str]]:
    """Yields a replacement for the rest of a run, which has no open address to break, if it hides one."""
    if end - at > _SHORT and not _inside(code, at) and _hides_much(text[at:end], much):
        yield at, end, _broken(text[at:end])


def _hides_much(run: str, much: Callable[[str], bool]) -> bool:
    """Returns whether undoing Markdown's escapes, entities and emphasis reveals an address that carries much."""
    plain = _plain(run[:_MEASURED])
    begins = _BEGINS.search(plain)
    return begins is not None and plain != run[:_MEASURED] and much(plain[begins.start() :])


def _plain(address: str) -> str:
    return _HIDING.sub("", html.unescape(address))


def _counting() -> Callable[[str], bool]:
    """Returns a function that, called with each address in turn, tells whether it, or all so far, carry too much."""
    left = MOST_TOGETHER
    counted: set[str] = set()

    def much(address: str) -> bool:
        nonlocal left
        if _carries_much(address):
            return True
        # The address as far as platforms would take it; one that is repeated tells nothing more.
        address = _plain(_ENDS.split(address, 1)[0]).rstrip("])}>.,;:!?'\"")
        if address not in counted:
            carried = _carried(address)
            if carried > left:
                return True
            left -= carried
            counted.add(address)
        return False

    return much


def _carries_much(address: str) -> bool:
    parts = _parts(address)
    if parts is None:
        return False
    host, path, tail = parts
    return (
        len(tail) > LONGEST_QUERY
        or len(host) > LONGEST_HOST
        or len(path) > LONGEST_PATH
        or any(_wordless(run) > LONGEST_RUN for run in _OPAQUE.findall(path))
    )


def _carried(address: str) -> int:
    """Returns the amount that an address tells, in characters.

    The part after the path, and characters outside words in it, count fully. Words and hosts, which every address
    needs, count a quarter.
    """
    parts = _parts(address)
    if parts is None:
        return 0
    host, path, tail = parts
    return len(tail) + _wordless(path) + (len(host) + len(path)) // 4


def _wordless(path: str) -> int:
    return sum(map(len, _WORDLESS.findall(path)))


def _parts(address: str) -> tuple[str, str, str] | None:
    """Returns the host, the path, and the rest: user, query and fragment. None if it is no address."""
    address = _plain(address)
    begins = re.match(r"([A-Za-z][A-Za-z0-9+.-]{0,20}:)?(/{0,3})", address)
    scheme, slashes = (begins[1] or "", begins[2]) if begins else ("", "")
    if not scheme and not slashes and not _BEGINS.match(address):
        return None
    rest = address[len(scheme) + len(slashes) :]
    if scheme and not slashes and not scheme.lower().startswith("http"):
        return "", "", unquote(rest)
    if not scheme and len(slashes) == 1:
        return None
    path_at = next((i for i, char in enumerate(rest) if char in "/?#"), len(rest))
    user, _, host = rest[:path_at].rpartition("@")
    tail_at = next((i for i, char in enumerate(rest[path_at:], path_at) if char in "?#"), len(rest))
    return host, unquote(rest[path_at:tail_at]), user + unquote(rest[tail_at:])


def _broken(address: str) -> str:
    """Returns the address as code, with scheme and dots written so that no program takes it for an address."""
    shown = re.sub(r"(?i)^h(tt)(?=ps?:)", "hxx", address).replace(":", "[:]")
    shown = re.sub(r"&(?=#?\w{1,31};)", "[&]", re.sub(_DOT, "[.]", shown))
    ticks = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{gap}{shown}{gap}{ticks}"


# --- code ------------------------------------------------------------------------------------------


def _code(text: str) -> list[tuple[int, int]]:
    """Returns the spans that are code for every renderer, in order; none if any renderer may see it otherwise."""
    if len(text) > _FORMATTED or ("`" not in text and "~~~" not in text) or _FORMULA.search(text):
        return []
    if sum(map(text.count, _MARKS)) > _MOST_MARKS or len(_FORMATS.findall(text)) > _MOST_FORMATS:
        return []
    lines = text.split("\n")
    if (max(line.count("|") for line in lines) + 1) * len(lines) > _MOST_CELLS:
        return []
    fences, doubtful = _fences(text)
    found: list[tuple[int, int]] = []
    last = 0
    for start, end in (*fences, (doubtful, doubtful)):
        if _DEEP.search(text, last, start):
            return []
        found += _spans(text, last, start)
        if end > start:
            found.append((start, end))
        last = max(end, last)
    return found


def _unread(text: str) -> list[tuple[int, int]]:
    """Returns the spans in which no renderer that loads pictures reads marks or tags, in order.

    Unlike `_code` it asks nothing of Telegram's formats and of long texts shown without formatting: no picture is
    loaded there.
    """
    if "\r" in text or ("`" not in text and "~~~" not in text):
        return []  # a bare return ends a line for some renderers only
    fences, doubtful = _fences(text)
    found: list[tuple[int, int]] = []
    last = 0
    for start, end in (*fences, (doubtful, doubtful)):
        formula = _FORMULA.search(text, last, start)
        found += _spans(text, last, formula.start() if formula else start)
        if formula:
            return found
        if end > start:
            found.append((start, end))
        last = max(end, last)
    return found


def _fences(text: str) -> tuple[list[tuple[int, int]], int]:
    """Returns the fenced blocks, and the position from which on nothing is certain (CommonMark 0.31, 4.5).

    A fence is certain at the margin, or at most three blanks from it if its lines have at least the same indent: then
    it makes no difference whether it belongs to a list.
    """
    found: list[tuple[int, int]] = []
    doubt = _DOUBTFUL.search(text)
    at = 0
    while (opening := _FENCE.search(text, at)) is not None:
        if doubt is not None and doubt.start() < at:
            doubt = _DOUBTFUL.search(text, at)
        if doubt is not None and doubt.start() < opening.start():
            return found, doubt.start()
        indent, ticks = opening[1], opening[2]
        if ticks[0] == "`" and "`" in opening[3]:
            # With backticks behind it, it begins a code span, which may end on a later line.
            return found, opening.start()
        closing = re.compile(rf"^ {{0,3}}{ticks[0]}{{{len(ticks)},}}[ \t]*$", re.MULTILINE).search(text, opening.end())
        end = closing.end() if closing else len(text)
        if indent and re.compile(rf"^(?!{indent})[ \t]*\S", re.MULTILINE).search(text, opening.end() + 1, end):
            return found, opening.start()
        found.append((opening.start(), end))
        at = end
    if doubt is not None and doubt.start() < at:
        doubt = _DOUBTFUL.search(text, at)
    return found, doubt.start() if doubt else len(text)


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the code spans between two positions, up to the first that some renderer may not see.

    A code span is certain if it lies within a line, has no column's edge in it, and nothing before it could have used
    its backticks: no unmatched backtick, link, tag, formula or escape.
    """
    at = start
    for line in text[start:end].split("\n"):
        runs = [match.span() for match in _TICKS.finditer(line)]
        last = nth = 0
        while nth < len(runs):
            begin, stop = runs[nth]
            closing = next(
                (k for k, run in enumerate(runs[nth + 1 :], nth + 1) if run[1] - run[0] == stop - begin), None
            )
            if closing is None or _TROUBLE.search(line, last, begin) or "|" in line[stop : runs[closing][0]]:
                return
            last = runs[closing][1]
            yield at + begin, at + last
            nth = closing + 1
        if _TROUBLE.search(line, last):
            return
        at += len(line) + 1


def _inside(code: list[tuple[int, int]], place: int) -> int:
    """Returns the end of the code that contains `place`; 0 if none does."""
    nearest = bisect_right(code, (place, len(code) and code[-1][1])) - 1
    return code[nearest][1] if nearest >= 0 and code[nearest][0] <= place < code[nearest][1] else 0
