"""Every fixed text that a person may be shown, in their language and timezone, and the names of memory's parts there.

Invariants: all languages have the same keys with the same fields (a test holds this). English and Chinese have every
text of the part `texts` of their `texts.yaml`; a text that another language lacks is shown in English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, get_args

from babel.dates import format_date, format_skeleton
from babel.lists import format_list

from channels.base import Inbound
from gateway.reading.attachments import own_words, plain_name
from gateway.wording.phrases import wording
from languages import LANGUAGES, Language, part
from memory import keys
from memory.browse.browse import LISTED, TIERS
from memory.errors import (
    Derived,
    MemoryFault,
    NotCurrent,
    NotFound,
    NotWished,
    NotYours,
    StorageError,
    TooManyTags,
    UnfitTags,
    UnknownFilter,
    UnreadFilter,
)
from memory.store.memories import Kind
from memory.text.language import language_of, last_language
from memory.text.times.clock import local_time
from memory.typed_filters import LABELS, Group
from memory.typed_filters import Name as FilterName

FailedStore: TypeAlias = Literal["error.storage", "error.not_taken", "error.unread"]
_ENGLISH: Final[Mapping[str, str]] = wording("en")["texts"]


class Deferred(Mapping[str, str]):
    def __init__(self, make: Callable[[], Mapping[str, str]]) -> None:
        self._made = cache(make)

    def __getitem__(self, key: str) -> str:
        return self._made()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


def _translated(language: Language) -> Mapping[str, str]:
    return {**_ENGLISH, **wording(language)["texts"]}


#: A file takes up to 20 ms, so each is read when it is first needed.
CATALOGUE: Final[Mapping[Language, Mapping[str, str]]] = {
    code: _ENGLISH if code == "en" else Deferred(partial(_translated, code)) for code in LANGUAGES
}

#: What memory refuses to do for a person, as `Texts.refusal` says it. Other errors are no answer to a request.
REFUSALS: Final = (
    NotFound, NotYours, NotCurrent, NotWished, Derived, TooManyTags, UnfitTags, UnknownFilter, UnreadFilter
)  # fmt: skip
_REFUSED: Final[Mapping[type[MemoryFault], str]] = {
    NotYours: "memory.not_yours", NotCurrent: "correct.replaced", NotWished: "correct.unwished",
    TooManyTags: "memory.tag.full",
}  # fmt: skip

#: In the class below, `date` is a method.
_Day: TypeAlias = date
#: Characters of names that would be Markdown, and their replacements; an underscore between letters is no Markdown.
_MARKS = str.maketrans("*`~|\\", "＊｀～｜＼")
#: The weekday in a pattern of Unicode's CLDR, with the signs beside it.
_WEEKDAY = re.compile(r"[,（(]? ?EEEE[,)）]? ?")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
#: The fewest words after a command that are a sentence rather than its options.
_SENTENCE: Final = 4
#: The ids of memories, which are letters of no language.
_ID = re.compile(r"\bm_[a-z0-9]+\b")


@lru_cache(1_024)
def _date(day: _Day, language: Language) -> str:
    return format_date(day, part(language, "language").get("date", "long"), locale=language)


def spoken(own: str | None, default: Language) -> Language:
    """Returns the person's own language ("fr", "zh-CN") if the catalogue has it, else `default`."""
    code = (own or "").partition("-")[0].lower()
    return code if code in LANGUAGES else default


def written_in(text: str, default: Language) -> Language:
    """Returns the language of `text`, else `default`; characters shared by Chinese and Japanese go by `default`."""
    return spoken(last_language([(text, language_of(own_words(text))), ("", default)]), default)


def spoken_by(newest_first: Iterable[str], default: Language | None = None) -> str | None:
    """Returns the code of the language that a person's messages show, else `default`."""
    told = ((text, told_by(text)) for text in newest_first)
    return last_language(chain(told, [("", default)]))


def told_by(text: str) -> str | None:
    """Returns the code of the language a message shows its author to speak; None if it shows none.

    The words of commands are English for everybody: a command tells a language only by a sentence after it, or by
    letters that English does not have.
    """
    if text.lstrip().startswith("/"):
        name, _, rest = text.partition(" ")
        text = _ID.sub("", rest if name.isascii() else f"{name[1:]} {rest}")
        if text.isascii() and len(text.split()) < _SENTENCE:
            return None
    return language_of(own_words(text))


def heard_in(inbound: Inbound, default: Language) -> Language:
    """Returns the language a message is written in, else that of its author's app, else `default`."""
    app = spoken(inbound.language, default)
    return spoken(spoken_by([inbound.text], app), app)


