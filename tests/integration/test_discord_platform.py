"""The Discord that other tests stand on, kept honest by discord.py, which nobody here wrote."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import discord
import httpx
import pytest

from tests.kit.patience import SECONDS, leap, limit, settle
from tests.platforms.client import ControlError
from tests.platforms.discord import GENERAL, GUILD, OWNER, Control, reached, running, serving

ADA, BEN = 7, 8
JSON = dict[str, Any]
FORBID = discord.AllowedMentions.none()


class Listener(discord.Client):
    """discord.py as it comes, noting what it hears."""

    def __init__(self, *, content: bool = True) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=content)
        # The library waits this long for further guilds; two seconds by itself.
        super().__init__(intents=intents, guild_ready_timeout=0.05, allowed_mentions=FORBID, max_ratelimit_timeout=60)
        self.heard: list[tuple[str, Any]] = []
        self.news = asyncio.Event()
        self.ended = False

    def note(self, kind: str, what: Any) -> None:
        self.heard.append((kind, what))
        self.news.set()

    def end(self, _task: asyncio.Task[None]) -> None:
        self.ended = True
        self.news.set()

    async def until(self, kind: str, count: int = 1) -> list[Any]:
        """Waits until so much of a kind was heard, and returns it."""
        async with limit():
            while len(found := [what for one, what in self.heard if one == kind]) < count:
                assert not self.ended, f"the client ended while {count} × {kind} was waited for"
                self.news.clear()
                await self.news.wait()
        return found

    async def message(self, count: int = 1) -> discord.Message:
        """The `count`th message of a person."""
        found: discord.Message = (await self.until("message", count))[count - 1]
        return found

    async def interaction(self, count: int = 1) -> Any:
        """The `count`th interaction; its data are of many shapes, which tests know better than types."""
        return (await self.until("interaction", count))[count - 1]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Begin a new session at once; the library waits five seconds before every one but the first."""

    async def on_ready(self) -> None:
        self.note("ready", None)

    async def on_resumed(self) -> None:
        self.note("resumed", None)

    async def on_message(self, message: discord.Message) -> None:
        self.note("own" if message.author == self.user else "message", message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        self.note("edit", payload)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        self.note("delete", payload)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        self.note("bulk", payload)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.note("interaction", interaction)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self.note("thread", thread)

    async def on_raw_thread_update(self, payload: discord.RawThreadUpdateEvent) -> None:
        self.note("thread update", payload)

    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        self.note("thread delete", payload)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        self.note("join", guild)

    async def on_guild_remove(self, guild: discord.Guild) -> None:
        self.note("remove", guild)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        self.note("channel delete", channel)


@pytest.fixture
async def platform() -> AsyncIterator[Control]:
    async with serving() as one:
        with reached(one):
            yield one


@pytest.fixture
async def client(platform: Control) -> AsyncIterator[Listener]:
    async with listening(platform) as one:
        await one.until("ready")
        yield one


@asynccontextmanager
async def listening(platform: Control, *, content: bool = True) -> AsyncIterator[Listener]:
    """A client that is logged in, and connects meanwhile."""
    client = Listener(content=content)
    task = asyncio.create_task(client.start(platform.token))
    task.add_done_callback(client.end)
    try:
        yield client
    finally:
        beating = getattr(client.ws, "_keep_alive", None)
        await client.close()
        await asyncio.wait([task], timeout=SECONDS)
        if task.done() and not task.cancelled():
            task.exception()
        if beating is not None:  # in a thread that wants a loop which runs
            await asyncio.to_thread(beating.join, SECONDS)


async def test_the_bot_comes_in_and_sees_what_is_there(client: Listener, platform: Control) -> None:
    """READY and GUILD_CREATE must hold all that a client builds its cache from."""
    assert client.user is not None and client.user.id == platform.bot_id == client.application_id
    # The flag of an application in few guilds that Discord has never looked at.
    assert client.application_flags.gateway_message_content_limited
    guild = client.get_guild(GUILD)
    assert guild is not None and guild.owner_id == OWNER and guild.me.id == platform.bot_id
    channel = guild.get_channel(GENERAL)
    assert isinstance(channel, discord.TextChannel) and channel.name == "general"
    assert channel.permissions_for(guild.me).send_messages
    role = guild.self_role
    assert role is not None and role.is_bot_managed()
    state = await platform.state()
    assert state["gateway"] | {"heartbeats": 0} == {
        "connected": True,
        "sessions": 1,
        "identifies": 1,
        "resumes": 0,
        "replayed": 0,
        "invalid": 0,
        "heartbeats": 0,
        "refused": [],
    }


async def test_words_go_both_ways(client: Listener, platform: Control) -> None:
    """Direct messages and a guild's channel, answers as replies, and edits."""
    said = await platform.say("hello", user=ADA, name="Ada")
    heard = await client.message()
    assert (heard.content, heard.author.display_name, heard.guild) == ("hello", "Ada", None)
    assert heard.channel.id == said.channel and heard.id == said.message_id
    answer = await heard.reply("hello **you**", suppress_embeds=True)
    assert await platform.seen(said.channel) == [("Ada", "hello"), ("Remora", "hello **you**")]
    await answer.edit(content="bye", suppress=True)
    assert await platform.texts(said.channel) == ["bye"]
    kept = await platform.message(answer.id)
    assert (kept["edits"], kept["flags"]) == (["hello **you**"], 4)
    assert kept["message_reference"]["message_id"] == str(said.message_id)
    assert kept["referenced_message"]["content"] == "hello"
    await platform.say("to all", user=ADA, channel=GENERAL, nick="Countess")
    named = await client.message(2)
    assert (named.guild and named.guild.id, named.author.display_name) == (GUILD, "Countess")
    assert (await platform.state())["violations"] == []


async def test_people_change_and_take_back_what_they_said(client: Listener, platform: Control) -> None:
    """An edit is told apart from the update that a link's preview makes; deletions come singly and at once."""
    said = [await platform.say(text, user=ADA, channel=GENERAL) for text in ("one", "two", "three", "four")]
    await platform.unfurl(said[0].message_id)
    await platform.edit(said[0].message_id, "first")
    preview, edit = await client.until("edit", 2)
    assert preview.message.edited_at is None and preview.message.embeds
    assert edit.message.edited_at is not None and edit.message.content == "first"
    await platform.delete(said[0].message_id)
    (deleted,) = await client.until("delete")
    assert (deleted.message_id, deleted.channel_id, deleted.guild_id) == (said[0].message_id, GENERAL, GUILD)
    await platform.delete_bulk(said[1].message_id, said[2].message_id)
    (bulk,) = await client.until("bulk")
    assert bulk.message_ids == {said[1].message_id, said[2].message_id}
    channel = client.get_partial_messageable(GENERAL)
    assert [one.content async for one in channel.history()] == ["four"]


async def test_people_speak_in_all_the_ways_there_are(client: Listener, platform: Control) -> None:
    """Mentions, replies, forwards, voice, stickers, webhooks and system messages are told apart by what is told."""
    role = (await platform.state())["guilds"][str(GUILD)]["role"]
    first = await platform.say(f"{platform.mention} hi <@{BEN}>", user=ADA, channel=GENERAL)
    await platform.say(f"hi <@&{role}> @everyone", user=ADA, channel=GENERAL)
    await platform.say("and this?", user=BEN, channel=GENERAL, reply_to=first.message_id)
    await platform.say("not mine", user=ADA, forwarded=True, attachments=[("a.txt", b"theirs", "text/plain")])
    await platform.say(user=ADA, voice=b"ogg")
    await platform.say(user=ADA, stickers=["Wave"])
    await platform.say("beep", user=9, channel=GENERAL, webhook=True)
    await platform.say(user=10, channel=GENERAL, kind=7)
    named, role_named, reply, forward, voice, sticker, hook, join = await client.until("message", 8)
    assert [one.id for one in named.mentions] == [platform.bot_id]
    assert [one.id for one in role_named.role_mentions] == [role] and role_named.mention_everyone
    assert reply.type is discord.MessageType.reply and reply.reference.resolved.id == first.message_id
    assert [one.id for one in reply.mentions] == [ADA]
    assert (forward.content, forward.message_snapshots[0].content) == ("", "not mine")
    assert await forward.message_snapshots[0].attachments[0].read() == b"theirs"
    assert voice.flags.voice and voice.attachments[0].is_voice_message()
    assert [one.name for one in sticker.stickers] == ["Wave"]
    assert hook.webhook_id == 9 and join.is_system()


async def test_files_are_had_until_their_address_expires(client: Listener, platform: Control) -> None:
    """An address that was kept for a day leads nowhere; reading the message again gives a new one."""
    await platform.say("look", user=ADA, attachments=[("a b.png", b"png", "image/png")])
    heard = await client.message()
    (file,) = heard.attachments
    assert (file.filename, file.size, file.content_type) == ("a b.png", 3, "image/png")
    assert await file.read() == b"png"
    await platform.pass_time(86_401)
    with pytest.raises(discord.NotFound):
        await file.read()
    again = await heard.channel.fetch_message(heard.id)
    assert await again.attachments[0].read() == b"png"
    assert len(await platform.requests("download")) == 3
    sent = await heard.channel.send("mine", file=discord.File(__file__, filename="t.py"))
    assert (await platform.message(sent.id))["attachments"][0]["filename"] == "t.py"


async def test_threads_and_posts_are_places_of_their_own(client: Listener, platform: Control) -> None:
    """A thread has the id of its message, a post that of its first message."""
    said = await platform.say("a matter", user=ADA, channel=GENERAL)
    thread_id = await platform.open_thread(name="Matter", user=ADA, message_id=said.message_id)
    assert thread_id == said.message_id
    forum = await platform.add_channel("ideas", kind="forum")
    post_id = await platform.forum_post(forum, "Idea", "what if", user=BEN)
    threads = await client.until("thread", 2)
    assert [(one.id, one.parent_id, one.name) for one in threads] == [
        (thread_id, GENERAL, "Matter"),
        (post_id, forum, "Idea"),
    ]
    *_, starter, opening = await client.until("message", 3)
    assert starter.type is discord.MessageType.thread_starter_message
    assert (opening.id, opening.channel.id, opening.content) == (post_id, post_id, "what if")
    await threads[0].send("in here")
    assert await platform.texts(thread_id) == ["in here"] and await platform.texts(GENERAL) == []


async def test_an_archived_thread_opens_for_words_and_not_for_edits_unless_it_is_locked(
    client: Listener, platform: Control
) -> None:
    """50083 is what an answer to a closed matter meets; what was said before stays."""
    thread_id = await platform.open_thread(user=ADA)
    (thread,) = await client.until("thread")
    sent = await thread.send("open")
    await platform.archive(thread_id)
    await client.until("thread update")
    with pytest.raises(discord.HTTPException) as refused:
        await sent.edit(content="changed")
    assert refused.value.code == 50083
    await thread.typing()
    assert (await platform.state())["channels"][str(thread_id)]["archived"]
    await thread.send("opens it")
    assert not (await platform.state())["channels"][str(thread_id)]["archived"]
    await platform.lock(thread_id, archived=True)
    with pytest.raises(discord.HTTPException) as refused:
        await thread.send("too late")
    assert (refused.value.status, refused.value.code) == (400, 50083)
    with pytest.raises(discord.Forbidden) as forbidden:
        await thread.edit(archived=False)
    assert forbidden.value.code == 50013
    await platform.delete_channel(thread_id)
    await client.until("thread delete")
    with pytest.raises(discord.NotFound) as gone:
        await thread.send("gone")
    assert gone.value.code == 10003
    assert await platform.texts(GENERAL) == []


async def test_the_bot_is_told_what_it_may_not_do(client: Listener, platform: Control) -> None:
    """Each refusal has a code by which a channel decides whether to wait, to give up or to say it elsewhere."""
    hidden = await platform.add_channel("hidden", denied=["view"])
    mute = await platform.add_channel("mute", denied=["send"])
    await platform.close_dm(ADA)
    said = await platform.say("yes?", user=BEN)

    async def code(call: Any) -> int:
        with pytest.raises(discord.HTTPException) as refused:
            await call
        return refused.value.code

    assert await code(client.get_partial_messageable(hidden).send("x")) == 50001
    assert await code(client.get_partial_messageable(mute).send("x")) == 50013
    assert await code(client.get_partial_messageable(4711).send("x")) == 10003
    closed = int((await client.http.start_private_message(ADA))["id"])
    assert await code(client.get_partial_messageable(closed).send("x")) == 50007
    there = client.get_partial_messageable(said.channel)
    assert await code(there.send("x" * 2001)) == 50035
    assert await code(there.send(" \n ")) == 50006
    assert await code(there.get_partial_message(said.message_id).edit(content="x")) == 50005
    assert await code(there.fetch_message(12)) == 10008
    assert [one["kind"] for one in await platform.violations()] == ["too long"]
    await platform.deny(mute)
    await client.get_partial_messageable(mute).send("now")
    await platform.say("unseen", user=ADA, channel=hidden)
    await platform.wait(delivered=True)
    assert [one.content for kind, one in client.heard if kind == "message"] == ["yes?"]


async def test_guilds_and_channels_come_and_go(client: Listener, platform: Control) -> None:
    """Being let in, thrown out and let in again; an outage is neither."""
    guild, channel = await platform.add_guild("Second")
    assert channel is not None
    (joined,) = await client.until("join")
    assert (joined.id, [one.id for one in joined.text_channels]) == (guild, [channel])
    await platform.remove_guild(guild)
    (left,) = await client.until("remove")
    assert left.id == guild
    with pytest.raises(discord.Forbidden) as refused:
        await client.get_partial_messageable(channel).send("still there?")
    assert refused.value.code == 50001
    await platform.add_guild("Second", guild=guild)
    await client.until("join", 2)
    await client.get_partial_messageable(channel).send("back")
    await platform.delete_channel(channel)
    (deleted,) = await client.until("channel delete")
    assert deleted.id == channel
    await platform.remove_guild(GUILD, unavailable=True)
    await platform.wait(delivered=True)
    assert len(await client.until("remove")) == 1


async def test_a_nonce_says_a_thing_once(client: Listener, platform: Control) -> None:
    """A message that a restarted process sends again is not shown again, for as long as Discord remembers."""
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    first = await there.send("once", nonce="row-1")
    assert (await there.send("once", nonce="row-1")).id == first.id
    assert first.nonce == "row-1" and (await client.until("own"))[0].nonce == "row-1"
    assert (await there.send("other", nonce="row-2")).id != first.id
    assert (await platform.state())["deduplicated"] == 1
    await platform.pass_time(301)
    assert (await there.send("once", nonce="row-1")).id != first.id
    with pytest.raises(discord.HTTPException):
        await there.send("x", nonce="n" * 26)


async def test_history_is_paged_by_ids_that_tell_the_time(client: Listener, platform: Control) -> None:
    """A gap is caught up by asking for what came after the last id; what was said earlier stands earlier."""
    at = time.time() - 3_600
    for n in range(7):
        await platform.say(str(n), user=ADA, channel=GENERAL, sent_at=at + n)
    old = await platform.say("old", user=ADA, channel=GENERAL, sent_at=at - 60)
    channel = client.get_partial_messageable(GENERAL)
    after = [one async for one in channel.history(after=discord.Object(old.message_id), limit=5, oldest_first=True)]
    assert [one.content for one in after] == ["0", "1", "2", "3", "4"]
    assert abs(after[0].created_at.timestamp() - at) < 0.01
    assert [one.content async for one in channel.history(limit=2)] == ["6", "5"]
    before = channel.history(before=discord.Object(after[2].id), limit=None)
    assert [one.content async for one in before] == ["1", "0", "old"]
    around = channel.history(around=discord.Object(after[2].id), limit=3)
    assert {one.content async for one in around} == {"1", "2", "3"}
    raw = await client.http.logs_from(GENERAL, 2, after=old.message_id)
    assert [one["content"] for one in raw] == ["1", "0"]


async def test_a_dropped_connection_resumes_with_all_that_was_said(client: Listener, platform: Control) -> None:
    """RESUME tells what was missed, once and in order."""
    await platform.say("before", user=ADA)
    await client.message()
    await platform.gateway(accepting=False)
    assert await platform.drop_connection() == 1
    for n in range(3):
        await platform.say(f"gap {n}", user=ADA, channel=GENERAL)
    await platform.gateway(accepting=True)
    await client.until("resumed")
    await platform.say("after", user=ADA)
    heard = [one.content for one in await client.until("message", 5)]
    assert heard == ["before", "gap 0", "gap 1", "gap 2", "after"]
    state = (await platform.state())["gateway"]
    assert (state["identifies"], state["resumes"], len(await client.until("ready"))) == (1, 1, 1)
    assert state["replayed"] >= 3


@pytest.mark.parametrize("how", ["reconnect", "close", "invalidate"])
async def test_discord_asks_the_bot_to_come_back(client: Listener, platform: Control, how: str) -> None:
    """Op 7, an odd close code and a resumable op 9 all end in RESUME, not in a new session."""
    if how == "reconnect":
        await platform.reconnect()
    elif how == "close":
        await platform.drop_connection(code=4000)
    else:
        await platform.invalidate(resumable=True)
    await client.until("resumed")
    await platform.say("still?", user=ADA)
    await client.message()
    assert (await platform.state())["gateway"]["identifies"] == 1


@pytest.mark.parametrize("how", ["told", "forgotten", "too late"])
async def test_an_invalid_session_is_begun_anew_and_the_gap_is_only_in_the_history(
    client: Listener, platform: Control, how: str
) -> None:
    """After the window, or when Discord has lost the session, only REST has what was said."""
    if how == "told":
        await platform.invalidate()
    else:
        async with platform.offline(resumable=how == "too late"):
            await platform.say("missed", user=ADA, channel=GENERAL)
            await platform.pass_time(121)
    await client.until("ready", 2)
    await platform.say("heard", user=ADA, channel=GENERAL)
    assert (await client.message()).content == "heard"
    state = (await platform.state())["gateway"]
    assert (state["identifies"], state["resumes"], state["sessions"]) == (2, 0, 1)
    channel = client.get_partial_messageable(GENERAL)
    assert [one.content async for one in channel.history()] == ["heard", *([] if how == "told" else ["missed"])]


async def test_heartbeats_are_answered_until_they_are_not(platform: Control) -> None:
    """A gateway that stays connected and goes silent is what a watchdog is for."""
    await platform.gateway(heartbeat_ms=50)
    async with listening(platform) as client:
        await client.until("ready")
        await platform.wait(heartbeats=3)
        assert client.latency < 5
        await platform.gateway(acks=False, events=False)
        await platform.say("unheard", user=ADA)
        before = (await platform.state())["gateway"]["heartbeats"]
        await platform.wait(heartbeats=before + 3)
        assert not [kind for kind, _ in client.heard if kind == "message"]
        assert (await platform.state())["gateway"]["connected"]


async def test_a_wrong_token_is_told_at_both_doors(platform: Control) -> None:
    """REST says 401, the gateway closes with 4004."""
    async with Listener() as stranger:
        with pytest.raises(discord.LoginFailure):
            await stranger.start("MTIz.wrong.token")
    async with listening(platform) as client:
        await client.until("ready")
        await platform.revoke()
        with pytest.raises(discord.HTTPException) as refused:
            await client.fetch_channel(GENERAL)
        assert refused.value.status == 401
    await platform.revoke(revoked=False)
    async with Listener() as late:
        await late.login(platform.token)
        await platform.revoke()
        with pytest.raises(discord.ConnectionClosed) as closed:
            await late.connect()
    assert closed.value.code == 4004


async def test_the_message_content_intent_has_to_be_switched_on(platform: Control) -> None:
    """Asked for and off: close code 4014. Not asked for: messages without words, but for the bot's own business."""
    await platform.bot(reads_messages=False)
    async with Listener() as greedy:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await greedy.start(platform.token)
    assert (await platform.state())["gateway"]["refused"] == [4014]
    async with listening(platform, content=False) as client:
        await client.until("ready")
        assert not client.application_flags.gateway_message_content_limited
        await platform.say("chatter", user=ADA, channel=GENERAL)
        await platform.say(f"{platform.mention} hi", user=ADA, channel=GENERAL)
        await platform.say("direct", user=ADA)
        assert [one.content for one in await client.until("message", 3)] == ["", f"{platform.mention} hi", "direct"]
        history = [one.content async for one in client.get_partial_messageable(GENERAL).history()]
        assert history == [f"{platform.mention} hi", ""]


COMMANDS: list[JSON] = [
    {
        "name": "recall",
        "description": "Ask",
        "options": [{"name": "what", "description": "What", "type": 3, "required": True, "autocomplete": True}],
    },
    {"name": "secret", "description": "For admins", "default_member_permissions": "32"},
]


@pytest.fixture
async def offered(client: Listener, platform: Control) -> Listener:
    """A client whose commands are registered: in the guild, and elsewhere for direct chats only."""
    application = client.application_id
    assert application is not None
    await client.http.bulk_upsert_guild_commands(application, GUILD, COMMANDS)
    await client.http.bulk_upsert_global_commands(application, [{**COMMANDS[0], "contexts": [1]}])
    return client


async def test_a_command_is_deferred_answered_and_followed_up(offered: Listener, platform: Control) -> None:
    """The course of every command: the sign that something is made, the answer in its place, and more after it."""
    asked = await platform.slash("recall", {"what": "tea"}, user=ADA, channel=GENERAL)
    interaction = await offered.interaction()
    assert (interaction.id, interaction.user.id, interaction.guild_id) == (asked, ADA, GUILD)
    assert interaction.data["options"] == [{"name": "what", "type": 3, "value": "tea"}]
    await interaction.response.defer(thinking=True, ephemeral=True)
    await platform.wait(responded=asked)
    with pytest.raises(TimeoutError, match="is not answered"):
        await platform.wait(answered=asked, timeout=0)
    await interaction.edit_original_response(content="green")
    await platform.wait(answered=asked)
    more = await interaction.followup.send("and black", ephemeral=True, wait=True)
    assert await platform.ephemeral(ADA, GENERAL) == ["green", "and black"]
    assert await platform.ephemeral(BEN, GENERAL) == await platform.texts(GENERAL) == []
    await more.edit(content="and white")
    assert await platform.ephemeral(ADA, GENERAL) == ["green", "and white"]
    assert (await platform.interaction(asked))["ephemeral"]


async def test_an_open_answer_stands_in_the_channel(offered: Listener, platform: Control) -> None:
    """In a direct chat, and where it is not ephemeral; the first follow-up completes what was deferred."""
    asked = await platform.slash("recall", {"what": "tea"}, user=ADA)
    interaction = await offered.interaction()
    await interaction.response.defer(thinking=True)
    await interaction.followup.send("green", wait=True)
    dm = await platform.dm(ADA)
    assert await platform.texts(dm) == ["green"]
    assert (await platform.message((await platform.interaction(asked))["original"]))["content"] == "green"
    await platform.slash("recall", {"what": "tea"}, user=ADA)
    second = await offered.interaction(2)
    done = await second.response.send_message("at once")
    assert done.message_id is not None
    assert await platform.texts(dm) == ["green", "at once"]


async def test_a_late_callback_and_a_second_one_are_refused(offered: Listener, platform: Control) -> None:
    """10062 once it is too late, 40060 for the second: the command must run all the same."""
    await platform.slash("recall", {"what": "tea"}, user=ADA)
    late = await offered.interaction()
    await platform.pass_time(SECONDS + 1)
    with pytest.raises(discord.NotFound) as refused:
        await late.response.defer(thinking=True)
    assert refused.value.code == 10062
    with pytest.raises(discord.NotFound) as refused:
        await late.followup.send("nothing to follow")
    assert refused.value.code == 10015
    await platform.slash("recall", {"what": "tea"}, user=ADA)
    twice = await offered.interaction(2)
    callback = f"{platform.api_url}/interactions/{twice.id}/{twice.token}/callback"
    async with httpx.AsyncClient(timeout=SECONDS) as http:
        assert (await http.post(callback, json={"type": 5})).status_code == 204
        second = await http.post(callback, json={"type": 5})
    assert (second.status_code, second.json()["code"]) == (400, 40060)
    assert [one["kind"] for one in await platform.violations()] == ["late", "double answer"]
    await platform.pass_time(15 * 60)
    with pytest.raises(discord.NotFound) as refused:
        await twice.edit_original_response(content="an hour later")
    assert refused.value.code == 10015


async def test_a_button_changes_the_message_it_stands_under(client: Listener, platform: Control) -> None:
    """A deferred update makes @original the pressed message; a button that is not there can't be pressed."""
    said = await platform.say("forget it", user=ADA)
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button(label="Yes", custom_id="yes"))
    asking = await client.get_partial_messageable(said.channel).send("Sure?", view=view)
    with pytest.raises(ControlError, match="no button 'no'"):
        await platform.press(asking.id, "no", user=ADA)
    pressed = await platform.press(asking.id, "yes", user=ADA)
    interaction = await client.interaction()
    assert interaction.message is not None and interaction.message.id == asking.id
    assert interaction.data["custom_id"] == "yes"
    await interaction.response.defer()
    await interaction.edit_original_response(content="Done.", view=None)
    assert await platform.texts(said.channel) == ["Done."]
    assert (await platform.message(asking.id))["components"] == []
    assert (await platform.interaction(pressed))["response"] == 6
    await platform.press(asking.id, "yes", user=ADA, stale=True)


