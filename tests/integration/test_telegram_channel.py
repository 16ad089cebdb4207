"""The Telegram channel with the real aiogram against a Bot API server on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import traceback
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import trustme

from channels.base import (
    Blocked,
    Button,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    CommandSpec,
    EditGone,
    Inbound,
    Moved,
    Muted,
    NotTaken,
    Place,
    PlaceGone,
)
from channels.telegram import TelegramChannel, TelegramRateLimited, Wire, probe
from tests.kit.fakes import Clock
from tests.kit.patience import SECONDS, leap, limit, settle
from tests.kit.telegram_bot import (
    ADA,
    BOT,
    GROUP,
    Host,
    Sleep,
    bot,
    given_up,
    known,
    milliseconds,
    place,
    row,
    running,
    shown,
)
from tests.platforms.telegram import Control, serving


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving() as control:
        yield control


@pytest.fixture
async def host(telegram: Control) -> AsyncIterator[Host]:
    """A host that a channel with the usual options tells what is said."""
    async with running(bot(telegram), Host()) as told:
        yield told


# Incoming.


async def test_private_message_comes_with_all_the_gateway_goes_by(telegram: Control, host: Host) -> None:
    """Policy, sessions and memory are decided by these fields."""
    said = await telegram.say("hello there", user=ADA, name="Ada", sent_at=1_700_000_000)
    [inbound] = await host.hears()
    assert inbound == Inbound(
        channel="telegram",
        platform="telegram",
        bot_id=telegram.token.partition(":")[0],
        update_key=f"{said.update_id}-7-{said.message_id}",
        chat=str(ADA),
        chat_kind="private",
        author_id=str(ADA),
        author_name="Ada",
        message_id=str(said.message_id),
        text="hello there",
        sent_at=1_700_000_000_000,
    )


async def test_message_without_words_comes_with_an_empty_text(telegram: Control, host: Host) -> None:
    """A picture or a sticker alone is said too; a caption is the text."""
    await telegram.say(user=ADA, sticker=b"RIFF")
    await telegram.say("look at this", user=ADA, photo=b"\xff\xd8")
    assert [inbound.text for inbound in await host.hears(2)] == ["", "look at this"]


async def test_what_telegram_itself_says_is_no_message(telegram: Control, host: Host) -> None:
    """A new title or a pinned message must not be answered."""
    chat = {"id": GROUP, "type": "supergroup", "title": "G"}
    ada = {"id": ADA, "is_bot": False, "first_name": "Ada"}
    message = {"message_id": 90, "date": 1_700_000_000, "chat": chat, "from": ada, "new_chat_title": "H"}
    await telegram.inject({"message": message})
    await telegram.say("after it", user=ADA)
    assert [inbound.text for inbound in await host.hears()] == ["after it"]


async def test_update_is_confirmed_only_after_it_was_taken(telegram: Control) -> None:
    """A process killed before its commit must get the message again."""
    host = Host(gate=asyncio.Event())
    said = await telegram.say("keep this", user=ADA)
    async with running(bot(telegram), host):
        await host.hears()
    host.gate = None
    async with running(bot(telegram), host):
        await host.hears(2)
        await telegram.wait(delivered=True)
    assert [inbound.update_key for inbound in host.said] == [f"{said.update_id}-7-{said.message_id}"] * 2


async def test_message_that_was_not_taken_comes_again_until_it_is(telegram: Control) -> None:
    """A full disk must not cost a message, and must be seen from outside."""
    sleep = Sleep()
    host = Host(refusals=[NotTaken("the disk is full"), NotTaken("the disk is full")])
    channel = bot(telegram, sleep=sleep)
    await telegram.say("first", user=ADA)
    await telegram.say("second", user=ADA)
    async with running(channel, host):
        await host.hears(1)
        await asyncio.sleep(0)
        assert channel.health().trouble == "the disk is full"
        await host.hears(4)
        await telegram.wait(delivered=True)
        assert channel.health().trouble == ""
    assert [inbound.text for inbound in host.said] == ["first", "first", "first", "second"]
    assert sleep.waits[:2] == [1, 2]


async def test_update_that_cannot_be_read_holds_up_no_other(
    telegram: Control, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kind of message that is newer than the library must not silence the bot, nor reach the log."""
    await telegram.say("before", user=ADA)
    await telegram.inject({"message": {"message_id": "first", "text": "a private word"}})
    await telegram.inject({"something_new": {"text": "a private word"}})
    await telegram.say("after", user=ADA)
    async with running(bot(telegram), Host()) as host:
        assert [inbound.text for inbound in await host.hears(2)] == ["before", "after"]
        await telegram.wait(delivered=True)
    log = capsys.readouterr().out
    assert "channel.unread" in log
    assert "private word" not in log


