"""Resolves what a person means by "forget …" to rows: ids, topics, names, times, a place, everything, or words.

Invariants: only rows that this scope sees, except for "me", and that the person may change are chosen. A selection
holds ids and figures, never text, so that it can wait in a question. A selection that names a place
or a time is resolved again when it is carried out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Literal, TypeAlias, get_args

from memory import keys, typed_filters
from memory.errors import Derived, NotYours
from memory.forgetting import forgettable
from memory.learn.offline import patterns
from memory.learn.offline.patterns import Disclosure
from memory.mailbox import outbox
from memory.recall.cues import cues
from memory.reminders import reminding
from memory.reminders.reminding import Reminder
from memory.scope import Scope
from memory.store import (
    attachments,
    chats,
    entities,
    filter_rows,
    history,
    lineage,
    memories,
    passages,
    people,
    recalls,
    scopes,
)
from memory.store.chats import Session
from memory.store.database import Reader
from memory.store.filter_rows import Reach
from memory.store.history import Message
from memory.store.memories import Memory
from memory.text import words as tokenised
from memory.text.simplified import simplified
from memory.text.times import clock
from memory.text.times.spans import Span, spans
from memory.typed_filters import Filter, Filters

#: "memories": named memories, and messages. "range": what was said and learned in a period. "here": in this session.
#: "all": all of this person's rows in private, or in this group. "me": all rows of this person everywhere.
What: TypeAlias = Literal["memories", "range", "here", "all", "me"]

_SHORT_ID: Final = re.compile(r"m_\w{1,20}", re.IGNORECASE)
#: The ids of memories and messages that a page lists.
_LISTED: Final = re.compile(r"s_\d{1,18}|[ms]_\w{1,20}(?: [ms]_\w{1,20})+")
_WHATS: Final[dict[str, What]] = {
    "here": "here", "这里": "here", "此处": "here", "本会话": "here",
    "all": "all", "everything": "all", "全部": "all", "所有": "all", "一切": "all",
}  # fmt: skip
#: The number of messages in which the one told last is looked for, and the fewest words of one that tells something.
_LAST_READ: Final = 20
_TELLING: Final = 2
_LAST: Final = ("last", "上一条", "最后一条")
#: The most memories that a query may choose, and the most messages.
_MOST: Final = 1_000
_MOST_MESSAGES: Final = 10_000
#: The most memories and messages that are offered if nothing holds all the words.
_NEAREST: Final = 3
#: The number of letters with which words of one family begin alike, and the messages read for them.
_BEGINNING: Final = 4
_ALIKE_READ: Final = 200
#: The shortest query, in characters, that also chooses messages containing it; half of it in scripts where a letter is
#: a syllable or a word.
_PHRASE: Final = 4
#: The most names that are looked for, and the most words of a relation's value that are a name.
_MOST_NAMED: Final = 20
_NAME_WORDS: Final = 3
#: The terms of words for being called, which are those of a call, too; and where they are meant.
_CALLS: Final = frozenset(tokenised.tokens("called appelle"))
_NAMING: Final = re.compile(r"\bcalled\b|\bcall (?:me|him|her|you)\b|\bappelle", re.IGNORECASE)
#: Words that may be a sentence: "lisbon" states nothing.
_SENTENCE: Final = re.compile(r"\S\s+\S|[\u3040-\u9fff]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows to be forgotten. `first` (included) and `last` (not included) are milliseconds UTC.

    `quote_ids` are quotes in this chat that hold the words. `more` counts the memories and messages that match as well
    but are too many for one request. With `near` no row held
    all the typed words, and these rows are the nearest.
    """

    what: What
    memory_ids: tuple[int, ...] = ()
    message_ids: tuple[int, ...] = ()
    reminder_ids: tuple[int, ...] = ()
    quote_ids: tuple[int, ...] = ()
    first: int = 0
    last: int = 0
    more: int = 0
    near: bool = False

    def fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    def to_json(self) -> str:
        return json.dumps(self.fields())

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """Reads the payload of a question with these fields. Raises `ValueError` for anything else."""
        given = json.loads(text)
        if not isinstance(given, dict) or given.get("what") not in get_args(What):
            raise ValueError("not a selection")
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if name in cls.__slots__
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The person who wants something forgotten, and where.

    `timezone` is the person's; `may_all` is set for a group's admin.
    """

    session: Session
    scope: Scope
    timezone: str
    may_all: bool = False

    @property
    def selves(self) -> tuple[int, ...]:
        return self.scope.speakers


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The rows of a selection: memories, messages of any role, and the person's reminders.

    `skipped` memories were not the person's.
    """

    memories: tuple[Memory, ...] = ()
    message_ids: frozenset[int] = field(default_factory=frozenset)
    reminders: tuple[Reminder, ...] = ()
    skipped: int = 0


