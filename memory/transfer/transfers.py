"""The gateway's interface to exports, imports, and undoing an import.

Invariants: an export is confined to a scope. A preview runs the import and rolls the transaction back, so it tells what
would happen. An import is written in short transactions that each leave whole rows; if it is interrupted anywhere, the
same call continues it. Nothing is doubled. An import's rows carry its number, so that undoing it leaves no trace, down
to the bytes of the file: memories that it replaced hold again, and those learned from its words alone go.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import structlog

from memory.browse import talks
from memory.context import Context, anew, confined, in_read, reads
from memory.errors import NotFound
from memory.forgetting import erase
from memory.learn.agents import Agents
from memory.recall import index
from memory.runtime import Runtime
from memory.store import chats, history, lineage, memories, people, word_columns
from memory.store.database import Database, Reader, Transaction
from memory.transfer import export, homes, imports, ingest
from memory.transfer.export import Exported
from memory.transfer.formats import remora
from memory.transfer.formats.material import ImportedItem, ImportedLine, Material, Skipped
from memory.transfer.homes import Home, Owner
from memory.transfer.imports import Import, ImportCounts
from memory.transfer.ingest import ImportRun

#: Messages written in one transaction: some 20 ms with their words indexed.
_LINES: Final = 200
#: Memories written in one transaction: each is compared with the known ones.
_ITEMS: Final = 25
#: Rows taken out in one transaction.
_OUT: Final = 100

#: The most messages of an exported conversation.
_WHOLE: Final = 20_000
#: The folder of exports beside the database, and the characters of a page that name its owner.
EXPORTS: Final = "exports"
_HEAD: Final = 2_000

#: A platform and a user id on it.
Account: TypeAlias = tuple[str, str]
#: A function called with the number of messages and memories read since the last call.
Progress: TypeAlias = Callable[[int], None]
T = TypeVar("T")


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPreview:
    """A preview of an import. `first` and `duplicates` show some of the new and of the known items.

    `flags` are memories that read like instructions: they are kept, and have no authority. `before` is an earlier
    import of exactly the same files that was not undone.
    """

    counts: ImportCounts
    first: tuple[str, ...]
    duplicates: tuple[str, ...]
    flags: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    masked: int
    before: Import | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The result of an import, and the id for undoing it. `unread` messages are still to be searched for memories."""

    short_id: str
    counts: ImportCounts
    unread: int


