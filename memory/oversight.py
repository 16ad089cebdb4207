"""Admins' access to the memory of the people and groups on their channel, for the gateway.

Invariants: Every look is recorded in the transaction that queues its answer, whatever its result. Admins get the same
answer about a person whom they may not know here as about a person without memories. If the operator lets admins read
nothing, the words of memories never leave this module. The gateway decides who is an admin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from memory.browse.why import Shown
from memory.context import Context, reads
from memory.errors import NotFound
from memory.forgetting.choose import Asker, Selection
from memory.forgetting.forgetting import Forgetting, Receipt
from memory.forgetting.plan import Plan
from memory.mailbox import inbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.people import privacy
from memory.people.privacy import Look
from memory.recall.search import Search
from memory.scope import Scope
from memory.store import lineage, memories, questions
from memory.store.database import Database, Reader, Transaction, walled
from memory.store.memories import Memory
from memory.store.questions import Question

#: Kinds that are shown one by one; the other kinds are derived from these.
_KINDS = ("fact", "style", "event", "reflection")
#: Hits that a search fetches. A person's own messages are among these, too, and are passed over.
_SEARCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminView:
    """An admin's view of one person or group: a scope for each agent that serves them on the admin's channel.

    `scopes` is empty if they have nothing to do with the channel. Looks are recorded under `owner_id`.
    """

    owner_id: int
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPerson:
    """A person who talks to the bot on a channel: their id there, and the number and last time of private messages."""

    user_id: str
    name: str
    messages: int
    last_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _RankedMemory:
    """A live memory by its id, with its kind and `order`, the tuple it is ranked by."""

    id: int
    kind: str
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundById:
    """A memory that an admin asks for by its id. `memory` is None unless its words may be read."""

    id: int
    kind: str
    learned_at: int
    memory: Memory | None


class Overseer:
    """The operations that `Oversight.answer` hands to a request. Not to be kept beyond that request.

    `found` counts the memories shown so far; this number will be recorded.
    """

    def __init__(
        self, tx: Transaction, context: Context, view: AdminView | None, *, reads: bool, ranked: Sequence[int], now: int
    ) -> None:
        self.found = 0
        self._tx = tx
        self._context = context
        self._scopes = () if view is None else view.scopes
        self._reads = reads
        self._ranked = ranked
        self._now = now

    def kinds(self) -> dict[str, int]:
        """Returns the number of live memories of each kind, the most frequent first."""
        counted = Counter(one.kind for one in self._standing())
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def page(self, *, limit: int, offset: int) -> list[Memory]:
        """Returns live memories, the most important first, or [] if admins may not read them."""
        if not self._reads:
            return []
        order = sorted(self._standing(), key=lambda one: one.order, reverse=True)
        return self._shown(self._by_ids([one.id for one in order[offset : offset + limit]]))

    def hits(self, *, limit: int, offset: int) -> tuple[list[Memory], int]:
        """Returns the memories that answer this request's query, best first, and the number of all of them.

        Old versions are included. There are none if admins may not read memories.
        """
        if not self._reads:
            return [], 0
        found = self._by_ids(self._ranked)
        return self._shown(found[offset : offset + limit]), len(found)

    def show(self, short_id: str) -> Shown:
        """Returns a memory with its sources and versions. Raises `NotFound`, also if it may not be read."""
        memory, scope = self._by_short_id(short_id)
        if not self._reads:
            raise NotFound(f"No memory {short_id} to be read.")
        self._shown([memory])
        return Shown(
            memory=memory,
            sources=tuple(lineage.sources(self._tx, scope, [memory.id])[memory.id]),
            versions=tuple(lineage.versions(self._tx, scope, memory)),
        )

    def named(self, short_id: str) -> FoundById:
        """Returns the memory with this id, without its words if these may not be read. Raises `NotFound`."""
        memory, _ = self._by_short_id(short_id)
        if self._reads:
            self._shown([memory])
        return FoundById(
            id=memory.id, kind=memory.kind, learned_at=memory.learned_at, memory=memory if self._reads else None
        )

    def ask(self, purpose: str, payload: dict[str, int], *, choices: Sequence[str], preset: str) -> Question:
        session, asker = self._context.session.id, self._context.speaker.id
        return questions.ask(self._tx, self._now, session, asker, purpose, payload, choices=choices, preset=preset)

    def _standing(self) -> Collection[_RankedMemory]:
        return {one.id: one for scope in self._scopes for one in _standing(self._tx, scope)}.values()

    def _by_ids(self, memory_ids: Sequence[int]) -> list[Memory]:
        found = {memory.id: memory for scope in self._scopes for memory in memories.by_ids(self._tx, scope, memory_ids)}
        return [found[one] for one in memory_ids if one in found and found[one].kind in _KINDS]

    def _by_short_id(self, short_id: str) -> tuple[Memory, Scope]:
        for scope in self._scopes:
            try:
                memory = memories.by_short_id(self._tx, scope, short_id)
            except NotFound:
                continue
            if memory.kind in _KINDS:
                return memory, scope
        raise NotFound(f"No memory {short_id} there.")

    def _shown(self, shown: list[Memory]) -> list[Memory]:
        self.found += len(shown)
        return shown


def _people_of(reader: Reader, channel: str, *, limit: int) -> list[ChannelPerson]:
    """Returns the people who have said something in private on a channel, as in session keys, the latest first."""
    rows = reader.all(
        "select i.user_id, i.name, count(*) as messages, max(m.said_at) as last_at from messages m"
        " join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id"
        " join identities i on i.id = m.author_id"
        " where c.kind = 'private' and substr(s.key, 1, length(?1)) = ?1 and m.role = 'user'"
        " group by i.id order by last_at desc limit ?2",
        (f"{channel}:", limit),
    )
    return [ChannelPerson(**dict(row)) for row in rows]


class Oversight:
    """One store's memory as the admins of its channels may see it. With `reads` they see the words of memories."""

    def __init__(
        self,
        database: Database,
        *,
        search: Search,
        mailbox: Mailbox,
        forgetting: Forgetting,
        now: Callable[[], int],
        reads: bool,
    ) -> None:
        self.reads = reads
        self._database = database
        self._search = search
        self._mailbox = mailbox
        self._forgetting = forgetting
        self._now = now

    people = reads(_people_of)

    async def answer(
        self,
        context: Context,
        inbox_id: int,
        reference: str,
        action: Look,
        act: Callable[[Overseer], Sequence[Part]],
        *,
        channel: str,
        query: str = "",
        edits: str | None = None,
    ) -> None:
        """Answers an admin of `channel`, as in session keys, who looks at the person or group `reference` there.

        One transaction records the look, queues the answer and ends the inbox row. With `query` the memory is
        searched. The answer replaces the shown message `edits`.
        """
        ranked = await self._rank(context, channel, reference, query) if query and self.reads else ()

        def answered(tx: Transaction) -> None:
            inbox.expect_open(tx, inbox_id)
            view = _view_of(tx, channel, reference)
            overseer = Overseer(tx, context, view, reads=self.reads, ranked=ranked, now=self._now())
            pieces = act(overseer)
            if view is not None:
                self._note(tx, context, view, action, overseer.found)
            self._mailbox.post(
                tx, Outgoing(session_key=context.session.key, pieces=pieces, inbox_id=inbox_id, edits=edits)
            )
            inbox.end(tx, [inbox_id], error=None, now=self._now())

        await self._database.write(answered)

    async def forget(
        self, context: Context, inbox_id: int, question: Question, reference: str, memory_id: int, *, channel: str
    ) -> Receipt | None:
        """Erases a memory of that person or group of `channel` with the words it was learned from.

        The caller ends the inbox row. The erasing transaction also records the look, with the number of erased
        memories. Returns None if the question has ended, or if that person or group may not be seen any more.
        """

        def asking(tx: Reader) -> Asker | None:
            scope = _holding(tx, _view_of(tx, channel, reference), memory_id)
            if scope is None:
                return None
            return Asker(session=context.session, scope=scope, timezone=context.timezone, may_all=True)

        def noted(tx: Transaction, going: Plan) -> None:
            view = _view_of(tx, channel, reference)
            assert view is not None  # else the question would not exist
            self._note(tx, context, view, "forget", len(going.memories))

        selection = Selection(what="memories", memory_ids=(memory_id,))
        return await self._forgetting.forget_as(asking, inbox_id, question, selection, "words", noted=noted)

    def _note(self, tx: Transaction, context: Context, view: AdminView, action: Look, found: int) -> None:
        privacy.note_look(
            tx,
            view.owner_id,
            admin_id=context.speaker.id,
            agent_id=context.session.agent_id,
            action=action,
            found=found,
            now=self._now(),
        )

    async def _rank(self, context: Context, channel: str, reference: str, query: str) -> list[int]:
        view = await self._database.read(lambda reader: _view_of(reader, channel, reference))
        scores: dict[int, float] = {}
        for scope in () if view is None else view.scopes:
            for hit in await self._search.find(scope, query, timezone=context.timezone, limit=_SEARCHED):
                if hit.memory is not None:
                    scores[hit.memory.id] = max(hit.score, scores.get(hit.memory.id, 0.0))
        return sorted(scores, key=lambda memory_id: -scores[memory_id])


