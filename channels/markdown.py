"""Reads Markdown as models write it, for platforms and for the page. Pure: text in, tokens out.

CommonMark with tables, strikethrough, task lists, bare addresses and math, read by markdown-it-py. Left out on purpose:
raw HTML (shown as text), reference definitions (they would vanish), underlined headings (a list that has only begun to
arrive would flash as one).

Invariant: a text is read within about 50 ms of processor time, or not at all.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_block.state_block import StateBlock
from markdown_it.rules_inline.state_inline import Delimiter, StateInline
from markdown_it.token import Token

#: Longer texts are not read. The library's time grows with length, but at up to 40 µs a character for hostile text,
#: and the process waits meanwhile; models are asked for less than this.
_LONGEST: Final = 32_768
#: The most marks and cells of tables that are formatted: measured, either takes the library up to 20 µs.
_MARKS = "[]*_~`<&\\\n"
_MOST_MARKS = 2_000
_MOST_CELLS = 2_500
_COLUMNS = re.compile(r"^[ \t>|:*+-]*\|[ \t|:-]*$", re.MULTILINE)
#: Deepest nesting of quotes and lists; the library drops deeper text, so such a text is shown as it is.
_DEEPEST = 20
#: A longer address stays text: with Discord's marks around it, one letter and its link must fit in a message.
_LONGEST_URL = 1_500
_CONTAINERS = frozenset({"blockquote_open", "list_item_open"})
_TASK = re.compile(r"\[([ xX])\](?:\s+|$)")


def read(text: str) -> list[Token] | None:
    """Returns the library's tokens; None if the text is too long, too deep or too costly to be formatted.

    Beside the library's own there are `math_block` and `math_inline`, whose content is LaTeX, and `list_item_open` with
    `meta["done"]` where the item is a task.
    """
    if len(text) > _LONGEST or _is_costly(text):
        return None
    tokens = _PARSER.parse(text)
    if any(token.type in _CONTAINERS and token.level + 1 >= _DEEPEST for token in tokens):
        return None
    _mark_tasks(tokens)
    return tokens


def _is_costly(text: str) -> bool:
    """Returns whether formatting `text` could take the library more than about 50 ms of processor time."""
    if sum(map(text.count, _MARKS)) > _MOST_MARKS:
        return True
    # The library fills up every row to the columns of its table.
    columns = max((match[0].count("|") + 1 for match in _COLUMNS.finditer(text)), default=0)
    return columns * (text.count("\n") + 1) > _MOST_CELLS


def _mark_tasks(tokens: list[Token]) -> None:
    """Takes a leading `[ ]` or `[x]` of a list item off its text (GitHub's task lists)."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type == "list_item_open" and paragraph.type == "paragraph_open" and inline.children:
            first = inline.children[0]
            if first.type == "text" and (box := _TASK.match(first.content)):
                item.meta["done"] = box[1] != " "
                first.content = first.content[box.end() :]


class _Markdown(MarkdownIt):
    """The library with Remora's rule for what may be a link; other links stay as they are written."""

    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Returns whether people may open `url`; `tg://user` would be a mention, which no model may make."""
        if len(url) > _LONGEST_URL:
            return False
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        if parts.scheme == "mailto":
            return "@" in parts.path
        return bool(parts.netloc) and (
            parts.scheme in {"http", "https"} or (parts.scheme == "tg" and parts.netloc.lower() != "user")
        )


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Applies the library's rule, except that `*` next to a Chinese, Japanese or Korean character may open and close.

    CommonMark decides by blanks and punctuation, and those languages write no blanks: `**“词”**是` would show its
    stars. After https://github.com/tats-u/markdown-cjk-friendly, simplified.
    """
    mark = state.src[state.pos]
    if silent or mark not in "*_":
        return False
    scanned = state.scanDelims(state.pos, mark == "*")
    can_open, can_close = scanned.can_open, scanned.can_close
    before = state.src[state.pos - 1] if state.pos else " "
    behind = state.src[state.pos + scanned.length : state.pos + scanned.length + 1] or " "
    if mark == "*" and (_is_cjk(before) or _is_cjk(behind)):
        can_open, can_close = not behind.isspace(), not before.isspace()
    for _ in range(scanned.length):
        state.push("text", "", 0).content = mark
        state.delimiters.append(
            Delimiter(
                marker=ord(mark),
                length=scanned.length,
                token=len(state.tokens) - 1,
                end=-1,
                open=can_open,
                close=can_close,
            )
        )
    state.pos += scanned.length
    return True


def _is_cjk(character: str) -> bool:
    return character >= "\u1100" and unicodedata.east_asian_width(character) in "WFH"


def _bare_url(state: StateInline, silent: bool) -> bool:
    """Reads an address in the text, so that the `_` and `~` in it are no markup."""
    found = _URL_REST.match(state.src, state.pos, state.posMax) if state.src[state.pos] == ":" else None
    begun = _SCHEME.search(state.pending[-6:]) if found and not silent else None
    if not found or not begun:
        return False
    scheme = begun[0]
    shown = scheme + found[0].rstrip("_~.,;:!?'")
    if not state.md.validateLink(shown):
        return False
    state.pos += len(shown) - len(scheme)
    if state.linkLevel:
        state.pending += shown[len(scheme) :]
        return True
    state.pending = state.pending[: -len(scheme)]
    state.push("link_open", "a", 1).attrs = {"href": shown}
    state.push("text", "", 0).content = shown
    state.push("link_close", "a", -1)
    return True


def _line_break(state: StateInline, silent: bool) -> bool:
    """Reads `<br>`, the one HTML tag that models write in tables."""
    found = _BR.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "<" else None
    if not found:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _math_inline(state: StateInline, silent: bool) -> bool:
    """Reads `\\(…\\)`, `\\[…\\]` and `$$…$$` as math; a single `$` is money more often than math."""
    closer = _MATH.get(state.src[state.pos : state.pos + 2])
    end = state.src.find(closer, state.pos + 2, min(state.posMax, state.pos + 1_000)) if closer else -1
    inside = state.src[state.pos + 2 : end].strip() if end >= 0 else ""
    if not inside:
        return False
    if not silent:
        state.push("math_inline", "math", 0).content = inside.replace("\n", " ")
    state.pos = end + 2
    return True


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Reads math as a block of code if it begins a line and ends a line at most forty lines on."""
    position = state.bMarks[start] + state.tShift[start]
    closer = _MATH.get(state.src[position : position + 2])
    if closer is None or closer == "\\)" or state.is_code_block(start):
        return False
    for line in range(start, min(end, start + 40)):
        if line > start and state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return False
        begin = position + 2 if line == start else state.bMarks[line] + state.tShift[line]
        found = state.src.find(closer, begin, state.eMarks[line])
        if found < 0:
            continue
        content = state.getLines(start, line + 1, state.sCount[start], False).strip()[2:-2].strip()
        if state.src[found + 2 : state.eMarks[line]].strip() or not content:
            return False
        if not silent:
            state.line = line + 1
            token = state.push("math_block", "code", 0)
            token.info, token.content, token.map = "latex", content, [start, state.line]
        return True
    return False


_MATH = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_BR = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
#: Chinese and Japanese write no blank before an address, and their marks are no part of one.
_SCHEME = re.compile(r"(?<![^\W_])https?$|(?<=[\u3040-\u9fff])https?$", re.IGNORECASE)
_URL_LETTERS = r"[^\s<>\[\]()*`|\\\"，。、！？；：「」『』（）【】《》“”‘’…]"
_URL_REST = re.compile(rf"://(?:{_URL_LETTERS}|\({_URL_LETTERS}{{0,200}}\))+")


def _parser() -> MarkdownIt:
    markdown = _Markdown("commonmark", {"html": False, "maxNesting": _DEEPEST})
    markdown.enable(["table", "strikethrough"]).disable(["reference", "lheading", "html_block", "html_inline"])
    markdown.block.ruler.before("fence", "math", _math_block, {"alt": ["paragraph", "blockquote", "list"]})
    markdown.inline.ruler.before("escape", "math", _math_inline)
    markdown.inline.ruler.at("emphasis", _emphasis)
    markdown.inline.ruler.before("autolink", "break", _line_break)
    markdown.inline.ruler.after("text", "bare_url", _bare_url)
    return markdown


_PARSER = _parser()
