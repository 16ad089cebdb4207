"""Memory brought in from elsewhere: one import's messages and memories, batch by batch.

Invariants: everything in an import becomes its owner's, whatever the file says; memories go through `learn.keep`, so
what is known already, was forgotten or is not wished stays out, and a value closes an older one by date; an import is
no telling: it reinforces nothing; what it wrote carries its number; said words go into history at the times they were
said, are found again and never answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory import dates, keys, profile
from memory.errors import NotFound
from memory.learn import keep
from memory.learn.extract import worth_keeping
from memory.learn.guard import injection_flags
from memory.scope import Scope
from memory.store import erasure, history, people
from memory.store.database import Reader, Row, Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from memory.store.people import Session
from memory.upkeep.formats.material import Item, Line, Person
from memory.upkeep.formats.remora import OWNER
from memory.upkeep.imports import Counts, Home

#: Platforms on which a person's private chat goes by their own user id, so that it can be made before they speak.
_NAMED_BY_USER: Final = frozenset({"telegram", "console"})
#: What a preview shows of each sort.
SHOWN: Final = 20


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