def _holding(reader: Reader, view: AdminView | None, memory_id: int) -> Scope | None:
    """Returns the scope of a view that sees a memory, or the view's first scope if none does (any more)."""
    scopes = () if view is None else view.scopes
    held = (scope for scope in scopes if memories.by_id(reader, scope, memory_id) is not None)
    return next(held, scopes[0] if scopes else None)


def _view_of(reader: Reader, channel: str, reference: str) -> AdminView | None:
    """Returns the view of a person (by user id) or group (by chat id) for an admin of `channel`, as in session keys.

    Returns None if neither is known on the platform of that channel at all.
    """
    channel = f"{channel}:"
    platform = _platform(reader, channel)
    person = reader.one(
        "select i.id, o.id as owner_id from identities i join owners o on o.kind = 'identity' and o.identity_id = i.id"
        " where i.platform = ? and i.user_id = ?",
        (platform, reference),
    )
    if person is not None:
        agents = _serving_person(reader, person["id"], reference, channel)
        return _view(agents, (person["owner_id"],), identity_id=person["id"])
    chat = reader.one(
        "select c.id from chats c join chat_aliases a on a.chat_id = c.id where c.kind = 'group'"
        " and a.platform = ? and a.reference = ?",
        (platform, reference),
    )
    if chat is None:
        return None
    # The chat's own row sorts before the rows of its threads.
    owners = reader.all("select id from owners where chat_id = ? order by kind, id", (chat["id"],))
    serving = reader.all(
        "select distinct agent_id from sessions where chat_id = ?1 and substr(key, 1, length(?2)) = ?2"
        " order by agent_id",
        (chat["id"], channel),
    )
    return _view([row["agent_id"] for row in serving], tuple(row["id"] for row in owners), identity_id=None)


