"""The questions that are open to a person, as the gateway asks for them."""

from __future__ import annotations

from memory.chat.identities import Where, Who
from memory.context import Context, StorePart, in_read
from memory.mailbox import outbox
from memory.store import people, questions
from memory.store.database import Reader
from memory.store.questions import OpenQuestion, Question


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

    async def cancel(self, question: Question) -> None:
        await self._database.write(lambda tx: questions.settle(tx, question.id, None))
