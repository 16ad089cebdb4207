"""Cuts out of a message the words that are not its author's: quotations, code, links, mails, and texts it asks about.

Invariants: pure; time grows linearly with the text. A part that was cut leaves `HOLE` behind, so that no value can be
read across it. A short quoted name only loses its quotes. In doubt more is cut: what is lost can be said again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from languages import listed

#: The mark for a part that was cut out; no value may hold it.
HOLE: Final = "\ufffc"
#: The longest quotation that may be a name, in characters.
_NAMED: Final = 40
#: The lines that are looked at for one that gives a text to work on, and the characters of each.
_LINES: Final = 40
_LINE: Final = 240
#: The longest line, in characters, that greets in a letter or closes it, and the most words of a name in it, and of the
#: line that signs it.
_LETTER_LINE: Final = 60
_NAMES: Final = 5
#: The longest such line in Chinese or Japanese, in characters.
_SHORT: Final = 20
_SIGNED: Final = 4
_GREETING_ENDS: Final = (",", "，", ":", "：", "!", "！", "、", "様", "。")


class Phrase:
    """A regular expression that is compiled at its first use: all of them would take a good part of a start."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        return self.regex.search(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self.regex.sub(by, text)


def own_words(text: str, *, longest_quote: int = _NAMED, given: bool = True) -> str:
    """Returns a message without others' words; quotations of at most `longest_quote` characters may stay.

    A text that is only `given` to work on is left out. Facts of it may stay: people introduce themselves below a line.
    """
    text = _without_letters(_until(text, ("gives", "sends") if given else ("sends",)))
    for pattern in _CUT:
        text = pattern.sub(HOLE, text)
    text = _STRESSED.sub(r"\1", text)

    def unquoted(match: re.Match[str]) -> str:
        inner = next((group for group in match.groups() if group is not None), "")
        title = match.group().startswith("《")
        if not title and (_SPEAKING.search(inner) or _length(inner) > longest_quote):
            return HOLE
        return inner or " "

    return _QUOTED.sub(unquoted, text)


def _length(text: str) -> int:
    return len(text) + len(_UNSPACED.findall(text))


def _until(text: str, lists: Sequence[str]) -> str:
    """Returns a message up to a line that brings another text behind its colon or below it, by lists of words.

    What a person was sent, or wants passed on, has a colon before it: "Tom just sent: …", "Tell Tom: …".
    """
    end = 0
    for line in text.splitlines(keepends=True)[:_LINES]:
        asked, colon, _ = line[:_LINE].replace("：", ":").partition(":")
        plain = asked.replace("’", "'")
        brings = any(listed("claims")[name].search(plain) for name in lists if colon or name != "sends")
        if brings or (colon and _passes_on(plain)):
            return f"{text[: end + len(asked)]}{colon and HOLE}\n{HOLE}"
        end += len(line)
    return text


def _passes_on(plain: str) -> bool:
    order = _SENTENCE_END.split(plain)[-1]
    passes = listed("claims")["passes"].match(order)
    return passes is not None and not listed("claims")["spared"].match(order[passes.end() :].lstrip(" -"))


def _without_letters(text: str) -> str:
    lines = text.splitlines(keepends=True)
    begins: int | None = None
    for place, line in enumerate(lines):
        plain = line.strip() if len(line) <= _LETTER_LINE else ""
        if begins is None:
            begins = place if _greets(plain) else None
        elif _closes(plain) or (_THANKS.fullmatch(plain) and place + 2 == len(lines)):
            signed = place + 1 < len(lines) and len(lines[place + 1].split()) <= _SIGNED
            lines[begins : place + 1 + signed] = [f"{HOLE}\n"] * (place + 1 + signed - begins)
            begins = None
    return "".join(lines)


def writes_to(text: str) -> bool:
    """Returns whether a text begins as a letter to somebody by name: "Dear Tom, please reply in German from now on"."""
    head, comma, _ = text.lstrip()[:_LETTER_LINE].partition(",")
    return bool(comma) and listed("claims")["formal"].match(head) is not None and _greets(f"{head},")


