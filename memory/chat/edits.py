"""Edits that a person, or a tool on their behalf, may make to memory: one request, one transaction with its answer.

Invariants: every operation takes its rows through the scope it was opened with. The answer is queued and the request
closed in the transaction that holds the change. So "saved" is said only of what is saved, and a request taken up again
after a crash either happened with its answer or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from memory import keys
from memory.browse.why import Shown, shown
from memory.chat import doubts, retry, titles
from memory.chat.doubts import FactDoubt
from memory.chat.identities import Identities, Where, Who
from memory.chat.retry import UndoneTurn
from memory.context import Context, anew
from memory.errors import NotCurrent, NotFound, NotWished, NotYours, TooManyTags, UnfitTags
from memory.forgetting import blank_messages, choose, erase
from memory.forgetting.choose import Asker
from memory.jobs import compare, style
from memory.jobs.compare import DoubtAnswer, FactPair
from memory.learn import extract, extractions, keep, liked
from memory.learn.learner import Learner
from memory.mailbox import inbox, outbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.people.keyring import Keyring
from memory.recall import index
from memory.recall.cues import cues
from memory.reminders.reminding import Reminding
from memory.runtime import Runtime
from memory.scope import Scope
from memory.store import (
    attachments,
    chats,
    history,
    judgements,
    lineage,
    memories,
    passages,
    people,
    questions,
    word_columns,
)
from memory.store.attachments import Attached
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction
from memory.store.history import Message, Utterance
from memory.store.memories import Draft, Memory
from memory.store.questions import Question
from memory.text.guard import injection_flags
from memory.text.times import clock
from memory.text.words import query_terms, tokens

#: The kinds of derived memories that are not rebuilt whenever their sources change.
_DERIVED: Final = ("fact", "style", "event", "reflection")
#: If so many words of a text are not read as facts, the whole text is kept as a note, too.
_MORE: Final = 3
#: Builds the text that history keeps of a message, from its words and its attachments.
Compose: TypeAlias = Callable[[str, Sequence[Attached]], str]


class Edits:
    """The edits that `EditRequests.answer` and `Turns.act` hand to a request; never kept beyond it."""

    def __init__(
        self, tx: Transaction, context: Context, *, now: int, new_id: Callable[[], str], source_ids: Sequence[int] = ()
    ) -> None:
        self._tx = tx
        self._context = context
        self._now = now
        self._new_id = new_id
        self._source_ids = source_ids

    def remember(self, text: str, *, key: str | None = None) -> list[Memory]:
        """Keeps a text at a person's request. Returns the memories, or none if there is nothing in it to keep.

        Without a key, patterns find the kind of statement; a text that they can't read is kept as a note.
        """
        scope = self._context.scope
        if key:
            drafts = [self._told(key=keys.normalise_key(key), value=text)]
        else:
            drafts = extract.propose(text, scope=scope, said_at=self._now, timezone=self._context.timezone)
            drafts = [_as_told(draft) for draft in drafts]
            if _says_more(text, drafts):
                # A model that has it kept reads the message, too: it knows better what the facts in it are.
                drafts = [*([] if self._source_ids else drafts), self._told(key="note", value=text)]
        kept = []
        for draft in drafts:
            if not extract.worth_keeping(draft):
                continue
            memory_id = keep.keep(
                self._tx, scope, self._as_said(draft), source_ids=self._source_ids, now=self._now, new_id=self._new_id
            )
            if memory_id is not None:  # a person concerned may not want it learned
                kept.append(self._row(memory_id))
        return kept

    def correct(self, short_id: str, value: str) -> tuple[Memory, Memory]:
        """Replaces the value of a memory. Returns the old memory and the new one.

        The old memory keeps its dates, and memories derived from it end with it, unless a person has pinned or
        confirmed them. The same value again changes nothing and returns the memory twice. Raises `NotFound`,
        `NotYours`, `NotCurrent`, `Derived`, and `NotWished` if a person concerned wants nothing of the kind kept.
        """
        scope = self._context.scope
        old = self._current(short_id)
        if keys.normalise_value(old.value) == keys.normalise_value(value):
            return old, old
        # The first author stays the author: a correction must not move a row into another scope.
        draft = memories.draft_of(
            old,
            value=value[: keys.VALUE_LIMIT],
            flags=injection_flags(value),
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
            valid_from=None,
            confirmed=True,
        )
        by_speaker = replace(draft, author_id=scope.speaker_id)
        if not keep.may_be_kept(self._tx, by_speaker, self._source_ids, now=self._now):
            raise NotWished(f"The new value of {short_id} is not to be kept.")
        new_id = memories.insert(self._tx, draft, new_id=self._new_id, now=self._now)
        memories.add_sources(self._tx, new_id, self._source_ids)
        memories.supersede(self._tx, old.id, new_id, at=self._now)
        self._after_change(old, *memories.outdate(self._tx, old, kinds=_DERIVED, by=new_id, at=self._now))
        return old, self._row(new_id)

    def confirm(self, short_id: str) -> Memory:
        """Marks a memory as sure: it never fades and, if it had been merged, stands by itself again.

        Raises `NotFound`, `NotYours`, `NotCurrent` and `Derived`.
        """
        memory = self._current(short_id)
        self._confirm(memory)
        return self._row(memory.id)

    def pin(self, short_id: str, *, pinned: bool) -> Memory:
        """Makes a memory never fade and lead the known facts, or ends that. Raises the errors of `confirm`.

        What was unsure is confirmed by it: nobody wants a guess to lead.
        """
        memory = self._current(short_id)
        if pinned and memory.unsure:
            self._confirm(memory)
        memories.pin(self._tx, memory.id, pinned=pinned)
        self._after_change(memory, *(self._part(memory) if pinned else ()))
        return self._row(memory.id)

    def tag(self, short_id: str, tags: Sequence[str], *, tagged: bool) -> Memory:
        """Adds tags to a memory of one's own, or takes them away.

        Raises `UnfitTags`, `TooManyTags` and the errors of `confirm`.
        """
        memory = self._current(short_id)
        if not self._context.scope.is_own(memory.owner_id, memory.author_id):
            raise NotYours(f"{short_id} was told by somebody else.")
        if tagged and (unfit := keys.unfit_tags(tags)):
            raise UnfitTags(unfit)
        named = dict.fromkeys(filter(None, map(keys.tag_of, tags)))
        tags = [*(tag for tag in memory.tags if tag not in named), *(named if tagged else ())]
        if len(tags) > keys.TAGS_LIMIT:
            raise TooManyTags(f"{short_id} has {keys.TAGS_LIMIT} tags already.")
        memories.set_values(self._tx, memory.id, {"tags": memories.tag_list(tags)})
        return self._row(memory.id)

    def decide(self, question: Question, taken: DoubtAnswer) -> tuple[FactDoubt, bool]:
        """Keeps, as the person's word, which of two facts holds, or that both do. Closes the question.

        Returns both facts as they were, and False if the question was closed already. Raises `NotCurrent` if one of
        the facts has changed since.
        """
        scope = self._context.scope
        doubt = doubts.of_question(self._tx, scope, question)
        if doubt is None:
            questions.settle(self._tx, question.id, None)
            raise NotCurrent("One of these memories has changed since the question was put.")
        if not questions.settle(self._tx, question.id, taken):
            return doubt, False
        pair = FactPair(older=doubt.older.id, newer=doubt.newer.id)
        compare.answered(self._tx, pair, taken)
        held = [one for one in (doubt.older, doubt.newer) if taken == "both" or one == getattr(doubt, taken)]
        for one in held:
            memories.confirm(self._tx, one.id, at=self._now)
        changed = [doubt.older, doubt.newer]
        for lost in (one for one in (doubt.older, doubt.newer) if one not in held):
            # A newer fact that was wrong held until the person said so.
            at = max(lost.valid_from, doubt.newer.valid_from) if taken == "newer" else self._now
            memories.supersede(self._tx, lost.id, held[0].id, at=at)
            changed += memories.outdate(self._tx, lost, kinds=_DERIVED, by=held[0].id, at=self._now)
        self._after_change(*changed)
        return doubt, True

    def set_learning(self, on: bool) -> None:
        """Switches learning from this chat on or off. The caller checks who may do so."""
        chats.put_chat(self._tx, self._context.session.chat_id, learning=int(on))

    def set_language(self, language: str | None) -> None:
        """Sets this person's language by its code; None follows the language they write."""
        people.put(self._tx, self._context.speaker.person_id, language=language)

    def set_timezone(self, timezone: str | None) -> None:
        """Sets this person's timezone, a name of the IANA list; None leaves it to the agent's."""
        people.put(self._tx, self._context.speaker.person_id, timezone=timezone)

    def set_manner(self, text: str) -> Memory | None:
        """Sets the manner that this person, or here this group, wants, in their own words, and switches learning it on.

        Returns the memory; None if the text is empty or too long. The caller checks who may do so for a group.
        """
        scope, today = self._context.scope, self._today()
        made = style.set_by_person(self._tx, scope, text, now=self._now, local_date=today, new_id=self._new_id)
        if made is None:
            return None
        people.set_manner(self._tx, self._context.session, self._context.speaker, True)
        self._show_manner()
        return self._row(made)

    def leave_manner(self) -> bool:
        """Returns to the learned manner in place of one set by the person. Returns whether one was set."""
        was_set = style.leave_to_learning(self._tx, self._context.scope, now=self._now)
        self._show_manner()
        return was_set

    def learn_manner(self, on: bool) -> None:
        """Switches learning a manner of talking to this person, or here to this group, on or off.

        When off, the learned manner is closed, and neither it nor any style stands in a prompt; a manner that the
        person has set waits.
        """
        people.set_manner(self._tx, self._context.session, self._context.speaker, on)
        if not on:
            style.close_learned(self._tx, self._context.scope, now=self._now)
        self._show_manner()

    def use(self, memory_ids: Sequence[int]) -> None:
        """Marks memories as used: they were looked up on purpose, which keeps them fresh."""
        for memory in memories.by_ids(self._tx, self._context.scope, memory_ids):
            memories.use(self._tx, memory.id, at=self._now)

    def amend(self, platform_ref: str, text: str, *, compose: Compose, count_tokens: Callable[[str], int]) -> bool:
        """Applies this person's edit of a message: its words change, and memories from it alone are learned anew.

        `compose` builds the text that history keeps of the new words and the attachments. Returns False if the person
        sent no such message here, or if it says that already.
        """
        session = self._context.session
        said = history.said_by(self._tx, session.id, self._context.speaker.id, platform_ref)
        if said is None:  # it may have been said to others, and quoted
            attachments.drop_rows(self._tx, attachments.quoting(self._tx, session.id, [platform_ref]))
            return False
        text = compose(text, attachments.of_messages(self._tx, [said.id]).get(said.id, ()))
        if said.text == text:
            return False
        attachments.drop_quotes(self._tx, [said.id])
        history.reword(self._tx, said.id, text, tokens=count_tokens(text), now=self._now)
        blank_messages.clear_traffic(self._tx, [said.id], now=self._now)
        under_way = blank_messages.running_turns(self._tx, [said.id])
        scope = self._context.scope
        found = memories.by_ids(self._tx, scope, [row.id for row in lineage.resting_on(self._tx, [said.id])])
        # Memories that the person has confirmed since are kept on their word.
        taught = [memory for memory in found if not (memory.confirmed or memory.pinned)]
        # A list of ids can't hold the new words, so in a restored backup with the old ones the message is blank.
        what = erase.gone([said.id], taught, what="edited", traffic=under_way)
        word_columns.record(self._tx, None, what, "{}", now=self._now)
        memories.retract(self._tx, [memory.id for memory in taught])
        told = memories.untell(self._tx, [said.id])
        keep.settle(self._tx, scope, [*taught, *told], now=self._now, new_id=self._new_id)
        self._after_change(*taught, *told)
        extractions.reread(self._tx, session.id, said.id, "edited", now=self._now)
        return True

    def branch(self, of: int, at: int, *, reworded: bool) -> None:
        """Makes this session, which is still empty, continue the session `of` from before this person's message `at`.

        A message that is said in other words teaches nothing any more: what was learned from it alone ends. Raises
        `NotFound` if the person said no such message there.
        """
        session, scope = self._context.session, self._context.scope
        said = [one for one in history.between(self._tx, of, at, at) if one.author_id in scope.speakers]
        if not said or not session.private or chats.session_by_id(self._tx, of).chat_id != session.chat_id:
            raise NotFound(f"No message s_{at} here.")
        chats.branch(self._tx, session.id, of=of, at=at)
        if not reworded:
            return
        # Memories that the person has confirmed since are kept on their word.
        taught = [row for row in lineage.resting_on(self._tx, [at]) if not (row.confirmed or row.pinned)]
        erase.unlearn_replies(self._tx, taught, sources=[at])
        history.unlearn(self._tx, [at])
        what = erase.gone([], taught, what="edited", others=[at])
        word_columns.record(self._tx, None, what, "{}", now=self._now)
        memories.retract(self._tx, [memory.id for memory in taught])
        told = memories.untell(self._tx, [at])
        keep.settle(self._tx, scope, [*taught, *told], now=self._now, new_id=self._new_id)
        self._after_change(*taught, *told)

    def name_talk(self, title: str) -> None:
        """Gives the conversation that this session belongs to a title; without a text, one is found for it again."""
        given = titles.fit(title)
        chats.put(self._tx, self._talk, title=given or None, title_found=0 if given else None)
        word_columns.note_reworded(self._tx, now=self._now)

    def pin_talk(self, *, pinned: bool) -> None:
        chats.put(self._tx, self._talk, pinned_at=self._now if pinned else None)

    @property
    def _talk(self) -> int:
        (first, *_) = sorted(chats.family(self._tx, self._context.session.id))
        return first

    def may_forget(self, short_id: str) -> Memory:
        memory = memories.by_short_id(self._tx, self._context.scope, short_id)
        choose.may_forget(self._tx, self._asker, memory)
        return memory

    def may_forget_said(self, message_id: int) -> tuple[Message, tuple[int, ...]]:
        """Returns a message that this person may have erased, and the memories learned from it, by id.

        Raises `NotFound`, for somebody else's message, too.
        """
        for message in passages.by_ids(self._tx, self._context.scope, [message_id]):
            if choose.erasable(self._tx, self._asker, "memories", [message.id]):
                taught = lineage.taught_by(self._tx, self._context.scope, [message.id])
                may = choose.may_erase(self._tx, self._asker)
                return message, tuple(memory.id for memory in taught if may(memory))
        raise NotFound(f"No message s_{message_id} here.")

    def show(self, short_id: str) -> Shown:
        return shown(self._tx, self._context.scope, short_id, now=self._now)

    def start_window(self) -> None:
        """Begins an empty window. Earlier messages can still be recalled, and are read for memories."""
        session = self._context.session
        extractions.schedule(self._tx, session.id, "session ended", now=self._now)
        chats.start_window(self._tx, session.id, after=history.last_id(self._tx, session.id))

    def undo(self, turn_id: int | None = None) -> UndoneTurn | None:
        """Undoes this person's last turn here, with the memories from it alone; None if there is none.

        With `turn_id`, only if that is the last turn.
        """
        context = self._context
        return retry.undo(
            self._tx, context.session, context.scope,
            turn_id=turn_id, timezone=context.timezone, now=self._now, new_id=self._new_id,
        )  # fmt: skip

    def set_task(self, task: str | None) -> None:
        chats.put(self._tx, self._context.session.id, active_task=task, task_found=0)
        word_columns.note_reworded(self._tx, now=self._now)

    def choose_model(self, name: str | None) -> None:
        """Notes which of the agent's models is asked first in this session; None leaves it to the agent's file."""
        chats.put(self._tx, self._context.session.id, chosen_model=name)

    def choose_agent(self, name: str | None) -> None:
        """Notes which agent answers in this session from now on; None leaves it to routing."""
        chats.choose_agent(self._tx, self._context.session.id, name)

    @property
    def reminding(self) -> Reminding:
        """The person's reminders, as far as they can be reached from here."""
        return Reminding(self._tx, self._context, now=self._now)

    @property
    def keys(self) -> Keyring:
        return Keyring(self._tx, self._context, now=self._now)

    def ask(self, purpose: str, payload: Mapping[str, object], *, choices: Sequence[str], preset: str) -> Question:
        """Puts a question to this person. `payload` holds ids and figures, and must not hold text."""
        session, asker = self._context.session.id, self._context.speaker.id
        return questions.ask(self._tx, self._now, session, asker, purpose, payload, choices=choices, preset=preset)

    def purge_dead(self, channel: str) -> int:
        return outbox.purge(self._tx, channel)

    def retry_dead(self, channel: str, outbox_id: int) -> str | None:
        """Queues an undelivered message of a channel once more. Returns its session's key.

        Returns None if there is no such message, or none of its words are left.
        """
        return outbox.revive(self._tx, self._now, channel, outbox_id)

    def drop_dead(self, channel: str, outbox_id: int) -> bool:
        return outbox.drop_dead(self._tx, channel, outbox_id)

    def settle(self, question: Question, answer: str | None) -> bool:
        return questions.settle(self._tx, question.id, answer)

    def ask_again(self, question: Question) -> bool:
        return questions.ask_again(self._tx, question.id)

    def _as_said(self, draft: Draft) -> Draft:
        """Keeps a draft that a model wants kept in a group as the person's own word only if it is in their words.

        Such rows follow people into their private chats, and others may have talked the model into it.
        """
        if self._context.scope.private or not self._source_ids or draft.subject_id is None:
            return draft
        said = history.between(self._tx, self._context.session.id, self._source_ids[0], self._source_ids[-1])
        if {token for message in said for token in tokens(message.text)}.issuperset(tokens(draft.value)):
            return draft
        return replace(draft, subject_id=None, subject=self._context.speaker.name)

    def _confirm(self, memory: Memory) -> None:
        keep.confirm(self._tx, self._context.scope, memory, now=self._now, new_id=self._new_id)
        self._after_change(memory, *(self._part(memory) if memory.archived_at is not None else ()))

    def _row(self, memory_id: int) -> Memory:
        found = memories.by_id(self._tx, self._context.scope, memory_id)
        assert found is not None
        return found

    def _current(self, short_id: str) -> Memory:
        memory = self.may_forget(short_id)
        if memory.valid_until is not None:
            raise NotCurrent(f"{short_id} is an old version.")
        return memory

    @property
    def _asker(self) -> Asker:
        return Asker(session=self._context.session, scope=self._context.scope, timezone=self._context.timezone)

    def _part(self, memory: Memory) -> list[Memory]:
        """Ends the merged memory, so that its part stands alone and is not said twice. Returns the changed memories."""
        return memories.outdate(self._tx, memory, kinds=(memory.kind,), by=None, at=self._now)

    def _told(self, *, key: str, value: str) -> Draft:
        scope = self._context.scope
        return Draft(
            kind="fact",
            owner_id=scope.writes_to,
            author_id=scope.speaker_id,
            subject_id=scope.speaker_id,
            category=keys.category_of(key) or "decision",
            key=key,
            value=value.strip()[: keys.VALUE_LIMIT],
            importance=7,
            confidence=1.0,
            origin="told",
            learned_at=self._now,
            local_date=self._today(),
        )

    def _today(self) -> str:
        return clock.local_date(self._now, self._context.timezone).isoformat()

    def _show_manner(self) -> None:
        """Makes a switch of the manner take effect at once, in every prompt's snapshot."""
        scope = self._context.scope
        chats.drop_snapshots_of(self._tx, {*scope.own, scope.writes_to}, scope.selves)

    def _after_change(self, *changed: Memory) -> None:
        erase.show_change(self._tx, self._context.scope, changed, now=self._now, new_id=self._new_id)


