"""The Telegram that other tests stand on, kept honest by a client nobody here wrote; the channel's tests bring another."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import httpx
import pytest
import telegram
from aiogram import Bot as AiogramBot
from aiogram import Dispatcher
from aiogram.types import Message
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web
from telegram import error as ptb_errors
from telegram.request import HTTPXRequest

from agents.llm import ChatMessage, Request
from agents.providers.openai import OpenAIProvider
from agents.spec import ModelSpec
from memory.learn.answer import read_answer
from tests.kit.patience import SECONDS, leap, settle
from tests.platforms.client import ControlError
from tests.platforms.telegram import Control, File, running, serving

ADA, BEN, GROUP, FORUM = 7, 8, -50, -1005
JSON = dict[str, Any]


class Refusal(Exception):
    """An error as a client reports it: its kind, the platform's words, and what came with it."""

    def __init__(self, kind: str, words: str, number: int | None = None) -> None:
        super().__init__(f"{kind}: {words}".lower())
        self.kind = kind
        self.words = words.lower()
        self.number = number


class Client:
    """python-telegram-bot's Bot, which speaks in urlencoded forms."""

    def __init__(self, url: str, token: str) -> None:
        waits: Any = dict.fromkeys(("read_timeout", "write_timeout", "connect_timeout", "pool_timeout"), SECONDS)
        self.requests = [HTTPXRequest(httpx_kwargs={"trust_env": False, "verify": False}, **waits) for _ in range(2)]
        self.bot = telegram.Bot(
            token,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=self.requests[0],
            get_updates_request=self.requests[1],
        )

    async def me(self) -> JSON:
        return (await _read(self.bot.get_me())).to_dict()  # type: ignore[no-any-return]

    async def updates(
        self, offset: int | None = None, *, limit: int = 100, timeout: int = 0, allowed: list[str] | None = None
    ) -> list[JSON]:
        got = await _read(self.bot.get_updates(offset=offset, limit=limit, timeout=timeout, allowed_updates=allowed))
        return [one.to_dict() for one in got]

    async def send(self, chat: int, text: str, **more: Any) -> JSON:
        return (await _read(self.bot.send_message(chat, text, **self._more(more)))).to_dict()  # type: ignore[no-any-return]

    async def edit(self, chat: int, message: int, text: str, **more: Any) -> JSON:
        done = await _read(self.bot.edit_message_text(text, chat, message, **self._more(more)))
        return done.to_dict()  # type: ignore[no-any-return]

    async def answer(self, callback: str) -> bool:
        return bool(await _read(self.bot.answer_callback_query(callback)))

    async def act(self, chat: int, thread: int | None = None) -> bool:
        return bool(await _read(self.bot.send_chat_action(chat, "typing", message_thread_id=thread)))

    async def set_commands(
        self, commands: dict[str, str], language: str | None = None, scope: JSON | None = None
    ) -> bool:
        given = self.bot.set_my_commands(list(commands.items()), scope=_named(scope), language_code=language)
        return bool(await _read(given))

    async def delete_commands(self, language: str | None = None, scope: JSON | None = None) -> bool:
        return bool(await _read(self.bot.delete_my_commands(scope=_named(scope), language_code=language)))

    async def draft(self, chat: int, draft: int, text: str, **more: Any) -> bool:
        return bool(await _read(self.bot.send_message_draft(chat, draft, text, **self._more(more))))

    async def file(self, file_id: str) -> bytes:
        found = await _read(self.bot.get_file(file_id))
        return bytes(await _read(found.download_as_bytearray()))

    async def webhook(self, url: str, **more: Any) -> bool:
        return bool(await _read(self.bot.set_webhook(url, **more)))

    async def no_webhook(self) -> bool:
        return bool(await _read(self.bot.delete_webhook()))

    async def webhook_info(self) -> JSON:
        return (await _read(self.bot.get_webhook_info())).to_dict()  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        for request in self.requests:
            await request.shutdown()

    def _more(self, more: JSON) -> JSON:
        out: JSON = {name: value for name, value in more.items() if name in ("parse_mode", "message_thread_id")}
        if "entities" in more:
            out["entities"] = [telegram.MessageEntity(**one) for one in more["entities"]]
        if "buttons" in more:
            row = [telegram.InlineKeyboardButton(data, callback_data=data) for data in more["buttons"]]
            out["reply_markup"] = telegram.InlineKeyboardMarkup([row])
        if "rows" in more:
            rows = [[telegram.InlineKeyboardButton(one.title(), callback_data=one) for one in r] for r in more["rows"]]
            out["reply_markup"] = telegram.InlineKeyboardMarkup(rows)
        if "reply_to" in more:
            out["reply_parameters"] = telegram.ReplyParameters(
                more["reply_to"], allow_sending_without_reply=more.get("without")
            )
        return out


@pytest.fixture
async def platform() -> AsyncIterator[Control]:
    async with serving() as control:
        yield control


@pytest.fixture
async def client(platform: Control, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    # Else python-telegram-bot warns that a retry_after will one day be a timedelta.
    monkeypatch.setenv("PTB_TIMEDELTA", "1")
    made = Client(platform.url, platform.token)
    yield made
    await made.aclose()


async def test_a_bot_learns_who_it_is(client: Client) -> None:
    """The client refuses a getMe that lacks what the Bot API promises."""
    me = await client.me()
    assert (me["id"], me["is_bot"], me["username"]) == (4242, True, "remora_test_bot")
    assert me["can_read_all_group_messages"] is True


async def test_a_wrong_token_is_unauthorized(platform: Control) -> None:
    """The operator's commonest mistake has one answer."""
    stranger = Client(platform.url, "1:wrong")
    with pytest.raises(Refusal) as refused:
        await stranger.me()
    assert refused.value.kind == "unauthorized"
    await stranger.aclose()
    async with httpx.AsyncClient(base_url=platform.url, timeout=SECONDS) as plain:
        answer = await plain.get("/bot1:wrong/getMe")
        assert answer.status_code == 401
        assert answer.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}
        answer = await plain.get(f"/bot{platform.token}/getMeNot")
        assert answer.json() == {"ok": False, "error_code": 404, "description": "Not Found: method not found"}


