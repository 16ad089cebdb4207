"""Plans a forget by reading: works out which rows go with the chosen ones.

Invariants: nothing is changed here, and the receipt counts exactly the rows planned here. A message's words go only if
the person asking may have them erased; other messages are no longer learned from. The bot's words, its tool calls and
all copies that quote forgotten rows go along. A row derived from a forgotten row goes, and the other rows it was made
from come back. An event from which a forgotten row was made goes with the last of its own words, and is not read again
while it stays. Nothing here calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memory import keys
from memory.forgetting import choose, forgettable
from memory.forgetting.choose import Asker, Selection, What, gives, is_small_in
from memory.recall.cues import cues
from memory.reminders import reminding
from memory.reminders.reminding import Reminder
from memory.store import history, lineage, memories, recalls
from memory.store.database import Reader, Row
from memory.store.entities import stands_in
from memory.store.memories import Memory
from memory.text import words

#: The shortest text, in characters, that counts as a quote; half of it in scripts where a letter is a syllable or a
#: word. Shorter texts say little and occur in much.
_TELLING: Final = 8
#: Lengths of the pieces that texts are indexed by, in characters; the longest that fits is used.
_PIECES: Final = (16, 8, 4, 2, 1)


def is_telling(text: str) -> bool:
    """Returns whether a text is long enough for another text that holds it to be a quote of it."""
    return len(text) >= (_TELLING if text.isascii() else _TELLING // 2)


class Quotes:
    """Texts to search for. Blank texts say nothing and are left out.

    Some neighbouring pieces of each text are indexed, so many that one of them lies on a multiple of its length
    wherever the text stands. In the searched text, only the pieces at these places are looked up; where a piece is
    known, its texts are compared. (Sampling a q-gram index, as in Sutinen and Tarhio, "On using q-gram locations in
    approximate string matching", 1995.)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts: Final = frozenset(texts)
        self._pieces: dict[int, dict[str, list[str]]] = {}
        for text in sorted(set(_spellings(self.texts))):
            size = next(size for size in _PIECES if 2 * size - 1 <= len(text))
            pieces = self._pieces.setdefault(size, {})
            # Many texts begin alike. The pieces that fewest texts share tell them apart.
            first, last = 0, len(text) - 2 * size + 1
            start = min((first, last // 2, last), key=lambda at: len(pieces.get(text[at : at + size], ())))
            for at in range(start, start + size):
                pieces.setdefault(text[at : at + size], []).append(text)

    def stand_in(self, text: str, *, whole_words: bool = False) -> bool:
        folded = text.casefold()
        return any(not whole_words or _is_apart(folded, found) for found in self._found(folded))

    def _found(self, folded: str) -> Iterator[str]:
        for size, pieces in self._pieces.items():
            for at in range(0, len(folded) - size + 1, size):
                for text in pieces.get(folded[at : at + size], ()):
                    if text in folded:
                        yield text


def _spellings(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for ascii_only in (False, True):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            for spelled in (text, once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]):
                if spelled.strip():
                    yield spelled.casefold()


def _is_apart(text: str, found: str) -> bool:
    at = text.find(found)
    while at >= 0:
        end = at + len(found)
        if not (_is_one_word(text[at - 1 : at], found[0]) or _is_one_word(found[-1], text[end : end + 1])):
            return True
        at = text.find(found, at + 1)
    return False


def _is_one_word(before: str, after: str) -> bool:
    """Returns whether a word goes on from one character to the next; in scripts without spaces this can't be told."""
    spaced = [char.isalnum() and words.UNIT.match(char) is None for char in (before, after)]
    return all(spaced)


#: "words": with the source messages' words. "memory": without; these stay in history, but nothing is learned from them.
How: TypeAlias = Literal["words", "memory"]

#: The number of answers read at a time when they are searched.
_READ: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The bot's messages in `sessions` that hold one of `quotes`.

    `upto` holds the id of the last message read in each session: a later look reads on from there.
    """

    quotes: Quotes = field(default_factory=lambda: Quotes(()))
    sessions: frozenset[int] = frozenset()
    upto: Mapping[int, int] = field(default_factory=dict)
    quoting: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The rows that go: the `memories` chosen with their versions that say the same, and those `derived` from them.

    `restored` memories come back. The `messages` and `replies` lose their words; with `how` = "memory" they keep them,
    but nothing is learned from them any more. Nothing is learned from `others` either: another person said them, or
    their words went by age. `reminders` go with all their times to come. `staying` counts memories that lose a source
    and stay, `naming` other messages and reminders that stay though one of the `names` stands in them, of people and
    animals that no memory names any more. `looked` tells which answers quote rows that go.
    """

    what: What
    how: How
    memories: tuple[Memory, ...]
    derived: tuple[Memory, ...]
    restored: tuple[Memory, ...]
    messages: tuple[int, ...]
    replies: tuple[int, ...]
    others: tuple[int, ...]
    staying: int
    skipped: int
    looked: Looked
    reminders: tuple[Reminder, ...] = ()
    names: tuple[str, ...] = ()
    naming: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.messages or self.replies or self.reminders)


def plan(reader: Reader, asker: Asker, selection: Selection, how: How, *, looked: Looked | None = None) -> Plan:
    """Returns the plan for forgetting `selection` now. `looked` holds the findings of an earlier plan for it."""
    chosen, looked = choose.chosen(reader, asker, selection), looked or Looked()
    # If everything goes, all versions are included already, and no row need be searched for.
    every, whole = selection.what in ("all", "me"), is_whole(asker, selection.what)
    going = list(chosen.memories if every else _with_parts(reader, _with_same_words(reader, asker, chosen.memories)))
    sources = frozenset[int]().union(*lineage.source_ids(reader, [memory.id for memory in going]).values())
    said = chosen.message_ids | sources
    theirs = choose.erasable(reader, asker, selection.what, sorted(said))
    messages = said if how == "memory" else theirs if whole else theirs | _said_again(reader, asker, theirs)
    if how == "words" and not whole:
        going += _left_without_words(reader, asker, going, messages)
    derived, restored = memories.made_of(reader, [memory.id for memory in going])
    if how == "words" and not whole:
        looked = _look(reader, asker, [*going, *derived], messages, looked)
    replies = looked.quoting | history.replies_telling(reader, with_turns(reader, going), sources=messages)
    if how == "words":
        # A tool call, its result and the answer made from it go together: a part alone is of no use.
        replies = replies.union(forgettable.with_tools(reader, history.turns_of(reader, replies)))
    replies = forgettable.with_words(reader, replies | forgettable.not_by_people(reader, messages))
    messages = forgettable.with_words(reader, messages) - replies
    names = [] if every else choose.names_behind(reader, asker, [*going, *derived])
    naming = {
        name: {message_id: text for message_id, text in texts.items() if message_id not in messages | replies}
        for name, texts in choose.naming_texts(reader, asker, names).items()
    }
    reminders, kept, staying = chosen.reminders, frozenset[int](), 0
    if not every:
        reminders, kept = _reminders(reader, asker, chosen.reminders, going, messages, naming)
    if how == "words":
        going_ids = {memory.id for memory in (*going, *derived)}
        staying = forgettable.losing_a_source(reader, messages, besides=going_ids)
    return Plan(
        what=selection.what,
        how=how,
        memories=tuple(going),
        derived=tuple(derived),
        restored=tuple(restored),
        messages=tuple(sorted(messages)),
        replies=tuple(sorted(replies)),
        others=tuple(sorted((said - theirs if how == "words" else set()) | forgettable.gone_by_age(reader, said))),
        staying=staying,
        skipped=chosen.skipped,
        looked=looked,
        reminders=reminders,
        names=tuple(names),
        naming=len(kept) + len(set().union(*naming.values())) if how == "words" else 0,
    )


def _reminders(
    reader: Reader,
    asker: Asker,
    chosen: Sequence[Reminder],
    going: Sequence[Memory],
    messages: Collection[int],
    naming: Mapping[str, Mapping[int, str]],
) -> tuple[tuple[Reminder, ...], frozenset[int]]:
    """Returns the chosen reminders, and others that share words with rows that go or give one of the names.

    Also returns the ids of those that stay although a name stands in them: messages that stay hold it as a word.
    `naming` holds the texts of those messages by name and id.
    """
    said = {text.casefold() for text in forgettable.texts(reader, messages)} | {
        memory.value.casefold() for memory in going
    }
    quotes = Quotes([text for text in said if is_telling(text)])
    words_too = {name for name, texts in naming.items() if any(is_small_in(name, text) for text in texts.values())}
    others, kept = list[Reminder](), set[int]()
    for reminder in reminding.of_reach(reader, reminding.reach(asker.scope, asker.session)):
        named = [name for name in naming if stands_in(name, reminder.text)]
        if reminder in chosen:
            continue
        if (
            any(gives(name, reminder.text, is_word=name in words_too) for name in named)
            or any(name not in words_too and is_small_in(name, reminder.text) for name in named)
            or quotes.stand_in(reminder.text, whole_words=True)
            or (is_telling(reminder.text) and any(reminder.text.casefold() in text for text in said))
        ):
            others.append(reminder)
        elif named:
            kept.add(reminder.id)
    return (*chosen, *others), frozenset(kept)


def is_whole(asker: Asker, what: What) -> bool:
    """Returns whether everything of a place or person goes. Then its rows need not be searched for."""
    return what in ("all", "me") or (what == "here" and asker.scope.private)


def with_turns(reader: Reader, going: Sequence[Memory]) -> list[tuple[str, list[int]]]:
    return [(memory.value, recalls.turns_with(reader, memory.id)) for memory in going]


def telling_texts(reader: Reader, going: Sequence[Memory], message_ids: Collection[int]) -> frozenset[str]:
    """Returns texts that tell of these memories and messages; short ids too, since tools return and take them."""
    said = [*(memory.value for memory in going), *forgettable.texts(reader, message_ids)]
    return frozenset([*(text for text in said if is_telling(text)), *(memory.short_id for memory in going)])


def _with_parts(reader: Reader, chosen: Sequence[Memory]) -> list[Memory]:
    """Returns merged memories together with the parts they were merged from, if no part was chosen by itself."""
    ids = {memory.id for memory in chosen}
    parts = lineage.parts_of(reader, sorted(ids))
    whole = {part for some in parts.values() if ids.isdisjoint(some) for part in some}
    return [*chosen, *memories.of_ids(reader, sorted(whole))]


def _with_same_words(reader: Reader, asker: Asker, found: Sequence[Memory]) -> list[Memory]:
    """Returns these memories and those that say the same: versions that say less or more, or come from the same
    messages, and twins that were learned from a message of theirs."""
    going = {memory.id: memory for memory in found}
    may_erase = choose.may_erase(reader, asker)
    told_by = lineage.source_ids(reader, list(going))
    beside = lineage.taught_by(reader, asker.scope, frozenset[int]().union(*told_by.values()))
    sources = lineage.source_ids(reader, [row.id for row in beside]) | told_by
    for memory in found:
        value = keys.normalise_value(memory.value)
        versions = [row for row in lineage.versions(reader, asker.scope, memory) if row.id not in going]
        sources |= lineage.source_ids(reader, [row.id for row in versions if row.id not in sources])
        for row in versions:
            other, alone = keys.normalise_value(row.value), sources[row.id] and sources[row.id] <= sources[memory.id]
            if may_erase(row) and (other in value or value in other or alone):
                going[row.id] = row
        for row in beside:
            if row.id not in going and sources[row.id] & sources[memory.id] and _says_same(memory, row):
                going |= {row.id: row} if may_erase(row) else {}
    return list(going.values())


def _says_same(memory: Memory, other: Memory) -> bool:
    """Returns whether two memories differ only in words for their kind: "walnuts" and "allergic to walnuts"."""
    if memory.owner_id != other.owner_id or memory.subject != other.subject or memory.follows or other.follows:
        return False
    if choose.OPPOSITES.get(memory.key) == other.key:
        return False
    kind = {word for row in (memory, other) for word in words.tokens(f"{row.key} {cues(row.key)}")}
    value, others = (set(words.query_terms(row.value)) for row in (memory, other))
    return bool(value & others) and (value ^ others) <= kind


def _left_without_words(
    reader: Reader, asker: Asker, going: Sequence[Memory], messages: Collection[int]
) -> list[Memory]:
    """Returns events behind derived memories whose own words all go with `messages`: they would tell the same."""
    may_erase = choose.may_erase(reader, asker)
    ids = {memory.id for memory in going}
    behind = {
        event.id
        for memory in going
        if memory.origin == "derived"
        for event in lineage.parents(reader, asker.scope, memory.id)
        if event.kind == "event" and event.id not in ids and may_erase(event)
    }
    return [event for event in lineage.resting_on(reader, sorted(messages)) if event.id in behind] if behind else []


def _said_again(reader: Reader, asker: Asker, message_ids: frozenset[int]) -> frozenset[int]:
    """Returns the person's other messages here with exactly the same text, though nothing was learned from them."""
    telling = [text for text in forgettable.texts(reader, message_ids, by=asker.selves) if is_telling(text)]
    return frozenset(forgettable.said_again(reader, telling, places=asker.scope.owners, authors=asker.selves))


def _look(reader: Reader, asker: Asker, going: Sequence[Memory], messages: frozenset[int], before: Looked) -> Looked:
    """Searches the bot's messages for quotes in all places where this is told, except those the look `before` found."""
    owners = {memory.owner_id for memory in going} | forgettable.owners_of(reader, messages)
    sessions = frozenset(forgettable.sessions_of(reader, sorted(owners), asker.selves))
    texts = telling_texts(reader, going, messages)
    if (before.quotes.texts, before.sessions) != (texts, sessions):
        before = Looked(quotes=Quotes(texts))
    quoting = {
        row["id"]
        for row in _answers(reader, asker, going, sessions, after=before.upto)
        if before.quotes.stand_in(f"{row['text']} {row['tool_calls'] or ''}")
    }
    upto = history.last_ids(reader, sessions)
    return Looked(quotes=before.quotes, sessions=sessions, upto=upto, quoting=before.quoting | quoting)


def _answers(
    reader: Reader, asker: Asker, going: Sequence[Memory], sessions: Collection[int], *, after: Mapping[int, int]
) -> Iterator[Row]:
    """Yields the bot's messages in these sessions; in a group those to this person, or given a memory that goes.

    Otherwise anybody could erase answers to others, by having a common phrase remembered and forgotten.
    """
    governed = choose.governed(reader, asker)
    given = {turn for memory in going for turn in recalls.turns_with(reader, memory.id)}
    for session_id in sessions:
        last = after.get(session_id, 0)
        while rows := forgettable.answers(
            reader, session_id, after=last, owners=governed, turns=given, authors=asker.selves, limit=_READ
        ):
            yield from rows
            last = rows[-1]["id"]
