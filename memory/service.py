"""One open store, its parts put together.

The parts are its interface: each method of a part is one transaction, confined by the `Context` that `identities` makes
of the speaker and the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from memory.browse.browse import Browse
from memory.chat.compaction import Compaction
from memory.chat.doubts import Doubts
from memory.chat.edits import EditRequests
from memory.chat.identities import Identities, OpenQuestions
from memory.chat.outside_calls import OutsideCalls
from memory.chat.stats import Stats
from memory.chat.titles import Titles
from memory.chat.turns import Turns
from memory.forgetting.forgetting import Forgetting
from memory.housekeeping import Housekeeping, Keeping
from memory.jobs import asking
from memory.jobs.runner import TABLE, Jobs
from memory.jobs.style import StyleUpdates
from memory.learn.agents import AgentMemory, Agents
from memory.learn.agents import enter as enter_agents
from memory.learn.learner import Learner, Triggers
from memory.loops import Loops
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.mailbox import begin as begin_mail
from memory.oversight import Oversight
from memory.people.access import Access
from memory.people.keyring import ApiKeys
from memory.people.privacy import Privacy
from memory.people.visits import Visits
from memory.recall import index
from memory.reminders.followups import FollowUps
from memory.reminders.reminders import Reminders
from memory.runtime import Runtime
from memory.scope import Scope
from memory.setup import SearchSetup, open_database
from memory.store import moving, sealing, word_columns
from memory.store.database import Database, Transaction, one_moment
from memory.store.sqlite.driver import Driver
from memory.transfer.backups import Backups
from memory.transfer.transfers import Transfer

log = structlog.get_logger(__name__)


class Service:
    """An open store. Open it with `await Service.open(...)` and close it with `await close(...)`.

    `database`, which is the open file itself, and the objects the parts are built with (`agents`, `now`, `new_id`,
    `style_updates`, `mending`) are public for tests and tools.
    """

    def __init__(
        self, database: Database, *, agents: Agents, runtime: Runtime, triggers: Triggers, search: SearchSetup,
        keeping: Keeping,
    ) -> None:  # fmt: skip
        self.database, self.agents, self.keeping = database, agents, keeping
        self.now, self.new_id = now, new_id = runtime.now, runtime.memory_id
        self.share, self.identities = share, identities = database.share, Identities(database, agents, now=now)
        self.loops = loops = Loops(now=now, only_here=share.only_here, is_shared=not share.is_alone)
        self.mailbox = mailbox = Mailbox(database, now=now, run_id=runtime.new_id())
        self.access, self.visits = Access(database, now=now), Visits(database, now=now)
        self.keys, self.questions = ApiKeys(database, now=now), OpenQuestions(database, now=now)
        self.privacy = Privacy(database, mailbox, now=now, new_id=new_id)
        self.doubts, self.reminders = Doubts(database, mailbox, now=now), Reminders(database, mailbox, agents, now=now)
        self.follow_ups = FollowUps(database, mailbox, agents, now=now, count_tokens=runtime.count_tokens)
        self._search, self._embedding, self.mending = find, *_ = search.over(database, loops=loops, now=now)
        self.stats = Stats(database, mailbox=mailbox, embedding=self._embedding, now=now)
        self.browse, self.outside_calls = Browse(database, find, now=now), OutsideCalls(database, now=now)
        self.backups = backups = Backups(database, retention=keeping.retention, now=now)
        self.forgetting = forgetting = Forgetting(
            database, search=find, now=now, new_id=new_id, backups_until=backups.until, list_erased=backups.list_erased
        )
        self.oversight = Oversight(
            database, search=find, mailbox=mailbox, forgetting=forgetting, now=now, reads=keeping.admins_read
        )
        self.housekeeping = Housekeeping(database, keeping=keeping, forgetting=forgetting, backups=backups, now=now)
        self.style_updates = StyleUpdates(database, agents=agents, now=now, new_id=new_id, loops=loops)
        self.titles = Titles(database, agents=agents, now=now, loops=loops)
        self.learner = learner = Learner(
            database, agents=agents, triggers=triggers, now=now, new_id=new_id, loops=loops,
            learned=self.style_updates.soon,
        )  # fmt: skip
        self.turns = Turns(
            database, identities=identities, search=find, learner=learner, mailbox=mailbox, runtime=runtime,
            agents=agents, changed=self._changed,
        )  # fmt: skip
        self.requests = EditRequests(
            database, identities=identities, mailbox=mailbox, learner=learner, list_erased=backups.list_erased,
            runtime=runtime, changed=self._changed,
        )  # fmt: skip
        self.compaction = Compaction(
            database, agents=agents, learner=learner, mailbox=mailbox, runtime=runtime, loops=loops
        )
        self.jobs = Jobs(database, table=TABLE, learner=learner, agents=agents, now=now, new_id=new_id)
        heard = partial(learner.soon, reason="imported")
        self.transfer = Transfer(database, agents=agents, runtime=runtime, heard=heard, scrub=forgetting.scrub)

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
        database = await open_database(
            path, database_url, durability=keeping.durability, driver=driver, now=runtime.now()
        )
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
                    lambda tx: _begin(tx, database.path, agents, alone=database.share.is_alone, now=runtime.now())
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
        # The model may be another now.
        await self.database.write(asking.retry)
        if self.share.is_alone:
            await self.jobs.begin()
            await self.learner.take_up()

    async def close(self, *, seconds: float) -> None:
        """Reads unread messages for at most `seconds`, then closes the file."""
        try:
            await self.compaction.close()
            await self.titles.close()
            await self.learner.finish(seconds=seconds)
            await self.style_updates.close()
            await self.forgetting.close()
            await self.backups.list_erased()
            await self._search.close()
            await self.mending.close()
            if self._embedding is not None:
                await self._embedding.close()
        finally:
            await self.database.close()

    async def renew_agents(self, agents: Mapping[str, AgentMemory]) -> None:
        entered = await self.database.write(lambda tx: enter_agents(tx, agents, now=self.now()))
        self.agents.renew(entered.ids, agents)

    async def indexed(self) -> None:
        """Waits until everything that is committed can be found by words and by vectors."""
        await self.mending.done()
        await index.catch_up(self.database)
        if self._embedding is not None and await self._embedding.opened():
            await self._embedding.idle()

    def _changed(self, scope: Scope) -> None:
        """Updates the manner and wakes the clock of the reminders: either may have been changed in this scope."""
        self.reminders.stirred.set()
        self.style_updates.soon(scope.agent_id, scope.own or (scope.writes_to,))


def _begin(tx: Transaction, path: Path, agents: Mapping[str, AgentMemory], *, alone: bool, now: int) -> Agents:
    """Enters the agents' rows at start, and settles work that an earlier run left half done."""
    moving.refuse_unfinished(tx, path)
    entered = enter_agents(tx, agents, now=now)
    word_columns.seal_all(tx, now=now)
    begin_mail(tx, alone=alone, now=now)
    return entered