async def test_a_poll_hangs_until_somebody_speaks(client: Client, platform: Control) -> None:
    """Without true long polling a bot would spin, and no test of its waiting would mean anything."""
    poll = asyncio.create_task(client.updates(timeout=int(SECONDS)))
    await platform.wait(polling=True)
    assert not poll.done()
    said = await platform.say("hello", user=ADA, name="Ada")
    (update,) = await poll
    assert update["update_id"] == said.update_id
    assert update["message"]["text"] == "hello"
    assert update["message"]["chat"]["type"] == "private"
    assert (await platform.state())["polls"]["hanging"] is False


async def test_only_an_offset_above_an_update_confirms_it(client: Client, platform: Control) -> None:
    """At-least-once delivery hangs on this and on nothing else."""
    ids = [(await platform.say(str(n), user=ADA)).update_id for n in range(3)]
    first = ids[0]
    assert first is not None and ids == [first, first + 1, first + 2]
    assert [u["update_id"] for u in await client.updates(limit=2)] == ids[:2]
    assert [u["update_id"] for u in await client.updates()] == ids, "an unconfirmed update comes again"
    assert [u["update_id"] for u in await client.updates(first + 1)] == ids[1:]
    assert [u["update_id"] for u in await client.updates()] == ids[1:], "a confirmed one does not"
    assert [u["update_id"] for u in await client.updates(-1)] == ids[2:]
    assert (await platform.state())["updates"]["confirmed"] == 2
    assert await client.updates(first + 3) == []


async def test_an_offset_from_another_numbering_is_answered_from_the_queues_head(
    client: Client, platform: Control
) -> None:
    """After a quiet week ids begin lower; a bot that only ever raises its offset would see the same for ever."""
    said = await platform.say("old", user=ADA)
    assert said.update_id is not None
    await client.updates(said.update_id + 1)
    await platform.number_updates(50)
    await platform.say("new", user=ADA)
    for _ in range(2):
        assert [u["update_id"] for u in await client.updates(said.update_id + 1)] == [50]
    assert await client.updates(51) == []


async def test_updates_come_twice_or_disordered_when_telegram_says_so(client: Client, platform: Control) -> None:
    """Disorder that a bot must survive has to be possible here."""
    ids = [(await platform.say(str(n), user=ADA)).update_id for n in range(4)]
    first = ids[0]
    assert first is not None
    await platform.redeliver(pending=1)
    assert [u["update_id"] for u in await client.updates()] == [*ids, ids[-1]]
    await client.updates(first + 4)
    await platform.redeliver(confirmed=2)
    assert len(await client.updates(first + 4)) == 2
    assert await client.updates(first + 4) == []
    for n in range(6):
        await platform.say(str(n), user=ADA)
    await platform.reorder(seed=3)
    got = [u["update_id"] for u in await client.updates()]
    assert got != sorted(got)


async def test_a_bot_gets_the_kinds_of_updates_it_asked_for(client: Client, platform: Control) -> None:
    """An adapter that forgets a kind in allowed_updates must fail its test."""
    await client.updates(allowed=["message"])
    said = await platform.say("before", user=ADA)
    assert await platform.edit(said.message_id, "after", chat=ADA) is None
    await client.updates(allowed=["message", "edited_message"])
    await platform.edit(said.message_id, "later", chat=ADA)
    _, edited = await client.updates()
    assert edited["edited_message"]["text"] == "later"
    assert edited["edited_message"]["message_id"] == said.message_id


async def test_of_two_pollers_the_older_is_sent_away(client: Client, platform: Control) -> None:
    """As on Telegram: the newcomer waits on, the old one gets 409."""
    older = asyncio.create_task(client.updates(timeout=int(SECONDS)))
    await platform.wait(polling=True)
    other = Client(platform.url, platform.token)
    newer = asyncio.create_task(other.updates(timeout=int(SECONDS)))
    with pytest.raises(Refusal, match="make sure that only one bot instance is running") as refused:
        await older
    assert refused.value.kind == "conflict"
    await platform.say("hello", user=ADA)
    assert len(await newer) == 1
    await other.aclose()


async def test_a_webhook_and_polling_exclude_each_other(client: Client, platform: Control) -> None:
    """A bot moved from a webhook must be told, not left deaf."""
    await client.webhook("https://example.org/hook")
    assert (await client.webhook_info())["url"] == "https://example.org/hook"
    with pytest.raises(Refusal, match="can't use getupdates method while webhook is active") as refused:
        await client.updates()
    assert refused.value.kind == "conflict"
    await client.webhook("")
    assert await client.updates() == []


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (" \n ", {}, "text must be non-empty"),
        ("x" * 4097, {}, "message is too long"),
        ("😀" * 2049, {}, "message is too long"),
        ("a_b", {"parse_mode": "MarkdownV2"}, "can't parse entities"),
        ("<b>x", {"parse_mode": "HTML"}, "can't parse entities"),
        ("hello", {"entities": [{"type": "bold", "offset": 0, "length": 6}]}, "ends after the end of the text"),
        ("hello", {"entities": [{"type": "bold", "offset": 9, "length": 1}]}, "begins after the end of the text"),
        ("😀", {"entities": [{"type": "bold", "offset": 1, "length": 1}]}, "in a middle of a utf-16 symbol"),
        ("hello", {"buttons": ["d" * 65]}, "button_data_invalid"),
        ("hello", {"reply_to": 99}, "message to be replied not found"),
        ("hello", {"message_thread_id": 5}, "message thread not found"),
    ],
)
async def test_what_telegram_refuses_is_refused_and_not_shown(
    client: Client, platform: Control, text: str, more: JSON, words: str
) -> None:
    """An emulator that takes everything proves nothing."""
    await platform.say("hi", user=ADA)
    with pytest.raises(Refusal) as refused:
        await client.send(ADA, text, **more)
    assert refused.value.kind == "bad" and words in refused.value.words
    assert await platform.texts(ADA) == []


async def test_the_longest_text_and_a_forgiven_reply_are_taken(client: Client, platform: Control) -> None:
    """The limits are no tighter than Telegram's."""
    await platform.say("hi", user=ADA)
    await client.send(ADA, "x" * 4096)
    await client.send(ADA, "😀" * 2048)
    sent = await client.send(ADA, "a reply to nothing", reply_to=99, without=True)
    assert "reply_to_message" not in sent
    await client.send(ADA, "a\\_b", parse_mode="MarkdownV2")


