"""Whatever a model writes becomes messages that Discord takes and that ring nobody.

That nothing is previewed is a flag of each request; tests/integration/test_no_leaks.py looks at it.

`REMORA_OUTPUTS=20000` tries that many random outputs, each as Markdown and as plain text; ordinarily 500.
"""

from __future__ import annotations

import os
import random
import re

from channels.base import Chunk
from channels.markup import DISCORD_LIMIT, discord
from tests.kit.tables import each_row
from tests.unit.channels import markup_texts

OUTPUTS = int(os.environ.get("REMORA_OUTPUTS", "500"))
BATCHES = 20
#: Texts of which Discord would make a call, and texts that it would look up.
CALLS = (
    "@everyone", "@here", "<@345678901234567890>", "<@!345678901234567890>", "<@&345678901234567890>",
    "@\u200beveryone", "@every\u200bone", "<@\n1>", "@everyone@here", "<<@12345678901234567>>", "@@here", "`@everyone`",
    "\\@everyone", "\\<@345678901234567890>", "[@everyone](https://example.org)", "**@here**", "||@everyone||",
    "<#345678901234567890>", "</help:345678901234567890>", "<id:browse>", "<t:1795262400:R>", "<:x:345678901234567890>",
    "https://example.org/@everyone", "http://a.b/<@345678901234567890>", "[x](https://e.org/<@&1>)", "@" + "everyone" * 3,
)  # fmt: skip
ADDRESSES = (
    "https://example.org/a_b_c", "http://a.b", "(https://example.org/x)", "https://example.org/(y)_z.", "**https://a.b/c**",
    "[label](https://example.org/q?a=b&c=[d])", "<https://example.org>", "!<https://example.org>", "https://exa\nmple.org",
    "HTTPS://EXAMPLE.ORG", "https://例え.jp/路", "https://a.b/`code`", "||https://a.b||", "![](https://example.org/cat.png)",
    "https://https://a.b", "xhttps://a.b", "https:\\/\\/a.b", "> https://a.b", "# https://a.b", "- https://a.b\n",
)  # fmt: skip
PING = re.compile(r"@everyone|@here|<@[!&]?\d+>")


def output(rng: random.Random) -> tuple[str, list[str]]:
    """Returns a text as a model might write it, with calls and addresses in it, and the words that people must see."""
    if rng.random() < 0.5:
        made = markup_texts.document(rng)
        text, words = made.text, made.seen + made.anywhere
    else:
        text, words = markup_texts.soup(rng)
    lines = text.split("\n")
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        # At ends of lines, so that no word is torn and no table's row is none any more.
        at = rng.randrange(len(lines))
        if "|" not in lines[at] and "```" not in lines[at] and "~~~" not in lines[at]:
            lines[at] = f"{lines[at]} {rng.choice(rng.choice((CALLS, ADDRESSES)))}"
    return "\n".join(lines), words


def squeezed(text: str) -> str:
    return "".join(text.split())


def check(chunks: list[Chunk], source: str) -> None:
    assert chunks
    for chunk in chunks:
        assert len(chunk.text.encode("utf-16-le", "surrogatepass")) // 2 <= DISCORD_LIMIT, source
        assert chunk.text.strip() and chunk.markup == "", source
        assert not PING.search(chunk.text), (PING.search(chunk.text), source)
        assert balanced(chunk.text), (chunk.text, source)


def balanced(text: str) -> bool:
    """Whether every fence that is opened in a message is closed in it."""
    return len([run for run in re.findall(r"(?<!\\)`+", text) if len(run) >= 3]) % 2 == 0


@each_row("batch", range(BATCHES))
def test_no_output_is_refused_or_pings_and_no_word_is_lost(batch: int) -> None:
    """A refused chunk is a lost answer, an open fence swallows the rest, a ping wakes a thousand people."""
    rng = random.Random(f"discord {batch}")
    for _ in range(max(1, OUTPUTS // BATCHES)):
        text, words = output(rng)
        formatted = discord(text)
        check(formatted, text)
        whole = squeezed("".join(chunk.text for chunk in formatted))
        assert [word for word in words if word not in whole] == [], text
        as_it_is = discord(text, markdown=False)
        check(as_it_is, text)
        assert letters(as_it_is) == [char for char in text if char.isalnum()], text


def letters(chunks: list[Chunk]) -> list[str]:
    return [char for chunk in chunks for char in chunk.text if char.isalnum()]