def may_change(memory: Memory, scope: Scope) -> bool:
    """Returns whether the speaker may change or erase a memory: it is theirs alone, or said by or about them."""
    return memory.owner_id in scope.own or not {memory.author_id, memory.subject_id}.isdisjoint(scope.speakers)


def understand(
    reader: Reader,
    asker: Asker,
    asked: Filters,
    *,
    now: int,
    found: Sequence[int] = (),
    heard: Sequence[int] = (),
    reply_to: str | None = None,
    request: str = "",
) -> Selection | None:
    """Returns the selection that was typed or, if nothing was typed, the one for the message replied to.

    Returns None if nothing matches. `found` and `heard` are the ids of memories and messages that a search for the
    words returned. `request` is the whole message that the words were taken from. Raises `NotFound`, `NotYours` and
    `Derived` for a memory's id.
    """
    said = asked.words
    if asked.given or not said:
        by_reply = None if reply_to is None else _replied_to(reader, asker, reply_to)
        return _filtered(reader, asker, asked, found=found, heard=heard) if asked.given else by_reply
    if said.casefold() in _LAST or _LISTED.fullmatch(said):
        return _told_last(reader, asker) if said.casefold() in _LAST else _listed(reader, asker, said.split())
    if _SHORT_ID.fullmatch(said):
        memory = memories.by_short_id(reader, asker.scope, said.lower())
        may_forget(reader, asker, memory)
        return Selection(what="memories", memory_ids=(memory.id,))
    if (what := _WHATS.get(said.casefold())) is not None:
        return Selection(what=what)
    if (period := _period(reader, asker, said, now=now)) is None:
        return _held(reader, asker, said, found, heard, request)
    first, last = clock.moments(period.first, period.last, asker.timezone)
    return Selection(what="range", first=first, last=last)


def is_query(said: str) -> bool:
    said = said.strip()
    return bool(said) and not (
        _SHORT_ID.fullmatch(said)
        or _LISTED.fullmatch(said)
        or said.casefold() in (*_WHATS, *_LAST)
        or typed_filters.span(said) is not None
    )


def may_forget(reader: Reader, asker: Asker, memory: Memory) -> None:
    """Raises `NotYours` or `Derived` if this person can't forget the memory by itself."""
    if not may_erase(reader, asker)(memory):
        raise NotYours(f"{memory.short_id} is not this person's to change.")
    if memory.follows:
        made_of = lineage.parents(reader, asker.scope, memory.id)
        raise Derived(
            f"{memory.short_id} is made from other memories.", short_ids=tuple(parent.short_id for parent in made_of)
        )


def chosen(reader: Reader, asker: Asker, selection: Selection) -> Chosen:
    """Returns the rows that a selection names now, as far as this person may have them erased."""
    reminders = reminding.of_reach(reader, reminding.reach(asker.scope, asker.session))
    match selection.what:
        case "memories":
            found = memories.by_ids(reader, asker.scope, selection.memory_ids)
            said = frozenset(selection.message_ids)
            reminders = [reminder for reminder in reminders if reminder.id in selection.reminder_ids]
        case "range":
            first, last = selection.first, selection.last
            learned = forgettable.memories_between(reader, asker.scope, first, last)
            found = memories.by_ids(reader, asker.scope, learned)
            if asker.scope.private:  # the person's facts about themselves from groups are found here, but not meant
                found = [memory for memory in found if memory.owner_id in asker.scope.own]
            said = frozenset(filter_rows.within_reach(reader, _reach(reader, asker), said=(first, last)))
            reminders = [reminder for reminder in reminders if first <= reminder.created_at < last]
        case "here":
            said = frozenset(forgettable.messages_here(reader, asker.session.id, _reach(reader, asker)))
            found = lineage.taught_by(reader, asker.scope, said)
            reminders = _governed_reminders(asker, reminding.of_session(reader, asker.session.id))
        case "all" | "me":
            return _everything(reader, asker, selection.what, reminders)
    may = may_erase(reader, asker)
    theirs = tuple(memory for memory in found if may(memory))
    return Chosen(memories=theirs, message_ids=said, reminders=tuple(reminders), skipped=len(found) - len(theirs))


