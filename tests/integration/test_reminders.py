"""Reminders in a real store: their times over changes of clocks, who reaches them, and what takes them away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory.chat.turns import Outcome, Said
from memory.context import Context
from memory.errors import NotFound, TooManyReminders
from memory.forgetting.choose import Selection
from memory.mailbox.outbox import Part
from memory.reminders import reminding
from memory.reminders.reminders import Firing
from memory.reminders.reminding import MOST as MOST_REMINDERS
from memory.reminders.reminding import Reminder, ReminderTimes
from memory.service import Service
from memory.text.times.phrases import Reading
from memory.transfer import restore
from tests.kit.fakes import DAY, MINUTE, NOON, Clock
from tests.kit.forgetting import carried_out, forgotten, secret, traces
from tests.kit.stores import opened
from tests.kit.talk import act, group, leave_chat, private, received

BERLIN = "Europe/Berlin"


def ms(text: str, zone: str = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def on(text: str, rule: str = "", zone: str = BERLIN) -> ReminderTimes:
    return ReminderTimes(first=text, zone=zone, at=ms(text, zone), rule=rule)


async def asked(memory: Service, context: Context, text: str, due: ReminderTimes, *, private: bool = False) -> Reminder:
    return await act(memory, context, lambda e: e.reminding.add(text, due, language="en", private=private))


async def texts(memory: Service, context: Context) -> list[str]:
    return [one.text for one in await memory.reminders.every(context)]


async def fired(memory: Service, clock: Clock) -> list[tuple[str, str, bool]]:
    """Everything that is due, as (text, when it was due in its zone, whether it is late)."""
    asked: list[Firing] = []
    shown: list[tuple[str, str, bool]] = []

    def show(firing: Firing) -> Sequence[Part]:
        asked.append(firing)
        return [Part(text=firing.reminder.text)]

    while (reminder := await memory.reminders.next_due()) is not None and (reminder.next_at or 0) <= clock():
        assert await memory.reminders.fire(reminder, show) is not None
        # Its transaction may have asked more than once.
        firing = asked[-1]
        at = datetime.fromtimestamp(firing.at / 1000, UTC).astimezone(ZoneInfo(firing.reminder.zone))
        shown.append((firing.reminder.text, f"{at:%Y-%m-%d %H:%M}", firing.late))
    return shown


async def test_a_repeated_reminder_keeps_its_hour_when_clocks_change(
    memory: Service, ada: Context, clock: Clock
) -> None:
    """Nine in the morning stays nine, before and after the night in which an hour is left out."""
    clock.set(ms("2027-03-26T12:00"))
    await asked(memory, ada, "pills", on("2027-03-27T09:00", "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0"))
    came = []
    for day in ("27", "28", "29"):
        clock.set(ms(f"2027-03-{day}T09:00"))
        came += await fired(memory, clock)
    assert came == [("pills", f"2027-03-{day} 09:00", False) for day in ("27", "28", "29")]
    next_at = (await memory.reminders.every(ada))[0].next_at
    assert next_at == ms("2027-03-30T09:00")


async def test_of_the_missed_times_only_the_latest_is_shown(memory: Service, ada: Context, clock: Clock) -> None:
    """A bot that was off for a year is not to tell of every morning, nor to search for long."""
    await asked(memory, ada, "pills", on("2026-11-22T09:00", "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0"))
    await asked(memory, ada, "rent", on("2026-11-30T08:00"))
    clock.set(ms("2027-11-25T11:30"))
    assert sorted(await fired(memory, clock)) == [
        ("pills", "2027-11-25 09:00", True),
        ("rent", "2026-11-30 08:00", True),
    ]
    assert await fired(memory, clock) == []
    assert (await memory.reminders.every(ada))[0].next_at == ms("2027-11-26T09:00")


async def test_a_repetition_ends_with_its_last_day(memory: Service, ada: Context, clock: Clock) -> None:
    due = ReminderTimes(
        first="2026-11-23T09:00", zone="UTC", at=ms("2026-11-23T09:00", "UTC"), until="2026-11-24",
        rule="RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0",
    )  # fmt: skip
    await asked(memory, ada, "pills", due)
    clock.set(ms("2026-11-23T09:00", "UTC"))
    assert len(await fired(memory, clock)) == 1
    clock.set(ms("2026-11-26T09:00", "UTC"))
    assert await fired(memory, clock) == [("pills", "2026-11-24 09:00", True)]
    assert (await memory.reminders.every(ada))[0].next_at is None


async def test_a_reminder_survives_the_end_of_the_process_and_comes_once(tmp_path: Path, clock: Clock) -> None:
    """Reminders set before the restore still come, and those shown before it don't come again."""
    async with opened(tmp_path / "remora.db", clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        await asked(memory, ada, "call mum", on("2026-11-22T09:00"))
    clock.set(ms("2026-11-22T09:00"))
    async with opened(tmp_path / "remora.db", clock) as memory:
        assert [text for text, _, _ in await fired(memory, clock)] == ["call mum"]
    async with opened(tmp_path / "remora.db", clock) as memory:
        assert await fired(memory, clock) == []


async def test_nobody_reaches_anothers_reminder_and_a_group_shows_its_own_only(memory: Service, ada: Context) -> None:
    """Not by its number, not by a button's id, not by a reply; and a group never shows what was asked for in private."""
    mine = await asked(memory, ada, "see the doctor", on("2026-12-01T09:00"))
    bob = await memory.identities.context(*private("bob"))
    in_club, bob_in_club = (
        await memory.identities.context(*group("club", "ada")),
        await memory.identities.context(*group("club", "bob")),
    )
    await asked(memory, in_club, "bring the map", on("2026-12-02T09:00"))
    assert sorted(await texts(memory, ada)) == ["bring the map", "see the doctor"]
    assert await texts(memory, in_club) == ["bring the map"]
    assert await texts(memory, bob) == await texts(memory, bob_in_club) == []
    for other in (bob, bob_in_club, in_club):
        with pytest.raises(NotFound):
            await act(memory, other, lambda e: e.reminding.of_id(mine.id))
        with pytest.raises(NotFound):
            await act(memory, other, lambda e: e.reminding.numbered(mine.number))


async def test_a_person_has_so_many_open_reminders_at_most(memory: Service, ada: Context, clock: Clock) -> None:
    """Those that were shown don't count, and the others still can be changed."""
    for n in range(MOST_REMINDERS):
        await asked(memory, ada, f"thing {n}", on("2026-12-01T09:00"))
    with pytest.raises(TooManyReminders):
        await asked(memory, ada, "one more", on("2026-12-01T09:00"))
    clock.set(ms("2026-12-01T09:00"))
    assert len(await fired(memory, clock)) == MOST_REMINDERS
    await asked(memory, ada, "one more", on("2026-12-02T09:00"))


async def test_where_the_place_is_gone_it_comes_in_private(memory: Service, ada: Context, clock: Clock) -> None:
    """The person asked for it, and the group where they did has sent the bot away."""
    in_club = await memory.identities.context(*group("club", "ada"))
    here = await asked(memory, in_club, "bring the map", on("2026-11-22T09:00"))
    alone = await asked(memory, in_club, "buy a present", on("2026-11-22T09:00"), private=True)
    assert (await memory.reminders.whose(here))[1].key == in_club.session.key
    assert (await memory.reminders.whose(alone))[1].key == ada.session.key
    await leave_chat(memory, "club")
    assert (await memory.reminders.whose(here))[1].key == ada.session.key


@pytest.mark.parametrize("words", ["zelda", "about:zelda", "all", "2026-11-21..2026-11-21", "here"])
async def test_what_is_forgotten_takes_the_reminders_that_speak_of_it(memory: Service, words: str) -> None:
    """They are named before they go, and no byte of them is left."""
    ada = await memory.identities.context(*private("ada"))
    word = secret(1)
    await asked(memory, ada, f"meet Zelda {word}", on("2026-12-01T09:00"))
    preview = await memory.forgetting.preview(ada, words)
    assert preview is not None and preview.reminders == (f"meet Zelda {word}",)
    receipt = await forgotten(memory, ada, words)
    assert receipt.reminders == 1 and await texts(memory, ada) == []
    assert traces(memory.database.path, [word]) == {}


async def test_a_person_who_goes_takes_their_reminders_along(memory: Service, ada: Context) -> None:
    bob = await memory.identities.context(*private("bob"))
    in_club = await memory.identities.context(*group("club", "ada"))
    for who in (ada, bob, in_club):
        await asked(memory, who, f"thing of {who.speaker.name}", on("2026-12-01T09:00"))
    await carried_out(memory, ada, Selection(what="me"))
    assert await texts(memory, ada) == [] and await texts(memory, bob) == ["thing of bob"]


async def test_an_export_holds_the_persons_reminders(memory: Service, ada: Context) -> None:
    """Those of all places, in private only; and the page tells them."""
    in_club = await memory.identities.context(*group("club", "ada"))
    await asked(memory, in_club, "bring the map", on("2026-12-02T09:00", "RRULE:FREQ=WEEKLY;BYDAY=WE"))
    exported = await memory.transfer.export(ada, transcript=False)
    (reminder,) = json.loads(exported.data)["reminders"]
    assert (reminder["text"], reminder["first"], reminder["timezone"]) == ("bring the map", "2026-12-02T09:00", BERLIN)
    assert "bring the map" in exported.page
    assert "bring the map" not in (await memory.transfer.export(in_club, transcript=False)).page


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_restored_backup_repeats_no_reminder_and_brings_none_back(tmp_path: Path, clock: Clock) -> None:
    """Reminders that came since the backup don't come again; cancelled and forgotten ones stay away."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        for text in ("comes before", "cancelled", "zelda", "comes after"):
            await asked(memory, ada, text, on("2026-11-23T09:00" if text == "comes after" else "2026-11-22T09:00"))
        made = await memory.backups.make()
        await forgotten(memory, ada, "zelda")
        await act(memory, ada, lambda e: e.reminding.cancel(e.reminding.numbered(2)))
        clock.set(ms("2026-11-22T09:00"))
        assert [text for text, _, _ in await fired(memory, clock)] == ["comes before"]
    await restore.restore(made.path, path, now=clock(), keep=False, say=lambda _: None)
    async with opened(path, clock) as memory:
        assert await fired(memory, clock) == []
        clock.set(ms("2026-11-23T09:00"))
        assert [text for text, _, _ in await fired(memory, clock)] == ["comes after"]


async def test_the_answer_of_a_task_and_its_end_are_one(memory: Service, ada: Context) -> None:
    """If the end can't be noted, nothing is shown, and the answer comes with the next attempt."""
    where, who = private("ada")
    inbox_id = await received(memory, where.session_key)
    said = Said(inbox_id=inbox_id, text="plans?", tokens=1, said_at=NOON, platform_ref=None, reply_to=None, learn=True)
    turn = await memory.turns.begin(where, who, [said])
    task = await act(
        memory, ada, lambda e: e.reminding.add("plans?", on("2026-11-22T09:00"), language="en", kind="task")
    )

    def told(_: Reminder) -> Sequence[Part]:
        raise RuntimeError("the disk is gone")

    for _ in range(2):
        await memory.database.write(lambda tx: reminding.end_task(tx, task.id, failed=True))
    outcome = Outcome(pieces=(Part(text="none"),), error="model")
    with pytest.raises(RuntimeError):
        await memory.turns.finish(
            turn, None, outcome, ending=memory.reminders.task_ending(task.id, error="model", told=told)
        )
    waiting = "select (select count(*) from outbox), (select state from inbox order by id limit 1), (select failures from reminders)"
    assert [tuple(row) for row in await memory.database.read(lambda r: r.all(waiting))] == [(1, "claimed", 2)]
    ending = memory.reminders.task_ending(task.id, error="model", told=lambda one: [Part(text=f"off: {one.text}")])
    await memory.turns.finish(turn, None, outcome, ending=ending)
    assert [tuple(row) for row in await memory.database.read(lambda r: r.all(waiting))] == [(3, "failed", 3)]


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_restored_reminder_repeats_as_it_was_last_told(tmp_path: Path, clock: Clock) -> None:
    """Another rule and zone since the backup hold for all times to come, and not only for the next."""
    path = tmp_path / "remora.db"
    async with opened(path, clock) as memory:
        ada = await memory.identities.context(*private("ada"))
        daily = "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0"
        pills = await asked(memory, ada, "pills", on("2026-11-22T09:00", daily))
        made = await memory.backups.make()
        weekly = on("2026-11-23T08:00", "RRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=8;BYMINUTE=0", "Europe/London")
        await act(memory, ada, lambda e: e.reminding.change(pills, weekly))
    await restore.restore(made.path, path, now=clock(), keep=False, say=lambda _: None)
    async with opened(path, clock) as memory:
        times = []
        for _ in range(2):
            due = await memory.reminders.next_due()
            assert due is not None and due.next_at is not None
            clock.set(due.next_at)
            times += [at for _, at, _ in await fired(memory, clock)]
        assert times == ["2026-11-23 08:00", "2026-11-30 08:00"]


async def test_what_nobody_ends_is_tidied_away(memory: Service, ada: Context, clock: Clock) -> None:
    """A reminder that was shown keeps its words for a month, one without a time for a day."""
    await act(memory, ada, lambda e: e.reminding.add("no time", None, language="en"))
    await asked(memory, ada, "shown", on("2026-11-22T09:00"))
    clock.set(NOON + DAY + MINUTE)
    await fired(memory, clock)
    await memory.housekeeping.tidy()
    every = await memory.database.read(
        lambda r: reminding.of_reach(r, reminding.ReminderReach((ada.speaker.id,), None))
    )
    assert [one.text for one in every] == ["shown"]
    clock.move(days=31)
    await memory.housekeeping.tidy()
    assert await texts(memory, ada) == []


@pytest.mark.parametrize(
    ("was", "said", "becomes"),
    [
        (on("2026-11-29T11:00"), "at 10", "2026-11-29T10:00"),
        (on("2026-11-29T11:00"), "on Monday", "2026-11-30T11:00"),
        (on("2026-11-29T11:00"), "on Monday evening", "2026-11-30T19:00"),
        (on("2027-05-10T11:00"), "on the 11th", "2027-05-11T11:00"),
        (on("2027-05-10T11:00"), "on the 11th at 9:30", "2027-05-11T09:30"),
        (on("2027-02-10T11:00"), "on the 30th", "2026-11-30T11:00"),  # no such day in February
        (on("2026-11-29T11:00"), "tomorrow at 8:15", "2026-11-24T08:15"),
        (on("2026-11-29T11:00"), "in 20 minutes", "2026-11-23T12:20"),
        (on("2026-11-23T18:00"), "at 10:00", "2026-11-24T10:00"),  # ten has passed today
        (on("2026-11-29T21:00"), "at 8:30", "2026-11-29T20:30"),  # the half of the day in which it was
        (on("2026-11-29T07:00"), "at 8", "2026-11-29T08:00"),
        (on("2026-11-29T18:00", "RRULE:FREQ=WEEKLY;BYDAY=SU;BYHOUR=18;BYMINUTE=0"), "at 19:00", "2026-11-29T19:00"),
    ],
)
async def test_what_is_not_named_stays_as_it_was(
    memory: Service, ada: Context, clock: Clock, was: ReminderTimes, said: str, becomes: str
) -> None:
    """A call on Sunday at eleven that is moved to ten is still on Sunday."""
    clock.set(ms("2026-11-23T12:00"))
    made = await asked(memory, ada, "call mum", was)
    reading = memory.reminders.read_time(replace(ada, timezone=BERLIN), said, language="en")
    assert isinstance(reading, Reading)
    due = memory.reminders.retimed(made, reading)
    assert due.at == ms(becomes)
