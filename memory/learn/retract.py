"""Applies a message's retractions to memory: facts that end, and facts that others replace.

Invariants: only `end` and `doubt` write. Only current facts that the speaker may change are touched, and only those
whose value the message names, the only ones of the kind it speaks of, or those of the message before. An imported,
pinned or confirmed fact ends like any other: the person says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from memory import keys, profile
from memory.learn import current_value, extract, keep
from memory.learn.extract import Proposal
from memory.learn.offline import patterns
from memory.learn.offline.changes import Changes, Ended, changes, to_forget
from memory.learn.offline.changes import put_right as changed
from memory.learn.offline.rescheduling import names_time, rescheduled, without_times
from memory.learn.wishes import is_for_work
from memory.mailbox import inbox
from memory.recall.cues import cues
from memory.scope import Scope
from memory.store import history, lineage, memories, passages
from memory.store.database import Keys, Reader, Transaction, of_owner
from memory.store.history import Message
from memory.store.memories import Draft, Memory
from memory.text.times.clock import local_date
from memory.text.times.spans import anchor
from memory.text.words import query_terms, tokens

#: The most facts looked at in one turn; nobody has told as many about themselves.
_MOST: Final = 2_000
#: The milliseconds after a statement, and the messages, within which words about "it" are about this statement.
_LATELY: Final = 3_600_000
_BEFORE: Final = 2
#: The messages before one about a plan that moves, of which one may have told it.
_ABOUT_IT: Final = 4
#: The most messages before one that are looked at for the beginning of a game ("you're a pirate"), or a task.
_IN_PLAY: Final = 6
#: The most messages in which the corrected words are looked for.
_SAID: Final = 20
#: The date that was added to a value for a day that it names.
_DAY: Final = re.compile(r" \(\d{4}-\d\d-\d\d(?:/\d{4}-\d\d-\d\d)?\)")
#: The signs of a question; Japanese ones may do without.
_ASKS: Final = re.compile(r"[?？]|か(?:。|$)", re.MULTILINE)
#: The signs that end a sentence.
_ENDS: Final = " .!。！…~"
_COMMA: Final = re.compile(r"[,，、] ?")
_WORK: Final = {"occupation", "employer"}
#: Terms of Japanese that many words share: single kana, and endings in hiragana.
_KANA: Final = re.compile(r"[\u3041-\u30ff]|[\u3041-\u309f]{2}")
#: Kinds of rows that end with the rows they were derived from.
_DERIVED: Final = ("fact", "style", "event", "reflection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The changes that a turn's messages make: new facts with the rows each replaces, facts that end, and facts that
    they contradict without a value that could be read. If it is `unplaced`, they ask to move a plan that is not clear.
    """

    proposals: tuple[Proposal, ...] = ()
    ended: tuple[Memory, ...] = ()
    doubted: tuple[Memory, ...] = ()
    unplaced: bool = False


def touched(scope: Scope, revision: Revision) -> Keys:
    """Returns the names of the rows that `end` and `keep.keep` touch for a revision; none if it changes nothing.

    A person's fact about themselves from a group may end in their private chat, and it is the group's.
    """
    rows = (*revision.ended, *revision.doubted)
    if not (revision.proposals or rows):
        return []
    return sorted({*keep.touched(scope), *(of_owner(memory.owner_id) for memory in rows)})


def read(
    reader: Reader, messages: Sequence[Message], *, scope: Scope, timezone: str, ending: Set[int] = frozenset()
) -> Revision:
    """Returns the facts that patterns find in messages of the scope's speaker, and those taken back.

    Messages whose ids are in `ending` are guessed to say that something is over; this counts if no pattern finds
    anything.
    """
    own = [message for message in messages if message.role == "user" and message.learn]
    revisions = [
        _read(reader, message, scope, timezone, is_ending=message.id in ending)
        for message in own
        if to_forget(message.text) is None
    ]
    return Revision(
        proposals=tuple(proposal for revision in revisions for proposal in revision.proposals),
        ended=tuple({memory.id: memory for revision in revisions for memory in revision.ended}.values()),
        doubted=tuple({memory.id: memory for revision in revisions for memory in revision.doubted}.values()),
        unplaced=any(revision.unplaced for revision in revisions),
    )


