"""Talks about memory itself: seen, put right, forgotten, handed out; who may see it; one person with two accounts.

They are written down by tests/kit/transcripts.py, and to be read as the person they are with would read them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit.transcripts import (
    ADA,
    BOB,
    CLUB,
    REEF,
    ROOT,
    a_discord,
    a_telegram,
    discord_transcript,
    expected,
    learned,
    serving,
    telegram_transcript,
)
from tests.platforms import discord as discords
from tests.platforms import telegram as telegrams

_MEMORY = re.compile(r"m_[a-z0-9]{6}")
#: Commands, quoted words, ids and names.
_NOT_TRANSLATED = re.compile(r"/\w+(?: [a-z]+)*|“[^”]*”|Answer to: .*|m_\w{6}|openai/m|token|Telegram|UTC|likes = ")


@dataclass(frozen=True, kw_only=True)
class Chat:
    platform: telegrams.Control
    user: int = ADA
    name: str = "Ada"
    chat: int = ADA

    async def say(self, text: str, *, answers: int = 1, **more: Any) -> None:
        """Says something, and waits until so many more messages of the bot stand there and nothing goes on any more."""
        before = len(await self._shown())
        place = None if self.chat == self.user else self.chat
        await self.platform.say(text, user=self.user, name=self.name, chat=place, **more)
        await self.platform.wait(chat=self.chat, bot_messages=before + answers)
        await self.platform.wait(idle=0.1)

    async def teach(self, *texts: str) -> None:
        for text in texts:
            read = (await self.platform.state())["model"]["extractions"]
            await self.say(text)
            await learned(self.platform, read + 1)

    async def press(self, label: str) -> None:
        """Press a button under the bot's last message, until something else stands in its place."""
        shown = (await self._shown())[-1]
        await self.platform.press(shown["message_id"], label=label, chat=self.chat, user=self.user)
        while (await self._shown())[-1].get("text") == shown["text"]:
            await self.platform.wait(idle=0.1)

    async def answer_to(self, text: str) -> int:
        return int(next(one["message_id"] for one in await self._shown() if text in one.get("text", "")))

    async def id_of(self, words: str) -> str:
        """The id that stands last beside these words."""
        lines = [line for one in await self._shown() for line in one.get("text", "").splitlines() if words in line]
        return [found[0] for line in lines if (found := _MEMORY.search(line)) is not None][-1]

    async def transcript(self) -> str:
        return telegram_transcript(await self.platform.state(), self.chat)

    async def _shown(self) -> list[dict[str, Any]]:
        chat = (await self.platform.state())["chats"].get(str(self.chat), {"messages": []})
        return [one for one in chat["messages"] if one["by_bot"] and not one["deleted"]]


@pytest.fixture
async def telegram() -> AsyncIterator[telegrams.Control]:
    async with a_telegram() as platform:
        yield platform


@pytest.fixture
async def discord() -> AsyncIterator[discords.Control]:
    async with a_discord() as platform:
        yield platform