async def test_an_edit_replaces_text_and_keyboard_or_says_that_nothing_changed(
    client: Client, platform: Control
) -> None:
    """Repeating an edit is how a crashed answer is made sure of; its answer must be the real one."""
    said = await platform.say("hi", user=ADA)
    sent = await client.send(ADA, "…", buttons=["stop"])
    edited = await client.edit(ADA, sent["message_id"], "done")
    assert edited["text"] == "done" and "reply_markup" not in edited
    with pytest.raises(Refusal) as refused:
        await client.edit(ADA, sent["message_id"], "done")
    assert refused.value.kind == "bad" and "message is not modified" in refused.value.words
    await client.edit(ADA, sent["message_id"], "done", entities=[{"type": "bold", "offset": 0, "length": 4}])
    with pytest.raises(Refusal, match="message can't be edited"):
        await client.edit(ADA, said.message_id, "yours")
    await platform.delete(sent["message_id"], chat=ADA)
    with pytest.raises(Refusal, match="message to edit not found"):
        await client.edit(ADA, sent["message_id"], "again")
    message = (await platform.state())["chats"][str(ADA)]["messages"][1]
    assert [edit["text"] for edit in message["edits"]] == ["…", "done"] and message["deleted"]


async def test_topics_are_places_of_their_own(client: Client, platform: Control) -> None:
    """General has no id, a reply's thread is no topic, and what is closed or deleted takes nothing."""
    await platform.group(FORUM, forum=True)
    topic = await platform.topic(FORUM, "Cats")
    await platform.say("in it", user=ADA, chat=FORUM, thread=topic)
    general = await platform.say("in General", user=ADA, chat=FORUM)
    await platform.say("a reply there", user=BEN, chat=FORUM, reply_to=general.message_id)
    opened, inside, outside, reply = (u["message"] for u in await client.updates())
    assert opened["forum_topic_created"]["name"] == "Cats" and opened["message_id"] == topic
    assert inside["is_topic_message"] and inside["message_thread_id"] == topic
    assert inside["reply_to_message"]["message_id"] == topic
    assert not outside.get("is_topic_message") and not outside.get("message_thread_id")
    assert reply["message_thread_id"] == general.message_id and not reply.get("is_topic_message")

    sent = await client.send(FORUM, "an answer", message_thread_id=topic)
    assert sent["message_thread_id"] == topic
    await client.act(FORUM, topic)
    for nowhere in (1, general.message_id):
        with pytest.raises(Refusal, match="message thread not found"):
            await client.send(FORUM, "lost", message_thread_id=nowhere)
    await platform.close_topic(FORUM, topic)
    with pytest.raises(Refusal) as closed:
        await client.send(FORUM, "late", message_thread_id=topic)
    assert "topic_closed" in closed.value.words
    await platform.delete_topic(FORUM, topic)
    with pytest.raises(Refusal, match="message thread not found"):
        await client.send(FORUM, "later", message_thread_id=topic)
    assert await platform.texts(FORUM) == []


async def test_a_button_is_pressed_and_answered_once(client: Client, platform: Control) -> None:
    """A press that nobody answers leaves a clock on the person's screen."""
    await platform.say("hi", user=ADA)
    sent = await client.send(ADA, "sure?", buttons=["y:1"])
    callback = await platform.press(sent["message_id"], "y:1", chat=ADA, user=ADA)
    got = (await client.updates())[-1]["callback_query"]
    assert (got["id"], got["data"], got["message"]["message_id"]) == (callback, "y:1", sent["message_id"])
    assert await platform.answered(callback) is None
    await client.answer(callback)
    await platform.wait(answered=callback)
    with pytest.raises(Refusal, match="query is too old"):
        await client.answer(callback)
    stale = await platform.press(sent["message_id"], "y:1", chat=ADA, user=ADA, inaccessible=True)
    got = (await client.updates())[-1]["callback_query"]
    assert got["id"] == stale and got["message"]["chat"]["id"] == ADA


async def test_a_bot_that_is_not_wanted_is_told_why(client: Client, platform: Control) -> None:
    """Blocked, kicked, deactivated, unknown and never met are five different answers."""
    await platform.say("hi", user=ADA)
    await platform.say("hi", user=BEN, chat=GROUP, kind="supergroup")
    await platform.member(ADA, "block")
    await platform.member(GROUP, "kick", user=BEN)
    blocked, kicked = (u["my_chat_member"] for u in (await client.updates())[-2:])
    assert blocked["new_chat_member"]["status"] == "kicked" and blocked["chat"]["id"] == ADA
    assert kicked["new_chat_member"]["status"] == "kicked" and kicked["from"]["id"] == BEN
    await platform.say("hi", user=9)
    await platform.member(9, "deactivate")
    for chat, kind, words in (
        (ADA, "forbidden", "bot was blocked by the user"),
        (GROUP, "forbidden", "bot was kicked from the supergroup chat"),
        (9, "forbidden", "user is deactivated"),
        (BEN, "forbidden", "bot can't initiate conversation with a user"),
        (123_456, "bad", "chat not found"),
    ):
        with pytest.raises(Refusal) as refused:
            await client.send(chat, "hello")
        assert refused.value.kind == kind and words in refused.value.words
    await platform.member(ADA, "unblock")
    await client.send(ADA, "hello again")


async def test_a_group_goes_on_as_a_supergroup(client: Client, platform: Control) -> None:
    """The new id comes with the refusal and in a service message."""
    await platform.say("hi", user=ADA, chat=GROUP)
    new = await platform.migrate(GROUP)
    left, came = (u["message"] for u in (await client.updates())[-2:])
    assert left["migrate_to_chat_id"] == new and came["migrate_from_chat_id"] == GROUP
    with pytest.raises(Refusal) as refused:
        await client.send(GROUP, "hello")
    assert refused.value.kind == "moved" and refused.value.number == new
    await client.send(new, "hello")


