"""Talks on Telegram with the whole product, line by line as people there see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.transcripts import (
    ADA,
    BOB,
    CLUB,
    CODE,
    FORUM,
    a_telegram,
    dripping,
    expected,
    grown,
    known,
    learned,
    serving,
    telegram_transcript,
    told,
)
from tests.platforms.telegram import Control, File


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    """A Telegram where everybody has a name."""
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


async def test_commands_are_answered_in_the_chat(telegram: Control, tmp_path: Path) -> None:
    """The bot tells in so many words what is kept, found, corrected and shown."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("/remember I like tea", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await telegram.say("/memory list facts", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        await telegram.say("/memroy", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=3)
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: /remember I like tea
            Remora: Saved (m_1): you like tea
            Ada: /memory list facts
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
            Ada: /memroy
            Remora: There is no command /memroy. Did you mean /memory? /help lists all commands.
        """)


async def test_buttons_answer_a_question_in_its_place(telegram: Control, tmp_path: Path) -> None:
    """A question that was answered must not look open, nor be answered twice."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("/remember I like tea", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        [saved] = await telegram.texts(ADA)
        short_id = saved.removeprefix("Saved (").partition(")")[0]
        await telegram.say(f"/forget {short_id}", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        state = await telegram.state()
        asked = telegram_transcript(state, ADA)
        question = state["chats"][str(ADA)]["messages"][-1]["message_id"]
        data = state["chats"][str(ADA)]["messages"][-1]["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        await telegram.press(question, data, chat=ADA, user=ADA)
        await telegram.wait(chat=ADA, text="Forgotten")
        await telegram.press(question, data, chat=ADA, user=ADA, inaccessible=True)
        await telegram.wait(chat=ADA, bot_messages=3)
        assert asked == expected("""
            Ada: /remember I like tea
            Remora: Saved (m_1): you like tea
            Ada: /forget m_1
            Remora: Forget this?
                m_1 · you like tea
                Memories: 1. Messages: 0. My answers that quote them: 0.
                1. and the words (or just yes): I also erase those messages for good
                2. this memory only: the messages stay in our history, but I no longer learn from them or recall them
                3. no: nothing changes
                [and the words]
                [this memory only] [no]
        """)
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: /remember I like tea
            Remora: Saved (m_1): you like tea
            Ada: /forget m_1
            Remora: Forgotten. Memories: 1.
                No trace of it is left in the database files.
            Remora: That question is no longer open, or was not put to you.
        """)


async def test_what_a_command_lacks_is_asked_for_in_words(telegram: Control, tmp_path: Path) -> None:
    """There are no forms on Telegram: the usage says what to type."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("/remember", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await telegram.say("/remember I like tea", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: /remember
            Remora: Usage: /remember <text>
            Ada: /remember I like tea
            Remora: Saved (m_1): you like tea
        """)


async def test_edit_before_its_turn_is_answered_as_edited(telegram: Control, tmp_path: Path) -> None:
    """Who corrects a slip at once gets the answer to what they meant."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.fault("hang", method="model", text="wait")
        await telegram.say("wait", user=ADA, name="Ada")
        said = await telegram.say("tee", user=ADA)
        await told(tmp_path, "tee")
        await telegram.edit(said.message_id, "tea", chat=ADA)
        await told(tmp_path, "tee", gone=True)
        await telegram.heal()
        await telegram.wait(chat=ADA, bot_messages=2)
        await telegram.wait(idle=0.3)
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: wait
            Ada: tea
            Remora: Answer to: wait

                {first.private}
            Remora: Answer to: tea
        """)


async def test_edit_after_its_turn_changes_what_is_remembered(telegram: Control, tmp_path: Path) -> None:
    """The answer stands as it was given, and memory holds what the person means now."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        said = await telegram.say("I like tea", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await learned(telegram, 1)
        await telegram.say("/memory list facts", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        await telegram.edit(said.message_id, "I like coffee", chat=ADA)
        await learned(telegram, 2)
        await telegram.say("/memory list facts", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=3)
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: I like coffee
            Remora: Answer to: I like tea

                {first.private}
            Ada: /memory list facts
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
            Ada: /memory list facts
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_2  you like coffee (told today)
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


async def test_long_answer_is_several_messages_with_its_code_closed_in_each(telegram: Control, tmp_path: Path) -> None:
    """A block of code that goes on must look like code in every message."""
    await telegram.script_model({"code": CODE})
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("hello", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await telegram.say("code please", user=ADA)
        await telegram.wait(chat=ADA, text="That is all.")
        assert telegram_transcript(await telegram.state(), ADA) == expected("""
            Ada: hello
            Remora: Answer to: hello

                {first.private}
            Ada: code please
            Remora: First, the code:

                ```python
                (line 0)
                (line 1)
                (line 2)
                (line 3)
                (line 4)
                (line 5)
                (line 6)
                (line 7)
                (line 8)
                (line 9)
                ```
            Remora: ```python
                (line 10)
                (line 11)
                ```

                That is all.
        """)


async def test_answer_grows_in_one_message_and_ends_as_the_answer(telegram: Control, tmp_path: Path) -> None:
    """Who waits sees it come, and afterwards one message, as if it had come at once."""
    async with dripping() as model, serving(tmp_path, telegram=telegram, model=model.base_url, placeholder=0.1):
        await telegram.say("tell me a story", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, text="…")
        model.give("Once **upon** a time")
        await telegram.wait(chat=ADA, text="Once upon a time")
        model.give(" there was a *fi")
        await telegram.wait(chat=ADA, text="fi")
        model.give("sh*.")
        model.end()
        await telegram.wait(chat=ADA, text="fish.")
        state = await telegram.state()
        [answer] = [one for one in state["chats"][str(ADA)]["messages"] if one["by_bot"]]
        states = [*(one["text"] for one in answer["edits"]), answer["text"]]
        assert known(grown(states)) == expected("""
            … ⇒ Once upon a time ⇒ Once upon a time there was a *fi ⇒ Once upon a time there was a fish.

            {first.private}
        """)
        assert telegram_transcript(state, ADA) == expected("""
            Ada: tell me a story
            Remora: Once upon a time there was a fish.

                {first.private}
        """)
