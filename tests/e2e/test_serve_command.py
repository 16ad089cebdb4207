"""`remora serve`, `status` and `channels` as somebody types them, beside platforms of the test's own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.kit.patience import SECONDS, limit, until
from tests.kit.served import ADA, EVE, ROOT, TELEGRAM_TOKEN, Machine, ended, environment
from tests.platforms.discord import GENERAL
from tests.platforms.discord import Control as Discord
from tests.platforms.discord import serving as serving_discord
from tests.platforms.telegram import serving

pytestmark = pytest.mark.campaign


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with serving((TELEGRAM_TOKEN,)) as telegram:
        yield Machine(tmp_path, telegram)


@pytest.fixture
async def discord() -> AsyncIterator[Discord]:
    async with serving_discord() as discord:
        yield discord


async def shown_until(process: asyncio.subprocess.Process, words: str, *, errors: bool = False) -> str:
    """Returns what is printed up to and with the line that has these words."""
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    shown = ""
    async with limit():
        while words not in shown:
            line = await stream.readline()
            assert line, f"it ended after: {shown}"
            shown += line.decode()
    return shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_people_are_answered_until_a_signal_ends_it(machine: Machine, number: signal.Signals) -> None:
    """From the first start to a clean end, as a service manager or Ctrl-C has it."""
    machine.configure()
    process = await machine.start("serve")
    await machine.telegram.say("I live in Lisbon", user=7, name="Ada")
    await machine.telegram.wait(chat=7, bot_messages=1, text="Lisbon")
    code, out, _ = await machine.run("status")
    assert code == 0 and re.search(r"is well, running for \d+ s\.\n  telegram: last contact \d+ s ago", out)
    process.send_signal(number)
    code_of_end, errors = await ended(process)
    assert code_of_end == 0, errors
    assert re.search(r"Remora \S+ serves telegram\. Ctrl-C ends it\.", errors)
    assert f"data:   {machine.folder / 'data'}" in errors and "agents: assistant" in errors
    assert f"health: http://127.0.0.1:{machine.port}/healthz" in errors
    assert TELEGRAM_TOKEN not in errors and "Traceback" not in errors
    code, _, errors = await machine.run("status")
    assert code == 3 and "Start it with `remora serve`" in errors


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
    await until(machine.telegram.asked)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    async with limit():
        while not (await process.stderr.readline()).startswith(b"Ending"):
            pass
    process.send_signal(signal.SIGTERM)
    code, _ = await ended(process)
    assert code == 143


async def test_a_hangup_reloads_and_a_closed_terminal_ends_it(machine: Machine) -> None:
    """The same signal means both: from a service manager, and from a terminal whose window is closed."""
    machine.configure()
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway", "serve", "--config", str(machine.config)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(machine.folder),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = b""

    def read() -> None:
        nonlocal shown
        with suppress(OSError):
            shown += os.read(ours, 10_000)

    asyncio.get_running_loop().add_reader(ours, read)
    try:
        await machine.telegram.wait(polling=True)
        machine.configure("allow: [7, 8], admins: [7]")
        process.send_signal(signal.SIGHUP)
        await until(lambda: b"channels.telegram.allow" in shown)
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
    async with limit():
        assert await process.wait() == 0


async def test_a_second_process_is_told_who_is_first(machine: Machine) -> None:
    """Two on one store or one token would take each other's messages. The first says that it is of no use yet."""
    machine.configure("allow: []")
    process = await machine.start("serve")
    await machine.telegram.wait(polling=True)
    code, _, errors = await machine.run("serve")
    assert code == 75 and f"in use by another Remora (process {process.pid})" in errors and "Traceback" not in errors
    process.send_signal(signal.SIGTERM)
    end, errors = await ended(process)
    assert end == 0 and "Warning: telegram: nobody may talk to it" in errors


