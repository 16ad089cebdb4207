"""Setting a bot up: what is written where, and who is let in."""

from __future__ import annotations

import asyncio
import difflib
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from channels.base import Capabilities, Channel, ChannelRefused, ChannelUnavailable, Health, Host, Inbound, Outbound
from gateway.cli import adding
from gateway.config import setup
from gateway.config.loading import ConfigError, load
from gateway.config.settings import DiscordSettings, TelegramSettings
from tests.kit.fakes import NOON
from tests.kit.patience import limit

SHIPPED = Path(__file__).parents[2] / "config.yaml"
TOKEN = "123456789:" + "Aa0_-" * 7
DISCORD = "MTIzNDU2Nzg5MDEyMzQ1Njc4.Gh0st-." + "Aa0_-" * 7 + "xyz"
PERSON = "345678901234567890"
CODE = "CDFG-2345"


def bots(file: Path) -> tuple[TelegramSettings, ...]:
    return load(file, {}, file.parent).settings.channels.telegram


def discords(file: Path) -> tuple[DiscordSettings, ...]:
    return load(file, {}, file.parent).settings.channels.discord


def fine(file: Path) -> object:
    return load(file, {}, file.parent)


def add(folder: Path, *, channel: str = "telegram", base_url: str = "https://api.telegram.org") -> Path:
    file = folder / "config.yaml"
    name = setup.variable(channel)
    setup.keep_token(folder / ".env", name, TOKEN if channel == "telegram" else TOKEN.replace("1", "2"))
    setup.add_bot(file, platform="telegram", channel=channel, name=name, base_url=base_url, check=fine)
    return file


def add_discord(folder: Path, *, base_url: str = "https://discord.com/api/v10") -> Path:
    file = folder / "config.yaml"
    setup.keep_token(folder / ".env", "DISCORD_TOKEN", DISCORD)
    setup.add_bot(file, platform="discord", channel="discord", name="DISCORD_TOKEN", base_url=base_url, check=fine)
    return file


def added(before: str, after: str) -> list[str]:
    """The lines that are new; fails when one is gone that is no empty list."""
    changes = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert [line for line in changes if line[0] == "-" and "[]" not in line] == []
    return [line[2:] for line in changes if line[0] == "+"]


# --- files ---


def test_a_config_that_is_not_there_is_made_with_defaults(tmp_path: Path) -> None:
    """Whoever starts with Telegram gets a short file that names the full one."""
    file = add(tmp_path / "new")
    assert str(SHIPPED) in file.read_text()
    assert added(setup.short_config(), file.read_text()) == [
        "channels:", "  telegram:", "    - id: telegram", "      token: ${TELEGRAM_TOKEN}",
    ]  # fmt: skip
    (bot,) = bots(file)
    assert bot.token.get_secret_value() == TOKEN
    assert TOKEN not in file.read_text()


def test_the_person_is_written_beside_the_token(tmp_path: Path) -> None:
    """One entry holds all that is to be said of a bot."""
    file = add(tmp_path)
    before = file.read_text()
    setup.let_in(file, platform="telegram", channel="telegram", person="7", check=fine)
    assert added(before, file.read_text()) == ["      allow: [7]", "      admins: [7]"]
    entry = file.read_text().split("  telegram:\n    - id", 1)[1].split("http:", 1)[0].rstrip()
    assert "allow: [7]" in entry and "\n\n" not in entry
    setup.let_in(file, platform="telegram", channel="telegram", person="7", check=fine)
    setup.let_in(file, platform="telegram", channel="telegram", person="8", check=fine)
    (bot,) = bots(file)
    assert (bot.allow, bot.admins) == (("7", "8"), ("7", "8"))