def _read(reader: Reader, message: Message, scope: Scope, timezone: str, *, is_ending: bool) -> Revision:
    found = _facts(reader, message, scope, timezone)
    back = changes(message.text)
    if back.declines:
        return Revision()
    moves = back.moves and names_time(message.text)
    back, found = replace(back, moved=back.moved or moves), [] if moves else found
    if back.revoked or back.dismissed:
        told = _just_told(reader, scope, message, unasked=not back.revoked)
        stated = [memory for memory in told if back.revoked or memory.key == "plan"]
        return Revision(ended=tuple(stated), doubted=tuple(stated))  # nor was it true before
    if not (back.ended or back.denied or back.corrects or back.off or back.moved):
        if not is_ending or found:
            return Revision(proposals=tuple(found))
        live = [memory for memory in _own(reader, scope) if memory.key != "pet" or back.parted]
        return Revision(ended=tuple(_spoken_of(message.text, live)))
    live, earlier = _own(reader, scope), _told_before(reader, scope, message)
    if back.corrects and not found:
        found = _facts(reader, replace(message, text=back.rest), scope, timezone)
    found, over = _revised(found, back, live, message)
    if back.ended and not over:
        over = _plans_of(back.ended, live, earlier, scope, timezone)
    if live and not (found or over):
        if back.off or back.moved:
            found, over = _called_off(back, live, earlier, message, scope, timezone)
        elif back.corrects:
            found = _turned(back, live, earlier[:1], message, scope, timezone)
            found = found or _put_right(back, live[0], earlier, message, scope, timezone)
    elif len(over) == 1 and back.denied and not (found or back.ended or back.off):
        found = _put_right(back, over[0], earlier, message, scope, timezone)
        # A plan whose new time can't be read stays as it is.
        over = [] if found or (over[0].key == "plan" and back.denied[0].new) else over
    doubted: list[Memory] = []
    if back.contradicts and not over:
        doubted = _contradicted(_just_told(reader, scope, message, unasked=True), live, message, found)
    elif back.moved and not (moves or found or over):
        plans = [memory for memory in live if memory.key == "plan"]
        doubted = [plan for plan in plans if _is_about(message.text, plan, (), scope, timezone)][:1]
        doubted = doubted or (_plan_told_lately(plans, earlier, message) if names_time(message.text) else [])
    return Revision(
        proposals=tuple(found),
        ended=tuple(over),
        doubted=tuple(memory for memory in doubted if not (memory.pinned or memory.confirmed)),
        unplaced=moves and not (found or over),
    )


def _facts(reader: Reader, message: Message, scope: Scope, timezone: str) -> list[Proposal]:
    """Returns what a message states: nothing in a game, and no standing wish while a text is worked on."""
    found = extract.read([message], scope=scope, timezone=timezone)
    if not found:
        return []
    earlier = _told_before(reader, scope, message)[:_IN_PLAY]
    texts = [before.text for before in earlier if message.said_at - before.said_at <= _LATELY]
    if patterns.is_in_play(texts):
        return []
    work = any(proposal.draft.key == "instruction" for proposal in found) and is_for_work(message.text, texts)
    return [proposal for proposal in found if not (work and proposal.draft.key == "instruction")]


def _plan_told_lately(plans: Sequence[Memory], earlier: Sequence[Message], message: Message) -> list[Memory]:
    """Returns the one plan of the last messages: a message that moves "it" may mean that."""
    at = [before.said_at for before in earlier[:_ABOUT_IT] if message.said_at - before.said_at <= _LATELY]
    lately = [plan for plan in plans if plan.learned_at in at]
    return lately if len(lately) == 1 else []


def _just_told(reader: Reader, scope: Scope, message: Message, *, unasked: bool) -> list[Memory]:
    """Returns the speaker's facts that the message just before taught, if it was said lately.

    Words of others, or a command, in between mean that the message is about these. So does, if the facts must be
    `unasked`, a question of the bot.
    """
    said = passages.said_last(reader, scope, limit=_SAID)
    before = next((earlier for earlier in said if earlier.id < message.id), None)
    if before is None or before.session_id != message.session_id or message.said_at - before.said_at > _LATELY:
        return []
    between = history.between(reader, message.session_id, before.id + 1, message.id - 1)
    asked = any(words.role == "assistant" and _ASKS.search(words.text) for words in between)
    if (unasked and asked) or any(words.role == "user" for words in between):
        return []
    if before.turn_id and message.turn_id and inbox.has_request_between(reader, before.turn_id, message.turn_id):
        return []
    taught = {memory.id for memory in lineage.taught_by(reader, scope, [before.id])}
    return [memory for memory in _own(reader, scope) if memory.id in taught]


