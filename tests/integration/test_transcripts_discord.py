"""Talks on Discord with the whole product, line by line as people there see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.transcripts import ADA, BOB, REEF, a_discord, discord_transcript, expected, known, serving
from tests.platforms.discord import Control


@pytest.fixture
async def discord() -> AsyncIterator[Control]:
    async with a_discord() as platform:
        yield platform


@pytest.fixture
async def general(discord: Control) -> int:
    return await discord.add_channel("general", guild=REEF)


async def test_server_is_answered_only_where_it_calls_the_bot(discord: Control, general: int, tmp_path: Path) -> None:
    """Talk among people is theirs; an answer points to what it answers, and pings nobody."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.say("good morning all", user=BOB, name="Bob", channel=general)
        await discord.say(f"{discord.mention} what time is it?", user=ADA, name="Ada", channel=general)
        await discord.wait(channel=general, bot_messages=1)
        [answer] = [one for one in (await discord.state())["channels"][str(general)]["messages"] if one["by_bot"]]
        await discord.say("and now?", user=BOB, channel=general, reply_to=int(answer["id"]))
        await discord.wait(channel=general, bot_messages=2)
        await discord.say("thanks!", user=ADA, channel=general)
        await discord.wait(delivered=True, idle=0.2)
        assert discord_transcript(await discord.state(), general) == expected("""
            Bob: good morning all
            Ada: @Remora what time is it?
            Remora (to “@Remora what time is it?”): Answer to: what time is it?

                {first.group}
            Bob (to “Answer to: what time is it?”): and now?
            Remora (to “and now?”): Answer to: and now?
            Ada: thanks!
        """)
        assert await discord.violations() == []


async def test_thread_and_post_are_talks_of_their_own(discord: Control, general: int, tmp_path: Path) -> None:
    """An answer beside its thread would be read by nobody, or by the wrong people."""
    forum = await discord.add_channel("questions", guild=REEF, kind="forum")
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        begun = await discord.say("who knows a song?", user=BOB, name="Bob", channel=general)
        thread = await discord.open_thread(general, "Songs", user=BOB, message_id=begun.message_id)
        await discord.say(f"{discord.mention} a song?", user=ADA, name="Ada", channel=thread)
        await discord.wait(channel=thread, bot_messages=1)
        post = await discord.forum_post(forum, "Which film?", f"{discord.mention} a film?", user=BOB)
        await discord.wait(channel=post, bot_messages=1)
        await discord.say(f"{discord.mention} anything?", user=BOB, channel=general)
        await discord.wait(channel=general, bot_messages=1)
        state = await discord.state()
        assert discord_transcript(state, thread) == expected("""
            Ada: @Remora a song?
            Remora (to “@Remora a song?”): Answer to: a song?

                {first.group}
        """)
        assert discord_transcript(state, post) == expected("""
            Bob: @Remora a film?
            Remora (to “@Remora a film?”): Answer to: a film?

                {first.group}
        """)
        assert discord_transcript(state, general) == expected("""
            Bob: who knows a song?
            Bob: @Remora anything?
            Remora (to “@Remora anything?”): Answer to: anything?
        """)


