"""Makes text safe to store: removes hidden characters and flags instruction-like phrases.

Invariants: Everything here is pure and takes time linear in the text. `clean` is idempotent. A flag removes nothing: it
tells the owner of a memory about a suspicious phrase in it.
"""

from __future__ import annotations

import re
from functools import cache

from languages.reading import shipped

# --- visible text ---------------------------------------------------------------------------------------

#: Characters that show nothing and can hide or reorder text: controls (except tab and newline), soft hyphen, combining
#: grapheme joiner, zero-width space, bidi marks, embeddings, overrides and isolates (Unicode Annex 9), word joiner and
#: invisible operators, byte order mark, interlinear annotation and its neighbours, Khmer's inherent vowels, the beams
#: and slurs of music, and the tag characters, which carry a whole hidden ASCII alphabet.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Characters that shape the letters or emoji beside them: joiners (emoji families, Persian, Indic, Mongolian words) and
#: variation selectors. One of each shows; a run of them does not, and can spell bytes.
_JOINERS = "\u180e\u200c\u200d"
_SHAPING = re.compile(f"[{_JOINERS}\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
#: The flags of England, Scotland and Wales, the only emoji made with tag characters (Unicode TS 51).
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def clean(text: str) -> str:
    """Returns `text` without characters that people can't see, but code and models can.

    Windows and old Mac line ends, U+2028 and U+2029 become `\\n`; tab and newline stay. Characters that shape visible
    ones stay too: single joiners between them, emoji and ideographic variation selectors, the three flags made of tags.
    A surrogate pair becomes its character, a lone surrogate U+FFFD. Nothing is normalised (no NFC): composing changes
    a person's input in some scripts, and comparisons normalise for themselves.
    """
    if text.isascii() and text.isprintable():
        return text
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    parts: list[str] = []
    last = 0
    for flag in _FLAG.finditer(text):
        parts += (_HIDDEN.sub("", text[last : flag.start()]), flag.group())
        last = flag.end()
    parts.append(_HIDDEN.sub("", text[last:]))
    return _SHAPING.sub(_shaped, "".join(parts))


def _shaped(match: re.Match[str]) -> str:
    """Reduces a run of shaping characters to the first selector and the first joiner that can shape anything here."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[start - 1 : start], text[end : end + 1]
    if not before.strip():
        return ""
    selector = next((char for char in match.group() if char not in _JOINERS), "")
    # Ideographic selectors belong to ideographs; the others also to ASCII (a keycap is a digit with one).
    if selector >= "\U000e0100" and not _IDEOGRAPH.match(before):
        selector = ""
    joiner = next((char for char in match.group() if char in _JOINERS), "")
    joins = after.strip() != "" and not (before + after).isascii()
    return selector + (joiner if joins else "")


# --- instruction-like text ---------------------------------------------------------------------------------


@cache
def _injections() -> list[tuple[str, list[str], str]]:
    classes = shipped("memory.text", "injections.yaml").items()
    return [(name, one["words"], "".join(one["pieces"])) for name, one in classes]


@cache
def _pattern(source: str) -> re.Pattern[str]:
    # Compiled on first use, so that importing this module costs nothing.
    return re.compile(source, re.ASCII)


def injection_flags(text: str) -> tuple[str, ...]:
    """Returns the classes of instruction-like text in `text`, in a fixed order; empty for ordinary talk.

    Classes: override, role, system prompt, chat markup, tool call, concealment, authority, carrying off. They are known
    in English and Chinese, the first class in Japanese, Korean, German, Spanish, French and Russian as well. A flag is
    a hint for the memory's owner, not a verdict; a memory has no authority either way.
    """
    lower = re.sub(r"[ \t\u3000]+", " ", text).lower()
    return tuple(
        name
        for name, words, source in _injections()
        if any(word in lower for word in words) and _pattern(source).search(lower)
    )
