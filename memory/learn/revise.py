"""Applies a message's retractions to memory: facts that end, and facts that others replace.

Invariants: only `end` writes. Only current facts that the speaker may change are touched, and only those whose value
the message names, or the only ones of the kind it speaks of. An imported, pinned or confirmed fact ends like any other:
the person says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from memory import keys, profile
from memory.learn import extract, holding, keep
from memory.learn.extract import Proposal
from memory.learn.offline.changes import Changes, Denied, Ended, changes, to_forget
from memory.learn.offline.changes import put_right as changed
from memory.recall.cues import cues
from memory.scope import Scope
from memory.store import memories, passages
from memory.store.database import Keys, Reader, Transaction, of_owner
from memory.store.history import Message
from memory.store.memories import Draft, Memory
from memory.text.times.spans import anchor
from memory.text.words import query_terms, tokens

#: The most facts looked at in one turn; nobody has told as many about themselves.
_MOST: Final = 2_000
#: Facts tried for a correction that names none.
_NEAREST: Final = 3
#: The most messages in which the corrected words are looked for.
_SAID: Final = 20
#: The date that was added to a value for a day that it names.
_DAY: Final = re.compile(r" \(\d{4}-\d\d-\d\d(?:/\d{4}-\d\d-\d\d)?\)")
#: The most words of a message that says only a correction, and the length of the longest word that means little.
_LITTLE: Final = 3
_EMPTY: Final = 3
_KATAKANA: Final = re.compile(r"[\u30a1-\u30ff]*")
_WORK: Final = {"occupation", "employer"}
#: Kinds of rows that end with the rows they were derived from.
_DERIVED: Final = ("fact", "style", "event", "reflection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The changes that a turn's messages make: new facts with the rows each replaces, and facts that end."""

    proposals: tuple[Proposal, ...] = ()
    ended: tuple[Memory, ...] = ()


def touched(scope: Scope, revision: Revision) -> Keys:
    """Returns the names of the rows that `end` and `keep.keep` touch for a revision; none if it changes nothing.

    A person's fact about themselves from a group may end in their private chat, and it is the group's.
    """
    if not (revision.proposals or revision.ended):
        return []
    return sorted({*keep.touched(scope), *(of_owner(memory.owner_id) for memory in revision.ended)})


def read(
    reader: Reader, messages: Sequence[Message], *, scope: Scope, timezone: str, ending: Set[int] = frozenset()
) -> Revision:
    """Returns the facts that patterns find in messages of the scope's speaker, and those taken back.

    Messages whose ids are in `ending` are guessed to say that something is over; this counts if no pattern finds
    anything.
    """
    proposals: list[Proposal] = []
    ended: dict[int, Memory] = {}
    for message in messages:
        if message.role != "user" or not message.learn or to_forget(message.text) is not None:
            continue
        found = extract.read([message], scope=scope, timezone=timezone)
        back = changes(message.text)
        if not (back.ended or back.denied or back.corrects or back.now):
            proposals += found
            if message.id in ending and not found:
                ended |= {memory.id: memory for memory in _spoken_of(message.text, _own(reader, scope))}
            continue
        live = _own(reader, scope)
        if back.corrects and not back.sure and not _bears_on(message, live, _told_before(reader, scope, message)):
            back = replace(back, corrects=False)
        if back.corrects and not found:
            found = extract.read([replace(message, text=back.rest)], scope=scope, timezone=timezone)
        found, over = _revised(found, back, live, message, scope=scope, timezone=timezone)
        if not (found or over):
            told = [one for one in _told_before(reader, scope, message) if back.corrects or _denied_in(back, one)]
            found = _noted(back, told, message, scope=scope, timezone=timezone) if back.corrects or told else []
        found = found or _from_now(back, over, _told_before(reader, scope, message), message, scope, timezone=timezone)
        proposals += found
        ended |= {memory.id: memory for memory in over}
    return Revision(proposals=tuple(proposals), ended=tuple(ended.values()))


