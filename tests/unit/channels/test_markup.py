"""A model's Markdown on the platforms: nothing lost, nothing over the limit, marks where the words are.

`REMORA_MARKUP_TEXTS=20000` tries that many random texts, half of them soups; ordinarily a few hundred do.
"""

from __future__ import annotations

import json
import os
import random
import re
import unicodedata
from typing import Any

import pytest
from aiogram import Bot
from aiogram.methods import SendMessage
from aiogram.types import LinkPreviewOptions, MessageEntity
from hypothesis import given
from hypothesis import strategies as st
from teremok.validation import validate_method

from channels.base import Chunk
from channels.markup import (
    DISCORD_LIMIT,
    NOTHING,
    TELEGRAM_ENTITIES,
    TELEGRAM_LIMIT,
    discord,
    plain,
    telegram,
    unmentioning,
)
from tests.kit.tables import each_row
from tests.unit.channels import markup_texts

TEXTS = int(os.environ.get("REMORA_MARKUP_TEXTS", "200"))
BATCHES = max(1, TEXTS // 100)
BOT = Bot("42:TEST")
FAMILY = "👨‍👩‍👧‍👦"
ANSWER = """\
# Plan für **morgen**

Zuerst `git pull`, dann [die Seite](https://example.org/a_b) lesen 😀:

1. eins
   - *innen*
2. ~~zwei~~

> Zitat
> mit `Code`

| Wort | 字 |
|------|---|
| ja   | 是 |

```python
def f():
    return 1
```
Und \\(a^2\\) am Ende."""


def entities(chunk: Chunk) -> list[dict[str, Any]]:
    return json.loads(chunk.markup) if chunk.markup else []


def shown(chunk: Chunk, entity: dict[str, Any]) -> str:
    """The words under an entity, as Telegram finds them: by UTF-16 units."""
    units = chunk.text.encode("utf-16-le")
    return units[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")


def marked(text: str) -> list[tuple[str, str]]:
    """Type and words of every entity of a text that is one message."""
    (chunk,) = telegram(text)
    return [(entity["type"], shown(chunk, entity)) for entity in entities(chunk)]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def squeezed(chunks: list[Chunk]) -> str:
    """All of it without white space, so that a word cut in two is whole again."""
    return "".join("".join(chunk.text.split()) for chunk in chunks)


def check_telegram(chunks: list[Chunk]) -> None:
    assert chunks
    for chunk in chunks:
        found = entities(chunk)
        assert 0 < units(chunk.text) <= TELEGRAM_LIMIT
        assert chunk.text == chunk.text.rstrip()
        assert not chunk.text[0].isspace() or (found[0]["offset"] == 0 and "pre" in {e["type"] for e in found})
        assert any(unicodedata.category(c)[0] not in "ZC" for c in chunk.text)
        assert len(found) <= TELEGRAM_ENTITIES
        assert chunk.markup == (json.dumps(found, ensure_ascii=False, separators=(",", ":")) if found else "")
        assert [(e["offset"], -e["length"]) for e in found] == sorted((e["offset"], -e["length"]) for e in found)
        outer: list[dict[str, Any]] = []
        for entity in found:
            words = shown(chunk, entity)
            assert words.strip()
            assert words == words.rstrip()
            assert entity["type"] in {"pre", "blockquote"} or words == words.lstrip()
            end = entity["offset"] + entity["length"]
            assert end <= units(chunk.text)
            while outer and outer[-1]["offset"] + outer[-1]["length"] <= entity["offset"]:
                outer.pop()
            held = [e["type"] for e in outer]
            assert all(end <= e["offset"] + e["length"] for e in outer), "entities overlap in part"
            assert not {"code", "pre"} & set(held)
            assert entity["type"] not in held
            assert entity["type"] not in {"code", "pre"} or set(held) <= {"blockquote"}
            assert entity["type"] != "blockquote" or not held
            outer.append(entity)
        validate_method(
            BOT,
            SendMessage(
                chat_id=1,
                text=chunk.text,
                entities=[MessageEntity(**entity) for entity in found],
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            ),
        )


def check_discord(chunks: list[Chunk]) -> None:
    assert chunks
    for chunk in chunks:
        assert chunk.markup == ""
        assert chunk.text.strip()
        assert units(chunk.text) <= DISCORD_LIMIT
        assert chunk.text.count("```") % 2 == 0
        assert "@everyone" not in chunk.text
        assert "@here" not in chunk.text
        assert "<@1" not in chunk.text


@pytest.mark.parametrize("batch", range(BATCHES))
def test_documents_keep_their_words_and_marks(batch: int) -> None:
    """People read what the model wrote, whatever is cut, and the marks are on the words that had them."""
    rng = random.Random(batch)
    for _ in range(50):
        made = markup_texts.document(rng)
        chunks = telegram(made.text)
        check_telegram(chunks)
        whole = squeezed(chunks)
        at = 0
        for word in made.seen:
            at = whole.index(word, at) + len(word)
        assert all(word in whole for word in made.anywhere)
        if all(len(entities(chunk)) < TELEGRAM_ENTITIES for chunk in chunks):
            found: dict[str, str] = {}
            for chunk in chunks:
                for entity in entities(chunk):
                    found[entity["type"]] = found.get(entity["type"], "") + shown(chunk, entity) + "\n"
            assert [(kind, word) for kind, word in made.marked if word not in found[kind]] == []

        sent = discord(made.text)
        check_discord(sent)
        whole = squeezed(sent)
        assert all(word in whole for word in made.seen + made.anywhere)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_soups_of_marks_lose_no_word(batch: int) -> None:
    """Models write broken Markdown too, and half an answer is broken Markdown."""
    rng = random.Random(-1 - batch)
    for _ in range(50):
        text, words = markup_texts.soup(rng)
        chunks = telegram(text)
        check_telegram(chunks)
        whole = squeezed(chunks) + chunks[0].markup
        assert [word for word in words if word not in whole] == [], text
        sent = discord(text)
        check_discord(sent)
        whole = squeezed(sent)
        assert [word for word in words if word not in whole] == [], text


@given(st.text(), st.integers(min_value=2, max_value=40))
def test_plain_texts_keep_every_letter(text: str, limit: int) -> None:
    """A command's answer holds names and addresses that must stand as they are."""
    chunks = plain(text, limit)
    assert all(0 < units(chunk.text) <= limit and chunk.markup == "" for chunk in chunks)
    assert [c for chunk in chunks for c in chunk.text if c.isalnum()] == [c for c in text if c.isalnum()]


@given(st.text(st.sampled_from("*_`[]()<>#-|~\\$!\n :ab1\u0301😀词\t@"), max_size=200))
def test_any_text_becomes_messages_that_platforms_take(text: str) -> None:
    """A message that is refused is an answer that is lost."""
    check_telegram(telegram(text))
    check_discord(discord(text))
    check_discord(discord(text, markdown=False))


def test_every_beginning_of_an_answer_is_shown_well() -> None:
    """People see the answer grow; half a fence or half a link must not be refused."""
    for length in range(1, len(ANSWER), 3):
        check_telegram(telegram(ANSWER[:length]))
        check_discord(discord(ANSWER[:length]))
    assert marked("Look:\n```py\nprint(1") == [("pre", "print(1")]
    assert marked("**bold** and **ha") == [("bold", "bold")]
    assert telegram("Look:\n-")[0].markup == ""


def test_an_answer_reads_well_on_telegram() -> None:
    """One example of everything, so that a change of looks is seen in a review."""
    (chunk,) = telegram(ANSWER)
    assert chunk.text == (
        "Plan für morgen\n\nZuerst git pull, dann die Seite lesen 😀:\n\n1. eins\n   ◦ innen\n2. zwei\n\n"
        "Zitat\nmit Code\n\nWort | 字\n-----+---\nja   | 是\n\ndef f():\n    return 1\nUnd a^2 am Ende."
    )
    assert marked(ANSWER) == [
        ("bold", "Plan für morgen"), ("code", "git pull"), ("text_link", "die Seite"), ("italic", "innen"),
        ("strikethrough", "zwei"), ("blockquote", "Zitat\nmit Code"), ("code", "Code"),
        ("pre", "Wort | 字\n-----+---\nja   | 是"), ("pre", "def f():\n    return 1"), ("code", "a^2"),
    ]  # fmt: skip
    assert [entity.get("language") for entity in entities(chunk) if entity["type"] == "pre"] == [None, "python"]


def test_an_answer_reads_well_on_discord() -> None:
    """Discord has a Markdown of its own; what would be read otherwise there is escaped."""
    (chunk,) = discord(ANSWER)
    assert chunk.text == (
        "# Plan für morgen\n\nZuerst `git pull`, dann [die Seite](<https://example.org/a_b>) lesen 😀:\n\n"
        "1. eins\n   - *innen*\n2. ~~zwei~~\n\n> Zitat\n> mit `Code`\n\n```\nWort | 字\n-----+---\nja   | 是\n```\n\n"
        "```python\ndef f():\n    return 1\n```\nUnd `a^2` am Ende."
    )


def test_offsets_count_utf16_units() -> None:
    """An emoji is two units: marks counted in code points would slip to the next word."""
    (chunk,) = telegram("😀😀 **wort** 𝒜 `x`")
    assert entities(chunk) == [{"type": "bold", "offset": 5, "length": 4}, {"type": "code", "offset": 13, "length": 1}]


def test_a_style_is_ended_before_code_and_begun_again() -> None:
    """Telegram drops one of the two where code stands inside bold words."""
    assert marked("**one `two` three**") == [("bold", "one"), ("code", "two"), ("bold", "three")]
    assert marked("# one `two`") == [("bold", "one"), ("code", "two")]
    assert marked("[`two`](https://a.b)") == [("text_link", "two")]
    assert marked("# one **two**") == [("bold", "one two")]


@each_row(
    "text",
    [
        "[x](javascript:alert)", "[x](tg://user?id=7)", "[x](file:///etc)", "[x](docs/a.md)",
        "![x](data:image/png;base64,AA)",
    ],
)  # fmt: skip
def test_other_links_stay_as_they_are_written(text: str) -> None:
    """A link that runs a script or calls a person is not made; `array[i](x)` is no link at all."""
    assert telegram(text) == [Chunk(text=text)]


def test_links_lead_where_they_say() -> None:
    """Addresses keep their underlines, and nobody needs an entity for an address that is its own label."""
    assert telegram("see https://e.org/__init__.py or <http://q.r/a_b>.")[0] == Chunk(
        text="see https://e.org/__init__.py or http://q.r/a_b."
    )
    assert telegram("[write](mailto:a@b.org)")[0] == Chunk(text="write (a@b.org)")
    assert marked("![a cat](https://e.org/c.png)") == [("text_link", "a cat")]
    assert discord("https://e.org/__a__/ [l](https://e.org/@here)")[0].text == (
        "<https://e.org/__a__/> [l](<https://e.org/%40here>)"
    )


@each_row(
    "label",
    [
        "https://bank.example", "**bank.example/login**", "WWW.bank.example", "pay at https://bank.example now",
        "bank\u2060.example", "ｂａｎｋ.example", "`bank.example`", "https://x@bank.example/", "bank.example:443",
    ],
)  # fmt: skip
def test_a_label_that_names_another_host_is_no_link(label: str) -> None:
    """Who reads an address trusts it; where the link leads is shown beside it."""
    for chunk in (*telegram(f"[{label}](https://evil.example/x)"), *discord(f"[{label}](https://evil.example/x)")):
        assert "https://evil.example/x" in chunk.text
        assert "text_link" not in chunk.markup and "](" not in chunk.text


@each_row("label", ["a.b", "www.a.b/x", "https://A.b/y", "the docs", "See p. 7.", "Dr. No", "3.11"])
def test_a_label_that_names_the_host_or_none_is_a_link(label: str) -> None:
    assert marked(f"[{label}](https://www.a.b/x?y=z)") == [("text_link", label)]


def test_html_is_shown_as_text() -> None:
    text = "a List<String> <!-- x -->\n<div>\nb\n</div>"
    assert telegram(text) == [Chunk(text=text)]
    assert telegram("a<br>b")[0].text == "a\nb"


def test_stars_work_in_chinese() -> None:
    """There are no blanks round words, which CommonMark takes for a sign that the stars are meant as stars."""
    assert marked("**“词”**是**加粗。**中文") == [("bold", "“词”"), ("bold", "加粗。")]


def test_wide_tables_become_lists() -> None:
    """Fixed width wraps on a telephone, and links can't stand in it."""
    wide = "| name | what it is |\n|--|--|\n| one | a very long description of it, longer than a line |\n| two | |"
    assert (
        telegram(wide)[0].text
        == "name: one\nwhat it is: a very long description of it, longer than a line\n\nname: two"
    )
    assert marked("| a | b |\n|--|--|\n| 1 | [l](https://e.org) |") == [
        ("bold", "a"),
        ("bold", "b"),
        ("text_link", "l"),
    ]
    assert "3" in telegram("| a | b |\n|--|--|\n| 1 | 2 | 3 |")[0].text, "the library drops it"


def test_lists_keep_their_numbers_and_boxes() -> None:
    """A second list may go on where the first one ended."""
    assert telegram("3. a\n4. b\n   - c\n\ntext\n\n1. d\n1. e")[0].text == "3. a\n4. b\n   ◦ c\n\ntext\n\n1. d\n2. e"
    assert telegram("- [ ] a\n- [x] b")[0].text == "☐ a\n☑ b"


def test_a_block_of_code_cut_in_two_is_code_twice() -> None:
    """Half a program in proportional letters can't be read."""
    lines = [f"    line {number} = 'x'" for number in range(800)]
    code = "\n".join(lines)
    chunks = telegram(f"Look:\n\n```py\n{code}\n```\nDone.")
    assert len(chunks) > 2
    assert all([e["type"] for e in entities(chunk)] == ["pre"] for chunk in chunks)
    assert all(entities(chunk)[0]["language"] == "py" for chunk in chunks)
    assert "\n".join(shown(chunk, entities(chunk)[0]) for chunk in chunks) == code

    sent = discord(f"Look:\n\n```py\n{code}\n```\nDone.")
    assert all(chunk.text.count("```py\n") == 1 and chunk.text.count("```") == 2 for chunk in sent)


def test_a_block_of_code_that_fits_is_not_cut() -> None:
    before, code = "word " * 700, "x = 1\n" * 200
    first, second = telegram(f"{before}\n\n```\n{code}```")
    assert first == Chunk(text=before.strip())
    assert shown(second, entities(second)[0]) == code.strip()


@each_row(
    ("piece", "end"),
    [("word word word.\n\n", "."), ("word word\n", "d"), ("Word word. ", "."), ("字字字字。", "。"), ("word ", "d")],
)
def test_texts_are_cut_where_a_reader_would_pause(piece: str, end: str) -> None:
    chunks = plain(piece * 2_000, TELEGRAM_LIMIT)
    assert all(chunk.text.endswith(end) and len(chunk.text) > TELEGRAM_LIMIT // 2 for chunk in chunks[:-1])
    assert squeezed(chunks) == "".join((piece * 2_000).split())


@each_row("cluster", [FAMILY, "🇩🇪", "e\u0301", "👍🏽", "한"])
def test_what_looks_like_one_character_is_not_cut(cluster: str) -> None:
    chunks = telegram("x" + cluster * 3_000)
    assert len(chunks) > 1 or units(cluster) * 3_000 < TELEGRAM_LIMIT
    assert all(chunk.text.removeprefix("x").replace(cluster, "") == "" for chunk in chunks)


def test_more_than_a_hundred_marks_keep_the_important_ones() -> None:
    """Telegram ignores the rest in an order of its own."""
    (chunk,) = telegram("*a* `b` " * 90)
    kinds = [entity["type"] for entity in entities(chunk)]
    assert (kinds.count("code"), kinds.count("italic")) == (90, 10)
    assert kinds[0] == "italic"


@each_row("text", ["", " \n ", "\u200b\u3164", "```\n```", "\u2800"])
def test_a_text_with_nothing_to_see_is_still_a_message(text: str) -> None:
    """Platforms refuse an empty message, and a person waits for an answer."""
    assert telegram(text) == discord(text) == [Chunk(text=NOTHING)]
    assert "`" in text or plain(text, 10) == [Chunk(text=NOTHING)]


def test_nobody_is_called_by_a_model() -> None:
    """Text is data: it can't ring everybody's telephone."""
    (chunk,) = discord("@everyone @here <@123> <@&5> `@here` a@b.org")
    assert chunk.text == "@\u200beveryone @\u200bhere <@\u200b123> <@\u200b&5> `@\u200bhere` a@b.org"


#: The characters that Telegram takes out of a text before it looks for names in it.
REMOVED = "\u2028-\u202e\u030a\u0333\u033f"


def called(chunk: Chunk) -> list[str]:
    """Returns whom Telegram would call: names behind an @ that stand in no code."""
    code = [(e["offset"], e["offset"] + e["length"]) for e in entities(chunk) if e["type"] in {"code", "pre"}]
    return [
        match[0]
        for match in re.finditer(rf"(?<!\w)@[{REMOVED}]*[A-Za-z0-9_]+", chunk.text)
        if not any(start <= units(chunk.text[: match.start()]) < end for start, end in code)
    ]


CALLS = ["@ada_l", "x@ada_l", "**@ada_l**", "`@ada_l`", "```\n@ada_l\n```", "[@ada_l](https://a.b)", "https://a/@ada_l"]
CALLS += ["@\u202eada_l", "@\u0333\u2028ada_l", "`@\u202eada_l`"]


@given(
    st.lists(
        st.sampled_from([*CALLS, "😀", "a" * 1_365, "ä.", "> ", "\n\n", " ", "*", "`", "```", "|", "-", "@", "。"]),
        max_size=40,
    ),
    st.sampled_from([1, 30]),
)
def test_nobody_is_called_by_name_on_telegram(parts: list[str], times: int) -> None:
    """In any chunk, with any formatting, too much of it or none; and nothing else changes."""
    text = "".join(parts) * times
    for chunks in (telegram(text), plain(text, 4_096)):
        assert [name for chunk in chunks for name in called(chunk)] == []
    check_telegram(telegram(text))
    assert "@ada_l" not in re.sub(r"\w@", "", unmentioning(text))
    assert (
        squeezed(plain(text, 4_096)).replace("\u2060", "").replace("/%40", "/@") == "".join(text.split())
        or not text.strip()
    )


def test_a_name_reads_as_before_and_mail_addresses_and_code_stay_as_they_are() -> None:
    """The joiner is not seen; what is copied to be used must work."""
    (chunk,) = telegram(
        "**@ada** `@bob` ada@example.org [@carl](https://a.b/@carl) /why@lake_bot #tag\n```py\n@cache\n```"
    )
    assert chunk.text == "@\u2060ada @bob ada@example.org @\u2060carl /why@lake_bot #tag\n@cache"
    assert [(e["type"], shown(chunk, e), e.get("url")) for e in entities(chunk)] == [
        ("bold", "@\u2060ada", None),
        ("code", "@bob", None),
        ("text_link", "@\u2060carl", "https://a.b/@carl"),
        ("pre", "@cache", None),
    ]
    assert (
        plain("@ada ada@example.org https://a.b/@carl", 99)[0].text == "@\u2060ada ada@example.org https://a.b/%40carl"
    )
    (bare,) = telegram("https://a.b/@carl")
    assert [(e["type"], e["url"]) for e in entities(bare)] == [("text_link", "https://a.b/@carl")]


def test_plain_text_is_escaped_for_discord() -> None:
    assert discord("# *a* [b](c) 1. d\n- e `f`", markdown=False)[0].text == (
        "\\# \\*a\\* \\[b\\](c) 1. d\n\\- e \\`f\\`"
    )


def test_backticks_in_code_do_not_end_it_on_discord() -> None:
    (chunk,) = discord("````\n```py\nx\n```\n````\n`` a`b ``")
    assert chunk.text == "```\n``\u200b`py\nx\n``\u200b`\n```\n`` a`b ``"


@pytest.mark.parametrize(
    "text", [">" * 60 + " deep", "".join("  " * n + f"- deep{n}\n" for n in range(30)), "- " * 40 + "deep"]
)
def test_what_is_nested_too_deep_is_shown_as_it_is(text: str) -> None:
    assert squeezed(telegram(text)) == "".join(text.split())


@each_row(
    "mark", ["[", "![[", "*", "> ", "- ", "`", "|a", "\\[", "http://", "*a **b ", "<", "e\u0301\u0301", " ", FAMILY]
)
def test_a_megabyte_of_marks_is_shown_as_it_is(mark: str) -> None:
    """A hostile text must cost no more than a long one."""
    text = "start " + mark * (1_000_000 // len(mark))
    assert len(squeezed(telegram(text))) == len("".join(text.split()))


def test_what_keeps_a_name_from_ringing_stands_outside_the_formatting_beside_it() -> None:
    """A code that is copied must hold nothing that can't be seen."""
    (chunk,) = telegram("write to @`somebody`")
    assert chunk == Chunk(text="write to @\u2060somebody", markup='[{"type":"code","offset":11,"length":8}]')
