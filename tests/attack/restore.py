"""Ways by which forgotten words could come back: backups, exports, notes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from gateway.commands.jobs import NAMES
from tests.attack.frame import ADA, Attack, Bot, scenario
from tests.attack.model import words
from tests.kit.served import SELDOM

_PERSON = ("--person", f"telegram:{ADA}")
_WORDS = (f"marzipan{n:03}q" for n in count(1))
_QUIET = replace(SELDOM, exit_seconds=5, quiet_seconds=0.2)
#: The texts behind /forget by which somebody gets rid of a word, and the notes in which the word may stand.
_FORGETS = ("{word}", "words: {word}", "topic:likes", "today", "here", "all")
_NOTES = (
    "- I like {word}", "- The user likes {word}", "- likes: {word}", "- **Likes:** {word}", "- Likes: {word}.",
    "- preference: {word}", "- I like  {word} !", "- i LIKE {word}", "- likes: “{word}”", "- User likes {word} (2026)",
    "## Food\n- likes {word}", "- Ada likes {word}",
)  # fmt: skip


@scenario("restore")
async def restore(attack: Attack) -> None:
    if not attack.short:
        await _by_words(attack)
        await _by_nights(attack)
    for chain in _CHAINS[3:4] if attack.short else _CHAINS:
        async with attack.bot(pace=_QUIET) as bot:
            await _by_chain(attack, bot, chain)


async def _by_words(attack: Attack) -> None:
    """Each way to have something forgotten, then each way in which it could come back."""
    async with attack.bot(pace=_QUIET) as bot:
        for how in _FORGETS:
            word = next(_WORDS)
            exported = await _told_and_forgotten(attack, bot, word, how)
            if exported is None:
                continue
            await _comes_by_backup(attack, bot, word, how)
            await _comes_by_import(attack, bot, word, f"{how}, export", exported)
            await _comes_by_import(attack, bot, word, f"{how}, export, restored", exported, restored=True)
        word = next(_WORDS)
        exported = await _told_and_forgotten(attack, bot, word, "{word}")
        for note in _NOTES:
            folder = bot.folder / "notes"
            folder.mkdir(exist_ok=True)
            (folder / "MEMORY.md").write_text(f"# Memory\n\n{note.format(word=word)}\n", "utf-8")
            await _comes_by_import(attack, bot, word, f"note {note!r}", folder)
        await _comes_by_import(attack, bot, word, "a younger name of the file", _renamed(bot, exported))
        await _undone_and_again(attack, bot)


async def _by_nights(attack: Attack) -> None:
    """With the models of `remora init`: an older backup, an older export with its transcript, and every job of a night."""
    async with attack.bot(pace=_QUIET, embedding="{provider: local}") as bot:
        word = next(_WORDS)
        exported = await _told_and_forgotten(attack, bot, word, "{word}")
        assert exported is not None
        await _comes_by_import(attack, bot, word, "models, export, restored", exported, restored=True)
        await bot.stop()
        for job in NAMES:
            code, printed = await bot.cli("jobs", "run", job)
            attack.count(code != 0, f"the job {job}: exit {code}: {printed[-200:]}")
            attack.count(held := _holds(bot, word), f"after the job {job}: {held}")
        await bot.start()
        await _comes_by_question(attack, bot, word, "after the jobs of a night")


#: Backups of different age, put in place one after the other: of before anybody spoke, of before and after the word was
#: told, of after it was forgotten. "lost" has the database gone, and with "only" the word's memory alone is forgotten.
_CHAINS = (
    ("empty",), ("before",), ("empty", "told"), ("told", "told"), ("before", "told"), ("after", "told"),
    ("told", "empty", "told"), ("lost", "told"), ("lost", "empty"), ("only", "told"), ("only", "empty"),
)  # fmt: skip


async def _by_chain(attack: Attack, bot: Bot, chain: Sequence[str]) -> None:
    """Backups come into place one by one, and after each the export of the word is brought in."""
    word, how = next(_WORDS), ", ".join(chain)

    async def backup(name: str) -> None:
        code, printed = await bot.cli("backup", "--to", str(bot.folder / f"{name}.db"))
        assert code == 0, printed

    await backup("empty")
    await bot.ask("good morning")
    await backup("before")
    await bot.ask(f"I like {word}.")
    await bot.rest()
    await backup("told")
    await bot.stop()
    exported = bot.folder / "exported"
    await bot.cli("export", *_PERSON, "--to", str(exported))
    await bot.start()
    await bot.ask(f"/forget {word}")
    await bot.ask("this memory only" if "only" in chain else "yes")
    await bot.rest()
    await backup("after")
    for name in chain:
        if name == "only":
            continue
        await bot.stop()
        if name == "lost":
            for path in (bot.folder / "data").glob("remora.db*"):
                if not path.name.endswith(".erased"):
                    path.unlink()
            await bot.start()
            continue
        await bot.cli("restore", str(bot.folder / f"{name}.db"), "--store", "remora.db")
        await bot.cli("import", str(exported), *_PERSON, "--yes")
        await bot.start()
        await bot.ask("good evening")
        listed = await bot.ask("/memory list") or ""
        attack.count(word in listed, f"restored {how} ({name}), imported: it is listed again")
        if "only" not in chain:
            held = _holds(bot, word)
            attack.count(held, f"restored {how} ({name}), imported: {held}")


async def _told_and_forgotten(attack: Attack, bot: Bot, word: str, how: str) -> Path | None:
    """Ada tells a word, which is backed up and exported, and has it forgotten. Returns the folder of the export."""
    await bot.ask(f"I like {word}.")
    await bot.rest()
    with bot.database() as database:
        known = database.execute("select count(*) from memories where value like ?", (f"%{word}%",)).fetchone()[0]
    assert known, f"{word} was not learned"
    await bot.stop()
    code, printed = await bot.cli("backup", "--to", str(bot.folder / f"{word}.db"))
    assert code == 0, printed
    to = bot.folder / f"export-{word}"
    code, printed = await bot.cli("export", *_PERSON, "--transcript", "--to", str(to))
    assert code == 0, printed
    await bot.start()
    answer = await bot.ask(f"/forget {how.format(word=word)}")
    if answer is None or "yes" not in answer:
        return None  # nothing of the kind is offered
    await bot.ask("yes")
    await bot.rest()
    attack.count(held := _holds(bot, word), f"{how}: {held}")
    return to


async def _comes_by_backup(attack: Attack, bot: Bot, word: str, how: str) -> None:
    await bot.stop()
    code, printed = await bot.cli("restore", str(bot.folder / f"{word}.db"), "--store", "remora.db", "--discard")
    attack.count((held := _holds(bot, word)) or code, f"{how}, restored: {held or printed[-200:]}")
    await bot.start()
    await _comes_by_question(attack, bot, word, f"{how}, restored")


async def _comes_by_import(
    attack: Attack, bot: Bot, word: str, how: str, source: Path, *, restored: bool = False
) -> None:
    await bot.stop()
    if restored:
        await bot.cli("restore", str(bot.folder / f"{word}.db"), "--store", "remora.db", "--discard")
    code, printed = await bot.cli("import", str(source), *_PERSON, "--yes")
    held = _holds(bot, word)
    attack.count(held or code not in (0, 65, 66), f"{how}: {held or printed[-200:]}")
    await bot.start()
    await _comes_by_question(attack, bot, word, how)
    if held:
        await bot.ask(f"/forget {word}")
        await bot.ask("yes")


async def _comes_by_question(attack: Attack, bot: Bot, word: str, how: str) -> None:
    """Ada asks for what she likes, in a new session and in a list."""
    await bot.rest()
    await bot.ask("/new")
    bot.model.requests.clear()
    # The question itself must not hold the word.
    await bot.ask("What sweets do I like?")
    read = "\n".join(text for body in bot.model.turns() for _, text in words(body))
    listed = await bot.ask("/memory list") or ""
    attack.count(word in read, f"{how}: the model is told it again")
    attack.count(word in listed, f"{how}: it is listed again")


async def _undone_and_again(attack: Attack, bot: Bot) -> None:
    """A note comes in by an import, is forgotten, the import taken out, and the note comes once more."""
    word = next(_WORDS)
    folder = bot.folder / "notes"
    (folder / "MEMORY.md").write_text(f"# Memory\n\n- I like {word}\n", "utf-8")
    await bot.stop()
    _, printed = await bot.cli("import", str(folder), *_PERSON, "--yes")
    await bot.start()
    assert _holds(bot, word), printed
    await bot.ask(f"/forget {word}")
    await bot.ask("yes")
    await bot.rest()
    await _comes_by_import(attack, bot, word, "imported, forgotten, imported", folder)
    await bot.stop()
    brought = printed.partition("Imported as ")[2].partition(":")[0]
    await bot.cli("import", "undo", brought, "--yes")
    await bot.start()
    await _comes_by_import(attack, bot, word, "imported, forgotten, taken out, imported", folder)


def _renamed(bot: Bot, exported: Path | None) -> Path:
    """The same memories as an export of a later day."""
    assert exported is not None
    to = bot.folder / "later"
    shutil.copytree(exported, to)
    for path in to.glob("*.json"):
        held = json.loads(path.read_text("utf-8"))
        path.with_name("remora-later.json").write_text(json.dumps(held, ensure_ascii=False, indent=1), "utf-8")
        path.unlink()
    return to


def _holds(bot: Bot, word: str) -> str:
    # Beside it, a restore keeps for a while what it has replaced, as is written.
    for path in (bot.folder / "data" / f"remora.db{end}" for end in ("", "-wal", "-shm", ".erased")):
        if path.is_file() and word.encode() in path.read_bytes().lower():
            return f"{path.name} holds {word}"
    return ""
