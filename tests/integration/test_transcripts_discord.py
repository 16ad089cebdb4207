"""Talks on Discord with the whole product, line by line as people there see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.transcripts import (
    ADA,
    BOB,
    CODE,
    REEF,
    a_discord,
    discord_transcript,
    dripping,
    expected,
    grown,
    known,
    learned,
    serving,
    told,
)
from tests.platforms.discord import Control


@pytest.fixture
async def discord() -> AsyncIterator[Control]:
    async with a_discord() as platform:
        yield platform


@pytest.fixture
async def general(discord: Control) -> int:
    """A channel of the server."""
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


async def test_edit_before_its_turn_is_answered_as_edited(discord: Control, tmp_path: Path) -> None:
    """Who corrects a slip at once gets the answer to what they meant."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.fault("hang", method="model", text="wait")
        said = await discord.say("wait", user=ADA, name="Ada")
        slip = await discord.say("tee", user=ADA)
        await told(tmp_path, "tee")
        await discord.edit(slip.message_id, "tea")
        await told(tmp_path, "tee", gone=True)
        await discord.heal()
        await discord.wait(channel=said.channel, bot_messages=2)
        await discord.wait(idle=0.3)
        assert discord_transcript(await discord.state(), said.channel) == expected("""
            Ada: wait
            Ada: tea
            Remora: Answer to: wait

                {first.private}
            Remora: Answer to: tea
        """)


async def test_edit_after_its_turn_changes_what_is_remembered(discord: Control, tmp_path: Path) -> None:
    """The answer stands as it was given, and memory holds what the person means now."""
    async with serving(tmp_path, discord=discord, model=discord.model_url, quiet=0.1):
        said = await discord.say("I like tea", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, bot_messages=1)
        await learned(discord, 1)
        await discord.wait(answered=await discord.slash("memory", user=ADA))
        await discord.edit(said.message_id, "I like coffee")
        await learned(discord, 2)
        await discord.wait(answered=await discord.slash("memory", user=ADA))
        assert discord_transcript(await discord.state(), said.channel) == expected("""
            Ada: I like coffee
            Remora: Answer to: I like tea

                {first.private}
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · last learned (now) · (n) tokens today
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_2  you like coffee (told today)
                Learning is on here · last learned (now) · (n) tokens today
        """)


async def test_deleted_message_takes_with_it_what_was_learned_from_it(discord: Control, tmp_path: Path) -> None:
    """Who takes their words back is not to be reminded of them."""
    async with serving(tmp_path, discord=discord, model=discord.model_url, quiet=0.1):
        said = await discord.say("I like tea", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, bot_messages=1)
        await learned(discord, 1)
        await discord.wait(answered=await discord.slash("memory", user=ADA))
        await discord.delete(said.message_id)
        await discord.wait(delivered=True, idle=0.4)
        await discord.wait(answered=await discord.slash("memory", user=ADA))
        assert discord_transcript(await discord.state(), said.channel) == expected("""
            Remora: Answer to: I like tea

                {first.private}
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · last learned (now) · (n) tokens today
            Remora: I don't remember anything about you here yet.
                Learning is on here · last learned (now) · (n) tokens today
        """)


async def test_deletion_before_its_turn_leaves_nothing_to_answer(discord: Control, tmp_path: Path) -> None:
    """Words that were taken back before anybody read them were never said."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        await discord.fault("hang", method="model", text="wait")
        said = await discord.say("wait", user=ADA, name="Ada")
        gone = await discord.say("a secret", user=ADA)
        await told(tmp_path, "a secret")
        await discord.delete(gone.message_id)
        await told(tmp_path, "a secret", gone=True)
        await discord.heal()
        await discord.wait(channel=said.channel, bot_messages=1)
        await discord.wait(idle=0.3)
        state = await discord.state()
        assert discord_transcript(state, said.channel) == expected("""
            Ada: wait
            Remora: Answer to: wait

                {first.private}
        """)
        assert list(state["model"]["asked"]) == ["wait"]


async def test_message_with_several_files_has_one_answer(discord: Control, tmp_path: Path) -> None:
    """Words, a picture and a text file are one message; what can't be read is named."""
    await discord.script_model({"my cats": "Three cats!"})
    files = [
        ("one.png", b"\x89PNG\r\n\x1a\n1", "image/png"),
        ("two.png", b"\x89PNG\r\n\x1a\n2", "image/png"),
        ("names.txt", b"Tom, Kit, Zed", "text/plain"),
        ("all.zip", b"PK\x03\x04", "application/zip"),
    ]
    async with serving(tmp_path, discord=discord, model=discord.model_url, sees=True):
        said = await discord.say("hello", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, bot_messages=1)
        await discord.say("my cats", user=ADA, attachments=files)
        await discord.wait(channel=said.channel, bot_messages=2)
        await discord.wait(idle=0.3)
        state = await discord.state()
        assert discord_transcript(state, said.channel) == expected("""
            Ada: hello
            Remora: Answer to: hello

                {first.private}
            Ada: my cats [one.png, two.png, names.txt, all.zip]
            Remora: Three cats!
                (all.zip: I can't read this kind of file.)
        """)
        [_hello, asked] = state["model"]["asked"]
        assert "Tom, Kit, Zed" in asked
        assert asked.count("image_url") >= 2


async def test_long_answer_is_several_messages_with_its_code_closed_in_each(discord: Control, tmp_path: Path) -> None:
    """A block of code that goes on must look like code in every message."""
    await discord.script_model({"code": CODE})
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        said = await discord.say("hello", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, bot_messages=1)
        await discord.say("code please", user=ADA)
        await discord.wait(channel=said.channel, text="That is all.")
        assert discord_transcript(await discord.state(), said.channel) == expected("""
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
                ```
            Remora: ```python
                (line 4)
                (line 5)
                (line 6)
                (line 7)
                ```
            Remora: ```python
                (line 8)
                (line 9)
                (line 10)
                (line 11)
                ```

                That is all.
        """)


async def test_answer_grows_in_one_message_and_ends_as_the_answer(discord: Control, tmp_path: Path) -> None:
    """Who waits sees it come, and afterwards one message, as if it had come at once."""
    async with dripping() as model, serving(tmp_path, discord=discord, model=model.base_url, placeholder=0.1):
        said = await discord.say("tell me a story", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, text="…")
        model.give("Once **upon** a time")
        await discord.wait(channel=said.channel, text="Once **upon** a time")
        model.give(" there was a *fi")
        await discord.wait(channel=said.channel, text="fi")
        model.give("sh*.")
        model.end()
        await discord.wait(channel=said.channel, text="fish")
        state = await discord.state()
        [answer] = [one for one in state["channels"][str(said.channel)]["messages"] if one["by_bot"]]
        assert known(grown([*answer["edits"], answer["content"]])) == expected("""
            … ⇒ Once **upon** a time ⇒ Once **upon** a time there was a \\*fi ⇒ Once **upon** a time there was a *fish*\\.

            {first.private}
        """)
        assert discord_transcript(state, said.channel) == expected("""
            Ada: tell me a story
            Remora: Once **upon** a time there was a *fish*.

                {first.private}
        """)