def _contradicted(
    last: Sequence[Memory], live: Sequence[Memory], message: Message, found: Sequence[Proposal]
) -> list[Memory]:
    """Returns the facts told `last`, or those with a word of the message, if what is found is of another kind.

    A message whose words are in earlier facts alone is about these, which it may not contradict.
    """
    words = set(filter(_tells, query_terms(message.text)))
    named = [memory for memory in live if words & set(tokens(memory.value))]
    rows = [memory for memory in last if memory in named] or ([] if named else last)
    return list(rows) if {memory.key for memory in rows}.isdisjoint(proposal.draft.key for proposal in found) else []


def doubt(tx: Transaction, scope: Scope, doubted: Sequence[Memory], *, now: int, new_id: Callable[[], str]) -> None:
    """Makes facts of the speaker unsure, until they are told again or else for ever."""
    for memory in memories.by_ids(tx, scope, [memory.id for memory in doubted]):
        memories.set_values(tx, memory.id, {"confidence": current_value.UNSURE, "confirmed": 0})
        _refresh(tx, scope, memory, now=now, new_id=new_id)


def lift(
    tx: Transaction, scope: Scope, messages: Sequence[Message], *, timezone: str, now: int, new_id: Callable[[], str]
) -> list[Memory]:
    """Makes the facts sure again that these messages made unsure and that were told plainly. Returns them.

    Nothing notes whose words made a fact unsure, so the messages are read again; call it while they stand.
    """
    doubted = [memory for memory in read(tx, messages, scope=scope, timezone=timezone).doubted if memory.unsure]
    tellings = memories.tellings(tx, [memory.id for memory in doubted])
    plain = [memory for memory in doubted if any(not each.unsure for each in tellings[memory.id])]
    for memory in plain:
        memories.set_values(tx, memory.id, {"confidence": memories.SURE})
        _refresh(tx, scope, memory, now=now, new_id=new_id)
    return plain


def _refresh(tx: Transaction, scope: Scope, memory: Memory, *, now: int, new_id: Callable[[], str]) -> None:
    slot = keys.profile_slot(category=memory.category, key=memory.key)
    if slot and memory.owner_id in scope.own:
        profile.refresh(tx, scope, memory.owner_id, slot, now=now, new_id=new_id)


def end(
    tx: Transaction, scope: Scope, ended: Sequence[Memory], *, at: int, now: int, new_id: Callable[[], str]
) -> None:
    """Ends facts of the speaker at `at`, with the rows derived from them, and brings the profile up to date."""
    rows = memories.by_ids(tx, scope, [memory.id for memory in ended])
    last = current_value.told_last(tx, rows)
    for memory in rows:
        if memory.valid_until is not None or last[memory.id] > at:
            continue
        memories.close(tx, memory.id, at=at)
        memories.outdate(tx, memory, kinds=_DERIVED, by=None, at=at)
        _refresh(tx, scope, memory, now=now, new_id=new_id)


def _own(reader: Reader, scope: Scope) -> list[Memory]:
    found = memories.current(reader, scope, ("fact",), limit=_MOST)
    own = [one for one in found if one.owner_id in scope.own or one.author_id in scope.speakers]
    return sorted(own, key=lambda one: -one.learned_at)


