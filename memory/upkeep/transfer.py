"""Memory brought in from elsewhere, and taken out again: one import's rows, batch by batch.

Invariants: every import has one owner, and everything in it becomes theirs, whatever the file says; memories go through
`learn.keep`, so what is known already, was forgotten or is not wished stays out, and a value closes an older one by
date; an import is no telling: it reinforces nothing; what it wrote carries its number, and taking it out leaves things
as if it had never been; said words go into history at the times they were said, are found again and never answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal, TypeAlias

from memory import dates, keys, profile
from memory.errors import MemoryFault, NotFound
from memory.learn import keep
from memory.learn.extract import worth_keeping
from memory.learn.guard import injection_flags
from memory.scope import Scope
from memory.store import erasure, history, memories, people
from memory.store.database import Reader, Row, Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from memory.store.people import Session
from memory.upkeep import forget
from memory.upkeep.formats.material import Item, Line, Ownership, Person
from memory.upkeep.formats.remora import OWNER

State: TypeAlias = Literal["running", "done", "undone"]

#: Platforms on which a person's private chat goes by their own user id, so that it can be made before they speak.
_NAMED_BY_USER: Final = frozenset({"telegram", "console"})
#: What a preview shows of each sort.
SHOWN: Final = 20


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


@dataclass(slots=True, kw_only=True)
class Run:
    """An import under way: what it has found out so far. Kept between its transactions, and made anew by the next run.

    `before` is what runs that were cut short had done.
    `held` is what history has of this owner: (second, author or 0 for the bot, words) → (message, its import).
    """

    import_id: int
    home: Home
    agents: Mapping[str, int]
    learn: bool
    before: Counts = field(default_factory=Counts)
    tally: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    people: dict[tuple[str, str], people.Speaker] = field(default_factory=dict)
    messages: dict[int, int] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    links: dict[int, str] = field(default_factory=dict)
    held: dict[tuple[int, int, str], tuple[int, int | None]] | None = None
    references: dict[tuple[str | None, str], tuple[int, int | None]] = field(default_factory=dict)
    blanked: set[tuple[int, int]] = field(default_factory=set)
    following: dict[str | None, str] = field(default_factory=dict)
    sittings: dict[int, tuple[int, int]] = field(default_factory=dict)
    sessions: dict[str | None, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.tally[what] = self.tally.get(what, 0) + 1

    def counts(self) -> Counts:
        return Counts(new=dict(self.kinds), **self.tally)


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


# Messages -----------------------------------------------------------------------------------------------------------


def record(
    tx: Transaction,
    run: Run,
    thread: str | None,
    lines: Sequence[Line],
    *,
    session_key: Callable[[str | None], str],
    count_tokens: Callable[[str], int],
    now: int,
) -> None:
    """Put lines of one thread, in the order of their times, into the owner's history."""
    look(tx, run)
    _meet(tx, run, lines, now=now)
    new = [line for line in lines if sort_out(run, line, _author_id(run, line)) is None]
    if not new:
        return
    session = _session(tx, run, thread, session_key, now=now)
    sitting, last = run.sittings.get(session.id, (0, 0))
    # A sitting of what was said here goes neither on nor back to what is brought in.
    goes_on = sitting == session.sitting - 1
    begun = replace(
        session, sitting=sitting if goes_on else session.sitting + 1, last_message_at=last if goes_on else None
    )
    speakers = [_speaker(tx, run, line) for line in new]
    ids = history.record(
        tx,
        begun,
        None,
        [
            Utterance(
                role=line.role,
                text=line.text,
                tokens=count_tokens(line.text),
                said_at=line.said_at,
                learn=run.learn and line.learn and speaker is not None and speaker.learning,
                recall=line.recall and (speaker is None or speaker.learning),
                author_id=None if speaker is None else speaker.id,
                author_name=line.name,
                platform_ref=line.reference,
                reply_to=line.reply_to,
            )
            for line, speaker in zip(new, speakers, strict=True)
        ],
        owner_id=run.home.owner_id,
        now=now,
    )
    tx.run(
        "update messages set import_id = ? where id in (select value from json_each(?))",
        (run.import_id, json.dumps(ids)),
    )
    made = people.session_by_id(tx, session.id)
    run.sittings[session.id] = (made.sitting, new[-1].said_at)
    tx.run(
        "update sessions set sitting = sitting + 1, last_message_at = max(last_message_at, coalesce(?, 0))"
        " where id = ?",
        (session.last_message_at, session.id),
    )
    # The newest rows are not what was said last: they can be recalled, and stand in no window.
    people.trim_window(tx, session.id, after=ids[-1])
    for line, message_id in zip(new, ids, strict=True):
        run.messages[line.number] = message_id
        run.count("messages")


