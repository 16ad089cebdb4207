"""Writes one import's messages and memories, batch by batch.

Invariants: everything in an import becomes its owner's, whatever the file says. Memories go through `learn.keep`, so
known, forgotten and unwished ones stay out, and a value closes an older one by date. An import does not count as
telling: it reinforces nothing. The rows that it wrote carry its number. Messages go into history at the times they were
said; they can be recalled and are never answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from memory import keys, profile
from memory.errors import NotFound
from memory.learn import keep
from memory.learn.extract import worth_keeping
from memory.recall import index
from memory.store import chats, history, memories, people, word_columns
from memory.store.chats import Session
from memory.store.database import Reader, Row, Transaction
from memory.store.history import Utterance
from memory.store.memories import Draft
from memory.text.guard import injection_flags
from memory.text.times import clock
from memory.transfer.formats.material import ImportedItem, ImportedLine, Person
from memory.transfer.formats.remora import OWNER
from memory.transfer.homes import Home
from memory.transfer.imports import ImportCounts

#: Platforms on which a person's private chat has their user id, so that it can be created before they speak.
_NAMED_BY_USER: Final = frozenset({"telegram", "console"})
#: The items after which the word index is brought up to date.
_INDEXED: Final = 20
#: The number of examples of each sort in a preview.
SHOWN: Final = 20


@dataclass(slots=True, kw_only=True)
class ImportRun:
    """The findings of a running import. They are kept between its transactions, and built anew by the next run.

    `before` counts the work of earlier, interrupted runs. `held` is the owner's history: (second, author or 0 for the
    bot, words) → (message, its import).
    """

    import_id: int
    home: Home
    agents: Mapping[str, int]
    learn: bool
    before: ImportCounts = field(default_factory=ImportCounts)
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
    values: set[tuple[str, str, str, str]] | None = None

    def copy(self) -> ImportRun:
        """Returns a copy to work on: a repeated transaction must find the same state as the first time."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        grown: dict[str, Any] = {
            name: copy(value) for name, value in values.items() if isinstance(value, (dict, list, set))
        }
        return replace(self, **grown)

    def count(self, what: str) -> None:
        self.tally[what] = self.tally.get(what, 0) + 1

    def counts(self) -> ImportCounts:
        return ImportCounts(new=dict(self.kinds), **self.tally)


def finish(tx: Transaction, run: ImportRun, *, now: int, new_id: Callable[[], str]) -> ImportCounts:
    """Links versions, fills the profile from current memories, and closes the import."""
    for memory_id, successor in run.links.items():
        if (next_id := run.placed.get(successor)) is not None and next_id != memory_id:
            memories.name_successor(tx, memory_id, next_id)
    refresh(tx, run.home, now=now, new_id=new_id)
    tx.run("update imports set state = 'done', ended_at = ? where id = ?", (now, run.import_id))
    so_far(tx, run)
    return run.counts()


def so_far(tx: Transaction, run: ImportRun) -> None:
    """Notes the progress in the import, so that an interrupted import can be seen and undone."""
    done, before = run.counts(), run.before
    kinds = {kind: before.new.get(kind, 0) + done.new.get(kind, 0) for kind in {**before.new, **done.new}}
    counts = replace(done, new=kinds, messages=before.messages + done.messages)
    tx.run("update imports set counts = ? where id = ?", (counts.to_json(), run.import_id))


def refresh(tx: Transaction, home: Home, *, now: int, new_id: Callable[[], str]) -> None:
    if home.identity_id is not None:
        for slot in keys.PROFILE_SLOTS:
            profile.refresh(tx, home.scope, home.owner_id, slot, now=now, new_id=new_id)
    chats.drop_snapshots(tx)


# Messages -----------------------------------------------------------------------------------------------------------


