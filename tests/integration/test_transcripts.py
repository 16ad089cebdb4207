"""Talks with the whole product, as the people on a platform see them; and what the other files of transcripts share.

A transcript has a line for each message that stands in a place, oldest first: who says it, in brackets what it answers
and who alone sees it, the words (further lines are indented), the names of files, and the buttons under it. Ids of
memories are numbered as they appear; moments, days, codes, scores and amounts of tokens stand as (now), today, (code), …
and (n); long texts that are always the same have their name in the catalogue, such as {first.private}.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.transcripts import (
    ADA,
    a_discord,
    a_telegram,
    discord_transcript,
    expected,
    serving,
    telegram_transcript,
)
from tests.platforms import discord as discords
from tests.platforms import telegram as telegrams


@pytest.fixture
async def telegram() -> AsyncIterator[telegrams.Control]:
    async with a_telegram() as platform:
        yield platform


@pytest.fixture
async def discord() -> AsyncIterator[discords.Control]:
    async with a_discord() as platform:
        yield platform


async def test_private_chat_on_telegram(telegram: telegrams.Control, tmp_path: Path) -> None:
    """The plain case: words, an answer, and once a word about the bot."""
    async with serving(tmp_path, telegram=telegram, model=telegram.model_url):
        await telegram.say("hello", user=ADA, name="Ada")
        await telegram.wait(chat=ADA, bot_messages=1)
        await telegram.say("how are you?", user=ADA)
        await telegram.wait(chat=ADA, bot_messages=2)
        assert telegram_transcript(await telegram.state(), ADA) == expected(
            """
            Ada: hello
            Remora: Answer to: hello

                {first.private}
            Ada: how are you?
            Remora: Answer to: how are you?
            """
        )


async def test_private_chat_on_discord(discord: discords.Control, tmp_path: Path) -> None:
    """The same talk reads the same."""
    async with serving(tmp_path, discord=discord, model=discord.model_url):
        said = await discord.say("hello", user=ADA, name="Ada")
        await discord.wait(channel=said.channel, bot_messages=1)
        await discord.say("how are you?", user=ADA)
        await discord.wait(channel=said.channel, bot_messages=2)
        assert discord_transcript(await discord.state(), said.channel) == expected(
            """
            Ada: hello
            Remora: Answer to: hello

                {first.private}
            Ada: how are you?
            Remora: Answer to: how are you?
            """
        )
