"""Reads orders about existing reminders, in six languages: "my reminders", "cancel the second one", "snooze".

Invariants: pure. A text is an order only if it consists of nothing but such words, so talk of other things is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from languages import LANGUAGES, Language
from memory.text.times.phrases import is_request, languages
from memory.text.times.tables import Table, fold, table

Action: TypeAlias = Literal["list", "cancel", "done", "snooze", "change", "reword"]

_ACTIONS: Final[tuple[Action, ...]] = ("snooze", "done", "change", "cancel")
#: Longer texts say something of their own.
_LONGEST: Final = 80
_SIGNS: Final = re.compile(r"(?:[\s,.;!?#'\"“”„«»，。！？、¿¡]|(?<!\d)[:：]|[:：](?!\d))+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order about a reminder: the one with this `number`, at this `place` of the list, or the last shown.

    With `every` it is about all of them. `rest` are the remaining words: a time, or words of the reminder. `named` says
    that the order speaks of reminders; others are orders only if reminders were just talked of. `calls_off` says that
    its verb is used of plans and appointments, and not of knowledge. `language` is the one it is written in.
    """

    action: Action
    language: Language | Literal[""] = field(default="", compare=False)
    number: int | None = None
    place: int | None = None
    every: bool = False
    rest: str = ""
    named: bool = False
    calls_off: bool = False

    def speaks_of(self, text: str) -> bool:
        """Returns whether the remaining words of the order stand in a reminder's text."""
        # Letters of the word's own script must not go on beside it: "all" does not stand in "call".
        edge = r"[a-z\d]"
        return bool(self.rest) and re.search(rf"(?<!{edge}){re.escape(self.rest)}(?!{edge})", fold(text)) is not None


def read(text: str, *, language: str) -> Iterator[Order]:
    if len(text) > _LONGEST:
        return
    request = is_request(text, language=language)
    likely = list(languages(text, language))
    # A few words may show no language, and need not be in that of the talk: whoever speaks of reminders says so.
    for code in dict.fromkeys((*likely, *LANGUAGES)):
        words, said = table(code), _SIGNS.sub(" ", fold(text)).strip()
        if words.text("order_list").fullmatch(said) and not is_request(text, language=code):
            yield Order(action="list", named=True, language=code)
        for action in _ACTIONS:
            found = _read(action, said, words, code)
            if found is None or (request and not _is_whole(found)):
                continue
            if code in likely or (found.named and not is_request(text, language=code)):
                yield found


def takes_back(text: str, *, language: str) -> bool:
    orders = (order for order in read(text, language=language) if order.action == "cancel")
    return any(not order.rest and order.number is None and order.place is None for order in orders)


def reworded(text: str, *, language: str) -> str:
    """Returns the new words that a text gives a reminder: "actually, to ring her"; "" if none."""
    said = text.replace("’", "'").strip(" .!。！")
    if len(said) > _LONGEST or said.endswith(("?", "？")):
        return ""
    for code in languages(text, language):
        if (found := table(code).text("order_text").fullmatch(fold(said))) is not None:
            return said[slice(*found.span("what"))]
    return ""


def is_beside(text: str, *, language: str) -> bool:
    """Returns whether a text holds only small words of the kind that stand beside a time: "no, make it … instead"."""
    said = _SIGNS.sub(" ", fold(text)).strip()
    for code in languages(text, language):
        rest = table(code).text("order_change").sub(" ", said)
        if not table(code).text("order_beside").sub(" ", rest).strip():
            return True
    return False


def _read(action: Action, said: str, words: Table, code: Language) -> Order | None:
    rest, acts = words.text(f"order_{action}").subn(" ", said, count=1)
    if not acts:
        return None
    number = place = None
    rest, named = words.text("order_reminder").subn(" ", rest, count=1)
    if ordinal := words.text("order_place").search(rest):
        place, rest = words.ordinal(ordinal["n"]), _cut(rest, ordinal)
    elif cardinal := words.text("order_number").search(rest):
        number, rest = int(cardinal["n"]), _cut(rest, cardinal)
    every = number is None and place is None and words.text("order_every").search(rest)
    if every:
        rest = _cut(rest, every)
    rest = re.sub(r"\s+", " ", words.text("order_beside").sub(" ", rest)).strip()
    if action in ("cancel", "done"):
        rest = words.text("opening").sub("", rest)
    return Order(
        action=action,
        language=code,
        number=number,
        place=place,
        every=bool(every),
        rest=rest,
        named=bool(named),
        calls_off=bool(rest) and action == "cancel" and words.text("order_call_off").search(said) is not None,
    )


def _is_whole(order: Order) -> bool:
    """Returns whether an order names its reminder and nothing else, although a noun in it may ask for one."""
    return order.named and not order.rest and order.number is not None and order.action != "change"


def _cut(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}"
