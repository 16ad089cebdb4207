"""Fixtures shared by all tests: a clock, ids, an open memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agents.tokens import count_tokens
from memory.service import Context, Receipt, Selection, Service, Triggers, Where, Who
from tests.fakes import Clock, counting_ids


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ids() -> Callable[[], str]:
    return counting_ids()


@pytest.fixture
async def memory(tmp_path: Path, clock: Clock, ids: Callable[[], str]) -> AsyncIterator[Service]:
    """A store with one agent, which learns only when told to."""
    service = await Service.open(
        tmp_path / "remora.db",
        agents={"assistant": "UTC", "other": "UTC"},
        triggers=Triggers(quiet_seconds=3_600),
        now=clock,
        new_id=ids,
        count_tokens=count_tokens,
    )
    yield service
    await service.close(seconds=5)


def private(person: str, *, agent: str = "assistant") -> tuple[Where, Who]:
    """A private chat with `person` on the console."""
    where = Where(
        session_key=f"console:{person}:-",
        platform="console",
        chat=person,
        chat_kind="private",
        thread=None,
        agent=agent,
    )
    return where, Who(platform="console", user_id=person, name=person)


def group(chat: str, person: str, *, thread: str | None = None, agent: str = "assistant") -> tuple[Where, Who]:
    """`person` speaking in a group."""
    where = Where(
        session_key=f"console:{chat}:{thread or '-'}",
        platform="console",
        chat=chat,
        chat_kind="group",
        thread=thread,
        agent=agent,
    )
    return where, Who(platform="console", user_id=person, name=person)


@pytest.fixture
async def ada(memory: Service) -> Context:
    return await memory.context(*private("ada"))


async def forgotten_alone(memory: Service, context: Context, memory_id: int) -> Receipt:
    """Have one memory forgotten and only it: its words stay."""
    inbox_id = await memory.mail.receive(
        platform="console",
        bot_id="local",
        update_key=f"forget {memory_id} for {context.speaker.id}",
        session_key=context.session.key,
        payload="{}",
    )
    assert inbox_id is not None
    selection = Selection(what="memories", memory_ids=(memory_id,))
    receipt = await memory.forgetting.forget(context, inbox_id, None, selection, "memory")
    assert receipt is not None
    return receipt
