"""How a reminder's repetition is said, in six languages."""

from __future__ import annotations

from gateway.wording import reminder_lines
from gateway.wording.texts import Texts
from languages import LANGUAGES
from memory.text.times.rules import parse_rule
from tests.kit.tables import each_row

TWICE = "RRULE:FREQ=DAILY;BYHOUR=8;BYMINUTE=0\nRRULE:FREQ=DAILY;BYHOUR=20;BYMINUTE=30"
LAST_DAY = "RRULE:FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1;BYHOUR=9;BYMINUTE=0"


@each_row(
    ("rule", "said"),
    [
        (TWICE, "every day at 08:00 and 20:30"),
        ("CRON:0 8,14,20 * * *", "every day at 08:00, 14:00, and 20:00"),
        ("CRON:*/15 9-17 * * 1-5", "Monday to Friday, every 15 minutes from 09:00 to 17:45"),
        ("CRON:0 */2 * * *", "every 2 hours"),
        ("CRON:30 7 1,15 * *", "every month on day 1 and on day 15 at 07:30"),
        ("CRON:0 9 * 1,7 0", "every week on Sunday in January and July at 09:00"),
        ("CRON:0 9 13 * 5", "every month on day 13 at 09:00; every week on Friday at 09:00"),
        ("CRON:0 9 */2 * 1", "by the rule 0 9 */2 * 1"),
        (LAST_DAY, "every month on the last day at 09:00"),
        ("RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0", "every month on the last Friday at 09:00"),
        (
            "RRULE:FREQ=MONTHLY;BYDAY=+2TU,+4TU;BYHOUR=18;BYMINUTE=0",
            "every month on the second Tuesday at 18:00; every month on the fourth Tuesday at 18:00",
        ),
        ("RRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24;BYHOUR=9;BYMINUTE=0", "every year on 24 December at 09:00"),
        ("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=9;BYMINUTE=0", "every 2 weeks on Monday and Friday at 09:00"),
        ("RRULE:FREQ=HOURLY;INTERVAL=3", "every 3 hours"),
        ("RRULE:FREQ=DAILY;INTERVAL=3;BYHOUR=9;BYMINUTE=0", "every 3 days at 09:00"),
        ("RRULE:FREQ=DAILY;COUNT=5", "by the rule FREQ=DAILY;COUNT=5"),
    ],
)
def test_a_rule_is_said_whole(rule: str, said: str) -> None:
    assert reminder_lines.rule(Texts("en"), rule) == said


@each_row(
    ("language", "said"),
    [
        ("en", "every day at 08:00 and 20:30"), ("de", "jeden Tag um 08:00 und 20:30"), ("es", "cada día a las 08:00 y 20:30"),
        ("fr", "chaque jour à 08:00 et 20:30"), ("zh", "每天 08:00和20:30"), ("ja", "毎日 08:00、20:30"),
    ],
)  # fmt: skip
def test_a_rule_is_said_in_the_persons_language(language: str, said: str) -> None:
    assert language in LANGUAGES
    assert reminder_lines.rule(Texts(language), TWICE) == said


@each_row("language", LANGUAGES)
def test_every_kind_of_rule_has_words_in_every_language(language: str) -> None:
    lines = ["0 9 * * 1-5", "*/15 9-17 * * *", "30 7 1,15 2 *", "0 9 13 * 5", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY"]
    for rule in [*map(parse_rule, lines), LAST_DAY]:
        said = reminder_lines.rule(Texts(language), rule)
        assert rule.partition(":")[2] not in said and "{" not in said
