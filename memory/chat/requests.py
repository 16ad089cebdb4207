"""People's requests to change memory: each is one transaction with its answer.

Invariant: the effects of an inbox row and the end of that row are committed together, and what was removed is out of
the index before the request is over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memory.chat.edits import Compose, Edits, retract
from memory.chat.identities import Identities, Where, Who
from memory.context import Context, anew
from memory.learn.learner import Learner
from memory.mailbox import inbox, outbox
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.recall import index
from memory.runtime import Runtime
from memory.scope import Scope
from memory.store import attachments, chats, history, judgements, people
from memory.store.database import Database, Reader, Transaction
from memory.store.history import Utterance

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

    async def knows(self, platform: str, session_key: str, platform_ref: str, *, waits: Callable[[str], bool]) -> bool:
        """Returns whether a message with this id was ever taken here. `waits` knows it by its payload in the inbox."""

        def taken(reader: Reader) -> bool:
            session = chats.session_by_key(reader, session_key)
            if session is None or not chats.is_on(reader, session, platform):
                return False
            said = history.said_here(reader, session.id, [platform_ref])
            return bool(said) or any(waits(row.payload) for row in inbox.waiting(reader, session_key))

        return await self._database.read(taken)

    async def judge(
        self, platform: str, channel: str, chat: str, user_id: str, platform_ref: str, *, good: bool, kept: bool
    ) -> None:
        """Keeps a person's judgement of the answer with this id in a chat, or takes the same one back (not `kept`).

        `channel` is the name in session keys. A message that is no answer and a person unknown here change nothing.
        """

        def judged(reader: Reader) -> tuple[int, int] | None:
            keys = chats.sessions_in(reader, platform=platform, channel=channel, reference=chat)
            turn_id = outbox.turn_shown(reader, keys, platform_ref)
            speaker = people.known_speaker(reader, platform=platform, user_id=user_id)
            return None if turn_id is None or speaker is None else (turn_id, speaker.id)

        def act(tx: Transaction) -> None:
            if (pair := judged(tx)) is None:
                return
            if kept:
                judgements.keep(tx, *pair, good=good, now=self._runtime.now())
            else:
                judgements.take_back(tx, *pair, good=good)

        if await self._database.read(judged) is not None:
            await self._database.write(act)

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