def _everything(reader: Reader, asker: Asker, what: What, mine: Sequence[Reminder]) -> Chosen:
    """Returns all rows of a person, anywhere, for "me". For "all", those on their private side, of any agent.

    In a group these are their own rows or, with `may_all`, all.
    """
    if what == "me":
        selves = identities(reader, asker)
        held, said = forgettable.memories_of_people(reader, selves), forgettable.messages_of_people(reader, selves)
        mine = reminding.of_reach(reader, reminding.ReminderReach(selves, None))
    else:
        reach = _reach(reader, asker)
        if asker.scope.private:
            reach = reach._replace(places=asker.scope.own)
        else:
            mine = _governed_reminders(asker, reminding.of_chat(reader, asker.session.chat_id))
        held, said = forgettable.memories(reader, reach), filter_rows.within_reach(reader, reach)
    return Chosen(memories=tuple(memories.of_ids(reader, held)), message_ids=frozenset(said), reminders=tuple(mine))


def _governed_reminders(asker: Asker, rows: Sequence[Reminder]) -> list[Reminder]:
    return [reminder for reminder in rows if asker.may_all or reminder.identity_id in asker.selves]


def erasable(reader: Reader, asker: Asker, what: What, message_ids: Sequence[int]) -> frozenset[int]:
    """Returns the messages whose words this person may have erased: theirs, all in their private chats, and answers."""
    selves = identities(reader, asker) if what == "me" else asker.selves
    return frozenset(forgettable.messages_of(reader, message_ids, owners=governed(reader, asker), authors=selves))


def _reach(reader: Reader, asker: Asker) -> Reach:
    return Reach(owners=governed(reader, asker), places=asker.scope.owners, authors=asker.selves)


def governed(reader: Reader, asker: Asker) -> list[int]:
    """Returns the owners whose rows this person may all erase: their own and, with `may_all`, the group's."""
    return [*asker.scope.own, *(scopes.places(reader, asker.scope.owners) if asker.may_all else ())]


def may_erase(reader: Reader, asker: Asker) -> Callable[[Memory], bool]:
    places = set(governed(reader, asker))
    return lambda memory: memory.owner_id in places or may_change(memory, asker.scope)


def _replied_to(reader: Reader, asker: Asker, platform_ref: str) -> Selection | None:
    """Returns the person's own message with all memories from it, or the memories that the bot's answer contains."""
    said = [
        message
        for message in history.said_here(reader, asker.session.id, [platform_ref])
        if message.author_id in asker.selves and message.text
    ]
    if said:
        return _with_memories(reader, asker, [message.id for message in said])
    turn_id = outbox.turn_shown(reader, [asker.session.key], platform_ref)
    if turn_id is None:
        return None
    turn = history.messages_of_turn(reader, turn_id)
    answer = "\n".join(message.text for message in turn if message.role == "assistant").casefold()
    entered = [entry.item_id for entry in recalls.of_turn(reader, turn_id) if entry.item == "memory"]
    taught = lineage.taught_by(reader, asker.scope, [message.id for message in turn])
    known = memories.by_ids(reader, asker.scope, entered)
    told = [m for m in (*known, *taught) if m.kind not in ("profile", "directive")]
    quoted = [memory for memory in told if memory.value.casefold() in answer]
    ids = dict.fromkeys(memory.id for memory in (quoted or taught))
    return Selection(what="memories", memory_ids=tuple(ids)) if ids else None


def _listed(reader: Reader, asker: Asker, ids: Sequence[str]) -> Selection | None:
    """Returns these memories and messages and no others; None if none is left that the person may have erased."""
    may = may_erase(reader, asker)
    held = memories.by_short_ids(reader, asker.scope, ids)
    said = [int(one[2:]) for one in ids if one.startswith("s_") and one[2:].isdecimal()]
    theirs = erasable(reader, asker, "memories", [row.id for row in passages.by_ids(reader, asker.scope, said)])
    memory_ids = tuple(row.id for row in held if may(row) and not row.follows)
    if not (memory_ids or theirs):
        return None
    return Selection(what="memories", memory_ids=memory_ids, message_ids=tuple(sorted(theirs)))


def _told_last(reader: Reader, asker: Asker) -> Selection | None:
    said = passages.said_last(reader, asker.scope, limit=_LAST_READ)
    told = [message for message in said if not message.text.rstrip().endswith(("?", "？"))]
    taught = [message for message in told if lineage.taught_by(reader, asker.scope, [message.id])]
    # Right after "my secret is …" it is that message; after "ok" it is the one before.
    longer = [message for message in told if len(tokenised.query_terms(message.text)) >= _TELLING]
    last = max((*taught[:1], *longer[:1]), key=lambda message: message.id, default=None)
    return None if last is None else _with_memories(reader, asker, [last.id])


