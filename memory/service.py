"""Memory as the gateway sees it: the turns, what is recalled, and what people do to it.

`mail` is the mailbox and `door` who may speak.

Invariants: every call is confined by a `Context`, made from who speaks where; each method that writes is one
transaction; what an inbox row causes and the row's end are committed together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory import dates, profile
from memory.backups import Backups, Retention
from memory.browsing import Browsing, Slot
from memory.desk import Compose, Context, Desk, Shown, anew, may_change, retract
from memory.door import Door
from memory.errors import Withdrawn
from memory.forgetting import Forgetting, Preview, Receipt
from memory.learn import extract, keep
from memory.learn.ask import Mind
from memory.learn.extract import Proposal
from memory.learn.learner import Learner, Triggers
from memory.mail import Mail
from memory.oversight import Overseer, Oversight
from memory.privacy import Account, Kept, Linking, Look, Note, Party, Privacy
from memory.recall import index, rank
from memory.recall.embed import Embedder, TokenEmbedder
from memory.recall.embedding import Embedding, Progress
from memory.recall.gate import should_search
from memory.recall.rank import Weights
from memory.recall.recall import (
    Budget,
    Recall,
    Recalled,
    Snapshot,
    excerpt,
    recall,
    shares,
    stored_snapshot,
    take_snapshot,
)
from memory.recall.rerank import Reranker
from memory.recall.search import Hit, Search
from memory.recall.words import query_terms
from memory.store import (
    attachments,
    entities,
    extractions,
    history,
    mailbox,
    memories,
    passages,
    people,
    questions,
    recalls,
    usage,
)
from memory.store.attachments import Attached, AttachedState
from memory.store.browsing import LISTED, TIERS, Shelf
from memory.store.database import Database, Durability, Reader, Transaction
from memory.store.driver import Driver
from memory.store.entities import Entity
from memory.store.extractions import Failure, Standing, Unread
from memory.store.history import Message, Utterance
from memory.store.looks import Action as LookAction
from memory.store.mailbox import Dead, Letter, Parcel, Piece
from memory.store.memories import Draft, Kind, Memory, Source
from memory.store.passages import Passage
from memory.store.people import ChatKind
from memory.store.questions import Question
from memory.store.recalls import Entry
from memory.store.usage import Spent, Used
from memory.transferring import Transfer
from memory.upkeep import again, leave
from memory.upkeep.again import AtHand
from memory.upkeep.choose import Selection
from memory.upkeep.forget import How
from memory.upkeep.leave import Erased

__all__ = [
    "LISTED", "TIERS", "Account", "AtHand", "Attached", "AttachedState", "Browsing", "Budget", "Context", "Dead",
    "Desk", "Door", "Draft", "Entity", "Entry", "Erased", "Failure", "Forgetting", "Hit", "How", "Kept", "Kind",
    "Letter", "Linking", "Look", "LookAction", "Mail", "Memory", "Message", "Note", "Overseer", "Parcel", "Party",
    "Passage", "Piece", "Preview", "Privacy", "Proposal", "Question", "Recall", "Recalled", "Receipt", "Selection",
    "Service", "Shelf", "Shown", "Slot", "Snapshot", "Source", "Spent", "Standing", "Stats", "Status",
    "StoreHealth", "Triggers", "Used", "Utterance", "Weights", "Why", "excerpt", "may_change", "query_terms",
    "shares",
]  # fmt: skip

#: A snapshot is taken anew when the person comes back after this silence (DESIGN 5.5).
_SNAPSHOT_IDLE_MS = 5 * 60 * 1000
#: What a tool's call gives when there is nobody any more who has asked for it; read by the model.
_TAKEN_BACK = "The person has deleted what they had asked; nothing was done."
#: So long a message that came too late waits for somebody to ask for its answer.
_HELD_MS = 7 * 24 * 3_600_000
_DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place a message comes from, in the platform's words, and the agent that serves it."""

    session_key: str
    platform: str
    chat: str
    chat_kind: ChatKind
    thread: str | None
    agent: str
    chat_title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The person who speaks, in the platform's words."""

    platform: str
    user_id: str
    name: str


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
class Embedders:
    """How to open what gives meaning to texts, `delay` seconds after the start.

    What `paid` ones gave is kept for 30 days.
    """

    vectors: Callable[[], Awaitable[Embedder]]
    tokens: Callable[[], Awaitable[TokenEmbedder]] | None = None
    paid: bool = False
    delay: float = 0.0


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
class View:
    """What a turn's prompt is made of.

    `snapshot_taken_at` is set where the snapshot was taken for this turn, `trimmed_to` where older messages have just
    left the window. `attached` is what came with messages of the window, by their ids.
    """

    window: tuple[Message, ...]
    recall: Recall
    snapshot_taken_at: int | None = None
    trimmed_to: int | None = None
    attached: Mapping[int, tuple[Attached, ...]] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What entered a reply: entries with what they name (None once forgotten) and what the model took.

    With an `error` code there was a notice instead of an answer. `sources` are by memory id; `places` are the keys of
    the sessions in which the named messages were said, by session id. `answered_at` is milliseconds UTC.
    """

    turn_id: int
    answered_at: int
    error: str | None
    entries: tuple[tuple[Entry, Memory | Message | None], ...]
    sources: Mapping[int, Sequence[Source]]
    places: Mapping[int, str]
    spent: tuple[Spent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How much one scope remembers: live rows by kind, past ones, messages, and the time of the oldest row."""

    kinds: dict[str, int]
    past: int
    messages: int
    since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of somebody or something by name."""

    entity: Entity
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """How a store stands: since when the oldest message waits for its answer and the oldest row for its send

    (milliseconds UTC), what is damaged and what to do about it, and the size of the write-ahead log in bytes.
    """

    oldest_inbox: int | None
    oldest_outbox: int | None
    damage: str | None
    wal_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Figures for the status line, of this session and of what its scope remembers.

    `unread` messages are not yet put down to be read; how the rest stands is in `reading`. Tokens and `cost` are those
    since midnight where the person lives; `embedding` is None where words alone serve.
    """

    live: int
    total: int
    window_messages: int
    window_tokens: int
    unread: int
    reading: Standing
    inbound: int
    outbound: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    sqlite: str
    path: Path
    embedding: Progress | None