def record(
    tx: Transaction,
    run: ImportRun,
    thread: str | None,
    lines: Sequence[ImportedLine],
    *,
    session_key: Callable[[str | None], str],
    count_tokens: Callable[[str], int],
    now: int,
) -> None:
    """Puts lines of one thread, ordered by time, into the owner's history."""
    look(tx, run)
    _meet(tx, run, lines, now=now)
    new = [line for line in lines if sort_out(tx, run, line, author_of(tx, run, line)) is None]
    if not new:
        return
    session = _session(tx, run, thread, session_key, now=now)
    sitting, last = run.sittings.get(session.id, (0, 0))
    # A sitting of native messages never continues with imported lines, nor the other way round.
    goes_on = sitting == session.sitting - 1
    begun = replace(
        session, sitting=sitting if goes_on else session.sitting + 1, last_message_at=last if goes_on else None
    )
    recorded = history.record(
        tx,
        begun,
        None,
        [_utterance(line, _speaker(tx, run, line), run.learn, count_tokens) for line in new],
        owner_id=run.home.owner_id,
        now=now,
    )
    ids = [one.id for one in recorded]
    history.mark_imported(tx, ids, run.import_id)
    made = chats.session_by_id(tx, session.id)
    run.sittings[session.id] = (made.sitting, new[-1].said_at)
    chats.end_import(tx, session.id, session.last_message_at)
    # The newest rows are not the last messages. They can be recalled but are in no window.
    chats.trim_window(tx, session.id, after=ids[-1])
    for line, message_id in zip(new, ids, strict=True):
        run.messages[line.number] = message_id
        run.count("messages")


def sort_out(reader: Reader, run: ImportRun, line: ImportedLine, author_id: int) -> str | None:
    """Returns "repeated" or "erased" if a line stays out, else None. Counts it, and notes the result for the answer to
    it.

    An answer to a known line counts as known, too: platforms record its time differently than we do.
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
        erased = found is None and ((second, author_id) in run.blanked or _was_forgotten(reader, run, line))
        what = "repeated" if found is not None else "erased" if erased else ""
        # Lines from an interrupted run of this import say nothing about the answer.
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


def _was_forgotten(reader: Reader, run: ImportRun, line: ImportedLine) -> bool:
    """Returns whether a line is noted as forgotten although history has no row of it, as in an older store."""
    if line.author == OWNER:
        named = run.home.named
    else:
        named = None if line.author is None else (line.author.platform, line.author.user_id)
    return named is not None and word_columns.was_said_forgotten(
        reader, run.home.owner_id, *named, said_at=line.said_at
    )


def author_of(reader: Reader, run: ImportRun, line: ImportedLine) -> int:
    """Returns the number of a line's author as in `look`: 0 for the bot, negative if unknown. Creates no rows."""
    if line.author is None:
        return 0 if line.role == "assistant" else -1
    if line.author == OWNER:
        return run.home.identity_id or -1
    one = line.author
    known = run.people.get((one.platform, one.user_id)) or people.known_speaker(
        reader, platform=one.platform, user_id=one.user_id
    )
    return -2 if known is None else known.id


def look(reader: Reader, run: ImportRun) -> None:
    """Reads the owner's history, once a run, before lines are sorted out."""
    if run.held is not None:
        return
    run.held = {}
    for row in history.held_by(reader, run.home.owner_id):
        author = 0 if row["role"] == "assistant" else (row["author_id"] or -1)
        second = row["said_at"] // 1_000
        if row["erased_at"] is None:
            run.held[(second, author, row["text"])] = (row["id"], row["import_id"])
            if row["platform_ref"] is not None and run.home.chat_id is not None:
                run.references[(row["thread"], row["platform_ref"])] = (row["id"], row["import_id"])
        else:
            run.blanked.add((second, author))


def _meet(tx: Transaction, run: ImportRun, lines: Sequence[ImportedLine], *, now: int) -> None:
    """Creates the speakers of `lines`, whose rows must exist before their words; they count as first seen now."""
    for line in lines:
        if line.author is not None and line.author != OWNER:
            _person(tx, run, line.author, now=now)


