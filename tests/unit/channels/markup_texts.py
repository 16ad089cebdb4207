"""Random Markdown for the markup tests: documents that know what a reader must see of them, and soups of marks."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

#: First letters of words; some take two UTF-16 units, some are two columns wide, some carry a combining mark.
LETTERS = ("a", "Q", "é", "e\u0301", "я", "ع", "ñ", "词", "語", "한", "𝒜", "𝟚", "ก", "ß")
BETWEEN = (" ", " ", " ", ", ", " 😀 ", " — ", "\n", " 👨‍👩‍👧 ", ". ", "。")
STYLES = {"bold": ("**", "**"), "italic": ("*", "*"), "strikethrough": ("~~", "~~"), "code": ("`", "`")}
MARKS = (
    "*", "**", "***", "_", "__", "~~", "~", "`", "``", "```\n", "\n```\n", "\n```py\n", "~~~\n", "[", "]", "](", "(", ")",
    "![", "](http://x.y/z_)", "<", ">", "<br>", "<b>", "</b>", "<!--", "-->", "\n", "\n\n", "\n- ", "\n  - ", "\n1. ",
    "\n> ", "> ", "\n# ", "\n### ", "\n---\n", "\n===\n", "\n| ", " | ", " |\n", "\n|---|---|\n", "\n|---|:-:|--:|\n",
    "\\", "\\\\", "!", "$", "$$", "\\(", "\\)", "\\[", "\\]", "&amp;", "&", "@everyone", "<@12345678>", "\t", "    ", " ", " ",
    "https://a.b/c_d_", "http://", "[ ] ", "[x] ", "\u200b", "\u3000", "\r\n", "\u2028", "\x07", "\ud800", "😀", "\n\n\n\n",
)  # fmt: skip


@dataclass
class Document:
    """`seen` are words in the order of the text, `anywhere` words of tables, `marked` pairs of entity type and word."""

    text: str = ""
    seen: list[str] = field(default_factory=list)
    anywhere: list[str] = field(default_factory=list)
    marked: list[tuple[str, str]] = field(default_factory=list)


def document(rng: random.Random) -> Document:
    """Well-formed Markdown of one to many messages, short enough to be parsed."""
    made = Document()
    for _ in range(rng.choice((1, 1, 2, 2, 4, 8, 20))):
        if len(made.text) < 20_000:
            made.text += rng.choice(BLOCKS)(rng, made) + "\n\n"
    return made


def soup(rng: random.Random) -> tuple[str, list[str]]:
    """Marks and words without sense, and the words in it that must be seen somewhere."""
    words: list[str] = []
    parts = []
    for _ in range(rng.choice((3, 10, 10, 30, 30, 100, 400))):
        if rng.random() < 0.4:
            words.append(word(rng, len(words)))
            parts.append(words[-1])
        else:
            parts.append(rng.choice(MARKS))
    text = "".join(parts)
    languages = {match[1] for match in re.finditer(r"(?:`{3,}|~{3,})[ \t]*([^\s`~]*)", text)}
    addresses = "".join(re.findall(r"\]\(\S*", text))
    return text, [each for each in words if each not in addresses and not any(each in info for info in languages)]


def word(rng: random.Random, number: int) -> str:
    """No word is part of another one."""
    return f"{rng.choice(LETTERS)}{number}z"


def _words(rng: random.Random, made: Document, *, many: int = 12, kinds: tuple[str, ...] = tuple(STYLES)) -> str:
    parts = []
    for _ in range(rng.randint(1, many)):
        each = word(rng, len(made.seen) + len(made.anywhere))
        made.seen.append(each)
        if kinds and rng.random() < 0.3:
            kind = rng.choice(kinds)
            made.marked.append((kind, each))
            each = each.join(STYLES[kind])
            if kind != "code" and rng.random() < 0.2:
                each = f"[{each}](https://example.org/a_b?c=d)"
                made.marked.append(("text_link", made.seen[-1]))
        parts.append(each)
        parts.append(rng.choice(BETWEEN))
    # Marks next to letters mean something else; blanks keep them apart.
    return " ".join(parts[:-1]).strip()


def _paragraph(rng: random.Random, made: Document) -> str:
    return _words(rng, made, many=rng.choice((5, 5, 20, 40, 300)))


def _heading(rng: random.Random, made: Document) -> str:
    before = len(made.seen)
    text = _words(rng, made, many=5, kinds=()).replace("\n", " ")
    made.marked += [("bold", each) for each in made.seen[before:]]
    return "#" * rng.randint(1, 6) + " " + text


def _list(rng: random.Random, made: Document) -> str:
    lines = []
    depth = 0
    for number in range(rng.randint(1, 12)):
        depth = max(0, min(4, depth + rng.choice((-1, 0, 0, 1)))) if number else 0
        bullet = rng.choice(("- ", "- [ ] ", "- [x] "))
        lines.append("  " * depth + bullet + _words(rng, made).replace("\n", " "))
    return "\n".join(lines)


def _quote(rng: random.Random, made: Document) -> str:
    before = len(made.seen)
    text = _words(rng, made, many=30)
    made.marked += [("blockquote", each) for each in made.seen[before:]]
    return "\n".join(f"> {line.strip()}" for line in text.split("\n") if line.strip())


def _fence(rng: random.Random, made: Document) -> str:
    before = len(made.seen)
    text = _words(rng, made, many=rng.choice((5, 10, 400)), kinds=()).replace("。", "\n    ")
    made.marked += [("pre", each) for each in made.seen[before:]]
    return f"```{rng.choice(('', 'py', 'c++'))}\n{text}\n```"


def _table(rng: random.Random, made: Document) -> str:
    columns = rng.randint(1, 5)

    def cell() -> str:
        made.anywhere.append(word(rng, len(made.seen) + len(made.anywhere)))
        return made.anywhere[-1] + rng.choice(("", "", " and more of it", " [l](https://example.org)", r" \| "))

    rows = [[cell() for _ in range(columns)] for _ in range(rng.randint(1, 8))]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + rng.choice(("---|", "--:|")) * columns)
    return "\n".join(lines)


BLOCKS = (_paragraph, _paragraph, _heading, _list, _quote, _fence, _table)
