"""Converts Chinese text to simplified characters, one for one, so that no pattern is written twice.

Invariants: pure. The result is as long as the text, so a match in it can be cut from the text as it was written.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencc import OpenCC

#: Characters that OpenCC leaves as they are; in chat they stand for these.
_SPOKEN = str.maketrans("妳姊牠著係", "你姐它着是")


def simplified(text: str) -> str:
    if text.isascii():
        return text
    simple = _opencc().convert(text.translate(_SPOKEN))
    return simple if len(simple) == len(text) else "".join(map(_opencc().convert, text))


@cache
def _opencc() -> OpenCC:
    # The import costs 15 ms and 7 MB, so it waits for Chinese text.
    from opencc import OpenCC

    return OpenCC("t2s")