class Transfer:
    def __init__(
        self,
        database: Database,
        *,
        agents: Agents,
        runtime: Runtime,
        heard: Callable[[int], None],
        scrub: Callable[[], Awaitable[bool]],
    ) -> None:
        self._database = database
        self._agents = agents
        self._now = runtime.now
        self._memory_id = runtime.memory_id
        self._import_id = lambda: f"i_{runtime.new_id()}"
        self._count_tokens = runtime.count_tokens
        self._heard = heard
        self._scrub = scrub

    # Out ----------------------------------------------------------------------------------------------------------

    @in_read
    def export(self, reader: Reader, context: Context, *, transcript: bool) -> Exported:
        scope = confined(reader, context).scope
        return export.export(reader, scope, shared=False, transcript=transcript, now=self._now())

    @in_read
    def talk(self, reader: Reader, context: Context, session_key: str) -> Exported:
        """Returns one conversation, with what it continues as a branch."""
        scope = confined(reader, context).scope
        said = talks.lines(reader, scope, session_key, limit=_WHOLE)
        return export.talk(reader, scope, said, now=self._now())

    async def export_of(self, owner: Owner, *, transcript: bool) -> Exported:
        """Exports everything that an owner, given by name, can see; for the operator. Raises `NotFound`."""
        agent_id = self._agents.ids[owner.agent]

        def act(reader: Reader) -> Exported:
            home = homes.known_home(reader, owner, agent_id=agent_id, timezone=self._agents.timezone(agent_id))
            if home is None:
                raise NotFound(f"Nobody is known here as {owner.platform}:{owner.reference}.")
            reader.confine(home.scope)
            return export.export(
                reader, home.scope, shared=owner.kind == "agent", transcript=transcript, now=self._now()
            )

        return await self._database.read(act)

    async def files_of(self, context: Context) -> dict[int, Path]:
        """Returns the exports beside the store that hold the speaker's memory, under any of their accounts.

        Their keys are inode numbers, by which a question can remember them.
        """
        accounts = await self._database.read(lambda reader: _accounts(reader, anew(reader, context)))
        folder = self._database.path.parent / EXPORTS
        return await asyncio.to_thread(exports_of, folder, accounts)

    async def remove_files(self, context: Context, numbers: Collection[int]) -> int:
        """Removes the person's exports with these inode numbers. Returns the number of removed files."""
        removed = 0
        for number, path in (await self.files_of(context)).items():
            if number in numbers:
                try:
                    path.unlink(missing_ok=True)
                    removed += 1
                except OSError as exc:
                    log.warning("export.not_removed", file=path.name, error=str(exc), fix="delete it by hand")
        return removed

    known = reads(homes.known)

    # In -----------------------------------------------------------------------------------------------------------

    async def preview(self, owner: Owner, material: Material, *, digest: str = "") -> ImportPreview:
        """Returns the result that `bring` would have, without changing anything. Raises `OptedOut`."""

        def act(tx: Transaction) -> None:
            home = self._resolve(tx, owner)
            before = imports.same_before(tx, home.owner_id, format=material.format, digest=digest) if digest else None
            run = ImportRun(import_id=0, home=home, agents=self._agents.ids, learn=False)
            ingest.look(tx, run)
            for line in _in_order(material.lines, home):
                if ingest.sort_out(tx, run, line, ingest.author_of(tx, run, line)) is None:
                    run.count("messages")
            run.import_id = imports.begin(
                tx, home.owner_id, format=material.format, digest="", now=self._now(), new_id=self._import_id
            )
            ingest.bring(tx, run, material.items, now=self._now(), new_id=self._memory_id)
            raise _DoneError(run, before)

        try:
            await self._database.write(act)
        except _DoneError as done:
            return ImportPreview(
                counts=done.run.counts(),
                first=tuple(done.run.first),
                duplicates=tuple(done.run.duplicates),
                flags=tuple(done.run.flags),
                skipped=material.skipped,
                masked=material.masked,
                before=done.before,
            )
        raise AssertionError("a preview is always taken back")

    async def bring(
        self,
        owner: Owner,
        material: Material,
        *,
        session_key: Callable[[str | None], str],
        learn: bool,
        digest: str = "",
        progress: Progress = lambda count: None,
    ) -> Brought:
        """Adds the files' content to the owner's memory. After an interruption, a second call finds the committed part.

        `session_key` names the session of a thread if there is none yet. With `learn`, people's own words are searched
        for memories later. Raises `OptedOut`, and `NotFound` if messages have no place to go.
        """

        def begun(tx: Transaction) -> ImportRun:
            home = self._resolve(tx, owner)
            import_id = imports.begin(
                tx, home.owner_id, format=material.format, digest=digest, now=self._now(), new_id=self._import_id
            )
            row = tx.one("select counts from imports where id = ?", (import_id,))
            assert row is not None
            before = ImportCounts.from_json(row["counts"])
            return ImportRun(import_id=import_id, home=home, agents=self._agents.ids, learn=learn, before=before)

        run = await self._database.write(begun)
        for thread, lines in groupby(_in_order(material.lines, run.home), key=lambda line: line.thread):
            for some in _portions(list(lines), _LINES):
                run = await self._database.write(partial(self._record, run, thread, some, session_key))
                # Indexing imported messages must not be left to the first search.
                await index.keep_up(self._database)
                progress(len(some))
        for items in _portions(material.items, _ITEMS):
            run = await self._database.write(partial(self._bring, run, items))
            progress(len(items))
        counts = await self._database.write(lambda tx: ingest.finish(tx, run, now=self._now(), new_id=self._memory_id))
        await index.keep_up(self._database)
        unread = 0
        if learn:
            for session_id in run.sessions.values():
                self._heard(session_id)
            unread = sum(line.learn for line in material.lines)
        done = next(one for one in await self.imports() if one.id == run.import_id)
        return Brought(short_id=done.short_id, counts=counts, unread=min(unread, counts.messages))

    imports = reads(imports.all_imports)

    async def undo(self, short_id: str, *, progress: Progress = lambda count: None) -> Import:
        """Undoes an import: removes its memories and messages, and all rows derived or learned from them alone.

        The file is scrubbed of them, and replaced memories hold again. After an interruption the same call continues.
        Raises `NotFound`, also if the import was undone already.
        """
        one = await self._database.read(lambda reader: imports.by_short_id(reader, short_id))
        if one.state == "undone":
            raise NotFound(f"The import {short_id} has already been undone.")
        home = await self._database.read(lambda reader: self._home_of(reader, one))
        while found := await self._database.read(partial(memories.some_imported, import_id=one.id, limit=_OUT)):
            await self._database.write(partial(self._retract, home, found))
            await index.keep_up(self._database)
            progress(len(found))
        while found := await self._database.read(partial(history.some_imported, import_id=one.id, limit=_OUT)):
            await self._database.write(partial(self._take_out, home, found))
            await index.keep_up(self._database)
            progress(len(found))
        await self._database.write(partial(self._close, one, home))
        await index.keep_up(self._database)
        await self._scrub()
        return one

    # Shared parts -------------------------------------------------------------------------------------------------

    def _resolve(self, tx: Transaction, owner: Owner) -> Home:
        zone = self._agents.timezone(self._agents.ids[owner.agent])
        return homes.resolve(tx, owner, agents=self._agents.ids, timezone=zone, now=self._now())

    def _home_of(self, reader: Reader, one: Import) -> Home:
        agent_id = next(iter(self._agents.ids.values()))
        return homes.home_of(reader, one.owner_id, agent_id=agent_id, timezone=self._agents.timezone(agent_id))

    def _record(
        self,
        run: ImportRun,
        thread: str | None,
        lines: Sequence[ImportedLine],
        session_key: Callable[[str | None], str],
        tx: Transaction,
    ) -> ImportRun:
        run = run.copy()
        ingest.record(tx, run, thread, lines, session_key=session_key, count_tokens=self._count_tokens, now=self._now())
        ingest.so_far(tx, run)
        return run

    def _take_out(self, home: Home, message_ids: Sequence[int], tx: Transaction) -> None:
        """Blanks imported messages, and removes memories from them alone, unless confirmed or pinned since."""
        history.erase(tx, message_ids, now=self._now())
        # They lose their owner. Otherwise they would count as words erased on request, which no import brings back.
        history.disown(tx, message_ids)
        taught = [memory for memory in lineage.resting_on(tx, message_ids) if not (memory.confirmed or memory.pinned)]
        self._retract(home, [memory.id for memory in taught], tx)

    def _retract(self, home: Home, memory_ids: Sequence[int], tx: Transaction) -> None:
        rows = memories.of_ids(tx, memory_ids)
        memories.retract(tx, memory_ids)
        erase.show_change(tx, home.scope, rows, now=self._now(), new_id=self._memory_id)

    def _close(self, one: Import, home: Home, tx: Transaction) -> None:
        """Closes an undone import, of which only the figures stay; names that came from it alone go."""
        now = self._now()
        ingest.refresh(tx, home, now=now, new_id=self._memory_id)
        # People whose names are removed are named again when next seen.
        people.unname_imported(tx, one.id, home.identity_id, first=one.started_at, last=one.ended_at or now)
        chats.untitle_imported(tx, one.id, home.chat_id)
        word_columns.note_reworded(tx, now=now)
        tx.run("update imports set state = 'undone', digest = '', ended_at = ? where id = ?", (now, one.id))

    def _bring(self, run: ImportRun, items: Sequence[ImportedItem], tx: Transaction) -> ImportRun:
        run = run.copy()
        ingest.bring(tx, run, items, now=self._now(), new_id=self._memory_id)
        ingest.so_far(tx, run)
        return run


