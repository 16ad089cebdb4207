"""Questions how a plan went, and wishes on a birthday: for whom, when, about what, and how they end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from channels.base import Place as At
from gateway.pipeline.policy import Rules
from gateway.pipeline.reminder_clock import ReminderClock
from memory.chat.identities import Where, Who
from memory.store import people
from memory.transfer import restore
from tests.kit.fakes import DAY, NOON, ScriptedModel
from tests.kit.forgetting import traces
from tests.kit.pipeline import World, pipeline
from tests.kit.talk import Place

ADA, BOB = "7", "8"
QUESTION = "Yesterday you had this planned: “dentist appointment”. How did it go?"
HOUR = 3_600_000


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def world(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[World]:
    rules = {"telegram": Rules(admins=frozenset({ADA}), allow=frozenset({BOB}), groups=frozenset({"-5"}))}
    async with pipeline(tmp_path, rules=rules, model=model) as made:
        yield made


def clock_of(world: World) -> ReminderClock:
    return ReminderClock(
        world.store,
        world.walls,
        access=world.memory.access,
        answer=world.router.begin_task,
        tokens_per_day={"assistant": None},
        now=world.clock,
    )


async def asked(world: World, *, days: float, hour: int = 11, clock: ReminderClock | None = None) -> list[str]:
    """The texts shown to anybody by the clock, so many days after the first day, at an hour UTC."""
    world.clock.set(NOON + int(days * DAY) + (hour - 12) * HOUR)
    wall = world.walls["telegram"]
    before = len(wall.sent)
    await (clock or clock_of(world)).work_off()
    for chat in (ADA, BOB, "-5"):
        await world.router.settled(At(channel="telegram", chat=chat))
    return [one.text for one in wall.sent[before:]]


async def learns(world: World, *texts: str, author: str = BOB, chat: str | None = None) -> None:
    """Has somebody say this, and reads it for memories."""
    for text in texts:
        await world.say(text, author=author, **({} if chat is None else {"chat": chat}))
    await world.memory.learner.flush((await world.memory.identities.context(*there(author, chat))).session.id, "test")


def there(author: str, chat: str | None = None) -> Place:
    where = Where(
        session_key=f"telegram:{chat or author}:-", platform="telegram", chat=chat or author,
        chat_kind="private" if chat is None else "group", thread=None, agent="assistant",
    )  # fmt: skip
    return where, Who(platform="telegram", user_id=author, name=f"N{author}")


async def test_nobody_is_asked_who_has_not_asked_for_it(world: World) -> None:
    await learns(world, "I have a dentist appointment on Monday.", "My birthday is November 24.")
    assert [await asked(world, days=day) for day in (1, 2, 3, 4)] == [[], [], [], []]
    assert "Asking how your plans went: off" in (await world.say("/privacy", author=BOB))[0]


async def test_a_plan_is_asked_about_once_on_the_day_after(world: World, model: ScriptedModel) -> None:
    """In private, within the person's hours, and the model knows what their next words answer."""
    (told,) = await world.say("/privacy followups on", author=BOB)
    assert "between 10:00 and 20:00" in told
    await learns(world, "I have a dentist appointment on Monday.")
    assert [await asked(world, days=day) for day in (1, 2)] == [[], []]
    assert await asked(world, days=3, hour=9) == []
    assert await asked(world, days=3, hour=10) == [QUESTION]
    assert world.walls["telegram"].sent[-1].place.chat == BOB
    assert [button.label for button in world.walls["telegram"].sent[-1].buttons] == ["Stop asking"]
    assert [await asked(world, days=3, hour=11), await asked(world, days=4)] == [[], []]
    await world.say("All fine!", author=BOB)
    assert QUESTION in [message.content for message in model.requests[-1].messages]


async def test_what_the_bot_was_off_for_is_not_asked_days_later(world: World) -> None:
    await world.say("/privacy followups on", author=BOB)
    await learns(world, "I have a dentist appointment on Monday.")
    assert await asked(world, days=4) == []


async def test_one_question_a_day_and_a_birthday_comes_first(world: World) -> None:
    await world.say("/privacy followups on", author=BOB)
    await learns(
        world, "I have a dentist appointment on Monday.", "I'm meeting Zelda on Monday.", "My birthday is November 24."
    )
    assert await asked(world, days=3) == ["Happy birthday! 🎂"]
    assert await asked(world, days=3, hour=15) == []


@pytest.mark.parametrize(
    "then",
    [
        "My dentist appointment is cancelled.",
        "The dentist was moved to Friday.",
        "Il dentista? The dentist is postponed.",
    ],
)
async def test_a_plan_that_was_called_off_or_moved_is_not_asked_about(world: World, then: str) -> None:
    await world.say("/privacy followups on", author=BOB)
    await learns(world, "I have a dentist appointment on Monday.", then)
    assert await asked(world, days=3) == []


async def test_who_spoke_of_it_already_is_not_asked(world: World) -> None:
    await world.say("/privacy followups on", author=BOB)
    await learns(world, "I have a dentist appointment on Monday.")
    world.clock.set(NOON + 2 * DAY)
    await learns(world, "The dentist was quick today.")
    assert await asked(world, days=3) == []