async def test_who_sends_too_much_has_to_wait(client: Client, platform: Control) -> None:
    """A request inside a retry_after is what gets real bots punished, so each is counted."""
    await platform.say("hi", user=ADA)
    await platform.say("hi", user=ADA, chat=GROUP)
    await platform.flood(private_burst=2, retry_after=40)
    for n in range(2):
        await client.send(ADA, f"burst {n}")
    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            await client.send(ADA, "too much")
        assert refused.value.kind == "flood" and refused.value.number == 40
    assert len((await platform.state())["violations"]) == 1
    sent = await client.send(GROUP, "0")
    for n in range(1, 20):
        await client.edit(GROUP, sent["message_id"], str(n))
    with pytest.raises(Refusal, match="too many requests"):
        await client.edit(GROUP, sent["message_id"], "20")
    await platform.pass_time(61)
    await client.send(ADA, "now")
    await client.edit(GROUP, sent["message_id"], "20")
    assert len((await platform.state())["violations"]) == 1


async def test_people_speak_in_all_the_ways_there_are(client: Client, platform: Control) -> None:
    """Mentions, commands, anonymous admins, forwards and channels are told apart by what the update says."""
    await platform.say("/ask@remora_test_bot hey @remora_test_bot", user=ADA, chat=GROUP)
    await platform.say("as admin", user=ADA, chat=GROUP, sender_chat=GROUP)
    await platform.say("not mine", user=ADA, forwarded=True, sent_at=1_700_000_000)
    await platform.channel_post("news")
    named, anonymous, forwarded, post = await client.updates()
    entities = named["message"]["entities"]
    assert [(e["type"], e["offset"], e["length"]) for e in entities] == [("bot_command", 0, 20), ("mention", 25, 16)]
    assert anonymous["message"]["sender_chat"]["id"] == GROUP and anonymous["message"]["from"]["is_bot"]
    assert forwarded["message"]["forward_origin"]["type"] == "user"
    assert forwarded["message"]["date"] == 1_700_000_000
    assert post["channel_post"]["text"] == "news"


async def test_in_privacy_mode_a_bot_hears_in_groups_what_is_meant_for_it(client: Client, platform: Control) -> None:
    """The command line tells people of this mode; its effect must be seen."""
    await platform.bot(can_read_all_group_messages=False)
    assert (await platform.say("chatter", user=ADA, chat=GROUP)).update_id is None
    await platform.say("/help", user=ADA, chat=GROUP)
    await platform.say("@remora_test_bot hi", user=ADA, chat=GROUP)
    sent = await client.send(GROUP, "yes?")
    await platform.say("this", user=ADA, chat=GROUP, reply_to=sent["message_id"])
    assert [u["message"]["text"] for u in await client.updates()] == ["/help", "@remora_test_bot hi", "this"]


async def test_a_file_above_the_limit_is_not_given_out(client: Client, platform: Control) -> None:
    """Twenty megabytes are Telegram's own limit; a size that is not told shows only in the download."""
    most = 20 * 1024 * 1024
    await platform.say(user=ADA, file=File(kind="document", data=b"head", file_size=most + 1))
    await platform.say(user=ADA, file=File(kind="document", data=b"head", file_size=5_000, size_told=False))
    big, silent = (u["message"]["document"] for u in await client.updates())
    assert big["file_size"] == most + 1
    with pytest.raises(Refusal, match="file is too big"):
        await client.file(big["file_id"])
    assert not silent.get("file_size")
    assert await client.file(silent["file_id"]) == b"head".ljust(5_000, b"\0")


async def test_a_download_can_fail_in_every_way(client: Client, platform: Control) -> None:
    """Gone, cut off, slow and denied, each of which must leave a bot standing."""
    await platform.say(user=ADA, document=b"0123456789" * 100)
    file_id = (await client.updates())[0]["message"]["document"]["file_id"]
    url = (await client.bot.get_file(file_id)).file_path
    assert url is not None
    path = url.partition(f"{platform.token}/")[2]
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=SECONDS) as http:
        assert (await http.get(f"{platform.url}/file/bot1:wrong/{path}")).status_code == 401
        assert (await http.get(url + "x")).status_code == 404
        await platform.fault("refuse", method="download", status=404, description="Not Found")
        assert (await http.get(url)).json() == {"ok": False, "error_code": 404, "description": "Not Found"}
        await platform.fault("cut", method="download")
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get(url)
        await platform.fault("drip", method="download", seconds=0.1)
        async with http.stream("GET", url) as response:
            pieces = [piece async for piece in response.aiter_raw()]
        assert b"".join(pieces) == b"0123456789" * 100 and len(pieces) > 1
        assert len((await http.get(url)).content) == 1000
    fates = [(one["status"], one["fault"]) for one in await platform.requests("download")]
    assert fates == [(404, ""), (404, "refuse"), (200, "cut"), (200, "drip"), (200, "")]


async def test_an_album_is_an_update_for_each_of_its_parts(client: Client, platform: Control) -> None:
    """Nothing tells a bot how many parts there are, nor that they come in one poll."""
    files = [File(kind="photo", text="ours"), File(kind="video"), File(kind="photo")]
    album = await platform.album(files, user=ADA)
    parts = [update["message"] for update in await client.updates()]
    assert [part["media_group_id"] for part in parts] == [album.media_group] * 3
    assert [part["message_id"] for part in parts] == [said.message_id for said in album.parts]
    assert parts[0]["caption"] == "ours" and not parts[1].get("caption") and "video" in parts[1]
    last = album.parts[-1].update_id
    assert last is not None
    await client.updates(last + 1)

    sending = asyncio.create_task(platform.album(files, user=ADA, pause=SECONDS / 4))
    first = await client.updates(last + 1, timeout=int(SECONDS))
    assert len(first) < 3, "the next part is on its way"
    for _ in range(2):
        await settle()
        leap(SECONDS / 4)
    await sending
    assert len(await client.updates(last + 1)) == 3


async def test_two_albums_can_come_interleaved(client: Client, platform: Control) -> None:
    """Groups are told apart by their id alone."""
    files = [File(kind="document", filename=f"{n}.txt") for n in range(3)]
    sent = (platform.album(files, user=ADA, pause=0.2), platform.album(files, user=BEN, chat=GROUP, pause=0.2))
    first, second = await asyncio.gather(*sent)
    assert first.media_group != second.media_group
    order = [update["message"]["media_group_id"] for update in await client.updates()]
    assert order.count(first.media_group) == order.count(second.media_group) == 3
    assert order not in (sorted(order), sorted(order, reverse=True)), "neither comes whole before the other"