def retract(
    tx: Transaction, session: Session, platform_refs: Sequence[str], *, now: int, new_id: Callable[[], str]
) -> int:
    """Erases messages that were deleted on the platform, by anybody, and memories learned from them alone.

    Facts that such a memory had replaced hold again. A memory that a person has confirmed since is kept on their word.
    The bot's answers keep their words, but nothing is learned from them and they are not recalled. Returns the number
    of messages; unknown ones, the bot's own and those erased before are not counted.
    """
    attachments.drop_rows(tx, attachments.quoting(tx, session.id, platform_refs))
    deleted = history.said_here(tx, session.id, platform_refs)
    if not deleted:
        return 0
    ids = [message.id for message in deleted]
    word_columns.note_said(tx, [message.id for message in deleted if message.text], now=now)
    # This includes messages erased before: a turn that was running may have learned from them since.
    history.erase(tx, ids, now=now)
    taught = [memory for memory in lineage.resting_on(tx, ids) if not (memory.confirmed or memory.pinned)]
    erase.unlearn_replies(tx, taught, sources=ids)
    cleared = blank_messages.clear_traffic(tx, ids, now=now)
    under_way = blank_messages.running_turns(tx, ids)
    for memory in taught:
        word_columns.note_forgotten(tx, memory.owner_id, memory.key, memory.value, now=now)
    memories.retract(tx, [memory.id for memory in taught])
    told = memories.untell(tx, ids, erased=True)
    if taught or under_way or any(message.text for message in deleted):
        word_columns.record(tx, None, erase.gone(ids, taught, traffic=under_way), "{}", now=now)
    elif cleared:
        word_columns.note_reworded(tx, now=now)
    for author in {message.author_id for message in deleted if message.author_id is not None}:
        scope = chats.scope_of(tx, session, author)
        keep.settle(tx, scope, [*taught, *told], now=now, new_id=new_id)
        erase.show_change(tx, scope, [*taught, *told], now=now, new_id=new_id)
    return sum(bool(message.text) for message in deleted)


