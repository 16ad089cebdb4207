"""Markdown as HTML for the page.

Invariants: HTML in the text is shown as text. Nothing is fetched: pictures become links, because a picture with words
in its address would carry them away. A text is formatted within about 50 ms of processor time, or shown as it is. Links
lead to the web or to mail, and do not tell the page they were on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from channels.markup import is_costly

#: Longer texts are shown as they are: the library's time grows with length, and the process waits meanwhile.
_LONGEST: Final = 32_768
_SCHEMES: Final = ("http://", "https://", "mailto:")


@lru_cache(maxsize=256)
def rendered(text: str) -> Markup:
    """Returns Markdown as HTML that neither runs nor fetches anything; text that is costly to format stays as it is."""
    if len(text) > _LONGEST or is_costly(text):
        return plain(text)
    return Markup(_parser().render(text))  # noqa: S704 - the parser escapes all that is not its own


def plain(text: str) -> Markup:
    return Markup('<p class="plain">{}</p>').format(escape(text))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
    parser.enable(["table", "strikethrough"]).disable(["reference", "lheading"])
    # Replaces the library's own rule, which lets other schemes through.
    parser.validateLink = lambda url: url.strip().lower().startswith(_SCHEMES)  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("image", _picture)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser


def _link(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener nofollow")
    tokens[at].attrSet("target", "_blank")
    return renderer.renderToken(tokens, at, options, env)


def _picture(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    address = tokens[at].attrGet("src") or ""
    opened = _link(renderer, [Token("link_open", "a", 1, attrs={"href": address})], 0, options, env)
    return f"{opened}{escape(tokens[at].content or address)}</a>"


def _cell(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    # The page's policy forbids styles in elements.
    style = tokens[at].attrs.pop("style", None)
    if style is not None:
        tokens[at].attrSet("class", f"to-{str(style).removeprefix('text-align:')}")
    return renderer.renderToken(tokens, at, options, env)
