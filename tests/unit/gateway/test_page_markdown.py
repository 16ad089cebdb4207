"""Markdown of answers on the web page."""

from __future__ import annotations

import time

import pytest
from markupsafe import escape

from channels import markup
from gateway.page.markdown import LANGUAGES, MOST_COLOURED, rendered


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
    assert " style=" not in shown
    assert '<td class="to-center" dir="auto">2</td>' in shown and '<th class="to-right" dir="auto">c</th>' in shown


def test_code_has_the_colours_of_its_language_by_classes() -> None:
    shown = rendered('```py\ndef f(): return "<b>"\n```')
    assert '<span class="c-k">def</span>' in shown and "&lt;b&gt;" in shown and " style=" not in shown
    assert '<pre tabindex="0">' in shown


@pytest.mark.parametrize("code", ["```nobody-knows\nx < 1\n```", "```\nx < 1\n```", "    x < 1"])
def test_code_of_no_known_language_stays_as_it_is(code: str) -> None:
    assert "x &lt; 1" in rendered(code) and "<span" not in rendered(code)


@pytest.mark.campaign
def test_no_code_is_coloured_for_long() -> None:
    """A language's rules are patterns of its own; each is tried with what makes patterns slow."""
    units = ["(", "'", "\\", "{", "a ", "x=", "<!--", "é", "a.", "a\n", " \n"]
    slow = []
    for unit in units:
        line = unit * (299 // len(unit))
        for name in sorted(set(LANGUAGES.values())):
            code = f"{line}\n" * (MOST_COLOURED // (len(line) + 2))
            begun = time.thread_time()
            rendered(f"~~~{name}\n{code}\n~~~")
            if (seconds := time.thread_time() - begun) > 0.25:
                slow.append(f"{name} of {unit!r}: {seconds:.2f} s")
    assert not slow


def test_formulas_are_set_without_scripts_styles_and_links() -> None:
    assert "<mfrac>" in rendered("$$\\frac{a}{b}$$") and "<msup>" in rendered("so \\(x^2 < y\\) holds")
    shown = rendered(
        "$$\\text{<script>alert(1)</script>} \\href{javascript:x}{y} \\style{color:red}{a} \\class{c}{d}$$"
    )
    assert "&lt;script&gt;" in shown
    assert not any(bad in shown for bad in ("<script", "javascript", " style=", ' class="c"'))


@pytest.mark.parametrize("latex", ["x^2^3", "\\genfrac{}", "\\def\\a{\\a\\a}\\a", "{" * 900, "\\sqrt{" * 150])
def test_a_formula_that_cannot_be_set_is_shown_as_it_is_written(latex: str) -> None:
    assert f"<code>{escape(latex)}</code>" in rendered(f"so \\({latex}\\) holds")


def test_money_is_no_formula() -> None:
    assert "<math" not in rendered("It costs $5 here and $6 there.")


def test_tasks_have_their_boxes_and_bare_addresses_lead_there() -> None:
    shown = rendered("- [ ] milk\n- [x] see https://a.example/x_y_z.")
    assert '<li class="task">☐ milk</li>' in shown and "☑ see" in shown
    assert 'href="https://a.example/x_y_z"' in shown


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("看 https://a.example/b。谢谢", "https://a.example/b"),
        ("请看https://a.example/b，好吗", "https://a.example/b"),
        ("https://a.example/東京「駅」", "https://a.example/%E6%9D%B1%E4%BA%AC"),
        ("(see https://a.example/A_(b))", "https://a.example/A_(b)"),
    ],
)
def test_a_bare_address_ends_where_its_sentence_goes_on(text: str, address: str) -> None:
    assert f'href="{address}"' in rendered(
        text
    ) or f'href="{address.replace("%E6%9D%B1%E4%BA%AC", "東京")}"' in rendered(text)


def test_environments_of_formulas_are_set_or_shown_as_they_are_written() -> None:
    """Never as letters out of which nobody could read the formula again."""
    assert rendered("$$\n\\begin{aligned}a&=b\\\\c&=d\\end{aligned}\n$$").count("<mtr>") == 2
    assert "<code>\\ce{H2O}</code>" in rendered("water is \\(\\ce{H2O}\\)")


def test_formulas_are_set_up_to_a_bound_of_the_text() -> None:
    formula = "$$" + "b+" * 900 + "b$$"
    shown = rendered("\n\n".join([formula] * 9))
    assert shown.count("<math") == 3


def test_each_block_has_the_direction_of_its_own_words() -> None:
    shown = rendered("שלום\n\nhello\n\n# نعم")
    assert shown.count('dir="auto"') == 3
    assert "<h3" in shown
