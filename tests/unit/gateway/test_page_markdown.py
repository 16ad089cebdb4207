"""Markdown of answers on the web page."""

from __future__ import annotations

import pytest

from gateway.page.markdown import rendered


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