def _revised(
    found: list[Proposal], back: Changes, live: Sequence[Memory], message: Message
) -> tuple[list[Proposal], list[Memory]]:
    """Returns what is found without what the message takes back, and the facts that are over."""
    # A pet that is ill, lost or asleep is still one's pet.
    over = [memory for one in back.ended for memory in _meant(one, live) if memory.key != "pet" or back.parted]
    if back.contradicts:  # "no nuts for me" is no end of an allergy
        words = set(tokens(message.text))
        over = [memory for memory in over if memory.key != "allergy" or words & set(tokens(cues("allergy")))]
    gone = {memory.id for memory in over}
    # "I'm not a vegan any more" is no statement of a diet.
    found = [one for one in found if not any(_says(one.draft, memory) for memory in over)]
    for wrong in back.denied:
        named = [
            memory for memory in _naming(wrong.what, live) if memory.id not in gone and not _is_repeated(memory, found)
        ]
        found = [one for one in found if not any(_says(one.draft, memory) for memory in named)]
        for memory in named:
            gone.add(memory.id)
            place = next((n for n, one in enumerate(found) if one.draft.key == memory.key), None)
            if place is None:
                over.append(memory)
            else:
                found[place] = replace(found[place], replaces=(*found[place].replaces, memory.id))
    if back.corrects and back.sure:
        lately = [one for one in live if one.id not in gone and message.said_at - one.learned_at <= _LATELY]
        found = [_replacing(one, lately) for one in found]
    return found, over


def _called_off(
    back: Changes, live: Sequence[Memory], told: Sequence[Message], message: Message, scope: Scope, timezone: str
) -> tuple[list[Proposal], list[Memory]]:
    """Returns a plan with its new time, or the plan told last as one that is over, if a message says this of "it".

    If the message names what is cancelled, only a plan that it names is meant.
    """
    plans = [one for one in live if one.key == "plan"]
    if back.moved:
        plan = next((row for row in plans if _is_about(message.text, row, told, scope, timezone)), None)
        draft = _at_new_time(plan, message.text, message, scope, timezone) if plan is not None else None
        proposals = [Proposal(draft=draft, message_id=message.id, replaces=(plan.id,))] if plan and draft else []
        return proposals, []
    plan = next(iter(_naming(back.off_what, plans) if query_terms(back.off_what) else plans), None)
    if plan is None or (message.said_at - plan.learned_at > _LATELY and not back.off_what):
        return [], []
    return [], [plan]


def _is_about(text: str, plan: Memory, told: Sequence[Message], scope: Scope, timezone: str) -> bool:
    """Returns whether a text that names a time speaks of a plan: by a word beside the times, or right after it."""
    words, known = (
        set(filter(_tells, query_terms(without_times(_DAY.sub("", words))))) for words in (text, plan.value)
    )
    return bool(words & known) or bool(_stated([plan], told[:1], scope, timezone))


def _at_new_time(plan: Memory, text: str, message: Message, scope: Scope, timezone: str) -> Draft | None:
    told, today = date.fromisoformat(plan.local_date), local_date(message.said_at, timezone)
    moved = rescheduled(_DAY.sub("", plan.value), text, told=told, today=today)
    if moved is None:
        return None
    value = anchor(moved.plan, moved.asked, ahead=True)[: keys.VALUE_LIMIT]
    return replace(_with_value(plan, plan.value, message, scope), value=value)


def _put_right(
    back: Changes, last: Memory, told: Sequence[Message], message: Message, scope: Scope, timezone: str
) -> list[Proposal]:
    """Returns the fact told last with the corrected value; nothing if the value is no plain one of its kind.

    The value must fit into the words by which the fact was told, a message or two before.
    """
    denied = next((one for one in back.denied if one.new), None)
    new = denied.new if denied else back.new
    if not new:
        return []
    if last.key == "plan":
        if not _is_about(denied.what if denied else "", last, told, scope, timezone):
            return []
        plan = _DAY.sub("", last.value)
        if names_time(new):
            draft = _at_new_time(last, new, message, scope, timezone)
        else:
            exact = denied is not None and denied.what in plan
            value = (
                plan.replace(denied.what, new, 1) if denied and exact else changed(plan, new, near=True, slips=False)
            )
            draft = _with_value(last, value, message, scope) if value is not None else None
        drafts = [draft] if draft is not None else []
    else:
        near = told[: 1 if last.category == "health" and denied is None else _BEFORE]
        place = next((one for one in near if last.value in one.text), None)
        words = last.value if denied is None or denied.what not in last.value else denied.what
        text = place.text.replace(words, new, 1) if place is not None else ""
        read = extract.read([replace(message, text=text)], scope=scope, timezone=timezone)
        drafts = [one.draft for one in read if one.draft.key == last.key and new in one.draft.value]
    return [Proposal(draft=draft, message_id=message.id, replaces=(last.id,)) for draft in drafts[:1]]