async def test_a_form_is_filled_in_and_sent_off(offered: Listener, platform: Control) -> None:
    """A form is no answer: what is entered comes as an interaction of its own."""
    asked = await platform.slash("recall", {"what": "tea"}, user=ADA, channel=GENERAL)
    interaction = await offered.interaction()
    form = discord.ui.Modal(title="Recall", custom_id="recall tea", timeout=None)
    form.add_item(discord.ui.TextInput(label="More", custom_id="more", max_length=20))
    await interaction.response.send_modal(form)
    await platform.wait(answered=asked)
    with pytest.raises(ControlError, match="does not take 21"):
        await platform.submit(asked, "x" * 21)
    sent = await platform.submit(asked, "with milk")
    filled = await offered.interaction(2)
    assert filled.type is discord.InteractionType.modal_submit and filled.id == sent
    assert filled.data["custom_id"] == "recall tea"
    assert filled.data["components"][0]["components"][0]["value"] == "with milk"
    await filled.response.send_message("noted", ephemeral=True)
    assert await platform.ephemeral(ADA, GENERAL) == ["noted"]
    late = discord.ui.Modal(title="T" * 46, custom_id="x")
    late.add_item(discord.ui.TextInput(label="l"))
    await platform.slash("recall", {"what": "x"}, user=ADA, channel=GENERAL)
    with pytest.raises(discord.HTTPException) as refused:
        await (await offered.interaction(3)).response.send_modal(late)
    assert refused.value.code == 50035


