"""Where a text may end: behind a sentence, in any script.

Invariants: pure; time grows linearly with the text, but for what the caller's own measure takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: An end with what closes behind it. A full stop must be followed by a blank, or it may stand in a number or a name.
_END = re.compile(r"(?:[.!?…](?![.!?…\w])|[。！？])[\"'”’»)\]」』]{0,3}")


def beginning(text: str, fits: Callable[[str], bool]) -> str:
    """The text, or as many of its first sentences as fit; "" where not even the first one does."""
    if fits(text):
        return text
    for end in reversed([match.end() for match in _END.finditer(text)]):
        if fits(text[:end]):
            return text[:end]
    return ""
