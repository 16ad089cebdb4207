"""Shortens a text that is too long to be kept: its beginning and its end stay, with a note between them.

Invariants: pure; a shortened text has at most `most` characters; no part of a secret that the cut divides is kept
masked text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

#: Masks can't recognise a secret that a cut divides, so this many characters beside it are masked and then left out.
_TORN: Final = 4_096
#: The characters left for the note, and for the names of attachments that history adds behind a text.
_ROOM: Final = 2_000


class KeptText(NamedTuple):
    """A text as it is kept and as it was said, and its whole length in characters if both are shortened, else 0."""

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
    head, tail = clean(text[: side + _TORN]), clean(text[-side - _TORN :])
    masked_head, masked_tail = redact(head), redact(tail)
    note = f"\n[… {len(text) - 2 * side} characters left out …]\n"
    return KeptText(
        masked_head[: max(0, len(masked_head) - torn)][:side] + note + masked_tail[torn:][-side:],
        head[:side] + note + tail[-side:],
        len(text),
    )
