"""Messages on their way to a platform that edits, has buttons and sometimes fails; with a scripted model behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from channels.base import (
    Attachment,
    Blocked,
    Capabilities,
    ChannelError,
    ChannelUnavailable,
    EditGone,
    Inbound,
    Moved,
    NotTaken,
    Place,
)
from gateway.pipeline.outcome import Progress
from gateway.pipeline.policy import Rules
from gateway.reception.router import Router
from memory.service import Service
from memory.store.database import Database
from tests.kit.bench import Desk, Phone, SlowModel
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.patience import leap, settle, until

PLACE = Place(channel="console", chat="ada")


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock, model: ScriptedModel) -> Desk:
    return Desk(tmp_path, model, Phone(), clock)


@asynccontextmanager
async def failing(desk: Desk, *failures: Exception) -> AsyncIterator[Router]:
    desk.screen.failures = list(failures)
    async with desk.running() as router:
        yield router


async def test_what_was_surely_not_shown_is_sent_when_the_platform_asked_for(desk: Desk) -> None:
    """A wait is honoured to the moment, also for the rows behind it."""
    async with failing(desk, ChannelUnavailable("slow down", retry_after=0.3)):
        await desk.say("hello")
        assert desk.screen.texts == []
        [(state, not_before)] = await desk.rows("select state, not_before from outbox")
        assert state == "pending" and desk.clock.just_now(int(str(not_before)) - 300)
        desk.clock.at += 300
        await until(lambda: desk.screen.texts == ["All right."])


async def test_an_answer_of_unknown_fate_is_offered_and_shown_when_asked_for(desk: Desk) -> None:
    async with failing(desk, ChannelUnavailable("timed out", certain=False)):
        await desk.say("hello", key="m1")
        [notice] = desk.screen.sent
        [button] = notice.buttons
        assert "show" in notice.text
        assert notice.reply_to == "m1"
        await desk.push(button.data)
        assert desk.screen.texts[1:] == ["All right."]
        await desk.push(button.data)
        assert "has been shown" in desk.screen.texts[2]
    assert len(desk.model.requests) == 1


async def test_an_offer_of_unknown_fate_is_made_again(desk: Desk) -> None:
    """It may not have been seen either; its button stands for the same answer. Not at once, lest it never ends."""
    unsure = [ChannelUnavailable("timed out", certain=False) for _ in range(3)]
    async with failing(desk, *unsure):
        await desk.say("hello")
        assert desk.screen.sent == []
        for wait in (1_000, 5_000):
            desk.clock.at += wait
            leap(wait / 1_000)
            await settle()
            desk.stores["assistant"].delivery.wake("console:ada:-")
            await desk.stores["assistant"].delivery.settled("console:ada:-")
        [notice] = desk.screen.sent
        await desk.push(notice.buttons[0].data)
        assert desk.screen.texts[1] == "All right."


async def test_a_row_that_was_being_sent_when_the_process_died_is_offered_once(desk: Desk) -> None:
    """The next start asks; the start after it does not ask again."""

    desk.screen.hangs = True
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("hello"))
        await desk.screen.arrived.wait()
    desk.screen.hangs = False
    for _ in range(2):
        async with desk.running():
            await desk.router.settled(desk.inbound("x").place)
            await until(lambda: bool(desk.screen.sent))  # of several processes one takes it up a moment later
    assert [len(outbound.buttons) for outbound in desk.screen.sent] == [1]


async def test_a_slow_answer_shows_a_placeholder_that_grows_and_becomes_the_answer(
    tmp_path: Path, clock: Clock
) -> None:
    model = SlowModel("one two three four")
    desk = Desk(tmp_path, model, Phone(), clock)
    desk.placeholder_seconds = 0
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("count"))
        await until(lambda: desk.screen.sent)
        model.go_on(2)
        await until(lambda: "one two" in "".join(desk.screen.revised))
        model.go_on()
        await desk.router.settled(PLACE)
        [placeholder, answer] = desk.screen.sent
        assert (placeholder.text, placeholder.edits) == ("…", None)
        assert (answer.text, answer.edits) == ("one two three four", str(placeholder.id))
        assert desk.screen.revised[-1].startswith("one two")
        assert await desk.rows("select kind, state from outbox order by id") == [
            ("placeholder", "sent"),
            ("message", "sent"),
        ]


async def test_a_quick_answer_needs_no_placeholder(desk: Desk) -> None:
    """Two messages to show one would be a flicker."""
    async with desk.running():
        await desk.say("hello")
    assert desk.screen.texts == ["All right."]


async def test_a_placeholder_waits_for_an_answer_that_waits(tmp_path: Path, clock: Clock) -> None:
    """Else the later answer would stand where its placeholder stood, above the earlier one."""
    model = SlowModel("first", "one two three four")
    desk = Desk(tmp_path, model, Phone(), clock)
    desk.placeholder_seconds = 0.3
    model.go_on(1)
    desk.screen.failures = [ChannelUnavailable("slow down", retry_after=1)]
    async with desk.running():
        await desk.say("hello")
        await desk.router.on_inbound(desk.inbound("count"))
        await until(lambda: len(desk.model.requests) == 2)
        for _ in range(20):
            leap(1)
            await desk.rows("select 1 from outbox")  # meanwhile it can look as often for whether its turn has come
        model.go_on()
        desk.clock.at += 1_000
        await until(lambda: any("four" in text for text in desk.screen.texts))
    assert next(outbound.text for outbound in desk.screen.sent if outbound.edits is None) == "first"


async def test_a_placeholder_of_unknown_fate_does_not_hold_back_the_answer(tmp_path: Path, clock: Clock) -> None:
    """It may stand there as an orphan; the answer comes as a message of its own, once."""
    failures: list[Exception] = [ChannelUnavailable("timed out", certain=False)]
    model = SlowModel("one two")
    desk = Desk(tmp_path, model, Phone(failures), clock)
    desk.placeholder_seconds = 0
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("count"))
        await until(lambda: not desk.screen.failures)
        model.go_on()
        await desk.router.settled(PLACE)
    assert [(outbound.text, outbound.edits) for outbound in desk.screen.sent] == [("one two", None)]


class Stuck(Phone):
    """A platform that never answers "typing"."""

    async def typing(self, place: Place) -> None:
        self.arrived.set()
        await asyncio.Event().wait()


async def test_an_answer_that_is_cancelled_as_it_waits_for_the_platform_leaves_nothing_running(memory: Service) -> None:
    """The answer is complete and waits for requests under way when the process is told to end."""
    phone, before = Stuck(), asyncio.all_tasks()

    async def answer() -> None:
        place = Place(channel="console", chat="ada")
        async with Progress(
            memory.mailbox, phone, place, turn_id=1, reply_to=None, after_seconds=60, safe=lambda text: text
        ):
            await phone.arrived.wait()

    answering = asyncio.create_task(answer())
    await phone.arrived.wait()
    await settle()
    answering.cancel()
    await asyncio.wait([answering])
    assert asyncio.all_tasks() == before


async def test_an_edit_of_unknown_fate_is_repeated(tmp_path: Path, clock: Clock) -> None:
    model = SlowModel("one two")
    desk = Desk(tmp_path, model, Phone(), clock)
    desk.placeholder_seconds = 0
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("count"))
        await until(lambda: len(desk.screen.sent) == 1)
        desk.screen.failures = [ChannelUnavailable("timed out", certain=False)]
        model.go_on()
        await desk.router.settled(PLACE)
        desk.clock.at += 1_000
        leap(1)
        await until(lambda: len(desk.screen.sent) == 2)
    assert [outbound.text for outbound in desk.screen.sent] == ["…", "one two"]


async def test_where_the_placeholder_was_deleted_the_answer_is_said_anew(tmp_path: Path, clock: Clock) -> None:
    """People delete what looks stuck."""
    model = SlowModel("one two")
    desk = Desk(tmp_path, model, Phone(), clock)
    desk.placeholder_seconds = 0
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("count"))
        await until(lambda: len(desk.screen.sent) == 1)
        desk.screen.failures = [EditGone("message to edit not found")]
        model.go_on()
        await desk.router.settled(PLACE)
    assert [(outbound.text, outbound.edits) for outbound in desk.screen.sent] == [("…", None), ("one two", None)]


async def test_what_a_person_who_blocked_the_bot_missed_is_listed_as_dead(desk: Desk) -> None:
    """Nothing is tried for ever, and nothing vanishes: an admin sees it and can clear it away."""
    desk.rules = Rules(admins=frozenset({"7"}), allow=frozenset({"5"}))
    async with failing(desk, Blocked("bot was blocked by the user")):
        await desk.say("hello", person="5")
        await desk.say("/dead", person="7")
        await desk.say("/dead purge", person="7")
        await desk.say("/dead", person="7")
    listed, purged, empty = desk.screen.texts
    assert "console:5:-" in listed
    assert "blocked" in listed
    assert "1" in purged
    assert empty == "All messages were delivered."


async def test_a_group_that_got_another_id_goes_on_there(desk: Desk) -> None:
    """Telegram makes a supergroup of a group; its conversation and memory are one."""
    async with desk.running():
        await desk.say("I like tea", chat="-5")
        desk.screen.failures = [Moved("upgraded", chat="-1005")]
        await desk.router.on_inbound(desk.inbound("again", chat="-5"))
        await until(lambda: len(desk.screen.sent) == 2)
        assert desk.screen.sent[1].place == Place(channel="console", chat="-1005")
        await desk.say("and now", chat="-1005")
        assert await desk.rows("select key from sessions") == [("console:-1005:-",)]
    assert "I like tea" in str(desk.model.requests[-1].messages)


async def test_what_the_platform_says_of_a_move_is_enough(desk: Desk) -> None:
    """The service message usually comes before the first failed send."""
    async with desk.running():
        await desk.say("I like tea", chat="-5")
        await desk.router.on_moved("console", "-5", "-1005")
        assert await desk.rows("select key from sessions") == [("console:-1005:-",)]


async def test_messages_from_long_ago_get_one_note_and_wait_for_its_button(desk: Desk) -> None:
    """A burst of answers out of the blue helps nobody, and neither does silence."""
    async with desk.running():
        old = [desk.inbound(text) for text in ("first", "second")]
        desk.clock.move(minutes=121)
        for inbound in old:
            await desk.router.on_inbound(inbound)
        await desk.router.settled(old[0].place)
        [note] = desk.screen.sent
        assert desk.model.requests == []
        await desk.push(note.buttons[0].data)
        await until(lambda: len(desk.screen.sent) == 2)
    assert "first\nsecond" in desk.model.requests[0].messages[-1].content


async def test_what_lay_unanswered_for_long_at_the_start_waits_too(desk: Desk) -> None:
    """The process may have been down for a day with the message already in its inbox."""
    async with desk.running():
        inbound = desk.inbound("hello")
        await desk.memory.mailbox.receive(
            platform="console",
            bot_id="local",
            update_key="k",
            session_key=inbound.place.session_key,
            payload=inbound.to_json(),
        )
    desk.clock.move(days=1)
    for _ in range(2):
        async with desk.running():
            await desk.router.settled(inbound.place)
            await until(lambda: bool(desk.screen.sent))
    assert [len(outbound.buttons) for outbound in desk.screen.sent] == [1]
    assert desk.model.requests == []


def edited(inbound: Inbound, text: str, key: str) -> Inbound:
    fields = {name: getattr(inbound, name) for name in inbound.__slots__}
    return Inbound(**fields | {"text": text, "edited": True, "update_key": key})


async def test_an_edit_before_its_turn_replaces_the_text(tmp_path: Path, clock: Clock) -> None:
    model = SlowModel("fine", "fine too")
    desk = Desk(tmp_path, model, Phone(), clock)
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("busy"))
        said = desk.inbound("I like tee")
        await desk.router.on_inbound(said)
        await desk.router.on_inbound(edited(said, "I like tea", "e1"))
        model.go_on()
        await desk.router.settled(said.place)
        assert await desk.rows("select text from messages where role = 'user' order by id") == [
            ("busy",),
            ("I like tea",),
        ]


async def test_an_edit_after_its_turn_corrects_memory_and_asks_for_no_answer(desk: Desk) -> None:
    """A fact that was learned from the old words alone is no longer known."""
    async with desk.running():
        said = desk.inbound("I live in Lisbon")
        await desk.router.on_inbound(said)
        await desk.router.settled(said.place)
        memory = desk.memory
        await memory.learner.flush((await desk.context("ada")).session.id, "test")
        assert await desk.rows("select value from memories where kind = 'fact'") == [("Lisbon",)]
        await desk.router.on_inbound(edited(said, "I live in Porto", "e1"))
        await desk.router.settled(said.place)
        await memory.learner.flush((await desk.context("ada")).session.id, "test")
        assert await desk.rows("select value from memories where kind = 'fact'") == [("Porto",)]
        assert await desk.rows("select text from messages where role = 'user'") == [("I live in Porto",)]
    assert len(desk.screen.sent) == 1


async def test_a_flood_is_left_out_and_told_so_once(desk: Desk) -> None:
    """Ten at once get through; of the rest the person hears once, and it costs no turn."""
    desk.rules = Rules(allow=frozenset({"5"}))
    async with desk.running():
        for n in range(30):
            await desk.router.on_inbound(desk.inbound(f"spam {n}", person="5"))
        await desk.router.settled(desk.inbound("x", person="5").place)
        assert len([text for text in desk.screen.texts if "faster than I can listen" in text]) == 1
        assert await desk.rows("select count(*) from inbox") == [(10,)]


async def test_a_stranger_is_told_once_and_let_in_by_a_code(desk: Desk) -> None:
    desk.rules = Rules(admins=frozenset({"7"}))
    async with desk.running():
        await desk.say("/pair", person="7")
        for _ in range(2):
            await desk.say("hello", person="5")
        assert await desk.rows("select count(*) from inbox") == [(1,)]
        await desk.say("/start CDFG-2345", person="5")
        await desk.say("hello", person="5")
    code, stranger, welcome, answer = desk.screen.texts
    assert "CDFG-2345" in code
    assert "5" in stranger
    assert "Welcome" in welcome
    assert answer == "All right."


async def test_stop_ends_the_answer_that_is_being_made(tmp_path: Path, clock: Clock) -> None:
    """The chat is free at once, and the message is kept."""
    desk = Desk(tmp_path, SlowModel("never said"), Phone(), clock)
    async with desk.running():
        await desk.router.on_inbound(desk.inbound("hello"))
        await until(lambda: bool(desk.model.requests))
        await desk.say("/stop")
        assert await desk.rows("select state, error from turns") == [("failed", "stopped")]
    assert "Stopped. Your message is kept." in desk.screen.texts


async def test_a_stopped_answer_keeps_what_was_shown_and_says_so(tmp_path: Path, clock: Clock) -> None:
    """Code that was cut off is closed, so that the mark is not read as code."""
    model = SlowModel("Here:\n```py\nx = 1\n" + "y " * 500)
    desk = Desk(tmp_path, model, Phone(), clock)
    desk.placeholder_seconds = 0
    model.go_on(10)
    async with desk.running():
        heard = desk.inbound("hello")
        assert not await desk.router.stop(heard.place)
        await desk.router.on_inbound(heard)
        await until(lambda: any("y y" in text for text in desk.screen.revised))
        assert await desk.router.stop(heard.place)
        await desk.router.settled(heard.place)
        assert await desk.rows("select state, error from turns") == [("failed", "stopped")]
        ((kept,),) = await desk.rows("select text from messages where role = 'assistant'")
        assert str(kept).startswith("Here:\n```py") and str(kept).endswith(
            "[…]"
        )  # so that "go on" has something to go on from
    last = desk.screen.texts[-1]
    assert last.startswith("Here:\n```py\nx = 1\ny y") and last.endswith("y\n```\n\n(Stopped here.)")


async def test_a_question_is_answered_by_its_own_button_only(desk: Desk) -> None:
    """An old button must not say yes to a newer question."""
    async with desk.running():
        await desk.say("/remember my bike is red")
        await desk.say("/remember my car is blue")
        ids = [row[0] for row in await desk.rows("select short_id from memories order by id")]
        await desk.say(f"/forget {ids[0]}")
        first = desk.screen.sent[-1].buttons
        await desk.say(f"/forget {ids[1]}")
        second = desk.screen.sent[-1].buttons
        await desk.push(first[0].data)
        assert "no longer open" in desk.screen.texts[-1]
        await desk.push(second[0].data)
        assert desk.screen.texts[-1].startswith("Forgotten. ")
        assert [row[0] for row in await desk.rows("select short_id from memories")] == [ids[0]]


async def test_admin_commands_are_unknown_to_everybody_else(desk: Desk) -> None:
    desk.rules = Rules(allow=frozenset({"5"}), admins=frozenset({"7"}))
    async with desk.running():
        await desk.say("/allow 9", person="5")
        await desk.say("/allow 9", person="7")
        await desk.say("hello", person="9")
    refused, done, answer = desk.screen.texts
    assert "There is no command /allow" in refused
    assert done == "9 can talk to me now."
    assert answer == "All right."


async def test_the_first_answer_of_a_chat_is_followed_by_a_word_about_memory(desk: Desk) -> None:
    desk.screen.capabilities = Capabilities(resend="never", burst_seconds=0, introduces=True)
    async with desk.running():
        await desk.say("hello")
        await desk.say("hello again")
        await desk.say("hello all", chat="-9")
    private, again, group = desk.screen.texts
    assert "timezone" in private
    assert again == "All right."
    assert "for this group only" in group


async def test_whoever_gives_their_name_at_once_is_not_asked_for_it(desk: Desk) -> None:
    """A bot that asks for what it was just told has not listened."""
    desk.screen.capabilities = Capabilities(resend="never", burst_seconds=0, introduces=True)
    async with desk.running():
        await desk.say("hi, I'm Priya and I live in Leeds")
    (answer,) = desk.screen.texts
    assert "timezone" in answer and "what to call you" not in answer


async def test_a_row_is_tried_for_six_hours_and_no_longer(desk: Desk) -> None:
    """An answer from yesterday helps nobody; it is listed as dead."""
    async with failing(desk, ChannelUnavailable("down")):
        await desk.say("hello")
        desk.screen.failures = [ChannelUnavailable("down")]
        desk.clock.move(minutes=361)
        store = desk.stores["assistant"]
        store.delivery.wake("console:ada:-")
        await store.delivery.settled("console:ada:-")
        assert await desk.rows("select state, kind from outbox order by id") == [
            ("dead", "message"),
            ("sent", "notice"),
        ]
    assert "could not be shown" in desk.screen.texts[0]


async def test_a_refusal_for_good_is_dead_and_the_next_answer_goes_out(desk: Desk) -> None:
    async with failing(desk, ChannelError("message is too long")):
        await desk.say("hello")
        await desk.say("hello again")
        assert await desk.rows("select state from outbox where kind = 'message' order by id") == [("dead",), ("sent",)]
    assert "could not be shown" in desk.screen.texts[0]


@pytest.mark.sqlite("limits the pages of its file")
async def test_a_full_disk_does_not_use_up_what_a_person_may_say(desk: Desk) -> None:
    """The platform gives the same update again and again until it is taken: that is one message."""
    desk.rules = Rules(allow=frozenset({"5"}))
    async with desk.running():
        await desk.say("first", person="5")
        # A text would be shortened.
        file = Attachment(kind="other", reference="x" * 80_000)
        said = replace(desk.inbound("tea", person="5"), attachments=(file,))
        database = desk.memory.database
        pages = int((await desk.rows("pragma page_count"))[0][0])  # type: ignore[call-overload]
        await _limit_pages(database, pages)
        refused = 0
        for _ in range(40):
            try:
                await desk.router.on_inbound(said)
            except NotTaken:
                refused += 1
        assert refused == 40
        await _limit_pages(database, 1_000_000)
        await desk.router.on_inbound(said)
        await desk.router.settled(said.place)
        assert len(await desk.rows("select id from inbox where state = 'done'")) >= 2


async def _limit_pages(database: Database, pages: int) -> None:
    await database.write(lambda tx: tx.all(f"pragma max_page_count = {pages}"))


async def test_a_note_about_late_messages_is_given_in_each_run_that_needs_one(desk: Desk) -> None:
    """Somebody who ignored the first one must not be met with silence ever after."""
    for _ in range(2):
        async with desk.running():
            late = desk.inbound("hello")
            desk.clock.move(minutes=121)
            await desk.router.on_inbound(late)
            await desk.router.settled(late.place)
    assert len(desk.screen.sent) == 2
    desk.clock.move(days=8)
    async with desk.running():
        assert await desk.rows("select distinct state, payload from inbox") == [("failed", "")]


async def test_nothing_can_be_edited_into_a_command(desk: Desk) -> None:
    """Edits have no rights, also those of an admin."""
    desk.rules = Rules(admins=frozenset({"7"}))
    async with desk.running():
        late = desk.inbound("hi", person="7")
        desk.clock.move(minutes=121)
        await desk.router.on_inbound(late)
        await desk.router.on_inbound(edited(late, "/allow 9", "e1"))
        await desk.router.settled(late.place)
        pressed = desk.press("now", chat="7")
        await desk.router.on_inbound(
            Inbound(**{n: getattr(pressed, n) for n in pressed.__slots__} | {"author_id": "7"})
        )
        await desk.router.settled(pressed.place)
        assert await desk.rows("select * from access") == []
        assert await desk.rows("select text from messages where role = 'user'") == [("hi",)]


async def test_a_question_is_settled_once(desk: Desk) -> None:
    async with desk.running():
        await desk.say("/remember my bike is red")
        [(short_id,)] = await desk.rows("select short_id from memories")
        await desk.say(f"/forget {short_id}")
        words, _memory_only, no = desk.screen.sent[-1].buttons
        await asyncio.gather(desk.push(words.data), desk.push(no.data))
        remaining = await desk.rows("select short_id from memories")
    # The one that comes too late may be told so first.
    outcome, over = sorted(desk.screen.texts[-2:], key=lambda text: "no longer open" in text)
    assert "no longer open" in over and "no longer open" not in outcome
    assert ("I forgot nothing." in outcome) == bool(remaining)


async def test_what_waits_in_line_is_stopped_with_the_answer(tmp_path: Path, clock: Clock) -> None:
    """Whoever says stop does not want the next five answers either."""
    model = SlowModel("never said")
    desk = Desk(tmp_path, model, Phone(), clock)
    async with desk.running():
        for text in ("one", "two", "three"):
            await desk.router.on_inbound(desk.inbound(text, chat="-5", person="ada" if text != "two" else "bob"))
        await until(lambda: bool(desk.model.requests))
        await desk.router.on_inbound(desk.inbound("/stop", chat="-5"))
        await until(lambda: len(desk.model.requests) == 2)
        assert await desk.rows("select error from inbox where error is not null") == [("stopped",), ("stopped",)]
        assert "two" in desk.model.requests[1].messages[-1].content
        model.go_on()


async def test_words_edited_away_take_their_memory_with_them_and_leave_what_followed(desk: Desk) -> None:
    """Paris, then Rome, then Oslo; Rome was a mistake: Oslo holds, and Paris ended when Rome did."""
    async with desk.running():
        memory = desk.memory
        said = []
        for city in ("Paris", "Rome", "Oslo"):
            desk.clock.move(minutes=1)
            said.append(desk.inbound(f"I live in {city}"))
            await desk.router.on_inbound(said[-1])
            await desk.router.settled(said[-1].place)
            await memory.learner.flush((await desk.context("ada")).session.id, "test")
        await desk.router.on_inbound(edited(said[1], "Never mind.", "e1"))
        await desk.router.settled(said[1].place)
        live = await desk.rows("select value from memories where kind = 'fact' and valid_until is null")
        assert live == [("Oslo",)]
        assert await desk.rows("select value from memories where value = 'Rome'") == []


async def test_a_row_that_can_not_be_read_is_given_up_and_those_behind_it_are_shown(desk: Desk) -> None:
    """After several tries with growing waits. Admins find it among what could not be delivered."""
    key = "console:ada:-"
    async with failing(desk, ChannelUnavailable("slow down", retry_after=3_600)):
        for _ in range(2):
            await desk.say("hello")
        store = desk.stores["assistant"]
        await store.memory.database.write(
            lambda tx: tx.run("update outbox set not_before = 0, buttons = 'damaged' where id = 1")
        )
        waits: list[float] = []
        for _ in range(4):
            with capture_logs() as logs:
                store.delivery.wake(key)
                await store.delivery.settled(key)
            waits += [one["again_in"] for one in logs if one["event"] == "send.unsaved"]
        assert waits == [30, 60, 120, 240] and desk.screen.sent == []
        store.delivery.wake(key)
        await until(lambda: desk.screen.texts == ["All right."])
        await store.delivery.settled(key)
        assert await desk.rows("select state, error from outbox order by id") == [("dead", "broken"), ("sent", None)]
        [letter] = await store.memory.mailbox.dead("console", limit=9)
        assert (letter.id, letter.error) == (1, "broken")


async def test_a_row_that_was_shown_is_not_shown_again_whatever_kept_it_from_being_recorded(desk: Desk) -> None:
    """Here the row behind it can't be read: the record of the first and the taking of the next are one step."""
    key = "console:ada:-"
    async with failing(desk, ChannelUnavailable("slow down", retry_after=3_600)):
        for _ in range(2):
            await desk.say("hello")
        store = desk.stores["assistant"]
        await store.memory.database.write(
            lambda tx: tx.run("update outbox set not_before = 0, buttons = case when id = 2 then 'damaged' else '' end")
        )
        for _ in range(3):
            store.delivery.wake(key)
            await store.delivery.settled(key)
        assert desk.screen.texts == ["All right."]
        assert await desk.rows("select state from outbox order by id") == [("sent",), ("pending",)]
