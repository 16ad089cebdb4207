"""Earlier exports of what a person has forgotten since: the receipt names the files and offers to remove them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from io import StringIO
from itertools import count
from pathlib import Path

import pytest

from channels.base import Place
from channels.console import ConsoleChannel, Streams
from gateway.wording.texts import Texts
from memory.transfer.formats import remora
from memory.transfer.transfers import exports_of
from tests.kit.bench import Handset, Talk
from tests.kit.fakes import Clock
from tests.kit.forgetting import let_go
from tests.kit.transcripts import ADA, a_discord, a_telegram, serving

EN = Texts("en")


@pytest.fixture
def talk(tmp_path: Path, clock: Clock) -> Talk:
    return Talk(tmp_path, Handset(file_bytes=1 << 20), clock)


def export_of(platform: str, user_id: str, folder: Path, stem: str) -> list[str]:
    of = {"kind": "person", "platform": platform, "user_id": user_id, "name": "Ada_L"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_bytes(remora.write(of=of, exported_at=0, memories=[], messages=[]))
    (folder / f"{stem}.md").write_text(remora.page(of=of, exported_at=0, memories=[], messages=[]))
    return [f"{stem}.json", f"{stem}.md"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def put_down(talk: Talk, folder: Path) -> None:
    before = len(talk.phone.sent)
    await talk.ask("/memory export")
    console = ConsoleChannel(
        person="ada", now=talk.clock, new_id=lambda: "1", streams=Streams(stdin=StringIO(), stdout=StringIO()),
        files=folder,
    )  # fmt: skip
    for shown in talk.phone.sent[before:]:
        if shown.file is not None:
            await console.send(replace(shown, place=Place(channel="console", chat="ada")))


async def test_the_receipt_names_ones_own_files_and_removes_them_when_asked(talk: Talk, tmp_path: Path) -> None:
    """Those of others, and whatever else lies there, stay; a second forget has nothing to ask about."""
    folder = tmp_path / "exports"
    async with talk.running():
        await talk.kept("I live in Lisbon")
        await talk.kept("I like tea")
        await put_down(talk, folder)
        others = export_of("console", "bob", folder, "bobs")
        (folder / "notes.md").write_text("# What Remora remembers of nobody\n\nLisbon")
        (folder / "broken.json").write_text("{")
        mine = ["remora.json", "remora.md"]
        assert names(folder) == sorted([*mine, *others, "notes.md", "broken.json"])
        await talk.ask("/forget lisbon")
        told = await talk.ask("yes")
        assert let_go() in told and EN("forget.exports", names="exports/remora.json, exports/remora.md") in told
        assert await talk.ask("ok") == EN("answer.unsure", choices="yes / no") and set(mine) <= set(names(folder))
        assert await talk.press(talk.phone.button("yes").data) == EN("forget.exports_gone", count=2)
        assert names(folder) == sorted([*others, "notes.md", "broken.json"])
        await talk.ask("/forget tea")
        assert (
            "bobs" not in (told := await talk.ask("yes")) and EN("forget.exports", names="").split(":")[0] not in told
        )


async def test_files_stay_if_the_person_wants_them_or_says_something_else(talk: Talk, tmp_path: Path) -> None:
    """Nobody asked for them to go; and what is exported after the question is not meant."""
    folder = tmp_path / "exports"
    async with talk.running():
        for answer in ("no", "what about tea?"):
            await talk.kept("I live in Lisbon")
            mine = export_of("console", "ada", folder, "mine")
            await talk.ask("/forget lisbon")
            assert "exports/mine.json" in await talk.ask("yes")
            await talk.ask(answer)
            await talk.ask("yes")
            assert names(folder) == mine
        await talk.kept("I live in Lisbon")
        await talk.ask("/forget lisbon")
        await talk.ask("yes")
        later = export_of("console", "ada", folder, "later")
        assert await talk.ask("yes") == EN("forget.exports_gone", count=2) and names(folder) == later


async def test_nobody_in_a_group_reads_which_files_there_are(talk: Talk, tmp_path: Path) -> None:
    async with talk.running():
        export_of("console", "ada", tmp_path / "exports", "mine")
        await talk.kept("I live in Lisbon", chat="club")
        await talk.ask("/forget lisbon", chat="club")
        assert "mine" not in await talk.ask("yes", chat="club")


async def asked_and_removed(folder: Path, platform: str, ask: Callable[[str], Awaitable[str]]) -> None:
    exports = folder / "data" / "exports"
    export_of(platform, str(ADA), exports, "mine")
    others = export_of(platform, "1", exports, "others")
    await ask("/remember I live in Lisbon")
    await ask("/forget lisbon")
    told = await ask("yes")
    assert "exports/mine.json, exports/mine.md" in told and "others" not in told
    assert await ask("yes") == EN("forget.exports_gone", count=2) and names(exports) == others


async def test_on_telegram(tmp_path: Path) -> None:
    async with a_telegram() as telegram, serving(tmp_path, telegram=telegram):

        async def ask(text: str) -> str:
            before = len(await telegram.texts(ADA))
            await telegram.say(text, user=ADA, name="Ada")
            await telegram.wait(chat=ADA, bot_messages=before + 1)
            await telegram.wait(idle=0.2)
            return str((await telegram.texts(ADA))[-1])

        await asked_and_removed(tmp_path, "telegram", ask)


async def test_on_discord(tmp_path: Path) -> None:
    async with a_discord() as discord, serving(tmp_path, discord=discord):
        asked = count(1)

        async def ask(text: str) -> str:
            said = await discord.say(text, user=ADA, name="Ada")
            await discord.wait(channel=said.channel, bot_messages=next(asked))
            await discord.wait(delivered=True, idle=0.2)
            messages = (await discord.state())["channels"][str(said.channel)]["messages"]
            return str([one for one in messages if one["by_bot"]][-1]["content"])

        await asked_and_removed(tmp_path, "discord", ask)


def test_a_page_without_an_account_is_known_by_the_data_beside_it(tmp_path: Path) -> None:
    """Earlier versions did not name the account on the page."""
    export_of("console", "ada", tmp_path, "mine")
    page = tmp_path / "mine.md"
    page.write_text(page.read_text().replace(", for console:ada", ""))
    assert [path.name for path in exports_of(tmp_path, {("console", "ada")}).values()] == ["mine.json", "mine.md"]
    assert exports_of(tmp_path, {("console", "ad")}) == {} and exports_of(tmp_path / "none", {("console", "ada")}) == {}