async def test_choices_are_shown_while_a_person_types(offered: Listener, platform: Control) -> None:
    """Typed text comes marked as such; where no choices come in time, a person sees none."""

    async def choose() -> None:
        interaction = await offered.interaction()
        typed = interaction.data["options"][0]
        assert typed["focused"] and typed["value"] == "te"
        await interaction.response.autocomplete([discord.app_commands.Choice(name="Tea, green", value="tea")])

    choosing = asyncio.create_task(choose())
    choices = await platform.autocomplete("recall", {"what": "te"}, user=ADA, channel=GENERAL)
    await choosing
    assert choices == [{"name": "Tea, green", "value": "tea"}]
    await platform.rules(answer_seconds=0)
    assert await platform.autocomplete("recall", {"what": "te"}, user=ADA, channel=GENERAL) is None


async def test_commands_are_offered_where_they_are_registered_and_counted(offered: Listener, platform: Control) -> None:
    """Scopes, contexts and rights decide who sees a command; creates are counted, changes are not."""
    assert [one["name"] for one in await platform.commands(GUILD)] == ["recall", "secret"]
    assert [one["name"] for one in await platform.commands()] == ["recall"]
    with pytest.raises(ControlError, match="not offered /secret"):
        await platform.slash("secret", user=ADA, channel=GENERAL)
    await platform.admin(ADA)
    await platform.slash("secret", user=ADA, channel=GENERAL)
    with pytest.raises(ControlError, match="not offered /secret"):
        await platform.slash("secret", user=ADA)
    with pytest.raises(ControlError, match=r"lacks \['what'\]"):
        await platform.slash("recall", user=ADA)
    application = offered.application_id
    assert application is not None
    await offered.http.bulk_upsert_guild_commands(application, GUILD, COMMANDS)
    state = await platform.state()
    assert (state["puts"][str(GUILD)], state["creates"][str(GUILD)]) == (2, 2)
    await platform.rules(create_limit=2)
    extra = {"name": "more", "description": "More"}
    with pytest.raises(discord.HTTPException) as refused:
        await offered.http.bulk_upsert_guild_commands(application, GUILD, [*COMMANDS, extra])
    assert refused.value.code == 30034
    with pytest.raises(discord.HTTPException) as refused:
        await offered.http.bulk_upsert_guild_commands(application, GUILD, [{"name": "Bad Name", "description": "x"}])
    assert refused.value.code == 50035
    assert len(await platform.commands(GUILD)) == 2