def _person(tx: Transaction, run: ImportRun, one: Person, *, now: int) -> people.Speaker:
    key = (one.platform, one.user_id)
    if key not in run.people:
        run.people[key] = people.known_speaker(tx, platform=one.platform, user_id=one.user_id) or people.speaker(
            tx, platform=one.platform, user_id=one.user_id, name=one.name, now=now
        )
    return run.people[key]


def _utterance(
    line: ImportedLine, speaker: people.Speaker | None, learn: bool, count_tokens: Callable[[str], int]
) -> Utterance:
    return Utterance(
        role=line.role,
        text=line.text,
        tokens=count_tokens(line.text),
        said_at=line.said_at,
        learn=learn and line.learn and speaker is not None and speaker.learning,
        recall=line.recall and (speaker is None or speaker.learning),
        author_id=None if speaker is None else speaker.id,
        author_name=line.name,
        platform_ref=line.reference,
        reply_to=line.reply_to,
    )


def _speaker(tx: Transaction, run: ImportRun, line: ImportedLine) -> people.Speaker | None:
    if line.author is None:
        return None
    if line.author == OWNER:
        return None if run.home.identity_id is None else people.speaker_by_id(tx, run.home.identity_id)
    return run.people[(line.author.platform, line.author.user_id)]


def _session(
    tx: Transaction, run: ImportRun, thread: str | None, session_key: Callable[[str | None], str], *, now: int
) -> Session:
    home = run.home
    if thread in run.sessions:
        return chats.session_by_id(tx, run.sessions[thread])
    if home.identity_id is not None:
        session = _private_session(tx, home, home.identity_id, session_key(None), now=now)
    else:
        assert home.chat_id is not None
        key = session_key(thread)
        session = (
            chats.session_by_key(tx, key)
            or chats.session_elsewhere(tx, key, chat_id=home.chat_id, thread=thread)
            or chats.session(tx, key=key, chat_id=home.chat_id, thread=thread, agent_id=home.agent_id, now=now)
        )
    run.sessions[thread] = session.id
    return session


def _private_session(tx: Transaction, home: Home, identity_id: int, key: str, *, now: int) -> Session:
    session_id = chats.last_private_session(tx, identity_id)
    if session_id is not None:
        return chats.session_by_id(tx, session_id)
    who = people.account(tx, identity_id)
    assert who is not None
    if who.platform not in _NAMED_BY_USER:
        raise NotFound(
            f"{who.name or who.user_id} has never written to the bot in private, and {who.platform} does not "
            "say where that chat would be. Ask them to send one message first, then run the same command again."
        )
    chat_id = chats.chat(tx, platform=who.platform, reference=who.user_id, kind="private", title="", now=now)
    return chats.session_by_key(tx, key) or chats.session(
        tx, key=key, chat_id=chat_id, thread=None, agent_id=home.agent_id, now=now
    )


# Memories -----------------------------------------------------------------------------------------------------------


def bring(
    tx: Transaction, run: ImportRun, items: Sequence[ImportedItem], *, now: int, new_id: Callable[[], str]
) -> None:
    for n, item in enumerate(items):
        if n % _INDEXED == 0:
            # What was written a moment ago is found by its words, too.
            index.catch_up_some(tx)
        draft = _draft(tx, run, item, now=now)
        told = f"{draft.key}: {draft.value}"
        if not worth_keeping(draft):
            run.count("worthless")
            continue
        held = _held(tx, run, draft)
        if held is not None:
            _known(run, item, held["id"], told, ours=held["import_id"] == run.import_id)
            continue
        undated = item.day is None and item.standing is None
        if word_columns.was_forgotten(
            tx, draft.owner_id, draft.key, draft.value, said_at=0 if undated else draft.learned_at
        ):
            run.count("forgotten")
            continue
        _keep(tx, run, item, draft, told, now=now, new_id=new_id)