@pytest.mark.parametrize("kinds", [["photo"], ["photo", "document"], ["photo"] * 11, ["voice", "voice"]])
async def test_what_telegram_does_not_group_is_no_album(platform: Control, kinds: list[Any]) -> None:
    """A test must not stand on an album that can't be sent."""
    with pytest.raises(ControlError):
        await platform.album([File(kind=kind) for kind in kinds], user=ADA)
    assert (await platform.state())["chats"] == {}


async def test_a_menu_is_the_narrowest_that_is_set(client: Client, platform: Control) -> None:
    """Scope before language, language before none: what an admin, a member and a stranger see."""
    await platform.say("hi", user=ADA)
    await platform.say("hi", user=BEN, chat=GROUP, language="de")
    await platform.status(GROUP, ADA, "administrator")
    assert await platform.menu(ADA) == {}
    await client.set_commands({"all": "for all"})
    await client.set_commands({"alle": "fuer alle"}, "de")
    assert await platform.menu(ADA) == await platform.menu(ADA, chat=GROUP) == {"all": "for all"}
    assert await platform.menu(BEN, chat=GROUP) == {"alle": "fuer alle"}
    await client.set_commands({"private": "p"}, scope={"type": "all_private_chats"})
    await client.set_commands({"group": "g"}, scope={"type": "all_group_chats"})
    assert await platform.menu(ADA, language="de") == {"private": "p"}, "the scope goes before the language"
    await client.set_commands({"privat": "p"}, "de", scope={"type": "all_private_chats"})
    assert await platform.menu(ADA, language="de-AT") == {"privat": "p"}
    await client.set_commands({"mine": "m"}, scope={"type": "chat", "chat_id": ADA})
    assert await platform.menu(ADA, language="de") == {"mine": "m"} and await platform.menu(BEN) == {"privat": "p"}
    assert await platform.menu(ADA, chat=GROUP) == {"group": "g"}
    await client.set_commands({"admin": "a"}, scope={"type": "all_chat_administrators"})
    assert await platform.menu(ADA, chat=GROUP) == {"admin": "a"}
    assert await platform.menu(BEN, chat=GROUP) == {"group": "g"}
    await client.set_commands({"here": "h"}, scope={"type": "chat", "chat_id": GROUP})
    assert await platform.menu(ADA, chat=GROUP) == {"here": "h"}
    await client.set_commands({"ruler": "r"}, scope={"type": "chat_administrators", "chat_id": GROUP})
    await client.set_commands({"ben": "b"}, scope={"type": "chat_member", "chat_id": GROUP, "user_id": BEN})
    assert await platform.menu(ADA, chat=GROUP) == {"ruler": "r"}
    assert await platform.menu(BEN, chat=GROUP) == {"ben": "b"}
    await client.delete_commands(scope={"type": "chat_member", "chat_id": GROUP, "user_id": BEN})
    assert await platform.menu(BEN, chat=GROUP) == {"here": "h"}


@pytest.mark.parametrize(
    ("language", "scope", "words"),
    [
        ("zh-hans", None, "invalid language code specified"),
        (None, {"type": "chat", "chat_id": 999}, "chat not found"),
        (None, {"type": "chat_administrators", "chat_id": ADA}, "can't use specified scope in private chats"),
        (None, {"type": "chat_member", "chat_id": GROUP, "user_id": 999}, "user not found"),
    ],
)
async def test_a_menu_for_nobody_is_refused(
    client: Client, platform: Control, language: str | None, scope: JSON | None, words: str
) -> None:
    """An admin who never wrote to the bot has no chat to set a menu for."""
    await platform.say("hi", user=ADA)
    await platform.say("hi", user=ADA, chat=GROUP)
    with pytest.raises(Refusal) as refused:
        await client.set_commands({"help": "h"}, language, scope)
    assert refused.value.kind == "bad" and words in refused.value.words
    assert (await platform.state())["commands"] == {}


async def test_a_draft_is_seen_until_the_message_comes(client: Client, platform: Control) -> None:
    """A growing answer leaves nothing behind: no message, and no draft beside the message."""
    await platform.say("hi", user=ADA)
    for text in ("", "An", "An ans", "An answ"):
        assert await client.draft(ADA, 77, text)
    assert await platform.drafts(ADA) == ["", "An", "An ans", "An answ"]
    assert await platform.drafts(ADA, standing=True) == ["An answ"]
    assert await platform.texts(ADA) == []
    await client.send(ADA, "An answer")
    assert await platform.drafts(ADA, standing=True) == [] and await platform.texts(ADA) == ["An answer"]
    await client.draft(ADA, 78, "Forgotten", entities=[{"type": "bold", "offset": 0, "length": 3}])
    assert (await platform.state())["standing"][0]["entities"][0]["type"] == "bold"
    await platform.pass_time(31)
    assert await platform.drafts(ADA, standing=True) == []


async def test_a_draft_is_refused_where_there_is_none(client: Client, platform: Control) -> None:
    """Groups have no drafts, nor have all bots; a bot has to go on without."""
    await platform.say("hi", user=ADA)
    await platform.say("hi", user=ADA, chat=GROUP)
    for chat, draft, text, words in (
        (GROUP, 1, "x", "textdraft_peer_invalid"),
        (ADA, 0, "x", "must be non-zero"),
        (ADA, 1, "x" * 4097, "message is too long"),
    ):
        with pytest.raises(Refusal) as refused:
            await client.draft(chat, draft, text)
        assert refused.value.kind == "bad" and words in refused.value.words
    await platform.allow_drafts(allowed=False)
    with pytest.raises(Refusal, match="textdraft_peer_invalid"):
        await client.draft(ADA, 1, "x")
    await platform.allow_drafts()
    await client.draft(ADA, 1, "x")
    assert await platform.drafts(ADA) == ["x"] and await platform.drafts(GROUP) == []
    await platform.fault("flood", method="sendMessageDraft", retry_after=25)
    for _ in range(2):
        with pytest.raises(Refusal, match="too many requests"):
            await client.draft(ADA, 1, "xy")
    assert [one["method"] for one in (await platform.state())["violations"]] == ["sendMessageDraft"]


