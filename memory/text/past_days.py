"""Translates German, Spanish, French and Japanese days, weeks, months and seasons to English or Chinese, word by word.

Invariants: pure. For values that are known to name a time, such as a filter's: in a sentence "mars" may be a planet.
Other words stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

#: The words, each line beginning with the English one.
_WORDS: Final = """
today heute hoy aujourd'hui
yesterday gestern ayer hier
day_before_yesterday vorgestern anteayer antier avant-hier
last letzte letzten letzter letztes vorige vorigen voriges vergangene vergangenen pasada pasado última último
 dernière dernier passée passé
this diese dieser diesen dieses diesem esta este cette ce cet
week woche semana semaine
weekend wochenende finde week-end
month monat mes mois
year jahr año ano année an
spring frühling frühjahr primavera printemps
summer sommer verano été
autumn herbst otoño automne
winter invierno hiver
january januar jänner enero janvier
february februar febrero février
march märz marzo mars
april abril avril
may mai mayo
june juni junio juin
july juli julio juillet
august agosto août
september septiembre setiembre septembre
october oktober octubre octobre
november noviembre novembre
december dezember diciembre décembre
monday montag lunes lundi
tuesday dienstag martes mardi
wednesday mittwoch miércoles mercredi
thursday donnerstag jueves jeudi
friday freitag viernes vendredi
saturday samstag sonnabend sábado samedi
sunday sonntag domingo dimanche
christmas weihnachten navidad noël
easter ostern pascua pâques
"""
_ENGLISH: Final = {
    word: english.replace("_", " ")
    for english, *words in map(str.split, _WORDS.strip().replace("\n ", " ").split("\n"))
    for word in words
}
#: Words that these languages put before a time.
_BEFORE: Final = frozenset(
    [
        "im",
        "in",
        "am",
        "an",
        "der",
        "die",
        "das",
        "den",
        "dem",
        "el",
        "la",
        "los",
        "las",
        "en",
        "del",
        "de",
        "le",
        "les",
        "du",
        "l'",
        "au",
        "à",
        "fin",
    ]
)
_UNITS: Final = frozenset(_ENGLISH.values()) - {"last", "this", "today", "yesterday", "day before yesterday"}
_JAPANESE: Final = {
    "一昨日": "前天", "おととい": "前天", "きのう": "昨天", "昨日": "昨天", "今日": "今天", "きょう": "今天",
    "先々週": "上上周", "先週": "上周", "今週": "本周", "先月": "上个月", "今月": "本月", "昨年": "去年",
    "一昨年": "前年",
}  # fmt: skip
_WEEKDAY: Final = re.compile(r"(?:(?P<last>先週の)?(?P<day>[月火水木金土日])曜日?)")
_WEEKDAYS: Final = dict(zip("月火水木金土日", "一二三四五六日", strict=True))
_NUMERIC: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_DAY: Final = re.compile(r"(\d{1,2})(?:\.|er|º|°)?")


def in_known_words(value: str) -> str:
    """Returns a time in English or Chinese words, as far as its words are known here."""
    if (weekday := _WEEKDAY.fullmatch(value)) is not None:
        return f"{'上' if weekday['last'] else ''}周{_WEEKDAYS[weekday['day']]}"
    if value in _JAPANESE:
        return _JAPANESE[value]
    if (date := _NUMERIC.fullmatch(value)) is not None:
        return f"{date[3]}-{int(date[2]):02}-{int(date[1]):02}"
    said = value.casefold().replace("’", "'").removeprefix("l'").split()
    words = [_ENGLISH.get(word, word) for word in said if word not in _BEFORE]
    if len(words) == 2 and words[1] == "last" and words[0] in _UNITS:
        words.reverse()
    if len(words) > 1 and words[1] in _UNITS and (day := _DAY.fullmatch(words[0])) is not None:
        words[0] = day[1]
    return " ".join(words)
