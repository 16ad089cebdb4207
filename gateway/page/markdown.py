"""Markdown as HTML for the page.

Invariants: HTML in the text is shown as text. Nothing is fetched: pictures become links, because a picture with words
in its address would carry them away. A text is formatted within about 50 ms of processor time, or shown as it is. Links
lead to the web, to mail or to Telegram, and do not tell the page they were on. No element has a style of its own, which
the page's policy forbids: a browser would log an error for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from html import unescape
from typing import Any, Final
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from channels import markdown

#: Characters of code in colours, of a whole text, at 1 µs each; more is shown without.
MOST_COLOURED: Final = 12_000
#: Characters of a line of code in colours: some languages' patterns take a time that grows with its square.
_LONGEST_LINE: Final = 300
#: By which names code is coloured; each language's patterns are tried with hostile text. Java's own
#: rule for methods takes a time that grows with the cube, so its code is read as C++.
LANGUAGES: Final = {
    "bash": "bash", "sh": "bash", "shell": "bash", "console": "console", "c": "c", "c++": "cpp", "cpp": "cpp",
    "css": "css", "diff": "diff", "go": "go", "golang": "go", "html": "html", "ini": "ini", "java": "cpp",
    "javascript": "javascript", "js": "javascript", "jsx": "javascript", "json": "json", "kotlin": "kotlin",
    "kt": "kotlin", "lua": "lua", "php": "php", "py": "python", "python": "python", "rb": "ruby", "ruby": "ruby",
    "rs": "rust", "rust": "rust", "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript",
    "tsx": "typescript", "typescript": "typescript", "svg": "xml", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
#: Characters of formulas that are set, of one and of a whole text; more is shown as it is written.
_LONGEST_FORMULA, _MOST_SET = 2_000, 6_000
#: What of MathML's attributes is kept: https://www.w3.org/TR/mathml-core/. Others could style, lead away or run.
_ATTRIBUTES: Final = frozenset({
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "columnspan", "depth", "display",
    "displaystyle", "fence", "form", "height", "largeop", "linethickness", "lspace", "mathsize", "mathvariant",
    "maxsize", "minsize", "movablelimits", "rowlines", "rowspacing", "rowspan", "rspace", "scriptlevel", "separator",
    "stretchy", "symmetric", "voffset", "width",
})  # fmt: skip
#: Environments that models write, and those by which the library knows them.
_ENVIRONMENTS: Final = (("aligned", "split"), ("alignedat", "split"), ("gathered", "split"), ("gather", "split"))
#: Commands that define others, which could grow without bound.
_DEFINING: Final = ("\\def", "\\newcommand", "\\let", "\\renewcommand")
#: The library's errors have no common base, and it meets what it did not expect as Python does.
_FORMULA_ERRORS: Final[tuple[type[Exception], ...]] = (
    *(error for error in vars(exceptions).values() if isinstance(error, type) and issubclass(error, Exception)),
    ValueError, LookupError, TypeError, AttributeError, RuntimeError, StopIteration,
)  # fmt: skip
_DIRECTED: Final = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "td", "th", "ul"})


@lru_cache(maxsize=256)
def rendered(text: str) -> Markup:
    """Returns Markdown as HTML that neither runs nor fetches anything; text that is costly to format stays as it is."""
    tokens = markdown.read(text)
    if tokens is None:
        return plain(text)
    return Markup(_renderer().render(tokens, _OPTIONS, {"coloured": 0, "set": 0}))  # noqa: S704 - what is not ours is escaped


def plain(text: str) -> Markup:
    return Markup('<p class="plain" dir="auto">{}</p>').format(escape(text))


class _Renderer(RendererHTML):
    """The library's renderer; each block has the direction of its own words, and headings stand below the page's."""

    def renderToken(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: N802
        token = tokens[idx]
        if token.nesting == 1 and token.tag in _DIRECTED:
            token.attrSet("dir", "auto")
        return super().renderToken(tokens, idx, options, env)

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        tokens[idx].attrSet("rel", "noreferrer noopener nofollow")
        tokens[idx].attrSet("target", "_blank")
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        address = tokens[idx].attrGet("src") or ""
        opened = self.link_open([Token("link_open", "a", 1, attrs={"href": address})], 0, options, env)
        return f"{opened}{escape(tokens[idx].content or address)}</a>"

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        tokens[idx].tag = f"h{min(6, int(tokens[idx].tag[1:]) + 2)}"
        return self.renderToken(tokens, idx, options, env)

    heading_close = heading_open

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        done = tokens[idx].meta.get("done")
        if done is None:
            return self.renderToken(tokens, idx, options, env)
        tokens[idx].attrSet("class", "task")
        return f"{self.renderToken(tokens, idx, options, env)}{'☑' if done else '☐'} "

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return '<div class="wide" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return "</table></div>\n"

    def td_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        style = tokens[idx].attrs.pop("style", None)
        if style is not None:
            tokens[idx].attrSet("class", f"to-{str(style).removeprefix('text-align:')}")
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        env["coloured"] += len(token.content)
        coloured = env["coloured"] <= MOST_COLOURED and max(map(len, token.content.split("\n"))) <= _LONGEST_LINE
        name = LANGUAGES.get(token.info.strip().partition(" ")[0].lower())
        code = highlight(token.content, _lexer(name), _FORMATTER) if name and coloured else escape(token.content)
        # Whoever has no mouse scrolls by the keyboard.
        return f'<pre tabindex="0"><code>{code}</code></pre>\n'

    code_block = fence

    def math_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _formula(tokens[idx].content, "inline", env) or f"<code>{escape(tokens[idx].content)}</code>"

    def math_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        formula = _formula(tokens[idx].content, "block", env)
        return f'<div class="wide" tabindex="0">{formula}</div>\n' if formula else self.fence(tokens, idx, options, env)


@cache
def _renderer() -> _Renderer:
    return _Renderer()


_OPTIONS: Final = MarkdownIt("commonmark", {"breaks": True}).options
_FORMATTER: Final[HtmlFormatter[str]] = HtmlFormatter(nowrap=True, classprefix="c-")


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False)


def _formula(latex: str, display: str, env: Any) -> str:
    """Returns LaTeX as MathML; empty if the library can't read it whole."""
    env["set"] += len(latex)
    if len(latex) > _LONGEST_FORMULA or env["set"] > _MOST_SET or any(command in latex for command in _DEFINING):
        return ""
    for ours, known in _ENVIRONMENTS:
        latex = latex.replace(f"{{{ours}}}", f"{{{known}}}")
    try:
        tree = convert_to_element(latex, display=display)
    except _FORMULA_ERRORS:
        return ""
    # What it does not know it leaves as letters.
    unread = any(leaf.text and (leaf.text.startswith("\\") or leaf.text == "&") for leaf in tree.iter())
    return "" if unread else "".join(_mathml(tree))


def _mathml(element: Element) -> Iterator[str]:
    """Yields an element as HTML. The library's own way leaves `<` in a text as it is, and a script could begin."""
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in element.items() if name in _ATTRIBUTES)
    yield f"<{element.tag}{attributes}>{escape(unescape(element.text or ''))}"
    for child in element:
        yield from _mathml(child)
    yield f"</{element.tag}>"
