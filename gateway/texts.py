"""The catalogue in one person's language and timezone, and how dates read there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from gateway.attachments import plain_name
from gateway.catalogue import CATALOGUE
from gateway.phrases import Language
from memory.errors import Derived, MemoryFault, NotCurrent, NotWished, NotYours

_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
#: Letters of names that would be Markdown, and what stands for them; between letters an underscore is none.
_MARKS = str.maketrans("*`~|\\", "＊｀～｜＼")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def spoken(own: str | None, default: Language) -> Language:
    """The person's own language where the catalogue has it, else `default`."""
    return "en" if own == "en" else "zh" if own == "zh" else default


def written_in(text: str, default: Language) -> Language:
    """The language to answer `text` in, as far as its script tells; Japanese and the rest get `default`."""
    if _KANA.search(text):
        return default
    return "zh" if _HAN.search(text) else default


@dataclass(frozen=True, slots=True)
class Texts:
    """The catalogue in one person's language and timezone: `texts("new.done")`."""

    language: Language
    timezone: str = "UTC"

    def __call__(self, key: str, /, **fields: Any) -> str:
        return CATALOGUE[self.language][key].format(**fields)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        """Why nothing was done to the memory called `short_id`."""
        match error:
            case NotYours():
                return self("memory.not_yours", id=short_id)
            case NotCurrent():
                return self("correct.replaced", id=short_id)
            case NotWished():
                return self("correct.unwished", id=short_id)
            case Derived():
                return self("memory.derived", id=short_id, ids=", ".join(error.short_ids))
            case _:
                return self("memory.unknown_id", id=short_id)

    def attachment(self, kind: str, name: str) -> str:
        """What to call something that came with a message: by its name, where it has one, which is never Markdown."""
        return _UNDERSCORE.sub("＿", plain_name(name).translate(_MARKS)) or self(f"attach.{kind}")

    def date(self, moment: int) -> str:
        """A moment (milliseconds UTC) as a date where the person lives."""
        day = datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(self.timezone))
        if self.language == "zh":
            return f"{day.year}年{day.month}月{day.day}日"
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def moment(self, moment: int) -> str:
        """A moment as date and time where the person lives."""
        day = datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(self.timezone))
        return f"{self.date(moment)} {day:%H:%M}"

    def span(self, start: int, end: int) -> tuple[str, str]:
        """Two moments as dates, or with the time where both fall on one day."""
        if self.date(start) != self.date(end):
            return self.date(start), self.date(end)
        return self.moment(start), self.moment(end)