async def test_a_bucket_makes_its_client_wait(client: Listener, platform: Control) -> None:
    """The headers alone keep a well-behaved client from being refused; other places have buckets of their own."""
    await platform.limit("send", 2, per=0.4)
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    await asyncio.gather(*(there.send(str(n)) for n in range(5)))
    assert len(await platform.texts(said.channel)) == 5
    assert await platform.violations() == []
    async with httpx.AsyncClient(headers={"Authorization": f"Bot {platform.token}"}, timeout=SECONDS) as http:
        url = f"{platform.api_url}/channels/{GENERAL}/messages"
        answers = [await http.post(url, json={"content": str(n)}) for n in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 429, 429]
    assert answers[0].headers["x-ratelimit-remaining"] == "1"
    assert 0 < answers[2].json()["retry_after"] <= 0.4
    assert [one["kind"] for one in await platform.violations("early")] == ["early"]


@pytest.mark.parametrize("everywhere", [False, True])
async def test_a_flood_is_waited_out_or_told(client: Listener, platform: Control, everywhere: bool) -> None:
    """A scripted 429 is a real one: waited for by the library when short, told when longer than it waits."""
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    await platform.fault("flood", method="send", retry_after=0.3, everywhere=everywhere)
    await there.send("in the end")
    assert await platform.texts(said.channel) == ["in the end"] and await platform.violations() == []
    sends = await platform.requests("send")
    assert [one["status"] for one in sends] == [429, 200] and sends[1]["at"] - sends[0]["at"] >= 0.3
    await platform.fault("flood", method="send", retry_after=90, everywhere=everywhere)
    with pytest.raises(discord.RateLimited) as limited:
        await there.send("too long")
    assert limited.value.retry_after == 90
    await platform.pass_time(90)
    await there.send("later")


