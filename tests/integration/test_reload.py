"""A changed configuration is taken up while the bot runs: what changes at once, what waits for a restart, what stays."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.config.loading import Config, load
from gateway.ops.reloading import Reloaded, Reloader, Sources, applicable, differences
from gateway.serve import signals
from memory.errors import StorageError
from memory.loops import Loops
from tests.kit.fakes import Clock
from tests.kit.patience import limit, until
from tests.kit.served import ANN, BOB, TELEGRAM_TOKEN, Served
from tests.platforms.telegram import Control, serving

OTHER_TOKEN = "987654321:" + "Bb1_-" * 7
EVA = 9


@pytest.fixture
async def telegram() -> AsyncIterator[Control]:
    async with serving((TELEGRAM_TOKEN, OTHER_TOKEN)) as control:
        yield control


class Installation:
    """The files of a bot on Telegram, written anew by `write`."""

    def __init__(self, folder: Path, telegram: Control) -> None:
        self.served = Served(folder, telegram=telegram, model_url=telegram.model_url)
        self._telegram = telegram
        self._folder = folder
        self._settings = (folder / "config.yaml").read_text()

    def bots(self, *bots: str, more: str = "") -> None:
        kept = [line for line in self._settings.splitlines() if not line.startswith("channels:")]
        (self._folder / "config.yaml").write_text(
            "\n".join([*kept, f"channels: {{telegram: [{', '.join(bots)}]}}", more])
        )

    def bot(self, *, channel: str = "telegram", token: str = TELEGRAM_TOKEN, allow: str = f"{ANN}, {BOB}") -> str:
        url = self._telegram.url
        return f"{{id: {channel}, token: '{token}', base_url: '{url}', allow: [{allow}], admins: [{ANN}]}}"

    def agent(self, name: str, text: str, *, offline: bool = False) -> None:
        model = f"models: [{{provider: openai, model: test, base_url: '{self._telegram.model_url}'}}]"
        model = "" if offline else model
        (self._folder / "agents" / f"{name}.yaml").write_text(f"name: {name}\n{model}\n{text}\n")


@pytest.fixture
def installed(tmp_path: Path, telegram: Control) -> Installation:
    return Installation(tmp_path, telegram)


async def asked(telegram: Control, text: str, *, count: int, user: int = ANN) -> str:
    """Says something and returns the `count`th of the bot's messages in that chat, without what it adds once."""
    await telegram.say(text, user=user)
    await telegram.wait(chat=user, bot_messages=count)
    return (await telegram.texts(user))[-1].partition("\n\nBy the way")[0]


async def reloaded(telegram: Control, *, count: int) -> str:
    return await asked(telegram, "/reload", count=count)


async def test_a_running_turn_goes_on_and_the_next_one_is_the_new_agents(
    installed: Installation, telegram: Control
) -> None:
    """Also a new agent answers where its file says so, and nobody is connected anew."""
    async with installed.served.running():
        await telegram.fault("hang", at="after effect", method="model", text="slow")
        await telegram.say("slow question", user=BOB)
        await until(telegram.asked)
        installed.agent("assistant", "", offline=True)
        installed.agent("second", f"routing: {{people: ['telegram:{ANN}']}}")
        assert await reloaded(telegram, count=1) == "Changed: agents.assistant.models, agents.second"
        assert await reloaded(telegram, count=2) == "Nothing has changed."
        await telegram.heal()
        await telegram.wait(chat=BOB, bot_messages=1)
        assert (await telegram.texts(BOB))[0].startswith("Answer to: slow question")
        assert await asked(telegram, "hello", count=3) == "Answer to: hello"
        assert "Answer to" not in await asked(telegram, "hello", count=2, user=BOB)
        assert (await telegram.state())["requests"]["getMe"] == 1


async def test_people_and_bots_come_and_go_without_touching_the_others(
    installed: Installation, telegram: Control
) -> None:
    """A second bot answers as soon as it is written down, a person as soon as they are named."""
    other = telegram.of(OTHER_TOKEN)
    first, second = installed.bot(allow=f"{ANN}, {BOB}, {EVA}"), installed.bot(channel="two", token=OTHER_TOKEN)
    async with installed.served.running():
        installed.bots(first, second)
        assert await reloaded(telegram, count=1) == "Changed: channels.telegram.allow, channels.two"
        assert await asked(other, "hi", count=1) == "Answer to: hi"
        assert await asked(telegram, "hi", count=1, user=EVA) == "Answer to: hi"
        installed.bots(installed.bot())
        assert await reloaded(telegram, count=2) == "Changed: channels.telegram.allow, channels.two"
        polls = (await other.state())["requests"]["getUpdates"]
        await other.say("anybody?", user=ANN)
        assert str(EVA) in await asked(telegram, "hi", count=2, user=EVA)
        assert (await telegram.state())["requests"]["getMe"] == 1
        assert (await other.state())["requests"]["getUpdates"] == polls
        assert len(await other.texts(ANN)) == 1


async def test_what_needs_a_restart_is_named_and_stays(installed: Installation, telegram: Control) -> None:
    async with installed.served.running():
        installed.bots(installed.bot(), more="durability: power-loss\nlog: {level: error}\n")
        installed.agent("assistant", "database: own.db")
        installed.agent("apart", f"database: apart.db\nrouting: {{people: ['telegram:{BOB}']}}")
        needs = "agents.apart, agents.assistant.database, durability, log.level"
        assert await reloaded(telegram, count=1) == f"Changed only by a restart of `remora serve`: {needs}"
        assert await asked(telegram, "hi", count=1, user=BOB) == "Answer to: hi"