async def test_a_keyboard_has_rows(client: Client, platform: Control) -> None:
    """Buttons are pressed as people see them, and only those that are there."""
    await platform.say("hi", user=ADA)
    sent = await client.send(ADA, "which?", rows=[["tea", "milk"], ["none"]])
    message = sent["message_id"]
    keyboard = (await platform.state())["chats"][str(ADA)]["messages"][-1]["reply_markup"]["inline_keyboard"]
    assert [[button["text"] for button in row] for row in keyboard] == [["Tea", "Milk"], ["None"]]
    await platform.press(message, label="None", chat=ADA, user=ADA)
    assert (await client.updates())[-1]["callback_query"]["data"] == "none"
    await client.edit(ADA, message, "which?", rows=[["more"]])
    for data, label in (("tea", None), (None, "Tea"), (None, None)):
        with pytest.raises(ControlError):
            await platform.press(message, data, label=label, chat=ADA, user=ADA)
    await platform.press(message, "more", chat=ADA, user=ADA)


@pytest.mark.parametrize(
    ("url", "more", "words"),
    [
        ("http://example.org/hook", {}, "an https url must be provided"),
        ("https://example.org:8080/hook", {}, "only on ports 80, 88, 443 or 8443"),
        ("https://example.org/hook", {"secret_token": "not allowed!"}, "unallowed characters"),
        ("https://example.org/hook", {"secret_token": "x" * 257}, "secret token is too long"),
    ],
)
async def test_a_webhook_that_can_not_be_is_refused(client: Client, url: str, more: JSON, words: str) -> None:
    """An operator's mistake shows at the start, not in silence later."""
    with pytest.raises(Refusal) as refused:
        await client.webhook(url, **more)
    assert refused.value.kind == "bad" and words in refused.value.words
    assert (await client.webhook_info())["url"] == ""


async def test_a_webhook_gets_what_a_poll_would(client: Client, platform: Control) -> None:
    """aiogram's own webhook server and python-telegram-bot's own parser take what is posted."""
    async with posted("/hook/tg") as (host, posts):
        await platform.say("before", user=ADA)
        await platform.webhook(host)
        await client.webhook("https://bot.example.org/hook/tg?x=1", secret_token="s3cret", allowed_updates=["message"])
        said = await platform.say("hello", user=ADA, photo=b"jpeg")
        await platform.wait(delivered=True)
        assert [post.update["update_id"] for post in posts][-1] == said.update_id
        assert {post.headers["x-telegram-bot-api-secret-token"] for post in posts} == {"s3cret"}
        assert {post.headers["host"] for post in posts} == {"bot.example.org"} and posts[0].query == "x=1"
        parsed = [telegram.Update.de_json(post.update, None) for post in posts]
        assert [one.message.text or one.message.caption for one in parsed if one.message] == ["before", "hello"]
        info = await client.webhook_info()
        assert (info["pending_update_count"], info["max_connections"]) == (0, 40)
        assert not info.get("last_error_message")
        with pytest.raises(Refusal, match="webhook is active"):
            await client.updates()
        await client.no_webhook()
        later = await platform.say("later", user=ADA)
        assert [update["update_id"] for update in await client.updates()] == [later.update_id]
        assert len(posts) == 2


async def test_a_refused_update_comes_again_and_holds_up_its_own_chat_only(client: Client, platform: Control) -> None:
    """Order by chat and nothing lost: what a bot that answers 503 builds on."""
    async with posted("/hook") as (host, posts):
        posts.refuse = {"first": 2}
        await platform.say("first", user=ADA)
        await platform.say("second", user=ADA)
        await platform.say("other", user=BEN)
        await platform.webhook(host, second=0.05)
        await client.webhook("https://example.org/hook")
        await platform.wait(delivered=True)
        mine = [text for text in posts.texts if text != "other"]
        assert mine == ["first", "first", "first", "second"] and posts.texts.count("other") == 1
        assert posts.texts.index("other") < len(posts.texts) - 1
        info = await client.webhook_info()
        assert info["last_error_message"] == "Wrong response from the webhook: 503 Service Unavailable"
        assert info["last_error_date"]
        tried = (await platform.state())["webhook"]["attempts"]
        assert [one["number"] for one in tried if one["error"]] == [1, 2]
        await client.webhook("https://example.org/hook")
        assert not (await client.webhook_info()).get("last_error_message"), "setting it anew forgets the error"


async def test_what_nobody_takes_waits_and_is_counted(client: Client, platform: Control) -> None:
    """A bot that is down finds its updates when it is up, and getWebhookInfo tells of it meanwhile."""
    await client.webhook("https://example.org/hook")
    await platform.say("lost?", user=ADA)
    await platform.wait(method="webhook", count=2)
    info = await client.webhook_info()
    assert info["pending_update_count"] == 1 and "failed to resolve host" in info["last_error_message"].lower()
    await platform.webhook("http://127.0.0.1:9")
    seen = (await platform.state())["requests"]["webhook"]
    await platform.wait(method="webhook", count=seen + 2)
    assert (await client.webhook_info())["last_error_message"] == "Connection refused"
    async with posted("/hook") as (host, posts):
        await platform.webhook(host)
        await platform.wait(delivered=True)
        assert posts.texts == ["lost?"]


async def test_of_several_hosts_another_one_is_tried_after_a_failure(client: Client, platform: Control) -> None:
    """As a balancer before replicas does: one that is down keeps nothing from people, and order holds by chat."""
    texts = [f"message {number}" for number in range(12)]
    async with posted("/hook") as (host, posts), posted("/hook") as (other, more):
        await platform.webhook(host, "http://127.0.0.1:9", other)
        await client.webhook("https://example.org/hook")
        for text in texts:
            await platform.say(text, user=ADA)
        await platform.wait(delivered=True)
    assert sorted([*posts.texts, *more.texts]) == sorted(texts) and posts.texts and more.texts
    assert posts.texts == [text for text in texts if text in posts.texts]
    failed = [one for one in (await platform.state())["webhook"]["attempts"] if one["error"]]
    assert failed and {one["error"] for one in failed} == {"Connection refused"}


