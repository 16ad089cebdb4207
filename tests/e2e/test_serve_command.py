"""`remora serve`, `status` and `channels` as somebody types them, beside platforms of the test's own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.platforms.discord import GENERAL
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import Control, serving

ROOT = Path(__file__).parents[2]
TOKEN = "123456789:" + "Aa0_-" * 7
#: A person on Discord, and somebody else.
ADA, EVE = 345678901234567890, 345678901234567891


class Machine:
    """A folder with a configuration, and the program started in it."""

    def __init__(self, folder: Path, telegram: Control) -> None:
        self.folder = folder
        self.telegram = telegram
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.config = folder / "config.yaml"

    def configure(self, bot: str = "allow: [7], admins: [7]") -> None:
        self.config.write_text(self.settings(f"[{{token: '{TOKEN}', base_url: '{self.telegram.url}', {bot}}}]"))

    def settings(self, bots: str) -> str:
        return (
            f"data_dir: data\nembedding: {{provider: none}}\nmemory: {{exit_seconds: 2}}\nlimits: {{burst_seconds: 0}}\n"
            f"http: {{port: {self.port}}}\nchannels:\n  telegram: {bots}\n"
        )

    def configure_both(self, discord: Discord) -> None:
        telegram = f"[{{token: '{TOKEN}', base_url: '{self.telegram.url}', allow: [7], admins: [7]}}]"
        self.config.write_text(
            f"{self.settings(telegram)}  discord:\n    - token: {discord.token}\n      base_url: {discord.api_url}\n"
            f"      allow: [{ADA}]\n      admins: [{ADA}]\n"
        )

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway", *arguments, "--config", str(self.config)),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={k: v for k, v in os.environ.items() if k not in ("TELEGRAM_TOKEN", "DISCORD_TOKEN")}
            | {"PYTHONPATH": str(ROOT), "NO_PROXY": "*", "HOME": str(self.folder)},
            cwd=self.folder,
            # Ctrl-C is ignored in what a shell runs in the background, these tests perhaps among it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    async def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Start, wait for the end; the exit code and what was printed."""
        process = await self.start(*arguments)
        async with asyncio.timeout(60):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def health(self) -> dict[str, object] | None:
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                page = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).json()
            except httpx.HTTPError:
                return None
        assert isinstance(page, dict)
        return page


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with serving((TOKEN,)) as telegram:
        yield Machine(tmp_path, telegram)


@pytest.fixture
async def discord() -> AsyncIterator[Discord]:
    async with serving_discord() as discord:
        yield discord


async def shown_until(process: asyncio.subprocess.Process, words: str, *, errors: bool = False) -> str:
    """What is printed up to and with the line that has these words."""
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    shown = ""
    async with asyncio.timeout(60):
        while words not in shown:
            line = await stream.readline()
            assert line, f"it ended after: {shown}"
            shown += line.decode()
    return shown


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    async with asyncio.timeout(60):
        _, err = await process.communicate()
    return process.returncode, err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_people_are_answered_until_a_signal_ends_it(machine: Machine, number: signal.Signals) -> None:
    """From the first start to a clean end, as a service manager or Ctrl-C has it."""
    machine.configure()
    process = await machine.start("serve")
    await machine.telegram.say("I live in Lisbon", user=7, name="Ada")
    await machine.telegram.wait(chat=7, bot_messages=1, text="Lisbon", timeout=60)
    code, out, _ = await machine.run("status")
    assert code == 0 and re.search(r"is well, running for \d+ s\.\n  telegram: last contact \d+ s ago", out)
    process.send_signal(number)
    code_of_end, errors = await ended(process)
    assert code_of_end == 0, errors
    assert re.search(r"Remora \S+ serves telegram\. Ctrl-C ends it\.", errors)
    assert f"data:   {machine.folder / 'data'}" in errors and "agents: assistant" in errors
    assert f"health: http://127.0.0.1:{machine.port}/healthz" in errors
    assert TOKEN not in errors and "Traceback" not in errors
    code, _, errors = await machine.run("status")
    assert code == 3 and "`remora serve` starts it" in errors