async def test_ids_of_updates_may_start_again_lower(telegram: Control, host: Host) -> None:
    """After a week without updates Telegram chooses a new, perhaps lower id."""
    await telegram.number_updates(900_000)
    await telegram.say("before the quiet week", user=ADA)
    await host.hears(1)
    await telegram.wait(delivered=True, polling=True)
    polls = (await telegram.state())["polls"]["count"]
    await telegram.wait(method="getUpdates", count=polls + 1)  # an empty answer: all before is confirmed
    await telegram.number_updates(17)
    await telegram.say("after the quiet week", user=ADA)
    assert [inbound.update_key.split("-")[0] for inbound in await host.hears(2)] == ["900000", "17"]
    await telegram.wait(delivered=True)


async def test_offset_is_given_up_once_it_has_confirmed(telegram: Control) -> None:
    """An update with a lower id that comes between two polls would be confirmed by it, unseen."""
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        asleep.set()
        await awake.wait()

    await telegram.number_updates(900_000)
    await telegram.say("before the quiet week", user=ADA)
    async with running(bot(telegram, sleep=sleep), Host()) as host:
        await host.hears(1)
        await telegram.wait(delivered=True, polling=True)
        await telegram.fault("status", method="getUpdates")
        async with limit():
            await asleep.wait()
        await telegram.number_updates(899_995)
        await telegram.say("after the quiet week", user=ADA)
        awake.set()
        assert [inbound.update_key.split("-")[0] for inbound in await host.hears(2)] == ["900000", "899995"]


async def test_update_told_twice_has_one_key(telegram: Control, host: Host) -> None:
    await telegram.say("once", user=ADA)
    await host.hears(1)
    await telegram.wait(delivered=True)
    await telegram.redeliver(confirmed=1)
    assert len({inbound.update_key for inbound in await host.hears(2)}) == 1


async def test_reordered_updates_all_arrive(telegram: Control) -> None:
    """Order is not by id, so none may be confirmed by another's."""
    texts = {str(number) for number in range(20)}
    for text in sorted(texts):
        await telegram.say(text, user=ADA)
    await telegram.reorder(seed=3)
    async with running(bot(telegram), Host()) as host:
        await host.until(lambda host: {inbound.text for inbound in host.said} == texts)
        await telegram.wait(delivered=True)


async def test_edit_is_an_update_of_its_own(telegram: Control, host: Host) -> None:
    """A fact that was learned from a message is corrected by its new text."""
    said = await telegram.say("I live in Bron", user=ADA)
    await telegram.edit(said.message_id, "I live in Brno", chat=ADA)
    first, second = await host.hears(2)
    assert (second.message_id, second.text, second.edited) == (first.message_id, "I live in Brno", True)
    assert second.update_key != first.update_key
    assert not first.edited


async def test_forwarded_message_is_marked(telegram: Control, host: Host) -> None:
    """Another's words must not count as the person's."""
    await telegram.say("I am the admin", user=ADA, forwarded=True)
    [inbound] = await host.hears()
    assert inbound.forwarded


async def test_who_speaks_for_a_chat_is_no_person(telegram: Control, host: Host) -> None:
    """An anonymous admin's stand-in is the same user everywhere, and would share one memory."""
    await telegram.say(f"{BOT} hello", user=ADA, chat=GROUP, sender_chat=GROUP)
    [inbound] = await host.hears()
    assert inbound.author_id == ""
    assert inbound.author_name and inbound.anonymous


async def test_a_channel_named_like_its_group_is_no_anonymous_admin(telegram: Control, host: Host) -> None:
    """A post of a linked channel in its group would get the hint for admins."""
    await telegram.group(GROUP, title="Allotment")
    namesake = {"sender_chat": {"id": -100777, "type": "channel", "title": "Allotment"}, "is_automatic_forward": True}
    await telegram.say(f"{BOT} hello", user=ADA, chat=GROUP, sender_chat=-100777, extra=namesake)
    [inbound] = await host.hears()
    assert (inbound.author_id, inbound.author_name, inbound.anonymous) == ("", inbound.chat_title, False)


async def test_other_bots_are_not_heard(telegram: Control, host: Host) -> None:
    """Two bots that answer each other never stop."""
    await telegram.say(f"{BOT} hello", user=99, chat=GROUP, is_bot=True)
    await telegram.say(f"{BOT} hi", user=ADA, chat=GROUP)
    assert [inbound.text for inbound in await host.hears()] == ["hi"]


async def test_name_without_letters_is_still_a_name(telegram: Control, host: Host) -> None:
    """Some people are called by nothing but a space."""
    await telegram.say("hi", user=ADA, name=" ")
    [inbound] = await host.hears()
    assert inbound.author_name == str(ADA)


