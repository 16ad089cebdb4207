"""Memory as the gateway sees it: one open store, its parts put together, and what people ask of it.

`turns` are the way of a message, `mail` is the mailbox and `door` who may speak.

Invariants: every call is confined by a `Context`, made from who speaks where; each method that writes is one
transaction; what an inbox row causes and the row's end are committed together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memory import profile
from memory.backups import Backups, Retention
from memory.browsing import Browsing, Slot
from memory.desk import Compose, Context, Desk, Shown, anew, may_change, retract
from memory.door import Door
from memory.figures import Figures, Stats, Status, StoreHealth
from memory.forgetting import Forgetting, Preview, Receipt
from memory.jobs import Jobs
from memory.learn.ask import Mind
from memory.learn.extract import Proposal
from memory.learn.learner import Learner, Triggers
from memory.mail import Mail
from memory.manners import Manners
from memory.oversight import Overseer, Oversight
from memory.privacy import Account, Kept, Linking, Look, Note, Party, Privacy
from memory.recall import index, rank
from memory.recall.embed import Embedder, TokenEmbedder
from memory.recall.embedding import Embedding
from memory.recall.rank import Weights
from memory.recall.recall import Budget, Recall, Recalled, Snapshot, excerpt, shares
from memory.recall.rerank import Reranker
from memory.recall.search import Hit, Search
from memory.recall.words import query_terms
from memory.scope import Scope
from memory.speakers import Speakers, Where, Who
from memory.store import history, job_runs, mailbox, memories, passages, people, questions, recalls, usage
from memory.store.attachments import Attached, AttachedState
from memory.store.browsing import LISTED, TIERS, Shelf
from memory.store.database import Database, Durability, Reader, Transaction
from memory.store.driver import Driver
from memory.store.entities import Entity
from memory.store.extractions import Failure, Standing
from memory.store.history import Message, Utterance
from memory.store.job_runs import Run
from memory.store.looks import Action as LookAction
from memory.store.mailbox import Dead, Letter, Parcel, Piece
from memory.store.memories import Draft, Kind, Memory, Source
from memory.store.passages import Passage
from memory.store.questions import Question
from memory.store.recalls import Entry
from memory.store.usage import Spent, Used
from memory.tidying import Tidying
from memory.transferring import Transfer
from memory.turns import Outcome, Said, Turn, Turns
from memory.upkeep import leave
from memory.upkeep.again import AtHand
from memory.upkeep.choose import Selection
from memory.upkeep.forget import How
from memory.upkeep.leave import Erased
from memory.upkeep.manner import LEAST as MANNER_LEAST
from memory.upkeep.manner import LIMIT as MANNER_LIMIT
from memory.upkeep.table import TABLE
from memory.views import View

__all__ = [
    "LISTED", "MANNER_LEAST", "MANNER_LIMIT", "TIERS",
    "Account", "AtHand", "Attached", "AttachedState", "Browsing", "Budget", "Context", "Dead",
    "Desk", "Door", "Draft", "Entity", "Entry", "Erased", "Failure", "Forgetting", "Hit", "How", "Kept", "Kind",
    "Letter", "Linking", "Look", "LookAction", "Mail", "Memory", "Message", "Note", "Outcome", "Overseer",
    "Parcel", "Party", "Passage", "Piece", "Preview", "Privacy", "Proposal", "Question", "Recall", "Recalled",
    "Receipt", "Said", "Selection", "Service", "Shelf", "Shown", "Slot", "Snapshot", "Source", "Spent", "Standing",
    "Stats", "Status", "StoreHealth", "Triggers", "Turn", "Used", "Utterance", "View", "Weights", "Where", "Who",
    "Why", "excerpt", "may_change", "query_terms", "shares",
]  # fmt: skip

#: So long a message that came too late waits for somebody to ask for its answer.
_HELD_MS = 7 * 24 * 3_600_000
_DAY_MS = 24 * 3_600_000


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
class Why:
    """What entered a reply: entries with what they name (None once forgotten) and what the model took.

    With an `error` code there was a notice instead of an answer. `sources` are by memory id; `places` are the keys of
    the sessions in which the named messages were said, by session id. `replaced_by` tells of memories that hold no more
    what holds instead, by the id of the old one. `made_of` tells of derived ones what they were made of, and `made_by`
    by which run of the night's work. `answered_at` is milliseconds UTC.
    """

    turn_id: int
    answered_at: int
    error: str | None
    entries: tuple[tuple[Entry, Memory | Message | None], ...]
    sources: Mapping[int, Sequence[Source]]
    places: Mapping[int, str]
    replaced_by: Mapping[int, Memory]
    made_of: Mapping[int, Sequence[Memory]]
    made_by: Mapping[int, Run]
    spent: tuple[Spent, ...]


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
        manners: Collection[str] | None = None,
        nightly: Collection[str] | None = None,
        transcript_days: int | None = None,
    ) -> None:
        self._database = database
        self._agents = dict(agents)
        self._minds = dict(minds)
        self._mind_of: dict[int, Mind] = {}
        self._mannered = None if manners is None else frozenset(manners)
        self._agent_ids: dict[str, int] = {}
        self._timezones: dict[int, str] = {}
        self._now = now
        self._short_id = lambda: f"m_{new_id()}"
        self._count_tokens = count_tokens
        self.mail = Mail(database, now=now, run_id=run_id)
        self.door = Door(database, now=now)
        self.privacy = Privacy(database, self.mail, now=now)
        self.browsing = Browsing(database)
        self._speakers = Speakers(agents=self._agent_ids, timezones=self._timezones, now=now)
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
        self.tidying = Tidying(
            database,
            forgetting=self.forgetting,
            backups=self.backups,
            erase_left=self.erase_left,
            transcript_days=transcript_days,
            now=now,
        )
        self._manners = Manners(
            database,
            learns=self._learns_manner,
            timezone_of=self._timezones.__getitem__,
            mind_of=self._mind_of.get,
            now=now,
            new_id=self._short_id,
        )
        self._learner = Learner(
            database,
            triggers=triggers,
            timezone_of=self._timezones.__getitem__,
            mind_of=self._mind_of.get,
            now=now,
            new_id=self._short_id,
            learned=lambda agent_id, owner_id: self._manners.soon(agent_id, [owner_id]),
        )
        self.turns = Turns(
            database,
            speakers=self._speakers,
            search=self._search,
            learner=self._learner,
            mail=self.mail,
            now=now,
            new_id=self._short_id,
            count_tokens=count_tokens,
            changed=self._changed,
        )
        self.jobs = Jobs(
            database,
            table=TABLE,
            learner=self._learner,
            agents=self._agent_ids,
            nightly=nightly,
            timezone_of=self._timezones.__getitem__,
            mind_of=self._mind_of.get,
            now=now,
            new_id=self._short_id,
        )
        self.figures = Figures(database, mail=self.mail, embedding=self._embedding, now=now)
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
        manners: Collection[str] | None = None,
        nightly: Collection[str] | None = None,
        transcript_days: int | None = None,
    ) -> Service:
        """Open the store at `path` for `agents` (name → timezone). `new_id` gives short random text.

        `minds` are the models that read for agents in the background; for the others patterns do.
        Without `embedders` memory is searched by words alone. Backups go where `retention` says, else to a folder
        backups beside the store. With `admins_read` admins see what memories say. `manners` are the agents that learn a
        manner of talking to people; without it all do. `nightly` are those whose people's memories are gone through at
        night; without it all. With `transcript_days` words that were said so long ago go, by `tidying`.

        Raises `memory.errors.StorageError` and its kin, each saying what to do.
        """
        database = await Database.open(path, now=now(), durability=durability, driver=driver)
        service = cls(
            database, agents=agents, triggers=triggers, now=now, new_id=new_id, count_tokens=count_tokens,
            run_id=new_id(), minds=minds or {}, weights=weights, embedders=embedders, reranker=reranker,
            retention=retention, admins_read=admins_read, manners=manners, nightly=nightly,
            transcript_days=transcript_days,
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
        await self.jobs.begin()
        await self._learner.take_up()

    async def close(self, *, seconds: float) -> None:
        """Read what is unread, for at most `seconds`, then close the file."""
        try:
            await self._learner.finish(seconds=seconds)
            await self._manners.close()
            await self.forgetting.close()
            await self.backups.list_erased()
            await self._index.close()
            if self._embedding is not None:
                await self._embedding.close()
        finally:
            await self._database.close()

    async def context(self, where: Where, who: Who) -> Context:
        """Who speaks where; makes the rows for people and places seen for the first time."""
        return await self._database.write(lambda tx: self._speakers.enter(tx, where, who))

    async def known(self, where: Where, who: Who) -> Context | None:
        """The same of who has spoken before, where somebody has; a read, for what must change nothing. None else."""
        return await self._database.read(lambda reader: self._speakers.known(reader, where, who))

    async def whose(self, platform: str, reference: str, *, private: bool, thread: str | None = None) -> Context | None:
        """The context of a person's private chat, or of a group, named as its platform does; None where there is none.

        For whoever runs the machine, and only reads: nobody becomes known by it.
        """

        def act(reader: Reader) -> Context | None:
            if private:
                return self._speakers.person(reader, platform, reference)
            return self._speakers.group(reader, platform, reference, thread)

        return await self._database.read(act)

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
        self._changed(context.scope)
        # What was removed must not linger in the index until somebody searches.
        await index.keep_up(self._database)

    def _changed(self, scope: Scope) -> None:
        """Something may have been told, corrected or switched here that a manner of talking is made of."""
        self._manners.soon(scope.agent_id, scope.own or (scope.writes_to,))

    def _learns_manner(self, agent_id: int) -> bool:
        names = self._mannered
        return names is None or any(self._agent_ids.get(name) == agent_id for name in names)

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
            context = self._speakers.enter(tx, where, who)
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
            derived = [one for one in known if one.origin == "derived" and one.kind not in ("profile", "directive")]
            runs = {one.id: job_runs.made_by(reader, scope, one) for one in derived}
            return Why(
                turn_id=turn.turn_id,
                answered_at=turn.finished_at,
                error=turn.error,
                entries=tuple((entry, found.get((entry.item, entry.item_id))) for entry in entries),
                sources=memories.sources(reader, scope, [memory.id for memory in known]),
                places={one.session_id: people.session_by_id(reader, one.session_id).key for one in said},
                replaced_by=memories.holding_now(reader, scope, [m for m in known if m.valid_until is not None]),
                made_of={one.id: memories.parents(reader, scope, one.id) for one in derived},
                made_by={memory_id: run for memory_id, run in runs.items() if run is not None},
                spent=tuple(usage.of_turn(reader, turn.turn_id)),
            )

        return await self._database.read(act)