async def test_a_second_signal_ends_it_at_once(machine: Machine) -> None:
    """Somebody who presses Ctrl-C twice does not want to wait for an answer in the making."""
    (machine.folder / "agents").mkdir()
    (machine.folder / "agents" / "assistant.yaml").write_text(
        f"name: assistant\nmodels: [{{provider: openai, model: m, base_url: '{machine.telegram.model_url}'}}]\n"
    )
    machine.configure()
    await machine.telegram.fault("hang", method="model", times=0)
    process = await machine.start("serve")
    await machine.telegram.say("hello", user=7)
    async with asyncio.timeout(60):
        while not (await machine.telegram.state())["model"]["asked"]:
            await asyncio.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while not (await process.stderr.readline()).startswith(b"Ending"):
            pass
    process.send_signal(signal.SIGTERM)
    code, _ = await ended(process)
    assert code == 143


async def test_a_second_process_is_told_who_is_first(machine: Machine) -> None:
    """Two on one store or one token would take each other's messages. The first says that it is of no use yet."""
    machine.configure("allow: []")
    process = await machine.start("serve")
    await machine.telegram.wait(polling=True, timeout=60)
    code, _, errors = await machine.run("serve")
    assert code == 75 and f"in use by another Remora (process {process.pid})" in errors and "Traceback" not in errors
    process.send_signal(signal.SIGTERM)
    end, errors = await ended(process)
    assert end == 0 and "Warning: telegram: nobody may talk to it" in errors


async def test_without_a_platform_it_says_how_to_get_one(machine: Machine) -> None:
    """The first thing many people type."""
    machine.config.write_text(machine.settings("[]"))
    code, _, errors = await machine.run("serve")
    assert code == 78 and "`remora channels add telegram` sets a bot up" in errors


async def test_trouble_is_red_in_status(machine: Machine) -> None:
    """A token that Telegram does not take any more is seen by whoever looks, and the process goes on trying."""
    machine.configure()
    await machine.telegram.revoke()
    process = await machine.start("serve")
    async with asyncio.timeout(60):
        while (page := await machine.health()) is None or page["status"] == "green":
            await asyncio.sleep(0.1)
    code, out, _ = await machine.run("status")
    assert code == 1 and "in trouble" in out and "! telegram: " in out
    process.send_signal(signal.SIGTERM)
    assert (await ended(process))[0] == 0


async def test_a_bot_is_set_up_and_its_first_person_let_in(machine: Machine) -> None:
    """Three steps from a token to an answer."""
    machine.config.write_text(machine.settings("[]").replace("data_dir: data", "data_dir: data  # mine"))
    await machine.telegram.bot(username="lake_bot", first_name="Lake", can_read_all_group_messages=False)
    process = await machine.start("channels", "add", "telegram", "--base-url", machine.telegram.url)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(TOKEN.encode() + b"\n")
    shown = ""
    async with asyncio.timeout(60):
        while "Waiting" not in shown:
            shown += (await process.stdout.readline()).decode()
    assert "This is @lake_bot (Lake)." in shown and "Its privacy mode is on" in shown
    link = re.search(r"https://t\.me/lake_bot\?start=([A-Z0-9]{8})\n", shown)
    assert link is not None and re.search(r"send this code to @lake_bot: [A-Z0-9]{4}-[A-Z0-9]{4}\n", shown)
    await machine.telegram.say("/start", user=6, name="Eve")
    await machine.telegram.say(f"/start {link[1]}", user=7, name="Ada")
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert "Ada (7) may talk to it now and is its admin." in out.decode()
    assert "you are my admin" in (await machine.telegram.texts(7))[-1]
    assert "admin" not in " ".join(await machine.telegram.texts(6))
    assert TOKEN not in machine.config.read_text() and TOKEN not in shown + out.decode() + errors.decode()
    assert "data_dir: data  # mine" in machine.config.read_text()
    assert f"TELEGRAM_TOKEN='{TOKEN}'" in (machine.folder / ".env").read_text()
    code, listed, warned = await machine.run("channels", "list")
    assert (code, warned) == (0, "") and "telegram: Telegram, bot 123456789; 1 people, 1 of them admins" in listed
    serving = await machine.start("serve")
    await machine.telegram.say("I live in Porto", user=7, name="Ada")
    await machine.telegram.wait(chat=7, text="Porto", timeout=60)
    # The code was received already: it must not come to the bot once more as something said.
    assert not any(link[1] in text for text in (await machine.telegram.texts(7))[1:])
    serving.send_signal(signal.SIGTERM)
    assert (await ended(serving))[0] == 0


