"""One engine reads the days of six languages, for questions and for what is to be remembered."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

from memory.text.times.spans import anchor, days_named, spans
from tests.kit.tables import each_row

SATURDAY = date(2026, 11, 21)


def days(first: str, last: str = "") -> tuple[date, date]:
    begin = date.fromisoformat(first) if first else date.min
    return begin, date.fromisoformat(last) if last else begin


@each_row(("text", "words", "first", "last"), [
        # German
        ("Was habe ich letzte Woche gesagt?", "letzte Woche", "2026-11-09", "2026-11-15"),
        ("vorletzte Woche", "vorletzte Woche", "2026-11-02", "2026-11-08"),
        ("gestern Abend", "gestern Abend", "2026-11-20", "2026-11-20"),
        ("vorgestern", "vorgestern", "2026-11-19", "2026-11-19"),
        ("letzten Freitag", "letzten Freitag", "2026-11-20", "2026-11-20"),
        ("was war am Montag?", "am Montag", "2026-11-16", "2026-11-16"),
        ("seit Montag", "seit Montag", "2026-11-16", "2026-11-21"),
        ("letzten Sommer", "letzten Sommer", "2026-06-01", "2026-08-31"),
        ("im März", "im März", "2026-03-01", "2026-03-31"), ("Ende Mai", "Ende Mai", "2026-05-21", "2026-05-31"),
        ("am 3. Mai", "am 3. Mai", "2026-05-03", "2026-05-03"),
        ("am 3. Mai 2025", "am 3. Mai 2025", "2025-05-03", "2025-05-03"),
        ("am 3.5.2025", "am 3.5.2025", "2025-05-03", "2025-05-03"),
        ("vom 3. bis 7. Mai", "vom 3. bis 7. Mai", "2026-05-03", "2026-05-07"),
        ("von Montag bis Mittwoch", "von Montag bis Mittwoch", "2026-11-16", "2026-11-18"),
        ("zwischen Mai und Juli", "zwischen Mai und Juli", "2026-05-01", "2026-07-31"),
        ("vor dem 3. Mai", "vor dem 3. Mai", "", "2026-05-02"),
        ("vor zwei Monaten", "vor zwei Monaten", "2026-09-08", "2026-10-04"),
        ("vor ein paar Wochen", "vor ein paar Wochen", "2026-10-13", "2026-11-10"),
        ("in drei Tagen", "in drei Tagen", "2026-11-24", "2026-11-24"),
        ("in den letzten drei Tagen", "in den letzten drei Tagen", "2026-11-18", "2026-11-21"),
        ("letztes Quartal", "letztes Quartal", "2026-07-01", "2026-09-30"),
        ("letztes Wochenende", "letztes Wochenende", "2026-11-14", "2026-11-15"),
        ("im Jahr 2023", "im Jahr 2023", "2023-01-01", "2023-12-31"),
        ("in den 90ern", "in den 90ern", "1990-01-01", "1999-12-31"),
        ("an Weihnachten", "an Weihnachten", "2025-12-24", "2025-12-26"),
        ("zwischen dem 3. und 7. Mai", "zwischen dem 3. und 7. Mai", "2026-05-03", "2026-05-07"),
        ("im Mai letzten Jahres", "im Mai letzten Jahres", "2025-05-01", "2025-05-31"),
        ("heute in einer Woche", "heute in einer Woche", "2026-11-28", "2026-11-28"),
        ("Anfang des Monats", "Anfang des Monats", "2026-11-01", "2026-11-10"),
        ("lunch on Easter Sunday", "on Easter Sunday", "2026-04-05", "2026-04-06"),
        # French
        ("qu'ai-je dit hier ?", "hier", "2026-11-20", "2026-11-20"),
        ("entre le 3 et le 7 mai", "entre le 3 et le 7 mai", "2026-05-03", "2026-05-07"),
        ("qu'est-ce que j'ai dit la semaine dernière ?", "la semaine dernière", "2026-11-09", "2026-11-15"),
        ("hier soir", "hier soir", "2026-11-20", "2026-11-21"),
        ("avant-hier", "avant-hier", "2026-11-19", "2026-11-19"),
        ("vendredi dernier", "vendredi dernier", "2026-11-20", "2026-11-20"),
        ("depuis lundi", "depuis lundi", "2026-11-16", "2026-11-21"),
        ("l'été dernier", "l'été dernier", "2026-06-01", "2026-08-31"),
        ("en mars", "en mars", "2026-03-01", "2026-03-31"), ("début mai", "début mai", "2026-05-01", "2026-05-11"),
        ("le 3 mai 2025", "le 3 mai 2025", "2025-05-03", "2025-05-03"),
        ("du 3 au 7 mai", "du 3 au 7 mai", "2026-05-03", "2026-05-07"),
        ("entre mai et juillet", "entre mai et juillet", "2026-05-01", "2026-07-31"),
        ("avant Noël", "avant Noël", "", "2025-12-23"),
        ("il y a deux mois", "il y a deux mois", "2026-09-08", "2026-10-04"),
        ("les trois derniers jours", "les trois derniers jours", "2026-11-18", "2026-11-21"),
        ("le trimestre dernier", "le trimestre dernier", "2026-07-01", "2026-09-30"),
        ("le week-end dernier", "le week-end dernier", "2026-11-14", "2026-11-15"),
        ("l'année dernière", "l'année dernière", "2025-01-01", "2025-12-31"),
        ("dans les années 90", "dans les années 90", "1990-01-01", "1999-12-31"),
        # Spanish
        ("¿qué dije la semana pasada?", "la semana pasada", "2026-11-09", "2026-11-15"),
        ("anoche", "anoche", "2026-11-20", "2026-11-21"), ("anteayer", "anteayer", "2026-11-19", "2026-11-19"),
        ("el viernes pasado", "el viernes pasado", "2026-11-20", "2026-11-20"),
        ("desde el lunes", "desde el lunes", "2026-11-16", "2026-11-21"),
        ("el verano pasado", "el verano pasado", "2026-06-01", "2026-08-31"),
        ("en marzo", "en marzo", "2026-03-01", "2026-03-31"),
        ("a principios de mayo", "a principios de mayo", "2026-05-01", "2026-05-11"),
        ("el 3 de mayo de 2025", "el 3 de mayo de 2025", "2025-05-03", "2025-05-03"),
        ("del 3 al 7 de mayo", "del 3 al 7 de mayo", "2026-05-03", "2026-05-07"),
        ("entre mayo y julio", "entre mayo y julio", "2026-05-01", "2026-07-31"),
        ("antes de Navidad", "antes de Navidad", "", "2025-12-23"),
        ("hace dos meses", "hace dos meses", "2026-09-08", "2026-10-04"),
        ("los últimos tres días", "los últimos tres días", "2026-11-18", "2026-11-21"),
        ("el trimestre pasado", "el trimestre pasado", "2026-07-01", "2026-09-30"),
        ("el fin de semana pasado", "el fin de semana pasado", "2026-11-14", "2026-11-15"),
        ("el año pasado", "el año pasado", "2025-01-01", "2025-12-31"),
        ("en los años 90", "en los años 90", "1990-01-01", "1999-12-31"),
        ("entre el 3 y el 7 de mayo", "entre el 3 y el 7 de mayo", "2026-05-03", "2026-05-07"),
        ("el día 7", "el día 7", "2026-11-07", "2026-11-07"),
        # Japanese
        ("この前の土曜日", "この前の土曜日", "2026-11-14", "2026-11-14"), ("クリスマスの前", "クリスマスの前", "", "2025-12-23"),
        ("先週何を話した？", "先週", "2026-11-09", "2026-11-15"), ("先々週", "先々週", "2026-11-02", "2026-11-08"),
        ("昨日の夜", "昨日の夜", "2026-11-20", "2026-11-21"), ("一昨日", "一昨日", "2026-11-19", "2026-11-19"),
        ("先週の金曜日", "先週の金曜日", "2026-11-13", "2026-11-13"), ("月曜日から", "月曜日から", "2026-11-16", "2026-11-21"),
        ("去年の夏", "去年の夏", "2025-06-01", "2025-08-31"), ("3月に", "3月", "2026-03-01", "2026-03-31"),
        ("5月の初め", "5月の初め", "2026-05-01", "2026-05-11"), ("5月3日", "5月3日", "2026-05-03", "2026-05-03"),
        ("2025年5月3日", "2025年5月3日", "2025-05-03", "2025-05-03"),
        ("5月3日から7日まで", "5月3日から7日まで", "2026-05-03", "2026-05-07"),
        ("5月から7月まで", "5月から7月まで", "2026-05-01", "2026-07-31"), ("2ヶ月前", "2ヶ月前", "2026-09-08", "2026-10-04"),
        ("二週間前", "二週間前", "2026-11-04", "2026-11-10"), ("3日後", "3日後", "2026-11-24", "2026-11-24"),
        ("先月の5日", "先月の5日", "2026-10-05", "2026-10-05"), ("前四半期", "前四半期", "2026-07-01", "2026-09-30"),
        ("先週末", "先週末", "2026-11-14", "2026-11-15"), ("90年代", "90年代", "1990-01-01", "1999-12-31"),
    ])  # fmt: skip
def test_the_times_of_questions_are_read_in_every_language(text: str, words: str, first: str, last: str) -> None:
    (span,) = spans(text, SATURDAY, looks="back")
    assert text[span.start : span.end] == words
    assert (span.first, span.last) == days(first, last)


@each_row("text", [
        "Guten Morgen, was machen wir hier?", "das ist schon so", "im Auto", "der Sommer ist schön", "jeden Freitag",
        "ich esse drei Mal am Tag", "mein Freund August", "ein Geschenk für Weihnachten",
        "j'ai été malade", "il est ici depuis", "la planète mars", "tous les lundis", "un mois de vacances",
        "vendredi saint", "domingo de ramos", "por la mañana", "la mañana es bonita", "los lunes", "me gusta el verano", "tengo dos semanas",
        "五月病", "三日間の旅行です", "毎週金曜日", "明日香さん", "夏が好きです", "日曜大工",
    ])  # fmt: skip
def test_words_of_other_languages_that_only_look_like_a_time_give_none(text: str) -> None:
    assert spans(text, SATURDAY, looks="back") == []


@each_row(
    ("text", "anchored"),
    [
        ("Ich fliege morgen nach Rom", "Ich fliege morgen (2026-11-22) nach Rom"),
        ("in drei Tagen", "in drei Tagen (2026-11-24)"), ("vor zwei Monaten", "vor zwei Monaten (2026-09)"),
        ("letzten Sommer", "letzten Sommer (2026-06-01/2026-08-31)"),
        ("nächste Woche", "nächste Woche (2026-11-23/2026-11-29)"),
        ("nächsten Freitag", "nächsten Freitag (2026-11-27)"),
        ("je pars demain à Rome", "je pars demain (2026-11-22) à Rome"),
        ("la semaine prochaine", "la semaine prochaine (2026-11-23/2026-11-29)"),
        ("dans trois jours", "dans trois jours (2026-11-24)"),
        ("vuelo mañana a Roma", "vuelo mañana (2026-11-22) a Roma"),
        ("el mes que viene", "el mes que viene (2026-12)"),
        ("dentro de tres días", "dentro de tres días (2026-11-24)"), ("明日ローマに飛びます", "明日 (2026-11-22)ローマに飛びます"),
        ("来年", "来年 (2027)"), ("三日後", "三日後 (2026-11-24)"), ("来週の金曜日", "来週の金曜日 (2026-11-27)"),
        ("am Freitag", "am Freitag"), ("le 3 mai", "le 3 mai"), ("morgen (2026-11-22)", "morgen (2026-11-22)"),
    ],
)  # fmt: skip
def test_what_is_to_be_remembered_gets_its_date_in_every_language(text: str, anchored: str) -> None:
    assert anchor(text, SATURDAY) == anchored


@each_row(
    ("text", "anchored"),
    [
        ("Zahnarzt am Freitag", "Zahnarzt am Freitag (2026-11-27)"),
        ("Prüfung am 3. Mai", "Prüfung am 3. Mai (2027-05-03)"), ("dentiste jeudi", "dentiste jeudi (2026-11-26)"),
        ("examen le 3 mai", "examen le 3 mai (2027-05-03)"), ("cita el lunes", "cita el lunes (2026-11-23)"),
        ("del 12 al 16 de diciembre", "del 12 al 16 de diciembre (2026-12-12/2026-12-16)"),
        ("金曜日に歯医者", "金曜日 (2026-11-27)に歯医者"), ("12月5日に試験", "12月5日 (2026-12-05)に試験"),
    ],
)  # fmt: skip
def test_plans_take_the_next_day_that_recurs_in_every_language(text: str, anchored: str) -> None:
    assert anchor(text, SATURDAY, ahead=True) == anchored


# The days to come that a text names ---------------------------------------------------------------------------------

#: A Wednesday.
NOW = datetime(2026, 11, 25, 12, tzinfo=ZoneInfo("Europe/Berlin"))


def on(first: int, last: int | None = None) -> tuple[date, date]:
    return date(2026, 11, first), date(2026, 11, first if last is None else last)


@each_row(
    ("language", "text", "days"),
    [
        ("en", "what's happening on friday?", on(27)),
        ("en", "anything on today?", on(25)),
        ("en", "am I free this weekend?", on(28, 29)),
        ("en", "what's on this week?", on(25, 29)),
        ("de", "was steht morgen an?", on(26)),
        ("de", "was ist diese Woche los?", on(25, 29)),
        ("es", "¿qué tengo el viernes?", on(27)),
        ("fr", "qu'est-ce que j'ai demain ?", on(26)),
        ("zh", "后天有什么安排？", on(27)),
        ("ja", "今週末の予定は？", on(28, 29)),
    ],
)
def test_a_day_a_weekend_and_a_week_are_named(language: str, text: str, days: tuple[date, date]) -> None:
    assert days_named(text, language=language, now=NOW) == days


def test_the_next_week_is_a_whole_one() -> None:
    assert days_named("what's on next week?", language="en", now=NOW) == (date(2026, 11, 30), date(2026, 12, 6))
    assert days_named("下周有什么安排？", language="zh", now=NOW) == (date(2026, 11, 30), date(2026, 12, 6))


def test_a_date_that_was_added_decides() -> None:
    assert days_named("dentist tomorrow (2026-12-24) at 4pm", language="en", now=NOW) == (date(2026, 12, 24),) * 2


@each_row("text", ["what do I do?", "friday or saturday?", ""])
def test_no_day_or_several_apart_are_none(text: str) -> None:
    assert days_named(text, language="en", now=NOW) is None
