"""How many pictures of a conversation are kept, in its window and before it."""

from __future__ import annotations

from functools import partial

from memory.service import Service
from memory.store import attachments, chats
from memory.store.attachments import Attached
from tests.kit.fakes import Clock
from tests.kit.stores import rows
from tests.kit.talk import private, say


async def test_a_few_pictures_are_kept_of_messages_that_left_the_window(memory: Service, clock: Clock) -> None:
    """The newest of the window, and the newest before it; the names of all."""
    sent = []
    for n in range(16):
        picture = Attached(
            kind="image", name=f"{n}.png", media_type="image/png", size=1, state="picture", data=bytes([n])
        )
        turn = await say(memory, private("ada"), "look", clock=clock, files=[picture])
        session, said = turn.context.session.id, turn.said[0].id
        sent.append(said)
        if n < 12:
            await memory.database.write(partial(chats.compact, session_id=session, after=said, summary=None, task=None))
    assert await rows(memory, "select count(*) from attachments where name <> ''") == [(16,)]
    kept = await rows(memory, "select name from attachments where data is not null order by id")
    assert [name for (name,) in kept] == [f"{n}.png" for n in range(4, 16)]
    first, second = partial(attachments.last_pictured, session_id=session, before=sent[6]), (sent[5], sent[4])
    assert await memory.database.read(first) == [*second]
    await memory.database.write(lambda tx: tx.run("update messages set recall = 0 where id = ?", (sent[5],)))
    assert await memory.database.read(first) == [sent[4]]