async def test_a_set_up_that_was_left_goes_on_where_it_was(machine: Machine) -> None:
    """Ctrl-C while waiting keeps what was done; the token need not be copied again."""
    machine.config.write_text(machine.settings("[]"))
    process = await machine.start("channels", "add", "telegram", "--token", TOKEN, "--base-url", machine.telegram.url)
    await machine.telegram.wait(polling=True, timeout=60)
    process.send_signal(signal.SIGINT)
    code, errors = await ended(process)
    assert code == 130 and "the same command waits for the code again" in errors and "Traceback" not in errors
    code, out, errors = await machine.run("channels", "add", "telegram", "--no-pair")
    assert code == 0, errors
    assert "Nobody may talk to it yet" in out


async def test_what_stays_is_told_where_the_person_cannot_be_written(machine: Machine) -> None:
    """A mistake made in the file meanwhile must not read as if the bot had to be set up anew."""
    machine.config.write_text(machine.settings("[]"))
    process = await machine.start("channels", "add", "telegram", "--token", TOKEN, "--base-url", machine.telegram.url)
    code = re.search(r"\?start=([A-Z0-9]{8})\n", await shown_until(process, "Waiting"))
    assert code is not None
    with machine.config.open("a") as config:
        config.write("\nnonsense: 1\n")
    await machine.telegram.say(f"/start {code[1]}", user=7, name="Ada")
    exit_code, errors = await ended(process)
    assert exit_code == 78 and "nonsense" in errors and "The bot is configured" in errors
    assert "Nothing was changed" not in errors and "Traceback" not in errors


async def test_a_wrong_token_changes_nothing(machine: Machine) -> None:
    """Neither half a token nor one that Telegram does not know."""
    before = machine.settings("[]")
    machine.config.write_text(before)
    code, _, errors = await machine.run("channels", "add", "telegram", stdin="123456\n")
    assert code == 65 and "no token of a bot" in errors
    unknown = TOKEN.replace("1", "2")
    code, _, errors = await machine.run(
        "channels", "add", "telegram", "--base-url", machine.telegram.url, stdin=f"{unknown}\n"
    )
    assert code == 78 and unknown not in errors and "Traceback" not in errors
    assert machine.config.read_text() == before and not (machine.folder / ".env").exists()


async def test_an_id_belongs_to_one_bot(machine: Machine) -> None:
    """Another bot under the same id would inherit its chats."""
    machine.configure()
    code, _, errors = await machine.run("channels", "add", "telegram", "--token", TOKEN.replace("1", "2"))
    assert code == 78 and "is another bot already" in errors and "--id telegram-2" in errors


async def test_a_bot_on_discord_is_set_up_and_its_first_person_let_in(machine: Machine, discord: Discord) -> None:
    """From a token to an answer; a code that others could read in a server lets nobody in."""
    machine.config.write_text(machine.settings("[]"))
    await discord.bot(name="lake")
    process = await machine.start("channels", "add", "discord", "--base-url", discord.api_url)
    assert process.stdin is not None
    process.stdin.write(discord.token.encode() + b"\n")
    shown = await shown_until(process, "Waiting")
    assert f"This is lake ({discord.bot_id})." in shown
    assert "\n  https://discord.com/oauth2/authorize?client_id=" in shown and "Only a direct message counts" in shown
    code = re.search(r"\n  ([A-Z0-9]{4}-[A-Z0-9]{4})\n", shown)
    assert code is not None
    await discord.wait(connected=True, timeout=60)
    await discord.say(f"{discord.mention} {code[1]}", user=EVE, name="Eve", channel=GENERAL)
    await discord.say("hello", user=EVE, name="Eve")
    await discord.say(code[1], user=ADA, name="Ada")
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    said = out.decode()
    assert f"Ada ({ADA}) may talk to it now and is its admin." in said and "write /allow here in a channel" in said
    assert "you are my admin" in (await discord.texts(await discord.dm(ADA)))[-1]
    assert "admin" not in " ".join([*await discord.texts(await discord.dm(EVE)), *await discord.texts(GENERAL)])
    assert discord.token not in machine.config.read_text() + shown + said + errors.decode()
    assert f"DISCORD_TOKEN='{discord.token}'" in (machine.folder / ".env").read_text()
    code_of_list, listed, _ = await machine.run("channels", "list")
    assert code_of_list == 0
    assert f"discord: Discord, bot {discord.bot_id}; 1 people, 1 of them admins; 0 servers, 0 single channels" in listed
    serving = await machine.start("serve")
    await discord.wait(connected=True, timeout=60)
    await discord.say("I live in Porto", user=ADA, name="Ada")
    await discord.wait(channel=await discord.dm(ADA), text="Porto", timeout=60)
    serving.send_signal(signal.SIGTERM)
    assert (await ended(serving))[0] == 0


