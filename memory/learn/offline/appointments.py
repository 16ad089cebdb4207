"""Reads a speaker's own appointments in six languages: "dentist on Thursday at 3", "jeudi à 15h j'ai dentiste".

An appointment is an occasion (`memory/text/occasion_words.py`) on one day to come, in a short sentence. It is looked
for if the patterns of a language found no plan: they read people's plans, this module the entries of their calendars.

Invariants: pure. An occasion that is over, asked about, unsure, or another person's is no appointment.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from memory.text.occasion_words import is_occasion
from memory.text.times.pieces import Day, PieceReader
from memory.text.times.spans import anchor, spans
from memory.text.times.tables import fold, table

#: Longer sentences tell more than an appointment, in characters.
_LONGEST: Final = 90
#: Signs and words of questions, of the past, and of other people's doings.
_NOT_ONES_OWN: Final = re.compile(
    r"[?？]|(?<!with my )(?<!with the )\b(?:boss|manager)\b"
    r"|\b(?:street|avenue|floor|you|your|u|he|she|they|their|was|were|had|went|did|been|last|yesterday|has|goes|gets|needs|wants|let's|lets"
    r"|du|dein\w*|er|sie|ihr|war|hatte|ging|gestern|letzte\w*|hat|hast|geht|muss(?! ich)|will(?! ich)|kommt"
    r"|tú|tus?|él|ella|ellos|fue|era|tuve|ayer|pasad[oa]|tiene[sn]?|(?<!on )va|viene"
    r"|vous|il|elle|ils|était|hier|dernière?|vient|toi|a(?= (?:un|une|rendez|son|sa)\b))\b"
    r"|^(?:what|when|where|who|which|how|do|does|is|are|can|could|will|would|was|wann|wo|wer|wie|habe? ich|haben wir"
    r"|cuándo|qué|dónde|quand|où|quel)\b"
    r"|\b(?:erinner|recuérda|recuerda|rappel|souviens)|提醒|リマインド|思い出させ"
    r"|\b(?:birthday(?! (?:party|dinner|lunch|drinks))|b-?day|geburtstag|(?<!fiesta de )cumple(?:años)?"
    r"|(?<!fête d')anniversaire(?! de mariage))\b|生日(?![会派聚宴])|誕生日(?!会|パ)"
    r"|[你他她吗呢]|什么|几点|昨|上[周个]|了[。！!]*$|彼|あなた|昨日|先週|でした|ました|か[。]?$|だっけ",
    re.IGNORECASE,
)
#: A name about which something is said: "Tom's appointment", "Lena hat".
_NAMED: Final = re.compile(r"\b[A-ZÀ-Þ][\w-]+(?:'s\b|’s\b| (?:has|is|gets|goes|needs|hat|muss|tiene|va)\b)")
#: The characters that may stand before the day or the word of an appointment in a script without blanks.
_OPENING: Final = re.compile(
    r"[我俺咱们就要得会在，,、 ]*(?:对了|那)?[我俺咱们就要得会在，,、 ]*|(?:(?:私|僕|俺)(?:は|も)|、|あ|えっと)*"
)
#: Words that only tell whose appointment it is.
_MINE: Final = re.compile(
    r"^(?:(?:so|and|oh|ok|okay|btw|by the way|hey|hi|also|und|also|ach|y|oye|et|alors|bon)[, ]+)*"
    r"(?:\b(?:i|we)(?:'ve| have)?(?: got)?\b|there(?:'s| is))? ?(?:\b(?:the|an?)\b )?"
    r"|^(?:habe?|hab) (?!ich\b)|\b(?:habe?|hab) ich (?:\b(?:einen?|den|die|das)\b )?"
    r"|\bich (?:habe?|hab) (?:\b(?:einen?|den|die|das)\b )?"
    r"|\b(?:wir haben|haben wir|tengo(?! que)|tenemos(?! que)|j'ai|on a|nous avons) |^[我俺](?=们)?们?",
    re.IGNORECASE,
)
_COMMA: Final = re.compile(r"[,，、] ?")
_FIGURE: Final = re.compile(r"\d")
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def appointment(sentence: str, *, code: str, today: date) -> str | None:
    """Returns the appointment in a sentence said on `today`, with its date; None if there is none."""
    said = sentence.strip(" .!。！~～").replace("’", "'")
    if len(said) > _LONGEST or not is_occasion(said) or _NOT_ONES_OWN.search(said) or _NAMED.search(said):
        return None
    named = _day(said, code, today)
    if named is None:
        return None
    start, day = named
    if day <= today or (_CJK.search(said) and not _OPENING.fullmatch(said[:start])):
        return None
    asides = [
        part for part in _COMMA.split(said) if is_occasion(part) or _FIGURE.search(part) or _day(part, code, today)
    ]
    value = without_owner(", ".join(asides))
    dated = anchor(value, today, ahead=True)
    return dated if dated != value else f"{value} ({day.isoformat()})"


def without_owner(plan: str) -> str:
    """Returns a plan without the words that only tell whose it is: "I have a", "tengo"."""
    return _MINE.sub("", plan).strip(" ,，、")


def _day(said: str, code: str, today: date) -> tuple[int, date] | None:
    """Returns the place and the date of the only day that a sentence names; None without one.

    Digits alone ("3/21", "21.3.") are a date in the entry of a calendar, where elsewhere they may be a score or a part.
    """
    named = spans(said, today, looks="ahead", language=code)
    if named:
        alone = len(named) == 1 and named[0].first == named[0].last
        return (named[0].start, named[0].first) if alone else None
    pieces = PieceReader(table(code), today, month_first=code == "en").pieces(fold(said))
    days = [(piece.start, piece.value.day) for piece in pieces if isinstance(piece.value, Day)]
    return days[0] if len(days) == 1 else None
