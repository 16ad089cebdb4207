"""The Discord that other tests stand on is as strict as Discord, as discord.py sees it, which nobody here wrote.

What it can do shows in the channel's tests, which fail without it; here stands what they would pass without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import discord
import httpx
import pytest

from tests.kit.patience import SECONDS, limit
from tests.platforms.client import ControlError
from tests.platforms.discord import GENERAL, GUILD, Control, reached, serving

ADA, BEN = 7, 8
JSON = dict[str, Any]
FORBID = discord.AllowedMentions.none()


class Listener(discord.Client):
    """discord.py as it comes, noting what it hears."""

    def __init__(self) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
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

    async def interaction(self, count: int = 1) -> Any:
        """The `count`th interaction; its data are of many shapes, which tests know better than types."""
        return (await self.until("interaction", count))[count - 1]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Begin a new session at once; the library waits five seconds before every one but the first."""

    async def on_ready(self) -> None:
        self.note("ready", None)

    async def on_message(self, message: discord.Message) -> None:
        if message.author != self.user:
            self.note("message", message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.note("interaction", interaction)


@pytest.fixture
async def platform() -> AsyncIterator[Control]:
    async with serving() as one:
        with reached(one):
            yield one


@pytest.fixture
async def client(platform: Control) -> AsyncIterator[Listener]:
    client = Listener()
    task = asyncio.create_task(client.start(platform.token))
    task.add_done_callback(client.end)
    try:
        await client.until("ready")
        yield client
    finally:
        beating = getattr(client.ws, "_keep_alive", None)
        await client.close()
        await asyncio.wait([task], timeout=SECONDS)
        if task.done() and not task.cancelled():
            task.exception()
        if beating is not None:  # in a thread that wants a loop which runs
            await asyncio.to_thread(beating.join, SECONDS)


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


def test_the_addresses_of_the_library_are_given_back() -> None:
    """Another test in the same process must not reach a platform that is gone."""
    before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    with reached(Control("http://127.0.0.1:1", "a.b.c")):
        assert discord.http.Route.BASE == "http://127.0.0.1:1/api/v10"
    assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
