"""Maps a speaker and a place, in the platform's terms, to the `Context` that confines their reads.

Invariants: Only `enter`, and `context` by it, creates the rows of people and places, when they are first heard of, and
moves a session to the agent that serves it now. The other methods change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.context import Context, StorePart, in_read, reads
from memory.learn.agents import Agents
from memory.mailbox import outbox
from memory.store import chats, people, questions
from memory.store.chats import ChatKind
from memory.store.database import Database, Keys, Reader, Transaction, of_chat, of_lane, of_person
from memory.store.questions import OpenQuestion, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place a message comes from, in the platform's terms, and the agent that serves it.

    With `own_threads`, each thread of this group keeps the memories learned in it to itself.
    """

    session_key: str
    platform: str
    chat: str
    chat_kind: ChatKind
    thread: str | None
    agent: str
    chat_title: str = ""
    own_threads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    platform: str
    user_id: str
    name: str


def entered(where: Where, who: Who) -> Keys:
    """Returns the names of the rows that `Identities.enter` touches."""
    return [of_lane(where.session_key), of_person(who.platform, who.user_id), of_chat(where.platform, where.chat)]


class Identities:
    def __init__(self, database: Database, agents: Agents, *, now: Callable[[], int]) -> None:
        self._database = database
        self._agents = agents
        self._now = now

    chosen_agents = reads(chats.chosen_agents)

    async def context(self, where: Where, who: Who) -> Context:
        return await self._database.write(lambda tx: self.enter(tx, where, who), keys=entered(where, who))

    def enter(self, tx: Transaction, where: Where, who: Who) -> Context:
        """Returns the context of a speaker in a place. Creates rows for people and places seen for the first time."""
        now = self._now()
        agent_id = self._agents.ids[where.agent]
        speaker = people.speaker(tx, platform=who.platform, user_id=who.user_id, name=who.name, now=now)
        session = chats.session_by_key(tx, where.session_key) or self._new_session(tx, where, agent_id)
        chats.heard_in(tx, session, speaker.id)
        if session.agent_id != agent_id:
            session = chats.reassign(tx, session, agent_id)
        if not session.private:
            chats.keep_threads(tx, session.chat_id, session.thread, own=where.own_threads)
        return self.context_of(tx, session, speaker)

    def learns_style(self, session: chats.Session) -> bool:
        return self._agents.by_id[session.agent_id].learns_style

    @in_read
    def known(self, reader: Reader, where: Where, who: Who) -> Context | None:
        speaker = people.known_speaker(reader, platform=who.platform, user_id=who.user_id)
        session = chats.session_by_key(reader, where.session_key)
        if speaker is None or session is None or session.agent_id != self._agents.ids[where.agent]:
            return None
        return self.context_of(reader, session, speaker)

    @in_read
    def whose(
        self, reader: Reader, platform: str, reference: str, *, private: bool, thread: str | None = None
    ) -> Context | None:
        """Returns the context of a person in their private chat, or of the last speaker in a group or a thread of it.

        `reference` is the platform's id of the person or group. Returns None without such a chat, or if nobody spoke
        there.
        """
        speaker_id: int | None
        if private:
            speaker = people.known_speaker(reader, platform=platform, user_id=reference)
            speaker_id = None if speaker is None else speaker.id
            session = None if speaker is None else chats.private_session(reader, speaker.id)
        else:
            session = chats.group_session(reader, platform=platform, reference=reference, thread=thread)
            speaker_id = None if session is None else chats.last_speaker(reader, session.id)
        if session is None or speaker_id is None:
            return None
        return self.context_of(reader, session, people.speaker_by_id(reader, speaker_id))

    @in_read
    def is_there(self, reader: Reader, session_key: str) -> bool:
        session = chats.session_by_key(reader, session_key)
        return session is not None and chats.is_present(reader, session)

    def context_of(self, reader: Reader, session: chats.Session, speaker: people.Speaker) -> Context:
        return Context(
            session=session,
            speaker=speaker,
            scope=chats.scope_of(reader, session, speaker.id),
            timezone=speaker.timezone or self._agents.timezone(session.agent_id),
        )

    def _new_session(self, tx: Transaction, where: Where, agent_id: int) -> chats.Session:
        """Returns the session for an unknown key: a new session, unless the chat got another id meanwhile."""
        now = self._now()
        chat_id = chats.chat(
            tx, platform=where.platform, reference=where.chat, kind=where.chat_kind, title=where.chat_title, now=now
        )
        return chats.session_elsewhere(tx, where.session_key, chat_id=chat_id, thread=where.thread) or chats.session(
            tx, key=where.session_key, chat_id=chat_id, thread=where.thread, agent_id=agent_id, now=now
        )


class OpenQuestions(StorePart):
    @in_read
    def before(self, reader: Reader, where: Where, who: Who) -> tuple[Question | None, bool]:
        """Returns the question that is open to this person in this place, and whether the bot spoke of a reminder
        last there."""
        question = questions.open_question(
            reader, where.session_key, platform=who.platform, user_id=who.user_id, now=self._now()
        )
        return question, outbox.last_reminder(reader, where.session_key) is not None

    async def at(self, where: Where, who: Who) -> Question | None:
        return await self._database.read(
            lambda reader: questions.open_question(
                reader, where.session_key, platform=who.platform, user_id=who.user_id, now=self._now()
            ),
            single=True,
        )

    @in_read
    def open_to(self, reader: Reader, context: Context) -> Question | None:
        return questions.open_to(reader, session_id=context.session.id, asker_id=context.speaker.id, now=self._now())

    @in_read
    def open_to_any(self, reader: Reader, context: Context) -> list[OpenQuestion]:
        own = [account.id for account in people.accounts(reader, context.speaker.id)]
        return questions.open_to_any(reader, own, now=self._now())

    @in_read
    def shown(
        self, reader: Reader, platform: str, channel: str, chat: str, user_id: str, platform_ref: str
    ) -> tuple[str, Question] | None:
        """Returns the question that a message with this id asks a person, if it is open, and the key of its session.

        `channel` is the name in session keys.
        """
        keys = chats.sessions_in(reader, platform=platform, channel=channel, reference=chat)
        speaker = people.known_speaker(reader, platform=platform, user_id=user_id)
        if speaker is None:
            return None
        return questions.shown(reader, keys, platform_ref, asker_id=speaker.id, now=self._now())

    async def cancel(self, question: Question) -> None:
        await self._database.write(lambda tx: questions.settle(tx, question.id, None))
