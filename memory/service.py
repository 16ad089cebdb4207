"""The memory API of the gateway: one open store, its assembled parts, and people's requests to it.

`turns` carries a message through its turn; `access` decides who may speak.

Invariants: Every call is confined by a `Context`, which is made from the speaker and the place. Each method that writes
is one transaction. The effects of an inbox row and the end of that row are committed together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import structlog

from memory import profile
from memory.chat.browse import Browse, FilledSlot
from memory.chat.compaction import Bounds, Compacted, Compaction
from memory.chat.doubts import DOUBT, Doubts, FactDoubt
from memory.chat.edits import Compose, Edits, retract
from memory.chat.identities import Identities, Where, Who, entered
from memory.chat.keyring import MOST_KEYS, ApiKeys, KeyHolder
from memory.chat.keyring import PLATFORM as KEY_PLATFORM
from memory.chat.keyring import SCOPES as KEY_SCOPES
from memory.chat.mailbox import Mailbox
from memory.chat.outside_calls import CALL, AgreedCall, OutsideCalls
from memory.chat.reminding import LONGEST as LONGEST_REMINDER
from memory.chat.reminding import Reminding
from memory.chat.shown import Shown
from memory.chat.stats import Spending, Stats, Status, StoreFigures, StoreHealth
from memory.chat.summary import SECTIONS as SUMMARY_SECTIONS
from memory.chat.turns import Outcome, Said, Turn, Turns
from memory.chat.window import OLD_RESULT, TurnMaterial, WindowSize
from memory.context import Context, anew, confined
from memory.errors import StorageError
from memory.filters import NO_FILTERS, Filter, Filters, Group
from memory.filters import Name as FilterName
from memory.forgetting import left_chats
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview, Forgetting, Receipt
from memory.forgetting.left_chats import Erased
from memory.forgetting.plan import How
from memory.jobs.housekeeping import Housekeeping
from memory.jobs.runner import Jobs
from memory.jobs.style import LEAST as MANNER_LEAST
from memory.jobs.style import LIMIT as MANNER_LIMIT
from memory.jobs.style_updates import StyleUpdates
from memory.jobs.table import TABLE
from memory.keys import RELATIONS
from memory.learn.agents import AgentMemory, Agents, Rotation
from memory.learn.agents import enter as enter_agents
from memory.learn.learner import Learner, Triggers
from memory.learn.offline.changes import to_forget
from memory.learn.offline.patterns import discloses
from memory.learn.revise import Revision
from memory.loops import Loops
from memory.people.access import Access
from memory.people.oversight import Overseer, Oversight
from memory.people.privacy import Account, AuditEntry, Kept, Linking, Note, Party, Privacy
from memory.people.visits import SignedIn, Visits
from memory.recall import index, rank
from memory.recall.cues import cues
from memory.recall.embedding import Embedders, Embedding
from memory.recall.rank import Weights
from memory.recall.recall import Budget, Recall, Recalled, excerpt, shares
from memory.recall.rerank import Reranker
from memory.recall.search import Hit, Search
from memory.reminders.followups import HOURS as FOLLOW_UP_HOURS
from memory.reminders.followups import FollowUp, FollowUps
from memory.reminders.orders import Action, Order, is_beside, reworded, takes_back
from memory.reminders.orders import read as reminder_orders
from memory.reminders.reminders import Firing, Reading, Reminders, Unclear, due_of
from memory.runtime import Runtime
from memory.scope import Scope
from memory.score import FACTORS as SCORE_FACTORS
from memory.score import ScorePart
from memory.store import (
    chats,
    erasure,
    history,
    job_runs,
    lineage,
    mailbox,
    memories,
    moving,
    passages,
    people,
    questions,
    recalls,
    sealing,
    talks,
    usage,
)
from memory.store.api_keys import ApiKey, KeyScope
from memory.store.attachments import Attached, AttachedState
from memory.store.audit import Action as LookAction
from memory.store.browsing import LISTED, TIERS
from memory.store.chats import Session
from memory.store.comparisons import DoubtAnswer
from memory.store.database import Database, Durability, Reader, Transaction, one_moment
from memory.store.entities import Entity
from memory.store.extractions import Afterwards
from memory.store.history import Message, Utterance
from memory.store.job_runs import Run
from memory.store.lineage import Source
from memory.store.mailbox import TASK as TASK_BOT
from memory.store.mailbox import InboxRow, OutboxRow, Outgoing, Part
from memory.store.memories import Draft, Kind, Memory
from memory.store.passages import Passage
from memory.store.peers import Peers
from memory.store.questions import OpenQuestion, Question
from memory.store.recalls import RecalledEntry
from memory.store.reminders import MOST as MOST_REMINDERS
from memory.store.reminders import Reminder, ReminderKind, ReminderTimes
from memory.store.server import Deployment, ServerState, Standby
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.driver import Driver
from memory.store.talks import Conversation, ConversationLine, Entered
from memory.store.usage import Spent, Taken, Used
from memory.text.language import language_of, last_language
from memory.text.shortened import kept
from memory.text.times.clock import local_time
from memory.text.times.phrases import is_request as asks_reminder
from memory.text.times.rules import parse_rule as reminder_rule
from memory.text.times.spans import days_named
from memory.text.words import query_terms
from memory.text.zones import zone_named, zones_like
from memory.transfer.backups import Backups, Retention
from memory.transfer.transfers import Transfer

__all__ = [
    "CALL", "DOUBT", "FOLLOW_UP_HOURS", "KEY_PLATFORM", "KEY_SCOPES", "LISTED", "LONGEST_REMINDER", "MANNER_LEAST",
    "MANNER_LIMIT", "MOST_KEYS", "MOST_REMINDERS", "NO_FILTERS", "OLD_RESULT", "RELATIONS", "SCORE_FACTORS",
    "SUMMARY_SECTIONS", "TASK_BOT", "TIERS", "Access", "Account", "Action", "Afterwards", "AgentMemory", "AgreedCall",
    "ApiKey", "ApiKeys", "Attached", "AttachedState", "AuditEntry", "Bounds", "Budget", "Compacted", "Context",
    "Conversation", "ConversationLine", "Deployment", "DoubtAnswer", "Doubts", "Draft", "Edits", "Embedders",
    "Entered", "Entity", "Erased", "FactDoubt", "FilledSlot", "Filter", "FilterName", "Filters", "Firing", "FollowUp",
    "ForgetPreview", "Group", "Hit", "How", "InboxRow", "Keeping", "Kept", "KeyHolder", "KeyScope", "Kind", "Linking",
    "LookAction", "Mailbox", "Memory", "Message", "Note", "OpenQuestion", "Order", "OutboxRow", "Outcome",
    "OutsideCalls", "Overseer", "Part", "Party", "Passage", "Question", "Reading", "Recall", "Recalled",
    "RecalledEntry", "Receipt", "Reminder", "ReminderKind", "ReminderTimes", "Reminding", "Revision", "Rotation",
    "Runtime", "Said", "ScorePart", "SearchSetup", "Selection", "ServerState", "Service", "Session", "Shown",
    "SignedIn", "Source", "Spending", "Spent", "Standby", "Status", "StoreFigures", "StoreHealth", "Taken", "Triggers",
    "Turn", "TurnMaterial", "Unclear", "Used", "Utterance", "Visits", "Where", "Who", "Why", "WindowSize",
    "asks_reminder", "cues", "days_named", "discloses", "due_of", "excerpt", "is_beside", "kept", "language_of",
    "last_language", "local_time", "query_terms", "reminder_orders", "reminder_rule", "reworded", "shares",
    "takes_back", "to_forget", "zone_named", "zones_like",
]  # fmt: skip

log = structlog.get_logger(__name__)

#: Milliseconds for which a message that came too late waits for a person to ask for its answer.
_HELD_MS = 7 * 24 * 3_600_000
_DAY_MS = 24 * 3_600_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetup:
    """The settings of the search. Without `embedders` memory is searched by words alone."""

    weights: Weights = rank.HYBRID
    embedders: Embedders | None = None
    reranker: Reranker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The retention settings of a store, and whether admins may read it.

    Backups go where `retention` says, otherwise to a folder named backups beside the store. With `transcript_days`,
    `housekeeping` erases words that were said that many days ago, and with `export_days` removes exports beside the
    store that are as old. Messages and memories of a chat are erased `left_chat_days` after the bot has left it. With
    `admins_read`, admins see the words of memories. With the `durability` "power-loss" a commit survives a power cut.
    """

    durability: Durability = "process"
    retention: Retention | None = None
    transcript_days: int | None = None
    left_chat_days: int = 30
    export_days: int | None = None
    admins_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The memories and messages that entered a reply, and the model usage it took (`spent`).

    `entries` pairs each entry with the memory or message it names (None once forgotten). With an `error` code there was
    a notice instead of an answer. `sources` is keyed by memory id. `places` maps session ids to the keys of the
    sessions in which the named messages were said. `replaced_by` maps the id of each memory that no longer holds to the
    memory that holds instead. For derived memories, `made_of` holds the memories they were made of and `made_by` the
    run of the night job that made them, both by memory id. `answered_at` is in milliseconds UTC.
    """

    turn_id: int
    answered_at: int
    error: str | None
    entries: tuple[tuple[RecalledEntry, Memory | Message | None], ...]
    sources: Mapping[int, Sequence[Source]]
    places: Mapping[int, str]
    replaced_by: Mapping[int, Memory]
    made_of: Mapping[int, Sequence[Memory]]
    made_by: Mapping[int, Run]
    spent: tuple[Spent, ...]


class Service:
    """An open store. Open it with `await Service.open(...)` and close it with `await close(...)`.

    `database`, which is the open file itself, and the objects the parts are built with (`agents`, `now`, `new_id`,
    `learner`, `style_updates`, `mending`) are public for tests and tools. The gateway does not use them.
    """

    def __init__(
        self,
        database: Database,
        *,
        agents: Agents,
        runtime: Runtime,
        triggers: Triggers,
        search: SearchSetup,
        keeping: Keeping,
    ) -> None:
        now = runtime.now
        self.database = database
        self.agents = agents
        self.now = now
        self.new_id = runtime.memory_id
        self.keeping = keeping
        self._count_tokens = runtime.count_tokens
        self.loops = Loops(now=now)
        self.mailbox = Mailbox(database, now=now, run_id=runtime.new_id())
        self.access = Access(database, now=now)
        self.visits = Visits(database, now=now)
        self.keys = ApiKeys(database, now=now)
        self.privacy = Privacy(database, self.mailbox, now=now)
        self.reminders = Reminders(database, self.mailbox, agents, now=now)
        self.follow_ups = FollowUps(database, self.mailbox, agents, now=now, count_tokens=self._count_tokens)
        self.browse = Browse(database, runtime.now)
        self._identities = Identities(agents, now=now)
        self._embedding = (
            None
            if search.embedders is None
            else Embedding(database, embedders=search.embedders, text_of=index.text_of, now=now, loops=self.loops)
        )
        self.mending = index.Mending(database)
        self._search = Search(
            database,
            now=now,
            weights=search.weights,
            embedding=self._embedding,
            reranker=search.reranker,
            suspect=self.mending.suspect,
        )
        retention = keeping.retention or Retention(folder=database.path.parent / "backups")
        self.backups = Backups(database, retention=retention, now=now)
        self.forgetting = Forgetting(
            database,
            search=self._search,
            now=now,
            new_id=self.new_id,
            backups_until=self.backups.until,
            list_erased=self.backups.list_erased,
        )
        self.oversight = Oversight(
            database,
            search=self._search,
            mailbox=self.mailbox,
            forgetting=self.forgetting,
            now=now,
            reads=keeping.admins_read,
        )
        self.housekeeping = Housekeeping(
            database,
            forgetting=self.forgetting,
            backups=self.backups,
            erase_left=self.erase_left,
            transcript_days=keeping.transcript_days,
            export_days=keeping.export_days,
            now=now,
        )
        self.style_updates = StyleUpdates(database, agents=agents, now=now, new_id=self.new_id, loops=self.loops)
        self.learner = Learner(
            database,
            agents=agents,
            triggers=triggers,
            now=now,
            new_id=self.new_id,
            learned=self.style_updates.soon,
            loops=self.loops,
        )
        self.turns = Turns(
            database,
            identities=self._identities,
            search=self._search,
            learner=self.learner,
            mailbox=self.mailbox,
            runtime=runtime,
            agents=agents,
            changed=self._changed,
        )
        self.outside_calls = OutsideCalls(database, now=now)
        self.doubts = Doubts(database, self.mailbox, now=now)
        self.compaction = Compaction(
            database,
            agents=agents,
            learner=self.learner,
            mailbox=self.mailbox,
            runtime=runtime,
            loops=self.loops,
        )
        self.jobs = Jobs(database, table=TABLE, learner=self.learner, agents=agents, now=now, new_id=self.new_id)
        self.stats = Stats(database, mailbox=self.mailbox, embedding=self._embedding, now=now)
        self.transfer = Transfer(
            database,
            agents=agents,
            runtime=runtime,
            heard=lambda session_id: self.learner.soon(session_id, "imported"),
            scrub=self.forgetting.scrub,
        )

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        agents: Mapping[str, AgentMemory],
        runtime: Runtime,
        triggers: Triggers | None = None,
        search: SearchSetup | None = None,
        keeping: Keeping | None = None,
        driver: Driver | None = None,
        database_url: str = "",
    ) -> Service:
        """Opens the store at `path` for `agents`, keyed by name. Omitted settings take the defaults of their classes.

        With `database_url` the store is in that PostgreSQL database, and only its files lie beside `path`.

        Raises `memory.errors.StorageError` or a subclass; each message says what to do.
        """
        keeping = keeping or Keeping()
        durability = keeping.durability
        database: Database
        if database_url:
            from memory.store.postgres.database import PostgresDatabase, is_made  # an extra, which few need

            if await asyncio.to_thread(path.exists) and not await is_made(database_url, path):
                raise StorageError(
                    f"There is {path}, but no store of that name on the server of database_url, so nothing would be "
                    "remembered. Carry it over with `remora move --to postgres`, or move the file away to begin anew."
                )
            database = await PostgresDatabase.open(database_url, path, now=runtime.now(), durability=durability)
        else:
            database = await SqliteDatabase.open(path, now=runtime.now(), durability=durability, driver=driver)
        return await cls.over(
            database, agents=agents, runtime=runtime, triggers=triggers, search=search, keeping=keeping
        )

    @classmethod
    async def over(
        cls,
        database: Database,
        *,
        agents: Mapping[str, AgentMemory],
        runtime: Runtime,
        triggers: Triggers | None = None,
        search: SearchSetup | None = None,
        keeping: Keeping | None = None,
    ) -> Service:
        """Opens a store whose `database` is open, and closes that if it can't. The rest is as in `open`."""
        runtime = replace(runtime, now=one_moment(runtime.now))
        database.twice = runtime.twice
        try:
            service = cls(
                database,
                agents=await database.write(
                    lambda tx: _begin(tx, database.path, agents, alone=database.peers.is_alone, now=runtime.now())
                ),
                runtime=runtime,
                triggers=triggers or Triggers(),
                search=search or SearchSetup(),
                keeping=keeping or Keeping(),
            )
            await service._start()
        except BaseException:
            await database.close()
            raise
        return service

    async def _start(self) -> None:
        if self.database.seal.lost:
            log.error(
                "forgotten.key_lost",
                file=str(sealing.path_of(self.database.path)),
                keys=sorted(self.database.seal.lost),
                effect="of whom anything was forgotten under it, nothing said before that is learned or imported",
                fix="add the line of that key from your copy of the file to the one that is there, and start again",
            )
        await self.mending.begin()
        if self._embedding is not None:
            self._embedding.start()
        await self.backups.begin()
        await self.forgetting.begin()
        if self.database.peers.is_alone:
            await self.jobs.begin()
            await self.learner.take_up()

    async def close(self, *, seconds: float) -> None:
        """Reads unread messages for at most `seconds`, then closes the file."""
        try:
            await self.compaction.close()
            await self.learner.finish(seconds=seconds)
            await self.style_updates.close()
            await self.forgetting.close()
            await self.backups.list_erased()
            await self.mending.close()
            if self._embedding is not None:
                await self._embedding.close()
        finally:
            await self.database.close()

    async def renew_agents(self, agents: Mapping[str, AgentMemory]) -> None:
        """Takes other settings for some agents, which may be new to the store."""
        entered = await self.database.write(lambda tx: enter_agents(tx, agents, now=self.now()))
        self.agents.renew(entered.ids, agents)

    async def context(self, where: Where, who: Who) -> Context:
        """Returns the context of a speaker in a place. Creates rows for people and places seen for the first time."""
        return await self.database.write(lambda tx: self._identities.enter(tx, where, who), keys=entered(where, who))

    async def known(self, where: Where, who: Who) -> Context | None:
        """Returns the context of a known speaker in a known place, or None.

        Only reads, for callers that must not change anything.
        """
        return await self.database.read(lambda reader: self._identities.known(reader, where, who))

    async def whose(self, platform: str, reference: str, *, private: bool, thread: str | None = None) -> Context | None:
        """Returns the context of a person's private chat or of a group, or None if there is none.

        `reference` is the platform's id of the person or group. This method is for the operator. It only reads, so it
        makes nobody known to the store.
        """

        def act(reader: Reader) -> Context | None:
            if private:
                return self._identities.person(reader, platform, reference)
            return self._identities.group(reader, platform, reference, thread)

        return await self.database.read(act)

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
        """Runs `act` for a person and queues the answer it returns, in one transaction that ends the inbox row.

        The answer replaces the shown message `edits`. With `to`, the answer goes to the session with that key, and
        `around` is posted in the session where the person asked.
        """

        def answered(tx: Transaction) -> None:
            pieces = act(Edits(tx, anew(tx, context), now=self.now(), new_id=self.new_id))
            here = context.session.key
            self.mailbox.post(
                tx,
                Outgoing(session_key=to or here, pieces=pieces, inbox_id=None if to else inbox_id, edits=edits),
            )
            self.mailbox.post(tx, Outgoing(session_key=here, pieces=around, inbox_id=inbox_id, edits=edits))
            mailbox.answered(tx, [inbox_id], error=None, now=self.now())

        await self.database.write(answered)
        self._changed(context.scope)
        # Removed memories must not stay in the index until the next search.
        await index.keep_up(self.database)

    async def request(
        self,
        context: Context,
        act: Callable[[Edits], T],
        *,
        said: str = "",
        author: str = "",
        tell: Callable[[T], Sequence[Part]] | None = None,
    ) -> T:
        """Runs `act` for a person who asked outside of any message, as one transaction. Returns its result.

        The words that the person `said` are kept in this session, under the name `author`, as the source of the written
        rows. The messages that `tell` makes from the result are posted in the session.
        """

        def requested(tx: Transaction) -> T:
            now, fresh = self.now(), anew(tx, context)
            sources: list[int] = []
            if said:
                utterance = Utterance(
                    role="user", text=said, tokens=self._count_tokens(said), said_at=now, recall=False,
                    author_id=fresh.speaker.id, author_name=author,
                )  # fmt: skip
                session, owner = chats.session_by_id(tx, fresh.session.id), fresh.scope.writes_to
                sources = [one.id for one in history.record(tx, session, None, [utterance], owner_id=owner, now=now)]
            result = act(Edits(tx, fresh, now=now, new_id=self.new_id, source_ids=sources))
            if tell is not None:
                self.mailbox.post(tx, Outgoing(session_key=context.session.key, pieces=tell(result)))
            return result

        result = await self.database.write(requested)
        self._changed(context.scope)
        # Removed memories must not stay in the index until the next search.
        await index.keep_up(self.database)
        return result

    def _changed(self, scope: Scope) -> None:
        """Updates the manner and wakes the clock of the reminders: either may have been changed in this scope."""
        self.reminders.stirred.set()
        self.style_updates.soon(scope.agent_id, scope.own or (scope.writes_to,))

    async def is_there(self, session_key: str) -> bool:
        """Returns whether there is a session with this key whose chat the bot has not left."""

        def act(reader: Reader) -> bool:
            session = chats.session_by_key(reader, session_key)
            return session is not None and chats.is_present(reader, session)

        return await self.database.read(act)

    async def chosen_agents(self) -> dict[str, str]:
        """Returns the agents that people chose with /agent, by session key."""
        return await self.database.read(chats.chosen_agents)

    async def cancel(self, question: Question) -> None:
        """Closes a question without an answer, because the person went on to something else."""
        await self.database.write(lambda tx: questions.settle(tx, question.id, None))

    async def question(self, where: Where, who: Who) -> Question | None:
        """Returns the question that is open to this person in this place, or None."""
        return await self.database.read(
            lambda reader: questions.open_question(
                reader, where.session_key, platform=who.platform, user_id=who.user_id, now=self.now()
            ),
            single=True,
        )

    async def open_question(self, context: Context) -> Question | None:
        """Returns the question that is open to the speaker, or None."""
        return await self.database.read(
            lambda reader: questions.open_to(
                reader, session_id=context.session.id, asker_id=context.speaker.id, now=self.now()
            )
        )

    async def open_questions(self, context: Context) -> list[OpenQuestion]:
        """Returns the questions that wait for the speaker in their private chats, with any of their accounts."""

        def act(reader: Reader) -> list[OpenQuestion]:
            own = [one.id for one in people.accounts(reader, context.speaker.id)]
            return questions.open_to_any(reader, own, now=self.now())

        return await self.database.read(act)

    async def amend(
        self, where: Where, who: Who, inbox_id: int, *, platform_ref: str, text: str, compose: Compose
    ) -> bool:
        """Rewords a message that was edited after its turn began, and learns anew the memories from that message alone.

        `compose` makes the text that is kept from the message's words and its attachments. Ends the inbox row. Returns
        False if this person said no such message here, or if it already says `text`.
        """

        def act(tx: Transaction) -> int | None:
            context = self._identities.enter(tx, where, who)
            edits = Edits(tx, context, now=self.now(), new_id=self.new_id)
            amended = edits.amend(platform_ref, text, compose=compose, count_tokens=self._count_tokens)
            mailbox.answered(tx, [inbox_id], error=None, now=self.now())
            return context.session.id if amended else None

        session_id = await self.database.write(act)
        if session_id is None:
            return False
        self.learner.soon(session_id, "edited")
        # Retracted memories must not stay in the index until the next search.
        await index.keep_up(self.database)
        await self.backups.list_erased()
        return True

    async def retract(self, platform: str, session_key: str, platform_refs: Sequence[str]) -> int:
        """Erases messages that were deleted on the platform, and memories learned only from them.

        Returns the number of erased messages. Unknown messages, the bot's own, and messages erased before don't count.
        """

        def known(reader: Reader) -> chats.Session | None:
            session = chats.session_by_key(reader, session_key)
            if session is None or not chats.is_on(reader, session, platform):
                return None
            return session if history.said_here(reader, session.id, platform_refs) else None

        def act(tx: Transaction) -> int:
            session = known(tx)
            if session is None:
                return 0
            return retract(tx, session, platform_refs, now=self.now(), new_id=self.new_id)

        # Most messages deleted on a platform were never said to the bot, so they must not cost a write.
        if await self.database.read(known) is None:
            return 0
        count = await self.database.write(act)
        if count:
            await self.backups.list_erased()
            # Retracted memories must not stay in the index until the next search.
            await index.keep_up(self.database)
        return count

    async def erase_left(self) -> Erased:
        """Erases the messages and memories of chats that the bot left long enough ago. Called at start and daily.

        If stopped half-way, it continues the next time. A chat to which the bot came back keeps the remaining rows.
        """
        now = self.now()
        return await left_chats.erase_left(self.database, before=now - self.keeping.left_chat_days * _DAY_MS, now=now)

    @property
    def peers(self) -> Peers:
        """The processes that answer from this store."""
        return self.database.peers

    async def take_over(self, session_keys: Collection[str]) -> None:
        """Reads, once these sessions are quiet, the messages that another process left unread there."""
        await self.learner.take_over(session_keys)

    def learn_soon(self, context: Context, reason: str) -> None:
        """Starts reading this session's unread messages, without waiting: a model may take a minute."""
        self.learner.soon(context.session.id, reason)

    async def flush(self, context: Context, reason: str) -> None:
        """Reads this session's unread messages now."""
        await self.learner.flush(context.session.id, reason)

    async def search(
        self,
        context: Context,
        query: str,
        *,
        limit: int,
        weights: Weights | None = None,
        filters: Filters = NO_FILTERS,
    ) -> list[Hit]:
        """Returns the memories and passages that answer `query` best, with `filters` only those that meet them all.

        Pass `weights` other than the store's only for measurements.
        """
        context = await self.database.read(lambda reader: anew(reader, context))
        return await self._search.find(
            context.scope, query, timezone=context.timezone, limit=limit, weights=weights, filters=filters
        )

    async def indexed(self) -> None:
        """Waits until everything that is committed can be found by words and by vectors."""
        await self.mending.done()
        await index.catch_up(self.database)
        if self._embedding is not None and await self._embedding.opened():
            await self._embedding.idle()

    async def memories(self, context: Context, *, limit: int) -> list[Memory]:
        """Returns live facts, styles, events and reflections of the scope, the most important first."""
        return await self.database.read(
            lambda reader: memories.current(
                reader, confined(reader, context).scope, ("fact", "style", "event", "reflection"), limit=limit
            )
        )

    async def profile(self, context: Context) -> list[Memory]:
        return await self.database.read(lambda reader: profile.read(reader, confined(reader, context).scope))

    async def why(self, context: Context, *, message: str | None = None, turn_id: int | None = None) -> Why | None:
        """Returns the material of the last reply in this session, or of the reply that the platform's `message` belongs
        to.

        `message` may be the reply itself or the message it answers. With `turn_id` it is the reply of that turn, in any
        private conversation of the person. Returns None if there is no such reply.
        """

        def act(reader: Reader) -> Why | None:
            session = context.session
            if turn_id is not None:
                there = talks.session_of_turn(reader, confined(reader, context).scope, turn_id)
                if there is None:
                    return None
                session = chats.session_by_id(reader, there)
            turn = recalls.answered(reader, session, message, turn_id=turn_id)
            if turn is None:
                return None
            entries = recalls.of_turn(reader, turn.turn_id)
            named = {item: [e.item_id for e in entries if e.item == item] for item in ("memory", "message")}
            scope = confined(reader, context).scope
            known = memories.by_ids(reader, scope, named["memory"])
            said = passages.by_ids(reader, scope, named["message"])
            moved = lineage.moved_at(reader, {message.session_id for message in said})
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
                sources=lineage.sources(reader, scope, [memory.id for memory in known]),
                places={one.session_id: chats.session_by_id(reader, one.session_id).key for one in said},
                replaced_by=lineage.holding_now(reader, scope, [m for m in known if m.valid_until is not None]),
                made_of={one.id: lineage.parents(reader, scope, one.id) for one in derived},
                made_by={memory_id: run for memory_id, run in runs.items() if run is not None},
                spent=tuple(usage.of_turn(reader, turn.turn_id)),
            )

        return await self.database.read(act)


def _begin(tx: Transaction, path: Path, agents: Mapping[str, AgentMemory], *, alone: bool, now: int) -> Agents:
    """Enters the agents' rows at start, and settles work that an earlier run left half done."""
    moving.refuse_unfinished(tx, path)
    entered = enter_agents(tx, agents, now=now)
    erasure.seal_all(tx, now=now)
    if alone:
        mailbox.doubt(tx)
    mailbox.expire_held(tx, before=now - _HELD_MS, now=now)
    return entered