@walled
def _standing(reader: Reader, scope: Scope) -> list[_RankedMemory]:
    """Returns the live facts, styles, events and reflections of a view's scope, in no particular order."""
    within = scope.predicate("m")
    rows = reader.all(
        "select m.id, m.kind, m.pinned, m.importance, m.last_reinforced_at from memories m"
        " where m.kind in ('fact', 'style', 'event', 'reflection')"
        f" and m.superseded_by is null and m.archived_at is null and m.valid_until is null and {within.sql}",
        within.parameters,
    )
    return [
        _RankedMemory(
            id=row["id"],
            kind=row["kind"],
            order=(row["pinned"], row["importance"], row["last_reinforced_at"], row["id"]),
        )
        for row in rows
    ]


def _platform(reader: Reader, channel: str) -> str | None:
    """Returns the platform of a channel (with its colon); None if nobody has ever spoken there."""
    return reader.text(
        "select c.platform from sessions s join chats c on c.id = s.chat_id"
        " where substr(s.key, 1, length(?1)) = ?1 limit 1",
        (channel,),
    )


def _serving_person(reader: Reader, identity_id: int, reference: str, channel: str) -> list[int]:
    """Returns the agents that serve a person in private on a channel.

    The person is recognised by their messages or questions there, or by a chat id equal to their user id, on the
    platforms that number private chats that way.
    """
    return reader.ids(
        "select distinct s.agent_id from sessions s join chats c on c.id = s.chat_id"
        " where c.kind = 'private' and substr(s.key, 1, length(?3)) = ?3 and s.id in ("
        "   select m.session_id from messages m where m.author_id = ?1"
        "   union select q.session_id from questions q where q.asker_id = ?1"
        "   union select h.id from chat_aliases a join sessions h on h.chat_id = a.chat_id"
        "     where a.reference = ?2 and a.platform = (select platform from identities where id = ?1))"
        " order by s.agent_id",
        (identity_id, reference, channel),
    )


def _view(agent_ids: Sequence[int], owner_ids: tuple[int, ...], *, identity_id: int | None) -> AdminView:
    scopes = [
        Scope(
            agent_id=agent_id,
            owners=owner_ids,
            own=owner_ids if identity_id is not None else (),
            writes_to=owner_ids[0],
            speaker_id=identity_id,
            # A person's fact about themselves from a group belongs to that group.
            selves=(),
            private=identity_id is not None,
        )
        for agent_id in agent_ids
    ]
    return AdminView(owner_id=owner_ids[0], scopes=tuple(scopes))
