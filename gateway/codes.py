"""Codes of letters and digits that let a person in, or link two accounts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

#: Letters and digits of a code: no two look alike, and without vowels no word of eight letters is a code.
CODE_LETTERS: Final = "CDFGHJKMNPQRTVWX23456789"
# Only ASCII letters match, also without regard to case: the Kelvin sign is no K. Phones make a dash of a hyphen.
_CODE = re.compile(
    rf"(?:/(?:start|pair)(?:@\w{{1,64}})?\s{{1,20}})?([{CODE_LETTERS}]{{4}})[-–—－ ]?([{CODE_LETTERS}]{{4}})",
    re.ASCII | re.IGNORECASE,
)


def new_code(choose: Callable[[str], str]) -> str:
    """Returns a new code, XXXX-XXXX, of 36 bits.

    In the ten minutes a code lives, a person gets three guesses, all people together a hundred. `choose` picks one
    character of a text; where security matters it is `secrets.choice`.
    """
    letters = "".join(choose(CODE_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def code_in(text: str) -> str | None:
    """Returns the pairing code of a message that is only a code, alone or after /start or /pair; else None.

    The code is in the form that `new_code` writes.
    """
    match = _CODE.fullmatch(text.strip())
    return None if match is None else f"{match[1]}-{match[2]}".upper()