async def test_a_lost_answer_brings_the_update_again(client: Client, platform: Control) -> None:
    """The bot took it, and Telegram did not hear so: the same update id has to do no harm."""
    async with posted("/hook") as (host, posts):
        await platform.fault("reset", at="after effect", method="webhook", text="twice")
        await platform.webhook(host)
        await client.webhook("https://example.org/hook")
        said = await platform.say("twice", user=ADA)
        await platform.wait(delivered=True)
        assert [post.update["update_id"] for post in posts] == [said.update_id] * 2
        await platform.redeliver(confirmed=1)
        await platform.wait(delivered=True)
        assert posts.texts == ["twice"] * 3


@pytest.mark.campaign
async def test_a_process_is_killed_while_it_handles_a_post(client: Client, platform: Control) -> None:
    """An update that it had not taken comes again to whoever listens next."""
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(30)")
    async with posted("/hook") as (host, posts):
        posts.seconds = 0.2
        await platform.fault("kill", at="before effect", method="webhook", pid=victim.pid, seconds=0.05)
        await platform.webhook(host)
        await client.webhook("https://example.org/hook")
        await platform.say("hi", user=ADA)
        assert await victim.wait() == -signal.SIGKILL
        await platform.wait(delivered=True)
        assert [kill["method"] for kill in (await platform.state())["kills"]] == ["webhook"]
        assert posts.texts == ["hi"]


async def test_no_more_posts_are_open_than_the_bot_allows(client: Client, platform: Control) -> None:
    """Parts of one album and messages of one chat come one by one, chats at once, up to the limit."""
    async with posted("/hook") as (host, posts):
        posts.seconds = 0.1
        await platform.webhook(host)
        await client.webhook("https://example.org/hook", max_connections=2)
        for user in (ADA, BEN, 9, 10):
            await platform.say("hi", user=user)
        await platform.album([File(kind="photo"), File(kind="photo")], user=ADA)
        await platform.wait(delivered=True)
        assert posts.most_open == (await platform.state())["webhook"]["most_open"] == 2
        assert posts.most_open_of_a_chat == 1 and len(posts) == 6


async def test_bots_of_one_platform_do_not_meet() -> None:
    """State is by token: two channels of one product must not hear each other."""
    async with serving(("1:one", "2:two")) as one:
        await one.of("2:two").say("for two", user=ADA)
        first, second = Client(one.url, "1:one"), Client(one.url, "2:two")
        assert await first.updates() == []
        assert [u["message"]["text"] for u in await second.updates()] == ["for two"]
        await first.aclose()
        await second.aclose()


@pytest.mark.parametrize("at", ["before effect", "after effect"])
@pytest.mark.parametrize("do", ["reset", "close", "garbage", "empty", "status", "cut"])
async def test_a_broken_request_tells_its_client_nothing_of_its_effect(
    client: Client, platform: Control, do: Any, at: Any
) -> None:
    """The undecidable case: both look alike, and only the chat knows."""
    await platform.say("hi", user=ADA)
    await platform.fault(do, at=at, method="sendMessage", text="broken")
    await client.send(ADA, "whole")
    with pytest.raises(ptb_errors.TelegramError):
        await client.bot.send_message(ADA, "broken")
    await client.send(ADA, "whole again")
    shown = ["broken"] if at == "after effect" else []
    assert await platform.texts(ADA) == ["whole", *shown, "whole again"]


async def test_the_nth_request_is_refused_and_the_next_is_not(client: Client, platform: Control) -> None:
    """Scripted answers count what matches them, and a scripted 429 is a real one."""
    await platform.say("hi", user=ADA)
    await platform.fault("refuse", nth=2, method="sendMessage", status=400, description="Bad Request: no")
    await client.send(ADA, "1")
    with pytest.raises(Refusal, match=": no"):
        await client.send(ADA, "2")
    await client.send(ADA, "3")
    await platform.fault("flood", method="sendMessage", retry_after=25)
    with pytest.raises(Refusal) as refused:
        await client.send(ADA, "4")
    assert (refused.value.kind, refused.value.number) == ("flood", 25)
    with pytest.raises(Refusal):
        await client.act(ADA)
    assert [one["method"] for one in (await platform.state())["violations"]] == ["sendChatAction"]


async def test_a_hanging_request_goes_on_when_it_is_healed(client: Client, platform: Control) -> None:
    """A hang lasts until the client or the test has had enough."""
    await platform.say("hi", user=ADA)
    await platform.fault("hang", method="sendMessage")
    given_up = asyncio.create_task(client.send(ADA, "given up"))
    await platform.wait(method="sendMessage")
    await settle()
    leap(SECONDS)
    with pytest.raises(Refusal, match="timedout"):
        await given_up
    await platform.wait(idle=0)
    state = await platform.state()
    assert [one["text"] for one in state["unanswered"]] == ["given up"]
    await platform.fault("hang", method="sendMessage")
    slow = asyncio.create_task(client.send(ADA, "in the end"))
    await platform.wait(method="sendMessage", count=2)
    assert not slow.done()
    await platform.heal()
    await slow
    assert (await platform.texts(ADA))[-1] == "in the end"


