"""The Telegram that other tests stand on is as strict as Telegram, as a client sees it that nobody here wrote.

What it can do shows in the channel's tests, which fail without it; here stands what they would pass without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from typing import Any, cast

import pytest
import telegram
from telegram import error as ptb_errors
from telegram.request import HTTPXRequest

from tests.kit.patience import SECONDS, leap, settle
from tests.platforms.telegram import Control, serving

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

    async def set_commands(
        self, commands: dict[str, str], language: str | None = None, scope: JSON | None = None
    ) -> bool:
        given = self.bot.set_my_commands(list(commands.items()), scope=_named(scope), language_code=language)
        return bool(await _read(given))

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


async def test_a_poll_hangs_until_somebody_speaks(client: Client, platform: Control) -> None:
    """Without true long polling a bot would spin, and no test of its waiting would mean anything."""
    poll = asyncio.create_task(client.updates(timeout=int(SECONDS)))
    await platform.wait(polling=True)
    assert not poll.done()
    said = await platform.say("hello", user=ADA, name="Ada")
    assert [update["update_id"] for update in await poll] == [said.update_id]


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


async def test_an_edit_is_refused_that_changes_nothing_or_is_not_the_bots(client: Client, platform: Control) -> None:
    """Repeating an edit is how a crashed answer is made sure of; its answer must be the real one."""
    said = await platform.say("hi", user=ADA)
    sent = await client.send(ADA, "…", buttons=["stop"])
    edited = await client.edit(ADA, sent["message_id"], "done")
    assert edited["text"] == "done" and "reply_markup" not in edited
    with pytest.raises(Refusal, match="message is not modified"):
        await client.edit(ADA, sent["message_id"], "done")
    with pytest.raises(Refusal, match="message can't be edited"):
        await client.edit(ADA, said.message_id, "yours")


async def test_only_an_open_topic_takes_what_is_said(client: Client, platform: Control) -> None:
    """General has no id, a reply's thread is no topic, and what is closed or deleted takes nothing."""
    await platform.group(FORUM, forum=True)
    topic = await platform.topic(FORUM, "Cats")
    general = await platform.say("in General", user=ADA, chat=FORUM)
    for nowhere in (1, general.message_id):
        with pytest.raises(Refusal, match="message thread not found"):
            await client.send(FORUM, "lost", message_thread_id=nowhere)
    await platform.close_topic(FORUM, topic)
    with pytest.raises(Refusal, match="topic_closed"):
        await client.send(FORUM, "late", message_thread_id=topic)
    await platform.delete_topic(FORUM, topic)
    with pytest.raises(Refusal, match="message thread not found"):
        await client.send(FORUM, "later", message_thread_id=topic)
    assert await platform.texts(FORUM) == []


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