def _with_memories(reader: Reader, asker: Asker, message_ids: Sequence[int]) -> Selection:
    may = may_erase(reader, asker)
    taught = lineage.taught_by(reader, asker.scope, message_ids)
    return Selection(
        what="memories", memory_ids=tuple(memory.id for memory in taught if may(memory)), message_ids=tuple(message_ids)
    )


def _period(reader: Reader, asker: Asker, said: str, *, now: int) -> Span | None:
    """Returns the period that `said` names; None if it names anything else or may mean something else."""
    if (written := typed_filters.span(said)) is not None:
        return written
    named = spans(said, clock.local_date(now, asker.timezone), looks="back")
    if len(named) != 1 or named[0].vague:
        return None
    rest = said[: named[0].start] + said[named[0].end :]
    if rest.strip(" .,!?。，！？"):
        return None
    # "April" may be a friend, and "Sunday" a cat.
    if said.isalpha() and entities.entity(reader, asker.scope, said) is not None:
        return None
    return named[0]


def _filtered(
    reader: Reader, asker: Asker, asked: Filters, *, found: Sequence[int], heard: Sequence[int]
) -> Selection | None:
    """Returns the rows that meet all filters: memories with their versions, and messages by their name or time."""
    times = [clock.moments(one.period.first, one.period.last, asker.timezone) for one in asked.given if one.period]
    if not asked.words and len(times) == len(asked.given):
        first, last = max(first for first, _ in times), min(last for _, last in times)
        return Selection(what="range", first=first, last=last) if first < last else None
    meeting = filter_rows.meeting(reader, asker.scope, asked, asker.timezone)
    said = filter_rows.messages(reader, _reach(reader, asker), asker.scope, asked, asker.timezone)
    answered, reminder_ids = _naming(reader, asker, asked)
    said += answered
    near = False
    if asked.words:
        held = _held(reader, asker, asked.words, found, heard) or Selection(what="memories")
        near = held.near
        meeting, said = meeting.intersection(held.memory_ids), [one for one in said if one in held.message_ids]
    if not (meeting or said or reminder_ids):
        return None
    newest = memories.by_ids(reader, asker.scope, sorted(meeting, reverse=True)[:_MOST])
    return Selection(
        what="memories",
        memory_ids=_with_versions(reader, asker.scope, [memory for memory in newest if not memory.follows]),
        message_ids=tuple(said[:_MOST_MESSAGES]),
        reminder_ids=tuple(reminder_ids),
        more=max(0, len(meeting) - _MOST) + len(said[_MOST_MESSAGES:]),
        near=near,
    )


def _naming(reader: Reader, asker: Asker, asked: Filters) -> tuple[list[int], list[int]]:
    """Returns the bot's answers to this person in a group that give all the names, and the person's reminders.

    Reminders hold the words beside the names, too. In private, answers are the person's own.
    """
    names, terms = filter_rows.names_in(asked), set(tokenised.query_terms(asked.words))
    if len(names) != len(asked.given):
        return [], []
    tests = [filter_rows.naming(reader, asker.scope, name) for name in names]
    answers = {} if asker.scope.private else _answers(reader, asker)
    reminders = reminding.of_reach(reader, reminding.reach(asker.scope, asker.session))
    return (
        [message_id for message_id, text in answers.items() if all(is_named(text) for is_named in tests)],
        [
            reminder.id
            for reminder in reminders
            if all(is_named(reminder.text) for is_named in tests) and terms <= set(tokenised.tokens(reminder.text))
        ],
    )


def _answers(reader: Reader, asker: Asker) -> dict[int, str]:
    sessions = forgettable.sessions_of(reader, scopes.places(reader, asker.scope.owners), [])
    owners = governed(reader, asker)
    return {
        row["id"]: f"{row['text']} {row['tool_calls'] or ''}"
        for session_id in sessions
        for row in forgettable.answers(
            reader, session_id, after=0, owners=owners, turns=(), authors=asker.selves, limit=-1
        )
    }


