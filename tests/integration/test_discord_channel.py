"""The Discord channel with the real discord.py against a gateway, REST and file server on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import discord as discord_py
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from channels.base import (
    Attachment,
    Blocked,
    Button,
    ChannelError,
    ChannelRefused,
    ChannelUnavailable,
    EditGone,
    Form,
    Inbound,
    Muted,
    NotTaken,
    Outbound,
    Place,
    PlaceGone,
    TooLarge,
)
from channels.discord import DiscordChannel, DiscordRateLimited, probe, servers
from channels.discord.gateway import OWN_FRAMES
from channels.discord.intake import ChannelLanes, Event
from channels.discord.missed import next_reader
from channels.discord.payloads import nonce, read
from channels.discord.rest import Rest
from channels.supervision import Endurance
from tests.kit.discord_bot import Host, bot, command, milliseconds, place, registered, row, running
from tests.kit.patience import SECONDS, leap, limit, settle, until
from tests.kit.served import Clock
from tests.platforms.discord import GENERAL, GUILD, Control, reached, serving

ADA, BOB = 1001, 1002


class Sleep:
    """Waits that are noted and over at once."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


def later() -> int:
    """In an hour, when Discord has forgotten every nonce."""
    return milliseconds() + 3_600_000


@pytest.fixture
async def discord() -> AsyncIterator[Control]:
    async with serving() as control:
        with reached(control):
            yield control


async def ended(channel: DiscordChannel, host: Host) -> Exception:
    """Why a run that can't go on has ended."""
    with pytest.raises(ChannelError) as raised:
        async with limit():
            await channel.run(host)
    return raised.value


@pytest.fixture
async def host(discord: Control) -> AsyncIterator[Host]:
    """A host that a channel with the usual options tells what is said."""
    async with running(bot(discord), Host()) as told:
        yield told


# Incoming.


async def test_direct_message_comes_with_all_the_gateway_goes_by(discord: Control, host: Host) -> None:
    said = await discord.say("hello there", user=ADA, name="Ada")
    [inbound] = await host.hears()
    assert inbound == Inbound(
        channel="discord",
        platform="discord",
        bot_id=str(discord.bot_id),
        update_key=f"m{said.message_id}",
        chat=str(said.channel),
        chat_kind="private",
        author_id=str(ADA),
        author_name="Ada",
        message_id=str(said.message_id),
        text="hello there",
        sent_at=(said.message_id >> 22) + 1_420_070_400_000,
    )


async def test_mention_addresses_the_bot_and_is_cut_off_the_text(discord: Control, host: Host) -> None:
    await discord.say("just talk", user=ADA, channel=GENERAL)
    await discord.say(f"{discord.mention}, what about <@{BOB}>?", user=ADA, channel=GENERAL, nick="Countess")
    talk, asked = await host.hears(2)
    assert (talk.addressed, talk.text) == (False, "just talk")
    assert asked.addressed
    assert asked.text.startswith("what about @")
    assert f"<@{BOB}>" not in asked.text
    assert (asked.chat, asked.thread, asked.server) == (str(GENERAL), None, str(GUILD))
    assert (asked.chat_title, asked.author_name) == ("#general", "Countess")


async def test_reply_to_the_bot_addresses_it_and_everyone_does_not(discord: Control, host: Host) -> None:
    await discord.say("@everyone come", user=ADA, channel=GENERAL)
    shown = await bot(discord).send(row("hello", place(GENERAL)))
    await discord.say("what?", user=ADA, channel=GENERAL, reply_to=int(shown))
    everyone, reply = await host.hears(2)
    assert not everyone.addressed
    assert reply.addressed
    assert reply.reply_to == shown


async def test_without_mention_everything_in_a_server_is_addressed(discord: Control) -> None:
    """The operator may want a bot that takes part."""
    async with running(bot(discord, mention=False), Host()) as host:
        await discord.say("just talk", user=ADA, channel=GENERAL)
        [inbound] = await host.hears()
    assert inbound.addressed


async def test_threads_and_posts_are_threads_of_their_channel_and_private_ones_their_own(
    discord: Control, host: Host
) -> None:
    """Who reads a channel does not read its private threads, so nothing of them may be shared."""
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    private = await discord.open_thread(GENERAL, "Secret", user=ADA, private=True)
    forum = await discord.add_channel("ideas", kind="forum")
    await discord.say("in the thread", user=ADA, channel=thread)
    await host.hears(1)
    await discord.say("in private", user=ADA, channel=private)
    await host.hears(2)
    post = await discord.forum_post(forum, "Idea", "in the post", user=ADA)
    said = await host.hears(3)
    assert [(one.chat, one.thread) for one in said] == [
        (str(GENERAL), str(thread)),
        (str(private), None),
        (str(forum), str(post)),
    ]


async def test_bots_webhooks_and_discord_itself_are_not_heard(discord: Control, host: Host) -> None:
    """Two bots that answer each other never stop."""
    await discord.say("beep", user=77, channel=GENERAL, is_bot=True)
    await discord.say("hook", user=78, channel=GENERAL, webhook=True)
    await discord.say("", user=ADA, channel=GENERAL, kind=7)
    await discord.say("after it", user=ADA, channel=GENERAL)
    assert [one.text for one in await host.hears()] == ["after it"]