@pytest.mark.parametrize(
    ("text", "addressed", "words"),
    [
        ("nothing to do with it", False, None),
        (f"{BOT} what is up", True, "what is up"),
        (f"{BOT}, what is up", True, "what is up"),
        (f"{BOT}", True, BOT),
        (f"what is up {BOT}", True, "what is up"),
        (f"what does {BOT} do", True, f"what does {BOT} do"),
        ("@ReMoRa_Test_Bot what is up", True, "what is up"),
        (f"\U0001f41f\U0001f41f what is up {BOT}", True, "\U0001f41f\U0001f41f what is up"),
        (f"{BOT}2 what is up", False, None),
        (f"x{BOT} what is up", False, None),
        ("@remora_test what is up", False, None),
        ("remora_test_bot what is up", False, None),
        ("/help", True, "/help"),
        ("/weather", False, None),  # another bot's
        ("/weather in Ulm", False, None),
        (f"/help{BOT}", True, "/help"),
        (f"/help{BOT} me", True, "/help me"),
        ("/help@another_bot", False, None),
        (f"/help@another_bot {BOT} me", False, None),
        (f"try /help{BOT}", True, f"try /help{BOT}"),
        ("try /help", False, None),
    ],
)
async def test_group_message_is_for_the_bot_when_it_says_so(
    telegram: Control, host: Host, text: str, addressed: bool, words: str | None
) -> None:
    """A bot that takes others' talk for its own is thrown out; one that misses its name is useless."""
    await telegram.say(text, user=ADA, chat=GROUP, title="Fish")
    [inbound] = await host.hears()
    assert (inbound.addressed, inbound.text) == (addressed, text if words is None else words)
    assert (inbound.chat, inbound.chat_kind, inbound.chat_title) == (str(GROUP), "group", "Fish")


async def test_mention_is_what_telegram_marks_as_one(telegram: Control, host: Host) -> None:
    """The name inside code or a link is talk about the bot."""
    code = {"type": "code", "offset": 0, "length": len(BOT)}
    await telegram.say(f"{BOT} hello", user=ADA, chat=GROUP, entities=[code])
    user = {"id": 4242, "is_bot": True, "first_name": "Remora"}
    named = {"type": "text_mention", "offset": 0, "length": 6, "user": user}
    await telegram.say("Remora hello", user=ADA, chat=GROUP, entities=[named])
    await telegram.say("Remora hello", user=ADA, chat=GROUP, entities=[{**named, "user": {**user, "id": 5}}])
    assert [inbound.addressed for inbound in await host.hears(3)] == [False, True, False]


async def test_reply_to_the_bot_is_for_the_bot(telegram: Control) -> None:
    """Nobody repeats the name in a conversation; a reply to somebody else is not for us."""
    channel = bot(telegram)
    async with running(channel, Host()) as host:
        other = await telegram.say("I am here", user=8, chat=GROUP)
        mine = await channel.send(row("I am here too", place(GROUP)))
        await telegram.say("good", user=ADA, chat=GROUP, reply_to=int(mine))
        await telegram.say("bad", user=ADA, chat=GROUP, reply_to=other.message_id)
        heard = await host.hears(3)
    assert [(inbound.text, inbound.addressed, inbound.reply_to) for inbound in heard[1:]] == [
        ("good", True, mine),
        ("bad", False, str(other.message_id)),
    ]


async def test_without_mention_all_of_a_group_is_for_the_bot(telegram: Control) -> None:
    """In a group of two a name is not needed; another bot's command is still another's."""
    await telegram.say("anything", user=ADA, chat=GROUP)
    await telegram.say("/help@another_bot", user=ADA, chat=GROUP)
    async with running(bot(telegram, mention=False), Host()) as host:
        assert [inbound.addressed for inbound in await host.hears(2)] == [True, False]


async def test_button_press_comes_and_is_answered_when_it_is_taken(telegram: Control) -> None:
    """Until it is answered the button shows that it waits."""
    channel = bot(telegram)
    host = Host(refusals=[NotTaken("the disk is full")])
    await known(telegram)
    message = await channel.send(row("really?", buttons=(Button(label="Yes", data="q:1:yes"),)))
    async with running(bot(telegram, sleep=Sleep()), host):
        await host.until(lambda host: [one.text for one in host.said].count("hello") == 2)
        pressed = await telegram.press(int(message), "q:1:yes", chat=ADA, user=ADA)
        await telegram.wait(answered=pressed)
    inbound = host.said[-1]
    assert (inbound.pressed, inbound.text, inbound.message_id) == ("q:1:yes", "", message)
    assert (inbound.author_id, inbound.chat, inbound.addressed) == (str(ADA), str(ADA), True)


async def test_button_under_a_message_too_old_to_be_shown_works(telegram: Control, host: Host) -> None:
    """A question may be answered days later; then Telegram tells only chat and id."""
    await known(telegram)
    message = await bot(telegram).send(row("really?", buttons=(Button(label="Yes", data="y"),)))
    pressed = await telegram.press(int(message), "y", chat=ADA, user=ADA, inaccessible=True)
    await telegram.wait(answered=pressed)
    assert (host.said[-1].pressed, host.said[-1].message_id, host.said[-1].chat) == ("y", message, str(ADA))


