"""The way of a turn: begun with what was said, looked at, its steps and effects kept, finished or gone on with.

Invariants: each method that writes is one transaction, confined by a `Context`; what a turn's inbox rows cause and
their end are committed together; an effect happens once, however often its turn is taken up again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory import views
from memory.desk import Context, Desk, anew
from memory.errors import Withdrawn
from memory.learn import extract, keep
from memory.learn.extract import Proposal
from memory.learn.learner import Learner
from memory.mail import Mail
from memory.recall.gate import should_search
from memory.recall.recall import Budget
from memory.recall.search import Hit, Search
from memory.scope import Scope
from memory.speakers import Speakers, Where, Who
from memory.store import attachments, extractions, history, mailbox, people, questions, usage
from memory.store.database import Database, Transaction
from memory.store.extractions import Unread
from memory.store.history import Message, Utterance
from memory.store.mailbox import Piece
from memory.store.usage import Spent
from memory.upkeep import again
from memory.upkeep.again import AtHand
from memory.views import View

#: What a tool's call gives when there is nobody any more who has asked for it; read by the model.
_TAKEN_BACK: Final = "The person has deleted what they had asked; nothing was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One inbox row's message, ready for history. `said_at` is milliseconds UTC."""

    inbox_id: int
    text: str
    tokens: int
    said_at: int
    platform_ref: str | None
    reply_to: str | None
    learn: bool
    recall: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn under way. `steps` are the completions an earlier attempt already got, as JSON.

    It is the `first` when nothing was answered in this chat before.
    """

    id: int
    context: Context
    inbox_ids: tuple[int, ...]
    said: tuple[Message, ...]
    steps: tuple[str, ...] = ()
    attempts: int = 1
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a turn ended. With an `error` code there is no answer in history, only a notice to the person.

    `learned` is what the turn's own messages say, where that is to be kept at once; None leaves it to a quiet moment.
    `spent` is what was not booked with a step. `pieces` is what is shown, a physical message each. Of the session's
    pictures the newest `pictures` are kept.
    """

    pieces: tuple[Piece, ...]
    utterances: tuple[Utterance, ...] = ()
    learned: tuple[Proposal, ...] | None = None
    spent: Spent | None = None
    error: str | None = None
    reply_to: str | None = None
    pictures: int = 4