async def test_forwarded_message_comes_with_its_text_and_is_marked(discord: Control, host: Host) -> None:
    """Words of somebody else must not become a fact about the person who passed them on."""
    await discord.say("I like tea", user=ADA, forwarded=True)
    [inbound] = await host.hears()
    assert (inbound.text, inbound.forwarded, inbound.reply_to) == ("I like tea", True, None)


async def test_files_come_with_what_they_are_and_can_be_fetched(discord: Control, host: Host) -> None:
    """The gateway decides by kind and size what to read."""
    channel = bot(discord)
    await discord.say("look", user=ADA, attachments=[("cat.png", b"\x89PNG" * 10, "image/png")])
    await discord.say(user=ADA, voice=b"OggS" * 5)
    await discord.say(user=ADA, stickers=["Wave"])
    pictured, spoken, stuck = await host.hears(3)
    [image], [voice], [sticker] = pictured.attachments, spoken.attachments, stuck.attachments
    assert (image.kind, image.name, image.media_type, image.size) == ("image", "cat.png", "image/png", 40)
    assert (voice.kind, voice.spoken) == ("audio", True)
    assert (sticker.kind, sticker.name) == ("other", "sticker Wave")
    assert await channel.fetch(pictured, image, limit=100) == b"\x89PNG" * 10
    with pytest.raises(TooLarge):
        await channel.fetch(pictured, image, limit=39)


async def test_address_of_a_file_that_is_too_old_is_asked_for_anew(discord: Control, host: Host) -> None:
    """Discord's addresses last a day, a message may wait longer."""
    await discord.say("look", user=ADA, attachments=[("cat.png", b"\x89PNG", "image/png")])
    [inbound] = await host.hears()
    await discord.pass_time(2 * 86_400)
    assert await bot(discord).fetch(inbound, inbound.attachments[0], limit=100) == b"\x89PNG"


async def test_file_elsewhere_is_never_fetched(discord: Control, host: Host) -> None:
    """An address that somebody slips in must not make the bot ask servers of its own network."""
    await discord.say("look", user=ADA, attachments=[("cat.png", b"\x89PNG", "image/png")])
    [inbound] = await host.hears()
    [image] = inbound.attachments
    wrong = json.loads(image.reference) | {"url": "http://127.0.0.1:1/secret"}
    with pytest.raises(ChannelError, match="servers"):
        await bot(discord).fetch(inbound, replace(image, reference=json.dumps(wrong)), limit=100)
    with pytest.raises(ChannelError, match="no bytes"):
        await bot(discord).fetch(inbound, Attachment(kind="other"), limit=100)


async def test_edit_comes_as_an_edit_and_a_preview_does_not(discord: Control, host: Host) -> None:
    """Memory is corrected by edits; a link's preview changes no word."""
    said = await discord.say("I like tee", user=ADA)
    await host.hears(1)
    await discord.unfurl(said.message_id)
    await discord.edit(said.message_id, "I like tea")
    _, edit = await host.hears(2)
    [previewed] = host.previewed
    assert (previewed.update_key, previewed.edited) == (f"m{said.message_id}", False)
    assert (edit.text, edit.edited, edit.message_id) == ("I like tea", True, str(said.message_id))
    assert edit.update_key.startswith(f"e{said.message_id}-")


async def test_deletions_are_told_with_their_place(discord: Control, host: Host) -> None:
    """A fact that was learned from a deleted message alone is retracted."""
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    ids = [(await discord.say(text, user=ADA, channel=thread)).message_id for text in "abc"]
    await discord.delete(ids[0])
    await discord.delete_bulk(ids[1], ids[2])
    await host.until(lambda host: len(host.deleted) == 2)
    assert [where for where, _ in host.deleted] == [place(GENERAL, thread)] * 2
    assert [set(gone) for _, gone in host.deleted] == [{str(ids[0])}, {str(ids[1]), str(ids[2])}]


# Gaps.


async def test_gap_is_caught_up_in_channels_threads_and_direct_chats(discord: Control) -> None:
    """Messages of an outage are answered, whatever Discord replays."""
    host = Host()
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    other = await discord.add_channel("other")
    hidden = await discord.add_channel("hidden", denied=["view"])
    async with running(bot(discord), host):
        for where in (None, GENERAL, thread):
            await discord.say("before", user=ADA, channel=where)
        await host.hears(3)
    expected = set()
    await discord.pass_time(60)
    for number in range(130):
        expected.add(f"m{(await discord.say(f'g{number}', user=ADA, channel=GENERAL)).message_id}")
    for where in (None, thread, other):
        for number in range(3):
            expected.add(f"m{(await discord.say(str(number), user=ADA, channel=where)).message_id}")
    await discord.say("unseen", user=ADA, channel=hidden)
    await discord.pass_time(600)
    host.said.clear()
    async with running(bot(discord), host):
        await host.until(lambda host: {one.update_key for one in host.said} >= expected)
        await discord.say("live", user=ADA, channel=GENERAL)
        await host.until(lambda host: host.said[-1].text == "live")
    fresh = [one for one in host.said if one.text != "before"]
    assert {one.update_key for one in fresh if one.text != "live"} == expected
    assert len(fresh) == len(expected) + 1
    general = [one.text for one in fresh if one.chat == str(GENERAL) and one.thread is None]
    assert general == [*(f"g{number}" for number in range(130)), "live"]