async def test_group_that_became_a_supergroup_is_told(telegram: Control, host: Host) -> None:
    await telegram.say("hello", user=ADA, chat=-55)
    new = await telegram.migrate(-55)
    await host.until(lambda host: bool(host.moved))
    assert host.moved == [("telegram", "-55", str(new))]


async def test_presence_is_told(telegram: Control, host: Host) -> None:
    """Who has blocked the bot gets no more reminders."""
    await known(telegram)
    await telegram.say("hello", user=ADA, chat=GROUP)
    await telegram.member(ADA, "block", user=ADA)
    await telegram.member(ADA, "unblock", user=ADA)
    await telegram.member(GROUP, "kick", user=ADA)
    await telegram.member(GROUP, "add", user=ADA)
    await host.until(lambda host: len(host.presence) >= 4)
    assert host.presence == [(str(ADA), False), (str(ADA), True), (str(GROUP), False), (str(GROUP), True)]


# Topics.


async def test_topic_is_a_thread_and_its_answer_lands_there(telegram: Control) -> None:
    """An answer in the wrong topic is read by the wrong people."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    threads = [await telegram.topic(GROUP, name) for name in ("one", "two")]
    async with running(channel, Host()) as host:
        for thread in threads:
            clock.move(minutes=1)
            await telegram.say(f"{BOT} hello", user=ADA, chat=GROUP, thread=thread)
            inbound = (await host.hears(len(host.said) + 1))[-1]
            assert (inbound.thread, inbound.reply_to, inbound.addressed) == (str(thread), None, True)
            await channel.typing(inbound.place)
            await channel.send(row("hello", inbound.place, reply_to=inbound.message_id))
            message = await shown(telegram, GROUP)
            assert (message["message_thread_id"], message["is_topic_message"]) == (thread, True)
    assert [action["thread"] for action in (await telegram.state())["actions"]] == threads


async def test_unaddressed_talk_in_a_topic_is_no_reply_to_the_bot_that_opened_it(telegram: Control, host: Host) -> None:
    """All of a topic stands as a reply to the message that opened it, which may have been the bot's."""
    thread = await telegram.topic(GROUP, user=4242)
    await telegram.say("nothing for bots", user=ADA, chat=GROUP, thread=thread)
    assert [inbound.addressed for inbound in await host.hears()] == [False]


async def test_general_topic_is_no_thread(telegram: Control) -> None:
    """Telegram refuses messages to General by its id."""
    channel = bot(telegram)
    async with running(channel, Host()) as host:
        await telegram.topic(GROUP)
        said = await telegram.say(f"{BOT} hello", user=ADA, chat=GROUP)
        await telegram.say(f"{BOT} a reply", user=ADA, chat=GROUP, reply_to=said.message_id)
        assert [inbound.thread for inbound in await host.hears(2)] == [None, None]
        await channel.send(row("hello", place(GROUP, 1)))
        assert "message_thread_id" not in await shown(telegram, GROUP)


async def test_reply_outside_of_topics_is_in_no_thread(telegram: Control) -> None:
    """A chain of replies carries a thread id that is no topic's; answering to it fails."""
    channel = bot(telegram)
    async with running(channel, Host()) as host:
        said = await telegram.say("first", user=ADA, chat=GROUP)
        reply = await telegram.say(f"{BOT} second", user=ADA, chat=GROUP, reply_to=said.message_id)
        inbound = (await host.hears(2))[-1]
        assert inbound.thread is None
        await channel.send(row("third", inbound.place, reply_to=str(reply.message_id)))
        assert (await shown(telegram, GROUP))["reply_to_message"]["message_id"] == reply.message_id


@pytest.mark.parametrize("deed", ["close", "delete"])
async def test_answer_to_a_topic_that_is_gone_is_shown_nowhere(telegram: Control, deed: str) -> None:
    """A question that was asked in a closed circle must not be answered before all."""
    channel = bot(telegram)
    thread = await telegram.topic(GROUP)
    await (telegram.close_topic if deed == "close" else telegram.delete_topic)(GROUP, thread)
    with pytest.raises(Muted if deed == "close" else PlaceGone):
        await channel.send(row("between us", place(GROUP, thread)))
    assert await telegram.texts(GROUP) == []


async def test_thread_of_a_private_chat_that_is_refused_is_left_out(telegram: Control) -> None:
    """Telegram has refused such threads at times; it is the same person who reads the answer, and sees to what."""
    thread = await telegram.topic(ADA, "Trips", user=ADA)
    said = await telegram.say("where to?", user=ADA, thread=thread)
    answer = row("to Rome", place(ADA, thread), reply_to=str(said.message_id))
    await bot(telegram).send(answer)
    within = await shown(telegram)
    assert within["message_thread_id"] == thread and within["reply_to_message"]["message_id"] == thread
    await telegram.delete_topic(ADA, thread)
    await bot(telegram).send(answer)
    assert "message_thread_id" not in (outside := await shown(telegram))
    assert (outside["text"], outside.get("reply_to_message")) == ("to Rome", None)  # the question went with its topic