@pytest.mark.parametrize("at", ["before effect", "after effect"])
@pytest.mark.parametrize("do", ["reset", "close", "cut", "garbage", "status"])
async def test_a_broken_request_tells_its_client_nothing_of_its_effect(
    client: Listener, platform: Control, do: Any, at: Any
) -> None:
    """The undecidable case: both look alike, and only the channel knows."""
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    await platform.fault(do, at=at, method="send", text="broken", status=503)
    errors = (aiohttp.ClientError, discord.DiscordServerError, json.JSONDecodeError)
    with pytest.raises(errors):
        await there.send("broken")
    await there.send("whole")
    shown = ["broken"] if at == "after effect" else []
    assert await platform.texts(said.channel) == [*shown, "whole"]
    assert [one["text"] for one in (await platform.state())["unanswered"]] == ["broken"]


async def test_the_library_repeats_a_server_error_under_the_same_nonce(client: Listener, platform: Control) -> None:
    """Its own retry after a 500 that had an effect must not double the message."""
    said = await platform.say("hi", user=ADA)
    await platform.fault("refuse", at="after effect", method="send", status=500, description="500: Internal")
    await client.get_partial_messageable(said.channel).send("once")
    assert await platform.texts(said.channel) == ["once"]
    assert (await platform.state())["deduplicated"] == 1


