"""What a person means by "forget …", and which rows that is: ids, topics, names, times, a place, all, or words.

Invariants: only rows this scope sees are chosen, but for "me", and of those only what the person may change; a
selection holds ids and figures, never text, so that it can wait in a question; one that names a place or a time is
looked up again when it is carried out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal, TypeAlias, get_args

from memory import dates, keys, periods
from memory.errors import Derived, NotYours
from memory.periods import Range
from memory.recall import words as tokenised
from memory.scope import Scope
from memory.store import entities, history, memories, recalls
from memory.store.database import Reader
from memory.store.memories import Memory
from memory.store.people import Session

#: "memories": those named, and messages; "range": what was said and learned at a time; "here": in this session; "all":
#: of this person in private, or in this group; "me": of this person everywhere.
What: TypeAlias = Literal["memories", "range", "here", "all", "me"]

_SHORT_ID: Final = re.compile(r"m_\w{1,20}", re.IGNORECASE)
_SPAN: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\s{0,3}(?:\.{2,3}|…|~|～|至|到)\s{0,3}(\d{4}-\d{2}-\d{2})")
_NAMED: Final = re.compile(r"(topic|about|主题|话题|关于)\s{0,3}[:：]\s{0,3}(\S[\s\S]*)", re.IGNORECASE)
_TOPICS: Final = ("topic", "主题", "话题")
_WHATS: Final[dict[str, What]] = {
    "here": "here", "这里": "here", "此处": "here", "本会话": "here",
    "all": "all", "everything": "all", "全部": "all", "所有": "all", "一切": "all",
}  # fmt: skip
#: Memories that a query may choose, and messages.
_MOST: Final = 1_000
_MOST_MESSAGES: Final = 10_000
#: So long a query must be for messages that hold it to be meant; half of it where a letter is a syllable or a word.
_PHRASE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is to be forgotten. Times are milliseconds UTC, `last` is not included.

    `more` counts memories and messages that match as well but are too many for one request.
    """

    what: What
    memory_ids: tuple[int, ...] = ()
    message_ids: tuple[int, ...] = ()
    first: int = 0
    last: int = 0
    more: int = 0

    def fields(self) -> dict[str, object]:
        """For the payload of a question."""
        return {name: getattr(self, name) for name in self.__slots__}

    def to_json(self) -> str:
        return json.dumps(self.fields())

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """The inverse of `to_json`; also reads what earlier versions stored: {"memory": id}.

        Raises `ValueError` for anything else.
        """
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("not a selection")
        if "memory" in fields:
            return cls(what="memories", memory_ids=(int(fields["memory"]),))
        if fields.get("what") not in get_args(What):
            raise ValueError("not a selection")
        return cls(
            what=fields["what"],
            memory_ids=tuple(map(int, fields["memory_ids"])),
            message_ids=tuple(map(int, fields["message_ids"])),
            first=int(fields["first"]),
            last=int(fields["last"]),
            more=int(fields.get("more", 0)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who wants something forgotten, where; `timezone` is theirs. With `may_all` a group's admin."""

    session: Session
    scope: Scope
    timezone: str
    may_all: bool = False

    @property
    def selves(self) -> tuple[int, ...]:
        """The identities this person speaks as here."""
        speaker = (self.scope.speaker_id,) if self.scope.speaker_id is not None else ()
        return tuple(dict.fromkeys((*speaker, *self.scope.selves)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a selection comes to: memories, messages of whatever role, and how many memories were not theirs."""

    memories: tuple[Memory, ...] = ()
    message_ids: frozenset[int] = field(default_factory=frozenset)
    skipped: int = 0


def may_change(memory: Memory, scope: Scope) -> bool:
    """Whether the one who speaks may change or erase a memory: it is theirs alone, or said by or about them."""
    speakers = {scope.speaker_id, *scope.selves} - {None}
    return memory.owner_id in scope.own or memory.author_id in speakers or memory.subject_id in speakers


def understand(
    reader: Reader, asker: Asker, said: str, *, now: int, found: Sequence[int] = (), reply_to: str | None = None
) -> Selection | None:
    """The selection that was typed, or for nothing typed the message replied to; None when nothing is like that.

    `found` are the ids of memories that a search for `said` has brought. Raises `NotFound`, `NotYours` and `Derived`
    for the id of a memory.
    """
    said = said.strip()
    if not said:
        return None if reply_to is None else _replied_to(reader, asker, reply_to)
    if _SHORT_ID.fullmatch(said):
        memory = memories.by_short_id(reader, asker.scope, said.lower())
        may_forget(reader, asker, memory)
        return Selection(what="memories", memory_ids=(memory.id,))
    if (what := _WHATS.get(said.casefold())) is not None:
        return Selection(what=what)
    if (named := _NAMED.fullmatch(said)) is not None:
        about = _of_topic if named[1].casefold() in _TOPICS else _about
        return _with_versions(reader, asker.scope, about(reader, asker.scope, named[2].strip()))
    if (period := _period(reader, asker, said, now=now)) is not None:
        first, last = periods.moments(period, asker.timezone)
        return Selection(what="range", first=first, last=last)
    return _held(reader, asker, said, found)


def is_query(said: str) -> bool:
    """Whether what was typed may be words to search for."""
    said = said.strip()
    return bool(said) and not (
        _SHORT_ID.fullmatch(said) or said.casefold() in _WHATS or _NAMED.fullmatch(said) or _SPAN.fullmatch(said)
    )


def may_forget(reader: Reader, asker: Asker, memory: Memory) -> None:
    """Raises `NotYours` and `Derived` for what this person can't have forgotten by itself."""
    if not may_erase(reader, asker)(memory):
        raise NotYours(f"{memory.short_id} is not this person's to change.")
    if memory.follows:
        made_of = memories.parents(reader, asker.scope, memory.id)
        raise Derived(
            f"{memory.short_id} is made from other memories.",
            short_ids=tuple(parent.short_id for parent in made_of),
        )


def chosen(reader: Reader, asker: Asker, selection: Selection) -> Chosen:
    """The rows that a selection names now, as far as this person may have them erased."""
    match selection.what:
        case "memories":
            found = memories.by_ids(reader, asker.scope, selection.memory_ids)
            said = frozenset(selection.message_ids)
        case "range":
            found = _learned_between(reader, asker, selection)
            said = _said_between(reader, asker, selection)
        case "here":
            said = _said_here(reader, asker)
            found = _learned_from(reader, asker, said)
        case "all":
            return _everything(reader, asker)
        case "me":
            return _of_person(reader, asker)
    may = may_erase(reader, asker)
    theirs = tuple(memory for memory in found if may(memory))
    return Chosen(memories=theirs, message_ids=said, skipped=len(found) - len(theirs))


def erasable(reader: Reader, asker: Asker, what: What, message_ids: Sequence[int]) -> frozenset[int]:
    """Those of these messages whose words this person may have erased: what they said, and all of their private chats.

    The bot's own words are nobody's: whoever may erase what they tell of may erase them.
    """
    selves = identities(reader, asker) if what == "me" else asker.selves
    rows = reader.all(
        "select id from messages where id in (select value from json_each(?1)) and (role <> 'user'"
        " or author_id in (select value from json_each(?2)) or owner_id in (select value from json_each(?3)))",
        (json.dumps(list(message_ids)), json.dumps(selves), json.dumps(governed(reader, asker))),
    )
    return frozenset(row["id"] for row in rows)


def governed(reader: Reader, asker: Asker) -> list[int]:
    """The owners of whose rows this person may erase all: their own, and with `may_all` the group's."""
    rows = reader.all(
        "select id from owners where kind in ('chat', 'thread') and id in (select value from json_each(?))",
        (json.dumps(asker.scope.owners),),
    )
    return [*asker.scope.own, *(row["id"] for row in rows if asker.may_all)]


def may_erase(reader: Reader, asker: Asker) -> Callable[[Memory], bool]:
    """Which memories this person may have erased."""
    places = set(governed(reader, asker))
    return lambda memory: memory.owner_id in places or may_change(memory, asker.scope)


def _replied_to(reader: Reader, asker: Asker, platform_ref: str) -> Selection | None:
    """The person's own message with all that it taught, or the memories that stand in an answer of the bot."""
    said = [
        message
        for message in history.said_here(reader, asker.session.id, [platform_ref])
        if message.author_id in asker.selves and message.text
    ]
    if said:
        taught = _learned_from(reader, asker, frozenset(message.id for message in said))
        may = may_erase(reader, asker)
        return Selection(
            what="memories",
            memory_ids=tuple(memory.id for memory in taught if may(memory)),
            message_ids=tuple(message.id for message in said),
        )
    row = reader.one(
        "select turn_id from outbox where session_key = ? and platform_ref = ? and turn_id is not null"
        " order by id desc limit 1",
        (asker.session.key, platform_ref),
    )
    if row is None:
        return None
    turn = history.messages_of_turn(reader, row["turn_id"])
    answer = "\n".join(message.text for message in turn if message.role == "assistant").casefold()
    entered = [entry.item_id for entry in recalls.of_turn(reader, row["turn_id"]) if entry.item == "memory"]
    taught = _learned_from(reader, asker, frozenset(message.id for message in turn))
    known = memories.by_ids(reader, asker.scope, entered)
    told = [m for m in (*known, *taught) if m.kind not in ("profile", "directive")]
    quoted = [memory for memory in told if memory.value.casefold() in answer]
    ids = dict.fromkeys(memory.id for memory in (quoted or taught))
    return Selection(what="memories", memory_ids=tuple(ids)) if ids else None


def _period(reader: Reader, asker: Asker, said: str, *, now: int) -> Range | None:
    """The time that `said` names and nothing else; None for what may as well mean something else."""
    if (span := _SPAN.fullmatch(said)) is not None:
        try:
            first, last = sorted(date.fromisoformat(day) for day in span.groups())
        except ValueError:
            return None
        return Range(first=first, last=last, start=0, end=len(said))
    named = periods.ranges(said, dates.local_date(now, asker.timezone))
    if len(named) != 1 or named[0].vague:
        return None
    rest = said[: named[0].start] + said[named[0].end :]
    if rest.strip(" .,!?。，！？"):
        return None
    # April may be a friend, and Sunday a cat.
    if said.isalpha() and entities.entity(reader, asker.scope, said) is not None:
        return None
    return named[0]


def _of_topic(reader: Reader, scope: Scope, topic: str) -> list[Memory]:
    wanted = keys.normalise_value(topic)
    return [
        memory
        for memory in memories.containing(reader, scope, [topic.lower()], limit=-1)
        if keys.normalise_value(memory.topic) == wanted
    ]


def _about(reader: Reader, scope: Scope, name: str) -> list[Memory]:
    wanted = keys.normalise_value(name)
    linked = memories.by_ids(reader, scope, entities.linked(reader, scope, [name]))
    held = memories.containing(reader, scope, [name.lower()], limit=-1)
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id from memories m join identities i on i.id = m.subject_id"
        f" where lower(i.name) = lower(?) and {within.sql}",
        (name, *within.parameters),
    )
    meant = memories.by_ids(reader, scope, [row["id"] for row in rows])
    named = [memory for memory in held if keys.normalise_value(memory.subject) == wanted]
    return [memory for memory in (*linked, *named, *meant) if memory.kind not in ("profile", "directive")]


def _held(reader: Reader, asker: Asker, said: str, found: Sequence[int]) -> Selection | None:
    """The memories that hold all the words of `said`, and the messages that hold it as it stands."""
    terms = set(tokenised.query_terms(said))
    looked_for = list(dict.fromkeys([said.lower(), *said.lower().split(), *terms]))
    candidates = [
        *memories.containing(reader, asker.scope, looked_for, limit=-1),
        *memories.by_ids(reader, asker.scope, found),
    ]
    phrase = said.casefold()
    matching = []
    for memory in candidates:
        text = f"{memory.key} {memory.value} {memory.subject} {memory.topic}"
        if phrase in text.casefold() or (terms and terms.issubset(tokenised.tokens(text))):
            matching.append(memory)
    matching = list({memory.id: memory for memory in matching}.values())
    selection = _with_versions(reader, asker.scope, matching[:_MOST])
    holding = _messages_holding(reader, asker, said)
    if not (selection or holding):
        return None
    return Selection(
        what="memories",
        memory_ids=() if selection is None else selection.memory_ids,
        message_ids=tuple(holding[:_MOST_MESSAGES]),
        more=len(matching[_MOST:]) + len(holding[_MOST_MESSAGES:]),
    )


def _messages_holding(reader: Reader, asker: Asker, said: str) -> list[int]:
    if len(said) < (_PHRASE if said.isascii() else _PHRASE // 2):
        return []
    return [
        row["id"]
        for row in reader.all(
            "select m.id from messages m where m.erased_at is null and instr(lower(m.text), lower(?1)) > 0 and"
            " (m.owner_id in (select value from json_each(?2)) or m.owner_id in (select value from json_each(?3))"
            " and m.role = 'user' and m.author_id in (select value from json_each(?4))) order by m.id desc",
            (said, json.dumps(governed(reader, asker)), json.dumps(asker.scope.owners), json.dumps(asker.selves)),
        )
    ]  # fmt: skip


def _with_versions(reader: Reader, scope: Scope, found: Sequence[Memory]) -> Selection | None:
    ids = dict.fromkeys(one.id for memory in found for one in (memory, *memories.versions(reader, scope, memory)))
    return Selection(what="memories", memory_ids=tuple(ids)) if ids else None


def _learned_between(reader: Reader, asker: Asker, selection: Selection) -> list[Memory]:
    within = asker.scope.predicate("m")
    rows = reader.all(
        "select m.id from memories m where m.learned_at >= ? and m.learned_at < ?"
        f" and (m.kind not in ('profile', 'directive') or m.origin <> 'derived') and {within.sql}",
        (selection.first, selection.last, *within.parameters),
    )
    return _in_private(asker, memories.by_ids(reader, asker.scope, [row["id"] for row in rows]))


def _said_between(reader: Reader, asker: Asker, selection: Selection) -> frozenset[int]:
    rows = reader.all(
        "select id from messages m where m.said_at >= ?1 and m.said_at < ?2 and m.erased_at is null and"
        " (m.owner_id in (select value from json_each(?3)) or m.owner_id in (select value from json_each(?4))"
        " and m.role = 'user' and m.author_id in (select value from json_each(?5)))",
        (
            selection.first, selection.last, json.dumps(governed(reader, asker)), json.dumps(asker.scope.owners),
            json.dumps(asker.selves),
        ),
    )  # fmt: skip
    return frozenset(row["id"] for row in rows)


def _said_here(reader: Reader, asker: Asker) -> frozenset[int]:
    rows = reader.all(
        "select id from messages m where m.session_id = ?1 and m.erased_at is null and"
        " (m.owner_id in (select value from json_each(?2))"
        " or m.role = 'user' and m.author_id in (select value from json_each(?3)))",
        (asker.session.id, json.dumps(governed(reader, asker)), json.dumps(asker.selves)),
    )
    return frozenset(row["id"] for row in rows)


def _learned_from(reader: Reader, asker: Asker, message_ids: frozenset[int]) -> list[Memory]:
    within = asker.scope.predicate("m")
    rows = reader.all(
        "select distinct m.id from memory_sources s join memories m on m.id = s.memory_id"
        f" where s.message_id in (select value from json_each(?)) and {within.sql}",
        (json.dumps(sorted(message_ids)), *within.parameters),
    )
    return memories.by_ids(reader, asker.scope, [row["id"] for row in rows])


def _in_private(asker: Asker, found: Sequence[Memory]) -> list[Memory]:
    """In private what was said of oneself in groups is found, too, but not meant."""
    return [memory for memory in found if not asker.scope.private or memory.owner_id in asker.scope.own]


def _everything(reader: Reader, asker: Asker) -> Chosen:
    """All of the private side of a person, of whichever agent; in a group what is theirs, or with `may_all` all."""
    places = json.dumps(governed(reader, asker))
    owners = json.dumps(asker.scope.own if asker.scope.private else asker.scope.owners)
    selves = json.dumps(asker.selves)
    held = reader.all(
        "select id from memories where owner_id in (select value from json_each(?1))"
        " or owner_id in (select value from json_each(?2)) and owner_id not in"
        "   (select id from owners where kind = 'agent')"
        " and (author_id in (select value from json_each(?3)) or subject_id in (select value from json_each(?3)))",
        (places, owners, selves),
    )
    said = reader.all(
        "select id from messages where erased_at is null and (owner_id in (select value from json_each(?1))"
        " or owner_id in (select value from json_each(?2)) and role = 'user'"
        " and author_id in (select value from json_each(?3)))",
        (places, owners, selves),
    )
    return Chosen(
        memories=tuple(memories.of_ids(reader, [row["id"] for row in held])),
        message_ids=frozenset(row["id"] for row in said),
    )


def _of_person(reader: Reader, asker: Asker) -> Chosen:
    """All there is of a person: what their identities own, what they said anywhere, what is known of them anywhere."""
    selves = json.dumps(identities(reader, asker))
    held = reader.all(
        "select m.id from memories m join owners o on o.id = m.owner_id where o.kind <> 'agent' and"
        " (o.identity_id in (select value from json_each(?1)) or m.author_id in (select value from json_each(?1))"
        " or m.subject_id in (select value from json_each(?1)))",
        (selves,),
    )
    said = reader.all(
        "select m.id from messages m left join owners o on o.id = m.owner_id where m.erased_at is null and"
        " (o.identity_id in (select value from json_each(?1)) or m.author_id in (select value from json_each(?1)))",
        (selves,),
    )
    return Chosen(
        memories=tuple(memories.of_ids(reader, [row["id"] for row in held])),
        message_ids=frozenset(row["id"] for row in said),
    )


def identities(reader: Reader, asker: Asker) -> list[int]:
    """All identities linked with those who speak here, wherever that is."""
    rows = reader.all(
        "select id from identities where person_id in"
        " (select person_id from identities where id in (select value from json_each(?)))",
        (json.dumps(asker.selves),),
    )
    return [row["id"] for row in rows]