def sort_out(run: Run, line: Line, author_id: int) -> str | None:
    """Whether a line stays out, as "repeated" or "erased"; counts it then, and remembers where the next one stands.

    An answer to what is there is there as well: platforms tell its time differently than we do.
    """
    assert run.held is not None
    second = line.said_at // 1_000
    found = run.held.get((second, author_id, line.text))
    if found is None and line.reference is not None:
        found = run.references.get((line.thread, line.reference))
    if found is not None:
        run.messages[line.number] = found[0]
    after = run.following.get(line.thread, "")
    if line.role == "assistant":
        what = "repeated" if found is not None else after
    else:
        what = "repeated" if found is not None else "erased" if (second, author_id) in run.blanked else ""
        # What this import itself had brought when it was cut short says nothing of the answer.
        run.following[line.thread] = "" if found is not None and found[1] == run.import_id else what
    if not what and (second, author_id) in run.blanked:
        what = "erased"
    if not what:
        if len(run.first) < SHOWN:
            run.first.append(f"{line.name or line.role}: {line.text}")
        return None
    run.count(what)
    if what == "repeated" and len(run.duplicates) < SHOWN:
        run.duplicates.append(f"{line.name or line.role}: {line.text}")
    return what


def author_of(reader: Reader, run: Run, line: Line) -> int:
    """The number under which `look` knows who said a line, without making anybody known; 0 for nobody."""
    if line.author is None:
        return 0 if line.role == "assistant" else -1
    if line.author == OWNER:
        return run.home.identity_id or -1
    known = people.known_speaker(reader, platform=line.author.platform, user_id=line.author.user_id)
    return -2 if known is None else known.id


def look(reader: Reader, run: Run) -> None:
    """Find out what history has of the owner, before lines are sorted out; once a run."""
    if run.held is not None:
        return
    run.held = {}
    rows = reader.all(
        "select m.id, m.role, m.author_id, m.said_at, m.text, m.erased_at, m.import_id, m.platform_ref, s.thread"
        " from messages m join sessions s on s.id = m.session_id"
        " where m.owner_id = ? and m.role in ('user', 'assistant')",
        (run.home.owner_id,),
    )
    for row in rows:
        author = 0 if row["role"] == "assistant" else (row["author_id"] or -1)
        second = row["said_at"] // 1_000
        if row["erased_at"] is None:
            run.held[(second, author, row["text"])] = (row["id"], row["import_id"])
            if row["platform_ref"] is not None and run.home.chat_id is not None:
                run.references[(row["thread"], row["platform_ref"])] = (row["id"], row["import_id"])
        else:
            run.blanked.add((second, author))


def _author_id(run: Run, line: Line) -> int:
    if line.author is None:
        return 0 if line.role == "assistant" else -1
    if line.author == OWNER:
        return run.home.identity_id or -1
    known = run.people.get((line.author.platform, line.author.user_id))
    return -2 if known is None else known.id


def _meet(tx: Transaction, run: Run, lines: Sequence[Line], *, now: int) -> None:
    """Make those known who speak in `lines`: people are rows before their words are, and are seen no earlier."""
    for line in lines:
        one = line.author
        if one is None or one == OWNER or (one.platform, one.user_id) in run.people:
            continue
        run.people[(one.platform, one.user_id)] = people.known_speaker(
            tx, platform=one.platform, user_id=one.user_id
        ) or people.speaker(tx, platform=one.platform, user_id=one.user_id, name=one.name, now=now)


def _speaker(tx: Transaction, run: Run, line: Line) -> people.Speaker | None:
    if line.author is None:
        return None
    if line.author == OWNER:
        return None if run.home.identity_id is None else people.speaker_by_id(tx, run.home.identity_id)
    return run.people[(line.author.platform, line.author.user_id)]


