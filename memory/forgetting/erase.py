"""Carries out a forget: erases memories, words and all copies of them, records it, and repeats it in a restored store.

Invariants: exactly the planned rows go, by id. The record of them holds ids and figures, never text. When there are
many messages, most are only hidden at once and blanked in portions afterwards. Only rows of a group that the person
asking may have erased go. Rows that others may point to stay, empty. Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from memory import keys, profile
from memory.forgetting import choose, forgettable, plan
from memory.forgetting.blank_messages import Sought, blank, clear_traffic, running_turns, sought_of
from memory.forgetting.choose import Asker
from memory.forgetting.plan import Plan, Quotes
from memory.mailbox import inbox, outbox
from memory.people import keyring, linking, privacy
from memory.reminders import reminding
from memory.scope import Scope
from memory.store import (
    attachments,
    chats,
    entities,
    history,
    judgements,
    memories,
    people,
    questions,
    recalls,
    scopes,
    word_columns,
)
from memory.store.database import Reader, Row, Transaction
from memory.store.memories import Memory

#: Messages blanked in one transaction, at some 20 µs each. The others are hidden from everybody by then.
_AT_ONCE: Final = 5_000
#: Stored as the error of an inbox row that was erased before it was answered.
_ERASED: Final = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedCounts:
    """The numbers of rows that went: the memories that were meant, and those `derived` from them.

    `messages` of people and `replies` of the bot have lost their words. `restored` memories came back. `keep_source`
    memories stay though one of their sources is erased, `naming` messages and reminders though they name what went.
    """

    memories: int = 0
    derived: int = 0
    restored: int = 0
    messages: int = 0
    replies: int = 0
    files: int = 0
    keep_source: int = 0
    reminders: int = 0
    naming: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def carry_out(
    tx: Transaction, asker: Asker, going: Plan, *, now: int, new_id: Callable[[], str]
) -> tuple[ErasedCounts, str, Sought | None]:
    """Erases all planned rows.

    Returns the receipt's figures, the erased ids as JSON, and the texts that `blank_messages.finish` looks for.
    """
    blanked = (*going.messages, *going.replies)
    others = going.others
    if others:
        others = (*others, *history.replies_telling(tx, [], sources=others) - set(blanked))
    owners = sorted({memory.owner_id for memory in going.memories} | forgettable.owners_of(tx, blanked))
    turns = history.running_in(tx, forgettable.sessions_of(tx, owners, choose.identities(tx, asker)))
    sought = sought_of(tx, going) if turns else None
    running: list[int] = []
    files = 0
    if going.how == "memory":
        history.unlearn(tx, (*blanked, *others))
    else:
        history.unlearn(tx, others)
        sessions = forgettable.sessions_of(tx, owners, asker.selves)
        quotes = going.looked.quotes
        if plan.is_whole(asker, going.what):
            quotes = Quotes(plan.telling_texts(tx, [*going.memories, *going.derived], []))
        _clear_mail(tx, asker, going, sessions, quotes, now=now)
        summed_up = _that_tell(chats.summaries(tx, sessions), quotes, going)
        chats.drop_summaries(tx, blanked, sessions=summed_up)
        quoting = _that_tell(attachments.quotes(tx, sessions), quotes, going)
        attachments.drop_rows(tx, [*quoting, *going.quote_ids])
        running, files = running_turns(tx, blanked), attachments.count(tx, blanked)
        word_columns.note_said(tx, blanked, now=now)
        history.hide(tx, blanked[_AT_ONCE:], now=now)
        blank(tx, blanked[:_AT_ONCE], now=now)
    _drop_memories(tx, asker.scope, going, now=now, new_id=new_id)
    reminding.drop(tx, [reminder.id for reminder in going.reminders])
    identities = choose.identities(tx, asker) if going.what == "me" else []
    _clear_person(tx, identities)
    what = {
        "what": going.what,
        "how": going.how,
        "memories": [memory.id for memory in (*going.memories, *going.derived)],
        "derived": [memory.id for memory in going.derived],
        "messages": list(blanked),
        "others": list(others),
        "running": running,
        "beside": sorted(turns - set(running)),
        "identities": identities,
        "reminders": [reminder.id for reminder in going.reminders],
    }
    return _counts(going, files), json.dumps(what), sought


def _counts(going: Plan, files: int) -> ErasedCounts:
    # The preview counts alike. Only the bot knows a profile as a memory: it is filled anew from the memories that stay.
    told = sum(not memory.follows for memory in going.memories)
    made = [*going.derived, *(memory for memory in going.memories if memory.follows)]
    return ErasedCounts(
        memories=told,
        derived=sum(memory.kind != "profile" for memory in made),
        restored=len(going.restored),
        messages=len(going.messages) if going.how == "words" else 0,
        replies=len(going.replies) if going.how == "words" else 0,
        files=files,
        keep_source=going.staying,
        reminders=len(going.reminders),
        naming=going.naming,
    )


def rest(what: str) -> Iterator[list[int]]:
    """Yields the messages that `carry_out` has only hidden, in portions for `blank_messages.blank_hidden`."""
    told = json.loads(what)
    messages = told.get("messages", []) if told.get("how") == "words" else []
    for start in range(_AT_ONCE, len(messages), _AT_ONCE):
        yield messages[start : start + _AT_ONCE]


def gone(
    message_ids: Sequence[int],
    taught: Sequence[Memory],
    *,
    what: Literal["memories", "edited"] = "memories",
    traffic: Sequence[int] = (),
) -> str:
    """Returns, as JSON of ids, the messages whose words went on a platform and the memories that went with them.

    With `what` = "edited", other words have replaced them and may teach the same again. `traffic` are running turns
    whose steps are to go when they end.
    """
    return json.dumps(
        {
            "what": what, "how": "words", "memories": [memory.id for memory in taught],
            "messages": list(message_ids), "others": [], "running": [], "traffic": list(traffic), "identities": [],
        }
    )  # fmt: skip


def replay(tx: Transaction, what: str, *, erased_at: int, now: int) -> None:
    """Repeats in a restored store the erasure that `what` describes, as `carry_out` returned it.

    Rows made after `erased_at` (milliseconds UTC) are left alone: they are other rows that got the same ids since.
    """
    told = json.loads(what)
    if not told:
        return
    there = history.recorded_until(tx, told["messages"], erased_at)
    if told["how"] == "words":
        if told.get("what") != "edited":
            word_columns.note_said(tx, there, now=erased_at)
        clear_traffic(tx, there, now=now)
        blank(tx, there, now=now)
        history.unlearn(tx, told["others"])
        chats.drop_summaries(tx, there)
    else:
        history.unlearn(tx, (*there, *told["others"]))
    held = memories.learned_until(tx, told["memories"], erased_at)
    rows = memories.of_ids(tx, held)
    for memory in rows if told.get("what") != "edited" else ():
        word_columns.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=erased_at)
    derived = told.get("derived", told["memories"])
    memories.take_apart(tx, held, forgotten=set(held).difference(derived))
    for owner_id in sorted({memory.owner_id for memory in rows if memory.key == "timezone"}):
        # A fact is seen by every agent.
        profile.follow_timezone(tx, scopes.scope_of_owner(tx, owner_id, agent_id=0), owner_id)
    _clear_person(tx, told["identities"])
    reminding.drop_made_until(tx, told.get("reminders", ()), erased_at)
    chats.drop_snapshots(tx)


def show_change(
    tx: Transaction, scope: Scope, changed: Sequence[Memory], *, now: int, new_id: Callable[[], str]
) -> None:
    """Makes a correction or a forget show at once, in the profile and in every prompt's snapshot."""
    slots = {
        (memory.owner_id, slot)
        for memory in changed
        if memory.kind == "fact"
        and memory.owner_id in scope.own
        and (slot := keys.profile_slot(category=memory.category, key=memory.key)) is not None
    }
    for owner_id, slot in sorted(slots):
        profile.refresh(tx, scope, owner_id, slot, now=now, new_id=new_id)
        if slot == "timezone":
            profile.follow_timezone(tx, scope, owner_id)
    authors = {memory.author_id for memory in changed if memory.author_id is not None}
    if changed:
        chats.drop_snapshots_of(tx, {memory.owner_id for memory in changed}, authors)


