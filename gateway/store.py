"""A store as the pipeline has it: one database with what runs on it, and what it is told of where and by whom.

Invariant: of a message, memory learns only what `where_said` and `who_said` name.
"""

from __future__ import annotations

from dataclasses import dataclass

from channels.base import Inbound
from gateway.delivery import Delivery
from gateway.jobs import Worker
from gateway.turn import Turns
from memory.service import Service, Where, Who


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One database with what runs on it; `nights` does the work of the night, where there is any."""

    memory: Service
    turns: Turns
    delivery: Delivery
    nights: Worker | None = None


def where_said(inbound: Inbound, agent: str) -> Where:
    """The place of a message that `agent` answers, as memory names it."""
    return Where(
        session_key=inbound.place.session_key,
        platform=inbound.platform,
        chat=inbound.chat,
        chat_kind=inbound.chat_kind,
        chat_title=inbound.chat_title,
        thread=inbound.thread,
        agent=agent,
    )


def who_said(inbound: Inbound) -> Who:
    """The author of a message, as memory names them."""
    return Who(platform=inbound.platform, user_id=inbound.author_id, name=inbound.author_name)