def end(
    tx: Transaction, scope: Scope, ended: Sequence[Memory], *, at: int, now: int, new_id: Callable[[], str]
) -> None:
    """Ends facts of the speaker at `at`, with the rows derived from them, and brings the profile up to date."""
    rows = memories.by_ids(tx, scope, [memory.id for memory in ended])
    last = holding.told_last(tx, rows)
    for memory in rows:
        if memory.valid_until is not None or last[memory.id] > at:
            continue
        memories.close(tx, memory.id, at=at)
        memories.outdate(tx, memory, kinds=_DERIVED, by=None, at=at)
        slot = keys.profile_slot(category=memory.category, key=memory.key)
        if slot and memory.owner_id in scope.own:
            profile.refresh(tx, scope, memory.owner_id, slot, now=now, new_id=new_id)


def _own(reader: Reader, scope: Scope) -> list[Memory]:
    found = memories.current(reader, scope, ("fact",), limit=_MOST)
    own = [one for one in found if one.owner_id in scope.own or one.author_id in scope.speakers]
    return sorted(own, key=lambda one: -one.learned_at)


def _revised(
    found: list[Proposal], back: Changes, live: Sequence[Memory], message: Message, *, scope: Scope, timezone: str
) -> tuple[list[Proposal], list[Memory]]:
    over = [memory for one in back.ended for memory in _meant(one, live)]
    gone = {memory.id for memory in over}
    # "I'm not a vegan any more" is no statement of a diet.
    found = [one for one in found if not any(_says(one.draft, memory) for memory in over)]
    for wrong in back.denied:
        named = [memory for memory in _naming(wrong.what, live) if memory.id not in gone]
        found = [one for one in found if not any(_says(one.draft, memory) for memory in named)]
        for memory in named:
            gone.add(memory.id)
            new = _instead(memory, wrong, found)
            if new is None:
                over.append(memory)
            elif isinstance(new, int):
                found[new] = replace(found[new], replaces=(*found[new].replaces, memory.id))
            else:
                found.append(
                    Proposal(
                        draft=_with_value(memory, new, message, scope), message_id=message.id, replaces=(memory.id,)
                    )
                )
    if back.corrects and not back.new.isascii() and not over and (near := _nearest(back.new, live)) is not None:
        value = _DAY.sub("", near.value)
        value = changed(value, back.new, near=True, slips=False) or _with_part(value, back.new)
        draft = _with_value(near, value, message, scope)
        found = [one for one in found if one.draft.value != back.new]
        found.append(Proposal(draft=draft, message_id=message.id, replaces=(near.id,)))
    elif back.corrects:
        left = [memory for memory in live if memory.id not in gone]
        found = [_replacing(one, left) for one in found]
        # The wrong value is named: only a fact that holds it can be corrected.
        if not (found or over or any(one.new for one in back.denied)):
            found = _put_right(back, left, message, scope)
    return found, over


def _put_right(back: Changes, live: Sequence[Memory], message: Message, scope: Scope) -> list[Proposal]:
    said = back.new or back.rest
    words = set(query_terms(message.text))
    shares = [(len(words & set(tokens(f"{one.key} {cues(one.key)} {one.value}"))), one) for one in live]
    # The sort keeps the order of `live`: the newest first.
    for share, memory in sorted(shares, key=lambda each: -each[0])[:_NEAREST]:
        near = bool(share or back.new)
        value = changed(_DAY.sub("", memory.value), said, near=near, slips=back.sure)
        if value is None and share and back.new and not _shares_value(memory, message.text):
            value = back.new
        elif value is None and back.new and not share and memory is live[0]:
            value = _with_name(memory, back.new)
        if value is not None and keys.normalise_value(value) != keys.normalise_value(memory.value):
            return [
                Proposal(draft=_with_value(memory, value, message, scope), message_id=message.id, replaces=(memory.id,))
            ]
    return []


