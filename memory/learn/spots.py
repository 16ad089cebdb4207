"""Finds the places of a text where a secret may begin, so that only those few are read closely.

Invariants: every place where one of the named openings stands is told, some where none does as well; ascending,
each once; pure; time linear in the text whatever stands in it, and a few nanoseconds a character when it is long:
then whole columns of characters are compared at once (numpy), three neighbours as one number, because a search for
one opening after the other costs each of them a pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places: TypeAlias = NDArray[np.intp]
    Flags: TypeAlias = NDArray[np.bool_]

#: From here on columns are faster than looking at every three characters (measured).
_LONG: Final = 800
#: Hits that are sieved at once: few enough to stay in the processor's cache, and to stop soon.
_AT_ONCE: Final = 32_768
#: A column has so many zeros behind the text; what reaches over an edge reads them and needs no care.
_PAD: Final = 64

_WORD = "abcdefghijklmnopqrstuvwxyz0_"
#: Characters by number, 0 for all others; one number for both cases and for all digits. What may stand in a token
#: comes first, so that one comparison tells it.
_ALPHABET = _WORD + "-+/.:=%@ ~\\&?#\"'`*])\t"
_BITS: Final = 6
_TOKEN = "[A-Za-z0-9_-]"  # noqa: S105 - a set of characters
#: How a payment card's digits are grouped: 14, 15, 16 and 19 in one piece or as printed.
_CARD_SHAPES = ((14,), (15,), (16,), (19,), (4, 4, 4, 4), (4, 4, 4, 7), (4, 4, 4, 4, 3), (4, 6, 4), (4, 6, 5))
_CARD = re.compile(r"(?<![A-Za-z0-9_])[2-6](?=[0-9]{3}(?:[0-9]{10}|([ -])(?:[0-9]{4}\1[0-9]{4}\1|[0-9]{6}\1)))")
#: Shapes without an opening, behind a sign that a text must hold.
_SHAPES = (
    (":", re.compile(rf":(?<=[0-9]{{6}}:)(?={_TOKEN}{{35}})")),
    ("%3A", re.compile(rf"%3A(?<=[0-9]{{6}}%3A)(?={_TOKEN}{{35}})")),
    ("@", re.compile(r"""://(?=[^\s/:@"'<>]{0,256}:[^\s/"'<>]{1,4096}@)""", re.ASCII)),
    ("==", re.compile(r"==(?<=[A-Za-z0-9+/]{86}==)")),
    (".", re.compile(rf"\.(?={_TOKEN}{{6}}\.{_TOKEN}{{27}})")),
)