async def test_answer_in_a_group_whose_topics_were_switched_off_shows_what_it_answers(telegram: Control) -> None:
    """Telegram ignores the topic's number then, and all topics stand in one chat."""
    thread = await telegram.topic(GROUP)
    said = await telegram.say("when?", user=ADA, chat=GROUP, thread=thread)
    await telegram.group(GROUP, forum=False)
    await bot(telegram).send(row("at nine", place(GROUP, thread), reply_to=str(said.message_id)))
    message = await shown(telegram, GROUP)
    assert (message["reply_to_message"]["text"], message.get("is_topic_message")) == ("when?", None)


async def test_answer_that_is_refused_is_shown_as_bare_words(telegram: Control) -> None:
    """Better the words without buttons and marks than nothing."""
    said = await telegram.say("hello", user=ADA)
    await telegram.fault("refuse", method="sendMessage", status=400, description="Bad Request: HOLOGRAM_REQUIRED")
    bold = json.dumps([{"type": "bold", "offset": 0, "length": 2}])
    buttons = (Button(label="yes", data="y"),)
    await bot(telegram).send(row("hi", markup=bold, reply_to=str(said.message_id), buttons=buttons))
    message = await shown(telegram)
    assert message["text"] == "hi"
    assert not {"entities", "reply_markup", "reply_to_message"} & message.keys()


# Outgoing.


async def test_message_is_shown_with_its_formatting_and_nothing_else(telegram: Control) -> None:
    """Entities say what is bold; no text is read as formatting, and links are not fetched."""
    said = await telegram.say("hello", user=ADA)
    bold = [{"type": "bold", "offset": 0, "length": 4}]
    markup = json.dumps(bold, separators=(",", ":"))
    reference = await bot(telegram).send(
        row("bold <b>_x_</b> https://example.org", markup=markup, reply_to=str(said.message_id))
    )
    message = await shown(telegram)
    assert (str(message["message_id"]), message["text"]) == (reference, "bold <b>_x_</b> https://example.org")
    assert message["entities"] == bold
    assert message["link_preview_options"] == {"is_disabled": True}
    assert message["reply_to_message"]["message_id"] == said.message_id


async def test_answer_to_a_deleted_message_is_still_shown(telegram: Control) -> None:
    """The person took the question back, and may wait for the answer all the same."""
    said = await telegram.say("hello", user=ADA)
    await telegram.delete(said.message_id, chat=ADA)
    await bot(telegram).send(row("hi", reply_to=str(said.message_id)))
    assert await telegram.texts(ADA) == ["hi"]


async def test_formatting_that_is_refused_costs_only_the_formatting(telegram: Control) -> None:
    """Better plain words than none."""
    await known(telegram)
    beyond = json.dumps([{"type": "bold", "offset": 90, "length": 4}])
    await bot(telegram).send(row("plain", markup=beyond))
    assert (await shown(telegram))["text"] == "plain"
    await bot(telegram).send(row("plainer", markup="no JSON"))
    assert await telegram.texts(ADA) == ["plain", "plainer"]


async def test_names_in_code_call_nobody_when_its_formatting_is_refused(telegram: Control) -> None:
    """As code they did not; as plain words they would ring that person."""
    await known(telegram)
    code = {"type": "code", "offset": 4, "length": 6}
    beyond = {"type": "bold", "offset": 90, "length": 4}
    await bot(telegram).send(row("see @cache, ada@example.org", markup=json.dumps([code])))
    await bot(telegram).send(row("see @cache, ada@example.org", markup=json.dumps([code, beyond])))
    assert await telegram.texts(ADA) == ["see @cache, ada@example.org", "see ＠cache, ada@example.org"]


async def test_edit_of_what_is_gone_tells_so(telegram: Control) -> None:
    """Then saying it anew is safe."""
    said = await telegram.say("mine", user=ADA)
    channel = bot(telegram)
    first = await channel.send(row("…"))
    await telegram.delete(int(first), chat=ADA)
    for reference in (first, str(said.message_id), "not-an-id"):
        with pytest.raises(EditGone):
            await channel.send(row("the answer", edits=reference))


