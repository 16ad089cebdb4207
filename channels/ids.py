"""The format of each platform's ids: only one spelling of a person or a chat can ever match.

A platform whose ids are no numbers, or hold ":" as Matrix's do, needs one more line here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class IdFormat:
    """The patterns of a platform's ids. `person` is also the pattern of its servers' ids, if it has servers."""

    person: re.Pattern[str]
    chat: re.Pattern[str]

    def is_person(self, value: object) -> bool:
        return isinstance(value, str) and self.person.fullmatch(value) is not None

    def is_chat(self, value: object) -> bool:
        return isinstance(value, str) and self.chat.fullmatch(value) is not None


# Twenty digits hold every 64-bit id. The ids of Telegram's groups are negative.
NUMERIC: Final = IdFormat(person=re.compile(r"[1-9][0-9]{0,19}"), chat=re.compile(r"-?[1-9][0-9]{0,19}"))

FORMATS: Final[Mapping[str, IdFormat]] = {
    "console": IdFormat(person=re.compile(r"[^:\n]{1,200}"), chat=re.compile(r"[^:\n]{1,200}")),
    "telegram": NUMERIC,
    "discord": NUMERIC,
    # The account that a visitor signed in with: its channel's id, a dot, its id there.
    "web": IdFormat(
        person=re.compile(r"[a-z][a-z0-9_-]{0,31}\.[^:\n]{1,200}"),
        chat=re.compile(r"[a-z][a-z0-9_-]{0,31}\.[^:\n]{1,200}"),
    ),
    "api": IdFormat(person=re.compile(r"[a-z0-9._-]{1,80}"), chat=re.compile(r"[a-z0-9._-]{1,80}")),
}
#: The ids of a platform whose channel another package brings: what is given is compared as it is.
ANY: Final = IdFormat(person=re.compile(r"[^\s]{1,200}"), chat=re.compile(r"[^\s]{1,200}"))


def format_of(platform: str) -> IdFormat:
    return FORMATS.get(platform, ANY)