async def test_on_a_terminal_the_intent_is_waited_for_and_servers_are_chosen(
    machine: Machine, discord: Discord
) -> None:
    """Two clicks that everybody forgets, and the one question that is easier answered here than in a file."""
    machine.config.write_text(machine.settings("[]"))
    await discord.bot(reads_messages=False)
    lake, _ = await discord.add_guild("Lake\x1b[2J")
    master, slave = os.openpty()
    process = await machine.start(
        "channels", "add", "discord", "--token", discord.token, "--base-url", discord.api_url, stdin=slave
    )
    try:
        warned = await shown_until(process, "switch it on", errors=True)
        assert "Message Content Intent is off" in warned and "https://discord.com/developers/applications/" in warned
        assert not (machine.folder / ".env").exists()
        os.write(master, b"\n")
        await shown_until(process, "switch it on", errors=True)
        await discord.bot(reads_messages=True)
        os.write(master, b"\n")
        shown = await shown_until(process, "Waiting")
        code = re.search(r"\n  ([A-Z0-9]{4}-[A-Z0-9]{4})\n", shown)
        assert code is not None
        await discord.wait(connected=True, timeout=60)
        await discord.say(code[1], user=ADA, name="Ada")
        await shown_until(process, "is its admin")
        # One for each server in the order of Discord's list; the guild that is there from the beginning comes first.
        os.write(master, b"n\ny\n")
        async with asyncio.timeout(60):
            out, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
    finally:
        with suppress(OSError):
            os.close(slave)
        os.close(master)
    assert f"of Lake?[2J ({lake})" in out.decode()
    assert f"servers: [{lake}]" in machine.config.read_text()


async def test_without_the_intent_a_pipe_is_told_what_to_switch_on(machine: Machine, discord: Discord) -> None:
    """Nobody is there to press Enter; what is set up stays, for the next try."""
    machine.config.write_text(machine.settings("[]"))
    await discord.bot(reads_messages=False)
    code, _, errors = await machine.run(
        "channels", "add", "discord", "--base-url", discord.api_url, stdin=discord.token
    )
    assert code == 78 and "Message Content Intent is off" in errors and "Traceback" not in errors
    assert "the same command waits for the code again" in errors


async def test_a_wrong_discord_token_changes_nothing(machine: Machine, discord: Discord) -> None:
    """Neither an id, nor a token that Discord does not know, nor the name of another platform's bot."""
    machine.configure()
    before = machine.config.read_text()
    code, _, errors = await machine.run("channels", "add", "discord", stdin="123456789012345678\n")
    assert code == 65 and "no token of a bot" in errors and "Reset Token" in errors
    await discord.revoke()
    code, _, errors = await machine.run(
        "channels", "add", "discord", "--base-url", discord.api_url, stdin=discord.token
    )
    assert code == 78 and "Nothing was changed" in errors
    assert discord.token not in errors and "Traceback" not in errors
    code, _, errors = await machine.run("channels", "add", "discord", "--id", "telegram", stdin=discord.token)
    assert code == 78 and "is a bot on Telegram already" in errors and "--id telegram-2" in errors
    assert machine.config.read_text() == before and not (machine.folder / ".env").exists()


async def test_a_bot_that_one_platform_shuts_out_still_answers_on_the_other(machine: Machine, discord: Discord) -> None:
    """A token that was reset must not silence everybody; health names the channel that is down."""
    machine.configure_both(discord)
    await discord.revoke()
    process = await machine.start("serve")
    await machine.telegram.say("I live in Lisbon", user=7, name="Ada")
    await machine.telegram.wait(chat=7, text="Lisbon", timeout=60)
    async with asyncio.timeout(60):
        while (page := await machine.health()) is None or page["status"] == "green":
            await asyncio.sleep(0.1)
    code, out, _ = await machine.run("status")
    assert code == 1 and "! discord: " in out and "! telegram: " not in out
    process.send_signal(signal.SIGTERM)
    end, errors = await ended(process)
    assert end == 0 and discord.token not in errors
    assert re.search(r"serves telegram, discord\. Ctrl-C ends it\.", errors)


def test_help_names_what_there_is() -> None:
    """A newcomer looks there first."""
    shown = subprocess.run(
        [sys.executable, "-m", "gateway", "channels", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    assert "add " in shown and "list " in shown