async def test_a_hanging_request_goes_on_when_it_is_healed(client: Listener, platform: Control) -> None:
    """A hang lasts until the client or the test has had enough."""
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    await platform.fault("hang", method="send", nth=2)
    await there.send("first")
    slow = asyncio.create_task(there.send("in the end"))
    await platform.wait(method="send", count=2)
    assert not slow.done()
    await platform.heal()
    await slow
    assert (await platform.texts(said.channel)) == ["first", "in the end"]
    await platform.fault("refuse", method="send", status=403, code=50013, description="Missing Permissions")
    with pytest.raises(discord.Forbidden):
        await there.send("scripted")


async def test_pings_and_previews_are_recorded(client: Listener, platform: Control) -> None:
    """Discord would let them pass; a bot that repeats what a model said must not ask for them."""
    said = await platform.say("hi", user=ADA)
    there = client.get_partial_messageable(said.channel)
    await there.send("see <https://example.org> and `https://example.org`")
    await there.send("see https://example.org", suppress_embeds=True)
    await there.send(f"@everyone <@{ADA}>", allowed_mentions=FORBID)
    assert await platform.violations() == []
    await there.send("see https://example.org")
    await there.send(f"@everyone <@{ADA}>", allowed_mentions=discord.AllowedMentions(users=True))
    preview, ping = await platform.violations()
    assert (preview["kind"], ping["kind"], ping["pinged"]) == ("preview", "ping", [f"<@{ADA}>"])
    async with httpx.AsyncClient(headers={"Authorization": f"Bot {platform.token}"}, timeout=SECONDS) as http:
        await http.post(f"{platform.api_url}/channels/{GENERAL}/messages", json={"content": "quiet"})
    assert len(await platform.violations("ping")) == 2