async def test_session_that_can_not_be_resumed_is_caught_up_within_one_run(discord: Control, host: Host) -> None:
    """Discord may refuse to resume at any time."""
    await discord.say("one", user=ADA, channel=GENERAL)
    await host.hears(1)
    async with discord.offline():
        await discord.say("two", user=ADA, channel=GENERAL)
        await discord.say("first words", user=BOB)
    await host.hears(2)
    await discord.say("three", user=ADA, channel=GENERAL)
    await discord.say("more words", user=BOB)
    await host.until(lambda host: {"three", "more words"} <= {one.text for one in host.said})
    assert [one.text for one in host.said if one.chat == str(GENERAL)] == ["one", "two", "three"]
    assert [one.text for one in host.said if one.chat_kind == "private"] == ["first words", "more words"]


async def test_first_start_answers_nothing_old(discord: Control) -> None:
    """A bot that is let into an old server must not answer its history."""
    await discord.say("long ago", user=ADA, channel=GENERAL)
    async with running(bot(discord), Host()) as host:
        await discord.say("now", user=ADA, channel=GENERAL)
        assert [one.text for one in await host.hears()] == ["now"]


async def test_what_an_admin_wrote_before_the_first_start_is_answered(discord: Control) -> None:
    """Who has just set a bot up says hello to it, and starts it then."""
    await discord.say("long ago", user=BOB)
    await discord.say("hello?", user=ADA)
    await discord.say("noise", user=BOB, channel=GENERAL)
    async with running(bot(discord), Host(trusted=[str(ADA)])) as host:
        assert [one.text for one in await host.hears()] == ["hello?"]


async def test_channel_whose_history_is_refused_by_chance_is_read_again(discord: Control) -> None:
    """Only a channel that is gone or hidden has nothing to tell."""
    host = Host()
    async with running(bot(discord), host):
        said = await discord.say("before", user=ADA)
        await host.hears()
    await discord.say("missed", user=ADA)
    await discord.fault("refuse", method="history", place=said.channel, status=403, code=40001, times=2)
    async with running(bot(discord, sleep=Sleep()), host):
        assert [one.text for one in await host.hears(2)] == ["before", "missed"]


async def test_private_channel_that_is_gone_is_forgotten(discord: Control) -> None:
    host = Host()
    async with running(bot(discord), host):
        said = await discord.say("before", user=ADA)
        await host.hears()
    await discord.fault("refuse", method="history", place=said.channel, status=404, code=10003)
    async with running(bot(discord), host):
        await discord.wait(method="history")
        await discord.say("elsewhere", user=BOB)
        await host.hears(2)
    assert f"dm:{said.channel}" not in host.memory