class Service:
    """One open store. Make it with `await Service.open(...)`, end it with `await close(...)`."""

    def __init__(
        self,
        database: Database,
        *,
        agents: Mapping[str, str],
        minds: Mapping[str, Mind],
        triggers: Triggers,
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_tokens: Callable[[str], int],
        run_id: str,
        weights: Weights = rank.HYBRID,
        embedders: Embedders | None = None,
        reranker: Reranker | None = None,
        retention: Retention | None = None,
        admins_read: bool = False,
    ) -> None:
        self._database = database
        self._agents = dict(agents)
        self._minds = dict(minds)
        self._mind_of: dict[int, Mind] = {}
        self._agent_ids: dict[str, int] = {}
        self._timezones: dict[int, str] = {}
        self._now = now
        self._short_id = lambda: f"m_{new_id()}"
        self._count_tokens = count_tokens
        self.mail = Mail(database, now=now, run_id=run_id)
        self.door = Door(database, now=now)
        self.privacy = Privacy(database, self.mail, now=now)
        self.browsing = Browsing(database)
        self._embedding = (
            None
            if embedders is None
            else Embedding(
                database,
                embedder=embedders.vectors,
                token_embedder=embedders.tokens,
                text_of=index.text_of,
                now=now,
                cached=embedders.paid,
                delay=embedders.delay,
            )
        )
        self._index = index.Mending(database)
        self._search = Search(
            database,
            now=now,
            weights=weights,
            embedding=self._embedding,
            reranker=reranker,
            suspect=self._index.suspect,
        )
        self.forgetting = Forgetting(database, search=self._search, now=now, new_id=self._short_id)
        self.oversight = Oversight(
            database, search=self._search, mail=self.mail, forgetting=self.forgetting, now=now, reads=admins_read
        )
        self.backups = Backups(
            database, retention=retention or Retention(folder=database.path.parent / "backups"), now=now
        )
        self.forgetting.backups_until = self.backups.until
        self.forgetting.list_erased = self.backups.list_erased
        self._learner = Learner(
            database,
            triggers=triggers,
            timezone_of=self._timezones.__getitem__,
            mind_of=self._mind_of.get,
            now=now,
            new_id=self._short_id,
        )
        self.transfer = Transfer(
            database,
            agents=self._agent_ids,
            timezones=self._timezones,
            now=now,
            new_id=new_id,
            count_tokens=count_tokens,
            heard=lambda session_id: self._learner.soon(session_id, "imported"),
            scrub=self.forgetting.scrub,
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        agents: Mapping[str, str],
        triggers: Triggers,
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_tokens: Callable[[str], int],
        minds: Mapping[str, Mind] | None = None,
        durability: Durability = "process",
        driver: Driver | None = None,
        weights: Weights = rank.HYBRID,
        embedders: Embedders | None = None,
        reranker: Reranker | None = None,
        retention: Retention | None = None,
        admins_read: bool = False,
    ) -> Service:
        """Open the store at `path` for `agents` (name → timezone). `new_id` gives short random text.

        `minds` are the models that read for agents in the background; for the others patterns do.
        Without `embedders` memory is searched by words alone. Backups go where `retention` says, else to a folder
        backups beside the store. With `admins_read` admins see what memories say.

        Raises `memory.errors.StorageError` and its kin, each saying what to do.
        """
        database = await Database.open(path, now=now(), durability=durability, driver=driver)
        service = cls(
            database, agents=agents, triggers=triggers, now=now, new_id=new_id, count_tokens=count_tokens,
            run_id=new_id(), minds=minds or {}, weights=weights, embedders=embedders, reranker=reranker,
            retention=retention, admins_read=admins_read,
        )  # fmt: skip
        try:
            await service._start()
        except BaseException:
            await database.close()
            raise
        return service

    async def _start(self) -> None:
        def act(tx: Transaction) -> None:
            for name, timezone in self._agents.items():
                self._agent_ids[name] = people.agent(tx, name, now=self._now())
                self._timezones[self._agent_ids[name]] = timezone
                if name in self._minds:
                    self._mind_of[self._agent_ids[name]] = self._minds[name]
            # Agents that are no longer configured may still have messages to be read.
            for row in tx.all("select id from agents"):
                self._timezones.setdefault(row["id"], "UTC")
            mailbox.doubt(tx)
            mailbox.expire_held(tx, before=self._now() - _HELD_MS, now=self._now())

        await self._database.write(act)
        await self._index.begin()
        if self._embedding is not None:
            self._embedding.start()
        await self.backups.begin()
        await self.forgetting.begin()
        await self._learner.take_up()

    async def close(self, *, seconds: float) -> None:
        """Read what is unread, for at most `seconds`, then close the file."""
        try:
            await self._learner.finish(seconds=seconds)
            await self.forgetting.close()
            await self.backups.list_erased()
            await self._index.close()
            if self._embedding is not None:
                await self._embedding.close()
        finally:
            await self._database.close()

    # Turns ------------------------------------------------------------------------------------------------------

    async def context(self, where: Where, who: Who) -> Context:
        """Who speaks where; makes the rows for people and places seen for the first time."""
        return await self._database.write(lambda tx: self._context(tx, where, who))

    async def known(self, where: Where, who: Who) -> Context | None:
        """The same of who has spoken before, where somebody has; a read, for what must change nothing. None else."""

        def act(reader: Reader) -> Context | None:
            speaker = people.known_speaker(reader, platform=who.platform, user_id=who.user_id)
            session = people.session_by_key(reader, where.session_key)
            if speaker is None or session is None or session.agent_id != self._agent_ids[where.agent]:
                return None
            return Context(
                session=session,
                speaker=speaker,
                scope=people.scope_of(reader, session, speaker.id),
                timezone=speaker.timezone or self._timezones[session.agent_id],
            )

        return await self._database.read(act)

    async def begin_turn(self, where: Where, who: Who, heard: Sequence[Said]) -> Turn:
        """Claim the inbox rows of `heard` for a new turn and put their messages into history.

        Those that were ended meanwhile are left out; raises `Withdrawn` when none is left.
        """
        now = self._now()

        def act(tx: Transaction) -> Turn:
            waiting = mailbox.still_waiting(tx, [message.inbox_id for message in heard])
            said = [message for message in heard if message.inbox_id in waiting]
            if not said:
                raise Withdrawn
            context = self._context(tx, where, who)
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

    async def resume_turn(self, where: Where, who: Who, turn_id: int, inbox_ids: Sequence[int]) -> Turn:
        """Take up a turn that broke off, with the model steps it already got."""

        def act(tx: Transaction) -> Turn:
            context = self._context(tx, where, who)
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
        turn = replace(turn, context=await self._database.read(lambda reader: anew(reader, turn.context)))
        session = turn.context.session
        query = "\n".join(message.text for message in turn.said)
        hits: list[Hit] = []
        if budget is not None and should_search(query):
            hits = await self._search.find(
                turn.context.scope,
                query,
                timezone=turn.context.timezone,
                limit=budget.items * 2,
                besides={message.id for message in turn.said},
            )
        # What is learned from here on, by this very turn too, is newer than a snapshot taken now.
        now = self._now()

        def act(reader: Reader) -> View:
            messages = history.after(reader, session.id, session.window_after, limit=window_messages * 2)
            window = _fit(messages, keep=turn.said[0].id, tokens=window_tokens, count=window_messages)
            trimmed_to = window[0].id - 1 if window and len(window) < len(messages) else None
            attached = attachments.of_messages(reader, [message.id for message in window])
            if budget is None:
                return View(
                    window=tuple(window),
                    recall=Recall(snapshot=Snapshot()),
                    trimmed_to=trimmed_to,
                    attached=attached,
                )
            snapshot, taken = self._snapshot(reader, turn.context, budget)
            found = recall(
                reader,
                hits,
                query,
                snapshot=snapshot,
                in_window=frozenset(message.id for message in window),
                budget=budget,
                count_tokens=self._count_tokens,
            )
            return View(
                window=tuple(window),
                recall=found,
                snapshot_taken_at=now if taken else None,
                trimmed_to=trimmed_to,
                attached=attached,
            )

        return await self._database.read(act)

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
                result = act(Desk(tx, anew(tx, turn.context), now=self._now(), new_id=self._short_id, source_ids=said))
            else:
                result = _TAKEN_BACK
            history.keep_effect(tx, turn.id, n, i, tool, result, now=self._now())
            return result

        return await self._database.write(once)

    async def finish_turn(self, turn: Turn, view: View | None, outcome: Outcome) -> None:
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
                self._keep_view(tx, turn, view)
            if outcome.spent is not None:
                self._book(tx, turn, outcome.spent)
            if outcome.error is not None:
                questions.withdraw(tx, turn.id)
            kind = "message" if outcome.error is None else "notice"
            self.mail.post(
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
                context = self._context(tx, where, who)
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

    # What people do ---------------------------------------------------------------------------------------------

    async def answer(
        self,
        context: Context,
        inbox_id: int,
        act: Callable[[Desk], Sequence[Piece]],
        *,
        edits: str | None = None,
        to: str | None = None,
        around: Sequence[Piece] = (),
    ) -> None:
        """Do what a person asked and queue the answer that `act` gives, as one transaction that ends the inbox row.

        The answer takes the place of the shown message `edits`. With `to` it goes to the session with that key, and
        what stands `around` is what is said of it where it was asked.
        """

        def answered(tx: Transaction) -> None:
            pieces = act(Desk(tx, anew(tx, context), now=self._now(), new_id=self._short_id))
            here = context.session.key
            for key, said, answered_id in ((to or here, pieces, None if to else inbox_id), (here, around, inbox_id)):
                self.mail.post(
                    tx,
                    session_key=key,
                    turn_id=None,
                    inbox_id=answered_id,
                    kind="message",
                    pieces=said,
                    reply_to=None,
                    edits=edits,
                )
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(answered)
        # What was removed must not linger in the index until somebody searches.
        await index.keep_up(self._database)

    async def is_there(self, session_key: str) -> bool:
        """Whether there is a session under this key whose chat the bot has not left."""

        def act(reader: Reader) -> bool:
            session = people.session_by_key(reader, session_key)
            return session is not None and people.is_present(reader, session)

        return await self._database.read(act)

    async def cancel(self, question: Question) -> None:
        """The person talks of something else: the question is off the table."""
        await self._database.write(lambda tx: questions.settle(tx, question.id, None))

    async def question(self, where: Where, who: Who) -> Question | None:
        """The question that stands open to this person here."""
        return await self._database.read(
            lambda reader: questions.open_question(
                reader, where.session_key, platform=who.platform, user_id=who.user_id, now=self._now()
            )
        )

    async def open_question(self, context: Context) -> Question | None:
        """The question that stands open to who speaks here."""
        return await self._database.read(
            lambda reader: questions.open_to(
                reader, session_id=context.session.id, asker_id=context.speaker.id, now=self._now()
            )
        )

    async def amend(
        self, where: Where, who: Who, inbox_id: int, *, platform_ref: str, text: str, compose: Compose
    ) -> bool:
        """A message was edited after its turn began: its words change, and what it alone had taught is learned anew.

        `compose` makes what is kept of its words and of what came beside them. Ends the inbox row. False when this
        person said no such message here, or when it says that already.
        """

        def act(tx: Transaction) -> int | None:
            context = self._context(tx, where, who)
            desk = Desk(tx, context, now=self._now(), new_id=self._short_id)
            amended = desk.amend(platform_ref, text, compose=compose, count_tokens=self._count_tokens)
            mailbox.answered(tx, [inbox_id], error=None, now=self._now())
            return context.session.id if amended else None

        session_id = await self._database.write(act)
        if session_id is None:
            return False
        self._learner.soon(session_id, "edited")
        # What was retracted must not linger in the index until somebody searches.
        await index.keep_up(self._database)
        await self.backups.list_erased()
        return True

    async def retract(self, platform: str, session_key: str, platform_refs: Sequence[str]) -> int:
        """Messages were deleted on the platform: what was said in them goes, and what was learned from them alone.

        Returns how many that were; unknown ones, the bot's own and those erased before count as none.
        """

        def known(reader: Reader) -> people.Session | None:
            session = people.session_by_key(reader, session_key)
            if session is None or not people.is_on(reader, session, platform):
                return None
            return session if history.said_here(reader, session.id, platform_refs) else None

        def act(tx: Transaction) -> int:
            session = known(tx)
            if session is None:
                return 0
            return retract(tx, session, platform_refs, now=self._now(), new_id=self._short_id)

        # Most of what is deleted on a platform was never said to us: that must not cost a write.
        if await self._database.read(known) is None:
            return 0
        count = await self._database.write(act)
        if count:
            await self.backups.list_erased()
            # What was retracted must not linger in the index until somebody searches.
            await index.keep_up(self._database)
        return count

    async def erase_left(self, days: int = 30) -> Erased:
        """Erase what was said and learned in chats that the bot left more than `days` ago; for each start and daily.

        Stopped half-way it goes on the next time; a chat to which the bot came back keeps what is still there.
        """
        now = self._now()
        return await leave.erase_left(self._database, before=now - days * _DAY_MS, now=now)

    async def link(self, one: Context, other: Context) -> None:
        """The two who speak are one person: in private, each reads what either told. Contexts made before are stale."""
        await self._database.write(lambda tx: people.link(tx, one.speaker.id, other.speaker.id))

    async def unlink(self, context: Context) -> None:
        """Who speaks here stands for a person alone again; what was made of both sides' memories goes."""
        await self._database.write(lambda tx: people.unlink(tx, context.speaker.id))
        # What was removed must not linger in the index until somebody searches.
        await index.keep_up(self._database)

    def learn_soon(self, context: Context, reason: str) -> None:
        """Have what is unread in this session read, without waiting: a model may take a minute."""
        self._learner.soon(context.session.id, reason)

    async def flush(self, context: Context, reason: str) -> None:
        """Read what is unread in this session now."""
        await self._learner.flush(context.session.id, reason)

    async def search(self, context: Context, query: str, *, limit: int, weights: Weights | None = None) -> list[Hit]:
        """The memories and passages that answer `query` best. `weights` other than the store's are for measuring."""
        context = await self._database.read(lambda reader: anew(reader, context))
        return await self._search.find(context.scope, query, timezone=context.timezone, limit=limit, weights=weights)

    async def indexed(self) -> None:
        """Wait until all that is committed can be found by every means there is."""
        await self._index.done()
        await index.catch_up(self._database)
        if self._embedding is not None and await self._embedding.opened():
            await self._embedding.idle()

    async def memories(self, context: Context, *, limit: int, offset: int = 0) -> list[Memory]:
        """Live facts, styles, events and reflections of the scope, the ones that matter first."""
        return await self._database.read(
            lambda reader: memories.current(
                reader,
                anew(reader, context).scope,
                ("fact", "style", "event", "reflection"),
                limit=limit,
                offset=offset,
            )
        )

    async def profile(self, context: Context) -> list[Memory]:
        return await self._database.read(lambda reader: profile.read(reader, anew(reader, context).scope))

    async def why(self, context: Context, *, message: str | None = None) -> Why | None:
        """What entered the last reply in this session, or the one that the platform's `message` belongs to.

        That may be the reply itself or what it answers; None when it is neither, or there was no reply.
        """

        def act(reader: Reader) -> Why | None:
            turn = recalls.answered(reader, context.session, message)
            if turn is None:
                return None
            entries = recalls.of_turn(reader, turn.turn_id)
            named = {item: [e.item_id for e in entries if e.item == item] for item in ("memory", "message")}
            scope = anew(reader, context).scope
            known = memories.by_ids(reader, scope, named["memory"])
            said = passages.by_ids(reader, scope, named["message"])
            moved = memories.moved_at(reader, {message.session_id for message in said})
            said = [
                replace(one, platform_ref=None) if one.said_at < moved.get(one.session_id, 0) else one for one in said
            ]
            found: dict[tuple[str, int], Memory | Message] = {("memory", memory.id): memory for memory in known}
            found |= {("message", message.id): message for message in said}
            return Why(
                turn_id=turn.turn_id,
                answered_at=turn.finished_at,
                error=turn.error,
                entries=tuple((entry, found.get((entry.item, entry.item_id))) for entry in entries),
                sources=memories.sources(reader, scope, [memory.id for memory in known]),
                places={one.session_id: people.session_by_id(reader, one.session_id).key for one in said},
                spent=tuple(usage.of_turn(reader, turn.turn_id)),
            )

        return await self._database.read(act)

    async def entity(self, context: Context, name: str, *, limit: int = 20) -> About | None:
        """What this scope knows by `name`, with the newest memories that name it."""

        def act(reader: Reader) -> About | None:
            scope = anew(reader, context).scope
            known = entities.entity(reader, scope, name)
            if known is None:
                return None
            return About(
                entity=known,
                memories=tuple(memories.by_ids(reader, scope, known.memory_ids[:limit])),
            )

        return await self._database.read(act)

    async def stats(self, context: Context) -> Stats:
        def act(reader: Reader) -> Stats:
            scope = anew(reader, context).scope
            live = memories.kinds(reader, scope)
            return Stats(
                kinds=live,
                past=memories.count(reader, scope, live_only=False) - sum(live.values()),
                messages=passages.count(reader, scope),
                since=memories.oldest(reader, scope),
            )

        return await self._database.read(act)

    async def health(self, channels: Collection[str]) -> StoreHealth:
        """How the store stands, and what waits in it for these channels, named as in session keys."""
        inbox, outbox = await self.mail.oldest(channels)
        return StoreHealth(
            oldest_inbox=inbox,
            oldest_outbox=outbox,
            damage=self._database.damage,
            wal_bytes=self._database.wal_bytes,
        )

    async def usage(self, context: Context, *, days: int, everywhere: bool = False) -> list[Used]:
        """What model calls took in the last `days`, by purpose and model: here, or of this agent `everywhere`."""
        since = self._now() - days * _DAY_MS
        session_id = None if everywhere else context.session.id
        return await self._database.read(
            lambda reader: usage.used(reader, context.session.agent_id, session_id=session_id, since=since)
        )

    async def status(self, context: Context) -> Status:
        session = context.session
        progress = None if self._embedding is None else await self._embedding.progress()

        def act(reader: Reader) -> Status:
            scope = anew(reader, context).scope
            window = history.after(reader, session.id, session.window_after, limit=1_000)
            inbound, outbound = mailbox.backlog(reader, session.key)
            today = dates.midnight(self._now(), context.timezone)
            used = usage.used(reader, session.agent_id, session_id=session.id, since=today)
            costs = [one.cost for one in used if one.cost is not None]
            return Status(
                live=memories.count(reader, scope, live_only=True),
                total=memories.count(reader, scope, live_only=False),
                window_messages=len(window),
                window_tokens=sum(message.tokens for message in window),
                unread=extractions.unread(reader, session.id).messages,
                reading=extractions.standing(reader, session.id),
                inbound=inbound,
                outbound=outbound,
                tokens_in=sum(one.input_tokens for one in used),
                tokens_out=sum(one.output_tokens for one in used),
                cost=sum(costs) if costs else None,
                sqlite=str(self._database.driver),
                path=self._database.path,
                embedding=progress,
            )

        return await self._database.read(act)

    # Shared parts -----------------------------------------------------------------------------------------------

    def _context(self, tx: Transaction, where: Where, who: Who) -> Context:
        now = self._now()
        agent_id = self._agent_ids[where.agent]
        speaker = people.speaker(tx, platform=who.platform, user_id=who.user_id, name=who.name, now=now)
        session = people.session_by_key(tx, where.session_key) or self._new_session(tx, where, agent_id)
        people.heard_in(tx, session, speaker.id)
        if session.agent_id != agent_id:
            session = people.reassign(tx, session, agent_id)
        return Context(
            session=session,
            speaker=speaker,
            scope=people.scope_of(tx, session, speaker.id),
            timezone=speaker.timezone or self._timezones[session.agent_id],
        )

    def _new_session(self, tx: Transaction, where: Where, agent_id: int) -> people.Session:
        """The session under a key that is not known yet: a new one, unless the chat has got another id meanwhile."""
        now = self._now()
        chat_id = people.chat(
            tx, platform=where.platform, reference=where.chat, kind=where.chat_kind, title=where.chat_title, now=now
        )
        return people.session_elsewhere(tx, where.session_key, chat_id=chat_id, thread=where.thread) or people.session(
            tx, key=where.session_key, chat_id=chat_id, thread=where.thread, agent_id=agent_id, now=now
        )

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

    def _snapshot(self, reader: Reader, context: Context, budget: Budget) -> tuple[Snapshot, bool]:
        """The prompt's snapshot, and whether it was taken just now."""
        session, scope = context.session, context.scope
        idle = session.last_message_at is None or self._now() - session.last_message_at > _SNAPSHOT_IDLE_MS
        if session.snapshot is None or session.snapshot_at is None or idle:
            return take_snapshot(reader, scope, budget, self._count_tokens), True
        stored = stored_snapshot(reader, scope, session.snapshot, taken_at=session.snapshot_at, budget=budget)
        return stored, False

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
                new_id=self._short_id,
            )
        if not extractions.unread_before(tx, session.id, turn.said[0].id):
            extractions.mark_read(tx, session.id, turn.said[-1].id)

    def _keep_view(self, tx: Transaction, turn: Turn, view: View) -> None:
        session_id = turn.context.session.id
        snapshot = view.recall.snapshot
        if view.snapshot_taken_at is not None:
            people.keep_snapshot(tx, session_id, snapshot.ids, now=view.snapshot_taken_at)
        if view.trimmed_to is not None:
            people.trim_window(tx, session_id, after=view.trimmed_to)
        found = {item.memory.id for item in view.recall.items if item.memory is not None}
        standing = [m for m in (*snapshot.profile, *snapshot.known, *snapshot.newer) if m.id not in found]
        entries = [_entry(item) for item in view.recall.items]
        entries += [
            Entry(item="memory", item_id=memory.id, placed="known", score=None, parts={}) for memory in standing
        ]
        recalls.keep(tx, turn.id, entries)
        recalled = [i.memory.id for i in view.recall.items if i.memory is not None and i.placed == "recalled"]
        memories.touch(tx, recalled, now=self._now())


def _entry(item: Recalled) -> Entry:
    score = round(item.score, 4)
    if item.memory is not None:
        return Entry(item="memory", item_id=item.memory.id, placed=item.placed, score=score, parts=item.parts)
    assert item.passage is not None
    return Entry(item="message", item_id=item.passage.message.id, placed=item.placed, score=score, parts=item.parts)


def _fit(messages: list[Message], *, keep: int, tokens: int, count: int) -> list[Message]:
    """The newest messages that fit. Once they don't, half the room is freed, so that the front of the prompt

    stays the same for many turns. The current turn (ids from `keep` on) always stays; the first message is a
    person's.
    """
    if len(messages) <= count and sum(message.tokens for message in messages) <= tokens:
        return messages
    room = tokens // 2
    kept: list[Message] = []
    for message in reversed(messages):
        room -= message.tokens
        if message.id < keep and (room < 0 or len(kept) >= count // 2):
            break
        kept.append(message)
    kept.reverse()
    while kept and kept[0].id < keep and kept[0].role != "user":
        kept.pop(0)
    return kept
