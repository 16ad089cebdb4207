"""Reads the bytes of a text file in whatever encoding it was saved.

Text is UTF-8, UTF-16, or in one of the older encodings whose letters its own are: the commonest letters of a language
make up most of a text only if they are read as what they are. A guess that fits badly is not made, because nonsense
told as text is worse than none.

Invariants: the beginning of a file decides, and as much is decoded as is asked for: time and memory are bounded.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import Final

#: The bytes, and the characters, at a file's beginning by which is told what it is.
_LOOKED_AT: Final = 64 * 1024
#: The bytes before the first letter above ASCII that are looked at with it: it may end a word.
_WORD_BEFORE: Final = 100
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
#: Share of control characters above which bytes are no text; text with terminal colour codes has some.
_MOST_CONTROL: Final = 0.05
_CONTROL: Final = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
#: Share of characters that can't be read above which an encoding is the wrong one: damaged files have a few.
_MOST_LOST: Final = 0.01
#: The share of the expected letters that a reading needs.
_LEAST: Final = 0.5
_LEAST_WIDE: Final = 0.3
_HIGH_BYTE: Final = re.compile(rb"[\x80-\xff]")
_WORD: Final = re.compile(r"\w+")
_WORDS_LOOKED_AT: Final = 8_000
_LATIN: Final = re.compile(r"[A-Za-z]")
_LATIN_WORD: Final = re.compile(r"[A-Za-z]{2}")

_HAN: Final = frozenset(
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起"
    "还发成事只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长知样现分将外但身些与高意进把法此实回二理美点月明其种声"
    "全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由今"
    "這來個國說們為時會著過學對裡後麼沒還發當開經頭從動兩長現將與進實種聲兒問給幾業間電門東聽氣關並無樣點話書請讓"
    "午吃喝茶天很喜欢歡谢謝请妹姐哥弟爸妈媽买買卖賣钱錢号號"
)
_KANA: Final = frozenset(map(chr, (*range(0x3041, 0x3097), *range(0x30A1, 0x30F7), 0x30FC)))
_HANGUL: Final = "이다는에의을가고하지기로한도를사은어자나리그인시대서정있수일만보부라아원해게안스니세요습"
#: An encoding, the letters that are common in texts written in it, the share they make up of its letters above ASCII,
#: and whether its letters stand among Latin ones. The first of those that fit equally well is taken.
_ENCODINGS: Final = tuple(
    (encoding, frozenset(letters), share, latin)
    for encoding, letters, share, latin in (
        ("cp932", _KANA, 0.45, False),
        ("euc_jp", _KANA, 0.45, False),
        ("gb18030", _HAN, 0.4, False),
        ("big5", _HAN, 0.4, False),
        ("cp949", _HANGUL, 0.55, False),
        ("cp1251", "оеаинтсрвлОЕАИНТСРВЛ", 0.62, False),
        ("koi8_r", "оеаинтсрвл", 0.62, False),
        ("cp1253", "αοιετσνηυρςάίό", 0.75, False),
        ("cp1255", "יוהלארתבשמ", 0.72, False),
        ("cp1256", "اليمنوترب", 0.62, False),
        ("cp874", "านรอกเงวยมลดทสต", 0.75, False),
        ("cp1252", "’‘“”„–—…€•™©®°«»£§ºª¿¡œäöüßéèàáíóúñçâêîôûëïåøæãõòìùþðÄÖÜÉÅØÆ", 0.95, True),
        ("cp1250", "ąęłńóśźżćŁŚŻáéíýčěřšžůúťďňőűöüăţşâî", 0.95, True),
        ("cp1254", "ğışçöüâİŞÇÖÜ", 0.95, True),
    )
)  # fmt: skip

#: The encodings whose characters are ordered by how common they are, for texts of names and other rare characters: the
#: bytes of the common ones and their least share, the bytes that texts in other encodings with such bytes lack and
#: theirs, and the bytes of all. A fifth of a Chinese text in GB 2312 lies beyond the common characters of EUC-JP, and
#: some of a Japanese one beyond the Korean syllables.
_BY_BYTES: Final = tuple(
    (encoding, re.compile(common), least, re.compile(own), of_own, re.compile(every))
    for encoding, common, least, own, of_own, every in (
        ("gb18030", rb"[\xb0-\xd7][\xa1-\xfe]", 0.6, rb"[\xd0-\xf7]", 0.12, rb"[\xb0-\xf7][\xa1-\xfe]"),
        ("euc_jp", rb"[\xb0-\xcf][\xa1-\xfe]", 0.85, rb"[\xc9-\xcf]", 0.1, rb"[\xb0-\xf4][\xa1-\xfe]"),
    )
)
_HIGH_RUN: Final = re.compile(rb"[\x80-\xff]+")
_PAIR: Final = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
#: The fewest characters by which that is told.
_LEAST_PAIRS: Final = 8
#: The least share of runs that hold whole characters; words with one byte for a letter are as often odd as even.
_LEAST_EVEN: Final = 0.8

#: The letters that make up most of a text without a byte order mark, once its byte order is guessed right.
_FAMILIAR: Final = (
    frozenset(map(chr, range(32, 127)))
    | set("\t\r\n，。、！？：；（）「」・　")
    | {letter for _, letters, _, _ in _ENCODINGS for letter in letters}
)


def decoded(data: bytes, *, chars: int) -> str | None:
    """Returns at least the first `chars` characters of `data` if it is text, else None."""
    # A character takes at most four bytes; decoding all of 20 MB would hold up everybody for half a second.
    whole = len(data) <= 4 * chars
    data = data[: 4 * chars]
    if data.startswith(b"{\\rtf"):  # decodes as text, but its words are lost among formatting commands
        return None
    head = data[:_LOOKED_AT]
    if head.isascii() and b"\x00" not in head and (high := _HIGH_BYTE.search(data)):
        head = data[max(0, high.start() - _WORD_BEFORE) :][:_LOOKED_AT]
    encoding = _encoding(head, whole=whole and data.endswith(head))
    text = _read(data, encoding, whole=whole) if encoding else None
    if text is None or "\x00" in text:
        return None
    return None if _is_binary(text[:_LOOKED_AT]) else text


def _encoding(head: bytes, *, whole: bool) -> str:
    """Returns the encoding of a text by its beginning, or "" if none is plausible."""
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    if b"\x00" in head:
        return _wide(head, whole=whole)
    if _read(head, "utf-8-sig", whole=whole) is not None:
        return "utf-8-sig"
    fit, encoding = max(
        (
            (_fit(head, name, letters, latin=latin, whole=whole) / share, name)
            for name, letters, share, latin in _ENCODINGS
        ),
        key=lambda one: one[0],  # of those that fit as well, the first
    )
    return encoding if fit >= _LEAST else _by_bytes(head, whole=whole) or _wide(head, whole=whole)


def _by_bytes(head: bytes, *, whole: bool) -> str:
    """Returns the encoding in which most characters are common ones, by their bytes alone, or "" if there is none."""
    pairs = _PAIR.findall(head)
    runs = _HIGH_RUN.findall(head)
    if sum(len(run) % 2 == 0 for run in runs) < _LEAST_EVEN * len(runs):
        return ""
    for encoding, common, least, own, of_own, every in _BY_BYTES:
        written = [pair for pair in pairs if every.fullmatch(pair)]
        shares = (sum(map(bool, map(pattern.match, written))) / max(1, len(written)) for pattern in (common, own))
        is_common, is_own = shares
        text = _read(head, encoding, whole=whole) if len(written) >= _LEAST_PAIRS else None
        if is_common >= least and is_own >= of_own and text is not None and not _is_binary(text):
            return encoding
    return ""


def _fit(head: bytes, encoding: str, letters: frozenset[str], *, latin: bool, whole: bool) -> float:
    """Returns the share of the given letters among those above ASCII, 0 if the text is none in this encoding."""
    text = _read(head, encoding, whole=whole)
    if text is None or _is_binary(text):
        return 0.0
    words = [word for word in _WORD.findall(text[:_WORDS_LOOKED_AT]) if len(word) > 1 and not word.isascii()]
    among_latin = sum(_LATIN.search(word) is not None for word in words)
    odd = sum(word[1:] != word[1:].lower() and word != word.upper() for word in words)  # a capital after a small one
    is_latin = 2 * among_latin >= len(words) if words else _LATIN_WORD.search(text) is not None
    if is_latin != latin or 4 * odd > len(words):
        return 0.0
    high = {char: n for char, n in Counter(text).items() if not char.isascii() and (char.isalnum() or char in letters)}
    # One letter that fits may do so by chance, unless it stands in a word of Latin ones.
    return sum(n for char, n in high.items() if char in letters) / max(1, sum(high.values()) + (0 if latin else 3))


def _wide(head: bytes, *, whole: bool) -> str:
    shares = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        counts = Counter(_read(head, encoding, whole=whole) or "\x00")
        known = sum(n for char, n in counts.items() if char in _FAMILIAR)
        shares[encoding] = 0.0 if "\x00" in counts else known / counts.total()
    best = max(shares, key=lambda encoding: shares[encoding])
    return best if shares[best] >= _LEAST_WIDE else ""


def _is_binary(text: str) -> bool:
    return len(text) - len(_CONTROL.sub("", text)) > _MOST_CONTROL * len(text)


def _read(data: bytes, encoding: str, *, whole: bool) -> str | None:
    """Returns `data` as text, without a last character that was cut in two; None if it is not in this encoding."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data, final=whole)
    lost = text.count("\ufffd")
    high = len(text) - len(text.encode("ascii", "ignore")) if lost else 0
    return None if lost > _MOST_LOST * high else text
