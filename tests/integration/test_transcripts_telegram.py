"""Talks on Telegram with the whole product, line by line as people there see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.transcripts import ADA, BOB, CLUB, FORUM, a_telegram, expected, serving, telegram_transcript
from tests.platforms.telegram import Control, File


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with a_telegram() as platform:
        yield platform


async def test_group_is_answered_only_where_it_calls_the_bot(telegram: Control, tmp_path: Path) -> None:
    """Talk among people is theirs; an answer points to what it answers."""
    await telegram.group(CLUB, title="Club")
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("good morning all", user=BOB, name="Bob", chat=CLUB)
        await telegram.say("@remora_test_bot what time is it?", user=ADA, name="Ada", chat=CLUB)
        await telegram.wait(chat=CLUB, bot_messages=1)
        [answer] = [one for one in (await telegram.state())["chats"][str(CLUB)]["messages"] if one["by_bot"]]
        await telegram.say("and now?", user=BOB, chat=CLUB, reply_to=answer["message_id"])
        await telegram.wait(chat=CLUB, bot_messages=2)
        await telegram.say("thanks!", user=ADA, chat=CLUB)
        await telegram.wait(delivered=True, idle=0.2)
        assert telegram_transcript(await telegram.state(), CLUB) == expected("""
            Bob: good morning all
            Ada: @remora_test_bot what time is it?
            Remora (to “@remora_test_bot what time is it?”): Answer to: what time is it?

                {first.group}
            Bob (to “Answer to: what time is it?”): and now?
            Remora (to “and now?”): Answer to: and now?
            Ada: thanks!
        """)


async def test_topic_is_a_talk_of_its_own(telegram: Control, tmp_path: Path) -> None:
    """An answer in another topic would be read by nobody, or by the wrong people."""
    await telegram.group(FORUM, forum=True)
    music, films = await telegram.topic(FORUM, "Music"), await telegram.topic(FORUM, "Films")
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("@remora_test_bot a song?", user=ADA, name="Ada", chat=FORUM, thread=music)
        await telegram.wait(chat=FORUM, bot_messages=1)
        await telegram.say("@remora_test_bot a film?", user=BOB, name="Bob", chat=FORUM, thread=films)
        await telegram.wait(chat=FORUM, bot_messages=2)
        await telegram.say("@remora_test_bot anything?", user=BOB, chat=FORUM)
        await telegram.wait(chat=FORUM, bot_messages=3)
        state = await telegram.state()
        assert telegram_transcript(state, FORUM, music) == expected("""
            Ada: @remora_test_bot a song?
            Remora (to “@remora_test_bot a song?”): Answer to: a song?

                {first.group}
        """)
        assert telegram_transcript(state, FORUM, films) == expected("""
            Bob: @remora_test_bot a film?
            Remora (to “@remora_test_bot a film?”): Answer to: a film?
        """)
        assert telegram_transcript(state, FORUM) == expected("""
            Bob: @remora_test_bot anything?
            Remora (to “@remora_test_bot anything?”): Answer to: anything?
        """)


async def test_album_is_one_message_with_one_answer(telegram: Control, tmp_path: Path) -> None:
    """Telegram sends an update for each picture; people sent one message."""
    await telegram.script_model({"my cats": "Three cats!"})
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, sees=True):
        pictures = [
            File(kind="photo", data=b"\xff\xd8\xff" + bytes([n]), text="" if n else "my cats") for n in range(3)
        ]
        await telegram.say("hello", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await telegram.album(pictures, user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        await telegram.wait(idle=0.6)  # parts of an album may come late
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: hello
            Remora: Answer to: hello

                {first.private}
            Ada: my cats [photo]
            Ada: [photo]
            Ada: [photo]
            Remora: Three cats!
        """)