@pytest.mark.parametrize(
    ("status", "description", "expected"),
    [
        (403, "Forbidden: bot was blocked by the user", Blocked),
        (403, "Forbidden: bot was kicked from the supergroup chat", Blocked),
        (403, "Forbidden: user is deactivated", Blocked),
        (403, "Forbidden: bot can't initiate conversation with a user", Blocked),
        (400, "Bad Request: chat not found", Blocked),
        (400, "Bad Request: TOPIC_CLOSED", Muted),
        (400, "Bad Request: message thread not found", PlaceGone),
        (400, "Bad Request: message is too long", ChannelError),
        (400, "Bad Request: not enough rights to send text messages to the chat", Muted),
        (400, "Bad Request: BUTTON_DATA_INVALID", ChannelError),
        (401, "Unauthorized", ChannelUnavailable),
        (404, "Not Found", ChannelUnavailable),
        (500, "Internal Server Error", ChannelUnavailable),
    ],
)
async def test_refusal_tells_what_to_do_next(
    telegram: Control, status: int, description: str, expected: type[ChannelError]
) -> None:
    """Delivery gives up, waits or forgets the chat by the kind of the error."""
    await telegram.say("hello", user=ADA, chat=GROUP)
    await telegram.fault("refuse", method="sendMessage", status=status, description=description)
    with pytest.raises(ChannelError) as caught:
        await bot(telegram).send(row("hello", place(GROUP)))
    assert type(caught.value) is expected
    assert caught.value.certain == (status < 500)
    assert description in str(caught.value)


async def test_real_refusals_are_known(telegram: Control) -> None:
    await known(telegram)
    channel = bot(telegram)
    with pytest.raises(ChannelError, match="too long") as caught:
        await channel.send(row("x" * 4_097))
    assert type(caught.value) is ChannelError
    await telegram.member(ADA, "block", user=ADA)
    with pytest.raises(Blocked):
        await channel.send(row("hello"))
    with pytest.raises(Blocked):
        await channel.send(row("hello", place(12_345)))
    await telegram.say("hello", user=ADA, chat=-55)
    new = await telegram.migrate(-55)
    with pytest.raises(Moved) as moved:
        await channel.send(row("hello", place(-55)))
    assert moved.value.chat == str(new)
    with pytest.raises(ChannelError, match="no Telegram chat"):
        await channel.send(row("hello", Place(channel="telegram", chat="somewhere")))


@pytest.mark.parametrize(
    ("do", "at"),
    [
        ("hang", "before effect"),
        ("hang", "after effect"),
        ("reset", "before effect"),
        ("reset", "after effect"),
        ("close", "after effect"),
        ("cut", "after effect"),
        ("garbage", "after effect"),
        ("empty", "after effect"),
        ("status", "after effect"),
    ],
)
async def test_request_that_may_have_been_read_is_in_doubt(telegram: Control, do: Any, at: Any) -> None:
    """Telegram knows no way to send a message once only; a guess would lose it or double it."""
    await known(telegram)
    await telegram.fault(do, at=at, method="sendMessage")
    with pytest.raises(ChannelUnavailable) as caught:
        await given_up(telegram, "sendMessage", bot(telegram).send(row("hello")))
    assert not caught.value.certain
    requests = await telegram.requests("sendMessage")
    assert len(requests) == 1
    await telegram.heal()


async def test_server_that_is_not_there_leaves_no_doubt() -> None:
    """While the network is down every answer must wait, and none become a question to the person."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    channel = TelegramChannel(id="telegram", wire=Wire("1:x", url), now=milliseconds)
    with pytest.raises(ChannelUnavailable, match="can't be reached") as caught:
        await channel.send(row("hello"))
    assert caught.value.certain
    unknown = TelegramChannel(id="telegram", wire=Wire("1:x", "http://no-such-host.invalid"), now=milliseconds)
    with pytest.raises(ChannelUnavailable, match="can't be reached") as caught:
        await unknown.send(row("hello"))
    assert caught.value.certain


async def test_server_with_a_foreign_certificate_leaves_no_doubt() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        channel = TelegramChannel(id="telegram", wire=Wire("1:x", url), now=milliseconds)
        with pytest.raises(ChannelUnavailable) as caught:
            await channel.send(row("hello"))
    assert caught.value.certain


# Limits.


async def test_wish_to_wait_is_kept_to_the_second(telegram: Control) -> None:
    """Requests inside a retry_after make Telegram's bans longer."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    await known(telegram)
    first = await channel.send(row("…"))
    await telegram.fault("refuse", method="sendMessage", status=429, description="Too Many Requests: retry after 37")
    with pytest.raises(TelegramRateLimited):
        await channel.send(row("hello"))
    clock.move(minutes=1)
    await telegram.fault("flood", method="sendMessage", retry_after=37)
    with pytest.raises(TelegramRateLimited) as caught:
        await channel.send(row("hello"))
    assert (caught.value.certain, caught.value.retry_after, caught.value.code) == (True, 37, "rate_limited")
    asked = len(await telegram.requests())
    clock.move(minutes=36.9 / 60)
    with pytest.raises(TelegramRateLimited) as caught:
        await channel.send(row("hello"))
    assert caught.value.retry_after == pytest.approx(0.1, abs=0.05)
    await channel.revise(place(), first, "growing")
    await channel.typing(place())
    assert len(await telegram.requests()) == asked
    clock.move(minutes=0.1 / 60)
    await telegram.pass_time(38)
    await channel.send(row("hello"))
    assert (await telegram.texts(ADA))[-1] == "hello"
    assert (await telegram.state())["violations"] == []


