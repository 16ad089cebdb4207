"""Reads the words of one HTML page in a process of its own: the page on standard input, JSON on standard output.

Invariants: it ends by itself and within `_MEMORY` bytes (where the system can); it opens no file once its parser is
loaded. It is run by its path, not as a module of the package, like `pdf.py`.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

_CPU_SECONDS: Final = 10
_MEMORY: Final = 512 * 1024 * 1024
#: Parts of a page that nobody reads, or that stand on every page of a site.
_LEFT_OUT: Final = (
    "script, style, noscript, template, svg, iframe, object, canvas, form, button, select, dialog, nav, footer, aside,"
    " [hidden], [aria-hidden=true]"
)
#: Elements that mark a page's own words, if they hold at least `_ENOUGH` characters.
_MAIN: Final = ("main", "[role=main]", "article")
_ENOUGH: Final = 200
_HEADINGS: Final = {f"h{n}": "#" * n + " " for n in range(1, 7)}
#: Elements whose words stand on lines of their own.
_BLOCKS: Final = _HEADINGS.keys() | {
    "html", "body", "main", "article", "section", "div", "p", "blockquote", "pre", "ul", "ol", "li", "dl", "dt", "dd",
    "table", "tr", "figure", "figcaption", "header", "address", "details", "summary", "hr", "fieldset", "center",
}  # fmt: skip
_META: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE
)
_BLANK_LINES: Final = re.compile(r"\n{3,}")


def main() -> int:
    """Runs `page.py CHARS [CHARSET]`: writes the title and the words of standard input as JSON."""
    _limit(RLIMIT_AS=_MEMORY, RLIMIT_CPU=_CPU_SECONDS, RLIMIT_CORE=0)
    chars, charset = int(sys.argv[1]), "".join(sys.argv[2:])
    page = decoded(sys.stdin.buffer.read(), charset)
    _limit(RLIMIT_NOFILE=0)
    sys.stdout.write(json.dumps(read(page, chars=chars)))
    return 0


def read(page: str, *, chars: int) -> dict[str, str | bool]:
    """Returns the page's {"title", "text", "cut"}, with at most `chars` characters of text."""
    parser = LexborHTMLParser(page)
    named = parser.css_first("title")
    title = " ".join(named.text().split()) if named is not None else ""
    for node in parser.css(_LEFT_OUT):
        node.decompose()
    root: Any = parser.body
    for place in _MAIN:
        found = parser.css_first(place)
        if found is not None and len(found.text()) >= _ENOUGH:
            root = found
            break
    text = _BLANK_LINES.sub("\n\n", "".join(_lines(root))).strip() if root is not None else ""
    return {"title": title[:300], "text": text[:chars], "cut": len(text) > chars}


def decoded(data: bytes, charset: str) -> str:
    """Returns the page as text: in the server's character set, else in the one that it names, else in UTF-8."""
    meta = _META.search(data[:4096])
    for name in (charset, meta[1].decode("ascii") if meta else ""):
        try:
            # Browsers read Latin-1 as the larger set of Windows.
            western = codecs.lookup(name).name in ("iso8859-1", "ascii")
            return data.decode("cp1252" if western else name, "replace")
        except (LookupError, ValueError):
            continue
    return data.decode("utf-8", "replace")


def _lines(root: Any) -> Iterator[str]:
    """Yields the words below a node; those of another block begin a new line."""
    block, cell = None, False
    for node in root.traverse(include_text=True):
        if node.tag == "br":
            yield "\n"
        elif node.tag in ("td", "th"):
            cell = True
        elif node.tag == "-text":
            around = _block(node)
            text = node.text_content or ""
            text = text if around.tag == "pre" else re.sub(r"\s+", " ", text)
            if around.mem_id != block or cell:
                text = text.lstrip()
            if not text:
                continue
            if around.mem_id != block:
                yield "\n" + _HEADINGS.get(around.tag, "- " if around.tag == "li" else "")
            elif cell:
                yield " | "
            block, cell = around.mem_id, False
            yield text


def _block(node: Any) -> Any:
    while node.parent is not None and node.parent.tag not in _BLOCKS:
        node = node.parent
    return node.parent or node


def _limit(**limits: int) -> None:
    try:
        resource: Any = import_module("resource")
    except ImportError:  # Windows
        return
    for name, most in limits.items():
        try:
            resource.setrlimit(getattr(resource, name), (most, most))
        except (ValueError, OSError):  # a lower limit stands already, or this system has none (macOS: memory)
            continue


if __name__ == "__main__":
    sys.exit(main())
