"""People who talk with an agent, at the level of the store: who speaks where, turns, commands, and what is known then."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agents.budget import count_tokens
from memory.chat.edits import Edits
from memory.chat.identities import Where, Who
from memory.chat.turns import Outcome, Said, Turn
from memory.context import Context
from memory.mailbox.outbox import Part
from memory.recall.recall import Budget, Recall
from memory.service import Service
from memory.store.attachments import Attached
from memory.store.history import Utterance
from memory.store.memories import Memory
from memory.store.usage import Spent
from tests.kit.fakes import Clock
from tests.kit.stores import counting

T = TypeVar("T")
Place = tuple[Where, Who]


def private(person: str, *, agent: str = "assistant") -> Place:
    where = Where(
        session_key=f"console:{person}:-",
        platform="console",
        chat=person,
        chat_kind="private",
        thread=None,
        agent=agent,
    )
    return where, Who(platform="console", user_id=person, name=person)


def group(
    chat: str, person: str, *, thread: str | None = None, agent: str = "assistant", own_threads: bool = False
) -> Place:
    where = Where(
        session_key=f"console:{chat}:{thread or '-'}",
        platform="console",
        chat=chat,
        chat_kind="group",
        thread=thread,
        agent=agent,
        own_threads=own_threads,
    )
    return where, Who(platform="console", user_id=person, name=person)


async def received(memory: Service, session_key: str, payload: str = "{}") -> int:
    inbox_id = await memory.mailbox.receive(
        platform=session_key.partition(":")[0],
        bot_id="local",
        update_key=f"received {counting()}",  # stores may have ids of their own
        session_key=session_key,
        payload=payload,
    )
    assert inbox_id is not None
    return inbox_id


async def say(
    memory: Service,
    place: Place,
    *texts: str,
    clock: Clock,
    ref: str | None = None,
    learn: bool = True,
    window_tokens: int = 1_000,
    files: Sequence[Attached] = (),
    steps: Sequence[str] = (),
    effects: Sequence[str] = (),
    answers: Sequence[Utterance] = (),
    answer: str = "ok",
    pieces: Sequence[str] = (),
) -> Turn:
    """One turn with `texts` as its burst, which the platform knows as `ref`, with all that is kept of it.

    `answers` come before the last one, which is sent as `pieces` or as it is.
    """
    where, who = place
    said = []
    for text in texts:
        inbox_id = await received(memory, where.session_key, json.dumps({"text": text}))
        if files:
            await memory.mailbox.attach(inbox_id, files)
        said.append(
            Said(
                inbox_id=inbox_id,
                text=text,
                tokens=count_tokens(text),
                said_at=clock(),
                platform_ref=ref or f"ref-{inbox_id}",
                reply_to=None,
                learn=learn,
            )
        )
    turn = await memory.turns.begin(where, who, said)
    spent = Spent(model="m", input_tokens=1, output_tokens=1, cached_tokens=0, estimated=False)
    for n, step in enumerate(steps):
        await memory.turns.keep_step(turn, n, step, spent)
    for n, effect in enumerate(effects):
        await memory.turns.act(turn, n, 0, "search_memory", lambda _edits, effect=effect: effect)  # type: ignore[misc]
    view = await memory.turns.look(turn, Budget(), window_tokens=window_tokens, window_messages=50)
    last = Utterance(
        role="assistant", text=answer, tokens=1, said_at=clock(), platform_ref=None if ref is None else f"{ref}-answer"
    )
    sent = tuple(Part(text=text) for text in pieces or (answer,))
    await memory.turns.finish(turn, view, Outcome(pieces=sent, utterances=(*answers, last)))
    return turn


async def teach(memory: Service, place: Place, *texts: str, clock: Clock, **of: Any) -> Turn:
    """One turn that is read for memories at once."""
    turn = await say(memory, place, *texts, clock=clock, **of)
    await learn(memory, turn)
    return turn


async def exchange(memory: Service, place: Place, text: str, clock: Clock, **of: Any) -> Turn:
    """One turn that is read for memories at once, and a minute that goes by."""
    turn = await teach(memory, place, text, clock=clock, **({"answer": "All right.", "pieces": ("sent",)} | of))
    clock.move(minutes=1)
    return turn


async def met(memory: Service, clock: Clock, place: Place | None = None) -> Context:
    """Somebody who has talked with the agent, so that their nights are its to work."""
    return (await say(memory, place or private("ada"), "hello there", clock=clock)).context


async def learn(memory: Service, turn: Turn) -> None:
    await memory.learner.flush(turn.context.session.id, "test")


async def act(memory: Service, context: Context, do: Callable[[Edits], T]) -> T:
    returned: list[T] = []

    def done(edits: Edits) -> Sequence[Part]:
        returned.append(do(edits))
        return [Part(text="done")]

    await memory.requests.answer(context, await received(memory, context.session.key), done)
    return returned[-1]


async def remember(memory: Service, context: Context, said: str) -> None:
    await act(memory, context, lambda edits: edits.remember(said, key="note"))


async def leave_chat(memory: Service, chat: str) -> None:
    await memory.mailbox.presence("console", "console", chat, present=False)


async def facts(memory: Service, context: Context) -> list[tuple[str, str]]:
    return sorted((m.key, m.value) for m in await memory.browse.memories(context, limit=50))


async def live(memory: Service, context: Context) -> list[str]:
    return sorted(one.value for one in await memory.browse.memories(context, limit=100))


async def known(memory: Service, context: Context, query: str) -> list[Memory]:
    hits = await memory.browse.search(context, query, limit=32)
    return [hit.memory for hit in hits if hit.memory is not None]


async def found(memory: Service, context: Context, query: str) -> list[str]:
    return [fact.value for fact in await known(memory, context, query)]


async def recalled(memory: Service, place: Place, question: str, *, clock: Clock, window_tokens: int = 1) -> Recall:
    """Returns the material of a turn that asks `question`, with hardly any conversation in its window."""
    where, who = place
    asked = Said(
        inbox_id=await received(memory, where.session_key), text=question, tokens=9, said_at=clock(),
        platform_ref=None, reply_to=None, learn=True,
    )  # fmt: skip
    turn = await memory.turns.begin(where, who, [asked])
    view = await memory.turns.look(turn, Budget(), window_tokens=window_tokens, window_messages=50)
    return view.recall