def _held(
    reader: Reader, asker: Asker, said: str, found: Sequence[int], heard: Sequence[int], request: str = ""
) -> Selection | None:
    """Returns the memories and messages that hold all the words of `said`, or else all its single characters.

    If no memory holds them in its own words, they ask for memories by kind: "my date of birth" is a birthday. If
    nothing holds them all, the nearest hits of the search are offered; so are memories of the kind that the `request`
    states, if only messages hold the words. Nothing that says the opposite is chosen.
    """
    whole, facts = False, list[Disclosure]()
    if _SENTENCE.search(request or said):
        whole, said = everything(request or said), bare(said)
        facts = stated(said, request)
    terms = set(tokenised.query_terms(said))
    characters = {term for term in terms if not tokenised.UNIT.match(term) or tokenised.UNIT.fullmatch(term)}
    words = _Words(said, terms, found, heard, facts)
    selection = _holding(reader, asker, words)
    if (selection is None or not selection.memory_ids) and characters != terms:
        selection = _holding(reader, asker, replace(words, terms=characters)) or selection
    if selection is None and (nearest := _nearest(reader, asker, words)) is not None:
        return replace(nearest, near=True)
    if selection is not None and not selection.memory_ids and (meant := _of_kind(reader, asker, facts)):
        return replace(selection, memory_ids=meant, near=True)
    if selection is not None:
        beside = attachments.quotes(reader, chats.sessions_of_chat(reader, asker.session.chat_id))
        quoting = (row["id"] for row in beside if terms and terms <= set(tokenised.tokens(row["text"])))
        selection = replace(selection, quote_ids=tuple(quoting))
    return with_names(reader, asker, selection, terms) if selection is not None and whole else selection


@dataclass(frozen=True, slots=True)
class _Words:
    said: str
    terms: Set[str]
    found: Sequence[int]
    heard: Sequence[int]
    facts: Sequence[Disclosure]

    def denies(self, memory: Memory) -> bool:
        return any(memory.key == opposite(fact) for fact in self.facts)

    def is_denied_by(self, text: str) -> bool:
        """Returns whether a message states the opposite of the facts, and none of them."""
        keys_said = {fact.key for fact in stated(text)} if self.facts else set()
        asked = {fact.key for fact in self.facts}
        return not keys_said & asked and any(opposite(fact) in keys_said for fact in self.facts)

    def are_stated_by(self, memory: Memory) -> bool:
        return any(
            memory.key == fact.key and keys.normalise_value(memory.value) == keys.normalise_value(fact.value)
            for fact in self.facts
        )