async def test_one_limited_chat_holds_up_no_other_but_two_do(telegram: Control) -> None:
    """One chat's limit is its own; two at once are a sign that the whole bot is limited."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    for user in (1, 2, 3):
        await telegram.say("hello", user=user)
    for chat, seconds in ((1, 10), (2, 20)):
        await channel.send(row("first", place(3)))
        await telegram.fault("flood", method="sendMessage", place=chat, retry_after=seconds)
        with pytest.raises(TelegramRateLimited):
            await channel.send(row("hello", place(chat)))
    with pytest.raises(TelegramRateLimited) as caught:
        await channel.send(row("second", place(3)))
    assert caught.value.retry_after == pytest.approx(20, abs=0.1)
    clock.move(minutes=11 / 60)
    await channel.send(row("third", place(3)))


async def test_clock_that_is_set_back_does_not_stop_the_bot(telegram: Control) -> None:
    """An hour set back would be an hour of silence."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    await known(telegram)
    await telegram.fault("flood", method="sendMessage", retry_after=5)
    with pytest.raises(TelegramRateLimited):
        await channel.send(row("hello"))
    clock.move(minutes=-60)
    await telegram.pass_time(6)
    await channel.send(row("hello"))


@pytest.mark.parametrize("chat", [ADA, GROUP])
async def test_growing_answer_leaves_room_for_the_whole_one(telegram: Control, chat: int) -> None:
    """Edits count as messages; a stream that uses them up delays what must arrive."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    await telegram.say("hello", user=ADA, chat=chat)
    await telegram.flood()
    first = await channel.send(row("…", place(chat)))
    for words in range(1, 400):
        clock.move(minutes=0.25 / 60)
        await telegram.pass_time(0.25)
        await channel.revise(place(chat), first, "word " * words)
    pieces = len(await telegram.requests("editMessageText"))
    assert (20 if chat == GROUP else 60) <= pieces <= 100
    await channel.send(row("the end", place(chat), edits=first))
    await channel.send(row("and more", place(chat)))
    assert (await telegram.texts(chat))[-2:] == ["the end", "and more"]
    state = await telegram.state()
    assert state["violations"] == []
    assert all(request["status"] == 200 for request in await telegram.requests("editMessageText"))


async def test_piece_of_an_answer_never_undoes_the_whole_one(telegram: Control) -> None:
    """A cancelled stream's last edit may still be on its way when the final one is made."""
    await known(telegram)
    await telegram.fault("delay", seconds=SECONDS / 2, method="editMessageText", text="half of")
    clock = Clock()
    channel = bot(telegram, now=clock)
    first = await channel.send(row("…"))
    clock.move(minutes=1)
    growing = asyncio.create_task(channel.revise(place(), first, "half of"))
    await telegram.wait(method="editMessageText")
    growing.cancel()
    sending = asyncio.create_task(channel.send(row("all of it", edits=first)))
    for _ in range(5):
        await settle()
    leap(SECONDS / 2)
    await sending
    await telegram.wait(idle=0)
    assert await telegram.texts(ADA) == ["all of it"]


# How the channel stands.


async def test_poll_feeds_health(telegram: Control) -> None:
    """A message that goes out says nothing of whether anything comes in."""
    clock = Clock()
    channel = bot(telegram, now=clock)
    await known(telegram)
    await channel.send(row("hello"))
    assert channel.health().contact is None
    async with running(channel, Host()) as host:
        await host.hears()
        assert clock.just_now(channel.health().contact or 0)
        assert channel.health().trouble == ""
    assert "run has ended" in channel.health().trouble


async def test_rival_makes_health_red_and_is_outlasted(telegram: Control) -> None:
    """Two processes with one token take each other's messages; neither may give up or look well."""
    sleep = Sleep()
    channel = bot(telegram, sleep=sleep)
    async with running(channel, Host()) as host:
        await telegram.wait(polling=True)
        await telegram.fault(
            "refuse",
            method="getUpdates",
            times=6,
            status=409,
            description="Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
        )
        async with httpx.AsyncClient(timeout=SECONDS) as rival:
            await rival.get(f"{telegram.url}/bot{telegram.token}/getUpdates", params={"timeout": 0})
        await telegram.wait(method="getUpdates", count=3)
        assert "another process polls" in channel.health().trouble
        await telegram.say("are you there", user=ADA)
        await host.hears()
        await telegram.wait(delivered=True)
        assert channel.health().trouble == ""
    assert sleep.waits[:5] == [5, 10, 20, 40, 45]
    assert max(sleep.waits) <= 60


async def test_network_trouble_is_outlasted(telegram: Control) -> None:
    """A router that restarts at night must not end the bot."""
    sleep = Sleep()
    channel = bot(telegram, sleep=sleep, poll_seconds=0)
    async with running(channel, Host()) as host:
        for do in ("reset", "garbage", "status", "hang", "cut"):
            met = len(await telegram.requests("getUpdates"))
            await telegram.fault(do, method="getUpdates")
            await telegram.wait(method="getUpdates", count=met + 1)
            await settle()
            leap(SECONDS)
        await telegram.say("are you there", user=ADA)
        await host.hears()
        await telegram.wait(delivered=True)
        await telegram.heal()