class Turns:
    """`Service.turns`."""

    def __init__(
        self,
        database: Database,
        *,
        speakers: Speakers,
        search: Search,
        learner: Learner,
        mail: Mail,
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_tokens: Callable[[str], int],
        changed: Callable[[Scope], None],
    ) -> None:
        """`changed` is told where memory may have changed by a turn."""
        self._database = database
        self._speakers = speakers
        self._search = search
        self._learner = learner
        self._mail = mail
        self._now = now
        self._new_id = new_id
        self._count_tokens = count_tokens
        self._changed = changed

    async def begin(self, where: Where, who: Who, heard: Sequence[Said]) -> Turn:
        """Claim the inbox rows of `heard` for a new turn and put their messages into history.

        Those that were ended meanwhile are left out; raises `Withdrawn` when none is left.
        """
        now = self._now()

        def act(tx: Transaction) -> Turn:
            waiting = mailbox.still_waiting(tx, [message.inbox_id for message in heard])
            said = [message for message in heard if message.inbox_id in waiting]
            if not said:
                raise Withdrawn
            context = self._speakers.enter(tx, where, who)
            turn_id = history.begin_turn(tx, context.session, now=now)
            mailbox.claim(tx, [message.inbox_id for message in said], turn_id)
            learning = context.session.learning and context.speaker.learning
            ids = history.record(
                tx,
                context.session,
                turn_id,
                owner_id=context.scope.writes_to,
                utterances=[
                    Utterance(
                        role="user",
                        text=message.text,
                        tokens=message.tokens,
                        said_at=message.said_at,
                        learn=message.learn and learning,
                        recall=message.recall and learning,
                        author_id=context.speaker.id,
                        author_name=who.name,
                        platform_ref=message.platform_ref,
                        reply_to=message.reply_to,
                    )
                    for message in said
                ],
                now=now,
            )
            for message, message_id in zip(said, ids, strict=True):
                attachments.join(tx, message.inbox_id, message_id)
            return Turn(
                id=turn_id,
                context=context,
                inbox_ids=tuple(message.inbox_id for message in said),
                said=tuple(history.between(tx, context.session.id, ids[0], ids[-1])),
                first=not history.answered_before(tx, context.session.chat_id),
            )

        return await self._database.write(act)

    async def resume(self, where: Where, who: Who, turn_id: int, inbox_ids: Sequence[int]) -> Turn:
        """Take up a turn that broke off, with the model steps it already got."""

        def act(tx: Transaction) -> Turn:
            context = self._speakers.enter(tx, where, who)
            return Turn(
                id=turn_id,
                context=context,
                inbox_ids=tuple(inbox_ids),
                said=tuple(history.messages_of_turn(tx, turn_id)),
                steps=tuple(history.steps(tx, turn_id)),
                attempts=history.retry_turn(tx, turn_id),
                first=not history.answered_before(tx, context.session.chat_id),
            )

        return await self._database.write(act)

    async def again(self, context: Context, inbox_id: int, *, failed: int | None = None) -> int | None:
        """Have the last turn of who speaks here answered anew, for this inbox row; the new turn, None without one.

        With `failed` only if that is the last turn, and has brought no answer.
        """
        return await self._database.write(
            lambda tx: again.again(
                tx, context.session, anew(tx, context).scope, inbox_id, failed=failed, now=self._now()
            )
        )

    async def at_hand(self, context: Context) -> AtHand:
        """What the one who speaks here may mean by "that"."""
        return await self._database.read(
            lambda reader: again.at_hand(reader, context.session, anew(reader, context).scope)
        )

    async def look(self, turn: Turn, budget: Budget | None, *, window_tokens: int, window_messages: int) -> View:
        """Everything the prompt of a turn is made of; changes nothing. Without a budget it holds no memory."""
        context = await self._database.read(lambda reader: anew(reader, turn.context))
        query = "\n".join(message.text for message in turn.said)
        hits: list[Hit] = []
        if budget is not None and should_search(query):
            hits = await self._search.find(
                context.scope,
                query,
                timezone=context.timezone,
                limit=budget.items * 2,
                besides={message.id for message in turn.said},
                older_reflections=False,
            )
        # What is learned from here on, by this very turn too, is newer than a snapshot taken now.
        now = self._now()
        return await self._database.read(
            lambda reader: views.take(
                reader,
                context,
                turn.said,
                budget,
                hits,
                window_tokens=window_tokens,
                window_messages=window_messages,
                now=now,
                count_tokens=self._count_tokens,
            )
        )

    def propose(self, turn: Turn) -> list[Proposal]:
        """What this turn's own messages say, by patterns. Nothing is written."""
        return extract.read(turn.said, scope=turn.context.scope, timezone=turn.context.timezone)

    async def keep_step(self, turn: Turn, n: int, completion: str, spent: Spent) -> None:
        """Keep a model's answer, and book what it cost whatever becomes of the turn."""

        def act(tx: Transaction) -> None:
            history.keep_step(tx, turn.id, n, completion, now=self._now())
            self._book(tx, turn, spent)

        await self._database.write(act)

    async def act(self, turn: Turn, n: int, i: int, tool: str, act: Callable[[Desk], str]) -> str:
        """Run a tool's change to memory and keep its result, as one transaction.

        A call of this turn that already ran is not run again: its result is given once more.
        """

        def once(tx: Transaction) -> str:
            found = history.effect(tx, turn.id, n, i)
            if found is not None and found[1] is not None:
                return found[1]
            said = tuple(message.id for message in turn.said)
            if history.between(tx, turn.context.session.id, said[0], said[-1]):
                result = act(Desk(tx, anew(tx, turn.context), now=self._now(), new_id=self._new_id, source_ids=said))
            else:
                result = _TAKEN_BACK
            history.keep_effect(tx, turn.id, n, i, tool, result, now=self._now())
            return result

        result = await self._database.write(once)
        self._changed(turn.context.scope)
        return result

    async def finish(self, turn: Turn, view: View | None, outcome: Outcome) -> None:
        """Commit all that a turn brought: answer, what was recalled and learned, mail, the end of its inbox rows."""
        now = self._now()
        session = turn.context.session

        def act(tx: Transaction) -> Unread:
            # What was deleted while its turn went on teaches nothing, nor does the answer to it.
            said = history.between(tx, session.id, turn.said[0].id, turn.said[-1].id)
            standing = {message.id for message in said}
            if outcome.utterances:
                findable = all(message.recall and message.id in standing for message in turn.said)
                utterances = [replace(one, recall=one.recall and findable) for one in outcome.utterances]
                history.record(tx, session, turn.id, utterances, owner_id=turn.context.scope.writes_to, now=now)
            if outcome.learned is not None:
                self._learn(tx, turn, [one for one in outcome.learned if one.message_id in standing])
            if view is not None:
                views.keep(tx, view, turn_id=turn.id, session_id=session.id, now=now)
            if outcome.spent is not None:
                self._book(tx, turn, outcome.spent)
            if outcome.error is not None:
                questions.withdraw(tx, turn.id)
            kind = "message" if outcome.error is None else "notice"
            self._mail.post(
                tx,
                session_key=session.key,
                turn_id=turn.id,
                inbox_id=turn.inbox_ids[0],
                kind=kind,
                pieces=outcome.pieces,
                reply_to=outcome.reply_to,
            )
            if view is not None and any(one.data for beside in view.attached.values() for one in beside):
                attachments.fade(tx, session.id, session.window_after, keep_pictures=outcome.pictures)
            history.end_turn(tx, turn.id, error=outcome.error, now=now)
            mailbox.answered(tx, turn.inbox_ids, error=outcome.error, now=now)
            return extractions.unread(tx, session.id)

        self._learner.heard(session.id, await self._database.write(act))
        if outcome.learned:
            self._changed(turn.context.scope)

    async def record(
        self, where: Where, who: Who | None, utterances: Sequence[Utterance], *, inbox_ids: Sequence[int] = ()
    ) -> None:
        """Put what was said into history without answering it, and let it be learned from in a quiet moment.

        `who` said what has the role "user"; without anybody only the bot's words can be recorded, in a session that
        exists. `inbox_ids` are done with the same commit.
        """
        now = self._now()

        def act(tx: Transaction) -> tuple[int, Unread]:
            if who is None:
                session = people.session_by_key(tx, where.session_key)
                assert session is not None, f"nobody has spoken in {where.session_key}"
                speaker_id = people.last_speaker(tx, session.id)
                learning = session.learning and (speaker_id is None or people.speaker_by_id(tx, speaker_id).learning)
                owner_id = people.scope_of(tx, session, speaker_id).writes_to
            else:
                context = self._speakers.enter(tx, where, who)
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
            mailbox.answered(tx, inbox_ids, error=None, now=now)
            return session.id, extractions.unread(tx, session.id)

        self._learner.heard(*await self._database.write(act))

    def _book(self, tx: Transaction, turn: Turn, spent: Spent) -> None:
        usage.add(
            tx,
            spent,
            turn_id=turn.id,
            session_id=turn.context.session.id,
            agent_id=turn.context.session.agent_id,
            purpose="chat",
            now=self._now(),
        )

    def _learn(self, tx: Transaction, turn: Turn, learned: Sequence[Proposal]) -> None:
        """Keep what this turn's messages say within its last transaction, so that they need not be read again."""
        session = turn.context.session
        for proposal in learned:
            keep.keep(
                tx,
                turn.context.scope,
                proposal.draft,
                source_ids=[proposal.message_id],
                now=self._now(),
                new_id=self._new_id,
            )
        if not extractions.unread_before(tx, session.id, turn.said[0].id):
            extractions.mark_read(tx, session.id, turn.said[-1].id)
