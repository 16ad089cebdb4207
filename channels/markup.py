"""A model's Markdown in each platform's own form, cut into messages that fit. Pure: text in, chunks out.

Invariants: no letter or digit that a reader would see is lost; markup that is not understood is shown as it was
written. A chunk is never over its platform's limit and never empty for the eye. Formatting is whole within each
chunk, so code that is cut in two is code twice. The text of an answer that still grows is as good an input as any.

Math is shown as code.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from markdown_it.token import Token
from wcwidth import grapheme_boundary_before, wcswidth

from channels import markdown
from channels.base import Chunk

#: https://core.telegram.org/bots/api#sendmessage; counted here in UTF-16 units, which never undercounts.
TELEGRAM_LIMIT = 4_096
#: The most entities of a message, as Telegram ignores more: MAX_USER_ENTITY_COUNT in TDLib's MessageEntity.cpp.
TELEGRAM_ENTITIES = 100
#: https://discord.com/developers/docs/resources/message#create-message, counted in UTF-16 units as well.
DISCORD_LIMIT = 2_000
#: The text shown instead of one with nothing to see: platforms refuse empty messages.
NOTHING = "…"

_ZERO_WIDTH = "\u200b"
_WORD_JOINER = "\u2060"
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ")
#: Characters that are letters in Unicode but invisible: https://www.unicode.org/reports/tr44/ has no property for them.
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")

_Kind: TypeAlias = Literal["quote", "pre", "link", "code", "heading", "bold", "strike", "italic", "marker"]
#: The order decides which of two spans over the same words is the outer one, and which spans are important enough to
#: keep.
_RANK: dict[str, int] = {
    kind: rank
    for rank, kind in enumerate(("quote", "pre", "heading", "bold", "link", "code", "strike", "italic", "marker"))
}
_TELEGRAM_TYPES: dict[str, str] = {
    "quote": "blockquote",
    "pre": "pre",
    "link": "text_link",
    "code": "code",
    "heading": "bold",
    "bold": "bold",
    "strike": "strikethrough",
    "italic": "italic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How platforms differ in reading Markdown: `bullets` by depth, `table_columns` of the widest table."""

    bullets: tuple[str, ...]
    table_columns: int


#: A phone shows about forty columns of fixed-width text before it wraps.
_TELEGRAM = _Style(bullets=("•", "◦", "▪"), table_columns=40)
_DISCORD = _Style(bullets=("-",), table_columns=60)


def telegram(text: str) -> list[Chunk]:
    """Returns Markdown as Telegram messages of at most 4,096 UTF-16 units, at least one.

    `Chunk.markup` is JSON: a list of `MessageEntity` objects (type, offset, length, url or language) with offsets in
    UTF-16 units, sorted, properly nested, at most 100; when there are more, the less important kinds are left out.
    Nesting follows https://core.telegram.org/bots/api#messageentity, except that links and code are allowed inside a
    blockquote too, as TDLib's `fix_entities` allows. Edges are trimmed as TDLib's `fix_formatted_text` would. The
    text holds no mention: see `_calmed`.
    """
    page = _calmed(_read(_clean(text), _TELEGRAM))
    chunks = [
        Chunk(text=page.text[start:stop], markup=_entities(page, start, stop))
        for start, stop in _pieces(page, TELEGRAM_LIMIT)
    ]
    return chunks or [Chunk(text=NOTHING)]


def discord(text: str, *, markdown: bool = True) -> list[Chunk]:
    """Returns Markdown as Discord messages of at most 2,000 UTF-16 units, at least one.

    `Chunk.text` is Discord's own Markdown, to be sent as it is; without `markdown` every character of `text` is shown
    literally. The text holds no mention, bare addresses are in angle brackets (no previews), code fences are closed
    and reopened within the limit.
    """
    cleaned = _clean(text)
    page = _read(cleaned, _DISCORD) if markdown else _verbatim(cleaned, _DISCORD)

    def weigh(start: int, stop: int) -> int:
        return _units(_discord_source(page, start, stop))

    chunks = [Chunk(text=_discord_source(page, *piece)) for piece in _pieces(page, DISCORD_LIMIT, weigh)]
    return chunks or [Chunk(text=NOTHING)]