async def test_a_wrong_file_changes_nothing_and_is_told(
    installed: Installation, telegram: Control, tmp_path: Path
) -> None:
    """Also when nobody asks: the watch over the files finds a change, a mistake as well as its correction."""
    async with installed.served.running():
        installed.bots(installed.bot(allow=str(ANN)), more="backup: {keep_dys: 1}\n")
        told = await reloaded(telegram, count=1)
        assert told.startswith("The configuration can't be used") and "keep_dys" in told
        assert await asked(telegram, "still here?", count=1, user=BOB) == "Answer to: still here?"
        with capture_logs() as logs:
            installed.served.reload.set()
            await until(lambda: any(one["event"] == "config.refused" for one in logs))


async def test_a_file_that_changes_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """An editor that writes in two steps is not caught between them."""
    file = tmp_path / "config.yaml"
    file.write_text("data_dir: data\n")
    (tmp_path / "agents").mkdir()
    for name in ("assistant", "second"):
        (tmp_path / "agents" / f"{name}.yaml").write_text(f"name: {name}\n")
    applied: list[Config] = []
    steps = iter(["default_agent: secnd\n", "default_agent: second\n"])
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        if looks in (2, 3):
            file.write_text(next(steps))

    async def apply(before: Config, after: Config) -> None:
        applied.append(after)

    sources = Sources(lambda: load(file, {}, tmp_path), asyncio.Event())
    reloader = Reloader(sources.read(), sources, apply)
    watching = asyncio.create_task(reloader.watch(Loops(now=Clock()), sleep))
    with capture_logs() as logs:
        await until(lambda: applied)
        (tmp_path / "agents" / "SOUL.md").write_text("You are calm.")
        await until(lambda: len(applied) == 2)
    watching.cancel()
    assert applied[0].default_agent == reloader.config.default_agent == "second"
    assert applied[1].agents["second"].persona == "You are calm."
    assert [one["event"] for one in logs] == ["config.reloaded", "config.reloaded"]


async def test_a_store_that_fails_leaves_the_old_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("data_dir: data\n")

    async def apply(before: Config, after: Config) -> None:
        raise StorageError("The disk is full.")

    sources = Sources(lambda: load(file, {}, tmp_path), asyncio.Event())
    reloader = Reloader(running := sources.read(), sources, apply)
    file.write_text(f"channels: {{telegram: [{{token: '{TELEGRAM_TOKEN}'}}]}}\n")
    assert await reloader.reload() == Reloaded(problem="The disk is full.")
    assert reloader.config is running


def configured(folder: Path, settings: str, **agents: str) -> Config:
    (folder / "agents").mkdir(parents=True)
    (folder / "config.yaml").write_text(settings)
    for name, text in agents.items():
        (folder / "agents" / f"{name}.yaml").write_text(f"name: {name}\n{text}\n")
    return load(folder / "config.yaml", {}, folder)


def test_an_agent_whose_file_is_gone_stays_without_its_places(tmp_path: Path) -> None:
    """Messages to it may wait; and a place that another claims is the other's."""
    running = configured(tmp_path / "one", "default_agent: a", a="", b="routing: {channels: [telegram]}")
    read = configured(tmp_path / "two", "default_agent: c", c="routing: {channels: [telegram]}")
    config = applicable(running, read)
    assert list(config.agents) == ["a", "b", "c"] and config.default_agent == "c"
    assert config.agents["b"].routing.channels == () and config.agents["c"].routing.channels == ("telegram",)
    assert {"agents.a", "agents.b"} <= set(differences(config, read))


def test_the_default_agent_stays_in_the_database_that_knows_who_was_let_in(tmp_path: Path) -> None:
    running = configured(tmp_path / "one", "default_agent: a", a="", b="database: b.db")
    read = configured(tmp_path / "two", "default_agent: b", a="", b="database: b.db")
    config = applicable(running, read)
    assert config.default_agent == "a"
    assert "default_agent" in differences(config, read)


async def test_a_hangup_asks_for_a_reload(tmp_path: Path) -> None:
    """It ended the process once; a service manager's reload must not."""
    stop, reload = asyncio.Event(), asyncio.Event()
    with signals(stop, reload):
        os.kill(os.getpid(), signal.SIGHUP)
        async with limit():
            await reload.wait()
    assert not stop.is_set()


async def test_a_reload_that_fails_is_still_asked_for(tmp_path: Path) -> None:
    """Whoever sent the signal need not send it again."""
    config, asked, reads = configured(tmp_path, ""), asyncio.Event(), list[int]()

    def read() -> Config:
        reads.append(1)
        if len(reads) == 1:
            raise RuntimeError
        return config

    async def apply(_old: Config, _new: Config) -> None:
        pass

    async def sleep(_seconds: float) -> None:
        await asyncio.sleep(0)

    asked.set()
    watching = asyncio.create_task(Reloader(config, Sources(read, asked), apply).watch(Loops(now=lambda: 0), sleep))
    await until(lambda: len(reads) == 2 and not asked.is_set())
    watching.cancel()
