"""Markdown of answers on the web page."""

from __future__ import annotations

import time

import pytest

from channels import markup
from gateway.page.site import rendered


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("![a cat](https://a.example/c.png)", 'href="https://a.example/c.png" rel="noreferrer noopener nofollow"'),
        ("![](https://a.example/c.png?x=<b>)", ">https://a.example/c.png?x=%3Cb%3E</a>"),
        ("![<i>](https://a.example/c.png)", ">&lt;i&gt;</a>"),
    ],
)
def test_a_picture_is_a_link_that_says_what_it_shows(text: str, html: str) -> None:
    """Nothing is fetched, and no mark is left over."""
    shown = rendered(text)
    assert html in shown and "<img" not in shown and "!<" not in shown


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//a.example"])
def test_other_addresses_stay_text(address: str) -> None:
    assert "<a" not in rendered(f"![a cat]({address}) [a dog]({address})")


CONSTRUCTS = [
    "![a](", "![", "[a](", "[a](b) ", "[", "](", "]( ", "`", "`a` ", "*a_ ", "**a ", "_a*", "*_", "~~a", "***", "- ", "> ",
    "- a\n", " - a\n  ", "1. a\n", "> a\n", "# a\n", "a\n\n", "a  \n", "a\\\n", "a\n-\n", "a\n=\n", "a|", "|a|b|\n", "|-|\n",
    "&amp;", "&", "<a@b.cc>", "<http://a>", "<a>", "<", "<!--", "\\", "```\n", "    a\n", "***\n", "[a]: b\n", "\t", "a",
]  # fmt: skip


def tabled(columns: int, rows: int) -> str:
    return f"|{'a|' * columns}\n|{'-|' * columns}\n" + "|a|\n" * rows


@pytest.mark.parametrize(
    "text",
    [
        *(each * (size // len(each)) for each in CONSTRUCTS for size in (2_000, 4_000, 32_768)),
        *(tabled(columns, rows) for columns, rows in ((500, 500), (50, 45), (2, 1_000), (3_000, 2), (300, 700))),
        "".join(f"{'`' * length}a" for length in range(1, 60)),
    ],
    ids=lambda text: f"{text[:12]!r}-{len(text)}",
)
def test_no_text_is_formatted_for_long(text: str) -> None:
    """Every reader of the page waits meanwhile. 50 ms of processor time is the aim; machines differ."""
    rendered.cache_clear()
    begun = time.thread_time()
    shown = rendered(text)
    assert time.thread_time() - begun < 0.25
    assert rendered(text) is shown
    begun = time.thread_time()
    markup.terminal(text, 80)
    assert time.thread_time() - begun < 0.25


def test_columns_are_aligned_by_classes() -> None:
    """The page's policy forbids styles in elements: a browser would log an error for each cell."""
    shown = rendered("|a|b|c|\n|:-|:-:|-:|\n|1|2|3|\n")
    assert "style=" not in shown and '<td class="to-center">2</td>' in shown and '<th class="to-right">c</th>' in shown
