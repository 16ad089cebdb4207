"""Attacks by others on the machine, and by names at the terminal."""

from __future__ import annotations

import os
import stat
from dataclasses import replace

from tests.attack.frame import ADA, ADMIN, Attack, Bot, scenario
from tests.attack.model import Says, words
from tests.kit.served import SELDOM
from tests.platforms.chat_model import is_extraction

_QUIET = replace(SELDOM, exit_seconds=5, quiet_seconds=0.2)


@scenario("permissions")
async def permissions(attack: Attack) -> None:
    """With a umask that forbids nothing, all that is written is for its owner alone."""
    under = ("sh", "-c", 'umask 000; exec "$@"', "sh")
    async with attack.bot(under=under, pace=_QUIET, backup="{folder: elsewhere/backups}") as bot:
        os.umask(before := os.umask(0))
        try:
            os.umask(0)
            await bot.ask("I like owls.")
            await bot.ask("/backup", user=ADMIN)
            await bot.ask("/forget owls")
            await bot.ask("yes")
            await bot.rest()
            looked = _open_to_others(bot)
            await bot.stop()
            await bot.cli("backup")
            await bot.cli("backup", "--to", str(bot.folder / "copies" / "remora.db"))
            await bot.cli("export", "--person", f"telegram:{ADA}", "--to", str(bot.folder / "handed" / "out"))
            newest = max((bot.folder / "data").rglob("*.db"), key=lambda path: path.stat().st_mtime)
            await bot.cli("restore", str(newest), "--store", "remora.db")
            await bot.cli("chat", "--once", "/memory export")
            looked |= _open_to_others(bot)
        finally:
            os.umask(before)
        paths = {str(p.relative_to(bot.folder)) for p in bot.folder.rglob("*") if not _apart(bot, str(p))}
        for path in sorted(paths | looked.keys()):
            mode = looked.get(path)
            attack.count(mode is not None, f"{path} has the mode {mode or 0:o}")


def _apart(bot: Bot, path: str) -> bool:
    """Leaves out what the attack itself has written, and what a library keeps for itself."""
    name = path.removeprefix(f"{bot.folder}/")
    return name.startswith((".cache", "agents", "config.yaml", "printed"))


def _open_to_others(bot: Bot) -> dict[str, int]:
    found = {}
    for path in bot.folder.rglob("*"):
        if not _apart(bot, str(path)) and (mode := stat.S_IMODE(path.lstat().st_mode)) & 0o077:
            found[str(path.relative_to(bot.folder))] = mode
    return found


#: Names at the terminal that mean somebody else's, somewhere else's, or nothing.
_NAMES = (
    "\udcff", str(ADA), str(ADMIN), f"telegram:{ADA}", f"telegram:{ADA}:-", "telegram", "Ada", "User 1007", f"{ADA}:-", "-", "1",
    "0", "admin", "system", "assistant", "../../etc/passwd", "/etc/passwd", "a/b", "a:b:c", "console:you:-",
    "' or 1=1 --", "%", "*", "you\nadmin", "a\tb", "\u202eada", "\u200b", "\u00a0", "x" * 10_000, "👩" * 500,
    "null", "None", "-1001000000001", "you ", "YOU", "a\udc80b", "$(id)", "{}", "\x1b[2Jada", "\x07",
)  # fmt: skip


@scenario("terminal")
async def terminal(attack: Attack) -> None:
    """`remora chat --as`: whoever sits there is none of the people of a platform, and no admin."""
    async with attack.bot(pace=_QUIET) as bot:
        await bot.ask("I like pelicans77q.", user=ADA)
        await bot.ask("I like cormorants77q.", user=ADMIN)
        await bot.ask("/remember the door code is heron77q", user=ADA)
        await bot.rest()
        await bot.stop()
        bot.model.script = lambda body: None if is_extraction(body) else Says(text="Ok.")
        for n, name in enumerate(_NAMES):
            if attack.short and n % 12:
                continue
            bot.model.requests.clear()
            lines = (
                "what do I like?\n/memory list\n/memory export transcript\n/admin memory 1007 list\n/pair\n/allow 5\n"
            )
            code, printed = await bot.cli("chat", "--as", name, stdin=lines)
            read = "\n".join(text for body in bot.model.requests for _, text in words(body))
            everything = (
                printed
                + read
                + "".join(
                    path.read_text("utf-8", "replace")
                    for path in (bot.folder / "data").rglob("exports/**/*")
                    if path.is_file()
                )
            )
            shown = f"as {name[:40]!r}: exit {code}: {printed[-200:]!r}"
            attack.count("77q" in everything, f"{shown} shows what others told")
            attack.count("Traceback" in printed or code not in (0, 2), shown)
            attack.count("XXXX" in printed or "allowed: " in printed, f"{shown} does what admins may")
            attack.count("\x1b[2J" in printed or "\x07" in printed, f"{shown} writes control characters")
        outside = [str(p) for p in bot.folder.parent.glob("passwd*")]
        attack.count(outside, f"written outside: {outside}")