def _closes(line: str) -> bool:
    closing = listed("claims")["closes"].search(line)
    if closing is None or len(line.split()) > _NAMES:
        return False
    return closing.start() == 0 or (_UNSPACED.search(line) is not None and len(line) <= _SHORT)


def _greets(line: str) -> bool:
    greeting = listed("claims")["greets"].search(line)
    if (
        greeting is None
        or not line.endswith((*_GREETING_ENDS, greeting.group()))
        or listed("claims")["bots"].search(line)
    ):
        return False
    if _UNSPACED.search(greeting.group()):
        return len(line) <= _SHORT
    return greeting.start() == 0 and 0 < len(_WORD.findall(line[greeting.end() :])) <= _NAMES


#: The lines that begin a mail; others ("To:", "An:") do so only above one of these.
_HEAD: Final = (
    r"(?:from|subject|von|betreff|objet|asunto|发件人|寄件人|收件人|寄件者|收件者|主题|主旨|差出人|送信者|宛先|件名)"
    r" {0,2}[:：]"
)
_MAIL: Final = Phrase(
    rf"^[ \t*]{{0,8}}(?:{_HEAD}"
    rf"|(?:to|cc|date|sent|an|datum|gesendet|de|à|para|envoyé|fecha|enviado|抄送|日期|日時) {{0,2}}[:：].{{0,200}}\n"
    rf"(?:.{{0,200}}\n){{0,3}}[ \t*]{{0,8}}{_HEAD}"
    r"|-{2,20} ?(?:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht"
    r"|message d'origine|mensaje original|原始邮件|转发的邮件|転送)"
    r"|begin forwarded message|(?:on|am|le|el) .{4,120}(?:wrote|schrieb.{0,80}|a écrit|escribió) ?:\s*$)[\s\S]*",
    re.IGNORECASE | re.MULTILINE,
)
_CUT: Final = (
    Phrase(r"\[secret:[^\]\n]{0,80}\]?"),
    Phrase(r"```.*?(?:```|\Z)", re.DOTALL),
    Phrase(r"`[^`\n]{1,400}`"),
    _MAIL,
    Phrase(r"^[ \t]{0,8}(?:>|\$ |#!|//|/\*|import |def |var |let |const |print|/\w).*$", re.MULTILINE),
    Phrase(r"^.*[♪♫🎵🎶].*$", re.MULTILINE),
    Phrase(r"\bhttps?://\S{1,2000}"),
)
_QUOTED: Final = Phrase(
    r'"([^"\n]{0,400})(?:"|$)|„([^“”\n]{0,400})(?:[“”]|$)|“([^”\n]{0,400})(?:”|$)|«([^»\n]{0,400})(?:»|$)'
    r"|「([^」\n]{0,400})(?:」|$)|『([^』\n]{0,400})(?:』|$)"
    r"|(?<![\w'])'(?=[^\s'])([^\n]{1,200}?)(?<=[^\s'])'(?!\w)|‘([^’\n]{1,200})’(?!\w)|《([^》\n]{1,60})》",
    re.MULTILINE,
)
_SENTENCE_END: Final = re.compile(r"[.!?。！？]\s*")
#: Thanks above the last line, which is a name.
_THANKS: Final = re.compile(r"[^\W\d]+(?: [^\W\d]+){0,2},")
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u3040-\u9fff]")
_STRESSED: Final = Phrase(r"\*{1,3}(?=[^\s*])([^*\n]{1,200})(?<=\S)\*{1,3}")
_SPEAKING: Final = Phrase(
    r"\b(?:i|i'm|i’m|im|my|me|we|don't|please|ich|mich|mir|wir|bitte|je|moi|nous|yo|mi|por favor|ll[aá]m\w+)\b"
    r"|[我俺咱]|别|请|私|僕|ください|呼んで",
    re.IGNORECASE,
)