def _turned(
    back: Changes, live: Sequence[Memory], told: Sequence[Message], message: Message, scope: Scope, timezone: str
) -> list[Proposal]:
    """Reads the message before and a change of mind ("no, it's green") as one sentence.

    Returns the one fact that replaces one of its kind by that; nothing if the message does not read so.
    """
    stated = _stated(live, told, scope, timezone)
    ends = [len(message.text), *[comma.start() for comma in _COMMA.finditer(message.text)][1::-1]]
    # "Sorry janne, with an e": what follows may tell more.
    for end in ends if stated else ():
        text = f"{told[0].text.rstrip(_ENDS)}, {message.text[:end].lstrip()}"
        anew = extract.read([replace(message, text=text)], scope=scope, timezone=timezone)
        gone = [memory for memory in stated if not any(_is_same(one.draft, memory) for one in anew)]
        new = [one for one in anew if not any(_is_same(one.draft, memory) for memory in stated)]
        # "Sorry, phone call" is no taste.
        if len(gone) == len(new) == 1 and gone[0].key == new[0].draft.key:
            return [replace(new[0], replaces=(gone[0].id,))] if back.sure or gone[0].category != "preference" else []
    return []


def _stated(live: Sequence[Memory], told: Sequence[Message], scope: Scope, timezone: str) -> list[Memory]:
    drafts = [one.draft for one in extract.read(told, scope=scope, timezone=timezone)]
    return [memory for memory in live if any(_is_same(draft, memory) for draft in drafts)]


def _plans_of(
    ended: Sequence[Ended], live: Sequence[Memory], told: Sequence[Message], scope: Scope, timezone: str
) -> list[Memory]:
    """Returns the plans of the message told last that names what is over, if the plans themselves don't name it."""
    names = [words for one in ended if (words := set(query_terms(one.what)))]
    named = [one for one in told if any(words <= set(tokens(one.text)) for words in names)][:1]
    return [memory for memory in _stated(live, named, scope, timezone) if memory.key == "plan"]


def _is_same(draft: Draft, memory: Memory) -> bool:
    return (draft.key, draft.value) == (memory.key, memory.value)


def _told_before(reader: Reader, scope: Scope, message: Message) -> list[Message]:
    said = passages.said_last(reader, scope, limit=_SAID)
    return [one for one in said if one.id < message.id and len(one.text) <= keys.VALUE_LIMIT]


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
        by_value = set(filter(_tells, words & set(tokens(memory.value))))
        by_kind = words & set(tokens(f"{memory.key} {cues(memory.key)}"))
        shares.append((len(by_value), len(by_kind), memory))
    most = max((share[:2] for share in shares), default=(0, 0))
    meant = [memory for *share, memory in shares if tuple(share) == most != (0, 0)]
    return meant if len(meant) == 1 or {memory.key for memory in meant} == _WORK else []


def _is_kind(what: str, kind: Sequence[Memory]) -> bool:
    words = set(query_terms(what))
    return bool(kind) and all(words & set(tokens(f"{memory.key} {cues(memory.key)}")) for memory in kind)


def _naming(what: str, live: Sequence[Memory]) -> list[Memory]:
    words = set(query_terms(what))
    shares: list[tuple[float, Memory]] = []
    for memory in live:
        value = set(query_terms(memory.value))
        shared = {word for word in words & value if word.isdigit() or _tells(word)}
        if not shared:
            continue
        rest = words - value - set(tokens(f"{memory.key} {cues(memory.key)}"))
        share = len(shared) / (len(shared) + min(len(rest), len(value - words)))
        shares.append((share, memory))
    best = max((share for share, _ in shares), default=0.0)
    return [memory for share, memory in shares if share == best >= 0.5]


def _tells(word: str) -> bool:
    return (len(word) > 1 or not word.isascii()) and _KANA.fullmatch(word) is None


def _is_repeated(memory: Memory, found: Sequence[Proposal]) -> bool:
    """Returns whether words that deny are the fact itself: "I don't like tea" ends no dislike of tea."""
    same = [one.draft for one in found if one.draft.key == memory.key]
    if memory.key == "dislikes":
        return not same or any(_says(draft, memory) for draft in same)
    return memory.key == "diet" and any(_says(draft, memory) for draft in same)


def _says(draft: Draft, memory: Memory) -> bool:
    return draft.key == memory.key and set(tokens(draft.value)) <= set(tokens(memory.value))


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