async def test_a_late_effect_is_lost_with_its_client(client: Client, platform: Control) -> None:
    """In the mixed model half of the sends cut off have happened and half have not, and nothing tells which."""
    await platform.say("hi", user=ADA)
    await platform.timing(latency_ms=500 * SECONDS, effect="mixed")
    for n in range(12):
        task = asyncio.create_task(client.send(ADA, str(n)))
        await platform.wait(method="sendMessage", count=n + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await settle()
    leap(SECONDS / 2)
    await platform.wait(idle=0)
    shown = await platform.texts(ADA)
    assert 0 < len(shown) < 12
    assert len((await platform.state())["unanswered"]) == 12


@pytest.mark.parametrize(
    ("at", "shown", "unanswered"),
    [("before effect", [], 1), ("after effect", ["one"], 1), ("after answer", ["one"], 0)],
)
@pytest.mark.campaign
async def test_a_process_is_killed_at_a_named_point_of_its_send(
    platform: Control, at: Any, shown: list[str], unanswered: int
) -> None:
    """The three moments a crash test has to try, and the count it measures itself against."""
    await platform.say("hi", user=ADA)
    process = await sender(platform.url, platform.token)
    await platform.fault("kill", at=at, method="sendMessage", pid=process.pid)
    out, _ = await process.communicate(b"go\n")
    assert process.returncode == -signal.SIGKILL and b"end" not in out
    await platform.wait(idle=0)
    state = await platform.state()
    assert await platform.texts(ADA) == shown
    assert len(state["unanswered"]) == unanswered
    assert [len(kill["unanswered"]) for kill in state["kills"]] == [unanswered]


async def test_the_platform_runs_as_a_process_of_its_own() -> None:
    """A product that is killed must not take its platform with it."""
    async with running("--latency-ms", "5", "--effect", "mixed", "--model-ms", "0") as platform:
        bot = Client(platform.url, platform.token)
        await platform.say("hello", user=ADA)
        assert len(await bot.updates()) == 1
        await bot.send(ADA, "hello too")
        await platform.wait(bot_messages=1, chat=ADA, text="too")
        assert await platform.requests("sendMessage") != []
        await platform.reset()
        assert (await platform.state())["chats"] == {}
        with pytest.raises(TimeoutError, match="0 of 1 messages"):
            await platform.wait(bot_messages=1, timeout=0)
        await bot.aclose()


async def test_the_chat_model_answers_learns_and_counts(platform: Control) -> None:
    """A crash test asks of it what was paid twice; the provider is the product's own."""
    question = "What is up?\nI like tea\n\n[context ab: from the system]\nnow: noon\n[end of context ab]"
    async with httpx.AsyncClient(timeout=SECONDS) as http:
        model = ModelSpec(provider="openai", base_url=platform.model_url, model="test", timeout=SECONDS)
        provider = OpenAIProvider(http, model, count_tokens=len)
        request = Request(messages=(ChatMessage(role="user", content=question),))
        pieces: list[str] = []

        async def heard(text: str) -> None:
            pieces.append(text)

        first = await provider.complete(request, heard)
        assert (await provider.complete(request)).text == first.text == "".join(pieces) == "Answer to: I like tea"
        assert len(pieces) > 1
        lines = [
            json.dumps({"n": 1, "at": "", "by": "Ada", "text": "I like tea."}),
            json.dumps({"n": 2, "at": "", "by": "(the assistant)", "text": "I like you."}),
        ]
        material = "EARLIER LINES\nnone\n\nMESSAGES:\n" + "\n".join(lines)
        learned = await provider.complete(
            Request(messages=(ChatMessage(role="user", content=material),), json_mode=True)
        )
        await platform.script_model({"weather": "It rains."})
        asked = Request(messages=(ChatMessage(role="user", content="How is the weather?"),))
        assert (await provider.complete(asked)).text == "It rains."
    (fact,) = read_answer(learned.text).facts
    assert (fact.key, fact.value, fact.messages) == ("likes", "tea", (1,))
    counted = (await platform.state())["model"]
    assert counted["repaid"] == {"What is up?\nI like tea": 2}
    assert counted["answered"]["What is up?\nI like tea"] == 2 and counted["extractions"] == 1


@dataclass(frozen=True, slots=True)
class Post:
    """One request that came to a bot's webhook."""

    headers: dict[str, str]
    query: str
    update: JSON


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Posts(list[Post]):
    """All of them. A text in `refuse` is answered with 503 so many times; each takes `seconds`."""

    def __init__(self) -> None:
        super().__init__()
        self.refuse: dict[str, int] = {}
        self.seconds = 0.0
        self.refused = 0
        self.most_open = self.most_open_of_a_chat = 0
        self._open: list[int] = []

    @property
    def texts(self) -> list[str]:
        return [post.update["message"].get("text", "") for post in self]

    async def take(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        update = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.append(Post(headers, request.query_string, update))
        chat = update["message"]["chat"]["id"]
        self._open.append(chat)
        self.most_open = max(self.most_open, len(self._open))
        self.most_open_of_a_chat = max(self.most_open_of_a_chat, self._open.count(chat))
        await asyncio.sleep(self.seconds)
        self._open.remove(chat)
        left = self.refuse.get(update["message"].get("text", ""), 0)
        if left:
            self.refuse[update["message"]["text"]] = left - 1
            self.refused += 1
            return web.Response(status=503)
        return await handler(request)


@asynccontextmanager
async def posted(path: str) -> AsyncIterator[tuple[str, Posts]]:
    """aiogram's webhook server on a free port: its address, and what came."""
    posts, bot, dispatcher = Posts(), AiogramBot("1:nobody"), Dispatcher()
    heard: list[int] = []

    async def hear(message: Message) -> None:
        heard.append(message.message_id)

    @web.middleware
    async def look(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await posts.take(request, handler)

    dispatcher.message.register(hear)
    application = web.Application(middlewares=[look])
    SimpleRequestHandler(dispatcher, bot, handle_in_background=False).register(application, path=path)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", posts
        assert len(heard) == len(posts) - posts.refused, "aiogram read all it was given"
    finally:
        await runner.cleanup()
        await bot.session.close()


async def sender(url: str, token: str) -> Process:
    """A process that sends one message when it is told to, says so, and goes on for a while."""
    program = (
        "import sys, time, httpx\n"
        "sys.stdin.readline()\n"
        f"httpx.post({url + '/bot' + token + '/sendMessage'!r}, json={{'chat_id': {ADA}, 'text': 'one'}},"
        " trust_env=False, timeout=None)\n"
        "time.sleep(30)\n"
        "print('end')\n"
    )
    return await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=PIPE, stdout=PIPE)


def _named(scope: JSON | None) -> telegram.BotCommandScope | None:
    return None if scope is None else telegram.BotCommandScope.de_json(scope, None)


async def _read(call: Awaitable[Any]) -> Any:
    """python-telegram-bot's answer, or its error as a `Refusal`."""
    try:
        return await call
    except ptb_errors.RetryAfter as error:
        seconds = cast(timedelta, error.retry_after).total_seconds()
        raise Refusal("flood", f"too many requests: {error}", int(seconds)) from error
    except ptb_errors.ChatMigrated as error:
        raise Refusal("moved", str(error), error.new_chat_id) from error
    except ptb_errors.TelegramError as error:
        kinds = {
            ptb_errors.BadRequest: "bad",
            ptb_errors.Forbidden: "forbidden",
            ptb_errors.Conflict: "conflict",
            ptb_errors.InvalidToken: "unauthorized",
        }
        raise Refusal(kinds.get(type(error), type(error).__name__), str(error)) from error