def plain(text: str, limit: int) -> list[Chunk]:
    """Returns `text` as it is, in chunks of at most `limit` UTF-16 units, at least one, that mention nobody."""
    # An address means the same with %40 in place of @.
    page = _calmed(_verbatim(_CALL_IN_URL.sub(r"\1%40", _clean(text)), _TELEGRAM))
    return [Chunk(text=page.text[start:stop]) for start, stop in _pieces(page, limit)] or [Chunk(text=NOTHING)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Styled:
    """A stretch of text in one formatting. `kinds` names its formatting, such as "bold", "pre" or "address"."""

    text: str
    kinds: frozenset[str] = frozenset()


def terminal(text: str, columns: int) -> list[Styled]:
    """Returns Markdown for a terminal; a link's address follows its words, so nobody opens what they have not read."""
    page = _read(_clean(text), replace(_TELEGRAM, table_columns=columns))
    shown = page.text
    begun: dict[int, list[_Span]] = {}
    ended: dict[int, list[_Span]] = {}
    for span in page.spans:
        begun.setdefault(span.start, []).append(span)
        ended.setdefault(span.end, []).append(span)
    runs: list[Styled] = []
    here: Counter[str] = Counter()
    for start, end in pairwise(sorted({0, len(shown), *begun, *ended})):
        here.update(span.kind for span in begun.get(start, ()))
        kinds = frozenset(+here)
        runs.append(Styled(text=shown[start:end], kinds=kinds))
        runs += [
            Styled(text=f" ({span.value})", kinds=kinds - {"link"} | {"address"})
            for span in ended.get(end, ())
            if span.kind == "link" and not _spells(shown[span.start : end], span.value)
        ]
        here.subtract(span.kind for span in ended.get(end, ()))
    return runs


def _spells(words: str, url: str) -> bool:
    return unquote(words).rstrip("/") in {unquote(url).rstrip("/"), unquote(url.partition("://")[2]).rstrip("/")}


def unmentioning(text: str) -> str:
    """Returns a Telegram text that lost its formatting, as long as before; names that were in code mention nobody."""
    return _CALL.sub("\uff20", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A stretch of a page, in code points; `value`: a link's address, a code's language or a heading's level."""

    start: int
    end: int
    kind: _Kind
    value: str = ""


@dataclass(slots=True)
class _List:
    first: int | None
    items: int = 0


@dataclass(slots=True)
class _Page:
    """Readable text under construction, and its formatted spans.

    Blank lines between blocks are kept as their author set them, at most one. Spans never overlap in part, and
    nothing but a quote holds code: a style is ended before code and begun again after it.
    """

    style: _Style
    lines: list[str]
    parts: list[str] = field(default_factory=list)
    length: int = 0
    spans: list[_Span] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    indents: list[str] = field(default_factory=list)
    quotes: list[int] = field(default_factory=list)
    #: Styles as they were opened, None for a style that was on already; and the styles that are on, with value and
    #: start.
    opened: list[_Kind | None] = field(default_factory=list)
    styles: dict[_Kind, tuple[str, int]] = field(default_factory=dict)
    gap: int = 0
    #: True right after a bullet or at the start of a quote: the next block goes on in this line.
    fresh: bool = True

    @property
    def text(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    def block(self, token: Token) -> None:
        """Begins a block one line lower, or two lines if its author left a blank line."""
        line = token.map[0] if token.map else 0
        if not self.fresh:
            self.gap = 1 if line == 0 or self.lines[line - 1].strip(" \t>") else 2

    def here(self, *, indented: bool = True) -> int:
        if self.gap:
            self._add("\n" * self.gap + ("".join(self.indents) if indented else ""))
            self.gap = 0
        return self.length

    def write(self, text: str) -> None:
        if text:
            self.here()
            self.fresh = False
            self._add(text.translate(_CONTROLS).replace("\n", "\n" + "".join(self.indents)))

    def marker(self, text: str) -> None:
        """Writes a list's bullet or number; the lines of its item are indented by its length."""
        start = self.here()
        self._add(text)
        self.spans.append(_Span(start=start, end=self.length, kind="marker"))
        self.indents.append(" " * len(text))
        self.fresh = True

    def pre(self, text: str, language: str = "") -> None:
        text = text.translate(_CONTROLS).expandtabs(4).strip("\n").rstrip()
        if not text.strip():
            return
        if self.fresh and self.length and not self.gap:
            self.gap = 1
        start = self.here(indented=False)
        self._add(text)
        self.spans.append(_Span(start=start, end=self.length, kind="pre", value=language))
        self.fresh = False

    def code(self, text: str) -> None:
        """Writes code in a line. Inside a link it is plain: neither may hold the other."""
        if "link" in self.styles:
            self.write(text)
            return
        start = self.here()
        for kind in self.styles:
            self._end(kind)
        self.write(text)
        self._span("code", "", start)
        self.styles = {kind: (value, self.length) for kind, (value, _) in self.styles.items()}

    def open(self, kind: _Kind, value: str = "") -> None:
        doubled = kind in self.styles or (kind == "bold" and "heading" in self.styles)
        self.opened.append(None if doubled else kind)
        if not doubled:
            self.styles[kind] = (value, self.here())

    def close(self) -> None:
        if kind := self.opened.pop():
            self._end(kind)
            del self.styles[kind]

    def _end(self, kind: _Kind) -> None:
        value, start = self.styles[kind]
        self._span(kind, value, start)

    def _span(self, kind: _Kind, value: str, start: int) -> None:
        if start < self.length:
            self.spans.append(_Span(start=start, end=self.length, kind=kind, value=value))

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


def _calmed(page: _Page) -> _Page:
    """Returns `page` with a word joiner after each @ that Telegram would take for a mention."""
    formatted = sorted((span for span in page.spans if span.kind in _TELEGRAM_TYPES), key=_outer_first)
    kept = sorted(formatted, key=lambda span: _RANK[span.kind])[:TELEGRAM_ENTITIES]
    code = sorted((span.start, span.end) for span in kept if span.kind in {"pre", "code"})
    text, calls = page.text, []
    for match in _CALL.finditer(text):
        nearest = bisect_right(code, (match.start(), len(text))) - 1
        if nearest < 0 or code[nearest][1] <= match.start():
            calls.append(match.end())
    if calls:
        page.parts = [_WORD_JOINER.join(text[start:end] for start, end in pairwise([0, *calls, len(text)]))]
        page.length += len(calls)
        page.spans = [
            replace(
                # A joiner stays outside a span that begins or ends beside its @.
                span,
                start=span.start + bisect_right(calls, span.start),
                end=span.end + bisect_left(calls, span.end),
            )
            for span in page.spans
        ]
    return page


def _clean(text: str) -> str:
    """Returns `text` with line ends as `\\n`, and without lone surrogates, which could not be sent."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _verbatim(text: str, style: _Style) -> _Page:
    page = _Page(style, [])
    page.write(text)
    return page


def _read(text: str, style: _Style) -> _Page:
    """Returns Markdown as a page. A text too long or too deep to be read safely becomes a page without formatting."""
    tokens = markdown.read(text)
    if tokens is None:
        return _verbatim(text, style)
    page = _Page(style, text.split("\n"))
    table: list[Token] = []
    for token in tokens:
        if table or token.type == "table_open":
            table.append(token)
            if token.type == "table_close":
                _table(page, table)
                table = []
            continue
        if token.type in _WHOLE or token.type.endswith("_open"):
            page.block(token)
        if token.type in _BLOCKS:
            _BLOCKS[token.type](page, token)
    return page


def _quote_open(page: _Page, token: Token) -> None:
    page.quotes.append(page.here())
    page.fresh = True


def _quote_close(page: _Page, token: Token) -> None:
    start = page.quotes.pop()
    # Telegram has no quote in a quote: the outermost quote covers the others.
    if not page.quotes and start < page.length:
        page.spans.append(_Span(start=start, end=page.length, kind="quote"))
    page.fresh = page.length == 0


def _item_open(page: _Page, token: Token) -> None:
    done = token.meta.get("done")
    box = "" if done is None else "☑ " if done else "☐ "
    here = page.lists[-1]
    if token.info:
        written = int(token.info)
        # Numbers stay as written, except where every item has the same number.
        number = written if here.first != written else written + here.items
        here.first = written if here.first is None else here.first
        page.marker(f"{number}{token.markup} {box}")
    else:
        depth = min(len(page.lists), len(page.style.bullets)) - 1
        page.marker(box if box and len(page.style.bullets) > 1 else f"{page.style.bullets[depth]} {box}")
    here.items += 1


def _item_close(page: _Page, token: Token) -> None:
    page.indents.pop()
    page.fresh = False


def _code_block(page: _Page, token: Token) -> None:
    info = token.info.strip()
    language = info.split(maxsplit=1)[0] if info else ""
    if _LANGUAGE.fullmatch(language):
        rest = info[len(language) :].strip()
    else:
        language, rest = "", info
    page.pre(f"{rest}\n{token.content}" if rest else token.content, language)


#: Handlers of the library's tokens; other tokens need nothing.
_BLOCKS: dict[str, Callable[[_Page, Token], object]] = {
    "inline": lambda page, token: _inline(page, token, one_line="heading" in page.styles),
    "heading_open": lambda page, token: page.open("heading", token.tag.removeprefix("h")),
    "heading_close": lambda page, _: page.close(),
    "blockquote_open": _quote_open,
    "blockquote_close": _quote_close,
    "list_item_open": _item_open,
    "list_item_close": _item_close,
    "hr": lambda page, _: page.write("─" * 10),
    **dict.fromkeys(("bullet_list_open", "ordered_list_open"), lambda page, _: page.lists.append(_List(None))),
    **dict.fromkeys(("bullet_list_close", "ordered_list_close"), lambda page, _: page.lists.pop()),
    **dict.fromkeys(("fence", "code_block", "math_block"), _code_block),
}
#: Blocks without a token for their beginning and one for their end.
_WHOLE = frozenset({"hr", "fence", "code_block", "math_block"})
_STYLES: dict[str, _Kind] = {"strong_open": "bold", "em_open": "italic", "s_open": "strike"}
_CLOSERS = frozenset({"strong_close", "em_close", "s_close"})
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


def _inline(page: _Page, block: Token, *, one_line: bool = False) -> None:
    """Writes the words of a block. `one_line` keeps them on the line they began on."""
    for token in block.children or ():
        if token.type == "text":
            page.write(token.content)
        elif token.type in {"softbreak", "hardbreak"}:
            page.write(" " if one_line else "\n")
        elif token.type in {"code_inline", "math_inline"}:
            page.code(token.content)
        elif token.type in _STYLES:
            page.open(_STYLES[token.type])
        elif token.type in _CLOSERS:
            page.close()
        elif token.type == "link_open":
            page.open("link", str(token.attrs["href"]))
        elif token.type == "link_close":
            _close_link(page)
        elif token.type == "image":
            page.open("link", str(token.attrs["src"]))
            before = page.length
            _inline(page, token, one_line=True)
            if page.length == before:
                page.write(str(token.attrs["src"]))
            _close_link(page)


def _close_link(page: _Page) -> None:
    if page.opened[-1] == "link":
        url, start = page.styles["link"]
        if url.startswith("mailto:"):
            # Neither platform links mailto: addresses, but both link an address in the text.
            address = url.removeprefix("mailto:").partition("?")[0]
            if address not in page.text[start:]:
                page.write(f" ({address})" if page.length > start else address)
            page.opened[-1] = None
            del page.styles["link"]
        elif page.length == start:
            page.write(url)
        elif _misleads(page.text[start:], url):
            page.opened[-1] = None
            del page.styles["link"]
            page.write(" (")
            page.open("link", url)
            page.write(url)
            page.close()
            page.write(")")
    page.close()


def _misleads(label: str, url: str) -> bool:
    """Returns whether a link's words read like an address of another host than the one it leads to."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", label) if unicodedata.category(char) != "Cf").strip()
    named = _NAMED.findall(seen) or _HOST.findall(seen)
    leads_to = (urlsplit(url).hostname or "").removeprefix("www.")
    return any(host.lower().removeprefix("www.") != leads_to for host in named)


def _table(page: _Page, tokens: Sequence[Token]) -> None:
    """Writes a narrow table in fixed width; a wide one, or one with links, as `header: value` lines, row by row."""
    rows: list[list[Token]] = []
    right: list[bool] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token)
        elif token.type == "th_open":
            right.append("right" in str(token.attrs.get("style", "")))
    first, last = tokens[0].map or (0, 0)
    source = [line.strip(" \t>") for line in page.lines[first:last]]
    page.block(tokens[0])
    if any(len(_PIPE.findall(line.strip("|"))) >= len(right) for line in source[2:]):
        # The library drops cells that have no header; the source shows them.
        page.pre("\n".join(source))
        return
    empty = _Page(page.style, [])
    cells = [[_cell(page.style, token) if token.children else empty for token in row] for row in rows]
    widths = [max(wcswidth(row[column].text) for row in cells) for column in range(len(right))]
    linked = any(span.kind == "link" for row in cells for cell in row for span in cell.spans)
    if linked or sum(widths) + 3 * (len(widths) - 1) > page.style.table_columns or min(widths) < 0:
        _list_table(page, rows, cells)
        return
    lines = [
        " | ".join(_padded(cell.text, width, right=side) for cell, width, side in zip(row, widths, right, strict=True))
        for row in cells
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    page.pre("\n".join(line.rstrip() for line in lines))


def _list_table(page: _Page, rows: list[list[Token]], cells: list[list[_Page]]) -> None:
    header, *body = rows
    for number, row in enumerate(body or [[]]):
        for column, title in enumerate(header):
            if number and not cells[number + 1][column].text.strip():
                continue  # the first row names every column
            if not page.fresh:
                page.gap = max(page.gap, 1)
            if cells[0][column].text.strip():
                page.open("bold")
                _inline(page, title, one_line=True)
                page.close()
                page.write(": " if body else "")
            if body:
                _inline(page, row[column], one_line=True)
        page.gap = 2
    page.gap = 0


def _cell(style: _Style, token: Token) -> _Page:
    cell = _Page(style, [])
    _inline(cell, token, one_line=True)
    cell.parts = [cell.text.replace("\n", " ").replace("\t", " ")]
    return cell


def _padded(text: str, width: int, *, right: bool) -> str:
    """Returns `text` padded to `width` columns of fixed-width text, in which Chinese characters and emoji take two."""
    fill = " " * (width - wcswidth(text))
    return fill + text if right else text + fill


#: A host after a scheme or `www.`, and a host that is the whole text except for a path.
_NAMED = re.compile(r"(?:://(?:[^\s/@]*@)?|(?<!\w)(?=www\.))([^\s/?#:<>()\[\]\"']+)", re.IGNORECASE)
_HOST = re.compile(r"\A((?:[\w-]+\.)+[^\W\d_]{2,})(?::\d+)?(?:[/?#]\S*)?\Z")
_PIPE = re.compile(r"(?<!\\)\|")


def _pieces(page: _Page, limit: int, weigh: Callable[[int, int], int] | None = None) -> Iterator[tuple[int, int]]:
    """Yields the ranges of the page that become messages: each fits `limit` (UTF-16 units or `weigh`) and shows."""
    text = page.text
    blocks = sorted((span.start, span.end) for span in page.spans if span.kind == "pre")
    start = _skip_blank(text, blocks, 0)
    while start < len(text):
        reach = limit
        while True:
            end = _reach(text, start, reach)
            if end < len(text):
                end = _break(text, blocks, start, end)
            stop = start + len(text[start:end].rstrip())
            weight = weigh(start, stop) if weigh else 0
            if weight <= limit or end - start <= 1:
                break
            used = _units(text[start:stop])
            reach = min(used - 1, used * limit // weight)
        if _visible(text[start:stop]):
            yield start, stop
        start = _skip_blank(text, blocks, end)


def _skip_blank(text: str, blocks: list[tuple[int, int]], position: int) -> int:
    end = len(text) - len(text[position:].lstrip()) if text[position : position + 1].isspace() else position
    at = max(0, bisect_right(blocks, (position, len(text))) - 1)
    for first, last in blocks[at : at + 2]:
        if position < last and first < end:
            code = max(first, position)
            return code + len(text[code:end]) - len(text[code:end].lstrip("\n"))
    return end


def _reach(text: str, start: int, limit: int) -> int:
    """Returns the furthest end, at least one character on, of a text of at most `limit` UTF-16 units."""
    window = text[start : start + limit]
    units = window.encode("utf-16-le")
    if len(units) > 2 * limit:
        window = units[: 2 * limit].decode("utf-16-le", "ignore")
    return start + max(1, len(window))


def _break(text: str, blocks: list[tuple[int, int]], start: int, end: int) -> int:
    """Returns the best place to cut at or before `end`: between blocks, lines, sentences or words, else within one."""
    half = start + (end - start) // 2
    at = bisect_right(blocks, (end, -1)) - 1
    if at >= 0 and end < blocks[at][1] and blocks[at][0] > start + (end - start) // 3:
        return blocks[at][0]
    for separator in ("\n\n", "\n"):
        found = text.rfind(separator, half, end + len(separator))
        if found > start:
            return found
    sentence = max((match.end() for match in _SENTENCE.finditer(text, half, end)), default=-1)
    if sentence > start:
        return sentence
    found = text.rfind(" ", start + (end - start) // 4, end + 1)
    if found > start:
        return found
    # Counted from the piece's beginning, because flags are pairs; a cluster as long as half a message is cut.
    cluster = start + grapheme_boundary_before(text[start : end + 1], end + 1 - start)
    cut = cluster if cluster > half else end
    # The character before an @ makes the @ part of a mail address: without it, the @ would mention somebody.
    return cut - 1 if text[cut : cut + 1] == "@" and cut - 1 > start else cut


_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]?(?=\s)|[。！？][”’」』）]?")


def _visible(text: str) -> bool:
    """Returns whether `text` has anything to see: platforms refuse messages of blanks and invisible marks."""
    return any(
        unicodedata.category(character) not in {"Zs", "Zl", "Zp", "Cc", "Cf", "Mn", "Me"}
        and character not in _BLANK_LETTERS
        for character in text
    )


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _clipped(page: _Page, start: int, stop: int) -> list[_Span]:
    """Returns the spans inside a piece, outer spans first, without white space at their edges."""
    found = []
    for span in page.spans:
        first, last = max(span.start, start), min(span.end, stop)
        if first >= last:
            continue
        words = page.text[first:last]
        if span.kind not in {"pre", "quote"}:
            first += len(words) - len(words.lstrip())
        last -= len(words) - len(words.rstrip())
        if first < last and _visible(page.text[first:last]):
            found.append(_Span(start=first, end=last, kind=span.kind, value=span.value))
    return sorted(found, key=_outer_first)


def _outer_first(span: _Span) -> tuple[int, int, int]:
    return span.start, -span.end, _RANK[span.kind]


def _entities(page: _Page, start: int, stop: int) -> str:
    text = page.text[start:stop]
    spans = [
        span
        for span in _clipped(page, start, stop)
        if span.kind in _TELEGRAM_TYPES and not (span.kind == "link" and page.text[span.start : span.end] == span.value)
    ]
    if len(spans) > TELEGRAM_ENTITIES:
        kept = sorted(spans, key=lambda span: _RANK[span.kind])[:TELEGRAM_ENTITIES]
        spans = sorted(kept, key=_outer_first)
    if not spans:
        return ""
    units = list(accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))
    entities = []
    for span in spans:
        offset = units[span.start - start]
        entity: dict[str, str | int] = {
            "type": _TELEGRAM_TYPES[span.kind],
            "offset": offset,
            "length": units[span.end - start] - offset,
        }
        if span.kind == "link":
            entity["url"] = span.value
        elif span.kind == "pre" and span.value:
            entity["language"] = span.value
        entities.append(entity)
    return json.dumps(entities, ensure_ascii=False, separators=(",", ":"))


def _discord_source(page: _Page, start: int, stop: int) -> str:
    """Returns a piece of a page in Discord's Markdown: https://support.discord.com/hc/en-us/articles/210298617."""
    text = page.text
    opening: dict[int, list[_Span]] = {}
    edges = {start, stop}
    for span in _clipped(page, start, stop):
        at_margin = span.start == start or not text[text.rfind("\n", 0, span.start) + 1 : span.start].strip()
        if span.kind == "quote" and not at_margin:
            continue  # inside a list item, where Discord knows no quotes
        if span.kind == "link" and not span.value.startswith("http"):
            continue
        kind: _Kind = "bold" if span.kind == "heading" and (not at_margin or span.value > "3") else span.kind
        opening.setdefault(span.start, []).append(_Span(start=span.start, end=span.end, kind=kind, value=span.value))
        edges |= {span.start, span.end}
    out: list[str] = []
    held: list[_Span] = []
    for here, end in pairwise(sorted(edges)):
        for span in opening.get(here, ()):
            held.append(span)
            _put(out, _discord_marks(text, held)[0])
        inner = held[-1] if held else None
        words = _discord_words(text[here:end], inner)
        _put(out, words.replace("\n", _new_line(held)))
        while held and held[-1].end == end:
            _put(out, _discord_marks(text, held)[1])
            held.pop()
    return "".join(out)


def _put(out: list[str], words: str) -> None:
    """Appends `words` to `out`; backticks of two neighbours must not run together."""
    if words:
        if out and words[0] == "`" and out[-1][-1] == "`":
            out.append(_ZERO_WIDTH)
        out.append(words)


def _new_line(held: list[_Span]) -> str:
    return "\n> " if any(span.kind == "quote" for span in held) else "\n"


def _discord_marks(text: str, held: list[_Span]) -> tuple[str, str]:
    span = held[-1]
    if span.kind == "pre":
        line = _new_line(held)
        return f"```{span.value}{line}", f"{line}```"
    if span.kind == "code":
        ticks = "`" in text[span.start : span.end]
        return ("`` ", " ``") if ticks else ("`", "`")
    if span.kind == "link":
        label, url = text[span.start : span.end], span.value.replace("@", "%40")
        if label == span.value:
            return "<", ">"
        # Discord makes no link of a label that looks like an address.
        return ("", f" (<{url}>)") if "://" in label else ("[", f"](<{url}>)")
    if span.kind == "heading":
        return "#" * int(span.value) + " ", ""
    simple = {"quote": "> ", "bold": "**", "italic": "*", "strike": "~~"}.get(span.kind, "")
    return simple, "" if span.kind == "quote" else simple


def _discord_words(words: str, inner: _Span | None) -> str:
    kind = inner.kind if inner else None
    if kind == "marker":
        return words
    if kind == "pre":
        words = _THIRD_TICK.sub(f"``{_ZERO_WIDTH}", words)
    elif kind == "code":
        words = _SECOND_TICK.sub(f"`{_ZERO_WIDTH}", words)
    elif kind == "link" and inner and words == inner.value:
        return words.replace("@", "%40")
    else:
        words = _DISCORD_LINE.sub(r"\1\\\2", words.translate(_DISCORD_MARKS))
    return _MENTION.sub(f"@{_ZERO_WIDTH}", words)


_DISCORD_MARKS = {ord(mark): f"\\{mark}" for mark in "\\*_~|`[]"}
#: Characters that would begin a heading, a quote or a list.
_DISCORD_LINE = re.compile(r"^([ ]{0,9}\d{0,9})([#>+.)-])", re.MULTILINE)
_THIRD_TICK = re.compile(r"``(?=`)")
_SECOND_TICK = re.compile(r"`(?=`)")
#: An @ that begins a mention on Telegram by `match_mentions` in TDLib's MessageEntity.cpp, or would begin one once
#: TDLib has removed the characters after it (`clean_input_string` in misc.cpp removes direction marks and others).
_CALL = re.compile(r"(?<!\w)@(?![ \n\u2060]|\Z)")
_CALL_IN_URL = re.compile(r"(https?://\S{1,200}?/)@(?=\w)")
_MENTION = re.compile(r"@(?=everyone|here|[!&]?\d)")
