"""The life of a turn: it begins with messages, is given its prompt material, keeps steps and effects, and finishes.

A turn that broke off is resumed.

Invariants: Each method that writes is one transaction, confined by a `Context`. The effects of a turn's inbox rows and
the end of these rows are committed together. An effect happens once, however often its turn is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from memory.chat import retry, window
from memory.chat.edits import Edits
from memory.chat.identities import Identities, Where, Who, entered
from memory.chat.retry import AtHand
from memory.chat.window import TurnMaterial, WindowSize
from memory.context import Context, anew, confined, in_read, in_write
from memory.errors import Withdrawn
from memory.learn import extractions, keep, retract
from memory.learn.agents import Agents
from memory.learn.extractions import Afterwards, Unread
from memory.learn.learner import Learner
from memory.learn.offline.intents import guessed, named
from memory.learn.retract import Revision
from memory.mailbox import inbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.recall.query import should_search
from memory.recall.recall import Budget, Recall
from memory.recall.search import Hit, Search
from memory.reminders import reminding
from memory.runtime import Runtime
from memory.scope import Scope
from memory.store import attachments, chats, history, people, questions, usage
from memory.store.database import Database, Reader, Transaction, of_lane
from memory.store.history import Message, Utterance
from memory.store.usage import Spent

#: The number of a session's messages in which the speaker's last words are looked for.
_LAST: Final = 20
#: The result of a tool call whose request was deleted; read by the model.
TAKEN_BACK: Final = "The person has deleted what they had asked; nothing was done."
#: The reason why a turn comes to nothing here.
_ENDED: Final = "it has ended meanwhile, or another process answers it, too"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Utterance):
    inbox_id: int
    role: str = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn under way. `steps` holds the completions that an earlier attempt already got, as JSON.

    `first` is True if nothing was answered in this chat before. `is_task` is True if it answers a task whose time has
    come. `asked` is False if no question is open to anybody in this session.
    """

    id: int
    context: Context
    inbox_ids: tuple[int, ...]
    said: tuple[Message, ...]
    steps: tuple[str, ...] = ()
    attempts: int = 1
    first: bool = False
    is_task: bool = False
    asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a turn. With an `error` code there is no answer in history, only a notice to the person.

    `learned` holds the facts that the turn's own messages tell and take back, if they are to be kept at once; None
    leaves that to a quiet moment. `spent` is the cost that was not booked with a step. `pieces` holds the content to
    show, one physical message each. The newest `pictures` pictures of the session are kept. `recall` holds the items
    that the answer rests on, if they are known and fewer than those that were looked at.
    """

    pieces: tuple[Part, ...]
    utterances: tuple[Utterance, ...] = ()
    learned: Revision | None = None
    spent: Spent | None = None
    error: str | None = None
    reply_to: str | None = None
    pictures: int = 4
    recall: Recall | None = None


class Turns:
    def __init__(
        self,
        database: Database,
        *,
        identities: Identities,
        search: Search,
        learner: Learner,
        mailbox: Mailbox,
        runtime: Runtime,
        agents: Agents,
        changed: Callable[[Scope], None],
    ) -> None:
        """`changed` is called with the scope in which a turn may have changed memory."""
        self._database = database
        self._identities = identities
        self._search = search
        self._learner = learner
        self._mailbox = mailbox
        self._agents = agents
        self._now = runtime.now
        self._new_id = runtime.memory_id
        self._count_tokens = runtime.count_tokens
        self._changed = changed

    async def begin(self, where: Where, who: Who, heard: Sequence[Said]) -> Turn:
        """Claims the inbox rows of `heard` for a new turn and puts their messages into history.

        Leaves out rows that were ended meanwhile. Raises `Withdrawn` if no row is left.
        """
        return await self._database.write(lambda tx: self._begin(tx, where, who, heard), keys=entered(where, who))

    def _begin(self, tx: Transaction, where: Where, who: Who, heard: Sequence[Said]) -> Turn:
        now = self._now()
        context = self._identities.enter(tx, where, who)
        turn_id, answered_before, asked = history.begin_turn(tx, context.session, now=now)
        claimed = inbox.claim(tx, [message.inbox_id for message in heard], turn_id)
        said = [message for message in heard if message.inbox_id in claimed]
        if not said:
            raise Withdrawn("its messages were withdrawn before it began")
        context = self._rotated(tx, context, said[0].said_at)
        learning = context.session.learning and context.speaker.learning
        recorded = history.record(
            tx,
            context.session,
            turn_id,
            owner_id=context.scope.writes_to,
            utterances=[
                replace(
                    message,
                    learn=message.learn and learning,
                    recall=message.recall and learning,
                    author_id=context.speaker.id,
                    author_name=who.name,
                )
                for message in said
            ],
            now=now,
        )
        for message, one in zip(said, recorded, strict=True):
            if claimed[message.inbox_id].has_attachments:
                attachments.join(tx, message.inbox_id, one.id)
        return Turn(
            id=turn_id,
            context=context,
            inbox_ids=tuple(message.inbox_id for message in said),
            said=tuple(recorded),
            first=not answered_before,
            is_task=claimed[said[0].inbox_id].is_task,
            asked=asked,
        )

    @in_write
    def resume(self, tx: Transaction, where: Where, who: Who, turn_id: int, inbox_ids: Sequence[int]) -> Turn:
        context = self._identities.enter(tx, where, who)
        return Turn(
            id=turn_id,
            context=context,
            inbox_ids=tuple(inbox_ids),
            said=tuple(history.messages_of_turn(tx, turn_id)),
            steps=tuple(history.steps(tx, turn_id)),
            attempts=history.retry_turn(tx, turn_id),
            first=not history.answered_before(tx, context.session.chat_id),
            is_task=inbox.is_task(tx, inbox_ids[0]),
        )

    @in_write
    def again(self, tx: Transaction, context: Context, inbox_id: int, *, failed: int | None = None) -> int | None:
        """Prepares the speaker's last turn for a new answer to this inbox row. Returns the new turn's id, or None.

        With `failed`, only if that is the last turn and it has brought no answer.
        """
        return retry.again(tx, context.session, anew(tx, context).scope, inbox_id, failed=failed, now=self._now())

    async def said_last(self, context: Context) -> list[str]:
        """Returns the speaker's last words in this session, the newest first; also those before the window."""
        session, authors = context.session, (context.speaker.id, *context.scope.selves)
        said = await self._database.read(lambda reader: history.after(reader, session.id, 0, limit=_LAST))
        return [message.text for message in reversed(said) if message.author_id in authors]

    @in_read
    def at_hand(self, reader: Reader, context: Context) -> AtHand:
        return retry.at_hand(reader, context.session, confined(reader, context).scope)

    async def asks_to_forget(self, text: str) -> str:
        """Returns the words for what a message that no pattern reads most likely asks to forget; "" if nothing."""
        return named(text) if await guessed(text, self._search) == "forget" else ""

    async def look(
        self,
        turn: Turn,
        budget: Budget | None,
        *,
        window_tokens: int,
        window_messages: int,
        lately: int = 0,
        compacted: bool = False,
        modelless: bool = False,
    ) -> TurnMaterial:
        """Returns all material of a turn's prompt. Changes nothing. Without a budget it holds no memory.

        So many messages that the speaker said `lately` are looked at as well, whatever their words. With `compacted`,
        messages that the prompt has no room for stay in the window until they are summed up. For an agent that is
        `modelless`, what the messages tell and the reminders to come are read, too.
        """
        context = turn.context
        ending = await self._ending(turn) if modelless and budget is not None else None
        # Memories learned from here on, also by this very turn, are newer than a snapshot taken now.
        now = self._now()
        size = WindowSize(tokens=window_tokens, messages=window_messages, lately=lately, compacted=compacted)

        def looked(reader: Reader, hits: list[Hit]) -> TurnMaterial:
            view, scope = self._view(reader, turn, budget, hits, size, now=now)
            if not modelless:
                return view
            reminders = reminding.of_reach(reader, reminding.reach(scope, context.session))
            return replace(
                view,
                learned=None if ending is None else self._understood(reader, turn, scope, ending),
                reminders=tuple(one for one in reminders if one.first and one.next_at is not None),
            )

        query = "\n".join(message.text for message in turn.said)
        if budget is None or not should_search(query):
            return await self._database.read(lambda reader: looked(reader, []))
        return await self._search.find_and(
            looked,
            context.scope,
            query,
            timezone=context.timezone,
            limit=budget.items * 2,
            besides={message.id for message in turn.said},
            older_reflections=False,
        )

    def _view(
        self, reader: Reader, turn: Turn, budget: Budget | None, hits: list[Hit], size: WindowSize, *, now: int
    ) -> tuple[TurnMaterial, Scope]:
        context = turn.context
        scope = chats.scope_of(reader, context.session, context.speaker.id)
        reader.confine(scope, session_id=context.session.id)
        # Hits from before an account was linked or taken out may not be the speaker's any more.
        theirs = hits if scope == context.scope else []
        seen = replace(context, scope=scope)
        view = window.take(reader, seen, turn.said, budget, theirs, size, now=now, count_tokens=self._count_tokens)
        if turn.asked:
            ids = {"session_id": context.session.id, "asker_id": context.speaker.id}
            view = replace(view, question=questions.open_to(reader, **ids, now=now))
        return view, scope

    async def understood(self, turn: Turn) -> Revision:
        """Returns the facts that patterns find in this turn's own messages, and those taken back. Writes nothing.

        A message that no pattern reads may say in other words that something is over.
        """
        ending = await self._ending(turn)
        return await self._database.read(
            lambda reader: self._understood(reader, turn, confined(reader, turn.context).scope, ending)
        )

    async def _ending(self, turn: Turn) -> set[int]:
        return {one.id for one in turn.said if one.learn and await guessed(one.text, self._search) == "end"}

    def _understood(self, reader: Reader, turn: Turn, scope: Scope, ending: Set[int]) -> Revision:
        return retract.read(reader, turn.said, scope=scope, timezone=turn.context.timezone, ending=ending)

    async def keep_step(self, turn: Turn, n: int, completion: str, spent: Spent) -> None:
        """Keeps a model's answer, and books its cost whatever the outcome of the turn.

        A crash of the database's server may lose both; then the model is asked again. Raises `Withdrawn` if the turn
        has ended meanwhile, or another process asked the same.
        """

        def act(tx: Transaction) -> bool:
            self._book(tx, turn, spent)
            return history.keep_step(tx, turn.id, n, completion, now=self._now())

        if not await self._database.write(act, keys=[of_lane(turn.context.session.key)], durable=False):
            raise Withdrawn(_ENDED)

    async def act(self, turn: Turn, n: int, i: int, tool: str, act: Callable[[Edits], str]) -> str:
        """Runs a tool's change to memory and keeps its result, as one transaction.

        A call of this turn that already ran is not run again; its kept result is returned.
        """

        def once(tx: Transaction) -> str:
            found = history.effect(tx, turn.id, n, i)
            if found is not None and found[1] is not None:
                return found[1]
            said = tuple(message.id for message in turn.said)
            if history.between(tx, turn.context.session.id, said[0], said[-1]):
                result = act(Edits(tx, anew(tx, turn.context), now=self._now(), new_id=self._new_id, source_ids=said))
            else:
                result = TAKEN_BACK
            history.keep_effect(tx, turn.id, n, i, tool, result, now=self._now())
            return result

        result = await self._database.write(once)
        self._changed(turn.context.scope)
        return result

    async def finish(
        self,
        turn: Turn,
        view: TurnMaterial | None,
        outcome: Outcome,
        *,
        ending: Callable[[Transaction], None] | None = None,
    ) -> Afterwards:
        """Commits a turn's results: its answer, recall entries, learned memories, outbox rows and inbox row ends.

        `ending` does further work that ends with the turn in the same transaction. Returns the work left to do. Raises
        `Withdrawn` if the turn has ended meanwhile, as when another process has answered.
        """
        session = turn.context.session

        def act(tx: Transaction) -> Afterwards:
            self._answer(tx, turn, outcome, {} if view is None else view.portions)
            if view is not None:
                seen = view if outcome.recall is None else replace(view, recall=outcome.recall)
                window.keep(tx, seen, turn_id=turn.id, session_id=session.id, now=self._now())
                if any(file.data for files in view.attached.values() for file in files):
                    attachments.fade(tx, session.id, session.window_after, keep_pictures=outcome.pictures)
            inbox.end(tx, turn.inbox_ids, error=outcome.error, now=self._now())
            if ending is not None:
                ending(tx)
            return extractions.afterwards(tx, session.id)

        # New memories touch the person's memories, whatever session they are told in.
        taught = [] if outcome.learned is None else retract.touched(turn.context.scope, outcome.learned)
        # The rows that `ending` touches are not known here.
        keys = [of_lane(session.key), *taught] if ending is None else None
        after = await self._database.write(act, keys=keys)
        self._search.feed_soon()
        self._learner.heard(session.id, after.unread)
        if taught:
            self._changed(turn.context.scope)
        return after

    def _answer(self, tx: Transaction, turn: Turn, outcome: Outcome, portions: Mapping[str, int]) -> None:
        """Ends a turn with its answer in history and outbox, what it taught, and its cost. Raises `Withdrawn`."""
        session, now = turn.context.session, self._now()
        erased = history.end_turn(tx, turn.id, error=outcome.error, portions=portions, now=now)
        if erased is None:
            raise Withdrawn(_ENDED)
        if outcome.utterances:
            # The answer to a message that was deleted during its turn is not found again.
            findable = not erased and all(message.recall for message in turn.said)
            utterances = [replace(each, recall=each.recall and findable) for each in outcome.utterances]
            history.record(tx, session, turn.id, utterances, owner_id=turn.context.scope.writes_to, now=now)
        if outcome.learned is not None:
            self._learn(tx, turn, outcome.learned)
        if outcome.spent is not None:
            self._book(tx, turn, outcome.spent)
        if outcome.error is not None:
            questions.withdraw(tx, turn.id)
        self._mailbox.post(
            tx,
            Outgoing(
                session_key=session.key,
                pieces=outcome.pieces,
                kind="message" if outcome.error is None else "notice",
                turn_id=turn.id,
                inbox_id=turn.inbox_ids[0],
                reply_to=outcome.reply_to,
            ),
        )

    async def record(
        self, where: Where, who: Who | None, utterances: Sequence[Utterance], *, inbox_ids: Sequence[int] = ()
    ) -> None:
        """Puts messages into history without answering them, to be learned from in a quiet moment.

        `who` said the messages with the role "user". If `who` is None, only the bot's words can be recorded, in an
        existing session. The inbox rows `inbox_ids` end in the same transaction.
        """

        def act(tx: Transaction) -> tuple[int, Unread]:
            now = self._now()
            if who is None:
                session = chats.session_by_key(tx, where.session_key)
                assert session is not None, f"nobody has spoken in {where.session_key}"
                speaker_id = chats.last_speaker(tx, session.id)
                learning = session.learning and (speaker_id is None or people.speaker_by_id(tx, speaker_id).learning)
                owner_id = chats.scope_of(tx, session, speaker_id).writes_to
            else:
                context = self._identities.enter(tx, where, who)
                session, owner_id = context.session, context.scope.writes_to
                speaker_id = context.speaker.id
                learning = session.learning and context.speaker.learning
            history.record(
                tx,
                session,
                None,
                [
                    replace(
                        one,
                        learn=one.learn and learning and one.role == "user",
                        recall=one.recall and learning,
                        author_id=speaker_id if one.role == "user" else None,
                        author_name=who.name if who is not None and one.role == "user" else one.author_name,
                    )
                    for one in utterances
                ],
                owner_id=owner_id,
                now=now,
            )
            inbox.end(tx, inbox_ids, error=None, now=now)
            return session.id, extractions.unread(tx, session.id)

        self._learner.heard(*await self._database.write(act))

    def _rotated(self, tx: Transaction, context: Context, said_at: int) -> Context:
        """Returns the present context, in a conversation begun anew if the agent's file wants that."""
        session = context.session
        rotation = self._agents.by_id[session.agent_id].rotation
        if not rotation.is_due(session.last_message_at, said_at, context.timezone):
            return context
        Edits(tx, context, now=self._now(), new_id=self._new_id).start_window()
        return replace(context, session=chats.session_by_id(tx, session.id))

    def _book(self, tx: Transaction, turn: Turn, spent: Spent) -> None:
        usage.add(
            tx,
            spent,
            turn_id=turn.id,
            session_id=turn.context.session.id,
            agent_id=turn.context.session.agent_id,
            identity_id=turn.context.speaker.id,
            purpose="task" if turn.is_task else "chat",
            now=self._now(),
        )

    def _learn(self, tx: Transaction, turn: Turn, learned: Revision) -> None:
        """Keeps the facts in this turn's messages within its last transaction, so that they need not be read again.

        A message that was deleted during its turn teaches nothing.
        """
        session = turn.context.session
        standing = {one.id for one in history.between(tx, session.id, turn.said[0].id, turn.said[-1].id)}
        if turn.said[-1].id in standing:
            at = turn.said[-1].said_at
            retract.end(tx, turn.context.scope, learned.ended, at=at, now=self._now(), new_id=self._new_id)
            retract.doubt(tx, turn.context.scope, learned.doubted, now=self._now(), new_id=self._new_id)
        for proposal in learned.proposals:
            if proposal.message_id not in standing:
                continue
            keep.keep(
                tx,
                turn.context.scope,
                proposal.draft,
                source_ids=[proposal.message_id],
                now=self._now(),
                new_id=self._new_id,
                replaces=proposal.replaces,
            )
        if not extractions.unread_before(tx, session.id, turn.said[0].id):
            chats.mark_read(tx, session.id, turn.said[-1].id)