async def test_without_a_platform_it_says_how_to_get_one(machine: Machine) -> None:
    """The first thing many people type. Where a page can be served, it is, and a link signs in to it."""
    machine.config.write_text(machine.settings("[]").replace("http: {port", "http: {enabled: false, port"))
    code, _, errors = await machine.run("serve")
    assert code == 78 and "`remora channels add telegram` takes two minutes" in errors

    machine.config.write_text(machine.settings("[]"))
    code, _, errors = await machine.run("web")
    assert code == 3 and "Start it with `remora serve`" in errors
    process = await machine.start("serve")
    await until(machine.health)
    await until(machine.is_ready)
    code, link, _ = await machine.run("web", "--as", "ada")
    address, _, secret = link.strip().partition("/in#")
    assert code == 0 and address == f"http://remora.localhost:{machine.port}"
    async with httpx.AsyncClient(
        trust_env=False, base_url=f"http://127.0.0.1:{machine.port}", timeout=SECONDS
    ) as browser:
        own = {"Sec-Fetch-Site": "same-origin"}
        assert (await browser.post("/in", data={"code": secret}, headers=own)).status_code == 303
        assert "<h1>ada</h1>" in (await browser.get("/me")).text
    process.send_signal(signal.SIGTERM)
    end, errors = await ended(process)
    assert end == 0 and address in errors and secret not in errors


async def test_trouble_is_red_in_status(machine: Machine) -> None:
    """A token that Telegram does not take any more is seen by whoever looks, and the process goes on trying."""
    machine.configure()
    await machine.telegram.revoke()
    process = await machine.start("serve")
    await until(machine.in_trouble)
    code, out, _ = await machine.run("status")
    assert code == 1 and "in trouble" in out and "! telegram: " in out
    process.send_signal(signal.SIGTERM)
    assert (await ended(process))[0] == 0


