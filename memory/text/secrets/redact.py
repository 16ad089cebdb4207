"""Masks secrets in text.

Invariants: pure, in time linear in the text; idempotent; only the secrets themselves change, and a mark is never read
as a secret again. This is a filter for text pasted by mistake, not a boundary: a password in the middle of prose,
without a word that announces it, passes.

Text is read in a normal form (`folding`), in which accents, widths and hidden characters don't matter. It is read
closely only at literals with which a format or an announcing word opens, and each look is paid from a fixed stock. No
text that people write comes near the end of the stock. In one that does, made almost only of openings, the rest is
masked as one: the unread part may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count
from typing import Final, TypeAlias

from memory.text.secrets import announced, formats
from memory.text.secrets.folding import BARRIER, folded_with_places, tree
from memory.text.secrets.likely import likely

#: Looks paid for one text, and the extra costs of a look behind a word and of a find. A thousand secrets fit.
_STOCK: Final = 14_000
_READING_COSTS: Final = 3
_FIND_COSTS: Final = 8
#: Characters of a find that are read for the price of one look.
_PER_LOOK: Final = 64
#: The readings of a text before all from the next find on is masked as one; after as many more, the whole text is.
_ROUNDS: Final = 5
_REST: Final = "everything from here on"

_Span: TypeAlias = tuple[int, int, str]
_Look: TypeAlias = Callable[[str, int], Iterator[_Span]]


def redact(text: str) -> str:
    """Returns `text` with every secret replaced by a mark such as `[secret: openai key]`.

    Masks vendor keys and tokens, private key blocks, JSON web tokens, `Authorization` and bearer values, passwords in
    URLs and on command lines, values announced by a word in some sixty languages ("my password is ...",
    `api_key=...`, 密码是...), codes of doors and one-time codes, seed phrases and wallet keys, payment card numbers
    and IBANs, but not mail addresses, phone numbers or text that merely mentions a password. Never raises; the time is
    linear in the length of the text. A text with thousands of openings is masked from some point on.
    """
    return _masked(text, likely)[0] if text else text


def by_rules(text: str) -> str:
    return _masked(text, lambda _: [])[0]


def secrets_in(text: str) -> list[str]:
    """Returns the values that `redact` masks in `text`, each once; not the rest of a text that is masked as one."""
    return list(dict.fromkeys(_masked(text, likely)[1]))


def openings() -> tuple[str, ...]:
    return tuple(one[1] for some in _looks().values() for one in some[:1])


def _masked(text: str, likely: Callable[[str], list[_Span]]) -> tuple[str, list[str]]:
    values: list[str] = []
    # A mark can end a sentence or a word differently than the secret did, so a masked text is read once more.
    for nth in count():
        spans = _spans(text) or _likely_spans(text, likely)
        if not spans:
            break
        if nth >= _ROUNDS:
            spans = [(spans[0][0] if nth < 2 * _ROUNDS else 0, len(text), _REST)]
        parts: list[str] = []
        last = 0
        for start, end, label in spans:
            parts += (text[last:start], f"[secret: {label}]")
            last = end
            if label != _REST:
                values.append(text[start:end])
        text = "".join(parts) + text[last:]
    return text, values


def _spans(text: str) -> list[_Span]:
    plain, places = folded_with_places(text)
    found: list[tuple[int, int, int, str]] = []
    end = min(_collect(looks, found, len(plain)) for looks in (_opened(plain), *_shaped(plain)))
    spans = _merged((start, stop, label) for start, _, stop, label in sorted(found) if start < end)
    if end < len(plain):
        # A place may lie behind the beginning of its secret, so go back to a gap between words.
        gap = re.compile(r"\S{0,200}\Z").search(plain, max(0, end - 200), end)
        start = max(gap.start() if gap else end, spans[-1][1] if spans else 0)
        spans.append((start, len(plain), _REST))
    return [(places[start], places[stop], label) for start, stop, label in spans]


def _likely_spans(text: str, likely: Callable[[str], list[_Span]]) -> list[_Span]:
    """Returns start, end and label of the likely secrets in a text without one that a rule finds."""
    plain, places = folded_with_places(text)
    return [(places[start], places[end], label) for start, end, label in _merged(sorted(likely(plain)))]


def _merged(found: Iterable[_Span]) -> list[_Span]:
    """Returns spans in order, those that overlap as one with the label of the first."""
    spans: list[_Span] = []
    for start, end, label in found:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]), spans[-1][2])
        else:
            spans.append((start, end, label))
    return spans


def _collect(
    looks: Iterator[tuple[int, int, int, _Span | None]], found: list[tuple[int, int, int, str]], end: int
) -> int:
    stock = _STOCK
    for place, rank, cost, span in looks:
        stock -= cost
        if stock < 0:
            return place
        if span is not None:
            stock -= _FIND_COSTS + (span[1] - span[0]) // _PER_LOOK
            found.append((span[0], rank, span[1], span[2]))
    return end


def _opened(plain: str) -> Iterator[tuple[int, int, int, _Span | None]]:
    low, first_word = plain.lower(), _first_word()
    alphabets = (True, False) if not low.isascii() else (True,)
    hits = [match.span(1) for alphabet in alphabets for match in _opening(alphabet).finditer(low)]
    for place, end in sorted(hits):
        for rank, opening, look in _looks()[low[place:end]]:
            if opening != BARRIER and rank >= first_word and not announced.worth_reading(plain, place, end):
                yield place, rank, 1, None
            elif opening.lower() == opening or plain.startswith(opening, place):
                # Marks are free, so that a masked text is read at least as far as before.
                yield place, rank, 0 if opening == BARRIER else 1 if rank < first_word else 1 + _READING_COSTS, None
                yield from ((place, rank, 0, _whole(plain, span)) for span in look(plain, place))


def _shaped(plain: str) -> Iterator[Iterator[tuple[int, int, int, _Span | None]]]:
    for shape in (*formats.shapes(plain), *formats.ended(plain)):
        yield ((place, -1, 1, _whole(plain, span)) for place, span in shape)


def _whole(plain: str, span: _Span | None) -> _Span | None:
    """Returns the find with the rest of its last word; None if it holds a mark or is blotted out."""
    if span is None or BARRIER in plain[span[0] : span[1]] or re.search(r"([xX*.])\1{11}", plain[span[0] : span[1]]):
        return None
    rest = re.compile(r"[A-Za-z0-9_]*+").match(plain, span[1])
    return span[0], rest.end() if rest else span[1], span[2]


@cache
def _looks() -> dict[str, list[tuple[int, str, _Look]]]:
    """Returns the looks to try at each opening in lower case, with rank and spelling; lower case stands for any case.

    An opening also holds the looks of the formats whose openings it begins with, and of the longest such word.
    """
    looks: dict[str, list[tuple[int, str, _Look]]] = {}
    first_word = _first_word()
    for rank, (opening, look) in enumerate((*formats.openings(), *announced.openings())):
        looks.setdefault(opening.lower(), []).append((rank, opening, look))
    own = {opening: list(some) for opening, some in looks.items()}
    for opening, some in looks.items():
        for shorter in (opening[:length] for length in range(len(opening) - 1, 0, -1)):
            some += [one for one in own.get(shorter, ()) if one[0] < first_word or some[-1][0] < first_word]
    return looks


@cache
def _first_word() -> int:
    return len(list(formats.openings()))


@cache
def _opening(alphabet: bool) -> re.Pattern[str]:
    """Returns a lookahead for the longest opening at a place, among those that begin in ASCII or the others."""
    return re.compile(f"(?=({tree(sorted(one for one in _looks() if one[0].isascii() is alphabet))}))")
