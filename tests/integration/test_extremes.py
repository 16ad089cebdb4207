"""Times, numbers and digits at the ends of what there is, in every command: answered, never a fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.pipeline.policy import Rules
from tests.kit.pipeline import pipeline

ADA = "7"
WHEN = (
    "0001-01-01T00:00", "9999-12-31T23:59", "9999-12-31T23:59:59.999999-14:00", "0001-01-01T00:00+14:00", "9999-12-31",
    "in 99999999999999999999 days", "in 999999999 years", "in ² days", "in ٣ days", "every 99999999999 days at 9",
    "every 0 days", "on 2027-02-30", "at 25:61", "at ２５:00", "in 1e308 hours", "tomorrow at ١٢:٣٠",
    "every day until 9999-12-31", "every day until 0001-01-01", "FREQ=DAILY;UNTIL=99991399", "FREQ=DAILY;INTERVAL=٣",
    "FREQ=MINUTELY;INTERVAL=٩٩٩", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "0 ٩ * * *", "*/٣ * * * *",
    "0 9 * * 9999999999999999999999",
)  # fmt: skip
OTHERS = (
    "/remind change 99999999999999999999 tomorrow", "/remind cancel ٣", "/remind done ²", "/remind list 99999999999",
    "/remind snooze 1 99999999999999999999 days", "/memory list 99999999999999999999", "/memory list ²",
    "/memory search since:9999-12-31 tea", "/memory search on:2027-02-30 tea", "/memory search 2026-02-30..2026-99-99",
    "/memory undo 99999999999999999999999", "/memory run ²", "/forget last 99999999999999999999 days",
    "/forget 9999-12-31", "/forget since 0001-01-01", "/forget last ² weeks", "/privacy followups on ٣-٩",
    "/privacy looks 99999999999999999999", "/why 99999999999999999999", "/dead retry 99999999999999999999",
    "/keys revoke 99999999999999999999", "/usage 99999999999999999999", "what did I say on 9999-12-31?",
    "what's on 0001-01-01?", "/remember my birthday is 0000-00-00", "/remember concert (9999-12-31/0001-01-01)",
)  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_nothing_at_the_ends_of_the_calendar_or_of_numbers_is_a_fault(tmp_path: Path, zone: str) -> None:
    broken = []
    async with pipeline(tmp_path, rules={"telegram": Rules(admins=frozenset({ADA}))}) as world:
        await world.say(f"/timezone {zone}", author=ADA)
        for text in (
            *(f"/remind {when} call mum" for when in WHEN),
            *(f"/remind call mum {when}" for when in WHEN),
            *OTHERS,
        ):
            with capture_logs() as logs:
                await world.say(text, author=ADA)
            broken += [(text, one["event"]) for one in logs if one["log_level"] in ("error", "critical")]
    assert broken == []
