"""Follow-ups: questions how a plan went, the day after, and wishes on a birthday, for people who asked for them.

Invariants: nothing is stored ahead: a question is made from the memories at the moment of asking, so a plan that was
forgotten, moved or called off is not asked about. The date of the question is noted in the transaction that
queues it, and no person is asked twice on one date: a plan has one day, so each is asked about once at most. Only the
person's own private memories are read, and only their private chat is written to, within their hours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from memory.context import in_read, in_write
from memory.learn.agents import Agents
from memory.mailbox.mailbox import Mailbox
from memory.mailbox.outbox import Outgoing, Part
from memory.reminders import occasions
from memory.reminders.occasions import Occasion
from memory.store import chats, history, memories, people
from memory.store.chats import Session
from memory.store.database import Database, Reader, Transaction
from memory.store.history import Message, Utterance
from memory.store.memories import Memory
from memory.store.people import Account

#: The hours of the person's day between which they are asked, unless they name others.
HOURS: Final = "10-20"
#: The most memories of a person that are looked at, and messages of their chat.
_MEMORIES: Final = 3_000
_MESSAGES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A question about `plan`, or without one wishes for a birthday, to the person `whose` in `session`.

    `today` and `timezone` are the person's, `language` is the one they want or the plan was told in, if known.
    """

    whose: Account
    session: Session
    today: date
    timezone: str
    language: str | None
    plan: str = ""


class FollowUps:
    def __init__(
        self,
        database: Database,
        mailbox: Mailbox,
        agents: Agents,
        *,
        now: Callable[[], int],
        count_tokens: Callable[[str], int],
    ) -> None:
        self._database = database
        self._mailbox = mailbox
        self._agents = agents
        self._now = now
        self._count_tokens = count_tokens
        #: The date on which there was nothing to ask an identity. Memories are read once a day for each person.
        self._nothing: dict[int, date] = {}

    @in_read
    def wanted(self, reader: Reader) -> list[int]:
        return people.followed_up(reader)

    @in_read
    def due(self, reader: Reader, identity_id: int) -> FollowUp | None:
        return self._of(reader, identity_id)

    @in_write
    def ask(self, tx: Transaction, follow_up: FollowUp, show: Callable[[FollowUp], Sequence[Part]]) -> str | None:
        """Queues the message that `show` returns, notes the date and adds the words to the conversation, as one
        transaction.

        Returns the key of the session in whose queue it is. Returns None if there is nothing to ask any more.
        """
        still, speaker = self._of(tx, follow_up.whose.id), people.speaker_by_id(tx, follow_up.whose.id)
        if still is None or (still.plan, still.today) != (follow_up.plan, follow_up.today):
            return None
        session, parts = still.session, show(still)
        self._mailbox.post(tx, Outgoing(session_key=session.key, pieces=parts))
        said = "\n".join(part.text for part in parts)
        # The model sees the question that the person's next words answer. Nothing is learned from it.
        spoken = Utterance(
            role="assistant", text=said, tokens=self._count_tokens(said), said_at=self._now(), recall=False
        )
        owner_id = chats.scope_of(tx, session, speaker.id).writes_to
        history.record(tx, session, None, [spoken], owner_id=owner_id, now=self._now())
        people.put(tx, speaker.person_id, followed_up_on=still.today.isoformat())
        return session.key

    def _of(self, reader: Reader, identity_id: int) -> FollowUp | None:
        speaker = people.speaker_by_id(reader, identity_id)
        place = _place(reader, identity_id)
        if place is None or not speaker.follow_ups:
            return None
        account, session = place
        timezone = speaker.timezone or self._agents.timezone(session.agent_id)
        local = datetime.fromtimestamp(self._now() / 1000, UTC).astimezone(ZoneInfo(timezone))
        today, (begin, end) = local.date(), map(int, speaker.follow_ups.split("-"))
        if not begin <= local.hour < end or self._nothing.get(speaker.person_id) == today:
            return None
        if people.asked_on(reader, speaker.person_id) >= today.isoformat():
            return None
        chosen = _occasion(reader, session, account.id, today, timezone)
        if chosen is None:
            self._nothing[speaker.person_id] = today
            return None
        return FollowUp(
            whose=account,
            session=session,
            today=today,
            timezone=timezone,
            language=speaker.language or (occasions.language(chosen) if chosen.what else None),
            plan=chosen.what,
        )


def _place(reader: Reader, identity_id: int) -> tuple[Account, Session] | None:
    accounts = sorted(people.accounts(reader, identity_id), key=lambda account: account.id != identity_id)
    found = ((account, chats.private_session(reader, account.id)) for account in accounts)
    return next(((account, session) for account, session in found if session is not None), None)


def _occasion(reader: Reader, session: Session, identity_id: int, today: date, timezone: str) -> Occasion | None:
    """Returns the birthday of today, or else the weightiest plan of yesterday that was not spoken of since."""
    scope = chats.scope_of(reader, session, identity_id)
    own = [
        one
        for one in memories.current(reader, scope, ("fact", "event"), limit=_MEMORIES)
        if one.owner_id in scope.own and one.subject_id in (None, *scope.selves)
    ]
    if any(occasions.birthday_of(one, today.year) == today for one in own):
        return Occasion(day=today)
    yesterday, said = today - timedelta(days=1), history.after(reader, session.id, 0, limit=_MESSAGES)
    for memory in own:
        plan = occasions.plan_of(memory)
        if plan is not None and plan.day == yesterday:
            since = [one for one in said if one.role == "user" and one.said_at >= memory.learned_at]
            if not any(_settles(plan, memory, one, timezone) for one in since):
                return plan
    return None


def _settles(plan: Occasion, memory: Memory, message: Message, timezone: str) -> bool:
    """Returns whether a message leaves nothing to ask: the one that told of the plan, or a later one."""
    if message.said_at == memory.learned_at:
        return occasions.is_conditional(message.text)
    said_on = datetime.fromtimestamp(message.said_at / 1000, UTC).astimezone(ZoneInfo(timezone)).date()
    return occasions.is_settled(plan, message.text, later=said_on >= plan.day)