@dataclass(frozen=True, slots=True)
class Texts:
    """The catalogue in one person's language and timezone: `texts("new.done")`.

    On the web page's own forms, whose answers nobody replies to, a text may have other words under "on_page.".
    """

    language: Language
    timezone: str = "UTC"
    on_page: bool = False

    def __call__(self, key: str, /, **fields: Any) -> str:
        texts = CATALOGUE[self.language]
        said = texts.get(f"on_page.{key}") if self.on_page else None
        return (said or texts[key]).format(**fields)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        match error:
            case Derived():
                return self("memory.derived", id=short_id, ids=", ".join(error.short_ids))
            case UnknownFilter() | UnreadFilter():
                return self.unread(error)
            case UnfitTags():
                return self("memory.tag.unfit", unfit=", ".join(error.unfit), most=keys.TAG_LIMIT)
            case _:
                return self(_REFUSED.get(type(error), "memory.unknown_id"), id=short_id, most=keys.TAGS_LIMIT)

    def failed_store(self, key: FailedStore, error: StorageError) -> str:
        """Returns the words of an error of the database, such as "error.storage", without paths and statements."""
        reason = f"storage.{error.code}"
        return self(key, reason=self(reason if reason in CATALOGUE[self.language] else "storage.storage"))

    def unread(self, error: UnknownFilter | UnreadFilter) -> str:
        if isinstance(error, UnknownFilter):
            names = ", ".join(f"{name}:" for name in get_args(FilterName))
            return self("filter.unknown", name=error.name, names=names)
        if error.name == "category":
            known = ", ".join(text for key, text in CATALOGUE[self.language].items() if key.startswith("category."))
            return self("filter.no_category", value=error.value, known=known)
        if error.name in LABELS:
            there = "known" if error.known else "no"
            known = self(f"filter.{there}_{error.name}s", known=", ".join(error.known))
            return self("filter.no_label", name=error.typed, value=error.value, known=known)
        return self("filter.no_time", name=error.name, value=error.value)

    def attachment(self, kind: str, name: str) -> str:
        """Returns the name of an attachment, freed of Markdown; if it has no name, its kind."""
        return _UNDERSCORE.sub("＿", plain_name(name).translate(_MARKS)) or self(f"attach.{kind}")

    def date(self, moment: int) -> str:
        """Returns a moment (milliseconds UTC) as a date in the person's timezone."""
        return _date(local_time(moment, self.timezone).date(), self.language)

    def month(self, moment: int) -> str:
        """Returns the month of a moment (milliseconds UTC) with its year, in the person's timezone."""
        day = local_time(moment, self.timezone)
        return format_skeleton("yMMMM", day, locale=self.language)

    def day(self, moment: int, now: int) -> str:
        """Returns the day of a moment as told in a sentence: "today", "yesterday" or "on 3 Nov 2026"."""
        days = (local_time(now, self.timezone).date() - local_time(moment, self.timezone).date()).days
        if days in (0, 1):
            return self("day.yesterday" if days else "day.today")
        return self("day.on", date=self.date(moment))

    def weekday(self, day: _Day) -> str:
        return format_date(day, "EEEE", locale=self.language)

    def months(self, months: Iterable[int]) -> str:
        return self.listed(format_date(_Day(2024, month, 1), "LLLL", locale=self.language) for month in months)

    def month_day(self, month: int, day: int) -> str:
        """Returns a day of every year: "24 December"."""
        dated = _WEEKDAY.sub("", part(self.language, "language")["days"][0])
        return format_date(_Day(2024, month, day), dated, locale=self.language)

    def listed(self, names: Iterable[str]) -> str:
        """Returns names as a list in a sentence: "8:00, 14:00 and 20:00"."""
        return format_list(list(names), locale=self.language)

    def day_to_come(self, day: _Day, today: _Day) -> str:
        """Returns a day with its weekday: "Monday 30 November", in another year than this with the year."""
        return format_date(day, part(self.language, "language")["days"][day.year != today.year], locale=self.language)

    def moment(self, moment: int) -> str:
        """Returns a moment (milliseconds UTC) as date and time in the person's timezone."""
        day = local_time(moment, self.timezone)
        return f"{self.date(moment)} {day:%H:%M}"

    def span(self, start: int, end: int) -> tuple[str, str]:
        """Returns two moments as dates, or with their times if both fall on one day."""
        if self.date(start) != self.date(end):
            return self.date(start), self.date(end)
        return self.moment(start), self.moment(end)


Word: TypeAlias = Literal["auto", "off", "on", "done", "all", "transcript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart(Group):
    kinds: tuple[Kind, ...]
    name: str


@cache
def part_of(named: str) -> ListedPart | None:
    """Returns the part that people call `named` in any language ("tier 2", "facts", 健康); None if there is none."""
    return _parts().get(named.casefold().replace(" ", ""))


def means(text: str, word: Word) -> bool:
    return text.strip().casefold() in _words(word)


@cache
def _words(word: Word) -> frozenset[str]:
    return frozenset(said for language in CATALOGUE.values() for said in language[f"word.{word}"].split("|"))


@cache
def _parts() -> Mapping[str, ListedPart]:
    parts: dict[str, ListedPart] = {}
    for tier, kinds in TIERS.items():
        parts[f"tier{tier}"] = parts[f"第{'一二三'[tier - 1]}层"] = ListedPart(name=f"tier{tier}", kinds=kinds)
    for language in CATALOGUE.values():
        for key, text in language.items():
            group, _, name = key.partition(".")
            if group in ("kind", "kinds"):
                kind = next(one for kinds in TIERS.values() for one in kinds if one == name)
                part = ListedPart(name=name, kinds=(kind,))
            elif group == "category":
                part = ListedPart(name=name, kinds=LISTED, category=name)
            else:
                continue
            parts |= {name: part, text.casefold().replace(" ", ""): part}
    return parts