async def test_bots_of_one_platform_do_not_meet() -> None:
    """State is by token: two channels of one product must not hear each other."""
    async with serving(("MTEx.one", "MjIy.two")) as one:
        two = one.of("MjIy.two")
        assert (one.bot_id, two.bot_id) == (111, 222)
        with reached(one):
            async with listening(one) as first, listening(two) as second:
                await first.until("ready")
                await second.until("ready")
                await two.say("for two", user=ADA)
                assert (await second.message()).content == "for two"
                await one.wait(delivered=True)
                assert not [kind for kind, _ in first.heard if kind == "message"]


@pytest.mark.parametrize(
    ("at", "shown", "unanswered"),
    [("before effect", [], 1), ("after effect", ["one"], 1), ("after answer", ["one"], 0)],
)
@pytest.mark.campaign
async def test_a_process_is_killed_at_a_named_point_of_its_send(
    platform: Control, at: Any, shown: list[str], unanswered: int
) -> None:
    """The three moments a crash test has to try, and the count it measures itself against."""
    process = await sender(platform)
    await platform.fault("kill", at=at, method="send", pid=process.pid)
    out, _ = await process.communicate(b"go\n")
    assert process.returncode == -signal.SIGKILL and b"end" not in out
    await platform.wait(idle=0)
    state = await platform.state()
    assert await platform.texts(GENERAL) == shown
    assert len(state["unanswered"]) == unanswered
    assert [len(kill["unanswered"]) for kill in state["kills"]] == [unanswered]