@dataclass(frozen=True)
class Openings:
    """What to look for. An opening has two characters or more.

    `tokens`: an opening, and how many token characters follow it at least, where an ASCII word begins. `words`: an
    opening anywhere and in any case, and the characters of which one follows it, none when any may.
    """

    tokens: Sequence[tuple[str, int]]
    words: Sequence[tuple[str, str]]

    def places(self, text: str, most: int) -> list[int]:
        """The first `most` positions of openings in `text`, and of what has a shape instead of an opening.

        Shapes: a payment card's first digit, the colon of a Telegram token, `://` before a user with a password,
        the `==` that ends a long base64 key, the first of the two dots of a Discord token.
        """
        return self._by_piece(text)[:most] if len(text) < _LONG else self._by_column(text, most)

    def _by_piece(self, text: str) -> list[int]:
        # The dotted capital I alone would become longer.
        lower = text.replace("İ", "i").lower()
        threes, pairs = self._beginnings
        found = {i for i in range(len(lower)) if lower[i : i + 3] in threes}
        for pair in pairs:
            if pair in lower:
                found.update(match.start() for match in re.finditer(re.escape(pair), lower))
        for sign, shape in _SHAPES:
            if sign in text:
                found.update(match.start() for match in shape.finditer(text))
        found.update(match.start() for match in _CARD.finditer(text))
        return sorted(found)

    @cached_property
    def _beginnings(self) -> tuple[frozenset[str], frozenset[str]]:
        """The first three characters of openings, in lower case, and the openings that are shorter."""
        openings = [opening.lower() for opening, _ in (*self.tokens, *self.words)]
        threes = frozenset(opening[:3] for opening in openings if len(opening) > 2)
        return threes, frozenset(opening for opening in openings if len(opening) == 2)

    def _by_column(self, text: str, most: int) -> list[int]:
        import numpy as np

        page = _Page(text, self._numbers)
        code = page.number.astype(np.uint32)
        three = (code[:-2] << 2 * _BITS) | (code[1:-1] << _BITS) | code[2:]
        hits = np.flatnonzero(self._kinds.take(three))

        def begins(some: Places) -> Places:
            opening = three[some]
            kind, follows = self._kinds.take(opening), self._follows.take(opening)
            token = (kind & 1 != 0) & page.runs(some + 3, self._tails.take(opening)) & page.begins_word(some)
            next_ = page.number[some + self._lengths.take(opening)]
            word = (kind & 2 != 0) & (self._seconds.take(three[some + 1]) != 0) & self._allowed[follows, next_]
            begun: Places = some[token | word]
            return begun

        found = [_sieved(hits, begins, most)]
        found += [shape[:most] for shape in (page.cards(most), page.telegram(), page.passwords(), page.discord())]
        found += [page.keys()[:most]]
        places: list[int] = np.unique(np.concatenate(found))[:most].tolist()
        return places

    @cached_property
    def _numbers(self) -> NDArray[np.uint8]:
        """Every character's number. Letters outside of ASCII share what numbers are left."""
        import numpy as np

        numbers = np.zeros(0x110000, np.uint8)
        for number, char in enumerate(_ALPHABET, 1):
            numbers[[ord(char), ord(char.upper())]] = number
        numbers[ord("0") : ord("9") + 1] = _ALPHABET.index("0") + 1
        first, left = len(_ALPHABET) + 1, (1 << _BITS) - len(_ALPHABET) - 1
        for i, char in enumerate(sorted({char for pair in self.words for char in "".join(pair) if not char.isascii()})):
            numbers[[ord(char), ord(char.upper())]] = first + i % left
        return numbers

    # Tables by the first three characters of an opening; where several begin alike, what all of them allow.

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        """1 when a token begins with them, 2 when a word does."""
        import numpy as np

        kinds = np.zeros(1 << 3 * _BITS, np.uint8)
        for kind, openings in ((1, self.tokens), (2, self.words)):
            for opening, _ in openings:
                kinds[self._combined(opening[:3])] |= kind
        return kinds

    @cached_property
    def _tails(self) -> NDArray[np.uint8]:
        """How many token characters follow the three at least."""
        import numpy as np

        tails = np.full(1 << 3 * _BITS, _PAD - 8, np.uint8)
        for prefix, least in self.tokens:
            certain = re.match(f"{_TOKEN}*", (prefix + "a" * least)[3:])
            places = self._combined(prefix[:3])
            tails[places] = np.minimum(tails[places], certain.end() if certain else 0)
        return tails

    @cached_property
    def _seconds(self) -> NDArray[np.uint8]:
        """Whether a word has them from its second character on."""
        import numpy as np

        seconds = np.zeros(1 << 3 * _BITS, np.uint8)
        for word, _ in self.words:
            seconds[self._combined(word[1:4])] = 1
        return seconds

    @cached_property
    def _lengths(self) -> NDArray[np.uint8]:
        """The length of the shortest word."""
        import numpy as np

        lengths = np.full(1 << 3 * _BITS, _PAD - 8, np.uint8)
        for word, _ in self.words:
            places = self._combined(word[:3])
            lengths[places] = np.minimum(lengths[places], len(word))
        return lengths

    @cached_property
    def _follows(self) -> NDArray[np.uint8]:
        """The row of `_allowed` for what may stand behind the shortest word."""
        import numpy as np

        follows = np.zeros(1 << 3 * _BITS, np.uint8)
        for row, beginning in enumerate(self._words_by_beginning, 1):
            follows[self._combined(beginning)] = row
        return follows

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        """For each beginning of words, by a character's number: whether it may stand behind the shortest of them."""
        import numpy as np

        allowed = np.zeros((len(self._words_by_beginning) + 1, 1 << _BITS), np.bool_)
        for row, words in enumerate(self._words_by_beginning.values(), 1):
            shortest = min(len(word) for word, _ in words)
            for word, after in words:
                may = word[shortest : shortest + 1] or after
                allowed[row, self._numbers[[ord(char) for char in may]] if may else slice(None)] = True
        return allowed

    @cached_property
    def _words_by_beginning(self) -> dict[str, list[tuple[str, str]]]:
        beginnings: dict[str, list[tuple[str, str]]] = {}
        for word, after in self.words:
            beginnings.setdefault(word[:3], []).append((word, after))
        return beginnings

    def _combined(self, opening: str) -> list[int]:
        """The numbers of all threes of characters that begin with `opening`, which may be shorter."""
        choices: list[Iterable[int]] = [(int(self._numbers[ord(char)]),) for char in opening]
        choices += [range(1 << _BITS)] * (3 - len(choices))
        return [(a << 2 * _BITS) | (b << _BITS) | c for a, b, c in product(*choices)]