def _session(
    tx: Transaction, run: Run, thread: str | None, session_key: Callable[[str | None], str], *, now: int
) -> Session:
    """The session in which the owner's talk is kept. Raises `NotFound` where there is none and none can be made."""
    home = run.home
    if thread in run.sessions:
        return people.session_by_id(tx, run.sessions[thread])
    if home.identity_id is not None:
        session = _private_session(tx, home, session_key(None), now=now)
    else:
        assert home.chat_id is not None
        key = session_key(thread)
        session = (
            people.session_by_key(tx, key)
            or people.session_elsewhere(tx, key, chat_id=home.chat_id, thread=thread)
            or people.session(tx, key=key, chat_id=home.chat_id, thread=thread, agent_id=home.agent_id, now=now)
        )
    run.sessions[thread] = session.id
    return session


def _private_session(tx: Transaction, home: Home, key: str, *, now: int) -> Session:
    row = tx.one(
        "select m.session_id from messages m join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        " where m.author_id = ? and c.kind = 'private' order by m.id desc limit 1",
        (home.identity_id,),
    )
    if row is not None:
        return people.session_by_id(tx, row["session_id"])
    who = tx.one("select platform, user_id, name from identities where id = ?", (home.identity_id,))
    assert who is not None
    if who["platform"] not in _NAMED_BY_USER:
        raise NotFound(
            f"{who['name'] or who['user_id']} has never written to the bot in private, and {who['platform']} does not "
            "tell where that would be. Let them write one message first; then the same command goes on."
        )
    chat_id = people.chat(tx, platform=who["platform"], reference=who["user_id"], kind="private", title="", now=now)
    return people.session_by_key(tx, key) or people.session(
        tx, key=key, chat_id=chat_id, thread=None, agent_id=home.agent_id, now=now
    )


# Memories -----------------------------------------------------------------------------------------------------------


def bring(tx: Transaction, run: Run, items: Sequence[Item], *, now: int, new_id: Callable[[], str]) -> None:
    """Keep what the items say, those that are new, wished and not forgotten."""
    for item in items:
        draft = _draft(tx, run, item, now=now)
        told = f"{draft.key}: {draft.value}"
        if not worth_keeping(draft):
            run.count("worthless")
            continue
        held = _held(tx, run.home.scope, draft)
        if held is not None:
            _known(run, item, held["id"], told, ours=held["import_id"] == run.import_id)
            continue
        undated = item.day is None and item.standing is None
        if erasure.was_forgotten(
            tx, draft.owner_id, draft.key, draft.value, said_at=0 if undated else draft.learned_at
        ):
            run.count("forgotten")
            continue
        _keep(tx, run, item, draft, told, now=now, new_id=new_id)


def _keep(
    tx: Transaction, run: Run, item: Item, draft: Draft, told: str, *, now: int, new_id: Callable[[], str]
) -> None:
    newest = tx.one("select coalesce(max(seq), 0) as id from sqlite_sequence where name = 'memories'")
    assert newest is not None
    sources = [run.messages[n] for n in (item.standing.sources if item.standing else ()) if run.messages.get(n)]
    tx.run("savepoint item")
    memory_id = keep.keep(tx, run.home.scope, draft, source_ids=sources, now=now, new_id=new_id)
    if memory_id is None or memory_id <= newest["id"]:
        # Told again it would be fresher; a file tells nothing.
        tx.run("rollback to item")
    tx.run("release item")
    if memory_id is None:
        run.count("unwished")
        return
    if memory_id <= newest["id"]:
        _known(run, item, memory_id, told, ours=False)
        return
    tx.run("update memories set import_id = ? where id = ?", (run.import_id, memory_id))
    if item.standing is not None:
        _stand(tx, memory_id, item)
    run.kinds[draft.kind] = run.kinds.get(draft.kind, 0) + 1
    closed = tx.one("select count(*) as n from memories where superseded_by = ? and kind = 'fact'", (memory_id,))
    run.tally["closed"] = run.tally.get("closed", 0) + (0 if closed is None else closed["n"])
    if injection_flags(draft.value):
        run.count("flagged")
        run.flags.append(told)
    if len(run.first) < SHOWN:
        run.first.append(told)
    _place(run, item, memory_id, link=True)


def _known(run: Run, item: Item, memory_id: int, told: str, *, ours: bool) -> None:
    run.count("duplicates")
    if len(run.duplicates) < SHOWN:
        run.duplicates.append(told)
    _place(run, item, memory_id, link=ours)