def _from_now(
    back: Changes, over: Sequence[Memory], told: Sequence[Message], message: Message, scope: Scope, *, timezone: str
) -> list[Proposal]:
    """Returns the fact that holds from now on: in the place of the one that is over, or as a note on earlier words."""
    if back.instead and len(over) == 1:
        return [Proposal(draft=_with_value(over[0], back.instead, message, scope), message_id=message.id)]
    words = set(query_terms(back.now))
    near = over or any(words & set(tokens(one.text)) for one in told)
    return extract.noted(back.now, message, scope=scope, timezone=timezone) if near else []


def _with_name(memory: Memory, name: str) -> str | None:
    """Returns the value of a fact about a pet, a relative or a favourite with another name; None for other facts."""
    if memory.key == "pet" or memory.key in keys.RELATIONS:
        return " ".join([*memory.value.split()[:-1], name])
    return name if memory.key.startswith("favourite") else None


def _shares_value(memory: Memory, text: str) -> bool:
    shared = set(query_terms(memory.value)) & set(tokens(text))
    return any(len(word) > 1 or word.isascii() for word in shared)


def _told_before(reader: Reader, scope: Scope, message: Message) -> list[Message]:
    said = passages.said_last(reader, scope, limit=_SAID)
    return [one for one in said if one.id < message.id and len(one.text) <= keys.VALUE_LIMIT]


def _bears_on(message: Message, live: Sequence[Memory], told: Sequence[Message]) -> bool:
    words = set(query_terms(message.text))
    known = {term for text in (*(one.value for one in live), *(one.text for one in told)) for term in query_terms(text)}
    return len(words) <= _LITTLE or bool({word for word in words & known if len(word) > _EMPTY or not word.isascii()})


def _denied_in(back: Changes, told: Message) -> bool:
    said = set(tokens(told.text))
    return any(wrong.new and set(query_terms(wrong.what)) <= said for wrong in back.denied)


def _noted(back: Changes, told: Sequence[Message], message: Message, *, scope: Scope, timezone: str) -> list[Proposal]:
    words = set(query_terms(message.text))
    nearest = max(told, key=lambda one: (len(words & set(tokens(one.text))), one.id), default=None)
    said = back.new or back.rest
    if nearest is not None:
        for wrong in back.denied:
            if wrong.new and _denied_in(back, nearest):
                right = _substituted(nearest.text, wrong.what, wrong.new)
                return extract.noted(right, message, scope=scope, timezone=timezone)
        near = bool(back.new or words & set(tokens(nearest.text)))
        right = changed(nearest.text, said, near=near, slips=back.sure) or ""
        if right:
            return extract.noted(right, message, scope=scope, timezone=timezone)
    said = back.rest or back.new
    # "Sorry, wrong window" corrects nothing.
    worth = back.sure and len(query_terms(said)) > 1
    return extract.noted(said, message, scope=scope, timezone=timezone) if worth else []


def _meant(ended: Ended, live: Sequence[Memory]) -> list[Memory]:
    kind = [memory for memory in live if memory.key in ended.keys]
    if ended.what:
        named = _naming(ended.what, kind) or _naming(ended.what, live)
        # A person who quits nursing no longer works at the hospital either.
        if named and set(named) < set(kind) and len({memory.key for memory in kind}) == len(kind) == len(_WORK):
            return kind if {memory.key for memory in kind} == _WORK else named
        if named or not _is_kind(ended.what, kind):
            return named
    return kind if len(kind) <= 2 else kind[:1]


def _spoken_of(text: str, live: Sequence[Memory]) -> list[Memory]:
    """Returns the one fact that a message speaks of, or the two facts of one job; nothing if it may be of several.

    A fact is spoken of by words of its value, the more the surer, or else by words that ask for its kind.
    """
    words = set(query_terms(text))
    shares = []
    for memory in live:
        by_value = {word for word in words & set(tokens(memory.value)) if len(word) > 1 or not word.isascii()}
        by_kind = words & set(tokens(f"{memory.key} {cues(memory.key)}"))
        shares.append((len(by_value), len(by_kind), memory))
    most = max((share[:2] for share in shares), default=(0, 0))
    meant = [memory for *share, memory in shares if tuple(share) == most != (0, 0)]
    return meant if len(meant) == 1 or {memory.key for memory in meant} == _WORK else []