def _says_more(text: str, drafts: Sequence[Draft]) -> bool:
    """Returns whether a text to be kept says more than the facts read from it: a number, or several words."""
    read = {term for draft in drafts for term in tokens(f"{draft.key} {cues(draft.key)} {draft.value}")}
    more = [term for term in query_terms(text) if term not in read]
    return not drafts or len(more) >= _MORE or any(term.isdigit() for term in more)


def _as_told(draft: Draft) -> Draft:
    """Marks a draft as said with the wish to keep it: surer and weightier than an overheard one."""
    return replace(draft, origin="told", confidence=1.0, importance=max(draft.importance, 7))


T = TypeVar("T")


class EditRequests:
    """The requests to one store.

    `changed` is called with the scope in which a request may have changed anything, `list_erased` after an erasure, so
    that a restore does not bring the erased rows back.
    """

    def __init__(
        self,
        database: Database,
        *,
        identities: Identities,
        mailbox: Mailbox,
        learner: Learner,
        list_erased: Callable[[], Awaitable[int]],
        runtime: Runtime,
        changed: Callable[[Scope], None],
    ) -> None:
        self._database = database
        self._identities = identities
        self._mailbox = mailbox
        self._learner = learner
        self._list_erased = list_erased
        self._runtime = runtime
        self._changed = changed

    async def answer(
        self,
        context: Context,
        inbox_id: int,
        act: Callable[[Edits], Sequence[Part]],
        *,
        edits: str | None = None,
        to: str | None = None,
        around: Sequence[Part] = (),
    ) -> None:
        """Runs `act` for a person, queues the answer it returns, and ends the inbox row.

        The answer replaces the shown message `edits`. With `to`, the answer goes to the session with that key, and
        `around` is posted in the session where the person asked. Raises `Withdrawn` if the row has ended meanwhile.
        """

        def answered(tx: Transaction) -> None:
            inbox.expect_open(tx, inbox_id)
            pieces = act(self._edits(tx, anew(tx, context)))
            here = context.session.key
            self._mailbox.post(
                tx, Outgoing(session_key=to or here, pieces=pieces, inbox_id=None if to else inbox_id, edits=edits)
            )
            self._mailbox.post(tx, Outgoing(session_key=here, pieces=around, inbox_id=inbox_id, edits=edits))
            inbox.end(tx, [inbox_id], error=None, now=self._runtime.now())

        await self._write(context, answered)

    async def run(
        self,
        context: Context,
        act: Callable[[Edits], T],
        *,
        said: str = "",
        author: str = "",
        tell: Callable[[T], Sequence[Part]] | None = None,
    ) -> T:
        """Runs `act` for a person who asked outside of any message. Returns its result.

        The words that the person `said` are kept in this session, under the name `author`, as the source of the written
        rows. The messages that `tell` makes from the result are posted in the session.
        """

        def requested(tx: Transaction) -> T:
            now, fresh = self._runtime.now(), anew(tx, context)
            sources: list[int] = []
            if said:
                utterance = Utterance(
                    role="user", text=said, tokens=self._runtime.count_tokens(said), said_at=now, recall=False,
                    author_id=fresh.speaker.id, author_name=author,
                )  # fmt: skip
                session, owner = chats.session_by_id(tx, fresh.session.id), fresh.scope.writes_to
                sources = [
                    message.id for message in history.record(tx, session, None, [utterance], owner_id=owner, now=now)
                ]
            result = act(self._edits(tx, fresh, sources))
            if tell is not None:
                self._mailbox.post(tx, Outgoing(session_key=context.session.key, pieces=tell(result)))
            return result

        return await self._write(context, requested)

    async def amend(
        self, where: Where, who: Who, inbox_id: int, *, platform_ref: str, text: str, compose: Compose
    ) -> bool:
        """Rewords a message that was edited after its turn began, and learns anew the memories from that message alone.

        `compose` makes the text that is kept from the message's words and its attachments. Ends the inbox row. Returns
        False if this person said no such message here, or if it already says `text`.
        """

        def act(tx: Transaction) -> int | None:
            context = self._identities.enter(tx, where, who)
            count = self._runtime.count_tokens
            amended = self._edits(tx, context).amend(platform_ref, text, compose=compose, count_tokens=count)
            inbox.end(tx, [inbox_id], error=None, now=self._runtime.now())
            return context.session.id if amended else None

        session_id = await self._database.write(act)
        if session_id is None:
            return False
        self._learner.soon(session_id, "edited")
        await index.keep_up(self._database)
        await self._list_erased()
        return True

    async def knows(self, platform: str, bot_id: str, session_key: str, platform_ref: str) -> bool:
        """Returns whether a message with this id was ever taken here, also as a request that is not in history."""

        def taken(reader: Reader) -> bool:
            if inbox.was_taken(reader, platform, bot_id, session_key, platform_ref):
                return True
            session = chats.session_by_key(reader, session_key)
            if session is None or not chats.is_on(reader, session, platform):
                return False
            return bool(history.said_here(reader, session.id, [platform_ref]))

        return await self._database.read(taken)

    async def judge(
        self, platform: str, channel: str, chat: str, user_id: str, platform_ref: str, *, good: bool, kept: bool
    ) -> None:
        """Keeps a person's judgement of the answer with this id in a chat, or takes the same back (not `kept`).

        `channel` is the name in session keys. A message that is no answer and a person unknown here change nothing.
        """

        def judged(reader: Reader) -> tuple[int, int] | None:
            keys = chats.sessions_in(reader, platform=platform, channel=channel, reference=chat)
            turn_id = outbox.turn_shown(reader, keys, platform_ref)
            speaker = people.known_speaker(reader, platform=platform, user_id=user_id)
            return None if turn_id is None or speaker is None else (turn_id, speaker.id)

        def act(tx: Transaction) -> Scope | None:
            if (pair := judged(tx)) is None:
                return None
            if kept:
                judgements.keep(tx, *pair, good=good, now=self._runtime.now())
            else:
                judgements.take_back(tx, *pair, good=good)
            return self._learn_from(tx, *pair)

        if await self._database.read(judged) is None:
            return
        if (changed := await self._database.write(act)) is not None:
            self._changed(changed)
            await index.keep_up(self._database)

    def _learn_from(self, tx: Transaction, turn_id: int, speaker_id: int) -> Scope | None:
        """Learns from a thumb how long answers are to be, in private, if the person lets it; where it has learned."""
        session = chats.session_of_turn(tx, turn_id)
        speaker = people.speaker_by_id(tx, speaker_id)
        wanted = speaker.learning and speaker.manner and self._identities.learns_style(session)
        if not (session.private and session.learning and wanted):
            return None
        context = self._identities.context_of(tx, session, speaker)
        now, new_id = self._runtime.now(), self._runtime.memory_id
        day = clock.local_date(now, context.timezone).isoformat()
        learned = liked.learn(tx, context.scope, session.id, now=now, local_date=day, new_id=new_id)
        return context.scope if learned else None

    async def retract(self, platform: str, session_key: str, platform_refs: Sequence[str]) -> int:
        """Erases messages that were deleted on the platform, and memories learned only from them.

        Returns the number of erased messages. Unknown messages, the bot's own, and messages erased before don't count.
        """

        def known(reader: Reader) -> chats.Session | None:
            session = chats.session_by_key(reader, session_key)
            if session is None or not chats.is_on(reader, session, platform):
                return None
            quoted = attachments.quoting(reader, session.id, platform_refs)
            return session if quoted or history.said_here(reader, session.id, platform_refs) else None

        def act(tx: Transaction) -> int:
            session, runtime = known(tx), self._runtime
            if session is None:
                return 0
            return retract(tx, session, platform_refs, now=runtime.now(), new_id=runtime.memory_id)

        # Most messages deleted on a platform were never said to the bot, so they must not cost a write.
        if await self._database.read(known) is None:
            return 0
        count = await self._database.write(act)
        if count:
            await self._list_erased()
            await index.keep_up(self._database)
        return count

    def _edits(self, tx: Transaction, context: Context, source_ids: Sequence[int] = ()) -> Edits:
        runtime = self._runtime
        return Edits(tx, context, now=runtime.now(), new_id=runtime.memory_id, source_ids=source_ids)

    async def _write(self, context: Context, act: Callable[[Transaction], T]) -> T:
        result = await self._database.write(act)
        self._changed(context.scope)
        await index.keep_up(self._database)
        return result
