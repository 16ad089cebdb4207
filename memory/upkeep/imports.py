"""The record of imports, and whose memory each of them is.

Invariants: every import has one owner, and all of it is theirs; of the same files brought in again for the same owner,
one that was cut short goes on under its number; nothing is begun for somebody who has learning switched off; where an
owner is only looked for nothing is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from memory.errors import MemoryFault, NotFound
from memory.scope import Scope
from memory.store import people
from memory.store.database import Reader, Row, Transaction
from memory.store.people import Session
from memory.upkeep.formats.material import Ownership

State: TypeAlias = Literal["running", "done", "undone"]


class OptedOut(MemoryFault):
    """Whoever this would become the memory of has learning switched off."""

    code = "opted_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose an import is to be, in the platform's words: a person by user id, a group by chat id, or an agent."""

    kind: Ownership
    agent: str
    platform: str = ""
    reference: str = ""
    thread: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where an import goes: its owner's row and scope. `identity_id` is the person, where it is one's."""

    owner_id: int
    scope: Scope
    agent_id: int
    identity_id: int | None
    chat_id: int | None
    timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of what was there: `new` memories by kind, and what stayed out and why.

    `closed` counts older values that a new one replaced, `flagged` memories that read like instructions, `erased`
    messages whose words were erased on request.
    """

    new: Mapping[str, int] = field(default_factory=dict)
    duplicates: int = 0
    forgotten: int = 0
    unwished: int = 0
    worthless: int = 0
    closed: int = 0
    flagged: int = 0
    messages: int = 0
    repeated: int = 0
    erased: int = 0

    @property
    def memories(self) -> int:
        return sum(self.new.values())

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Counts:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import as it stands. Times are milliseconds UTC; `whose` is a person or group in words."""

    id: int
    short_id: str
    owner_id: int
    whose: str
    format: str
    state: State
    counts: Counts
    started_at: int
    ended_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Somebody or a group that this store knows: `reference` as `platform:id`, with their name."""

    private: bool
    reference: str
    name: str


def resolve(tx: Transaction, owner: Owner, *, agents: Mapping[str, int], timezone: str, now: int) -> Home:
    """The owner's row, made where there is none yet. Raises `OptedOut`."""
    agent_id = agents[owner.agent]
    if owner.kind == "agent":
        return agent_home(tx, agent_id, timezone=timezone)
    if owner.kind == "person":
        speaker = people.known_speaker(tx, platform=owner.platform, user_id=owner.reference) or people.speaker(
            tx, platform=owner.platform, user_id=owner.reference, name=owner.name, now=now
        )
        if not speaker.learning:
            raise OptedOut(
                f"{speaker.name or owner.reference} has learning switched off: nothing is brought in. They can switch "
                "it on with /memory on."
            )
    else:
        chat_id = people.chat(
            tx, platform=owner.platform, reference=owner.reference, kind="group", title=owner.name, now=now
        )
        people.own_thread(tx, chat_id, owner.thread)
        row = tx.one("select learning from chats where id = ?", (chat_id,))
        if row is not None and not row["learning"]:
            raise OptedOut(f"{owner.name or owner.reference} has learning switched off: nothing is brought in.")
    home = known_home(tx, owner, agent_id=agent_id, timezone=timezone)
    assert home is not None
    return home


def known_home(reader: Reader, owner: Owner, *, agent_id: int, timezone: str) -> Home | None:
    """The same by a read, of whoever is known; None else."""
    if owner.kind == "agent":
        return agent_home(reader, agent_id, timezone=timezone)
    if owner.kind == "person":
        speaker = people.known_speaker(reader, platform=owner.platform, user_id=owner.reference)
        if speaker is None:
            return None
        scope = people.scope_of(reader, _session_like(agent_id, private=True), speaker.id)
        return Home(
            owner_id=scope.writes_to,
            scope=scope,
            agent_id=agent_id,
            identity_id=speaker.id,
            chat_id=None,
            timezone=speaker.timezone or timezone,
        )
    row = reader.one(
        "select c.id from chat_aliases a join chats c on c.id = a.chat_id"
        " where a.platform = ? and a.reference = ? and c.kind = 'group'",
        (owner.platform, owner.reference),
    )
    if row is None:
        return None
    scope = people.scope_of(
        reader, _session_like(agent_id, private=False, chat_id=row["id"], thread=owner.thread), None
    )
    return Home(
        owner_id=scope.writes_to,
        scope=scope,
        agent_id=agent_id,
        identity_id=None,
        chat_id=row["id"],
        timezone=timezone,
    )


def agent_home(reader: Reader, agent_id: int, *, timezone: str) -> Home:
    """What an agent holds for everybody it talks with."""
    row = reader.one("select id from owners where kind = 'agent' and agent_id = ?", (agent_id,))
    assert row is not None
    scope = Scope(
        agent_id=agent_id,
        owners=(row["id"],),
        own=(),
        writes_to=row["id"],
        speaker_id=None,
        selves=(),
        private=False,
    )
    return Home(owner_id=row["id"], scope=scope, agent_id=agent_id, identity_id=None, chat_id=None, timezone=timezone)


