"""Ends of sentences, in any script: for shortening a text, and for reading it sentence by sentence.

Invariants: Pure. Apart from the cost of the caller's own measure, time grows linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

#: An end with its closing marks. A full stop must be followed by a blank, or it may be part of a number or name. No
#: sentence ends after a title ("Dr. Haas"), before a month ("14. September") or in the middle of "21.3. um 14 Uhr".
_END = re.compile(
    r"(?:(?<!\bDr)(?<!\bFr)(?<!\bHr)(?<!\bSt)(?<!\bMr)(?<!\bMrs)(?<!\bSra)(?<!\bSr)"
    r"(?:\.(?!(?:(?<=\d\.\d\.)|(?<=\d\.\d\d\.))\s[a-zäöü\d])(?!\s(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)|[!?…])(?![.!?…\w])|…+(?=[\u3041-\u9fff])|[。！？])"
    r"[\"'”’»)\]」』]{0,3}"
)


def beginning(text: str, fits: Callable[[str], bool]) -> str:
    """Returns the text, or as many of its first sentences as fit; "" if not even the first one does."""
    if fits(text):
        return text
    for end in reversed([match.end() for match in _END.finditer(text)]):
        if fits(text[:end]):
            return text[:end]
    return ""


def parts(text: str) -> list[str]:
    """Returns the sentences of a text in order, each with the signs that end it. A line ends one, too."""
    found: list[str] = []
    for line in text.splitlines():
        ends = [match.end() for match in _END.finditer(line)]
        found += [line[start:end].strip() for start, end in pairwise([0, *ends, len(line)])]
    return list(filter(None, found))