async def test_a_late_effect_is_lost_with_its_client(client: Listener, platform: Control) -> None:
    """In the mixed model half of the sends cut off have happened and half have not, and nothing tells which."""
    await platform.timing(latency_ms=500 * SECONDS, effect="mixed")
    there = client.get_partial_messageable(GENERAL)
    for n in range(12):
        task = asyncio.create_task(there.send(str(n)))
        await platform.wait(method="send", count=n + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await settle()
    leap(SECONDS / 2)
    await platform.wait(idle=0)
    assert 0 < len(await platform.texts(GENERAL)) < 12
    assert len((await platform.state())["unanswered"]) == 12


async def test_the_platform_runs_as_a_process_of_its_own() -> None:
    """A product that is killed must not take its platform with it."""
    async with running("--latency-ms", "5", "--model-ms", "0") as platform:
        with reached(platform):
            async with listening(platform) as client:
                await client.until("ready")
                said = await platform.say("hello", user=ADA)
                await (await client.message()).channel.send("hello too")
                await platform.wait(bot_messages=1, channel=said.channel, text="too")
        async with httpx.AsyncClient(timeout=SECONDS) as http:
            question = {"model": "test", "messages": [{"role": "user", "content": "hi"}]}
            answer = await http.post(f"{platform.model_url}/chat/completions", json=question)
        assert answer.json()["choices"][0]["message"]["content"] == "Answer to: hi"
        await platform.reset()
        assert (await platform.state())["bot_messages"] == []
        with pytest.raises(TimeoutError, match="0 of 1 messages"):
            await platform.wait(bot_messages=1, timeout=0)


def test_the_addresses_of_the_library_are_given_back() -> None:
    """Another test in the same process must not reach a platform that is gone."""
    before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    with reached(Control("http://127.0.0.1:1", "a.b.c")):
        assert discord.http.Route.BASE == "http://127.0.0.1:1/api/v10"
    assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)


async def sender(platform: Control) -> Process:
    """A process that sends one message when it is told to, says so, and goes on for a while."""
    url, headers = f"{platform.api_url}/channels/{GENERAL}/messages", {"Authorization": f"Bot {platform.token}"}
    program = (
        "import sys, time, httpx\n"
        "sys.stdin.readline()\n"
        f"httpx.post({url!r}, headers={headers!r}, json={{'content': 'one', 'allowed_mentions': {{}}}},"
        " trust_env=False, timeout=None)\n"
        "time.sleep(30)\n"
        "print('end')\n"
    )
    return await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=PIPE, stdout=PIPE)