async def test_what_is_remembered_is_seen_and_put_right(telegram: telegrams.Control, tmp_path: Path) -> None:
    """List, search, one of them with its source and buttons, a new value, both versions, a pin, files."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.say("/memory")
        await ada.teach("I like tea")
        await ada.say("/memory")
        await ada.say("/memory search tea")
        tea = await ada.id_of("you like tea")
        await ada.say(f"/memory show {tea}")
        await ada.press("Pin")
        await ada.say(f"/memory edit {tea} green tea")
        await ada.say(f"/memory history {tea}")
        await ada.say("/memory list nonsense")
        await ada.say("/memory pin m_aaaaaa")
        await ada.say("/memory export", answers=3)
        assert await ada.transcript() == expected("""
            Ada: /memory
            Remora: I don't remember anything about you here yet.
                Learning is on here
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /memory
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · last learned (now) · (n) tokens today
            Ada: /memory search tea
            Remora: Found:
                  today  you said: “I like tea”
                  today  I said: “Answer to: I like tea”
                m_1  you like tea (told today)
            Ada: /memory show m_1
            Remora: m_1: you like tea
                fact, preferences · likes = tea
                Told on today, learned from our chat
                Strength 100 % (does not fade) · importance 5 of 10, pinned
                From your message of today: “I like tea”
                Pinned: you like tea (m_1). It never fades, and I always keep it in mind.
                [Unpin] [That's right] [Forget]
            Ada: /memory edit m_1 green tea
            Remora: Corrected: you like green tea (m_2). The old version is kept with its dates: you like tea (m_1).
            Ada: /memory history m_1
            Remora: Versions, oldest first:
                  m_1  you like tea (from (now) to (now))
                  m_2  you like green tea (since today)
            Ada: /memory list nonsense
            Remora: My memories here have no part “nonsense”. These exist: Facts, preferences.
            Ada: /memory pin m_3
            Remora: There is no memory with the id m_3 here. /memory list shows the ids, and /memory search finds memories by words.
            Ada: /memory export
            Remora: Here are my memories from this chat, including old versions (2), and the messages they come from (1): one file to read, one for other programs. /memory export transcript adds everything that was said.
            Remora: [remora.md]
            Remora: [remora.json]
        """)


async def test_without_a_language_model_that_is_said(telegram: telegrams.Control, tmp_path: Path) -> None:
    """The bot says what is noted, why nothing is, and what an answer was made of."""
    async with serving(tmp_path, telegram=telegram):
        ada = Chat(platform=telegram)
        await ada.say("I live in Porto")
        await ada.say("/remember the spare key is under the pot")
        await ada.say("where do I live?")
        await ada.say("I live in Lisbon")
        await ada.say("/why all", reply_to=await ada.answer_to("You live in Porto"))
        await ada.say("/memory off")
        await ada.say("I like tea")
        await ada.say("/memory on")
        await ada.say("/privacy out")
        await ada.say("I like tea")
        await ada.say("我喜欢茶")
        assert await ada.transcript() == expected("""
            Ada: I live in Porto
            Remora: Noted: you live in Porto.
                I'm assistant, a bot that remembers. I run without a language model at the moment: I note what you tell me, answer from memory, and show, correct or forget what I know. /help shows how.

                {first.private}
            Ada: /remember the spare key is under the pot
            Remora: Saved (m_1): the spare key is under the pot
            Ada: where do I live?
            Remora: You live in Porto; you told me today.
            Ada: I live in Lisbon
            Remora: Noted: you live in Lisbon.
            Ada (to “You live in Porto; you told me today.”): /why all
            Remora: What my reply of (now) used:
                Always kept in mind:
                  m_1  to remember: the spare key is under the pot (told today)
                Found for your message:
                  m_2  you live in Porto (told today, outdated since today, replaced by m_3) · score …
                    From your message of today: “I live in Porto”
                Found but not used:
                  you said: “I live in Porto” (today) · score …
                  I said: “Noted: you live in Porto. I'm assistant, a bot that remembers. I run without a language model at the moment: I note wha…” (today) · score …
                Answered without a language model.
            Ada: /memory off
            Remora: {learning.off.private}
            Ada: I like tea
            Remora: I keep that in our conversation but learn nothing from it: learning is off here. /memory on switches it on; in a group an admin can.
            Ada: /memory on
            Remora: {learning.on.private}
            Ada: /privacy out
            Remora: {privacy.out}
            Ada: I like tea
            Remora: I keep that in our conversation but learn nothing from it: you have opted out. /privacy in lets me learn from you again.
            Ada: 我喜欢茶
            Remora: 这句话留在我们的对话里，但我不会从中学习：你选择了不被记住。发送 /privacy in 可以让我重新学习。
        """)


async def test_a_message_that_asks_not_to_be_kept_is_not_kept(telegram: telegrams.Control, tmp_path: Path) -> None:
    async with serving(tmp_path, telegram=telegram):
        ada = Chat(platform=telegram)
        await ada.say("my boat is called Halcyon, don't save that")
        await ada.say("what is my boat called?")
        await ada.say("/memory")
        transcript = await ada.transcript()
        assert "I have not kept that." in transcript
        assert transcript.count("Halcyon") == 1


_CHOICES = """1. and the words (or just yes): I also erase those messages for good
                2. this memory only: the messages stay in our history, but I no longer learn from them or recall them
                3. no: nothing changes
                [and the words]
                [this memory only] [no]"""


def _asked(text: str) -> str:
    return expected(text.replace("CHOICES", _CHOICES))


async def test_what_is_to_be_forgotten_is_asked_back(telegram: telegrams.Control, tmp_path: Path) -> None:
    """By a button and by a typed answer, with the words and without, and by something else that is said."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.teach("I like tea", "I like chess", "I like opera")
        await ada.say("/forget")
        await ada.say("/forget submarines")
        await ada.say("/forget tea")
        asked = await ada.transcript()
        await ada.press("and the words")
        await ada.say("/forget chess")
        await ada.say("this memory only")
        await ada.say("/forget opera")
        await ada.say("no")
        await ada.say("/forget all")
        await ada.say("what is on at the opera?")
        await ada.say("/forget all")
        await ada.say("yes")
        await ada.say("/memory")
        assert asked.endswith(
            _asked("""
            Ada: /forget tea
            Remora: Forget this?
                m_1 · you like tea
                You said: “I like tea”
                Memories: 1. Messages: 1. My answers that quote them: 1.
                CHOICES
        """)
        )
        assert await ada.transcript() == _asked("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: I like chess
            Remora: Answer to: I like chess
            Ada: I like opera
            Remora: Answer to: I like opera
            Ada: /forget
            Remora: {forget.usage}
            Ada: /forget submarines
            Remora: I found nothing here to forget.
            Ada: /forget tea
            Remora: Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of it is left in the database files.
            Ada: /forget chess
            Remora: Forget this?
                m_1 · you like chess
                You said: “I like chess”
                Memories: 1. Messages: 1. My answers that quote them: 1.
                CHOICES
            Ada: this memory only
            Remora: Forgotten. Memories: 1.
                {forget.words_stay}
                No trace of it is left in the database files.
            Ada: /forget opera
            Remora: Forget this?
                m_2 · you like opera
                You said: “I like opera”
                Memories: 1. Messages: 1. My answers that quote them: 1.
                CHOICES
            Ada: no
            Remora: I forgot nothing.
            Ada: /forget all
            Remora: Forget everything?
                m_2 · you like opera
                You said: “I like opera”
                Memories: 1. Messages: 2. My answers that quote them: 2.
                CHOICES
            Ada: what is on at the opera?
            Remora: Answer to: what is on at the opera?
            Ada: /forget all
            Remora: Forget everything?
                m_2 · you like opera
                You said: “what is on at the opera?”
                You said: “I like opera”
                Memories: 1. Messages: 3. My answers that quote them: 3.
                CHOICES
            Ada: yes
            Remora: Forgotten. Memories: 1. Messages erased: 3. My answers erased: 3.
                No trace of it is left in the database files.
            Ada: /memory
            Remora: I don't remember anything about you here yet.
                Learning is on here · last learned (now) · (n) tokens today
        """)


async def test_a_person_is_told_of_themselves(telegram: telegrams.Control, tmp_path: Path) -> None:
    """The task at hand, what it takes, the profile and settings, what is kept and who sees it; and all of it gone."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.teach("I like tea")
        for command in (
            "/task", "/task write a book", "/task", "/task done", "/usage", "/profile", "/profile timezone Lisbon",
            "/profile language klingon", "/profile name Ada", "/profile",
        ):  # fmt: skip
            await ada.say(command)
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /task
            Remora: {task.none}
            Ada: /task write a book
            Remora: All right, our task is now: write a book
            Ada: /task
            Remora: Our task: write a book
            Ada: /task done
            Remora: Task done: write a book
            Ada: /usage
            Remora: Here, in the last 24 hours:
                  learning, openai/m: (n) calls, (n) tokens in, (n) out
                  answers, openai/m: (n) calls, (n) tokens in, (n) out
                Here, in the last 30 days:
                  learning, openai/m: (n) calls, (n) tokens in, (n) out
                  answers, openai/m: (n) calls, (n) tokens in, (n) out
            Ada: /profile
            Remora: Your profile:
                likes: tea (from m_1)
                Language: the one you write in. Timezone: UTC, my own, because you have not set one.
            Ada: /profile timezone Lisbon
            Remora: Your timezone is now Europe/Lisbon. It is (now) there.
            Ada: /profile language klingon
            Remora: I don't have texts in “klingon”. Choose one of en (English), zh (中文), de (Deutsch), es (Español), fr (Français), ja (日本語), or auto to follow the language you write in.
            Ada: /profile name Ada
            Remora: Saved (m_2): your name is Ada
            Ada: /profile
            Remora: Your profile:
                name: Ada (from m_2)
                likes: tea (from m_1)
                Language: the one you write in. Timezone: Europe/Lisbon.
        """)


async def test_an_admin_looks_and_it_is_told(telegram: telegrams.Control, tmp_path: Path) -> None:
    """An admin sees memories of somebody, and that person can see the look."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada, root = Chat(platform=telegram), Chat(platform=telegram, user=ROOT, name="Root", chat=ROOT)
        await ada.teach("I like tea")
        await root.say(f"/admin memory {ADA}")
        tea = await root.id_of("tea")
        await root.say(f"/admin memory {ADA} search tea")
        await root.say(f"/admin memory {ADA} show {tea}")
        await root.say(f"/admin memory {ADA} forget {tea}")
        await root.press("yes")
        await root.say("/admin memory 12345")
        await ada.say("/privacy")
        await ada.say("/admin memory 12345")
        assert await root.transcript() == expected("""
            Root: /admin memory 100000000000001
            Remora: What I remember about 100000000000001 (1 of 1; facts: 1):
                m_1  Ada: likes: tea (told today)
                They can see in /privacy that you looked.
            Root: /admin memory 100000000000001 search tea
            Remora: Found in memories about 100000000000001 (1):
                m_1  Ada: likes: tea (told today)
                They can see in /privacy that you looked.
            Root: /admin memory 100000000000001 show m_1
            Remora: m_1  Ada: likes: tea (told today)
                fact, preference, learned from the chat
                From Ada's message of today: “I like tea”
                They can see in /privacy that you looked.
                [Forget]
            Root: /admin memory 100000000000001 forget m_1
            Remora: Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of it is left in the database files.
            Root: /admin memory 12345
            Remora: I remember nothing about 12345 here.
        """)
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /privacy
            Remora: Your messages that I keep: 0 in private, 0 in groups; groups: 0; files: 0; since: nothing yet.
                What I learned: 0; replaced or archived: 0. /memory shows all of it.
                {privacy.until}
                Backups hold it until they are dropped, after 14 days.
                {privacy.exports}
                When you block me or I leave a group, what was said and learned there is erased after 30 days.
                {privacy.where}
                Who else gets it: the language model, m (127.0.0.1). It gets each message with the conversation around it and related memories. The operator may use further services for search by meaning and for voice messages.
                Learning in this chat: on.
                Learning from what you say: on. /privacy out turns it off.
                {privacy.telling_on}
                {privacy.followups_off}
                Linked accounts: none.
                Admin access (5), newest first:
                  today, Root: memories forgotten: 1
                  today, Root: single memories shown: 1
                  today, Root: single memories shown: 1
                  today, Root: memories found by search: 1
                  today, Root: memories listed: 1
                {privacy.how}
            Ada: /admin memory 12345
            Remora: There is no command /admin. /help lists all commands.
        """)


async def test_a_group_shows_and_forgets_what_is_its_own(telegram: telegrams.Control, tmp_path: Path) -> None:
    """Words that somebody said there are theirs to forget, and what is for one alone is told in private."""
    await telegram.group(CLUB, title="Club")
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram, chat=CLUB)
        bob = Chat(platform=telegram, chat=CLUB, user=BOB, name="Bob")
        await ada.teach("@remora_test_bot I like tea")
        await bob.say("/memory@remora_test_bot")
        await bob.say("/forget@remora_test_bot tea")
        await bob.say("/memory@remora_test_bot off")
        await bob.say("/link@remora_test_bot")
        await bob.say("/why@remora_test_bot all")
        await bob.say("/privacy@remora_test_bot")
        await ada.say("/forget@remora_test_bot tea")
        await ada.press("and the words")
        assert await ada.transcript() == expected("""
            Ada: @remora_test_bot I like tea
            Remora (to “@remora_test_bot I like tea”): Answer to: I like tea

                {first.group}
            Bob: /memory@remora_test_bot
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  Ada: likes: tea (told today)
                Learning is on here · last learned (now) · (n) tokens today
            Bob: /forget@remora_test_bot tea
            Remora: {forget.not_yours}
            Bob: /memory@remora_test_bot off
            Remora: {learning.admins}
            Bob: /link@remora_test_bot
            Remora: {link.private}
            Bob: /why@remora_test_bot all
            Remora: My reply of (now) used nothing from memory.
            Bob: /privacy@remora_test_bot
            Remora: What I learned: facts 1; replaced or archived: 0. /memory shows all of it.
                Who else gets it: the language model, m (127.0.0.1). It gets each message with the conversation around it and related memories. The operator may use further services for search by meaning and for voice messages.
                Learning in this chat: on.
                Admin access: none.
                {privacy.yours}
            Ada: /forget@remora_test_bot tea
            Remora: Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of it is left in the database files.
        """)


async def test_two_accounts_become_one_person(
    telegram: telegrams.Control, discord: discords.Control, tmp_path: Path
) -> None:
    """Asked on both sides; each then reads the other's, until they are parted."""
    async with serving(tmp_path, telegram=telegram, discord=discord, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.teach("I like tea")
        await ada.say("/link")
        [code] = re.findall(r"/link (\S{9})", (await telegram.texts(ADA))[-1])
        said = await discord.say(f"/link {code}", user=BOB, name="Lady Ada")
        await discord.wait(channel=said.channel, text="Is “Ada” on Telegram you")
        await discord.say("yes", user=BOB)
        await telegram.wait(chat=ADA, text="has sent the code you created")
        await ada.press("yes")
        await discord.wait(channel=said.channel, text="Linked")
        await discord.say("/memory", user=BOB)
        await discord.wait(channel=said.channel, text="you like tea")
        await ada.say("/unlink")
        await ada.press("yes")
        await discord.say("/memory", user=BOB)
        await discord.wait(channel=said.channel, text="I don't remember anything")
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /link
            Remora: Send me this in private from your other account, before (now): /link (code)
                I ask both accounts before I link them. Don't give the code to anyone else.
            Remora: Linked: I now treat “Ada” on Telegram, “Lady Ada” on Discord as one person. In a private chat, each can read what any of them told me. /unlink ends that.
            Ada: /unlink
            Remora: “Ada” on Telegram is no longer linked. From now on neither side can read what the other tells me.
        """)
        assert discord_transcript(await discord.state(), said.channel, user=BOB) == expected("""
            Lady Ada: /link (code)
            Remora: “Ada” on Telegram created that code. If you link the accounts, I treat them as one person: in a private chat, each of these accounts can read what any of them has told me or will tell me: “Lady Ada” on Discord, “Ada” on Telegram. If someone else gave you this code, say no.
                Is “Ada” on Telegram you, and do you want to link the accounts? Answer yes or no.
                [yes] [no]
            Lady Ada: yes
            Remora: I have asked “Ada” on Telegram. If the answer there is yes, I link the accounts and tell you here. Without an answer by (now), nothing is linked.
            Remora: Linked: I now treat “Ada” on Telegram, “Lady Ada” on Discord as one person. In a private chat, each can read what any of them told me. /unlink ends that.
            Lady Ada: /memory
            Remora: What I remember (1 of 1):
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here
            Remora: “Ada” on Telegram is no longer linked. From now on neither side can read what the other tells me.
            Lady Ada: /memory
            Remora: I don't remember anything about you here yet.
                Learning is on here
        """)


async def test_memory_on_discord_is_for_the_asker_alone(discord: discords.Control, tmp_path: Path) -> None:
    """The same commands, given in place: what is shown, explained and forgotten there."""
    general = await discord.add_channel("general", guild=REEF)
    async with serving(tmp_path, discord=discord, model=discord.model_url, quiet=0.1):

        async def give(command: str, **options: str) -> None:
            await discord.wait(answered=await discord.slash(command, options, user=ADA, channel=general))

        await discord.say(f"{discord.mention} I like tea", user=ADA, name="Ada", channel=general)
        await discord.wait(channel=general, bot_messages=1)
        await learned(discord, 1)
        await give("memory", action="search", rest="tea")
        await give("why")
        await give("memory", action="off")
        await give("privacy")
        await give("forget", what="tea")
        asked = (await discord.state())["channels"][str(general)]["messages"][-1]
        button = asked["components"][0]["components"][0]
        await discord.press(int(asked["id"]), button["custom_id"], user=ADA)
        await discord.wait(channel=general, text="Forgotten")
        state = await discord.state()
        assert discord_transcript(state, general) == expected("""
            Ada: @Remora I like tea
            Remora (to “@Remora I like tea”): Answer to: I like tea

                {first.group}
            Remora (only you see this): Found:
                  today  you said: “I like tea”
                  today  I said: “Answer to: I like tea”
                m_1  you like tea (told today)
            Remora (only you see this): My reply of (now) used nothing from memory.
            Remora (only you see this): {learning.admins}
            Remora (only you see this): What I learned: facts 1; replaced or archived: 0. /memory shows all of it.
                Who else gets it: the language model, m (127.0.0.1). It gets each message with the conversation around it and related memories. The operator may use further services for search by meaning and for voice messages.
                Learning in this chat: on.
                Admin access: none.
                {privacy.yours}
            Remora (only you see this): Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of it is left in the database files.
        """)
        assert discord_transcript(state, general, user=BOB) == expected("""
            Ada: @Remora I like tea
            Remora (to “@Remora I like tea”): Answer to: I like tea

                {first.group}
        """)


async def test_all_of_it_in_chinese(telegram: telegrams.Control, tmp_path: Path) -> None:
    """Whoever has chosen Chinese reads no English but the commands and what they said themselves."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.say("/profile language zh")
        await ada.teach("I like 茶", "I like 象棋")
        await ada.say("/memory")
        tea = await ada.id_of("茶")
        for command in (
            "/memory search 茶", f"/memory show {tea}", f"/memory edit {tea} 绿茶", f"/memory history {tea}",
            "/memory off", "/memory on", "/memory status", "/task 写书", "/task 完成", "/profile", "/privacy", "/forget 象棋",
        ):  # fmt: skip
            await ada.say(command)
        await ada.press("连同原话")
        await ada.say("忘掉这个")
        await ada.say("/undo")
        await ada.say("/why all")
        await ada.say("/forget all")
        await ada.say("仅此记忆")
        await ada.say("/privacy delete")
        await ada.say("否")
    read = "\n".join(await telegram.texts(ADA))
    assert len(read) > 1_000 and re.findall("[A-Za-z]{3,}", _NOT_TRANSLATED.sub("", read)) == []