@pytest.mark.parametrize(
    "before",
    [
        "", "# my bot\n", "# my bot", "data_dir: store   # here\n\n\n# the end\n", "channels:\n", "channels: {}\n",
        "channels:\n  discord: []   # never\nlimits:\n  # turn_seconds: 5\n",
        "channels:\n  telegram:\n  discord:\n", "channels: {telegram: []}   # none\n",
        "log: {level: info, file: null}\nrerank: ~\nlimits: {concurrent_turns: 7, turn_seconds: 1e2}\n",
        "data_dir: 'no'\ndatabase_url: \"\"   # a text\ndefault_agent:   assistant\n",
    ],
)  # fmt: skip
def test_what_else_stands_in_the_config_stays(tmp_path: Path, before: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(before)
    old = load(file, {}, tmp_path).settings
    add(tmp_path)
    new = load(file, {}, tmp_path).settings
    assert [bot.id for bot in new.channels.telegram] == ["telegram"]
    assert new.model_copy(update={"channels": old.channels}) == old
    assert new.channels.discord == old.channels.discord
    for comment in (line[line.index("#") :] for line in before.splitlines() if "#" in line):
        assert comment in file.read_text()
    assert "file: null" not in before or "file: null" in file.read_text()


def test_a_second_bot_is_put_behind_the_first(tmp_path: Path) -> None:
    """With a variable of its own; lists that stand at the margin stay there."""
    file = tmp_path / "config.yaml"
    file.write_text(f"channels:\n  telegram:\n  - token: '{TOKEN}'  # the first\n    groups:\n    - -100  # friends\n")
    before = file.read_text()
    add(tmp_path, channel="for-work", base_url="http://127.0.0.1:8081")
    first, second = bots(file)
    assert (first.id, first.groups) == ("telegram", ("-100",))
    assert (second.id, second.base_url) == ("for-work", "http://127.0.0.1:8081")
    assert "FOR_WORK_TOKEN=" in (tmp_path / ".env").read_text()
    assert file.read_text().count("#") == before.count("#")
    assert before.splitlines()[1:2] == file.read_text().splitlines()[1:2]


def test_adding_a_bot_again_keeps_what_is_said_of_it(tmp_path: Path) -> None:
    """A new token, for instance, must not open or close any door."""
    file = tmp_path / "config.yaml"
    file.write_text(f"channels:\n  telegram:\n    - token: '{TOKEN}'\n      allow: [1, 2]\n      mention: false\n")
    add(tmp_path)
    (bot,) = bots(file)
    assert (bot.allow, bot.mention) == (("1", "2"), False)
    assert "token: '${TELEGRAM_TOKEN}'" in file.read_text()


def test_the_token_is_for_its_owner_alone_and_other_variables_stay(tmp_path: Path) -> None:
    """Other users of the machine could take the bot over."""
    env = tmp_path / ".env"
    env.write_text("# keys\nOPENAI_API_KEY=sk-1\nTELEGRAM_TOKEN=old\nLAST='x y'")
    env.chmod(0o644)
    setup.keep_token(env, "TELEGRAM_TOKEN", TOKEN)
    assert env.read_text() == f"# keys\nOPENAI_API_KEY=sk-1\nTELEGRAM_TOKEN='{TOKEN}'\nLAST='x y'"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    fresh = tmp_path / "real" / ".env"
    fresh.parent.mkdir()
    link = tmp_path / "link"
    link.symlink_to(fresh)
    setup.keep_token(link, "A_TOKEN", TOKEN)
    assert link.is_symlink() and stat.S_IMODE(fresh.stat().st_mode) == 0o600


def test_a_new_text_that_does_not_load_leaves_the_old_one(tmp_path: Path) -> None:
    """Half a configuration would stop the bot at its next start."""
    file = tmp_path / "config.yaml"
    file.write_text("data_dir: x\n")
    file.chmod(0o640)
    with pytest.raises(ConfigError):
        setup.add_bot(
            file, platform="telegram", channel="telegram", name="NOWHERE", base_url=setup.URLS["telegram"], check=fine
        )
    assert file.read_text() == "data_dir: x\n"
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    add(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_config_behind_a_link_is_changed_there(tmp_path: Path) -> None:
    """People keep their configuration in a repository of their own."""
    real = tmp_path / "dots" / "remora.yaml"
    real.parent.mkdir()
    real.write_text("data_dir: x\n")
    file = tmp_path / "config.yaml"
    file.symlink_to(real)
    setup.add_bot(
        file,
        platform="telegram",
        channel="telegram",
        name="T",
        base_url="https://api.telegram.org",
        check=lambda new: load(new, {"T": TOKEN}, tmp_path),
    )
    assert file.is_symlink() and "${T}" in real.read_text()


def test_a_bot_on_discord_stands_beside_one_on_telegram(tmp_path: Path) -> None:
    """Each in its own list, with its own variable; the order in which they were set up does not matter."""
    file = add_discord(add(tmp_path / "one").parent)
    assert added(setup.short_config(), file.read_text()) == [
        "channels:", "  telegram:", "    - id: telegram", "      token: ${TELEGRAM_TOKEN}", "  discord:",
        "    - id: discord", "      token: ${DISCORD_TOKEN}",
    ]  # fmt: skip
    other = add(add_discord(tmp_path / "two").parent)
    assert load(other, {}, tmp_path).settings == load(file, {}, tmp_path).settings
    (bot,) = discords(file)
    assert bot.token.get_secret_value() == DISCORD and DISCORD not in file.read_text()


def test_the_person_and_the_servers_are_written_into_their_own_bot(tmp_path: Path) -> None:
    """A number lost in rounding would let nobody in, or somebody else."""
    file = add_discord(add(tmp_path).parent, base_url="http://127.0.0.1:8082/api/v10")
    before = file.read_text()
    setup.let_in(file, platform="discord", channel="discord", person=PERSON, check=fine)
    servers = ["234567890123456789", "234567890123456790"]
    setup.answer_in(file, channel="discord", servers=servers, check=fine)
    setup.answer_in(file, channel="discord", servers=servers[:1], check=fine)
    assert added(before, file.read_text()) == [
        f"      allow: [{PERSON}]",
        f"      admins: [{PERSON}]",
        f"      servers: [{', '.join(servers)}]",
    ]
    (bot,), (telegram,) = discords(file), bots(file)
    assert (bot.allow, bot.admins, bot.servers) == ((PERSON,), (PERSON,), tuple(servers))
    assert bot.base_url == "http://127.0.0.1:8082/api/v10"
    assert telegram.allow == ()


def test_an_id_of_another_platforms_bot_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Their sessions would be one."""
    file = add(tmp_path)
    before = file.read_text()
    with pytest.raises(ConfigError, match="has the id telegram"):
        setup.add_bot(
            file,
            platform="discord",
            channel="telegram",
            name="D",
            base_url=setup.URLS["discord"],
            check=lambda new: load(new, {"D": DISCORD}, tmp_path),
        )
    assert file.read_text() == before


# --- who is let in ---


class Wire(Channel):
    id = "telegram"
    platform = "telegram"
    capabilities = Capabilities()

    def __init__(self, *script: Inbound | Exception) -> None:
        self.script = script
        self.answers: list[tuple[str, str]] = []
        self.tickets: list[tuple[str, int]] = []
        self.taken = 0
        self.state = Health()
        self.fail_sends = False

    def health(self) -> Health:
        return self.state

    async def run(self, host: Host) -> None:
        for step in self.script:
            if isinstance(step, Exception):
                raise step
            await host.on_inbound(step)
            self.taken += 1
        await asyncio.Event().wait()

    async def send(self, outbound: Outbound) -> str:
        if self.fail_sends:
            raise ChannelUnavailable("the wire is cut")
        self.answers.append((outbound.place.chat, outbound.text))
        self.tickets.append((outbound.ticket, outbound.made_at))
        return str(outbound.id)


def said(text: str, *, person: str = "7") -> Inbound:
    return Inbound(
        channel="telegram",
        platform="telegram",
        bot_id="1",
        update_key="1",
        chat=person,
        chat_kind="private",
        author_id=person,
        author_name="Ada",
        message_id="1",
        text=text,
        sent_at=NOON,
    )


async def paired(wire: Wire, *, seconds: float = 0.2, say: Callable[[str], None] = lambda _: None) -> str | None:
    async def sleep(_: float) -> None:
        await asyncio.sleep(0)

    async with limit():
        first = await adding.pair(wire, code=CODE, language="en", say=say, seconds=seconds, sleep=sleep)
    return None if first is None else first.author_id


@pytest.mark.parametrize("text", [CODE, "CDFG2345", "cdfg-2345", " /start CDFG2345 ", "/pair CDFG-2345"])
async def test_the_code_lets_its_sender_in(text: str) -> None:
    wire = Wire(said(text))
    assert await paired(wire, seconds=10) == "7"
    ((chat, answer),) = wire.answers
    assert chat == "7" and "you are my admin" in answer


@pytest.mark.parametrize(
    "wrong",
    [
        said("CDFG-2346"), said("/start"), said(""), said(f"the code is {CODE}"),
        replace(said(CODE), chat="-100", chat_kind="group"),
        replace(said(CODE), forwarded=True), replace(said(CODE), edited=True), replace(said(CODE), pressed="x"),
        replace(said(CODE), author_id=""), replace(said(CODE), author_id="@ada"),
    ],
)  # fmt: skip
async def test_nothing_else_lets_anybody_in(wrong: Inbound) -> None:
    """The first admin may do everything: a forwarded or edited code, or one shown in a group, may be anybody's."""
    wire = Wire(wrong)
    assert await paired(wire) is None
    assert wire.taken == 1
    assert all("admin" not in answer for _, answer in wire.answers)


async def test_three_wrong_codes_shut_a_person_out_and_nobody_else() -> None:
    """Guessing must not pay, and must not keep the owner out."""
    guesses = [said(f"CDFG-234{n}", person="6") for n in (2, 3, 4)]
    wire = Wire(*guesses, said(CODE, person="6"), said("hello"), said("hello?"), said(CODE))
    assert await paired(wire, seconds=10) == "7"
    answers = [chat for chat, _ in wire.answers]
    assert answers == ["6", "6", "6", "7", "7"]


async def test_many_who_guess_together_end_the_code() -> None:
    """With an account for every three guesses nobody gets near it: whoever sets the bot up begins again."""
    guesses = [said("CDFG-2346", person=str(100 + n // 3)) for n in range(adding.GUESSES)]
    assert await paired(Wire(*guesses[1:], said(CODE)), seconds=10) == "7"
    assert await paired(Wire(*guesses, said(CODE))) is None


async def test_a_code_sent_as_a_command_is_answered_in_its_place() -> None:
    """Where a platform has commands of its own, the answer needs the ticket, and the time it is good for."""
    wire = Wire(replace(said(f"/start {CODE}"), ticket="t-1"))
    assert await paired(wire, seconds=10) == "7"
    assert wire.tickets == [("t-1", NOON)]


async def test_what_a_channel_keeps_while_pairing_is_kept_for_that_run_alone() -> None:
    """There is no store yet, and channels look things up before they hear anybody."""

    class Keeper(Wire):
        async def run(self, host: Host) -> None:
            assert host.commands == () and host.admins(self.id) == ()
            await host.keep(self.id, {"last:1": "5", "last:2": "6", "x": "7"})
            await host.keep(self.id, {"last:2": None, "last:3": None})
            self.found = await host.kept(self.id, "last:")
            await super().run(host)

    wire = Keeper(said(CODE))
    assert await paired(wire, seconds=10) == "7"
    assert wire.found == {"last:1": "5"}


async def test_only_the_first_is_let_in() -> None:
    """The code works once, even where somebody read it over the shoulder."""
    wire = Wire(said(CODE), said(CODE, person="8"))
    assert await paired(wire, seconds=10) == "7"
    assert {chat for chat, _ in wire.answers} == {"7"}


async def test_a_greeting_that_fails_does_not_undo_the_pairing() -> None:
    wire = Wire(said(CODE))
    wire.fail_sends = True
    assert await paired(wire, seconds=10) == "7"


async def test_trouble_with_the_platform_is_told_once() -> None:
    """Waiting ten minutes for a message that can't come helps nobody."""
    told: list[str] = []
    wire = Wire()
    wire.state = Health(trouble="another process polls with this token")
    assert await paired(wire, say=told.append) is None
    assert told == ["another process polls with this token"]


async def test_a_platform_that_refuses_ends_the_waiting() -> None:
    with pytest.raises(ChannelRefused, match="revoked"):
        await paired(Wire(ChannelRefused("the token was revoked")), seconds=10)