def _place(run: Run, item: Item, memory_id: int, *, link: bool) -> None:
    if item.standing is None:
        return
    run.placed[item.standing.id] = memory_id
    if link and item.standing.superseded_by is not None:
        run.links[memory_id] = item.standing.superseded_by


def _stand(tx: Transaction, memory_id: int, item: Item) -> None:
    """What our own export tells of a memory beside its words and dates."""
    standing = item.standing
    assert standing is not None
    tx.run(
        "update memories set pinned = ?, confirmed = ?, archived_at = ?, strength = ?, access_count = ?,"
        " reinforced_count = ?, last_reinforced_at = ?, tags = ? where id = ?",
        (
            int(standing.pinned), int(standing.confirmed), standing.archived_at, standing.strength,
            standing.access_count, standing.reinforced_count, standing.last_reinforced_at,
            json.dumps(standing.tags, ensure_ascii=False), memory_id,
        ),
    )  # fmt: skip


def _held(reader: Reader, scope: Scope, draft: Draft) -> Row | None:
    """The row that says the same word for word, which this owner can see already."""
    within = scope.predicate("m")
    value = keys.normalise_value(draft.value)
    rows = reader.all(
        "select m.id, m.value, m.import_id, m.valid_until, m.local_date from memories m"
        f" where m.kind = ? and m.key = ? and m.subject = ? and {within.sql}",
        (draft.kind, draft.key, draft.subject, *within.parameters),
    )
    for row in rows:
        since = row["valid_until"] is not None and draft.learned_at > row["valid_until"]
        elsewhen = draft.kind == "event" and row["local_date"] != draft.local_date
        if not since and not elsewhen and keys.normalise_value(row["value"]) == value:
            return row
    return None


def _draft(tx: Transaction, run: Run, item: Item, *, now: int) -> Draft:
    home, standing = run.home, item.standing
    learned_at = now if item.said_at is None else min(item.said_at, now)
    author = subject = home.identity_id if not item.subject else None
    agent_id = home.agent_id if item.kind == "style" else None
    if standing is None:
        author = home.identity_id
    else:
        author, subject = (_identity(tx, run, one, now=now) for one in (standing.author, standing.about))
        if standing.agent is not None:
            agent_id = run.agents.get(standing.agent, home.agent_id)
    return Draft(
        kind=item.kind,
        owner_id=home.owner_id,
        author_id=author,
        subject_id=subject,
        subject=item.subject,
        agent_id=agent_id,
        category=item.category,
        topic=item.topic,
        key=item.key,
        value=item.value[: keys.VALUE_LIMIT].strip(),
        importance=item.importance,
        confidence=item.confidence,
        origin="imported",
        learned_at=learned_at,
        local_date=item.day or dates.local_date(learned_at, home.timezone).isoformat(),
        valid_from=None if standing is None else standing.valid_from,
        valid_until=None if standing is None else standing.valid_until,
    )


def _identity(tx: Transaction, run: Run, one: Person | None, *, now: int) -> int | None:
    """Whom a memory names: in private only the owner, for all in it is theirs; in a group everybody there."""
    if one is None or one == OWNER:
        return None if one is None else run.home.identity_id
    if run.home.chat_id is None:
        return None
    known = run.people.get((one.platform, one.user_id))
    if known is None:
        known = people.known_speaker(tx, platform=one.platform, user_id=one.user_id) or people.speaker(
            tx, platform=one.platform, user_id=one.user_id, name=one.name, now=now
        )
        run.people[(one.platform, one.user_id)] = known
    return known.id


def finish(tx: Transaction, run: Run, *, now: int, new_id: Callable[[], str]) -> Counts:
    """Tie versions together, fill the profile from what stands now, and close the import."""
    for memory_id, successor in run.links.items():
        if (next_id := run.placed.get(successor)) is not None and next_id != memory_id:
            tx.run("update memories set superseded_by = ? where id = ? and superseded_by is null", (next_id, memory_id))
    refresh(tx, run.home, now=now, new_id=new_id)
    tx.run("update imports set state = 'done', ended_at = ? where id = ?", (now, run.import_id))
    so_far(tx, run)
    return run.counts()