def _number(char: str) -> int:
    return _ALPHABET.index(char) + 1


def _sieved(places: Places, keep: Callable[[Places], Places], most: int) -> Places:
    """The first `most` of those that `keep` leaves of `places`."""
    import numpy as np

    kept: list[Places] = [places[:0]]
    found = 0
    for start in range(0, len(places), _AT_ONCE):
        kept.append(keep(places[start : start + _AT_ONCE]))
        found += len(kept[-1])
        if found >= most:
            break
    return np.concatenate(kept)[:most]


class _Page:
    """A long text in columns: `point`, each character's code point, and `number`, its number."""

    def __init__(self, text: str, numbers: NDArray[np.uint8]) -> None:
        import numpy as np

        self.size = len(text)
        self.point: NDArray[np.uint8] | NDArray[np.uint32]
        if text.isascii():
            self.point = np.frombuffer(text.encode() + bytes(_PAD), np.uint8)
        else:
            self.point = np.frombuffer(text.encode("utf-32-le", "surrogatepass") + bytes(4 * _PAD), np.uint32)
        self.number = numbers.take(self.point)
        # Numbers begin with 1, and nothing's 0 becomes the highest.
        self.is_token = (self.number - np.uint8(1)) < len(_WORD) + 1
        self.is_word = self.is_token & (self.number != _number("-"))
        self.is_digit = self.number == _number("0")
        self.tokens = _sums(self.is_token)

    def runs(self, places: Places, least: NDArray[np.uint8] | int) -> Flags:
        """Whether at least so many token characters stand from each place on."""
        return self.tokens[places + least] - self.tokens[places] == least  # type: ignore[no-any-return]

    def begins_word(self, places: Places) -> Flags:
        """Whether no word runs up to each place; a letter behind a backslash or `%` may be an escape's end."""
        # A place before the first is one of the zeros behind the last.
        return (  # type: ignore[no-any-return]
            ~self.is_word[places - 1]
            | (self.number[places - 2] == _number("\\"))
            | (self.number[places - 3] == _number("%"))
        )

    def telegram(self) -> Places:
        """Colons, also encoded ones, between a digit and a token."""
        import numpy as np

        n, token = self.size, self.is_token
        plain = (self.point[1:n] == ord(":")) & self.is_digit[: n - 1]
        # Most colons behind a digit are a clock's.
        plain &= token[2 : n + 1] & token[4 : n + 3] & token[5 : n + 4] & token[36 : n + 35]
        encoded = (self.point[1:n] == ord("%")) & self.is_digit[: n - 1] & token[4 : n + 3] & token[38 : n + 37]
        plain, encoded = np.flatnonzero(plain) + 1, np.flatnonzero(encoded) + 1
        encoded = encoded[(self.point[encoded + 1] == ord("3")) & (self.point[encoded + 2] == ord("A"))]
        return np.concatenate((plain[self.runs(plain + 1, 35)], encoded[self.runs(encoded + 3, 35)]))

    def passwords(self) -> Places:
        """`://` where an at sign comes before the next slash, blank, quote or angle bracket."""
        import numpy as np

        point = self.point
        at = np.flatnonzero(point == ord("@"))
        if not len(at):
            return at
        stop = (point >= ord("\t")) & (point <= ord("\r"))
        for char in " /\"'<>":
            stop |= point == ord(char)
        last = np.maximum.accumulate(np.where(stop, np.arange(len(point), dtype=np.int32), np.int32(0)))
        before = last[at].astype(np.intp)
        before = before[np.flatnonzero(np.diff(before, prepend=-1))]
        before = before[before >= 2]
        slashes = (point[before] == ord("/")) & (point[before - 1] == ord("/")) & (point[before - 2] == ord(":"))
        users: Places = before[slashes] - 2
        return users

    def keys(self) -> Places:
        """The first of two equal signs behind at least 86 characters of base64."""
        import numpy as np

        if self.size < 88:
            return np.zeros(0, np.intp)
        n, equal = self.size, self.point == ord("=")
        ends = equal[86 : n - 1] & equal[87:n]
        if not ends.any():
            return np.zeros(0, np.intp)
        letter = self.is_word & (self.number != _number("_"))
        letter |= (self.number == _number("+")) | (self.number == _number("/"))
        # Most doubled signs stand behind a blank or each other.
        for back in (1, 2, 10, 40, 86):
            ends &= letter[86 - back : n - 1 - back]
        places = np.flatnonzero(ends) + 86
        if not len(places):
            return places
        count = _sums(letter)
        keys: Places = places[count[places] - count[places - 86] == 86]
        return keys

    def discord(self) -> Places:
        """Dots with six characters of a token before the next dot, and 27 behind that."""
        import numpy as np

        n, token, dot = self.size, self.is_token, self.point == ord(".")
        first = dot[1:n] & dot[8 : n + 7]
        for ahead in (-1, 1, 4, 8, 34):
            first &= token[1 + ahead : n + ahead]
        places = np.flatnonzero(first) + 1
        return places[self.runs(places + 1, 6) & self.runs(places + 8, 27)]

    def cards(self, most: int) -> Places:
        """First digits of what has a card's shape and a right check digit."""
        import numpy as np

        n, digit = self.size, self.is_digit
        start = digit[:n] & digit[1 : n + 1] & digit[2 : n + 2] & digit[3 : n + 3]
        start[1:] &= ~self.is_word[: n - 1]
        places = np.flatnonzero(start)
        places = places[(self.point[places] >= ord("2")) & (self.point[places] <= ord("6"))]
        if not len(places):
            return places
        digits, sums = _sums(digit), self._check_sums()

        def found(some: Places) -> Places:
            whole = digit[some + 4]
            pieces, grouped = some[whole], some[~whole]
            grouped = grouped[digit[grouped + 5] & digit[grouped + 8]]
            kept = [self._of_shape(pieces if len(one) == 1 else grouped, one, digits, sums) for one in _CARD_SHAPES]
            return np.unique(np.concatenate(kept))

        return _sieved(places, found, most)

    def _check_sums(self) -> NDArray[np.int32]:
        """Running sums of the digits; in row 0 those at odd positions count as their double's digits, in row 1 those
        at even ones (ISO/IEC 7812-1, annex B). Shape (2, length + 1)."""
        import numpy as np

        digit = np.where(self.is_digit, self.point - np.uint8(ord("0")), 0).astype(np.uint8)
        double = np.array([0, 2, 4, 6, 8, 1, 3, 5, 7, 9], np.uint8).take(digit)
        sums = np.zeros((2, len(digit) + 1), np.int32)
        for row in (0, 1):
            counted = digit.copy()
            counted[1 - row :: 2] = double[1 - row :: 2]
            np.cumsum(counted, dtype=np.int32, out=sums[row, 1:])
        return sums

    def _of_shape(
        self, places: Places, shape: tuple[int, ...], digits: NDArray[np.int32], sums: NDArray[np.int32]
    ) -> Places:
        """Places of digits in groups of these sizes, one blank or hyphen between them, with a right sum."""
        import numpy as np

        places = places[~self.is_word[places + sum(shape) + len(shape) - 1]]
        start = 0
        for size in shape:
            places = places[digits[places + start + size] - digits[places + start] == size]
            if start:
                gap = self.point[places + start - 1]
                places = places[(gap == ord(" ")) | (gap == ord("-"))]
            start += size + 1
        total = np.zeros(len(places), np.int32)
        left, start = sum(shape), 0
        for size in shape:
            left -= size
            end = places + start + size
            # The last digit of all counts as it is; so does one with an even number of digits to its right.
            row = (end - 1 + left) & 1
            total += sums[row, end] - sums[row, end - size]
            start += size + 1
        right: Places = places[total % 10 == 0]
        return right


def _sums(flags: Flags) -> NDArray[np.int32]:
    """How many flags are set before each position, and at the end all of them."""
    import numpy as np

    sums = np.zeros(len(flags) + 1, np.int32)
    np.cumsum(flags, dtype=np.int32, out=sums[1:])
    return sums