async def test_channel_that_can_not_be_read_back_holds_up_nothing_for_long(discord: Control) -> None:
    """One broken channel must not silence what is said there now, nor make every start read everything."""
    host, mended = Host(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds >= 60:
            await mended.wait()

    async with running(bot(discord), host):
        await discord.say("before", user=ADA, channel=GENERAL)
        await host.hears()
    await discord.say("missed", user=ADA, channel=GENERAL)
    await discord.fault("status", method="history", place=GENERAL, times=0)
    channel = bot(discord, sleep=sleep)
    async with running(channel, host):
        await discord.say("live", user=ADA, channel=GENERAL)
        assert [one.text for one in await host.hears(2)] == ["before", "live"]
        assert channel.health().trouble == ""
        await discord.heal()
        mended.set()
        await host.until(lambda host: host.said[-1].text == "missed")


async def test_server_with_an_outage_is_read_back_when_it_comes(discord: Control) -> None:
    """At a start and in the middle of a session; until then nothing kept says that all was read."""
    host = Host()
    async with running(bot(discord), host):
        await discord.say("before", user=ADA, channel=GENERAL)
        await host.hears()
    kept = host.memory["since"]
    await discord.say("missed", user=ADA, channel=GENERAL)
    await discord.remove_guild(unavailable=True)
    await discord.pass_time(60)
    async with running(bot(discord), host):
        await discord.say("elsewhere", user=ADA)
        await host.hears(2)
    assert host.memory["since"] == kept
    async with running(bot(discord), host):
        await discord.add_guild(guild=GUILD)
        await host.until(lambda host: host.said[-1].text == "missed")
        await discord.remove_guild(unavailable=True)
        await discord.say("again", user=ADA, channel=GENERAL)
        await discord.add_guild(guild=GUILD)
        await host.until(lambda host: host.said[-1].text == "again")
    assert [one.text for one in host.said].count("missed") == 1


async def test_thread_that_was_archived_while_nobody_listened_is_read_back(discord: Control) -> None:
    """The gateway tells of open threads only."""
    host = Host()
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    async with running(bot(discord), host):
        await discord.say("before", user=ADA, channel=thread)
        await host.hears()
    await discord.pass_time(60)
    await discord.say("missed", user=ADA, channel=thread)
    await discord.archive(thread)
    async with running(bot(discord), host):
        await host.until(lambda host: host.said[-1].text == "missed")
    assert (host.said[-1].chat, host.said[-1].thread) == (str(GENERAL), str(thread))


async def test_frame_that_discord_py_can_not_parse_is_read_nevertheless(discord: Control, host: Host) -> None:
    """Its exception would end the run, and the same message would come again with the next one."""
    await discord.say("hello", user=ADA, extra={"embeds": None})
    await discord.say("and on", user=ADA)
    assert [one.text for one in await host.hears(2)] == ["hello", "and on"]


async def test_message_that_can_never_be_taken_keeps_no_other_back(discord: Control) -> None:
    """A channel's own error says that trying again is of no use."""
    host = Host(refusals=[ChannelError("not to be understood")])
    async with running(bot(discord), host):
        await discord.say("one", user=ADA)
        await discord.say("two", user=ADA)
        assert [one.text for one in await host.hears()] == ["two"]


async def test_what_another_bot_kept_is_dropped(discord: Control) -> None:
    """Its positions would make this one read, or leave out, what it never heard."""
    host = Host(memory={"bot": "7", "since": "1", "dm:5": "1", "commands:global": "x"})
    await discord.say("long ago", user=ADA, channel=GENERAL)
    async with running(bot(discord), host):
        await discord.say("now", user=ADA, channel=GENERAL)
        assert [one.text for one in await host.hears()] == ["now"]
    assert host.memory["bot"] == str(discord.bot_id)
    assert "dm:5" not in host.memory


# Commands.


async def test_commands_are_registered_for_whom_they_are_and_once(discord: Control) -> None:
    """None stands twice in a menu, admins' ones are not shown to all, and Discord's daily limit is not used up."""
    host = Host()
    for _ in range(2):
        async with running(bot(discord), host):
            await registered(discord)
    # Whoever lets the bot in anew, in a run without commands, takes none away.
    async with running(bot(discord), Host(commands=())):
        await discord.wait(idle=0.1)
    everywhere = {one["name"]: one for one in await discord.commands()}
    here = {one["name"]: one for one in await discord.commands(GUILD)}
    assert set(everywhere) == {"help", "memory", "export"}
    assert set(here) == {"help", "memory", "allow"}
    assert all(one["contexts"] == [1] for one in everywhere.values())
    assert here["allow"]["default_member_permissions"] == "32"
    assert here["help"]["description_localizations"] == {"zh-CN": "我会做什么"}
    state = await discord.state()
    assert set(state["puts"].values()) == {1}


async def test_command_is_committed_deferred_and_answered_for_its_user_alone(discord: Control) -> None:
    """In a server nobody else sees what the bot remembers of somebody."""
    channel = bot(discord)
    async with running(channel, Host()) as host:
        await registered(discord)
        asked = await discord.slash("memory", {"which": "m_1", "what": "show"}, user=ADA, channel=GENERAL)
        [inbound] = await host.hears()
        assert (inbound.text, inbound.update_key, inbound.author_id) == ("/memory show m_1", f"i{asked}", str(ADA))
        for chunk, text in enumerate(["You like tea.", "And cats."]):
            await channel.send(row(text, inbound.place, id=chunk, chunk=chunk, ticket=inbound.ticket))
    assert await discord.ephemeral(ADA, GENERAL) == ["You like tea.", "And cats."]
    assert await discord.texts(GENERAL) == []
    assert (await discord.state())["violations"] == []


async def test_shared_command_is_answered_for_all(discord: Control) -> None:
    async with command(discord, "help") as (channel, inbound):
        await channel.send(row("I remember.", inbound.place, ticket=inbound.ticket))
    assert await discord.texts(GENERAL) == ["I remember."]


async def test_late_answer_in_private_becomes_a_direct_message(discord: Control) -> None:
    """After a quarter of an hour the interaction is gone, and the chat must still not read it."""
    async with command(discord) as (channel, inbound):
        await discord.pass_time(16 * 60)
        await channel.send(row("You like tea.", inbound.place, ticket=inbound.ticket))
    assert await discord.texts(await discord.dm(ADA)) == ["You like tea."]
    assert await discord.texts(GENERAL) == []


async def test_late_answer_for_all_is_said_in_its_place(discord: Control) -> None:
    async with command(discord, "help") as (channel, inbound):
        await discord.pass_time(16 * 60)
        await channel.send(row("I remember.", inbound.place, ticket=inbound.ticket))
    assert "I remember." in await discord.texts(GENERAL)


async def test_command_that_was_not_taken_tells_its_user(discord: Control) -> None:
    """Discord gives it only once."""
    host = Host(refusals=[NotTaken("Please say it again in a minute.")])
    async with running(bot(discord), host):
        await registered(discord)
        asked = await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        await discord.wait(answered=asked)
    assert await discord.ephemeral(ADA, GENERAL) == ["Please say it again in a minute."]


async def test_form_asks_for_what_is_missing_and_its_text_completes_the_command(discord: Control) -> None:
    """A form is the answer to the command, so nothing is committed before it is filled in."""
    channel = bot(discord)
    host = Host(asks=Form(title="Edit", label="New words", value="likes tee"))
    async with running(channel, host):
        await registered(discord)
        asked = await discord.slash("memory", {"what": "show", "which": "m_1"}, user=ADA, channel=GENERAL)
        await discord.wait(responded=asked)
        assert host.said == []
        await discord.submit(asked, "likes tea")
        [inbound] = await host.hears()
        await channel.send(row("Saved.", inbound.place, ticket=inbound.ticket))
    assert inbound.text == "/memory show m_1 likes tea"
    assert await discord.ephemeral(ADA, GENERAL) == ["Saved."]


async def test_option_is_completed_by_the_host(discord: Control, host: Host) -> None:
    """Ids are picked, not typed; one that is too long to be picked is not offered cut."""
    await registered(discord)
    choices = await discord.autocomplete("memory", {"what": "show", "which": "te"}, user=ADA, channel=GENERAL)
    assert choices == [{"name": "likes tea", "value": "m_7k2pq4"}]
    assert host.suggested == [("/memory show", "which", "te")]


async def test_answer_waits_until_its_command_is_acknowledged(discord: Control) -> None:
    """The gateway may have the answer before Discord has heard that one comes."""
    channel = bot(discord)

    class Quick(Host):
        async def on_inbound(self, inbound: Inbound) -> None:
            self.answer = asyncio.create_task(channel.send(row("Here.", inbound.place, ticket=inbound.ticket)))
            for _ in range(5):  # as long as an answer takes that does not wait
                await settle()

    async with running(channel, Quick()):
        await registered(discord)
        asked = await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        await discord.wait(answered=asked)
    assert await discord.ephemeral(ADA, GENERAL) == ["Here."]
    assert (await discord.state())["violations"] == []


async def test_command_that_is_acknowledged_too_late_is_done_nevertheless(discord: Control) -> None:
    """It is committed; only its answer has to find another way."""
    channel = bot(discord)
    async with running(channel, Host(gate=asyncio.Event())) as host:
        await registered(discord)
        await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        await discord.pass_time(2 * SECONDS)
        assert host.gate is not None
        host.gate.set()
        [inbound] = await host.hears()
        await channel.send(row("You like tea.", inbound.place, ticket=inbound.ticket))
    assert await discord.texts(await discord.dm(ADA)) == ["You like tea."]
    assert await discord.texts(GENERAL) == []


async def test_button_under_what_one_person_sees_changes_it_for_that_person(discord: Control) -> None:
    """An ephemeral message can be reached by its interaction alone."""
    channel = bot(discord)
    async with running(channel, Host()) as host:
        await registered(discord)
        await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        [asked] = await host.hears()
        buttons = (Button(label="Forget", data="f:1"),)
        shown = await channel.send(row("Sure?", asked.place, ticket=asked.ticket, buttons=buttons))
        await discord.press(int(shown), "f:1", user=ADA)
        _, pressed = await host.hears(2)
        await channel.send(row("Forgotten.", pressed.place, ticket=pressed.ticket, edits=shown))
    assert await discord.ephemeral(ADA, GENERAL) == ["Forgotten."]


async def test_private_growing_answer_is_edited_by_its_ticket(discord: Control) -> None:
    clock = Clock()
    async with command(discord, now=clock) as (channel, asked):
        shown = await channel.send(row("…", asked.place, ticket=asked.ticket))
        clock.shift += 2
        await channel.revise(asked.place, shown, "You like")
        assert await discord.ephemeral(ADA, GENERAL) == ["You like"]
        await channel.send(row("You like tea.", asked.place, ticket=asked.ticket, edits=shown))
    assert await discord.ephemeral(ADA, GENERAL) == ["You like tea."]


async def test_commands_that_discord_does_not_take_are_left_for_a_day(discord: Control) -> None:
    """Asked again at every start, a daily limit would never end."""
    await discord.rules(create_limit=0)
    host = Host()
    for _ in range(2):
        async with running(bot(discord), host):
            await discord.wait(idle=0.3)
    puts = [one for one in await discord.requests() if "commands" in str(one.get("method"))]
    assert len(puts) == 2  # everywhere and the guild, once each
    assert {value.partition(" ")[0] for name, value in host.memory.items() if name.startswith("commands:")} == {"later"}


async def test_server_that_the_bot_is_let_into_gets_its_commands_whatever_was_before(discord: Control) -> None:
    """Discord drops them when it leaves, and who lets it in again wants them now."""
    server = 5_555
    async with running(bot(discord), Host(memory={f"commands:{server}": f"later {later()}"})):
        await discord.add_guild(guild=server)
        await until(lambda: discord.commands(server))


async def test_limit_for_all_requests_marks_no_server(discord: Control) -> None:
    """It says nothing of their commands; the next session registers them."""
    await discord.fault("flood", method="put_commands", everywhere=True, retry_after=30)
    host = Host()
    async with running(bot(discord), host):
        await discord.wait(method="put_commands")
        await discord.wait(idle=0.3)
    assert not [name for name in host.memory if name.startswith("commands:")]


async def test_limit_for_all_requests_does_not_stop_acknowledgements(discord: Control) -> None:
    """Interactions stand beside it, and have three seconds."""
    channel = bot(discord)
    async with running(channel, Host()) as host:
        await registered(discord)
        await discord.fault("flood", method="send", everywhere=True, retry_after=30)
        with pytest.raises(DiscordRateLimited):
            await channel.send(row("hello", place(GENERAL)))
        asked = await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        await discord.wait(responded=asked)
        [inbound] = await host.hears()
        await channel.send(row("You like tea.", inbound.place, ticket=inbound.ticket))
    assert await discord.ephemeral(ADA, GENERAL) == ["You like tea."]
    assert await discord.violations("early") == []


async def test_command_that_is_being_committed_when_the_run_ends_is_committed(discord: Control) -> None:
    """Discord gives it only once."""
    host = Host()
    channel = bot(discord)
    task = asyncio.create_task(channel.run(host))
    async with limit():
        await registered(discord)
        host.gate = asyncio.Event()
        asked = await discord.slash("memory", {"what": "list"}, user=ADA, channel=GENERAL)
        await discord.wait(responded=asked)
        task.cancel()
        await settle()
        host.gate.set()
        await asyncio.gather(task, return_exceptions=True)
    assert [one.text for one in host.said] == ["/memory list"]


# Showing.


async def test_message_is_shown_without_pings_and_previews(discord: Control) -> None:
    channel = bot(discord)
    said = await discord.say("hello", user=ADA, channel=GENERAL)
    text = "@everyone <@1001> https://example.org"
    shown = await channel.send(row(text, place(GENERAL), reply_to=str(said.message_id)))
    message = await discord.message(int(shown))
    assert message["asked"][0]["allowed_mentions"]["parse"] == []
    assert message["asked"][0]["flags"] == 4
    assert (await discord.state())["violations"] == []


async def test_row_is_not_taken_for_another_one_of_the_same_words(discord: Control) -> None:
    """Some words are said often, and each time they were asked for."""
    channel = bot(discord, now=later)
    first, second = (row("Done.", place(GENERAL), id=number) for number in (1, 2))
    shown = await channel.send(first)
    assert await channel.send(replace(second, retried=True)) != shown
    assert await channel.send(replace(first, retried=True)) == shown
    assert await discord.texts(GENERAL) == ["Done.", "Done."]


async def test_answer_to_a_message_that_was_gone_is_known_again(discord: Control) -> None:
    """Discord then shows it as an answer to nothing."""
    said = await discord.say("hello", user=ADA, channel=GENERAL)
    await discord.delete(said.message_id)
    outbound = row("hello too", place(GENERAL), reply_to=str(said.message_id))
    shown = await bot(discord).send(outbound)
    await discord.pass_time(3_600)
    assert await bot(discord, now=later).send(replace(outbound, retried=True)) == shown


async def test_ticket_that_can_not_be_read_is_never_answered_in_the_chat(discord: Control) -> None:
    """It may have been for one person's eyes."""
    with pytest.raises(ChannelError, match="can't be read"):
        await bot(discord).send(row("your secrets", place(GENERAL), ticket='{"token": "of a newer version"}'))
    assert await discord.texts(GENERAL) == []


async def test_edit_that_can_not_be_is_told_apart(discord: Control) -> None:
    channel = bot(discord)
    shown = await channel.send(row("…", place(GENERAL)))
    assert await channel.send(row("hello", place(GENERAL), edits=shown)) == shown
    await discord.delete(int(shown))
    with pytest.raises(EditGone):
        await channel.send(row("hello", place(GENERAL), edits=shown))


async def test_what_discord_refuses_is_told_by_what_it_means(discord: Control) -> None:
    """Delivery decides by these what becomes of the row and of the chat."""
    channel = bot(discord)
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    await discord.lock(thread, archived=True)
    with pytest.raises(Muted):
        await channel.send(row("hello", place(GENERAL, thread)))
    await discord.delete_channel(thread)
    with pytest.raises(PlaceGone):
        await channel.send(row("hello", place(GENERAL, thread)))
    await discord.deny(GENERAL, "send")
    with pytest.raises(Muted):
        await channel.send(row("hello", place(GENERAL)))
    await discord.deny(GENERAL)
    await discord.revoke()
    with pytest.raises(ChannelUnavailable, match="token"):
        await channel.send(row("hello", place(GENERAL)))
    assert await discord.texts(GENERAL) == []


@pytest.mark.parametrize(
    ("status", "code", "meaning"),
    [
        (403, 50001, Blocked),
        (403, 50278, Blocked),
        (403, 40001, ChannelError),
        (403, 0, ChannelUnavailable),
        (404, 0, ChannelUnavailable),
    ],
)
async def test_only_what_says_that_a_chat_is_closed_ends_it(
    discord: Control, status: int, code: int, meaning: type[ChannelError]
) -> None:
    """A chat that is given up loses all that waits for it."""
    await discord.fault("refuse", method="send", status=status, code=code)
    with pytest.raises(ChannelError) as raised:
        await bot(discord).send(row("hello", place(GENERAL)))
    assert type(raised.value) is meaning


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_page_of_what_stands_before_discord_is_no_word_of_discords(discord: Control, status: int) -> None:
    """A proxy that shuts people out says nothing of the token, and nothing of a chat."""
    await discord.fault("status", method="send", status=status)
    with pytest.raises(ChannelUnavailable) as raised:
        await bot(discord).send(row("hello", place(GENERAL)))
    assert raised.value.certain
    assert "token" not in str(raised.value)
    await discord.fault("status", method="me", status=status)
    assert type(await ended(bot(discord), Host())) is ChannelUnavailable


async def test_answer_is_said_without_its_reference_where_the_history_is_hidden(discord: Control) -> None:
    """The right to read what was said is not needed to answer."""
    said = await discord.say("hello", user=ADA, channel=GENERAL)
    await discord.deny(GENERAL, "history")
    buttons = (Button(label="Yes", data="y"),)
    shown = await bot(discord).send(row("hello too", place(GENERAL), reply_to=str(said.message_id), buttons=buttons))
    message = await discord.message(int(shown))
    assert message["content"] == "hello too"
    assert message["components"]


async def test_request_to_wait_is_passed_on_exactly_and_kept(discord: Control) -> None:
    """Whoever asks again too early is locked out for longer."""
    channel = bot(discord)
    await discord.fault("flood", retry_after=7.5)
    with pytest.raises(DiscordRateLimited) as first:
        await channel.send(row("hello", place(GENERAL)))
    assert (first.value.retry_after, first.value.certain) == (7.5, True)
    with pytest.raises(DiscordRateLimited):
        await channel.send(row("hello", place(GENERAL)))
    assert await discord.violations("early") == []


async def test_archived_thread_is_opened_again_for_the_answer(discord: Control) -> None:
    """Discord archives what is quiet for a while; only a lock says that no more is wanted."""
    channel = bot(discord)
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    shown = await channel.send(row("…", place(GENERAL, thread)))
    await discord.archive(thread)
    assert await channel.send(row("hello", place(GENERAL, thread), edits=shown)) == shown
    assert await discord.texts(thread) == ["hello"]


async def test_form_that_discord_does_not_like_is_shown_as_bare_words(discord: Control) -> None:
    shown = await bot(discord).send(row("x" * 2_001, place(GENERAL), buttons=(Button(label="Yes", data="y"),)))
    assert (await discord.texts(GENERAL))[0] == "x" * 2_000
    assert (await discord.message(int(shown)))["id"] == shown


async def test_many_messages_keep_to_the_limit_of_their_channel(discord: Control) -> None:
    await discord.limit("send", 2, per=0.5)
    channel = bot(discord)
    for number in range(5):
        await channel.send(row(str(number), place(GENERAL), id=number))
    assert await discord.texts(GENERAL) == ["0", "1", "2", "3", "4"]
    assert await discord.violations("early") == []


async def test_place_that_is_none_of_discords_is_refused(discord: Control) -> None:
    """A row from another platform's import must not become an address."""
    with pytest.raises(ChannelError, match="no Discord channel id"):
        await bot(discord).send(row("hello", Place(channel="discord", chat="../users/@me")))


async def test_growing_answer_is_edited_in_place_within_its_pace(discord: Control) -> None:
    """Edits share the limit of whole messages."""
    times = iter(range(0, 10**9, 2_000))
    channel = bot(discord, now=lambda: next(times))
    shown = await channel.send(row("…", place(GENERAL)))
    await channel.revise(place(GENERAL), shown, "half an answ")
    assert await discord.texts(GENERAL) == ["half an answ"]


# The connection.


async def test_wrong_token_and_missing_intent_are_told_to_the_operator(discord: Control) -> None:
    """Both can only be mended by hand, so the words must say where."""
    await discord.bot(reads_messages=False)
    error = await ended(bot(discord), Host())
    assert isinstance(error, ChannelRefused)
    assert "Message Content Intent" in str(error)
    await discord.bot(reads_messages=True)
    await discord.revoke()
    error = await ended(bot(discord), Host())
    assert isinstance(error, ChannelRefused)
    assert "Reset Token" in str(error)
    assert discord.token not in str(error)


async def test_shutdown_keeps_what_was_taken(discord: Control) -> None:
    host = Host()
    async with running(bot(discord), host):
        said = await discord.say("hello", user=ADA)
        await host.hears()
    assert host.memory[f"dm:{said.channel}"] == str(said.message_id)
    assert "since" in host.memory


async def test_probe_tells_whose_token_it_is(discord: Control) -> None:
    """Setup shows it, with the address that adds the bot to a server."""
    facts = await probe(discord.token, discord.api_url)
    assert (facts.id, facts.name, facts.reads_messages) == (str(discord.bot_id), "remora", True)
    assert f"client_id={facts.application_id}" in facts.invite
    with pytest.raises(ChannelRefused):
        await probe("wrong.token.here", discord.api_url)


async def test_servers_of_a_bot_are_listed(discord: Control) -> None:
    assert await servers(discord.token, discord.api_url) == {str(GUILD): "Guild"}


async def test_lost_connection_is_resumed_and_nothing_is_missed(discord: Control, host: Host) -> None:
    async with discord.offline(resumable=True):
        await discord.say("meanwhile", user=ADA, channel=GENERAL)
    assert [one.text for one in await host.hears()] == ["meanwhile"]


async def test_leaving_a_server_ends_the_presence_in_its_chats(discord: Control, host: Host) -> None:
    """The memories of its chats are erased some time after."""
    await discord.say("hello", user=ADA, channel=GENERAL)
    await host.hears()
    await discord.remove_guild()
    await host.until(lambda host: (str(GENERAL), False) in host.presence)
    await discord.add_guild(guild=GUILD)
    await host.until(lambda host: (str(GENERAL), True) in host.presence)


async def test_server_that_was_left_while_nobody_listened_is_noticed_at_the_start(discord: Control) -> None:
    """Discord tells of it only those who are connected."""
    host = Host()
    async with running(bot(discord), host):
        await discord.say("hello", user=ADA, channel=GENERAL)
        await host.hears()
    await discord.remove_guild()
    async with running(bot(discord), host):
        await host.until(lambda host: host.presence == [(str(GENERAL), False)])


async def test_server_that_the_bot_was_let_back_into_while_nobody_listened_is_noticed(discord: Control) -> None:
    """The memories of its chats must not be erased after all; a channel that is gone stays so."""
    host = Host()
    gone = await discord.add_channel("gone")
    async with running(bot(discord), host):
        for where in (GENERAL, gone):
            await discord.say("hello", user=ADA, channel=where)
        await host.hears(2)
        await discord.remove_guild()
        await host.until(lambda host: {(str(GENERAL), False), (str(gone), False)} <= set(host.presence))
    host.presence.clear()
    await discord.add_guild(guild=GUILD)
    await discord.delete_channel(gone)
    async with running(bot(discord), host):
        await host.until(lambda host: host.presence == [(str(GENERAL), True)])


async def test_connection_that_is_lost_before_all_is_known_is_a_trouble(discord: Control) -> None:
    """The servers are known half a second after the session began, whatever became of it."""
    channel = bot(discord)
    task = asyncio.create_task(channel.run(Host()))
    async with limit():
        await discord.wait(identifies=1, connected=True, delivered=True)
        async with discord.offline():
            await until(lambda: channel.health().trouble)
            leap(1)
            await settle()
            assert channel.health().trouble
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_bucket_is_looked_at_again_after_a_wait(discord: Control) -> None:
    async def sleep(seconds: float) -> None:
        with pytest.raises(DiscordRateLimited):
            await rest.call("GET", "/applications/@me", seconds=SECONDS)
        await asyncio.sleep(seconds)

    rest = Rest(discord.token, discord.api_url, now=milliseconds, sleep=sleep)
    await discord.limit("me", 1, per=0.3)
    await discord.fault("flood", method="application", everywhere=True, retry_after=30)
    await rest.call("GET", "/users/@me", seconds=SECONDS)
    with pytest.raises(DiscordRateLimited) as raised:
        await rest.call("GET", "/users/@me", seconds=SECONDS)
    assert raised.value.everywhere
    assert await discord.violations("early") == []


# Without a server.


@asynccontextmanager
async def waiting(host: Host) -> AsyncIterator[ChannelLanes]:
    """An intake that holds everything back until it is told to go."""
    tasks: list[asyncio.Task[None]] = []
    intake = ChannelLanes(
        "discord",
        host,
        Endurance("discord"),
        spawn=lambda work: tasks.append(asyncio.create_task(work)),
        sleep=Sleep(),
        random=lambda: 0.0,
    )
    intake.hold()
    yield intake
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_first_session_begins_before_what_has_come_in_already() -> None:
    """A process that is killed at once must find it again."""
    async with waiting(Host()) as intake:

        async def taken() -> None:
            return None

        intake.put("1", Event(key="m90", number=90, work=taken))
        intake.begin(100)
        assert (intake.since, intake.begun) == (89, 89)


async def test_lane_is_bounded_and_what_did_not_fit_comes_after_the_rest_once() -> None:
    """A store that is full for a day must not fill the memory; what Discord keeps can be read there."""
    order: list[int] = []

    async def take(number: int) -> None:
        order.append(number)

    async with waiting(Host()) as intake:
        for number in range(1, 1_001):
            assert not intake.is_full("1")
            intake.put("1", Event(key=f"m{number}", number=number, work=partial(take, number)))
        assert intake.is_full("1")
        for _ in range(2):
            intake.put("1", Event(key="f1", work=partial(take, 0), reading=True))
        intake.go()
        await until(lambda: len(order) >= 1_001)
        await settle()
    assert order == [*range(1, 1_001), 0]


async def test_trouble_of_several_channels_is_logged_once() -> None:
    """A store that is full for an hour must not fill the log too."""
    tries: list[int] = []

    async def refused(number: int) -> None:
        tries.append(number)
        raise NotTaken("the disk is full")

    async def taken() -> None:
        return None

    with capture_logs() as logs:
        async with waiting(Host()) as intake:
            for number in range(1, 4):
                intake.put(str(number), Event(key=f"m{number}", number=number, work=partial(refused, number)))
            intake.go()

            def tried() -> bool:
                intake.put("9", Event(key="d9", work=taken))
                return len(tries) >= 30

            await until(tried)
            assert intake.trouble == "the disk is full"
    assert [one["event"] for one in logs] == ["discord.not_taken"]


def test_channel_in_which_something_waits_is_read_first() -> None:
    """Somebody looks at it now; a thousand others may be quiet."""
    assert next_reader(["2", "3", "4"], lambda channel: channel == "3") == "3"
    assert next_reader(["2", "3", "4"], lambda channel: False) == "2"


def test_frames_that_only_we_read_are_known_to_discord_py_by_these_names() -> None:
    """The channel takes its parsers away, by a name that is not public."""
    parsers = discord_py.Client(intents=discord_py.Intents.none())._connection.parsers
    for name in ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE"):
        assert name.startswith(OWN_FRAMES)
        assert name in parsers


@given(
    number=st.integers(1, 2**63), made_at=st.integers(0, 2**50), chat=st.text(max_size=30), other=st.integers(1, 2**31)
)
def test_nonce_fits_and_differs_between_rows(number: int, made_at: int, chat: str, other: int) -> None:
    """Discord takes 25 characters; two stores that count alike must not silence each other."""
    first = Outbound(id=number, place=Place(channel="discord", chat=chat), text="", made_at=made_at)
    assert len(nonce(first)) <= 25
    assert nonce(first) == nonce(replace(first, text="other"))
    assert nonce(first) != nonce(replace(first, made_at=made_at + other))


@given(text=st.text(st.sampled_from("<@!&#a:_b12> \n,"), max_size=60))
def test_text_of_tags_is_read_whatever_it_holds(text: str) -> None:
    """People type anything; only a whole tag of the bot's names it."""
    tags = ["<@1>", "<@!1>"]
    message = {"content": text, "mentions": [{"id": "2", "username": "bob"}]}
    said = read(message, tags=tags, role=lambda _: None, channel=lambda _: None)
    assert said.named == any(tag in text for tag in tags)
    assert "<@2>" not in said.text
