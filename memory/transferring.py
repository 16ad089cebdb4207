"""Memory in and out: what somebody holds as files, what files hold as somebody's memory, and that taken back.

Invariants: an export is confined to a scope; an import is previewed by doing it and taking the transaction back, so
that what is told is what would happen; it is brought in by short transactions that each leave whole rows, and cut short
anywhere the same call goes on; nothing is doubled; undone, it has never been, to the bytes of the file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias, TypeVar

from memory.desk import Context, anew
from memory.errors import NotFound
from memory.recall import index
from memory.store.database import Database, Reader, Transaction
from memory.upkeep import handout, imports, takeback, transfer
from memory.upkeep.formats import markdown, remora, telegram
from memory.upkeep.formats.material import Item, Line, Mask, Material, Ownership, Skipped, together
from memory.upkeep.handout import Exported
from memory.upkeep.imports import Counts, Home, Import, Known, OptedOut, Owner
from memory.upkeep.transfer import Run

__all__ = [
    "Brought", "Counts", "Exported", "Import", "Known", "Mask", "Material", "OptedOut", "Owner", "Ownership", "Preview",
    "Progress", "Skipped", "Transfer", "markdown", "remora", "telegram", "together",
]  # fmt: skip

#: Messages of one transaction: some 20 ms with their words indexed.
_LINES: Final = 200
#: Memories of one transaction: each is compared with what is known.
_ITEMS: Final = 25
#: Rows taken out in one transaction.
_OUT: Final = 100

#: Told how many messages and memories were looked at since the last time.
Progress: TypeAlias = Callable[[int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What bringing something in would come to. `first` and `duplicates` show some of what is new and known already.

    `flags` are memories that read like instructions: they are kept, and have no authority. `before` is an import of the
    very same files that stands.
    """

    counts: Counts
    first: tuple[str, ...]
    duplicates: tuple[str, ...]
    flags: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    masked: int
    before: Import | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What an import did, and the id by which it can be undone. `unread` messages wait to be read for memories."""

    short_id: str
    counts: Counts
    unread: int


class Transfer:
    """One store's imports and exports. `heard` lets messages that were brought in be read in a quiet moment."""

    def __init__(
        self,
        database: Database,
        *,
        agents: Mapping[str, int],
        timezones: Mapping[int, str],
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_tokens: Callable[[str], int],
        heard: Callable[[int], None],
        scrub: Callable[[], Awaitable[bool]],
    ) -> None:
        """`agents` gives their ids and `timezones` their zones by these; both may be filled later."""
        self._database = database
        self._agents = agents
        self._timezones = timezones
        self._now = now
        self._memory_id = lambda: f"m_{new_id()}"
        self._import_id = lambda: f"i_{new_id()}"
        self._count_tokens = count_tokens
        self._heard = heard
        self._scrub = scrub

    # Out ----------------------------------------------------------------------------------------------------------

    async def export(self, context: Context, *, transcript: bool) -> Exported:
        """Everything that who speaks here can see in this place, as it stands."""

        def act(reader: Reader) -> Exported:
            scope = anew(reader, context).scope
            return handout.export(reader, scope, shared=False, transcript=transcript, now=self._now())

        return await self._database.read(act)

    async def export_of(self, owner: Owner, *, transcript: bool) -> Exported:
        """The same of an owner by name, for the operator. Raises `NotFound`."""
        agent_id = self._agents[owner.agent]

        def act(reader: Reader) -> Exported:
            home = imports.known_home(reader, owner, agent_id=agent_id, timezone=self._timezones[agent_id])
            if home is None:
                raise NotFound(f"Nobody is known here as {owner.platform}:{owner.reference}.")
            return handout.export(
                reader, home.scope, shared=owner.kind == "agent", transcript=transcript, now=self._now()
            )

        return await self._database.read(act)

    async def known(self) -> list[Known]:
        """The people and groups of this store, those seen last first."""

        return await self._database.read(imports.known)

    # In -----------------------------------------------------------------------------------------------------------

    async def preview(self, owner: Owner, material: Material, *, digest: str = "") -> Preview:
        """What `bring` would do. Nothing is changed. Raises `OptedOut`."""

        def act(tx: Transaction) -> None:
            home = self._resolve(tx, owner)
            before = imports.same_before(tx, home, format=material.format, digest=digest) if digest else None
            run = Run(import_id=0, home=home, agents=self._agents, learn=False)
            transfer.look(tx, run)
            for line in _in_order(material.lines, home):
                if transfer.sort_out(run, line, transfer.author_of(tx, run, line)) is None:
                    run.count("messages")
            run.import_id = imports.begin(
                tx, home, format=material.format, digest="", now=self._now(), new_id=self._import_id
            )
            transfer.bring(tx, run, material.items, now=self._now(), new_id=self._memory_id)
            raise _DoneError(run, before)

        try:
            await self._database.write(act)
        except _DoneError as done:
            return Preview(
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
        """Make what files hold the owner's memory. What was committed when it is cut short is found again.

        `session_key` names the session of a thread, should there be none yet; with `learn` people's own words are read
        for memories later. Raises `OptedOut`, and `NotFound` where messages have no place to go.
        """
        now = self._now()

        def begun(tx: Transaction) -> Run:
            home = self._resolve(tx, owner)
            import_id = imports.begin(tx, home, format=material.format, digest=digest, now=now, new_id=self._import_id)
            before = imports.counted(tx, import_id)
            return Run(import_id=import_id, home=home, agents=self._agents, learn=learn, before=before)

        run = await self._database.write(begun)
        for thread, lines in groupby(_in_order(material.lines, run.home), key=lambda line: line.thread):
            for some in _portions(list(lines), _LINES):
                await self._database.write(partial(self._record, run, thread, some, session_key))
                # What is brought in must not be waiting for whoever searches first.
                await index.keep_up(self._database)
                progress(len(some))
        for items in _portions(material.items, _ITEMS):
            await self._database.write(partial(self._bring, run, items))
            progress(len(items))
        counts = await self._database.write(
            lambda tx: transfer.finish(tx, run, now=self._now(), new_id=self._memory_id)
        )
        await index.keep_up(self._database)
        unread = 0
        if learn:
            for session_id in run.sessions.values():
                self._heard(session_id)
            unread = sum(line.learn for line in material.lines)
        done = await self._database.read(lambda reader: _by_id(reader, run.import_id))
        return Brought(short_id=done.short_id, counts=counts, unread=min(unread, counts.messages))

    async def imports(self) -> list[Import]:
        """Every import of this store, the latest first."""
        return await self._database.read(imports.all_imports)

    async def undo(self, short_id: str, *, progress: Progress = lambda count: None) -> Import:
        """Take an import out: its memories and messages, what was derived or learned from them alone, down to the file.

        What it had replaced holds again. Cut short, the same call goes on. Raises `NotFound`, also when it was undone.
        """
        one = await self._database.read(lambda reader: imports.by_short_id(reader, short_id))
        if one.state == "undone":
            raise NotFound(f"The import {short_id} was undone already.")
        home = await self._database.read(lambda reader: self._home_of(reader, one))
        while found := await self._database.read(partial(takeback.some_memories, import_id=one.id, limit=_OUT)):
            await self._database.write(partial(takeback.take_out_memories, memory_ids=found))
            await index.keep_up(self._database)
            progress(len(found))
        while found := await self._database.read(partial(takeback.some_messages, import_id=one.id, limit=_OUT)):
            await self._database.write(
                partial(
                    takeback.take_out_messages, home=home, message_ids=found, now=self._now(), new_id=self._memory_id
                )
            )
            await index.keep_up(self._database)
            progress(len(found))
        await self._database.write(lambda tx: takeback.close(tx, one, home, now=self._now(), new_id=self._memory_id))
        await index.keep_up(self._database)
        await self._scrub()
        return one

    # Shared parts -------------------------------------------------------------------------------------------------

    def _resolve(self, tx: Transaction, owner: Owner) -> Home:
        zone = self._timezones[self._agents[owner.agent]]
        return imports.resolve(tx, owner, agents=self._agents, timezone=zone, now=self._now())

    def _home_of(self, reader: Reader, one: Import) -> Home:
        agent_id = next(iter(self._agents.values()))
        return imports.home_of(reader, one.owner_id, agent_id=agent_id, timezone=self._timezones[agent_id])

    def _record(
        self,
        run: Run,
        thread: str | None,
        lines: Sequence[Line],
        session_key: Callable[[str | None], str],
        tx: Transaction,
    ) -> None:
        transfer.record(
            tx, run, thread, lines, session_key=session_key, count_tokens=self._count_tokens, now=self._now()
        )
        transfer.so_far(tx, run)

    def _bring(self, run: Run, items: Sequence[Item], tx: Transaction) -> None:
        transfer.bring(tx, run, items, now=self._now(), new_id=self._memory_id)
        transfer.so_far(tx, run)


class _DoneError(Exception):
    """Ends a preview, so that its transaction is taken back."""

    def __init__(self, run: Run, before: Import | None) -> None:
        super().__init__()
        self.run = run
        self.before = before


def _in_order(lines: Sequence[Line], home: Home) -> list[Line]:
    """Thread by thread, each in the order of its times. A person's talk has no threads, an agent's has no place."""
    if home.chat_id is None:
        lines = [replace(line, thread=None) for line in lines] if home.identity_id is not None else []
    return sorted(lines, key=lambda line: (line.thread or "", line.said_at))


def _by_id(reader: Reader, import_id: int) -> Import:
    return next(one for one in imports.all_imports(reader) if one.id == import_id)


def _portions(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))