async def test_slash_commands_are_answered_for_the_asker_alone(discord: Control, general: int, tmp_path: Path) -> None:
    """Memories of somebody are nobody else's to read; a fresh start concerns all who are there."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.say(f"{discord.mention} hello", user=ADA, name="Ada", channel=general)
        await discord.wait(channel=general, bot_messages=1)
        for command, options in (("remember", {"text": "I like tea"}), ("memory", {}), ("new", {})):
            asked = await discord.slash(command, options, user=ADA, channel=general)
            await discord.wait(answered=asked)
        state = await discord.state()
        assert discord_transcript(state, general, user=ADA) == expected("""
            Ada: @Remora hello
            Remora (to “@Remora hello”): Answer to: hello

                {first.group}
            Remora (only you see this): Saved (m_1): you like tea
            Remora (only you see this): What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · unread messages: 1 · (n) tokens today
            Remora: {new.done}
        """)
        assert discord_transcript(state, general, user=BOB) == expected("""
            Ada: @Remora hello
            Remora (to “@Remora hello”): Answer to: hello

                {first.group}
            Remora: {new.done}
        """)


async def test_buttons_answer_a_question_in_its_place(discord: Control, general: int, tmp_path: Path) -> None:
    """A question that was answered must not look open; ids are completed from what is remembered."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.wait(answered=await discord.slash("remember", {"text": "I like tea"}, user=ADA, channel=general))
        [choice] = await discord.autocomplete("forget", {"what": "tea"}, user=ADA, channel=general) or []
        await discord.wait(answered=await discord.slash("forget", {"what": choice["value"]}, user=ADA, channel=general))
        state = await discord.state()
        question = state["channels"][str(general)]["messages"][-1]
        words = question["components"][0]["components"][0]
        await discord.press(int(question["id"]), words["custom_id"], user=ADA)
        await discord.wait(channel=general, text="Forgotten")
        await discord.press(int(question["id"]), words["custom_id"], user=ADA, stale=True)
        await discord.wait(channel=general, text="no longer open")
        assert known(choice["name"]) == "m_1 · likes: tea"
        assert discord_transcript(state, general) == expected("""
            Remora (only you see this): Saved (m_1): you like tea
            Remora (only you see this): Forget this?
                m_1 · you like tea
                Memories: 1. Messages: 0. My answers that quote them: 0.
                1. and the words (or just yes): I also erase those messages for good
                2. this memory only: the messages stay in our history, but I no longer learn from them or recall them
                3. no: nothing changes
                [and the words]
                [this memory only] [no]
        """)
        assert discord_transcript(await discord.state(), general) == expected("""
            Remora (only you see this): Saved (m_1): you like tea
            Remora (only you see this): Forgotten. Memories: 1.
                No trace of it is left in the database files.
            Remora (only you see this): That question is no longer open, or was not put to you.
        """)


async def test_press_of_somebody_else_leaves_the_message_as_it_is(
    discord: Control, general: int, tmp_path: Path
) -> None:
    """A question stands under an answer that all read: who was not asked must not take it away by pressing."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.wait(answered=await discord.slash("new", user=ADA, channel=general))
        shown = (await discord.state())["channels"][str(general)]["messages"][-1]
        await discord.press(int(shown["id"]), "answer:1:yes", user=BOB, stale=True)
        await discord.wait(channel=general, text="no longer open")
        await discord.wait(idle=0.3)
        assert discord_transcript(await discord.state(), general) == expected("""
            Remora: {new.done}
            Remora: That question is no longer open, or was not put to you.
        """)


async def test_form_asks_for_what_a_command_lacks(discord: Control, general: int, tmp_path: Path) -> None:
    """A person fills in a field with what stands there now, and the command goes on with it."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.say(f"{discord.mention} hello", user=ADA, name="Ada", channel=general)
        await discord.wait(channel=general, bot_messages=1)
        asked = await discord.slash("remember", user=ADA, channel=general)
        await discord.wait(responded=asked)
        await discord.wait(answered=await discord.submit(asked, "I like tea"))
        [saved] = [one for one in await discord.ephemeral(ADA, general) if "Saved" in one]
        short_id = saved.replace("\\", "").partition("(")[2].partition(")")[0]
        correcting = await discord.slash("correct", {"id": short_id}, user=ADA, channel=general)
        await discord.wait(responded=correcting)
        forms = [(await discord.interaction(one))["form"] for one in (asked, correcting)]
        await discord.wait(answered=await discord.submit(correcting, "coffee"))
        changed = (await discord.ephemeral(ADA, general))[-1].replace("\\", "").partition("(")[2].partition(")")[0]
        editing = await discord.slash("memory", {"action": "edit", "rest": changed}, user=ADA, channel=general)
        await discord.wait(responded=editing)
        forms.append((await discord.interaction(editing))["form"])
        await discord.wait(answered=await discord.submit(editing, "cocoa"))
        assert [known(form["title"]) for form in forms] == ["Remember", "Correct m_1", "Correct m_1"]
        assert discord_transcript(await discord.state(), general) == expected("""
            Ada: @Remora hello
            Remora (to “@Remora hello”): Answer to: hello

                {first.group}
            Remora (only you see this): Saved (m_1): you like tea
            Remora (only you see this): Corrected: you like coffee (m_2). The old version is kept with its dates: you like tea (m_1).
            Remora (only you see this): Corrected: you like cocoa (m_3). The old version is kept with its dates: you like coffee (m_2).
        """)