def home_of(reader: Reader, owner_id: int, *, agent_id: int, timezone: str) -> Home:
    """Where the rows of an owner stand, for taking some out."""
    row = reader.one("select kind, identity_id, chat_id, thread, agent_id from owners where id = ?", (owner_id,))
    assert row is not None
    if row["kind"] == "agent":
        return agent_home(reader, row["agent_id"], timezone=timezone)
    private = row["kind"] == "identity"
    scope = people.scope_of(
        reader,
        _session_like(agent_id, private=private, chat_id=row["chat_id"] or 0, thread=row["thread"]),
        row["identity_id"],
    )
    return Home(
        owner_id=owner_id,
        scope=scope,
        agent_id=agent_id,
        identity_id=row["identity_id"],
        chat_id=row["chat_id"],
        timezone=timezone,
    )


def begin(
    tx: Transaction,
    home: Home,
    *,
    format: str,  # noqa: A002 - the column's name
    digest: str,
    now: int,
    new_id: Callable[[], str],
) -> int:
    """The number of a new import, or of the one of the same files that was cut short."""
    row = tx.one(
        "select id from imports where owner_id = ? and format = ? and digest = ? and state = 'running'",
        (home.owner_id, format, digest),
    )
    if row is not None:
        return int(row["id"])
    short_id = next(
        found for found in iter(new_id, None) if tx.one("select 1 from imports where short_id = ?", (found,)) is None
    )
    return tx.insert(
        "insert into imports (short_id, owner_id, format, digest, state, started_at) values (?, ?, ?, ?, 'running', ?)",
        (short_id, home.owner_id, format, digest, now),
    )


def counted(reader: Reader, import_id: int) -> Counts:
    """What an import has done so far."""
    row = reader.one("select counts from imports where id = ?", (import_id,))
    assert row is not None
    return Counts.from_json(row["counts"])


def known(reader: Reader) -> list[Known]:
    """The people and groups of this store, those seen last first."""
    persons = reader.all("select platform, user_id, name from identities order by last_seen_at desc")
    chats = reader.all(
        "select a.platform, a.reference, c.title from chats c join chat_aliases a on a.chat_id = c.id"
        " where c.kind = 'group' order by c.id desc"
    )
    return [
        *(Known(private=True, reference=f"{r['platform']}:{r['user_id']}", name=r["name"]) for r in persons),
        *(Known(private=False, reference=f"{r['platform']}:{r['reference']}", name=r["title"]) for r in chats),
    ]


def same_before(reader: Reader, home: Home, *, format: str, digest: str) -> Import | None:  # noqa: A002 - the column's name
    """The last import of the very same files for this owner, unless it was undone."""
    row = reader.one(
        _IMPORT + " where m.owner_id = ? and m.format = ? and m.digest = ? and m.state <> 'undone' order by m.id desc",
        (home.owner_id, format, digest),
    )
    return None if row is None else _import(row)


def all_imports(reader: Reader) -> list[Import]:
    """Every import, the latest first."""
    return [_import(row) for row in reader.all(_IMPORT + " order by m.id desc")]


def by_short_id(reader: Reader, short_id: str) -> Import:
    """Raises `NotFound`."""
    row = reader.one(_IMPORT + " where m.short_id = ?", (short_id,))
    if row is None:
        raise NotFound(f"There is no import {short_id}: `remora import list` shows them.")
    return _import(row)


def _session_like(agent_id: int, *, private: bool, chat_id: int = 0, thread: str | None = None) -> Session:
    """A place from which an owner's scope follows, where nobody need ever have spoken."""
    return Session(
        id=0,
        key="",
        chat_id=chat_id,
        thread=thread,
        agent_id=agent_id,
        private=private,
        learning=True,
        window_after=0,
        sitting=0,
        summary=None,
        active_task=None,
        snapshot=None,
        snapshot_at=None,
        last_message_at=None,
    )


_IMPORT = (
    "select m.id, m.short_id, m.owner_id, m.format, m.state, m.counts, m.started_at, m.ended_at, o.kind, i.platform,"
    " i.user_id, i.name, c.title, o.thread, a.name as agent, (select x.platform || ':' || x.reference"
    "   from chat_aliases x where x.chat_id = o.chat_id order by x.created_at desc limit 1) as chat"
    " from imports m join owners o on o.id = m.owner_id left join identities i on i.id = o.identity_id"
    " left join chats c on c.id = o.chat_id left join agents a on a.id = o.agent_id"
)


def _import(row: Row) -> Import:
    match row["kind"]:
        case "identity":
            whose = f"{row['name'] or 'somebody'} ({row['platform']}:{row['user_id']})"
        case "agent":
            whose = f"everybody who talks with {row['agent']}"
        case _:
            whose = f"{row['title'] or 'a group'} ({row['chat']})"
    return Import(
        id=row["id"],
        short_id=row["short_id"],
        owner_id=row["owner_id"],
        whose=whose,
        format=row["format"],
        state=row["state"],
        counts=Counts.from_json(row["counts"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
