"""People who have something forgotten, and the traces of it in the files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from gateway.wording.texts import Texts
from languages import Language
from memory.context import Context
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import Receipt
from memory.forgetting.plan import How
from memory.service import Service
from tests.kit import postgres, stalls
from tests.kit.stores import on_postgres
from tests.kit.talk import received


async def forgotten(
    memory: Service, context: Context, words: str, *, how: How = "words", may_all: bool = False
) -> Receipt:
    """All of /forget: what is meant, and its going."""
    preview = await memory.forgetting.preview(context, words, may_all=may_all)
    assert preview is not None
    return await carried_out(memory, context, preview.selection, how=how, may_all=may_all)


async def carried_out(
    memory: Service, context: Context, selection: Selection, *, how: How = "words", may_all: bool = False
) -> Receipt:
    inbox_id = await received(memory, context.session.key)
    receipt = await memory.forgetting.forget(context, inbox_id, None, selection, how, may_all=may_all)
    assert receipt is not None
    return receipt


async def forgotten_alone(memory: Service, context: Context, memory_id: int) -> Receipt:
    """Have one memory forgotten and only it: its words stay."""
    return await carried_out(memory, context, Selection(what="memories", memory_ids=(memory_id,)), how="memory")


def let_go(language: Language = "en") -> str:
    """The end of a receipt: where nothing is left of it, which of a server is less than of files."""
    return Texts(language)("forget.scrubbed_server" if on_postgres() else "forget.scrubbed")


def held_by_backups(language: Language, *, days: int) -> str:
    """The line of /privacy on copies: how long the bot keeps them, or that the server's operator decides."""
    return Texts(language)("privacy.backups_server" if on_postgres() else "privacy.backups", days=days)


@stalls.apart()
def traces(path: Path, needles: Sequence[str]) -> dict[str, int]:
    """How often anything of `needles` stands in the files of a store, by file."""
    found = {}
    for file in files_of(path):
        data = file.read_bytes()
        hits = sum(data.count(needle.encode()) for needle in needles)
        if hits:
            found[file.name] = hits
    return found


@stalls.apart()
def standing(files: Sequence[Path], words: Sequence[str]) -> list[str]:
    """Returns those of the words that one of the files holds."""
    held = b"".join(file.read_bytes() for file in files if file.exists())
    return [word for word in words if word.encode() in held]


def files_of(path: Path) -> list[Path]:
    """All files of a store and beside it."""
    return [*(file for file in sorted(path.parent.iterdir()) if file.is_file()), *postgres.files(path)]


def secret(n: int) -> str:
    """A word that stands nowhere else, in two halves that a tokeniser keeps together."""
    return f"zq{hashlib.sha256(str(n).encode()).hexdigest()[:14]}"