async def test_a_forgotten_plan_takes_its_question_along(world: World, tmp_path: Path) -> None:
    """Before it is asked, and the words of the question when it was."""
    await world.say("/privacy followups on", author=BOB)
    await learns(world, "I have a dentist appointment with Zqxviborkat on Monday.")
    await world.say("/forget Zqxviborkat", author=BOB)
    await world.say("yes", author=BOB)
    assert await asked(world, days=3) == []
    await learns(world, "I have a meeting with Wqzthumelor on Thursday.")
    (question,) = await asked(world, days=6)
    assert "Wqzthumelor" in question
    await world.say("/forget Wqzthumelor", author=BOB)
    await world.say("yes", author=BOB)
    assert traces(world.memory.database.path, ["Zqxviborkat", "Wqzthumelor"]) == {}


async def test_who_is_blocked_is_asked_nothing_and_groups_plans_are_the_groups(world: World) -> None:
    await world.say("/privacy followups on", author=BOB)
    await world.say("/start", author=BOB)
    await learns(world, "I have a dentist appointment on Monday.", chat="-5")
    assert await asked(world, days=3) == []
    await learns(world, "I have a dentist appointment on Thursday.")
    await world.say(f"/block {BOB}", author=ADA)
    assert await asked(world, days=6) == []


@pytest.mark.parametrize(
    "words", ["stop asking", "Don't ask me that!", "frag mich das nicht mehr", "no me preguntes más",
              "ne me demande plus ça", "别再问我这个了", "もう聞かないで"],
)  # fmt: skip
async def test_a_word_ends_it(world: World, words: str) -> None:
    await world.say("/privacy followups on 9-22", author=BOB)
    (told,) = await world.say(words, author=BOB)
    assert "/privacy followups on" in told
    assert await world.rows("select follow_ups from people where follow_ups <> ''") == []
    # Who is not asked anything talks of something else.
    assert await world.say(words, author=BOB) == ["All right."]


async def test_the_button_ends_it_and_nonsense_is_refused(world: World) -> None:
    for hours in ("20-10", "9-25", "9", "on"):
        assert "/privacy" in (await world.say(f"/privacy followups on {hours}", author=BOB))[0]
    assert await world.rows("select follow_ups from people where follow_ups <> ''") == []
    await world.say("/privacy followups on 9-21", author=BOB)
    assert "between 9:00 and 21:00" in (await world.say("/privacy", author=BOB))[0]
    await world.say("", author=BOB, pressed="run:/privacy followups off")
    assert await world.rows("select follow_ups from people where follow_ups <> ''") == []


async def test_it_is_asked_in_the_persons_language_and_zone(world: World) -> None:
    await world.say("/profile language de", author=BOB)
    await world.say("/profile timezone Pacific/Auckland", author=BOB)
    await world.say("/privacy followups on", author=BOB)
    await learns(world, "I have a dentist appointment on Tuesday.")
    # Sunday 01:00 in Auckland is Saturday noon in London: Wednesday 10:00 there is Tuesday 21:00 UTC.
    assert await asked(world, days=3, hour=20) == []
    assert await asked(world, days=3, hour=21) == ["Gestern hattest du vor: „dentist appointment“. Wie war es?"]


async def test_a_person_with_two_accounts_is_asked_where_they_have_a_private_chat(tmp_path: Path) -> None:
    rules = {"telegram": Rules(allow=frozenset({BOB}), groups=frozenset({"-5"}))}
    async with pipeline(tmp_path, rules=rules) as world:
        await world.say("/privacy followups on", author=BOB)
        await learns(world, "I have a dentist appointment on Monday.")
        world.clock.move(minutes=1)
        await world.say("hello all", author="9", chat="-5")
        ids = [row[0] for row in await world.rows("select id from identities order by last_seen_at")]
        await world.memory.database.write(lambda tx: people.link(tx, ids[0], ids[-1]))
        assert len(ids) == 2
        assert await asked(world, days=3) == [QUESTION]
        assert world.walls["telegram"].sent[-1].place.chat == BOB
        assert await asked(world, days=3, hour=13) == []


async def test_who_goes_is_asked_nothing_any_more(world: World) -> None:
    await world.say("/privacy followups on", author=BOB)
    await world.say("/privacy delete", author=BOB)
    await world.say("yes", author=BOB)
    assert await world.rows("select follow_ups from people where follow_ups <> ''") == []


@pytest.mark.sqlite("a backup is a copy of the file")
async def test_a_restored_backup_asks_nothing_twice_and_nobody_who_declined(tmp_path: Path) -> None:
    rules = {"telegram": Rules(admins=frozenset({ADA}), allow=frozenset({BOB}))}
    async with pipeline(tmp_path, rules=rules) as world:
        for author in (ADA, BOB):
            await world.say("/privacy followups on", author=author)
            await learns(world, "I have a dentist appointment on Monday.", author=author)
        made = await world.memory.backups.make()
        await world.say("/privacy followups off", author=ADA)
        assert await asked(world, days=3) == [QUESTION]
        path, now = world.memory.database.path, world.clock()
    await restore.restore(made.path, path, now=now, keep=False, say=lambda _: None)
    async with pipeline(tmp_path, rules=rules) as world:
        assert await asked(world, days=3, hour=13) == []
        assert await world.rows("select follow_ups, followed_up_on from people order by id") == [
            ("", ""),
            ("10-20", "2026-11-24"),
        ]