def _keep(
    tx: Transaction, run: ImportRun, item: ImportedItem, draft: Draft, told: str, *, now: int, new_id: Callable[[], str]
) -> None:
    sources = [run.messages[n] for n in (item.standing.sources if item.standing else ()) if run.messages.get(n)]
    # A repeated telling would refresh it, but a file doesn't count as telling.
    memory_id, is_new = keep.keep_new(tx, run.home.scope, draft, source_ids=sources, now=now, new_id=new_id)
    if memory_id is None:
        run.count("unwished")
        return
    if not is_new:
        _known(run, item, memory_id, told, ours=False)
        return
    memories.mark_imported(tx, memory_id, run.import_id)
    if (standing := item.standing) is not None:
        memories.set_values(
            tx,
            memory_id,
            {
                "pinned": standing.pinned,
                "confirmed": standing.confirmed,
                "archived_at": standing.archived_at,
                "strength": standing.strength,
                "access_count": standing.access_count,
                "reinforced_count": standing.reinforced_count,
                "last_reinforced_at": standing.last_reinforced_at,
                "tags": memories.tag_list(filter(None, map(keys.tag_of, standing.tags))),
            },
        )
    run.kinds[draft.kind] = run.kinds.get(draft.kind, 0) + 1
    run.tally["closed"] = run.tally.get("closed", 0) + memories.count_closed_by(tx, memory_id)
    if injection_flags(draft.value):
        run.count("flagged")
        run.flags.append(told)
    if len(run.first) < SHOWN:
        run.first.append(told)
    _place(run, item, memory_id, link=True)


def _known(run: ImportRun, item: ImportedItem, memory_id: int, told: str, *, ours: bool) -> None:
    run.count("duplicates")
    if len(run.duplicates) < SHOWN:
        run.duplicates.append(told)
    _place(run, item, memory_id, link=ours)


def _place(run: ImportRun, item: ImportedItem, memory_id: int, *, link: bool) -> None:
    if item.standing is None:
        return
    run.placed[item.standing.id] = memory_id
    if link and item.standing.superseded_by is not None:
        run.links[memory_id] = item.standing.superseded_by


def _held(reader: Reader, run: ImportRun, draft: Draft) -> Row | None:
    """Returns the row with exactly the same content, or a fuller name, that this owner can see already."""
    scope, value = run.home.scope, keys.normalise_value(draft.value)
    if draft.key == "name":
        for row in memories.with_key(reader, scope, draft):
            if row["valid_until"] is None and set(value.split()) < set(keys.normalise_value(row["value"]).split()):
                return row
    if run.values is None:
        rows = memories.values(reader, scope)
        run.values = {(row["kind"], row["key"], row["subject"], keys.normalise_value(row["value"])) for row in rows}
    if (draft.kind, draft.key, draft.subject, value) not in run.values:
        run.values.add((draft.kind, draft.key, draft.subject, value))
        return None
    for row in memories.with_key(reader, scope, draft):
        since = row["valid_until"] is not None and draft.learned_at > row["valid_until"]
        elsewhen = draft.kind == "event" and row["local_date"] != draft.local_date
        if not since and not elsewhen and keys.normalise_value(row["value"]) == value:
            return row
    return None


def _draft(tx: Transaction, run: ImportRun, item: ImportedItem, *, now: int) -> Draft:
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
        local_date=item.day or clock.local_date(learned_at, home.timezone).isoformat(),
        valid_from=None if standing is None else standing.valid_from,
        valid_until=None if standing is None else standing.valid_until,
    )


def _identity(tx: Transaction, run: ImportRun, one: Person | None, *, now: int) -> int | None:
    """Returns the identity that a memory names: in private only the owner's, in a group anybody's."""
    if one is None or one == OWNER:
        return None if one is None else run.home.identity_id
    if run.home.chat_id is None:
        return None
    return _person(tx, run, one, now=now).id