async def test_lines_held_open_keep_nobody_out(machine: Machine) -> None:
    """Twice as many as it could open files: it goes on, and tells whoever asks how it is."""
    machine.configure()
    process = await machine.start("serve")
    await machine.telegram.wait(polling=True)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
    lines = []
    async with limit():
        for _ in range(500):
            lines.append(await asyncio.open_connection("127.0.0.1", machine.port))
            lines[-1][1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        page = await until(machine.health)
    assert page["status"] == "green", page["reasons"]
    await machine.telegram.say("I live in Lisbon", user=7, name="Ada")
    await machine.telegram.wait(chat=7, bot_messages=1, text="Lisbon")
    for _, writer in lines:
        writer.close()
    process.send_signal(signal.SIGTERM)
    code, errors = await ended(process)
    assert code == 0 and "Traceback" not in errors and "health.red" not in errors


async def test_a_bot_is_set_up_and_its_first_person_let_in(machine: Machine) -> None:
    machine.config.write_text(machine.settings("[]").replace("data_dir: data", "data_dir: data  # mine"))
    await machine.telegram.bot(username="lake_bot", first_name="Lake", can_read_all_group_messages=False)
    process = await machine.start("channels", "add", "telegram", "--base-url", machine.telegram.url)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(TELEGRAM_TOKEN.encode() + b"\n")
    shown = ""
    async with limit():
        while "Waiting" not in shown:
            shown += (await process.stdout.readline()).decode()
    assert "This is @lake_bot (Lake)." in shown and "Its privacy mode is on" in shown
    link = re.search(r"https://t\.me/lake_bot\?start=([A-Z0-9]{8})\n", shown)
    assert link is not None and re.search(r"send this code to @lake_bot: [A-Z0-9]{4}-[A-Z0-9]{4}\n", shown)
    await machine.telegram.say("/start", user=6, name="Eve")
    await machine.telegram.say(f"/start {link[1]}", user=7, name="Ada")
    async with limit():
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert "Ada (7) can talk to it now and is its admin." in out.decode()
    assert "you are my admin" in (await machine.telegram.texts(7))[-1]
    assert "admin" not in " ".join(await machine.telegram.texts(6))
    assert (
        TELEGRAM_TOKEN not in machine.config.read_text()
        and TELEGRAM_TOKEN not in shown + out.decode() + errors.decode()
    )
    assert "data_dir: data  # mine" in machine.config.read_text()
    assert f"TELEGRAM_TOKEN='{TELEGRAM_TOKEN}'" in (machine.folder / ".env").read_text()
    code, listed, warned = await machine.run("channels", "list")
    assert (code, warned) == (0, "") and "telegram: Telegram, bot 123456789; 1 people, 1 of them admins" in listed
    serving = await machine.start("serve")
    await machine.telegram.say("I live in Porto", user=7, name="Ada")
    await machine.telegram.wait(chat=7, text="Porto")
    # The code was received already: it must not come to the bot once more as something said.
    assert not any(link[1] in text for text in (await machine.telegram.texts(7))[1:])
    serving.send_signal(signal.SIGTERM)
    assert (await ended(serving))[0] == 0


async def test_a_set_up_that_was_left_goes_on_where_it_was(machine: Machine) -> None:
    """Ctrl-C while waiting keeps what was done; the token need not be copied again."""
    machine.config.write_text(machine.settings("[]"))
    process = await machine.start(
        "channels", "add", "telegram", "--token", TELEGRAM_TOKEN, "--base-url", machine.telegram.url
    )
    await machine.telegram.wait(polling=True)
    process.send_signal(signal.SIGINT)
    code, errors = await ended(process)
    assert code == 130 and "Run the same command to try again" in errors and "Traceback" not in errors
    code, out, errors = await machine.run("channels", "add", "telegram", "--no-pair")
    assert code == 0, errors
    assert "Nobody may talk to it yet" in out


async def test_what_stays_is_told_where_the_person_cannot_be_written(machine: Machine) -> None:
    """A mistake made in the file meanwhile must not read as if the bot had to be set up anew."""
    machine.config.write_text(machine.settings("[]"))
    process = await machine.start(
        "channels", "add", "telegram", "--token", TELEGRAM_TOKEN, "--base-url", machine.telegram.url
    )
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
    assert code == 65 and "not a bot token" in errors
    unknown = TELEGRAM_TOKEN.replace("1", "2")
    code, _, errors = await machine.run(
        "channels", "add", "telegram", "--base-url", machine.telegram.url, stdin=f"{unknown}\n"
    )
    assert code == 78 and unknown not in errors and "Traceback" not in errors
    assert machine.config.read_text() == before and not (machine.folder / ".env").exists()


async def test_an_id_belongs_to_one_bot(machine: Machine) -> None:
    """Another bot under the same id would inherit its chats."""
    machine.configure()
    code, _, errors = await machine.run("channels", "add", "telegram", "--token", TELEGRAM_TOKEN.replace("1", "2"))
    assert code == 78 and "is already another bot" in errors and "--id telegram-2" in errors


async def test_a_bot_on_discord_is_set_up_and_its_first_person_let_in(machine: Machine, discord: Discord) -> None:
    """From a token to an answer; a code that others could read in a server lets nobody in."""
    machine.config.write_text(machine.settings("[]"))
    await discord.bot(name="lake")
    process = await machine.start("channels", "add", "discord", "--base-url", discord.api_url)
    assert process.stdin is not None
    process.stdin.write(discord.token.encode() + b"\n")
    shown = await shown_until(process, "Waiting")
    assert f"This is lake ({discord.bot_id})." in shown
    assert "\n  https://discord.com/oauth2/authorize?client_id=" in shown and "Send it as a direct message" in shown
    code = re.search(r"\n  ([A-Z0-9]{4}-[A-Z0-9]{4})\n", shown)
    assert code is not None
    await discord.wait(connected=True)
    await discord.say(f"{discord.mention} {code[1]}", user=EVE, name="Eve", channel=GENERAL)
    await discord.say("hello", user=EVE, name="Eve")
    await discord.say(code[1], user=ADA, name="Ada")
    async with limit():
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    said = out.decode()
    assert f"Ada ({ADA}) can talk to it now and is its admin." in said and "send /allow here in a channel" in said
    assert "you are my admin" in (await discord.texts(await discord.dm(ADA)))[-1]
    assert "admin" not in " ".join([*await discord.texts(await discord.dm(EVE)), *await discord.texts(GENERAL)])
    assert discord.token not in machine.config.read_text() + shown + said + errors.decode()
    assert f"DISCORD_TOKEN='{discord.token}'" in (machine.folder / ".env").read_text()
    code_of_list, listed, _ = await machine.run("channels", "list")
    assert code_of_list == 0
    assert f"discord: Discord, bot {discord.bot_id}; 1 people, 1 of them admins; 0 servers, 0 single channels" in listed
    serving = await machine.start("serve")
    await discord.wait(connected=True)
    await discord.say("I live in Porto", user=ADA, name="Ada")
    await discord.wait(channel=await discord.dm(ADA), text="Porto")
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
        warned = await shown_until(process, "turn it on", errors=True)
        assert "Message Content Intent is off" in warned and "https://discord.com/developers/applications/" in warned
        assert not (machine.folder / ".env").exists()
        os.write(master, b"\n")
        await shown_until(process, "turn it on", errors=True)
        await discord.bot(reads_messages=True)
        os.write(master, b"\n")
        shown = await shown_until(process, "Waiting")
        code = re.search(r"\n  ([A-Z0-9]{4}-[A-Z0-9]{4})\n", shown)
        assert code is not None
        await discord.wait(connected=True)
        await discord.say(code[1], user=ADA, name="Ada")
        await shown_until(process, "is its admin")
        # One for each server in the order of Discord's list; the guild that is there from the beginning comes first.
        os.write(master, b"n\ny\n")
        async with limit():
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
    assert "Run the same command to try again" in errors


async def test_a_wrong_discord_token_changes_nothing(machine: Machine, discord: Discord) -> None:
    """Neither an id, nor a token that Discord does not know, nor the name of another platform's bot."""
    machine.configure()
    before = machine.config.read_text()
    code, _, errors = await machine.run("channels", "add", "discord", stdin="123456789012345678\n")
    assert code == 65 and "not a bot token" in errors and "Reset Token" in errors
    await discord.revoke()
    code, _, errors = await machine.run(
        "channels", "add", "discord", "--base-url", discord.api_url, stdin=discord.token
    )
    assert code == 78 and "Nothing was changed" in errors
    assert discord.token not in errors and "Traceback" not in errors
    code, _, errors = await machine.run("channels", "add", "discord", "--id", "telegram", stdin=discord.token)
    assert code == 78 and "is already a bot on Telegram" in errors and "--id telegram-2" in errors
    assert machine.config.read_text() == before and not (machine.folder / ".env").exists()


async def test_a_bot_that_one_platform_shuts_out_still_answers_on_the_other(machine: Machine, discord: Discord) -> None:
    """A token that was reset must not silence everybody; health names the channel that is down."""
    machine.configure_both(discord)
    await discord.revoke()
    process = await machine.start("serve")
    await machine.telegram.say("I live in Lisbon", user=7, name="Ada")
    await machine.telegram.wait(chat=7, text="Lisbon")
    await until(machine.in_trouble)
    code, out, _ = await machine.run("status")
    assert code == 1 and "! discord: " in out and "! telegram: " not in out
    process.send_signal(signal.SIGTERM)
    end, errors = await ended(process)
    assert end == 0 and discord.token not in errors
    assert re.search(r"serves telegram, discord\. Ctrl-C ends it\.", errors)


def test_help_names_what_there_is() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "gateway", "channels", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    assert "add " in shown and "list " in shown