def _is_kind(what: str, kind: Sequence[Memory]) -> bool:
    words = set(query_terms(what))
    return bool(kind) and all(words & set(tokens(f"{memory.key} {cues(memory.key)}")) for memory in kind)


def _naming(what: str, live: Sequence[Memory]) -> list[Memory]:
    """Returns the facts whose value holds words of `what`: all words of either must stand in the other, or most."""
    words = set(query_terms(what))
    shares: list[tuple[float, Memory]] = []
    for memory in live:
        value = set(query_terms(memory.value))
        shared = {word for word in words & value if len(word) > 1 or word.isdigit() or not word.isascii()}
        if not shared:
            continue
        rest = words - value - set(tokens(f"{memory.key} {cues(memory.key)}"))
        share = len(shared) / (len(shared) + min(len(rest), len(value - words)))
        shares.append((share, memory))
    best = max((share for share, _ in shares), default=0.0)
    return [memory for share, memory in shares if share == best >= 0.5]


def _says(draft: Draft, memory: Memory) -> bool:
    return draft.key == memory.key and set(tokens(draft.value)) <= set(tokens(memory.value))


def _nearest(new: str, live: Sequence[Memory]) -> Memory | None:
    words = set(tokens(new))
    shared = [(len(words & set(tokens(memory.value))), memory) for memory in live]
    most = max((count for count, _ in shared), default=0)
    return next((memory for count, memory in shared if count == most > 0), None)


def _with_part(value: str, new: str) -> str:
    words = set(tokens(new))
    parts = value.split()
    place = max(range(len(parts)), key=lambda n: len(words & set(tokens(parts[n]))))
    return " ".join([*parts[:place], new, *parts[place + 1 :]])


def _instead(memory: Memory, wrong: Denied, found: Sequence[Proposal]) -> int | str | None:
    for place, one in enumerate(found):
        if one.draft.key == memory.key and not _says(one.draft, memory):
            return place
    if not wrong.new:
        return None
    value = _substituted(memory.value, wrong.what, wrong.new)
    return None if keys.normalise_value(value) == keys.normalise_value(memory.value) else value


def _substituted(value: str, old: str, new: str) -> str:
    place = value.casefold().find(old.casefold())
    if place >= 0:
        # "ベイ" stands for the whole of "ベイスターズ".
        end = place + len(old)
        if _KATAKANA.fullmatch(old) and (run := _KATAKANA.match(value, end)) is not None:
            end = run.end()
        return f"{value[:place]}{new}{value[end:]}"
    words = set(tokens(old))
    kept = [word for word in value.split() if not words & set(tokens(word))]
    return " ".join([*kept, new])


def _with_value(memory: Memory, value: str, message: Message, scope: Scope) -> Draft:
    return Draft(
        kind="fact",
        owner_id=scope.writes_to,
        author_id=scope.speaker_id,
        subject_id=memory.subject_id,
        subject=memory.subject,
        category=memory.category,
        topic=memory.topic,
        key=memory.key,
        value=_with_days(memory, value)[: keys.VALUE_LIMIT],
        importance=memory.importance,
        confidence=memory.confidence,
        origin="extracted",
        learned_at=message.said_at,
        local_date=memory.local_date,
    )


def _with_days(memory: Memory, value: str) -> str:
    today = date.fromisoformat(memory.local_date)
    return anchor(_DAY.sub("", value), today, ahead=memory.key == "plan")


def _replacing(proposal: Proposal, live: Sequence[Memory]) -> Proposal:
    draft = proposal.draft
    rivals = [memory for memory in live if memory.key == draft.key and not _says(draft, memory)]
    if draft.key == "age":
        # Whoever corrects a number means it, however far it is from the other.
        return replace(proposal, draft=replace(draft, origin="told"))
    if proposal.replaces or keys.is_single_valued(draft.key) or not rivals:
        return proposal
    shared = [memory for memory in rivals if set(query_terms(memory.value)) & set(query_terms(draft.value))]
    return replace(proposal, replaces=((shared or rivals)[0].id,))
