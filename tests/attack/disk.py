"""A disk that is full at every stage of the bot's work, and has room again a while later."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tests.attack.frame import ADA, ADMIN, BEN, GROUP, Attack, Bot, scenario
from tests.attack.model import Says
from tests.kit.served import SELDOM
from tests.platforms.chat_model import JSON, is_extraction, last_words

_QUIET = replace(SELDOM, exit_seconds=2, quiet_seconds=0.3)
#: Bytes of the small disk.
_SIZE = 80_000_000


class Disk:
    """A small disk of its own in memory, mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file, suppress(OSError):
            for size in (1_000_000, 4_096, 1):
                with suppress(OSError):
                    while file.write(b"\0" * size) == size:
                        pass

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        self.fill()
        try:
            yield
        finally:
            self.free()


@contextmanager
def _mounted(folder: Path) -> Iterator[Disk]:
    folder.mkdir(exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        raise PermissionError(made.stderr.decode())
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


@asynccontextmanager
async def _small(attack: Attack) -> AsyncIterator[tuple[Bot, Disk]]:
    """A bot whose data and log lie on a small disk."""
    log = "{level: info, format: json, file: data/remora.log}"
    async with attack.bot(started=False, pace=_QUIET, log=log) as bot:
        with _mounted(bot.folder / "data") as disk:
            await bot.start()
            try:
                yield bot, disk
            finally:
                await bot.kill()


@scenario("disk")
async def disk(attack: Attack) -> None:
    try:
        async with _small(attack) as (bot, disk):
            await bot.ask("good morning")
            await bot.ask("good morning", user=BEN)
            for stage in (_inbox, _command, _learning) if attack.short else _STAGES:
                await stage(attack, bot, disk)
                disk.free()
                await bot.rest()
                if bot.died():
                    attack.count(True, f"{stage.__name__}: the process ended: {bot.printed()[-300:]}")
                    await bot.kill()
                    await bot.start()
            with bot.database() as database:
                (said,) = database.execute("pragma integrity_check").fetchone()
            attack.count(said != "ok", f"integrity: {said}")
    except PermissionError:
        return  # nobody may mount here: nothing is tried


async def _comes(bot: Bot, chat: int, words: str, seconds: float = 90) -> int:
    """How often an answer stands in a chat, as soon as it does or when it did not come."""
    with suppress(TimeoutError):
        await bot.telegram.wait(chat=chat, text=words, timeout=seconds)
        await bot.rest()
    return sum(words in text for text in await bot.texts(chat))


async def _inbox(attack: Attack, bot: Bot, disk: Disk) -> None:
    """Nothing can be taken: it is answered when there is room again, and until then the person is told or waits."""
    # Lines of one person that waited are answered together.
    bot.model.script = lambda body: None if is_extraction(body) else Says(text=f"All of {last_words(body)}")
    with disk.full():
        for n in range(6):
            await bot.telegram.say(f"inbox {n}", user=(ADA, BEN)[n % 2])
        await asyncio.sleep(3)
        page = await bot.health()
        attack.count(page is not None and not page["reasons"], "inbox: health is green on a full disk")
    for n in range(6):
        times = await _comes(bot, (ADA, BEN)[n % 2], f"inbox {n}")
        attack.count(times != 1, f"inbox {n} was answered {times} times after there was room again")


async def _turn(attack: Attack, bot: Bot, disk: Disk) -> None:
    """The disk is full when the model's answer comes."""
    for n, late in enumerate((0.0, 0.6, 1.2)):
        asked = asyncio.Event()

        def slowly(body: JSON, n: int = n, asked: asyncio.Event = asked) -> Says | None:
            if is_extraction(body):
                return None
            asked.set()
            return Says(text=f"Turn {n}: " + "so it is " * 20)

        bot.model.script, bot.model.pause = slowly, 0.08
        await bot.telegram.say("turn", user=ADA)
        await asyncio.wait_for(asked.wait(), 20)
        await asyncio.sleep(late)
        with disk.full():
            await asyncio.sleep(4)
        bot.model.pause = 0
        times = await _comes(bot, ADA, f"Turn {n}:")
        failed = "couldn't" in (await bot.texts(ADA))[-1]
        attack.count(times != 1 and not failed, f"turn {n} was answered {times} times: {(await bot.texts(ADA))[-1]!r}")
    bot.model.script = lambda _body: None


async def _command(attack: Attack, bot: Bot, disk: Disk) -> None:
    """Claims to have kept or forgotten something are true."""
    await bot.ask("/remember the boat is green1q")
    with disk.full():
        kept = await bot.ask("/remember the car is yellow2q", seconds=5) or ""
        gone = await bot.ask("/forget green1q", seconds=5) or ""
    await bot.rest()
    listed = await bot.ask("/memory list") or ""
    attack.count("yellow2q" in kept and "yellow2q" not in listed, f"said to be kept and is not: {kept!r}")
    attack.count("Forgotten" in gone and "green1q" in listed, f"said to be forgotten and is not: {gone!r}")
    times = sum("yellow2q" in text for text in await bot.texts(ADA))
    attack.count(not times, "a command that came while the disk was full was never answered")


async def _learning(attack: Attack, bot: Bot, disk: Disk) -> None:
    """Words are learned from when there is room."""
    bot.model.pause = 0
    await bot.ask("I like herons3q.", user=BEN)
    with disk.full():
        await asyncio.sleep(3)
    for _ in range(60):
        await asyncio.sleep(1)
        with bot.database() as database:
            known = database.execute("select count(*) from memories where value like '%herons3q%'").fetchone()[0]
        if known:
            break
    attack.count(not known, "learning: what was said before the disk was full was not learned in a minute after it")


async def _backup(attack: Attack, bot: Bot, disk: Disk) -> None:
    first = await bot.ask("/backup", user=ADMIN) or ""
    folder = bot.folder / "data" / "backups"
    before = {path.name: path.read_bytes() for path in folder.glob("*.db")}
    attack.count(not before, f"backup: none was made: {first!r}")
    await asyncio.sleep(1.1)
    with disk.full():
        told = await bot.ask("/backup", user=ADMIN, seconds=20)
        code, printed = await bot.cli("backup")
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    attack.count(after != before, f"backup: a full disk left {sorted(after)}, before {sorted(before)}")
    attack.count(code == 0 or "Traceback" in printed, f"backup: exit {code}: {printed[-200:]}")
    if told is None:
        await bot.rest()
        told = (await bot.texts(ADMIN))[-1]
    attack.count(told == first or not told, f"backup: nobody was told: {told!r}")


async def _started(attack: Attack, bot: Bot, disk: Disk) -> None:
    """A start on a full disk says what is wrong and ends, or waits; with room it goes on."""
    await bot.ask("I like owls4q.", user=BEN)
    await bot.kill()
    with disk.full():
        await bot.telegram.say("started", user=ADA)
        with suppress(TimeoutError):
            await bot.start()
        await asyncio.sleep(3)
        attack.count("Traceback" in bot.printed(), f"started: {bot.printed()[-300:]}")
    if bot.died():
        await bot.kill()
        await bot.start()
    times = await _comes(bot, ADA, "started")
    attack.count(times != 1, f"what was said while it could not start was answered {times} times")
    attack.count(await bot.ask("hello?", chat=GROUP) is None, "it does not answer after a start on a full disk")


_STAGES = (_inbox, _turn, _command, _learning, _backup, _started)