def unlearn_replies(tx: Transaction, told: Sequence[Memory], *, sources: Collection[int]) -> None:
    """Excludes the bot's answers to `sources`, and its messages that tell these memories, from learning and search."""
    history.unlearn(tx, history.replies_telling(tx, plan.with_turns(tx, told), sources=sources))


def _clear_mail(
    tx: Transaction, asker: Asker, going: Plan, session_ids: Sequence[int], quotes: Quotes, *, now: int
) -> None:
    """Erases mail without a turn: inbox rows that failed before one or wait to be asked for, and unsent outbox rows.

    In a group, inbox rows go only if the person sent them, unless the person may have everything there erased.
    """
    whole, partly = set(_whole_sessions(tx, asker, going)), set(_partly(tx, asker, going))
    ended = [
        row["id"]
        for row in inbox.unanswered_in(tx, {*session_ids, *whole, *partly}, _selves(tx, asker, going))
        if row["session_id"] in whole
        or (row["own"] and row["session_id"] in partly)
        or (
            (row["own"] or row["private"] or (asker.may_all and row["chat_id"] == asker.session.chat_id))
            and quotes.stand_in(f"{row['text']} {row['files']}", whole_words=True)
        )
    ]
    inbox.end(tx, ended, error=_ERASED, now=now)
    inbox.blank(tx, ended)
    for row in outbox.unsent_in(tx, [*session_ids, *whole]):
        shown = f"{row['text']} {(row['file'] or b'').decode(errors='ignore')}"
        if row["session_id"] in whole or quotes.stand_in(shown, whole_words=True):
            outbox.drop(tx, [row["id"]])