class _DoneError(Exception):
    """Ends a preview, so that its transaction is rolled back."""

    def __init__(self, run: ImportRun, before: Import | None) -> None:
        super().__init__()
        self.run = run
        self.before = before


def _in_order(lines: Sequence[ImportedLine], home: Home) -> list[ImportedLine]:
    """Returns lines by thread, then by time. Those of a person have no threads; those of an agent are dropped."""
    if home.chat_id is None:
        lines = [replace(line, thread=None) for line in lines] if home.identity_id is not None else []
    return sorted(lines, key=lambda line: (line.thread or "", line.said_at))


def _portions(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _accounts(reader: Reader, context: Context) -> set[Account]:
    known = [people.account(reader, identity_id) for identity_id in people.linked(reader, context.scope.speakers)]
    return {(account.platform, account.user_id) for account in known if account is not None}


# Exports beside the store ---------------------------------------------------------------------------------------------


def exports_of(folder: Path, accounts: Collection[Account]) -> dict[int, Path]:
    """Returns the exports of the person with these accounts, ordered by name, under their inode numbers.

    A file is the person's only if it says so itself: a data file by its owner, a page by its second line or, if it is
    an older one, by the data file beside it. Files that can't be read are passed over.
    """
    there = sorted(path for path in folder.glob("*") if path.is_file() and not path.is_symlink())
    data = [path for path in there if path.suffix == ".json" and _account_in(path) in accounts]
    named = [remora.page_line(*account) for account in accounts]
    pages = [path for path in there if path.suffix == ".md" and _is_theirs(path, named, data)]
    found: dict[int, Path] = {}
    for path in sorted([*data, *pages]):
        with suppress(FileNotFoundError):
            found[path.stat().st_ino] = path
    return found


def drop_old_exports(folder: Path, *, before: int) -> int:
    """Removes the exports in a folder last written before a time in milliseconds UTC. Returns their number.

    Files that are no exports stay.
    """
    dropped = 0
    for path in sorted(folder.glob("*")):
        with suppress(OSError):
            if not path.is_symlink() and path.stat().st_mtime * 1000 < before and _is_export(path):
                path.unlink()
                dropped += 1
    return dropped


def _is_export(path: Path) -> bool:
    if path.suffix == ".json":
        with suppress(OSError, ValueError, RecursionError):
            return remora.looks_like(json.loads(path.read_bytes()))
    if path.suffix == ".md":
        with path.open(encoding="utf-8", errors="replace") as page:
            return page.readline().startswith(remora.PAGE_TITLE)
    return False


def _account_in(path: Path) -> Account | None:
    """Returns the account whose memory a data file holds; None if it is not one person's export."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    of = found.get("of") if remora.looks_like(found) else None
    if not isinstance(of, dict) or of.get("kind") != "person":
        return None
    return str(of.get("platform")), str(of.get("user_id"))


def _is_theirs(path: Path, named: Collection[str], data: Collection[Path]) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as page:
            head = page.read(_HEAD).splitlines()
    except OSError:
        return False
    if not head or not head[0].startswith(remora.PAGE_TITLE):
        return False
    said = [line for line in head[1:3] if remora.PAGE_FOR in line]
    return any(line.endswith(one) for line in said for one in named) if said else path.with_suffix(".json") in data
