"""Shortens a text that is too long to be kept: its beginning and its end stay, with a note between them.

Invariants: pure; a shortened text has at most `most` characters; no part of a secret that the cut divides is kept
masked text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

#: Masks can't recognise a secret that a cut divides, so this many characters beside it are masked and then left out: a
#: private key of 8,192 bits has 6,400.
_TORN: Final = 8_192
#: The characters left for the note, and for the names of attachments that history adds behind a text.
_ROOM: Final = 2_000


class KeptText(NamedTuple):
    """A text as it is kept, and as it was said.

    `length` is the whole length in characters of a shortened text, else 0. Such a text is given masked in both forms:
    a cut through a secret would leave a half of it that nothing recognises.
    """

    masked: str
    original: str
    length: int = 0


def kept(text: str, most: int, *, clean: Callable[[str], str], redact: Callable[[str], str]) -> KeptText:
    """Returns `text` without hidden characters and with its secrets masked, shortened if it is longer than `most`.

    `clean` removes hidden characters, `redact` masks secrets.
    """
    if len(text) <= most:
        original = clean(text)
        return KeptText(redact(original), original)
    side = (most - min(_ROOM, most // 4)) // 2
    torn = _TORN if len(text) > side + _TORN else 0
    head, tail = redact(clean(text[: side + _TORN])), redact(clean(text[-side - _TORN :]))
    note = f"\n[… {len(text) - 2 * side} characters left out …]\n"
    masked = head[: max(0, len(head) - torn)][:side] + note + tail[torn:][-side:]
    return KeptText(masked, masked, len(text))