def _whole_sessions(reader: Reader, asker: Asker, going: Plan) -> list[int]:
    if going.what == "here":
        return [asker.session.id] if asker.scope.private or asker.may_all else []
    if going.what == "all" and not asker.scope.private:
        return chats.sessions_of_chat(reader, asker.session.chat_id) if asker.may_all else []
    if going.what in ("all", "me"):
        return forgettable.sessions_of(reader, [], _selves(reader, asker, going))
    return []


def _partly(reader: Reader, asker: Asker, going: Plan) -> list[int]:
    """Returns the sessions that lose all messages of the person."""
    match going.what:
        case "here":
            return [asker.session.id]
        case "all":
            return chats.sessions_of_chat(reader, asker.session.chat_id)
        case "me":
            return chats.all_sessions(reader)
        case _:
            return []


def _selves(reader: Reader, asker: Asker, going: Plan) -> Sequence[int]:
    return choose.identities(reader, asker) if going.what == "me" else asker.selves


def _that_tell(rows: Sequence[Row], quotes: Quotes, going: Plan) -> list[int]:
    """Returns the rows whose text quotes a row that goes, or holds its value or name, however short."""
    values = Quotes([*(memory.value for memory in going.memories), *going.names])
    return [row["id"] for row in rows if quotes.stand_in(row["text"]) or values.stand_in(row["text"], whole_words=True)]


def _drop_memories(tx: Transaction, scope: Scope, going: Plan, *, now: int, new_id: Callable[[], str]) -> None:
    for memory in going.memories:
        word_columns.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    doomed = [*going.memories, *going.derived]
    ids = [memory.id for memory in going.memories]
    memories.take_apart(tx, ids, forgotten=ids)
    show_change(tx, scope, [*doomed, *going.restored], now=now, new_id=new_id)


def _clear_person(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Erases the data of people beside messages and memories: names, questions, codes, looks, links."""
    if not identity_ids:
        return
    private = forgettable.sessions_of(tx, [], identity_ids)
    attachments.drop_quotes_by(tx, identity_ids)
    history.unname_authors(tx, identity_ids)
    people.unname(tx, identity_ids)
    inbox.unname(tx, identity_ids)
    questions.drop_unanswered(tx, identity_ids)
    linking.drop_codes_of(tx, identity_ids)
    keyring.drop_of(tx, identity_ids)
    judgements.drop_of(tx, identity_ids)
    privacy.drop_looks_of(tx, identity_ids)
    entities.drop_of(tx, identity_ids)
    recalls.drop_of_sessions(tx, private)
    history.drop_portions(tx, session_ids=private)
    chats.empty_private(tx, private)
    for identity_id in identity_ids:
        people.begin_anew(tx, identity_id)