async def test_poll_that_never_ends_is_cut(telegram: Control) -> None:
    """A connection that died without a word would be the end of all messages."""
    channel = bot(telegram, sleep=Sleep(), poll_seconds=0)
    await telegram.fault("hang", method="getUpdates")
    await telegram.say("are you there", user=ADA)
    async with running(channel, Host()) as host:
        await telegram.wait(method="getUpdates")
        leap(SECONDS)
        await host.hears()
    await telegram.heal()


async def test_wish_to_wait_is_kept_by_polls_too(telegram: Control) -> None:
    sleep = Sleep()
    await telegram.fault("flood", method="getUpdates", retry_after=4)
    await telegram.say("hello", user=ADA)
    async with running(bot(telegram, sleep=sleep), Host()) as host:
        await host.until(lambda _: True)
        await telegram.wait(method="getUpdates", count=1)
        await telegram.pass_time(5)
        await host.hears()
    assert sleep.waits[0] == 4


async def test_webhook_is_not_silently_removed(telegram: Control) -> None:
    """Somebody else's program may live by it."""
    call = f"{telegram.url}/bot{telegram.token}"
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        await client.get(f"{call}/setWebhook", params={"url": "https://example.org/hook"})
        with pytest.raises(ChannelRefused, match="deleteWebhook"):
            await bot(telegram).run(Host())
        assert (await client.get(f"{call}/getWebhookInfo")).json()["result"]["url"]
        await client.get(f"{call}/deleteWebhook")
        task = asyncio.create_task(bot(telegram).run(Host()))
        await telegram.wait(polling=True)
        await client.get(f"{call}/setWebhook", params={"url": "https://example.org/hook"})
        async with limit():
            with pytest.raises(ChannelRefused, match="deleteWebhook"):
                await task


async def test_menu_is_offered_once(telegram: Control) -> None:
    """People find commands by typing a slash; a name Telegram does not take must not cost the others."""
    commands = (
        CommandSpec(name="help", help="what I can do"),
        CommandSpec(name="Wrong-Name", help="x"),
        CommandSpec(name="long", help="x" * 300),
    )
    async with running(bot(telegram), Host(commands=commands)) as host:
        await telegram.say("hello", user=ADA)
        await host.hears()
        await telegram.wait(method="setMyCommands")
        await telegram.wait(idle=0.2)
    menus = (await telegram.state())["commands"]
    assert sorted(menus) == ["all_group_chats/", "all_private_chats/"]
    assert {tuple(command["command"] for command in menu) for menu in menus.values()} == {("help", "long")}
    assert len(await telegram.requests("setMyCommands")) == 2


async def test_probe_tells_whose_token_it_is(telegram: Control) -> None:
    """Setting up shows the bot's name and what it may read before anything is written."""
    await telegram.bot(username="fish_bot", first_name="Fish", can_read_all_group_messages=False)
    facts = await probe(telegram.token, telegram.url)
    assert (facts.id, facts.username, facts.name, facts.reads_all_group_messages) == ("4242", "fish_bot", "Fish", False)
    for wrong in ("nonsense", "4242:wrong"):
        with pytest.raises(ChannelRefused, match="token"):
            await probe(wrong, telegram.url)
    with pytest.raises(ChannelUnavailable):
        await probe(telegram.token, "http://127.0.0.1:1")


async def test_token_never_reaches_a_log_or_an_error(
    telegram: Control, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The token is the bot, and its address holds it; logs are sent to others."""
    caplog.set_level(logging.DEBUG)
    secret = telegram.token.partition(":")[2]
    told: list[str] = []

    async def trying(channel: TelegramChannel) -> None:
        try:
            await channel.send(row("hello"))
        except ChannelError as exc:
            # With the variables of every frame but this one's, as some loggers show them.
            shown = traceback.TracebackException.from_exception(exc, capture_locals=True)
            told.extend(shown.format())

    await known(telegram)
    for do in ("reset", "close", "cut", "garbage", "empty", "status", "refuse", "hang"):
        await telegram.fault(do, method="sendMessage")
        await given_up(telegram, "sendMessage", trying(bot(telegram)))
    await telegram.heal()
    for url in ("http://127.0.0.1:1", "http://no-such-host.invalid", "nonsense", "ftp://127.0.0.1"):
        await trying(bot(telegram, base_url=url))
    assert len([line for line in told if "ChannelUnavailable" in line]) >= 10
    async with running(bot(telegram, sleep=Sleep()), Host()) as host:
        await telegram.fault("garbage", method="getUpdates")
        await host.hears()
    everything = "".join([*told, caplog.text, *capsys.readouterr()])
    assert "telegram.trouble" in everything
    assert secret not in everything