def so_far(tx: Transaction, run: Run) -> None:
    """Note in the import what was done, so that one cut short can be seen and taken out."""
    done, before = run.counts(), run.before
    kinds = {kind: before.new.get(kind, 0) + done.new.get(kind, 0) for kind in {**before.new, **done.new}}
    counts = replace(done, new=kinds, messages=before.messages + done.messages)
    tx.run("update imports set counts = ? where id = ?", (counts.to_json(), run.import_id))


def refresh(tx: Transaction, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    """Profile and prompts show what stands now."""
    if home.identity_id is not None:
        for slot in keys.PROFILE_SLOTS:
            profile.refresh(tx, home.scope, home.owner_id, slot, now=now, new_id=new_id)
    people.drop_snapshots(tx)


# Taking out ---------------------------------------------------------------------------------------------------------


def some_memories(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    """Ids of memories that an import brought and that are still there."""
    rows = reader.all("select id from memories where import_id = ? order by id desc limit ?", (import_id, limit))
    return [row["id"] for row in rows]


def some_messages(reader: Reader, import_id: int, *, limit: int) -> list[int]:
    """Ids of messages that an import brought and whose words are still there."""
    rows = reader.all(
        "select id from messages where import_id = ? and erased_at is null order by id limit ?", (import_id, limit)
    )
    return [row["id"] for row in rows]


def take_out_memories(tx: Transaction, memory_ids: Sequence[int]) -> int:
    """Remove these, with what was derived of them; what they had replaced holds again. Returns how many went."""
    memories.retract(tx, memory_ids)
    return len(memory_ids)


def take_out_messages(
    tx: Transaction, home: Home, message_ids: Sequence[int], *, now: int, new_id: Callable[[], str]
) -> int:
    """Blank these words, and remove what was learned from them alone, unless somebody stood by it since.

    Returns how many memories went.
    """
    history.erase(tx, message_ids, now=now)
    # Nobody's, or they would pass for words that were erased on request, which no import brings back.
    tx.run(
        "update messages set owner_id = null, author_name = '', platform_ref = null"
        " where id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    taught = [one for one in memories.resting_on(tx, message_ids) if not (one.confirmed or one.pinned)]
    memories.retract(tx, [one.id for one in taught])
    forget.show_change(tx, home.scope, taught, now=now, new_id=new_id)
    return len(taught)


def close(tx: Transaction, one: Import, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    """Nothing of the import is left but its figures."""
    refresh(tx, home, now=now, new_id=new_id)
    _unname(tx, one, home, now=now)
    erasure.note_reworded(tx, now=now)
    tx.run("update imports set state = 'undone', digest = '', ended_at = ? where id = ?", (now, one.id))


def _unname(tx: Transaction, one: Import, home: Home, *, now: int) -> None:
    """Blank the names of people, and the group's title, that nothing but an import has brought.

    Somebody met here has said something, is known of, has a private chat or was seen a second time; or else is named
    again when next seen.
    """
    tx.run(
        "update identities set name = '' where name <> '' and last_seen_at = first_seen_at"
        " and (id = ?1 or first_seen_at between ?3 and ?4"
        "   or id in (select author_id from messages where import_id = ?2))"
        " and not exists (select 1 from messages m where m.author_id = identities.id"
        "   and (m.import_id is null or m.erased_at is null))"
        " and id not in (select author_id from memories where author_id is not null"
        "   union all select subject_id from memories where subject_id is not null"
        "   union all select identity_id from chats where identity_id is not null)"
        " and not exists (select 1 from identities other"
        "   where other.person_id = identities.person_id and other.id <> identities.id)",
        (home.identity_id, one.id, one.started_at, one.ended_at or now),
    )
    tx.run(
        "update chats set title = '' where id = ?1 and not exists (select 1 from sessions s"
        "   left join messages m on m.session_id = s.id and (m.import_id is null or m.erased_at is null)"
        "   left join inbox i on i.session_key = s.key"
        "   where s.chat_id = chats.id and coalesce(m.id, i.id) is not null)"
        " and not exists (select 1 from owners o left join memories held on held.owner_id = o.id"
        "   left join imports other on other.owner_id = o.id and other.id <> ?2 and other.state <> 'undone'"
        "   where o.chat_id = chats.id and coalesce(held.id, other.id) is not null)",
        (home.chat_id, one.id),
    )


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