def _holding(reader: Reader, asker: Asker, words: _Words) -> Selection | None:
    said, terms = words.said, words.terms
    looked_for = list(dict.fromkeys([said.lower(), *said.lower().split(), *terms]))
    candidates = [
        memory
        for memory in (
            *memories.containing(reader, asker.scope, looked_for, limit=-1),
            *memories.by_ids(reader, asker.scope, words.found),
        )
        if not words.denies(memory)
    ]
    phrase = said.casefold()
    matching = []
    for memory in candidates:
        text = f"{memory.key} {memory.value} {memory.subject} {memory.topic}"
        if phrase in text.casefold() or (terms and terms <= set(tokenised.tokens(text))) or words.are_stated_by(memory):
            matching.append(memory)
    if not matching:
        matching = [memory for memory in candidates if memory.live and _asked_by_kind(memory, words)]
    hits = []
    if len(said) >= (_PHRASE if said.isascii() else _PHRASE // 2):
        hits += filter_rows.within_reach(reader, _reach(reader, asker), text=said)
    heard = _heard_from_people(reader, asker, words.heard) if terms else []
    hits += [message.id for message in heard if terms <= set(tokenised.tokens(message.text))]
    holding = _not_denying(reader, asker, words, list(dict.fromkeys(hits)))
    if not matching:
        # "That I can't drink milk" holds no word of "allergic to", but says the value learned from its message.
        taught = [row for row in lineage.taught_by(reader, asker.scope, holding) if row.live and not words.denies(row)]
        matching = [row for row in taught if set(tokenised.tokens(row.value)) <= terms]
        # "That I work at Leclerc" says most of "Leclerc, at the fish counter".
        shares = [len(terms & set(tokenised.tokens(row.value))) for row in taught]
        most = max(shares, default=0)
        matching = matching or [row for row, share in zip(taught, shares, strict=True) if share == most > 0]
    matching = list({memory.id: memory for memory in matching}.values())
    reminders = reminding.of_reach(reader, reminding.reach(asker.scope, asker.session))
    named = [
        reminder.id
        for reminder in reminders
        if (len(phrase) >= _PHRASE // 2 and phrase in reminder.text.casefold())
        or (terms and terms <= set(tokenised.tokens(reminder.text)))
    ]
    if not (matching or holding or named):
        return None
    return Selection(
        what="memories",
        memory_ids=_with_versions(reader, asker.scope, matching[:_MOST]),
        message_ids=tuple(holding[:_MOST_MESSAGES]),
        reminder_ids=tuple(named),
        more=len(matching[_MOST:]) + len(holding[_MOST_MESSAGES:]),
    )


def _not_denying(reader: Reader, asker: Asker, words: _Words, message_ids: list[int]) -> list[int]:
    if not any(opposite(fact) for fact in words.facts):
        return message_ids
    # The bot's "you don't like tea" holds "like tea", too. Its answers go with what they answer or quote.
    read = passages.by_ids(reader, asker.scope, message_ids)
    return [row.id for row in read if row.role == "user" and not words.is_denied_by(row.text)]


def _of_kind(reader: Reader, asker: Asker, facts: Sequence[Disclosure]) -> tuple[int, ...]:
    """Returns the person's current memories that may be meant by such facts: a job by "that I work at the railway"."""
    categories = {fact.category for fact in facts if keys.is_single_valued(fact.key)}
    held = memories.current(reader, asker.scope, ("fact",), limit=_MOST) if categories else []
    return tuple(
        memory.id
        for memory in held
        if memory.owner_id in asker.scope.own
        and not memory.subject
        and memory.category in categories
        and keys.is_single_valued(memory.key)
    )[:_NEAREST]


# Names behind memories -----------------------------------------------------------------------------------------------


def with_names(reader: Reader, asker: Asker, selection: Selection, terms: Set[str]) -> Selection:
    """Returns the selection with all that gives the names of the people and animals that `terms` ask for.

    Texts in which a name may be a word or another's name stay.
    """
    asked = [
        memory
        for memory in memories.by_ids(reader, asker.scope, selection.memory_ids)
        if terms & set(tokenised.tokens(f"{cues(memory.key)} {memory.value}"))
    ]
    names = names_behind(reader, asker, asked, whole=True)
    memory_ids, message_ids = dict.fromkeys(selection.memory_ids), dict.fromkeys(selection.message_ids)
    more = 0
    for name, texts in naming_texts(reader, asker, names).items():
        is_word = any(is_small_in(name, text) for text in texts.values())
        message_ids |= dict.fromkeys(one for one, text in texts.items() if gives(name, text, is_word=is_word))
        about = filter_rows.meeting(reader, asker.scope, _about(name), asker.timezone)
        more += len(about) - len(newest := sorted(about, reverse=True)[:_MOST])
        meant = [
            memory
            for memory in memories.by_ids(reader, asker.scope, newest)
            if not memory.follows
            and (
                keys.normalise_value(memory.subject) == keys.normalise_value(name)
                or gives(name, memory.value, is_word=is_word)
            )
        ]
        memory_ids |= dict.fromkeys(_with_versions(reader, asker.scope, meant))
    return replace(
        selection,
        memory_ids=tuple(memory_ids),
        message_ids=tuple(message_ids)[:_MOST_MESSAGES],
        more=selection.more + more + len(tuple(message_ids)[_MOST_MESSAGES:]),
    )


def names_behind(reader: Reader, asker: Asker, rows: Sequence[Memory], *, whole: bool = False) -> list[str]:
    """Returns the names that these memories give to people and animals, and that no other memory gives.

    If the `whole` is meant, other memories may give them, but not to anybody else.
    """
    ids = {memory.id for memory in rows}
    names = list(dict.fromkeys(name for memory in rows if (name := _name_in(memory))))[:_MOST_NAMED]
    return [name for name in names if not _others_naming(reader, asker, name, ids, whole=whole)]


def _name_in(memory: Memory) -> str:
    """Returns the name that a memory gives to somebody of a kind: "Bello" of "Hund Bello"; "" if it gives none."""
    given = memory.value.split()
    if memory.follows or not (memory.key in keys.RELATIONS or memory.key == "pet") or len(given) > _NAME_WORDS:
        return ""
    kind = set(tokenised.tokens(cues(memory.key)))
    name = " ".join(word for word in given if not set(tokenised.tokens(word)) <= kind)
    return name if len(name) > 1 else ""


def naming_texts(reader: Reader, asker: Asker, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Returns the texts of the messages in which each of these names stands, by name and id, newest first.

    In a group they include the bot's answers to this person: in private those are the person's own.
    """
    texts = filter_rows.naming_texts(reader, _reach(reader, asker), asker.scope, names)
    answered = _answers(reader, asker) if names and not asker.scope.private else {}
    for name in names if answered else ():
        is_named = filter_rows.naming(reader, asker.scope, name)
        texts[name] |= {message_id: text for message_id, text in answered.items() if is_named(text)}
    return texts


def _others_naming(reader: Reader, asker: Asker, name: str, besides: Set[int], *, whole: bool) -> bool:
    others = filter_rows.meeting(reader, asker.scope, _about(name), asker.timezone) - besides
    return any(
        memory.origin != "derived" and (not whole or entities.stands_in(name, _name_in(memory)))
        for memory in memories.by_ids(reader, asker.scope, sorted(others))
    )


def _about(name: str) -> Filters:
    return Filters(given=(Filter(name="about", value=name),))


# What is nearest -----------------------------------------------------------------------------------------------------


def _nearest(reader: Reader, asker: Asker, words: _Words) -> Selection | None:
    """Returns the memories and messages that share the most words, one at least; None if none does."""
    terms, heard = words.terms, words.heard
    near = [
        (len(terms & (_kind_of(memory, words.said) | _own_words_of(memory))), memory)
        for memory in memories.by_ids(reader, asker.scope, words.found)
        if memory.live and not memory.follows and not words.denies(memory)
    ]
    spoken = [
        (len(terms & set(tokenised.tokens(message.text))), message)
        for message in _heard_from_people(reader, asker, heard)
        if not words.is_denied_by(message.text)
    ]
    most = max((shared for shared, _ in (*near, *spoken)), default=0)
    if not most:
        return _alike(reader, asker, terms)
    places = {message_id: place for place, message_id in enumerate(heard)}
    messages = [message.id for shared, message in spoken if shared == most][:_NEAREST]
    messages.sort(key=places.__getitem__)
    kept = _with_versions(reader, asker.scope, [memory for shared, memory in near if shared == most][:_NEAREST])
    memory_ids = dict.fromkeys([*kept, *_with_memories(reader, asker, messages).memory_ids])
    return Selection(what="memories", memory_ids=tuple(memory_ids), message_ids=tuple(messages))


def _alike(reader: Reader, asker: Asker, terms: Set[str]) -> Selection | None:
    """Returns the latest message with a word that begins like one of `terms`: "weigh" finds "weight"."""
    beginnings = {term[: max(_BEGINNING, len(term) - 2)] for term in terms if len(term) >= _BEGINNING}
    for message in passages.said_last(reader, asker.scope, limit=_ALIKE_READ):
        said = tokenised.tokens(message.text)
        if any(word.startswith(beginning) for word in said for beginning in beginnings):
            return _with_memories(reader, asker, [message.id])
    return None


def _own_words_of(memory: Memory) -> set[str]:
    return set(tokenised.tokens(f"{memory.value} {memory.subject} {memory.topic}"))


def _kind_of(memory: Memory, said: str) -> set[str]:
    kind = set(tokenised.tokens(f"{memory.key} {cues(memory.key)}"))
    return kind if _NAMING.search(said) else kind - _CALLS  # "the call" is no name, though somebody is called so


def _asked_by_kind(memory: Memory, words: _Words) -> bool:
    """Returns whether words ask for a memory by its kind: each is one of its own words or of its key's cues."""
    kind = _kind_of(memory, words.said)
    return bool(words.terms & kind) and words.terms <= kind | _own_words_of(memory)


def _heard_from_people(reader: Reader, asker: Asker, heard: Sequence[int]) -> list[Message]:
    mine = erasable(reader, asker, "memories", heard)
    said = passages.as_passages(reader, asker.scope, sorted(mine))
    return [passage.message for passage in said if passage.message.role == "user"]


def _with_versions(reader: Reader, scope: Scope, rows: Sequence[Memory]) -> tuple[int, ...]:
    versions = (version.id for row in rows for version in (row, *lineage.versions(reader, scope, row)))
    return tuple(dict.fromkeys(versions))


def identities(reader: Reader, asker: Asker) -> list[int]:
    return people.linked(reader, asker.selves)


#: Longer requests are not read, in characters.
_LONGEST: Final = 300
#: Keys that say the opposite of one another about a value.
OPPOSITES: Final = {"likes": "dislikes", "dislikes": "likes"}
_ALL_ABOUT: Final = (
    r"(?:everything|all|anything|alles|todo|tout)(?:,? (?:that |was )?(?:you|i|du|ich|tu|que|ce que)\b[^,.]{0,30}?)? "
    r"(?:about|on|of(?! (?:it|this|that|them)\b)|über|von|zu|sobre|acerca de|de|sur|à propos de) "
)
_ABOUT: Final = re.compile(rf"^{_ALL_ABOUT}", re.IGNORECASE)
#: "Everything about …", and not any "all" or "that's all" beside what is meant.
_EVERYTHING: Final = re.compile(
    rf"\b{_ALL_ABOUT}|的(?:一切|所有|全部)|(?:一切|所有|全部)(?:关于|有关|跟|和)|(?:忘[掉了记]|删[掉除])(?:一切|所有|全部)"
    r"|(?:こと|について|関すること)(?:[のをは、])?(?:全部|すべて|全て|何もかも)|(?:全部|すべて|全て|何もかも)を?(?:忘れ|消し|削除)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|dass|daß|que)\s|\bqu['’]|忘れて|(?:という)?こと|忘[掉了记]|删[掉除]", re.IGNORECASE
)
#: A German clause, whose verb stands at its end.
_VERB_LAST: Final = re.compile(r"ich (?P<rest>.{1,80}) (?P<verb>\w{2,20})", re.IGNORECASE)


def everything(request: str) -> bool:
    return len(request) <= _LONGEST and _EVERYTHING.search(request) is not None


def bare(words: str) -> str:
    return _ABOUT.sub("", words) or words


def stated(*requests: str) -> list[Disclosure]:
    for request in requests:
        for clause in _clauses(request) if len(request) <= _LONGEST else ():
            if found := patterns.extract(clause, today=date.min.replace(year=1970)):
                return found
    return []


def opposite(fact: Disclosure) -> str | None:
    return OPPOSITES.get(fact.key)


def _clauses(request: str) -> Iterator[str]:
    yield request
    for clause in (part.strip(" ,.!。！を").removesuffix("な") for part in _CLAUSE.split(request)[:4]):
        if (found := _VERB_LAST.fullmatch(clause)) is not None:
            yield f"ich {found['verb']} {found['rest']}"
        yield clause


# Names in texts -------------------------------------------------------------------------------------------------------

#: Characters with which what follows a name begins, in scripts without spaces: particles, titles, adverbs, verbs. There
#: is no list of all words here, and any other character may go on to a longer one, as in 小白菜 for 小白.
_FOLLOWING: Final = re.compile(
    "[的地得了着过吗呢吧啊呀嘛是在很不也都就又还再没有要会能可该应想喜爱最真太更好乖坏病死活生吃喝睡醒跑跳叫喊来去走住到从向往里身家上下"
    "先总已经曾正刚一两三几个只和跟与同或及给对把被让使由为因但而说问答看见找带养买卖打咬怕这那今昨明每前后洗剪换遛喂抱接送挂预订做办擦"
    "梳量称拍教训陪哄治检查驱绝搬寄修约开关收放取拿用穿戴坐站躺玩笑哭闹饿渴累困冷热胖瘦高长大出进回起拉吐掉摔伤疼痛发变成像叼舔闻抓]"
    "|[はがをにでとのもへねよさちくまだじ様君氏殿]|[이가은는을를의에와과도야아랑한네님씨께만]"
)
_KANA: Final = re.compile("[\u3041-\u30ff]")
_KATAKANA: Final = re.compile("[\u30a1-\u30ff]")


def gives(name: str, text: str, *, is_word: bool) -> bool:
    """Returns whether a text gives a name alone, and with its capitals if its script has any.

    With `is_word`, the name is a word, too, and at the beginning of a sentence it may be that word.
    """
    if name.lower() == name.upper():
        return entities.stands_in(name, text) and _gives_alone(simplified(name), simplified(text))
    if name.islower():
        return False
    before = r"(?<=[\w,;]\s)" if is_word else r"(?<!\w)"
    for match in re.finditer(rf"{before}(?<!\d\s){re.escape(name)}(?:['’]?s)?(?!\w)\s*", text):
        is_longer = match[0][-1:].isspace() and text[match.end() : match.end() + 1].isupper()
        if not is_longer:
            return True
    return False


def _gives_alone(name: str, text: str) -> bool:
    """Returns whether no character beside a name may belong to a longer word."""
    if name[-1] < "\u3040":  # a script with spaces, or one whose words nothing here tells apart
        return True
    for match in re.finditer(re.escape(name), text, re.IGNORECASE):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        goes_on = after.isalpha() and not _FOLLOWING.match(after) and not (_KANA.match(name[-1]) and after > "\u30ff")
        if not goes_on and not (_KATAKANA.match(name[0]) and _KATAKANA.match(before)):
            return True
    return False


def is_small_in(name: str, text: str) -> bool:
    """Returns whether a text holds the word that a name is, or the name in small letters."""
    small = name.lower()
    return small != name.upper() and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", text) is not None
