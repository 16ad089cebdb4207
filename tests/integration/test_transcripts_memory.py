"""Talks about memory itself: seen, put right, forgotten, handed out; who may see it; one person with two accounts.

They are written down as in test_transcripts.py, and to be read as the person they are with would read them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_transcripts import (
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


@dataclass(frozen=True, kw_only=True)
class Chat:
    """One person in a chat on Telegram."""

    platform: telegrams.Control
    user: int = ADA
    name: str = "Ada"
    chat: int = ADA

    async def say(self, text: str, *, answers: int = 1, **more: Any) -> None:
        """Say something, until so many messages of the bot more stand there and nothing goes on any more."""
        before = len(await self._shown())
        place = None if self.chat == self.user else self.chat
        await self.platform.say(text, user=self.user, name=self.name, chat=place, **more)
        await self.platform.wait(chat=self.chat, bot_messages=before + answers)
        await self.platform.wait(idle=0.1)

    async def teach(self, *texts: str) -> None:
        """Say these, each until it was read for memories."""
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
        """The bot's answer that holds this."""
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
            Remora: I remember nothing of you here yet.
                Learning is on here
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /memory
            Remora: What I remember (1 of 1):
                In short: likes: tea
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · last read (now) · today (n) tokens
            Ada: /memory search tea
            Remora: Found:
                  today  you said: “I like tea”
                  today  I said: “Answer to: I like tea”
                m_1  you like tea (told today)
            Ada: /memory show m_1
            Remora: m_1: you like tea
                fact, preferences · likes = tea
                Told on today, picked up from our talk
                Strength 100 % (does not fade) · importance 5 of 10, pinned
                From your message of today: “I like tea”
                Pinned: you like tea (m_1). It never fades, and I always have it at hand.
                [Unpin] [That's right] [Forget]
            Ada: /memory edit m_1 green tea
            Remora: Corrected: you like green tea (m_2). Before: you like tea (m_1), kept with its dates.
            Ada: /memory history m_1
            Remora: Versions, oldest first:
                  m_1  you like tea (from (now) to (now))
                  m_2  you like green tea (since today)
            Ada: /memory list nonsense
            Remora: There is no part “nonsense” of what I remember. What there is: Facts, preferences.
            Ada: /memory pin m_3
            Remora: I know no memory m_3 here. /memory list shows the ids.
            Ada: /memory export
            Remora: What I remember here, old versions too (2), with the messages it comes from (1): a file for people and one for programs. /memory export transcript adds all that was said.
            Remora: [remora.md]
            Remora: [remora.json]
        """)


async def test_learning_is_switched_off_and_on(telegram: telegrams.Control, tmp_path: Path) -> None:
    """What is said meanwhile is no memory, then or later."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.teach("I like tea")
        await ada.say("/memory off")
        await ada.say("I like rum")
        await ada.say("/memory")
        await ada.say("/memory on")
        await ada.teach("I like opera")
        await ada.say("/memory list facts")
        await ada.say("/memory status")
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /memory off
            Remora: {learning.off.private}
            Ada: I like rum
            Remora: Answer to: I like rum
            Ada: /memory
            Remora: What I remember (1 of 1):
                In short: likes: tea
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is off here (/memory on) · last read (now) · today (n) tokens
            Ada: /memory on
            Remora: Learning is on in this chat: what you say from now on may be remembered. What was said while it was off is not.
            Ada: I like opera
            Remora: Answer to: I like opera
            Ada: /memory list facts
            Remora: What I remember (2 of 2):
                Facts · preferences (2)
                  m_2  you like opera (told today)
                  m_1  you like tea (told today)
            Ada: /memory status
            Remora: Current: Facts 2. Replaced or set aside: 0.
                Messages that can be found: 4
                The oldest was told on today.
                Learning is on here
                last read (now)
                today (n) tokens
                Next work of the night: (job), (now)
        """)


async def test_why_says_what_entered_a_reply(telegram: telegrams.Control, tmp_path: Path) -> None:
    """The last one, or the one that is answered with the command; what was no reply says so."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.say("/why")
        await ada.teach("I like tea")
        await ada.say("hello again")
        await ada.say("/new")
        await ada.say("what do I like?")
        await ada.say("/why")
        await ada.say("/why", reply_to=await ada.answer_to("hello again"))
        await ada.say("/why", reply_to=await ada.answer_to("A fresh start"))
        assert await ada.transcript() == expected("""
            Ada: /why
            Remora: I have not replied here yet.
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: hello again
            Remora: Answer to: hello again
            Ada: /new
            Remora: A fresh start: I no longer look at what was said before, but what I remember stays.
            Ada: what do I like?
            Remora: Answer to: what do I like?
            Ada: /why
            Remora: In my reply of (now):
                From your profile:
                  likes: tea
                Known all along:
                  m_1  you like tea (told today) · score …
                    From your message of today: “I like tea”
                Found for your message:
                  you said: “hello again” (today) · score …
                  I said: “Answer to: I like tea” (today) · score …
                  I said: “Answer to: hello again” (today) · score …
                Found, but not needed:
                  you said: “I like tea” (today) · score …
                Model: openai/m, (n) tokens in, (n) out
            Ada (to “Answer to: hello again”): /why
            Remora: In my reply of (now):
                Known all along:
                  m_1  you like tea (told today)
                Model: openai/m, (n) tokens in, (n) out
            Ada (to “A fresh start: I no longer look at what was said before, but what I remember stays.”): /why
            Remora: {why.no_answer}
        """)


async def test_without_a_language_model_that_is_said(telegram: telegrams.Control, tmp_path: Path) -> None:
    """What is noted, why nothing is, and what an answer was made of."""
    async with serving(tmp_path, telegram=telegram):
        ada = Chat(platform=telegram)
        await ada.say("I live in Porto")
        await ada.say("/remember the spare key is under the pot")
        await ada.say("where do I live?")
        await ada.say("I live in Lisbon")
        await ada.say("/why", reply_to=await ada.answer_to("You told me on"))
        await ada.say("/memory off")
        await ada.say("I like tea")
        await ada.say("/memory on")
        await ada.say("/privacy out")
        await ada.say("I like tea")
        await ada.say("我喜欢茶")
        assert await ada.transcript() == expected("""
            Ada: I live in Porto
            Remora: Noted: you live in Porto.
                I am running offline, without a language model: I note what you tell me about yourself, answer from memory, and can show, correct and forget what I know. Type /help to see how.

                {first.private}
            Ada: /remember the spare key is under the pot
            Remora: Saved (m_1): the spare key is under the pot
            Ada: where do I live?
            Remora: You told me on today: you live in Porto.
            Ada: I live in Lisbon
            Remora: Noted: you live in Lisbon.
            Ada (to “You told me on today: you live in Porto.”): /why
            Remora: In my reply of (now):
                Known all along:
                  m_2  you live in Porto (told today, outdated since today: now m_3) · score …
                    From your message of today: “I live in Porto”
                  you said: “I live in Porto” (today) · score …
                  I said: “Noted: you live in Porto. I am running offline, without a language model: I note what you tell me about yourself, answe…” (today) · score …
                  m_1  to remember: the spare key is under the pot (told today)
                Answered without a language model.
            Ada: /memory off
            Remora: {learning.off.private}
            Ada: I like tea
            Remora: I have kept that in our conversation, but learn nothing from it: learning is off here. /memory on switches it on; in a group an admin can.
            Ada: /memory on
            Remora: Learning is on in this chat: what you say from now on may be remembered. What was said while it was off is not.
            Ada: /privacy out
            Remora: {privacy.out}
            Ada: I like tea
            Remora: I have kept that in our conversation, but learn nothing from it: you have opted out. /privacy in has me learn from what you say again.
            Ada: 我喜欢茶
            Remora: 我已把这句话留在对话里，但没有从中学习：你选择了不让我学习。/privacy in 可让我重新学习。
        """)


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
        assert asked == expected("""
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
            Remora: Forget this?
                m_1 · you like tea
                Memories: 1. Messages: 1. My answers that quote them: 1.
                – and the words (or just yes): what those messages say is erased, too, for good
                – this memory only: the words stay in our history, but I no longer learn from them or recall them
                – no: nothing changes
                [and the words]
                [this memory only] [no]
        """)
        assert await ada.transcript() == expected("""
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
            Remora: Forgotten. Memories: 1. Made from them: 3. Messages erased: 1. My answers erased: 1.
                No trace of what is forgotten is left in the database files.
            Ada: /forget chess
            Remora: Forget this?
                m_1 · you like chess
                Memories: 1. Messages: 1. My answers that quote them: 1.
                – and the words (or just yes): what those messages say is erased, too, for good
                – this memory only: the words stay in our history, but I no longer learn from them or recall them
                – no: nothing changes
                [and the words]
                [this memory only] [no]
            Ada: this memory only
            Remora: Forgotten. Memories: 1. Made from them: 1.
                The words stay in our history; I no longer learn from them or recall them.
                No trace of what is forgotten is left in the database files.
            Ada: /forget opera
            Remora: Forget this?
                m_2 · you like opera
                Memories: 1. Messages: 1. My answers that quote them: 1.
                – and the words (or just yes): what those messages say is erased, too, for good
                – this memory only: the words stay in our history, but I no longer learn from them or recall them
                – no: nothing changes
                [and the words]
                [this memory only] [no]
            Ada: no
            Remora: Nothing was forgotten.
            Ada: /forget all
            Remora: Forget everything?
                m_2 · you like opera
                Memories: 1. Messages: 2. My answers that quote them: 2.
                – and the words (or just yes): what those messages say is erased, too, for good
                – this memory only: the words stay in our history, but I no longer learn from them or recall them
                – no: nothing changes
                [and the words]
                [this memory only] [no]
            Ada: what is on at the opera?
            Remora: Answer to: what is on at the opera?
            Ada: /forget all
            Remora: Forget everything?
                m_2 · you like opera
                Memories: 1. Messages: 3. My answers that quote them: 3.
                – and the words (or just yes): what those messages say is erased, too, for good
                – this memory only: the words stay in our history, but I no longer learn from them or recall them
                – no: nothing changes
                [and the words]
                [this memory only] [no]
            Ada: yes
            Remora: Forgotten. Memories: 1. Made from them: 1. Messages erased: 3. My answers erased: 3.
                No trace of what is forgotten is left in the database files.
            Ada: /memory
            Remora: I remember nothing of you here yet.
                Learning is on here · last read (now) · today (n) tokens
        """)


async def test_plain_words_take_back_what_was_said(telegram: telegrams.Control, tmp_path: Path) -> None:
    """Who says "forget that" knows no command; /undo and /retry are about the last turn."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.say("/undo")
        await ada.say("/retry")
        await ada.teach("I like tea", "I like chess")
        await ada.say("that's wrong")
        await ada.say("forget that")
        await ada.press("my last message")
        await ada.say("/retry")
        await ada.say("/undo")
        await ada.say("/memory")
        assert await ada.transcript() == expected("""
            Ada: /undo
            Remora: There is nothing of yours here to take back.
            Ada: /retry
            Remora: There is nothing of yours here to answer anew.
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: I like chess
            Remora: Answer to: I like chess
            Ada: that's wrong
            Remora: Answer to: that's wrong
            Ada: forget that
            Remora: I have learned nothing from that yet, but I can take your last message back.
                /undo takes back your last message, my answer and all it taught me.
                [my last message]
            Remora: Taken back: your message of (now) and my answer to it. It had taught me nothing.
            Ada: /retry
            Remora: Answer to: I like chess
            Ada: /undo
            Remora: Taken back: your message of (now) and my answer to it. Gone with it: you like chess
            Ada: /memory
            Remora: What I remember (1 of 1):
                In short: likes: tea
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here · last read (now) · today (n) tokens
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
            Remora: We are not working on anything in particular. /task [<text>|done] names something.
            Ada: /task write a book
            Remora: All right, we are working on: write a book
            Ada: /task
            Remora: We are working on: write a book
            Ada: /task done
            Remora: Done: write a book
            Ada: /usage
            Remora: Here, in the last 24 hours:
                  learning, openai/m: (n) calls, (n) tokens in, (n) out
                  answers, openai/m: (n) calls, (n) tokens in, (n) out
                Here, in the last 30 days:
                  learning, openai/m: (n) calls, (n) tokens in, (n) out
                  answers, openai/m: (n) calls, (n) tokens in, (n) out
            Ada: /profile
            Remora: What I know of you in short:
                likes: tea (from m_1)
                Language: the one you write in. Timezone: UTC, mine, as you have set none.
            Ada: /profile timezone Lisbon
            Remora: Your timezone is Europe/Lisbon: (now) there.
            Ada: /profile language klingon
            Remora: I have no texts in “klingon”. There are: en (English), zh (中文); auto goes by what you write.
            Ada: /profile name Ada
            Remora: Saved (m_2): your name is Ada
            Ada: /profile
            Remora: What I know of you in short:
                name: Ada (from m_2)
                likes: tea (from m_1)
                Language: the one you write in. Timezone: Europe/Lisbon.
        """)


async def test_privacy_is_told_and_chosen(telegram: telegrams.Control, tmp_path: Path) -> None:
    """What is kept and who sees it, staying out of it, and all of it gone."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram)
        await ada.teach("I like tea")
        for command in (
            "/privacy", "/privacy out", "/privacy in", "/privacy about off", "/privacy about on", "/privacy delete",
        ):  # fmt: skip
            await ada.say(command)
        await ada.press("yes")
        await ada.say("/memory")
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /privacy
            Remora: Messages of yours I keep: 1 in private, 0 in groups; groups: 0; files: 0; since: today.
                What I learned: facts 1; replaced or set aside: 0. /memory shows all of it.
                {privacy.until}
                Where: in a database on the machine of the one who runs me. Whoever can open its files can read it.
                Who else gets it: the language model, m (127.0.0.1): each message with the talk around it and what I remember that may bear on it. For search by meaning and for voice messages the operator may use further services.
                Learning in this chat: on.
                Learning from what you say: on. /privacy out ends it.
                Learning about you from what others say: on. /privacy about off ends it.
                Linked accounts: none.
                Looks of admins: none.
                /forget erases what you name, /memory export hands all of it out, /privacy delete erases everything.
            Ada: /privacy out
            Remora: {privacy.out}
            Ada: /privacy in
            Remora: I learn from what you say again, from the next message on; nothing from what you said in between.
            Ada: /privacy about off
            Remora: {privacy.about_off}
            Ada: /privacy about on
            Remora: What others say about you may be remembered again, in the chat where they say it.
            Ada: /privacy delete
            Remora: Erased: 1 messages of yours, 1 of my answers, 1 memories, 0 files, your names and links.
                {privacy.stays}
            Ada: /memory
            Remora: I remember nothing of you here yet.
                Learning is on here · last read (now) · today (n) tokens
        """)


async def test_an_admin_looks_and_it_is_told(telegram: telegrams.Control, tmp_path: Path) -> None:
    """What an admin sees of somebody, and that this one can see it."""
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
            Remora: Remembered of 100000000000001 (1 of 1; facts: 1):
                m_1  Ada: likes: tea (told today)
                They can see under /privacy that you looked.
            Root: /admin memory 100000000000001 search tea
            Remora: Found in what is remembered of 100000000000001 (1):
                m_1  Ada: likes: tea (told today)
                They can see under /privacy that you looked.
            Root: /admin memory 100000000000001 show m_1
            Remora: m_1  Ada: likes: tea (told today)
                fact, preference, picked up from what was said
                From a message of Ada, today: “I like tea”
                They can see under /privacy that you looked.
                [forget]
            Root: /admin memory 100000000000001 forget m_1
            Remora: Forgotten. Memories: 1. Made from them: 1. Messages erased: 1. My answers erased: 1.
                No trace of what is forgotten is left in the database files.
            Root: /admin memory 12345
            Remora: Nothing is remembered of 12345 here.
        """)
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /privacy
            Remora: Messages of yours I keep: 0 in private, 0 in groups; groups: 0; files: 0; since: nothing yet.
                What I learned: 0; replaced or set aside: 0. /memory shows all of it.
                {privacy.until}
                Where: in a database on the machine of the one who runs me. Whoever can open its files can read it.
                Who else gets it: the language model, m (127.0.0.1): each message with the talk around it and what I remember that may bear on it. For search by meaning and for voice messages the operator may use further services.
                Learning in this chat: on.
                Learning from what you say: on. /privacy out ends it.
                Learning about you from what others say: on. /privacy about off ends it.
                Linked accounts: none.
                Looks of admins (5), newest first:
                  today, Root: memories forgotten: 1
                  today, Root: single memories shown: 1
                  today, Root: single memories shown: 1
                  today, Root: memories found by a search: 1
                  today, Root: memories listed: 1
                /forget erases what you name, /memory export hands all of it out, /privacy delete erases everything.
            Ada: /admin memory 12345
            Remora: There is no command /admin. /help lists them all.
        """)


async def test_a_group_shows_and_forgets_what_is_its_own(telegram: telegrams.Control, tmp_path: Path) -> None:
    """What somebody said there is theirs to forget, and what is for one alone is told in private."""
    await telegram.group(CLUB, title="Club")
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url, quiet=0.1):
        ada = Chat(platform=telegram, chat=CLUB)
        bob = Chat(platform=telegram, chat=CLUB, user=BOB, name="Bob")
        await ada.teach("@remora_test_bot I like tea")
        await bob.say("/memory@remora_test_bot")
        await bob.say("/forget@remora_test_bot tea")
        await bob.say("/memory@remora_test_bot off")
        await bob.say("/link@remora_test_bot")
        await bob.say("/why@remora_test_bot")
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
                Learning is on here · last read (now) · today (n) tokens
            Bob: /forget@remora_test_bot tea
            Remora: That is not yours to forget: only the one who said it, the one it is about, or an admin can have it forgotten.
            Bob: /memory@remora_test_bot off
            Remora: In a group that is for everybody, so only an admin can switch it. For yourself: /privacy out.
            Bob: /link@remora_test_bot
            Remora: Which accounts are yours is between us two: ask me in our private chat.
            Bob: /why@remora_test_bot
            Remora: That is for you alone. Write to me in private once, then ask me there.
            Bob: /privacy@remora_test_bot
            Remora: What I learned: facts 1; replaced or set aside: 0. /memory shows all of it.
                Who else gets it: the language model, m (127.0.0.1): each message with the talk around it and what I remember that may bear on it. For search by meaning and for voice messages the operator may use further services.
                Learning in this chat: on.
                Looks of admins: none.
                What concerns you alone I tell in our private chat: /privacy there.
            Ada: /forget@remora_test_bot tea
            Remora: Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of what is forgotten is left in the database files.
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
        await telegram.wait(chat=ADA, text="has given the code you made")
        await ada.press("yes")
        await discord.wait(channel=said.channel, text="Linked")
        await discord.say("/memory", user=BOB)
        await discord.wait(channel=said.channel, text="you like tea")
        await ada.say("/unlink")
        await ada.press("yes")
        await discord.say("/memory", user=BOB)
        await discord.wait(channel=said.channel, text="I remember nothing")
        assert await ada.transcript() == expected("""
            Ada: I like tea
            Remora: Answer to: I like tea

                {first.private}
            Ada: /link
            Remora: Send me this in private from your other account, before (now): /link (code)
                Both accounts are asked before anything is linked. Give the code to nobody else.
            Remora: Linked: “Ada” on Telegram, “Lady Ada” on Discord are one person for me now. Each reads in private what any of them told me; /unlink ends that.
            Ada: /unlink
            Remora: “Ada” on Telegram is no longer linked: from now on neither side reads the other's.
        """)
        assert discord_transcript(await discord.state(), said.channel, user=BOB) == expected("""
            Lady Ada: /link (code)
            Remora: That code was made by “Ada” on Telegram. Linked, you are one person for me: in private, each of these accounts reads what any of them has told me or will tell me: “Lady Ada” on Discord, “Ada” on Telegram. If somebody else gave you this code, say no.
                Is “Ada” on Telegram you, and shall I go on? Answer yes or no.
                [yes] [no]
            Lady Ada: yes
            Remora: I have asked “Ada” on Telegram. A yes there links you and I tell you here; without an answer by (now) nothing is linked.
            Remora: Linked: “Ada” on Telegram, “Lady Ada” on Discord are one person for me now. Each reads in private what any of them told me; /unlink ends that.
            Lady Ada: /memory
            Remora: What I remember (1 of 1):
                In short: likes: tea
                Facts · preferences (1)
                  m_1  you like tea (told today)
                Learning is on here
            Remora: “Ada” on Telegram is no longer linked: from now on neither side reads the other's.
            Lady Ada: /memory
            Remora: I remember nothing of you here yet.
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
            Remora (only you see this): Nothing from memory was in my reply of (now).
                Model: openai/m, (n) tokens in, (n) out
            Remora (only you see this): In a group that is for everybody, so only an admin can switch it. For yourself: /privacy out.
            Remora (only you see this): What I learned: facts 1; replaced or set aside: 0. /memory shows all of it.
                Who else gets it: the language model, m (127.0.0.1): each message with the talk around it and what I remember that may bear on it. For search by meaning and for voice messages the operator may use further services.
                Learning in this chat: on.
                Looks of admins: none.
                What concerns you alone I tell in our private chat: /privacy there.
            Remora (only you see this): Forgotten. Memories: 1. Messages erased: 1. My answers erased: 1.
                No trace of what is forgotten is left in the database files.
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
        await ada.say("/why")
        await ada.say("/forget all")
        await ada.say("仅此记忆")
        await ada.say("/privacy delete")
        await ada.say("否")
        assert await ada.transcript() == expected("""
            Ada: /profile language zh
            Remora: 从现在起，凡不是模型自己说的话，我都用中文。
            Ada: I like 茶
            Remora: Answer to: I like 茶

                {first.private}
            Ada: I like 象棋
            Remora: Answer to: I like 象棋
            Ada: /memory
            Remora: 我记得的（2/2）：
                概括：喜欢: 象棋; 茶
                事实 · 喜好（2）
                  m_1  你喜欢象棋（today说的）
                  m_2  你喜欢茶（today说的）
                此处会学习 · 上次阅读 (now) · 今天 (n) 个 token
            Ada: /memory search 茶
            Remora: 找到：
                  today  你说过：“I like 茶”
                m_2  你喜欢茶（today说的）
                  today  我说过：“Answer to: I like 茶”
            Ada: /memory show m_2
            Remora: m_2：你喜欢茶
                事实，喜好 · likes = 茶
                today说的，从聊天中记下
                强度 100% · 重要性 5/10
                出自你today的消息：“I like 茶”
                [置顶] [没错] [忘掉]
            Ada: /memory edit m_2 绿茶
            Remora: 已更正：你喜欢绿茶（m_3）。之前：你喜欢茶（m_2），连同日期保留。
            Ada: /memory history m_2
            Remora: 各个版本，从旧到新：
                  m_2  你喜欢茶（(now)至(now)）
                  m_3  你喜欢绿茶（today起）
            Ada: /memory off
            Remora: {learning.off.private}
            Ada: /memory on
            Remora: 这个聊天重新开始学习：你从现在起说的话可能会被记住。停止学习期间说的不会。
            Ada: /memory status
            Remora: 当前：事实 2。已被取代或搁置：1。
                可以找到的消息：4 条
                最早的是today说的。
                此处会学习
                上次阅读 (now)
                今天 (n) 个 token
                下一项夜间工作：(job)，(now)
            Ada: /task 写书
            Remora: 好，我们在做：写书
            Ada: /task 完成
            Remora: 已完成：写书
            Ada: /profile
            Remora: 我对你的概括：
                喜欢：绿茶; 象棋（出自 m_1, m_3）
                语言：中文。时区：UTC（我的时区）。
            Ada: /privacy
            Remora: 我保存的你的消息：私聊 2 条，群里 0 条（0 个群）；文件：0 个；最早：today。
                我学到的：事实 2；已被取代或搁置：1。/memory 可查看全部。
                保存多久：直到你让我忘掉（/forget 或 /privacy delete）。备份则随运营者保留备份的时间而定。
                存在哪里：运行我的人的机器上的数据库。能打开那些文件的人就能读到。
                还会给谁：语言模型 m (127.0.0.1)：每条消息连同前后的对话，以及我记得的相关内容。按含义搜索和语音消息，运营者可能还用了其他服务。
                在这个聊天中学习：开。
                从你说的话中学习：开。/privacy out 可关闭。
                从别人说你的话中学习：开。/privacy about off 可关闭。
                关联的账号：无。
                管理员的查看：无。
                {privacy.how}
            Ada: /forget 象棋
            Remora: 已忘记：记忆 1 条，由它们得出的 2 条，抹去消息 1 条，抹去回答 1 条。
                被忘记的内容在数据库文件中已不留任何痕迹。
            Ada: 忘掉这个
            Remora: 我还没有从那里学到什么，但可以收回你的上一条消息。
                /undo 收回你的上一条消息、我的回答，以及由它学到的一切。
                [我的上一条消息]
            Ada: /undo
            Remora: 已收回：你(now)的消息和我的回答。随之删去：你喜欢茶
            Ada: /why
            Remora: 我(now)的回复中：
                一直知道的：
                  此后被忘掉的、或不再属于你的一条
                  此后被忘掉的、或不再属于你的一条
                  此后被忘掉的、或不再属于你的一条
                模型：openai/m，输入 (n)，输出 (n) 个 token
            Ada: /forget all
            Remora: 要忘记全部吗？
                m_3 · 你喜欢绿茶
                记忆：1 条。消息：0 条。引用它们的回答：0 条。
                – 连同原话（或直接回答“是”）：那些消息的内容也会永久抹去
                – 仅此记忆：原话仍留在历史中，但我不再从中学习或想起它
                – 否：一切不变
                [连同原话] [仅此记忆] [否]
            Ada: 仅此记忆
            Remora: 已忘记：记忆 1 条，由它们得出的 1 条。
                原话仍留在历史中；我不再从中学习或想起它。
                被忘记的内容在数据库文件中已不留任何痕迹。
            Ada: /privacy delete
            Remora: 这会清除我保存的你的一切，包括这里和每个群：0 条消息连同我的回答、0 条记忆、0 个文件、你的名字和关联。无法撤销。涉及：
                1. Telegram上的“Ada”（当前账号）
                留下的：别人用自己的话说过的内容；聊天平台保存的；备份中的副本，直到被替换；模型服务商记录的。你不想被学习的设置保持不变。
                全部清除吗？请回答“是”或“否”。
                [是] [否]
            Ada: 否
            Remora: 什么都没有清除。
        """)
